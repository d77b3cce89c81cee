# SPDX-License-Identifier: GPL-2.0-or-later
"""Asks a node's HTTP listener, and reads Prometheus' text format."""

import re
import socket

import net
from node import wait

SAMPLE = re.compile(r'^([a-z_]+)(?:\{(.*)\})? (\S+)$')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')


class Response:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.header = {k.lower(): v for k, v in
                       (line.split(": ", 1) for line in lines[1:])}

    def text(self):
        return self.body.decode()


class Metrics:
    """`sample`: {(name, ((label, value), ...)): number}, sorted labels."""

    def __init__(self, text):
        self.type, self.help, self.sample = {}, {}, {}
        for line in text.splitlines():
            word = line.split(" ", 3)
            if line.startswith("# TYPE "):
                self.type[word[2]] = word[3]
            elif line.startswith("# HELP "):
                self.help[word[2]] = word[3]
            else:
                name, labels, value = SAMPLE.match(line).groups()
                key = name, tuple(sorted(LABEL.findall(labels or "")))
                if key in self.sample:
                    raise RuntimeError(f"twice: {line}")
                self.sample[key] = float(value)

    def get(self, name, **labels):
        """The one sample that has these labels; None."""
        found = self.all(name, **labels)
        if len(found) > 1:
            raise RuntimeError(f"{name} {labels}: {found}")
        return next(iter(found.values()), None)

    def all(self, name, **labels):
        return {key: v for key, v in self.sample.items() if key[0] == name and
                set(labels.items()) <= set(key[1])}

    def counters(self):
        return {key: v for key, v in self.sample.items()
                if self.type.get(key[0]) == "counter" or
                re.sub("_(bucket|sum|count)$", "", key[0]) in self.type and
                key[0] not in self.type}


def connect(n, port=9555, address="127.0.0.1"):
    with net.inside(n.ns):
        return socket.create_connection((address, port), timeout=60)


def ask(n, path="/metrics", method="GET", port=9555, head=""):
    with connect(n, port) as s:
        s.sendall(f"{method} {path} HTTP/1.1\r\nHost: n\r\n"
                  f"Connection: close\r\n{head}\r\n".encode())
        raw = b""
        while True:
            part = s.recv(65536)
            if not part:
                return Response(raw)
            raw += part


def scrape(n, port=9555):
    r = ask(n, port=port)
    if r.status != 200:
        raise RuntimeError(f"{r.status}: {r.text()}")
    return Metrics(r.text())


def answers(n, port=9555):
    try:
        return ask(n, port=port).status == 200
    except OSError:
        return False


def wait_metric(n, want, name, seconds=10, **labels):
    got = []

    def there():
        got[:] = [scrape(n).get(name, **labels)]
        return got[0] == want
    try:
        wait(f"{name}{labels} to be {want}", there, seconds)
    except RuntimeError as e:
        raise RuntimeError(f"{e}; it is {got}") from e
