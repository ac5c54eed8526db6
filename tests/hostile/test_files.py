# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Attacks on the processes that keep the files of nodes live (tools/softib/sysfs_live.c) and the one that keeps
the fabric (tools/softib/session.c): programs of the fabric's user can open these files and signal these processes."""
import contextlib
import fcntl
import os
import re
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from hostile.attack import PATIENCE, innocents_go_on
from hostile.test_softibd import stopped
from interop.fabric import wait_until
from interop.test_sysfs import PORT, servers

FILE = "infiniband/softib0/ports/1/counters/port_xmit_packets"
LIMIT = 200  # descriptors


def keepers(shared):
    return [pid for pid in servers(shared)
            if Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").rstrip("\0").endswith("\0n3")]


def begin_keeper(shared):
    """Unless there is one. It has few descriptors."""
    subprocess.run(["prlimit", f"--nofile={LIMIT}:{LIMIT}", *shared.command("n3", ["true"])], env=shared.env,
                   check=True, timeout=PATIENCE)
    return keepers(shared)


@pytest.fixture(name="keeper")
def the_process_of_a_node(shared):
    for pid in keepers(shared):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: begin_keeper(shared), "another one is there")
    return keepers(shared)[0]


def lock_owner(path):
    """The process that has locked the file by fcntl(2)."""
    locks = Path("/proc/locks").read_text(encoding="ascii")
    return int(re.search(rf"POSIX .* (\d+) \S+:{path.stat().st_ino} ", locks)[1])


def is_live(shared):
    """Does a program that starts now read what the port has counted?"""
    before = int(shared.run("n3", "cat", f"{PORT}/counters/port_xmit_packets", timeout=PATIENCE))
    shared.pair("ibv_rc_pingpong", "-n", "100", server="n3", client="n4")
    return int(shared.run("n3", "cat", f"{PORT}/counters/port_xmit_packets", timeout=PATIENCE)) >= before + 100


def test_files_that_are_kept_open(shared, keeper):
    """A program opens a live file more often than the process that keeps it has descriptors: this
    process goes on."""
    file = shared.dir / "sys/n3" / FILE
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    with contextlib.ExitStack() as files:
        for _ in range(LIMIT + 100):
            files.enter_context(file.open(encoding="ascii"))
        assert keepers(shared) == [keeper]
        assert is_live(shared)
        innocents_go_on(shared)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_process_of_a_nodes_files_is_stopped(shared, keeper):
    """Programs start and communicate; only who reads a live file waits, until that process goes on or is
    killed."""
    with stopped(keeper):
        shared.run("n3", "true", timeout=PATIENCE)
        innocents_go_on(shared)
        reader = shared.start("n3", "cat", f"{PORT}/counters/port_xmit_packets")
        wait_until(lambda: is_breaking(shared), "somebody opens the file")
        os.kill(keeper, signal.SIGKILL)
    assert re.fullmatch(r"\d+\n", shared.finish(reader, PATIENCE))
    assert is_live(shared)


def is_breaking(shared):
    """Does somebody wait for the lease of the file?"""
    inode = (shared.dir / "sys/n3" / FILE).stat().st_ino
    locks = Path("/proc/locks").read_text(encoding="ascii")
    return re.search(rf"LEASE +BREAKING .*:{inode} ", locks)


def test_a_lock_that_is_never_given_back(shared, keeper):
    """The lock of those who start a program on a node: they wait for it, but not for ever."""
    with open(shared.dir / "sys/n3.setup", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        program = shared.start("n3", "true")
        innocents_go_on(shared)
        shared.finish(program, 2 * PATIENCE)
        assert program.returncode == 0
    assert keepers(shared) == [keeper]


def test_the_process_of_the_fabric_is_stopped(shared):
    """softibd and programs do without it."""
    session = lock_owner(shared.dir / "softib.lock")
    with stopped(session):
        innocents_go_on(shared)
        shared.softib("status", timeout=PATIENCE)
