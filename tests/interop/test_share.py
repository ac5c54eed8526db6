# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Device, PD, MR and DM of one process in another, which was given the descriptor
(ibv_import_device(3))."""
import os
import signal

import pytest

from interop.fabric import BUILD, Fabric, wait_until
from interop.told import Told

PROGRAM = BUILD / "tests/programs/share_objects"
BYTES = 200000
AT = 1000  # of the region in its first page: its ends share pages with what is not registered
SIZES = 1, 8, 64, 1000, 5000, 150000
DM = 1
GONE = "local protection error"
DENIED = "remote access error"


@pytest.fixture(scope="module")
def fabric():
    with Fabric() as fabric:
        yield fabric


class Sharing:
    """Two processes, of which the second has imported the objects of the first."""

    def __init__(self, fabric, path):
        self.fabric = fabric
        self.exporter = Told(fabric, "n1", PROGRAM)
        self.importer = Told(fabric, "n1", PROGRAM)
        self.path = path
        self.objects = self.exporter.numbers("make", BYTES, AT)
        assert self.exporter.do("fill", 1) == "filled"
        assert self.give(self.importer) == "imported"
        assert self.importer.do("import", *self.objects) == "imported"
        assert self.importer.do("pair") == "connected"

    def give(self, importer):
        self.path.unlink(missing_ok=True)
        assert self.exporter.do("give", self.path) == "listening"
        answer = importer.do("take", self.path)
        assert self.exporter.hear() == "given"
        return answer

    def end(self):
        self.importer.die()
        self.exporter.die()


@pytest.fixture
def sharing(fabric, tmp_path):
    sharing = Sharing(fabric, tmp_path / "socket")
    yield sharing
    sharing.end()


def test_requests_use_the_memory_of_the_other_process(sharing):
    exporter, importer = sharing.exporter, sharing.importer
    for size in SIZES:
        assert importer.do("send", 0, size, 0, 1) == "right"
        assert importer.do("read", 0, size, 0, 1) == "right"
    for number, size in enumerate(SIZES, 2):
        assert importer.do("receive", 0, size, 24, number) == "right"
        assert exporter.do("check", number, 24, size) == "right"
        assert importer.do("write", 0, size, BYTES - size, number) == "right"
        assert exporter.do("check", number, BYTES - size, size) == "right"
    assert importer.do("twice", sharing.objects[1]) == "undone"
    assert exporter.do("fill", 20) == "filled"
    assert importer.do("send", 0, BYTES, 0, 20) == "right"
    # beyond it there is nothing
    assert importer.do("send", 0, BYTES + 1, 0, 20) == GONE


def test_atomics_are_made_where_the_memory_is(sharing):
    importer = sharing.importer
    assert importer.do("write", 0, 8, 0, 0) == "right"
    first = importer.numbers("add", 0, 0, 5)[0]
    assert importer.numbers("add", 0, 0, 0) == [first + 5]
    assert importer.numbers("swap", 0, 0, first + 5, 77) == [first + 5]
    assert importer.numbers("swap", 0, 0, 1, 2) == [77]
    assert importer.numbers("add", 0, 0, 0) == [77]


def test_device_memory_is_one(sharing):
    exporter, importer = sharing.exporter, sharing.importer
    assert exporter.do("dm", 1234) == "0"
    assert importer.do("has", 0) == "1234"
    assert importer.do("write", DM, 2048, 0, 3) == "right"
    assert importer.do("send", DM, 2048, 0, 3) == "right"
    assert importer.do("add", DM, 0, 0) == str(int.from_bytes(
        bytes((3 * 31 + i * 7) & 0xff for i in range(8)), "little"))
    assert exporter.do("has", 0) == importer.do("has", 0)


def test_a_region_ends_where_it_was_registered(sharing):
    exporter, importer = sharing.exporter, sharing.importer
    assert importer.do("send", 0, 100, 0, 1) == "right"
    assert exporter.do("dereg") == "0"
    assert importer.do("send", 0, 100, 0, 1) == GONE
    assert importer.do("pair") == "connected"
    assert importer.do("read", 0, 100, 0, 1) == DENIED
    assert importer.do("pair") == "connected"
    assert importer.do("write", 0, 100, 0, 1) == DENIED
    assert importer.do("pair") == "connected"
    assert importer.do("add", 0, 0, 1) == DENIED
    assert importer.do("pair") == "connected"
    assert importer.do("send", DM, 4, 0, 0) in ("right", "wrong bytes")
    assert importer.do("unimport") == "unimported"
    assert importer.do("end") == "0"


def test_memory_that_was_unmapped_is_gone(sharing):
    assert sharing.exporter.do("unmap") == "0"
    assert sharing.importer.do("send", 0, 5000, 0, 1) == GONE
    assert sharing.importer.do("pair") == "connected"
    assert sharing.importer.do("write", 0, 5000, 0, 1) == DENIED


def test_what_a_dead_process_has_shared(sharing, tmp_path):
    """Its memory is gone, its PD and its device memory are not."""
    importer = sharing.importer
    assert sharing.exporter.do("dm", 4711) == "0"
    sharing.exporter.die()
    assert importer.do("send", 0, 100, 0, 1) == GONE
    assert importer.do("pair") == "connected"
    assert importer.do("read", 0, 100, 0, 1) == DENIED
    assert importer.do("pair") == "connected"
    assert importer.do("has", 0) == "4711"
    assert importer.do("own") == "registered"
    assert importer.do("send", 2, 4096, 0, 9) == "right"
    assert importer.do("write", DM, 100, 0, 5) == "right"
    # the importer's descriptor is as good
    sharing.path.unlink()
    other = Told(sharing.fabric, "n1", PROGRAM)
    importer.tell("give", sharing.path)
    assert importer.hear() == "listening"
    assert other.do("take", sharing.path) == "imported"
    assert importer.hear() == "given"
    other.die()


def test_a_process_that_is_stopped_delays_but_is_not_mistaken(sharing):
    exporter, importer = sharing.exporter, sharing.importer
    assert importer.do("send", 0, 100, 0, 1) == "right"
    exporter.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, exporter.process.pid, os.WSTOPPED | os.WNOWAIT)  # all threads are
    assert importer.do("send", 0, 100, 0, 1) == GONE
    exporter.process.send_signal(signal.SIGCONT)
    assert exporter.do("fill", 6) == "filled"

    def answers():
        assert importer.do("pair") == "connected"
        return importer.do("send", 0, 100, 0, 6) == "right"

    wait_until(answers, "the process that continues answers")


def test_a_child_imports_what_it_inherited(fabric):
    child = Told(fabric, "n1", PROGRAM)
    objects = child.numbers("make", BYTES, AT)
    assert child.do("fill", 1) == "filled"
    parent = child.numbers("fork")[0]
    assert child.do("inherit") == "imported"
    assert child.do("import", *objects) == "imported"
    assert child.do("pair") == "connected"
    assert child.do("send", 0, 5000, 0, 1) == "right"
    assert child.do("receive", 0, 5000, 0, 2) == "right"
    assert child.do("send", 0, 5000, 0, 2) == "right"
    os.kill(parent, signal.SIGKILL)
    child.process.stdin.close()
    child.process.wait()


def test_a_descriptor_outlives_no_context(sharing):
    """It names what exists: when all who share the objects have ended, nothing."""
    late = Told(sharing.fabric, "n1", PROGRAM)
    sharing.path.unlink()
    sharing.importer.die()
    assert sharing.exporter.do("give", sharing.path) == "listening"
    assert late.do("take", sharing.path) == "imported"
    assert sharing.exporter.hear() == "given"
    late.die()
