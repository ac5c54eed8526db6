# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What attacks have in common: connections that no library would open, and the
innocents whom nobody may disturb. `make hostile` measures these meanwhile."""
import contextlib
import json
import os
import re
import socket
import statistics
import struct
import time
import traceback

from interop.fabric import wait_until
from interop.test_bad_input import ALLOC_PD, Program, command, error_of, node_lid

CREATE_CQ, CREATE_QP, QPT_UD = 18, 24, 4  # <rdma/ib_user_verbs.h>
UD_SEND_ONLY, RC_SEND_ONLY, RC_ACKNOWLEDGE = 0x64, 0x04, 0x11
MEASURE = bool(os.environ.get("SOFTIB_MEASURE"))  # make hostile
MEASURED = {}  # by test: measure() before its attack, and those meanwhile
PATIENCE = 30  # seconds: softibd hangs. A lease lasts longer (/proc/sys/fs/lease-break-time)


def connect(fabric, name):
    """A connection to softibd's socket @name, for a program that speaks for itself."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(PATIENCE)
    sock.connect(str(fabric.dir / name))
    return sock


def answer_to(sock, message, num_fds=16):
    """Of an endpoint, which may have turned us away before. Return: it, descriptors."""
    with contextlib.suppress(BrokenPipeError):
        sock.send(message)
    try:
        return socket.recv_fds(sock, 4096, num_fds)[:2]
    except ConnectionResetError:  # what was sent was not read; the answer is behind it
        return socket.recv_fds(sock, 4096, num_fds)[:2]


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


PINGPONG = "ibv_rc_pingpong", "-s", 2, "-n", 20000


def measure(fabric, out=None):
    """@out: what PINGPONG printed, which has no percentile; None: ib_send_lat is run. Return:
    microseconds of a SEND of innocents, typical and 99 %, and of a request to softibd, the median."""
    if out:
        row = {2: float(re.search(r"= ([\d.]+) usec/iter", out)[1]) / 2, 5: "nan"}
    else:
        _, out = fabric.pair("ib_send_lat", "-n", "20000", server="n3", client="n4")
        row = re.findall(r"^ *2 +20000 +(.*)$", out, re.M)[0].split()
    times = []
    for _ in range(100):
        began = time.perf_counter()
        softibd_answers(fabric)
        times.append(time.perf_counter() - began)
    return float(row[2]), float(row[5]), statistics.median(times) * 1e6


def note_test(fabric, out=None):
    """The innocents' latency while the attack of this test lasts, or, at first, before it."""
    if MEASURE:
        test = re.search(r"::(.*) \(", os.environ["PYTEST_CURRENT_TEST"])[1]
        MEASURED.setdefault(test, []).append(measure(fabric, out))


def fork_holder(take, hold):
    """A child that calls @take(), keeps what that returns until the pipe @hold is closed, and never comes
    back into the test. Return: its pid, and a descriptor that tells how much it got, or ends if it failed"""
    said = os.pipe()
    pid = os.fork()
    if pid:
        os.close(said[1])
        return pid, said[0]
    try:
        os.close(said[0])
        os.close(hold[1])
        held = take()
        os.write(said[1], bytes([min(len(held), 255)]))
        os.read(hold[0], 1)
    except BaseException:  # pylint: disable=broad-except  # whatever it is: it is no other test run
        traceback.print_exc()
    finally:
        os._exit(0)


def told(fd):
    """How much a child got: fork_holder()."""
    with open(fd, "rb") as said:
        number = said.read(1)
    assert number, "a child failed"
    return number[0]


def innocents_go_on(fabric):
    """While an attack lasts: softibd answers, and two programs of other nodes meet."""
    softibd_answers(fabric)
    fabric.pair("ibv_rc_pingpong", "-n", "100", server="n3", client="n4")
    note_test(fabric)


class Sender(Program):
    """A program on n1 with a QP, which writes its packets itself and never reads
    what arrives."""

    qp_type = QPT_UD

    def __init__(self, fabric, node="n1"):
        super().__init__(fabric, node)
        self.lid = node_lid(fabric, node)
        self.tail = 0
        self.pd = self.create(ALLOC_PD, bytes(8))[0]
        self.cq = self.create(CREATE_CQ, struct.pack("<QQIIiI", 0, 0, 16, 0, -1, 0))[0]
        self.create_qp()

    def create_qp(self):
        self.qp, self.qpn = self.create(CREATE_QP, struct.pack(
            "<QQ4I5I4B", 0, 0, self.pd, self.cq, self.cq, 0, 16, 16, 1, 1, 0, 0, self.qp_type, 0, 0))

    def create(self, number, body, words=2):
        """Return: the first words of the answer; the first of all is the handle."""
        self.sock.send(command(number, body))
        answer = self.sock.recv(4096)
        assert error_of(answer) == 0, (number, error_of(answer))
        return struct.unpack_from(f"<{words}I", answer.ljust(8 + 4 * words, b"\0"), 8)

    def send(self, bytes_):
        """Put a packet into the ring to softibd, when there is room."""
        record = struct.pack("<I", len(bytes_)) + bytes_
        record += bytes(-len(record) % 8)
        pos = self.tail % self.ring_bytes
        if pos + len(record) > self.ring_bytes:
            self.write(b"\xff" * 4, pos)
            self.tail += self.ring_bytes - pos
            pos = 0
        wait_until(lambda: self.tail + len(record) - self.head() <= self.ring_bytes,
                   "softibd reads the ring")
        self.write(record, pos)
        self.tail += len(record)

    def flush(self):
        self.ring(self.tail)

    def packet(self, dlid, headers, payload):
        words = (8 + len(headers) + len(payload)) // 4 + 1
        return struct.pack(">BBHHH", 0, 2, dlid, words, self.lid) + headers + payload

    def datagram(self, dlid, qpn, qkey, payload):
        headers = struct.pack(">BBHIIII", UD_SEND_ONLY, 0, 0xffff, qpn, 0, qkey, self.qpn)
        return self.packet(dlid, headers, payload)

    def connected(self, opcode, dlid, qpn, psn, payload):
        """A packet of a connected QP, without a request for an ACK."""
        headers = struct.pack(">BBHII", opcode, 0, 0xffff, qpn, psn & 0xffffff)
        return self.packet(dlid, headers, payload)
