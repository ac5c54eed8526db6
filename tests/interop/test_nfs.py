# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""NFS over RDMA by softib-rpcrdma: NFS-Ganesha's server on one node, libnfs' programs on others.

The server has its files in memory. As root they are used by NFS 3, which needs rpcbind, which needs
root; an ordinary user's by NFS 4, by which programs of libnfs 4.0 write no more than some 2 KB."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from interop.fabric import TIMEOUT, Fabric, kill, wait_until
from interop.test_capture import Capture, tshark
from interop.test_ipoib import serve
from interop.test_nodes import allowed, on, users

NFS, MOUNT = 2049, 20048        # TCP ports of the server, and of the gateways beside clients
RDMA_NFS, RDMA_MOUNT = 20049, 20050
LONG = 7 << 18                  # bytes of a file, in calls and replies of up to 1 MiB
CONFIG = """
NFS_Core_Param {{ Protocols = {versions}; MNT_Port = 20048; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
                 MaxRPCRecvBufferSize = 8388608; MaxRPCSendBufferSize = 8388608; }}
NFSv4 {{ Graceless = true; RecoveryBackend = fs; Only_Numeric_Owners = true; }}
MEM {{ Inode_Size = 2097152; }}
EXPORT {{ Export_Id = 1; Path = /export; Pseudo = /export; Access_Type = RW; Squash = None; SecType = sys; Protocols = {versions};
         Transports = TCP; MaxRead = 1048576; MaxWrite = 1048576; PrefRead = 1048576; PrefWrite = 1048576; FSAL {{ Name = MEM; }} }}
"""
# rpcbind and Ganesha keep files in folders of the machine: they get empty ones.
SERVER = """
set -e
mount -t tmpfs none /run; mount -t tmpfs none /var/lib/nfs; mkdir /run/rpcbind /run/sendsigs.omit.d
[ "$(id -u)" != 0 ] || rpcbind -w
exec ganesha.nfsd -F -f "$1" -L STDOUT -p /run/ganesha.pid -N NIV_EVENT
"""
pytestmark = pytest.mark.skipif(not allowed(()), reason="the kernel allows no network namespaces")


class Served:
    """A fabric with an NFS server on n1, and gateways on n1 and n2."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.is_root = not fabric.user and not os.getuid()
        self.version = 3 if self.is_root else 4
        self.folder = fabric.home / "nfs"
        self.folder.mkdir()
        os.chmod(self.folder, 0o777)
        config = self.folder / "ganesha.conf"
        config.write_text(CONFIG.format(versions="3, 4" if self.is_root else "4"))
        self.server_argv = ["unshare", "--mount", "sh", "-c", SERVER, "sh", str(config)]
        self.server = None
        self.begin_server()
        self.responder = self.gate("n1", "serve", port=None)
        if self.is_root:
            self.gate("n1", "serve", "--listen", f"0.0.0.0:{RDMA_MOUNT}", "--to", f"127.0.0.1:{MOUNT}", port=None)
            self.gate("n2", "connect", f"n1:{RDMA_MOUNT}", "--listen", f"127.0.0.1:{MOUNT}", port=MOUNT)
        self.gate("n2", "connect", "n1", port=NFS)
        self.gates = fabric.running[1:]

    def begin_server(self):
        self.server = serve(self.fabric, "n1", NFS, *self.server_argv)

    def gate(self, node, *args, port):
        log = open(self.folder / f"gate{len(self.fabric.running)}.log", "w+", encoding="utf-8")
        process = self.fabric.start(node, self.fabric.program.with_name("softib-rpcrdma"), *args, "--verbose", stderr=log)
        process.log = Path(log.name)
        log.close()
        wait_until(lambda: "listening at" in process.log.read_text() or process.poll() is not None, "it listens")
        assert process.poll() is None, process.log.read_text()
        assert port is None or f":{port} by TCP" in process.log.read_text()
        return process

    def url(self, path="", port=NFS):
        if self.version == 4:
            return f"nfs://127.0.0.1/export/{path}?version=4&nfsport={port}"
        return f"nfs://127.0.0.1/export/{path}?version=3&nfsport={port}&mountport={MOUNT}"

    def files(self, node="n2", **kwargs):
        return re.findall(r" (\d+) (\S+)$", on(self.fabric, node, "nfs-ls", self.url(**kwargs)), re.M)

    def copy(self, source, to, node="n2"):
        assert "copied" in on(self.fabric, node, "nfs-cp", str(source), str(to))

    def put(self, name, data):
        """A file of the server's, by the gateways. Return: @data"""
        local = self.folder / f"to-{name}"
        local.write_bytes(data)
        self.copy(local, self.url(name))
        return data

    def got(self, name, **kwargs):
        local = self.folder / f"from-{name}"
        self.copy(self.url(name, **kwargs), local)
        return local.read_bytes()


