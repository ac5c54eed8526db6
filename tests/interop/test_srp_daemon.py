# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's srp_daemon, kept running: the subnet administrator tells it of targets that come later.
It rescans by itself after an hour, so that nothing but a trap can be why it looks. It locks a file
in /run, where an ordinary user has none, so it gets a folder of its own there."""
import os
import subprocess

import pytest

from interop.fabric import Fabric, guid, wait_until


OWN_RUN = ("unshare", "-m", *["--map-root-user"] * (os.getuid() != 0), "sh", "-ec",
           "mount -t tmpfs tmpfs /run; exec \"$@\"", "sh")


@pytest.fixture(scope="module")
def fabric():
    with Fabric("star:3") as it:
        yield it
        it.expect_no_leftovers()


@pytest.fixture
def daemon(fabric):
    """Its output so far, once it has subscribed to traps 64 and 144 and found no target."""
    out = fabric.dir / "srp_daemon.out"
    with out.open("w") as file:
        process = fabric.start("n2", *OWN_RUN, "stdbuf", "-oL", "srp_daemon", "-a", "-c", "-n", "-v", "-V",
                               "-i", "softib0", "-p", "1", "-R", "3600", stdout=file, stderr=file)
    wait_until(lambda: "Query did not find any targets" in out.read_text(), "its first scan is over")
    said = out.read_text()
    assert "Registering to trap:64" in said and "Registering to trap:144" in said, said
    yield out.read_text
    wait_until(lambda: ended(process), "srp_daemon ends")
    for node in {target["node"] for target in fabric.json("srp", "target", "list")}:
        fabric.softib("srp", "target", "remove", node)


def ended(process):
    """It forgets a signal if news of a trap come right behind it (get_received_signal())."""
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        return False
    return True


def command(node):
    """What the initiator of a kernel would be told."""
    return (f"id_ext={guid(node)},ioc_guid={guid(node)},dgid=fe80000000000000{guid(node, 1)},"
            f"pkey=ffff,service_id=1{guid(node)[1:]}")


def test_a_target_that_comes_later_is_found(fabric, daemon):
    """The capability mask of a port changes: trap 144."""
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    wait_until(lambda: command("n1") in daemon(), daemon)
    fabric.softib("srp", "target", "add", "n3", "--unit", "ram:1M")
    wait_until(lambda: command("n3") in daemon(), daemon)
    assert daemon().count(command("n1")) == 1


def test_a_controller_beside_another_one_is_found(fabric, daemon):
    """The capability mask loses its bit for a moment."""
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    wait_until(lambda: command("n1") in daemon(), daemon)
    fabric.softib("srp", "target", "add", "n1", "--controller", "2", "--unit", "ram:1M")
    second = fabric.json("srp", "target", "list")[1]["ioc_guid"][2:]
    wait_until(lambda: f"id_ext={second},ioc_guid={second}," in daemon(), daemon)


def test_a_target_whose_port_comes_later_is_found(fabric, daemon):
    """A port comes into service: trap 64."""
    fabric.softib("link", "n1:1", "down")
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    fabric.softib("link", "n1:1", "up")
    wait_until(lambda: command("n1") in daemon(), "the target is found")


def test_a_target_that_went_and_came_is_found_again(fabric, daemon):
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    wait_until(lambda: daemon().count(command("n1")) == 1, daemon)
    fabric.softib("srp", "target", "remove", "n1")
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    wait_until(lambda: daemon().count(command("n1")) >= 2, daemon)
