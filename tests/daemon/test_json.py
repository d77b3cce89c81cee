#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a real node says in JSON has the members that doc/json.md describes, all
of them and no other. test_views.py has those with examples of their own."""

import datetime
import json
import re
import sys
import time

import node
from node import check, run, wait
from test_views import documented, keys

KEEPALIVED = """virtual_server 203.0.113.9 80 {
    lb_kind DR
    real_server 10.0.1.11 80 { weight 1 }
}
"""


def section(name):
    text = (node.SRC / "doc/json.md").read_text()
    return re.split(r"\n##? ", text[text.index(f"\n## {name}\n") + 1:])[0]


def table_members(text):
    """Paths in the first column: "a, b" beside each other; "a b, c" is b and c
    in a; each "…" stands for one more of what the row before had first."""
    found, stack = [], []
    for row in re.findall(r"^\| (.*?) \|", text, re.M):
        deep = row.count("…")
        groups = re.findall(r"`([\w.\[\]]+)`(,?)", row)
        if not groups:
            continue
        prefix = stack[:deep]
        if not groups[0][1] and len(groups) > 1:
            prefix = prefix + [groups.pop(0)[0]]
            found.append(".".join(prefix))
            stack = prefix
        found += [".".join(prefix + [g]) for g, _ in groups]
    return {p.replace("[]", "") for p in found}


def members(o, path=""):
    """Paths of all members of an object, of lists those of any row."""
    found = set()
    for row in o if isinstance(o, list) else [o]:
        if isinstance(row, dict):
            for k, v in row.items():
                here = f"{path}.{k}" if path else k
                found |= {here} | members(v, here)
    return found


def up(n):
    n.configure(pool="check: c, ", more="checks: {c: {type: tcp, port: 80, "
                "via: direct, interval: 200ms}}")
    n.start_xlbd()


def show(n, *args, status=0):
    rc, out, err = n.xlb("--json", *args)
    check(rc == status, args, rc, err)
    return json.loads(out)


def status_is_as_documented(n):
    up(n)
    # everything that is a list has a row
    n.xlb("drain", "web/a")
    n.start_peer()
    wait("BIRD's session to be known", lambda: show(n, "status")["bird"]["peers"],
         30)
    status = show(n, "status")
    check(status["started"] <= status["config"]["loaded"], status["config"])
    got = members(status)
    want = table_members(section("status").split("What `bird.status`")[0])
    want |= {p.rpartition(".")[0] for p in want if "." in p}
    check(got == want, "only there:", sorted(got - want), "only in doc/json.md:",
          sorted(want - got))


def nat_is_as_documented(n):
    n.configure()
    n.file.write_text(n.file.read_text().replace(
        "pool: web}", "pool: web, forward: nat}"))
    n.start_xlbd()
    wait("a source", lambda: show(n, "flows", "--nat")["sources"], 20)
    got = show(n, "flows", "--nat")
    check(keys(got) == keys(documented("flows")[2]), got)
    check([s["address"] for s in got["sources"]] == ["10.0.1.1"], got)


def ends_are_as_documented(n):
    up(n)
    got = show(n, "stop")
    check(got == {"schema": 1, "errors": [], "warnings": []}, got)
    check(n.xlbd.wait(60) == 0, "xlbd failed")
    n.start_xlbd()
    n.xlbd.kill()
    n.xlbd.wait()
    check(show(n, "detach", "--force") == {"schema": 1})


def sessions_are_older_than_we_are(n):
    """BIRD says since when, where xlbd has not seen it."""
    n.start_peer()
    time.sleep(3)
    before = datetime.datetime.now(datetime.timezone.utc)
    up(n)
    wait("the session to be known", lambda: show(n, "bgp")["bird"]["peers"], 30)
    peer, = show(n, "bgp")["bird"]["peers"]
    since = datetime.datetime.fromisoformat(peer["since"].replace("Z", "+00:00"))
    check(peer["state"] == "Established" and
          (before - since).total_seconds() > 2 and
          n.peer_since[0] - 1 < since.timestamp() < n.peer_since[1] + 1, peer,
          before, n.peer_since)
    check(re.search(r"^tor1 +Established +\d+ +\d+[sm]$",
                    n.xlb("bgp")[1], re.M),
          n.xlb("bgp")[1])


def states_of_bird(n):
    """The closed set in the manual is the code's."""
    text = section("status")
    text = text[text.index("What `bird.status` says"):]
    said = re.findall(r"^\| `([a-z ]+)` \|", text, re.M)
    source = (node.SRC / "src/io/bird.c").read_text()
    table = re.search(r"status_text\[\] = \{.*?\n\};", source, re.S)[0]
    code = re.findall(r'\[BIRD_\w+\] = "([a-z ]+)"', table)
    # off: without bgp:, then bird is null
    check(len(code) > 5 and sorted([*said, "off"]) == sorted(code), said, code)


def others_are_as_documented(n):
    up(n)
    file = n.dir / "next.yaml"
    file.write_text(n.file.read_text().replace(", {name: b", ", {name: c, "
                                               "address: 10.0.1.13}, {name: b"))
    got = show(n, "diff", str(file))
    check(keys(got) == keys(documented("diff")[0]), got)
    check(got["added"] == ["backend 10.0.1.13"], got)
    check(set(show(n, "fingerprint")) == {"schema", "web"})
    check(keys(documented("fingerprint")[0]) == {"schema": None, "web": None})
    file.write_text("maglev: {seed: -1}\n")
    bad = show(n, "check", str(file), status=3)
    check(keys(bad) == keys(documented("check")[0]), bad)
    for command, want in (("version", {"version"}),
                          ("bird-config", {"bird_conf"})):
        check(set(show(n, command)) == want | {"schema"}, command)
    file.write_text(KEEPALIVED)
    got = show(n, "import-keepalived", str(file))
    check(set(got) == {"schema", "xlb_yaml"}, got)
    for command in ("reload", "drain", "undrain", "restart"):
        args = ["web/a"] if command.endswith("drain") else []
        got = show(n, command, *args)
        check(set(got) == {"schema", "errors", "warnings"}, command, got)
    got = show(n, "restart", "--flush")
    check(set(got) == {"schema", "errors", "warnings", "restarted"} and
          got["restarted"] is True, got)
    # sessions are known by then, to both that are compared
    wait("BIRD", lambda: show(n, "status")["bird"]["status"] == "synced", 30)
    bgp = show(n, "bgp")
    status = show(n, "status")
    check(keys(bgp) == {"schema": None, "bird": keys(status["bird"]),
                        "addresses": keys(status["addresses"])}, bgp)
    row = show(n, "backends")["backends"][0]
    check(set(row) == set(status["pools"][0]["backends"][0]) |
          {"pool", "ring"}, row)
    check(keys(show(n, "pools")["pools"]) == keys(status["pools"]))
    check(keys(show(n, "services")["services"]) == keys(status["services"]))


CASES = [status_is_as_documented, others_are_as_documented,
         nat_is_as_documented, ends_are_as_documented,
         sessions_are_older_than_we_are, states_of_bird]

if __name__ == "__main__":
    sys.exit(node.main(CASES))
