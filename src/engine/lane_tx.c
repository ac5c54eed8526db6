/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments from the transport are written into a lane (src/abi/lane.h). The QP knows the lane of
 * its flow. A segment's headers go into a cell, and its payload behind them or into bulk, with
 * one copy. The transport is asked for a segment only if the lane has room for it, so nothing
 * waits here.
 */
#include <string.h>

#include "engine/fast.h"

/* the extended headers next to which a payload still fits into its cell: RETH and immediate */
#define EXT_MAX 20
#define CELL_BYTES (ABI_CELL_BYTES - EXT_MAX)
#define FAST_FLAGS (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

void eng_lane_out_init(struct eng_lane_out *lane, struct abi_lane *memory, bool no_fence)
{
	memset(lane, 0, sizeof(*lane));
	abi_lane_tx_init(&lane->tx, memory, no_fence);
	eng_copy_begin(&lane->copy);
	INIT_LIST_HEAD(&lane->dirty_node);
}

void eng_lane_out_gone(struct eng_lane_out *lane)
{
	list_del(&lane->dirty_node);
	if (lane->wide)
		--*lane->wide;
	lane->wide = NULL;
}

/* --- the choice of the medium --- */

/* Prepare the words of a SEND Only on @qp's flow without what differs from record to record,
 * which is 0 here: PSN, acknowledgement, flags, length and P_Key (eng_record_words()). Note
 * which SENDs may take the fast path. */
static void note_flow(struct eng_qp *qp, const struct tp_av *av)
{
	uint32_t bytes = WIRE_LRH_BYTES + WIRE_BTH_BYTES + WIRE_ICRC_BYTES;
	uint32_t most = qp->init.max_send_sge ? tp_qp_attr(qp->tp)->mtu_bytes : 0;
	bool ud = tp_is_datagram(qp->tp);
	bool rc = tp_is_acknowledged(qp->tp) && !tp_names_srq(qp->tp);
	struct abi_record record;
	struct wire_packet pkt;

	eng_fill_route(qp, av, &pkt);
	bytes += (av->is_global ? WIRE_GRH_BYTES : 0) + (ud ? WIRE_DETH_BYTES : 0);
	qp->flow_dwords = (uint8_t)(bytes / 4);
	record = (struct abi_record){
		.opcode = tp_transport(qp->tp) | WIRE_SEND_ONLY,
		.sl = pkt.lrh.sl,
		.dlid_path_bits = wire_path_bits(pkt.lrh.dlid, WIRE_LMC_MAX),
		.slid = pkt.lrh.slid,
		.flags = pkt.bth.mig_req ? 0 : ABI_RECORD_UNMIGRATED,
		.packets = 1,
		.dest_qpn = qp->path.dest_qpn,
		.src_qpn = qp->init.qpn,
	};
	abi_record_pack(&record, qp->record);
	qp->record_path_bits = av->src_path_bits;
	if (!tp_may_be_fast(qp->tp) || qp->engine->cfg.general_only)
		most = 0;
	qp->single_bytes[0] = MIN(most, qp->flow->mtu_bytes);
	qp->single_bytes[1] = MIN(qp->init.max_inline, qp->single_bytes[0]);
	for (unsigned i = 0; i < ARRAY_SIZE(qp->few_bytes); i++)
		qp->few_bytes[i] = rc ? MIN(qp->single_bytes[i], sizeof(uint64_t)) : 0;
}

enum eng_medium eng_lane_medium(struct engine *e, struct eng_qp *qp)
{
	struct eng_path path;
	const struct tp_av *av;
	struct eng_flow *flow;
	enum eng_medium medium;
	uint32_t bytes;

	if (likely(tp_is_connected(qp->tp) && eng_flow_holds(e, qp)))
		return ENG_BY_LANE;
	if (!e->cfg.link_ops->choose || qp->init.qpn < 2)
		return ENG_BY_PACKETS;
	av = tp_qp_destination(qp->tp, &path.dest_qpn);
	path.dlid = av->dlid;
	path.sl = av->sl;
	path.port_num = av->port_num;
	path.pkey = tp_qp_attr(qp->tp)->pkey;
	bytes = tp_qp_next_bytes(qp->tp);
	if (eng_flow_holds(e, qp) && eng_same_path(&path, &qp->path)) {
		/* a datagram may be sent from another of the port's LIDs than the one before */
		if (unlikely(qp->record_path_bits != av->src_path_bits))
			note_flow(qp, av);
		return bytes <= qp->flow->mtu_bytes ? ENG_BY_LANE : ENG_BY_PACKETS;
	}
	if (tp_is_connected(qp->tp))
		bytes = tp_qp_attr(qp->tp)->mtu_bytes;
	eng_flow_drop(qp);
	medium = e->cfg.link_ops->choose(e->cfg.link, &path, bytes, &flow);
	if (medium != ENG_BY_LANE)
		return medium;
	qp->flow = flow;
	qp->flow_serial = flow->serial;
	qp->path = path;
	note_flow(qp, av);
	return medium;
}

