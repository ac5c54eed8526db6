# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs of every day between nodes with an ib0, in datagram and in connected mode: what a host
on an IP network runs. test_nodes.py is about the nodes themselves."""
import ipaddress
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from interop.commands import processes
from interop.fabric import BUILD, NOBODYS_ID, SOFTIB, TIMEOUT, Fabric, kill, link_local, public_copy, wait_until
# pylint: disable-next=unused-import # perftest by name, on the fabrics of this file as well
from interop.test_nodes import KINDS, allowed, holders, mounted, on, test_perftest_by_name_on_one_port, users

MTU = {"datagram": 2044, "connected": 65520}
LARGEST = 65507  # payload of a datagram of IPv4
pytestmark = pytest.mark.skipif(not allowed(()), reason="the kernel allows no network namespaces")


def user_id(user):
    return "nobody" if user else "self"


# Of root's part of CI (SOFTIB_SELF_ALONE) one mode: the ordinary user's run has both.
MODES = list(MTU)[-1:] if os.getenv("SOFTIB_SELF_ALONE") and os.getuid() == 0 else list(MTU)
SETTINGS = [(user, mode) for user in users() for mode in MODES]
by_user = pytest.mark.parametrize("user", users(), ids=user_id)


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda s: f"{user_id(s[0])}-{s[1]}")
def setting(request):
    user, mode = request.param
    with Fabric("star:4", up_args=("--net", "node", "--ipoib-mode", mode), user=user) as fabric:
        yield fabric, mode


@pytest.fixture
def fabric(setting):
    return setting[0]


@pytest.fixture
def mode(setting):
    return setting[1]


def serve(fabric, node, port, *argv, family="t", **kwargs):
    """Start a server; it listens at @port."""
    process = fabric.start(node, *argv, **kwargs)
    wait_until(lambda: f":{port} " in on(fabric, node, "ss", f"-ln{family}") or process.poll() is not None,
               f"{argv[0]} listens")
    assert process.poll() is None, fabric.finish(process)
    return process


# --- ICMP ---

def test_ping_of_all_sizes(fabric, mode):
    whole = MTU[mode] - 28  # of IPv4 and ICMP
    for size in (0, 1, whole, whole + 1, 5 * MTU["datagram"], LARGEST):
        for version in ("-4", "-6"):
            fits = size <= whole - (20 if version == "-6" else 0)
            flags = ["-M", "do"] if fits else []
            assert " 0% packet loss" in on(fabric, "n1", "ping", version, "-c", "2", "-i", "0.2", "-W", "5",
                                           "-s", str(min(size, LARGEST)), *flags, "n2"), (size, version)
    done = on(fabric, "n1", "sh", "-c", f"ping -M do -c 1 -W 1 -s {whole + 1} n2 -4 2>&1 || true")
    assert f"mtu={MTU[mode]}" in done.replace(" ", "").replace("mtu:", "mtu=") or "too long" in done, done


def test_a_flood_of_pings(fabric, mode):
    flood = ["-f"] if not fabric.user and not os.getuid() else ["-i", "0.002"]
    for version in ("-4", "-6"):
        done = on(fabric, "n1", "ping", version, "-q", *flood, "-c", "2000" if flood == ["-f"] else "300", "-s", "1000",
                  "n3")
        assert " 0% packet loss" in done, done


def test_a_way_of_one_hop(fabric, mode):
    for address in ("10.1.0.2", "fd73:6f66:7469:6201::2"):
        assert re.search(rf"1\.\|-- {address} +0\.0%", on(fabric, "n1", "mtr", "-r", "-c", "1", "-G", "0.5", "-n", address))


# --- TCP and UDP ---

def test_iperf3(fabric, mode):
    def state(node, key):
        return fabric.json("ipoib", "--fabric", "t", node)[0][key]

    def lost():
        """Packets that did not get from one node's kernel to the other's. How many segments TCP sends again tells
        of the machine's load as well: it takes a late answer for a lost one."""
        counters = "cd /sys/class/infiniband/softib0/ports/1/counters; cat port_xmit_discards"
        return [int(on(fabric, node, "sh", "-c", counters)) + state(node, "rx_dropped") for node in ("n1", "n2")]

    server = serve(fabric, "n2", 5301, "iperf3", "-s", "-p", "5301")
    on(fabric, "n1", "ping", "-6", "-c", "1", "n2")  # both addresses are known: nothing waits for one
    on(fabric, "n1", "ping", "-4", "-c", "1", "n2")
    before, dropped = lost(), state("n1", "tx_dropped")
    for args in ("-t 1 --bidir", "-6 -t 1 -P 4", "-n 16M -M 536", "-6 -n 16M -R"):
        done = json.loads(on(fabric, "n1", "iperf3", "--json", "-p", "5301", "-c", "n2", *args.split()))
        assert done["end"]["sum_received"]["bytes"] > 1 << 20, args
        assert lost() == before, args
        # the kernel cuts no more segments than there is room for, even the short ones of -M 536: else hundreds. What
        # else is dropped are questions for routers, of whose group nobody is a member
        assert state("n1", "tx_dropped") - dropped < 8, args
    for args in ("-l 1000", "-l 1000 -R", f"-l {LARGEST}", "-6 -l 9000 -P 2"):
        done = json.loads(on(fabric, "n1", "iperf3", "--json", "-p", "5301", "-u", "-b", "20M", "-n", "600K", "-c",
                             "n2", *args.split()))["end"]["sum"]
        assert done["packets"] and done["lost_packets"] <= done["packets"] / 10, args
    server.terminate()


