# SPDX-License-Identifier: GPL-2.0-or-later
"""A Debian 12 as debootstrap would install it, on a guest's disk, and our
packages beside it, for the dpkg there to install."""

import hashlib
import inspect
import os
import pathlib
import re
import shutil

from debian import Archive, SUITES, mirrors, run, say
from image import HERE, Root
from system import MASKED, TREE, agent

SOURCE = HERE.parent.parent
# With all that ours depend on, and what their tests ask for.
PACKAGES = "systemd systemd-sysv udev dbus procps man-db".split()
DISK_MIB = 1024
# Of the files below debian/tests and tests: for the guest's scripts.
SCRIPTS = ["debian/tests/installed", "debian/tests/traffic",
           "tests/fabric/streams.py"]
NAMES = ("xlb", "xlb-backend")


def relations(text):
    """Names of the packages in a Depends line, the first of alternatives."""
    names = (re.split(r"[\s(:|]", part.strip())[0] for part in text.split(","))
    return [n for n in names if n and n[0] not in "@$"]


def find_debs(directory):
    found = []
    for name in NAMES:
        debs = sorted(pathlib.Path(directory).glob(f"{name}_*.deb"))
        if len(debs) != 1:
            raise RuntimeError(f"{directory}: {len(debs)} packages {name}_*.deb")
        found += debs
    return found


def build_debs(work, build):
    """From the tarball that `make dist` makes, or those in XLB_DEBS."""
    if ready := os.environ.get("XLB_DEBS"):
        return find_debs(ready)
    say("building the packages")
    work.mkdir()
    run("make", "-s", "-C", build, "dist", "V=0")
    tarball, = build.glob("xlb-*.tar.xz")
    run("tar", "-C", work, "-x", "-f", tarball)
    tree, = work.iterdir()
    run("dpkg-buildpackage", "-us", "-uc", "-b", cwd=tree, seconds=1200,
        env=dict(os.environ, DEB_BUILD_OPTIONS="nocheck"))
    return find_debs(work)


def repacked(deb, out, suffix):
    """The same with a later version: for dpkg another one."""
    tree = out / "repacked"
    run("dpkg-deb", "-R", deb, tree)
    control = tree / "DEBIAN/control"
    text, n = re.subn(r"^(Version: .*)$", rf"\1{suffix}", control.read_text(),
                      flags=re.M)
    assert n == 1
    control.write_text(text)
    run("dpkg-deb", "--root-owner-group", "-b", tree, out)
    shutil.rmtree(tree)


def wanted(debs):
    """What a Debian has to have for ours to be installed and tested there."""
    names = set(PACKAGES)
    for deb in debs:
        for field in ("Depends", "Pre-Depends", "Recommends"):
            names |= set(relations(run("dpkg-deb", "-f", deb, field)))
    control = (SOURCE / "debian/tests/control").read_text()
    for line in re.findall(r"^Depends: (.*)$", control, re.M):
        names |= set(relations(line))
    return sorted(names - set(NAMES))


def disk(state, debs):
    """An ext4 image; made anew if a package has a newer version."""
    archive = Archive(state / "apt-6.1", SUITES["6.1"])
    archive.refresh()
    names = wanted(debs)
    rows = archive.apt("apt-get", "-q", "-y", "--no-install-recommends", "-o",
                       "Dir::Cache::archives=none/", "--print-uris", "install",
                       *names)
    files = sorted(r.split()[1] for r in rows.splitlines() if r[:1] == "'")
    mark = hashlib.sha256("\n".join(
        [*files, inspect.getsource(disk)]).encode()).hexdigest()[:16]
    out = state / f"debian-{mark}.ext4"
    if out.exists():
        return out
    if os.geteuid() != 0:
        raise RuntimeError("a Debian is installed below a chroot: be root")
    for old in state.glob("debian-*.ext4"):
        old.unlink()
    say(f"installing a Debian with {' '.join(names)}")
    tree = state / "debian"
    shutil.rmtree(tree, ignore_errors=True)
    run("mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(names)}",
        "bookworm", tree, archive.dir / "sources.list", seconds=1200)
    for name in MASKED:
        (tree / "etc/systemd/system" / name).symlink_to("/dev/null")
    (tree / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    new = out.with_suffix(".new")
    new.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", tree, new,
        f"{DISK_MIB}M")
    shutil.rmtree(tree)
    new.rename(out)
    return out


def installable(work, debs, busybox):
    """Our packages, the next version of them, and the guest's scripts."""
    root = Root(work / "installable")
    shutil.rmtree(root.path)
    tree = root.path / TREE
    agent(root, busybox, "package.sh", "datagrams.py")
    for deb in debs:
        root.copy(deb, f"/{TREE}/guest/debs/{deb.name}")
        (tree / "guest/next").mkdir(exist_ok=True)
        repacked(deb, tree / "guest/next", "+next")
    for name in SCRIPTS:
        root.copy(SOURCE / name, f"/{TREE}/guest/{pathlib.Path(name).name}")
    out = work / "installable.cpio"
    root.pack(out)
    return out
