/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's slots for windows: an entry for each pair of QP and R_Key in use.
 * Everything here is protected by the engine's lock.
 *
 * States of a slot
 *   SLOT_COUNTING  requests are sent as packets, and counted
 *   SLOT_ASKED     the peer was asked for a grant
 *   SLOT_GRANTED   the peer's memory may be used while the route epoch and the
 *                  tokens are those of the grant
 */
#ifndef SOFTIB_ENGINE_WINDOW_SLOTS_H
#define SOFTIB_ENGINE_WINDOW_SLOTS_H

#include <string.h>

#include "engine/private.h"
#include "engine/window.h"

#define SLOTS	   512	 /* a power of two */
#define SLICE_BYTES (256u << 10) /* copied between two releases of the lock */
#define ASK_AT	   2	 /* uses of a key before the peer is asked for a grant */
#define ASK_LATEST 65536 /* the same after many denials */

enum slot_state { SLOT_COUNTING, SLOT_ASKED, SLOT_GRANTED };

/* how a request uses a slot; SLOT_USES: it does not, no window performs it */
enum slot_use { SLOT_WRITES, SLOT_READS, SLOT_ATOMICS, SLOT_USES };

/* the right that each use needs */
static const int slot_right[SLOT_USES] = {
	[SLOT_WRITES] = IBV_ACCESS_REMOTE_WRITE,
	[SLOT_READS] = IBV_ACCESS_REMOTE_READ,
	[SLOT_ATOMICS] = IBV_ACCESS_REMOTE_ATOMIC,
};

struct slot {
	struct eng_grant g; /* g.access is 0 unless the state is SLOT_GRANTED */
	/* the longest request that the fast path (window_fast.h) takes, which is not longer than
	 * the grant; 0: none */
	uint32_t fast_bytes[SLOT_USES];
	struct abi_window_count *count;
	uint32_t mtu_bytes;
	uint8_t state; /* enum slot_state */
	uint32_t uses, ask_at;
};

struct eng_windows {
	struct eng_window_config cfg;
	struct slot slot[SLOTS];
	uint32_t next_token;
	uint64_t token_used[ABI_WINDOW_TOKENS / 64];
};

static inline struct slot *slot_of(struct eng_windows *w, uint32_t qpn, uint32_t rkey)
{
	uint32_t hash = qpn * 0x9e3779b1u ^ rkey * 0x85ebca6bu;

	return &w->slot[hash >> 16 & (SLOTS - 1)];
}

static inline bool is_for(const struct slot *s, uint32_t qpn, uint32_t rkey)
{
	return s->g.rkey == rkey && s->g.qpn == qpn;
}

static inline void start_counting(struct slot *s, uint32_t ask_at)
{
	s->state = SLOT_COUNTING;
	s->g.access = 0;
	memset(s->fast_bytes, 0, sizeof(s->fast_bytes));
	s->uses = 0;
	s->ask_at = MIN(ask_at, (uint32_t)ASK_LATEST);
}

/** eng_slot_count_use() - count a request that is sent as packets, and ask the peer for a grant
 *  after ASK_AT of them */
void eng_slot_count_use(const struct eng_qp *qp, struct slot *s, uint64_t va, uint32_t length_bytes);

/** eng_window_hold() - hold the queue of @qp: requests that have not begun wait, so that a window
 *  can perform them */
void eng_window_hold(struct eng_qp *qp);

/** eng_window_add() - add to a counter that only we write and others read */
static inline void eng_window_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

#endif
