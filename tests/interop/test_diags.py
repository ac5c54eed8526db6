# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""infiniband-diags: each tool's answer about a fabric that we know."""
import re

import pytest


@pytest.fixture(scope="module")
def lids(pair):
    """{name: LID} of the pair: n1, n2, s1."""
    return {node["name"]: node["lid"] for node in pair.json("topo")["nodes"]}


def test_ibstat(pair, lids):
    out = pair.run("n1", "ibstat")
    assert "State: Active" in out and "Physical state: LinkUp" in out, out
    assert f"Base lid: {lids['n1']}" in out, out
    assert pair.run("n1", "ibstat", "-l").split() == ["softib0"]
    assert pair.run("n1", "ibstat", "-p").startswith("0x")


def test_ibaddr(pair, lids):
    assert f"LID start 0x{lids['n1']:x}" in pair.run("n1", "ibaddr") or \
        f"LID start {lids['n1']}" in pair.run("n1", "ibaddr")


def test_ibnetdiscover(pair):
    out = pair.run("n1", "ibnetdiscover")
    assert len(re.findall(r"^Ca\s", out, re.M)) == 2, out
    assert len(re.findall(r"^Switch\s", out, re.M)) == 1, out


def test_iblinkinfo(pair):
    out = pair.run("n1", "iblinkinfo")
    assert out.count("Active/  LinkUp") >= 2, out


def test_ibhosts_and_ibswitches(pair):
    assert len(re.findall(r"^Ca\s*:", pair.run("n1", "ibhosts"), re.M)) == 2
    assert len(re.findall(r"^Switch\s*:", pair.run("n1", "ibswitches"), re.M)) == 1


def test_ibroute(pair, lids):
    out = pair.run("n1", "ibroute", str(lids["s1"]))
    assert f"0x{lids['n1']:04x}" in out and f"0x{lids['n2']:04x}" in out, out
    pair.run("n1", "ibroute", "-M", str(lids["s1"]))


def test_ibtracert(pair, lids):
    out = pair.run("n1", "ibtracert", str(lids["n1"]), str(lids["n2"]))
    assert "From ca" in out and "To ca" in out, out


def test_dumps(pair, lids):
    assert f"0x{lids['n2']:04x}" in pair.run("n1", "dump_lfts")
    pair.run("n1", "dump_mfts")
    pair.run("n1", "dump_fts")


@pytest.mark.parametrize("operation,node,port", [
    ("NodeInfo", "n2", None), ("NodeDesc", "n2", None), ("PortInfo", "n2", 1), ("PortInfo", "s1", 1),
    ("PortInfo", "s1", 0), ("PortInfoExtended", "n2", 1), ("SwitchInfo", "s1", None),
    ("PKeyTable", "n2", 1), ("PKeyTable", "s1", 1), ("SL2VLTable", "n2", 1), ("SL2VLTable", "s1", 1),
    ("VLArbitration", "n2", 1), ("VLArbitration", "s1", 1), ("GUIDInfo", "n2", None),
    ("MlnxExtPortInfo", "n2", 1),
])
def test_smpquery(pair, lids, operation, node, port):
    args = [operation, str(lids[node])] + ([str(port)] if port is not None else [])
    out = pair.run("n1", "smpquery", *args, check=False)
    assert ".." in out or "0x" in out or "Node Description" in out, out


def test_smpquery_sminfo(pair):
    assert "SMINFO_MASTER" in pair.run("n1", "smpquery", "SMInfo")


def test_smpquery_directed(pair):
    assert "Channel Adapter" in pair.run("n1", "smpquery", "-D", "NodeInfo", "0")
    assert "Switch" in pair.run("n1", "smpquery", "-D", "NodeInfo", "0,1")
    assert "Channel Adapter" in pair.run("n1", "smpquery", "-D", "NodeInfo", "0,1,2")


def test_smpquery_combined(pair, lids):
    assert "Channel Adapter" in pair.run("n1", "smpquery", "-c", "NodeInfo", str(lids["s1"]), "0,2")


def test_sminfo(pair, lids):
    assert f"sm lid {lids['n1']}" in pair.run("n1", "sminfo")


