/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lane: shared memory by which one program sends packets to another without
 * softibd. It is used for flows whose route through the fabric has no fault rule,
 * no capture and no port that is down. Both programs map it. The sender writes all
 * of it except the two lines of the receiver:
 *
 *   flow[]   the sender's counts for each flow, which softibd adds to the counters
 *            of every port on the flow's route
 *   head     the receiver's: the number of cells that it has read, updated now and
 *            then
 *   asleep   the receiver's: the sender must ring the doorbell. Nobody else writes
 *            this cache line, so it stays in the sender's cache
 *   cell[]   a ring of records, one cache line each: headers in host byte order and
 *            up to ABI_CELL_BYTES of extended headers and payload
 *   bulk[]   a ring of longer payloads, in the order of their records. The narrow
 *            ring is a part of bulk[], the wide one all of it
 *
 * A record stands for one packet or for a segment of many. Its cell says itself
 * whether it is valid (cell.h), so a short message moves a single cache line. A
 * payload that is a little longer than a line is split between its cell and one
 * line of bulk[], and moves two. The
 * room of a payload is released together with its cell; only the sender knows
 * where the payload ended (abi_lane_tx.bulk_end).
 *
 * The wide ring is larger than the private caches of a core. When the ring wraps,
 * its lines have been evicted to the shared cache, and neither core waits for the
 * other's private cache. The narrow ring, the source and the destination stay in
 * the private caches. Which of the two is faster depends on the processor and on
 * the sizes; the sender measures it (src/engine/lane_copy.c). Most lanes carry
 * little and touch no more than ABI_LANE_NARROW.
 *
 * Neither side trusts the other. The receiver reads each field once and checks it;
 * a sender that writes nonsense damages only its own messages. The sender accepts
 * a new value of head only if it lies between the old one and the cells sent.
 *
 * Sleeping: a receiver sets `asleep`, checks its cells once more and sleeps. A
 * sender reads `asleep` after it has published a record, and rings if it is set.
 * Either side needs a full fence between its store and its load. If both processes
 * have membarrier(2), the receiver executes the fence for both.
 *
 * Memory order, on any processor: word 0 of a cell is stored with release after the
 * cell's other bytes and its payload in bulk, and loaded with acquire before either
 * is read. `head` is stored with release after the receiver's reads of the cells
 * that it releases, and loaded with acquire before the sender overwrites them.
 * `asleep` and word 0 of a cell are a store-buffering pattern, which acquire and
 * release do not order: hence the fence above. Streamed cells are not ordered by
 * their stores; they exist on x86 alone (cell.h).
 *
 * Each lane has its own doorbell (abi/doorbell.h), which the sender keeps. The
 * receiver gets it once and adds it to an epoll instance, edge-triggered. A sender
 * that tampers with the doorbell affects only the wake-ups for its own packets, and
 * nothing that a receiver does to it lets a sender block.
 *
 * A flow is (source port, DLID, destination QPN, SL, P_Key). softibd's answer about
 * it is valid as long as abi_devpage.route_epoch keeps its value. A lane is for one
 * P_Key of its sender's port. softibd announces that P_Key to the receiver, and ends
 * the lane when the port loses it, or its LID. softibd also announces which program sends:
 * a connected QP takes records only from the program that owned its peer when it went to RTR.
 *
 * Order between a lane and the ring to softibd is kept by two rules. A sender moves
 * a flow from one to the other only when the receiver has read everything that the
 * sender had put into the old one. A receiver that finds a record first reads what
 * is in the ring from softibd.
 */
#ifndef SOFTIB_ABI_LANE_H
#define SOFTIB_ABI_LANE_H

#include "abi/cell.h"
#include "abi/ring.h"

#define ABI_LANE_FLOWS 128
#define ABI_LANE_CELLS 1024u	   /* a power of two */
#define ABI_LANE_BULK (2u << 20)    /* bytes, a power of two */
#define ABI_LANE_NARROW (256u << 10) /* of them in the narrow ring; a power of two */
#define ABI_SEGMENT_BYTES (64u << 10)
#define ABI_NO_LANE 0xffffffffu

/** struct abi_flow_count - what the sender sent; it alone writes */
struct abi_flow_count {
	_Atomic uint64_t packets, dwords; /* dwords as in the LRH's length */
};

struct abi_lane {
	alignas(64) struct abi_flow_count flow[ABI_LANE_FLOWS];
	/* --- written by the receiver --- */
	alignas(64) _Atomic uint32_t head; /* cells ever read */
	alignas(64) _Atomic uint32_t asleep;
	_Atomic uint32_t has_membarrier;
	/* --- written by the sender --- */
	alignas(64) struct abi_cell cell[ABI_LANE_CELLS];
	alignas(64) uint8_t bulk[ABI_LANE_BULK];
};

