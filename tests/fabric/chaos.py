#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything that can go wrong on two nodes, at random, while 500 connections
run; then everything has to be as a fresh start makes it.

usage: chaos.py [--seconds N] [--seed N] [--connections N]

Each node's xlbd has a service manager (supervisor.py). lb1 dies of what happens;
lb2 is never killed, so that what it loses adds up. What an event broke has to be
whole again within ten seconds.
"""

import argparse
import collections
import contextlib
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time

import fabric as fab
import lab
import pinned
from facts import (descendants, namespace_facts, pin_names,
                   process_facts, process_names, sanitized)
from supervisor import Supervisor
from test_stable import Holder, Site, explain, site_up

REPAIR = 10     # seconds
STOPPED = 3     # seconds at most
WATCHDOG = 20   # fed when half to three quarters of that are over (sd_event(3))
MORTAL, IMMORTAL = fab.NODES
CONNECTIONS = 500
POOL = "stream"


def pins(node):
    return lab.BPFFS / (lab.BPF_PREFIX + node)


class Units:
    """The nodes' service managers."""

    def __init__(self, f):
        self.f, self.unit = f, {}

    def begin(self, node):
        for sub in ("run", "state", "bird"):
            (lab.RUN / node / sub).mkdir(exist_ok=True)
        u = Supervisor(self.f, node, [self.f.program("xlbd"),
                                      *self.f.options(node)],
                       self.f.build / "etc/xlb.service",
                       StartLimitBurst="1000000", WatchdogSec=str(WATCHDOG))
        self.unit[node] = self.f.daemon[node] = u
        u.start()
        u.wait_restart(1)

    def killed(self, node, kill):
        """Whatever `kill` does, it is started again and ready."""
        n = len(self.unit[node].starts)
        kill()
        self.unit[node].wait_restart(n + 1)


@contextlib.contextmanager
def supervised(f):
    units = Units(f)
    clean = {}
    for node in fab.NODES:
        f.stop_node(node)
        clean[node] = namespace_facts(f, node)
        units.begin(node)
    try:
        f.wait_ready()
        yield units, clean
    finally:
        for node, u in units.unit.items():
            if u.alive():
                u.kill()
            f.start_node(node)
        f.wait_ready()


