#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The flow table's rules, packet by packet: the backend that it has to be, what
is counted, and what the table holds then."""

import sys

from flows import (AGES, FIRM, KNOWN, LIVE, OPENING, SESSION, WINDOW, Entry,
                   Flows, flow_of, slot_word)
from rig import DATAGRAM, GUE, KEEPS, LOOKUP, MEMBER, SOURCE, Program, Skip, Tap
from test_xlb import (BACKEND, CLIENT, ERRORS, FAR, NODE, OTHER, OURS, TCP, UDP,
                      VIP, IPOption, IPv6ExtHdrDestOpt, error, extended, framed,
                      gue_wrapped, options6, packet, pieces, quote_of, same,
                      wrapped)

WEB, CLIENTS, QUIC, DNS, MOVED, TUNNEL = 1, 2, 3, 4, 5, 6
PORT = {WEB: 80, CLIENTS: 81, QUIC: 443, DNS: 53, MOVED: 82, TUNNEL: 83}
ALIVE = MEMBER | KEEPS
JUST_SAMPLES = ("sampled", "unknown")


def build(p):
    """Ring 1 is the pool's, ring 2 that of another one."""
    for f, number in ((4, 1), (6, 2)):
        p.vip(VIP[f], number)
        p.service(number, TCP, PORT[WEB], WEB, 1)
        p.service(number, TCP, PORT[CLIENTS], CLIENTS, 1, SOURCE)
        p.service(number, UDP, PORT[QUIC], QUIC, 1)
        p.service(number, UDP, PORT[DNS], DNS, 1, DATAGRAM)
        p.service(number, TCP, PORT[TUNNEL], TUNNEL, 1, GUE)
        p.service(number, TCP, PORT[MOVED], MOVED, 1, LOOKUP, 2)
        p.service(number, UDP, PORT[MOVED], MOVED, 1, LOOKUP, 2)
    for number in range(1, 3):
        p.ring(number)
        p.member(number, {b: ALIVE for b in BACKEND})
    for number, address in BACKEND.items():
        p.backend(number, address, number)
        p.hop(number, FAR.format(number), OURS, NODE[6 if ":" in address
                                                     else 4])


class Case:
    """A program, its table, and what has been learned of both."""

    def __init__(self, p):
        self.p, self.t = p, Flows(p)
        self.kernel = not self.t.model
        self.port = 1000

    def reset(self, cur=1, lookup=False, prev=0):
        self.p.member(1, {b: ALIVE for b in BACKEND})
        self.p.slots_all(2, 4)
        self.slots(cur, lookup, prev)
        self.t.settings()
        self.t.clear()
        self.t.grown()

    def slots(self, cur, lookup=False, prev=0):
        self.p.slots_all(1, slot_word(cur, lookup, prev))

    def members(self, **bits):
        """b2=MEMBER; those not named are alive."""
        self.p.member(1, {b: bits.get(f"b{b}", ALIVE) for b in BACKEND})

    def new(self, service=WEB, f=4, proto=TCP):
        """Somebody's next flow: a function of flags to a packet of it."""
        self.port += 1
        port = self.port

        def make(tcp="A", **more):
            if proto == UDP:
                return packet(f, UDP, sport=port, dport=PORT[service], **more)
            return packet(f, TCP, sport=port, dport=PORT[service], tcp=tcp,
                          **more)
        return make

    def goes(self, inner, backend, why="forward", service=WEB, of=None,
             out=wrapped, **counted):
        """To that backend, with these counters and no other."""
        if self.t.model and why != "icmp_error":
            self.t.awake(of or inner, "sampled" in counted)
        got = self.p.forward(framed(inner), service, backend, len(inner),
                             why=why)
        same(got, out(inner, backend, of=of))
        self.counts(counted)

    def counts(self, counted):
        grown = self.t.grown()
        if self.kernel:         # nobody knows which packets it samples
            for k in JUST_SAMPLES:
                grown.pop(k, None)
                counted.pop(k, None)
        assert grown == counted, f"counted {grown}, not {counted}"

    def holds(self, inner, *entries, source=False):
        got = self.t.entries(inner, source)
        assert got == list(entries), f"holds {got}, not {list(entries)}"

    def untouched(self):
        assert self.t.all() == []


