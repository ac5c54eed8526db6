# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on softibd's time: it is one thread, and whatever makes it wait stops
everybody. Each attack stands while the innocents are looked at."""
import contextlib
import fcntl
import os
import signal
import struct
from pathlib import Path

from hostile.attack import ABI_MAGIC, ABI_VERSION, OPEN_PORT, ask, connect, innocents_go_on
from interop.fabric import wait_until
from interop.test_kill import softibd_pid

RING, ASLEEP = 4096, 72  # src/abi/capture.h, src/abi/ring.h

# --- a capture's doorbell ---

def fill(fd):
    """Make the next write into @fd wait, as far as its owner's end lets us."""
    with contextlib.suppress(OSError):
        os.write(fd, struct.pack("=Q", (1 << 64) - 2))
    os.set_blocking(fd, True)


def test_a_captures_doorbell_cannot_be_filled(shared):
    """A reader that says it sleeps, and made the descriptor that softibd rings
    full and blocking."""
    sock, answer, fds = ask(shared, "capture")
    with sock:
        assert "error" not in answer, answer
        memory, doorbell = fds
        fill(doorbell)
        os.pwrite(memory, struct.pack("=I", 1), RING + ASLEEP)
        shared.run("n1", "smpquery", "nodeinfo", "-D", "0,1")
        wait_until(lambda: not any(os.pread(memory, 4, RING + ASLEEP)), "softibd rings")
        innocents_go_on(shared)
    for fd in fds:
        os.close(fd)


# --- issm files ---

def port_info(fabric, node):
    """Ask for a port, as umad_get_port() does: softibd makes its issm file."""
    sock = connect(fabric, "umad")
    sock.send(struct.pack("=IIII64s64s", ABI_MAGIC, ABI_VERSION, OPEN_PORT, 1,
                          node.encode(), b"softib0"))
    return sock


def issm_of(fabric, node):
    return fabric.dir / "issm" / f"{node}.softib0.1"


def test_a_fifo_where_an_issm_file_will_be(shared):
    """Nobody has asked for the port of n2 yet, so softibd makes its file now."""
    os.mkfifo(issm_of(shared, "n2"))
    asking = port_info(shared, "n2")
    innocents_go_on(shared)
    assert struct.unpack_from("=i", asking.recv(1 << 16)) == (0,)
    asking.close()


@contextlib.contextmanager
def stopped(pid):
    """A process that does nothing meanwhile: who races with it wins."""
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: " T " in Path(f"/proc/{pid}/stat").read_text(encoding="ascii"),
                   "it stops")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_lease_on_an_issm_file(shared):
    """Who opens a file that another has a lease on waits up to 45 s for it."""
    with port_info(shared, "n3") as asking:
        asking.recv(1 << 16)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with stopped(softibd_pid(shared)):  # which keeps the file open from the first look on
        fd = os.open(issm_of(shared, "n3"), os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    try:
        innocents_go_on(shared)
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)
