# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Fixtures: the fabric that attackers and innocents share."""
import pytest

from hostile.attack import MEASURED, note
from interop.fabric import Fabric


@pytest.fixture(scope="package")
def shared():
    """Four nodes of a switch: attackers take n1 and n2, innocents n3 and n4."""
    with Fabric("star:4") as fabric:
        fabric.pair("ibv_rc_pingpong", "-n", "100", server="n3", client="n4")
        note("nothing", fabric)
        yield fabric
        fabric.expect_no_leftovers()


def pytest_terminal_summary(terminalreporter):
    """make hostile: the innocents' latency beside each attack."""
    if MEASURED:
        terminalreporter.write_line(f"{'microseconds, while this lasts':52} SEND  99 %  status")
    for what, typical, tail, status in MEASURED:
        terminalreporter.write_line(f"{what:50} {typical:6.2f} {tail:5.1f} {status:7.0f}")