def stable_and_plain(c):
    """No table, whatever is in it: the ring says where."""
    c.reset(cur=2)
    for f in (4, 6):
        for tcp in ("A", "UA", "EA"):
            flow = c.new(f=f)
            if c.kernel:
                continue
            c.t.awake(flow(), False)
            for _ in range(3):
                c.goes(flow(tcp), 2)
            c.t.put(flow(), Entry(1, True))
            c.goes(flow(tcp), 2)
            c.holds(flow(), Entry(1, True))
            c.t.put(flow(), None)
        flow = c.new(QUIC, f, UDP)
        for _ in range(20):
            c.goes(flow(), 2, service=QUIC)
        c.t.put(flow(), Entry(1, True, True))
        c.goes(flow(), 2, service=QUIC)
        c.t.put(flow(), None)
    c.untouched()


def one_in_sixteen_is_sampled(c):
    """By flow and time, and then looked up: 3 to 10 % over many flows, and each
    flow has its turn."""
    c.reset()
    if c.t.model:
        flow = c.new()
        flows, rounds, turns = [flow_of(c.new()()) for _ in range(200)], 600, 0
        for n in range(rounds):
            c.t.advance(jiffies=1)
            c.p.bulk([framed(flow())], "forward")
            turns += len(c.t.entries(flow())) > 0
            c.t.clear()
        assert rounds * .04 < turns < rounds * .09, turns
        return f"{turns} of {rounds}"
    n = 2000
    c.p.bulk([framed(c.new()("A", payload=b"")) for _ in range(n)], "forward")
    got = c.t.grown()
    assert n * .03 < got["insert"] < n * .1, got
    assert set(got) <= {"insert", "evict_unconfirmed"}, got
    return f"{got['insert']} of {n}"


def a_syn(c):
    for f in (4, 6):
        for lookup in (False, True):
            c.reset(1, lookup, 3)
            flow = c.new(f=f)
            c.goes(flow("S"), 1, insert=1)          # never prev
            c.holds(flow(), Entry(1))
            for entry in (Entry(2, age=OPENING), Entry(2, True, age=LIVE)):
                c.t.put(flow(), entry)
                c.goes(flow("S"), 2, "forward_pinned")
                c.holds(flow(), entry)              # unchanged
            for entry in (Entry(2, age=OPENING + 1), Entry(2, True, True),
                          Entry(2, False, True),
                          Entry(2, True, age=LIVE + 1),
                          Entry(2, True, age=AGES - 17)):
                c.t.put(flow(), entry)
                c.goes(flow("S"), 1, insert=1)
                c.holds(flow(), Entry(1))
            c.t.put(flow(), Entry(1, True, age=9))
            c.goes(flow("SE"), 1)
            c.holds(flow(), Entry(1, True, age=9))
            # a clock that is ahead is no day and a half behind
            c.t.put(flow(), Entry(2, True, age=AGES - 16))
            c.goes(flow("S"), 2, "forward_pinned")
            # dead, or another pool's
            for bits in (0, MEMBER):
                c.members(b2=bits)
                c.t.put(flow(), Entry(2, True))
                c.goes(flow("S"), 1, insert=1)
                c.holds(flow(), Entry(1))
            c.members()
    c.reset(1, True, 2)
    flow = c.new()
    c.goes(flow("SA"), 2, "forward_prev", insert=1)     # opens nothing


