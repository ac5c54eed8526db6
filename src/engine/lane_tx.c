/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From the transport into a lane (src/abi/lane.h): the QP knows the lane of
 * its flow, a segment's headers go into a cell as they are, its payload behind
 * them or into bulk, one copy. A segment for which the lane has no room is not
 * asked of the transport: nothing waits here.
 */
#include <string.h>

#include "engine/small.h"

/* extended headers with which a payload still fits in its cell: RETH, immediate */
#define EXT_MAX 20
#define SMALL_BYTES (ABI_CELL_BYTES - EXT_MAX)
#define SMALL_FLAGS (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)
/* A lane that carried so much may have a wide ring; no more than these, since what
 * rings take of the shared cache, others lack. */
#define WIDE_AFTER_BYTES (8u << 20)
#define WIDE_LANES 16

void eng_lane_out_init(struct eng_lane_out *lane, struct abi_lane *memory, bool no_fence)
{
	memset(lane, 0, sizeof(*lane));
	abi_lane_tx_init(&lane->tx, memory, no_fence);
	INIT_LIST_HEAD(&lane->dirty_node);
}

void eng_lane_out_gone(struct eng_lane_out *lane)
{
	list_del(&lane->dirty_node);
	if (lane->wide)
		--*lane->wide;
	lane->wide = NULL;
}

/* --- the way --- */

static bool same_path(const struct eng_path *a, const struct eng_path *b)
{
	return a->dest_qpn == b->dest_qpn && a->dlid == b->dlid && a->pkey == b->pkey &&
	       a->sl == b->sl && a->port_num == b->port_num;
}

/* what eng_fill_route() would say for each packet of the flow, and the record
 * of a small SEND but for what each has of its own: 0 here */
static void note_headers(struct eng_qp *qp, const struct tp_av *av)
{
	uint32_t bytes = WIRE_LRH_BYTES + WIRE_BTH_BYTES + WIRE_ICRC_BYTES;
	uint32_t most = qp->init.max_send_sge ? tp_qp_attr(qp->tp)->mtu_bytes : 0;
	bool ud = qp->init.type == IBV_QPT_UD;
	struct abi_record small;
	struct wire_packet pkt;

	eng_fill_route(qp, av, &pkt);
	bytes += (av->is_global ? WIRE_GRH_BYTES : 0) + (ud ? WIRE_DETH_BYTES : 0);
	qp->flow_dwords = (uint8_t)(bytes / 4);
	small = (struct abi_record){
		.opcode = (ud ? WIRE_UD : WIRE_RC) | WIRE_SEND_ONLY,
		.flags = ud ? 0 : ABI_RECORD_ACK_REQ,
		.sl = pkt.lrh.sl,
		.dlid_path_bits = pkt.lrh.dlid & 0x7f,
		.slid = pkt.lrh.slid,
		.packets = 1,
		.dest_qpn = qp->path.dest_qpn,
		.src_qpn = qp->init.qpn,
	};
	abi_record_pack(&small, qp->small_word);
	qp->small_bytes[0] = qp->engine->cfg.general_only ? 0 : MIN(most, qp->flow->mtu_bytes);
	qp->small_bytes[1] = MIN(qp->init.max_inline, qp->small_bytes[0]);
	for (unsigned i = 0; i < ARRAY_SIZE(qp->word_bytes); i++)
		qp->word_bytes[i] = ud ? 0 : MIN(qp->small_bytes[i], sizeof(uint64_t));
	qp->small_path_bits = av->src_path_bits;
}

enum eng_way eng_lane_way(struct engine *e, struct eng_qp *qp)
{
	struct eng_path path;
	const struct tp_av *av;
	struct eng_flow *flow;
	enum eng_way way;
	uint32_t bytes;

