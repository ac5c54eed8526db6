# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""kDAPL: modules on the kernel's Direct Access Transport interface, at both ends."""
import re
from pathlib import Path

import pytest

from interop.fabric import BUILD, wait_until
from interop.test_modules import MODULES, load_example, log_of, modules, softib

TRY = MODULES / "kdapl_try.so"
SERVER_IP = "10.1.0.2"  # n2's
SERVER_IPV6 = "fd73:6f66:7469:6201::2"


def load_kdapl(fabric):
    for node in ("n1", "n2"):
        assert softib(fabric, "modprobe", node, "kdapl") == (0, "")


def unload(fabric, *names):
    for node in ("n1", "n2"):
        for name in names:
            assert softib(fabric, "rmmod", node, name) == (0, "")


def test_no_call_is_left_out():
    """What the headers declare, tests/modules/kdapl_try.c tries."""
    top = Path(__file__).parents[2]
    declared = {name for header in ("dat.h", "kdat.h") for name in
                re.findall(r"\b(dat_[a-z_0-9]+)\(", (top / "include/dat" / header).read_text())}
    tried = set(re.findall(r"\b(dat_[a-z_0-9]+)\(", (top / "tests/modules/kdapl_try.c").read_text()))
    assert len(declared) > 60 and declared <= tried, declared - tried


@pytest.mark.parametrize("peer", [SERVER_IP, SERVER_IPV6])
def test_every_call(pair, peer):
    """Connections of each kind, transfers, binds, refusals: tests/modules/kdapl_try.c compares."""
    before = len(log_of(pair)) if (pair.dir / "softibd.log").exists() else 0
    status, said = softib(pair, "modprobe", "n1", "udapl")
    assert status == 1 and "there is no module 'udapl' of softib's own" in said, said
    status, said = softib(pair, "modprobe", "n1", TRY)
    assert status == 1 and "undefined symbol: dat_" in said and "loaded first" in said, said
    load_kdapl(pair)
    assert softib(pair, "modprobe", "n2", TRY) == (0, "")
    assert softib(pair, "modprobe", "n1", TRY, f"peer={peer}") == (0, "")
    assert "in use by kdapl_try" in softib(pair, "rmmod", "n1", "kdapl")[1]
    unload(pair, "kdapl_try", "kdapl")
    log = log_of(pair)[before:]
    for line in ("n1 kdapl_try: done, 0 failures", "n1 kdapl_try: over, 0 failures",
                 "n2 kdapl_try: over, 0 failures"):
        assert line in log, log
    assert not modules(pair)
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "kdapl"]


def test_example(pair):
    """n1 asks n2, twice, and an address where nobody listens."""
    load_kdapl(pair)
    assert softib(pair, "modprobe", "n2", BUILD / "examples/kdapl_message.so") == (0, "")
    for text in ("good morning", "x" * 63):
        log = load_example(pair, "kdapl_message", f"peer={SERVER_IP}", f"text={text}")
        assert f"n2 kdapl_message: received '{text}'" in log, log
        assert f"n1 kdapl_message: the answer is '{text.upper()}'" in log, log
    assert softib(pair, "rmmod", "n2", "kdapl_message") == (0, "")
    log = load_example(pair, "kdapl_message", f"peer={SERVER_IP}")
    assert f"no connection to {SERVER_IP}: event 0x4003" in log, log  # non-peer rejected
    unload(pair, "kdapl")


def test_rping(pair):
    """A program on librdmacm, which no one here wrote, as the peer."""
    assert softib(pair, "modprobe", "n2", "kdapl") == (0, "")
    assert softib(pair, "modprobe", "n2", MODULES / "kdapl_rping.so") == (0, "")
    for args in (["-a", SERVER_IP], ["-a", SERVER_IPV6, "-S", 60000]):
        said = pair.run("n1", "rping", "-c", *args, "-v", "-V", "-C", 5)
        assert said.count("ping data: rdma-ping-") == 5, said
    wait_until(lambda: log_of(pair).count("n2 kdapl_rping: the connection is over: 0x4005") == 2,
               "the server hears of both disconnects")
    for name in ("kdapl_rping", "kdapl"):
        assert softib(pair, "rmmod", "n2", name) == (0, "")
    log = log_of(pair)
    assert "n2 kdapl_rping: over, 0 failures" in log, log


def test_random_calls(pair):
    """Calls in any order, with handles that are valid, freed or of another kind."""
    assert softib(pair, "modprobe", "n1", "kdapl") == (0, "")
    for seed in (1, 2):
        args = (MODULES / "kdapl_storm.so", f"seed={seed}", "steps=2000")
        assert softib(pair, "modprobe", "n1", *args) == (0, "")
        assert softib(pair, "rmmod", "n1", "kdapl_storm") == (0, "")
        assert not [row for row in pair.json("resource", "show") if row["comm"] == "kdapl"]
    assert softib(pair, "rmmod", "n1", "kdapl") == (0, "")
    assert "the IA cannot be closed" not in log_of(pair)


def test_consumers_that_misbehave(pair):
    """One crashes in an upcall, one leaves while events wait for it: others are served."""
    load_kdapl(pair)
    before = len(log_of(pair))
    status, said = softib(pair, "modprobe", "n1", TRY, "crash=1")
    assert status == 1 and "crashed" in said, said
    assert ("n1", "kdapl", "live") in modules(pair)
    assert softib(pair, "rmmod", "n1", "kdapl_try")[0] == 0
    assert softib(pair, "modprobe", "n1", TRY, "leave=1") == (0, "")
    assert softib(pair, "rmmod", "n1", "kdapl_try") == (0, "")
    assert softib(pair, "modprobe", "n2", BUILD / "examples/kdapl_message.so") == (0, "")
    log = load_example(pair, "kdapl_message", f"peer={SERVER_IP}")
    assert "n1 kdapl_message: the answer is 'HELLO'" in log, log
    assert softib(pair, "rmmod", "n2", "kdapl_message") == (0, "")
    unload(pair, "kdapl")
    log = log_of(pair)[before:]
    assert log.count("n1 kdapl: warning: a consumer left softib0-1 open") == 2, log
    assert not [row for row in pair.json("resource", "show") if row["comm"] == "kdapl"]
    assert "kdapl_try: error" not in log and "kdapl: crashed" not in log and log.count("crashed: SIG") == 1, log
