# SPDX-License-Identifier: GPL-2.0-or-later
"""The fabric itself: if these fail, no other fabric test means anything."""

import os
import subprocess
import sys

import fabric as fab
import lab
import pytest
from fabric import BACKENDS, NODES, address
from lab import wait


@pytest.mark.parametrize("node", NODES)
def test_xdp_tx_comes_back(network, node):
    assert network.xdp_frames(node) == 10


def test_xdp_tx_is_lost_without_a_program_on_the_peer(network):
    network.set_xdp("rack", "lb1", None)
    try:
        assert network.xdp_frames("lb1", seconds=0.3) == 0
    finally:
        network.set_xdp("rack", "lb1", "xlbf_pass")


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("backend", BACKENDS)
def test_client_reaches_each_backend(network, family, backend):
    got = network.http(20, family, to=address(backend, family))
    assert [r for r in got if not r.ok] == []
    assert fab.shares(got) == {backend: 20}


def test_client_tells_failed_requests(network):
    network.kill_backend("b1")
    try:
        got = network.http(5, 4, to=address("b1", 4), timeout=1)
        assert len(got) == 5
        assert all(r.error and not r.ok for r in got)
        load = network.load(4, rate=50, to=address("b1", 4))
        load.wait_for(5)
    finally:
        network.start_backend("b1")
    load.wait_for(10, fab.now())
    rows = load.stop()
    assert not rows[0].ok and rows[-1].ok


def test_kept_connections_keep(network):
    load = network.load(6, rate=0, keep=3, to=address("b2", 6))
    load.wait_kept(3)
    load.wait_for(30)
    rows = load.stop()
    assert {r.conn for r in rows} == {0, 1, 2}
    assert all(r.ok and r.backend == "b2" for r in rows)


def test_a_second_fabric_is_refused(network):
    with pytest.raises(lab.FabricError, match="in use"):
        fab.Fabric().open()
    assert network.run("client", "true").returncode == 0


def test_vip_without_route_is_unreachable(network):
    got = network.http(3, 4, timeout=1, to="203.0.113.99")
    assert [r.ok for r in got] == [False] * 3


OTHER = f"xlbf{lab.LAB}"  # begins names that are this lab's alone
OTHER_NAMES = """
import sys; sys.path.insert(0, %r)
import lab, os, signal
lab.RUN, lab.PREFIX = lab.RUN.with_name(%r), %r
lab.BPF_PREFIX = %r
lab.SESSIONS, lab.KEPT = lab.RUN / "sessions", lab.RUN / "kept"
""" % (os.path.dirname(__file__), OTHER + "-self", OTHER + "s-",
       f"xlb_f{lab.LAB}s_")
STRANGER = OTHER_NAMES + """
def die(): os.kill(os.getpid(), signal.SIGKILL)
l = lab.Lab(print)
l.open()
"""


def stranger(code):
    return subprocess.run(
        [sys.executable, "-c", STRANGER + code],
        capture_output=True, text=True, timeout=120, check=False)


def test_remains_of_a_killed_run_are_removed(network):
    """In a process of its own, under other names than this fabric's."""
    got = stranger("""
l.netns("a")
print(l.start("a", "sleep", "sleep", 1000).pid, flush=True)
die()
""")
    assert got.returncode == -9, got.stderr
    pid = int(got.stdout)
    try:
        # sleeps, or is just being loaded
        assert lab.process_stat(pid)[0] not in "ZX"
        got = stranger("l.netns('a'); l.close()")
        assert (got.returncode, got.stderr) == (0, "")
        assert "killed run" in got.stdout
        wait("the process to be gone", lambda: (
            lab.process_stat(pid) or "Z")[0] == "Z")
    finally:
        stranger("l.close()")
    assert not lab.RUN.with_name(OTHER + "-self").exists()
    assert not list(lab.NETNS.glob(OTHER + "s-*"))