class Chaos:
    """Events; each leaves both nodes serving, or has failed."""

    def __init__(self, f, units, site, rng):
        self.f, self.units, self.site, self.rng = f, units, site, rng
        self.done = collections.Counter()
        self.longest = collections.defaultdict(float)
        self.story = []  # (seconds since boot, what)
        self.order = []
        self.marks = []  # (seconds since boot, {node: bytes of its log})
        self.crew = {node: self.helpers(node) for node in fab.NODES}
        self.mark()

    def events(self):
        s = self.site
        return [self.kill_daemon, self.kill_in_plan, self.kill_helper,
                self.stop_daemon, self.stop_helper, self.kill_bird,
                self.edit_maps, self.detach, self.empty_bpffs, self.flap_link,
                self.flush_neighbours, self.probes_go, self.restart,
                self.drain_node, s.add, s.remove, s.weigh, s.drain, s.undrain,
                s.flap, s.reload_same, s.reload_bad]

    def any_node(self):
        return self.rng.choice(fab.NODES)

    def step(self):
        if not self.order:
            self.order = self.events()
            self.rng.shuffle(self.order)
        what = self.order.pop()
        began = fab.now()
        self.mark()
        said = what()
        self.done[what.__name__] += 1
        self.longest[what.__name__] = max(self.longest[what.__name__],
                                          fab.now() - began)
        self.story.append((began, said))

    def mark(self):
        """Where the logs are now."""
        self.marks.append((fab.now(), {node: (
            lab.RUN / node / "xlbd.log").stat().st_size for node in fab.NODES}))

    def when(self, node, offset):
        """Between which two marks this was written."""
        at = [t for t, size in self.marks if size[node] <= offset]
        return at[-1] if at else 0

    def whole(self, node, want):
        """Until the maps are as they were."""
        def differ():
            return pinned.differences(want, pinned.state_dump(pins(node)))

        lab.wait(f"{node} to be as before", lambda: not differ(), REPAIR,
                 differ, 0.1)

    def helpers(self, node):
        return process_names(self.units.unit[node].pid)

    # ---- deaths -----------------------------------------------------------

    def kill_daemon(self):
        self.units.killed(MORTAL, lambda: self.units.unit[MORTAL].signal(
            signal.SIGKILL))
        return f"kill -9 xlbd of {MORTAL}"

    def kill_in_plan(self):
        """In the midst of a change, at whatever instant it is."""
        self.site.weight[self.rng.choice(self.site.members)] = \
            self.rng.choice([40, 70, 100, 150, 200])
        for node in fab.NODES:
            self.site.write(node)
        self.f.must(IMMORTAL, "reload")
        after = self.rng.uniform(0, 0.06)

        def kill():
            with subprocess.Popen(
                    lab.enter(MORTAL) + [str(x) for x in (
                        self.f.program("xlb"), *self.f.options(MORTAL),
                        "reload")], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL):
                time.sleep(after)
                self.units.unit[MORTAL].signal(signal.SIGKILL)

        self.units.killed(MORTAL, kill)
        return f"kill -9 xlbd of {MORTAL} {1000 * after:.0f} ms into a reload"

    def restart(self):
        node = self.any_node()
        self.f.must(node, "restart")
        self.f.wait_answer(node)
        return f"restart {node}"

    def helper(self, node):
        return self.rng.choice(lab.wait("a helper", lambda: descendants(
            self.units.unit[node].pid)))

    def kill_helper(self):
        node = self.any_node()
        pid, name = self.helper(node)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return f"kill -9 {name} of {node}"

    def stop_for(self, pid, seconds):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)

    def stop_daemon(self):
        """Less than what is left of the watchdog's time: nobody may notice."""
        node, seconds = self.any_node(), self.rng.uniform(1, STOPPED)
        unit = self.units.unit[node]
        n = len(unit.starts)
        self.stop_for(unit.pid, seconds)
        self.f.wait_answer(node)
        if len(unit.starts) != n:
            raise lab.FabricError(f"{node}: started again after a pause")
        return f"xlbd of {node} is stopped for {seconds:.1f} s"

    def stop_helper(self):
        node, seconds = self.any_node(), self.rng.uniform(1, STOPPED)
        pid, name = self.helper(node)
        self.stop_for(pid, seconds)
        return f"{name} of {node} is stopped for {seconds:.1f} s"

    def kill_bird(self):
        node = self.any_node()
        self.f.stop_bird(node, signal.SIGKILL)
        self.f.start_bird(node, self.f.node_conf(node))
        return f"kill -9 BIRD of {node}"

    # ---- by hand ----------------------------------------------------------

    def edits(self, node):
        """Of each row the part that makes packets end here: what sends them to
        another backend loses connections, and is meant to."""
        t = pinned.Tables(pins(node))

        def erase(part):
            t.erase(part, self.rng.choice(list(t.rows(part))))
            return part

        def backend():
            i = self.rng.choice(list(t.rows("backend")))
            row = t.row("backend", i)
            t.row("backend", i, row[:16] + bytes(4) + row[20:])
            return "backend"

        def slots():
            ring = pinned.Ring(pins(node), self.rng.choice(
                pinned.ring_numbers(pins(node))))
            words = ring.words()
            for i in self.rng.sample(range(ring.size), 50):
                ring.word_put(i, words[i] & ~0x7fff)
            ring.close()
            return "slots"

        def row(name):
            path = pins(node) / name
            pinned.map_delete(path, self.rng.choice(pinned.map_keys(path)))
            return name

        def ring_entry():
            pinned.map_delete(pins(node) / "ring_table", struct.pack(
                "=I", self.rng.choice(pinned.ring_numbers(pins(node)))))
            return "ring_table"

        return t, [lambda: erase("vip"), lambda: erase("service"),
                   lambda: erase("nexthop"), backend, slots,
                   lambda: row("tx_ports"), lambda: row("health"), ring_entry]

    def edit_maps(self):
        node = self.any_node()
        self.steady(node)
        want = pinned.state_dump(pins(node))
        t, all_ = self.edits(node)
        said = [edit() for edit in self.rng.sample(
            all_, self.rng.randint(1, 4))]
        t.close()
        self.whole(node, want)
        return f"{node}: by hand: {', '.join(said)}"

    def steady(self, node):
        """All that is on its way has arrived: also what each VIP's check says,
        where a backend is up by another one's."""
        def arrived():
            dump = pinned.state_dump(pins(node))
            return all(b["health"] in ("up", "drain") for b in self.f.pool(
                node, POOL).values()) and pinned.checked(dump) and \
                all(dump["backends"].values()) and \
                dump == pinned.state_dump(pins(node))

        lab.wait(f"{node} to be steady", arrived, 60,
                 lambda: self.f.pool(node, POOL))

    def detach(self):
        node = self.any_node()
        link = next((pins(node) / "links").iterdir())
        self.f.run(node, "bpftool", "link", "detach", "pinned", link)
        lab.wait(f"{node}'s program to be back", lambda: "xdp" in self.f.run(
            node, "ip", "link", "show", "eth0").stdout, REPAIR)
        return f"the program of {node} is detached"

    def empty_bpffs(self):
        """The immortal one's: what is not pinned ends with its xlbd."""
        node = IMMORTAL
        was = pin_names(pins(node))
        self.f.run(None, "rm", "-r", pins(node))
        lab.wait(f"{node}'s pins to be back", lambda: was == pin_names(
            pins(node)), REPAIR, lambda: pin_names(pins(node)))
        return f"the pins of {node} are removed"

    def flap_link(self):
        node, seconds = self.any_node(), self.rng.uniform(0.1, 1)
        self.f.run("rack", "ip", "link", "set", node, "down")
        time.sleep(seconds)
        self.f.run("rack", "ip", "link", "set", node, "up")
        lab.wait(f"{node} to forward again", lambda:
                 self.f.status(node)["forwarding"], REPAIR)
        return f"the link of {node} is down for {seconds:.1f} s"

    def flush_neighbours(self):
        node = self.any_node()
        self.f.run(node, "ip", "neigh", "flush", "all", check=False)
        return f"the neighbours of {node} are flushed"

    def probes_go(self):
        node = self.any_node()
        what = self.rng.choice((
            ("ip", "link", "del", "xlbp0"), ("ip", "rule", "del", "pref", "1"),
            ("tc", "qdisc", "del", "dev", "xlbp0", "clsact")))
        self.f.run(node, *what, check=False)    # what went before is on its way
        return f"{node}: {' '.join(what)}"

    def drain_node(self):
        self.f.must(IMMORTAL, "drain", "node")
        time.sleep(self.rng.uniform(0, 0.5))
        self.f.must(IMMORTAL, "undrain", "node")
        return f"drain and undrain node {IMMORTAL}"

    # ---- afterwards -------------------------------------------------------

    def calm(self):
        """Nothing is drained or down, both are told the same."""
        for s in sorted(self.site.drained):
            for node in fab.NODES:
                self.f.must(node, "undrain", f"{POOL}/{s}")
            self.site.drained.discard(s)
        self.site.reload()
        for node in fab.NODES:
            lab.wait(f"{node}: all backends", lambda n=node: all(
                b["eligible"] and b["slots"] for p in (POOL, "web")
                for b in self.f.pool(n, p).values()), 60,
                lambda n=node: self.f.pool(n, POOL))
        self.f.wait_ready()

    def facts(self, node):
        """Once what ended has been started again, and has had its say."""
        lab.wait(f"{node}'s helpers", lambda: self.crew[node] ==
                 self.helpers(node), REPAIR, lambda: self.helpers(node))
        self.steady(node)
        fds, memory = process_facts(self.units.unit[node].pid)
        return {"maps": pinned.state_dump(pins(node)), "fds": fds,
                "memory": memory, "processes": self.helpers(node),
                "pins": sorted(re.sub(r"/\d+$", "/N", x)
                               for x in pin_names(pins(node)))}

    def afresh(self, node, clean):
        """Stops it; the same as from nothing. What differs, as lines."""
        before = self.facts(node)
        repairs = self.f.must(node, "stats", "--json").json["drift"]
        bounded = not sanitized(self.units.unit[node].pid)
        self.f.stop_node(node)
        left = namespace_facts(self.f, node)
        wrong = [f"left behind: {x}" for x in left if x not in clean] + [
            f"gone with it: {x}" for x in clean if x not in left]
        if pins(node).exists():
            wrong.append("its pins are still there")
        self.f.run(None, "rm", "-r", lab.RUN / node / "state")
        self.units.begin(node)
        self.f.wait_ready()
        lab.wait("all of the fresh one", lambda: all(
            b["eligible"] and b["slots"]
            for b in self.f.pool(node, POOL).values()), 60)
        after = self.facts(node)
        wrong += pinned.differences(before["maps"], after["maps"], "maps")
        for what in ("processes", "pins"):
            if before[what] != after[what]:
                wrong.append(f"{what}: {before[what]} <> {after[what]}")
        if (extra := before["fds"] - after["fds"]).total() > 4:    # some come and go
            wrong.append(f"descriptors: {dict(extra)} more")
        if bounded and before["memory"] > 1.5 * after["memory"] + 8192:
            wrong.append(f"memory: {before['memory']} kB, a fresh one has "
                         f"{after['memory']} kB")
        return before, after, repairs, [f"{node}: {x}" for x in wrong]


