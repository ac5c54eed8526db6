# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A socket program over rsockets: librdmacm's preload library turns its sockets into reliable
connections. The library has no epoll, and leaves sockets alone that are made with SOCK_CLOEXEC."""
import os

from interop.fabric import Fabric, kill, wait_until
from interop.test_rdma_cm import cm_ids

PRELOAD = ["env", "LD_PRELOAD=/usr/$LIB/rsocket/librspreload.so"]  # the loader knows what $LIB is


def play(pair, server_argv, client_argv):
    """What both have printed."""
    server = pair.start("n1", *server_argv)
    wait_until(lambda: cm_ids(pair, "n1") or server.poll() is not None, "the server listens")
    return pair.run("n2", *client_argv), server


def test_iperf():
    with Fabric("pair", up_args=("--net", "node")) as pair:
        client, server = play(pair, [*PRELOAD, "iperf", "-s", "-P", 1], [*PRELOAD, "iperf", "-c", "n1", "-n", "50M"])
        for out in client, pair.finish(server):
            assert "50.0 MBytes" in out, out
        assert server.returncode == 0
        pair.expect_no_leftovers()


def test_rcopy(tmp_path):
    """A file goes from node to node, and is the same."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(3_000_000))
    tmp_path.chmod(0o777)
    with Fabric("pair", up_args=("--net", "node")) as pair:
        out, server = play(pair, ["rcopy"], ["rcopy", source, f"n1:{tmp_path / 'copy'}"])
        assert "3000000 bytes in " in out, out
        kill(server)
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()


def test_datagrams():
    """udpong: each datagram is answered; its server serves for ever."""
    with Fabric("pair", up_args=("--net", "node")) as pair:
        server = pair.start("n1", "udpong", "-b", "10.1.0.1")
        wait_until(lambda: ":7174 " in pair.run("n1", "ss", "-lun"), "the server has its port")
        out = pair.run("n2", "udpong", "-s", "10.1.0.1", "-C", 100, "-S", 1000)
        assert " 100 " in out, out
        kill(server)
