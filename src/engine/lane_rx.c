/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From a lane to the transport; SENDs of one record that follow one another take the fast
 * path into their receives or tagged buffers, in runs (fast.h), and so do ACKs. The sender is another program and may write
 * anything at any time: each header is read once, then checked: lengths
 * against the lane's bounds, the source address and the P_Key against what softibd
 * announced, the source QP against the one that the destination is connected to.
 */
#include <infiniband/tm_types.h>
#include <string.h>

#include "engine/fast.h"

#define LONG_BYTES 512 /* the sender soon needs the room of a longer payload again */

/* @n records have been processed, the last of which has @bytes */
static inline void consumed(struct eng_lane_in *lane, unsigned n, uint32_t bytes)
{
	abi_lane_consumed(&lane->rx, n, bytes > LONG_BYTES);
}

void eng_lane_add(struct engine *e, struct eng_lane_in *lane)
{
	eng_predict_none(&lane->datagram);
	lane->predicted = &lane->datagram;
	lane->id = ++e->lane_ids;
	eng_lane_listen(e, lane);
}

void eng_lane_del(struct engine *e, struct eng_lane_in *lane)
{
	struct eng_qp *qp;

	eng_lane_leave(e, lane);
	/* a record that passed the checks by this lane has not passed them by another */
	list_for_each_entry(qp, &e->all_qps, all_node)
		if (qp->predicted.lane == lane->id)
			eng_predict_none(&qp->predicted);
}

static void forget_in(struct list_head *lanes, struct eng_qp *qp)
{
	struct eng_lane_in *lane;

	list_for_each_entry(lane, lanes, node) {
		if (lane->datagram.qp == qp)
			eng_predict_none(&lane->datagram);
		if (lane->predicted == &qp->predicted)
			lane->predicted = &lane->datagram;
	}
}

void eng_lanes_forget(struct engine *e, struct eng_qp *qp)
{
	eng_predict_none(&qp->predicted);
	forget_in(&e->lanes, qp);
	forget_in(&e->quiet_lanes, qp);
}

/* Return: false: the record is invalid */
static bool decode(struct abi_lane_rx *rx, const struct abi_cell *cell,
		   const uint64_t word[3], const struct abi_record *record,
		   struct wire_packet *pkt)
{
	uint32_t flags = wire_opcodes[record->opcode].flags;
	const uint8_t *at;

	pkt->lrh = (struct wire_lrh){.sl = record->sl,
				     .lnh = WIRE_LNH_BTH,
				     .dlid = record->dlid_path_bits,
				     .slid = record->slid};
	pkt->bth = (struct wire_bth){.opcode = record->opcode,
				     .solicited = record->flags & ABI_RECORD_SOLICITED,
				     .pkey = record->pkey,
				     .dest_qpn = record->dest_qpn,
				     .ack_req = record->flags & ABI_RECORD_ACK_REQ,
				     .psn = {record->psn}};
	pkt->deth.src_qpn = record->src_qpn;
	at = eng_payload_at(rx, cell, word,
			    (uint32_t)eng_ext_decode(cell->data, flags, pkt));
	pkt->payload = at;
	pkt->payload_bytes = record->length_bytes;
	pkt->packets = record->packets;
	pkt->ip_checked = false;
	if (unlikely(!at || !wire_opcodes[record->opcode].name))
		return false;
	if (likely(!(record->flags & ABI_RECORD_GRH)))
		return true;
	if (record->length_bytes < WIRE_GRH_BYTES)
		return false;
	pkt->payload += wire_grh_decode(at, &pkt->grh);
	pkt->payload_bytes -= WIRE_GRH_BYTES;
	pkt->lrh.lnh = WIRE_LNH_GRH;
	return true;
}

/* A lane's sender is not trusted: a record whose source address or P_Key is not the one that
 * softibd granted the lane for is dropped. Records that receive_predicted() takes have the same
 * header as one that passed this check. */
static bool source_is_valid(const struct eng_lane_in *lane, struct eng_qp *qp,
		     const struct abi_record *record)
{
	wire_addr_t source = wire_addr_of_lid(record->slid);

	if (!wire_addr_is_of(source, lane->source) || record->pkey != lane->pkey)
		return false;
	/* softibd vouches for the address and the program, which may claim any QPN: it harms only
	 * its own QPs. */
	if (tp_is_connected(qp->tp) && (record->src_qpn != tp_qp_attr(qp->tp)->dest_qpn ||
					(qp->peer_owner && lane->owner != qp->peer_owner)))
		return false;
	return eng_is_from_peer(qp, lane->source, source, record->pkey,
				!(record->flags & ABI_RECORD_UNMIGRATED));
}

