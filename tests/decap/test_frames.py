#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames through the decapsulating program: what comes out, byte for byte, and
in which reason each ends. The program checks of itself that a frame is counted
once (run_frames answers "many" or "none" otherwise)."""
import itertools
import os
import random
import subprocess
import sys

import tap

try:
    from scapy.all import (ARP, Dot1AD, Dot1Q, Ether, ICMP, IP, IPv6, Raw, TCP,
        UDP, ICMPv6EchoRequest, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
        IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, LLC, IPOption_NOP, checksum,
        in6_chksum, raw)
except ImportError:
    tap.plan_skip("no scapy (Debian: python3-scapy)")

RUN = os.path.join(os.environ.get("top_builddir", "."),
    "tests/decap/run_frames")
TALK = os.environ.get("XLB_TALK", "").split()   # to another kernel: tests/vm
SETUP = ["from=10.9.0.0/24", "from=2001:db8:9::/48", "from=192.0.2.77/32",
    "local=10.0.0.2", "local=2001:db8::2", "lo=203.0.113.10",
    "lo=2001:db8:5::10", "vip=198.51.100.0/24", "vip=2001:db8:6::/64"]
DST, SRC = "02:00:00:00:00:02", "02:00:00:00:00:01"
LB = {4: "10.9.0.1", 6: "2001:db8:9::1"}
HOST = {4: "10.0.0.2", 6: "2001:db8::2"}
VIP = {4: "203.0.113.10", 6: "2001:db8:5::10"}
CLIENT = {4: "192.0.2.7", 6: "2001:db8:c::7"}
TYPE = {4: 0x0800, 6: 0x86dd}
PROTO = {4: 4, 6: 41}
NOT_ECT, ECT1, ECT0, CE = range(4)


class Runner:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([*TALK, RUN, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, frame, linear=0):
        frame = bytes(frame)
        self.process.stdin.write("%s %d\n" % (frame.hex(), linear))
        self.process.stdin.flush()
        verdict, reason, out = self.process.stdout.readline().split(" ")
        return verdict, reason, bytes.fromhex(out.strip())

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


run = None


def link(version, tags=()):
    """A link header whose last type is that of an IP version."""
    out = bytes.fromhex((DST + SRC).replace(":", ""))
    for kind, tci in tags:
        out += kind.to_bytes(2, "big") + tci.to_bytes(2, "big")
    return out + TYPE[version].to_bytes(2, "big")


def inner(version, payload=None, src=None, dst=None, **fields):
    """A client's packet to the VIP, as bytes."""
    src, dst = src or CLIENT[version], dst or VIP[version]
    if payload is None:
        payload = TCP(sport=1234, dport=80, flags="PA") / b"GET / HTTP/1.0\r\n"
    if version == 4:
        return raw(IP(src=src, dst=dst, id=4711, **fields) / payload)
    return raw(IPv6(src=src, dst=dst, fl=0xabcde, **fields) / payload)


def outer(version, payload, proto, src=None, dst=None, **fields):
    src, dst = src or LB[version], dst or HOST[version]
    if version == 4:
        fields.setdefault("flags", "DF")
        return raw(IP(src=src, dst=dst, id=0, ttl=64, proto=proto, **fields) /
            Raw(payload))
    return raw(IPv6(src=src, dst=dst, hlim=64, nh=proto, **fields) /
        Raw(payload))


def gue(version, payload, sum_, port=6080, **fields):
    """GUE variant 1; `sum_`: False for checksum 0, True for the right one."""
    udp = UDP(sport=40000, dport=port, chksum=None if sum_ else 0)
    if version == 4:
        fields.setdefault("flags", "DF")
        return raw(IP(src=LB[4], dst=HOST[4], id=0, **fields) / udp /
            Raw(payload))
    return raw(IPv6(src=LB[6], dst=HOST[6], **fields) / udp / Raw(payload))


def wrapped(out_version, in_version, payload=None, tags=(), **fields):
    payload = inner(in_version) if payload is None else payload
    return link(out_version, tags) + outer(out_version, payload,
        PROTO[in_version], **fields)


