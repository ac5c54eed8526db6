# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Socket programs under `softib exec --sdp`: the Sockets Direct Protocol in place of TCP,
judged by what programs see, and by tshark."""
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from interop.commands import softib
from interop.fabric import Fabric, kill, wait_until
from interop.test_bad_input import ABI_MAGIC, ABI_VERSION
from interop.test_capture import Capture, tshark

SDP = ("--sdp",)
SIDE = Path(__file__).with_name("sdp_side.py")
IPV4, IPV6 = "10.1.0.1", "fd73:6f66:7469:6201::1"


class Server:
    """sdp_side.py on n1, once it listens."""
    port = 20000 + os.getpid() % 10000

    def __init__(self, fabric, what, address=IPV4, **kwargs):
        Server.port += 1
        self.fabric = fabric
        self.process = fabric.start("n1", "python3", SIDE, what, address, Server.port,
                                    **{"options": SDP, **kwargs})
        assert self.process.stdout.readline() == "listening\n"

    def call(self, what, address=IPV4, options=SDP, node="n2"):
        client = self.fabric.start(node, "python3", SIDE, what, address, Server.port, options=options)
        out = self.fabric.finish(client)
        assert client.returncode == 0, out
        return out

    def end(self):
        out = self.fabric.finish(self.process)
        assert self.process.returncode == 0, out
        return out


@pytest.fixture(autouse=True)
def clean(pair):
    yield
    pair.end_programs()
    wait_until(lambda: not sdp_resources(pair), lambda: f"softibd still has {sdp_resources(pair)}")


def sdp_resources(fabric):
    rows = fabric.json("resource", "show")
    rows = rows.get("resources", rows) if isinstance(rows, dict) else rows
    return [row for row in rows if row.get("client", row.get("comm")) == "sdp"]


@pytest.mark.parametrize("bound, called", [("0.0.0.0", IPV4), (IPV6, IPV6)])
def test_stream(pair, bound, called):
    """3 MB there and back, half-closed; both know both addresses."""
    server = Server(pair, "serve_stream", bound)
    client, echoed = server.call("call_stream", called).splitlines()
    proto, own, own_port, peer, peer_port = client.split()
    assert (proto, peer, peer_port, echoed) == ("sdp", called, str(Server.port), "echoed True")
    assert server.end().split() == ["sdp", peer, peer_port, own, own_port]


def test_events(pair):
    """epoll, select, non-blocking calls, MSG_PEEK, dup(), fork(), exec()."""
    server = Server(pair, "serve_events")
    assert server.call("call_events") == "four\n"
    assert server.end() == ""


@contextlib.contextmanager
def slow_packets(fabric):
    """Packets of n1's cable take a second meanwhile."""
    fabric.softib("fault", "add", "link", "n1:1", "delay", "1s")
    try:
        yield
    finally:
        fabric.softib("fault", "clear", "all")


def test_connect_does_not_wait(pair):
    """Packets take a second when the program calls: it sees what TCP shows of a connection that
    is being made, and is woken when it is made."""
    server = Server(pair, "serve_stream")
    with slow_packets(pair):
        client = pair.start("n2", "python3", SIDE, "call_pending", IPV4, Server.port, options=SDP)
        assert client.stdout.readline() == "begun\n"
    assert pair.finish(client) == "echoed True\n"
    assert server.end().startswith("sdp ")


def test_connect_among_threads(pair):
    """Packets take a second while a thread connects. Another one does not take the descriptor for a socket that
    nobody connects, and both find the peer's end; a socket that falls back to TCP is what it was before."""
    server = Server(pair, "serve_close")
    with slow_packets(pair):
        client = pair.start("n2", "python3", SIDE, "call_among_threads", IPV4, Server.port, options=SDP)
        assert client.stdout.readline() == "waits True\n"
    assert pair.finish(client) == "then True b''\n"
    server.end()
    server = Server(pair, "serve_stream", "127.0.0.1", options=())
    client = server.call("call_tcp_among_threads", "127.0.0.1").splitlines()
    assert client[0].startswith("tcp 127.0.0.1") and client[1] == "echoed True", client
    server.end()


