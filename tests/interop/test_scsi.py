# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libiscsi's own tests judge the disk of src/scsi, behind an iSCSI target for tests. It is the
disk that SRP targets have."""
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
