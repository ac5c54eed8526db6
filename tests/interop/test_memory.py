# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that unmap registered memory while it is in use, by every way that data takes: none
of them dies of it, and the peer is told what docs/MEMORY.md says."""
import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from interop.fabric import BUILD, Fabric, wait_until
from modes import MODES

SIDE = Path(__file__).with_name("memory_side.py")
OK, LOC_PROT_ERR, REM_ACCESS_ERR = 0, 4, 10
LENGTHS = [8, 300, 5000, 200000]
WARM = 64  # requests after which lanes and windows are there


class Side:
    """memory_side.py on a node."""

    def __init__(self, fabric, node, mode, python=()):
        self.process = subprocess.Popen(
            fabric.command(node, [sys.executable, *python, SIDE]), env=dict(fabric.env, **MODES[mode]),
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        fabric.running.append(self.process)
        self.info = json.loads(self.process.stdout.readline())

    def __call__(self, do, **words):
        self.process.stdin.write(json.dumps({"do": do, **words}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"it died: {self.process.wait(10)}"
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture(scope="module", name="fabric")
def a_fabric():
    with Fabric("pair") as made:
        yield made


@contextlib.contextmanager
def sides(fabric, mode, **options):
    """Two that are connected, and know the way to each other."""
    a, b = (Side(fabric, node, mode, **options) for node in ("n1", "n2"))
    a("connect", **b.info)
    b("connect", **a.info)
    remote = {"addr": b.info["addr"], "rkey": b.info["rkey"]}
    for _ in range(2):
        b("receive", length=64)
        assert a("request", opcode="send", length=8) == OK
        assert b("received") == OK
    yield a, b, remote
    a.end()
    b.end()


in_each_mode = pytest.mark.parametrize("mode", MODES)


@in_each_mode
@pytest.mark.parametrize("length", LENGTHS)
def test_the_target_s_memory_is_gone(fabric, mode, length):
    """What is written is dropped; who reads is told."""
    with sides(fabric, mode) as (a, b, remote):
        b("receive", length=length, mine=True)
        assert b("unmap") == 0
        assert a("request", opcode="write", length=length, times=3, **remote) == OK
        assert a("request", opcode="send", length=length) == OK
        assert b("received") == OK
        assert a("request", opcode="read", length=length, **remote) == REM_ACCESS_ERR


@in_each_mode
def test_the_target_of_an_atomic_is_gone(fabric, mode):
    with sides(fabric, mode) as (a, b, remote):
        b("unmap")
        assert a("request", opcode="add", length=8, **remote) == REM_ACCESS_ERR


@in_each_mode
@pytest.mark.parametrize("opcode", ["send", "write", "read"])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_initiator_s_memory_is_gone(fabric, mode, opcode, length):
    with sides(fabric, mode) as (a, b, remote):
        b("receive", length=length)
        if opcode != "send":
            assert a("request", opcode=opcode, length=8, times=WARM, **remote) == OK
        assert a("unmap") == 0
        assert a("request", opcode=opcode, length=length, mine=True, **remote) == (
            OK if opcode == "read" else LOC_PROT_ERR)


@in_each_mode
@pytest.mark.parametrize("whose", ["sender", "receiver"])
def test_the_memory_of_a_datagram_is_gone(fabric, mode, whose):
    with sides(fabric, mode) as (a, b, _):
        for hit in [False] * 3 + [True]:
            b("receive", kind="ud", length=1064, mine=hit and whose == "receiver")
            if hit:
                assert (a if whose == "sender" else b)("unmap") == 0
            status = a("datagram", length=1000, ud=b.info["ud"], mine=hit and whose == "sender")
            if hit and whose == "sender":
                assert status == LOC_PROT_ERR
            else:
                assert status == OK and b("received") == OK


def test_a_window_outlives_its_mapping(fabric):
    """As an adapter's pages do: the peer has them until they are deregistered."""
    with sides(fabric, "all") as (a, b, remote):
        def by_window():
            return fabric.json("status")["window_operations"] - before

        def write():
            return a("request", opcode="write", length=5000, times=WARM, **remote)

        before = fabric.json("status")["window_operations"]
        wait_until(lambda: write() != OK or by_window(), "the window is given and taken")
        before += by_window()
        assert b("unmap") == 0
        for opcode in ("write", "read", "add"):
            assert a("request", opcode=opcode, length=8 if opcode == "add" else 5000,
                     times=WARM, **remote) == OK
        assert by_window() > 2 * WARM


@in_each_mode
def test_a_program_that_reports_its_crashes(fabric, mode):
    """Its handler is there before ours; it is not asked."""
    with sides(fabric, mode, python=("-X", "faulthandler")) as (a, b, remote):
        b("unmap")
        assert a("request", opcode="write", length=5000, times=3, **remote) == OK


@pytest.mark.parametrize("mode", MODES)
def test_a_null_region(fabric, mode):
    """What is read there is zero, and what is written is discarded, by every way that data takes."""
    assert fabric.run("n1", "env", *(f"{k}={v}" for k, v in MODES[mode].items()),
                      BUILD / "tests/programs/null_region") == "discarded\n"
