# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The wire layer before judges that no one here wrote: tshark reads every
packet and MAD that it can encode; and it reads, checks and writes again every
RoCEv2 packet that the Linux kernel sent in the captures of tests/data."""
import gzip
import ipaddress
import json
import os
import re
import struct
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from interop.crc import icrc
from interop.fabric import DATA, OUTSIDE

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("SOFTIB_BUILD", TOP / "build")).resolve()
CAPTURES = DATA / "captures"
HELPERS = BUILD / "tests/unit/wire"

# --- what we write, read by tshark ---


def pairs(items):
    """JSON objects as lists: tshark repeats keys."""
    return list(items)


def flatten(layers, into):
    for key, value in layers:
        values = value if isinstance(value, list) and value and \
            not isinstance(value[0], tuple) else [value]
        for one in values:
            if isinstance(one, list):
                flatten(one, into)
            else:
                into[key].append(one)
    return into


def frames(pcap):
    """The records of a pcap file, gzipped or not, whatever their link type."""
    data = pcap.read_bytes()
    if pcap.suffix == ".gz":
        data = gzip.decompress(data)
    at = 24
    while at < len(data):
        size, = struct.unpack_from("<I", data, at + 8)
        yield data[at + 16:at + 16 + size]
        at += 16 + size


@pytest.fixture(scope="module")
def emitted(tmp_path_factory):
    """[(what was written, what tshark read, the bytes)] of every packet."""
    pcap = tmp_path_factory.mktemp("wire") / "all.pcap"
    out = subprocess.run([HELPERS / "emit_packets", pcap], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    wrote = [json.loads(line) for line in out.splitlines()]
    out = subprocess.run(["tshark", "-r", pcap, "-T", "json"], check=True, text=True,
                         env=OUTSIDE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    read = []
    for packet in json.loads(out, object_pairs_hook=pairs):
        layers = dict(dict(packet)["_source"])["layers"]
        read.append(flatten(layers, defaultdict(list)))
    data = [frame[16:] for frame in frames(pcap)]
    assert len(wrote) == len(read) == len(data) > 400
    return list(zip(wrote, read, data))


def number(text):
    """tshark shows numbers as decimal, 0x..., booleans, or bytes aa:bb."""
    if re.fullmatch(r"[0-9a-f]{2}(:[0-9a-f]{2})+", text):
        return int(text.replace(":", ""), 16)
    return int(text, 0)


def is_rd(wrote):
    """tshark 4.0 reads the opcodes of RD as those of Mellanox' DC transport,
    which has other headers; so it judges RD only up to the BTH."""
    return wrote["infiniband.bth.opcode"] & 0xe0 == 0x40


def is_unknown(wrote):
    """tshark 4.0 stops behind the BTH of XRC, CNP, FLUSH and ATOMIC_WRITE (on RC 0x1c, 0x1d)."""
    opcode = wrote["infiniband.bth.opcode"]
    return opcode & 0xe0 in (0x80, 0xa0) or opcode in (0x1c, 0x1d)


def test_every_opcode_is_there(emitted):
    seen = Counter(w["infiniband.bth.opcode"] for w, _, _ in emitted if w["kind"] == "packet")
    #            RC and XRC    UC   RD   UD  CNP
    assert len(seen) == 2 * 25 + 12 + 22 + 2 + 1
    assert set(seen.values()) == {4}


def test_tshark_finds_nothing_malformed(emitted):
    for wrote, read, _ in emitted:
        if not is_rd(wrote):
            odd = [key for key in read if key.startswith(("_ws.malformed", "_ws.expert"))]
            assert not odd, (wrote["name"], odd, read["_ws.expert.message"])


def test_tshark_reads_the_headers_we_meant(emitted):
    compared = 0
    for wrote, read, _ in emitted:
        for key, value in wrote.items():
            layer = key.split(".")[1] if key.startswith("infiniband.") else None
            if not layer or (layer not in ("lrh", "grh", "bth") and
                             (is_rd(wrote) or is_unknown(wrote))):
                continue
            assert key in read, (wrote["name"], key)
            if layer == "grh" and key.endswith("gid"):
                assert ipaddress.ip_address(read[key][0]).packed.hex() == value
            else:
                assert number(read[key][0]) == value, (wrote["name"], key)
            compared += 1
    assert compared > 6000


def test_crcs(emitted):
    """ICRC by zlib over what 7.8.1 leaves; tshark finds both CRCs in place."""
    for wrote, read, data in emitted:
        assert data[-6:-2] == icrc(data), wrote["name"]
        if wrote["kind"] == "packet" and not is_rd(wrote) and not is_unknown(wrote):
            assert "infiniband.invariant.crc" in read, wrote["name"]
            assert number(read["infiniband.invariant.crc"][0]) == \
                int.from_bytes(data[-6:-2], "big"), wrote["name"]
            assert number(read["infiniband.variant.crc"][0]) == \
                int.from_bytes(data[-2:], "big"), wrote["name"]


# Attribute: tshark's group of fields, and its names where they are not ours
# without underscores. None: tshark has no such field, or prints a text.
PORT_INFO = {
    "gid_prefix": "guid", "sm_lid": "mastersmlid", "cap_mask": "capabilitymask",
    "mkey_lease_period_s": "m_keyleaseperiod", "local_port": "localportnum",
    "state": "portstate", "phys_state": "portphysicalstate", "sm_sl": "mastersmsl",
    "vl_arb_high_cap": "vlarbitrationhighcap", "vl_arb_low_cap": "vlarbitrationlowcap",
    "hoq_life_enc": "hoqlife", "subnet_timeout_enc": "subnettimeout",
    "resp_time_enc": "resptimevalue", "overrun_errors": "overrunerrors",
    "local_phy_errors": "localphyerrors", "mkey": "m_key", "guid_cap": "guidcap",
    "mkey_protect_bits": "m_keyprotectbits", "mkey_violations": "m_keyviolations",
    "pkey_violations": "p_keyviolations", "qkey_violations": "q_keyviolations"}
NODE_INFO = {"nr_ports": "numports", "system_guid": "systemimageguid",
             "local_port": "localportnum"}
SWITCH_INFO = {
    "lft_cap": "linearfdbcap", "rft_cap": "randomfdbcap", "mft_cap": "multicastfdbcap",
    "lft_top": "linearfdbtop", "default_mcast_primary_port": "defaultmulticastprimaryport",
    "default_mcast_not_primary_port": "defaultmulticastnotprimaryport",
    "life_time_enc": "lifetimevalue", "optimized_sl_to_vl": "optimizedsltovlmappingprogramming",
    "enhanced_port0": "enhancedportzero"}
SM_INFO = {"sm_key": "sm_key", "state": "smstate"}
NOTICE = {"producer": "producertypevendorid", "trap_number": "trapnumberdeviceid",
          "toggle": "noticetoggle", "count": "noticecount", "details": "datadetails"}
INFORM_INFO = {"trap_number": "trapnumberdeviceid", "resp_time_enc": "resptimevalue",
               "producer": "producertypevendorid"}
CLASS_PORT_INFO = {
    "cap_mask": "capabilitymask", "cap_mask2": "capabilitymask2",
    "resp_time_enc": "resptimevalue", "redirect_tclass": "redirecttc",
    "redirect_flow_label": "redirectfl", "redirect_qpn": "redirectqp",
    "trap_tclass": "traptc", "trap_flow_label": "trapfl", "trap_qpn": "trapqp"}
PATH = {"life_selector": "packetlifetimeselector", "life_enc": "packetlifetime",
        "pkey": "p_key", "qkey": "q_key"}
SERVICE = {"id": "serviceid", "gid.raw": "servicegid", "pkey": "servicep_key",
           "lease_s": "servicelease", "key": "servicekey"}
COUNTERS = {
    "symbol_errors": "symbolerrorcounter", "link_error_recovery": "linkerrorrecoverycounter",
    "link_downed": "linkdownedcounter", "rcv_errors": "portrcverrors",
    "rcv_remote_physical_errors": "portrcvremotephysicalerrors",
    "rcv_switch_relay_errors": "portrcvswitchrelayerrors", "xmit_discards": "portxmitdiscards",
    "xmit_constraint_errors": "portxmitconstrainterrors",
    "rcv_constraint_errors": "portrcvconstrainterrors", "xmit_data_dwords": "portxmitdata",
    "rcv_data_dwords": "portrcvdata", "xmit_pkts": "portxmitpkts", "rcv_pkts": "portrcvpkts"}
COUNTERS_EXT = {
    "xmit_data_dwords": "portxmitdata", "rcv_data_dwords": "portrcvdata",
    "xmit_pkts": "portxmitpkts", "rcv_pkts": "portrcvpkts",
    "unicast_xmit_pkts": "portunicastxmitpkts", "unicast_rcv_pkts": "portunicastrcvpkts",
    "multicast_xmit_pkts": "portmulticastxmitpkts",
    "multicast_rcv_pkts": "portmulticastrcvpkts"}
CM = {
    "responder_resources": "responderres", "initiator_depth": "initdepth",
    "remote_cm_response_timeout_enc": "remoteresptout", "transport_service": "transpsvctype",
    "end_to_end_flow_control": "e2eflowctrl", "starting_psn": "startpsn",
    "local_cm_response_timeout_enc": "localresptout", "retry_count": "retrcount",
    "path_mtu": "pppmtu", "rdc_exists": "rdcexist", "rnr_retry_count": "rnrretrcount",
    "max_cm_retries": "maxcmretr", "extended_transport": "ext_transport",
    "target_ack_delay_enc": "tgtackdelay", "failover_accepted": "failoveracc",
    "message": "msgrej", "info_bytes": "rejinfolen", "info": "ari", "private_data": "private"}
REP = dict(CM, responder_resources="respres")
TSHARK = {
    "NodeInfo": ("nodeinfo", NODE_INFO), "SwitchInfo": ("switchinfo", SWITCH_INFO),
    "GUIDInfo": ("switchinfo", {}), "PortInfo": ("portinfo", PORT_INFO),
    "P_KeyTable": ("p_keytable", {"pkey": "p_keytableblock"}),
    "VLArbitrationTable": ("vlarbitrationtable", {}),
    "LinearForwardingTable": ("linearforwardingtable", {}),
    "RandomForwardingTable": ("randomforwardingtable", {}),
    "MulticastForwardingTable": ("multicastforwardingtable", {}),
    "SMInfo": ("sminfo", SM_INFO),
    "VendorDiag": ("vendordiag", {"data": "diagdata"}), "LedInfo": ("ledinfo", {}),
    "Notice": ("notice", NOTICE), "ClassPortInfo": ("classportinfo", CLASS_PORT_INFO),
    "InformInfo": ("informinfo", INFORM_INFO), "NodeRecord": ("nodeinfo", NODE_INFO),
    "PortInfoRecord": ("portinfo", PORT_INFO),
    "SwitchInfoRecord": ("switchinfo", SWITCH_INFO), "GUIDInfoRecord": ("switchinfo", {}),
    "SMInfoRecord": ("sminfo", SM_INFO), "LinkRecord": ("linkrecord", {}),
    "LinearForwardingTableRecord": ("linearforwardingtable", {}),
    "RandomForwardingTableRecord": ("randomforwardingtable", {}),
    "MulticastForwardingTableRecord": ("multicastforwardingtable", {}),
    "P_KeyTableRecord": ("p_keytable", {"pkey": "p_keytableblock"}),
    "VLArbitrationTableRecord": ("vlarbitrationtable", {}),
    "ServiceRecord": ("linkrecord", SERVICE), "PathRecord": ("pathrecord", PATH),
    "MCMemberRecord": ("mcmemberrecord", PATH), "TraceRecord": ("tracerecord", {}),
    "MultiPathRecord": ("multipathrecord", dict(PATH, independence="independenceselector")),
    "InformInfoRecord": ("informinfo", INFORM_INFO),
    "PortCounters": ("portcounters", COUNTERS),
    "PortCountersExtended": ("portcounters_ext", COUNTERS_EXT),
    "ConnectRequest": ("cm.req", CM), "ConnectReply": ("cm.rep", REP),
    "ConnectReject": ("cm.rej", CM), "ReadyToUse": ("cm.rtu", CM),
    "DisconnectRequest": ("cm.dreq", CM), "DisconnectReply": ("cm.drsp", CM)}


def members(struct_items):
    """{member: [value of each element]}; of two with one name (the LID of a
    PortInfoRecord and of its PortInfo) the later, in the structure inside."""
    out = defaultdict(list)
    for name, element, value in struct_items:
        if element == 0:
            out[name] = []
        out[name].append(value)
    return out


def same(values, shown):
    """Do our elements agree with what tshark shows of them?"""
    if len(shown) > 1 or len(values) == 1:  # of an MFT it shows the first half only
        return [number(s) for s in shown] == values[:len(shown)]
    text = shown[0]  # bytes in one piece: a GID, aa:bb:cc, or a number
    try:
        got = ipaddress.ip_address(text).packed
    except ValueError:
        got = bytes.fromhex(text.replace(":", "").removeprefix("0x"))
    width = len(got) // len(values)
    if any(value >> 8 * width for value in values):
        return False
    return got == b"".join(value.to_bytes(width, "big") for value in values)


def compare_attribute(wrote, read, group, aliases):
    """Return: names of the members that tshark confirmed."""
    good = []
    for member, values in members(wrote["attr"]).items():
        name = aliases.get(member, member.removesuffix(".raw").replace("_", ""))
        shown = read.get(f"infiniband.{group}.{name}")
        if shown:
            assert same(values, shown), (wrote["class"], wrote["name"], member, values, shown)
            good.append(member)
    return good


RECORD_HEADS = {"lid": ["sa.lid", "sa.endportlid"], "in_port": ["sa.inputportnum"],
                "out_port": ["sa.outputportnum"], "port": ["sa.portnum"],
                "position": ["sa.position"],
                "block": ["sa.blocknum_eightbit", "sa.blocknum_ninebit",
                          "sa.blocknum_sixteenbit"]}


def compare_record_head(wrote, read):
    """What stands in a record before the structure. Return: members confirmed."""
    good = []
    first = {name: value for name, _, value in reversed(wrote["attr"])}
    for member, names in RECORD_HEADS.items():
        for name in names:
            if member in first and (shown := read.get("infiniband." + name)):
                assert number(shown[0]) == first[member], (wrote["name"], member)
                good.append(member)
    return good


# Not the flow label and the packet rate: tshark 4.0 takes them from a byte too
# early, also from what the kernel sends.
CM_PATH = {"tclass": "tfcclass", "hop_limit": "hoplim",
           "local_ack_timeout_enc": "localacktout", "local_lid": "locallid",
           "remote_lid": "remotelid", "local_gid.raw": "localgid",
           "remote_gid.raw": "remotegid", "sl": "sl", "subnet_local": "subnetlocal"}


def test_tshark_reads_the_paths_of_a_req(emitted):
    wrote, read, _ = next(e for e in emitted if e[0]["name"] == "ConnectRequest")
    half = [i for i, m in enumerate(wrote["attr"]) if m[0] == "local_lid"][1]
    for prefix, attr in ("prim_", wrote["attr"][:half]), ("alt_", wrote["attr"][half:]):
        path = members(attr)
        for ours, theirs in CM_PATH.items():
            assert same(path[ours], read[f"infiniband.cm.req.{prefix}{theirs}"]), ours


def test_tshark_reads_the_attributes_we_meant(emitted):
    judged = Counter()
    for wrote, read, _ in emitted:
        if wrote["kind"] == "mad" and wrote["name"] in TSHARK:
            if wrote["class"] in ("SubnLID", "SubnAdm", "Perf", "ComMgt"):
                good = compare_attribute(wrote, read, *TSHARK[wrote["name"]])
                if wrote["class"] == "SubnAdm" and "Record" in wrote["name"]:
                    good += compare_record_head(wrote, read)
                judged[wrote["class"], wrote["name"]] += len(good)
    nothing = [key for key, n in judged.items() if n == 0]
    assert nothing == [("ComMgt", "ClassPortInfo")]  # tshark shows bytes there
    assert len(judged) == 43 and sum(judged.values()) > 330, judged


def test_tshark_reads_the_class_headers_we_meant(emitted):
    ours_theirs = {
        "SubnLID": [("mkey", "smplid.mkey")],
        "SubnDirect": [
            # tshark counts D as part of the status
            ("status with D", "smpdirected.smpstatus"), ("hop_pointer", "smpdirected.hoppointer"),
            ("hop_count", "smpdirected.hopcount"), ("mkey", "smplid.mkey"),
            ("dr_slid", "smpdirected.drslid"), ("dr_dlid", "smpdirected.drdlid")],
        "SubnAdm": [("sm_key", "sa.smkey"), ("attr_offset", "sa.attributeoffset"),
                    ("comp_mask", "sa.componentmask")]}
    common = [("base_version", "baseversion"), ("mgmt_class", "mgmtclass"),
              ("class_version", "classversion"), ("method", "method"),
              ("tid", "transactionid"), ("attr_id", "attributeid"),
              ("attr_mod", "attributemodifier")]
    compared = 0
    for wrote, read, _ in emitted:
        if wrote["kind"] != "mad":
            continue
        header = {n.removeprefix("mad."): v for n, _, v in wrote["header"]}
        header["status with D"] = header.get("direction", 0) << 15 | header["status"]
        checks = [(a, "mad." + b) for a, b in common] + ours_theirs.get(wrote["class"], [])
        for ours, theirs in checks:
            shown = read["infiniband." + theirs]
            assert shown and number(shown[0]) == header[ours], (wrote["class"], ours, shown)
            compared += 1
    assert compared > 900


# --- what the Linux kernel wrote, read by us ---

def roce_packets(pcap):
    """From the IP header to the ICRC, of each UDP packet for port 4791."""
    for frame in frames(pcap):
        kind, = struct.unpack_from(">H", frame, 12)
        if kind == 0x0800:
            size, = struct.unpack_from(">H", frame, 16)
            udp, protocol = 34, frame[23]
        elif kind == 0x86dd:
            size, = struct.unpack_from(">H", frame, 18)
            size, udp, protocol = size + 40, 54, frame[20]
        else:
            continue
        if protocol == 17 and struct.unpack_from(">H", frame, udp + 2)[0] == 4791:
            yield frame[14:14 + size]


def index():
    """{capture: (packets, {opcode})} as who took the captures counted them."""
    out = {}
    for line in (CAPTURES / "INDEX.txt").read_text().splitlines():
        name, packets, *opcodes = line.split()
        out[name] = (int(packets), {one.split(":")[0] for one in opcodes})
    return out


INDEX = index()


@pytest.mark.parametrize("name", INDEX)
def test_kernel_capture(name):
    packets = list(roce_packets(CAPTURES / f"{name}.pcap.gz"))
    data = b"".join(struct.pack("<I", len(p)) + p for p in packets)
    run = subprocess.run([HELPERS / "check_roce"], input=data, stdout=subprocess.PIPE,
                         check=False)
    lines = run.stdout.decode().splitlines()
    bad = [f"packet {i}: {line}" for i, line in enumerate(lines) if not line.endswith(" ok")]
    assert not bad and run.returncode == 0
    counted, opcodes = INDEX[name]
    assert len(lines) == len(packets) == counted
    assert {line[:2] for line in lines} == opcodes
