/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams (9.7, 9.7.8): messages between any two RD QPs of two ports travel over one
 * connection, whose ends are EE contexts. An EE context has what an RC QP has, path, PSNs, retries
 * and the responder's resources, and the same code works on it; an RD QP has the queues.
 *
 *   TP_RD  its send queue is held (hold.c): the engine hands the oldest request to the EE
 *	    context that the request names, and completes it when that one has
 *   TP_EE  one message at a time is under way; each packet names both RD QPs
 *
 * An error of a message ends neither EE context: the requester abandons the message, its RD QP's
 * send queue fails (SQE), and RESYNC takes the responder to the next PSN. A receive that the
 * message had begun to fill ends with REM_ABORT_ERR. Only a peer that does not answer ends an EE
 * context.
 *
 * An RNR NAK suspends the message: it is abandoned in the same way, without an error, so that
 * messages of other RD QPs do not wait for the receive that this one lacks, and begins anew later
 * (9.7.5.2.8).
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

/* the message that was in progress comes no further */
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
	r->nak_sent = true; /* the rest of the message is dropped, until RESYNC */
}

/* The requester has abandoned a message, and begins anew behind its last packet. */
static void resync(struct tp_qp *qp, psn_t at)
{
	struct tp_responder *r = &qp->resp;

	abandon(qp, 0);
	r->res_scan = r->res_head; /* nobody waits for a response any more */
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
