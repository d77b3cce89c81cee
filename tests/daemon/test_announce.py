#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""When an address is announced, and in which order it comes and goes: one test
for each condition, each seen from BIRD."""

import shutil
import sys
import threading
import time

import node
from node import VIP, check, run, wait

CHECKED = ("checks: {c: {type: tcp, port: 80, via: direct, interval: 50ms, "
           "timeout: 40ms, rise: 2, fall: 2}}")
PROGRAM = node.BUILD / "tests/fabric/veth.bpf.o"


def reason(n):
    return n.status()["addresses"][0]["reason"]


def never(n, why, seconds=0.5):
    """Not announced, and for that reason, for a while."""
    wait(f"the reason {why}", lambda: why in reason(n))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check(n.withdrawn(), "announced, though:", why)
        time.sleep(0.02)
    check(why in reason(n), reason(n))


class Foreign:
    """Another program in our place on the node's device."""

    def __init__(self, n, device):
        self.n, self.device = n, device
        self.pins = node.BPFFS / (n.bpf.name + "f")

    def __enter__(self):
        self.pins.mkdir()
        run("bpftool", "prog", "loadall", PROGRAM, self.pins)
        run(*self.n.inside("bpftool", "net", "attach", "xdpdrv", "pinned",
                           self.pins / "xlbf_pass", "dev", self.device))

    def __exit__(self, *_):
        run(*self.n.inside("bpftool", "net", "detach", "xdpdrv", "dev",
                           self.device), check=False)
        shutil.rmtree(self.pins)


def attached_on_all_that_are_up(n):
    n.link("eth1")
    n.configure(interfaces="{name: eth0}, {name: eth1}")
    with Foreign(n, "eth1"):
        n.start_xlbd()
        never(n, "no data path")
        text = n.xlb("status")[1]
        check("an interface is not attached as wanted" in text and
              "eth1 not attached" in text, text)
        # one that is down does not matter
        run("ip", "-n", n.ns, "link", "set", "eth1", "down")
        wait("the address without eth1", n.announced)
        run("ip", "-n", n.ns, "link", "set", "eth1", "up")
        wait("the withdrawal", lambda: n.withdrawn(), 3)
    wait("both interfaces", lambda: n.announced() and all(
        i["attached"] for i in n.status()["interfaces"]), 12)
    run("ip", "-n", n.ns, "link", "del", "eth1")


def attached_in_the_wanted_mode(n):
    """A driver without XDP: native is refused, and nothing is announced."""
    run("ip", "-n", n.ns, "link", "add", "slow0", "type", "bridge")
    run("ip", "-n", n.ns, "link", "set", "slow0", "up")
    n.link("port0")
    run("ip", "-n", n.ns, "link", "set", "port0", "master", "slow0")
    n.configure(interfaces="{name: eth0}, {name: slow0}")
    n.start_xlbd()
    never(n, "no data path")
    n.configure(interfaces="{name: eth0}, {name: slow0, xdp: auto}")
    check(n.xlb("reload")[0] == 0, "reload")
    wait("the address", n.announced)
    check(n.status()["interfaces"][1]["mode"] == "generic", n.status())
    run("ip", "-n", n.ns, "link", "del", "slow0")
    run("ip", "-n", n.ns, "link", "del", "port0")


class Backends:
    """What listens on port 80 of the backends; `up`: who answers."""

    def __init__(self, n, up):
        self.n, self.process = n, {}
        for b in up:
            self.start(b)

    def start(self, b):
        self.process[b] = self.n.start_far(
            "/usr/bin/python3", "-c",
            "import socket\n"
            f"s = socket.create_server(('{b}', 80))\n"
            "while True: s.accept()[0].close()")

    def stop(self, b):
        self.process[b].kill()
        self.process.pop(b).wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for b in list(self.process):
            self.stop(b)


A, B = "10.0.1.11", "10.0.1.12"


def enough_backends_for_hold(n):
    n.configure(more=CHECKED, pool="check: c, min_healthy: 2, ",
                bgp=node.BGP.replace("hold: 0s", "hold: 2s"))
    with Backends(n, [A]) as backends:
        n.start_xlbd()
        never(n, "service is not ready")
        backends.start(B)
        wait("the hold", lambda: "held until" in reason(n))
        # interrupted, it begins anew
        time.sleep(0.3)
        backends.stop(B)
        wait("one too few", lambda: "not ready" in reason(n))
        again = time.monotonic()
        backends.start(B)
        wait("the hold", lambda: "held until" in reason(n))
        wait("the address", n.announced)
        took = time.monotonic() - again
        check(took > 2, took)
        # and it goes at once
        backends.stop(A)
        wait("the withdrawal", lambda: n.withdrawn(), 1)


