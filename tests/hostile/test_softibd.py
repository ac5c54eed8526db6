# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on softibd's time: it is one thread, and whatever makes it wait stops
everybody. Each attack stands while the innocents are looked at."""
import contextlib
import os
import struct

from hostile.attack import ask, innocents_go_on
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
