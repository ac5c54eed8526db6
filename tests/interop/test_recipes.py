# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Commands of the documents: blocks marked `sh`, as they are written but for their TCP
ports, which another test may have. Each block of docs/RECIPES.md stands alone; those of
docs/TUTORIAL.md are one script, which ends with the commands of its CI file."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from interop.commands import softibd_of
from interop.fabric import BUILD, OUTSIDE, SOFTIB, TIMEOUT, _ports

TOP = Path(__file__).parents[2]
TEXT = (TOP / "docs/RECIPES.md").read_text()
TUTORIAL = (TOP / "docs/TUTORIAL.md").read_text()
# softib is cloned and built already where this runs, and packages are installed; all else is done
BUILT = f"""
git() {{ mkdir softib && ln -s {TOP}/docs softib/ && ln -s {BUILD} softib/build; }}
make() {{ test "$1" = -C && test -x "$2/build/bin/softib"; }}
alias apt-get=:
"""


def recipes():
    """The commands of each block, named by its section."""
    section, number = "", 0
    for heading, block in re.findall(r"^## ([^\n]*)$|^```sh\n(.*?)^```$", TEXT, re.M | re.S):
        section, number = (heading, 0) if heading else (section, number + 1)
        if block:
            yield pytest.param(block, id=f"{section} {number}")


def run(script, home, directory):
    """What a shell prints that runs the script in this directory."""
    env = {**OUTSIDE, "XDG_RUNTIME_DIR": str(home), "NO_COLOR": "1",
           "PATH": f"{SOFTIB.parent}:/usr/bin:{os.environ['PATH']}"}
    env.pop("SOFTIB_DIR", None)
    for port in set(re.findall(r"\b207\d\d\b", script)):
        script = script.replace(port, str(next(_ports)))
    done = subprocess.run(["sh", "-eu", "-c", script], cwd=directory, env=env, text=True,
                          capture_output=True, timeout=3 * TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout, done.stderr
    assert not softibd_of(home)
    return done.stdout


@pytest.mark.parametrize("block", recipes())
def test_recipe(home, tmp_path, block):
    run(block, home, tmp_path)


def test_tutorial(home, tmp_path):
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```$", TUTORIAL, re.M | re.S))
    steps = re.findall(r"^ +- run: (.*)$", blocks, re.M)
    out = run("\n".join([BUILT, blocks, *steps]), home, tmp_path)
    assert len(steps) == 3
    assert out.count("client: written and acknowledged") == 2 + 2 * 2  # check.sh runs twice
    assert out.count("All tests passed.") == 2


def test_recipes_are_found():
    assert len(list(recipes())) == TEXT.count("```sh") >= 10
