/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A queue pair's life (10.3.1): its memory, its states, its send queue's
 * entrance, and the four verbs of transport.h handed to the requester,
 * responder and completer.
 *
 * States: RESET, INIT, RTR (responder works), RTS (requester too), SQD (the
 * send queue drains), SQE (UC, UD: send queue failed), ERR.
 */
#include <errno.h>

#include "transport/send.h"

#define STATE(s) (1u << IBV_QPS_##s)
#define CAN_POST_SEND (STATE(RTS) | STATE(SQD) | STATE(SQE) | STATE(ERR))

static bool in_state(const struct tp_qp *qp, unsigned states)
{
	return states >> qp->state & 1;
}

/* --- memory --- */

static uint32_t ring_size(uint32_t depth)
{
	return depth > 1 ? 1u << (32 - __builtin_clz(depth - 1)) : 1;
}

static uint32_t slot_bytes(uint32_t max_sge, uint32_t max_inline)
{
	uint32_t sges = max_sge * (uint32_t)sizeof(struct tp_sge);
	uint32_t bytes = MAX(sges, max_inline);

	return bytes ? ALIGN_UP(bytes, 16u) : 16;
}

size_t tp_qp_size(uint32_t sq_depth, uint32_t max_sge, uint32_t max_inline,
		  uint32_t max_dest_rd)
{
	size_t per_request = sizeof(struct tp_sqe) + slot_bytes(max_sge, max_inline) +
			     sizeof(struct tp_destination);

	return sizeof(struct tp_qp) + ring_size(sq_depth) * per_request +
	       max_dest_rd * sizeof(struct tp_resource);
}

struct tp_qp *tp_qp_init(void *mem, const struct tp_qp_init *init)
{
	uint32_t size = ring_size(init->sq_depth + init->own_depth);
	struct tp_qp *qp = mem;
	struct tp_sq *sq = &qp->sq;

	memset(qp, 0, sizeof(*qp));
	qp->type = (uint8_t)init->type;
	qp->transport = tp_kinds[init->type].transport;
	qp->can = tp_kinds[init->type].can;
	qp->qpn = init->qpn;
	qp->sig_all_flag = init->sq_sig_all ? IBV_SEND_SIGNALED : 0;
	qp->has_srq = init->has_srq;
	qp->min_ack_ns = init->min_ack_ns;
	qp->ops = init->ops;
	qp->ctx = init->ctx;
	sq->mask = size - 1;
	sq->depth = init->sq_depth;
	sq->own_depth = init->own_depth;
	sq->max_sge = init->max_sge;
	sq->max_inline = init->max_inline;
	sq->max_header = init->max_header;
	sq->slot_bytes = slot_bytes(init->max_sge, init->max_inline);
	/* parts in the order of their alignment */
	sq->ring = (struct tp_sqe *)(qp + 1);
	sq->slots = (uint8_t *)(sq->ring + size);
	qp->resp.res = (struct tp_resource *)(sq->slots + (size_t)size * sq->slot_bytes);
	qp->resp.res_capacity = init->max_dest_rd;
	sq->destinations = (struct tp_destination *)(qp->resp.res + init->max_dest_rd);
	tp_qp_modify(qp, IBV_QPS_RESET, (mono_t){0});
	return qp;
}

size_t tp_qp_header_bytes(const struct tp_qp *qp)
{
	return qp->sq.headers ? 0 : ((size_t)qp->sq.mask + 1) * qp->sq.max_header;
}

void tp_qp_give_headers(struct tp_qp *qp, void *memory)
{
	qp->sq.headers = memory;
}

struct tp_attr *tp_qp_attr(struct tp_qp *qp)
{
	return &qp->attr;
}

enum ibv_qp_state tp_qp_state(const struct tp_qp *qp)
{
	return qp->state;
}

bool tp_qp_is_draining(const struct tp_qp *qp)
{
	return qp->state == IBV_QPS_SQD && qp->sq.stop != TP_STOP_NONE;
}

const struct tp_stats *tp_qp_stats(const struct tp_qp *qp)
{
	return &qp->stats;
}

uint32_t tp_qp_sq_free(const struct tp_qp *qp)
{
	return tp_sq_room(&qp->sq);
}

/* --- states --- */

