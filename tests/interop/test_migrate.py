# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Automatic path migration: a link goes down under an RC connection, and it goes on by the
other port, unmodified programs being told by an event."""
import json
import subprocess
from pathlib import Path

from interop.fabric import Fabric

SIDE = Path(__file__).parent / "migrate_side.py"
COUNT = 2000


def tell(end, line):
    end.stdin.write(line + "\n")
    end.stdin.flush()


def start_and_cut(fabric, receiver, alternate=None):
    """Both ends, when half of the messages have come, port 1 of the sender has lost its link, and
    it sends the rest. @alternate: the LID of its port 2 by what the receiver was told"""
    ends = [fabric.start(node, "/usr/bin/python3", SIDE, role, COUNT, stdin=subprocess.PIPE)
            for node, role in (("n1", "send"), ("n2", receiver))]
    sender, receiver = [end.stdout.readline().split() for end in ends]
    tell(ends[0], " ".join(receiver))
    tell(ends[1], " ".join([sender[0], str(alternate or sender[1]), sender[2]]))
    for end in ends:
        assert end.stdout.readline() == "ready\n"
    for end in reversed(ends):
        tell(end, "go")
    assert ends[0].stdout.readline() == "half\n"
    fabric.softib("link", "n1:1", "down")
    tell(ends[0], "go")
    return ends


def test_a_connection_outlives_its_link():
    with Fabric("star:2,ports=2") as fabric:
        ends = start_and_cut(fabric, "receive")
        assert json.loads(ends[1].stdout.readline()) == list(range(COUNT))
        for end in ends:
            assert end.stdout.readline() == "migrated\n"
            assert end.stdout.readline() == "2\n"
            assert end.wait() == 0


def test_a_path_that_the_peer_does_not_know_is_refused():
    """The sender migrates to a port that is not the receiver's alternate path, which hears of it and
    stays; without an answer the sender fails."""
    with Fabric("star:2,ports=2") as fabric:
        sender, receiver = start_and_cut(fabric, "refuse", alternate=0x777)
        assert receiver.stdout.readline() == "refused\n"
        assert receiver.stdout.readline() == "1\n"
        assert receiver.wait() == 0
        out = fabric.finish(sender)
        assert sender.returncode == 1 and "retry exceeded error" in out, out
