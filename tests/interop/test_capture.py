# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Captures before tshark: every packet of a session with all transports and
management, on every cable, with both CRCs right; live through pipes; with
filters judged by tshark's own; and a fabric that does not feel them."""
import os
import re
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections import Counter, defaultdict

import pytest

from interop.crc import icrc, vcrc
from interop.fabric import OUTSIDE, SOFTIB, TIMEOUT, Fabric, wait_until

FIELDS = ("frame.interface_name", "frame.packet_flags_direction", "frame.time_epoch",
          "frame.len", "frame.cap_len", "infiniband.lrh.vl", "infiniband.bth.opcode",
          "infiniband.bth.psn", "infiniband.mad.mgmtclass", "infiniband.mad.method", "infiniband.rmpp.rmpptype",
          "_ws.malformed", "_ws.expert.message")


class Capture:
    """softib capture ... -w FILE, under way once made."""

    def __init__(self, fabric, *args, output=None):
        self.fabric = fabric
        self.file = output or fabric.home / f"{len(fabric.running)}.pcapng"
        self.process = subprocess.Popen(
            [*fabric.user, fabric.program, "capture", "--fabric", fabric.name, "-w", self.file, *map(str, args)],
            env=fabric.env, stderr=subprocess.PIPE, text=True)
        fabric.running.append(self.process)
        wait_until(lambda: self.started() or self.process.poll() is not None, "it does not start")
        assert self.started(), self.process.stderr.read()

    def started(self):
        return self.file.exists() and self.file.stat().st_size > 0

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.join()

    def join(self):
        _, err = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode == 0, err
        self.said = err
        return self.file


def capinfos(pcap):
    return subprocess.run(["capinfos", pcap], env=OUTSIDE, capture_output=True, text=True,
                          check=True, timeout=TIMEOUT).stdout


def tshark(*args, stdin=None):
    return subprocess.run(["tshark", *map(str, args)], check=True, text=True, stdin=stdin,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env=OUTSIDE, timeout=TIMEOUT).stdout


def dissect(pcap, *args):
    """[{field: text}] of every frame, as tshark reads it."""
    flags = [flag for name in FIELDS for flag in ("-e", name)]
    # perftest's bytes are no RPC: tshark guesses so from some SENDs, and calls them malformed
    out = tshark("-r", pcap, "--disable-protocol", "rpcordma", "-T", "fields", "-E",
                 "separator=|", *flags, *args)
    return [dict(zip(FIELDS, line.split("|"))) for line in out.splitlines()]


def blocks(pcap):
    data, at = pcap.read_bytes(), 0
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        assert size == struct.unpack_from("<I", data, at + size - 4)[0]
        yield kind, data[at + 8:at + size - 4]
        at += size


