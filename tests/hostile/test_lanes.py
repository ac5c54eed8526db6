# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on what two programs share: lanes, and the connection of two QPs."""
import contextlib
import os
import socket
import struct

from hostile.attack import (PATIENCE, RC_ACKNOWLEDGE, RC_SEND_ONLY, Sender, innocents_go_on)
from interop.fabric import Failed, _ports, wait_until
from interop.test_bad_input import NO_LANE, Program, node_lid


def drain(fd):
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.read(fd, 64)


def test_a_burst_of_lanes(shared):
    """More programs come than their victim's socket has room for, before it reads."""
    with Sender(shared, "n2") as victim:

        def lane():
            with Program(shared, "n1") as program:
                return program.resolve(victim.lid, victim.qpn)[0]

        for _ in range(1000):
            if lane() == NO_LANE:
                break
        else:
            raise Failed("its socket has room for everything")
        innocents_go_on(shared)
        drain(victim.fd("LANES"))
        wait_until(lambda: lane() != NO_LANE, "it gets new lanes again", PATIENCE)


def meet(port, lid, qpn, psn):
    """What ibv_rc_pingpong's client says to its server of its QP. Return: the server's QPN, PSN"""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as sock:
        sock.sendall(b"%04x:%06x:%06x:%032x\0" % (lid, qpn, psn, 0))
        words = sock.recv(4096).split(b":")
        sock.sendall(b"done\0")
    return int(words[1], 16), int(words[2], 16)


def test_psns_of_a_foreign_connection(shared):
    """Another program on the node of a QP's peer sends every PSN that the QP may expect. The QP
    receives the message of its peer, whose PSN is among them, and nothing else."""
    size, psn, port = 64, 0x1000, next(_ports)
    server = shared.serve("n3", "ibv_rc_pingpong", "-d", "softib0", "-p", port, "-s", size, "-n", 1,
                          "-c", port=port)
    dlid = node_lid(shared, "n3")
    with Sender(shared, "n2") as peer, Sender(shared, "n2") as attacker:
        qpn, its_psn = meet(port, peer.lid, peer.qpn, psn)
        for guess in range(psn - 2000, psn + 2000):
            attacker.send(attacker.connected(RC_SEND_ONLY, dlid, qpn, guess, b"\xff" * size))
        attacker.flush()
        wait_until(lambda: attacker.head() == attacker.tail, "softibd has read all of them")
        innocents_go_on(shared)
        peer.send(peer.connected(RC_SEND_ONLY, dlid, qpn, psn, bytes(size)))
        ack = peer.connected(RC_ACKNOWLEDGE, dlid, qpn, its_psn, struct.pack(">I", 0x1f << 24 | 1))

        def acknowledged():
            peer.send(ack)
            peer.flush()
            return server.poll() is not None

        wait_until(acknowledged, "the server's message is acknowledged")
        out = shared.finish(server)
    assert server.returncode == 0 and "invalid data" not in out, out
