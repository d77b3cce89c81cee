# SPDX-License-Identifier: GPL-2.0-or-later
"""Overrides by hand: no new flows, and all is as before after undrain."""

import contextlib

import pytest
from fabric import BACKENDS, NODES
from test_nodes import restart


@contextlib.contextmanager
def drained(fabric, what, nodes):
    for node in nodes:
        fabric.must(node, "drain", what)
    try:
        yield
    finally:
        for node in nodes:
            fabric.must(node, "undrain", what)


@pytest.mark.parametrize("victim", BACKENDS)
def test_backend(fabric, victim):
    before = {f: fabric.flows(f) for f in (4, 6)}
    others = [b for b in BACKENDS if b != victim]
    with drained(fabric, f"web/{victim}", NODES):
        fabric.wait_eligible(others)
        assert fabric.pool("lb1")[victim]["state"] == "drain"
        for f in (4, 6):
            now = fabric.flows(f)
            assert {p for p in now if now[p] != before[f][p]} == {
                p for p in now if before[f][p] == victim}
    fabric.wait_eligible(BACKENDS)
    assert {f: fabric.flows(f) for f in (4, 6)} == before


def test_survives_reload_and_restart(fabric):
    with drained(fabric, "web/b1", ["lb1"]):
        fabric.must("lb1", "reload")
        fabric.wait_eligible(["b2", "b3"], ["lb1"])
        restart(fabric, "lb1")
        fabric.wait_eligible(["b2", "b3"], ["lb1"])
    fabric.wait_eligible(BACKENDS)


def test_node(fabric):
    with drained(fabric, "node", ["lb1"]):
        fabric.wait_paths(["lb2"])
        assert fabric.status("lb1")["state"] == "drain"
        fabric.flows(4, n=60)
    fabric.wait_paths(NODES)


def test_unknown_backend_is_refused(fabric):
    got = fabric.xlb("lb1", "drain", "web/nobody")
    assert got.exit == 1 and "nobody" in got.err
