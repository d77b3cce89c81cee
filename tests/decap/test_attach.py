#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""xlb-decap in network namespaces: a client whose packets reach a backend only
wrapped gets its answers; attach, replace, refuse, detach, and what is left."""
import contextlib
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import peer
import tap

TOP = os.environ.get("top_builddir", ".")
DECAP = os.path.join(TOP, "src/xlb-decap")
PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer.py")
NAME = "xlbd%d" % os.getpid()
BPF = "/sys/fs/bpf/" + NAME
FROM = ["--from", "10.9.0.0/24", "--from", "2001:db8:9::/64"]
BULK = os.urandom(300000)


def call(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def inside(ns, *command):
    return ["nsenter", "--net=/run/netns/" + ns, *command]


class Lab:
    """NAMEl: client and balancer; NAMEb: backend, eth0."""

    def __init__(self):
        self.balancer, self.backend = NAME + "l", NAME + "b"
        self.processes = []

    def ip(self, ns, text):
        call("ip", "-n", ns, *text.split())

    def sysctl(self, ns, path, value):
        call(*inside(ns, "sh", "-c", "echo %s >/proc/sys/net/%s" %
            (value, path)))

    def up(self):
        for ns in (self.balancer, self.backend):
            call("ip", "netns", "add", ns)
            self.ip(ns, "link set lo up")
        self.wire()
        self.ip(self.balancer, "addr add 192.0.2.7/32 dev lo")
        self.ip(self.balancer, "addr add 2001:db8:c::7/128 dev lo nodad")
        self.ip(self.backend, "addr add 203.0.113.10/32 dev lo")
        self.ip(self.backend, "addr add 2001:db8:5::10/128 dev lo nodad")
        self.start(self.backend, "serve", *peer.VIP.values())

    def wire(self, mtu=1500):
        """The pair of interfaces, new."""
        self.ip(self.balancer, "link add p0 mtu %d type veth peer name eth0 "
            "mtu %d netns %s" % (mtu, mtu, self.backend))
        for ns, dev, host in ((self.balancer, "p0", 1), (self.backend, "eth0",
                2)):
            for path in ("all", dev):
                # answers come from where requests do not go; the backend
                # stands the strict check
                self.sysctl(ns, "ipv4/conf/%s/rp_filter" % path, host - 1)
            self.ip(ns, "link set %s up" % dev)
            self.ip(ns, "addr add 10.9.0.%d/24 dev %s" % (host, dev))
            self.ip(ns, "addr add 2001:db8:9::%d/64 dev %s nodad" %
                (host, dev))
        self.ip(self.backend, "route add default via 10.9.0.1")
        self.ip(self.backend, "-6 route add default via 2001:db8:9::1")
        call(*inside(self.balancer, "ethtool", "-K", "p0", "tx", "off"))

    def mac(self, dev="eth0"):
        out = subprocess.check_output(["ip", "-n", self.backend, "-json",
            "link", "show", dev])
        return json.loads(out)[0]["address"]

    def start(self, ns, *arguments):
        process = subprocess.Popen(inside(ns, "/usr/bin/python3", PEER,
            *map(str, arguments)), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    def stop(self, process):
        self.processes.remove(process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def down(self):
        for process in list(self.processes):
            self.stop(process)
        for ns in (self.balancer, self.backend):
            subprocess.run(["ip", "netns", "del", ns],
                stderr=subprocess.DEVNULL)
        shutil.rmtree(BPF, ignore_errors=True)

    @contextlib.contextmanager
    def tunnel(self, form):
        """Requests to the VIPs go wrapped, in this form."""
        process = self.start(self.balancer, "wrap", "p0", self.mac(), form)
        try:
            self.ip(self.balancer, "link set tun0 up mtu 1400")
            for version, vip in peer.VIP.items():
                self.ip(self.balancer, "-%d route add %s dev tun0 src %s" %
                    (version, vip, peer.CLIENT[version]))
            yield
        finally:
            self.stop(process)


lab = Lab()


def decap(*arguments, ns=None, bpf=BPF):
    """(status, output, errors) of a command on the backend."""
    done = subprocess.run(inside(ns or lab.backend, DECAP, "--bpf-dir", bpf,
        *arguments), capture_output=True, text=True, timeout=180)
    return done.returncode, done.stdout, done.stderr


def works(*arguments, errors="", **how):
    code, out, err = decap(*arguments, **how)
    assert code == 0 and err == errors, (arguments, code, err)
    return out


def fails(code, text, *arguments, **how):
    got, out, err = decap(*arguments, **how)
    assert got == code and text in err and out == "", (arguments, got, err)


def attach(*arguments, iface="eth0", **how):
    return works("attach", iface, *FROM, *arguments, **how)


def interfaces(**how):
    doc = json.loads(works("status", "--json", **how))
    assert doc["schema"] == 1
    return doc["interfaces"]


def interface(**how):
    only, = interfaces(**how)
    return only


@contextlib.contextmanager
def attached(*arguments, iface="eth0"):
    attach(*arguments, iface=iface)
    try:
        yield
    finally:
        works("detach", iface)
        assert not os.path.exists(BPF)


def request(version, body=None, timeout=30):
    """From the client to the VIP, in its namespace."""
    code = """if True:
        import http.client, sys
        c = http.client.HTTPConnection(%r, 80, timeout=%r,
            source_address=(%r, 0))
        body = sys.stdin.buffer.read()
        c.request("POST" if body else "GET", "/", body or None)
        print(c.getresponse().read().decode())
    """ % (peer.VIP[version], timeout, peer.CLIENT[version])
    done = subprocess.run(inside(lab.balancer, "/usr/bin/python3", "-c", code),
        input=body or b"", capture_output=True, timeout=180)
    return done.stdout.decode().strip()


def requests_work(forms=("ip4",), versions=(4, 6)):
    for form in forms:
        with lab.tunnel(form):
            for version in versions:
                got = request(version)
                assert got == "hello " + peer.VIP[version], (form, got)
                got = request(version, BULK, timeout=60)
                assert got == hashlib.sha256(BULK).hexdigest(), (form, got)


def refused_before():
    """Without the program nothing answers: what follows shows something."""
    with lab.tunnel("ip4"):
        for version in (4, 6):
            assert request(version, timeout=1) == ""


def requests_native():
    with attached():
        assert interface()["mode"] == "native"
        requests_work(("ip4", "ip6", "gue4", "gue6"))
        reasons = interface()["reasons"]
        assert reasons["decapsulated"] > 1000, reasons
        for reason in ("malformed", "checksum", "ecn", "failed", "not_vip"):
            assert reasons[reason] == 0, reasons


def requests_generic():
    with attached("--mode", "generic"):
        assert interface()["mode"] == "generic"
        requests_work(("ip4", "gue6"))
    call(*inside(lab.backend, "ethtool", "-K", "eth0", "gro", "on"))
    with attached("--mode", "generic"):
        requests_work(("ip4", "ip6"))
    call(*inside(lab.backend, "ethtool", "-K", "eth0", "gro", "off"))


def asked(process, line):
    """What it says to that."""
    print(line, file=process.stdin, flush=True)
    return process.stdout.readline()


def replace_loses_nothing():
    with attached():
        listener = lab.start(lab.backend, "listen")
        sender = lab.start(lab.balancer, "flood", "p0", lab.mac())
        programs = {interface()["program"]}
        replaced, end = 0, time.monotonic() + 3
        while replaced < 5 or time.monotonic() < end:
            attach("--vip", "198.51.100.%d" % replaced)
            replaced += 1
            programs.add(interface()["program"])
        count = int(asked(sender, "enough"))
        got = int(asked(listener, count))
        lab.stop(sender)
        lab.stop(listener)
        assert got == count > replaced, "%d of %d arrived" % (got, count)
        assert len(programs) == replaced + 1, programs
        assert interface()["reasons"]["decapsulated"] == count
        assert interface()["vip"] == ["198.51.100.%d" % (replaced - 1)]


def replace_takes_effect():
    with attached():
        requests_work(versions=(4,))
        works("attach", "eth0", "--from", "10.8.0.0/16")
        with lab.tunnel("ip4"):
            assert request(4, timeout=1) == ""
        assert interface()["from"] == ["10.8.0.0/16"]
        assert interface()["reasons"]["source"] > 0
        attach("--gue-port", "6081")
        with lab.tunnel("gue4"):
            assert request(4, timeout=1) == ""
        assert interface()["gue_port"] == 6081
        attach()
        requests_work(("gue4",), versions=(4,))


def vip_option():
    """A VIP elsewhere than on lo needs --vip."""
    lab.ip(lab.backend, "addr del 203.0.113.10/32 dev lo")
    lab.ip(lab.backend, "addr add 203.0.113.10/32 dev eth0")
    try:
        with attached():
            with lab.tunnel("ip4"):
                assert request(4, timeout=1) == ""
            assert interface()["reasons"]["not_vip"] > 0
            attach("--vip", "203.0.113.0/24")
            requests_work(versions=(4,))
    finally:
        lab.ip(lab.backend, "addr del 203.0.113.10/32 dev eth0")
        lab.ip(lab.backend, "addr add 203.0.113.10/32 dev lo")


def status_shows():
    assert works("status") == "attached to no interface\n"
    assert interfaces() == []
    lab.ip(lab.backend, "addr add 198.51.100.1/24 dev lo")
    with attached("--vip", "192.0.2.128/25", "--vip", "2001:db8:6::1"):
        row = interface()
        assert row["name"] == "eth0" and row["attached"] is True
        assert row["from"] == ["10.9.0.0/24", "2001:db8:9::/64"], row
        assert sorted(row["vip"]) == ["192.0.2.128/25", "2001:db8:6::1"]
        assert sorted(row["lo"]) == ["198.51.100.0/24", "198.51.100.1",
            "2001:db8:5::10", "203.0.113.10"], row["lo"]
        assert {"10.9.0.2", "2001:db8:9::2"} <= set(row["local"])
        assert row["added"] == row["removed"] == []
        assert row["gue_port"] == 6080 and row["frags"] is False
        assert "decapsulated" in row["reasons"]
        text = works("status")
        for part in ("eth0: native mode", "10.9.0.0/24", "decapsulated"):
            assert part in text, text
        assert "changed" not in text
        lab.ip(lab.backend, "addr del 198.51.100.1/24 dev lo")
        lab.ip(lab.backend, "addr add 203.0.113.11/32 dev lo")
        row = interface()
        assert row["added"] == ["203.0.113.11"], row
        assert row["removed"] == ["198.51.100.1"], row
        assert "addresses have changed" in works("status")
        attach()
        row = interface()
        assert row["added"] == row["removed"] == []
        lab.ip(lab.backend, "addr del 203.0.113.11/32 dev lo")


def usage():
    for arguments in ((), ("attach",), ("attach", "eth0", "eth1"), ("detach",),
            ("detach", "eth0", *FROM), ("status", "eth0"),
            ("attach", "eth0", "--json"), ("reload",), ("--nonsense",),
            ("status", "--from", "10.0.0.0/8")):
        fails(2, "usage:", *arguments) if arguments != ("--nonsense",) else \
            fails(2, "--nonsense", *arguments)
    for text, *arguments in (
            ("attach: of which interface?", "attach"),
            ("detach: too many arguments", "detach", "eth0", "eth1"),
            ("status: too many arguments", "status", "eth0"),
            ("detach: an option that is not", "detach", "eth0", *FROM),
            ("reload: unknown command", "reload")):
        fails(2, text, *arguments)
    fails(2, "--from is required", "attach", "eth0")
    for prefix in ("10.0.0.1/8", "10.0.0.0/33", "", "lb1", "::1/129",
            "10.0.0.0/8,192.0.2.0/24"):
        fails(2, "--from: \"%s\"" % prefix, "attach", "eth0", "--from", prefix)
    fails(2, "--vip: \"x\"", "attach", "eth0", *FROM, "--vip", "x")
    fails(2, "--mode: \"offload\"", "attach", "eth0", *FROM, "--mode",
        "offload")
    for port in ("0", "65536", "x", "-1", "1 "):
        fails(2, "--gue-port: \"%s\"" % port, "attach", "eth0", *FROM,
            "--gue-port", port)
    assert works("--help").startswith("usage: xlb-decap")
    assert works("--version").startswith("xlb-decap ")
    assert not os.path.exists(BPF)


def no_root():
    for command in (("attach", "eth0", *FROM), ("detach", "eth0")):
        done = subprocess.run(inside(lab.backend, "setpriv", "--reuid=65534",
            "--clear-groups", DECAP, *command), capture_output=True, text=True)
        assert done.returncode == 1 and "needs root" in done.stderr, done


def no_interface():
    fails(1, "eth7: No such device", "attach", "eth7", *FROM)
    fails(1, "eth7: no such interface", "detach", "eth7")
    fails(1, "eth0: xlb-decap is not attached", "detach", "eth0")
    assert not os.path.exists(BPF)


def foreign_program():
    """Another instance stands for anybody else's program."""
    other = BPF + "x"
    attach(bpf=other)
    try:
        program = interface(bpf=other)["program"]
        fails(1, 'eth0: XDP program %d "xlb_decap" is attached already '
            "(native mode) and is not ours" % program, "attach", "eth0", *FROM)
        fails(1, "XDP program %d" % program, "attach", "eth0", *FROM,
            "--mode", "generic")
        fails(1, "not attached", "detach", "eth0")
        assert interface(bpf=other)["program"] == program
        assert not os.path.exists(BPF)
    finally:
        works("detach", "eth0", bpf=other)


