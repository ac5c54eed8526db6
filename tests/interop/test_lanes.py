# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lanes, the way past softibd, against the packet path: counters to the last
packet, links that go and come back, order while routes change, partitions."""
import re
import sys
import threading

import pytest

from interop.fabric import Fabric, _ports, wait_until

LANES = pytest.mark.parametrize("lanes", ["0", "1"], ids=["softibd", "lanes"])
MESSAGE, MTU = 65536, 4096
COUNTS = ("xmit_packets", "rcv_packets", "xmit_bytes", "rcv_bytes")


def counters(fabric):
    rows = fabric.json("counters")["counters"]
    return {(row["node"], row["port"]): row for row in rows}


def counted(fabric, program, *args):
    """What every port counted while perftest ran from n2 to n1."""
    before = counters(fabric)
    _, out = fabric.pair(program, *args)
    after = counters(fabric)
    return out, {port: {c: after[port][c] - before[port][c] for c in COUNTS} for port in after}


def both_ends_agree(ports):
    """Each cable's ends, and what went into the switch against what came out."""
    for node, port in (("n1", ("s1", 1)), ("n2", ("s1", 2))):
        for mine, its in (("xmit", "rcv"), ("rcv", "xmit")):
            for what in ("packets", "bytes"):
                assert ports[node, 1][f"{mine}_{what}"] == ports[port][f"{its}_{what}"], ports
    for what in ("packets", "bytes"):
        assert sum(ports["s1", p][f"xmit_{what}"] for p in (1, 2)) == \
               sum(ports["s1", p][f"rcv_{what}"] for p in (1, 2)), ports


@LANES
@pytest.mark.parametrize("args,messages,size", [
    (("ib_send_bw", "-c", "UC"), 1000, MESSAGE), (("ib_write_bw", "-c", "UC"), 1000, MESSAGE),
    (("ib_send_bw", "-c", "UD"), 1000, MTU)], ids=lambda a: "-".join(a) if isinstance(a, tuple) else "")
