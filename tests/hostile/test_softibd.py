# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on softibd's time: it is one thread, and whatever makes it wait stops
everybody. Each attack stands while the innocents are looked at."""
import contextlib
import fcntl
import os
import signal
import struct

from hostile.attack import ABI_MAGIC, ABI_VERSION, OPEN_PORT, ask, connect, innocents_go_on
from interop.fabric import wait_until

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
    with connect(fabric, "umad") as sock:
        sock.send(struct.pack("=IIII64s64s", ABI_MAGIC, ABI_VERSION, OPEN_PORT, 1,
                              node.encode(), b"softib0"))
        return sock.recv(1 << 16)


def issm_of(fabric, node):
    return fabric.dir / "issm" / f"{node}.softib0.1"


def test_a_fifo_where_an_issm_file_will_be(shared):
    path = issm_of(shared, "n1")
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    port_info(shared, "n1")
    innocents_go_on(shared)


def test_a_fifo_where_an_issm_file_was(shared):
    """softibd looks at a file again when somebody opens it."""
    port_info(shared, "n2")
    path = issm_of(shared, "n2")
    other = path.with_suffix(".fifo")
    os.mkfifo(other)
    os.rename(path, path.with_suffix(".kept"))
    os.rename(other, path)
    os.close(os.open(path.with_suffix(".kept"), os.O_RDONLY))
    innocents_go_on(shared)
    os.rename(path.with_suffix(".kept"), path)


def test_a_lease_on_an_issm_file(shared):
    """Who opens a file that another has a lease on waits up to 45 s for it."""
    port_info(shared, "n2")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(issm_of(shared, "n2"), os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        innocents_go_on(shared)
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)
