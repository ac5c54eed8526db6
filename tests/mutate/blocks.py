# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Lists of changes that break the sources on purpose: tests/mutate/rules, tests/fuzz/planted.

A list has blocks, with an empty line or a comment between them. A block says what the rule is
("rule: "), the file ("file: "), for some lists the fuzz target ("target: ") or the attack
("test: ") that has to notice, the text that keeps the rule ("-", as many lines as it takes; it must stand in the file exactly
once), and what is put in its place ("+"; without one, nothing).
"""
import hashlib
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
KEYS = ("rule", "file", "target", "test")
TESTS = "tests"  # where the tests are that blocks name


@dataclass
class Block:
    line: int
    rule: str = ""
    file: str = ""
    target: str = ""
    test: str = ""
    old: list = field(default_factory=list)
    new: list = field(default_factory=list)

    @property
    def texts(self):
        return "\n".join(self.old), "\n".join(self.new)

    def problem(self):
        """What is wrong with the block; None."""
        old, new = self.texts
        if not (self.rule and self.file and old) or old == new:
            return "wants a rule, a file, and a text to replace"
        path = TOP / self.file
        if not path.is_file():
            return f"{self.file} does not exist"
        if self.test and not is_test(self.test):
            return f"there is no test {self.test} in {TESTS}"
        times = path.read_text(encoding="utf-8").count(old)
        return None if times == 1 else f"its text stands {times} times in {self.file}, not once"


def is_test(name):
    """@name: FILE::FUNCTION of TESTS"""
    file, _, function = name.partition("::")
    path = TOP / TESTS / file
    return path.is_file() and f"\ndef {function}(" in path.read_text(encoding="utf-8")


def read(path):
    """Return: the blocks of the list at @path."""
    blocks, current = [], None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            current = None
            continue
        if current is None:
            blocks.append(current := Block(number))
        if line[0] in "-+":
            (current.old if line[0] == "-" else current.new).append(line[1:])
        else:
            key, _, value = line.partition(": ")
            if key not in KEYS:
                sys.exit(f"{path}:{number}: expected '-', '+', or one of {', '.join(KEYS)}")
            setattr(current, key, value)
    return blocks


def check(path, blocks):
    """Print what is wrong with @blocks of @path. Return: in how many."""
    bad = [(block, problem) for block in blocks if (problem := block.problem())]
    for block, problem in bad:
        print(f"{path.relative_to(TOP)}:{block.line}: {block.rule or '?'}: {problem}")
    return len(bad)


class Tree:
    """A copy of the sources, in which one block at a time is applied."""

    def __init__(self, path, folders):
        """@folders: those of the sources that are copied; what differs alone is written."""
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        names = subprocess.run(["git", "ls-files", "-z", "--", *folders], cwd=TOP, check=True,
                               capture_output=True).stdout.decode().split("\0")[:-1]
        names = {name for name in names if (TOP / name).is_file()}
        digest = hashlib.sha256()
        for old in [p for p in path.rglob("*") if p.is_file()]:
            if str(old.relative_to(path)) not in names:
                old.unlink()
        for name in sorted(names):
            source, to = TOP / name, path / name
            content = source.read_bytes()
            if not name.startswith("tests/mutate/"):
                digest.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
            if not to.exists() or to.read_bytes() != content:
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(content)
                to.chmod(source.stat().st_mode)
        self.digest = digest.hexdigest()

    @contextmanager
    def broken(self, block):
        """The tree with @block applied, for the time of the context."""
        path = self.path / block.file
        whole = path.read_text(encoding="utf-8")
        try:
            path.write_text(whole.replace(*block.texts), encoding="utf-8")
            yield
        finally:
            path.write_text(whole, encoding="utf-8")
