#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A tour of xlb in network namespaces: what it does, and what came of it.

usage: demo.py [--keep]     --keep: leave everything up at the end
       demo.py --down       take down what --keep left

Exit status 0 if every step did what it says.
"""

import shlex
import signal
import sys
import time

import fabric as fab
import lab
from fabric import BACKENDS, NODES, VIP, FabricError

REQUESTS = 200
COLUMNS = 80
INDENT = " " * 5
NAMES = lab.RUN / "names"


class Tour:
    def __init__(self, f):
        self.f, self.number, self.begin = f, 0, time.monotonic()

    def step(self, title):
        self.number += 1
        print(f"\n{self.number}. {title}")

    def saw(self, text):
        for line in text.splitlines():
            print(f"{INDENT}{line}", flush=True)

    def saw_two(self, one, two):
        """On one line if there is room."""
        wide = len(one + two) > COLUMNS - len(INDENT)
        self.saw(f"{one.rstrip()}\n  {two}" if wide else one + two)

    def expect(self, true, otherwise):
        if not true:
            raise FabricError(otherwise)

    def timed(self, fn, *args, **kw):
        start = time.monotonic()
        fn(*args, **kw)
        return time.monotonic() - start

    # ---- the steps --------------------------------------------------------

    def bring_up(self):
        self.step("Bring up the fabric")
        self.saw("""\
client ---- router ---- rack ---- lb1, lb2    xlbd and BIRD each
             BIRD         `------ b1, b2      nginx, VIPs on lo, xlb-decap
              `------------------ b3          the same, one hop further""")
        took = self.timed(self.f.up_network)
        self.saw(f"links, router, backends: {took:.1f} s; "
                 "10 test frames out by XDP_TX, 10 back")
        took = self.timed(self.f.up_nodes)
        self.saw(f"both nodes: {took:.1f} s from start to announced")

    def announced(self):
        self.step("Both nodes announce both VIPs")
        for node in NODES:
            lab.wait(f"{node} to say that it exports the VIPs",
                     lambda n=node: self.announcing(n),
                     seen=lambda n=node: self.f.status(n)["addresses"])
            for vip, a in self.announcing(node).items():
                self.saw(f"{node}: {vip:<15} in BIRD, exported to "
                         f"{a['exported']} peer")

    def announcing(self, node):
        """{VIP: its row in status}, empty unless all are exported."""
        rows = {a["address"]: a for a in self.f.status(node)["addresses"]
                if a["wanted"] and a["in_bird"] and a["exported"]}
        return rows if sorted(rows) == sorted(VIP.values()) else {}

    def ecmp(self):
        self.step("The router has a path over each node (ECMP)")
        for f in VIP:
            self.expect(self.f.paths(f) == list(NODES),
                        f"paths to {VIP[f]}: {self.f.paths(f)}")
            self.route(f)

    def route(self, family):
        """The router's route to a VIP, without the tabs and blanks of ip."""
        text = self.f.run("router", "ip", f"-{family}", "route", "show",
                          VIP[family], "proto", "bird").stdout
        for line in text.splitlines():
            self.saw(line.rstrip().replace("\t", "  "))

    def requests(self, backends=BACKENDS):
        for f in VIP:
            got = self.f.http(REQUESTS, f)
            self.verdict(f"{REQUESTS} requests over IPv{f}", got, backends)

    def verdict(self, title, got, backends):
        bad = [r for r in got if not r.ok]
        share = fab.shares(got)
        text = "  ".join(f"{b} {share.get(b, 0)} "
                         f"({share.get(b, 0) * 100 / max(len(got), 1):.0f}%)"
                         for b in BACKENDS)
        self.saw_two(f"{title}: ", f"{text}  failed: {len(bad)}")
        self.expect(not bad, f"failed requests, the first: {bad[:1]}")
        self.expect(sorted(share) == sorted(backends),
                    f"answers came from {sorted(share)}, not {backends}")

    def traffic(self):
        self.step(f"{REQUESTS} HTTP requests over IPv4 and over IPv6")
        self.requests()
        for node in NODES:
            slots = self.f.slots(node)
            self.saw(f"{node}'s ring: " + "  ".join(
                f"{b} {slots[b]} slots" for b in BACKENDS))

    def backend_dies(self):
        self.step("A backend is killed (nginx of b1, SIGKILL)")
        others = [b for b in BACKENDS if b != "b1"]
        load = self.f.load(4, rate=100)
        load.wait_for(50)
        self.f.kill_backend("b1")
        killed = fab.now()
        self.f.wait_eligible(others)
        moved = fab.now()
        row = self.f.pool("lb1")["b1"]
        self.saw_two(f"{moved - killed:.2f} s later both rings are without it: ",
                     f"{row['health']}, {row['reason']}")
        load.wait_for(100, moved)
        after = [r for r in load.stop() if r.start > moved]
        self.verdict(f"{len(after)} requests since the ring moved", after,
                     others)
        self.requests(others)
        self.f.start_backend("b1")
        took = self.timed(self.f.wait_eligible, BACKENDS)
        self.saw(f"nginx of b1 started: back in both rings after {took:.2f} s")

    def node_stops(self):
        self.step("A node is stopped (xlb stop on lb1), under load")
        load = self.f.load(4, rate=100, keep=10)
        load6 = self.f.load(6, rate=50, keep=10)
        load.wait_for(100)
        start = time.monotonic()
        self.f.stop_node("lb1")
        took = time.monotonic() - start
        self.f.wait_paths(["lb2"])
        self.saw(f"xlbd ended after {took:.2f} s; the router's route now:")
        self.route(4)
        self.requests()

        self.step("The node is started again")
        start = time.monotonic()
        self.f.start_node("lb1")
        self.f.wait_ready()
        self.saw(f"announced, and in the router's route, after "
                 f"{time.monotonic() - start:.2f} s")
        self.requests()
        for f, it in ((4, load), (6, load6)):
            self.verdict(f"IPv{f}, from before the stop until now, 10 "
                         "connections kept", it.stop(), BACKENDS)

    def run(self):
        self.bring_up()
        self.announced()
        self.ecmp()
        self.traffic()
        self.backend_dies()
        self.node_stops()
        print(f"\nEvery step did what it says, in "
              f"{time.monotonic() - self.begin:.0f} s.")


