# SPDX-License-Identifier: GPL-2.0-or-later
import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import fabric as fab  # noqa: E402
import lab  # noqa: E402


def pytest_configure():
    # So that the fixtures below end as they do after Ctrl-C.
    def interrupt(signum, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    signal.signal(signal.SIGHUP, interrupt)


def pytest_collection_modifyitems(items):
    """First what wants a network without nodes; the rest builds on it."""
    items.sort(key=lambda item: "whole" in item.fixturenames)


def opened(f):
    try:
        f.open()
        return True
    except lab.Busy:
        return False


@pytest.fixture(scope="session")
def network():
    """Router, backends and links; no node yet."""
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces and BPF")
    f = fab.Fabric()
    try:
        lab.wait("another run to leave the fabric", lambda: opened(f), 300,
                 pause=1)
        f.up_network()
        yield f
    finally:
        f.close()


@pytest.fixture(scope="session")
def whole(network):
    for name in ("xlbd", "xlb"):
        try:
            network.program(name)
        except lab.FabricError as e:
            pytest.skip(str(e))
    network.up_nodes()
    yield network
    for path in lab.RUN.glob("*/*.log"):
        bad = [x for x in path.read_text(errors="replace").splitlines()
               if "Sanitizer" in x or "runtime error:" in x]
        assert not bad, f"{path}: {bad[:5]}"


@pytest.fixture
def fabric(whole):
    """Everything, as it was at first, whatever the test before did."""
    whole.restore()
    return whole


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and lab.RUN.exists():
        f = item.funcargs.get("fabric") or item.funcargs.get("network")
        for path, lines in (f.logs() if f else ()):
            report.sections.append((f"end of {path}", "\n".join(lines)))
