# SPDX-License-Identifier: GPL-2.0-or-later
"""Connections that live as long as their backends, whatever changes.

XLB_STABLE_CHANGES=100 is the long form; XLB_STABLE_SEED repeats a run.
"""

import collections
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import fabric as fab
import lab
from test_nodes import restart

STREAMS = pathlib.Path(__file__).parent / "streams.py"
SERVERS = [f"s{i}" for i in range(1, 9)]
PORT, CHECK_PORT = 9000, 9001
# Not by BGP: a node whose xlbd is killed stays the router's.
VIPS = ("203.0.113.20", "2001:db8:5::20")
CONNECTIONS = 2000
CHANGES = int(os.environ.get("XLB_STABLE_CHANGES", "13"))
SEED = int(os.environ.get("XLB_STABLE_SEED", time.time_ns() % 1000000))


class Servers:
    """Backends that are there for this test alone."""

    def __init__(self, f):
        self.f = f
        self.process = {}
        for host, name in enumerate(SERVERS, 31):
            self.make(name, host)
        # those of a test before had other MAC addresses
        f.run("router", "ip", "neigh", "flush", "all")
        for name in SERVERS:
            lab.wait(f"{name} to listen", lambda n=name: lab.connects(
                "router", self.address(n), PORT))

    @staticmethod
    def address(name):
        return fab.address4(1, 30 + int(name[1:]))

    def make(self, ns, host):
        f = self.f
        f.netns(ns)
        f.run(ns, "sysctl", "-q", "-w", "net.ipv6.conf.all.accept_dad=0",
              "net.ipv6.conf.default.accept_dad=0",
              "net.ipv4.conf.all.arp_ignore=1",
              "net.ipv4.conf.all.arp_announce=2",
              "net.ipv4.tcp_max_syn_backlog=65536",
              "net.core.somaxconn=4096")
        f.run(ns, "ip", "link", "set", "lo", "up")
        for vip, bits in zip(VIPS, (32, 128)):
            f.run(ns, "ip", "addr", "add", f"{vip}/{bits}", "dev", "lo")
        f.link("rack", ns, ns, "eth0", fab.MTU[1])
        f.run("rack", "ip", "link", "set", ns, "master", "br0")
        f.give(ns, "eth0", 1, host)
        f.run(ns, "ip", "route", "add", "default", "via",
              fab.address4(1, fab.ROUTER_HOST))
        f.run(ns, "ip", "-6", "route", "add", "default", "via",
              fab.address6(1, fab.ROUTER_HOST))
        f.attach_decap(ns)
        self.process[ns] = f.start(
            ns, "serve", fab.PYTHON, STREAMS, "serve", ns, PORT, CHECK_PORT,
            stdin=subprocess.PIPE)

    def check(self, name, what):
        """`down`: its check fails, and nothing else."""
        stdin = self.process[name].popen.stdin
        stdin.write(what.encode() + b"\n")
        stdin.flush()

    def end(self):
        for name, p in self.process.items():
            p.popen.stdin.close()
            self.f.decap(name, "detach", "eth0")
            p.exit()
            # with its namespace it would go some time later
            self.f.run("rack", "ip", "link", "del", name)
            self.f.run(None, "ip", "netns", "del", lab.PREFIX + name)


class Holder:
    """The clients, and what has become of them."""

    def __init__(self, f, connections=CONNECTIONS):
        self.connections = connections
        self.out = lab.RUN / "client" / "streams.jsonl"
        with open(self.out, "wb") as out:
            self.process = f.start(
                "client", "streams", fab.PYTHON, STREAMS, "hold", PORT,
                connections, 20, *VIPS, stdin=subprocess.PIPE, stdout=out)

    def rows(self):
        text = self.out.read_text()
        return [json.loads(x) for x in
                text[:text.rfind("\n") + 1].splitlines()]

    def say(self, what):
        """Its counts after the line `what`."""
        before = sum(r["what"] == what for r in self.rows())
        self.process.popen.stdin.write(what.encode() + b"\n")
        self.process.popen.stdin.flush()

        def answer():
            got = [r for r in self.rows() if r["what"] == what]
            return got[-1] if len(got) > before else None

        return lab.wait(f"an answer to {what}", answer, 60)

    def wait_all(self):
        lab.wait(f"{self.connections} connections", lambda: self.say(
            "count")["holding"] == self.connections, 120,
            lambda: self.say("count"), pause=0.3)

    def ask_all(self):
        """All of them speak; those that cannot are broken by then."""
        before = self.say("count")
        self.say("ask")

        def all_have():
            c = self.say("count")
            return c["asked"] + c["broken"] - before["broken"] >= \
                before["holding"] and c

        return lab.wait("every connection to speak", all_have, 120,
                        lambda: self.say("count"), pause=0.5)

    def end(self):
        self.process.popen.stdin.close()
        self.process.exit()

    def broken(self):
        return [r for r in self.rows() if r["what"] == "broken"]


