/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The SMA's attributes but PortInfo, the M_Key, and traps. */
#include "mad.h"

static int get(struct bench *b, uint16_t attr, uint32_t mod)
{
	return bench_smp(b, WIRE_METHOD_GET, attr, mod);
}

static int set(struct bench *b, uint16_t attr, uint32_t mod)
{
	return bench_smp(b, WIRE_METHOD_SET, attr, mod);
}

static void node_info(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 2);
	struct wire_node_info info;

	b.port = 2;
	assert_int_equal(get(&b, WIRE_SMP_NODE_INFO, 0), 0);
	wire_node_info_decode(b.data, WIRE_SMP_DATA_BYTES, &info);
	assert_int_equal(info.node_type, WIRE_NODE_CA);
	assert_int_equal(info.nr_ports, 2);
	assert_int_equal(info.local_port, 2);
	assert_int_equal(info.node_guid, b.node->guid);
	assert_int_equal(info.port_guid, b.node->guid + 2);
	assert_int_equal(info.partition_cap, 128);
	assert_int_equal(info.vendor_id, 0x2c9);
	assert_int_equal(set(&b, WIRE_SMP_NODE_INFO, 0), WIRE_STATUS_BAD_METHOD_ATTR);
	bench_free(&b);
}

static void node_description(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);

	assert_int_equal(get(&b, WIRE_SMP_NODE_DESCRIPTION, 0), 0);
	assert_string_equal((char *)b.data, "n1");
	memset(b.data, 'x', 64);
	assert_int_equal(set(&b, WIRE_SMP_NODE_DESCRIPTION, 0), 0);
	assert_int_equal(b.effect.changes, AG_CHANGED_NAME);
	assert_int_equal(b.node->desc[63], 'x');
	bench_free(&b);
}

/* 13.4.7: an answer says what was wrong; never silence */
static void statuses(void **state)
{
	static const struct {
		size_t at;
		uint8_t value;
		int status;
	} rows[] = {
		{0, 2, WIRE_STATUS_BAD_VERSION},	/* BaseVersion */
		{2, 2, WIRE_STATUS_BAD_VERSION},	/* ClassVersion */
		{3, 0x12, WIRE_STATUS_BAD_METHOD},	/* GetTable is SA's */
		{17, 0x31, WIRE_STATUS_BAD_METHOD_ATTR}, /* LedInfo */
		{17, 0x12, WIRE_STATUS_BAD_METHOD_ATTR}, /* SwitchInfo of a CA */
		{17, 0x19, WIRE_STATUS_BAD_METHOD_ATTR}, /* LFT of a CA */
		{17, 0xee, WIRE_STATUS_BAD_METHOD_ATTR},
		{23, 0x01, 0},				 /* NodeInfo has no modifier */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench b = bench_new(WIRE_NODE_CA, 1);

		get(&b, WIRE_SMP_NODE_INFO, 0);
		b.mad[3] = WIRE_METHOD_GET;
		b.mad[rows[i].at] = rows[i].value;
		assert_int_equal(bench_process(&b), rows[i].status);
		bench_free(&b);
	}
}

static void not_the_agents(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);

	assert_int_equal(get(&b, WIRE_SMP_SM_INFO, 0), -1); /* the SM's */
	assert_int_equal(b.result, AG_PASS);
	bench_smp(&b, WIRE_METHOD_GET_RESP, WIRE_SMP_NODE_INFO, 0);
	assert_int_equal(b.result, AG_PASS);
	bench_smp(&b, WIRE_METHOD_TRAP, WIRE_SMP_NOTICE, 0);
	assert_int_equal(b.result, AG_PASS);
	b.mad[1] = WIRE_CLASS_SA;
	b.mad[3] = WIRE_METHOD_GET;
	assert_int_equal(bench_process(&b), -1);
	assert_int_equal(b.result, AG_PASS);
	b.port = 2; /* there is no such port */
	b.mad[1] = WIRE_CLASS_SM_LID;
	assert_int_equal(bench_process(&b), -1);
	bench_free(&b);
}

