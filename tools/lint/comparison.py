#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""docs/COMPARISON.md: each row says something of softib and, unless it is a bold no, names a
test; each test that the page names exists."""
import argparse
import re
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--top", type=Path, required=True)
top = parser.parse_args().top
page = top / "docs/COMPARISON.md"
text = page.read_text()
wrong = [f"names {path}, which does not exist" for path in re.findall(r"`(tests/[^`]+)`", text)
         if not (top / path).exists()]
for row in re.findall(r"^\| (.+) \|$", text, re.M)[1:]:
    feature, softib = row.split(" | ")[:2]
    if softib != "**no**" and not re.search(r"`tests/[^`]+`", softib):
        wrong.append(f"shows no test of softib for: {feature}")
for line in wrong:
    print(f"lint: {page.relative_to(top)} {line}")
sys.exit(bool(wrong))
