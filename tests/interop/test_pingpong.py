# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""ibverbs-utils: devices and pingpongs between two nodes, and on one."""
import re
from pathlib import Path

import pytest

from interop.fabric import _ports


def test_devices(pair):
    out = pair.run("n1", "ibv_devices")
    assert re.search(r"^\s+softib0\s+[0-9a-f]{16}$", out, re.M), out


def test_devinfo(pair):
    out = pair.run("n1", "ibv_devinfo", "-v")
    assert re.search(r"state:\s+PORT_ACTIVE", out), out
    assert re.search(r"link_layer:\s+InfiniBand", out), out
    lid = int(re.search(r"port_lid:\s+(\d+)", out)[1])
    sm_lid = int(re.search(r"sm_lid:\s+(\d+)", out)[1])
    assert 0 < lid < 0xc000 and 0 < sm_lid < 0xc000
    assert re.search(r"GID\[\s*0\]:\s+fe80:", out), out


def test_each_node_has_its_own_device(pair):
    guids = {re.search(r"node_guid:\s+(\S+)", pair.run(n, "ibv_devinfo"))[1] for n in ("n1", "n2")}
    assert len(guids) == 2


@pytest.mark.parametrize("mode", [[], ["-e"], ["-g", "0"], ["-e", "-g", "0"]],
                         ids=lambda m: "".join(m) or "plain")
@pytest.mark.parametrize("program", ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong",
                                     "ibv_srq_pingpong"])
def test_pingpong(pair, program, mode):
    server, client = pair.pair(program, "-n", "200", *mode)
    assert "200 iters in" in server and "200 iters in" in client


@pytest.mark.parametrize("mtu", [256, 512, 1024, 2048, 4096])
@pytest.mark.parametrize("program", ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_srq_pingpong"])
def test_pingpong_mtu(pair, program, mtu):
    pair.pair(program, "-n", "50", "-s", "10000", "-m", mtu)


def test_rc_pingpong_validates_bytes(pair):
    pair.pair("ibv_rc_pingpong", "-n", "100", "-s", "65536", "-c")


def test_on_one_node(pair):
    pair.pair("ibv_rc_pingpong", "-n", "100", server="n1", client="n1")
    pair.pair("ibv_ud_pingpong", "-n", "100", server="n1", client="n1")


def test_xsrq_pingpong(pair):
    """XRC: the receive queue of a server serves three clients, each by targets of its own."""
    args = ["ibv_xsrq_pingpong", "-c", 3, "-n", 200]
    port = next(_ports)
    server = pair.serve("n1", *args, "-p", port, port=port)
    clients = [pair.start("n2", *args, "-p", port, "127.0.0.1") for _ in range(3)]
    outputs = [pair.finish(client) for client in [*clients, server]]
    assert all(out.endswith("success\n") for out in outputs), outputs
    assert len(set(re.findall(r"remote: .*SRQN ([0-9a-f]+)", outputs[3]))) == 3, outputs[3]
    Path("/tmp/xrc_domain").unlink()  # the programs' file for the domain: another user could not open it


def read_until(process, text):
    """Lines of a program up to the one that has @text."""
    for line in process.stdout:
        if text in line:
            return
    raise AssertionError(f"never saw {text}")


def test_asyncwatch_sees_the_link(pair):
    watch = pair.start("n1", "timeout", "60", "stdbuf", "-oL", "ibv_asyncwatch", "-d", "softib0")
    read_until(watch, "async event FD")
    pair.softib("link", "n1:1", "down", "--fabric", "t")
    read_until(watch, "IBV_EVENT_PORT_ERR")
    pair.softib("link", "n1:1", "up", "--fabric", "t")
    read_until(watch, "IBV_EVENT_PORT_ACTIVE")
    watch.terminate()  # timeout(1) hands it on; a SIGKILL it could not
    watch.wait()
    pair.softib("wait", "--fabric", "t")
