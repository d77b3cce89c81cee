#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever is wrong with BIRD is named in xlb status, in the log and in a metric,
and is over when its cause is."""

import os
import signal
import sys

import node
import scrape
from node import VIP, check, run, wait
from scrape import wait_metric

OTHER = "203.0.113.11"
NOBODY = 65534


def configure(n, address=VIP):
    n.configure(address=address)
    n.file.write_text(n.file.read_text().replace(
        "metrics: {listen: off}", "metrics: {listen: 127.0.0.1:9555}"))


def start(n):
    """As the unit does: with no right to pass over what files allow."""
    n.xlbd = n.start("setpriv", "--bounding-set=-dac_override,-dac_read_search",
                     node.BUILD / "src/xlbd", *n.options())
    n.ready()
    wait("metrics", lambda: scrape.answers(n))


def up(n, **kw):
    configure(n, **kw)
    start(n)
    wait_metric(n, 1, "xlb_bird_status", status="synced")
    check(n.announced(), "not announced")


def named(n, status, *words, reason=None, seconds=10):
    """In all three places, and nothing else is."""
    wait_metric(n, 1, "xlb_bird_status", status=status, seconds=seconds)
    check(sum(scrape.scrape(n).all("xlb_bird_status").values()) == 1)
    _, text, _ = n.xlb("status")
    for w in (f"BIRD: {status}", *words):
        check(w in text, w, "is not in", text)
    check(f"-> {status}" in n.said(), f"-> {status}", "is not in", n.said())
    row = n.status()["addresses"][0]
    check(row["wanted"] and row["reason"] == (
        f"BIRD: {status}" if reason is None else reason), row)


def over(n, vip=VIP, seconds=10):
    wait_metric(n, 1, "xlb_bird_status", status="synced", seconds=seconds)
    wait("the address to be announced", lambda: n.announced(vip))
    check("BIRD: synced" in n.xlb("status")[1], n.xlb("status")[1])


def absent(n):
    """Ends, and dies."""
    up(n)
    for sig in (signal.SIGTERM, signal.SIGKILL):
        n.bird.send_signal(sig)
        n.bird.wait()
        named(n, "absent", "bird.ctl: ")
        n.start_bird()
        over(n)


def hung(n):
    up(n)
    n.bird.send_signal(signal.SIGSTOP)
    try:
        named(n, "hung", "no answer", seconds=15,
              reason="no BGP session exports it")
    finally:
        n.bird.send_signal(signal.SIGCONT)
    over(n)


def permission_denied(n):
    """The socket is another user's."""
    socket = n.dir / "bird.ctl"
    os.chown(socket, NOBODY, NOBODY)
    socket.chmod(0o600)
    configure(n)
    try:
        start(n)
        named(n, "permission denied", "bird.ctl: Permission denied "
              "(it is nobody:nogroup, mode 0600)")
    finally:
        os.chown(socket, 0, 0)
    over(n)


def not_included(n):
    up(n)
    n.stop_bird()
    whole = (n.dir / "bird.conf").read_text()
    (n.dir / "bare.conf").write_text(
        "router id 10.0.1.1;\nprotocol device { scan time 1; }\n")
    n.bird = n.start("bird", "-f", "-c", n.dir / "bare.conf", "-s",
                     n.dir / "bird.ctl", "-P", n.dir / "bird.pid")
    named(n, "xlb is not included", "does not include")
    (n.dir / "bare.conf").write_text(whole)
    check("Reconfigured" in n.birdc("configure"))
    over(n)
    n.stop_bird()
    n.start_bird()


def disabled(n):
    """By hand: it stays so, whatever has to be changed."""
    up(n)
    n.birdc('disable "xlb4"')
    named(n, "disabled", "protocol xlb4 was disabled by hand")
    configure(n, f"{VIP}, {OTHER}")
    check(n.xlb("reload")[0] == 0)
    wait("it to wait", lambda: "changes wait" in n.xlb("status")[1])
    check(n.withdrawn(), "announced against the operator's will")
    n.birdc('enable "xlb4"')
    over(n)
    wait("what waited", lambda: n.announced(OTHER))


def refused(n):
    """bird.conf is broken: what has to go stays for the other's sake, which is
    said and counted."""
    up(n, address=f"{VIP}, {OTHER}")
    conf = n.dir / "bird.conf"
    whole = conf.read_text()
    conf.write_text(whole + "this is not BIRD's language;\n")
    configure(n)
    check(n.xlb("reload")[0] == 0)
    try:
        named(n, "configuration refused", "1 routes have to go and BIRD keeps "
              "them", "bird.conf:", "syntax error",
              reason="no BGP session exports it")
        wait_metric(n, 1, "xlb_bird_stuck_routes")
        check(n.announced() and n.announced(OTHER), n.birdc("show route"))
    finally:
        conf.write_text(whole)
    over(n, seconds=30)
    check(n.withdrawn(OTHER), "the other one is still there")
    wait_metric(n, 0, "xlb_bird_stuck_routes")


def not_written(n):
    up(n)
    directory = n.dir / "bird"
    os.chown(directory, NOBODY, NOBODY)
    configure(n, OTHER)
    try:
        check(n.xlb("reload")[0] == 0)
        named(n, "include not written", "xlb4.conf", "Permission denied")
    finally:
        os.chown(directory, 0, 0)
    over(n, vip=OTHER, seconds=15)


def device_down(n):
    """The emergency stop: nobody works against it."""
    up(n)
    run("ip", "-n", n.ns, "link", "set", "xlb0", "down")
    named(n, "differs", "xlb0 is down")
    check(n.withdrawn(), "announced")
    run("ip", "-n", n.ns, "link", "set", "xlb0", "up")
    over(n)


CASES = (
    ("BIRD ends, or dies", absent),
    ("BIRD hangs", hung),
    ("its socket is another user's", permission_denied),
    ("bird.conf lacks the include line", not_included),
    ("a protocol of ours is disabled by hand", disabled),
    ("bird.conf is broken", refused),
    ("the include cannot be written", not_written),
    ("xlb0 is taken down", device_down),
)


if __name__ == "__main__":
    sys.exit(node.main(CASES))
