# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Debian's perftest: every transport and operation, through the switch and at home."""
import json
import os
import re
import signal
from pathlib import Path

import pytest

from interop.fabric import Fabric, wait_until
from interop.test_lanes import background

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
    "ib_write_bw --odp --mmap=FILES/buffer --mmap-offset=4096",
    "ib_send_bw --mmap=FILES/buffer",
    "ib_read_bw -e -X 0",
    "ib_read_lat -e",
    "ib_atomic_bw -e",
    "ib_atomic_lat -e",
    "ib_read_bw -o 4",
    "ib_read_lat -o 1",
    "ib_atomic_bw -o 4 -q 4",
    "ib_atomic_bw -b -l 10",
    "ib_atomic_bw --inline_recv=64",
    "ib_read_lat --inline_recv=64 -s 64",
    "ib_write_lat --latency_gap=10",
    "ib_read_lat --latency_gap=10",
    "ib_write_lat -H",
    "ib_write_lat -U",
    "ib_read_lat -C",
    "ib_write_lat --tclass=32 -x 0",
    "ib_write_bw --connection=UC --use_old_post_send",
    "ib_write_bw --noPeak --sl=1 --tx-depth=16 --qp-timeout=18",
    "ib_send_bw -c UD --sl=1 --tx-depth=1",
    "ib_write_bw --disable_pcie_relaxed --source_ip=127.0.0.1",
    "ib_write_bw --mr_per_qp -q 2",
    "ib_write_bw --force-link=IB --ipv6 -x 0",
    "ib_write_bw --limit_bw=0.001 --limit_msgrate=0.000001",
    "ib_write_bw --report-counters=counters/port_xmit_data,counters/port_rcv_data",
    "ib_write_bw --output=bandwidth",
    "ib_write_bw --output=message_rate",
    "ib_write_lat --output=latency",
    "ib_write_bw --reversed",
    "ib_send_bw --reversed",
    "ib_read_bw --reversed",
    "ib_write_lat --reversed",
    "ib_write_bw --wait_destroy=1",
    "ib_write_bw --rate_limit=10",
    "ib_write_bw --rate_limit=1000 --rate_units=M --rate_limit_type=SW --burst_size=4",
    "ib_write_bw --rate_limit=10000 --rate_units=p --rate_limit_type=SW",
    "ib_send_bw -c UD --mcg",
    "ib_send_lat -c UD --mcg",
    "ib_send_bw -c UD --mcg --MGID=255:18:64:27:255:255:0:0:0:0:0:0:0:0:0:7",
    "ib_send_lat --perform_warm_up",
    "ib_read_bw --perform_warm_up",
]
# of tests that last as long as they are told
TIMED = ["ib_write_bw --cpu_util -D 1", "ib_write_bw --margin=1 -D 3"]
# options that perftest refuses on every adapter, before it looks at one, and what it says
REFUSED = [
    ("ib_write_bw -e", "Events feature not available on WRITE verb"),
    ("ib_write_lat -e", "Events feature not available on WRITE verb"),
    ("ib_write_bw --hop_limit=3", "Hop limit only valid for RawEth QP"),
    ("ib_write_lat --dualport", "Dual-port mode only supports BW tests"),
    ("ib_write_bw --report-per-port", "work only with Duration and Dualport"),
    ("ib_write_bw --rate_limit=1 --rate_limit_type=HW", "Unknown rate limit value"),
    ("ib_write_bw --rate_limit=10 --rate_limit_type=PP", "only supported for Raw Ethernet"),
    ("ib_write_lat --rate_limit=1 --rate_limit_type=SW", "SW Rate limiter cann't be executed"),
    ("ib_write_bw --rate_limit=1 --rate_limit_type=SW --typical_pkt_size=9",
     "Typical packet size only supports PP rate limiter"),
    ("ib_write_bw -c SRD", "SRD connection only possible in SEND/READ verbs"),
    ("ib_write_bw --log_dci_streams=2", "log_dci_streams supported only on DC"),
    ("ib_write_bw --aes_xts", "Please provide key encryption key file path"),
    ("ib_write_lat --run_infinitely", "run_infinitely exists only in BW tests"),
    ("ib_send_bw --run_infinitely -b", "not supported in SEND Bidirectional BW test"),
    ("ib_write_bw --use-null-mr", "unrecognized option '--use-null-mr'"),
    # its help has these short options, but its parser only the long ones: --ethertype, which runs
    # (test_ethernet.py), and --use_rss, which needs the experimental verbs of a vendor's libibverbs
    ("raw_ethernet_bw -Y 0x88b5", "invalid option -- 'Y'"),
    ("raw_ethernet_bw -G", "invalid option -- 'G'"),
    ("raw_ethernet_bw --server -B 02:73:69:00:00:01 -E 02:73:69:00:00:02 --use_rss",
     "RSS feature is not available in libibverbs"),
]
# refused by both sides when they have met, or when they make their objects
REFUSED_LATER = [
    ("ib_send_bw -c SRD", "Unable to create QP"),
    ("ib_write_bw -c DC --log_dci_streams=2", "Unable to create QP"),
    ("ib_write_bw --dont_xchg_versions", "not compatible with versions older than 5.70"),
    ("ib_write_bw --mmap=FILES/buffer --mmap-offset=1044480", "Couldn't allocate MR"),
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


@pytest.mark.parametrize("args", TIMED, ids=lambda args: args.replace(" ", "_"))
def test_timed_options(pair, args):
    program, *flags = args.split()
    _, out = pair.pair(program, "-F", *flags)
    assert table_rows(out), out


@pytest.mark.parametrize("args", OPTIONS, ids=lambda args: args.replace(" ", "_"))
def test_options(pair, tmp_path, args):
    """Options that none of the tests above has, of both sides."""
    (tmp_path / "buffer").write_bytes(bytes(1 << 20))
    program, *flags = args.replace("FILES", str(tmp_path)).split()
    _, out = pair.pair(program, "-F", "-n", "100", *flags)
    assert table_rows(out), out


@pytest.mark.parametrize("args,says", REFUSED, ids=lambda arg: arg.replace(" ", "_"))
def test_options_that_perftest_refuses(pair, args, says):
    program, *flags = args.split()
    out = pair.run("n1", program, "-d", "softib0", "-F", *flags, check=False)
    assert pair.running[-1].returncode == 1 and says in out, out


@pytest.mark.parametrize("args,says", REFUSED_LATER, ids=lambda arg: arg.replace(" ", "_"))
def test_options_that_both_sides_refuse(pair, tmp_path, args, says):
    (tmp_path / "buffer").write_bytes(bytes(1 << 20))
    program, *flags = args.replace("FILES", str(tmp_path)).split()
    server, client = background(pair, program, "-F", *flags)
    for process in client, server:
        out = pair.finish(process)
        assert process.returncode == 1 and says in out, out


def test_group_gid_as_text(pair):
    """--MGID is 16 numbers, as OPTIONS has it. In a GID as text perftest finds the end of a number behind
    that of the text, and aborts when it copies what is between; its client finds the server gone."""
    server, client = background(pair, "ib_send_bw", "-F", "-c", "UD", "--mcg", "--MGID=ff12:401b:ffff:0:0:0:0:1")
    out = pair.finish(server)
    assert server.returncode == -signal.SIGABRT and "buffer overflow detected" in out, out
    pair.finish(client)
    assert client.returncode


@pytest.mark.parametrize("program", ["ib_write_lat", "ib_send_lat", "ib_read_lat", "ib_atomic_lat"])
def test_file_of_each_side(pair, tmp_path, program):
    """Each side has a file of its own: in one that both map, each would find the marks that it
    has written itself. The messages are behind the offset of the mapping."""
    offset, size = 4096, 1 << 20
    sides = [tmp_path / "server", tmp_path / "client"]
    for side in sides:
        side.write_bytes(bytes(size))
    of_server, of_client = (["-F", "-n", "100", f"--mmap={side}", f"--mmap-offset={offset}"] for side in sides)
    _, out = pair.pair(program, *of_client, server_args=of_server)
    assert table_rows(out), out
    for side in sides:
        assert side.stat().st_size == size and not any(side.read_bytes()[:offset])
    assert program != "ib_write_lat" or all(any(side.read_bytes()) for side in sides)


@pytest.mark.parametrize("program", ["ib_write_bw", "ib_read_bw", "ib_atomic_bw", "ib_send_bw"])
def test_until_it_is_interrupted(pair, program):
    """A line each second. A server of SENDs does not look at its client, so it is interrupted, too."""
    server, client = background(pair, program, "-F", "--run_infinitely", "-D", "1")
    lines = iter(client.stdout.readline, "")
    assert next((line for line in lines if table_rows(line)), None), "the client prints a row"
    os.killpg(client.pid, signal.SIGINT)
    pair.finish(client)
    assert client.returncode == -signal.SIGINT
    if program == "ib_send_bw":
        os.killpg(server.pid, signal.SIGINT)
    out = pair.finish(server)
    assert server.returncode == (-signal.SIGINT if program == "ib_send_bw" else 1), out


def test_given_lids(pair):
    """Each side is told the other's LID instead of asking it."""
    lids = {node["name"]: node["lid"] for node in pair.json("topo")["nodes"]}
    args = ["-F", "-n", "100"]
    _, out = pair.pair("ib_write_bw", *args, f"--dlid={lids['n1']}", server_args=[*args, f"--dlid={lids['n2']}"])
    assert table_rows(out), out


def test_report_in_a_file(pair, tmp_path):
    """It has the figures of the table; what perftest calls JSON has names without quotes."""
    report = tmp_path / "report"
    args = ["-F", "-n", "100"]
    _, out = pair.pair("ib_write_bw", *args, "--out_json", f"--out_json_file={report}", server_args=args)
    text = report.read_text()
    average = table_rows(out)[0][3]
    assert re.search(rf"BW_average: {re.escape(average)}\b", text), (out, text)
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


@pytest.mark.only_root("it sets huge pages aside, and gives them back")
@pytest.mark.parametrize("args", ["ib_write_bw", "ib_send_lat -c UD"])
def test_huge_pages(pair, args):
    pages = Path("/proc/sys/vm/nr_hugepages")
    before = pages.read_text()
    pages.write_text(str(int(before) + 16))
    try:
        _, out = pair.pair(*args.split(), "-F", "-n", "100", "--use_hugepages")
    finally:
        pages.write_text(before)
    assert table_rows(out), out


def test_two_ports_at_once():
    with Fabric("pair", up_args=["--ports", "2"]) as fabric:
        for args in (["ib_write_bw", "-n", "100"], ["ib_send_bw", "-n", "100"], ["ib_read_bw", "-q", "2", "-n", "100"],
                     ["ib_write_bw", "-D", "1", "-q", "2", "--report-per-port"]):
            _, out = fabric.pair(*args, "-F", "--dualport")
            assert table_rows(out), out
        wait_until(lambda: not fabric.user_resources(), "its objects are gone")
