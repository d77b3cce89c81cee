#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The alert rules and the dashboard: they load, name metrics that there are, and
each alert fires when it should and not when it should not."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SRC = os.environ.get("top_srcdir") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../..")
SRC = os.path.abspath(SRC)
BUILD = os.environ.get("top_builddir", ".")
RULES = os.path.join(SRC, "etc/prometheus/xlb.rules.yml")
DASHBOARD = os.path.join(SRC, "etc/grafana/xlb.json")
count = 0

# Every node of the healthy site has these; "x60" is an hour of minutes.
HEALTHY = {
    "up": "1x60",
    "xlb_build_info{version='1'}": "1x60",
    "xlb_forwarding": "1x60",
    "xlb_interface_attached{interface='eth0'}": "1x60",
    "xlb_interface_mode_info{interface='eth0',mode='native'}": "1x60",
    "xlb_pool_fingerprint_info{pool='web',fingerprint='aa'}": "1x60",
    "xlb_backend_up{pool='web',backend='a',address='10.0.0.1'}": "1x60",
    "xlb_backend_drained{pool='web',backend='a',address='10.0.0.1'}": "0x60",
    "xlb_backend_path_mtu_bytes{address='10.0.0.1'}": "1500x60",
    "xlb_backend_link_mtu_bytes{address='10.0.0.1'}": "1500x60",
    "xlb_pool_ready{pool='web'}": "1x60",
    "xlb_pool_failed_open{pool='web'}": "0x60",
    "xlb_node_drained": "0x60",
    "xlb_address_wanted{address='203.0.113.1'}": "1x60",
    "xlb_address_in_bird{address='203.0.113.1'}": "1x60",
    "xlb_address_exported_sessions{address='203.0.113.1'}": "2x60",
    "xlb_bird_status{status='synced'}": "1x60",
    "xlb_bird_status{status='absent'}": "0x60",
    "xlb_bird_stuck_routes": "0x60",
    "xlb_bird_session_established{session='r1'}": "1x60",
    "xlb_flow_table_live_entries": "1000x60",
    "xlb_flow_table_entries": "1048576x60",
    "xlb_flow_evictions_total{state='confirmed'}": "7x60",
    "xlb_flow_skipped_total{reason='full'}": "7x60",
    "xlb_flow_surge": "0x60",
    "xlb_packets_total{reason='forward'}": "0+600000x60",
    "xlb_packets_total{reason='no_backend'}": "5x60",
    "xlb_packets_total{reason='nat_exhausted'}": "5x60",
    "xlb_packets_total{reason='no_service'}": "0+600x60",
    "xlb_config_last_reload_successful": "1x60",
    "xlb_reconcile_failed_operations": "0x60",
    "xlb_reconcile_drift_total{object='ring'}": "3x60",
    "process_start_time_seconds": "1000x60",
}

# Alert, labels, the minute before it may fire, the one at which it does, what
# differs on node a. More rows of one alert: other ways to it.
FIRES = [
    ("XlbNoAnswer", {}, 1, 3, {"up": "0x60"}),
    ("XlbNotForwarding", {}, 0, 2, {"xlb_forwarding": "0x60"}),
    ("XlbGenericMode", {"interface": "eth0", "mode": "generic"}, 4, 6, {
        "xlb_interface_mode_info{interface='eth0',mode='native'}": None,
        "xlb_interface_mode_info{interface='eth0',mode='generic'}": "1x60"}),
    ("XlbRingsDiffer", {"pool": "web", "instance": None}, 1, 3, {
        "xlb_pool_fingerprint_info{pool='web',fingerprint='aa'}": None,
        "xlb_pool_fingerprint_info{pool='web',fingerprint='bb'}": "1x60"}),
    ("XlbBackendDown", {"pool": "web", "backend": "a", "address": "10.0.0.1"},
     0, 2, {"xlb_backend_up{pool='web',backend='a',address='10.0.0.1'}":
            "0x60"}),
    ("XlbPathNarrow", {"address": "10.0.0.1"}, 9, 11,
     {"xlb_backend_path_mtu_bytes{address='10.0.0.1'}": "1404x60"}),
    ("XlbPoolNotReady", {"pool": "web"}, 0, 1,
     {"xlb_pool_ready{pool='web'}": "0x60"}),
    ("XlbPoolFailedOpen", {"pool": "web"}, 0, 1,
     {"xlb_pool_failed_open{pool='web'}": "1x60"}),
    ("XlbNotAnnounced", {"address": "203.0.113.1", "reason": "hold"}, 1, 3, {
        "xlb_address_withheld_info{address='203.0.113.1',reason='hold'}":
        "1x60"}),
    ("XlbNotInBird", {"address": "203.0.113.1"}, 0, 2,
     {"xlb_address_in_bird{address='203.0.113.1'}": "0x60"}),
    ("XlbNotExported", {"address": "203.0.113.1"}, 1, 3,
     {"xlb_address_exported_sessions{address='203.0.113.1'}": "0x60"}),
    ("XlbBirdTrouble", {"status": "absent"}, 0, 2, {
        "xlb_bird_status{status='absent'}": "1x60",
        "xlb_bird_status{status='synced'}": "0x60"}),
    ("XlbRoutesStuck", {}, 0, 1, {"xlb_bird_stuck_routes": "2x60"}),
    ("XlbSessionDown", {"session": "r1"}, 1, 3,
     {"xlb_bird_session_established{session='r1'}": "0x60"}),
    ("XlbFlowTablePressure", {}, 9, 11,
     {"xlb_flow_table_live_entries": "300000x60"}),
    ("XlbFlowTablePressure", {}, 9, 13,
     {"xlb_flow_evictions_total{state='confirmed'}": "0+1x60"}),
    ("XlbFlowTablePressure", {}, 9, 13,
     {"xlb_flow_skipped_total{reason='full'}": "0+1x60"}),
    ("XlbFlowSurge", {}, 4, 6, {"xlb_flow_surge": "1x60"}),
    ("XlbDropsUndeliverable", {"reason": "no_backend"}, 2, 5,
     {"xlb_packets_total{reason='no_backend'}": "0+300x60"}),
    ("XlbDropsUndeliverable", {"reason": "nat_exhausted"}, 2, 5,
     {"xlb_packets_total{reason='nat_exhausted'}": "0+300x60"}),
    ("XlbDropsRefused", {"reason": "no_service"}, 10, 13,
     {"xlb_packets_total{reason='no_service'}": "0+7200x60"}),
    ("XlbReloadFailed", {}, 0, 2,
     {"xlb_config_last_reload_successful": "0x60"}),
    ("XlbOperationsFail", {}, 0, 2, {"xlb_reconcile_failed_operations": "1x60"}),
    ("XlbDrift", {"object": "ring"}, 4, 9,
     {"xlb_reconcile_drift_total{object='ring'}": "3+1x60"}),
    ("XlbRestarts", {}, 2, 5, {"process_start_time_seconds": "1000+100x60"}),
]

