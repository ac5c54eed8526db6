# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A socket program over rsockets: librdmacm's preload library turns its sockets into reliable
connections. The library has no epoll, and leaves sockets alone that are made with SOCK_CLOEXEC."""
from interop.fabric import Fabric, wait_until
from interop.test_rdma_cm import cm_ids

PRELOAD = ["env", "LD_PRELOAD=/usr/$LIB/rsocket/librspreload.so"]  # the loader knows what $LIB is


def test_iperf():
    with Fabric("pair", up_args=("--net", "node")) as pair:
        server = pair.start("n1", *PRELOAD, "iperf", "-s", "-P", 1)
        wait_until(lambda: cm_ids(pair, "n1") or server.poll() is not None, "the server listens")
        client = pair.run("n2", *PRELOAD, "iperf", "-c", "n1", "-n", "50M")
        for out in client, pair.finish(server):
            assert "50.0 MBytes" in out, out
        assert server.returncode == 0
        pair.expect_no_leftovers()
