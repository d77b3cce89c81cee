# SPDX-License-Identifier: GPL-2.0-or-later
"""Accepts connections on every address and closes them, cheaply.

    accept_stub.py PORT
"""

import os
import socket
import sys

server = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=4096)
print("ready", flush=True)
while True:
    os.close(server._accept()[0])
