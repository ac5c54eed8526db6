# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A node with namespaces of its own (--net node): what is in them, what enters them,
and that nothing of them is left."""
import contextlib
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from interop.commands import processes
from interop.fabric import BUILD, NOBODY, SOFTIB, TIMEOUT, Fabric, guid, link_local, wait_until
from interop.test_rdma_cm import cm_ids

KINDS = ("net", "uts", "mnt")
SERVER = ("import socket; s = socket.create_server(('127.0.0.1', 7471)); print('ready', flush=True); "
          "s.accept()[0].sendall(socket.gethostname().encode())")
CLIENT = "import socket; print(socket.create_connection(('127.0.0.1', 7471)).recv(99).decode())"


def allowed(user):
    """May @user make such namespaces? The fabric falls back to the machine's network if not."""
    probe = ["unshare", "--net", "--uts", "--mount", "true"]
    if os.getuid() or user:
        probe.insert(1, "--map-current-user")
    return not subprocess.run([*user, *probe], capture_output=True, check=False).returncode


def users():
    """Who starts the fabrics: root's tests do it as an ordinary user, too, unless that one has a
    run of his own (.ci/run)."""
    return [(), *([] if os.getuid() or "SOFTIB_SELF_ALONE" in os.environ else [NOBODY])]


@pytest.fixture(scope="module", params=users(), ids=lambda user: "nobody" if user else "self")
def fabric(request):
    if not allowed(request.param):
        pytest.skip("the kernel allows this user no network namespaces")
    with Fabric("star:3", up_args=("--net", "node"), user=request.param) as f:
        yield f


def on(fabric, node, *command, args=()):
    return fabric.softib("exec", "--fabric", fabric.name, *args, node, "--", *command)


def test_a_host_name_and_interfaces_of_its_own(fabric):
    assert on(fabric, "n1", "uname", "-n") == "n1\n"
    assert on(fabric, "n1", "ls", "/sys/class/net") == "ib0\nlo\n"
    assert on(fabric, "n1", "ls", "/sys/class/infiniband") == "softib0\n"
    assert on(fabric, "n1", "ibstat", "-l") == "softib0\n"


def test_servers_on_two_nodes_have_the_same_port(fabric):
    servers = []
    for node in ("n1", "n2"):
        server = subprocess.Popen([*fabric.user, fabric.program, "exec", "--fabric", "t", node, "--",
                                   "python3", "-c", SERVER], env=fabric.env, text=True,
                                  stdout=subprocess.PIPE)
        fabric.running.append(server)
        assert server.stdout.readline() == "ready\n"
        servers.append(server)
    for node, server in zip(("n1", "n2"), servers):
        assert on(fabric, node, "python3", "-c", CLIENT) == f"{node}\n"
        assert server.wait(TIMEOUT) == 0


def test_the_working_directory_stays(fabric):
    done = subprocess.run([*fabric.user, fabric.program, "exec", "--fabric", "t", "n2", "--", "sh",
                           "-c", "pwd -P; ls -d softib/t"], env=fabric.env, cwd=fabric.home,
                          capture_output=True, text=True, check=True)
    assert done.stdout == f"{fabric.home}\nsoftib/t\n"


def test_programs_of_a_node_share_them_and_reach_others(fabric):
    def links(*command):
        text = on(fabric, *command, "readlink", *(f"/proc/self/ns/{kind}" for kind in KINDS))
        return text.split()

    first, second = links("n1"), links("n2")
    assert first == links("n1") and not set(first) & set(second)
    assert links("n2", "softib", "exec", "n1", "--") == first
    assert on(fabric, "n1", "uname", "-n", args=("--net", "host")) == os.uname().nodename + "\n"


def test_a_user_namespace_that_cannot_enter_the_nodes(fabric):
    """The kernel lets nobody out of a user namespace."""
    def inside(*args):
        return subprocess.run([*fabric.user, "unshare", "--map-root-user", fabric.program, "exec", "--fabric", "t", *args,
                               "n1", "--", "uname", "-n"], env=fabric.env, capture_output=True, text=True, check=False)

    on(fabric, "n1", "true")  # there are namespaces to enter
    done = inside()
    assert done.returncode == 1 and not done.stdout, done
    assert ("cannot enter the namespaces of node n1: Operation not permitted. The fabric was brought up outside of this "
            "program's user namespace") in done.stderr and "run softib where 'softib up' was run" in done.stderr, done
    assert inside("--net", "host").stdout == os.uname().nodename + "\n"  # what it advises


def test_the_user_is_the_same_and_administers_the_node(fabric):
    uid = on(fabric, "n3", "id", "-u", args=("--net", "host"))
    assert on(fabric, "n3", "id", "-u") == uid
    on(fabric, "n3", "sh", "-c", "ip addr add 192.0.2.1/32 dev lo && ip link set lo mtu 1400")
    assert "192.0.2.1" in on(fabric, "n3", "ip", "addr", "show", "lo")
    assert "192.0.2.1" not in on(fabric, "n1", "ip", "addr", "show", "lo")


