# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Path records that one client asks for, of softib-sm on another node: tests/bench/paths.c."""
from dataclasses import dataclass

from bench.sources import figures, finish, pick

LIDS, QUERIES, ROUNDS = 3, 1000, 20


@dataclass(frozen=True)
class Paths:
    """Thousands of queries in a second."""
    key = "paths"
    run = "paths"

    @staticmethod
    def measure(bench, sources):
        client = bench.fabric.start("n2", bench.program("bench-paths"), LIDS, QUERIES, ROUNDS)
        out = finish([client], "paths")[0]
        return pick(sources, figures(out), out)