def expect(frame, verdict, reason, out=None, runner=None, linear=0):
    """`out` None: the frame is unchanged."""
    got = (runner or run)(frame, linear)
    want = verdict, reason, bytes(frame) if out is None else bytes(out)
    assert got == want, "\n%s\nin   %s\ngot  %s %s %s\nwant %s %s %s" % (
        "", bytes(frame).hex(), got[0], got[1], got[2].hex(), want[0], want[1],
        want[2].hex())


def expect_out(frame, out, **how):
    expect(frame, "PASS", "decapsulated", out, **how)


def expect_pass(frame, reason, **how):
    expect(frame, "PASS", reason, **how)


def expect_drop(frame, reason, **how):
    expect(frame, "DROP", reason, **how)


MIXES = list(itertools.product((4, 6), (4, 6)))
TAGS = [(), ((0x8100, 100),), ((0x88a8, 0x2005), (0x8100, 0xe007)),
    ((0x8100, 1), (0x8100, 2))]


def mix(out_version, in_version):
    for tags in TAGS:
        for payload in (None, UDP(sport=53, dport=53) / b"odd", b"",
                TCP(sport=1, dport=2, flags="S")):
            packet = inner(in_version, payload)
            expect_out(wrapped(out_version, in_version, packet, tags),
                link(in_version, tags) + packet)
    packet = inner(4, ICMP() / b"ping") if in_version == 4 else \
        inner(6, ICMPv6EchoRequest(data=b"ping"))
    expect_out(wrapped(out_version, in_version, packet),
        link(in_version) + packet)


def mix_gue(out_version, in_version):
    for tags, sum_ in itertools.product(TAGS, (False, True)):
        packet = inner(in_version)
        expect_out(link(out_version, tags) + gue(out_version, packet, sum_),
            link(in_version, tags) + packet)


def inner_forms():
    """Fragments, options and extension headers inside are the stack's."""
    forms = [inner(4, flags="MF"), inner(4, flags=0, frag=100),
        inner(4, options=[IPOption_NOP()] * 4),
        inner(6, IPv6ExtHdrFragment(offset=0, m=1, id=7) / UDP() / b"x"),
        inner(6, IPv6ExtHdrHopByHop() / TCP()),
        inner(4, dst="198.51.100.200"), inner(6, dst="2001:db8:6::f00d"),
        inner(4, ttl=1), inner(6, hlim=1)]
    for packet in forms:
        version = packet[0] >> 4
        for out_version in (4, 6):
            expect_out(wrapped(out_version, version, packet),
                link(version) + packet)


def ecn_want(out, in_):
    """RFC 6040, figure 4; None: drop."""
    return {
        NOT_ECT: {NOT_ECT: 0, ECT0: 0, ECT1: 0, CE: None},
        ECT0: {NOT_ECT: ECT0, ECT0: ECT0, ECT1: ECT1, CE: CE},
        ECT1: {NOT_ECT: ECT1, ECT0: ECT1, ECT1: ECT1, CE: CE},
        CE: {NOT_ECT: CE, ECT0: CE, ECT1: CE, CE: CE},
    }[in_][out]


def tos_fields(version, tos):
    return {"tos": tos} if version == 4 else {"tc": tos}


def ecn(out_version, in_version):
    for out, in_ in itertools.product(range(4), range(4)):
        for form in ("ip", "gue"):
            fields = tos_fields(out_version, 0xb8 | out)
            packet = inner(in_version, **tos_fields(in_version, 0x28 | in_))
            if form == "ip":
                frame = wrapped(out_version, in_version, packet, **fields)
            else:
                frame = link(out_version) + gue(out_version, packet, True,
                    **fields)
            want = ecn_want(out, in_)
            if want is None:
                expect_drop(frame, "ecn")
                continue
            expect_out(frame, link(in_version) + inner(in_version,
                **tos_fields(in_version, 0x28 | want)))


