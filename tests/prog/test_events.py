#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the packet program tells those who listen, in the kernel and compiled for
this machine: nothing without them, and what they asked for with them."""

import sys
import time

try:
    from scapy.all import (Dot1AD, Dot1Q, Ether, ICMP, ICMPv6EchoRequest, IP,
                           IPv6, IPv6ExtHdrDestOpt, PadN, Raw, TCP as Tcp,
                           UDP as Udp, fragment)
except ImportError:
    print("1..0 # SKIP scapy is missing (Debian: python3-scapy)")
    sys.exit(0)

from rig import GUE, L2, LISTENING, LOCAL, REASONS, TCP, UDP, Program, Tap

VIP = {4: "203.0.113.10", 6: "2001:db8:5::10"}
CLIENT = {4: "192.0.2.7", 6: "2001:db8:9::7"}
LINK = Ether(src="02:00:00:00:00:99", dst="02:00:00:00:00:01")
# services: by IPIP, GUE, new MAC addresses alone; one without a backend
WEB, TUNNEL, PLAIN, EMPTY = 1, 2, 3, 4
PORT = {80: WEB, 81: TUNNEL, 82: PLAIN, 83: EMPTY}
EVERY, BURST = 0.004, 250


def build(p):
    for f, vip in ((4, 1), (6, 2)):
        p.vip(VIP[f], vip)
        for port, kind, ring in ((80, 0, 0), (81, GUE, 0), (82, L2, 1),
                                 (83, 0, 7)):
            p.service(vip, TCP, port, PORT[port] + 10 * (f == 6), ring, kind)
        p.service(vip, UDP, 53, WEB + 4 + 10 * (f == 6), 0)
    p.vip("203.0.113.20", 3, LOCAL)
    for number in (0, 1):
        p.ring(number)
    p.slots(0, [1 + i % 2 for i in range(p.ring_size)])
    p.slots_all(1, 3)
    p.backend(1, "10.0.1.11", 1)
    p.backend(2, "2001:db8:1::12", 2)
    p.backend(3, "10.0.1.13", 3)
    for hop, src, gateway in ((1, "10.0.0.1", "10.0.1.11"),
                              (2, "2001:db8:1::1", "2001:db8:1::12"),
                              (3, "10.0.0.1", "10.0.1.13")):
        p.hop(hop, f"02:00:00:00:01:{hop:02x}", "02:00:00:00:00:01", src,
              gateway=gateway)


def l3(f, **kw):
    cls = IP if f == 4 else IPv6
    return cls(src=CLIENT[f], dst=VIP[f], **kw)


def frame(f=4, dport=80, sport=40000, tcp="A", link=LINK, size=30, **kw):
    return bytes(link / l3(f, **kw) / Tcp(sport=sport, dport=dport, flags=tcp) /
                 Raw(b"x" * size))


def one(p, data, service=0):
    """The packet's only event, which must agree with the reason."""
    reason = p.run(data, service)[2]
    got = p.events()
    assert len(got) == 1, f"{reason}: {got}"
    assert got[0].reason == reason, got
    return got[0]


def same(event, **want):
    for k, v in want.items():
        got = getattr(event, k)
        assert got == v, f"{k}: {got}, not {v}: {event}"


def everything(p, bit=0, **kw):
    p.reader(bit, REASONS, True, **kw)
    p.listen(3600)


def silent_without_a_reader(p):
    p.reader(0, REASONS, True)
    for data in (frame(tcp="S"), frame(dport=99),
                 bytes(LINK / l3(4) / ICMP())):
        p.run(data)
    assert p.events() == []
    p.listen(3600)
    assert one(p, frame(dport=99)).reason == "no_service"
    p.listen(None)
    p.run(frame(dport=99))
    assert p.events() == []


def a_lease_ends(p):
    """Nobody is there to end it: the first packet after it does."""
    everything(p)
    one(p, frame(dport=99))
    for data in (frame(dport=99), frame(), bytes(LINK / l3(4) / ICMP())):
        # two: the program's clock is up to a jiffy behind this one
        p.listen(-2)
        p.run(data)
        assert p.events() == []
        # the word is 0 again: whoever writes the clock back sees it
        assert p.ask(f"peek tables {LISTENING} 4") == "00000000"
    p.listen(60)
    one(p, frame(dport=99))


