# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Nodes with an Ethernet interface beside each port of RoCE: what a host runs on it, and what its
kernel and RDMA programs make of it. test_ethernet.py is about RoCE without interfaces."""
import json
import subprocess

import pytest

from interop.commands import processes
from interop.fabric import TIMEOUT, Fabric, wait_until
from interop.test_capture import tshark
from interop.test_ipoib import serve
from interop.test_nodes import KINDS, allowed, holders, mounted, on, users
from interop.test_rdma_cm import perftest_in_time, play

MTU = 4200  # of a new interface: with all headers of RDMA there is room for 4096 bytes of payload
ACTIVE_MTU = {1500: 1024, 2200: 2048, 4191: 2048, 4192: 4096, 9000: 4096}  # of RDMA: by that of the interface
IPV6 = "fd73:6f66:7469:6201::{}".format
LINK_LOCAL = "fe80::73:69ff:fe00:{}".format
pytestmark = pytest.mark.skipif(not allowed(()), reason="the kernel allows no network namespaces")


@pytest.fixture(scope="module", name="roce", params=users(), ids=lambda user: "nobody" if user else "self")
def roce_star(request):
    with Fabric("star:3", sm="none", up_args=("--link-layer", "ethernet", "--net", "node"),
                user=request.param) as fabric:
        yield fabric


def test_the_interface(roce):
    """It has the port's MAC address, which is in its first GID, and the addresses of the other GIDs."""
    link = json.loads(on(roce, "n2", "ip", "-json", "addr", "show", "eth0"))[0]
    assert link["address"] == "02:73:69:00:00:02" and link["link_type"] == "ether" and link["mtu"] == MTU
    addresses = {f"{each['local']}/{each['prefixlen']}" for each in link["addr_info"]}
    assert addresses == {"10.1.0.2/16", f"{IPV6(2)}/64", f"{LINK_LOCAL(2)}/64"}
    gids = on(roce, "n2", "ibv_devinfo", "-v")
    for address in ("::ffff:10.1.0.2", IPV6(2), LINK_LOCAL(2)):
        assert f"{address}, RoCE v2" in gids, gids
    ndev = on(roce, "n2", "cat", "/sys/class/infiniband/softib0/ports/1/gid_attrs/ndevs/1")
    assert ndev == "eth0\n" and "eth0" in on(roce, "n2", "ls", "/sys/class/net")
    port, = json.loads(on(roce, "n2", "rdma", "--json", "link"))
    assert (port["netdev"], port["netdev_index"]) == ("eth0", link["ifindex"])
    assert "3 Ethernet interfaces" in roce.softib("status", "--fabric", "t")


def test_ping_of_all_sizes(roce):
    for version, headers in (("-4", 28), ("-6", 48)):
        for size, flags in ((0, []), (MTU - headers, ["-M", "do"]), (MTU - headers + 1, []), (60000, [])):
            assert " 0% packet loss" in on(roce, "n1", "ping", version, "-c", "2", "-i", "0.2", "-W", "5", "-s", str(size),
                                           *flags, "n2"), (version, size)
    for address in (LINK_LOCAL(3) + "%eth0", IPV6(3), "10.1.0.3"):
        assert " 0% packet loss" in on(roce, "n2", "ping", "-c", "1", "-W", "5", address)
    assert "lladdr 02:73:69:00:00:03" in on(roce, "n2", "ip", "neigh", "show", "10.1.0.3")


def set_mtu(fabric, mtu, *nodes):
    """And wait until RDMA has noticed it."""
    for node in nodes:
        on(fabric, node, "ip", "link", "set", "eth0", "mtu", str(mtu))
        wait_until(lambda node=node: f"active_mtu:\t\t{ACTIVE_MTU[mtu]} " in on(fabric, node, "ibv_devinfo"),
                   f"the MTU of {node}'s port")


def counters_of(fabric, node):
    """What softibd has counted at the node's eth0."""
    return fabric.json("eth", "--fabric", "t", node)[0]


@pytest.fixture(name="any_mtu")
def with_the_mtu_restored(roce):
    yield roce
    for node in ("n1", "n2"):
        on(roce, node, "ip", "link", "set", "eth0", "mtu", str(MTU))
        wait_until(lambda node=node: "active_mtu:\t\t4096 " in on(roce, node, "ibv_devinfo"), "the MTU is back")


