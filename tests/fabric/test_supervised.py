# SPDX-License-Identifier: GPL-2.0-or-later
"""A node whose xlbd has a service manager: what it dies of and is started again
after moves no route, and when the manager gives up BIRD withdraws by itself."""

import contextlib
import signal
import time

import lab
from fabric import NODES, VIP
from route_watch import Routes
from supervisor import Supervisor
from test_nodes import under_load

NODE = "lb1"


@contextlib.contextmanager
def supervised(fabric, program=None, **values):
    """The unit file's figures, but for those that a test would wait for."""
    fabric.stop_node(NODE)
    s = Supervisor(fabric, NODE, [program or fabric.program("xlbd"),
                                  *fabric.options(NODE)],
                   fabric.build / "etc/xlb.service",
                   **{"WatchdogSec": "6", **values})
    fabric.daemon[NODE] = s
    s.start()
    try:
        s.wait_restart(1)
        fabric.wait_ready()
        yield s
    finally:
        if s.alive():
            s.kill()
        fabric.start_node(NODE)
        fabric.wait_ready()


def ifindex(fabric):
    """Of xlb0 in the node; None: it is not there."""
    out = fabric.run(NODE, "ip", "-o", "link", "show", "xlb0",
                     check=False).stdout
    return int(out.split(":")[0]) if out else None


@contextlib.contextmanager
def nothing_moves(fabric):
    """Neither a route at the router nor xlb0, nor a request is lost."""
    device = ifindex(fabric)
    assert device is not None
    with Routes(lab.NETNS / (lab.PREFIX + "router")) as routes, \
            under_load(fabric):
        yield
    moved = [e for f in (4, 6) for e in routes.of(VIP[f])]
    assert not moved, moved
    assert ifindex(fabric) == device


def test_killed_and_hung(fabric):
    with supervised(fabric) as unit:
        assert list(unit.store) == ["xlb0"] and len(unit.store["xlb0"]) == 1
        assert not unit.count("stored without")
        assert not unit.count("early watchdog"), "a slow start would be ended"
        with nothing_moves(fabric):
            unit.signal(signal.SIGKILL)
            unit.wait_restart(2)
            # a hang: the watchdog ends it
            stopped = time.monotonic()
            unit.signal(signal.SIGSTOP)
            unit.wait_restart(3)
            took = unit.when("watchdog") - stopped
            assert unit.count(f"ended {-signal.SIGABRT}") == 1, unit.events
            assert 0.5 < took < 20, took
            # SIGTERM without a job is a restart, too: it ends by itself, and
            # leaves all as it is
            fabric.must(NODE, "restart")
            fabric.wait_answer(NODE)
        assert list(unit.store) == ["xlb0"] and len(unit.store["xlb0"]) == 1
        assert unit.count("store xlb0") == 1, "stored again"


def test_start_limit(fabric):
    """The manager gives up and closes what it stored."""
    with supervised(fabric, StartLimitBurst="2") as unit:
        unit.signal(signal.SIGKILL)
        unit.wait_restart(2)
        with Routes(lab.NETNS / (lab.PREFIX + "router")) as routes:
            unit.signal(signal.SIGKILL)
            unit.join(60)
            assert (unit.state, unit.why) == ("failed", "start-limit-hit")
            closes = unit.when("closes")
            fabric.wait_paths(["lb2"])
            gone = [lab.wait("a change of the route", lambda f=f: routes.of(
                VIP[f]))[0][0] for f in (4, 6)]
            took = max(gone) - closes
        assert ifindex(fabric) is None
        assert "xdp" in fabric.run(NODE, "ip", "link", "show", "eth0").stdout
        print(f"# descriptors closed -> one path less at the router: "
              f"{1000 * took:.1f} ms")
        # a few ms; whatever else takes routes away takes seconds
        assert took < 1


def test_stop_is_no_failure(fabric):
    """Nothing is started again, and nothing is left in the store."""
    with supervised(fabric) as unit:
        fabric.must(NODE, "stop")
        assert unit.exit() == 0
        assert (unit.state, len(unit.starts)) == ("inactive", 1)
        assert unit.count("stopping") == 1
        assert ifindex(fabric) is None
        fabric.wait_paths([n for n in NODES if n != NODE])


def test_what_a_restart_cannot_mend(fabric):
    """Exit statuses 2 and 3 are the operator's to mend."""
    with supervised(fabric) as unit:
        fabric.must(NODE, "stop")
        unit.exit()
        (lab.RUN / NODE / "state/accepted.json").unlink()
        fabric.write_config(NODE, "nonsense: 1\n")
        bad = Supervisor(fabric, NODE, unit.argv,
                         fabric.build / "etc/xlb.service")
        bad.start()
        assert bad.exit() == 3
        assert (bad.state, len(bad.starts)) == ("failed", 1)
        fabric.write_config(NODE, fabric.config(NODE))
