# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Fixtures: the fabric that attackers and innocents share."""
import pytest

from interop.fabric import Fabric


@pytest.fixture(scope="package")
def shared():
    """Four nodes of a switch: attackers take n1 and n2, innocents n3 and n4."""
    with Fabric("star:4") as fabric:
        fabric.pair("ibv_rc_pingpong", "-n", "100", server="n3", client="n4")
        yield fabric
        fabric.expect_no_leftovers()
