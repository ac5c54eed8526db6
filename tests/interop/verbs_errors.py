#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""An ordinary verbs program on rdma-core's python binding: two queue pairs of
one process, and in each case something that goes wrong between them.

    verbs_errors.py CASE

prints what a program sees, a line each: "send STATUS" and "recv STATUS" of
completions by the names of <infiniband/verbs.h>, "event TYPE" of asynchronous
events, "errno NAME" of calls that fail. test_errors.py says what it must be.
"""
import errno
import os
import sys

from pyverbs.addr import AHAttr
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs import enums as e
from pyverbs.mr import MR, MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

ALL = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
       e.IBV_ACCESS_REMOTE_ATOMIC)
STATUS = {value: name for name, value in vars(e).items() if name.startswith("IBV_WC_") and
          name.removeprefix("IBV_WC_").split("_")[0] in
          ("SUCCESS", "LOC", "REM", "WR", "MW", "BAD", "RETRY", "RNR", "INV", "FATAL", "RESP",
           "GENERAL", "TM")}
EVENT = {value: name for name, value in vars(e).items() if name.startswith("IBV_EVENT_")}
SIZE = 4096


def say(*words):
    print(*words, flush=True)


class World:
    """One device, and what most cases need of it."""

    def __init__(self, cqe=64):
        self.ctx = Context(name="softib0")
        self.lid = self.ctx.query_port(1).lid
        self.pd = PD(self.ctx)
        self.mr = MR(self.pd, SIZE, ALL)
        self.cqe = cqe
        self.kept = []

    def end(self, kind=e.IBV_QPT_RC, srq=None, max_recv=16, **cap):
        """A QP with a CQ for each direction, INIT not yet."""
        cqs = CQ(self.ctx, self.cqe), CQ(self.ctx, self.cqe)
        caps = QPCap(max_send_wr=16, max_recv_wr=max_recv, max_send_sge=1, max_recv_sge=1, **cap)
        init = QPInitAttr(qp_type=kind, scq=cqs[0], rcq=cqs[1], cap=caps, srq=srq, sq_sig_all=1)
        qp = QP(self.pd, init)
        self.kept.append((qp, cqs))
        return qp, cqs[0], cqs[1]

    def attr(self, peer_qpn, lid=None, timeout=8, retry=1, rnr_retry=0, rd=1, access=ALL):
        attr = QPAttr(port_num=1)
        attr.dest_qp_num = peer_qpn
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = rd
        attr.min_rnr_timer = 1
        attr.qp_access_flags = access
        attr.timeout, attr.retry_cnt, attr.rnr_retry = timeout, retry, rnr_retry
        attr.ah_attr = AHAttr(port_num=1, is_global=0, dlid=self.lid if lid is None else lid)
        return attr

    def pair(self, **attrs):
        """Two connected ends: [(qp, send CQ, receive CQ)] * 2."""
        a, b = self.end(), self.end()
        a[0].to_rts(self.attr(b[0].qp_num, **attrs))
        b[0].to_rts(self.attr(a[0].qp_num, **attrs))
        return a, b

    def sge(self, length=64, lkey=None, offset=0):
        return SGE(self.mr.buf + offset, length, self.mr.lkey if lkey is None else lkey)

    def receive(self, end, **sge):
        end[0].post_recv(RecvWR(num_sge=1, sg=[self.sge(**sge)]))

    def send(self, end, opcode=e.IBV_WR_SEND, rkey=None, remote=None, **sge):
        wr = SendWR(num_sge=1, sg=[self.sge(**sge)], opcode=opcode,
                    send_flags=e.IBV_SEND_SIGNALED)
        wr.set_wr_rdma(self.mr.rkey if rkey is None else rkey,
                       self.mr.buf + 1024 if remote is None else remote)
        end[0].post_send(wr)


def outcome(word, cq):
    """Wait for a completion and say its status."""
    while True:
        n, wcs = cq.poll(1)
        if n:
            say(word, STATUS[wcs[0].status])
            return


def event(w):
    got = w.ctx.get_async_event()
    say("event", EVENT[got.event_type])
    got.ack()


# --- completions ---

def loc_len_err(w):
    a, b = w.pair()
    w.receive(b, length=16)
    w.send(a, length=64)
    outcome("recv", b[2])
    outcome("send", a[1])


def loc_qp_op_err(w):
    """A read on a QP that may have none outstanding."""
    a, _ = w.pair(rd=0)
    w.send(a, e.IBV_WR_RDMA_READ)
    outcome("send", a[1])


def loc_prot_err(w):
    a, _ = w.pair()
    w.send(a, lkey=w.mr.lkey ^ 0xff)
    outcome("send", a[1])


def mw_bind_err(w):
    """The region does not allow that windows are bound to it."""
    a, _ = w.pair()
    wr = SendWR(opcode=e.IBV_WR_BIND_MW)
    window = MW(w.pd, e.IBV_MW_TYPE_2)  # the request does not keep it
    wr.set_bind_wr(window, MWBindInfo(w.mr, w.mr.buf, 64, ALL))
    a[0].post_send(wr)
    outcome("send", a[1])


def rem_op_err(w):
    """The receiver's own buffer is not registered."""
    a, b = w.pair()
    w.receive(b, lkey=w.mr.lkey ^ 0xff)
    w.send(a)
    outcome("recv", b[2])
    outcome("send", a[1])


