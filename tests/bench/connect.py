# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Connections set up by the RDMA CM between two nodes, and by TCP on the loopback interface:
tests/bench/connect.c.
"""
import subprocess
from dataclasses import dataclass

from bench.sources import CLIENT_CPU, SERVER_CPU, Failure, figures, finish, pick, pinned

ADDRESS = {"rdma": "10.1.0.1", "tcp": "127.0.0.1"}
ROUNDS = {1: 200, 1000: 3}


@dataclass(frozen=True)
class Connect:
    """The time of a connection, of `count` that are set up at once; `way`: rdma or tcp."""
    way: str
    count: int

    @property
    def key(self):
        return f"{self.way}_{self.count}"

    @property
    def run(self):
        return f"connect {self.key}"

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import _ports
        way, count = sources[0].way, sources[0].count
        end = (ADDRESS[way], next(_ports), count, ROUNDS[count])
        program = bench.program("bench-connect")
        server = bench.fabric.start("n1", *pinned(SERVER_CPU, program, way, "server", *end),
                                    stderr=subprocess.DEVNULL)
        try:
            line = server.stdout.readline()
            if line != "listening\n":
                raise Failure(f"bench-connect: {line}")
            client = bench.fabric.start("n2", *pinned(CLIENT_CPU, program, way, "client", *end))
            out = finish([client], f"connect {way}")[0]
        finally:
            server.kill()
            server.wait()
        return pick(sources, figures(out), out)
