# SPDX-License-Identifier: GPL-2.0-or-later
"""NAT: backends that hold no VIP and unwrap nothing, asked from the node."""

import contextlib
import os
import signal
import time

import lab
import pytest
from fabric import NODES, POOL_ADDRESS, address
from test_nodes import restart

NAT = {4: "203.0.113.40", 6: "2001:db8:5::40"}
SERVERS = {4: ("b1", "b2"), 6: ("b3",)}
CONNECTIONS = int(os.environ.get("XLB_NAT_CONNECTIONS", "200"))


def with_nat(text, state=None):
    """A service for each family, which asks port 80; the pools are their own."""
    pools, services = "", ""
    for f in (4, 6):
        members = "\n".join(
            f'      - {{name: {b}, address: "{POOL_ADDRESS[b]}", '
            f'state: {(state or {}).get(b, "active")}}}' for b in SERVERS[f])
        pools += f"  nat{f}:\n    check: web\n    backends:\n{members}\n"
        services += (f'  - name: nat{f}\n    addresses: ["{NAT[f]}"]\n'
                     f"    listen: [tcp/80, tcp/8080]\n    pool: nat{f}\n"
                     "    forward: nat\n    backend_port: 80\n")
    return text.replace("pools:\n", "pools:\n" + pools) + services


def say(fabric, change=lambda t: t, nodes=NODES):
    for node in nodes:
        fabric.write_config(node, change(fabric.config(node)))
        fabric.must(node, "reload")


@pytest.fixture
def nat(fabric):
    say(fabric, with_nat)
    for f in (4, 6):
        lab.wait("paths to the NAT service", lambda f=f: fabric.paths(
            f, NAT[f]) == list(NODES), 15)
        # not by BGP: a node whose xlbd is killed stays the router's, for its
        # flows are known nowhere else
        fabric.run("router", "ip", f"-{f}", "route", "add", NAT[f], "metric",
                   1, *(w for n in NODES for w in (
                       "nexthop", "via", address(n, f))))
    yield fabric
    for f in (4, 6):
        fabric.run("router", "ip", f"-{f}", "route", "del", NAT[f], "metric",
                   1)
    say(fabric)


@contextlib.contextmanager
def connections(fabric):
    """So many that stay, and new ones all the time; none may fail."""
    loads = [fabric.load(f, rate=40, keep=CONNECTIONS // 2, to=NAT[f])
             for f in (4, 6)]
    try:
        for one in loads:
            one.wait_for(CONNECTIONS)
        yield
        time.sleep(0.5)
    finally:
        rows = [r for one in loads for r in one.stop()]
    bad = [r for r in rows if not r.ok]
    assert not bad, f"{len(bad)} of {len(rows)}: {bad[:3]}"
    assert {r.backend for r in rows} == {"b1", "b2", "b3"}


def test_backends_see_the_node(nat):
    for f in (4, 6):
        got = nat.http(40, f, to=NAT[f])
        assert [r for r in got if not r.ok] == []
        assert {r.backend for r in got} == set(SERVERS[f])
    # both nodes know flows of theirs, and which port they have
    counts = [lab.wait("flows", lambda n=n: nat.must(
        n, "flows", "--nat", "--json").json["flows"], 30) for n in NODES]
    assert sum(counts) >= 20, counts
    mine = {address(n, f) for n in NODES for f in (4, 6)}
    peer, port = address("client", 4), nat.http(1, 4, to=NAT[4])[0].port
    found = [nat.must(n, "lookup", "tcp", f"{peer}:{port}", f"{NAT[4]}:80",
                      "--json").json["nat"] for n in NODES]
    known = [x for x in found if x]
    assert len(known) == 1 and known[0]["port"] == 80, found
    source, port = known[0]["source"].rsplit(":", 1)
    assert source in mine and 16384 <= int(port) < 32768
    assert "this node" in nat.must("lb1", "status").out


def test_nothing_breaks_a_connection(nat):
    with connections(nat):
        say(nat, with_nat)
        restart(nat, "lb1")
        nat.daemon["lb2"].signal(signal.SIGKILL)
        nat.daemon["lb2"].exit()
        nat.start_node("lb2")
        for node in NODES:
            nat.must(node, "drain", "nat4/b1")
        lab.wait("b1 to drain", lambda: nat.pool("lb1", "nat4")["b1"][
            "state"] == "drain")
        for node in NODES:
            nat.must(node, "undrain", "nat4/b1")


def test_a_dead_backend_gets_nothing(nat):
    nat.kill_backend("b1")
    lab.wait("b1 to be down", lambda: all(
        nat.pool(n, "nat4")["b1"]["health"] == "down" for n in NODES))
    got = nat.http(30, 4, to=NAT[4])
    assert [r for r in got if not r.ok] == [] and \
        {r.backend for r in got} == {"b2"}


def test_backends_need_no_vip(nat):
    """They answer from their own address, which nobody but the node sees."""
    for b in ("b1", "b2", "b3"):
        text = nat.run(b, "ip", "addr", "show").stdout
        assert NAT[4] not in text and NAT[6] not in text
    got = nat.run("b1", "ss", "-Htn", "state", "established", "state",
                  "time-wait", "sport", "=", ":80", check=False).stdout
    assert address("client", 4) not in got
