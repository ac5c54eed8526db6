# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""RoCE: a fabric of Ethernet links, as programs see it."""
import errno
import re

import pytest

from interop.commands import softib
from interop.fabric import BUILD, Fabric, wait_until
from interop.test_rdma_cm import play
from interop.test_ucx import perftest

PORT = "/sys/class/infiniband/softib0/ports/1"


@pytest.fixture(scope="module", name="roce")
def roce_pair():
    with Fabric("pair", sm="none", up_args=["--link-layer", "ethernet"]) as fabric:
        yield fabric


def test_devinfo(roce):
    out = roce.run("n2", "ibv_devinfo", "-v")
    for line in (r"state:\s+PORT_ACTIVE", r"link_layer:\s+Ethernet", r"port_lid:\s+0$",
                 r"sm_lid:\s+0$", r"pkey_tbl_len:\s+1$",
                 r"GID\[\s*0\]:\s+fe80::73:69ff:fe00:2, RoCE v2",
                 r"GID\[\s*1\]:\s+::ffff:10\.1\.0\.2, RoCE v2", r"GID\[\s*4\]:\s+\S+, RoCE v1"):
        assert re.search(line, out, re.M), (line, out)


def test_sysfs(roce):
    out = roce.run("n1", "sh", "-c", f"cd {PORT} && cat link_layer lid gids/1 gid_attrs/types/1 "
                                     "gid_attrs/types/3")
    assert out.splitlines() == ["Ethernet", "0x0", "0000:0000:0000:0000:0000:ffff:0a01:0001",
                                "RoCE v2", "IB/RoCE v1"]


def test_managers_find_no_port(roce):
    """There is nothing to manage, and the tools say so."""
    out = roce.run("n1", "ibstat", "softib0", "1")
    assert "Base lid: 0" in out and "Link layer: Ethernet" in out
    assert roce.run("n1", "ibnetdiscover", check=False).strip().count("\n") < 5


@pytest.mark.parametrize("program", ["ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong",
                                     "ibv_srq_pingpong"])
@pytest.mark.parametrize("gid", [0, 1, 5])
def test_pingpong(roce, program, gid):
    server, client = roce.pair(program, "-n", "200", "-g", gid)
    assert "200 iters in" in server and "200 iters in" in client


PATHS = """
from ipaddress import IPv6Address
from pyverbs.addr import AH, AHAttr, GID, GlobalRoute
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError

pd = PD(Context(name="softib0"))
for gid, is_global, index in (("::ffff:10.1.0.1", 1, 1), ("::ffff:10.1.0.1", 0, 1),
                              ("::ffff:10.1.0.1", 1, 7), ("::ffff:10.1.0.99", 1, 1),
                              ("ff0e::1", 1, 1)):
    try:
        AH(pd, attr=AHAttr(gr=GlobalRoute(sgid_index=index, dgid=GID(IPv6Address(gid).exploded)), is_global=is_global))
        print(0)
    except PyverbsRDMAError as err:
        print(err.error_code)
"""


def test_paths(roce):
    """They need a GRH, an entry of the GID table, and a port that has the GID."""
    out = roce.run("n1", "/usr/bin/python3", "-c", PATHS)
    assert [int(line) for line in out.split()] == [0, errno.EINVAL, errno.EINVAL,
                                                   errno.EHOSTUNREACH, 0]


def test_perftest(roce):
    for program in ("ib_send_bw", "ib_write_lat"):
        out = roce.pair(program, "-n", "500", "-F")[1]
        assert re.search(r"Link type\s+: Ethernet", out), out
    roce.pair("ib_send_lat", "-c", "UD", "-x", "0", "-n", "500", "-F")


def test_rdma_cm(roce):
    for address in ("10.1.0.1", "fd73:6f66:7469:6201::1"):
        client = play(roce, ["rping", "-s", "-a", address, "-V", "-C", 5],
                      ["rping", "-c", "-a", address, "-v", "-V", "-C", 5], statuses=(0, 255))[1]
        assert client.count("ping data: rdma-ping-") == 5, client
    play(roce, ["udaddy"], ["udaddy", "-s", "10.1.0.1"])


def test_ucx(roce):
    """UCX chooses an entry of the GID table, and sets more bits than a flow label has."""
    for transport in ("rc", "ud"):
        assert "Final:" in perftest(roce, "tag_lat", f"{transport},self")


MAC = "02:73:69:00:00:{:02}".format


UDP4 = ["-j", "10.0.0.1", "-J", "10.0.0.2", "-k", "5001", "-K", "5000"]
UDP6 = ["-j", "fd00::1", "-J", "fd00::2", "-k", "5001", "-K", "5000", "--raw_ipv6"]


@pytest.mark.parametrize("extra", [[], [*UDP4, "--tcp"], UDP6, ["--vlan_en", "--vlan_pcp", "3"],
                                   ["--promiscuous"], ["--sniffer"], [*UDP4, "--hop_limit=3"], ["--use-srq"],
                                   ["--recv_post_list=10"], ["--ethertype", "0x88b5"]],
                         ids="_".join)