def test_device_files_are_those_of_one_program(fabric):
    assert "uverbs0" in on(fabric, "n1", "ls", "/dev/infiniband", args=("--devices",))
    assert "uverbs0" not in on(fabric, "n1", "sh", "-c", "ls /dev/infiniband || true")


def test_the_fabric_is_reached_from_there(fabric):
    assert "n3" in on(fabric, "n2", "ibnetdiscover")
    assert re.search(r"state:\s+4: ACTIVE", on(fabric, "n2", "ibstatus"))


# --- several adapters ---

def test_each_port_of_each_adapter():
    """Two adapters with two ports: programs see all four, and each carries verbs, the RDMA CM
    and IP."""
    if not allowed(()):
        pytest.skip("the kernel allows this user no network namespaces")
    with Fabric("pair", up_args=("--net", "node", "--adapters", "2", "--ports", "2")) as fabric:
        devices = on(fabric, "n1", "ibv_devinfo")
        assert re.findall(r"hca_id:\s+(\w+)|port:\s+(\d)|state:\s+(\w+)", devices) == [
            (name, port, state) for device in ("softib0", "softib1") for name, port, state in (
                (device, "", ""), ("", "1", ""), ("", "", "PORT_ACTIVE"), ("", "2", ""),
                ("", "", "PORT_ACTIVE"))]
        guids = on(fabric, "n1", "ibstat", "-p").split()
        assert guids == ["0x" + guid("n1", port, device=device) for device in (0, 1) for port in (1, 2)]
        lids = [n["ports"][1]["lid"] for n in fabric.json("topo")["nodes"] if n["name"] == "n1.softib1"]
        shown = on(fabric, "n1.softib1", "sh", "-c", "cd /sys/class/infiniband/softib1; cat node_desc "
                   "ports/2/lid ports/2/counters/port_rcv_packets; ls ../../infiniband_mad ..; hostname")
        assert shown.split()[:3] == ["n1", "softib1", hex(lids[0])] and shown.split()[-1] == "n1"
        assert int(shown.split()[3]) > 0 and {"umad3", "softib0"} < set(shown.split())
        assert "n2 softib1" in on(fabric, "n1", "smpquery", "-C", "softib1", "-P", "2", "nodedesc",
                                  str(fabric.json("path", "n1", "n2.softib1")["dlid"]))
        server = fabric.start("n2", "ib_write_bw", "-d", "softib1", "-i", "2", "-n", "100", "-F")
        wait_until(lambda: ":4853 " in on(fabric, "n2", "cat", "/proc/net/tcp", "/proc/net/tcp6"),
                   "the server listens at port 18515")
        assert " 65536 " in on(fabric, "n1", "ib_write_bw", "-d", "softib1", "-i", "2", "-n", "100", "-F",
                               "n2")
        fabric.finish(server)
        server = fabric.start("n2", "rping", "-s", "-C", "2")
        wait_until(lambda: cm_ids(fabric, "n2"), "rping listens")
        on(fabric, "n1", "rping", "-c", "-C", "2", "-a", "10.4.0.2")
        fabric.finish(server)
        assert " 0% packet loss" in on(fabric, "n1", "ping", "-c", "1", "n2-ib3")
        assert re.search(r"^n2.softib1 +ib3 +yes ", fabric.softib("ipoib", "--fabric", "t"), re.M)


# --- addresses ---


def test_names_and_addresses(fabric):
    nodes = [node for node in fabric.json("topo", "--fabric", "t")["nodes"] if node["kind"] == "ca"]
    for number, node in enumerate(nodes, 1):
        assert node["addresses"] == [{"interface": "ib0", "adapter": f"n{number}", "device": "softib0", "port": 1,
                                      "ipv4": f"10.1.0.{number}/16",
                                      "ipv6": f"fd73:6f66:7469:6201::{number}/64",
                                      "link_local": link_local(f"n{number}") + "/64"}]
        for address in ("10.1.0.", "fd73:6f66:7469:6201::"):
            assert f"{address}{number}" in on(fabric, "n2", "getent", "ahosts", node["name"])
        # what programs try first; many of their servers listen on IPv4 addresses alone
        assert on(fabric, "n2", "getent", "ahosts", node["name"]).startswith(f"10.1.0.{number} ")
    shown = on(fabric, "n2", "ip", "addr")
    address = on(fabric, "n2", "cat", "/sys/class/net/ib0/address").strip()
    assert f"link/infiniband {address} brd 00:ff:ff:ff:ff:12:40:1b:ff:ff:" in shown, shown
    assert address.replace(":", "").endswith(guid("n2", 1)), address
    assert "inet 10.1.0.2/" in shown and "inet6 fd73:6f66:7469:6201::2/" in shown
    assert Path("/etc/hosts").read_text() in on(fabric, "n2", "cat", "/etc/hosts")
    assert "10.1.0." not in Path("/etc/hosts").read_text()
    assert "10.1.0.0/16 and fd73:6f66:7469:6201::/64" in fabric.softib("status", "--fabric", "t")


