# SPDX-License-Identifier: GPL-2.0-or-later
"""The first and only file system of a guest: busybox, the tools and the built
programs with the libraries that they want, all in memory."""

import os
import pathlib
import re
import shutil
import subprocess

from debian import run

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = ("ip", "bridge", "ethtool", "nsenter", "sysctl", "bird",
         "birdc")
SHELL = "dash"          # busybox's would prefer its own ip
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LIBRARIES = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu")
GUEST_PORT = 9000       # where /serve listens
BUILT = "/b"            # the build tree, there


def libraries(binary, root=""):
    """What the loader wants, the loader itself too: below root, or of ours."""
    p = subprocess.run(
        ["ldd", binary], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, env=dict(os.environ, LD_LIBRARY_PATH=":".join(
            f"{root}{d}" for d in LIBRARIES if root)))
    if "not found" in p.stdout:
        raise RuntimeError(f"{binary}: {p.stdout}")
    return re.findall(r"(?:=> |^\s)(/\S+)", p.stdout, re.M)


class Root:
    def __init__(self, path):
        self.path = path
        shutil.rmtree(path, ignore_errors=True)
        for name in "bin dev etc lib proc run sys tmp var/lib root".split():
            (path / name).mkdir(parents=True)
        self.have = set()

    def copy(self, source, name, strip=False):
        """A file, at an absolute place there."""
        to = self.path / name.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        if strip:
            run("strip", "-o", to, source)
        else:
            shutil.copy2(source, to)
            to.chmod(0o755)

    def program(self, source, name=None, strip=False, root=""):
        self.copy(source, name or source, strip)
        for lib in libraries(source, root):
            if lib not in self.have:
                self.have.add(lib)
                self.copy(lib, lib.removeprefix(str(root)))

    def tool(self, name):
        source = shutil.which(name, path=PATH)
        if source is None:
            raise RuntimeError(f"{name} is not installed")
        self.program(source, f"/bin/{name}")

    def write(self, name, text):
        (self.path / name.lstrip("/")).write_text(text)

    def pack(self, out):
        """Several of them one after the other make one file system."""
        with open(out, "wb") as file:
            names = subprocess.Popen(["find", ".", "-print0"], cwd=self.path,
                                     stdout=subprocess.PIPE)
            subprocess.run(["cpio", "--quiet", "-0", "-o", "-H", "newc", "-R",
                            "0:0"], cwd=self.path, check=True, timeout=120,
                           stdin=names.stdout, stdout=file)
            names.stdout.close()
            if names.wait() != 0:
                raise RuntimeError(f"find failed in {self.path}")


def busybox_root(work, busybox, but=()):
    root = Root(work / "root")
    root.copy(busybox, "/bin/busybox")
    for name in run(busybox, "--list").split():
        if name not in (*but, "busybox"):
            (root.path / "bin" / name).symlink_to("busybox")
    return root


def userland(work, busybox, build, programs, ipvsadm=None):
    """The part that all kernels share. Programs: paths in the build tree;
    ipvsadm: a directory with it and its libraries, if it is wanted."""
    root = busybox_root(work, busybox, TOOLS + ("sh",))
    for name in (*TOOLS, SHELL):
        root.tool(name)
    if ipvsadm:
        root.program(ipvsadm / "sbin/ipvsadm", "/bin/ipvsadm", root=ipvsadm)
    (root.path / "bin/sh").symlink_to(SHELL)
    for name in programs:
        root.program(build / name, f"{BUILT}/{name}",
                     strip=not name.endswith(".o"))
    for file in sorted((HERE / "guest").iterdir()):
        root.copy(file, "/init" if file.name == "init" else
                  f"/guest/{file.name}")
    root.write("/etc/passwd", "root:x:0:0::/root:/bin/sh\n"
               "nobody:x:65534:65534::/:/bin/false\n"
               "_xlb:x:990:990::/:/bin/false\n")
    root.write("/etc/group", "root:x:0:\nnogroup:x:65534:\n_xlb:x:990:\n"
               "xlb:x:991:\nxlb-admin:x:992:\nbird:x:993:\n")
    out = work / "userland.cpio"
    root.pack(out)
    return out


def initramfs(work, parts, kernel):
    """Of packed ones and the kernel's modules."""
    root = Root(work / "modules")
    (root.path / "lib/modules").mkdir()
    for file in (kernel / "modules").iterdir():
        root.copy(file, f"/lib/modules/{file.name}")
    own = work / "modules.cpio"
    root.pack(own)
    out = work / "initramfs"
    with open(out, "wb") as file:
        for part in (*parts, own):
            with open(part, "rb") as data:
                shutil.copyfileobj(data, file)
    return out
