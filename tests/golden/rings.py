#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring algorithm a second time, written from its description: prints
rings.txt, which the unit test of maglev.c must reproduce. Nodes agree on rings
without talking, so a change of the output is a new major version.

usage: rings.py > rings.txt"""
import ipaddress

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
WALK = 32


def mix(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def step(h, k):
    return mix((h + k * GOLDEN) & MASK)


def below(h, n):
    return (h >> 32) * n >> 32


def addr_bytes(text):
    a = ipaddress.ip_address(text)
    return a.packed if a.version == 6 else bytes(10) + b"\xff\xff" + a.packed


def addr_hash(b, seed):
    h = mix((seed + GOLDEN) & MASK)
    h = mix(h ^ int.from_bytes(b[:8], "big"))
    return mix(h ^ int.from_bytes(b[8:], "big"))


def shares(members, seed, size):
    total = sum(w for _, w in members)
    share = [w * size // total for _, w in members]
    line = sorted(range(len(members)), key=lambda i: (
        -(members[i][1] * size % total), addr_hash(members[i][0], seed), i))
    for i in line[:size - sum(share)]:
        share[i] += 1
    return share


def primary(members, seed, size):
    if not members:
        return [None] * size
    hashes = [addr_hash(b, seed) for b, _ in members]
    pos = [below(step(h, 1), size) for h in hashes]
    skip = [1 + below(step(h, 2), size - 1) for h in hashes]
    left = shares(members, seed, size)
    heaviest = max(w for _, w in members)
    credit = [0] * len(members)
    ring = [None] * size
    free = size
    while free:
        for i, (_, weight) in enumerate(members):
            credit[i] += weight
            if credit[i] < heaviest or left[i] == 0:
                continue
            credit[i] -= heaviest
            while ring[pos[i]] is not None:
                pos[i] = (pos[i] + skip[i]) % size
            ring[pos[i]] = i
            left[i] -= 1
            free -= 1
    return ring


def neg_log2(h):
    h |= 1
    lead = 64 - h.bit_length()
    f = (h << lead << 1 & MASK) >> 33
    poly = 9848 - (f * 2969 >> 31)
    poly = 17622 - (f * poly >> 31)
    poly = 28983 - (f * poly >> 31)
    f += (f * (2**31 - f) >> 31) * poly >> 16
    return (lead + 1 << 31) - f


def rendezvous(members, up, seed, draw):
    best = least = None
    for i in up:
        b, weight = members[i]
        cost = neg_log2(mix(addr_hash(b, seed) ^ draw))
        if best is None or cost * members[best][1] < least * weight:
            best, least = i, cost
    return best


def eligible(members, ring, seed, down):
    size = len(ring)
    up = [i for i in range(len(members)) if i not in down]
    if not up:
        return [None] * size
    walk, out = mix(seed), []
    for slot, who in enumerate(ring):
        for k in range(WALK):
            if who not in down:
                break
            who = ring[below(step(walk, slot * (WALK + 1) + k), size)]
        if who in down:
            who = rendezvous(members, up, seed,
                             step(walk, slot * (WALK + 1) + WALK))
        out.append(who)
    return out


def fingerprint(members, ring):
    total = 0
    for slot, who in enumerate(ring):
        h = 0 if who is None else addr_hash(members[who][0], 0)
        total = total + step(h, slot) & MASK
    return step(total, len(ring))


CASES = [
    # size, seed, members, which of them (sorted by address) are down
    (251, 0, "10.0.1.11*100 10.0.1.12*100 10.0.1.13*100", "1"),
    (251, 0, "10.0.1.11*100 10.0.1.12*50 2001:db8:1::13*25", "0,2"),
    (251, 7, "10.0.1.11*100 10.0.1.12*100 10.0.1.13*100", "0"),
    (251, 2**64 - 1, "192.0.2.1*1", ""),
    (251, 0, "192.0.2.1*1 192.0.2.2*1", "0,1"),
    (251, 0, "", ""),
    (1009, 0, "10.0.0.1*1000 10.0.0.2*3 10.0.0.3*1", "0"),
    (4093, 42, " ".join("10.1.%d.%d*%d" % (i // 8, i % 8, 1 + i * 7 % 20)
                        for i in range(64)), ",".join(
                            str(i) for i in range(64) if i not in (5, 40))),
    (65537, 0, "10.0.1.11*100 10.0.1.12*50", "1"),
    (65537, 0, " ".join("2001:db8::%x*100" % i for i in range(1, 101)),
     "3,14,15,92,65,35,89,79,32,38"),
]


def main():
    print("# Made by rings.py, from the description alone; see there.")
    for size, seed, text, down in CASES:
        members = sorted((addr_bytes(a), int(w)) for a, w in
                         (m.split("*") for m in text.split()))
        out = {int(d) for d in down.split(",") if d}
        ring = primary(members, seed, size)
        moved = eligible(members, ring, seed, out)
        print("ring %d %d %016x %016x down %s members %s" % (
            size, seed, fingerprint(members, ring),
            fingerprint(members, moved), down or "-", text or "-"))
        if size == 251:
            for name, r in ("primary", ring), ("owner", moved):
                print(name, " ".join("-" if i is None else str(i) for i in r))


main()
