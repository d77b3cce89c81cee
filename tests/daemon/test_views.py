#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a running node shows: xlb events tells what packets do to those who read,
to each what it asked for, and nothing is told when nobody reads; lists and
counters are what doc/json.md says."""

import ctypes
import functools
import json
import operator
import os
import re
import signal
import socket
import struct
import sys
import threading
import time

import node
from node import VIP, ask, check, wait

from pinned import SYS_BPF, map_open  # noqa: E402

LISTENING = 144     # in struct xlb_settings
FILTER = 4726976    # in struct xlb_tables: for each reason, a bit of each reader
REASONS = 32
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def up(n, **kw):
    n.configure(**kw)
    n.start_xlbd()
    wait("the backends", lambda: all(
        b["eligible"] for b in n.status()["pools"][0]["backends"]))


def enter(fd):
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class Client:
    """Packets from the far namespace, made there and sent whenever."""

    def __init__(self, n):
        self.ns = n.far
        node.run("ip", "-n", n.far, "route", "replace", f"{VIP}/32", "via",
                 "10.0.1.1")

    def send(self, ports, kind=socket.SOCK_STREAM, count=1, sport=0,
             source="10.0.1.254"):
        """A SYN, or a datagram, to each port."""
        here = os.open("/proc/self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.ns}", os.O_RDONLY)
        enter(there)
        try:
            for port in ports:
                for _ in range(count):
                    with socket.socket(socket.AF_INET, kind) as s:
                        s.setblocking(False)
                        if sport:
                            s.bind((source, sport))
                        try:
                            s.connect((VIP, port))
                            if kind == socket.SOCK_DGRAM:
                                s.send(b"x" * 20)
                        except BlockingIOError:
                            pass
        finally:
            enter(here)
            os.close(here)
            os.close(there)


def readers(n):
    """How many there are, as the program knows them."""
    with map_open(n.bpf / "tables", FILTER + 4096) as tables:
        bits = tables[FILTER:FILTER + REASONS]
    return functools.reduce(operator.or_, bits).bit_count()


class Reader:
    """xlb events --json, and what it has said."""

    def __init__(self, n, *args):
        before = readers(n)
        self.n = n
        self.p = n.xlb_start("events", "--json", *args)
        self.got = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        wait("the program to be told", lambda: readers(n) > before and
             listening(n) != 0)

    def read(self):
        for line in self.p.stdout:
            self.got.append(json.loads(line))

    def wait_for(self, what, fn):
        try:
            wait(what, lambda: any(fn(e) for e in list(self.got)))
        except RuntimeError as e:
            raise RuntimeError(f"{e}; there is {self.got[:20]}") from e
        return next(e for e in self.got if fn(e))

    def close(self, sig=signal.SIGTERM):
        before = readers(self.n)
        self.p.send_signal(sig)
        self.p.wait(60)
        wait("the program to be told", lambda: readers(self.n) < before)


def listening(n):
    """The word that the program looks at."""
    with map_open(n.bpf / "tables", 4096) as tables:
        return struct.unpack_from("=I", tables, LISTENING)[0]


def documented(section="events"):
    """The examples of doc/json.md."""
    text = (node.SRC / "doc/json.md").read_text()
    text = text[text.index(f"\n## {section}\n"):]
    return [json.loads(x) for x in re.findall(r"```json\n(.*?)```", text,
                                              re.S)]


@node.leaves_xlbd
def said_as_it_happens(n):
    up(n)
    client = Client(n)
    check(listening(n) == 0, "somebody listens")
    r = Reader(n)
    client.send([80, 81])
    flow = r.wait_for("a new flow", lambda e: e["event"] == "new_flow")
    drop = r.wait_for("a drop", lambda e: e["event"] == "drop")
    check(set(flow) == set(drop) == set(documented()[0]), flow)
    check(flow["schema"] == 1 and flow["reason"] == "forward" and
          (flow["service"], flow["pool"]) == ("www", "web") and
          flow["backend"] in ("a", "b") and flow["protocol"] == "tcp" and
          (flow["destination"], flow["destination_port"]) == (VIP, 80) and
          flow["source"].startswith("10.0.1.") and flow["length"] >= 40 and
          flow["interface"] == "eth0", flow)
    check(drop["reason"] == "no_service" and drop["service"] is None and
          drop["backend"] is None and drop["destination_port"] == 81, drop)
    seconds = time.time() - time.mktime(time.strptime(
        flow["time"][:19], "%Y-%m-%dT%H:%M:%S")) + time.timezone
    check(-1 < seconds < 120, "time", flow["time"], seconds)
    r.close()
    wait("the end of listening", lambda: listening(n) == 0, 3)


@node.leaves_xlbd
def each_gets_its_own(n):
    up(n, listen="tcp/80, udp/53")
    client = Client(n)
    drops = Reader(n, "--reason", "no_service")
    flows = Reader(n, "--service", "www", "--reason", "new_flow")
    client.send([80, 81])
    client.send([53], socket.SOCK_DGRAM)
    drops.wait_for("the drop", lambda e: e["destination_port"] == 81)
    flows.wait_for("the flow", lambda e: e["destination_port"] == 80)
    client.send([82, 80])
    drops.wait_for("the drop", lambda e: e["destination_port"] == 82)
    time.sleep(0.2)
    check({e["reason"] for e in list(drops.got)} == {"no_service"}, drops.got)
    check({e["event"] for e in list(flows.got)} == {"new_flow"}, flows.got)
    flows.close(signal.SIGKILL)
    client.send([83])
    drops.wait_for("what comes after that",
                   lambda e: e["destination_port"] == 83)
    drops.close(signal.SIGKILL)
    wait("the end of listening", lambda: listening(n) == 0, 3)


@node.leaves_xlbd
def a_rare_one_among_many(n):
    """Thousands of others a second do not hide a single drop."""
    up(n, listen="tcp/80, udp/53")
    client = Client(n)
    rare = Reader(n, "--reason", "no_service")
    every = Reader(n, "--sample", "1")
    client.send([53], socket.SOCK_DGRAM, count=4000)
    client.send([81])
    rare.wait_for("the drop", lambda e: e.get("destination_port") == 81)
    lost = every.wait_for("what was lost", lambda e: e["event"] == "lost")
    check(lost["lost"] >= lost["limited"] > 0 and
          set(lost) == set(documented()[1]), lost)
    every.wait_for("the drop", lambda e: e.get("destination_port") == 81)
    wait("the sum", lambda: 4000 == sum(
        e["lost"] if e["event"] == "lost" else e["reason"] == "forward"
        for e in list(every.got)), 5)
    rare.close()
    every.close()


@node.leaves_xlbd
def only_so_many_readers(n):
    up(n)
    others = [Reader(n) for _ in range(8)]
    rc, out, err = n.xlb("events")
    check(rc == 1 and out == "" and err == "xlb: 8 others read events "
          "already: there cannot be more\n", rc, out, err)
    others.pop().close()
    others.append(Reader(n))
    rc, out, err = n.xlb("events", "--service", "nope")
    check(rc == 1 and err == "xlb: no service is named nope\n", rc, err)
    for r in others:
        r.close()


@node.leaves_xlbd
def one_that_stops_reading(n):
    """It costs nothing but its events; the others get theirs."""
    up(n)
    client = Client(n)
    slow, quick = Reader(n), Reader(n)
    slow.p.send_signal(signal.SIGSTOP)
    deadline = time.monotonic() + 60
    sent = 0
    while not any(e["event"] == "lost" for e in list(quick.got)):
        client.send(range(100, 150))
        sent += 50
        check(time.monotonic() < deadline, "no event was over the rate")
        if sent > 3000:
            break
    n.xlb("status")
    client.send([81])
    quick.wait_for("its event", lambda e: e.get("destination_port") == 81)
    slow.p.send_signal(signal.SIGCONT)

    def told():
        client.send([82])
        return any(e.get("destination_port") == 82 for e in list(slow.got))
    wait("the slow one to be told again", told)
    slow.close()
    quick.close()


def daemon_ends(n):
    """The reader is told; the program does not go on for nobody."""
    up(n)
    client = Client(n)
    r = Reader(n)
    n.xlbd.kill()
    n.xlbd.wait()
    r.p.wait(60)
    err = r.p.stderr.read()
    check(r.p.returncode == 1 and err == "xlb: xlbd ended\n", err)
    check(listening(n) != 0, "nobody could end it")
    # a packet after the lease does
    def over():
        client.send([81])
        return listening(n) == 0
    wait("the end of the lease", over)
    # and so does the next xlbd, at once
    n.start_xlbd()
    r = Reader(n)
    n.xlbd.kill()
    n.xlbd.wait()
    check(listening(n) != 0, "nobody could end it")
    n.start_xlbd()
    check(listening(n) == 0, "the next xlbd leaves it")


def reload_while_reading(n):
    """A service that gets other numbers is still the one that was asked for."""
    up(n)
    client = Client(n)
    r = Reader(n, "--service", "www", "--reason", "new_flow")
    n.configure(listen="tcp/8080, tcp/80, tcp/443")
    rc, _, err = n.xlb("reload")
    check(rc == 0, err)
    check(listening(n) != 0, "a reload ends it")
    client.send([443, 8080, 80])
    for port in (443, 8080, 80):
        r.wait_for(port, lambda e, p=port: e["destination_port"] == p)
    r.close()


@node.leaves_xlbd
def text_and_count(n):
    up(n)
    client = Client(n)
    p = n.xlb_start("events", "--count", "2", "--reason", "new_flow,drop")
    wait("listening", lambda: listening(n) != 0)
    client.send([80])
    wait("a new flow to be forwarded", lambda: True)
    time.sleep(0.2)
    client.send([81])
    out, err = p.communicate(timeout=60)
    check(p.returncode == 0 and err == "", p.returncode, err)
    flow, drop = out.splitlines()
    check(" new_flow  forward     tcp  10.0.1." in flow and
          "  www > web/" in flow and f"{VIP}:80" in flow, out)
    check(" drop      no_service  tcp  10.0.1." in drop and
          f"{VIP}:81" in drop, out)
    check("\033" not in out, "colour without a terminal")
    wait("the end of listening", lambda: listening(n) == 0)


def keys(o):
    """The members of an object, and of those in it: of lists, the first."""
    if isinstance(o, list):
        return [keys(o[0])] if o else []
    return {k: keys(v) for k, v in o.items()} if isinstance(o, dict) else None


def lists_are_as_documented(n):
    up(n)
    client = Client(n)
    client.send([80], count=30)
    client.send([81], count=3)
    wait("the packets to be counted", lambda: {"forward": 30, "no_service": 3}
         .items() <= ask.xlbd(n.dir / "run", "stats", 60)["reasons"].items())

    def show(*args):
        rc, out, err = n.xlb(*args, "--json")
        check(rc == 0 and err == "", args, rc, err)
        return json.loads(out)
    got, want = show("neighbors"), documented("neighbors")[0]
    check(keys(got) == keys(want), got)
    check([(x["address"], x["backends"], x["resolved"], x["interface"],
            x["mtu"], x["source"]) for x in got["neighbors"]] ==
          [(f"10.0.1.1{i}", [f"web/{b}"], True, "eth0", 1500, "10.0.1.1")
           for i, b in ((1, "a"), (2, "b"))], got)
    got, want = show("stats"), documented("stats")[0]
    check(set(got["reasons"]) > set(want["reasons"]), got)
    got["reasons"] = {k: v for k, v in got["reasons"].items()
                      if k in want["reasons"]}
    check(keys(got) == keys(want), got)
    check(got["reasons"] == {"forward": 30, "no_service": 3}, got)
    check([(s["name"], s["address"], s["protocol"], s["port"], s["packets"],
            s["drops"]) for s in got["services"]] ==
          [("www", VIP, "tcp", 80, 30, 0)], got)
    check([b["backends"] for b in got["backends"]] == [["web/a"], ["web/b"]] and
          sum(b["packets"] for b in got["backends"]) == 30 and
          sum(b["bytes"] for b in got["backends"]) ==
          got["services"][0]["bytes"] > 30 * 40, got)
    got = show("stats", "--rate")
    check(got["seconds"] >= 1 and got["reasons"]["forward"] == 0, got)
    check([s["ready"] for s in show("services")["services"]] == [True])
    check([p["eligible"] for p in show("pools")["pools"]] == [2])
    check([b["pool"] for b in show("backends")["backends"]] == ["web"] * 2)
    wait("the address to be in BIRD", lambda: show("bgp")["addresses"][0][
        "in_bird"])
    # a neighbour that is not there
    address = "10.0.1.12/24", "dev", "eth0"
    node.run("ip", "-n", n.far, "addr", "del", *address)
    try:
        node.run("ip", "-n", n.ns, "neigh", "flush", "all")
        wait("the reason", lambda: show("neighbors")["neighbors"][1] == {
            "address": "10.0.1.12", "backends": ["web/b"], "resolved": False,
            "reason": "the neighbour does not answer"})
    finally:
        node.run("ip", "-n", n.far, "addr", "add", *address)


def lookup_says_what_packets_do(n):
    """By the program's own word, event by event."""
    up(n, listen="tcp/80, udp/443")
    client = Client(n)
    ports = range(45000, 45024)

    def look(port, kind="tcp", to=80):
        return ask.xlbd(n.dir / "run", "lookup", 60, protocol=kind,
                        source=f"10.0.1.254:{port}", destination=f"{VIP}:{to}")

    def shown(port):
        rc, out, err = n.xlb("lookup", "tcp", f"10.0.1.254:{port}",
                             f"{VIP}:80", "--json")
        check(rc == 0 and err == "", rc, err)
        return json.loads(out)

    def sent():
        r = Reader(n, "--reason", "new_flow")
        for port in ports:
            client.send([80], sport=port)
        wait("the flows", lambda: set(ports) <= {
            e["source_port"] for e in list(r.got)})
        r.close()
        return {e["source_port"]: e["backend"] for e in r.got}
    check(look(45000)["entry"] is None, "an entry before the flow")
    before = sent()
    check(set(before.values()) == {"a", "b"}, before)
    for port in ports:
        got = look(port)
        check(keys(got) == keys(documented("lookup")[0]), got)
        check((got["service"], got["pool"], got["backend"], got["cur"]) ==
              ("www", "web", before[port], before[port]) and
              0 <= got["slot"] < 65537, got)
        check(got["entry"]["backend"] == before[port] and
              not got["entry"]["confirmed"] and got["entry"]["age"] < 60, got)
    check(keys(shown(45000)) == keys(look(45000)), shown(45000))
    check(look(45000, "udp", 443)["entry"] is None, "UDP in a stable slot")
    # what moves keeps its flows
    moved = [p for p in ports if before[p] == "a"]
    told = json.loads(n.xlb("diff", "-", "--json", input=n.file.read_text()
                            .replace("10.0.1.11}", "10.0.1.11, state: drain}"))
                      [1])["pools"][0]
    check(told["flows_moved"] == len(moved), told, moved)
    check(n.xlb("drain", "web/a")[0] == 0)
    for port in ports:
        got = look(port)
        check((got["backend"], got["cur"], got["lookup"]) ==
              (before[port], "b", port in moved), got)
        check((got["prev"], got["why"]) == (("a", "entry") if port in moved
                                            else (None, "ring")), got)
    new = next(g for g in map(look, range(46000, 46100)) if g["prev"])
    check((new["backend"], new["why"], new["entry"]) == ("a", "prev", None),
          new)
    check(sent() == before, "SYNs that are sent again")
    check(" a: the flow table has it\n".replace(" a", "web/a") in n.xlb(
        "lookup", "tcp", f"10.0.1.254:{moved[0]}", f"{VIP}:80")[1])

    rings = json.loads(n.xlb("rings", "--json")[1])
    check(keys(rings) == keys(documented("rings")[0]), rings)
    ring = rings["rings"][0]
    check([b["slots"] for b in ring["backends"]] == [0, 65537] and
          ring["lookup"] == ring["prev"] == ring["moved"] in (32768, 32769) and
          ring["moved"] == told["slots_moved"] and ring["empty"] == 0, ring)
    check(ring["fingerprint"] == n.status()["pools"][0]["fingerprint"])
    flows = json.loads(n.xlb("flows", "--json")[1])
    want = documented("flows")[0]
    check(keys(flows) == keys(want), flows)
    check(flows["flows"] == flows["opening"] == len(ports) and
          [b["flows"] for b in flows["backends"]] ==
          [len(moved), len(ports) - len(moved)] and
          sum(flows["ages"].values()) == len(ports), flows)
    got = json.loads(n.xlb("flows", "--client", "10.0.1.254", "--json")[1])
    check(keys(got) == keys(documented("flows")[1]), got)
    name = {"10.0.1.11": "a", "10.0.1.12": "b"}
    check(all(f["backends"] == [f"web/{name[f['backend']]}"]
              for f in got["found"]), got)
    check({f["source_port"]: name[f["backend"]] for f in got["found"]} ==
          before and len(got["found"]) == len(ports) and {
              (f["protocol"], f["destination"], f["destination_port"],
               f["confirmed"]) for f in got["found"]} ==
          {("tcp", VIP, 80, False)}, got)
    rc, out, _ = n.xlb("flows", "--client", "10.0.1.253")
    check(rc == 0 and len(out.splitlines()) == 1, "a client without flows", out)
    for args, status, text in (
            (("tcp", "10.0.1.254:1", f"{VIP}:81"), 1, "xlb: no service matches\n"),
            (("tcp", "10.0.1.254:1", "203.0.113.9:80"), 1,
             "xlb: no service matches\n"),
            (("udp", "10.0.1.254:1", f"{VIP}:80"), 1, "xlb: no service matches\n")):
        rc, out, err = n.xlb("lookup", *args)
        check((rc, out, err) == (status, "", text), args, rc, out, err)


