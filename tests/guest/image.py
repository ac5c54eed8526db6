#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Make the kernel and the initial RAM disk of a guest with an RDMA adapter, of Debian's packages.

    tests/guest/image.py FOLDER     writes FOLDER/vmlinuz and FOLDER/initrd

The kernel is Debian's own. Its configuration leaves the driver vmw_pvrdma out, so that module is built
of Debian's sources of the same kernel (linux-source) against its headers, as a user would. Everything
else of the RDMA stack is what the packages contain, rdma_rxe among it. The RAM disk has the modules, busybox,
and the programs of ibverbs-utils, rdmacm-utils and perftest and iproute2's rdma with their libraries. Packages of the kernel are downloaded
and unpacked in FOLDER, not installed. FOLDER has to be a path without blanks, because of Make.
"""
import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODULES = ["virtio_pci", "virtio_net", "vmxnet3", "ib_uverbs", "rdma_ucm", "vmw_pvrdma",  # and what they depend on
           "crc32_generic", "rdma_rxe"]
PROGRAMS = ["busybox", "ibv_devinfo", "ibv_rc_pingpong", "ibv_srq_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "rdma",
            "rdma_client", "rdma_server", "rping", "ucmatose", "udaddy",
            "ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_atomic_lat"]
# what they load by themselves: pthread_exit() does
LOADED = ["/lib/x86_64-linux-gnu/libgcc_s.so.1"]
PROVIDERS = {name: f"/usr/lib/x86_64-linux-gnu/libibverbs/lib{name}-rdmav34.so" for name in ("rxe", "vmw_pvrdma")}
DRIVER = "drivers/infiniband/hw/vmw_pvrdma"


def run(*command, **kwargs):
    return subprocess.run([str(word) for word in command], check=True, text=True, **kwargs)


def told(*command):
    return run(*command, capture_output=True).stdout


# --- Debian's kernel ---

def depends(package):
    """The first package of each line of Depends."""
    return re.findall(r"^ *Depends: (\S+)", told("apt-cache", "depends", package), re.M)


def kernel_packages():
    """linux-image-amd64 names the current kernel; its headers name the others."""
    image, = (name for name in depends("linux-image-amd64") if name.startswith("linux-image-"))
    release = image.removeprefix("linux-image-").removesuffix("-unsigned")
    series = ".".join(release.split(".")[:2])
    headers = f"linux-headers-{release}"
    needed = [name for name in depends(headers) if name.startswith("linux-")
              and not name.startswith("linux-compiler")]
    return release, [image, headers, f"linux-source-{series}", *needed]


def unpack(folder, packages):
    """Download what is not there; all of it unpacked in folder/root."""
    root = folder / "root"
    done = root / ".packages"
    if done.exists() and done.read_text() == " ".join(packages):
        return root
    shutil.rmtree(root, ignore_errors=True)
    shutil.rmtree(folder / "deb", ignore_errors=True)
    (folder / "deb").mkdir()
    run("apt-get", "-qq", "download", *packages, cwd=folder / "deb", stderr=subprocess.DEVNULL)
    for package in (folder / "deb").iterdir():
        run("dpkg-deb", "-x", package, root)
    shutil.rmtree(folder / "deb")
    done.write_text(" ".join(packages))
    return root


# --- the driver ---

def build_driver(folder, root, release):
    """Return: the module"""
    headers = root / "usr/src" / f"linux-headers-{release}"
    source = next((root / "usr/src").glob("linux-source-*.tar.xz"))
    where = folder / "vmw_pvrdma"
    module = where / "vmw_pvrdma.ko"
    if module.exists() and release.encode() in module.read_bytes():
        return module
    shutil.rmtree(where, ignore_errors=True)
    where.mkdir()
    run("tar", "-xf", source, "-C", where, f"--strip-components={DRIVER.count('/') + 2}",
        f"{source.name.removesuffix('.tar.xz')}/{DRIVER}")
    makefile = headers / "Makefile"  # includes that of the common headers, by where it would be installed
    makefile.write_text(makefile.read_text().replace("include /usr/src/", f"include {root}/usr/src/"))
    run("make", "-s", "-C", headers, f"M={where}", "CONFIG_INFINIBAND_VMWARE_PVRDMA=m", "modules")
    return module


# --- the RAM disk ---

def module_order(root, release, driver):
    """[(name, path)], each behind what it depends on."""
    paths = {path.stem.replace("-", "_"): path
             for path in (root / "lib/modules" / release / "kernel").rglob("*.ko")}
    paths["vmw_pvrdma"] = driver
    order = {}

    def add(name):
        if name in order:
            return
        found = re.search(rb"\0depends=([^\0]*)\0", paths[name].read_bytes())
        for other in found[1].decode().split(","):
            if other:
                add(other.replace("-", "_"))
        order[name] = paths[name]

    for name in MODULES:
        add(name)
    return list(order.items())


def libraries(program):
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", told("ldd", program))]


class Archive:
    """A cpio archive in the format "newc"."""

    def __init__(self, file):
        self.file, self.number, self.folders = file, 0, {""}

    def put(self, name, mode, data=b"", device=(0, 0)):
        parent = str(Path(name).parent)
        if parent not in (".", name):
            self.folder(parent)
        self.number += 1
        name = name.encode() + b"\0"
        values = (self.number, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name), 0)
        self.pad(b"070701" + b"".join(b"%08x" % value for value in values) + name)
        self.pad(data)

    def pad(self, data):
        self.file.write(data + b"\0" * (-len(data) % 4))

    def folder(self, name):
        if name not in self.folders:
            self.folders.add(name)
            self.put(name, 0o40755)

    def end(self):
        self.put("TRAILER!!!", 0)


def stripped(path):
    """The module at @path without what a debugger needs."""
    with tempfile.NamedTemporaryFile() as file:
        run("strip", "--strip-debug", "-o", file.name, path)
        return Path(file.name).read_bytes()


def write_initrd(folder, modules):
    files = {}
    for name in PROGRAMS:
        program = shutil.which(name)
        files[f"bin/{name}"] = Path(program)
        for library in libraries(program):
            files[str(library).lstrip("/")] = library
    for name in (*PROVIDERS.values(), *LOADED):
        for library in (Path(name), *libraries(name)):
            files[str(library).lstrip("/")] = library
    with gzip.open(folder / "initrd.new", "wb", compresslevel=1) as file:
        archive = Archive(file)
        for name in ("proc", "sys", "tmp", "run"):
            archive.folder(name)
        archive.put("dev/console", 0o20600, device=(5, 1))
        archive.put("init", 0o100755, (HERE / "init").read_bytes())
        for name in PROVIDERS:
            archive.put(f"etc/libibverbs.d/{name}.driver", 0o100644, f"driver {name}\n".encode())
        archive.put("modules/order", 0o100644, "".join(f"{name}\n" for name, _path in modules).encode())
        for name, path in modules:
            archive.put(f"modules/{name}.ko", 0o100644, stripped(path))
        for name, path in files.items():
            archive.put(name, 0o100755, path.resolve().read_bytes())
        archive.end()
    (folder / "initrd.new").rename(folder / "initrd")


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    release, packages = kernel_packages()
    root = unpack(folder, packages)
    driver = build_driver(folder, root, release)
    write_initrd(folder, module_order(root, release, driver))
    shutil.copy(root / "boot" / f"vmlinuz-{release}", folder / "vmlinuz")


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
