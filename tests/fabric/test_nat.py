# SPDX-License-Identifier: GPL-2.0-or-later
"""NAT: backends that hold no VIP and unwrap nothing, asked from the node."""

import contextlib
import os
import signal

import fabric as fab
import lab
import pinned
import pytest
from fabric import NODES, POOL_ADDRESS, PYTHON, address
from test_nodes import restart
from test_upgrade import forget_program

NAT = {4: "203.0.113.40", 6: "2001:db8:5::40"}
SERVERS = {4: ("b1", "b2"), 6: ("b3",)}
CONNECTIONS = int(os.environ.get("XLB_NAT_CONNECTIONS", "1000"))
PORTS = range(16384, 32768)     # that NAT takes


# Which of NAT's ports somebody answers on; argument 2: of the first thousand, with
# so long for each.
SCAN = """
import socket, sys
wait = float(sys.argv[2]) if len(sys.argv) > 2 else 5
for port in range(16384, 32768 if len(sys.argv) < 3 else 17384):
    s = socket.socket()
    s.settimeout(wait)
    try:
        s.connect((sys.argv[1], port))
        print(port)
    except OSError:
        pass
    s.close()
"""


def with_nat(text, state=None, more=""):
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
    return text.replace("pools:\n", "pools:\n" + pools) + services + more


def say(fabric, change=lambda t: t, nodes=NODES):
    for node in nodes:
        fabric.write_config(node, change(fabric.config(node)))
        fabric.must(node, "reload")


@pytest.fixture
def nat(fabric):
    say(fabric, with_nat)
    for f in (4, 6):
        lab.wait("paths to the NAT service", lambda f=f: fabric.paths(
            f, NAT[f]) == list(NODES), 60)
        # a path needs one of them that is up, what follows needs all
        fabric.wait_eligible(SERVERS[f], pool=f"nat{f}")
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
    loads = [fabric.load(f, rate=40, keep=CONNECTIONS // 2, to=NAT[f],
                         pause=0.5) for f in (4, 6)]
    try:
        for one in loads:
            one.wait_kept(CONNECTIONS // 2)
        yield
        since = fab.now()
        for one in loads:
            one.wait_kept(CONNECTIONS // 2, since)
    finally:
        rows = [r for one in loads for r in one.stop()]
    bad = [r for r in rows if not r.ok]
    assert not bad, f"{len(bad)} of {len(rows)}: {bad[:3]}"
    assert {r.backend for r in rows} == {"b1", "b2", "b3"}
    of = {}
    for r in rows:
        if r.conn is not None:
            of.setdefault((r.backend == "b3", r.conn), set()).add(r.backend)
    assert len(of) == CONNECTIONS // 2 * 2
    assert all(len(b) == 1 for b in of.values()), "some have moved"


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


def program_of(fabric, node):
    at = next((fabric.pins(node) / "links").iterdir())
    return pinned.link_info(at)[1]


def upgrade(fabric, node):
    """The pinned program is taken for one of another build."""
    before = program_of(fabric, node)
    forget_program(fabric.pins(node))
    restart(fabric, node)
    assert program_of(fabric, node) != before, "not replaced"


def test_nothing_breaks_a_connection(nat):
    for b in ("b1", "b2", "b3"):
        nat.decap(b, "detach", "eth0")
    with connections(nat):
        say(nat, lambda t: with_nat(t, more=f"""\
  - name: more
    addresses: [{NAT[4]}]
    listen: [tcp/8443]
    pool: nat4
    forward: nat
"""))
        for node in NODES:
            nat.must(node, "drain", "nat4/b1")
        lab.wait("b1 to drain", lambda: all(
            nat.pool(n, "nat4")["b1"]["state"] == "drain" for n in NODES))
        restart(nat, "lb1")
        nat.daemon["lb2"].signal(signal.SIGKILL)
        nat.daemon["lb2"].exit()
        nat.start_node("lb2")
        nat.wait_answer("lb2")
        for node in NODES:
            upgrade(nat, node)
        for node in NODES:
            nat.must(node, "undrain", "nat4/b1")
    for b in ("b1", "b2", "b3"):
        nat.attach_decap(b)


def test_drain_waits_for_flows(nat):
    """Those that NAT has are among what `drain --wait` waits for."""
    def flows(n):
        return sum(b["flows"] - b["ended"] for b in nat.must(
            n, "flows", "--json").json["backends"]
                   if b["address"] == POOL_ADDRESS["b1"])

    # those of other tests end, but for some that lost their node: these stay
    # idle on the other one until their time is over
    lab.wait("a node without flows", lambda: 0 in map(flows, NODES), 240,
             pause=1)
    others = [flows(n) for n in NODES]
    load = nat.load(4, rate=0, keep=20, to=NAT[4])
    try:
        load.wait_kept(20)
        waiting = [nat.start(n, "drain", nat.program("xlb"), *nat.options(n),
                             "drain", "--wait", "nat4/b1") for n in NODES]
        load.wait_for(60)
        left = [nat.must(n, "flows", "--json").json for n in NODES]
        assert sum(x["nat"] for x in left) >= 20, left
        mine = [b["flows"] - b["ended"] for x in left for b in x["backends"]
                if b["address"] == POOL_ADDRESS["b1"]]
        assert sum(mine) > 0, left
        busy = [w for w, n in zip(waiting, mine) if n > 0]
        assert all(w.alive() for w in busy), "it did not wait"
        peer = address("client", 4)
        found = [f for n in NODES for f in nat.must(
            n, "flows", "--client", peer, "--json").json["found"]
            if f["destination"] == NAT[4] and f["confirmed"]]
        assert len(found) >= 20, found
    finally:
        rows = load.stop()
    assert all(r.ok for r in rows)
    # half a minute after their end, and then the sweep has to come by
    for w, left in zip(waiting, others):
        if left == 0:
            assert w.exit(240) == 0
        else:
            w.kill()
    for n in NODES:
        nat.must(n, "undrain", "nat4/b1")


def test_scans_find_the_host_alone(nat):
    """A port of ours leads to a backend for that backend's replies; for whoever
    else it is what it is without NAT: the host's."""
    node = "lb1"
    mine, load = address(node, 4), nat.load(4, rate=0, keep=20, to=NAT[4])
    host = nat.start(node, "host", PYTHON, "-m", "http.server", "-b", mine,
                     "20000")
    lab.wait("the host's service", lambda: lab.connects("client", mine, 20000))
    try:
        load.wait_kept(20)
        before = nat.must(node, "stats", "--json").json["reasons"]
        found = nat.run("client", PYTHON, "-c", SCAN, mine, timeout=300)
        after = nat.must(node, "stats", "--json").json["reasons"]
        assert found.stdout.split() == ["20000"], found.stdout
        assert after["not_vip"] - before["not_vip"] >= len(PORTS)
        # nor is the VIP a way to it
        got = nat.run("client", PYTHON, "-c", SCAN, NAT[4], "0.02",
                      timeout=300, check=False).stdout
        assert got.split() == [], got
        load.wait_for(20)
    finally:
        rows = load.stop()
        host.kill()
    assert all(r.ok for r in rows), [r for r in rows if not r.ok][:3]


def test_a_dead_backend_gets_nothing(nat):
    nat.kill_backend("b1")
    nat.wait_eligible(["b2"], pool="nat4")
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
