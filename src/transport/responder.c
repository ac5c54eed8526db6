/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The RC responder (9.7.4, 9.7.5, 9.9.3).
 *
 * A request packet is expected, duplicate or too early by its PSN. Expected
 * ones are executed and move the expected PSN on; duplicates are answered
 * again; the first that is too early asks for the missing (NAK), the rest
 * are dropped until it comes.
 *
 * Answers are not sent here but noted in resp.pending: an ACK that waits
 * covers every request up to the expected PSN, so however many requests
 * come before tp_qp_transmit() asks, one ACK answers them. Responses of
 * READs and atomics go first, a NAK is last. The ACK of a whole message may
 * even wait to travel with a request of this QP; one that is asked for in the
 * middle of a message may not: a sender with a full window wants it.
 */
#include "transport/qp.h"

/* 9.9.3.1: what an error of a request does to both sides */
struct fault {
	uint8_t syndrome;
	uint8_t recv_status; /* status of the receive in use; 0: it is flushed like all others */
	uint8_t event;	     /* affiliated asynchronous error, 0: none */
};

#define NAK(code) (WIRE_AETH_NAK | (code))

static const struct fault faults[] = {
	[TP_INVALID_REQUEST] = {NAK(WIRE_NAK_INVALID_REQUEST), 0, TP_EVENT_QP_REQ_ERR},
	[TP_REMOTE_ACCESS] = {NAK(WIRE_NAK_REMOTE_ACCESS), 0, TP_EVENT_QP_ACCESS_ERR},
	[TP_RECV_TOO_SHORT] = {NAK(WIRE_NAK_INVALID_REQUEST), IBV_WC_LOC_LEN_ERR, 0},
	[TP_RECV_VIOLATION] = {NAK(WIRE_NAK_REMOTE_OPERATIONAL), IBV_WC_LOC_PROT_ERR, 0},
	[TP_INVALIDATE_FAILED] = {NAK(WIRE_NAK_REMOTE_ACCESS), IBV_WC_LOC_ACCESS_ERR,
				  TP_EVENT_QP_ACCESS_ERR},
	[TP_INVALID_RD] = {NAK(WIRE_NAK_INVALID_RD_REQUEST), 0, 0},
};

void tp_queue_nak(struct tp_responder *r, uint8_t syndrome, psn_t at)
{
	r->nak_syndrome = syndrome;
	r->nak_psn = at;
	r->pending |= TP_RESPONSE_NAK;
}

void tp_responder_fault(struct tp_qp *qp, enum tp_verdict verdict, psn_t at)
{
	struct tp_responder *r = &qp->resp;
	const struct fault *f = &faults[verdict];
	uint8_t earlier = r->pending & TP_RESPONSE_RESOURCE;

	if (unlikely(qp->can & TP_EE_CONTEXT)) {
		tp_ee_fault(qp, f->syndrome, f->recv_status, at);
		return;
	}
	if (f->recv_status)
		tp_recv_fail(qp, f->recv_status);
	if (f->event)
		qp->ops->event(qp->ctx, f->event);
	tp_qp_fail(qp);
	/* the responses to earlier requests, and the NAK, are still sent */
	r->pending = earlier;
	tp_queue_nak(r, f->syndrome, at);
}

/* Does a fault rule want the packet to be refused as if there were no receive for it? */
static bool marked_rnr(const struct wire_packet *pkt, uint32_t flags)
{
	return pkt->lrh.rnr_mark & (WIRE_RNR_OWN | WIRE_RNR_TIMER) && wire_takes_receive(flags);
}

static uint8_t rnr_timer_enc(const struct tp_qp *qp, const struct wire_packet *pkt)
{
	return pkt->lrh.rnr_mark & WIRE_RNR_TIMER ? pkt->lrh.rnr_mark & WIRE_RNR_TIMER_MASK :
						    qp->attr.min_rnr_timer_enc;
}

