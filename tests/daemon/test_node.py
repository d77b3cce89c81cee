#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What becomes of one node: reload, restart, stop, and what is not as it
should be."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sys
import time

import net
import node
from node import VIP, ask, check, wait


def reload_is(n, status, text=""):
    rc, out, err = n.xlb("reload")
    check(rc == status and text in err, "reload:", rc, out, err)


def up(n, **kw):
    n.configure(**kw)
    n.start_xlbd()
    wait("the address to be announced", n.announced)


def family_of(pid):
    """A process and all that it has started."""
    found = [pid]
    for p in found:
        with contextlib.suppress(OSError):      # it has just ended
            found += [int(c) for t in os.listdir(f"/proc/{p}/task") for c in
                      open(f"/proc/{p}/task/{t}/children",
                           encoding="ascii").read().split()]
    return found


def descriptors(pid):
    """{name: how many} of xlbd and its helpers."""
    count = {}
    for p in family_of(pid):
        with contextlib.suppress(OSError):
            name = open(f"/proc/{p}/comm", encoding="ascii").read().strip()
            if name.startswith("xlb"):
                count[name] = len(os.listdir(f"/proc/{p}/fd"))
    return count


def reloads_leave_nothing(n):
    """200 of them, each another configuration than the one before: checks of
    every kind come and go, with what they ask at that moment."""
    kinds = ["type: tcp", "type: http, path: /a", "type: https, path: /a",
             "type: udp", "type: dns", "type: icmp, via: direct",
             "type: exec, command: [/bin/true]",
             "type: exec, command: [/bin/sleep, '9']"]
    more = [f"checks: {{c: {{{k}, interval: 50ms, timeout: 40ms}}}}"
            for k in kinds]

    def configure(i):
        n.configure(more=more[i % len(kinds)], pool="check: c, ",
                    bgp=node.BGP if i % 40 < 30 else "",
                    backends=node.BACKENDS if i % 3 else "")
        if i % 5 == 0:
            n.file.write_text(n.file.read_text().replace(
                "listen: off", f"listen: 127.0.0.1:{9000 + i % 2}"))

    configure(1)
    n.start_xlbd()
    for i in range(2, 2 + len(kinds)):      # all that is made once is there
        configure(i)
        reload_is(n, 0)

    def settled(most):
        """As often as it takes: probes that are under way have sockets, and so
        has a look at BIRD."""
        n.configure()
        reload_is(n, 0)
        now = descriptors(n.xlbd.pid)
        return set(now) == set(most) and all(
            now[name] <= most[name] for name in most)

    n.configure()
    reload_is(n, 0)
    # the prober's own, and two that hear of paths
    wait("probes to end", lambda: descriptors(n.xlbd.pid).get(
        "xlb-prober") == 7)
    before = descriptors(n.xlbd.pid)
    check(set(before) == {"xlbd", "xlb-spawner", "xlb-prober", "xlb-launcher",
                          "xlb-http"}, before)
    for i in range(200):
        configure(i)
        reload_is(n, 0)
    wait("no more descriptors than before", lambda: settled(before), 20)


def bgp_goes(n):
    up(n)
    n.configure(bgp="")
    reload_is(n, 0)
    wait("the withdrawal", lambda: n.withdrawn(), 3)
    check(VIP not in n.routes.read_text(), "the include still has it")
    wait("xlb0 to go", lambda: node.run(
        "ip", "-n", n.ns, "link", "show", "xlb0",
        check=False).returncode != 0, 7)
    n.configure()
    reload_is(n, 0)
    wait("the address to be back", n.announced, 3)


