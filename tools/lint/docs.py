#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The documents: tests, files and folders that they name exist, a function stands in the file that a
table says, links lead somewhere, and headings and tables stand where a reader (and a Markdown
renderer) expects them."""
import argparse
import re
import sys
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--top", type=Path, required=True)
top = parser.parse_args().top
TESTS = [path for path in (top / "tests").rglob("*")
         if path.suffix in (".py", ".c", ".h", ".json") or path.name == "meson.build"]
# What the files of tests/ name: functions, programs, modules of rdma-core's and CPython's tests.
KNOWN = set(re.findall(r"(?<![A-Za-z0-9])test_\w+", "\n".join(p.read_text() for p in TESTS)))
KNOWN |= {path.stem for path in TESTS}
KNOWN |= {"test_cuda_dmabuf"}  # rdma-core's, of which no case can pass here
SUITES = ("unit", "interop", "modules", "hostile", "examples")
FOLDERS = ("src", "lib", "include", "tools", "tests", "docs")
# COMPARISON.md names files of other projects, too; comparison.py checks it
FOREIGN_FILES = "COMPARISON.md"
SOURCES = {path.name for folder in FOLDERS for path in (top / folder).rglob("*.[ch]")}


def anchors(path):
    """The anchors of @path's headings, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            for title in re.findall(r"^#+ (.+)$", path.read_text(), re.M)}


def wrong_names(text):
    for name in sorted(set(re.findall(r"(?<![\w/.])test_\w+", text)) - KNOWN):
        yield f"names {name}, which no test has"
    for path in sorted(set(re.findall(rf"(?<![\w/.-])(?:{'|'.join(SUITES)})/[\w/.-]+\.(?:py|c|h)\b", text))):
        if not any((folder / path).exists() for folder in (top, top / "tests", top / "docs")):
            yield f"names {path}, which does not exist"


def exists(path):
    """Is it in the tree? `tests/vectors/TARGET` stands for any target, `hca/windows` for the unit
    test of that name, `abi/lane.h` for src/abi/lane.h, `qp.c` for a file of any folder."""
    pattern = re.sub(r"\b[A-Z]{3,}\b", "*", path.rstrip("/"))
    if "/" not in path:
        return path in SOURCES
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


def wrong_paths(text):
    for word in re.findall(r"`([^`\n]+)`", text):
        if names_path(word) and not exists(word):
            yield f"names {word}, which does not exist"
    for path, function in re.findall(r"^\| \d+ \| `([^`]+)` `([^`]+)` \|", text, re.M):
        if not has_function(path, function):
            yield f"says that {path} has {function}()"


def wrong_links(page, text):
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#]*)(?:#([^)]*))?\)", text):
        path = (page.parent / target) if target else page
        if not path.exists():
            yield f"links to {target}, which does not exist"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"links to {target}#{anchor}, a heading that does not exist"


def wrong_lines(lines):
    before = ""
    for number, line in lines:
        if line.startswith("#") and before:
            yield f"line {number}: put an empty line before the heading"
        if line.startswith("|") and before and not before.startswith("|"):
            yield f"line {number}: put an empty line before the table"
        if re.match(r"  \S", line) and (not before or before.startswith("|")):
            yield f"line {number}: continues nothing"
        before = line


def prose(text):
    """(number, line) of @text outside of code blocks."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= line.startswith("```")
        if not fenced:
            yield number, "" if line.startswith("```") else line


status = 0
for page in [top / "README.md", *sorted((top / "docs").glob("*.md"))]:
    text = page.read_text()
    outside = "\n".join(line for _, line in prose(text))
    paths = [] if page.name == FOREIGN_FILES else wrong_paths(text)
    for line in [*wrong_names(outside), *paths, *wrong_links(page, text), *wrong_lines(prose(text))]:
        print(f"lint: {page.relative_to(top)} {line}")
        status = 1
sys.exit(status)
