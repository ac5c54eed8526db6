# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What rdma-core's run_tests.py does, for one of its files, with the outcome
of each case written to a file as it ends: a crash loses nothing before it.

    record.py TESTS_DIR MODULE REPORT ADDRESS --dev softib0

Cases that REPORT names already are left out: a file of which a case has crashed is run again
for those behind it.

The cases of the RDMA CM take the device's address from "ip -j addr" and its
link address, which no TUN device has: they get ADDRESS, and no link address.

The buffers of the cases of dma-bufs come from dmabuf_alloc.c, which is preloaded. Debian's DmaBufMR
cannot keep a DmaBuf that it was given or has made, whose add_ref() is no method of Python's: here
it is one.
"""
import importlib.machinery
import random
import sys
import unittest
from pathlib import Path

tests_dir, module, report, address = sys.argv[1:5]
sys.argv[1:] = sys.argv[5:]
sys.path[:0] = [tests_dir, str(Path(tests_dir).parent), str(Path(__file__).resolve().parents[1])]

import pyverbs.dmabuf  # noqa: E402
import pyverbs.mr  # noqa: E402
from args_parser import parser  # noqa: E402  the copied tests' own
from recorder import cases_of, read_report, recorder  # noqa: E402


class DmaBuf(pyverbs.dmabuf.DmaBuf):
    def add_ref(self, region):
        """The region keeps the buffer, and is closed first."""


class DmaBufMR(pyverbs.mr.DmaBufMR):
    def __init__(self, pd, length, access, dmabuf=None, offset=0, gpu=0, gtt=0):
        super().__init__(pd, length, access, dmabuf or DmaBuf(length + offset, gpu, gtt), offset, gpu, gtt)


# Compiled modules of newer releases are derived from these classes, which cannot be replaced there.
if not hasattr(pyverbs.mr, "MREx"):
    pyverbs.dmabuf.DmaBuf, pyverbs.mr.DmaBufMR = DmaBuf, DmaBufMR
init = str(Path(tests_dir) / "__init__.py")
tests = importlib.machinery.SourceFileLoader("tests", init).load_module()
RDMATestCase = importlib.import_module("tests.base").RDMATestCase
RDMATestCase._get_ip_mac = lambda case, *port: case.args.append([*port, address, None])
parser.parse_args()

ran = read_report(report)
everything = unittest.defaultTestLoader.loadTestsFromName(module, tests)
suite = unittest.TestSuite(case for case in cases_of(everything) if case.id() not in ran)
# many cases draw their sizes: the same each time
result = recorder(report, lambda test: random.seed(test.id()))
unittest.TextTestRunner(verbosity=2, resultclass=result).run(suite)
