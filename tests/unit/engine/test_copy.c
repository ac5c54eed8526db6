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


static void the_first_way_round_says_nothing(void **state)
{
	struct eng_copy c = {.new_bytes = 100000};

	eng_copy_note(&c, 65536, 65536);
	eng_copy_note(&c, 65536, 65536);
	assert_int_equal(c.new_bytes, 0);
	eng_copy_note(&c, 65536, 65536);
	assert_false(c.streams);
	eng_copy_note(&c, 65536, 65536);
	assert_true(c.streams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_arrive_either_way),
		cmocka_unit_test(slow_plain_copies_lead_past_the_caches_and_back),
		cmocka_unit_test(the_first_way_round_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
