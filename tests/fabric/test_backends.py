# SPDX-License-Identifier: GPL-2.0-or-later
"""Backends fail and recover: only their own slots move, and come back."""

import json

import fabric as fab
import lab
import pytest
from fabric import BACKENDS, NODES, POOL_ADDRESS


def without(b):
    return [x for x in BACKENDS if x != b]


def moved(before, after):
    assert before.keys() == after.keys()
    return {p for p in before if before[p] != after[p]}


@pytest.mark.parametrize("victim", BACKENDS)
def test_dead_backend_gives_up_its_slots_alone(fabric, victim):
    before = {f: fabric.flows(f) for f in (4, 6)}
    ring = fabric.must("lb1", "fingerprint", "--json").json
    load = fabric.load(4, rate=100)
    load.wait_for(30)
    fabric.kill_backend(victim)
    fabric.wait_eligible(without(victim))
    since = fab.now()
    load.wait_for(100, since)
    after = [r for r in load.stop() if r.start > since]
    assert [r for r in after if not r.ok] == []

    for f in (4, 6):
        now = fabric.flows(f)
        assert moved(before[f], now) == {
            p for p, b in before[f].items() if b == victim}
        assert set(now.values()) == set(without(victim))
    assert fabric.must("lb1", "fingerprint", "--json").json != ring

    fabric.start_backend(victim)
    fabric.wait_eligible(BACKENDS)
    for f in (4, 6):
        assert fabric.flows(f) == before[f]
    assert fabric.must("lb1", "fingerprint", "--json").json == ring


def test_reason_is_told(fabric):
    fabric.kill_backend("b2")
    fabric.wait_eligible(without("b2"))
    row = fabric.pool("lb1")["b2"]
    assert row["health"] == "down"
    assert "refused" in row["reason"]
    log = (lab.RUN / "lb1" / "xlbd.log").read_text()
    assert "refused" in log


def test_silent_backend(fabric):
    """The link is gone: nothing is refused, nothing answers."""
    fabric.run("rack", "ip", "link", "set", "b2", "nomaster")
    try:
        fabric.wait_eligible(without("b2"))
        for f in (4, 6):
            assert set(fabric.flows(f, n=60).values()) == {"b1", "b3"}
    finally:
        fabric.plug("b2")
    fabric.wait_eligible(BACKENDS)
    assert set(fabric.flows(4, n=60).values()) == set(BACKENDS)


def mac_of(fabric, ns):
    return json.loads(fabric.run(ns, "ip", "-j", "link", "show",
                                 "eth0").stdout)[0]["address"]


def test_backend_with_another_mac(fabric):
    """A replaced machine that says so (gratuitous ARP, unsolicited neighbour
    advertisement) is used at once."""
    mac = mac_of(fabric, "b1")
    fabric.run("b1", "sysctl", "-q", "-w", "net.ipv4.conf.eth0.arp_notify=1",
               "net.ipv6.conf.eth0.ndisc_notify=1")
    for new in ("02:00:00:00:b1:01", mac):
        fabric.run("b1", "ip", "link", "set", "eth0", "address", new)
        lab.wait("the nodes to know the new address", lambda n=new: all(
            n in fabric.run(node, "ip", "neigh", "show",
                            POOL_ADDRESS["b1"]).stdout for node in NODES), 5)
        fabric.spread(4)


def test_backend_with_another_mac_says_nothing(fabric):
    """The nodes ask again once its checks time out, not after the 25 s that the
    kernel asks the old one."""
    mac = mac_of(fabric, "b1")
    fabric.run("b1", "sysctl", "-q", "-w", "net.ipv4.conf.eth0.arp_notify=0",
               "net.ipv6.conf.eth0.ndisc_notify=0")
    new = "02:00:00:00:b1:02"
    fabric.run("b1", "ip", "link", "set", "eth0", "address", new)
    try:
        lab.wait("the nodes to find the new address", lambda: all(
            new in fabric.run(node, "ip", "neigh", "show",
                              POOL_ADDRESS["b1"]).stdout for node in NODES), 12)
        fabric.spread(4)
    finally:
        fabric.run("b1", "sysctl", "-q", "-w",
                   "net.ipv4.conf.eth0.arp_notify=1",
                   "net.ipv6.conf.eth0.ndisc_notify=1")
        fabric.run("b1", "ip", "link", "set", "eth0", "address", mac)
        fabric.wait_eligible(BACKENDS)