static void guid_info(void **state)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	struct wire_guid_info info = {.guid = {1, 2, 3, 4, 5, 6, 7, 8}};

	wire_guid_info_encode(&info, b.mad + WIRE_SMP_DATA_OFFSET);
	assert_int_equal(set(&b, WIRE_SMP_GUID_INFO, 0), 0);
	assert_int_equal(b.effect.changes, AG_CHANGED_GIDS);
	wire_guid_info_decode(b.data, WIRE_SMP_DATA_BYTES, &info);
	assert_int_equal(info.guid[0], b.node->port[1].guid); /* the port's own stays */
	assert_int_equal(info.guid[7], 8);
	assert_int_equal(get(&b, WIRE_SMP_GUID_INFO, 1), 0);
	assert_int_equal(get(&b, WIRE_SMP_GUID_INFO, 2), WIRE_STATUS_BAD_FIELD);
	bench_free(&b);
}

static void pkey_tables(void **state)
{
	struct bench ca = bench_new(WIRE_NODE_CA, 1), sw = bench_new(WIRE_NODE_SWITCH, 4);
	struct wire_pkey_table table = {.pkey = {0xffff, 0x8001, 0x0002}};

	wire_pkey_table_encode(&table, ca.mad + WIRE_SMP_DATA_OFFSET);
	assert_int_equal(set(&ca, WIRE_SMP_PKEY_TABLE, 3), 0);
	assert_int_equal(ca.effect.changes, AG_CHANGED_PKEYS);
	assert_int_equal(ca.node->port[1].pkeys[97], 0x8001);
	assert_int_equal(get(&ca, WIRE_SMP_PKEY_TABLE, 4), WIRE_STATUS_BAD_FIELD);
	/* of a switch the port is in the modifier */
	wire_pkey_table_encode(&table, sw.mad + WIRE_SMP_DATA_OFFSET);
	assert_int_equal(set(&sw, WIRE_SMP_PKEY_TABLE, 3u << 16), 0);
	assert_int_equal(sw.effect.port, 3);
	assert_int_equal(sw.node->port[3].pkeys[2], 2);
	assert_int_equal(sw.node->port[2].pkeys[2], 0);
	assert_int_equal(get(&sw, WIRE_SMP_PKEY_TABLE, 5u << 16), WIRE_STATUS_BAD_FIELD);
	assert_int_equal(get(&sw, WIRE_SMP_PKEY_TABLE, 3u << 16 | 1), WIRE_STATUS_BAD_FIELD);
	bench_free(&ca);
	bench_free(&sw);
}

/* The tables of all ports are in the memory of the node, one behind the other. */
static void every_port_has_tables_of_its_own(void **state)
{
	static const uint8_t kinds[] = {WIRE_NODE_CA, WIRE_NODE_SWITCH}, ports = 3, end[16] = "end";

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct ag_node_config config = {.kind = kinds[k], .num_ports = ports, .desc = "n1"};
		unsigned int first = kinds[k] == WIRE_NODE_SWITCH ? 0 : 1;
		size_t bytes;
		uint8_t *memory;
		struct ag_node *node;

		config.seldom = calloc(1, ag_node_seldom_size(&config));
		bytes = ag_node_size(&config);
		memory = calloc(1, bytes + sizeof(end));
		memcpy(memory + bytes, end, sizeof(end));
		node = ag_node_init(&config, memory);
		for (unsigned int p = first; p <= ports; p++) {
			for (unsigned int i = 0; i < node->port[p].num_guids; i++)
				node->port[p].guids[i] = p;
			for (unsigned int i = 0; i < node->port[p].num_pkeys; i++)
				node->port[p].pkeys[i] = (uint16_t)p;
		}
		for (unsigned int p = first; p <= ports; p++) {
			for (unsigned int i = 0; i < node->port[p].num_guids; i++)
				assert_int_equal(node->port[p].guids[i], p);
			for (unsigned int i = 0; i < node->port[p].num_pkeys; i++)
				assert_int_equal(node->port[p].pkeys[i], p);
		}
		assert_memory_equal(memory + bytes, end, sizeof(end));
		free(memory);
		free(config.seldom);
	}
}