# Nothing fires of these, at whatever time: (what, changes, alerts).
SILENT = [
    ("a drained backend that is down", {
        "xlb_backend_up{pool='web',backend='a',address='10.0.0.1'}": "0x60",
        "xlb_backend_drained{pool='web',backend='a',address='10.0.0.1'}":
        "1x60"}, ["XlbBackendDown"]),
    ("a drained node", {
        "xlb_node_drained": "1x60",
        "xlb_address_wanted{address='203.0.113.1'}": "0x60",
        "xlb_address_in_bird{address='203.0.113.1'}": "0x60",
        "xlb_address_exported_sessions{address='203.0.113.1'}": "0x60",
        "xlb_address_withheld_info{address='203.0.113.1',reason='node is "
        "draining'}": "1x60"},
     ["XlbNotAnnounced", "XlbNotInBird", "XlbNotExported"]),
    ("a node without bgp:", {
        "xlb_address_wanted{address='203.0.113.1'}": "0x60",
        "xlb_address_in_bird{address='203.0.113.1'}": "0x60",
        "xlb_address_withheld_info{address='203.0.113.1',reason='no bgp: "
        "section'}": "1x60", "xlb_bird_status{status='off'}": "1x60",
        "xlb_bird_status{status='synced'}": "0x60"},
     ["XlbNotAnnounced", "XlbNotInBird", "XlbBirdTrouble"]),
    ("a node that serves nothing", {
        "xlb_forwarding": "0x60",
        "xlb_interface_attached{interface='eth0'}": None},
     ["XlbNotForwarding"]),
    ("one per cent of drops", {
        "xlb_packets_total{reason='no_service'}": "0+6000x60"},
     ["XlbDropsRefused"]),
    ("drops on a quiet node", {
        "xlb_packets_total{reason='forward'}": "0+60x60",
        "xlb_packets_total{reason='no_service'}": "0+540x60"},
     ["XlbDropsRefused"]),
    ("a restart, of something else too", {
        "process_start_time_seconds": "1000x20 2000x40",
        "process_start_time_seconds{job='other'}": "1000+100x60"},
     ["XlbRestarts"]),
    ("one repair", {
        "xlb_reconcile_drift_total{object='ring'}": "3x10 4x50"},
     ["XlbDrift"]),
    ("a pool that another balancer has too", {
        "xlb_pool_fingerprint_info{job='other',pool='web',fingerprint='cc'}":
        "1x60"}, ["XlbRingsDiffer"]),
]


def verdict(name, why):
    """One TAP line; `why` lists what is wrong."""
    global count
    count += 1
    for line in why:
        print("#", line)
    print(f"{'not ok' if why else 'ok'} {count} - {name}")


