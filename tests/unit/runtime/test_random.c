/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Random bits of a loop: each word once, and few system calls for many words. */
#include "../test.h"

#include <sys/random.h>

#include "runtime/posix/rt_posix.h"

static unsigned int calls;
static uint32_t next_word;

/* In place of libc's: numbered words */
ssize_t getrandom(void *to, size_t bytes, unsigned int flags)
{
	uint32_t *words = to;

	calls++;
	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		words[i] = next_word++;
	return (ssize_t)bytes;
}

static void each_word_is_given_once(void **state)
{
	enum { WORDS = 1000 };
	bool given[2 * WORDS] = {false};
	struct rt *rt;

	assert_int_equal(rt_posix_create(&rt), 0);
	for (int i = 0; i < WORDS; i++) {
		uint32_t word = rt_random(rt);

		assert_in_range(word, 0, 2 * WORDS - 1);
		assert_false(given[word]);
		given[word] = true;
	}
	assert_in_range(calls, 1, WORDS / 16);
	rt_posix_destroy(rt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_word_is_given_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
