/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From a lane to the transport. Its sender is another program and may write
 * anything at any time: each header is read once, then checked: lengths
 * against the lane's bounds, the source LID and the P_Key against what softibd
 * announced, the source QP against the one that the destination is connected to.
 */
#include <string.h>

#include "engine/datagram.h"

#define LONG_BYTES 512 /* the room of longer payloads is wanted back soon */

void eng_lane_add(struct engine *e, struct eng_lane_in *lane)
{
	eng_small_forget(&lane->datagram);
	lane->known = &lane->datagram;
	lane->id = ++e->lane_ids;
	list_add_tail(&lane->node, &e->lanes);
}

void eng_lane_del(struct engine *e, struct eng_lane_in *lane)
{
	list_del(&lane->node);
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

#define GET(value)                                                                                 \
	do {                                                                                       \
		memcpy(&(value), at, sizeof(value));                                               \
		at += sizeof(value);                                                               \
	} while (0)

/* as lane_tx.c wrote them: 28 bytes at most, which a cell has */
static const uint8_t *get_ext(const uint8_t *at, struct wire_packet *pkt, uint32_t flags)
{
	if (flags & WIRE_HAS_DETH)
		GET(pkt->deth.qkey);
	if (flags & WIRE_HAS_RETH)
		GET(pkt->reth);
	if (flags & WIRE_HAS_ATOMIC_ETH) {
		GET(pkt->atomic.va);
		GET(pkt->atomic.swap_add);
		GET(pkt->atomic.compare);
		GET(pkt->atomic.rkey);
	}
	if (flags & WIRE_HAS_AETH) {
		uint32_t aeth;
		GET(aeth);
		pkt->aeth = (struct wire_aeth){(uint8_t)(aeth >> 24), aeth & 0xffffff};
	}
	if (flags & WIRE_HAS_ATOMIC_ACK)
		GET(pkt->atomic_ack);
	if (flags & WIRE_HAS_IMM)
		GET(pkt->imm);
	if (flags & WIRE_HAS_IETH)
		GET(pkt->ieth_rkey);
	return at;
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
	at = payload_at(memory, cell, get_ext(cell->data, pkt, flags), record);
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
	       pkt->deth.qkey != qp->tp->attr.qkey;
}

noinline static void to_transport(struct engine *e, struct eng_lane_in *lane, struct eng_qp *qp,
			 const struct abi_cell *cell, struct words copy)
{
	const uint64_t *word = copy.of;
	struct abi_record record;
	struct wire_packet pkt;

	abi_record_unpack(word, &record);
	if (unlikely(!decode(lane->rx.memory, cell, &record, &pkt))) {
		e->stats.rx_malformed++;
	} else if (unlikely(has_wrong_qkey(qp, &pkt))) {
		if (e->cfg.link_ops->bad_qkey)
			e->cfg.link_ops->bad_qkey(e->cfg.link, lane, &pkt);
	} else {
		/* a wait that is short begins, and lanes are read by an old clock */
		if (unlikely(is_rnr_nak(&pkt)))
			e->now = e->cfg.now(e->cfg.ctx);
		tp_qp_receive(qp->tp, &pkt, e->now);
	}
	eng_qp_touch(qp);
}

/* any record */
noinline static void receive(struct engine *e, struct eng_lane_in *lane, const struct abi_cell *cell,
			struct words copy)
{
	const uint64_t *word = copy.of;
	struct abi_record record;
	struct eng_qp *qp;

	abi_record_unpack(word, &record);
	qp = admit(e, lane, &record);
	if (unlikely(!qp))
		return;
	eng_small_note(lane, qp, &record, word);
	if (record.flags & ABI_RECORD_ACK)
		tp_qp_acked(qp->tp, psn(record.ack_psn), e->now);
	to_transport(e, lane, qp, cell, copy);
}

/* a small SEND whose like has passed. Return: false: it is not, nothing changed */
static inline bool receive_known(struct engine *e, struct eng_lane_in *lane,
				 const struct abi_cell *cell, const uint64_t word[3])
{
	bool has_ack = word[1] & (uint64_t)ABI_RECORD_ACK << 24;
	struct eng_qp *qp;

	if (!eng_small_is_known(lane->known, word) && !eng_small_find(e, lane, word))
		return false;
	qp = lane->known->qp;
	if (unlikely(!eng_small_pkey_holds(qp, word)))
		return false;
	if (qp->init.type == IBV_QPT_UD)
		return eng_datagram_receive(e, lane, cell, word);
	if (has_ack)
		tp_qp_acked(qp->tp, psn(word[1] >> 32 & 0xffffff), e->now);
	if (unlikely(!eng_small_receive(e, lane, cell, word)))
		to_transport(e, lane, qp, cell, copy_of(word));
	else if (has_ack || list_empty(&qp->owing_node) || !tp_only_owes(qp->tp))
		eng_qp_touch(qp); /* else: the same acknowledgement will answer this, too */
	return true;
}

static unsigned receive_some(struct engine *e, struct eng_lane_in *lane, unsigned most)
{
	const struct abi_cell *cell;
	uint64_t word[3];
	unsigned n;

	for (n = 0; n < most && (cell = abi_lane_next(&lane->rx, word)); n++) {
		/* what came by softibd was sent before this (abi/lane.h) */
		if (unlikely(eng_packets_waiting(e)))
			eng_rx_packets(e, UINT32_MAX);
		if (unlikely(!receive_known(e, lane, cell, word)))
			receive(e, lane, cell, copy_of(word));
		abi_lane_consumed(&lane->rx, 1, abi_record_bytes(word) > LONG_BYTES);
	}
	abi_lane_release(&lane->rx);
	return n;
}

unsigned eng_lanes_rx(struct engine *e, unsigned most)
{
	struct eng_lane_in *lane;
	unsigned n = 0;

	list_for_each_entry(lane, &e->lanes, node)
		n += receive_some(e, lane, most);
	return n;
}
