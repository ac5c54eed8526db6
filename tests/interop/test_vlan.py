# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""VLAN interfaces of ports of Ethernet: entries of the GID table, and what they reach."""
import errno
import re

import pytest

from interop.commands import softib
from interop.fabric import BUILD, Fabric
from interop.test_capture import Capture, tshark
from interop.test_rdma_cm import play
from interop.test_ucx import perftest

PORT = "/sys/class/infiniband/softib0/ports/1"
UNTAGGED, IN_100, IN_200 = range(0, 3), range(6, 9), range(12, 15)  # entries of version 2
MODES = {"softibd": {"SOFTIB_LANES": "0"}, "lanes": {}}


@pytest.fixture(scope="module", name="vlans")
def three_nodes():
    """n3 is no member of VLAN 200."""
    with Fabric("star:3", sm="none", up_args=["--link-layer", "ethernet", "--vlan", "100,200:n1+n2"]) as fabric:
        yield fabric


def gids(fabric, node):
    """{index: GID} as ibv_devinfo prints it, of version 2"""
    out = fabric.run(node, "ibv_devinfo", "-v")
    return {int(index): gid for index, gid in re.findall(r"GID\[ *(\d+)\]:\s+(\S+), RoCE v2", out)}


def test_table(vlans):
    """Each VLAN has the port's link-local address and addresses in networks of its own."""
    link_local = "fe80::73:69ff:fe00:1"
    assert gids(vlans, "n1") == {
        0: link_local, 1: "::ffff:10.1.0.1", 2: "fd73:6f66:7469:6201::1",
        6: link_local, 7: "::ffff:10.2.0.1", 8: "fd73:6f66:7469:6202::1",
        12: link_local, 13: "::ffff:10.3.0.1", 14: "fd73:6f66:7469:6203::1"}
    assert set(gids(vlans, "n3")) == {*UNTAGGED, *IN_100}


def test_sysfs(vlans):
    """What show_gids reads."""
    out = vlans.run("n2", "sh", "-c", f"cd {PORT} && for i in 0 7 10 13; do "
                                      "echo $(cat gids/$i gid_attrs/types/$i gid_attrs/ndevs/$i); done")
    assert out.splitlines() == [
        "fe80:0000:0000:0000:0073:69ff:fe00:0002 RoCE v2 eth0",
        "0000:0000:0000:0000:0000:ffff:0a02:0002 RoCE v2 eth0.100",
        "0000:0000:0000:0000:0000:ffff:0a02:0002 IB/RoCE v1 eth0.100",
        "0000:0000:0000:0000:0000:ffff:0a03:0002 RoCE v2 eth0.200"]
    assert vlans.run("n2", "cat", f"{PORT}/lid_mask_count").strip() == "0"


def test_verbs(vlans):
    """An entry reaches the GIDs of its own VLAN, and the receiver is told which one it was."""
    out = vlans.run("n1", BUILD / "tests/programs/vlan_datagrams")
    reach = [*UNTAGGED, *IN_100, *IN_200]
    lines = out.splitlines()
    assert len(lines) == len(reach)
    for entries, vid, vlan in (UNTAGGED, 65535, 0), (IN_100, 100, 100), (IN_200, 200, 200):
        for i in entries:
            line = lines[reach.index(i)]
            # a link-local address is the port's own in each of its VLANs
            to = sorted({*entries, *(range(0, 13, 6))})
            assert line == f"{i}: {vid} {vlan} {i} to {' '.join(map(str, to))}", out


WAYS = """
import sys
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from ipaddress import IPv6Address
pd = PD(Context(name="softib0"))
for index, gid in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        AH(pd, attr=AHAttr(gr=GlobalRoute(sgid_index=int(index), dgid=GID(IPv6Address(gid).exploded)), is_global=1))
        print(0)
    except PyverbsRDMAError as err:
        print(err.error_code)
"""


def test_no_way_to_another_vlan(vlans):
    """Nor to a node that is no member, by whichever of its addresses."""
    to_n2, to_n3 = gids(vlans, "n2"), gids(vlans, "n3")
    rows = [(1, to_n2[1], 0), (1, to_n2[7], errno.EHOSTUNREACH), (7, to_n2[7], 0),
            (7, to_n2[13], errno.EHOSTUNREACH), (13, to_n2[13], 0), (13, to_n2[1], errno.EHOSTUNREACH),
            (7, to_n3[7], 0), (6, to_n3[0], 0), (12, to_n2[0], 0), (12, to_n3[0], errno.EHOSTUNREACH),
            (13, "::ffff:10.3.0.3", errno.EHOSTUNREACH), (13, "ff0e::1", 0),
            (18, to_n2[1], errno.EINVAL), (40, to_n2[1], errno.EINVAL)]
    words = [str(word) for index, gid, _ in rows for word in (index, gid)]
    out = vlans.run("n1", "/usr/bin/python3", "-c", WAYS, *words)
    assert [int(line) for line in out.split()] == [error for _, _, error in rows]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong"])
