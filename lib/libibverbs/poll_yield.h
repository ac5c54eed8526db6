/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When a polling thread yields its core. A yield costs as much as ten polls. If a core
 * is free, it gains nothing, so the thread yields only after many empty polls. If the
 * peer or softibd needs this core to answer, it should yield very soon. The duration of
 * a yield tells the two cases apart: it is long if another thread ran.
 */
#ifndef SOFTIB_LIBIBVERBS_POLL_YIELD_H
#define SOFTIB_LIBIBVERBS_POLL_YIELD_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/types.h"

#define POLL_YIELD_ALONE 200 /* empty polls in a row: a few microseconds */
#define POLL_YIELD_SHARED 2
#define POLL_YIELD_RAN_NS 1000 /* in a longer yield another thread has run */

/** struct poll_yield - the state of one polling thread. All zeros are its initial state
 *
 *  Several threads that poll one CQ share it without a lock. Both words have relaxed order, since no
 *  other memory depends on them: what a thread has found by its poll is ordered by the poll itself.
 *  A load and the store behind it are not one step, so a count may be lost, or a thread may take
 *  another's limit. It then yields a few polls later or sooner, which costs time and changes no
 *  result. The words are atomic so that this is defined, and never read as a mixture.
 */
struct poll_yield {
	_Atomic unsigned empty; /* polls in a row */
	_Atomic unsigned limit; /* 0: POLL_YIELD_ALONE */
};

static inline uint64_t poll_yield_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return timespec_ns(&ts);
}

/** poll_yield_found() - a poll found something */
static inline void poll_yield_found(struct poll_yield *y)
{
	atomic_store_explicit(&y->empty, 0, memory_order_relaxed);
}

/** yield_core() - Return: true: another thread ran meanwhile */
static inline bool yield_core(void)
{
	uint64_t start = poll_yield_clock_ns();

	sched_yield();
	return poll_yield_clock_ns() - start > POLL_YIELD_RAN_NS;
}

/** poll_yield_empty() - a poll found nothing: yield the core if it is time to. Return:
 *  true: it has yielded */
static inline bool poll_yield_empty(struct poll_yield *y)
{
	unsigned empty = atomic_load_explicit(&y->empty, memory_order_relaxed) + 1;
	unsigned limit = atomic_load_explicit(&y->limit, memory_order_relaxed);

	atomic_store_explicit(&y->empty, empty, memory_order_relaxed);
	if (empty < (limit ? limit : POLL_YIELD_ALONE))
		return false;
	limit = yield_core() ? POLL_YIELD_SHARED : POLL_YIELD_ALONE;
	atomic_store_explicit(&y->limit, limit, memory_order_relaxed);
	return true;
}

#endif
