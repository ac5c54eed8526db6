# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Gloo's collective operations over its transport ibverbs."""
import subprocess
import tempfile
from pathlib import Path

import pytest

from interop.fabric import Fabric
from interop.test_nodes import users


@pytest.fixture(scope="module", name="program")
def a_program():
    """Where any user may run it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gloo_side"
        subprocess.run(["g++", "-O1", "-o", path, Path(__file__).with_name("gloo_side.cc"), "-lgloo"],
                       check=True)
        path.parent.chmod(0o755)
        yield path


@pytest.mark.parametrize("ranks", [2, 4])
def test_processes_add_up_arrays(program, ranks):
    with Fabric(f"star:{ranks}", user=users()[-1]) as fabric:
        store = fabric.home / "store"
        fabric.run("n1", "mkdir", store)
        processes = [fabric.start(f"n{rank + 1}", program, rank, ranks, store) for rank in range(ranks)]
        for process in processes:
            assert fabric.finish(process) == "1 right\n1000 right\n1000000 right\n"
        fabric.expect_no_leftovers()