def test_nginx_and_curl(fabric, mode):
    conf = fabric.home / "nginx.conf"
    conf.write_text(f"daemon off; master_process off; pid {fabric.home}/nginx.pid; error_log stderr;\n"
                    "events {}\nhttp { access_log off; server { listen [::]:8080 ipv6only=off;\n"
                    f"root {fabric.home}; client_body_temp_path {fabric.home}/body; }}\n"
                    + "".join(f"{name}_temp_path {fabric.home}/{name};\n"
                              for name in ("proxy", "fastcgi", "uwsgi", "scgi")) + "}\n")
    (fabric.home / "page").write_bytes(os.urandom(1 << 20))
    os.chmod(fabric.home, 0o755)
    server = serve(fabric, "n3", 8080, "nginx", "-c", conf)
    route = "ip route replace 10.1.0.0/16 dev ib0 src 10.1.0.1"
    for version, before in (("-4", "true"), ("-6", "true"),
                            ("-4", f"{route} advmss 3000"),  # large segments of parts that are no datagrams
                            ("-4", route)):
        on(fabric, "n1", "sh", "-c", before)
        on(fabric, "n1", "curl", version, "-sSf", "-o", fabric.home / "got", "http://n3:8080/page")
        assert (fabric.home / "got").read_bytes() == (fabric.home / "page").read_bytes()
        (fabric.home / "got").unlink()
    server.terminate()


@pytest.mark.parametrize("group,receive,send", [
    ("239.1.2.3", "UDP4-RECV:5302,ip-add-membership=239.1.2.3:ib0", "UDP4-DATAGRAM:239.1.2.3:5302,ip-multicast-if="),
    ("ff15::123", "UDP6-RECV:5302,ipv6-join-group=[ff15::123]:ib0", "UDP6-DATAGRAM:[ff15::123]:5302")])
def test_multicast_of_udp(fabric, mode, group, receive, send):
    """Two receivers hear what a third node sends, which is no member; saquery shows the group."""
    family = "u"
    heard = {node: serve(fabric, node, 5302, "socat", "-u", receive, f"OPEN:{fabric.home}/{node},creat,trunc",
                         family=family) for node in ("n2", "n3")}
    mgid = "ff12:401b:ffff::f01:203" if group[0] == "2" else "ff15:601b:ffff::123"
    last = mgid.rsplit(":", 1)[1]
    to = send + ("10.1.0.1" if send.endswith("=") else "")

    def all_heard():
        on(fabric, "n1", "sh", "-c", f"echo word | socat -u - '{to}'")
        return all((fabric.home / node).exists() and "word" in (fabric.home / node).read_text()
                   for node in heard)

    wait_until(all_heard, "both have heard it")
    assert re.search(rf"MGID\.+ff1.:.01b:ffff::(.*:)?{last}$", on(fabric, "n4", "saquery", "-g"), re.M)
    assert last in fabric.softib("ipoib", "--fabric", "t", "n2")
    for node, process in heard.items():
        process.terminate()
        process.wait(TIMEOUT)
        (fabric.home / node).unlink()


