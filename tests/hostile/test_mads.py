# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks with MADs: what a program asks for and never waits for costs softibd no
more than that program's share of memory and time."""
import contextlib
import errno
import os
import re
import select
import socket
import struct
from pathlib import Path

from hostile.attack import Sender, connect, innocents_go_on
from interop.fabric import wait_until
from interop.test_bad_input import OPEN_UMAD, abi_open, node_lid
from interop.test_kill import softibd_pid

REGISTER_AGENT = 0xc01c1b01  # <rdma/ib_user_mad.h>
RECORD = struct.Struct("=5I IIHBB 4B 16s IH6x")  # struct ib_user_mad_hdr
PERF_MGT, GET, PORT_COUNTERS = 4, 1, 0x12
QP1_QKEY = 0x80010000
SUBN_ADM, GET_MULTI, DATA, FIRST, ACTIVE = 3, 0x14, 1, 2, 1
VENDOR, SEND = 0x30, 3
SET, SERVICE, MC_MEMBER, NO_RESOURCES = 2, 0x31, 0x38, 0x100
NOBODYS_LID = 0xbfff
LONG = 60 << 20  # bytes of an RMPP message


class MadProgram:
    """A program of umad on @node, with an agent that only sends."""

    def __init__(self, fabric, node="n2", rmpp=0, qpn=1):
        self.sock = connect(fabric, "umad")
        self.sock.send(abi_open(OPEN_UMAD, node=node.encode()))
        _, fds, _, _ = socket.recv_fds(self.sock, 4096, 1)
        self.control = socket.socket(fileno=fds[0])
        request = struct.pack("=I16s7Bx", 0, bytes(16), qpn, 0, 0, 0, 0, 0, rmpp)
        self.control.send(struct.pack("=II", REGISTER_AGENT, len(request)) + request)
        answer = self.control.recv(4096)
        assert struct.unpack_from("=i", answer)[0] == 0
        self.agent = struct.unpack_from("=I", answer, 8)[0]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.control.close()
        self.sock.close()

    def record(self, mad, lid=NOBODYS_LID, timeout_ms=600000):
        return RECORD.pack(
            self.agent, 0, timeout_ms, 0, RECORD.size + len(mad), socket.htonl(1),
            socket.htonl(QP1_QKEY), socket.htons(lid), *bytes(6), bytes(16), 0, 0) + mad

    def send(self, mad, lid=NOBODYS_LID):
        self.sock.send(self.record(mad, lid))

    def status(self):
        """Of the next record that comes."""
        return RECORD.unpack_from(self.sock.recv(1 << 16))[1]


def mad(mgmt_class, version, method, tid, attribute=0):
    return struct.pack(">4BHHQHHI", 1, mgmt_class, version, method, 0, 0, tid, attribute, 0,
                       0).ljust(256, b"\0")


def get(tid):
    return mad(PERF_MGT, 1, GET, tid, PORT_COUNTERS)


def first_segment(mgmt_class, version, method, tid):
    rmpp = struct.pack(">4BII", 1, DATA, FIRST | ACTIVE, 0, 1, LONG)
    return mad(mgmt_class, version, method, tid)[:24] + rmpp + bytes(220)


def join(tid, lid, guid, group):
    """A program of the port @guid creates a multicast group, or joins it."""
    mgid = bytes([0xff, 0x12, 0xa0, 0x1c]) + struct.pack(">IQ", 0, group)
    port_gid = struct.pack(">QQ", 0xfe80 << 48, guid)
    record = mgid + port_gid + struct.pack(">IHBBHBBIBBBB", 0x1ee7, 0, 0, 0, 0xffff, 0, 0, 0, 0x21,
                                           0, 0, 0)
    # the components: MGID, PortGID, Q_Key, TClass, P_Key, SL, FlowLabel, JoinState
    mask = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 12 | 1 << 13 | 1 << 16
    body = struct.pack(">QHHQ", 0, 0, 0, mask) + record
    return (mad(SUBN_ADM, 2, SET, tid, MC_MEMBER)[:24] + bytes(12) + body).ljust(256, b"\0")


def register(tid, guid, service):
    """A program of the port @guid offers a service."""
    record = struct.pack(">QQQHHI", service, 0xfe80 << 48, guid, 0xffff, 0, 0xffffffff)
    mask = 0x7  # the components: ServiceID, ServiceGID, ServiceP_Key
    body = struct.pack(">QHHQ", 0, 0, 0, mask) + record
    return (mad(SUBN_ADM, 2, SET, tid, SERVICE)[:24] + bytes(12) + body).ljust(256, b"\0")


