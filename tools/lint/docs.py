#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The documents: tests and files that they name exist, links lead somewhere, and headings and
tables stand where a reader (and a Markdown renderer) expects them."""
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
SUITES = ("tests", "unit", "interop", "modules", "hostile", "examples")


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
    for line in [*wrong_names(outside), *wrong_links(page, text), *wrong_lines(prose(text))]:
        print(f"lint: {page.relative_to(top)} {line}")
        status = 1
sys.exit(status)
