#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The client against a BIRD that answers oddly: everything BIRD may do, and
what a broken or foreign one might."""

import glob
import os
import re
import socket
import threading
import time

from rig import Drive, check, run, scratch, wait_for

COMMANDS = re.compile(
    r"configure|configure status|show protocols( all)?|"
    r"disable \"(xlb[46]|[\w.:-]+)\"|"
    r"show route protocol xlb[46]|"
    r"show route export '[\w.:-]+'\.ipv[46] protocol xlb[46]")
A, B = "192.0.2.1", "192.0.2.2"
PATIENT = 30000     # ms: as long as a busy machine may take


class FakeBird:
    """Reads the includes on `configure`, as BIRD does. `hook(command)` may
    return another answer, "" for none."""

    def __init__(self, directory, name="fake.ctl"):
        self.directory = directory
        self.path = f"{directory}/{name}"
        self.hook = lambda command: None
        self.greeting = "0001 BIRD 9.9 ready.\n"
        self.write = lambda conn, data: conn.sendall(data)
        # a test speaks, too: not into the middle of an answer
        self.writing = threading.Lock()
        self.tables = {"xlb4": [], "xlb6": []}
        self.disabled = {}  # protocol: by "hand" or in the "file"
        self.commands = []
        self.connects = []
        self.wrong = []
        self.conns = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            self.connects.append(time.monotonic())
            self.conns.append(conn)
            threading.Thread(target=self._serve, args=(conn,),
                             daemon=True).start()

    def _serve(self, conn):
        try:
            self.send(conn, self.greeting)
            rest = b""
            while True:
                data = conn.recv(4096)
                if not data:
                    return
                if rest or data.count(b"\n") != 1 or len(data) >= 1024:
                    self.wrong.append(data)
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._command(conn, line.decode())
        except OSError:
            pass

    def send(self, conn, text):
        if text:
            with self.writing:
                self.write(conn, text.encode())

    def _command(self, conn, line):
        self.commands.append((time.monotonic(), line))
        if not COMMANDS.fullmatch(line):
            self.wrong.append(line)
        answer = self.hook(line)
        self.send(conn, self.answer(line) if answer is None else answer)

    def load(self):
        for name in self.tables:
            self.tables[name] = []
            for path in glob.glob(f"{self.directory}/{name}*.conf"):
                with open(path, encoding="ascii") as f:
                    self.tables[name] += re.findall(r"^route (\S+)", f.read(),
                                                    re.M)

    def answer(self, line):
        if line == "configure":
            self.load()
            self.disabled = {name: by for name, by in self.disabled.items()
                             if by == "file"}
            return "0002-Reading configuration\n0003 Reconfigured\n"
        if line.startswith("disable"):
            name = line.split('"')[1]
            if name in self.disabled:
                return f"0008-{name}: already disabled\n0000 \n"
            self.disabled[name] = "hand"
            self.tables[name] = []
            return f"0009-{name}: disabled\n0000 \n"
        if line.startswith("show route protocol"):
            return self.routes(self.tables[line.split()[-1]])
        if line in ("show protocols", "show protocols all"):
            text = "2002-Name       Proto      Table      State  Since\n"
            for name in sorted({*self.tables, *self.disabled}):
                state = "down" if name in self.disabled else "up"
                text += (f"1002-{name:10} Static     {name}t      "
                         f"{state:6} 12:00:00\n")
            return text + "0000 \n"
        return "0003-Daemon is up and running\n0000 \n"

    @staticmethod
    def routes(table):
        if not table:
            return "0000 \n"
        text = "1007-Table x:\n"
        for prefix in table:
            text += f" {prefix:20} unicast [x 12:00:00] * (200)\n" \
                " \tdev xlb0\n"
        return text + "0000 \n"

    def count(self, command, since=0.0):
        return sum(c == command and t >= since for t, c in self.commands)

    def drop(self):
        for conn in self.conns:
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.conns.clear()

    def close(self):
        self.listener.close()
        self.drop()


class Scene:
    """A fake, a drive, and at the end the check that commands were right."""

    def __init__(self, **preset):
        self.dir = scratch()
        self.bird = FakeBird(self.dir)
        for key, value in preset.items():
            setattr(self.bird, key, value)

    def __enter__(self):
        self.drive = Drive(self.dir, self.bird.path)
        return self.bird, self.drive

    def __exit__(self, *_):
        self.drive.close()
        self.bird.close()
        check(not self.bird.wrong, f"wrong commands: {self.bird.wrong}")


def plain_answers():
    with Scene() as (bird, drive):
        drive.set(A)
        drive.until("synced")
        check(drive.show(A + "/32") == (1, 0), "the route is in BIRD")
        check(bird.count("configure") == 1, "one configure")
        at, _, _ = drive.set(A)
        check(not drive.seen("status busy", at), "the same again is no work")
        time.sleep(0.1)
        check(bird.count("configure") == 1, "and no configure")


def what_is_pushed_goes_first():
    """BIRD has the configure before the caller goes on to what takes time, and
    the caller does not wait for a BIRD that does."""
    with Scene() as (bird, drive):
        drive.set(A, B)
        drive.until("synced")
        at, _, took = drive.set(A, how=f"push {PATIENT}")
        check(bird.count("configure", at) == 1, "one configure")
        told = next(t for t, c in bird.commands if c == "configure"
                    and t >= at) - at
        check(told < took - 0.25, f"the configure came after {told:.3f} s of "
              f"{took:.3f}")
        drive.until("synced")
        at, _, took = drive.set(A, how="push 10")
        check(bird.count("configure", at) == 0, "nothing to push")
        bird.hook = lambda command: time.sleep(3)
        at, _, took = drive.set(B, how="push 10")
        check(took < 2.5, f"{took - 0.3:.3f} s are waited for a slow BIRD")
        bird.hook = lambda command: None
        drive.until("synced")
        check(drive.show(B + "/32") == (1, 0), "it came all the same")
        bird.hook = lambda command: bird.drop()
        at, _, took = drive.set(A, how=f"push {PATIENT}")
        wait_for("the loss to be told", 5,
                 lambda: drive.seen("^changed absent", at))
        told = drive.seen("^changed", at)[0][0] - at
        check(told > 0.29, f"told from within, after {told:.3f} s")
        bird.hook = lambda command: None
        drive.until("synced")


def pending_is_polled():
    left = [3]

    def hook(command):
        if command == "configure":
            bird.load()
            return "0002-Reading\n0004 Reconfiguration in progress\n"
        if command == "configure status":
            left[0] -= 1
            if left[0] > 0:
                return "0004-Reconfiguration in progress\n0000 \n"
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        drive.until("synced")
        check(left[0] == 0, f"{3 - left[0]} polls instead of 3")
        check(os.listdir(bird.directory).count("configure.pending") == 0,
              "the marker is gone")


def queued_is_pending_too():
    def hook(command):
        if command == "configure" and bird.count("configure") == 2:
            return "0002-Reading\n0005 Reconfiguration already in progress\n"
        if command == "configure status":
            bird.load()
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        drive.until("synced")
        drive.set(A, B)
        drive.until("synced")
        check(bird.count("configure status") >= 1, "polled")
        check(drive.show(B + "/32") == (1, 0), "the last one wins")


def changes_while_pending_are_configured():
    def hook(command):
        if command == "configure" and bird.count("configure") == 1:
            return "0004 Reconfiguration in progress\n"
        if command == "configure status" and bird.count("configure") == 1:
            return "0004-Reconfiguration in progress\n0000 \n"
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        wait_for("pending", 5, lambda: bird.count("configure status") > 2)
        at, _, _ = drive.set()
        wait_for("second configure", 0.2,
                 lambda: bird.count("configure", at) == 1)
        drive.until("synced")


def asynchronous_and_split_lines():
    def write(conn, data):
        for i in range(0, len(data), 3):
            conn.sendall(data[i:i + 3])

    def hook(command):
        text = FakeBird.answer(bird, command)
        return "+something happened\n" + \
            text.replace("\n", "\r\n+and again\n")

    with Scene() as (bird, drive):
        bird.write = write
        bird.hook = hook
        drive.set(A, "2001:db8::1")
        drive.until("synced")
        check(drive.show("2001:db8::1/128") == (1, 0), "the route is there")
        bird.send(bird.conns[-1], "+while nothing is asked\n")
        time.sleep(0.1)
        # not after the next set: one that comes during a look at the tables
        # does not wait for it, it takes a new connection
        check(len(bird.connects) == 1, "one connection was enough")
        drive.set(B)
        drive.until("synced")


def end_of_file_in_mid_reply():
    def hook(command):
        if command == "configure" and bird.count("configure") == 1:
            bird.send(bird.conns[-1], "0002-Reading conf")
            bird.drop()
            return ""
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        at, _, _ = drive.set(A)
        drive.until("synced")
        check(drive.seen(r"changed absent\|.*closed by BIRD", at),
              "the loss was told")
        check(bird.count("configure") == 2, "asked again")


def over_long_lines():
    def hook(command):
        text = FakeBird.answer(bird, command)
        long = "x" * 10000
        if command == "configure":
            return f"0002-{long}\n {long}\n+{long}\n0003 {long}\n"
        if command.startswith("show route"):
            return f"1007-{long}\n" + text
        return text

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        drive.until("synced")
        check(drive.show(A + "/32") == (1, 0), "the route is there")
        check(len(bird.connects) == 1, "one connection was enough")


def another_protocol_is_told_and_not_hammered():
    with Scene(greeting="220 mail.example ESMTP\n") as (bird, drive):
        drive.set(A)
        drive.until("hung")
        check("an answer that BIRD does not give" in drive.status,
              drive.status)
        begin, n = time.monotonic(), len(bird.connects)
        time.sleep(2)
        n = len(bird.connects) - n
        took = time.monotonic() - begin
        check(n <= 4 + 2 * took, f"{n} connects in {took:.1f} s")
        bird.greeting = "0001 BIRD ready.\n"
        drive.until("synced", 3)


def no_greeting():
    with Scene(greeting="") as (bird, drive):
        begin = time.monotonic()
        _, rc, took = drive.set(A)
        check(rc == 0 and took < 1.5, f"bird_set: {rc}, {took} s")
        drive.until("hung", 4)
        took = time.monotonic() - begin
        check(1.5 < took < 20, f"told after {took:.1f} s")
        at = time.monotonic()
        bird.send(bird.conns[-1], "0001 BIRD ready.\n")
        drive.until("synced", 0.5)
        check(len(bird.connects) == 1, "on the same connection")
        print(f"# synced {1000 * (time.monotonic() - at):.1f} ms after it")


def no_answer_to_configure():
    held = []

    def hook(command):
        if command == "configure" and not held:
            held.append(bird.conns[-1])
            return ""
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        drive.until("hung", 7)
        check("no answer" in drive.status, drive.status)
        drive.set(B)
        check(drive.is_("hung"), "a change does not hide it")
        bird.load()
        bird.send(held[0], "0003 Reconfigured\n")
        drive.until("synced", 1)
        check(drive.show(B + "/32") == (1, 0) and
              drive.show(A + "/32") == (0, 0), "the last one wins")


def shutting_down():
    def hook(command):
        if command == "configure" and bird.count("configure") == 1:
            return "0006 Reconfiguration ignored, shutting down\n"
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        drive.until("synced")
        check(len(bird.connects) == 2, "connected anew")


def one_configure_in_flight():
    gate = threading.Event()

    def hook(command):
        if command == "configure" and bird.count("configure") == 1:
            gate.wait(60)
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        wait_for("configure", 5, lambda: bird.count("configure"))
        for i in range(1, 20):
            drive.set(f"192.0.2.{i}")
        check(bird.count("configure") == 1, "none while one is in flight")
        gate.set()
        drive.until("synced")
        n = bird.count("configure")
        check(n == 2, f"{n} configures for 20 changes")
        check(drive.show("192.0.2.19/32") == (1, 0), "the last one wins")


def a_long_listing_does_not_delay():
    stall = threading.Event()

    def hook(command):
        if command == "show protocols all" and not stall.is_set():
            stall.set()
            return "2002-Name\n"    # and no more
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        wait_for("listing", 5, stall.is_set)
        at, _, _ = drive.set()
        wait_for("configure", 0.5, lambda: bird.count("configure", at))
        t = next(t for t, c in bird.commands if c == "configure" and t > at)
        print(f"# configure {1000 * (t - at):.1f} ms after bird_set()")
        check(t - at < 3, "not before the listing was given up")
        drive.until("synced")


def access_denied_by_restriction():
    def hook(command):
        return "8007 Access denied\n" if command == "configure" or \
            command.startswith("disable") else None

    with Scene() as (bird, drive):
        bird.hook = hook
        bird.tables["xlb4"] = [B + "/32"]
        drive.set(A)
        drive.until("configuration refused")
        check("Access denied" in drive.status, drive.status)
        wait_for("stuck", 3, lambda: drive.stuck() == 1)
        wait_for("a word on it", 3,
                 lambda: drive.seen("cannot disable xlb4"))
        # six of each try, of which there are three or four in a second
        n, begin = len(bird.commands), time.monotonic()
        time.sleep(1)
        check(len(bird.commands) - n < 40 * (time.monotonic() - begin),
              f"a storm follows: {bird.commands[n:]}")


def sessions_and_what_they_export():
    peers = ["up4", "up6", "idle"]
    error = {}
    exported = {"up4": [A + "/32"], "up6": [A + "/32", B + "/32"]}

    def hook(command):
        if command == "show protocols all":
            text = FakeBird.answer(bird, command)[:-len("0000 \n")]
            for name in peers:
                up = "Established" if name in exported else "Idle"
                n = len(exported.get(name, ()))
                text += (f"1002-{name}  BGP  ---  up  12:00:00  {up}\n"
                         f"1006-  BGP state:          {up}\n"
                         f"{error.get(name, '')}"
                         "   Channel ipv4\n     Table:          xlb4t\n"
                         f"     Routes:         0 imported, {n} exported, 0 "
                         "preferred\n \n")
            return text + "0000 \n"
        if command.startswith("show route export"):
            return FakeBird.routes(exported[command.split("'")[1]])
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A, B)
        drive.until("synced")
        wait_for("sessions, sorted by name", 3, lambda: drive.ask("peers")[1] ==
                 "idle=Idle/0/0 up4=Established/1/0 up6=Established/2/0")
        wait_for("A by two", 3, lambda: drive.show(A + "/32") == (1, 2))
        check(drive.show(B + "/32") == (1, 1), "B by one")
        # nothing changed: not asked for again
        n = sum("export" in c for _, c in bird.commands)
        time.sleep(1)
        check(sum("export" in c for _, c in bird.commands) == n, "not again")
        exported["up4"].append(B + "/32")
        wait_for("B by two", 3, lambda: drive.show(B + "/32") == (1, 2))
        peers.remove("up6")
        wait_for("one less", 7, lambda: drive.show(B + "/32") == (1, 1))
        check(drive.seen("session up4: unknown -> Established") and
              drive.seen("session idle: unknown -> Idle"), "said at first")
        error["up4"] = "     Last error:       Received: Hold timer expired\n"
        del exported["up4"]
        wait_for("its end to be said", 7, lambda: drive.seen(
            "session up4: Established -> Idle: Received: Hold timer expired"))


def what_was_disabled_by_hand_stays_so():
    """Somebody else's protocol: disabled again right after the configure. One
    that bird.conf disables is left alone."""
    with Scene() as (bird, drive):
        bird.disabled = {"up4": "hand", "spare": "file"}
        drive.set(A)
        drive.until("synced")
        check(bird.disabled == {"up4": "hand", "spare": "file"},
              bird.disabled)
        order = [c for _, c in bird.commands if not c.startswith("show r")]
        at = order.index("configure")
        check(order[at - 1:at + 3] == ["show protocols", "configure",
                                       'disable "spare"', 'disable "up4"'],
              order)
        check(drive.seen("up4 was disabled by hand") and
              not drive.seen("spare was"), "said of the one")


def and_a_lost_connection_does_not_forget_it():
    def hook(command):
        if command == 'disable "up4"' and bird.count(command) == 1:
            bird.drop()
            return ""
        return None

    with Scene() as (bird, drive):
        bird.disabled = {"up4": "hand"}
        bird.hook = hook
        drive.set(A)
        wait_for("the connection is lost", 20,
                 lambda: bird.count('disable "up4"') >= 1)
        wait_for("disabled again", 20,
                 lambda: bird.count('disable "up4"') >= 2)
        drive.until("synced")
        check(bird.disabled == {"up4": "hand"}, bird.disabled)
        check(bird.count("configure") == 2, "asked again")


def and_another_bird_is_left_alone():
    """In one that has just started nobody has disabled anything."""
    with Scene() as (bird, drive):
        os.rename(bird.path, bird.path + ".next")
        drive.set(A)

        def absent():
            bird.drop()     # one may only now have been accepted
            return drive.is_("absent")
        wait_for("it to be absent", 20, absent)
        pid = os.fork()
        if pid == 0:
            first = FakeBird(bird.directory, "first.ctl")
            first.disabled = {"up4": "hand"}
            first.hook = lambda command: os._exit(0) \
                if command == 'disable "up4"' else None
            os.rename(first.path, bird.path)    # it is asked from now on
            time.sleep(60)
            os._exit(1)
        check(os.waitpid(pid, 0)[1] == 0, "told to disable, the first one died")
        at = time.monotonic()
        os.rename(bird.path + ".next", bird.path)
        drive.until("synced", 20)
        check(bird.count("configure", at) == 1, "configured")
        check(bird.count('disable "up4"', at) == 0, "nothing is disabled")


def and_when_the_configure_is_pending():
    """0005: the new configuration comes into force later."""
    def hook(command):
        if command == "configure":
            return "0005 Reconfiguration already in progress, queueing\n"
        if command == "configure status" and bird.count(command) == 2:
            FakeBird.answer(bird, "configure")
        elif command == "configure status":
            return "0005-Reconfiguration in progress\n0000 \n"
        return None

    with Scene() as (bird, drive):
        bird.disabled = {"up4": "hand"}
        bird.hook = hook
        drive.set(A)
        drive.until("synced")
        check(bird.disabled == {"up4": "hand"}, bird.disabled)


def what_was_disabled_while_we_waited_is_not_remembered():
    """Both are, when it is asked what is before a configure, which ours then
    holds up. The operator enables both before anything is configured."""
    armed = []

    def hook(command):
        if command == "show protocols" and armed:
            bird.disabled = armed.pop()
        return None

    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        drive.until("synced")
        armed.append({"up4": "hand", "xlb4": "hand"})
        drive.set(A, B)
        wait_for("told", 5, lambda: "changes wait" in drive.status)
        check(not armed, "nothing was asked")
        bird.disabled = {}
        drive.until("synced", 7)
        drive.set(A)
        drive.until("synced")
        check(not bird.count('disable "up4"'), "disabled by us")


def one_that_has_just_started_is_not_taken_for_disabled():
    """Everything is down until its first look at the interfaces."""
    def hook(command):
        text = FakeBird.answer(bird, command)
        if command == "show protocols all":
            bird.disabled = {}
        return text

    with Scene() as (bird, drive):
        bird.disabled = {name: "hand" for name in ("up4", "xlb4", "xlb6")}
        bird.hook = hook
        drive.set(A)
        wait_for("a listing", 5, lambda: bird.count("show protocols all"))
        drive.until("synced", 7)
        check(not any(c.startswith("disable") for _, c in bird.commands),
              bird.commands)


def one_that_does_not_include_us_is_not_configured():
    def hook(command):
        if included:
            return None
        if command.startswith("show protocols"):
            return "1002-up4  BGP  ---  up  12:00:00  Idle\n0000 \n"
        return "9001 syntax error\n" if "xlb" in command else None

    included = []
    with Scene() as (bird, drive):
        bird.hook = hook
        drive.set(A)
        drive.until("xlb is not included")
        drive.set(A, B)
        drive.until("xlb is not included")
        check(not bird.count("configure"), "configured")
        included.append(True)
        drive.until("synced", 7)


def our_own_disabled_by_hand_holds_everything():
    """A configure would announce what the operator has taken off."""
    with Scene() as (bird, drive):
        drive.set(A, B, "2001:db8::1")
        drive.until("synced")
        FakeBird.answer(bird, 'disable "xlb4"')
        drive.until("disabled", 7)
        check("protocol xlb4 was disabled by hand" in drive.status and
              "changes wait" not in drive.status, drive.status)
        n = bird.count("configure")
        # a change waits; a family of which all has to go goes
        at, _, _ = drive.set(A)
        wait_for("told that it waits", 5,
                 lambda: "changes wait" in drive.status)
        wait_for("IPv6 to go", 3, lambda: not bird.tables["xlb6"])
        check(bird.count("configure") == n, "nothing was configured")
        check(bird.disabled == {"xlb4": "hand", "xlb6": "hand"},
              bird.disabled)
        # a successor knows which of the two it disabled itself
        drive.kill()
        second = Drive(bird.directory, bird.path)
        second.set(A)
        second.until("disabled", 5)
        check("xlb4" in second.status, second.status)
        check(bird.count("configure") == n, "nor by the successor")
        del bird.disabled["xlb4"]  # the operator says `enable xlb4`
        second.until("synced", 7)
        check(bird.count("configure") == n + 1 and not bird.disabled,
              "what waited came, and xlb6 with it")
        second.close()


if __name__ == "__main__":
    raise SystemExit(not run([
        plain_answers, what_is_pushed_goes_first, pending_is_polled,
        queued_is_pending_too,
        changes_while_pending_are_configured, asynchronous_and_split_lines,
        end_of_file_in_mid_reply, over_long_lines,
        another_protocol_is_told_and_not_hammered, no_greeting,
        no_answer_to_configure, shutting_down, one_configure_in_flight,
        a_long_listing_does_not_delay, access_denied_by_restriction,
        sessions_and_what_they_export, what_was_disabled_by_hand_stays_so,
        and_a_lost_connection_does_not_forget_it,
        and_another_bird_is_left_alone, and_when_the_configure_is_pending,
        what_was_disabled_while_we_waited_is_not_remembered,
        one_that_has_just_started_is_not_taken_for_disabled,
        one_that_does_not_include_us_is_not_configured,
        our_own_disabled_by_hand_holds_everything]))
