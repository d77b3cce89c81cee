# SPDX-License-Identifier: GPL-2.0-or-later
"""Namespaces, processes and files that leave no trace.

All that a lab makes lies under names of its own (namespaces xlbf-*, /run/xlbf,
/sys/fs/bpf/xlb_f_*), and each process is on record before it matters, so that
sweep() finds everything again even after a SIGKILL, and touches nothing else.
XLB_LAB=2 makes another lab, beside the first, under others (xlbf2-* and so on).
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

LAB = os.environ.get("XLB_LAB", "")
PREFIX = f"xlbf{LAB}-"
RUN = pathlib.Path(f"/run/xlbf{LAB}")
NETNS = pathlib.Path("/run/netns")
BPFFS = pathlib.Path("/sys/fs/bpf")
BPF_PREFIX = f"xlb_f{LAB}_"  # a dot is not allowed in bpffs

SESSIONS = RUN / "sessions"  # "pid start-time name" of each session leader
KEPT = RUN / "kept"  # there: the fabric stays until it is taken down


class FabricError(Exception):
    """Something did not come about; says what was waited for and what is."""


class Busy(FabricError):
    """Another run has the fabric; it will end."""


def wait(what, check, timeout=30.0, seen=None, pause=0.02):
    """Polls check() until it returns something true, and returns that. The last
    time it begins after the end: nobody may have let us run before."""
    end = time.monotonic() + timeout
    while True:
        late = time.monotonic() > end
        got = check()
        if got:
            return got
        if late:
            now = seen() if seen else got
            raise FabricError(
                f"waited {timeout:g} s for {what}; there is: {now!r}")
        time.sleep(pause)


def process_stat(pid):
    """(state, session, start time) of a process, None if there is none."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    field = stat.rpartition(")")[2].split()
    return field[0], int(field[3]), int(field[19])


def recorded_processes():
    """Processes of the sessions on record. A session's number is not used
    again while it has a member, so only a leader's start time can differ."""
    ours = set()
    if SESSIONS.exists():
        for line in SESSIONS.read_text().splitlines():
            pid, start = (int(x) for x in line.split()[:2])
            leader = process_stat(pid)
            if leader is None or leader[2] == start:
                ours.add(pid)
    members = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            stat = process_stat(entry.name)
            if stat and stat[1] in ours and stat[0] not in "ZX":
                members.append(int(entry.name))
    return members


def end_processes():
    for sig, seconds in ((signal.SIGTERM, 3), (signal.SIGKILL, 5)):
        for pid in recorded_processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sig)
                os.kill(pid, signal.SIGCONT)
        end = time.monotonic() + seconds
        while recorded_processes():
            if time.monotonic() > end:
                break
            time.sleep(0.02)
        else:
            return


def sweep():
    """Removes everything that a lab makes."""
    end_processes()
    for path in BPFFS.glob(BPF_PREFIX + "*"):
        shutil.rmtree(path, ignore_errors=True)
    for ns in NETNS.glob(PREFIX + "*"):
        subprocess.run(["ip", "netns", "del", ns.name], check=False)
    # /run/netns itself stays: somebody else may be about to use it
    shutil.rmtree(RUN, ignore_errors=True)