/* Return: the QP that may have the record; NULL: none, and it is counted */
static struct eng_qp *admit(struct engine *e, const struct eng_lane_in *lane,
			    const struct abi_record *record)
{
	struct eng_qp *qp = record->dest_qpn < 2 ? NULL : eng_qp_find(e, record->dest_qpn, 0);

	if (unlikely(!qp))
		e->stats.rx_no_qp++;
	else if (unlikely(!source_is_valid(lane, qp, record)))
		e->stats.rx_malformed++;
	else if (unlikely(!eng_pkey_passes(qp, record->pkey)))
		e->stats.rx_bad_pkey++;
	else
		return qp;
	return NULL;
}

/* The words of a record, passed by value to functions that are not inlined: as no address of
 * them is taken, they stay in registers. */
struct words {
	uint64_t of[3];
};

static inline struct words copy_of(const uint64_t word[3])
{
	return (struct words){{word[0], word[1], word[2]}};
}

static bool is_rnr_nak(const struct wire_packet *pkt)
{
	return wire_opcodes[pkt->bth.opcode].flags & WIRE_HAS_AETH &&
	       (pkt->aeth.syndrome & WIRE_AETH_KIND_MASK) == WIRE_AETH_RNR_NAK;
}

/* Does the Q_Key differ, as softibd would have found (src/hca/port.c) before dropping the
 * packet? A QP that does not receive judges nothing. */
static bool has_wrong_qkey(const struct eng_qp *qp, const struct wire_packet *pkt)
{
	return tp_is_datagram(qp->tp) &&
	       wire_opcodes[pkt->bth.opcode].flags & WIRE_HAS_DETH &&
	       tp_state_receives(tp_qp_state(qp->tp)) &&
	       !tp_qkey_passes(qp->init.qpn, tp_qp_attr(qp->tp)->qkey, pkt->deth.qkey);
}

static void to_transport(struct engine *e, struct eng_lane_in *lane, struct eng_qp *qp,
			 const struct wire_packet *pkt)
{
	if (unlikely(has_wrong_qkey(qp, pkt))) {
		if (e->cfg.link_ops->bad_qkey)
			e->cfg.link_ops->bad_qkey(e->cfg.link, lane, pkt);
		return;
	}
	/* A short wait begins, so the clock has to be read: lanes are otherwise received with an
	 * older time. */
	if (unlikely(is_rnr_nak(pkt)))
		e->now = e->cfg.now(e->cfg.ctx);
	eng_receive(qp, pkt);
}

/* How are records with @opcode to @qp predicted? A QP has one prediction: where SENDs come, ACKs are
 * piggybacked on them, or few. */
static enum eng_predicted kind_of(const struct eng_qp *qp, uint8_t opcode)
{
	bool sends_only = qp->predicted.kind == ENG_ACK || qp->predicted.route == UINT64_MAX;

	if ((opcode & WIRE_TRANSPORT_MASK) != tp_transport(qp->tp) || !tp_may_be_fast(qp->tp))
		return ENG_UNPREDICTED;
	if (eng_has_tags(qp))
		return opcode == (WIRE_RC | WIRE_SEND_ONLY) ? ENG_TAGGED_MESSAGE : ENG_UNPREDICTED;
	switch (opcode) {
	case WIRE_RC | WIRE_SEND_ONLY:
		return ENG_MESSAGE;
	case WIRE_RC | WIRE_SEND_MIDDLE:
		return ENG_MIDDLE;
	case WIRE_UD | WIRE_SEND_ONLY:
		return ENG_DATAGRAM;
	case WIRE_XRC | WIRE_SEND_ONLY:
		return eng_is_xrc_target(qp) ? ENG_XRC_MESSAGE : ENG_UNPREDICTED;
	case WIRE_RC | WIRE_ACKNOWLEDGE:
	case WIRE_XRC | WIRE_ACKNOWLEDGE:
		return sends_only ? ENG_ACK : ENG_UNPREDICTED;
	default:
		return ENG_UNPREDICTED;
	}
}

