#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Metrics: what is true of the node, in the form that Prometheus takes, and
nothing that a client does matters to the daemon."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import net
import node
import scrape
from node import VIP, check, tap, wait
from pinned import map_open
from scrape import ask, wait_metric

ON = "metrics: {listen: 127.0.0.1:9555}"
CHECK = ("checks: {c: {type: tcp, port: 9, via: direct, interval: 100ms, "
         "fall: 2}}")
FLAGS = 78      # in struct xlb_settings


def configure(n, metrics=ON, **kw):
    n.configure(**kw)
    n.file.write_text(n.file.read_text().replace(
        "metrics: {listen: off}", metrics))


def up(n, **kw):
    configure(n, **kw)
    n.start_xlbd()
    wait("an answer", lambda: scrape.answers(n))


def reload(n, status=0):
    rc, _, err = n.xlb("reload")
    check(rc == status, "reload:", rc, err)
    return err


def table():
    out = node.run(node.BUILD / "tests/golden/metric_dump").stdout
    return {line.split("\t")[0]: line.split("\t") for line in
            out.splitlines()}


def send(n, ports, count=1):
    """SYNs to the VIP from the far side."""
    node.run("ip", "-n", n.far, "route", "replace", f"{VIP}/32", "via",
             "10.0.1.1")
    for port in ports:
        for _ in range(count):
            with net.inside(n.far), socket.socket() as s:
                s.setblocking(False)
                s.connect_ex((VIP, port))


def children(pid):
    """Of a process: [(pid, name)]."""
    found = []
    for p in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            text = p.read_text()
        except OSError:
            continue
        if int(text.rpartition(")")[2].split()[1]) == pid:
            found.append((int(text.split()[0]),
                          text[text.index("(") + 1:text.rindex(")")]))
    return found


def helper(n):
    """The process that speaks HTTP, and the one that forks it; None."""
    for spawner, _ in children(n.xlbd.pid):
        for pid, name in children(spawner):
            if name == "xlb-http":
                return pid, spawner
    return None


def gone(pid):
    return not os.path.exists(f"/proc/{pid}")


# ---- the form ---------------------------------------------------------

@node.leaves_xlbd
def form(n):
    up(n, more=CHECK, pool="check: c, ")
    r = ask(n)
    check(r.header["content-type"] ==
          "text/plain; version=0.0.4; charset=utf-8", r.header)
    check(int(r.header["content-length"]) == len(r.body), r.header)
    m = scrape.Metrics(r.text())
    want = table()
    check({k: v[1] for k, v in want.items()} == m.type, m.type)
    check({k: v[2] for k, v in want.items()} == m.help, m.help)
    for name, labels in m.sample:
        family = name if name in want else \
            re.sub("_(bucket|sum|count)$", "", name)
        has = {k for k, _ in labels} - {"le"}
        check(has == set(want[family][3].split(",")) - {""}, name, labels)


@node.leaves_xlbd
def promtool(n):
    """Prometheus' own opinion of it."""
    if shutil.which("promtool") is None:
        raise tap.Skip("needs promtool")
    up(n, more=CHECK, pool="check: c, ")
    wait_metric(n, 1, "xlb_bird_status", status="synced")
    p = subprocess.run(["promtool", "check", "metrics"], text=True,
                       input=ask(n).text(), capture_output=True, check=False)
    check(p.returncode == 0 and not p.stdout and not p.stderr, p.stdout,
          p.stderr)


@node.leaves_xlbd
def methods(n):
    up(n)
    whole, head = ask(n), ask(n, method="HEAD")
    check(head.status == 200 and head.body == b"", head.body)
    check(head.header["content-length"] == whole.header["content-length"] or
          abs(int(head.header["content-length"]) - len(whole.body)) < 99,
          head.header)
    check(ask(n, "/metrics?x=1").status == 200)
    for path in ("/metrics/", "/x", "//metrics", "/metrics/../metrics",
                 "/%2e", "*", "/METRICS"):
        check(ask(n, path).status == 404, path, ask(n, path).status)
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get", "FOO"):
        r = ask(n, method=method)
        check(r.status == 404, method, r.status)
    r = ask(n, method="POST", head="Content-Length: 5\r\n")
    check(r.status == 404, r.status)
    check(scrape.answers(n), "no answer any more")


# ---- what is true -----------------------------------------------------

