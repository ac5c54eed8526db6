# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""infiniband-diags: what each tool says of a fabric that we know.

`pair` is n1 -- s1 -- n2, ports 1 and 2 of the switch; `tree` two levels of
switches of four ports with eight adapters. What is asked of a port that does
not have it must be refused: such requests get ten minutes to wait in, and
fail when the test's own limit passes first (PATIENT).
"""
import re
import socket
import time
from pathlib import Path

import pytest

from interop.fabric import TIMEOUT, Fabric, by_fours, guid, link_local

PATIENT = ["-t", "600000"]
UNANSWERED = "_do_madrpc failed"  # libibmad's word for it; a refusal it passes on
JOIN = Path(__file__).with_name("sa_join.py")
CA1, CA2, SWITCH = ("0x" + guid(node) for node in ("n1", "n2", "s1"))
PORT1, PORT2 = ("0x" + guid(node, port=1) for node in ("n1", "n2"))


def lids_of(fabric):
    return {node["name"]: str(node["lid"]) for node in fabric.json("topo")["nodes"]}


@pytest.fixture(scope="module")
def lids(pair):
    """{name: LID} of the pair: n1, n2, s1."""
    return lids_of(pair)


@pytest.fixture(scope="module")
def tree_lids(tree):
    return lids_of(tree)


def field(out, name):
    """The value in a line "Name:......value" """
    found = re.search(rf"^{name}:\.*(.*)$", out, re.M)
    assert found, f"no {name} in\n{out}"
    return found[1]


def until(ask, holds):
    """Ask again till the answer holds: what a tool began takes effect later."""
    end = time.monotonic() + TIMEOUT
    while not holds(out := ask()):
        assert time.monotonic() < end, out
    return out


def refused(fabric, *argv):
    """A tool that fails, and at once."""
    out = fabric.run("n1", argv[0], *PATIENT, *argv[1:], check=False, timeout=60)
    assert fabric.running[-1].returncode != 0, out
    assert UNANSWERED not in out, out
    return out


# --- the local port ---------------------------------------------------------

def test_ibstat(pair, lids):
    out = pair.run("n1", "ibstat")
    assert "State: Active" in out and "Physical state: LinkUp" in out, out
    assert f"Base lid: {lids['n1']}\n" in out and "Rate: 100\n" in out, out
    assert f"Node GUID: {CA1}" in out, out
    assert pair.run("n2", "ibstat", "-l").split() == ["softib0"]
    assert pair.run("n2", "ibstat", "-p").split() == [PORT2]


def test_ibstatus(pair, lids):
    out = pair.run("n2", "ibstatus")
    assert f"base lid:\t 0x{int(lids['n2']):x}\n" in out, out
    assert "fe80:0000:0000:0000:" + by_fours(PORT2[2:]) in out, out
    assert "4: ACTIVE" in out and "5: LinkUp" in out and "100 Gb/sec (4X EDR)" in out, out


def test_ibaddr(pair, lids):
    mine, other = int(lids["n1"]), int(lids["n2"])
    assert pair.run("n1", "ibaddr").strip() == \
        f"GID {link_local('n1')} LID start 0x{mine:x} end 0x{mine:x}"
    assert f"LID start 0x{other:x} " in pair.run("n1", "ibaddr", "-l", other)
    assert link_local("s1", port=0) in pair.run("n1", "ibaddr", "-g", lids["s1"])
    assert f"LID start 0x{other:x} " in pair.run("n1", "ibaddr", "-G", PORT2)


def test_one_vendor_and_part(pair, lids):
    """The verbs and the SMA speak of the same device."""
    verbs = pair.run("n2", "ibv_devinfo")
    sma = pair.run("n1", "smpquery", "nodeinfo", lids["n2"])
    vendor = int(re.search(r"vendor_id:\s+(\S+)", verbs)[1], 16)
    part = int(re.search(r"vendor_part_id:\s+(\S+)", verbs)[1])
    assert vendor == int(field(sma, "VendorId"), 16)
    assert part == int(field(sma, "DevId"), 16)


# --- the whole fabric -------------------------------------------------------

def test_ibnetdiscover(pair, lids):
    out = pair.run("n1", "ibnetdiscover")
    assert len(re.findall(r"^Ca\s", out, re.M)) == 2, out
    assert len(re.findall(r"^Switch\s", out, re.M)) == 1, out
    assert f'base port 0 lid {lids["s1"]} lmc 0' in out, out
    ports = pair.run("n1", "ibnetdiscover", "-p").splitlines()
    assert len(ports) == 4 and all(" 4x EDR - " in p for p in ports), ports


def shape(text):
    """What cables are where: the lines without comments, LIDs, order."""
    lines = (line.split("#")[0].rstrip() for line in text.splitlines())
    blocks = "\n".join(lines).split("\n\n")
    return sorted(re.sub(r"\s+", " ", b).strip() for b in blocks if b.strip())


def test_ibnetdiscover_loads_again(tree, tmp_path):
    first = tree.run("n1", "ibnetdiscover")
    (tmp_path / "tree.ibnetdiscover").write_text(first)
    with Fabric(tmp_path / "tree.ibnetdiscover") as again:
        assert shape(again.run("n1", "ibnetdiscover")) == shape(first)
    assert len(shape(first)) == 14


def test_ibnetdiscover_cache_and_diff(tree, tmp_path):
    cache = tmp_path / "fabric.cache"
    tree.run("n1", "ibnetdiscover", "--cache", cache)
    loaded = tree.run("n1", "ibnetdiscover", "--load-cache", cache)
    assert shape(loaded) == shape(tree.run("n1", "ibnetdiscover"))
    assert not re.search("^[<>]", tree.run("n1", "ibnetdiscover", "--diff", cache), re.M)
    edited = tmp_path / "edited.cache"
    tree.run("n1", "ibcacheedit", "--caguid", f"{CA2}:0x1234", cache, edited)
    assert '0x0000000000001234 ports 1' in tree.run("n1", "ibnetdiscover", "-H",
                                                    "--load-cache", edited)
    assert re.search("^[<>].*1234", tree.run("n1", "ibnetdiscover", "--diff", edited), re.M)


def test_iblinkinfo(pair, lids):
    out = pair.run("n1", "iblinkinfo")
    assert out.count("4X      25.78125 Gbps Active/  LinkUp") == 4, out
    assert re.search(rf'{lids["s1"]}\s+2\[  \] ==.*==>\s+{lids["n2"]}\s+1\[  \] "n2 softib0"', out)


def test_hosts_switches_routers(pair):
    assert sorted(re.findall(r'^Ca\s*: (\S+) ports 1 "(.*)"', pair.run("n1", "ibhosts"), re.M)) \
        == [(CA1, "n1 softib0"), (CA2, "n2 softib0")]
    assert re.findall(r'^Switch\s*: (\S+) ports 2 "(.*)"', pair.run("n1", "ibswitches"), re.M) \
        == [(SWITCH, "s1")]
    assert pair.run("n1", "ibrouters") == ""
    assert len(pair.run("n1", "ibnodes").splitlines()) == 3


def test_sminfo(pair, lids):
    for node in "n1", "n2":
        out = pair.run(node, "sminfo")
        assert f"sm lid {lids['n1']} sm guid 0x{int(PORT1, 16):x}" in out, out
        assert "state 3 SMINFO_MASTER" in out, out


def test_sminfo_where_no_manager_is(pair, lids):
    for node in "n2", "s1":
        refused(pair, "sminfo", lids[node])


# --- routes -----------------------------------------------------------------

def test_ibroute(pair, lids):
    out = pair.run("n1", "ibroute", lids["s1"])
    for name, port, what in ("n1", 1, "n1 softib0"), ("n2", 2, "n2 softib0"), ("s1", 0, "s1"):
        assert re.search(rf"^0x{int(lids[name]):04x} {port:03d} :.*'{what}'", out, re.M), out
    assert "3 valid lids dumped" in out, out
    assert "not a switch" in pair.run("n1", "ibroute", lids["n2"], check=False)


def test_dump_fts(tree, tree_lids):
    for tool in "dump_fts", "dump_lfts":
        out = tree.run("n1", tool)
        assert out.count("Unicast lids") == 6 and out.count("14 valid lids dumped") == 6, out
    assert f"0x{int(tree_lids['n8']):04x}" in out, out
    for tool in ["dump_fts", "-M"], ["dump_mfts"]:
        assert tree.run("n1", *tool).count("Multicast mlids [0xc000-") == 6


def test_ibtracert(tree, tree_lids):
    out = tree.run("n1", "ibtracert", tree_lids["n1"], tree_lids["n8"])
    assert out.startswith(f"From ca {{{CA1}}} portnum 1 lid {tree_lids['n1']}-"), out
    assert len(re.findall(r"^\[\d\] -> switch port", out, re.M)) == 3, out
    assert '"n8 softib0"' in out.splitlines()[-1], out
    by_guid = tree.run("n1", "ibtracert", "-G", PORT1, "0x" + guid("n8", port=1))
    assert by_guid == out


@pytest.fixture(scope="module")
def group(tree, tree_lids):
    """The MLID of a group that n1 and n8 are in."""
    def each(what):
        return [tree.run(f"n{n}", "python3", JOIN, what, tree_lids["n1"],
                         "0x" + guid(f"n{n}", port=1)).strip() for n in (1, 8)]

    first, second = each("join")
    assert first == second
    yield first
    each("leave")


def test_multicast(tree, tree_lids, group):
    """Its way by ibtracert, in the tables, and what the SA says of it."""
    def row(out):
        return re.findall(rf"^{group} +x[x ]*$", out, re.M)

    def table(switch):
        return tree.run("n1", "ibroute", "-M", tree_lids[switch])

    for leaf in "s1", "s4":
        until(lambda leaf=leaf: table(leaf), row)
    out = until(lambda: tree.run("n1", "ibtracert", "-m", group, tree_lids["n1"],
                                 tree_lids["n8"], check=False), lambda out: "To ca" in out)
    assert re.search(r'-> ca .*"n8 softib0"', out), out
    assert len(re.findall("-> switch", out)) == 3, out
    assert not row(table("s2"))
    assert len(row(tree.run("n1", "dump_fts", "-M"))) == 3
    # who the members are is told to those only who prove the key (15.4.1.2)
    assert "n1 softib0" not in tree.run("n1", "saquery", "-m", group)
    members = tree.run("n1", "saquery", "--smkey", "1", "-m", group)
    assert "n1 softib0" in members and "n8 softib0" in members, members
    assert f"Mlid....................{group.upper().replace('X', 'x')}" in \
        tree.run("n1", "saquery", "-g")


def test_check_lft_balance(tree, tmp_path):
    (tmp_path / "lft").write_text(tree.run("n1", "dump_fts"))
    tree.run("n1", "ibnetdiscover", "--cache", tmp_path / "cache")
    args = ["check_lft_balance", "-l", tmp_path / "lft", "-i", tmp_path / "cache"]
    assert tree.run("n1", *args) == ""  # even: nothing to say
    out = tree.run("n1", *args, "-v")
    assert out.count("Switch Port Usage") == 6 and "Port 003: 3\nPort 004: 3\n" in out, out


def test_perl_scripts(tree, tmp_path):
    def script(name, *args):
        """As installed, but that it keeps what it found in /var/cache."""
        return tree.run("n1", "perl", "-MIBswcountlimits", "-e",
                        f'$0 = "{name}"; $IBswcountlimits::cache_dir = "{tmp_path}";'
                        f'do "/usr/sbin/{name}";'
                        "die $@ if $@", "--", "-R", *args)

    out = script("ibfindnodesusing", SWITCH, "3")
    assert f'("s1" base)  ==>>  0x{guid("s5")} 1 (s5)' in out, out
    assert "n1 softib0 n2 softib0" in out, out  # those behind s1 are reached from s5
    assert script("ibidsverify") == ""  # no GUID, no LID twice


# --- SMPs -------------------------------------------------------------------

SMPQUERY = [  # operation, alias, node, port, what it says
    ("NodeInfo", "NI", "n2", None, [r"NodeType:\.+Channel Adapter", rf"Guid:\.+{CA2}",
                                    r"NumPorts:\.+1$", r"LocalPort:\.+1$"]),
    ("NodeInfo", "NI", "s1", None, [r"NodeType:\.+Switch", rf"Guid:\.+{SWITCH}"]),
    ("NodeDesc", "ND", "n2", None, [r"Node Description:\.+n2 softib0$"]),
    ("PortInfo", "PI", "n2", 1, [r"LinkState:\.+Active", r"LinkSpeedExtActive:\.+25.78125 Gbps",
                                 r"SMLid:\.+1$", r"NeighborMTU:\.+4096$"]),
    ("PortInfo", "PI", "s1", 2, [r"LinkState:\.+Active", r"LocalPort:\.+1$"]),
    ("PortInfo", "PI", "s1", 0, [r"LinkState:\.+Active", r"Lid:\.+[1-9]"]),
    ("PortInfoExtended", "PIE", "n2", 1, [r"FECModeActive:\.+0$"]),
    ("SwitchInfo", "SI", "s1", None, [r"LinearFdbCap:\.+49152$", r"LinearFdbTop:\.+3$"]),
    ("PKeyTable", "PKeys", "n2", 1, [r"^   0: 0xffff 0x0000", "^128 pkeys capacity"]),
    ("PKeyTable", "PKeys", "s1", 1, [r"^   0: 0xffff 0x0000", "^32 pkeys capacity"]),
    ("SL2VLTable", "SL2VL", "n2", 1, [r"^ports: in  0, out  0: \|( \d\|){16}$"]),
    ("SL2VLTable", "SL2VL", "s1", 1, [rf"^ports: in  {i}, out  1: " for i in range(3)]),
    ("VLArbitration", "VLArb", "n2", 1, ["LowCap 8 HighCap 8", "^# High priority"]),
    ("VLArbitration", "VLArb", "s1", 1, ["LowCap 8 HighCap 8", "^# High priority"]),
    ("GUIDInfo", "GI", "n2", None, [f"^   0: {PORT2}", "^16 guids capacity"]),
    ("GUIDInfo", "GI", "s1", None, [rf"^   0: {SWITCH}", "^1 guids capacity"]),
    ("MlnxExtPortInfo", "MEPI", "n2", 1, [r"LinkSpeedActive:\.+0x00"]),
]


@pytest.mark.parametrize("operation,alias,node,port,says", SMPQUERY,
                         ids=[f"{r[0]}-{r[2]}-{r[3]}" for r in SMPQUERY])
def test_smpquery(pair, lids, operation, alias, node, port, says):
    args = [lids[node]] + ([str(port)] if port is not None else [])
    out = pair.run("n1", "smpquery", operation, *args)
    for line in says:
        assert re.search(line, out, re.M), f"{line} not in\n{out}"
    assert pair.run("n1", "smpquery", alias, *args) == out


def test_every_smpquery_is_tested(pair):
    out = pair.run("n1", "smpquery", "--help", check=False)
    ops = re.findall(r"^  (\w+) \((\w+)\) <addr>", out, re.M)
    assert {op for op, _ in ops} == {row[0] for row in SMPQUERY}


def test_smpquery_by_route(pair, lids):
    """Directed, combined and by GUID; with the route of no hop, too."""
    def node(*args):
        return field(pair.run("n1", "smpquery", *args), "NodeType")

    assert node("-D", "NodeInfo", "0") == "Channel Adapter"
    assert node("-D", "NodeInfo", "0,1") == "Switch"
    assert node("-D", "NodeInfo", "0,1,2") == "Channel Adapter"
    assert node("-c", "NodeInfo", lids["n1"], "0") == "Channel Adapter"
    assert node("-c", "NodeInfo", lids["s1"], "0") == "Switch"
    assert node("-c", "NodeInfo", lids["s1"], "0,2") == "Channel Adapter"
    assert node("-G", "NodeInfo", PORT2) == "Channel Adapter"


def test_smpquery_refuses(pair, lids):
    refused(pair, "smpquery", "SwitchInfo", lids["n2"])
    refused(pair, "smpquery", "PortInfo", lids["n2"], "2")
    refused(pair, "smpquery", "PortInfo", lids["s1"], "3")


def test_smpdump(pair, lids):
    assert pair.run("n1", "smpdump", lids["n2"], "0x11").startswith(f"0101 0101 {CA2[2:6]} {CA2[6:10]}")
    assert "SMP status: 0xc" in pair.run("n1", "smpdump", lids["n2"], "0x99")


def portstate(fabric, lid, port, *ops, key=()):
    return fabric.run("n1", "ibportstate", *key, lid, port, *ops)


def own_part(out):
    return out.split("Peer PortInfo")[0]


def reaches(fabric, lid, port, **fields):
    """Till the port of the switch shows these fields."""
    until(lambda: own_part(portstate(fabric, lid, port, "query")),
          lambda out: all(field(out, k) == v for k, v in fields.items()))


def test_ibportstate_query(pair, lids):
    out = portstate(pair, lids["s1"], "2", "query")
    own, peer = out.split("Peer PortInfo:")
    assert field(own, "LinkState") == field(peer, "LinkState") == "Active"
    assert field(peer, "Lid") == lids["n2"]
    assert "CA/RT PortInfo" in portstate(pair, lids["n2"], "1")


@pytest.mark.parametrize("off,on", [("disable", "enable"), ("off", "on")])
def test_ibportstate_disable_enable(pair, lids, off, on):
    switch = lids["s1"]
    assert "Disable may be irreversible" in portstate(pair, switch, "2", off)
    reaches(pair, switch, "2", LinkState="Down", PhysLinkState="Disabled")
    assert "Down" in pair.run("n2", "ibstat")
    portstate(pair, switch, "2", on)
    reaches(pair, switch, "2", LinkState="Active", PhysLinkState="LinkUp")


@pytest.mark.parametrize("operation", ["reset", "down"])
def test_ibportstate_retrains(pair, lids, operation):
    def downed():
        return int(field(pair.run("n1", "perfquery", lids["s1"], "2"), "LinkDownedCounter"))

    before = downed()
    portstate(pair, lids["s1"], "2", operation)
    reaches(pair, lids["s1"], "2", LinkState="Active")
    assert downed() > before


def test_ibportstate_width_and_speed(pair, lids):
    switch = lids["s1"]

    def change(*setting, **fields):
        for s in setting:
            portstate(pair, switch, "2", *s)
        portstate(pair, switch, "2", "reset")
        reaches(pair, switch, "2", LinkState="Active", **fields)

    change(["width", "1"], LinkWidthActive="1X")
    assert "Rate: 25" in pair.run("n2", "ibstat")
    change(["width", "3"], LinkWidthActive="4X")
    change(["espeed", "1"], LinkSpeedExtActive="14.0625 Gbps")
    change(["espeed", "30"], ["speed", "1"], LinkSpeedActive="2.5 Gbps",
           LinkSpeedExtActive="No Extended Speed")
    change(["speed", "7"], ["espeed", "3"], LinkSpeedExtActive="25.78125 Gbps")


def test_ibportstate_of_the_own_port(pair):
    """A port that is down is still its node's to bring up."""
    pair.run("n2", "ibportstate", "-D", "0", "1", "disable")
    until(lambda: pair.run("n2", "ibstat"), lambda out: "Physical state: Disabled" in out)
    pair.run("n2", "ibportstate", "-D", "0", "1", "enable")
    until(lambda: pair.run("n2", "ibstat"), lambda out: "State: Active" in out)


