# SPDX-License-Identifier: GPL-2.0-or-later
"""One node: a namespace with xlbd and BIRD, one with its backends, and files
of their own. Everything goes away at the end, whatever happens."""

import atexit
import contextlib
import functools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

for beside in ("tests/decap", "tests/fabric"):
    sys.path.append(os.path.join(os.environ.get("top_srcdir", "."), beside))
import ask  # noqa: E402
import tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("top_builddir", "."))
SRC = pathlib.Path(os.environ.get("top_srcdir", "."))
BPFFS = pathlib.Path("/sys/fs/bpf")
VIP = "203.0.113.10"
BGP = ("bgp: {local_as: 65001, hold: 0s, linger: 0s, graceful_shutdown: 0s, "
       "neighbors: [{address: 10.0.1.254, as: 65000}]}")
BACKENDS = "{name: a, address: 10.0.1.11}, {name: b, address: 10.0.1.12}"


def check(cond, *what):
    if not cond:
        raise RuntimeError(" ".join(str(w) for w in what))


def run(*argv, check=True, **kw):
    p = subprocess.run([str(a) for a in argv], text=True, timeout=180,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)
    if check and p.returncode != 0:
        raise RuntimeError(f"{' '.join(p.args)}: {p.returncode}: {p.stdout}"
                           f"{p.stderr}")
    return p


def wait(what, fn, seconds=60):
    """`seconds` of a machine that is ours: of one where others run, a turn of this
    loop counts as what it takes where nobody else does."""
    left, begun = seconds, time.monotonic()
    while not fn():
        if left < 0:
            raise RuntimeError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
        now = time.monotonic()
        left -= min(now - begun, 0.05)
        begun = now


def why_not():
    """Why it cannot be tried here; None if it can."""
    if os.geteuid() != 0:
        return "needs root"
    if not os.path.ismount(BPFFS):
        return "needs bpffs at /sys/fs/bpf"
    if not os.path.exists("/dev/net/tun"):
        return "needs /dev/net/tun"
    for tool in ("ip", "nsenter", "bird", "birdc", "ethtool"):
        if shutil.which(tool) is None:
            return f"needs {tool}"
    try:
        run("ip", "netns", "add", f"xlbx{os.getpid()}")
        run("ip", "netns", "del", f"xlbx{os.getpid()}")
    except RuntimeError as err:
        return f"needs network namespaces: {err}"
    return None