def a_hit(c):
    for f in (4, 6):
        c.reset(1, True, 3)
        flow = c.new(f=f)
        for tcp in ("A", "PA"):
            for was in (Entry(2), Entry(2, True), Entry(2, age=KNOWN),
                        Entry(2, True, age=KNOWN)):
                c.t.put(flow(), was)
                c.goes(flow(tcp), 2, "forward_pinned")
                c.holds(flow(), Entry(2, True))
            # closing binds for two minutes, and data takes it back
            c.t.put(flow(), Entry(2, True, True, SESSION))
            c.goes(flow(tcp), 2, "forward_pinned")
            c.holds(flow(), Entry(2, True, tcp == "A"))
            for was in (Entry(2, age=KNOWN + 1), Entry(2, True, age=KNOWN + 1),
                        Entry(2, True, True, SESSION + 1)):
                c.t.put(flow(), was)
                c.goes(flow(tcp), 3, "forward_prev", insert=1)
                c.holds(flow(), Entry(3))
            for bits in (0, MEMBER):
                c.members(b2=bits)
                c.t.put(flow(), Entry(2, age=7))
                c.goes(flow(tcp), 1)
                c.holds(flow(), Entry(1, True))
            c.members()
            c.t.put(flow(), Entry(1, age=7))
            c.goes(flow(tcp), 1)
            c.holds(flow(), Entry(1, True))
            c.members(b1=0)         # the ring's own is not asked for
            c.goes(flow(tcp), 1)
            c.members()


def a_hit_in_a_stable_slot(c):
    """Only what xlbd waits for binds against the ring; what agrees with it
    always does."""
    for f in (4, 6):
        c.reset(1)
        flow = c.new(f=f)
        for was in (Entry(2, True, age=LIVE), Entry(2, age=OPENING),
                    Entry(2, True, True, SESSION)):
            c.t.put(flow(), was)
            c.goes(flow("PA"), 2, "forward_pinned")
            c.holds(flow(), Entry(2, True))
        for was in (Entry(2, True, age=LIVE + 1), Entry(2, age=OPENING + 1),
                    Entry(2, True, True, SESSION + 1)):
            c.t.put(flow(), was)
            c.goes(flow("PA"), 1, insert=1)
            c.holds(flow(), Entry(1))
        for was in (Entry(1, True, age=KNOWN), Entry(1, age=KNOWN),
                    Entry(1, True, True, KNOWN)):
            c.t.put(flow(), was)
            c.goes(flow("PA"), 1)
            c.holds(flow(), Entry(1, True))


def a_miss(c):
    for f in (4, 6):
        c.reset(1)
        flow = c.new(f=f)
        c.goes(flow("PA"), 1, insert=1)
        c.holds(flow(), Entry(1))
        c.goes(flow("PA"), 1)
        c.holds(flow(), Entry(1, True))
        for tcp in ("A", "PA", "UA"):
            c.slots(1, True, 2)
            flow = c.new(f=f)
            c.goes(flow(tcp), 2, "forward_prev", insert=1)
            c.holds(flow(), Entry(2))
            c.slots(1, True, 0)                 # prev has gone
            c.goes(flow(tcp), 2, "forward_pinned")
            c.holds(flow(), Entry(2, True))
            c.slots(1, True, 2)
            for bits in (0, MEMBER):
                c.members(b2=bits)
                flow = c.new(f=f)
                c.goes(flow(tcp), 1, insert=1)
                c.holds(flow(), Entry(1))
            c.members()
            c.slots(1, True, 1)
            c.goes(c.new(f=f)(tcp), 1, insert=1)


def fin_and_rst(c):
    for f in (4, 6):
        for lookup in (False, True):
            for tcp in ("F", "FA", "FPA", "R", "RA"):
                c.reset(1, lookup, 3 if lookup else 0)
                flow = c.new(f=f)
                c.goes(flow(tcp), 3 if lookup else 1,
                       "forward_prev" if lookup else "forward")
                c.untouched()
                for confirmed in (False, True):
                    c.t.put(flow(), Entry(2, confirmed, age=9))
                    c.goes(flow(tcp), 2, "forward_pinned")
                    c.holds(flow(), Entry(2, confirmed, True))
                    # one that binds no more
                    c.t.put(flow(), Entry(2, confirmed, True, SESSION + 1))
                    c.goes(flow(tcp), 3 if lookup else 1,
                           "forward_prev" if lookup else "forward")
                    c.holds(flow(), Entry(2, confirmed, True, SESSION + 1))