def test_ibportstate_refuses(pair, lids):
    refused(pair, "ibportstate", lids["s1"], "2", "arm")  # it is Active
    refused(pair, "ibportstate", lids["s1"], "3", "query")
    assert "invalid operation" in refused(pair, "ibportstate", lids["s1"], "2", "nonsense")


def test_ibportstate_mtu_and_vls(pair, lids):
    portstate(pair, lids["s1"], "2", "mtu", "4", "vls", "2")
    out = pair.run("n1", "smpquery", "PortInfo", lids["s1"], "2")
    assert field(out, "NeighborMTU") == "2048" and field(out, "OperVLs") == "VL0-1", out
    portstate(pair, lids["s1"], "2", "mtu", "5", "vls", "4")


def test_mkey_guards_the_port():
    """With protect bits 2 who does not know the key hears nothing."""
    with Fabric("pair") as fabric:
        lid = lids_of(fabric)["n2"]
        key, wrong = ["-y", "0x77"], ["-t", "50", "-y", "0x78"]
        portstate(fabric, lid, "1", "mkey", "0x77", "mkeyprot", "2", key=["-t", "200"])
        for argv in (["smpquery", *wrong, "portinfo", lid],
                     ["smpquery", "-t", "50", "nodeinfo", lid],
                     ["ibportstate", *wrong, lid, "1", "disable"]):
            assert UNANSWERED in fabric.run("n1", *argv, check=False), argv
        out = fabric.run("n1", "smpquery", "-K", *key, "portinfo", lid)
        assert field(out, "Mkey") == "0x0000000000000077"
        assert int(field(out, "MkeyViolations")) >= 3
        assert field(out, "LinkState") == "Active"
        portstate(fabric, lid, "1", "mkey", "0", "mkeyprot", "0", key=key)
        assert field(fabric.run("n1", "smpquery", "portinfo", lid), "ProtectBits") == "0"


