# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks with MADs: what a program asks for and never waits for costs softibd no
more than that program's share of memory and time."""
import os
import socket
import struct
from pathlib import Path

from hostile.attack import OPEN_UMAD, connect, innocents_go_on
from interop.test_bad_input import abi_open, node_lid
from interop.test_kill import softibd_pid

REGISTER_AGENT = 0xc01c1b01  # <rdma/ib_user_mad.h>
RECORD = struct.Struct("=5I IIHBB 4B 16s IH6x")  # struct ib_user_mad_hdr
PERF_MGT, GET, PORT_COUNTERS = 4, 1, 0x12
QP1_QKEY = 0x80010000
NOBODYS_LID = 0xbfff


class MadProgram:
    """A program of umad on @node, with an agent that only sends."""

    def __init__(self, fabric, node="n2", rmpp=0):
        self.sock = connect(fabric, "umad")
        self.sock.send(abi_open(OPEN_UMAD, node=node.encode()))
        _, fds, _, _ = socket.recv_fds(self.sock, 4096, 1)
        self.control = socket.socket(fileno=fds[0])
        request = struct.pack("=I16s7Bx", 0, bytes(16), 1, 0, 0, 0, 0, 0, rmpp)
        self.control.send(struct.pack("=II", REGISTER_AGENT, len(request)) + request)
        answer = self.control.recv(4096)
        assert struct.unpack_from("=i", answer)[0] == 0
        self.agent = struct.unpack_from("=I", answer, 8)[0]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.control.close()
        self.sock.close()

    def send(self, mad, lid=NOBODYS_LID, timeout_ms=600000):
        self.sock.send(RECORD.pack(
            self.agent, 0, timeout_ms, 0, RECORD.size + len(mad), socket.htonl(1),
            socket.htonl(QP1_QKEY), socket.htons(lid), *bytes(6), bytes(16), 0, 0) + mad)


def get(tid):
    return struct.pack(">4BHHQHHI", 1, PERF_MGT, 1, GET, 0, 0, tid, PORT_COUNTERS, 0,
                       0).ljust(256, b"\0")


def processor_seconds(fabric):
    """What softibd has used until now."""
    fields = Path(f"/proc/{softibd_pid(fabric)}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_requests_that_nobody_answers(shared):
    """40,000 of them wait while others are answered, and their transaction IDs are as
    like as the program could make them. It ends with all of them."""
    victim = node_lid(shared, "n1")
    with MadProgram(shared) as program:
        for i in range(40000):
            program.send(get(i << 16))
        before = processor_seconds(shared)
        for i in range(2000):
            program.send(get(i << 16 | 1 << 12), victim)
            assert RECORD.unpack_from(program.sock.recv(4096))[1] == 0
        assert processor_seconds(shared) - before < 1
        innocents_go_on(shared)
    innocents_go_on(shared)
