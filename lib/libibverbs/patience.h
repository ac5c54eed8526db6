/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When does a poller that finds nothing give its core away? Where cores are
 * free, after a while: a yield costs as much as ten polls and gains nothing.
 * Where a yield lets somebody else run, very soon: the peer, or softibd, may
 * need this core to answer. A yield that took long tells which it is.
 */
#ifndef SOFTIB_LIBIBVERBS_PATIENCE_H
#define SOFTIB_LIBIBVERBS_PATIENCE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define PATIENCE_ALONE 200 /* empty polls in a row, a few microseconds */
#define PATIENCE_SHARED 2
#define PATIENCE_RAN_NS 1000 /* a yield that took longer let somebody run */

/** struct patience - of one poller; zeros are sound, races do not matter */
struct patience {
	unsigned empty; /* polls in a row */
	unsigned limit; /* 0: PATIENCE_ALONE */
};

static inline uint64_t patience_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline void patience_found(struct patience *p)
{
	p->empty = 0;
}

/** patience_yield() - Return: true when somebody else ran meanwhile */
static inline bool patience_yield(void)
{
	uint64_t start = patience_clock_ns();

	sched_yield();
	return patience_clock_ns() - start > PATIENCE_RAN_NS;
}

/** patience_empty() - one more poll found nothing: may yield the core. Return:
 *  true when it did */
static inline bool patience_empty(struct patience *p)
{
	if (++p->empty < (p->limit ? p->limit : PATIENCE_ALONE))
		return false;
	p->limit = patience_yield() ? PATIENCE_SHARED : PATIENCE_ALONE;
	return true;
}

#endif
