# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Locked memory: softib locks none, so `ulimit -l` limits a program only where
--memlock asked for the accounting of hardware."""
import contextlib
import os
import resource
import subprocess
import sys

import pytest

from interop.fabric import NOBODY, SOFTIB, Fabric, Failed

USER = () if os.getuid() else NOBODY  # root may lock what it likes
REFUSED = "Couldn't register MR"


@contextlib.contextmanager
def locked_memory(kib):
    """Whatever is started meanwhile has this `ulimit -l`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (kib << 10, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))


def exchange(fabric, size):
    fabric.pair("ibv_rc_pingpong", "-s", size, "-n", "20")


def test_nothing_is_limited():
    with Fabric(user=USER) as fabric, locked_memory(64):
        exchange(fabric, 1 << 20)


def test_with_memlock_the_limit_binds():
    with Fabric(up_args=["--memlock"], user=USER) as fabric, locked_memory(64):
        exchange(fabric, 16384)
        with pytest.raises(Failed, match=REFUSED):
            exchange(fabric, 1 << 20)


def kernel_lets_us_lock():
    """More than the limit: have we CAP_IPC_LOCK in the kernel's opinion?"""
    script = "import ctypes; libc = ctypes.CDLL(None); m = ctypes.create_string_buffer(9); " \
             "exit(libc.mlock(m, 9) != 0)"
    with locked_memory(0):
        return not subprocess.run([sys.executable, "-c", script], check=False).returncode


def test_who_may_lock_is_not_limited():
    refused = contextlib.nullcontext() if kernel_lets_us_lock() else \
        pytest.raises(Failed, match=REFUSED)
    with Fabric(up_args=["--memlock"]) as fabric, locked_memory(64), refused:
        exchange(fabric, 1 << 20)


def test_run_takes_it_too(home):
    drop = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if not os.getuid() \
        else []
    done = subprocess.run([SOFTIB, "run", "--memlock", "--", "prlimit", "--memlock=65536", *drop,
                           "ibv_rc_pingpong", "-s", str(1 << 20)],
                          env=dict(os.environ, XDG_RUNTIME_DIR=str(home)), timeout=120,
                          capture_output=True, text=True, check=False)
    assert done.returncode and REFUSED in done.stdout + done.stderr, done