	if (likely(qp->init.type != IBV_QPT_UD && eng_flow_holds(e, qp)))
		return ENG_BY_LANE;
	if (!e->cfg.link_ops->choose || qp->init.qpn < 2)
		return ENG_BY_PACKETS;
	av = tp_qp_destination(qp->tp, &path.dest_qpn);
	path.dlid = av->dlid;
	path.sl = av->sl;
	path.port_num = av->port_num;
	path.pkey = tp_qp_attr(qp->tp)->pkey;
	bytes = tp_qp_next_bytes(qp->tp);
	if (eng_flow_holds(e, qp) && same_path(&path, &qp->path))
		return bytes <= qp->flow->mtu_bytes ? ENG_BY_LANE : ENG_BY_PACKETS;
	if (qp->init.type != IBV_QPT_UD)
		bytes = tp_qp_attr(qp->tp)->mtu_bytes;
	eng_flow_drop(qp);
	way = e->cfg.link_ops->choose(e->cfg.link, &path, bytes, &flow);
	if (way != ENG_BY_LANE)
		return way;
	qp->flow = flow;
	qp->flow_serial = flow->serial;
	qp->path = path;
	note_headers(qp, av);
	return way;
}

/* --- a record --- */

static void widen(struct engine *e, struct eng_lane_out *lane)
{
	if (lane->wide || e->wide_lanes == WIDE_LANES)
		return;
	lane->wide = &e->wide_lanes;
	e->wide_lanes++;
	lane->tx.may_widen = true;
}

/* where the payload goes: behind the headers, or into bulk */
static uint8_t *payload_place(struct abi_lane_tx *tx, struct abi_cell *cell, uint8_t *at,
			      struct abi_record *record)
{
	if (likely(record->length_bytes <= (size_t)(cell->data + ABI_CELL_BYTES - at)))
		return at;
	record->flags |= ABI_RECORD_BULK;
	return abi_lane_put_bulk(tx, cell, record->length_bytes);
}

static void copy_payload(struct eng_copy *copy, const struct tp_packet_out *out, uint8_t *to)
{
	for (unsigned i = 0; i < out->num_pieces; i++) {
		uint32_t len = out->piece[i].len;

		if (len == 8)
			memcpy(to, out->piece[i].ptr, 8);
		else
			eng_copy(copy, to, out->piece[i].ptr, len);
		to += len;
	}
}

/* the cell at the lane's tail is filled, and perhaps its reader sleeps */
static void note_dirty(struct engine *e, struct eng_lane_out *lane)
{
	if (list_empty(&lane->dirty_node))
		list_add_tail(&lane->dirty_node, &e->dirty);
}

void eng_small_wait(struct engine *e, struct tp_qp *tp)
{
	tp_ack_wait(tp, e->now);
	eng_note_expiry(e, tp->sq.timer);
}

/* a small SEND whose only piece is @sge */
static inline bool post_piece(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
			      const struct tp_sge *sge)
{
	const struct eng_flow *flow = qp->flow;
	unsigned flags = wr->send_flags;
	struct tp_small small;
	const void *payload;

	if (!eng_flow_holds(e, qp) ||
	    !eng_small_has_room(&flow->lane->tx, sge->length_bytes) || !tp_small_may_post(qp->tp))
		return false;
	payload = (const void *)(uintptr_t)sge->addr;
	if (!(flags & IBV_SEND_INLINE))
		payload = eng_mem_recent(e, qp->init.pd, sge->lkey, sge->addr, sge->length_bytes, 0);
	if (unlikely(!payload))
		return false;
	tp_small_post(qp->tp, wr->wr_id, flags, sge, payload, NULL, &small);
	eng_small_put(qp, flow, &small, flags);
	qp->window_run = 0;
	if (unlikely(!tp_small_waits(qp->tp)))
		eng_small_wait(e, qp->tp);
	return true;
}

