# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Fixtures: the fabric that attackers and innocents share. `make hostile` measures the latter's latency."""
import statistics

import pytest

from hostile.attack import MEASURED, note_test
from interop.fabric import Fabric


@pytest.fixture(scope="package")
def calm():
    """Four nodes of a switch with two free ports: attackers take n1, n2 and cables, innocents n3 and n4."""
    with Fabric("star:4,spare=2") as fabric:
        fabric.pair("ibv_rc_pingpong", "-n", "100", server="n3", client="n4")
        yield fabric
        fabric.expect_no_leftovers()


@pytest.fixture
def shared(calm):
    """The same, before an attack."""
    note_test(calm)
    return calm


def shown(values):
    """The median of those that were measured."""
    values = [value for value in values if value == value]  # pylint: disable=comparison-with-itself  # no NaN
    return f"{statistics.median(values):.3g}" if values else "?"


def pytest_terminal_summary(terminalreporter):
    """The innocents' latency without and with each attack, as docs/SECURITY.md has it."""
    if MEASURED:
        terminalreporter.write_line("| SEND | 99 % | status | test |\n|---|---|---|---|")
    for test, (before, *meanwhile) in MEASURED.items():
        if meanwhile:
            cells = [f"{shown([before[i]])} → {shown([row[i] for row in meanwhile])}" for i in range(3)]
            name, _, case = test.partition("[")
            case = f", {case[:-1]}" if case else ""
            terminalreporter.write_line(f"| {' | '.join(cells)} | `tests/hostile`: `{name}`{case} |")
