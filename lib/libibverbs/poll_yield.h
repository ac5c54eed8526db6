/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When does a poller that finds nothing yield its core? Where cores are free,
 * after a while: a yield costs as much as ten polls and gains nothing. Where a
 * yield lets somebody else run, very soon: the peer, or softibd, may need this core
 * to answer. A yield that took long tells which it is.
 */
#ifndef SOFTIB_LIBIBVERBS_POLL_YIELD_H
#define SOFTIB_LIBIBVERBS_POLL_YIELD_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define POLL_YIELD_ALONE 200 /* empty polls in a row: a few microseconds */
#define POLL_YIELD_SHARED 2
#define POLL_YIELD_RAN_NS 1000 /* a yield that took longer let somebody run */

/** struct poll_yield - of one poller; zeros are sound, races do not matter */
struct poll_yield {
	unsigned empty; /* polls in a row */
	unsigned limit; /* 0: POLL_YIELD_ALONE */
};

static inline uint64_t poll_yield_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/** poll_yield_found() - a poll found something */
static inline void poll_yield_found(struct poll_yield *y)
{
	y->empty = 0;
}

/** yield_core() - Return: true when somebody else ran meanwhile */
static inline bool yield_core(void)
{
	uint64_t start = poll_yield_clock_ns();

	sched_yield();
	return poll_yield_clock_ns() - start > POLL_YIELD_RAN_NS;
}

/** poll_yield_empty() - one more poll found nothing: may yield the core. Return:
 *  true when it did */
static inline bool poll_yield_empty(struct poll_yield *y)
{
	if (++y->empty < (y->limit ? y->limit : POLL_YIELD_ALONE))
		return false;
	y->limit = yield_core() ? POLL_YIELD_SHARED : POLL_YIELD_ALONE;
	return true;
}

#endif
