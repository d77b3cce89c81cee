#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The limits at their real size, on one node: what they take is printed, what is
held of it is wide, since others use this machine, too. Minutes, and gigabytes of
memory, so not in make check."""

import os
import pathlib
import re
import shutil
import sys
import time

import node
from node import check, run, wait

FAR = """
import socket, struct, sys, time
vip, port = sys.argv[1], int(sys.argv[2])
take = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
take.bind(("eth0", 0x0800))
take.settimeout(0.001)
send = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inner = socket.inet_aton(vip)
end = time.monotonic() + 120
print("ready", flush=True)
while time.monotonic() < end:
    try:
        send.sendto(b"x", (vip, port))
        p = take.recv(65536)
    except OSError:
        continue
    if p[9] == 4 and p[36:40] == inner:
        print(time.monotonic(), socket.inet_ntoa(p[16:20]), flush=True)
        break
"""
# Of 1000 services, 100 pools of 100 backends: on 2 CPUs, each of which counts.
BUDGET_MB = 160 + 2 * (os.cpu_count() - 2)
TICK = 6                # seconds, after which xlbd has looked at all again
TICKS = os.sysconf("SC_CLK_TCK")
LIMITS = (  # what is at its limit in `xlb check`, and one above it
    ("services", 4096, "more than 4096 services"),
    ("listeners", 16384, "more than 16384 listeners"),
    ("pools", 1024, "more than 1024 pools"),
    ("backends", 16383, "more than 16383 backends"),
    ("checks", 1024, "more than 1024 checks"),
    ("targets", 65536, "more than 65536"),
    ("interfaces", 64, "more than 64 interfaces"),
    ("neighbors", 64, "more than 64 neighbors"),
    ("name", 63, "then up to 62 letters"),
    ("table_size", 1048573, "is not in 251..1048573"),
    ("entries", 1 << 28, "is not in 1024..268435456"),
)


def address(i, first=96):
    """The ith of the backends, all behind one next hop."""
    return f"10.{first + (i >> 16)}.{i >> 8 & 255}.{i & 255}"


def vip(i):
    return f"198.18.{i >> 8}.{i & 255}"


def config(services=1, pools=1, backends=100, first=96, maglev="", more="",
           down=-1):
    """`backends` in each pool; the pool of service i is i modulo their number."""
    lines = ["node: {name: n}", "interfaces: [{name: eth0}]",
             f"maglev: {{{maglev}}}", "bgp: {local_as: 65001, hold: 0s, linger: "
             "0s, graceful_shutdown: 0s}", more, "pools:"]
    for p in range(pools):
        lines += [f"  p{p}:", "    backends:"]
        lines += [f"      - {{name: b{b}, address: "
                  f"{address(p * backends + b, first)}"
                  f"{', state: down' if p * backends + b == down else ''}}}"
                  for b in range(backends)]
    lines.append("services:")
    lines += [f"  - {{name: s{s}, addresses: [{vip(s)}], listen: [udp/80], "
              f"pool: p{s % pools}}}" for s in range(services)]
    return "\n".join([*lines, "metrics: {listen: off}\n"])


# ---- what it takes -------------------------------------------------------

def took(fn, *argv):
    start = time.monotonic()
    result = fn(*argv)
    return time.monotonic() - start, result


def resident(pid):
    """MB of xlbd and its helpers, but for mapped maps; what is shared counts
    once."""
    total, todo = 0, [pid]
    for p in todo:
        todo += [int(c) for t in os.listdir(f"/proc/{p}/task") for c in
                 pathlib.Path(f"/proc/{p}/task/{t}/children").read_text()
                 .split()]
        of_map = False
        for line in pathlib.Path(f"/proc/{p}/smaps").open(encoding="utf-8"):
            if re.match("[0-9a-f]+-", line):
                of_map = "bpf-map" in line
            elif line.startswith("Pss:") and not of_map:
                total += int(line.split()[1])
    return total / 1024


def cpu_ms(pid):
    field = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    return sum(int(x) for x in field.split()[11:13]) * 1000 / TICKS


def maps(pid):
    """MB that the kernel holds for the maps that xlbd has open."""
    found = {}
    for f in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = f.read_text()
        except OSError:
            continue
        number = re.search(r"^map_id:\s+(\d+)", text, re.M)
        if number:
            found[number[1]] = int(re.search(r"^memlock:\s+(\d+)", text,
                                             re.M)[1])
    return sum(found.values()) / (1 << 20)


def memory(n):
    return (f"{resident(n.xlbd.pid):.0f} MB in processes, "
            f"{maps(n.xlbd.pid):.0f} MB in maps")


class Far:
    """Sends to a service until one of its packets comes back in a tunnel."""

    def __init__(self, n, service, port=80):
        self.log = n.dir / f"far{service}"
        with open(self.log, "wb") as out:
            self.p = n.start_far_to(out, "/usr/bin/python3", "-c", FAR,
                                    vip(service), str(port))
        wait("the sender", lambda: "ready" in self.log.read_text())

    def first(self, since):
        """Seconds until then, and the backend."""
        self.p.wait(120)
        at, backend = self.log.read_text().split()[1:]
        return float(at) - since, backend


class Scale(node.Node):
    def __init__(self):
        super().__init__()
        run("ip", "-n", self.ns, "route", "add", "10.96.0.0/11", "via",
            "10.0.1.254")
        run("ip", "-n", self.far, "route", "add", "198.18.0.0/15", "via",
            "10.0.1.1")
        # a pair takes frames of a native program if the peer has one
        self.pins = self.bpf.with_name(self.bpf.name + "far")
        self.pins.mkdir()
        run("bpftool", "prog", "loadall",
            node.BUILD / "tests/fabric/veth.bpf.o", self.pins)
        run("nsenter", f"--net=/run/netns/{self.far}", "--", "bpftool", "net",
            "attach", "xdpdrv", "pinned", self.pins / "xlbf_pass", "dev",
            "eth0")

    def end(self):
        super().end()
        shutil.rmtree(self.pins, ignore_errors=True)

    def start_far_to(self, out, *argv):
        return self._start(["nsenter", f"--net=/run/netns/{self.far}", "--",
                            *argv], out=out)

    def write(self, **kw):
        self.file.write_text(config(**kw))

    def checked(self):
        """Seconds of `xlb check`, and what it says."""
        seconds, (rc, out, err) = took(self.xlb, "check", self.file)
        check(rc == 0, err)
        return seconds, out.strip().rpartition(": ok: ")[2]

    def begin(self, service=0):
        """From nothing; seconds to the first packet, and to all of it."""
        far = Far(self, service)
        start = time.monotonic()
        self.start_xlbd(ready=False)
        first, backend = far.first(start)
        wait("xlbd to be ready", lambda: self.xlb("status")[0] == 0, 60)
        return first, backend

    def reload(self, *more):
        seconds, (rc, out, err) = took(self.xlb, "reload")
        check(rc == 0, "reload:", rc, out, err)
        return seconds

    def pool(self, name="p0"):
        return next(p for p in self.status()["pools"] if p["name"] == name)


# ---- cases ---------------------------------------------------------------

def thousand(n):
    n.write(services=1000, pools=100, backends=100)
    seconds, what = n.checked()
    print(f"# {what}: check {seconds:.2f} s")
    first, _ = n.begin(999)
    print(f"# first packet {first:.2f} s after the start; {memory(n)}")
    since = len(n.said())
    time.sleep(TICK)
    check("maps:" not in n.said()[since:], n.said()[since:])
    print(f"# when all has settled: {memory(n)}")
    check(resident(n.xlbd.pid) + maps(n.xlbd.pid) <= BUDGET_MB, memory(n))
    check(first < 30, "first packet")
    same = min(n.reload() for _ in range(3))
    one, cpu = [], cpu_ms(n.xlbd.pid)
    for i in range(10):
        n.write(services=1000, pools=100, backends=100,
                down=5042 if i % 2 == 0 else -1)
        one.append(n.reload())
    cpu = (cpu_ms(n.xlbd.pid) - cpu) / len(one)
    check(n.pool("p50")["backends"][42]["state"] == "active", "what changed")
    print(f"# reload: {same * 1000:.0f} ms of the same, {min(one) * 1000:.0f} "
          f"to {max(one) * 1000:.0f} ms with one backend down or up, of which "
          f"xlbd computes {cpu:.0f}")
    check(max(one) < 5, "reload")
    n.xlbd.kill()
    n.xlbd.wait()
    first, _ = n.begin(1)
    check(first < 1, "packets waited for xlbd", first)
    print(f"# killed, begun again: {memory(n)}")


def services(n):
    n.write(services=4096, pools=4, backends=10)
    seconds, what = n.checked()
    first, _ = n.begin(4095)
    print(f"# {what}: check {seconds:.2f} s, first packet of the last service "
          f"{first:.2f} s after the start; {memory(n)}")
    n.write(services=1, pools=4, backends=10)
    away = n.reload()
    n.write(services=4096, pools=4, backends=10)
    back = n.reload()
    print(f"# all but one removed: {away:.2f} s; put back: {back:.2f} s")
    Far(n, 4095).first(time.monotonic())


def backends(n):
    """Numbers of those that go are free when no flow names them any more: so
    many can be replaced at once as there are numbers for."""
    n.write(services=16, pools=16, backends=1000)
    seconds, what = n.checked()
    first, _ = n.begin(15)
    print(f"# {what}: check {seconds:.2f} s, first packet {first:.2f} s after "
          f"the start; {memory(n)}")
    n.write(services=16, pools=16, backends=1000, first=112)
    rc, _, err = n.xlb("reload")
    check(rc == 3 and "16000 new and 16000 that are there, which go last, are "
          "more than 16383: make the change in two steps" in err, rc, err)
    check(n.pool()["backends"][0]["address"] == address(0), "not as before")
    Far(n, 15).first(time.monotonic())
    # half of them at once, as often as somebody likes
    n.write(services=16, pools=16, backends=511)
    wait("the others to go", lambda: n.xlb("reload")[0] == 0)
    for first in (112, 96):
        n.write(services=16, pools=16, backends=511, first=first)
        start = time.monotonic()
        wait("numbers", lambda: n.xlb("reload")[0] == 0, 90)
        waited, seconds = time.monotonic() - start, n.reload()
        _, backend = Far(n, 15).first(time.monotonic())
        check(backend.startswith(f"10.{first}."), backend)
        print(f"# {16 * 511} replaced by as many: after {waited:.1f} s there "
              f"were numbers, reload {seconds:.2f} s")


def ring(n):
    """The largest, and as many as make sense of it."""
    largest = "table_size: 1048573"
    for pools in (1, 64):
        n.write(services=pools, pools=pools, backends=100, maglev=largest)
        first, _ = n.begin(pools - 1)
        n.write(services=pools, pools=pools, backends=100, maglev=largest,
                down=42)
        seconds = n.reload()
        used = n.pool()["backends"]
        check(sum(b["slots"] for b in used) == 1048573 and
              used[42]["slots"] == 0, "slots")
        print(f"# {pools} rings of 1048573 slots: first packet {first:.2f} s "
              f"after the start, reload with one backend down {seconds:.2f} s; "
              f"{memory(n)}")
        n.stop_xlbd()


def free_mb():
    text = pathlib.Path("/proc/meminfo").read_text()
    return int(re.search(r"^MemAvailable:\s+(\d+)", text, re.M)[1]) >> 10


def flow_table(n):
    """As large as there is, or as half of the memory takes: by a reload, and at
    a start."""
    entries = 1 << 28
    while entries * 8 >> 20 > free_mb() // 2:
        entries >>= 1
    table = f"flow_table: {{entries: {entries}}}"
    n.write()
    n.begin()
    n.write(more=table)
    start = time.monotonic()
    n.reload()
    wait("the table to be there", lambda: maps(n.xlbd.pid) > entries * 8 >> 20,
         120)
    grown = time.monotonic() - start
    Far(n, 0).first(time.monotonic())
    n.stop_xlbd()
    first, _ = n.begin()
    print(f"# {entries} flow entries: {grown:.1f} s to grow to them from 1048576,"
          f" first packet {first:.2f} s after a start with them; {memory(n)}")


def write_limit(kind, k):
    """A configuration that has `k` of them."""
    head = "interfaces: [{name: eth0}]\n"
    pool = "pools: {p: {backends: [{name: a, address: 10.0.0.1}]}}\n"
    service = ("  - {{name: s{0}, addresses: [{1}], listen: [{2}], pool: p}}\n")
    if kind == "services":
        return head + pool + "services:\n" + "".join(
            service.format(i, vip(i), "tcp/80") for i in range(k))
    if kind == "listeners":     # 64 ports on each address
        return head + pool + "services:\n" + "".join(
            service.format(i, vip(i), ", ".join(
                f"tcp/{p + 1}" for p in range(min(64, k - i * 64))))
            for i in range((k + 63) // 64))
    if kind == "pools":
        return "pools:\n" + "".join(f"  p{i}: {{}}\n" for i in range(k))
    if kind == "backends":
        return "pools:\n  p:\n    backends:\n" + "".join(
            f"      - {{name: b{i}, address: {address(i)}}}\n"
            for i in range(k))
    if kind == "checks":
        return "checks:\n" + "".join(
            f"  c{i}: {{type: tcp, port: 80}}\n" for i in range(k))
    if kind == "targets":       # 4096 backends on 16 ports, and one more
        more = k - 65536
        return head + ("checks: {c: {type: tcp, via: direct}}\npools:\n  p:\n"
                       "    check: c\n    backends:\n") + "".join(
            f"      - {{name: b{i}, address: {address(i)}}}\n"
            for i in range(4096)) + (
            "  q: {check: c, backends: [{name: z, address: 10.127.0.1}]}\n"
            if more else "") + "services:\n" + service.format(
            0, vip(0), ", ".join(f"tcp/{p + 1}" for p in range(16))) + (
            service.format(1, vip(1), "tcp/1").replace("pool: p", "pool: q")
            if more else "")
    if kind == "interfaces":
        return "interfaces:\n" + "".join(f"  - {{name: e{i}}}\n"
                                         for i in range(k))
    if kind == "neighbors":
        return "bgp:\n  local_as: 1\n  neighbors:\n" + "".join(
            f"    - {{address: 10.0.0.{i + 1}, as: 1}}\n" for i in range(k))
    if kind == "name":
        return f"pools: {{{'p' * k}: {{}}}}\n"
    if kind == "table_size":
        return f"maglev: {{table_size: {k}}}\n"
    return f"flow_table: {{entries: {k}}}\n"


def one_above(n):
    for kind, most, says in LIMITS:
        for k in (most, most + 1):
            n.file.write_text(write_limit(kind, k))
            rc, out, err = n.xlb("check", n.file)
            errors = [line for line in err.splitlines()
                      if ": warning: " not in line]
            if k == most:
                check(rc == 0 and not errors, kind, k, rc, err[:500])
            else:
                check(rc == 3 and says in err, kind, k, rc, err[:500])


CASES = (
    ("what fits is taken, one above each limit is refused", one_above),
    ("1000 services, 100 pools of 100 backends", thousand),
    ("4096 services", services),
    ("16000 backends, and half of the most replaced at once", backends),
    ("the largest ring", ring),
    ("the largest flow table", flow_table),
)


if __name__ == "__main__":
    node.Node = Scale
    sys.exit(node.main(CASES))
