/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When softibd's loop goes on without sleep: src/runtime/posix/linger.h. */
#include "../test.h"
#include "runtime/posix/linger.h"

static mono_t at(uint64_t ns)
{
	return (mono_t){NSEC_PER_SEC + ns};
}

static void test_it_lingers_after_an_event(void **state)
{
	struct linger linger = {0};

	assert_false(linger_goes_on(&linger, at(0)));
	linger_event(&linger, at(0));
	assert_true(linger_goes_on(&linger, at(LINGER_NS - 1)));
	assert_false(linger_goes_on(&linger, at(LINGER_NS)));
	linger_event(&linger, at(LINGER_NS)); /* each event anew */
	assert_true(linger_goes_on(&linger, at(2 * LINGER_NS - 1)));
}

static void test_a_short_yield_changes_nothing(void **state)
{
	struct linger linger = {0};

	linger_event(&linger, at(0));
	linger_yielded(&linger, at(0), at(LINGER_TAKEN_NS - 1));
	linger_event(&linger, at(LINGER_TAKEN_NS));
	assert_true(linger_goes_on(&linger, at(LINGER_TAKEN_NS)));
}

/* Another program has the core: for some time the loop sleeps at once. */
static void test_a_core_that_was_taken_is_not_yielded(void **state)
{
	struct linger linger = {0};
	const uint64_t back = LINGER_TAKEN_NS, over = back + LINGER_REFUSE_NS;

	linger_event(&linger, at(0));
	linger_yielded(&linger, at(0), at(back));
	assert_false(linger_goes_on(&linger, at(back)));
	linger_event(&linger, at(over - 1));
	assert_false(linger_goes_on(&linger, at(over - 1)));
	linger_event(&linger, at(over));
	assert_true(linger_goes_on(&linger, at(over)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_lingers_after_an_event),
		cmocka_unit_test(test_a_short_yield_changes_nothing),
		cmocka_unit_test(test_a_core_that_was_taken_is_not_yielded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
