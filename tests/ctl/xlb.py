#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""xlb against a daemon that says what it is told to: exit statuses, JSON, text,
live view, and that usage and manual know the same commands.

UPDATE=1 rewrites tests/golden/status/*.txt: read the diff.
"""

import contextlib
import difflib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

TOP = pathlib.Path(os.environ.get("top_srcdir", pathlib.Path(__file__).parents[2]))
XLB = pathlib.Path(os.environ.get("top_builddir", ".")).resolve() / "src/xlb"
GOLDEN = TOP / "tests/golden/status"
CLEAN = {"PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8"}
TESTS = []


def test(fn):
    TESTS.append(fn)
    return fn


def equal(got, want, what=""):
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


class Daemon:
    """Answers each request with what `answers` has for its command: a reply, or
    a function of the arguments; None: closes without one."""

    def __init__(self, directory, answers):
        self.requests = []
        self.answers = answers
        self.sock = socket.socket(socket.AF_UNIX)
        self.path = f"{directory}/xlb.sock"
        self.sock.bind(self.path)
        self.sock.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                client, _ = self.sock.accept()
            except OSError:
                return
            with client, client.makefile("rwb") as f:
                request = json.loads(f.readline())
                self.requests.append(request)
                answer = self.answers.get(request["command"], reply(1))
                if callable(answer):
                    answer = answer(request["args"])
                if request["command"] == "stop":
                    # as a daemon that takes its time to end
                    threading.Timer(0.5, lambda: pathlib.Path(
                        self.path).unlink(missing_ok=True)).start()
                with contextlib.suppress(BrokenPipeError):
                    if isinstance(answer, bytes):
                        f.write(answer)
                    elif answer is not None:
                        f.write(json.dumps(answer).encode() + b"\n")

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()
        self.thread.join()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def reply(status=0, errors=(), warnings=(), **result):
    return {"schema": 1, "exit": status, "errors": list(errors),
            "warnings": list(warnings), "result": result}


@contextlib.contextmanager
def daemon(**answers):
    with tempfile.TemporaryDirectory(prefix="xlb-ctl.") as d:
        server = Daemon(d, answers)
        server.dir = d
        try:
            yield server
        finally:
            server.close()


SEEN = {}       # exit statuses by command, of all that was run


def xlb(*args, run_dir="/nonexistent", stdin=""):
    r = subprocess.run([XLB, "--run-dir", run_dir, *args], input=stdin,
                       capture_output=True, text=True, timeout=120,
                       env=CLEAN, check=False)
    rest = list(args)
    while rest and rest[0].startswith("--"):    # all but --json have a value
        rest = rest[1 if rest[0] == "--json" else 2:]
    if rest:
        SEEN.setdefault(rest[0], set()).add(r.returncode)
    return r


def expect(r, status, out=None, err=None):
    equal(r.returncode, status, f"exit status of {r.args} ({r.stderr})")
    if out is not None:
        equal(r.stdout, out, "stdout")
    if err is not None:
        equal(r.stderr, err, "stderr")


CONF = """interfaces: [{name: eth0}]
pools:
  web: {backends: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]}
services:
  - {name: www, addresses: [203.0.113.1], listen: [tcp/80], pool: web}
"""
BGP = "bgp: {local_as: 64512, neighbors: [{address: 192.0.2.9, as: 64500}]}\n"


# Exit statuses: command line, the daemon's answer (None: there is no daemon),
# exit status, a piece of standard error.
GOOD, BAD = "GOOD", "BAD"
STREAM = (TOP / "tests/golden/events/lines.json").read_bytes()
BEGUN = b'{"schema":1,"exit":0,"errors":[],"warnings":[],"result":{}}\n'
EXITS = [
    (["events"], BEGUN + STREAM, 1, "xlb: xlbd ended\n"),
    (["events", "--json"], BEGUN + STREAM[:-9], 1, "is not understood"),
    (["events", "--count", "7"], BEGUN + STREAM, 0, ""),
    (["events", "--count=8"], BEGUN + STREAM, 1, "xlb: xlbd ended\n"),
    (["events"], reply(1, ["no service is named x"]), 1, "no service is na"),
    *((([c], None, 4, "xlb: xlbd is not running")) for c in
      "services pools backends neighbors bgp stats rings flows".split()),
    (["lookup", "tcp", "192.0.2.7:1", "203.0.113.1:80"], None, 4,
     "xlb: xlbd is not running"),
    (["lookup", "tcp", "192.0.2.7:1", "203.0.113.1:80"],
     reply(1, ["no service matches"]), 1, "no service matches"),
    (["lookup", "tcp", "192.0.2.7:1"], None, 2, "lookup wants an argument"),
    (["flows", "--client", "x"], None, 2, "--client: x is not an address"),
    (["lookup", "sctp", "192.0.2.7:1", "203.0.113.1:80"], None, 2,
     "lookup: sctp is neither tcp nor udp"),
    (["lookup", "tcp", "192.0.2.7", "203.0.113.1:80"], None, 2,
     "lookup: 192.0.2.7 is neither ADDRESS:PORT nor [ADDRESS]:PORT"),
    (["lookup", "tcp", "192.0.2.7:1", "[2001:db8::1]:80"], None, 2,
     "are of different families"),
    (["stats"], reply(1, ["the maps cannot be read"]), 1, "the maps cannot"),
    (["stats", "--rate"], reply(1, ["permission denied"]), 1, "permission"),
    (["neighbors"], reply(1, ["xlbd is starting"]), 1, "xlbd is starting"),
    (["pools", "web"], None, 2, "pools: too many arguments"),
    (["bgp", "-w"], None, 2, "bgp has no option -w"),
    (["events"], None, 4, "xlb: xlbd is not running"),
    (["events", "--count"], None, 2, "events --count wants an argument: N"),
    (["events", "--count", "0"], None, 2, "--count: 0 is not in 1..1000000000"),
    (["events", "--count", "1x"], None, 2, "--count: 1x is not in 1..10000"),
    (["events", "--sample", "-1"], None, 2, "--sample: -1 is not in 1..104857"),
    (["events", "--count=1", "--count=2"], None, 2, "--count is given twice"),
    (["events", "--reason", "no_servce"], None, 2, "did you mean no_service?"),
    (["events", "--reason", ""], None, 2, "--reason: none is named"),
    (["events", "--watch"], None, 2, "events has no option --watch"),
    (["status", "--count", "1"], None, 2, "status has no option --count"),
    (["events", "www"], None, 2, "events: too many arguments"),
    ([], None, 2, "usage: xlb"),
    (["--help"], None, 0, ""),
    (["-h"], None, 0, ""),
    (["--version"], None, 0, ""),
    (["--nonsense"], None, 2, "unrecognized option"),
    (["--config"], None, 2, "requires an argument"),
    (["nonsense"], None, 2, "xlb: unknown command: nonsense, see xlb help"),
    (["stauts"], None, 2, "did you mean status?"),
    (["version"], None, 0, ""),
    (["version", "x"], None, 2, "too many arguments"),
    (["help"], None, 0, ""),
    (["help", "drain"], None, 0, ""),
    (["help", "nonsense"], None, 2, "unknown command: nonsense"),
    (["check", GOOD], None, 0, "warning: "),
    (["check", BAD], None, 3, "bad.yaml:3:69: pools.web.backends[1].address"),
    (["check", "/nonexistent"], None, 3, "/nonexistent: No such file"),
    (["check", GOOD, GOOD], None, 2, "too many arguments"),
    (["check", "-w"], None, 2, "check has no option -w"),
    (["check", "--", "-w"], None, 3, "-w: No such file"),
    (["check", "--config", "x"], None, 2, "--config goes before the command"),
    (["check", "--config=x"], None, 2, "--config goes before the command"),
    (["diff", "/nonexistent"], None, 3, "/nonexistent: No such file"),
    (["diff", GOOD], None, 4, "xlbd is not running: "),
    (["diff", GOOD], reply(added=[], changed=[], removed=[], pools=[]), 0, ""),
    (["diff", "--exit-code", GOOD],
     reply(added=[], changed=[], removed=[], pools=[]), 0, ""),
    (["diff", GOOD], reply(added=["vip 1"], changed=[], removed=[], pools=[]),
     0, ""),
    (["diff", "--exit-code", GOOD],
     reply(added=["vip 1"], changed=[], removed=[], pools=[]), 1, ""),
    (["diff", "--exit-code", GOOD],
     reply(added=[], changed=[], removed=["vip 1"], pools=[]), 1, ""),
    (["diff", "--json", "--exit-code", GOOD],
     reply(added=[], changed=["vip 1"], removed=[], pools=[]), 1, ""),
    (["diff", GOOD], reply(3, ["f:1:1: wrong"]), 3, "f:1:1: wrong\n"),
    (["reload"], None, 4, "xlbd is not running: "),
    (["reload"], reply(), 0, ""),
    (["reload"], reply(0, [], ["warning: no BIRD"]), 0,
     "xlb: warning: no BIRD\n"),
    (["reload"], reply(1, ["eth9: no such interface"]), 1,
     "xlb: eth9: no such interface\n"),
    (["reload"], reply(3, ["x:1:2: a", "x:3:4: b"]), 3,
     "x:1:2: a\nx:3:4: b\n"),
    (["reload", "now"], None, 2, "too many arguments"),
    (["stop"], None, 4, "xlbd is not running: "),
    (["stop"], reply(), 0, ""),
    (["stop"], lambda args: None, 1, "xlbd ended before it answered"),
    (["stop"], b"{}\n", 1, "not understood"),
    (["stop"], b'{"schema":2,"exit":0}\n', 1, "not understood"),
    (["restart"], None, 4, "xlbd is not running: "),
    (["restart"], reply(1, ["xlbd is stopping"]), 1, "xlbd is stopping"),
    (["restart"], reply(3, ["x:1:2: a", "not restarted"]), 3,
     "x:1:2: a\nxlb: not restarted\n"),
    (["detach"], None, 2, "add --force"),
    (["detach"], reply(), 2, "add --force"),
    (["status"], None, 4, "xlbd is not running: "),
    (["status"], reply(1, ["xlbd is starting"]), 1, "xlbd is starting"),
    (["drain"], None, 2, "drain wants an argument: POOL/BACKEND|node"),
    (["drain", "web"], None, 2, "web is neither POOL/BACKEND nor node"),
    (["drain", "web/"], None, 2, "neither"),
    (["drain", "/a"], None, 2, "neither"),
    (["drain", "a/b/c"], None, 2, "neither"),
    (["drain", "web/a", "web/b"], None, 2, "too many arguments"),
    (["drain", "--wait", "web/a"], None, 4, "xlbd is not running: "),
    (["drain", "--wait", "web/a"], reply(1, ["no pool is named web"]), 1,
     "xlb: no pool is named web\n"),
    (["drain", "--wait", "web"], None, 2, "neither"),
    (["drain", "web/a"], None, 4, "xlbd is not running: "),
    (["drain", "web/a"], reply(), 0, ""),
    (["drain", "node"], reply(1, ["permission denied"]), 1,
     "xlb: permission denied\n"),
    (["undrain", "node"], reply(), 0, ""),
    (["undrain", "--wait", "node"], None, 4, "xlbd is not running: "),
    (["undrain", "-w", "node"], None, 2, "undrain has no option -w"),
    (["undrain"], None, 2, "undrain wants an argument: POOL/BACKEND|node"),
    (["undrain", "web/a"], reply(1, ["no"]), 1, "xlb: no\n"),
    (["undrain", "web/a"], None, 4, "xlbd is not running: "),
    (["fingerprint"], None, 4, "xlbd is not running: "),
    (["fingerprint"], reply(web="0123456789abcdef"), 0, ""),
    *((([c], reply(1, ["no"]), 1, "xlb: no\n")) for c in
      "diff services pools backends rings flows bgp fingerprint stop".split()),
    *((([c, "a", "b", "c", "d"], None, 2, f"{c}: too many arguments")) for c in
      "diff restart stop status stats services backends rings flows neighbors "
      "fingerprint bird-config".split()),
    (["bird-config"], None, 3, "/etc"),
    (["import-keepalived"], None, 2, "import-keepalived wants an argument: FILE"),
    (["import-keepalived", "/nonexistent"], None, 3,
     "/nonexistent: No such file"),
    (["import-keepalived", "/dev/null"], None, 0, ""),
    (["import-keepalived", "--json", "/dev/null"], None, 0, ""),
]


@test
def output_that_goes_nowhere():
    for args in (["version"], ["help"], ["--version"], ["--help"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            p = subprocess.run([XLB, *args], stdout=full, env=CLEAN, text=True,
                               stderr=subprocess.PIPE, timeout=120, check=False)
        equal((p.returncode, p.stderr),
              (1, "xlb: standard output: No space left on device\n"), args)


@test
def exit_statuses():
    with tempfile.TemporaryDirectory(prefix="xlb-ctl.") as d:
        good, bad = f"{d}/good.yaml", f"{d}/bad.yaml"
        pathlib.Path(good).write_text(CONF)
        pathlib.Path(bad).write_text(CONF.replace("10.0.0.2", "10.0.0"))
        name = {GOOD: good, BAD: bad}
        commands = usage_commands()
        for args, answer, status, err in EXITS:
            args = [name.get(a, a) for a in args]
            if args[:1] in (["bird-config"], ["diff"]) and len(args) == 1:
                args = ["--config", "/etc/xlb/no-such.yaml" if args[0][0] == "b"
                        else good, *args]
            if answer is None:
                r = xlb(*args)
            else:
                command = next(a for a in args if a in commands)
                if command in ("services", "pools", "backends", "bgp"):
                    command = "status"      # parts of which they show
                with daemon(**{command: answer}) as s:
                    r = xlb(*args, run_dir=s.dir)
            equal(r.returncode, status, f"{args}: {r.stderr}")
            if err not in r.stderr or (err == "" and r.stderr != ""):
                raise AssertionError(f"{args}: {r.stderr!r} lacks {err!r}")


@test
def check_counts_or_says_where():
    with tempfile.TemporaryDirectory(prefix="xlb-ctl.") as d:
        f = f"{d}/xlb.yaml"
        pathlib.Path(f).write_text(CONF)
        r = xlb("check", f)
        expect(r, 0, f"{f}: ok: 1 service, 1 pool, 2 backends\n")
        warnings = r.stderr
        r = xlb("--config", f, "check")
        expect(r, 0, f"{f}: ok: 1 service, 1 pool, 2 backends\n", warnings)
        j = json.loads(xlb("check", "--json", f).stdout)
        equal([j[k] for k in ("schema", "ok", "services", "pools", "backends",
                              "errors")], [1, True, 1, 1, 2, []], "json")
        equal(len(j["warnings"]), len(warnings.splitlines()), "warnings")
        r = xlb("check", "-", stdin=CONF + "nonsense: 1\nnod: {}\n")
        expect(r, 3, "")
        equal([line.split(" ")[0] for line in r.stderr.splitlines()],
              ["-:6:1:", "-:7:1:"], r.stderr)
        j = json.loads(xlb("--json", "check", "-", stdin="nonsense: 1\n").stdout)
        equal((j["ok"], j["errors"][0]["line"], j["errors"][0]["column"]),
              (False, 1, 1), "json")
        key = f"maglev: {{key_file: {d}/key}}\n"
        r = xlb("check", "-", stdin=CONF + key)
        expect(r, 0, "-: ok: 1 service, 1 pool, 2 backends\n",
               f"-: warning: maglev.key_file: {d}/key: No such file or directory: "
               "make it before a reload: `head -c 16 /dev/urandom "
               f">{d}/key && chmod 600 {d}/key`\n")
        pathlib.Path(f"{d}/key").write_text("k" * 16)
        expect(xlb("check", "-", stdin=CONF + key), 0, None, "")
        os.mkdir(f"{d}/xlb.d")
        pathlib.Path(f"{d}/xlb.d/more.yaml").write_text(
            "pools: {more: {backends: [{name: c, address: 10.0.0.3}]}}\n")
        r = xlb("check", f)
        equal(r.stdout, f"{f}: ok: 1 service, 2 pools, 3 backends\n")


@test
def diff_sends_the_texts_and_prints_the_plan():
    answer = reply(added=["backend 10.0.0.2"], changed=["ring web"],
                   removed=["vip 203.0.113.9"],
                   pools=[{"name": "web", "slots": 1000, "slots_moved": 250,
                           "flows_moved": None},
                          {"name": "api", "slots": 1000, "slots_moved": 0,
                           "flows_moved": None}],
                   settings=[{"key": "checks.c.interval", "old": "1s", "new": "2s"},
                             {"key": "checks.d", "old": None, "new": ""},
                             {"key": "checks.e", "old": "", "new": None},
                             {"key": "checks.c.host", "old": None, "new": "x"}])
    settings = ("set     checks.c.interval: 1s -> 2s\nset     checks.d: new\n"
                "set     checks.e: gone\nset     checks.c.host: none -> x\n")
    with tempfile.TemporaryDirectory(prefix="xlb-ctl.") as d, \
            daemon(diff=answer) as s:
        f = f"{d}/xlb.yaml"
        pathlib.Path(f).write_text(CONF)
        os.mkdir(f"{d}/xlb.d")
        pathlib.Path(f"{d}/xlb.d/more.yaml").write_text("# more\n")
        expect(xlb("diff", f, run_dir=s.dir), 0,
               "add     backend 10.0.0.2\n"
               "change  ring web\n"
               "remove  vip 203.0.113.9\n"
               "move    pool web: 250 of 1000 slots (25.0 %)\n" + settings, "")
        equal(s.requests[-1]["args"]["sources"],
              [{"name": f, "text": CONF},
               {"name": f"{d}/xlb.d/more.yaml", "text": "# more\n"}])
        r = xlb("diff", "--json", f, run_dir=s.dir)
        equal(json.loads(r.stdout), {"schema": 1, **answer["result"]})
        answer["result"]["pools"][0]["flows_moved"] = 70
        r = xlb("diff", f, run_dir=s.dir)
        equal(r.stdout.splitlines()[3],
              "move    pool web: 250 of 1000 slots (25.0 %), about 70 live flows")
        answer["result"].update(added=[], changed=[], removed=[], pools=[])
        expect(xlb("diff", "--exit-code", f, run_dir=s.dir), 1, settings, "")
        answer["result"]["settings"] = []
        expect(xlb("diff", "-", stdin=CONF, run_dir=s.dir), 0, "no changes\n",
               "")
        equal(s.requests[-1]["args"]["sources"], [{"name": "-", "text": CONF}])


@test
def actions_say_what_they_did():
    with daemon(reload=reply(), stop=reply(), drain=reply(), undrain=reply(),
                fingerprint=reply(web="0123456789abcdef", a="00000000000000ff")
                ) as s:
        expect(xlb("reload", run_dir=s.dir), 0, "reloaded\n", "")
        expect(xlb("drain", "web/a", run_dir=s.dir), 0, "", "")
        equal(s.requests[-1], {"schema": 1, "command": "drain",
                               "args": {"pool": "web", "backend": "a"}})
        expect(xlb("undrain", "node", run_dir=s.dir), 0, "", "")
        equal(s.requests[-1], {"schema": 1, "command": "undrain",
                               "args": {"node": True}})
        expect(xlb("fingerprint", run_dir=s.dir), 0,
               "web  0123456789abcdef\na    00000000000000ff\n", "")
        equal(json.loads(xlb("fingerprint", "--json", run_dir=s.dir).stdout),
              {"schema": 1, "web": "0123456789abcdef",
               "a": "00000000000000ff"})
        equal(json.loads(xlb("--json", "reload", run_dir=s.dir).stdout),
              {"schema": 1, "errors": [], "warnings": []})
    # it is gone when that is said
    for flags, out in (((), "stopped\n"), (("--json",), None)):
        with daemon(stop=reply()) as s:
            expect(xlb("stop", *flags, run_dir=s.dir), 0, out, "")
            equal(os.path.exists(s.path), False)
            expect(xlb("fingerprint", run_dir=s.dir), 4, "")
    with daemon(reload=reply(1, ["a"], ["warning: b"])) as s:
        r = xlb("reload", "--json", run_dir=s.dir)
        expect(r, 1, None, "xlb: a\nxlb: warning: b\n")
        equal(json.loads(r.stdout), {"schema": 1, "errors": ["a"],
                                     "warnings": ["warning: b"]})
    for args in (["fingerprint"], ["flows"], ["status"], ["stats"], ["events"],
                 ["lookup", "tcp", "192.0.2.7:1", "192.0.2.8:80"]):
        with daemon(**{args[0]: reply(1, ["no"])}) as s:
            r = xlb(*args, "--json", run_dir=s.dir)
            expect(r, 1, None, "xlb: no\n")
            equal(json.loads(r.stdout),
                  {"schema": 1, "errors": ["no"], "warnings": []}, args)
            expect(xlb(*args, run_dir=s.dir), 1, "", "xlb: no\n")
    r = xlb("version")
    equal(json.loads(xlb("version", "--json").stdout)["version"],
          r.stdout.split()[1], "version")


@test
def what_is_refused_here_is_json_too():
    with tempfile.TemporaryDirectory(prefix="xlb-ctl.") as d:
        bad = f"{d}/bad"
        pathlib.Path(bad).write_bytes(b"virtual_server {\n\xff")
        for status, *args in ((3, "diff", bad), (3, "diff", "/nonexistent"),
                              (3, "--config", bad, "bird-config"),
                              (3, "import-keepalived", bad),
                              (3, "import-keepalived", "/nonexistent")):
            r = xlb(*args, "--json")
            equal(r.returncode, status, args)
            j = json.loads(r.stdout)
            equal(set(j), {"schema", "errors", "warnings"}, args)
            equal([*j["errors"], *j["warnings"]], r.stderr.splitlines(), args)
            equal(len(j["errors"]) > 0, True, args)
            equal(xlb(*args).stdout, "", "no JSON that nobody asked for")
    with daemon(status=reply()) as s:
        r = xlb("detach", "--force", "--json", run_dir=s.dir)
        expect(r, 1, None, "xlb: xlbd is running: use xlb stop\n")
        equal(json.loads(r.stdout), {"schema": 1, "warnings": [], "errors": [
            "xlbd is running: use xlb stop"]})


class Draining:
    """A daemon with a backend whose flows end, some at each look."""

    def __init__(self, *left, health="up", state="drain", reason=""):
        self.left, self.looks = list(left), 0
        self.backend = {"name": "a", "address": "10.0.0.1", "state": state,
                        "health": health, "reason": reason, "eligible": False}
        self.node = {"state": "drain", "phase": "graceful_shutdown"}
        self.packets = 1000

    def status(self, _):
        return reply(**self.node, pools=[{"name": "web", "backends":
                                          [self.backend]}],
                     addresses=[{"address": "192.0.2.1", "in_bird": False}],
                     services=[{"ready": True, "addresses": ["192.0.2.1"]}],
                     bird={})

    def flows(self, _):
        n = self.left[min(self.looks, len(self.left) - 1)]
        self.looks += 1
        if n is None:
            return reply(1, ["the flows are being counted for another one"])
        return reply(ages={"10s": n}, backends=[
            {"address": "10.0.0.2", "flows": 77, "idle": 0, "ended": 0},
            {"address": "10.0.0.1", "flows": n + 5, "idle": 1, "ended": 5}])

    def stats(self, _):
        return reply(reasons={"forward": self.packets, "no_service": 9})

    def answers(self):
        return {"drain": reply(), "undrain": reply(), "status": self.status,
                "flows": self.flows, "stats": self.stats}


@test
def drain_waits_until_no_flow_is_left():
    d = Draining(40, None, 20, 0)
    with daemon(**d.answers()) as s:
        r = xlb("drain", "--wait", "web/a", run_dir=s.dir)
        equal(r.returncode, 0, r.stderr)
        equal(re.fullmatch("web/a: no flows are left, after ([3-9]|[1-9][0-9]) s\n",
                           r.stdout) is not None, True, r.stdout)
        equal(r.stderr, "draining web/a: 40 flows left, 1 of them idle\n",
              "a line a minute where there is no terminal")
        equal(d.looks, 4, "looks")
        d.looks = 3
        j = json.loads(xlb("drain", "--wait", "web/a", "--json",
                           run_dir=s.dir).stdout)
        equal((j["schema"], j["object"], j["done"], j["flows"]),
              (1, "web/a", True, 0), j)
        d.looks = 0
        status, text = on_terminal(["--run-dir", s.dir, "drain", "--wait",
                                    "web/a"], 24, 80)
        equal(status, 0)
        frames = text.split("\r\033[K")
        equal(frames[1], "draining web/a: 40 flows left, 1 of them idle")
        equal(re.fullmatch("draining web/a: 20 flows left, 1 of them idle, "
                           "[0-9.]+/s end, about [0-9]+ s", frames[3]) is not
              None, True, frames)
        equal(frames[-1].startswith("web/a: no flows are left, after "), True,
              frames)
    # the last one, and never "about 0 s"
    d = Draining(100000, None, 1, 0)
    with daemon(**d.answers()) as s:
        _, text = on_terminal(["--run-dir", s.dir, "drain", "--wait", "web/a"],
                              24, 80)
        equal(re.search("web/a: 1 flow left, 1 of them idle, [0-9]+/s end, "
                        "about 1 s\\b", text) is not None, True, text)
    d = Draining(3, health="down", reason="timeout")
    with daemon(**d.answers()) as s:
        r = xlb("drain", "--wait", "web/a", run_dir=s.dir)
        equal(r.returncode, 0, r.stderr)
        equal(re.fullmatch("web/a: it is down: timeout, after [0-9]+ s\n",
                           r.stdout) is not None, True, r.stdout)
    d = Draining(3, state="active")
    with daemon(**d.answers()) as s:
        expect(xlb("drain", "--wait", "web/a", run_dir=s.dir), 1, "",
               "xlb: web/a: somebody else has changed its state, or removed "
               "it\n")


@test
def a_drain_stays_when_nobody_waits_any_more():
    d = Draining(40)
    with daemon(**d.answers()) as s:
        for args in ([], ["--json"]):
            t = Terminal(["--run-dir", s.dir, "drain", "--wait", "web/a",
                          *args], 24, 80)
            try:
                t.until(lambda text: "draining web/a: 40" in text)
                os.write(t.fd, b"\x03")         # the terminal's Ctrl-C
                equal(t.proc.wait(60), 1, "exit status")
                text = t.read(60)
                equal("interrupted: web/a stays drained, until xlb undrain "
                      "web/a\n" in text.split("\r\033[K")[-1], True, text)
                equal('"done": false' in text, bool(args), text)
            finally:
                t.close()
        equal({r["command"] for r in s.requests}, {"drain", "status",
                                                   "flows"})


@test
def a_node_is_drained_when_no_packet_comes():
    d = Draining(4, 3, 0, 0, 0)
    def stats(_):
        if d.looks == 2:
            d.node["phase"] = "withdrawn"
        d.packets += 1000 if d.looks < 3 else 0
        return reply(reasons={"forward": d.packets})
    answers = d.answers()
    answers["stats"] = stats
    with daemon(**answers) as s:
        r = xlb("drain", "--wait", "node", run_dir=s.dir)
        equal(r.returncode, 0, r.stderr)
        equal(r.stdout.startswith("node: no packets come any more, after "),
              True, r.stdout)
        equal(r.stderr, "draining node: still announced, with 65535:0, 4 "
              "flows in the last 10 s\n")
        equal(d.looks, 4, "not while packets come")


@test
def undrain_waits_until_it_serves():
    d = Draining(0, state="active", reason="timeout")
    d.node = {"state": "active", "phase": "serving"}
    answers = d.answers()

    def later(args):
        r = json.loads(json.dumps(d.status(args)))
        if d.looks > 0:         # it has been looked at once since
            d.backend.update(eligible=True)
        d.looks += any(x["command"] == "undrain" for x in s.requests)
        return r
    answers["status"] = later
    with daemon(**answers) as s:
        r = xlb("undrain", "--wait", "web/a", run_dir=s.dir)
        equal((r.returncode, r.stderr), (0, "waiting for web/a: timeout\n"))
        equal(r.stdout.startswith("web/a: takes new flows, after "), True,
              r.stdout)

    def announced(args):
        r = d.status(args)
        r["result"]["addresses"][0]["in_bird"] = d.looks > 1
        d.looks += 1
        return r
    answers["status"] = announced
    with daemon(**answers) as s:
        d.looks = 0
        r = xlb("undrain", "--wait", "node", run_dir=s.dir)
        equal(r.returncode, 0, r.stderr)
        equal("1 of 1 addresses are announced" in r.stdout and d.looks == 3,
              True, r.stdout)


@test
def detach_is_for_when_there_is_no_daemon():
    with daemon(status=reply()) as s:
        expect(xlb("detach", "--force", run_dir=s.dir), 1, "",
               "xlb: xlbd is running: use xlb stop\n")
    with tempfile.TemporaryDirectory(prefix="xlb-ctl.") as d:
        r = xlb("--bpf-dir", f"{d}/none", "detach", "--force")
        equal(r.returncode, 1, "nothing there")
        equal("none" in r.stderr, True, r.stderr)


@test
def restart_waits_for_another_daemon():
    starts = ["2026-01-01T00:00:00.000Z"]
    asked = []

    def restart(args):
        asked.append(args)
        # the old one answers a little longer, as it does while it ends
        threading.Timer(0.5, lambda: starts.append(
            "2026-01-01T00:00:09.000Z")).start()
        return reply()
    with daemon(restart=restart,
                status=lambda args: reply(started=starts[-1])) as s:
        begin = time.monotonic()
        expect(xlb("restart", run_dir=s.dir), 0, "restarted\n", "")
        equal(time.monotonic() - begin > 0.5, True, "waited")
        equal(asked, [{"flush": False}])
        starts[:] = ["2026-01-01T00:00:00.000Z"]
        expect(xlb("restart", "--flush", run_dir=s.dir), 0)
        equal(asked[-1], {"flush": True})


@test
def restart_does_not_wait_for_ever():
    with daemon(restart=reply(), status=reply(started="x")) as s:
        begin = time.monotonic()
        expect(xlb("restart", run_dir=s.dir), 1, "",
               "xlb: no new xlbd answers after 10 s: see its log\n")
        equal(9 < time.monotonic() - begin < 30, True, "ten seconds")


@test
def bird_config_is_for_the_configured_neighbours():
    r = xlb("--config", "-", "bird-config", stdin=CONF + BGP)
    equal(r.returncode, 0, r.stderr)
    for piece in ("as 64512;\n", "neighbor 192.0.2.9 as 64500;", "/bird/xlb.conf"):
        equal(piece in r.stdout, True, piece + "\n" + r.stdout)
    r = xlb("--config", "-", "--bird-dir", "/run/other", "bird-config",
            stdin=CONF + BGP)
    equal("/run/other/xlb4*.conf" in r.stdout, True, r.stdout)
    r = xlb("--config", "-", "bird-config", stdin=CONF)
    equal((r.returncode, r.stdout), (3, ""), r.stderr)
    j = json.loads(xlb("--config", "-", "bird-config", "--json",
                       stdin=CONF + BGP).stdout)
    equal("protocol bgp" in j["bird_conf"], True)


# A terminal to run xlb on.
class Terminal:
    def __init__(self, args, rows, columns, env=()):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))
        self.fd = master
        self.proc = subprocess.Popen(
            [XLB, *args], stdin=slave, stdout=slave, stderr=slave,
            env={**CLEAN, **dict(env)}, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.text = ""

    def read(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    break
                if not data:
                    break
                self.text += data.decode()
            elif self.proc.poll() is not None:
                break
        return self.text.replace("\r\n", "\n")

    def until(self, fn, seconds=60):
        """Until that is so of what has been read; whatever it is then."""
        end = time.monotonic() + seconds
        while not fn(self.text) and time.monotonic() < end and \
                self.proc.poll() is None:
            self.read(0.05)
        return self.text.replace("\r\n", "\n")

    def frames(self, n):
        """So many whole ones, and the beginning of another."""
        return self.until(lambda text: text.count("\033[H") > n)

    def close(self):
        self.proc.kill()
        self.proc.wait()
        os.close(self.fd)


def on_terminal(args, rows, columns, env=()):
    t = Terminal(args, rows, columns, env)
    try:
        text = t.read(60)   # or until it ends
        t.proc.wait(60)
        return t.proc.returncode, text
    finally:
        t.close()


def status_goldens():
    return sorted(GOLDEN.glob("*.json"))


def golden(name, got):
    path = GOLDEN / name
    if os.environ.get("UPDATE"):
        path.write_text(got)
    want = path.read_text()
    if got != want:
        raise AssertionError("\n".join(difflib.unified_diff(
            want.splitlines(), got.splitlines(), name, "got", lineterm="")))


@test
def status_as_text():
    equal(len(status_goldens()) >= 4, True, "goldens")
    for path in status_goldens():
        with daemon(status=reply(**json.loads(path.read_text()))) as s:
            r = xlb("status", run_dir=s.dir)
            expect(r, 0, None, "")
            golden(path.stem + ".txt", r.stdout)
            for line in r.stdout.splitlines():
                equal(line, line.rstrip(), "blanks at the end")
            r = xlb("status", "--json", run_dir=s.dir)
            equal(json.loads(r.stdout),
                  {"schema": 1, **json.loads(path.read_text())})


LISTS = TOP / "tests/golden/lists"


@test
def lists_as_text():
    for name in ("small", "troubled", "empty"):
        status = json.loads((GOLDEN / f"{name}.json").read_text())
        with daemon(status=reply(**status)) as s:
            for command in ("services", "pools", "backends", "bgp"):
                r = xlb(command, run_dir=s.dir)
                expect(r, 0, None, "")
                golden(f"../lists/{name}-{command}.txt", r.stdout)
                j = json.loads(xlb(command, "--json", run_dir=s.dir).stdout)
                equal(j.pop("schema"), 1)
                if command == "bgp":
                    equal(j, {k: status[k] for k in ("bird", "addresses")})
                elif command == "backends":
                    equal(j, {"backends": [
                        {"pool": p["name"], "ring": p["slots"], **b}
                        for p in status["pools"] for b in p["backends"]]})
                else:
                    equal(j, {command: status[command]})
    flow = ["tcp", "192.0.2.7:1", "203.0.113.1:80"]
    for path in sorted(LISTS.glob("*.json")):
        answer = json.loads(path.read_text())
        name = path.stem
        args = [name.split("-")[0]]
        args += flow if args[0] == "lookup" else []
        args += ["--client", "192.0.2.7"] if name == "flows-client" else []
        with daemon(**{args[0]: reply(**answer)}) as s:
            r = xlb(*args, run_dir=s.dir)
            expect(r, 0, None, "")
            golden(f"../lists/{name}.txt", r.stdout)
            for line in r.stdout.splitlines():
                equal(line, line.rstrip(), "blanks at the end")
            equal(json.loads(xlb(*args, "--json", run_dir=s.dir).stdout),
                  {"schema": 1, **answer})
            if args[0] == "lookup":
                equal(s.requests[-1]["args"], {
                    "protocol": flow[0], "source": flow[1],
                    "destination": flow[2]})


@test
def rates_are_by_the_second():
    first = json.loads((LISTS / "stats.json").read_text())
    second = json.loads((LISTS / "stats.json").read_text())
    second["reasons"]["forward"] += 5000000
    second["reasons"]["martian"] = 10       # counted anew
    second["services"].reverse()
    second["services"][1]["bytes"] += 7000
    second["backends"].insert(0, {"address": "10.0.1.7", "backends": ["web/n"],
                                  "packets": 50, "bytes": 4000})
    answers = []

    def answer(_):
        answers.append(reply(**(second if answers else first)))
        return answers[-1]
    with daemon(stats=answer) as s:
        j = json.loads(xlb("stats", "--rate", "--json", run_dir=s.dir).stdout)
        seconds = j["seconds"]
        equal(1 <= seconds < 20, True, seconds)

        def near(got, want):
            equal(abs(got * seconds - want) <= want * 1e-4, True, (got, want))
        near(j["reasons"]["forward"], 5000000)
        near(j["reasons"]["martian"], 10)
        equal((j["reasons"]["echo"], j["csum_full"]), (0, 0))
        equal([x["name"] for x in j["services"]], ["dns", "www"])
        near(j["services"][1]["bytes"], 7000)
        equal((j["services"][1]["packets"], j["services"][1]["port"]), (0, 80))
        near(j["backends"][0]["packets"], 50)
        near(j["backends"][0]["bytes"], 4000)
        equal([x["bytes"] for x in j["backends"][1:]], [0, 0, 0])
        answers.clear()
        r = xlb("stats", "--rate", run_dir=s.dir)
        lines = [x.split() for x in r.stdout.splitlines()]
        equal(lines[0], ["REASON", "PACKETS/s"])
        equal([x[0] for x in lines[1:3]], ["forward", "martian"])
        equal(lines[1][1][-1], "M")


@test
def stats_go_on_in_place():
    answer = json.loads((LISTS / "stats.json").read_text())
    with daemon(stats=reply(**answer)) as s:
        for args in ["stats", "-w"], ["stats", "-w", "--rate"]:
            t = Terminal(["--run-dir", s.dir, *args], 24, 80)
            try:
                shown = t.frames(2)
                equal(shown.startswith("\033[?1049h\033[?25l"), True)
                equal(shown.count("\033[H") >= 2, True, "drawn again")
                equal(("rates come with" in shown, "PACKETS/s" in shown),
                      ("--rate" in args, "--rate" in args))
                t.proc.send_signal(signal.SIGINT)
                equal(t.proc.wait(60), 0, "exit status")
                equal(t.read(60).endswith("\033[?25h\033[?1049l"), True)
            finally:
                t.close()
        p = subprocess.Popen([XLB, "--run-dir", s.dir, "stats", "-w",
                              "--json"], stdout=subprocess.PIPE, text=True,
                             env=CLEAN)
        for _ in range(2):
            equal(json.loads(p.stdout.readline()), {"schema": 1, **answer})
        p.kill()
        p.wait()
        p.stdout.close()


@test
def events_as_text():
    zone = {**CLEAN, "TZ": "Etc/GMT+1"}     # an hour behind
    with daemon(events=BEGUN + STREAM) as s:
        argv = [XLB, "--run-dir", s.dir, "events"]
        r = subprocess.run(argv, capture_output=True, text=True, timeout=120,
                           env=zone, check=False)
        equal(r.stderr, "xlb: xlbd ended\n")
        golden("../events/lines.txt", r.stdout)
        for line in r.stdout.splitlines():
            equal(line, line.rstrip(), "blanks at the end")
        plain = r.stdout.replace("21:10:0", "22:10:0")
        status, text = on_terminal(["--run-dir", s.dir, "events", "--count",
                                    "7"], 24, 200)
        equal(status, 0)
        equal("\033[31mdrop\033[0m" in text, True, "colour")
        equal(re.sub("\033\\[[0-9]*m", "", text), plain, "same but for colour")
        equal(on_terminal(["--run-dir", s.dir, "events", "--count", "7"], 24,
                          200, {"NO_COLOR": "1"}.items()), (0, plain))
        r = xlb("--json", "events", run_dir=s.dir)
        equal([json.loads(x) for x in r.stdout.splitlines()],
              [{"schema": 1, **json.loads(x)} for x in STREAM.splitlines()])


@test
def events_asks_for_what_was_said():
    with daemon(events=BEGUN) as s:
        def asked(*args):
            xlb("events", *args, run_dir=s.dir)
            return s.requests[-1]["args"]
        every = asked()
        equal("not_vip" in every["reasons"], False, "only when asked for")
        equal(len(every["reasons"]), 19, "all others, and new flows")
        equal((every["sample"], "service" in every), (1024, False))
        equal(asked("--service", "www", "--reason=new_flow,echo", "--sample",
                    "8"), {"service": "www", "reasons": ["new_flow", "echo"],
                           "sample": 8})
        drops = asked("--reason", "drop,echo")["reasons"]
        equal(("no_service" in drops, "forward" in drops, drops[-1]),
              (True, False, "echo"))


@test
def status_of_a_small_node_fits_a_terminal():
    small = json.loads((GOLDEN / "small.json").read_text())
    with daemon(status=reply(**small)) as s:
        args = ["--run-dir", s.dir, "status"]
        plain = xlb("status", run_dir=s.dir).stdout
        equal(len(plain.splitlines()) < 24, True, "24 lines")
        equal(max(map(len, plain.splitlines())) <= 80, True, "80 columns")
        status, text = on_terminal(args, 24, 80)
        equal(status, 0)
        equal("\033[3" in text, True, "colour")
        equal(re.sub("\033\\[[0-9]*m", "", text), plain, "same but for colour")
        equal(on_terminal(args, 24, 80, {"NO_COLOR": "1"}.items()),
              (0, plain), "NO_COLOR")
        equal(on_terminal(args, 24, 80, {"NO_COLOR": ""}.items())[1], text,
              "an empty NO_COLOR")
        equal(on_terminal(args, 24, 80, {"TERM": "dumb"}.items()), (0, plain))
        # what would not fit is left out, on a terminal
        for a in small["addresses"]:
            a["communities"] = ["64512:100", "64512:4200:7"]
        s.answers["status"] = reply(**small)
        plain = xlb("status", run_dir=s.dir).stdout
        equal("ROUTE" in plain and "64512:4200:7" in plain, True, plain)
        wide = on_terminal(args, 24, 120, {"NO_COLOR": "1"}.items())
        equal(wide, (0, plain), "there is room")
        _, text = on_terminal(args, 24, 80, {"NO_COLOR": "1"}.items())
        equal(max(map(len, text.splitlines())) <= 80, True, text)
        equal(("ROUTE" in text, text.count("  announced  ")), (False, 2), text)


@test
def a_small_terminal_shows_what_is_down():
    large = json.loads((GOLDEN / "troubled.json").read_text())
    backends = large["pools"][0]["backends"]
    for i in range(100):
        backends.append(dict(backends[0], name=f"more{i}",
                             address=f"10.9.0.{i}"))
    with daemon(status=reply(**large)) as s:
        _, text = on_terminal(["--run-dir", s.dir, "status"], 24, 80,
                              {"NO_COLOR": "1"}.items())
        golden("troubled-brief.out", text)
        equal(len(text.splitlines()) < 24, True, "24 lines")
        equal(len(xlb("status", run_dir=s.dir).stdout.splitlines()) > 100,
              True, "all of it, when it is not for a terminal")


@test
def live_view_draws_in_place_and_leaves_nothing():
    small = json.loads((GOLDEN / "small.json").read_text())
    with daemon(status=reply(**small)) as s:
        for sig in signal.SIGINT, signal.SIGTERM:
            t = Terminal(["--run-dir", s.dir, "status", "-w"], 24, 80)
            try:
                text = t.frames(2)
                enter, leave = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"
                equal(text.startswith(enter), True, "the other screen")
                equal(text.count("\033[H") >= 2, True, "drawn again")
                equal(text.count("\033[2J"), 0, "no flicker")
                for frame in text.split("\033[H")[1:]:
                    lines = re.sub("\033\\[[0-9]*[mKJ]", "", frame).split("\n")
                    equal(len(lines) <= 24, True, "no scrolling")
                    equal(max(map(len, lines)) <= 80, True, "no wrapping")
                t.proc.send_signal(sig)
                equal(t.proc.wait(60), 0, "exit status")
                equal(t.read(60).endswith(leave), True, "left clean")
            finally:
                t.close()
    # no daemon any more: says so and goes on
    t = Terminal(["--run-dir", "/nonexistent", "status", "-w"], 24, 80)
    try:
        equal("No such file" in t.until(lambda text: "No such file" in text),
              True, "says what is wrong")
        equal(t.proc.poll(), None, "goes on")
        t.proc.send_signal(signal.SIGINT)
        equal(t.proc.wait(60), 0)
    finally:
        t.close()


@test
def live_view_follows_the_size_of_the_terminal():
    small = json.loads((GOLDEN / "small.json").read_text())
    with daemon(status=reply(**small)) as s:
        t = Terminal(["--run-dir", s.dir, "status", "-w"], 24, 80)
        try:
            t.frames(1)
            fcntl.ioctl(t.fd, termios.TIOCSWINSZ,
                        struct.pack("HHHH", 10, 40, 0, 0))

            # one may have been on its way
            def last():
                frame = t.text.split("\033[H")[-2].replace("\r", "")
                return re.sub("\033\\[[0-9]*[mKJ]", "", frame).split("\n")

            def fits():
                return len(last()) <= 10 and max(map(len, last())) <= 40
            t.until(lambda _: fits())
            equal(fits(), True, last())
            os.write(t.fd, b"\x03")
            equal(t.proc.wait(60), 0)
            equal(t.read(60).endswith("\033[?25h\033[?1049l"), True, "clean")
        finally:
            t.close()


@test
def live_view_says_what_it_has_no_room_for():
    large = json.loads((GOLDEN / "troubled.json").read_text())
    down = dict(large["pools"][0]["backends"][0], eligible=False,
                health="down", reason="timeout")
    large["pools"][0]["backends"] += [dict(down, name=f"more{i}")
                                      for i in range(40)]
    with daemon(status=reply(**large)) as s:
        t = Terminal(["--run-dir", s.dir, "status", "-w"], 24, 80)
        try:
            frame = t.frames(1).split("\033[H")[1]
            lines = re.sub("\033\\[[0-9]*[mKJ]", "", frame).split("\n")
            equal(len(lines), 24, "no scrolling")
            equal(bool(re.match("[0-9]+ more lines: ", lines[-1])), True,
                  lines)
            t.proc.send_signal(signal.SIGINT)
            equal(t.proc.wait(60), 0)
        finally:
            t.close()


def usage_commands():
    return re.findall(r"^  ([a-z-]+)", xlb("help").stdout.split("options:")[0],
                      re.M)


@test
def usage_fits_a_terminal():
    commands = usage_commands()
    for text in [xlb("help").stdout] + \
            [xlb("help", c).stdout for c in commands]:
        for line in text.splitlines():
            equal(len(line) <= 80 and line == line.rstrip(), True, line)


@test
def usage_is_in_columns():
    lines = xlb("help").stdout.split("\noptions:")[0].splitlines()[2:]
    for line, after in zip(lines, lines[1:] + [""]):
        equal(re.match(r"  .{26}  \S", line) is not None or
              after.startswith(30 * " "), True, line)
    j = json.loads(xlb("help", "--json").stdout)
    equal([c["name"] for c in j["commands"]], usage_commands())
    text = (TOP / "doc/json.md").read_text()
    text = text[text.index("\n## help\n"):]
    equal(json.loads(xlb("help", "stop", "--json").stdout),
          json.loads(re.search(r"```json\n(.*?)```", text, re.S)[1]))
    r = xlb("help", "statu")
    expect(r, 2, "", "xlb: unknown command: statu, did you mean status?\n")


@test
def manual_usage_and_table_agree():
    page = (TOP / "man/xlb.8").read_text()
    section = page[page.index(".Sh COMMANDS"):page.index(".Sh ENVIRONMENT")]
    items = re.findall(r"^\.It Cm (.*)$", section, re.M)
    equal(len(items) > 8, True, "items")
    manual = {}
    for item in items:
        words = item.replace("Ns", "").split()
        flags = {"-" + w if len(w) == 1 else "-" + w for i, w in
                 enumerate(words) if words[i - 1] == "Fl"}
        manual[words[0]] = flags
    equal(list(manual), usage_commands(), "commands of manual and usage")
    for name, flags in manual.items():
        text = xlb("help", name).stdout
        own = set(re.findall(r"^  (-[-a-z]+) ", text, re.M)) - {"--json"}
        equal(flags, own, f"options of {name}")
        begin = section.index(f".It Cm {name}")
        nxt = section.find("\n.It Cm", begin + 1)
        equal(f"xlb {name}" in section[begin:nxt if nxt > 0 else None], True,
              f"an example of {name}")
    options = re.findall(r"--[a-z-]+ [A-Z]+",
                         xlb("help").stdout.split("options:")[1])
    equal(len(options), 6, "options")
    for option in options:
        macro = f".It Fl {option[1:].replace(' ', ' Ar ')}\n"
        for manual_page in ("man/xlb.8", "man/xlbd.8"):
            equal(macro in (TOP / manual_page).read_text(), True,
                  f"{option} in {manual_page}")


@test
def manual_has_every_reason():
    page = (TOP / "man/xlb.8").read_text()
    page = page[page.index(".Sh REASONS"):]
    names = re.findall(r"^\.It Sy (.*)$", page[:page.index(".Sh ENV")], re.M)
    equal(names, xlb("completion", "reasons").stdout.split()[2:])


BPFFS = pathlib.Path("/sys/fs/bpf")


@test
def detach_takes_the_pins_away():
    if os.geteuid() != 0 or not os.path.ismount(BPFFS):
        return "needs root and bpffs at /sys/fs/bpf"
    pins = BPFFS / f"xlb-ctl{os.getpid()}"
    pins.mkdir(mode=0o700)
    try:
        expect(xlb("--bpf-dir", str(pins), "detach", "--force"), 0,
               "detached\n", "")
        equal(pins.exists(), False, "the directory")
    finally:
        if pins.exists():
            pins.rmdir()
    return None


@test
def every_exit_status_is_in_the_manual():
    """Whatever came before has run each command into each of its statuses."""
    page = (TOP / "man/xlb.8").read_text()
    page = page[page.index(".Sh EXIT STATUS"):page.index(".Sh EXAMPLES")]
    manual = {m[0]: set(map(int, m[1].split())) for m in
              re.findall(r"^\.It Cm (\S+)\n((?:[0-9] ?)+)$", page, re.M)}
    equal(list(manual), usage_commands(), "commands")
    for name in usage_commands():
        want = manual[name]
        if name == "detach" and (os.geteuid() != 0 or
                                 not os.path.ismount(BPFFS)):
            want = want - {0}
        equal(SEEN[name], want, f"exit statuses of {name}")
    named = set(map(int, re.findall(r"^\.It ([0-9]+)$", page, re.M)))
    equal(set.union(*manual.values()), named, "those that are explained")


def main(tests):
    print(f"1..{len(tests)}")
    failed = 0
    for n, fn in enumerate(tests, 1):
        name = fn.__name__
        try:
            skipped = fn()
        except Exception as e:  # each test is to run
            failed += 1
            text = str(e) if isinstance(e, AssertionError) else repr(e)
            for line in text.splitlines():
                print(f"# {line}")
            print(f"not ok {n} - {name}", flush=True)
            continue
        print(f"ok {n} - {name}" + (f" # SKIP {skipped}" if skipped else ""),
              flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(TESTS))
