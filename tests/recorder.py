# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Other projects' unittest cases, with the outcome of each written to a file as it ends: a crash loses
nothing before it."""
import json
import unittest
from pathlib import Path


def recorder(report, begin=lambda test: None):
    """A class for unittest.TextTestRunner: a line of JSON, [case, verdict, text], in the file @report when a case
    starts ("crashed") and when it ends; the last one of a case counts. @begin: is called before each case"""

    class Recorder(unittest.TextTestResult):
        def write(self, test, verdict, text=""):
            with open(report, "a", encoding="utf-8") as f:
                f.write(json.dumps([test.id(), verdict, text]) + "\n")

        def startTest(self, test):
            super().startTest(test)
            begin(test)
            self.write(test, "crashed")

        def addSuccess(self, test):
            super().addSuccess(test)
            self.write(test, "passed")

        def addExpectedFailure(self, test, err):
            super().addExpectedFailure(test, err)
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

    return Recorder


def read_report(report):
    """Return {case: (verdict, text)} of the file @report; the last line of a case counts."""
    report = Path(report)
    if not report.exists():
        return {}
    lines = map(json.loads, report.read_text().splitlines())
    return {case: (verdict, text) for case, verdict, text in lines}


def cases_of(suite):
    """The cases of a suite and of those in it."""
    for test in suite:
        yield from cases_of(test) if isinstance(test, unittest.TestSuite) else [test]