def test_unacknowledged_packets_are_counted_exactly(quiet, monkeypatch, args, messages, size, lanes):
    monkeypatch.setitem(quiet.env, "SOFTIB_LANES", lanes)
    _, ports = counted(quiet, *args, "-n", messages, "-s", size)
    both_ends_agree(ports)
    packets = messages * -(-size // MTU)
    assert ports["n2", 1]["xmit_packets"] == packets
    assert ports["n1", 1]["rcv_packets"] == packets
    assert ports["n1", 1]["xmit_packets"] == 0
    # LRH:PktLen counts what stands between the LRH's first byte and the ICRC's last
    headers = 8 + 12 + 4 + (8 if "UD" in args else 0)
    extra = messages * 16 if "write" in args[0] else 0  # RETH in the first of each
    assert ports["n2", 1]["xmit_bytes"] == messages * size + packets * headers + extra


@LANES
@pytest.mark.parametrize("program", ["ib_write_bw", "ib_send_bw", "ib_read_bw", "ib_atomic_bw"])
def test_acknowledged_packets_agree_on_every_port(quiet, monkeypatch, program, lanes):
    monkeypatch.setitem(quiet.env, "SOFTIB_LANES", lanes)
    size = () if "atomic" in program else ("-s", MTU)
    _, ports = counted(quiet, program, "-n", 1000, *size)
    both_ends_agree(ports)
    assert ports["n2", 1]["xmit_packets"] >= 1000
    answers = ports["n2", 1]["rcv_packets"]
    assert answers >= 1000 if program in ("ib_read_bw", "ib_atomic_bw") else answers > 0


def background(fabric, program, *args, server="n1", client="n2"):
    """perftest or a pingpong under way; (server, client)."""
    port = next(_ports)
    flags = ["-d", "softib0", "-p", port]
    first = fabric.serve(server, program, *flags, *args, port=port)
    second = fabric.start(client, program, *flags, *args, fabric.address(server))
    return first, second


@LANES
def test_traffic_goes_on_by_another_path(monkeypatch, lanes):
    """n1's switch has two ways up: the one in use is pulled."""
    with Fabric("fattree:2,2") as fabric:
        monkeypatch.setitem(fabric.env, "SOFTIB_LANES", lanes)
        both = background(fabric, "ib_send_bw", "-D", "6", server="n8", client="n1")
        before = counters(fabric)
        fabric.wait_for_traffic("n8", 1000)
        after = counters(fabric)
        sent = {port: after[port]["xmit_packets"] - before[port]["xmit_packets"]
                for port in (("s1", 3), ("s1", 4))}
        used, other = sorted(sent, key=sent.get, reverse=True)
        assert sent[used] > 100 > sent[other], sent
        fabric.softib("link", f"{used[0]}:{used[1]}", "down")
        # a sender counts behind what it sends: what it sent last by the one way is counted
        # when it goes by the other
        wait_until(lambda: counters(fabric)[other]["xmit_packets"] - after[other]["xmit_packets"]
                   > 100, f"packets leave by {other}")
        pulled = counters(fabric)
        fabric.wait_for_traffic("n8", 10000)
        for process in reversed(both):
            out = fabric.finish(process)
            assert process.returncode == 0, out
        after = counters(fabric)
        assert after[used]["xmit_packets"] == pulled[used]["xmit_packets"]
        assert after[other]["xmit_packets"] - pulled[other]["xmit_packets"] >= 10000


@LANES
def test_the_only_link_pulled_ends_the_run_with_an_error(monkeypatch, lanes):
    with Fabric("pair") as fabric:
        monkeypatch.setitem(fabric.env, "SOFTIB_LANES", lanes)
        _, client = background(fabric, "ib_send_bw", "-D", "20")
        fabric.wait_for_traffic("n1", 1000)
        fabric.softib("link", "n1:1", "down")
        before = counters(fabric)["n1", 1]["rcv_packets"]
        out = fabric.finish(client)
        assert client.returncode != 0
        assert "status 12" in out, out  # IBV_WC_RETRY_EXC_ERR
        assert counters(fabric)["n1", 1]["rcv_packets"] == before


@LANES
@pytest.mark.parametrize("program", ["ibv_uc_pingpong", "ibv_ud_pingpong"])
def test_datagrams_survive_changes_elsewhere(monkeypatch, program, lanes):
    """One lost packet, and a pingpong without acknowledgements waits for ever."""
    with Fabric("star:3") as fabric:
        monkeypatch.setitem(fabric.env, "SOFTIB_LANES", lanes)
        over = threading.Event()
        changes = []

        def change():
            while not over.is_set():
                fabric.softib("link", "n3:1", "down")
                fabric.softib("link", "n3:1", "up")
                changes.append(1)

        other = threading.Thread(target=change)
        other.start()
        try:
            for _ in range(3):
                fabric.pair(program, "-n", "20000", timeout=60)
        finally:
            over.set()
            other.join()
        assert len(changes) > 3
        fabric.softib("wait")


@LANES
def test_a_stream_loses_nothing_while_routes_change(monkeypatch, lanes):
    """UC, with a receive posted for each message: all must come."""
    with Fabric("star:3") as fabric:
        monkeypatch.setitem(fabric.env, "SOFTIB_LANES", lanes)
        server, client = background(fabric, "ib_send_bw", "-c", "UC", "-n", "8000", "-r", "8000",
                                    "-s", MESSAGE)
        while client.poll() is None:
            fabric.softib("link", "n3:1", "down")
            fabric.softib("link", "n3:1", "up")
        for process in (client, server):
            out = fabric.finish(process, timeout=60)
            assert process.returncode == 0, out


SET_PKEYS = """
import ctypes, sys
mad = ctypes.CDLL("libibmad.so.5")
mad.mad_rpc_open_port.restype = mad.smp_set_via.restype = ctypes.c_void_p
classes = (ctypes.c_int * 2)(1, 0x81)
port = mad.mad_rpc_open_port(b"softib0", 1, classes, 2)
to = ctypes.create_string_buffer(256)  # ib_portid_t begins with the LID
ctypes.cast(to, ctypes.POINTER(ctypes.c_int))[0] = int(sys.argv[1])
keys = b"".join(int(key, 0).to_bytes(2, "big") for key in sys.argv[2:])
table = ctypes.create_string_buffer(keys, 64)
sys.exit(not mad.smp_set_via(table, to, 0x16, 0, 1000, ctypes.c_void_p(port)))
"""


@LANES
@pytest.mark.parametrize("loser", ["n1", "n2"], ids=["receiver", "sender"])
def test_a_partition_taken_away_stops_a_running_flow(monkeypatch, loser, lanes):
    with Fabric("pair") as fabric:
        monkeypatch.setitem(fabric.env, "SOFTIB_LANES", lanes)
        lid = re.search(r"LID start 0x([0-9a-f]+)", fabric.run(loser, "ibaddr", "-l"))[1]
        _, client = background(fabric, "ib_send_bw", "-D", "20")
        fabric.wait_for_traffic("n1", 1000)
        fabric.run("n1", sys.executable, "-c", SET_PKEYS, str(int(lid, 16)), "0x8001")
        out = fabric.finish(client)
        assert client.returncode != 0
        assert "status 12" in out, out
