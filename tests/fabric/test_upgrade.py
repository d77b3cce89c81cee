# SPDX-License-Identifier: GPL-2.0-or-later
"""Another xlbd with another program takes over while packets come as fast as this
machine sends them: each of them is forwarded."""

import json
import pathlib
import struct
import subprocess

import fabric as fab
import lab
import pinned
from route_watch import Routes
from test_nodes import restart

NODE = "lb1"
FLOOD = "203.0.113.30"
STREAMS = pathlib.Path(__file__).parent / "streams.py"


def link(f, ns, name):
    return json.loads(f.run(ns, "ip", "-j", "-s", "link", "show",
                            name).stdout)[0]


def sent_on(f):
    """Packets of that service: those that were forwarded, and the others."""
    row = next(r for r in f.must(NODE, "stats", "--json").json["services"]
               if r["address"] == FLOOD)
    return row["packets"], row["drops"]


def forget_program(pins):
    """As if the pinned program were of another build: what is noted of it does
    not fit."""
    m = pinned.Map(pins / "saved")
    was = m.get(struct.pack("=I", 0))
    m.put(struct.pack("=I", 0), was[:8] + b"\x01\0\0\0" + was[12:])
    m.close()


def test_program_is_replaced_under_load(fabric):
    f = fabric
    pins = lab.BPFFS / (lab.BPF_PREFIX + NODE)
    # nobody answers there: what the backends do with it is not the point
    f.write_config(NODE, f.config(NODE).replace("services:\n", f"""\
  flood:
    backends:
      - {{name: b1, address: {fab.POOL_ADDRESS["b1"]}}}
      - {{name: b2, address: {fab.POOL_ADDRESS["b2"]}}}
services:
  - {{name: flood, addresses: [{FLOOD}], listen: [tcp/80], pool: flood}}
"""))
    f.must(NODE, "reload")
    lab.wait("the way to the backends", lambda: all(
        b["eligible"] for b in f.pool(NODE, "flood").values()))
    at = next((pins / "links").iterdir())
    before, dropped = sent_on(f), link(f, "rack", NODE)["stats64"]["tx"]
    p = f.start("rack", "blast", fab.PYTHON, STREAMS, "blast", NODE,
                link(f, "rack", NODE)["address"], link(f, NODE,
                                                       "eth0")["address"],
                FLOOD, 80, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with Routes(lab.NETNS / (lab.PREFIX + "router")) as routes:
        p.popen.stdout.readline()
        for _ in range(3):
            id_, program, _ = pinned.link_info(at)
            forget_program(pins)
            restart(f, NODE)
            now = pinned.link_info(at)
            assert now[0] == id_ and now[1] != program, "not replaced in place"
        p.popen.stdin.close()
        said = json.loads(p.popen.stdout.readline())
        assert p.exit(30) == 0
    moved = [e for v in (4, 6) for e in routes.of(fab.VIP[v])]
    assert not moved, moved
    after = sent_on(f)
    lost = link(f, "rack", NODE)["stats64"]["tx"]["dropped"] - \
        dropped["dropped"]
    forwarded = after[0] - before[0]
    print(f"# {said['sent']} packets, {said['sent'] / said['seconds']:.0f} a "
          f"second, {forwarded} forwarded; for {lost} more the device had no "
          f"room")
    assert after[1] == before[1], "some were dropped"
    assert forwarded == said["sent"]
    assert said["sent"] / said["seconds"] > 5000, "hardly a stream"
