# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks by packets: what one program sends may not keep the packets of others
from where they go."""
import struct

from hostile.attack import Sender, innocents_go_on
from interop.test_bad_input import node_lid

QP1_QKEY = 0x80010000
PERF_MGT, GET, PORT_COUNTERS = 4, 1, 0x12


def perf_get(tid):
    header = struct.pack(">BBBBHHQHHI", 1, PERF_MGT, 1, GET, 0, 0, tid, PORT_COUNTERS, 0, 0)
    return (header + bytes(40) + b"\0\1").ljust(256, b"\0")


def test_answers_that_nobody_reads(shared):
    """9,000 requests to QP1 of the manager's node: the answers to the first 3,000
    fill the attacker's ring, and those to others may not wait behind the rest."""
    victim = node_lid(shared, "n1")
    with Sender(shared, "n2") as sender:
        for tid in range(9000):
            sender.send(sender.datagram(victim, 1, QP1_QKEY, perf_get(tid)))
            sender.flush()
        shared.run("n3", "perfquery", str(victim), "1")
        shared.run("n3", "saquery", "-N")
        innocents_go_on(shared)
