#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""NAT by a running node: the example of manual and guide that gives TCP to the
backend as it is and UDP by NAT, word for word, its addresses too; what is said of a
flow, by the next xlbd, too, and that nothing is left when there is no NAT any more;
and a pass over its table, beside which xlbd has to answer and packets to go on.

XLB_NAT_FLOWS=1000000 for a table of so many flows (300000)."""

import json
import os
import random
import shutil
import socket
import struct
import sys
import time

try:
    from scapy.all import IP, TCP, UDP, Ether, Raw
except ImportError:
    print("1..0 # SKIP scapy is missing (Debian: python3-scapy)")
    sys.exit(0)

import net
import node
from node import VIP, check, wait

sys.path.append(os.path.join(os.environ.get("top_srcdir", "."), "tests/doc"))
import examples  # noqa: E402
from pinned import SYS_BPF, Tables, address, map_open  # noqa: E402

NODE, BACKEND, CLIENT = "10.0.1.1", "10.0.1.11", "198.51.100.7"
ROUTER = "02:00:00:00:00:fe"    # that clients' packets come by
FLOWS = int(os.environ.get("XLB_NAT_FLOWS", "300000"))
ROW = struct.Struct("<QIIHBBIQ16s16s")
FORWARD, REPLY, ESTABLISHED = 1 << 24, 1 << 25, 1 << 28
GONE, TICK, LIVE = 1 << 31, 0x7ffff, 1677
PAUSE = 10                      # ms


class Wire:
    """What leaves the node towards the far side, and frames from there."""

    def __init__(self, n):
        # a pair takes frames of a native program if the peer has one
        pins = n.bpf.with_name(n.bpf.name + "far")
        pins.mkdir()
        try:
            node.run("bpftool", "prog", "loadall",
                     node.BUILD / "tests/fabric/veth.bpf.o", pins)
            node.run("nsenter", f"--net=/run/netns/{n.far}", "--", "bpftool",
                     "net", "attach", "xdpdrv", "pinned", pins / "xlbf_pass",
                     "dev", "eth0", "overwrite")
        finally:
            shutil.rmtree(pins)
        # checksums that are whole when the program sees them
        node.run("nsenter", f"--net=/run/netns/{n.far}", "--", "ethtool", "-K",
                 "eth0", "tx", "off")
        with net.inside(n.far):
            self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.s.bind(("eth0", 3))
        self.s.settimeout(5)
        link = node.run("ip", "-n", n.ns, "-o", "link", "show", "eth0").stdout
        self.mac = link.split("link/ether ")[1].split()[0]

    def send(self, packet):
        self.s.send(bytes(Ether(src=ROUTER, dst=self.mac) / packet))

    def next(self, what, wanted):
        """The first frame of the node's that is `wanted`."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                raw = self.s.recv(2048)
            except socket.timeout:
                break
            frame = Ether(raw)
            if frame.src == self.mac and IP in frame and wanted(frame[IP]):
                return frame
        raise RuntimeError(f"did not come: {what}")


def sums_are_right(packet):
    """As scapy makes them anew."""
    again = IP(bytes(packet))
    for layer in (IP, TCP, UDP):
        if layer in again:
            del again[layer].chksum
    check(bytes(again) == bytes(packet), again.show2(dump=True))


def usable(n):
    n.start_xlbd()
    wait("the backends", lambda: all(
        b["eligible"] for b in n.status()["pools"][0]["backends"]))


def example(document):
    found = ["\n".join(lines) + "\n" for kind, lines in
             examples.blocks(document) if kind == "yaml" and
             "forward: nat" in "\n".join(lines)]
    check(len(found) == 1, document, found)
    return found[0]


