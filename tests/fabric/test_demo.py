# SPDX-License-Identifier: GPL-2.0-or-later
"""What `./setup demo --keep` says to look around with, in a shell as it is; how a
tour ends that does not do what it says."""

import os
import re
import subprocess
import sys

import demo
import lab
import pytest
from test_network import OTHER, OTHER_NAMES

# A tour of one step, under other names than this fabric's.
SHORT_TOUR = OTHER_NAMES + """
import demo, time
from types import SimpleNamespace as Row
class Tour(demo.Tour):
    def run(self):
        self.f.open()
        self.f.netns("a")
        print("process", self.f.start("a", "sleep", "sleep", 1000).pid, flush=True)
        %s
demo.Tour = Tour
# what a shell starts in the background ignores it
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(demo.main([]))
"""


@pytest.mark.parametrize("step, status, said", (
    ("pass", 0, ""),
    ("self.verdict('2 requests', [Row(ok=True, backend='b1'), Row(ok=False, "
     "backend=None)], ['b1'])", 1, "This did not work: failed requests"),
    ("self.verdict('1 request', [Row(ok=True, backend='b2')], ['b1'])", 1,
     "This did not work: answers came from ['b2'], not ['b1']"),
    ("lab.wait('a route', lambda: False, 0.1)", 1,
     "This did not work: waited 0.1 s for a route"),
    ("os.kill(os.getpid(), signal.SIGINT); time.sleep(9)", 130, "Interrupted"),
    ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)", 130,
     "Interrupted"),
))
def test_its_end_is_told_and_nothing_is_left(step, status, said):
    if os.geteuid() != 0:
        pytest.skip("needs root: network namespaces")
    got = subprocess.run([sys.executable, "-c", SHORT_TOUR % step],
                         capture_output=True, text=True, timeout=60,
                         check=False)
    assert (got.returncode, got.stderr) == (status, ""), got
    assert said in got.stdout
    pid = int(re.search(r"^process (\d+)$", got.stdout, re.M)[1])
    assert (lab.process_stat(pid) or "Z")[0] == "Z"
    assert not lab.RUN.with_name(OTHER + "-self").exists()
    assert not list(lab.NETNS.glob(OTHER + "s-*"))


@pytest.mark.parametrize("command", [c for c, _ in demo.LOOK])
def test_look_around(fabric, command):
    demo.names_write(fabric)
    # a drain waits for what the tests before have left
    got = subprocess.run(["sh", "-euc", f". {demo.NAMES}; {command}"],
                         capture_output=True, text=True, timeout=240,
                         check=False)
    assert got.returncode == 0, got.stderr
    assert got.stdout.strip() or "drain" in command


def test_fits_a_terminal(fabric, capsys):
    demo.how_to(fabric)
    demo.Tour(fabric).verdict("A title of some length, as the last steps have",
                              fabric.http(40, 4), demo.BACKENDS)
    said = capsys.readouterr().out.splitlines()
    assert [x for x in said if len(x) > demo.COLUMNS] == []