/* --- a record --- */

void eng_put_split(struct abi_lane_tx *tx, struct abi_cell *cell, uint64_t word[3],
		   uint32_t ext_bytes, const uint8_t *payload, uint32_t len)
{
	word[1] |= abi_record_flags(ABI_RECORD_BULK);
	guard_load(cell->data + ext_bytes, payload, ABI_SPLIT_BYTES);
	guard_load(abi_lane_put_split(tx, cell, len), payload + ABI_SPLIT_BYTES,
		   len - ABI_SPLIT_BYTES);
}

static void copy_long(void *copy, void *to, const void *from, size_t len)
{
	eng_copy(copy, to, from, (uint32_t)len);
}

/* Return: false: the memory is gone */
static bool copy_payload(struct eng_copy *copy, const struct tp_packet_out *out, uint8_t *to)
{
	for (unsigned i = 0; i < out->num_pieces; i++) {
		uint32_t len = out->piece[i].len;

		const void *from = out->piece[i].ptr;

		if ((len <= COPY_SHORT_BYTES || unlikely(!guard_run(copy_long, copy, to, from, len, from))) &&
		    unlikely(!guard_load(to, from, len)))
			return false;
		to += len;
	}
	return true;
}

/* A record was published, and its receiver may be asleep: eng_lane_flush() looks. */
static void note_dirty(struct engine *e, struct eng_lane_out *lane)
{
	if (list_empty(&lane->dirty_node))
		list_add_tail(&lane->dirty_node, &e->dirty);
}

void eng_start_ack_timer(struct engine *e, struct tp_qp *tp)
{
	tp_ack_wait(tp, e->now);
	eng_note_expiry(e, tp_timer(tp));
}

/* @kind: a constant */
__attribute__((always_inline)) static inline bool
send_reliable(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
	      const struct tp_sge *sge, const enum eng_single kind)
{
	if (!eng_send_single(e, qp, wr, sge, NULL, kind))
		return false;
	if (unlikely(!tp_timer_runs(qp->tp)))
		eng_start_ack_timer(e, qp->tp);
	return true;
}

static bool send_rc(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
		    const struct tp_sge *sge)
{
	return send_reliable(e, qp, wr, sge, ENG_RC);
}

noinline static bool send_xrc(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
			      const struct tp_sge *sge)
{
	return send_reliable(e, qp, wr, sge, ENG_XRC);
}

/* A SEND of several inline pieces, such as a header and its payload, is sent as one of a single
 * piece. */