def processor_seconds(fabric):
    """What softibd has used until now."""
    fields = Path(f"/proc/{softibd_pid(fabric)}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(fabric):
    """How much memory it has."""
    status = Path(f"/proc/{softibd_pid(fabric)}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) >> 10


def test_requests_that_nobody_answers(shared):
    """40,000 of them wait while others are answered, and their transaction IDs are as
    like as the program could make them. It ends with all of them."""
    victim = node_lid(shared, "n1")
    before = processor_seconds(shared)
    with MadProgram(shared) as program:
        for i in range(40000):
            program.send(get(i << 16))
            assert i % 1000 or processor_seconds(shared) - before < 2
        for i in range(2000):
            program.send(get(i << 16 | 1 << 12), victim)
            assert program.status() == 0
        assert processor_seconds(shared) - before < 2
        innocents_go_on(shared)
    innocents_go_on(shared)


def test_long_messages_by_the_hundred(shared):
    """Nobody acknowledges any: what softibd keeps of them, and how long it is busy with
    each, is bounded. The file has holes for data: it is softibd that needs memory."""
    before = resident_mib(shared)
    with MadProgram(shared, rmpp=1) as program, contextlib.ExitStack() as stack:
        fd = os.memfd_create("long")
        stack.callback(os.close, fd)
        os.write(fd, program.record(first_segment(VENDOR, 1, SEND, 1)))
        os.truncate(fd, LONG)
        head = program.record(b"")
        for _ in range(100):
            socket.send_fds(program.sock, [head], [fd])
        innocents_go_on(shared)
        for _ in range(99):
            assert program.status() == errno.ENOMEM
        assert resident_mib(shared) < before + 100
    innocents_go_on(shared)


def test_long_messages_of_many_programs(shared):
    """Each keeps within its own limit, and all are of one node: what softibd keeps of them is bounded by
    the node's share. A program of another node sends a message as long."""
    before = resident_mib(shared)
    with contextlib.ExitStack() as stack:
        fd = os.memfd_create("long")
        stack.callback(os.close, fd)

        def send(program):
            os.pwrite(fd, program.record(first_segment(VENDOR, 1, SEND, 1)), 0)
            os.truncate(fd, LONG)
            socket.send_fds(program.sock, [program.record(b"")], [fd])

        greedy = [stack.enter_context(MadProgram(shared, rmpp=1)) for _ in range(10)]
        for program in greedy:
            send(program)

        def told():
            return select.select([program.sock for program in greedy], [], [], 0)[0]

        wait_until(lambda: len(told()) == 6, lambda: f"{len(told())} of 10 are refused")
        assert all(program.status() == errno.ENOMEM for program in greedy if program.sock in told())
        other = stack.enter_context(MadProgram(shared, "n3", rmpp=1))
        send(other)
        innocents_go_on(shared)
        other.send(get(1), node_lid(shared, "n1"))  # softibd has read the long one then
        assert other.status() == 0
        assert resident_mib(shared) < before + 400


def test_first_segments_of_messages_without_end(shared):
    """40,000 of them for the subnet administrator, which still answers others in
    segments."""
    victim = node_lid(shared, "n1")
    before = processor_seconds(shared)
    with Sender(shared, "n2") as sender:
        for tid in range(40000):
            sender.send(sender.datagram(victim, 1, QP1_QKEY,
                                        first_segment(SUBN_ADM, 2, GET_MULTI, tid)))
            sender.flush()
        shared.run("n3", "saquery", "-N")
        innocents_go_on(shared)
    assert processor_seconds(shared) - before < 5


GET_RESP = 0x81


def test_answers_that_nobody_asked_of_the_attacker(shared):
    """A request is under way to a node that is not there. The attacker answers it for each agent
    that a counter could have numbered so far: none of its answers is taken for the real one."""
    low, waits_ms = 5, 3000
    victim = node_lid(shared, "n1")
    with MadProgram(shared, "n1") as program, MadProgram(shared, "n2") as attacker:
        program.sock.send(program.record(get(low), timeout_ms=waits_ms))
        for agent in range(1, 4096):
            attacker.send(mad(PERF_MGT, 1, GET_RESP, agent << 32 | low, PORT_COUNTERS), victim)
        assert program.status() == errno.ETIMEDOUT
        innocents_go_on(shared)


def fill(fabric, most, request):
    """A program asks the subnet administrator of n1 for something until it may not. @request:
    of a transaction ID, the LID of the administrator and the GUID of the port that asks.
    Return: how often it got it. Another port gets it, too."""
    manager = node_lid(fabric, "n1")
    guid = {}
    for node in "n2", "n3":
        info = fabric.run("n3", "smpquery", "nodeinfo", str(node_lid(fabric, node)))
        guid[node] = int(re.search(r"PortGuid:\.*(0x\w+)", info)[1], 0)

    def status(program, node, number):
        program.send(request(number, manager, guid[node]), manager)
        answer = program.sock.recv(1 << 16)
        assert RECORD.unpack_from(answer)[1] == 0
        return struct.unpack_from(">H", answer, RECORD.size + 4)[0]

    with MadProgram(fabric) as greedy, MadProgram(fabric, "n3") as other:
        number = next(n for n in range(most) if status(greedy, "n2", n) == NO_RESOURCES)
        assert status(other, "n3", most) == 0
        innocents_go_on(fabric)
        return number


def test_groups_by_the_thousand(shared):
    """A program creates multicast groups until it may not: other ports find MLIDs, too."""
    assert 500 < fill(shared, 4096, lambda n, manager, guid: join(n, manager, guid, n)) < 2000


def test_services_by_the_thousand(shared):
    """A program registers services until it may not: other ports have places for theirs."""
    assert fill(shared, 1000, lambda n, manager, guid: register(n, guid, n)) == 256
