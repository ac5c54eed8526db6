/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ethernet: addresses of stations, and switches that find the ways by themselves. */
#include "net.h"

#include <arpa/inet.h>

#include "fabric/ethernet.h"

static void start(struct net *net)
{
	struct topo_plan plan;

	topo_set_ethernet(&net->topo);
	net_start(net);
	topo_plan_init(&plan);
	assert_int_equal(fab_ethernet_start(net->fab, &plan, NULL), 0);
	rt_sim_run(net->rt, 100);
}

/* two nodes on one switch, and a third on another, by two parallel cables in a triangle:
 *
 *   N0, N1 -- S2 == S3 -- N5
 *              \    /
 *               S4-
 */
enum { S3 = 3, S4, N5 };

static void add_triangle(struct net *net)
{
	net_add(net, TOPO_CA, 1);
	net_add(net, TOPO_CA, 1);
	for (int i = 0; i < 3; i++)
		net_add(net, TOPO_SWITCH, 6);
	net_add(net, TOPO_CA, 1);
	net_cable(net, N0, 1, S2, 1);
	net_cable(net, N1, 1, S2, 2);
	net_cable(net, S2, 3, S3, 3);
	net_cable(net, S2, 4, S3, 4);
	net_cable(net, S2, 5, S4, 5);
	net_cable(net, S3, 6, S4, 6);
	net_cable(net, N5, 1, S3, 1);
}

static struct net *triangle(void)
{
	struct net *net = calloc(1, sizeof(*net));

	add_triangle(net);
	start(net);
	return net;
}

static void send_to(struct net *net, int from, uint16_t station)
{
	struct net_packet pkt = {.slid = net_port(net, from, 1)->lid, .dlid = station};

	assert_int_equal(net_send(net, from, pkt), 0);
}

static void stations_are_active_at_once(void **state)
{
	struct net *net = triangle();

	assert_true(fab_is_ethernet(net->fab, N0, 1));
	assert_int_equal(net_port(net, N0, 1)->state, WIRE_PORT_ACTIVE);
	assert_int_equal(net_port(net, S2, 3)->state, WIRE_PORT_ACTIVE);
	assert_int_equal(net_port(net, S2, 6)->state, WIRE_PORT_DOWN);
	assert_int_equal(net_port(net, N0, 1)->lid, 1);
	assert_int_equal(net_port(net, N5, 1)->lid, 3);
	net_end(net);
}

/* an adapter with a port of each link layer, between two switches that nothing joins:
 *
 *   N0:1, N1:1 -- S2     N0:2, N1:2 == S3
 */
static struct net *two_layers(void)
{
	struct net *net = calloc(1, sizeof(*net));
	struct topo_plan plan;

	net_add(net, TOPO_CA, 2);
	net_add(net, TOPO_CA, 2);
	net_add(net, TOPO_SWITCH, 2);
	net_add(net, TOPO_SWITCH, 2);
	for (int i = 0; i < 2; i++) {
		net_cable(net, i, 1, S2, (uint8_t)(i + 1));
		net_cable(net, i, 2, S3, (uint8_t)(i + 1));
		net->port[i][2].ethernet = true;
	}
	for (int p = 0; p <= 2; p++)
		net->port[S3][p].ethernet = true;
	net_start(net);
	topo_plan_init(&plan);
	assert_int_equal(fab_ethernet_start(net->fab, &plan, NULL), 0);
	rt_sim_run(net->rt, 100);
	return net;
}