def hybrid(n, document, port):
    n.file.write_text(example(document))
    usable(n)
    wire, text = Wire(n), b"who are you"
    tcp = IP(src=CLIENT, dst=VIP) / TCP(sport=40000, dport=443, flags="S")
    tcp = IP(bytes(tcp))
    wire.send(tcp)
    got = wire.next("TCP by the tunnel", lambda p: p.dst == BACKEND)[IP]
    check(got.proto == 4 and got.src == NODE, got.show(dump=True))
    check(bytes(got.payload) == bytes(tcp), got.show(dump=True))

    with net.inside(n.far):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((BACKEND, port))
    server.settimeout(5)
    wire.send(IP(src=CLIENT, dst=VIP) / UDP(sport=40000, dport=443) / text)
    got = wire.next("UDP by NAT", lambda p: p.dst == BACKEND)[IP]
    check(UDP in got and got.src == NODE, got.show(dump=True))
    check(16384 <= got[UDP].sport < 32768 and got[UDP].dport == port,
          got.show(dump=True))
    sums_are_right(got)
    data, peer = server.recvfrom(100)
    check((data, peer) == (text, (NODE, got[UDP].sport)), data, peer)
    server.sendto(b"a backend", peer)
    frame = wire.next("the reply", lambda p: p.dst == CLIENT)
    got = frame[IP]
    check(frame.dst == ROUTER and got.src == VIP, frame.show(dump=True))
    check((got[UDP].sport, got[UDP].dport) == (443, 40000) and
          bytes(got[UDP].payload)[:9] == b"a backend", frame.show(dump=True))
    sums_are_right(got)
    server.close()


def hybrid_of_the_manual(n):
    hybrid(n, "man/xlb.yaml.5", 8443)


def hybrid_of_the_guide(n):
    hybrid(n, "doc/guide.md", 443)


def port_of(n, wire, sport):
    """By which the node asks the backend for this flow."""
    wire.send(IP(src=CLIENT, dst=VIP) / UDP(sport=sport, dport=443) / b"x")
    return wire.next("a packet", lambda p: p.dst == BACKEND)[UDP].sport


def told_by_the_next(n):
    n.file.write_text(example("doc/guide.md"))
    usable(n)
    wire = Wire(n)
    port = port_of(n, wire, 42000)

    def told():
        rc, out, err = n.xlb("lookup", "--json", "udp", f"{CLIENT}:42000",
                             f"{VIP}:443")
        check(rc == 0, err)
        found = json.loads(out)
        check(found["backend"] == "web1" and
              found["nat"]["source"] == f"{NODE}:{port}" and
              found["nat"]["port"] == 443, out)
        none = json.loads(n.xlb("lookup", "--json", "udp", f"{CLIENT}:42001",
                                f"{VIP}:443")[1])
        check(none["backend"] == "web1" and not none["nat"], none)

    told()
    n.xlbd.kill()
    n.xlbd.wait()
    usable(n)
    told()
    check(port_of(n, wire, 42000) == port, "another port")
    wait("the flow in the list", lambda: any(
        f["source_port"] == 42000 for f in node.ask.xlbd(
            n.dir / "run", "flows", client=CLIENT)["found"]), 30)


def own_addresses(n):
    """That packets for NAT come to, as the kernel's tables have them."""
    t = Tables(n.bpf)
    found = {address(r[:16]) for r in t.rows("vip").values()}
    t.close()
    return found - {VIP}


def nothing_is_left(n):
    n.file.write_text(example("doc/guide.md"))
    usable(n)
    check(own_addresses(n) == {NODE}, own_addresses(n))
    text = [x for x in n.file.read_text().splitlines() if "nat" not in x]
    n.file.write_text("\n".join(text) + "\n")
    rc, _, err = n.xlb("reload")
    check(rc == 0, err)
    wait("the node's address to go", lambda: own_addresses(n) == set(), 60)
    wait("a plan with nothing to do", lambda: n.xlb("diff", "--exit-code")[0]
         == 0, 30)


