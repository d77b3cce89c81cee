# SPDX-License-Identifier: GPL-2.0-or-later
"""Sockets of another network namespace, made in this process."""

import contextlib
import ctypes
import os

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def enter(fd):
    if libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(name):
    """What is opened meanwhile is of that namespace."""
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        enter(there)
        try:
            yield
        finally:
            enter(here)
    finally:
        os.close(here)
        os.close(there)
