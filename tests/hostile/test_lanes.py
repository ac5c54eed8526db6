# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on what two programs share without softibd."""
import contextlib
import os

from hostile.attack import PATIENCE, Sender, innocents_go_on
from interop.fabric import Failed, wait_until
from interop.test_bad_input import NO_LANE, Program


def drain(fd):
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.read(fd, 64)


def test_a_burst_of_lanes(shared):
    """More programs come than their victim's socket has room for, before it reads."""
    with Sender(shared, "n2") as victim:

        def lane():
            with Program(shared, "n1") as program:
                return program.resolve(victim.lid, victim.qpn)[0]

        for _ in range(1000):
            if lane() == NO_LANE:
                break
        else:
            raise Failed("its socket has room for everything")
        innocents_go_on(shared)
        drain(victim.fd("LANES"))
        wait_until(lambda: lane() != NO_LANE, "it gets new lanes again", PATIENCE)
