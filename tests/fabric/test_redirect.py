# SPDX-License-Identifier: GPL-2.0-or-later
"""A node with two interfaces: what comes in by one leaves by the other."""

import fabric as fab
import lab
import pytest
from fabric import address4, address6

NET = 4  # behind lb1 alone
GATEWAY = 254  # lb1's own number there


@pytest.fixture
def behind(fabric, monkeypatch):
    """b4 on lb1's second interface; lb1 is its way to the client, too."""
    f = fabric
    monkeypatch.setitem(fab.PLACE, "b4", (NET, 14))
    monkeypatch.setitem(fab.POOL_ADDRESS, "b4", address4(NET, 14))
    f.stop_node("lb2")
    f.wait_paths(["lb1"])
    f.netns("b4")
    try:
        f.run("b4", "sysctl", "-q", "-w", "net.ipv6.conf.default.accept_dad=0")
        f.run("b4", "ip", "link", "set", "lo", "up")
        for vip, bits in ((fab.VIP[4], 32), (fab.VIP[6], 128)):
            f.run("b4", "ip", "addr", "add", f"{vip}/{bits}", "dev", "lo")
        f.link("lb1", "eth1", "b4", "eth0", 1600)
        f.give("lb1", "eth1", NET, GATEWAY)
        f.give("b4", "eth0", NET, 14)
        f.run("lb1", "sysctl", "-q", "-w", "net.ipv4.ip_forward=1",
              "net.ipv6.conf.all.forwarding=1")
        for v, to, via, gateway in (
                ("-4", f"{address4(NET, 0)}/24", address4(1, 1),
                 address4(NET, GATEWAY)),
                ("-6", f"{address6(NET, 0)}/64", address6(1, 1),
                 address6(NET, GATEWAY))):
            f.run("router", "ip", v, "route", "add", to, "via", via)
            f.run("b4", "ip", v, "route", "add", "default", "via", gateway)
        f.start_backend("b4")
        f.decap("b4", "attach", "eth0", "--from", address4(NET, GATEWAY))
        yield f
    finally:
        if "b4" in f.nginx:
            f.nginx.pop("b4").kill()
        # with its namespace it would go some time later
        f.run("lb1", "ip", "link", "del", "eth1", check=False)
        f.run(None, "ip", "netns", "del", lab.PREFIX + "b4")
        f.run("lb1", "sysctl", "-q", "-w", "net.ipv4.ip_forward=0",
              "net.ipv6.conf.all.forwarding=0")
        for v, to in (("-4", f"{address4(NET, 0)}/24"),
                      ("-6", f"{address6(NET, 0)}/64")):
            f.run("router", "ip", v, "route", "del", to, check=False)


def link_up(f):
    """With what went with the link: routes, and IPv6's address."""
    f.run("b4", "ip", "link", "set", "eth0", "up")
    f.run("b4", "ip", "-6", "addr", "replace", f"{address6(NET, 14)}/64",
          "dev", "eth0", "nodad")
    for v, gateway in (("-4", address4(NET, GATEWAY)),
                       ("-6", address6(NET, GATEWAY))):
        f.run("b4", "ip", v, "route", "replace", "default", "via", gateway)


def test_traffic_leaves_by_the_other_interface(behind):
    pool = ("b1", "b4")
    behind.write_config("lb1", behind.config("lb1", pool=pool))
    behind.must("lb1", "reload")
    behind.wait_eligible(pool, ["lb1"])
    for family in (4, 6):
        got = behind.http(200, family)
        assert [r for r in got if not r.ok] == []
        assert sorted(fab.shares(got)) == list(pool)


def test_link_of_the_other_interface_goes(behind):
    """Its backends are down at once, and up with it again."""
    pool = ("b1", "b4")
    behind.write_config("lb1", behind.config("lb1", pool=pool))
    behind.must("lb1", "reload")
    behind.wait_eligible(pool, ["lb1"])
    behind.run("b4", "ip", "link", "set", "eth0", "down")
    behind.wait_eligible(["b1"], ["lb1"])
    assert set(behind.flows(4, n=60).values()) == {"b1"}
    link_up(behind)
    behind.wait_eligible(pool, ["lb1"])


def test_the_other_interface_takes_no_frames(behind):
    """A veth whose peer runs no XDP program: its backends are down as soon as a
    packet shows it, and status says why. The check asks directly: the program
    that is missing there is xlb-decap."""
    pool = ("b1", "b4")
    behind.write_config("lb1", behind.config("lb1", pool=pool).replace(
        "fall: 2}", "fall: 2, via: direct}"))
    behind.must("lb1", "reload")
    behind.wait_eligible(pool, ["lb1"])
    behind.decap("b4", "detach", "eth0")
    behind.http(20, 4, timeout=0.3)
    behind.wait_eligible(["b1"], ["lb1"])
    row = behind.pool("lb1")["b4"]
    assert row["reason"] == "interface cannot send XDP frames", row
    for family in (4, 6):
        assert set(behind.flows(family, n=60).values()) == {"b1"}
    behind.decap("b4", "attach", "eth0", "--from", address4(NET, GATEWAY))
    behind.run("b4", "ip", "link", "set", "eth0", "down")
    # the kernel tells of a carrier a while later, and not if it is there again
    lab.wait("lb1 to hear of it", lambda: "state UP" not in behind.run(
        "lb1", "ip", "link", "show", "eth1").stdout)
    link_up(behind)
    behind.wait_eligible(pool, ["lb1"])
    behind.spread(4, pool)
