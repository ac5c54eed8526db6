/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The requester (9.7.2, 9.7.3) turns work requests into packets. An acknowledged request stays in the
 * send queue until the completer has processed its acknowledgement. A request of UC or UD completes
 * when its last packet has left.
 *
 * A request waits if the PSN window is full, for max_rd_atomic or a fence, for an end-to-end credit, or
 * for the RNR timer (enum tp_block). An acknowledgement ends all of these waits but the last. It also
 * waits if it is not before sq.end.
 */
#include "transport/fast.h"
#include "transport/send.h"

static bool block(struct tp_qp *qp, enum tp_block why)
{
	qp->sq.block |= why;
	return false;
}

static bool fail(struct tp_qp *qp, enum ibv_wc_status status)
{
	tp_sq_fail_next(qp, status);
	return false;
}

/* 9.7.7.2: is the next message one for which the peer has announced no receive? */
static bool over_limit(const struct tp_sq *sq, uint32_t index)
{
	/* the send sequence number; the first message has 1 */
	uint32_t ssn = index + 1 - sq->uncounted_next;

	return sq->limited && ((ssn - sq->limit_ssn) & 0xffffff) - 1 < TP_PSN_HALF;
}

/* 10.8.3: a fence waits for the READs and atomics before it */
static bool is_fenced(const struct tp_sq *sq, const struct tp_sqe *sqe)
{
	return unlikely(sqe->flags & IBV_SEND_FENCE && sq->responses > 0);
}

static bool may_start(struct tp_qp *qp, const struct tp_sqe *sqe, const struct tp_op *op,
		      uint32_t packets)
{
	struct tp_sq *sq = &qp->sq;

	if (op->flags & TP_OP_RESPONDS) {
		if (unlikely(qp->attr.max_rd_atomic == 0))
			return fail(qp, IBV_WC_LOC_QP_OP_ERR);
		if (unlikely(op->flags & (TP_OP_ATOMIC | TP_OP_ATOMIC_WRITE) &&
			     sqe->length_bytes != 8))
			return fail(qp, IBV_WC_LOC_LEN_ERR);
		if (sq->responses >= qp->attr.max_rd_atomic)
			return block(qp, TP_BLOCK_READS);
	}
	if (is_fenced(sq, sqe))
		return block(qp, TP_BLOCK_READS);
	/* 9.7.1: never more than half of the PSN space outstanding */
	if (unlikely(packets > tp_psns_left(sq)))
		return block(qp, TP_BLOCK_WINDOW);
	/* without a credit, one packet at a time */
	if (unlikely(op->flags & TP_OP_RECEIVES && over_limit(sq, sq->next) &&
		     sq->tail != sq->next))
		return block(qp, TP_BLOCK_CREDIT);
	return true;
}

static bool start(struct tp_qp *qp, struct tp_sqe *sqe, const struct tp_op *op)
{
	struct tp_sq *sq = &qp->sq;
	uint32_t packets = op->flags & TP_OP_CUT ? DIV_ROUND_UP(sqe->length_bytes, sqe->mss_bytes) :
						   tp_packets(qp, sqe->length_bytes);

	if (qp->can & TP_ACKNOWLEDGED && !may_start(qp, sqe, op, packets))
		return false;
	tp_begin_request(sq, sqe, sq->fresh, sq->nxt, packets);
	return true;
}

static bool execute(struct tp_qp *qp, const struct tp_sqe *sqe)
{
	const struct tp_send_wr wr = {
		.opcode = sqe->opcode,
		.imm_or_rkey = sqe->imm_or_rkey,
		.remote_addr = sqe->remote_addr,
		.rkey = sqe->rkey,
		.bind = sqe->bind,
	};

	if (sqe->opcode == IBV_WR_LOCAL_INV)
		return qp->ops->invalidate(qp->ctx, sqe->imm_or_rkey, false) == 0;
	return qp->ops->bind(qp->ctx, &wr) == 0;
}