/* The record has passed all checks. Predict the next one if this is a whole SEND, a record from the
 * middle of one, in which all packets are full (9.7.4.1.6), or an ACK, and has the full member's
 * P_Key that @qp itself has. eng_pkey_passes() knows which other P_Keys match (10.9.3). */
static void predict(struct eng_lane_in *lane, struct eng_qp *qp,
		    const struct abi_record *r, const struct wire_packet *pkt,
		    const uint64_t word[3])
{
	enum eng_predicted kind = kind_of(qp, r->opcode);
	bool ud = kind == ENG_DATAGRAM, ack = kind == ENG_ACK;
	uint8_t flags = ud || ack || kind == ENG_MIDDLE ? 0 : ABI_RECORD_ACK_REQ;
	uint32_t flags_of = wire_opcodes[r->opcode].flags, full = r->packets * tp_mtu(qp->tp);
	/* an empty message is left to the general path: its receive need not have a piece */
	uint32_t least = MAX(tp_least_payload(qp->tp, r->packets, flags_of), 1u);
	struct tp_wc wc;

	if (qp->engine->cfg.general_only || kind == ENG_UNPREDICTED || !r->packets ||
	    ((ud || ack) && r->packets > 1) ||
	    (r->flags & (ABI_RECORD_ACK_REQ | ABI_RECORD_GRH)) != flags ||
	    r->pkey != tp_pkey(qp->tp) || !wire_pkeys_match(r->pkey, r->pkey))
		return;
	tp_recv_wc(qp->tp, pkt, flags_of, 0, &wc);
	if (kind == ENG_TAGGED_MESSAGE)
		eng_tag_wc(&wc);
	lane->predicted = ud ? &lane->datagram : &qp->predicted;
	*lane->predicted = (struct eng_prediction){
		.qp = qp,
		.lane = lane->id,
		.target = abi_record_target(word),
		.least_bytes = ack ? 0 : least,
		.span_bytes = ack ? 1 : full - least + 1,
		.packets = r->packets,
		.kind = kind,
		.source = abi_record_source(word, ENG_RECORD_VARIES),
		.route = abi_record_route(word),
	};
	eng_wc_received(qp, &wc, &lane->predicted->wc);
}

/* Receive any record by the general path. @known: the QP for which this header was predicted,
 * whose piggybacked ACK was processed already; NULL: everything is to be checked. */
noinline static void receive(struct engine *e, struct eng_lane_in *lane, struct eng_qp *known,
			     const struct abi_cell *cell, struct words copy)
{
	struct eng_qp *qp = known;
	struct abi_record record;
	struct wire_packet pkt;

	abi_record_unpack(copy.of, &record);
	if (!known)
		qp = admit(e, lane, &record);
	if (unlikely(qp && !decode(&lane->rx, cell, copy.of, &record, &pkt))) {
		e->stats.rx_malformed++;
	} else if (likely(qp)) {
		if (!known)
			predict(lane, qp, &record, &pkt, copy.of);
		if (!known && record.flags & ABI_RECORD_ACK)
			tp_qp_acked(qp->tp, psn(record.ack_psn), e->now);
		to_transport(e, lane, qp, &pkt);
		qp->received_turn = e->turn;
		eng_qp_touch(qp);
	}
	consumed(lane, 1, record.length_bytes);
}

/* --- the fast path --- */

/* How many consecutive records may be received into @rq, with completions in @cq, before anything
 * else has to be checked? @rq: NULL: they go into tagged buffers; @at: where the completions go */
static inline unsigned run_room(const struct engine *e, const struct eng_rq *rq,
				const struct eng_cq *cq, struct ibv_wc **at)
{
	unsigned room = eng_cq_room(cq, at);

	if (rq)
		room = likely(!rq->limit) ? MIN(room, eng_rq_count(rq)) : 0;
	if (unlikely(eng_spoils(e)))
		return 0;
	return likely(cq->armed == ENG_DISARMED) ? room : MIN(room, 1u);
}

/* Read the extended header of a record in @cell: a Q_Key, or an XRCETH. Return: in the byte order
 * that a record has it in */
static inline uint32_t ext_of(const struct abi_cell *cell)
{
	uint32_t ext;

	memcpy(&ext, cell->data, sizeof(ext));
	return ext;
}

/* Store a whole message into the receive @wr, and fill its completion. Return: false: a check
 * failed, and nothing has changed. */
