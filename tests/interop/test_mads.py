# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The MAD layer under programs that no one here wrote: long messages, agents
of programs that die, IsSM."""
import re
from pathlib import Path

import pytest

from interop.fabric import DATA, Fabric, wait_until

LARGE = DATA / "topologies/ndr-40-switches-582-cas.ibnetdiscover"


@pytest.fixture(scope="module", params=["softib-sm", "opensm"])
def star(request):
    with Fabric("star:4", sm=request.param) as fabric:
        yield fabric


def lid(fabric, node):
    return re.search(r"LID start (0x[0-9a-f]+)", fabric.run(node, "ibaddr", "-l")).group(1)


@pytest.mark.parametrize("sm", ["softib-sm", "opensm"])
def test_all_paths_of_a_large_fabric_are_one_answer(sm):
    """386,884 records, some 25 MB in 120,000 segments."""
    with Fabric(LARGE, sm=sm, up_args=["--timeout", "300"]) as fabric:
        nodes = len(re.findall("^NodeRecord", fabric.run("n1", "saquery"), re.M))
        assert nodes == 622
        out = fabric.run("n5", "saquery", "-t", "60000", "-p", limit=1 << 29)
        assert len(re.findall("^PathRecord", out, re.M)) == nodes * nodes


def test_every_node_may_ask_the_sa(star):
    for node in ("n1", "n2", "n3", "n4"):
        out = star.run(node, "saquery")
        assert len(re.findall("^NodeRecord", out, re.M)) == 5


def test_a_class_is_free_when_its_server_is_killed(star):
    address = lid(star, "n2")
    for _ in range(5):
        server = star.start("n2", "ibping", "-S")
        answered(star, address)
        server.kill()
        server.wait()
    # and nobody answers for the dead; the requester is told, or times out
    out = star.run("n3", "ibping", "-c", "1", "-t", "200", address, check=False)
    assert "1 packets transmitted, 0 received" in out


def answered(fabric, address):
    """Until the server has registered, its port says that it has no such class."""
    for _ in range(100):
        out = fabric.run("n3", "ibping", "-c", "1", "-t", "200", address, check=False)
        if " 1 received" in out:
            return
    raise AssertionError(out)


def test_two_servers_of_one_class_on_a_port(star):
    first = star.start("n4", "ibping", "-S")
    answered(star, lid(star, "n4"))
    out = star.run("n4", "ibping", "-S", check=False, timeout=10)
    assert "can't serve class" in out
    assert first.poll() is None
    first.kill()
    first.wait()


def test_is_sm_is_where_the_manager_is(star):
    sm_lid = re.search(r"sm lid (\d+)", star.run("n3", "sminfo")).group(1)
    assert "IsSM\n" in star.run("n3", "smpquery", "portinfo", sm_lid)
    assert "IsSM\n" not in star.run("n3", "smpquery", "portinfo", lid(star, "n2"))


def test_a_class_without_server_is_refused_at_once(star):
    """A requester that would wait for ten minutes is told before the test's own limit."""
    out = star.run("n1", "ibccquery", "-t", "600000", "CongestionInfo", lid(star, "n2"),
                   check=False)
    assert "query failed" in out
    assert "timed out" not in out


def test_a_lid_of_nobody_times_out(star):
    out = star.run("n1", "smpquery", "-t", "50", "nodeinfo", "1000", check=False)
    # the library's clock or softibd's runs out first: only the first is named
    assert "query failed" in out and "status" not in out, out


def test_osmtest_finds_what_it_wrote():
    with Fabric("star:4", sm="opensm") as fabric:
        inventory = fabric.home / "osmtest.dat"
        env = f"OSM_TMP_DIR={fabric.home}"
        for flow in ("c", "v"):
            out = fabric.run("n1", "env", env, "osmtest", "-f", flow, "-i", inventory,
                             "-l", fabric.home / "osmtest.log")
            assert "PASS" in out


def test_a_mad_goes_in_the_partition_of_its_index(tmp_path):
    """n1 and n2 share a partition beside the default one, n3 is in no other."""
    side = Path(__file__).with_name("umad_side.py")
    with Fabric("star:3", sm="none") as fabric:
        guid = [fabric.run(f"n{n}", "ibstat", "-p").strip() for n in (1, 2)]
        config = tmp_path / "partitions.conf"
        config.write_text("Default=0x7fff: ALL=full;\n"
                          f"Other=0x1234: {guid[0]}=full, {guid[1]}=full;\n")
        fabric.start("n1", "opensm", "-P", config, "-f", tmp_path / "log")
        fabric.softib("wait", "--fabric", "t")
        wait_until(lambda: "0x9234" in fabric.run("n2", "smpquery", "-D", "pkeys", "0"), "partitions")

        def index(node, pkey):
            keys = fabric.run(node, "sh", "-c", "cat /sys/class/infiniband/softib0/ports/1/pkeys/?").split()
            return keys.index(pkey)

        def ask(node, at):
            return fabric.run("n1", "python3", side, "ask", lid(fabric, node), at).strip()

        servers = {node: fabric.start(node, "python3", side, "serve") for node in ("n2", "n3")}
        assert all(server.stdout.readline() == "ready\n" for server in servers.values())
        for pkey in ("0xffff", "0x9234"):
            at = index("n1", pkey)
            assert ask("n2", at) == f"answered by {at}"
            assert servers["n2"].stdout.readline() == f"{index('n2', pkey)}\n"
        assert ask("n3", index("n1", "0xffff")) == f"answered by {index('n1', '0xffff')}"
        assert ask("n3", index("n1", "0x9234")) == "ETIMEDOUT"
        assert ask("n2", 5) == "ETIMEDOUT"  # the entry is empty, so nobody is in its partition
        assert ask("n2", 1000) == "EINVAL"  # the table ends before