/* Nobody but a subnet manager touches what is InfiniBand's; an address is that of one port. */
static void both_link_layers_in_one_adapter(void **state)
{
	struct net *net = two_layers();
	struct fab_roce_gid gid[FAB_ROCE_GIDS];
	union wire_gid of_ib = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 1, [15] = 1}};
	uint8_t mac[FAB_MAC_BYTES];

	assert_false(fab_is_ethernet(net->fab, N0, 1));
	assert_false(fab_is_ethernet(net->fab, S2, 0));
	assert_true(fab_is_ethernet(net->fab, N0, 2));
	assert_true(fab_is_ethernet(net->fab, S3, 0));
	assert_int_equal(net_port(net, N0, 1)->state, WIRE_PORT_INIT);
	assert_int_equal(net_port(net, S2, 1)->state, WIRE_PORT_INIT);
	assert_int_equal(net_port(net, N0, 1)->lid, 0);
	for (int i = 0; i < 2; i++) {
		uint16_t number = (uint16_t)(FAB_STATION_MIXED + 1 + i);

		assert_int_equal(net_port(net, i, 2)->state, WIRE_PORT_ACTIVE);
		assert_int_equal(net_port(net, i, 2)->lid, number);
		fab_ethernet_mac(net->fab, number, mac);
		assert_int_equal(mac[5], i + 1);
		assert_int_equal(fab_ethernet_find_mac(net->fab, mac), number);
		fab_ethernet_gids(net->fab, i, 2, gid);
		for (int g = 0; g < FAB_ROCE_GIDS_EACH; g++)
			assert_int_equal(fab_ethernet_find_gid(net->fab, &gid[g].gid, 0), number);
		assert_int_equal(ag_lft_get(fab_node(net->fab, S3), number), i + 1);
		assert_int_equal(ag_lft_get(fab_node(net->fab, S2), number), WIRE_LFT_NO_PORT);
	}
	assert_int_equal(fab_ethernet_find_gid(net->fab, &of_ib, 0), 0); /* 10.1.0.1 is port 1 of N0 */
	assert_false(ag_mft_get(fab_node(net->fab, S2), FAB_STATION_ALL, 1));
	assert_true(ag_mft_get(fab_node(net->fab, S3), FAB_STATION_ALL, 1));
	net_end(net);
}

static void every_station_reaches_every_other(void **state)
{
	static const int nodes[] = {N0, N1, N5};
	struct net *net = triangle();

	for (int from = 0; from < 3; from++)
		for (int to = 0; to < 3; to++)
			send_to(net, nodes[from], (uint16_t)(to + 1));
	for (int i = 0; i < 3; i++)
		assert_int_equal(net->sink[nodes[i]].packets, 3);
	send_to(net, N0, 4); /* nobody's */
	assert_int_equal(net_count(net, S2, 1, AG_RCV_SWITCH_RELAY), 1);
	net_end(net);
}

/* each exactly once, although there are three ways around */
static void a_frame_to_all_reaches_each_once(void **state)
{
	struct net *net = triangle();

	send_to(net, N0, FAB_STATION_ALL);
	assert_int_equal(net->sink[N0].packets, 1); /* its own port, as with every group */
	assert_int_equal(net->sink[N1].packets, 1);
	assert_int_equal(net->sink[N5].packets, 1);
	net_end(net);
}

static void a_way_around_is_found(void **state)
{
	struct net *net = triangle();

	for (int p = 3; p <= 4; p++)
		assert_int_equal(fab_link_set(net->fab, S2, p, false), 0);
	rt_sim_run(net->rt, 100);
	send_to(net, N0, 3);
	assert_int_equal(net->sink[N5].packets, 1);
	assert_int_equal(net_count(net, S4, 6, AG_XMIT_PACKETS), 1);
	send_to(net, N0, FAB_STATION_ALL);
	assert_int_equal(net->sink[N5].packets, 2);

	assert_int_equal(fab_link_set(net->fab, S2, 5, false), 0);
	rt_sim_run(net->rt, 100);
	send_to(net, N0, 3);
	send_to(net, N0, FAB_STATION_ALL);
	assert_int_equal(net->sink[N5].packets, 2);
	assert_int_equal(net->sink[N1].packets, 2);

	assert_int_equal(fab_link_set(net->fab, S2, 3, true), 0);
	rt_sim_run(net->rt, 100);
	send_to(net, N0, 3);
	assert_int_equal(net->sink[N5].packets, 3);
	assert_int_equal(net_port(net, S2, 3)->state, WIRE_PORT_ACTIVE);
	net_end(net);
}

/* a switch without power forgets everything, and learns it again */
static void a_switch_comes_back(void **state)
{
	struct net *net = triangle();

	assert_int_equal(fab_node_power(net->fab, S3, false), 0);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, N5, 1)->state, WIRE_PORT_DOWN);
	assert_int_equal(fab_node_power(net->fab, S3, true), 0);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, N5, 1)->state, WIRE_PORT_ACTIVE);
	send_to(net, N0, 3);
	assert_int_equal(net->sink[N5].packets, 1);
	net_end(net);
}

