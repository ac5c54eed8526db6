# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Topologies: real fabrics' files load, and what ibnetdiscover prints of our
fabric gives the same fabric again."""
import re
import subprocess
import xml.etree.ElementTree as xml

import pytest

from interop.fabric import DATA, FABRIC_NAME, SOFTIB, TIMEOUT, Fabric, guid

REAL = sorted((DATA / "topologies").glob("[nq]*.ibnetdiscover"))


def topo(spec, form="ibnetdiscover", status=0, fabric="default"):
    done = subprocess.run([SOFTIB, "topo", "--topology", str(spec), "--format", form, "--fabric", fabric],
                          capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def lines(text, keep_lids=True):
    """The file's lines, apart from comments, blanks and the kind of port 0."""
    found = set()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        line = re.sub(r"\s+", " ", line).replace("] (", "](")
        line = re.sub(r"\b(base|enhanced) port 0", "port 0", line)
        found.add(line if keep_lids else re.sub(r" l(id|mc) \d+", "", line))
    return found


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_real_file_is_understood_to_the_last_line(path):
    assert lines(topo(path)) == lines(path.read_text())


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_real_file_is_drawn(path):
    svg = xml.fromstring(topo(path, "svg"))
    ns = {"s": "http://www.w3.org/2000/svg"}
    titles = {t.text for t in svg.iterfind(".//s:g[@class='node']/s:title", ns)}
    switches = len(re.findall(r"^Switch", path.read_text(), re.M))
    assert {f"s{i}" for i in range(1, switches + 1)} <= titles


def test_malformed_file_is_refused():
    path = DATA / "topologies/malformed.ibnetdiscover"
    err = topo(path, status=1)
    assert f"{path}:10: " in err and "expected" in err


@pytest.mark.parametrize("spec", ["pair:2", "fattree:2,2", "torus:3x3", "dragonfly:2,1,1", "direct"])
def test_ibnetdiscover_gives_the_same_fabric_again(spec, tmp_path):
    with Fabric(spec) as f:
        found = f.run("n1", "ibnetdiscover")
        ours = f.softib("topo", "--format", "ibnetdiscover")
        names = {n["guid"]: n["name"] for n in f.json("topo")["nodes"]}
    assert lines(found) == lines(ours)  # LIDs as well: the live fabric's
    (tmp_path / "found").write_text(found)
    assert lines(topo(tmp_path / "found"), False) == lines(topo(spec, fabric=FABRIC_NAME), False)
    with Fabric(tmp_path / "found") as f:
        again = f.run("n1", "ibnetdiscover")
        assert lines(again, False) == lines(found, False)
        assert {n["guid"]: n["name"] for n in f.json("topo")["nodes"]} == names


def test_ibsim_reads_what_we_write(tmp_path):
    (tmp_path / "net").write_text(topo("fattree:2,2"))
    done = subprocess.run(["ibsim", "-s", "net"], cwd=tmp_path, input="dump\nquit\n", text=True,
                          capture_output=True, timeout=TIMEOUT, check=False)
    out = done.stdout + done.stderr
    for i in range(1, 9):
        assert "H-" + guid(f"n{i}", fabric="default") in out
    for i in range(1, 7):
        assert "S-" + guid(f"s{i}", fabric="default") in out
    # each of the 16 cables at both ends
    assert len(re.findall(r'\[\d+\]\s+"[HS]-', out)) == 32, out


# --- dumps as people have them ---

DUMP = DATA / "topologies/qdr-11-switches-89-cas.ibnetdiscover"


def copied_from_a_terminal(text):
    return "\ufeff[root@head ~]# ibnetdiscover\r\n" + text.replace("\n", "\r\n") + \
        "[root@head ~]# \r\n"


def masked(text):
    """Vendor's half of each GUID stays, the rest is crossed out; ids still differ."""
    text = re.sub(r"guid=0x[0-9a-f]+(\(\w+\))?", "guid=0x248a0703xxxxxxxx(248a0703xxxxxxxx)", text)
    text = text.replace("sysimgguid=0x248a0703xxxxxxxx(248a0703xxxxxxxx)", "sysimgguid=0xxxxxxxxx")
    text = re.sub(r"\]\([0-9a-f]{8}[0-9a-f]*\)", "](xxxxxxxxxxxxxxxx)", text)
    return re.sub(r'"([SHR])-[0-9a-f]{8}(?=[0-9a-f]{8}")', r'"\1-xxxxxxxx', text)


def one_chassis(text):
    """All switches say the GUID of their chassis."""
    return re.sub(r"switchguid=0x\w+\(", "switchguid=0x2c90200aaaaaa(", text)


@pytest.mark.parametrize("change, warning", [
    (copied_from_a_terminal, ""), (masked, "masked GUIDs"), (one_chassis, "11 nodes share a GUID")],
    ids=["terminal", "masked", "chassis"])
def test_a_dump_boots_as_it_is(tmp_path, change, warning):
    path = tmp_path / "dump.txt"
    path.write_text(change(DUMP.read_text()), encoding="utf-8")
    done = subprocess.run([SOFTIB, "topo", "--topology", path, "--format", "ibnetdiscover"],
                          capture_output=True, text=True, timeout=TIMEOUT, check=True)
    assert (warning in done.stderr) if warning else not done.stderr
    with Fabric(path, sm="softib-sm") as fabric:
        seen = fabric.run("n1", "ibnetdiscover")
        before = DUMP.read_text()
        for kind in ("Switch", "Ca"):
            assert len(re.findall(f"^{kind}\\b", seen, re.M)) == \
                len(re.findall(f"^{kind}\\b", before, re.M))
        guids = re.findall(r"^(?:switch|ca)guid=(\w+)", seen, re.M)
        assert len(set(guids)) == len(guids)
