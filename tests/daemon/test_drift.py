#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What somebody else changes behind xlbd's back is put right within ten seconds,
said once and counted by object; nothing else is moved by it."""

import json
import shutil
import struct
import sys
import time

import node
from node import check, wait

import pinned  # noqa: E402

REPAIR = 10     # seconds, as promised


def up(n):
    if not any("create_server" in str(p.args) for p in n.process):
        n.listen_far(80, 11, 12)
    n.configure(more="checks: {c: {type: tcp, via: direct, interval: 200ms, "
                "timeout: 150ms}}", pool="check: c, ")
    n.start_xlbd()
    wait("the backends", lambda: all(
        b["eligible"] for b in n.status()["pools"][0]["backends"]))
    wait("the verdicts to be kept", lambda: len(
        pinned.map_keys(n.bpf / "health")) == 2)
    wait("the address to be announced", n.announced)


def drift(n):
    return json.loads(n.xlb("--json", "stats")[1])["drift"]


def quiet(n, since, counted):
    """A tick (5 s) later nothing more has been said or counted."""
    said = n.said()[since:]
    time.sleep(5.5)
    check(n.said()[since:] == said, "said again:", n.said()[since:])
    check(drift(n) == counted, "counted again:", drift(n), counted)


def rows_edited(n):
    """One row of every map, deleted or changed by hand, all at once."""
    up(n)
    want = pinned.state_dump(n.bpf)
    t = pinned.Tables(n.bpf)
    ring = pinned.Ring(n.bpf, pinned.ring_numbers(n.bpf)[0])
    since = len(n.said())
    t.erase("vip", next(iter(t.rows("vip"))))
    t.erase("service", next(iter(t.rows("service"))))
    t.erase("nexthop", next(iter(t.rows("nexthop"))))
    one, other = list(t.rows("backend"))
    t.erase("backend", one)
    row = bytearray(t.row("backend", other))
    struct.pack_into("=I", row, 16, 4711)   # a next hop that nobody made
    t.row("backend", other, row)
    ring.word_put(7, 0)
    t.row("settings", 0, t.row("settings", 0)[:76] + b"\xff" * 2 +
          t.row("settings", 0)[78:])
    pinned.map_delete(n.bpf / "tx_ports",
                      pinned.map_keys(n.bpf / "tx_ports")[0])
    for key in pinned.map_keys(n.bpf / "health")[:1]:
        pinned.map_delete(n.bpf / "health", key)
    pinned.map_delete(n.bpf / "ring_table", struct.pack(
        "=I", pinned.ring_numbers(n.bpf)[0]))
    check(pinned.differences(want, pinned.state_dump(n.bpf)), "nothing is lost")
    wait("all of it to be back", lambda: not pinned.differences(
        want, pinned.state_dump(n.bpf)), REPAIR)
    got = drift(n)
    for kind in ("vip", "service", "nexthop", "backend", "ring", "settings",
                 "port", "health"):
        check(got[kind] > 0, kind, "is not counted:", got)
    said = n.said()[since:]
    for text in ("vip 203.0.113.10 is", "service 203.0.113.10:80/tcp is",
                 "ring_table: 1 entries", "health: 1 verdicts"):
        check(said.count(text) == 1, text, "in", said)
    check(n.announced(), "withdrawn")
    quiet(n, since, got)


def bpffs_emptied(n):
    """What is pinned is open in xlbd: it comes back, and packets never noticed:
    the same program on the same link."""
    up(n)
    pins = {p.relative_to(n.bpf) for p in n.bpf.rglob("*")}
    link = next((n.bpf / "links").iterdir())
    before, want = pinned.link_info(link), pinned.state_dump(n.bpf)
    shutil.rmtree(n.bpf)
    wait("the pins to be back", lambda: {
        p.relative_to(n.bpf) for p in n.bpf.rglob("*")} == pins, REPAIR)
    check(pinned.link_info(link) == before, "another link:",
          pinned.link_info(link), before)
    check(not pinned.differences(want, pinned.state_dump(n.bpf)))
    files = len(pins) - 2   # directories
    check(drift(n)["pin"] == files, drift(n), files)
    check(n.said().count(f"{files} pins were missing") == 1, n.said())
    check(n.announced(), "withdrawn")
    # and the next xlbd finds all of it
    n.xlbd.kill()
    n.xlbd.wait()
    n.start_xlbd()
    check("adopted what was there" in n.said(), n.said())
    check(pinned.link_info(link) == before, "another link after a restart")


def neighbour_flushed(n):
    up(n)
    want = pinned.state_dump(n.bpf)
    # it gives up: each is made again faster than ten rounds take
    node.run("ip", "-n", n.ns, "neigh", "flush", "all", check=False)
    wait("it to be counted", lambda: drift(n)["neighbor"] > 0, REPAIR)
    check(not pinned.differences(want, pinned.state_dump(n.bpf)))
    check(n.said().count("asked for again") == 1, n.said())
    check(all(b["eligible"] for b in n.status()["pools"][0]["backends"]),
          "a backend was taken down")
    check(n.announced(), "withdrawn")


def interface_comes_back(n):
    """Gone and made anew: another number, no word from anybody."""
    up(n)
    node.run("ip", "-n", n.ns, "link", "del", "eth0")
    wait("the withdrawal", lambda: n.withdrawn())
    n.link("eth0")
    node.run("ip", "-n", n.ns, "addr", "add", "10.0.1.1/24", "dev", "eth0")
    for host in (11, 12, 254):
        node.run("ip", "-n", n.far, "addr", "add", f"10.0.1.{host}/24", "dev",
                 "eth0")
    wait("it to serve again", lambda: n.announced() and
         n.status()["forwarding"] and all(
             b["eligible"] for b in n.status()["pools"][0]["backends"]), REPAIR)
    dump = pinned.state_dump(n.bpf)
    check(all(h and h["ifindex"] == pinned.link_info(
        next((n.bpf / "links").iterdir()))[2] for h in
        dump["backends"].values()), dump["backends"])


CASES = (
    ("rows that somebody deletes or changes", rows_edited),
    ("a bpffs that somebody empties", bpffs_emptied),
    ("neighbours that somebody flushes", neighbour_flushed),
    ("an interface that goes and comes back", interface_comes_back),
)


if __name__ == "__main__":
    sys.exit(node.main(CASES))
