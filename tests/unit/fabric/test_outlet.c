/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cables that leave a fabric: two fabrics, each with a clock of its own, whose switches are joined. */
#include "net.h"

#include "fabric/outlet.h"

#define FREE_PORT 3 /* of each switch */
#define FAR_LIDS  10 /* the second fabric's begin behind this one */

struct side {
	struct net net;
	struct side *other;
	struct fab_outlet *outlet;
	struct fab_outlet_link link; /* what the fabric told last */
	int told, sent;
	bool full;
	uint8_t last_hops;
};

static int send_over(void *ctx, const struct fab_packet *pkt)
{
	struct side *side = ctx;
	struct fab_packet copy = *pkt;

	if (side->full)
		return -EAGAIN;
	side->sent++;
	side->last_hops = pkt->hops;
	return side->other && side->other->outlet ? fab_outlet_receive(side->other->outlet, &copy, false) : 0;
}

static void changed(void *ctx, const struct fab_outlet_link *link)
{
	struct side *side = ctx;

	side->link = *link;
	side->told++;
}

static const struct fab_outlet_ops ops = {.send = send_over, .changed = changed};

static void plug(struct side *side)
{
	assert_int_equal(fab_outlet_create(side->net.fab, S2, FREE_PORT, &ops, side, &side->outlet), 0);
	side->link = fab_outlet_own_link(side->outlet);
}

/* let each side know the other one's port, until nothing changes */
static void meet(struct side *sides)
{
	for (int i = 0; i < 8; i++) {
		struct side *side = &sides[i % 2];

		fab_outlet_far_link(side->outlet, &side->other->link);
		rt_sim_run_for(side->net.rt, NSEC_PER_SEC);
	}
}

static void set_lids(struct net *net, int above)
{
	for (int i = 0; i < net->topo.num_nodes; i++) {
		bool sw = net->node[i].kind == TOPO_SWITCH;

		assert_int_equal(net_set_port(net, i, !sw, !sw, net_edit_lid, above + i + 1), 0);
	}
}

static void activate_cable(struct side *side)
{
	assert_int_equal(net_set_port(&side->net, S2, 0, FREE_PORT, net_edit_state, WIRE_PORT_ARMED), 0);
	assert_int_equal(net_set_port(&side->net, S2, 0, FREE_PORT, net_edit_state, WIRE_PORT_ACTIVE), 0);
}

static int state_of(struct side *side)
{
	return net_port(&side->net, S2, FREE_PORT)->state;
}

/* two fabrics without a cable between them */
static struct side *make(void)
{
	struct side *sides = calloc(2, sizeof(*sides));

	for (int i = 0; i < 2; i++) {
		net_pair_cable(&sides[i].net);
		net_pair_activate(&sides[i].net);
		set_lids(&sides[i].net, i * FAR_LIDS);
		sides[i].other = &sides[!i];
	}
	for (uint16_t lid = 1; lid <= 2; lid++) {
		net_lft(&sides[0].net, S2, FAR_LIDS + lid, FREE_PORT);
		net_lft(&sides[1].net, S2, lid, FREE_PORT);
		net_lft(&sides[1].net, S2, FAR_LIDS + lid, (uint8_t)lid);
	}
	net_lft(&sides[0].net, S2, FAR_LIDS + 3, FREE_PORT);
	return sides;
}

static struct side *make_joined(void)
{
	struct side *sides = make();

	plug(&sides[0]);
	plug(&sides[1]);
	meet(sides);
	activate_cable(&sides[0]);
	activate_cable(&sides[1]);
	return sides;
}

static void end(struct side *sides)
{
	for (int i = 0; i < 2; i++) {
		if (sides[i].outlet)
			fab_outlet_destroy(sides[i].outlet);
		net_stop(&sides[i].net);
	}
	free(sides);
}

static int send_far(struct side *sides, uint16_t lid)
{
	return net_send(&sides[0].net, N0, (struct net_packet){.dlid = lid});
}

/* --- the link --- */

