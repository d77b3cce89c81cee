# SPDX-License-Identifier: GPL-2.0-or-later
"""Pinned maps, read and edited in place, as bpf/xlb_abi.h lays them out."""

import ctypes
import errno
import ipaddress
import mmap
import os
import pathlib
import platform
import struct

LOOKUP, UPDATE, DELETE, NEXT, OBJ_GET, INFO = 1, 2, 3, 4, 7, 15
SYS_BPF = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
ROWS, NUMBERS = 65536, 16384
# name: offset in struct xlb_tables, bytes of a row, rows
PART = {"settings": (0, 192, 1), "vip": (192, 32, ROWS),
        "service": (2097344, 16, ROWS), "backend": (3154112, 32, NUMBERS),
        "nexthop": (3678400, 64, NUMBERS)}
TABLES_BYTES = 4743456
SETTINGS_WANTED = 144   # what follows is no part of what is wanted
RING_HEAD, MEMBERS = 4224, 128
VALID = 1 << 63
GONE = 0xffffffff
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attr):
    buf = ctypes.create_string_buffer(attr)
    got = libc.syscall(SYS_BPF, command, buf, len(attr))
    if got < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return got


def obj_get(path):
    """A descriptor of what is pinned there."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    return bpf(OBJ_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))


def map_open(path, size, write=False):
    """The first bytes of a mmapable array, as the kernel changes them."""
    fd = obj_get(path)
    try:
        return mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | (
            mmap.PROT_WRITE if write else 0))
    finally:
        os.close(fd)


def info(path, size=80):
    """The kernel's words about a pinned map, program or link."""
    fd = obj_get(path)
    out = ctypes.create_string_buffer(size)
    try:
        bpf(INFO, struct.pack("=IIQ", fd, size, ctypes.addressof(out)))
    finally:
        os.close(fd)
    return out.raw


def link_info(path):
    """(id, id of the program, ifindex) of an XDP link."""
    raw = info(path)
    return (*struct.unpack_from("=II", raw, 4), *struct.unpack_from(
        "=I", raw, 16))


class Map:
    """A map whose values are asked for one by one."""

    def __init__(self, path):
        self.fd = obj_get(path)
        raw = ctypes.create_string_buffer(80)
        bpf(INFO, struct.pack("=IIQ", self.fd, 80, ctypes.addressof(raw)))
        self.key_size, self.value_size = struct.unpack_from("=II", raw, 8)

    def _do(self, command, key, out=None):
        key = ctypes.create_string_buffer(key) if key is not None else None
        bpf(command, struct.pack(
            "=IIQQQ", self.fd, 0, ctypes.addressof(key) if key else 0,
            ctypes.addressof(out) if out is not None else 0, 0))

    def keys(self):
        key = None
        while True:
            out = ctypes.create_string_buffer(self.key_size)
            try:
                self._do(NEXT, key, out)
            except OSError as e:
                if e.errno == errno.ENOENT:
                    return
                raise
            key = out.raw
            yield key

    def get(self, key):
        out = ctypes.create_string_buffer(self.value_size)
        self._do(LOOKUP, key, out)
        return out.raw

    def put(self, key, value):
        self._do(UPDATE, key, ctypes.create_string_buffer(value))

    def delete(self, key):
        self._do(DELETE, key)

    def close(self):
        os.close(self.fd)


def map_keys(path):
    m = Map(path)
    try:
        return sorted(m.keys())
    finally:
        m.close()


def map_delete(path, key):
    m = Map(path)
    try:
        m.delete(key)
    finally:
        m.close()


def address(raw):
    a = ipaddress.IPv6Address(raw)
    return str(a.ipv4_mapped or a)


class Tables:
    """Rows by their place: {number: bytes} of those that are in use."""

    def __init__(self, pins):
        self.mem = map_open(pathlib.Path(pins) / "tables", TABLES_BYTES, True)

    def row(self, part, i, new=None):
        at, size, _ = PART[part]
        if new is not None:
            self.mem[at + i * size:at + (i + 1) * size] = new
        return self.mem[at + i * size:at + (i + 1) * size]

    def rows(self, part):
        at, size, n = PART[part]
        none = bytes(size)
        text = self.mem[at:at + n * size]
        out = {i: text[i * size:(i + 1) * size] for i in range(n)
               if text[i * size:(i + 1) * size] != none}
        if part == "vip":
            return {i: r for i, r in out.items() if struct.unpack_from(
                "=I", r, 16)[0] not in (0, GONE)}
        if part == "service":
            return {i: r for i, r in out.items() if struct.unpack_from(
                "=Q", r)[0] & VALID}
        return out

    def erase(self, part, i):
        self.row(part, i, bytes(PART[part][1]))

    def close(self):
        self.mem.close()


