# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Storage programs that connect by the RDMA CM: fio's rdma engine, and tgt as iSER target
with libiscsi's programs as its initiators."""
import os

import pytest

from interop.fabric import Fabric, _ports, kill, wait_until

SERVER_IP = "10.1.0.1"
TARGET = "iqn.2026-01.example:disk"
INITIATOR = "iqn.2026-01.example:initiator"
URL = f"iser://{SERVER_IP}:3260/{TARGET}/1"
DISK_BYTES = 64 << 20


def listeners(fabric):
    rows = fabric.json("resource", "show")
    rows = rows.get("resources", rows) if isinstance(rows, dict) else rows
    return [row for row in rows if row["type"] == "cm_id" and row["node"] == "n1"]


# --- fio ------------------------------------------------------------------------------

FIO_SENDS = 256  # of 16 KiB in 4 MiB


def fio(verb, port, side):
    """Arguments of @side. One that is killed writes no file into the current folder. The server
    posts receives for all that comes at once: fio retries no SEND whose receive is late."""
    sizes = ["--ioengine=rdma", f"--port={port}", "--bs=16k", "--size=4m",
             "--verify_state_save=0"]
    if side == "client":
        return ["fio", "--name=client", *sizes, "--rw=write", f"--hostname={SERVER_IP}",
                f"--verb={verb}", "--iodepth=16"]
    return ["fio", "--name=server", *sizes, "--rw=read", f"--iodepth={FIO_SENDS}"]


def test_fio(pair):
    """RDMA WRITE, RDMA READ and SEND at once, each to its end."""
    ports = {verb: 7700 + i for i, verb in enumerate(("write", "read", "send"))}
    servers = [pair.start("n1", *fio(verb, port, "server")) for verb, port in ports.items()]
    wait_until(lambda: len(listeners(pair)) == len(ports) or
               any(server.poll() is not None for server in servers), "all three listen")
    clients = [pair.start("n2", *fio(verb, port, "client")) for verb, port in ports.items()]
    for process in clients + servers:
        out = pair.finish(process)
        assert process.returncode == 0 and "err= 0" in out, out
    assert f"issued rwts: total={FIO_SENDS},0,0,0" in out, out  # of the server of SEND


@pytest.mark.parametrize("checked", [True, False])
def test_fio_verify(pair, checked):
    """The receiver of SENDs checks each block by the sum that the sender has put into it. It has none
    if the sender does not: fio must notice that, or the other case shows nothing."""
    verify = ["--verify=crc32c", "--do_verify=0"]
    server = pair.start("n1", *fio("send", 7710, "server"), *verify[:1])
    wait_until(lambda: listeners(pair) or server.poll() is not None, "it listens")
    client = pair.start("n2", *fio("send", 7710, "client"), *(verify if checked else []))
    said = pair.finish(server)
    assert checked == (server.returncode == 0 and "err= 0" in said), said
    assert checked or "verify: bad" in said, said
    kill(client) if not checked else pair.finish(client)


@pytest.mark.parametrize("job", ["randread", "randwrite"])
def test_what_fio_refuses(pair, job):
    """Its engine rdma has no random access, on any adapter."""
    out = pair.run("n2", "fio", "--name=client", "--ioengine=rdma", "--port=7711", "--size=4m", f"--rw={job}",
                   f"--hostname={SERVER_IP}", "--verb=read", check=False)
    assert "RDMA network IO can't be random" in out, out


# --- iSER -----------------------------------------------------------------------------

class Target:
    """tgtd on n1 with one disk, a file."""

    def __init__(self, fabric, folder):
        self.fabric = fabric
        self.disk = folder / "disk"
        self.env = {**fabric.env, "TGT_IPC_SOCKET": str(folder / "tgtd")}
        with open(self.disk, "wb") as disk:
            disk.truncate(DISK_BYTES)
        self.daemon = fabric.start(
            "n1", "tgtd", "-f", "-C", 1, "-t", 1, "--iser", "port=3260,pool_sz_mb=128",
            "--iscsi", f"portal=127.0.0.1:{next(_ports)}", env=self.env)
        wait_until(lambda: (folder / "tgtd.1").exists() or self.daemon.poll() is not None,
                   "tgtd answers tgtadm")
        self.tgtadm("--op", "new", "--mode", "target", "--tid", 1, "-T", TARGET)
        self.tgtadm("--op", "new", "--mode", "logicalunit", "--tid", 1, "--lun", 1, "-b", self.disk)
        # with iSER tgtd wants an initiator to be listed by its address and by its name
        self.tgtadm("--op", "bind", "--mode", "target", "--tid", 1, "-I", "ALL")
        self.tgtadm("--op", "bind", "--mode", "target", "--tid", 1, "-Q", INITIATOR)

    def tgtadm(self, *argv):
        process = self.fabric.start("n1", "tgtadm", "-C", 1, "--lld", "iser", *argv, env=self.env)
        out = self.fabric.finish(process)
        assert process.returncode == 0, out
        return out

    def initiate(self, name, *argv):
        """Run a program of libiscsi on n2."""
        return self.run(name, "-i", INITIATOR, *argv, URL)

    def run(self, *argv):
        """Run a program that uses libiscsi on n2. Release 1.19 reads memory of malloc() that it has
        not set; the variables have it zeroed."""
        env = {**self.fabric.env, "MALLOC_PERTURB_": "255",
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":malloc_fill_byte=0"}
        process = self.fabric.start("n2", *argv, env=env)
        out = self.fabric.finish(process)
        assert process.returncode == 0, out
        return out