def state(n):
    up(n, more=CHECK, pool="check: c, ")
    a = {"pool": "web", "backend": "a", "address": "10.0.1.11"}
    wait_metric(n, 1, "xlb_address_withheld_info", address=VIP,
                reason="service is not ready")
    m = scrape.scrape(n)
    for name, want in (("up", 0), ("eligible", 0), ("drained", 0),
                       ("weight", 100)):
        check(m.get(f"xlb_backend_{name}", **a) == want, name)
    check(m.get("xlb_pool_ready", pool="web") == 0)
    check(m.get("xlb_address_wanted", address=VIP) == 0)
    check(m.get("xlb_check_results_total", check="c", result="fail") > 0)
    check(m.get("xlb_check_duration_seconds_count", check="c") > 0)
    check(m.get("xlb_interface_attached", interface="eth0") == 1)
    check(m.get("xlb_interface_mode_info", interface="eth0",
                mode="native") == 1)
    with net.inside(n.far), socket.socket() as s:
        s.bind(("10.0.1.11", 9))
        s.listen(4096)  # nobody accepts
        wait_metric(n, 1, "xlb_backend_up", **a)
        wait_metric(n, 1, "xlb_address_in_bird", address=VIP)
        m = scrape.scrape(n)
        check(m.get("xlb_backend_eligible", **a) == 1)
        check(m.get("xlb_backend_eligible", pool="web", backend="b") == 0)
        check(m.get("xlb_pool_eligible_backends", pool="web") == 1)
        check(m.get("xlb_address_wanted", address=VIP) == 1)
        check(not m.all("xlb_address_withheld_info"), "still withheld")
        check(m.get("xlb_bird_status", status="synced") == 1)
        check(sum(m.all("xlb_bird_status").values()) == 1)
        hex16 = json.loads(n.xlb("--json", "fingerprint")[1])["web"]
        check(m.get("xlb_pool_fingerprint_info", pool="web",
                    fingerprint=hex16) == 1, hex16)
        before = m.get("xlb_pool_slots_moved_total", pool="web")
        n.xlb("drain", "web/a")
        wait_metric(n, 1, "xlb_backend_drained", **a)
        wait_metric(n, 0, "xlb_backend_eligible", **a)
        check(scrape.scrape(n).get("xlb_backend_up", **a) == 1)
        n.xlb("undrain", "web/a")
        wait_metric(n, 1, "xlb_backend_eligible", **a)
        moved = scrape.scrape(n).get("xlb_pool_slots_moved_total", pool="web")
        check(moved - before == 2 * 65537, before, moved)
    n.stop_bird()
    wait_metric(n, 1, "xlb_bird_status", status="absent")
    n.start_bird()
    wait_metric(n, 1, "xlb_bird_status", status="synced")
    n.xlb("drain", "node")
    wait_metric(n, 1, "xlb_node_drained")


def packets(n):
    up(n, listen="tcp/80, tcp/81")
    wait_metric(n, 1, "xlb_pool_ready", pool="web")
    send(n, [80], 5)
    send(n, [82], 3)
    labels = {"service": "www", "address": VIP, "protocol": "tcp"}
    wait_metric(n, 5, "xlb_service_packets_total", port="80", **labels)
    wait_metric(n, 3, "xlb_packets_total", reason="no_service")
    m = scrape.scrape(n)
    check(m.get("xlb_service_packets_total", port="81", **labels) == 0)
    check(m.get("xlb_packets_total", reason="forward") == 5)
    check(sum(m.all("xlb_backend_packets_total").values()) == 5)
    check(m.get("xlb_service_bytes_total", port="80", **labels) >= 200)
    stats = json.loads(n.xlb("--json", "stats")[1])
    m = scrape.scrape(n)
    for reason, count in stats["reasons"].items():
        got = m.get("xlb_packets_total", reason=reason)
        check(got == count or reason == "not_vip" and got >= count, reason,
              got, count)


def reloads(n):
    up(n)
    reload(n)
    n.file.write_text("nonsense: 1\n")
    reload(n, 3)
    wait_metric(n, 1, "xlb_config_reloads_total", result="failure")
    m = scrape.scrape(n)
    check(m.get("xlb_config_reloads_total", result="success") == 1)
    check(m.get("xlb_config_last_reload_successful") == 0)
    check(abs(m.get("xlb_config_last_reload_timestamp_seconds") -
              time.time()) < 60)
    check(m.get("xlb_config_loaded_timestamp_seconds") <=
          m.get("xlb_config_last_reload_timestamp_seconds"))


def drift(n):
    up(n)
    wait_metric(n, 1, "xlb_forwarding")
    link = next((n.bpf / "links").iterdir())
    node.run("bpftool", "link", "detach", "pinned", link)
    wait_metric(n, 1, "xlb_reconcile_drift_total", object="attachment",
                seconds=15)
    check(json.loads(n.xlb("--json", "stats")[1])["repairs"] == 1)


