# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Linux' own RoCE, rdma_rxe in a guest, with a cable of QEMU's framing (-netdev stream): to another guest, and to a fabric."""
import contextlib
import signal
import subprocess

import pytest

from guest.machine import RxeGuest
from interop.fabric import Fabric, _ports, wait_until
from interop.test_capture import tshark
from interop.test_rdma_cm import cm_ids

MACS = ["52:54:00:00:01:01", "52:54:00:00:01:02"]
GUESTS = ["10.1.9.1", "10.1.9.2"]  # on the network of the nodes, beside those of the address plan
NODES = {"n1": "10.1.0.1", "n2": "10.1.0.2"}
MTU = 4200  # that of a node's eth0, with which RDMA has 4096


@contextlib.contextmanager
def booted(*guests):
    """Guests whose processes have been started; they have addresses then."""
    try:
        for guest, ipv4 in zip(guests, GUESTS):
            guest.boot()
            guest.address = ipv4
            guest.run(f"ip addr add {ipv4}/16 dev eth0")
        yield guests
    finally:
        for guest in guests:
            guest.end()


def pingpong_in(guest, program, port, far=""):
    return f"{program} -p {port} -g {guest.gid_index(guest.address)} {far}"


def test_two_guests_without_softib(tmp_path):
    """What the other tests rest on: machines, programs and rdma_rxe work among themselves."""
    path = tmp_path / "cable"
    with booted(RxeGuest(path, MACS[0], server=True), RxeGuest(path, MACS[1], server=False)) as (one, other):
        reach_each_other(one, other)


def reach_each_other(one, other):
    port = next(_ports)
    assert " 0% packet loss" in one.run(f"ping -c 3 {other.address}")
    one.serve_cm(f"rping -s -a {one.address} -C 5")
    other.run(f"rping -c -a {one.address} -C 5 -V")
    one.finish()
    one.serve(pingpong_in(one, "ibv_rc_pingpong -c -n 50", port), port)
    for text in (other.run(pingpong_in(other, "ibv_rc_pingpong -c -n 50", port, one.address)), one.finish()):
        assert "50 iters in" in text and "invalid" not in text, text


# --- on a fabric ---

@pytest.fixture(scope="module", name="fabric")
def a_fabric():
    with Fabric("star:2,spare=2", sm="none", up_args=("--link-layer", "ethernet", "--net", "node")) as fabric:
        for port in (3, 4):
            fabric.softib("cable", "--fabric", "t", f"s1:{port}", "--listen", str(fabric.home / f"cable{port}"))
        yield fabric
        fabric.expect_no_leftovers()


def plugged(fabric, port):
    return RxeGuest(fabric.home / f"cable{port}", MACS[port - 3], server=False, mtu=MTU)


@pytest.fixture(scope="module", name="guest")
def a_guest(fabric):
    with booted(plugged(fabric, 3)) as (guest,):
        yield guest


def cable(fabric, port):
    found, = [c for c in fabric.json("cable", "--fabric", "t") if c["port"] == port]
    return found


def test_nobody_has_to_speak_first(fabric, guest):
    """The guest has said nothing about its new address: the node's port asks for it."""
    guest.run("ip addr add 10.1.9.7/16 dev eth0")
    guest.serve_cm("rping -s -a 10.1.9.7 -C 1")
    fabric.run("n1", "rping", "-c", "-a", "10.1.9.7", "-C", "1")
    guest.finish()


def test_nobody_answers(fabric, guest):
    text = fabric.run("n1", "rping", "-c", "-a", "10.1.9.8", "-C", "1", check=False)
    assert "RDMA_CM_EVENT_ADDR_ERROR, error -110" in text, text


def test_ping(fabric, guest):
    for size in (56, 4000):
        for node, address in NODES.items():
            assert " 0% packet loss" in guest.run(f"ping -c 3 -s {size} {address}")
            assert " 0% packet loss" in fabric.run(node, "ping", "-c", "3", "-i", "0.2", "-s", size, guest.address)
    assert f"lladdr {MACS[0]}" in fabric.run("n2", "ip", "neigh", "show", guest.address)


@pytest.mark.parametrize("node", NODES)
def test_rping(fabric, guest, node):
    guest.serve_cm(f"rping -s -a {guest.address} -C 5 -V")
    fabric.run(node, "rping", "-c", "-a", guest.address, "-C", "5", "-V")
    guest.finish()
    server = fabric.start(node, "rping", "-s", "-a", NODES[node], "-C", "5", "-V")
    wait_until(lambda: cm_ids(fabric, node) or server.poll() is not None, "rping listens")
    guest.run(f"rping -c -a {NODES[node]} -C 5 -V")
    fabric.finish(server)
    assert server.returncode == 0