def attributes(n):
    """On the route in BIRD, in what is shown, and in diff before that."""
    up(n)
    asked = (f"{{address: {VIP}, announce: 203.0.113.0/24, med: 50, prepend: 2,"
             ' communities: ["65001:7", "65001:8:9"]}')
    n.configure(address=asked, bgp=node.BGP.replace(
        "hold: 0s", 'hold: 0s, communities: ["65001:1"], fingerprint: true'))
    rc, out, err = n.xlb("diff")
    check(rc == 0 and re.search(r"^add +route 203\.0\.113\.0/24 med 50 prepend "
                                "2 65001:1 65001:7 65001:8:9 fingerprint$",
                                out, re.M) and
          re.search(rf"^remove +route {VIP}/32$", out, re.M), out, err)
    reload_is(n, 0)
    mark = int(json.loads(n.xlb("--json", "fingerprint")[1])["web"], 16)
    mark = f"65001:{mark >> 32}:{mark & 0xffffffff}"
    wait("the prefix to be announced", lambda: n.announced("203.0.113.0/24"))
    check(n.withdrawn(VIP + "/32"), "and the address alone is not")
    text = n.birdc("show route table xlb4t all")
    large = re.search(r"BGP.large_community: (.*)", text).group(1)
    check(sorted(re.findall(r"\d+, \d+, \d+", large)) == sorted(
        x.replace(":", ", ") for x in ("65001:8:9", mark)), text)
    for line in ("BGP.community: (65001,1) (65001,7)",
                 "BGP.as_path: 65001 65001", "xlb_med: 50"):
        check(line in text, line, "is not in", text)
    row = n.status()["addresses"][0]
    large = sorted(("65001:8:9", mark), key=lambda c: [
        int(x) for x in c.split(":")])
    check(row["prefix"] == "203.0.113.0/24" and row["med"] == 50 and
          row["prepend"] == 2 and row["communities"] == [
              "65001:1", "65001:7", *large], row)
    check("203.0.113.0/24 med 50 prepend 2 65001:1" in n.xlb("bgp")[1],
          n.xlb("bgp")[1])
    # one backend less is another ring, on the same route
    n.xlb("drain", "web/a")
    new = int(json.loads(n.xlb("--json", "fingerprint")[1])["web"], 16)
    wait("the new fingerprint", lambda: f"{new >> 32}, {new & 0xffffffff}" in
         n.birdc("show route table xlb4t all"))
    check(f"{mark.split(':')[1]}, {mark.split(':')[2]}" not in
          n.birdc("show route table xlb4t all"), "the old one is still there")


def interface_goes_unheard(n):
    """The kernel has one interface less, and says so after much else: more than
    is read before xlbd looks at everything, which is due."""
    n.link("eth9")
    up(n, interfaces="{name: eth0}, {name: eth9}")
    wait("eth9 to be attached", lambda: all(
        i["attached"] for i in n.status()["interfaces"]))
    since = len(n.said())
    n.xlbd.send_signal(signal.SIGSTOP)
    lines = [f"address add 10.8.{i >> 8}.{i & 255}/32 dev lo"
             for i in range(800)]
    node.run("ip", "-n", n.ns, "-batch", "-", input="\n".join(lines))
    node.run("ip", "-n", n.ns, "link", "del", "eth9")
    time.sleep(5.2)
    n.xlbd.send_signal(signal.SIGCONT)
    wait("eth9 to be gone", lambda: not all(
        i["attached"] for i in n.status()["interfaces"]))
    check("withdrawn" not in n.said()[since:], n.said()[since:])
    check(n.announced(), "withdrawn for an interface that went away")


def interface_missing(n):
    """No packet comes in where there is no interface: the others go on."""
    up(n)
    n.configure(interfaces="{name: eth0}, {name: eth9}")
    reload_is(n, 1, "interface eth9: no such interface")
    check(n.announced(), "withdrawn for an interface that is not there")
    n.link("eth9")
    wait("eth9 to be attached", lambda: all(
        i["attached"] for i in n.status()["interfaces"]))
    node.run("ip", "-n", n.ns, "link", "del", "eth9")
    wait("eth9 to be gone", lambda: not all(
        i["attached"] for i in n.status()["interfaces"]))
    check(n.announced(), "withdrawn for an interface that went away")
    n.configure(interfaces="{name: eth9}")
    reload_is(n, 1)
    wait("the withdrawal without any", lambda: n.withdrawn(), 3)


def directory_goes(n):
    up(n)
    shutil.move(n.dir / "bird", n.dir / "away")
    wait("the directory to be back", n.routes.exists, 12)
    check(VIP in n.routes.read_text(), "the include is not what it was")
    shutil.rmtree(n.dir / "away")