# --- performance ------------------------------------------------------------

def counter(fabric, name, *args):
    return int(field(fabric.run("n1", "perfquery", *args), name))


def pingpong(fabric, *args):
    fabric.pair("ibv_rc_pingpong", "-n", "100", *args)


def test_perfquery_counts_and_resets(pair, lids):
    port = lids["n2"], "1"
    before = counter(pair, "PortXmitPkts", "-x", *port)
    pingpong(pair, "-s", "64")
    assert counter(pair, "PortXmitPkts", "-x", *port) - before > 100  # messages and some ACKs
    assert counter(pair, "PortXmitData", *port) > 100 * 16
    pair.run("n1", "perfquery", "-r", "-x", *port)
    assert counter(pair, "PortUnicastXmitPkts", "-x", *port) < 100
    assert counter(pair, "PortXmitPkts", *port) > 100  # the other attribute's own
    pair.run("n1", "perfquery", "-R", *port)
    assert counter(pair, "PortXmitPkts", *port) < 100


def test_perfquery_all_ports(pair, lids):
    """-a: PortSelect 255 or the tool's sum; -l: one port after the other."""
    each = pair.run("n1", "perfquery", "-al", lids["s1"])
    assert re.findall(r"Lid \d+ port (\d+)", each) == ["1", "2"]
    assert "port 255" in pair.run("n1", "perfquery", "-a", lids["s1"])
    total = counter(pair, "PortXmitPkts", "-x", "-a", lids["s1"])
    assert total >= counter(pair, "PortXmitPkts", "-x", lids["s1"], "1")
    assert "port 1 " in pair.run("n1", "perfquery", "-l", lids["s1"], "1-2")
    refused(pair, "perfquery", lids["s1"], "3")


