#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Completion: what is shipped is of the table of commands, and a real bash and a
real zsh offer commands, options, files, and the running node's names."""

import contextlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from xlb import CLEAN, GOLDEN, TOP, XLB, daemon, equal, main, reply, \
    usage_commands, xlb

ENV = {**CLEAN, "PATH": f"{XLB.parent}:{CLEAN['PATH']}"}
SHIPPED = {"bash": TOP / "etc/completion/xlb", "zsh": TOP / "etc/completion/_xlb"}
ANSWER_SECONDS = 60

# What is typed, D for --run-dir and the node's directory; what is offered.
CASES = [
    ("xlb re", ["reload", "restart"]),
    ("xlb --run", ["--run-dir"]),
    ("xlb --run-dir /et", ["etc"]),
    ("xlb status -", ["--json", "-w"]),
    ("xlb check /et", ["etc"]),
    ("xlb diff --e", ["--exit-code"]),
    ("xlb D drain web/web", ["web/web1", "web/web2", "web/web3"]),
    ("xlb --run-dir /nonexistent drain ", ["node"]),
    ("xlb help undr", ["undrain"]),
    ("xlb events --c", ["--count"]),
    ("xlb events --reason no_s", ["no_service"]),
    ("xlb D events --service w", ["www"]),
    ("xlb events --reason drop,ma", ["malformed", "martian"]),
    ("xlb events --count ", []),
    ("xlb reload ", ["--json"]),
    ("xlb lookup ", ["tcp", "udp"]),
    ("xlb lookup tcp ", []),
]


class Bash:
    def close(self):
        pass

    def offers(self, line):
        words = line.split(" ")
        script = (f"source {SHIPPED['bash']}; "
                  f"COMP_WORDS=({' '.join(repr(w) for w in words)}); "
                  f"COMP_CWORD={len(words) - 1}; _xlb; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        r = subprocess.run(["bash", "-c", script], capture_output=True,
                           text=True, timeout=120, check=True, env=ENV)
        equal(r.stderr, "")
        return r.stdout.split()


class Zsh:
    """One on a terminal, whose Tab writes to a file what compadd was given and
    takes, a word a line."""

    RC = r"""
PS1= RPROMPT= PS2=
unsetopt prompt_cr prompt_sp
fpath=({dir} $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {{
	local -a offered
	if [[ -z ${{(M)@:#-[OAD]}} ]]; then
		builtin compadd -A offered "$@"
		print -rl -- $offered >>{out}.new
	fi
	builtin compadd "$@"
}}
tell() {{
	: >{out}.new
	zle complete-word
	BUFFER=
	mv {out}.new {out}
}}
zle -N tell
bindkey '^I' tell
: >{out}
"""

    def __init__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="xlb-zsh.")
        self.out = pathlib.Path(self.dir.name) / "offered"
        (pathlib.Path(self.dir.name) / ".zshrc").write_text(
            self.RC.format(dir=SHIPPED["zsh"].parent, out=self.out))
        self.fd, slave = pty.openpty()
        self.proc = subprocess.Popen(
            ["zsh", "-i"], stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True,
            env={**ENV, "ZDOTDIR": self.dir.name, "HISTFILE": "/dev/null"})
        os.close(slave)
        self.text = ""
        self.wait()

    def wait(self):
        """Until the file is there; the terminal has to be read all the while."""
        end = time.monotonic() + ANSWER_SECONDS
        while not self.out.exists():
            if select.select([self.fd], [], [], 0.02)[0]:
                with contextlib.suppress(OSError):
                    self.text += os.read(self.fd, 65536).decode()
            if self.proc.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"zsh says nothing:\n{self.text}")
        words = self.out.read_text().split()
        self.out.unlink()
        return words

    def offers(self, line):
        os.write(self.fd, line.encode() + b"\t")
        return self.wait()

    def close(self):
        self.proc.kill()
        self.proc.wait()
        os.close(self.fd)
        self.dir.cleanup()


def complete(shell, kind):
    if shutil.which(shell) is None:
        return f"{shell} is missing (Debian: {shell})"
    small = json.loads((GOLDEN / "small.json").read_text())
    with daemon(status=reply(**small)) as s, contextlib.closing(kind()) as sh:
        for line, want in CASES:
            got = sh.offers(line.replace("D ", f"--run-dir {s.dir} "))
            # bash repeats what comes before
            equal(sorted({re.sub(".*,|^/", "", w) for w in got}), want, line)
        equal(len(s.requests), 2, "times that the node was asked")
    return None


def bash_completes():
    return complete("bash", Bash)


def bash_ends_a_directory_with_a_slash():
    """As readline writes it: "/etc/", and no blank behind it."""
    fd, slave = pty.openpty()
    proc = subprocess.Popen(["bash", "--norc", "-i"], stdin=slave, stdout=slave,
                            stderr=slave, start_new_session=True,
                            env={**ENV, "HISTFILE": "/dev/null"})
    os.close(slave)
    os.write(fd, f"source {SHIPPED['bash']}; PS1=\nxlb check /et\tX".encode())
    text, end = "", time.monotonic() + ANSWER_SECONDS
    while "check /etc" not in text or "X" not in text.split("check /etc")[-1]:
        if select.select([fd], [], [], 0.02)[0]:
            text += os.read(fd, 65536).decode()
        if time.monotonic() > end:
            break
    proc.kill()
    proc.wait()
    os.close(fd)
    equal(re.search("check /etc(.*)X", text) is not None and
          re.search("check /etc(.*)X", text)[1], "/", text)


def zsh_completes():
    return complete("zsh", Zsh)


def shipped_is_of_this_table():
    for shell, path in SHIPPED.items():
        text = xlb("completion", shell).stdout
        equal(path.read_text() == text, True,
              f"{path} is what xlb completion {shell} prints")
        for name in usage_commands():
            equal(f"\t{name})\n" in text, True, name)


sys.exit(main([shipped_is_of_this_table, bash_completes,
               bash_ends_a_directory_with_a_slash, zsh_completes]))
