# SPDX-License-Identifier: GPL-2.0-or-later
"""The packet program with tables of its own, filled from what xlb_abi.h says
and not with its code; hashes and checksums are written here once more."""

import functools
import os
import socket
import struct
import subprocess
import sys
import time
import traceback

REASONS = """forward forward_prev forward_pinned echo icmp_error too_big
    nat_reply not_vip vip_local no_service no_backend malformed
    fragment_unknown martian too_big_no_df too_big_rate no_neighbor
    encap_failed nat_exhausted""".split()
PASSED = ("not_vip", "vip_local")
DROP, PASS, TX, REDIRECT = 1, 2, 3, 4
TCP, UDP = 6, 17
ROWS = 65536
GONE = 0xffffffff
# where things are in struct xlb_tables
SETTINGS, VIPS = 0, 192
RING_SLOTS = 4224	# bytes before a ring's slots
SERVICES = VIPS + ROWS * 32
FILTER = SERVICES + ROWS * 16
BACKENDS = FILTER + ROWS // 8
NEXTHOPS = BACKENDS + 16384 * 32
WANTED = NEXTHOPS + 16384 * 64      # of struct xlb_event_filter
SOURCES = WANTED + 16480 + 8192
DOORS = SOURCES + 64 * 16
BACKEND_PORTS = DOORS + 64 * 64
LISTENING = 144     # in struct xlb_settings
LOCAL, ANY_TCP, ANY_UDP, VIP_SOURCE = 1, 2, 4, 8
OWN = 1 << 31       # in a VIP's id
GUE, L2, NAT, SOURCE, DATAGRAM, LOOKUP = 1, 2, 3 | 32, 4, 8, 16
MEMBER, KEEPS = 1, 2
FLOW_STATS = """insert evict_unconfirmed evict_confirmed skip_budget cas_lost
    full sampled unknown""".split()
M64 = (1 << 64) - 1


def wire(address):
    """16 bytes, IPv4 as ::ffff:a.b.c.d."""
    if ":" in address:
        return socket.inet_pton(socket.AF_INET6, address)
    return bytes(10) + b"\xff\xff" + socket.inet_aton(address)


def short(address):
    return wire(address)[0 if ":" in address else 12:]


def siphash(key, message, c=2, d=4):
    """SipHash-c-d after the paper; test_hash.c has its vectors."""
    def rotate(x, b):
        return (x << b | x >> 64 - b) & M64

    def rounds(v, n):
        for _ in range(n):
            v[0] = v[0] + v[1] & M64
            v[1] = rotate(v[1], 13) ^ v[0]
            v[0] = rotate(v[0], 32)
            v[2] = v[2] + v[3] & M64
            v[3] = rotate(v[3], 16) ^ v[2]
            v[0] = v[0] + v[3] & M64
            v[3] = rotate(v[3], 21) ^ v[0]
            v[2] = v[2] + v[1] & M64
            v[1] = rotate(v[1], 17) ^ v[2]
            v[2] = rotate(v[2], 32)

    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
         k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573]
    pad = message + bytes(7 - len(message) % 8) + bytes([len(message) & 255])
    for (m,) in struct.iter_unpack("<Q", pad):
        v[3] ^= m
        rounds(v, c)
        v[0] ^= m
    v[2] ^= 0xff
    rounds(v, d)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


@functools.lru_cache
def hash_words(key):
    """Of NH and of the mixing, as struct xlb_hash has them."""
    number = [siphash(key, struct.pack("<Q", i)) for i in range(18)]
    return [w & 0xffffffff for w in number[:10]], [w | 1 for w in number[16:]]