# ---- what stays, what goes --------------------------------------------

def not_back(before, after):
    for key, value in before.counters().items():
        if key in after.sample:
            check(after.sample[key] >= value, key, value, after.sample[key])


def restarts(n):
    """Counters go on, by whatever way xlbd ends."""
    up(n, more=CHECK, pool="check: c, ")
    with net.inside(n.far), socket.socket() as s:
        s.bind(("10.0.1.11", 9))
        s.listen(4096)  # nobody accepts
        wait_metric(n, 1, "xlb_pool_ready", pool="web")
        send(n, [80], 3)
        reload(n)
        m = scrape.scrape(n)
        for how in ("reload", "restart", "kill"):
            before = m
            if how == "reload":
                reload(n)
            elif how == "restart":
                check(n.xlb("restart")[0] == 0)
            else:
                n.xlbd.kill()
                n.xlbd.wait()
                n.start_xlbd()
            # not one from before
            wait_metric(n, 2, "xlb_config_reloads_total", result="success")
            m = scrape.scrape(n)
            check(set(before.counters()) == set(m.counters()), how)
            not_back(before, m)
        check(m.get("xlb_service_packets_total", service="www") == 3)
        check(m.get("process_cpu_seconds_total") > 0)


def removed(n):
    """What is gone has no series; what stays goes on."""
    up(n, listen="tcp/80, tcp/81")
    wait_metric(n, 1, "xlb_pool_ready", pool="web")
    send(n, [80], 4)
    wait_metric(n, 4, "xlb_service_packets_total", port="80")
    before = scrape.scrape(n)
    configure(n, listen="tcp/80", backends="{name: a, address: 10.0.1.11}")
    reload(n)
    wait_metric(n, None, "xlb_service_packets_total", port="81")
    m = scrape.scrape(n)
    text = ask(n).text()
    check("10.0.1.12" not in text and 'port="81"' not in text, text)
    check(m.get("xlb_service_packets_total", port="80") == 4)
    not_back(before, m)
    configure(n, listen="tcp/80, tcp/81")
    reload(n)
    wait_metric(n, 0, "xlb_service_packets_total", port="81")
    not_back(before, scrape.scrape(n))
    configure(n, bgp="", interfaces="")
    n.file.write_text(ON + "\n")
    reload(n)
    wait("the series to be gone",
         lambda: not scrape.scrape(n).all("xlb_pool_ready"))
    m = scrape.scrape(n)
    for name in ("xlb_service_packets_total", "xlb_backend_up",
                 "xlb_backend_packets_total", "xlb_address_wanted",
                 "xlb_interface_attached", "xlb_pool_fingerprint_info"):
        check(not m.all(name), name)
    check(m.get("xlb_bird_status", status="off") == 1)


# ---- the process ------------------------------------------------------

def process(n):
    """It has no rights, and ends with xlbd."""
    up(n)
    pids = helper(n)
    for pid in pids:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
        check(re.search(r"^Uid:\s+0\b", text, re.M) is None, text)
        for field in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            check(re.search(rf"^{field}:\s+0+$", text, re.M), field, text)
        check(re.search(r"^Groups:\s*$", text, re.M), text)
        check(re.search(r"^NoNewPrivs:\s+1$", text, re.M), text)
    n.xlbd.kill()
    n.xlbd.wait()
    wait("the helper to end", lambda: all(gone(p) for p in pids))


@node.leaves_xlbd
def dies(n):
    up(n)
    for which in (0, 0, 1):
        old = helper(n)
        os.kill(old[which], signal.SIGKILL)
        wait("another one", lambda: (helper(n) or old)[0] != old[0])
        wait("an answer", lambda: scrape.answers(n))
    said = n.said()
    check("http: ended, is started again" in said and
          "http: its spawner ended, is started again" in said, said)


@node.leaves_xlbd
def asked_once(n):
    """However many ask, xlbd writes once in a second."""
    up(n)
    cpu = scrape.scrape(n).get("process_cpu_seconds_total")
    begun, answers, count = time.monotonic(), set(), 0
    while time.monotonic() < begun + 2 or count <= 20:
        answers.add(ask(n).body)
        count += 1
    took = time.monotonic() - begun
    check(len(answers) <= took + 2, count, len(answers), took)
    wait("a new one", lambda: ask(n).body not in answers)
    used = scrape.scrape(n).get("process_cpu_seconds_total") - cpu
    check(used < took / 2, "CPU", used, took)


