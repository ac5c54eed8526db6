/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The limits: each transfer written by hand over shared memory, without verbs.
 * A test measures one figure in some tens of milliseconds, between this
 * process and a child, each on a core of its own.
 */
#ifndef SOFTIB_BENCH_BARE_H
#define SOFTIB_BENCH_BARE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/types.h"
#include "../measure.h"

#define LINE 64u /* bytes of a cache line */

/** struct bare_test - one figure; @size and @option mean what @run takes them for */
struct bare_test {
	const char *name, *unit;
	double (*run)(const struct bare_test *t);
	size_t size;
	unsigned option;
};

/* One table per file, each ended by a row without a name. */
extern const struct bare_test line_tests[], ring_tests[], copy_tests[], wake_tests[],
	memfd_tests[], tcp_tests[];

/** struct duo - two processes and what both map */
struct duo {
	const struct bare_test *test;
	void *mem;   /* shared, populated, page-aligned, zero */
	int pipe[2]; /* eventfds: [0] wakes the timed side, [1] its peer */
};

/**
 * duo_run() - run a test's two sides, each on its core
 * @bytes: of shared memory to give them
 * @timed: runs here; what it returns is the figure
 * @peer:  runs in a child, which must end by itself when @timed has ended
 */
double duo_run(const struct bare_test *t, size_t bytes, double (*timed)(struct duo *),
	       void (*peer)(struct duo *));

/** bare_alloc() - populated memory of this process alone; never NULL */
void *bare_alloc(size_t bytes);

/** bare_shared() - the same, shared with children */
void *bare_shared(size_t bytes);

/** bare_wait() - spin until *@word is @value: no pause, so that no time is lost */
static inline void bare_wait(_Atomic uint64_t *word, uint64_t value)
{
	while (atomic_load_explicit(word, memory_order_acquire) != value)
		;
}

static inline void bare_store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

#endif
