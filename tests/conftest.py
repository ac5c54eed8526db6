# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which cases of a file are run: tests/run says it by the environment."""
import os

from interop.fabric import SANITIZED

SAMPLE = int(os.environ.get("SOFTIB_SAMPLE", "1"))  # tests/run --sample


def pytest_configure(config):
    config.addinivalue_line("markers", "no_sanitizer(why, kind=None): not asked of a build with "
                                       "sanitizers, or with that one")


def fits(item):
    """Can this build do what the case asks?"""
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
