#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/VERBS.md, IPOIB.md, MIDLAYER.md and MIDLAYER-TESTS.md: each row of their tables whose last column is "tests" names one
that exists: a function of the unit tests or the simulator, a function of pytest, a case of
rdma-core's that passes (expected*.json), a fuzz target, a file, or a make target."""
import argparse
import json
import re
import sys
from pathlib import Path

PAGES = ("VERBS.md", "IPOIB.md", "MIDLAYER.md", "MIDLAYER-TESTS.md")
BOLD_NO = "**no**"  # in place of a test: there is nothing to show

parser = argparse.ArgumentParser()
parser.add_argument("--top", type=Path, required=True)
top = parser.parse_args().top


def found(pattern, glob):
    """What @pattern finds in the files of tests that @glob names."""
    return {name for path in (top / "tests").glob(glob)
            for name in re.findall(pattern, path.read_text(errors="replace"), re.M)}


CASES = [case.split(".") for path in (top / "tests/conformance").glob("expected*.json")
         for case in json.loads(path.read_text())]
NAMES = (found(r"^static void (\w+)\(", "unit/**/*.c") | found(r"^static void (\w+)\(", "sim/*.c") |
         found(r"^ *def (test_\w+)\(", "**/*.py") |
         {path.stem.removeprefix("fuzz_") for path in (top / "tests/fuzz").glob("fuzz_*.c")} |
         {part for case in CASES for part in (case[1], ".".join(case[2:]))})
TARGETS = set(re.findall(r"^([\w-]+):", (top / "Makefile").read_text(), re.M))


def exists(name):
    if name.startswith("make "):
        return name.split()[1] in TARGETS
    if "/" in name:
        return (top / name).exists()
    return name in NAMES


def rows(text):
    """The rows of tables whose last column is called tests."""
    shows = False
    for line in text.splitlines():
        cells = re.split(r"(?<!\\) \| ", line.strip()[2:-2]) if line.startswith("| ") else None
        if not cells:
            shows = shows and line.startswith("|---")
        elif not shows:
            shows = cells[-1] == "tests"
        else:
            yield cells


wrong = []
for page in PAGES:
    for cells in rows((top / "docs" / page).read_text()):
        names = re.findall(r"`([^`]+)`", cells[-1])
        if not names and cells[-1] != BOLD_NO:
            wrong.append(f"{page}: no test shows: {cells[0]}")
        wrong += [f"{page}: there is no {name}: {cells[0]}" for name in names if not exists(name)]
for line in wrong:
    print(f"lint: docs/{line}")
sys.exit(bool(wrong))