def test_connect_does_not_wait_for_tcp(pair):
    """A peer without SDP, and nobody at all: by SDP alone, and where TCP is tried, too."""
    server = Server(pair, "serve_stream", "127.0.0.1", options=())
    assert server.call("call_pending_tcp", "127.0.0.1") == "echoed True\n"
    assert server.end().startswith("tcp ")
    out = pair.finish(pair.start("n2", "python3", SIDE, "call_pending_refused", "127.0.0.1", 1, options=SDP))
    assert out == "Connection refused 0\n"


def test_options_of_a_bound_socket(pair):
    assert pair.finish(pair.start("n2", "python3", SIDE, "call_options", "::", 0, options=SDP)) == "1 1\n"


@pytest.mark.parametrize("options, address", [(SDP, IPV4), ((), "127.0.0.1")], ids=["sdp", "tcp"])
def test_out_of_band_data(pair, options, address):
    """What programs see of it by TCP is what they see by SDP."""
    server = Server(pair, "serve_urgent", address, options=options)
    assert server.call("call_urgent", address, options=options) == "True 1 b'?'\n"
    assert server.end() == "True ['SIGURG'] b'!'\nTrue b'after'\n"


def test_a_peer_that_does_not_read(pair):
    server = Server(pair, "serve_stalled", stdin=subprocess.PIPE)
    client = pair.start("n2", "python3", SIDE, "call_stalled", IPV4, Server.port, options=SDP)
    assert client.stdout.readline() == "held back True\n"
    server.process.stdin.write("go\n")
    server.process.stdin.flush()
    assert pair.finish(client) == "read True\n"
    server.end()


def test_a_peer_that_dies(pair):
    server = Server(pair, "serve_death")
    client = pair.start("n2", "python3", SIDE, "call_death", IPV4, Server.port, options=SDP)
    assert server.process.stdout.readline() == "connected\n"
    for node in "n1", "n2":  # an end on each
        assert pair.json("status", node)["protocols"]["sdp_connections"] == 1
    assert "1 SDP connection\n" in pair.softib("status", "n2")
    kill(server.process)
    assert pair.finish(client) == "ended b''\n"


def test_one_side_has_tcp_alone(pair):
    """Without --net node, the nodes share the machine's loopback address."""
    for server_options, client_options in ((SDP, ()), ((), SDP)):
        server = Server(pair, "serve_stream", "127.0.0.1", options=server_options)
        client = server.call("call_stream", "127.0.0.1", client_options)
        assert client.startswith("tcp 127.0.0.1"), client
        assert server.end().startswith("tcp 127.0.0.1")


def test_refused(pair):
    """Nobody listens on port 1: neither for both, nor for SDP alone."""
    out = pair.finish(pair.start("n2", "python3", SIDE, "call_refused", "127.0.0.1", 1, options=SDP))
    assert out.splitlines() == ["2 -1 Connection refused", "27 -1 Connection refused"]


def test_run(home):
    """Family 27 is known to the command of a private fabric, and to what that starts."""
    done = softib(home, "run", "--sdp", "--", "python3", SIDE, "call_refused", "127.0.0.1", 1)
    assert done.stdout.splitlines() == ["2 -1 Connection refused", "27 -1 Connection refused"], done.stderr


def test_a_server_at_the_loopback_address(pair):
    """Its own node reaches it by SDP, and no other does."""
    server = Server(pair, "serve_stream", "127.0.0.1")
    assert server.call("call_by_sdp") == "27 -1 Connection refused\n"
    client = server.call("call_stream", "127.0.0.1", node="n1").split()
    # both ends have the loopback address, as by TCP
    assert client[:2] == ["sdp", "127.0.0.1"] and client[3] == "127.0.0.1"
    assert server.end().split() == ["sdp", *client[3:5], *client[1:3]]


def fetch(url, to):
    """A web client's command; curl does not start under a sanitizer's runtime."""
    return "python3", "-c", f"import urllib.request as u; u.urlretrieve('{url}', '{to}')"


