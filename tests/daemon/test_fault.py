#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel and the disk refuse: it is named with its limit, the rest is
done, what is dead is withdrawn, and all is as wanted when the fault is gone. And
what no clock and no reboot may change."""

import errno
import os
import shutil
import signal
import struct
import sys
import time

import node
from node import VIP, check, run, wait

import pinned  # noqa: E402

ERRORS = (errno.ENOMEM, errno.E2BIG, errno.EPERM, errno.EBUSY)
HINTS = {errno.EPERM: "CapabilityBoundingSet=", errno.EBUSY: "tried again"}
YEAR = 365 * 86400 * 10 ** 9


class Shim:
    """The orders of tests/daemon/shim.c."""

    def __init__(self, n):
        self.n, self.path = n, n.dir / "shim"
        self.order()

    def order(self, err=0, at=0, clock=0, pause_us=0):
        new = self.path.with_suffix(".new")
        data = struct.pack("=6q", clock, err, at, 0, 0, pause_us)
        if self.path.exists():
            with open(self.path, "r+b") as f:
                f.write(data)
        else:
            new.write_bytes(data)
            new.rename(self.path)

    def failed(self):
        return struct.unpack("=6q", self.path.read_bytes())[4]

    def start(self):
        before = os.environ.get("LD_PRELOAD", "")   # a build that counts lines
        self.n.start_xlbd(env={**os.environ, "XLB_SHIM": str(self.path),
                               "LD_PRELOAD": f"{before} "
                               f"{node.BUILD / 'tests/daemon/shim.so'}"})


def config(n, more):
    """A pool; with `more` another one behind another interface as well, and in
    the first a backend is down."""
    n.configure(interfaces="{name: eth0}", backends="{name: a, address: "
                "10.0.1.11}, {name: b, address: 10.0.1.12%s}" % (
                    ", state: down" if more else ""))
    if more:
        text = n.file.read_text()
        n.file.write_text(text.replace("pools: {", "pools: {other: {backends: "
                                       "[{name: c, address: 10.0.2.11}]}, ")
                          .replace("services: [", "services: [{name: more, "
                                   "addresses: [203.0.113.11], listen: "
                                   "[tcp/80], pool: other}, "))


def second_link(n):
    n.link("eth1")
    run("ip", "-n", n.ns, "addr", "add", "10.0.2.1/24", "dev", "eth1")
    run("ip", "-n", n.far, "addr", "add", "10.0.2.11/24", "dev", "eth1")


def off_the_dead(n):
    """No slot names the backend that is down."""
    rings = pinned.state_dump(n.bpf)["rings"]
    check("10.0.1.12" not in rings["web"]["slots"], "the dead one has slots")


class EachCall:
    """From one configuration to the other, time and again; each time another
    call of the plan fails."""

    def __init__(self, n, shim):
        self.n, self.shim, self.want = n, shim, {}

    def go(self, more):
        config(self.n, more)
        return self.n.xlb("reload")[0]

    def whole(self, more):
        return not pinned.differences(self.want[more],
                                      pinned.state_dump(self.n.bpf))

    def learn(self, more):
        """What it comes to where nothing fails."""
        check(self.go(more) == 0, self.n.said())
        wait("the neighbours to be known", lambda: all(
            b["eligible"] for p in self.n.status()["pools"]
            for b in p["backends"] if b["state"] == "active"))
        self.want[more] = pinned.state_dump(self.n.bpf)

    @staticmethod
    def named(err, said):
        """What tidies up behind a plan is one of the calls as well."""
        return os.strerror(err) in said and (
            HINTS.get(err, "") in said or
            f"no grace period: {os.strerror(err)}" in said)

    def fail(self, more, at):
        """True: there was such a call."""
        n, err = self.n, ERRORS[at % 4]
        self.go(not more)
        wait("the other one to be whole", lambda: self.whole(not more))
        since = len(n.said())
        self.shim.order(err=err, at=at)
        self.go(more)
        # some of it has to wait until the neighbour is known
        wait("the fault, or all to be done", lambda: self.shim.failed() or
             self.whole(more))
        failed = self.shim.failed()
        if more:
            off_the_dead(n)
        check(n.announced(), "withdrawn")
        if failed:
            wait("it to be named", lambda: self.named(err, n.said()[since:]))
        self.shim.order()
        self.go(more)
        wait("all to be as wanted", lambda: self.whole(more), 8)
        return failed


def each_call_fails(n):
    second_link(n)
    shim = Shim(n)
    config(n, False)
    shim.start()
    wait("the address to be announced", n.announced)
    each = EachCall(n, shim)
    for more in (True, False):
        each.learn(more)
    for more in (True, False):
        at = 0
        while each.fail(more, at):
            at += 1
        check(at > 2, f"{at} calls failed")
    check("not tried: an operation that it needs failed" in n.said())
    run("ip", "-n", n.ns, "link", "del", "eth1")


def every_call_fails(n):
    """Nothing can be written but what is mapped: what is dead goes all the
    same."""
    shim = Shim(n)
    config(n, False)
    shim.start()
    wait("the address to be announced", n.announced)
    for err in ERRORS:
        shim.order(err=err, at=-1)
        n.configure(backends="{name: a, address: 10.0.1.11, state: down}, "
                    "{name: b, address: 10.0.1.12, state: down}")
        n.xlb("reload")
        wait("the withdrawal", lambda: n.withdrawn(), 2)
        off_the_dead(n)
        shim.order()
        config(n, False)
        check(n.xlb("reload")[0] == 0, n.said())
        wait("the address to be back", n.announced)


def another_pool(n):
    n.file.write_text(n.file.read_text().replace(
        "pools: {", "pools: {other: {backends: [{name: a, address: "
        "10.0.1.12}]}, ").replace(
            "services: [", "services: [{name: more, addresses: "
            "[203.0.113.11], listen: [tcp/80], pool: other}, "))


def withdrawals_go_first(n):
    """BIRD no longer has the address before the first call that changes maps,
    however long that takes; its file in any case. BIRD has to answer within ten
    milliseconds, which one that gets no processor does not."""
    shim = Shim(n)
    config(n, False)
    shim.start()
    for left in (2, 1, 0):
        wait("the address to be announced", n.announced)
        shim.order(pause_us=6000000)
        n.configure(backends="{name: a, address: 10.0.1.11, state: down}, "
                    "{name: b, address: 10.0.1.12, state: down}")
        another_pool(n)
        asked = n.xlb_start("reload")
        wait("the file", lambda: VIP not in n.routes.read_text(), 4)
        time.sleep(0.3)
        gone = n.withdrawn()
        check(asked.poll() is None, "the maps were as fast")
        shim.order()
        check(asked.wait(60) == 0, n.said())
        if gone:
            return
        check(left > 0, "BIRD was not told")
        config(n, False)
        check(n.xlb("reload")[0] == 0, n.said())


def only_what_is_committed(n):
    """A pool whose ring cannot be made is announced by no address, however
    healthy it is; what was announced before stays."""
    shim = Shim(n)
    config(n, False)
    shim.start()
    wait("the address to be announced", n.announced)
    another_pool(n)
    for err in ERRORS:
        shim.order(err=err, at=-1)
        rc, _, said = n.xlb("reload")
        check(rc == 1 and "operations on the maps failed" in said, rc, said)
        pool = next(p for p in n.status()["pools"] if p["name"] == "other")
        check(pool["ready"], pool)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            check(n.withdrawn("203.0.113.11"), "announced")
            check(n.announced(), "the other one was withdrawn")
            time.sleep(0.05)
    shim.order()
    wait("the new address", lambda: n.announced("203.0.113.11"))


def clock_jumps(n):
    """Nothing goes by the clock on the wall but the times that people read."""
    n.listen_far(80, 11, 12)
    shim = Shim(n)
    # a busy machine may be late with one
    n.configure(pool="check: c, ", more="checks: {c: {type: tcp, via: direct, "
                "interval: 100ms, timeout: 90ms, fall: 20}}", bgp=node.BGP.replace(
                    "hold: 0s", "hold: 1s"))
    shim.start()
    wait("the address to be announced", n.announced)
    n.xlb("drain", "web/b")
    before = pinned.state_dump(n.bpf)
    since = len(n.said())
    for jump in (YEAR, -YEAR, -60 * 10 ** 9, 0):
        shim.order(clock=jump)
        year = time.gmtime(time.time() + jump / 10 ** 9).tm_year
        check(n.status()["time"].startswith(str(year)), n.status()["time"])
        time.sleep(1)
        check(n.announced() and n.status()["forwarding"], "withdrawn")
        check([b["eligible"] for b in n.status()["pools"][0]["backends"]] ==
              [True, False], n.status())
    check(n.said()[since:] == "", n.said()[since:])
    check(not pinned.differences(before, pinned.state_dump(n.bpf)))
    check(n.xlb("undrain", "web/b")[0] == 0)


class Full:
    """A file system of its own on a directory: full, or read-only."""

    def __init__(self, path, kind):
        self.path, self.kind = path, kind

    def __enter__(self):
        kept = {p: p.read_bytes() for p in self.path.iterdir() if p.is_file()}
        run("mount", "-t", "tmpfs", "-o", "size=64k,mode=755", "xlb",
            self.path)
        for p, data in kept.items():
            p.write_bytes(data)
        if self.kind == "full":
            try:
                with open(self.path / "junk", "wb", 0) as f:
                    while f.write(b"x" * 4096):
                        pass
            except OSError as e:
                check(e.errno == errno.ENOSPC, e)
        else:
            run("mount", "-o", "remount,ro", self.path)

    def __exit__(self, *_):
        run("umount", "-l", self.path)


def disk_is_full(n):
    """What cannot be kept is in force all the same, and said."""
    config(n, False)
    n.start_xlbd()
    wait("the address to be announced", n.announced)
    for kind, text in (("full", "No space left on device"),
                       ("read-only", "Read-only file system")):
        with Full(n.dir / "state", kind):
            rc, _, err = n.xlb("drain", "web/a")
            check(rc == 1 and "in force, but not kept for a restart" in err and
                  text in err, rc, err)
            check(n.status()["pools"][0]["backends"][0]["state"] == "drain")
            n.configure(listen="tcp/80, tcp/81")
            rc, _, err = n.xlb("reload")
            check(rc == 0 and "is not kept for a start" in err, rc, err)
            config(n, False)
            check(n.xlb("reload")[0] == 0)
        check(n.xlb("undrain", "web/a")[0] == 0)
    check(n.announced(), "withdrawn")


def routes_cannot_be_written(n):
    """A VIP that has to go is not kept by a full disk, nor by a read-only one."""
    config(n, False)
    n.start_xlbd()
    wait("the address to be announced", n.announced)
    for kind in ("full", "read-only"):
        with Full(n.dir / "bird", kind):
            n.xlb("drain", "node")
            wait("the withdrawal", lambda: n.withdrawn(), 8)
            check("bird" in n.xlb("status")[1])
        check(n.xlb("undrain", "node")[0] == 0)
        wait("the address to be back", n.announced, 15)


def run_is_read_only(n):
    config(n, False)
    (n.dir / "run").mkdir(exist_ok=True)
    with Full(n.dir / "run", "read-only"):
        p = n.start(node.BUILD / "src/xlbd", *n.options())
        check(p.wait(60) == 1, "exit status", p.returncode)
        check(f"{n.dir}/run" in n.said() and "Read-only file system" in
              n.said(), n.said())
    check(not n.bpf.exists(), "something was made")


def reboot(n):
    """What is left is the state directory: who was drained, and since when."""
    config(n, False)
    n.start_xlbd()
    wait("the address to be announced", n.announced)
    check(n.xlb("drain", "web/a")[0] == 0)
    kept = n.status()["pools"][0]["backends"][0]
    n.xlbd.send_signal(signal.SIGKILL)
    n.xlbd.wait()
    shutil.rmtree(n.bpf)
    shutil.rmtree(n.dir / "run")
    for f in (n.dir / "bird").iterdir():
        f.unlink()
    n.birdc("configure")
    n.start_xlbd()
    row = n.status()["pools"][0]["backends"][0]
    check((row["state"], row["since"]) == ("drain", kept["since"]), kept, row)
    check("overrides" not in n.said()[-2000:], n.said())
    wait("the address to be announced", n.announced)
    check(VIP in n.routes.read_text())


CASES = (
    ("each call of a plan fails in turn", each_call_fails),
    ("every call fails: what is dead goes", every_call_fails),
    ("withdrawals go first", withdrawals_go_first),
    ("what is not in the maps is not announced", only_what_is_committed),
    ("the clock jumps", clock_jumps),
    ("the state directory is full, or read-only", disk_is_full),
    ("BIRD's directory is full, or read-only", routes_cannot_be_written),
    ("a read-only run directory is named", run_is_read_only),
    ("a reboot forgets no drain", reboot),
)


if __name__ == "__main__":
    sys.exit(node.main(CASES))
