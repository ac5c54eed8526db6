/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A cell of a lane (lane.h) is a cache line with one record: the headers of a packet
 * or of a segment of many packets, followed by up to ABI_CELL_BYTES of data.
 *
 * A plain record is stored word by word. Word 0 is stored last and has the lap of the
 * ring: the number of times that the sender has filled the ring. A cell is valid if it
 * has the lap that its reader has reached. The sender's first store takes the line from
 * the core that read it, and a core takes one line at a time: 60 ns for each record if
 * the two cores share a cache, 160 ns if not. No other method has a lower latency for a
 * single record.
 *
 * In a stream of records throughput matters more, and a *streamed* cell is cheaper: the
 * whole line is stored past the caches, so that no core has to give it up. The reader
 * waits half a microsecond for the first such cell and hardly at all for the ones that
 * follow.
 *
 * Non-temporal stores become visible in any order, but the 16 bytes of each become
 * visible together. Each store therefore has the lap in it:
 *
 *   bytes  0  word 0, with the lap; word 1, with ABI_RECORD_STREAM
 *         16  word 2, with the lap, and in the place of `packets`, which is 1, the number
 *             of the two following stores that have data; 8 bytes of data
 *         32  15 bytes of data, the lap
 *         48  15 bytes of data, the lap
 *
 * The previous contents of a cell must not have these laps by chance, and a payload may
 * have any bytes. So a cell is streamed only if it was streamed the last time, if it is
 * new, or if it was *cleared*: if its plain record was short enough, and the sender wrote
 * that record's lap to the places of the laps. A plain record has 1 in the place of the
 * second lap, and therefore does not clear a cell for lap 1.
 *
 * A processor may keep some of these stores in its write-combining buffers until the
 * next interrupt or fence. The barrier of a receiver that goes to sleep (lane.h) makes
 * them visible, too.
 */
#ifndef SOFTIB_ABI_CELL_H
#define SOFTIB_ABI_CELL_H

#include <stdatomic.h>
#include <string.h>

#include "base/copy.h"

#define ABI_CELL_BYTES 40u
#define ABI_RECORD_QKEY_BYTES 4u /* the part of a DETH that a record has */

enum abi_record_flags {
	ABI_RECORD_ACK_REQ = 1 << 0,
	ABI_RECORD_SOLICITED = 1 << 1,
	ABI_RECORD_ACK = 1 << 2,  /* ack_psn is an acknowledgement */
	ABI_RECORD_GRH = 1 << 3,  /* 40 bytes of GRH stand before the payload */
	ABI_RECORD_BULK = 1 << 4, /* the payload is in bulk[] */
	ABI_RECORD_STREAM = 1 << 5, /* used only in cells: the cell is streamed */
	ABI_RECORD_UNMIGRATED = 1 << 6, /* BTH:MigReq is clear (17.2.8) */
};

/** struct abi_record - the headers of a packet or segment, unpacked; in a cell
 *  they are three words (abi_record_pack) */
struct abi_record {
	uint8_t lap, opcode, flags, sl, dlid_path_bits;
	uint16_t slid, pkey, packets;
	uint32_t psn, ack_psn, dest_qpn, src_qpn;
	uint32_t length_bytes; /* of payload, with a GRH's 40 */
};

struct abi_cell {
	_Atomic uint64_t word[3]; /* struct abi_record */
	/* The extended headers as on the wire (of a DETH only the Q_Key, in host order),
	 * followed by the payload. With ABI_RECORD_BULK, the payload is in bulk[], and the
	 * last four bytes have its offset. If this has ABI_BULK_SPLIT, the first
	 * ABI_SPLIT_BYTES of the payload are here, and only the others are in bulk[]. */
	uint8_t data[ABI_CELL_BYTES];
};
_Static_assert(sizeof(struct abi_cell) == 64, "a cell is a cache line");

#define ABI_CELL_BULK (ABI_CELL_BYTES - 4) /* where data has the payload's offset in bulk[] */