def wr_flush_err(w):
    a, b = w.pair()
    w.receive(a)
    w.send(a, lkey=w.mr.lkey ^ 0xff)
    w.send(a)
    outcome("send", a[1])
    outcome("send", a[1])
    outcome("recv", a[2])


def rem_inv_req_err(w):
    """A write to a QP that takes none."""
    a, _ = w.pair(access=e.IBV_ACCESS_LOCAL_WRITE)
    w.send(a, e.IBV_WR_RDMA_WRITE)
    outcome("send", a[1])


def rem_access_err(w):
    a, _ = w.pair()
    w.send(a, e.IBV_WR_RDMA_WRITE, rkey=w.mr.rkey ^ 0xff)
    outcome("send", a[1])
    event(w)


def loc_access_err(w):
    """A send that shall invalidate a key it may not."""
    a, b = w.pair()
    w.receive(b)
    wr = SendWR(num_sge=1, sg=[w.sge()], opcode=e.IBV_WR_SEND_WITH_INV,
                send_flags=e.IBV_SEND_SIGNALED, imm_data=w.mr.rkey ^ 0xff)
    a[0].post_send(wr)
    outcome("recv", b[2])
    outcome("send", a[1])


def retry_exc_err(w):
    a = w.end()
    a[0].to_rts(w.attr(0xfffff0))
    w.send(a)
    outcome("send", a[1])


def rnr_retry_exc_err(w):
    a, _ = w.pair()
    w.send(a)
    outcome("send", a[1])


def read(w):
    """Nothing is wrong here, but with a fault that a test adds."""
    a, _ = w.pair(timeout=14, retry=7)
    w.send(a, e.IBV_WR_RDMA_READ)
    outcome("send", a[1])


# --- events ---

def cq_err(w):
    """More completions than the CQ holds."""
    w.cqe = 1
    a, b = w.pair()
    for _ in range(4):
        w.receive(b)
        w.send(a)
    event(w)


def qp_fatal(w):
    """A CQ that overran takes its QPs along."""
    cq_err(w)
    event(w)


def comm_est(w):
    """A packet before the QP was told that its peer is there."""
    a, b = w.end(), w.end()
    a[0].to_rts(w.attr(b[0].qp_num))
    b[0].to_rtr(w.attr(a[0].qp_num))
    w.receive(b)
    w.send(a)
    outcome("recv", b[2])
    event(w)


def sq_drained(w):
    a, _ = w.pair()
    attr = QPAttr(qp_state=e.IBV_QPS_SQD)
    attr.en_sqd_async_notify = 1
    a[0].modify(attr, e.IBV_QP_STATE | e.IBV_QP_EN_SQD_ASYNC_NOTIFY)
    event(w)


def make_srq(w, **attr):
    return SRQ(w.pd, SrqInitAttr(SrqAttr(max_wr=8, max_sge=1, **attr)))


def srq_limit_reached(w):
    srq = make_srq(w)
    a, b = w.end(), w.end(srq=srq)
    a[0].to_rts(w.attr(b[0].qp_num))
    b[0].to_rts(w.attr(a[0].qp_num))
    for _ in range(2):
        srq.post_recv(RecvWR(num_sge=1, sg=[w.sge()]))
    srq.modify(SrqAttr(srq_limit=2), e.IBV_SRQ_LIMIT)
    w.send(a)
    event(w)


