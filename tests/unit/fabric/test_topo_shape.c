/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shorthands: how many nodes and cables each makes, that every node is
 * reached, that both ends of a cable agree, and that bad ones are refused
 * with a message.
 */
#include <inttypes.h>

#include "topo_check.h"

struct expected {
	const char *spec;
	int hosts, switches, cables;
};

static const struct expected table[] = {
	{"direct", 2, 0, 1},
	{"direct,ports=2", 2, 0, 2},
	{"pair", 2, 1, 2},
	{"pair:2", 2, 1, 4},
	{"pair,ports=2", 2, 1, 4},
	{"star:1", 1, 1, 1},
	{"star:8", 8, 1, 8},
	{"star:8,ports=2", 8, 1, 16},
	{"star:4,adapters=3,ports=2", 12, 1, 24},
	{"star:254", 254, 1, 254},
	{"star:4,spare=3", 4, 1, 4},
	{"fattree:2,4,spare=2", 32, 12, 64},
	/* 2 K^L hosts; (2L - 1) K^(L-1) switches; L levels of 2 K^L cables */
	{"fattree:1,4", 8, 1, 8},
	{"fattree:2,1", 2, 3, 4},
	{"fattree:2,4", 32, 12, 64},
	{"fattree:2,18", 648, 54, 1296},
	{"fattree:3,4", 128, 80, 384},
	{"fattree:4,2", 32, 56, 128},
	{"torus:4x4x4", 64, 64, 64 + 3 * 64},
	{"torus:4x4,3", 48, 16, 48 + 2 * 16},
	{"torus:2x3", 6, 6, 6 + 3 + 6},
	{"torus:1x5", 5, 5, 5 + 5},
	{"torus:5", 5, 5, 5 + 5},
	/* a h + 1 groups of a switches */
	{"dragonfly:4,2,2", 72, 36, 72 + 9 * 6 + 36},
	{"dragonfly:1,1,1", 2, 2, 2 + 1},
	{"dragonfly:2,1,3", 14, 14, 14 + 7 + 21},
};

static void counts_and_connectivity(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct topology *t = load(table[i].spec);

		print_message("# %s\n", table[i].spec);
		assert_int_equal(count_kind(t, TOPO_CA), table[i].hosts);
		assert_int_equal(count_kind(t, TOPO_SWITCH), table[i].switches);
		assert_int_equal(count_cables(t), table[i].cables);
		check_cables(t);
		assert_int_equal(count_reached(t), t->num_nodes);
		topo_free(t);
	}
}

/* every switch below the top uses all of its ports, so does the top one */
static void fattree_uses_all_ports(void **state)
{
	struct topology *t = load("fattree:3,3");

	for (int i = 0; i < t->num_nodes; i++)
		for (int p = 1; p <= t->node[i].num_ports; p++)
			assert_true(t->node[i].port[p].peer_node >= 0);
	topo_free(t);
}

/* full bisection: cutting a pod off takes as many cables as it has hosts */
static void fattree_bisection(void **state)
{
	struct topology *t = load("fattree:3,3");
	int first = topo_find(t, "s1"), tops = 9, up = 0;

	/* levels: 2 x 6 pods x 3 switches, then the 9 top switches */
	for (int i = first + 36; i < first + 36 + tops; i++)
		for (int p = 1; p <= 6; p++)
			up += t->node[i].port[p].peer_node >= 0;
	assert_int_equal(up, count_kind(t, TOPO_CA));
	topo_free(t);
}

/* each pair of groups has exactly one cable */
static void dragonfly_groups(void **state)
{
	struct topology *t = load("dragonfly:4,2,2");
	int first = topo_find(t, "s1"), between[9][9] = {{0}};

	for (int s = 0; s < 36; s++) {
		for (int p = 1; p <= 7; p++) {
			int peer = t->node[first + s].port[p].peer_node - first;
			if (peer >= 0)
				between[s / 4][peer / 4]++;
		}
	}
	for (int a = 0; a < 9; a++)
		for (int b = 0; b < 9; b++)
			assert_int_equal(between[a][b], a == b ? 12 : 1);
	topo_free(t);
}

static int find_guid(const struct topology *t, uint64_t guid)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%016" PRIx64, guid);
	return topo_find(t, text);
}

