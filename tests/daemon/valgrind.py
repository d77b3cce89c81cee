#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""xlbd under valgrind: start, 50 reloads of all kinds, stop. No error, nothing
lost, no descriptor left, in xlbd and each of its helpers. Some minutes, so not in
make check."""

import os
import re
import shutil
import sys
import urllib.error
import urllib.request

import node
from node import check, run, wait

RELOADS = 50
KINDS = ("type: tcp", "type: http, path: /a", "type: https, path: /a",
         "type: udp", "type: dns", "type: icmp, via: direct",
         "type: exec, command: [/bin/true]",
         "type: exec, command: [/bin/sleep, '9']")
STD = 4         # standard input, output, errors and valgrind's own log
# What libraries keep for the whole of a process's life.
LIBRARIES = 16384


def why_not():
    if shutil.which("valgrind") is None:
        return "needs valgrind (Debian: valgrind)"
    if b"__asan_init" in (node.BUILD / "src/xlbd").read_bytes():
        return "needs a build without sanitizers"
    return node.why_not()


def start(n):
    """Ready after half a minute: the program's text is checked as well."""
    logs = n.dir / "vg"
    logs.mkdir()
    logs.chmod(0o1777)      # a helper's log begins when its rights are gone
    supp = node.SRC.resolve() / "tests/daemon/valgrind.supp"
    n.xlbd = n.start(
        "valgrind", "--quiet", "--leak-check=full", "--track-fds=yes",
        "--track-origins=yes", "--num-callers=30", "--error-limit=no",
        "--errors-for-leak-kinds=definite,indirect,possible",
        "--show-leak-kinds=definite,indirect,possible", "--verbose",
        f"--suppressions={supp}", f"--log-file={logs}/%p",
        (node.BUILD / "src/xlbd").resolve(), *n.options(), env={
            **os.environ, "LD_PRELOAD": str(
                (node.BUILD / "tests/daemon/valgrind_shim.so").resolve())})
    wait("xlbd to be ready", lambda: n.xlb("status")[0] == 0, 120)
    wait("the address to be announced", n.announced, 60)


def configure(n, i):
    """Another one each time; what checks ask is under way when it changes."""
    n.configure(
        more=f"checks: {{c: {{{KINDS[i % len(KINDS)]}, interval: 1s}}}}",
        pool="check: c, " if i % 3 else "",
        bgp=node.BGP if i % 10 < 7 else "",
        listen=", ".join(f"tcp/{80 + k}" for k in range(1 + i % 5)),
        backends=node.BACKENDS if i % 4 else "")
    if i % 5 == 0:
        n.file.write_text(n.file.read_text().replace(
            "listen: off", f"listen: 127.0.0.1:{9000 + i % 2}"))


def look(n, i):
    """What operators and Prometheus ask meanwhile."""
    for what in ("status", "stats", "pools", "flows", "rings", "neighbors",
                 "bgp", "fingerprint"):
        check(n.xlb(what)[0] == 0, what)
    n.xlb("lookup", "tcp", "192.0.2.1:1000", f"{node.VIP}:80")
    n.xlb("drain" if i % 2 else "undrain", "node")
    if i % 5 == 0:
        for path in ("/metrics", "/"):
            wait(path, lambda p=path: run(
                *n.inside("curl", "-s", "-f", "-o", "/dev/null",
                          f"http://127.0.0.1:{9000 + i % 2}{p}"),
                check=False).returncode == 0, 60)


def judge(n):
    """What valgrind has to say of each process."""
    whole = 0
    logs = {p.name: p.read_text(errors="replace")
            for p in (n.dir / "vg").iterdir()}
    for text in logs.values():
        if "ERROR SUMMARY" in text:
            check("ERROR SUMMARY: 0 errors" in text, text)
            whole += 1
        else:       # killed, or it has become a check's command
            check(re.search(r"== +at 0x", text) is None, text)
    # xlbd, two spawners, launcher, prober and HTTP helper
    check(whole >= 6, f"of {len(logs)} processes {whole} ended by themselves")
    text = logs[str(n.xlbd.pid)]
    kept = int(re.search(r"still reachable: ([\d,]+) bytes",
                         text)[1].replace(",", ""))
    fds = int(re.search(r"FILE DESCRIPTORS: (\d+) open", text)[1])
    check(kept <= LIBRARIES and fds == STD, text)
    print(f"# {len(logs)} processes, {whole} of them to their end; of xlbd's "
          f"{kept} bytes are left, and {fds - STD} descriptors")


def whole_life(n):
    n.configure()
    start(n)
    for i in range(RELOADS):
        configure(n, i)
        rc, out, err = n.xlb("reload")
        check(rc == 0, "reload", i, rc, out, err)
        if i % 7 == 0 or i % 5 == 0:
            look(n, i)
    n.configure()
    n.xlb("undrain", "node")
    check(n.xlb("reload")[0] == 0)
    wait("the address to be announced", n.announced, 60)
    check(n.xlb("stop")[0] == 0)
    check(n.xlbd.wait(60) == 0, "exit status", n.xlbd.returncode)
    judge(n)


if __name__ == "__main__":
    sys.exit(node.main(((f"valgrind: start, {RELOADS} reloads, stop",
                         whole_life),), why_not()))
