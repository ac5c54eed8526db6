# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The table of `make bench`: every row, its sources, and the figure to reach.

A row's limit is the best of its bare tests; its ratio is softib by the limit,
and to its best peer likewise. For times less is better, else more.
"""
from dataclasses import dataclass, field

from bench.cable import OverCable
from bench.connect import Connect
from bench.counts import TABLE as INSTRUCTIONS
from bench.daemon import BesideFlaps, PacketTime, PortMemory
from bench.ipoib import Idle, Ip, MODES, fabric_of, relay, veth
from bench.paths import ModulePaths, Paths
from bench.sockets import BLOCKING_TCP, RSOCKETS, SDP, TCP, Rstream
from bench.sources import (NO_SPIN, ONE_CORE, Bare, Instructions, Libfabric, Mpi, MpiOverSoftib,
                           Perftest, Ucx, UcxOverSoftib, Verbs)
from bench.storage import ISCSI, SRP, Disk

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
TWO_COPY = "posix,self"        # UCX without the kernel's cross-memory copy
BY_KERNEL = "posix,cma,self"   # with it: the default


@dataclass
class Row:
    name: str
    family: str  # rows of one family are measured by turns
    unit: str
    softib: object
    limit: tuple = ()
    peers: dict = field(default_factory=dict)
    reach: tuple = ()  # ("limit", times) or ("value", figure)

    @property
    def less_is_better(self):
        return self.unit in ("ns", "us", "bytes", "instr", "/s")

    @property
    def sources(self):
        return [self.softib, *self.limit, *self.peers.values()]


def size_text(n):
    for unit, text in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if n >= unit:
            return f"{n // unit} {text}"
    return f"{n} B"


def both_ways(name, family, unit, perftest, verbs, **rest):
    """One row by perftest and one by a plain verbs program."""
    return [Row(f"{name}, perftest", family, unit, perftest, **rest),
            Row(f"{name}, plain verbs", family, unit, verbs, **rest)]


# --- latency ---

def send_peers(size):
    peers = {"UCX tag": Ucx("tag_lat", size, "lat"), "Open MPI": Mpi(f"lat:{size}"),
             "libfabric": Libfabric(size), "TCP": Bare(f"tcp_spin_{size}")}
    if 8 <= size <= 64:  # its header is 8 bytes of the message
        peers["UCT am"] = Ucx("am_lat", size, "lat")
    return peers


def put_peers(size):
    peers = {"UCX put": Ucx("ucp_put_lat", size, "lat")}
    return peers


def get_peers(size):
    return {"UCX get": Ucx("ucp_get", size, "lat")}


def latency_rows():
    rows = []
    for size in (2, 64, 4096):
        text = size_text(size)
        rows += both_ways(
            f"send latency {text}", "send latency", "ns",
            Perftest(f"ib_send_lat -s {size} -n 20000", "lat"), Verbs(f"send_lat:{size}"),
            limit=(Bare(f"ring_{size}"),), peers=send_peers(size), reach=("limit", 2.1))
    for name, test in (("by XRC", "xrc_lat"), ("into a tagged buffer", "tagged_lat")):
        for size in (64, 4096):
            rows.append(Row(f"send latency {size_text(size)} {name}", "send latency", "ns",
                            Verbs(f"{test}:{size}"), (Verbs(f"send_lat:{size}"),),
                            reach=("limit", 1.3)))
    for size in (2, 64, 4096):
        text = size_text(size)
        rows += both_ways(
            f"write latency {text}", "write latency", "ns",
            Perftest(f"ib_write_lat -s {size} -n 5000", "lat"), Verbs(f"write_lat:{size}"),
            limit=(Bare(f"store_{size}"),), peers=put_peers(size), reach=("limit", 1.5))
    for size in (64, 4096):
        rows.append(Row(f"write latency {size_text(size)} by a memory window", "write latency", "ns",
                        Verbs(f"write_lat_mw:{size}"), (Verbs(f"write_lat:{size}"),),
                        reach=("limit", 1.1)))
    rows.append(Row("write latency 8 B to a stack", "write latency", "ns",
                    Verbs("write_lat_stack:8"), (Bare("eventfd_spin"),),
                    {"process_vm": Bare("process_vm_8")}, reach=("limit", 1.3)))
    for size in (2, 64, 4096):
        text = size_text(size)
        rows += both_ways(
            f"read latency {text}", "read latency", "ns",
            Perftest(f"ib_read_lat -s {size} -n 5000", "lat"), Verbs(f"read_lat:{size}"),
            limit=(Bare(f"load_{size}"),), peers=get_peers(size))
    for kind, name, test, ucx in (("FETCH_AND_ADD", "fetch and add", "fadd_lat", "ucp_fadd"),
                                  ("CMP_AND_SWAP", "compare and swap", "cswap_lat", "ucp_cswap")):
        rows += both_ways(
            f"{name} latency", "atomic latency", "ns",
            Perftest(f"ib_atomic_lat -A {kind} -n 5000", "lat"), Verbs(f"{test}:8"),
            limit=(Bare("xadd"),), peers={"UCX": Ucx(ucx, 8, "lat")}, reach=("limit", 2.0))
    return rows


# --- bandwidth ---

def stream_peers(size):
    return {"UCX tag": Ucx("tag_bw", size, "bw", BY_KERNEL),
            "UCX tag two-copy": Ucx("tag_bw", size, "bw", TWO_COPY),
            "Open MPI": Mpi(f"stream:{size}"),
            "Open MPI two-copy": Mpi(f"stream:{size}", cma=False),
            "TCP": Bare(f"tcp_{size}")}


def two_copies(size):
    hows = ("16", "64", "wide_64", "wide_loads_64", "stream_16", "stream_64", "stream_wide_64")
    return tuple(Bare(f"two_copy_{how}_{size}") for how in hows)


def one_copy(size):
    return tuple(Bare(f"{how}_{size}") for how in ("memcpy", "movsb", "stream"))


def bandwidth_rows():
    rows = []
    # of perftest, whose first messages find new memory: so many that they do not matter
    count = {64 * KIB: 50000, MIB: 10000, 16 * MIB: 1000}
    for size, n in count.items():
        rows += both_ways(
            f"send bandwidth {size_text(size)}", "send bandwidth", "GB/s",
            Perftest(f"ib_send_bw -s {size} -n {n}", "bw"), Verbs(f"send:{size}"),
            limit=two_copies(size),
            peers=stream_peers(size), reach=("limit", 0.9))
    for verb, ucx in (("write", "ucp_put_bw"), ("read", "ucp_get")):
        for size, n in count.items():
            rows += both_ways(
                f"{verb} bandwidth {size_text(size)}", f"{verb} bandwidth", "GB/s",
                Perftest(f"ib_{verb}_bw -s {size} -n {n}", "bw"), Verbs(f"{verb}:{size}"),
                limit=(*one_copy(size), Bare(f"process_vm_{size}")),
                peers={"UCX": Ucx(ucx, size, "bw")}, reach=("limit", 0.9))
    # the window comes after the first; both have the same limit
    for name, key in (("first read of 1 GiB", f"read:{GIB}/first"),
                      ("read bandwidth 1 GiB", f"read:{GIB}")):
        rows.append(Row(f"{name}, plain verbs", "read bandwidth 1 GiB", "GB/s",
                        Verbs(key), one_copy(GIB), reach=("limit", 0.9)))
    return rows


# --- messages a second ---

STREAM = (Bare("stream_by_1"), Bare("stream_by_16"), Bare("stream_line"))


def rate_rows():
    rows = []
    peers = {"send": {"UCX tag": Ucx("tag_bw", 8, "rate"), "UCT am": Ucx("am_bw", 8, "rate"),
                      "Open MPI": Mpi("stream:8")},
             "write": {"UCX put": Ucx("ucp_put_bw", 8, "rate")}}
    for verb, reach in (("send", 45), ("write", 90)):
        for qps in (1, 16):
            rows += both_ways(
                f"{verb} rate 8 B, {qps} QP{'s' * (qps > 1)}", f"{verb} rate", "M/s",
                Perftest(f"ib_{verb}_bw -s 8 -n 300000 -q {qps}", "rate"),
                Verbs(f"{verb}:8:{qps}"), limit=STREAM, peers=peers[verb],
                reach=("value", reach))
    rows.append(Row("write rate 8 B, 16 threads of a process", "threads", "M/s",
                    Verbs("threads:8:16"), (Verbs("threads:8:1"),), reach=("limit", 0.8)))
    for processes in (2, 8):
        rows.append(Row(f"send rate 8 B, {processes} processes", "processes", "M/s",
                        Verbs("send:8", pairs=processes // 2), STREAM,
                        {"Open MPI": Mpi("stream:8", processes=processes)}))
        rows.append(Row(f"send latency 8 B, {processes} processes", "processes", "ns",
                        Verbs("send_lat:8", pairs=processes // 2), (Bare("ring_8"),),
                        {"Open MPI": Mpi("lat:8", processes=processes)}))
    return rows


# --- the rest ---

def other_rows():
    rows = both_ways("blocking send latency 8 B", "blocking", "ns",
                     Perftest("ib_send_lat -e -s 8 -n 2000", "lat"), Verbs("event_lat:8"),
                     limit=(Bare("eventfd"),), peers={"TCP": Bare("tcp_sleep_8")},
                     reach=("limit", 1.3))
    for test, way, name, reach in (
            ("event_lat:8", ONE_CORE, "", ("limit", 1.3)),
            ("event_lat:8", NO_SPIN, ", no spin", ("limit", 1.3)),
            ("select_lat:8", NO_SPIN, ", no spin, own select()", ())):
        rows.append(Row(f"blocking send latency 8 B, one core{name}", "blocking, one core", "ns",
                        Verbs(test, way), (Bare("eventfd", ONE_CORE),),
                        {"TCP": Bare("tcp_sleep_8", ONE_CORE)}, reach=reach))
    rows += both_ways("UD latency 8 B", "UD", "ns",
                      Perftest("ib_send_lat -c UD -s 8 -n 20000", "lat"), Verbs("ud_lat:8"),
                      limit=(Bare("ring_8"),), reach=("limit", 2.1))
    rows += both_ways("UD rate 8 B", "UD", "M/s",
                      Perftest("ib_send_bw -c UD -s 8 -n 8000 -r 8192", "rate"), Verbs("ud:8"),
                      limit=STREAM)
    for way, name in (("daemon", "through softibd"), ("capture", "captured")):
        rows += [
            Row(f"send latency 8 B, {name}", name, "ns", Verbs("send_lat:8", way),
                (Bare("ring_8"),)),
            Row(f"send rate 8 B, {name}", name, "M/s", Verbs("send:8", way), STREAM),
            Row(f"send bandwidth 64 KiB, {name}", name, "GB/s", Verbs(f"send:{64 * KIB}", way),
                two_copies(64 * KIB))]
    for size in (4 * KIB, MIB, 16 * MIB):
        rows += [Row(f"registration {size_text(size)}", "registration", "us",
                     Verbs(f"register:{size}", "early")),
                 Row(f"moving {size_text(size)} in it", "registration", "us",
                     Verbs(f"register:{size}/move", "early"),
                     (Bare(f"memfd_map_{size}"), Bare(f"memfd_write_{size}")),
                     reach=("limit", 1.2))]
    return rows


def user_rows():
    """What stands on verbs, over softib and, as its peer, by shared memory of its own."""
    return [
        Row("UCX tag latency 8 B, over softib", "over softib", "ns",
            UcxOverSoftib("tag_lat", 8, "lat"), (Bare("ring_8"),),
            {"UCX tag": Ucx("tag_lat", 8, "lat")}),
        Row("UCX tag bandwidth 64 KiB, over softib", "over softib", "GB/s",
            UcxOverSoftib("tag_bw", 64 * KIB, "bw"), two_copies(64 * KIB),
            {"UCX tag": Ucx("tag_bw", 64 * KIB, "bw", BY_KERNEL)}),
        Row("Open MPI latency 8 B, over softib", "over softib", "ns",
            MpiOverSoftib("lat:8"), (Bare("ring_8"),), {"Open MPI": Mpi("lat:8")}),
        Row("Open MPI bandwidth 64 KiB, over softib", "over softib", "GB/s",
            MpiOverSoftib(f"stream:{64 * KIB}"), two_copies(64 * KIB),
            {"Open MPI": Mpi(f"stream:{64 * KIB}")})]


def cost_rows():
    rows = []
    for qps in (1, 100, 10000):
        rows += [Row(f"send latency 8 B, {qps} QPs", "queue pairs", "ns",
                     Verbs(f"many:8:{qps}/latency"), (Bare("ring_8"),)),
                 Row(f"poll of nothing, {qps} QPs", "queue pairs", "ns",
                     Verbs(f"many:8:{qps}/poll"))]
    rows += [Row("creating a QP, of 1,000", "memory", "us", Verbs("create:1000/create")),
             *(Row(f"memory of a QP, of {qps:,}", "memory", "bytes", Verbs(f"create:{qps}/qp_bytes"))
               for qps in (1, 100, 1000, 10000)),
             Row("memory of a process", "memory", "bytes", Verbs("footprint:8/process_bytes")),
             Row("memory of a lane", "memory", "bytes", Verbs("footprint:8/lane_bytes"))]
    return rows


def daemon_rows():
    """softibd pays for what is active; the limit is the same without the idle ones."""
    rows = [Row(f"softibd's time for a packet, {idle:,} idle programs", "softibd", "ns",
                PacketTime(idle), (PacketTime(0),), reach=("limit", 1.1))
            for idle in (100, 1000)]
    rows += [Row(f"softibd's memory for an end port, of {ports:,}", "softibd", "bytes",
                 PortMemory(topology, ports), reach=("value", 12 * KIB))
             for topology, ports in (("fattree:2,22", 968), ("fattree:2,54", 5832))]
    rows.append(Row("send bandwidth 64 KiB beside a flapping link", "softibd", "GB/s",
                    BesideFlaps(f"send:{64 * KIB}", True),
                    (BesideFlaps(f"send:{64 * KIB}", False),), reach=("limit", 0.95)))
    return rows


def cable_rows():
    """A cable to another softibd, beside one softibd that forwards the packets."""
    return [Row("send bandwidth 64 KiB over a cable", "cable", "GB/s", OverCable(f"ib_send_bw -s {64 * KIB} -n 3000", "bw"),
                (Perftest(f"ib_send_bw -s {64 * KIB} -n 3000", "bw", "daemon"),), {"TCP": Bare(f"tcp_{64 * KIB}")}),
            Row("send latency 8 B over a cable", "cable", "ns", OverCable("ib_send_lat -s 8 -n 3000", "lat"),
                (Perftest("ib_send_lat -s 8 -n 3000", "lat", "daemon"),), {"TCP": Bare("tcp_sleep_8")})]


def ip_rows():
    return [Row(f"IPoIB {name}, {mode} mode", "IPoIB", unit, Ip(key, mode, fabric_of),
                (Ip(key, mode, relay),), reach=("limit", times),
                peers={"a veth pair without segmentation": Ip(key, mode, veth)} if key == "tcp" else {})
            for mode in MODES
            for key, name, unit, times in (("tcp", "TCP bandwidth", "GB/s", 0.6),
                                           ("udp", "UDP packets of 64 B", "M/s", 0.6),
                                           ("ping", "ping", "us", 1.5))] + [
        Row("IPoIB memory of an idle ib0", "IPoIB idle", "bytes", Idle("memory"), reach=("value", 64 * KIB)),
        Row("IPoIB wake-ups with 254 idle ib0", "IPoIB idle", "/s", Idle("wakes"), reach=("value", 0)),
        Row("Ethernet TCP bandwidth, MTU 4200", "Ethernet", "GB/s", Ip("tcp", "ethernet", fabric_of),
            (Ip("tcp", "ethernet", relay),), peers={"a veth pair without segmentation": Ip("tcp", "ethernet", veth)})]


def socket_rows():
    return [Row(f"{way} {name}", way, unit, Rstream(key, way), (Rstream(key, tcp),),
                reach=("limit", goal))
            for way, tcp, latency in ((RSOCKETS, TCP, 0.2), (SDP, BLOCKING_TCP, 1))
            for key, name, unit, goal in (("64_lat", "latency 64 B", "us", latency),
                                          ("64k_bw", "bandwidth 64 KiB", "GB/s", 2),
                                          ("1m_bw", "bandwidth 1 MiB", "GB/s", 2))]


def disk_rows():
    return [Row("SRP random reads 4 KiB, depth 32", "SRP", "k/s", Disk(SRP), (Disk(ISCSI),),
                reach=("limit", 1.5))]


def connection_rows():
    return [Row(f"connection set-up, {count:,} at once", "connections", "us", Connect("rdma", count),
                (Connect("tcp", count),), reach=("limit", 2))
            for count in (1, 1000)]


def query_rows():
    return [Row("path queries, 1,000 of one program", "path queries", "k/s", Paths(),
                reach=("value", 100)),
            Row("path queries, 1,000 of one module", "path queries", "k/s", ModulePaths(False),
                reach=("value", 100)),
            Row("path queries, 1,000 of one module, cached", "path queries", "k/s", ModulePaths(True),
                reach=("value", 100))]


def instruction_rows():
    return [Row(f"instructions: {key[6:].replace(':8/', ' 8 B, ').replace('_', ' ')}",
                "instructions", "instr", Instructions(key),
                reach=("value", goal) if goal else ())
            for key, (_, goal) in INSTRUCTIONS.items()]


def all_rows():
    return (latency_rows() + bandwidth_rows() + rate_rows() + other_rows() + user_rows() +
            cost_rows() + daemon_rows() + cable_rows() + ip_rows() + socket_rows() + disk_rows() +
            connection_rows() + query_rows() + instruction_rows())