def series(changes):
    """Nodes a, with the changes, and b."""
    rows = []
    for node, site in (("a", {**HEALTHY, **changes}), ("b", HEALTHY)):
        for key, values in site.items():
            if values is None:
                continue
            name, _, labels = key.partition("{")
            labels = labels.rstrip("}").replace("'", '"')
            if 'job="' not in labels:
                labels = ",".join(filter(None, [labels, 'job="xlb"']))
            rows.append({"series": f'{name}{{{labels},instance="{node}"}}',
                         "values": values})
    return rows


def promtool(*args):
    p = subprocess.run(["promtool", *args], stdout=subprocess.PIPE, text=True,
                       stderr=subprocess.STDOUT, check=False)
    return [] if p.returncode == 0 else p.stdout.splitlines()


def alerts():
    """{name: severity}: the file is ours, and regular."""
    with open(RULES, encoding="utf-8") as f:
        text = f.read()
    return dict(re.findall(r"- alert: (\w+)\n.*?severity: (\w+)\}", text,
                           re.S))


def expected(name, labels, severity):
    have = {"job": "xlb", "instance": "a", "severity": severity, **labels}
    return {"exp_labels": {k: v for k, v in have.items() if v is not None}}


def check_labels(rule_tests, where):
    """promtool compares annotations too: they are taken out of the copy."""
    copy = os.path.join(where, "rules.yml")
    with open(RULES, encoding="utf-8") as f:
        text = re.sub(r"^        annotations:\n(^          .*\n|^\s*\n(?=   "
                      r"       ))*", "", f.read(), flags=re.M)
    with open(copy, "w", encoding="utf-8") as f:
        f.write(text)
    test = os.path.join(where, "test.yml")
    with open(test, "w", encoding="utf-8") as f:
        json.dump({"rule_files": [copy], "evaluation_interval": "15s",
                   "tests": rule_tests}, f)
    return promtool("test", "rules", test)


def fires(severity):
    tests = []
    for name, labels, before, at, changes in FIRES:
        tests.append({"interval": "1m", "input_series": series(changes),
                      "alert_rule_test": [
                          {"eval_time": f"{before}m", "alertname": name,
                           "exp_alerts": []},
                          {"eval_time": f"{at}m", "alertname": name,
                           "exp_alerts": [expected(name, labels,
                                                   severity.get(name))]}]})
    return tests


def silent(severity):
    tests = []
    for _, changes, names in [("all is well", {}, sorted(severity))] + SILENT:
        tests.append({"interval": "1m", "input_series": series(changes),
                      "alert_rule_test": [
                          {"eval_time": f"{minute}m", "alertname": name,
                           "exp_alerts": []}
                          for name in names for minute in (3, 15, 30, 45)]})
    return tests


def metric_names():
    out = subprocess.run([os.path.join(BUILD, "tests/golden/metric_dump")],
                         check=True, stdout=subprocess.PIPE, text=True).stdout
    names = {"up"}
    for line in out.splitlines():
        name, kind = line.split("\t")[:2]
        names.add(name)
        if kind == "histogram":
            names |= {name + s for s in ("_bucket", "_sum", "_count")}
    return names


def unknown(text):
    used = set(re.findall(r"\b(?:xlb|process)_[a-z_]+\b", text))
    return [f"{name}: there is no such metric"
            for name in sorted(used - metric_names())]


def dashboard():
    """Its queries, as a file of rules that promtool reads."""
    with open(DASHBOARD, encoding="utf-8") as f:
        board = json.load(f)
    panels = board["panels"] + [p for row in board["panels"]
                                for p in row.get("panels", [])]
    queries = [t["expr"] for p in panels for t in p.get("targets", [])]
    ids = [p["id"] for p in panels]
    wrong = [] if len(ids) == len(set(ids)) else ["two panels of one id"]
    for p in panels:
        if p["type"] != "row" and not p.get("targets"):
            wrong.append(f"{p['title']}: asks for nothing")
    return queries, wrong


def queries_check(queries, where):
    rules = os.path.join(where, "queries.yml")
    plain = [q.replace("$__rate_interval", "5m").replace("$__range", "1h")
             for q in queries]
    with open(rules, "w", encoding="utf-8") as f:
        json.dump({"groups": [{"name": "q", "rules": [
            {"record": f"q{i}", "expr": q} for i, q in enumerate(plain)]}]}, f)
    return promtool("check", "rules", rules)


def main():
    if shutil.which("promtool") is None:
        print("1..0 # SKIP needs promtool")
        return
    severity = alerts()
    verdict("rules load", promtool("check", "rules", RULES))
    with open(RULES, encoding="utf-8") as f:
        verdict("rules name metrics", unknown(f.read()))
    verdict("each alert has a case", sorted(
        set(severity) ^ {row[0] for row in FIRES}))
    with tempfile.TemporaryDirectory() as where:
        verdict("alerts fire", check_labels(fires(severity), where))
        verdict("alerts are silent", check_labels(silent(severity), where))
        queries, wrong = dashboard()
        verdict("dashboard", wrong + unknown(" ".join(queries)) +
                queries_check(queries, where))
    print(f"1..{count}")


sys.exit(main())
