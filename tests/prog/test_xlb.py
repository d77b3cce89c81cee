#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The packet program, packet by packet, in the kernel and compiled for this
machine. What has to come out is built with scapy."""

import itertools
import os
import random
import struct
import sys
import time

try:
    from scapy.all import (ARP, Dot1AD, Dot1Q, Ether, ICMP, IP, IPv6, Raw, TCP
                           as Tcp, UDP as Udp, IPv6ExtHdrFragment,
                           IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop,
                           IPv6ExtHdrRouting, AH, PadN, ICMPv6EchoRequest,
                           ICMPv6EchoReply, ICMPv6DestUnreach,
                           ICMPv6PacketTooBig, ICMPv6TimeExceeded,
                           ICMPv6ParamProblem, IPOption, fragment, fragment6)
except ImportError:
    print("1..0 # SKIP scapy is missing (Debian: python3-scapy)")
    sys.exit(0)

from rig import (ANY_TCP, ANY_UDP, GONE, GUE, L2, LOCAL, NAT, REASONS,
                 REDIRECT, SOURCE, TCP, TX, UDP, VIPS, Program, Skip, Tap,
                 checksum_ok, flow_hash, short, vip_hash)

VIP = {4: "203.0.113.10", 6: "2001:db8:5::10"}
ELSE = {4: "203.0.113.99", 6: "2001:db8:5::99"}
CLIENT = {4: "192.0.2.7", 6: "2001:db8:9::7"}
NODE = {4: "10.0.0.1", 6: "2001:db8:1::1"}
BACKEND = {1: "10.0.1.11", 2: "10.0.1.12", 3: "2001:db8:1::13",
           4: "2001:db8:1::14"}
OURS, THEIRS, FAR = "02:00:00:00:00:01", "02:00:00:00:00:02", \
    "02:00:00:00:01:{:02x}"
ROUTER = "02:00:00:00:00:99"
KIND = {4: b"\x08\0", 6: b"\x86\xdd"}     # ethertypes
INSNS_MAX = 15000  # as loaded: a program that stays small
VERIFIED_MAX = 250000  # of a million, and each start waits for it
# service numbers by (family, protocol, port)
WEB, TLS, REST, QUIC, UREST = 1, 2, 3, 4, 5
ALONE, STICKY, TUNNEL, PLAIN = 21, 22, 31, 32
OTHER = {4: "203.0.113.30", 6: "2001:db8:5::30"}    # a VIP


def build(p):
    """VIPs 1 and 2 with everything, 3 local, 4 and 5 with few services. Ring 0
    has all four backends in turn, ring 1 whatever the test puts in."""
    for f, number in ((4, 1), (6, 2)):
        p.vip(VIP[f], number, ANY_TCP | ANY_UDP)
        base = 10 * (f == 6)
        p.service(number, TCP, 80, base + WEB, 0)
        p.service(number, TCP, 443, base + TLS, 1)
        p.service(number, UDP, 443, base + QUIC, 1)
        p.service(number, TCP, 0, base + REST, 2)
        p.service(number, UDP, 0, base + UREST, 2)
    p.vip("203.0.113.20", 3, LOCAL)
    p.service(3, TCP, 80, ALONE, 1)
    for f, address in ((4, "203.0.113.30"), (6, "2001:db8:5::30")):
        p.vip(address, 4 + (f == 6))
        p.service(4 + (f == 6), UDP, 53, STICKY, 0, SOURCE)
        p.service(4 + (f == 6), TCP, 80, STICKY + 1, 1, GUE)
        p.service(4 + (f == 6), TCP, 81, STICKY + 2, 5)
        for proto in (TCP, UDP):
            p.service(4 + (f == 6), proto, 82, TUNNEL, 1, GUE)
            p.service(4 + (f == 6), proto, 83, PLAIN, 1, L2)
        p.service(4 + (f == 6), TCP, 84, STICKY + 3, 1, NAT)
    for number in range(4):
        p.ring(number)
    p.slots(0, [1 + i % 4 for i in range(p.ring_size)])
    p.slots_all(1, 1)
    p.slots_all(2, 2)
    for number, address in BACKEND.items():
        p.backend(number, address, number)
        p.hop(number, FAR.format(number), OURS, NODE[6 if ":" in address
                                                     else 4])
    p.ask("port 2")


def packet(f, proto=TCP, dst=None, sport=40000, dport=443, src=None, tos=0,
           payload=b"x" * 30, tcp="PA", **ip):
    """The inner packet, without link header."""
    l4 = Tcp(sport=sport, dport=dport, flags=tcp, seq=7) if proto == TCP \
        else Udp(sport=sport, dport=dport)
    if f == 4:
        l3 = IP(src=src or CLIENT[4], dst=dst or VIP[4], tos=tos, ttl=57, id=9,
                **ip)
    else:
        l3 = IPv6(src=src or CLIENT[6], dst=dst or VIP[6], tc=tos, hlim=57,
                  fl=5, **ip)
    return bytes(l3 / l4 / Raw(payload))


def framed(inner, link=None, f=None):
    f = f or inner[0] >> 4
    kind = 0x0800 if f == 4 else 0x86dd
    link = link or Ether(src=ROUTER, dst=OURS)
    last = link.lastlayer()
    last.type = kind
    return bytes(link) + inner


def hash_of(inner):
    """As scapy takes it apart."""
    l3 = (IP if inner[0] >> 4 == 4 else IPv6)(inner)
    l4 = l3[Tcp] if Tcp in l3 else l3[Udp]
    return flow_hash(Program.KEY, short(l3.src), short(l3.dst), struct.pack(
        ">HH", l4.sport, l4.dport), TCP if Tcp in l3 else UDP)


def wrapped(inner, backend, src=None, link=None, of=None):
    """What has to come out for a backend's number, byte for byte; its flow is
    that of the packet `of`."""
    f = inner[0] >> 4
    dst = BACKEND[backend]
    tos = inner[1] if f == 4 else (inner[0] << 8 | inner[1]) >> 4 & 0xff
    nh = 4 if f == 4 else 41
    if ":" in dst:
        outer = IPv6(src=src or NODE[6], dst=dst, tc=tos, hlim=64, nh=nh,
                     fl=hash_of(of or inner) & 0xfffff)
    else:
        outer = IP(src=src or NODE[4], dst=dst, tos=tos, ttl=64, proto=nh,
                   id=0, flags="DF")
    out = bytes(outer / Raw(inner))
    if f == 4 and ":" not in dst:
        assert checksum_ok(out[:20])
    return framed(out, link or Ether(src=OURS, dst=FAR.format(backend)))


def same(got, want):
    assert got == want, f"\n  got  {got.hex()}\n  want {want.hex()}"


def every_form(p):
    for f in (4, 6):
        for proto, service in ((TCP, TLS), (UDP, QUIC)):
            for backend in BACKEND:
                p.slots_all(1, backend)
                inner = packet(f, proto)
                out = p.forward(framed(inner), service + 10 * (f == 6),
                                backend, len(inner))
                same(out, wrapped(inner, backend))
                at = 14
                if ":" not in BACKEND[backend]:
                    assert checksum_ok(out[at:at + 20])


def exact_port_beats_any(p):
    for f in (4, 6):
        base = 10 * (f == 6)
        p.slots_all(1, 1)
        for proto, port, service, backend in (
                (TCP, 443, TLS, 1), (TCP, 444, REST, 2), (TCP, 65535, REST, 2),
                (TCP, 0, REST, 2), (UDP, 443, QUIC, 1), (UDP, 80, UREST, 2)):
            inner = packet(f, proto, dport=port)
            same(p.forward(framed(inner), base + service, backend, len(inner)),
                 wrapped(inner, backend))


def the_hash_selects_the_slot(p):
    rng = random.Random(1)
    used = set()
    for half in (0, 1):
        p.slots(0, [1 + (i + half) % 4 for i in range(p.ring_size)], half)
        p.active(0, half)
        for _ in range(60):
            for f in (4, 6):
                client = f"198.51.{rng.randrange(100)}.{rng.randrange(1, 255)}"
                if f == 6:
                    client = f"2001:db8:{rng.randrange(65536):x}::1:2"
                inner = packet(f, src=client, sport=rng.randrange(65536),
                               dport=80)
                slot = (hash_of(inner) >> 32) * p.ring_size >> 32
                backend = 1 + (slot + half) % 4
                used.add(backend)
                same(p.forward(framed(inner), WEB + 10 * (f == 6), backend,
                               len(inner)), wrapped(inner, backend))
    p.active(0, 0)
    assert used == {1, 2, 3, 4}


def hash_by_source(p):
    for f, vip in ((4, "203.0.113.30"), (6, "2001:db8:5::30")):
        seen = set()
        for last in range(1, 30):
            client = f"198.51.100.{last}" if f == 4 else f"2001:db8:7::{last}"
            slot = (flow_hash(p.KEY, short(client)) >> 32) * p.ring_size >> 32
            backend = 1 + slot % 4
            seen.add(backend)
            for sport in (1024, 40000, 65535):
                inner = packet(f, UDP, dst=vip, src=client, sport=sport,
                               dport=53)
                # the label is still that of the flow
                same(p.forward(framed(inner), STICKY, backend, len(inner)),
                     wrapped(inner, backend))
        assert len(seen) == 4


def dscp_and_ecn_are_copied(p):
    for f in (4, 6):
        for backend in (1, 3):
            p.slots_all(1, backend)
            for tos in range(f, 256, 3):
                inner = packet(f, tos=tos)
                same(p.forward(framed(inner), TLS + 10 * (f == 6), backend,
                               len(inner)), wrapped(inner, backend))


def outer_sources_vary_by_flow(p):
    p.settings(("10.255.0.0", 16), ("2001:db8:ff::", 64))
    for f in (4, 6):
        for backend in (1, 3):
            p.slots_all(1, backend)
            sources = set()
            for sport in range(1000, 1060):
                inner = packet(f, sport=sport)
                h = hash_of(inner)
                if backend == 1:
                    # the hash is a number; its low bits as they lie in memory
                    low = struct.pack("=I", h & 0xffffffff)[2:]
                    src = "10.255.%d.%d" % tuple(low)
                else:
                    low = struct.pack("=Q", h)
                    src = "2001:db8:ff::" + ":".join(
                        f"{x:x}" for x in struct.unpack(">4H", low))
                    src = src.replace("::", ":0:")
                sources.add(src)
                same(p.forward(framed(inner), TLS + 10 * (f == 6), backend,
                               len(inner)), wrapped(inner, backend, src))
            assert len(sources) > 55, sources
    p.settings(("10.255.1.1", 32))
    p.slots_all(1, 1)
    inner = packet(4)
    same(p.forward(framed(inner), TLS, 1, len(inner)),
         wrapped(inner, 1, "10.255.1.1"))
    p.settings()


def trailing_bytes_are_no_payload(p):
    for f in (4, 6):
        for backend in (1, 3):
            p.slots_all(1, backend)
            for extra in list(range(0, 20)) + [46, 600]:
                inner = packet(f, payload=b"")
                out = p.forward(framed(inner) + b"\xee" * extra,
                                TLS + 10 * (f == 6), backend, len(inner))
                keep = b"\xee" * extra if extra <= 6 else b""
                same(out, wrapped(inner, backend) + keep)
    # what the smallest Ethernet frame pads
    inner = packet(4, UDP, payload=b"1")
    same(p.forward(framed(inner).ljust(60, b"\0"), QUIC, 3, len(inner)),
         wrapped(inner, 3))


def cut_anywhere(p):
    for f, header in ((4, 20), (6, 40)):
        for proto in (TCP, UDP):
            inner = packet(f, proto, payload=b"abc")
            frame = framed(inner)
            for n in range(14 if p.engine == "bpf" else 0, len(frame)):
                p.expect(frame[:n], "not_vip" if n < 14 + header
                         else "malformed")
            # the same, and the IP header agrees
            for n in range(header, header + (20 if proto == TCP else 8)):
                short_one = bytearray(inner[:n])
                struct.pack_into(">H", short_one, 2 if f == 4 else 4,
                                 n if f == 4 else n - header)
                p.expect(framed(bytes(short_one)), "malformed")
                p.expect(framed(bytes(short_one)) + bytes(40), "malformed")


def lengths_that_lie(p):
    for f, at, base in ((4, 2, 0), (6, 4, 40)):
        inner = packet(f)
        for length in (0, 1, 19, 39, len(inner) + 1, 0xffff - base):
            if f == 6 and length < 20:
                continue
            bad = bytearray(inner)
            struct.pack_into(">H", bad, at, max(0, length - base))
            p.expect(framed(bytes(bad)), "malformed")
    for f in (4, 6):
        udp = 20 if f == 4 else 40
        inner = packet(f, UDP)
        for length, good in ((0, 0), (7, 0), (8, 1), (38, 1), (39, 0)):
            some = bytearray(inner)
            struct.pack_into(">H", some, udp + 4, length)
            got = p.run(framed(bytes(some)))[2]
            assert got == ("forward" if good else "malformed"), (length, got)
        inner = packet(f, TCP)
        for words, good in ((0, 0), (4, 0), (5, 1), (12, 1), (13, 0), (15, 0)):
            some = bytearray(inner)
            some[udp + 12] = words << 4
            got = p.run(framed(bytes(some)))[2]
            assert got == ("forward" if good else "malformed"), (words, got)


def tcp_flags(p):
    for f in (4, 6):
        for flags in list(range(64)) + [0x40, 0x80, 0xc0, 0xc2, 0xd8, 0xff]:
            fin, syn, rst = flags & 1, flags & 2, flags & 4
            bad = (syn and (fin or rst)) or not flags & 0x3f
            frame = framed(packet(f, tcp=flags))
            got = p.run(frame)[2]
            assert got == ("malformed" if bad else "forward"), (flags, got)


def the_mtu_is_kept(p):
    for f in (4, 6):
        for backend, outer in ((1, 20), (3, 40)):
            p.hop(backend, FAR.format(backend), OURS,
                  NODE[4 if outer == 20 else 6], mtu=1300)
            p.slots_all(1, backend)
            head = 40 if f == 4 else 60
            fits = packet(f, payload=bytes(1300 - outer - head))
            same(p.forward(framed(fits), TLS + 10 * (f == 6), backend,
                           len(fits)), wrapped(fits, backend))
            large = packet(f, payload=bytes(1301 - outer - head))
            if f == 4:              # without DF nobody can be told
                p.expect(framed(large), "too_big_no_df", TLS)
            else:
                p.answer(framed(large), "too_big", TLS + 10)
            p.hop(backend, FAR.format(backend), OURS,
                  NODE[4 if outer == 20 else 6])


def out_by_another_interface(p):
    inner = packet(4)
    p.slots_all(1, 1)
    p.hop(1, FAR.format(1), OURS, NODE[4], ifindex=2)
    same(p.forward(framed(inner), TLS, 1, len(inner), REDIRECT),
         wrapped(inner, 1))
    p.hop(1, FAR.format(1), OURS, NODE[4], ifindex=3)
    p.expect(framed(inner), "encap_failed", TLS)
    p.hop(1, FAR.format(1), OURS, NODE[4])
    same(p.forward(framed(inner), TLS, 1, len(inner), TX), wrapped(inner, 1))


def vlans(p):
    p.slots_all(1, 1)
    for f in (4, 6):
        inner = packet(f)
        service = TLS + 10 * (f == 6)

        def out(link_in, link_out, vlan):
            p.hop(1, FAR.format(1), OURS, NODE[4], vlan=vlan)
            link_out = Ether(src=OURS, dst=FAR.format(1)) / link_out \
                if link_out else None
            link_in = Ether(src=ROUTER, dst=OURS) / link_in \
                if link_in else None
            same(p.forward(framed(inner, link_in), service, 1, len(inner)),
                 wrapped(inner, 1, link=link_out))

        out(None, Dot1Q(vlan=100), 100)                         # pushed
        out(Dot1Q(vlan=100), None, 0)                           # popped
        out(Dot1Q(vlan=7, prio=3), Dot1Q(vlan=100), 100)        # rewritten
        out(Dot1Q(vlan=100, prio=5), Dot1Q(vlan=100, prio=5), 100)    # kept
        out(Dot1AD(vlan=100), Dot1AD(vlan=100), 100)
        out(Dot1AD(vlan=7), Dot1Q(vlan=100), 100)
    p.hop(1, FAR.format(1), OURS, NODE[4])
    for f in (4, 6):
        inner = packet(f)
        for outer in (Dot1AD, Dot1Q):
            two = Ether(src=ROUTER, dst=OURS) / outer(vlan=1) / Dot1Q(vlan=2)
            for vlan in (0, 1, 2, 3):       # no next hop is on two
                p.hop(1, FAR.format(1), OURS, NODE[4], vlan=vlan)
                link = Ether(src=OURS, dst=FAR.format(1))
                same(p.forward(framed(inner, two), TLS + 10 * (f == 6), 1,
                               len(inner)),
                     wrapped(inner, 1, link=link / Dot1Q(vlan=vlan) if vlan
                             else link))
        p.hop(1, FAR.format(1), OURS, NODE[4])
        for n in range(14, 22 + (20 if f == 4 else 40)):
            p.expect(framed(inner, two)[:n], "not_vip")
        p.expect(framed(packet(f, dst=ELSE[f]), two), "not_vip")
        p.expect(framed(inner, two / Dot1Q(vlan=3)), "not_vip")
    p.expect(framed(packet(4), two, 4)[:18] + b"\x88\xcc" + bytes(60),
             "not_vip")
    one = Ether(src=ROUTER, dst=OURS) / Dot1Q(vlan=2)
    p.expect(framed(packet(4, dst=ELSE[4]), one), "not_vip")
    for n in range(14, 18 + 20):
        p.expect(framed(packet(4), one)[:n], "not_vip")


def what_is_for_others_passes(p):
    raw = Ether(src=ROUTER, dst=OURS)
    others = [
        bytes(raw / ARP(pdst=VIP[4])),
        bytes(raw / IP(src=CLIENT[4], dst=ELSE[4]) / ICMP()),
        bytes(raw / IP(src=CLIENT[4], dst=ELSE[4], flags="MF") / Raw(b"x")),
        bytes(raw / IP(src=CLIENT[4], dst=ELSE[4], frag=9) / Raw(b"x")),
        bytes(raw / IP(src=VIP[4], dst=ELSE[4]) / Tcp(flags=0)),
        bytes(raw / IP(src="127.0.0.1", dst=ELSE[4], ihl=2) / Raw(b"x")),
        bytes(raw / IP(src=VIP[4], dst="224.0.0.5", proto=89) / Raw(b"x")),
        bytes(raw / IPv6(src=CLIENT[6], dst=ELSE[6]) / ICMPv6EchoRequest()),
        bytes(raw / IPv6(dst=ELSE[6]) / IPv6ExtHdrFragment() / Udp()),
        bytes(raw / IPv6(dst=ELSE[6], plen=9999) / Raw(b"x")),
        # an IPv4 VIP is no IPv6 address
        bytes(raw / IPv6(src=CLIENT[6], dst="::ffff:" + VIP[4]) /
              Tcp(dport=443)),
        b"\xff" * 12 + b"\x88\xcc" + bytes(60),
        b"\x01\x80\xc2\0\0\0" + bytes(6) + b"\0\x26" + bytes(46),
        b"\0" * 14,
    ]
    for f in (4, 6):
        for proto in (TCP, UDP):
            others.append(framed(packet(f, proto, dst=ELSE[f])) + b"\1" * 40)
    rng = random.Random(2)
    for kind in (b"\x08\0", b"\x86\xdd", b"\x81\0", b"\x12\x34"):
        for _ in range(40):
            others.append(bytes(12) + kind + rng.randbytes(
                rng.randrange(100)))
    for frame in others:
        p.expect(frame, "not_vip")


def other_protocols(p):
    link = Ether(src=ROUTER, dst=OURS)
    for dst, reason in ((VIP[4], "no_service"), ("203.0.113.20", "vip_local"),
                        ("203.0.113.30", "no_service")):
        p.expect(bytes(link / IP(src=CLIENT[4], dst=dst, proto=47) /
                       Raw(b"x" * 40)), reason)
        for kind in [0, 1, 2, 5, 6, 7, 9, 10] + list(range(13, 45)) + [255]:
            p.expect(bytes(link / IP(src=CLIENT[4], dst=dst) /
                           ICMP(type=kind)), reason)
        p.expect(bytes(link / IP(src=CLIENT[4], dst=dst) /
                       ICMP(type=8, code=1)), reason)
    for kind in [0, 127] + list(range(129, 140)) + [255]:
        p.expect(bytes(link / IPv6(src=CLIENT[6], dst=VIP[6], nh=58) /
                       Raw(bytes([kind]) + bytes(40))), "no_service")
    for nh in (0x3a, 47, 59, 132, 135, 253):
        for headers in (None, IPv6ExtHdrDestOpt(nh=nh)):
            l3 = IPv6(src=CLIENT[6], dst=VIP[6], nh=nh)
            if headers:
                l3 = IPv6(src=CLIENT[6], dst=VIP[6]) / headers
            p.expect(bytes(link / l3 / Raw(b"x" * 40)), "no_service")


def ports_without_service(p):
    for f, dst in ((4, "203.0.113.30"), (6, "2001:db8:5::30")):
        p.expect(framed(packet(f, dst=dst, dport=9)), "no_service")
        p.expect(framed(packet(f, UDP, dst=dst, dport=80)), "no_service")
        p.expect(framed(packet(f, TCP, dst=dst, dport=0)), "no_service")
    p.expect(framed(packet(4, dst="203.0.113.20", dport=22)), "vip_local")
    p.expect(framed(packet(4, UDP, dst="203.0.113.20")), "vip_local")
    p.slots_all(1, 1)
    inner = packet(4, dst="203.0.113.20", dport=80)
    same(p.forward(framed(inner), ALONE, 1, len(inner)), wrapped(inner, 1))


def echo_pair(f, ident=1, seq=1, data=b"abcdefg", dst=None, ip={}, **change):
    """A request, and what has to come back."""
    dst = dst or VIP[f]
    if f == 4:
        ask = IP(src=CLIENT[4], dst=dst, ttl=3, id=77, tos=8, **ip)
        back = IP(src=dst, dst=CLIENT[4], ttl=64, id=77, tos=8)
        a, b = ICMP(type=8, id=ident, seq=seq), ICMP(type=0, id=ident, seq=seq)
    else:
        ask = IPv6(src=CLIENT[6], dst=dst, hlim=3, tc=8, fl=9)
        back = IPv6(src=dst, dst=CLIENT[6], hlim=64, tc=8, fl=9)
        a = ICMPv6EchoRequest(id=ident, seq=seq, data=data)
        b = ICMPv6EchoReply(id=ident, seq=seq, data=data)
        data = b""
    return bytes(ask / a / Raw(data)), bytes(back / b / Raw(data))


def echo(p):
    links = [[], [Dot1Q(vlan=7, prio=3)], [Dot1AD(vlan=9), Dot1Q(vlan=7)]]
    for f in (4, 6):
        for tags in links:
            there, back = Ether(src=ROUTER, dst=OURS), \
                Ether(src=OURS, dst=ROUTER)
            for t in tags:
                there, back = there / t.copy(), back / t.copy()
            for data in (b"", b"a", b"ab", bytes(range(256)) * 5):
                ask, want = echo_pair(f, data=data)
                want = framed(want, back)
                same(p.answer(framed(ask, there), "echo"), want)
                for extra in (1, 6, 7, 18, 40, 600):
                    keep = max(0, min(extra, 60 - len(want)))
                    same(p.answer(framed(ask, there) + b"\xee" * extra,
                                  "echo"), want + b"\xee" * keep)
        ask, want = echo_pair(f)
        for vip in {4: ("203.0.113.20", "203.0.113.30"),
                    6: ("2001:db8:5::30",)}[f]:
            ask, want = echo_pair(f, dst=vip)
            same(p.answer(framed(ask), "echo"),
                 framed(want, Ether(src=OURS, dst=ROUTER)))
        ask, want = echo_pair(f, dst=ELSE[f])
        p.expect(framed(ask), "not_vip")
        ask, want = echo_pair(f)
        p.expect(framed(ask, Ether(src=ROUTER, dst="33:33:00:00:00:01")),
                 "no_service")
        at = 12 if f == 4 else 8
        for src in (VIP[f], "127.0.0.1" if f == 4 else "::1",
                    "224.0.0.1" if f == 4 else "ff02::1"):
            bad = bytearray(ask)
            bad[at:at + len(short(src))] = short(src)
            p.expect(framed(bytes(bad)), "martian")
        for n in range(len(ask) - 15, len(ask) - 7):    # less than a header
            cut = bytearray(ask[:n])
            struct.pack_into(">H", cut, 2 if f == 4 else 4,
                             n if f == 4 else n - 40)
            p.expect(framed(bytes(cut)), "malformed")
        # fragments of one cannot be put together here
        ask = IP(ask) if f == 4 else IPv6(ask)
        if f == 4:
            ask.flags = "MF"
            del ask.chksum
            p.expect(framed(bytes(ask)), "no_service")
            ask.frag = 3
            p.expect(framed(bytes(ask)), "fragment_unknown")
    # options are not sent back
    ask, want = echo_pair(4, ip={"options": [IPOption(b"\x01" * 40)]})
    same(p.answer(framed(ask), "echo"), framed(want, Ether(src=OURS,
                                                           dst=ROUTER)))
    ask, want = echo_pair(6)
    for headers in ([options6(IPv6ExtHdrHopByHop, 4)],
                    [options6(IPv6ExtHdrDestOpt, 250)] * 4):
        l3 = IPv6(ask)
        full = IPv6(src=l3.src, dst=l3.dst, hlim=l3.hlim, tc=l3.tc, fl=l3.fl)
        for h in headers:
            full = full / h.copy()
        same(p.answer(framed(bytes(full / l3.payload)), "echo"),
             framed(want, Ether(src=OURS, dst=ROUTER)))


def every_checksum(p):
    """All 65536 of them, by the identifier (fewer where a machine is emulated);
    ICMP whose bytes are all zero too, and those whose sum is none."""
    some = (0, 1, 0xf7ff, 0xfffe, 0xffff)
    most = range(0, 65536, 61 if p.slow else 1)
    link = framed(b"", Ether(src=OURS, dst=ROUTER), 4)[:12]
    for f in (4, 6):
        head = 20 if f == 4 else 40
        for data in (b"", b"\0\0", b"\xff\xff"):
            pair = [bytearray(x) for x in echo_pair(f, 0, 0, data)]
            frames, wanted = [], []
            for n in (*most, *some) if not data else some:
                for x, kind in zip(pair, (8, 0) if f == 4 else (128, 129)):
                    struct.pack_into(">BBHH", x, head, kind, 0, 0, n)
                    pseudo = b"" if f == 4 else bytes(x[8:40]) + \
                        struct.pack(">II", len(x) - 40, 58)
                    struct.pack_into(">H", x, head + 2, rfc1071(
                        pseudo + bytes(x[head:])))
                frames.append(link[6:12] + link[:6] + KIND[f] + bytes(pair[0]))
                wanted.append(link + KIND[f] + bytes(pair[1]))
            for got, want in zip(p.bulk(frames, "echo"), wanted):
                same(got, want)


def rfc1071(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xffff:
        total = total % 65536 + total // 65536
    return 65535 - total


def quote_of(f, proto, sport, dport, cut=8, client=None, vip=None, headers=(),
             **ip):
    """What the VIP sent to the client, as a router on the way quotes it."""
    l4 = Tcp(sport=sport, dport=dport, flags="A", seq=99) if proto == TCP \
        else Udp(sport=sport, dport=dport)
    if f == 4:
        l3 = IP(src=vip or VIP[4], dst=client or CLIENT[4], ttl=1, **ip)
        return bytes(l3 / l4 / Raw(b"data"))[:len(bytes(l3)) + cut]
    l3 = IPv6(src=vip or VIP[6], dst=client or CLIENT[6], hlim=1)
    for h in headers:
        l3 = l3 / h.copy()
    return bytes(l3 / l4 / Raw(b"data"))[:len(bytes(l3)) + cut]


ROUTERS = {4: "198.51.100.1", 6: "2001:db8:77::1"}
ERRORS = {4: [ICMP(type=3, code=4, nexthopmtu=1400), ICMP(type=3, code=1),
              ICMP(type=4), ICMP(type=11), ICMP(type=12)],
          6: [ICMPv6DestUnreach(), ICMPv6PacketTooBig(mtu=1300),
              ICMPv6TimeExceeded(), ICMPv6ParamProblem()]}


def error(f, kind, quote, dst=None, src=None):
    if f == 4:
        return bytes(IP(src=src or ROUTERS[4], dst=dst or VIP[4], id=3, ttl=60,
                        tos=0xc0) / kind / Raw(quote))
    return bytes(IPv6(src=src or ROUTERS[6], dst=dst or VIP[6], hlim=60) /
                 kind / Raw(quote))


def icmp_errors(p):
    rng = random.Random(5)
    seen = set()
    for f in (4, 6):
        base = 10 * (f == 6)
        for proto, port, service in ((TCP, 80, WEB), (UDP, 443, QUIC),
                                     (TCP, 9, REST)):
            p.slots(1, [1 + i % 4 for i in range(p.ring_size)])
            p.slots(2, [1 + i % 4 for i in range(p.ring_size)])
            for kind in ERRORS[f]:
                cport = rng.randrange(65536)
                flow = packet(f, proto, sport=cport, dport=port)
                slot = (hash_of(flow) >> 32) * p.ring_size >> 32
                backend = 1 + slot % 4
                seen.add(backend)
                more = [{}]
                if f == 4:
                    more += [{"options": [IPOption(b"\x01" * 4 * n)]}
                             for n in (1, 10)] + [{"flags": "MF"}]
                else:
                    more += [{"headers": [options6(IPv6ExtHdrHopByHop, 4)]},
                             {"headers": [options6(IPv6ExtHdrDestOpt, 4)] * 8},
                             {"headers": [IPv6ExtHdrFragment(m=1, id=4)]}]
                for some in more:
                    for cut in (8, 12, 24):
                        inner = error(f, kind.copy(), quote_of(
                            f, proto, port, cport, cut, **some))
                        same(p.forward(framed(inner), service + base, backend,
                                       len(inner), why="icmp_error"),
                             wrapped(inner, backend, of=flow))
                    inner = error(f, kind.copy(), quote_of(
                        f, proto, port, cport, 7, **some))
                    p.expect(framed(inner), "malformed")
        p.slots_all(1, 1)
        p.slots_all(2, 2)
    assert seen == {1, 2, 3, 4}, seen
    for f in (4, 6):                # by the client's address, not the router's
        vip = "203.0.113.30" if f == 4 else "2001:db8:5::30"
        for n in range(8):
            client = f"198.51.100.{n}" if f == 4 else f"2001:db8:7::{n + 2}"
            slot = (flow_hash(p.KEY, short(client)) >> 32) * p.ring_size >> 32
            flow = packet(f, UDP, src=client, dst=vip, dport=53)
            inner = error(f, ERRORS[f][0].copy(), quote_of(
                f, UDP, 53, 40000, client=client, vip=vip), vip)
            same(p.forward(framed(inner), STICKY, 1 + slot % 4, len(inner),
                           why="icmp_error"),
                 wrapped(inner, 1 + slot % 4, of=flow))


def icmp_errors_about_nothing(p):
    for f in (4, 6):
        kind = ERRORS[f][0]
        vip = "203.0.113.30" if f == 4 else "2001:db8:5::30"

        def ends(reason, quote, dst=None, src=None, service=None):
            p.expect(framed(error(f, kind.copy(), quote, dst, src)), reason,
                     service)

        ends("no_service", quote_of(f, TCP, 9, 9, vip=vip), vip)
        ends("no_service", quote_of(f, TCP, 80, 9, vip=ELSE[f]))
        ends("no_service", quote_of(f, TCP, 80, 9), vip)
        ends("martian", quote_of(f, TCP, 80, 9), None, VIP[f])
        p.slots_all(1, 0)
        ends("no_backend", quote_of(f, TCP, 443, 9), None, None,
             TLS + 10 * (f == 6))
        p.slots_all(1, 1)
        echoed = echo_pair(f)[1]
        ends("no_service", echoed)
        bad = bytearray(quote_of(f, TCP, 80, 9))
        for first in (0x05, 0x44, 0x75):
            bad[0] = first
            ends("malformed", bytes(bad))
        for n in range(0, 28 if f == 4 else 48):
            ends("malformed", quote_of(f, TCP, 80, 9)[:n])
        # the quote is none of what lies behind the packet
        later = quote_of(4, TCP, 80, 9, frag=7) if f == 4 else quote_of(
            6, TCP, 80, 9, headers=[IPv6ExtHdrFragment(offset=7)])
        for n in range(0, 20 if f == 4 else 48):
            whole = error(f, kind.copy(), later[:n])
            p.expect(framed(whole) + later[n:] + bytes(9), "malformed")
    p.expect(framed(error(4, ERRORS[4][0], quote_of(
        4, TCP, 22, 9, vip="203.0.113.20"), "203.0.113.20")), "vip_local")
    p.expect(framed(error(4, ERRORS[4][0], quote_of(4, TCP, 80, 9, frag=7))),
             "fragment_unknown")
    p.expect(framed(error(6, ERRORS[6][0], quote_of(
        6, TCP, 80, 9, headers=[IPv6ExtHdrFragment(offset=7)]))),
        "fragment_unknown")
    p.expect(framed(error(6, ERRORS[6][0], quote_of(
        6, TCP, 80, 9, headers=[options6(IPv6ExtHdrDestOpt, 4)] * 9))),
        "malformed")
    # what routers say about our own outer packets is for xlbd
    ours = wrapped(packet(4), 1)[14:]
    for dst in (NODE[4], "10.255.3.4"):
        p.expect(framed(error(4, ERRORS[4][0].copy(), ours[:28], dst)),
                 "not_vip")


def pieces(inner, ident, size=400):
    """A packet as scapy cuts it."""
    if inner[0] >> 4 == 4:
        whole = IP(inner)
        whole.id = ident
        whole.flags = 0
        del whole.chksum
        return [bytes(x) for x in fragment(whole, size)]
    whole = IPv6(inner)
    l4 = whole.payload
    del whole.plen
    whole = IPv6(src=whole.src, dst=whole.dst, tc=whole.tc, hlim=whole.hlim,
                 fl=whole.fl) / IPv6ExtHdrFragment(id=ident) / l4
    return [bytes(x) for x in fragment6(whole, size + 50)]


def ident_of(f, ident):
    return struct.pack(">H", ident) + bytes(2) if f == 4 else \
        struct.pack(">I", ident)


def fragments(p):
    rng = random.Random(6)
    p.slots(1, [1 + i % 4 for i in range(p.ring_size)])
    ident = 100
    for f in (4, 6):
        base = 10 * (f == 6)
        for proto, service in ((TCP, TLS), (UDP, QUIC)):
            for n in range(12):
                ident += 1
                inner = packet(f, proto, sport=rng.randrange(65536),
                               payload=rng.randbytes(1300))
                slot = (hash_of(inner) >> 32) * p.ring_size >> 32
                backend = 1 + slot % 4
                first, *later = pieces(inner, ident)
                assert len(later) > 2
                # the first lost, or late
                p.expect(framed(later[0]), "fragment_unknown")
                rng.shuffle(later)
                for piece in [first] + later + later[:1]:
                    same(p.forward(framed(piece), service + base, backend,
                                   len(piece)),
                         wrapped(piece, backend, of=inner))
                # the ring moves, the datagram doesn't
                p.slots_all(1, 1 + backend % 4)
                same(p.forward(framed(later[0]), service + base, backend,
                               len(later[0])),
                     wrapped(later[0], backend, of=inner))
                p.slots(1, [1 + i % 4 for i in range(p.ring_size)])
    p.slots_all(1, 1)


def fragments_that_do_not_belong(p):
    p.slots_all(1, 1)
    for f in (4, 6):
        base = 10 * (f == 6)
        inner = packet(f, UDP, payload=bytes(900))
        first, second, *_ = pieces(inner, 7777 + f)
        p.forward(framed(first), QUIC + base, 1, len(first))
        p.forward(framed(second), QUIC + base, 1, len(second))
        other = pieces(inner, 7000 + f)[1]
        p.expect(framed(other), "fragment_unknown")
        other = pieces(packet(f, UDP, payload=bytes(900), src={
            4: "192.0.2.8", 6: "2001:db8:9::8"}[f]), 7777 + f)[1]
        p.expect(framed(other), "fragment_unknown")
        if f == 4:                  # an id is that of a protocol
            other = pieces(packet(f, TCP, payload=bytes(900)), 7777 + f)[1]
            p.expect(framed(other), "fragment_unknown")
        # the same id again, for another flow: the newer one counts
        p.slots_all(2, 2)
        again = pieces(packet(f, UDP, dport=99, payload=bytes(900)), 7777 + f)
        of = packet(f, UDP, dport=99)
        for piece in again:
            same(p.forward(framed(piece), UREST + base, 2, len(piece)),
                 wrapped(piece, 2, of=of))
        # for 30 seconds
        key = (CLIENT[f], VIP[f], ident_of(f, 7777 + f), UDP if f == 4 else 44)
        p.age(*key, 27)
        p.forward(framed(again[1]), UREST + base, 2, len(again[1]))
        p.age(*key, 4)
        p.expect(framed(again[1]), "fragment_unknown")
        # a number that is another backend's now
        for piece in again:
            p.forward(framed(piece), UREST + base, 2, len(piece))
        p.backend(2, "10.0.1.99", 2)
        p.expect(framed(again[1]), "fragment_unknown")
        p.backend(2, BACKEND[2], 2)
        p.forward(framed(again[1]), UREST + base, 2, len(again[1]))
        p.expect(framed(pieces(packet(f, UDP, src=VIP[f], payload=bytes(900)),
                               5)[1]), "martian")
    tiny = pieces(packet(4, TCP), 88, 16)[0]
    p.expect(framed(tiny), "malformed")         # RFC 1858
    # ports are none of what lies behind the packet
    for f in (4, 6):
        first = pieces(packet(f, UDP, payload=bytes(900)), 89)[0]
        cut = bytearray(first[:24 if f == 4 else 52])
        struct.pack_into(">H", cut, 2 if f == 4 else 4,
                         24 if f == 4 else 12)
        p.expect(framed(bytes(cut)) + bytes(20), "malformed")
        p.expect(framed(bytes(cut) + b"\0\x50\1\xbb\0\x20\0\0" * 3),
                 "malformed")
    # a host that has the address keeps its own
    one, two, *_ = pieces(packet(4, TCP, dst="203.0.113.20", dport=22,
                                 payload=bytes(900)), 9)
    p.expect(framed(one), "vip_local")
    p.expect(framed(two), "vip_local")
    one, two, *_ = pieces(packet(4, TCP, dst="203.0.113.20", dport=80,
                                 payload=bytes(900)), 10)
    p.expect(framed(two), "vip_local")
    p.forward(framed(one), ALONE, 1, len(one))
    p.forward(framed(two), ALONE, 1, len(two))
    inner = bytearray(packet(4))
    inner[6] |= 0x40    # DF is no fragment
    assert p.run(framed(bytes(inner)))[2] == "forward"


def fragments_on_two_cpus(p):
    """What one has seen, the other one knows."""
    cpus = os.sched_getaffinity(0)
    if p.slow or len(cpus) < 2:
        return
    p.slots_all(1, 1)
    try:
        for ident, (f, first_on) in enumerate(itertools.product(
                (4, 6), sorted(cpus)), 9000):
            inner = packet(f, UDP, payload=bytes(900))
            first, *later = pieces(inner, ident)
            p.on_cpus({first_on})
            p.forward(framed(first), QUIC + 10 * (f == 6), 1, len(first))
            p.on_cpus(cpus - {first_on})
            for piece in later:
                same(p.forward(framed(piece), QUIC + 10 * (f == 6), 1,
                               len(piece)), wrapped(piece, 1, of=inner))
    finally:
        p.on_cpus(cpus)


def ipv4_options(p):
    p.slots_all(1, 1)
    for words in range(1, 11):
        inner = packet(4, options=[IPOption(b"\x01" * 4 * words)])
        assert inner[0] == 0x45 + words
        out = p.forward(framed(inner), TLS, 1, len(inner))
        want = IP(src=NODE[4], dst=BACKEND[1], ttl=64, proto=4, id=0,
                  flags="DF") / Raw(inner)
        same(out, framed(bytes(want), Ether(src=OURS, dst=FAR.format(1))))
        p.expect(framed(inner)[:14 + 20 + 4 * words - 1], "malformed")
    for first in (0x44, 0x40, 0x35, 0x55, 0x65):
        bad = bytearray(packet(4))
        bad[0] = first
        p.expect(framed(bytes(bad), f=4), "malformed")
    for first in (0x40, 0x50, 0x70, 0xf0):
        bad = bytearray(packet(6))
        bad[0] = first
        p.expect(framed(bytes(bad), f=6), "malformed")


NEXT = {IPv6ExtHdrHopByHop: 0, IPv6ExtHdrRouting: 43, IPv6ExtHdrFragment: 44,
        AH: 51, IPv6ExtHdrDestOpt: 60}


def extended(headers, proto=TCP, **k):
    """An IPv6 packet with extension headers; scapy chains all but AH."""
    l3 = IPv6(packet(6, proto, **k))
    l4 = l3.payload
    l3 = IPv6(src=l3.src, dst=l3.dst, tc=l3.tc, hlim=l3.hlim, fl=l3.fl)
    for h, after in zip(headers, list(headers[1:]) + [None]):
        if isinstance(h, AH):
            h.nh = NEXT.get(type(after), proto)
        l3 = l3 / h.copy()
    return bytes(l3 / l4)


def options6(kind, length):
    return kind(options=[PadN(optdata=bytes(length))])


def ipv6_extension_headers(p):
    p.slots_all(1, 1)
    hop, dst = options6(IPv6ExtHdrHopByHop, 4), options6(IPv6ExtHdrDestOpt, 4)
    route = IPv6ExtHdrRouting(addresses=["2001:db8::77"], segleft=0)
    once = IPv6ExtHdrFragment(id=7)     # RFC 6946: alone, no fragment
    ah = AH(icv=bytes(12), spi=1, payloadlen=4)
    good = [[hop], [dst], [route], [once], [ah], [hop, dst, route, once, ah,
            dst], [dst] * 8, [hop] + [dst] * 7, [route, route],
            [options6(IPv6ExtHdrDestOpt, 250)],
            [options6(IPv6ExtHdrHopByHop, 250)] +
            [options6(IPv6ExtHdrDestOpt, 100)] * 7]
    for proto, service in ((TCP, TLS), (UDP, QUIC)):
        for headers in good:
            inner = extended(headers, proto, tos=0x88)
            plain = packet(6, proto)
            for backend in (1, 3):
                p.slots_all(1, backend)
                same(p.forward(framed(inner), service + 10, backend,
                               len(inner)), wrapped(inner, backend, of=plain))
                same(p.forward(framed(inner, Ether(src=ROUTER, dst=OURS) /
                                      Dot1Q(vlan=3)) + bytes(5),
                               service + 10, backend, len(inner)),
                     wrapped(inner, backend, of=plain) + bytes(5))
    rng = random.Random(4)
    for _ in range(40):             # the slot of the 5-tuple, as without them
        ports = {"sport": rng.randrange(65536), "dport": 80}
        inner, plain = extended(rng.choice(good), **ports), packet(6, **ports)
        backend = 1 + ((hash_of(plain) >> 32) * p.ring_size >> 32) % 4
        same(p.forward(framed(inner), WEB + 10, backend, len(inner)),
             wrapped(inner, backend, of=plain))
    p.slots_all(1, 1)
    for headers in ([dst] * 9, [hop] + [dst] * 8, [dst, hop], [hop, hop],
                    [once, dst, once], [route] * 9, [ah] * 9):
        p.expect(framed(extended(headers)), "malformed")
    for headers in ([hop], [dst, route], [ah], [once]):
        inner = extended(headers, UDP, payload=b"")
        for n in range(40, len(inner)):
            cut = bytearray(inner[:n])
            p.expect(framed(bytes(cut)), "malformed")
            struct.pack_into(">H", cut, 4, n - 40)
            p.expect(framed(bytes(cut)), "malformed")
            p.expect(framed(bytes(cut)) + bytes(60), "malformed")
    for at in (41, 49):             # a length that leads far away
        bad = bytearray(extended([hop, dst]))
        bad[at] = 255
        p.expect(framed(bytes(bad)), "malformed")
    p.expect(framed(extended([hop, dst], dst=ELSE[6])), "not_vip")
    p.expect(framed(extended([dst] * 9, dst=ELSE[6])), "not_vip")
    p.expect(framed(extended([dst], src="ff02::1")), "martian")
    p.expect(framed(extended([dst], dst="2001:db8:5::30", dport=9)),
             "no_service")
    p.slots_all(1, 0)
    p.expect(framed(extended([dst])), "no_backend", TLS + 10)
    p.slots_all(1, 1)


def martians(p):
    p.settings(("10.255.0.0", 16), ("2001:db8:ff::", 64))
    for src in (VIP[4], "203.0.113.30", "127.0.0.1", "127.255.255.254",
                "224.0.0.1", "239.255.255.255", "0.0.0.0", "0.1.2.3",
                "255.255.255.255", "10.255.0.0", "10.255.255.255"):
        p.expect(framed(packet(4, src=src)), "martian")
    for src in (VIP[6], "2001:db8:5::30", "::1", "::", "ff02::1", "ff0e::7",
                "::ffff:192.0.2.1", "::ffff:" + VIP[4], "2001:db8:ff::1",
                "2001:db8:ff:0:ffff:ffff:ffff:ffff"):
        p.expect(framed(packet(6, src=src)), "martian")
    for src in ("10.254.255.255", "11.0.0.1", "223.255.255.255", "128.0.0.1",
                "126.1.1.1", "1.0.0.0", "203.0.113.99"):
        assert p.run(framed(packet(4, src=src)))[2] == "forward", src
    for src in ("2001:db8:fe::1", "2001:db8:ff:1::1", "fe80::1", "::2",
                "fd00::1", "::1:1"):
        assert p.run(framed(packet(6, src=src)))[2] == "forward", src
    # 240/4 may be somebody's, and may be the tunnel's
    p.settings(("240.1.0.0", 16))
    p.expect(framed(packet(4, src="240.1.2.3")), "martian")
    p.expect(framed(packet(4, src="255.255.255.255")), "martian")
    for src in ("240.2.0.1", "254.0.0.1", "223.255.255.255", "1.0.0.1",
                "126.255.255.255", "128.0.0.1"):
        inner = packet(4, src=src)
        p.forward(framed(inner), TLS, 1, len(inner))
    p.settings()
    assert p.run(framed(packet(4, src="10.255.0.1")))[2] == "forward"
    assert p.run(framed(packet(6, src="2001:db8:ff::1")))[2] == "forward"


def no_backend(p):
    for f in (4, 6):
        service = TLS + 10 * (f == 6)
        p.slots_all(1, 0)
        p.expect(framed(packet(f)), "no_backend", service)
        p.slots_all(1, 2 << 16 | 0x8000)        # prev alone is none
        p.expect(framed(packet(f)), "no_backend", service)
        p.expect(framed(packet(f, dst={4: "203.0.113.30",
                                       6: "2001:db8:5::30"}[f], dport=81)),
                 "no_backend", STICKY + 2)      # no such ring
        p.slots_all(1, 2 << 16 | 0x8000 | 1)
        inner = packet(f)
        same(p.forward(framed(inner), service, 1, len(inner)),
             wrapped(inner, 1))


def no_neighbor(p):
    p.slots_all(1, 1)
    inner = packet(4)
    p.backend(1, BACKEND[1], 0)
    p.expect(framed(inner), "no_neighbor", TLS)
    p.backend(1, BACKEND[1], 9)
    p.expect(framed(inner), "no_neighbor", TLS)
    p.backend(1, BACKEND[1], 16384)
    p.expect(framed(inner), "no_neighbor", TLS)
    p.backend(1, BACKEND[1], 1)
    p.hop(1, None, OURS, NODE[4])
    p.expect(framed(inner), "no_neighbor", TLS)
    p.hop(1, FAR.format(1), OURS, NODE[4])
    assert p.run(framed(inner))[2] == "forward"


def told(inner, mtu, vip, tags=()):
    """The answer to a packet that is too big, by scapy."""
    f = inner[0] >> 4
    link = Ether(src=OURS, dst=ROUTER)
    for t in tags:
        link = link / t.copy()
    if f == 4:
        out = IP(src=vip, dst=CLIENT[4], tos=0xc0, ttl=64, id=0, flags="DF") / \
            ICMP(type=3, code=4, nexthopmtu=mtu) / Raw(inner[:548])
    else:
        out = IPv6(src=vip, dst=CLIENT[6], tc=0xc0, hlim=64) / \
            ICMPv6PacketTooBig(mtu=mtu) / Raw(inner[:1232])
    return framed(bytes(out), link)


def too_big(p):
    tags = [[], [Dot1Q(vlan=7, prio=3)], [Dot1AD(vlan=9), Dot1Q(vlan=7)]]
    rng = random.Random(7)
    for f in (4, 6):
        df = {"flags": "DF"} if f == 4 else {}
        for backend, outer in ((1, 20), (3, 40)):
            far = NODE[4 if backend == 1 else 6]
            for port, service, vip, more in (
                    (443, TLS + 10 * (f == 6), VIP[f], 0),
                    (82, TUNNEL, OTHER[f], 8)):
                p.slots_all(1, backend)
                for mtu, link in zip((1400, 700, 1499), tags):
                    p.hop(backend, FAR.format(backend), OURS, far, mtu=mtu)
                    fits = mtu - outer - more - (40 if f == 4 else 60)
                    for over in (1, 2, 77):
                        inner = packet(f, dst=vip, dport=port, payload=
                                       rng.randbytes(fits + over), **df)
                        frame = Ether(src=ROUTER, dst=OURS)
                        for t in link:
                            frame = frame / t.copy()
                        same(p.answer(framed(inner, frame) + bytes(over),
                                      "too_big", service),
                             told(inner, mtu - outer - more, vip, link))
                    inner = packet(f, dst=vip, dport=port,
                                   payload=bytes(fits), **df)
                    p.forward(framed(inner), service, backend, len(inner))
                inner = packet(f, dst=vip, dport=port, payload=bytes(1460),
                               **df)
                # to a group: no answer
                p.expect(framed(inner, Ether(src=ROUTER, dst="ff:ff:ff:ff:"
                                             "ff:ff")), "too_big_rate",
                         service)
            p.hop(backend, FAR.format(backend), OURS, far)
    p.hop(1, FAR.format(1), OURS, NODE[4], mtu=300)
    p.slots_all(1, 1)
    # the quote of a short one ends with it
    for f in (4, 6):
        inner = packet(f, payload=bytes(251), **({"flags": "DF"} if f == 4
                                                else {}))
        same(p.answer(framed(inner), "too_big", TLS + 10 * (f == 6)),
             told(inner, 280, VIP[f]))
    # with options; fragments; no errors about errors
    inner = packet(4, payload=bytes(700), options=[IPOption(b"\x01" * 12)],
                   flags="DF")
    same(p.answer(framed(inner), "too_big", TLS), told(inner, 280, VIP[4]))
    inner = extended([options6(IPv6ExtHdrDestOpt, 4)], payload=bytes(700))
    same(p.answer(framed(inner), "too_big", TLS + 10),
         told(inner, 280, VIP[6]))
    first, second, *_ = pieces(packet(4, UDP, payload=bytes(1300)), 4321)
    for piece, df, reason in ((first, 0, "too_big_no_df"), (second, 0,
                              "too_big_no_df"), (second, 1, "too_big_no_df")):
        piece = IP(piece)
        piece.flags = int(piece.flags) | df * 2
        del piece.chksum
        p.expect(framed(bytes(piece)), reason, QUIC)
    first, second, *_ = pieces(packet(6, UDP, payload=bytes(1300)), 4321)
    for piece in (first, second):
        same(p.answer(framed(piece), "too_big", QUIC + 10),
             told(piece, 280, VIP[6]))
    for f in (4, 6):
        quote = quote_of(f, TCP, 443, 40000) + bytes(400)
        p.expect(framed(error(f, ERRORS[f][0].copy(), quote)),
                 "too_big_no_df", TLS + 10 * (f == 6))
    p.hop(1, FAR.format(1), OURS, NODE[4])


def too_big_is_limited(p):
    """200 at once and 1000 a second, on each CPU."""
    p.hop(1, FAR.format(1), OURS, NODE[4], mtu=300)
    p.slots_all(1, 1)
    frame = framed(packet(4, payload=bytes(300), flags="DF"))
    began = time.monotonic()
    count = f"count reasons 0 {len(REASONS)}"
    before = [int(x) for x in p.ask(count).split()]
    for _ in range(40):
        p.ask(*["run " + frame.hex()] * 50)
    cpus, took = os.cpu_count(), time.monotonic() - began
    p.reasons = [int(x) for x in p.ask(count).split()]
    grown = {r: n - o for r, n, o in zip(REASONS, p.reasons, before) if n != o}
    assert sum(grown.values()) == 2000 and set(grown) <= {"too_big",
                                                         "too_big_rate"}, grown
    sent = grown["too_big"]
    most = cpus * (200 + 1000 * took) + 20
    assert 150 <= sent <= most, (grown, took)
    assert grown.get("too_big_rate", 0) > 0 or most >= 2000, (grown, took)
    p.hop(1, FAR.format(1), OURS, NODE[4])
    time.sleep(0.25)
    return f"{sent} answers in {took:.1f} s"


def gue_wrapped(inner, backend, of=None, link=None):
    """GUE, variant 1: scapy sums up all of it."""
    f, dst = inner[0] >> 4, BACKEND[backend]
    tos = inner[1] if f == 4 else (inner[0] << 8 | inner[1]) >> 4 & 0xff
    h = hash_of(of or inner)
    udp = Udp(sport=32768 | h & 32767, dport=6080)
    if ":" in dst:
        out = IPv6(src=NODE[6], dst=dst, tc=tos, hlim=64, fl=h & 0xfffff) / \
            udp / Raw(inner)
    else:
        udp.chksum = 0
        out = IP(src=NODE[4], dst=dst, tos=tos, ttl=64, id=0, flags="DF") / \
            udp / Raw(inner)
    return framed(bytes(out), link or Ether(src=OURS,
                                            dst=FAR.format(backend)))


def csum_full(p):
    return int(p.ask("count rare 0 1").split()[0])


def gue(p):
    p.settings(("10.255.0.0", 16), ("2001:db8:ff::", 64))   # not for GUE
    rng = random.Random(8)
    ports = set()
    for f in (4, 6):
        k = {"dst": OTHER[f], "dport": 82}
        for backend in (1, 3):
            p.slots_all(1, backend)
            six = backend == 3

            def goes(inner, full, of=None, why="forward"):
                before = csum_full(p)
                same(p.forward(framed(inner), TUNNEL, backend, len(inner),
                               why=why), gue_wrapped(inner, backend, of))
                grown = csum_full(p) - before
                assert grown == (full and six), (grown, full, inner.hex())

            for proto in (TCP, UDP):
                for n in list(range(12)) + [511, 512, 513, 1000, 1300]:
                    inner = packet(f, proto, sport=rng.randrange(65536),
                                   payload=rng.randbytes(n),
                                   tos=rng.randrange(256), **k)
                    goes(inner, False)
                    ports.add(hash_of(inner) & 32767)
                # no checksum of its own
                none = bytearray(packet(f, proto, payload=rng.randbytes(333),
                                        **k))
                at = (20 if f == 4 else 40) + (16 if proto == TCP else 6)
                none[at:at + 2] = b"\0\0"
                goes(bytes(none), True)
                if not six:
                    continue
                # the outer one comes to 0, which would say that there is none
                none = bytearray(packet(f, proto, payload=bytes(334), **k))
                none[at:at + 2] = b"\0\0"
                none[-2:] = gue_wrapped(bytes(none), 3)[60:62]
                assert gue_wrapped(bytes(none), 3)[60:62] == b"\xff\xff"
                goes(bytes(none), True)
            # bytes behind the datagram
            odd = bytearray(packet(f, UDP, payload=rng.randbytes(50), **k))
            struct.pack_into(">H", odd, (20 if f == 4 else 40) + 4, 40)
            goes(bytes(odd), True)
            # options, extension headers, fragments
            of = packet(f, TCP, **k)
            if f == 4:
                inner = packet(4, options=[IPOption(b"\x01" * 8)], **k)
                goes(inner, True)
                wrong = bytearray(packet(4, **k))
                wrong[10] ^= 5      # a header checksum that is none
                goes(bytes(wrong), False)
            else:
                for h in (options6(IPv6ExtHdrHopByHop, 4), IPv6ExtHdrRouting(
                        addresses=["2001:db8::77"], segleft=1)):
                    goes(extended([h], **k), True, of)
            whole = packet(f, UDP, payload=rng.randbytes(1200), **k)
            for piece in pieces(whole, 31):
                goes(piece, True, whole)
            for kind in ERRORS[f]:
                goes(error(f, kind.copy(), quote_of(
                    f, TCP, 82, 40000, vip=OTHER[f]), OTHER[f]), False, of,
                    "icmp_error")
            inner = packet(f, TCP, **k)
            p.hop(backend, FAR.format(backend), OURS, NODE[6 if six else 4],
                  vlan=5)
            same(p.forward(framed(inner) + bytes(9), TUNNEL, backend,
                           len(inner)), gue_wrapped(inner, backend, link=
                 Ether(src=OURS, dst=FAR.format(backend)) / Dot1Q(vlan=5)))
            p.hop(backend, FAR.format(backend), OURS, NODE[6 if six else 4])
    assert len(ports) > 100
    p.settings()
    p.slots_all(1, 0)
    p.expect(framed(packet(4, dst=OTHER[4], dport=82)), "no_backend", TUNNEL)


def l2(p):
    for f in (4, 6):
        for backend in BACKEND:
            p.slots_all(1, backend)
            far = NODE[6 if ":" in BACKEND[backend] else 4]

            def hop(**k):
                p.hop(backend, FAR.format(backend), OURS, far, **{
                    "gateway": BACKEND[backend], **k})

            hop()
            for proto in (TCP, UDP):
                for extra in (0, 3, 90):
                    inner = packet(f, proto, dst=OTHER[f], dport=83)
                    want = (IP if f == 4 else IPv6)(inner)
                    if f == 4:
                        want.ttl -= 1
                        del want.chksum
                    else:
                        want.hlim -= 1
                    out = p.forward(framed(inner) + b"\xee" * extra, PLAIN,
                                    backend, len(inner))
                    same(out, framed(bytes(want), Ether(
                        src=OURS, dst=FAR.format(backend))) + b"\xee" * (
                            extra if extra <= 6 else 0))
            for there, vlan, back in (
                    (Dot1Q(vlan=5), 5, Dot1Q(vlan=5)),
                    (Dot1Q(vlan=5), 0, None), (None, 6, Dot1Q(vlan=6)),
                    (Dot1AD(vlan=5) / Dot1Q(vlan=5), 5, Dot1Q(vlan=5))):
                hop(vlan=vlan)
                link = Ether(src=ROUTER, dst=OURS)
                to = Ether(src=OURS, dst=FAR.format(backend))
                same(p.forward(framed(inner, link / there if there else link),
                               PLAIN, backend, len(inner)),
                     framed(bytes(want), to / back if back else to))
            for hops, reason in ((0, 0), (1, 0), (2, 1), (255, 1)):
                some = bytearray(inner)
                some[8 if f == 4 else 7] = hops
                got = p.run(framed(bytes(some)), PLAIN)[2]
                assert got == ("forward" if reason else "encap_failed"), hops
            hop(gateway="10.0.0.254")       # it would come back
            p.expect(framed(inner), "no_neighbor", PLAIN)
            hop(mtu=300)
            big = packet(f, dst=OTHER[f], dport=83, payload=bytes(300),
                         **({"flags": "DF"} if f == 4 else {}))
            same(p.answer(framed(big), "too_big", PLAIN),
                 told(big, 300, OTHER[f]))
            p.settings(tunnel_mtu=300)      # that is no tunnel's
            p.forward(framed(big), PLAIN, backend, len(big))
            p.settings()
            hop()
    if p.engine == "bpf":
        return
    for ttl in range(2, 256):       # every carry
        for ident in (0, 1, 0x7fff, 0xfeff, 0xffff):
            inner = IP(packet(4, dst=OTHER[4], dport=83))
            inner.ttl, inner.id = ttl, ident
            del inner.chksum
            out = p.forward(framed(bytes(inner)), PLAIN, backend, len(inner))
            assert checksum_ok(out[14:34])


def other_ways_to_forward(p):
    p.slots_all(1, 1)
    p.expect(framed(packet(4, dst=OTHER[4], dport=84)), "encap_failed",
             STICKY + 3)


def probing(p):
    """Rows that are gone are stepped over, an empty one ends the search."""
    vip = "198.18.0.1"
    frame = framed(packet(4, dst=vip, dport=80))
    p.expect(frame, "not_vip")
    at = vip_hash(vip)
    row = p.vip(vip, GONE, at=at)
    p.expect(frame, "not_vip")
    p.vip_rows[row] = "taken"
    for i in range(1, 32):
        p.put(VIPS + (at + i) % 65536 * 32 + 16, struct.pack("=I", GONE))
    p.put(VIPS + (at + 31) % 65536 * 32, bytes(10) + b"\xff\xff" +
          short(vip) + struct.pack("=II", 77, LOCAL))
    p.expect(frame, "vip_local")
    p.put(VIPS + (at + 5) % 65536 * 32 + 16, struct.pack("=I", 0))
    p.expect(frame, "not_vip")
    for i in range(32):
        p.put(VIPS + (at + i) % 65536 * 32, bytes(32))


CASES = [every_form, exact_port_beats_any, the_hash_selects_the_slot,
         hash_by_source, dscp_and_ecn_are_copied, outer_sources_vary_by_flow,
         trailing_bytes_are_no_payload, cut_anywhere, lengths_that_lie,
         tcp_flags, the_mtu_is_kept, out_by_another_interface, vlans,
         what_is_for_others_passes, other_protocols, ports_without_service,
         echo, every_checksum, icmp_errors, icmp_errors_about_nothing,
         fragments, fragments_that_do_not_belong, fragments_on_two_cpus,
         ipv4_options, ipv6_extension_headers, martians, no_backend,
         no_neighbor, too_big, gue, l2, other_ways_to_forward, probing,
         too_big_is_limited]


def large_frames(p):
    """More than one buffer."""
    for f in (4, 6):
        for backend in (1, 3):
            p.hop(backend, FAR.format(backend), OURS,
                  NODE[4 if backend == 1 else 6], mtu=9000)
            p.slots_all(1, backend)
            inner = packet(f, payload=bytes(range(250)) * 32)
            for extra in (0, 6, 7, 500):
                out = p.forward(framed(inner) + b"\xee" * extra,
                                TLS + 10 * (f == 6), backend, len(inner))
                same(out, wrapped(inner, backend) +
                     b"\xee" * (extra if extra <= 6 else 0))
            small = packet(f)
            out = p.forward(framed(small) + bytes(6000), TLS + 10 * (f == 6),
                            backend, len(small))
            same(out, wrapped(small, backend))
            p.expect(framed(inner)[:-1], "malformed")


def headers_to_split():
    """Rows of what comes out, a method of Program and its arguments; they are
    built once, since scapy takes longer than the packet."""
    calls = []

    def forward(inner, service, link=None, of=None, tail=b"", **why):
        calls.append((wrapped(inner, 1, of=of), "forward", framed(
            inner, link) + tail, service, 1, len(inner), why))

    link = Ether(src=ROUTER, dst=OURS)
    tagged = link / Dot1Q(vlan=7)
    for f in (4, 6):
        base = 10 * (f == 6)
        for size in (0, 700):
            inner = packet(f, payload=b"x" * size)
            for at in (link, tagged):
                forward(inner, TLS + base, at, tail=b"\xee" * 9)
            calls.append((None, "expect", framed(inner)[:-1], "malformed", {}))
            calls.append((None, "expect", framed(packet(
                f, dst=ELSE[f], payload=b"x" * size)), "not_vip", {}))
        ask, want = echo_pair(f, data=bytes(range(200)))
        calls.append((framed(want, Ether(src=OURS, dst=ROUTER)), "answer",
                      framed(ask, link), "echo", {}))
        forward(error(f, ERRORS[f][0].copy(), quote_of(f, TCP, 443, 40000)),
                TLS + base, of=packet(f), why="icmp_error")
    forward(packet(4, options=[IPOption(b"\x01" * 40)]), TLS)
    forward(extended([options6(IPv6ExtHdrDestOpt, 4)] * 3), TLS + 10,
            of=packet(6))
    return calls


def headers_in_many_buffers(p):
    """The first buffer ends anywhere in the headers."""
    p.slots_all(1, 1)
    calls = headers_to_split()
    whole = {f: packet(f, UDP, payload=bytes(900)) for f in (4, 6)}
    for head in list(range(1, 100)) + [200, 255, 256]:
        p.split(head)
        for want, method, *arguments, more in calls:
            got = getattr(p, method)(*arguments, **more)
            if want is not None:
                same(got, want)
        for f in (4, 6):
            for piece in pieces(whole[f], 500 + head)[:2]:
                same(p.forward(framed(piece), QUIC + 10 * (f == 6), 1,
                               len(piece)), wrapped(piece, 1, of=whole[f]))
    # as far as the headroom goes
    p.split(14)
    for n, reason in ((12, "forward"), (13, "malformed")):
        inner = extended([options6(IPv6ExtHdrDestOpt, 8 * n - 4)])
        assert p.run(framed(inner))[2] == reason, n


LARGE = [large_frames, headers_in_many_buffers]


def main():
    tap = Tap()
    programs = []
    for engine in sys.argv[1:] or ("bpf", "host"):
        p = None

        def load():
            nonlocal p
            p = Program(engine)
            build(p)
            assert p.insns <= INSNS_MAX, f"{p.insns} instructions"
            assert p.verified <= VERIFIED_MAX, f"{p.verified} verified"
            return f"{p.insns} instructions as loaded, {p.verified} " \
                "verified" if p.insns else None

        tap.case(f"{engine}: loads", load)
        for case in CASES:
            def run(c=case):
                if p is None:
                    raise Skip("not loaded")
                c(p)
            tap.case(f"{engine}: {case.__name__}", run)
        large = None

        def load_large():
            nonlocal large
            large = Program(engine, frags=True)
            build(large)

        tap.case(f"{engine}: loads for many buffers", load_large)
        for case in LARGE:
            def run_large(c=case):
                if large is None:
                    raise Skip("not loaded")
                c(large)
            tap.case(f"{engine}: {case.__name__}", run_large)
        if large:
            programs.append(large)
        if p:
            programs.append(p)

    for p in programs:
        tap.case(f"{p.engine}: ends well", p.close)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