def test_nodes_that_ran_nothing_yet_are_reached():
    if not allowed(()):
        pytest.skip("the kernel allows this user no network namespaces")
    with Fabric("pair", up_args=("--net", "node", "--ipoib-mode", "connected")) as fabric:
        for args in ("-4 n2", "-6 n2", f"-6 {link_local('n2')}%ib0", "-4 -s 40000 n2", "-6 -s 40000 n2"):
            assert " 0% packet loss" in on(fabric, "n1", "ping", "-c", "1", *args.split()), args
        text = fabric.softib("ipoib", "--fabric", "t", "n1")
        assert "10.1.0.1/16" in text and re.search(r"neighbours  .* 10\.1\.0\.2  80:00:", text, re.S), text
        lid = fabric.softib("exec", "n2", "--", "cat", "/sys/class/infiniband/softib0/ports/1/lid").strip()
        assert f" lid {int(lid, 0)}, SL 0, connected" in text and re.search(r"connections +2\n", text), text
        assert "connected  MTU 65520" in text and " mtu 65520 " in on(fabric, "n2", "ip", "link", "show", "ib0")
        assert ", connected mode" in fabric.softib("status", "--fabric", "t")
        assert re.search(r"^n2 +ib0 +yes ", fabric.softib("ipoib", "--fabric", "t"), re.M)


def test_iperf3_both_ways(fabric):
    server = subprocess.Popen([*fabric.user, fabric.program, "exec", "--fabric", "t", "n2", "--", "iperf3",
                               "--server", "--forceflush"], env=fabric.env, text=True,
                              stdout=subprocess.PIPE)
    fabric.running.append(server)
    assert any("listening" in line for line in server.stdout)
    for args in ("-n 16M", "-R -n 16M", "-6 -n 16M"):
        done = json.loads(on(fabric, "n1", "iperf3", "--json", "-c", "n2", *args.split()))
        assert done["end"]["sum_received"]["bytes"] > 1 << 19, args  # the end is cut off
    done = json.loads(on(fabric, "n1", "iperf3", "--json", "-u", "-b", "20M", "-n", "200K", "-c", "n2"))
    assert done["end"]["sum_received"]["packets"] > 0


def test_connected_mode(fabric):
    """Two nodes of three take connections: packets of 64 KiB between them, datagrams to the third."""
    def mode(node, word):
        fabric.softib("ipoib", "--fabric", "t", node, word)

    def lost(node, *args):
        command = ("ping", "-6", "-c", "2", "-i", "0.2", "-W", "5", "-s", "60000", *args, node)
        return on(fabric, "n1", "sh", "-c", " ".join(command) + " || true")

    for node in ("n1", "n2"):
        mode(node, "connected")
    assert " mtu 65520 " in on(fabric, "n1", "ip", "link", "show", "ib0")
    assert " 0% packet loss" in lost("n2", "-M", "do")
    assert "mtu" in lost("n3", "-M", "do")  # the host has learnt it from ICMP
    assert " 0% packet loss" in lost("n3")  # in fragments then
    text = fabric.softib("ipoib", "--fabric", "t", "n1")
    assert "connected  MTU 65520" in text and " 80:00:" in text.split("neighbours")[1], text
    on(fabric, "n1", "ping", "-4", "-c", "1", "n2")  # another address of the same peer
    assert len(cm_ids(fabric, "n1")) == 3  # one listens; one connection each way
    server = subprocess.Popen([*fabric.user, fabric.program, "exec", "--fabric", "t", "n2", "--", "iperf3",
                               "--server", "-p", "5202", "--one-off", "--forceflush"], env=fabric.env, text=True,
                              stdout=subprocess.PIPE)
    fabric.running.append(server)
    assert any("listening" in line for line in server.stdout)
    done = json.loads(on(fabric, "n1", "iperf3", "--json", "-p", "5202", "-n", "64M", "-c", "n2"))
    # the receiver ends with the sender, so it counts all but what is in buffers
    assert done["end"]["sum_received"]["bytes"] > 1 << 25
    for node in ("n1", "n2"):
        mode(node, "datagram")
    assert " 0% packet loss" in lost("n2")
    wait_until(lambda: not cm_ids(fabric, "n1") and not cm_ids(fabric, "n2"), "no connection is left")


def test_files_of_ib0_in_sysfs(fabric):
    """Those of Linux' IPoIB beside the kernel's own; what is written into mode is done."""
    def sh(code):
        return on(fabric, "n3", "sh", "-c", f"cd /sys/class/net/ib0; {code}")

    link = fabric.json("ipoib", "n3")[0]["link"]
    assert sh("cat mode pkey umcast addr_len dev_id dev_port address type").split() == [
        "datagram", "0xffff", "0", "20", "0x0", "0", link, "32"]
    assert sh("cat broadcast") == "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff\n"
    assert sh("readlink -f .").strip() == "/sys/devices/virtual/net/ib0" and "ib0" in sh("ls subsystem/")
    for mode, mtu, flags in (("connected", "65520", "80"), ("datagram", "2044", "00")):
        assert sh(f"echo {mode} > mode; cat mode mtu address").split() == [mode, mtu, flags + link[2:]]
        assert fabric.json("ipoib", "n3")[0]["mode"] == mode
    if not fabric.user and os.geteuid() == 0:  # the kernel's file belongs to root
        assert sh("echo 1500 > mtu; cat mtu; echo 2044 > mtu; cat mtu").split() == ["1500", "2044"]
    before = int(sh("cat statistics/rx_packets"))
    assert " 0% packet loss" in on(fabric, "n3", "ping", "-4", "-c", "3", "-i", "0.01", "n1")
    assert int(sh("cat statistics/rx_packets")) >= before + 3
    assert sh("echo sideways > mode; cat mode") == "datagram\n"
    assert re.search(r' n3: "sideways" into /sys/class/net/ib0/mode: the mode is connected or datagram',
                     (fabric.dir / "softibd.log").read_text())


