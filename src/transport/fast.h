/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the engine asks of a QP where a call would cost too much: the capabilities of its type
 * (the table in opcode.c), and the steps of the fast path (engine/fast.h). The engine knows nothing
 * else of a QP beyond transport.h.
 *
 * The fast path sends and receives SENDs of one packet, of RC, XRC or UD, without immediate and
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

/** tp_transport() - the upper three bits of its opcodes: enum wire_transport */
static inline uint8_t tp_transport(const struct tp_qp *qp)
{
	return qp->transport;
}

/** tp_is_connected() - has it one peer, whose packets alone it accepts? */
static inline bool tp_is_connected(const struct tp_qp *qp)
{
	return qp->can & TP_CONNECTED;
}

/** tp_is_acknowledged() - do its requests complete when the peer has acknowledged them? */
static inline bool tp_is_acknowledged(const struct tp_qp *qp)
{
	return qp->can & TP_ACKNOWLEDGED;
}

/** tp_is_datagram() - is each of its packets a message of its own, with a DETH? */
static inline bool tp_is_datagram(const struct tp_qp *qp)
{
	return qp->can & TP_DATAGRAM;
}

/** tp_names_srq() - do its requests name the SRQ that receives them? */
static inline bool tp_names_srq(const struct tp_qp *qp)
{
	return qp->can & TP_SRQ_NUMBER;
}

/** tp_may_use_windows() - may its RDMA and atomics be performed through a window? */
static inline bool tp_may_use_windows(const struct tp_qp *qp)
{
	return qp->can & TP_BY_WINDOW;
}

/** tp_pkey_refresh() - set the P_Key to @pkey, which the port's table has at the QP's index */
static inline void tp_pkey_refresh(struct tp_qp *qp, uint16_t pkey)
{
	qp->attr.pkey = pkey;
}

/** tp_next_psn() - the PSN of the next packet that it sends */
static inline psn_t tp_next_psn(const struct tp_qp *qp)
{
	return qp->sq.nxt;
}

/** tp_expected_psn() - the PSN of the request packet that it expects */
static inline psn_t tp_expected_psn(const struct tp_qp *qp)
{
	return qp->resp.epsn;
}

/** tp_rx_packets() - the number of packets that it has received */
static inline uint64_t tp_rx_packets(const struct tp_qp *qp)
{
	return qp->stats.rx_packets;
}

/** tp_is_signaled() - does a request with @flags get a completion when it succeeds? */
static inline bool tp_is_signaled(const struct tp_qp *qp, unsigned flags)
{
	return (flags | qp->sig_all_flag) & IBV_SEND_SIGNALED;
}

/** tp_may_read() - may it have outstanding READs and atomics at all? */
static inline bool tp_may_read(const struct tp_qp *qp)
{
	return qp->attr.max_rd_atomic;
}

/** tp_idle() - is it in RTS, with all requests sent and acknowledged? */
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

/** tp_fast_look() - set sq.fast_left to the number of single-packet SENDs that may be sent from
 *  their posts, one after the other: the QP is in RTS, has nothing else to send, and has room in
 *  the send queue and in the PSN window. Return: false: the number is 0 */
bool tp_fast_look(struct tp_qp *qp);

/** tp_fast_known() - may a SEND leave from its post, by what tp_fast_look() found last? Return:
 *  false: unknown, or a response has to leave first */
static inline bool tp_fast_known(const struct tp_qp *qp)
{
	return likely(qp->sq.fast_left && !tp_response_first(qp, true));
}

/** tp_fast_may_send() - may a SEND leave from its post? */
static inline bool tp_fast_may_send(struct tp_qp *qp)
{
	return likely((qp->sq.fast_left || tp_fast_look(qp)) && tp_fast_known(qp));
}

/* the next packet is a whole SEND with @flags of @length_bytes; @can: of the type, a constant */
__attribute__((always_inline)) static inline struct tp_next
tp_fast_packet(const struct tp_qp *qp, unsigned can, unsigned flags, uint32_t length_bytes)
{
	static const struct tp_op op = TP_OP_SEND;

	return tp_next_packet(qp, &op, can, flags, length_bytes, qp->sq.nxt, 0, 1, 1);
}

