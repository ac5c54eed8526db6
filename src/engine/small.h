/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The straight way of a small SEND, between the program and a lane: from a
 * work request into a cell, and from a cell into the receive's memory and its
 * completion (receive_run() in lane_rx.c, by what is here). transport/small.h is
 * the transport's part of it.
 *
 * Both look first and change nothing until they are sure; what they do not take
 * goes the general way (post.c and lane_tx.c; lane_rx.c), which does the same to
 * it, and also knows every error. What they leave out:
 *
 *   - the list of QPs with something to send, the clock: the message leaves now
 *   - the copy of the request: its only SGE, or its few bytes, are noted in it
 *   - packing the record: but for PSN, ACK, length and P_Key its three words
 *     are those of the flow, made when the flow was chosen
 *   - taking the receive: it is looked at where it lies, then is used up
 *
 * One of eight bytes at most, a word, leaves out calls, too: who posts it stays in
 * one function (eng_post_send()), most of it in registers.
 */
#ifndef SOFTIB_ENGINE_SMALL_H
#define SOFTIB_ENGINE_SMALL_H

#include "engine/private.h"
#include "transport/small.h"

/* --- sending --- */

/** eng_lane_count() - packets leave by a lane */
static inline void eng_lane_count(struct abi_flow_count *c, uint32_t packets, uint32_t dwords)
{
	uint64_t p = atomic_load_explicit(&c->packets, memory_order_relaxed);
	uint64_t d = atomic_load_explicit(&c->dwords, memory_order_relaxed);

	atomic_store_explicit(&c->dwords, d + dwords, memory_order_relaxed);
	atomic_store_explicit(&c->packets, p + packets, memory_order_relaxed);
}

/** eng_small_has_room() - for a record with @len bytes of payload */
static inline bool eng_small_has_room(struct abi_lane_tx *tx, uint32_t len)
{
	return likely(abi_lane_has_cell(tx)) &&
	       (len <= ABI_CELL_BYTES || abi_lane_fits(tx, len));
}

/* an RDMA WRITE that was before a streamed record is seen before it */
static inline void eng_fence_windows(struct engine *e)
{
	if (likely(!e->in_windows))
		return;
	atomic_thread_fence(memory_order_seq_cst);
	e->in_windows = false;
}

/** eng_stream() - a record with eight bytes of data, @first, and @left more into the cell at
 *  the tail of @tx; past the caches if it @may. With none left there is no call in it, and
 *  little that either way has alone, for the sake of the registers */
__attribute__((always_inline)) static inline void
eng_stream(struct engine *e, struct abi_lane_tx *tx, struct abi_cell *cell, const uint64_t word[3],
	   uint64_t first, const void *rest, uint32_t left, bool may)
{
	if (may && likely(abi_lane_may_stream(tx))) {
		eng_fence_windows(e);
		abi_lane_publish_stream(tx, cell, word, first, rest, left);
		return;
	}
	memcpy(cell->data, &first, sizeof(first));
	copy_few(cell->data + sizeof(first), rest, left);
	abi_lane_publish_words(tx, cell, word);
	if (may)
		abi_lane_clear(tx, sizeof(first) + left);
}

/* the headers of @s. P_Key and flags are read where they are used: what is spilled narrow
 * and loaded wide waits for the store */
static inline void eng_small_words(const struct eng_qp *qp, const struct tp_small *s,
				   unsigned flags, uint64_t word[3])
{
	struct tp_qp *tp = qp->tp;
	psn_t ack;

	word[0] = qp->small_word[0] | s->psn.v;
	word[1] = qp->small_word[1] | abi_record_flags((flags & IBV_SEND_SOLICITED) /
						       IBV_SEND_SOLICITED * ABI_RECORD_SOLICITED);
	word[2] = qp->small_word[2] | s->length_bytes | abi_record_pkey(tp->attr.pkey);
	if (tp_take_ack(tp, &ack))
		word[1] |= abi_record_ack(ack.v);
}