def dotted_name():
    """bpffs takes no name with a dot; the pin has the interface's number."""
    lab.ip(lab.backend, "link set eth0 down")
    lab.ip(lab.backend, "link set eth0 name eth0.100")
    try:
        with attached(iface="eth0.100"):
            assert interface()["name"] == "eth0.100"
            assert interface()["mode"] == "native"
            attach(iface="eth0.100")
            # renamed while attached
            lab.ip(lab.backend, "link set eth0.100 name eth0")
            assert interface()["name"] == "eth0"
            lab.ip(lab.backend, "link set eth0 name eth0.100")
    finally:
        lab.ip(lab.backend, "link del eth0.100")
        lab.wire()


def mode_changes():
    with attached():
        before = interface()["reasons"]["other"]
        changes = "xlb-decap: eth0: changes from %s to %s mode: packets are " \
            "not unwrapped for a moment\n"
        attach("--mode", "generic", errors=changes % ("native", "generic"))
        assert interface()["mode"] == "generic"
        attach("--mode", "auto")
        assert interface()["mode"] == "generic"
        requests_work(versions=(4,))
        attach(errors=changes % ("generic", "native"))
        assert interface()["mode"] == "native"
        assert interface()["reasons"]["other"] >= before
        assert interface()["reasons"]["decapsulated"] > 0


