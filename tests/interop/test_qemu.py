# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""QEMU moves a running virtual machine from one node to another by RDMA (its own protocol over
the RDMA CM, with WRITEs into the memory of the destination)."""
import json
import os
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from interop.fabric import NOBODY, Fabric, _ports, kill, wait_until

DESTINATION = "10.1.0.2"  # n2, by the address plan
MIB = 1 << 20
# A length that is no multiple of 256 KiB: of others QEMU before 9.0 loses pages that a guest under TCG writes
# (cpu_physical_memory_sync_dirty_bitmap() clears their bits by the word, and leaves TCG's TLB as it is).
GUEST_BYTES = 64 * MIB + 8192
DATA_AT, DATA_MIB = 16 * MIB, 24  # what the guest leaves alone
# A boot sector that writes to 64 KiB of memory without end, in real mode:
#     mov ax, 0x2000; mov es, ax; xor di, di; 1: inc word [es:di]; add di, 2; jmp 1b
BOOT = bytes.fromhex("b80020 8ec0 31ff 26ff05 83c702 ebf8").ljust(510, b"\0") + b"\x55\xaa"


class Qemu:
    """A virtual machine of a node, by its QMP socket."""

    def __init__(self, fabric, node, folder, *options, prefix=()):
        path = folder / f"{node}.qmp"
        self.process = fabric.start(
            node, *prefix, "qemu-system-x86_64", "-accel", "tcg", "-m", f"{GUEST_BYTES // 1024}k", "-display", "none",
            "-nodefaults", "-drive", f"file={folder}/boot,format=raw,snapshot=on",
            "-device", f"loader,file={folder}/data,addr={DATA_AT},force-raw=on",
            "-qmp", f"unix:{path},server,nowait", *options)
        self.socket = socket.socket(socket.AF_UNIX)
        wait_until(lambda: self.connected(path), f"QEMU on {node} listens")
        self.lines = self.socket.makefile()
        self.lines.readline()  # its greeting
        self.ask("qmp_capabilities")

    def connected(self, path):
        assert self.process.poll() is None, self.process.stdout.read()
        try:
            self.socket.connect(str(path))
        except OSError:
            return False
        return True

    def ask(self, command, **arguments):
        request = {"execute": command, "arguments": arguments}
        self.socket.sendall(json.dumps(request).encode() + b"\n")
        while True:  # past its events
            answer = json.loads(self.lines.readline())
            if "event" not in answer:
                return answer["return"]

    def status(self):
        return self.ask("query-status")["status"]

    def migration(self):
        return self.ask("query-migrate").get("status")

    def memory(self, folder):
        file = folder / "memory"
        self.ask("pmemsave", val=0, size=GUEST_BYTES, filename=str(file))
        return file.read_bytes()


@contextmanager
def two_machines(fabric, folder, *features, prefix=()):
    """A guest that runs on n1, and one on n2 that waits for it; and the URI of the latter. @features:
    of the migration; @prefix: of both command lines"""
    (folder / "boot").write_bytes(BOOT)
    (folder / "data").write_bytes(os.urandom(DATA_MIB * MIB))
    for path in (folder / "boot", folder / "data"):
        path.chmod(0o644)
    uri = f"rdma:{DESTINATION}:{next(_ports)}"
    source = Qemu(fabric, "n1", folder, prefix=prefix)
    destination = Qemu(fabric, "n2", folder, "-S", "-incoming", "defer", prefix=prefix)
    for machine in (source, destination):
        machine.ask("migrate-set-capabilities", capabilities=[
            {"capability": name, "state": True} for name in features])
    destination.ask("migrate-incoming", uri=uri)
    yield source, destination, uri
    for machine in (source, destination):
        kill(machine.process)


@pytest.fixture(name="folder")
def a_folder_of_every_user():
    with tempfile.TemporaryDirectory(prefix="softib-qemu-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


def move(source, uri):
    """Move the guest. Return: how that ended."""
    source.ask("migrate", uri=uri)
    wait_until(lambda: source.migration() in ("completed", "failed"), "the guest moves")
    return source.migration()


@pytest.mark.parametrize("features", [(), ("rdma-pin-all",)], ids=["chunks", "pinned"])
def test_a_guest_moves(folder, features):
    with Fabric("pair") as fabric:
        with two_machines(fabric, folder, *features) as (source, destination, uri):
            assert move(source, uri) == "completed"
            assert source.status() == "postmigrate"
            wait_until(lambda: destination.status() == "paused", "the guest has arrived")
            before = source.memory(folder)
            data = (folder / "data").read_bytes()
            assert before[DATA_AT:DATA_AT + len(data)] == data
            assert destination.memory(folder) == before
            destination.ask("cont")
            assert destination.status() == "running"
        fabric.expect_no_leftovers()


def test_a_guest_that_may_not_be_pinned_stays(folder):
    # root may lock what it likes, an ordinary user what the limit allows
    with Fabric("pair", up_args=["--memlock"], user=() if os.getuid() else NOBODY) as fabric:
        limit = ["prlimit", f"--memlock={8 * MIB}"]
        with two_machines(fabric, folder, "rdma-pin-all", prefix=limit) as (source, _other, uri):
            assert move(source, uri) == "failed"
            assert source.status() == "running"
        fabric.expect_no_leftovers()


def test_a_guest_survives_its_destination(folder):
    with Fabric("pair") as fabric:
        with two_machines(fabric, folder) as (source, destination, uri):
            source.ask("migrate-set-parameters", **{"max-bandwidth": MIB})
            source.ask("migrate", uri=uri)
            wait_until(lambda: source.migration() == "active", "the guest is on its way")
            kill(destination.process)
            wait_until(lambda: source.migration() == "failed", "the migration fails")
            assert source.status() == "running"
        fabric.expect_no_leftovers()
