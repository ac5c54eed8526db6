/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulator itself: a seed gives one run and no other; every oracle is
 * seen to fail when its rule is broken on purpose; the shrinker keeps what
 * matters; and the seeds of bugs that were fixed pass (tests/sim/regressions).
 */
#include "../unit/test.h"

#include <inttypes.h>

#include "sim.h"

static struct sim_options options(uint64_t seed, enum plan_kind kind)
{
	return (struct sim_options){.seed = seed, .sabotage = -1, .kind = (int)kind};
}

static void passes(const struct sim_options *o, struct sim_result *r)
{
	run_child(o, r);
	if (r->failed)
		fail_msg("seed %" PRIu64 " of %s: %s", o->seed, plan_kind_names[o->kind],
			 r->text);
}

static void a_seed_is_one_run(void **state)
{
	struct sim_result a, b, other;

	for (int kind = 0; kind < KIND_NUM; kind++) {
		struct sim_options o = options(7, (enum plan_kind)kind);

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
		struct sim_options o = options(11, (enum plan_kind)kind);

		passes(&o, &fast);
		o.general_only = true;
		passes(&o, &general);
		assert_int_equal(fast.digest, general.digest);
		assert_int_equal(fast.events, general.events);
	}
}

static void a_run_has_traffic_and_faults_have_effects(void **state)
{
	uint64_t completions = 0, errors = 0, reconnects = 0, lost = 0, lanes = 0,
		 windows = 0;
	struct sim_result r;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim_options o = options(seed, KIND_PACKETS);

		passes(&o, &r);
		completions += r.completions;
		lanes += r.by_lane;
		windows += r.by_window;
		lost += r.lost;
		o = options(seed, KIND_DEATH);
		passes(&o, &r);
		errors += r.errors;
		reconnects += r.reconnects;
	}
	assert_in_range(completions, 1000, UINT32_MAX);
	assert_in_range(errors, 2, UINT32_MAX);
	assert_in_range(reconnects, 2, UINT32_MAX);
	assert_in_range(lost, 5, UINT32_MAX);
	assert_in_range(lanes, 100, UINT32_MAX);
	assert_in_range(windows, 20, UINT32_MAX);
}

static void programs_break_rules(void **state)
{
	uint32_t violations = 0;
	struct sim_result r;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim_options o = options(seed, KIND_VIOLATIONS);

		passes(&o, &r);
		violations += r.violations;
	}
	assert_in_range(violations, 100, UINT32_MAX);
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

/* each oracle, its rule broken by the harness */
static void an_oracle_can_fail(void **state)
{
	int oracle = *(int *)*state;
	struct sim_options o;
	struct sim_result r;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		o = options(seed, KIND_CALM);
		o.sabotage = oracle;
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
	struct sim_options o = options(3, KIND_CHAOS);
	struct sim_result r;

	o.sabotage = ORACLE_LEAK; /* fails without any fault or traffic */
	run_child(&o, &r);
	assert_true(r.failed);
	shrink(&o, &r);
	assert_true(r.failed);
	assert_int_equal(r.oracle, ORACLE_LEAK);
	assert_string_equal(o.keep_faults, "");
	assert_int_equal(o.max_ops, 1);
}

/* lines of "SEED KIND FAULTS OPS  what it was"; '-': as the seed says */
static void fixed_bugs_stay_fixed(void **state)
{
	FILE *list = fopen(SIM_REGRESSIONS, "r");
	char line[300], kind[16], faults[64];
	struct sim_result r;
	uint64_t seed;
	uint32_t ops;

	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		struct sim_options o = {.sabotage = -1, .kind = -1};

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%" SCNu64 " %15s %63s %" SCNu32, &seed, kind, faults,
			   &ops) != 4)
			fail_msg("regressions: not understood: %s", line);
		o.seed = seed;
		o.max_ops = ops;
		o.keep_faults = strcmp(faults, "-") ? faults : NULL;
		for (int k = 0; k < KIND_NUM; k++)
			if (!strcmp(kind, plan_kind_names[k]))
				o.kind = k;
		run_child(&o, &r);
		if (r.failed)
			fail_msg("%s: %s", line, r.text);
	}
	fclose(list);
}

int main(void)
{
	static int number[ORACLE_NUM];
	struct CMUnitTest tests[7 + ORACLE_NUM] = {
		cmocka_unit_test(a_seed_is_one_run),
		cmocka_unit_test(the_fast_paths_change_nothing),
		cmocka_unit_test(a_run_has_traffic_and_faults_have_effects),
		cmocka_unit_test(programs_break_rules),
		cmocka_unit_test(leaving_faults_out_changes_nothing_else),
		cmocka_unit_test(the_shrinker_drops_what_does_not_matter),
		cmocka_unit_test(fixed_bugs_stay_fixed),
	};
	static char names[ORACLE_NUM][64];

	for (int i = 0; i < ORACLE_NUM; i++) {
		number[i] = i;
		snprintf(names[i], sizeof(names[i]), "oracle_%s_can_fail",
			 oracle_names[i]);
		tests[7 + i] = (struct CMUnitTest){.name = names[i],
						   .test_func = an_oracle_can_fail,
						   .initial_state = &number[i]};
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
