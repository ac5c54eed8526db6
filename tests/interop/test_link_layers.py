# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ports of InfiniBand and of Ethernet on one node, of two adapters and of one."""
import re

import pytest

from interop.commands import softib
from interop.fabric import Fabric
from interop.test_rdma_cm import play
from interop.test_ucx import perftest

CLASS = "/sys/class/infiniband"
LAYERS = ["--link-layer", "infiniband,ethernet"]


@pytest.fixture(scope="module", name="both")
def one_adapter_with_both():
    """Port 1 is InfiniBand's, port 2 Ethernet's, as of an adapter that was configured so."""
    with Fabric("pair", up_args=["--ports", "2", *LAYERS]) as fabric:
        yield fabric


@pytest.fixture(scope="module", name="adapters")
def an_adapter_of_each():
    """Each node has a network of its own."""
    with Fabric("star:3", up_args=["--adapters", "2", "--net", "node", *LAYERS]) as fabric:
        yield fabric


def test_devinfo(adapters):
    out = adapters.run("n2", "ibv_devinfo", "-v")
    infiniband, ethernet = out.split("hca_id:\tsofti")[1:]
    assert "link_layer:\t\tInfiniBand" in infiniband and "RoCE" not in infiniband
    assert re.search(r"max_raw_ethy_qp:\s+0$", infiniband, re.M)
    assert "link_layer:\t\tEthernet" in ethernet
    assert re.search(r"port_lid:\s+0$", ethernet, re.M)
    assert re.search(r"GID\[\s*1\]:\s+::ffff:10\.2\.0\.2, RoCE v2", ethernet)


def test_sysfs(both):
    out = both.run("n1", "sh", "-c", f"cd {CLASS}/softib0/ports && cat */link_layer */gid_attrs/types/0")
    assert out.splitlines() == ["InfiniBand", "Ethernet", "IB/RoCE v1", "RoCE v2"]


def test_the_manager_sees_infiniband_alone(both):
    """Two switches, one of which no SMP reaches; the manager's LIDs and the numbers of
    stations differ."""
    out = both.run("n1", "ibnetdiscover")
    assert out.count("\nSwitch\t") == 1 and out.count("\nCa\t") == 2, out
    assert "s2" not in out
    shown = both.softib("topo")
    assert re.search(r"^s2 .*\n├─  1 .* n1:2  Ethernet  Active$", shown, re.M), shown
    assert re.search(r"^s1 .*, lid \d+\n├─  1 .* n1:1  lid \d+  Active$", shown, re.M), shown


@pytest.mark.parametrize("port, words, link", [(1, [], "IB"), (2, ["-x", "0"], "Ethernet"),
                                               (2, ["-x", "4"], "Ethernet")])
@pytest.mark.parametrize("program", [["ib_write_lat"], ["ib_send_lat", "-c", "UD"], ["ib_read_bw"]])
def test_perftest(both, program, port, words, link):
    """The programs of one adapter use either port."""
    out = both.pair(*program, "-i", port, *words, "-n", "300", "-F")[1]
    assert re.search(rf"Link type\s+: {link}\n", out), out


@pytest.mark.parametrize("port", [1, 2])
def test_a_port_has_no_way_to_the_other_link_layer(both, port):
    """A RoCE address from a port of InfiniBand, a LID from one of Ethernet."""
    program = ("from pyverbs.addr import AH, AHAttr, GID, GlobalRoute\n"
               "from pyverbs.device import Context\nfrom pyverbs.pd import PD\n"
               "from pyverbs.pyverbs_error import PyverbsRDMAError\n"
               "pd = PD(Context(name='softib0'))\n"
               "try:\n    AH(pd, attr=AHAttr(port_num=PORT, dlid=3, is_global=0))\n    print('made')\n"
               "except PyverbsRDMAError:\n    print('refused')\n").replace("PORT", str(port))
    assert both.run("n1", "/usr/bin/python3", "-c", program) == ["made\n", "refused\n"][port - 1]


def test_rdma_cm(adapters):
    """The address says which adapter: one path comes from the subnet administrator, the
    other from the GIDs."""
    for address in ("10.1.0.1", "10.2.0.1", "fd73:6f66:7469:6202::1"):
        client = play(adapters, ["rping", "-s", "-a", address, "-V", "-C", 3],
                      ["rping", "-c", "-a", address, "-v", "-V", "-C", 3], statuses=(0, 255))[1]
        assert client.count("ping data: rdma-ping-") == 3, client


def test_an_interface_of_each(adapters):
    """The node has ib0 and eth1, each in a network of its own."""
    for name, address in ("n2", "10.1.0.2"), ("n2-eth1", "10.2.0.2"):
        out = adapters.run("n1", "ping", "-4", "-c", "1", "-W", "20", name)
        assert "bytes from" in out and address in out, out
    links = adapters.run("n1", "ip", "-brief", "link")
    assert re.findall(r"^\w+", links, re.M) == ["lo", "ib0", "eth1"], links


def test_ucx(both):
    """UCX_NET_DEVICES chooses the port."""
    for port in 1, 2:
        program = ["env", f"UCX_NET_DEVICES=softib0:{port}"]
        out = perftest(both, "tag_lat", "rc,self", program=program)
        assert f"rc_verbs/softib0:{port}" in out and "Final:" in out, out


def test_a_cable_of_each_is_pulled(both):
    """The other link layer does not notice."""
    for switch, port, other in ("s2", 2, 1), ("s1", 1, 2):
        both.softib("link", f"{switch}:1", "down")
        try:
            state = both.run("n1", "sh", "-c", f"cat {CLASS}/softib0/ports/*/state").splitlines()
            assert state[port - 1] == "1: DOWN" and state[other - 1] == "4: ACTIVE"
            words = ["-x", "1"] if other == 2 else []
            both.pair("ib_send_lat", "-i", other, *words, "-n", "100", "-F")
        finally:
            both.softib("link", f"{switch}:1", "up")


FILE = """Switch 4 "core"
[1] "H-0000000000000011"[1]
[2] "H-0000000000000012"[1]
Switch 4 "tor" # "top of rack" link=ethernet
[1] "H-0000000000000011"[2]
[2] "H-0000000000000012"[2]
Ca 3 "H-0000000000000011" # "one"
[3] "H-0000000000000012"[3] # link=ethernet
Ca 3 "H-0000000000000012" # "two"
"""


def test_file(tmp_path):
    """link= in the line of a switch, and of a cable; what is written says the same."""
    path = tmp_path / "mixed.net"
    path.write_text(FILE)
    with Fabric(path) as fabric:
        layers = fabric.run("n1", "sh", "-c", f"cat {CLASS}/softib0/ports/*/link_layer")
        assert layers.split() == ["InfiniBand", "Ethernet", "Ethernet"]
        for port in 2, 3:
            fabric.pair("ib_send_lat", "-i", port, "-x", "1", "-n", "100", "-F")
        written = fabric.softib("topo", "--format", "ibnetdiscover")
        assert written.count("link=ethernet") == 1 + 4, written


def test_refused(home, tmp_path):
    path = tmp_path / "mixed.net"
    path.write_text(FILE)
    for words, says in ((["-l", "infiniband,token-ring"], "infiniband or ethernet"),
                        (["-l", ","], "infiniband or ethernet"),
                        (["-t", "fattree:2,2", *LAYERS], "too many link layers"),
                        (["-t", path, *LAYERS], "link=ethernet in a comment")):
        done = softib(home, "run", *words, "--", "true")
        assert done.returncode and says in done.stderr, done