static void an_adapter_comes_back(void **state)
{
	struct net *net = triangle();

	assert_int_equal(fab_node_power(net->fab, N5, false), 0);
	rt_sim_run(net->rt, 100);
	assert_int_equal(fab_node_power(net->fab, N5, true), 0);
	rt_sim_run(net->rt, 100);
	assert_int_equal(net_port(net, N5, 1)->lid, 3);
	send_to(net, N0, 3);
	assert_int_equal(net->sink[N5].packets, 1);
	net_end(net);
}

static union wire_gid gid_of(const char *text)
{
	union wire_gid gid;

	assert_int_equal(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static void gids(void **state)
{
	static const char *const of_n5[] = {"fe80::73:69ff:fe00:3", "::ffff:10.1.0.3",
					    "fd73:6f66:7469:6201::3"};
	struct net *net = triangle();
	struct fab_roce_gid gid[FAB_ROCE_GIDS];

	assert_int_equal(fab_ethernet_gids(net->fab, N5, 1, gid), FAB_ROCE_GIDS_EACH);
	for (int i = 0; i < FAB_ROCE_GIDS_EACH; i++) {
		union wire_gid expected = gid_of(of_n5[i % 3]);

		assert_memory_equal(&gid[i].gid, &expected, sizeof(expected));
		assert_int_equal(gid[i].v2, i < 3);
		assert_int_equal(fab_ethernet_find_gid(net->fab, &gid[i].gid, 0), 3);
	}
	net_end(net);
}

static unsigned int set_added(struct net *net, const char *const *texts, unsigned int num,
			      struct fab_roce_gid gid[FAB_ROCE_GIDS])
{
	struct fab_roce_address list[2 * FAB_ROCE_ADDED];

	for (unsigned int i = 0; i < num; i++)
		list[i] = (struct fab_roce_address){.gid = gid_of(texts[i])};
	fab_ethernet_set_added(net->fab, N5, 1, list, num);
	return fab_ethernet_gids(net->fab, N5, 1, gid);
}

static void expect_entry(const struct fab_roce_gid *entry, const char *text, bool v2)
{
	union wire_gid expected = gid_of(text);

	assert_memory_equal(&entry->gid, &expected, sizeof(expected));
	assert_int_equal(entry->v2, v2);
}

/* Those of the plan have their entries already; others keep theirs when one goes, and a new one has
 * the place of that. */
static void gids_of_added_addresses(void **state)
{
	static const char *const all[] = {"::ffff:10.1.0.3", "::ffff:192.168.0.1", "2001:db8::1"};
	static const char *const others[] = {"2001:db8::1", "::ffff:10.1.0.99"};
	static const char *const many[] = {"::ffff:1.0.0.1", "::ffff:1.0.0.2", "::ffff:1.0.0.3", "::ffff:1.0.0.4",
					   "::ffff:1.0.0.5", "::ffff:1.0.0.6", "::ffff:1.0.0.7", "::ffff:1.0.0.8",
					   "::ffff:1.0.0.9"};
	struct net *net = triangle();
	struct fab_roce_gid gid[FAB_ROCE_GIDS];
	union wire_gid asked = gid_of("2001:db8::1");
	unsigned int port, path;
	int node;

	assert_false(fab_ethernet_find_port(net->fab, &asked, &node, &port, &path));
	assert_int_equal(set_added(net, all, 3, gid), FAB_ROCE_GIDS_EACH + 4);
	for (unsigned int i = 0; i < 4; i++)
		expect_entry(&gid[FAB_ROCE_GIDS_EACH + i], all[1 + i / 2], i % 2 == 0);
	assert_true(fab_ethernet_find_port(net->fab, &asked, &node, &port, &path));
	assert_int_equal(path, 0);
	assert_int_equal(node, N5);
	assert_int_equal(port, 1);
	assert_int_equal(set_added(net, &all[2], 1, gid), FAB_ROCE_GIDS_EACH + 4);
	expect_entry(&gid[FAB_ROCE_GIDS_EACH], "::", true);
	assert_int_equal(set_added(net, others, 2, gid), FAB_ROCE_GIDS_EACH + 4);
	expect_entry(&gid[FAB_ROCE_GIDS_EACH], others[1], true);
	expect_entry(&gid[FAB_ROCE_GIDS_EACH + 2], others[0], true);
	asked = gid_of(others[1]); /* in the network of the plan, which has no such node */
	assert_int_equal(fab_ethernet_find_gid(net->fab, &asked, 0), 3);
	assert_int_equal(set_added(net, many, 9, gid), FAB_ROCE_GIDS_EACH + 2 * FAB_ROCE_ADDED);
	assert_int_equal(set_added(net, NULL, 0, gid), FAB_ROCE_GIDS_EACH);
	assert_int_equal(fab_ethernet_find_gid(net->fab, &asked, 0), 0);
	net_end(net);
}

static void gids_that_nobody_has(void **state)
{
	static const char *const none[] = {"fe80::73:69ff:fe00:0", "fe80::73:69ff:fe00:4",
					   "fe80::1:0:0:1", "::ffff:10.1.0.4", "::ffff:10.1.0.0",
					   "::ffff:10.2.0.1", "::ffff:192.168.0.1",
					   "fd73:6f66:7469:6201::4", "2001:db8::1", "::"};
	struct net *net = triangle();
	union wire_gid gid;

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		gid = gid_of(none[i]);
		assert_int_equal(fab_ethernet_find_gid(net->fab, &gid, 0), 0);
	}
	gid = gid_of("ff0e::ffff:224.1.2.3");
	assert_int_equal(fab_ethernet_find_gid(net->fab, &gid, 0), FAB_STATION_ALL);
	net_end(net);
}

static void mac_addresses(void **state)
{
	static const uint8_t group[] = {0x01, 0x00, 0x5e, 0, 0, 1}, of_nobody[] = {2, 0, 0, 0, 0, 1};
	struct net *net = triangle();
	uint8_t mac[FAB_MAC_BYTES];

	for (uint16_t i = 1; i <= 3; i++) {
		fab_ethernet_mac(net->fab, i, mac);
		assert_int_equal(mac[0] & 3, 2); /* of one station, locally administered */
		assert_int_equal(fab_ethernet_find_mac(net->fab, mac), i);
	}
	fab_ethernet_mac(net->fab, 4, mac);
	assert_int_equal(fab_ethernet_find_mac(net->fab, mac), FAB_STATION_ALL);
	assert_int_equal(fab_ethernet_find_mac(net->fab, group), FAB_STATION_ALL);
	assert_int_equal(fab_ethernet_find_mac(net->fab, of_nobody), FAB_STATION_ALL);
	net_end(net);
}

static void the_active_mtu_follows_the_interface(void **state)
{
	static const struct {
		unsigned int mtu;
		uint8_t active_enc;
		uint16_t kept;
	} rows[] = {{68, WIRE_MTU_256, 68},	   {607, WIRE_MTU_256, 607},   {608, WIRE_MTU_512, 608},
		    {1500, WIRE_MTU_1024, 1500},   {4191, WIRE_MTU_2048, 4191}, {4192, WIRE_MTU_4096, 4192},
		    {9000, WIRE_MTU_4096, 9000},   {65535, WIRE_MTU_4096, WIRE_FRAME_MTU_MAX}};
	struct net *net = triangle();

	assert_int_equal(fab_ethernet_mtu(net->fab, N0, 1), WIRE_MTU_MAX);
	assert_int_equal(net_port(net, N0, 1)->neighbor_mtu_enc, WIRE_MTU_4096);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fab_ethernet_set_mtu(net->fab, N0, 1, rows[i].mtu);
		assert_int_equal(net_port(net, N0, 1)->neighbor_mtu_enc, rows[i].active_enc);
		assert_int_equal(fab_ethernet_mtu(net->fab, N0, 1), rows[i].kept);
	}
	net_end(net);
}

