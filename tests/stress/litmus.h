/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the files of litmus share: see litmus.c. */
#ifndef SOFTIB_TESTS_STRESS_LITMUS_H
#define SOFTIB_TESTS_STRESS_LITMUS_H

#include <pthread.h>
#include <stdatomic.h>

#include "side.h"

#define SLOT_BYTES 16384
#define AREA_BYTES (2u << 20) /* of each script's memory, on both sides */
#define GRACE_S 30 /* a link may be down and a sweep under way */

struct script;

/* what both processes see, and only main writes but for the counts */
struct shared {
	_Atomic bool stop;
	_Atomic uint64_t rounds[16]; /* by script */
	_Atomic uint64_t adds;	     /* of all threads, done */
	_Atomic uint64_t swaps;
	_Atomic uint64_t lost;
	_Atomic unsigned ended; /* scripts that will add no more */
};

/* one thread's share of the work, on one side */
struct actor {
	const struct script *script;
	struct side *side;
	int me, fd;	/* fd: to the peer's actor of the same script */
	size_t base;
	struct side_qp q;
	struct rng rng;
	unsigned index;
	pthread_t thread;
};

struct script {
	const char *name;
	void (*run)(struct actor *a);
	struct side_options options;
};

extern struct shared *shared;
extern const char *node[2];

static inline bool over(void)
{
	return atomic_load_explicit(&shared->stop, memory_order_relaxed);
}

static inline void count(struct actor *a)
{
	atomic_fetch_add_explicit(&shared->rounds[a->index], 1, memory_order_relaxed);
}

static inline volatile _Atomic uint64_t *word(struct actor *a, size_t offset)
{
	return (volatile _Atomic uint64_t *)(a->side->buffer + a->base + offset);
}

/** must_hurry() - fail when @what has lasted longer than may be, @since then */
void must_hurry(struct actor *a, uint64_t since, const char *what);
/** part() - both sides leave a script together: nobody waits for one who is gone */
void part(struct actor *a);

/* where a script's memory is split: what arrives, and what is sent */
#define FROM (AREA_BYTES / 2)
/* bytes at the end of the buffer, on a page that is not the buffer's alone */
#define EDGE_PLACES 9
#define EDGE_BYTES  128
#define EDGE	    (EDGE_PLACES * EDGE_BYTES)

/* litmus_rc.c */
void mixture(struct actor *a);
void flag(struct actor *a);
void tail(struct actor *a);
void ways(struct actor *a);
/* litmus_sum.c */
void sum(struct actor *a);
/* litmus_lossy.c */
void lossy(struct actor *a);

#endif