def ecn_checksum():
    """The inner IPv4 checksum is updated right, whatever it was."""
    rng = random.Random(1)
    for i in range(1500):
        ident, tos = rng.randrange(65536), rng.randrange(256) & 0xfc
        # among them identifications that make the sum come out at the ends
        def packet(ecn_):
            return raw(IP(src=CLIENT[4], dst=VIP[4], id=ident, tos=tos | ecn_)
                / Raw(b"x"))
        if i < 64:
            base = raw(IP(src=CLIENT[4], dst=VIP[4], id=0, tos=tos | ECT0) /
                Raw(b"x"))
            ident = (int.from_bytes(base[10:12], "big") + i - 32) % 65536
        out, want = rng.choice([(CE, CE), (ECT1, ECT1)])
        expect_out(wrapped(4, 4, packet(ECT0), tos=out),
            link(4) + packet(want))


def source_refused():
    for src in ("10.9.1.1", "10.8.255.255", "192.0.2.76", "192.0.2.78"):
        expect_pass(wrapped(4, 4, src=src), "source")
    for src in ("2001:db8:a::1", "2001:db8:8:ffff::1", "::ffff:10.9.0.1"):
        expect_pass(wrapped(6, 6, src=src), "source")
    expect_out(wrapped(4, 4, src="192.0.2.77"), link(4) + inner(4))
    frame = link(4) + raw(IP(src="10.8.0.1", dst=HOST[4]) /
        UDP(dport=6080) / inner(4))
    expect_pass(frame, "source")


def outer_destination_refused():
    for dst in ("10.0.0.3", "198.51.100.1", "224.0.0.1"):
        expect_pass(wrapped(4, 4, dst=dst), "not_local")
    for dst in ("2001:db8::3", "2001:db8:6::1", "ff02::1",
            "::ffff:10.0.0.2"):
        expect_pass(wrapped(6, 6, dst=dst), "not_local")
    # an address on lo is the host's too
    expect_out(wrapped(4, 4, dst=VIP[4]), link(4) + inner(4))


def outer_fragment_refused():
    for flags, frag in (("MF", 0), (0, 1), ("MF", 185), ("MF+DF", 0)):
        expect_pass(wrapped(4, 4, flags=flags, frag=frag), "fragment")
    expect_out(wrapped(4, 4, flags=0), link(4) + inner(4))
    first = link(4) + gue(4, inner(4), False, flags="MF")
    expect_pass(first, "fragment")
    expect_pass(link(4) + gue(4, inner(4), False, flags=0, frag=8), "other")


def outer_options_refused():
    for count in (4, 40):
        frame = wrapped(4, 4, options=[IPOption_NOP()] * count)
        expect_pass(frame, "options")
    expect_pass(link(4) + gue(4, inner(4), False,
        options=[IPOption_NOP()] * 4), "other")


def outer_extensions_refused():
    for header in (IPv6ExtHdrHopByHop(), IPv6ExtHdrDestOpt(),
            IPv6ExtHdrRouting(addresses=["2001:db8::2"]),
            IPv6ExtHdrFragment(offset=0, m=0, id=1)):
        header.nh = 41
        frame = link(6) + raw(IPv6(src=LB[6], dst=HOST[6]) / header /
            Raw(inner(6)))
        expect_pass(frame, "other")


def inner_destination_refused():
    for version, dst in ((4, "203.0.113.11"), (4, HOST[4]), (4, "127.0.0.1"),
            (4, "198.51.101.1"), (6, "2001:db8:5::11"), (6, HOST[6]),
            (6, "::1"), (6, "2001:db8:6:1::1"), (6, "::ffff:203.0.113.10"),
            (4, "224.0.0.1"), (6, "ff02::1"), (4, "255.255.255.255")):
        for out_version in (4, 6):
            expect_pass(wrapped(out_version, version,
                inner(version, dst=dst)), "not_vip")


def inner_source_refused():
    martians = ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1",
        "239.255.255.255", "255.255.255.255", HOST[4], VIP[4],
        "198.51.100.7", "::", "::1", "::c000:207", "::ffff:192.0.2.7",
        "fe80::1", "febf::1", "ff02::1", HOST[6], VIP[6], "2001:db8:6::1"]
    fine = ["1.0.0.1", "126.255.255.255", "128.0.0.1", "223.255.255.255",
        "240.0.0.1", "255.255.255.254", "::1:0:0:1", "fe7f::1", "fec0::1",
        "feff::1", "0:0:1::1"]
    for src in martians + fine:
        version = 6 if ":" in src else 4
        packet = inner(version, src=src)
        for out_version in (4, 6):
            frame = wrapped(out_version, version, packet)
            if src in martians:
                expect_pass(frame, "martian")
            else:
                expect_out(frame, link(version) + packet)


