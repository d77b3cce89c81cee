#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""NAT, packet by packet and byte by byte: what scapy makes of the addresses that
a packet should have is what has to come out, checksums and all."""

import struct
import sys

try:
    from scapy.all import (Dot1AD, Dot1Q, Ether, ICMP, IP, IPOption, IPv6,
                           IPv6ExtHdrDestOpt, IPv6ExtHdrFragment,
                           IPv6ExtHdrHopByHop, ICMPv6EchoRequest,
                           ICMPv6PacketTooBig, ICMPv6DestUnreach, PadN, Raw,
                           TCP as Tcp, UDP as Udp)
except ImportError:
    print("1..0 # SKIP scapy is missing (Debian: python3-scapy)")
    sys.exit(0)

from rig import (DROP, LOCAL, NAT, REASONS, REDIRECT, SOURCE, TCP, TX, UDP,
                 VIP_SOURCE, KEEPS, MEMBER, Program, Skip, Tap, flow_hash, short, wire)

VIP = {4: "203.0.113.10", 6: "2001:db8:5::10"}
PLAIN = {4: "203.0.113.20", 6: "2001:db8:5::20"}    # a VIP without NAT
CLIENT = {4: "192.0.2.7", 6: "2001:db8:9::7"}
NODE = {4: "10.0.0.1", 6: "2001:db8:1::1"}
NODE2 = {4: "10.0.0.2", 6: "2001:db8:1::2"}
BACKEND = {1: "10.0.1.11", 2: "10.0.1.12", 3: "2001:db8:1::13",
           4: "2001:db8:1::14"}
FIRST = {4: 1, 6: 3}        # a family's first backend
OURS, BACK = "02:00:00:00:00:01", "02:00:00:00:01:{:02x}"
ROUTER, ROUTER2 = "02:00:00:00:00:99", "02:00:00:00:00:98"
WEB, DNS, PORT = 1, 2, 3    # services; 10 more for IPv6
REPLIED, ESTABLISHED, CLOSING = 8, 16, 32
TICK = 1 << 32              # ns


def build(p):
    """VIP 1 and 2: tcp/80 and udp/53 as they come, tcp/443 to port 8443. Ring 0
    leads to IPv4, ring 1 to IPv6."""
    for f, number in ((4, 1), (6, 2)):
        base, ring = 10 * (f == 6), int(f == 6)
        p.vip(VIP[f], number)
        p.service(number, TCP, 80, base + WEB, ring, NAT)
        p.service(number, UDP, 53, base + DNS, ring, NAT)
        p.service(number, TCP, 443, base + PORT, ring, NAT)
        p.backend_port(base + PORT, 8443)
        p.vip(PLAIN[f], 3 + ring)
        p.service(3 + ring, TCP, 80, base + 5, ring)
        p.ring(ring)
        p.slots_all(ring, FIRST[f])
        p.member(ring, {n: MEMBER | KEEPS for n in BACKEND})
        p.source(ring, NODE[f])
    for n, address in BACKEND.items():
        f = 6 if ":" in address else 4
        p.backend(n, address, n, [int(f == 6)])
        p.hop(n, BACK.format(n), OURS, NODE[f])
    p.door(0, 1, OURS)
    p.door(1, 2, "02:00:00:00:02:01")
    p.ask("port 2")


def l3(f, src, dst, ttl=57, **more):
    return IP(src=src, dst=dst, ttl=ttl, id=9, **more) if f == 4 else \
        IPv6(src=src, dst=dst, hlim=ttl, fl=5, **more)


def l4(proto, sport, dport, flags="PA"):
    return Tcp(sport=sport, dport=dport, flags=flags, seq=7, ack=9) \
        if proto == TCP else Udp(sport=sport, dport=dport)


def frame(inner, src=ROUTER, dst=OURS, tag=None):
    link = Ether(src=src, dst=dst)
    return bytes(link / tag / inner if tag else link / inner)


class Flow:
    """One of a client, and what its packets become."""

    def __init__(self, p, f=4, proto=TCP, sport=40000, dport=None, to=None,
                 src=None):
        self.p, self.f, self.proto, self.sport = p, f, proto, sport
        self.dport = dport or (80 if proto == TCP else 53)
        self.bport = 8443 if self.dport == 443 else self.dport
        self.service = {80: WEB, 53: DNS, 443: PORT}[self.dport] + \
            10 * (f == 6)
        self.src = src or CLIENT[f]
        self.to = to or FIRST[f]
        self.node, self.port = NODE[f], None

    def hash(self):
        return flow_hash(Program.KEY, short(self.src), short(VIP[self.f]),
                         struct.pack(">HH", self.sport, self.dport),
                         self.proto)

    def inner(self, flags="PA", payload=b"x" * 30, ttl=57, **more):
        return l3(self.f, self.src, VIP[self.f], ttl, **more) / \
            l4(self.proto, self.sport, self.dport, flags) / Raw(payload)

    def translated(self, flags="PA", payload=b"x" * 30, ttl=56, **more):
        return l3(self.f, self.node, BACKEND[self.to], ttl, **more) / \
            l4(self.proto, self.port, self.bport, flags) / Raw(payload)

    def send(self, flags="PA", **more):
        """What came out, compared with what it had to be. The first time the
        port is found out."""
        inner = self.inner(flags, **more)
        out = self.p.forward(frame(inner), self.service, self.to, len(inner))
        if self.port is None:
            self.port = Ether(out).sport
            assert 16384 <= self.port < 32768, self.port
        more["ttl"] = more.get("ttl", 57) - 1
        same(out, frame(self.translated(flags, **more), OURS,
                        BACK.format(self.to)))
        return out

    def answer(self, flags="PA", payload=b"y" * 50, ttl=60, **more):
        """From the backend, as it comes here."""
        return l3(self.f, BACKEND[self.to], self.node, ttl, **more) / \
            l4(self.proto, self.bport, self.port, flags) / Raw(payload)

    def answered(self, flags="PA", payload=b"y" * 50, ttl=59, **more):
        return l3(self.f, VIP[self.f], self.src, ttl, **more) / \
            l4(self.proto, self.dport, self.sport, flags) / Raw(payload)

    def reply(self, flags="PA", to=ROUTER, **more):
        out = reply(self.p, frame(self.answer(flags, **more),
                                  BACK.format(self.to)))
        more["ttl"] = more.get("ttl", 60) - 1
        same(out, frame(self.answered(flags, **more), OURS, to))
        return out

    def rows(self):
        """(forward, reply) as they are in the table."""
        found = [r for r in self.p.nat_rows_get().values()
                 if r["ports"] == (self.sport, self.dport) and
                 r["client"] == wire(self.src) and
                 r["vip"] == wire(VIP[self.f]) and not r["flags"] & 128 and
                 bool(r["flags"] & 4) == (self.proto == UDP)]
        assert len(found) == 2, found
        return sorted(found, key=lambda r: r["flags"] & 3)


def reply(p, data, action=TX):
    got, out, reason, _, _ = p.run(data)
    assert (got, reason) == (action, "nat_reply"), f"{got} {reason}"
    return out


def passes(p, data):
    """The host's: run() sees that it is untouched."""
    reason = p.run(data)[2]
    assert reason == "not_vip", reason


