/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Data packets: tables, states, partitions, MTU, multicast, and the counters. */
#include "net.h"

static void unicast(void **state)
{
	struct net *net = net_pair();

	/* twice: worked out, then remembered; both must count alike */
	for (int i = 0; i < 2; i++)
		assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 2}), 0);
	assert_int_equal(net->sink[N1].packets, 2);
	assert_int_equal(net->sink[N0].packets, 0);
	/* 100 bytes with LRH 8, BTH 12, DETH 8, ICRC 4: 33 dwords */
	assert_int_equal(net_count(net, N0, 1, AG_XMIT_DATA), 66);
	assert_int_equal(net_count(net, S2, 1, AG_RCV_DATA), 66);
	assert_int_equal(net_count(net, S2, 2, AG_XMIT_DATA), 66);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_DATA), 66);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_PACKETS), 2);
	assert_int_equal(net_count(net, N1, 1, AG_UNICAST_RCV), 2);
	assert_int_equal(net_count(net, N1, 1, AG_MULTICAST_RCV), 0);
	assert_int_equal(net_count(net, N1, 1, AG_XMIT_PACKETS), 0);
	assert_int_equal(net_port(net, S2, 2)->seldom->xmit_sl[0], 66);
	net_end(net);
}

static void own_lid_turns_round(void **state)
{
	struct net *net = net_pair();

	assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 1}), 0);
	assert_int_equal(net->sink[N0].packets, 1);
	assert_int_equal(net_count(net, N0, 1, AG_XMIT_PACKETS), 0);
	net_end(net);
}

static void full_destination_holds(void **state)
{
	struct net *net = net_pair();

	for (int i = 0; i < 2; i++) { /* on both ways of finding the route */
		net->sink[N1].full = true;
		assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 2}), -EAGAIN);
		assert_int_equal(net_count(net, N0, 1, AG_XMIT_PACKETS), i);
		assert_int_equal(net_count(net, S2, 2, AG_XMIT_WAIT), i + 1);
		net->sink[N1].full = false;
		assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 2}), 0);
		assert_int_equal(net_count(net, N0, 1, AG_XMIT_PACKETS), i + 1);
	}
	fab_discard(net->fab, N0, 1);
	assert_int_equal(net_count(net, N0, 1, AG_XMIT_DISCARDS), 1);
	net_end(net);
}

static void no_route(void **state)
{
	struct net *net = net_pair();

	assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 77}), 0);
	assert_int_equal(net_count(net, S2, 1, AG_RCV_SWITCH_RELAY), 1);
	assert_int_equal(net_count(net, S2, 1, AG_RCV_DLID_MAPPING), 1);
	net_lft(net, S2, 77, 200); /* a port that does not exist */
	net_send(net, N0, (struct net_packet){.dlid = 77});
	assert_int_equal(net_count(net, S2, 1, AG_RCV_DLID_MAPPING), 2);
	net_lft(net, S2, 77, 1); /* back where it came from */
	net_send(net, N0, (struct net_packet){.dlid = 77});
	assert_int_equal(net_count(net, S2, 1, AG_RCV_LOOPING), 1);
	net_lft(net, S2, 77, 2); /* a CA that is not 77 */
	net_send(net, N0, (struct net_packet){.dlid = 77});
	assert_int_equal(net_count(net, N1, 1, AG_RCV_ERRORS), 1);
	assert_int_equal(net->sink[N1].packets, 0);
	net_end(net);
}

static void tables_take_effect_at_once(void **state)
{
	struct net *net = net_pair();
	uint32_t epoch;

	net_send(net, N0, (struct net_packet){.dlid = 2});
	epoch = fab_epoch(net->fab);
	net_lft(net, S2, 2, WIRE_LFT_NO_PORT);
	assert_int_not_equal(fab_epoch(net->fab), epoch);
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(net->sink[N1].packets, 1);
	net_end(net);
}

