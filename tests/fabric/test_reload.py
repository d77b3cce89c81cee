# SPDX-License-Identifier: GPL-2.0-or-later
"""A new file takes effect without a lost packet; a bad one has no effect."""

import re
import signal

import lab
import pytest
from fabric import NODES, VIP
from test_nodes import under_load

MORE = """
  - name: more
    addresses: [203.0.113.11]
    listen: [tcp/80, udp/53]
    pool: web
"""


def with_more(text):
    return text + MORE.lstrip("\n")


def configures(node):
    """How often BIRD was reconfigured."""
    return (lab.RUN / node / "bird.log").read_text().count("Reconfiguring")


def test_reload_under_load(fabric):
    with under_load(fabric):
        for _ in range(5):
            for text in (with_more, lambda t: t):
                for node in NODES:
                    fabric.write_config(node, text(fabric.config(node)))
                    fabric.must(node, "reload")
        fabric.wait_paths(NODES)


def test_added_service_serves(fabric):
    for node in NODES:
        fabric.write_config(node, with_more(fabric.config(node)))
        fabric.must(node, "reload")
    try:  # the backends have to hold it, too, and say so to xlb-decap
        for b in fabric.nginx:
            fabric.run(b, "ip", "addr", "add", "203.0.113.11/32", "dev", "lo")
            fabric.attach_decap(b)
        lab.wait("paths to the new address", lambda: fabric.paths(
            4, "203.0.113.11") == list(NODES))
        got = fabric.http(30, 4, to="203.0.113.11")
        assert [r for r in got if not r.ok] == []
    finally:
        for b in fabric.nginx:
            fabric.run(b, "ip", "addr", "del", "203.0.113.11/32", "dev", "lo")
            fabric.attach_decap(b)
    for node in NODES:
        fabric.write_config(node, fabric.config(node))
        fabric.must(node, "reload")
    lab.wait("no path to the removed address", lambda: fabric.paths(
        4, "203.0.113.11") == [])
    fabric.wait_paths(NODES)


def test_backend_added_and_removed(fabric):
    for pool in (("b1", "b2"), ("b1", "b2", "b3")):
        for node in NODES:
            fabric.write_config(node, fabric.config(node, pool=pool))
            fabric.must(node, "reload")
        fabric.wait_eligible(pool)
        for f in (4, 6):
            assert set(fabric.flows(f, n=90).values()) == set(pool)


@pytest.mark.parametrize("find, put, line, said", (
    ("weight: 100", "weight: 3000", "b1", "3000 is not in 0..1000"),
    ("    pool: web", "    pool: wbe", "pool: wbe", "wbe"),
    ("  hold:", "  hodl:", "hodl", "hodl"),
))
def test_bad_file_changes_nothing_and_says_where(fabric, find, put, line,
                                                 said):
    before = {f: fabric.flows(f, n=100) for f in (4, 6)}
    ring = fabric.must("lb1", "fingerprint", "--json").json
    count = configures("lb1")
    text = fabric.config("lb1").replace(find, put, 1)
    path = fabric.write_config("lb1", text)
    number = next(i for i, x in enumerate(text.splitlines(), 1)
                  if put in x and line in x)
    with under_load(fabric):
        got = fabric.xlb("lb1", "reload")
        assert got.exit == 3
        assert re.search(rf"^{re.escape(str(path))}:{number}:\d+: .*"
                         + re.escape(said), got.err, re.M), got.err
        assert fabric.xlb("lb1", "check").exit == 3
    assert {f: fabric.flows(f, n=100) for f in (4, 6)} == before
    assert fabric.must("lb1", "fingerprint", "--json").json == ring
    assert not fabric.status("lb1")["config"]["ok"]
    assert configures("lb1") == count
    fabric.wait_paths(NODES)

    fabric.write_config("lb1", fabric.config("lb1"))
    fabric.must("lb1", "reload")
    assert fabric.status("lb1")["config"]["ok"]


def test_same_file_does_nothing(fabric):
    count = configures("lb1")
    for _ in range(3):
        fabric.must("lb1", "reload")
    assert configures("lb1") == count
    assert fabric.must("lb1", "diff", "--exit-code").exit == 0


def test_sighup(fabric):
    fabric.write_config("lb1", fabric.config("lb1", state={"b1": "down"}))
    fabric.daemon["lb1"].signal(signal.SIGHUP)
    fabric.wait_eligible(["b2", "b3"], ["lb1"])
    fabric.write_config("lb1", "nonsense: [")
    fabric.daemon["lb1"].signal(signal.SIGHUP)
    lab.wait("status to tell of the bad file", lambda: not fabric.status(
        "lb1")["config"]["ok"])
    assert fabric.eligible("lb1") == ["b2", "b3"]


def test_diff_tells_what_a_file_would_do(fabric):
    text = fabric.config("lb1", state={"b1": "down"})
    slots = fabric.slots("lb1")
    got = fabric.xlb("lb1", "diff", "--exit-code", "--json", "-", stdin=text)
    assert got.exit == 1
    pool = {p["name"]: p for p in got.json["pools"]}
    assert pool["web"]["slots_moved"] == slots["b1"]
    assert fabric.slots("lb1") == slots
    assert VIP[4] in fabric.must("lb1", "status").out


def test_started_with_a_bad_file(fabric):
    """The accepted text was kept: that is what runs, and status says so."""
    before = fabric.flows(4, n=100)
    fabric.daemon["lb1"].signal(signal.SIGTERM)
    fabric.daemon["lb1"].exit()
    fabric.write_config("lb1", "nonsense: [")
    fabric.start_node("lb1")
    fabric.wait_ready()
    assert not fabric.status("lb1")["config"]["ok"]
    assert fabric.flows(4, n=100) == before
