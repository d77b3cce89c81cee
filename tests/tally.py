#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts what the parts of `./setup check` found.

usage: tally.py LOGDIR part NAME KIND PATH
       tally.py LOGDIR total [NAME KIND PATH]...

LOGDIR/NAME.rc holds the exit status of the part, LOGDIR/NAME.log its output.
A part that did not run, or that failed without a failed test, is a failure.
KIND: tap (PATH: a build tree), lines (the log speaks TAP), junit (PATH: an XML
file), command (counts as one test), step (counts only if it failed).
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

Test = collections.namedtuple("Test", "name outcome text")
OUTCOME = {"PASS": "passed", "XFAIL": "passed", "SKIP": "skipped",
           "FAIL": "failed", "XPASS": "failed", "ERROR": "failed"}
TAIL = 60  # lines shown of a part that failed as a whole


def tap(tree):
    """Automake's result lines; the .trs files say which logs are of this run."""
    for trs in sorted(tree.rglob("*.trs")):
        program = str(trs.relative_to(tree))[:-len(".trs")]
        log = trs.with_suffix(".log").read_text(errors="replace")
        lines = re.findall(
            r"^(PASS|XFAIL|SKIP|FAIL|XPASS|ERROR): %s(?: (.*))?$"
            % re.escape(program), log, re.M)
        noted = re.findall(r"^:test-result: (\w+)", trs.read_text(), re.M)
        if [result for result, _ in lines] != noted:
            yield Test(program, "failed", "log and .trs disagree\n" + log)
            continue
        for result, name in lines:
            outcome = OUTCOME[result]
            yield Test(f"{program} {name}", outcome,
                       log if outcome == "failed" else
                       (name.partition("# SKIP")[2] or name).strip(" -"))


def junit(path):
    if not path.exists():
        return
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = f"{case.get('classname')} {case.get('name')}"
        bad = [x for tag in ("failure", "error") for x in case.findall(tag)]
        skip = case.find("skipped")
        if bad:
            out = "".join(x.text or "" for x in case.findall("system-out"))
            yield Test(name, "failed", out + "\n".join(
                x.text or x.get("message") or "" for x in bad))
        elif skip is not None:
            yield Test(name, "skipped", skip.get("message") or "no reason")
        else:
            yield Test(name, "passed", "")


def lines(log):
    """TAP as it was printed: what was said before a failure belongs to it."""
    said = []
    for line in log.read_text(errors="replace").splitlines():
        m = re.match(r"(not )?ok \d+ - (.*)", line)
        if not m:
            said.append(line)
        elif m[1]:
            yield Test(m[2], "failed", "\n".join(said[-TAIL:]))
        elif "# SKIP" in m[2]:
            yield Test(m[2].partition("# SKIP")[0], "skipped",
                       m[2].partition("# SKIP")[2].strip())
        else:
            yield Test(m[2], "passed", "")
        said = [] if m else said


def part(logdir, name, kind, path):
    rc_file = logdir / f"{name}.rc"
    if not rc_file.exists():
        return [Test(name, "failed", "did not run")]
    rc = int(rc_file.read_text())
    if kind == "lines":
        path = logdir / f"{name}.log"
    tests = list({"tap": tap, "lines": lines, "junit": junit}.get(
        kind, lambda _: [])(pathlib.Path(path)))
    if kind == "command" and rc == 0:
        tests.append(Test(name, "passed", ""))
    failed = any(t.outcome == "failed" for t in tests)
    if (rc != 0 and not failed) or (not tests and kind != "step"):
        log = (logdir / f"{name}.log").read_text(errors="replace")
        tests.append(Test(name, "failed", "\n".join(
            [f"exit status {rc}, the end of {logdir / name}.log:"]
            + log.splitlines()[-TAIL:])))
    return tests


def summary(tests):
    n = collections.Counter(t.outcome for t in tests)
    return "%d passed, %d failed, %d skipped" % (
        n["passed"], n["failed"], n["skipped"])


def main(logdir, command, *args):
    logdir = pathlib.Path(logdir)
    parts = [part(logdir, *args[i:i + 3]) for i in range(0, len(args), 3)]
    tests = [t for p in parts for t in p]
    failed = [t for t in tests if t.outcome == "failed"]
    if command == "part":
        step = args[1] == "step"
        print(("failed" if failed else "ok") if step else summary(tests))
        return 1 if failed else 0

    shown = set()
    for t in failed:
        print(f"\nFAILED {t.name}")
        if t.text in shown and "\n" in t.text:
            print("    in the log above")  # it holds several failures
        elif t.text:
            shown.add(t.text)
            print("    " + t.text.rstrip().replace("\n", "\n    "))
    skipped = {}  # reason: names, in the order of the first one
    for t in tests:
        if t.outcome == "skipped":
            skipped.setdefault(t.text, {})[t.name] = None
    for why, names in skipped.items():
        print(f"\nskipped: {why}")
        print("".join(f"    {name}\n" for name in names), end="")
    print(("\n" if failed or skipped else "") + summary(tests))
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in ("part", "total"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
