# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Units of an SRP target on a disk that is as slow, as full or as broken as the test wants."""
import errno
import os
import subprocess

import pytest

from interop.fabric import BUILD, TIMEOUT, Fabric, guid
from interop.test_srp_initiator import CLIENT, run

MODULES = BUILD / "tests/modules"


@pytest.fixture(name="slow")
def fixture_slow():
    """n1 serves a file of 1 MiB; what softibd's disk does is up to tests/modules/disk_gate.c."""
    fabric = Fabric("pair")
    preload = [os.environ.get("LD_PRELOAD"), str(MODULES / "disk_gate.so")]
    fabric.env.update(LD_PRELOAD=":".join(filter(None, preload)), DISK_GATE=str(fabric.home / "gate"))
    with fabric:
        disk = fabric.home / "disk.img"
        disk.write_bytes(bytes(1 << 20))
        fabric.softib("srp", "target", "add", "n1", "--unit", disk)
        yield fabric


def test_commands_of_a_slow_disk(slow):
    """Their order, their abortion, and what becomes of those whose channel has gone."""
    slow.softib("modprobe", "n2", str(MODULES / "srp_order.so"), f"guid={guid('n1')}",
                f"port_guid={guid('n1', 1)}", f"gate={slow.home / 'gate'}")
    slow.softib("rmmod", "n2", "srp_order")
    said = [line for line in (slow.dir / "softibd.log").read_text().splitlines()
            if "srp_order: " in line and "module srp_order" not in line]
    assert len(said) == 1 and said[0].endswith("srp_order: done, 0 failures"), said


def test_discarding_is_written_through(slow):
    """A disk whose writes are safe at once has its holes flushed: the error of that is told."""
    disk = slow.home / "through.img"
    disk.write_bytes(bytes(1 << 20))
    slow.softib("srp", "target", "add", "n1", "--unit", f"{disk}:wt:sparse")
    login = slow.json("srp", "login", "n2", "n1")
    uri = f"nbd+unix:///{login['units'][1]['export']}?socket={login['socket']}"
    discard = ["qemu-io", "-t", "none", "-d", "unmap", "-f", "raw", "-c", "write -z -u 0 64k", uri]
    run(slow, *discard)
    (slow.home / "gate.error").write_text(str(errno.EIO))
    done = subprocess.run(discard, env=CLIENT, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode and "Input/output error" in done.stdout + done.stderr, done.stdout + done.stderr
    slow.softib("srp", "logout", "n2", "n1")


@pytest.mark.parametrize("error, commands, why", [
    (errno.ENOSPC, ["write 0 4k"], "No space left on device"),
    (errno.EDQUOT, ["write 0 4k"], "No space left on device"),
    (errno.EIO, ["write 0 4k", "read 0 4k", "flush"], "Input/output error"),
], ids=["full", "quota", "broken"])
def test_a_disk_that_fails(slow, error, commands, why):
    """Its error reaches the program; when it is mended, the same session goes on."""
    login = slow.json("srp", "login", "n2", "n1")
    uri = f"nbd+unix:///{login['units'][0]['export']}?socket={login['socket']}"
    failing = slow.home / "gate.error"
    for command in commands:
        failing.write_text(str(int(error)))
        done = subprocess.run(["qemu-io", "-t", "none", "-f", "raw", "-c", command, uri], env=CLIENT,
                              capture_output=True, text=True, timeout=TIMEOUT, check=False)
        said = done.stdout + done.stderr
        assert done.returncode and (why in said or command == "flush"), (command, done.returncode, said)
        failing.unlink()
        run(slow, "qemu-io", "-f", "raw", "-c", "write -P 7 0 4k", "-c", "flush", "-c", "read -P 7 0 4k", uri)
    session, = slow.json("srp", "list", "n2")
    assert session["state"] == "running" and session["channels"][0]["up"]
    slow.softib("srp", "logout", "n2", "n1")
