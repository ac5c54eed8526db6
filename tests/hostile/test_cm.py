# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks by the CM, the RDMA CM and SDP: ids, news, requests and sockets by the thousand."""
import contextlib
import errno
import os
import random
import socket
import struct

import pytest

from hostile.attack import answer_to, connect, innocents_go_on
from hostile.test_mads import SEND, MadProgram, mad, processor_seconds, resident_mib
from hostile.test_softibd import limit_of_files
from interop.fabric import link_local, wait_until
from interop.test_bad_input import abi_open, error_of, node_lid
from interop.test_kill import softibd_pid
from interop.test_rdma_cm import cm_ids

OPEN_RDMA_CM, OPEN_SDP, OPEN_NETLINK, OPEN_UCM = 4, 5, 6, 7  # src/abi/session.h
CREATE_ID, RESOLVE_IP, LISTEN, SET_OPTION, BIND = 0, 3, 7, 14, 20  # <rdma/rdma_user_cm.h>
PS_TCP = 0x106
UCM_LISTEN, UCM_COMMANDS = 3, 18  # src/abi/ib_user_cm.h
UCM_BACKLOG = 1024  # src/access/ucm_private.h
NOBODY = "10.1.0.4"  # no program listens there
PORT, SHARERS_MOST = 7471, 4096  # src/core/rdma_cm_addr.c


def ipv4(address, port):
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address)


class CmProgram:
    """A program with the RDMA CM on @node, which never reads its news."""

    NAME, KIND = "rdma_cm", OPEN_RDMA_CM

    def __init__(self, fabric, node="n2"):
        self.sock = connect(fabric, self.NAME)
        self.sock.send(abi_open(self.KIND, node=node.encode()))
        answer, fds, _, _ = socket.recv_fds(self.sock, 4096, 1)
        assert error_of(answer) == 0
        self.control = socket.socket(fileno=fds[0])

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.control.close()
        self.sock.close()

    def ask(self, number, body, out=64):
        """Return: the error, and what the answer has."""
        self.control.send(struct.pack("=IHH", number, len(body), out) + body)
        answer = self.control.recv(4096)
        return error_of(answer), answer[8:]

    def must(self, number, body):
        error, answer = self.ask(number, body)
        assert error == 0, (number, error)
        return answer

    def create_id(self):
        body = struct.pack("=QQHB5x", 1, 0, PS_TCP, 2)
        return struct.unpack_from("=I", self.must(CREATE_ID, body))[0]

    def bind(self, number, port=0):
        return self.ask(BIND, struct.pack("=IHH128s", number, 16, 0, ipv4("0.0.0.0", port)))[0]

    def share_port(self, number):
        self.must(SET_OPTION, struct.pack("=QIIII", 0, number, 0, 1, 4) + struct.pack("=i", 1))

    def resolve(self, number):
        self.must(RESOLVE_IP, struct.pack("=28s28sII", b"", ipv4(NOBODY, 7), number, 1000))


def test_news_that_nobody_reads(shared):
    """25,000 ids, each with news. The program ends with all of them."""
    before = processor_seconds(shared)
    with CmProgram(shared) as program:
        for _ in range(25000):
            program.resolve(program.create_id())
        innocents_go_on(shared)
    innocents_go_on(shared)
    assert processor_seconds(shared) - before < 2


def test_ids_of_one_port(shared):
    """As many ids as may share a port, which every further bind looks at."""
    before = processor_seconds(shared)
    with CmProgram(shared) as program:
        for _ in range(SHARERS_MOST):
            number = program.create_id()
            program.share_port(number)
            assert program.bind(number, PORT) == 0
        number = program.create_id()
        program.share_port(number)
        for _ in range(2000):
            assert program.bind(number, PORT) == -errno.EADDRINUSE
        innocents_go_on(shared)
    assert processor_seconds(shared) - before < 2


def test_no_port_is_free(shared):
    """A program has all ports of its node, and asks for another one, over and over: softibd
    does not look at each of them every time."""
    before = processor_seconds(shared)
    with CmProgram(shared) as program:
        while program.bind(program.create_id()) == 0:
            pass
        number = program.create_id()
        for _ in range(2000):
            if program.bind(number) == 0:  # one that the last search did not look at
                number = program.create_id()
        innocents_go_on(shared)
    assert processor_seconds(shared) - before < 3


def idle_sockets(fabric, name, opening):
    """As many connections as it gets to @name: their number, and what keeps them."""
    with contextlib.ExitStack() as stack:
        for number in range(1000):
            sock = stack.enter_context(connect(fabric, name))
            answer, fds = answer_to(sock, opening)
            for fd in fds:
                stack.callback(os.close, fd)
            if error_of(answer) == -errno.EMFILE:
                return number, stack.pop_all()
        pytest.fail(f"softibd keeps 1,000 idle connections to {name} for one process")


def test_idle_channels_and_sockets(shared):
    """Event channels and SDP sockets that do nothing, as many as softibd lets a process have:
    there is room for others."""
    with limit_of_files(softibd_pid(shared), 1200):
        for name, kind, fds in ("rdma_cm", OPEN_RDMA_CM, 3), ("ucm", OPEN_UCM, 3), ("sdp", OPEN_SDP, 3), ("netlink", OPEN_NETLINK, 1):
            number, kept = idle_sockets(shared, name, abi_open(kind, node=b"n2"))
            with kept:
                assert number == 1200 // 4 // fds
                innocents_go_on(shared)


