/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SEND and RDMA WRITE packets are checked and stored into memory (9.7.4.1, 9.8.2), in the same
 * way for RC and UC. responder.c and uc.c define what a verdict means for the QP.
 *
 * A message is in progress from its first packet to its last; the states are those of enum
 * tp_message.
 */
#include "transport/guard.h"
#include "transport/qp.h"
#include "wire/address.h"

bool tp_recv_take(struct tp_qp *qp, const struct wire_packet *pkt)
{
	struct tp_responder *r = &qp->resp;

	if (!r->has_recv)
		r->has_recv = qp->ops->recv_get(qp->ctx, pkt, &r->recv);
	return r->has_recv;
}

void tp_recv_complete(struct tp_qp *qp, struct tp_wc *wc)
{
	struct tp_responder *r = &qp->resp;

	wc->wr_id = r->recv.wr_id;
	r->has_recv = false;
	qp->ops->complete_recv(qp->ctx, wc);
}

void tp_recv_fail(struct tp_qp *qp, enum ibv_wc_status status)
{
	struct tp_wc wc = {.status = (uint8_t)status, .opcode = IBV_WC_RECV};

	if (qp->resp.has_recv)
		tp_recv_complete(qp, &wc);
}

void tp_message_abandon(struct tp_qp *qp)
{
	qp->resp.message = TP_MESSAGE_NONE;
}

static enum tp_verdict check(const struct tp_qp *qp, const struct wire_packet *pkt,
			     uint32_t flags)
{
	enum tp_message kind = flags & WIRE_IS_SEND ? TP_MESSAGE_SEND : TP_MESSAGE_WRITE;

	if (unlikely(!tp_follows(&qp->resp, kind, flags & WIRE_IS_FIRST)))
		return TP_INVALID_REQUEST;
	if (unlikely(!tp_fits(qp, pkt, flags)))
		return TP_INVALID_REQUEST;
	return TP_ACCEPT;
}

void tp_recv_wc(const struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
		uint32_t length_bytes, struct tp_wc *wc)
{
	bool ud = qp->type == TP_UD;

	*wc = (struct tp_wc){
		.opcode = flags & WIRE_IS_SEND ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = length_bytes,
		.src_qpn = qp->can & TP_ADDRESSED ? pkt->deth.src_qpn : qp->attr.dest_qpn,
		.pkey_index = qp->attr.pkey_index,
		.slid = pkt->lrh.slid,
		.sl = pkt->lrh.sl,
		.dlid_path_bits = ud ? wire_path_bits(pkt->lrh.dlid, WIRE_LMC_MAX) : 0,
		.solicited = pkt->bth.solicited,
	};
	if (ud && pkt->lrh.lnh == WIRE_LNH_GRH)
		wc->wc_flags = IBV_WC_GRH;
	if (ud && pkt->ip_checked)
		wc->wc_flags |= IBV_WC_IP_CSUM_OK;
	if (flags & WIRE_HAS_IMM) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		wc->imm_or_rkey = pkt->imm;
	} else if (flags & WIRE_HAS_IETH) {
		wc->wc_flags |= IBV_WC_WITH_INV;
		wc->imm_or_rkey = pkt->ieth_rkey;
	}
}

void tp_recv_done(struct tp_qp *qp, const struct wire_packet *pkt, uint32_t flags,
		  uint32_t length_bytes)
{
	struct tp_wc wc;

	tp_recv_wc(qp, pkt, flags, length_bytes, &wc);
	tp_recv_complete(qp, &wc);
}

