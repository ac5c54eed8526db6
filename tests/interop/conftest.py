# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Fixtures: a running fabric, shared by the tests of a file; a place for fabrics."""
import tempfile
from pathlib import Path

import pytest

from interop.fabric import Fabric


@pytest.fixture(scope="module")
def pair():
    """Two nodes and a switch under softib-sm."""
    with Fabric("pair") as fabric:
        yield fabric
        fabric.expect_no_leftovers()


@pytest.fixture(scope="module")
def quiet():
    """A pair whose manager has done its work and gone: no sweep is counted."""
    with Fabric("pair", sm="none") as fabric:
        fabric.run("n1", "softib-sm", "--once")
        yield fabric
        fabric.expect_no_leftovers()


@pytest.fixture(scope="module")
def tree():
    """A small fat tree: four hosts or more, several switches, several paths."""
    with Fabric("fattree:2,2") as fabric:
        yield fabric
        fabric.expect_no_leftovers()


@pytest.fixture
def home():
    with tempfile.TemporaryDirectory(prefix="softib-test-") as path:
        yield Path(path)
