# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks by windows: what a program may do to a peer whose memory it maps, or that maps its
memory. The attacker says itself what libibverbs would say."""
import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
from pathlib import Path

import pytest

from hostile.attack import RC_ACKNOWLEDGE, Sender, innocents_go_on, softibd_answers
from interop.fabric import wait_until
from interop.test_bad_input import command, error_of, node_lid
from interop.test_windows import LOCAL_WRITE, OK, REMOTE_READ, REMOTE_WRITE, WARM, Side, operations

REG_MR, MODIFY_QP, QPT_RC = 9, 26, 2  # <rdma/ib_user_verbs.h>
ASK, WANT, GIVE, GRANT, CLOSE = 1, 2, 3, 4, 6  # src/abi/window.h
MESSAGE = struct.Struct("=6I3Q4I2Q2I")  # struct abi_window_msg
SECTION = 0  # where it is in the window page
ADD_SEALS, SEAL_FUTURE_WRITE = 1033, 16  # <linux/fcntl.h>
SEAL_SHRINK, MAP_HUGETLB = 2, 0x40000
KEEP_SIZE, PUNCH_HOLE = 1, 2  # <linux/falloc.h>
HUGE_PAGES, HUGE_BYTES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB"), 2 << 20
REMOTE = 2 | 4 | 8  # all rights of a peer
BYTES, ADDRESS = 16 * mmap.PAGESIZE, 0x10000000  # of the attacker's region, which is nowhere
# of the way to RTS, each state and what MODIFY_QP sets: state, access, P_Key, port; path, MTU,
# peer, PSN, READs, RNR timer; time-out, retries, PSN, READs
WAY = (1, 0x39), (2, 0x129181), (3, 0x12e01)


def punch(fd, length):
    """Make a hole at the beginning of the file."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(fd, KEEP_SIZE | PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


class WindowPeer(Sender):
    """A program with a connected QP, and a region that it lets its peer write."""

    qp_type = QPT_RC

    def __init__(self, fabric, node="n2"):
        super().__init__(fabric, node)
        self.page = mmap.mmap(self.fd("WINDOW_PAGE"), 0)
        fcntl.fcntl(self.fd("WINDOW_PAGE"), ADD_SEALS, SEAL_FUTURE_WRITE)
        self.windows = socket.socket(fileno=os.dup(self.fd("WINDOWS")))
        _, _, self.rkey = self.create(REG_MR, struct.pack(
            "<QQQQII", 0, ADDRESS, BYTES, ADDRESS, self.pd, LOCAL_WRITE | REMOTE), words=3)

    def __exit__(self, *exc):
        self.windows.close()
        self.page.close()
        super().__exit__(*exc)

    def connect(self, peer, mine=0):
        """To QP @mine of a Side, which connects, too. It waits for ACKs for as long as it takes: this
        program sends them when it comes to it."""
        for state, mask in WAY:
            way = struct.pack("<16sIHHBBBBBBBB", bytes(16), 0, peer.info["lid"], 0, 0, 0, 0, 0, 0, 0, 0, 1)
            body = way + bytes(32) + struct.pack(
                "<7I2H15Bx", self.qp, mask, 0, 0, 0, peer.info["qpn"][mine], REMOTE, 0, 0,
                state, 0, 3, 0, 0, 1, 1, 12, 1, 12, 2, 2, 0, 0, 0)
            self.sock.send(command(MODIFY_QP, body))
            assert error_of(self.sock.recv(4096)) == 0, state
        peer("connect", lid=self.lid, qpn=self.qpn, mine=mine, timeout=0)

    def message(self, kind, number=0, rkey=0, window=0, va=0, length=0):
        return MESSAGE.pack(kind, number, self.qpn, rkey, 0, window, va, length, 0, REMOTE, 1, 1, 0,
                            0, 0, 0, 0)

    def is_granted(self, at):
        """Ask for memory that a peer registered. Return: its number, the descriptors of the
        memory and of its window page."""
        def granted():
            self.windows.send(self.message(ASK, rkey=at["rkey"], va=at["addr"], length=8))
            select.select([self.windows], [], [], 5)
            bytes_, fds, _, _ = socket.recv_fds(self.windows, MESSAGE.size, 2)
            said = MESSAGE.unpack(bytes_)
            if said[0] != GRANT:
                return False
            self.fds += fds
            granted.peer, granted.fds = said[4], fds
            return True
        wait_until(granted, "it is never granted the memory")
        return granted.peer, granted.fds

    def is_asked(self, peer, lid, requests):
        """Acknowledge what @peer writes, which nobody looks at, until it wants the memory.
        Return: the number of its question."""
        peer.tell("write", times=requests, addr=ADDRESS, rkey=self.rkey)
        while not select.select([self.windows], [], [], 0.001)[0]:
            self.acknowledge(peer, lid, requests)
        bytes_, fds, _, _ = socket.recv_fds(self.windows, MESSAGE.size, 2)
        self.fds += fds
        said = MESSAGE.unpack(bytes_)
        assert said[0] == WANT
        return said[1]

    def give(self, question, seals=SEAL_SHRINK):
        """Answer it with window 1. Return: its memory"""
        fd = os.memfd_create("given", os.MFD_ALLOW_SEALING)
        self.fds.append(fd)
        os.ftruncate(fd, BYTES)
        fcntl.fcntl(fd, ADD_SEALS, seals)
        socket.send_fds(self.windows, [self.message(
            GIVE, question, self.rkey, window=1, va=ADDRESS, length=BYTES)], [fd])
        return fd

    def acknowledge(self, peer, lid, requests):
        for psn in range(requests):
            self.send(self.connected(RC_ACKNOWLEDGE, lid, peer.info["qpn"][0], psn,
                                     struct.pack(">I", 0x1f << 24 | psn + 1)))
        self.flush()

    def hears(self, peer, lid, requests):
        """Acknowledge the rest. Return: the statuses of @peer's requests."""
        while not select.select([peer.process.stdout], [], [], 0.001)[0]:
            self.acknowledge(peer, lid, requests)
        return set(peer.hear())