static void reset(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;
	struct tp_responder *r = &qp->resp;

	sq->head = sq->tail = sq->next = sq->fresh = sq->end = 0;
	sq->block = sq->stop = 0;
	sq->recovering = sq->limited = sq->executed = sq->held_begun = false;
	sq->uncounted_tail = sq->uncounted_next = sq->own = 0;
	sq->una = sq->nxt = sq->sent = sq->cursor_psn = psn(0);
	sq->cursor = (struct tp_cursor){0, 0};
	sq->read_psns = sq->responses = 0;
	sq->timer = MONO_NEVER;
	sq->half_waited = false;
	r->pending = r->message = 0;
	tp_owes_nothing(r);
	r->has_recv = r->nak_sent = r->established = false;
	r->msn = r->res_head = r->res_scan = r->res_size = 0;
}

static void start_responder(struct tp_qp *qp)
{
	struct tp_responder *r = &qp->resp;
	uint32_t mtu = qp->attr.mtu_bytes;

	qp->mtu_shift = (uint8_t)(mtu ? __builtin_ctz(mtu) : __builtin_ctz(WIRE_MTU_MAX));
	r->epsn = qp->attr.rq_psn;
	r->msn = 0;
}

static void start_requester(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	sq->una = sq->nxt = sq->sent = qp->attr.sq_psn;
	sq->retries_left = qp->attr.retry_cnt;
	sq->rnr_left = qp->attr.rnr_retry;
}

/* Set the time that tp_ack_wait() uses. ibv_modify_qp() may change the attribute in RTS as well.
 * No other place converts it into time. */
static void set_timeout(struct tp_qp *qp)
{
	uint64_t ns = MAX(tp_timeout_ns(qp->attr.timeout_enc), qp->min_ack_ns);

	qp->ack_half_ns = ns == UINT64_MAX ? ns : 2 * ns;
}

void tp_qp_path_changed(struct tp_qp *qp)
{
	set_timeout(qp);
	tp_sq_progressed(qp);
}

static void resume_requester(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	if (sq->stop == TP_STOP_FAIL)
		return;
	sq->stop = qp->can & TP_HELD ? TP_STOP_HOLD : TP_STOP_NONE;
	sq->end = qp->can & TP_HELD ? sq->fresh : sq->head;
}

static void drain(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;

	if (sq->stop == TP_STOP_FAIL)
		return;
	/* 10.3.1.5: messages that were begun are finished, no new one starts */
	sq->stop = TP_STOP_DRAIN;
	sq->end = sq->fresh;
	tp_sq_at_end(qp);
}

static void flush_receives(struct tp_qp *qp)
{
	struct tp_responder *r = &qp->resp;

	r->message = TP_MESSAGE_NONE;
	tp_recv_fail(qp, IBV_WC_WR_FLUSH_ERR);
	while (qp->ops->recv_flush(qp->ctx, &r->recv)) {
		r->has_recv = true;
		tp_recv_fail(qp, IBV_WC_WR_FLUSH_ERR);
	}
}

void tp_qp_fail(struct tp_qp *qp)
{
	bool was_failed = qp->state == IBV_QPS_ERR;

	qp->state = IBV_QPS_ERR;
	if (qp->ops->failed)
		qp->ops->failed(qp->ctx);
	tp_sq_flush(qp);
	flush_receives(qp);
	if (was_failed)
		return;
	qp->resp.pending = 0;
	if (qp->has_srq) /* no more receives leave the SRQ for this QP (11.6.3.1) */
		qp->ops->event(qp->ctx, TP_EVENT_LAST_WQE_REACHED);
}

void tp_qp_modify(struct tp_qp *qp, enum ibv_qp_state to, mono_t now)
{
	enum ibv_qp_state from = qp->state;

	qp->sq.fast_left = 0;
	qp->state = (uint8_t)to;
	switch (to) {
	case IBV_QPS_RESET:
		reset(qp);
		break;
	case IBV_QPS_RTR:
		start_responder(qp);
		break;
	case IBV_QPS_RTS:
		if (from == IBV_QPS_RTR)
			start_requester(qp);
		set_timeout(qp);
		resume_requester(qp);
		break;
	case IBV_QPS_SQD:
		if (from != IBV_QPS_SQD)
			drain(qp);
		break;
	case IBV_QPS_ERR:
		qp->state = (uint8_t)from;
		tp_qp_fail(qp);
		break;
	default:
		break;
	}
}

void tp_qp_posted_recv(struct tp_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		flush_receives(qp);
}

/* --- posting --- */

/* An ATOMIC WRITE has room for its word (tp_is_brief()) whatever max_inline the QP was created
 * with, and so has a request that the engine posts for itself. */
