/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Long payloads into a lane arrive whole by every copy method, and the cheapest method is chosen. */
#include "../test.h"

#include <stdlib.h>

#include "engine/private.h"

#define ROOM (70u << 10)
#define SPANS 2000 /* enough for each method to be tried again, and to be chosen */

static void all_bytes_arrive_in_every_way(void **state)
{
	static const uint32_t lengths[] = {0, 1, 100, 8191, 8192, 8193, 12345, 65535, 65536};
	uint8_t *from = malloc(ROOM), *to = aligned_alloc(64, ROOM), *want = malloc(ROOM);

	for (uint32_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned n = 0; n < 9 * 64; n++) {
		struct eng_copy c = {.method = (uint8_t)(n / 9 % ENG_COPY_METHODS)};
		uint32_t len = lengths[n % 9], at = n % 3 * 40, skew = n % 5;

		memset(to, 0, ROOM);
		memset(want, 0, ROOM);
		memcpy(want + at, from + skew, len);
		eng_copy(&c, to + at, from + skew, len);
		assert_memory_equal(to, want, ROOM);
	}
	free(from);
	free(to);
	free(want);
}

/* @spans, each of which costs what its method does. Return: how many went by @method */
static unsigned carry(struct eng_copy *c, unsigned spans, const uint64_t *cost_ns, unsigned method)
{
	unsigned n = 0;

	while (spans--) {
		n += c->method == method;
		eng_copy_note(c, cost_ns[c->method]);
	}
	return n;
}

static void all_cost(uint64_t *cost_ns, uint64_t ns)
{
	for (unsigned i = 0; i < ENG_COPY_METHODS; i++)
		cost_ns[i] = ns;
}

static void the_cheapest_way_is_in_use(void **state)
{
	uint64_t cost_ns[ENG_COPY_METHODS];

	for (unsigned method = 0; method < ENG_COPY_METHODS; method++) {
		struct eng_copy c;

		all_cost(cost_ns, 1000);
		cost_ns[method] = 500;
		eng_copy_init(&c, ENG_COPY_METHODS, 16);
		carry(&c, 3 * ENG_COPY_METHODS, cost_ns, method); /* one settles, two count */
		assert_int_equal(c.to_try, 0);
		assert_int_equal(c.best, method);
		/* and trials of the others are few */
		assert_true(carry(&c, SPANS, cost_ns, method) > SPANS * 97 / 100);
	}
}

static void who_is_made_slow_is_left(void **state)
{
	uint64_t cost_ns[ENG_COPY_METHODS];
	struct eng_copy c;

	eng_copy_init(&c, ENG_COPY_METHODS, 16);
	for (unsigned n = 0; n < 3 * ENG_COPY_METHODS; n++) {
		unsigned method = n % ENG_COPY_METHODS;

		all_cost(cost_ns, 4000);
		cost_ns[method] = 1000;
		carry(&c, SPANS, cost_ns, method);
		assert_int_equal(c.best, method);
	}
}

static void another_way_that_becomes_fast_is_found(void **state)
{
	uint64_t cost_ns[ENG_COPY_METHODS];
	struct eng_copy c;

	all_cost(cost_ns, 1000);
	eng_copy_init(&c, ENG_COPY_METHODS, 16);
	carry(&c, SPANS, cost_ns, 0);
	assert_int_equal(c.best, 0);
	cost_ns[ENG_COPY_METHODS - 1] = 800;
	carry(&c, 600 * ENG_COPY_METHODS, cost_ns, 0);
	assert_int_equal(c.best, ENG_COPY_METHODS - 1);
}

/* one span in three is interrupted */
static void interruptions_mislead_nobody(void **state)
{
	uint64_t cost_ns[ENG_COPY_METHODS];
	struct eng_copy c;

	all_cost(cost_ns, 1000);
	cost_ns[1] = 700;
	eng_copy_init(&c, ENG_COPY_METHODS, 16);
	for (unsigned n = 0; n < SPANS; n++)
		eng_copy_note(&c, cost_ns[c.method] * (n % 3 ? 1 : 100));
	assert_int_equal(c.best, 1);
}

