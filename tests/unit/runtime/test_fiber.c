/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Fibers: who runs when, and what is left of them. */
#include "../test.h"

#include "runtime/fiber.h"
#include "runtime/sim/rt_sim.h"

static char order[16];
static struct rt *rt;
static struct rt_fiber *sleeper;

static void note(char c)
{
	order[strlen(order)] = c;
}

static int setup(void **state)
{
	memset(order, 0, sizeof(order));
	return rt_sim_create(1, &rt);
}

static int teardown(void **state)
{
	rt_sim_destroy(rt);
	return 0;
}

static void sleep_twice(void *arg)
{
	sleeper = rt_fiber_current();
	assert_ptr_equal(rt_fiber_owner(sleeper), arg);
	note('a');
	rt_fiber_sleep();
	note('b');
	rt_fiber_sleep();
	note('c');
}

static void test_sleep_and_wake(void **state)
{
	int64_t balance = rt_alloc_balance();

	assert_int_equal(rt_fiber_start(rt, sleep_twice, order, order), 0);
	assert_string_equal(order, "a");
	assert_null(rt_fiber_current());
	rt_fiber_wake(sleeper);
	rt_fiber_wake(sleeper); /* once is enough */
	assert_string_equal(order, "a");
	rt_sim_run(rt, 100);
	assert_string_equal(order, "ab");
	rt_fiber_wake(sleeper);
	rt_sim_run(rt, 100);
	assert_string_equal(order, "abc");
	assert_int_equal(rt_alloc_balance(), balance);
}

static void start_another(void *arg)
{
	note('<');
	rt_fiber_start(rt, sleep_twice, NULL, NULL);
	note('>');
	rt_fiber_wake(sleeper);
}

static void test_one_starts_another(void **state)
{
	assert_int_equal(rt_fiber_start(rt, start_another, NULL, NULL), 0);
	assert_string_equal(order, "<a>");
	rt_sim_run(rt, 100);
	assert_string_equal(order, "<a>b");
	rt_fiber_wake(sleeper);
	rt_sim_run(rt, 100);
	assert_string_equal(order, "<a>bc");
}

static void test_no_memory(void **state)
{
	rt_fail_alloc(1);
	assert_int_equal(rt_fiber_start(rt, sleep_twice, NULL, NULL), -12);
	rt_fail_alloc(0);
	assert_string_equal(order, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sleep_and_wake, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_starts_another, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
