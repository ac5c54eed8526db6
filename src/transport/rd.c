/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams (9.7, 9.7.8): messages between any RD QPs of two ports share one connection,
 * whose ends are EE contexts. An EE context has the connection state of an RC QP (path, PSNs,
 * retries, responder resources), and the same code handles it. An RD QP has the work queues.
 *
 *   TP_RD  the RD QP. Its send queue is held (hold.c): the engine hands the oldest request to the
 *	    EE context that the request names, and completes it when the EE context has completed it
 *   TP_EE  the EE context. It sends one message at a time, whose packets name both RD QPs
 *
 * An error of a message leaves both EE contexts usable. The requester abandons the message, the send
 * queue of its RD QP goes to SQE, and a RESYNC request moves the responder to the next PSN. A
 * receive that the message had begun to fill completes with REM_ABORT_ERR. An EE context goes to the
 * error state only if the peer does not answer.
 *
 * An RNR NAK suspends the message: the requester abandons it in the same way but without an error,
 * and sends it again later (9.7.5.2.8). Messages of other RD QPs do not wait for it.
 */
#include "transport/qp.h"

void tp_ee_address(const struct tp_qp *qp, uint32_t index, struct tp_packet_out *out)
{
	const struct tp_destination *to = &qp->sq.destinations[index & qp->sq.mask];

	out->hdr.bth.dest_qpn = to->qpn;
	out->hdr.rd_ee_context = qp->attr.dest_qpn;
	out->hdr.deth = (struct wire_deth){to->qkey, to->src_qpn};
}

void tp_ee_abandon(struct tp_qp *qp)
{
	bool drains = qp->state == IBV_QPS_SQD;

	tp_sq_flush(qp);
	tp_sq_progressed(qp);
	if (drains) {
		qp->sq.stop = TP_STOP_DRAIN;
		tp_sq_at_end(qp);
	}
}

/* The rest of the message that is being received will not come. */
static void abandon(struct tp_qp *qp, uint8_t recv_status)
{
	struct tp_responder *r = &qp->resp;

	tp_recv_fail(qp, recv_status ? recv_status : IBV_WC_REM_ABORT_ERR);
	r->message = TP_MESSAGE_NONE;
	tp_owes_nothing(r);
}

void tp_ee_fault(struct tp_qp *qp, uint8_t syndrome, uint8_t recv_status, psn_t at)
{
	struct tp_responder *r = &qp->resp;

	abandon(qp, recv_status);
	r->pending &= TP_RESPONSE_RESOURCE;
	tp_queue_nak(r, syndrome, at);
	r->nak_sent = true; /* packets of the message are dropped until RESYNC */
}

/* The requester has abandoned a message, and continues with the PSN after its last packet. */
static void resync(struct tp_qp *qp, psn_t at)
{
	struct tp_responder *r = &qp->resp;

	abandon(qp, 0);
	r->res_scan = r->res_head; /* the requester discards responses to earlier requests */
	r->epsn = at;
	r->nak_sent = false;
	r->pending = TP_RESPONSE_ACK;
	tp_expect_next(r, 1, 1);
}

void tp_ee_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	qp->resp.src_qpn = pkt->deth.src_qpn;
	if (pkt->bth.opcode == (WIRE_RD | WIRE_RESYNC) &&
	    psn_diff(pkt->bth.psn, qp->resp.epsn) >= 0)
		resync(qp, pkt->bth.psn);
	else
		tp_responder_receive(qp, pkt, flags);
}

void tp_qp_refuse_rd(struct tp_qp *qp, const struct wire_packet *pkt)
{
	qp->resp.src_qpn = pkt->deth.src_qpn;
	if (tp_state_receives(qp->state))
		tp_responder_fault(qp, TP_INVALID_RD, qp->resp.epsn);
}

void tp_qp_drop_receive(struct tp_qp *qp, enum ibv_wc_status status)
{
	tp_recv_fail(qp, status);
}
