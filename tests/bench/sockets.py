# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""rsockets, the sockets of librdmacm: its rstream between two nodes, and over TCP on the
loopback interface by the sockets of the kernel.
"""
import subprocess
import time
from dataclasses import dataclass

from bench.sources import CLIENT_CPU, LIMIT, SERVER_CPU, Failure, pinned

RSOCKETS, TCP = "rsockets", "TCP"
# to which address, and how rstream is told
WAYS = {RSOCKETS: ("10.1.0.1", ()), TCP: ("127.0.0.1", ("-T", "s"))}


def columns(line):
    """name bytes xfers iters total time Gb/sec usec/xfer: {name: (GB/s, us)}"""
    words = line.split()
    return {words[0]: (float(words[6]) / 8, float(words[7]))} if len(words) == 8 and \
        words[0].endswith(("_lat", "_bw")) else {}


def rstream(bench, way):
    """What both tables of rstream say: its latencies and its bandwidths."""
    from interop.fabric import _ports
    address, options = WAYS[way]
    argv = ["rstream", "-p", next(_ports), *options]
    server = bench.fabric.start("n1", *pinned(SERVER_CPU, *argv, "-b", address))
    end = time.monotonic() + LIMIT
    try:
        while True:  # until the server listens
            client = bench.fabric.start("n2", *pinned(CLIENT_CPU, *argv, "-s", address))
            out = client.communicate(timeout=LIMIT)[0]
            if client.returncode == 0:
                break
            if server.poll() is not None or time.monotonic() > end:
                raise Failure(f"rstream by {way}: {out.strip()[-300:]}")
        server.wait(LIMIT)
    except subprocess.TimeoutExpired:
        raise Failure(f"rstream by {way} hangs") from None
    finally:
        for process in (server, client):
            process.kill()
    return {name: figures for line in out.splitlines()
            for name, figures in columns(line).items()}


@dataclass(frozen=True)
class Rstream:
    """A test of rstream, as "64_lat" or "1m_bw"; `way`: RSOCKETS or TCP."""
    key: str
    way: str

    @property
    def run(self):
        return f"rstream {self.way}"

    @staticmethod
    def measure(bench, sources):
        found = rstream(bench, sources[0].way)
        lost = Failure("rstream has no such test")
        return {s: found[s.key][s.key.endswith("_lat")] if s.key in found else lost
                for s in sources}