def restart_refuses(n):
    """What a reload refuses, a restart does not slip in."""
    up(n)
    n.configure(more="maglev: {table_size: 251}")
    reload_is(n, 3, "maglev.table_size")
    rc, _, err = n.xlb("restart")
    check(rc == 0, err)
    config = n.status()["config"]
    check(not config["ok"] and config["kept"] and
          "maglev.table_size" in config["error"], config)
    check(n.announced(), "not announced after the restart")
    rc, _, err = n.xlb("restart", "--flush")
    check(rc == 0, err)
    check(n.status()["config"]["ok"], n.status()["config"])
    wait("the address to be back", n.announced)


def first_configuration(n):
    """On a node that serves nothing yet no flow can move: a reload takes what
    it would refuse later, and so does a restart."""
    key = n.dir / "key"
    key.write_bytes(bytes(range(16)))
    key.chmod(0o600)

    def settings(size, entries=1024):
        return (f"maglev: {{table_size: {size}, key_file: {key}}}\n"
                f"flow_table: {{entries: {entries}}}\n")

    def serves(size):
        s = n.status()
        return s is not None and s["pools"] and s["pools"][0]["slots"] == size and \
            s["config"]["ok"] and s["forwarding"]

    def nothing(size):
        n.file.write_text(settings(size))
        reload_is(n, 0)
    n.file.write_text("")
    n.start_xlbd()
    n.configure(more=settings(251))
    rc, out, err = n.xlb("diff")
    check(rc == 0 and "add     service" in out, rc, out, err)
    rc, out, err = n.xlb("reload")
    check(rc == 0 and out == "reloaded\n", rc, out, err)
    check(serves(251) and n.status()["flow_table"]["entries"] == 1024,
          n.status())
    wait("the address to be announced", n.announced)
    # from now on it is refused
    n.configure(more=settings(509))
    reload_is(n, 3, "maglev.table_size")
    nothing(251)
    n.configure(more=settings(509))
    n.xlbd.send_signal(signal.SIGHUP)
    wait("a hang-up to be enough", lambda: serves(509), 20)
    nothing(509)
    n.configure()
    rc, _, err = n.xlb("restart")
    check(rc == 0, err)
    wait("the new size", lambda: serves(65537))
    # what a reload says of an interface it says after that, too
    n.file.write_text("")
    reload_is(n, 0)
    n.configure(interfaces="{name: nope0}", more=settings(251))
    reload_is(n, 1, "nope0")


def replies_filtered(n):
    """rp_filter 1, and no way back to the VIP by that interface."""
    def warned(*words):
        reload = n.xlb("reload")
        told = n.xlb("check", n.file)
        check(reload[0] == 0 and told[0] == 0, reload, told)
        for err in (reload[2], told[2]):
            check(("rp_filter of eth0 is 1" in err) == bool(words) and
                  all(w in err for w in words), err)

    more = "checks: {c: {type: tcp}}"
    sysctl = n.inside("sysctl", "-q", "-w")
    none = [f"net.ipv4.conf.{key}.rp_filter=0" for key in ("eth0", "all")]
    n.configure(more=more, pool="check: c, ")
    n.start_xlbd()
    node.run(*sysctl, *none)
    warned()
    try:
        for key in ("eth0", "all"):
            node.run(*sysctl, f"net.ipv4.conf.{key}.rp_filter=1")
            warned("xlb.yaml:2:", "warning: interfaces[0].name: ", VIP)
            node.run("ip", "-n", n.ns, "route", "add", VIP, "via",
                     "10.0.1.254")
            warned()
            node.run("ip", "-n", n.ns, "route", "del", VIP)
            node.run(*sysctl, *none)
        node.run(*sysctl, "net.ipv4.conf.eth0.rp_filter=1")
        n.configure(more=more.replace("tcp", "tcp, via: direct"),
                    pool="check: c, ")
        warned()
    finally:
        node.run(*sysctl, *none)


