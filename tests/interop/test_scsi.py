# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libiscsi's own tests judge the disk of src/scsi, behind an iSCSI target for tests, and so do
sg3-utils, behind ioctl(SG_IO). It is the disk that SRP targets have."""
import os
import re
import subprocess

import pytest

from interop.fabric import BUILD, TIMEOUT

FRONT = BUILD / "tests/scsi/iscsi_front"

# CompareAndWrite.Simple and .Miscompare are left out: they count to 256 blocks in a field of
# eight bits, and expect an error for the command that then names none. WriteSame16.Unmap
# writes more at once than page B0 allows.
SUITES = [
    "CompareAndWrite.Unwritten", "CompareAndWrite.DpoFua", "CompareAndWrite.InvalidDataOutSize",
    "Inquiry", "Mandatory", "ModeSense6", "PrinReadKeys", "PrinServiceactionRange",
    "PrinReportCapabilities", "ProutRegister", "ProutReserve", "ProutClear", "ProutPreempt", "Read6",
    "Read10", "Read16", "ReadCapacity10", "ReadCapacity16", "ReportSupportedOpcodes",
    "TestUnitReady", "Unmap", "Verify10", "Write10", "Write16", "WriteSame10",
    "WriteSame16.Simple", "WriteSame16.BeyondEol", "WriteSame16.UnmapUnaligned",
    "WriteSame16.UnmapUntilEnd", "WriteSame16.UnmapVPD", "WriteSame16.InvalidDataOutSize",
]


@pytest.fixture
def url():
    """Of the disk."""
    with subprocess.Popen([FRONT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as front:
        yield f"iscsi://127.0.0.1:{front.stdout.readline().strip()}/iqn.2026-01.example:disk/0"
        front.stdin.close()


def test_a_disk_passes_the_tests_of_libiscsi(url):
    """Release 1.19 reads memory of malloc() that it has not set; the variables zero it."""
    env = {**os.environ, "MALLOC_PERTURB_": "255",
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":malloc_fill_byte=0"}
    done = subprocess.run(["iscsi-test-cu", "-n", "-s", "--dataloss",
                           "-t", ",".join(f"ALL.{suite}" for suite in SUITES), url],
                          env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0 and "FAILED" not in done.stdout, done.stdout + done.stderr
    ran, passed = re.search(r"tests +\d+ +(\d+) +(\d+) +0", done.stdout).groups()
    assert ran == passed and int(ran) >= 80, done.stdout


# --- sg3-utils ------------------------------------------------------------------------

CONFLICT = 24  # exit status of sg3-utils


@pytest.fixture
def sg(tmp_path):
    """Run a program on a disk that loses its power behind each, as the initiator port @host."""
    disk = tmp_path / "disk"
    with disk.open("wb") as file:
        file.truncate(1 << 20)

    def run(*argv, host=1, status=0):
        preload = [os.environ.get("LD_PRELOAD"), str(BUILD / "tests/scsi/sg_front.so")]
        env = {**os.environ, "LD_PRELOAD": ":".join(filter(None, preload)), "SG_DISK": str(disk),
               "SG_INITIATOR": str(host)}
        done = subprocess.run([*argv, str(disk)], env=env, capture_output=True, text=True, timeout=TIMEOUT,
                              check=False)
        assert done.returncode == status, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout
    return run


def reserve(sg, action, *options, host=1):
    return sg("sg_persist", "--no-inquiry", "--out", f"--{action}", *options, host=host)


def keys(sg):
    return re.findall("^ +(0x[0-9a-f]+)$", sg("sg_persist", "--no-inquiry", "--in", "--read-keys"), re.M)


def test_reservations_outlast_a_loss_of_power(sg):
    assert "Persist Through Power Loss Capable(PTPL_C): 1" in sg("sg_persist", "--report-capabilities")
    reserve(sg, "register", "--param-sark=0xabc")
    assert keys(sg) == []
    reserve(sg, "register", "--param-sark=0xabc", "--param-aptpl")
    reserve(sg, "register", "--param-sark=0xdef", "--param-aptpl", host=2)
    assert keys(sg) == ["0xabc", "0xdef"]
    assert "Persist Through Power Loss Active(PTPL_A): 1" in sg("sg_persist", "--report-capabilities")
    reserve(sg, "reserve", "--param-rk=0xabc", "--prout-type=1")
    assert "type: Write Exclusive" in sg("sg_persist", "--in", "--read-reservation")
    sg("sg_sync")
    sg("sg_sync", host=2, status=CONFLICT)
    reserve(sg, "preempt", "--param-rk=0xdef", "--param-sark=0xabc", "--prout-type=3", host=2)
    assert keys(sg) == ["0xdef"]
    sg("sg_sync", status=CONFLICT)
    sg("sg_sync", host=2)
    reserve(sg, "register", "--param-rk=0xdef", "--param-sark=0xdef", host=2)  # without APTPL
    assert keys(sg) == []


def test_what_sg3_utils_read(sg):
    assert "Product identification: SCSI disk" in sg("sg_inq")
    assert "Number of logical blocks=2048" in sg("sg_readcap", "--long")
    assert "Unmap command supported (LBPU): 1" in sg("sg_vpd", "--page=lbpv")
    assert re.search("^ 5f +5 +10 .*Persistent reserve out, preempt and abort", sg("sg_opcodes"), re.M)
    sg("sg_unmap", "--lba=0", "--num=8", "--force")
    sg("sg_verify", "--lba=0", "--count=16")