def test_an_address_of_another_node(fabric):
    """Linux finds it out for IPv6, with what the fabric answers; softibd for IPv4, and says it."""
    taken = {"10.1.0.1/16", "fd73:6f66:7469:6201::1/64"}
    link = fabric.json("ipoib", "n1")[0]["link"]

    def conflicts():
        return {c["ip"]: c for c in fabric.json("ipoib", "n2")[0]["address_conflicts"]}

    def settled(node):
        return not fabric.json("ipoib", node)[0]["verifying"]

    def answers(*args):
        return "1 received" in on(fabric, "n3", "ping", "-c", "1", "-W", "5", *args)

    wait_until(lambda: settled("n1"), "n1 has told of its addresses")
    on(fabric, "n2", "sh", "-c", "; ".join(f"ip addr add {address} dev ib0" for address in taken))
    wait_until(lambda: len(conflicts()) == 2, lambda: conflicts())
    for conflict in conflicts().values():
        assert conflict["duplicate"] and conflict["link"].lstrip("8") == link.lstrip("8")
    wait_until(lambda: " dadfailed " in on(fabric, "n2", "ip", "address", "show", "dev", "ib0"), "Linux knows it")
    text = fabric.softib("ipoib", "n2")
    assert f"10.1.0.1  duplicate, not used here: {link}" in text, text
    assert re.search(rf" n2 port 1, P_Key 0xffff: the address 10\.1\.0\.1 is also that of {link}",
                     (fabric.dir / "softibd.log").read_text())
    assert not fabric.json("ipoib", "n1")[0]["address_conflicts"]
    sent = fabric.json("ipoib", "n1")[0]["rx_packets"]
    assert all(answers(address.split("/")[0]) for address in taken)
    assert fabric.json("ipoib", "n1")[0]["rx_packets"] >= sent + 2
    on(fabric, "n2", "sh", "-c", "; ".join(f"ip addr del {address} dev ib0" for address in taken))
    wait_until(lambda: not conflicts(), "it gives them up")
    on(fabric, "n2", "ip", "address", "add", "fd73:6f66:7469:6201::77/64", "dev", "ib0")
    wait_until(lambda: " tentative " not in on(fabric, "n2", "ip", "address", "show", "dev", "ib0"), "Linux has verified it")
    assert answers("fd73:6f66:7469:6201::77")
    on(fabric, "n2", "ip", "address", "del", "fd73:6f66:7469:6201::77/64", "dev", "ib0")


def test_gateways(fabric):
    """n3 forwards between two networks on one link, and is the default gateway of n1."""
    def forwarded():
        return int(on(fabric, "n3", "awk", "/^Ip: [0-9]/ {print $7}", "/proc/net/snmp"))

    on(fabric, "n2", "sh", "-c", "ip addr add 10.9.0.2/16 dev ib0; ip addr add fd09::2/64 dev ib0 nodad")
    on(fabric, "n3", "sh", "-c", "ip addr add 10.9.0.3/16 dev ib0; ip addr add 192.0.2.3/32 dev lo; "
       "ip addr add fd09::3/64 dev ib0 nodad; "
       "cd /proc/sys/net; echo 1 > ipv4/ip_forward; echo 1 > ipv6/conf/all/forwarding; "
       "for i in all ib0; do echo 0 > ipv4/conf/$i/send_redirects; done")
    on(fabric, "n1", "sh", "-c", "ip route add 10.9.0.0/16 via 10.1.0.3; ip route add default via 10.1.0.3; "
       "ip route add fd09::/64 via fd73:6f66:7469:6201::3")
    before = forwarded()
    for to in ("10.9.0.2", "192.0.2.3", "fd09::2"):
        assert " 0% packet loss" in on(fabric, "n1", "ping", "-c", "1", to)
    assert forwarded() == before + 1
    assert " 10.9.0.2 " not in fabric.softib("ipoib", "--fabric", "t", "n1")
    on(fabric, "n1", "sh", "-c", "ip route del 10.9.0.0/16; ip route del default; ip route add 10.9.0.0/16 dev ib0")
    assert " 0% packet loss" in on(fabric, "n1", "ping", "-c", "1", "10.9.0.2")
    assert forwarded() == before + 1  # they reach each other on the link
    on(fabric, "n1", "ip", "route", "del", "10.9.0.0/16")