def test_no_backend_no_route(fabric):
    for b in BACKENDS:
        fabric.kill_backend(b)
    fabric.wait_paths([])
    for node in NODES:
        # BIRD withdraws a moment before it has answered that it did
        lab.wait(f"{node} to know that", lambda n=node: not any(
            a["in_bird"] for a in fabric.status(n)["addresses"]))
        assert all(a["reason"] for a in fabric.status(node)["addresses"])
    assert not fabric.http(1, 4, timeout=1)[0].ok
    for b in BACKENDS:
        fabric.start_backend(b)
    fabric.wait_ready()
    fabric.flows(6, n=30)


def test_min_healthy(fabric):
    for node in NODES:
        fabric.write_config(node, fabric.config(node, min_healthy=2))
        fabric.must(node, "reload")
    fabric.kill_backend("b1")
    fabric.wait_eligible(without("b1"))
    fabric.wait_paths(NODES)
    fabric.kill_backend("b2")
    fabric.wait_paths([])
    fabric.start_backend("b2")
    fabric.wait_paths(NODES)


def test_configured_states(fabric):
    """`down` and `drain` take no new flows."""
    for node in NODES:
        fabric.write_config(node, fabric.config(
            node, state={"b1": "down", "b2": "drain"}))
        fabric.must(node, "reload")
    fabric.wait_eligible(["b3"])
    for f in (4, 6):
        assert set(fabric.flows(f, n=60).values()) == {"b3"}


@pytest.fixture
def ready_check(fabric):
    """The nodes ask every backend for /ready. nginx itself answers that, and has
    to be let run: more time than for what a kernel answers."""
    for node in NODES:
        fabric.write_config(node, fabric.config(node).replace(
            "type: tcp", 'type: http, path: /ready, body: "ready"').replace(
                "interval: 200ms, timeout: 150ms",
                "interval: 500ms, timeout: 450ms"))
        fabric.must(node, "reload")
    yield
    for b in BACKENDS:
        fabric.set_ready(b)


def wait_health(fabric, b, health):
    for node in NODES:
        lab.wait(f"{b} to be {health} for {node}", lambda n=node:
                 fabric.pool(n)[b]["health"] == health,
                 seen=lambda n=node: fabric.pool(n)[b])


def test_ready_503_drains(fabric, ready_check):
    """No new flows; the connections that are there live on."""
    fabric.wait_eligible(BACKENDS)
    # so many that b1 has some, whatever their ports
    kept = 50
    load = fabric.load(4, rate=20, keep=kept, pause=0.2)
    load.wait_kept(kept)
    fabric.set_ready("b1", 503)
    wait_health(fabric, "b1", "drain")
    fabric.wait_eligible(without("b1"))
    since = fab.now()
    row = fabric.pool("lb1")["b1"]
    assert row["reason"].endswith("HTTP 503 asks for no new flows")
    assert row["state"] == "active" and row["slots"] == 0
    for f in (4, 6):
        assert set(fabric.flows(f, n=60).values()) == {"b2", "b3"}
    load.wait_kept(kept, since)
    load.wait_for(300, since)
    rows = load.stop()
    assert [r for r in rows if not r.ok] == []
    before = {r.conn: r.backend for r in rows if r.conn is not None
              and r.start < since}
    after = {r.conn: r.backend for r in rows if r.conn is not None
             and r.start > since}
    assert "b1" in before.values() and len(before) == kept
    assert after == before
    assert {r.backend for r in rows if r.conn is None and r.start > since} \
        == {"b2", "b3"}

    # none of that is true of an answer that just fails
    fabric.set_ready("b1", 500)
    wait_health(fabric, "b1", "down")
    assert fabric.pool("lb1")["b1"]["reason"].endswith(
        "HTTP 500, expected 200")
    log = (lab.RUN / "lb1" / "xlbd.log").read_text()
    assert "HTTP 503 asks for no new flows" in log
    assert "HTTP 500, expected 200" in log
    fabric.set_ready("b1")
    fabric.wait_eligible(BACKENDS)
    fabric.spread(4)