def other_version(path):
    """Of xlbd: one whose packet program is another one. It samples other flows at
    a time, by another factor, and does all else alike."""
    other = lab.RUN / "xlbd-other"
    if not other.exists():
        program, n = re.subn(rb"([\x24\x27][\0-\x09]\0\0)\xb1\x79\x37\x9e",
                             lambda m: m[1] + b"\xb3\x79\x37\x9e",
                             path.read_bytes())
        assert n > 0, f"{path} has no sampling to change"
        other.write_bytes(program)
        other.chmod(0o755)
    return other


class Site:
    """What both nodes are told, and when backends ceased to live."""

    def __init__(self, f, servers, rng):
        self.f, self.servers, self.rng = f, servers, rng
        self.weight = {s: 100 for s in SERVERS}
        self.members = list(SERVERS)
        self.drained, self.down = set(), set()
        self.dead = collections.defaultdict(list)  # server: [from, to]
        self.done = collections.Counter()
        self.other = set()  # nodes that run another version

    def text(self, node):
        members = "\n".join(
            f"      - {{name: {s}, address: {Servers.address(s)}, weight: "
            f"{self.weight[s]}}}" for s in self.members)
        return self.f.config(node) + f"""  - name: stream
    addresses: [{VIPS[0]}, "{VIPS[1]}"]
    listen: [tcp/{PORT}]
    pool: stream
""", f"""checks:
  stream: {{type: tcp, port: {CHECK_PORT}, interval: 1s, timeout: 1s, \
rise: 1, fall: 3}}
pools:
  stream:
    check: stream
    backends:
{members}
"""

    def write(self, node):
        text, part = self.text(node)
        self.f.write_config(node, text)
        d = lab.RUN / node / "xlb.d"
        d.mkdir(exist_ok=True)
        (d / "stream.yaml").write_text(part)

    def reload(self):
        for node in fab.NODES:
            self.write(node)
            self.f.must(node, "reload")

    def state(self, node, name):
        return self.f.pool(node, "stream")[name]

    def wait(self, what, check):
        for node in fab.NODES:
            lab.wait(f"{node}: {what}", lambda n=node: check(n), 60,
                     lambda n=node: self.f.pool(n, "stream"))

    # ---- changes; each returns what it has done ---------------------------

    def live(self):
        return [s for s in self.members
                if s not in self.drained and s not in self.down]

    def remove(self):
        if len(self.live()) < 5:
            return self.add()
        s = self.rng.choice(self.members)
        began = fab.now()
        self.members.remove(s)
        for node in fab.NODES if s in self.drained else ():
            self.f.must(node, "undrain", f"stream/{s}")
        self.drained.discard(s)
        self.reload()
        self.dead[s].append((began, fab.now()))
        return f"remove {s}"

    def add(self):
        gone = [s for s in SERVERS if s not in self.members]
        if not gone:
            return self.weigh()
        s = self.rng.choice(gone)
        self.members.append(s)
        self.rng.shuffle(self.members)
        self.reload()
        return f"add {s}"

    def weigh(self):
        s = self.rng.choice(self.members)
        self.weight[s] = self.rng.choice([40, 70, 100, 150, 200])
        self.reload()
        return f"weight {s} {self.weight[s]}"

    def drain(self):
        if len(self.live()) < 4:
            return self.weigh()
        s = self.rng.choice(self.live())
        for node in fab.NODES:
            self.f.must(node, "drain", f"stream/{s}")
        self.drained.add(s)
        return f"drain {s}"

    def undrain(self):
        if not self.drained:
            return self.drain()
        s = self.rng.choice(sorted(self.drained))
        for node in fab.NODES:
            self.f.must(node, "undrain", f"stream/{s}")
        self.drained.remove(s)
        return f"undrain {s}"

    def flap(self):
        """Down long enough for both nodes to see it, and up again."""
        s = self.rng.choice(self.members)
        began = fab.now()
        self.servers.check(s, "down")
        self.wait(f"{s} to be down",
                  lambda n: self.state(n, s)["health"] == "down")
        self.servers.check(s, "up")
        self.wait(f"{s} to be up",
                  lambda n: self.state(n, s)["health"] == "up")
        self.dead[s].append((began, fab.now()))
        return f"flap {s}"

    def kill(self):
        node = self.rng.choice(fab.NODES)
        self.f.daemon[node].kill()
        self.f.start_node(node, self.program(node))
        return f"kill -9 xlbd of {node}"

    def restart(self):
        node = self.rng.choice(fab.NODES)
        restart(self.f, node)
        return f"restart {node}"

    def program(self, node):
        program = self.f.program("xlbd")
        return other_version(program) if node in self.other else program

    def upgrade(self):
        node = self.rng.choice(fab.NODES)
        self.version(node)
        return f"upgrade {node}"

    def version(self, node):
        """To another version, or back: as a package's restart does."""
        daemon = self.f.daemon[node]
        self.other ^= {node}
        daemon.signal(signal.SIGTERM)
        assert daemon.exit() == 0
        before = daemon.log.stat().st_size
        self.f.start_node(node, self.program(node))
        assert b"packet program is replaced" in \
            daemon.log.read_bytes()[before:], "the same packet program"

    def reload_same(self):
        self.reload()
        return "reload"

    def reload_bad(self):
        node = self.rng.choice(fab.NODES)
        path = lab.RUN / node / "xlb.d" / "stream.yaml"
        path.write_text(path.read_text() + "      - {name: x, adress: 1}\n")
        got = self.f.xlb(node, "reload")
        assert got.exit == 3 and "adress" in got.err, got
        self.write(node)
        return f"bad reload of {node}"

    def flood(self):
        self.f.run("client", fab.PYTHON, STREAMS, "flood", VIPS[0], PORT,
                   20000, 20000)
        return "20000 SYNs"

    def change(self, i):
        all_ = [self.add, self.remove, self.weigh, self.drain, self.undrain,
                self.flap, self.kill, self.restart, self.upgrade,
                self.reload_same, self.reload_bad, self.flood, self.drain]
        # each kind at least once, in any order; then at random
        if i % len(all_) == 0:
            self.rng.shuffle(all_)
            self.order = all_
        what = self.order[i % len(all_)]
        said = what()
        self.done[said.split()[0]] += 1
        return said

    def excuses(self, row):
        """Its backend ceased to live meanwhile."""
        return any(row["began"] <= to and row["at"] >= began
                   for began, to in self.dead[row["owner"]])

    def excuses_beginner(self, row):
        """It was accepted by a backend that ceased to live before its first
        answer: a reset, and none who would say whose. The client may tell of it
        later."""
        return "reset" in row["why"] and any(
            row["began"] <= to and row["at"] >= began
            for spans in self.dead.values() for began, to in spans)

    def explain(self, row):
        """What the nodes say of a connection that should not have broken."""
        host, port = row["source"]
        v6 = ":" in host
        for node in fab.NODES:
            got = self.f.xlb(
                node, "lookup", "tcp", f"[{host}]:{port}" if v6 else
                f"{host}:{port}", f"[{VIPS[1]}]:{PORT}" if v6 else
                f"{VIPS[0]}:{PORT}")
            print(f"{row['at']:.2f} {row['owner']} since {row['began']:.2f}, "
                  f"{node}: {' '.join(got.out.split())}{got.err}")