def same(got, want):
    assert got == want, f"\n  got  {got.hex()}\n  want {want.hex()}"


def forget(p):
    p.ask(f"put nat 0 {'00' * 4096}") if p.nat_rows == 64 else \
        [p.ask(f"put nat {at} {'00' * 4096}")
         for at in range(0, p.nat_rows * 64, 4096)]


def both_directions(p):
    for f in (4, 6):
        for proto in (TCP, UDP):
            flow = Flow(p, f, proto)
            flow.send("S")
            flow.reply("SA")
            flow.send("A", payload=b"")
            for n in (0, 1, 7, 1300):
                flow.send(payload=bytes(range(n % 256)) + bytes(n - n % 256))
                flow.reply(payload=b"z" * n)


def port_of_the_backend(p):
    for f in (4, 6):
        flow = Flow(p, f, dport=443, sport=40001)
        flow.send("S")
        flow.reply("SA")


def same_port_again(p):
    """Also after all state was lost."""
    for f in (4, 6):
        flow = Flow(p, f, sport=41000)
        flow.send("S")
        port = flow.port
        forget(p)
        flow = Flow(p, f, sport=41000)
        flow.send("S")
        assert flow.port == port
        assert port == 16384 + (flow.hash() >> 32) % 16384, port


def checksums_of_udp(p):
    """None over IPv4 stays none; one that becomes 0 is written as ffff."""
    flow = Flow(p, 4, UDP, sport=42000)
    flow.send()
    for data, made in ((flow.inner(), flow.translated()),
                       (flow.answer(), flow.answered())):
        data[Udp].chksum = made[Udp].chksum = 0
        if data[IP].dst == VIP[4]:
            made.ttl = 56
            out = p.forward(frame(data), flow.service, flow.to, len(data))
            same(out, frame(made, OURS, BACK.format(flow.to)))
        else:
            same(reply(p, frame(data, BACK.format(1))),
                 frame(made, OURS, ROUTER))
    for f in (4, 6):
        flow = Flow(p, f, UDP, sport=42001)
        flow.send()
        want = Raw(bytes(flow.translated(payload=b"ab\0\0")))
        at = (20 if f == 4 else 40) + 6
        check = struct.unpack_from(">H", bytes(want), at)[0]
        payload = b"ab" + struct.pack(">H", check)
        out = flow.send(payload=payload)
        assert out[14 + at:16 + at] == b"\xff\xff", out.hex()


