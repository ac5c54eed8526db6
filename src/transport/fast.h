/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the engine's fast path (engine/fast.h) asks of a QP. The engine knows nothing else of a
 * QP beyond transport.h.
 *
 * The fast path sends and receives SENDs of one packet, of RC or UD, without immediate and
 * fence, over a link of segments. Its functions here take the same steps (send.h, qp.h) as
 * tp_qp_post_send(), tp_qp_transmit_segment() and tp_qp_receive(), with constants for what is
 * known of such a SEND:
 *
 *   sending    The message is one packet, so there is no lookup in the table of opcodes and no
 *              cursor. It has AckReq, as the last packet of any message. The indices next,
 *              fresh, end and head of the send queue are equal before it and after it.
 *   receiving  The message begins and ends with this packet, so no state of a message is kept.
 *              The packet is the expected one, the QP receives, and the engine has found where
 *              the bytes go, so there is no RNR NAK, NAK, duplicate or COMM_EST.
 *
 * tests/unit/engine/test_paths.c compares the packets of the two paths.
 */
#ifndef SOFTIB_TRANSPORT_FAST_H
#define SOFTIB_TRANSPORT_FAST_H

#include "transport/send.h"

/* --- what a QP is --- */

/** tp_pkey() - the P_Key of its packets */
static inline uint16_t tp_pkey(const struct tp_qp *qp)
{
	return qp->attr.pkey;
}

/** tp_transport() - enum wire_transport, which its opcodes bear */
static inline uint8_t tp_transport(const struct tp_qp *qp)
{
	return qp->transport;
}

/** tp_pkey_refresh() - the port's table has @pkey at the QP's index now */
static inline void tp_pkey_refresh(struct tp_qp *qp, uint16_t pkey)
{
	qp->attr.pkey = pkey;
}

/** tp_next_psn() - of the next packet that it sends */
static inline psn_t tp_next_psn(const struct tp_qp *qp)
{
	return qp->sq.nxt;
}

/** tp_expected_psn() - of the next request packet that it receives in order */
static inline psn_t tp_expected_psn(const struct tp_qp *qp)
{
	return qp->resp.epsn;
}

/** tp_rx_packets() - how many it ever received */
static inline uint64_t tp_rx_packets(const struct tp_qp *qp)
{
	return qp->stats.rx_packets;
}

/** tp_is_signaled() - shall a request with @flags have a completion when it succeeds? */
static inline bool tp_is_signaled(const struct tp_qp *qp, unsigned flags)
{
	return (flags | qp->sig_all_flag) & IBV_SEND_SIGNALED;
}

/** tp_wc_opcode() - of the completion of a request with @opcode */
static inline uint8_t tp_wc_opcode(unsigned opcode)
{
	return tp_ops_table[opcode].wc_opcode;
}

/** tp_may_read() - may it have READs and atomics outstanding at all? */
static inline bool tp_may_read(const struct tp_qp *qp)
{
	return qp->attr.max_rd_atomic;
}

/** tp_idle() - is it in RTS, with nothing unsent or unacknowledged? */
static inline bool tp_idle(const struct tp_qp *qp)
{
	return qp->state == IBV_QPS_RTS && qp->sq.tail == qp->sq.head;
}

/** tp_timer() - tp_qp_expiry() */
static inline mono_t tp_timer(const struct tp_qp *qp)
{
	return qp->sq.timer;
}

/** tp_timer_runs() - does it wait for an acknowledgement, or for a peer's receive? */
static inline bool tp_timer_runs(const struct tp_qp *qp)
{
	return qp->sq.timer.ns != MONO_NEVER.ns;
}

/* --- sending --- */

/** tp_fast_look() - set sq.fast_left: how many SENDs, posted one after the other, would
 *  each be all there is to send, in RTS, held back by nothing, with room in queue and
 *  window? Of UD, which waits for nothing: any number. Return: false: none */
