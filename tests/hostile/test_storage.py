# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on disks: the NBD socket, by which programs use those that nodes are logged in to, and the
targets."""
import contextlib
import itertools
import json
import os
import select
import socket
import subprocess

import pytest

from hostile.attack import PATIENCE, innocents_go_on, softibd_answers
from hostile.attack import connect as connect_to
from hostile.silent_files import SilentFiles
from hostile.test_mads import MadProgram, mad, processor_seconds
from hostile.test_softibd import no_descriptor_left
from interop.fabric import OUTSIDE, Fabric, guid, wait_until
from interop.test_bad_input import node_lid
from interop.test_kill import softibd_pid

CONNECTIONS_MOST = 64  # src/ulp/srp/export.c
needs_fuse = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="no FUSE")
UNITS_EXAMINED = 16  # src/ulp/srpt/private.h


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
    with no_descriptor_left(pid), connect(shared) as sock:
        before = processor_seconds(shared)
        assert not select.select([sock], [], [], 1)[0], "softibd had a descriptor"
        assert processor_seconds(shared) - before < 0.3  # a turn for each look would take all of it
    is_served(disk)


COMM_MGT, SEND, REQ = 7, 3, 0x10
CHANNELS_TARGET = 256  # src/ulp/srpt/private.h


def packed(bytes_, fields):
    """@fields: of each the bit where it begins, its bits, its value."""
    whole = sum(value << 8 * bytes_ - at - bits for at, bits, value in fields)
    return whole.to_bytes(bytes_, "big")


def number_of(name, port=0):
    return int(guid(name, port), 16)


def login(number, victim_lid):
    """A REQ of n2 (IBA v1 12.6.5) to the target of n3, with a login (SRP 6.2) of an initiator that
    nobody knows, at a LID that is made up as well."""
    gids = [0xfe80 << 112 | number_of(node, 1) for node in ("n2", "n3")]
    path = [(416, 16, number), (432, 16, victim_lid), (448, 128, gids[0]), (576, 128, gids[1]), (730, 6, 3),
            (756, 1, 1), (760, 5, 16)]
    target = 2 * guid("n3")
    srp = [(1120 + 64, 64, number), (1120 + 128, 32, 64), (1120 + 192, 16, 6),
           (1120 + 256, 128, 0xabcd << 112 | number), (1120 + 384, 128, int(target, 16))]
    req = packed(232, [(0, 32, number), (64, 64, number_of("n3") | 1 << 60), (128, 64, number_of("n2")),
                       (256, 24, 0x1000 + number), (280, 8, 4), (312, 8, 4), (344, 5, 20), (376, 5, 20),
                       (381, 3, 7), (384, 16, 0xffff), (400, 4, 4), (405, 3, 7), (408, 4, 15), *path, *srp])
    return mad(COMM_MGT, 2, SEND, number, REQ)[:24] + req


def test_logins_of_initiators_that_nobody_knows(shared, disk):
    """A program logs in to a target, as somebody else each time, as often as the target has channels:
    other ports log in, too."""
    victim, numbers = node_lid(shared, "n3"), itertools.count(1)

    def has_logged_in(attacker):
        """It goes on as long as it can: no more than a queue takes at once arrive."""
        for number in itertools.islice(numbers, 64):
            attacker.sock.send(attacker.record(login(number, victim), victim, timeout_ms=0))
        channels = len(shared.json("srp", "target", "list", "n3")[0]["channels"])
        return channels > 32 and number > 2 * CHANNELS_TARGET

    with MadProgram(shared) as attacker:
        wait_until(lambda: has_logged_in(attacker), "the attacker is logged in")
        shared.softib("srp", "login", "n1", "n3")
        shared.softib("srp", "logout", "n1", "n3")
        is_served(disk)
        innocents_go_on(shared)


def add_unit(fabric, files, names):
    """Ask softibd for a unit of n2, whose files @names are of @files, or which is in memory. Return: the
    connection, on which the answer comes"""
    sock = connect_to(fabric, "control")
    request = json.dumps({"op": "srp_unit_add", "node": "n2", "name": "unit"}).encode()
    if files:
        files.send(sock, request, names)
        return sock
    fd = os.memfd_create("disk", os.MFD_ALLOW_SEALING)
    os.truncate(fd, 1 << 20)
    socket.send_fds(sock, [request], [fd])
    os.close(fd)
    return sock


def outcome(sock):
    with sock:
        return json.loads(sock.recv(4096)).get("error")


@needs_fuse
def test_files_whose_server_falls_silent(shared, tmp_path):
    """Files of units and of their reservations, on a file system whose server answers nothing any
    more: softibd does not wait, whether it adds units or removes them, nor when a client leaves."""
    with SilentFiles(tmp_path) as files:
        assert outcome(add_unit(shared, files, "disk kept")) is None
        files.be_silent()
        leaves, waits = add_unit(shared, files, "disk"), add_unit(shared, files, "disk")
        wait_until(files.is_asked, "softibd looks at the file")
        leaves.close()
        innocents_go_on(shared)
        shared.softib("srp", "target", "remove", "n2")
        softibd_answers(shared)
        assert not select.select([waits], [], [], 0)[0]
    assert outcome(waits)  # an error: the server has ended
    assert shared.json("srp", "target", "list") == []


@needs_fuse
def test_files_of_more_units_than_are_examined(shared, tmp_path):
    """Clients that wait for such files, as many as softibd examines at a time: the next one is refused,
    and served when the files' server has ended."""
    with SilentFiles(tmp_path) as files:
        files.be_silent()
        waiting = [add_unit(shared, files, "disk") for _ in range(UNITS_EXAMINED)]
        wait_until(files.is_asked, "softibd looks at a file")
        assert "do not answer" in outcome(add_unit(shared, None, ""))
        innocents_go_on(shared)
    assert all(outcome(sock) for sock in waiting)
    assert outcome(add_unit(shared, None, "")) is None
    shared.softib("srp", "target", "remove", "n2")


@needs_fuse
def test_a_fabric_with_silent_files_ends(tmp_path):
    """softibd waits for the server when it ends: `softib down` ends it nevertheless."""
    with SilentFiles(tmp_path) as files:
        with Fabric("pair") as fabric:
            assert outcome(add_unit(fabric, files, "disk kept")) is None
            files.be_silent()
            waits = add_unit(fabric, files, "disk")
            wait_until(files.is_asked, "softibd looks at the file")
            fabric.softib("down", "t", timeout=PATIENCE)
            waits.close()
            assert not (fabric.dir / "control").exists()
            fabric.softib("up", "t")
