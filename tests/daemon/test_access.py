#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may what, with real users and groups; and clients that only cost time."""

import socket
import sys
import time

import node
from node import check, run, wait

READER, ADMIN = 60001, 60002    # ids that nothing else has
USER = 60010
GROUPS = f"xlb:x:{READER}:\nxlb-admin:x:{ADMIN}:\n"
# in a mount namespace of its own, where /etc/group has ours
START = """
mount --bind "$1" /etc/group && shift && exec "$@"
"""
CLIENTS = 200


def up(n):
    group = n.dir / "group"
    group.write_text("root:x:0:\nnogroup:x:65534:\n" + GROUPS)
    n.configure()
    n.xlbd = n.start("unshare", "-m", "sh", "-c", START, "sh", group,
                     node.BUILD / "src/xlbd", *n.options())
    n.ready()
    wait("the address to be announced", n.announced)


def xlb_as(n, groups, *args):
    """xlb by a user of these groups."""
    who = [f"--reuid={USER}", f"--regid={USER}"]
    who.append("--groups=" + ",".join(map(str, groups)) if groups
               else "--clear-groups")
    p = run(*n.inside("setpriv", *who, node.BUILD / "src/xlb", *n.options(),
                      *args), check=False)
    return p.returncode, p.stderr


def groups_decide(n):
    up(n)
    s = (n.dir / "run/xlb.sock").stat()
    check((s.st_mode & 0o777, s.st_uid, s.st_gid) == (0o660, 0, READER), s)
    for groups, reads, changes in (([], False, False), ([ADMIN], False, False),
                                   ([READER], True, False),
                                   ([READER, ADMIN], True, True)):
        rc, err = xlb_as(n, groups, "status")
        check(rc == (0 if reads else 1), groups, "status", rc, err)
        check(reads or "ermission denied" in err, err)
        for args in (("drain", "web/a"), ("undrain", "web/a"), ("reload",),
                     ("restart",), ("stop",)):
            if changes and args[0] in ("restart", "stop"):
                continue
            rc, err = xlb_as(n, groups, *args)
            check(rc == (0 if changes else 1), groups, args, rc, err)
            check(changes or "ermission denied" in err, err)
            check(not reads or changes or "xlb-admin" in err, err)
    check(n.announced(), "withdrawn")


def many_clients(n):
    """They connect, say half a word and wait: nothing else does."""
    up(n)
    idle = []
    for i in range(CLIENTS):
        s = socket.socket(socket.AF_UNIX)
        s.setblocking(False)
        try:
            s.connect(str(n.dir / "run/xlb.sock"))
            if i % 2:
                s.send(b'{"schema": 1, "comm')
        except BlockingIOError:
            pass    # the queue is full
        idle.append(s)
    run("ip", "-n", n.far, "link", "set", "eth0", "down")
    wait("the withdrawal", lambda: n.withdrawn(), 3)
    run("ip", "-n", n.far, "link", "set", "eth0", "up")
    asked = time.monotonic()
    rc, _, err = n.xlb("status")
    check(rc == 0, err)
    check(time.monotonic() - asked < 25, "the queue took",
          time.monotonic() - asked)
    for s in idle:
        s.close()
    wait("the address to be back", n.announced, 7)


CASES = (
    ("groups decide who reads and who changes", groups_decide),
    ("clients that only wait hold nothing up", many_clients),
)


if __name__ == "__main__":
    sys.exit(node.main(CASES))
