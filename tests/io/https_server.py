#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers on 127.0.0.1 for https checks, good ones and others. Makes an
authority and certificates in the directory given, then tells "NAME PORT" of
each server and serves until it is killed. The good one answers with the server
name that it was asked for and with the request."""
import os
import socket
import ssl
import subprocess
import sys
import threading
import time

DIR = sys.argv[1]


def openssl(*args):
    subprocess.run(("openssl",) + args, check=True, cwd=DIR,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificates():
    # one key for all: what is looked at are names, dates and issuers
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout",
            "-out", "key.pem")
    for name in ("ca", "other", "self"):
        openssl("req", "-x509", "-key", "key.pem", "-subj", f"/CN={name}",
                "-days", "2", "-out", f"{name}.pem", "-addext",
                "subjectAltName=IP:127.0.0.1")
    openssl("req", "-new", "-key", "key.pem", "-subj", "/CN=www",
            "-out", "www.csr")
    for name, days, san in (("good", "2", "DNS:www.example.com,IP:127.0.0.1"),
                            ("name", "2", "DNS:www.example.com"),
                            ("expired", "-1", "IP:127.0.0.1")):
        with open(f"{DIR}/{name}.ext", "w", encoding="ascii") as f:
            f.write(f"subjectAltName={san}\n")
        openssl("x509", "-req", "-in", "www.csr", "-CA", "ca.pem", "-CAkey",
                "key.pem", "-set_serial", str(len(name)), "-days", days,
                "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    for name in ("ca", "other"):
        os.chmod(f"{DIR}/{name}.pem", 0o600)


def answer(c, sni):
    request = b""
    while b"\r\n\r\n" not in request:
        got = c.recv(4096)
        if not got:
            return
        request += got
    path = request.split()[1].decode()
    if path == "/silent":
        time.sleep(3600)
    body = f"sni {sni[0]} end\r\n".encode() + request
    status = path[1:] if path[1:].isdigit() else "200"
    c.sendall(b"HTTP/1.1 %s Word\r\nContent-Length: %d\r\n\r\n" %
              (status.encode(), len(body)) + body)
    c.recv(1)


def tls(cert):
    def serve(c):
        sni = [None]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{DIR}/{cert}.pem", f"{DIR}/key.pem")
        context.sni_callback = lambda s, name, x: sni.__setitem__(0, name)
        answer(context.wrap_socket(c, server_side=True), sni)
    return serve


def plain(c):
    c.recv(4096)
    c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def silent(c):
    c.recv(4096)
    time.sleep(3600)


def reset(c):
    c.recv(4096)
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                 b"\1\0\0\0\0\0\0\0")
    c.close()


def close(c):
    c.recv(4096)


def guarded(serve, c):
    try:
        with c:
            serve(c)
    except OSError:
        pass            # clients that do not trust us go away


def listen(s, serve):
    while True:
        c, _ = s.accept()
        threading.Thread(target=guarded, args=(serve, c), daemon=True).start()


SERVERS = [("good", tls("good")), ("name", tls("name")), ("self", tls("self")),
           ("expired", tls("expired")), ("plain", plain), ("silent", silent),
           ("reset", reset), ("close", close)]
certificates()
for who, how in SERVERS:
    sock = socket.create_server(("127.0.0.1", 0), backlog=64)
    threading.Thread(target=listen, args=(sock, how), daemon=True).start()
    print(who, sock.getsockname()[1], flush=True)
time.sleep(3600)
