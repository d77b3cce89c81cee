#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The far ends of test_attach.py, each a process in a network namespace.

    peer.py serve ADDRESS...         HTTP: GET answers "hello ADDRESS", POST the
                                     SHA-256 of the body
    peer.py wrap IFACE MAC FORM      what is routed into tun0 leaves IFACE
                                     wrapped; FORM: ip4, ip6, gue4, gue6
    peer.py flood IFACE MAC          numbered datagrams to the VIP, no more than
                                     one a millisecond, as 4in4, until there is
                                     a line to read; how many
    peer.py listen                   reads that, and says how many arrived
"""
import contextlib
import fcntl
import hashlib
import http.server
import os
import select
import socket
import struct
import sys
import threading
import time

BALANCER = {4: "10.9.0.1", 6: "2001:db8:9::1"}
BACKEND = {4: "10.9.0.2", 6: "2001:db8:9::2"}
VIP = {4: "203.0.113.10", 6: "2001:db8:5::10"}
CLIENT = {4: "192.0.2.7", 6: "2001:db8:c::7"}
FLOOD_PORT = 9
GUE_PORT = 6080
SO_RCVBUFFORCE = 33
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000


def address(text):
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    return socket.inet_pton(family, text)


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def header4(proto, length, src, dst):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0x4000, 64,
        proto, 0, address(src), address(dst))
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:]


def header6(proto, length, src, dst):
    return struct.pack("!IHBB16s16s", 6 << 28, length, proto, 64, address(src),
        address(dst))


def wrap(packet, form):
    version = int(form[-1])
    proto = 4 if packet[0] >> 4 == 4 else 41
    src, dst = BALANCER[version], BACKEND[version]
    if form.startswith("gue"):
        proto, size = 17, 8 + len(packet)
        udp = struct.pack("!HHHH", 40000, GUE_PORT, size, 0)
        if version == 6:
            pseudo = address(src) + address(dst) + struct.pack("!II", size, 17)
            udp = udp[:6] + struct.pack("!H",
                checksum(pseudo + udp + packet) or 0xffff)
        packet = udp + packet
    head = header4 if version == 4 else header6
    return head(proto, len(packet), src, dst) + packet


def link_header(mac, version):
    return bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000001") \
        + (b"\x08\x00" if version == 4 else b"\x86\xdd")


def packet_socket(iface):
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((iface, 0))
    return out


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer(b"hello " + self.server.server_address[0].encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(hashlib.sha256(body).hexdigest().encode())

    def log_message(self, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, host):
        self.address_family = socket.AF_INET6 if ":" in host \
            else socket.AF_INET
        super().__init__((host, 80), Handler)


def serve(*hosts):
    for host in hosts:
        server = Server(host)
        threading.Thread(target=server.serve_forever).start()
    print("ready", flush=True)


def wrapper(iface, mac, form):
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"tun0",
        IFF_TUN | IFF_NO_PI))
    out = packet_socket(iface)
    print("ready", flush=True)
    while True:
        packet = os.read(tun, 65536)
        version = packet[0] >> 4
        if version == 6 and packet[6] == 58:
            continue    # the device's own router solicitations
        out.send(link_header(mac, int(form[-1])) + wrap(packet, form))


def is_told():
    return select.select([sys.stdin], [], [], 0)[0]


def flood(iface, mac):
    out = packet_socket(iface)
    head = link_header(mac, 4)
    number = 0
    print("ready", flush=True)
    while not is_told():
        data = struct.pack("!I", number)
        udp = struct.pack("!HHHH", 9, FLOOD_PORT, 8 + len(data), 0) + data
        inner = header4(17, len(udp), CLIENT[4], VIP[4]) + udp
        out.send(head + wrap(inner, "ip4"))
        number += 1
        time.sleep(0.001)   # a queue of the kernel's holds 256
    print(number, flush=True)


def listen():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # it may be a while until it has the processor again
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    sock.bind((VIP[4], FLOOD_PORT))
    sock.settimeout(0.1)
    print("ready", flush=True)
    seen, count, end = set(), None, None
    while count is None or len(seen) < count and time.monotonic() < end:
        if count is None and is_told():
            count, end = int(sys.stdin.readline()), time.monotonic() + 20
        with contextlib.suppress(socket.timeout):
            seen.add(sock.recv(64))
    print(len(seen), flush=True)


if __name__ == "__main__":
    {"serve": serve, "wrap": wrapper, "flood": flood, "listen": listen}[
        sys.argv[1]](*sys.argv[2:])
