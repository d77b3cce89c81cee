#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts that come to nothing say why and what to do, and change nothing; what a
start finds is as the one before left it."""

import json
import pathlib
import shutil
import struct
import sys
import time

import node
from node import check, run, wait

sys.path.append(str(node.SRC / "tests/fabric"))
import pinned  # noqa: E402
from facts import namespace_facts  # noqa: E402


def refused(n, status, *words):
    """A start that ends so; what it said."""
    since = len(n.said())
    p = n.start(node.BUILD / "src/xlbd", *n.options())
    check(p.wait(60) == status, "exit status", p.returncode, n.said()[since:])
    said = n.said()[since:]
    check(all(w in said for w in words), words, "is not in", said)
    return said


def no_configuration(n):
    """No file, or one that does not load, and nothing that was accepted."""
    kept = f"{n.dir}/state/accepted.json"
    nothing = ("no configuration was accepted before that could take its "
               f"place ({kept} is not there)", "configuration: none -> refused: "
               "xlbd ends: mend the file (xlb check), then start it")
    n.file.unlink(missing_ok=True)
    refused(n, 3, f"{n.file}: No such file or directory", *nothing)
    rc, _, err = n.xlb("status")
    check(rc == 4 and f"{n.file} is not there: xlbd starts with the "
          "configuration that was accepted last" in err and
          "does not load" not in err, rc, err)
    n.file.write_text("nonsense: 1\n")
    refused(n, 3, f"{n.file}:1:1: nonsense: unknown key", *nothing)
    rc, _, err = n.xlb("status")
    check(rc == 4 and f"{n.file} does not load: see xlb check\n" in err and
          "is not there" not in err, rc, err)
    n.file.chmod(0)
    p = run(*n.inside("setpriv", "--reuid=65534", "--regid=65534",
                      "--clear-groups", node.BUILD / "src/xlb", *n.options(),
                      "status"), check=False)
    n.file.chmod(0o644)
    check(f"{n.file}: Permission denied\n" in p.stderr, p.stderr)
    check(not n.bpf.exists(), "something was pinned")
    # what was accepted, but is damaged, is no help
    (n.dir / "state/accepted.json").write_text("{")
    said = refused(n, 3, f"{kept}: damaged: ")
    check("was accepted before" not in said, said)


def facts(n):
    """What is in the node's namespace, without what is the test's."""
    found = namespace_facts(Inside(n), n.ns)
    return sorted(found + [line for line in node.run(
        *n.inside("ip", "neigh")).stdout.splitlines() if "managed" in line])


class Inside:
    """As facts.py wants it."""

    def __init__(self, n):
        self.n = n

    def run(self, _ns, *argv):
        return run(*self.n.inside(*argv))


def killed(n):
    n.xlbd.kill()
    n.xlbd.wait()


def another_layout(n):
    """As a newer or an older version may have it: nothing is converted, and
    nothing changed; packets go on. What is said to do helps."""
    n.configure()
    n.start_xlbd()
    wait("the address to be announced", n.announced)
    killed(n)
    t = pinned.Tables(n.bpf)
    row = t.row("settings", 0)
    abi, = struct.unpack_from("=I", row)
    t.row("settings", 0, struct.pack("=I", abi + 1) + row[4:])
    t.close()
    link = next((n.bpf / "links").iterdir())

    def seen():
        return (sorted(n.bpf.rglob("*")), pinned.link_info(link),
                pinned.state_dump(n.bpf), n.routes.read_text())
    before = seen()
    why = (f"maps: pinned with layout {abi + 1}, this xlbd has {abi}: drain "
           "the node, then xlb restart --flush; where no xlbd runs, xlb detach "
           "--force")
    p = run(*n.inside(node.BUILD / "src/xlbd", *n.options(), "--preflight"),
            check=False)
    check(p.returncode == 1 and why in p.stderr, p.returncode, p.stderr)
    refused(n, 1, why)
    check(seen() == before, "something was changed")
    rc, out, err = n.xlb("detach", "--force")
    check((rc, out) == (0, "detached\n"), rc, out, err)
    n.start_xlbd()
    wait("the address to be announced", n.announced)


def place(n, program):
    """What a restart would start, as a package replaces it."""
    new = n.dir / "xlbd.new"
    if isinstance(program, str):
        new.write_text(program)
    else:
        shutil.copy(program, new)
    new.chmod(0o755)
    new.rename(n.dir / "xlbd")


def start_placed(n):
    n.configure()
    place(n, node.BUILD / "src/xlbd")
    n.xlbd = n.start(n.dir / "xlbd", *n.options())
    n.ready()
    wait("the address to be announced", n.announced)
    wait("the neighbours to be known", lambda: all(
        b["eligible"] for b in n.status()["pools"][0]["backends"]))
    wait("the last word of the start", lambda: "bird: busy -> synced" in
         n.said())


def held(n):
    """What no restart that is refused may touch."""
    link = next((n.bpf / "links").iterdir())
    check(n.announced(), "withdrawn")
    return (n.xlbd.poll(), n.status()["started"], sorted(n.bpf.rglob("*")),
            pinned.link_info(link), pinned.state_dump(n.bpf),
            n.routes.read_text(), n.birdc("show route table xlb4t all"))


def stays(n, status, *words):
    """A restart that is refused: names the reasons, and nothing happens."""
    before, since = held(n), len(n.said())
    rc, out, err = n.xlb("restart")
    words = (*words, f"not restarted: {n.dir}/xlbd: ")
    check((rc, out) == (status, "") and all(w in err for w in words) and
          err.endswith("; the xlbd that runs goes on\n"), rc, out, err)
    check(held(n) == before, "something was changed:", held(n), before)
    said = n.said()[since:]
    check("restart: refused (xlb restart by root): " in said and
          "->" not in said, said)
    return err


def restart_is_refused(n):
    """Of an xlbd that could not take over, before anything ends; with a file that
    does not load, too. What is said to do helps."""
    start_placed(n)
    place(n, node.BUILD / "tests/daemon/xlbd_next")
    t = pinned.Tables(n.bpf)
    abi, = struct.unpack_from("=I", t.row("settings", 0))
    t.close()
    why = (f"maps: pinned with layout {abi}, this xlbd has {abi + 1}: drain "
           "the node, then xlb restart --flush; where no xlbd runs, xlb detach "
           "--force\n")
    err = stays(n, 1, why, "/xlbd: cannot take over")
    rc, out, _ = n.xlb("--json", "restart")
    check(rc == 1 and json.loads(out)["errors"] == [
        s.removeprefix("xlb: ") for s in err.splitlines()], rc, out)
    n.file.write_text("nonsense: 1\n")
    stays(n, 1, why)
    (n.dir / "state/accepted.json").unlink()
    stays(n, 3, f"{n.file}:1:1: nonsense: unknown key", "no configuration was "
          "accepted before", "/xlbd: no configuration to start with")
    n.configure()
    (n.dir / "xlbd").unlink()
    stays(n, 1, "/xlbd: No such file or directory")
    place(n, node.BUILD / "tests/daemon/xlbd_next")
    rc, out, err = n.xlb("restart", "--flush")
    check((rc, out) == (0, "restarted\n"), rc, out, err)
    wait("the address to be announced", n.announced)
    t = pinned.Tables(n.bpf)
    check(struct.unpack_from("=I", t.row("settings", 0)) == (abi + 1,))
    t.close()
    place(n, node.BUILD / "src/xlbd")
    stays(n, 1, f"pinned with layout {abi + 1}, this xlbd has {abi}: ")


def goes_on(n, said):
    """A restart into the one that can, with what it says; no route moves."""
    started, since = n.status()["started"], len(n.said())
    route = n.birdc("show route table xlb4t all")
    rc, out, err = n.xlb("restart")
    check((rc, out, err) == (0, "restarted\n", ""), rc, out, err)
    check(n.status()["started"] != started and n.announced() and
          n.birdc("show route table xlb4t all") == route, "withdrawn")
    wait(f"it to say {said}", lambda: said in n.said()[since:])


def restart_goes_on(n):
    """Where a start makes do with the file that was accepted last, none is
    refused."""
    start_placed(n)
    goes_on(n, "daemon: starting -> serving")
    n.file.write_text("nonsense: 1\n")
    goes_on(n, "the file does not load: the one accepted last is used")
    n.configure(more="maglev: {table_size: 251}")
    goes_on(n, "the file is refused: the one accepted last is used")
    n.configure(more="flow_table: {entries: 1024}")
    goes_on(n, "the file is refused: the one accepted last is used")
    n.configure()
    goes_on(n, "daemon: starting -> serving")


def restart_is_asked_for(n):
    """One at a time; xlbd serves meanwhile, and a stop comes first."""
    start_placed(n)
    place(n, f"#!/bin/sh\necho $$ >{n.dir}/asked\nexec sleep 1000\n")
    first = n.xlb_start("restart")
    wait("the question", lambda: (n.dir / "asked").exists() and
         (n.dir / "asked").read_text())
    rc, _, err = n.xlb("restart")
    check(rc == 1 and err == "xlb: xlbd is asked to restart "
          "already\n", rc, err)
    check(n.xlb("reload")[0] == 0 and first.poll() is None)
    check(n.xlb("stop")[0] == 0)
    check(first.wait(60) == 1, first.returncode)
    check(first.stderr.read() ==
          "xlb: xlbd ended before it restarted\n")
    pid = int((n.dir / "asked").read_text())
    wait("it to be ended", lambda: not pathlib.Path(f"/proc/{pid}").exists())


def detached_after_a_death(n):
    """Rules and routes of the checks, the program, GRO, all that is pinned, and
    neighbours are not kept fresh."""
    gro = n.inside("ethtool", "-k", "eth0")
    run(*n.inside("ip", "neigh", "flush", "all"))

    def on():
        return "generic-receive-offload: on" in run(*gro).stdout
    run(*n.inside("ethtool", "-K", "eth0", "gro", "on"))
    clean = facts(n)
    n.configure(interfaces="{name: eth0, xdp: generic}", pool="check: c, ",
                more="checks: {c: {type: tcp}}")
    n.start_xlbd()
    wait("the rules of the checks", lambda: "30828" in run(
        *n.inside("ip", "rule")).stdout)
    killed(n)
    left = facts(n)
    check(any(" managed " in line for line in left) and n.bpf.exists() and
          not on(), "nothing was left")
    rc, out, err = n.xlb("detach", "--force")
    check((rc, out) == (0, "detached\n"), rc, out, err)
    check(facts(n) == clean, sorted(set(facts(n)) ^ set(clean)))
    check(not n.bpf.exists() and on(), "pins, or GRO is off")
    check("xdp" not in run(*n.inside("ip", "link", "show", "eth0")).stdout)


SERVER = """
import http.server, os, sys, threading, time
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        while not os.path.exists(sys.argv[1] + self.server.server_address[0]):
            time.sleep(0.02)
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
for a in sys.argv[2:]:
    s = http.server.ThreadingHTTPServer((a, 80), H)
    threading.Thread(target=s.serve_forever).start()