static void names_and_lookup(void **state)
{
	struct topology *t = load("pair");
	int n2 = topo_find(t, "n2"), s1 = topo_find(t, "s1");

	assert_int_equal(t->node[n2].kind, TOPO_CA);
	assert_int_equal(t->node[s1].kind, TOPO_SWITCH);
	assert_int_equal(topo_find(t, "n2 softib0"), n2);
	assert_int_equal(topo_find(t, t->node[n2].id), n2);
	assert_int_equal(find_guid(t, t->node[n2].guid), n2);
	assert_int_equal(find_guid(t, t->node[n2].guid + 1), n2); /* port GUID */
	assert_int_equal(find_guid(t, t->node[s1].guid), s1);
	assert_int_equal(topo_find(t, "n3"), -1);
	assert_int_equal(topo_find(t, "0x"), -1);
	assert_int_equal(topo_find(t, ""), -1);
	assert_int_equal(topo_port_guid(&t->node[s1], 2), t->node[s1].guid);
	topo_free(t);
}

static void load_as(const char *fabric, struct topology **t)
{
	char err[300];

	assert_int_equal(topo_load("pair", fabric, t, err, sizeof(err)), 0);
}

#define FABRICS 1000

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void guids_of_fabrics_differ(void **state)
{
	uint64_t guid[FABRICS];
	struct topology *t;
	char name[16];

	for (int i = 0; i < FABRICS; i++) {
		snprintf(name, sizeof(name), "lab%d", i);
		load_as(name, &t);
		guid[i] = t->node[topo_find(t, "n2")].guid;
		assert_int_equal(guid[i] >> 56, 0x02); /* of one node, given locally */
		assert_int_equal(guid[i] & 0xfffffff, 0x1000200);
		assert_int_equal(t->node[topo_find(t, "s1")].guid, guid[i] + 0x0ffff00);
		topo_free(t);
	}
	qsort(guid, FABRICS, sizeof(guid[0]), by_value);
	for (int i = 1; i < FABRICS; i++)
		assert_true(guid[i] != guid[i - 1]);
}

/* People's scripts name them. */
static void guids_of_a_fabric_stay(void **state)
{
	struct topology *t;

	load_as("default", &t);
	assert_int_equal(t->node[topo_find(t, "n1")].guid, 0x02cfa94961000100);
	assert_int_equal(t->node[topo_find(t, "n1")].sys_guid, 0x02cfa94961000100);
	topo_free(t);
}

static void spare_ports_have_no_cable(void **state)
{
	struct topology *t = load("fattree:2,4,spare=2");

	for (int i = 0; i < t->num_nodes; i++) {
		const struct topo_node *nd = &t->node[i];

		assert_int_equal(nd->num_ports, nd->kind == TOPO_SWITCH ? 10 : 1);
		for (int p = 9; p <= nd->num_ports; p++)
			assert_int_equal(nd->port[p].peer_node, -1);
	}
	topo_free(t);
}

static void link_options(void **state)
{
	struct topology *t = load("star:2,speed=NDR,width=12x");

	assert_int_equal(t->node[0].port[1].speed_enc, 128);
	assert_int_equal(t->node[0].port[1].width_enc, 8);
	topo_free(t);
}

static void bad_shapes(void **state)
{
	static const char *const bad[] = {
		"pair:",
		"pair:0",
		"pair:128",
		"pair:x",
		"pair,",
		"pair,x",
		"pair,spare=0",
		"star:250,spare=5",
		"pair,speed=",
		"pair,speed=XX",
		"pair,width=3x",
		"pair extra",
		"star",
		"star:",
		"star:0",
		"star:-1",
		"star:255",
		"star:99999999999999999999",
		"star:8x",
		"star:8,9",
		"fattree",
		"fattree:2",
		"fattree:2,",
		"fattree:0,4",
		"fattree:2,128",
		"fattree:9,9",
		"fattree:127,127",
		"fattree:2,4,5",
		"fattree:2,4,ports=2",
		"fattree:2,4,adapters=2",
		"star:4,adapters=14",
		"star:64,adapters=2,ports=2",
		"torus:4x",
		"torus:2x2x2x2",
		"torus:49151x49151",
		"torus:1000x1000",
		"torus:4x4,0",
		"dragonfly:4,2",
		"dragonfly:254,254,254",
		"dragonfly:200,200,1",
		"direct:1",
		"/nonexistent/file",
		"pair,link=",
		"pair,link=token-ring",
		"pair,link=ethernet+",
		"fattree:2,2,link=infiniband+ethernet",
		"star:200,ports=3,link=ethernet+infiniband",
		"",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct topology *t = NULL;
		char err[300];

		print_message("# \"%s\"\n", bad[i]);
		assert_true(topo_load(bad[i], "t", &t, err, sizeof(err)) < 0);
		assert_null(t);
		assert_non_null(strstr(err, "expected") ? strstr(err, "expected")
							: strstr(err, "too large"));
	}
}