static inline size_t abi_lane_bytes(void)
{
	return sizeof(struct abi_lane);
}

/** struct abi_lane_tx - the sender's private view */
struct abi_lane_tx {
	struct abi_lane *memory;
	uint32_t tail, head_seen;	/* cells */
	uint32_t bulk_tail, bulk_head;	/* bytes, free running */
	uint32_t bulk_bytes;		/* that the ring has: NARROW, or BULK */
	bool wants_wide;		/* should it have BULK? */
	bool no_fence;			/* this process has membarrier */
	/* by cell: bulk_tail behind its record, and whether that was a plain one */
	uint32_t bulk_end[ABI_LANE_CELLS];
};

#define ABI_BULK_ALIGN 64u   /* of payloads: the low bits of bulk_end are free */
#define ABI_LANE_PLAIN 1u /* ... the cell is not streamed the next time (cell.h) */

/** struct abi_lane_rx - the receiver's */
struct abi_lane_rx {
	struct abi_lane *memory;
	uint32_t head, released;
	struct abi_cell whole; /* the data of a streamed cell */
	uint8_t joined[ABI_SPLIT_BYTES + ABI_SPLIT_LINE]; /* a payload that was split */
};

static inline uint8_t abi_lane_lap(uint32_t position)
{
	return (uint8_t)(position / ABI_LANE_CELLS + 1);
}

static inline struct abi_cell *abi_lane_cell(struct abi_lane *lane, uint32_t position)
{
	return &lane->cell[position & (ABI_LANE_CELLS - 1)];
}

/* --- sending --- */

/** abi_lane_tx_init() - a lane that is new */
static inline void abi_lane_tx_init(struct abi_lane_tx *tx, struct abi_lane *memory, bool no_fence)
{
	memset(tx, 0, sizeof(*tx));
	tx->memory = memory;
	tx->no_fence = no_fence;
	tx->bulk_bytes = ABI_LANE_NARROW;
}

/* Return: false when the receiver has released nothing, or head is invalid */
static inline bool abi_lane_refresh(struct abi_lane_tx *tx)
{
	uint32_t head = atomic_load_explicit(&tx->memory->head, memory_order_acquire);

	if (head == tx->head_seen || head - tx->head_seen > tx->tail - tx->head_seen)
		return false;
	tx->head_seen = head;
	tx->bulk_head = tx->bulk_end[(head - 1) & (ABI_LANE_CELLS - 1)] & ~(ABI_BULK_ALIGN - 1);
	return true;
}

/** abi_lane_knows_cell() - is there room for a record, without reading head again? */
static inline bool abi_lane_knows_cell(const struct abi_lane_tx *tx)
{
	return tx->tail - tx->head_seen < ABI_LANE_CELLS;
}

/** abi_lane_has_cell() - is there room for a record? */
static inline bool abi_lane_has_cell(struct abi_lane_tx *tx)
{
	return abi_lane_knows_cell(tx) || abi_lane_refresh(tx);
}

static inline uint32_t abi_lane_contiguous(const struct abi_lane_tx *tx, uint32_t least)
{
	uint32_t at = tx->bulk_tail & (tx->bulk_bytes - 1);
	uint32_t used = tx->bulk_tail - tx->bulk_head; /* more than all when it has narrowed */
	uint32_t room = used < tx->bulk_bytes ? tx->bulk_bytes - used : 0;
	uint32_t to_end = tx->bulk_bytes - at;

	if (to_end >= least)
		return room < to_end ? room : to_end;
	return room > to_end ? room - to_end : 0; /* from the start, then */
}

/** abi_lane_room() - how many contiguous bytes are free for a payload
 * @least: bytes that it needs
 * @want:  bytes that it can use; head is read again if fewer are known to be free
 * Return: at most ABI_SEGMENT_BYTES; less than @least if there is no room now
 */
static inline uint32_t abi_lane_room(struct abi_lane_tx *tx, uint32_t least, uint32_t want)
{
	uint32_t room = abi_lane_contiguous(tx, least);

	if (room < want && abi_lane_refresh(tx))
		room = abi_lane_contiguous(tx, least);
	return room < ABI_SEGMENT_BYTES ? room : ABI_SEGMENT_BYTES;
}

