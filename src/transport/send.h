/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The steps of a send request: it enters the send queue, gets its PSNs, and its packets leave,
 * each with a header (struct tp_next). Each step is written here once. qp.c and requester.c take
 * the steps one at a time, for any request. tp_fast_send() (fast.h) takes all of them at once for
 * a SEND of one packet: its arguments are constants, so the compiler leaves out what such a SEND
 * does not need.
 *
 * A step gets the indices and PSNs that it starts from as arguments. The fast path, where
 * several indices are equal, passes one value for all of them and loads it once.
 */
#ifndef SOFTIB_TRANSPORT_SEND_H
#define SOFTIB_TRANSPORT_SEND_H

#include "base/copy.h"
#include "transport/qp.h"

/* --- may it leave? --- */

/** tp_sq_room() - how many more requests of the program fit into the send queue: the engine's own
 *  have places of their own */
static inline uint32_t tp_sq_room(const struct tp_sq *sq)
{
	return sq->depth + sq->own - (sq->head - sq->tail);
}

/** tp_psns_left() - how many more PSNs may be outstanding (9.7.1) */
static inline uint32_t tp_psns_left(const struct tp_sq *sq)
{
	return TP_PSN_HALF - tp_psn_distance(sq->nxt, sq->una);
}

/** tp_window() - how many request packets may be in flight before an ACK must come.
 *  @most: packets that a segment may stand for; 1 on the wire */
static inline uint32_t tp_window(uint32_t most)
{
	return most > 1 ? TP_SEGMENT_WINDOW : TP_WINDOW;
}

/** tp_window_left() - how many more of them may be in flight. The responses of READs take PSNs,
 *  but no place in the window */
static inline uint32_t tp_window_left(const struct tp_sq *sq, uint32_t most)
{
	uint32_t in_flight = tp_psn_distance(sq->nxt, sq->una) - sq->read_psns;

	return in_flight < tp_window(most) ? tp_window(most) - in_flight : 0;
}

/** tp_response_first() - is there a response that leaves before any request? A delayed ACK does
 *  not: it travels with the request. @segments: the link has records that carry both */
static inline bool tp_response_first(const struct tp_qp *qp, const bool segments)
{
	return qp->resp.pending & (segments ? (uint8_t)~TP_RESPONSE_OWED : UINT8_MAX);
}

/* --- entering the send queue --- */

static inline void tp_write_destination(struct tp_destination *to, const struct tp_send_wr *wr)
{
	*to = (struct tp_destination){
		.av = wr->av,
		.qpn = wr->remote_qpn,
		.qkey = wr->remote_qkey,
		.ee_context = wr->ee_context,
		.src_qpn = wr->src_qpn,
	};
}

/* what is at the peer, or what a local operation does */
static inline void tp_write_operands(struct tp_sqe *sqe, const struct tp_send_wr *wr,
				     unsigned op_flags)
{
	sqe->remote_addr = wr->remote_addr;
	sqe->rkey = wr->rkey;
	if (op_flags & TP_OP_LOCAL) {
		sqe->bind = wr->bind;
	} else if (unlikely(op_flags & TP_OP_FLUSH)) {
		sqe->flush = wr->flush;
	} else {
		sqe->compare_add = wr->compare_add;
		sqe->swap = wr->swap;
	}
}

static inline void tp_write_header(struct tp_qp *qp, uint32_t index, const struct tp_send_wr *wr)
{
	struct tp_sqe *sqe = tp_sqe(qp, index);

	sqe->header_bytes = wr->header_bytes;
	sqe->mss_bytes = wr->mss_bytes;
	memcpy(tp_header(qp, index), wr->header, wr->header_bytes);
}

static inline void tp_write_inline(uint8_t *to, const struct tp_send_wr *wr)
{
	for (unsigned i = 0; i < wr->num_sge; i++) {
		if (wr->sge[i].length_bytes) /* an entry of no bytes may have the address NULL */
			copy_few(to, (const void *)(uintptr_t)wr->sge[i].addr,
				 wr->sge[i].length_bytes);
		to += wr->sge[i].length_bytes;
	}
}

/**
 * tp_write_request() - write @wr into the send queue entry @index, which is free
 * @op_flags: enum tp_op_flags of its opcode; @can: enum tp_can of the QP
 * @few: NULL, or inline data of eight bytes at most, first byte lowest
 */