def a_client_has_one_backend(n):
    """`hash: source`: over all services of the pool, and lookup knows it."""
    n.configure(listen="tcp/80, tcp/81")
    n.file.write_text(n.file.read_text().replace("pool: web}]", (
        "pool: web, hash: source}, {name: more, addresses: [203.0.113.11], "
        "listen: [tcp/80], pool: web, hash: source}]")))
    n.start_xlbd()
    client, r = Client(n), Reader(n, "--reason", "new_flow")
    sources = [f"10.0.1.{i}" for i in range(100, 108)]
    for a in sources:
        node.run("ip", "-n", n.far, "addr", "add", f"{a}/24", "dev", "eth0")
        for sport in (45000, 45001):
            client.send([80, 81], sport=sport, source=a)
    wait("the flows", lambda: len(list(r.got)) >= 4 * len(sources))
    r.close()
    owner = {e["source"]: e["backend"] for e in r.got}
    check(set(owner.values()) == {"a", "b"}, owner)
    for e in r.got:
        check(e["backend"] == owner[e["source"]], e, owner)
    for a in sources:
        told = set()
        for sport, vip in (1, VIP), (2, VIP), (1, "203.0.113.11"):
            got = json.loads(n.xlb("lookup", "tcp", f"{a}:{sport}",
                                   f"{vip}:80", "--json")[1])
            told.add((got["slot"], got["backend"]))
        check(len(told) == 1 and told.pop()[1] == owner[a], a, told)
        node.run("ip", "-n", n.far, "addr", "del", f"{a}/24", "dev", "eth0")


