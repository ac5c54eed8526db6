# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A module of CPython's own tests, as Debian packages them, without the cases of other protocols than TCP: for
test_sdp_python.py.

    python_cases.py MODULE REPORT [CASE ...]
"""
import re
import sys
import unittest
from pathlib import Path

from test import support

sys.path.append(str(Path(__file__).resolve().parents[1]))

from recorder import cases_of, recorder  # noqa: E402

module, report, *only = sys.argv[1:]
# families of sockets that the preload library leaves alone; some are not there on each machine, or hang by themselves
OTHERS = re.compile("VSOCK|CAN|RDS|UDP|SCTP|Bluetooth|ISOTP|J1939|Qipcrtr|Crypto")
# a module that asks for the "network" resource has servers of its own; others mean the Internet
support.use_resources = ["network"] if module == "test.test_socketserver" else []

everything = unittest.defaultTestLoader.loadTestsFromName(module)
suite = unittest.TestSuite(case for case in cases_of(everything)
                           if not OTHERS.search(case.id()) and (not only or case.id() in only))
unittest.TextTestRunner(verbosity=2, resultclass=recorder(report)).run(suite)
