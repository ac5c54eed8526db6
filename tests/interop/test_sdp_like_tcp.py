# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The same socket program by TCP and by SDP: what it sees is the same, but for what is listed."""
import itertools
import json
from pathlib import Path

from interop.test_sdp import IPV4, SDP, Server

CASES = Path(__file__).with_name("socket_cases.py")

# of (side, case): by TCP, and by SDP. docs/LIMITS.md has them all
OPTIONS = {"IP_TOS": 16, "IP_TTL": 33, "TCP_CORK": 1, "TCP_LINGER2": 9, "TCP_NOTSENT_LOWAT": 4096, "TCP_SYNCNT": 5, "TCP_USER_TIMEOUT": 4321}
DIFFERENT = [
    # options of TCP and IP that have no meaning are accepted, and not kept
    *[("client", "options", [name, None, value], [name, None, 0]) for name, value in OPTIONS.items()],
    ("client", "options", ["ENOPROTOOPT", "ENOPROTOOPT"], [None, 0]),
    # of a socket that is bound or listens, the kernel's poll() says what is true of softibd's
    ("server", "bound", [[True, True], ["OUT", "HUP"], "ENOTCONN"], [[True, True], ["OUT"], "ENOTCONN"]),
    ("server", "bound", ["EADDRINUSE", "EADDRNOTAVAIL", []], ["EADDRINUSE", "EADDRNOTAVAIL", ["OUT"]]),
]


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
    different = sorted(json.dumps([*key, a, b]) for key in tcp
                       for a, b in itertools.zip_longest(tcp[key], sdp[key]) if a != b)
    assert different == sorted(map(json.dumps, DIFFERENT)), "\n".join(different)