def each_reason(p):
    everything(p)
    for f in (4, 6):
        base = 10 * (f == 6)
        tcp = dict(src=CLIENT[f], dst=VIP[f], sport=40000, proto=TCP, ip=True,
                   ifindex=1, readers=1)
        length = (40 if f == 4 else 60) + 30
        for port, service in PORT.items():
            for link in (LINK, LINK / Dot1Q(vlan=5),
                         LINK / Dot1AD(vlan=5) / Dot1Q(vlan=6)):
                e = one(p, frame(f, port, link=link))
                same(e, dport=port, service=base + service, len=length,
                     begins=False, **tcp)
                assert (e.backend in (1, 2) if port < 82 else
                        e.backend == (3 if port == 82 else 0)), e
                assert e.reason == ("no_backend" if port == 83 else
                                    "forward"), e
        same(one(p, frame(f, 80, tcp="S")), begins=True, reason="forward",
             **tcp)
        same(one(p, frame(f, 80, tcp="SA")), begins=False, **tcp)
        same(one(p, frame(f, 83, tcp="S")), begins=False, **tcp)
        same(one(p, frame(f, 99)), reason="no_service", service=0xffff,
             backend=0, dport=99, len=length, **tcp)
        e = one(p, bytes(LINK / l3(f) / Udp(sport=9, dport=53) / b"q"))
        same(e, proto=UDP, sport=9, dport=53, begins=False, reason="forward",
             service=base + WEB + 4)
        e = one(p, frame(f, tcp="SF"))
        same(e, reason="malformed", service=0xffff, **tcp)
        ping = ICMP() if f == 4 else ICMPv6EchoRequest()
        same(one(p, bytes(LINK / l3(f) / ping / Raw(b"abc"))), reason="echo",
             src=CLIENT[f], dst=VIP[f], proto=1 if f == 4 else 58, sport=0,
             dport=0, service=0xffff, ip=True)
        big = bytes(LINK / (IP(src=CLIENT[f], dst=VIP[f], flags="DF") if f == 4
                            else l3(f)) / Tcp(sport=40000, dport=80,
                                              flags="A") / Raw(bytes(1460)))
        e = one(p, big)
        same(e, reason="too_big", dport=80, service=base + WEB,
             len=1500 if f == 4 else 1520, **tcp)
    same(one(p, bytes(LINK / IP(src=CLIENT[4], dst="203.0.113.20") /
                      Tcp(dport=9))), reason="vip_local", dport=9)
    same(one(p, bytes(LINK / IP(src=CLIENT[4], dst="203.0.113.99") /
                      Udp(dport=7, sport=8))),
         reason="not_vip", dst="203.0.113.99", sport=8, dport=7, proto=UDP)
    same(one(p, bytes(LINK / IP(src="127.0.0.1", dst=VIP[4]) /
                      Tcp(dport=80))), reason="martian", src="127.0.0.1")


def odd_packets(p):
    """What cannot be taken apart is told nevertheless, if it is IP."""
    everything(p)
    for data in (bytes(12) + b"\x88\xcc" + bytes(46), frame()[:20]):
        p.expect(data, "not_vip")
        assert p.events() == []
    same(one(p, frame()[:40]), reason="malformed", ip=True, sport=40000)
    same(one(p, frame()[:37]), reason="malformed", ip=True, sport=0, len=70)
    same(one(p, bytes(LINK / l3(4, frag=100) / Raw(b"xxxxxxxx"))),
         reason="fragment_unknown", sport=0, dport=0, ip=True)
    first, later = (bytes(LINK / x) for x in fragment(
        l3(4, id=77) / Udp(sport=5, dport=53) / Raw(bytes(1000)), 600)[:2])
    same(one(p, first), reason="forward", sport=5, dport=53)
    same(one(p, later), reason="forward", sport=0, dport=0, proto=UDP,
         service=WEB + 4)
    long = l3(6) / IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))]) / \
        Tcp(sport=6, dport=80, flags="S")
    same(one(p, bytes(LINK / long)), reason="forward", sport=6, dport=80,
         proto=TCP, begins=True)
    quoted = IP(src=VIP[4], dst=CLIENT[4]) / Tcp(sport=80, dport=4000)
    same(one(p, bytes(LINK / IP(src="198.51.100.1", dst=VIP[4]) /
                      ICMP(type=3, code=4) / quoted)),
         reason="icmp_error", src="198.51.100.1", proto=1, service=WEB)