static void lmc(void **state)
{
	struct net *net = net_pair();

	net_port(net, N1, 1)->lid = 8;
	net_port(net, N1, 1)->lmc = 2;
	for (uint16_t lid = 8; lid <= 12; lid++) {
		net_lft(net, S2, lid, 2);
		net_send(net, N0, (struct net_packet){.dlid = lid});
	}
	assert_int_equal(net->sink[N1].packets, 4);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_ERRORS), 1);
	net_end(net);
}

/* 7.2.7: Init passes no data; Armed takes it and becomes Active by it */
static void port_states(void **state)
{
	struct net *net = net_pair();

	net_port(net, N0, 1)->state = WIRE_PORT_ARMED;
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(net_count(net, N0, 1, AG_DISCARD_INACTIVE), 1);
	assert_int_equal(net_count(net, N0, 1, AG_XMIT_DISCARDS), 1);
	net_port(net, N0, 1)->state = WIRE_PORT_ACTIVE;
	net_port(net, N1, 1)->state = WIRE_PORT_INIT;
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(net->sink[N1].packets, 0);
	net_port(net, N1, 1)->state = WIRE_PORT_ARMED;
	net->sink[N1].changes = 0;
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(net->sink[N1].packets, 1);
	assert_int_equal(net_port(net, N1, 1)->state, WIRE_PORT_ACTIVE);
	assert_int_equal(net->sink[N1].changes, 0); /* never on this stack */
	rt_sim_run(net->rt, 10);
	assert_int_equal(net->sink[N1].changes, AG_CHANGED_STATE);
	net_end(net);
}

static void mtu(void **state)
{
	struct net *net = net_pair();

	assert_int_equal(net_set_port(net, S2, 0, 2, net_edit_mtu, WIRE_MTU_1024), 0);
	net_send(net, N0, (struct net_packet){.dlid = 2, .payload = 1024});
	assert_int_equal(net->sink[N1].packets, 1);
	net_send(net, N0, (struct net_packet){.dlid = 2, .payload = 1025});
	assert_int_equal(net->sink[N1].packets, 1);
	assert_int_equal(net_count(net, S2, 2, AG_DISCARD_NEIGHBOR_MTU), 1);
	assert_int_equal(net_count(net, S2, 2, AG_XMIT_DISCARDS), 1);
	assert_int_equal(net_count(net, S2, 1, AG_RCV_PACKETS), 2); /* it came that far */
	net_end(net);
}

static void partitions(void **state)
{
	static const struct {
		int enforce; /* 1 in, 2 out */
		uint16_t entry, pkey;
		bool passes;
	} rows[] = {
		{0, 0x8001, 0xffff, true},  {1, 0xffff, 0xffff, true},  {1, 0x8001, 0xffff, false},
		{1, 0x7fff, 0x7fff, true},  {2, 0x7fff, 0x7fff, false}, {2, 0x7fff, 0xffff, true},
		{2, 0x8001, 0xffff, false}, {2, 0x8001, 0x0001, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct net *net = net_pair();
		int port = rows[i].enforce == 2 ? 2 : 1;

		net_set_port(net, S2, 0, port, net_edit_enforce, rows[i].enforce);
		net_port(net, S2, port)->pkeys[0] = rows[i].entry;
		net_send(net, N0, (struct net_packet){.dlid = 2, .pkey = rows[i].pkey});
		assert_int_equal(net->sink[N1].packets, rows[i].passes);
		assert_int_equal(net_count(net, S2, port, port == 1 ? AG_RCV_CONSTRAINT :
								      AG_XMIT_CONSTRAINT),
				 !rows[i].passes);
		assert_int_equal(net_port(net, S2, port)->pkey_violations, !rows[i].passes);
		net_end(net);
	}
}

static void service_levels(void **state)
{
	struct net *net = net_pair();

	memset(net_port(net, S2, 2)->sl2vl[1], 3, 16);
	net_port(net, S2, 2)->sl2vl[1][5] = 15; /* SL 5 may not pass from port 1 to 2 */
	net_send(net, N0, (struct net_packet){.dlid = 2, .sl = 4});
	net_send(net, N0, (struct net_packet){.dlid = 2, .sl = 5});
	assert_int_equal(net->sink[N1].packets, 1);
	assert_int_equal(net_count(net, S2, 1, AG_RCV_VL_MAPPING), 1);
	net_port(net, S2, 2)->oper_vls_enc = 1; /* VL0 only: VL3 is gone */
	net_set_port(net, S2, 0, 3, net_edit_mtu, WIRE_MTU_4096); /* moves the epoch */
	net_send(net, N0, (struct net_packet){.dlid = 2, .sl = 4});
	assert_int_equal(net->sink[N1].packets, 1);
	net_end(net);
}

static void link_down_under_traffic(void **state)
{
	struct net *net = net_pair();

	net_send(net, N0, (struct net_packet){.dlid = 2});
	fab_link_set(net->fab, S2, 2, false);
	assert_false(fab_link_plugged(net->fab, N1, 1));
	assert_int_equal(net_port(net, N1, 1)->state, WIRE_PORT_DOWN);
	assert_int_equal(net_port(net, S2, 2)->state, WIRE_PORT_DOWN);
	assert_true(fab_node(net->fab, S2)->sw->port_state_change);
	assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 2}), 0);
	assert_int_equal(net_count(net, S2, 2, AG_DISCARD_INACTIVE), 1);
	assert_int_equal(net_count(net, S2, 2, AG_LINK_DOWNED), 1);
	assert_int_equal(net_count(net, N1, 1, AG_LINK_DOWNED), 1);
	fab_link_set(net->fab, N1, 1, true);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, N1, 1)->state, WIRE_PORT_INIT);
	assert_int_equal(net_port(net, S2, 2)->state, WIRE_PORT_INIT);
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(net->sink[N1].packets, 1); /* Init: no data yet */
	assert_int_equal(fab_link_set(net->fab, S2, 4, true), -ENOENT);
	assert_int_equal(fab_link_set(net->fab, S2, 99, true), -ENOENT);
	net_end(net);
}