@contextlib.contextmanager
def side(fabric, node):
    made = Side(fabric, node)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()


def test_memory_that_may_be_read_alone(shared):
    """A peer with the right to read opens what it was given anew, for writing."""
    with side(shared, "n3") as victim, WindowPeer(shared) as attacker:
        at = victim("register", access=LOCAL_WRITE | REMOTE_READ)
        attacker.connect(victim)
        _, given = attacker.is_granted(at)
        for fd in given:
            with pytest.raises(PermissionError):
                again = os.open(f"/proc/self/fd/{fd}", os.O_RDWR)
                try:
                    mmap.mmap(again, mmap.PAGESIZE)
                finally:
                    os.close(again)
        innocents_go_on(shared)


def test_a_section_that_is_never_left(shared):
    """It stands in the memory of its peer, which gives that up a hundred times, and does not wait 20 ms
    each time."""
    waited = []
    with side(shared, "n3") as victim, WindowPeer(shared) as attacker:
        victim("register", access=LOCAL_WRITE | REMOTE_WRITE)
        attacker.connect(victim)
        for _ in range(100):
            peer, _ = attacker.is_granted(victim("info"))
            attacker.page[SECTION:SECTION + 8] = struct.pack("=Q", peer)
            waited.append(victim("deregister"))
            victim("register", access=LOCAL_WRITE | REMOTE_WRITE)
        innocents_go_on(shared)
    assert sorted(waited)[25] < 0.01  # most, but others may have the machine's cores meanwhile


def test_memory_that_is_taken_away(shared):
    """A target gives memory to its initiator, and takes it away while it is used."""
    lid = node_lid(shared, "n3")
    with side(shared, "n3") as victim, WindowPeer(shared) as attacker:
        attacker.connect(victim)
        fd = attacker.give(attacker.is_asked(victim, lid, WARM), seals=0)
        softibd_answers(shared)
        attacker.acknowledge(victim, lid, WARM)
        os.ftruncate(fd, 0)
        assert attacker.hears(victim, lid, WARM) == {OK}
        innocents_go_on(shared)