def names_write(f):
    """A file of shell functions: what to look with, by short names."""
    lines = ["# source this: . " + str(NAMES)]
    for node in NODES:
        options = shlex.join(map(str, f.options(node)))
        lines.append(f'{node}() {{ {f.program("xlb")} {options} "$@"; }}')
        lines.append(f'bird_{node}() '
                     f'{{ birdc -s {lab.RUN}/{node}/bird.ctl "$@"; }}')
    enter = f"nsenter --net={lab.NETNS}/{lab.PREFIX}"
    for host in ("client", "router"):
        lines.append(f'{host}() {{ {enter}{host} "$@"; }}')
    for b in BACKENDS:
        lines.append(f'{b}() {{ {enter}{b} {f.program("xlb-decap")} '
                     f'--bpf-dir {lab.BPFFS}/{lab.BPF_PREFIX}{b} "$@"; }}')
    NAMES.write_text("\n".join(lines) + "\n", encoding="ascii")


LOOK = (
    ("lb1 status", "what a node sees"),
    ("lb2 backends", "they take every command of xlb(8)"),
    ("lb1 drain --wait web/b1", "no new flows for b1"),
    ("lb1 undrain web/b1", ""),
    ("bird_lb1 show protocols", "its BIRD"),
    ("b1 status", "what xlb-decap on a backend unwrapped"),
    (f"client curl -s http://{VIP[4]}/", "a request"),
    (f"client curl -s 'http://[{VIP[6]}]/'", ""),
    (f"router ip route show {VIP[4]}", "the router's route"),
)


def how_to(f):
    names_write(f)
    print(f"""
The fabric stays up. Look around, as root, with the short names of this file:

  . {NAMES}
""")
    for command, what in LOOK:
        print(f"  {command:<39}{what}".rstrip())
    print(f"""
Configuration: {lab.RUN}/lb1/xlb.yaml   logs: {lab.RUN}/*/*.log
Take it down:  ./setup down""")


def demo(keep):
    f = fab.Fabric(say=print)
    try:
        Tour(f).run()
        if keep:
            how_to(f)
            f.keep()
        return 0
    except FabricError as e:
        print(f"\nThis did not work: {fab.explain(f, e)}")
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; taking the fabric down.")
        return 130
    finally:
        f.close()


def main(args):
    def interrupt(signum, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)
    if args == ["--down"]:
        try:
            down = lab.take_down()
        except FabricError as e:
            print(e, file=sys.stderr)
            return 1
        print("The fabric is down." if down else "There is no fabric.")
        return 0
    if args not in ([], ["--keep"]):
        print(__doc__, file=sys.stderr)
        return 2
    return demo(bool(args))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
