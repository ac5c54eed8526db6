# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A program and all that it leaves behind.

Tests start daemons, which are nobody's children. Whoever calls adopt() is made
their parent by the kernel, so that none outlives the run of the tests, however
that ends.
"""
import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 10  # for those who are about to end by themselves
REAP_S = 0.1  # how long a child that ended may stay in the table of processes
LOG_MAX = 64 << 20
SHOWN_MAX = 4 << 20
_libc = ctypes.CDLL(None)
running = set()  # programs that run() waits for


def interrupt(*_):
    """Whoever ends the run of the tests ends it in order."""
    for process in list(running):
        process.send_signal(signal.SIGINT)


def adopt():
    """Become the parent of all descendants whose parents end."""
    signal.signal(signal.SIGTERM, interrupt)
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """{pid: name} of this process's children that have not ended."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, rest = path.read_text(errors="replace").split("(", 1)[1].rsplit(")", 1)
            state, parent = rest.split()[:2]
            if int(parent) == os.getpid() and state != "Z":
                found[int(path.parent.name)] = name
    return found


def reap():
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def end_all():
    """Kill whatever is left. Return: the names of those that were."""
    end, names = time.monotonic() + GRACE_S, []
    while children() and time.monotonic() < end:
        reap()
        time.sleep(0.05)
    while left := children():
        for pid, name in left.items():
            names.append(name)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap()
        time.sleep(0.05)
    reap()
    return names


def run(command, log, **kwargs):
    """Run @command; what it prints goes to the file @log and is shown, both up
    to a limit. Return: its exit status."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0), **kwargs)
    running.add(process)
    size = 0
    try:
        with open(log, "wb") as file:
            while True:
                reap_others()
                if not select.select([process.stdout], [], [], REAP_S)[0]:
                    continue
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                if not chunk:
                    break
                if size < LOG_MAX:
                    file.write(chunk)
                if size < SHOWN_MAX <= size + len(chunk):
                    chunk += f"\n... more of it in {log}\n".encode()
                if size < SHOWN_MAX:
                    sys.stdout.buffer.write(chunk)
                    sys.stdout.buffer.flush()
                size += len(chunk)
        return process.wait()
    finally:
        running.discard(process)


def reap_others():
    """Who adopts must bury: all but those whose status is wanted."""
    with contextlib.suppress(ChildProcessError):
        while True:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if not ended or ended.si_pid in {process.pid for process in running}:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
