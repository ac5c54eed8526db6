/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fast path of a SEND of one packet, of RC, XRC or UD, from a work request into a cell of a
 * lane. transport/fast.h is the transport's part of it. The receiver's fast path, from a cell
 * into a receive queue entry, is in lane_rx.c and uses the header prediction at the end of this
 * file.
 *
 * The fast path makes all its checks before it changes anything. A request that fails a check
 * takes the general path (post.c, lane_tx.c, lane_rx.c), which has the same effect and also
 * reports errors. The fast path saves
 *
 *   - the list of QPs with something to send, and a reading of the clock, because the message
 *     leaves at once
 *   - the translation of the work request into the transport's form (struct tp_send_wr)
 *   - a copy of the receive queue entry, which is read in place
 *
 * Each step is written once, and compiled for each kind of SEND (enum eng_single), which is a
 * constant argument. Instructions and cache misses decide what a message costs;
 * docs/BENCHMARKS.md explains how both are counted.
 */
#ifndef SOFTIB_ENGINE_FAST_H
#define SOFTIB_ENGINE_FAST_H

#include "engine/record.h"

/* --- posting --- */

/* an SGE goes into the send queue as it is */
_Static_assert(sizeof(struct tp_sge) == sizeof(struct ibv_sge) &&
		       offsetof(struct tp_sge, addr) == offsetof(struct ibv_sge, addr) &&
		       offsetof(struct tp_sge, length_bytes) ==
			       offsetof(struct ibv_sge, length) &&
		       offsetof(struct tp_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "struct tp_sge is struct ibv_sge in our words");

/** enum eng_single - the kinds of a SEND of one packet */
enum eng_single {
	ENG_RC,
	ENG_RC_FEW, /* at most eight bytes, in memory whose key is in the cache of regions used
		     * last: no function is called, so variables stay in registers */
	ENG_UD,
	ENG_XRC,
};

/** eng_single_ext_bytes() - length of the extended header in its record: the Q_Key or the XRCETH */
__attribute__((always_inline)) static inline uint32_t
eng_single_ext_bytes(const enum eng_single kind)
{
	return kind == ENG_UD ? ABI_RECORD_QKEY_BYTES : kind == ENG_XRC ? WIRE_XRCETH_BYTES : 0;
}

/** eng_start_ack_timer() - start to wait for the acknowledgement of what was posted */
void eng_start_ack_timer(struct engine *e, struct tp_qp *tp);

/*
 * Has the SEND @wr one piece, of 1 to most[0] bytes (inline: most[1]), and only flags that are
 * @allowed?
 *
 * The caller has checked the opcode. If this function did, the compiler would load opcode and
 * num_sge in one instruction. The processor cannot forward two stores to one load, so the load
 * would wait until the program's stores to these members have left the store buffer. For the
 * same reason no SGE is loaded as a whole.
 */
static inline bool eng_single_fits(const struct ibv_send_wr *wr, unsigned flags,
				   unsigned allowed, const uint32_t most[2])
{
	return wr->num_sge == 1 && !(flags & ~allowed) &&
	       wr->sg_list->length - 1 < most[flags / IBV_SEND_INLINE & 1];
}

/*
 * The steps of eng_send_single(). They get the pointers that they share as arguments: otherwise
 * the compiler would have to load them again after each store.
 */

/* is @qp's flow that of the packet? @av: where a datagram goes */
__attribute__((always_inline)) static inline bool
eng_single_leads(const struct engine *e, const struct eng_qp *qp,
		 const struct ibv_send_wr *wr, const struct tp_av *av,
		 const enum eng_single kind)
{
	struct eng_path to;

	if (kind != ENG_UD) /* without a flow, few_bytes is 0 */
		return kind == ENG_RC_FEW ? eng_flow_lasts(e, qp) : eng_flow_holds(e, qp);
	if (unlikely(!av || !eng_flow_holds(e, qp) || av->is_global))
		return false;
	to = (struct eng_path){
		.dest_qpn = wr->wr.ud.remote_qpn & 0xffffff,
		.dlid = av->dlid,
		.pkey = tp_pkey(qp->tp),
		.sl = av->sl,
		.port_num = av->port_num,
	};
	return eng_same_path(&qp->path, &to) && qp->record_path_bits == av->src_path_bits;
}

/* has the lane room, and may the request leave now? A datagram completes when it has left, so
 * its CQ must have room */
__attribute__((always_inline)) static inline bool
eng_single_may_leave(struct engine *e, const struct eng_qp *qp, struct tp_qp *tp,
		     struct abi_lane_tx *tx, uint32_t record_bytes,
		     const enum eng_single kind)
{
	if (kind == ENG_RC_FEW)
		return abi_lane_knows_cell(tx) && tp_fast_known(tp);
	return likely(abi_lane_has_cell(tx)) &&
	       (record_bytes <= ABI_CELL_BYTES || abi_lane_fits(tx, record_bytes)) &&
	       tp_fast_may_send(tp) &&
	       (kind != ENG_UD || !eng_needs_care(qp, qp->send_cq));
}

/** eng_source() - the bytes of @sge, which a request with @flags sends. @known: NULL if
 * its key has to be looked up */
static inline const void *eng_source(struct engine *e, const struct eng_qp *qp,
				     const struct tp_sge *sge, unsigned flags,
				     const bool known)
{
	if (flags & IBV_SEND_INLINE)
		return (const void *)(uintptr_t)sge->addr;
	return known ? eng_mem_used(e, qp->init.pd, sge->lkey, sge->addr,
				    sge->length_bytes, 0)
		     : eng_mem_recent(e, qp->init.pd, sge->lkey, sge->addr,
				      sge->length_bytes, 0);
}

/** eng_datagram_streams() - does @qp send a stream of datagrams?
 *
 * No acknowledgement tells how many datagrams are still unread. A QP that has posted more
 * than TP_STREAM_MESSAGES since it last received a packet counts as streaming: latency no
 * longer matters to it, and its records are stored past the caches.
 */
static inline bool eng_datagram_streams(struct eng_qp *qp)
{
	uint64_t received = tp_rx_packets(qp->tp);

	if (qp->datagrams_received != received) {
		qp->datagrams_received = received;
		qp->datagrams_run = 0;
	}
	return ++qp->datagrams_run > TP_STREAM_MESSAGES;
}

/* put a SEND of RC or XRC into the send queue and into the lane */
__attribute__((always_inline)) static inline void
eng_send_reliable(struct engine *e, struct eng_qp *qp, struct tp_qp *tp,
		  const struct eng_flow *flow, const struct ibv_send_wr *wr, unsigned flags,
		  const struct tp_sge *sge, const void *payload, uint64_t data,
		  const enum eng_single kind)
{
	const bool few = kind == ENG_RC_FEW, xrc = kind == ENG_XRC;
	const uint32_t ext_bytes = eng_single_ext_bytes(kind);
	uint32_t srqn = xrc ? wr->qp_type.xrc.remote_srqn & 0xffffff : 0;
	struct tp_next next;
	struct eng_payload p;

	if (few && flags & IBV_SEND_SOLICITED)
		__builtin_unreachable(); /* eng_single_post_few() */
	next = tp_fast_send(tp, wr->wr_id, flags, srqn, sge, few ? &data : NULL);
	p = (struct eng_payload){
		.few = few ? &data : NULL,
		.bytes = payload,
		.ext = htobe32(srqn),
		.ext_bytes = ext_bytes,
		.opcode_flags = WIRE_IS_SEND | (xrc ? WIRE_HAS_XRCETH : 0),
		.streams = ABI_STREAM_BYTES && tp_fast_streams(tp) && flow->lane->tx.no_fence,
	};
	eng_emit(e, qp, tp, flow, &next, &p,
		 eng_flow_dwords(qp, ext_bytes + sge->length_bytes));
	qp->window_run = 0;
}

/* put a datagram into the lane, and its completion into the CQ */
static inline void eng_send_datagram(struct engine *e, struct eng_qp *qp,
				     struct tp_qp *tp, const struct eng_flow *flow,
				     const struct ibv_send_wr *wr, const struct tp_sge *sge,
				     const void *payload)
{
	uint32_t len = sge->length_bytes;
	const struct tp_next next = tp_fast_send_datagram(tp, wr->send_flags, len);
	const struct eng_payload p = {
		.bytes = payload,
		.ext = tp_fast_qkey(tp, wr->wr.ud.remote_qkey),
		.ext_bytes = ABI_RECORD_QKEY_BYTES,
		.opcode_flags = WIRE_IS_SEND,
		.streams = eng_datagram_streams(qp) && flow->lane->tx.no_fence,
	};

	eng_emit(e, qp, tp, flow, &next, &p, eng_flow_dwords(qp, len));
	if (tp_is_signaled(tp, wr->send_flags))
		eng_cq_add_sent(qp, wr->wr_id, IBV_WC_SUCCESS, IBV_WC_SEND, len);
}

/**
 * eng_send_single() - post and send the SEND @wr, which fits, when that is all there is
 * to do
 * @sge: its only piece
 * @av: where it goes, of ENG_UD; else NULL
 *
 * The caller starts the timer and rings the lane. Return: the lane; NULL: nothing changed
 */
__attribute__((always_inline)) static inline struct abi_lane_tx *
eng_send_single(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
		const struct tp_sge *sge, const struct tp_av *av,
		const enum eng_single kind)
{
	const uint32_t ext_bytes = eng_single_ext_bytes(kind);
	const struct eng_flow *flow = qp->flow;
	unsigned flags = wr->send_flags;
	struct tp_qp *tp = qp->tp;
	struct abi_lane_tx *tx;
	const void *payload;
	uint64_t data = 0;

	if (unlikely(!eng_single_leads(e, qp, wr, av, kind)))
		return NULL;
	tx = &flow->lane->tx;
	if (unlikely(!eng_single_may_leave(e, qp, tp, tx, sge->length_bytes + ext_bytes,
					   kind)))
		return NULL;
	payload = eng_source(e, qp, sge, flags, kind == ENG_RC_FEW);
	if (unlikely(!payload))
		return NULL;
	/* nothing has changed yet, so the general path can report the error */
	if (kind == ENG_RC_FEW ? unlikely(!guard_load_few(payload, sge->length_bytes, &data)) :
				 !(flags & IBV_SEND_INLINE) &&
					 unlikely(!guard_probe(payload, sge->length_bytes))) {
		e->probes = true;
		return NULL;
	}
	if (kind == ENG_UD)
		eng_send_datagram(e, qp, tp, flow, wr, sge, payload);
	else
		eng_send_reliable(e, qp, tp, flow, wr, flags, sge, payload, data, kind);
	return tx;
}

/** eng_single_post() - eng_send_single() of @wr, a SEND, if it fits. Return: false:
 * nothing changed */
bool eng_single_post(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
		     const struct tp_av *av);

/** eng_single_post_few() - eng_send_single() of a SEND of eight bytes at most, if it fits
 */
static inline const struct abi_lane_tx *
eng_single_post_few(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr)
{
	if (unlikely(!eng_single_fits(wr, wr->send_flags,
				      IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				      qp->few_bytes)))
		return NULL;
	return eng_send_single(e, qp, wr, (const struct tp_sge *)wr->sg_list, NULL,
			       ENG_RC_FEW);
}

/* --- acknowledging --- */

/** eng_ack_may_wait() - does @qp have nothing to send but an ACK that may be delayed? Only in a
 *  lane a request can carry it. Whether the flow is still valid is checked when something is sent */
static inline bool eng_ack_may_wait(const struct eng_qp *qp)
{
	return tp_can_wait(qp->tp) && likely(qp->flow);
}
/** eng_qp_owes() - delay the ACK of @qp. This replaces eng_qp_touch() if eng_ack_may_wait(), and
 *  if what was received has changed no timer */
static inline void eng_qp_owes(struct engine *e, struct eng_qp *qp)
{
	if (list_empty(&qp->ack_node))
		list_add_tail(&qp->ack_node, qp->sent_since_ack ? &e->piggyback_acks : &e->owed_acks);
}

/* --- receiving: header prediction ---
 *
 * The three header words of consecutive SENDs to a QP differ only in PSN, ACK, solicited
 * flag, length and the place of the payload, and so do those of segments with the same number
 * of packets. The result of the checks is therefore the same for all of them, until the QP is
 * modified (eng_lanes_forget()). Only the P_Key is compared before each run of records, because
 * softibd may change the P_Key table at any time.
 *
 * The XRCETH of a record is not predicted: each run looks up the SRQ that it names.
 *
 * A connected QP has one peer and so one prediction, which is in struct eng_qp: many QPs may
 * take turns on a lane. A UD QP has a prediction for each lane, in struct eng_lane_in.
 */

/* the flags that differ between records of the same prediction */
#define ENG_RECORD_VARIES (ABI_RECORD_SOLICITED | ABI_RECORD_ACK | ABI_RECORD_BULK)

/** eng_predict_none() - make @p a prediction that no record matches */
static inline void eng_predict_none(struct eng_prediction *p)
{
	*p = (struct eng_prediction){.route = UINT64_MAX};
}

/** eng_is_predicted() - does a record match the prediction @p, except for the flags in @vary? */
static inline bool eng_is_predicted(const struct eng_prediction *p,
				    const uint64_t word[3], unsigned vary)
{
	return p->route == abi_record_route(word) &&
	       p->source == abi_record_source(word, vary);
}

/** eng_receive_place() - the host address for @bytes of a payload that go into the piece @sge of a
 *  receive, behind the first @offset bytes of it. *@mr: the region of the previous payload, or NULL;
 *  updated. Return: NULL: the general path has to decide
 *
 *  The general path places a payload by tp_scatter(), which walks any number of pieces. This
 *  function knows one case of it, the payload that fits into what is left of one piece
 *  (tp_piece_left()). It checks the region by the same functions (eng_mr_allows(), eng_mem()), but
 *  once for a run of messages, and without a call through tp_ops. With tp_scatter()
 *  in its place, "answer 8 B, receive" of make bench takes a third more instructions. */
static inline void *eng_receive_place(struct engine *e, uint32_t pd, const struct tp_sge *sge,
				      uint32_t offset, uint32_t bytes, const struct eng_mr **mr)
{
	uint64_t va = sge->addr + offset;
	void *to;

	if (unlikely(tp_piece_left(sge, offset) < bytes))
		return NULL;
	if (likely(*mr && (*mr)->attr.key == sge->lkey))
		return eng_mr_at(*mr, va, bytes);
	*mr = eng_mr_used(e, sge->lkey);
	if (likely(eng_mr_allows(*mr, pd, sge->lkey, IBV_ACCESS_LOCAL_WRITE)))
		return eng_mr_at(*mr, va, bytes);
	to = eng_mem(e, pd, sge->lkey, va, bytes, IBV_ACCESS_LOCAL_WRITE);
	*mr = to ? eng_mr_used(e, sge->lkey) : NULL;
	return to;
}

#endif