/*
 * A payload that is a little longer than a cache line may be split between its cell and one
 * line of bulk[]: the message then moves two cache lines instead of three.
 */
#define ABI_SPLIT_BYTES 32u /* in the cell, behind at most four bytes of extended headers */
#define ABI_SPLIT_LINE 64u  /* at most, in bulk[] */
#define ABI_BULK_SPLIT 0x80000000u /* with it an offset is none in bulk[] */

/*
 * The layout of the three words. No other place knows it: whoever makes or reads a
 * record uses the functions below. Lowest bits first:
 *
 *   0  psn 24, lap 8, dest_qpn 24, opcode 8
 *   1  src_qpn 24, flags 8, ack_psn 24, dlid_path_bits 8
 *   2  length_bytes 18, packets 10, sl 4, slid 16, pkey 16
 */
#define ABI_RECORD_QPN_MASK 0xffffffu /* of a PSN, too */
#define ABI_RECORD_LENGTH_BITS 18
#define ABI_RECORD_PACKETS_MASK 0x3ffu
#define ABI_RECORD_PKEY_AT 48

/** abi_record_flags() - @flags (enum abi_record_flags) at their place in word 1 */
static inline uint64_t abi_record_flags(unsigned flags)
{
	return (uint64_t)flags << 24;
}

/** abi_record_ack() - word 1's part of an acknowledgement of all up to @psn */
static inline uint64_t abi_record_ack(uint32_t psn)
{
	return abi_record_flags(ABI_RECORD_ACK) | (uint64_t)psn << 32;
}

/** abi_record_lap() - @lap at its place in word 0 */
static inline uint64_t abi_record_lap(uint8_t lap)
{
	return (uint32_t)lap << 24;
}

/** abi_record_opcode() - @opcode at its place in word 0 */
static inline uint64_t abi_record_opcode(uint8_t opcode)
{
	return (uint64_t)opcode << 56;
}

/** abi_record_packets() - @packets at their place in word 2 */
static inline uint64_t abi_record_packets(uint32_t packets)
{
	return (uint64_t)packets << ABI_RECORD_LENGTH_BITS;
}

/** abi_record_pkey() - @pkey at its place in word 2 */
static inline uint64_t abi_record_pkey(uint16_t pkey)
{
	return (uint64_t)pkey << ABI_RECORD_PKEY_AT;
}

/** abi_record_pack() - the words of @r */
static inline void abi_record_pack(const struct abi_record *r, uint64_t word[3])
{
	word[0] = r->psn | abi_record_lap(r->lap) | (uint64_t)r->dest_qpn << 32 |
		  abi_record_opcode(r->opcode);
	word[1] = r->src_qpn | abi_record_flags(r->flags) |
		  (uint64_t)(r->ack_psn | (uint32_t)r->dlid_path_bits << 24) << 32;
	word[2] = r->length_bytes | abi_record_packets(r->packets) |
		  (uint32_t)r->sl << 28 | (uint64_t)r->slid << 32 | abi_record_pkey(r->pkey);
}

/* One field each, for a reader who does not need them all */

static inline uint8_t abi_record_lap_of(uint64_t first_word)
{
	return (uint8_t)(first_word >> 24);
}

static inline bool abi_record_has(const uint64_t word[3], unsigned flags)
{
	return word[1] & abi_record_flags(flags);
}

static inline uint32_t abi_record_psn(const uint64_t word[3])
{
	return word[0] & ABI_RECORD_QPN_MASK;
}

static inline uint32_t abi_record_dest_qpn(const uint64_t word[3])
{
	return word[0] >> 32 & ABI_RECORD_QPN_MASK;
}

static inline uint32_t abi_record_ack_psn(const uint64_t word[3])
{
	return word[1] >> 32 & ABI_RECORD_QPN_MASK;
}

static inline uint32_t abi_record_bytes(const uint64_t word[3])
{
	return word[2] & ((1u << ABI_RECORD_LENGTH_BITS) - 1);
}

