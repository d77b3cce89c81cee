# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks go to the VIP through each backend's tunnel, and nowhere else."""

import contextlib
import re
import signal
import socket
import time

import lab
import pytest
from fabric import BACKENDS, HERE, POOL_ADDRESS, PORT, PYTHON, VIP
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

MARK = 0x786c0000
SO_MARK = 36
ETH_P_ALL = 3
NEW_VIP = "203.0.113.77"


def reason(fabric, backend, node="lb1"):
    return fabric.pool(node)[backend]["reason"]


def lacks(fabric, backend, *why):
    fabric.wait_eligible([b for b in BACKENDS if b != backend])
    said = reason(fabric, backend)
    assert all(w in said for w in why), said


def marked_connects(number, timeout=0.3):
    """In a node's namespace: does backend `number` answer on the VIP?"""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.setsockopt(socket.SOL_SOCKET, SO_MARK, MARK | number)
        s.settimeout(timeout)
        try:
            s.connect((VIP[4], PORT))
        except OSError:
            return False
        return True


def any_answers():
    return [n for n in range(1, 8) if marked_connects(n)]


def wait_answers(n):
    lab.wait(f"{n} answers on the VIP", lambda: len(lab.in_netns(
        "lb1", any_answers)) == n)


def test_backend_without_its_vip(fabric):
    for family, prefix in ((4, 32), (6, 128)):
        address = f"{VIP[family]}/{prefix}"
        fabric.run("b1", "ip", "address", "del", address, "dev", "lo")
        try:
            lacks(fabric, "b1", "tcp to ", VIP[family],
                  " through the tunnel: ")
        finally:
            fabric.run("b1", "ip", "address", "add", address, "dev", "lo",
                       *(["nodad"] if family == 6 else []))
        fabric.wait_eligible(BACKENDS)


def test_backend_that_does_not_decapsulate(fabric):
    fabric.decap("b2", "detach", "eth0")
    try:
        lacks(fabric, "b2", "through the tunnel: timeout")
    finally:
        fabric.attach_decap("b2")
    fabric.wait_eligible(BACKENDS)


def test_what_is_wrong_is_what_is_shown(fabric):
    """A tunnel that is mended while the server is down: the reason goes on to
    what is left to mend, and it is no change of state."""
    log = lab.RUN / "lb1/xlbd.log"
    before = len(log.read_text())
    fabric.decap("b2", "detach", "eth0")
    fabric.kill_backend("b2")
    try:
        lacks(fabric, "b2", "through the tunnel: timeout")
        lab.wait("both addresses' checks to say so", lambda: len(re.findall(
            "web/b2 .*: up -> down: ", log.read_text()[before:])) == len(VIP))
        since = fabric.pool("lb1")["b2"]["since"]
        fabric.attach_decap("b2")
        lab.wait("the reason to be what is left", lambda:
                 reason(fabric, "b2").endswith("through the tunnel: connection "
                                               "refused"))
        assert fabric.pool("lb1")["b2"]["since"] == since
    finally:
        fabric.start_backend("b2")
        fabric.attach_decap("b2")
    fabric.wait_eligible(BACKENDS)


def add_vip(fabric, text):
    return text.replace(f"addresses: [{VIP[4]},",
                        f"addresses: [{NEW_VIP}, {VIP[4]},")


def address_row(fabric, address, node="lb1"):
    return next(r for r in fabric.status(node)["addresses"]
                if r["address"] == address)


