# SPDX-License-Identifier: GPL-2.0-or-later
"""xlb events shows what real packets do: over which node a connection comes,
to whom it goes, and what is dropped."""

import ipaddress
import json

import fabric as fab
import lab
import pytest
from fabric import NODES, PORT, VIP, address


class Reader:
    def __init__(self, f, node):
        self.out = lab.RUN / node / "events.jsonl"
        with open(self.out, "wb") as out:
            self.process = f.start(node, "events", f.program("xlb"),
                                   *f.options(node), "events", "--json",
                                   stdout=out)

    def got(self):
        text = self.out.read_text()
        return [json.loads(x) for x in
                text[:text.rfind("\n") + 1].splitlines()]


@pytest.fixture
def readers(fabric):
    # One that outlived its test would write on into the next one's file.
    running = [Reader(fabric, n) for n in NODES]
    yield running
    for r in running:
        r.process.kill()


@pytest.mark.parametrize("family", (4, 6))
def test_new_flows_and_drops(fabric, readers, family):
    def told(event):
        return {(e["source_port"], e["destination_port"]): e
                for r in readers for e in r.got() if e["event"] == event}

    # until each node tells, whatever the router thinks of a flow
    def begun():
        fabric.http(8, family)
        return all(r.got() for r in readers)
    lab.wait("both readers to be told", begun)

    # Not among those that count up: a connection of theirs may hold one still.
    requests = fabric.http(40, family, from_port=21000)
    assert [r for r in requests if not r.ok] == []
    ports = {(21000 + i, PORT) for i in range(40)}
    lab.wait("40 new flows", lambda: ports <= set(told("new_flow")),
             seen=lambda: len(ports - set(told("new_flow"))))
    flows = told("new_flow")
    for r in requests:
        e = flows[r.port, PORT]
        assert (e["service"], e["pool"], e["backend"], e["protocol"],
                e["interface"]) == ("www", "web", r.backend, "tcp", "eth0")
        for end, want in (("source", address("client", family)),
                          ("destination", VIP[family])):
            assert ipaddress.ip_address(e[end]) == ipaddress.ip_address(want)

    fabric.run("client", fab.PYTHON, fab.HERE / "http_client.py",
               VIP[family], 81, "--count", 6, "--parallel", 6, "--timeout",
               0.5)
    lab.wait("the drops", lambda: sum(p[1] == 81 for p in told("drop")) >= 6,
             seen=lambda: told("drop"))
    for e in told("drop").values():
        assert (e["reason"], e["service"], e["backend"]) == (
            "no_service", None, None)
