/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The table of the manager keeps the rules by which programs read events. */
#include "../test.h"

#include "../trace_rules.h"
#include "sm/trace.h"

static void the_table_keeps_the_rules(void **state)
{
	check_trace_table(sm_trace_points, SM_NUM_TRACE_POINTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_table_keeps_the_rules)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