def families_apart():
    """::/0 permits no IPv4 source, 0.0.0.0/0 no IPv6 one."""
    for prefix, version in (("::/0", 6), ("0.0.0.0/0", 4)):
        runner = Runner("from=" + prefix, *SETUP[3:])
        expect_out(wrapped(version, 4), link(4) + inner(4), runner=runner)
        expect_pass(wrapped(10 - version, 4), "source", runner=runner)
        runner.close()
    runner = Runner(*SETUP[:-2], "vip=::/0")
    expect_pass(wrapped(4, 4, inner(4, dst="198.51.100.1")), "not_vip",
        runner=runner)
    runner.close()


def gue_refused():
    for port in (6079, 6081, 0, 53):
        expect_pass(link(4) + gue(4, inner(4), False, port=port), "other")
    for first in (0x00, 0x10, 0x20, 0x30, 0x50, 0x70, 0x80, 0xff):
        for version in (4, 6):
            payload = bytes([first]) + inner(4)[1:]
            expect_pass(link(version) + gue(version, payload, True),
                "variant")


def gue_port():
    runner = Runner(*SETUP, "gue=4444")
    expect_out(link(4) + gue(4, inner(4), True, port=4444),
        link(4) + inner(4), runner=runner)
    expect_pass(link(4) + gue(4, inner(4), True), "other", runner=runner)
    runner.close()


def gue_checksum():
    """Right for every length round the pieces that are summed; each single
    bit counts."""
    for length in list(range(0, 40)) + list(range(180, 300)) + [1000, 1372,
            1373]:
        payload = random.Random(length).randbytes(length)
        for version in (4, 6):
            packet = inner(6, UDP(sport=9, dport=9) / Raw(payload))
            expect_out(link(version) + gue(version, packet, True),
                link(6) + packet)
    for version in (4, 6):
        packet = inner(6, UDP(sport=9, dport=9) / Raw(bytes(range(256))))
        good = link(version) + gue(version, packet, True)
        udp = 14 + (20 if version == 4 else 40)
        rng = random.Random(2)
        # ports and what is behind the inner addresses
        spots = [udp, udp + 1, udp + 6, udp + 7, *range(udp + 48, len(good))]
        for at in rng.sample(spots, 100):
            bad = bytearray(good)
            bad[at] ^= 1 << rng.randrange(8)
            if bad[udp + 6:udp + 8] != b"\0\0":
                expect_drop(bad, "checksum")


def gue_checksum_ffff():
    """A sum that comes out at 0 is sent as ffff (RFC 768)."""
    for version in (4, 6):
        base = gue(version, inner(4, Raw(b"\0\0")), True)
        udp = 20 if version == 4 else 40
        fix = base[udp + 6:udp + 8]
        packet = inner(4, Raw(fix))
        frame = bytearray(link(version) + gue(version, packet, True))
        frame[14 + udp + 6:14 + udp + 8] = b"\xff\xff"
        expect_out(frame, link(4) + packet)


def outer_checksum():
    good = wrapped(4, 4)
    for at in (1, 4, 5, 8, 10, 11):
        bad = bytearray(good)
        bad[14 + at] ^= 0x10
        expect_drop(bad, "checksum")


def set16(frame, at, value):
    frame = bytearray(frame)
    frame[at:at + 2] = value.to_bytes(2, "big")
    return frame


def lengths_refused():
    for out_version, in_version in MIXES:
        for form in ("ip", "gue"):
            packet = inner(in_version)
            at = {"ip": 0, "gue": 8}[form] + (20 if out_version == 4 else 40)
            field = at + (2 if in_version == 4 else 4)
            plain = len(packet) - (0 if in_version == 4 else 40)
            for length in (plain + 1, plain + 8, 65535):
                bad = bytes(set16(packet, field - at, length))
                frame = link(out_version) + (gue(out_version, bad, True)
                    if form == "gue" else
                    outer(out_version, bad, PROTO[in_version]))
                expect_drop(frame, "malformed")
                expect_drop(frame + bytes(20), "malformed")