def filters(p):
    """Each reader gets what it asked for, whatever others want."""
    p.reader(0, ("no_service", "no_backend"))
    p.reader(1, (), True)
    p.reader(2, REASONS, services=(WEB,))
    p.reader(3, REASONS, services=(EMPTY, WEB + 10))
    p.listen(3600)

    def readers(data):
        p.run(data)
        got = p.events()
        assert len(got) < 2, got
        return got[0].readers if got else 0

    assert readers(frame(dport=99)) == 1
    assert readers(frame(dport=83)) == 1 | 8
    assert readers(frame(tcp="S")) == 2 | 4
    assert readers(frame(tcp="A")) == 4
    assert readers(frame(6, tcp="S")) == 2 | 8
    assert readers(frame(dport=81, tcp="A")) == 0
    assert readers(frame(dport=81, tcp="S")) == 2
    assert readers(frame(dport=83, tcp="S")) == 1 | 8
    p.reader(0)
    assert readers(frame(dport=99)) == 0
    assert readers(frame(dport=83)) == 8


def one_in_many(p):
    """Packets that are no news are sampled, all others are not."""
    p.reader(0, ("forward", "no_backend"), True, one_in=8)
    p.reader(1, ("forward",), one_in=2)
    p.listen(3600)
    for _ in range(64):
        p.run(frame())
    got = p.events()
    assert sum(e.readers & 1 for e in got) == 8, len(got)
    assert sum(e.readers >> 1 for e in got) == 32, len(got)
    for _ in range(20):
        p.run(frame(dport=83))
        p.run(frame(tcp="S"))
    got = [e for e in p.events() if e.readers & 1]
    assert sorted(e.reason for e in got) == ["forward"] * 20 + \
        ["no_backend"] * 20, got


def state(p, word):
    return [int(x) for x in p.ask(f"count event_state 0 {word}").split()]


def many_of_one_kind(p):
    """A flood is cut to the rate, counted, and hides nothing else."""
    p.reader(0, ("no_service", "martian"))
    p.reader(1, ("no_service",))
    p.listen(3600)
    before = time.monotonic()
    p.bulk([frame(dport=99)] * 2000, "no_service")
    took = time.monotonic() - before
    got = p.events()
    limited = state(p, 2)
    for bit in (0, 1):
        n = sum(e.readers >> bit & 1 for e in got)
        assert BURST <= n <= BURST + 2 + took / EVERY, (n, took)
        assert limited[bit] == 2000 - n, (limited, n)
    same(one(p, bytes(LINK / IP(src="127.0.0.1", dst=VIP[4]) /
                      Tcp(dport=80))), readers=1)
    time.sleep(0.05)
    same(one(p, frame(dport=99)), readers=3)


def nobody_reads_the_ring(p):
    """A ring that is full costs the packets nothing; it is counted."""
    everything(p)
    kinds = [frame(f, port, tcp=t) for f in (4, 6) for port in (80, 83, 99)
             for t in ("S", "SF")] + \
        [bytes(LINK / l3(4) / ICMP()),
         bytes(LINK / IP(src=CLIENT[4], dst="203.0.113.99") / Tcp())]
    for bit in range(1, 8):
        everything(p, bit)
    sent = 0
    while state(p, 16)[8] == 0:
        for data in kinds:
            p.run(data)
            sent += 1
        assert sent < 50000
    unread, limited = state(p, 16)[8:], state(p, 16)[:8]
    assert len(set(unread)) == 1 and unread[0] > 0, unread
    told = len(p.events())
    assert told + unread[0] + limited[0] == sent, (told, unread, limited, sent)


CASES = [silent_without_a_reader, a_lease_ends, each_reason, odd_packets,
         filters, one_in_many, many_of_one_kind, nobody_reads_the_ring]


def main():
    tap = Tap()
    for engine in sys.argv[1:] or ("bpf", "host"):
        for case in CASES:
            def run(c=case, e=engine):
                p = Program(e)
                build(p)
                c(p)
                p.close()
            tap.case(f"{engine}: {case.__name__}", run)
    return tap.end()


sys.exit(main())