def test_tcpdump_on_ib0(fabric, mode):
    args = ["tcpdump", *([] if fabric.user or os.getuid() else ["-Z", "root"]), "-n", "-l", "-i", "ib0", "-c", "4",
            "icmp or (icmp6 and (ip6[40] == 128 or ip6[40] == 129))"]
    process = fabric.start("n2", *args)
    assert any("listening on ib0" in line for line in process.stdout)
    on(fabric, "n1", "ping", "-4", "-c", "1", "n2")
    on(fabric, "n1", "ping", "-6", "-c", "1", "n2")
    out = fabric.finish(process)
    assert "IP 10.1.0.1 > 10.1.0.2: ICMP echo request" in out and "IP6 fd73:6f66:7469:6201::2 >" in out, out


def test_the_kernel_takes_it_for_infiniband(fabric):
    assert "link/infiniband" in on(fabric, "n1", "ip", "link", "show", "ib0")
    assert on(fabric, "n1", "cat", "/sys/class/net/ib0/type") == "32\n"


def test_completions_are_moderated(fabric, mode):
    """What ethtool -C does to an adapter: more of them come with each event. Nothing is lost, and 0 ends it."""
    server = serve(fabric, "n2", 5307, "iperf3", "-s", "-p", "5307")

    def state():
        return fabric.json("ipoib", "--fabric", "t", "n2")[0]

    def completions_of_an_event():
        before = state()
        done = json.loads(on(fabric, "n1", "iperf3", "--json", "-u", "-l", "1000", "-b", "8M", "-n", "600K", "-p", "5307",
                             "-c", "n2"))["end"]["sum"]
        after = state()
        assert done["lost_packets"] <= done["packets"] / 10, done
        return (after["completions"] - before["completions"]) / (after["events"] - before["events"])

    assert (state()["rx_usecs"], state()["rx_frames"]) == (0, 0)
    fabric.softib("ipoib", "--fabric", "t", "n2", "moderate", "--rx-usecs", "5000", "--rx-frames", "12")
    assert (state()["rx_usecs"], state()["rx_frames"]) == (5000, 12)
    # a datagram comes each millisecond: alone, or with what came within 5 ms, in connected mode four of them
    assert completions_of_an_event() >= 3
    assert "rx-usecs 5000, rx-frames 12" in fabric.softib("ipoib", "--fabric", "t", "n2")
    fabric.softib("ipoib", "--fabric", "t", "n2", "moderate", "--rx-usecs", "0")
    assert (state()["rx_usecs"], state()["rx_frames"]) == (0, 12)
    server.terminate()
    for words, expected in ((["--rx-frames", "65536"], "take a number up to 65535"), ([], "moderate comes with")):
        done = subprocess.run([*fabric.user, fabric.program, "ipoib", "n2", "moderate", *words], env=fabric.env,
                              capture_output=True, text=True, check=False)
        assert done.returncode and expected in done.stderr, done


def test_dhcp(fabric, mode):
    """RFC 4390, as in test_nodes.py, in the mode of this fabric."""
    server = fabric.start("n2", "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--no-ping",
                          "--no-resolv", "--no-hosts", "--interface=ib0", "--bind-interfaces", "--user=",
                          "--dhcp-range=10.1.5.1,10.1.5.99,255.255.0.0", "--leasefile-ro", "--pid-file=",
                          "--log-facility=-")
    assert any("sockets bound" in line for line in server.stdout)
    script = fabric.home / "lease.sh"
    script.write_text('#!/bin/sh\necho "$1 $ip on $interface"\n')
    script.chmod(0o755)
    done = on(fabric, "n1", "udhcpc", "-f", "-q", "-n", "-B", "-i", "ib0", "-s", script, "-x", "0x3d:0001")
    assert re.search(r"^bound 10\.1\.5\.\d+ on ib0$", done, re.M), done
    server.terminate()


# --- ssh and MPI ---

BIND = """if True:
    import ctypes, sys
    libc = ctypes.CDLL(None, use_errno=True)
    sys.exit(libc.mount(sys.argv[1].encode(), sys.argv[2].encode(), None, 4096, None))  # MS_BIND"""


def account(fabric, node):
    """Nobody may not log in anywhere: on this node the user has another name. mount(8) does not look at
    capabilities."""
    passwd = fabric.home / "passwd"
    passwd.write_text(f"somebody:x:{NOBODYS_ID}:{NOBODYS_ID}::{fabric.home}:/bin/sh\n")
    passwd.chmod(0o644)
    on(fabric, node, "python3", "-c", BIND, passwd, "/etc/passwd")
    return ["-l", "somebody"]


