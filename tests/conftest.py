# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which cases of a file are run: tests/run says it by the environment."""
import functools
import os
import signal
import subprocess

import pytest

from interop.fabric import SANITIZED, Fabric, Failed

SAMPLE = int(os.environ.get("SOFTIB_SAMPLE", "1"))  # tests/run --sample
# a hang, not a measure of speed: no case may last longer than this beyond what it was asked to
CASE_SECONDS = 600 + int(os.environ.get("SOFTIB_SECONDS", "0"))


def pytest_configure(config):
    config.addinivalue_line("markers", "no_sanitizer(why, kind=None): not asked of a build with "
                                       "sanitizers, or with that one")
    config.addinivalue_line("markers", "other_user: somebody else than who runs the tests takes "
                                       "part; only root can let them")
    config.addinivalue_line("markers", "needs_link(type): the kernel must have this type of network interfaces, "
                                       "which some do not")
    config.addinivalue_line("markers", "only_root(why): what the case is done with asks for root")


def pytest_sessionstart(session):
    """Programs under test are interrupted. A shell that starts the tests in the
    background ignores SIGINT, and what they start would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def kernel_has_link(kind):
    """Does the kernel know this type of network interfaces? (It complains of another thing, or of nothing.)"""
    command = ["unshare", "--net", "--map-root-user", "ip", "link", "add", "link", "lo", "name", "x", "type", kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "Unknown device type" not in done.stderr


def fits(item):
    """Can this build, this kernel, and can who runs it, do what the case asks?"""
    if not all(kernel_has_link(marker.args[0]) for marker in item.iter_markers("needs_link")):
        return False
    if os.getuid() and any(map(item.get_closest_marker, ("other_user", "only_root"))):
        return False
    return not any("kind" not in marker.kwargs and SANITIZED or
                   marker.kwargs.get("kind") in SANITIZED
                   for marker in item.iter_markers("no_sanitizer"))


def pytest_collection_modifyitems(config, items):
    """What does not fit sanitizers goes; then every n-th of each file stays."""
    nth, kept = {}, []
    for item in items:
        if not fits(item):
            continue
        n = nth[item.path] = nth.get(item.path, -1) + 1
        if n % SAMPLE == 0:
            kept.append(item)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


# --- a case that fails or hangs takes no other with it ---

def too_long(_signal, _frame):
    raise Failed(f"the case is not over after {CASE_SECONDS} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(CASE_SECONDS)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Programs that a failed case left running would spoil those after it."""
    before = {id(fabric): len(fabric.running) for fabric in Fabric.up}
    outcome = yield
    if outcome.excinfo:
        for fabric in Fabric.up:
            fabric.end_programs(before.get(id(fabric), 0))