def test_new_vip_takes_nobody_down(fabric):
    """It waits until backends hold it; all else goes on."""
    fabric.write_config("lb1", add_vip(fabric, fabric.config("lb1")))
    load = fabric.load(4, rate=100)
    fabric.must("lb1", "reload")
    lab.wait("probes of the new address to fail", lambda: NEW_VIP in (
        lab.RUN / "lb1" / "xlbd.log").read_text() and "answered" in (
            address_row(fabric, NEW_VIP)["reason"] or ""),
        seen=lambda: address_row(fabric, NEW_VIP))
    load.wait_for(50)
    assert set(fabric.eligible("lb1")) == set(BACKENDS)
    row = address_row(fabric, NEW_VIP)
    assert not row["wanted"] and "answered" in row["reason"], row
    assert address_row(fabric, VIP[4])["wanted"]
    assert [r for r in load.stop() if not r.ok] == []
    held = []
    try:
        for b in BACKENDS:
            fabric.run(b, "ip", "address", "add", f"{NEW_VIP}/32", "dev", "lo")
            held.append(b)
            fabric.attach_decap(b)
        lab.wait("the new address to be announced", lambda: address_row(
            fabric, NEW_VIP)["wanted"])
        fabric.wait_eligible(BACKENDS)
        # from now on it is expected of all
        fabric.run("b3", "ip", "address", "del", f"{NEW_VIP}/32", "dev", "lo")
        held.remove("b3")
        lab.wait("b3 to be without it", lambda: NEW_VIP in reason(
            fabric, "b3"))
    finally:
        for b in held:
            fabric.run(b, "ip", "address", "del", f"{NEW_VIP}/32", "dev", "lo")


def test_changed_check_keeps_its_verdicts(fabric):
    """Another way, another kind: nobody is unknown in between, and a dead one
    takes no flows."""
    fabric.kill_backend("b2")
    fabric.wait_eligible([b for b in BACKENDS if b != "b2"])
    log = lab.RUN / "lb1" / "xlbd.log"
    before = len(log.read_text())
    load = fabric.load(4, rate=100)
    plain = fabric.config("lb1")
    for text in (plain.replace("fall: 2}", "fall: 2, via: direct}"), plain,
                 plain.replace(f"port: {PORT}, interval", "interval"),
                 plain.replace("type: tcp", "type: http, expect: [200-404]")):
        fabric.write_config("lb1", text)
        fabric.must("lb1", "reload")
        lab.wait("b2 to say why anew", lambda: "refused" in reason(
            fabric, "b2"))
    load.wait_for(50)
    assert [r for r in load.stop() if not r.ok] == []
    said = log.read_text()[before:]
    assert "unknown" not in said and "slots move" not in said, said


def test_changed_check_says_why_anew(fabric):
    """The state stays; its reason is not that of another question."""
    fabric.set_ready("b1", 500)
    try:
        for path, why in (("/ready", "HTTP 500, expected 201"),
                          ("/", "HTTP 200, expected 201")):
            fabric.write_config("lb1", fabric.config("lb1").replace(
                "type: tcp", f"type: http, path: {path}, expect: [201]"))
            fabric.must("lb1", "reload")
            lab.wait(why, lambda w=why: reason(fabric, "b1").endswith(w),
                     seen=lambda: reason(fabric, "b1"))
    finally:
        fabric.set_ready("b1")


def test_no_way_but_the_tunnel(fabric):
    """Without the program no probe leaves, whatever routes to the VIP there
    are, and xlbd puts it back."""
    fabric.run("lb1", "ip", "route", "add", VIP[4], "via", POOL_ADDRESS["b1"])
    daemon = fabric.daemon["lb1"]
    try:
        wait_answers(len(BACKENDS))
        daemon.signal(signal.SIGSTOP)
        wait_answers(len(BACKENDS))
        fabric.run("lb1", "tc", "qdisc", "del", "dev", "xlbp0", "clsact")
        assert lab.in_netns("lb1", any_answers) == []
        fabric.run("lb1", "ip", "link", "set", "xlbp0", "down")
        assert lab.in_netns("lb1", any_answers) == []
    finally:
        daemon.signal(signal.SIGCONT)
        fabric.run("lb1", "ip", "route", "del", VIP[4], "via",
                   POOL_ADDRESS["b1"])
    wait_answers(len(BACKENDS))
    # at once: without it the other routes would do. Often, for xlbd looks by
    # itself, too, every five seconds.
    for family in ("-4", "-6") * 3:
        fabric.run("lb1", "ip", family, "rule", "del", "priority", "1")
        lab.wait("the rule to be there again", lambda f=family: "0x786c0000"
                 in fabric.run("lb1", "ip", f, "rule").stdout, 2)
    fabric.wait_eligible(BACKENDS)
    assert "they are back" in (lab.RUN / "lb1" / "xlbd.log").read_text()