SERVICE_TCP = 0x0000000001060000
REQ, CM_CLASS, FLOOD, BACKLOG = 0x10, 7, 20000, 16


def request(number, lids, gids, service=SERVICE_TCP | PORT):
    """A REQ (12.6.5) of an adapter and a queue pair that no other one has named."""
    path = struct.pack(">HH16s16sIBBBB", *lids, *gids, 3, 0, 64, 0x08, 14 << 3)
    private = struct.pack(">BBH12x4s12x4s", 0, 4 << 4, 1, socket.inet_aton("10.1.0.2"), socket.inet_aton("10.1.0.1"))
    body = struct.pack(">IIQQIIIIIIHBB", number, 0, service, 0xbad << 32 | number, 0, 0, (number % 60000 + 99) << 8 | 1,
                       1, 20 << 3, 20 << 3 | 7, 0xffff, 4 << 4 | 7, 15 << 4) + path + bytes(44) + private
    return mad(CM_CLASS, 2, SEND, number, REQ)[:24] + body.ljust(232, b"\0")


def rping_goes_on(fabric):
    """Between other programs, one of them on the node whose server is flooded."""
    words = ["-a", "10.1.0.1", "-C", 5, "-p", PORT + 1]
    server = fabric.start("n1", "rping", "-s", *words)
    wait_until(lambda: any(row["comm"] == "rping" for row in cm_ids(fabric, "n1")), "rping listens")
    fabric.run("n3", "rping", "-c", *words)
    fabric.finish(server)


def test_requests_by_the_thousand(shared):
    """Of adapters and queue pairs that do not exist, for a server that takes none. It has no more of them
    than its backlog, another service of its node is reached, and they end with the server."""
    gids = [socket.inet_pton(socket.AF_INET6, link_local(node)) for node in ("n2", "n1")]
    lids = [node_lid(shared, node) for node in ("n2", "n1")]
    before = processor_seconds(shared), resident_mib(shared)
    with CmProgram(shared, "n1") as server, MadProgram(shared) as attacker:
        number = server.create_id()
        assert server.bind(number, PORT) == 0
        server.must(LISTEN, struct.pack("=II", number, BACKLOG))
        for i in range(FLOOD):
            attacker.sock.send(attacker.record(request(1 + i, lids, gids), lids[1], timeout_ms=0))
            if i == FLOOD // 2:
                innocents_go_on(shared)
                rping_goes_on(shared)
        assert BACKLOG <= len(cm_ids(shared, "n1")) <= 3 * BACKLOG
    wait_until(lambda: not cm_ids(shared, "n1"), "the requests end with the server")
    assert processor_seconds(shared) - before[0] < 5 and resident_mib(shared) - before[1] < 32
    innocents_go_on(shared)


class UcmProgram(CmProgram):
    """A program with the CM itself."""

    NAME, KIND = "ucm", OPEN_UCM

    def create_id(self):
        return struct.unpack_from("=I", self.must(CREATE_ID, struct.pack("=QQ", 1, 0)))[0]

    def listen(self, service):
        number = self.create_id()
        self.must(UCM_LISTEN, struct.pack(">QQ", service, 0) + struct.pack("=II", number, 0))


def test_requests_to_a_program_of_the_cm(shared):
    """As those by the thousand above, to a program that listens by the CM: it has no backlog of its own, and
    softibd keeps as many requests as it has room for on the listener."""
    gids = [socket.inet_pton(socket.AF_INET6, link_local(node)) for node in ("n2", "n1")]
    lids = [node_lid(shared, node) for node in ("n2", "n1")]
    before = processor_seconds(shared), resident_mib(shared)
    with UcmProgram(shared, "n1") as server, MadProgram(shared) as attacker:
        server.listen(0x1000000000000001)
        for i in range(FLOOD):
            req = request(1 + i, lids, gids, 0x1000000000000001)
            attacker.sock.send(attacker.record(req, lids[1], timeout_ms=0))
            if i == FLOOD // 2:
                innocents_go_on(shared)
                rping_goes_on(shared)
        wait_until(lambda: len(cm_ids(shared, "n1")) > UCM_BACKLOG, "requests wait")
        assert len(cm_ids(shared, "n1")) == 1 + UCM_BACKLOG
    wait_until(lambda: not cm_ids(shared, "n1"), "the requests end with the server")
    assert processor_seconds(shared) - before[0] < 5 and resident_mib(shared) - before[1] < 32
    innocents_go_on(shared)


def test_noise_of_a_program_of_the_cm(shared):
    """Commands of random bytes, structs of any length, and ids of another program's."""
    rng = random.Random(1)
    with UcmProgram(shared, "n1") as victim, UcmProgram(shared, "n1") as program:
        number = victim.create_id()
        for _ in range(2000):
            body = bytearray(rng.randbytes(rng.randrange(128)))
            for at in range(0, len(body) - 3, 8):
                body[at:at + 4] = struct.pack("=I", number)
            error, _answer = program.ask(rng.randrange(UCM_COMMANDS + 2), bytes(body), 1024)
            assert error in (0, -errno.EINVAL, -errno.ENOENT, -errno.EAGAIN)
        victim.must(UCM_LISTEN, struct.pack(">QQ", 0x1000000000000002, 0) + struct.pack("=II", number, 0))
    innocents_go_on(shared)