def no_native():
    """A driver without native XDP: refused with its reason, never degraded
    unless asked to."""
    code, out, err = decap("attach", "lo", *FROM)
    assert code == 1 and out == "", (code, out)
    for part in ("lo: native XDP refused: Operation not supported: "
            "\"Underlying driver does not support XDP in native mode\" "
            "(driver -, MTU 65536)", "--mode generic"):
        assert part in err, err
    assert interfaces() == []
    code, out, err = decap("attach", "lo", *FROM, "--mode", "auto")
    assert code == 0 and "attached in generic mode" in err, err
    row = interface()
    assert row["mode"] == "generic"
    # a change that fails leaves what was there
    code, out, err = decap("attach", "lo", "--from", "10.8.0.0/16")
    assert code == 1 and "goes on in generic mode as before" in err, err
    now = interface()
    assert now["attached"] is True and now["mode"] == "generic"
    assert (now["program"], now["from"]) == (row["program"], row["from"])
    works("detach", "lo")


def jumbo():
    lab.ip(lab.backend, "link del eth0")
    lab.wire(mtu=9000)
    try:
        with attached():
            row = interface()
            assert row["mode"] == "native" and row["frags"] is True, row
            attach()
            requests_work()
            assert "several buffers" in works("status")
    finally:
        lab.ip(lab.backend, "link del eth0")
        lab.wire()