/* VLAN 100 has N0 and N1, VLAN 7 all three nodes */
static struct net *with_vlans(struct fab_vlans *vlans)
{
	struct net *net = calloc(1, sizeof(*net));
	struct topo_plan plan;
	char err[128];

	add_triangle(net);
	topo_set_ethernet(&net->topo);
	assert_int_equal(fab_vlans_parse(vlans, &net->topo, "100:n0+n1,7", err, sizeof(err)), 0);
	net_start(net);
	topo_plan_init(&plan);
	plan.vlans = vlans->num;
	assert_int_equal(topo_plan_fit(&plan, &net->topo, err, sizeof(err)), 0);
	assert_int_equal(fab_ethernet_start(net->fab, &plan, vlans), 0);
	rt_sim_run(net->rt, 100);
	return net;
}

static void end_vlans(struct net *net, struct fab_vlans *vlans)
{
	net_end(net);
	fab_vlans_free(vlans);
}

/* the number of the station at @place, from 1, in VLAN @v: it has eight */
#define AT(place, v) ((uint16_t)((place) * FAB_PATHS + (v)))
enum { PLACE_N0 = 1, PLACE_N1, PLACE_N5 };

/* the numbers of the third VLAN and those behind it are nobody's */
static void vlans_have_ways_to_their_members(void **state)
{
	struct fab_vlans vlans;
	struct net *net = with_vlans(&vlans);

	assert_int_equal(net_port(net, N0, 1)->lid, AT(PLACE_N0, 0));
	assert_int_equal(net_port(net, N5, 1)->lid, AT(PLACE_N5, 0));
	assert_int_equal(net_port(net, N5, 1)->lmc, FAB_PATH_BITS);
	for (uint16_t v = 0; v < FAB_PATHS; v++)
		send_to(net, N0, AT(PLACE_N5, v));
	assert_int_equal(net->sink[N5].packets, 2); /* untagged, and VLAN 7 */
	send_to(net, N0, AT(PLACE_N1, 1));
	assert_int_equal(net->sink[N1].packets, 1);
	end_vlans(net, &vlans);
}

