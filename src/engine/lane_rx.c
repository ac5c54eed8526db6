/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From a lane to the transport; SENDs of one record that follow one another straight into
 * their receives, in runs (small.h). Its sender is another program and may write
 * anything at any time: each header is read once, then checked: lengths
 * against the lane's bounds, the source LID and the P_Key against what softibd
 * announced, the source QP against the one that the destination is connected to.
 */
#include <string.h>

#include "engine/datagram.h"

#define LONG_BYTES 512 /* the room of longer payloads is wanted back soon */

/* done with @n records, the last of which has @bytes. Who takes records says so */
static inline void consumed(struct eng_lane_in *lane, unsigned n, uint32_t bytes)
{
	abi_lane_consumed(&lane->rx, n, bytes > LONG_BYTES);
}

void eng_lane_add(struct engine *e, struct eng_lane_in *lane)
{
	eng_small_forget(&lane->datagram);
	lane->known = &lane->datagram;
	lane->id = ++e->lane_ids;
	list_add_tail(&lane->node, &e->lanes);
}

void eng_lane_del(struct engine *e, struct eng_lane_in *lane)
{
	struct eng_qp *qp;

	list_del(&lane->node);
	/* what passed by this one does not by another */
	list_for_each_entry(qp, &e->all_qps, all_node)
		if (qp->known.lane == lane->id)
			eng_small_forget(&qp->known);
}

void eng_lanes_forget(struct engine *e, struct eng_qp *qp)
{
	struct eng_lane_in *lane;

	eng_small_forget(&qp->known);
	list_for_each_entry(lane, &e->lanes, node) {
		if (lane->datagram.qp == qp)
			eng_small_forget(&lane->datagram);
		if (lane->known == &qp->known)
			lane->known = &lane->datagram;
	}
}

/* Return: where the payload is; NULL: not inside the lane */
static const uint8_t *payload_at(const struct abi_lane *memory, const struct abi_cell *cell,
				 const uint8_t *behind, const struct abi_record *record)
{
	if (record->flags & ABI_RECORD_BULK)
		return eng_bulk_at(memory, cell, record->length_bytes);
	return record->length_bytes <= (size_t)(cell->data + ABI_CELL_BYTES - behind) ? behind : NULL;
}

/* Return: false when the record makes no sense */
static bool decode(const struct abi_lane *memory, const struct abi_cell *cell,
		   const struct abi_record *record, struct wire_packet *pkt)
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
	at = payload_at(memory, cell, cell->data + eng_ext_decode(cell->data, flags, pkt), record);
	pkt->payload = at;
	pkt->payload_bytes = record->length_bytes;
	pkt->packets = record->packets;
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

/* what a hostile sender may not say: the source and the partition are what
 * softibd granted. What receive_known() takes is as one that passed here */
static bool is_heard(const struct eng_lane_in *lane, const struct eng_qp *qp,
		     const struct abi_record *record)
{
	const struct tp_attr *attr;

	if ((record->slid & lane->slid_mask) != lane->slid || record->pkey != lane->pkey)
		return false;
	if (qp->init.type == IBV_QPT_UD)
		return true;
	/* a connected QP hears its peer alone: the LID is softibd's word, the QP that of
	 * one who has the LID. By its LMC the peer may have several */
	attr = tp_qp_attr(qp->tp);
	return record->src_qpn == attr->dest_qpn && (attr->av.dlid & lane->slid_mask) == lane->slid;
}

/* Return: the QP that may have the record; NULL: none, and it is counted */
static struct eng_qp *admit(struct engine *e, const struct eng_lane_in *lane,
			    const struct abi_record *record)
{
	struct eng_qp *qp = record->dest_qpn < 2 ? NULL : eng_qp_find(e, record->dest_qpn, 0);

	if (unlikely(!qp))
		e->stats.rx_no_qp++;
	else if (unlikely(!is_heard(lane, qp, record)))
		e->stats.rx_malformed++;
	else if (unlikely(!eng_pkey_passes(qp, record->pkey)))
		e->stats.rx_bad_pkey++;
	else
		return qp;
	return NULL;
}

/* a record's words for who is not inlined: where they need no address they stay in
 * registers */
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

