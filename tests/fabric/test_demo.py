# SPDX-License-Identifier: GPL-2.0-or-later
"""What `./setup demo --keep` says to look around with, in a shell as it is."""

import subprocess

import demo
import pytest


@pytest.mark.parametrize("command", [c for c, _ in demo.LOOK])
def test_look_around(fabric, command):
    demo.names_write(fabric)
    got = subprocess.run(["sh", "-euc", f". {demo.NAMES}; {command}"],
                         capture_output=True, text=True, timeout=60,
                         check=False)
    assert got.returncode == 0, got.stderr
    assert got.stdout.strip() or "drain" in command


def test_fits_a_terminal(fabric, capsys):
    demo.how_to(fabric)
    demo.Tour(fabric).verdict("A title of some length, as the last steps have",
                              fabric.http(40, 4), demo.BACKENDS)
    said = capsys.readouterr().out.splitlines()
    assert [x for x in said if len(x) > demo.COLUMNS] == []
