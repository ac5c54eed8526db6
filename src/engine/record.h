/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a record is put into a cell of a lane, and where the payload of a record is.
 *
 * eng_emit() is the only place that puts a record together: any packet or segment of the general
 * path (lane_tx.c), a SEND of one packet by the fast path (fast.h) and a standalone ACK. It is
 * compiled for each of these. What a caller knows of its record when it is compiled is a constant
 * argument, so the code that this record does not need is left out. What the BTH says, the
 * transport decides, for both paths in tp_next_packet() (transport/send.h).
 *
 * A packet through softibd is not a record: its headers are encoded as on the wire, by
 * wire_packet_encode() (tx.c), from the same struct wire_packet.
 */
#ifndef SOFTIB_ENGINE_RECORD_H
#define SOFTIB_ENGINE_RECORD_H

#include "engine/private.h"
#include "transport/fast.h"
#include "transport/guard.h"

/* --- the payload's place --- */

/** eng_payload_place() - where the payload of the record in @cell goes if it is not split: behind
 *  its @ext_bytes of extended headers, or into bulk, for which there is room */
static inline uint8_t *eng_payload_place(struct abi_lane_tx *tx, struct abi_cell *cell,
					 uint64_t word[3], uint32_t ext_bytes,
					 uint32_t length_bytes)
{
	if (likely(length_bytes <= ABI_CELL_BYTES - ext_bytes))
		return cell->data + ext_bytes;
	word[1] |= abi_record_flags(ABI_RECORD_BULK);
	return abi_lane_put_bulk(tx, cell, length_bytes);
}

/** eng_payload_splits() - is a payload of @len bytes split between cell and bulk (abi/cell.h)? */
static inline bool eng_payload_splits(uint32_t ext_bytes, uint32_t len)
{
	return abi_lane_splits(len) && ext_bytes + ABI_SPLIT_BYTES <= ABI_CELL_BULK;
}

/** eng_put_split() - store a payload that is split in the cell at the tail of @tx and in bulk, for
 *  which there is room
 *  @payload: is guarded, and was probed */
void eng_put_split(struct abi_lane_tx *tx, struct abi_cell *cell, uint64_t word[3],
		   uint32_t ext_bytes, const uint8_t *payload, uint32_t len);

/** eng_payload_at() - where a record's payload is, until the next call for @rx. NULL: not inside
 *  the lane */
static inline const uint8_t *eng_payload_at(struct abi_lane_rx *rx, const struct abi_cell *cell,
					    const uint64_t word[3], uint32_t ext_bytes)
{
	uint32_t len = abi_record_bytes(word), bulk;

	if (likely(!abi_record_has(word, ABI_RECORD_BULK)))
		return likely(len <= ABI_CELL_BYTES - ext_bytes) ? cell->data + ext_bytes
								 : NULL;
	memcpy(&bulk, cell->data + ABI_CELL_BULK, sizeof(bulk));
	if (unlikely(bulk >= ABI_LANE_BULK || len > ABI_LANE_BULK - bulk))
		return eng_payload_splits(ext_bytes, len)
			       ? abi_lane_join(rx, cell->data + ext_bytes, bulk)
			       : NULL;
	return rx->memory->bulk + bulk;
}

/* --- emitting --- */

/**
 * struct eng_payload - what a record has beside its header words. One of @few, @bytes and @out is
 * set
 */
struct eng_payload {
	/* Extended header and payload, which have eight bytes at most, first byte lowest */
	const uint64_t *few;
	/* The payload in the program's memory, all of which can be loaded, behind an extended header
	 * of 0 or 4 bytes */
	const void *bytes;
	uint32_t ext, ext_bytes;
	/* Any packet or segment, with its extended headers and the pieces of its payload */
	const struct tp_packet_out *out;
	uint32_t opcode_flags; /* of wire_opcodes[] */
	bool has_grh;
	bool streams; /* the record is one of a stream (abi/cell.h) */
};

/** eng_put_packet() - put the extended headers and the payload of @out into @cell or into bulk.
 *  @len: of the payload with its GRH. Return: false: memory of the payload is gone */
bool eng_put_packet(struct engine *e, struct eng_lane_out *lane, const struct tp_packet_out *out,
		    uint32_t len, struct abi_cell *cell, uint64_t word[3]);

/** eng_record_words() - the headers of a record of @qp's flow
 * @tp: @qp's. @operation: enum wire_operation; @flags: of abi_record_flags() */