static void not_packets(void **state)
{
	struct net *net = net_pair();
	uint8_t junk[64] = {0};

	assert_int_equal(net_send_bytes(net, N0, junk, sizeof(junk)), -EINVAL);
	assert_int_equal(net_send_bytes(net, N0, junk, 3), -EINVAL);
	net_send(net, N0, (struct net_packet){.dlid = 0xffff}); /* permissive: SMPs only */
	net_send(net, N0, (struct net_packet){.dlid = 0xfffe});
	assert_int_equal(net->sink[N1].packets, 0);
	net_end(net);
}

/* --- two switches in a ring with four nodes --- */

enum { A0, A1, B2, B3, SA4, SB5 };

static struct net *ring(void)
{
	struct net *net = calloc(1, sizeof(*net));

	for (int i = 0; i < 4; i++)
		net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_SWITCH, 20);
	net_add(net, TOPO_SWITCH, 20);
	net_cable(net, A0, 1, SA4, 1);
	net_cable(net, A1, 1, SA4, 2);
	net_cable(net, B2, 1, SB5, 1);
	net_cable(net, B3, 1, SB5, 18);
	net_cable(net, SA4, 19, SB5, 19);
	net_cable(net, SA4, 20, SB5, 20);
	net_start(net);
	net_activate(net);
	return net;
}

static void tables_that_loop(void **state)
{
	struct net *net = ring();

	net_lft(net, SA4, 3, 19);
	net_lft(net, SB5, 3, 20);
	assert_int_equal(net_send(net, A0, (struct net_packet){.dlid = 3}), 0);
	assert_int_equal(net->sink[B2].packets, 0);
	assert_int_equal(net_count(net, SA4, 19, AG_DISCARD_SW_LIFETIME) +
				 net_count(net, SB5, 20, AG_DISCARD_SW_LIFETIME),
			 1);
	net_end(net);
}

