#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbered datagrams that nobody sends again.

usage: datagrams.py serve PORT
       datagrams.py send ADDRESS PORT RATE

serve answers each with the same, from the address that it came to. send sends
RATE a second until its standard input ends, then prints how many it sent and
how many were not answered within LATE seconds; a new socket, so a new flow, for
each hundred.
"""

import select
import socket
import struct
import sys
import time

LATE = 5.0
IP_PKTINFO = 8          # of Linux; Python's socket lacks it


def serve(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    s.bind(("", port))
    while True:
        data, control, _, source = s.recvmsg(2048, 256)
        info = [c[2] for c in control if c[1] == IP_PKTINFO]
        # struct in_pktinfo: interface, our address, the header's
        reply = struct.pack("I4s4s", 0, info[0][4:8], b"\0" * 4)
        s.sendmsg([data], [(socket.IPPROTO_IP, IP_PKTINFO, reply)], 0,
                  source)


def send(address, port, rate):
    sent, answered, sockets = 0, set(), []
    begin, end = time.monotonic(), None
    poll = select.poll()
    poll.register(0, select.POLLIN)

    def take(fd):
        for s in sockets:
            if s.fileno() == fd:
                answered.add(int(s.recv(2048)))

    while end is None or (len(answered) < sent and time.monotonic() < end):
        due = begin + sent / rate
        if end is None and time.monotonic() >= due:
            if sent % 100 == 0:
                sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sockets[-1].connect((address, port))
                poll.register(sockets[-1], select.POLLIN)
            sockets[-1].send(b"%d" % sent)
            sent += 1
        for fd, _ in poll.poll(max(0, min(100, (due - time.monotonic()) * 1000))):
            if fd != 0:
                take(fd)
            elif not sys.stdin.readline():
                poll.unregister(0)
                end = time.monotonic() + LATE
    missing = sorted(set(range(sent)) - answered)
    for n in missing[:20]:
        print(f"number {n}, due at {begin + n / rate:.3f}")
    print(f"{sent} sent, {len(missing)} lost", flush=True)


if sys.argv[1] == "serve":
    serve(int(sys.argv[2]))
else:
    send(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
