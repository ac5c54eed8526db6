# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""softib status and softib topo: what people are told of a fabric."""
import re
import subprocess

import pytest

from interop.commands import softib
from interop.fabric import SOFTIB, Fabric, wait_until


@pytest.mark.parametrize("sm", ["softib-sm", "opensm"])
def test_status_names_the_manager(sm):
    with Fabric("pair", sm=sm) as fabric:
        manager = fabric.json("status")["sm"]
        assert (manager["program"], manager["node"]) == (sm, "n1")
        with open(f"/proc/{manager['pid']}/comm", encoding="ascii") as comm:
            assert comm.read() == f"{sm}\n"
        assert re.search(rf"^  manager +{sm} \(pid {manager['pid']}\) on n1, lid \d+$",
                         fabric.softib("status"), re.M)


def test_status_of_a_manager_by_hand_and_of_none():
    """Another fabric's manager is not this one's, nor is one on another node."""
    with Fabric("pair") as other, Fabric("pair", sm="none") as fabric:
        assert other.json("status")["sm"]["program"] == "softib-sm"
        assert fabric.json("status")["sm"] is None
        manager = fabric.start("n2", "softib-sm")
        fabric.softib("wait")
        wait_until(lambda: fabric.json("status")["sm"].get("pid") == manager.pid,
                   "the manager is named")
        assert fabric.json("status")["sm"]["node"] == "n2"
        manager.kill()
        manager.wait()
        assert "program" not in fabric.json("status")["sm"]
        assert re.search(r"^  manager +n2, lid \d+$", fabric.softib("status"), re.M)


def test_status_names_active_faults():
    with Fabric("pair") as fabric:
        assert "faults" not in fabric.softib("status")
        for n in range(1, 8):
            fabric.softib("fault", "add", "link", "n1:1", "drop", f"{n}%")
        text = fabric.softib("status")
        assert "  faults      7 rules (softib fault list)\n" in text
        assert re.search(r"^ +5: link n1:1 drop rate=5%.*\n +\.\.\.$", text, re.M)
        assert len(fabric.json("status")["faults"]) == 7
        fabric.softib("fault", "clear", "all")
        assert "faults" not in fabric.softib("status")


def test_topo_of_a_node(tree):
    """What it is cabled to; the switches among that with their own cables."""
    text = tree.softib("topo", "n3")
    heads = re.findall(r"^(\w+)  (ca|switch),", text, re.M)
    assert heads[0] == ("n3", "ca") and len(heads) == 2 and heads[1][1] == "switch"
    assert re.search(rf"── +{heads[1][0]}:\d+  lid \d+  Active\n{heads[1][0]}  switch", text)
    assert re.search(r"──  n3:1  lid \d+  Active$", text, re.M)
    spine = tree.softib("topo", heads[1][0])
    assert spine.startswith(f"{heads[1][0]}  switch") and spine.count("switch,") > 1
    assert [n["name"] for n in tree.json("topo", "n3")["nodes"]] == ["n3"]


def test_topo_of_a_node_of_a_file(home):
    done = softib(home, "topo", "--topology", "pair", "n2")
    assert done.stdout.startswith("n2  ca, 1 port") and "s1  switch, 2 ports" in done.stdout
    done = softib(home, "topo", "--topology", "pair", "n9")
    assert done.returncode == 1 and 'no node "n9" in pair' in done.stderr
    done = softib(home, "topo", "--format", "dot", "n1")
    assert done.returncode == 64 and "neighbourhood" in done.stderr


def test_a_large_fabric_is_summarised(home):
    """From 50 nodes on, in a screenful; --all shows every cable."""
    small = softib(home, "topo", "--topology", "star:48").stdout  # 49 nodes
    assert small == softib(home, "topo", "--topology", "star:48", "--all").stdout
    large = softib(home, "topo", "--topology", "fattree:2,6").stdout
    assert large.splitlines() == [
        "72 adapters, 18 switches, 144 cables",
        "    12 switches with 6 cables to adapters and 6 to switches, s1 first",
        "     6 switches with 0 cables to adapters and 12 to switches, s13 first",
        "   144 cables 4xEDR",
        "(softib topo --all shows every cable, softib topo NODE those of a node)"]
    assert softib(home, "topo", "--topology", "fattree:2,6", "--all").stdout.count("──") >= 144


def test_a_summary_shows_what_is_down():
    with Fabric("star:60") as fabric:
        fabric.softib("link", "n7:1", "down")
        text = fabric.softib("topo")
        assert re.search(r"^ +59 cables 4xEDR  Active$", text, re.M), text
        assert re.search(r"^ +1 cable  4xEDR  Down$", text, re.M), text


def test_topo_of_an_unknown_node(pair):
    done = subprocess.run([SOFTIB, "topo", "--fabric", "t", "n9"], env=pair.env, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 1 and 'no node "n9"' in done.stderr