__attribute__((always_inline)) static inline bool
receive_single(struct engine *e, struct eng_lane_in *lane,
	       const struct eng_prediction *p, const struct abi_cell *cell,
	       const uint64_t word[3], const struct eng_rq *rq, uint32_t position,
	       const struct eng_mr **mr, struct ibv_wc *wc, const enum eng_predicted kind)
{
	const bool ud = kind == ENG_DATAGRAM, tagged = kind == ENG_TAGGED_MESSAGE;
	const uint32_t ext_bytes = ud			   ? ABI_RECORD_QKEY_BYTES
				   : kind == ENG_XRC_MESSAGE ? WIRE_XRCETH_BYTES
							   : 0,
		       head = ud ? WIRE_GRH_BYTES : 0,
		       skip = tagged ? sizeof(struct ibv_tmh) : 0;
	const uint8_t *payload = eng_payload_at(&lane->rx, cell, word, ext_bytes);
	const struct eng_rq_wr *wr = tagged ? NULL : eng_rq_at(rq, position);
	uint32_t len = abi_record_bytes(word);
	const struct eng_buffer *buffer = NULL;
	struct ibv_tmh header;
	uint8_t *to;

	if (unlikely(!payload || len - p->least_bytes >= p->span_bytes ||
		     (ud && !tp_fast_takes(p->qp->tp, ext_of(cell)))))
		return false;
	if (tagged && unlikely(!(buffer = eng_tag_match(p->qp, payload, len, &header))))
		return false;
	payload += skip;
	len -= skip;
	to = eng_receive_place(e, rq->pd, tagged ? buffer->sge : wr->sge, 0, head + len, mr);
	if (unlikely(!to))
		return false;
	/* 11.4.1.2: without a GRH the contents of its place are undefined; here zero, as on the
	 * general path */
	if (ud)
		guard_store(to, (const uint8_t[WIRE_GRH_BYTES]){0}, WIRE_GRH_BYTES);
	if (unlikely(len > LONG_BYTES))
		eng_put(e, to + head, payload, len, 0);
	else
		guard_store(to + head, payload, len);
	*wc = p->wc;
	wc->wr_id = tagged ? buffer->wr_id : wr->wr_id;
	wc->byte_len = head + len;
	if (tagged)
		eng_tag_matched(p->qp, buffer, &header, wc);
	return true;
}

/*
 * Receive a run: consecutive records for one QP, each of which is a whole SEND with the predicted
 * header. The checks that all of them have in common are made once, and the state of the queues is
 * written once, at the end. A record with a long payload ends the run, because its sender soon needs
 * the room again. @cell, @word0 to @word2: of the first record, whose P_Key was checked
 *
 * Return: the number of records received; 0: none, and nothing has changed
 */
__attribute__((always_inline)) static inline unsigned
receive_run(struct eng_lane_in *lane, const struct abi_cell *cell, uint64_t word0,
	    uint64_t word1, uint64_t word2, unsigned most, const enum eng_predicted kind)
{
	const bool ud = kind == ENG_DATAGRAM, xrc = kind == ENG_XRC_MESSAGE,
		   tagged = kind == ENG_TAGGED_MESSAGE;
	const struct eng_prediction *p = lane->predicted;
	uint64_t word[3] = {word0, word1, word2};
	struct eng_qp *qp = p->qp;
	struct engine *e = qp->engine;
	psn_t next = tp_expected_psn(qp->tp);
	uint32_t last = 0, name = xrc ? ext_of(cell) : 0;
	struct eng_srq *srq = xrc ? eng_xrc_srq(qp, be32toh(name)) : NULL;
	struct eng_rq *rq = srq ? &srq->rq : qp->recv_rq;
	struct eng_cq *cq = srq ? srq->cq : qp->recv_cq;
	const struct eng_mr *mr = NULL;
	struct ibv_wc *wc;
	unsigned n = 0;

	if (xrc && unlikely(!srq))
		return 0;
	most = likely(tp_fast_expects(qp->tp, ud)) ?
		       MIN(run_room(e, tagged ? NULL : rq, cq, &wc), most) :
		       0;
	if (xrc && eng_xrc_suffices(qp, cq))
		most = MIN(most, 1u);
	if (unlikely(!most))
		return 0;
	while (ud ? abi_record_target(word) == p->target
		  : abi_record_is(word, p->target, next.v)) {
		if (unlikely(!receive_single(e, lane, p, cell, word, rq, rq->head + n, &mr,
					     &wc[n], kind)))
			break;
		last = abi_record_bytes(word);
		next = psn_add(next, p->packets);
		if (++n == most || unlikely(last > LONG_BYTES))
			break;
		cell = abi_lane_look(&lane->rx, lane->rx.head + n, word);
		/* a record with an ACK, or for another SRQ, begins a run of its own; packets go
		 * first, as in receive_some() */
		if (!cell ||
		    unlikely(!eng_is_predicted(p, word,
					       ENG_RECORD_VARIES &
						       ~(unsigned)ABI_RECORD_ACK) ||
			     (xrc && ext_of(cell) != name) || eng_packets_waiting(e)))
			break;
	}
	if (unlikely(!n))
		return 0;
	if (!tagged)
		rq->head += n;
	if (xrc)
		eng_xrc_receive_into(qp, srq);
	if (ud)
		tp_fast_received_datagrams(qp->tp, n);
	else
		tp_fast_received(qp->tp, n, n * p->packets);
	eng_cq_filled(cq, n, abi_record_has(word, ABI_RECORD_SOLICITED));
	if (xrc)
		e->suffices = eng_xrc_suffices(qp, cq);
	if (tagged)
		eng_tag_post(qp);
	consumed(lane, n, last);
	return n;
}