def test_policy_rules_choose_the_gateway(fabric):
    """ip-rule(8): packets from one address go to n2, all others to n3. The hop limits tell who has answered."""
    def answered(version, *args):
        text = on(fabric, "n1", "ping", version, "-c", "1", "-W", "5", *args, "192.0.2.9" if version == "-4" else "fd99::9")
        return int(re.search(r" ttl=(\d+) ", text)[1])

    for node, limit in (("n2", 77), ("n3", 88)):
        on(fabric, node, "sh", "-c", f"ip addr add 192.0.2.9/32 dev lo; ip addr add fd99::9/128 dev lo; cd /proc/sys/net; "
           f"echo {limit} > ipv4/ip_default_ttl; echo {limit} > ipv6/conf/ib0/hop_limit")
    on(fabric, "n1", "sh", "-c", "ip addr add 10.1.7.1/16 dev ib0; ip addr add fd73:6f66:7469:6201::71/64 dev ib0 nodad; "
       "ip route add 192.0.2.0/24 via 10.1.0.3; ip route add default via 10.1.0.2 table 100; "
       "ip route add fd99::/64 via fd73:6f66:7469:6201::3; ip -6 route add default via fd73:6f66:7469:6201::2 table 100")
    for version, first, source in (("-4", "10.1.0.1", "10.1.7.1"),
                                   ("-6", "fd73:6f66:7469:6201::1", "fd73:6f66:7469:6201::71")):
        assert answered(version, "-I", first) == answered(version, "-I", source) == 88
        on(fabric, "n1", "ip", version, "rule", "add", "from", source, "lookup", "100")
        assert answered(version, "-I", source) == 77 and answered(version, "-I", first) == 88
        on(fabric, "n1", "ip", version, "rule", "del", "from", source, "lookup", "100")
        assert answered(version, "-I", source) == 88
        on(fabric, "n1", "ip", version, "route", "flush", "table", "100")
    on(fabric, "n1", "sh", "-c", "ip route del 192.0.2.0/24; ip route del fd99::/64; ip addr del 10.1.7.1/16 dev ib0; "
       "ip addr del fd73:6f66:7469:6201::71/64 dev ib0")
    for node in ("n2", "n3"):
        on(fabric, node, "sh", "-c", "ip addr del 192.0.2.9/32 dev lo; ip addr del fd99::9/128 dev lo; "
           "cd /proc/sys/net; echo 64 > ipv4/ip_default_ttl; echo 64 > ipv6/conf/ib0/hop_limit")


def test_dhcp(fabric):
    """RFC 4390: without a link address a client is known by its identifier, and answers are broadcast."""
    server = subprocess.Popen([*fabric.user, fabric.program, "exec", "--fabric", "t", "n2", "--", "dnsmasq",
                               "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--no-ping",
                               "--no-resolv", "--no-hosts", "--interface=ib0", "--bind-interfaces", "--user=",
                               "--dhcp-range=10.1.5.1,10.1.5.99,255.255.0.0", "--leasefile-ro", "--pid-file=",
                               "--log-facility=-"], env=fabric.env, text=True, stderr=subprocess.PIPE)
    fabric.running.append(server)
    assert any("sockets bound" in line for line in server.stderr)
    script = fabric.home / "lease.sh"
    script.write_text('#!/bin/sh\necho "$1 $ip on $interface"\n')
    script.chmod(0o755)
    done = on(fabric, "n1", "udhcpc", "-f", "-q", "-n", "-B", "-i", "ib0", "-s", script, "-x", "0x3d:0001")
    assert re.search(r"^bound 10\.1\.5\.\d+ on ib0$", done, re.M), done


@pytest.mark.parametrize("provider,endpoint", [("verbs", "msg"), ("verbs;ofi_rxm", "rdm")])
def test_libfabric_by_rdma_cm(fabric, provider, endpoint):
    """Connected endpoints; the server learns the addresses of the adapter from its ib0."""
    ping = ["fi_pingpong", "-p", provider, "-e", endpoint, "-c", "-I", "20", "-S", "4096"]
    server = subprocess.Popen([*fabric.user, fabric.program, "exec", "--fabric", "t", "n1", "--", *ping],
                              env=fabric.env)
    fabric.running.append(server)
    wait_until(lambda: "47592" in on(fabric, "n1", "ss", "-ltn"), "the server listens")
    assert re.search(r"^4k +20 +=20 ", on(fabric, "n2", *ping, "n1"), re.M)
    assert server.wait(TIMEOUT) == 0


def test_fi_info(fabric):
    """What libfabric offers: connected endpoints on the adapter, by IP addresses, and datagrams
    upon them."""
    offered = on(fabric, "n1", "fi_info", "-p", "verbs", "-t", "FI_EP_MSG", "-v")
    assert "prov_name: verbs" in offered, offered
    assert re.search(r"domain_attr:.*?name: softib0", offered, re.S), offered
    assert "FI_SOCKADDR" in offered and "ofi_rxm" in on(fabric, "n1", "fi_info", "-t", "FI_EP_RDM")


