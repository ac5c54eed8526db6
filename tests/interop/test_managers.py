# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""opensm in softib-sm's place, and the largest real fabric under either."""
import re
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from interop.fabric import BUILD, DATA, TIMEOUT, Fabric, kill, wait_until
from interop.test_bad_input import node_lid

LARGE = DATA / "topologies/ndr-40-switches-582-cas.ibnetdiscover"
SMALLER = DATA / "topologies/qdr-8-switches-144-cas.ibnetdiscover"


@pytest.fixture(scope="module", params=["softib-sm", "opensm"])
def large(request):
    with Fabric(LARGE, sm=request.param, up_args=["--timeout", "300"]) as fabric:
        yield fabric


def test_opensm_brings_a_pair_up():
    with Fabric("pair", sm="opensm") as fabric:
        assert "SMINFO_MASTER" in fabric.run("n1", "sminfo")
        fabric.pair("ib_write_bw", "-n", "100")
        fabric.pair("ibv_ud_pingpong", "-n", "100")


def states(fabric, *nodes):
    """Of the managers on @nodes: "MASTER", "STANDBY"; None where there is none."""
    said = [re.search(r"SMINFO_(\w+)", fabric.run("n3", "sminfo", node_lid(fabric, node), check=False))
            for node in nodes]
    return [state and state[1] for state in said]


@pytest.mark.parametrize("first", ["softib-sm", "opensm"])
def test_a_manager_joins_another(first):
    """A weaker one steps aside, a stronger one is handed the subnet; of the two one is
    master in the end, and what either programmed carries packets."""
    with Fabric("star:3", sm=first) as fabric:
        for priority, expected in ("0", ["MASTER", "STANDBY"]), ("15", ["STANDBY", "MASTER"]):
            if first == "opensm":
                joins = fabric.start("n2", BUILD / "bin/softib-sm", "--priority", priority,
                                     "--lid-cache", "none")
            else:
                joins = fabric.start("n2", "opensm", "-p", priority, "-f", fabric.home / "log")
            wait_until(lambda: states(fabric, "n1", "n2") == expected,
                       lambda: f"{expected}: {states(fabric, 'n1', 'n2')}")
            fabric.pair("ibv_rc_pingpong", "-n", "100", server="n1", client="n3")
            kill(joins)


def test_large_fabric_is_up(large):
    ports = [p for n in large.json("topo")["nodes"] for p in n["ports"] if p.get("peer")]
    assert len(ports) > 1000
    assert all(p["state"].lower() == "active" for p in ports)


def test_large_fabric_is_discovered_whole(large):
    out = large.run("n1", "ibnetdiscover")
    assert len(re.findall(r"^Switch\s", out, re.M)) == 40
    assert len(re.findall(r"^Ca\s", out, re.M)) == 582


def test_perftest_across_the_large_fabric_while_it_is_swept(large):
    nodes = [n["name"] for n in large.json("topo")["nodes"] if n["kind"] == "ca"]
    over = threading.Event()

    def sweep():
        sweeps = 0
        while not over.is_set():
            subprocess.run(large.command("n1", ["ibnetdiscover"]), env=large.env, check=True,
                           stdout=subprocess.DEVNULL, timeout=TIMEOUT)
            sweeps += 1
        return sweeps

    with ThreadPoolExecutor(1) as background:
        sweeps = background.submit(sweep)
        try:
            large.pair("ib_write_bw", "-n", "500", server=nodes[0], client=nodes[-1])
            large.pair("ib_send_lat", "-n", "100", server=nodes[1], client=nodes[len(nodes) // 2])
        finally:
            over.set()
        assert sweeps.result() > 0


def test_discovered_topology_loads_again():
    with Fabric(SMALLER) as first:
        text = first.run("n1", "ibnetdiscover")
        again = first.home / "again.ibnetdiscover"
        again.write_text(text)
        one = first.softib("topo", "--fabric", "t", "--format", "ibnetdiscover")
        with Fabric(again) as second:
            assert links(second) == links(first)
        assert "Switch" in one


def links(fabric):
    """The fabric as a set of cables between GUIDs."""
    nodes = fabric.json("topo")["nodes"]
    guid = {n["name"]: n["guid"] for n in nodes}
    return {(n["guid"], p["port"], guid[p["peer"]], p["peer_port"])
            for n in nodes for p in n["ports"] if p.get("peer")}
