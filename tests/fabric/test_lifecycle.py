# SPDX-License-Identifier: GPL-2.0-or-later
"""What only a flush, a stop or a new start may change; exit statuses."""

import json
import signal

import lab
import pinned
import pytest
from fabric import BACKENDS, NODES, VIP
from test_nodes import under_load


@pytest.mark.parametrize("what, said", (
    ({"maglev": "table_size: 251"}, "maglev.table_size: 65537 -> 251"),
    ({"maglev": "seed: 7"}, "maglev.seed"),
    ({}, "maglev.key_file"),
))
def test_what_moves_every_flow_is_refused(fabric, what, said):
    key = lab.RUN / "lb1" / "key"
    key.write_text("0f0e0d0c0b0a09080706050403020100\n")
    key.chmod(0o600)
    text = fabric.config("lb1", **what)
    if not what:
        text = text.replace(f"{lab.RUN}/key", str(key))
    fabric.write_config("lb1", text)
    before = fabric.flows(4, n=100)
    got = fabric.xlb("lb1", "reload")
    assert got.exit == 3
    assert said in got.err and "xlb restart --flush" in got.err
    assert fabric.flows(4, n=100) == before


def test_flush_takes_another_ring_size(fabric):
    """A drained node: the other one serves meanwhile."""
    small = "table_size: 4093"
    with under_load(fabric):
        fabric.must("lb1", "drain", "node")
        fabric.wait_paths(["lb2"])
        for text in (fabric.config("lb1", maglev=small),
                     fabric.config("lb1")):
            fabric.write_config("lb1", text)
            assert fabric.xlb("lb1", "reload").exit == 3
            fabric.must("lb1", "restart", "--flush")
            fabric.wait_answer("lb1")
            fabric.wait_eligible(BACKENDS, ["lb1"])
            slots = sum(fabric.slots("lb1").values())
            assert slots == (4093 if small in text else 65537)
        # the drain has outlived both
        assert fabric.status("lb1")["state"] == "drain"
        fabric.must("lb1", "undrain", "node")
        fabric.wait_paths(NODES)


def test_stop_leaves_nothing(fabric):
    pins = fabric.pins("lb1")
    with under_load(fabric):
        fabric.stop_node("lb1")
    assert not pins.exists()
    assert "xdp" not in fabric.run("lb1", "ip", "link", "show",
                                   "eth0").stdout
    assert "xlb0" not in fabric.run("lb1", "ip", "link").stdout
    assert "route" not in (lab.RUN / "lb1/bird/xlb4.conf").read_text()
    assert fabric.xlb("lb1", "status").exit == 4
    fabric.start_node("lb1")
    fabric.wait_ready()


@pytest.mark.parametrize("args, status", (
    (["--no-such-option"], 2), (["argument"], 2), (["--version"], 0),
    (["--config", "/nonexistent/xlb.yaml"], 3),
))
def test_exit_statuses_of_xlbd(fabric, args, status):
    own = ["--run-dir", lab.RUN / "lb1/run2",
           "--state-dir", lab.RUN / "lb1/state2"]
    got = fabric.run("lb1", fabric.program("xlbd"), *own, *args, check=False)
    assert got.returncode == status, got.stderr


def test_damaged_state_is_ignored_with_a_warning(fabric):
    state = lab.RUN / "lb1/state"
    fabric.daemon["lb1"].signal(signal.SIGTERM)
    fabric.daemon["lb1"].exit()
    (state / "overrides.json").write_text('{"overrides": [{"pool": 3}, ')
    fabric.start_node("lb1")
    fabric.wait_ready()
    assert "overrides are ignored" in (lab.RUN / "lb1/xlbd.log").read_text()
    fabric.must("lb1", "drain", "web/b1")
    rows = json.loads((state / "overrides.json").read_text())["overrides"]
    assert [r["state"] for r in rows] == ["drain"]
    fabric.must("lb1", "undrain", "web/b1")
    fabric.wait_eligible(BACKENDS)


def test_override_ends_when_the_file_says_otherwise(fabric):
    fabric.must("lb1", "drain", "web/b1")
    fabric.write_config("lb1", fabric.config("lb1", state={"b1": "down"}))
    fabric.must("lb1", "reload")
    assert fabric.pool("lb1")["b1"]["state"] == "down"
    fabric.write_config("lb1", fabric.config("lb1"))
    fabric.must("lb1", "reload")
    fabric.wait_eligible(BACKENDS)


def test_an_edited_row_takes_no_backend_down(fabric):
    """Probes go by the same rows as packets do. The first that is not answered
    has xlbd look at them, before there is a verdict."""
    # between one probe and the next there is time to be let run
    fabric.write_config("lb1", fabric.config("lb1").replace(
        "interval: 200ms, timeout: 150ms", "interval: 1s, timeout: 300ms"))
    fabric.must("lb1", "reload")
    pins = fabric.pins("lb1")
    log = lab.RUN / "lb1/xlbd.log"
    want = pinned.state_dump(pins)

    def as_before():
        lab.wait("the rows to be as before", lambda: not pinned.differences(
            want, pinned.state_dump(pins)))

    # It looks by itself, too. When it has mended what no probe needs it has just
    # done so, and comes again after the verdict.
    t = pinned.Tables(pins)
    t.erase("service", next(iter(t.rows("service"))))
    as_before()
    since = log.stat().st_size
    for i, row in t.rows("backend").items():
        t.row("backend", i, row[:16] + bytes(4) + row[20:])
    t.close()
    as_before()
    said = log.read_bytes()[since:].decode()
    assert "is not as it was left" in said and "-> down" not in said, said


def test_detached_program_is_attached_again(fabric):
    """Somebody takes the program off: back within 10 s, and said."""
    link = next((fabric.pins("lb1") / "links").iterdir())
    fabric.run("lb1", "bpftool", "link", "detach", "pinned", link)
    lab.wait("the program to be attached again", lambda: fabric.status(
        "lb1")["interfaces"][0]["attached"] and "xdp" in fabric.run(
            "lb1", "ip", "link", "show", "eth0").stdout, 12)
    fabric.wait_ready()
    assert VIP[4] in fabric.must("lb1", "status").out