@node.leaves_xlbd
def slow(n):
    """A hundred that send nothing, half of a request, or read nothing."""
    up(n)
    fds = len(os.listdir(f"/proc/{n.xlbd.pid}/fd"))
    idle = []
    for i in range(120):
        s = scrape.connect(n)
        idle.append(s)
        if i % 3 == 1:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        elif i % 3 == 2:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: n\r\n\r\n" * 200)
        if i % 20 == 19:
            begin = time.monotonic()
            check(scrape.answers(n), "no answer beside", i)
            # those that say nothing are left after ten seconds
            check(time.monotonic() - begin < 9, time.monotonic() - begin)
    check(len(os.listdir(f"/proc/{n.xlbd.pid}/fd")) <= fds + 2)
    check(len(os.listdir(f"/proc/{helper(n)[0]}/fd")) < 80)
    for s in idle:
        s.close()
    wait("an answer", lambda: scrape.answers(n))


@node.leaves_xlbd
def drips(n):
    """One byte now and then does not keep a connection."""
    up(n)
    with scrape.connect(n) as s:
        begin = time.monotonic()
        s.settimeout(0.2)
        s.sendall(b"GET /metrics HTTP/1.1\r\n")
        while time.monotonic() - begin < 60:
            try:
                s.sendall(b"X")
                if s.recv(100) == b"":
                    break
            except socket.timeout:
                continue
            except OSError:
                break
        took = time.monotonic() - begin
    check(9 < took < 40, took)


@node.leaves_xlbd
def no_answer(n):
    """xlbd hangs: its clients hear that, and are not kept."""
    up(n)
    time.sleep(1.1)
    os.kill(n.xlbd.pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        check(ask(n).status == 503)
        check(4 < time.monotonic() - begin < 30, time.monotonic() - begin)
    finally:
        os.kill(n.xlbd.pid, signal.SIGCONT)
    wait("an answer", lambda: scrape.answers(n))


def surge(n):
    """Of what packets are counted as, to the word that they go by, and back. A
    reload does not end it."""
    up(n)
    given = [0, 0]

    def count(sampled, unknown):
        """On each processor, as the program does."""
        given[0] += sampled
        given[1] += unknown
        value = struct.pack("=13Q", *[0] * 6, *given, *[0] * 5)
        node.run("bpftool", "map", "update", "pinned", n.bpf / "flow_stats",
                 "key", *[0] * 4, "value", *value)

    def on():
        with map_open(n.bpf / "tables", 192) as tables:
            return struct.unpack_from("=H", tables, FLAGS)[0]

    def seen(sampled, unknown, flag):
        count(sampled, unknown)
        return on() == flag
    wait("a surge", lambda: seen(2000, 100, 1))
    table = n.status()["flow_table"]
    check(table["surge"] and table["surge_since"], table)
    check("5.0 % of the sampled ones are unknown" in n.said(), n.said())
    wait_metric(n, 1, "xlb_flow_surge")
    reload(n)
    check(on() == 1, "a reload ends it")
    wait("a second", lambda: scrape.scrape(n).get(
        "xlb_flow_surge_seconds_total") >= 1)
    wait("its end", lambda: seen(20000, 0, 0))
    check("as before: the flows are known" in n.said(), n.said())
    wait_metric(n, 0, "xlb_flow_surge")
    check(not n.status()["flow_table"]["surge"], n.status()["flow_table"])


# ---- where it listens -------------------------------------------------

def moves(n):
    up(n)
    configure(n, metrics="metrics: {listen: 127.0.0.1:9556}")
    reload(n)
    wait("the new port", lambda: scrape.answers(n, 9556))
    check(not scrape.answers(n, 9555), "the old port answers")
    configure(n, metrics="metrics: {listen: off}")
    reload(n)
    wait("the end", lambda: not scrape.answers(n, 9556))
    configure(n, metrics='metrics: {listen: "[::1]:9555"}')
    reload(n)
    with net.inside(n.ns):
        wait("IPv6", lambda: socket.create_connection(("::1", 9555), 5))
    check(not scrape.answers(n), "IPv4 too")


def taken(n):
    """The port is another's: said, and tried again."""
    with net.inside(n.ns), socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", 9555))
        s.listen(1)
        configure(n)
        n.start_xlbd()
        err = reload(n)
        check("warning: metrics.listen: Address already in use" in err, err)
        wait("a line in the log", lambda: "metrics.listen: 127.0.0.1:9555: "
             "Address already in use: is tried again" in n.said())
        wait("the route", n.announced)
    wait("an answer", lambda: scrape.answers(n), 15)
    check(n.said().count("Address already in use") == 1, n.said())


if __name__ == "__main__":
    sys.exit(node.main([
        form, promtool, methods, asked_once, slow, drips, no_answer, dies, process,
        state, packets, reloads, drift, restarts, removed, surge, moves,
        taken]))
