# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SRP sessions of adapters with several ports, in one subnet and in two."""
import os
import subprocess

import pytest

from interop.fabric import TIMEOUT, Fabric, kill, wait_until
from interop.test_srp_initiator import CLIENT, fio, run

# each adapter has a port in both subnets
TWO_SUBNETS = """
Switch 4 "left"
[1] "host one"[1]
[2] "host two"[1]

Switch 4 "right"
[1] "host one"[2]
[2] "host two"[2]

Hca 2 "host one"
Hca 2 "host two"
"""


@pytest.fixture(scope="module")
def subnets(tmp_path_factory):
    """A manager for each subnet."""
    path = tmp_path_factory.mktemp("net") / "two.net"
    path.write_text(TWO_SUBNETS)
    with Fabric(str(path), sm="none") as it:
        managers = [it.start("n1", "softib-sm", "--port", port) for port in (":1", ":2")]
        wait_until(lambda: it.run("n2", "ibv_devinfo").count("PORT_ACTIVE") == 2, "both ports are Active")
        yield it
        for manager in managers:
            kill(manager)
        it.expect_no_leftovers()


@pytest.fixture
def served(subnets):
    """n1 has a target, to which n2 may log in; all links are up at the end."""
    subnets.softib("srp", "target", "add", "n1", "--unit", "ram:16M")
    wait_until(lambda: len(subnets.json("srp", "discover", "n2")) == 2, "both managers know the target")
    yield subnets
    subnets.softib("link", "n2:1", "up")
    if subnets.json("srp", "list"):
        subnets.softib("srp", "logout", "n2", "n1")
    subnets.softib("srp", "target", "remove", "n1")
    wait_until(lambda: subnets.run("n2", "ibv_devinfo").count("PORT_ACTIVE") == 2, "both ports are Active")


def uri(login):
    return f"nbd+unix:///{login['units'][0]['export']}?socket={login['socket']}"


def test_each_subnet_is_asked(served):
    found = served.json("srp", "discover", "n2")
    assert sorted(target["port"] for target in found) == [1, 2]
    assert {target["node"] for target in found} == {"n1"}


def test_channels_stay_in_their_subnets(served):
    login = served.json("srp", "login", "n2", "n1")  # ends with the first channel that is up
    wait_until(lambda: all(c["up"] for c in served.json("srp", "list", "n2")[0]["channels"]), "both are up")
    assert [c["port"] for c in login["channels"]] == [1, 2]
    assert len({c["dgid"] for c in login["channels"]}) == 2
    run(served, *fio(uri(login), "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=16m"))
    session, = served.json("srp", "list", "n2")
    assert all(channel["commands"] > 100 for channel in session["channels"]), session


def test_a_node_logs_in_by_a_port_that_is_not_the_first(served):
    served.softib("link", "n2:1", "down")
    found = served.json("srp", "discover", "n2")
    assert [target["port"] for target in found] == [2]
    login = served.json("srp", "login", "n2", "n1")
    assert [(c["port"], c["up"]) for c in login["channels"]] == [(2, True)]
    run(served, *fio(uri(login), "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=4m"))


def test_writes_outlive_a_subnet(served):
    """The cable of one of two subnets is pulled while fio verifies what it writes."""
    login = served.json("srp", "login", "n2", "n1", "--reconnect-delay", "1")
    job = subprocess.Popen(fio(uri(login), "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=8m",
                               "--rate_iops=2000"), env=CLIENT, cwd=served.dir,
                           stdout=subprocess.PIPE, text=True)
    wait_until(lambda: served.json("srp", "list", "n2")[0]["commands"] > 300, "commands are under way")
    served.softib("link", "n2:1", "down")
    out, _ = job.communicate(timeout=TIMEOUT)
    assert job.returncode == 0 and "err= 0" in out, out
    session, = served.json("srp", "list", "n2")
    assert [channel["up"] for channel in session["channels"]] == [False, True], session


def test_verified_writes_while_cables_are_pulled(served):
    """fio writes at random and reads all of it back, for SOFTIB_SECONDS, while one of two paths is
    pulled and plugged in, again and again, each in turn (make storage: ten minutes)."""
    seconds = int(os.environ.get("SOFTIB_SECONDS", "10"))
    login = served.json("srp", "login", "n2", "n1", "--reconnect-delay", "1")

    def channels():
        return served.json("srp", "list", "n2")[0]["channels"]

    job = subprocess.Popen(fio(uri(login), "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=8m",
                               "--time_based", f"--runtime={seconds}"),
                           env=CLIENT, cwd=served.dir, stdout=subprocess.PIPE, text=True)
    pulled = 0
    while job.poll() is None:
        ended = lambda: job.poll() is not None
        victim = pulled % 2
        served.softib("link", f"n2:{victim + 1}", "down")
        wait_until(lambda: ended() or not channels()[victim]["up"], "the channel is down")
        before = channels()[1 - victim]["commands"]
        wait_until(lambda: ended() or channels()[1 - victim]["commands"] >= before + 100, "the other one goes on")
        served.softib("link", f"n2:{victim + 1}", "up")
        wait_until(lambda: ended() or all(c["up"] for c in channels()), "both are up")
        pulled += 1
    out = job.communicate(timeout=TIMEOUT)[0]
    assert job.returncode == 0 and "err= 0" in out, out
    assert pulled >= max(2, seconds // 20), pulled
    session, = served.json("srp", "list", "n2")
    assert session["repeated"] > 0, session