def fields_that_stay(p):
    for f in (4, 6):
        flow = Flow(p, f, sport=42100)
        for tos in (0, 3, 0xb8, 0xff):
            more = {"tos": tos} if f == 4 else {"tc": tos}
            flow.send(**more)
            flow.reply(**more)
    flow = Flow(p, 4, sport=42101)
    flow.send(flags="PA")
    for ipflags in ("DF", 0):
        flow.send(payload=b"q", **{})
        inner = flow.inner(payload=b"q")
        inner.flags = ipflags
        want = flow.translated(payload=b"q")
        want.flags = ipflags
        same(p.forward(frame(inner), flow.service, 1, len(inner)),
             frame(want, OURS, BACK.format(1)))


def hops_run_out(p):
    for f in (4, 6):
        flow = Flow(p, f, sport=42200)
        for ttl in (0, 1):
            p.expect(frame(flow.inner(ttl=ttl)), "encap_failed", flow.service)
        assert all(r["ports"][0] != 42200 or r["vip"] != wire(VIP[f])
                   for r in p.nat_rows_get().values())
        flow.send("S", ttl=2)
        assert p.run(frame(flow.answer(ttl=1), BACK.format(flow.to)))[2] == \
            "encap_failed"
        flow.reply(ttl=2)


def options_and_extensions(p):
    flow = Flow(p, 4, sport=42300)
    flow.send("S")
    option = [IPOption(b"\x94\x04\0\0")]
    flow.send(options=option)
    flow.reply(options=option)
    for headers in ([IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])],
                    [IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])] * 3):
        flow = Flow(p, 6, UDP, sport=42301)
        flow.send()

        def between(inner):
            out = IPv6(src=inner.src, dst=inner.dst, hlim=inner.hlim, fl=5)
            for h in headers:
                out = out / h.copy()
            return out / inner.payload.copy()

        inner, want = between(flow.inner()), between(flow.translated())
        same(p.forward(frame(inner), flow.service, 3, len(inner)),
             frame(want, OURS, BACK.format(3)))
        same(reply(p, frame(between(flow.answer()), BACK.format(3))),
             frame(between(flow.answered()), OURS, ROUTER))


def tags(p):
    """The reply has the tag that the client's packet came with."""
    for f in (4, 6):
        for kind in (Dot1Q(vlan=7, prio=2), ):
            flow = Flow(p, f, sport=42400)
            inner = flow.inner("S")
            out = p.forward(frame(inner, tag=kind), flow.service, flow.to,
                            len(inner))
            flow.port = Ether(out).sport
            same(out, frame(flow.translated("S"), OURS, BACK.format(flow.to)))
            same(reply(p, frame(flow.answer(), BACK.format(flow.to))),
                 frame(flow.answered(), OURS, ROUTER, tag=kind))
            same(reply(p, frame(flow.answer(), BACK.format(flow.to),
                                tag=Dot1AD(vlan=7, prio=1))),
                 frame(flow.answered(), OURS, ROUTER,
                       tag=Dot1AD(vlan=7, prio=1)))
        p.hop(FIRST[f], BACK.format(FIRST[f]), OURS, NODE[f], vlan=9)
        inner = flow.inner()
        same(p.forward(frame(inner), flow.service, flow.to, len(inner)),
             frame(flow.translated(), OURS, BACK.format(flow.to),
                   tag=Dot1Q(vlan=9)))
        flow.reply()        # it came without
        p.hop(FIRST[f], BACK.format(FIRST[f]), OURS, NODE[f])
        two = Flow(p, f, sport=42401).inner("S")
        p.expect(frame(Dot1Q(vlan=3) / two, tag=Dot1AD(vlan=2)),
                 "encap_failed", WEB + 10 * (f == 6))


def padding(p):
    for f in (4, 6):
        flow = Flow(p, f, UDP, sport=42500)
        flow.send(payload=b"")
        for extra in (1, 6, 7, 200):
            inner = flow.inner(payload=b"")
            out = p.forward(frame(inner) + bytes(extra), flow.service, flow.to,
                            len(inner))
            same(out, frame(flow.translated(payload=b""), OURS,
                            BACK.format(flow.to)) +
                 bytes(extra if extra <= 6 else 0))
            out = reply(p, frame(flow.answer(payload=b""),
                                 BACK.format(flow.to)) + bytes(extra))
            same(out, frame(flow.answered(payload=b""), OURS, ROUTER) +
                 bytes(extra if extra <= 6 else 0))