@pytest.mark.parametrize("rule, proto", [("use tcp client python3 *:*", "tcp"), ("use tcp client perl *:*", "sdp")])
def test_rules(pair, home, rule, proto):
    """libsdp.conf leaves a program to TCP; what it cannot read is reported. The loopback
    address is the node's own."""
    conf = home / "libsdp.conf"
    conf.write_text(f"{rule}\nuse sdp server python3 *:8\nuse it\n")
    server = Server(pair, "serve_stream", "127.0.0.1")
    client = pair.start("n1", "python3", SIDE, "call_stream", "127.0.0.1", Server.port, options=SDP,
                        env={**pair.env, "LIBSDP_CONFIG_FILE": str(conf)})
    out = pair.finish(client)
    assert f"{conf}:3 is ignored" in out
    assert f"\n{proto} " in out, out
    server.end()


def test_programs(pair, home):
    """A web server and its client; and tshark reads what they say."""
    (home / "file").write_bytes(os.urandom(300000))
    Server.port += 1
    with_capture = Capture(pair, "n2:1")
    server = pair.start("n1", "python3", "-u", "-m", "http.server", Server.port, "--directory", home, options=SDP)
    assert "Serving" in server.stdout.readline()
    pair.finish(pair.start("n2", *fetch(f"http://{IPV4}:{Server.port}/file", home / "copy"), options=SDP))
    assert (home / "copy").read_bytes() == (home / "file").read_bytes()
    assert "10.1.0.2" in server.stdout.readline()
    kill(server)
    pcap = with_capture.end()
    # tshark takes each packet for a message, but only the first ones of messages begin as such;
    # and it takes a grant, which is Data without data, for one that was cut off
    rows = tshark("-r", pcap, "-Y", "infiniband_sdp && !(infiniband.bth.opcode in {1, 2}) && "
                  "!(infiniband_sdp.bsdh.mid == 0xff && infiniband_sdp.bsdh.len == 16)", "-T", "fields",
                  "-e", "infiniband_sdp.bsdh.mid", "-e", "_ws.malformed").splitlines()
    mids = {row.split("\t")[0] for row in rows}
    assert not any(row.split("\t")[1] for row in rows)
    assert {"0x00", "0x01", "0x02", "0xff"} <= mids, mids  # Hello, HelloAck, DisConn, Data


def messages_of(pcap):
    """The MIDs of messages that are not longer than a packet, or of which the first packet is
    enough; whether tshark finds one malformed."""
    rows = tshark("-r", pcap, "-Y", "infiniband_sdp && infiniband.bth.opcode in {0, 4} && "
                  "!(infiniband_sdp.bsdh.mid == 0xff && infiniband_sdp.bsdh.len == 16)", "-T", "fields",
                  "-e", "infiniband_sdp.bsdh.mid", "-e", "_ws.malformed").splitlines()
    return [row.split("\t")[0] for row in rows], any(row.split("\t")[1] for row in rows)


def test_memory_is_lent(pair):
    """Large writes are read from the sender's memory: SrcAvail, RdmaRdCompl, in the pipelined
    mode. The receiver offers room, SinkAvail, once its program has got everything."""
    capture = Capture(pair, "n2:1")
    server = Server(pair, "serve_digest", stdin=subprocess.PIPE)
    client = pair.start("n2", "python3", SIDE, "call_digest", IPV4, Server.port, options=SDP)
    assert client.stdout.readline() == "held back True\n"
    server.process.stdin.write("go\n")
    server.process.stdin.flush()
    assert pair.finish(client) == "same True\n"
    server.end()
    mids, malformed = messages_of(capture.end())
    assert not malformed
    assert {"0x06", "0x07", "0xfd", "0xfe", "0xff"} <= set(mids), set(mids)
    assert mids.count("0xfe") + mids.count("0x05") > 4, "regions are not used again"