FLAGS = [  # the counters' names with their number, on a CA and on a switch
    ("-X", r"XmtDataSL\d+", 16), ("-S", r"RcvDataSL\d+", 16), ("-D", r"Port\w+Discards", 4),
    ("-E", r"Port\w+Errors", 6), ("-T", r"FECUncorrectableBlockCtrLane\d+", 12),
    ("--oprcvcounters", r"PortOpRcv\w+", 2), ("--flowctlcounters", r"Port\w+FlowPkts", 2),
    ("--vloppackets", r"PortVLOpPackets\d+", 16), ("--vlopdata", r"PortVLOpData\d+", 16),
    ("--vlxmitflowctlerrors", r"PortVLXmitFlowCtlUpdateErrors\d+", 16),
    ("--vlxmitcounters", r"PortVLXmitWait\d+", 16),
    ("--rcvcc", r"PortPktRcv[FB]ECN", 2), ("--slrcvfecn", r"PortSLRcvFECN\d+", 16),
    ("--slrcvbecn", r"PortSLRcvBECN\d+", 16), ("--xmitcc", "PortXmitTimeCong", 1),
    ("--vlxmittimecc", r"PortVLXmitTimeCong\d+", 15),
    ("-c", r"CounterSelect\d+", 15),
]


@pytest.mark.parametrize("flag,name,count", FLAGS, ids=[f[0] for f in FLAGS])
def test_perfquery_attributes(pair, lids, flag, name, count):
    for node in "n2", "s1":
        out = pair.run("n1", "perfquery", flag, lids[node], "1")
        assert len(re.findall(rf"^{name}:\.*\w+$", out, re.M)) == count, out