@pytest.fixture(scope="module", params=users(), ids=lambda user: "nobody" if user else "self")
def nfs(request):
    with Fabric("star:3", "softib-sm --packet-life 14", ("--net", "node"), request.param) as fabric:
        yield Served(fabric)


@pytest.fixture(autouse=True)
def expect_gates_to_stay(nfs):
    """Those that were started with the fabric outlive each test."""
    yield
    for gate in nfs.gates:
        assert gate.poll() is None, gate.log.read_text()


def test_a_file_goes_there_and_back(nfs):
    data = nfs.put("short", b"by RDMA\n")
    assert nfs.got("short") == data
    assert on(nfs.fabric, "n2", "nfs-cat", nfs.url("short")) == "by RDMA\n"
    assert ("8", "short") in nfs.files()


def send_long_ones(nfs, name):
    """A reply of any length has memory; a call is lent when it is longer than a SEND."""
    names = [f"a-file-with-a-name-that-makes-the-list-of-names-long-{name}-{i}" for i in range(40)]
    for each in names:
        nfs.put(each, b"x")
    assert set(names) <= {each for _, each in nfs.files()}
    if nfs.is_root:
        data = nfs.put(name, os.urandom(LONG))
        assert nfs.got(name) == data


def test_calls_and_replies_that_are_long(nfs):
    send_long_ones(nfs, "first")


def test_several_clients_of_several_gateways(nfs):
    """One of them takes one call at a time, and has the shortest SENDs."""
    nfs.gate("n3", "connect", "n1", "--credits", "1", "--inline", "1024", port=NFS)
    if nfs.is_root:
        nfs.gate("n3", "connect", f"n1:{RDMA_MOUNT}", "--listen", f"127.0.0.1:{MOUNT}", port=MOUNT)
    data = nfs.put("shared", os.urandom(LONG if nfs.is_root else 1000))
    nodes = ("n2", "n3") * 3
    copies = [nfs.fabric.start(node, "nfs-cp", nfs.url("shared"), str(nfs.folder / f"copy{i}"))
              for i, node in enumerate(nodes)]
    for i, copy in enumerate(copies):
        nfs.fabric.finish(copy)
        assert (nfs.folder / f"copy{i}").read_bytes() == data


def test_a_capture_of_it_is_well_formed(nfs):
    """tshark follows calls and replies into the memory that chunks name."""
    capture = Capture(nfs.fabric, "n2:1")
    send_long_ones(nfs, "second")
    pcap = capture.end()
    assert tshark("-r", pcap, "-Y", "_ws.malformed && rpcordma") == ""
    rows = tshark("-r", pcap, "-Y", "rpcordma", "-T", "fields", "-E", "separator=|", "-e", "rpcordma.version",
                  "-e", "rpcordma.msg_type", "-e", "rpcordma.reads_count", "-e", "rpcordma.reply_count").splitlines()
    assert {row.split("|")[0] for row in rows} == {"1"}
    kinds = {tuple(row.split("|")[1:]) for row in rows}
    assert {("0", "0", "1"), ("0", "0", "0"), ("1", "0", "1")} <= kinds, kinds
    assert nfs.is_root == (("1", "1", "1") in kinds), kinds
    names = tshark("-r", pcap, "-Y", "rpcordma && nfs", "-T", "fields", "-e", "_ws.col.Info")
    assert ("READDIRPLUS" if nfs.is_root else "READDIR") in names, names


