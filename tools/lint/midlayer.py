#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each function of include/rdma has a caller among the tests and examples, and
docs/MIDLAYER-CALLERS.md names one.

    midlayer.py [--top DIR]            check the table
    midlayer.py [--top DIR] --write    write it anew: rows that are true stay as they are
"""
import argparse
import pathlib
import re
import sys

PREFIX = r"(?:ib|ibcm|rdma|rw)_[a-z0-9_]*[a-z0-9]"
TABLE = "docs/MIDLAYER-CALLERS.md"
# the first that has a caller is named: what a reader learns most from
WHERE = ("examples", "tests/modules", "tests/unit")
# softibd's own clients of the interface, which tests drive from outside
CLIENTS = ("src/ulp", "src/access", "src/modules", "src/fabric")
INTRO = """# Who calls each function of include/rdma

For each function of the midlayer's interface, or macro in the place of one, an example or a test that
calls it; of a few that only softibd's own clients call, one of these, which tests drive from outside; of those
that a header says are the core's own, a file of the core. `make lint` checks that a function has a row, and that the row is true;
`tools/lint/midlayer.py --write` adds the rows that are missing. [MIDLAYER.md](MIDLAYER.md) says which tests prove
what an area does.

| function | header | called by |
|---|---|---|
"""


def code_of(text):
    """C without comments."""
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)


def declared(text):
    """Names of functions, and of macros that stand for functions, that a header declares."""
    flat = text
    while True:  # bodies of functions and structs
        shorter = re.sub(r"\{[^{}]*\}", ";", flat)
        if shorter == flat:
            break
        flat = shorter
    names = set(re.findall(rf"^#define ({PREFIX})\(", text, flags=re.M))
    names |= {name for name, is_of in re.findall(rf"^#define ({PREFIX})\s+({PREFIX})_?\s*$", text, flags=re.M)
              if not re.search(rf"\b(?:struct|enum) {is_of}\b", text)}
    for line in re.sub(r"^#[^\n]*(?:\\\n[^\n]*)*", "", flat, flags=re.M).split(";"):
        match = re.search(rf"\b({PREFIX})\(", line)
        if match and "typedef" not in line:
            names.add(match[1])
    return names


def functions(top):
    """{function: (header, whether it is the core's own)} of the whole interface."""
    found, types = {}, set()
    for header in sorted((top / "include/rdma").glob("*.h")):
        types |= set(re.findall(r"\b(?:struct|enum|union) (\w+)", code_of(header.read_text())))
        public, _, own = header.read_text().partition("the core's own --- */")
        for text, is_own in ((public.rpartition("/*")[0] if own else public, False), (own, True)):
            for name in declared(code_of(text)):
                found.setdefault(name, (header.name, is_own))
    return {name: what for name, what in found.items() if name not in types}


def calls(text, name):
    """Whether the name stands in a line that defines no function of this name."""
    return re.search(rf"^[\s#].*\b{name}\b\s*[(,;)]", text, flags=re.M) is not None


def sources(top, folders):
    """{path: code}, in the order of @folders."""
    return {str(path.relative_to(top)): code_of(path.read_text()) for folder in folders
            for path in sorted((top / folder).rglob("*.[ch]"))}


def rows_of(top):
    """{function: (header, caller)} as the table says."""
    path = top / TABLE
    lines = path.read_text().splitlines() if path.exists() else []
    found = (re.fullmatch(r"\| `(\w+)` \| (\S+) \| (\S+) \|", line) for line in lines)
    return {match[1]: (match[2], match[3]) for match in found if match}


def choose(files, name, row):
    """The caller of the row if it is one still, else the first there is."""
    if row and row[1] in files and calls(files[row[1]], name):
        return row[1]
    return next((path for path, text in files.items() if calls(text, name)), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--top", type=pathlib.Path, default=pathlib.Path(__file__).parents[2])
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    files, own_files = sources(args.top, WHERE + CLIENTS), sources(args.top, WHERE + ("src",))
    rows, status, table = rows_of(args.top), 0, []
    for name, (header, is_own) in sorted(functions(args.top).items()):
        caller = choose(own_files if is_own else files, name, rows.get(name))
        if not caller:
            print(f"lint: {header}: no test or example calls {name}()")
            status = 1
        elif rows.get(name) != (header, caller) and not args.write:
            print(f"lint: {TABLE}: {name} of {header} is called by {caller}; run tools/lint/midlayer.py --write")
            status = 1
        table.append((name, f"| `{name}` | {header} | {caller} |\n"))
    for name in rows.keys() - {name for name, _ in table} if not args.write else ():
        print(f"lint: {TABLE}: include/rdma has no {name}; run tools/lint/midlayer.py --write")
        status = 1
    if args.write and not status:
        (args.top / TABLE).write_text(INTRO + "".join(row for _, row in table))
    return status


if __name__ == "__main__":
    sys.exit(main())