def test_receive_buffers_are_resized(pair):
    """Messages that fill the server's buffers make the client ask for larger ones (ChRcvBuf), many short
    ones for the first size again; the server grants both (ChRcvBufAck)."""
    capture = Capture(pair, "n2:1")
    server = Server(pair, "serve_rounds")
    assert server.call("call_rounds") == "answered 340\n"
    server.end()
    pcap = capture.end()
    mids, malformed = messages_of(pcap)
    assert not malformed
    assert mids.count("0x0b") == mids.count("0x0c") == 2, mids
    # A message of 32 KiB is one of many packets, of which the first has its length: all behind the first answer
    data = [row.split("\t")[0] for row in tshark(
        "-r", pcap, "-Y", "infiniband_sdp && infiniband.bth.opcode in {0, 4}", "-T", "fields",
        "-e", "infiniband_sdp.bsdh.len", "-e", "infiniband_sdp.bsdh.mid").splitlines()]
    assert data.count(str(32768 + 16)) >= 16 and data.count(str(8192 + 16)) >= 20, data


def test_options_are_kept(pair):
    """Buffers and keepalive, by SDP as by TCP: those that were set before connect(), and a listener's."""
    seen = []
    for options, address in ((SDP, IPV4), ((), "127.0.0.1")):
        server = Server(pair, "serve_options", address, options=options)
        client = server.call("call_kept_options", address, options=options)
        assert client.startswith("True "), client
        seen.append((client, server.end()))
    assert seen[0] == seen[1]


def test_a_buffer_asks_for_larger_messages(pair):
    """The client has set SO_SNDBUF, and sends a byte: it asks at once for the receive buffers that fit (ChRcvBuf)."""
    capture = Capture(pair, "n2:1")
    server = Server(pair, "serve_options")
    server.call("call_kept_options")
    server.end()
    mids, malformed = messages_of(capture.end())
    assert not malformed and mids.count("0x0b") >= 1, mids


def test_keepalive(pair):
    """A cable is pulled while nothing is sent, and nobody would ever know."""
    server = Server(pair, "serve_death")
    client = pair.start("n2", "python3", SIDE, "call_keepalive", IPV4, Server.port, options=SDP)
    assert server.process.stdout.readline() == "connected\n"
    assert client.stdout.readline() == "waits\n"
    pair.softib("link", "n1:1", "down")
    try:
        assert pair.finish(client) == "ended ETIMEDOUT\n"
    finally:
        pair.softib("link", "n1:1", "up")
        pair.softib("wait")
    kill(server.process)


def move(fabric, node):
    """How many connections of the node begin to move."""
    return fabric.json("sdp", "move", node)["connections"]


@pytest.mark.parametrize("mover", ["n1", "n2"])
def test_a_stream_moves_when_it_is_full(pair, mover):
    """Either end asks the other to make a new connection (SuspComm), while all that is in between is full, and
    mostly memory is lent: what was not read is sent again by the new one, and nothing is lost or comes twice."""
    capture = Capture(pair, "n2:1")
    server = Server(pair, "serve_digest", stdin=subprocess.PIPE)
    client = pair.start("n2", "python3", SIDE, "call_digest", IPV4, Server.port, options=SDP)
    assert client.stdout.readline() == "held back True\n"
    assert move(pair, mover) == 1
    server.process.stdin.write("go\n")
    server.process.stdin.flush()
    assert pair.finish(client) == "same True\n"
    server.end()
    pcap = capture.end()
    mids, malformed = messages_of(pcap)
    assert not malformed
    hellos = tshark("-r", pcap, "-Y", "infiniband.mad.attributeid == 0x10 && infiniband_sdp.hh", "-T", "fields",
                    "-e", "infiniband_sdp.hh.localport")
    assert len(set(hellos.split())) == 2, hellos
    # SuspComm, SuspCommAck; each maybe twice, as queue pairs repeat what is not acknowledged
    assert {"0x0d", "0x0e"} <= set(mids), mids


def say_round(client, length):
    client.stdin.write(f"{length}\n")
    client.stdin.flush()


