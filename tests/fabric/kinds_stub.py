# SPDX-License-Identifier: GPL-2.0-or-later
"""A backend that answers https and DNS checks on some addresses.

    kinds_stub.py CERTIFICATE-AND-KEY HTTPS-PORT DNS-PORT ADDRESS...
"""

import socket
import ssl
import struct
import sys
import threading


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def https(server, context):
    while True:
        conn, _ = server.accept()
        conn.settimeout(1)
        try:
            with context.wrap_socket(conn, server_side=True) as tls:
                tls.recv(4096)
                tls.sendall(b"HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            pass


def dns(s):
    """The question again, with an address for its name."""
    while True:
        query, peer = s.recvfrom(512)
        head = query[:2] + struct.pack("!5H", 0x8180, 1, 1, 0, 0)
        answer = struct.pack("!3HIH", 0xc00c, 1, 1, 60, 4) + b"\xc0\0\2\1"
        s.sendto(head + query[12:] + answer, peer)


def main(pem, https_port, dns_port, *addresses):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    for a in addresses:
        server = socket.create_server((a, int(https_port)),
                                      family=family_of(a))
        threading.Thread(target=https, args=(server, context)).start()
        s = socket.socket(family_of(a), socket.SOCK_DGRAM)
        s.bind((a, int(dns_port)))
        threading.Thread(target=dns, args=(s,)).start()
    print("ready", flush=True)


main(*sys.argv[1:])
