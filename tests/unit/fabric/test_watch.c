/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Watches: what captures see, and what they leave as it was. Filters. */
#include "fabric/filter.h"
#include "wire/mad.h"

#include "net.h"

struct seen {
	int n;
	struct fab_sight sight[16];
};

static void see(void *ctx, const struct fab_sight *sight)
{
	struct seen *seen = ctx;

	assert_true(seen->n < 16);
	seen->sight[seen->n++] = *sight;
}

static void expect(const struct seen *seen, int i, int node, int port, bool sent)
{
	assert_int_equal(seen->sight[i].node, node);
	assert_int_equal(seen->sight[i].port, port);
	assert_int_equal(seen->sight[i].sent, sent);
}

static void every_hop_is_seen_in_order(void **state)
{
	struct net *net = net_pair();
	struct seen seen = {0};
	struct fab_watch watch = {.only_node = -1, .packet = see, .ctx = &seen};

	fab_watch_add(net->fab, &watch);
	for (int i = 0; i < 2; i++) /* worked out, then remembered */
		net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(seen.n, 8);
	for (int i = 0; i < 8; i += 4) {
		expect(&seen, i, N0, 1, true);
		expect(&seen, i + 1, S2, 1, false);
		expect(&seen, i + 2, S2, 2, true);
		expect(&seen, i + 3, N1, 1, false);
	}
	fab_watch_del(net->fab, &watch);
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(seen.n, 8);
	assert_int_equal(net->sink[N1].packets, 3);
	net_end(net);
}

static void a_watch_sees_its_own_ports(void **state)
{
	struct net *net = net_pair();
	struct seen node = {0}, port = {0};
	struct fab_watch of_node = {.only_node = S2, .packet = see, .ctx = &node};
	struct fab_watch of_port = {
		.only_node = S2, .only_port = 2, .packet = see, .ctx = &port};

	fab_watch_add(net->fab, &of_node);
	fab_watch_add(net->fab, &of_port);
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(node.n, 2);
	assert_int_equal(port.n, 1);
	expect(&port, 0, S2, 2, true);
	fab_watch_del(net->fab, &of_node);
	net_send(net, N1, (struct net_packet){.dlid = 1});
	assert_int_equal(node.n, 2);
	assert_int_equal(port.n, 2);
	expect(&port, 1, S2, 2, false);
	fab_watch_del(net->fab, &of_port);
	net_end(net);
}

/* a packet that finds no room is not on the wire, and is not lost either */
static void a_full_destination_still_holds(void **state)
{
	struct net *net = net_pair();
	struct seen seen = {0};
	struct fab_watch watch = {.only_node = -1, .packet = see, .ctx = &seen};

	fab_watch_add(net->fab, &watch);
	net->sink[N1].full = true;
	assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 2}), -EAGAIN);
	assert_int_equal(seen.n, 0);
	net->sink[N1].full = false;
	assert_int_equal(net_send(net, N0, (struct net_packet){.dlid = 2}), 0);
	assert_int_equal(seen.n, 4);
	fab_watch_del(net->fab, &watch);
	net_end(net);
}

static bool lose_all(void *ctx, int node, int port, bool sent, const void *bytes,
		     size_t len)
{
	return false;
}

/* lost at the switch's port 2: the first link is all it crossed */
static void what_is_lost_is_not_seen_beyond(void **state)
{
	struct net *net = net_pair();
	struct seen seen = {0};
	struct fab_watch watch = {.only_node = -1, .packet = see, .ctx = &seen};
	struct fab_tap tap = {lose_all, NULL};

	fab_watch_add(net->fab, &watch);
	fab_tap_set(net->fab, S2, 2, &tap);
	net_send(net, N0, (struct net_packet){.dlid = 2});
	assert_int_equal(seen.n, 2);
	expect(&seen, 1, S2, 1, false);
	fab_tap_set(net->fab, S2, 2, NULL);
	fab_watch_del(net->fab, &watch);
	net_end(net);
}

