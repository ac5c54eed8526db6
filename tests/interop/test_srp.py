# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SRP targets: Debian's srptools find them, and an initiator of ours judges what they answer."""
import subprocess

import pytest

from interop.fabric import BUILD, TIMEOUT, Fabric, guid, wait_until
from interop.test_capture import Capture, dissect

MODULES = BUILD / "tests/modules"
GUID = guid("n1")


def softib(fabric, *args):
    """Exit status, and what it said on stderr."""
    done = subprocess.run([fabric.program, *map(str, args)], env=fabric.env, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def disk(home):
    path = home / "disk.img"
    with path.open("wb") as file:
        file.truncate(16 << 20)
    return path


@pytest.fixture(autouse=True)
def no_target_stays(pair):
    yield
    for node in {target["node"] for target in pair.json("srp", "target", "list")}:
        pair.softib("srp", "target", "remove", node)


def attempts(pair, module="srp_try", *params):
    """The initiator's verdict, as softibd's log has it."""
    log = pair.dir / "softibd.log"
    before = log.read_text() if log.exists() else ""
    assert softib(pair, "modprobe", "n2", MODULES / f"{module}.so", f"guid={GUID}",
                  f"port_guid={guid('n1', 1)}", *params) == (0, "")
    assert softib(pair, "rmmod", "n2", module) == (0, "")
    return [line for line in log.read_text()[len(before):].splitlines() if f"{module}: " in line
            and f"module {module}" not in line]


def test_srptools_find_a_target_while_there_is_one(pair):
    found = [f"id_ext={GUID}", f"ioc_guid={GUID}", f"dgid=fe80000000000000{guid('n1', 1)}", "pkey=ffff"]
    assert pair.run("n2", "ibsrpdm", "-c") == ""
    pair.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    wait_until(lambda: pair.run("n2", "ibsrpdm", "-c"), "the subnet manager knows the capability")
    assert pair.run("n2", "ibsrpdm", "-c").strip().split(",")[:4] == found
    said = pair.run("n2", "ibsrpdm")
    assert f"service[  0]: 1{GUID[1:]} / SRP.T10:{GUID}" in said, said
    assert "ID:        softib SRP target of n1" in said, said
    said = pair.run("n2", "srp_daemon", "-o", "-a", "-c", "-n")
    assert said.strip().split(",")[:4] == found
    pair.softib("srp", "target", "remove", "n1")
    wait_until(lambda: pair.run("n2", "ibsrpdm", "-c") == "", "the capability is gone")


def test_a_node_has_several_controllers(pair):
    """Each is a target with units of its own; both programs of srptools show them."""
    assert pair.softib("srp", "target", "add", "n1", "--unit", "ram:1M") == "n1 LUN 0: ram:1M\n"
    out = pair.softib("srp", "target", "add", "n1", "--controller", "3", "--unit", "ram:2M", "--unit", "ram:3M")
    assert out == "n1.3 LUN 0: ram:2M\nn1.3 LUN 1: ram:3M\n"
    first, third = pair.json("srp", "target", "list", "n1")
    assert [(t["controller"], len(t["units"])) for t in (first, third)] == [(1, 1), (3, 2)]
    guids = [t["ioc_guid"][2:] for t in (first, third)]
    assert guids[0] == GUID and len(set(guids)) == 2
    wait_until(lambda: len(pair.run("n2", "ibsrpdm", "-c").splitlines()) == 2, "both are found")
    said = pair.run("n2", "ibsrpdm", "-c").splitlines()
    assert [line.split(",")[:2] for line in said] == [[f"id_ext={g}", f"ioc_guid={g}"] for g in guids]
    assert len({line.split("service_id=")[1] for line in said}) == 2
    said = pair.run("n2", "srp_daemon", "-o", "-a", "-c", "-n")
    assert [line.split(",")[1] for line in said.splitlines()] == [f"ioc_guid={g}" for g in guids]
    said = pair.run("n2", "ibsrpdm")
    assert "ID:        softib SRP target of n1" in said and "ID:        softib SRP target 3 of n1" in said
    pair.softib("srp", "target", "remove", "n1", "0", "--controller", "3")
    assert [unit["lun"] for unit in pair.json("srp", "target", "list")[1]["units"]] == [1]
    pair.softib("srp", "target", "remove", "n1", "0")
    target, = pair.json("srp", "target", "list")
    assert target["controller"] == 3
    wait_until(lambda: pair.run("n2", "ibsrpdm", "-c").count("ioc_guid") == 1, "one is left")
    assert f"ioc_guid={guids[1]}" in pair.run("n2", "ibsrpdm", "-c")
    pair.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    pair.softib("srp", "target", "remove", "n1", "--controller", "3")
    assert [t["controller"] for t in pair.json("srp", "target", "list")] == [1]
    pair.softib("srp", "target", "add", "n1", "-c", "4", "--unit", "ram:1M")
    pair.softib("srp", "target", "remove", "n1")
    assert not pair.json("srp", "target", "list")


@pytest.mark.parametrize("options", ["", ":sparse", ":wt"])
def test_an_initiator_finds_nothing_wrong(pair, disk, options):
    pair.softib("srp", "target", "add", "n1", "--unit", f"{disk}{options}")
    said = attempts(pair)
    assert len(said) == 1 and said[0].endswith("srp_try: done, 0 failures"), said
    target, = pair.json("srp", "target", "list")
    assert (target["node"], target["channels"]) == ("n1", [])
    assert any(disk.read_bytes()), "nothing was written"


def test_a_capture_of_it_is_well_formed(pair):
    pair.softib("srp", "target", "add", "n1", "--unit", "ram:16M")
    capture = Capture(pair, "n2:1")
    assert attempts(pair)[-1].endswith("done, 0 failures")
    frames = dissect(capture.end())
    assert len(frames) > 100
    assert not [frame for frame in frames if frame["_ws.malformed"]]


def test_units_come_and_go(pair, disk):
    out = pair.softib("srp", "target", "add", "n1", "--unit", f"{disk}:ro:4k", "--unit", "ram:2M")
    assert out == f"n1 LUN 0: {disk}\nn1 LUN 1: ram:2M\n"
    first, second = pair.json("srp", "target", "list")[0]["units"]
    assert (first["read_only"], first["block_bytes"], first["bytes"]) == (True, 4096, 16 << 20)
    assert (second["in_memory"], second["sparse"], second["bytes"]) == (True, True, 2 << 20)
    pair.softib("srp", "target", "remove", "n1", "0")
    assert pair.softib("srp", "target", "add", "n1", "--unit", "ram:1M") == "n1 LUN 0: ram:1M\n"
    pair.softib("srp", "target", "remove", "n1", "0")
    pair.softib("srp", "target", "remove", "n1", "1")
    assert not pair.json("srp", "target", "list")


def expect_kept(pair, again):
    said = attempts(pair, "srp_keep", f"again={again}")
    assert len(said) == 1 and said[0].endswith("done, 0 failures"), said


def test_reservations_outlast_the_unit_that_keeps_them(pair, disk):
    pair.softib("srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
    assert pair.json("srp", "target", "list")[0]["units"][0]["keeps_reservations"]
    expect_kept(pair, 0)
    pair.softib("srp", "target", "remove", "n1")
    pair.softib("srp", "target", "add", "n1", "--unit", "ram:1M", "--unit", f"{disk}:aptpl")
    pair.softib("srp", "target", "remove", "n1", "0")
    pair.softib("srp", "target", "remove", "n1")
    pair.softib("srp", "target", "add", "n1", "--unit", f"{disk}:aptpl={disk}.aptpl")
    expect_kept(pair, 1)


def test_reservations_outlast_softibd(home, disk):
    with Fabric("pair") as fabric:
        fabric.softib("srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
        expect_kept(fabric, 0)
    with Fabric("pair") as fabric:
        fabric.softib("srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
        expect_kept(fabric, 1)


def test_a_damaged_file_of_reservations_is_told(pair, disk):
    """Of its two slots the newer one that is whole counts."""
    kept = disk.with_name(disk.name + ".aptpl")
    pair.softib("srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
    expect_kept(pair, 0)
    pair.softib("srp", "target", "remove", "n1")
    good = kept.read_bytes()
    assert good[:8] == good[4096:4104] == b"softibPR"
    newest = 4096 * (int.from_bytes(good[4104:4112], "big") > int.from_bytes(good[8:16], "big"))
    torn = bytearray(good)  # REGISTER is kept, RESERVE is not
    torn[newest + 40] ^= 1
    kept.write_bytes(torn)
    pair.softib("srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
    said = attempts(pair, "srp_keep", "again=1")
    assert len(said) == 2 and "WRITE of the other: 0, not 0x18" in said[0], said
    pair.softib("srp", "target", "remove", "n1")
    for bad in good[:40], bytes(8192), b"text":
        kept.write_bytes(bad)
        status, why = softib(pair, "srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
        assert status == 1 and "the file of its reservations is damaged" in why, (bad[:16], why)
    kept.write_bytes(b"")
    pair.softib("srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
    status, why = softib(pair, "srp", "target", "add", "n1", "--unit", f"{disk}:aptpl")
    assert status == 1 and "another unit has the file of its reservations" in why


@pytest.mark.parametrize("args, why", [
    (("n1", "--unit", "ram:1M:aptpl"), "':aptpl' is for files and block devices"),
    (("n1", "--unit", f"{__file__}:ro:aptpl=/nonexistent/file"), "':aptpl=PATH' names another file"),
    (("n1", "--unit", f"{__file__}:ro:aptpl=/dev/null"), "is no file"),
    (("n1", "--unit", "/nonexistent/disk"), "No such file or directory; 'truncate -s 1G FILE' makes"),
    (("n1", "--unit", "/dev/null"), "'/dev/null' is neither a file nor a block device"),
    (("n1", "--unit", "ram:12Q"), "expected ram:SIZE such as ram:64M"),
    (("n1", "--unit", "ram:100"), "a unit is a file or block device of at least one block"),
    (("n1", "--controller", "5", "--unit", "ram:1M"), "have the numbers 1 to 4"),
    (("n1", "--controller", "0", "--unit", "ram:1M"), "have the numbers 1 to 4"),
    (("n1", "--controller", "first", "--unit", "ram:1M"), "the number of an I/O controller, 1 to 4"),
    (("n1",), "expected one node and its units"),
    (("s1", "--unit", "ram:1M"), "only adapters have SRP targets"),
    (("n9", "--unit", "ram:1M"), "n9"),
])
def test_what_cannot_be_served_is_refused(pair, args, why):
    status, said = softib(pair, "srp", "target", "add", *args)
    assert status and why in said, said
    assert not pair.json("srp", "target", "list")


def test_what_is_not_there_cannot_be_removed(pair):
    status, said = softib(pair, "srp", "target", "remove", "n1")
    assert status == 1 and "n1 has no such target" in said
    pair.softib("srp", "target", "add", "n1", "--unit", "ram:1M")
    status, said = softib(pair, "srp", "target", "remove", "n1", "7")
    assert status == 1 and "n1 has no such unit" in said
    status, said = softib(pair, "srp", "target", "remove", "n1", "--controller", "2")
    assert status == 1 and "n1 has no such target" in said
