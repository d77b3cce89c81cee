#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""xlb.yaml(5) says of each key and limit what the key table has, in its order,
and of nothing else; its example is the one that we ship."""
import os
import re
import subprocess

SRC = os.environ.get("top_srcdir") or os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../..")
BUILD = os.environ.get("top_builddir", ".")
MANUAL = os.path.join(SRC, "man/xlb.yaml.5")
count = 0


def verdict(name, why):
    """One TAP line; `why` lists what is wrong."""
    global count
    count += 1
    for line in why:
        print("#", line)
    print(f"{'not ok' if why else 'ok'} {count} - {name}")


def sections(text):
    """The text of each .Sh, by its name."""
    parts = re.split(r"^\.Sh (.*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def sentence(text):
    return text[0].upper() + text[1:] + "."


def keys_compare(manual, rows):
    """`rows`: path, description, help."""
    items = []
    for block in re.split(r"^\.It Ic ", manual, flags=re.M)[1:]:
        path, body = block.split("\n", 1)
        items.append((path, " ".join(body.split())))
    wrong = []
    for path in sorted({p for p, _ in items} ^ {r[0] for r in rows}):
        wrong.append(f"{path}: in one of manual and table only")
    if wrong:
        return wrong
    for (path, body), (want, description, help_) in zip(items, rows):
        expected = f"{description}. {sentence(help_)}"
        if path != want:
            wrong.append(f"{path} stands where {want} should")
        elif not body.startswith(expected):
            wrong.append(f"{path}: not \"{expected}\"")
    return wrong


def limits_compare(manual, rows):
    found = re.findall(r"^\.It (.*) Ta (.*) Ta (.*)$", manual, flags=re.M)
    return [] if found == rows else [f"{found} is not {rows}"]


def example_compare(manual):
    block = re.search(r"^\.Bd .*\n((?s:.*?))^\.Ed$", manual, flags=re.M)
    with open(os.path.join(SRC, "etc/example.yaml"), encoding="utf-8") as f:
        want = "".join(line for line in f if not line.startswith("#"))
    return [] if block and block[1] == want else ["not etc/example.yaml"]


def main():
    dump = subprocess.run([os.path.join(BUILD, "tests/golden/schema_dump")],
                          check=True, stdout=subprocess.PIPE, text=True)
    rows = [tuple(line.split("\t")) for line in dump.stdout.splitlines()]
    with open(MANUAL, encoding="utf-8") as f:
        part = sections(f.read())
    verdict("keys", keys_compare(part["KEYS"],
            [r[1:] for r in rows if r[0] == "key"]))
    verdict("limits", limits_compare(part["LIMITS"],
            [r[1:] for r in rows if r[0] == "limit"]))
    verdict("example", example_compare(part["EXAMPLES"]))
    print("1..3")


main()
