# SPDX-License-Identifier: GPL-2.0-or-later
"""What processes hold and what is in a namespace, to compare before and after."""

import collections
import contextlib
import os
import pathlib
import re


def descendants(pid):
    """[(pid, name)] of all processes below one."""
    parent = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = path.read_text().rpartition(")")
            number, _, name = head.partition(" (")
            parent[int(number)] = (int(tail.split()[1]), name)
    found, seek = [], [pid]
    while seek:
        up = seek.pop()
        below = [(p, name) for p, (pp, name) in parent.items() if pp == up]
        found += below
        seek += [p for p, _ in below]
    return sorted(found)


def process_names(pid):
    """Of all processes below one."""
    return sorted(name for _, name in descendants(pid))


def pin_names(path):
    """Of all that is pinned below a directory; none while that changes."""
    with contextlib.suppress(FileNotFoundError):
        return sorted(str(p.relative_to(path)) for p in path.rglob("*"))
    return []


def process_facts(pid):
    """What a process holds: descriptors by kind, memory of its own (kB)."""
    kinds = collections.Counter()
    for path in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            kinds[re.sub(r"[:\[(]\d+.*|\d+$", "", os.readlink(path))] += 1
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return kinds, int(re.search(r"RssAnon:\s+(\d+)", status).group(1))


def sanitized(pid):
    """With sanitizers, freed memory is kept for a while."""
    return "asan" in pathlib.Path(f"/proc/{pid}/maps").read_text() or \
        b"__asan" in pathlib.Path(f"/proc/{pid}/exe").read_bytes()


def namespace_facts(f, node):
    """What xlbd makes in a namespace besides pins: rules, routes of its table,
    devices, disciplines."""
    out = []
    for argv in (("ip", "-o", "link"), ("ip", "rule"), ("ip", "-6", "rule"),
                 ("tc", "qdisc"), ("ip", "route", "show", "table", "all"),
                 ("ip", "-6", "route", "show", "table", "all")):
        for line in f.run(node, *argv).stdout.splitlines():
            line = re.sub(r" (qlen|expires|state|qdisc|mode) \S+|prog/xdp.*|"
                          r"<[A-Z_,]*>|\d+: (?=xl|eth)|\\ *", " ", line)
            if "proto bird" not in line and "proto kernel" not in line:
                out.append(" ".join((*argv[:2], *line.split())))
    return sorted(out)
