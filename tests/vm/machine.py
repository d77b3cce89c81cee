# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest in QEMU without KVM. It is in a network namespace of ours: its port
is reached over this one's loopback interface."""

import re
import signal
import socket
import subprocess
import threading
import time

from image import GUEST_PORT

BOOT_SECONDS = 600      # many times what it takes where nothing else runs
# QEMU 7.2 emulates cmpxchg16b wrongly where there is more than one processor.
CPU = "Nehalem,-cx16"
# Of the kernel's: a guest that said one of these has failed.
BAD = re.compile(r"Kernel panic|BUG: |WARNING: |Oops|Call Trace|"
                 r"general protection|Out of memory|hung task|did not load")


class Machine:
    """Its console is kept as `console`, lines. What it writes to the disk, the
    root file system if there is one, is lost. Counting: its clocks go on by one
    nanosecond for each instruction, and by ours while it has none to execute."""

    def __init__(self, kernel, initramfs, cpus, memory, disk=None,
                 counting=False):
        self.console, self.done = [], threading.Event()
        self.ready = threading.Event()
        self.boot_seconds = BOOT_SECONDS * (3 if counting else 1)
        self.qemu = subprocess.Popen(
            ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu",
             CPU, "-smp", str(cpus), "-m", memory, "-nodefaults",
             "-no-reboot", "-display", "none", "-serial", "stdio",
             "-kernel", str(kernel / "vmlinuz"), "-initrd", str(initramfs),
             "-append", "console=ttyS0 rdinit=/init panic=-1 oops=panic "
             "loglevel=4 mitigations=off nokaslr net.ifnames=0 "
             "tsc=reliable clocksource=tsc no_timer_check "
             # a stall of ours is none of the guest's
             "rcupdate.rcu_expedited=1 rcupdate.rcu_cpu_stall_timeout=300 "
             "watchdog_thresh=60",
             "-device", "virtio-rng-pci", "-device",
             "virtio-net-pci,netdev=n", "-netdev",
             "user,id=n,restrict=on,ipv6=off,"
             f"hostfwd=tcp:127.0.0.1:{GUEST_PORT}-:{GUEST_PORT}",
             # two more cards, on a wire of their own
             *(x for n in (1, 2) for x in (
                 "-netdev", f"hubport,id=n{n},hubid=1", "-device",
                 f"virtio-net-pci,netdev=n{n},mac=52:54:00:00:01:0{n}")),
             *(["-icount", "shift=0"] if counting else []),
             *(["-device", "virtio-blk-pci,drive=d", "-drive",
                f"id=d,if=none,format=raw,snapshot=on,file={disk}"]
               if disk else [])],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace")
        threading.Thread(target=self.read_console, daemon=True).start()

    def read_console(self):
        for line in self.qemu.stdout:
            self.console.append(line.rstrip())
            if line.startswith("init: ready"):
                self.ready.set()
        self.done.set()
        self.ready.set()

    def wait_ready(self):
        if not self.ready.wait(self.boot_seconds):
            raise RuntimeError(f"not ready within {self.boot_seconds} s")
        if self.done.is_set():
            raise RuntimeError("the guest ended before it was ready")
        for _ in range(100):    # nc listens a moment later
            try:
                if self.run("true", 5)[1] == 0:
                    return
            except (OSError, RuntimeError):
                time.sleep(0.1)
        raise RuntimeError("the guest does not answer")

    def run(self, command, seconds):
        """Its output and exit status."""
        with socket.create_connection(("127.0.0.1", GUEST_PORT), 5) as s:
            s.sendall(f"run {command}\n".encode())
            end, data = time.monotonic() + seconds, b""
            while True:
                s.settimeout(max(0.01, end - time.monotonic()))
                try:
                    some = s.recv(65536)
                except TimeoutError:
                    raise RuntimeError(f"{command}: no end after {seconds} s\n"
                                       + data.decode(errors="replace"))
                if not some:
                    break
                data += some
        text, found, status = data.decode(errors="replace").rpartition("@rc ")
        if not found:
            raise RuntimeError(f"{command}: the connection ended\n{status}")
        return text, int(status)

    def faults(self):
        return [line for line in self.console if BAD.search(line)]

    def end(self):
        """It has nothing to lose."""
        if self.qemu.poll() is None:
            self.qemu.send_signal(signal.SIGTERM)
        try:
            self.qemu.wait(10)
        except subprocess.TimeoutExpired:
            self.qemu.kill()
            self.qemu.wait()