def test_perfquery_congestion_is_a_switch_s(pair, lids):
    out = pair.run("n1", "perfquery", "--swportvlcong", lids["s1"], "1")
    assert len(re.findall(r"^SWPortVLCongestion\d+:\.*0$", out, re.M)) == 16, out
    refused(pair, "perfquery", "--swportvlcong", lids["n2"], "1")


def test_perfquery_by_sl(pair, lids):
    before = counter(pair, "RcvDataSL3", "-S", lids["n2"], "1")
    pingpong(pair, "-s", "64", "-l", "3")
    assert counter(pair, "RcvDataSL3", "-S", lids["n2"], "1") - before > 100 * 16


def test_perfquery_by_opcode(pair, lids):
    """A reset chooses opcode 0, the first packet of a send, and begins."""
    port = lids["n2"], "1"
    for flag in "--oprcvcounters", "--vloppackets", "--vlopdata":
        pair.run("n1", "perfquery", "-R", flag, *port)
    pingpong(pair, "-s", "4096", "-m", "1024")
    packets = counter(pair, "PortOpRcvPkts", "--oprcvcounters", *port)
    dwords = packets * (8 + 12 + 1024 + 4) // 4  # LRH, BTH, payload, ICRC
    assert 100 <= packets < 120, packets  # more than 100 where some were sent again
    assert counter(pair, "PortOpRcvData", "--oprcvcounters", *port) == dwords
    assert counter(pair, "PortVLOpPackets0", "--vloppackets", *port) == packets
    assert counter(pair, "PortVLOpData0", "--vlopdata", *port) == dwords
    assert counter(pair, "PortVLOpData1", "--vlopdata", *port) == 0