def false_verdicts(chaos):
    """Log lines by which a backend of the streams went down that was well."""
    lines = []
    for node in fab.NODES:
        text = (lab.RUN / node / "xlbd.log").read_bytes()
        begin = chaos.marks[0][1][node]
        for m in re.finditer(rb"backend %s/(s\d) .*: up -> down.*" %
                             POOL.encode(), text[begin:]):
            at = chaos.when(node, begin + m.start())
            if not chaos.site.was_flapped(m.group(1).decode(), at):
                lines.append(f"{at:.2f}: {node}: {m.group().decode()}")
    return lines


def table(seed, chaos, counts, broken, result):
    print(f"seed {seed}: {sum(chaos.done.values())} events, "
          f"{counts['open']} connections held, {counts['short']} short ones, "
          f"{counts['answers']} answers, {len(broken)} broken with their "
          f"backend, {counts['failed']} could not begin")
    print(f"{'EVENT':<18}{'TIMES':>6}{'LONGEST':>9}")
    for what, n in sorted(chaos.done.items()):
        print(f"{what:<18}{n:>6}{chaos.longest[what]:>8.1f}s")
    print(f"{'NODE':<6}{'STARTS':>7}{'FDS':>10}{'MEMORY kB':>15}  REPAIRS")
    for node, (before, after, repairs, starts) in result.items():
        fds = f"{before['fds'].total()}/{after['fds'].total()}"
        memory = f"{before['memory']}/{after['memory']}"
        print(f"{node:<6}{starts:>7}{fds:>10}{memory:>15}  " + (", ".join(
            f"{n} {k}" for k, n in repairs.items() if n) or "none"))
    print("(descriptors and memory: at the end / of a fresh start)",
          flush=True)


