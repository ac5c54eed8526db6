#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each file and folder of the tree that README.md or a page of docs/ names exists, and where a
table names a file and a function, the file has it. (docs.py checks links and the names of tests.)"""
import argparse
import re
import sys
from pathlib import Path

FOLDERS = ("src", "lib", "include", "tools", "tests", "docs")
# COMPARISON.md names files of other projects, too; comparison.py checks it
NOT_CHECKED = ("docs/COMPARISON.md",)

parser = argparse.ArgumentParser()
parser.add_argument("--top", type=Path, required=True)
top = parser.parse_args().top
sources = {path.name for folder in FOLDERS for path in (top / folder).rglob("*.[ch]")}


def exists(path):
    """Is it in the tree? `tests/vectors/TARGET` stands for any target, `hca/windows` for the unit
    test of that name, `abi/lane.h` for src/abi/lane.h, `qp.c` for a file of any folder."""
    pattern = re.sub(r"\b[A-Z]{3,}\b", "*", path.rstrip("/"))
    if "/" not in path:
        return path in sources
    layer, _, name = path.partition("/")
    return any(any((top / folder).glob(pattern)) for folder in (".", "src", "include")) or \
        (top / "tests/unit" / layer / f"test_{name}.c").exists()


def names_path(word):
    """Is it meant as a path in the tree?"""
    folder = "/" in word and word.partition("/")[0] in FOLDERS
    return re.fullmatch(r"[\w.*/-]+", word) and (folder or re.fullmatch(r"\w[\w/]*\.[ch]", word))


def has_function(path, function):
    """Does the file, or a file of the folder, have it?"""
    files = [top / path] if (top / path).is_file() else (top / path).glob("*.c")
    return any(re.search(rf"\b{function}\(", file.read_text()) for file in files)


def check(page):
    """What is wrong with the page."""
    text = page.read_text()
    for word in re.findall(r"`([^`\n]+)`", text):
        if names_path(word) and not exists(word):
            yield f"names {word}, which does not exist"
    for path, function in re.findall(r"^\| \d+ \| `([^`]+)` `([^`]+)` \|", text, re.M):
        if not has_function(path, function):
            yield f"says that {path} has {function}()"


wrong = [f"{page.relative_to(top)} {line}" for page in [top / "README.md", *(top / "docs").glob("*.md")]
         if str(page.relative_to(top)) not in NOT_CHECKED for line in check(page)]
for line in wrong:
    print(f"lint: {line}")
sys.exit(bool(wrong))
