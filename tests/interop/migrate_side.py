# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs on a node, by test_migrate.py: one end of a connection with an alternate path.

    migrate_side.py send|receive|refuse COUNT

Prints the LIDs of its two ports and its QPN, reads the peer's from a line. Messages go
from port 1 to port 1. The sender sends half of them, prints "half", and the rest at the
line "go"; it prints its LID, then, in use. The receiver prints the numbers that came.
Both end when the event has come that says that the path migrated, whose name they print; one that
refuses awaits only that.
"""
import json
import struct
import sys

import pyverbs.enums as e
from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

BYTES = 4
TIMEOUT = 14


class End:
    def __init__(self, count):
        self.count = count
        self.ctx = Context(name="softib0")
        self.cq = CQ(self.ctx, count)
        pd = PD(self.ctx)
        self.mr = MR(pd, BYTES * count, e.IBV_ACCESS_LOCAL_WRITE)
        cap = QPCap(max_send_wr=1, max_recv_wr=count, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap,
                                    sq_sig_all=1))

    def lids(self):
        return [self.ctx.query_port(port).lid for port in (1, 2)]

    def connect(self, lid, other_lid, qpn):
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = qpn
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(dlid=lid, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = TIMEOUT, 1, 7
        attr.max_rd_atomic = attr.max_dest_rd_atomic = attr.min_rnr_timer = 1
        self.qp.to_rts(attr)
        attr = QPAttr()
        attr.alt_ah_attr = AHAttr(dlid=other_lid, port_num=2)
        attr.alt_port_num, attr.alt_timeout = 2, TIMEOUT
        attr.path_mig_state = e.IBV_MIG_REARM
        self.qp.modify(attr, e.IBV_QP_ALT_PATH | e.IBV_QP_PATH_MIG_STATE)

    def sge(self, number):
        return SGE(self.mr.buf + number * BYTES, BYTES, self.mr.lkey)

    def completion(self):
        while True:
            for wc in self.cq.poll(1)[1] or []:
                assert wc.status == e.IBV_WC_SUCCESS, wc
                return wc

    def send(self, numbers):
        for number in numbers:
            self.mr.write(struct.pack("<I", number), BYTES, number * BYTES)
            self.qp.post_send(SendWR(wr_id=number, num_sge=1, sg=[self.sge(number)]))
            self.completion()

    def receive(self):
        return [struct.unpack("<I", self.mr.read(BYTES, self.completion().wr_id * BYTES))[0]
                for _ in range(self.count)]

    def migration(self):
        while True:
            event = self.ctx.get_async_event()
            event.ack()
            if event.event_type in (e.IBV_EVENT_PATH_MIG, e.IBV_EVENT_PATH_MIG_ERR):
                return "migrated" if event.event_type == e.IBV_EVENT_PATH_MIG else "refused"


def main():
    role, count = sys.argv[1], int(sys.argv[2])
    end = End(count)
    print(*end.lids(), end.qp.qp_num, flush=True)
    end.connect(*map(int, sys.stdin.readline().split()))
    if role != "send":
        for number in range(count):
            end.qp.post_recv(RecvWR(wr_id=number, num_sge=1, sg=[end.sge(number)]))
    print("ready", flush=True)
    sys.stdin.readline()
    if role == "receive":
        print(json.dumps(end.receive()), flush=True)
    elif role == "send":
        end.send(range(count // 2))
        print("half", flush=True)
        sys.stdin.readline()
        end.send(range(count // 2, count))
    print(end.migration(), flush=True)
    print(end.qp.query(e.IBV_QP_AV | e.IBV_QP_PORT)[0].port_num, flush=True)


main()