def test_a_stream_moves_again_and_again(pair):
    """Between rounds, within them, and by both ends at the same time; then it is closed in order."""
    server = Server(pair, "serve_echo")
    client = pair.start("n2", "python3", SIDE, "call_echo", IPV4, Server.port, options=SDP,
                        stdin=subprocess.PIPE)
    assert client.stdout.readline() == "connected\n"
    for i, length in enumerate([1, 100, 70000, 400000] * 3):
        if i % 3:
            move(pair, "n1")
        if i % 3 != 1:
            move(pair, "n2")
        say_round(client, length)
        move(pair, "n1" if i % 2 else "n2")
        assert client.stdout.readline() == "same True\n"
    client.stdin.close()
    assert pair.finish(client) == "rest b''\n"
    server.end()


def shared_bytes(fabric):
    """How much programs have exchanged by shared memory."""
    return fabric.json("status")["sdp_shared_bytes"]


def flow_env(fabric, home):
    return {**fabric.env, "FLOW_FILE": str(home / "flow")}


READERS = ("serve_flow", "serve_flow_of_sizes", "serve_flow_waitall", "serve_flow_peek", "serve_flow_fork",
           "serve_flow_exec", "serve_flow_dup", "serve_flow_select", "serve_flow_timeout", "serve_flow_epoll",
           "serve_flow_epoll_edge", "serve_flow_epoll_exec", "serve_flow_asyncio")
# by the sockets: the library does not see what they wait for, or leaves it to the kernel
SOCKET_READERS = ("serve_flow_epoll_oneshot", "serve_flow_epoll_nested", "serve_flow_epoll_polled",
                  "serve_flow_epoll_fork", "serve_flow_epoll_dup")
WRITERS = ("call_flow_of_sizes", "call_flow_nonblocking", "call_flow_sendmsg", "call_flow_fork", "call_flow_exec",
           "call_flow_epoll_edge", "call_flow_asyncio")


@pytest.mark.parametrize("reader, writer", [
    *((r, "call_flow") for r in READERS + SOCKET_READERS), *(("serve_flow", w) for w in WRITERS),
    ("serve_flow_epoll_edge", "call_flow_epoll_edge"), ("serve_flow_asyncio", "call_flow_asyncio")])
def test_flow(pair, home, reader, writer):
    """Whoever reads and writes by whatever calls: the same bytes in the same order. Some of
    them pass by the ring."""
    before = shared_bytes(pair)
    env = flow_env(pair, home)
    server = Server(pair, reader, env=env)
    client = pair.start("n2", "python3", SIDE, writer, IPV4, Server.port, options=SDP, env=env)
    sent = pair.finish(client)
    assert client.returncode == 0, sent
    assert server.end() == sent
    shared = shared_bytes(pair) - before
    assert shared or reader in SOCKET_READERS, "the ring is not used"

def test_ping_pong(pair):
    """Little, but often: it passes by the ring as well, whether or not the programs wait in
    select(); and by the sockets in between."""
    before = shared_bytes(pair)
    server = Server(pair, "serve_ping_pong")
    assert server.call("call_ping_pong") == "same True\n"
    server.end()
    assert shared_bytes(pair) - before > 2 * 1000 * 64


def test_ports_count_a_flow(pair):
    """What programs exchange by shared memory is in the ports' counters, as the READs for which it
    stands: packets of 2048 bytes, and some bytes of headers each."""
    def count(node):
        row = pair.json("counters", f"{node}:1")["counters"][0]
        return row["xmit_bytes"], row["xmit_packets"], row["rcv_bytes"]

    shared, sent, received = shared_bytes(pair), count("n2"), count("n1")
    server = Server(pair, "serve_flow")
    server.call("call_flow")
    server.end()
    assert shared_bytes(pair) > shared
    bytes_sent, packets, _ = (now - then for now, then in zip(count("n2"), sent))
    assert (96 << 20) < bytes_sent < (100 << 20)
    assert packets > (96 << 20) // 4096
    assert count("n1")[2] - received[2] >= bytes_sent