def test_multicast_of_ipoib(fabric):
    """mckey in IPoIB's port space joins a group that ib0 is a member of. The administrator lets
    it in because it names the group's Q_Key, which is that of the partition."""
    mckey = ["mckey", "-m", "224.0.0.1", "-C", 10, "-p", "0x2"]
    receiver = fabric.start("n1", *mckey)

    def heard():
        fabric.run("n2", *mckey, "-s")
        return receiver.poll() is not None

    wait_until(heard, "the receiver has heard ten messages")
    out = fabric.finish(receiver)
    assert receiver.returncode == 0 and "joined dgid: ff12:401b:ffff::1 " in out, out


def test_perftest_by_name_on_one_port(fabric):
    """Three servers with the same TCP port, each on a node of its own."""
    port = "18515"
    servers = [subprocess.Popen([*fabric.user, fabric.program, "exec", "--fabric", "t", node, "--",
                                 "ib_write_bw", "-F", "-n", "100", "-p", port],
                                env=fabric.env, text=True, stdout=subprocess.PIPE)
               for node in ("n1", "n2", "n3")]
    fabric.running += servers
    for node in ("n1", "n2", "n3"):
        wait_until(lambda: f":{int(port):04X} " in on(fabric, node, "cat", "/proc/net/tcp",
                                                      "/proc/net/tcp6"), "the server listens")
    code = ("case $SOFTIB_NODE in n1) to=n2;; n2) to=n3;; n3) to=n1;; *) exit 0;; esac; "
            "exec ib_write_bw -F -n 100 -p $0 $to")
    shown = fabric.softib("exec", "--fabric", "t", "--all", "--", "sh", "-c", code, port)
    assert len(re.findall(r"^n\d\|  65536 +100 ", shown, re.M)) == 3, shown
    assert all(server.wait(TIMEOUT) == 0 for server in servers)


def test_a_pair_meets_at_the_server_s_own_address(fabric):
    shown = fabric.softib("pair", "--fabric", "t", "--no-wait", "n3", "n1", "--", "true", "--", "echo",
                          "{}")
    assert shown == "10.1.0.3\n"


def test_ip_chooses_the_network(home):
    def run(*args):
        return subprocess.run([SOFTIB, "run", *args, "--", "softib", "topo", "--json", "n2"], text=True,
                              env=dict(os.environ, XDG_RUNTIME_DIR=str(home)), capture_output=True,
                              check=False)

    shown = run("--ip", "192.0.2.0/25", "--ip", "2001:db8::/96").stdout
    assert '"192.0.2.2/25"' in shown and '"2001:db8::2/96"' in shown
    topology = home / "lab.net"
    topology.write_text('Switch 2 "s"\n[1] "a"\n[2] "b"\nHca 1 "a"\nHca 1 "b"  # ip=10.7.0.9/24\n')
    shown = run("--topology", topology).stdout
    assert '"10.7.0.9/24"' in shown and '"fd73:6f66:7469:6201::2/64"' in shown
    topology.write_text(topology.read_text().replace("10.7.0.9/24", "10.1.0.1/16"))
    assert "choose another network with --ip" in run("--topology", topology).stderr
    assert '"192.0.2.10/25"' in run("--ip", "192.0.2.9/25").stdout  # behind the nodes of another fabric
    assert "no network for nodes" in run("--ip", "192.0.2.0/31").stderr
    done = run("--nodes", "7", "--ip", "192.0.2.0/29")
    assert "/29 has 6 addresses, and the topology 7 nodes" in done.stderr and done.returncode == 1


# --- partitions ---


def talk_in_partition(fabric, mode):
    """n1 and n2 ping each other by their ib0.8001, in packets as large as @mode allows; in connected mode
    by connections, while their ib0 have none. n3, which is in another partition, does not answer."""
    mtu = {"datagram": 2044, "connected": 65520}[mode]
    for node in ("n1", "n2"):
        fabric.run(node, "sh", "-c", f"echo {mode} > /sys/class/net/ib0.8001/mode")
        wait_until(lambda: f" mtu {mtu} " in fabric.run(node, "ip", "link", "show", "ib0.8001"), f"{node} is in {mode} mode")
    for address, headers in (("10.9.0.2", 28), ("fd09::2", 48)):
        size = min(mtu - headers, 65507)  # as much as ping(8) sends
        assert " 0% packet loss" in fabric.run("n1", "ping", "-c", "2", "-i", "0.2", "-M", "do", "-s", size, address), address
    foreign = [fabric.start("n1", "ping", "-c", "1", address) for address in ("10.9.0.3", "fd09::3")]
    assert "Destination Host Unreachable" in fabric.finish(foreign[0])
    assert "Address unreachable" in fabric.finish(foreign[1])
    connected = {row["interface"]: row["connections"] > 0 for row in fabric.json("ipoib", "n1")}
    assert connected == {"ib0": False, "ib0.8001": mode == "connected"}