static void expected(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	struct tp_responder *r = &qp->resp;
	enum tp_verdict verdict = TP_INVALID_REQUEST; /* for an opcode that is none of a request */

	r->nak_sent = false;
	r->pending &= (uint8_t)~TP_RESPONSE_NAK;
	if (unlikely(marked_rnr(pkt, flags)))
		verdict = TP_NO_RECEIVE;
	else if (flags & (WIRE_IS_SEND | WIRE_IS_WRITE))
		verdict = tp_message_receive(qp, pkt, flags);
	else if (flags & (WIRE_IS_READ | WIRE_IS_ATOMIC))
		verdict = tp_resource_request(qp, pkt, flags);

	if (unlikely(verdict == TP_NO_RECEIVE)) { /* 9.7.5.2.8 */
		tp_count(qp, TP_RNR_NAK_SENT);
		tp_queue_nak(r, WIRE_AETH_RNR_NAK | rnr_timer_enc(qp, pkt), r->epsn);
		r->nak_sent = true;
	} else if (unlikely(verdict != TP_ACCEPT)) {
		tp_responder_fault(qp, verdict, r->epsn);
	} else if (flags & (WIRE_IS_SEND | WIRE_IS_WRITE)) {
		tp_received(r, pkt->packets, flags & WIRE_IS_LAST ? 1 : 0, pkt->bth.ack_req);
	}
}

/* @behind: how many packets before the expected one it begins */
static void duplicate(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
		      uint32_t behind)
{
	struct wire_packet rest;

	tp_count(qp, TP_DUPLICATE_REQUEST);
	if (flags & (WIRE_IS_READ | WIRE_IS_ATOMIC)) {
		tp_resource_duplicate(qp, pkt, flags);
		return;
	}
	/* C9-105: not executed again, but acknowledged */
	qp->resp.pending |= TP_RESPONSE_ACK;
	if (pkt->packets <= behind || pkt->payload_bytes <= behind << qp->mtu_shift)
		return;
	/* a segment of which only the end is new */
	tp_trim(qp, pkt, behind, &rest);
	expected(qp, &rest, flags & ~(uint32_t)WIRE_IS_FIRST);
}

static void too_early(struct tp_qp *qp)
{
	struct tp_responder *r = &qp->resp;

	tp_count(qp, TP_OUT_OF_SEQUENCE);
	if (r->nak_sent) /* one NAK per gap */
		return;
	r->nak_sent = true;
	tp_queue_nak(r, NAK(WIRE_NAK_PSN_SEQUENCE), r->epsn);
}

void tp_responder_receive(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags)
{
	int32_t ahead = psn_diff(pkt->bth.psn, qp->resp.epsn);

	if (likely(ahead == 0))
		expected(qp, pkt, flags);
	else if (ahead < 0)
		duplicate(qp, pkt, flags, (uint32_t)-ahead);
	else
		too_early(qp);
}

void tp_fill_response(const struct tp_qp *qp, struct tp_packet_out *out,
		      uint8_t operation, psn_t at)
{
	out->hdr.bth = (struct wire_bth){
		.opcode = qp->transport | operation,
		.mig_req = true,
		.pkey = qp->attr.pkey,
		.dest_qpn = qp->attr.dest_qpn,
		.psn = at,
	};
	if (unlikely(qp->can & TP_EE_CONTEXT)) {
		out->hdr.bth.dest_qpn = qp->resp.src_qpn;
		out->hdr.rd_ee_context = qp->attr.dest_qpn;
	}
	out->hdr.payload = NULL;
	out->hdr.payload_bytes = 0;
	out->hdr.packets = 1;
	out->num_pieces = 0;
	out->av = &qp->attr.av;
}

bool tp_responder_transmit(struct tp_qp *qp, struct tp_packet_out *out, uint32_t most)
{
	struct tp_responder *r = &qp->resp;
	struct wire_aeth aeth;
	bool is_nak;
	psn_t at;

	if (r->pending & TP_RESPONSE_RESOURCE && tp_resource_transmit(qp, out, most))
		return true;
	if (!(r->pending & (TP_RESPONSE_NAK | TP_RESPONSE_ACK | TP_RESPONSE_OWED)))
		return false;
	is_nak = r->pending & TP_RESPONSE_NAK;
	at = tp_take_all_acks(r, &aeth);
	if (is_nak) { /* it acknowledges all before it */
		at = r->nak_psn;
		aeth.syndrome = r->nak_syndrome;
	}
	tp_fill_response(qp, out, WIRE_ACKNOWLEDGE, at);
	out->hdr.aeth = aeth;
	return true;
}