/* is the next record of @tp one of a stream? */
static inline bool eng_small_streams(const struct tp_qp *tp, const struct abi_lane_tx *tx)
{
	return ABI_STREAM_BYTES && tp_small_streams(tp) && tx->no_fence;
}

/** eng_small_put() - into the cell at the tail of the lane of @flow, @qp's.
 *  @flags: of the request */
__attribute__((always_inline)) static inline void
eng_small_put(const struct eng_qp *qp, const struct eng_flow *flow, const struct tp_small *s,
	      unsigned flags)
{
	struct abi_lane_tx *tx = &flow->lane->tx;
	struct abi_cell *cell = abi_lane_cell(tx->memory, tx->tail);
	uint32_t len = s->length_bytes;
	uint8_t *to = cell->data;
	uint64_t word[3];

	eng_small_words(qp, s, flags, word);
	if (len <= ABI_STREAM_BYTES && eng_small_streams(qp->tp, tx)) {
		eng_stream(qp->engine, tx, cell, word, load_few(s->payload, MIN(len, 8u)),
			   (const uint8_t *)s->payload + 8, len - MIN(len, 8u), true);
	} else {
		if (len > ABI_CELL_BYTES) {
			word[1] |= abi_record_flags(ABI_RECORD_BULK);
			to = abi_lane_put_bulk(tx, cell, len);
		}
		copy_few(to, s->payload, len);
		abi_lane_publish_words(tx, cell, word);
	}
	eng_lane_count(flow->count, 1, qp->flow_dwords + (len + 3) / 4);
}

/** eng_small_put_word() - the same of eight bytes at most, @data, into the lane of @tx */
static inline void eng_small_put_word(struct engine *e, const struct eng_qp *qp,
				      struct tp_qp *tp, struct abi_lane_tx *tx,
				      const struct tp_small *s, uint64_t data)
{
	struct abi_cell *cell = abi_lane_cell(tx->memory, tx->tail);
	uint64_t word[3];

	eng_small_words(qp, s, 0, word);
	eng_stream(e, tx, cell, word, data, NULL, 0, eng_small_streams(tp, tx));
}