def nat_ports_taken(n):
    """Ports that NAT has and the host takes, and what to do about it."""
    def warning():
        rc, _, err = n.xlb("check", n.file)
        check(rc == 0, rc, err)
        return err

    def take(low_high):
        node.run(*n.inside("sysctl", "-q", "-w",
                           f"net.ipv4.ip_local_port_range={low_high}"))

    nat = """services: [{name: www, addresses: [%s], listen: [tcp/80],
  pool: web, forward: nat}]""" % VIP
    n.configure()
    plain = n.file.read_text()
    n.file.write_text("\n".join(
        nat if line.startswith("services:") else line
        for line in plain.splitlines()))
    try:
        for free in ("32768 60999", "1024 16383"):
            take(free)
            check("ports" not in warning(), free, warning())
        for low, high in ((32767, 60999), (1024, 16384), (20000, 20001),
                          (1024, 65535)):
            take(f"{low} {high}")
            said = warning()
            check("warning: forward: nat uses ports 16384 to 32767, and this "
                  f"host takes {low} to {high} for " in said, said)
            remedy = re.search(r'sysctl -w net\.ipv4\.ip_local_port_range='
                               r'"(\d+ \d+)"', said)
            check(remedy, said)
            take(remedy[1])
            check("ports" not in warning(), remedy[1], warning())
        take("1024 65535")
        n.file.write_text(plain)
        check("ports" not in warning(), "nobody uses them")
    finally:
        take("32768 60999")


def diff_opens_nothing(n):
    """FILE is the client's: its key_file must not make xlbd open things."""
    up(n)
    fifo = n.dir / "fifo"
    os.mkfifo(fifo)
    rc, out, err = n.xlb("diff", "-", input=n.file.read_text() +
                         f"maglev: {{key_file: {fifo}}}\n")
    check(rc == 0 and "only a reload reads it" in err, rc, out, err)
    wait("the last word of the start", lambda: "bird: busy -> synced" in
         n.said())
    before = n.said()
    rc, out, err = n.xlb("diff", "-", input="nonsense: 1\n")
    check(rc == 3 and "nonsense" in err, rc, out, err)
    check(n.said() == before, "in the log:", n.said()[len(before):])


def warnings_once(n):
    up(n)
    err = n.xlb("reload")[2]
    check(err.count("warning:") == 1, err)


def bird_dies(n):
    """A reload is done without it, and says so, whether or not it was asked;
    each address says why it is not announced."""
    up(n)
    n.bird.kill()
    n.bird.wait()
    wait("xlbd to notice", lambda: n.status()["bird"]["status"] == "absent")
    for listen in ("tcp/80", "tcp/81"):
        n.configure(listen=listen)
        reload_is(n, 0, "warning: bird: absent")
        row = n.status()["addresses"][0]
        check(row["wanted"] and not row["in_bird"] and
              row["reason"] == "BIRD: absent", row)
    n.configure()
    n.start_bird()
    reload_is(n, 0)
    wait("the address to be back", n.announced)
    wait("nothing to be said of it", lambda: n.status()["addresses"][0][
        "reason"] == "no BGP session exports it")


def preflight(n, status, text=""):
    before = sorted(n.bpf.rglob("*"))
    p = node.run(*n.inside(node.BUILD / "src/xlbd", *n.options(),
                           "--preflight"), check=False)
    check(p.returncode == status and text in p.stderr, "preflight:",
          p.returncode, p.stderr)
    check(sorted(n.bpf.rglob("*")) == before, "pins have changed")


def preflights(n):
    """What a new xlbd would make of what is there; it changes nothing."""
    n.configure()
    preflight(n, 0)
    up(n)
    preflight(n, 0)
    n.configure(more="flow_table: {entries: 2097152}")
    preflight(n, 0)
    n.configure(more="flow_table: {entries: 1024}")
    preflight(n, 1, "a table in use does not shrink")
    for key, value in (("table_size", 251), ("seed", 7)):
        n.configure(more=f"maglev: {{{key}: {value}}}")
        preflight(n, 1, f"the configuration says {value}: drain the node, then "
                  "xlb restart --flush")
    n.configure(more="nonsense: 1")
    preflight(n, 3, f"{n.file}:6:1: nonsense: unknown key")
    n.configure()
    check(n.announced(), "withdrawn")
    killed(n)
    preflight(n, 0)
    (n.bpf / "stats").unlink()
    node.run("bpftool", "map", "create", n.bpf / "stats", "type", "array",
             "key", "4", "value", "8", "entries", "1", "name", "stats")
    preflight(n, 1, "maps: stats: value size 8 is pinned, this xlbd needs ")
    (n.bpf / "tables").unlink()
    preflight(n, 1, "is pinned, tables is not: drain the node, then xlb")