def udp_sessions(c):
    for f in (4, 6):
        c.reset(1, True, 2)
        flow = c.new(QUIC, f, UDP)
        c.goes(flow(), 2, "forward_prev", QUIC, insert=1)
        c.holds(flow(), Entry(2, False, True))
        c.slots(1, True, 3)
        c.goes(flow(), 2, "forward_pinned", QUIC)
        c.holds(flow(), Entry(2, True, True))
        c.t.put(flow(), Entry(2, True, True, SESSION))
        c.goes(flow(), 2, "forward_pinned", QUIC)
        c.holds(flow(), Entry(2, True, True))
        c.t.put(flow(), Entry(2, True, True, SESSION + 1))
        c.goes(flow(), 3, "forward_prev", QUIC, insert=1)
        c.holds(flow(), Entry(3, False, True))
        c.members(b3=MEMBER)
        c.goes(flow(), 1, "forward", QUIC)
        c.holds(flow(), Entry(1, True, True))
        # no node-wide surge is theirs
        c.reset(1)
        c.t.settings(surge=1)
        c.goes(c.new(QUIC, f, UDP)(), 1, "forward", QUIC)
        c.untouched()


def udp_datagrams(c):
    for f in (4, 6):
        c.reset(1, True, 2)
        flow = c.new(DNS, f, UDP)
        c.goes(flow(), 1, "forward", DNS)
        c.untouched()
        c.t.put(flow(), Entry(2, True, True))
        c.goes(flow(), 1, "forward", DNS)
        c.holds(flow(), Entry(2, True, True))


def a_service_that_changed_its_pool(c):
    for f in (4, 6):
        for proto in (TCP, UDP):
            c.reset(1, False, 3)
            udp = proto == UDP
            flow = c.new(MOVED, f, proto)
            c.goes(flow("A"), 4, "forward_prev", MOVED, insert=1)
            c.holds(flow(), Entry(4, False, udp))
            c.p.slots_all(2, 2)
            c.goes(flow("A"), 4, "forward_pinned", MOVED)
            c.holds(flow(), Entry(4, True, udp))
            if not udp:
                c.goes(c.new(MOVED, f)("S"), 1, "forward", MOVED, insert=1)
            # not in the new pool; nor is the old one's word asked
            c.members(b2=0)
            c.goes(c.new(MOVED, f, proto)("A"), 1, "forward", MOVED, insert=1)
            c.members(b4=MEMBER)
            c.goes(flow("A"), 1, "forward", MOVED)
            c.holds(flow(), Entry(1, True, udp))
            # later the old ring is the new one
            c.members()
            number = 1 if f == 4 else 2
            c.p.service(number, proto, PORT[MOVED], MOVED, 1, LOOKUP)
            c.goes(c.new(MOVED, f, proto)("A"), 3, "forward_prev", MOVED,
                   insert=1)
            c.p.service(number, proto, PORT[MOVED], MOVED, 1, LOOKUP, 2)


def surge(c):
    for f in (4, 6):
        c.reset(1)
        c.t.settings(surge=1)
        flow = c.new(f=f)
        c.goes(flow("A"), 1, insert=1)
        c.holds(flow(), Entry(1))
        c.goes(flow("A"), 1)
        c.holds(flow(), Entry(1, True))
        c.t.settings(surge=1, budget=0)
        c.goes(c.new(f=f)("A"), 1, skip_budget=1)