static enum tp_verdict receive_send(struct tp_qp *qp, const struct wire_packet *pkt,
				    uint32_t flags)
{
	static const uint8_t verdicts[] = {
		[TP_COPY_OK] = TP_ACCEPT,
		[TP_COPY_TOO_SHORT] = TP_RECV_TOO_SHORT,
		[TP_COPY_VIOLATION] = TP_RECV_VIOLATION,
	};
	struct tp_responder *r = &qp->resp;
	uint32_t skip = 0, len;
	enum tp_copy copied;

	if (flags & WIRE_IS_FIRST) {
		if (unlikely(!tp_recv_take(qp, pkt)))
			return TP_NO_RECEIVE;
		r->received_bytes = 0;
		r->cursor = (struct tp_cursor){0, 0};
		skip = MIN(r->recv.skip_bytes, pkt->payload_bytes);
	}
	len = pkt->payload_bytes - skip;
	copied = tp_scatter(qp, TP_KEY_RECEIVE, r->recv.sge, r->recv.num_sge, &r->cursor,
			    pkt->payload + skip, len);
	if (unlikely(copied != TP_COPY_OK))
		return verdicts[copied];
	r->received_bytes += len;
	if (flags & WIRE_HAS_IETH && qp->ops->invalidate(qp->ctx, pkt->ieth_rkey, true))
		return TP_INVALIDATE_FAILED;
	if (flags & WIRE_IS_LAST)
		tp_recv_done(qp, pkt, flags, r->received_bytes);
	return TP_ACCEPT;
}

/* the first packet of a WRITE: its R_Key must cover the whole (9.7.4.1.5) */
static enum tp_verdict begin_write(struct tp_qp *qp, const struct wire_packet *pkt)
{
	struct tp_responder *r = &qp->resp;

	if (pkt->reth.length_bytes > TP_MESSAGE_MAX)
		return TP_INVALID_REQUEST;
	if (!tp_may_access(qp, &pkt->reth, IBV_ACCESS_REMOTE_WRITE))
		return TP_REMOTE_ACCESS;
	r->va = pkt->reth.va;
	r->rkey = pkt->reth.rkey;
	r->length_bytes = pkt->reth.length_bytes;
	r->received_bytes = 0;
	return TP_ACCEPT;
}

static enum tp_verdict receive_write(struct tp_qp *qp, const struct wire_packet *pkt,
				     uint32_t flags)
{
	struct tp_responder *r = &qp->resp;
	uint32_t len = pkt->payload_bytes;
	enum tp_verdict verdict = TP_ACCEPT;
	uint32_t left;

	if (unlikely(!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)))
		return TP_INVALID_REQUEST;
	if (flags & WIRE_IS_FIRST)
		verdict = begin_write(qp, pkt);
	if (unlikely(verdict != TP_ACCEPT))
		return verdict;
	left = r->length_bytes - r->received_bytes;
	/* 9.7.4.1.6: the last packet completes the DMA length, and no packet before it does */
	if (unlikely(flags & WIRE_IS_LAST ? len != left : len >= left))
		return TP_INVALID_REQUEST;
	if (flags & WIRE_HAS_IMM && unlikely(!tp_recv_take(qp, pkt)))
		return TP_NO_RECEIVE;
	for (uint64_t done = 0, run; done < len; done += run) {
		void *to;

		run = len - done;
		to = qp->ops->mem(qp->ctx, r->rkey, r->va + r->received_bytes + done, &run,
				  IBV_ACCESS_REMOTE_WRITE, TP_KEY_REMOTE);
		if (unlikely(!to))
			return TP_REMOTE_ACCESS;
		guard_store_spun_on(to, pkt->payload + done, run);
	}
	r->received_bytes += len;
	if (flags & WIRE_HAS_IMM)
		tp_recv_done(qp, pkt, flags, r->received_bytes);
	return TP_ACCEPT;
}

enum tp_verdict tp_message_receive(struct tp_qp *qp, const struct wire_packet *pkt,
				   uint32_t flags)
{
	enum tp_verdict verdict = check(qp, pkt, flags);

	if (unlikely(verdict != TP_ACCEPT))
		return verdict;
	verdict = flags & WIRE_IS_SEND ? receive_send(qp, pkt, flags) :
					 receive_write(qp, pkt, flags);
	if (unlikely(verdict != TP_ACCEPT))
		return verdict;
	qp->resp.message = flags & WIRE_IS_LAST ? TP_MESSAGE_NONE :
			   flags & WIRE_IS_SEND ? TP_MESSAGE_SEND :
						  TP_MESSAGE_WRITE;
	return TP_ACCEPT;
}
