# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Adapters that raise no interrupt: modules, managers and programs find no difference."""
import re
import subprocess

import pytest

from interop.fabric import BUILD, TIMEOUT, Fabric


@pytest.fixture(scope="module")
def polled():
    with Fabric("pair", up_args=("--polled", "all")) as fabric:
        yield fabric
        fabric.expect_no_leftovers()


def log_of(fabric):
    return (fabric.dir / "softibd.log").read_text()


def test_status(polled):
    assert polled.json("status")["polled"] == "all"


@pytest.mark.parametrize("module, line", [
    (BUILD / "tests/modules/verbs.so", r"n1 verbs: [1-9][0-9]+ checks, 0 failed"),
    (BUILD / "examples/fmr_pool.so", r"n1 fmr_pool: softib0: 3 times 16384 bytes"),
    (BUILD / "examples/client.so", r"n1 client: softib0 port 1: lid 1, state 4")])
def test_modules(polled, module, line):
    before = len(log_of(polled))
    polled.softib("modprobe", "n1", str(module))
    polled.softib("rmmod", "n1", module.stem)
    assert re.search(line, log_of(polled)[before:])


def test_a_connection_by_the_cm(polled):
    """The GSI's and the connection's completions, and the query's of the path."""
    guid = next(port["guid"] for node in polled.json("topo")["nodes"] if node["name"] == "n2"
                for port in node["ports"] if port["port"] == 1)
    polled.softib("modprobe", "n2", str(BUILD / "examples/cm_message.so"))
    polled.softib("modprobe", "n1", str(BUILD / "examples/cm_message.so"), f"dguid={guid}")
    for node in ("n1", "n2"):
        polled.softib("rmmod", node, "cm_message")
    assert "n2 cm_message: received 'hello'" in log_of(polled)


def test_programs(polled):
    server, client = polled.pair("ibv_rc_pingpong", "-e", "-n", "100")
    assert "100 iters in" in server and "100 iters in" in client


def test_a_node_that_is_none(polled):
    done = subprocess.run([polled.program, "up", "other", "--polled", "n1,s1"], env=polled.env,
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode and "--polled: the topology has no node 's1' with an adapter" in done.stderr, done
