#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What clang-format says of blanks and of indentation, by .clang-format. Where a
statement's lines break is left to who writes it, and so is what follows a break.

usage: style.py FILE...
"""

import re
import subprocess
import sys

TOKEN = re.compile(r'''
    /\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' |
    \w+ | <<= | >>= | -> | \+\+ | -- | [-+*/%&|^=!<>]= | && | \|\| |
    << | >> | \.\.\. | (?!\\\n)\S''', re.S | re.X)
COMMENT = ("/*", "//")
KEYWORDS = ("if", "for", "while", "do", "switch", "return", "break", "continue",
            "goto", "else")
# Where version 14 takes a cast or a declaration for an operator, and the empty
# parts of a for.
UNSURE = (")~", "*", ";)", ";;")


def tokens(text):
    """(line, token, the blanks before it on its line, is it the line's first) of
    each; a macro goes on where a backslash ends its line."""
    at, line, found = 0, 1, []
    for m in TOKEN.finditer(text):
        gap = text[at:m.start()]
        line += gap.count("\n")
        first = "\n" in gap.replace("\\\n", "") or at == 0
        found.append((line, m[0], gap.rpartition("\n")[2], first))
        line += m[0].count("\n")
        at = m.end()
    return found


def told(token):
    """What has to be the same: comments move with what they belong to."""
    return re.sub(r"\s+", " ", token)


def compare(file):
    """(line, what is wrong) of each place."""
    with open(file, encoding="utf-8") as f:
        text = f.read()
    formatted = subprocess.run(["clang-format", "--style=file", file],
                               capture_output=True, text=True, check=True)
    ours, theirs = tokens(text), tokens(formatted.stdout)
    if [told(t[1]) for t in ours] != [told(t[1]) for t in theirs]:
        yield 1, "clang-format changes more than blanks"
        return
    macro, before, depth = False, "", 0
    for (line, token, gap, first), (_, _, gap2, first2) in zip(ours, theirs):
        if first:
            macro = token == "#"
        if token.startswith(COMMENT) or macro:
            continue
        if first and first2 and depth == 0 and (
                before in (";", "{", "}") or token in KEYWORDS):
            if gap != gap2:
                yield line, f"indented otherwise: {token}"
        elif not (first or first2 or before + token in UNSURE or
                  before in UNSURE) and bool(gap) != bool(gap2):
            yield line, f"{'a' if gap else 'no'} blank before {token}"
        depth += (token == "(") - (token == ")")
        before = token


def main():
    bad = 0
    for file in sys.argv[1:]:
        for line, what in compare(file):
            print(f"{file}:{line}: {what}")
            bad = 1
    return bad


sys.exit(main())