def flow_hash(key, src, dst=b"", ports=bytes(4), proto=0):
    """NH after RFC 4418, section 5.2.3, then the mixing; of wire bytes."""
    word, odd = hash_words(key)
    data = src + (dst or bytes(len(src))) + ports + bytes([proto, 0, 0, 0])
    m = [w[0] for w in struct.iter_unpack("<I", data)]
    h = sum((m[i] + word[i] & 0xffffffff) * (m[i + 1] + word[i + 1] & 0xffffffff)
            for i in range(0, len(m), 2)) & M64
    for k in odd:
        h = (h ^ h >> 32) * k & M64
    return h ^ h >> 32


def checksum_ok(header):
    """RFC 1071, byte by byte."""
    total = 0
    for i in range(0, len(header), 2):
        total += header[i] * 256 + header[i + 1]
    while total > 0xffff:
        total = total % 65536 + total // 65536
    return total == 0xffff


def vip_hash(address):
    w = [int.from_bytes(wire(address)[i:i + 4], sys.byteorder)
         for i in range(0, 16, 4)]
    h = (w[1] << 32 | w[0]) * 0x9e3779b97f4a7c15 & M64
    h ^= w[3] << 32 | w[2]
    return (h * 0xd6e8feb86659fd93 & M64) >> 48


def service_key(vip, proto, port):
    return 1 << 63 | vip << 24 | proto << 16 | port


def service_hash(key):
    return (key * 0x9e3779b97f4a7c15 & M64) >> 48


class Skip(Exception):
    pass


class Event:
    """A record of the map `events`."""

    def __init__(self, b):
        self.at, src, dst, self.sport, self.dport, self.ifindex, self.len, \
            self.cpu, self.service, self.backend, reason, self.readers, \
            self.proto, flags, pad = struct.unpack("=Q16s16sHHIIIHHBBBBQ", b)
        assert pad == 0
        self.sport, self.dport = (socket.ntohs(x)
                                  for x in (self.sport, self.dport))
        self.src, self.dst = (
            socket.inet_ntoa(x[12:]) if x[:12] == wire("0.0.0.0")[:12] else
            socket.inet_ntop(socket.AF_INET6, x) for x in (src, dst))
        self.reason = REASONS[reason]
        self.ip, self.begins = bool(flags & 1), bool(flags & 2)

    def __repr__(self):
        return str(vars(self))