def begun(fabric, before):
    """Wait until programs exchange bytes by shared memory."""
    wait_until(lambda: shared_bytes(fabric) > before + (1 << 20), "the ring is used")


@pytest.mark.parametrize("dies", ["reader", "writer"])
def test_a_program_dies_in_a_flow(pair, dies):
    """Its peer sees the end of the connection, and softibd keeps nothing (the fixture)."""
    before = shared_bytes(pair)
    server = Server(pair, "serve_flow")
    client = pair.start("n2", "python3", SIDE, "call_flow_forever", IPV4, Server.port, options=SDP)
    begun(pair, before)
    if dies == "reader":
        kill(server.process)
        assert pair.finish(client).startswith("ended ")
    else:
        kill(client)
        assert int(server.end().split()[0]) > 1 << 20


def test_softibd_dies_in_a_flow():
    """Both programs see the end of the connection."""
    fabric = Fabric("pair")
    fabric.__enter__()
    try:
        server = Server(fabric, "serve_flow")
        client = fabric.start("n2", "python3", SIDE, "call_flow_forever", IPV4, Server.port, options=SDP)
        begun(fabric, 0)
        os.kill(int((fabric.dir / "pid").read_text()), signal.SIGKILL)
        assert fabric.finish(client).startswith("ended ")
        assert int(server.end().split()[0]) > 1 << 20
    finally:
        Fabric.up.remove(fabric)
        fabric.end_programs()
        shutil.rmtree(fabric.home, ignore_errors=True)


def test_rubbish_in_a_flow(pair):
    """A program that writes nonsense into the shared memory harms its own connection alone."""
    for _ in range(5):
        server = Server(pair, "serve_flow_broken")
        client = pair.start("n2", "python3", SIDE, "call_flow_rubbish", IPV4, Server.port, options=SDP)
        assert pair.finish(client).endswith("done\n")
        kill(server.process)
        pair.finish(server.process)
        assert server.process.returncode in (0, -9), "the peer's library fails"
    test_stream(pair, IPV4, IPV4)


class Told:
    """A flow that goes on as far as it is told to."""

    def __init__(self, fabric):
        self.server = Server(fabric, "serve_flow")
        self.client = fabric.start("n2", "python3", SIDE, "call_flow_as_told", IPV4, Server.port, options=SDP,
                                   stdin=subprocess.PIPE)
        self.fabric, self.total = fabric, 0

    def tell(self, mib):
        self.total += mib
        self.client.stdin.write(f"{mib}\n")
        self.client.stdin.flush()

    def sent(self):
        assert self.client.stdout.readline() == f"{self.total}\n"

    def goes_on(self, mib):
        self.tell(mib)
        self.sent()
        return True

    def end(self):
        self.client.stdin.close()
        self.client.stdin = None
        assert self.server.end() == self.fabric.finish(self.client)


def test_a_capture_of_a_flow(pair):
    """What programs exchange by shared memory becomes packets when somebody looks at them, and
    is exchanged by shared memory again afterwards."""
    flow, before = Told(pair), shared_bytes(pair)
    wait_until(lambda: flow.goes_on(16) and shared_bytes(pair) > before + (2 << 20), "the ring is used")
    capture = Capture(pair, "n2:1")
    before = shared_bytes(pair)
    flow.tell(16)
    flow.sent()
    assert shared_bytes(pair) < before + (1 << 20), "more than copies that had begun"
    # tshark knows connections whose beginning it has seen; but it counts what went by
    assert sum(map(int, tshark("-r", capture.end(), "-T", "fields", "-e", "frame.len").split())) > 16 << 20
    wait_until(lambda: flow.goes_on(16) and shared_bytes(pair) > before + (2 << 20), "the ring is used again")
    flow.end()


def test_a_link_that_flaps_in_a_flow(pair):
    """No byte is lost, and none moves while the link is down."""
    flow, before = Told(pair), shared_bytes(pair)
    for _ in range(2):
        flow.tell(256)
        begun(pair, before)
        pair.softib("link", "n2:1", "down")
        before = shared_bytes(pair)
        pair.softib("status")
        assert shared_bytes(pair) < before + (1 << 20), "more than copies that had begun"
        pair.softib("link", "n2:1", "up")
        flow.sent()
    flow.end()


