# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The same socket program by TCP and by SDP: what it sees is the same, but for what is listed."""
import itertools
import json
from pathlib import Path

from interop.test_sdp import IPV4, SDP, Server

CASES = Path(__file__).with_name("socket_cases.py")
DIFFERENT = {}


def facts(fabric, home, address, options):
    """{(side, case): what was seen}"""
    Server.port += 1
    meeting = home / f"meeting{Server.port}"
    server = fabric.start("n1", "python3", CASES, "server", address, Server.port, meeting, options=options)
    assert server.stdout.readline() == '["listening", []]\n'
    client = fabric.start("n2", "python3", CASES, "client", address, Server.port, meeting, options=options)
    seen = {}
    out = {"client": fabric.finish(client), "server": fabric.finish(server)}
    assert (client.returncode, server.returncode) == (0, 0), out
    for side, lines in out.items():
        for name, found in map(json.loads, lines.splitlines()):
            seen[side, name] = found
    return seen


def test_cases(pair, home):
    tcp = facts(pair, home, "127.0.0.1", ())
    sdp = facts(pair, home, IPV4, SDP)
    assert tcp.keys() == sdp.keys()
    different = {(*key, a, b) for key in tcp for a, b in itertools.zip_longest(
        map(json.dumps, tcp[key]), map(json.dumps, sdp[key])) if a != b}
    assert different == DIFFERENT, '\n'.join(map(str, sorted(different)))