def test_vip_of_the_node_itself(fabric):
    """It would answer its own checks: refused with the place."""
    fabric.run("lb1", "ip", "address", "add", f"{VIP[4]}/32", "dev", "lo")
    try:
        for command in ("check", "reload"):
            p = fabric.xlb("lb1", command)
            assert p.exit == 3
            assert "services[0].addresses[0]" in p.err
            assert "via to direct" in p.err
    finally:
        fabric.run("lb1", "ip", "address", "del", f"{VIP[4]}/32", "dev", "lo")
    fabric.must("lb1", "reload")
    fabric.wait_eligible(BACKENDS)


def frames_out(enough):
    """In a node's namespace: what it sends from sockets, until it is enough and
    at least for some turns of each probe."""
    frames = []
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        s.bind(("eth0", ETH_P_ALL))
        begun = time.monotonic()
        while (took := time.monotonic() - begun) < 0.6 or (
                took < 30 and not enough(frames)):
            s.settimeout(0.1)
            with contextlib.suppress(socket.timeout):
                frame, where = s.recvfrom(2048)
                if where[2] == socket.PACKET_OUTGOING:
                    frames.append(frame)
    return frames


def checksums_are_right(packet):
    """Every checksum that scapy computes is the one that was there."""
    again = packet.copy()
    layer = again
    while layer:
        if "chksum" in layer.fields and layer.chksum != 0:
            del layer.chksum
        layer = layer.payload
    return bytes(again.__class__(bytes(again))) == bytes(packet)


GUE = ("    pool: web\n", "    pool: web\n    forward: gue\n")


def gue_read(frames):
    """Of what is in GUE: (outer, inner) packets. All checksums are right."""
    found = []
    for frame in frames:
        p = Ether(frame)
        if UDP not in p or p[UDP].dport != 6080:
            continue
        payload = bytes(p[UDP].payload)
        inner = IPv6(payload) if payload[0] >> 4 == 6 else IP(payload)
        assert (p[UDP].chksum == 0) == (p.payload.version == 4)
        assert checksums_are_right(p) and checksums_are_right(inner)
        found.append((p.payload, inner))
    return found


def gue_probes(fabric, text, enough):
    """What lb1 asks with that configuration, until it is enough."""
    fabric.write_config("lb1", text)
    fabric.must("lb1", "reload")
    frames = lab.in_netns("lb1", lambda: frames_out(
        lambda frames: enough(gue_read(frames))))
    fabric.wait_eligible(BACKENDS)
    return gue_read(frames)


def versions(found):
    return {(o.version, i.version) for o, i in found}


def test_gue(fabric):
    """The same form as for clients' packets."""
    found = gue_probes(fabric, fabric.config("lb1").replace(*GUE),
                       lambda found: len(versions(found)) == 4)
    assert all(i.dst in (VIP[4], VIP[6]) for _, i in found)
    assert versions(found) == {(4, 4), (4, 6), (6, 4), (6, 6)}


def test_request_of_two_segments(fabric):
    """Each has a tunnel's header of its own, and fits every path. What asks
    whether the path carries whole packets is an echo, and longer."""
    def longest(found):
        return max((len(i) for _, i in found if TCP in i), default=0)

    found = gue_probes(fabric, fabric.config("lb1").replace(*GUE).replace(
        "type: tcp", f"type: http, path: /{'p' * 1000}, host: {'h' * 250}, "
        "expect: [200]"), lambda found: longest(found) >= 1280)
    assert longest(found) == 1280


def test_mac_alone(fabric):
    """b1 and b2 are on the link, b3 is not."""
    text = fabric.config("lb1").replace(
        "    pool: web\n", "    pool: web\n    forward: l2\n")
    fabric.write_config("lb1", text.replace("fall: 2}", "fall: 2, via: tunnel}"))
    fabric.must("lb1", "reload")
    fabric.wait_eligible(["b1", "b2"], nodes=["lb1"])
    assert "through the tunnel" in reason(fabric, "b3")


