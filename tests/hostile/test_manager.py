# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lies to the subnet manager: agents whose answers do not agree with each other. The agents of a
fabric are softibd's and tell the truth, so the attacker changes their answers on a cable by a fault
rule, as a switch or an adapter of another maker could. softib-sm runs as on any fabric."""
import os
import signal

import pytest

from hostile.attack import PATIENCE, innocents_go_on, note_test, softibd_answers
from interop.fabric import Fabric, wait_until

DIRECTED, GET_RESP, NODE_INFO = "sm-direct", 0x81, 0x11
# from the LRH: LRH, BTH, DETH, then the MAD, whose data begin behind 64 bytes
DATA = 8 + 12 + 8 + 64
NODE_GUID_6, LOCAL_PORT = DATA + 12 + 6, DATA + 36  # the byte of the GUID that tells switches apart
WHOLE = "6 switches, 8 adapters, 16 links"


@pytest.fixture(scope="module")
def calm_tree():
    """Leaves s1 to s4 with two adapters each, below the spines s5 and s6: s4 is reached by both, the
    liars are at s4, and the innocents n3 and n4 at s2."""
    with Fabric("fattree:2,2") as fabric:
        yield fabric
        fabric.expect_no_leftovers()


@pytest.fixture
def fattree(calm_tree):
    """The same, before an attack."""
    note_test(calm_tree)
    return calm_tree


class Manager:
    """The softib-sm of @fabric, which writes a line about each sweep."""

    def __init__(self, fabric):
        self.log = fabric.dir / "sm.log"
        self.pid = next(row["pid"] for row in fabric.json("resource", "show")
                        if row.get("comm") == "softib-sm")

    def read(self):
        return self.log.read_text(encoding="ascii")

    def sweep(self, *expected):
        """It sweeps, and writes this about it."""
        seen = len(self.read())
        os.kill(self.pid, signal.SIGHUP)
        wait_until(lambda: all(text in self.read()[seen:] for text in expected),
                   lambda: f"{expected}: {self.read()[seen:]}", PATIENCE)


def lie(fabric, *place, **changes):
    """SMPs that answer by this place are changed, without a trace."""
    fabric.softib("fault", "add", *place, "corrupt", "crc=fixed", f"class={DIRECTED}",
                  f"method={GET_RESP}", *(f"{name}={value}" for name, value in changes.items()))


def replugged(fabric, end, manager):
    """A cable is pulled and plugged in: the port is Active when the manager has set it up again."""
    def state():
        node, port = end.split(":")
        found = next(n for n in fabric.json("topo")["nodes"] if n["name"] == node)
        return next(p["state"] for p in found["ports"] if p["port"] == int(port)).lower()

    fabric.softib("link", end, "down")
    wait_until(lambda: state() == "down", "the cable is pulled")
    fabric.softib("link", end, "up")
    wait_until(lambda: state() == "active",
               lambda: f"{end} is {state()}; the manager says {manager.read()[-2000:]}", PATIENCE)


@pytest.mark.parametrize("liar, at, bits, found", [
    ("s6:4", LOCAL_PORT, 4 ^ 3, "6 switches, 8 adapters, 15 links"),  # s4 is at its port 3 twice
    ("s6:4", NODE_GUID_6, 4 ^ 3, "6 switches, 8 adapters, 15 links"),  # it says that it is s3
    ("n8:1", NODE_GUID_6, 8 ^ 7, "6 switches, 7 adapters, 15 links"),  # it says that it is n7
], ids=["port", "switch", "adapter"])
def test_a_port_at_the_end_of_two_cables(fattree, liar, at, bits, found):
    """softib-sm leaves the second cable out, routes by the rest, and sets up what comes back."""
    manager = Manager(fattree)
    lie(fattree, "link", liar, attr=NODE_INFO, offset=at, mask=bits)
    try:
        manager.sweep("answers on two cables", found)
        replugged(fattree, "n5:1", manager)
        innocents_go_on(fattree)
        fattree.pair("ibv_rc_pingpong", "-n", "100", server="n3", client="n5")
    finally:
        fattree.softib("fault", "clear", "all")
    manager.sweep(WHOLE)
    assert Manager(fattree).pid == manager.pid

@pytest.mark.parametrize("seed", range(1, 4))
def test_answers_with_changed_bits(fattree, seed):
    """One answer of twenty has a bit changed, wherever it is: tables of switches, states and LIDs of
    ports, who is behind which. The manager sweeps on, and when the lies end, all is as before."""
    manager = Manager(fattree)
    lie(fattree, "all", rate="5%", seed=seed)
    try:
        for _ in range(20):
            seen = manager.read().count("\n")
            os.kill(manager.pid, signal.SIGHUP)
            wait_until(lambda: manager.read().count("\n") > seen, "the manager sweeps")
        softibd_answers(fattree)
    finally:
        fattree.softib("fault", "clear", "all")
    replugged(fattree, "n5:1", manager)
    manager.sweep(WHOLE)
    assert Manager(fattree).pid == manager.pid
    innocents_go_on(fattree)