def test_ssh_and_rsync(fabric, mode):
    """The user is the one who runs the tests."""
    home = fabric.home / "ssh"
    if not home.exists():
        subprocess.run([*fabric.user, "mkdir", "-m", "700", home], check=True)
        for name in ("host", "user"):
            subprocess.run([*fabric.user, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / name], check=True)
    name = account(fabric, "n2") if fabric.user else []
    (home / "config").write_text(
        f"Port 5303\nHostKey {home}/host\nAuthorizedKeysFile {home}/user.pub\nPidFile none\nUsePAM no\n"
        "StrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n")
    if not os.getuid():
        Path("/run/sshd").mkdir(exist_ok=True)
    server = serve(fabric, "n2", 5303, "/usr/sbin/sshd", "-D", "-e", "-f", home / "config")
    ssh = ["ssh", "-F", "none", "-p", "5303", "-i", str(home / "user"), "-o", "StrictHostKeyChecking=no",
           "-o", f"UserKnownHostsFile={home}/known", "-o", "BatchMode=yes", *name]
    assert on(fabric, "n1", *ssh, "n2", "uname -n") == "n2\n"
    (home / "data").write_bytes(os.urandom(2 << 20))
    for version in ("-4", "-6"):
        on(fabric, "n1", "rsync", "-e", " ".join([*ssh, version]), home / "data", f"n2:{home}/copy")
        assert (home / "copy").read_bytes() == (home / "data").read_bytes()
        (home / "copy").unlink()
    server.terminate()


@pytest.mark.parametrize("library,command,version", [
    ("libmpi.so.40", "mpirun --map-by node --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include ib0 "
                     "--hostfile {} -n 4", "IPv4"),
    ("libmpi.so.40", "mpirun --map-by node --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include ib0 "
                     "--mca btl_tcp_disable_family 4 --hostfile {} -n 4", "IPv6"),
    ("libmpich.so.12", "mpiexec.hydra -iface ib0 -f {} -n 4", "IPv4"),
    ("libmpich.so.12", "mpiexec.hydra -iface ib0 -genv UCX_TCP_AF_PRIO inet6 -f {} -n 4", "IPv6")],
    ids=["open-mpi", "open-mpi-ipv6", "mpich", "mpich-ipv6"])
def test_mpi_by_hostfile(fabric, library, command, version):
    """Four ranks on four nodes, whose daemons softib's remote shell starts; their data goes over ib0, by @version."""
    def received():
        code = {"IPv4": "awk '/^Ip: [0-9]/ {print $4}' /proc/net/snmp",
                "IPv6": "awk '/^Ip6InReceives/ {print $2}' /proc/net/snmp6"}[version]
        return int(on(fabric, "n4", "sh", "-c", code))

    hosts = fabric.home / "hosts"
    hosts.write_text("n1\nn2\nn3\nn4\n")
    environment = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "UCX_TLS=tcp,self",
                   "UCX_NET_DEVICES=ib0", f"HOME={fabric.home}"]
    before = received()
    with (fabric.home / "mpi.err").open("w+") as errors:
        process = fabric.start("n1", "timeout", "-k", "1", TIMEOUT, *environment, *command.format(hosts).split(),
                               "python3", fabric.script(Path(__file__).parent / "mpi_side.py"), library,
                               cwd=fabric.home, stderr=errors)
        said = [process.stdout.readline().rstrip() for _ in range(4)]
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:  # MPICH's MPI_Finalize() hangs now and then over TCP, everywhere
            kill(process)
        errors.seek(0)
        assert sorted(said) == [f"hello from {rank} of 4 on n{rank + 1}: [6, 4]" for rank in range(4)], errors.read()
    assert received() > before + (20 if version == "IPv4" else 5)  # the daemons speak IPv4 here


def test_pdsh(fabric):
    done = on(fabric, "n1", "pdsh", "-R", "exec", "-w", "n2,10.1.0.4", "softib-rsh", "%h", "uname", "-n")
    assert sorted(done.splitlines()) == ["10.1.0.4: n4", "n2: n2"]


# --- what is on the wire ---

VERIFY = [word for protocol in ("ip", "tcp", "udp") for word in ("-o", f"{protocol}.check_checksum:TRUE")]


