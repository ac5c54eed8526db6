/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From a lane to the transport. Its sender is another program and may write
 * anything at any time: each header is read once, then checked: lengths
 * against the lane's bounds, the source LID against what softibd announced,
 * the source QP against the one that the destination is connected to.
 */
#include <string.h>

#include "engine/private.h"

void eng_lane_add(struct engine *e, struct eng_lane_in *lane)
{
	list_add_tail(&lane->node, &e->lanes);
}

void eng_lane_del(struct engine *e, struct eng_lane_in *lane)
{
	list_del(&lane->node);
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
	uint32_t bulk;

	if (likely(!(record->flags & ABI_RECORD_BULK)))
		return record->length_bytes <= (size_t)(cell->data + ABI_CELL_BYTES - behind) ?
			       behind :
			       NULL;
	memcpy(&bulk, cell->data + ABI_CELL_BULK, sizeof(bulk));
	if (bulk >= ABI_LANE_BULK || record->length_bytes > ABI_LANE_BULK - bulk)
		return NULL;
	return memory->bulk + bulk;
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

static bool is_heard(const struct eng_lane_in *lane, const struct eng_qp *qp,
		     const struct abi_record *record)
{
	if ((record->slid & lane->slid_mask) != lane->slid)
		return false;
	/* a connected QP hears its peer alone */
	return qp->init.type == IBV_QPT_UD || record->src_qpn == tp_qp_attr(qp->tp)->dest_qpn;
}

/* a SEND of one packet in the cell itself */
static bool is_small(const struct abi_record *record)
{
	return record->opcode == (WIRE_RC | WIRE_SEND_ONLY) &&
	       !(record->flags & (ABI_RECORD_BULK | ABI_RECORD_GRH)) &&
	       record->flags & ABI_RECORD_ACK_REQ && record->length_bytes <= ABI_CELL_BYTES &&
	       record->packets == 1;
}

static bool receive_small(struct eng_qp *qp, const struct abi_cell *cell,
			  const struct abi_record *record)
{
	const struct tp_small in = {.psn = psn(record->psn),
				    .payload = cell->data,
				    .length_bytes = record->length_bytes,
				    .solicited = record->flags & ABI_RECORD_SOLICITED};

	return tp_qp_receive_small(qp->tp, &in, record->slid, record->sl);
}

static void receive(struct engine *e, const struct eng_lane_in *lane,
		    const struct abi_cell *cell, const struct abi_record *record)
{
	struct eng_qp *qp = record->dest_qpn < 2 ? NULL : eng_qp_find(e, record->dest_qpn, 0);
	struct wire_packet pkt;

	if (unlikely(!qp)) {
		e->stats.rx_no_qp++;
		return;
	}
	if (unlikely(!is_heard(lane, qp, record))) {
		e->stats.rx_malformed++;
		return;
	}
	if (unlikely(!eng_pkey_passes(qp, record->pkey))) {
		e->stats.rx_bad_pkey++;
		return;
	}
	if (record->flags & ABI_RECORD_ACK)
		tp_qp_acked(qp->tp, psn(record->ack_psn), e->now);
	if (!is_small(record) || !receive_small(qp, cell, record)) {
		if (decode(lane->rx.memory, cell, record, &pkt))
			tp_qp_receive(qp->tp, &pkt, e->now);
		else
			e->stats.rx_malformed++;
	}
	eng_qp_touch(qp);
}

static unsigned receive_some(struct engine *e, struct eng_lane_in *lane, unsigned most)
{
	unsigned n = 0;

	for (; n < most && abi_lane_waiting(&lane->rx); n++) {
		struct abi_record record;
		const struct abi_cell *cell;

		/* what came by softibd was sent before this (abi/lane.h) */
		if (unlikely(eng_packets_waiting(e)))
			eng_rx_packets(e, UINT32_MAX);
		cell = abi_lane_read(&lane->rx, &record);
		receive(e, lane, cell, &record);
		e->stats.rx_packets += record.packets;
		e->stats.rx_bytes += record.length_bytes;
		/* the room of a long payload is wanted back soon */
		abi_lane_consume(&lane->rx, record.length_bytes > ABI_CELL_BYTES);
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
