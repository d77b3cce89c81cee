# SPDX-License-Identifier: GPL-2.0-or-later
"""A small data centre in network namespaces.

    client ---- router ---- rack (a bridge) ---- lb1, lb2 (xlbd + BIRD)
                  |                        `---- b1, b2 (nginx, xlb-decap)
                  `-------- b3, a backend one hop further

The router speaks BGP with both nodes and spreads flows over their paths. The
backends hold the VIPs on lo and answer the client through the router.
"""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import ask
import lab
import pinned
from lab import FabricError, wait

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"

NODES = ("lb1", "lb2")
BACKENDS = ("b1", "b2", "b3")
VIP = {4: "203.0.113.10", 6: "2001:db8:5::10"}
PORT = 80
NODE_AS, ROUTER_AS = 65001, 65000
KEY = "000102030405060708090a0b0c0d0e0f"  # the same flows at every run
# Two seconds, instead of the 300 ms of `xlb bird-config`: a machine that stands
# still for so long would end all sessions at once.
BFD = "interval 500 ms; multiplier 4;"

# namespace: (network number, host number); 254 is the router in each network.
PLACE = {"client": (0, 10), "lb1": (1, 1), "lb2": (1, 2), "b1": (1, 11),
         "b2": (1, 12), "b3": (3, 13)}
ROUTER_HOST = 254
ROUTER_IF = {0: "client", 1: "rack", 3: "far"}
# Room for an outer header. A veth whose peer runs XDP takes no more than 3506.
MTU = {0: 1500, 1: 1600, 3: 1600}


def address4(net, host):
    return f"10.99.{net}.{host}"


def address6(net, host):
    return f"2001:db8:99:{net}::{host:x}"


def address(ns, family):
    return (address4 if family == 4 else address6)(*PLACE[ns])


# The address that the pool has for a backend: both families, so every mix of
# VIP and backend is in the fabric.
POOL_ADDRESS = {"b1": address("b1", 4), "b2": address("b2", 4),
                "b3": address("b3", 6)}


@dataclasses.dataclass
class Request:
    start: float  # seconds since boot
    ms: float
    status: int
    backend: str
    error: str
    port: int  # the client's
    conn: int  # a kept connection's number, else None

    @property
    def ok(self):
        return self.error is None and self.status == 200


@dataclasses.dataclass
class Answer:
    exit: int
    out: str
    err: str

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError:
            raise FabricError(
                f"no JSON (exit {self.exit}): {self.out}{self.err}") from None


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def shares(requests):
    """{backend: number of good answers}, sorted by name."""
    count = {}
    for r in requests:
        if r.ok:
            count[r.backend] = count.get(r.backend, 0) + 1
    return dict(sorted(count.items()))


class Load:
    """A client that goes on until stop()."""

    def __init__(self, lab_, argv):
        self.out = lab.RUN / "client" / f"load-{time.monotonic_ns()}.jsonl"
        with open(self.out, "wb") as out:
            self.process = lab_.start("client", "load", *argv, stdout=out,
                                      stdin=subprocess.PIPE)

    def rows(self):
        text = self.out.read_text()
        return [Request(**json.loads(line)) for line in
                text[:text.rfind("\n") + 1].splitlines()]

    def over(self, since=None):
        """How many requests are over, of those that began after `since`."""
        if since is None:
            return self.out.read_bytes().count(b"\n")
        return sum(r.start > since for r in self.rows())

    def wait_for(self, n, since=None):
        """Until n more requests are over; with `since`: n that began after it,
        since any number of others may have been on their way."""
        base = self.over() if since is None else 0
        wait(f"{n} more requests", lambda: self.over(since) >= base + n, 60,
             lambda: self.over(since) - base, 0.05)

    def wait_kept(self, n, since=0.0):
        """Until each of n kept connections was answered after `since`."""
        wait(f"answers on {n} kept connections", lambda: len(
            {r.conn for r in self.rows() if r.ok and r.conn is not None
             and r.start > since}) >= n, 60,
            lambda: [r for r in self.rows() if not r.ok][:3], 0.1)

    def stop(self):
        self.process.popen.stdin.close()
        status = self.process.exit()
        if status != 0:
            raise FabricError(f"the client ended with {status}: see "
                              f"{self.process.log}")
        return self.rows()