def test_tshark_reads_all_of_it(fabric, mode):
    capture = fabric.home / f"{mode}.pcap"
    new = link_local("n3")  # to which nothing was sent before
    process = subprocess.Popen([*fabric.user, fabric.program, "capture", "--fabric", "t", "-w", capture, "n1:1"],
                               env=fabric.env, stderr=subprocess.PIPE, text=True)
    fabric.running.append(process)
    server = serve(fabric, "n2", 5304, "iperf3", "-s", "-p", "5304")
    wait_until(lambda: capture.exists(), "the capture has begun")
    on(fabric, "n1", "sh", "-c", "ip addr add 10.1.77.1/16 dev ib0; ping -c 1 -W 1 10.1.77.77; ping -4 -c 1 n3; "
       f"ping -6 -c 1 n4; ping -6 -c 1 {new}%ib0; ping -6 -c 1 -s 9000 n2; iperf3 -c n2 -p 5304 -n 200K; ip addr del 10.1.77.1/16 dev ib0")
    server.terminate()
    process.terminate()
    process.wait(TIMEOUT)

    def frames(expression):
        done = subprocess.run(["tshark", "-r", capture, *VERIFY, "-Y", expression, "-T", "fields", "-e", "frame.number"],
                              capture_output=True, text=True, check=True)
        return len(done.stdout.split())

    for expression in ("arp.hw.type == 32", "icmp.type == 0", "icmpv6.type == 135 or icmpv6.type == 136",
                       "tcp.port == 5304", "ipv6.fragment" if mode == "datagram" else "icmpv6.type == 129"):
        assert frames(f"infiniband and ({expression})"), expression
    assert not frames("_ws.malformed")
    whole = "infiniband.bth.opcode == 4 or infiniband.bth.opcode == 100"  # a message of one packet
    assert not frames(f"({whole}) and (tcp.checksum.status == Bad or icmpv6.checksum.status == Bad)")
    assert not frames(f"({whole}) and (ip.checksum.status == Bad or udp.checksum.status == Bad)")
    least = 1000 if mode == "datagram" else 0  # what the adapter has cut; segments of connections are longer messages
    assert frames(f"({whole}) and tcp.checksum.status == Good and ip.checksum.status == Good and tcp.len >= {least}")


# --- hostile neighbours ---

def link_bytes(link):
    return link.replace(":", "")


def arp(op, sender, sender_ip, target_ip):
    return f"08060000" f"0020080014040{op:03x}{sender}{sender_ip}{'0' * 40}{target_ip}"


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def neighbour(kind, target, link, source, hops=255, code=0, length=3, spoil=0):
    """A frame of neighbour discovery to n1: a solicitation (135) or advertisement (136) with the option of a link
    address. @length: of the option, in units of 8 bytes; @spoil: added to the checksum"""
    source, target, to = (ipaddress.IPv6Address(address).packed for address in (source, target, N1_IPV6))
    option = bytes([1 if kind == 135 else 2, length]) + bytes(2) + bytes.fromhex(link)
    message = bytes([kind, code, 0, 0]) + struct.pack("!I", 0x60000000 if kind == 136 else 0) + target + option
    pseudo = source + to + struct.pack("!II", len(message), 58)
    message = message[:2] + struct.pack("!H", checksum(pseudo + message) ^ spoil) + message[4:]
    return "86dd0000" + (struct.pack("!IHBB", 6 << 28, len(message), 58, hops) + source + to + message).hex()


N1_IPV6, N2_IPV6, NOBODYS_IPV6 = (f"fd73:6f66:7469:6201::{n:x}" for n in (1, 2, 0x99))


