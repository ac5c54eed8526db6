# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uDAPL: Debian's dapl, whose programs find the providers of their node without a dat.conf."""
import pytest

from interop.fabric import Fabric, kill, wait_until

SERVER_IP = "10.1.0.1"
DTEST_PORT = 15828  # where dtest's server tells a client its address
PROVIDERS = {"cma": "ofa-v2-ib0", "scm": "ofa-v2-softib0-1", "ucm": "ofa-v2-softib0-1u"}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_dtest(pair, provider):
    """SEND, RDMA WRITE and READ in both directions, by each way to connect."""
    args = ("dtest", "-P", PROVIDERS[provider], "-b", 4096, "-B", 10)
    server = pair.serve("n1", *args, port=DTEST_PORT)
    assert "PASSED" in pair.run("n2", *args, "-h", "127.0.0.1")
    assert "PASSED" in pair.finish(server)


def test_adapters():
    """Each port of each adapter of a node has its providers."""
    with Fabric("pair", up_args=("--adapters", "2", "--ports", "2")) as fabric:
        for provider in "ofa-v2-ib3", "ofa-v2-softib1-2u":
            args = ("dtest", "-P", provider, "-b", 4096, "-B", 10)
            server = fabric.serve("n1", *args, port=DTEST_PORT)
            assert "PASSED" in fabric.run("n2", *args, "-h", "127.0.0.1")
            assert "PASSED" in fabric.finish(server)


def retried(run, good):
    """dapl's programs tell a client where they listen before they do: one that is quicker is
    refused, and tries again."""
    for _ in range(3):
        out = run()
        if good in out:
            break
    assert good in out, out
    return out


def test_dtestx(pair):
    """The provider's extensions: immediate data and atomics."""
    def run():
        args = ("dtestx", "-P", PROVIDERS["ucm"])
        server = pair.serve("n1", *args, port=DTEST_PORT)
        out = pair.run("n2", *args, "-h", "127.0.0.1", check=False)
        kill(server)
        return out

    retried(run, "immed/atomic test PASSED")


def test_dapltest(pair):
    """Transactions, rates and the functions of an endpoint; the client ends the server."""
    def client(good, test, *args):
        return retried(lambda: pair.run("n2", "dapltest", "-T", test, "-s", SERVER_IP, "-D",
                                        PROVIDERS["cma"], *args, check=False), good)

    server = pair.start("n1", "dapltest", "-T", "S", "-D", PROVIDERS["cma"])
    wait_until(lambda: "cm_id" in pair.run("n1", "softib", "resource", "show"), "it listens")
    client("Total RDMA Write :       0.81 MB", "T", "-i", 100, "-t", 2, "-w", 1,
           "client", "SR", 256, "server", "RW", 4096, "server", "SR")
    client("Total RDMA Read  :", "T", "-i", 50, "-V", "-P", "client", "RR", 25600, "server", "SR", 512, 4)
    for mode in ("p", "b"):  # completions polled, waited for
        client("raw: RW, 512", "P", "-i", 512, "-p", 64, "-m", mode, "RW", 8192, 2)
    for feature in ("hwconn", "endpoint", "pz", "connmgt"):
        assert "FAIL" not in client("Result: PASS", "F", "-f", feature)
    client("End of Work", "Q")
    pair.finish(server)
    assert server.returncode == 0


def test_limits(pair):
    out = pair.run("n1", "dapltest", "-T", "L", "-D", PROVIDERS["scm"], "-w", 8, "-m", 100,
                   "limit_ia", "limit_pz", "limit_evd", "limit_ep", "limit_psp", "limit_lmr")
    assert "LMRs created: 100" in out