class Ring:
    def __init__(self, pins, number):
        path = pathlib.Path(pins) / "rings" / str(number)
        with map_open(path, 4096) as head:
            self.size = struct.unpack_from("=I", head, 4)[0]
        self.mem = map_open(path, RING_HEAD + 12 * self.size, True)
        self.pool = self.mem[8:72].split(b"\0")[0].decode()

    def half(self):
        active = struct.unpack_from("=I", self.mem)[0] & 1
        return RING_HEAD + 4 * self.size * active

    def words(self):
        at = self.half()
        return struct.unpack(f"={self.size}I",
                             self.mem[at:at + 4 * self.size])

    def word_put(self, i, word):
        struct.pack_into("=I", self.mem, self.half() + 4 * i, word)

    def members(self):
        """{number of a backend: what it is to the pool}."""
        words = struct.unpack_from("=1024I", self.mem, MEMBERS)
        return {n: words[n // 16] >> n % 16 * 2 & 3 for n in range(NUMBERS)
                if words[n // 16] >> n % 16 * 2 & 3}

    def close(self):
        self.mem.close()


def ring_numbers(pins):
    return sorted(int(p.name) for p in (pathlib.Path(pins) / "rings").iterdir()
                  if p.name.isdigit())


def nexthop(row):
    """All that makes one, by content."""
    return {"mac_vlan": row[:8].hex(), "src_mac": row[8:14].hex(),
            "mtu": struct.unpack_from("=H", row, 14)[0],
            "ifindex": struct.unpack_from("=I", row, 16)[0],
            "src": address(row[24:40]), "gateway": address(row[40:56])}


def rings_dump(pins, backend):
    """Who has each slot and what the members are, by address. What a ring
    remembers of before (LOOKUP, owners before, those who were members) is no
    part of what it is."""
    out = {}
    for number in ring_numbers(pins):
        r = Ring(pins, number)
        words = r.words()
        out[r.pool] = {
            "slots": [backend.get(w & 0x7fff, "-") for w in words],
            "members": {backend[n]: bits for n, bits in sorted(
                r.members().items()) if n in backend and bits & 2}}
        r.close()
    return out


def slots_before(pins):
    """How many slots remember an owner before."""
    n = 0
    for number in ring_numbers(pins):
        try:
            r = Ring(pins, number)
        except FileNotFoundError:   # an old one, just now
            continue
        n += sum(w >> 16 & 0x7fff != 0 for w in r.words())
        r.close()
    return n


def state_dump(pins):
    """What the maps of an xlbd say, without the numbers by which rows name each
    other: two that were told the same give the same."""
    pins = pathlib.Path(pins)
    t = Tables(pins)
    settings = t.row("settings", 0)
    vip = {struct.unpack_from("=I", r, 16)[0]: r
           for r in t.rows("vip").values()}
    hop = {n: nexthop(r) for n, r in t.rows("nexthop").items()
           if struct.unpack_from("=I", r, 20)[0] & 1}
    live = {n: r for n, r in t.rows("backend").items()
            if not struct.unpack_from("=I", r, 20)[0] & 1}
    backend = {n: address(r[:16]) for n, r in live.items()}
    pool = {}
    for number in ring_numbers(pins):
        r = Ring(pins, number)
        pool[number] = r.pool
        r.close()
    service = {}
    for r in t.rows("service").values():
        key, word = struct.unpack("=QQ", r)
        v = vip.get(key >> 24 & 0xffffffff)
        service[f"{address(v[:16]) if v else '?'} {key >> 16 & 0xff} "
                f"{key & 0xffff}"] = {
            "pool": pool.get(word >> 16 & 0xffff, "?"),
            "flags": word >> 48 & 0xffef}
    out = {
        # without flags: a surge of unknown flows is none of the node's making
        "settings": (settings[:78] + settings[80:SETTINGS_WANTED]).hex(),
        "vips": {address(r[:16]): struct.unpack_from("=I", r, 20)[0]
                 for r in vip.values()},
        "services": service,
        "backends": {address(r[:16]): hop.get(struct.unpack_from(
            "=I", r, 16)[0]) for r in live.values()},
        "rings": rings_dump(pins, backend),
        "ports": [struct.unpack("=I", k)[0]
                  for k in map_keys(pins / "tx_ports")],
        "health": [f"{address(k[:16])} {address(k[16:32])} "
                   f"{struct.unpack_from('=H', k, 32)[0]}"
                   for k in map_keys(pins / "health")],
        "attached": sorted(p.name for p in (pins / "links").iterdir())}
    t.close()
    return out


def checked(dump):
    """Each member of a pool has a verdict on each address of its services: one
    that is not known yet has no row."""
    have = {tuple(row.split()[:2]) for row in dump["health"]}
    return all((member, name.split()[0]) in have
               for name, service in dump["services"].items()
               for member in dump["rings"][service["pool"]]["members"])


def differences(a, b, at=""):
    """Where two dumps differ, a line each."""
    if isinstance(a, dict) and isinstance(b, dict):
        return [x for k in sorted({*a, *b}, key=str) for x in differences(
            a.get(k, "(nothing)"), b.get(k, "(nothing)"), f"{at}/{k}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        n = sum(x != y for x, y in zip(a, b))
        return [f"{at}: {n} of {len(a)} differ"] if n else []
    return [] if a == b else [f"{at}: {str(a)[:200]} <> {str(b)[:200]}"]
