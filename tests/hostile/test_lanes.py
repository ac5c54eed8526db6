# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on what two programs share: lanes, and the connection of two QPs."""
import contextlib
import os
import socket
import struct

import pytest

from hostile.attack import (PATIENCE, PINGPONG, RC_ACKNOWLEDGE, RC_SEND_ONLY, Sender, fork_holder,
                            innocents_go_on, note_test, told)
from hostile.test_softibd import idle_session
from interop.fabric import Failed, _ports, wait_until
from interop.test_bad_input import (NO_LANE, RESOLVE, Listener, Program, command, error_of, lanes_of,
                                    node_lid)


FLOWS = 128  # src/abi/lane.h: the counts of each are where the lane begins


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


@contextlib.contextmanager
def idle_lanes(fabric, lid, qpn, processes, each):
    """Lanes from @processes * @each programs to the owner of the QP, by which nothing comes."""
    request = command(RESOLVE, struct.pack("<IIHHB3x", 1, qpn, lid, 0xffff, 0))

    def take():
        held = [idle_session(fabric, "uverbs") for _ in range(each)]
        for sock in held:
            sock.send(request)
            answer, fds, _, _ = socket.recv_fds(sock, 4096, 2)
            assert not error_of(answer) and len(fds) == 2
            for fd in fds:
                os.close(fd)
        return held

    hold = os.pipe()
    children = []
    try:
        for _ in range(processes):
            children.append(fork_holder(take, hold))
        assert [told(said) for _, said in children] == [each] * processes
        yield
    finally:
        for fd in hold:
            os.close(fd)
        for child, _ in children:
            os.waitpid(child, 0)


@pytest.mark.parametrize("lanes", [0, 1000])
def test_idle_lanes(shared, lanes):
    """To one of the innocents, whose polls have to look at each: what it waits for comes
    nevertheless."""
    port = next(_ports)
    command_line = PINGPONG[0], "-d", "softib0", "-p", port, *PINGPONG[1:]
    server = shared.serve("n3", *command_line, port=port)
    qpn = next(int(r["qpn"], 0) for r in shared.user_resources() if r["type"] == "qp")
    with idle_lanes(shared, node_lid(shared, "n3"), qpn, 4, lanes // 4):
        wait_until(lambda: lanes_of(server) == lanes, lambda: f"it has {lanes_of(server)}")
        out = shared.run("n4", *command_line, "127.0.0.1")
        shared.finish(server)
        assert server.returncode == 0
        note_test(shared, out)


def test_counts_of_more_than_there_is(shared):
    """A program counts in its lane what no link could have carried: its port has not sent that."""
    listener = Listener(shared)
    with Program(shared, "n1") as program:
        _, (memory, _) = program.resolve(listener.lid, listener.qpn)
        os.pwrite(memory, struct.pack("=QQ", 1 << 60, 1 << 60) * FLOWS, 0)
        counted = shared.json("counters", "n1:1")["counters"][0]
        assert counted["xmit_packets"] < 1 << 40 and counted["xmit_bytes"] < 1 << 50, counted
        innocents_go_on(shared)
    listener.end()


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
