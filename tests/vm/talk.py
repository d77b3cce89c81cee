#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command in the guest with this process's standard input and output.
usage: talk.py PROGRAM-OF-THE-BUILD-TREE [ARGUMENT]..."""

import os
import socket
import sys
import threading

from image import GUEST_PORT


def main():
    s = socket.create_connection(("127.0.0.1", GUEST_PORT), 10)
    s.settimeout(None)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    program = os.path.relpath(sys.argv[1], os.environ["top_builddir"])
    s.sendall(f"talk {' '.join([program, *sys.argv[2:]])}\n".encode())

    def forth():
        while data := os.read(0, 65536):
            s.sendall(data)
        s.shutdown(socket.SHUT_WR)

    threading.Thread(target=forth, daemon=True).start()
    while data := s.recv(65536):
        while data:
            data = data[os.write(1, data):]


main()
