# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs on a node, by test_faults.py: messages that bear their number.

    numbered.py send|receive RC|UC|UD COUNT [RNR_RETRY]

Prints its LID and QPN, reads the peer's from a line. The receiver posts all
its receives and prints "ready"; the sender sends all at the line "go" and
prints the statuses that its completions had; the receiver, at the line "stop",
prints the numbers that came, in order, as JSON.
"""
import json
import struct
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

QKEY = 0x11111111
BYTES = 64
GRH_BYTES = 40
DEPTH = 64
RNR_RETRY = int(sys.argv[4]) if len(sys.argv) > 4 else 7  # 7: for ever
QUIET_S = 1.0  # nothing came for so long: nothing is under way any more


def pattern(number):
    """A message: its number, and bytes that follow from it."""
    return struct.pack("<I", number) + bytes((number + i) & 0xff for i in range(BYTES - 4))


class End:
    def __init__(self, kind, count):
        self.kind, self.count = kind, count
        self.ctx = Context(name="softib0")
        self.lid = self.ctx.query_port(1).lid
        self.pd = PD(self.ctx)
        self.cq = CQ(self.ctx, count + DEPTH)
        self.slot = BYTES + GRH_BYTES
        self.mr = MR(self.pd, self.slot * count, e.IBV_ACCESS_LOCAL_WRITE)
        cap = QPCap(max_send_wr=DEPTH, max_recv_wr=count, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=getattr(e, f"IBV_QPT_{kind}"), scq=self.cq, rcq=self.cq, cap=cap,
                          sq_sig_all=1)
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        self.qp = QP(self.pd, init, attr) if kind == "UD" else QP(self.pd, init)

    def connect(self, lid, qpn):
        self.peer = (lid, qpn)
        if self.kind == "UD":
            self.ah = AH(self.pd, attr=AHAttr(dlid=lid, port_num=1))
            return
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = qpn
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(dlid=lid, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 7, RNR_RETRY
        attr.max_rd_atomic = attr.max_dest_rd_atomic = attr.min_rnr_timer = 1
        self.qp.to_rts(attr)

    def post_receives(self):
        for i in range(self.count):
            sge = SGE(self.mr.buf + i * self.slot, self.slot, self.mr.lkey)
            self.qp.post_recv(RecvWR(wr_id=i, num_sge=1, sg=[sge]))

    def send_all(self):
        statuses, under_way = {}, 0
        for i in range(self.count):
            self.mr.write(pattern(i), BYTES, i * self.slot)
            wr = SendWR(wr_id=i, num_sge=1,
                        sg=[SGE(self.mr.buf + i * self.slot, BYTES, self.mr.lkey)])
            if self.kind == "UD":
                wr.set_wr_ud(self.ah, self.peer[1], QKEY)
            self.qp.post_send(wr)
            under_way += 1
            while under_way >= DEPTH or (under_way and i == self.count - 1):
                for wc in self.cq.poll(DEPTH)[1] or []:
                    statuses[wc.status] = statuses.get(wc.status, 0) + 1
                    under_way -= 1
        return statuses

    def received(self):
        came, last = [], time.monotonic()
        while len(came) < self.count and time.monotonic() - last < QUIET_S:
            for wc in self.cq.poll(DEPTH)[1] or []:
                assert wc.status == e.IBV_WC_SUCCESS, wc
                offset = wc.wr_id * self.slot + (GRH_BYTES if self.kind == "UD" else 0)
                data = self.mr.read(BYTES, offset)
                number = struct.unpack("<I", data[:4])[0]
                assert data == pattern(number), f"message {number} is not what was sent"
                came.append(number)
                last = time.monotonic()
        return came


def main():
    role, kind, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    end = End(kind, count)
    print(end.lid, end.qp.qp_num, flush=True)
    end.connect(*map(int, sys.stdin.readline().split()))
    if role == "receive":
        end.post_receives()
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            print(json.dumps(end.received()), flush=True)
        except AssertionError as wrong:
            sys.exit(wrong)
    else:
        sys.stdin.readline()
        print(json.dumps(end.send_all()), flush=True)


main()
