#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every example of README, guide, manuals and Debian's READMEs: configurations
load, BIRD reads what is for BIRD, and command lines run, in a network namespace
and a directory of their own. What would reach beyond that (apt, reboot, the
service manager) is looked at and not done.

usage: examples.py [DOCUMENT...]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SRC = pathlib.Path(os.environ.get("top_srcdir") or
                   pathlib.Path(__file__).parents[2]).resolve()
BUILD = pathlib.Path(os.environ.get("top_builddir", ".")).resolve()
XLB = BUILD / "src/xlb"
DOCUMENTS = ["README.md", "doc/guide.md", "doc/json.md", "bird/README",
             "debian/xlb.README.Debian", "debian/xlb-backend.README.Debian",
             "man/xlb.8", "man/xlbd.8", "man/xlb-decap.8", "man/xlb.yaml.5"]
NETWORK = """ip link set lo up
ip link add eth0 type veth peer name far
ip tuntap add xlb0 mode tun
ip link show tunl0 >/dev/null 2>&1 ||
    ip tuntap add tunl0 mode tun
ip link set eth0 up
ip link set far up
ip addr add 10.0.1.11/24 dev eth0
ip addr add 2001:db8:1::11/64 dev eth0 nodad
ip route add default via 10.0.1.1
ip -6 route add default via 2001:db8:1::1
"""
# What a line may begin with, to be run as it is.
RUN = set("ip sysctl echo head chmod mv xlb xlbd xlb-decap birdc".split())
# Looked at by a stand-in, see STANDIN.
STANDIN = {
    "systemctl": "", "journalctl": "",
    # installs, builds and restarts: other tests do that to a whole system
    "apt": "", "reboot": "", "adduser": "", "modprobe": "", "jq": "",
    "dpkg-buildpackage": "", "make": "", "./bootstrap": "", "./configure": "",
}
BIRD_WORDS = ("include", "protocol", "ipv4", "ipv6", "bfd", "hold", "graceful",
              "if")
VERBS = "start stop restart reload enable status reset-failed is-active".split()
UNITS = {"xlb": "etc/xlb.service.in", "xlb-vip": "etc/xlb-vip@.service",
         "xlb-decap": "etc/xlb-decap@.service.in", "bird": None}


# ---- what is in a document

def joined(lines):
    """Lines that a backslash, or an open end, goes on from one to the next."""
    out = []
    for line in lines:
        if out and re.search(r"(\\|&&|\|)$", out[-1]):
            out[-1] = re.sub(r"\\$", "", out[-1]).rstrip() + " " + line.strip()
        else:
            out.append(line)
    return out


def markdown_blocks(text):
    """(kind, lines): what is between fences, and what is indented."""
    for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M):
        yield kind or "sh", body.splitlines()
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    for block in re.findall(r"(?:\n\n|\A)((?:(?:    |\t).*\n|\n)+)", text):
        lines = [re.sub(r"^(    |\t)", "", x) for x in block.splitlines()]
        if any(x.strip() for x in lines):
            yield "sh", lines


def readme_blocks(text):
    """What is indented by a tab."""
    for block in re.findall(r"((?:^\t.*\n)+)", text, re.M):
        yield "sh", [x[1:] for x in block.splitlines()]


def manual_blocks(text):
    for block in re.findall(r"^\.Bd [^\n]*\n(.*?)^\.Ed$", text, re.S | re.M):
        lines = [x.replace("\\e", "\\").replace("\\&", "") for x in
                 block.splitlines()]
        shell, prompt = [], False
        for line in lines:
            prompt = bool(re.match(r"[$#] \S", line)) or bool(
                prompt and re.search(r"(\\|&&|\|)$", shell[-1]))
            if prompt:
                shell.append(re.sub(r"^[$#] ", "", line))
        if shell:
            yield "sh", shell
        elif lines[0].split()[0] in RUN | set(STANDIN):
            yield "sh", lines
        elif re.match(r"[a-z]+:( |$)", lines[0]):
            yield "yaml", lines


