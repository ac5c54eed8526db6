# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Sudden death of a program: its peer gets hardware's error, softibd keeps nothing."""
import os
import signal

import pytest

from interop.fabric import SANITIZED, _ports, wait_until


def open_files(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_kib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def softibd_pid(fabric):
    return int((fabric.dir / "pid").read_text())


def perftest_process(started):
    """`softib exec` becomes the program it starts: same pid, or its child."""
    children = f"/proc/{started.pid}/task/{started.pid}/children"
    with open(children, encoding="ascii") as f:
        kids = f.read().split()
    return int(kids[0]) if kids else started.pid


def start_pair(fabric, program, *args):
    port = next(_ports)
    flags = ["-d", "softib0", "-p", port, *args]
    server = fabric.serve("n1", program, *flags, port=port)
    client = fabric.start("n2", program, *flags, "127.0.0.1")
    wait_until(lambda: sum(r.get("type") == "qp" for r in fabric.user_resources()) >= 2
               or client.poll() is not None, "both have a QP")
    return server, client


def kill_one(fabric, victim_is_server, program="ib_write_bw", under_way=False):
    """@under_way: when both have said all that they say by TCP, not before"""
    server, client = start_pair(fabric, program, "-D", "8")
    if under_way:
        fabric.wait_for_traffic("n2", 100)
    victim, other = (server, client) if victim_is_server else (client, server)
    os.kill(perftest_process(victim), signal.SIGKILL)
    victim.wait(60)
    return other


# Who requests sees its retries exceeded (status 12). Who only responds sees
# nothing, on hardware as here: perftest then misses its peer's TCP connection,
# and whether that makes its exit status is perftest's affair.
@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw", "ib_read_bw"])
def test_the_requester_exceeds_its_retries(pair, program):
    other = kill_one(pair, True, program, under_way=True)
    out = pair.finish(other, 60)
    assert other.returncode != 0, out
    assert "status 12" in out or "syndrom 0x81" in out, out
    wait_until(lambda: not pair.user_resources(), "softibd forgets both")
    pair.pair(program, "-n", "100")


@pytest.mark.parametrize("program", ["ib_send_bw", "ib_write_bw"])
def test_the_responder_is_left_alone(pair, program):
    other = kill_one(pair, False, program, under_way=True)
    out = pair.finish(other, 60)
    assert "Couldn't read remote address" in out, out
    assert "status" not in out, out
    wait_until(lambda: not pair.user_resources(), "softibd forgets both")
    pair.pair(program, "-n", "100")


def test_many_kills_leave_nothing(pair):
    """A portion of `make check-kill`."""
    loop(pair, 10)


def loop(fabric, count, show=None):
    pid = softibd_pid(fabric)
    files = memory = None
    for n in range(count):
        other = kill_one(fabric, n % 2 == 0)
        other.kill()
        other.communicate()
        wait_until(lambda: not fabric.user_resources(), "softibd forgets both")
        if n == 1:
            files, memory = open_files(pid), resident_kib(pid)
        if show:
            show(n + 1, open_files(pid), resident_kib(pid))
    # descriptors that programs passed are closed by a thread of its own
    wait_until(lambda: open_files(pid) <= files, lambda: f"{files} open files became {open_files(pid)}")
    if not SANITIZED:  # they hold freed memory back, and tell of leaks themselves
        assert resident_kib(pid) <= memory + 256, f"{memory} KiB grew to {resident_kib(pid)}"
    fabric.pair("ib_write_bw", "-n", "100")
