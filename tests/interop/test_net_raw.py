# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CAP_NET_RAW: only where --net-raw asked for it do frames need it, as on Linux."""
import os

import pytest

from interop.fabric import BUILD, NOBODY, Fabric, Failed

USER = () if os.getuid() else NOBODY
WITHOUT = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
PROGRAM = BUILD / "tests/programs/pace_frames"
REFUSED = "Operation not permitted"


def ethernet(*args, user=()):
    return Fabric("pair", sm="none", up_args=["--link-layer", "ethernet", *args], user=user)


def test_nobody_needs_it():
    with ethernet(user=USER) as fabric:
        assert fabric.run("n1", PROGRAM) == "paced\n"


def test_a_user_has_no_raw_packet_qp():
    with ethernet("--net-raw", user=USER) as fabric, pytest.raises(Failed, match=REFUSED):
        fabric.run("n1", PROGRAM)


@pytest.mark.only_root(why="setpriv takes a capability away")
def test_root_has_one_while_it_has_the_capability():
    with ethernet("--net-raw") as fabric:
        assert fabric.run("n1", PROGRAM) == "paced\n"
        with pytest.raises(Failed, match=REFUSED):
            fabric.run("n1", *WITHOUT, PROGRAM)