def test_frames_of_a_hostile_neighbour(fabric, mode):
    """A program on n3 sends n1 what no host sends. What is malformed is counted; n1 answers as before, and keeps the
    neighbour that it knows."""
    wait_until(lambda: not fabric.json("ipoib", "--fabric", "t", "n1")[0]["verifying"], "n1 has told of its address")
    state = fabric.json("ipoib", "--fabric", "t", "n1")[0]
    n3 = link_bytes(fabric.json("ipoib", "--fabric", "t", "n3")[0]["link"])
    lid = int(on(fabric, "n1", "cat", "/sys/class/infiniband/softib0/ports/1/lid"), 0)
    qpn = int(link_bytes(state["link"])[2:8], 16)
    n1_ip, nobody = "0a010001", "0a010163"

    def send(*frames):
        program = fabric.home / "ipoib_frames"
        if not program.exists():
            shutil.copy(BUILD / "tests/programs/ipoib_frames", program)
        return int(on(fabric, "n3", program, str(lid), str(qpn), *frames))

    def counted(key):
        return fabric.json("ipoib", "--fabric", "t", "n1")[0][key]

    def reaches_n2():
        return all(" 0% packet loss" in on(fabric, "n1", "ping", version, "-c", "1", "-W", "5", "n2") for version in ("-4", "-6"))

    assert reaches_n2()
    malformed = ["08", "0800", "08000000", "0800000045", "08060000" + "00" * 20,  # runts
                 "1234000045" + "00" * 40, "0800000065" + "00" * 40, "86dd000045" + "00" * 60,  # of other types
                 "0800000045" + "00ffff" + "00" * 30,  # longer than it is
                 arp(1, "00000001" + n3[8:], nobody, n1_ip), arp(1, "00ffffff" + n3[8:], nobody, n1_ip),  # QPNs
                 arp(2, n3[:8] + "ff" + n3[10:], nobody, n1_ip), arp(2, n3[:8] + "0" * 32, nobody, n1_ip),  # GIDs
                 arp(1, n3, nobody, n1_ip).replace("0020080014", "0001080006", 1),  # of Ethernet
                 arp(9, n3, nobody, n1_ip),  # of no operation
                 neighbour(136, N2_IPV6, n3, NOBODYS_IPV6, hops=254),  # from beyond a router
                 neighbour(136, N2_IPV6, n3, NOBODYS_IPV6, spoil=1), neighbour(136, N2_IPV6, n3, NOBODYS_IPV6, code=1),
                 neighbour(136, N2_IPV6, n3, NOBODYS_IPV6, length=0), neighbour(135, N1_IPV6, n3, NOBODYS_IPV6, length=9),
                 neighbour(136, "ff02::1", n3, NOBODYS_IPV6),  # of a group
                 neighbour(135, N1_IPV6, "00000001" + n3[8:], NOBODYS_IPV6),
                 neighbour(135, N1_IPV6, n3[:8] + "0" * 32, NOBODYS_IPV6)]
    before = counted("rx_errors")
    assert send(*malformed) == len(malformed)
    wait_until(lambda: counted("rx_errors") == before + len(malformed), lambda: counted("rx_errors") - before)
    assert reaches_n2()
    largest = "08000000" + "45000fff" + "00" * (4092 - 8)  # beyond the MTU of the group
    send(largest)
    wait_until(reaches_n2, "it has restarted, if it had to")
    known = {n["ip"]: n.get("link") for n in counted("neighbours")}  # none: it is asked for
    send(arp(2, n3, nobody, n1_ip), neighbour(136, NOBODYS_IPV6, n3, NOBODYS_IPV6))  # nobody has asked
    send(arp(1, n3, n1_ip, n1_ip))  # n1's own address
    wait_until(lambda: counted("conflicts") > state["conflicts"], "n1 has seen who claims its address")
    later = {n["ip"]: n.get("link") for n in counted("neighbours")}
    assert not {"10.1.1.99", NOBODYS_IPV6} & later.keys()
    assert all(known[ip] == later[ip] for ip in ("10.1.0.2", N2_IPV6))
    assert " 0% packet loss" in on(fabric, "n4", "ping", "-4", "-c", "1", "-W", "5", "n1") and reaches_n2()


# --- other subnet managers, larger fabrics, and broken ones ---

def groups(fabric):
    return set(re.findall(r"MGID\.+(ff1\S+:[46]01b:\S+)", on(fabric, "n2", "saquery", "-g")))


@by_user
@pytest.mark.parametrize("mode", MTU)
def test_opensm_with_several_lids_for_a_port(user, mode):
    """LMC 2; what softib-sm does of groups, opensm does."""
    found = []
    for sm in ("softib-sm", "none"):
        with Fabric("pair", sm=sm, up_args=("--net", "node", "--ipoib-mode", mode), user=user) as fabric:
            if sm == "none":
                fabric.start("n1", "opensm", "-e", "-l", "2", "-f", fabric.home / "log")
                fabric.softib("wait", "--fabric", "t")
                wait_until(lambda: on(fabric, "n2", "cat", "/sys/class/infiniband/softib0/ports/1/lid_mask_count")
                           .strip() in ("2", "0x2"), "opensm sets the LMC")
            wait_until(lambda: len(re.findall(r" ib0 +yes ", fabric.softib("ipoib", "--fabric", "t"))) == 2,
                       "both have joined")
            for version in ("-4", "-6"):
                assert " 0% packet loss" in on(fabric, "n1", "ping", version, "-c", "2", "-i", "0.2", "-s", "3000",
                                               "n2")
            found.append(groups(fabric))
    assert found[0] == found[1] and "ff12:401b:ffff::ffff:ffff" in found[0], found