/**
 * tp_fast_send() - post and send a SEND of RC or XRC
 * @flags: of IBV_SEND_SIGNALED, _SOLICITED, _INLINE
 * @srqn: the SRQ that it is for; 0: RC
 * @sge: the one piece, of 1 byte to the path MTU or, inline, the QP's limit
 * @few: its payload as load_few() returns it, if it has at most eight bytes; or NULL
 *
 * Context: tp_fast_may_send() returned true. The caller takes a delayed ACK along
 * (tp_take_ack()), and starts the timer (tp_ack_wait()) unless tp_timer_runs().
 * Return: its packet
 */
__attribute__((always_inline)) static inline struct tp_next
tp_fast_send(struct tp_qp *qp, uint64_t wr_id, unsigned flags, uint32_t srqn,
	     const struct tp_sge *sge, const uint64_t *few)
{
	const struct tp_next next = tp_fast_packet(qp, TP_ACKNOWLEDGED, flags, sge->length_bytes);
	const struct tp_sge piece = {sge->addr, sge->length_bytes, sge->lkey};
	const struct tp_send_wr wr = {
		.wr_id = wr_id,
		.opcode = IBV_WR_SEND,
		.flags = (uint16_t)flags,
		.num_sge = 1,
		.srqn = srqn,
		.length_bytes = sge->length_bytes,
		.sge = &piece,
	};
	struct tp_sq *sq = &qp->sq;
	uint32_t index = sq->head; /* and next, fresh and end (tp_fast_look()) */
	psn_t nxt = psn_add(next.psn, 1);

	tp_write_request(qp, index, &wr, TP_OP_RECEIVES, TP_RDMA, few);
	tp_begin_request(sq, tp_sqe(qp, index), index, next.psn, 1);
	tp_leave(sq, index, nxt, next.ack_req, next.last);
	sq->sent = nxt;
	sq->head = sq->end = index + 1;
	sq->fast_left--;
	qp->stats.tx_packets++;
	return next;
}

/** tp_fast_send_datagram() - post and send a SEND of UD. Nothing acknowledges it, so it does not
 *  enter the send queue. Context and return value: as tp_fast_send() */
static inline struct tp_next tp_fast_send_datagram(struct tp_qp *qp, unsigned flags,
						   uint32_t length_bytes)
{
	const struct tp_next next = tp_fast_packet(qp, 0, flags, length_bytes);

	tp_left_unreliable(&qp->sq, psn_add(next.psn, 1));
	qp->stats.tx_packets++;
	return next;
}

/** tp_fast_qkey() - the Q_Key of a datagram whose request has @wish (10.2.5) */
static inline uint32_t tp_fast_qkey(const struct tp_qp *qp, uint32_t wish)
{
	return tp_qkey_sent(qp->qpn, qp->attr.qkey, wish);
}

/** tp_fast_streams() - does the QP stream? It has so many outstanding requests that the latency
 *  of the next one is unimportant */
static inline bool tp_fast_streams(const struct tp_qp *qp)
{
	return qp->sq.head - qp->sq.tail > TP_STREAM_MESSAGES;
}

/* --- the type --- */

/** tp_may_be_fast() - may a QP of this type take the fast path? */
static inline bool tp_may_be_fast(const struct tp_qp *qp)
{
	return qp->can & TP_FAST;
}

/** tp_fast_is() - may a QP of this type take the fast path, and is it acknowledged (@ack =
 *  TP_ACKNOWLEDGED: RC, XRC) or not (0: UD)? */
static inline bool tp_fast_is(const struct tp_qp *qp, unsigned ack)
{
	return (qp->can & (TP_FAST | TP_ACKNOWLEDGED)) == (TP_FAST | ack);
}

/* --- acknowledging --- */

/** tp_fast_acks() - is a standalone ACK of RC or XRC the next packet that leaves? */
static inline bool tp_fast_acks(const struct tp_qp *qp)
{
	const uint8_t acks = TP_RESPONSE_ACK | TP_RESPONSE_OWED,
		      pending = qp->resp.pending;

	return pending && !(pending & (uint8_t)~acks) && tp_fast_is(qp, TP_ACKNOWLEDGED) &&
	       (pending & TP_RESPONSE_ACK || !tp_has_request(qp));
}