bool tp_fast_look(struct tp_qp *qp);

/** tp_fast_known() - may a SEND that is posted now leave now, by what the last look
 * found, and with no response of this QP before it? Return: false: look */
static inline bool tp_fast_known(const struct tp_qp *qp)
{
	return likely(qp->sq.fast_left && !tp_response_first(qp, true));
}

/** tp_fast_may_send() - the same, with a look if need be */
static inline bool tp_fast_may_send(struct tp_qp *qp)
{
	return likely((qp->sq.fast_left || tp_fast_look(qp)) && tp_fast_known(qp));
}

/**
 * tp_fast_send() - a SEND of RC is posted and sent
 * @flags: of IBV_SEND_SIGNALED, _SOLICITED, _INLINE
 * @sge: the one piece, of 1 byte to the path MTU or, inline, the QP's limit
 * @few: it is no more than eight bytes, and these, as of load_few(); else NULL
 *
 * Context: tp_fast_may_send() said yes. Whoever calls it takes an ACK along
 * (tp_take_ack()), and starts the timer (tp_ack_wait()) unless tp_timer_runs().
 * Return: its PSN
 */
static inline psn_t tp_fast_send(struct tp_qp *qp, uint64_t wr_id, unsigned flags,
				 const struct tp_sge *sge, const uint64_t *few)
{
	const struct tp_sge piece = {sge->addr, sge->length_bytes, sge->lkey};
	const struct tp_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IBV_WR_SEND,
		.flags = (uint16_t)flags,
		.num_sge = 1,
		.length_bytes = sge->length_bytes,
		.sge = &piece,
	};
	struct tp_sq *sq = &qp->sq;
	uint32_t index = sq->head; /* and next, fresh and end (tp_fast_look()) */
	psn_t at = sq->nxt, nxt = psn_add(at, 1);

	tp_write_request(qp, index, &wr, TP_OP_RECEIVES, TP_RDMA, few);
	tp_begin_request(sq, tp_sqe(qp, index), index, at, 1);
	tp_leave(sq, index, nxt, true, true);
	sq->sent = nxt;
	sq->head = sq->end = index + 1;
	sq->fast_left--;
	qp->stats.tx_packets++;
	return at;
}

/** tp_fast_send_datagram() - a SEND of UD is posted, sent and, since nothing answers it,
 *  done. It never was in the send queue. Context: as tp_fast_send(). Return: its PSN */
static inline psn_t tp_fast_send_datagram(struct tp_qp *qp)
{
	struct tp_sq *sq = &qp->sq;
	psn_t at = sq->nxt;

	tp_left_unreliable(sq, psn_add(at, 1));
	qp->stats.tx_packets++;
	return at;
}

/** tp_fast_qkey() - of a datagram whose request says @wish */
static inline uint32_t tp_fast_qkey(const struct tp_qp *qp, uint32_t wish)
{
	return tp_qkey_sent(qp->qpn, qp->attr.qkey, wish);
}

/** tp_fast_streams() - are so many requests under way that the next one's turn is not at
 *  once? */
static inline bool tp_fast_streams(const struct tp_qp *qp)
{
	return qp->sq.head - qp->sq.tail > TP_STREAM_MESSAGES;
}

/* --- acknowledging --- */

/** tp_fast_acks() - is an ACK of RC, with no request to go with, all that leaves next? */
static inline bool tp_fast_acks(const struct tp_qp *qp)
{
	const uint8_t acks = TP_RESPONSE_ACK | TP_RESPONSE_OWED,
		      pending = qp->resp.pending;

	return pending && !(pending & (uint8_t)~acks) && qp->type == TP_RC &&
	       (pending & TP_RESPONSE_ACK || !tp_has_request(qp));
}

/** tp_fast_ack_streams() - does that ACK stand for so many messages that nobody waits for
 * it? */
static inline bool tp_fast_ack_streams(const struct tp_qp *qp)
{
	return qp->resp.owed >= TP_STREAM_ACKED;
}

