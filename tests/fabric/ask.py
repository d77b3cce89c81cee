# SPDX-License-Identifier: GPL-2.0-or-later
"""xlbd's control socket, and BIRD's, without a program in between: who waits asks
fifty times a second, and with sanitizers `xlb` takes longer to start than xlbd
to answer. What people type is tested with `xlb` itself."""

import json
import socket


def xlbd(run_dir, command, timeout=60.0, **args):
    """The result that `xlb --json COMMAND` prints; OSError if nobody answers,
    ValueError with what is said instead of it."""
    request = {"schema": 1, "command": command}
    if args:
        request["args"] = args
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout)
        s.connect(f"{run_dir}/xlb.sock")
        s.sendall(json.dumps(request).encode() + b"\n")
        with s.makefile("r", encoding="utf-8") as f:
            line = f.readline()
    if not line:
        raise ConnectionResetError(f"{command}: xlbd ended before it answered")
    reply = json.loads(line)
    if reply["exit"] != 0:
        raise ValueError("\n".join([f"{command}: exit status {reply['exit']}",
                                    *reply["errors"]]))
    return {"schema": 1, **reply["result"]}


def bird(path, command, timeout=30.0):
    """The reply to a command, [(code, text)]."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout)
        s.connect(str(path))
        with s.makefile("rw", newline="\n") as f:
            f.readline()  # the greeting
            f.write(command + "\n")
            f.flush()
            return list(bird_lines(f, command))


def bird_lines(f, command):
    code = None
    while line := f.readline().rstrip("\n"):
        if line.startswith("+"):
            continue
        if line.startswith(" "):
            yield code, line[1:]
            continue
        code = int(line[:4])
        yield code, line[5:]
        if line[4:5] != "-":
            return
    raise ConnectionResetError(f"BIRD hung up: {command}")