static inline uint16_t abi_record_pkey_of(const uint64_t word[3])
{
	return (uint16_t)(word[2] >> ABI_RECORD_PKEY_AT);
}

/* Groups of fields that do not change from one record of a QP's to the next */

/** abi_record_target() - destination QP and opcode */
static inline uint32_t abi_record_target(const uint64_t word[3])
{
	return (uint32_t)(word[0] >> 32);
}

/** abi_record_is() - are destination QP, opcode and PSN these? */
static inline bool abi_record_is(const uint64_t word[3], uint32_t target, uint32_t psn)
{
	return (word[0] & ~abi_record_lap(0xff)) == ((uint64_t)target << 32 | psn);
}

/** abi_record_source() - word 1 without @flags, and, if ABI_RECORD_ACK is among them,
 *  without ack_psn */
static inline uint64_t abi_record_source(const uint64_t word[3], unsigned flags)
{
	uint64_t ack_psn = flags & ABI_RECORD_ACK ? (uint64_t)ABI_RECORD_QPN_MASK << 32 : 0;

	return word[1] & ~(abi_record_flags(flags) | ack_psn);
}

/** abi_record_route() - packets, SL, SLID and P_Key: word 2 without the length */
static inline uint64_t abi_record_route(const uint64_t word[3])
{
	return word[2] >> ABI_RECORD_LENGTH_BITS;
}

static inline void abi_record_unpack(const uint64_t word[3], struct abi_record *r)
{
	r->psn = abi_record_psn(word);
	r->lap = abi_record_lap_of(word[0]);
	r->dest_qpn = abi_record_dest_qpn(word);
	r->opcode = (uint8_t)(word[0] >> 56);
	r->src_qpn = word[1] & ABI_RECORD_QPN_MASK;
	r->flags = (uint8_t)(word[1] >> 24);
	r->ack_psn = abi_record_ack_psn(word);
	r->dlid_path_bits = (uint8_t)(word[1] >> 56);
	r->length_bytes = abi_record_bytes(word);
	r->packets = word[2] >> ABI_RECORD_LENGTH_BITS & ABI_RECORD_PACKETS_MASK;
	r->sl = word[2] >> 28 & 0xf;
	r->slid = (uint16_t)(word[2] >> 32);
	r->pkey = abi_record_pkey_of(word);
}

/* --- streamed --- */

#define ABI_STREAM_FIRST 8u  /* bytes of data behind word 2 */
#define ABI_STREAM_PIECE 15u /* ... and in each of two pieces more */

#ifdef __SSE2__

#define ABI_STREAM_BYTES (ABI_STREAM_FIRST + 2 * ABI_STREAM_PIECE)

/* the first of @left bytes, and the lap */
static inline __m128i abi_stream_piece(const uint8_t *from, uint32_t left, uint8_t lap)
{
	uint64_t low = load_few(from, MIN(left, 8u));
	uint64_t high = left > 8 ? load_few(from + 8, MIN(left, ABI_STREAM_PIECE) - 8) : 0;

	return _mm_set_epi64x((long long)(high | (uint64_t)lap << 56), (long long)low);
}

/* the last two pieces. Return: how many of them have data */
noinline __attribute__((unused)) static uint64_t
abi_stream_rest(struct abi_cell *cell, uint8_t lap, const uint8_t *from, uint32_t left)
{
	__m128i *to = (__m128i *)cell + 2;
	uint32_t behind = left - MIN(left, ABI_STREAM_PIECE);

	_mm_stream_si128(to + 1, abi_stream_piece(from + ABI_STREAM_PIECE, behind, lap));
	_mm_stream_si128(to, abi_stream_piece(from, left, lap));
	return behind ? 2 : 1;
}

/**
 * abi_cell_stream() - fill @cell in one go, past the caches
 * @word: of a record of one packet, lap 0
 * @first, @rest: the data: 8 bytes, and @left more: at most two pieces
 *
 * Context: @cell is a lane's, or aligned as those are. A store before it that has to be
 * seen first, needs a fence between.
 */