def read_number(path):
    return int(path.read_text(encoding="ascii"))


@contextlib.contextmanager
def huge_pages(num):
    """The machine has so many more of them meanwhile."""
    def add(more):
        total = read_number(HUGE_PAGES / "nr_hugepages") + more
        (HUGE_PAGES / "nr_hugepages").write_text(str(total), encoding="ascii")
        return total

    wanted = add(num)
    try:
        got = read_number(HUGE_PAGES / "nr_hugepages")
        assert got >= wanted, f"the kernel has {got} huge pages, not {wanted}: its memory is fragmented"
        yield
    finally:
        add(-num)


def all_huge_pages():
    """A mapping that has those that are left: who touches a hole in another one gets a SIGBUS."""
    left = read_number(HUGE_PAGES / "free_hugepages") - read_number(HUGE_PAGES / "resv_hugepages")
    assert left > 0
    return mmap.mmap(-1, left * HUGE_BYTES,
                     flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB | mmap.MAP_POPULATE)


@pytest.mark.only_root(why="the machine is asked for huge pages")
def test_huge_pages_with_a_hole(shared):
    """A target gives huge pages to its initiator, makes a hole into them and takes the pages: the
    initiator, which goes on to write, does not die of it. Seals do not prevent that."""
    lid = node_lid(shared, "n3")
    with huge_pages(2), side(shared, "n3") as victim, WindowPeer(shared) as attacker:
        attacker.connect(victim)
        question = attacker.is_asked(victim, lid, WARM)
        fd = os.memfd_create("huge", os.MFD_ALLOW_SEALING | os.MFD_HUGETLB)
        attacker.fds.append(fd)
        os.ftruncate(fd, HUGE_BYTES)
        fcntl.fcntl(fd, ADD_SEALS, SEAL_SHRINK)
        socket.send_fds(attacker.windows, [attacker.message(
            GIVE, question, attacker.rkey, window=1, va=ADDRESS, length=BYTES)], [fd])
        softibd_answers(shared)
        assert attacker.hears(victim, lid, WARM) == {OK}
        before = operations(shared)
        for rounds in 2, 3:
            victim.tell("write", times=WARM, addr=ADDRESS, rkey=attacker.rkey)
            assert attacker.hears(victim, lid, rounds * WARM) == {OK}
            if rounds == 2:
                punch(fd, HUGE_BYTES)
                taken = all_huge_pages()
        assert operations(shared) == before, "the initiator uses huge pages as a window"
        innocents_go_on(shared)
        taken.close()


def test_windows_that_are_closed_without_end(shared):
    """A target tells its initiator to forget a window that it gave, and others that it never gave, until
    there is no room in its socket: the initiator goes on to be granted those of others."""
    lid = node_lid(shared, "n3")
    with side(shared, "n3") as victim, side(shared, "n4") as honest, \
            WindowPeer(shared) as attacker:
        attacker.connect(victim)
        attacker.give(attacker.is_asked(victim, lid, WARM))
        softibd_answers(shared)  # it has read what was given
        victim.signal(signal.SIGSTOP)
        for number in range(20000):
            attacker.windows.send(attacker.message(CLOSE, window=number % 2))  # it gave 1
            if number == 10000:
                innocents_go_on(shared)
        victim.signal(signal.SIGCONT)
        assert attacker.hears(victim, lid, WARM) == {OK}
        at = honest("register")
        victim("connect", lid=at["lid"], qpn=at["qpn"][1], mine=1, timeout=0)
        honest("connect", lid=victim.info["lid"], qpn=victim.info["qpn"][1], mine=1, timeout=0)

        def by_window():
            before = operations(shared)
            assert set(victim("write", times=WARM, addr=at["addr"], rkey=at["rkey"], mine=1)) == {OK}
            return operations(shared) - before == WARM
        wait_until(by_window, "it is granted no window any more")
        innocents_go_on(shared)
