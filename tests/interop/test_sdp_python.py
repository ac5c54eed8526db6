# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CPython's own tests of sockets and of what is built on them, by TCP and by SDP alone: each case has the same
outcome, but for those that docs/SDP.md lists with a reason. `make check-sockets` runs all of MODULES, and other
runs those of SHORT."""
import fnmatch
import os
import re
from pathlib import Path

import pytest

from interop.test_sdp import SDP
from recorder import read_report

CASES = Path(__file__).with_name("python_cases.py")
DOCUMENT = Path(__file__).parents[2] / "docs/SDP.md"
PYTHON = "/usr/bin/python3"  # Debian's, which has its tests
TRIES = 20  # of a case that differs now and then
SECONDS = 400  # of a module: a hang, not a measure of speed
SHORT = ["test_socket", "test_socketserver", "test_smtplib", "test_asyncio.test_sock_lowlevel",
         "test_asyncio.test_sendfile.EPollEventLoopTests"]
MODULES = ["test_socket", "test_socketserver", "test_smtplib", "test_asyncio.test_sock_lowlevel", "test_asyncio.test_sendfile",
           "test_asynchat", "test_asyncio.test_base_events", "test_asyncio.test_buffered_proto", "test_asyncio.test_events",
           "test_asyncio.test_server", "test_asyncio.test_ssl", "test_asyncio.test_sslproto",
           "test_asyncio.test_streams", "test_asyncio.test_unix_events", "test_asyncore", "test_epoll", "test_ftplib",
           "test_httplib", "test_httpservers", "test_imaplib", "test_logging", "test_poll", "test_poplib", "test_select",
           "test_selectors", "test_ssl", "test_telnetlib", "test_urllib2_localnet", "test_xmlrpc"]

pytestmark = pytest.mark.no_sanitizer("a sanitizer's runtime makes each of the 2,000 cases slower, and finds nothing new")


def listed():
    """{pattern of a case: is the outcome now and then the same?} of the table in docs/SDP.md: rows
    | `test_x.Class.test_y` | always, or: now and then | reason |"""
    rows = re.findall(r"^\| `(test_\S+)` \| (always|now and then) \| .+ \|$", DOCUMENT.read_text(), re.MULTILINE)
    return {f"test.{pattern}": often == "now and then" for pattern, often in rows}


def outcomes(fabric, home, module, only=()):
    """({case: verdict} by TCP, the same by SDP) of a module; both run at once."""
    (home / "libsdp.conf").write_text("use sdp server * *:*\nuse sdp client * *:*\n")
    env = {**fabric.env, "LIBSDP_CONFIG_FILE": str(home / "libsdp.conf")}
    ways = {"tcp": (), "sdp": SDP}
    for way in ways:
        (home / f"report.{way}").unlink(missing_ok=True)
        (home / way).mkdir(exist_ok=True)
    running = {way: fabric.start("n1", PYTHON, CASES, f"test.{module}", home / f"report.{way}", *only, options=options,
                                 env=env, cwd=home / way) for way, options in ways.items()}
    texts = [fabric.finish(process, SECONDS) for process in running.values()]
    reports = [read_report(home / f"report.{way}") for way in ways]
    assert all(reports), texts
    return reports


def differences(tcp, sdp):
    """{case: its outcomes} of those that are not the same."""
    return {case: (tcp.get(case), sdp.get(case)) for case in tcp.keys() | sdp.keys()
            if tcp.get(case, " ")[0] != sdp.get(case, " ")[0]}


@pytest.mark.parametrize("module", MODULES if os.environ.get("SOFTIB_ALL_SOCKETS") else SHORT)
def test_module(pair, home, module):
    """A case that is not listed may differ once, because many have time-outs of their own: not twice. One that is
    listed differs."""
    table = listed()
    tcp, sdp = outcomes(pair, home, module)
    found = differences(tcp, sdp)
    strange = [case for case in found if not any(fnmatch.fnmatchcase(case, pattern) for pattern in table)]
    again = differences(*outcomes(pair, home, module, strange)) if strange else {}
    assert not again, f"not in the table of docs/SDP.md: {again}"
    assert any(verdict == "passed" for verdict, _ in sdp.values())
    for pattern, now_and_then in table.items():
        missing = {case for case in fnmatch.filter(tcp, pattern) if case not in found}
        for _ in range(TRIES if now_and_then and missing else 0):
            missing -= differences(*outcomes(pair, home, module, missing)).keys()
            if not missing:
                break
        assert not missing, f"the table of docs/SDP.md says that these differ: {missing}"


def test_table():
    """Each row is about a module that is run."""
    for pattern in listed():
        assert any(pattern.startswith(f"test.{module}.") for module in MODULES), pattern