static void multicast(void **state)
{
	struct net *net = ring();

	/* A0, A1 and B2, B3 (beyond port 15: the MFT's second position) */
	net_mft(net, SA4, 0xc005, 1 << 1 | 1 << 2);
	net_mft(net, SB5, 0xc005, 1 << 1);
	for (int sw = SA4; sw <= SB5; sw++) {
		uint8_t mad[WIRE_MAD_BYTES] = {0};
		struct wire_mft mft = {0};

		mft.port_mask[5] = 1 << (19 - 16) | (sw == SB5 ? 1 << (18 - 16) : 0);
		wire_mft_encode(&mft, mad + WIRE_SMP_DATA_OFFSET);
		assert_int_equal(net_mad(net, sw, 0, WIRE_METHOD_SET, WIRE_SMP_MFT, 1u << 28, mad),
				 0);
	}
	net_send(net, A0, (struct net_packet){.dlid = 0xc005});
	assert_int_equal(net->sink[A0].packets, 1); /* its own QPs hear it */
	assert_int_equal(net->sink[A1].packets, 1);
	assert_int_equal(net->sink[B2].packets, 1);
	assert_int_equal(net->sink[B3].packets, 1);
	assert_int_equal(net_count(net, SA4, 1, AG_XMIT_PACKETS), 0); /* not back */
	assert_int_equal(net_count(net, SA4, 19, AG_MULTICAST_XMIT), 1);
	assert_int_equal(net_count(net, SA4, 20, AG_XMIT_PACKETS), 0);
	/* a full member misses its copy, the others do not */
	net->sink[A1].full = true;
	assert_int_equal(net_send(net, A0, (struct net_packet){.dlid = 0xc005}), 0);
	assert_int_equal(net->sink[A1].packets, 1);
	assert_int_equal(net->sink[B3].packets, 2);
	assert_int_equal(net_count(net, SA4, 2, AG_XMIT_DISCARDS), 1);
	/* no group */
	net_send(net, A0, (struct net_packet){.dlid = 0xc006});
	assert_int_equal(net_count(net, SA4, 1, AG_RCV_SWITCH_RELAY), 1);
	net_end(net);
}

static void multicast_that_loops(void **state)
{
	struct net *net = ring();

	net_mft(net, SA4, 0xc001, 1 << 1);
	for (int sw = SA4; sw <= SB5; sw++) {
		uint8_t mad[WIRE_MAD_BYTES] = {0};
		struct wire_mft mft = {0};

		mft.port_mask[1] = 1 << 3 | 1 << 4; /* both cables of the ring */
		wire_mft_encode(&mft, mad + WIRE_SMP_DATA_OFFSET);
		net_mad(net, sw, 0, WIRE_METHOD_SET, WIRE_SMP_MFT, 1u << 28, mad);
	}
	assert_int_equal(net_send(net, A0, (struct net_packet){.dlid = 0xc001}), 0);
	assert_true(net_count(net, SA4, 19, AG_XMIT_PACKETS) > 0); /* and it ended */
	net_end(net);
}

/* --- taps --- */

static bool lose_second(void *ctx, int node, int port, bool sent, const void *bytes, size_t len)
{
	int *seen = ctx;

	return ++*seen != 2;
}

static void taps(void **state)
{
	struct net *net = net_pair();
	int seen = 0;
	struct fab_tap tap = {lose_second, &seen};

	fab_tap_set(net->fab, S2, 2, &tap);
	for (int i = 0; i < 3; i++)
		net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(seen, 3);
	assert_int_equal(net->sink[N1].packets, 2);
	assert_int_equal(net_count(net, S2, 1, AG_RCV_PACKETS), 3);
	assert_int_equal(net_count(net, N1, 1, AG_RCV_PACKETS), 2);
	fab_tap_set(net->fab, S2, 2, NULL);
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(seen, 3);
	net_end(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unicast),
		cmocka_unit_test(own_lid_turns_round),
		cmocka_unit_test(full_destination_holds),
		cmocka_unit_test(no_route),
		cmocka_unit_test(tables_take_effect_at_once),
		cmocka_unit_test(lmc),
		cmocka_unit_test(port_states),
		cmocka_unit_test(mtu),
		cmocka_unit_test(partitions),
		cmocka_unit_test(service_levels),
		cmocka_unit_test(link_down_under_traffic),
		cmocka_unit_test(not_packets),
		cmocka_unit_test(tables_that_loop),
		cmocka_unit_test(multicast),
		cmocka_unit_test(multicast_that_loops),
		cmocka_unit_test(taps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
