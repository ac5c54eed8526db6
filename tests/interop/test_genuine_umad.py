# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The distribution's libibumad on softib's device files and /sys: a cross-check of both by a
library that was written for the kernel's. What a tool prints with it is what the tool prints
with softib's own libibumad."""
import pytest

from interop.fabric import Fabric, kill, wait_until
from interop.test_diags import UNANSWERED

GENUINE = {"SOFTIB_LIBIBUMAD": "genuine"}
TOOLS = [
    ["ibstat"], ["ibstat", "-p"],
    ["smpquery", "nodeinfo", "1"], ["smpquery", "portinfo", "1", "1"], ["smpquery", "pkeys", "1"],
    ["smpquery", "-D", "nodedesc", "0,1"], ["smpquery", "-D", "switchinfo", "0,1"],
    ["ibaddr"],
    ["saquery"], ["saquery", "-p"], ["saquery", "-c"], ["saquery", "-g"], ["saquery", "-s"],
    ["saquery", "--src-to-dst", "1:2"], ["saquery", "SMIR"],
    ["ibnetdiscover"], ["iblinkinfo"], ["ibhosts"], ["ibswitches"], ["ibtracert", "1", "2"],
    ["ibroute", "-G", "SWITCH"], ["dump_lfts"],
]


def tool(fabric, node, *argv, devices=False, **env):
    """What a tool prints on @node, but the time of day; it must succeed."""
    process = fabric.start(node, *argv, options=["--devices"] if devices else (),
                           env={**fabric.env, **env})
    out = fabric.finish(process)
    assert process.returncode == 0, f"{argv} {env}\n{out}"
    return [line for line in out.splitlines() if "Topology file: generated" not in line]


def loaded(fabric, node):
    """The libibumads of a program on @node."""
    lines = tool(fabric, node, "ldd", "/usr/sbin/ibstat", **GENUINE)
    return [word for line in lines for word in line.split() if "/libibumad.so.3" in word]


def test_the_distributions_library_is_loaded(tree):
    ours, genuine = loaded(tree, "n1")
    assert "/genuine/" in ours and genuine.startswith("/usr/lib"), (ours, genuine)


@pytest.mark.parametrize("argv", TOOLS, ids=" ".join)
def test_tools_print_what_they_print_with_ours(tree, argv):
    switch = next(n for n in tree.json("topo")["nodes"] if n["kind"] == "switch")
    argv = [switch["guid"] if word == "SWITCH" else word for word in argv]
    # some print nodes in the order in which their answers came
    assert sorted(tool(tree, "n2", *argv, **GENUINE)) == sorted(tool(tree, "n2", *argv))


def test_counters_are_read_and_cleared(tree):
    """perfquery's reads send packets themselves, so the numbers differ each time."""
    tool(tree, "n1", "perfquery", "-R", "2", "1", **GENUINE)
    fields = [line.split(":")[0] for line in tool(tree, "n1", "perfquery", "2", "1", **GENUINE)]
    assert fields == [line.split(":")[0] for line in tool(tree, "n1", "perfquery", "2", "1")]


def test_a_refusal_arrives(tree):
    """A port that the fabric does not have: the answer's status, not the ten minutes' time-out."""
    process = tree.start("n1", "smpquery", "-t", "600000", "portinfo", "2", "99",
                         env={**tree.env, **GENUINE})
    out = tree.finish(process)
    assert process.returncode and UNANSWERED not in out, out


def test_records_too_long_for_one_message():
    """The NodeRecords of 629 nodes do not fit in 32 KiB, so they come by a memfd. The reader is
    told ENOSPC first, and how much room it needs."""
    with Fabric("fattree:2,17") as fabric:
        out = tool(fabric, "n1", "saquery", "NR", **GENUINE)
        assert sum("NodeRecord dump" in line for line in out) == len(
            fabric.json("topo")["nodes"]) > 300


def test_ping_of_a_vendor_class(tree):
    """Registration with an OUI, in a server that waits without a time-out."""
    lid = str(next(n["lid"] for n in tree.json("topo")["nodes"] if n["name"] == "n2"))
    server = tree.start("n2", "ibping", "-S", env={**tree.env, **GENUINE})
    wait_until(lambda: any(r.get("pid") and r.get("comm") == "ibping"
                           for r in tree.user_resources()), "ibping serves")
    out = tool(tree, "n1", "ibping", "-f", "-c", "100", lid, **GENUINE)
    assert any("100 packets transmitted, 100 received, 0% packet loss" in line for line in out), out
    kill(server)


def test_opensm_manages_a_fabric():
    """It holds /dev/infiniband/issm0 open, which is the IsSM bit of its port."""
    with Fabric("star:3", sm="none") as fabric:
        manager = fabric.start("n2", "opensm", "-f", fabric.home / "log", options=["--devices"],
                               env={**fabric.env, **GENUINE})
        wait_until(lambda: all(p["state"].lower() == "active" for n in fabric.json("topo")["nodes"]
                               for p in n["ports"] if p.get("peer")), "all ports are Active")
        info = tool(fabric, "n2", "smpquery", "-D", "portinfo", "0", **GENUINE)
        assert any(line.strip() == "IsSM" for line in info), info
        fabric.pair("ibv_rc_pingpong", "-n", "100", server="n1", client="n3")
        assert "SMINFO_MASTER" in " ".join(tool(fabric, "n1", "sminfo", **GENUINE))
        assert "ERR" not in (fabric.home / "log").read_text()
        kill(manager)
        wait_until(lambda: "IsSM" not in " ".join(
            tool(fabric, "n2", "smpquery", "-D", "portinfo", "0", **GENUINE)),
                   "the bit is gone with the manager")