@pytest.mark.parametrize("mtu", ACTIVE_MTU)
def test_mtu(any_mtu, mtu):
    """ip link set eth0 mtu: IP packets of that size pass whole, and RDMA uses the largest payload that fits."""
    set_mtu(any_mtu, mtu, "n1", "n2")
    for version, headers in (("-4", 28), ("-6", 48)):
        assert " 0% packet loss" in on(any_mtu, "n1", "ping", version, "-c", "2", "-i", "0.2", "-W", "5", "-M", "do",
                                       "-s", str(mtu - headers), "n2"), version
    too_long = on(any_mtu, "n1", "sh", "-c", f"ping -c 1 -W 1 -M do -s {mtu - 27} n2 2>&1 || true")
    assert "too long" in too_long, too_long
    server = serve(any_mtu, "n2", 5305, "iperf3", "-s", "-p", "5305")
    done = json.loads(on(any_mtu, "n1", "iperf3", "--json", "-p", "5305", "-c", "n2", "-n", "8M"))
    assert done["end"]["sum_received"]["bytes"] > 1 << 20
    server.terminate()
    out = any_mtu.pair("ib_write_bw", "-F", "-n", "100")[1]
    assert f"Mtu             : {ACTIVE_MTU[mtu]}[B]" in out, out


def test_a_frame_beyond_the_mtu(any_mtu):
    """It is dropped and counted by the receiver, as by a network adapter; the next one passes."""
    set_mtu(any_mtu, 9000, "n1")
    set_mtu(any_mtu, 1500, "n2")
    before = counters_of(any_mtu, "n2")
    lost = on(any_mtu, "n1", "sh", "-c", "ping -c 3 -i 0.2 -W 1 -M do -s 8972 10.1.0.2 || true")
    assert "100% packet loss" in lost, lost
    after = counters_of(any_mtu, "n2")
    assert after["rx_length_errors"] - before["rx_length_errors"] == 3, (before, after)
    assert after["rx_errors"] - before["rx_errors"] == 3, (before, after)
    assert " 0% packet loss" in on(any_mtu, "n1", "ping", "-c", "1", "-W", "5", "-s", "1000", "10.1.0.2")
    any_mtu.pair("ib_send_bw", "-F", "-n", "100")


def add_vlan(fabric, node, vlan, address):
    """A VLAN interface of the node's kernel"""
    name = f"eth0.{vlan}"
    on(fabric, node, "ip", "link", "add", "link", "eth0", "name", name, "type", "vlan", "id", str(vlan))
    on(fabric, node, "ip", "address", "add", address, "dev", name)
    on(fabric, node, "ip", "link", "set", name, "up")


@pytest.mark.needs_link("vlan")  # CONFIG_VLAN_8021Q
def test_vlan_interfaces(roce):
    """Two nodes in VLAN 5 reach each other by IP and by RDMA, and nobody else does; the addresses have GIDs."""
    for n in 1, 2:
        add_vlan(roce, f"n{n}", 5, f"192.168.5.{n}/24")
    add_vlan(roce, "n3", 6, "192.168.5.3/24")
    try:
        assert " 0% packet loss" in on(roce, "n1", "ping", "-c", "2", "-i", "0.2", "-W", "5", "192.168.5.2")
        for source, to in (("n1", 3), ("n3", 1)):
            lost = on(roce, source, "sh", "-c", f"ping -c 1 -W 1 192.168.5.{to} || true")
            assert "100% packet loss" in lost, lost
        server = serve(roce, "n2", 5306, "iperf3", "-s", "-p", "5306")
        done = json.loads(on(roce, "n1", "iperf3", "--json", "-p", "5306", "-c", "192.168.5.2", "-n", "4M"))
        assert done["end"]["sum_received"]["bytes"] > 1 << 20
        server.terminate()
        for n in 1, 2:
            wait_until(lambda n=n: f"::ffff:192.168.5.{n}, RoCE v2" in on(roce, f"n{n}", "ibv_devinfo", "-v"), "its GID")
        ports = "/sys/class/infiniband/softib0/ports/1"
        names = on(roce, "n1", "sh", "-c", f"cd {ports} && grep -l 0000:ffff:c0a8:0501 gids/* | sed s,gids,gid_attrs/ndevs, "
                                           "| xargs cat")
        assert set(names.split()) == {"eth0.5"}
        client = play(roce, ["rping", "-s", "-a", "192.168.5.1", "-V", "-C", 3],
                      ["rping", "-c", "-a", "192.168.5.1", "-v", "-V", "-C", 3], statuses=(0, 255))[1]
        assert client.count("ping data: rdma-ping-") == 3, client
    finally:
        for node, name in (("n1", "eth0.5"), ("n2", "eth0.5"), ("n3", "eth0.6")):
            on(roce, node, "ip", "link", "delete", name)
    wait_until(lambda: "192.168.5.1" not in on(roce, "n1", "ibv_devinfo", "-v"), "it has none")


