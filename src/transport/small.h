/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The straight way of a small SEND: RC or UD, one packet, no immediate, no fence,
 * over a link of segments. It is what tp_qp_post_send(), tp_qp_transmit_segment()
 * and tp_qp_receive() do with one when nothing is in its way, without what the
 * answer to "is it so?" makes needless:
 *
 *   sending    no table of opcodes, no cursor: the message is one packet. AckReq
 *              is always set, as on the last packet of any message. No send
 *              queue to walk: next, fresh, end and head are one
 *   receiving  no state of a message: it begins and ends here. No RNR, NAK,
 *              duplicate, fault or COMM_EST: the packet is the expected one, the
 *              QP receives and the caller has found where the bytes go
 *
 * Inline, and therefore open to the engine, whose own part is engine/small.h; the
 * rest of a QP's inside stays private to this folder.
 */
#ifndef SOFTIB_TRANSPORT_SMALL_H
#define SOFTIB_TRANSPORT_SMALL_H

#include "base/copy.h"
#include "transport/qp.h"

/* --- sending --- */

/** tp_small_look() - set sq.straight: how many small SENDs, posted one after the
 *  other, would each be all there is to send, in RTS, held back by nothing,
 *  with room in queue and window? Of UD, which waits for nothing: any number.
 *  Return: false: none */
bool tp_small_look(struct tp_qp *qp);

/** tp_small_may_post() - would a SEND that is posted now leave now? No response
 *  of this QP goes before it */
static inline bool tp_small_may_post(struct tp_qp *qp)
{
	return likely((qp->sq.straight || tp_small_look(qp)) &&
		      !(qp->resp.pending & (uint8_t)~TP_RESPONSE_OWED));
}

/** tp_small_knows_post() - the same by what is known. Return: false: look */
static inline bool tp_small_knows_post(const struct tp_qp *qp)
{
	return likely(qp->sq.straight && !(qp->resp.pending & (uint8_t)~TP_RESPONSE_OWED));
}

/** tp_small_sent() - what all ways of sending a small one do when it leaves, but for
 *  the timer and sq.next: @sqe and @out have its PSN. Who puts it together takes an ACK
 *  along (tp_take_ack()) */
static inline void tp_small_sent(struct tp_qp *qp, struct tp_sqe *sqe, struct tp_small *out)
{
	struct tp_sq *sq = &qp->sq;
	psn_t at = sq->nxt;

	out->psn = at;
	sqe->first_psn = sqe->last_psn = at;
	sq->nxt = sq->sent = psn_add(at, 1);
	qp->stats.tx_packets++;
}

/**
 * tp_small_post() - a SEND is posted and sent
 * @flags: of IBV_SEND_SIGNALED, _SOLICITED, _INLINE
 * @sge: the one piece, of 1 byte to the path MTU or, inline, the QP's limit. @payload: the same in host memory
 * @few: it is no more than eight bytes, and these, as of load_few()
 *
 * Context: tp_small_may_post() said yes; tp_small_waits() comes next.
 */
static inline void tp_small_post(struct tp_qp *qp, uint64_t wr_id, unsigned flags,
				 const struct tp_sge *sge, const void *payload,
				 const uint64_t *few, struct tp_small *out)
{
	struct tp_sq *sq = &qp->sq;
	uint32_t index = sq->head, len = sge->length_bytes;
	struct tp_sqe *sqe = tp_sqe(qp, index);

	out->payload = payload;
	out->length_bytes = len;
	out->flags = flags;
	sqe->wr_id = wr_id;
	sqe->length_bytes = len;
	sqe->flags = (uint16_t)(flags | qp->sig_all_flag);
	sqe->opcode = IBV_WR_SEND;
	sqe->num_sge = 1;
	/* what it may be sent again from */
	if (!(flags & IBV_SEND_INLINE))
		*(struct tp_sge *)sqe->brief = (struct tp_sge){sge->addr, len, sge->lkey};
	else if (few)
		memcpy(sqe->brief, few, sizeof(*few));
	else
		copy_few(len <= sizeof(sqe->brief) ? sqe->brief : tp_long_slot(qp, index), payload,
			 len);
	/* tp_small_may_post(): they were the same */
	sq->head = sq->end = sq->next = sq->fresh = index + 1;
	sq->straight--;
	tp_small_sent(qp, sqe, out);
}

/** tp_small_waits() - something is unacknowledged. Return: false: the timer does
 *  not run yet, start it by tp_ack_wait() */
static inline bool tp_small_waits(const struct tp_qp *qp)
{
	return qp->sq.timer.ns != MONO_NEVER.ns;
}

/** tp_small_streams() - are so many under way already that the next one's turn is not
 *  at once? */
static inline bool tp_small_streams(const struct tp_qp *qp)
{
	return qp->sq.head - qp->sq.tail > TP_STREAM_MESSAGES;
}

/** tp_small_idle() - tp_qp_idle() */
static inline bool tp_small_idle(const struct tp_qp *qp)
{
	return qp->state == IBV_QPS_RTS && qp->sq.tail == qp->sq.head;
}

/** tp_small_datagram() - a SEND of UD is posted, sent and, since nothing answers
 *  it, done. It never was in the send queue. Return: its PSN.
 *
 * Context: tp_small_may_post() said yes.
 */
static inline psn_t tp_small_datagram(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;
	psn_t at = sq->nxt;

	sq->una = sq->nxt = sq->sent = psn_add(at, 1);
	qp->stats.tx_packets++;
	return at;
}

