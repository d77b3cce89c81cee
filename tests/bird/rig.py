# SPDX-License-Identifier: GPL-2.0-or-later
"""What the BIRD tests share: the driven client, and TAP on standard output."""

import atexit
import contextlib
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BUILD = os.environ.get("top_builddir", ".")
DRIVE = os.path.join(BUILD, "tests/bird/drive")


class Failed(Exception):
    pass


class Skip(Exception):
    """This case cannot be tried here; str() says why."""


def check(cond, what):
    if not cond:
        raise Failed(what)


BUSY = 30       # seconds: where others need the processor all takes longer


def first(process):
    """It has so little to do that on a machine of its own it never waits."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, process.pid, -20)


def wait_for(what, timeout, fn):
    """The first true value of fn(); it is asked every 5 ms."""
    timeout += BUSY
    end = time.monotonic() + timeout
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"not within {timeout} s: {what}")
        time.sleep(0.005)


class Drive:
    """A running tests/bird/drive; its output is kept as (seconds, line)."""

    def __init__(self, directory, socket, *args, wrap=()):
        self.lines = []
        self.status = "busy||0|0"
        self.answers = queue.Queue()
        self.proc = subprocess.Popen(
            [*wrap, DRIVE, directory, socket, *args], text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self._read, daemon=True).start()
        wait_for("drive is ready", 10, lambda: self.seen("ready"))

    def _read(self):
        for line in self.proc.stdout:
            at, _, text = line.rstrip("\n").partition(" ")
            kind, _, rest = text.partition(" ")
            if kind in ("changed", "status"):
                self.status = rest
            self.lines.append((int(at) / 1e6, text))
            if kind in ("set", "show", "peers", "included"):
                self.answers.put((int(at) / 1e6, rest))

    def say(self, command):
        self.proc.stdin.write(command + "\n")

    def ask(self, command):
        """(time, answer) of a command that has one."""
        self.say(command)
        try:
            return self.answers.get(timeout=10 + BUSY)
        except queue.Empty:
            raise Failed(f"no answer to {command!r}; the end of it: " + " / "
                         .join(x for _, x in self.lines[-3:])) from None

    def set(self, *addresses, how="set"):
        """(time before the call, its result, seconds it took)."""
        at, answer = self.ask(" ".join((how, *addresses)))
        rc, took = answer.split()
        # the status line that follows belongs to it
        wait_for("status after set", 5, lambda: any(
            t >= at and x.startswith("status") for t, x in self.lines))
        return at, int(rc), int(took) / 1e6

    def show(self, prefix):
        """(in BIRD, exported to so many)"""
        has, exported = self.ask("show " + prefix)[1].split("=")[1].split("/")
        return int(has), int(exported)

    def seen(self, pattern, since=0.0):
        return [(t, x) for t, x in list(self.lines)
                if t >= since and re.search(pattern, x)]

    def is_(self, status):
        return self.status.split("|")[0] == status

    def stuck(self):
        return int(self.status.split("|")[3])

    def until(self, status, timeout=10):
        try:
            wait_for(status, timeout, lambda: self.is_(status))
        except Failed:
            raise Failed(f"not within {timeout + BUSY} s: {status}; "
                         f"is {self.status}") from None

    def kill(self):
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()

    def close(self):
        if self.proc.poll() is None:
            self.proc.stdin.close()
            try:
                self.proc.wait(10 + BUSY)
            except subprocess.TimeoutExpired:
                self.kill()
        check(self.proc.returncode in (0, -9),
              f"drive ended with {self.proc.returncode}")


def at_end(fn):
    """Calls fn at exit, also after a signal that asks to end."""
    atexit.register(fn)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, lambda *_: sys.exit(1))


def scratch():
    """A directory in memory, as /run/xlb-bird is, if there can be one; removed
    at exit."""
    where = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = tempfile.mkdtemp(prefix="xlb-bird-", dir=where)
    at_end(lambda: shutil.rmtree(path, ignore_errors=True))
    return path


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def run(tests, *args):
    """Runs the functions in order, one TAP line each; True if all passed."""
    good = True
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        begin = time.monotonic()
        note = ""
        try:
            test(*args)
            word = "ok"
        except Skip as err:
            word = "ok"
            note = f" # SKIP {err}"
        except Exception as err:
            good = False
            word = "not ok"
            text = str(err) if isinstance(err, Failed) else \
                traceback.format_exc()
            for line in text.splitlines():
                print("# " + line)
        took = time.monotonic() - begin
        print(f"# {took:.2f} s", flush=True)
        print(f"{word} {number} - {test.__name__}{note}", flush=True)
    return good
