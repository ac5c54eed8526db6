# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Path records that one client asks for, of softib-sm on another node: a program of libibumad
(tests/bench/paths.c), and a module of the midlayer (tests/bench/paths_module.c).
"""
import re
from dataclasses import dataclass

from bench.sources import Failure, figures, finish, pick

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


@dataclass(frozen=True)
class ModulePaths:
    """The same of ib_sa_path_rec_get(); `cached`: all ask for the same, which the port's cache has."""
    cached: bool

    @property
    def key(self):
        return "paths_cached" if self.cached else "paths_midlayer"

    @property
    def run(self):
        return self.key

    @staticmethod
    def measure(bench, sources):
        log = bench.fabric.dir / "softibd.log"
        before = log.stat().st_size if log.exists() else 0
        bench.fabric.softib("modprobe", "n2", str(bench.program("paths_module.so")), f"dlids={LIDS}",
                            f"queries={QUERIES}", f"rounds={ROUNDS}", f"cached={sources[0].cached:d}")
        bench.fabric.softib("rmmod", "n2", "paths_module")
        said = log.read_text()[before:]
        found = re.search(r"paths_(midlayer|cached) \d+ k/s", said)
        if not found:
            raise Failure(f"paths_module: {said}")
        return pick(sources, figures(found[0]), said)
