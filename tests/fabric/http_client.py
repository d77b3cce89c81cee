#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A HTTP client that says what became of each request.

usage: http_client.py ADDRESS PORT [--count N] [--parallel N] [--from-port P]
           [--ports FILE] [--rate N] [--keep N] [--pause S] [--timeout S]

--count N: N requests, each on a connection of its own, --parallel at a time;
--from-port: from source ports P, P + 1 and so on, the same flows every time.
--ports: else from the ports that FILE counts, over all clients that share it. The
kernel's own choice comes round within a minute, and a node that has seen the
last flow of a port end remembers it for two.
Without it, until standard input ends: --rate such requests a second, and --keep
connections that send a request every --pause seconds (50 ms) for as long as they
live.

Prints one JSON object a line: {"start": seconds since boot, "ms", "status",
"backend", "error", "port", "conn"}; `conn` numbers the kept connections and is
null for others.
"""

import argparse
import asyncio
import fcntl
import ipaddress
import json
import socket
import sys
import time

PORT_FIRST, PORT_LAST = 32768, 65000  # --from-port: 20000 to 32767


class Client:
    def __init__(self, args):
        self.address, self.port = args.address, args.port
        self.timeout, self.ports = args.timeout, args.ports
        self.keep_pause = args.pause
        self.v6 = ipaddress.ip_address(args.address).version == 6
        host = f"[{args.address}]" if self.v6 else args.address
        self.head = f"GET / HTTP/1.1\r\nHost: {host}\r\n"
        self.stopped = asyncio.Event()

    def port_next(self):
        with open(self.ports, "a+", encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            f.seek(0)
            port = int(f.read() or PORT_FIRST)
            f.truncate(0)
            f.write(str(port + 1 if port < PORT_LAST else PORT_FIRST))
        return port

    async def connect(self, port=0):
        """From a source port, 0 for any."""
        if not port and self.ports:
            port = self.port_next()
        s = socket.socket(socket.AF_INET6 if self.v6 else socket.AF_INET)
        try:
            s.setblocking(False)
            if port:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind(("", port))
            await asyncio.get_running_loop().sock_connect(
                s, (self.address, self.port))
            return await asyncio.open_connection(sock=s)
        except BaseException:
            s.close()
            raise

    async def exchange(self, reader, writer, keep):
        writer.write((self.head + ("" if keep else "Connection: close\r\n")
                      + "\r\n").encode())
        await writer.drain()
        status = int((await reader.readline()).split()[1])
        header = {}
        while (line := (await reader.readline()).rstrip()):
            name, _, value = line.decode("latin-1").partition(":")
            header[name.lower()] = value.strip()
        await reader.readexactly(int(header.get("content-length", 0)))
        if not keep:
            await reader.read()  # who closes first keeps the TIME_WAIT
        return status, header.get("x-backend")

    async def request(self, conn=None, streams=None, port=0):
        """One request; a connection of its own unless `streams` is one."""
        start = time.clock_gettime(time.CLOCK_BOOTTIME)
        row = {"start": start, "status": None, "backend": None,
               "error": None, "port": port, "conn": conn}
        writer = None

        async def attempt():
            nonlocal writer
            reader, writer = streams or await self.connect(port)
            row["port"] = writer.get_extra_info("sockname")[1]
            return await self.exchange(reader, writer, conn is not None)

        try:
            row["status"], row["backend"] = await asyncio.wait_for(
                attempt(), self.timeout)
        except (OSError, EOFError, IndexError, ValueError,
                asyncio.TimeoutError) as e:
            row["error"] = str(e) or type(e).__name__
        finally:
            if writer and not streams:
                writer.close()
        row["ms"] = round(
            (time.clock_gettime(time.CLOCK_BOOTTIME) - start) * 1e3, 2)
        print(json.dumps(row), flush=True)
        return row["error"] is None

    async def some(self, count, parallel, from_port):
        left = iter(range(count))

        async def worker():
            for i in left:
                await self.request(port=from_port and from_port + i)

        await asyncio.gather(*(worker() for _ in range(parallel)))

    async def pause(self, seconds):
        try:
            await asyncio.wait_for(self.stopped.wait(), max(seconds, 0))
        except asyncio.TimeoutError:
            pass

    async def fresh(self, rate):
        tasks = set()
        begin, n = time.monotonic(), 0
        while not self.stopped.is_set():
            task = asyncio.create_task(self.request())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            n += 1
            await self.pause(begin + n / rate - time.monotonic())
        await asyncio.gather(*tasks)

    async def kept(self, conn):
        try:
            streams = await asyncio.wait_for(self.connect(), self.timeout)
        except (OSError, asyncio.TimeoutError) as e:
            print(json.dumps({
                "start": time.clock_gettime(time.CLOCK_BOOTTIME), "ms": 0,
                "status": None, "backend": None, "port": 0, "conn": conn,
                "error": f"connect: {e or type(e).__name__}"}), flush=True)
            return
        while not self.stopped.is_set():
            if not await self.request(conn, streams):
                break
            await self.pause(self.keep_pause)
        streams[1].close()

    async def steady(self, rate, keep):
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin, self.stopped.set)  # readable at its end
        jobs = [self.kept(i) for i in range(keep)]
        if rate:
            jobs.append(self.fresh(rate))
        await asyncio.gather(*jobs)


async def main():
    p = argparse.ArgumentParser()
    p.add_argument("address")
    p.add_argument("port", type=int)
    p.add_argument("--count", type=int)
    p.add_argument("--parallel", type=int, default=16)
    p.add_argument("--from-port", type=int, default=0)
    p.add_argument("--ports")
    p.add_argument("--rate", type=float, default=0)
    p.add_argument("--keep", type=int, default=0)
    p.add_argument("--pause", type=float, default=0.05)
    p.add_argument("--timeout", type=float, default=5)
    args = p.parse_args()
    client = Client(args)
    if args.count is not None:
        await client.some(args.count, args.parallel, args.from_port)
    else:
        await client.steady(args.rate, args.keep)


if __name__ == "__main__":
    asyncio.run(main())
