# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sockets that use RDMA: librdmacm's rstream between two nodes by rsockets, and by plain
sockets under libsdp; and over TCP on the loopback interface.
"""
import subprocess
import time
from dataclasses import dataclass

from bench.sources import CLIENT_CPU, LIMIT, SERVER_CPU, Failure, pinned

RSOCKETS, TCP = "rsockets", "TCP"
# with calls that block: else rstream calls recv() all the time, and softibd, which moves the
# bytes of SDP, has no processor
SDP, BLOCKING_TCP = "SDP", "blocking TCP"
BLOCKING = ("-T", "s", "-T", "b")
# to which address, how rstream is told, and options of softib exec
WAYS = {RSOCKETS: ("10.1.0.1", (), ()), TCP: ("127.0.0.1", ("-T", "s"), ()),
        SDP: ("10.1.0.1", BLOCKING, ("--sdp",)), BLOCKING_TCP: ("127.0.0.1", BLOCKING, ())}


def columns(line):
    """name bytes xfers iters total time Gb/sec usec/xfer: {name: (GB/s, us)}"""
    words = line.split()
    return {words[0]: (float(words[6]) / 8, float(words[7]))} if len(words) == 8 and \
        words[0].endswith(("_lat", "_bw")) else {}


def sdp_alone(fabric):
    """An environment in which libsdp does not fall back to TCP, which nobody would refuse at an
    address of a node while the server does not listen yet."""
    conf = fabric.home / "libsdp.conf"
    conf.write_text("use sdp server rstream *:*\nuse sdp client rstream *:*\n")
    return {**fabric.env, "LIBSDP_CONFIG_FILE": str(conf)}


def rstream(bench, way):
    """What both tables of rstream say: its latencies and its bandwidths."""
    from interop.fabric import _ports
    address, own, options = WAYS[way]
    argv = ["rstream", "-p", next(_ports), *own]
    how = {"options": options, "env": sdp_alone(bench.fabric)}
    server = bench.fabric.start("n1", *pinned(SERVER_CPU, *argv, "-b", address), **how)
    end = time.monotonic() + LIMIT
    try:
        while True:  # until the server listens
            client = bench.fabric.start("n2", *pinned(CLIENT_CPU, *argv, "-s", address), **how)
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
    """A test of rstream, as "64_lat" or "1m_bw"; `way`: one of WAYS."""
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