/* Execute the local operation at next, unless that was done before and packets in front of it
 * are being sent again. Return: false: it waits for a fence, or failed. */
static bool pass_local(struct tp_qp *qp, struct tp_sqe *sqe)
{
	struct tp_sq *sq = &qp->sq;

	if (sq->next == sq->fresh) {
		if (is_fenced(sq, sqe))
			return block(qp, TP_BLOCK_READS);
		if (!execute(qp, sqe))
			return fail(qp, IBV_WC_MW_BIND_ERR);
		tp_begin_request(sq, sqe, sq->fresh, sq->nxt, 0);
		sq->executed = true;
	}
	sq->next++;
	sq->uncounted_next++;
	tp_sq_complete_executed(qp);
	return true;
}

/* Return: the request that has the next packet; NULL: none may be sent now */
static struct tp_sqe *next_request(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	while (tp_has_request(qp)) {
		struct tp_sqe *sqe = tp_sqe(qp, sq->next);

		if (likely(!(sqe->flags & TP_SQE_LOCAL)))
			return sqe;
		if (!pass_local(qp, sqe))
			break;
	}
	return NULL;
}

static void fill_bth(const struct tp_qp *qp, struct tp_packet_out *out,
		     const struct tp_next *next)
{
	out->hdr.bth = (struct wire_bth){
		.opcode = qp->transport | next->operation,
		.mig_req = true, /* 17.2.8: state MIGRATED, the only one here */
		.pkey = qp->attr.pkey,
		.dest_qpn = qp->attr.dest_qpn,
		.psn = next->psn,
		.ack_req = next->ack_req,
		.solicited = next->solicited,
	};
	out->av = &qp->attr.av;
}

static void fill_reth(const struct tp_sqe *sqe, struct tp_packet_out *out,
		      uint32_t offset)
{
	out->hdr.reth = (struct wire_reth){
		.va = sqe->remote_addr + offset,
		.rkey = sqe->rkey,
		.length_bytes = sqe->length_bytes - offset,
	};
}

static void fill_flush(const struct tp_sqe *sqe, struct tp_packet_out *out)
{
	out->hdr.feth = sqe->flush.feth;
	out->hdr.reth = (struct wire_reth){
		.va = sqe->remote_addr,
		.rkey = sqe->rkey,
		.length_bytes = sqe->flush.length_bytes,
	};
}

static void fill_atomic(const struct tp_sqe *sqe, struct tp_packet_out *out)
{
	bool swap = sqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	out->hdr.atomic = (struct wire_atomic_eth){
		.va = sqe->remote_addr,
		.rkey = sqe->rkey,
		.swap_add = swap ? sqe->swap : sqe->compare_add,
		.compare = swap ? sqe->compare_add : 0,
	};
}

static bool fill_payload(struct tp_qp *qp, const struct tp_sqe *sqe, uint32_t offset,
			 uint32_t len, struct tp_packet_out *out)
{
	struct tp_sq *sq = &qp->sq;

	out->hdr.payload = NULL;
	out->hdr.payload_bytes = len;
	out->num_pieces = 0;
	if (len == 0)
		return true;
	if (sqe->flags & IBV_SEND_INLINE) {
		out->piece[0].ptr = tp_data(qp, sq->next) + offset;
		out->piece[0].len = len;
		out->num_pieces = 1;
		return true;
	}
	if (offset == 0)
		sq->cursor = (struct tp_cursor){0, 0};
	else if (!psn_eq(sq->cursor_psn, sq->nxt)) /* packets are sent again */
		sq->cursor = tp_cursor_at(tp_sges(qp, sq->next), sqe->num_sge, offset);
	sq->cursor_psn = psn_add(sq->nxt, out->hdr.packets);
	return tp_gather(qp, sq->next, &sq->cursor, len, out);
}

/* Is the PSN window full? It is not if no ACK is on its way that would open it: only one of many
 * segments has AckReq, and packets, whose window is smaller, may continue in the middle of their
 * message. In that case the next packet is sent with AckReq. */
