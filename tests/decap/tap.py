# SPDX-License-Identifier: GPL-2.0-or-later
"""Test cases as functions, results as TAP."""
import sys
import traceback


class Skip(Exception):
    """Raised by a case, or before the first one, with the reason."""


def plan_skip(why):
    print("1..0 # SKIP", why)
    sys.exit(0)


def run(cases):
    """Runs (name, function) pairs; the exit status tells whether all passed."""
    print("1..%d" % len(cases), flush=True)
    failed = 0
    for number, (name, case) in enumerate(cases, 1):
        try:
            case()
            print("ok %d - %s" % (number, name), flush=True)
        except Skip as why:
            print("ok %d - %s # SKIP %s" % (number, name, why), flush=True)
        except Exception:
            failed += 1
            for line in traceback.format_exc().splitlines():
                print("#", line)
            print("not ok %d - %s" % (number, name), flush=True)
    return 1 if failed else 0