def route(f, nodes):
    """The router's, before BIRD's of metric 32."""
    for family, vip in zip("46", VIPS):
        f.run("router", "ip", f"-{family}", "route", "replace", vip, "metric",
              1, *(x for node in nodes for x in (
                  "nexthop", "via", fab.address(node, int(family)))))


@contextlib.contextmanager
def site_up(f, rng, kind=Site):
    servers = Servers(f)
    site = kind(f, servers, rng)
    route(f, fab.NODES)
    try:
        site.reload()
        site.wait("all servers to be eligible", lambda n: all(
            self["eligible"] for self in f.pool(n, "stream").values()))
        yield site
    finally:
        for family, vip in zip("46", VIPS):
            f.run("router", "ip", f"-{family}", "route", "del", vip, "metric", 1)
        for node in fab.NODES:
            (lab.RUN / node / "xlb.d" / "stream.yaml").unlink(True)
            for s in site.drained:
                f.xlb(node, "undrain", f"stream/{s}")
        for node in fab.NODES:
            f.write_config(node, f.config(node))
            f.must(node, "reload")
        servers.end()


def report(site, rows, counts, said):
    broken = [r for r in rows if r["what"] == "broken"]
    kinds = collections.Counter(r["kind"] for r in broken)
    print(f"seed {SEED}: {counts['open']} connections held, {counts['short']} "
          f"short ones, {counts['answers']} answers")
    print("changes: " + ", ".join(f"{n} {what}" for what, n in
                                  sorted(site.done.items())))
    print("broken with their backend: " + (", ".join(
        f"{n} {kind}" for kind, n in sorted(kinds.items())) or "none"))
    for at, what in said:
        print(f"  {at:10.2f} {what}")