def router_changes(p):
    """Replies go where the client's last packet came from."""
    for f in (4, 6):
        flow = Flow(p, f, sport=42600)
        flow.send("S")
        flow.reply("SA")
        inner = flow.inner("A", payload=b"")
        same(p.forward(frame(inner, ROUTER2), flow.service, flow.to,
                       len(inner)),
             frame(flow.translated("A", payload=b""), OURS,
                   BACK.format(flow.to)))
        flow.reply(to=ROUTER2)
        # by another interface: its door in the rows
        for number, r in p.nat_rows_get().items():
            if r["ports"][0] == flow.sport and r["flags"] & 2:
                p.nat_row_put(number, 19, b"\1")
        out = reply(p, frame(flow.answer(), BACK.format(flow.to)), REDIRECT)
        same(out, frame(flow.answered(), "02:00:00:00:02:01", ROUTER2))


def errors_to_the_backend(p):
    """A router of the client's side tells the VIP; the backend hears it."""
    for f in (4, 6):
        for proto in (TCP, UDP):
            flow = Flow(p, f, proto, sport=42700)
            flow.send()
            far = "198.51.100.1" if f == 4 else "2001:db8:aa::1"
            for keep in (8, 18, 20, 400):
                sent, seen = flow.answered(payload=b"e" * 90), \
                    flow.answer(payload=b"e" * 90, ttl=59)
                head = 20 if f == 4 else 40
                sent, seen = (bytes(x)[:head + keep] for x in (sent, seen))
                seen = fix_quote(sent, seen, f)
                inner = l3(f, far, VIP[f]) / too_big(f) / Raw(sent)
                want = l3(f, flow.node, BACKEND[flow.to], 56) / too_big(f) / \
                    Raw(seen)
                out = p.forward(frame(inner), flow.service, flow.to,
                                len(inner), why="icmp_error")
                same(out, frame(want, OURS, BACK.format(flow.to)))
            # nothing is known of this one
            other = Flow(p, f, proto, sport=42701)
            inner = l3(f, far, VIP[f]) / too_big(f) / \
                Raw(bytes(other.answered()))
            p.expect(frame(inner), "no_backend", other.service)


def errors_at_their_last_hop(p):
    """They end here, for that reason: their flow is known, its backend there."""
    for f in (4, 6):
        flow = Flow(p, f, sport=42750)
        flow.send()
        far = "198.51.100.1" if f == 4 else "2001:db8:aa::1"
        for ttl in (0, 1, 2):
            inner = l3(f, far, VIP[f], ttl) / too_big(f) / \
                Raw(bytes(flow.answered()))
            back = l3(f, far, NODE[f], ttl) / too_big(f) / \
                Raw(bytes(flow.translated()))
            if ttl == 2:
                p.forward(frame(inner), flow.service, flow.to, len(inner),
                          why="icmp_error")
                assert p.run(frame(back))[2] == "icmp_error"
                continue
            p.expect(frame(inner), "encap_failed", flow.service)
            got, _, reason, _, _ = p.run(frame(back))
            assert (got, reason) == (DROP, "encap_failed"), reason


def too_big(f):
    return ICMP(type=3, code=4, nexthopmtu=1280) if f == 4 else \
        ICMPv6PacketTooBig(mtu=1280)


def fix_quote(was, now, f):
    """The translated quote has the original's hop count and length words."""
    now = bytearray(now)
    if f == 4:
        now[8] = was[8]
        now[10:12] = b"\0\0"
        total = sum(struct.unpack(">10H", now[:20]))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        now[10:12] = struct.pack(">H", ~total & 0xffff)
    else:
        now[7] = was[7]
    return bytes(now)


def errors_to_the_client(p):
    """A router on the way to the backend, or that itself, tells our address."""
    for f in (4, 6):
        for proto in (TCP, UDP):
            flow = Flow(p, f, proto, sport=42800)
            flow.send()
            for far in ("10.9.9.9" if f == 4 else "2001:db8:bb::1",
                        BACKEND[flow.to]):
                for keep in (8, 18, 20, 400):
                    head = 20 if f == 4 else 40
                    sent = bytes(flow.translated(payload=b"e" * 90))
                    seen = bytes(flow.inner(payload=b"e" * 90))
                    sent, seen = sent[:head + keep], seen[:head + keep]
                    seen = fix_quote(sent, seen, f)
                    kind = too_big(f) if keep != 20 else \
                        ICMP(type=3, code=3) if f == 4 else \
                        ICMPv6DestUnreach(code=4)
                    inner = l3(f, far, NODE[f]) / kind / Raw(sent)
                    want = l3(f, VIP[f], CLIENT[f], 56) / kind.copy() / \
                        Raw(seen)
                    got, out, reason, _, _ = p.run(
                        frame(inner, BACK.format(flow.to)))
                    assert (got, reason) == (TX, "icmp_error"), reason
                    same(out, frame(want, OURS, ROUTER))
            other = Flow(p, f, proto, sport=42801)
            other.port = 20000
            passes(p, frame(l3(f, BACKEND[flow.to], NODE[f]) / too_big(f) /
                            Raw(bytes(other.translated()))))


