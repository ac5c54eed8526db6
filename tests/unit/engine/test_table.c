/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sparse tables of QPNs and keys. */
#include "../test.h"

#include "engine/table.h"
#include "runtime/rt.h"

static int freed;

static void count(void *entry)
{
	freed++;
}

static void numbers_of_all_digits(void **state)
{
	static const uint32_t numbers[] = {0, 1, 0xff, 0x100, 0xffff, 0x10000, 0xabcdef, 0xffffff};
	struct eng_table t = {0};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		assert_int_equal(eng_table_set(&t, numbers[i], (void *)(uintptr_t)(i + 1)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		assert_ptr_equal(eng_table_get(&t, numbers[i]), (void *)(uintptr_t)(i + 1));
	assert_null(eng_table_get(&t, 2));
	assert_null(eng_table_get(&t, 0xabcdee));
	assert_int_equal(eng_table_set(&t, 0xff, NULL), 0);
	assert_null(eng_table_get(&t, 0xff));
	freed = 0;
	eng_table_free(&t, count);
	assert_int_equal(freed, ARRAY_SIZE(numbers) - 1);
	assert_null(eng_table_get(&t, 1));
}

/* in whatever order the table grows */
static void large_numbers_may_come_first(void **state)
{
	struct eng_table t = {0};

	for (uint32_t i = 0xffffff; i; i /= 3)
		assert_int_equal(eng_table_set(&t, i, (void *)(uintptr_t)i), 0);
	for (uint32_t i = 0xffffff; i; i /= 3)
		assert_int_equal((uintptr_t)eng_table_get(&t, i), i);
	freed = 0;
	eng_table_free(&t, count);
	assert_int_equal(freed, 16);
}

static void clearing_takes_no_memory(void **state)
{
	struct eng_table t = {0};

	rt_fail_alloc(1);
	assert_int_equal(eng_table_set(&t, 77, NULL), 0);
	assert_int_equal(eng_table_set(&t, 77, &t), -ENOMEM);
	assert_null(eng_table_get(&t, 77));
	for (int nth = 2; nth <= 3; nth++) {
		rt_fail_alloc((uint64_t)nth - 1);
		assert_int_equal(eng_table_set(&t, 77, &t), -ENOMEM);
	}
	rt_fail_alloc(0);
	assert_int_equal(eng_table_set(&t, 77, &t), 0);
	for (int nth = 1; nth <= 3; nth++) { /* two levels above the two, and two pages below */
		rt_fail_alloc((uint64_t)nth);
		assert_int_equal(eng_table_set(&t, 0x700000, &t), -ENOMEM);
		assert_ptr_equal(eng_table_get(&t, 77), &t);
	}
	rt_fail_alloc(0);
	assert_int_equal(eng_table_set(&t, 0x700000, &t), 0);
	assert_null(eng_table_get(&t, 0x1000000 + 77));
	eng_table_free(&t, count);
}

/* numbers that go round leave nothing behind */
static void pages_that_hold_nothing_go(void **state)
{
	int64_t before = rt_alloc_balance(), two;
	struct eng_table t = {0};

	assert_int_equal(eng_table_set(&t, 5, &t), 0);
	assert_int_equal(eng_table_set(&t, 6, &t), 0);
	assert_int_equal(rt_alloc_balance(), before + 1);
	assert_int_equal(eng_table_set(&t, 0x2ffff, &t), 0);
	eng_table_clear(&t, 0x2ffff);
	two = rt_alloc_balance();
	assert_int_equal(two, before + 3); /* it stays as high */
	for (uint32_t i = 7; i < 0x30000; i += 77) {
		assert_int_equal(eng_table_set(&t, i, &t), 0);
		eng_table_clear(&t, i);
		assert_null(eng_table_get(&t, i));
	}
	eng_table_clear(&t, 0xabcdef); /* never set */
	assert_int_equal(rt_alloc_balance(), two);
	eng_table_clear(&t, 5);
	assert_ptr_equal(eng_table_get(&t, 6), &t);
	eng_table_clear(&t, 6);
	assert_null(t.root);
	assert_int_equal(rt_alloc_balance(), before);
	eng_table_clear(&t, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_all_digits),
		cmocka_unit_test(large_numbers_may_come_first),
		cmocka_unit_test(clearing_takes_no_memory),
		cmocka_unit_test(pages_that_hold_nothing_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