static void a_frame_to_a_vlan_reaches_its_members(void **state)
{
	struct fab_vlans vlans;
	struct net *net = with_vlans(&vlans);

	send_to(net, N0, FAB_STATION_ALL + 1);
	assert_int_equal(net->sink[N1].packets, 1);
	assert_int_equal(net->sink[N5].packets, 0);
	send_to(net, N0, FAB_STATION_ALL + 2);
	assert_int_equal(net->sink[N1].packets, 2);
	assert_int_equal(net->sink[N5].packets, 1);
	end_vlans(net, &vlans);
}

static void addresses_in_vlans(void **state)
{
	static const struct {
		const char *gid;
		uint16_t found[3]; /* by the VLAN of the source; 0: nobody has it there */
	} rows[] = {
		{"fe80::73:69ff:fe00:1", {AT(PLACE_N0, 0), AT(PLACE_N0, 1), AT(PLACE_N0, 2)}},
		{"fe80::73:69ff:fe00:3", {AT(PLACE_N5, 0), 0, AT(PLACE_N5, 2)}},
		{"::ffff:10.1.0.3", {AT(PLACE_N5, 0), 0, 0}},
		{"::ffff:10.2.0.2", {0, AT(PLACE_N1, 1), 0}},
		{"::ffff:10.2.0.3", {0, 0, 0}},
		{"::ffff:10.3.0.3", {0, 0, AT(PLACE_N5, 2)}},
		{"fd73:6f66:7469:6203::2", {0, 0, AT(PLACE_N1, 2)}},
		{"::ffff:10.4.0.1", {0, 0, 0}},
		{"ff0e::1", {0xc000, 0xc001, 0xc002}},
	};
	struct fab_roce_gid gid[FAB_ROCE_GIDS];
	struct fab_vlans vlans;
	struct net *net = with_vlans(&vlans);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (unsigned v = 0; v < 3; v++) {
			union wire_gid dgid = gid_of(rows[i].gid);

			print_message("# %s, VLAN %u\n", rows[i].gid, v);
			assert_int_equal(fab_ethernet_find_gid(net->fab, &dgid, v), rows[i].found[v]);
		}
	assert_int_equal(fab_ethernet_gids(net->fab, N1, 1, gid), 3 * FAB_ROCE_GIDS_EACH);
	assert_int_equal(gid[6].vlan_id, 100);
	assert_int_equal(fab_ethernet_gids(net->fab, N5, 1, gid), 2 * FAB_ROCE_GIDS_EACH);
	assert_int_equal(gid[0].vlan_id, 0);
	assert_int_equal(gid[6].vlan_id, 7);
	assert_int_equal(gid[6].path, 2);
	end_vlans(net, &vlans);
}