def refused(n, command, text):
    """Asked without a program that takes time to start."""
    try:
        ask.xlbd(n.dir / "run", command, 60)
    except ValueError as why:
        check(text in str(why), why)
    else:
        check(False, command, "was not refused")


def stop_is_left_alone(n):
    slow = node.BGP.replace("graceful_shutdown: 0s", "graceful_shutdown: 6s")
    up(n, bgp=slow)
    stop = n.xlb_start("stop")
    wait("the stop to begin", lambda:
         n.status()["phase"] == "graceful_shutdown")
    refused(n, "stop", "stopping already")
    n.configure(bgp="")
    refused(n, "reload", "xlbd is stopping")
    n.xlbd.send_signal(signal.SIGHUP)
    n.status()  # it has been there
    n.status()
    check(n.announced(), "a reload came between")
    check(stop.wait(60) == 0, stop.stderr.read())
    rc, _, err = n.xlb("status")
    check(rc == 4 and "routes: withdrawn, xlb0 is gone\n" in err, rc, err)
    check(n.xlbd.wait(60) == 0, "xlbd failed")
    check(n.withdrawn() and not n.bpf.exists(), "something stays")
    check(VIP not in n.routes.read_text(), "the include still has it")
    check(n.xlb("status")[0] == 4, "no daemon is 4")


def stop_answers_last(n):
    """What is to be gone is gone when the answer comes, not when the process is."""
    up(n)
    with net.inside(n.ns), socket.socket(socket.AF_UNIX) as s:
        s.connect(str(n.dir / "run/xlb.sock"))
        s.sendall(b'{"schema":1,"command":"stop","args":{}}\n')
        answer = s.makefile().readline()
        left = [name for _, name in socket.if_nameindex()]
    check(json.loads(answer)["exit"] == 0, answer)
    check("xlb0" not in left and not n.bpf.exists(), left)
    left = node.run(*n.inside("ip", "neigh")).stdout
    check("managed" not in left and "proto" not in left, left)
    check(n.xlbd.wait(60) == 0, "xlbd failed")


def no_interface_up(n):
    up(n)
    node.run("ip", "-n", n.far, "link", "set", "eth0", "down")
    wait("the withdrawal", lambda: n.withdrawn(), 7)
    check("no interface is up" in n.xlb("status")[1], n.xlb("status")[1])
    node.run("ip", "-n", n.far, "link", "set", "eth0", "up")
    wait("the address to be back", n.announced, 7)


def taken_off(n):
    """Somebody detaches the program: it is put back, and said."""
    up(n)
    for pin in (n.bpf / "links").iterdir():
        pin.unlink()
    wait("eth0 to be said", lambda: "nobody asked" in n.said())
    check(n.status()["interfaces"][0]["attached"], "is not attached")
    check(n.said().count("nobody asked") == 1, "said more than once")


def flush_goes_on(n):
    """The unit goes on: no word of an end, and xlb0 stays in the store."""
    path = n.dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(str(path))
        s.settimeout(60)
        n.configure()
        n.start_xlbd(env={**os.environ, "NOTIFY_SOCKET": str(path),
                          "WATCHDOG_USEC": "20000000"})
        wait("the address to be announced", n.announced)
        while b"WATCHDOG_USEC=20000000" not in s.recv(4096):
            pass
        rc, _, err = n.xlb("restart", "--flush")
        check(rc == 0, err)
        # a start may take longer than the loop may be silent

        def hear():
            while (said := s.recv(4096)) == b"WATCHDOG=1" or \
                    said.startswith(b"STATUS="):
                pass
            return said
        said = [hear() for _ in range(3)]
        check([x.split(b"\n")[-1] for x in said if b"STATUS" not in x] ==
              [b"WATCHDOG_USEC=60000000", b"WATCHDOG_USEC=20000000"] and
              said[1].startswith(b"READY=1"), "the service manager hears", said)
        rc, _, err = n.xlb("stop")
        check(rc == 0, err)
        check(hear() == b"STOPPING=1", "no word of a stop")
    path.unlink()


def state_unwritable(n):
    up(n)
    kept = n.dir / "state/accepted.json"
    kept.unlink()
    kept.mkdir()
    reload_is(n, 0, "is not kept")
    check(n.announced(), "not announced")