@pytest.fixture(scope="module")
def target(pair, tmp_path_factory):
    target = Target(pair, tmp_path_factory.mktemp("tgt"))
    yield target
    kill(target.daemon)


def test_iser_initiators(target):
    assert "VIRTUAL-DISK" in target.initiate("iscsi-inq")
    assert f"Total size:{DISK_BYTES}" in target.initiate("iscsi-readcapacity16")
    assert "iops average" in target.initiate("iscsi-perf", "-t", 1, "-m", 16, "-b", 8)


def test_iser_semantics(target):
    """Suites of libiscsi's own tests: data goes to the disk and comes back the same. Those
    that are left out fail for what tgt or libiscsi lacks: docs/LIMITS.md."""
    suites = ["ReadCapacity16", "Read16", "WriteVerify16"]
    names = ",".join(f"SCSI.{suite}" for suite in suites)
    out = target.initiate("iscsi-test-cu", "-n", "-s", "--dataloss", "-t", names)
    assert "FAIL" not in out, out


@pytest.mark.no_sanitizer("qemu-io does not start under a sanitizer's runtime")
def test_iser_by_qemu(target):
    """QEMU's block layer writes the disk, eight requests at a time, and reads it back. No request is
    larger than 256 KiB: libiscsi refuses a larger one (ENOMEM), and crashes in the next command."""
    places = range(0, 4 << 20, 256 << 10)
    disk = f"driver=iscsi,transport=iser,portal={SERVER_IP}:3260,target={TARGET},lun=1,initiator-name={INITIATOR}"
    words = []
    for start in places[::8]:
        words += [f"aio_write -P {1 + (n >> 18)} {n} 256k" for n in range(start, start + (2 << 20), 256 << 10)]
        words += ["aio_flush"]
    words += [f"read -P {1 + (n >> 18)} {n} 256k" for n in places]
    out = target.run("qemu-io", "--image-opts", disk, *(word for command in words for word in ("-c", command)))
    assert out.count("wrote 262144/262144 bytes") == out.count("read 262144/262144 bytes") == len(places), out
    assert target.disk.read_bytes()[:4 << 20] == b"".join(bytes([1 + (n >> 18)]) * (256 << 10) for n in places)


def test_iser_while_packets_are_lost(pair, target):
    """Packets in the middle of messages: the next one tells of each loss, so that it costs no ACK
    time-out, for which libiscsi does not wait (docs/LIMITS.md)."""
    rule = int(pair.softib("fault", "add", *"link n1:1 drop every=41 dir=out "
                           "opcode=rc_rdma_write_middle".split()).split(":")[0])
    try:
        assert "iops average" in target.initiate("iscsi-perf", "-t", 1, "-m", 1, "-b", 256)
        hits = {row["id"]: row["hits"] for row in pair.json("fault", "list")["rules"]}
        assert hits[rule] > 20, hits
    finally:
        pair.softib("fault", "clear", "all")
    test_iser_semantics(target)


def test_iser_connections_end(pair, target):
    """All that initiators held is gone but tgtd's own listener."""
    def idle():
        return len(listeners(pair)) == 1 and "I_T nexus: " not in target.tgtadm(
            "--op", "show", "--mode", "target")

    target.initiate("iscsi-inq")
    wait_until(idle, "tgtd forgets its initiators")


@pytest.fixture
def prompt_target(tmp_path):
    """Its connections notice a loss after a tenth of a second, not after two: libiscsi waits for
    one second (docs/LIMITS.md)."""
    with Fabric("pair", sm="softib-sm --packet-life 14") as fabric:
        target = Target(fabric, tmp_path)
        yield target
        kill(target.daemon)


def test_iser_over_a_flapping_link(prompt_target):
    """The connection outlives the flaps, commands go on after each, and none fails."""
    fabric = prompt_target.fabric
    session = fabric.start("n2", "iscsi-perf", "-i", INITIATOR, "-t", 10, "-m", 4, "-b", 64, URL,
                           env={**fabric.env, "MALLOC_PERTURB_": "255"})
    fabric.wait_for_traffic("n2", 100)
    for _ in range(6):
        fabric.softib("link", "n2:1", "down")
        fabric.softib("link", "n2:1", "up")
        fabric.wait_for_traffic("n2", 1000)
    out = fabric.finish(session)
    assert session.returncode == 0 and "finished" in out, out
    assert "Reconnect" not in out and "revents is not POLLIN" not in out, out