@pytest.mark.no_sanitizer("rsync's processes end each other by signals")
def test_rsync(pair, home):
    """A daemon with a process for each client, non-blocking on both sides; by SDP alone."""
    files = home / "files"
    files.mkdir()
    for i in range(20):
        (files / f"{i}").write_bytes(os.urandom(i * 20000))
    (home / "libsdp.conf").write_text("use sdp server rsync *:*\nuse sdp client rsync *:*\n")
    owner = "uid = 0\ngid = 0\n" if os.getuid() == 0 else ""  # else the daemon becomes nobody
    (home / "rsyncd.conf").write_text(f"use chroot = no\n{owner}[files]\npath = {files}\n")
    Server.port += 1
    by_sdp = {"options": SDP, "env": {**pair.env, "LIBSDP_CONFIG_FILE": str(home / "libsdp.conf")}}
    pair.start("n1", "rsync", "--daemon", "--no-detach", "--config", home / "rsyncd.conf", "--port", Server.port,
               **by_sdp)

    def copied():
        client = pair.start("n2", "rsync", "-a", f"rsync://{IPV4}:{Server.port}/files/", home / "copies", **by_sdp)
        pair.finish(client)
        return client.returncode == 0  # else the daemon does not listen yet

    wait_until(copied, "rsync copies")
    assert {path.name: path.read_bytes() for path in (home / "copies").iterdir()} == \
        {path.name: path.read_bytes() for path in files.iterdir()}


NGINX = """daemon off; pid {home}/nginx.pid; error_log stderr; worker_processes 2; {user}
events {{ }}
http {{
    access_log off; proxy_max_temp_file_size 0; sendfile off; output_buffers 2 256k; proxy_buffers 8 256k;
    client_body_temp_path {home}; proxy_temp_path {home}; fastcgi_temp_path {home}; uwsgi_temp_path {home};
    scgi_temp_path {home};
    server {{
        listen {port}; root {home};
        location /sendfile/ {{ alias {home}/; sendfile on; }}
        location /proxy/ {{ proxy_pass http://{address}:{port}/; proxy_http_version 1.1; }}
    }}
}}
"""


@pytest.mark.no_sanitizer("nginx does not start under a sanitizer's runtime")
def test_nginx(pair, home):
    """Its event loop is edge-triggered: it sends a file from memory, by sendfile(), and as a proxy of
    itself, though it clears its environment before it connects. The ring is used."""
    (home / "file").write_bytes(os.urandom(48 << 20))
    Server.port += 1
    (home / "nginx.conf").write_text(NGINX.format(home=home, address=IPV4, port=Server.port,
                                                  user="user root;" if os.getuid() == 0 else ""))
    server = pair.start("n1", "nginx", "-p", home, "-e", "stderr", "-c", home / "nginx.conf", options=SDP)

    out = []

    def copied(place):
        (home / "copy").unlink(missing_ok=True)
        client = pair.start("n2", "curl", "-sSf", "-o", home / "copy", f"http://{IPV4}:{Server.port}{place}", options=SDP)
        out.append(pair.finish(client))
        return client.returncode == 0 and (home / "copy").read_bytes() == (home / "file").read_bytes()

    wait_until(lambda: copied("/file"), "nginx listens")
    before = shared_bytes(pair)
    for place in "/file", "/sendfile/file", "/proxy/file":
        assert copied(place), (place, out[-1])
    assert shared_bytes(pair) > before, "the ring is not used"
    server.terminate()
    pair.finish(server)