static void the_link_trains_by_both_ends(void **state)
{
	struct side *sides = make();

	plug(&sides[0]);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_DOWN);
	assert_true(sides[0].link.plugged);
	assert_int_equal(sides[0].link.phys_request, WIRE_PHYS_POLLING);
	plug(&sides[1]);
	meet(sides);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_INIT);
	assert_int_equal(state_of(&sides[1]), WIRE_PORT_INIT);
	fab_outlet_far_link(sides[0].outlet, NULL); /* the connection is lost */
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_DOWN);
	meet(sides);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_INIT);
	end(sides);
}

static void widths_and_speeds_are_negotiated(void **state)
{
	struct side *sides = make();

	net_port(&sides[1].net, S2, FREE_PORT)->width_enabled = WIRE_WIDTH_1X;
	net_port(&sides[1].net, S2, FREE_PORT)->speed_enabled = AG_SDR | AG_QDR;
	plug(&sides[0]);
	plug(&sides[1]);
	meet(sides);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(net_port(&sides[i].net, S2, FREE_PORT)->width_active, WIRE_WIDTH_1X);
		assert_int_equal(net_port(&sides[i].net, S2, FREE_PORT)->speed_active, AG_QDR);
	}
	end(sides);
}

static void a_cable_pulled_on_one_side_is_down_on_both(void **state)
{
	struct side *sides = make_joined();

	assert_int_equal(fab_link_set(sides[0].net.fab, S2, FREE_PORT, false), 0);
	assert_false(sides[0].link.plugged);
	meet(sides);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_DOWN);
	assert_int_equal(state_of(&sides[1]), WIRE_PORT_DOWN);
	assert_int_equal(fab_link_set(sides[0].net.fab, S2, FREE_PORT, true), 0);
	rt_sim_run_for(sides[0].net.rt, NSEC_PER_SEC);
	meet(sides);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_INIT);
	assert_int_equal(state_of(&sides[1]), WIRE_PORT_INIT);
	end(sides);
}

static void edit_phys(struct wire_port_info *pi, int phys_state)
{
	pi->phys_state = (uint8_t)phys_state;
}

static void a_port_that_is_disabled_takes_the_other_one_down(void **state)
{
	struct side *sides = make_joined();

	assert_int_equal(net_set_port(&sides[1].net, S2, 0, FREE_PORT, edit_phys, WIRE_PHYS_DISABLED), 0);
	rt_sim_run_for(sides[1].net.rt, NSEC_PER_SEC);
	meet(sides);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_DOWN);
	assert_int_equal(net_port(&sides[0].net, S2, FREE_PORT)->phys_state, WIRE_PHYS_POLLING);
	assert_int_equal(net_port(&sides[1].net, S2, FREE_PORT)->phys_state, WIRE_PHYS_DISABLED);
	end(sides);
}

/* A manager sets a port Down: it falls and trains anew, and so does the other end. */
static void edit_down(struct wire_port_info *pi, int port_state)
{
	pi->state = (uint8_t)port_state;
}

static void a_link_that_bounces_bounces_at_both_ends(void **state)
{
	struct side *sides = make_joined();
	int told = sides[0].told;

	assert_int_equal(net_set_port(&sides[0].net, S2, 0, FREE_PORT, edit_down, WIRE_PORT_DOWN), 0);
	while (sides[0].told == told)
		assert_true(rt_sim_step(sides[0].net.rt));
	assert_false(sides[0].link.plugged); /* for the moment */
	fab_outlet_far_link(sides[1].outlet, &sides[0].link);
	assert_int_equal(state_of(&sides[1]), WIRE_PORT_DOWN);
	rt_sim_run_for(sides[0].net.rt, NSEC_PER_SEC);
	meet(sides);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_INIT);
	assert_int_equal(state_of(&sides[1]), WIRE_PORT_INIT);
	end(sides);
}

static void a_switch_without_power_takes_the_other_side_down(void **state)
{
	struct side *sides = make_joined();

	assert_int_equal(fab_node_power(sides[0].net.fab, S2, false), 0);
	assert_false(sides[0].link.plugged);
	fab_outlet_far_link(sides[1].outlet, &sides[0].link);
	assert_int_equal(state_of(&sides[1]), WIRE_PORT_DOWN);
	end(sides);
}