def test_ibqueryerrors(pair, lids):
    pair.run("n1", "ibqueryerrors", "-k", "-K", check=False)
    assert "3 nodes checked, 0 bad nodes found" in pair.run("n1", "ibqueryerrors")
    portstate(pair, lids["s1"], "2", "reset")
    reaches(pair, lids["s1"], "2", LinkState="Active")
    out = pair.run("n1", "ibqueryerrors", "--details", "--data", check=False)
    assert re.search(r'Errors for .*"s1"', out) and "port 2: [LinkDownedCounter == 1 " in out, out
    pair.run("n1", "ibqueryerrors", "-k", check=False)
    assert " 0 bad nodes found" in pair.run("n1", "ibqueryerrors")
    assert pair.run("n1", "ibqueryerrors", "--counters").count("[PortXmitData ==") == 4


# --- the vendors' and other classes -----------------------------------------

def test_ibping(pair, lids):
    server = pair.start("n2", "ibping", "-S")
    try:
        until(lambda: pair.run("n1", "ibping", "-f", "-c", "1", lids["n2"], check=False),
              lambda out: "1 received" in out)
        out = pair.run("n1", "ibping", "-c", "50", "-f", lids["n2"])
        assert "50 packets transmitted, 50 received, 0% packet loss" in out, out
    finally:
        server.kill()


