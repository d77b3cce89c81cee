#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon's log over a node's day: one line for each change, from what to
what and why, and nothing while nothing changes, however often is probed.
What differs from run to run is replaced; UPDATE=1 rewrites the golden."""

import difflib
import os
import re
import sys
import time

import node
from node import BUILD, VIP, check, wait

GOLDEN = node.SRC / "tests/golden/story.txt"
CHECKS = ("checks: {web: {type: tcp, port: 8080, interval: 50ms, "
          "timeout: 40ms, via: direct}}")
BGP = node.BGP.replace("linger: 0s", "linger: 1s").replace(
    "graceful_shutdown: 0s", "graceful_shutdown: 1s")
SERVER = """import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], 8080))
s.listen(64)
while True:
    s.accept()[0].close()
"""
# What is only so on this machine, or in this run.
NOT_THE_STORY = re.compile("no user _xlb, runs as nobody|"
                           "watchdog: |notify: |probes through the tunnel")


class Story:
    def __init__(self, n):
        self.n, self.seen, self.text = n, 0, []
        self.want = {}      # how many lines a step has
        for step in GOLDEN.read_text().removeprefix("# ").split("\n\n# "):
            what, *lines = step.splitlines()
            self.want[what] = len(lines)

    def lines(self):
        said = self.n.said()[self.seen:]
        for a, b in ((str(self.n.dir), "DIR"), (node.run(
                BUILD / "src/xlb", "version").stdout.split()[1], "VERSION")):
            said = said.replace(a, b)
        said = re.sub("[0-9]+ of 65537 slots move \\([0-9.]+ %\\)",
                      "N of 65537 slots move", said)
        return [re.sub("^xlbd: ", "", line) for line in said.splitlines()
                if line.startswith("xlbd: ") and
                not NOT_THE_STORY.search(line)]

    def step(self, what, last, do=None, unordered=False):
        """`last`: how the line begins that ends it. `unordered`: causes that
        have nothing to do with each other come together."""
        self.seen = len(self.n.said())
        if do is not None:
            do()
        try:
            wait(what, lambda: any(line.startswith(last)
                                   for line in self.lines()))
        except RuntimeError as e:
            raise RuntimeError(f"{e}: no {last!r} in {self.lines()}") from e
        # what comes behind that line, and then a dozen probes: none is told
        end = time.monotonic() + 20
        while len(self.lines()) < self.want.get(what, 0) and \
                time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.3)
        lines = sorted(self.lines()) if unordered else self.lines()
        self.text += [f"# {what}", *lines, ""]


def of_a_day(n):
    server = {}

    def listen(host):
        server[host] = n.start_far(sys.executable, "-c", SERVER,
                                   f"10.0.1.{host}")

    def kill(host):
        server[host].kill()
        server[host].wait()

    def asked(*args, status=0):
        def do():
            rc, _, err = n.xlb(*args)
            check(rc == status, args, rc, err)
        return do

    def file(listen="tcp/80", more=""):
        n.configure(bgp=BGP, pool="check: web, ", listen=listen,
                    more=CHECKS + "\n" + more)
        asked("reload", status=3 if more else 0)()

    def start():
        n.start_xlbd()
        wait("health", lambda: n.said().count(": unknown -> down: ") == 2)
    n.configure(bgp=BGP, pool="check: web, ", more=CHECKS)
    s = Story(n)
    s.step("start", "bird: busy -> synced", start, unordered=True)
    s.step("a backend's service is started", f"address {VIP}: withdrawn -> to",
           lambda: listen(11))
    s.step("and the other one's", "pool web: N of", lambda: listen(12))
    s.step("a backend's service dies", "pool web: N of", lambda: kill(12))
    s.step("the other one is drained", f"address {VIP}: to be announced -> with",
           asked("drain", "web/a"))
    s.step("and put back", f"address {VIP}: withdrawn -> to be announced",
           asked("undrain", "web/a"))
    s.step("the service is started again", "pool web: N of",
           lambda: listen(12))
    s.step("the node is drained", f"address {VIP}: to be announced -> withdrawn",
           asked("drain", "node"))
    s.step("and put back", f"address {VIP}: withdrawn -> to be announced",
           asked("undrain", "node"))
    s.step("another configuration", "configuration:",
           lambda: file("tcp/80, tcp/443"))
    s.step("the same again", "configuration:", lambda: file("tcp/80, tcp/443"))
    s.step("one that does not load", "configuration:",
           lambda: file(more="nonsense: 1\nnod: {}"))
    s.step("another one that does not", "configuration:",
           lambda: file(more="nonsense: 1"))
    s.step("and the first one", "configuration:", file)
    s.step("BIRD ends", "bird: synced -> absent", n.stop_bird)
    s.step("BIRD is back", "bird: absent -> synced", n.start_bird)
    s.step("xlbd is started anew", "daemon: starting -> serving",
           asked("restart"), unordered=True)
    s.step("stop", "daemon: stopping -> stopped", asked("stop"))
    got = "\n".join(s.text)
    if os.environ.get("UPDATE"):
        GOLDEN.write_text(got)
    want = GOLDEN.read_text()
    check(got == want, "\n" + "\n".join(difflib.unified_diff(
        want.splitlines(), got.splitlines(), "story.txt", "got",
        lineterm="")))


if __name__ == "__main__":
    sys.exit(node.main([of_a_day]))