def answers_too_big(p):
    for f in (4, 6):
        flow = Flow(p, f, sport=42900)
        flow.send("S")
        p.hop(FIRST[f], BACK.format(FIRST[f]), OURS, NODE[f], mtu=1400)
        p.door(0, 1, OURS, mtu=1390)
        more = {"flags": "DF"} if f == 4 else {}
        inner = flow.inner(payload=b"b" * 1390)
        if f == 4:
            inner.flags = "DF"
        out = Ether(p.answer(frame(inner), "too_big", flow.service))
        assert mtu_of(out) == 1400 and out.src == OURS and out.dst == ROUTER
        assert (out.payload.src, out.payload.dst) == (VIP[f], CLIENT[f])
        inner = flow.answer(payload=b"b" * 1380)
        if f == 4:
            inner.flags = "DF"
        out = Ether(p.answer(frame(inner, BACK.format(flow.to)), "too_big"))
        assert mtu_of(out) == 1390 and out.dst == BACK.format(flow.to)
        assert (out.payload.src, out.payload.dst) == (NODE[f],
                                                      BACKEND[flow.to])
        if f == 4:
            p.expect(frame(flow.inner(payload=b"b" * 1390)), "too_big_no_df",
                     flow.service)
        p.hop(FIRST[f], BACK.format(FIRST[f]), OURS, NODE[f])
        p.door(0, 1, OURS)


def mtu_of(out):
    return out[ICMP].nexthopmtu if ICMP in out else \
        out[ICMPv6PacketTooBig].mtu


def pieces(inner, f, size, ident):
    """Fragments, cut by hand."""
    data = bytes(inner)
    head = 20 if f == 4 else 40
    body, out = data[head:], []
    for at in range(0, len(body), size):
        part, more = body[at:at + size], at + size < len(body)
        proto = data[9] if f == 4 else data[6]
        if f == 4:
            out.append(IP(src=inner.src, dst=inner.dst, ttl=inner.ttl,
                          id=ident, frag=at // 8, proto=proto,
                          flags="MF" if more else 0) / Raw(part))
        else:
            out.append(IPv6(src=inner.src, dst=inner.dst, hlim=inner.hlim,
                            fl=5) / IPv6ExtHdrFragment(
                                nh=proto, offset=at // 8, m=int(more),
                                id=ident) / Raw(part))
    return out


def fragments(p):
    for f in (4, 6):
        flow = Flow(p, f, UDP, sport=43000)
        flow.send()
        data = bytes(range(256)) * 8
        for sent, made, there in (
                (flow.inner(payload=data), flow.translated(payload=data), True),
                (flow.answer(payload=data), flow.answered(payload=data), False)):
            come = pieces(sent, f, 800, 77)
            go = pieces(made, f, 800, 77)
            if not there:
                passes(p, frame(come[1], BACK.format(flow.to)))
            else:
                p.expect(frame(come[1]), "fragment_unknown")
            for a, b in zip(come, go):
                if there:
                    same(p.forward(frame(a), flow.service, flow.to, len(a)),
                         frame(b, OURS, BACK.format(flow.to)))
                else:
                    same(reply(p, frame(a, BACK.format(flow.to))),
                         frame(b, OURS, ROUTER))


def what_the_host_gets(p):
    """Whatever comes to our address and is nobody's reply."""
    for f in (4, 6):
        flow = Flow(p, f, sport=43100)
        flow.send("S")
        node, back = NODE[f], BACKEND[flow.to]
        for proto in (TCP, UDP):
            for src, sport, dport in (
                    (back, 80, 22), (back, 80, flow.port ^ 1),
                    (back, 81, flow.port), (CLIENT[f], 80, flow.port),
                    (CLIENT[f], 40000, 80), (back, 80, 40000),
                    (BACKEND[flow.to + 1], 80, flow.port)):
                passes(p, frame(l3(f, src, node) / l4(proto, sport, dport)))
        passes(p, frame(l3(f, back, node) / l4(UDP, 80, flow.port)))
        echo = ICMP() if f == 4 else ICMPv6EchoRequest()
        passes(p, frame(l3(f, CLIENT[f], node) / echo))
        passes(p, frame(l3(f, PLAIN[f], node) / l4(TCP, 80, flow.port)))
        passes(p, frame(l3(f, back, node) / l4(TCP, 80, flow.port))[:-3])
        passes(p, frame(l3(f, back, node) / l4(TCP, 80, flow.port, "SF")))
        passes(p, frame(l3(f, CLIENT[f], node, **(
            {"proto": 89} if f == 4 else {"nh": 89})) / Raw(b"ospf" * 9)))
        flow.reply("SA")
    passes(p, frame(IP(src=BACKEND[1], dst=NODE[4], options=[
        IPOption(b"\x94\x04\0\0")]) / l4(TCP, 80, 22)))