def explain(site, clients, seen):
    for r in clients.rows():
        key = r["at"] if r["what"] == "broken" else None
        if key and key not in seen and not site.excuses(r) and len(seen) < 9:
            seen.add(key)
            site.explain(r)


def test_connections_stay(fabric):
    rng = random.Random(SEED)
    said, seen = [], set()
    with site_up(fabric, rng) as site:
        clients = Holder(fabric)
        try:
            clients.wait_all()
            for i in range(CHANGES):
                said.append((fab.now(), site.change(i)))
                time.sleep(rng.uniform(0, 1))
                explain(site, clients, seen)
            counts = clients.ask_all()
            explain(site, clients, seen)
        finally:
            clients.end()
            for node in sorted(site.other):
                site.version(node)
        rows = clients.rows()
        report(site, rows, counts, said)
        failed = [r for r in rows if r["what"] == "failed"
                  and not site.excuses_beginner(r)]
        lost = [r for r in rows if r["what"] == "broken"
                and not site.excuses(r)]
        assert not lost, f"{len(lost)} moved, though their backends lived: " \
            f"{lost[:5]}"
        assert not failed, f"{len(failed)} could not begin: {failed[:5]}"
        assert counts["open"] >= CONNECTIONS and counts["short"] > 50


def lose(f, site, node, ask):
    """It is gone with all that it knows, and comes back empty."""
    route(f, [n for n in fab.NODES if n != node])
    f.stop_node(node)
    ask()
    f.start_node(node)
    lab.wait(f"{node} to have all that are eligible", lambda: all(
        b["eligible"] for name, b in f.pool(node, "stream").items()
        if name not in site.drained), 60, lambda: f.pool(node, "stream"))
    route(f, fab.NODES)
    ask()


def held(f, node, name):
    """Connections that the node knows to be with a backend."""
    got = json.loads(f.must(node, "flows", "--json").out)
    return sum(b["flows"] for b in got["backends"]
               if b["address"] == Servers.address(name))


def test_a_node_is_lost(fabric):
    """While nothing drains nobody notices. While a backend drains, its connections
    on that node are what Maglev and a table of flows lose: none but those may
    be."""
    rng = random.Random(SEED)
    with site_up(fabric, rng) as site:
        clients = Holder(fabric, 600)
        try:
            clients.wait_all()
            lose(fabric, site, "lb1", clients.ask_all)
            alone = clients.broken()
            known = sum(held(fabric, "lb1", s) for s in SERVERS)
            drained = rng.choice(SERVERS)
            for node in fab.NODES:
                fabric.must(node, "drain", f"stream/{drained}")
            site.drained.add(drained)
            model = held(fabric, "lb1", drained)
            lose(fabric, site, "lb1", clients.ask_all)
            both = clients.broken()[len(alone):]
        finally:
            clients.end()
    print(f"seed {SEED}: connections broken, of {known} that lb1 had\n"
          f"  lb1 lost and back:                 {len(alone)}\n"
          f"  {drained} drains, lb1 lost and back:       {len(both)}, Maglev "
          f"and LRU {model} at least")
    assert not alone, alone[:5]
    assert model > 0 and known > 100, "lb1 had none of them"
    others = [r for r in both if r["owner"] != drained]
    assert not others, f"{len(others)} of backends that stay: {others[:5]}"
    assert len(both) <= model
