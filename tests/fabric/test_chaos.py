# SPDX-License-Identifier: GPL-2.0-or-later
"""Both nodes suffer at random for a while; see chaos.py. XLB_CHAOS_SECONDS=1800
is the soak, XLB_CHAOS_SEED repeats a run."""

import os
import time

import chaos

SECONDS = float(os.environ.get("XLB_CHAOS_SECONDS", "12"))
SEED = int(os.environ.get("XLB_CHAOS_SEED", time.time_ns() % 1000000))


def test_chaos(fabric):
    chaos.run(fabric, SECONDS, SEED)