/* the adapters of a node: names, GUIDs, ports, and the way back from a port of the node */
static void adapters_of_a_node(void **state)
{
	struct topology *t = load("star:2,adapters=2,ports=2");
	int first = topo_find(t, "n2"), second = topo_find(t, "n2 softib1");
	const struct topo_node *nd = &t->node[second];
	unsigned port = 3;

	assert_string_equal(nd->name, "n2.softib1");
	assert_string_equal(topo_host_name(t, second), "n2");
	assert_int_equal(nd->guid - t->node[first].guid, 3 << 24); /* kinds 4 and 1 */
	assert_int_equal(nd->number, 2);
	assert_int_equal(nd->device, 1);
	assert_int_equal(nd->ports_before, 2);
	assert_int_equal(t->node[first].next, second);
	assert_int_equal(topo_host_adapter(t, first, &port), second);
	assert_int_equal(port, 1);
	port = 5;
	assert_int_equal(topo_host_adapter(t, first, &port), -1);
	port = 0;
	assert_int_equal(topo_host_adapter(t, first, &port), -1);
	topo_free(t);
	t = load("direct,adapters=2,ports=2"); /* two subnets: each adapter has its peer */
	assert_int_equal(count_kind(t, TOPO_CA), 4);
	assert_int_equal(count_cables(t), 4);
	topo_free(t);
}

/* a switch for each link layer; a node's port has that of its place in the list */
static void link_layers(void **state)
{
	static const struct {
		const char *spec;
		int switches;
		bool ethernet[4]; /* the ports of a node, of all its adapters */
	} rows[] = {
		{"pair,adapters=2,ports=2", 1, {false, false, false, false}},
		{"pair,adapters=2,ports=2,link=ethernet", 1, {true, true, true, true}},
		{"pair,adapters=2,ports=2,link=infiniband+ethernet", 2, {false, true, true, true}},
		{"pair,adapters=4,link=ethernet+infiniband+ethernet", 2, {true, false, true, true}},
		{"direct,ports=4,link=infiniband+ethernet+ethernet+infiniband", 0,
		 {false, true, true, false}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct topology *t = load(rows[i].spec);

		print_message("# %s\n", rows[i].spec);
		check_cables(t);
		assert_int_equal(count_kind(t, TOPO_SWITCH), rows[i].switches);
		assert_int_equal(count_cables(t), rows[i].switches ? 8 : 4);
		for (int n = 0; n < t->num_nodes; n++)
			for (int p = 1; p <= t->node[n].num_ports; p++) {
				const struct topo_node *nd = &t->node[n];
				unsigned port = nd->ports_before + (unsigned)p - 1;

				assert_true(nd->port[p].peer_node >= 0);
				if (nd->kind == TOPO_CA)
					assert_int_equal(nd->port[p].ethernet, rows[i].ethernet[port]);
				else
					assert_int_equal(nd->port[p].ethernet, nd->port[0].ethernet);
			}
		topo_free(t);
	}
}

static void allocation_failures(void **state)
{
	struct topology *t;
	char err[300];
	int nth = 0, error;

	do {
		rt_fail_alloc((uint64_t)++nth);
		error = topo_load("star:100", "t", &t, err, sizeof(err));
		if (error)
			assert_int_equal(error, -ENOMEM);
	} while (error && nth < 1000);
	rt_fail_alloc(0);
	assert_in_range(nth, 100, 999);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spare_ports_have_no_cable),
		cmocka_unit_test(counts_and_connectivity),
		cmocka_unit_test(fattree_uses_all_ports),
		cmocka_unit_test(fattree_bisection),
		cmocka_unit_test(dragonfly_groups),
		cmocka_unit_test(names_and_lookup),
		cmocka_unit_test(guids_of_fabrics_differ),
		cmocka_unit_test(guids_of_a_fabric_stay),
		cmocka_unit_test(link_options),
		cmocka_unit_test(bad_shapes),
		cmocka_unit_test(adapters_of_a_node),
		cmocka_unit_test(link_layers),
		cmocka_unit_test(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