@by_user
def test_the_mtu_of_the_broadcast_group(user):
    """RFC 4391 section 7: 4096 of the group are 4092 of IP. softib-sm, opensm by softib's option, and opensm by its
    own partitions.conf, which then says 2048."""
    def mtu(fabric, node):
        return int(re.search(r" mtu (\d+) ", on(fabric, node, "ip", "link", "show", "ib0"))[1])

    def whole(fabric, size):
        for version, headers in (("-4", 28), ("-6", 48)):
            assert " 0% packet loss" in on(fabric, "n1", "ping", version, "-c", "2", "-i", "0.2", "-W", "5", "-M", "do",
                                           "-s", str(size - headers), "n2")
        done = on(fabric, "n1", "sh", "-c", f"ping -4 -M do -c 1 -W 1 -s {size - 27} n2 2>&1 || true")
        assert f"mtu={size}" in done.replace(" ", "").replace("mtu:", "mtu=") or "too long" in done, done

    for args, manager in ((("--ipoib-mtu", "4096"), "softib-sm"), (("--ipoib-mtu", "4096"), "opensm"), ((), "none")):
        with Fabric("pair", sm=manager, up_args=("--net", "node", *args), user=user) as fabric:
            config = fabric.home / "partitions.conf"
            if manager == "none":
                config.write_text("Default=0x7fff, ipoib, mtu=5 : ALL=full, SELF=full;\n")
                opensm = fabric.start("n1", "opensm", "-e", "-P", config, "-f", fabric.home / "log")
                fabric.softib("wait", "--fabric", "t")
            wait_until(lambda: [mtu(fabric, node) for node in ("n1", "n2")] == [4092, 4092], "both have joined")
            whole(fabric, 4092)
            assert re.search(r"MGID\.+ff12:401b:ffff::ffff:ffff\n.*?Mtu\.+0x(5|85)\n", on(fabric, "n2", "saquery", "-g"),
                             re.S)
            server = serve(fabric, "n2", 5306, "iperf3", "-s", "-p", "5306")
            done = json.loads(on(fabric, "n1", "iperf3", "--json", "-p", "5306", "-n", "16M", "-c", "n2"))
            assert done["start"]["tcp_mss_default"] >= 4092 - 72
            server.terminate()
            fabric.softib("ipoib", "n1", "connected")
            assert mtu(fabric, "n1") == 65520
            fabric.softib("ipoib", "n1", "datagram")
            assert mtu(fabric, "n1") == 4092
            if manager == "none":
                opensm.terminate()
                opensm.wait(TIMEOUT)
                config.write_text("Default=0x7fff, ipoib : ALL=full, SELF=full;\n")
                fabric.start("n1", "opensm", "-e", "-P", config, "-f", fabric.home / "log")
                wait_until(lambda: [mtu(fabric, node) for node in ("n1", "n2")] == [2044, 2044], "both have joined anew")
                whole(fabric, 2044)


@by_user
@pytest.mark.parametrize("mode", MTU)
def test_all_nodes_ping_all_others(user, mode):
    with Fabric("star:64", up_args=("--net", "node", "--ipoib-mode", mode), user=user) as fabric:
        for network in ("10.1.0.{}", "fd73:6f66:7469:6201::{:x}"):
            addresses = [network.format(n) for n in range(1, 65)]
            done = fabric.softib("exec", "--fabric", "t", "--all", "--", "fping", "-a", "-r", "3", "-t", "2000", "-i",
                                 "1", *addresses)
            answers = re.findall(r"^n\d+\| (\S+)$", done, re.M)
            assert sorted(answers) == sorted(64 * addresses), len(answers)


def passed(fabric, first, last):
    return [link["node"] for link in fabric.json("path", first, last)["links"]]