static void sl_to_vl(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 4);
	struct wire_sl_to_vl table = {.vl = {0, 1, 2, 3, 4, 5, 6, 7}};

	wire_sl_to_vl_encode(&table, b.mad + WIRE_SMP_DATA_OFFSET);
	assert_int_equal(set(&b, WIRE_SMP_SL_TO_VL, 2 << 8 | 3), 0);
	assert_int_equal(b.effect.changes, AG_CHANGED_ROUTES);
	assert_int_equal(b.node->port[3].sl2vl[2][7], 7);
	assert_int_equal(b.node->port[2].sl2vl[3][7], 0);
	assert_int_equal(get(&b, WIRE_SMP_SL_TO_VL, 2 << 8 | 5), WIRE_STATUS_BAD_FIELD);
	assert_int_equal(get(&b, WIRE_SMP_SL_TO_VL, 2 << 8 | 3), 0);
	assert_int_equal(set(&b, WIRE_SMP_SL_TO_VL, 3u << 16), 0); /* all to all */
	for (int out = 1; out <= 4; out++)
		for (int in = 0; in <= 4; in++)
			assert_int_equal(b.node->port[out].sl2vl[in][6], 6);
	bench_free(&b);
}

static void vl_arbitration(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 4);
	struct wire_vl_arb table = {.entry = {{1, 100}, {2, 50}}};

	wire_vl_arb_encode(&table, b.mad + WIRE_SMP_DATA_OFFSET);
	assert_int_equal(set(&b, WIRE_SMP_VL_ARB, 3u << 16 | 4), 0);
	assert_int_equal(b.node->port[4].vlarb[1][1].weight, 50);
	assert_int_equal(b.node->port[4].vlarb[0][1].weight, 0);
	assert_int_equal(get(&b, WIRE_SMP_VL_ARB, 2u << 16 | 4), WIRE_STATUS_BAD_FIELD);
	assert_int_equal(get(&b, WIRE_SMP_VL_ARB, 4), WIRE_STATUS_BAD_FIELD);
	assert_int_equal(get(&b, WIRE_SMP_VL_ARB, 1u << 16 | 5), WIRE_STATUS_BAD_FIELD);
	bench_free(&b);
}

static void *no_memory(void *ctx, size_t bytes)
{
	return NULL;
}

static void forwarding_tables(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 36);
	struct wire_mft mft = {.port_mask = {[9] = 1 << 3}};

	assert_int_equal(get(&b, WIRE_SMP_LFT, 5), 0); /* not written: all "drop" */
	assert_int_equal(b.data[63], WIRE_LFT_NO_PORT);
	b.data[1] = 7;
	assert_int_equal(set(&b, WIRE_SMP_LFT, 767), 0);
	assert_int_equal(ag_lft_get(b.node, 767 * 64 + 1), 7);
	assert_int_equal(ag_lft_get(b.node, 767 * 64 + 2), WIRE_LFT_NO_PORT);
	assert_int_equal(ag_lft_get(b.node, 0xc001), WIRE_LFT_NO_PORT);
	assert_int_equal(get(&b, WIRE_SMP_LFT, 768), WIRE_STATUS_BAD_FIELD);
	wire_mft_encode(&mft, b.mad + WIRE_SMP_DATA_OFFSET);
	assert_int_equal(set(&b, WIRE_SMP_MFT, 2u << 28 | 4), 0);
	assert_true(ag_mft_get(b.node, 0xc000 + 4 * 32 + 9, 35));
	assert_false(ag_mft_get(b.node, 0xc000 + 4 * 32 + 9, 3));
	assert_false(ag_mft_get(b.node, 0xfffe, 35));
	assert_int_equal(get(&b, WIRE_SMP_MFT, 3u << 28), WIRE_STATUS_BAD_FIELD);
	b.node->sw->memory.alloc = no_memory;
	assert_int_equal(set(&b, WIRE_SMP_LFT, 1), WIRE_STATUS_BUSY);
	assert_int_equal(set(&b, WIRE_SMP_MFT, 1), WIRE_STATUS_BUSY);
	bench_free(&b);
}