noinline static bool send_pieces(struct engine *e, struct eng_qp *qp,
				 const struct ibv_send_wr *wr)
{
	uint8_t bytes[TP_MAX_INLINE], *to = bytes;
	struct tp_sge one = {.addr = (uintptr_t)bytes};
	uint64_t total = 0;

	if (wr->send_flags & ~FAST_FLAGS || !(wr->send_flags & IBV_SEND_INLINE) ||
	    (uint32_t)wr->num_sge > qp->init.max_send_sge)
		return false;
	for (int i = 0; i < wr->num_sge; i++)
		total += wr->sg_list[i].length;
	/* the pieces are read only when it is certain that they are sent */
	if (!total || total > qp->single_bytes[1] || !eng_flow_holds(e, qp) ||
	    !tp_fast_may_send(qp->tp))
		return false;
	for (int i = 0; i < wr->num_sge; to += wr->sg_list[i++].length)
		copy_few(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
	one.length_bytes = (uint32_t)total;
	return tp_names_srq(qp->tp) ? send_xrc(e, qp, wr, &one) : send_rc(e, qp, wr, &one);
}

noinline static bool send_datagram(struct engine *e, struct eng_qp *qp,
				   const struct ibv_send_wr *wr, const struct tp_av *av)
{
	return eng_single_fits(wr, wr->send_flags, FAST_FLAGS, qp->single_bytes) &&
	       eng_send_single(e, qp, wr, (const struct tp_sge *)wr->sg_list, av, ENG_UD);
}

bool eng_single_post(struct engine *e, struct eng_qp *qp, const struct ibv_send_wr *wr,
		     const struct tp_av *av)
{
	if (tp_is_datagram(qp->tp))
		return send_datagram(e, qp, wr, av);
	if (unlikely(wr->num_sge > 1))
		return send_pieces(e, qp, wr);
	if (unlikely(!eng_single_fits(wr, wr->send_flags, FAST_FLAGS, qp->single_bytes)))
		return false;
	if (unlikely(tp_names_srq(qp->tp)))
		return send_xrc(e, qp, wr, (const struct tp_sge *)wr->sg_list);
	return send_rc(e, qp, wr, (const struct tp_sge *)wr->sg_list);
}

bool eng_lane_ack(struct engine *e, struct eng_qp *qp)
{
	struct tp_next next = {.packets = 1, .operation = WIRE_ACKNOWLEDGE};
	struct tp_qp *tp = qp->tp;
	struct wire_aeth aeth;
	struct eng_payload p;
	uint64_t few;

	if (e->cfg.general_only || !tp_fast_acks(tp) || !eng_flow_holds(e, qp) ||
	    !abi_lane_has_cell(&qp->flow->lane->tx))
		return false;
	p = (struct eng_payload){
		.few = &few,
		.opcode_flags = WIRE_IS_RESPONSE,
		.streams = ABI_STREAM_BYTES && tp_fast_ack_streams(tp) &&
			   qp->flow->lane->tx.no_fence,
	};
	next.psn = tp_fast_ack(tp, &aeth);
	few = htobe32(wire_aeth_word(&aeth));
	eng_emit(e, qp, tp, qp->flow, &next, &p, eng_flow_dwords(qp, WIRE_AETH_BYTES));
	note_dirty(e, qp->flow->lane);
	return true;
}

/* the GRH of a datagram precedes its payload, as in the receive */
static uint8_t *put_grh(struct engine *e, const struct tp_packet_out *out, uint8_t *to)
{
	struct wire_grh grh = {0};

	eng_fill_grh(e, out->av, &grh);
	grh.payload_bytes =
		(uint16_t)(WIRE_BTH_BYTES + wire_opcodes[out->hdr.bth.opcode].ext_bytes +
			   ALIGN_UP(out->hdr.payload_bytes, 4u) + WIRE_ICRC_BYTES);
	return to + wire_grh_encode(&grh, to);
}

bool eng_put_packet(struct engine *e, struct eng_lane_out *lane, const struct tp_packet_out *out,
		    uint32_t len, struct abi_cell *cell, uint64_t word[3])
{
	const struct wire_packet *pkt = &out->hdr;
	uint32_t ext = (uint32_t)eng_ext_encode(pkt, wire_opcodes[pkt->bth.opcode].flags,
						cell->data);
	const bool splits = eng_payload_splits(ext, len);
	uint8_t split[ABI_SPLIT_BYTES + ABI_SPLIT_LINE];
	uint8_t *at = splits ? split : eng_payload_place(&lane->tx, cell, word, ext, len);

	if (unlikely(len != pkt->payload_bytes))
		at = put_grh(e, out, at);
	if (eng_copy_span_ended(lane))
		eng_copy_span(e, lane);
	if (unlikely(!copy_payload(&lane->copy, out, at)))
		return false;
	if (splits)
		eng_put_split(&lane->tx, cell, word, ext, split, len);
	return true;
}

/* any packet or segment */
static void put_record(struct engine *e, struct eng_qp *qp, struct tp_packet_out *out)
{
	struct wire_packet *pkt = &out->hdr;
	uint32_t flags = wire_opcodes[pkt->bth.opcode].flags;
	const struct tp_next next = {
		.length_bytes = pkt->payload_bytes,
		.packets = pkt->packets,
		.psn = pkt->bth.psn,
		.operation = pkt->bth.opcode & (uint8_t)~WIRE_TRANSPORT_MASK,
		.ack_req = pkt->bth.ack_req,
		.solicited = pkt->bth.solicited,
	};
	const struct eng_payload p = {
		.out = out,
		.opcode_flags = flags,
		.has_grh = out->av->is_global && flags & WIRE_HAS_DETH,
	};

	pkt->lrh.lnh = out->av->is_global ? WIRE_LNH_GRH : WIRE_LNH_BTH;
	if (likely(eng_emit(e, qp, qp->tp, qp->flow, &next, &p, wire_segment_dwords(pkt))))
		note_dirty(e, qp->flow->lane);
	else
		eng_unsent(e, qp, out);
}

/* --- sending --- */

/* Return: how much payload the next segment may have; 0: there is no room */
static uint32_t room(struct eng_qp *qp)
{
	struct abi_lane_tx *tx = &qp->flow->lane->tx;
	uint32_t grh = tp_is_datagram(qp->tp) ? WIRE_GRH_BYTES : 0;
	uint32_t want = tp_qp_next_bytes(qp->tp), least, bytes;

	if (unlikely(!abi_lane_has_cell(tx)))
		return 0;
	if (likely(want + grh <= CELL_BYTES))
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

bool eng_lane_send(struct engine *e, struct eng_qp *qp, unsigned budget, bool *over)
{
	uint32_t left = ENG_TX_BYTES;
	struct tp_packet_out out;
	bool sent = false;

	while (budget-- && tp_wants_transmit(qp->tp)) {
		uint32_t bytes;

		if (unlikely(!left)) {
			*over = true;
			break;
		}
		if (likely(eng_lane_ack(e, qp))) {
			sent = true;
			continue;
		}
		if (unlikely(eng_lane_medium(e, qp) != ENG_BY_LANE))
			break;
		bytes = room(qp);
		if (unlikely(!bytes)) {
			*over = true;
			return give_up(e, qp) || sent;
		}
		if (!tp_qp_transmit_segment(qp->tp, &out, bytes, e->now))
			break;
		put_record(e, qp, &out);
		left -= MIN(left, out.hdr.payload_bytes);
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