def interface_gone():
    attach()
    pin = os.listdir(BPF)
    assert len(pin) == 1 and pin[0].isdigit(), pin
    lab.ip(lab.backend, "link del eth0")
    row = interface()
    assert row["name"] == "eth0" and row["attached"] is False, row
    assert "NOT ATTACHED" in works("status")
    works("detach", "eth0")
    assert not os.path.exists(BPF)
    lab.wire()
    # stale pins go at the next attach, too
    attach()
    lab.ip(lab.backend, "link del eth0")
    lab.wire()
    with attached():
        assert interface()["attached"] is True
        assert len(os.listdir(BPF)) == 1


def detached_by_force():
    attach()
    call(*inside(lab.backend, "bpftool", "link", "detach", "pinned",
        os.path.join(BPF, os.listdir(BPF)[0])))
    assert interface()["attached"] is False
    with attached():
        assert interface()["attached"] is True
        requests_work(versions=(4,))


def directory_of_others():
    os.mkdir(BPF, 0o700)
    try:
        os.chown(BPF, 65534, 65534)
        for command in (("attach", "eth0", *FROM), ("detach", "eth0"),
                ("status",)):
            fails(1, "%s: not ours: owner 65534, mode 0700" % BPF, *command)
        os.chown(BPF, 0, 0)
        os.chmod(BPF, 0o755)
        fails(1, "not ours: owner 0, mode 0755", "attach", "eth0", *FROM)
    finally:
        os.rmdir(BPF)
    with tempfile.TemporaryDirectory() as directory:
        fails(1, "not on a BPF file system", "attach", "eth0", *FROM,
            bpf=directory)
        assert os.listdir(directory) == []
    fails(1, "no name with a dot", "attach", "eth0", *FROM, bpf=BPF + ".x")
    os.mkdir(BPF, 0o700)
    os.symlink(BPF, BPF + "l")
    try:
        fails(1, BPF + "l", "attach", "eth0", *FROM, bpf=BPF + "l")
    finally:
        os.unlink(BPF + "l")
        os.rmdir(BPF)
    assert interfaces() == []


