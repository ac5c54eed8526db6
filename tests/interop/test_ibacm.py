# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's ibacm, which finds paths for programs of the RDMA CM: it lists the node's interfaces by libnl,
joins multicast groups of its own, asks the other nodes' ibacm and the subnet administrator, and gives the
path to librdmacm, which sets it (RDMA_OPTION_IB_PATH)."""
import re

import pytest

from interop.fabric import Fabric, wait_until
from interop.test_nodes import allowed, users
from interop.test_rdma_cm import cm_ids

pytestmark = pytest.mark.skipif(not allowed(()), reason="the kernel allows no network namespaces")

# A folder for each node, and a /run of its own for the file in which ibacm tells its port.
BEGIN = """
mount -t tmpfs run /run
mkdir {folder}
cd {folder}
ib_acme -A -O -D . >ib_acme.out
grep -v ^\\# ibacm_addr.cfg
sed -i "s#/var/log#$PWD#; s#/run/ibacm.pid#$PWD/lock#; s/server_mode unix/server_mode loop/" ibacm_opts.cfg
ibacm -P -A ibacm_addr.cfg -O ibacm_opts.cfg &
trap 'kill $!' EXIT
until [ -e /run/ibacm.port ]; do kill -0 $!; done
echo begun
eval "$(cat)"
"""


class Acm:
    """ibacm on a node, and a shell beside it that runs the lines it is given"""

    def __init__(self, fabric, node):
        self.shell = fabric.start(node, "unshare", "-m", "sh", "-ec", BEGIN.format(folder=fabric.home / f"acm-{node}"),
                                  stdin=-1)
        self.said = list(iter(self.shell.stdout.readline, "begun\n"))

    def run(self, fabric, lines):
        self.shell.stdin.write(lines)
        self.shell.stdin.close()
        return fabric.finish(self.shell)


@pytest.fixture(scope="module", params=users(), ids=lambda user: "nobody" if user else "self")
def fabric(request):
    with Fabric("star:2", up_args=("--net", "node"), user=request.param) as it:
        yield it
        it.end_programs()
        it.expect_no_leftovers()


def test_paths_by_ibacm(fabric):
    ends = [Acm(fabric, node) for node in ("n1", "n2")]
    assert any(re.fullmatch(r"n1 softib0 1 default\n", line) for line in ends[0].said), ends[0].said
    server = fabric.start("n2", "rdma_server")
    wait_until(lambda: cm_ids(fabric, "n2"), "rdma_server listens")
    out = ends[0].run(fabric, "ib_acme -S 127.0.0.1 -f i -s 10.1.0.1 -d 10.1.0.2 -v; "
                              "ib_acme -S 127.0.0.1 -f n -s n1 -d n2 -v; "
                              "ib_acme -S 127.0.0.1 -P; rdma_client -s 10.1.0.2")
    assert out.count("SA verification: success") == 2, out
    assert "rdma_client: end 0" in out, out
    assert "rdma_server: end 0" in fabric.finish(server)
