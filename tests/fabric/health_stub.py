# SPDX-License-Identifier: GPL-2.0-or-later
"""A backend that answers HTTP checks: 200, and from SIGUSR1 to SIGUSR2 on 500.
Prints CLOCK_MONOTONIC at the first answer of each kind.

    health_stub.py ADDRESS PORT
"""

import selectors
import signal
import socket
import sys
import time


class Stub:
    def __init__(self, address, port):
        self.status = self.told = 200
        self.sel = selectors.DefaultSelector()
        self.listener = socket.create_server(
            (address, port), family=socket.AF_INET6 if ":" in address
            else socket.AF_INET)
        self.sel.register(self.listener, selectors.EVENT_READ)
        signal.signal(signal.SIGUSR1, lambda *_: self.set(500))
        signal.signal(signal.SIGUSR2, lambda *_: self.set(200))

    def set(self, status):
        self.status = status

    def answer(self, conn):
        try:
            data = conn.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self.sel.unregister(conn)
            conn.close()
            return
        status = self.status
        at = time.monotonic()
        conn.sendall(b"HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n" % status)
        if status != self.told:
            self.told = status
            print(status, at, flush=True)

    def run(self):
        print("ready", flush=True)
        while True:
            for key, _ in self.sel.select():
                if key.fileobj is self.listener:
                    conn, _ = self.listener.accept()
                    self.sel.register(conn, selectors.EVENT_READ)
                else:
                    self.answer(key.fileobj)


Stub(sys.argv[1], int(sys.argv[2])).run()