def test_perfquery_counts(pair, lids):
    def packets(text):
        return int(re.search(r"PortXmitPkts:\.+(\d+)", text)[1])

    lid = str(lids["n2"])
    pair.run("n1", "perfquery", "-R", lid, "1")
    before = packets(pair.run("n1", "perfquery", "-x", lid, "1"))
    pair.pair("ibv_rc_pingpong", "-n", "100", "-s", "64")
    after = packets(pair.run("n1", "perfquery", "-x", lid, "1"))
    assert after - before >= 100
    pair.run("n1", "perfquery", "-r", lid, "1")


@pytest.mark.parametrize("flag", ["-x", "-X", "-S", "-D", "-E", "--oprcvcounters", "--flowctlcounters",
                                  "--vloppackets", "--vlopdata", "--vlxmitflowctlerrors",
                                  "--vlxmitcounters", "--swportvlcong", "--rcvcc", "--slrcvfecn",
                                  "--slrcvbecn", "--xmitcc", "--vlxmittimecc", "-c"])
def test_perfquery_flags(pair, lids, flag):
    """An answer or a clear 'not supported'; a time-out is neither."""
    out = pair.run("n1", "perfquery", flag, str(lids["n2"]), "1", check=False)
    assert "timeout" not in out.lower() and "timed out" not in out.lower(), out


def test_ibportstate(pair, lids):
    out = pair.run("n1", "ibportstate", str(lids["n2"]), "1", "query")
    assert "LinkState:.......................Active" in out, out
    assert "Peer" in pair.run("n1", "ibportstate", str(lids["s1"]), "1", "query")


def test_ibportstate_disable_enable(pair, lids):
    switch = str(lids["s1"])
    pair.run("n1", "ibportstate", switch, "2", "disable")
    assert "Disabled" in pair.run("n1", "ibportstate", switch, "2", "query")
    pair.run("n1", "ibportstate", switch, "2", "enable")
    pair.softib("wait", "--fabric", "t")


def test_ibping(pair, lids):
    server = pair.start("n2", "ibping", "-S")
    try:
        out = ""
        for _ in range(50):  # until the server has registered
            out = pair.run("n1", "ibping", "-c", "1", str(lids["n2"]), check=False)
            if "1 received" in out:
                break
        out = pair.run("n1", "ibping", "-c", "5", "-f", str(lids["n2"]))
        assert "5 received, 0% packet loss" in out, out
    finally:
        server.kill()


def test_ibsysstat(pair, lids):
    server = pair.start("n2", "ibsysstat", "-S")
    try:
        for _ in range(50):
            out = pair.run("n1", "ibsysstat", str(lids["n2"]), "ping", check=False)
            if "sysstat ping succeeded" in out:
                break
        assert "sysstat ping succeeded" in out, out
    finally:
        server.kill()


@pytest.mark.parametrize("record", ["NR", "PIR", "SWIR", "LR", "SMIR", "PR", "MCMR", "SR", "CPI"])
def test_saquery(pair, record):
    args = {"NR": ["-N"], "PIR": ["PIR"], "SWIR": ["SWI"], "LR": ["-x"], "SMIR": ["SMIR"],
            "PR": ["-p"], "MCMR": ["-g"], "SR": ["-S"], "CPI": ["-c"]}[record]
    pair.run("n1", "saquery", *args)


def test_saquery_finds_both_nodes(pair):
    out = pair.run("n1", "saquery", "-N")
    assert len(re.findall(r"^\s*NodeRecord dump", out, re.M)) == 3, out


def test_ibqueryerrors(pair):
    assert "0 bad nodes" in pair.run("n1", "ibqueryerrors", check=False) or \
        "Summary" in pair.run("n1", "ibqueryerrors", check=False)


def test_vendstat_is_told_not_supported(pair, lids):
    out = pair.run("n1", "vendstat", "-N", str(lids["n2"]), check=False)
    assert "timeout" not in out.lower() and "Connection timed out" not in out, out


def test_ibcacheedit_roundtrip(pair, tmp_path):
    cache = tmp_path / "fabric.cache"
    pair.run("n1", "ibnetdiscover", "--cache", cache)
    assert len(re.findall(r"^Ca\s", pair.run("n1", "ibnetdiscover", "--load-cache", cache),
                          re.M)) == 2