def test_packets_that_are_lost(nfs):
    nfs.fabric.softib("fault", "add", *"link n2:1 drop every=40".split())
    try:
        data = nfs.put("lossy", os.urandom(LONG // 4 if nfs.is_root else 900))
        assert nfs.got("lossy") == data
    finally:
        nfs.fabric.softib("fault", "clear", "all")


def test_a_server_that_goes_and_comes(nfs):
    """The gateways stay; without a server, connections are refused as a machine would."""
    kill(nfs.server)
    assert "Failed to mount" in nfs.fabric.run("n2", "nfs-ls", nfs.url(), check=False)

    def logs():
        return "".join(log.read_text() for log in nfs.folder.glob("gate*.log"))

    try:  # the client may be refused before the gateway says why
        wait_until(lambda: "connecting to the server: Connection refused" in logs(), logs)
    finally:
        nfs.begin_server()
    nfs.put("again", b"again")
    assert nfs.got("again") == b"again"


# Say something to whoever listens at a port, and print what is answered until the end.
SAY = """
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
s.sendall(bytes.fromhex(sys.argv[2]))
if not sys.argv[2]:
    s.shutdown(socket.SHUT_WR)
try:
    print(s.recv(4096))
except ConnectionError:
    print(b"")
"""


@pytest.mark.parametrize("data, why", [
    (b"\xff\xff\xff\xff", "longer than --longest allows"),
    (b"\x80\0\0\4abcd", "too short for RPC"),
    (b"\x80\0\0\x08\0\0\0\1\0\0\0\1", "the client sent what is no call"),
    (b"", "disconnected"),
], ids=["too long", "too short", "a reply", "nothing"])
def test_what_is_no_rpc_ends_its_connection(nfs, data, why):
    gate = nfs.gate("n3", "connect", "n1", "--listen", "127.0.0.1:4049", port=4049)
    assert on(nfs.fabric, "n3", "python3", "-c", SAY, "4049", data.hex()) == "b''\n"
    wait_until(lambda: why in gate.log.read_text(), lambda: gate.log.read_text())
    assert nfs.files()
    kill(gate)


def test_what_is_no_rpc_over_rdma_ends_its_connection(nfs):
    """rping's messages are none: it is told that their version is unknown, and leaves."""
    said = len(nfs.responder.log.read_text())
    nfs.fabric.run("n3", "rping", "-c", "-a", "10.1.0.1", "-p", str(RDMA_NFS), "-C", "1", check=False)
    wait_until(lambda: any(end in nfs.responder.log.read_text()[said:] for end in ("a connection ended: ", "disconnected")),
               lambda: nfs.responder.log.read_text()[said:])
    assert nfs.files()


@pytest.mark.parametrize("args, why", [
    ((), "say what to do"),
    (("mount",), '"mount": serve or connect'),
    (("connect",), "name the node with the server"),
    (("connect", "nowhere.invalid"), '"nowhere.invalid": '),
    (("serve", "--credits", "0"), '--credits: "0" is not a number from 1 to 1024'),
    (("serve", "--longest", "1"), "from 4096 to"),
    (("serve", "--listen", "[::1"), '"[::1"'),
    (("serve", "n1"), "Too many arguments"),
])
def test_a_command_that_is_wrong_is_told(nfs, args, why):
    expect_told(nfs, args, 64, why)


def test_a_port_that_is_taken_is_told(nfs):
    expect_told(nfs, ["serve"], 1, "cannot listen at 0.0.0.0:20049: Address already in use")


def expect_told(nfs, args, status, why):
    done = subprocess.run(nfs.fabric.command("n1", [nfs.fabric.program.with_name("softib-rpcrdma"), *args]), env=nfs.fabric.env, check=False,
                          capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == status and why in done.stderr, done.stderr
