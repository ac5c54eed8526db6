# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's perftest: every transport and operation, through the switch and at home."""
from pathlib import Path

import pytest

TESTS = [("ib_send", "RC"), ("ib_send", "UC"), ("ib_send", "UD"), ("ib_write", "RC"),
         ("ib_write", "UC"), ("ib_read", "RC")]
LAT = [(f"{name}_lat", transport) for name, transport in TESTS]
BW = [(f"{name}_bw", transport) for name, transport in TESTS]
# of both sides; FILES: a directory with a file "buffer"
OPTIONS = [
    "ib_write_bw --report_gbits",
    "ib_write_bw --report-both -b",
    "ib_send_bw --inline_recv=64 -s 64",
    "ib_write_bw --cq-mod=1",
    "ib_write_bw --cq-mod=25",
    "ib_write_bw --tclass=32 -x 0",
    "ib_write_bw --pkey_index=0",
    "ib_send_bw -c UD --pkey_index=0",
    "ib_write_bw --rate_limit=1 --rate_limit_type=SW",
    "ib_write_bw --use_old_post_send",
    "ib_read_bw --use_old_post_send",
    "ib_send_bw -c UD --use_old_post_send",
    "ib_write_bw --mmap=FILES/buffer",
    "ib_send_bw -l 10",
    "ib_write_bw -l 10",
    "ib_read_bw -l 10",
    "ib_send_bw --recv_post_list=10 -r 50",
    "ib_write_bw --perform_warm_up",
    "ib_write_bw --odp",
    "ib_read_bw --odp",
    "ib_send_bw --odp",
]
ATOMICS = ["FETCH_AND_ADD", "CMP_AND_SWAP"]


def iterations(program):
    return ["-n", "200"] if program.endswith("_bw") else ["-n", "100"]


def table_rows(out):
    """perftest's result lines: they start with the message size."""
    return [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]


@pytest.mark.parametrize("program,transport", LAT + BW)
def test_transport(pair, program, transport):
    _, out = pair.pair(program, "-c", transport, *iterations(program))
    assert table_rows(out), out


@pytest.mark.parametrize("kind", ATOMICS)
@pytest.mark.parametrize("program", ["ib_atomic_lat", "ib_atomic_bw"])
def test_atomic(pair, program, kind):
    _, out = pair.pair(program, "-A", kind, *iterations(program))
    assert table_rows(out), out


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_atomic_lat"])
def test_xrc(pair, program):
    """Each side has an initiator, a target and a shared receive queue of one domain."""
    _, out = pair.pair(program, "-c", "XRC", *iterations(program))
    # perftest's files for the domain: who finds another user's cannot open them
    for path in Path("/tmp").glob("xrc_domain*"):
        path.unlink()
    assert table_rows(out), out


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw"])
def test_dynamically_connected(pair, program):
    """One vendor's transport: both sides are told that there are no such QPs, and end."""
    port = ["-p", "18690"]
    server = pair.serve("n1", program, "-c", "DC", *port, port=18690)
    out = pair.run("n2", program, "-c", "DC", *port, "127.0.0.1", status=1)
    assert "Unable to create QP" in out, out
    pair.finish(server)
    assert server.returncode == 1


@pytest.mark.parametrize("transport", ["RC", "UD"])
@pytest.mark.parametrize("program", ["ib_send_bw", "ib_send_lat"])
def test_shared_receive_queue(pair, program, transport):
    _, out = pair.pair(program, "-c", transport, "--use-srq", *iterations(program))
    assert table_rows(out), out


def test_shared_receive_queue_of_many(pair):
    _, out = pair.pair("ib_send_bw", "--use-srq", "-q", "4", "-n", "200")
    assert table_rows(out), out


# a latency test of all sizes takes a quarter of a minute beside other tests: two stand for all
@pytest.mark.parametrize("program,transport", [("ib_send_lat", "RC"), ("ib_send_lat", "UD")] + BW)
def test_all_sizes(pair, program, transport):
    count = ["-n", "20"] if program.endswith("_bw") else ["-n", "5"]
    _, out = pair.pair(program, "-c", transport, "-a", *count)
    sizes = [int(row[0]) for row in table_rows(out)]
    assert sizes[0] == 2 and sizes[-1] == (4096 if transport == "UD" else 8388608), sizes


@pytest.mark.parametrize("program,transport",
                         [t for t in LAT + BW if t[0].startswith("ib_send")])
def test_events(pair, program, transport):
    pair.pair(program, "-c", transport, "-e", *iterations(program))


@pytest.mark.parametrize("program,transport", BW)
def test_both_ways(pair, program, transport):
    pair.pair(program, "-c", transport, "-b", *iterations(program))


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_bw"])
def test_eight_queue_pairs(pair, program):
    pair.pair(program, "-q", "8", *iterations(program))


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw"])
def test_duration(pair, program):
    pair.pair(program, "-D", "3")


@pytest.mark.parametrize("program,transport", LAT + BW)
def test_on_one_node(pair, program, transport):
    pair.pair(program, "-c", transport, *iterations(program), server="n1", client="n1")


@pytest.mark.parametrize("mtu", [256, 512, 1024, 2048, 4096])
def test_mtu(pair, mtu):
    pair.pair("ib_write_bw", "-m", mtu, "-n", "50")


def test_across_a_tree(tree):
    nodes = [n["name"] for n in tree.json("topo")["nodes"] if n["name"].startswith("n")]
    tree.pair("ib_send_bw", "-n", "200", server=nodes[0], client=nodes[-1])
    tree.pair("ib_read_lat", "-n", "100", server=nodes[-1], client=nodes[0])


def test_inline_and_gid(pair):
    pair.pair("ib_send_lat", "-I", "64", "-s", "64", "-n", "100")
    pair.pair("ib_write_bw", "-x", "0", "-n", "100")


@pytest.mark.parametrize("args", OPTIONS, ids=lambda args: args.replace(" ", "_"))
def test_options(pair, tmp_path, args):
    """Options that none of the tests above has, of both sides."""
    (tmp_path / "buffer").write_bytes(bytes(1 << 20))
    program, *flags = args.replace("FILES", str(tmp_path)).split()
    _, out = pair.pair(program, "-F", "-n", "100", *flags)
    assert table_rows(out), out
