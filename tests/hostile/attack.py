# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What attacks have in common: connections that no library would open, and the
innocents whom nobody may disturb."""
import json
import socket

ABI_MAGIC, ABI_VERSION = 0x42495453, 2  # src/abi/session.h
OPEN_LIST, OPEN_UVERBS, OPEN_UMAD, OPEN_PORT = range(4)
PATIENCE = 30  # seconds: softibd hangs. A lease lasts longer (/proc/sys/fs/lease-break-time)


def connect(fabric, name):
    """A connection to softibd's socket @name, for a program that speaks for itself."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(PATIENCE)
    sock.connect(str(fabric.dir / name))
    return sock


def ask(fabric, op, **fields):
    """A request of the control socket. Return: its connection, answer, descriptors."""
    sock = connect(fabric, "control")
    sock.send(json.dumps({"op": op, **fields}).encode())
    text, fds, _, _ = socket.recv_fds(sock, 1 << 16, 4)
    return sock, json.loads(text), fds


def softibd_answers(fabric):
    """It does not wait for anybody: a client that comes now gets its answer."""
    sock, answer, _ = ask(fabric, "status")
    sock.close()
    assert "error" not in answer, answer


def innocents_go_on(fabric):
    """While an attack lasts: softibd answers, and two programs of other nodes meet."""
    softibd_answers(fabric)
    fabric.pair("ibv_rc_pingpong", "-n", "100", server="n3", client="n4")