/** abi_lane_fits() - are @len contiguous bytes free for a payload? */
static inline bool abi_lane_fits(struct abi_lane_tx *tx, uint32_t len)
{
	uint32_t at = tx->bulk_tail & (tx->bulk_bytes - 1), used = tx->bulk_tail - tx->bulk_head;

	return likely(MAX(at, used) + len <= tx->bulk_bytes) || abi_lane_room(tx, len, len) >= len;
}

/* The ring wraps, and may change its size. It grows at the end of the narrow ring and
 * shrinks at the end of the wide one, where unread payloads have the same offset in both.
 * Return: the offset of the tail */
static inline uint32_t abi_lane_turn(struct abi_lane_tx *tx)
{
	bool wide = tx->wants_wide;

	if ((tx->bulk_tail & (ABI_LANE_BULK - 1)) == (wide ? ABI_LANE_NARROW : 0))
		tx->bulk_bytes = wide ? ABI_LANE_BULK : ABI_LANE_NARROW;
	return tx->bulk_tail & (tx->bulk_bytes - 1);
}

/** abi_lane_take_bulk() - allocate @len bytes of bulk, which abi_lane_room() found free.
 *  Return: their offset */
static inline uint32_t abi_lane_take_bulk(struct abi_lane_tx *tx, uint32_t len)
{
	uint32_t at = tx->bulk_tail & (tx->bulk_bytes - 1);

	if (len > tx->bulk_bytes - at) {
		tx->bulk_tail += tx->bulk_bytes - at;
		at = 0;
	}
	if (!at)
		at = abi_lane_turn(tx);
	tx->bulk_tail += ALIGN_UP(len, ABI_BULK_ALIGN);
	return at;
}

/** abi_lane_put_bulk() - allocate the payload of @cell in bulk
 * @len: bytes, which abi_lane_room() found free
 *
 * The caller sets ABI_RECORD_BULK and copies the payload. Return: where to.
 */
static inline uint8_t *abi_lane_put_bulk(struct abi_lane_tx *tx, struct abi_cell *cell,
					 uint32_t len)
{
	uint32_t bulk = abi_lane_take_bulk(tx, len);

	memcpy(cell->data + ABI_CELL_BULK, &bulk, sizeof(bulk));
	return tx->memory->bulk + bulk;
}

/** abi_lane_splits() - does it save a cache line to split a payload of @len bytes? */
static inline bool abi_lane_splits(uint32_t len)
{
	return len - (ABI_SPLIT_LINE + 1) < ABI_SPLIT_BYTES;
}

/** abi_lane_put_split() - abi_lane_put_bulk() of a payload without its first ABI_SPLIT_BYTES, which
 *  the caller copies into @cell. Context: abi_lane_splits() is true */
static inline uint8_t *abi_lane_put_split(struct abi_lane_tx *tx, struct abi_cell *cell, uint32_t len)
{
	uint32_t bulk = abi_lane_take_bulk(tx, len - ABI_SPLIT_BYTES), offset = bulk | ABI_BULK_SPLIT;

	memcpy(cell->data + ABI_CELL_BULK, &offset, sizeof(offset));
	return tx->memory->bulk + bulk;
}

/** abi_lane_publish_words() - write the headers of a record and publish it
 * @cell: the one at tail, whose data is complete
 * @word: the packed headers, with lap 0
 */
static inline void abi_lane_publish_words(struct abi_lane_tx *tx, struct abi_cell *cell,
					  const uint64_t word[3])
{
	uint32_t at = tx->tail;
	uint64_t first = word[0] | abi_record_lap(abi_lane_lap(at));

	tx->bulk_end[at & (ABI_LANE_CELLS - 1)] = tx->bulk_tail | ABI_LANE_PLAIN;
	tx->tail = at + 1;
	atomic_store_explicit(&cell->word[2], word[2], memory_order_relaxed);
	atomic_store_explicit(&cell->word[1], word[1], memory_order_relaxed);
	atomic_store_explicit(&cell->word[0], first, memory_order_release);
}

/** abi_lane_may_stream() - does the next cell permit a streamed record? */
static inline bool abi_lane_may_stream(const struct abi_lane_tx *tx)
{
	return !(tx->bulk_end[tx->tail & (ABI_LANE_CELLS - 1)] & ABI_LANE_PLAIN);
}

/** abi_lane_clear() - prepare the cell of the last record for a streamed one
 * @bytes: the most data that the last record has
 *
 * Called for a record that was published plainly only because its cell did not permit
 * streaming. The next record in this cell may be streamed.
 */
static inline void abi_lane_clear(struct abi_lane_tx *tx, uint32_t bytes)
{
	uint32_t at = tx->tail - 1;

	if (abi_cell_clear(abi_lane_cell(tx->memory, at), abi_lane_lap(at), bytes))
		tx->bulk_end[at & (ABI_LANE_CELLS - 1)] = tx->bulk_tail;
}