/** tp_fast_ack() - it leaves. Context: tp_fast_acks() said yes. Return: its PSN */
static inline psn_t tp_fast_ack(struct tp_qp *qp, struct wire_aeth *aeth)
{
	qp->stats.tx_packets++;
	return tp_take_all_acks(&qp->resp, aeth);
}

/* --- receiving --- */

/* does it receive, and without an event for the packet? */
static inline bool tp_fast_receives(const struct tp_qp *qp)
{
	return likely(qp->state == IBV_QPS_RTS) ||
	       (tp_state_receives(qp->state) && !tp_comm_est(qp));
}

/** tp_fast_expects() - does it await a request between messages? No receive was taken for
 *  another. Of RC its PSN is to be tp_expected_psn(). @ud: of UD, else of RC */
__attribute__((always_inline)) static inline bool tp_fast_expects(const struct tp_qp *qp,
								  const bool ud)
{
	const uint8_t not [sizeof(uint32_t)] = {TP_RESPONSE_NAK, 0xff, 0xff, 0xff};
	uint32_t is, mask;

	_Static_assert(offsetof(struct tp_responder, pending) == 0 &&
			       offsetof(struct tp_responder, message) == 1 &&
			       offsetof(struct tp_responder, has_recv) == 2 &&
			       offsetof(struct tp_responder, nak_sent) == 3,
		       "these four are looked at in one");
	memcpy(&is, &qp->resp, sizeof(is));
	memcpy(&mask, not, sizeof(mask));
	return likely(tp_fast_receives(qp) && qp->type == (ud ? TP_UD : TP_RC) &&
		      !(is & mask));
}

/** tp_fast_takes() - does a UD QP take datagrams with @qkey? */
static inline bool tp_fast_takes(const struct tp_qp *qp, uint32_t qkey)
{
	return tp_qkey_passes(qp->qpn, qp->attr.qkey, qkey);
}

/** tp_fast_received() - @n SENDs of RC were, one behind the other, of @packets in all:
 * their bytes and completions are where they belong. Context: tp_fast_expects() said yes
 */
static inline void tp_fast_received(struct tp_qp *qp, unsigned n, unsigned packets)
{
	tp_received(&qp->resp, packets, n, true);
	qp->stats.rx_packets += packets;
}

/** tp_fast_received_datagrams() - the same of @n of UD */
static inline void tp_fast_received_datagrams(struct tp_qp *qp, unsigned n)
{
	qp->stats.rx_packets += n;
}

/**
 * tp_fast_middle() - does an RC QP await, at the PSN @at, the middle of a SEND whose
 * receive it has, with room for @len bytes more in one piece? They are full packets
 * (9.7.4.1)
 * @piece, @offset: set to where they go
 */
static inline bool tp_fast_middle(const struct tp_qp *qp, uint32_t at, uint32_t len,
				  const struct tp_sge **piece, uint32_t *offset)
{
	const struct tp_responder *r = &qp->resp;

	if (qp->state != IBV_QPS_RTS || qp->type != TP_RC ||
	    r->message != TP_MESSAGE_SEND || !r->has_recv || r->nak_sent ||
	    r->pending & TP_RESPONSE_NAK || at != r->epsn.v ||
	    r->cursor.sge >= r->recv.num_sge)
		return false;
	*piece = &r->recv.sge[r->cursor.sge];
	*offset = r->cursor.offset;
	return len <= (*piece)->length_bytes - *offset;
}

/** tp_fast_received_middle() - those bytes are there, as the payload of @packets that ask
 *  for no answer */
static inline void tp_fast_received_middle(struct tp_qp *qp, uint32_t len,
					   unsigned packets)
{
	struct tp_responder *r = &qp->resp;

	tp_received(r, packets, 0, false);
	r->received_bytes += len;
	r->cursor.offset += len;
	qp->stats.rx_packets += packets;
}

#endif