noinline static unsigned receive_messages(struct eng_lane_in *lane,
					  const struct abi_cell *cell, uint64_t word0,
					  uint64_t word1, uint64_t word2, unsigned most)
{
	return receive_run(lane, cell, word0, word1, word2, most, ENG_MESSAGE);
}

noinline static unsigned receive_datagrams(struct eng_lane_in *lane,
					   const struct abi_cell *cell, uint64_t word0,
					   uint64_t word1, uint64_t word2, unsigned most)
{
	return receive_run(lane, cell, word0, word1, word2, most, ENG_DATAGRAM);
}

noinline static unsigned receive_tagged_messages(struct eng_lane_in *lane,
						 const struct abi_cell *cell, uint64_t word0,
						 uint64_t word1, uint64_t word2, unsigned most)
{
	return receive_run(lane, cell, word0, word1, word2, most, ENG_TAGGED_MESSAGE);
}

noinline static unsigned receive_xrc_messages(struct eng_lane_in *lane,
					      const struct abi_cell *cell, uint64_t word0,
					      uint64_t word1, uint64_t word2, unsigned most)
{
	return receive_run(lane, cell, word0, word1, word2, most, ENG_XRC_MESSAGE);
}

/* Receive a predicted record from the middle of a SEND, if its payload continues the one before
 * it in one piece of memory. Return: false: a check failed, and nothing has changed. */
noinline static bool receive_middle(struct eng_lane_in *lane, const struct abi_cell *cell,
				    struct words copy)
{
	const struct eng_prediction *p = lane->predicted;
	const uint8_t *payload = eng_payload_at(&lane->rx, cell, copy.of, 0);
	uint32_t len = abi_record_bytes(copy.of), offset;
	struct engine *e = p->qp->engine;
	const struct eng_mr *mr = NULL;
	const struct tp_sge *piece;
	void *to;

	if (!payload || len != p->least_bytes ||
	    !tp_fast_middle(p->qp->tp, abi_record_psn(copy.of), &piece, &offset))
		return false;
	to = eng_receive_place(e, p->qp->recv_rq->pd, piece, offset, len, &mr);
	if (!to)
		return false;
	eng_put(e, to, payload, len, offset);
	tp_fast_received_middle(p->qp->tp, len, p->packets);
	consumed(lane, 1, len);
	return true;
}

/* Receive a predicted ACK. Return: false: a check failed, and nothing has changed. */
noinline static bool receive_ack(struct eng_lane_in *lane, const struct abi_cell *cell,
				 struct words copy)
{
	const struct eng_prediction *p = lane->predicted;
	uint32_t aeth = be32toh(ext_of(cell));

	if (abi_record_bytes(copy.of) - p->least_bytes >= p->span_bytes ||
	    abi_record_has(copy.of, ABI_RECORD_BULK) ||
	    !tp_fast_acked(p->qp->tp, psn(abi_record_psn(copy.of)), wire_aeth_syndrome(aeth),
			   p->qp->engine->now))
		return false;
	consumed(lane, 1, 0);
	return true;
}

/* Find the prediction that matches a record, which need not be the one of the last record.
 * Return: the prediction, which is @lane's from now on; NULL: none */