static void short_cuts_avoid_what_is_watched(void **state)
{
	struct net *net = net_pair();
	struct seen seen = {0};
	struct fab_watch watch = {.only_node = N1, .packet = see, .ctx = &seen};
	struct fab_watch elsewhere = {
		.only_node = S2, .only_port = 3, .packet = see, .ctx = &seen};
	uint32_t epoch = fab_epoch(net->fab);
	struct fab_way *way;

	assert_int_equal(fab_way_create(net->fab, N0, 1, 2, 0, 0xffff, &way), 0);
	fab_way_free(way);
	fab_watch_add(net->fab, &watch);
	assert_int_not_equal(fab_epoch(net->fab), epoch);
	assert_int_equal(fab_way_create(net->fab, N0, 1, 2, 0, 0xffff, &way), -ENOENT);
	epoch = fab_epoch(net->fab);
	fab_watch_del(net->fab, &watch);
	assert_int_not_equal(fab_epoch(net->fab), epoch);
	fab_watch_add(net->fab, &elsewhere);
	assert_int_equal(fab_way_create(net->fab, N0, 1, 2, 0, 0xffff, &way), 0);
	fab_way_free(way);
	fab_watch_del(net->fab, &elsewhere);
	net_end(net);
}

/* the VL is each link's own, by SLtoVL */
static void the_lane_is_the_links(void **state)
{
	struct net *net = net_pair();
	struct seen seen = {0};
	struct fab_watch watch = {.only_node = -1, .packet = see, .ctx = &seen};

	memset(net_port(net, S2, 2)->sl2vl[1], 3, 16);
	fab_watch_add(net->fab, &watch);
	net_send(net, N0, (struct net_packet){.dlid = 2, .sl = 4});
	assert_int_equal(seen.sight[2].vl, 3);
	assert_int_equal(seen.sight[3].vl, 3);
	assert_int_not_equal(seen.sight[1].vl, 3);
	fab_watch_del(net->fab, &watch);
	net_end(net);
}

/* --- filters --- */

static struct topo_node names[2] = {{.name = "n1"}, {.name = "s1"}};
static const struct topology topo = {.node = names, .num_nodes = 2};

/* a Get(PathRecord) from LID 5 to 9, QP 1 to QP 1, as s1:2 sends it */
static struct fab_sight query(uint8_t buf[512])
{
	struct wire_packet p = {
		.lrh = {.lnh = WIRE_LNH_BTH, .slid = 5, .dlid = 9, .sl = 2},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY,
			.pkey = 0xffff,
			.dest_qpn = 1,
			.psn = psn(77)},
		.deth = {.qkey = WIRE_QKEY_GSI, .src_qpn = 0x123},
		.payload_bytes = WIRE_MAD_BYTES,
	};
	struct wire_mad mad = {.base_version = 1,
			       .mgmt_class = WIRE_CLASS_SA,
			       .class_version = 2,
			       .method = WIRE_METHOD_GET,
			       .attr_id = 0x35};
	int n = wire_packet_encode(&p, buf);

	memset(buf + n, 0, WIRE_MAD_BYTES);
	wire_mad_encode(&mad, buf + n);
	return (struct fab_sight){.node = 1,
				  .port = 2,
				  .sent = true,
				  .vl = 1,
				  .bytes = buf,
				  .len = (size_t)n + WIRE_MAD_BYTES};
}