def test_raw_packets(roce, extra):
    """Frames from one raw packet QP to another, steered by the MAC address. The sender does
    not wait for its receiver, so it sends again until that has had enough."""
    args = ["-d", "softib0", "-n", "300", "-s", "1000", "-F", *extra]
    server = roce.start("n1", "raw_ethernet_bw", "--server", "-B", MAC(1), "-E", MAC(2), *args)

    def send():
        roce.run("n2", "raw_ethernet_bw", "--client", "-B", MAC(2), "-E", MAC(1), *args)
        return server.poll() is not None

    wait_until(send, "the server has received its frames")
    out = roce.finish(server)
    assert server.returncode == 0 and re.search(r"^ 1000 +300 ", out, re.M), out


def test_flows_of_raw_packets(roce):
    """UDP ports that change from frame to frame, each with a rule of its own."""
    args = ["-d", "softib0", "-n", "300", "-s", "1000", "-F", "--flows", "4"]
    to = ["-j", "10.0.0.1", "-J", "10.0.0.2", "-k", "5001", "-K", "5000"]
    server = roce.start("n1", "raw_ethernet_bw", "--server", "-B", MAC(1), "-E", MAC(2), *args, *to)

    def send():
        roce.run("n2", "raw_ethernet_bw", "--client", "-B", MAC(2), "-E", MAC(1), *args, *to)
        return server.poll() is not None

    wait_until(send, "the server has received 300 frames")
    out = roce.finish(server)
    assert server.returncode == 0 and re.search(r"^ 1000 +300 ", out, re.M), out


# perftest's bursts need pacing by the adapter, at least 16 frames in a burst, and a completion of each
BURSTS = ["--rate_limit_type=PP", "--rate_units=M", "--rate_limit=1000", "--burst_size=100", "-Q", "1"]


@pytest.mark.parametrize("program,extra", [("raw_ethernet_lat", []), ("raw_ethernet_burst_lat", BURSTS)])
def test_latency_of_raw_packets(roce, program, extra):
    """A frame that comes before the server is ready is lost, and then both wait: again."""
    args = ["-d", "softib0", "-n", "100", "-s", "100", "-F", *extra]

    def exchanged():
        server = roce.start("n1", program, "--server", "-B", MAC(1), "-E", MAC(2), *args)
        wait_until(lambda: any(row["details"] == "RAW, RTS" for row in roce.user_resources()
                               if row["type"] == "qp"), "its QP is up")
        out = roce.run("n2", "timeout", "5", program, "--client", "-B", MAC(2), "-E",
                       MAC(1), *args, check=False)
        if not re.search(r"^ 100 +100 ", out, re.M):
            server.kill()
        roce.finish(server)
        return server.returncode == 0

    wait_until(exchanged, "100 frames went there and back")


def test_bursts_without_pacing(roce):
    """perftest chooses the rate limit that it refuses of its latency tests."""
    out = roce.run("n2", "raw_ethernet_burst_lat", "--client", "-B", MAC(2), "-E", MAC(1), "-d", "softib0", "-F",
                   status=1)
    assert "SW Rate limiter cann't be executed on non-BW" in out, out


def test_rate_of_rules(roce):
    """1,000 rules are made, and go with their program."""
    out = roce.run("n1", "raw_ethernet_fs_rate", "--server", "-B", MAC(1), "-E", MAC(2), "-d",
                   "softib0", "-F")
    assert re.search(r"^1000 +\S+ ", out, re.M), out
    wait_until(lambda: not roce.user_resources(), "its objects are gone")


def test_counters(roce):
    """A rule counts its frames; the program checks every verb of counters objects."""
    assert roce.run("n1", BUILD / "tests/programs/count_frames", MAC(1)) == "counted\n"


def test_a_work_queue_whose_cq_overruns(roce):
    events = roce.run("n1", BUILD / "tests/programs/overrun_queue", MAC(1)).splitlines()
    assert sorted(events) == ["CQ error", "WQ fatal"] and events[-1] == "WQ fatal"


def test_rules_for_vlan_tags(roce):
    """A mask selects the VLAN, the priority or both, and a frame without a tag has neither."""
    assert roce.run("n1", BUILD / "tests/programs/vlan_rules", MAC(1)) == "steered\n"


def test_tags_of_rules(roce):
    """Completions of an extended CQ have the tag of the rule that steered their frame."""
    assert roce.run("n1", BUILD / "tests/programs/tag_frames", MAC(1)) == "tagged\n"


def test_pacing_as_the_manual_says(roce):
    assert roce.run("n1", BUILD / "tests/programs/pace_frames") == "paced\n"


def test_pacing_of_perftest(roce):
    """A rate is a maximum: 4 MiB/s, of which a millisecond may be sent ahead."""
    out = roce.run("n2", "raw_ethernet_bw", "--client", "-B", MAC(2), "-E", MAC(1), "-d", "softib0",
                   "-s", "1000", "-n", "2000", "-F", "--rate_limit_type=PP", "--rate_units=M",
                   "--rate_limit=4")
    average = re.search(r"^ 1000 +2000 +\S+ +(\S+)", out, re.M)
    assert average and 0 < float(average[1]) < 4.05, out


def test_path(roce):
    path = roce.json("path", "n1", "n2")
    assert path["dgid"] == "fe80:0000:0000:0000:0073:69ff:fe00:0002" and path["hop_limit"] > 1


def test_what_belongs_to_infiniband_is_refused(home):
    for option, value, says in (("--sm", "softib-sm", "no subnet manager"),
                                ("--link-layer", "token-ring", "infiniband or ethernet")):
        done = softib(home, "run", "--link-layer", "ethernet", option, value, "--", "true")
        assert done.returncode and says in done.stderr, done
