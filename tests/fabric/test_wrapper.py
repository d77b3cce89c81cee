# SPDX-License-Identifier: GPL-2.0-or-later
"""The packaged BIRD wrapper in a bird.conf of the operator's own, without xlbd:
what the files say is what the router has."""

import pathlib

import fabric as fab
import lab
import pytest
from fabric import NODES, address, address4, address6
from test_nodes import SOON

WRAPPER = pathlib.Path(__file__).parents[2] / "bird" / "xlb.conf"
TEST_PREFIX = {4: "198.51.100.7", 6: "2001:db8:7::7"}


def site_conf(node):
    """What an operator writes."""
    bgp = "".join(f"""
protocol bgp up{f} {{
  local {address(node, f)} as {fab.NODE_AS};
  neighbor {peer(1, fab.ROUTER_HOST)} as {fab.ROUTER_AS};
  strict bind on; bfd on; hold time 9; graceful restart off;
  connect delay time 1; error wait time 1, 5;
  ipv{f} {{ table xlb{f}t; import none; export filter xlb_export; next hop self; }};
}}""" for f, peer in ((4, address4), (6, address6)))
    wrapper = WRAPPER.read_text().replace("/run/xlb-bird",
                                          f"{lab.RUN}/{node}/bird")
    return f"""router id {address(node, 4)};
protocol device {{ }}
protocol bfd {{ strict bind on; interface "eth0" {{ {fab.BFD} }}; }}
{wrapper}{bgp}
"""


def announce(network, node, on):
    for f in (4, 6):
        path = lab.RUN / node / "bird" / f"xlb{f}.conf"
        length = {4: 32, 6: 128}[f]
        path.write_text(f"route {TEST_PREFIX[f]}/{length} blackhole;\n"
                        if on else "")
    assert network.bird(node, "configure")[-1][0] == 3


@pytest.fixture
def birds(network):
    for node in NODES:
        network.start_bird(node, site_conf(node))
    try:
        for node in NODES:
            network.wait_bgp(node)
        yield network
    finally:
        for node in NODES:
            network.stop_bird(node)
            for path in (lab.RUN / node / "bird").iterdir():
                path.unlink()


def paths_are(network, nodes, timeout=60):
    for f in (4, 6):
        lab.wait(f"paths over {nodes}", lambda f=f: network.paths(
            f, TEST_PREFIX[f]) == nodes, timeout)


def test_routes_follow_the_files(birds):
    paths_are(birds, [])
    for node in NODES:
        announce(birds, node, True)
    paths_are(birds, ["lb1", "lb2"])
    announce(birds, "lb1", False)
    paths_are(birds, ["lb2"])
    birds.bird_process["lb2"].kill()
    paths_are(birds, [])
    birds.start_bird("lb2", site_conf("lb2"))
    paths_are(birds, ["lb2"])
def test_bfd_sees_a_silent_node(birds):
    announce(birds, "lb1", True)
    announce(birds, "lb2", True)
    paths_are(birds, ["lb1", "lb2"])
    birds.run("rack", "ip", "link", "set", "lb1", "nomaster")
    try:
        paths_are(birds, ["lb2"], SOON)
    finally:
        birds.plug("lb1")
    paths_are(birds, ["lb1", "lb2"])
