# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Automatic path migration: a link goes down under an RC connection, and it goes on by the
other port, unmodified programs being told by an event."""
import json
import subprocess
from pathlib import Path

from interop.fabric import Fabric

SIDE = Path(__file__).parent / "migrate_side.py"
COUNT = 2000


def test_a_connection_outlives_its_link():
    with Fabric("star:2,ports=2") as fabric:
        ends = [fabric.start(node, "/usr/bin/python3", SIDE, role, COUNT, stdin=subprocess.PIPE)
                for node, role in (("n1", "send"), ("n2", "receive"))]

        def tell(end, line):
            end.stdin.write(line + "\n")
            end.stdin.flush()

        addresses = [end.stdout.readline().strip() for end in ends]
        for end, address in zip(ends, reversed(addresses)):
            tell(end, address)
        for end in ends:
            assert end.stdout.readline() == "ready\n"
        for end in reversed(ends):
            tell(end, "go")
        assert ends[0].stdout.readline() == "half\n"
        fabric.softib("link", "n1:1", "down")
        tell(ends[0], "go")
        assert json.loads(ends[1].stdout.readline()) == list(range(COUNT))
        for end in ends:
            assert end.stdout.readline() == "migrated\n"
            assert end.stdout.readline() == "2\n"
            assert end.wait() == 0