def test_iperf3(roce):
    server = serve(roce, "n2", 5301, "iperf3", "-s", "-p", "5301")
    for args in ("-n 8M", "-6 -n 8M -R", "-n 16M -M 536", "-n 8M -P 4"):
        done = json.loads(on(roce, "n1", "iperf3", "--json", "-p", "5301", "-c", "n2", *args.split()))
        assert done["end"]["sum_received"]["bytes"] > 1 << 20, args
    for args in ("-l 1000", "-6 -l 9000 -R"):
        done = json.loads(on(roce, "n1", "iperf3", "--json", "-p", "5301", "-u", "-b", "4M", "-n", "200K", "-c",
                             "n2", *args.split()))["end"]["sum"]
        assert done["packets"] and done["lost_packets"] <= done["packets"] / 10, args
    server.terminate()


def test_multicast_of_udp(roce):
    """Two receivers hear what a third node sends; its own kernel does not hear it from the wire."""
    heard = {node: serve(roce, node, 5302, "socat", "-u", "UDP4-RECV:5302,ip-add-membership=239.1.2.3:eth0",
                         f"OPEN:{roce.home}/{node},creat,trunc", family="u") for node in ("n2", "n3")}

    def all_heard():
        on(roce, "n1", "sh", "-c", "echo word | socat -u - UDP4-DATAGRAM:239.1.2.3:5302,ip-multicast-if=10.1.0.1")
        return all("word" in (roce.home / node).read_text() for node in heard)

    wait_until(all_heard, "both have heard it")
    for process in heard.values():
        process.terminate()


def test_tshark_reads_all_of_it(roce):
    """Frames are as on a link of Ethernet, with their FCS, and those of RDMA are among them."""
    capture = roce.home / "eth.pcapng"
    process = subprocess.Popen([*roce.user, roce.program, "capture", "--fabric", "t", "-w", capture, "n1:1"],
                               env=roce.env, stderr=subprocess.PIPE, text=True)
    roce.running.append(process)
    server = serve(roce, "n2", 5304, "iperf3", "-s", "-p", "5304")
    wait_until(lambda: capture.exists() and capture.stat().st_size, "the capture has begun")
    on(roce, "n1", "sh", "-c", "ip neigh flush dev eth0; ping -c 1 n3; ping -6 -c 1 n3; iperf3 -c n2 -p 5304 -n 200K")
    play(roce, ["rping", "-s", "-a", "10.1.0.1", "-C", 2], ["rping", "-c", "-a", "10.1.0.1", "-C", 2], statuses=(0, 255))
    for each in server, process:
        each.terminate()
        each.wait(TIMEOUT)

    fields = ["eth.fcs.status", "eth.dst", "arp.opcode", "icmp.type", "icmpv6.type", "tcp.dstport", "infiniband.bth.opcode",
              "_ws.malformed"]
    out = tshark("-r", capture, "--disable-protocol", "rpcordma", "-o", "eth.check_fcs:TRUE", "-T", "fields", *(word for each in fields for word in ("-e", each)))
    rows = [dict(zip(fields, line.split("\t"))) for line in out.splitlines()]
    frames = [row for row in rows if row["eth.dst"]]
    for field, value in (("arp.opcode", "1"), ("arp.opcode", "2"), ("icmp.type", "0"), ("icmpv6.type", "129"),
                         ("icmpv6.type", "135"), ("tcp.dstport", "5304"), ("eth.dst", "ff:ff:ff:ff:ff:ff")):
        assert any(row[field] == value for row in frames), (field, value)
    assert {row["eth.fcs.status"] for row in frames} == {"1"}  # good
    assert any(row["infiniband.bth.opcode"] for row in frames) and not any(row["_ws.malformed"] for row in rows)


def test_rping(roce):
    for address in ("10.1.0.1", IPV6(1)):
        client = play(roce, ["rping", "-s", "-a", address, "-V", "-C", 3],
                      ["rping", "-c", "-a", address, "-v", "-V", "-C", 3], statuses=(0, 255))[1]
        assert client.count("ping data: rdma-ping-") == 3, client


