# SPDX-License-Identifier: GPL-2.0-or-later
"""A service manager for one xlbd: what systemd does with its unit, as far as a
daemon can tell. Readiness, the descriptor store, the watchdog, restarts and
their limit (sd_notify(3), sd_listen_fds(3), systemd.service(5)), with the
figures of the unit file unless others are given.

Not: jobs. There is no bus, so SIGTERM means restart to xlbd, and stop() is
`xlb stop`.
"""

import array
import fcntl
import os
import pathlib
import re
import selectors
import signal
import socket
import threading
import time

import lab
from lab import wait

UNITS = {"ms": 0.001, "s": 1, "": 1, "min": 60}
STORE_NAME = re.compile(r"[^\x00-\x1f:]{1,255}")  # FDNAME, as systemd has it


def unit_values(path):
    """{key: the last value} of a unit file."""
    return dict(line.split("=", 1) for line in
                pathlib.Path(path).read_text().splitlines()
                if "=" in line and not line.startswith("#"))


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(\w*)", text).groups()
    return int(number) * UNITS[unit]


class Supervisor(threading.Thread):
    """start() to begin; ends when the unit is `inactive` or `failed`. Also
    stands for the process that runs now, as lab.Process does."""

    def __init__(self, lab_, node, argv, unit, **values):
        """`values`: of the unit's keys, instead of the file's."""
        super().__init__(daemon=True)
        self.lab, self.node, self.argv = lab_, node, argv
        self.value = {**unit_values(unit), **values}
        self.state, self.status, self.why = "inactive", "", ""
        self.store = {}  # name: descriptors
        self.process = None
        self.events = []  # (monotonic, what happened)
        self.starts = []  # when, for the limit
        self.deadline = {}  # what: when it is due
        self.path = lab.RUN / node / "notify"
        self.path.unlink(missing_ok=True)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(str(self.path))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.wake, self.waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.aborted = False

    # ---- what tests ask -------------------------------------------------

    @property
    def pid(self):
        return self.process.pid

    @property
    def log(self):
        return self.process.log

    def alive(self):
        """Is the unit (not: a process, which may just be restarted)."""
        return self.is_alive()

    def said(self):
        """The lines of its log, which the next start begins anew."""
        return self.log.read_text(errors="replace").splitlines()

    def signal(self, sig):
        os.kill(self.pid, sig)

    def exit(self, timeout=60.0):
        self.join(timeout)
        if self.is_alive():
            raise lab.FabricError(f"waited {timeout:g} s for the unit of "
                                  f"{self.node} to end; it is {self.state}\n"
                                  + "\n".join(self.said()[-30:]))
        return self.process.exit()

    def kill(self):
        """The unit as a whole, and what it stored."""
        os.write(self.waker, b"x")
        self.exit()

    def count(self, what):
        return sum(w.startswith(what) for _, w in list(self.events))

    def when(self, what):
        """Of the last one."""
        return next(t for t, w in reversed(self.events) if w.startswith(what))

    def wait_restart(self, n, timeout=60.0):
        """Until it was started for the n-th time, and is ready."""
        wait(f"start {n} of {self.node}'s unit", lambda: len(self.starts) >= n
             and self.state == "active", timeout,
             lambda: (self.state, self.events[-5:]))

    # ---- the manager ----------------------------------------------------

    def say(self, what):
        self.events.append((time.monotonic(), what))

    def run(self):
        self.begin()
        while self.state not in ("inactive", "failed"):
            self.turn()
        self.say("closes")
        self.drop(None)
        self.sock.close()
        os.close(self.wake)
        os.close(self.waker)

    def begin(self):
        """A start, if the limit allows one."""
        now = time.monotonic()
        window = seconds(self.value["StartLimitIntervalSec"])
        burst = int(self.value["StartLimitBurst"])
        if len([t for t in self.starts if now - t < window]) >= burst:
            self.state, self.why = "failed", "start-limit-hit"
            return
        self.starts.append(now)
        self.state = "activating"
        self.aborted = False
        self.say("start")
        fds = [(name, fd) for name, held in self.store.items() for fd in held]
        env = dict(os.environ, NOTIFY_SOCKET=str(self.path),
                   WATCHDOG_USEC=str(int(1e6 * self.watchdog())),
                   LISTEN_FDS=str(len(fds)),
                   LISTEN_FDNAMES=":".join(name for name, _ in fds))
        # descriptors from 3 on; $$ stays xlbd's number through exec
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for _, fd in fds]
        moves = "".join(f"exec {3 + i}<&{fd} {fd}<&-;"
                        for i, fd in enumerate(high))
        shell = ("LISTEN_PID=$$ WATCHDOG_PID=$$; export LISTEN_PID "
                 f"WATCHDOG_PID; {moves} exec \"$@\"")
        try:
            self.process = self.lab.start(
                self.node, "xlbd", "bash", "-c", shell, "bash", *self.argv,
                env=env, pass_fds=high)
        finally:
            for fd in high:
                os.close(fd)

    def watchdog(self):
        return seconds(self.value["WatchdogSec"])

    def turn(self):
        """Waits for one thing, and does what follows from it."""
        with selectors.DefaultSelector() as sel:
            sel.register(self.sock, selectors.EVENT_READ)
            sel.register(self.wake, selectors.EVENT_READ)
            pidfd = None
            now = time.monotonic()
            due = min(self.deadline.values(), default=now + 60)
            if self.process is not None and self.process.alive():
                pidfd = os.pidfd_open(self.pid)
                sel.register(pidfd, selectors.EVENT_READ)
            elif self.process is not None and self.state != "auto-restart":
                due = now       # it ended in the turn before
            ready = {key.fd for key, _ in sel.select(max(0, due - now))}
            if pidfd is not None:
                os.close(pidfd)
        # what it said before it ended counts
        if self.sock.fileno() in ready:
            self.message()
        elif self.wake in ready:
            self.process.signal(signal.SIGKILL)
            self.process.exit()
            self.state, self.why = "failed", "killed by the test"
        elif self.process is not None and not self.process.alive():
            if self.state != "auto-restart":
                self.ended(self.process.exit())
        self.expire()

    def message(self):
        data, anc, _, _ = self.sock.recvmsg(4096, socket.CMSG_SPACE(4 * 16)
                                            + socket.CMSG_SPACE(12))
        fds, sender = array.array("i"), None
        for level, kind, body in anc:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(body[:len(body) - len(body) % fds.itemsize])
            elif kind == socket.SCM_CREDENTIALS:
                sender = array.array("i", body)[0]
        if sender != self.pid:  # NotifyAccess=main
            self.say(f"refused {data!r} of process {sender}")
            for fd in fds:
                os.close(fd)
            return
        said = dict(line.split("=", 1) for line in
                    data.decode().splitlines() if "=" in line)
        self.obey(said, list(fds))

    def obey(self, said, fds):
        name = said.get("FDNAME", "stored")
        if not STORE_NAME.fullmatch(name):
            name = "stored"
        if said.get("FDSTOREREMOVE") == "1":
            self.drop(name)
        elif said.get("FDSTORE") == "1":
            if said.get("FDPOLL") != "0":
                self.say("stored without FDPOLL=0")
            room = int(self.value["FileDescriptorStoreMax"]) - sum(
                map(len, self.store.values()))
            self.store.setdefault(name, []).extend(fds[:room])
            fds = fds[room:]
            self.say("store " + name)
        for fd in fds:
            os.close(fd)
        if "STATUS" in said:
            self.status = said["STATUS"]
        if said.get("READY") == "1":
            self.state = "active"
            self.say("ready")
            self.fed()
        # in whatever state, as systemd: a word too early starts the clock
        if said.get("WATCHDOG") == "1":
            if self.state == "activating":
                self.say("early watchdog")
            self.fed()
        if said.get("STOPPING") == "1":
            self.state = "deactivating"
            self.deadline.pop("watchdog", None)
            self.say("stopping")

    def fed(self):
        if self.watchdog() > 0:
            self.deadline["watchdog"] = time.monotonic() + self.watchdog()

    def expire(self):
        now = time.monotonic()
        for what in [w for w, t in self.deadline.items() if t <= now]:
            del self.deadline[what]
            if what == "watchdog":
                self.say("watchdog")
                self.aborted = True
                self.deadline["abort"] = now + seconds(
                    self.value["TimeoutAbortSec"])
                # as systemd: a stopped process has to run to die of it
                self.process.signal(signal.SIGABRT)
                self.process.signal(signal.SIGCONT)
            elif what == "abort":
                self.process.signal(signal.SIGKILL)
            elif what == "restart":
                self.begin()

    def ended(self, status):
        self.say(f"ended {status}")
        self.deadline.clear()
        clean = status in (0, -signal.SIGHUP, -signal.SIGINT,
                           -signal.SIGTERM, -signal.SIGPIPE)
        prevent = map(int, self.value["RestartPreventExitStatus"].split())
        if clean:
            self.state = "inactive"
        elif self.value["Restart"] != "on-failure" or status in prevent:
            self.state, self.why = "failed", f"exit status {status}"
        else:
            self.state = "auto-restart"
            self.deadline["restart"] = time.monotonic() + seconds(
                self.value["RestartSec"])

    def drop(self, name):
        """Closes what is stored by that name; None: all."""
        for n in [n for n in self.store if name in (None, n)]:
            for fd in self.store.pop(n):
                os.close(fd)
