# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What rdma-core's run_tests.py does, for one of its files, with the outcome
of each case written to a file as it ends: a crash loses nothing before it.

    record.py TESTS_DIR MODULE REPORT ADDRESS --dev softib0

Cases that REPORT names already are left out: a file of which a case has crashed is run again
for those behind it.

The cases of the RDMA CM take the device's address from "ip -j addr" and its
link address, which no TUN device has: they get ADDRESS, and no link address.
"""
import importlib.machinery
import json
import random
import sys
import unittest
from pathlib import Path

tests_dir, module, report, address = sys.argv[1:5]
sys.argv[1:] = sys.argv[5:]
sys.path[:0] = [tests_dir, str(Path(tests_dir).parent)]

from args_parser import parser  # noqa: E402  the copied tests' own


class Recorder(unittest.TextTestResult):
    """A line of JSON when a case starts and when it ends."""

    def write(self, test, verdict, text=""):
        with open(report, "a", encoding="utf-8") as f:
            f.write(json.dumps([test.id(), verdict, text]) + "\n")

    def startTest(self, test):
        super().startTest(test)
        random.seed(test.id())  # many cases draw their sizes: the same each time
        self.write(test, "crashed")

    def addSuccess(self, test):
        super().addSuccess(test)
        self.write(test, "passed")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write(test, "skipped", reason)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.write(test, "failed", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        if hasattr(test, "_testMethodName"):
            self.write(test, "failed", f"{err[0].__name__}: {err[1]}")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.write(test, "failed", str(err[1]))


init = str(Path(tests_dir) / "__init__.py")
tests = importlib.machinery.SourceFileLoader("tests", init).load_module()
RDMATestCase = importlib.import_module("tests.base").RDMATestCase
RDMATestCase._get_ip_mac = lambda case, *port: case.args.append([*port, address, None])
parser.parse_args()


def cases_of(suite):
    """The cases of a suite and of those in it."""
    for test in suite:
        yield from cases_of(test) if isinstance(test, unittest.TestSuite) else [test]


ran = {json.loads(line)[0] for line in Path(report).read_text().splitlines()} if Path(report).exists() else set()
everything = unittest.defaultTestLoader.loadTestsFromName(module, tests)
suite = unittest.TestSuite(case for case in cases_of(everything) if case.id() not in ran)
unittest.TextTestRunner(verbosity=2, resultclass=Recorder).run(suite)