static bool inline_fits(const struct tp_qp *qp, const struct tp_send_wr *wr,
			const struct tp_op *op)
{
	if (op->flags & TP_OP_ATOMIC_WRITE && wr->num_sge == 1 && wr->length_bytes == 8)
		return true;
	if (wr->flags & TP_SEND_OWN && wr->length_bytes <= sizeof(struct tp_sge))
		return true;
	return wr->length_bytes <= qp->sq.max_inline && !(op->flags & TP_OP_RESPONDS);
}

/* Each packet is a message (9.8.3). */
static bool cut_is_sound(const struct tp_qp *qp, const struct tp_send_wr *wr)
{
	return qp->sq.headers && !(wr->flags & IBV_SEND_INLINE) && wr->mss_bytes && wr->header_bytes &&
	       wr->header_bytes <= qp->sq.max_header && wr->length_bytes &&
	       wr->length_bytes <= TP_MAX_TSO_BYTES &&
	       wr->header_bytes + (uint32_t)wr->mss_bytes <= tp_mtu(qp);
}

static bool request_is_sound(const struct tp_qp *qp, const struct tp_send_wr *wr,
			     const struct tp_op *op)
{
	const struct tp_sq *sq = &qp->sq;

	if (wr->num_sge > (op->flags & (TP_OP_LOCAL | TP_OP_FLUSH) ? 0 : sq->max_sge))
		return false;
	if (unlikely(op->flags & TP_OP_CUT))
		return cut_is_sound(qp, wr);
	if (wr->flags & IBV_SEND_INLINE && !inline_fits(qp, wr, op))
		return false;
	if (qp->can & TP_DATAGRAM)
		return wr->length_bytes <= tp_mtu(qp); /* 9.8.3: one packet */
	return wr->length_bytes <= TP_MESSAGE_MAX;
}

int tp_qp_check_send(const struct tp_qp *qp, const struct tp_send_wr *wr)
{
	const struct tp_op *op = &tp_ops_table[wr->opcode < TP_OPS ? wr->opcode : 0];

	if (unlikely(!in_state(qp, CAN_POST_SEND) || wr->opcode >= TP_OPS ||
		     !(op->transport_mask >> qp->type & 1) ||
		     !request_is_sound(qp, wr, op)))
		return -EINVAL;
	return 0;
}

/* the engine's own requests and the program's have places of their own */
static bool has_place(const struct tp_sq *sq, const struct tp_send_wr *wr)
{
	if (unlikely(wr->flags & TP_SEND_OWN))
		return sq->own < sq->own_depth;
	return tp_sq_room(sq) > 0;
}

int tp_qp_post_send(struct tp_qp *qp, const struct tp_send_wr *wr)
{
	struct tp_sq *sq = &qp->sq;

	if (unlikely(tp_qp_check_send(qp, wr)))
		return -EINVAL;
	if (unlikely(!has_place(sq, wr)))
		return -ENOMEM;
	tp_write_request(qp, sq->head, wr, tp_ops_table[wr->opcode].flags, qp->can, NULL);
	sq->head++;
	sq->fast_left = 0;
	sq->own += wr->flags & TP_SEND_OWN ? 1 : 0;
	if (likely(qp->state == IBV_QPS_RTS)) {
		if (likely(!sq->stop))
			sq->end = sq->head;
	} else if (qp->state != IBV_QPS_SQD) {
		tp_sq_flush(qp); /* 10.3.1: the request is accepted, and completes in error */
	}
	return 0;
}

/* --- packets and time --- */

void tp_qp_receive(struct tp_qp *qp, const struct wire_packet *pkt, mono_t now)
{
	static void (*const request[])(struct tp_qp *, const struct wire_packet *,
				       uint32_t) = {
		[TP_RC] = tp_responder_receive,
		[TP_UC] = tp_uc_receive,
		[TP_UD] = tp_ud_receive,
		[TP_XRC] = tp_responder_receive,
		[TP_RAW] = tp_raw_receive,
		[TP_EE] = tp_ee_receive,
	};
	uint8_t opcode = pkt->bth.opcode;
	uint32_t flags = wire_opcodes[opcode].flags;

	/* 9.6.1.1: version, transport and state; silently dropped otherwise */
	if (unlikely(!tp_state_receives(qp->state) || pkt->bth.tver != 0 || qp->can & TP_HELD ||
		     (opcode & WIRE_TRANSPORT_MASK) != qp->transport))
		return;
	qp->stats.rx_packets += pkt->packets;
	if (tp_comm_est(qp)) {
		qp->resp.established = true;
		if (qp->type != TP_RAW)
			qp->ops->event(qp->ctx, TP_EVENT_COMM_EST);
	}
	if (!(flags & WIRE_IS_RESPONSE))
		request[qp->type](qp, pkt, flags);
	else if (qp->can & TP_ACKNOWLEDGED && in_state(qp, STATE(RTS) | STATE(SQD)))
		tp_completer_receive(qp, pkt, flags, now);
}

