# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""librpma, a library for persistent memory of other hosts: WRITE, its flush, atomic write, READ, SEND, by
completions that are waited for, with connections of the RDMA CM."""
from pathlib import Path

import pytest

from interop.fabric import Fabric, free_ports
from interop.test_nodes import users


@pytest.mark.parametrize("user", users(), ids=lambda user: "nobody" if user else "self")
def test_memory_of_another_node(user):
    with Fabric("pair", user=user) as fabric:
        side = fabric.script(Path(__file__).with_name("rpma_side.py"))
        where = "10.1.0.1", next(iter(free_ports()))
        server = fabric.start("n1", "python3", side, "server", *where)
        assert server.stdout.readline() == "listening\n"
        assert fabric.run("n2", "python3", side, "client", *where) == "equal\n"
        assert fabric.finish(server) == "" and server.returncode == 0
        fabric.expect_no_leftovers()