static void rules_hold_the_cable_out(void **state)
{
	struct side *sides = make_joined();
	uint32_t rule = net_fault(&sides[0].net, "link s2:3 down");

	assert_int_equal(state_of(&sides[0]), WIRE_PORT_DOWN);
	assert_false(sides[0].link.plugged);
	assert_int_equal(fab_fault_clear(sides[0].net.fab, rule), 0);
	rt_sim_run_for(sides[0].net.rt, NSEC_PER_SEC);
	assert_true(sides[0].link.plugged);
	assert_int_equal(state_of(&sides[0]), WIRE_PORT_INIT);
	end(sides);
}

/* --- packets --- */

static void packets_cross_and_are_counted_at_both_ports(void **state)
{
	struct side *sides = make_joined();

	for (int i = 0; i < 2; i++) /* by both ways of finding the route */
		assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(sides[1].net.sink[N1].packets, 2);
	assert_int_equal(net_count(&sides[0].net, S2, FREE_PORT, AG_XMIT_PACKETS), 2);
	assert_int_equal(net_count(&sides[1].net, S2, FREE_PORT, AG_RCV_PACKETS), 2);
	assert_int_equal(net_count(&sides[1].net, S2, FREE_PORT, AG_RCV_DATA), 66);
	assert_int_equal(net_count(&sides[1].net, S2, 2, AG_XMIT_PACKETS), 2);
	end(sides);
}

static void nothing_crosses_a_link_that_is_down(void **state)
{
	struct side *sides = make_joined();

	fab_outlet_far_link(sides[0].outlet, NULL);
	assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(sides[0].sent, 0);
	assert_int_equal(net_count(&sides[0].net, S2, FREE_PORT, AG_XMIT_DISCARDS), 1);
	/* and what was under way is dropped at the port that is down */
	meet(sides);
	activate_cable(&sides[0]);
	fab_outlet_far_link(sides[1].outlet, NULL);
	assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(sides[0].sent, 1);
	assert_int_equal(sides[1].net.sink[N1].packets, 0);
	end(sides);
}

static void a_cable_without_room_holds_up_the_sender(void **state)
{
	struct side *sides = make_joined();

	sides[0].full = true;
	assert_int_equal(send_far(sides, FAR_LIDS + 2), -EAGAIN);
	assert_int_equal(net_count(&sides[0].net, S2, FREE_PORT, AG_XMIT_PACKETS), 0);
	assert_int_equal(net_count(&sides[0].net, S2, FREE_PORT, AG_XMIT_WAIT), 1);
	sides[0].full = false;
	assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(net_count(&sides[0].net, S2, FREE_PORT, AG_XMIT_PACKETS), 1);
	end(sides);
}

/* The port counts a packet once, however often it is offered to its destination. */
static void a_full_destination_is_offered_the_packet_again(void **state)
{
	struct side *sides = make_joined();
	struct fab_packet pkt;
	uint8_t buf[512];
	size_t len = net_encode(&(struct net_packet){.slid = 1, .dlid = FAR_LIDS + 2, .dest_qpn = 0x42, .payload = 100},
				NULL, buf);

	assert_int_equal(fab_packet_decode(&pkt, buf, len), 0);
	sides[1].net.sink[N1].full = true;
	assert_int_equal(fab_outlet_receive(sides[1].outlet, &pkt, false), -EAGAIN);
	assert_int_equal(fab_outlet_receive(sides[1].outlet, &pkt, true), -EAGAIN);
	sides[1].net.sink[N1].full = false;
	assert_int_equal(fab_outlet_receive(sides[1].outlet, &pkt, true), 0);
	assert_int_equal(sides[1].net.sink[N1].packets, 1);
	assert_int_equal(net_count(&sides[1].net, S2, FREE_PORT, AG_RCV_PACKETS), 1);
	end(sides);
}

