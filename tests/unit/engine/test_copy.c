/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Long payloads into a lane: whole by either way, and which way when. */
#include "../test.h"

#include <stdlib.h>

#include "engine/private.h"

#define ROOM (70u << 10)

static void all_bytes_arrive_either_way(void **state)
{
	static const uint32_t lengths[] = {0, 1, 100, 8191, 8192, 8193, 12345, 65535, 65536};
	uint8_t *from = malloc(ROOM), *to = aligned_alloc(64, ROOM), *want = malloc(ROOM);

	for (uint32_t i = 0; i < ROOM; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned n = 0; n < 9 * 64; n++) {
		/* streamed: so that some begin with a probe */
		struct eng_copy c = {.streams = n / 9 % 2, .streamed = (uint16_t)(n / 9)};
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

static void slow_plain_copies_lead_past_the_caches_and_back(void **state)
{
	struct eng_copy c = {0};

	eng_copy_note(&c, 65536, 65536); /* a byte a tick: one may be an interrupt */
	assert_false(c.streams);
	eng_copy_note(&c, 65536, 8192);
	eng_copy_note(&c, 65536, 65536);
	assert_false(c.streams);
	eng_copy_note(&c, 65536, 65536);
	assert_true(c.streams);
	eng_copy_note(&c, 4096, 512);
	eng_copy_note(&c, 4096, 4096);
	eng_copy_note(&c, 4096, 512);
	assert_true(c.streams);
	eng_copy_note(&c, 4096, 512);
	assert_false(c.streams);
}


/* Who was slow once is taken for slow by the second time: but not where pages are new */
static void a_copy_into_new_pages_says_nothing(void **state)
{
	const uint32_t bytes = 16384;
	uint8_t *from = calloc(1, bytes), *to = calloc(4, bytes);
	struct eng_copy c = {.against = 1};

	for (unsigned i = 0; i < 4; i++) {
		eng_copy(&c, to + i * bytes, from, bytes);
		assert_ptr_equal(c.untouched, to + (i + 1) * bytes);
		assert_int_equal(c.against, 1);
	}
	eng_copy(&c, to, from, bytes);
	assert_true(c.against != 1 || c.streams);
	assert_ptr_equal(c.untouched, to + 4 * bytes);
	free(from);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_arrive_either_way),
		cmocka_unit_test(slow_plain_copies_lead_past_the_caches_and_back),
		cmocka_unit_test(a_copy_into_new_pages_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