/* a program with packets of its own making stays in its VLANs */
static void nobody_sends_to_a_vlan_from_outside(void **state)
{
	struct fab_vlans vlans;
	struct net *net = with_vlans(&vlans);

	const uint16_t n0 = AT(PLACE_N0, 0), n1 = AT(PLACE_N1, 0), n5 = AT(PLACE_N5, 0);

	assert_true(fab_ethernet_may_send(net->fab, N5, 1, n5, n0));
	assert_true(fab_ethernet_may_send(net->fab, N5, 1, n5 + 2, n0 + 2));
	assert_true(fab_ethernet_may_send(net->fab, N5, 1, n5 + 2, FAB_STATION_ALL + 2));
	assert_false(fab_ethernet_may_send(net->fab, N5, 1, n5 + 1, n0 + 1));
	assert_false(fab_ethernet_may_send(net->fab, N5, 1, n5, n0 + 1));
	assert_false(fab_ethernet_may_send(net->fab, N5, 1, n5, FAB_STATION_ALL + 1));
	assert_false(fab_ethernet_may_send(net->fab, N0, 1, n0 + 3, n0 + 3)); /* no VLAN has this number */
	assert_true(fab_ethernet_may_send(net->fab, N0, 1, n0 + 1, n1 + 1));
	assert_false(fab_ethernet_may_send(net->fab, N0, 1, n0, n1 + 1)); /* a frame has one tag */
	end_vlans(net, &vlans);
}

/* @id: of the VLAN; @host: the last byte of its addresses, 0 for none */
static void add_vlan(struct net *net, int node, uint16_t id, unsigned int host)
{
	struct fab_roce_address address = {.gid = gid_of("::ffff:192.168.0.0"), .vlan_id = id};

	address.gid.raw[15] = (uint8_t)host;
	fab_ethernet_set_added(net->fab, node, 1, &address, host ? 1 : 0);
	rt_sim_run(net->rt, 100);
}

/* with the addresses of the plan in those that the plan has, and without in others */
static void hosts_add_vlans(void **state)
{
	const union wire_gid of_n5 = gid_of("::ffff:192.168.0.5"),
			     local = gid_of("fe80::73:69ff:fe00:3");
	struct fab_roce_gid gid[FAB_ROCE_GIDS];
	struct fab_vlans vlans;
	struct net *net = with_vlans(&vlans);
	unsigned int port, path;
	int node;

	add_vlan(net, N0, 55, 1);
	send_to(net, N0, AT(PLACE_N5, 3));
	assert_int_equal(net->sink[N5].packets, 0); /* not yet a member */
	assert_int_equal(fab_ethernet_find_gid(net->fab, &local, 3), 0);
	add_vlan(net, N5, 55, 5);
	assert_int_equal(fab_ethernet_gids(net->fab, N5, 1, gid), 2 * FAB_ROCE_GIDS_EACH + 2);
	for (int i = 0; i < 2; i++) {
		const struct fab_roce_gid *entry = &gid[2 * FAB_ROCE_GIDS_EACH + i];

		expect_entry(entry, "::ffff:192.168.0.5", i == 0);
		assert_int_equal(entry->path, 3);
		assert_int_equal(entry->vlan_id, 55);
	}
	assert_int_equal(fab_ethernet_find_gid(net->fab, &of_n5, 3), AT(PLACE_N5, 3));
	assert_int_equal(fab_ethernet_find_gid(net->fab, &of_n5, 0), 0);
	assert_int_equal(fab_ethernet_find_gid(net->fab, &local, 3), AT(PLACE_N5, 3));
	assert_true(fab_ethernet_find_port(net->fab, &of_n5, &node, &port, &path));
	assert_int_equal(node, N5);
	assert_int_equal(path, 3);
	send_to(net, N0, AT(PLACE_N5, 3));
	send_to(net, N0, FAB_STATION_ALL + 3);
	assert_int_equal(net->sink[N5].packets, 2);
	assert_int_equal(net->sink[N1].packets, 0);
	assert_false(fab_ethernet_may_send(net->fab, N1, 1, AT(PLACE_N1, 3), AT(PLACE_N5, 3)));
	add_vlan(net, N5, 55, 0); /* its interface was deleted */
	assert_int_equal(fab_ethernet_find_gid(net->fab, &of_n5, 3), 0);
	assert_false(fab_ethernet_is_member(net->fab, N5, 1, 3));
	assert_true(fab_ethernet_is_member(net->fab, N5, 1, 2)); /* VLAN 7, by the plan */
	end_vlans(net, &vlans);
}