def no_room(n):
    """More rows at once, old and new, than the maps have: refused as a whole,
    and the node goes on."""
    up(n, listen=", ".join(f"tcp/{p}" for p in range(1, 9001)))
    n.configure(listen=", ".join(f"tcp/{p}" for p in range(20001, 29001)))
    reload_is(n, 3, "make the change in two steps")
    rc, _, err = n.xlb("diff")
    check(rc == 3 and "two steps" in err, "diff:", rc, err)
    check(n.xlb("drain", "node")[0] == 0, "drain")
    wait("the withdrawal", lambda: n.withdrawn(), 3)


def killed(n):
    n.xlbd.send_signal(signal.SIGKILL)
    n.xlbd.wait()


def no_room_at_start(n):
    """The maps cannot hold what the file wants beside what is there. What must
    not be announced is withdrawn all the same."""
    up(n, listen=", ".join(f"tcp/{p}" for p in range(1, 9001)))
    killed(n)
    n.configure(listen=", ".join(f"tcp/{p}" for p in range(20001, 29001)))
    text = n.file.read_text()
    n.start_xlbd()
    wait("the refusal", lambda: n.said().count("make the change in two") > 0)
    check(n.announced(), "withdrawn, though the backends are well")
    killed(n)
    for host in (11, 12):
        text = text.replace(f"10.0.1.{host}}}", f"10.0.1.{host}, state: down}}")
    n.file.write_text(text)
    since = len(n.said())
    n.start_xlbd()
    wait("the withdrawal", lambda: n.withdrawn(), 5)
    wait("that to be said", lambda: f"address {VIP}: to be announced -> withdrawn"
         in n.said()[since:])
    check(not n.status()["addresses"][0]["wanted"], n.status()["addresses"])


def no_room_but_health(n):
    """Nor do checks through the tunnel: they go by what the maps have."""
    more = ("checks: {c: {type: tcp, port: 80, interval: 1s, timeout: 1s,"
            " rise: 1, fall: 2}}")
    ports = ", ".join(f"tcp/{p}" for p in range(1, 9001))
    node.run("ip", "-n", n.far, "addr", "add", f"{VIP}/32", "dev", "lo")
    decap = ["nsenter", f"--net=/run/netns/{n.far}", "--", node.BUILD /
             "src/xlb-decap", "--bpf-dir", str(n.bpf) + "d"]
    for ns in (n.ns, n.far):        # no checksum that a card would fill in
        node.run("nsenter", f"--net=/run/netns/{ns}", "--", "ethtool", "-K",
                 "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")
    node.run(*decap, "attach", "eth0", "--from", "10.0.1.1")
    server = n.start_far("python3", "-c", "import socket\n"
                         f"s = socket.create_server(('{VIP}', 80))\n"
                         "while True: s.accept()[0].close()")
    try:
        up(n, listen=ports, more=more, pool="check: c, ")
        killed(n)
        n.configure(listen=", ".join(f"tcp/{p}" for p in range(20001, 29001)),
                    more=more, pool="check: c, ")
        n.start_xlbd()
        wait("the refusal", lambda: "make the change in two" in n.said())
        check(n.announced(), "withdrawn, though the backends are well")
        since = len(n.said())
        server.kill()
        wait("the withdrawal", lambda: n.withdrawn(), 5)
        wait("that to be said", lambda: f"address {VIP}: to be announced -> withdrawn"
             in n.said()[since:])
    finally:
        server.kill()
        node.run(*decap, "detach", "eth0")
        node.run("ip", "-n", n.far, "addr", "del", f"{VIP}/32", "dev", "lo")


def held_back_is_not_late(n):
    """Slots that a member takes when the file first gives it a weight leave their
    owners before, soon after a start, too."""
    checks = {"pool": "check: c, ", "more": "checks: {c: {type: tcp, port: 80, "
              "via: direct, interval: 100ms, timeout: 90ms}}"}
    n.listen_far(80, 11, 12)
    up(n, backends=node.BACKENDS.replace("12}", "12, weight: 0}"), **checks)
    wait("the other one", lambda: all(b["health"] == "up" for b in
                                      n.status()["pools"][0]["backends"]))
    n.configure(**checks)
    check(n.xlb("reload")[0] == 0, n.said())
    ring = json.loads(n.xlb("rings", "--json")[1])["rings"][0]
    check(ring["prev"] > ring["slots"] / 3, ring)