/* of several inline pieces, as of a header and what it is for: as one of one piece */
noinline static bool post_pieces(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr)
{
	uint8_t bytes[TP_MAX_INLINE], *to = bytes;
	struct tp_sge one = {.addr = (uintptr_t)bytes};
	uint64_t total = 0;

	if (wr->send_flags & ~SMALL_FLAGS || !(wr->send_flags & IBV_SEND_INLINE) ||
	    (uint32_t)wr->num_sge > qp->init.max_send_sge)
		return false;
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	if (!total || total > qp->small_bytes[1] || !eng_flow_holds(e, qp) ||
	    !tp_small_may_post(qp->tp))
		return false;
	for (int i = 0; i < wr->num_sge; to += wr->sg_list[i++].length)
		copy_few(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
	one.length_bytes = (uint32_t)total;
	return post_piece(e, qp, wr, &one);
}

bool eng_small_post(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr)
{
	if (unlikely(wr->num_sge > 1))
		return post_pieces(e, qp, wr);
	return eng_small_fits(wr, wr->send_flags, SMALL_FLAGS, qp->small_bytes) &&
	       post_piece(e, qp, wr, (const struct tp_sge *)wr->sg_list);
}

/* one that waited: small.h has the way of those that do not */
static bool send_small(struct engine *e, struct eng_qp *qp)
{
	struct tp_small s;

	if (!eng_flow_holds(e, qp) || !abi_lane_has_cell(&qp->flow->lane->tx) ||
	    !tp_qp_transmit_small(qp->tp, &s, ABI_CELL_BYTES, e->now))
		return false;
	eng_small_put(qp, qp->flow, &s, s.flags);
	note_dirty(e, qp->flow->lane);
	return true;
}

/* an acknowledgement alone: of a small SEND's record all but opcode and flags */
static bool send_ack(struct engine *e, struct eng_qp *qp)
{
	struct abi_lane_tx *tx;
	struct abi_cell *cell;
	uint64_t word[3];
	uint32_t aeth;
	bool streams;

	if (!tp_small_acks(qp->tp) || !eng_flow_holds(e, qp) ||
	    !abi_lane_has_cell(&qp->flow->lane->tx))
		return false;
	tx = &qp->flow->lane->tx;
	cell = abi_lane_cell(tx->memory, tx->tail);
	streams = qp->tp->resp.owed >= TP_STREAM_ACKED && ABI_STREAM_BYTES && tx->no_fence;
	word[0] = (qp->small_word[0] & ~abi_record_opcode(0xff)) |
		  abi_record_opcode(WIRE_RC | WIRE_ACKNOWLEDGE) | tp_small_ack(qp->tp, &aeth).v;
	word[1] = qp->small_word[1] & ~abi_record_flags(ABI_RECORD_ACK_REQ);
	word[2] = qp->small_word[2] | abi_record_pkey(qp->tp->attr.pkey);
	eng_stream(e, tx, cell, word, htobe32(aeth), NULL, 0, streams);
	eng_lane_count(qp->flow->count, 1, qp->flow_dwords + WIRE_AETH_BYTES / 4);
	note_dirty(e, qp->flow->lane);
	return true;
}

static void put_record(struct engine *e, struct eng_qp *qp, struct tp_packet_out *out)
{
	struct wire_packet *pkt = &out->hdr;
	struct eng_flow *flow = qp->flow;
	struct abi_lane_tx *tx = &flow->lane->tx;
	struct abi_cell *cell = abi_lane_cell(tx->memory, tx->tail);
	uint32_t ext = wire_opcodes[pkt->bth.opcode].flags;
	struct abi_record record;
	uint8_t *at;
	psn_t ack;

	eng_fill_route(qp, out->av, pkt);
	record = (struct abi_record){
		.psn = pkt->bth.psn.v,
		.opcode = pkt->bth.opcode,
		.dest_qpn = pkt->bth.dest_qpn,
		.src_qpn = qp->init.qpn,
		.flags = (pkt->bth.ack_req ? ABI_RECORD_ACK_REQ : 0) |
			 (pkt->bth.solicited ? ABI_RECORD_SOLICITED : 0),
		.dlid_path_bits = pkt->lrh.dlid & 0x7f,
		.length_bytes = pkt->payload_bytes,
		.packets = pkt->packets,
		.sl = pkt->lrh.sl,
		.slid = pkt->lrh.slid,
		.pkey = pkt->bth.pkey,
	};
	if (tp_qp_take_ack(qp->tp, pkt, &ack)) {
		record.flags |= ABI_RECORD_ACK;
		record.ack_psn = ack.v;
	}
	at = cell->data + eng_ext_encode(pkt, ext, cell->data);
	if (unlikely(ext & WIRE_HAS_DETH && pkt->lrh.lnh == WIRE_LNH_GRH)) {
		record.flags |= ABI_RECORD_GRH;
		record.length_bytes += WIRE_GRH_BYTES;
		at = payload_place(tx, cell, at, &record);
		pkt->grh.payload_bytes = (uint16_t)(WIRE_BTH_BYTES + WIRE_DETH_BYTES +
						    ALIGN_UP(pkt->payload_bytes, 4u) +
						    WIRE_ICRC_BYTES +
						    (ext & WIRE_HAS_IMM ? WIRE_IMM_BYTES : 0));
		at += wire_grh_encode(&pkt->grh, at);
	} else {
		at = payload_place(tx, cell, at, &record);
	}
	if (unlikely(tx->bulk_tail >= WIDE_AFTER_BYTES && !tx->may_widen))
		widen(e, flow->lane);
	copy_payload(&flow->lane->copy, out, at);
	abi_lane_publish(tx, &record);
	eng_lane_count(flow->count, pkt->packets, wire_segment_dwords(pkt));
	note_dirty(e, flow->lane);
}

/* --- sending --- */

/* Return: the payload that a segment may have now; 0: no room */
static uint32_t room(struct eng_qp *qp)
{
	struct abi_lane_tx *tx = &qp->flow->lane->tx;
	uint32_t grh = qp->init.type == IBV_QPT_UD ? WIRE_GRH_BYTES : 0;
	uint32_t want = tp_qp_next_bytes(qp->tp), least, bytes;

	if (unlikely(!abi_lane_has_cell(tx)))
		return 0;
	if (likely(want + grh <= SMALL_BYTES))
		return ABI_SEGMENT_BYTES;
	want = MIN(want, ABI_SEGMENT_BYTES - grh) + grh;
	least = MIN(want, (uint32_t)tp_qp_attr(qp->tp)->mtu_bytes + grh);
	bytes = abi_lane_room(tx, least, want);
	return bytes < least ? 0 : bytes - grh;
}

/* the lane is full. Return: true when a segment was given up for lost */
static bool give_up(struct engine *e, struct eng_qp *qp)
{
	struct tp_packet_out out;

	e->stats.link_full++;
	return e->cfg.link_ops->stuck(e->cfg.link, qp->flow) == ENG_LOST &&
	       tp_qp_transmit_segment(qp->tp, &out, ABI_SEGMENT_BYTES, e->now);
}

bool eng_lane_send(struct engine *e, struct eng_qp *qp, unsigned budget, bool *full)
{
	struct tp_packet_out out;
	bool sent = false;

	while (budget-- && tp_wants_transmit(qp->tp)) {
		uint32_t bytes;

		if (likely(!e->cfg.general_only && (send_ack(e, qp) || send_small(e, qp)))) {
			sent = true;
			continue;
		}
		if (unlikely(eng_lane_way(e, qp) != ENG_BY_LANE))
			break;
		bytes = room(qp);
		if (unlikely(!bytes)) {
			*full = true;
			return give_up(e, qp) || sent;
		}
		if (!tp_qp_transmit_segment(qp->tp, &out, bytes, e->now))
			break;
		put_record(e, qp, &out);
		sent = true;
	}
	return sent;
}

void eng_lane_flush(struct engine *e)
{
	while (!list_empty(&e->dirty)) {
		struct eng_lane_out *lane =
			list_first_entry(&e->dirty, struct eng_lane_out, dirty_node);

		list_del(&lane->dirty_node);
		if (unlikely(abi_lane_must_ring(&lane->tx)))
			eng_ring(e, lane);
	}
}