@pytest.mark.parametrize("gid", [6, 7, 16])
def test_pingpong(vlans, program, gid, mode, monkeypatch):
    for name, value in MODES[mode].items():
        monkeypatch.setitem(vlans.env, name, value)
    server, client = vlans.pair(program, "-n", "100", "-g", gid)
    assert "100 iters in" in server and "100 iters in" in client


@pytest.mark.parametrize("gid", [0, 7, 13])
def test_perftest(vlans, gid):
    for program in ["ib_write_bw"], ["ib_read_lat"], ["ib_send_lat", "-c", "UD"], ["ib_atomic_lat"]:
        out = vlans.pair(*program, "-x", gid, "-n", "200", "-F")[1]
        assert re.search(rf"GID index\s+: {gid}\n", out), out


def test_on_the_wire(vlans):
    """tshark reads RoCEv2 with the tag of the entry's VLAN, of IPv4 and IPv6, and none without a VLAN."""
    capture = Capture(vlans, "n1:1")
    for gid in (0, 7, 14):
        vlans.pair("ib_send_bw", "-c", "UD", "-x", gid, "-n", "10", "-F")
        vlans.pair("ib_write_bw", "-x", gid, "-n", "10", "-s", "65536", "-F")
    out = tshark("-r", capture.end(), "--disable-protocol", "rpcordma", "-o", "ip.check_checksum:TRUE", "-T", "fields",
                 "-E", "separator=|", *(word for field in ("vlan.id", "ip.src", "ipv6.src", "eth.src", "udp.dstport",
                                                           "infiniband.bth.opcode", "ip.checksum.status", "_ws.malformed")
                                        for word in ("-e", field)))
    rows = [line.split("|") for line in out.splitlines()]
    local, planned = "fe80::73:69ff:fe00:{}", "fd73:6f66:7469:6203::{}"
    senders = {(row[0], row[1] or row[2], row[3]) for row in rows}
    assert senders == {(vlan, address.format(n), f"02:73:69:00:00:0{n}") for n in (1, 2)
                       for vlan, address in (("", local), ("100", "10.2.0.{}"), ("200", planned))}, senders
    assert {row[4] for row in rows} == {"4791"} and not any(row[7] for row in rows), rows[:5]
    assert {"100", "6", "17"} <= {row[5] for row in rows}, "UD, RC WRITE and ACK"
    assert {row[6] for row in rows if row[1]} == {"1"}, "good"


def test_rdma_cm(vlans):
    """An address of a VLAN leads from the interface of this VLAN; a node that has none
    reaches nobody there."""
    for address in ("10.2.0.1", "10.3.0.1", "fd73:6f66:7469:6203::1"):
        client = play(vlans, ["rping", "-s", "-a", address, "-V", "-C", 3],
                      ["rping", "-c", "-a", address, "-v", "-V", "-C", 3], statuses=(0, 255))[1]
        assert client.count("ping data: rdma-ping-") == 3, client
    out = vlans.run("n3", "rping", "-c", "-a", "10.3.0.1", "-C", 1, check=False)
    assert "No route to host" in out, out


@pytest.mark.parametrize("gid", [1, 13])
def test_ucx(vlans, gid):
    for transports in "rc,self", "ud,self":
        out = perftest(vlans, "tag_lat", transports, program=["env", f"UCX_IB_GID_INDEX={gid}"])
        assert "Final:" in out, out


def test_refused(home):
    ethernet = ["-l", "ethernet"]
    for words, says in (([*ethernet, "--vlan", "0"], "from 1 to 4094"),
                        ([*ethernet, "--vlan", "4095"], "from 1 to 4094"),
                        ([*ethernet, "--vlan", "7x"], "from 1 to 4094"),
                        ([*ethernet, "--vlan", ","], "from 1 to 4094"),
                        ([*ethernet, "--vlan", "7,7"], "7 is there twice"),
                        ([*ethernet, "--vlan", "1,2,3,4,5"], "at most 4 VLANs"),
                        ([*ethernet, "--vlan", "7:n9"], "'n9' is no node"),
                        ([*ethernet, "--vlan", "7:s1"], "'s1' is no node"),
                        ([*ethernet, "--vlan", "7", "--ip", "255.254.0.0/15"], "VLAN interfaces"),
                        (["--vlan", "7"], "no port is Ethernet's")):
        done = softib(home, "run", *words, "--", "true")
        assert done.returncode and says in done.stderr, (words, done)