def claim():
    """The lock: a descriptor of RUN, and whether remains lie there."""
    while True:
        made = True
        try:
            RUN.mkdir(mode=0o700)
        except FileExistsError:
            made = False
        fd = os.open(RUN, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if RUN.exists() and os.path.samestat(os.fstat(fd), RUN.stat()):
                return fd, not made
        except BlockingIOError:
            os.close(fd)
            raise Busy(
                "a fabric is in use by another run of the demo or the tests; "
                "there can be one at a time") from None
        os.close(fd)  # removed by its owner meanwhile


def take_down():
    """For what `demo --keep` left. False if there was nothing."""
    if not RUN.exists():
        return False
    fd, _ = claim()
    try:
        sweep()
    finally:
        os.close(fd)
    return True


def enter(ns):
    """`ip netns exec` mounts a /sys without bpffs; this does not."""
    return ["nsenter", f"--net={NETNS}/{PREFIX}{ns}", "--"]


def in_netns(ns, fn):
    """fn() in a thread that lives in the namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = []

    def work():
        fd = os.open(NETNS / (PREFIX + ns), os.O_RDONLY)
        try:
            if libc.setns(fd, 0x40000000) != 0:  # CLONE_NEWNET
                raise OSError(ctypes.get_errno(), "setns " + ns)
            result.append(fn())
        finally:
            os.close(fd)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if not result:
        raise FabricError(f"nothing came of {fn} in {ns}")
    return result[0]


def connects(ns, address, port, timeout=1.0):
    """Whether a TCP connection from the namespace is accepted."""
    def attempt():
        try:
            socket.create_connection((address, port), timeout).close()
            return True
        except OSError:
            return False

    return in_netns(ns, attempt)


class Process:
    """A process in a session of its own; its output goes to a file."""

    def __init__(self, ns, name, argv, log, stdin=subprocess.DEVNULL,
                 stdout=None, env=None, pass_fds=()):
        self.name, self.log = name, log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                enter(ns) + [str(a) for a in argv], stdin=stdin,
                stdout=stdout or out, stderr=out, start_new_session=True,
                env=env, pass_fds=pass_fds)
        stat = process_stat(self.popen.pid)
        with open(SESSIONS, "a", encoding="ascii") as f:
            f.write(f"{self.popen.pid} {stat[2]} {name}\n")

    @property
    def pid(self):
        return self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def exit(self, timeout=60.0):
        """Waits for its end; the exit status, negative for a signal."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise FabricError(f"waited {timeout:g} s for {self.name} (pid "
                              f"{self.pid}) to end") from None

    def signal(self, sig):
        self.popen.send_signal(sig)

    def kill(self):
        """SIGKILL, and nothing else gets a word in."""
        self.signal(signal.SIGKILL)
        self.exit()


class Lab:
    """The claim on the names above, from open() to close()."""

    def __init__(self, say=None):
        self.say = say or (lambda text: None)
        self.fd = None
        self.process = []

    def open(self):
        for path, remedy in ((BPFFS, "mount -t bpf bpf /sys/fs/bpf"),
                             (pathlib.Path("/dev/net/tun"), "modprobe tun")):
            if not path.exists():
                raise FabricError(f"{path} is missing: {remedy}")
        self.fd, remains = claim()
        try:
            if KEPT.exists():
                raise FabricError("a fabric is up, left by `demo --keep`: "
                                  "`./setup down` takes it down")
        except FabricError:
            os.close(self.fd)
            self.fd = None
            raise
        if remains:
            self.say("removing what a killed run left behind")
            sweep()
            os.close(self.fd)
            self.fd, _ = claim()

    def keep(self):
        """Everything stays, for take_down()."""
        KEPT.touch()
        os.close(self.fd)
        self.fd = None

    def close(self):
        if self.fd is None:
            return
        held = {s: signal.signal(s, signal.SIG_IGN)
                for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            sweep()
            for p in self.process:
                p.popen.poll()
            os.close(self.fd)
            self.fd = None
        finally:
            for s, handler in held.items():
                signal.signal(s, handler)

    def netns(self, ns):
        self.run(None, "ip", "netns", "add", PREFIX + ns)
        (RUN / ns).mkdir(exist_ok=True)

    def run(self, ns, *argv, check=True, timeout=120.0, stdin=None):
        """A command to its end, in a namespace or (None) here."""
        argv = (enter(ns) if ns else []) + [str(a) for a in argv]
        try:
            done = subprocess.run(
                argv, input=stdin, capture_output=True, text=True,
                timeout=timeout, check=False,
                stdin=None if stdin is not None else subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            raise FabricError(f"waited {timeout:g} s for the end of: "
                              + " ".join(argv)) from None
        if check and done.returncode != 0:
            raise FabricError("%s: exit status %d\n%s%s" % (
                " ".join(argv), done.returncode, done.stdout, done.stderr))
        return done

    def start(self, ns, name, *argv, **kw):
        p = Process(ns, name, argv, RUN / ns / f"{name}.log", **kw)
        self.process.append(p)
        return p

    def logs(self):
        """(path, end of the file) of every log, the newest last."""
        for path in sorted(RUN.glob("*/*.log"),
                           key=lambda p: p.stat().st_mtime):
            lines = path.read_text(errors="replace").splitlines()
            if lines:
                yield path, lines[-15:]