/* As softibd would have found (src/hca/port.c), and dropped it; a QP that does not
 * receive judges nothing */
static bool has_wrong_qkey(const struct eng_qp *qp, const struct wire_packet *pkt)
{
	return qp->init.type == IBV_QPT_UD && wire_opcodes[pkt->bth.opcode].flags & WIRE_HAS_DETH &&
	       (qp->tp->state == IBV_QPS_RTR || qp->tp->state == IBV_QPS_RTS) &&
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
	/* a wait that is short begins, and lanes are read by an old clock */
	if (unlikely(is_rnr_nak(pkt)))
		e->now = e->cfg.now(e->cfg.ctx);
	tp_qp_receive(qp->tp, pkt, e->now);
}

/* Any record. @known: the QP of one whose like has passed, and whose acknowledgement
 * is taken; NULL: all of it is to be looked at */
noinline static void receive(struct engine *e, struct eng_lane_in *lane, struct eng_qp *known,
			     const struct abi_cell *cell, struct words copy)
{
	struct eng_qp *qp = known;
	struct abi_record record;
	struct wire_packet pkt;

	abi_record_unpack(copy.of, &record);
	if (!known)
		qp = admit(e, lane, &record);
	if (unlikely(qp && !decode(lane->rx.memory, cell, &record, &pkt))) {
		e->stats.rx_malformed++;
	} else if (likely(qp)) {
		if (!known)
			eng_small_note(lane, qp, &record, &pkt, copy.of);
		if (!known && record.flags & ABI_RECORD_ACK)
			tp_qp_acked(qp->tp, psn(record.ack_psn), e->now);
		to_transport(e, lane, qp, &pkt);
		qp->heard = e->turn;
		eng_qp_touch(qp);
	}
	consumed(lane, 1, record.length_bytes);
}

/* is this, which came behind one of a run, of that run but for its PSN? It has no ACK */
static inline bool is_alike(const struct eng_small_header *known, const uint64_t word[3])
{
	return known->way == abi_record_route(word) &&
	       known->from == abi_record_source(word, ENG_SMALL_FREE & ~(unsigned)ABI_RECORD_ACK);
}

/*
 * SENDs of one record whose like has passed, as many as come one behind the other for one
 * QP, into the receives that are next: what they have in common is looked at once, and what
 * each of them changes is written at the end. A long one, whose room is wanted back, is the
 * last. @cell and the three words: of the first; its P_Key holds
 *
 * Return: how many were taken; 0: not even the first, nothing changed
 */
noinline static unsigned receive_run(struct eng_lane_in *lane, const struct abi_cell *cell,
				     uint64_t word0, uint64_t word1, uint64_t word2,
				     unsigned most)
{
	const struct eng_small_header *known = lane->known;
	uint64_t word[3] = {word0, word1, word2};
	struct eng_qp *qp = known->qp;
	struct engine *e = qp->engine;
	psn_t next = qp->tp->resp.epsn;
	struct eng_rq *rq = qp->recv_rq;
	const struct eng_mr *mr = NULL;
	uint32_t len, last = 0;
	struct ibv_wc *wc;
	unsigned n = 0;

	most = likely(tp_small_expects(qp->tp)) ? MIN(eng_small_room(e, known, &wc), most) : 0;
	while (n < most && abi_record_is(word, known->to, next.v)) {
		const uint8_t *payload = eng_small_payload(lane->rx.memory, cell, word, 0);
		const struct eng_rq_wr *wr = eng_rq_at(rq, rq->head + n);
		void *to;

		len = abi_record_bytes(word);
		if (unlikely(!payload || len - known->least_bytes >= known->span_bytes))
			break;
		to = eng_small_place(e, rq->pd, wr, len, &mr);
		if (unlikely(!to))
			break;
		last = len;
		eng_small_tell(known, wr, len, &wc[n]);
		next = psn_add(next, known->packets);
		n++;
		if (unlikely(len > LONG_BYTES)) {
			tp_put(to, payload, len, 0);
			break;
		}
		copy_few(to, payload, len);
		if (n == most)
			break;
		cell = abi_lane_look(&lane->rx, lane->rx.head + n, word);
		/* packets go first, as in receive_some() */
		if (!cell || unlikely(!is_alike(known, word) || eng_packets_waiting(e)))
			break;
	}
	if (unlikely(!n))
		return 0;
	rq->head += n;
	tp_small_received(qp->tp, n, n * known->packets);
	eng_cq_filled(qp->recv_cq, n, abi_record_has(word, ABI_RECORD_SOLICITED));
	consumed(lane, n, last);
	return n;
}

