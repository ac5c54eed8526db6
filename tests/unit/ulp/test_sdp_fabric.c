/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a fabric knows of its SDP connections: two fabrics in one process. */
#include "../test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "runtime/sim/rt_sim.h"
#include "ulp/sdp/private.h"

static struct rt *rt[2];

static int setup(void **state)
{
	return rt_sim_create(1, &rt[0]) || rt_sim_create(2, &rt[1]);
}

static int teardown(void **state)
{
	for (int i = 0; i < 2; i++) {
		sdp_close_all(rt[i]);
		rt_sim_destroy(rt[i]);
	}
	return 0;
}

static struct sdp_conn *a_connection(struct rt *of)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	close(pair[1]);
	return sdp_conn_create(of, NULL, pair[0]);
}

static struct sdp_stats stats_of(const struct rt *of)
{
	struct sdp_stats stats;

	sdp_stats_get(of, &stats);
	return stats;
}

static void a_fabric_counts_its_own_connections(void **state)
{
	assert_int_equal(stats_of(rt[0]).connections, 0);
	assert_true(sdp_fabric_open(rt[0]));
	assert_true(sdp_fabric_open(rt[1]));
	for (int i = 0; i < 3; i++)
		assert_non_null(a_connection(rt[0]));
	sdp_conn_destroy(a_connection(rt[0]));
	assert_non_null(a_connection(rt[1]));
	assert_int_equal(stats_of(rt[0]).connections, 4);
	assert_int_equal(stats_of(rt[0]).open, 3);
	assert_int_equal(stats_of(rt[1]).connections, 1);
	sdp_close_all(rt[0]); /* the other fabric goes on */
	assert_int_equal(stats_of(rt[0]).connections, 0);
	assert_int_equal(stats_of(rt[1]).open, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_fabric_counts_its_own_connections, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