"""


def serving(n, *addresses):
    """Servers that answer once answers(n, address)."""
    for a in addresses:
        run("ip", "-n", n.far, "addr", "replace", f"{a}/24", "dev", "eth0")
    return n.start_far("/usr/bin/python3", "-c", SERVER, f"{n.dir}/answers-",
                       *addresses)


def answers(n, address):
    (n.dir / f"answers-{address}").touch()


def rows(n):
    return {b["name"]: b for b in n.status()["pools"][0]["backends"]}


CHECK = "checks: {c: {type: http, via: direct, interval: %s, timeout: %s}}"


def the_dead_stay_dead(n):
    """Verdicts outlive xlbd, however it ends: no backend is unknown for a while,
    and none that is down gets a slot."""
    server = serving(n, "10.0.1.11")
    answers(n, "10.0.1.11")
    try:
        n.configure(pool="check: c, ", more=CHECK % ("500ms", "450ms"))
        n.start_xlbd()
        wait("both to be known", lambda: [b["health"] for b in rows(
            n).values()] == ["up", "down"])
        wait("the address to be announced", n.announced)
        want, kept = pinned.state_dump(n.bpf), rows(n)
        check(kept["b"]["slots"] == 0 and kept["b"]["reason"] ==
              "connection refused", kept)
        for how in ("kill", "restart", "reload"):
            since = len(n.said())
            if how == "kill":
                killed(n)
                n.start_xlbd()
            else:
                check(n.xlb(how)[0] == 0, n.said()[since:])
            got = rows(n)
            for b in "ab":
                for key in ("health", "since", "slots", "eligible"):
                    check(got[b][key] == kept[b][key], how, b, key, got[b])
            time.sleep(0.5)     # some probes
            said = n.said()[since:]
            check("unknown ->" not in said and "-> down" not in said and
                  "-> up" not in said and "slots move" not in said, said)
            check(not pinned.differences(want, pinned.state_dump(n.bpf)), how)
    finally:
        server.kill()
        server.wait()


def a_new_one_waits(n):
    """No flow goes to a backend of which nothing is known yet."""
    server = serving(n, "10.0.1.11", "10.0.1.12", "10.0.1.13")
    answers(n, "10.0.1.11")
    answers(n, "10.0.1.12")
    try:
        n.configure(pool="check: c, ", more=CHECK % ("5s", "5s"))
        n.start_xlbd()
        wait("both to be up", lambda: all(
            b["eligible"] for b in rows(n).values()))
        n.configure(pool="check: c, ", more=CHECK % ("5s", "5s"), backends=(
            node.BACKENDS + ", {name: c, address: 10.0.1.13}"))
        check(n.xlb("reload")[0] == 0, n.said())
        end = time.monotonic() + 1
        while time.monotonic() < end:
            c = rows(n)["c"]
            check((c["health"], c["slots"], c["eligible"], c["reason"]) ==
                  ("unknown", 0, False, "not checked yet"), c)
            check("10.0.1.13" not in pinned.state_dump(n.bpf)["rings"]["web"][
                "slots"], "it has slots")
        answers(n, "10.0.1.13")
        wait("its first pass", lambda: rows(n)["c"]["health"] == "up")
        wait("its slots", lambda: rows(n)["c"]["slots"] > 20000)
    finally:
        server.kill()
        server.wait()


CASES = (
    ("a start without a configuration", no_configuration),
    ("maps of another layout are refused, and left as they are",
     another_layout),
    ("a restart into what cannot take over is refused", restart_is_refused),
    ("one that makes do with what was accepted goes on", restart_goes_on),
    ("one restart at a time, and a stop before it", restart_is_asked_for),
    ("what a killed one left is taken away", detached_after_a_death),
    ("verdicts outlive a death, a restart and a reload", the_dead_stay_dead),
    ("a new backend gets no flow before its first pass", a_new_one_waits),
)


if __name__ == "__main__":
    sys.exit(node.main(CASES))