def what_surge_goes_by(c):
    """Sampled packets with payload in stable slots, and whose are unknown."""
    if c.kernel:                # which of them, nobody knows; but how many
        c.reset(1)
        n, rounds, counts = 150, 10, []
        frames = [framed(c.new()("PA")) for _ in range(n)]
        for _ in range(rounds):
            c.t.next_jiffy()    # other flows than the time before
            c.p.bulk(frames, "forward")
            grown = c.t.grown()
            counts += [grown.get("sampled", 0), grown.get("unknown", 0)]
        assert counts[0] == counts[1] and not any(counts[3::2]), counts
        n *= rounds
        assert n * .03 < sum(counts[::2]) < n * .1, counts
        return f"{sum(counts[::2])} of {n}"
    for f in (4, 6):
        for tcp in ("A", "PA"):
            c.reset(1)
            flow = c.new(f=f)
            c.goes(flow(tcp), 1, insert=1, sampled=1, unknown=1)
            c.goes(flow(tcp), 1, sampled=1)
            c.t.put(flow(), Entry(2, True, age=LIVE + 1))   # as good as none
            c.goes(flow(tcp), 1, insert=1, sampled=1, unknown=1)
            # header alone; with options
            for words, length in ((5, 0), (5, 1), (15, 40), (15, 41)):
                inner = bytearray(flow(tcp, payload=bytes(length)))
                inner[(20 if f == 4 else 40) + 12] = words << 4
                c.t.awake(flow(), True)
                c.p.run(framed(bytes(inner)), WEB)
                c.counts({"sampled": 1} if length % 2 else {})
        for tcp in ("S", "FA", "RA", "FPA"):
            c.t.awake(flow(), True)
            c.p.run(framed(flow(tcp)), WEB)
            assert not set(c.t.grown()) & set(JUST_SAMPLES)
        c.reset(1, True, 2)
        c.t.awake(flow(), True)
        c.p.run(framed(flow("PA")), WEB)
        assert not set(c.t.grown()) & set(JUST_SAMPLES)


def who_gives_way(c):
    """Empty; dead; closing or unconfirmed; idle for long; never one in use. Of a
    kind the oldest."""
    firm = Entry(2, True, age=FIRM)
    for f in (4, 6):
        c.reset(1)
        for weak, counted in (
                ([None], {}),
                ([Entry(3, age=OPENING + 1)], {}),
                ([Entry(3, False, True, SESSION + 1)], {}),
                ([Entry(3, True, True, SESSION + 1)], {}),
                ([Entry(3, True, age=LIVE + 1)], {}),
                ([Entry(3, True, age=KNOWN + 1)], {}),
                ([Entry(3)], {"evict_unconfirmed": 1}),
                ([Entry(3, age=OPENING)], {"evict_unconfirmed": 1}),
                ([Entry(3, True, True)], {"evict_unconfirmed": 1}),
                ([Entry(3, True, True, SESSION)], {"evict_unconfirmed": 1}),
                ([Entry(3, True, age=FIRM + 1)], {"evict_confirmed": 1}),
                ([Entry(3, True, age=LIVE)], {"evict_confirmed": 1}),
                # the first before the second
                ([None, Entry(3, age=OPENING + 1)], {}),
                ([None, Entry(3, True, True, AGES - 17)], {}),
                ([Entry(3, True, True, SESSION + 1), Entry(3)], {}),
                ([Entry(3, True, age=LIVE + 1), Entry(3, age=OPENING)], {}),
                ([Entry(3, age=5), Entry(3, age=4)], {"evict_unconfirmed": 1}),
                ([Entry(3, True, True, 5), Entry(3, age=4)],
                 {"evict_unconfirmed": 1}),
                ([Entry(3, age=5), Entry(3, True, True, 4)],
                 {"evict_unconfirmed": 1}),
                ([Entry(3), Entry(3, True, age=LIVE)],
                 {"evict_unconfirmed": 1}),
                ([Entry(3, True, age=400), Entry(3, True, age=399)],
                 {"evict_confirmed": 1})):
            for at in range(8):
                flow = c.new(f=f)
                kept = [firm] * (8 - len(weak)) + weak[1:]
                kept.insert(at, weak[0])
                c.t.fill(flow(), kept)
                row, _ = c.t.place(flow())
                before = c.t.words(row)
                c.goes(flow("S"), 1, insert=1, **counted)
                after = c.t.words(row)
                c.holds(flow(), Entry(1))
                assert [i for i in range(8) if before[i] != after[i]] == \
                    [at], (weak, before, after)
        flow = c.new(f=f)
        c.t.fill(flow(), [firm] * 8)
        c.goes(flow("S"), 1, full=1)
        c.slots(1, True, 2)
        c.goes(flow("A"), 2, "forward_prev", full=1)