static void switch_info(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 4);
	struct wire_switch_info info;

	ag_port_link(b.node, 2, WIRE_WIDTH_4X, AG_EDR, 0, b.now);
	get(&b, WIRE_SMP_SWITCH_INFO, 0);
	wire_switch_info_decode(b.data, WIRE_SMP_DATA_BYTES, &info);
	assert_true(info.port_state_change);
	assert_int_equal(info.lft_cap, 0xc000);
	info.port_state_change = false; /* 0 leaves it */
	info.lft_top = 99;
	info.life_time_enc = 18;
	wire_switch_info_encode(&info, b.data);
	assert_int_equal(set(&b, WIRE_SMP_SWITCH_INFO, 0), 0);
	assert_true(b.node->sw->port_state_change);
	info.port_state_change = true; /* 1 clears it */
	wire_switch_info_encode(&info, b.data);
	set(&b, WIRE_SMP_SWITCH_INFO, 0);
	assert_false(b.node->sw->port_state_change);
	assert_int_equal(b.node->sw->lft_top, 99);
	assert_int_equal(b.node->sw->life_time_enc, 18);
	info.lft_top = 0xc000;
	wire_switch_info_encode(&info, b.data);
	assert_int_equal(set(&b, WIRE_SMP_SWITCH_INFO, 0), WIRE_STATUS_BAD_FIELD);
	bench_free(&b);
}

/* --- M_Key (14.2.4) --- */

#define KEY 0x1122334455667788ull

static struct bench locked(uint8_t protect, uint16_t lease_s)
{
	struct bench b = bench_new(WIRE_NODE_CA, 1);
	struct ag_port *port = &b.node->port[1];

	port->mkey = KEY;
	port->mkey_protect = protect;
	port->mkey_lease_s = lease_s;
	port->lid = 4;
	port->sm_lid = 1;
	return b;
}

static void mkey_protects(void **state)
{
	static const struct {
		uint8_t protect;
		bool get_answered, key_shown;
	} rows[] = {{0, true, true}, {1, true, false}, {2, false, false}, {3, false, false}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bench b = locked(rows[i].protect, 0);
		struct wire_port_info pi;

		b.mkey = KEY + 1;
		assert_int_equal(get(&b, WIRE_SMP_PORT_INFO, 1), rows[i].get_answered ? 0 : -1);
		wire_port_info_decode(b.data, WIRE_SMP_DATA_BYTES, &pi);
		if (rows[i].get_answered)
			assert_int_equal(pi.mkey, rows[i].key_shown ? KEY : 0);
		assert_int_equal(b.node->port[1].mkey_violations, !rows[i].get_answered);
		assert_int_equal(set(&b, WIRE_SMP_NODE_DESCRIPTION, 0), -1);
		assert_int_equal(b.result, AG_CONSUMED); /* silence */
		assert_string_equal(b.node->desc, "n1");
		b.mkey = KEY;
		pi = bench_get_port_info(&b, 1);
		assert_int_equal(pi.mkey, KEY);
		bench_free(&b);
	}
}

static void mkey_lease(void **state)
{
	struct bench b = locked(2, 15);

	b.mkey = 1;
	assert_int_equal(get(&b, WIRE_SMP_NODE_INFO, 0), -1);
	b.now = mono_add(b.now, 10 * NSEC_PER_SEC);
	b.mkey = KEY; /* the manager shows that it lives: the lease is whole again */
	assert_int_equal(get(&b, WIRE_SMP_NODE_INFO, 0), 0);
	b.mkey = 1;
	b.now = mono_add(b.now, 10 * NSEC_PER_SEC);
	assert_int_equal(get(&b, WIRE_SMP_NODE_INFO, 0), -1);
	b.now = mono_add(b.now, 15 * NSEC_PER_SEC); /* silent too long */
	assert_int_equal(get(&b, WIRE_SMP_NODE_INFO, 0), 0);
	assert_int_equal(b.node->port[1].mkey_protect, 0);
	bench_free(&b);
}

static void mkey_lease_zero_never_ends(void **state)
{
	struct bench b = locked(2, 0);

	assert_int_equal(get(&b, WIRE_SMP_NODE_INFO, 0), -1);
	b.now = mono_add(b.now, 1000000 * NSEC_PER_SEC);
	assert_int_equal(get(&b, WIRE_SMP_NODE_INFO, 0), -1);
	bench_free(&b);
}

