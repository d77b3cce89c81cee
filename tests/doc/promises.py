#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""doc/promises.md: the words stand in the documents, the tests in their files."""

import os
import pathlib
import re
import subprocess
import sys

TOP = pathlib.Path(os.environ.get("top_srcdir", "."))
sys.path.append(str(TOP / "tests/decap"))
import tap  # noqa: E402

TABLE = TOP / "doc/promises.md"
DOCUMENTS = ("README.md", "doc/guide.md", "man/xlb.8", "man/xlbd.8",
             "man/xlb.yaml.5", "man/xlb-decap.8")
FEWEST = 8  # rows of a document: less is no table of what it promises


def plain(text):
    """Without what stands between the words: markup, breaks of lines."""
    return " ".join(re.sub(r"[*`]", "", text).split())


def words_of(document):
    path = TOP / document
    if path.suffix == ".md":
        return plain(path.read_text())
    page = subprocess.run(["mandoc", "-Tascii", "-O", "width=1000", path],
                          check=True, capture_output=True, text=True).stdout
    return plain(re.sub(".\x08", "", page))


def rows():
    """(document, promise, [(file, [case])])"""
    document = None
    for number, line in enumerate(TABLE.read_text().splitlines(), 1):
        if line.startswith("## "):
            document = line[3:]
        m = re.fullmatch(r"\| (.*) \| (`.*) \|", line)
        if not m:
            continue
        tests = re.findall(r"`([^`]+)` ([^`]+?)(?:, (?=`)|$)", m[2])
        if document is None or not tests:
            raise RuntimeError(f"{TABLE}:{number}: no document, or no test")
        yield document, m[1], [(f, cases.split(", ")) for f, cases in tests]


def words_stand_there(document):
    text = words_of(document)
    gone = [p for d, p, _ in rows() if d == document and plain(p) not in text]
    if gone:
        raise RuntimeError(f"{document} no longer says: " + "; ".join(gone))


def tests_are_there(document):
    found = [(f, c) for d, _, tests in rows() if d == document
             for f, cases in tests for c in cases]
    if len(found) < FEWEST:
        raise RuntimeError(f"{len(found)} tests for {document}")
    gone = []
    for file, case in found:
        path = TOP / file
        if not path.exists():
            gone.append(file)
        elif not re.search(rf"\b{re.escape(case)}\b", path.read_text()):
            gone.append(f"{file}: {case}")
    if gone:
        raise RuntimeError("not there: " + "; ".join(gone))


def every_document_has_its_table():
    have = sorted({d for d, _, _ in rows()})
    if have != sorted(DOCUMENTS):
        raise RuntimeError(f"{have}")


if __name__ == "__main__":
    if subprocess.run(["sh", "-c", "command -v mandoc"], check=False,
                      stdout=subprocess.DEVNULL).returncode:
        tap.plan_skip("needs mandoc")
    sys.exit(tap.run(
        [("every document has its table", every_document_has_its_table)] +
        [(f"{d}: {what}", lambda d=d, f=f: f(d)) for d in DOCUMENTS
         for what, f in (("the words", words_stand_there),
                         ("the tests", tests_are_there))]))
