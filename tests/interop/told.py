# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs of tests/programs that do what they read, a line each, and answer with a line."""
import subprocess


class Told:
    """A program on a node."""

    def __init__(self, fabric, node, program):
        self.process = fabric.start(node, program, stdin=subprocess.PIPE)

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def do(self, *words):
        self.tell(*words)
        return self.hear()

    def numbers(self, *words):
        return [int(word) for word in self.do(*words).split()]

    def end(self):
        self.process.stdin.close()
        assert self.process.wait() == 0

    def die(self):
        self.process.kill()
        self.process.wait()