class Program:
    """One loaded program. send() checks what holds for every packet: exactly
    one reason, and the counters that belong to it."""

    KEY = bytes(range(0x10, 0x20))

    def __init__(self, engine, ring_size=251, frags=False, flows=1024,
                 nat=1024):
        self.engine = engine
        self.ring_size = ring_size
        self.flow_sets = flows // 8
        self.nat_rows = nat
        # to another kernel: tests/vm
        talk = os.environ.get("XLB_TALK", "").split() if engine == "bpf" else []
        self.process = subprocess.Popen(
            [*talk, os.environ.get("top_builddir", ".") + "/tests/prog/run_" +
             engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.slow = bool(talk)
        answer = self.ask(f"open {ring_size} {int(frags)} {flows} {nat}")
        if answer.startswith("skip"):
            raise Skip(answer[5:])
        assert answer.startswith("ok"), answer
        self.insns, self.verified = (int(n) for n in answer.split()[1:])
        self.vip_rows, self.service_rows, self.filter = {}, {}, {}
        self.settings()
        self.reasons = [0] * len(REASONS)

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=20) == 0, "the runner failed"

    def ask(self, *lines):
        """All at once: a process switch costs more than a packet."""
        self.process.stdin.write("\n".join(lines) + "\n")
        self.process.stdin.flush()
        answers = []
        for line in lines:
            answer = self.process.stdout.readline().strip()
            assert answer and not answer.startswith("failed"), \
                f"{line[:60]}: {answer or 'the runner is gone'}"
            answers.append(answer)
        return answers if len(lines) > 1 else answers[0]

    def on_cpus(self, cpus):
        """Packets come there."""
        os.sched_setaffinity(self.process.pid, cpus)

    def put(self, offset, data):
        """Into struct xlb_tables."""
        self.ask(f"put tables {offset} {data.hex()}")

    def settings(self, source4=None, source6=None, tunnel_mtu=0, surge=0,
                 budget=1 << 30):
        """Prefixes as (address, length)."""
        s = struct.pack("=IIQ", 5, self.ring_size, 0) + self.KEY
        for prefix, bits in ((source4, 32), (source6, 128)):
            address, mask = bytes(bits // 8), bytes(bits // 8)
            if prefix:
                address = short(prefix[0])
                mask = ((1 << bits - prefix[1]) - 1).to_bytes(bits // 8, "big")
            s += address + mask
        word, odd = hash_words(self.KEY)
        self.put(SETTINGS, s + struct.pack("=IHHII10I2Q", tunnel_mtu, 6080,
                                           surge, budget, 0, *word, *odd))

    def vip(self, address, number, flags=0, at=None, known=True):
        row = vip_hash(address) if at is None else at
        while row in self.vip_rows and self.vip_rows[row] != address:
            row = (row + 1) % ROWS
        self.vip_rows[row] = address
        self.put(VIPS + row * 32, wire(address) +
                 struct.pack("=IIQ", number, flags, 0))
        word = vip_hash(address) // 64
        if known:
            self.filter[word] = self.filter.get(word, 0) | \
                1 << vip_hash(address) % 64
            self.put(FILTER + word * 8,
                     struct.pack("=Q", self.filter[word]))
        return row

    def service(self, vip, proto, port, number, ring, flags=0, old=None):
        key = service_key(vip, proto, port)
        row = service_hash(key)
        while row in self.service_rows and self.service_rows[row] != key:
            row = (row + 1) % ROWS
        self.service_rows[row] = key
        old = ring if old is None else old
        word = number | ring << 16 | old << 32 | flags << 48
        self.put(SERVICES + row * 16, struct.pack("=QQ", key, word))

    def ring(self, number):
        self.ask(f"ring {number}")
        self.ask(f"slot {number} 0 " +
                 struct.pack("=II", 0, self.ring_size).hex())

    def active(self, number, half):
        self.ask(f"slot {number} 0 " + struct.pack("=I", half).hex())

    def slots(self, number, words, half=0):
        assert len(words) == self.ring_size
        self.ask(f"slot {number} {RING_SLOTS + half * 4 * self.ring_size} " +
                 struct.pack(f"={len(words)}I", *words).hex())

    def member(self, number, backends):
        """What backends are to the ring's pool: MEMBER, KEEPS."""
        words = [0] * 1024
        for backend, bits in backends.items():
            words[backend // 16] |= bits << backend % 16 * 2
        self.ask(f"slot {number} 128 " +
                 struct.pack("=1024I", *words).hex())

    def slots_all(self, number, backend):
        self.slots(number, [backend] * self.ring_size)

    def backend(self, number, address, hop, sources=()):
        self.put(BACKENDS + number * 32, wire(address) +
                 struct.pack("=IIQ", hop, 0, sum(1 << n for n in sources)))

    def source(self, number, address, flags=None):
        """NAT sends from it; `flags`: it is a VIP, too."""
        self.put(SOURCES + number * 16, wire(address))
        if flags is None:
            self.vip(address, OWN | 1 + number, VIP_SOURCE, known=False)

    def door(self, number, ifindex, mac, mtu=1500):
        self.put(DOORS + number * 64, bytes(8) +
                 bytes.fromhex(mac.replace(":", "")) +
                 struct.pack("=HII", mtu, ifindex, 1) + bytes(40))

    def backend_port(self, service, port):
        self.put(BACKEND_PORTS + service * 2, struct.pack("=H", port))

    def nat_rows_get(self):
        """What is in the table: (row number, fields)."""
        data = b"".join(bytes.fromhex(self.ask(
            f"peek nat {at} {min(4096, self.nat_rows * 64 - at)}"))
            for at in range(0, self.nat_rows * 64, 4096))
        rows = {}
        for i in range(self.nat_rows):
            word, ports, back, backend, source, door, peer, mac, client, vip = \
                struct.unpack("=Q4s4sHBBI8s16s16s", data[i * 64:i * 64 + 64])
            if word:
                rows[i] = dict(
                    word=word, tick=word & 0x7ffff, flags=word >> 24 & 255,
                    ports=struct.unpack(">HH", ports),
                    back=struct.unpack(">HH", back), backend=backend,
                    source=source, door=door, peer=peer, mac=mac,
                    client=client, vip=vip)
        return rows

    def nat_row_put(self, number, offset, data):
        self.ask(f"put nat {number * 64 + offset} {data.hex()}")

    def hop(self, number, mac, src_mac, src, ifindex=1, mtu=1500, vlan=0,
            gateway=None):
        data = bytes(8)
        if mac:
            data = bytes.fromhex(mac.replace(":", "")) + \
                struct.pack(">H", vlan)
        data += bytes.fromhex(src_mac.replace(":", "")) + \
            struct.pack("=HII", mtu, ifindex, 1) + wire(src) + \
            (wire(gateway) if gateway else bytes(16)) + bytes(8)
        assert len(data) == 64
        self.put(NEXTHOPS + number * 64, data)

    def catch_up(self):
        """After an assertion: what was counted by then is no packet's."""
        self.reasons = [int(x) for x in
                        self.ask(f"count reasons 0 {len(REASONS)}").split()]

    def split(self, head):
        """So many bytes of a frame are in its first buffer."""
        answer, counts = self.ask(f"split {head}",
                                  f"count reasons 0 {len(REASONS)}")
        if answer != "ok":
            raise Skip("this kernel splits no frames (Linux 6.18 does)")
        self.reasons = [int(x) for x in counts.split()]

    def run(self, frame, service=0, backend=1):
        """Action, frame, reason, and counters of a service and a backend."""
        out, *counts = self.ask(
            "run " + bytes(frame).hex(), f"count reasons 0 {len(REASONS)}",
            f"count service {service} 3",
            f"count backend {backend} 2")
        reasons, s, b = ([int(x) for x in c.split()] for c in counts)
        action, *out = out.split()
        action, out = int(action), bytes.fromhex("".join(out))
        assert action >= 0, f"run: {os.strerror(-action)}"
        grown = {REASONS[i]: n - self.reasons[i]
                 for i, n in enumerate(reasons) if n != self.reasons[i]}
        self.reasons = reasons
        assert list(grown.values()) == [1], f"counted as {grown}"
        reason = list(grown)[0]
        if reason in PASSED:
            assert action == PASS and out == bytes(frame), \
                f"{reason}: touched"
        elif reason in ("echo", "too_big"):
            assert action == TX, f"{reason}: action {action}"
        elif reason.startswith("forward") or reason in ("icmp_error",
                                                        "nat_reply"):
            assert action in (TX, REDIRECT), f"{reason}: action {action}"
        else:
            assert action == DROP, f"{reason}: action {action}"
        return action, out, reason, s, b

    def watch(self, service=0, backend=1):
        """Counters as they are before a packet."""
        s, b = self.ask(f"count service {service} 3",
                        f"count backend {backend} 2")
        return [int(x) for x in s.split()], [int(x) for x in b.split()]

    def expect(self, frame, reason, service=None):
        """Ends in `reason`, and in the drops of that service, no other's."""
        s0, b0 = self.watch(service or 0)
        _, _, got, s, b = self.run(frame, service or 0)
        assert got == reason, f"{got}, not {reason}: {bytes(frame).hex()}"
        s0[2] += service is not None
        assert (s0, b0) == (s, b), f"counters {s0}, {b0} -> {s}, {b}"

    def forward(self, frame, service, backend, length, action=TX,
                why="forward"):
        """Forwarded and counted; the frame as it went out."""
        s0, b0 = self.watch(service, backend)
        got, out, reason, s, b = self.run(frame, service, backend)
        assert reason == why, f"{reason}: {bytes(frame).hex()}"
        assert got == action, f"action {got}, not {action}"
        assert s == [s0[0] + 1, s0[1] + length, s0[2]], f"{s0} -> {s}"
        assert b == [b0[0] + 1, b0[1] + length], f"not backend {backend}"
        return out


    def answer(self, frame, reason, service=None):
        """Answered, and counted as no service's packet; what was sent."""
        s0, b0 = self.watch(service or 0)
        _, out, got, s, b = self.run(frame, service or 0)
        assert got == reason, f"{got}, not {reason}: {bytes(frame).hex()}"
        s0[2] += service is not None
        assert (s0, b0) == (s, b), f"counters {s0}, {b0} -> {s}, {b}"
        return out

    def bulk(self, frames, reason):
        """The same reason for all; what was sent."""
        sent = []
        for i in range(0, len(frames), 100):
            some = frames[i:i + 100]
            sent += [bytes.fromhex(x.split()[1]) for x in self.ask(
                *("run " + x.hex() for x in some), "count reasons 0 1")[:-1]]
        now = [int(x) for x in
               self.ask(f"count reasons 0 {len(REASONS)}").split()]
        self.reasons[REASONS.index(reason)] += len(frames)
        assert now == self.reasons, f"{now}, not {self.reasons}"
        return sent

    def listen(self, ticks):
        """For so many units of the lease from now on; None: nobody does."""
        until = 0 if ticks is None else (time.monotonic_ns() >> 30) + ticks
        self.put(LISTENING, struct.pack("=I", until))

    def reader(self, bit, reasons=(), new_flow=False, services=None, one_in=1):
        """What one reader wants, beside what others do."""
        if not hasattr(self, "wanted"):
            self.wanted = bytearray(32 + 4 + 32 + 16384 + 28)
        w = self.wanted
        for i in range(32):
            is_in = REASONS[i] in reasons if i < len(REASONS) else \
                i == 31 and new_flow
            w[i] = w[i] & ~(1 << bit) | is_in << bit
        w[32] = w[32] & ~(1 << bit) | (services is None) << bit
        struct.pack_into("=I", w, 36 + 4 * bit, one_in - 1)
        for i in range(16384):
            w[68 + i] = w[68 + i] & ~(1 << bit) | \
                (services is not None and i in services) << bit
        self.put(WANTED, bytes(w))

    def events(self):
        """All that were told since the last time."""
        got = []
        while True:
            record = self.ask("event 72")
            if record == "none":
                return got
            got.append(Event(bytes.fromhex(record)))

    def age(self, src, dst, ident, proto, seconds):
        """Makes the memory of a first fragment older."""
        key = wire(src) + wire(dst) + ident + bytes([proto, 0, 0, 0])
        value = self.ask(f"get fragments {key.hex()}")
        assert value != "none", "not remembered"
        value = bytearray.fromhex(value)
        at, = struct.unpack_from("=Q", value, 16)
        struct.pack_into("=Q", value, 16, at - seconds * 10**9 & M64)
        self.ask(f"set fragments {key.hex()} {value.hex()}")


class Tap:
    """Cases are functions of a Program; each is run for each engine."""

    def __init__(self):
        self.n = self.bad = 0

    def case(self, name, function, *arguments):
        self.n += 1
        try:
            note = function(*arguments)
            print(f"ok {self.n} - {name}{': ' + note if note else ''}")
        except Skip as why:
            print(f"ok {self.n} - {name} # SKIP {why}")
        except Exception:
            self.bad += 1
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            print(f"not ok {self.n} - {name}")
        sys.stdout.flush()

    def end(self):
        print(f"1..{self.n}")
        return 1 if self.bad else 0
