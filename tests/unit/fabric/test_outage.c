/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rules that stand: links that flap, switches that die and come back,
 * adapters that are pulled, events. */
#include "net.h"

struct lab {
	struct net net;
	int adapter_calls[2]; /* taken, brought back */
	int events;
	int refuse;
};

static int adapter(void *ctx, int node, bool present)
{
	struct lab *lab = ctx;

	assert_int_equal(node, N1);
	lab->adapter_calls[present]++;
	return lab->refuse;
}

static int event(void *ctx, int node, int port, uint32_t qpn, uint32_t what)
{
	struct lab *lab = ctx;

	assert_in_range(node, N0, N1);
	assert_int_equal(port, 1);
	assert_int_equal(what, 10);
	lab->events++;
	return lab->refuse;
}

static struct lab *make(void)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	struct fab_fault_ops ops = {.adapter = adapter, .event = event, .ctx = lab};

	net_pair_cable(&lab->net);
	fab_fault_ops_set(lab->net.fab, &ops);
	net_pair_activate(&lab->net);
	return lab;
}

static void end(struct lab *lab)
{
	net_stop(&lab->net);
	free(lab);
}

static void add(struct lab *lab, const char *rule)
{
	net_fault(&lab->net, rule);
}

static int state_of(struct lab *lab, int node, int port)
{
	return net_port(&lab->net, node, port)->state;
}

static void link_down_until_cleared(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 down");
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	assert_int_equal(state_of(lab, S2, 1), WIRE_PORT_DOWN);
	assert_int_equal(state_of(lab, S2, 2), WIRE_PORT_ACTIVE);
	assert_false(fab_link_returns(lab->net.fab, N0, 1));
	rt_sim_run_for(lab->net.rt, 10 * NSEC_PER_SEC);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	assert_int_equal(fab_fault_clear(lab->net.fab, 1), 0);
	rt_sim_run_for(lab->net.rt, NSEC_PER_SEC);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_INIT);
	assert_int_equal(net_count(&lab->net, S2, 1, AG_LINK_DOWNED), 1);
	end(lab);
}

static void link_flaps(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 down for=100ms period=1s count=3");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(state_of(lab, S2, 1), WIRE_PORT_DOWN);
		assert_true(fab_fault_is_on(lab->net.fab, 1));
		assert_true(fab_link_returns(lab->net.fab, N0, 1));
		assert_true(fab_link_returns(lab->net.fab, S2, 1));
		assert_false(fab_link_returns(lab->net.fab, S2, 2));
		rt_sim_run_for(lab->net.rt, 500 * NSEC_PER_MSEC);
		assert_false(fab_link_returns(lab->net.fab, N0, 1));
		assert_false(fab_fault_is_on(lab->net.fab, 1));
		assert_int_equal(state_of(lab, S2, 1), WIRE_PORT_INIT);
		rt_sim_run_for(lab->net.rt, 501 * NSEC_PER_MSEC);
	}
	rt_sim_run_for(lab->net.rt, 10 * NSEC_PER_SEC);
	assert_int_equal(state_of(lab, S2, 1), WIRE_PORT_INIT);
	assert_int_equal(net_count(&lab->net, S2, 1, AG_LINK_DOWNED), 3);
	assert_int_equal(fab_faults(lab->net.fab)->logged, 3);
	end(lab);
}

static void switch_dies_and_returns(void **state)
{
	struct lab *lab = make();

	add(lab, "node s2 death for=2s");
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	assert_int_equal(state_of(lab, N1, 1), WIRE_PORT_DOWN);
	net_send(&lab->net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(lab->net.sink[N1].packets, 0);
	rt_sim_run_for(lab->net.rt, NSEC_PER_SEC);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	rt_sim_run_for(lab->net.rt, 2 * NSEC_PER_SEC);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_INIT);
	/* it has forgotten its LID, its tables and its counters */
	assert_int_equal(net_port(&lab->net, S2, 0)->lid, 0);
	assert_int_equal(ag_lft_get(fab_node(lab->net.fab, S2), 2), WIRE_LFT_NO_PORT);
	assert_int_equal(net_count(&lab->net, S2, 1, AG_RCV_PACKETS), 0);
	assert_string_equal(fab_node(lab->net.fab, S2)->desc, "node 2");
	/* programmed anew it serves again */
	net_activate(&lab->net);
	net_lft(&lab->net, S2, 2, 2);
	net_send(&lab->net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(lab->net.sink[N1].packets, 1);
	end(lab);
}

static void a_dead_switch_answers_nothing(void **state)
{
	struct lab *lab = make();

	net_ask_node_info(&lab->net, N0, 3);
	add(lab, "node s2 death"); /* the MAD has arrived and is not answered yet */
	rt_sim_run(lab->net.rt, 100);
	assert_int_equal(lab->net.sink[N0].packets, 0);
	/* a cable that is plugged into a dead switch stays down */
	fab_link_set(lab->net.fab, N0, 1, false);
	fab_link_set(lab->net.fab, N0, 1, true);
	rt_sim_run_for(lab->net.rt, NSEC_PER_SEC);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	fab_fault_clear(lab->net.fab, 0);
	rt_sim_run_for(lab->net.rt, NSEC_PER_SEC);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_INIT);
	end(lab);
}

