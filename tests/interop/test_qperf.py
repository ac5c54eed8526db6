# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""qperf finds its peer by an IP address of ib0 and measures whatever it can: sockets, verbs,
RDMA CM. XRC is left out of Debian's build."""
import re

import pytest

from interop.fabric import Fabric, kill, wait_until

ADDRESS = "10.1.0.1"
# a second each, so not all: of each kind of request, and of each way to wait for it
SOCKETS = ["tcp_bw", "udp_lat"]
VERBS = ["rc_bi_bw", "uc_bw", "ud_lat", "rc_rdma_read_lat", "uc_rdma_write_poll_lat", "rc_compare_swap_mr",
         "ver_rc_fetch_add"]


@pytest.fixture(name="pair", scope="module")
def nodes_with_networks():
    with Fabric("pair", up_args=("--net", "node")) as fabric:
        yield fabric
        fabric.expect_no_leftovers()


@pytest.fixture(name="server")
def started(pair, request):
    options = getattr(request, "param", ())
    process = pair.start("n1", "qperf", options=options)
    wait_until(lambda: measure(pair, "conf", options=options, check=False), "qperf listens")
    yield
    kill(process)


def measure(fabric, *words, options=(), check=True):
    """What qperf prints, for a second of each test."""
    client = fabric.start("n2", "qperf", "-t", "1", ADDRESS, *words, options=options)
    out = fabric.finish(client)
    assert not check or client.returncode == 0, out
    return "" if client.returncode else out


def figures(out):
    """{test: its figures, with units}"""
    return {found[1]: re.findall(r"=\s+([\d.]+) (\S+)", found[2])
            for found in re.finditer(r"^(\w+):\n((?:    .*\n)+)", out, re.M)}


def expect(out, tests):
    """Each test has moved something."""
    found = figures(out)
    assert list(found) == list(tests), out
    assert all(rows and all(float(n) > 0 for n, _ in rows) for rows in found.values()), out


def test_sockets(pair, server):
    expect(measure(pair, *SOCKETS), SOCKETS)


@pytest.mark.parametrize("server", [("--sdp",)], indirect=True, ids=["sdp"])
def test_sdp(pair, server):
    """By its own address family, and in place of TCP."""
    tests = ["sdp_bw", "tcp_lat"]
    expect(measure(pair, *tests, options=("--sdp",)), tests)


def test_verbs(pair, server):
    expect(measure(pair, *VERBS), VERBS)


@pytest.mark.parametrize("test", ["rc_bw", "rc_lat"])
def test_rdma_cm(pair, server, test):
    """One test of each connection: after it the server's child destroys a queue pair that its
    listening id does not have, which ends it with every librdmacm. And the server tells its port
    before it listens there: a client that is faster is rejected."""
    out = []
    wait_until(lambda: out.append(measure(pair, "-cm", "1", test, check=False)) or out[-1], f"qperf -cm 1 {test}")
    expect(out[-1], [test])