static inline struct eng_prediction *
find_prediction(const struct engine *e, struct eng_lane_in *lane, const uint64_t word[3])
{
	struct eng_prediction *p = lane->predicted;
	struct eng_qp *qp;

	if (eng_is_predicted(p, word, ENG_RECORD_VARIES) &&
	    p->target == abi_record_target(word))
		return p;
	p = &lane->datagram;
	if (!eng_is_predicted(p, word, ENG_RECORD_VARIES) ||
	    p->target != abi_record_target(word)) {
		qp = eng_table_get(&e->qps, abi_record_dest_qpn(word));
		if (!qp)
			return NULL;
		p = &qp->predicted;
		if (p->lane != lane->id ||
		    !eng_is_predicted(p, word, ENG_RECORD_VARIES) ||
		    p->target != abi_record_target(word))
			return NULL;
	}
	lane->predicted = p;
	return p;
}

/* Receive consecutive predicted records, the first of which may carry an ACK. Return: how many
 * were taken; 0: the first is not as predicted */
static inline unsigned receive_predicted(struct engine *e, struct eng_lane_in *lane,
					 const struct abi_cell *cell,
					 const uint64_t word[3], unsigned most)
{
	const struct eng_prediction *p = find_prediction(e, lane, word);
	struct eng_qp *qp;
	uint16_t pkey;
	unsigned n;

	if (unlikely(!p))
		return 0;
	qp = p->qp;
	/* does the QP still have the P_Key of this record? */
	pkey = *qp->live_pkey;
	tp_pkey_refresh(qp->tp, pkey);
	if (unlikely(pkey != abi_record_pkey_of(word)))
		return 0;
	if (abi_record_has(word, ABI_RECORD_ACK))
		tp_qp_acked(qp->tp, psn(abi_record_ack_psn(word)), e->now);
	if (likely(p->kind == ENG_MESSAGE))
		n = receive_messages(lane, cell, word[0], word[1], word[2], most);
	else if (p->kind == ENG_DATAGRAM)
		n = receive_datagrams(lane, cell, word[0], word[1], word[2], most);
	else if (p->kind == ENG_XRC_MESSAGE)
		n = receive_xrc_messages(lane, cell, word[0], word[1], word[2], most);
	else if (p->kind == ENG_TAGGED_MESSAGE)
		n = receive_tagged_messages(lane, cell, word[0], word[1], word[2], most);
	else if (p->kind == ENG_MIDDLE)
		n = receive_middle(lane, cell, copy_of(word));
	else
		n = receive_ack(lane, cell, copy_of(word));
	if (unlikely(!n)) {
		receive(e, lane, qp, cell, copy_of(word));
		return 1;
	}
	qp->received_turn = e->turn;
	/* An acknowledgement may have allowed the QP to send more, or ended a wait; it never
	 * begins one. */
	if (likely(eng_ack_may_wait(qp)))
		eng_qp_owes(e, qp);
	else
		eng_qp_touch(qp);
	return n;
}

static unsigned receive_some(struct engine *e, struct eng_lane_in *lane, unsigned most)
{
	const struct abi_cell *cell;
	unsigned n = 0, taken;
	uint64_t word[3];

	e->suffices = false;
	while (n < most && !e->suffices && (cell = abi_lane_next(&lane->rx, word))) {
		/* what came by softibd was sent before this (abi/lane.h) */
		if (unlikely(eng_packets_waiting(e)))
			eng_rx_packets(e, UINT32_MAX);
		/* the line of the next record arrives while a long payload is copied */
		if (unlikely(abi_record_bytes(word) > LONG_BYTES))
			__builtin_prefetch(abi_lane_cell(lane->rx.memory, lane->rx.head + 1));
		taken = receive_predicted(e, lane, cell, word, most - n);
		if (unlikely(!taken)) {
			receive(e, lane, NULL, cell, copy_of(word));
			taken = 1;
		}
		n += taken;
	}
	if (unlikely(n == most) && abi_lane_next(&lane->rx, word))
		e->more = true;
	abi_lane_release(&lane->rx);
	return n;
}

unsigned eng_lanes_rx(struct engine *e, unsigned most)
{
	struct eng_lane_in *lane;
	unsigned n = 0;

	e->more = false;
	e->turn++;
	list_for_each_entry(lane, &e->lanes, node)
		n += receive_some(e, lane, most);
	return n;
}
