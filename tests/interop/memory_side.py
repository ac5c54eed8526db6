# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs on a node, by test_memory.py: one end of an RC connection and of a UD QP, told by
lines of JSON on its standard input what to do, with a region that it may unmap while
it is registered."""
import ctypes
import json
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ALL = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
       e.IBV_ACCESS_REMOTE_ATOMIC)
BYTES = 1 << 18
QKEY = 0x1234
APART = 0x100000000000
OPCODES = {"send": e.IBV_WR_SEND, "write": e.IBV_WR_RDMA_WRITE, "read": e.IBV_WR_RDMA_READ,
           "add": e.IBV_WR_ATOMIC_FETCH_AND_ADD}
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                      ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Side:
    def __init__(self):
        self.ctx = Context(name="softib0")
        self.lid = self.ctx.query_port(1).lid
        self.pd = PD(self.ctx)
        self.cq, self.recv_cq = CQ(self.ctx, 64), CQ(self.ctx, 64)
        # private, anonymous, and where nothing is put that is mapped later
        self.addr = libc.mmap(APART, BYTES, 3, 0x22, -1, 0)
        ctypes.memset(self.addr, 0x5a, BYTES)
        self.mr = MR(self.pd, BYTES, ALL, address=self.addr)
        self.own = MR(self.pd, BYTES, ALL)
        self.rc, self.ud = self.make(e.IBV_QPT_RC), self.make(e.IBV_QPT_UD)
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        self.ud.to_rts(attr)

    def make(self, kind):
        cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
        return QP(self.pd, QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.recv_cq, cap=cap,
                                      sq_sig_all=1))

    def info(self):
        return {"lid": self.lid, "rc": self.rc.qp_num, "ud": self.ud.qp_num, "addr": self.addr,
                "rkey": self.mr.rkey}

    def connect(self, lid, rc, **_):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ALL
        attr.dest_qp_num = rc
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(dlid=lid, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, 7
        attr.max_rd_atomic = attr.max_dest_rd_atomic = attr.min_rnr_timer = 1
        self.rc.to_rts(attr)
        self.ah = AH(self.pd, attr=AHAttr(dlid=lid, port_num=1))

    def unmap(self, at=0, length=BYTES):
        return libc.munmap(self.addr + at, length)

    def piece(self, length, mine):
        """@mine: of the region that may be gone."""
        return SGE(self.addr, length, self.mr.lkey) if mine else SGE(self.own.buf, length,
                                                                     self.own.lkey)

    def receive(self, length, mine=False, kind="rc"):
        qp = self.rc if kind == "rc" else self.ud
        qp.post_recv(RecvWR(num_sge=1, sg=[self.piece(length, mine)]))

    def wait(self, cq):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            n, wcs = cq.poll(1)
            if n:
                return wcs[0].status
        raise SystemExit("no completion")

    def received(self):
        return self.wait(self.recv_cq)

    def request(self, opcode, length, addr=0, rkey=0, mine=False, times=1):
        """The status of the last."""
        for _ in range(times):
            wr = SendWR(opcode=OPCODES[opcode], num_sge=1, sg=[self.piece(length, mine)])
            if opcode == "add":
                wr.set_wr_atomic(rkey, addr, 1, 0)
            elif opcode != "send":
                wr.set_wr_rdma(rkey, addr)
            self.rc.post_send(wr)
            status = self.wait(self.cq)
        return status

    def datagram(self, length, ud, mine=False):
        wr = SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[self.piece(length, mine)])
        wr.set_wr_ud(self.ah, ud, QKEY)
        self.ud.post_send(wr)
        return self.wait(self.cq)


side = Side()
print(json.dumps(side.info()), flush=True)
for line in sys.stdin:
    words = json.loads(line)
    print(json.dumps(getattr(side, words.pop("do"))(**words)), flush=True)