class Fabric(lab.Lab):
    def __init__(self, build=None, say=None):
        super().__init__(say)
        self.build = pathlib.Path(
            build or os.environ.get("XLB_BUILD") or HERE.parents[1] / "build")
        self.daemon = {}  # node: its xlbd
        self.bird_process = {}  # node or "router"
        self.nginx = {}

    def program(self, name):
        for path in (self.build / name, self.build / "src" / name):
            if path.is_file():
                return path
        raise FabricError(f"{name} is not built in {self.build}")

    # ---- the network ------------------------------------------------------

    def build_network(self):
        for ns in ("router", "rack", *PLACE):
            self.netns(ns)
            self.prepare_stack(ns)
        self.link("router", ROUTER_IF[0], "client", "eth0", MTU[0])
        self.link("router", ROUTER_IF[1], "rack", "router", MTU[1])
        self.link("router", ROUTER_IF[3], "b3", "eth0", MTU[3])
        for ns in ("lb1", "lb2", "b1", "b2"):
            self.link("rack", ns, ns, "eth0", MTU[1])
        self.run("rack", "ip", "link", "add", "br0", "mtu", MTU[1], "type",
                 "bridge", "mcast_snooping", "0")
        for port in ("router", "lb1", "lb2", "b1", "b2"):
            self.plug(port)
        self.run("rack", "ip", "link", "set", "br0", "up")
        for net, name in ROUTER_IF.items():
            self.give("router", name, net, ROUTER_HOST)
        for ns, (net, host) in PLACE.items():
            self.give(ns, "eth0", net, host)
            self.run(ns, "ip", "route", "add", "default", "via",
                     address4(net, ROUTER_HOST))
            self.run(ns, "ip", "-6", "route", "add", "default", "via",
                     address6(net, ROUTER_HOST))
        self.load_veth_programs()
        for ns in NODES:
            self.set_xdp("rack", ns, "xlbf_pass")

    def plug(self, port):
        """Into the bridge; a port that was taken out has lost its flags."""
        self.run("rack", "ip", "link", "set", port, "master", "br0")
        if port in NODES:
            # As a NIC that takes what is for it alone: what a bridge floods,
            # since it forgets who was behind a port that went down, would
            # reach the program of every node.
            self.run("rack", "ip", "link", "set", port, "type",
                     "bridge_slave", "flood", "off")

    def floods(self):
        """The nodes that get what is for others."""
        links = json.loads(self.run("rack", "ip", "-d", "-j", "link", "show",
                                    "master", "br0").stdout)
        return [x["ifname"] for x in links if x["ifname"] in NODES
                and x["linkinfo"]["info_slave_data"]["flood"]]

    def prepare_stack(self, ns):
        """Before there is a device: no wait for duplicate addresses."""
        keys = ["net.ipv6.conf.all.accept_dad=0",
                "net.ipv6.conf.default.accept_dad=0",
                "net.ipv6.conf.default.accept_ra=0"]
        if ns == "router":
            keys += ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1",
                     "net.ipv4.fib_multipath_hash_policy=1",
                     "net.ipv6.fib_multipath_hash_policy=1"]
        if ns == "client":
            # A veth carries the socket's hash along, and the router's choice
            # goes by it; a new one after a retransmission would be as if a
            # node were lost.
            keys += ["net.core.txrehash=0"]
            # Apart from the ports that tests give and count up.
            keys += ["net.ipv4.ip_local_port_range=1024 19999"]
        if ns in BACKENDS:
            keys += ["net.ipv4.conf.all.arp_ignore=1",
                     "net.ipv4.conf.all.arp_announce=2"]
        self.run(ns, "sysctl", "-q", "-w", *keys)
        self.run(ns, "ip", "link", "set", "lo", "up")
        if ns in BACKENDS:
            self.run(ns, "ip", "addr", "add", VIP[4] + "/32", "dev", "lo")
            self.run(ns, "ip", "addr", "add", VIP[6] + "/128", "dev", "lo")

    def link(self, ns1, if1, ns2, if2, mtu):
        self.run(ns1, "ip", "link", "add", if1, "mtu", mtu, "type", "veth",
                 "peer", "name", if2, "mtu", mtu, "netns", lab.PREFIX + ns2)
        for ns, name in ((ns1, if1), (ns2, if2)):
            # XDP sees packets as they are: no checksum left for a NIC to
            # fill in, no segments of 64 kB.
            self.run(ns, "ethtool", "-K", name, "tx", "off", "tso", "off",
                     "gso", "off", "gro", "off")
            self.run(ns, "ip", "link", "set", name, "up")

    def give(self, ns, name, net, host):
        self.run(ns, "ip", "addr", "add", address4(net, host) + "/24", "dev",
                 name)
        self.run(ns, "ip", "addr", "add", address6(net, host) + "/64", "dev",
                 name, "nodad")

    def load_veth_programs(self):
        pins = lab.BPFFS / (lab.BPF_PREFIX + "veth")
        pins.mkdir()
        self.run(None, "bpftool", "prog", "loadall",
                 self.build / "tests/fabric/veth.bpf.o", pins)

    def set_xdp(self, ns, name, program):
        """One of veth.bpf.c on a device, None for none."""
        if program is None:
            self.run(ns, "bpftool", "net", "detach", "xdpdrv", "dev", name)
        else:
            self.run(ns, "bpftool", "net", "attach", "xdpdrv", "pinned",
                     lab.BPFFS / (lab.BPF_PREFIX + "veth") / program, "dev",
                     name, "overwrite")

    def xdp_frames(self, node, count=10, seconds=20.0):
        """How many of `count` frames a node's device returns by XDP_TX."""
        self.set_xdp(node, "eth0", "xlbf_tx")
        try:
            return int(self.run("rack", PYTHON, HERE / "frames.py", node,
                                count, seconds).stdout)
        finally:
            self.set_xdp(node, "eth0", None)

    def test_itself(self):
        """10 frames out, 10 back, at each node: else nothing below holds."""
        for node in NODES:
            back = self.xdp_frames(node)
            if back != 10:
                raise FabricError(f"{node}: of 10 frames sent {back} came "
                                  "back by XDP_TX; veth does not carry it")

    # ---- BIRD -------------------------------------------------------------

    def start_bird(self, who, text):
        d = lab.RUN / who
        (d / "bird").mkdir(exist_ok=True)
        (d / "bird.conf").write_text(f'log "{d}/bird.log" all;\n' + text)
        # before all else that runs here, or BFD's time is over in between
        self.bird_process[who] = self.start(
            who, "bird-out", "nice", "-n", -10, "bird", "-f", "-c",
            d / "bird.conf", "-s", d / "bird.ctl", "-P", d / "bird.pid")
        wait(f"BIRD of {who} to answer", lambda: self.bird_answers(who))

    def bird_answers(self, who):
        try:
            return self.bird(who, "show status")
        except (OSError, FabricError):
            return None

    def stop_bird(self, who, sig=signal.SIGTERM):
        self.bird_process[who].signal(sig)
        self.bird_process[who].exit()

    def bird(self, who, command):
        """The reply to a command, [(code, text)]."""
        return ask.bird(lab.RUN / who / "bird.ctl", command)

    def sessions(self, who="router"):
        """{BGP protocol: state} of a BIRD."""
        return {row[0]: row[-1] for row in
                (text.split() for code, text in self.bird(who, "show protocols")
                 if code == 1002) if row[1] == "BGP"}

    def router_conf(self):
        peers = "".join(
            f"protocol bgp {node}_{f} from lb {{ neighbor {address(node, f)} as"
            f" {NODE_AS}; ipv{f} {{ import all; export none; }}; }}\n"
            for node in NODES for f in (4, 6))
        return f"""router id {address4(1, ROUTER_HOST)};
protocol device {{ }}
protocol kernel k4 {{ merge paths on limit 16; ipv4 {{ import none; \
export where source = RTS_BGP; }}; }}
protocol kernel k6 {{ merge paths on limit 16; ipv6 {{ import none; \
export where source = RTS_BGP; }}; }}
protocol bfd {{ interface "rack" {{ {BFD} }}; }}
template bgp lb {{
  local as {ROUTER_AS};
  hold time 9; keepalive time 3; bfd on;
  connect delay time 1; connect retry time 2; error wait time 1,5;
}}
{peers}"""

    def node_conf(self, node):
        text = self.xlb(node, "bird-config").out
        return text.replace("interval 100 ms; multiplier 3;", BFD)

    def bgp_up(self, node):
        state = self.sessions()
        return all(state.get(f"{node}_{f}") == "Established" for f in (4, 6))

    def bfd_sessions(self):
        """{neighbour: state} of the router's."""
        return {row[0]: row[2] for row in (text.split() for _, text in self.bird(
            "router", "show bfd sessions")) if len(row) > 2}

    def wait_bgp(self, node, timeout=60.0):
        """And BFD, for which BGP does not wait."""
        wait(f"BGP between router and {node}", lambda: self.bgp_up(node),
             timeout, self.sessions)
        wait(f"BFD between router and {node}", lambda: all(
            self.bfd_sessions().get(address(node, f)) == "Up"
            for f in (4, 6)), timeout, self.bfd_sessions)

    def paths(self, family, prefix=None):
        """The nodes that the router's kernel spreads a prefix over."""
        prefix = prefix or VIP[family]
        out = self.run("router", "ip", "-j", f"-{family}", "route", "show",
                       prefix, "proto", "bird").stdout
        hops = [hop for route in json.loads(out or "[]")
                for hop in route.get("nexthops", [route])]
        node = {address(n, family): n for n in NODES}
        return sorted(node.get(h.get("gateway"), h.get("gateway"))
                      for h in hops)

    def wait_paths(self, nodes, timeout=60.0, families=(4, 6)):
        """Until the router has exactly these nodes for each VIP."""
        for f in families:
            wait(f"the router's paths to {VIP[f]} to be {list(nodes)}",
                 lambda f=f: self.paths(f) == sorted(nodes), timeout,
                 lambda f=f: self.paths(f))

    # ---- backends ---------------------------------------------------------

    def start_backend(self, b):
        d = lab.RUN / b
        (d / "nginx.conf").write_text(f"""daemon off;
master_process off;
pid {d}/nginx.pid;
error_log {d}/nginx.log warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {d}/t1; proxy_temp_path {d}/t2;
  fastcgi_temp_path {d}/t3; uwsgi_temp_path {d}/t4; scgi_temp_path {d}/t5;
  keepalive_requests 1000000;
  server {{
    listen 0.0.0.0:{PORT} backlog=4096; listen [::]:{PORT} backlog=4096;
    add_header X-Backend {b};
    location / {{ return 200 "{b}\\n"; }}
    location = /ready {{
      if (-f {d}/ready-503) {{ return 503; }}
      if (-f {d}/ready-500) {{ return 500; }}
      return 200 "ready\\n";
    }}
  }}
}}
""")
        self.nginx[b] = self.start(b, "nginx-out", "nginx", "-c",
                                   d / "nginx.conf", "-e", d / "nginx.log")
        for f in (4, 6):
            wait(f"nginx of {b} on {address(b, f)}",
                 lambda f=f: lab.connects("router", address(b, f), PORT))

    def set_ready(self, b, status=200):
        """What a backend answers to /ready: 200, 500 or 503; from one to the
        other without a 200 in between."""
        if status != 200:
            (lab.RUN / b / f"ready-{status}").touch()
        for code in {500, 503} - {status}:
            (lab.RUN / b / f"ready-{code}").unlink(missing_ok=True)

    def kill_backend(self, b):
        self.nginx[b].kill()

    def attach_decap(self, b):
        sources = [x for n in NODES for f in (4, 6)
                   for x in ("--from", address(n, f))]
        self.decap(b, "attach", "eth0", *sources)

    def decap(self, b, *args):
        return self.run(b, self.program("xlb-decap"), "--bpf-dir",
                        lab.BPFFS / (lab.BPF_PREFIX + b), *args)

    # ---- nodes ------------------------------------------------------------

    @staticmethod
    def pins(node):
        return lab.BPFFS / (lab.BPF_PREFIX + node)

    def options(self, node):
        d = lab.RUN / node
        return ["--config", d / "xlb.yaml", "--run-dir", d / "run",
                "--bpf-dir", self.pins(node),
                "--state-dir", d / "state", "--bird-dir", d / "bird",
                "--bird-socket", d / "bird.ctl"]

    def config(self, node, weight=None, state=None, pool=BACKENDS,
               min_healthy=1, hold="200ms", maglev=""):
        """A node's xlb.yaml; `weight` and `state` by backend, `maglev` more
        keys of that section."""
        weight, state = weight or {}, state or {}
        members = "\n".join(
            '      - {name: %s, address: "%s", weight: %d, state: %s}' % (
                b, POOL_ADDRESS[b], weight.get(b, 100),
                state.get(b, "active")) for b in pool)
        return f"""node: {{name: {node}}}
interfaces:
  - {{name: eth0, xdp: native}}
maglev: {{key_file: {lab.RUN}/key{maglev and ", " + maglev}}}
bgp:
  local_as: {NODE_AS}
  router_id: {address(node, 4)}
  neighbors:
    - {{address: {address4(1, ROUTER_HOST)}, as: {ROUTER_AS}}}
    - {{address: "{address6(1, ROUTER_HOST)}", as: {ROUTER_AS}}}
  hold: {hold}
  graceful_shutdown: 0s
  linger: 500ms
checks:
  web: {{type: tcp, port: {PORT}, interval: 200ms, timeout: 150ms, rise: 2, \
fall: 2}}
pools:
  web:
    check: web
    min_healthy: {min_healthy}
    backends:
{members}
services:
  - name: www
    addresses: [{VIP[4]}, "{VIP[6]}"]
    listen: [tcp/{PORT}]
    pool: web
"""

    def write_config(self, node, text):
        path = lab.RUN / node / "xlb.yaml"
        new = path.with_suffix(".new")
        new.write_text(text)
        new.rename(path)
        return path

    def xlb(self, node, *args, stdin=None, timeout=120.0):
        done = self.run(node, self.program("xlb"), *self.options(node), *args,
                        check=False, stdin=stdin, timeout=timeout)
        return Answer(done.returncode, done.stdout, done.stderr)

    def must(self, node, *args, **kw):
        """xlb that has to succeed."""
        a = self.xlb(node, *args, **kw)
        if a.exit != 0:
            raise FabricError(f"{node}: xlb {' '.join(map(str, args))}: exit "
                              f"status {a.exit}\n{a.out}{a.err}")
        return a

    def status(self, node):
        try:
            return ask.xlbd(lab.RUN / node / "run", "status")
        except (OSError, ValueError) as err:
            raise FabricError(f"{node}: status: {err}") from None

    def pool(self, node, name="web"):
        """{backend: its row in status}."""
        for p in self.status(node)["pools"]:
            if p["name"] == name:
                return {b["name"]: b for b in p["backends"]}
        raise FabricError(f"{node}: status shows no pool {name}")

    def eligible(self, node):
        return sorted(n for n, b in self.pool(node).items() if b["eligible"])

    def spread(self, family, backends=BACKENDS, n=60):
        """Until n flows, all answered, go to these backends and to no others:
        one may be down for a moment after what was done to it."""
        wait(f"flows to {sorted(backends)}", lambda: set(self.flows(
            family, n).values()) == set(backends),
            seen=lambda: self.pool("lb1"))

    def slots(self, node):
        return {n: b["slots"] for n, b in self.pool(node).items()}

    def wait_eligible(self, backends, nodes=NODES, timeout=30.0, pool="web"):
        """Until a node's ring has slots for these backends alone."""
        want = sorted(backends)

        def check(node):
            return all(row["eligible"] == (name in want)
                       and (row["slots"] > 0) == (name in want)
                       for name, row in self.pool(node, pool).items())

        for node in nodes:
            wait(f"{node} to use {want}", lambda n=node: check(n), timeout,
                 lambda n=node: self.pool(n, pool))

    def wait_settled(self):
        """Until no slot of a node remembers the owner before, as it does for half
        a minute: flows that come from the other node would go there."""
        for node in NODES:
            wait(f"the slots of {node} to have settled", lambda n=node:
                 not pinned.slots_before(self.pins(n)), 90,
                 lambda n=node: pinned.slots_before(self.pins(n)), 0.2)

    def wait_answer(self, node, timeout=60.0):
        def check():
            if not self.daemon[node].alive():
                raise FabricError(f"xlbd of {node} ended with exit status "
                                  f"{self.daemon[node].exit()}")
            return self.xlb(node, "status", "--json").exit == 0

        wait(f"xlbd of {node} to answer", check, timeout)

    def start_node(self, node, program=None):
        """xlbd alone; its BIRD has a life of its own."""
        d = lab.RUN / node
        for sub in ("run", "state", "bird"):
            (d / sub).mkdir(exist_ok=True)
        self.daemon[node] = self.start(
            node, "xlbd", program or self.program("xlbd"), *self.options(node))
        self.wait_answer(node)

    def stop_node(self, node):
        self.must(node, "stop")
        status = self.daemon[node].exit()
        if status != 0:
            raise FabricError(f"xlbd of {node}: exit status {status}")

    def wait_ready(self, nodes=NODES):
        for node in nodes:
            self.wait_bgp(node)
        self.wait_eligible(BACKENDS, nodes)
        self.wait_paths(nodes)

    # ---- all of it --------------------------------------------------------

    def up_network(self):
        if self.fd is None:
            self.open()
        self.build_network()
        self.test_itself()
        self.start_bird("router", self.router_conf())
        for b in BACKENDS:
            self.start_backend(b)

    def up_nodes(self):
        (lab.RUN / "key").write_text(KEY + "\n")
        (lab.RUN / "key").chmod(0o600)
        for b in BACKENDS:
            self.attach_decap(b)
        for node in NODES:
            self.write_config(node, self.config(node))
            self.start_bird(node, self.node_conf(node))
            self.start_node(node)
        self.wait_ready()

    def restore(self):
        """From wherever a test left it to the state after up_nodes()."""
        if self.floods():
            raise FabricError(f"a test before has left {self.floods()} with "
                              "frames that are for others: see plug()")
        for b in BACKENDS:
            if not self.nginx[b].alive():
                self.start_backend(b)
        for node in NODES:
            changed = (lab.RUN / node / "xlb.yaml").read_text() != \
                self.config(node)
            self.write_config(node, self.config(node))
            if not self.bird_process[node].alive():
                self.start_bird(node, self.node_conf(node))
            if not self.daemon[node].alive():
                self.start_node(node)
            elif changed:
                self.must(node, "reload")
            self.undrain(node)
        self.wait_ready()

    def undrain(self, node):
        """Whatever a test that failed left drained."""
        status = self.status(node)
        what = [f"{p['name']}/{b['name']}" for p in status["pools"]
                for b in p["backends"] if b["state"] != "active"]
        if status["state"] != "active":
            what.append("node")
        for w in what:
            self.must(node, "undrain", w)

    # ---- the client -------------------------------------------------------

    def client(self, family, *args, to=None, timeout=5.0):
        return [PYTHON, HERE / "http_client.py", to or VIP[family], PORT,
                "--ports", lab.RUN / f"ports{family}", "--timeout", timeout,
                *args]

    def http(self, n, family, parallel=16, timeout=5.0, to=None, from_port=0):
        """n requests, each on a connection of its own."""
        done = self.run("client", *self.client(
            family, "--count", n, "--parallel", parallel, "--from-port",
            from_port, to=to, timeout=timeout),
            timeout=60 + n * timeout / parallel)
        return [Request(**json.loads(x)) for x in done.stdout.splitlines()]

    def flows(self, family, n=300, from_port=20000):
        """{source port: backend}, all of them answered: the same flows at
        every call, so that it tells which of them moved."""
        got = self.http(n, family, from_port=from_port)
        bad = [r for r in got if not r.ok]
        if bad:
            raise FabricError(f"{len(bad)} of {n} requests failed: {bad[0]}")
        return {r.port: r.backend for r in got}

    def lookup(self, family, port):
        """What each node says of the client's connection from that port."""
        peer, vip = ((f"{a}" if family == 4 else f"[{a}]")
                     for a in (address("client", family), VIP[family]))
        return {node: self.xlb(node, "lookup", "tcp", f"{peer}:{port}",
                               f"{vip}:{PORT}", "--json").out
                for node in NODES}

    def load(self, family, rate=100, keep=0, timeout=5.0, to=None, pause=0.05):
        return Load(self, self.client(family, "--rate", rate, "--keep", keep,
                                      "--pause", pause, to=to,
                                      timeout=timeout))


def explain(fabric, error):
    """An error and what the logs say, for people."""
    text = [f"{error}"]
    for path, lines in fabric.logs() if fabric.fd is not None else ():
        text += [f"--- {path}"] + ["    " + line for line in lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(text))