class Node:
    def __init__(self):
        self.ns, self.far = f"xlbx{os.getpid()}n", f"xlbx{os.getpid()}b"
        self.bpf = BPFFS / f"xlbx{os.getpid()}"
        self.process = []
        self.xlbd = None
        self.left = None        # of an xlbd for the next case: its configuration
        atexit.register(self.end)
        for sig in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(sig, lambda *_: sys.exit(1))
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="xlbx"))
        self.dir.chmod(0o755)
        for ns in (self.ns, self.far):
            run("ip", "netns", "add", ns)
            run("ip", "-n", ns, "link", "set", "lo", "up")
        self.link("eth0")
        run("ip", "-n", self.ns, "addr", "add", "10.0.1.1/24", "dev", "eth0")
        for host in (11, 12, 254):
            run("ip", "-n", self.far, "addr", "add", f"10.0.1.{host}/24",
                "dev", "eth0")
        self.file = self.dir / "xlb.yaml"
        self.routes = self.dir / "bird/xlb4.conf"
        self.log = self.dir / "log"

    def end(self):
        for p in self.process:
            if p.poll() is None:
                p.kill()
                p.wait()
        for ns in (self.ns, self.far):
            run("ip", "netns", "del", ns, check=False)
        shutil.rmtree(self.bpf, ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def link(self, name):
        run("ip", "-n", self.ns, "link", "add", name, "type", "veth", "peer",
            "name", name, "netns", self.far)
        for ns in (self.ns, self.far):
            run("ip", "-n", ns, "link", "set", name, "up")

    def inside(self, *argv):
        return ["nsenter", f"--net=/run/netns/{self.ns}", "--",
                *(str(a) for a in argv)]

    def start(self, *argv, **kw):
        return self._start(self.inside(*argv), **kw)

    def listen_far(self, port, *hosts):
        """Sockets that nobody accepts from: their queues take some minutes of
        checks, each of which leaves a connection there."""
        return self.start_far("python3", "-c", f"""import socket, time
kept = [socket.create_server((f"10.0.1.{{h}}", {port}), backlog=4096)
        for h in {hosts}]
time.sleep(3600)""")

    def start_far(self, *argv):
        return self._start(["nsenter", f"--net=/run/netns/{self.far}", "--",
                            *argv])

    def _start(self, argv, out=None, **kw):
        with open(self.log, "ab") as log:
            p = subprocess.Popen(argv, stdout=out or log, stderr=log,
                                 stdin=subprocess.DEVNULL, **kw)
        self.process.append(p)
        return p

    # ---- BIRD ---------------------------------------------------------

    def start_bird(self):
        """With the wrapper as it is shipped, but for the directory."""
        text = (SRC / "bird/xlb.conf").read_text()
        (self.dir / "wrapper.conf").write_text(
            text.replace("/run/xlb-bird", str(self.dir / "bird")))
        (self.dir / "bird.conf").write_text(
            f'router id 10.0.1.1;\ninclude "{self.dir}/wrapper.conf";\n'
            "protocol device { scan time 1; }\n")
        (self.dir / "bird").mkdir(exist_ok=True)
        self.bird = self.start(
            "bird", "-f", "-c", self.dir / "bird.conf", "-s",
            self.dir / "bird.ctl", "-P", self.dir / "bird.pid")
        # it has so little to do that elsewhere it never waits for a processor
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, self.bird.pid, -20)
        wait("BIRD", lambda: "xlb4" in self.birdc("show protocols"))

    def start_peer(self):
        """A router on the far side, and a session of ours with it."""
        if (self.dir / "peer.conf").exists():
            return
        (self.dir / "peer.conf").write_text(
            "router id 10.0.1.254;\nprotocol device { }\n"
            "protocol bgp node { local 10.0.1.254 as 65000; neighbor 10.0.1.1 "
            "as 65001; connect delay time 1; "
            "ipv4 { import all; export none; }; }\n")
        begun = time.time()
        self.start_far("bird", "-f", "-c", self.dir / "peer.conf", "-s",
                       self.dir / "peer.ctl", "-P", self.dir / "peer.pid")
        conf = self.dir / "bird.conf"
        conf.write_text(conf.read_text() + "protocol bgp tor1 { local 10.0.1.1 "
                        "as 65001; neighbor 10.0.1.254 as 65000; connect delay "
                        "time 1; ipv4 { table xlb4t; import none; export filter "
                        "xlb_export; next hop self; }; }\n")
        self.birdc("configure")
        wait("the session", lambda: "Established" in
             self.birdc("show protocols tor1"))
        self.peer_since = begun, time.time()    # somewhere in between

    def stop_bird(self):
        self.bird.terminate()
        self.bird.wait()

    def birdc(self, command):
        try:
            return "\n".join(
                text for _, text in ask.bird(self.dir / "bird.ctl", command,
                                             60))
        except OSError:
            return ""

    def announced(self, vip=VIP):
        """What BIRD would tell its peers."""
        return vip in self.birdc("show route table xlb4t primary")

    def withdrawn(self, vip=VIP):
        """BIRD is there, and would not."""
        return vip not in "".join(text for _, text in ask.bird(
            self.dir / "bird.ctl", "show route table xlb4t primary", 60))

    # ---- xlbd ---------------------------------------------------------

    def configure(self, interfaces="{name: eth0}", bgp=BGP, more="",
                  node="node: {name: n}", listen="tcp/80", address=VIP,
                  pool="", backends=BACKENDS):
        self.file.write_text(f"""{node}
interfaces: [{interfaces}]
{bgp}
pools: {{web: {{{pool}backends: [{backends}]}}}}
services: [{{name: www, addresses: [{address}], listen: [{listen}], pool: web}}]
{more}
metrics: {{listen: off}}
""")

    def options(self):
        return ["--config", self.file, "--run-dir", self.dir / "run",
                "--bpf-dir", self.bpf, "--state-dir", self.dir / "state",
                "--bird-dir", self.dir / "bird", "--bird-socket",
                self.dir / "bird.ctl"]

    def start_xlbd(self, ready=True, **kw):
        left, self.left = self.left, None
        if left is not None:
            if left == self.file.read_text() and not kw and \
                    self.xlbd.poll() is None:
                return
            self.stop_xlbd()
        self.xlbd = self.start(BUILD / "src/xlbd", *self.options(), **kw)
        if ready:
            self.ready()

    def ready(self):
        wait("xlbd to be ready", lambda: self.status() is not None)

    def stop_xlbd(self):
        """Whatever state it is in; leaves nothing to adopt."""
        if self.xlbd is not None and self.xlbd.poll() is None:
            self.xlbd.kill()
            self.xlbd.wait()
        shutil.rmtree(self.bpf, ignore_errors=True)
        shutil.rmtree(self.dir / "state", ignore_errors=True)
        (self.dir / "run/counters").unlink(missing_ok=True)
        for f in (self.dir / "bird").glob("*"):
            f.unlink()
        self.birdc("configure")

    def xlb(self, *argv, **kw):
        """(exit status, output, errors)"""
        p = run(*self.inside(BUILD / "src/xlb", *self.options(), *argv),
                check=False, **kw)
        return p.returncode, p.stdout, p.stderr

    def xlb_start(self, *argv):
        p = subprocess.Popen(
            self.inside(BUILD / "src/xlb", *self.options(), *argv),
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.process.append(p)
        return p

    def status(self):
        """What `xlb --json status` prints; None: nobody answers."""
        try:
            return ask.xlbd(self.dir / "run", "status", 60)
        except (OSError, ValueError):
            return None

    def said(self):
        return self.log.read_text()


def leaves_xlbd(fn):
    """A case which does nothing to xlbd that the next one could see, and which may
    have the one before's: the kernel takes long to read the program."""
    fn.leaves_xlbd = True
    return fn


def case(n, fn):
    start, mine = len(n.said()), hasattr(fn, "leaves_xlbd")
    if n.left is not None and not mine:
        n.left = None
        n.stop_xlbd()
    try:
        fn(n)
        if mine:
            n.left = n.file.read_text()
    except Exception:
        n.left = None
        print("# " + n.said()[start:].replace("\n", "\n# "))
        raise
    finally:
        if n.left is None:
            n.stop_xlbd()


def main(cases, why=None):
    """Runs the functions, or (name, function) pairs, each with the node as its
    argument: TAP, and the exit status. `why` not, if it is already known."""
    why = why or why_not()
    if why:
        tap.plan_skip(why)
    n = Node()
    n.start_bird()
    named = [c if isinstance(c, tuple) else (c.__name__, c) for c in cases]
    return tap.run([(name, functools.partial(case, n, fn))
                    for name, fn in named
                    if len(sys.argv) < 2 or fn.__name__ in sys.argv])