def other_namespace():
    """Numbers of interfaces are alike in every namespace."""
    lab.ip(lab.balancer, "link add eth0 index 77 type veth peer name eth1")
    lab.ip(lab.backend, "link add eth7 index 77 type veth peer name eth8")
    attach(iface="eth7")
    try:
        for command in (("attach", "eth0", *FROM), ("detach", "eth0")):
            fails(1, "another network namespace", *command, ns=lab.balancer)
        assert interfaces(ns=lab.balancer) == []
        assert interface()["name"] == "eth7"
    finally:
        works("detach", "eth7")
        lab.ip(lab.backend, "link del eth7")
        lab.ip(lab.balancer, "link del eth0")


def directory_private():
    with attached():
        mode = os.stat(BPF).st_mode & 0o7777
        assert mode == 0o700, oct(mode)


CASES = [usage, no_root, no_interface, refused_before, requests_native,
    requests_generic, replace_loses_nothing, replace_takes_effect, vip_option,
    status_shows, directory_private, foreign_program, dotted_name,
    mode_changes, no_native, jumbo, interface_gone, detached_by_force,
    directory_of_others, other_namespace]


def main():
    if os.geteuid() != 0:
        tap.plan_skip("needs root for namespaces and BPF")
    for command in ("ip", "nsenter", "ethtool", "bpftool", "setpriv"):
        if shutil.which(command) is None:
            tap.plan_skip("no " + command)
    if not os.path.exists("/dev/net/tun"):
        tap.plan_skip("no /dev/net/tun")
    if not os.path.ismount("/sys/fs/bpf"):
        tap.plan_skip("/sys/fs/bpf is not mounted")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        try:
            lab.up()
        except subprocess.CalledProcessError as why:
            tap.plan_skip("no network namespace: %s" % why)
        only = sys.argv[1:]
        return tap.run([(case.__name__.replace("_", " "), case)
            for case in CASES if not only or case.__name__ in only])
    finally:
        lab.down()


if __name__ == "__main__":
    sys.exit(main())