static inline void abi_cell_stream(struct abi_cell *cell, uint8_t lap, const uint64_t word[3],
				   uint64_t first, const uint8_t *rest, uint32_t left)
{
	__m128i *to = (__m128i *)cell;
	uint64_t packets = lap;

	if (likely(!left)) {
		__m128i none = _mm_set_epi64x((long long)((uint64_t)lap << 56), 0);

		_mm_stream_si128(to + 3, none);
		_mm_stream_si128(to + 2, none);
	} else {
		packets |= abi_stream_rest(cell, lap, rest, left) << 8;
	}
	_mm_stream_si128(to + 1,
			 _mm_set_epi64x((long long)first,
					(long long)(word[2] ^ (packets ^ 1) << ABI_RECORD_LENGTH_BITS)));
	_mm_stream_si128(to, _mm_set_epi64x(
				     (long long)(word[1] | abi_record_flags(ABI_RECORD_STREAM)),
				     (long long)(word[0] | abi_record_lap(lap))));
}

/** abi_cell_clear() - @cell has a plain record of no more than @bytes of data. Return:
 *  false: it may not be streamed the next time */
static inline bool abi_cell_clear(struct abi_cell *cell, uint8_t lap, uint32_t bytes)
{
	if (bytes > ABI_STREAM_FIRST + ABI_STREAM_PIECE || (uint8_t)(lap + 1) == 1)
		return false;
	cell->data[ABI_STREAM_FIRST + ABI_STREAM_PIECE] = lap;
	cell->data[ABI_CELL_BYTES - 1] = lap;
	return true;
}

/* Return: false: a piece is not there yet */
static inline bool abi_cell_gather(const struct abi_cell *cell, uint8_t lap, unsigned pieces,
				   struct abi_cell *whole)
{
	const __m128i *from = (const __m128i *)cell + 2;
	uint8_t *to = whole->data + ABI_STREAM_FIRST;

	memcpy(whole->data, cell->data, ABI_STREAM_FIRST);
	for (unsigned i = 0; i < MIN(pieces, 2u); i++, to += ABI_STREAM_PIECE) {
		__m128i piece = _mm_load_si128(from + i);

		if (_mm_extract_epi16(piece, 7) >> 8 != lap)
			return false;
		memcpy(to, &piece, sizeof(piece));
	}
	return true;
}

/**
 * abi_cell_streamed() - a streamed cell as if it were none
 * @word: what it has, and what it then would have
 * @whole: for its data, where that is in pieces
 * Return: where the data is; NULL: not all is there yet
 */
static inline const struct abi_cell *abi_cell_streamed(const struct abi_cell *cell, uint8_t lap,
						       uint64_t word[3], struct abi_cell *whole)
{
	uint64_t packets = word[2] >> ABI_RECORD_LENGTH_BITS & ABI_RECORD_PACKETS_MASK;

	if (unlikely((uint8_t)packets != lap))
		return NULL;
	word[1] &= ~abi_record_flags(ABI_RECORD_STREAM);
	word[2] ^= (packets ^ 1) << ABI_RECORD_LENGTH_BITS;
	if (likely(!(packets >> 8)))
		return cell;
	return abi_cell_gather(cell, lap, (unsigned)(packets >> 8), whole) ? whole : NULL;
}

#else

#define ABI_STREAM_BYTES 0u

static inline void abi_cell_stream(struct abi_cell *cell, uint8_t lap, const uint64_t word[3],
				   uint64_t first, const uint8_t *rest, uint32_t left)
{
}

static inline bool abi_cell_clear(struct abi_cell *cell, uint8_t lap, uint32_t bytes)
{
	return false;
}

static inline const struct abi_cell *abi_cell_streamed(const struct abi_cell *cell, uint8_t lap,
						       uint64_t word[3], struct abi_cell *whole)
{
	return NULL;
}

#endif

#endif