static bool is_full(const struct tp_sq *sq, uint32_t most)
{
	if (likely(tp_window_left(sq, most)))
		return false;
	return sq->next == sq->fresh || tp_psn_distance(sq->asked, sq->una) - 1 <
						tp_psn_distance(sq->nxt, sq->una);
}

/* one packet or segment of a SEND or WRITE */
static bool data_packet(struct tp_qp *qp, const struct tp_sqe *sqe,
			const struct tp_op *op, struct tp_packet_out *out, uint32_t most)
{
	struct tp_sq *sq = &qp->sq;
	struct tp_next next = tp_next_packet(qp, op, qp->can, sqe->flags, sqe->length_bytes, sq->nxt,
					     tp_psn_distance(sq->nxt, sqe->first_psn),
					     tp_psn_distance(sqe->last_psn, sq->nxt) + 1, most);

	out->hdr.packets = (uint16_t)next.packets;
	if (unlikely(!fill_payload(qp, sqe, next.offset_bytes, next.length_bytes, out)))
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	if (unlikely(next.first && qp->can & TP_ACKNOWLEDGED && op->flags & TP_OP_RECEIVES &&
		     over_limit(sq, sq->next))) {
		next.ack_req = true;
		sq->block |= TP_BLOCK_CREDIT;
	}
	fill_bth(qp, out, &next);
	if (next.first && op->flags & TP_OP_RETH)
		fill_reth(sqe, out, 0);
	if (next.last)
		out->hdr.imm = out->hdr.ieth_rkey = sqe->imm_or_rkey;
	if (qp->can & TP_ADDRESSED && !(qp->can & TP_ACKNOWLEDGED)) {
		tp_ud_fill(qp, sq->next, out);
		out->ip_checksums = sqe->flags & IBV_SEND_IP_CSUM;
	}
	tp_leave(sq, sq->next, psn_add(sq->nxt, next.packets), next.ack_req,
		 next.last && qp->can & TP_ACKNOWLEDGED);
	return true;
}

/* The header of a request that has one packet, whatever its length: @op has no other operation. */
static struct tp_next only_packet(const struct tp_qp *qp, const struct tp_sqe *sqe,
				  const struct tp_op *op)
{
	return tp_next_packet(qp, op, qp->can, sqe->flags, 0, qp->sq.nxt, 0, 1, 1);
}

/* All datagrams of a request that is cut: whoever sends them cuts it. */
static bool cut_packets(struct tp_qp *qp, const struct tp_sqe *sqe, const struct tp_op *op,
			struct tp_packet_out *out)
{
	const struct tp_next next = only_packet(qp, sqe, op);
	struct tp_sq *sq = &qp->sq;

	out->hdr.packets = (uint16_t)(tp_psn_distance(sqe->last_psn, sqe->first_psn) + 1);
	if (unlikely(!fill_payload(qp, sqe, 0, sqe->length_bytes, out)))
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	fill_bth(qp, out, &next);
	tp_ud_fill(qp, sq->next, out);
	out->header = tp_header(qp, sq->next);
	out->header_bytes = sqe->header_bytes;
	out->mss_bytes = sqe->mss_bytes;
	tp_leave(sq, sq->next, psn_add(sqe->last_psn, 1), false, false);
	return true;
}

/* The request packet of a READ, atomic, ATOMIC WRITE or FLUSH. A READ whose responses were lost
 * asks for the remaining ones. */
static bool response_request(struct tp_qp *qp, const struct tp_sqe *sqe,
			     const struct tp_op *op, struct tp_packet_out *out)
{
	const struct tp_next next = only_packet(qp, sqe, op);
	struct tp_sq *sq = &qp->sq;
	uint32_t offset = tp_psn_distance(sq->nxt, sqe->first_psn) << qp->mtu_shift;

	out->hdr.packets = 1;
	if (unlikely(!fill_payload(qp, sqe, 0, op->flags & TP_OP_ATOMIC_WRITE ? 8 : 0, out)))
		return fail(qp, IBV_WC_LOC_PROT_ERR);
	fill_bth(qp, out, &next);
	if (op->flags & TP_OP_FLUSH)
		fill_flush(sqe, out);
	else if (op->flags & TP_OP_RETH)
		fill_reth(sqe, out, offset);
	else
		fill_atomic(sqe, out);
	sq->read_psns += tp_psn_distance(sqe->last_psn, sq->nxt) + 1;
	sq->responses++;
	tp_leave(sq, sq->next, psn_add(sqe->last_psn, 1), next.ack_req, true);
	return true;
}

