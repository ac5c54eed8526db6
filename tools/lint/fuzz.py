#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whatever takes bytes from others has a fuzz target: docs/FUZZING.md is held
to tests/fuzz/meson.build, and the decoders and parsers of src to both."""
import argparse
import re
import sys
from pathlib import Path

DECODER = re.compile(r"^(?:int|size_t|ssize_t|bool)\s+(\w+_(?:decode|parse|parse_text|load))\(", re.M)
CODEC = re.compile(r"^WIRE_CODEC(?:_OF)?\((\w+)", re.M)


def targets(top):
    table = (top / "tests/fuzz/meson.build").read_text()
    return set(re.findall(r"^  '(\w+)' : \[", table, re.M))


def documented(top):
    """{target: its row's text}, and the code names of all rows."""
    rows = {}
    for what, names in re.findall(r"^\| (.*?) \| (`.*?`) \| .* \|$",
                                  (top / "docs/FUZZING.md").read_text(), re.M):
        rows.update({name: what for name in re.findall(r"`(\w+)`", names)})
    return rows


def decoders(top):
    """Functions of src's headers that make something of bytes or text."""
    for header in sorted((top / "src").glob("*/*.h")):
        if "private" in header.name:
            continue
        for name in DECODER.findall(header.read_text()):
            yield header, name


def loose_codecs(top):
    """Codecs that neither a class's table nor the list of all of them names."""
    declared = {c for h in (top / "src/wire").glob("*.h") for c in CODEC.findall(h.read_text())}
    used = " ".join(p.read_text() for p in [*(top / "src/wire").glob("*.c"),
                                            top / "tests/unit/wire/codecs.h"])
    for codec in sorted(declared):
        if not re.search(rf"(?:&wire_{codec}_codec|N\(\w+(?:\.\w+)*, \d+, {codec}\)|\b{codec}\b,? )",
                         used):
            yield codec


def findings(top):
    there, told = targets(top), documented(top)
    for name in sorted(there - set(told)):
        yield f"docs/FUZZING.md: target {name} is in no row"
    for name in sorted(set(told) - there):
        yield f"docs/FUZZING.md: there is no target {name}"
    text = " ".join(told.values())
    fuzzed = "".join(p.read_text() for p in (top / "tests/fuzz").glob("fuzz_*.c"))
    for header, name in decoders(top):
        if name not in text:
            yield f"{header.relative_to(top)}: {name}() is in no row of docs/FUZZING.md"
        elif not re.search(rf"\b{name}\(", fuzzed) and not name.startswith("wire_fields"):
            yield f"{header.relative_to(top)}: {name}() is called by no fuzz target"
    for codec in loose_codecs(top):
        yield f"src/wire: codec {codec} is in no table that the target codec walks"


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--top", type=Path, required=True)
    opt = args.parse_args()
    bad = list(findings(opt.top))
    for line in bad:
        print(line)
    print(f"lint: {len(targets(opt.top))} fuzz targets, {len(bad)} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
