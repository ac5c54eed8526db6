#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/SECURITY.md: each row of its tables says in its last column which tests show it, and each test
that the column names exists.

    `tests/hostile`: `test_x`               a function of a file of that folder
    `test_bad_input`: `test_x`, `_y`        of that file of tests; `_y` ends the name of one
    unit `hca/hca`: `a`, `b`                a unit test, by its name in meson.build, and functions there
    fuzz target `sm`; `make hostile`
"""
import argparse
import re
import sys
from pathlib import Path

PAGE = "docs/SECURITY.md"


def rows(text):
    """The first and the last cell of each row."""
    for line in text.splitlines():
        cells = re.split(r"(?<!\\) \| ", line.strip("| ")) if line.startswith("|") else []
        if cells and not set(line) <= set("|- ") and cells[-1] != "test":
            yield cells[0], cells[-1]


def functions(paths):
    return {name for path in paths for name in
            re.findall(r"^def (test_\w+)\(|^static void (\w+)\(void \*\*state\)", path.read_text(), re.M)
            for name in name if name}


class Tests:
    def __init__(self, top):
        self.top = top
        self.unit = {name: file.parent / source for file in (top / "tests/unit").glob("*/meson.build")
                     for name, source in re.findall(r"^test\('(\S+)', executable\('\w+',\s*'(\w+\.c)'",
                                                    file.read_text(), re.M)}
        self.fuzz = set(re.findall(r"^  '(\w+)' : \[", (top / "tests/fuzz/meson.build").read_text(), re.M))

    def files(self, unit, name):
        """Those that @name, in front of a colon, stands for."""
        if unit:
            folder, _, file = name.rpartition("/")
            return [self.unit[name]] if name in self.unit else list(
                (self.top / "tests/unit" / folder).glob(f"test_{file}.c"))
        if "/" in name:
            return list((self.top / name).glob("test_*.py"))
        return list((self.top / "tests/interop").glob(f"{name}.py"))

    def findings(self, cell):
        """What is wrong with a cell."""
        named = 0
        where = []
        for kind, name in re.findall(r"(unit|target|)\s*`([^`]+)`", cell):
            if kind == "target" and name not in self.fuzz:
                yield f"there is no fuzz target {name}"
            if kind == "target" or name.startswith(("make ", "SOFTIB_")):
                continue
            unit = kind == "unit" or name in self.unit
            files = self.files(unit, name)
            if files or "/" in name:
                where = files
                named += unit
                if not files:
                    yield f"there are no tests {name}"
                continue
            known = functions(where)
            named += 1
            if not any(f == name or (name[0] == "_" and f.endswith(name)) for f in known):
                yield f"there is no test {name} where it is said to be"
        if not named:
            yield "names no test"


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--top", type=Path, required=True)
    top = args.parse_args().top
    tests, table = Tests(top), list(rows((top / PAGE).read_text()))
    bad = [f"{PAGE}: {why}: {what[:60]}" for what, cell in table for why in tests.findings(cell)]
    for line in bad:
        print(line)
    print(f"lint: {len(table)} claims of {PAGE}, {len(bad)} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