def test_gids_follow_the_addresses(roce):
    """Of an address that the interface is given later, also in the network of the plan."""
    def gids(node):
        return on(roce, node, "ibv_devinfo", "-v")

    for address in ("192.168.7.1", "10.1.7.1"):
        for node in ("n1", "n2"):
            on(roce, node, "ip", "addr", "add", f"{address[:-1]}{node[1]}/24", "dev", "eth0")
            wait_until(lambda node=node: f"::ffff:{address[:-1]}{node[1]}, RoCE v2" in gids(node), "it has a GID")
        client = play(roce, ["rping", "-s", "-a", address, "-V", "-C", 3],
                      ["rping", "-c", "-a", address, "-v", "-V", "-C", 3], statuses=(0, 255))[1]
        assert client.count("ping data: rdma-ping-") == 3, client
        for node in ("n1", "n2"):
            on(roce, node, "ip", "addr", "del", f"{address[:-1]}{node[1]}/24", "dev", "eth0")
            wait_until(lambda node=node: f"::ffff:{address[:-1]}{node[1]}" not in gids(node), "it has none")
    assert "::ffff:10.1.0.1" in gids("n1")


def test_perftest_by_address(roce):
    """With -R, and by TCP on eth0 for its handshake."""
    status, out = perftest_in_time(roce, "ib_send_bw", "-R", "-n", 100)
    assert status == 0 and " 65536 " in out, out
    server = serve(roce, "n1", 18515, "ib_write_bw", "-x", "1", "-n", "100", "-F")
    assert " 65536 " in roce.run("n2", "ib_write_bw", "-x", "1", "-n", "100", "-F", "n1")
    roce.finish(server)


def test_frames_of_raw_packet_qps_pass_by(roce):
    """A rule of a program comes before those of the interface, which has the port as before when the program has ended."""
    mac = "02:73:69:00:00:{:02}".format
    args = ["-d", "softib0", "-n", "100", "-s", "500", "-F"]
    server = roce.start("n1", "raw_ethernet_bw", "--server", "-B", mac(1), "-E", mac(2), *args)

    def send():
        roce.run("n2", "raw_ethernet_bw", "--client", "-B", mac(2), "-E", mac(1), *args)
        return server.poll() is not None

    wait_until(send, "the server has received 100 frames")
    assert server.returncode == 0, roce.finish(server)
    assert " 0% packet loss" in on(roce, "n1", "ping", "-c", "1", "-W", "10", "n2")


def test_a_cable_is_pulled(roce):
    """The kernel sees the carrier go and return; the address and the connection are there as before."""
    def state():
        return json.loads(on(roce, "n1", "ip", "-json", "link", "show", "eth0"))[0]

    assert "LOWER_UP" in state()["flags"]
    roce.softib("link", "--fabric", "t", "s1:1", "down")
    try:
        wait_until(lambda: "NO-CARRIER" in state()["flags"], "the carrier is lost")
        assert on(roce, "n1", "sh", "-c", "ping -c 1 -W 1 10.1.0.2 >/dev/null 2>&1; echo $?") != "0\n"
    finally:
        roce.softib("link", "--fabric", "t", "s1:1", "up")
    wait_until(lambda: "LOWER_UP" in state()["flags"], "the carrier is back")
    for address in ("10.1.0.2", IPV6(2)):
        assert " 0% packet loss" in on(roce, "n1", "ping", "-c", "1", "-W", "10", address)


@pytest.mark.parametrize("user", users(), ids=lambda user: "nobody" if user else "self")
def test_nothing_is_left(user):
    with Fabric("pair", sm="none", up_args=("--link-layer", "ethernet", "--net", "node"), user=user) as fabric:
        names = set(on(fabric, "n1", "readlink", *(f"/proc/self/ns/{kind}" for kind in KINDS)).split())
        # the device ends alone, and softibd goes on
        on(fabric, "n2", "ip", "link", "delete", "eth0")
        wait_until(lambda: "1 Ethernet interface\n" in fabric.softib("status", "--fabric", "t"), "it has ended")
        assert holders(names)
    wait_until(lambda: not holders(names), lambda: f"{holders(names)} hold namespaces")
    wait_until(lambda: not processes(str(fabric.home)), "its processes end")
    assert not mounted(str(fabric.home))


@pytest.fixture(scope="module", name="vlans", params=users(), ids=lambda user: "nobody" if user else "self")
def star_with_vlans(request):
    """n3 is no member of VLAN 200."""
    with Fabric("star:3", sm="none", user=request.param,
                up_args=("--link-layer", "ethernet", "--net", "node", "--vlan", "100,200:n1+n2")) as fabric:
        yield fabric


