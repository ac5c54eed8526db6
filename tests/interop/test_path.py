# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""softib path: the node's own SA client asks the subnet manager, and the links
are those that packets take; infiniband-diags see the same."""
import json
import re
import subprocess

import pytest

from interop.fabric import SOFTIB, TIMEOUT, Fabric


@pytest.fixture(scope="module", params=["softib-sm", "opensm"])
def tree(request):
    with Fabric("fattree:2,2", sm=request.param) as fabric:
        yield fabric


def path(fabric, *args):
    return json.loads(fabric.softib("path", *args, "--json"))


def complaint(fabric, *args):
    done = subprocess.run([SOFTIB, "path", *args], env=fabric.env, capture_output=True, text=True,
                          timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    return done.stderr


def test_it_is_what_saquery_says(tree):
    asked = path(tree, "n1", "n4")
    record = tree.run("n1", "saquery", "-p", "--src-to-dst",
                      f"{asked['slid']}:{asked['dlid']}")
    said = dict(re.findall(r"^\s+(\w+)\.*\s*(\S+)$", record, re.M))
    assert int(said["dlid"]) == asked["dlid"] and int(said["slid"]) == asked["slid"]
    assert int(said["sl"], 16) == asked["sl"]
    assert int(said["pkey"], 16) == int(asked["pkey"], 16)
    assert 128 << (int(said["mtu"], 16) & 0x3f) == asked["mtu_bytes"]


def test_the_links_are_those_of_ibtracert(tree):
    for to in ("n2", "n3", "n8"):
        asked = path(tree, "n1", to)
        trace = tree.run("n1", "ibtracert", str(asked["slid"]), str(asked["dlid"]))
        steps = re.findall(r"^\[(\d+)\] -> \w+ port \{\w+\}\[(\d+)\]", trace, re.M)
        assert [(link["port"], link["peer_port"]) for link in asked["links"]] == \
            [(int(out), int(into)) for out, into in steps], trace


def test_the_same_question_twice(tree):
    assert path(tree, "n2", "n5") == path(tree, "n2", "n5")


def test_to_a_switch_and_to_itself(tree):
    assert path(tree, "n1", "s5")["links"][-1]["peer"] == "s5"
    assert path(tree, "n1:1", "n1")["links"] == []


def test_a_pulled_cable(tree):
    """The answer follows the fabric: softib's cache of paths is told by a notice."""
    before = path(tree, "n1", "n6")
    tree.softib("link", "n6:1", "down")
    assert re.search("knows no path from n1:1 to n6|packets are lost at ", complaint(tree, "n1", "n6"))
    tree.softib("link", "n6:1", "up")
    tree.softib("wait")
    assert path(tree, "n1", "n6")["links"][0] == before["links"][0]


@pytest.mark.parametrize("args, says", [
    (["n1", "n99"], 'no node "n99"'), (["s1", "n1"], "s1 has no adapter"),
    (["n1:2", "n2"], "n1 has ports 1 to 1"), (["n1:0", "n2"], "n1 has ports 1 to 1")])
def test_wrong_words(tree, args, says):
    assert says in complaint(tree, *args)


def test_without_a_manager():
    with Fabric("pair", sm="none") as fabric:
        assert "n1:1 has no subnet manager yet" in complaint(fabric, "n1", "n2")


def test_a_manager_that_stopped():
    with Fabric("pair", sm="none") as fabric:
        fabric.run("n2", "softib-sm", "--once")
        assert "the subnet administrator of n1:1 has ended" in complaint(fabric, "n1", "n2")