static void who_may_not_widen_stays_narrow(void **state)
{
	uint64_t cost_ns[ENG_COPY_METHODS];
	struct eng_copy c;

	all_cost(cost_ns, 1);
	for (unsigned i = 0; i < COPY_KERNELS; i++)
		cost_ns[i] = 1000 - i;
	eng_copy_init(&c, COPY_KERNELS, 16);
	for (unsigned n = 0; n < SPANS; n++) {
		eng_copy_note(&c, cost_ns[c.method]);
		assert_true(c.method < COPY_KERNELS);
	}
}

/* --- received payloads --- */

static struct eng_put *timed;
static uint64_t kernel_ns[COPY_KERNELS];

/* a copy is between two looks at the clock */
static mono_t costly_clock(void *ctx)
{
	static mono_t now;

	return now = mono_add(now, kernel_ns[timed->copy.method]);
}

static struct engine *make_engine(void)
{
	const struct abi_devpage page = {0};
	const struct eng_config config = {.devpage = &page, .now = costly_clock};
	struct engine *e;

	assert_int_equal(eng_create(&config, &e), 0);
	return e;
}

/* @SPANS spans: enough for each kernel to be tried again, and to be chosen */
static void receive_much(struct engine *e, uint8_t *to, const uint8_t *from, uint32_t len)
{
	for (unsigned n = 0; n < SPANS * 128; n++)
		eng_put(e, to, from, len, 0);
}

static void the_kernel_of_received_payloads_follows_the_clock(void **state)
{
	static const uint32_t lengths[] = {4096, 8193};
	uint8_t *from = malloc(ROOM), *to = malloc(ROOM);
	struct engine *e = make_engine();

	for (uint32_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned n = 0; n < ARRAY_SIZE(lengths); n++) {
		uint32_t len = lengths[n % ARRAY_SIZE(lengths)];

		timed = eng_put_class(e, len);
		for (unsigned slow = 0; slow < timed->copy.num_methods; slow++) {
			for (unsigned k = 0; k < COPY_KERNELS; k++)
				kernel_ns[k] = k == slow ? 4000 : 1000;
			receive_much(e, to, from, len);
			if (timed->copy.num_methods > 1)
				assert_int_not_equal(timed->copy.best, slow);
		}
	}
	eng_destroy(e);
	free(from);
	free(to);
}

/* its own time is not all that a kernel costs */
static void a_kernel_that_is_a_little_faster_is_not_chosen(void **state)
{
	uint8_t *from = calloc(1, ROOM), *to = malloc(ROOM);
	struct engine *e = make_engine();

	timed = eng_put_class(e, 4096);
	for (unsigned k = 0; k < COPY_KERNELS; k++)
		kernel_ns[k] = k ? 1000 : 1100;
	receive_much(e, to, from, 4096);
	assert_int_equal(timed->copy.best, 0);
	eng_destroy(e);
	free(from);
	free(to);
}

/* whole by each kernel, in each class of lengths, and past the caches */
static void received_payloads_are_whole(void **state)
{
	static const uint32_t lengths[] = {1, 4095, 4096, 8192, 20000, 32768, 65535, 65536};
	uint8_t *from = malloc(ROOM), *to = malloc(ROOM);
	struct engine *e = make_engine();

	for (uint32_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(1 + i % 251);
	for (unsigned n = 0; n < 16 * ARRAY_SIZE(lengths); n++) {
		uint32_t len = lengths[n % ARRAY_SIZE(lengths)], skew = n % 7;

		timed = eng_put_class(e, MAX(len, 4096u));
		timed->copy.method = (uint8_t)(n / ARRAY_SIZE(lengths) % timed->copy.num_methods);
		memset(to, 0, ROOM);
		eng_put(e, to + skew, from, len, n % 2 ? 5u << 20 : 0);
		assert_memory_equal(to + skew, from, len);
		assert_int_equal(to[skew + len], 0);
	}
	eng_destroy(e);
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_arrive_in_every_way),
		cmocka_unit_test(the_cheapest_way_is_in_use),
		cmocka_unit_test(who_is_made_slow_is_left),
		cmocka_unit_test(another_way_that_becomes_fast_is_found),
		cmocka_unit_test(interruptions_mislead_nobody),
		cmocka_unit_test(who_may_not_widen_stays_narrow),
		cmocka_unit_test(the_kernel_of_received_payloads_follows_the_clock),
		cmocka_unit_test(a_kernel_that_is_a_little_faster_is_not_chosen),
		cmocka_unit_test(received_payloads_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
