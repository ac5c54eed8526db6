/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* PortInfo: the state table, what a Set may hold, and what it changes. */
#include "mad.h"

static struct bench ca_with_link(void)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);

	assert_int_equal(ag_port_link(b.node, 1, WIRE_WIDTH_4X, AG_EDR, 0, b.now),
			 AG_CHANGED_STATE);
	return b;
}

static void link_brings_init(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	struct wire_port_info pi = bench_get_port_info(&b, 1);

	assert_int_equal(pi.state, WIRE_PORT_DOWN);
	assert_int_equal(pi.phys_state, WIRE_PHYS_POLLING);
	ag_port_link(b.node, 1, WIRE_WIDTH_4X, AG_EDR, 0, b.now);
	pi = bench_get_port_info(&b, 1);
	assert_int_equal(pi.state, WIRE_PORT_INIT);
	assert_int_equal(pi.phys_state, WIRE_PHYS_LINK_UP);
	assert_int_equal(pi.link_width_active, WIRE_WIDTH_4X);
	assert_int_equal(pi.link_speed_active, WIRE_SPEED_QDR);
	assert_int_equal(pi.link_speed_ext_active, WIRE_SPEED_EXT_EDR);
	bench_free(&b);
}

/* table 146: from each state, what a Set of each state does */
static void state_table(void **state)
{
	enum { BAD = WIRE_STATUS_BAD_FIELD };
	static const struct {
		uint8_t from, set;
		int status;
		uint8_t then;
	} rows[] = {
		{WIRE_PORT_INIT, WIRE_PORT_NO_CHANGE, 0, WIRE_PORT_INIT},
		{WIRE_PORT_INIT, WIRE_PORT_INIT, BAD, WIRE_PORT_INIT},
		{WIRE_PORT_INIT, WIRE_PORT_ARMED, 0, WIRE_PORT_ARMED},
		{WIRE_PORT_INIT, WIRE_PORT_ACTIVE, BAD, WIRE_PORT_INIT},
		{WIRE_PORT_ARMED, WIRE_PORT_INIT, BAD, WIRE_PORT_ARMED},
		{WIRE_PORT_ARMED, WIRE_PORT_ARMED, 0, WIRE_PORT_ARMED},
		{WIRE_PORT_ARMED, WIRE_PORT_ACTIVE, 0, WIRE_PORT_ACTIVE},
		{WIRE_PORT_ACTIVE, WIRE_PORT_ARMED, BAD, WIRE_PORT_ACTIVE},
		{WIRE_PORT_ACTIVE, WIRE_PORT_INIT, BAD, WIRE_PORT_ACTIVE},
		{WIRE_PORT_ACTIVE, WIRE_PORT_ACTIVE, 0, WIRE_PORT_ACTIVE},
		{WIRE_PORT_ACTIVE, 5, BAD, WIRE_PORT_ACTIVE},
		{WIRE_PORT_DOWN, WIRE_PORT_ARMED, BAD, WIRE_PORT_DOWN},
		{WIRE_PORT_DOWN, WIRE_PORT_ACTIVE, BAD, WIRE_PORT_DOWN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench b = ca_with_link();
		struct wire_port_info pi;

		b.node->port[1].state = rows[i].from;
		pi = bench_get_port_info(&b, 1);
		pi.state = rows[i].set;
		pi.phys_state = WIRE_PHYS_NO_CHANGE;
		assert_int_equal(bench_set_port_info(&b, 1, &pi), rows[i].status);
		assert_int_equal(b.node->port[1].state, rows[i].then);
		assert_int_equal(!!(b.effect.changes & AG_CHANGED_STATE),
				 rows[i].from != rows[i].then);
		bench_free(&b);
	}
}

static void down_asks_for_the_link(void **state)
{
	struct bench b = ca_with_link();
	struct wire_port_info pi = bench_get_port_info(&b, 1);

	pi.state = WIRE_PORT_DOWN;
	pi.phys_state = WIRE_PHYS_DISABLED;
	assert_int_equal(bench_set_port_info(&b, 1, &pi), 0);
	assert_true(b.effect.changes & AG_CHANGED_PHYS);
	assert_int_equal(b.node->port[1].phys_request, WIRE_PHYS_DISABLED);
	/* the link itself falls when the fabric says so */
	assert_int_equal(b.node->port[1].state, WIRE_PORT_INIT);
	assert_int_equal(ag_port_link(b.node, 1, 0, 0, WIRE_PHYS_DISABLED, b.now),
			 AG_CHANGED_STATE);
	assert_int_equal(b.node->port[1].count.raw[AG_LINK_DOWNED], 1);
	pi = bench_get_port_info(&b, 1);
	assert_int_equal(pi.phys_state, WIRE_PHYS_DISABLED);
	/* a Down port may be moved without PortState */
	pi.state = WIRE_PORT_NO_CHANGE;
	pi.phys_state = WIRE_PHYS_POLLING;
	assert_int_equal(bench_set_port_info(&b, 1, &pi), 0);
	assert_int_equal(b.node->port[1].phys_request, WIRE_PHYS_POLLING);
	bench_free(&b);
}

static void phys_state_needs_down(void **state)
{
	struct bench b = ca_with_link();
	struct wire_port_info pi = bench_get_port_info(&b, 1);

	pi.state = WIRE_PORT_ARMED;
	pi.phys_state = WIRE_PHYS_DISABLED;
	assert_int_equal(bench_set_port_info(&b, 1, &pi), WIRE_STATUS_BAD_FIELD);
	pi.state = WIRE_PORT_NO_CHANGE; /* as good as Down */
	assert_int_equal(bench_set_port_info(&b, 1, &pi), 0);
	assert_int_equal(b.effect.changes & AG_CHANGED_PHYS, AG_CHANGED_PHYS);
	pi.state = WIRE_PORT_DOWN;
	pi.phys_state = WIRE_PHYS_LINK_UP; /* not the manager's to set */
	assert_int_equal(bench_set_port_info(&b, 1, &pi), WIRE_STATUS_BAD_FIELD);
	bench_free(&b);
}

static void lid_and_manager(void **state)
{
	struct bench b = ca_with_link();
	struct wire_port_info pi = bench_get_port_info(&b, 1);

	pi.state = pi.phys_state = 0;
	pi.lid = 8;
	pi.lmc = 2;
	pi.sm_lid = 1;
	pi.sm_sl = 3;
	pi.gid_prefix = 0xfec0000000000001;
	pi.client_reregister = true;
	assert_int_equal(bench_set_port_info(&b, 1, &pi), 0);
	assert_int_equal(b.effect.changes & ~AG_CHANGED_ATTRIBUTES,
			 AG_CHANGED_LID | AG_CHANGED_SM | AG_CHANGED_GIDS | AG_CHANGED_REREGISTER);
	wire_port_info_decode(b.data, WIRE_SMP_DATA_BYTES, &pi);
	assert_true(pi.client_reregister);
	pi = bench_get_port_info(&b, 0); /* 0 is the port it came in by */
	assert_int_equal(pi.lid, 8);
	assert_int_equal(pi.sm_sl, 3);
	assert_false(pi.client_reregister);
	bench_free(&b);
}

static void bad_values(void **state)
{
	static const struct {
		size_t offset;
		uint16_t value;
		bool wide;
	} bad[] = {
		{offsetof(struct wire_port_info, lid), 0xc000, true},
		{offsetof(struct wire_port_info, lid), 0xffff, true},
		{offsetof(struct wire_port_info, sm_lid), 0xffff, true},
		{offsetof(struct wire_port_info, neighbor_mtu), 0, false},
		{offsetof(struct wire_port_info, neighbor_mtu), 6, false},
		{offsetof(struct wire_port_info, operational_vls), 5, false},
		{offsetof(struct wire_port_info, link_width_enabled), WIRE_WIDTH_12X, false},
		{offsetof(struct wire_port_info, link_speed_ext_enabled), WIRE_SPEED_EXT_NDR, false},
		{offsetof(struct wire_port_info, link_down_default_state), 3, false},
		{offsetof(struct wire_port_info, lmc), 1, false}, /* LID 3 has its low bit set */
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct bench b = ca_with_link();
		struct wire_port_info pi = bench_get_port_info(&b, 1);
		struct ag_port before;

		pi.state = pi.phys_state = 0;
		pi.lid = 3;
		before = b.node->port[1];
		if (bad[i].wide)
			memcpy((uint8_t *)&pi + bad[i].offset, &bad[i].value, 2);
		else
			*((uint8_t *)&pi + bad[i].offset) = (uint8_t)bad[i].value;
		assert_int_equal(bench_set_port_info(&b, 1, &pi), WIRE_STATUS_BAD_FIELD);
		assert_memory_equal(&before, &b.node->port[1], sizeof(before));
		assert_int_equal(b.effect.changes, 0);
		bench_free(&b);
	}
}

static void speeds_enabled(void **state)
{
	struct bench b = ca_with_link();
	struct wire_port_info pi = bench_get_port_info(&b, 1);

	pi.state = pi.phys_state = 0;
	pi.link_speed_enabled = WIRE_SPEED_SDR | WIRE_SPEED_DDR;
	pi.link_speed_ext_enabled = 30; /* none */
	pi.link_width_enabled = WIRE_WIDTH_1X;
	assert_int_equal(bench_set_port_info(&b, 1, &pi), 0);
	assert_int_equal(b.node->port[1].speed_enabled, AG_SDR | AG_DDR);
	assert_int_equal(b.node->port[1].width_enabled, WIRE_WIDTH_1X);
	pi.link_speed_enabled = 0xf;
	pi.link_speed_ext_enabled = 31;
	pi.link_width_enabled = 0xff;
	assert_int_equal(bench_set_port_info(&b, 1, &pi), 0);
	assert_int_equal(b.node->port[1].speed_enabled, b.node->port[1].speed_supported);
	assert_int_equal(b.node->port[1].width_enabled, b.node->port[1].width_supported);
	bench_free(&b);
}

static void switch_ports(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 4);
	struct wire_port_info pi = bench_get_port_info(&b, 0);

	assert_int_equal(pi.state, WIRE_PORT_ACTIVE);
	pi.state = pi.phys_state = 0;
	pi.lid = 2;
	pi.lmc = 1; /* a base port 0 has one LID */
	assert_int_equal(bench_set_port_info(&b, 0, &pi), WIRE_STATUS_BAD_FIELD);
	pi.lmc = 0;
	assert_int_equal(bench_set_port_info(&b, 0, &pi), 0);
	assert_int_equal(b.effect.port, 0);
	pi = bench_get_port_info(&b, 4);
	assert_int_equal(pi.lid, 0); /* a cabled port is no end point */
	assert_int_equal(bench_smp(&b, WIRE_METHOD_GET, WIRE_SMP_PORT_INFO, 5),
			 WIRE_STATUS_BAD_FIELD);
	/* bit 31: "I know the extended speeds" is no port number */
	assert_int_equal(bench_smp(&b, WIRE_METHOD_GET, WIRE_SMP_PORT_INFO, 0x80000004), 0);
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(link_brings_init),  cmocka_unit_test(state_table),
		cmocka_unit_test(down_asks_for_the_link), cmocka_unit_test(phys_state_needs_down),
		cmocka_unit_test(lid_and_manager),   cmocka_unit_test(bad_values),
		cmocka_unit_test(speeds_enabled),    cmocka_unit_test(switch_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
