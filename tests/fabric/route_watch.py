# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel of a namespace says about its routes."""

import ctypes
import socket
import struct
import threading
import time

RTM_NEWROUTE, RTM_DELROUTE = 24, 25
RTA_DST = 1


class Routes(threading.Thread):
    """The kernel's routes in a namespace, as they come and go."""

    def __init__(self, netns):
        super().__init__(daemon=True)
        self.netns = netns
        self.events = []  # (monotonic, added or changed, destination)
        self.on = True
        self.ready = threading.Event()

    def run(self):
        libc = ctypes.CDLL(None, use_errno=True)
        with open(self.netns, "rb") as ns:
            # this thread alone
            if libc.setns(ns.fileno(), 0x40000000) != 0:  # CLONE_NEWNET
                raise OSError(ctypes.get_errno(), "setns")
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        sock.setsockopt(socket.SOL_SOCKET, 33, 4 << 20)    # SO_RCVBUFFORCE
        sock.bind((0, 0x40 | 0x400))    # IPv4 and IPv6 routes
        sock.settimeout(0.2)
        self.ready.set()
        while self.on:
            try:
                data = sock.recv(65536)
            except TimeoutError:
                continue
            at = time.monotonic()
            while len(data) >= 16:
                size, kind = struct.unpack_from("=IH", data)
                self._message(at, kind, data[16:size])
                data = data[(size + 3) & ~3:]
        sock.close()

    def _message(self, at, kind, body):
        family = body[0]
        at_attr = 12
        while at_attr + 4 <= len(body):
            size, attr = struct.unpack_from("=HH", body, at_attr)
            if attr == RTA_DST:
                dst = socket.inet_ntop(family,
                                       body[at_attr + 4:at_attr + size])
                self.events.append((at, kind == RTM_NEWROUTE, dst))
            at_attr += (size + 3) & ~3

    def __enter__(self):
        self.start()
        self.ready.wait(5)
        return self

    def __exit__(self, *_):
        self.on = False
        self.join()

    def of(self, dst, since=0.0):
        """What happened to that destination."""
        return [e for e in list(self.events) if e[2] == dst and e[0] >= since]

    def has(self, dst):
        return next((a for _, a, d in reversed(self.events) if d == dst),
                    False)

    def when(self, added, dst, since, timeout=3):
        """How long after `since` the route came (or went), in seconds."""
        end = time.monotonic() + timeout
        while True:
            for t, a, d in list(self.events):
                if a == added and d == dst and t >= since:
                    return t - since + 1e-9
            if time.monotonic() > end:
                raise TimeoutError(
                    f"not within {timeout} s: {dst} "
                    f"{'added' if added else 'removed'} at the peer")
            time.sleep(0.005)
