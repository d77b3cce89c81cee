#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""xlbd(8) says of each metric what the table has, in its order, and of no
other."""
import os
import re
import shutil
import subprocess

SRC = os.environ.get("top_srcdir") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../..")
BUILD = os.environ.get("top_builddir", ".")
MANUAL = os.path.join(SRC, "man/xlbd.8")


def entry(row):
    """What the manual should say of a row of the table."""
    name, kind, help_, labels = row
    return (name + (f"{{{labels}}}" if labels else ""),
            f"{kind}. {help_[0].upper()}{help_[1:]}.")


def main():
    dump = subprocess.run([os.path.join(BUILD, "tests/golden/metric_dump")],
                          check=True, stdout=subprocess.PIPE, text=True)
    want = [entry(line.split("\t")) for line in dump.stdout.splitlines()]
    with open(MANUAL, encoding="utf-8") as f:
        text = f.read()
    section = re.search(r"^\.Sh METRICS$(.*?)^\.Sh ", text, re.M | re.S)[1]
    found = [(head, " ".join(body.split())) for head, body in re.findall(
        r"^\.It Ic (\S+)\n(.*?)(?=^\.It |^\.El)", section, re.M | re.S)]
    wrong = [f"{w} is not {f}" for w, f in zip(want, found) if w != f]
    if len(want) != len(found):
        wrong.append(f"{len(found)} metrics, not {len(want)}")
    for line in wrong:
        print("#", line)
    print(f"{'not ok' if wrong or not want else 'ok'} 1 - metrics")
    if shutil.which("mandoc"):
        out = subprocess.run(["mandoc", "-Tlint", MANUAL], check=False,
                             stdout=subprocess.PIPE, text=True).stdout
        bad = [line for line in out.splitlines()
               if "referenced manual not found" not in line]
        for line in bad:
            print("#", line)
        print(f"{'not ok' if bad else 'ok'} 2 - mandoc -Tlint")
    else:
        print("ok 2 - mandoc -Tlint # SKIP no mandoc")
    print("1..2")


main()