/** tp_small_qkey() - of a datagram from a QP that was asked to send @wish */
static inline uint32_t tp_small_qkey(const struct tp_qp *qp, uint32_t wish)
{
	return tp_qkey_sent(qp->qpn, qp->attr.qkey, wish);
}

/* --- receiving --- */

/** tp_small_receives() - does it receive, and is nobody to be told that it does? The
 *  first packet in RTR tells (COMM_EST) */
static inline bool tp_small_receives(const struct tp_qp *qp)
{
	return likely(qp->state == IBV_QPS_RTS) ||
	       (qp->state == IBV_QPS_RTR && qp->resp.established);
}

/** tp_small_expects() - does it await a request between messages, of RC? No
 *  receive was taken for another. Its PSN is to be resp.epsn */
static inline bool tp_small_expects(const struct tp_qp *qp)
{
	const uint8_t not[sizeof(uint32_t)] = {TP_RESPONSE_NAK, 0xff, 0xff, 0xff};
	uint32_t is, mask;

	_Static_assert(offsetof(struct tp_responder, pending) == 0 &&
			       offsetof(struct tp_responder, message) == 1 &&
			       offsetof(struct tp_responder, has_recv) == 2 &&
			       offsetof(struct tp_responder, nak_sent) == 3,
		       "these four are looked at in one");
	memcpy(&is, &qp->resp, sizeof(is));
	memcpy(&mask, not, sizeof(mask));
	return likely(tp_small_receives(qp) && qp->type == TP_RC && !(is & mask));
}

/** tp_small_goes_on() - does it await more of a SEND, into a receive that it has, of RC? A
 *  packet of its middle is to have the PSN resp.epsn, and be full (9.7.4.1) */
static inline bool tp_small_goes_on(const struct tp_qp *qp)
{
	const struct tp_responder *r = &qp->resp;

	return qp->state == IBV_QPS_RTS && qp->type == TP_RC && r->message == TP_MESSAGE_SEND &&
	       r->has_recv && !r->nak_sent && !(r->pending & TP_RESPONSE_NAK);
}

/** tp_small_went_on() - @len bytes of it are where they belong, in one piece, as the
 *  payload of @packets that ask for no answer. Context: tp_small_goes_on() said yes */
static inline void tp_small_went_on(struct tp_qp *qp, uint32_t len, unsigned packets)
{
	struct tp_responder *r = &qp->resp;

	r->epsn = psn_add(r->epsn, packets);
	r->received_bytes += len;
	r->cursor.offset += len;
	qp->stats.rx_packets += packets;
}

/** tp_small_hears() - does a UD QP take datagrams with @qkey? */
static inline bool tp_small_hears(const struct tp_qp *qp, uint32_t qkey)
{
	return tp_small_receives(qp) && tp_qkey_passes(qp->qpn, qp->attr.qkey, qkey) &&
	       !qp->resp.has_recv;
}

/** tp_small_received() - @n of them were, one behind the other, of @packets in all: their
 *  bytes and completions are where they belong. Context: tp_small_expects() said yes */
static inline void tp_small_received(struct tp_qp *qp, unsigned n, unsigned packets)
{
	struct tp_responder *r = &qp->resp;

	r->epsn = psn_add(r->epsn, packets);
	r->msn = (r->msn + n) & 0xffffff;
	qp->stats.rx_packets += packets;
	tp_acknowledge_messages(r, n, packets);
}

/** tp_small_acked() - tp_qp_acked() (9.7.5), when it answers the only request under way.
 *  Return: false: it does not, nothing changed */
static inline bool tp_small_acked(struct tp_qp *qp, psn_t at)
{
	struct tp_sq *sq = &qp->sq;
	const struct tp_sqe *sqe = tp_sqe(qp, sq->tail);

	if (qp->state != IBV_QPS_RTS || qp->type != TP_RC || sq->head - sq->tail != 1 ||
	    sq->next != sq->head || sq->stop || sq->block || !psn_eq(sqe->last_psn, at) ||
	    !psn_eq(psn_add(at, 1), sq->nxt) || tp_op(sqe)->flags & TP_OP_RESPONDS)
		return false;
	if (sqe->flags & IBV_SEND_SIGNALED)
		tp_sq_tell(qp, sqe, IBV_WC_SUCCESS);
	sq->tail++;
	sq->una = sq->nxt;
	tp_sq_progressed(qp);
	sq->limited = false; /* it comes without credits */
	sq->timer = MONO_NEVER;
	return true;
}

/* --- acknowledging --- */

/** tp_small_acks() - is an ACK of RC all that leaves next? One that may wait for
 *  company leaves alone when there is none */
static inline bool tp_small_acks(const struct tp_qp *qp)
{
	const uint8_t acks = TP_RESPONSE_ACK | TP_RESPONSE_OWED, pending = qp->resp.pending;

	return pending && !(pending & (uint8_t)~acks) && qp->type == TP_RC &&
	       (pending & TP_RESPONSE_ACK || qp->sq.next == qp->sq.end || qp->sq.block);
}

/** tp_small_ack() - it leaves. Return: its PSN; *@aeth as in the packet.
 *  Context: tp_small_acks() said yes */
static inline psn_t tp_small_ack(struct tp_qp *qp, uint32_t *aeth)
{
	struct tp_responder *r = &qp->resp;

	r->pending = 0;
	tp_owes_nothing(r);
	qp->stats.tx_packets++;
	*aeth = (uint32_t)TP_ACK_NO_CREDITS << 24 | r->msn;
	return psn_add(r->epsn, 0xffffff);
}

#endif