def inner_header_refused():
    for version in (4, 6):
        for first in (0x44, 0x40):
            bad = bytes([first]) + inner(4)[1:]
            expect_drop(wrapped(version, 4, bad), "malformed")
        for length in (0, 19):
            bad = bytes(set16(inner(4), 2, length))
            expect_drop(wrapped(version, 4, bad), "malformed")
        # protocol and version disagree
        expect_drop(wrapped(version, 4, inner(6)), "malformed")
        expect_drop(wrapped(version, 6, inner(4)), "malformed")
        expect_drop(wrapped(version, 4, b""), "malformed")
        expect_drop(wrapped(version, 6, b"\x60"), "malformed")
    # a header longer than the packet
    bad = bytes([0x4f]) + inner(4, b"")[1:]
    expect_drop(wrapped(4, 4, bad), "malformed")


def outer_lengths_refused():
    for version in (4, 6):
        for form in ("ip", "gue"):
            frame = link(version) + (gue(version, inner(4), False)
                if form == "gue" else
                outer(version, inner(4), 4))
            size = len(frame) - 14
            frame4 = len(frame) - 1     # one byte is missing
            expect_drop(frame[:frame4], "malformed")
            udp = 14 + (20 if version == 4 else 40)
            if form == "gue":
                for length in (0, 7, 8, 9, 27, size - (udp - 14) + 1, 65535):
                    expect_drop(set16(frame, udp + 4, length), "malformed")


def truncated(out_version, in_version, form):
    """At each byte: never unwrapped, never counted twice, and untouched while
    not even the outer header is there."""
    packet = inner(in_version)
    full = link(out_version) + (gue(out_version, packet, False)
        if form == "gue" else outer(out_version, packet, PROTO[in_version]))
    known = 14 + (20 if out_version == 4 else 40) + (8 if form == "gue" else 0)
    for length in range(14, len(full)):
        if length < known:
            expect_pass(full[:length], "other")
        else:
            expect_drop(full[:length], "malformed")
    expect_out(full, link(in_version) + packet)


def truncated_inside(out_version, in_version, form):
    """The outer packet is whole, the inner one ends early."""
    packet = inner(in_version)
    for length in range(0, len(packet)):
        part = packet[:length]
        expect_drop(link(out_version) + (gue(out_version, part, True)
            if form == "gue" else
            outer(out_version, part, PROTO[in_version])), "malformed")


def trailing(out_version, in_version):
    for form, count in itertools.product(("ip", "gue"), range(1, 70)):
        packet = inner(in_version)
        frame = link(out_version) + (gue(out_version, packet, True)
            if form == "gue" else
            outer(out_version, packet, PROTO[in_version]))
        expect_out(frame + bytes([0xaa]) * count, link(in_version) + packet)
    # inside the outer packet, behind the inner one
    packet = inner(in_version)
    for frame in (outer(out_version, packet + b"junk!", PROTO[in_version]),
            gue(out_version, packet + b"junk!", True)):
        expect_out(link(out_version) + frame, link(in_version) + packet)


