#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The manuals and doc/json.md against the code: exit statuses, who may do what,
commands of the control socket, the headings of sample output; and mandoc finds
nothing in any page."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

SRC = pathlib.Path(os.environ.get("top_srcdir") or
                   pathlib.Path(__file__).parents[2])
BUILD = pathlib.Path(os.environ.get("top_builddir", ".")).resolve()
sys.dont_write_bytecode = True
sys.path.append(str(SRC / "tests/ctl"))
from xlb import GOLDEN, daemon, equal, main, reply, usage_commands, xlb  # noqa: E402

PAGES = sorted((SRC / "man").glob("*.[58]"))
# What xlb does by itself, as anybody.
ALONE = {"check", "bird-config", "import-keepalived", "help", "version"}


def page(name):
    return (SRC / "man" / name).read_text(encoding="utf-8")


def section(text, title):
    part = text[text.index(f".Sh {title}\n"):]
    return part.split("\n.Sh ")[0]


def enum(path, name):
    """The values of an enum in C whose first constant has that name."""
    body = re.search(r"enum[^{]*\{\s*(" + name + r"[^}]*)\}",
                     (SRC / path).read_text())[1]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    values, n = [], -1
    for part in filter(None, map(str.strip, body.split(","))):
        n = int(part.split("=")[1]) if "=" in part else n + 1
        values.append(str(n))
    return values


def exit_statuses():
    for name, path, first in (
            ("xlb.8", "src/ctl/command.h", "STATUS_DONE"),
            ("xlb-decap.8", "src/decap/decap.h", "EXIT_DONE"),
            ("xlbd.8", "src/daemon/daemon.h", "EXIT_STOPPED")):
        items = re.findall(r"^\.It (\d+)$", section(page(name), "EXIT STATUS"),
                           re.M)
        equal(items, enum(path, first), f"{name}: exit statuses")


def handlers():
    """Commands of the control socket, and whether they change anything."""
    text = (SRC / "src/daemon/handlers.c").read_text()
    rows = re.findall(r'^\t\{ "([a-z]+)", (true|false), \w+ \},$', text, re.M)
    equal(len(rows) > 10, True, "rows of the table of handlers")
    return {name: change == "true" for name, change in rows}


def who_may_do_what():
    text = section(page("xlb.8"), "DESCRIPTION")
    may_look, alone = (set(re.findall(r"^\.Cm ([\w-]+)", part, re.M)) for part
                       in text.split("may look:")[1].split(".Pp")[0]
                       .split("status ."))
    equal(alone, ALONE, "what needs no daemon")
    own = handlers()
    changes = {name for name, change in own.items() if change} | {"detach"}
    # "backends" and its like ask for the status
    looks = set(usage_commands()) - changes - ALONE
    equal(may_look | {"status"}, looks, "what members of xlb may do")
    equal({n for n, change in own.items() if not change} <= looks, True,
          "what the daemon lets them")


def socket_commands():
    text = (SRC / "doc/json.md").read_text()
    table = text[text.index("| command | args |"):]
    rows = [row.split("|")[1] for row in table.splitlines()[2:]
            if row.startswith("|")]
    names = [n for row in rows for n in re.findall(r"`([a-z]+)`", row)]
    equal(sorted(names), sorted(handlers()), "commands in doc/json.md")


def headings(text):
    """Lines of words in capitals."""
    return [line.split() for line in text.splitlines() if
            re.match(r"[A-Z]{4}[A-Z/]*( |$)", line) and not re.search(
                r"[a-z]{2}(?<!/s)", line.replace("/s", ""))]


def answers():
    small = json.loads((GOLDEN / "small.json").read_text())
    lists = GOLDEN.parent / "lists"
    every = {"status": reply(**small)}
    for name in ("stats", "neighbors", "rings", "flows", "lookup"):
        every[name] = reply(**json.loads((lists / f"{name}.json").read_text()))
    return every


def sample_headings():
    """What a sample of the manual has above its columns, xlb prints."""
    with daemon(**answers()) as d:
        seen = 0
        for sample in re.findall(r"^\.Bd .*?\n(\$ xlb .*?)^\.Ed$",
                                 section(page("xlb.8"), "COMMANDS"),
                                 re.M | re.S):
            line, _, text = sample.partition("\n")
            want = [h if h[-1] != "..." else h[:-1] for h in headings(text)]
            if not want:
                continue
            seen += 1
            # a rate would take its second
            words = [w for w in line.split()[2:] if w != "--rate"]
            want = [[w.removesuffix("/s") for w in h] for h in want]
            got = headings(xlb(*words, run_dir=d.dir).stdout)
            equal([w for w in want if w not in (g[:len(w)] for g in got)], [],
                  f"{line}: headings that are not in {got}")
        equal(seen >= 6, True, f"{seen} samples with headings")


def names_in_prose():
    """Keys, reasons and members that the guides speak of are there."""
    dump = subprocess.run([BUILD / "tests/golden/schema_dump"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    keys = {line.split("\t")[1] for line in dump.splitlines()
            if line.startswith("key\t")}
    tops = {k.split(".")[0].split("[")[0] for k in keys}
    words = set(re.findall(r"\w+", " ".join(keys) + " ".join(
        xlb("completion", "reasons").stdout.split()) +
        (SRC / "doc/json.md").read_text() + page("xlb-decap.8") +
        page("xlb.8")))
    seen = 0
    for name in ("README.md", "doc/guide.md", "debian/xlb.README.Debian"):
        for span in re.findall(r"`([^`\n]+)`", (SRC / name).read_text()):
            m = re.match(r"([a-z_]+)((?:\[\])?(?:\.[a-z_]+(?![A-Z]))+)(: .*)?$", span)
            if m and m[1] in tops and "." not in (m[3] or ""):
                seen += 1
                equal(any(re.sub(r"\[\]|\.N\b", "", k) ==
                          re.sub(r"\[\]|\.N\b", "", m[1] + m[2])
                          for k in keys), True, f"{name}: `{span}`")
            elif re.fullmatch(r"[a-z]+(_[a-z]+)+", span):
                seen += 1
                equal(span in words, True, f"{name}: `{span}`")
    equal(seen > 20, True, f"{seen} names")


def mandoc_finds_nothing():
    if shutil.which("mandoc") is None:
        return "mandoc is missing (Debian: mandoc)"
    equal(len(PAGES), 4, "pages")
    for path in PAGES:
        r = subprocess.run(["mandoc", "-Tlint", "-Wstyle", path],
                           capture_output=True, text=True, check=False)
        # whether they are installed here is no fault of theirs
        equal([l for l in r.stdout.splitlines()
               if "referenced manual not found" not in l], [], path.name)
        for other in re.findall(r"^\.Xr (xlb[\w.-]*) (\d)", path.read_text(),
                                re.M):
            equal((SRC / "man" / ".".join(other)).exists(), True,
                  f"{path.name}: .Xr {' '.join(other)}")
    return None


if __name__ == "__main__":
    sys.exit(main([exit_statuses, who_may_do_what, socket_commands,
                   sample_headings, names_in_prose, mandoc_finds_nothing]))