class FlappingSite(Site):
    """Remembers which backends were taken down on purpose."""

    def __init__(self, *args):
        super().__init__(*args)
        self.flapped = []  # (server, from, to)

    def flap(self):
        began = fab.now()
        said = super().flap()
        self.flapped.append((said.split()[1], began, fab.now()))
        return said

    def was_flapped(self, server, at):
        return any(s == server and began - 1 <= at <= to
                   for s, began, to in self.flapped)


def run(f, seconds, seed, connections=CONNECTIONS):
    """Raises if a promise was not kept; prints seed and table whatever came."""
    rng = random.Random(seed)
    print(f"chaos: seed {seed}", flush=True)
    with supervised(f) as (units, clean), site_up(f, rng,
                                                  FlappingSite) as site:
        chaos = Chaos(f, units, site, rng)
        clients, seen = Holder(f, connections), set()
        try:
            clients.wait_all()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                chaos.step()
                time.sleep(rng.uniform(0, 0.3))
                explain(site, clients, seen)
            chaos.calm()
            counts = clients.ask_all()
            explain(site, clients, seen)
        except BaseException:
            for at, what in chaos.story[-12:]:
                print(f"  {at:10.2f} {what}")
            raise
        finally:
            clients.end()
        rows = clients.rows()
        result, wrong = {}, []
        for node in fab.NODES:
            starts = len(units.unit[node].starts)
            before, after, repairs, bad = chaos.afresh(node, clean[node])
            result[node] = before, after, repairs, starts
            wrong += bad
        broken = [r for r in rows if r["what"] == "broken"]
        table(seed, chaos, counts, broken, result)
        lost = [r for r in broken if not site.excuses(r)]
        wrong += [f"lost, though its backend lived: {r}" for r in lost[:5]]
        wrong += [f"a false verdict: {x}" for x in false_verdicts(chaos)[:5]]
        if wrong:
            for at, what in chaos.story:
                print(f"  {at:10.2f} {what}")
            raise lab.FabricError(f"seed {seed}:\n" + "\n".join(wrong))


def main():
    p = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split(
        "\n")[0])
    p.add_argument("--seconds", type=float, default=1800)
    p.add_argument("--seed", type=int, default=time.time_ns() % 1000000)
    p.add_argument("--connections", type=int, default=CONNECTIONS)
    args = p.parse_args()
    f = fab.Fabric(say=print)
    try:
        f.up_network()
        f.up_nodes()
        run(f, args.seconds, args.seed, args.connections)
    except lab.FabricError as e:
        print(fab.explain(f, e), file=sys.stderr)
        return 1
    finally:
        f.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