static void adapter_is_pulled(void **state)
{
	struct lab *lab = make();

	add(lab, "node n1 drop");
	add(lab, "link s2:2 drop");
	add(lab, "node n1 remove for=1s");
	assert_int_equal(lab->adapter_calls[0], 1);
	assert_int_equal(state_of(lab, S2, 2), WIRE_PORT_DOWN);
	/* its rules went with it; that of the switch, and its own return, stay */
	assert_null(flt_find(fab_faults(lab->net.fab), 1));
	assert_non_null(flt_find(fab_faults(lab->net.fab), 2));
	rt_sim_run_for(lab->net.rt, 2 * NSEC_PER_SEC);
	assert_int_equal(lab->adapter_calls[1], 1);
	assert_int_equal(state_of(lab, S2, 2), WIRE_PORT_INIT);
	assert_int_equal(net_port(&lab->net, N1, 1)->lid, 0);
	end(lab);
}

static void what_cannot_be_done_leaves_no_rule(void **state)
{
	struct lab *lab = make();
	char err[256];

	lab->refuse = -EBUSY;
	assert_int_equal(fab_fault_add(lab->net.fab, "node n1 remove", 0, err, sizeof(err)), -EBUSY);
	assert_int_equal(fab_faults(lab->net.fab)->num_rules, 0);
	assert_int_equal(state_of(lab, S2, 2), WIRE_PORT_ACTIVE);
	lab->refuse = -ENODEV;
	assert_int_equal(fab_fault_add(lab->net.fab, "port n0:1 event port-err", 0, err, sizeof(err)),
			 -ENODEV);
	assert_non_null(strstr(err, "the adapter is removed"));
	lab->refuse = -EINVAL;
	assert_int_equal(fab_fault_add(lab->net.fab, "port n0:1 event port-err", 0, err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "shared receive queue"));
	assert_int_equal(fab_faults(lab->net.fab)->logged, 0);
	end(lab);
}

static void events_go_with_their_adapter(void **state)
{
	struct lab *lab = make();

	add(lab, "port n1:1 event port-err period=1s");
	add(lab, "link n1:1 down for=1s period=10s");
	add(lab, "node n1 remove for=1500ms");
	assert_null(flt_find(fab_faults(lab->net.fab), 1));
	assert_non_null(flt_find(fab_faults(lab->net.fab), 2)); /* a cable's */
	rt_sim_run_for(lab->net.rt, 5 * NSEC_PER_SEC);
	assert_int_equal(lab->events, 1);
	assert_int_equal(lab->adapter_calls[1], 1);
	end(lab);
}

static void events_repeat(void **state)
{
	struct lab *lab = make();

	add(lab, "port n0:1 event port-err period=1s count=4");
	assert_int_equal(lab->events, 1);
	rt_sim_run_for(lab->net.rt, 1500 * NSEC_PER_MSEC);
	assert_int_equal(lab->events, 2);
	rt_sim_run_for(lab->net.rt, 60 * NSEC_PER_SEC);
	assert_int_equal(lab->events, 4);
	end(lab);
}

static void run_ms(struct lab *lab, uint64_t ms)
{
	rt_sim_run_for(lab->net.rt, ms * NSEC_PER_MSEC);
}