__attribute__((always_inline)) static inline void
eng_record_words(const struct eng_qp *qp, const struct tp_qp *tp, uint8_t operation,
		 psn_t at, uint64_t flags, uint32_t length_bytes, uint32_t packets,
		 uint64_t word[3])
{
	word[0] = (qp->record[0] ^ abi_record_opcode(WIRE_SEND_ONLY ^ operation)) | at.v;
	word[1] = qp->record[1] | flags;
	word[2] = (qp->record[2] ^ abi_record_packets(1 ^ packets)) | length_bytes |
		  abi_record_pkey(tp_pkey(tp));
}

/** eng_flow_dwords() - LRH:PktLen of a packet of @qp's flow, with @bytes behind the headers that a
 *  SEND Only has */
static inline uint32_t eng_flow_dwords(const struct eng_qp *qp, uint32_t bytes)
{
	return qp->flow_dwords + (bytes + 3) / 4;
}

/** eng_lane_count() - add packets that leave by a lane to the port counters of their flow */
static inline void eng_lane_count(struct abi_flow_count *c, uint32_t packets,
				  uint32_t dwords)
{
	uint64_t p = atomic_load_explicit(&c->packets, memory_order_relaxed);
	uint64_t d = atomic_load_explicit(&c->dwords, memory_order_relaxed);

	atomic_store_explicit(&c->dwords, d + dwords, memory_order_relaxed);
	atomic_store_explicit(&c->packets, p + packets, memory_order_relaxed);
}

/* order the stores of earlier RDMA WRITEs through windows before a streamed record */
static inline void eng_fence_windows(struct engine *e)
{
	if (likely(!e->in_windows))
		return;
	atomic_thread_fence(memory_order_seq_cst);
	e->in_windows = false;
}

/* Publish a record whose payload is the eight bytes @first and @left more. @may: the record may
 * be stored past the caches. If @left is 0, no function is called, so the caller keeps its
 * variables in registers. */
__attribute__((always_inline)) static inline void
eng_publish_few(struct engine *e, struct abi_lane_tx *tx, struct abi_cell *cell,
		const uint64_t word[3], uint64_t first, const void *rest, uint32_t left,
		bool may)
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

/**
 * eng_emit() - put a record into the cell at the tail of the lane of @flow, which has room, and
 * publish it
 * @tp, @flow: of @qp
 * @next: what its BTH says, and the length of its payload; a constant where the caller knows it
 * @p: its payload; likewise
 * @dwords: LRH:PktLen of all its packets
 *
 * Return: false: memory of @p->out is gone, and there is no record
 */
__attribute__((always_inline)) static inline bool
eng_emit(struct engine *e, const struct eng_qp *qp, struct tp_qp *tp,
	 const struct eng_flow *flow, const struct tp_next *next, const struct eng_payload *p,
	 uint32_t dwords)
{
	struct abi_lane_tx *tx = &flow->lane->tx;
	struct abi_cell *cell = abi_lane_cell(tx->memory, tx->tail);
	uint32_t len = next->length_bytes + (p->has_grh ? WIRE_GRH_BYTES : 0);
	bool streams = p->streams && (p->few || len + p->ext_bytes <= ABI_STREAM_BYTES);
	unsigned flags = next->ack_req * ABI_RECORD_ACK_REQ +
			 next->solicited * ABI_RECORD_SOLICITED + p->has_grh * ABI_RECORD_GRH;
	uint64_t word[3], first;
	psn_t ack;

	eng_record_words(qp, tp, next->operation, next->psn, abi_record_flags(flags), len,
			 next->packets, word);
	if (p->out) {
		if (unlikely(!eng_put_packet(e, flow->lane, p->out, len, cell, word)))
			return false;
	} else if (!p->few && !streams) {
		memcpy(cell->data, &p->ext, p->ext_bytes);
		if (eng_payload_splits(p->ext_bytes, len))
			eng_put_split(tx, cell, word, p->ext_bytes, p->bytes, len);
		else
			guard_load(eng_payload_place(tx, cell, word, p->ext_bytes, len),
				   p->bytes, len);
	}
	if (tp_take_ack(tp, p->opcode_flags, &ack))
		word[1] |= abi_record_ack(ack.v);
	if (p->few) {
		eng_publish_few(e, tx, cell, word, *p->few, NULL, 0, streams);
	} else if (streams) {
		uint32_t begin = MIN(len, (uint32_t)sizeof(first) - p->ext_bytes);

		first = p->ext | load_few(p->bytes, begin) << 8 * p->ext_bytes;
		eng_publish_few(e, tx, cell, word, first, (const uint8_t *)p->bytes + begin,
				len - begin, true);
	} else {
		abi_lane_publish_words(tx, cell, word);
	}
	eng_lane_count(flow->count, next->packets, dwords);
	if (p->opcode_flags & WIRE_HAS_XRCETH)
		flow->lane->xrc_requests++;
	return true;
}

#endif
