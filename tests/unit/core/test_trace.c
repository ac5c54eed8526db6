/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of trace points keeps the rules by which programs read events. */
#include "../test.h"

#include "../trace_rules.h"
#include "core/trace.h"

static void the_table_keeps_the_rules(void **state)
{
	check_trace_table(core_trace_points, CORE_NUM_TRACE_POINTS);
}

static void states_and_events_have_names(void **state)
{
	assert_string_equal(trace_qp_state_name(3), "RTS");
	assert_string_equal(trace_qp_state_name(7), "?");
	assert_string_equal(trace_cm_event_name(9), "ESTABLISHED");
	assert_string_equal(trace_event_name(1000), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_keeps_the_rules),
		cmocka_unit_test(states_and_events_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
