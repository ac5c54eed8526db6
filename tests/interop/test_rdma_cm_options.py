# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The options of the programs that come with the distribution's librdmacm."""
import re

import pytest

from interop.fabric import Fabric, kill, wait_until
from interop.test_rdma_cm import SERVER_IP, cm_ids, play, serve

CLIENT_IP = "10.1.0.2"


@pytest.fixture(scope="module")
def nodes():
    """Nodes with a network of their own, where sockets and groups of IP have interfaces."""
    with Fabric("pair", up_args=("--net", "node")) as fabric:
        yield fabric
        fabric.expect_no_leftovers()


@pytest.mark.parametrize("options", [["-q"], ["-S", "2000"], ["-p", "7001"]], ids=" ".join)
def test_rping(pair, options):
    """-q: the program creates and modifies its queue pair itself."""
    args = ["-a", SERVER_IP, "-v", "-V", "-C", 5, *options]
    server, client = play(pair, ["rping", "-s", *args], ["rping", "-c", *args], statuses=(0, 255))
    for out in server, client:
        assert len(re.findall(r"ping data: rdma-ping-\d", out)) == 5, out


def test_rping_of_the_largest_size(pair):
    """Without -v, which prints all of it; -d tells of each step."""
    args = ["-a", SERVER_IP, "-d", "-V", "-C", 5, "-S", 65535]
    server = play(pair, ["rping", "-s", *args], ["rping", "-c", *args], statuses=(0, 255))[0]
    assert server.count("server received read complete") == 5, server
    assert server.count(" len 65535 from peer") == 10, server  # what to READ, and where to WRITE it


def test_rping_persistent(pair):
    """One server (-P), one client after the other: of two requests at once rping forgets one. The last
    one comes from an address that it names (-I)."""
    server = serve(pair, "rping", "-s", "-P", "-V", "-a", SERVER_IP)
    for options in [], [], ["-I", CLIENT_IP]:
        out = pair.run("n2", "rping", "-c", "-v", "-V", "-C", 20, "-a", SERVER_IP, *options)
        assert out.count("ping data: rdma-ping-") == 20, out
        wait_until(lambda: len(cm_ids(pair, "n1")) == 1, "the listener is the server's last id")
    kill(server)


@pytest.mark.parametrize("program", [
    "ucmatose -c 4 -m", "ucmatose -a 16 -C 50 -S 4096 -p 7999", "udaddy -c 3 -C 20 -S 1024",
    "udaddy -p 0x111 -t 8"])
def test_messages(pair, program):
    """-m: the ids move to another event channel while they are connected."""
    for out in play(pair, program.split(), [*program.split(), "-s", SERVER_IP, "-b", CLIENT_IP]):
        assert "return status 0" in out, out


def test_datagrams_in_the_port_space_of_ipoib(nodes):
    """The Q_Key is that of the group of IPoIB which the port is in."""
    for out in play(nodes, ["udaddy", "-p", "0x2"], ["udaddy", "-p", "0x2", "-s", SERVER_IP]):
        assert "return status 0" in out, out


def test_cmtime(pair):
    server = serve(pair, "cmtime", "-c", 10, "-p", 7998, "-b", SERVER_IP)
    options = ["-c", 10, "-p", 7998, "-r", 2, "-t", 5000]
    out = pair.run("n2", "cmtime", *options, "-b", CLIENT_IP, "-s", SERVER_IP)
    kill(server)
    assert re.search(r"^connect +: +\d+\.\d+ ", out, re.M), out


@pytest.mark.parametrize("program", ["rdma_server rdma_client", "rdma_xserver rdma_xclient"])
def test_ports(pair, program):
    server, client = program.split()
    for out in play(pair, [server, "-p", 7997], [client, "-p", 7997, "-s", SERVER_IP]):
        assert "end 0" in out, out


MCKEY = [
    (["-M", "ff12:401b:ffff::abcd"], []),  # a group by its MGID
    (["-m", "239.1.1.1", "-c", 4, "-S", 1000], []),
    (["-m", "239.1.1.2", "-l"], []),  # nothing comes back to whoever sends
    (["-m", "239.1.1.3"], ["-o"]),  # a member that only sends
]


@pytest.mark.parametrize("options, senders", MCKEY, ids=lambda words: " ".join(map(str, words)))
def test_mckey(nodes, options, senders):
    """The sender goes on until the receiver, of which it does not know when it joins, has heard it."""
    receiver = nodes.start("n1", "mckey", "-C", 10, "-b", SERVER_IP, *options)

    def heard():
        out = nodes.run("n2", "mckey", "-s", "-C", 10, "-b", CLIENT_IP, *options, *senders)
        assert "joined dgid: ff1" in out and "return status 0" in out, out
        return receiver.poll() is not None

    wait_until(heard, "the receiver has heard ten messages")
    out = nodes.finish(receiver)
    assert receiver.returncode == 0 and "data transfers complete" in out, out


def test_a_group_of_senders(nodes):
    """A member that only sends creates the group, and hears nothing of it."""
    sender = nodes.start("n1", "mckey", "-o", "-m", "239.1.1.4", "-b", SERVER_IP, "-C", 1)
    wait_until(lambda: "ff12:4001:ffff::f01:104" in nodes.run("n2", "saquery", "-g"), "the group exists")
    nodes.run("n2", "mckey", "-s", "-m", "239.1.1.4", "-b", CLIENT_IP, "-C", 20)
    assert sender.poll() is None
    kill(sender)
    wait_until(lambda: "f01:104" not in nodes.run("n2", "saquery", "-g"), "the group went with it")


STREAMS = [  # -T v compares each byte
    "rstream -T b -S 64", "rstream -T n -S 64", "rstream -T r -S 64", "rstream -T v -S 100000 -C 10",
    "rstream -k 10 -i 0 -B 100000 -S 4096 -I 5 -C 10", "rstream -i 128 -p 7999 -S 128 -T v",
    "riostream -T b -S 4096 -i 128", "riostream -T n -S 4096", "riostream -T v -S 4096 -I 3 -C 20",
    "riostream -B 65536 -p 7999 -S 1000"]


@pytest.mark.parametrize("program", STREAMS)
def test_streams(pair, program):
    """rsockets that block, that do not, and their memory that peers write to (riostream)."""
    for out in play(pair, program.split(), [*program.split(), "-s", SERVER_IP]):
        assert re.search(r"^custom +\S+ .* \d+\.\d+ ", out, re.M), out


@pytest.mark.parametrize("test", ["s", "a", "b", "n", "e"])
def test_datagram_streams(nodes, test):
    """s: by sockets of the kernel, over ib0. e: the server returns each datagram; without it some may
    be lost, for which there is no receive."""
    options = ["-T", test, "-S", 1000, "-p", 7176]
    server = nodes.start("n1", "udpong", "-b", SERVER_IP, *options)
    wait_until(lambda: ":7176 " in nodes.run("n1", "ss", "-lun"), "the server has its port")
    out = nodes.run("n2", "udpong", "-s", SERVER_IP, "-C", 20, *options)
    assert re.search(r"^custom +1000 +40 " if test == "e" else r"^custom +1000 +[1-9]\d* ", out, re.M), out
    kill(server)
