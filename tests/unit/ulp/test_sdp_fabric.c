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

/* --- the connection whose request has come, among many whose requests are under way --- */

#define MANY 10000

static struct {
	struct sdp_conn conn;
	struct rdma_cm_id id;
	struct ib_qp qp;
} *many;
static int (*compare)(const void *key, const struct rt_tree_node *node);
static unsigned int num_compared;

static int counted(const void *key, const struct rt_tree_node *node)
{
	num_compared++;
	return compare(key, node);
}

/* ten nodes of a thousand queue pairs each: numbers are unique on a node alone */
static void expect(u32 i)
{
	many[i].id.route.sgid.raw[15] = (u8)(i % 10);
	many[i].qp.qp_num = 0x100 + i / 10;
	many[i].conn.fabric = sdp_fabric(rt[0]);
	many[i].conn.id = &many[i].id;
	many[i].conn.qp = &many[i].qp;
	sdp_conn_expect(&many[i].conn);
}

static const struct sdp_conn *find(u32 i)
{
	const struct rdma_cm_id id = {.route.dgid.raw[15] = (u8)(i % 10)};

	return sdp_conn_with_qp(rt[0], &id, 0x100 + i / 10);
}

/* All are found by fewer comparisons than there are pairs of a connection and 64 others. */
static void a_request_is_found_among_ten_thousand(void **state)
{
	assert_true(sdp_fabric_open(rt[0]));
	compare = sdp_fabric(rt[0])->by_qp.compare;
	sdp_fabric(rt[0])->by_qp.compare = counted;
	many = calloc(MANY, sizeof(*many));
	assert_non_null(many);
	for (u32 i = 0; i < MANY; i++)
		expect(i);
	num_compared = 0;
	for (u32 i = 0; i < MANY; i++)
		assert_ptr_equal(find(i), &many[i].conn);
	assert_true(num_compared > 0 && num_compared < MANY * 64);
	assert_null(find(MANY));
	for (u32 i = 0; i < MANY; i++) {
		rt_tree_remove(&many[i].conn.by_qp);
		assert_null(find(i));
	}
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_fabric_counts_its_own_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(a_request_is_found_among_ten_thousand, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
