# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What bash offers behind softib is what softib takes: tools/completion/softib."""
import re
import subprocess

import pytest

from interop.fabric import OUTSIDE, SOFTIB, TIMEOUT

SCRIPT = SOFTIB.parents[2] / "tools/completion/softib"
ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
compopt() { :; }
_softib 2>&1
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words, env=OUTSIDE):
    """What bash offers for the last of @words."""
    env = dict(env, PATH=f"{SOFTIB.parent}:{env['PATH']}")
    done = subprocess.run(["bash", "-c", ASK, "bash", SCRIPT, "softib", *words], env=env,
                          capture_output=True, text=True, timeout=TIMEOUT, check=True)
    return set(done.stdout.split())


def help_of(*command):
    return subprocess.run([SOFTIB, *command, "--help"], env=OUTSIDE, capture_output=True,
                          text=True, timeout=TIMEOUT, check=True).stdout


def commands():
    text = help_of()
    return re.findall(r"^  ([a-z]\S*)  +\S", text, re.M)


def test_all_commands():
    assert len(commands()) > 10
    assert set(commands()) - {"help"} <= offered("")


@pytest.mark.parametrize("command", [name for name in commands() if name != "help"])
def test_long_options(command):
    words = [[command]]
    if command == "fault":
        words = [[command, verb] for verb in ("add", "list", "clear", "log", "run")]
    if command == "srp":
        words = [[command, "target", verb] for verb in ("add", "list", "remove")]
        words += [[command, verb] for verb in ("discover", "login", "list", "logout")]
    text = "".join(help_of(*each) for each in words)
    takes = set(re.findall(r"^ {2,6}(?:-.[^-]*, +)?(--[a-z][a-z-]*)", text, re.M))
    assert takes - {"--usage", "--version"} == offered(command, "--") - {"--"}


def test_nodes_and_fabrics(pair):
    assert {"n1", "n2"} <= offered("exec", "", env=pair.env)
    assert "t" in offered("status", "--fabric", "", env=pair.env)
