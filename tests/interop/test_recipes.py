# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/RECIPES.md: each block of commands that is marked `sh`, as it is written but for
its TCP ports, which another test may have."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from interop.commands import softibd_of
from interop.fabric import OUTSIDE, SOFTIB, TIMEOUT, _ports

TEXT = (Path(__file__).parents[2] / "docs/RECIPES.md").read_text()


def recipes():
    """The commands of each block, named by its section."""
    section, number = "", 0
    for heading, block in re.findall(r"^## ([^\n]*)$|^```sh\n(.*?)^```$", TEXT, re.M | re.S):
        section, number = (heading, 0) if heading else (section, number + 1)
        if block:
            yield pytest.param(block, id=f"{section} {number}")


@pytest.mark.parametrize("block", recipes())
def test_recipe(home, tmp_path, block):
    env = {**OUTSIDE, "XDG_RUNTIME_DIR": str(home), "NO_COLOR": "1",
           "PATH": f"{SOFTIB.parent}:/usr/bin:{os.environ['PATH']}"}
    env.pop("SOFTIB_DIR", None)
    for port in set(re.findall(r"\b207\d\d\b", block)):
        block = block.replace(port, str(next(_ports)))
    done = subprocess.run(["sh", "-eu", "-c", block], cwd=tmp_path, env=env, text=True,
                          capture_output=True, timeout=3 * TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout, done.stderr
    assert not softibd_of(home)


def test_recipes_are_found():
    assert len(list(recipes())) == TEXT.count("```sh") >= 10
