# SPDX-License-Identifier: GPL-2.0-or-later
"""xlbd is restarted, dies, and another one with another program takes over, while
numbered packets come at 100 000 a second: each of them is sent on, once, and no
route moves."""

import json
import shutil
import signal
import struct
import subprocess
import time

import fabric as fab
import lab
import pinned
import pytest
from test_supervised import NODE, nothing_moves, supervised

RATE = 100000
ADDRESS, UDP = "203.0.113.30", 9000
COUNT = lab.BPFFS / (lab.BPF_PREFIX + "count")


class Blast:
    """See blast.c: packets to the node out of the port that its link ends at."""

    def __init__(self, f, rate):
        self.p = f.start(
            "rack", "blast", f.program("tests/fabric/blast"), rate, NODE,
            mac(f, "rack", NODE), mac(f, NODE, "eth0"), ADDRESS,
            COUNT / "xlbf_seen", stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.last = self.heard()

    def heard(self):
        line = self.p.popen.stdout.readline()
        assert line, self.p.log.read_text()
        return json.loads(line)

    def rate(self):
        """Packets a second since the last time."""
        before = self.last
        self.p.popen.stdin.write(b"\n")
        self.p.popen.stdin.flush()
        self.last = self.heard()
        return (self.last["sent"] - before["sent"]) / (
            self.last["at"] - before["at"])

    def end(self):
        """(sent, lost) in all; none came twice."""
        self.p.popen.stdin.close()
        said = self.heard()
        assert self.p.exit() == 0 and said["again"] == 0, said
        return said["sent"], said["sent"] - said["received"]


@pytest.fixture
def counted(fabric):
    """What the node sends on of them is counted, and goes no further."""
    COUNT.mkdir()
    fabric.run(None, "bpftool", "prog", "loadall",
               fabric.build / "tests/fabric/count.bpf.o", COUNT, "pinmaps",
               COUNT)
    set_xdp(fabric, COUNT / "xlbf_count")
    try:
        yield fabric
    finally:
        fabric.set_xdp("rack", NODE, "xlbf_pass")
        fabric.run(None, "rm", "-r", COUNT)


def set_xdp(f, program):
    f.run("rack", "bpftool", "net", "attach", "xdpdrv", "pinned", program,
          "dev", NODE, "overwrite")


def mac(f, ns, name):
    return json.loads(f.run(ns, "ip", "-j", "link", "show",
                            name).stdout)[0]["address"]


def sent_on(f):
    """Packets of that service: those that were forwarded, and the others."""
    row = next(r for r in f.must(NODE, "stats", "--json").json["services"]
               if r["address"] == ADDRESS)
    return row["packets"], row["drops"]


def served(f):
    """A service for the packets; the pool of `www` has nothing to do with it."""
    f.write_config(NODE, f.config(NODE).replace("services:\n", f"""\
  blast:
    backends:
      - {{name: b1, address: {fab.POOL_ADDRESS["b1"]}}}
      - {{name: b2, address: {fab.POOL_ADDRESS["b2"]}}}
services:
  - {{name: blast, addresses: [{ADDRESS}], listen: [udp/{UDP}], pool: blast}}
"""))
    f.must(NODE, "reload")
    lab.wait("the way to the backends", lambda: all(
        b["eligible"] for b in f.pool(NODE, "blast").values()))


def bearable(f):
    """The rate at which nothing is lost where nothing happens."""
    rate = RATE
    while True:
        b = Blast(f, rate)
        time.sleep(2)
        got = b.rate()
        sent, lost = b.end()
        print(f"# without a restart: {sent} packets, {got:.0f} a second, "
              f"{lost} lost")
        if lost == 0:
            return rate
        rate //= 2
        assert rate > RATE / 20, "this machine loses packets by itself"


def forget_program(pins):
    """As if the pinned program were of another build: what is noted of it does
    not fit."""
    m = pinned.Map(pins / "saved")
    was = m.get(struct.pack("=I", 0))
    m.put(struct.pack("=I", 0), was[:8] + b"\x01\0\0\0" + was[12:])
    m.close()


def ways(f, unit):
    """How another xlbd comes: (name, function)."""
    def restart():
        f.must(NODE, "restart")
        f.wait_answer(NODE)

    def die():
        n = len(unit.starts)
        unit.signal(signal.SIGKILL)
        unit.wait_restart(n + 1)

    return ("xlb restart", restart), ("kill -9", die), ("xlb restart", restart)


def test_another_xlbd_under_load(counted):
    f = counted
    with supervised(f) as unit:
        served(f)
        link = next((lab.BPFFS / (lab.BPF_PREFIX + NODE) /
                     "links").iterdir())
        f.wait_settled()
        rate = bearable(f)
        before = sent_on(f)
        blast = Blast(f, rate)
        with nothing_moves(f):
            for how, another in ways(f, unit):
                id_, program, _ = pinned.link_info(link)
                forget_program(link.parents[1])
                another()
                print(f"# {how}, another program: {blast.rate():.0f} packets "
                      "a second meanwhile")
                now = pinned.link_info(link)
                assert now[0] == id_ and now[1] != program, \
                    "not replaced in place"
        sent, lost = blast.end()
        after = sent_on(f)
        print(f"# {sent} packets in all, {lost} lost")
        assert after[1] == before[1], "some were dropped"
        assert lost == 0 and after[0] - before[0] == sent


def test_one_that_cannot_take_over(counted, tmp_path):
    """As after a downgrade to another layout: it is asked before anything ends.
    The one that was there before is restarted into. That no packet is lost at the
    full rate is the other test's."""
    f, program = counted, tmp_path / "xlbd"

    def place(name):
        shutil.copy(f.program(name), tmp_path / "new")
        (tmp_path / "new").rename(program)

    place("xlbd")
    with supervised(f, program) as unit:
        served(f)
        link = next((lab.BPFFS / (lab.BPF_PREFIX + NODE) /
                     "links").iterdir())
        f.wait_settled()
        blast = Blast(f, RATE // 10)
        with nothing_moves(f):
            was, pid, started = (pinned.link_info(link), unit.pid,
                                 f.status(NODE)["started"])
            place("tests/daemon/xlbd_next")
            r = f.xlb(NODE, "restart")
            print(f"# {r.err.strip()}; {blast.rate():.0f} packets a second "
                  "meanwhile")
            assert r.exit == 1 and "maps: pinned with layout " in r.err
            assert (pinned.link_info(link), unit.pid, unit.state,
                    len(unit.starts), f.status(NODE)["started"]) == (
                        was, pid, "active", 1, started)
            place("xlbd")
            f.must(NODE, "restart")
            f.wait_answer(NODE)
            assert f.status(NODE)["started"] != started
            print(f"# restarted: {blast.rate():.0f} packets a second")
        sent, lost = blast.end()
        print(f"# {sent} packets in all, {lost} lost")
        assert lost == 0
