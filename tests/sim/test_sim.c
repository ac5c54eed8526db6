/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The simulator itself: a seed gives one run and no other. */
#include "passes.h"

static void a_seed_is_one_run(void **state)
{
	struct sim_result a, b, other;

	for (int kind = 0; kind < KIND_NUM; kind++) {
		struct sim_options o = options(1, (enum plan_kind)kind);

		passes(&o, &a);
		passes(&o, &b);
		assert_int_equal(a.digest, b.digest);
		assert_int_equal(a.events, b.events);
		o.seed++;
		passes(&o, &other);
		assert_int_not_equal(a.digest, other.digest);
	}
}

/* without the engine's fast paths all packets, records and completions are the same */
static void the_fast_paths_change_nothing(void **state)
{
	struct sim_result fast, general;

	for (int kind = 0; kind < KIND_NUM; kind++) {
		struct sim_options o = options(22, (enum plan_kind)kind);

		passes(&o, &fast);
		o.general_only = true;
		passes(&o, &general);
		assert_int_equal(fast.digest, general.digest);
		assert_int_equal(fast.events, general.events);
	}
}

static void leaving_faults_out_changes_nothing_else(void **state)
{
	static struct plan whole, part;

	plan_make(&whole, 5, KIND_CHAOS);
	plan_make(&part, 5, KIND_CHAOS);
	plan_keep(&part, "1");
	assert_true(whole.num_faults > 2);
	for (int i = 0; i < whole.num_faults; i++) {
		assert_int_equal(part.fault[i].kept, i == 1);
		part.fault[i].kept = true;
	}
	assert_memory_equal(&whole, &part, sizeof(whole));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_is_one_run),
		cmocka_unit_test(the_fast_paths_change_nothing),
		cmocka_unit_test(leaving_faults_out_changes_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
