#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The ways a program's data can take, and the tests of the data path in each:
`make check-modes`.

The environment of a program forces them: every packet through softibd; lanes
but no windows; both, but none of the engine's fast paths; all shortcuts, which
is what runs when nobody says anything.
Each has the same semantics, so the same tests pass.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
MODES = {
    "softibd": {"SOFTIB_LANES": "0", "SOFTIB_WINDOWS": "0"},
    "lanes": {"SOFTIB_LANES": "1", "SOFTIB_WINDOWS": "0"},
    "general": {"SOFTIB_LANES": "1", "SOFTIB_WINDOWS": "1", "SOFTIB_FAST": "0"},
    "all": {"SOFTIB_LANES": "1", "SOFTIB_WINDOWS": "1", "SOFTIB_FAST": "1"},
}
INTEROP = ["perftest", "pingpong", "lanes", "kill"]
SHORT = ["pingpong"]  # of CI, where "all" has run everything before


def counted(line, word):
    found = re.search(rf"(\d+) {word}", line)
    return int(found[1]) if found else 0


def run(mode, command, env):
    """One suite in one mode; (passed, failed) of the last line of its output."""
    done = subprocess.run(command, env=dict(os.environ, **env, **MODES[mode]), cwd=TOP, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    lines = done.stdout.strip().splitlines() or [""]
    passed, bad = counted(lines[-1], "passed"), counted(lines[-1], "failed|regressions|error")
    if done.returncode:
        print(done.stdout)
        bad = max(bad, 1)
    print(f"{mode + ':':9}{Path(command[0]).name} {Path(command[-1]).name}: {lines[-1]}", flush=True)
    return passed, bad


def suites(opt):
    env = {"SOFTIB_BUILD": str(opt.build), "PYTHONPATH": str(TOP / "tests"),
           "PYTHONDONTWRITEBYTECODE": "1"}
    for mode in opt.modes:
        if not opt.short:
            yield mode, [TOP / "tests/conformance/run", "--build", opt.build,
                         "--log", opt.build / f"conformance-{mode}.log"], env
        for name in SHORT if opt.short else INTEROP:
            yield mode, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                         f"tests/interop/test_{name}.py"], env


def main():
    args = argparse.ArgumentParser(description=__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--build", type=Path, default=TOP / "build")
    args.add_argument("--modes", default=",".join(MODES))
    args.add_argument("--short", action="store_true", help="CI's portion")
    opt = args.parse_args()
    opt.build = opt.build.resolve()
    opt.modes = opt.modes.split(",")
    counts = [run(*suite) for suite in suites(opt)]
    passed, failed = (sum(column) for column in zip(*counts))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
