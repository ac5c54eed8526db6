# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on disks: the NBD socket, by which programs use those that nodes are logged in to, and the
targets."""
import contextlib
import os
import select
import socket
import subprocess

import pytest

from hostile.attack import PATIENCE, innocents_go_on, softibd_answers
from hostile.test_mads import processor_seconds
from hostile.test_softibd import limit_of_files
from interop.fabric import OUTSIDE
from interop.test_kill import softibd_pid

CONNECTIONS_MOST = 64  # src/ulp/srp/export.c


@pytest.fixture(name="disk")
def a_disk(shared):
    """Memory of n3, which n4 is logged in to. The address for NBD clients."""
    shared.softib("srp", "target", "add", "n3", "--unit", "ram:1M")
    login = shared.json("srp", "login", "n4", "n3")
    yield f"nbd+unix:///{login['units'][0]['export']}?socket={login['socket']}"
    shared.softib("srp", "logout", "n4", "n3")
    shared.softib("srp", "target", "remove", "n3")


def is_served(uri):
    done = subprocess.run(["qemu-io", "-f", "raw", "-c", "write -P 0x11 0 64k", "-c", "read -P 0x11 0 64k", uri],
                          env=OUTSIDE, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def connect(fabric):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(str(fabric.dir / "nbd"))  # waits for room: no time-out
    return sock


def enter(fabric, uri):
    """A connection whose handshake is over (NBD_OPT_EXPORT_NAME), and on which nothing follows."""
    sock = connect(fabric)
    sock.settimeout(PATIENCE)
    name = uri.split("nbd+unix:///")[1].split("?")[0].encode()
    sock.sendall(b"\0\0\0\3IHAVEOPT\0\0\0\1" + len(name).to_bytes(4, "big") + name)
    greeting = b""
    while len(greeting) < 18 + 10 and (more := sock.recv(4096)):
        greeting += more
    assert len(greeting) == 28
    return sock


@pytest.mark.parametrize("idle", [lambda fabric, disk: connect(fabric), enter], ids=["silent", "entered"])
def test_clients_of_disks_that_do_nothing(shared, disk, idle):
    """More of them than softibd serves, and they stay: whoever comes is served."""
    with contextlib.ExitStack() as crowd:
        for _ in range(CONNECTIONS_MOST + 10):
            crowd.enter_context(idle(shared, disk))
        softibd_answers(shared)
        is_served(disk)
        innocents_go_on(shared)


def test_a_client_of_disks_without_a_descriptor_for_it(shared, disk):
    """softibd has no descriptor for who waits at its socket: it sleeps until there is one."""
    pid = softibd_pid(shared)
    taken = set(map(int, os.listdir(f"/proc/{pid}/fd")))
    first_free = next(fd for fd in range(len(taken) + 1) if fd not in taken)
    with limit_of_files(pid, first_free), connect(shared) as sock:
        before = processor_seconds(shared)
        assert not select.select([sock], [], [], 1)[0], "softibd had a descriptor"
        assert processor_seconds(shared) - before < 0.1
    is_served(disk)
