/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of the upper-level protocols keep the rules by which programs read events. */
#include "../test.h"

#include "../trace_rules.h"
#include "ulp/eth/trace.h"
#include "ulp/ipoib/trace.h"
#include "ulp/sdp/trace.h"
#include "ulp/srp/trace.h"
#include "ulp/srpt/trace.h"

static void the_tables_keep_the_rules(void **state)
{
	check_trace_table(eth_trace_points, ETH_NUM_TRACE_POINTS);
	check_trace_table(ipoib_trace_points, IPOIB_NUM_TRACE_POINTS);
	check_trace_table(sdp_trace_points, SDP_NUM_TRACE_POINTS);
	check_trace_table(srp_trace_points, SRP_NUM_TRACE_POINTS);
	check_trace_table(srpt_trace_points, SRPT_NUM_TRACE_POINTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_tables_keep_the_rules)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
