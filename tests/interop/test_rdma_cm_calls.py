# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each function of librdmacm, by two programs, one of them for rsockets."""
import re
import subprocess
from pathlib import Path

import pytest

from interop.fabric import BUILD
from interop.test_rdma_cm import SERVER_IP

PROGRAMS = {
    "rdmacm_calls": ["devices", "accepted", "rejected", "too long", "own queue pair",
                     "shared receive queues", "multicast", "endpoints"],
    "rsocket_calls": ["connected", "options", "names", "transfers", "waiting", "mapped", "ended", "refused"],
}


def symbols(kind, path):
    out = subprocess.run(["nm", "-D", kind, path], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"[TU] (\w+)@@?RDMACM_", out))


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_call(pair, program):
    assert pair.run("n1", BUILD / "tests/programs" / program, SERVER_IP).splitlines() == PROGRAMS[program]
    pair.expect_no_leftovers()


def test_no_call_is_left_out():
    """The distribution's library has 68 symbols."""
    library = next(Path("/usr/lib").glob("*/librdmacm.so.1"))
    called = set.union(*(symbols("-u", BUILD / "tests/programs" / program) for program in PROGRAMS))
    assert called == symbols("--defined-only", library) and len(called) == 68