def packets(pcap):
    """(interface, sent, LRH to VCRC) of every packet: read here, not by tshark."""
    names = []
    for kind, body in blocks(pcap):
        if kind == 1:
            code, size = struct.unpack_from("<HH", body, 8)
            assert code == 2
            names.append(body[12:12 + size].decode())
        elif kind == 6:
            interface, _, _, kept, _ = struct.unpack_from("<IIIII", body)
            code, size, flags = struct.unpack_from("<HHI", body, 20 + (kept + 3) // 4 * 4)
            assert (code, size) == (2, 4)
            yield names[interface], flags == 2, body[20 + 16:20 + kept]


def cables(fabric):
    """{port: the port at the other end}"""
    out = {}
    for node in fabric.json("topo")["nodes"]:
        for port in node["ports"]:
            if "peer" in port:
                out[f"{node['name']}:{port['port']}"] = f"{port['peer']}:{port['peer_port']}"
    return out


# --- a session with everything in it ---

RC = [("ib_send_bw", "-n", "20", "-s", "9000"), ("ib_send_lat", "-n", "20"),
      ("ib_write_bw", "-n", "20", "-s", "9000"), ("ib_write_lat", "-n", "20"),
      ("ib_read_bw", "-n", "20", "-s", "13000"), ("ib_read_lat", "-n", "20"),
      ("ib_atomic_bw", "-n", "20", "-A", "FETCH_AND_ADD"),
      ("ib_atomic_lat", "-n", "20", "-A", "CMP_AND_SWAP"),
      ("ib_send_bw", "-n", "20", "-x", "0")]
UC = [("ib_send_bw", "-c", "UC", "-n", "20", "-s", "9000"),
      ("ib_write_bw", "-c", "UC", "-n", "20", "-s", "9000")]
UD = [("ib_send_bw", "-c", "UD", "-n", "20"), ("ib_send_lat", "-c", "UD", "-n", "20")]


@pytest.fixture(scope="module", params=["softib-sm", "opensm"])
def session(request, tmp_path_factory):
    """(fabric, capture) from before the subnet manager's first packet on."""
    with Fabric("fattree:2,2", sm="none") as fabric:
        whole = Capture(fabric, "-b", "64",
                        output=tmp_path_factory.mktemp("capture") / "all.pcapng")
        if request.param == "opensm":
            manager = fabric.start("n1", "opensm", "-e", "-f", fabric.home / "opensm.log")
        else:
            manager = fabric.start("n1", "softib-sm")
        fabric.softib("wait")
        for args in RC + UC + UD:
            fabric.pair(*args, server="n1", client="n8")
        out = fabric.run("n2", "saquery", "-p")  # every path, by RMPP
        assert len(re.findall("^PathRecord", out, re.M)) > 100
        fabric.run("n3", "ibnetdiscover")
        fabric.run("n4", "perfquery", "1", "1")
        fabric.run("n5", "smpquery", "nodeinfo", "1")
        whole.end()
        assert " 0 dropped" in whole.said
        yield fabric, whole.file
        manager.terminate()
        manager.wait()


@pytest.fixture(scope="module")
def frames(session):
    return dissect(session[1])


def test_tshark_reads_all_of_it(session, frames):
    assert len(frames) == sum(kind == 6 for kind, _ in blocks(session[1])) > 10000
    odd = Counter((f["_ws.malformed"], f["_ws.expert.message"], f["infiniband.bth.opcode"])
                  for f in frames if f["_ws.malformed"] or f["_ws.expert.message"])
    assert not odd


def test_what_was_done_is_in_it(frames):
    opcodes = {int(f["infiniband.bth.opcode"]) for f in frames}
    #         RC send, write, read, ack, atomics; UC send, write; UD
    assert opcodes >= {0, 1, 2, 4, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17, 18, 19, 20,
                       0x20, 0x21, 0x22, 0x26, 0x27, 0x28, 0x64}
    classes = {int(f["infiniband.mad.mgmtclass"], 0) for f in frames
               if f["infiniband.mad.mgmtclass"]}
    assert classes >= {0x01, 0x81, 0x03, 0x04}
    rmpp = Counter(f["infiniband.rmpp.rmpptype"] for f in frames
                   if f["infiniband.mad.mgmtclass"] in ("3", "0x03"))
    assert rmpp["1"] + rmpp["0x01"] > 10 and rmpp["2"] + rmpp["0x02"] > 0, rmpp  # DATA, ACK


def test_smps_travel_on_vl15_and_nothing_else_does(frames):
    for f in frames:
        smp = f["infiniband.mad.mgmtclass"] in ("1", "129", "0x01", "0x81")
        assert (int(f["infiniband.lrh.vl"], 0) == 15) == smp, f


def test_both_crcs_of_every_packet(session):
    known = {}  # a packet is seen on several cables: its CRCs are the same
    for _, _, packet in packets(session[1]):
        if packet not in known:
            known[packet] = True
            assert packet[-6:-2] == icrc(packet)
            assert packet[-2:] == vcrc(packet[:-2])
    assert len(known) > 2000


def test_every_hop_is_there(session):
    """What one end of a cable sent, the other received, in that order; and a
    switch sends on what it took in, but for what its own agents say."""
    fabric, pcap = session
    sent, received = defaultdict(list), defaultdict(list)
    for interface, out, packet in packets(pcap):
        (sent if out else received)[interface].append(packet)
    peers = cables(fabric)
    assert set(sent) | set(received) <= set(peers)
    for port, peer in peers.items():
        assert sent[port] == received[peer], (port, peer)
    data = lambda packet: packet[0] >> 4 != 15 and packet[1] & 3 == 2 and \
        int.from_bytes(packet[13:16], "big") > 1  # to a QP of a program
    for switch in {port.split(":")[0] for port in peers if port.startswith("s")}:
        mine = [port for port in peers if port.startswith(switch + ":")]
        came = Counter(p[8:-2] for port in mine for p in received[port] if data(p))
        went = Counter(p[8:-2] for port in mine for p in sent[port] if data(p))
        assert came == went, switch


def test_times_are_in_order_and_of_today(frames):
    times = [float(f["frame.time_epoch"]) for f in frames]
    assert times == sorted(times)
    assert 0 <= time.time() - times[0] < 3600
    assert any(not f["frame.time_epoch"].endswith("000") for f in frames)  # nanoseconds


def test_ports_and_directions(session, frames):
    fabric, pcap = session
    assert {f["frame.interface_name"] for f in frames} <= set(cables(fabric))
    assert {f["frame.packet_flags_direction"] for f in frames} == {"0x00000001", "0x00000002"}
    info = capinfos(pcap)
    assert re.search(r"Name = n1:1\n.*Description = n1 softib0 port 1, cable to s1:\d, 4x EDR", info)


# --- live ---

def pipeline(fabric, *tshark_args, capture=("n1:1",)):
    """softib capture | tshark: (capture, tshark)"""
    first = subprocess.Popen([SOFTIB, "capture", "--fabric", "t", *capture], env=fabric.env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    second = subprocess.Popen(["tshark", *tshark_args], stdin=first.stdout, text=True,
                              env=OUTSIDE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    first.stdout.close()
    fabric.running += [first, second]
    return first, second


@pytest.mark.parametrize("how", ["-r", "-i"])
def test_live_through_a_pipe(pair, how):
    first, second = pipeline(pair, "-l", how, "-", "-T", "fields", "-e", "frame.interface_name",
                             "-e", "infiniband.mad.attributeid")
    got = []

    def ask():  # until tshark shows one: -i takes a moment to begin
        while not got and second.poll() is None:
            pair.run("n2", "smpquery", "nodeinfo", "1")

    asking = threading.Thread(target=ask)
    asking.start()
    got.append(second.stdout.readline())  # while the capture goes on
    asking.join()
    assert got[0].startswith("n1:1\t") and first.poll() is None
    first.send_signal(signal.SIGINT)
    assert first.wait(TIMEOUT) == 0
    assert second.wait(TIMEOUT) == 0


def test_a_reader_that_leaves_ends_it(pair):
    first = subprocess.Popen([SOFTIB, "capture", "--fabric", "t"], env=pair.env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pair.running.append(first)
    assert os.read(first.stdout.fileno(), 4) == b"\n\r\r\n"
    first.stdout.close()
    pair.run("n2", "smpquery", "nodeinfo", "1")
    assert first.wait(TIMEOUT) == 0
    assert "packets" in first.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_a_whole_file(pair, number):
    capture = Capture(pair)
    pair.run("n2", "smpquery", "nodeinfo", "1")
    capture.end(number)
    assert len(dissect(capture.file)) >= 8
    assert [kind for kind, _ in blocks(capture.file)][-1] == 5  # statistics
    assert "0 dropped" in capture.said


def test_the_end_of_softibd_ends_it_with_a_whole_file(tmp_path):
    with Fabric("pair") as fabric:
        capture = Capture(fabric, output=tmp_path / "end.pcapng")
        fabric.run("n2", "smpquery", "nodeinfo", "1")
        os.kill(fabric.json("status")["pid"], signal.SIGKILL)
        capture.join()
        assert len(dissect(capture.file)) >= 8
        fabric.wait_for_cleaning()
        fabric.softib("up", "t")  # for the fixture to take down


def test_count_ends_it(pair):
    capture = Capture(pair, "-c", "5")
    pair.run("n2", "smpquery", "nodeinfo", "1")
    capture.join()
    assert len(dissect(capture.file)) == 5


def test_a_full_disk_is_told(pair):
    done = subprocess.run([SOFTIB, "capture", "--fabric", pair.name, "-w", "/dev/full"], env=pair.env,
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1 and "No space left" in done.stderr


# --- a reader that is slow ---

def test_a_stuck_reader_blocks_nobody(pair, tmp_path):
    """It takes nothing for a while: packets are dropped from the capture, the
    fabric goes on, and what it reads at last is a file that says so."""
    first = subprocess.Popen([SOFTIB, "capture", "--fabric", "t", "-b", "1"], env=pair.env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pair.running.append(first)
    assert os.read(first.stdout.fileno(), 1) == b"\n"
    pair.pair("ib_send_bw", "-n", "500", "-s", "65536")
    first.send_signal(signal.SIGINT)
    pcap = tmp_path / "slow.pcapng"
    with open(pcap, "wb") as out:
        out.write(b"\n")
        shutil.copyfileobj(first.stdout, out)
    assert first.wait(TIMEOUT) == 0
    dropped = int(re.search(rb"(\d+) dropped", first.stderr.read()).group(1))
    assert dropped > 1000
    assert 50 < len(dissect(pcap)) < 500 * 17 * 4
    info = capinfos(pcap)
    assert "Number of packets" in info
    comments = [body for kind, body in blocks(pcap) if kind == 5]
    assert comments and all(b"%d packets of all ports were dropped" % dropped in c
                            for c in comments)


# --- what it changes: nothing but speed ---

def unseen(fabric):
    """Does traffic from n2 to n1 pass softibd by? Its rings move no packet then,
    and softibd has next to nothing to do."""
    pid = fabric.json("status")["pid"]
    worked_ns = lambda: int(open(f"/proc/{pid}/schedstat").read().split()[0])
    before = worked_ns()
    fabric.pair("ib_send_bw", "-n", "20000", "-s", "4096")
    return worked_ns() - before


def test_lanes_go_and_come_back(pair):
    """A flow through a watched port is seen whole; others, and this one later,
    keep their lanes."""
    free = unseen(pair)
    capture = Capture(pair, "n1:1", "-s", "32")
    watched = unseen(pair)
    capture.end()
    # a requester that gets no acknowledgement in time, on a busy machine, sends a PSN again
    psns = [f["infiniband.bth.psn"] for f in dissect(capture.file) if f["infiniband.bth.opcode"] == "4"]
    assert len(set(psns)) == 20000
    capture = Capture(pair, "s1:1", "-F", "sent and received")
    capture.end()
    again = unseen(pair)
    assert watched > 3 * max(free, again), (free, watched, again)


def test_counters_are_the_same_with_and_without(quiet):
    def counted():
        rows = lambda: {(r["node"], r["port"]): (r["xmit_packets"], r["xmit_bytes"])
                        for r in quiet.json("counters")["counters"]}
        before = rows()
        quiet.pair("ib_write_bw", "-c", "UC", "-n", "300", "-s", "20000")
        after = rows()
        return after["n2", 1][0] - before["n2", 1][0], after["n2", 1][1] - before["n2", 1][1]

    without = counted()
    capture = Capture(quiet)
    assert counted() == without
    capture.end()


# --- beside faults ---

@pytest.mark.parametrize("action, more, wrong", [
    (("drop",), -1, []), (("duplicate",), 0, []),
    (("corrupt", "offset=100", "mask=1", "crc=bad"), 0, ["icrc", "vcrc"]),
    (("corrupt", "offset=100", "mask=1", "crc=vcrc"), 0, ["icrc"])], ids=["drop", "duplicate", "both CRCs", "VCRC made anew"])
def test_what_a_fault_does_on_a_cable_is_seen(pair, action, more, wrong):
    """One end shows what it sent, the other what came."""
    capture = Capture(pair, "-F", "class sm and method 1")
    pair.softib("fault", "add", "link", "n2:1", *action, "class=sm", "method=get", "count=1")
    pair.run("n2", "smpquery", "nodeinfo", "1", check=False)  # may ask again, or give up
    pair.softib("fault", "clear", "all")
    capture.end()
    seen = list(packets(capture.file))
    sent = [p for port, out, p in seen if (port, out) == ("n2:1", True)]
    received = [p for port, out, p in seen if (port, out) == ("s1:2", False)]
    assert sent and len(received) == len(sent) + more
    assert (max(Counter(sent).values()) == 2) == (action[0] == "duplicate")
    bad = set()
    for packet in received:
        if packet[-6:-2] != icrc(packet):
            bad.add("icrc")
        if packet[-2:] != vcrc(packet[:-2]):
            bad.add("vcrc")
    assert sorted(bad) == wrong


# --- filters and limits ---

FILTERS = [
    ("sent", "frame.packet_flags_direction == 2"),
    ("received and node n1", 'frame.packet_flags_direction == 1 && frame.interface_name == "n1:1"'),
    ("node s1 and port 2", 'frame.interface_name == "s1:2"'),
    ("mad", "infiniband.mad"),
    ("smp", "infiniband.mad.mgmtclass == 1 || infiniband.mad.mgmtclass == 0x81"),
    ("class perf and method 0x81", "infiniband.mad.mgmtclass == 4 && infiniband.mad.method == 0x81"),
    ("attr 0x11", "infiniband.mad.attributeid == 0x11"),
    ("transport rc", "infiniband.bth.opcode < 0x20"),
    ("opcode 2-4", "infiniband.bth.opcode >= 2 && infiniband.bth.opcode <= 4"),
    ("ack", "infiniband.bth.opcode == 17"),
    ("dqpn 1", "infiniband.bth.destqp == 1"),
    ("sqpn 1", "infiniband.deth.srcqp == 1"),
    ("qpn 1", "infiniband.deth.srcqp == 1 || infiniband.bth.destqp == 1"),
    ("slid 1", "infiniband.lrh.slid == 1"),
    ("lid 1-2 not smp", "((infiniband.lrh.slid >= 1 && infiniband.lrh.slid <= 2) || "
     "(infiniband.lrh.dlid >= 1 && infiniband.lrh.dlid <= 2)) && "
     "!(infiniband.mad.mgmtclass == 1 || infiniband.mad.mgmtclass == 0x81)"),
    ("vl 15", "infiniband.lrh.vl == 15"),
]


@pytest.fixture
def unswept():
    """A manager that answers, but sends nothing by itself once the subnet is up:
    captures that do not end together hold the same packets."""
    with Fabric("pair", sm="none") as fabric:
        manager = fabric.start("n1", "softib-sm", "--sweep", "0")
        assert "SUBNET UP\n" in manager.stdout
        yield fabric


def test_filters_mean_what_tsharks_own_do(unswept):
    whole = Capture(unswept)
    filtered = [(Capture(unswept, "-F", ours), theirs) for ours, theirs in FILTERS]
    all_capture = f"frame.time_epoch >= {time.time()}"  # the manager's last MADs may come before
    unswept.pair("ib_send_bw", "-n", "30", "-s", "10000")
    unswept.run("n2", "smpquery", "nodeinfo", "1")
    unswept.run("n2", "perfquery", "1", "1")
    unswept.run("n2", "saquery")
    for capture, _ in filtered:
        capture.end()
    whole.end()
    for capture, theirs in filtered:
        expected = dissect(whole.file, "-Y", f"({theirs}) && {all_capture}")
        shown = dissect(capture.file, "-Y", all_capture)
        key = lambda f: (f["frame.interface_name"], f["frame.packet_flags_direction"],
                         f["frame.len"], f["infiniband.bth.opcode"])
        assert expected and [*map(key, shown)] == [*map(key, expected)], theirs


def test_snap_length(pair):
    capture = Capture(pair, "-s", "60")
    pair.pair("ib_send_bw", "-n", "10", "-s", "4096")
    capture.end()
    frames = dissect(capture.file)
    assert {f["frame.cap_len"] for f in frames if int(f["frame.len"]) > 60} == {"60"}  # ERF not counted
    assert any(int(f["frame.len"]) == 4096 + 8 + 12 + 4 + 2 for f in frames)
    assert not any(f["_ws.malformed"] for f in frames)


@pytest.mark.parametrize("args, says", [
    (["n9"], 'no node "n9"'),
    (["n1:2"], "n1 has ports 1 to 1"),
    (["n1", "n2"], "one node or port only"),
    (["-F", "foo 3"], 'no term "foo"; expected one of lid'),
    (["-F", "sent and"], "ends too early"),
    (["-s", "0"], "--snap takes a number"),
    (["-c", "x"], "--count takes a number"),
    (["-b", "4096"], "--buffer takes a number from 1 to 1024"),
    (["-w", "/nonexistent/x"], "cannot write /nonexistent/x"),
])
def test_bad_arguments(pair, args, says):
    done = subprocess.run([SOFTIB, "capture", "--fabric", "t", *args], env=pair.env,
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode not in (0, -signal.SIGSEGV) and says in done.stderr


def test_not_to_a_terminal(pair):
    leader, follower = os.openpty()
    done = subprocess.run([SOFTIB, "capture", "--fabric", "t"], env=pair.env, stdout=follower,
                          stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
    os.close(follower)
    os.close(leader)
    assert done.returncode == 1 and "tshark -r -" in done.stderr


# --- softib mad snoop ---

class Snoop:
    def __init__(self, fabric, *args):
        self.process = subprocess.Popen([SOFTIB, "mad", "snoop", "--fabric", "t", *args],
                                        env=fabric.env, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        fabric.running.append(self.process)
        assert "capturing MADs" in self.process.stderr.readline()

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=TIMEOUT)
        assert self.process.returncode == 0
        return out


def test_snoop_shows_the_mads_that_tshark_sees(unswept):
    capture = Capture(unswept, "-F", "mad and sent")
    snoop = Snoop(unswept, "--fields", "-F", "sent")
    for argv in (["smpquery", "nodeinfo", "2"], ["smpquery", "nodedesc", "-D", "0,1"],
                 ["perfquery", "2", "1"], ["saquery", "-p"], ["saquery", "CPI"]):
        unswept.run("n2", *argv)
    shown = snoop.end()
    capture.end()
    # the manager's SMPs come when they like
    seen = tshark("-r", capture.file, "-Y", "infiniband.mad.mgmtclass in {3, 4}", "-T", "fields", "-E",
                  "separator= ", "-e", "frame.interface_name", "-e", "infiniband.mad.transactionid")
    assert seen and re.findall(r"^[\d:.]+ (\S+) sent .* (?:SubnAdm|Perf).* tid (0x\w+)", shown, re.M) == \
        [(port, hex(int(tid, 16))) for port, tid in map(str.split, seen.splitlines())]
    for said in ("SubnLIDGetResp(NodeInfo)", "SubnDirectGet(NodeDescription)", "path 0,1",
                 "PerfGetResp(PortCounters)", "SubnAdmGetTableResp(PathRecord)",
                 "SubnAdmGet(ClassPortInfo)", "RMPP DATA segment 1 length"):
        assert said in shown, (said, shown)
    assert re.search(r"^    text +s1$", shown, re.M) and re.search(r"^    nr_ports +\d", shown, re.M)


def test_snoop_says_a_status_in_words(unswept):
    snoop = Snoop(unswept, "-c", "2", "-F", "attr 0x15", "n2")
    unswept.run("n2", "smpquery", "portinfo", "2", "77", check=False)
    out, _ = snoop.process.communicate(timeout=TIMEOUT)
    assert snoop.process.returncode == 0 and out.count("\n") == 2, out
    assert "GetResp(PortInfo)" in out and "(wrong value in attribute or modifier)" in out, out


@pytest.mark.parametrize("args, says", [
    ([], "snoop"), (["look"], "snoop"), (["snoop", "n1", "n2"], "one node"),
    (["snoop", "-c", "0"], "from 1 to"), (["snoop", "-F", "nonsense"], "nonsense"),
    (["snoop", "-F", "x" * 2000], "too long"), (["snoop", "n9"], "n9")])
def test_snoop_refuses(pair, args, says):
    done = subprocess.run([SOFTIB, "mad", *args, *(["--fabric", "t"] if args else [])], env=pair.env,
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode and says in done.stderr, done.stderr
