# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What softibd costs: processor time with many idle programs attached, memory
of many idle end ports, and bandwidth beside a link that flaps. Each source has a
fabric of its own.
"""
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from bench.sources import Failure, figures, run_pairs

ATTACH_AT_ONCE = 250  # contexts of one process, which has a quarter of softibd's descriptors
WORKING_PAIRS = 5


def on_fabric(bench, fabric):
    """What run_pairs() wants of a bench, on another fabric."""
    return SimpleNamespace(fabric=fabric, program=bench.program,
                           daemon_pid=int((fabric.dir / "pid").read_text()))


def processor_ns(pid):
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def packets_received(fabric):
    return sum(fabric.json("counters", f"{node}:1")["counters"][0]["rcv_packets"]
               for node in ("n1", "n2"))


def attach(bench, fabric, stack, count):
    """Programs that do nothing, until @stack closes."""
    for done in range(0, count, ATTACH_AT_ONCE):
        process = fabric.start("n1", bench.program("bench-attach"),
                               min(ATTACH_AT_ONCE, count - done), stdin=subprocess.PIPE)
        stack.callback(process.wait)
        stack.callback(process.stdin.close)
        line = process.stdout.readline()
        if line != "ready\n":
            raise Failure(f"bench-attach: {line}")


@dataclass(frozen=True)
class PacketTime:
    """softibd's processor time for each packet of 10 programs that send by it, while
    `idle` others are attached."""
    idle: int

    @property
    def key(self):
        return f"packet_time:{self.idle}"

    @property
    def run(self):
        return self.key

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import Fabric
        found = {}
        for source in sources:
            with Fabric("pair") as fabric, ExitStack() as stack:
                here = on_fabric(bench, fabric)
                attach(bench, fabric, stack, source.idle)
                work = (here, ["SOFTIB_LANES=0"], ("0-1", "0-1"), WORKING_PAIRS)
                run_pairs(*work, 50, ["send:8"])  # until softibd leaves the idle ones alone
                ns, packets = processor_ns(here.daemon_pid), packets_received(fabric)
                run_pairs(*work, 10, ["send:8"])
                ns = processor_ns(here.daemon_pid) - ns
                found[source] = ns / (packets_received(fabric) - packets)
        return found


@dataclass(frozen=True)
class PortMemory:
    """softibd's memory, switches included, by end ports; nothing is attached."""
    topology: str
    ports: int
    once = True

    @property
    def key(self):
        return f"port_memory:{self.topology}"

    @property
    def run(self):
        return self.key

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import Fabric
        found = {}
        for source in sources:
            with Fabric(source.topology, sm="none") as fabric:
                pid = (fabric.dir / "pid").read_text().strip()
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            pss = next(int(line.split()[1]) for line in rollup.splitlines()
                       if line.startswith("Pss:"))
            found[source] = pss * 1024 / source.ports
        return found


@dataclass(frozen=True)
class BesideFlaps:
    """A bandwidth between two nodes of a star; `flaps`: while the link of a third one
    goes down and comes up each 10 ms."""
    key: str
    flaps: bool

    @property
    def run(self):
        return f"{self.key} {self.flaps}"

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import Fabric
        found = {}
        for source in sources:
            with Fabric("star:4") as fabric:
                if source.flaps:
                    fabric.softib("fault", "add", "link", "n3:1", "down", "for=5ms",
                                  "period=10ms")
                out = run_pairs(on_fabric(bench, fabric), [], ("0", "1"), 1, 1, [source.key])
            found[source] = figures(*out).get(source.key, Failure("no figure"))
        return found
