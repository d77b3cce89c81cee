# SPDX-License-Identifier: GPL-2.0-or-later
"""What the path to a backend carries: found by probes of full size where nobody
says it, taken from routers who do, and told."""

import socket

import fabric as fab
import lab
import pytest
from fabric import BACKENDS, POOL_ADDRESS, VIP, address, address4, address6
from scapy.layers.inet import ICMP, IP, UDP

LINK = fab.MTU[1]


def path_mtu(fabric, backend, node="lb1"):
    return fabric.pool(node)[backend]["path_mtu"]


def upload(fabric, size, seconds=15):
    """From the client to the VIP; the HTTP status, or what went wrong."""
    done = fabric.run("client", "curl", "-sS", "--max-time", seconds, "-o",
                      "/dev/null", "-w", "%{http_code}", "--data-binary", "@-",
                      f"http://{VIP[4]}/", stdin="x" * size, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


def wait_path(fabric, mtu, backend="b3"):
    """Less than the minute between two rounds."""
    lab.wait(f"{backend}'s path to be known to carry {mtu}", lambda: path_mtu(
        fabric, backend) == mtu, 30, lambda: path_mtu(fabric, backend))


@pytest.fixture
def b3_alone(fabric):
    """All flows are b3's, by one node; each path is known to carry the link's."""
    fabric.stop_node("lb2")
    fabric.wait_paths(["lb1"])
    fabric.write_config("lb1", only_b3(fabric))
    fabric.must("lb1", "reload")    # each asks at once
    lab.wait("the paths to be known", lambda: all(
        path_mtu(fabric, b) == LINK for b in BACKENDS),
        seen=lambda: fabric.pool("lb1"))
    # what another test has taught the client
    fabric.run("client", "ip", "route", "flush", "cache")
    assert upload(fabric, 20000) == "200"
    yield fabric
    fabric.run("b3", "ip", "link", "set", "eth0", "mtu", LINK)
    fabric.run("router", "ip", "link", "set", fab.ROUTER_IF[3], "mtu", LINK)


def only_b3(fabric):
    return fabric.config("lb1", state={"b1": "drain", "b2": "drain"})


def said(fabric):
    return (lab.RUN / "lb1" / "xlbd.log").read_text()


def test_path_that_carries_less(b3_alone):
    """b3 is reached by a link that takes less than the node's, and nobody says
    so: what does not fit is gone. Its other end takes four bytes more than its
    MTU, a VLAN tag's room."""
    fabric = b3_alone
    fabric.run("b3", "ip", "link", "set", "eth0", "mtu", 1400)
    assert "timed out" in upload(fabric, 20000, 2)
    fabric.must("lb1", "reload")
    wait_path(fabric, 1404)
    assert f"path to web/b3 ({POOL_ADDRESS['b3']}) carries 1404, of the " \
        f"{LINK} that its link takes" in said(fabric)
    assert upload(fabric, 20000) == "200"
    for command in ("status", "backends"):
        assert f"MTU 1404 of {LINK}" in fabric.must(
            "lb1", command).out
    metrics = fabric.run("lb1", "curl", "-s",
                         "http://127.0.0.1:9555/metrics").stdout.splitlines()
    for what, mtu in (("path", 1404), ("link", LINK)):
        assert f'xlb_backend_{what}_mtu_bytes{{address="' \
            f'{POOL_ADDRESS["b3"]}"}} {mtu}' in metrics
    # known from the start, and whatever the rounds since then say
    fabric.daemon["lb1"].kill()
    fabric.start_node("lb1")
    assert path_mtu(fabric, "b3") == 1404
    assert path_mtu(fabric, "b1") in (LINK, None)
    assert upload(fabric, 20000) == "200"
    fabric.run("b3", "ip", "link", "set", "eth0", "mtu", LINK)
    fabric.must("lb1", "reload")
    wait_path(fabric, LINK)
    assert upload(fabric, 20000) == "200"
    assert "MTU" not in fabric.must("lb1", "status").out


@pytest.mark.parametrize("family", (4, 6))
def test_router_that_says_so(b3_alone, family):
    """Nobody asks (the checks go directly): what is too large is answered from
    the router's word on, which comes after the first packet."""
    fabric = b3_alone
    text = only_b3(fabric).replace("fall: 2}", "fall: 2, via: direct}")
    if family == 4:
        text = text.replace(POOL_ADDRESS["b3"], address("b3", 4))
    fabric.write_config("lb1", text)
    fabric.must("lb1", "reload")
    fabric.wait_eligible(["b3"], ["lb1"])
    fabric.wait_paths(["lb1"])
    since = len(said(fabric))
    fabric.run("router", "ip", "link", "set", fab.ROUTER_IF[3], "mtu", 1400)
    fabric.run("b3", "ip", "link", "set", "eth0", "mtu", 1400)
    assert upload(fabric, 20000) == "200"
    assert path_mtu(fabric, "b3") == 1400
    router = (address4 if family == 4 else address6)(1, fab.ROUTER_HOST)
    assert f"path to web/b3 ({address('b3', family)}) carries 1400, of the " \
        f"{LINK} that its link takes, says {router}: " in said(fabric)[since:]
    assert said(fabric)[since:].count("carries") == 1
    # the next xlbd goes by it, too
    fabric.daemon["lb1"].kill()
    fabric.start_node("lb1")
    assert path_mtu(fabric, "b3") == 1400


def forge(mtu):
    """As if the router had said so of a packet to b1."""
    lb1 = address("lb1", 4)
    told = ICMP(type=3, code=4, nexthopmtu=mtu) / IP(
        src=lb1, dst=POOL_ADDRESS["b1"], flags="DF") / IP(
            src=address("client", 4), dst=VIP[4]) / UDP()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW,
                       socket.IPPROTO_ICMP) as s:
        return s.sendto(bytes(told), (lb1, 0))


def test_forged_word(fabric):
    """It makes probes ask, and they know better."""
    fabric.must("lb1", "reload")
    wait_path(fabric, LINK, "b1")
    since = len(said(fabric))
    lab.in_netns("router", lambda: forge(900))
    lab.wait("its word", lambda: "b1 (10.99.1.11) carries 900, of the "
             in said(fabric)[since:])
    lab.wait("the truth", lambda: f"b1 (10.99.1.11) carries {LINK} again"
             in said(fabric)[since:])
    assert path_mtu(fabric, "b1") == LINK
