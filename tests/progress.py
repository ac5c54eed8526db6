# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A pytest plugin that says how far the run is, in cases: a line now and then
instead of a dot for each."""
import os
import time

import pytest

EVERY_S = 10


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    def __init__(self, config):
        self.name = os.environ.get("SOFTIB_PART", "tests")  # one of several runs: tests/run
        self.plugins = config.pluginmanager
        self.total = self.over = self.failed = 0
        self.began = self.told = time.monotonic()

    def pytest_collection_finish(self, session):
        self.total = len(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report):
        """No letters."""
        if report.when == "call":
            return report.outcome, "", ""
        return ("error", "", "") if report.failed else ("", "", "")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed += 1
            self.say(f"failed ({report.when}): {report.nodeid}")
        if report.when == "teardown":
            self.over += 1
            if time.monotonic() >= self.told + EVERY_S or self.over == self.total:
                self.tell(report.nodeid)

    def say(self, line):
        self.plugins.getplugin("terminalreporter").write_line(f"{self.name}: {line}")

    def tell(self, nodeid):
        self.told = time.monotonic()
        self.say(f"{self.over} of {self.total} cases, {self.failed} failed, "
                 f"{clock(self.told - self.began)}; {nodeid.split('::')[0]}")


def pytest_configure(config):
    config.pluginmanager.register(Progress(config))