static void mkey_violation_traps(void **state)
{
	struct bench b = locked(2, 0);
	struct wire_trap_mkey details;
	struct wire_notice notice;
	uint8_t mad[WIRE_MAD_BYTES], port;

	b.mkey = 5;
	get(&b, WIRE_SMP_PKEY_TABLE, 1);
	get(&b, WIRE_SMP_PKEY_TABLE, 1); /* the same offence is told once */
	assert_true(ag_trap_take(b.node, b.now, mad, &port));
	wire_smp_notice_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &notice);
	assert_int_equal(notice.trap_number, WIRE_TRAP_BAD_MKEY);
	assert_int_equal(notice.type, WIRE_NOTICE_SECURITY);
	wire_trap_mkey_decode(notice.details, sizeof(notice.details), &details);
	assert_int_equal(details.mkey, 5);
	assert_int_equal(details.attr_id, WIRE_SMP_PKEY_TABLE);
	assert_int_equal(details.attr_mod, 1);
	assert_int_equal(details.lid, 9); /* whence it came */
	assert_false(ag_trap_take(b.node, b.now, mad, &port));
	bench_free(&b);
}

/* --- traps --- */

static void trap_of_keys(void **state)
{
	struct bench b = locked(0, 0);
	struct wire_notice notice;
	struct wire_trap_key details;
	uint8_t mad[WIRE_MAD_BYTES], port;

	ag_trap_pkey(b.node, 1, 0x8005, 7, 4, 2, 0x11, 0x22, b.now);
	ag_trap_qkey(b.node, 1, 0xdeadbeef, 7, 4, 2, 0x11, 0x22, b.now);
	assert_int_equal(b.node->port[1].pkey_violations, 1);
	assert_int_equal(b.node->port[1].qkey_violations, 1);
	assert_true(ag_trap_take(b.node, b.now, mad, &port));
	wire_smp_notice_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &notice);
	assert_int_equal(notice.trap_number, WIRE_TRAP_BAD_PKEY);
	assert_true(ag_trap_take(b.node, b.now, mad, &port));
	wire_smp_notice_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &notice);
	assert_int_equal(notice.trap_number, WIRE_TRAP_BAD_QKEY);
	wire_trap_key_decode(notice.details, sizeof(notice.details), &details);
	assert_int_equal(details.key, 0xdeadbeef);
	assert_int_equal(details.lid1, 7);
	assert_int_equal(details.qpn2, 0x22);
	bench_free(&b);
}

static void trap_of_description(void **state)
{
	struct bench b = locked(0, 0);
	struct wire_trap_capability details;
	struct wire_notice notice;
	uint8_t mad[WIRE_MAD_BYTES], port;

	ag_set_description(b.node, "renamed", b.now);
	assert_string_equal(b.node->desc, "renamed");
	assert_true(ag_trap_take(b.node, b.now, mad, &port));
	wire_smp_notice_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &notice);
	assert_int_equal(notice.trap_number, WIRE_TRAP_CAPABILITY_CHANGE);
	wire_trap_capability_decode(notice.details, sizeof(notice.details), &details);
	assert_true(details.other_local_changes);
	assert_int_equal(details.change_flags, WIRE_CHANGE_NODE_DESCRIPTION);
	bench_free(&b);
}

/* sent again after a newer one, an old mask would be believed */
static void trap_of_capability_is_replaced(void **state)
{
	struct bench b = locked(0, 0);
	struct wire_trap_capability details;
	struct wire_notice notice;
	uint8_t mad[WIRE_MAD_BYTES], port;

	ag_set_description(b.node, "renamed", b.now);
	ag_set_capability(b.node, 1, WIRE_PORT_CAP_DM, true, b.now);
	assert_true(ag_trap_take(b.node, b.now, mad, &port));
	ag_set_capability(b.node, 1, WIRE_PORT_CAP_DM, false, b.now);
	assert_true(ag_trap_take(b.node, b.now, mad, &port));
	wire_smp_notice_decode(mad + WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, &notice);
	wire_trap_capability_decode(notice.details, sizeof(notice.details), &details);
	assert_false(details.cap_mask & WIRE_PORT_CAP_DM);
	assert_int_equal(details.change_flags, WIRE_CHANGE_NODE_DESCRIPTION);
	assert_true(ag_trap_take(b.node, mono_add(b.now, 10 * NSEC_PER_SEC), mad, &port));
	assert_false(ag_trap_take(b.node, mono_add(b.now, 10 * NSEC_PER_SEC), mad, &port));
	bench_free(&b);
}

