# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's rdma (iproute2), which asks the kernel by netlink and softibd here."""
import json
import socket
import struct
import subprocess

import pytest

from interop.fabric import Fabric, guid, by_fours, wait_until
from interop.test_bad_input import abi_open, error_of
from interop.test_nodes import users

OPEN_NETLINK = 6  # src/abi/session.h


@pytest.fixture(scope="module", params=users(), ids=lambda user: "nobody" if user else "self")
def fabric(request):
    with Fabric("star:3", user=request.param) as it:
        yield it
        it.expect_no_leftovers()


def ask(fabric, node, *words):
    return json.loads(fabric.run(node, "rdma", "--json", *words))


def refused(fabric, node, *words, program=("rdma",)):
    """The error that rdma prints."""
    done = subprocess.run(fabric.command(node, [*program, *words]), env=fabric.env, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode, done
    return done.stdout + done.stderr


def test_device_and_port(fabric):
    device, = ask(fabric, "n2", "dev", "show")
    assert (device["ifname"], device["node_type"]) == ("softib0", "ca")
    assert device["node_guid"] == by_fours(guid("n2"))
    port, = ask(fabric, "n2", "-d", "link", "show", "softib0/1")
    assert (port["state"], port["physical_state"], port["lmc"]) == ("ACTIVE", "LINK_UP", 0)
    assert port["lid"] == int(fabric.run("n2", "cat", "/sys/class/infiniband/softib0/ports/1/lid"), 16)
    assert "CM" in port["caps"]
    fabric.softib("link", "n2:1", "down")
    assert ask(fabric, "n2", "link")[0]["state"] == "DOWN"
    fabric.softib("link", "n2:1", "up")
    fabric.softib("wait")
    assert fabric.run("n2", "rdma", "system").split() == ["netns", "shared", "copy-on-fork", "on"]


HOLDER = """
import sys
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
import pyverbs.enums as e
context = Context(name="softib0")
pd, cq = PD(context), CQ(context, 10)
region, srq = MR(pd, 8192, e.IBV_ACCESS_LOCAL_WRITE), SRQ(pd, SrqInitAttr(SrqAttr(8)))
qps = [QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap())) for _ in range(298)]
qps += [QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, srq=srq, cap=QPCap())) for _ in range(2)]
sys.stdin.read()
"""


DUMPS = 40
REQUEST = struct.Struct("=IHHIIHHI")  # nlmsghdr and RDMA_NLDEV_ATTR_DEV_INDEX 0


def whole_dumps(fabric):
    """Ask for all queue pairs many times, more than a socket holds, and read only then.
    Return: how many came in each answer, up to its end"""
    counts = [0] * DUMPS
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(60)
        sock.connect(str(fabric.dir / "netlink"))
        sock.send(abi_open(OPEN_NETLINK, node=b"n1"))
        assert not error_of(sock.recv(64))
        for number in range(DUMPS):
            sock.send(REQUEST.pack(REQUEST.size, 5 << 10 | 10, 0x305, number, 0, 8, 1, 0))
        ended = 0
        while ended < DUMPS:
            data = sock.recv(4096)
            assert data, "softibd ended the connection"
            while data:
                length, kind, _, number = struct.unpack_from("=IHHI", data)
                counts[number] += kind != 3  # NLMSG_DONE
                assert kind != 3 or number == ended, "an end out of turn"
                ended += kind == 3
                data = data[(length + 3) & ~3:]
    return counts


def test_what_a_program_holds(fabric):
    """Its objects name it; other nodes see none of them; they go with it."""
    before = ask(fabric, "n1", "resource")
    holder = fabric.start("n1", "/usr/bin/python3", "-c", HOLDER, stdin=subprocess.PIPE)

    def mine(kind):
        return [row for row in ask(fabric, "n1", "res", "show", kind) if row.get("pid") == holder.pid]

    wait_until(lambda: len(mine("qp")) == 300 or holder.poll() is not None, "it has its queue pairs")
    assert holder.poll() is None, holder.stdout.read()
    (context,), (pd,), (cq,), (region,), (srq,) = (mine(kind) for kind in ("ctx", "pd", "cq", "mr", "srq"))
    assert pd["ctxn"] == cq["ctxn"] == context["ctxn"] and cq["users"] == 600
    assert (region["mrlen"], region["pdn"], srq["pdn"]) == (8192, pd["pdn"], pd["pdn"])
    first, last = (qp["lqpn"] for qp in mine("qp")[-2:])
    assert srq["lqpn"] == [f"{first}-{last}"]
    one = mine("qp")[7]
    assert (one["type"], one["state"], one["comm"], one["pdn"]) == ("RC", "RESET", "python3", pd["pdn"])
    assert ask(fabric, "n1", "res", "show", "qp", "lqpn", str(one["lqpn"]))[0]["lqpn"] == one["lqpn"]
    assert not any(row.get("pid") == holder.pid for row in ask(fabric, "n2", "res", "show", "qp"))
    assert whole_dumps(fabric) == [302] * DUMPS
    holder.kill()
    holder.wait()
    wait_until(lambda: ask(fabric, "n1", "resource") == before, "its objects are gone")


def test_states_of_connected_queue_pairs(fabric):
    server = fabric.serve("n1", "ib_write_bw", "-D", "60", "-p", "18931", port=18931)
    client = fabric.start("n3", "ib_write_bw", "-D", "60", "-p", "18931", "127.0.0.1")

    def of(node, state):
        return [qp for qp in ask(fabric, node, "res", "show", "qp", "state", state) if qp.get("comm") == "ib_write_bw"]

    wait_until(lambda: of("n1", "RTR") and of("n3", "RTS"), "they are connected")
    (responder,), (requester,) = of("n1", "RTR"), of("n3", "RTS")
    assert (responder["rqpn"], requester["rqpn"]) == (requester["lqpn"], responder["lqpn"])
    assert (responder["rq-psn"], requester["path-mig-state"]) == (requester["sq-psn"], "MIGRATED")
    counters, = ask(fabric, "n3", "statistic", "show", "link", "softib0/1")
    wait_until(lambda: ask(fabric, "n3", "statistic", "show", "link", "softib0/1")[0]["sent_pkts"] >
               counters["sent_pkts"], "packets are counted")
    for process in (client, server):
        process.kill()
        process.wait()


def test_ids_of_the_rdma_cm(fabric):
    """As Linux lists them: with port space, state, addresses and queue pair. A listener on every
    address is at each device, and on no port of it."""
    server = fabric.start("n1", "rping", "-s", "-a", "10.1.0.1")
    anywhere = fabric.start("n3", "ucmatose")

    def ids(node, *words):
        return ask(fabric, node, "res", "show", "cm_id", *words)

    wait_until(lambda: ids("n1") and ids("n3"), "they listen")
    client = fabric.start("n2", "rping", "-c", "-a", "10.1.0.1", "-C", "100000000")
    wait_until(lambda: ids("n1", "state", "CONNECT") and ids("n2", "state", "CONNECT"), "they are connected")
    (listener,), (passive,) = ids("n1", "state", "LISTEN"), ids("n1", "state", "CONNECT")
    (active,), (other,) = ids("n2"), ids("n3")
    assert (listener["ps"], listener["port"], listener["src-addr"]) == ("TCP", 1, "10.1.0.1:7174")
    assert (other["state"], other["src-addr"], other["pid"]) == ("LISTEN", "0.0.0.0:7471", anywhere.pid)
    assert "port" not in other and "lqpn" not in other
    assert (active["dst-addr"], active["src-addr"]) == (passive["src-addr"], passive["dst-addr"])
    assert (active["pid"], active["comm"], active["qp-type"]) == (client.pid, "rping", "RC")
    qp, = (qp for qp in ask(fabric, "n2", "res", "show", "qp") if qp.get("pid") == client.pid)
    assert active["lqpn"] == qp["lqpn"]
    assert len(ids("n1", "link", "softib0/1")) == 2 and not ids("n3", "link", "softib0/1")
    assert ask(fabric, "n1", "resource")[0]["cm_id"] == 2
    for process in (client, server, anywhere):
        process.kill()
        process.wait()
    wait_until(lambda: not any(map(ids, ("n1", "n2", "n3"))), "their ids are gone")


@pytest.mark.parametrize("words,error", [
    (["dev", "show", "nix"], "Wrong device name"),
    (["dev", "set", "softib0", "name", "mine"], "Operation not supported"),
    (["link", "add", "rxe0", "type", "rxe", "netdev", "lo"], "Operation not supported"),
    (["system", "set", "netns", "exclusive"], "Operation not supported"),
], ids=["get", "rename", "add", "set"])
def test_what_is_refused(fabric, words, error):
    assert error in refused(fabric, "n1", *words)


def test_ethernet(fabric):
    with Fabric("pair", sm="none", up_args=["--link-layer", "ethernet"], user=fabric.user) as roce:
        port, = ask(roce, "n1", "link")
        assert port["state"] == "ACTIVE" and "lid" not in port


def test_other_netlink_sockets_are_the_kernels(fabric):
    """ip and ss load the same library."""
    assert "127.0.0.1" in fabric.run("n1", "ip", "-4", "address", "show", "lo")
    fabric.run("n1", "ss", "-ltn")


def test_a_fabric_that_is_gone(fabric):
    assert "NETLINK_RDMA" in refused(fabric, "n1", "dev", program=["env", "SOFTIB_DIR=/nowhere", "rdma"])