def addresses_of(fabric, node):
    """{interface: its addresses, without those of the link}"""
    links = json.loads(on(fabric, node, "ip", "-json", "addr", "show"))
    return {link["ifname"]: {each["local"] for each in link["addr_info"] if each["scope"] == "global"} for link in links}


def test_interfaces_of_planned_vlans(vlans):
    """--vlan: each member has an interface with the addresses of the plan, whose names are in /etc/hosts."""
    ipv6 = "fd73:6f66:7469:620{}::{}".format
    assert addresses_of(vlans, "n2") == {"lo": set(), "eth0": {"10.1.0.2", ipv6(1, 2)}, "eth0.100": {"10.2.0.2", ipv6(2, 2)},
                                         "eth0.200": {"10.3.0.2", ipv6(3, 2)}}
    assert set(addresses_of(vlans, "n3")) == {"lo", "eth0", "eth0.100"}
    assert "8 Ethernet interfaces" in vlans.softib("status", "--fabric", "t")
    for version in ("-4", "-6"):
        for name in ("n2", "n2-eth0.100", "n2-eth0.200"):
            assert " 0% packet loss" in on(vlans, "n1", "ping", version, "-c", "2", "-i", "0.2", "-W", "5", "-s", "5000", name)
    assert " 0% packet loss" in on(vlans, "n1", "ping", "-c", "1", "-W", "5", LINK_LOCAL(2) + "%eth0.200")
    lost = on(vlans, "n1", "sh", "-c", "ping -c 1 -W 1 -I eth0.200 10.3.0.3 || true")
    assert "100% packet loss" in lost, lost
    counters = {each["interface"]: each for each in vlans.json("eth", "--fabric", "t", "n2")}
    assert set(counters) == {"eth0", "eth0.100", "eth0.200"} and counters["eth0.200"]["rx_packets"] >= 8, counters


def test_programs_in_planned_vlans(vlans):
    server = serve(vlans, "n2", 5307, "iperf3", "-s", "-p", "5307")
    for args in (["-n", "8M"], ["-6", "-n", "8M", "-R"]):
        done = json.loads(on(vlans, "n1", "iperf3", "--json", "-p", "5307", "-c", "n2-eth0.200", *args))
        assert done["end"]["sum_received"]["bytes"] > 1 << 20, args
    server.terminate()
    for node, vlan in (("n1", 100), ("n2", 100), ("n1", 200)):  # addresses that the interfaces are given besides
        on(vlans, node, "ip", "addr", "add", f"192.168.{vlan}.{node[1]}/24", "dev", f"eth0.{vlan}")
        wait_until(lambda node=node, vlan=vlan: f"::ffff:192.168.{vlan}.{node[1]}, RoCE v2" in on(vlans, node, "ibv_devinfo", "-v"),
                   "it has a GID")
    for address in ("10.2.0.1", "10.3.0.1", "192.168.100.1"):
        client = play(vlans, ["rping", "-s", "-a", address, "-V", "-C", 3],
                      ["rping", "-c", "-a", address, "-v", "-V", "-C", 3], statuses=(0, 255))[1]
        assert client.count("ping data: rdma-ping-") == 3, client


def test_tags_of_planned_vlans(vlans):
    """Frames of the interfaces have the tag on the wire, those of eth0 none."""
    capture = vlans.home / "tags.pcapng"
    process = subprocess.Popen([*vlans.user, vlans.program, "capture", "--fabric", "t", "-w", capture, "n1:1"],
                               env=vlans.env, stderr=subprocess.PIPE, text=True)
    vlans.running.append(process)
    wait_until(lambda: capture.exists() and capture.stat().st_size, "the capture has begun")
    for address in ("10.1.0.2", "10.2.0.2", "10.3.0.2"):
        on(vlans, "n1", "ping", "-c", "1", address)
    process.terminate()
    process.wait(TIMEOUT)
    out = tshark("-r", capture, "-Y", "icmp", "-T", "fields", "-e", "vlan.id", "-e", "ip.dst")
    tags = {(tag, address) for tag, _, address in (line.partition("\t") for line in out.splitlines())}
    assert tags == {("", "10.1.0.1"), ("", "10.1.0.2"), ("100", "10.2.0.1"), ("100", "10.2.0.2"), ("200", "10.3.0.1"),
                    ("200", "10.3.0.2")}, tags
