#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""NAT at random, both directions, beside a plain reference: a dictionary of
flows, and packets that are built anew with every checksum summed from nothing.
XLB_NAT_PACKETS=500000 for a long run, XLB_NAT_SEED for one again."""

import os
import random
import struct
import sys
import time

try:
    import scapy  # noqa: F401 (test_nat.py wants it)
except ImportError:
    print("1..0 # SKIP scapy is missing (Debian: python3-scapy)")
    sys.exit(0)

from rig import TCP, TX, UDP, Program, Skip, Tap, flow_hash, short
from test_nat import (BACK, BACKEND, FIRST, NODE, OURS, ROUTER,
                      ROUTER2, VIP, build)

PACKETS = int(os.environ.get("XLB_NAT_PACKETS", "6000"))
SEED = int(os.environ.get("XLB_NAT_SEED", time.time_ns() % 1000000))
BATCH = 100
LIVES = {"opening": 14, "live": 1677, "closing": 7, "session": 70}
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
SERVICES = {(TCP, 80): 80, (UDP, 53): 53, (TCP, 443): 8443}


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def checksum(data):
    """RFC 1071, from nothing."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip(f, src, dst, proto, body, ttl, tos=0, ident=0, frag=0, options=b""):
    src, dst = short(src), short(dst)
    if f == 6:
        return struct.pack(">IHBB", 6 << 28 | tos << 20 | 5, len(body), proto,
                           ttl) + src + dst + body
    size = 20 + len(options)
    head = struct.pack(">BBHHHBBH", 0x40 | size // 4, tos, size + len(body),
                       ident, frag, ttl, proto, 0) + src + dst + options
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + body


def transport(f, src, dst, proto, sport, dport, flags, payload, none=False):
    if proto == TCP:
        seg = struct.pack(">HHIIBBHHH", sport, dport, 7, 9, 0x50, flags, 512,
                          0, 0) + payload
        at = 16
    else:
        seg = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
        at = 6
    if none:
        return seg
    return seal(f, src, dst, proto, seg, at)


def seal(f, src, dst, proto, seg, at):
    pseudo = short(src) + short(dst) + struct.pack(">II", len(seg), proto)
    check = checksum(pseudo + seg)
    if proto == UDP and check == 0:
        check = 0xffff
    return seg[:at] + struct.pack(">H", check) + seg[at + 2:]


def icmp(f, src, dst, quote):
    body = struct.pack(">BBHI", *((3, 4) if f == 4 else (2, 0)), 0, 1280) + \
        quote
    if f == 6:
        return seal(6, src, dst, 58, body, 2)
    return body[:2] + struct.pack(">H", checksum(body)) + body[4:]


class Known:
    """A flow as the reference knows it."""

    def __init__(self, port, way, now):
        self.port, self.way, self.replied = port, way, False
        self.established = self.closing = False
        self.used = now

    def life(self, proto):
        return LIVES["closing" if self.closing else "live" if self.established
                     else "session" if proto == UDP and self.replied
                     else "opening"]