@pytest.mark.parametrize("user", users(), ids=lambda user: "nobody" if user else "self")
def test_interfaces_of_further_partitions(user):
    """Two partitions beside the default one: only members of the same see each other."""
    if not allowed(user):
        pytest.skip("the kernel allows this user no network namespaces")
    with Fabric("star:3", sm="none", up_args=("--net", "node"), user=user) as fabric:
        config = fabric.home / "partitions.conf"
        guid = [fabric.run(f"n{n}", "ibstat", "-p").strip() for n in (1, 2, 3)]
        config.write_text("Default=0x7fff, ipoib: ALL=full;\n"
                          f"Upper=0x0001, ipoib: {guid[0]}=full, {guid[1]}=full;\n"
                          f"Lower=0x0002, ipoib: {guid[2]}=full;\n")

        def ipoib(*words):
            done = subprocess.run([*fabric.user, fabric.program, "ipoib", *words], env=fabric.env,
                                  capture_output=True, text=True, check=False)
            assert done.returncode == (1 if done.stderr else 0)
            return done.stderr

        opensm = fabric.start("n1", "opensm", "-e", "-P", config, "-f", fabric.home / "log")
        fabric.softib("wait", "--fabric", "t")
        wait_until(lambda: "0x8002" in fabric.run("n3", "smpquery", "-D", "pkeys", "0"), "partitions")
        for n, pkey in enumerate(("0x8001", "1", "0x8002"), 1):
            assert ipoib(f"n{n}", "create", pkey) == ""
            child = f"ib0.{int(pkey, 0) | 0x8000:x}"
            fabric.run(f"n{n}", "sh", "-c", f"ip addr add 10.9.0.{n}/16 dev {child}; ip addr add fd09::{n}/64 dev {child} nodad")
        assert " 0% packet loss" in fabric.run("n1", "ping", "-c", "1", "10.1.0.3")
        assert re.search(r"^n2 +ib0\.8001 +yes .* 10\.9\.0\.2/16$", fabric.softib("ipoib"), re.M)
        assert "is not in this partition" in ipoib("n3", "create", "0x8001")
        assert "n2 has an interface ib0.8001 already" in ipoib("n2", "create", "0x8001")
        assert "has no IP interface of partition 0x8002" in ipoib("n1", "delete", "0x8002")
        full = config.read_text()
        for mode in ("datagram", "connected"):
            talk_in_partition(fabric, mode)
            config.write_text(full.splitlines()[0] + "\n")
            opensm.send_signal(signal.SIGHUP)
            wait_until(lambda: re.search(r"^n2 +ib0\.8001 +no ", fabric.softib("ipoib"), re.M), "it stops")
            assert "NO-CARRIER" in fabric.run("n2", "ip", "link", "show", "ib0.8001")
            config.write_text(full)
            opensm.send_signal(signal.SIGHUP)
            wait_until(lambda: len(re.findall(r"^n[12] +ib0\.8001 +yes ", fabric.softib("ipoib"), re.M)) == 2,
                       "it resumes")
            talk_in_partition(fabric, mode)
        by_file = "echo 0x8001 > /sys/class/net/ib0/{}_child; cat /sys/class/net/ib0/mode"
        for way in (("softib", "ipoib", "n1", "delete", "0x8001"), ("ip", "link", "delete", "ib0.8001"),
                    ("sh", "-c", by_file.format("delete"))):
            fabric.run("n1", *way)
            assert "ib0.8001" not in fabric.run("n1", "ls", "/sys/class/net")
            wait_until(lambda: "0x8001" not in fabric.softib("ipoib", "n1"), "softibd knows")
            assert fabric.run("n1", "sh", "-c", by_file.format("create")) == "datagram\n"
            child = "cd /sys/class/net/ib0.8001; cat mode parent pkey; echo connected > mode; cat mode mtu; ls"
            assert fabric.run("n1", "sh", "-c", child).split()[:5] == ["datagram", "ib0", "0x8001", "connected", "65520"]
            assert "create_child" not in fabric.run("n1", "sh", "-c", child)


# --- every node, and launchers ---


def test_all_nodes_and_the_worst_status(fabric):
    code = "echo out of $SOFTIB_NODE; printf err >&2; exit ${SOFTIB_NODE#n}"
    done = subprocess.run([*fabric.user, fabric.program, "exec", "--fabric", "t", "--all", "--", "sh",
                           "-c", code], env=fabric.env, capture_output=True, text=True, check=False)
    nodes = ["n1", "n2", "n3"]
    assert sorted(done.stdout.splitlines()) == [f"{node}| out of {node}" for node in nodes]
    assert sorted(done.stderr.splitlines()) == [f"{node}| err" for node in nodes]
    assert done.returncode == 3


def test_all_nodes_run_at_the_same_time_and_a_signal_ends_them(fabric):
    """Each waits until the file of each other is there."""
    code = ("touch \"$0/$SOFTIB_NODE\"; for n in n1 n2 n3; do until [ -e \"$0/$n\" ]; do sleep 0.01; "
            "done; done; echo all; exec sleep 1000")
    process = subprocess.Popen([*fabric.user, fabric.program, "exec", "--fabric", "t", "--all", "--",
                                "sh", "-c", code, fabric.home], env=fabric.env, text=True,
                               stdout=subprocess.PIPE)
    fabric.running.append(process)
    assert sorted(process.stdout.readline() for _ in range(3)) == [f"n{i}| all\n" for i in (1, 2, 3)]
    process.terminate()
    assert process.wait(TIMEOUT) == 128 + signal.SIGTERM


