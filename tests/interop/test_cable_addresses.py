# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""IP addresses of nodes beyond a cable: the RDMA CM finds them by service records of the subnet administrator, whichever
that is, and programs connect by them."""
import re

import pytest

from interop.fabric import Fabric, _ports, wait_until
from interop.test_cable import HERE, STAR, THERE, plug, wait_for_cable
from interop.test_rdma_cm import cm_ids, serve

NEXT = ("--ip", "10.1.0.3/16", "--ip", "fd73:6f66:7469:6201::3/64")  # behind the two nodes of STAR
OWN, FAR = "10.1.0.1", "10.1.0.3"  # n1 of each
FAR_IPV6 = "fd73:6f66:7469:6201::3"


@pytest.fixture(scope="module", params=["softib-sm", "opensm"])
def both(request):
    with Fabric(STAR, sm=request.param, name=HERE) as here, Fabric(STAR, sm="none", name=THERE, up_args=NEXT) as there:
        plug(here, there, here.home / "cable")
        wait_for_cable(here, there)
        wait_until(lambda: {OWN, FAR} <= addresses(here), lambda: f"the addresses are known: {addresses(here)}")
        yield here, there
        there.expect_no_leftovers()


def addresses(fabric):
    """The IPv4 addresses that the subnet administrator knows (ATS)."""
    found = set()
    for record in fabric.run("n1", "saquery", "SR").split("ServiceRecord dump")[1:]:
        data = {int(i): int(byte, 16) for i, byte in re.findall(r"ServiceData8\.(\d+)\.+0x(\w+)", record)}
        assert "DAPL Address Translation Service" in record
        if not any(data[i] for i in range(1, 13)):
            found.add(".".join(str(data[i]) for i in range(13, 17)))
    return found


def test_each_port_is_known(both):
    assert addresses(both[1]) == {"10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"}


@pytest.mark.parametrize("server,client,address", [(0, 1, OWN), (1, 0, FAR), (1, 0, FAR_IPV6)],
                         ids=["there", "here", "ipv6"])
def test_rping(both, server, client, address):
    port = next(_ports)
    served = serve(both[server], "rping", "-s", "-a", address, "-p", port, "-C", 3, "-v")
    out = both[client].run("n2", "rping", "-c", "-a", address, "-p", port, "-C", 3, "-v")
    assert out.count("ping data: rdma-ping-") == 3, out
    both[server].finish(served)
    wait_until(lambda: not cm_ids(both[server], "n1"), "no cm_id is left")


def test_perftest(both):
    """Both the addresses and the parameters by the RDMA CM."""
    here, there = both
    port = next(_ports)
    args = ["ib_write_bw", "-R", "-s", 65536, "-n", 500, "-p", port]
    served = serve(there, *args)
    assert " 65536      500" in here.run("n2", *args, FAR)
    there.finish(served)
    wait_until(lambda: not cm_ids(there, "n1"), "no cm_id is left")


def test_an_address_of_nobody(both):
    process = both[0].start("n1", "rping", "-c", "-a", "10.1.0.77", "-C", 1)
    out = both[0].finish(process)
    assert process.returncode and "RDMA_CM_EVENT_ADDR_ERROR" in out, out


def test_where_things_are(both):
    here, there = both
    assert re.search(rf"^└─ +3 .*{HERE}/s1:3  Active", there.softib("topo"), re.M), there.softib("topo")
    assert "beyond a cable to another fabric" in there.softib("status")
    assert "softib-sm" in here.softib("status") or "opensm" in here.softib("status")
