# SPDX-License-Identifier: GPL-2.0-or-later
"""Packets from the client reach the right backend, over each node."""

import errno
import json
import math
import socket

import fabric as fab
import lab
import pinned
import pytest
from fabric import BACKENDS, NODES, VIP, address

FAMILIES = (4, 6)
SO_RCVBUFFORCE, ETH_P_ALL = 33, 3


def frames_to(f, node):
    """Frames that the rack's switch sent to a node."""
    link = json.loads(f.run("rack", "ip", "-j", "-s", "link", "show",
                            node).stdout)[0]
    return link["stats64"]["tx"]["packets"]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_request_is_answered(fabric, family):
    got = fabric.http(200, family)
    assert [r for r in got if not r.ok] == []
    assert sorted(fab.shares(got)) == sorted(BACKENDS)


def test_both_nodes_forward(fabric):
    before = {n: frames_to(fabric, n) for n in NODES}
    for family in FAMILIES:
        fabric.http(200, family)
    for n in NODES:
        # A request is 5 packets at least and the router spreads by flow.
        assert frames_to(fabric, n) - before[n] > 500


@pytest.mark.parametrize("family", FAMILIES)
def test_spread_follows_weight(fabric, family):
    """Source ports are given, so it is the same 1500 flows at every run."""
    weight = {"b1": 100, "b2": 50, "b3": 25}
    for node in NODES:
        fabric.write_config(node, fabric.config(node, weight=weight))
        fabric.must(node, "reload")
    n, total = 1500, sum(weight.values())
    got = fabric.http(n, family, from_port=30000)
    assert [r for r in got if not r.ok] == []
    for b, count in fab.shares(got).items():
        p = weight[b] / total
        assert abs(count - n * p) <= 3 * math.sqrt(n * p * (1 - p)), b
    for node in NODES:
        slots = fabric.slots(node)
        size = sum(slots.values())
        for b in BACKENDS:
            assert abs(slots[b] - size * weight[b] / total) <= 1, (node, b)


def ring_of(fabric, node):
    """Who owns each slot."""
    return pinned.state_dump(fabric.pins(node))["rings"]["web"]["slots"]


def test_nodes_agree(fabric):
    """They don't talk: the order in their files says nothing, and what one of
    them alone thinks of a backend moves that backend's slots and no other."""
    weight = {"b1": 100, "b2": 50, "b3": 25}
    files = {"lb1": BACKENDS, "lb2": tuple(reversed(BACKENDS))}
    for node, order in files.items():
        fabric.write_config(node, fabric.config(node, weight, pool=order))
        fabric.must(node, "reload")
    prints = [fabric.must(n, "fingerprint", "--json").json for n in NODES]
    assert prints[0] == prints[1]
    assert len(prints[0]["web"]) == 16
    whole = ring_of(fabric, "lb2")
    assert ring_of(fabric, "lb1") == whole

    fabric.write_config("lb1", fabric.config("lb1", weight,
                                             state={"b2": "down"}))
    fabric.must("lb1", "reload")
    lacking = ring_of(fabric, "lb1")
    b2 = fab.POOL_ADDRESS["b2"]
    assert b2 not in lacking
    assert {was for was, now in zip(whole, lacking) if was != now} == {b2}
    prints = [fabric.must(n, "fingerprint", "--json").json for n in NODES]
    assert prints[0] != prints[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_lookup_agrees(fabric, family):
    """Each node says of a connection what became of it, whichever it came over;
    but where its slot has changed lately, and so a ring alone does not say, only
    the one that has seen it knows."""
    for r in fabric.http(6, family, from_port=29000):  # nobody else's
        told = [json.loads(x) for x in fabric.lookup(family, r.port).values()]
        knows = [t["backend"] for t in told if not t["lookup"] or t["entry"]]
        assert r.ok and knows and set(knows) == {r.backend}, json.dumps(told)


def test_vip_belongs_to_no_node(fabric):
    """Forwarding is the packet program's: a node has no address of the VIP,
    and all that isn't for a VIP passes: BGP is up, the node itself answers."""
    for node in NODES:
        assert VIP[4] not in fabric.run(node, "ip", "addr").stdout
        assert fabric.bgp_up(node)
        got = fabric.http(1, 4, to=address(node, 4), timeout=2)
        assert f"[Errno {errno.ECONNREFUSED}]" in got[0].error


def heard_on(name):
    """A socket in this namespace that keeps what goes over a device."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    s.bind((name, ETH_P_ALL))
    s.setblocking(False)
    return s


def syns_to(sock, port):
    """How many it kept, in whichever direction."""
    n = 0
    with sock:
        while True:
            try:
                frame = sock.recv(2048)
            except BlockingIOError:
                return n
            # the client's, without IP options: IPv4 and TCP at their places
            n += frame[12:15] == b"\x08\x00\x45" and frame[23] == 6 and \
                frame[36:38] == port.to_bytes(2, "big")


def test_unserved_port_is_no_loop(fabric):
    """A packet for a port without a service ends at the node."""
    socks = [lab.in_netns("rack", lambda n=n: heard_on(n)) for n in NODES]
    fabric.run("client", fab.PYTHON, fab.HERE / "http_client.py", VIP[4], 81,
               "--count", 40, "--parallel", 40, "--timeout", 0.5)
    seen = sum(syns_to(s, 81) for s in socks)
    # once, or if the client was slow to give up sent again; in a loop 30 times
    assert 40 <= seen < 400, seen
