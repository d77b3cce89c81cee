# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's kernels and the busybox for them: downloaded with apt, with lists of
packages of our own, so that nothing of this machine's apt changes."""

import fcntl
import lzma
import pathlib
import re
import shutil
import subprocess
import zlib
import time

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MIRROR = {"": "http://deb.debian.org/debian",
          "-security": "http://deb.debian.org/debian-security"}
SUITES = {"6.1": ("", "-security"), "6.12": ("-backports",)}
IMAGE = "linux-image-cloud-amd64"
LISTS_AGE = 6 * 3600    # seconds, before the lists are asked for again
# With what they need of others; what is built in is not missed.
MODULES = """virtio_pci virtio_net virtio_rng veth 8021q bonding dummy macvlan
    bridge tun sch_ingress cls_bpf ipip sit ip6_tunnel fou fou6 ip_vs ip_vs_mh
    virtio_blk crc32c_generic ext4""".split()


def say(text):
    print(f"# {text}", flush=True)


def run(*argv, seconds=300, **kw):
    p = subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=seconds, **kw)
    if p.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, argv))}: {p.returncode}\n"
                           f"{p.stderr}{p.stdout}")
    return p.stdout


def mirrors():
    """Where this machine's own packages come from, by suffix of the suite."""
    found = dict(MIRROR)
    try:
        rows = run("apt-get", "indextargets", "--format",
                   "$(RELEASE) $(REPO_URI)", "Created-By: Packages")
    except (OSError, RuntimeError):
        return found
    for row in rows.splitlines():
        release, uri = row.split(" ", 1)
        for suffix in found:
            if release == "bookworm" + suffix:
                found[suffix] = uri.rstrip("/")
    return found


class Archive:
    """Some suites of Debian 12, as a directory of ours knows them."""

    def __init__(self, directory, suites):
        self.dir = directory
        for name in ("lists/partial", "cache/archives/partial", "deb"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        where = mirrors()
        sources = directory / "sources.list"
        sources.write_text("".join(
            f"deb [arch=amd64 signed-by={KEYRING}] "
            f"{where.get(s, where[''])} bookworm{s} main\n" for s in suites))
        self.options = [
            x for o in (f"Dir::Etc::SourceList={sources}",
                        "Dir::Etc::SourceParts=/dev/null",
                        "Dir::Etc::Preferences=/dev/null",
                        "Dir::Etc::PreferencesParts=/dev/null",
                        f"Dir::State::Lists={directory}/lists",
                        "Dir::State::Status=/dev/null",
                        f"Dir::Cache={directory}/cache",
                        "APT::Architecture=amd64", "APT::Sandbox::User=root",
                        "Acquire::Languages=none", "Acquire::Retries=3",
                        "Debug::NoLocking=1") for x in ("-o", o)]

    def apt(self, command, *argv):
        return run(command, *self.options, *argv, cwd=self.dir / "deb")

    def refresh(self):
        """Without a network, old lists and what is downloaded will do."""
        stamp = self.dir / "asked"
        if stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_AGE:
            return
        try:
            self.apt("apt-get", "-q", "update", "--error-on=any")
            stamp.touch()
        except RuntimeError as err:
            if not stamp.exists():
                raise
            say(f"no newer lists of packages: {err}".splitlines()[0])

    def depends(self, package):
        """The first package that it depends on."""
        rows = self.apt("apt-cache", "depends", package)
        return re.search(r"Depends: (\S+)", rows)[1]

    def deb(self, package):
        """Path of its file."""
        uri = self.apt("apt-get", "download", "--print-uris", package)
        if not uri.strip():     # there already
            name = self.apt("apt-cache", "show", "--no-all-versions", package)
            version = re.search(r"^Version: (\S+)", name, re.M)[1]
            file = f"{package}_{version.replace(':', '%3a')}_amd64.deb"
        else:
            file = uri.split()[1]
        path = self.dir / "deb" / file
        if not path.exists():
            say(f"downloading {file}")
            for old in path.parent.glob(f"{package}_*"):
                old.unlink()
            self.apt("apt-get", "-q", "download", package)
        if not path.exists():
            raise RuntimeError(f"apt-get download {package}: no {path}")
        return path


def module_text(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def modules(root, out):
    """MODULES and what they need, in an order that can be loaded: out/NN-name.
    """
    where = {re.sub(r"\.ko(\.\w+)?$", "", p.name).replace("-", "_"): p
             for p in root.rglob("*.ko*")}
    done = []

    def add(name):
        if name in done or name not in where:
            return
        data = module_text(where[name])
        needs = re.search(rb"(?:^|\0)depends=([^\0]*)\0", data)
        for other in needs[1].decode().split(",") if needs else []:
            add(other.replace("-", "_"))
        done.append(name)
        (out / f"{len(done):02}-{name}.ko").write_bytes(data)

    for name in MODULES:
        add(name)


def kernel(state, name):
    """A kernel by its series or its package's file: a directory with vmlinuz,
    modules/ and release."""
    if name.endswith(".deb"):
        deb = pathlib.Path(name).resolve()
    elif name in SUITES:
        archive = Archive(state / f"apt-{name}", SUITES[name])
        archive.refresh()
        deb = archive.deb(archive.depends(IMAGE))
    else:
        raise RuntimeError(f"{name}: not one of {' '.join(SUITES)}, and no "
                           "FILE.deb")
    which = zlib.crc32(" ".join(MODULES).encode())
    out = state / "kernel" / f"{deb.stem}-{which:08x}"
    if (out / "release").exists():
        return out
    work = out.with_suffix(".new")
    shutil.rmtree(work, ignore_errors=True)
    (work / "modules").mkdir(parents=True)
    run("dpkg-deb", "-x", deb, work / "x")
    image, = (work / "x/boot").glob("vmlinuz-*")
    image.rename(work / "vmlinuz")
    modules(work / "x/lib/modules", work / "modules")
    shutil.rmtree(work / "x")
    (work / "release").write_text(image.name.partition("-")[2])
    work.rename(out)
    return out


def unpacked(state, packages):
    """Directory with what is in these packages."""
    archive = Archive(state / "apt-6.1", SUITES["6.1"])
    archive.refresh()
    debs = [archive.deb(p) for p in packages]
    out = state / f"{packages[0]}-{zlib.crc32(repr(debs).encode()):08x}"
    if out.exists():
        return out
    work = out.with_suffix(".new")
    shutil.rmtree(work, ignore_errors=True)
    for deb in debs:
        run("dpkg-deb", "-x", deb, work)
    work.rename(out)
    return out


def busybox(state):
    """Path of a static one."""
    archive = Archive(state / "apt-6.1", SUITES["6.1"])
    archive.refresh()
    deb = archive.deb("busybox-static")
    out = state / "busybox"
    if not out.exists() or out.stat().st_mtime < deb.stat().st_mtime:
        run("sh", "-c", "dpkg-deb --fsys-tarfile \"$1\" | tar -xO ./bin/busybox "
            ">\"$2.new\" && chmod 755 \"$2.new\" && mv \"$2.new\" \"$2\"",
            "sh", deb, out)
        out.touch()
    return out


def locked(state):
    """One run at a time downloads. The lock goes with its descriptor."""
    state.mkdir(parents=True, exist_ok=True)
    fd = open(state / "lock", "w")
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd
