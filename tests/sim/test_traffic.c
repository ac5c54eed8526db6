/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the simulator's seeds do: traffic, faults that have effects, and violations. */
#include "passes.h"

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

static void streams_of_sdp_flow_and_break(void **state)
{
	uint64_t bytes = 0;
	uint32_t closed = 0, moves = 0, lost = 0;
	struct sim_result r;

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sim_options o = options(seed, seed % 2 ? KIND_PACKETS : KIND_LINKS);

		passes(&o, &r);
		bytes += r.sdp_bytes;
		closed += r.sdp_closed;
		moves += r.sdp_moves;
		lost += r.sdp_lost;
	}
	assert_in_range(bytes, 200000, UINT32_MAX);
	assert_in_range(closed, 10, UINT32_MAX);
	assert_in_range(moves, 3, UINT32_MAX);
	assert_in_range(lost, 1, UINT32_MAX);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_has_traffic_and_faults_have_effects),
		cmocka_unit_test(streams_of_sdp_flow_and_break),
		cmocka_unit_test(programs_break_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