def states(p):
    """Their flags in both rows, and how long they last. The host's clock is
    what the test says; the kernel's cannot be moved."""
    flow = Flow(p, sport=43200)

    def flags():
        a, b = (r["flags"] & (REPLIED | ESTABLISHED | CLOSING)
                for r in flow.rows())
        assert a == b, (a, b)
        return a

    flow.send("S")
    assert flags() == 0
    flow.send("A")
    assert flags() == 0         # nobody has answered
    flow.reply("SA")
    assert flags() == REPLIED
    flow.send("S")
    assert flags() == REPLIED
    flow.send("A")
    assert flags() == REPLIED | ESTABLISHED
    flow.reply("FA")
    assert flags() == REPLIED | ESTABLISHED | CLOSING
    flow.send("A")
    assert flags() & CLOSING
    flow.send("PA")
    assert not flags() & CLOSING
    flow.send("R")
    assert flags() & CLOSING
    port = flow.port
    flow.send("S")              # another connection of the same name
    assert flags() == 0 and flow.port == port
    udp = flow = Flow(p, proto=UDP, sport=43201)
    udp.send()
    assert flags() == 0
    udp.reply()
    assert flags() == REPLIED
    end = Flow(p, sport=43202)
    end.send("R")
    assert end.rows()[0]["flags"] & CLOSING


def lives(p):
    assert p.ask("clock 1000000000 1") == "ok"
    now = 1000 * TICK

    def at(ticks):
        p.ask(f"clock {now + int(ticks * TICK)} {1000000 + int(ticks * 1000)}")

    forget(p)
    cases = (("opening", TCP, "S", "", 14), ("ended", TCP, "S", "F", 7),
             ("live", TCP, "S", "SA", 1677), ("one way", UDP, "", "", 14),
             ("session", UDP, "", "A", 70))
    for n, (what, proto, first, answer, life) in enumerate(cases):
        flow = Flow(p, proto=proto, sport=43300 + n)
        at(0)
        flow.send(first or "PA")
        if answer:
            flow.reply(answer)
        if what == "live":
            flow.send("A")
        at(life)
        back = frame(flow.answer("A"), BACK.format(1))
        copy = p.nat_rows_get()
        flow.reply("A")
        for number, r in copy.items():     # as it was
            p.nat_row_put(number, 0, struct.pack("=Q", r["word"]))
        at(life + 1)
        passes(p, back)
        # the other direction's use counts for both
        for number, r in copy.items():
            p.nat_row_put(number, 0, struct.pack("=Q", r["word"]))
        at(life)
        flow.send("A")
        at(life + 1)
        flow.reply("A")
        # it keeps its port, but has to begin anew
        at(life + 5000)
        passes(p, back)
        port = flow.port
        flow.send("S")
        assert flow.port == port
        assert flow.rows()[0]["flags"] & 56 == 0
    p.ask("clock 0 0")
    forget(p)


def backend_dies(p):
    """A draining one keeps its flows, a dead one does not."""
    for f in (4, 6):
        ring, first = int(f == 6), FIRST[f]
        flow = Flow(p, f, sport=43400)
        flow.send("S")
        p.slots_all(ring, first + 1)
        flow.send("A")
        new = Flow(p, f, sport=43401, to=first + 1)
        new.send("S")
        new.reply("SA")
        p.member(ring, {n: MEMBER | KEEPS for n in BACKEND if n != first})
        moved = Flow(p, f, sport=43400, to=first + 1)
        moved.send("A")
        moved.reply("R")
        passes(p, frame(flow.answer("A"), BACK.format(first)))
        p.slots_all(ring, 0)
        p.member(ring, {})
        p.expect(frame(new.inner("A")), "no_backend", new.service)
        p.slots_all(ring, first)
        p.member(ring, {n: MEMBER | KEEPS for n in BACKEND})


