# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uDAPL: Debian's dapl, whose programs find the providers of their node without a dat.conf."""
import pytest

from interop.fabric import wait_until

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


def test_dtestx(pair):
    """The provider's extensions: immediate data and atomics."""
    args = ("dtestx", "-P", PROVIDERS["ucm"])
    server = pair.serve("n1", *args, port=DTEST_PORT)
    assert "immed/atomic test PASSED" in pair.run("n2", *args, "-h", "127.0.0.1")
    pair.finish(server)


def test_dapltest(pair):
    """Transactions, rates and the functions of an endpoint; the client ends the server."""
    def client(test, *args):
        return pair.run("n2", "dapltest", "-T", test, "-s", SERVER_IP, "-D", PROVIDERS["cma"],
                        *args)

    server = pair.start("n1", "dapltest", "-T", "S", "-D", PROVIDERS["cma"])
    wait_until(lambda: "cm_id" in pair.run("n1", "softib", "resource", "show"), "it listens")
    out = client("T", "-i", 100, "-t", 2, "-w", 2, "client", "SR", 256, "server", "RW", 4096,
                 "server", "SR")
    assert "End of Work -- Client Exiting" in out
    out = client("T", "-i", 50, "-V", "-P", "client", "RR", 25600, "server", "SR", 512, 4)
    assert "End of Work -- Client Exiting" in out
    for mode in ("p", "b"):  # completions polled, waited for
        assert "raw: RW, 512" in client("P", "-i", 512, "-p", 64, "-m", mode, "RW", 8192, 2)
    for feature in ("hwconn", "endpoint", "pz", "connmgt"):
        out = client("F", "-f", feature)
        assert "Result: PASS" in out and "FAIL" not in out, out
    client("Q")
    pair.finish(server)
    assert server.returncode == 0


def test_limits(pair):
    out = pair.run("n1", "dapltest", "-T", "L", "-D", PROVIDERS["scm"], "-w", 8, "-m", 100,
                   "limit_ia", "limit_pz", "limit_evd", "limit_ep", "limit_psp", "limit_lmr")
    assert "LMRs created: 100" in out