@by_user
@pytest.mark.parametrize("mode", MTU)
def test_a_switch_dies_under_iperf3(user, mode):
    """Of the two switches in the middle the one dies that both streams pass, one by IPv4 and one by IPv6."""
    with Fabric("fattree:2,2", up_args=("--net", "node", "--ipoib-mode", mode), user=user) as fabric:
        names = [node["name"] for node in fabric.json("topo")["nodes"] if node["kind"] == "ca"]
        first, last = names[0], names[-1]
        plan = next(node["addresses"][0] for node in fabric.json("topo")["nodes"] if node["name"] == last)
        streams = {"5305": plan["ipv4"].split("/")[0], "5306": plan["ipv6"].split("/")[0]}  # ports and addresses
        servers = [serve(fabric, last, port, "iperf3", "-s", "-p", port) for port in streams]
        clients = [fabric.start(first, "iperf3", "--json", "-c", address, "-p", port, "-t",
                                "5" if mode == "datagram" else "20", "-i", "0.5")  # a connection sends again after seconds
                   for port, address in streams.items()]
        fabric.wait_for_traffic(last, 1000)
        middle = passed(fabric, first, last)[2]
        fabric.softib("fault", "add", "node", middle, "death")
        for client in clients:
            done = json.loads(fabric.finish(client))
            assert "error" not in done, done["error"]
            sent = [interval["sum"]["bytes"] for interval in done["intervals"]]
            assert len(sent) >= 9 and all(sent[-2:]), sent
        assert middle not in passed(fabric, first, last)
        for server in servers:
            server.terminate()


# --- nothing is left ---

@by_user
def test_many_fabrics_leave_nothing(user, home):
    """SOFTIB_FABRICS=100 runs as many of them, and so does `make check-fabrics`."""
    program = public_copy() / "bin/softib" if user else SOFTIB
    if user:
        os.chown(home, NOBODYS_ID, NOBODYS_ID)
    env = dict(os.environ, XDG_RUNTIME_DIR=str(home))
    devices, names = os.listdir("/sys/class/net"), set()
    for _ in range(int(os.environ.get("SOFTIB_FABRICS", "8"))):
        for words in (("up", "t", "--net", "node"), ("exec", "--fabric", "t", "n1", "--", "ping", "-c", "1", "n2"),
                      ("ipoib", "--fabric", "t", "n1", "connected"),
                      ("exec", "--fabric", "t", "n2", "--", "readlink", *(f"/proc/self/ns/{k}" for k in KINDS)),
                      ("down", "t")):
            done = subprocess.run([*user, program, *words], env=env, cwd=home, check=True, capture_output=True, text=True)
            names |= set(done.stdout.split()) if "readlink" in words else set()
    assert names
    wait_until(lambda: not holders(names), lambda: f"{holders(names)} hold namespaces")
    wait_until(lambda: not processes(str(home)), "its processes end")
    assert not mounted(str(home)) and os.listdir("/sys/class/net") == devices
    assert not list((home / "softib").iterdir())


# --- what is missing on the machine ---

def up_without(home, *preparation):
    """softib up --net node after shell commands that take something away."""
    code = " && ".join(preparation) + ' && exec "$@"'
    return subprocess.run(["unshare", "-Urm", "sh", "-c", code, "sh", SOFTIB, "run", "--net", "node", "--nodes",
                           "2", "--", "ls", "/sys/class/net"], env=dict(os.environ, XDG_RUNTIME_DIR=str(home)),
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)


def test_no_tun_device(home):
    done = up_without(home, "mount -t tmpfs none /dev/net")
    assert done.stdout == "lo\n" and "no /dev/net/tun: the nodes have addresses, but no ib0" in done.stderr, done


def test_no_network_namespaces(home):
    done = up_without(home, "echo 0 > /proc/sys/user/max_net_namespaces")
    assert "no network namespaces: the nodes share the machine's network" in done.stderr, done


def test_no_user_namespaces(home):
    """An ordinary user, to whom the administrator allows none."""
    done = up_without(home, "echo 0 > /proc/sys/user/max_user_namespaces",
                      'set -- setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all "$@"')
    assert "no network namespaces: the nodes share the machine's network" in done.stderr, done
    assert "raise user.max_user_namespaces" in done.stderr and "unprivileged_userns_clone" not in done.stderr, done
    assert done.returncode == 0, done


def test_too_few_network_namespaces(home):
    done = up_without(home, "echo 1 > /proc/sys/user/max_net_namespaces")
    assert re.search(r"cannot make the network of node n[12]: .* raise user\..* user\.max_net_namespaces", done.stderr), done
    assert done.returncode == 1, done
