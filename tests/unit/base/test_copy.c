/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Copies into memory that somebody spins on: the last byte comes last, and once. */
#include "../test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/copy.h"

#define ROOM 96
#define ROUNDS 10000
#define SPINS 100

static void every_length_and_place(void **state)
{
	uint8_t from[ROOM], to[ROOM + 2], want[ROOM + 2];

	for (unsigned i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i + 1);
	for (size_t len = 0; len <= ROOM; len++) {
		memset(to, 0, sizeof(to));
		memset(want, 0, sizeof(want));
		memcpy(want + 1, from, len);
		copy_spun_on(to + 1, from, len);
		assert_memory_equal(to, want, sizeof(to));
	}
}

/* by each kernel */
static void kernels_at_every_place(void **state)
{
	uint8_t from[4 * ROOM], to[4 * ROOM], want[4 * ROOM];

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + 1);
	for (unsigned n = 0; n < 33 * 17; n++) {
		uint8_t *at = to + n % 33, *source = from + n / 33;

		for (size_t len = 0; len < 3 * ROOM; len += 1 + len / 5) {
			memset(want, 0, sizeof(want));
			memcpy(want + n % 33, source, len);
			for (enum copy_kernel k = 0; k < COPY_KERNELS; k++) {
				memset(to, 0, sizeof(to));
				copy_by(k, at, source, len);
				assert_memory_equal(to, want, sizeof(to));
			}
#ifdef __SSE2__
			memset(to, 0, sizeof(to)); /* where registers are shorter */
			copy_aligned((char *)at, (char *)source, len, COPY_AHEAD_CACHE, false);
			assert_memory_equal(to, want, sizeof(to));
#endif
		}
	}
}

/* One writes and says when it is through; the other spins on the last byte and
 * takes away what came, as soon as it sees it. */
struct race {
	size_t len;
	_Alignas(64) uint8_t to[ROOM];
	_Alignas(64) _Atomic unsigned taken; /* rounds */
};

static void spin(unsigned *n)
{
	if (++*n % SPINS == 0) /* one core is enough */
		sched_yield();
}

static void *taker(void *arg)
{
	struct race *r = arg;
	_Atomic uint8_t *last = (_Atomic uint8_t *)&r->to[r->len - 1];
	unsigned spins = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		while (!atomic_load_explicit(last, memory_order_acquire))
			spin(&spins);
		memset(r->to, 0, r->len);
		atomic_store_explicit(&r->taken, i + 1, memory_order_release);
	}
	return NULL;
}

__attribute__((unused)) static void what_was_taken_does_not_come_back(void **state)
{
	static const size_t lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 64};
	uint8_t from[ROOM], nothing[ROOM] = {0};
	unsigned spins = 0;
	struct race r = {0};
	pthread_t thread;

	memset(from, 0xff, sizeof(from));
	for (unsigned n = 0; n < sizeof(lengths) / sizeof(lengths[0]); n++) {
		r.len = lengths[n];
		atomic_store(&r.taken, 0);
		assert_int_equal(pthread_create(&thread, NULL, taker, &r), 0);
		for (unsigned i = 0; i < ROUNDS; i++) {
			copy_spun_on(r.to, from, r.len);
			while (atomic_load_explicit(&r.taken, memory_order_acquire) == i)
				spin(&spins);
			assert_memory_equal(r.to, nothing, r.len);
		}
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_place),
		cmocka_unit_test(kernels_at_every_place),
#ifndef __SANITIZE_THREAD__ /* the two race on purpose */
		cmocka_unit_test(what_was_taken_does_not_come_back),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