static void no_flow_bypasses_the_fabric_over_a_cable(void **state)
{
	struct side *sides = make_joined();
	struct fab_way *way;

	assert_int_equal(fab_way_create(sides[0].net.fab, N0, 1, FAR_LIDS + 2, 0, WIRE_PKEY_DEFAULT, &way), -ENOENT);
	assert_int_equal(fab_way_create(sides[0].net.fab, N0, 1, 2, 0, WIRE_PKEY_DEFAULT, &way), 0);
	fab_way_free(way);
	end(sides);
}

static void groups_have_members_on_both_sides(void **state)
{
	struct side *sides = make_joined();

	net_mft(&sides[0].net, S2, 0xc001, 1 << 1 | 1 << FREE_PORT);
	net_mft(&sides[1].net, S2, 0xc001, 1 << 1 | 1 << 2 | 1 << FREE_PORT);
	assert_int_equal(send_far(sides, 0xc001), 0);
	assert_int_equal(sides[1].net.sink[N0].packets, 1);
	assert_int_equal(sides[1].net.sink[N1].packets, 1);
	assert_int_equal(sides[0].sent, 1);
	assert_int_equal(sides[1].sent, 0); /* not back where it came from */
	end(sides);
}

static void agents_of_the_far_side_answer(void **state)
{
	struct side *sides = make_joined();

	net_ask_node_info(&sides[0].net, N0, FAR_LIDS + 3);
	rt_sim_run(sides[1].net.rt, 100);
	assert_int_equal(sides[0].net.sink[N0].packets, 1);
	end(sides);
}

/* Each side's tables send a LID to the other one. */
static void tables_that_send_packets_in_a_circle(void **state)
{
	struct side *sides = make_joined();

	net_lft(&sides[0].net, S2, 40, FREE_PORT);
	net_lft(&sides[1].net, S2, 40, FREE_PORT);
	assert_int_equal(send_far(sides, 40), 0);
	assert_int_equal(sides[0].sent, 1);
	assert_int_equal(net_count(&sides[1].net, S2, FREE_PORT, AG_RCV_SWITCH_RELAY), 1);
	end(sides);
}

/* A circle over several fabrics ends, because the cables between them count as links. */
static void a_packet_that_has_crossed_too_many_links(void **state)
{
	struct side *sides = make_joined();
	struct fab_packet pkt;
	uint8_t buf[512];
	size_t len = net_encode(&(struct net_packet){.slid = 1, .dlid = FAR_LIDS + 2, .dest_qpn = 0x42, .payload = 100},
				NULL, buf);

	for (uint8_t hops = 63; hops <= 64; hops++) {
		assert_int_equal(fab_packet_decode(&pkt, buf, len), 0);
		pkt.hops = hops;
		assert_int_equal(fab_outlet_receive(sides[1].outlet, &pkt, false), 0);
		assert_int_equal(sides[1].net.sink[N1].packets, 1); /* the first */
	}
	assert_int_equal(net_count(&sides[1].net, S2, FREE_PORT, AG_DISCARD_SW_LIFETIME), 1);
	end(sides);
}

static void rules_see_what_arrives_by_a_cable(void **state)
{
	struct side *sides = make_joined();

	net_fault(&sides[1].net, "link s2:3 drop count=1");
	assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(sides[1].net.sink[N1].packets, 0);
	assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(sides[1].net.sink[N1].packets, 1);
	end(sides);
}

static void delayed_packets_are_dropped_with_their_cable(void **state)
{
	struct side *sides = make_joined();

	net_fault(&sides[0].net, "link s2:3 delay 100ms");
	assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(sides[0].sent, 0);
	fab_outlet_destroy(sides[0].outlet);
	sides[0].outlet = NULL;
	rt_sim_run_for(sides[0].net.rt, NSEC_PER_SEC);
	assert_int_equal(sides[0].sent, 0);
	end(sides);
}

/* --- coming and going --- */