class Reference:
    def __init__(self, p, rng):
        self.p, self.rng, self.flows, self.taken = p, rng, {}, {}
        self.tick, self.moves = 1000, p.ask("clock 1 1") == "ok"
        self.count = {}

    def clock(self, ticks):
        """What is used within a tick is not told apart."""
        self.tick += ticks
        if self.moves:
            self.p.ask(f"clock {(self.tick << 32) + 5} {self.tick * 1000}")

    def over(self, key):
        k = self.flows.get(key)
        return k is None or (self.moves and
                             self.tick - k.used > k.life(key[1]))

    def any_key(self):
        f = self.rng.choice((4, 6))
        proto, dport = self.rng.choice(list(SERVICES))
        host = self.rng.randrange(1, 40)
        src = f"198.18.0.{host}" if f == 4 else f"2001:db8:9::{host:x}"
        return f, proto, src, self.rng.randrange(2000, 2020), dport

    def known_key(self):
        return self.rng.choice(list(self.flows)) if self.flows else \
            self.any_key()

    def dress(self, f):
        """Header fields that have to stay, the hops but one."""
        r = self.rng
        d = {"tos": r.choice((0, 0, 0xb8, 3)), "ttl": r.choice((2, 64, 255))}
        if f == 4:
            d.update(ident=r.randrange(65536), frag=r.choice((0, 0x4000)))
            if r.random() < .1:
                d["options"] = b"\x94\x04\0\0" * r.randrange(1, 4)
        return d

    def frame(self, inner, way, dst=OURS, tail=0):
        kind = b"\x08\0" if inner[0] >> 4 == 4 else b"\x86\xdd"
        return mac(dst) + mac(way) + kind + inner + bytes(tail)

    # ---- packets: (frame, what is expected) -------------------------------

    def forward(self):
        r = self.rng
        key = self.any_key() if r.random() < .3 else self.known_key()
        f, proto, src, sport, dport = key
        flags = r.choice((SYN, ACK, ACK, PSH | ACK, PSH | ACK, FIN | ACK,
                          RST, RST | ACK))
        payload = r.randbytes(r.choice((0, 1, 2, 33, 400, 1301)))
        none = proto == UDP and f == 4 and r.random() < .1
        d, way = self.dress(f), r.choice((ROUTER, ROUTER, ROUTER, ROUTER2))
        out = dict(d, ttl=d["ttl"] - 1)
        inner = ip(f, src, VIP[f], proto, transport(
            f, src, VIP[f], proto, sport, dport, flags, payload, none), **d)

        def expect(port):
            to, bport = BACKEND[FIRST[f]], SERVICES[proto, dport]
            return self.frame(ip(f, NODE[f], to, proto, transport(
                f, NODE[f], to, proto, port, bport, flags, payload, none),
                **out), OURS, BACK.format(FIRST[f]))

        return self.frame(inner, way), ("forward", key, flags, way, expect)

    def reply(self):
        r, key = self.rng, self.known_key()
        f, proto, src, sport, dport = key
        k = self.flows.get(key)
        port = k.port if k else 20000
        bport, server = SERVICES[proto, dport], BACKEND[FIRST[f]]
        stray = r.random() < .15
        if stray:       # one that nobody waits for
            what = r.randrange(4)
            port = r.choice((22, 16383, 32768)) if what == 0 else port
            bport = bport + 1 if what == 1 else bport
            server = BACKEND[FIRST[f] + 1] if what == 2 else server
            if what == 3:
                proto = TCP + UDP - proto
        flags = r.choice((SYN | ACK, ACK, ACK, PSH | ACK, FIN | ACK, RST))
        payload = r.randbytes(r.choice((0, 1, 2, 33, 400, 1301)))
        d = self.dress(f)
        out = dict(d, ttl=d["ttl"] - 1)
        inner = ip(f, server, NODE[f], proto, transport(
            f, server, NODE[f], proto, bport, port, flags, payload), **d)
        if not stray and not self.over(key):
            want = self.frame(ip(f, VIP[f], src, proto, transport(
                f, VIP[f], src, proto, dport, sport, flags, payload), **out),
                OURS, k.way)
            return self.frame(inner, BACK.format(1)), \
                ("reply", key, flags, want)
        if (f, proto, server, bport, port) in self.taken and \
                not self.over(self.taken[f, proto, server, bport, port]):
            return self.reply()         # somebody else's, by chance
        return self.frame(inner, BACK.format(1)), ("pass", key)

    def error(self):
        """Of a router, to the VIP or to our address, about a live flow."""
        r, key = self.rng, self.known_key()
        f, proto, src, sport, dport = key
        if self.over(key):
            return self.forward()
        k, far = self.flows[key], "203.0.113.77" if f == 4 else "2001:db8:7::7"
        bport, server = SERVICES[proto, dport], BACKEND[FIRST[f]]
        cut = r.choice((8, 9, 16, 18, 19, 30, 500))
        payload, d = r.randbytes(40), self.dress(f)
        q = dict(self.dress(f), ttl=9)
        q.pop("options", None)
        back = r.random() < .5
        outside = (VIP[f], src, dport, sport)   # as the client knows it
        inside = (server, NODE[f], bport, k.port)
        if back:        # the client's own packet, translated
            outside = (src, VIP[f], sport, dport)
            inside = (NODE[f], server, k.port, bport)
        outside, inside = (
            ip(f, a, b, proto, transport(f, a, b, proto, x, y, ACK, payload),
               **q)[:(20 if f == 4 else 40) + cut]
            for a, b, x, y in (outside, inside))
        out = dict(d, ttl=d["ttl"] - 1)
        n = 1 if f == 4 else 58
        if back:
            inner = ip(f, far, NODE[f], n, icmp(f, far, NODE[f], inside), **d)
            want = self.frame(ip(f, VIP[f], src, n, icmp(
                f, VIP[f], src, outside), **out), OURS, k.way)
            return self.frame(inner, BACK.format(1)), ("error", key, want)
        inner = ip(f, far, VIP[f], n, icmp(f, far, VIP[f], outside), **d)
        want = self.frame(ip(f, NODE[f], server, n, icmp(
            f, NODE[f], server, inside), **out), OURS, BACK.format(FIRST[f]))
        return self.frame(inner, ROUTER), ("error", key, want)

    # ---- what became of one -----------------------------------------------

    def judge(self, sent, what, action, out):
        kind = what[0]
        self.count[kind] = self.count.get(kind, 0) + 1
        if kind == "pass":
            assert (action, out) == (2, sent), f"{what}: {action}"
            return
        assert action == TX, f"{what[:3]}: action {action}: {sent.hex()}"
        if kind == "error":
            assert out == what[2], show(what, sent, out, what[2])
            return
        if kind == "reply":
            _, key, flags, want = what
            assert out == want, show(what, sent, out, want)
            self.flows[key].replied = True
            self.follow(key, flags)
            return
        _, key, flags, way, expect = what
        self.went(key, flags, way, out)
        want = expect(self.flows[key].port)
        assert out == want, show(what, sent, out, want)

    def went(self, key, flags, way, out):
        """A packet of a client: of a flow that is known, or begins."""
        f, proto, src, sport, dport = key
        at = 14 + ((out[14] & 15) * 4 if f == 4 else 40)
        port = int.from_bytes(out[at:at + 2], "big")
        k = self.flows.get(key)
        new = self.over(key) or (k.closing and proto == TCP and
                                 flags & (SYN | ACK) == SYN)
        if k is None:
            assert 16384 <= port < 32768, port
            place = (f, proto, BACKEND[FIRST[f]], SERVICES[proto, dport], port)
            owner = self.taken.get(place)
            assert owner is None, f"{place}: {key} and {owner}"
            h = flow_hash(Program.KEY, short(src), short(VIP[f]),
                          struct.pack(">HH", sport, dport), proto)
            assert any(port == 16384 + ((h >> 32) + (h | 1) * t) % 16384
                       for t in range(32)), port
            self.taken[place] = key
            self.flows[key] = Known(port, way, self.tick)
        elif new:
            assert port == k.port, "another port"
            self.flows[key] = Known(port, way, self.tick)
        else:
            k.way = way
            if proto == TCP and not flags & (SYN | RST) and k.replied:
                k.established = True
        self.follow(key, flags)

    def follow(self, key, flags):
        k = self.flows[key]
        k.used = self.tick
        if key[1] != TCP:
            return
        if flags & (FIN | RST):
            k.closing = True
        elif flags & PSH:
            k.closing = False