/** tp_fast_ack_streams() - does that ACK acknowledge so many messages that its latency is
 *  unimportant? */
static inline bool tp_fast_ack_streams(const struct tp_qp *qp)
{
	return qp->resp.owed >= TP_STREAM_ACKED;
}

/** tp_fast_ack() - take that ACK, because it leaves. Context: tp_fast_acks() returned true.
 *  Return: its PSN */
static inline psn_t tp_fast_ack(struct tp_qp *qp, struct wire_aeth *aeth)
{
	qp->stats.tx_packets++;
	return tp_take_all_acks(&qp->resp, aeth);
}

/**
 * tp_fast_acked() - receive a standalone ACK with the PSN @at, in the most frequent case
 * @syndrome: of its AETH
 *
 * Return: false: nothing has changed, because it is no ACK without credits of something outstanding
 */
bool tp_fast_acked(struct tp_qp *qp, psn_t at, uint8_t syndrome, mono_t now);

/* --- receiving --- */

/* does the QP receive packets, and without an event for the next one? */
static inline bool tp_fast_receives(const struct tp_qp *qp)
{
	return likely(qp->state == IBV_QPS_RTS) ||
	       (tp_state_receives(qp->state) && !tp_comm_est(qp));
}

/** tp_fast_expects() - does the QP expect the first packet of a message (tp_follows()), and has it
 *  taken no receive for it? Of RC and XRC, the packet must have the PSN tp_expected_psn(). @ud: the
 *  QP must be UD, else RC or XRC */
__attribute__((always_inline)) static inline bool tp_fast_expects(const struct tp_qp *qp,
								  const bool ud)
{
	return likely(tp_fast_receives(qp) && tp_fast_is(qp, ud ? 0 : TP_ACKNOWLEDGED) &&
		      tp_refuses_nothing(&qp->resp) && !qp->resp.has_recv &&
		      tp_follows(&qp->resp, TP_MESSAGE_SEND, true));
}

/** tp_fast_takes() - does a UD QP accept datagrams with @qkey? */
static inline bool tp_fast_takes(const struct tp_qp *qp, uint32_t qkey)
{
	return tp_qkey_passes(qp->qpn, qp->attr.qkey, qkey);
}

/** tp_fast_received() - @n consecutive SENDs of RC or XRC were received, which had @packets in all.
 *  Their payloads were stored and their completions added by the caller. Context:
 *  tp_fast_expects() returned true */
static inline void tp_fast_received(struct tp_qp *qp, unsigned n, unsigned packets)
{
	tp_received(&qp->resp, packets, n, true);
	qp->stats.rx_packets += packets;
}

/** tp_fast_received_datagrams() - the same for @n datagrams */
static inline void tp_fast_received_datagrams(struct tp_qp *qp, unsigned n)
{
	qp->stats.rx_packets += n;
}

/**
 * tp_fast_middle() - may the middle of a SEND be received at the PSN @at? Its packets are full
 *  (9.7.4.1)
 * @piece, @offset: set to the place for it in the receive, in which the caller looks for room
 *
 * Return: true: an RC QP expects it, and has taken the receive
 */
static inline bool tp_fast_middle(const struct tp_qp *qp, uint32_t at,
				  const struct tp_sge **piece, uint32_t *offset)
{
	const struct tp_responder *r = &qp->resp;

	if (qp->state != IBV_QPS_RTS || !tp_fast_is(qp, TP_ACKNOWLEDGED) ||
	    !tp_follows(r, TP_MESSAGE_SEND, false) || !r->has_recv || !tp_refuses_nothing(r) ||
	    at != r->epsn.v || r->cursor.sge >= r->recv.num_sge)
		return false;
	*piece = &r->recv.sge[r->cursor.sge];
	*offset = r->cursor.offset;
	return true;
}

/** tp_fast_received_middle() - those bytes were received and stored, as the payload of @packets
 *  without AckReq */
static inline void tp_fast_received_middle(struct tp_qp *qp, uint32_t len,
					   unsigned packets)
{
	struct tp_responder *r = &qp->resp;

	tp_received(r, packets, 0, false);
	r->received_bytes += len;
	tp_cursor_advance(&r->cursor, &r->recv.sge[r->cursor.sge], len);
	qp->stats.rx_packets += packets;
}

#endif
