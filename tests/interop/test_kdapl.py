# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""kDAPL: modules on the kernel's Direct Access Transport interface, at both ends."""
from interop.fabric import BUILD
from interop.test_modules import MODULES, load_example, log_of, modules, softib

TRY = MODULES / "kdapl_try.so"
SERVER_IP = "10.1.0.2"  # n2's


def load_kdapl(fabric):
    for node in ("n1", "n2"):
        assert softib(fabric, "modprobe", node, "kdapl") == (0, "")


def unload(fabric, *names):
    for node in ("n1", "n2"):
        for name in names:
            assert softib(fabric, "rmmod", node, name) == (0, "")


def test_every_call(pair):
    """Connections of each kind, transfers, binds, refusals: tests/modules/kdapl_try.c compares."""
    status, said = softib(pair, "modprobe", "n1", "udapl")
    assert status == 1 and "there is no module 'udapl' of softib's own" in said, said
    status, said = softib(pair, "modprobe", "n1", TRY)
    assert status == 1 and "undefined symbol: dat_" in said and "loaded first" in said, said
    load_kdapl(pair)
    assert softib(pair, "modprobe", "n2", TRY) == (0, "")
    assert softib(pair, "modprobe", "n1", TRY, f"peer={SERVER_IP}") == (0, "")
    assert "in use by kdapl_try" in softib(pair, "rmmod", "n1", "kdapl")[1]
    unload(pair, "kdapl_try", "kdapl")
    log = log_of(pair)
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
    assert "kdapl: crashed" not in log and log.count("crashed: SIG") == 1, log
