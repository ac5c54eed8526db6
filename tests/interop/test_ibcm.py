# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that use the CM itself, by libibcm: each function of it, connections between two nodes, and the
death of a program at each step of one."""
import re
import subprocess

import pytest

from interop.fabric import BUILD, SOFTIB, TIMEOUT, kill, link_local, wait_until
from interop.test_bad_input import node_lid
from interop.test_cm_steps import take
from interop.test_rdma_cm import SERVER_IP, cm_ids
from interop.test_trace import Trace, in_order

CALLS, SIDE = (BUILD / "tests/programs" / program for program in ("ibcm_calls", "ibcm_side"))
PARTS = ["connected", "rejected", "withdrawn", "established by data", "alternate path", "resolved", "nobody listens",
         "refused", "destroyed while in use", "gone with its id"]
SERVICE = "0x1000000000005678"


def test_each_call(pair):
    assert pair.run("n1", CALLS).splitlines() == PARTS
    pair.expect_no_leftovers()


def test_no_call_is_left_out():
    """rdma-core's library had 21 symbols."""
    out = subprocess.run(["nm", "-D", "-u", CALLS], capture_output=True, text=True, check=True).stdout
    assert len(set(re.findall(r"(ib_cm_\w+)@IBCM_1.0", out))) == 21


def start_server(fabric, last):
    server = fabric.start("n1", SIDE, "server", last)
    take(server, "listen")
    return server


def start_client(fabric, last):
    return fabric.start("n2", SIDE, "client", last, node_lid(fabric, "n1"), link_local("n1"))


def expect_ids(fabric, node, number):
    wait_until(lambda: len(cm_ids(fabric, node)) == number, lambda: f"{number} ids: {cm_ids(fabric, node)}")


def test_two_nodes(pair):
    server = start_server(pair, "received")
    client = start_client(pair, "disconnected")
    take(server, "received")
    take(client, "disconnected")
    assert take(server, "DREQ_RECEIVED") == []
    take(client, "TIMEWAIT_EXIT")
    for side in server, client:
        kill(side)
    for node in "n1", "n2":
        expect_ids(pair, node, 0)


def test_resources_name_the_program(pair):
    server = start_server(pair, "received")
    client = start_client(pair, "sent")
    take(client, "sent")
    take(server, "received")
    ids = cm_ids(pair, "n1")
    assert len(ids) == 2 and {row["pid"] for row in ids} == {server.pid} and {
        row["comm"] for row in ids} == {"ibcm_side"}
    assert any(SERVICE in row["details"] for row in ids)
    for side in server, client:
        kill(side)
    for node in "n1", "n2":
        expect_ids(pair, node, 0)


@pytest.mark.parametrize("step,last,told", [
    ("listen", "connect", "REJ_RECEIVED"), ("request", "connect", "REJ_RECEIVED"),
    ("accept", "ready", "DREQ_RECEIVED"), ("received", "sent", "DREQ_RECEIVED")])
def test_a_server_dies(pair, step, last, told):
    server = start_server(pair, step)
    client = start_client(pair, last)
    if step != "listen":
        take(server, step)
    take(client, last)
    if step == "listen":  # the request has come, and is not looked at
        expect_ids(pair, "n1", 2)
    if step == "accept":
        take(server, "RTU_RECEIVED")
    kill(server)
    take(client, told)
    expect_ids(pair, "n1", 0)
    kill(client)
    expect_ids(pair, "n2", 0)
    kill(start_server(pair, "listen"))  # the service id is free again


@pytest.mark.parametrize("step,last,told", [
    ("connect", "request", "REJ_RECEIVED"), ("ready", "established", "DREQ_RECEIVED"),
    ("sent", "received", "DREQ_RECEIVED")])
def test_a_client_dies(pair, step, last, told):
    server = start_server(pair, last)
    client = start_client(pair, step)
    take(server, last)
    take(client, step)
    kill(client)
    take(server, told)
    expect_ids(pair, "n2", 0)
    kill(server)
    expect_ids(pair, "n1", 0)


def test_beside_the_rdma_cm(pair):
    """A program of the RDMA CM and one of the CM have one adapter, and each what is sent to it."""
    server = start_server(pair, "received")
    rping = pair.start("n1", "rping", "-s", "-a", SERVER_IP, "-C", 3)
    expect_ids(pair, "n1", 2)
    pair.run("n2", "rping", "-c", "-a", SERVER_IP, "-C", 3)
    pair.finish(rping)
    client = start_client(pair, "sent")
    take(server, "received")
    for side in client, server:
        kill(side)
    for node in "n1", "n2":
        expect_ids(pair, node, 0)



def test_traced(pair):
    """The messages and states of its ids are those of the CM."""
    trace = Trace(pair, "n2", "--modules", "cm")
    server = start_server(pair, "received")
    client = start_client(pair, "disconnected")
    take(client, "disconnected")
    events = trace.events()
    in_order(events, *({"event": event, key: value} for event, key, value in (
        ("cm_send", "message", "REQ"), ("cm_receive", "message", "REP"), ("cm_send", "message", "RTU"),
        ("cm_state", "to", "ESTABLISHED"), ("cm_send", "message", "DREQ"), ("cm_receive", "message", "DREP"))))
    for side in client, server:
        kill(side)
    for node in "n1", "n2":
        expect_ids(pair, node, 0)


def test_files(pair):
    """What rdma-core's library reads before it opens the device file, and that file."""
    done = subprocess.run([SOFTIB, "exec", "--fabric", "t", "--devices", "n1", "--", "sh", "-ec",
                           "cd /sys/class/infiniband_cm; cat abi_version ucm0/ibdev; test -c /dev/infiniband/ucm0"],
                          env=pair.env, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert done.stdout.splitlines() == ["5", "softib0"]