PINGPONGS = ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong -s 1024", "ibv_srq_pingpong -q 4"]


@pytest.mark.parametrize("guest_serves", [False, True], ids=["asks", "serves"])
@pytest.mark.parametrize("program", PINGPONGS)
def test_pingpong(fabric, guest, program, guest_serves):
    port = next(_ports)
    program += " -c -n 50"
    on_node = [*program.split(), "-p", port, "-g", 1]
    if guest_serves:
        guest.serve(pingpong_in(guest, program, port), port)
        texts = [fabric.run("n1", *on_node, guest.address), guest.finish()]
    else:
        server = fabric.serve("n1", *on_node, port=port)
        texts = [guest.run(pingpong_in(guest, program, port, NODES["n1"])), fabric.finish(server)]
    for text in texts:
        assert "50 iters in" in text and "invalid" not in text, text


def test_pingpong_by_ipv6(fabric, guest):
    """By link-local addresses, which nobody has configured."""
    port = next(_ports)
    local = guest.run("ip -6 addr show dev eth0 scope link").split("inet6 ")[1].split("/")[0]
    server = fabric.serve("n2", "ibv_rc_pingpong", "-p", port, "-g", 0, "-c", "-n", "50", port=port)
    texts = [guest.run(f"ibv_rc_pingpong -p {port} -g {guest.gid_index(local)} -c -n 50 {NODES['n2']}"), fabric.finish(server)]
    for text in texts:
        assert "50 iters in" in text and "invalid" not in text, text


# -o: an adapter of softib has 16 reads and atomics outstanding, rxe 128
@pytest.mark.parametrize("node_serves", [False, True], ids=["client", "server"])
@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_bw -o 16", "ib_write_lat", "ib_atomic_lat -o 16", "ib_send_bw -c UD -s 2048"])
def test_perftest(fabric, guest, program, node_serves):
    port = next(_ports)
    command = f"{program} -F -n 200 -p {port}"
    in_guest = f"{command} -d rxe0 -x {guest.gid_index(guest.address)}"
    on_node = [*command.split(), "-d", "softib0", "-x", 1]
    if node_serves:
        server = fabric.serve("n1", *on_node, port=port)
        text = guest.run(f"{in_guest} {NODES['n1']}")
        fabric.finish(server)
        assert server.returncode == 0
    else:
        guest.serve(in_guest, port)
        text = fabric.run("n1", *on_node, guest.address)
        guest.finish()
    assert "Ethernet" in text and " 200 " in text, text


def test_on_the_wire(fabric, guest, tmp_path):
    """tshark finds what it should in what crosses the cable, and nothing that is wrong."""
    port = next(_ports)
    file = tmp_path / "capture.pcapng"
    guest.serve(pingpong_in(guest, "ibv_rc_pingpong -n 20", port), port)
    capture = subprocess.Popen([fabric.program, "capture", "--fabric", "t", "-w", file, "s1:3"], env=fabric.env, stderr=subprocess.DEVNULL)
    fabric.running.append(capture)
    wait_until(lambda: file.exists() and file.stat().st_size, "the capture has begun")
    fabric.run("n1", "ibv_rc_pingpong", "-p", port, "-g", 1, "-n", 20, guest.address)
    guest.finish()
    capture.send_signal(signal.SIGINT)
    assert capture.wait() == 0
    rows = tshark("-r", file, "-Y", "infiniband", "-o", "eth.check_fcs:TRUE", "-T", "fields", "-e", "eth.src", "-e", "ip.src",
                  "-e", "udp.dstport", "-e", "_ws.expert.message").splitlines()
    assert {row.split("\t")[0] for row in rows} == {MACS[0], "02:73:69:00:00:01"}
    # the program asks for a hop limit of 1, which Linux replaces
    assert {tuple(row.split("\t")[1:]) for row in rows} == {(guest.address, "4791", ""),
                                                            (NODES["n1"], "4791", '"Time To Live" only 1')}


def test_two_guests_by_way_of_the_fabric(fabric, guest):
    """A switch of softib's between two kernels. Then one of them is switched off, and the link is down."""
    with booted(plugged(fabric, 4)) as (other,):
        other.run(f"ip addr del {GUESTS[0]}/16 dev eth0; ip addr add {GUESTS[1]}/16 dev eth0")
        other.address = GUESTS[1]
        reach_each_other(guest, other)
        assert cable(fabric, 4)["state"] == "Active"
        other.power_off()
        wait_until(lambda: not cable(fabric, 4)["connected"], "the guest is gone")
        assert cable(fabric, 4)["state"] == "Down"
    for port in (3, 4):
        assert not cable(fabric, port)["malformed"] and not cable(fabric, port)["spoofed"]
