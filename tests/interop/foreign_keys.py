# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs on a node, by test_bad_input.py: requests with keys that are not for
them. RC is told (9.7.5.2.4), a datagram with a wrong Q_Key is dropped
(10.2.4), a P_Key beyond the port's table is no QP's (11.2.5.2)."""
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsError, PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
WRONG_QKEY = 0x22222222
BYTES = 4096


def poll(cq):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        n, wcs = cq.poll(1)
        if n:
            return wcs[0]
    raise SystemExit("no completion")


class Side:
    def __init__(self, kind):
        self.ctx = Context(name="softib0")
        self.lid = self.ctx.query_port(1).lid
        self.pd, self.other_pd = PD(self.ctx), PD(self.ctx)
        self.cq = CQ(self.ctx, 16)
        self.mr = MR(self.pd, BYTES, ALL)
        cap = QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
        init = QPInitAttr(qp_type=kind, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=1)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ALL
        attr.qkey = 0x11111111
        self.qp = QP(self.pd, init, attr) if kind == e.IBV_QPT_UD else QP(self.pd, init)

    def sge(self):
        return [SGE(self.mr.buf, 64, self.mr.lkey)]


def connect(a, b):
    for near, far in ((a, b), (b, a)):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ALL
        attr.dest_qp_num = far.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.ah_attr = AHAttr(dlid=far.lid, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 14, 3, 3
        attr.max_rd_atomic = attr.max_dest_rd_atomic = attr.min_rnr_timer = 1
        near.qp.to_rts(attr)


def write_to(choose, opcode=e.IBV_WR_RDMA_WRITE):
    """The status of a request to the (address, rkey) that @choose gives of its target."""
    a, b = Side(e.IBV_QPT_RC), Side(e.IBV_QPT_RC)
    connect(a, b)
    addr, rkey, keep = choose(b)
    wr = SendWR(opcode=opcode, num_sge=1, sg=a.sge())
    wr.set_wr_rdma(rkey, addr)
    before = b.mr.read(64, 0)
    a.mr.write("x" * 64, 64)
    a.qp.post_send(wr)
    status = poll(a.cq).status
    if status != e.IBV_WC_SUCCESS:
        assert b.mr.read(64, 0) == before, "written all the same"
        assert b.qp.query(e.IBV_QP_STATE)[0].qp_state == e.IBV_QPS_ERR, "C9-220: in error"
    del keep
    return status


def elsewhere(pd, side, access=ALL):
    mr = MR(pd(side), BYTES, access)
    return mr.buf, mr.rkey, mr


def dead(side):
    mr = MR(side.pd, BYTES, ALL)
    buf, rkey = mr.buf, mr.rkey
    mr.close()
    return buf, rkey, None


def foreign_rkeys():
    assert write_to(lambda s: (s.mr.buf, s.mr.rkey, None)) == e.IBV_WC_SUCCESS
    wrong = {
        "no key": lambda s: (s.mr.buf, 0xdeadbeef, None),
        "next key": lambda s: (s.mr.buf, s.mr.rkey ^ 1, None),
        "before": lambda s: (s.mr.buf - 1, s.mr.rkey, None),
        "beyond": lambda s: (s.mr.buf + BYTES - 63, s.mr.rkey, None),
        "wraps": lambda s: ((1 << 64) - 32, s.mr.rkey, None),
        "another PD": lambda s: elsewhere(lambda s: s.other_pd, s),
        "read only": lambda s: elsewhere(lambda s: s.pd, s, e.IBV_ACCESS_REMOTE_READ),
        "local only": lambda s: elsewhere(lambda s: s.pd, s, e.IBV_ACCESS_LOCAL_WRITE),
        "deregistered": dead,
    }
    for what, choose in wrong.items():
        status = write_to(choose)
        assert status == e.IBV_WC_REM_ACCESS_ERR, f"{what}: status {status}"
    status = write_to(wrong["another PD"], e.IBV_WR_RDMA_READ)
    assert status == e.IBV_WC_REM_ACCESS_ERR, f"read: status {status}"


def datagram(a, b, qkey):
    wr = SendWR(num_sge=1, sg=a.sge())
    wr.set_wr_ud(AH(a.pd, attr=AHAttr(dlid=b.lid, port_num=1)), b.qp.qp_num, qkey)
    a.qp.post_send(wr)
    assert poll(a.cq).status == e.IBV_WC_SUCCESS


def foreign_qkey():
    a, b = Side(e.IBV_QPT_UD), Side(e.IBV_QPT_UD)
    for _ in range(2):
        b.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(b.mr.buf, 256, b.mr.lkey)]))
    datagram(a, b, WRONG_QKEY)
    datagram(a, b, 0x11111111)
    assert poll(b.cq).byte_len == 40 + 64
    assert b.cq.poll(1)[0] == 0, "a datagram of another Q_Key was received"


def violations(side):
    return side.ctx.query_port(1).qkey_viol_cntr


def foreign_qkey_on_a_running_flow():
    """By a lane, if there are lanes: the port counts each, as softibd would."""
    a, b = Side(e.IBV_QPT_UD), Side(e.IBV_QPT_UD)
    before = violations(b)
    for _ in range(200):
        b.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(b.mr.buf, 256, b.mr.lkey)]))
        datagram(a, b, 0x11111111)
        assert poll(b.cq).byte_len == 40 + 64
    assert violations(b) == before
    b.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(b.mr.buf, 256, b.mr.lkey)]))
    for _ in range(50):
        datagram(a, b, WRONG_QKEY)
    datagram(a, b, 0x11111111)
    poll(b.cq)
    end = time.monotonic() + 60
    while violations(b) < before + 50 and time.monotonic() < end:
        pass
    assert violations(b) == before + 50, f"{violations(b) - before} of 50 wrong Q_Keys are counted"


def foreign_pkey():
    side = Side(e.IBV_QPT_RC)
    attr = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
    attr.pkey_index = side.ctx.query_device().max_pkeys
    mask = e.IBV_QP_STATE | e.IBV_QP_PKEY_INDEX | e.IBV_QP_PORT | e.IBV_QP_ACCESS_FLAGS
    try:
        side.qp.modify(attr, mask)
    except (PyverbsError, PyverbsRDMAError):
        return
    raise SystemExit("a QP has a P_Key that the port does not have")


foreign_rkeys()
foreign_qkey()
foreign_qkey_on_a_running_flow()
foreign_pkey()
print("all refused")
