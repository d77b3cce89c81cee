#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""io/notify and io/tun: against a notify socket of ours, against managers that
do not answer, and with the unit file in a real systemd."""

import array
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from rig import BUILD, Skip, at_end, check, run, scratch, skip_all, \
    wait_for

NOTIFIED = os.path.join(os.path.abspath(BUILD), "tests/bird/notified")
UNIT = os.path.join(os.path.abspath(BUILD), "etc/xlb.service")
PIN_DIR = "/sys/fs/bpf/xlbbird"

# In a mount namespace of its own, so that the host sees nothing of it. What is
# made in /run is what the machine's own systemd would have made.
MANAGER = """
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 run /run
mkdir -p /run/systemd/system /run/xlb-bird /run/systemd/inaccessible/dir
cd /run/systemd/inaccessible
touch reg sock
mkfifo fifo
mknod chr c 0 0
mknod blk b 0 0
cp -a /etc/group {dir}/group
for g in xlb bird; do
	grep -q "^$g:" {dir}/group || echo "$g:x:9$(printf %d "'$g"):" >> {dir}/group
done
mount --bind {dir}/group /etc/group
exec /lib/systemd/systemd --user --log-target=console
"""


class Lab:
    def __init__(self):
        self.dir = scratch()
        at_end(self.close)
        self.manager = None
        self.managed = False
        self.ns = f"xlbbn{os.getpid()}"
        subprocess.run(["ip", "netns", "add", self.ns], check=True)

    def events(self, pattern):
        try:
            with open(self.dir + "/events", encoding="ascii") as f:
                return re.findall(pattern, f.read(), re.M)
        except FileNotFoundError:
            return []

    def enter(self, *args):
        return ["nsenter", f"--net=/run/netns/{self.ns}", *args]

    def link(self):
        text = subprocess.run(
            self.enter("ip", "-o", "link", "show", "xlb0"), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            check=False).stdout
        return text.split(":")[0] if text else None

    def systemctl(self, *args, ok=True):
        proc = subprocess.run(
            ["nsenter", "-t", str(self.manager.pid), "-m", "systemctl",
             "--user", *args], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False, timeout=90,
            env={**os.environ, "XDG_RUNTIME_DIR": self.dir})
        check(not ok or proc.returncode == 0,
              f"systemctl {args}: {proc.stdout}")
        return proc.stdout.strip()

    def show(self, prop):
        return self.systemctl("show", "-P", prop, "xlb.service")

    def close(self):
        if self.manager is not None:
            try:
                self.systemctl("stop", "xlb.service", ok=False)
            finally:
                self.manager.kill()
                self.manager.wait()
            self.manager = None
        subprocess.run(["ip", "netns", "del", self.ns], check=False)
        shutil.rmtree(PIN_DIR, ignore_errors=True)


def start_alone(lab, notify=None, *args):
    env = {k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"}
    if notify is not None:
        env["NOTIFY_SOCKET"] = notify
    return subprocess.Popen(lab.enter(NOTIFIED, lab.dir + "/events", *args),
                            env=env, stderr=subprocess.DEVNULL)


def messages(sock, n):
    """n datagrams with the descriptors that came with them; no watchdogs."""
    got = []
    sock.settimeout(60)
    while len(got) < n:
        data, anc, _, _ = sock.recvmsg(4096, socket.CMSG_SPACE(4 * 8))
        fds = array.array("i")
        for level, kind, body in anc:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(body[:len(body) - len(body) % fds.itemsize])
        if data != b"WATCHDOG=1":
            got.append((data.decode().strip(), list(fds)))
    return got


def what_the_manager_is_told(lab):
    path = lab.dir + "/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(path)
        proc = start_alone(lab, path)
        (m1, _), (m2, fds), (m3, _) = messages(sock, 3)
        check(m1 == "FDSTOREREMOVE=1\nFDNAME=xlb0", m1)
        check(m2 == "FDSTORE=1\nFDNAME=xlb0\nFDPOLL=0", m2)
        check(len(fds) == 1, f"{len(fds)} descriptors")
        # a status cannot smuggle another assignment in
        check(m3 == "READY=1\nSTATUS=2 services READY=0", m3)
        check(lab.link() is not None, "xlb0 is there")
        proc.kill()
        proc.wait()
        check(lab.link() is not None, "and held by the stored descriptor")
        # we are the manager: give it back, as LISTEN_FDS says it
        first = lab.link()
        env = dict(os.environ, NOTIFY_SOCKET=path)
        proc = subprocess.Popen(
            lab.enter("sh", "-c", f"exec 3<&{fds[0]}; LISTEN_FDS=1 "
                      "LISTEN_FDNAMES=xlb0 LISTEN_PID=$$ exec "
                      f"{NOTIFIED} {lab.dir}/events"),
            env=env, pass_fds=fds, stderr=subprocess.DEVNULL)
        os.close(fds[0])
        (m, _), = messages(sock, 1)
        check(m.startswith("READY=1"), "nothing to store: " + m)
        check(lab.events("start stored ifindex " + first), "the same device")
        proc.terminate()
        (m, _), = messages(sock, 1)
        check(m == "STOPPING=1", m)
        proc.wait()
    os.unlink(path)
    check(lab.link() is None, "xlb0 is gone with its last holder")


def a_useless_descriptor_is_replaced(lab):
    for prepare in ("exec 3</dev/null",            # no tun at all
                    "exec 3<>/dev/net/tun"):       # one without a device
        n = len(lab.events("start new"))
        proc = subprocess.Popen(
            lab.enter("sh", "-c", f"{prepare}; LISTEN_FDS=1 "
                      "LISTEN_FDNAMES=xlb0 LISTEN_PID=$$ exec "
                      f"{NOTIFIED} {lab.dir}/events"),
            stderr=subprocess.DEVNULL)
        wait_for("start", 5, lambda: len(lab.events("start new")) == n + 1)
        proc.terminate()
        check(proc.wait(60) == 0, "it ran")


def only_one_holds_the_device(lab):
    first = start_alone(lab)
    wait_for("xlb0", 5, lab.link)
    second = start_alone(lab)
    check(second.wait(60) == 1, "the second one fails")
    first.terminate()
    first.wait(60)


def jobs_without_an_answer(lab):
    """(manager, milliseconds at most)"""
    path = lab.dir + "/m"
    os.mkdir(path)

    def ask(notify, bound):
        n = len(lab.events("^job"))
        check(start_alone(lab, notify, "job").wait(60) == 0, "it ran")
        job, ms = lab.events(r"^job (\w+) (\d+)")[n]
        print(f"# {job} after {ms} ms")
        check(job == "none" and int(ms) <= bound, f"{job} after {ms} ms")

    # half a second is waited, and no 25
    ask(None, 400)                      # no service manager
    ask(path + "/notify", 5000)         # one without a socket of its own
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path + "/private")
        sock.listen(4)
        ask(path + "/notify", 5000)     # accepts and says nothing


def start_manager(lab):
    with open(UNIT, encoding="ascii") as f:
        unit = f.read()
    check("ExecStart=" in unit and "FileDescriptorStoreMax=8" in unit, "unit")
    unit = re.sub("^(Wants|After|ExecReload)=.*", "", unit, flags=re.M)
    # the build tree may be in /tmp, which PrivateTmp= hides
    program = shutil.copy(NOTIFIED, lab.dir)
    unit = re.sub("^ExecStart=.*", f"ExecStart={program} {lab.dir}/events "
                  "sandbox",
                  unit, flags=re.M)
    # a build that counts lines does it there
    counts = os.path.dirname(os.environ.get("LLVM_PROFILE_FILE", ""))
    unit = unit.replace("=-/run/xlb-bird", f"=/run/xlb-bird {lab.dir}" +
                        (f" -{counts}" if counts else ""))
    os.mkdir(lab.dir + "/units")
    with open(lab.dir + "/units/xlb.service", "w", encoding="ascii") as f:
        f.write(unit)
    for name in ("default", "sysinit", "basic", "shutdown"):
        with open(f"{lab.dir}/units/{name}.target", "w",
                  encoding="ascii") as f:
            f.write("[Unit]\nDefaultDependencies=no\n")
    os.unlink(lab.dir + "/events")
    with open(lab.dir + "/log", "w", encoding="ascii") as log:
        lab.manager = subprocess.Popen(
            lab.enter("unshare", "-m", "sh", "-c",
                      MANAGER.format(dir=lab.dir)), stdout=log, stderr=log,
            env={**os.environ, "XDG_RUNTIME_DIR": lab.dir,
                 "SYSTEMD_UNIT_PATH": lab.dir + "/units"})
    wait_for("the manager", 10, lambda:
             os.path.exists(lab.dir + "/systemd/private") or
             lab.manager.poll() is not None)


def the_unit_starts(lab):
    if not os.path.exists("/lib/systemd/systemd"):
        raise Skip("no systemd")
    start_manager(lab)
    if lab.manager.poll() is not None:
        lab.manager = None
        raise Skip("systemd does not run here")
    lab.managed = True
    lab.systemctl("start", "xlb.service")
    check(lab.show("ActiveState") == "active", "active")
    check(lab.show("StatusText") == "2 services READY=0", "its status")
    check(lab.show("NFileDescriptorStore") == "1", "xlb0 is stored")
    check(lab.events("start new"), "made anew")


def needs_manager(lab):
    if not lab.managed:
        raise Skip("no systemd was started")


def the_sandbox_leaves_what_is_needed(lab):
    needs_manager(lab)
    line = (lab.events("^map .*") or ["it never started"])[0]
    print("# " + line)
    check(line == "map 1 pin 0 include 0 groups 2 etc 0 sysctl 0 kernel 0",
          line)
    check(os.path.exists(PIN_DIR + "/map"), "the pin is seen outside")


def a_crash_keeps_the_device(lab):
    needs_manager(lab)
    for sig in ("SIGKILL", "SIGABRT"):
        before, n = lab.link(), len(lab.events("start stored"))
        lab.systemctl("kill", "--kill-whom=main", "-s", sig, "xlb.service")
        wait_for("started again", 5, lambda:
                 len(lab.events("start stored")) == n + 1)
        check(lab.link() == before, "the same ifindex")
        wait_for("active", 5, lambda: lab.show("ActiveState") == "active")


def restart_and_stop_are_told_apart(lab):
    needs_manager(lab)
    before = lab.link()
    lab.systemctl("restart", "xlb.service")
    check(lab.events(r"^job (\w+)")[-1] == "restart", "restart")
    check(lab.link() == before, "restart keeps the device")
    n = len(lab.events("^job"))
    pid = int(lab.show("MainPID"))
    os.kill(pid, signal.SIGTERM)        # nobody's job
    wait_for("answer", 5, lambda: len(lab.events("^job")) > n)
    check(lab.events(r"^job (\w+)")[-1] == "none", "a plain SIGTERM")
    wait_for("it ends", 5, lambda: lab.show("ActiveState") != "active")
    lab.systemctl("start", "xlb.service")
    lab.systemctl("stop", "xlb.service")
    job, ms = lab.events(r"^job (\w+) (\d+)")[-1]
    check(job == "stop", f"{job} at a stop")
    print(f"# asked within {ms} ms")
    wait_for("xlb0 gone", 5, lambda: lab.link() is None)


def a_watchdog_loop_ends(lab):
    """The limit of starts trips, and then the device goes too."""
    needs_manager(lab)
    lab.systemctl("reset-failed", "xlb.service", ok=False)
    lab.systemctl("start", "xlb.service")
    for _ in range(12):
        if lab.show("ActiveState") == "failed":
            break
        lab.systemctl("kill", "--kill-whom=main", "-s", "SIGKILL",
                      "xlb.service", ok=False)
        wait_for("restart or end", 5, lambda: lab.show("ActiveState") in
                 ("active", "failed") and
                 lab.show("SubState") != "auto-restart")
        time.sleep(0.1)
    check(lab.show("ActiveState") == "failed", lab.show("ActiveState"))
    wait_for("xlb0 gone", 5, lambda: lab.link() is None)


def main():
    if os.geteuid() != 0:
        skip_all("makes network namespaces: needs root")
    if not os.path.exists("/dev/net/tun"):
        skip_all("no /dev/net/tun")
    tests = [what_the_manager_is_told, a_useless_descriptor_is_replaced,
             only_one_holds_the_device, jobs_without_an_answer]
    managed = [the_unit_starts, the_sandbox_leaves_what_is_needed,
               a_crash_keeps_the_device, restart_and_stop_are_told_apart,
               a_watchdog_loop_ends]
    sys.exit(not run(tests + managed, Lab()))


if __name__ == "__main__":
    main()