class Table:
    """The rows of NAT, half of them full: of two flows one is past its life."""

    def __init__(self, n, rows):
        self.rows, self.map = rows, map_open(n.bpf / "nat", 64 * rows, True)
        self.tick = time.clock_gettime_ns(time.CLOCK_BOOTTIME) >> 32
        self.old = [4 * i for i in range(1, rows // 4, rows // 256)]
        word = memoryview(self.map).cast("Q")
        kind = FORWARD | ESTABLISHED, REPLY | ESTABLISHED
        for i in range(FLOWS):
            age = 1 if i % 2 else LIVE + 10
            at = 4 * i
            if word[8 * at + 5] or word[8 * at + 13]:
                continue        # with a client: the flow whose packets go on
            for k in (1, 0):
                ROW.pack_into(
                    self.map, 64 * (at + k), random.getrandbits(32) << 32 |
                    kind[k] | (self.tick - age) & TICK, i, 0, 1, 0, 0,
                    at + 1 - k, 0, b"", b"")
        self.word = word
        self.old = [8 * 4 * i for i in range(0, FLOWS, FLOWS // 100 // 2 * 2)
                    if not self.gone(8 * 4 * i)]

    def gone(self, at):
        return self.word[at] == 0 or bool(self.word[at] & GONE)

    def ended(self):
        """How many of a hundred rows that are past their life."""
        return sum(map(self.gone, self.old))

    def close(self):
        self.word.release()
        self.map.close()


class Turns:
    """Requests to xlbd, each with a packet of a flow before it: how long it took,
    and how long xlbd itself was on a processor meanwhile, ms."""

    def __init__(self, n, wire):
        self.n, self.wire = n, wire
        self.stat = open(f"/proc/{n.xlbd.pid}/schedstat", encoding="ascii")
        self.packet = bytes(Ether(src=ROUTER, dst=wire.mac) / IP(
            src=CLIENT, dst=VIP) / UDP(sport=41000, dport=443) / b"again")
        self.last = self.spent()

    def spent(self):
        self.stat.seek(0)
        return int(self.stat.read().split()[0]) / 1e6

    def forwarded(self):
        """Until the packet has come back, to the backend."""
        begun = time.monotonic()
        self.wire.s.send(self.packet)
        while b"again" not in (got := self.wire.s.recv(2048)) or \
                got[:6] == self.packet[:6]:
            pass
        return 1000 * (time.monotonic() - begun)

    def one(self):
        gap, begun = self.forwarded(), time.monotonic()
        node.ask.xlbd(self.n.dir / "run", "fingerprint")
        took, now = 1000 * (time.monotonic() - begun), self.spent()
        spent, self.last = now - self.last, now
        return gap, took, spent


def show(what, turns):
    columns = [sorted(t[i] for t in turns) for i in range(3)]
    print(f"# {what}: {len(turns)} turns; a packet's way, an answer, xlbd's own "
          "time, ms, the middle and the longest: " + ", ".join(
              f"{c[len(c) // 2]:.2f} {c[-1]:.2f}" for c in columns), flush=True)
    return columns


def one_pass(turns, table, quiet):
    """What is not as it ought to be while one pass goes on; None: nothing. `quiet`:
    turns without one."""
    busy, end = [], time.monotonic() + 60
    if len(table.old) < 90 or table.ended() > 0:
        return "one was begun before"
    turns.one()
    while (ended := table.ended()) < len(table.old):
        (busy if ended > 0 else quiet).append(turns.one())
        check(time.monotonic() < end, "no pass has ended", ended)
    if len(busy) < 3 or len(quiet) < 100:
        return f"asked {len(quiet)} and {len(busy)} times alone"
    quiet, busy = show("no pass", quiet), show("a pass", busy)
    if busy[2][-1] >= PAUSE:
        return f"xlbd did {busy[2][-1]:.1f} ms between two answers"
    # by the wall clock neighbours count, too: as much as they did before
    for i, what in ((0, "a packet"), (1, "an answer")):
        if busy[i][-1] >= max(PAUSE, 2 * quiet[i][-1]):
            return f"{what} took {busy[i][-1]:.1f} ms"
    return None


def pass_beside_the_loop(n):
    """Who asks may have to wait for a processor, and does not see what xlbd does
    between two answers then: so one pass of five has to be without a pause."""
    rows = 1 << (4 * FLOWS - 1).bit_length()
    n.file.write_text(example("doc/guide.md") +
                      f"flow_table: {{entries: {rows}}}\n")
    usable(n)
    turns, quiet, why = Turns(n, Wire(n)), [], []
    turns.forwarded()
    while len(why) < 5 and None not in why:
        table = Table(n, rows)
        why.append(one_pass(turns, table, quiet))
        table.close()
    check(None in why, *why)


def main():
    return node.main([hybrid_of_the_manual, hybrid_of_the_guide,
                      told_by_the_next, nothing_is_left, pass_beside_the_loop], why=None if SYS_BPF else
                     "does not know this machine's number of bpf(2)")


if __name__ == "__main__":
    sys.exit(main())
