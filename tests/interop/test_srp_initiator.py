# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""SRP initiators: nodes log in to targets of others, and programs use the disks by NBD. fio,
nbdcopy, qemu-io and e2fsck judge what is read and written."""
import os
import subprocess

import pytest

from interop.fabric import TIMEOUT, Fabric, guid, wait_until

DISK_BYTES = 16 << 20


@pytest.fixture(scope="module")
def fabric():
    with Fabric("star:3") as it:
        yield it
        it.expect_no_leftovers()


@pytest.fixture(autouse=True)
def disks(fabric):
    """A file and memory, which n1 serves and n2 is logged in to: the addresses of both."""
    disk = fabric.dir / "disk.img"
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    fabric.softib("srp", "target", "add", "n1", "--unit", disk, "--unit", "ram:16M")
    login = fabric.json("srp", "login", "n2", "n1", "--reconnect-delay", "1")
    yield [f"nbd+unix:///{unit['export']}?socket={login['socket']}" for unit in login["units"]]
    if fabric.json("srp", "list"):
        fabric.softib("srp", "logout", "n2", "n1")
    fabric.softib("srp", "target", "remove", "n1")


def softib(fabric, *args):
    """Exit status, and what it said on stderr."""
    done = subprocess.run([fabric.program, *map(str, args)], env=fabric.env, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    return done.returncode, done.stderr


# NBD clients use no library of softib, and some do not run under a sanitizer
CLIENT = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


def run(fabric, *argv):
    done = subprocess.run([*map(str, argv)], env=CLIENT, cwd=fabric.dir, capture_output=True,
                          text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"{argv}\n{done.stdout}{done.stderr}"
    return done.stdout


def fio(uri, *options):
    return ["fio", "--name=disk", "--ioengine=nbd", f"--uri={uri}", "--verify=crc32c",
            "--verify_state_save=0", "--verify_fatal=1", *options]


def session(fabric, node="n2"):
    found, = fabric.json("srp", "list", node)
    return found


def test_a_target_is_discovered(fabric):
    found, = fabric.json("srp", "discover", "n3")
    assert (found["node"], found["ioc_guid"]) == ("n1", f"0x{guid('n1')}")
    assert found["description"] == "softib SRP target of n1"


def test_a_node_logs_in_by_a_controllers_guid(fabric):
    login = fabric.json("srp", "login", "n3", f"0x{guid('n1')}", "--channels", "3")
    assert login["channels"][0]["up"] and len(login["channels"]) == 3  # the others come up by and by
    wait_until(lambda: [channel["up"] for channel in session(fabric, "n3")["channels"]] == [True] * 3, "all are up")
    assert len(fabric.json("srp", "target", "list")[0]["channels"]) == 4
    fabric.softib("srp", "logout", "n3", f"0x{guid('n1')}")
    wait_until(lambda: len(fabric.json("srp", "target", "list")[0]["channels"]) == 1, "they end")


def test_a_node_logs_in_to_the_controller_that_it_names(fabric):
    """Two controllers with a disk each: the data goes to the one that was named."""
    disks = [fabric.dir / f"controller{i}.img" for i in (1, 2)]
    for i, disk in enumerate(disks):
        disk.write_bytes(bytes(1 << 20))
        fabric.softib("srp", "target", "add", "n3", "--controller", str(i + 1), "--unit", disk)
    status, why = softib(fabric, "srp", "login", "n2", "n3")
    assert status and "as in 'n1.2'" in why, why
    assert [t["controller"] for t in fabric.json("srp", "discover", "n2") if t["node"] == "n3"] == [1, 2]
    logins = [fabric.json("srp", "login", "n2", f"n3.{i}") for i in (1, 2)]
    uris = [f"nbd+unix:///{login['units'][0]['export']}?socket={login['socket']}" for login in logins]
    assert "/n2/n3.2/0?" in uris[1]
    for uri, byte in zip(uris, ("0x11", "0x22")):
        run(fabric, "qemu-io", "-f", "raw", "-c", f"write -P {byte} 0 1M", uri)
    assert [disk.read_bytes() for disk in disks] == [b"\x11" * (1 << 20), b"\x22" * (1 << 20)]
    for name in "n3.1", "n3.2":
        fabric.softib("srp", "logout", "n2", name)
    status, why = softib(fabric, "srp", "login", "n2", "n3.4")
    assert status and "there is no such target" in why
    fabric.softib("srp", "target", "remove", "n3")


def test_the_status_counts_protocols(fabric):
    out = fabric.softib("status")
    assert "1 SRP target (softib srp target list)" in out and "1 SRP session" in out, out
    assert fabric.json("status")["protocols"] == {
        "ipoib_interfaces": 0, "ethernet_interfaces": 0, "sdp_connections": 0, "srp_targets": 1, "srp_sessions": 1}
    for node, has, has_not in ("n1", "1 SRP target", "session"), ("n2", "1 SRP session", "target "), ("n3", "n3", "SRP"):
        out = fabric.softib("status", node)
        assert has in out and has_not not in out and "subnet" not in out, out
    fabric.softib("modprobe", "n2", "kdapl")
    assert "kdapl" in fabric.softib("status", "n2") and "kdapl" not in fabric.softib("status", "n1")
    fabric.softib("rmmod", "n2", "kdapl")
    status, why = softib(fabric, "status", "n9")
    assert status and "no node \"n9\" in this fabric" in why, why


def test_nbd_clients_see_the_disks(fabric, disks):
    out = run(fabric, "nbdinfo", "--list", disks[0].replace("/n2/n1/0", "/"))
    assert 'export="n2/n1/0"' in out and 'export="n2/n1/1"' in out
    assert f"export-size: {DISK_BYTES}" in out and "can_fua: true" in out
    assert "virtual size: 16 MiB" in run(fabric, "qemu-img", "info", disks[0])


def test_what_is_written_is_read(fabric, disks):
    """Mixed sizes, with and without FUA, several clients of one disk."""
    jobs = [subprocess.Popen(fio(disks[1], "--rw=randwrite", "--bsrange=512-256k", "--blockalign=512",
                                 "--iodepth=16", f"--offset={i * 4}m", "--size=4m", f"--sync={i % 2}"),
                             env=CLIENT, cwd=fabric.dir, stdout=subprocess.PIPE, text=True)
            for i in range(4)]
    for job in jobs:
        out, _ = job.communicate(timeout=TIMEOUT)
        assert job.returncode == 0 and "err= 0" in out, out
    run(fabric, "qemu-io", "-f", "raw", "-c", "write -P 0x5a 1M 3M", "-c", "write -z 2M 1M",
        "-c", "read -P 0x5a 1M 1M", "-c", "read -P 0 2M 1M", "-c", "discard 1M 1M",
        "-c", "read -P 0 1M 1M", "-c", "flush", disks[1])


def test_large_requests_have_tables_of_descriptors(fabric, disks):
    """Requests of up to 8 MiB, in many pieces of memory: the target fetches the longer tables."""
    run(fabric, *fio(disks[1], "--rw=randrw", "--bssplit=64k/20:512k/20:1m/20:3m/20:8m/20", "--iodepth=8",
                     "--size=16m", "--loops=3"))
    run(fabric, "qemu-io", "-f", "raw", "-c", "write -P 0x17 512 8M", "-c", "read -P 0x17 512 8M",
        "-c", "read -P 0x17 5M 2M", disks[1])
    seen = session(fabric)
    assert 0 < seen["fetched_tables"] < seen["tables"] < seen["commands"], seen


def test_a_file_system_survives(fabric, disks):
    run(fabric, "/usr/sbin/mkfs.ext4", "-q", "-F", "-d", os.path.dirname(__file__), "fs.img", "16M")
    run(fabric, "nbdcopy", "fs.img", disks[0])
    run(fabric, "nbdcopy", disks[0], "back.img")
    run(fabric, "/usr/sbin/e2fsck", "-f", "-n", "back.img")
    assert (fabric.dir / "disk.img").read_bytes() == (fabric.dir / "fs.img").read_bytes()


# nbdfuse mounts on a file, where an ordinary user may in a namespace alone; it ends when that is unmounted
ON_A_FILE = """
touch fuse
nbdfuse -P nbdfuse.pid fuse "$0" &
until [ -s nbdfuse.pid ]; do kill -0 $! || exit 1; sleep 0.1; done
trap 'umount fuse; wait' EXIT
/usr/sbin/mkfs.ext4 -q -F -d "$1" fuse
/usr/sbin/e2fsck -f -n fuse
"""


def test_a_file_system_is_made_on_the_disk(fabric, disks):
    """mkfs.ext4 and e2fsck use it as a file, by nbdfuse; another reader finds it whole."""
    run(fabric, "unshare", "-m", *["--map-root-user"] * (os.getuid() != 0), "sh", "-ec", ON_A_FILE, disks[0],
        os.path.dirname(__file__))
    run(fabric, "/usr/sbin/e2fsck", "-f", "-n", "disk.img")


def test_commands_fail_when_their_time_is_over(fabric, disks):
    """fast_io_fail_tmo: what waits for a channel fails, and the session goes on. dev_loss_tmo: it ends."""
    fabric.softib("srp", "logout", "n2", "n1")
    login = fabric.json("srp", "login", "n2", "n1", "--reconnect-delay", "off", "--fast-io-fail-tmo", "1",
                        "--dev-loss-tmo", "4")
    uri = f"nbd+unix:///{login['units'][0]['export']}?socket={login['socket']}"
    job = subprocess.Popen(["qemu-io", "-t", "none", "-f", "raw", uri], env=CLIENT, cwd=fabric.dir,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: session(fabric)["units"][0]["clients"] == 1, "it is connected")
    fabric.softib("srp", "target", "remove", "n1")
    wait_until(lambda: session(fabric)["state"] != "running", "its channel is down")
    out, _ = job.communicate("write 0 4k\nread 0 4k\n", timeout=TIMEOUT)
    assert out.count("Input/output error") == 2, out
    assert session(fabric)["state"] == "failing"
    wait_until(lambda: not fabric.json("srp", "list"), "the session ends")
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:1M")


def test_writes_outlive_a_target_that_went(fabric, disks):
    """The target of a file ends in the middle and comes back: commands wait and are repeated."""
    job = subprocess.Popen(fio(disks[0], "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=8m",
                               "--rate_iops=2000"),
                           env=CLIENT, cwd=fabric.dir, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: session(fabric)["commands"] > 300, "commands are under way")
    fabric.softib("srp", "target", "remove", "n1")
    wait_until(lambda: session(fabric)["state"] == "blocked", "its channel is down")
    fabric.softib("srp", "target", "add", "n1", "--unit", fabric.dir / "disk.img", "--unit", "ram:16M")
    out, _ = job.communicate(timeout=TIMEOUT)
    assert job.returncode == 0 and "err= 0" in out, out
    assert session(fabric)["state"] == "running"


def exports(fabric):
    return [unit["export"] for unit in session(fabric)["units"]]


def test_units_that_come_and_go_are_noticed(fabric, disks):
    """While no command is under way, an asynchronous event of the target says so."""
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:3M")
    wait_until(lambda: exports(fabric) == [f"n2/n1/{i}" for i in range(3)], "there is one more")
    watched = fio(disks[1], "--rw=randwrite", "--bs=4k", "--size=8m", "--time_based", "--runtime=60")
    job = subprocess.Popen(watched, env=CLIENT, cwd=fabric.dir, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    wait_until(lambda: session(fabric)["units"][1]["clients"] == 1, "fio uses the second unit")
    fabric.softib("srp", "target", "add", "n1", "--unit", "ram:4M:ro")
    wait_until(lambda: exports(fabric) == [f"n2/n1/{i}" for i in range(4)], "there is another one")
    run(fabric, *fio(disks[0].replace("/n2/n1/0", "/n2/n1/2"), "--rw=write", "--bs=64k", "--size=3m"))
    assert session(fabric)["units"][3]["read_only"]
    fabric.softib("srp", "target", "remove", "n1", "2")
    wait_until(lambda: exports(fabric) == ["n2/n1/0", "n2/n1/1", "n2/n1/3"], "the third is gone")
    assert session(fabric)["units"][1]["clients"] == 1 and job.poll() is None
    fabric.softib("srp", "target", "remove", "n1", "1")
    assert job.wait(TIMEOUT) != 0
    wait_until(lambda: exports(fabric) == ["n2/n1/0", "n2/n1/3"], "the second is gone")
    assert session(fabric)["state"] == "running"


def test_another_disk_with_the_number_of_an_old_one_is_another(fabric, disks):
    """A client of a disk never writes to the one that took its place."""
    job = subprocess.Popen(fio(disks[1], "--rw=randwrite", "--bs=4k", "--size=8m", "--time_based",
                               "--runtime=60"), env=CLIENT, cwd=fabric.dir,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: session(fabric)["units"][1]["clients"] == 1, "it is connected")
    fabric.softib("srp", "target", "remove", "n1")
    wait_until(lambda: session(fabric)["state"] == "blocked", "its channel is down")
    other = fabric.dir / "other.img"
    with other.open("wb") as file:
        file.truncate(DISK_BYTES)
    fabric.softib("srp", "target", "add", "n1", "--unit", fabric.dir / "disk.img", "--unit", other)
    assert job.wait(TIMEOUT) != 0
    wait_until(lambda: session(fabric)["state"] == "running" and len(exports(fabric)) == 2, "it is back")
    assert not any(other.read_bytes())


def test_a_write_on_its_way_does_not_reach_another_disk(fabric, disks):
    """The target has not fetched the data yet when another disk gets the number of its own."""
    fabric.softib("fault", "add", *"link n2:1 drop dir=out opcode=rc_rdma_read_response_only".split())
    before = session(fabric)["commands"]
    job = subprocess.Popen(["qemu-io", "-f", "raw", "-c", "write -P 0x5a 0 512", disks[1]], env=CLIENT,
                           cwd=fabric.dir, stdout=subprocess.PIPE, text=True)
    wait_until(lambda: session(fabric)["commands"] > before, "the write is under way")
    other = fabric.dir / "other.img"
    with other.open("wb") as file:
        file.truncate(DISK_BYTES)
    fabric.softib("srp", "target", "remove", "n1", "1")
    fabric.softib("srp", "target", "add", "n1", "--unit", other)
    fabric.softib("fault", "clear", "all")
    job.communicate(timeout=TIMEOUT)
    wait_until(lambda: exports(fabric) == ["n2/n1/0", "n2/n1/1"] and
               not fabric.json("srp", "target", "list")[0]["channels"][0]["outstanding"], "all is over")
    assert not any(other.read_bytes())


def test_a_logout_closes_the_disks(fabric, disks):
    job = subprocess.Popen(fio(disks[0], "--rw=randwrite", "--bs=4k", "--size=8m", "--time_based",
                               "--runtime=60"), env=CLIENT, cwd=fabric.dir,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: session(fabric)["units"][0]["clients"] == 1, "it is connected")
    fabric.softib("srp", "logout", "n2", "n1")
    assert job.wait(TIMEOUT) != 0
    assert not fabric.json("srp", "list")


@pytest.mark.parametrize("args, why", [
    (("login", "n2", "n1"), "is logged in there already"),
    (("login", "n2", "n3"), "there is no such target"),
    (("login", "s1", "n1"), "only adapters have SRP initiators"),
    (("login", "n3", "n1", "--dev-loss-tmo", "never"), "number of seconds"),
    (("login", "n3", "n1", "--fast-io-fail-tmo", "700"), "not below the device loss"),
    (("login", "n3", "n1", "--channels", "17"), "channels"),
    (("logout", "n3", "n1"), "is not logged in to n1"),
    (("discover",), "expected one node"),
])
def test_what_cannot_be_done_is_said(fabric, args, why):
    status, said = softib(fabric, "srp", *args)
    assert status and why in said, said