static void only_free_ports_take_a_cable(void **state)
{
	struct side *sides = make();
	struct fabric *fab = sides[0].net.fab;
	struct fab_outlet *outlet;
	bool up;

	assert_int_equal(fab_outlet_create(fab, S2, 1, &ops, sides, &outlet), -EBUSY);
	assert_int_equal(fab_outlet_create(fab, S2, 0, &ops, sides, &outlet), -ENOENT);
	assert_int_equal(fab_outlet_create(fab, S2, 5, &ops, sides, &outlet), -ENOENT);
	assert_int_equal(fab_outlet_create(fab, 9, 1, &ops, sides, &outlet), -ENOENT);
	plug(&sides[0]);
	assert_int_equal(fab_outlet_create(fab, S2, FREE_PORT, &ops, sides, &outlet), -EBUSY);
	assert_true(fab_outlet_is_at(fab, S2, FREE_PORT, &up));
	assert_false(up);
	assert_false(fab_outlet_is_at(fab, S2, 1, &up));
	assert_false(fab_outlet_is_at(fab, S2, 4, &up));
	end(sides);
}

static void a_cable_comes_and_goes(void **state)
{
	struct side *sides = make_joined();
	bool up;

	for (int i = 0; i < 3 * FAB_OUTLETS_MAX; i++) {
		assert_true(fab_outlet_is_at(sides[0].net.fab, S2, FREE_PORT, &up) && up);
		fab_outlet_destroy(sides[0].outlet);
		sides[0].outlet = NULL;
		assert_int_equal(state_of(&sides[0]), WIRE_PORT_DOWN);
		assert_false(fab_outlet_is_at(sides[0].net.fab, S2, FREE_PORT, &up));
		assert_int_equal(fab_link_set(sides[0].net.fab, S2, FREE_PORT, true), -ENOENT);
		assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
		plug(&sides[0]);
		meet(sides);
	}
	activate_cable(&sides[0]);
	assert_int_equal(send_far(sides, FAR_LIDS + 2), 0);
	assert_int_equal(sides[1].net.sink[N1].packets, 1);
	end(sides);
}

static void memory_may_be_missing(void **state)
{
	struct side *sides = make();
	int ret, nth = 0;

	do {
		rt_fail_alloc((uint64_t)++nth);
		ret = fab_outlet_create(sides[0].net.fab, S2, FREE_PORT, &ops, &sides[0], &sides[0].outlet);
	} while (ret == -ENOMEM);
	rt_fail_alloc(0);
	assert_int_equal(ret, 0);
	assert_int_equal(nth, 4); /* of three allocations each was missing once */
	end(sides);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_link_trains_by_both_ends),
		cmocka_unit_test(widths_and_speeds_are_negotiated),
		cmocka_unit_test(a_cable_pulled_on_one_side_is_down_on_both),
		cmocka_unit_test(a_port_that_is_disabled_takes_the_other_one_down),
		cmocka_unit_test(a_link_that_bounces_bounces_at_both_ends),
		cmocka_unit_test(a_switch_without_power_takes_the_other_side_down),
		cmocka_unit_test(rules_hold_the_cable_out),
		cmocka_unit_test(packets_cross_and_are_counted_at_both_ports),
		cmocka_unit_test(nothing_crosses_a_link_that_is_down),
		cmocka_unit_test(a_cable_without_room_holds_up_the_sender),
		cmocka_unit_test(a_full_destination_is_offered_the_packet_again),
		cmocka_unit_test(no_flow_bypasses_the_fabric_over_a_cable),
		cmocka_unit_test(groups_have_members_on_both_sides),
		cmocka_unit_test(agents_of_the_far_side_answer),
		cmocka_unit_test(tables_that_send_packets_in_a_circle),
		cmocka_unit_test(a_packet_that_has_crossed_too_many_links),
		cmocka_unit_test(rules_see_what_arrives_by_a_cable),
		cmocka_unit_test(delayed_packets_are_dropped_with_their_cable),
		cmocka_unit_test(only_free_ports_take_a_cable),
		cmocka_unit_test(a_cable_comes_and_goes),
		cmocka_unit_test(memory_may_be_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