def the_budget(c):
    for f in (4, 6):
        for lookup in (False, True):
            c.reset(1, lookup, 2 if lookup else 0)
            c.t.settings(budget=0)
            for tcp in ("S", "PA"):
                prev = lookup and tcp != "S"
                c.goes(c.new(f=f)(tcp), 2 if prev else 1,
                       "forward_prev" if prev else "forward", skip_budget=1)
            c.untouched()
            # entries that are there: only moved slots look
            flow = c.new(f=f)
            for tcp in ("S", "PA", "FA", "R"):
                was = Entry(3, True, age=8)
                c.t.put(flow(), was)
                if lookup:
                    c.goes(flow(tcp), 3, "forward_pinned")
                    c.holds(flow(), was if tcp == "S" else Entry(
                        3, True, tcp in ("FA", "R")))
                else:
                    c.goes(flow(tcp), 1, skip_budget=1)
                    c.holds(flow(), was)
            # an entry of the flow's own costs no room
            c.t.put(flow(), Entry(3, True, True))
            if lookup:
                c.goes(flow("S"), 1, insert=1)
                c.holds(flow(), Entry(1))
    if c.kernel:
        return
    c.reset(1)
    c.t.settings(budget=3)
    for _ in range(3):
        c.t.advance(ns=WINDOW)
        for n in range(5):
            c.goes(c.new()("S"), 1, **({"insert": 1} if n < 3 else
                                       {"skip_budget": 1}))


def by_client(c):
    """The slot is the client's, the entry the flow's."""
    c.reset(1, True, 2)
    for f in (4, 6):
        flows = [c.new(CLIENTS, f) for _ in range(4)]
        for flow in flows:
            c.goes(flow("A"), 2, "forward_prev", CLIENTS, insert=1)
            c.holds(flow(), Entry(2), source=True)
        rows = {c.t.place(flow(), True) for flow in flows}
        assert len(rows) > 1
        assert len({tag >> 8 for _, tag in rows}) == 1
        c.goes(flows[0]("PA"), 2, "forward_pinned", CLIENTS)
        c.holds(flows[1](), Entry(2), source=True)


def out_of_the_ordinary(c):
    """Options, extension headers, other ways to send."""
    c.reset(1, True, 2)
    for make in (lambda **k: packet(4, options=[IPOption(b"\x01" * 8)], **k),
                 lambda **k: extended([options6(IPv6ExtHdrDestOpt, 4)], **k)):
        c.port += 1
        k = {"sport": c.port, "dport": PORT[WEB]}
        for tcp, backend, why, more in (
                ("S", 1, "forward", {"insert": 1}), ("A", 1, "forward", {})):
            inner = make(tcp=tcp, **k)
            of = packet(inner[0] >> 4, tcp=tcp, **k)
            c.goes(inner, backend, why, of=of, **more)
        c.holds(of, Entry(1, True))
        c.slots(3, True, 2)
        c.goes(inner, 1, "forward_pinned", of=of)
        c.slots(1, True, 2)
        c.port += 1
        k["sport"] = c.port
        inner, of = make(tcp="PA", **k), packet(inner[0] >> 4, **k)
        c.goes(inner, 2, "forward_prev", of=of, insert=1)
        c.holds(of, Entry(2))
    for f in (4, 6):
        flow = c.new(TUNNEL, f)
        c.goes(flow("A"), 2, "forward_prev", TUNNEL, out=gue_wrapped,
               insert=1)
        c.goes(flow("A"), 2, "forward_pinned", TUNNEL, out=gue_wrapped)
        c.holds(flow(), Entry(2, True))
    if c.t.model:
        c.reset(1)
        of = packet(4, sport=7, dport=PORT[WEB])
        inner = packet(4, sport=7, dport=PORT[WEB], tcp="A",
                       options=[IPOption(b"\x01" * 8)])
        c.goes(inner, 1, of=of)
        c.untouched()
        c.goes(inner, 1, of=of, insert=1, sampled=1, unknown=1)


def fragments(c):
    """The first one as any packet; the others go where it went."""
    for f in (4, 6):
        c.reset(1, True, 2)
        for proto, service in ((TCP, WEB), (UDP, QUIC)):
            flow = c.new(service, f, proto)
            inner = flow("PA", payload=bytes(900))
            first, *later = pieces(inner, c.port)
            c.goes(first, 2, "forward_prev", service, of=inner, insert=1)
            c.holds(inner, Entry(2, False, proto == UDP))
            c.slots(3, True)
            for piece in later:
                c.goes(piece, 2, "forward", service, of=inner)
            c.holds(inner, Entry(2, False, proto == UDP))
            first, *later = pieces(inner, c.port + 1)
            c.goes(first, 2, "forward_pinned", service, of=inner)
            c.goes(later[0], 2, "forward", service, of=inner)
            c.slots(1, True, 2)


