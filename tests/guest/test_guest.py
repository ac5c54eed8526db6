# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A virtual machine whose RDMA adapter is a node's: what Linux and rdma-core in the guest make of it."""
import ipaddress
import json
import re

import pytest

from guest.machine import Guest
from interop.fabric import Fabric, _ports, kill, wait_until
from interop.test_rdma_cm import cm_ids

GUEST = "10.1.9.1"  # on the network of the nodes, beside those of the address plan
NODE = "10.1.0.2"  # n2
GUEST_MAC = "52:54:00:00:00:01"
GUEST_LINK_LOCAL = "fe80::5054:ff:fe00:1"


@pytest.fixture(scope="module", name="fabric")
def a_fabric():
    with Fabric("star:3", sm="none", up_args=("--link-layer", "ethernet", "--net", "node")) as fabric:
        yield fabric
        fabric.expect_no_leftovers()


@pytest.fixture(scope="module", name="guest")
def a_guest(fabric):
    guest = Guest(fabric, "n1")
    guest.run(f"ip addr add {GUEST}/16 dev eth0")
    wait_until(lambda: GUEST in gids(fabric), "the port has the guest's GID")
    yield guest
    text = guest.power_off()
    assert guest.process.returncode == 0, text
    assert addresses(fabric) == PLAN  # none of the guest's has stayed


PLAN = {"10.1.0.1", "fd73:6f66:7469:6201::1", "fe80::73:69ff:fe00:1"}


def addresses(fabric):
    link, = json.loads(fabric.run("n1", "ip", "-json", "addr", "show", "eth0"))
    return {each["local"] for each in link["addr_info"]}


def gids(fabric):
    """Those of version 2 in the GID table of n1's port."""
    found = re.findall(r"GID\[ *\d+\]:\s*(\S+), RoCE v2", fabric.run("n1", "ibv_devinfo", "-v"))
    return {gid.removeprefix("::ffff:") for gid in found}


def pingpong(fabric, guest, program, guest_serves):
    """Return: what both printed"""
    port = next(_ports)
    here, there = f"{program} -p {port} -g {gid_index(guest)}", [*program.split(), "-p", port, "-g", 1]
    if guest_serves:
        guest.serve(here, port)
        return fabric.run("n2", *there, GUEST), guest.finish()
    server = fabric.serve("n2", *there, port=port)
    return guest.run(f"{here} {NODE}"), fabric.finish(server)


def gid_index(guest):
    """Where the IPv4 address is in the guest's GID table."""
    mapped = ipaddress.IPv6Address(f"::ffff:{GUEST}").exploded
    return guest.run(f"cd /sys/class/infiniband/vmw_pvrdma0/ports/1/gids; grep -l {mapped} *").strip()


def test_the_adapter(guest):
    """The guest's driver is Linux' own, and so is its ib_core."""
    text = guest.run("ibv_devinfo -v")
    for line in ("hca_id:\tvmw_pvrdma0", "state:\t\t\tPORT_ACTIVE (4)", "link_layer:\t\tEthernet"):
        assert line in text, text
    assert "vmw_pvrdma" in guest.run("lsmod")


def test_its_ethernet(fabric, guest):
    assert GUEST_MAC in guest.run("ip link show eth0")
    assert " 0% packet loss" in guest.run(f"ping -c 3 {NODE}")
    assert " 0% packet loss" in fabric.run("n2", "ping", "-c", "3", "-i", "0.2", GUEST)
    assert f"lladdr {GUEST_MAC}" in fabric.run("n2", "ip", "neigh", "show", GUEST)
    assert " 0% packet loss" in fabric.run("n2", "ping", "-c", "1", f"{GUEST_LINK_LOCAL}%eth0")
    assert f"lladdr {GUEST_MAC}" in fabric.run("n2", "ip", "neigh", "show", GUEST_LINK_LOCAL)


def test_its_gids_are_the_ports(fabric, guest):
    """The port of the node gets the guest's GIDs, and loses them."""
    assert gids(fabric) == addresses(fabric) == PLAN | {GUEST, GUEST_LINK_LOCAL}
    guest.run("ip addr add 10.1.9.2/16 dev eth0")
    wait_until(lambda: "10.1.9.2" in gids(fabric), "the port has the GID of the guest's second address")
    guest.run("ip addr del 10.1.9.2/16 dev eth0")
    wait_until(lambda: "10.1.9.2" not in gids(fabric), "the port has lost that GID")


@pytest.mark.parametrize("guest_serves", [False, True], ids=["asks", "serves"])
@pytest.mark.parametrize("program", ["ibv_rc_pingpong", "ibv_ud_pingpong -s 1024", "ibv_srq_pingpong -q 4"])
def test_pingpong(fabric, guest, program, guest_serves):
    for text in pingpong(fabric, guest, f"{program} -c -n 50", guest_serves):
        assert "50 iters in" in text and "invalid" not in text, text


def serve_on(fabric, node, *command):
    server = fabric.start(node, *command)
    wait_until(lambda: cm_ids(fabric, node) or server.poll() is not None, f"{command[0]} listens")
    return server


def test_the_cm(fabric, guest):
    """Connections, in both directions: REQ, REP, RTU, DREQ and DREP."""
    port = next(_ports)
    guest.serve_cm(f"rdma_server -p {port}")
    assert "rdma_client: end 0" in fabric.run("n2", "rdma_client", "-s", GUEST, "-p", port)
    assert "rdma_server: end 0" in guest.finish()
    server = serve_on(fabric, "n2", "rdma_server", "-p", port)
    assert "rdma_client: end 0" in guest.run(f"rdma_client -s {NODE} -p {port}")
    assert "rdma_server: end 0" in fabric.finish(server)


def test_resolution_of_a_service(fabric, guest):
    """Datagrams, in both directions: SIDR_REQ and SIDR_REP. The guest takes the GRH of what it receives for one
    of RoCE version 1, so what it answers to the addresses in there gets lost: docs/GUESTS.md."""
    options = ["-c", "2", "-C", "5"]
    guest.serve_cm(" ".join(["udaddy", *options]))
    client = fabric.start("n2", "udaddy", "-s", GUEST, *options)
    texts = [guest.finish()]
    kill(client)
    server = serve_on(fabric, "n2", "udaddy", *options)
    texts += [guest.run(" ".join(["udaddy", "-s", NODE, *options])), fabric.finish(server)]
    for text in texts:
        assert "return status 0" in text, text


@pytest.mark.parametrize("server, client", [("n1", "n3"), ("n3", "n1")])
def test_the_nodes_own_cm(fabric, guest, server, client):
    """The node's programs connect and are connected to while there is a guest."""
    address = f"10.1.0.{server[1]}"
    first = serve_on(fabric, server, "rping", "-s", "-a", address, "-C", "3", "-V")
    fabric.run(client, "rping", "-c", "-a", address, "-C", "3", "-V")
    fabric.finish(first)


def test_nobody_listens_in_the_guest(fabric, guest):
    text = fabric.run("n2", "ucmatose", "-s", GUEST, check=False)
    assert "RDMA_CM_EVENT_REJECTED, error: 8" in text, text  # no such service