def adopted_is_no_news(n):
    up(n)
    killed(n)
    before = len(n.said())
    n.start_xlbd()
    wait("it to be ready", lambda: "adopted what was" in n.said()[before:])
    said = n.said()[before:]
    check("withdrawn -> to be announced" not in said, said)
    check("detached ->" not in said, said)
    check("native, as it was found" in said, said)
    check(n.announced(), "not announced")


def entries(n):
    return n.status()["flow_table"]["entries"]


def table_grows(n):
    """A reload makes it larger, while all goes on; it never shrinks."""
    up(n, more="flow_table: {entries: 4096}")
    check(entries(n) == 4096, n.status()["flow_table"])
    n.configure(more="flow_table: {entries: 16000}")
    reload_is(n, 0)
    check(entries(n) == 16384, n.status()["flow_table"])
    check("flow_table.entries: 4096 -> 16384" in n.said(), "not said")
    check(n.announced(), "withdrawn")
    n.configure(more="flow_table: {entries: 4096}")
    reload_is(n, 3, "does not shrink: drain the node, then `xlb restart")
    rc, _, err = n.xlb("diff")
    check(rc == 3 and "does not shrink" in err, "diff:", rc, err)
    # nor by a start: the file that was accepted last stays
    killed(n)
    n.start_xlbd()
    check(entries(n) == 16384, n.status()["flow_table"])
    killed(n)
    n.configure(more="flow_table: {entries: 32768}")
    n.start_xlbd()
    wait("the larger table", lambda: entries(n) == 32768)


def diff_foretells(n):
    """What diff says moves is what a reload then moves."""
    up(n)
    text = n.file.read_text()
    n.file.write_text(text.replace("10.0.1.12}", "10.0.1.12, state: drain}"))
    rc, out, err = n.xlb("--json", "diff")
    check(rc == 0, err)
    pool = json.loads(out)["pools"][0]
    check(pool["slots_moved"] > 30000 and pool["flows_moved"] == 0, pool)
    before = len(n.said())
    reload_is(n, 0)
    check(f"pool web: {pool['slots_moved']} of 65537 slots move ("
          in n.said()[before:], pool, n.said()[before:])
    wait("LOOKUP to be counted", lambda: n.status()["flow_table"]["lookup"] ==
         pool["slots_moved"])
    wait("it to go, since no flow needs it", lambda:
         n.status()["flow_table"]["lookup"] == 0, 60)


def diff_foretells_routes(n):
    """What is withdrawn though it stays in the file, interfaces, what is refused;
    health stays where a check gets another port."""
    up(n, pool="check: c, ", more="checks: {c: {type: exec, command: "
       "[/bin/true], interval: 100ms}}")
    text = n.file.read_text()

    def changes(new):
        rc, out, err = n.xlb("diff", "-", input=new)
        check(rc == 0, rc, out, err)
        return out
    gone = f"change  address {VIP}: announced -> withdrawn: "
    few = text.replace("check: c,", "check: c, min_healthy: 3,")
    check(changes(few) == gone + "service is not ready: www\n"
          "set     pools.web.min_healthy: 1 -> 3\n", changes(few))
    check(changes(text.replace("{name: n}", "{name: n, state: drain}")) ==
          gone + "node is draining\nset     node.state: active -> drain\n")
    same = text.replace("type: exec", "type: exec, port: 81")
    check(changes(same) == "set     checks.c.port: none -> 81\n", changes(same))
    check(changes(text) == "no changes\n", changes(text))
    rc, out, err = n.xlb("diff", "--exit-code", "-", input=text.replace(
        "eth0}", "eth0, xdp: generic}, {name: eth9}"))
    check(rc == 1 and out == "set     interfaces[eth0].xdp: native -> generic\n"
          "set     interfaces[eth9]: new\n", rc, out)
    check("warning: interfaces[1].name: eth9: no such interface\n" in err, err)
    rc, out, err = n.xlb("diff", "-", input=text.replace(
        VIP, "10.0.1.1").replace("type: exec, command: [/bin/true]", "type: tcp"))
    check(rc == 3 and out == "" and "10.0.1.1" in err, rc, out, err)
    # and so it comes
    n.file.write_text(few)
    reload_is(n, 0)
    check(n.status()["addresses"][0]["reason"] == "service is not ready",
          n.status())
    check(f"change  address {VIP}: withdrawn -> announced\n" in changes(text),
          changes(text))
    check(changes(few) == "no changes\n", changes(few))


