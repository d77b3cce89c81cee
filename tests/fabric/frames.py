#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends COUNT test frames out of DEVICE and prints how many come back.

usage: frames.py DEVICE COUNT SECONDS
"""

import socket
import sys
import time

ETHERTYPE_TEST = 0x88b5
ETH_P_ALL = 3  # a bridge takes the frame before a socket for its type sees it
PEER = b"\x02\x00\x00\x00\xbf\x02"
OURS = b"\x02\x00\x00\x00\xbf\x01"


def main(device, count, seconds):
    # A socket without a protocol until it is bound sees no other device.
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.bind((device, ETH_P_ALL))
    wanted = set()
    for i in range(count):
        payload = b"xlbf" + i.to_bytes(4, "big") + bytes(46)
        s.send(PEER + OURS + ETHERTYPE_TEST.to_bytes(2, "big") + payload)
        wanted.add(payload)
    back = 0
    end = time.monotonic() + seconds
    while wanted and (left := end - time.monotonic()) > 0:
        s.settimeout(left)
        try:
            frame = s.recv(2048)
        except socket.timeout:
            break
        if frame[:12] == OURS + PEER and frame[14:] in wanted:
            wanted.remove(frame[14:])
            back += 1
    print(back)


main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