def by_source(p):
    """`hash: source`: all of a client's flows to one backend."""
    p.slots(0, [1 + i % 2 for i in range(p.ring_size)])
    p.service(1, TCP, 80, WEB, 0, NAT | SOURCE)
    slot = (flow_hash(Program.KEY, short(CLIENT[4])) >> 32) * p.ring_size >> 32
    for sport in range(43500, 43510):
        Flow(p, sport=sport, to=1 + slot % 2).send("S")
    p.service(1, TCP, 80, WEB, 0, NAT)
    for sport in range(43510, 43520):
        flow = Flow(p, sport=sport)
        slot = (flow.hash() >> 32) * p.ring_size >> 32
        flow.to = 1 + slot % 2
        flow.send("S")
    p.slots_all(0, 1)


def several_addresses(p):
    p.source(2, NODE2[4])
    p.backend(1, BACKEND[1], 1, [0, 2])
    seen = set()
    for sport in range(43600, 43640):
        flow = Flow(p, sport=sport)
        inner = flow.inner("S")
        out = Ether(p.forward(frame(inner), WEB, 1, len(inner)))
        flow.node, flow.port = out[IP].src, out.sport
        seen.add(flow.node)
        flow.reply("SA")
    assert seen == {NODE[4], NODE2[4]}, seen
    p.backend(1, BACKEND[1], 1, [0])


def no_two_have_one_port(p):
    """Of a thousand flows to one backend, in a table that has just room."""
    forget(p)
    ports, full = {}, 0
    for sport in range(1000, 2000):
        flow = Flow(p, sport=sport)
        inner = flow.inner("S")
        got, out, reason, _, _ = p.run(frame(inner), WEB)
        if reason == "nat_exhausted":
            full += 1
            continue
        assert reason == "forward", reason
        flow.port = Ether(out).sport
        assert flow.port not in ports
        ports[flow.port] = flow
    assert full > 400 and len(ports) > 400, (full, len(ports))
    for flow in list(ports.values())[::50]:     # none was touched
        flow.reply("SA")
        flow.send("A")
    forget(p)


def no_address_of_ours(p):
    flow = Flow(p, sport=43700)
    p.backend(1, BACKEND[1], 1, [])
    p.expect(frame(flow.inner("S")), "nat_exhausted", flow.service)
    p.backend(1, BACKEND[1], 1, [0])
    flow.send("S")
    # a client by an interface that is not one of ours: no way back
    p.door(0, 3, OURS)
    p.expect(frame(Flow(p, sport=43701).inner("S")), "encap_failed", WEB)
    p.door(0, 1, OURS)


def other_family(p):
    p.slots_all(0, 3)
    p.expect(frame(Flow(p, sport=43800).inner("S")), "encap_failed", WEB)
    p.slots_all(0, 1)


def vip_that_is_ours(p):
    """The host's own address, a VIP, and what NAT sends from: in one."""
    p.vip("203.0.113.77", 9, LOCAL | VIP_SOURCE)
    p.service(9, TCP, 80, 30, 0, NAT)
    p.source(5, "203.0.113.77", flags=LOCAL)
    p.backend(1, BACKEND[1], 1, [5])
    inner = l3(4, CLIENT[4], "203.0.113.77") / l4(TCP, 44000, 80, "S")
    out = Ether(p.forward(frame(inner), 30, 1, len(inner)))
    assert out[IP].src == "203.0.113.77" and out[IP].dst == BACKEND[1]
    back = l3(4, BACKEND[1], "203.0.113.77", 60) / \
        l4(TCP, 80, out.sport, "SA")
    want = l3(4, "203.0.113.77", CLIENT[4], 59) / l4(TCP, 80, 44000, "SA")
    same(reply(p, frame(back, BACK.format(1))), frame(want, OURS, ROUTER))
    passes(p, frame(l3(4, BACKEND[1], "203.0.113.77") / l4(TCP, 80, 22)))
    p.backend(1, BACKEND[1], 1, [0])


def probes_of_the_table(p):
    """A row is where the table says; one that goes leaves the others found."""
    forget(p)
    flows = [Flow(p, sport=n) for n in range(45000, 45300)]
    for flow in flows:
        flow.send("S")
    mask = p.nat_rows - 1
    rows = p.nat_rows_get()
    steps = 0
    for number, r in rows.items():
        step = r["word"] >> 19 & 31
        steps = max(steps, step)
        if not r["flags"] & 1:
            continue
        h = flow_hash(Program.KEY, r["client"][12:], r["vip"][12:],
                      struct.pack(">HH", *r["ports"]), TCP)
        block = step >> 2
        assert number == ((h & 0xffffffff ^ step & 3) +
                          2 * block * (block + 1)) & mask
        assert r["word"] >> 32 == h >> 32
        assert rows[r["peer"]]["peer"] == number
    assert steps > 1, steps
    for number, r in rows.items():
        if r["ports"][0] % 2:
            p.nat_row_put(number, 0, struct.pack("=Q", 1 << 31))
    for flow in flows:
        if flow.sport % 2 == 0:
            flow.reply("SA")
            flow.send("A")
        else:
            passes(p, frame(flow.answer("SA"), BACK.format(1)))
            flow.send("S")
            flow.reply("SA")
    forget(p)


