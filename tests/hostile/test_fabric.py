# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks by packets: what one program sends may not keep the packets of others
from where they go."""
import struct
from pathlib import Path

from hostile.attack import Sender, innocents_go_on
from hostile.test_mads import MadProgram, processor_seconds
from interop.fabric import kill, wait_until
from interop.test_bad_input import command, error_of, node_lid
from interop.test_kill import softibd_pid
from interop.test_managers import states as states_of

QP1_QKEY = 0x80010000
DESTROY_QP = 27  # <rdma/ib_user_verbs.h>
PERF_MGT, GET, PORT_COUNTERS = 4, 1, 0x12


def perf_get(tid):
    header = struct.pack(">BBBBHHQHHI", 1, PERF_MGT, 1, GET, 0, 0, tid, PORT_COUNTERS, 0, 0)
    return (header + bytes(40) + b"\0\1").ljust(256, b"\0")


def test_answers_that_nobody_reads(shared):
    """9,000 requests to QP1 of the manager's node: the answers to the first 3,000
    fill the attacker's ring, and those to others may not wait behind the rest, nor be lost because
    these have all the room there is."""
    victim = node_lid(shared, "n1")
    with Sender(shared, "n2") as sender, MadProgram(shared, "n3") as other:
        for tid in range(9000):
            sender.send(sender.datagram(victim, 1, QP1_QKEY, perf_get(tid)))
            sender.flush()
            if tid % 100 == 99:
                other.sock.send(other.record(perf_get(tid), victim, timeout_ms=5000))
                assert other.status() == 0, "the answer to somebody else is lost"
        shared.run("n3", "perfquery", str(victim), "1")
        shared.run("n3", "saquery", "-N")
        innocents_go_on(shared)


def fill_ring(sender, victim):
    """With packets for a program that does not read, to three quarters."""
    bytes_ = sender.datagram(victim.lid, victim.qpn, 0x11111111, bytes(2048))
    for _ in range(3 * sender.ring_bytes // 4 // len(bytes_)):
        sender.send(bytes_)
    sender.flush()


def state_of(pid):
    """Of a process: "R" it runs, or would if it had a processor; "S" it sleeps."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0]


def test_full_rings_and_a_sleeper(shared):
    """Two programs have rings of packets for one that does not read: softibd sleeps while these
    wait, until it drops one after the head-of-queue lifetime."""
    with Sender(shared, "n1") as victim, Sender(shared, "n2") as one, Sender(shared, "n2") as two:
        for sender in one, two:
            fill_ring(sender, victim)
        innocents_go_on(shared)
        at, states = two.head(), set()
        before = processor_seconds(shared)

        def dropped():
            states.add(state_of(softibd_pid(shared)))
            return two.head() > at

        wait_until(dropped, "a packet is dropped")
        assert two.head() < two.tail
        assert "S" in states and processor_seconds(shared) - before < 0.5


def test_qps_that_are_destroyed_with_full_rings(shared):
    """The command waits until the packets have left; others do not wait."""
    with Sender(shared, "n1") as victim, Sender(shared, "n2") as attacker:
        for _ in range(20):
            fill_ring(attacker, victim)
            attacker.sock.send(command(DESTROY_QP, struct.pack("<QII", 0, attacker.qp, 0)))
            innocents_go_on(shared)
            assert error_of(attacker.sock.recv(4096)) == 0
            attacker.create_qp()


def test_another_manager(shared):
    """A program is a subnet manager, too: the first remains master."""
    attacker = shared.start("n4", "opensm", "-p", 0, "-f", shared.home / "log")
    try:
        wait_until(lambda: states_of(shared, "n1", "n4") == ["MASTER", "STANDBY"],
                   lambda: f"{states_of(shared, 'n1', 'n4')}")
        innocents_go_on(shared)
    finally:
        kill(attacker)