def test_ibping_without_server(pair, lids):
    """Who has no such class says so: the ten minutes are not waited for."""
    for node in "s1", "n1":
        out = pair.run("n2", "ibping", "-f", "-c", "3", *PATIENT, lids[node], timeout=60)
        assert "3 packets transmitted, 0 received, 100% packet loss" in out, out


def test_ibsysstat(pair, lids):
    server = pair.start("n2", "ibsysstat", "-S")
    try:
        out = until(lambda: pair.run("n1", "ibsysstat", lids["n2"], "host", check=False),
                    lambda out: out.strip())
        assert socket.gethostname() in out, out
        assert "sysstat ping succeeded" in pair.run("n1", "ibsysstat", lids["n2"], "ping")
        assert "cpu 0:" in pair.run("n1", "ibsysstat", lids["n2"], "cpu")
    finally:
        server.kill()


@pytest.mark.parametrize("node", ["n2", "s1"])
def test_vendstat_is_told_not_supported(pair, lids, node):
    for flag in "-N", "-w":
        assert "classportinfo query" in refused(pair, "vendstat", flag, lids[node])
    out = pair.run("n1", "vendstat", *PATIENT, "-i", lids[node], "1", check=False, timeout=60)
    assert "counter group info query failure" in out, out


CONGESTION = ["ClassPortInfo", "CongestionInfo", "CongestionKeyInfo", "CongestionLog",
              "SwitchCongestionSetting", "SwitchPortCongestionSetting", "CACongestionSetting",
              "CongestionControlTable", "Timestamp"]