/* From the middle of a SEND of several records, the like of which has passed: behind what came
 * before it, in one piece. Return: false: not all is as it should be, nothing changed */
noinline static bool receive_middle(struct eng_lane_in *lane, const struct abi_cell *cell,
				    struct words copy)
{
	const struct eng_small_header *known = lane->known;
	const uint8_t *payload = eng_small_payload(lane->rx.memory, cell, copy.of, 0);
	struct engine *e = known->qp->engine;
	struct tp_qp *tp = known->qp->tp;
	const struct tp_cursor *at = &tp->resp.cursor;
	const struct tp_sge *sge = &tp->resp.recv.sge[at->sge];
	uint32_t len = abi_record_bytes(copy.of);
	void *to;

	if (!payload || len != known->least_bytes || !tp_small_goes_on(tp) ||
	    abi_record_psn(copy.of) != tp->resp.epsn.v || at->sge >= tp->resp.recv.num_sge ||
	    len > sge->length_bytes - at->offset)
		return false;
	to = eng_mem_recent(e, known->qp->recv_rq->pd, sge->lkey, sge->addr + at->offset, len,
			    IBV_ACCESS_LOCAL_WRITE);
	if (!to)
		return false;
	tp_put(to, payload, len, at->offset);
	tp_small_went_on(tp, len, known->packets);
	consumed(lane, 1, len);
	return true;
}

/* SENDs whose like has passed, the first of which may bring an ACK. Return: how many were
 * taken; 0: its like has not passed, or this one is not as it should be */
static inline unsigned receive_known(struct engine *e, struct eng_lane_in *lane,
				     const struct abi_cell *cell, const uint64_t word[3],
				     unsigned most)
{
	bool touch = false;
	struct eng_qp *qp;
	unsigned n;

	if (!eng_small_is_known(lane->known, word) && !eng_small_find(e, lane, word))
		return 0;
	qp = lane->known->qp;
	if (unlikely(!eng_small_pkey_holds(qp, word)))
		return 0;
	if (qp->init.type == IBV_QPT_UD) {
		if (!eng_datagram_receive(e, lane, cell, word))
			return 0;
		consumed(lane, 1, abi_record_bytes(word));
		return 1;
	}
	if (abi_record_has(word, ABI_RECORD_ACK) &&
	    !tp_small_acked(qp->tp, psn(abi_record_ack_psn(word)))) {
		tp_qp_acked(qp->tp, psn(abi_record_ack_psn(word)), e->now);
		touch = true; /* more may be sent now */
	}
	if (unlikely(lane->known->is_middle))
		n = receive_middle(lane, cell, copy_of(word));
	else
		n = receive_run(lane, cell, word[0], word[1], word[2], most);
	if (unlikely(!n)) {
		receive(e, lane, qp, cell, copy_of(word));
		return 1;
	}
	qp->heard = e->turn;
	if (likely(!touch && tp_only_owes(qp->tp)))
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

	while (n < most && (cell = abi_lane_next(&lane->rx, word))) {
		/* what came by softibd was sent before this (abi/lane.h) */
		if (unlikely(eng_packets_waiting(e)))
			eng_rx_packets(e, UINT32_MAX);
		/* a long copy gives the next record's line the time to come */
		if (unlikely(abi_record_bytes(word) > LONG_BYTES))
			__builtin_prefetch(abi_lane_cell(lane->rx.memory, lane->rx.head + 1));
		taken = receive_known(e, lane, cell, word, most - n);
		if (unlikely(!taken)) {
			receive(e, lane, NULL, cell, copy_of(word));
			taken = 1;
		}
		n += taken;
	}
	e->more |= n == most && abi_lane_next(&lane->rx, word);
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
