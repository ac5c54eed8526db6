/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ways of flows: who is told when something changes, and who before counters are read. */
#include "net.h"

enum { N3 = 3, N4 };

/** struct flow - a way and what its user heard */
struct flow {
	struct fab_way *way;
	int moved, folded;
};

static struct net *net;

/* four nodes at one switch: all ways go through it */
static int setup(void **state)
{
	net = calloc(1, sizeof(*net));
	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_SWITCH, 4);
	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_CA, 1);
	net_cable(net, N0, 1, S2, 1);
	net_cable(net, N1, 1, S2, 2);
	net_cable(net, N3, 1, S2, 3);
	net_cable(net, N4, 1, S2, 4);
	net_start(net);
	net_activate(net);
	net_lft(net, S2, N0 + 1, 1);
	net_lft(net, S2, N1 + 1, 2);
	net_lft(net, S2, N3 + 1, 3);
	net_lft(net, S2, N4 + 1, 4);
	return 0;
}

static int teardown(void **state)
{
	net_end(net);
	return 0;
}

static void on_moved(void *ctx)
{
	((struct flow *)ctx)->moved++;
}

static void on_fold(void *ctx)
{
	((struct flow *)ctx)->folded++;
}

static void use(struct flow *f, int from, int to)
{
	const struct fab_way_user user = {.moved = on_moved, .fold = on_fold, .ctx = f};

	*f = (struct flow){};
	assert_int_equal(fab_way_create(net->fab, from, 1, (uint16_t)(to + 1), 0,
					WIRE_PKEY_DEFAULT, &f->way), 0);
	fab_way_use(f->way, &user);
}

static void a_link_disturbs_only_flows_over_it(void **state)
{
	struct flow over, beside;

	use(&over, N0, N3);
	use(&beside, N0, N1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fab_link_set(net->fab, N3, 1, false), 0);
		rt_sim_run_for(net->rt, 100 * NSEC_PER_MSEC);
		assert_int_equal(fab_link_set(net->fab, N3, 1, true), 0);
		rt_sim_run_for(net->rt, 100 * NSEC_PER_MSEC);
	}
	assert_int_equal(over.moved, 1); /* once: it is nobody's way since */
	assert_int_equal(beside.moved, 0);
	fab_way_free(over.way);
	fab_way_free(beside.way);
}

static void a_table_disturbs_only_flows_that_it_leads_elsewhere(void **state)
{
	struct flow f;

	use(&f, N0, N1);
	net_lft(net, S2, 40, 1);
	net_lft(net, S2, N3 + 1, 4);
	assert_int_equal(f.moved, 0);
	net_lft(net, S2, N1 + 1, 4);
	assert_int_equal(f.moved, 1); /* told before the answer to the Set */
	fab_way_free(f.way);
}

static void whatever_ends_a_way_is_told(void **state)
{
	struct flow f;

	use(&f, N0, N1);
	assert_int_equal(net_set_port(net, S2, 0, 2, net_edit_mtu, WIRE_MTU_256), 0);
	assert_int_equal(f.moved, 1); /* it carries less */
	fab_way_free(f.way);

	use(&f, N0, N1);
	assert_int_equal(net_set_port(net, N1, 1, 1, net_edit_lid, 77), 0);
	assert_int_equal(f.moved, 1); /* nobody has that LID any more */
	assert_int_equal(net_set_port(net, N1, 1, 1, net_edit_lid, N1 + 1), 0);
	fab_way_free(f.way);

	use(&f, N0, N1);
	fab_attach(net->fab, N1, 1, NULL);
	assert_int_equal(f.moved, 1); /* no adapter is there */
	fab_way_free(f.way);

	use(&f, N0, N3);
	assert_int_equal(fab_node_power(net->fab, S2, false), 0);
	assert_int_equal(f.moved, 1);
	fab_way_free(f.way);
}

static int rules;

static void on_rules(void *ctx)
{
	rules++;
}

static void rules_and_watches_are_told_to_all(void **state)
{
	struct fab_watch watch = {.only_node = N4};

	rules = 0;
	fab_on_rules(net->fab, on_rules, NULL);
	net_fault(net, "link s2:4 drop");
	assert_int_equal(rules, 1);
	fab_watch_add(net->fab, &watch);
	fab_watch_del(net->fab, &watch);
	assert_int_equal(rules, 3);
}

static void readers_fold_the_flows_through_a_node(void **state)
{
	struct flow a, b;

	use(&a, N0, N1);
	use(&b, N3, N4);
	fab_fold_node(net->fab, N1);
	assert_int_equal(a.folded, 1);
	assert_int_equal(b.folded, 0);
	fab_fold_node(net->fab, S2);
	assert_int_equal(a.folded, 2);
	assert_int_equal(b.folded, 1);
	fab_fold(net->fab);
	assert_true(a.folded > 2 && b.folded > 1);
	fab_way_free(a.way);
	fab_way_free(b.way);
	a.folded = 0;
	fab_fold(net->fab);
	assert_int_equal(a.folded, 0);
}

/* A program writes its counts itself: no lie makes them more than what can have gone. */
static void no_more_is_counted_than_can_have_gone(void **state)
{
	const uint64_t most_per_s = 32 * NSEC_PER_SEC; /* DWORDS_PER_NS */
	uint64_t dwords;
	struct flow f;

	use(&f, N0, N1);
	fab_way_count(f.way, 10, 100);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_PACKETS), 10);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_DATA), 100);
	rt_sim_run_for(net->rt, NSEC_PER_SEC);
	fab_way_count(f.way, UINT64_MAX - 3, UINT64_MAX - 3);
	dwords = net_count(net, N1, 1, AG_RCV_DATA);
	assert_true(dwords >= most_per_s && dwords < most_per_s + most_per_s / 10);
	assert_true(net_count(net, N1, 1, AG_RCV_PACKETS) <= dwords);
	for (int i = 0; i < 9; i++)
		fab_way_count(f.way, 1, UINT64_MAX);
	assert_true(net_count(net, N1, 1, AG_RCV_DATA) < dwords + 9 * 32);
	rt_sim_run_for(net->rt, NSEC_PER_SEC);
	dwords = net_count(net, N1, 1, AG_RCV_DATA);
	fab_way_count(f.way, 10, 100); /* and the truth is counted again */
	assert_int_equal(net_count(net, N1, 1, AG_RCV_DATA), dwords + 100);
	fab_way_free(f.way);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_link_disturbs_only_flows_over_it),
		CASE(a_table_disturbs_only_flows_that_it_leads_elsewhere),
		CASE(whatever_ends_a_way_is_told),
		CASE(rules_and_watches_are_told_to_all),
		CASE(readers_fold_the_flows_through_a_node),
		CASE(no_more_is_counted_than_can_have_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