/* the SGE goes into the send queue as it is */
_Static_assert(sizeof(struct tp_sge) == sizeof(struct ibv_sge) &&
		       offsetof(struct tp_sge, addr) == offsetof(struct ibv_sge, addr) &&
		       offsetof(struct tp_sge, length_bytes) == offsetof(struct ibv_sge, length) &&
		       offsetof(struct tp_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "struct tp_sge is struct ibv_sge in our words");

/** eng_small_wait() - start to wait for the acknowledgement of what was posted */
void eng_small_wait(struct engine *e, struct tp_qp *tp);

/* is @wr, a SEND, one of one piece, of 1 to most[0] bytes, or inline to most[1], and with no
 * flags but those that are @allowed?
 *
 * Who called has looked at its opcode: both in one would be compiled into one load of two
 * members, which waits until the program's stores to them, and all before those, are
 * done; as it would wait that loads an SGE whole. */
static inline bool eng_small_fits(const struct ibv_send_wr *wr, unsigned flags,
				  unsigned allowed, const uint32_t most[2])
{
	return wr->num_sge == 1 && !(flags & ~allowed) &&
	       wr->sg_list->length - 1 < most[flags / IBV_SEND_INLINE & 1];
}

/** eng_small_post() - post and send @wr, a SEND, when that is all there is to do. The
 *  caller rings the lane. Return: false: it is not, nothing changed */
bool eng_small_post(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr);

/** eng_small_post_word() - the same, step by step, of eight bytes at most, for which nothing has to be
 *  looked up: no function is called, so that all can stay in registers. Return: the lane
 *  that it is in; the caller looks at tp_small_waits(), too; NULL: nothing changed */
static inline const struct abi_lane_tx *eng_small_post_word(struct engine *e, struct eng_qp *qp,
							    const struct ibv_send_wr *wr)
{
	const struct tp_sge *sge = (const struct tp_sge *)wr->sg_list;
	const struct eng_flow *flow = qp->flow;
	unsigned flags = wr->send_flags;
	struct tp_qp *tp = qp->tp;
	struct abi_lane_tx *tx;
	struct tp_small small;
	const void *payload;
	uint64_t data;

	if (unlikely(!eng_small_fits(wr, flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				     qp->word_bytes) ||
		     !eng_flow_lasts(e, qp)))
		return NULL;
	tx = &flow->lane->tx;
	if (unlikely(!abi_lane_knows_cell(tx) || !tp_small_knows_post(tp)))
		return NULL;
	payload = (const void *)(uintptr_t)sge->addr;
	if (!(flags & IBV_SEND_INLINE)) {
		payload = eng_mem_used(e, qp->init.pd, sge->lkey, sge->addr, sge->length_bytes, 0);
		if (unlikely(!payload))
			return NULL;
	}
	data = load_few(payload, sge->length_bytes);
	tp_small_post(tp, wr->wr_id, flags, sge, payload, &data, &small);
	eng_small_put_word(e, qp, tp, tx, &small, data);
	eng_lane_count(flow->count, 1, qp->flow_dwords + (small.length_bytes + 3) / 4);
	qp->window_run = 0;
	return tx;
}

/* --- receiving --- */

/*
 * Of a small SEND's three words all is the same in those that follow but PSN,
 * ACK, solicited, length and where the payload is; as of a longer one's, which is
 * a segment of so many packets. And so is the outcome of the checks, until the QP
 * changes (eng_lanes_forget()). The P_Key's is looked at before each run of them:
 * the table is softibd's.
 *
 * A connected QP has one peer and so one such header, its own: many of them may
 * take turns on a lane. One of UD has as many as lanes to it: the lane has it.
 */
#define ENG_SMALL_FREE (ABI_RECORD_SOLICITED | ABI_RECORD_ACK | ABI_RECORD_BULK)

/** eng_small_forget() - no record is like this */
static inline void eng_small_forget(struct eng_small_header *known)
{
	*known = (struct eng_small_header){.way = UINT64_MAX};
}

static inline bool eng_small_is_known(const struct eng_small_header *known, const uint64_t word[3])
{
	return known->way == abi_record_route(word) && known->to == abi_record_target(word) &&
	       known->from == abi_record_source(word, ENG_SMALL_FREE);
}

/** eng_small_find() - the record is not like the last: like what else? Return: false:
 *  nothing that is known; else @lane->known is it */
static inline bool eng_small_find(const struct engine *e, struct eng_lane_in *lane,
				  const uint64_t word[3])
{
	struct eng_small_header *known = &lane->datagram;
	struct eng_qp *qp;

	if (!eng_small_is_known(known, word)) {
		qp = eng_table_get(&e->qps, abi_record_dest_qpn(word));
		if (!qp)
			return false;
		known = &qp->known;
		if (known->lane != lane->id || !eng_small_is_known(known, word))
			return false;
	}
	lane->known = known;
	return true;
}

/** eng_small_note() - the record passed; if it is a whole SEND, or of the middle of
 *  one, where all packets are full (9.7.4.1.6), and of the full member's P_Key that @qp
 *  has itself, know its like. What other P_Keys pass, eng_pkey_passes() knows (10.9.3) */
static inline void eng_small_note(struct eng_lane_in *lane, struct eng_qp *qp,
				  const struct abi_record *r, const struct wire_packet *pkt,
				  const uint64_t word[3])
{
	bool ud = qp->init.type == IBV_QPT_UD;
	bool middle = !ud && r->opcode == (WIRE_RC | WIRE_SEND_MIDDLE);
	bool only = r->opcode == ((ud ? WIRE_UD : WIRE_RC) | WIRE_SEND_ONLY);
	uint8_t flags = only && !ud ? ABI_RECORD_ACK_REQ : 0;
	uint32_t full = r->packets * tp_mtu(qp->tp);
	struct tp_wc wc;

	if (qp->engine->cfg.general_only || (!only && !middle) || !r->packets || (ud && r->packets > 1) ||
	    (r->flags & (ABI_RECORD_ACK_REQ | ABI_RECORD_GRH)) != flags ||
	    r->pkey != qp->tp->attr.pkey || r->pkey <= 0x8000)
		return;
	tp_recv_wc(qp->tp, pkt, wire_opcodes[r->opcode].flags, 0, &wc);
	lane->known = ud ? &lane->datagram : &qp->known;
	*lane->known = (struct eng_small_header){
		.qp = qp,
		.lane = lane->id,
		.to = abi_record_target(word),
		.least_bytes = middle ? full : full - tp_mtu(qp->tp) + 1,
		.span_bytes = middle ? 1 : tp_mtu(qp->tp),
		.packets = r->packets,
		.is_middle = middle,
		.from = abi_record_source(word, ENG_SMALL_FREE),
		.way = abi_record_route(word),
	};
	eng_wc_received(qp, &wc, &lane->known->wc);
}

/** eng_small_pkey_holds() - has @qp still the P_Key of the known record? */
static inline bool eng_small_pkey_holds(struct eng_qp *qp, const uint64_t word[3])
{
	uint16_t live = *qp->live_pkey;

	qp->tp->attr.pkey = live;
	return live == abi_record_pkey_of(word);
}

/** eng_bulk_at() - where in bulk the payload of @cell is; NULL: not inside */
static inline const uint8_t *eng_bulk_at(const struct abi_lane *memory,
					 const struct abi_cell *cell, uint32_t len)
{
	uint32_t bulk;

	memcpy(&bulk, cell->data + ABI_CELL_BULK, sizeof(bulk));
	if (bulk >= ABI_LANE_BULK || len > ABI_LANE_BULK - bulk)
		return NULL;
	return memory->bulk + bulk;
}

/** eng_small_payload() - the same of a small SEND, which may have it in its cell,
 *  behind @ext bytes */
static inline const uint8_t *eng_small_payload(const struct abi_lane *memory,
					       const struct abi_cell *cell, const uint64_t word[3],
					       uint32_t ext)
{
	uint32_t len = abi_record_bytes(word);

	if (unlikely(abi_record_has(word, ABI_RECORD_BULK)))
		return eng_bulk_at(memory, cell, len);
	return likely(len <= ABI_CELL_BYTES - ext) ? cell->data + ext : NULL;
}

/** eng_small_room() - how many may come for @known's QP, one behind the other, before
 *  anything but themselves has to be looked at? @at: where their completions go */
static inline unsigned eng_small_room(const struct engine *e, const struct eng_small_header *known,
				      struct ibv_wc **at)
{
	const struct eng_qp *qp = known->qp;
	unsigned room = MIN(eng_cq_room(qp->recv_cq, at), eng_rq_count(qp->recv_rq));

	if (unlikely(qp->recv_rq->limit || eng_spoils(e)))
		return 0;
	return likely(qp->recv_cq->armed == ENG_DISARMED) ? room : MIN(room, 1u);
}

/** eng_small_place() - where @bytes of a whole message go that has the receive @wr. *@mr:
 *  the region of the one before, or NULL. NULL: nowhere */
static inline void *eng_small_place(struct engine *e, uint32_t pd, const struct eng_rq_wr *wr,
				    uint32_t bytes, const struct eng_mr **mr)
{
	const struct tp_sge *sge = wr->sge;
	void *to;

	if (unlikely(sge->length_bytes < bytes))
		return NULL;
	if (likely(*mr && (*mr)->attr.key == sge->lkey))
		return eng_mr_at(*mr, sge->addr, bytes);
	to = eng_mem_recent(e, pd, sge->lkey, sge->addr, bytes, IBV_ACCESS_LOCAL_WRITE);
	*mr = to ? eng_mr_used(e, sge->lkey) : NULL;
	return to;
}

/** eng_small_tell() - fill @wc: the receive @wr has its message, of @bytes */
static inline void eng_small_tell(const struct eng_small_header *known, const struct eng_rq_wr *wr,
				  uint32_t bytes, struct ibv_wc *wc)
{
	*wc = known->wc;
	wc->wr_id = wr->wr_id;
	wc->byte_len = bytes;
}

#endif
