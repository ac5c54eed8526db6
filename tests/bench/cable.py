# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Perftest between two fabrics that a cable joins: each packet crosses two softibds and a TCP connection."""
from dataclasses import dataclass

from bench.sources import Failure, perftest_figure, perftest_pair

TOPOLOGY, PORT = "star:2,spare=1", "s1:3"


def plug(here, there):
    from interop.fabric import Failed, _ports, wait_until
    address, key = f"127.0.0.1:{next(_ports)}", here.home / "key"
    try:
        for fabric, how in (here, "--listen"), (there, "--connect"):
            fabric.softib("cable", PORT, how, address, "--key", str(key))
        for fabric in here, there:
            wait_until(lambda fabric=fabric: fabric.json("cable")[0]["state"] == "Active", "the cable is Active")
            fabric.softib("wait", "--timeout", "30")
    except Failed as why:
        raise Failure(str(why)) from None


@dataclass(frozen=True)
class OverCable:
    """A run of perftest, and the figure of it."""
    key: str
    column: str

    @property
    def run(self):
        return f"{self.key} over a cable"

    @staticmethod
    def measure(bench, sources):
        from interop.fabric import Fabric
        program, *args = sources[0].key.split()
        with Fabric(TOPOLOGY, name="here") as here, Fabric(TOPOLOGY, name="there", sm="none") as there:
            plug(here, there)
            out = perftest_pair(here, [], program, args, client_of=there)
        rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
        if not rows:
            raise Failure(f"{sources[0].key}: {out.strip()[-300:]}")
        return {s: perftest_figure(rows[-1], s.column) for s in sources}