def show(what, sent, out, want):
    at = next((i for i, (a, b) in enumerate(zip(out, want)) if a != b),
              min(len(out), len(want)))
    return f"{what[:3]}: differs at byte {at} of {len(out)}, {len(want)}\n" \
        f"  sent {sent[:120].hex()}\n  got  {out[:120].hex()}\n" \
        f"  want {want[:120].hex()}"



def run_random(p):
    rng = random.Random(SEED)
    ref = Reference(p, rng)
    ref.clock(0)
    left = PACKETS
    while left > 0:
        made, keys = [], set()
        while len(made) < BATCH:
            one = rng.choice((ref.forward, ref.forward, ref.reply, ref.reply,
                              ref.error))()
            if one[1][1] in keys:   # what it becomes depends on the one before
                break
            keys.add(one[1][1])
            made.append(one)
        answers = p.ask(*("run " + frame.hex() for frame, _ in made),
                        "count reasons 0 1")[:-1]
        for (frame, what), answer in zip(made, answers):
            action, *out = answer.split()
            ref.judge(frame, what, int(action), bytes.fromhex("".join(out)))
        left -= len(made)
        if rng.random() < .3:
            ref.clock(rng.choice((1, 1, 3, 8, 15, 71)))
    p.catch_up()
    for kind in ("forward", "reply", "error", "pass"):
        # of the rarest there are 300 in 6000, give or take 50
        assert ref.count[kind] > PACKETS // 200, ref.count
    return f"seed {SEED}: " + ", ".join(
        f"{n} {k}" for k, n in sorted(ref.count.items()))


def main():
    tap = Tap()
    for engine in sys.argv[1:] or ("bpf", "host"):
        p = None

        def load():
            nonlocal p
            p = Program(engine, nat=16384)
            build(p)

        def many():
            if p is None:
                raise Skip("not loaded")
            return run_random(p)

        tap.case(f"{engine}: loads", load)
        tap.case(f"{engine}: {PACKETS} packets, seed {SEED}", many)
        if p:
            tap.case(f"{engine}: ends well", p.close)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