@pytest.mark.parametrize("operation", CONGESTION)
def test_ibccquery_is_told_not_supported(pair, lids, operation):
    """No manager of congestion is on any node."""
    node = "n2" if operation.startswith(("CA", "CongestionControl")) else "s1"
    assert "failed" in refused(pair, "ibccquery", operation, lids[node])


def test_ibccconfig_is_told_not_supported(pair, lids):
    for node in "n2", "s1":
        assert "failed" in refused(pair, "ibccconfig", "CongestionKeyInfo", lids[node],
                                   "0", "0", "0", "0")


# --- the subnet administrator -----------------------------------------------

SAQUERY = [  # record, options, of which dump how many in the pair, what is in one
    ("CPI", [], "SA ClassPortInfo", 1, r"Class version\.+2"),
    ("NR", [], "NodeRecord dump", 3, "n2 softib0"),
    ("PIR", [], "PortInfoRecord dump", 5, r"PortNum\.+2"),  # of a switch port 0 as well
    ("SWIR", [], "SwitchInfoRecord dump", 1, r"LinearFDBTop\.+0x3$"),
    ("LR", [], "LinkRecord dump", 4, r"FromPort\.+2"),
    ("PR", [], "PathRecord dump", 9, r"dgid\.+" + link_local("n2")),
    ("LFTR", [], "LFT Record dump", 1, r"LID\tPort Number"),
    ("GIR", [], "GUIDInfo Record dump", None, PORT2),
    ("SMIR", [], "SMInfoRecord dump", 1, rf"GUID\.+{PORT1}\n(.*\n){{3}}.*SMState\.+3"),
    ("PKTR", ["--smkey", "1"], "PKeyTableRecord dump", None, "0xffff"),
    # the broadcast group of IP over InfiniBand, which nobody has joined
    ("MCMR", [], "MCMember", 1, r"MGID\.+ff12:401b:ffff::ffff:ffff"),
    ("MFTR", [], "MFT Record dump", 1, "0xc000\t0x0000"),
    # there are none of these in the pair, which is an answer too
    ("SL2VL", [], "SL2VL", None, ""), ("VLAR", [], "VLArb", None, ""),
    ("SR", [], "ServiceRecord dump", 0, ""), ("IIR", [], "InformInfoRecord dump", 0, ""),
]


@pytest.mark.parametrize("record,options,title,count,says", SAQUERY, ids=[r[0] for r in SAQUERY])
def test_saquery(pair, record, options, title, count, says):
    out = pair.run("n1", "saquery", *options, record)
    assert count is None or len(re.findall(title, out)) == count, out
    assert re.search(says, out, re.M), out


def test_every_saquery_is_tested(pair):
    out = pair.run("n1", "saquery", "--help", check=False)
    names = re.findall(r"^  \w+ \((\w+)\)", out.split("Options:")[0], re.M)
    assert set(names) == {row[0] for row in SAQUERY}


def test_saquery_keeps_partitions_from_strangers(pair):
    assert "SA_ERR_REQ_INVALID" in pair.run("n1", "saquery", "PKTR", status=5)


def test_saquery_names(pair, lids):
    assert pair.run("n1", "saquery", "-U", PORT2).strip() == "n2 softib0"
    assert pair.run("n1", "saquery", "-O", lids["s1"]).strip() == "s1"
    assert pair.run("n1", "saquery", "-L", "n2 softib0").strip() == lids["n2"]
    path = pair.run("n2", "saquery", "--src-to-dst", f"{lids['n1']}:{lids['n2']}")
    assert path.count("PathRecord dump") == 1 and re.search(rf"dlid\.+{lids['n2']}$", path, re.M)
    assert len(re.findall(r'^\s+\d+  "n\d softib0"', pair.run("n1", "saquery", "-D"), re.M)) == 2
    assert "Machine is not on the network" in pair.run("n1", "saquery", "nobody", check=False)
