# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks by packets: what one program sends may not keep the packets of others
from where they go."""
import contextlib
import mmap
import os
import random
import socket
import struct
import threading
from pathlib import Path

from hostile.attack import Sender, innocents_go_on
from hostile.test_mads import MadProgram, processor_seconds
from interop.fabric import kill, wait_until
from interop.test_bad_input import ALLOC_PD, RING_DATA, RING_HEAD, Program, command, error_of, node_lid
from interop.test_kill import softibd_pid
from interop.test_managers import states as states_of

QP1_QKEY = 0x80010000
DESTROY_QP = 27  # <rdma/ib_user_verbs.h>
MODIFIED, TOLD_RING, TOLD_BYTES = 0x5f0e, 0x5f10, 65536  # src/abi/session.h, src/abi/told.h
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


class Teller(Program):
    """A program that has asked for a ring of commands, and writes its records itself."""

    def __init__(self, fabric, node="n2"):
        super().__init__(fabric, node)
        self.sock.send(command(TOLD_RING))
        answer, fds, _, _ = socket.recv_fds(self.sock, 4096, 2)
        assert error_of(answer) == 0
        self.fds += fds
        self.told = mmap.mmap(fds[0], 0)
        self.doorbell = fds[1]

    def __exit__(self, *exc):
        self.told.close()
        super().__exit__(*exc)

    def head(self):
        return struct.unpack_from("@Q", self.told, RING_HEAD)[0]

    def tell_until(self, tail):
        self.told[0:8] = struct.pack("@Q", tail)
        os.write(self.doorbell, struct.pack("=Q", 1))


def test_a_ring_of_commands_that_is_always_full(shared):
    """The program's own next command waits; others do not."""
    record = command(MODIFIED, bytes(112))  # of a queue pair that does not exist
    with Teller(shared) as teller:
        told = struct.pack("=I", len(record)) + record + bytes(4)
        assert TOLD_BYTES % len(told) == 0
        teller.told[RING_DATA:RING_DATA + TOLD_BYTES] = told * (TOLD_BYTES // len(told))
        stop = threading.Event()

        def refill():
            while not stop.is_set():
                teller.tell_until(teller.head() + TOLD_BYTES)

        thread = threading.Thread(target=refill)
        thread.start()
        try:
            teller.sock.send(command(ALLOC_PD, bytes(8)))
            for _ in range(5):
                innocents_go_on(shared)
        finally:
            stop.set()
            thread.join()
        assert error_of(teller.sock.recv(4096)) == 0
        assert teller.head() > 10 * TOLD_BYTES


def test_full_rings_of_many_sessions(shared):
    """Each message of one of them asks for what all of them have told."""
    record = command(MODIFIED, bytes(112))
    told = (struct.pack("=I", len(record)) + record + bytes(4)) * (TOLD_BYTES // 128)
    with contextlib.ExitStack() as stack:
        tellers = [stack.enter_context(Teller(shared)) for _ in range(40)]
        stop = threading.Event()

        def refill():
            while not stop.is_set():
                for teller in tellers:
                    teller.tell_until(teller.head() + TOLD_BYTES)

        for teller in tellers:
            teller.told[RING_DATA:RING_DATA + TOLD_BYTES] = told
            teller.sock.send(command(ALLOC_PD, bytes(8)))
        thread = threading.Thread(target=refill)
        thread.start()
        try:
            for _ in range(5):
                innocents_go_on(shared)
        finally:
            stop.set()
            thread.join()
        for teller in tellers:
            assert error_of(teller.sock.recv(4096)) == 0


def test_nonsense_in_a_ring_of_commands(shared):
    """It ends the program's session, and no other."""
    for seed in range(20):
        with Teller(shared) as teller:
            teller.told[RING_DATA:RING_DATA + TOLD_BYTES] = random.Random(seed).randbytes(TOLD_BYTES)
            teller.tell_until(8 * (seed + 1) if seed % 2 else 1 << 40)
            assert teller.sock.recv(4096) == b""
    innocents_go_on(shared)


def test_another_manager(shared):
    """A program is a subnet manager, too: the first remains master."""
    attacker = shared.start("n4", "opensm", "-p", 0, "-f", shared.home / "log")
    try:
        wait_until(lambda: states_of(shared, "n1", "n4") == ["MASTER", "STANDBY"],
                   lambda: f"{states_of(shared, 'n1', 'n4')}")
        innocents_go_on(shared)
    finally:
        kill(attacker)
