# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Short portions of the stress programs (tests/stress, docs/TESTING.md)."""
import subprocess
import sys
from pathlib import Path

import pytest

from interop.fabric import BUILD, TIMEOUT
from modes import MODES

RUN = Path(__file__).parents[1] / "stress/run"


def run(what, mode, *args):
    done = subprocess.run([sys.executable, RUN, what, "--build", BUILD, "--modes", mode,
                           "--seed", "1", *map(str, args)], timeout=TIMEOUT, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("mode", MODES)
def test_every_way_to_wait_for_an_event(mode):
    assert run("waits", mode).count(" ok ") == 11


@pytest.mark.parametrize("mode", MODES)
def test_order_and_visibility(mode):
    assert "changes of cables" in run("litmus", mode, "--seconds", 2)


@pytest.mark.no_sanitizer("what is freed stays, and softibd grows")
@pytest.mark.parametrize("mode", MODES)
def test_sudden_deaths(mode):
    assert "60 deaths; softibd" in run("deaths", mode, "--count", 60)