def drain_waits(n):
    """For real flows: none to wait for; then for one that never ends, until
    nobody waits any more, and the drain stays."""
    up(n)
    rc, out, err = n.xlb("drain", "--wait", "web/a")
    check(rc == 0 and out.startswith("web/a: no flows are left, after "), rc,
          out, err)
    check(n.xlb("undrain", "--wait", "web/a")[:1] == (0,), "undrain")
    check(n.status()["pools"][0]["backends"][0]["eligible"], "waited for")
    Client(n).send([80], count=40)
    p = n.xlb_start("drain", "--wait", "web/a")
    line = p.stderr.readline()
    check(re.fullmatch("draining web/a: [1-9][0-9]* flows left\n", line), line)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    check(p.returncode == 1 and out == "" and err == "xlb: interrupted: web/a "
          "stays drained, until xlb undrain web/a\n", p.returncode, out, err)
    check(n.status()["pools"][0]["backends"][0]["state"] == "drain", "not")


CASES = [drain_waits, a_client_has_one_backend, lookup_says_what_packets_do,
         lists_are_as_documented, each_gets_its_own, a_rare_one_among_many,
         said_as_it_happens, text_and_count, only_so_many_readers,
         one_that_stops_reading, daemon_ends, reload_while_reading]


def main():
    return node.main(CASES, why=None if SYS_BPF else
                     "does not know this machine's number of bpf(2)")


if __name__ == "__main__":
    sys.exit(main())