@pytest.fixture(scope="module")
def kinds(whole):
    """On every backend's VIPs: https on 8443, DNS on 5353."""
    pem = lab.RUN / "kinds.pem"
    whole.run(None, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
              "ec_paramgen_curve:P-256", "-nodes", "-keyout", pem, "-out",
              lab.RUN / "ca.pem", "-subj", "/CN=www.example.com", "-days", "2",
              "-addext", "subjectAltName=DNS:www.example.com")
    with open(pem, "a", encoding="ascii") as f:
        f.write((lab.RUN / "ca.pem").read_text())
    servers = [whole.start(b, "kinds", PYTHON, HERE / "kinds_stub.py", pem,
                           8443, 5353, *VIP.values()) for b in BACKENDS]
    for s in servers:
        lab.wait("the servers", lambda s=s: "ready" in s.log.read_text())
    yield
    for s in servers:
        s.kill()


KINDS = {
    "https": ("type: https, port: 8443, sni: www.example.com, ca: "
              f"{lab.RUN}/ca.pem", "https to {}:8443 through the tunnel: "),
    "dns": ("type: dns, port: 5353, qname: www.example.com",
            "dns to {}:5353 through the tunnel: "),
    "icmp": ("type: icmp", "icmp to {} through the tunnel: "),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kind(fabric, kinds, kind):
    """Each asks the VIP of the one backend, in both families."""
    ask, why = KINDS[kind]
    fabric.write_config("lb1", fabric.config("lb1").replace(
        f"type: tcp, port: {PORT}", ask).replace(
            # processes answer, and have to be let run
            "interval: 200ms, timeout: 150ms",
            "interval: 500ms, timeout: 500ms"))
    fabric.must("lb1", "reload")
    # verdicts are inherited: by its own answers it must be up
    lab.wait("answers of this kind", lambda: all(
        b["health"] == "up" for b in fabric.pool("lb1").values()))
    for family, prefix, more in ((4, 32, []), (6, 128, ["nodad"])):
        address = f"{VIP[family]}/{prefix}"
        fabric.run("b1", "ip", "address", "del", address, "dev", "lo")
        try:
            fabric.wait_eligible(["b2", "b3"], nodes=["lb1"])
            where = VIP[6] if family == 6 else VIP[4]
            if family == 6 and kind != "icmp":
                where = f"[{where}]"
            said = reason(fabric, "b1")
            assert said.startswith(why.format(where)), said
        finally:
            fabric.run("b1", "ip", "address", "add", address, "dev", "lo",
                       *more)
        fabric.wait_eligible(BACKENDS, nodes=["lb1"])


def test_exec(fabric):
    """A command asks what it likes, by no tunnel of ours: `via` is refused by
    its name."""
    script = ("import os, socket; e = os.environ; "
              "print('to', e['XLB_ADDRESS'], e['XLB_PORT'], flush=1); "
              "socket.create_connection((e['XLB_ADDRESS'], e['XLB_PORT']), 1)")
    text = fabric.config("lb1").replace("type: tcp", (
        f'type: exec, command: [{PYTHON}, -Ic, "{script}"]')).replace(
            "interval: 200ms, timeout: 150ms", "interval: 2s, timeout: 2s")
    fabric.write_config("lb1", text.replace("fall: 2}", "fall: 2, via: tunnel}"))
    p = fabric.xlb("lb1", "reload")
    assert p.exit == 3 and "checks.web.via: a command makes its own" in p.err
    fabric.write_config("lb1", text)
    fabric.must("lb1", "reload")
    fabric.kill_backend("b3")
    try:
        fabric.wait_eligible(["b1", "b2"], nodes=["lb1"])
        assert reason(fabric, "b3") == (
            f"exit status 1: to {POOL_ADDRESS['b3']} {PORT}")
    finally:
        fabric.start_backend("b3")
    fabric.wait_eligible(BACKENDS, nodes=["lb1"])