def not_ours():
    frames = [Ether(dst=DST, src=SRC) / ARP(pdst="10.0.0.2"),
        Ether(dst=DST, src=SRC) / IP(dst=HOST[4]) / TCP(dport=22),
        Ether(dst=DST, src=SRC) / IP(dst=VIP[4]) / TCP(dport=80),
        Ether(dst=DST, src=SRC) / IP(dst=HOST[4]) / UDP(dport=53) / b"x",
        Ether(dst=DST, src=SRC) / IP(dst=HOST[4]) / ICMP(),
        Ether(dst=DST, src=SRC) / IPv6(dst=HOST[6]) / TCP(dport=80),
        Ether(dst=DST, src=SRC) / IPv6(dst=HOST[6]) / ICMPv6EchoRequest(),
        Ether(dst=DST, src=SRC) / IP(src=LB[4], dst=HOST[4], proto=47) / b"gre",
        Ether(dst=DST, src=SRC, type=0x88cc) / Raw(bytes(50)),
        link(4)[:12] + bytes([0, 40]) + bytes(46),
        link(4) + bytes(46), link(6) + bytes(46), link(4), link(6),
        link(4)[:12] + bytes.fromhex("8100"),
        link(4)[:12] + bytes.fromhex("81000001"),
        link(4)[:12] + bytes.fromhex("81000001810000028100") + bytes(60),
        link(4, ((0x8100, 1), (0x8100, 2), (0x8100, 3))) +
            outer(4, inner(4), 4),
        # wrong version in an IP header
        link(4) + outer(6, inner(4), 4), link(6) + outer(4, inner(4), 4)]
    for frame in frames:
        expect_pass(raw(frame) if not isinstance(frame, bytes) else frame,
            "other")


def jumbo():
    """More than one buffer: unwrapped, trimmed, summed."""
    runner = Runner("--frags", *SETUP)
    for length in (100, 3000, 5000, 8900, 60000):
        payload = random.Random(length).randbytes(length)
        for out_version, in_version in MIXES:
            packet = inner(in_version, UDP(sport=9, dport=9) / Raw(payload))
            expect_out(wrapped(out_version, in_version, packet),
                link(in_version) + packet, runner=runner)
            frame = link(out_version) + gue(out_version, packet, True)
            expect_out(frame, link(in_version) + packet, runner=runner)
            expect_out(frame + b"trail" * 9, link(in_version) + packet,
                runner=runner)
            bad = bytearray(frame)
            bad[-1] ^= 1
            expect_drop(bad, "checksum", runner=runner)
    runner.close()


def split():
    """A first buffer that ends within the headers."""
    runner = Runner("--frags", *SETUP)
    packet = inner(6, UDP(sport=9, dport=9) / Raw(bytes(600)), tc=ECT0)
    frame = link(6) + gue(6, packet, True, tc=CE)
    want = link(6) + inner(6, UDP(sport=9, dport=9) / Raw(bytes(600)), tc=CE)
    if runner(frame, 200)[0] == "ERROR":
        runner.close()
        raise tap.Skip("kernel runs no frame with a short first buffer")
    for linear in range(14, len(frame)):
        if linear < 48 + 14:
            # the driver must leave an Ethernet header's worth of bytes
            verdict, reason, out = runner(frame, linear)
            assert (verdict, reason) == ("DROP", "failed"), (linear, verdict,
                reason)
        else:
            expect_out(frame, want, runner=runner, linear=linear)
    runner.close()


def cases():
    out = []
    for o, i in MIXES:
        name = "%din%d" % (i, o)
        out += [(name, lambda o=o, i=i: mix(o, i)),
            (name + " in GUE", lambda o=o, i=i: mix_gue(o, i)),
            (name + " ECN", lambda o=o, i=i: ecn(o, i)),
            (name + " trailing bytes", lambda o=o, i=i: trailing(o, i))]
        for form in ("ip", "gue"):
            out += [("%s %s cut off" % (name, form),
                lambda o=o, i=i, form=form: truncated(o, i, form)),
                ("%s %s cut off inside" % (name, form),
                lambda o=o, i=i, form=form: truncated_inside(o, i, form))]
    out += [(case.__name__.replace("_", " "), case) for case in (inner_forms,
        ecn_checksum, source_refused, outer_destination_refused,
        outer_fragment_refused, outer_options_refused,
        outer_extensions_refused, inner_destination_refused,
        inner_source_refused, families_apart, gue_refused, gue_port,
        gue_checksum, gue_checksum_ffff, outer_checksum, lengths_refused,
        inner_header_refused, outer_lengths_refused, not_ours, jumbo, split)]
    return out


def main():
    global run
    if os.geteuid() != 0 and not TALK:
        tap.plan_skip("needs root to load BPF programs")
    run = Runner(*SETUP)
    if run.process.poll() == 77:
        tap.plan_skip("BPF is not permitted here")
    failed = tap.run(cases())
    run.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
