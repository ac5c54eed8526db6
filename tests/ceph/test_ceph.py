# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Ceph as Debian builds it, whose daemons and clients talk by RDMA: objects, images of disks, the death of a
daemon and its return."""
import re

import pytest

from ceph.cluster import Cluster
from interop.fabric import Fabric
from interop.test_nodes import users

SIZES = (1, 70_000, (4 << 20) + 1)


@pytest.fixture(scope="module", name="cluster", params=[False, True], ids=["tcp", "rdma_cm"])
def a_cluster(request):
    with Fabric("star:3", up_args=("--net", "node"), user=users()[-1]) as fabric:
        cluster = Cluster(fabric, ["n2"], rdma_cm=request.param)
        yield cluster
        cluster.end()
        fabric.expect_no_leftovers()


def make_file(cluster, name, size):
    """With contents that nothing else has."""
    path = cluster.home / name
    cluster.fabric.run(cluster.client, "dd", "if=/dev/urandom", f"of={path}", f"bs={size}", "count=1",
                       "iflag=fullblock", "status=none")
    return path


def sent_bytes(cluster):
    """By the client's port, and those of them that its network interface has sent."""
    port = cluster.fabric.json("counters", f"{cluster.client}:1")["counters"][0]["xmit_bytes"]
    return port, int(cluster.fabric.run(cluster.client, "cat", "/sys/class/net/ib0/statistics/tx_bytes"))


def equal(cluster, a, b):
    cluster.fabric.run(cluster.client, "cmp", a, b)


def test_objects_come_back(cluster):
    for size in SIZES:
        path, back = make_file(cluster, "object", size), cluster.home / "back"
        before = sent_bytes(cluster)
        cluster.rados("put", f"object.{size}", path)
        by_port, by_interface = (after - first for after, first in zip(sent_bytes(cluster), before))
        assert by_port > size and by_interface < 32768  # for TCP connections, which carry addresses of QPs
        cluster.rados("get", f"object.{size}", back)
        equal(cluster, path, back)


def test_many_at_once(cluster):
    """rados compares what it reads with what it has written."""
    cluster.rados("bench", "2", "write", "-b", "65536", "-t", "16", "--no-cleanup", "--max-objects", "2000")
    out = cluster.rados("bench", "2", "seq", "-t", "16")
    assert int(re.search(r"Total reads made: +(\d+)", out)[1]) > 100
    assert "error" not in out.lower().replace("errors: 0", "")


def test_image_of_a_disk(cluster):
    image, back = make_file(cluster, "image", 8 << 20), cluster.home / "exported"
    cluster.run("rbd", "--no-progress", "import", image, "pool/image")
    cluster.run("rbd", "--no-progress", "export", "pool/image", back)
    equal(cluster, image, back)


def test_a_daemon_dies_and_returns():
    with Fabric("star:4", up_args=("--net", "node"), user=users()[-1]) as fabric:
        cluster = Cluster(fabric, ["n2", "n3"], rdma_cm=False)
        files = {name: make_file(cluster, name, 1 << 20) for name in ("before", "meanwhile")}
        cluster.rados("put", "before", files["before"])
        cluster.kill_disk(1)
        cluster.rados("put", "meanwhile", files["meanwhile"])
        cluster.start_disk(1)
        cluster.wait_for_disks(2)
        cluster.wait_until_clean()
        cluster.kill_disk(0)  # the other one has all
        for name, path in files.items():
            cluster.rados("get", name, cluster.home / "back")
            equal(cluster, path, cluster.home / "back")