/** abi_lane_publish_stream() - publish a record of one packet with its data, streamed.
 *  The arguments are those of abi_cell_stream(). Context: abi_lane_may_stream() is true */
static inline void abi_lane_publish_stream(struct abi_lane_tx *tx, struct abi_cell *cell,
					   const uint64_t word[3], uint64_t first,
					   const uint8_t *rest, uint32_t left)
{
	uint32_t at = tx->tail;

	tx->bulk_end[at & (ABI_LANE_CELLS - 1)] = tx->bulk_tail;
	tx->tail = at + 1;
	abi_cell_stream(cell, abi_lane_lap(at), word, first, rest, left);
}

static inline void abi_lane_publish(struct abi_lane_tx *tx, struct abi_record *record)
{
	uint64_t word[3];

	record->lap = 0;
	abi_record_pack(record, word);
	abi_lane_publish_words(tx, abi_lane_cell(tx->memory, tx->tail), word);
}

/** abi_lane_sleeps() - after publishing: does the receiver sleep? */
static inline bool abi_lane_sleeps(const struct abi_lane_tx *tx)
{
	if (tx->no_fence &&
	    atomic_load_explicit(&tx->memory->has_membarrier, memory_order_relaxed))
		atomic_signal_fence(memory_order_seq_cst);
	else
		atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&tx->memory->asleep, memory_order_relaxed) != 0;
}

/** abi_lane_must_ring() - as abi_lane_sleeps(), and claim the wake-up. Return: true: the
 *  caller must ring the doorbell, and no other thread will */
static inline bool abi_lane_must_ring(struct abi_lane_tx *tx)
{
	return abi_lane_sleeps(tx) && atomic_exchange(&tx->memory->asleep, 0) != 0;
}

/** abi_lane_passed() - has the receiver read all up to @position? */
static inline bool abi_lane_passed(const struct abi_lane_tx *tx, uint32_t position)
{
	uint32_t head = atomic_load_explicit(&tx->memory->head, memory_order_acquire);

	return (int32_t)(head - position) >= 0;
}

/* --- receiving --- */

/** abi_lane_stirs() - has the sender begun to fill the next cell? A plain cell is complete
 *  then; a streamed one may not be */
static inline bool abi_lane_stirs(const struct abi_lane_rx *rx)
{
	struct abi_cell *cell = abi_lane_cell(rx->memory, rx->head);
	uint64_t first = atomic_load_explicit(&cell->word[0], memory_order_relaxed);

	return abi_record_lap_of(first) == abi_lane_lap(rx->head);
}

/** abi_lane_look() - the record at @position: its headers, and the payload that
 *  is not in bulk; NULL: none yet */
static inline const struct abi_cell *abi_lane_look(struct abi_lane_rx *rx, uint32_t position,
						   uint64_t word[3])
{
	struct abi_cell *cell = abi_lane_cell(rx->memory, position);
	uint8_t lap = abi_lane_lap(position);

	word[0] = atomic_load_explicit(&cell->word[0], memory_order_acquire);
	if (abi_record_lap_of(word[0]) != lap)
		return NULL;
	word[1] = atomic_load_explicit(&cell->word[1], memory_order_relaxed);
	word[2] = atomic_load_explicit(&cell->word[2], memory_order_relaxed);
	if (abi_record_has(word, ABI_RECORD_STREAM))
		return abi_cell_streamed(cell, lap, word, &rx->whole);
	return cell;
}

/** abi_lane_next() - the record that waits, as abi_lane_look() */
static inline const struct abi_cell *abi_lane_next(struct abi_lane_rx *rx, uint64_t word[3])
{
	return abi_lane_look(rx, rx->head, word);
}

/** abi_lane_waiting() - is there a record to read? */
static inline bool abi_lane_waiting(const struct abi_lane_rx *rx)
{
	struct abi_lane_rx look = *rx;
	uint64_t word[3];

	return abi_lane_next(&look, word) != NULL;
}

/** abi_lane_join() - the payload of a split record in one piece
 * @first: the part in the cell; @offset: of the other part, from the cell
 * Return: valid until the next call for @rx; NULL: @offset is not that of a split record
 */