def srq_err(w):
    """Nobody polls the CQ of an SRQ of an XRC domain."""
    flags = e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS
    xrcd = XRCD(w.ctx, XRCDInitAttr(flags, os.O_CREAT, -1))
    init = SrqInitAttrEx(max_wr=8, max_sge=1)
    init.srq_type = e.IBV_SRQT_XRC
    init.comp_mask = (e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_PD |
                      e.IBV_SRQ_INIT_ATTR_CQ | e.IBV_SRQ_INIT_ATTR_XRCD)
    init.pd, init.cq, init.xrcd = w.pd, CQ(w.ctx, 1), xrcd
    srq = SRQ(w.ctx, init)
    a = QP(w.ctx, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_SEND, comp_mask=e.IBV_QP_INIT_ATTR_PD,
                               pd=w.pd, scq=CQ(w.ctx, w.cqe), sq_sig_all=1,
                               cap=QPCap(max_send_wr=16, max_recv_wr=0, max_recv_sge=0)))
    b = QP(w.ctx, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_RECV, xrcd=xrcd, cap=QPCap(0, 0, 0, 0),
                               comp_mask=e.IBV_QP_INIT_ATTR_XRCD))
    a.to_rts(w.attr(b.qp_num))
    b.to_rts(w.attr(a.qp_num))
    for _ in range(4):
        srq.post_recv(RecvWR(num_sge=1, sg=[w.sge()]))
        wr = SendWR(num_sge=1, sg=[w.sge()])
        wr.set_qp_type_xrc(srq.get_srq_num())
        a.post_send(wr)
    for _ in ("CQ_ERR", "QP_FATAL", "SRQ_ERR"):
        event(w)


def qp_last_wqe_reached(w):
    srq = make_srq(w)
    b = w.end(srq=srq)
    b[0].to_rts(w.attr(b[0].qp_num))
    b[0].modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
    event(w)


def qp_access_err(w):
    rem_access_err(w)


def qp_req_err(w):
    rem_inv_req_err(w)
    event(w)


def wait_for_event(w):
    """A connected QP with an SRQ, named; then whatever comes."""
    srq = make_srq(w)
    a = w.end(srq=srq)
    a[0].to_rts(w.attr(a[0].qp_num))
    say("qp", hex(a[0].qp_num))
    event(w)


def wait_for_overrun(w):
    """One receive, and a CQ that has room for its completion."""
    a, b = w.pair()
    w.receive(b)
    w.send(a)
    event(w)
    try:
        while True:
            b[2].poll(1)
            a[1].poll(1)
    except PyverbsRDMAError:
        say("poll failed")


# --- creations ---

def create(w, what):
    try:
        what(w)
    except PyverbsRDMAError as error:
        say("errno", errno.errorcode[error.error_code])
    else:
        say("made")


CREATIONS = {
    "context": lambda w: Context(name="softib0"),
    "pd": lambda w: PD(w.ctx),
    "cq": lambda w: CQ(w.ctx, 10),
    "mr": lambda w: MR(w.pd, SIZE, ALL),
    "mw": lambda w: MW(w.pd, e.IBV_MW_TYPE_2),
    "srq": make_srq,
    "qp": lambda w: w.end(),
}


# --- the adapter goes ---

def hot_unplug(w):
    """As the kernel's uverbs after a disassociation: the event, flushed queues,
    commands that fail, objects that can still be destroyed."""
    a, b = w.pair(timeout=14, retry=7, rnr_retry=7)
    w.receive(a)
    w.send(a)  # nobody receives it: it waits
    say("ready")
    event(w)
    outcome("send", a[1])
    outcome("recv", a[2])
    for what in ("pd", "cq", "mr", "qp"):
        create(w, CREATIONS[what])
    try:
        w.ctx.query_device()
        say("made")
    except PyverbsRDMAError as error:
        say("errno", errno.errorcode[error.error_code])
    for qp, cqs in w.kept:
        qp.close()
        for cq in cqs:
            cq.close()
    w.mr.close()
    w.pd.close()
    w.ctx.close()
    say("closed")


def main():
    case = sys.argv[1]
    w = World()
    if case in CREATIONS:
        for _ in range(int(sys.argv[2])):
            create(w, CREATIONS[case])
    else:
        globals()[case](w)


main()