static void terms_and_their_joints(void **state)
{
	static const struct {
		const char *text;
		bool takes;
	} rows[] = {
		{"", true},
		{"  ", true},
		{"lid 5", true},
		{"lid 9", true},
		{"lid 6", false},
		{"lid 6-9", true},
		{"lid 0x5", true},
		{"slid 5", true},
		{"slid 9", false},
		{"dlid 9", true},
		{"sl 2", true},
		{"vl 1", true},
		{"vl 0", false},
		{"pkey 0xffff", true},
		{"qpn 1", true},
		{"qpn 0x123", true},
		{"qpn 2", false},
		{"dqpn 0x123", false},
		{"sqpn 0x123", true},
		{"psn 70-80", true},
		{"opcode 100", true},
		{"transport ud", true},
		{"transport rc", false},
		{"class sa", true},
		{"class 3", true},
		{"class cm", false},
		{"method 1", true},
		{"attr 0x35", true},
		{"node s1", true},
		{"node n1", false},
		{"port 2", true},
		{"bytes 256-400", true},
		{"bytes 256-99999", true},
		{"sent", true},
		{"received", false},
		{"mad", true},
		{"smp", false},
		{"multicast", false},
		{"grh", false},
		{"send", true},
		{"write", false},
		{"read", false},
		{"atomic", false},
		{"ack", false},
		{"response", false},
		{"not sent", false},
		{"not not sent", true},
		{"sent and received", false},
		{"sent received", false},
		{"sent or received", true},
		{"received or sent and mad", true},
		{"received and mad or sent", true},
		{"received and (mad or sent)", false},
		{"not (received or smp)", true},
		{"((sent))", true},
		{"(not received)mad", true},
		{"received or received or sent", true},
		{"sent and mad and smp", false},
	};
	struct fab_filter filter;
	uint8_t buf[512];
	struct fab_sight sight = query(buf);
	char err[512];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			fab_filter_parse(rows[i].text, &topo, &filter, err, sizeof(err)),
			0);
		if (fab_filter_match(&filter, &sight) != rows[i].takes)
			fail_msg("\"%s\"", rows[i].text);
	}
}

static void filters_that_are_none(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"lid", "a number or a range"},
		{"lid x", "a number or a range"},
		{"lid 5-", "range"},
		{"lid 9-5", "range"},
		{"lid -5", "range"},
		{"class x", "or a name: sm, sm-direct, sa, perf, bm, dm, cm, cc, vendor"},
		{"transport x", "or a name: rc, uc, rd, ud, xrc"},
		{"lid 70000", "at most 65535"},
		{"opcode 300", "at most 255"},
		{"opcode 256-300", "at most 255"},
		{"psn 0x1000000", "at most 16777215"},
		{"vl 16", "at most 15"},
		{"port 99999999999999999999", "at most"},
		{"(lid 3", "\")\" is missing at the end"},
		{"node n9", "no node \"n9\""},
		{"node", "no node"},
		{"foo", "no term \"foo\"; expected one of lid slid"},
		{"sent and", "ends too early"},
		{"or sent", "no term \"or\""},
		{"not", "ends too early"},
		{"(sent", "\")\" is missing"},
		{"sent)", "without its \"(\""},
		{")", "without its"},
		{"()", "without its"},
	};
	struct fab_filter filter;
	char err[512], deep[1000];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		err[0] = 0;
		assert_int_equal(
			fab_filter_parse(rows[i].text, &topo, &filter, err, sizeof(err)),
			-EINVAL);
		if (!strstr(err, rows[i].says))
			fail_msg("\"%s\": %s", rows[i].text, err);
	}
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = 0;
	assert_int_equal(fab_filter_parse(deep, &topo, &filter, err, sizeof(err)),
			 -EINVAL);
	for (size_t i = 0; i + 5 < sizeof(deep); i += 5)
		memcpy(deep + i, "sent ", 6);
	assert_int_equal(fab_filter_parse(deep, &topo, &filter, err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "more than"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_hop_is_seen_in_order),
		cmocka_unit_test(a_watch_sees_its_own_ports),
		cmocka_unit_test(a_full_destination_still_holds),
		cmocka_unit_test(what_is_lost_is_not_seen_beyond),
		cmocka_unit_test(short_cuts_avoid_what_is_watched),
		cmocka_unit_test(the_lane_is_the_links),
		cmocka_unit_test(terms_and_their_joints),
		cmocka_unit_test(filters_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