static void the_last_of_several_rules_lets_go(void **state)
{
	struct lab *lab = make();

	add(lab, "link n0:1 down for=300ms");
	add(lab, "link s2:1 down for=900ms"); /* the same cable */
	add(lab, "node s2 death for=300ms");
	add(lab, "node s2 death for=2s");
	run_ms(lab, 500);
	assert_int_equal(state_of(lab, N1, 1), WIRE_PORT_DOWN);
	assert_false(fab_link_plugged(lab->net.fab, N0, 1));
	assert_int_equal(fab_link_holder(lab->net.fab, N0, 1), 2);
	assert_int_equal(fab_link_holder(lab->net.fab, S2, 1), 2);
	run_ms(lab, 500);
	assert_true(fab_link_plugged(lab->net.fab, N0, 1));
	assert_int_equal(fab_link_holder(lab->net.fab, N0, 1), 0);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	run_ms(lab, 1500);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_INIT);
	end(lab);
}

static void an_adapter_stays_away_as_long_as_any_rule_wants(void **state)
{
	struct lab *lab = make();

	add(lab, "node n1 remove for=100ms");
	add(lab, "node n1 remove");
	add(lab, "node n1 remove for=200ms period=300ms");
	run_ms(lab, 1000);
	assert_int_equal(lab->adapter_calls[0], 1);
	assert_int_equal(lab->adapter_calls[1], 0);
	assert_int_equal(state_of(lab, S2, 2), WIRE_PORT_DOWN);
	fab_fault_clear(lab->net.fab, 0);
	assert_int_equal(lab->adapter_calls[1], 1);
	run_ms(lab, 100);
	assert_int_equal(state_of(lab, S2, 2), WIRE_PORT_INIT);
	end(lab);
}

static void rules_leave_a_cable_as_its_owner_wants_it(void **state)
{
	struct lab *lab = make();

	fab_link_set(lab->net.fab, N0, 1, false);
	add(lab, "link n0:1 down for=200ms");
	assert_false(fab_link_returns(lab->net.fab, N0, 1));
	run_ms(lab, 1000);
	assert_false(fab_link_plugged(lab->net.fab, N0, 1));
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	assert_int_equal(fab_link_set(lab->net.fab, N0, 1, true), 0);
	run_ms(lab, 100);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_INIT);
	/* what a rule holds out cannot be plugged in, at neither end */
	add(lab, "link n0:1 down");
	assert_int_equal(fab_link_set(lab->net.fab, N0, 1, true), -EBUSY);
	assert_int_equal(fab_link_set(lab->net.fab, S2, 1, true), -EBUSY);
	run_ms(lab, 100);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_DOWN);
	fab_fault_clear(lab->net.fab, 0);
	run_ms(lab, 100);
	assert_int_equal(state_of(lab, N0, 1), WIRE_PORT_INIT);
	end(lab);
}

static void a_cable_that_is_in_can_be_plugged_in(void **state)
{
	struct lab *lab = make();

	assert_int_equal(fab_link_set(lab->net.fab, N0, 1, true), 0);
	run_ms(lab, 100);
	assert_int_equal(state_of(lab, S2, 1), WIRE_PORT_ACTIVE);
	assert_int_equal(net_count(&lab->net, S2, 1, AG_LINK_DOWNED), 0);
	end(lab);
}

static void what_did_not_take_effect_is_no_hit(void **state)
{
	struct lab *lab = make();

	add(lab, "port n0:1 event port-err period=1s count=2");
	lab->refuse = -EINVAL;
	run_ms(lab, 5500);
	assert_int_equal(fab_faults(lab->net.fab)->logged, 1);
	lab->refuse = 0;
	run_ms(lab, 5000);
	assert_int_equal(fab_faults(lab->net.fab)->logged, 2);
	end(lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_down_until_cleared),
		cmocka_unit_test(link_flaps),
		cmocka_unit_test(switch_dies_and_returns),
		cmocka_unit_test(a_dead_switch_answers_nothing),
		cmocka_unit_test(adapter_is_pulled),
		cmocka_unit_test(what_cannot_be_done_leaves_no_rule),
		cmocka_unit_test(events_repeat),
		cmocka_unit_test(events_go_with_their_adapter),
		cmocka_unit_test(the_last_of_several_rules_lets_go),
		cmocka_unit_test(an_adapter_stays_away_as_long_as_any_rule_wants),
		cmocka_unit_test(rules_leave_a_cable_as_its_owner_wants_it),
		cmocka_unit_test(a_cable_that_is_in_can_be_plugged_in),
		cmocka_unit_test(what_did_not_take_effect_is_no_hit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
