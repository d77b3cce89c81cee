# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel of a namespace says about its routes, and what is said to a
router in BGP."""

import ctypes
import socket
import struct
import threading
import time

import lab

BGP, KEEPALIVE = 179, 19    # port; the size of one that says nothing
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

    def when(self, added, dst, since, timeout=20):
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


class Updates(threading.Thread):
    """When a node told a router something in BGP, seen where it comes in."""

    def __init__(self, ns, device, source):
        super().__init__(daemon=True)
        self.source = socket.inet_aton(source)
        self.times = []  # monotonic
        self.on = True

        def opened():
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                 socket.htons(0x0800))
            sock.bind((device, 0x0800))
            sock.settimeout(0.2)
            return sock
        self.sock = lab.in_netns(ns, opened)

    def run(self):
        while self.on:
            try:
                p = self.sock.recv(65536)
            except TimeoutError:
                continue
            at = time.monotonic()
            if p[9] != socket.IPPROTO_TCP or p[12:16] != self.source:
                continue
            tcp = 4 * (p[0] & 15)
            size = struct.unpack_from(">H", p, 2)[0] - tcp - \
                4 * (p[tcp + 12] >> 4)
            if BGP in struct.unpack_from(">HH", p, tcp) and size > KEEPALIVE:
                self.times.append(at)
        self.sock.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.on = False
        self.join()

    def last(self, since):
        """Of those that have been read: the routes may have been faster."""
        return max(lab.wait("an update", lambda: [
            t for t in list(self.times) if t >= since], pause=0.001))