def test_a_remote_shell_takes_ssh_s_words(fabric):
    shell = Path(fabric.program).parent / "softib-rsh"

    def rsh(*words):
        return subprocess.run([*fabric.user, shell, *words], env=fabric.env, capture_output=True,
                              text=True, check=False)

    assert rsh("-x", "-o", "BatchMode=yes", "n2", "echo", "$SOFTIB_NODE;", "exit 5").stdout == "n2\n"
    assert rsh("n2", "exit 5").returncode == 5
    for address in ("10.1.0.3", "fd73:6f66:7469:6201::3"):
        assert rsh(address, "echo $SOFTIB_NODE").stdout == "n3\n", address
    assert "or an IP address" in rsh("10.1.0.4", "true").stderr
    assert "leave out the user stranger" in rsh("-l", "stranger", "n2", "true").stderr
    assert rsh("stranger@n2", "true").returncode == 1 and rsh().returncode == 64


@pytest.mark.parametrize("net, hosts", [
    ("host", "n1,n2,n3"), ("node", "n1,n2,n3"), ("node", "10.1.0.1,10.1.0.2,10.1.0.3")])
@pytest.mark.parametrize("user", users(), ids=lambda user: "nobody" if user else "self")
def test_mpirun_starts_its_daemons_on_other_nodes(user, net, hosts):
    if net == "node" and not allowed(user):
        pytest.skip("the kernel allows this user no network namespaces")
    with Fabric("star:3", up_args=("--net", net), user=user) as fabric:
        done = subprocess.run([*fabric.user, fabric.program, "exec", "--fabric", "t", "n1", "--", "env",
                               "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                               "mpirun", "--host", hosts, "-n", "3", "sh", "-c",
                               "echo rank $OMPI_COMM_WORLD_RANK of $SOFTIB_NODE"], env=fabric.env,
                              cwd=fabric.home, capture_output=True, text=True, timeout=TIMEOUT,
                              check=False)
    assert sorted(done.stdout.splitlines()) == [f"rank {i} of n{i + 1}" for i in range(3)], done


def test_softib_mpirun_where_nodes_have_networks():
    with Fabric("pair", up_args=("--net", "node")) as fabric:
        text = fabric.softib("mpirun", "--fabric", "t", "-n", "2", BUILD / "tests/bench/bench-mpi", "lat:8")
    assert re.search(r"^lat:8 ", text, re.M), text


# --- nothing is left ---


def holders(names):
    """Processes that are in one of these namespaces, or hold one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for folder in ("ns", "fd"):
            try:
                links = [os.readlink(link) for link in (process / folder).iterdir()]
            except OSError:
                continue  # it has ended, or is another user's
            if names & set(links):
                found.append(process.name)
    return found


def mounted(text):
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if text in line]


def end_by_down(fabric):
    fabric.softib("down", "t")


def end_by_killing(*names):
    def end(fabric):
        softibd = int((fabric.dir / "pid").read_text())
        status = Path(f"/proc/{softibd}/status").read_text()
        softib = int(re.search(r"^PPid:\s+(\d+)", status, re.M)[1])
        for name in names:
            with contextlib.suppress(ProcessLookupError):  # who is told of the first one's death may be sooner
                os.kill(softib if name == "softib" else softibd, signal.SIGKILL)
    return end


@pytest.mark.parametrize("end", [end_by_down, end_by_killing("softib"), end_by_killing("softibd"),
                                 end_by_killing("softib", "softibd")],
                         ids=["down", "kill softib", "kill softibd", "kill both"])
def test_nothing_is_left(end):
    if not allowed(()):
        pytest.skip("the kernel allows this user no network namespaces")
    fabric = Fabric("pair", up_args=("--net", "node"))
    fabric.__enter__()
    try:
        names = set()
        for node in ("n1", "n2"):
            names |= set(on(fabric, node, "readlink",
                            *(f"/proc/self/ns/{kind}" for kind in KINDS)).split())
        assert len(names) == 2 * len(KINDS) and holders(names)
        if end is end_by_down:
            on(fabric, "n2", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &")
            assert len(holders(names)) > 1  # softibd, and that program
        end(fabric)
        wait_until(lambda: not holders(names), lambda: f"{holders(names)} hold namespaces")
        wait_until(lambda: not processes(str(fabric.dir)), "its processes end")
        assert not mounted(str(fabric.home))
    finally:
        Fabric.up.remove(fabric)
        subprocess.run([SOFTIB, "down", "t"], env=fabric.env, capture_output=True, check=False)


def test_words(pair):
    for args, message in [(("--net", "none"), "node or host"),
                          (("--net", "node", "--no-namespace"), "--no-namespace leaves out")]:
        done = subprocess.run([SOFTIB, "exec", "--fabric", "t", *args, "n1", "--", "true"],
                              env=pair.env, capture_output=True, text=True, check=False)
        assert done.returncode == 64 and message in done.stderr