def a_next_hop_is_known(n):
    """Nobody has the backends' addresses."""
    n.configure(backends="{name: a, address: 10.0.1.21}, "
                "{name: b, address: 10.0.1.22}")
    n.start_xlbd()
    never(n, "service is not ready")
    check("no neighbour" in n.xlb("status")[1], n.xlb("status")[1])
    run("ip", "-n", n.far, "addr", "add", "10.0.1.21/24", "dev", "eth0")
    wait("the address with one", n.announced)
    run("ip", "-n", n.far, "addr", "del", "10.0.1.21/24", "dev", "eth0")


def nothing_from_before_a_reboot(n):
    """What /run and bpffs held is gone, the state directory is not; before a
    backend is known to be healthy nothing is announced."""
    n.configure(more=CHECKED, pool="check: c, ")
    with Backends(n, [A, B]):
        n.start_xlbd()
        wait("the address", n.announced)
    n.xlbd.kill()
    n.xlbd.wait()
    n.stop_bird()
    for path in (n.bpf, n.dir / "run", n.dir / "bird"):
        shutil.rmtree(path)
    n.start_bird()
    n.start_xlbd()
    check((n.dir / "state/accepted.json").exists(), "nothing was kept")
    never(n, "service is not ready", 1)
    with Backends(n, [A, B]):
        wait("the address", n.announced)


class Watch(threading.Thread):
    """What a router and the wire see, each state once, with its time."""

    def __init__(self, n):
        super().__init__(daemon=True)
        self.n, self.seen, self.on = n, [], True
        self.start()

    def look(self):
        text = self.n.birdc(f"show route {VIP}/32 table xlb4t all")
        route = "none"
        if "xlb0" in text:
            route = "gshut" if "(65535,0)" in text else "plain"
        xdp = "xdp" in run("ip", "-n", self.n.ns, "link", "show",
                           "eth0").stdout
        return route, "attached" if xdp else "detached"

    def run(self):
        while self.on:
            now = self.look()
            if not self.seen or self.seen[-1][1] != now:
                self.seen.append((time.monotonic(), now))
            time.sleep(0.01)

    def end(self):
        self.on = False
        self.join()
        return [x for _, x in self.seen], \
            [b[0] - a[0] for a, b in zip(self.seen, self.seen[1:])]


SLOW = node.BGP.replace("graceful_shutdown: 0s", "graceful_shutdown: 2s"
                        ).replace("linger: 0s", "linger: 2s")
PLAIN, GSHUT, GONE = (("plain", "attached"), ("gshut", "attached"),
                      ("none", "attached"))


def a_stop_in_its_order(n):
    n.configure(bgp=SLOW)
    n.start_xlbd()
    wait("the address", n.announced)
    watch = Watch(n)
    wait("a first look", lambda: watch.seen)
    check(n.xlb("stop")[0] == 0, "stop")
    wait("the end", lambda: watch.seen[-1][1] == ("none", "detached"))
    states, took = watch.end()
    check(states == [PLAIN, GSHUT, GONE, ("none", "detached")], states)
    check(took[1] > 0.5 and took[2] > 0.5, took)


def a_start_in_its_order(n):
    n.configure()
    watch = Watch(n)
    wait("a first look", lambda: watch.seen)
    n.start_xlbd()
    wait("the address", lambda: watch.seen[-1][1] == PLAIN)
    states, _ = watch.end()
    check(states in ([("none", "detached"), GONE, PLAIN],
                     [("none", "detached"), PLAIN]), states)


def a_drain_in_its_order(n):
    """By hand, and by the file; what is taken back is as before."""
    n.configure(bgp=SLOW)
    n.start_xlbd()
    wait("the address", n.announced)
    watch = Watch(n)
    wait("a first look", lambda: watch.seen)
    check(n.xlb("drain", "node")[0] == 0, "drain")
    wait("65535:0", lambda: watch.seen[-1][1] == GSHUT)
    check(n.xlb("undrain", "node")[0] == 0, "undrain")
    wait("that it is taken back", lambda: watch.seen[-1][1] == PLAIN)
    n.configure(bgp=SLOW, node="node: {name: n, state: drain}")
    check(n.xlb("reload")[0] == 0, "reload")
    wait("the withdrawal", lambda: watch.seen[-1][1] == GONE)
    check("node is draining" in reason(n), reason(n))
    n.configure(bgp=SLOW)
    check(n.xlb("reload")[0] == 0, "reload")
    wait("the address", lambda: watch.seen[-1][1] == PLAIN)
    states, took = watch.end()
    check(states == [PLAIN, GSHUT, PLAIN, GSHUT, GONE, PLAIN], states)
    check(took[3] > 0.5, took)


CASES = (
    attached_on_all_that_are_up, attached_in_the_wanted_mode,
    enough_backends_for_hold, a_next_hop_is_known,
    nothing_from_before_a_reboot, a_start_in_its_order, a_stop_in_its_order,
    a_drain_in_its_order)


if __name__ == "__main__":
    sys.exit(node.main(CASES))