static inline const uint8_t *abi_lane_join(struct abi_lane_rx *rx, const uint8_t *first,
					   uint32_t offset)
{
	offset ^= ABI_BULK_SPLIT;
	if (offset > ABI_LANE_BULK - ABI_SPLIT_LINE)
		return NULL;
	memcpy(rx->joined, first, ABI_SPLIT_BYTES);
	memcpy(rx->joined + ABI_SPLIT_BYTES, rx->memory->bulk + offset, ABI_SPLIT_LINE);
	return rx->joined;
}

static inline void abi_lane_release(struct abi_lane_rx *rx)
{
	if (rx->released == rx->head)
		return;
	rx->released = rx->head;
	atomic_store_explicit(&rx->memory->head, rx->head, memory_order_release);
}

/** abi_lane_consumed() - the next @n records have been processed
 * @now: release their cells at once; else this happens when a quarter of the cells
 *       are consumed, or by abi_lane_release()
 */
static inline void abi_lane_consumed(struct abi_lane_rx *rx, uint32_t n, bool now)
{
	rx->head += n;
	if (now || rx->head - rx->released > ABI_LANE_CELLS / 4)
		abi_lane_release(rx);
}

/*
 * ABI_CMD_RESOLVE on the uverbs socket: is there a lane for this flow? The
 * answer carries, when the lane is new to the sender, its memfd and its doorbell.
 */
#define ABI_CMD_RESOLVE 0x5f00u

struct abi_resolve {
	uint32_t port_num;
	uint32_t dest_qpn;
	uint16_t dlid, pkey;
	uint8_t sl, reserved[3];
};

struct abi_resolve_resp {
	uint32_t lane;	/* ABI_NO_LANE: the flow takes the packet path */
	uint32_t flow;	/* index of its counts */
	uint32_t epoch; /* the answer is valid during this route epoch */
	uint32_t owner; /* of the destination QP: as in struct abi_lane_event; 0: unknown */
	uint32_t mtu_bytes; /* longer payloads take the packet path; softibd drops them */
};

/*
 * ABI_CMD_CONNECT: IB_USER_VERBS_CMD_MODIFY_QP of a QP that goes to RTR and, if that
 * succeeds, ABI_CMD_RESOLVE of its flow, in one exchange. struct ib_uverbs_modify_qp and struct
 * abi_resolve; answered as ABI_CMD_RESOLVE is. A flow that cannot be resolved has no lane.
 */
#define ABI_CMD_CONNECT 0x5f0du

/** struct abi_flow_answer - the answer @resp to ABI_CMD_RESOLVE of @key, which @program has not asked
 *  yet (abi/ahead.h) */
struct abi_flow_answer {
	uint32_t program; /* abi_context_resp.program */
	struct abi_resolve key;
	struct abi_resolve_resp resp;
};

/**
 * struct abi_lane_event - a message on ABI_FD_LANES
 *
 * LANE_IN carries the memfd and the doorbell. A program that has no descriptors or
 * memory for a lane, also for one from an answer to ABI_CMD_RESOLVE, sends
 * LANE_REFUSED with the lane's number: softibd ends the lane and offers the program
 * no other one for a while. A program whose QPs received datagrams with wrong Q_Keys
 * sends LANE_BAD_QKEY. It sends the next one only after softibd has confirmed this
 * one with the same kind, so that a sender of many wrong Q_Keys does not wake softibd
 * for each of them.
 */
struct abi_lane_event {
	uint32_t kind; /* enum abi_lane_kind */
	uint32_t lane;
	uint16_t slid, slid_mask; /* LANE_IN: the source LIDs that its packets may have */
	uint16_t pkey;		  /* ... and their P_Key */
	uint8_t sl, reserved;
	uint32_t owner; /* LANE_IN: the number of the program that sends, not 0 */
	/* --- LANE_BAD_QKEY: how many since the last one; the last of them was from slid --- */
	uint32_t count, qkey, src_qpn, dest_qpn;
};

enum abi_lane_kind {
	ABI_LANE_IN = 1,   /* a new lane to receive from */
	ABI_LANE_IN_GONE,  /* its sender is gone: read the rest and unmap it */
	ABI_LANE_OUT_GONE, /* its receiver is gone: stop sending */
	ABI_LANE_REFUSED,  /* to softibd: no descriptor or memory for it */
	ABI_LANE_IN_CUT,   /* its sender's port has lost the LID or the P_Key: unmap it
			      without reading the rest */
	ABI_LANE_CLOSED,   /* the last message: softibd ends the context and has reported
			      why; a socket closed without it means that softibd died */
	ABI_LANE_BAD_QKEY, /* to softibd, and back as its confirmation */
	ABI_LANE_PEER,	   /* no lane, but a socket: of a program that shares our objects and
			      asks for accesses to our memory (abi/share.h) */
};

#endif