__attribute__((always_inline)) static inline void
tp_write_request(struct tp_qp *qp, uint32_t index, const struct tp_send_wr *wr,
		 const unsigned op_flags, const unsigned can, const uint64_t *few)
{
	struct tp_sqe *sqe = tp_sqe(qp, index);

	sqe->wr_id = wr->wr_id;
	sqe->length_bytes = wr->length_bytes;
	sqe->imm_or_rkey = wr->imm_or_rkey;
	sqe->srqn = wr->srqn;
	sqe->flags = (uint16_t)((wr->flags & ~TP_SQE_KIND) | qp->sig_all_flag |
				(op_flags & TP_OP_RESPONDS ? TP_SQE_RESPONDS : 0) |
				(op_flags & TP_OP_LOCAL ? TP_SQE_LOCAL : 0));
	sqe->opcode = wr->opcode;
	sqe->num_sge = wr->num_sge;
	if (unlikely(can & TP_ADDRESSED))
		tp_write_destination(&qp->sq.destinations[index & qp->sq.mask], wr);
	if (can & TP_RDMA && op_flags & ~(unsigned)TP_OP_RECEIVES)
		tp_write_operands(sqe, wr, op_flags);
	if (unlikely(op_flags & TP_OP_CUT))
		tp_write_header(qp, index, wr);
	if (!(wr->flags & IBV_SEND_INLINE))
		for (unsigned i = 0; i < wr->num_sge; i++)
			((struct tp_sge *)tp_slot(qp, index, op_flags))[i] = wr->sge[i];
	else if (few)
		memcpy(sqe->brief, few, sizeof(*few));
	else
		tp_write_inline(tp_slot(qp, index, op_flags), wr);
}

/* --- the header of its next packet --- */

/** tp_wants_ack() - AckReq: at the end of a message, now and then inside a long one, and on the
 *  packet after which the window is full
 * @most: packets that a segment may stand for; 1 on the wire */
static inline bool tp_wants_ack(const struct tp_sq *sq, bool last, uint32_t packets, uint32_t most)
{
	uint32_t every = tp_window(most) / 4;

	return last || packets >= tp_window_left(sq, most) ||
	       (sq->nxt.v & (every - 1)) + packets >= every;
}

/** struct tp_next - the packet or segment of a request that leaves next: its part of the message,
 *  and what its BTH says */
struct tp_next {
	uint32_t offset_bytes, length_bytes; /* of its payload in the message */
	uint32_t packets;
	psn_t psn;
	uint8_t operation; /* enum wire_operation */
	bool first, last;
	bool ack_req, solicited;
};

/**
 * tp_next_packet() - the next packet or segment of a request
 * @op: the row of its opcode; @can: enum tp_can of the QP
 * @flags: of the request; @length_bytes: of its message
 * @psn: of its next packet; @begun, @left: how many of its packets have left, and have not
 * @most: packets that a segment may stand for; 1 on the wire
 */
__attribute__((always_inline)) static inline struct tp_next
tp_next_packet(const struct tp_qp *qp, const struct tp_op *op, const unsigned can, unsigned flags,
	       uint32_t length_bytes, psn_t psn, const uint32_t begun, const uint32_t left,
	       const uint32_t most)
{
	uint32_t packets = MIN(left, most), offset = begun << qp->mtu_shift;
	bool first = begun == 0, last = packets == left;

	return (struct tp_next){
		.offset_bytes = offset,
		.length_bytes = last ? length_bytes - offset : packets << qp->mtu_shift,
		.packets = packets,
		.psn = psn,
		.operation = first ? (last ? op->only : op->first) :
				     (last ? op->last : op->middle),
		.first = first,
		.last = last,
		.ack_req = can & TP_ACKNOWLEDGED && tp_wants_ack(&qp->sq, last, packets, most),
		.solicited = last && op->flags & TP_OP_RECEIVES && flags & IBV_SEND_SOLICITED,
	};
}

/* --- its packets leave --- */

/** tp_begin_request() - the request @index, which is the first without, gets the next @packets
 *  PSNs, of which @at is the first */
static inline void tp_begin_request(struct tp_sq *sq, struct tp_sqe *sqe, uint32_t index,
				    psn_t at, uint32_t packets)
{
	sqe->first_psn = at;
	sqe->last_psn = psn_add(at, packets - 1);
	sq->asked = at; /* the last packet of the request before this one had AckReq */
	sq->fresh = index + 1;
}

/** tp_leave() - packets of the request @index leave, and the next one has the PSN @nxt
 * @ack_req: they ask for an acknowledgement
 * @last: none of this request remains */
static inline void tp_leave(struct tp_sq *sq, uint32_t index, psn_t nxt, bool ack_req, bool last)
{
	sq->nxt = nxt;
	if (ack_req)
		sq->asked = nxt;
	if (last)
		sq->next = index + 1;
}

/** tp_left_unreliable() - they were of an unreliable QP: nothing will acknowledge them */
static inline void tp_left_unreliable(struct tp_sq *sq, psn_t nxt)
{
	sq->una = sq->nxt = sq->sent = nxt;
}

#endif
