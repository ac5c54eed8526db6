/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A lane: the shortcut from one program to another, past softibd, for packets
 * whose way through the fabric is clean. Memory that both map, written by the
 * sender but for two lines:
 *
 *   flow[]   the sender's counts by flow, which softibd adds to the counters of
 *            every port on the flow's way
 *   head     the receiver's: cells it has read, given back now and then
 *   asleep   the receiver's: ring its doorbell. Nobody else writes this line,
 *            so that a sender's look at it costs nothing
 *   cell[]   a ring of records, one cache line each: headers in host order and
 *            up to ABI_CELL_BYTES of extended headers and payload
 *   bulk[]   a ring of longer payloads, in the order of their records: a narrow
 *            one, or all of bulk[] where that is faster
 *
 * A record stands for one packet or for a segment of many. Its cell says itself
 * whether it is valid (cell.h): a message moves one cache line. The room of a
 * payload is given back with its cell: only the sender knows where it ended
 * (abi_lane_tx.bulk_end).
 *
 * The wide ring is larger than the caches that a core has for itself: lines that come
 * round have left them for the cache that the cores share, and neither core waits for
 * the other's cache. The narrow ring leaves the lines, and what they are copied from and
 * to, where they are. Which one is faster depends on the processor and on the sizes; the
 * sender finds out (src/engine/lane_copy.c). Most lanes carry little, and touch no more
 * than ABI_LANE_NARROW.
 *
 * The receiver believes nothing: it reads each field once and checks it; a
 * sender that writes nonsense harms what it sends. The sender believes nothing
 * of head but that it moves on, no farther than what was sent.
 *
 * Sleeping: a receiver sets `asleep`, makes sure that senders see it, looks at
 * its cells once more and sleeps. A sender looks at `asleep` after it has
 * published, and rings. Between the two stands a full fence; or none when both
 * processes have membarrier(2): then the one who sleeps pays for both.
 *
 * Memory order, on any processor: word 0 of a cell is stored with release, behind the cell's
 * other bytes and its payload in bulk, and loaded with acquire before either is read. `head`
 * is stored with release, behind the receiver's reads of what it gives back, and loaded with
 * acquire before the sender overwrites it. `asleep` and a cell's word 0 are the two sides of
 * a store-then-load race, which no pair of these decides: hence the fence above. Streamed
 * cells, whose stores are ordered by nothing, exist on x86 alone (cell.h).
 *
 * Each lane has a doorbell of its own (abi/doorbell.h) that its sender keeps; the
 * receiver gets it once and has it in an epoll, edge-triggered. Whatever a
 * sender does to it wakes or fails to wake the receiver for that sender's
 * packets and nobody else's; and whatever a receiver does to it, a sender that
 * rings it does not wait.
 *
 * A flow is (source port, DLID, destination QPN, SL, P_Key) and holds while
 * abi_devpage.route_epoch is what it was when softibd resolved it. A lane is
 * for one P_Key of its sender's port: softibd tells the receiver which, and
 * ends the lane when the port loses it, or its LID. Order
 * between a lane and the ring to softibd is kept by rule: a sender goes from
 * one to the other only when the one it leaves is read as far as it had filled
 * it, and a receiver that finds a record looks at the ring from softibd, and
 * reads what is there, before it reads the record.
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

/* Return: false when the receiver gave nothing back (or lies) */
static inline bool abi_lane_refresh(struct abi_lane_tx *tx)
{
	uint32_t head = atomic_load_explicit(&tx->memory->head, memory_order_acquire);

	if (head == tx->head_seen || head - tx->head_seen > tx->tail - tx->head_seen)
		return false;
	tx->head_seen = head;
	tx->bulk_head = tx->bulk_end[(head - 1) & (ABI_LANE_CELLS - 1)] & ~(ABI_BULK_ALIGN - 1);
	return true;
}

/** abi_lane_knows_cell() - is there room for a record by what is known? */
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

/** abi_lane_room() - bytes that a payload may have which needs @least and would
 *  like @want; less than @least: there is no room now */
static inline uint32_t abi_lane_room(struct abi_lane_tx *tx, uint32_t least, uint32_t want)
{
	uint32_t room = abi_lane_contiguous(tx, least);

	if (room < want && abi_lane_refresh(tx))
		room = abi_lane_contiguous(tx, least);
	return room < ABI_SEGMENT_BYTES ? room : ABI_SEGMENT_BYTES;
}

/** abi_lane_fits() - is there room for a payload of @len, in one piece? */
static inline bool abi_lane_fits(struct abi_lane_tx *tx, uint32_t len)
{
	uint32_t at = tx->bulk_tail & (tx->bulk_bytes - 1), used = tx->bulk_tail - tx->bulk_head;

	return likely(MAX(at, used) + len <= tx->bulk_bytes) || abi_lane_room(tx, len, len) >= len;
}

