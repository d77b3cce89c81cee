# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes stop, die, hang and come back, under load."""

import contextlib
import signal

import lab
import pytest
from fabric import NODES, VIP, address

# Seconds until a path is gone, at most. BFD takes two; without it BGP's hold time
# would end, which takes six at least.
SOON = 5
@contextlib.contextmanager
def under_load(fabric, lost=0, timeout=5.0):
    """Both families, new and kept connections; none may fail."""
    fabric.wait_settled()
    loads = {f: fabric.load(f, rate=60, keep=8, timeout=timeout)
             for f in (4, 6)}
    for load in loads.values():
        load.wait_for(60)
    try:
        yield
        for load in loads.values():
            load.wait_for(60)
    finally:
        rows = [(r, f) for f, load in loads.items() for r in load.stop()]
    bad = [(r, f) for r, f in rows if not r.ok]
    assert len(bad) <= lost, "\n".join(f"{r}\n{fabric.lookup(f, r.port)}"
                                      for r, f in bad[:3])


def test_stop_and_start(fabric):
    before = fabric.flows(4)
    with under_load(fabric):
        fabric.stop_node("lb1")
        fabric.wait_paths(["lb2"])
        assert fabric.flows(4) == before, "nodes give a flow different owners"
        assert not fabric.pins("lb1").exists()
        assert "xdp" not in fabric.run("lb1", "ip", "link", "show",
                                       "eth0").stdout
        assert fabric.xlb("lb1", "status").exit == 4
        fabric.start_node("lb1")
        fabric.wait_ready()
    assert fabric.flows(4) == before


def test_killed(fabric):
    """Nobody restarts it here: the kernel removes xlb0, BIRD withdraws."""
    with under_load(fabric):
        fabric.daemon["lb1"].kill()
        fabric.wait_paths(["lb2"], SOON)
        assert "xdp" in fabric.run("lb1", "ip", "link", "show", "eth0").stdout
        fabric.start_node("lb1")
        fabric.wait_ready()


def test_killed_last_node_goes_on_forwarding(fabric):
    """Packets that still come are forwarded, with no daemon at all."""
    fabric.stop_node("lb2")
    fabric.wait_paths(["lb1"])
    before = fabric.flows(4)
    fabric.daemon["lb1"].kill()
    fabric.wait_paths([])
    via = {f: address("lb1", f) for f in (4, 6)}
    try:
        for f, gateway in via.items():
            fabric.run("router", "ip", f"-{f}", "route", "add", VIP[f], "via",
                       gateway)
        assert fabric.flows(4) == before
        fabric.flows(6, n=30)
    finally:
        for f, gateway in via.items():
            fabric.run("router", "ip", f"-{f}", "route", "del", VIP[f], "via",
                       gateway)


def test_sigterm_without_a_service_manager_leaves_everything(fabric):
    """As a crash does: packets go on, the next xlbd adopts."""
    with under_load(fabric):
        fabric.daemon["lb1"].signal(signal.SIGTERM)
        assert fabric.daemon["lb1"].exit() == 0
        assert fabric.pins("lb1").exists()
        fabric.start_node("lb1")
        fabric.wait_ready()


def test_restart(fabric):
    with under_load(fabric):
        for node in NODES:
            restart(fabric, node)
            fabric.wait_ready()


def restart(fabric, node):
    """`xlb restart`: it becomes the next one by itself, the same process."""
    def serves():
        return fabric.daemon[node].log.read_text(errors="replace").count(
            ": starting -> serving")

    before = serves()
    fabric.must(node, "restart")
    lab.wait(f"another xlbd of {node} to serve", lambda: serves() > before, 60)
    fabric.wait_answer(node)


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGKILL))
def test_bird_restarts(fabric, sig):
    with under_load(fabric):
        fabric.stop_bird("lb1", sig)
        fabric.wait_paths(["lb2"])
        fabric.start_bird("lb1", fabric.node_conf("lb1"))
        fabric.wait_ready()
        lab.wait("status to show the exported routes", lambda: all(
            a["in_bird"] and a["exported"]
            for a in fabric.status("lb1")["addresses"]))


def test_bird_hangs(fabric):
    """BFD takes the route; xlbd goes on and says what is wrong."""
    fabric.bird_process["lb1"].signal(signal.SIGSTOP)
    try:
        fabric.wait_paths(["lb2"], SOON)
        fabric.flows(4, n=60)
        assert fabric.xlb("lb1", "status").exit == 0
    finally:
        fabric.bird_process["lb1"].signal(signal.SIGCONT)
    fabric.wait_ready()


def test_silent_node(fabric):
    """No link down, nothing refused: BFD sees it, connections survive."""
    # what is sent until then is sent again, after 1, 3 and 7 s
    with under_load(fabric, timeout=15):
        fabric.run("rack", "ip", "link", "set", "lb1", "nomaster")
        try:
            fabric.wait_paths(["lb2"], SOON)
        finally:
            fabric.plug("lb1")
        fabric.wait_ready()


def test_second_daemon_is_refused(fabric):
    second = fabric.run("lb1", fabric.program("xlbd"), *fabric.options("lb1"),
                        check=False)
    assert second.returncode == 1
    assert fabric.daemon["lb1"].alive()
    fabric.flows(4, n=30)
