#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Many TCP connections at once: both ends, and a flood.

usage: streams.py serve NAME PORT CHECK_PORT
       streams.py hold PORT CONNECTIONS RATE ADDRESS...
       streams.py flood ADDRESS PORT COUNT RATE

serve answers each line with "NAME line", for as long as standard input is open;
the lines `down` and `up` there close and open CHECK_PORT, and nothing else.

hold keeps that many connections: some talk each second, some now and then, some
say a word and are quiet until the line `ask` comes on standard input; then all
speak. RATE more a second are opened, used once and closed. Prints one JSON
object a line: {"what": "open" | "broken" | "failed" | "asked", ...}; `broken` is
of one that had been answered, by `owner`, since `began`, `failed` of one that had
not, and was begun then; times are seconds since boot. It ends with its standard
input, after "done" with the counts.

flood sends SYNs from addresses in 198.18.0.0/15, RATE a second.
"""

import asyncio
import contextlib
import ipaddress
import json
import os
import random
import resource
import socket
import struct
import sys
import time

TIMEOUT = 20  # a machine may be slow; a lost packet is sent again before


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


async def stdin_lines():
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield line.decode().strip()


class Echo(asyncio.Protocol):
    """No stream for each of some hundred connections."""

    name = b""

    def connection_made(self, transport):
        self.transport, self.rest = transport, b""

    def data_received(self, data):
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self.transport.write(self.name + b" " + line + b"\n")


async def serve(name, port, check_port):
    Echo.name = name.encode()
    loop = asyncio.get_running_loop()

    def listen(on):
        # one socket for both families
        s = socket.socket(socket.AF_INET6)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.bind(("::", int(on)))
        return loop.create_server(Echo, sock=s, backlog=4096)

    await listen(port)
    check = await listen(check_port)
    async for line in stdin_lines():
        if line == "down":
            check.close()
        elif line == "up":
            check = await listen(check_port)
        print(line, flush=True)


class Holder:
    def __init__(self, port, addresses):
        self.port, self.addresses = port, addresses
        self.ask = asyncio.Event()
        self.count = {"open": 0, "broken": 0, "failed": 0, "short": 0,
                      "answers": 0}
        self.holding = 0

    def say(self, what, **more):
        self.count[what] += 1
        print(json.dumps({"what": what, "at": now(), **more}), flush=True)

    async def exchange(self, reader, writer):
        writer.write(b"hello\n")
        line = await asyncio.wait_for(reader.readline(), TIMEOUT)
        if not line.endswith(b" hello\n"):
            raise ConnectionError("closed by the other end")
        self.count["answers"] += 1
        return line.split()[0].decode()

    async def connect(self):
        return await asyncio.wait_for(asyncio.open_connection(
            random.choice(self.addresses), self.port), TIMEOUT)

    async def hold_one(self, kind):
        """A connection until it breaks: the first answer says whose it is."""
        reader, writer = await self.connect()
        began, asked = now(), 0
        try:
            source = writer.get_extra_info("sockname")[:2]
            owner = await self.exchange(reader, writer)
        except BaseException:
            writer.transport.abort()
            raise
        self.count["open"] += 1
        self.holding += 1
        spoke = now()
        try:
            while True:
                pause = {"busy": random.uniform(0.5, 1.5), "slow":
                         random.uniform(4, 12), "idle": 3600}[kind]
                asking = self.asking
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.shield(asking), pause)
                spoke = now()
                got = await self.exchange(reader, writer)
                if got != owner:
                    raise ConnectionError(f"answered by {got}")
                if asking.done() and asked != id(asking):
                    asked = id(asking)
                    self.asked += 1
        except (OSError, asyncio.TimeoutError) as e:
            self.say("broken", owner=owner, began=began, kind=kind,
                     spoke=spoke, source=source,
                     why=str(e) or type(e).__name__)
        finally:
            self.holding -= 1
            writer.transport.abort()

    async def hold(self, kind):
        while True:
            began = now()
            try:
                await self.hold_one(kind)
            except (OSError, asyncio.TimeoutError) as e:
                self.say("failed", kind=kind, began=began,
                         why=str(e) or type(e).__name__)
            await asyncio.sleep(0.2)

    async def short(self):
        began = now()
        try:
            reader, writer = await self.connect()
            try:
                await self.exchange(reader, writer)
            finally:
                writer.transport.abort()
            self.count["short"] += 1
        except (OSError, asyncio.TimeoutError) as e:
            self.say("failed", kind="short", began=began,
                     why=str(e) or type(e).__name__)

    async def shorts(self, rate):
        loop, tasks = asyncio.get_running_loop(), set()
        while True:
            task = loop.create_task(self.short())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await asyncio.sleep(random.expovariate(rate))

    async def begin(self, n, rate):
        loop = asyncio.get_running_loop()
        self.tasks = []
        self.asked, self.asking = 0, loop.create_future()
        for i in range(n):
            kind = "busy" if i % 10 < 1 else "slow" if i % 10 < 6 else "idle"
            self.tasks.append(loop.create_task(self.hold(kind)))
            if i % 50 == 49:
                await asyncio.sleep(0.05)  # not all SYNs at once
        self.tasks.append(loop.create_task(self.shorts(rate)))

    async def run(self, n, rate):
        await self.begin(n, rate)
        async for line in stdin_lines():
            if line == "ask":
                self.asked = 0
                self.asking.set_result(True)
                self.asking = asyncio.get_running_loop().create_future()
            print(json.dumps({"what": line, "holding": self.holding,
                              "asked": self.asked, **self.count}), flush=True)
        for task in self.tasks:
            task.cancel()


def checksum(data):
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff


def flood(address, port, count, rate):
    """The sum is right in each: the sequence number makes up for the rest."""
    dst = ipaddress.IPv4Address(address).packed
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
    base = struct.pack("!HHIIBBHHH", 0, port, 0, 0, 0x50, 2, 65535, 0, 0)
    pseudo = b"\xc6\x12\0\0" + dst + struct.pack("!BBH", 0, 6, 20)
    total = checksum(pseudo + base)
    begin = time.monotonic()
    for i in range(count):
        low, sport = random.getrandbits(16), random.randint(1024, 65535)
        src = b"\xc6\x12" + struct.pack("!H", low)
        seq = struct.pack("!HH", 0xffff - low, 0xffff - sport)
        tcp = struct.pack("!HH4sIBBHHH", sport, port, seq, 0, 0x50, 2, 65535,
                          total, 0)
        with contextlib.suppress(OSError):
            s.sendto(ip + src + dst + tcp, (address, 0))
        if i % 100 == 99:
            time.sleep(max(0, begin + i / rate - time.monotonic()))
    print(count)


def main(what, *args):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    if what == "serve":
        asyncio.run(serve(args[0], *args[1:]))
    elif what == "hold":
        holder = Holder(int(args[0]), args[3:])
        asyncio.run(holder.run(int(args[1]), float(args[2])))
        # the kernel closes what is open, without a word to anybody here
        sys.stdout.flush()
        os._exit(0)
    else:
        flood(args[0], int(args[1]), int(args[2]), float(args[3]))


main(*sys.argv[1:])