/* A VLAN that all have left makes room for another one; N0 keeps its own meanwhile. */
static void vlans_that_hosts_add_are_as_many_as_paths(void **state)
{
	struct fab_roce_address many[FAB_PATHS] = {0};
	struct fab_vlans vlans;
	struct net *net = with_vlans(&vlans);
	struct fab_roce_gid gid[FAB_ROCE_GIDS];
	unsigned int planned = 2 * FAB_ROCE_GIDS_EACH, of_n0 = FAB_PATHS - 1 - vlans.num;

	for (unsigned int i = 0; i < FAB_PATHS; i++) {
		many[i] = (struct fab_roce_address){.gid = gid_of("::ffff:192.168.0.1"),
						    .vlan_id = (uint16_t)(200 + i)};
		many[i].gid.raw[14] = (uint8_t)i;
	}
	fab_ethernet_set_added(net->fab, N0, 1, many, FAB_PATHS);
	assert_int_equal(fab_ethernet_gids(net->fab, N0, 1, gid), planned + FAB_ROCE_GIDS_EACH + 2 * of_n0);
	add_vlan(net, N5, 300, 5);
	assert_int_equal(fab_ethernet_gids(net->fab, N5, 1, gid), planned);
	add_vlan(net, N5, 201, 5);
	assert_int_equal(fab_ethernet_gids(net->fab, N5, 1, gid), planned + 2);
	fab_ethernet_set_added(net->fab, N0, 1, many + 1, of_n0 - 1);
	add_vlan(net, N5, 300, 5);
	assert_int_equal(fab_ethernet_gids(net->fab, N5, 1, gid), planned + 2);
	assert_int_equal(gid[planned].vlan_id, 300);
	assert_int_equal(fab_ethernet_gids(net->fab, N0, 1, gid), planned + FAB_ROCE_GIDS_EACH + 2 * of_n0);
	assert_int_equal(gid[planned + FAB_ROCE_GIDS_EACH + 2].vlan_id, 201);
	assert_int_equal(gid[planned + FAB_ROCE_GIDS_EACH].vlan_id, 0); /* free */
	end_vlans(net, &vlans);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stations_are_active_at_once),
		cmocka_unit_test(both_link_layers_in_one_adapter),
		cmocka_unit_test(every_station_reaches_every_other),
		cmocka_unit_test(a_frame_to_all_reaches_each_once),
		cmocka_unit_test(a_way_around_is_found),
		cmocka_unit_test(a_switch_comes_back),
		cmocka_unit_test(an_adapter_comes_back),
		cmocka_unit_test(gids),
		cmocka_unit_test(gids_of_added_addresses),
		cmocka_unit_test(gids_that_nobody_has),
		cmocka_unit_test(mac_addresses),
		cmocka_unit_test(the_active_mtu_follows_the_interface),
		cmocka_unit_test(vlans_have_ways_to_their_members),
		cmocka_unit_test(a_frame_to_a_vlan_reaches_its_members),
		cmocka_unit_test(addresses_in_vlans),
		cmocka_unit_test(nobody_sends_to_a_vlan_from_outside),
		cmocka_unit_test(hosts_add_vlans),
		cmocka_unit_test(vlans_that_hosts_add_are_as_many_as_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