def blocks(name):
    text = (SRC / name).read_text(encoding="utf-8")
    kind = markdown_blocks if name.endswith(".md") else readme_blocks if \
        "README" in name else manual_blocks
    return list(kind(text))


# ---- what is done with it

class Sandbox:
    """A directory with the commands first in PATH; each notes how it ended."""

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.notes = self.dir / "notes"
        own = f"--run-dir {directory}/run --bpf-dir {directory}/bpf " \
              f"--state-dir {directory}/state --bird-dir {directory}/bird " \
              f"--config {directory}/xlb.yaml"
        self.command("xlb", f"{XLB} {own} \"$@\"")
        # the last option ends it, when all before were understood
        self.command("xlbd", f"{BUILD}/src/xlbd \"$@\" --version")
        self.pins = pathlib.Path(f"/sys/fs/bpf/xlb-examples-{os.getpid()}")
        self.command("xlb-decap", f"{BUILD}/src/xlb-decap --bpf-dir {self.pins}"
                     " \"$@\"")
        self.command("birdc", f"birdc -s {directory}/bird.ctl \"$@\" | tee "
                     "birdc.out; ! grep -e 'syntax error' -e 'Unable' birdc.out")
        for name in STANDIN:
            if "/" not in name:
                self.command(name, "true")
        for name in ("systemctl", "journalctl"):
            self.command(name, f"{sys.executable} {__file__} --{name} \"$@\"")
        shutil.copy(SRC / "etc/example.yaml", self.dir / "xlb.yaml")
        shutil.copy(SRC / "etc/example.yaml", self.dir / "xlb.yaml.new")
        shutil.copy(SRC / "tests/golden/keepalived/01-dr.conf",
                    self.dir / "keepalived.conf")
        (self.dir / "bird").mkdir()
        self.path = f"{self.dir}/bin:{os.environ['PATH']}"
        self.bird = None

    def command(self, name, text):
        path = self.dir / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\nPATH=${{PATH#{self.dir}/bin:}}\n{text}\n"
                        f"rc=$?\necho \"{name} $rc $*\" >>{self.notes}\n"
                        "exit $rc\n")
        path.chmod(0o755)

    def run(self, text):
        return subprocess.run(
            ["sh", "-c", text], cwd=self.dir, text=True, timeout=60,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PATH": self.path})

    def begin(self):
        p = self.run("set -e\n" + NETWORK)
        if p.returncode != 0:
            raise RuntimeError(p.stdout)
        (self.dir / "bird.conf").write_text(
            "router id 10.0.1.11;\nprotocol device { }\n")
        self.bird = subprocess.Popen(
            ["bird", "-f", "-c", self.dir / "bird.conf", "-s",
             self.dir / "bird.ctl", "-P", self.dir / "bird.pid"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(1200):
            if (self.dir / "bird.ctl").exists():
                return
            if self.bird.poll() is not None:
                break
            subprocess.run(["sleep", "0.05"], check=True)
        raise RuntimeError("BIRD does not start")

    def end(self):
        if self.bird:
            self.bird.terminate()
            self.bird.wait()
        shutil.rmtree(self.pins, ignore_errors=True)


def bird_check(directory, text):
    """What BIRD says of a whole configuration; nothing if it is one."""
    wrapper = directory / "wrapper.conf"
    wrapper.write_text((SRC / "bird/xlb.conf").read_text().replace(
        "/run/xlb-bird", str(directory / "bird")))
    conf = directory / "try.conf"
    conf.write_text(text.replace("/usr/share/xlb/bird/xlb.conf", str(wrapper)))
    p = subprocess.run(["bird", "-p", "-c", conf], text=True, check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return "" if p.returncode == 0 else p.stdout


def bird_config(lines):
    """A whole one around what an example shows of it."""
    peer = "local as 64512; neighbor 10.0.0.1 as 64500;"
    text = "\n".join(lines).replace("...", peer)
    head = "router id 10.0.0.11;\nprotocol device { }\n"
    wrapper = 'include "/usr/share/xlb/bird/xlb.conf";\n'
    word = lines[0].split()[0]
    if word == "if":
        return head + f"filter example {{ {text} accept; }}\n"
    if text.startswith("protocol device"):
        return text + "\n"      # a whole one already
    if word in ("include", "protocol"):
        if "table xlb4t" in text and word == "protocol":
            head += wrapper
        return head + text + "\n"
    bfd = "" if "protocol bfd" in text.split("#")[0] else "protocol bfd { }\n"
    return head + wrapper + bfd + f"protocol bgp example {{ {peer}\n{text}\n}}\n"


def line_words(line):
    """The first word of each command in a line."""
    line = re.sub(r"'[^']*'|\"[^\"]*\"", "quoted", line)
    for part in re.split(r"&&|\|\||\||;", line):
        words = part.split()
        if words:
            yield words[0]


def sh_check(box, lines):
    """What is wrong with the lines of a block."""
    lines = [re.sub(r"(^|\s)#( .*)?$", "", x).rstrip() for x in joined(lines)]
    lines = [x for x in lines if x]
    text = "\n".join(lines)
    if "─" in text or not lines:
        return []               # a drawing
    if re.match(r"\w+=", lines[0]) or lines[0].startswith("{"):
        return data_check(lines)
    if lines[0] == "scrape_configs:":
        return prometheus_check(box.dir, text)
    if lines[0].split()[0] in BIRD_WORDS:
        why = bird_check(box.dir, bird_config(lines))
        return [f"BIRD: {why}\n{text}"] if why else []
    wrong = []
    for line in lines:
        # a synopsis explains itself behind two blanks or a tab
        line = re.split(r"\t+| {3,}", line)[0]
        odd = [w for w in line_words(line) if w not in RUN and
               w not in STANDIN and not w.startswith("./setup")]
        if odd:
            wrong.append(f"{line}: {' '.join(odd)}: this test does not know")
        elif box.bird is not None:
            wrong += run_check(box, line)
    return wrong


def data_check(lines):
    """An environment file, or a request and its reply."""
    wrong = []
    for line in lines:
        if line.startswith("{"):
            json.loads(line)
        elif re.match(r"XLB_DECAP_OPTIONS=", line):
            if "XLB_DECAP_OPTIONS=" not in (SRC / "etc/decap.conf").read_text():
                wrong.append(f"{line}: not in etc/decap.conf")
        else:
            wrong.append(f"{line}: this test does not know")
    return wrong


def prometheus_check(directory, text):
    if shutil.which("promtool") is None:
        return []               # what it names is tested with the metrics
    path = directory / "prometheus.yml"
    path.write_text(text + "\n")
    p = subprocess.run(["promtool", "check", "config", "--syntax-only", path],
                       text=True, check=False, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    return [] if p.returncode == 0 else [p.stdout]


def run_check(box, line):
    """Runs one line. xlb has no daemon here: that is no mistake, a usage is."""
    if line.startswith("./setup"):
        usage = (SRC / "setup").read_text().split('usage="')[1].split('"')[0]
        return [] if line.split()[1] in usage else [f"{line}: not in its usage"]
    box.notes.write_text("")
    text = line.replace("/etc/xlb/", f"{box.dir}/").replace(
        "/etc/bird/bird.conf", f"{box.dir}/new.conf")
    text = re.sub(r"(^|[&|;] *)\./\w+", r"\1true", text)
    p = box.run(text)
    wrong = []
    for note in box.notes.read_text().splitlines():
        name, rc, args = (note + " ").split(" ", 2)
        if rc != "0" and not (name == "xlb" and rc in "14"):
            wrong.append(f"{name} {args}: exit status {rc}: {p.stdout}")
    ran = box.notes.read_text()
    if not wrong and p.returncode != 0 and " 0 " not in ran and not ran:
        wrong.append(f"{line}: exit status {p.returncode}: {p.stdout}")
    return wrong


def yaml_check(lines):
    """A whole configuration loads; of a piece no key is unknown."""
    p = subprocess.run([XLB, "check", "-"], input="\n".join(lines) + "\n",
                       text=True, check=False, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    return [] if p.returncode == 0 else [p.stdout]


def spans_check(name):
    """`xlb ...` within the text: the command is there, and its options."""
    text = (SRC / name).read_text(encoding="utf-8")
    commands = subprocess.run([XLB, "completion", "commands"], text=True,
                              check=True, stdout=subprocess.PIPE).stdout.split()
    wrong = []
    for span in re.findall(r"`xlb(?: |\n)([^`]*)`", text):
        words = re.split(r"[|>]", span)[0].split()
        if not words or words[0].isupper() or words[0].startswith("-"):
            continue
        for command in words[0].split(","):
            help_ = subprocess.run([XLB, "help", command], text=True,
                                   check=False, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT).stdout
            if command not in commands and command != "completion":
                wrong.append(f"`xlb {span}`: no such command")
            wrong += [f"`xlb {span}`: {w}: no such option" for w in words[1:]
                      if w.startswith("-") and w != "-" and
                      w.split("=")[0] not in help_]
    return wrong


def document_check(box, name):
    wrong, n = [], 0
    for kind, lines in blocks(name):
        n += 1
        # a backend's VIPs are not for the node of the next one
        box.run("ip addr flush dev lo scope global")
        if kind == "yaml":
            wrong += yaml_check(lines)
        elif kind == "json":
            for part in re.split(r"\n(?=\{)", "\n".join(lines)):
                json.loads(part)
        else:
            wrong += sh_check(box, lines)
    if name != "doc/json.md" and not name.startswith("man/"):
        wrong += spans_check(name)
    if n == 0:
        wrong.append("no example was found")
    return wrong


def systemctl(args):
    """The stand-in: the verb is one, and so is the unit."""
    words = [a for a in args if not a.startswith("-")]
    if not words or words[0] not in VERBS:
        raise SystemExit(f"systemctl {' '.join(args)}: unknown")
    for unit in words[1:]:
        name = unit.split("@")[0].removesuffix(".service")
        if name not in UNITS or ("@" in unit) != ("@" in (UNITS[name] or "")):
            raise SystemExit(f"{unit}: no such unit")


def journalctl(args):
    """The stand-in: what it selects by is what the log has."""
    log = "".join(p.read_text() for p in (SRC / "src/io").glob("log*.[ch]"))
    for arg in args:
        field, sign, value = arg.partition("=")
        if sign and (field not in log or
                     field == "MESSAGE_ID" and value not in log):
            raise SystemExit(f"{arg}: not in the log")
    systemctl(["status", *(b for a, b in zip(args, args[1:]) if a == "-u")])


def main():
    if sys.argv[1:2] == ["--systemctl"]:
        systemctl(sys.argv[2:])
        return 0
    if sys.argv[1:2] == ["--journalctl"]:
        journalctl(sys.argv[2:])
        return 0
    missing = [t for t in ("ip", "bird", "birdc", "unshare")
               if shutil.which(t) is None]
    why = "needs root" if os.geteuid() != 0 else \
        f"needs {' '.join(missing)}" if missing else ""
    if not why and "XLB_EXAMPLES_INSIDE" not in os.environ:
        os.execvpe("unshare", ["unshare", "--net", sys.executable,
                               *sys.argv],
                   {**os.environ, "XLB_EXAMPLES_INSIDE": "1"})
    if why:
        print(f"1..0 # SKIP {why}")
        return 0
    names = sys.argv[1:] or DOCUMENTS
    print(f"1..{len(names)}")
    bad = 0
    with tempfile.TemporaryDirectory(prefix="xlb-examples.") as directory:
        box = Sandbox(directory)
        try:
            box.begin()
            for n, name in enumerate(names, 1):
                wrong = document_check(box, name)
                for line in "\n".join(wrong).splitlines():
                    print("#", line)
                print(f"{'not ok' if wrong else 'ok'} {n} - {name}", flush=True)
                bad += bool(wrong)
        finally:
            box.end()
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