def others_are_untouched(p):
    """A service in IPIP on the same ring, and the backend's own answers."""
    for f in (4, 6):
        inner = l3(f, CLIENT[f], PLAIN[f]) / l4(TCP, 40000, 80, "A")
        out = p.forward(frame(inner), 5 + 10 * (f == 6), FIRST[f], len(inner))
        assert out[-len(inner):] == bytes(inner)


def forms_side_by_side(p):
    """One backend, asked by both services of a client at once: by NAT and in
    IPIP. Neither knows of the other's flow, the backend counts both."""
    for f in (4, 6):
        n, flow = FIRST[f], Flow(p, f, sport=46000)
        other = l3(f, CLIENT[f], PLAIN[f]) / l4(TCP, 46000, 80, "PA")

        def count():
            return int(p.ask(f"count backend {n} 2").split()[0])

        before = count()
        for _ in range(3):
            flow.send("PA")
            out = p.forward(frame(other), 5 + 10 * (f == 6), n, len(other))
            assert out[-len(other):] == bytes(other)
            flow.reply("PA")
        assert count() - before == 6, count()


def weights(p):
    """Shares of the ring are shares of new flows; who has none gets none."""
    p.slots(0, [1 if i % 4 else 2 for i in range(p.ring_size)])
    got = {1: 0, 2: 0}
    for sport in range(20000, 20400):
        out = Ether(p.run(frame(Flow(p, sport=sport).inner("S")), WEB)[1])
        got[1 + (out[IP].dst == BACKEND[2])] += 1
    forget(p)
    p.slots_all(0, 1)
    assert sum(got.values()) == 400 and 70 < got[2] < 130, got


def told(p, data, **want):
    """The one event of this packet."""
    p.run(data)
    got = p.events()
    assert len(got) == 1, got
    have = {k: getattr(got[0], k) for k in want}
    assert have == want, f"{have}, not {want}"


def events(p):
    """They tell of what came in, not of what it became."""
    p.reader(0, REASONS, True)
    p.listen(3600)
    for f in (4, 6):
        flow = Flow(p, f, sport=46100)
        came = {"src": flow.src, "dst": VIP[f],
                "sport": 46100, "dport": 80, "proto": TCP,
                "service": flow.service, "backend": flow.to}
        told(p, frame(flow.inner("S")), reason="forward", begins=True, **came)
        told(p, frame(flow.inner("A")), reason="forward", begins=False, **came)
        flow.port = next(r["back"][1] for r in flow.rows())
        told(p, frame(flow.answer("SA"), BACK.format(flow.to)),
             reason="nat_reply", begins=False, backend=flow.to, dport=46100,
             sport=80, src=VIP[f], dst=flow.src)
        p.backend(flow.to, BACKEND[flow.to], flow.to, [])
        lost = Flow(p, f, sport=46101)
        told(p, frame(lost.inner("S")), **{**came, "sport": 46101},
             reason="nat_exhausted")
        p.backend(flow.to, BACKEND[flow.to], flow.to, [int(f == 6)])
    p.listen(None)


CASES = [both_directions, port_of_the_backend, same_port_again,
         checksums_of_udp, fields_that_stay, hops_run_out,
         options_and_extensions, tags, padding, router_changes,
         errors_to_the_backend, errors_to_the_client,
         errors_at_their_last_hop, answers_too_big,
         fragments, what_the_host_gets, states, lives, backend_dies, by_source,
         several_addresses, no_two_have_one_port, no_address_of_ours,
         other_family, vip_that_is_ours, probes_of_the_table,
         others_are_untouched, forms_side_by_side, weights, events]


def main():
    tap = Tap()
    for engine in sys.argv[1:] or ("bpf", "host"):
        p = None

        def load():
            nonlocal p
            p = Program(engine)
            build(p)

        tap.case(f"{engine}: loads", load)
        for case in CASES:
            if case is lives and engine == "bpf":
                continue        # the kernel's clock is its own

            def run(c=case):
                if p is None:
                    raise Skip("not loaded")
                c(p)
            tap.case(f"{engine}: {case.__name__}", run)
        if p:
            tap.case(f"{engine}: ends well", p.close)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