def icmp_errors(c):
    """To the flow's backend; the table is only read."""
    for f in (4, 6):
        for proto, service in ((TCP, WEB), (UDP, QUIC)):
            udp = proto == UDP
            flow = c.new(service, f, proto)

            def told(backend):
                inner = error(f, ERRORS[f][0].copy(), quote_of(
                    f, proto, PORT[service], c.port))
                c.goes(inner, backend, "icmp_error", service, of=flow())

            c.reset(1, True, 2)
            told(2)                             # unknown
            c.untouched()
            for entry in (Entry(3, age=5), Entry(3, True, True, SESSION)):
                c.t.put(flow(), entry)
                told(3)
                c.holds(flow(), entry)
            entry = Entry(3, True, True, SESSION + 1)
            c.t.put(flow(), entry)
            told(2)
            c.holds(flow(), entry)
            c.t.put(flow(), Entry(3))
            c.members(b3=0)
            told(1)
            c.holds(flow(), Entry(3))
            c.members(b2=0)
            c.t.put(flow(), None)
            told(1)
            c.t.settings(budget=0)
            c.members()
            told(2)
            c.reset(1)
            c.t.settings(surge=1)
            told(1)
            c.untouched()


def nobody_for_new_flows(c):
    """All drain: the flows that are there stay, others are dropped."""
    for f in (4, 6):
        for lookup in (False, True):
            c.reset(0, lookup)
            for tcp in ("S", "PA", "FA"):
                c.p.expect(framed(c.new(f=f)(tcp)), "no_backend", WEB)
                c.counts({})
            c.untouched()
        flow = c.new(f=f)
        c.t.put(flow(), Entry(2, age=3))
        for tcp in ("A", "PA", "S"):
            c.goes(flow(tcp), 2, "forward_pinned")
        c.holds(flow(), Entry(2, True))
        c.members(b2=MEMBER)
        for tcp in ("A", "S", "FA"):
            c.p.expect(framed(flow(tcp)), "no_backend", WEB)
        c.holds(flow(), Entry(2, True))
        c.members()
        c.slots(0, True, 3)
        other = c.new(f=f)
        c.goes(other("A"), 3, "forward_prev", insert=1)
        c.p.expect(framed(c.new(f=f)("S")), "no_backend", WEB)
        c.p.expect(framed(c.new(TUNNEL, f)("S")), "no_backend", TUNNEL)


CASES = [stable_and_plain, one_in_sixteen_is_sampled, a_syn, a_hit,
         a_hit_in_a_stable_slot, a_miss, fin_and_rst, udp_sessions,
         udp_datagrams, a_service_that_changed_its_pool, surge,
         what_surge_goes_by, who_gives_way, the_budget, by_client,
         out_of_the_ordinary, fragments, icmp_errors, nobody_for_new_flows]


def in_one_tick(case, c):
    """Ages are whole ticks of 4.3 s: when the kernel's clock turns one, what
    was written before is older than the test thinks."""
    for _ in range(20):
        tick = c.t.tick()
        try:
            return case(c)
        except AssertionError:
            if c.t.tick() == tick:
                raise
            c.p.catch_up()
    raise AssertionError("the machine is too slow")


def main():
    tap = Tap()
    for engine in sys.argv[1:] or ("bpf", "host"):
        c = None

        def load():
            nonlocal c
            p = Program(engine)
            build(p)
            c = Case(p)

        tap.case(f"{engine}: loads", load)
        for case in CASES:
            def run(case=case):
                if c is None:
                    raise Skip("not loaded")
                return in_one_tick(case, c)
            tap.case(f"{engine}: {case.__name__}", run)
        if c is not None:
            tap.case(f"{engine}: ends well", c.p.close)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