@pytest.mark.no_sanitizer("iperf3 does not start under a sanitizer's runtime")
@pytest.mark.parametrize("how", [(), ("-R",), ("-P", "4"), ("--bidir",)], ids=" ".join)
def test_iperf3(pair, how):
    """It waits in select(), and writes all it can."""
    Server.port += 1
    server = pair.start("n1", "iperf3", "-s", "-1", "-p", Server.port, "--forceflush", options=SDP)
    while "listening" not in server.stdout.readline():
        assert server.poll() is None
    client = pair.start("n2", "iperf3", "-c", IPV4, "-p", Server.port, "-n", "64M", *how, options=SDP)
    out = pair.finish(client)
    assert client.returncode == 0 and "iperf Done." in out, out
    pair.finish(server)


class Raw:
    """A connection of the "sdp" socket, by which anything can be said."""
    KIND = 5  # ABI_OPEN_SDP
    BIND, LISTEN, CONNECT, OPTIONS = 1, 2, 3, 4
    PENDING = 4  # ABI_SDP_PENDING

    def __init__(self, fabric, version=ABI_VERSION, node=b"n1"):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(20)
        self.sock.connect(str(fabric.dir / "sdp"))
        with contextlib.suppress(BrokenPipeError):  # it was turned away already, and the answer says so
            self.sock.send(struct.pack("=4I64s64s", ABI_MAGIC, version, self.KIND, 0, node, b""))
        self.error = self.answer()

    def answer(self):
        with contextlib.suppress(ConnectionResetError):  # what was sent was not read
            return struct.unpack_from("=i", self.sock.recv(1000))[0]
        return struct.unpack_from("=i", self.sock.recv(1000))[0]

    def ask(self, op, address=b"", fds=(), number=0, flags=0):
        message = struct.pack("=IIi28s", op, flags, number, address)
        socket.send_fds(self.sock, [message], list(fds))
        return self.answer()

    @staticmethod
    def address(ip=IPV4, port=0):
        return struct.pack("=HH4s", socket.AF_INET, socket.htons(port), socket.inet_aton(ip))


def test_what_programs_may_not_say(pair):
    """Nonsense on the "sdp" socket gets an error, and harms nobody."""
    assert Raw(pair, version=77).error == -93
    raw = Raw(pair)
    reading, writing = os.pipe()
    stream = socket.socketpair()
    assert raw.error == 0
    raw.sock.send(b"short")
    assert raw.answer() == -22
    for op, address, fds in ((9, raw.address(), ()), (raw.BIND, b"", ()), (raw.BIND, raw.address("10.9.9.9"), ()),
                             (raw.BIND, raw.address(), (reading,)), (raw.BIND, raw.address(), (reading, writing)),
                             (raw.CONNECT, raw.address(), ()), (raw.CONNECT, raw.address(), (writing,)),
                             (raw.CONNECT, b"", (stream[0].fileno(),)), (raw.OPTIONS, b"", ()),
                             (raw.OPTIONS, b"", (writing,)), (raw.OPTIONS, b"", (stream[0].fileno(),)),
                             (raw.OPTIONS, b"\1", (stream[0].fileno(),))):
        assert raw.ask(op, address, fds) < 0, op
    for number, fds in ((-1, stream[:1]), (1 << 21, stream[:1]), (0, stream)):
        assert raw.ask(raw.CONNECT, raw.address(port=1), [s.fileno() for s in fds], number, raw.PENDING) == -22
    assert raw.ask(raw.BIND, raw.address()) == 0
    assert raw.ask(raw.BIND, raw.address()) < 0
    assert raw.ask(raw.LISTEN) == 0
    assert raw.ask(raw.CONNECT, raw.address(), (stream[0].fileno(),)) < 0
    for end in (reading, writing):
        os.close(end)
    assert Raw(pair).ask(raw.CONNECT, raw.address(port=1), (stream[0].fileno(),)) == -111
    # it says that more bytes are under way than there are: its connection ends
    server = Server(pair, "serve_death")
    program, softibd = socket.socketpair()
    assert Raw(pair, node=b"n2").ask(raw.CONNECT, raw.address(port=Server.port), (softibd.fileno(),), 5000,
                                     raw.PENDING) == 0
    softibd.close()
    program.settimeout(20)
    assert program.recv(1) == b""
    kill(server.process)