static bool request_packet(struct tp_qp *qp, const struct tp_sqe *sqe, const struct tp_op *op,
			   struct tp_packet_out *out, uint32_t most)
{
	if (op->flags & TP_OP_RESPONDS)
		return response_request(qp, sqe, op, out);
	if (unlikely(op->flags & TP_OP_CUT))
		return cut_packets(qp, sqe, op, out);
	return data_packet(qp, sqe, op, out, most);
}

/* A packet of an unreliable QP has left. Nothing will acknowledge it. */
static void sent_unreliable(struct tp_qp *qp, const struct tp_sqe *sqe)
{
	struct tp_sq *sq = &qp->sq;
	bool last = psn_eq(sq->nxt, psn_add(sqe->last_psn, 1));

	tp_left_unreliable(sq, sq->nxt);
	if (!last)
		return;
	tp_sq_complete(qp, IBV_WC_SUCCESS);
	tp_sq_at_end(qp);
}

static void sent_reliable(struct tp_qp *qp, mono_t now)
{
	struct tp_sq *sq = &qp->sq;

	if (likely(tp_psn_distance(sq->nxt, sq->una) >
		   tp_psn_distance(sq->sent, sq->una)))
		sq->sent = sq->nxt;
	else
		qp->stats.retransmits++;
	/* 9.7.6.1.3: the timer runs while something is unacknowledged */
	if (sq->timer.ns == MONO_NEVER.ns)
		tp_ack_wait(qp, now);
}

bool tp_requester_transmit(struct tp_qp *qp, struct tp_packet_out *out, uint32_t most,
			   mono_t now)
{
	struct tp_sq *sq = &qp->sq;
	struct tp_sqe *sqe = next_request(qp);
	const struct tp_op *op;

	if (!sqe)
		return false;
	op = tp_op(sqe);
	if (qp->can & TP_ACKNOWLEDGED && is_full(sq, most))
		return block(qp, TP_BLOCK_WINDOW);
	if (sq->next == sq->fresh && !start(qp, sqe, op))
		return false;
	if (qp->can & TP_SRQ_NUMBER)
		out->hdr.xrc_srqn = sqe->srqn;
	if (unlikely(!request_packet(qp, sqe, op, out, most)))
		return false;
	if (unlikely(qp->can & TP_EE_CONTEXT))
		tp_ee_address(qp, (uint32_t)(sqe - sq->ring), out);
	if (qp->can & TP_ACKNOWLEDGED)
		sent_reliable(qp, now);
	else
		sent_unreliable(qp, sqe);
	return true;
}

bool tp_fast_look(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	if (qp->state != IBV_QPS_RTS || !(qp->can & TP_FAST) || sq->next != sq->head ||
	    sq->block || sq->stop || sq->limited)
		return false;
	/* requests that complete before this is used up only make more room */
	sq->fast_left = MIN(tp_sq_room(sq), tp_window_left(sq, TP_SEGMENT_WINDOW));
	sq->fast_left = MIN(sq->fast_left, tp_psns_left(sq));
	return sq->fast_left > 0;
}

void tp_requester_rewind(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	sq->fast_left = 0;
	sq->next = sq->tail;
	sq->uncounted_next = sq->uncounted_tail;
	sq->nxt = sq->asked = sq->una;
	sq->read_psns = sq->responses = 0;
	sq->block &= (uint8_t)~TP_BLOCK_PROGRESS;
	sq->timer = MONO_NEVER; /* until the first packet has been sent again */
}
