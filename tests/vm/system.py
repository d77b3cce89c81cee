# SPDX-License-Identifier: GPL-2.0-or-later
"""A Debian 12 with systemd and BIRD as a guest's file system: its packages taken
apart, no maintainer script run, busybox for what they would bring tools for;
and in it what `make install` installs."""

import hashlib
import pathlib
import shutil
import subprocess

from debian import Archive, SUITES, run, say
from image import HERE, Root, busybox_root

PACKAGES = """systemd systemd-sysv bird2 iproute2 dash mount procps libbpf1
    libc-bin libcurl4 libelf1 libjansson4 libmicrohttpd12 libmnl0 libsystemd0
    libyaml-0-2""".split()
# What only configures packages.
NEEDLESS = ("perl", "libperl", "dpkg", "tar", "usrmerge", "debconf", "ucf",
            "adduser", "libfile-find", "libtext-glob", "libnumber-compare")
LEAN = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info",
        "usr/lib/x86_64-linux-gnu/gconv", "usr/share/bash-completion")
TREE = "new"            # the directory that /init makes the root
# Wanted by nothing here, and slow without KVM.
MASKED = """systemd-hwdb-update.service systemd-journal-catalog-update.service
    systemd-update-done.service systemd-random-seed.service
    systemd-journal-flush.service systemd-networkd.service
    systemd-timesyncd.service systemd-logind.service ldconfig.service
    systemd-pcrphase.service systemd-pcrphase-sysinit.service
    systemd-binfmt.service getty.target""".split()


def packages(state):
    """Files of the packages and all that they depend on."""
    archive = Archive(state / "apt-6.1", SUITES["6.1"])
    archive.refresh()
    argv = ("-q", "-y", "--no-install-recommends")
    # as if none of them were there: only what is missing has an address
    rows = archive.apt("apt-get", *argv, "-o", "Dir::Cache::archives=none/",
                       "--print-uris", "install", *PACKAGES)
    names = [row.split()[1] for row in rows.splitlines()
             if row.startswith("'")]
    where = archive.dir / "cache/archives"
    if not all((where / n).exists() for n in names):
        say(f"downloading {len(names)} packages")
        archive.apt("apt-get", *argv, "--download-only", "install", *PACKAGES)
    return [where / n for n in sorted(names) if not n.startswith(NEEDLESS)]


def base(state):
    """The part that stays the same, packed; made anew if a package differs."""
    debs = packages(state)
    mark = hashlib.sha256("\n".join(
        [d.name for d in debs] + [pathlib.Path(__file__).read_text()]
    ).encode()).hexdigest()[:16]
    out = state / f"system-{mark}.cpio"
    if out.exists():
        return out
    for old in state.glob("system-*.cpio"):
        old.unlink()
    root = Root(state / "system")
    tree = root.path / TREE
    shutil.rmtree(root.path)
    for name in ("bin", "sbin", "lib", "lib64"):
        (tree / "usr" / name).mkdir(parents=True, exist_ok=True)
        (tree / name).symlink_to(f"usr/{name}")
    for deb in debs:
        run("sh", "-c", "dpkg-deb --fsys-tarfile \"$1\" | tar -x "
            "--no-same-owner --keep-directory-symlink -C \"$2\"", "sh", deb,
            tree)
    for name in LEAN:
        shutil.rmtree(tree / name, ignore_errors=True)
    for name in "dev proc sys run tmp root var/log etc/systemd/system".split():
        (tree / name).mkdir(parents=True, exist_ok=True)
    for name in MASKED:
        (tree / "etc/systemd/system" / name).symlink_to("/dev/null")
    root.pack(out)
    shutil.rmtree(root.path)
    return out


def early(work, busybox):
    """What goes over to it."""
    root = busybox_root(work, busybox)
    root.copy(HERE / "guest/system-init", "/init")
    out = work / "early.cpio"
    root.pack(out)
    return out


def agent(root, busybox, *scripts):
    """What runs commands there, and its scripts."""
    tree = root.path / TREE
    for name in ("agent", "serve", "lib.sh", *scripts):
        root.copy(HERE / "guest" / name, f"/{TREE}/guest/{name}")
    root.copy(busybox, f"/{TREE}/guest/busybox")
    units = tree / "etc/systemd/system"
    wants = units / "multi-user.target.wants"
    wants.mkdir(parents=True)
    shutil.copy(HERE / "guest/agent.service", units)
    (wants / "agent.service").symlink_to("../agent.service")
    (tree / "b").mkdir()


def installed(work, build, busybox):
    """What `make install` installs, the scripts of the guest, and users."""
    root = Root(work / "installed")
    shutil.rmtree(root.path)
    tree = root.path / TREE
    tree.mkdir(parents=True)
    run("make", "-s", "-C", build, "install", f"DESTDIR={tree}", "V=0")
    for path in tree.rglob("*"):
        if path.is_file() and path.parent.name in ("bin", "sbin"):
            subprocess.run(["strip", path], stderr=subprocess.DEVNULL)
    agent(root, busybox, "unit.sh")
    root.write(f"/{TREE}/etc/passwd", "root:x:0:0::/root:/bin/sh\n"
               "nobody:x:65534:65534::/:/bin/false\n"
               "bird:x:990:990::/run/bird:/bin/false\n")
    root.write(f"/{TREE}/etc/group", "root:x:0:\nnogroup:x:65534:\n"
               "bird:x:990:\n")
    root.write(f"/{TREE}/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    out = work / "installed.cpio"
    root.pack(out)
    return out