static void trap_needs_a_manager(void **state)
{
	struct bench b = locked(0, 0);

	b.node->port[1].sm_lid = 0;
	ag_trap_threshold(b.node, 1, WIRE_TRAP_LINK_INTEGRITY, b.now);
	assert_int_equal(ag_expiry(b.node).ns, MONO_NEVER.ns);
	b.node->port[1].sm_lid = 1;
	ag_trap_threshold(b.node, 1, WIRE_TRAP_LINK_INTEGRITY, b.now);
	assert_int_equal(ag_expiry(b.node).ns, b.now.ns);
	bench_free(&b);
}

static void trap_is_repressed_by_its_own_id(void **state)
{
	struct bench b = locked(0, 0);
	uint8_t mad[WIRE_MAD_BYTES], port;
	struct wire_smp smp;

	b.node->port[1].mkey = 0;
	ag_trap_threshold(b.node, 1, WIRE_TRAP_BUFFER_OVERRUN, b.now);
	assert_true(ag_trap_take(b.node, b.now, mad, &port));
	wire_smp_decode(mad, sizeof(mad), &smp);
	smp.mad.method = WIRE_METHOD_TRAP_REPRESS;
	smp.mad.tid++;
	wire_smp_encode(&smp, mad);
	memcpy(b.mad, mad, sizeof(mad));
	assert_int_equal(bench_process(&b), -1);
	assert_int_equal(b.effect.changes, 0);
	smp.mad.tid--;
	wire_smp_encode(&smp, mad);
	memcpy(b.mad, mad, sizeof(mad));
	assert_int_equal(bench_process(&b), -1);
	assert_int_equal(b.effect.changes, AG_CHANGED_TRAPS);
	assert_int_equal(ag_expiry(b.node).ns, MONO_NEVER.ns);
	bench_free(&b);
}

/* a change that follows a trap already told must not be repressed with it */
static void trap_is_renewed(void **state)
{
	struct bench b = bench_new(WIRE_NODE_SWITCH, 4);
	uint8_t first[WIRE_MAD_BYTES], second[WIRE_MAD_BYTES], port;

	b.node->port[0].lid = 2;
	b.node->port[0].sm_lid = 1;
	ag_port_link(b.node, 1, WIRE_WIDTH_4X, AG_EDR, 0, b.now);
	ag_port_link(b.node, 2, WIRE_WIDTH_4X, AG_EDR, 0, b.now);
	assert_true(ag_trap_take(b.node, b.now, first, &port));
	assert_false(ag_trap_take(b.node, b.now, second, &port));
	ag_port_link(b.node, 3, WIRE_WIDTH_4X, AG_EDR, 0, b.now);
	assert_true(ag_trap_take(b.node, b.now, second, &port));
	assert_int_not_equal(memcmp(first + 8, second + 8, 8), 0); /* transaction ids */
	bench_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_info),
		cmocka_unit_test(node_description),
		cmocka_unit_test(statuses),
		cmocka_unit_test(not_the_agents),
		cmocka_unit_test(guid_info),
		cmocka_unit_test(pkey_tables),
		cmocka_unit_test(every_port_has_tables_of_its_own),
		cmocka_unit_test(sl_to_vl),
		cmocka_unit_test(vl_arbitration),
		cmocka_unit_test(forwarding_tables),
		cmocka_unit_test(switch_info),
		cmocka_unit_test(mkey_protects),
		cmocka_unit_test(mkey_lease),
		cmocka_unit_test(mkey_lease_zero_never_ends),
		cmocka_unit_test(mkey_violation_traps),
		cmocka_unit_test(trap_of_keys),
		cmocka_unit_test(trap_of_description),
		cmocka_unit_test(trap_of_capability_is_replaced),
		cmocka_unit_test(trap_needs_a_manager),
		cmocka_unit_test(trap_is_repressed_by_its_own_id),
		cmocka_unit_test(trap_is_renewed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
