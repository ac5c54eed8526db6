# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""uDAPL: Debian's dapl, whose programs find the providers of their node without a dat.conf."""
import re
import socket
import struct
from pathlib import Path

import pytest

from interop.fabric import TIMEOUT, Fabric, kill, wait_until

SERVER_IP = "10.1.0.1"
DAPLTEST_PORT = 63000  # where dapltest's server listens by TCP
DTEST_PORT = 15828  # where dtest's server tells a client its address
PROVIDERS = {"cma": "ofa-v2-ib0", "scm": "ofa-v2-softib0-1", "ucm": "ofa-v2-softib0-1u"}


def retried(run, good):
    """dapl's programs tell a client where they listen before they do: one that is quicker is
    refused, and tries again."""
    for _ in range(3):
        out = run()
        if good in out:
            break
    assert good in out, out
    return out


def talk(fabric, provider):
    """dtest: SEND, RDMA WRITE and READ in both directions."""
    args = ("dtest", "-P", provider, "-b", 4096, "-B", 10)

    def run():
        server = fabric.serve("n1", *args, port=DTEST_PORT)
        out = fabric.run("n2", *args, "-h", "127.0.0.1", check=False)
        if "PASSED" in out:
            assert "PASSED" in fabric.finish(server)
        kill(server)
        return out

    retried(run, "PASSED")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_dtest(pair, provider):
    """Each way to connect."""
    talk(pair, PROVIDERS[provider])


def test_adapters():
    """Each port of each adapter of a node has its providers."""
    with Fabric("pair", up_args=("--adapters", "2", "--ports", "2")) as fabric:
        for provider in "ofa-v2-ib3", "ofa-v2-softib1-2u":
            talk(fabric, provider)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("program, good", [
    (("dtestx",), "immed/atomic test PASSED"),
    (("dtestcm", "-c", 100), "ALL 100 CONNECTED on Client"),
], ids=["dtestx", "dtestcm"])
def test_programs_with_a_server(pair, program, good, provider):
    """The provider's extensions: immediate data and atomics; and many connections."""
    args = (*program, "-P", PROVIDERS[provider])

    def run():
        server = pair.serve("n1", *args, port=DTEST_PORT)
        out = pair.run("n2", *args, "-h", "127.0.0.1", check=False)
        kill(server)
        return out

    retried(run, good)


def named(said):
    """How dtestsrq's client names its server: the address that this one has told."""
    found = re.search(r"Local Address AF_INET6? - (\S+)(?: flowinfo\(QPN\)=(\S+), port\(LID\)=(\S+))?", said)
    address, qpn, lid = found.groups()
    return ["-h", address, *(["-q", qpn, "-l", lid] if qpn else [])]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_dtestsrq(pair, provider):
    """Shared receive queues. The server has no time-out: it ends with the client that it accepts."""
    args = ("dtestsrq", "-P", PROVIDERS[provider], "-c", 4, "-B", 8, "-t", 4)
    said = pair.dir / f"dtestsrq.{provider}"
    with said.open("w") as out:
        server = pair.start("n1", "stdbuf", "-oL", *args, "-s", stdout=out)
    wait_until(lambda: "Accepting" in said.read_text(), said.read_text)
    out = retried(lambda: pair.run("n2", *args, *named(said.read_text()), check=False), "Test Complete")
    assert "ALL 4 CONNECTED on client" in out
    assert server.wait(TIMEOUT) == 0 and "Test Complete" in said.read_text(), said.read_text()


def address_of(port):
    """At which somebody listens on this TCP port; None"""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        where, state = line.split()[1], line.split()[3]
        if where.endswith(f":{port:04X}") and state == "0A":
            return socket.inet_ntoa(struct.pack("=I", int(where[:8], 16)))
    return None


@pytest.mark.parametrize("provider", ["cma", "scm"])
def test_dapltest(pair, provider):
    """Transactions, rates and the functions of an endpoint; the client ends the server. The provider
    scm listens at an address of the host's."""
    def client(good, test, *args):
        return retried(lambda: pair.run("n2", "dapltest", "-T", test, "-s", address, "-D",
                                        PROVIDERS[provider], *args, check=False), good)

    server = pair.start("n1", "dapltest", "-T", "S", "-D", PROVIDERS[provider])
    if provider == "cma":
        wait_until(lambda: "cm_id" in pair.run("n1", "softib", "resource", "show"), "it listens")
    else:
        wait_until(lambda: address_of(DAPLTEST_PORT), "it listens")
    address = SERVER_IP if provider == "cma" else address_of(DAPLTEST_PORT)
    client("Total RDMA Write :       0.81 MB", "T", "-i", 100, "-t", 2, "-w", 1,
           "client", "SR", 256, "server", "RW", 4096, "server", "SR")
    client("Total RDMA Read  :", "T", "-i", 50, "-V", "-P", "client", "RR", 25600, "server", "SR", 512, 4)
    client("Total Send", "T", "-i", 50, "client", "SR", 1024, 3, "-f", "server", "SR", 2048, 1, "-f")
    for mode in ("p", "b"):  # completions polled, waited for
        client("raw: RW, 512", "P", "-i", 512, "-p", 64, "-m", mode, "RW", 8192, 2)
    client("raw: RR, 512", "P", "-i", 512, "-p", 4, "-m", "p", "RR", 8192, 1)
    # of scm, the client of connmgt wants the TCP port that the server has on the same host
    for feature in ("hwconn", "endpoint", "pz", *["connmgt"] * (provider == "cma")):
        assert not re.search("FAIL| failed in ", client("Result: PASS", "F", "-f", feature))
    # dapl tells of every region that is refused that resources lack, where the test wants to know
    # of the length: a region of no bytes is refused, as by the kernel
    out = client("Result: PASS", "F", "-f", "mem")
    assert out.count(" failed in ") == 1 and "DAT_INSUFFICIENT_RESOURCES" in out, out
    client("End of Work", "Q")
    pair.finish(server)
    assert server.returncode == 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_limits(pair, provider):
    limits = ["ia", "pz", "cno", "evd", "ep", "rsp", "psp", "lmr", "rpost", "size_lmr"]
    out = pair.run("n1", "dapltest", "-T", "L", "-D", PROVIDERS[provider], "-w", 4, "-m", 100,
                   *(f"limit_{limit}" for limit in limits))
    assert "LMRs created: 100" in out, out