def renamed(n):
    """Another name for a pool is no other pool: its ring stays, and so do
    announcements."""
    up(n)
    rings = sorted(p.name for p in (n.bpf / "rings").iterdir())
    text = n.file.read_text()
    n.file.write_text(text.replace("{web:", "{shop:").replace(
        "pool: web}", "pool: shop}"))
    before = len(n.said())
    reload_is(n, 0)
    pool = n.status()["pools"][0]
    check(pool["name"] == "shop", pool)
    check("slots move" not in n.said()[before:], n.said()[before:])
    check(sorted(p.name for p in (n.bpf / "rings").iterdir()) == rings,
          "another ring")
    check(n.status()["flow_table"]["lookup"] == 0, "something is looked up")
    check(n.announced(), "withdrawn")


def pool_changed(n):
    """A service's flows are looked up after it got another pool; its old ring
    stays for a while, and goes."""
    before = len(n.said())
    up(n)
    n.file.write_text(n.file.read_text().replace(
        "pools: {", "pools: {other: {backends: [{name: a, address: "
        "10.0.1.12}]}, "))
    reload_is(n, 0)
    check(len(list((n.bpf / "rings").iterdir())) == 2, "two pools")
    n.file.write_text(n.file.read_text().replace("pool: web}", "pool: other}")
                      .replace("web: {backends", "old: {backends").replace(
                          f"[{node.BACKENDS}]", "[]"))
    reload_is(n, 0)
    wait("the service to be looked up", lambda:
         n.status()["flow_table"]["lookup"] > 0)
    check(len(list((n.bpf / "rings").iterdir())) == 3, "its ring went at once")
    wait("the old ring to go", lambda:
         len(list((n.bpf / "rings").iterdir())) == 2, 60)
    wait("LOOKUP to go", lambda: n.status()["flow_table"]["lookup"] == 0, 20)
    check("nobody asked" not in n.said()[before:], "taken for drift")


CASES = (
    ("communities, MED, prepending, a prefix, the fingerprint", attributes),
    ("without bgp: what was announced goes, and xlb0", bgp_goes),
    ("an interface that is not there takes no other down", interface_missing),
    ("one that goes takes no other down", interface_goes_unheard),
    ("BIRD's directory is made again", directory_goes),
    ("a restart refuses what a reload refuses", restart_refuses),
    ("what a node that serves nothing takes", first_configuration),
    ("replies that rp_filter drops are warned of", replies_filtered),
    ("ports that NAT has and the host takes are warned of", nat_ports_taken),
    ("diff opens no file that the client names", diff_opens_nothing),
    ("a reload says a warning once", warnings_once),
    ("200 reloads leave no descriptor", reloads_leave_nothing),
    ("BIRD dies", bird_dies),
    ("without an interface that is up nothing is announced", no_interface_up),
    ("a program that was taken off is put back", taken_off),
    ("a flush is no end for the service manager", flush_goes_on),
    ("what cannot be kept is said", state_unwritable),
    ("a change that the maps have no room for is refused", no_room),
    ("withdrawals need no room in the maps", no_room_at_start),
    ("health needs no room in the maps", no_room_but_health),
    ("a member that was held back is not late", held_back_is_not_late),
    ("what is adopted is no news", adopted_is_no_news),
    ("the flow table grows, and does not shrink", table_grows),
    ("what diff foretells happens", diff_foretells),
    ("diff foretells what is withdrawn, and interfaces", diff_foretells_routes),
    ("a pool that is renamed moves nothing", renamed),
    ("a service that changes its pool", pool_changed),
    ("the preflight names what does not fit, and changes nothing", preflights),
    ("a stop: no second one, no reload", stop_is_left_alone),
    ("a stop answers when nothing is left", stop_answers_last),
)


if __name__ == "__main__":
    sys.exit(node.main(CASES))
