/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every oracle of the simulator is seen to fail when its rule is broken on purpose, and
 * the shrinker keeps what matters.
 */
#include "../unit/test.h"

#include "sim.h"

/* each oracle, its rule broken by the harness */
static void an_oracle_can_fail(void **state)
{
	int oracle = *(int *)*state;
	struct sim_options o;
	struct sim_result r;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		o = (struct sim_options){.seed = seed, .sabotage = oracle, .kind = KIND_CALM};
		run_child(&o, &r);
		if (r.failed) {
			assert_int_equal(r.oracle, oracle);
			return;
		}
	}
	fail_msg("the rule '%s' was broken and nothing said so", oracle_names[oracle]);
}

static void the_shrinker_drops_what_does_not_matter(void **state)
{
	struct sim_options o = {
		.seed = 3,
		.sabotage = ORACLE_LEAK, /* fails without any fault or traffic */
		.kind = KIND_CHAOS,
	};
	struct sim_result r;

	run_child(&o, &r);
	assert_true(r.failed);
	shrink(&o, &r);
	assert_true(r.failed);
	assert_int_equal(r.oracle, ORACLE_LEAK);
	assert_string_equal(o.keep_faults, "");
	assert_int_equal(o.max_ops, 1);
}

int main(void)
{
	static int number[ORACLE_NUM];
	struct CMUnitTest tests[1 + ORACLE_NUM] = {
		cmocka_unit_test(the_shrinker_drops_what_does_not_matter),
	};
	static char names[ORACLE_NUM][64];

	for (int i = 0; i < ORACLE_NUM; i++) {
		number[i] = i;
		snprintf(names[i], sizeof(names[i]), "oracle_%s_can_fail",
			 oracle_names[i]);
		tests[1 + i] = (struct CMUnitTest){.name = names[i],
						   .test_func = an_oracle_can_fail,
						   .initial_state = &number[i]};
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
