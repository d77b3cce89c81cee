# SPDX-License-Identifier: GPL-2.0-or-later
"""A thousand backends, each asked ten times a second: what that costs, and that
those which never answer delay nobody. The figures are printed; what is held of
them is wide, since others use this machine, too."""

import os
import pathlib
import time

import lab
import pytest
from fabric import HERE, PYTHON

NODE, CROWD = "10.98.0.1", "10.98.0.2"
NETWORK = "10.98.128.0/22"
VIP = "203.0.113.98"
BACKENDS = [f"10.98.{128 + i // 250}.{1 + i % 250}" for i in range(1000)]
HOLES = BACKENDS[::10]
SECONDS = 2.0           # that are measured
TICKS = os.sysconf("SC_CLK_TCK")


def config(via):
    members = ", ".join(f"{{name: b{i}, address: {a}}}"
                        for i, a in enumerate(BACKENDS))
    return f"""node: {{name: many}}
interfaces: [{{name: eth0}}]
maglev: {{key_file: {lab.RUN}/key}}
checks: {{c: {{type: tcp, port: 80, interval: 100ms, timeout: 90ms, rise: 1, \
fall: 3, via: {via}}}}}
pools: {{p: {{check: c, backends: [{members}]}}}}
services: [{{name: s, addresses: [{VIP}], listen: [tcp/80], pool: p}}]
metrics: {{listen: off}}
"""


def holds(f, change, addresses):
    """What the backends are, and unwrap packets for."""
    f.run("crowd", "ip", "-batch", "-", stdin="".join(
        f"address {change} {a}/32 dev lo\n" for a in addresses))
    f.decap("crowd", "attach", "eth0", "--from", NODE)


@pytest.fixture
def many(network):
    """A node, and one machine behind one next hop that is all backends."""
    f = network
    f.program("xlbd")
    for ns in ("many", "crowd"):
        f.netns(ns)
        f.prepare_stack(ns)
    f.link("many", "eth0", "crowd", "eth0", 1600)
    f.run("many", "ip", "address", "add", f"{NODE}/30", "dev", "eth0")
    f.run("crowd", "ip", "address", "add", f"{CROWD}/30", "dev", "eth0")
    f.run("many", "ip", "route", "add", NETWORK, "via", CROWD)
    holds(f, "add", [*BACKENDS, VIP])
    server = f.start("crowd", "accept", PYTHON, HERE / "accept_stub.py", 80)
    lab.wait("the server", lambda: "ready" in server.log.read_text())
    (lab.RUN / "key").write_text("00" * 16 + "\n")
    f.write_config("many", config("tunnel"))
    try:
        f.start_node("many")
        yield f
    finally:
        if "many" in f.daemon:
            f.daemon.pop("many").kill()
        server.kill()
        for ns in ("many", "crowd"):
            f.run(None, "ip", "netns", "del", lab.PREFIX + ns)
        f.run(None, "rm", "-r", lab.BPFFS / (lab.BPF_PREFIX + "many"))


def accepted():
    """In a namespace: TCP connections made to it so far."""
    names, values = [line.split() for line in pathlib.Path(
        "/proc/thread-self/net/snmp").read_text().splitlines()
        if line.startswith("Tcp:")]
    return int(values[names.index("PassiveOpens")])


def cpu_seconds(pid):
    field = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    return sum(int(x) for x in field.split()[11:13]) / TICKS


def helper(pid, name):
    """A descendant's pid."""
    for p in (todo := [pid]):
        todo += [int(c) for c in pathlib.Path(
            f"/proc/{p}/task/{p}/children").read_text().split()]
        if pathlib.Path(f"/proc/{p}/comm").read_text().strip() == name:
            return p
    raise lab.FabricError(f"{pid} has no {name}")


def measure(f, what):
    """Checks that passed in a second; prints what they cost."""
    pids = [f.daemon["many"].pid]
    pids.append(helper(pids[0], "xlb-prober"))
    start, n = time.monotonic(), lab.in_netns("crowd", accepted)
    cpu = [cpu_seconds(p) for p in pids]
    time.sleep(SECONDS)
    took = time.monotonic() - start
    rate = (lab.in_netns("crowd", accepted) - n) / took
    share = [100 * (cpu_seconds(p) - c) / took for p, c in zip(pids, cpu)]
    print(f"\n# {what}: {rate:.0f} tcp checks pass in a second: xlbd "
          f"{share[0]:.0f} %, prober {share[1]:.0f} % of a core; "
          f"{sum(share) * 10000 / rate:.0f} % in all for 10000")
    return rate


def healths(f):
    return [b["health"] for b in f.pool("many", "p").values()]


def wait_up(f, n):
    lab.wait(f"{n} backends to be up", lambda: healths(f).count("up") == n,
             60, lambda: healths(f).count("up"), pause=0.2)


def test_thousand_at_100ms(many):
    f = many
    wait_up(f, len(BACKENDS))
    tunnel = measure(f, "through the tunnel")
    holds(f, "del", HOLES)
    wait_up(f, len(BACKENDS) - len(HOLES))
    rest = measure(f, f"while {len(HOLES)} answer nothing")
    wait_up(f, len(BACKENDS) - len(HOLES))
    # the others do not wait for 100 timeouts each turn, which would be 9 s
    assert rest > 0.1 * tunnel
    holds(f, "add", HOLES)
    f.write_config("many", config("direct"))
    f.must("many", "reload")
    wait_up(f, len(BACKENDS))
    measure(f, "directly")