void tp_qp_refuse(struct tp_qp *qp)
{
	if (tp_state_receives(qp->state))
		tp_responder_fault(qp, TP_INVALID_REQUEST, qp->resp.epsn);
}

bool tp_qp_responder(const struct tp_qp *qp, struct tp_responder_state *state)
{
	const struct tp_responder *r = &qp->resp;

	*state = (struct tp_responder_state){r->epsn, r->msn, r->nak_sent, r->established};
	return !tp_wants_transmit(qp);
}

void tp_qp_resume_responder(struct tp_qp *qp, const struct tp_responder_state *state,
			    bool at_least)
{
	struct tp_responder *r = &qp->resp;

	if (at_least && psn_before(state->epsn, r->epsn))
		return;
	r->epsn = state->epsn;
	r->msn = state->msn & 0xffffff;
	r->nak_sent = state->nak_sent;
	r->established = state->established;
}

bool tp_qp_wants_transmit(const struct tp_qp *qp)
{
	return tp_wants_transmit(qp);
}

bool tp_qp_transmit_segment(struct tp_qp *qp, struct tp_packet_out *out,
			    uint32_t segment_bytes, mono_t now)
{
	uint32_t most = MAX(segment_bytes >> qp->mtu_shift, 1u);

	out->header = NULL;
	out->ip_checksums = false;
	if (tp_response_first(qp, segment_bytes) && tp_responder_transmit(qp, out, most))
		goto sent;
	if (!tp_requester_transmit(qp, out, most, now) &&
	    !(qp->resp.pending && tp_responder_transmit(qp, out, most)))
		return false;
sent:
	qp->stats.tx_packets += out->hdr.packets;
	return true;
}

bool tp_qp_transmit(struct tp_qp *qp, struct tp_packet_out *out, mono_t now)
{
	return tp_qp_transmit_segment(qp, out, 0, now);
}

void tp_qp_unsent(struct tp_qp *qp, const struct tp_packet_out *out)
{
	if (wire_opcodes[out->hdr.bth.opcode].flags & WIRE_IS_RESPONSE)
		tp_resource_unsent(qp, out->hdr.bth.psn);
	else if (qp->can & TP_ACKNOWLEDGED)
		tp_requester_rewind(qp);
}

const struct tp_av *tp_qp_destination(const struct tp_qp *qp, uint32_t *qpn)
{
	const struct tp_destination *to;

	if (qp->can & TP_CONNECTED) {
		*qpn = qp->attr.dest_qpn;
		return &qp->attr.av;
	}
	to = &qp->sq.destinations[qp->sq.next & qp->sq.mask];
	*qpn = to->qpn;
	return &to->av;
}

uint32_t tp_qp_next_bytes(const struct tp_qp *qp)
{
	const struct tp_sq *sq = &qp->sq;
	const struct tp_sqe *sqe = tp_sqe(qp, sq->next);
	uint32_t next = sq->next;

	if (unlikely(qp->resp.pending & TP_RESPONSE_RESOURCE))
		return TP_MESSAGE_MAX;
	while (next != sq->end && unlikely(sqe->flags & TP_SQE_LOCAL))
		sqe = tp_sqe(qp, ++next);
	if (next == sq->end || tp_op(sqe)->flags & (TP_OP_READ | TP_OP_ATOMIC))
		return 0;
	if (next == sq->fresh || next != sq->next)
		return sqe->length_bytes;
	return sqe->length_bytes - (tp_psn_distance(sq->nxt, sqe->first_psn) << qp->mtu_shift);
}

mono_t tp_qp_expiry(const struct tp_qp *qp)
{
	return qp->sq.timer;
}

void tp_qp_expire(struct tp_qp *qp, mono_t now)
{
	if (!mono_before(now, qp->sq.timer))
		tp_completer_expire(qp, now);
}