/* The ring came round: it widens at the end of the narrow one, where the wide one goes
 * on, and narrows at the end of the wide one, so that what is under way lies in the same
 * place of either. Return: where the tail is in the ring */
static inline uint32_t abi_lane_turn(struct abi_lane_tx *tx)
{
	bool wide = tx->wants_wide;

	if ((tx->bulk_tail & (ABI_LANE_BULK - 1)) == (wide ? ABI_LANE_NARROW : 0))
		tx->bulk_bytes = wide ? ABI_LANE_BULK : ABI_LANE_NARROW;
	return tx->bulk_tail & (tx->bulk_bytes - 1);
}

/** abi_lane_take_bulk() - @len bytes, for which abi_lane_room() said yes.
 *  Return: their place */
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

/** abi_lane_put_bulk() - the payload of @cell goes into bulk: @len bytes, for
 *  which there is room, and ABI_RECORD_BULK. Return: where to */
static inline uint8_t *abi_lane_put_bulk(struct abi_lane_tx *tx, struct abi_cell *cell,
					 uint32_t len)
{
	uint32_t bulk = abi_lane_take_bulk(tx, len);

	memcpy(cell->data + ABI_CELL_BULK, &bulk, sizeof(bulk));
	return tx->memory->bulk + bulk;
}

/** abi_lane_publish_words() - @cell, the one at tail, is filled but for its
 *  headers; their lap, still 0, is set here */
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

/** abi_lane_may_stream() - may the next record be a streamed one, as far as its cell goes? */
static inline bool abi_lane_may_stream(const struct abi_lane_tx *tx)
{
	return !(tx->bulk_end[tx->tail & (ABI_LANE_CELLS - 1)] & ABI_LANE_PLAIN);
}

/** abi_lane_clear() - the last record that was published, a plain one with no more than
 *  @bytes of data, would have been streamed but for its cell: let the next be */
static inline void abi_lane_clear(struct abi_lane_tx *tx, uint32_t bytes)
{
	uint32_t at = tx->tail - 1;

	if (abi_cell_clear(abi_lane_cell(tx->memory, at), abi_lane_lap(at), bytes))
		tx->bulk_end[at & (ABI_LANE_CELLS - 1)] = tx->bulk_tail;
}

/** abi_lane_publish_stream() - as abi_lane_publish_words(), a record of one packet with
 *  its data, as abi_cell_stream(). Context: abi_lane_may_stream() said yes */
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

/** abi_lane_must_ring() - the same. Return: true: the caller, and nobody else, wakes it */
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

/** abi_lane_stirs() - has the next cell been filled? Or half filled, if it is a streamed one */
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

static inline void abi_lane_release(struct abi_lane_rx *rx)
{
	if (rx->released == rx->head)
		return;
	rx->released = rx->head;
	atomic_store_explicit(&rx->memory->head, rx->head, memory_order_release);
}

/** abi_lane_consumed() - done with @n records; their room is given back by
 *  abi_lane_release(), or when @now or a quarter of the cells wait */
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
	uint32_t lane;	/* ABI_NO_LANE: by softibd only */
	uint32_t flow;	/* index of its counts */
	uint32_t epoch; /* the answer holds while this is the route epoch */
	uint32_t mtu_bytes; /* longer payloads go by softibd, who drops them */
};

/** struct abi_lane_event - on ABI_FD_LANES; LANE_IN carries the
 *  memfd and the doorbell. A program that could not take them, those of an answer
 *  to ABI_CMD_RESOLVE as well, says LANE_REFUSED, with the id alone: softibd
 *  ends the lane and gives the program no other for a while. One to whose QPs
 *  datagrams with wrong Q_Keys came says LANE_BAD_QKEY, and waits for the same
 *  word, the id alone, before it says so again: whoever sends many wakes nobody
 *  for each */
struct abi_lane_event {
	uint32_t kind; /* enum abi_lane_kind */
	uint32_t lane;
	uint16_t slid, slid_mask; /* LANE_IN: whose packets may come by it */
	uint16_t pkey;		  /* ... and of which partition */
	uint8_t sl, reserved;
	/* --- LANE_BAD_QKEY: so many since the last time, and the last of them,
	 * from the LID slid --- */
	uint32_t count, qkey, src_qpn, dest_qpn;
};

enum abi_lane_kind {
	ABI_LANE_IN = 1,   /* a new lane to receive from */
	ABI_LANE_IN_GONE,  /* its sender is gone: read what is in it, unmap */
	ABI_LANE_OUT_GONE, /* its receiver is gone: send no more */
	ABI_LANE_REFUSED,  /* to softibd: no descriptor or memory for it */
	ABI_LANE_IN_CUT,   /* its sender's port has the LID or the P_Key no more: what
			      is in it is not to be read, unmap */
	ABI_LANE_CLOSED,   /* the last news: softibd ends the context and has said
			      why; a close without it is softibd's death */
	ABI_LANE_BAD_QKEY, /* to softibd, and back */
};

#endif
