# SPDX-License-Identifier: GPL-2.0-or-later
"""The flow table as xlb_abi.h describes it, from the outside: a packet's entry is
found by its bytes, and read and written in the program's memory."""

import struct
import time

from rig import FLOW_STATS, M64, Program, flow_hash, short
from test_xlb import IP, IPv6, TCP, Tcp, UDP, Udp

WAYS = 8
TICK = 1 << 32          # ns
AGES = 1 << 15
LIVE, SESSION, OPENING, KNOWN, FIRM = 838, 28, 14, 20117, 210
WINDOW = 1 << 26        # ns
SLOT_LOOKUP = 0x8000


def slot_word(cur, lookup=False, prev=0):
    return cur | (SLOT_LOOKUP if lookup else 0) | prev << 16


class Entry:
    def __init__(self, backend, confirmed=False, closing=False, age=0):
        self.backend, self.confirmed = backend, bool(confirmed)
        self.closing, self.age = bool(closing), age

    def __eq__(self, other):
        return isinstance(other, Entry) and self.__dict__ == other.__dict__

    def __repr__(self):
        return f"{self.backend}{' confirmed' * self.confirmed}" \
            f"{' closing' * self.closing} age {self.age}"


def flow_of(inner, source=False):
    """Hash of the 5-tuple, and the hash that selects the slot."""
    l3 = (IP if inner[0] >> 4 == 4 else IPv6)(inner)
    l4 = l3[Tcp] if Tcp in l3 else l3[Udp]
    flow = flow_hash(Program.KEY, short(l3.src), short(l3.dst), struct.pack(
        ">HH", l4.sport, l4.dport), TCP if Tcp in l3 else UDP)
    select = flow_hash(Program.KEY, short(l3.src)) if source else flow
    return flow, select >> 32


def sampled(flow, jiffies):
    x = (flow + jiffies * 0x9e3779b1) & 0xffffffff
    x = ((x ^ x >> 15) * 0x85ebca6b) & 0xffffffff
    return x >> 28 == 0


class Flows:
    """The table of one program, and its clock where that can be set."""

    def __init__(self, p):
        self.p = p
        self.ns = (1 << 40) + 12345     # 256 ticks and a little
        self.jiffies = 1000
        self.model = self.clock()
        self.surge = self.budget = None
        self.settings(0, 1 << 30)
        self.clear()
        self.counters = self.read_counters()

    def settings(self, surge=0, budget=1 << 30):
        self.p.settings(surge=surge, budget=budget)
        if budget:
            self.next_jiffy()

    def clock(self):
        return self.p.ask(f"clock {self.ns} {self.jiffies}") == "ok"

    def advance(self, ns=0, jiffies=0):
        assert self.model
        self.ns += ns
        self.jiffies += jiffies or -(-ns // 4_000_000)
        self.clock()

    def next_jiffy(self):
        """A used-up budget is known until then."""
        if self.model:
            self.advance(jiffies=1)
        else:
            time.sleep(0.012)       # HZ is 100 or more

    def now(self):
        """What the program's clock says, there where it runs."""
        return self.ns if self.model else int(self.p.ask("now"))

    def tick(self):
        return self.now() >> 32

    def awake(self, inner, want, source=False):
        """Moves the model clock to where the flow is sampled, or is not."""
        while sampled(flow_of(inner, source)[0], self.jiffies) != want:
            self.jiffies += 1
        self.clock()

    def settle(self):
        """Lets the kernel's clock turn first, if it soon will."""
        left = TICK - self.now() % TICK
        if not self.model and left < 10**9:
            time.sleep(left / 1e9)

    def clear(self):
        self.settle()
        size = self.p.flow_sets * 64
        self.p.ask(f"put flows 0 {bytes(size).hex()}")

    def place(self, inner, source=False):
        """Number of the set, and the tag."""
        flow, select = flow_of(inner, source)
        return flow & self.p.flow_sets - 1, \
            select & 0xffffff00 | flow >> 32 & 0xff

    def words(self, row):
        return list(struct.unpack("=8Q", bytes.fromhex(
            self.p.ask(f"peek flows {row * 64} 64"))))

    def all(self):
        """Every word that is not empty."""
        data = self.p.ask(f"peek flows 0 {self.p.flow_sets * 64}")
        return [w for w, in struct.iter_unpack("=Q", bytes.fromhex(data)) if w]

    def entry_of(self, word):
        return Entry(word & 0x7fff, word >> 15 & 1, word >> 16 & 1,
                     (self.tick() - (word >> 17)) % AGES)

    def entries(self, inner, source=False):
        """The flow's; more than one would be a fault."""
        row, tag = self.place(inner, source)
        return [self.entry_of(w) for w in self.words(row)
                if w >> 32 == tag and w]

    def word(self, entry, tag):
        return tag << 32 | (self.tick() - entry.age) % AGES << 17 | \
            entry.closing << 16 | entry.confirmed << 15 | entry.backend

    def put(self, inner, entry, source=False):
        """In the place of the flow's own, if it has one."""
        self.settle()
        row, tag = self.place(inner, source)
        way = next((i for i, w in enumerate(self.words(row))
                    if w >> 32 == tag), 3)
        self.p.ask(f"put flows {row * 64 + way * 8} " + struct.pack(
            "=Q", self.word(entry, tag) if entry else 0).hex())

    def fill(self, inner, entries):
        """The flow's set, with other flows' entries."""
        self.settle()
        row, tag = self.place(inner)
        words = [self.word(e, tag ^ (i + 1) << 8) if e else 0
                 for i, e in enumerate(entries)]
        self.p.ask(f"put flows {row * 64} " + struct.pack("=8Q", *words).hex())

    def read_counters(self):
        return [int(x) for x in self.p.ask(
            f"count flow_stats 0 {len(FLOW_STATS)}").split()]

    def grown(self):
        now = self.read_counters()
        grown = {k: b - a for k, a, b in zip(FLOW_STATS, self.counters, now)
                 if b != a}
        self.counters = now
        return grown
