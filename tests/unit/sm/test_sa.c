/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The administrator, asked as clients ask it: MAD in, MAD out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "lab.h"

/* struct ask - a question and its answer */
struct ask {
	struct lab *lab;
	struct wire_sa hdr; /* of the answer */
	uint32_t n;	    /* records in it */
};

static struct ask sa;

static int setup(void **state)
{
	memset(&sa, 0, sizeof(sa));
	sa.lab = lab_new();
	sa.lab->opt.ipoib = true;
	lab_run(sa.lab);
	return sa.lab->ups == 1 ? 0 : -1;
}

static int teardown(void **state)
{
	lab_free(sa.lab);
	return 0;
}

static uint16_t lid_of(int node)
{
	return sa.lab->nodes[node].port[sa.lab->nodes[node].info.nr_ports == 1].lid;
}

static union wire_gid gid_of(int node)
{
	return sm_gid(LAB_PREFIX, sa.lab->nodes[node].info.port_guid);
}

static void ask_as(int node, uint64_t sm_key, uint8_t method, uint16_t attr, uint64_t mask,
		   const struct wire_codec *codec, const void *record)
{
	struct wire_sa h = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SA, .class_version = 2,
			.method = method, .attr_id = attr, .tid = 0x1234},
		.sm_key = sm_key, .comp_mask = mask,
	};
	struct sm_addr from = {.lid = lid_of(node), .qpn = 1};
	uint8_t mad[WIRE_MAD_BYTES] = {0};

	wire_sa_encode(&h, mad);
	assert_true(wire_fields_encode(codec, record, mad + WIRE_SA_DATA_OFFSET) > 0);
	sa.lab->n_sa = 0;
	sm_receive(sa.lab->sm, SM_AGENT_SA, 0, &from, mad, sizeof(mad));
	rt_sim_run_for(sa.lab->rt, NSEC_PER_MSEC);
	if (!sa.lab->n_sa)
		return;
	assert_true(wire_sa_decode(sa.lab->sa, sa.lab->sa_len, &sa.hdr) > 0);
	assert_int_equal(sa.hdr.mad.tid, 0x1234);
	sa.n = sa.hdr.attr_offset ? (sa.lab->sa_len - WIRE_SA_DATA_OFFSET) /
					    (sa.hdr.attr_offset * 8) : 0;
}

static void get(int node, uint8_t method, uint16_t attr, uint64_t mask,
		const struct wire_codec *codec, const void *record)
{
	ask_as(node, 0, method, attr, mask, codec, record);
}

static void record(uint32_t i, const struct wire_codec *codec, void *out)
{
	size_t at = WIRE_SA_DATA_OFFSET + i * sa.hdr.attr_offset * 8;

	assert_int_equal(wire_fields_decode(codec, sa.lab->sa + at, sa.lab->sa_len - at, out),
			 codec->bytes);
}

static void test_node_records_by_mask(void **state)
{
	struct wire_node_record key = {0}, r;

	get(1, WIRE_METHOD_GET_TABLE, WIRE_SA_NODE_RECORD, 0, &wire_node_record_codec, &key);
	assert_int_equal(sa.hdr.mad.method, WIRE_METHOD_GET_TABLE_RESP);
	assert_int_equal(sa.hdr.mad.status, 0);
	assert_int_equal(sa.n, 6);
	key.info.node_type = WIRE_NODE_SWITCH;
	get(1, WIRE_METHOD_GET_TABLE, WIRE_SA_NODE_RECORD, WIRE_NR_NODE_TYPE,
	    &wire_node_record_codec, &key);
	assert_int_equal(sa.n, 2);
	/* two components together: both must agree */
	key.lid = lid_of(2);
	get(1, WIRE_METHOD_GET_TABLE, WIRE_SA_NODE_RECORD, WIRE_NR_NODE_TYPE | WIRE_NR_LID,
	    &wire_node_record_codec, &key);
	assert_int_equal(sa.n, 0);
	get(1, WIRE_METHOD_GET, WIRE_SA_NODE_RECORD, WIRE_NR_LID, &wire_node_record_codec,
	    &key);
	assert_int_equal(sa.hdr.mad.status, 0);
	record(0, &wire_node_record_codec, &r);
	assert_int_equal(r.info.node_guid, sa.lab->nodes[2].info.node_guid);
}

static void test_status_of_get(void **state)
{
	struct wire_node_record key = {.lid = 4711};

	get(1, WIRE_METHOD_GET, WIRE_SA_NODE_RECORD, WIRE_NR_LID, &wire_node_record_codec,
	    &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_NO_RECORDS);
	get(1, WIRE_METHOD_GET, WIRE_SA_NODE_RECORD, 0, &wire_node_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_TOO_MANY_RECORDS);
	get(1, WIRE_METHOD_SET, WIRE_SA_NODE_RECORD, 0, &wire_node_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_STATUS_BAD_METHOD_ATTR);
	get(1, WIRE_METHOD_GET, 0x7777, 0, &wire_node_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_STATUS_BAD_METHOD_ATTR);
	/* a stranger's key gets silence */
	ask_as(1, 666, WIRE_METHOD_GET, WIRE_SA_NODE_RECORD, 0, &wire_node_record_codec,
	       &key);
	assert_int_equal(sa.lab->n_sa, 0);
}

static void test_another_version_is_answered_in_ours(void **state)
{
	static const uint8_t version[][2] = {{3, 2}, {1, 9}}; /* base, class */

	for (int i = 0; i < 2; i++) {
		const struct wire_sa h = {
			.mad = {.base_version = version[i][0], .class_version = version[i][1],
				.mgmt_class = WIRE_CLASS_SA, .method = WIRE_METHOD_GET,
				.attr_id = WIRE_SA_NODE_RECORD}};
		const struct sm_addr from = {.lid = lid_of(1), .qpn = 1};
		uint8_t mad[WIRE_MAD_BYTES] = {0};

		wire_sa_encode(&h, mad);
		sm_receive(sa.lab->sm, SM_AGENT_SA, 0, &from, mad, sizeof(mad));
		rt_sim_run_for(sa.lab->rt, NSEC_PER_MSEC);
		assert_true(wire_sa_decode(sa.lab->sa, sa.lab->sa_len, &sa.hdr) > 0);
		assert_int_equal(sa.hdr.mad.status, WIRE_STATUS_BAD_VERSION);
		assert_int_equal(sa.hdr.mad.base_version, 1);
		assert_int_equal(sa.hdr.mad.class_version, 2);
	}
}

static void test_path_between_adapters(void **state)
{
	struct wire_path_record key = {.sgid = gid_of(1), .dgid = gid_of(3)}, r;

	get(1, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD, WIRE_PR_SGID | WIRE_PR_DGID,
	    &wire_path_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, 0);
	record(0, &wire_path_record_codec, &r);
	assert_int_equal(r.slid, lid_of(1));
	assert_int_equal(r.dlid, lid_of(3));
	assert_int_equal(r.mtu, WIRE_MTU_4096);
	assert_int_equal(r.rate, WIRE_RATE_40G);
	assert_int_equal(r.pkey, 0xffff);
	assert_true(r.reversible);
}

static void test_packet_lifetime_is_the_options(void **state)
{
	struct wire_path_record key = {.sgid = gid_of(1), .dgid = gid_of(3)}, r;

	get(1, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD, WIRE_PR_SGID | WIRE_PR_DGID,
	    &wire_path_record_codec, &key);
	record(0, &wire_path_record_codec, &r);
	assert_int_equal(r.life_enc, 18);
	lab_free(sa.lab);
	sa.lab = lab_new();
	sa.lab->opt.packet_life_enc = 14;
	lab_run(sa.lab);
	get(1, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD, WIRE_PR_SGID | WIRE_PR_DGID,
	    &wire_path_record_codec, &key);
	record(0, &wire_path_record_codec, &r);
	assert_int_equal(r.life_enc, 14);
}

static void test_path_selectors(void **state)
{
	static const struct {
		uint8_t selector, mtu, want; /* want 0: no path */
	} rows[] = {
		{WIRE_SELECT_GREATER, WIRE_MTU_2048, WIRE_MTU_4096},
		{WIRE_SELECT_GREATER, WIRE_MTU_4096, 0},
		{WIRE_SELECT_LESS, WIRE_MTU_4096, WIRE_MTU_2048},
		{WIRE_SELECT_LESS, WIRE_MTU_256, 0},
		{WIRE_SELECT_EXACTLY, WIRE_MTU_1024, WIRE_MTU_1024},
		{WIRE_SELECT_LARGEST, WIRE_MTU_1024, WIRE_MTU_4096},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct wire_path_record key = {.slid = lid_of(0), .dlid = lid_of(2),
					       .mtu_selector = rows[i].selector,
					       .mtu = rows[i].mtu}, r;

		get(0, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD,
		    WIRE_PR_SLID | WIRE_PR_DLID | WIRE_PR_MTU_SELECTOR | WIRE_PR_MTU,
		    &wire_path_record_codec, &key);
		assert_int_equal(sa.hdr.mad.status, rows[i].want ? 0 : WIRE_SA_NO_RECORDS);
		if (!rows[i].want)
			continue;
		record(0, &wire_path_record_codec, &r);
		assert_int_equal(r.mtu, rows[i].want);
	}
}

static void test_path_errors(void **state)
{
	struct wire_path_record key = {.sgid = gid_of(0), .dgid = sm_gid(LAB_PREFIX, 0xdead)};

	get(0, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD, WIRE_PR_SGID | WIRE_PR_DGID,
	    &wire_path_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_INVALID_GID);
	get(0, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD, WIRE_PR_SGID, &wire_path_record_codec,
	    &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_INSUFFICIENT_COMPONENTS);
	key.pkey = 0x8123; /* a partition nobody is in */
	key.dgid = gid_of(1);
	get(0, WIRE_METHOD_GET, WIRE_SA_PATH_RECORD,
	    WIRE_PR_SGID | WIRE_PR_DGID | WIRE_PR_PKEY, &wire_path_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_NO_RECORDS);
}

static void test_all_paths_need_rmpp(void **state)
{
	struct wire_path_record key = {0};

	get(0, WIRE_METHOD_GET_TABLE, WIRE_SA_PATH_RECORD, 0, &wire_path_record_codec, &key);
	assert_int_equal(sa.n, 36);
	assert_true(sa.lab->sa_len > WIRE_MAD_BYTES);
	assert_int_equal(sa.hdr.rmpp.type, WIRE_RMPP_DATA);
	assert_int_equal(sa.hdr.rmpp.flags, WIRE_RMPP_ACTIVE);
}

static void test_port_info_by_capability(void **state)
{
	struct wire_port_info_record key = {.lid = lid_of(4)}, r;

	get(0, WIRE_METHOD_GET_TABLE, WIRE_SA_PORT_INFO_RECORD, WIRE_PIR_LID,
	    &wire_port_info_record_codec, &key);
	assert_int_equal(sa.n, 9); /* port 0 and 8 more */
	key.port = 8;
	get(0, WIRE_METHOD_GET, WIRE_SA_PORT_INFO_RECORD, WIRE_PIR_LID | WIRE_PIR_PORT,
	    &wire_port_info_record_codec, &key);
	record(0, &wire_port_info_record_codec, &r);
	assert_int_equal(r.info.state, WIRE_PORT_ACTIVE);
}

static void tell_of_capabilities(int node, uint32_t cap_mask)
{
	struct wire_smp smp = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_LID, .class_version = 1,
			.method = WIRE_METHOD_TRAP, .attr_id = WIRE_SMP_NOTICE, .tid = 99},
	};
	struct wire_notice n = {.is_generic = true, .trap_number = WIRE_TRAP_CAPABILITY_CHANGE,
				.issuer_lid = lid_of(node)};
	struct wire_trap_capability d = {.lid = lid_of(node), .cap_mask = cap_mask};
	struct sm_addr from = {.lid = lid_of(node)};
	uint8_t mad[WIRE_MAD_BYTES] = {0};

	wire_smp_encode(&smp, mad);
	wire_trap_capability_encode(&d, n.details);
	wire_smp_notice_encode(&n, mad + WIRE_SMP_DATA_OFFSET);
	sm_receive(sa.lab->sm, SM_AGENT_LID, 0, &from, mad, sizeof(mad));
}

static uint32_t capabilities_of(int node)
{
	struct wire_port_info_record key = {.lid = lid_of(node)}, r;

	get(1, WIRE_METHOD_GET, WIRE_SA_PORT_INFO_RECORD, WIRE_PIR_LID,
	    &wire_port_info_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, 0);
	record(0, &wire_port_info_record_codec, &r);
	return r.info.cap_mask;
}

/* A subscriber to trap 144 asks at once, before the sweep that the trap causes. */
static void test_a_trap_tells_of_capabilities(void **state)
{
	tell_of_capabilities(2, 0x00080000);
	assert_int_equal(capabilities_of(2), 0x00080000);
	rt_sim_run_for(sa.lab->rt, NSEC_PER_SEC); /* the port itself says otherwise */
	assert_int_not_equal(capabilities_of(2), 0x00080000);
}

/* The sweep has read the port before the trap: its end takes nothing back. */
static void test_a_trap_tells_more_than_the_sweep_under_way(void **state)
{
	struct sm *sm = sa.lab->sm;
	uint64_t guid = sa.lab->nodes[2].info.port_guid;
	const struct sm_subnet *next;

	sm_want(sm, SM_JOB_HEAVY);
	while (!sm->next || !sm_subnet_port(sm->next, guid))
		assert_true(rt_sim_step(sa.lab->rt));
	next = sm->next;
	sa.lab->nodes[2].port[1].cap_mask = 0x00080000;
	tell_of_capabilities(2, 0x00080000);
	while (sm->subnet != next)
		assert_true(rt_sim_step(sa.lab->rt));
	assert_int_equal(capabilities_of(2), 0x00080000);
}

static void test_links_come_in_both_directions(void **state)
{
	struct wire_link_record key = {.from_lid = lid_of(4), .to_lid = lid_of(5)};

	get(0, WIRE_METHOD_GET_TABLE, WIRE_SA_LINK_RECORD, 0, &wire_link_record_codec, &key);
	assert_int_equal(sa.n, 12);
	get(0, WIRE_METHOD_GET_TABLE, WIRE_SA_LINK_RECORD, WIRE_LR_FROM_LID | WIRE_LR_TO_LID,
	    &wire_link_record_codec, &key);
	assert_int_equal(sa.n, 2);
}

static const struct wire_mcmember_record group = {
	.mgid = {{0xff, 0x12, 0xa0, 0x1c, 0xfe, 0x80, [15] = 7}},
	.qkey = 0x1ee7, .pkey = 0xffff, .join_state = WIRE_JOIN_FULL,
};
#define JOIN_MASK (WIRE_MCM_MGID | WIRE_MCM_PORT_GID | WIRE_MCM_JOIN_STATE)
#define CREATE_MASK                                                                       \
	(JOIN_MASK | WIRE_MCM_QKEY | WIRE_MCM_PKEY | WIRE_MCM_SL | WIRE_MCM_FLOW_LABEL |  \
	 WIRE_MCM_TCLASS)

static void join(int node, uint8_t method, uint64_t mask, uint8_t state)
{
	struct wire_mcmember_record key = group;

	key.port_gid = gid_of(node);
	key.join_state = state;
	get(node, method, WIRE_SA_MCMEMBER_RECORD, mask, &wire_mcmember_record_codec, &key);
}

static void test_group_lives_as_long_as_its_members(void **state)
{
	struct wire_mcmember_record r;
	const struct lab_node *s1 = &sa.lab->nodes[4], *s2 = &sa.lab->nodes[5];
	uint32_t entry;

	join(0, WIRE_METHOD_SET, JOIN_MASK, WIRE_JOIN_FULL);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_INSUFFICIENT_COMPONENTS);
	join(0, WIRE_METHOD_SET, CREATE_MASK, WIRE_JOIN_NON);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_REQUEST_INVALID);
	join(0, WIRE_METHOD_SET, CREATE_MASK, WIRE_JOIN_FULL);
	assert_int_equal(sa.hdr.mad.status, 0);
	record(0, &wire_mcmember_record_codec, &r);
	assert_int_equal(r.mlid, 0xc001); /* 0xc000 is the broadcast group's */
	entry = r.mlid - SM_LID_MCAST_FIRST;
	assert_int_equal(s1->mft[entry], 1 << 1);
	/* the answer to a join comes when the switches know */
	join(3, WIRE_METHOD_SET, JOIN_MASK, WIRE_JOIN_FULL);
	assert_int_equal(sa.hdr.mad.status, 0);
	assert_int_equal(s2->mft[entry] & 1 << 2, 1 << 2);
	assert_int_not_equal(s1->mft[entry] & (1 << 7 | 1 << 8), 0);
	join(3, WIRE_METHOD_DELETE, JOIN_MASK, WIRE_JOIN_NON);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_REQUEST_INVALID);
	join(3, WIRE_METHOD_DELETE, JOIN_MASK, WIRE_JOIN_FULL);
	assert_int_equal(sa.hdr.mad.status, 0);
	assert_int_equal(s2->mft[entry], 0);
	join(0, WIRE_METHOD_DELETE, JOIN_MASK, WIRE_JOIN_FULL);
	join(3, WIRE_METHOD_SET, JOIN_MASK, WIRE_JOIN_FULL);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_INSUFFICIENT_COMPONENTS); /* gone */
}

/* A full member that only sends creates a group, keeps it, and receives nothing of it. */
static void test_group_of_a_sender(void **state)
{
	struct wire_mcmember_record r;
	const struct lab_node *s1 = &sa.lab->nodes[4], *s2 = &sa.lab->nodes[5];
	uint32_t entry;

	join(0, WIRE_METHOD_SET, CREATE_MASK, WIRE_JOIN_SEND_ONLY_NON);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_REQUEST_INVALID);
	join(0, WIRE_METHOD_SET, CREATE_MASK, WIRE_JOIN_SEND_ONLY_FULL);
	assert_int_equal(sa.hdr.mad.status, 0);
	record(0, &wire_mcmember_record_codec, &r);
	assert_int_equal(r.join_state, WIRE_JOIN_SEND_ONLY_FULL);
	entry = r.mlid - SM_LID_MCAST_FIRST;
	join(3, WIRE_METHOD_SET, JOIN_MASK, WIRE_JOIN_FULL);
	assert_int_equal(sa.hdr.mad.status, 0);
	assert_int_equal(s2->mft[entry] & 1 << 2, 1 << 2);
	assert_int_equal(s1->mft[entry] & 1 << 1, 0); /* the sender's port */
	join(3, WIRE_METHOD_DELETE, JOIN_MASK, WIRE_JOIN_FULL);
	join(3, WIRE_METHOD_SET, JOIN_MASK, WIRE_JOIN_FULL); /* it still exists */
	assert_int_equal(sa.hdr.mad.status, 0);
	join(3, WIRE_METHOD_DELETE, JOIN_MASK, WIRE_JOIN_FULL);
	join(0, WIRE_METHOD_DELETE, JOIN_MASK, WIRE_JOIN_SEND_ONLY_FULL);
	join(3, WIRE_METHOD_SET, JOIN_MASK, WIRE_JOIN_FULL);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_INSUFFICIENT_COMPONENTS); /* gone */
}

/* RFC 4391 section 7: all of the broadcast group can receive what is as long as its MTU */
static int setup_large_broadcast(void **state)
{
	memset(&sa, 0, sizeof(sa));
	sa.lab = lab_new();
	sa.lab->opt.ipoib = true;
	sa.lab->opt.ipoib_mtu = WIRE_MTU_4096;
	sa.lab->nodes[3].port[1].mtu_cap = WIRE_MTU_2048;
	lab_run(sa.lab);
	return sa.lab->ups == 1 ? 0 : -1;
}

static void test_a_port_with_a_smaller_mtu_is_refused(void **state)
{
	struct wire_mcmember_record key = {
		.mgid = {{0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, [12] = 0xff, 0xff, 0xff, 0xff}},
		.pkey = 0xffff, .join_state = WIRE_JOIN_FULL}, r;

	key.port_gid = gid_of(1);
	get(1, WIRE_METHOD_SET, WIRE_SA_MCMEMBER_RECORD, JOIN_MASK | WIRE_MCM_PKEY,
	    &wire_mcmember_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, 0);
	record(0, &wire_mcmember_record_codec, &r);
	assert_int_equal(r.mtu, WIRE_MTU_4096);
	key.port_gid = gid_of(3);
	get(3, WIRE_METHOD_SET, WIRE_SA_MCMEMBER_RECORD, JOIN_MASK | WIRE_MCM_PKEY,
	    &wire_mcmember_record_codec, &key);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_REQUEST_INVALID);
}

static void test_members_are_private(void **state)
{
	struct wire_mcmember_record key = {0}, r;

	join(0, WIRE_METHOD_SET, CREATE_MASK, WIRE_JOIN_FULL);
	join(1, WIRE_METHOD_SET, JOIN_MASK, WIRE_JOIN_FULL);
	get(2, WIRE_METHOD_GET_TABLE, WIRE_SA_MCMEMBER_RECORD, 0,
	    &wire_mcmember_record_codec, &key);
	assert_int_equal(sa.n, 2); /* two groups, no member named */
	record(1, &wire_mcmember_record_codec, &r);
	assert_int_equal(sm_gid_guid(&r.port_gid), 0);
	ask_as(2, sa.lab->opt.sa_key, WIRE_METHOD_GET_TABLE, WIRE_SA_MCMEMBER_RECORD, 0,
	       &wire_mcmember_record_codec, &key);
	assert_int_equal(sa.n, 3); /* the broadcast group, and two members */
}

static struct wire_service_record service(int node, const char *name, uint32_t lease_s)
{
	struct wire_service_record r = {.id = 0x1000, .gid = gid_of(node), .pkey = 0xffff,
					.lease_s = lease_s};

	memcpy(r.name, name, strlen(name));
	return r;
}

/* A port that registers without end fills its own share: others still have theirs, and
 * what it gives back is its own again. */
static void test_services_are_bounded(void **state)
{
	const uint64_t mask = WIRE_SR_ID | WIRE_SR_GID | WIRE_SR_PKEY;
	struct wire_service_record a = service(1, "flood", UINT32_MAX);

	for (a.id = 0; a.id < 1000; a.id++) {
		get(1, WIRE_METHOD_SET, WIRE_SA_SERVICE_RECORD, mask, &wire_service_record_codec, &a);
		assert_int_equal(sa.hdr.mad.status, a.id < 256 ? 0 : WIRE_SA_NO_RESOURCES);
	}
	a.id = 0; /* it is there already */
	get(1, WIRE_METHOD_SET, WIRE_SA_SERVICE_RECORD, mask, &wire_service_record_codec, &a);
	assert_int_equal(sa.hdr.mad.status, 0);
	a.id = 5000; /* of the same port's GID, but by another */
	get(2, WIRE_METHOD_SET, WIRE_SA_SERVICE_RECORD, mask, &wire_service_record_codec, &a);
	assert_int_equal(sa.hdr.mad.status, 0);
	a.id = 7;
	get(1, WIRE_METHOD_DELETE, WIRE_SA_SERVICE_RECORD, mask, &wire_service_record_codec, &a);
	a.id = 8000;
	get(1, WIRE_METHOD_SET, WIRE_SA_SERVICE_RECORD, mask, &wire_service_record_codec, &a);
	assert_int_equal(sa.hdr.mad.status, 0);
}

/* The programs of a port create as many groups as its share of the MLIDs allows: others
 * find MLIDs, too */
static void test_groups_are_bounded(void **state)
{
	enum { MLIDS = 32, SHARE = MLIDS / 4 };
	struct wire_mcmember_record key = group;

	key.port_gid = gid_of(1);
	for (unsigned i = 0; i <= SHARE; i++) {
		put_be32(key.mgid.raw + 8, i);
		get(1, WIRE_METHOD_SET, WIRE_SA_MCMEMBER_RECORD, CREATE_MASK,
		    &wire_mcmember_record_codec, &key);
		assert_int_equal(sa.hdr.mad.status, i < SHARE ? 0 : WIRE_SA_NO_RESOURCES);
	}
	key.port_gid = gid_of(2);
	get(2, WIRE_METHOD_SET, WIRE_SA_MCMEMBER_RECORD, CREATE_MASK, &wire_mcmember_record_codec,
	    &key);
	assert_int_equal(sa.hdr.mad.status, 0);
	key.port_gid = gid_of(1);
	put_be32(key.mgid.raw + 8, 3); /* one that it leaves is free again */
	get(1, WIRE_METHOD_DELETE, WIRE_SA_MCMEMBER_RECORD, JOIN_MASK, &wire_mcmember_record_codec,
	    &key);
	get(1, WIRE_METHOD_SET, WIRE_SA_MCMEMBER_RECORD, CREATE_MASK, &wire_mcmember_record_codec,
	    &key);
	assert_int_equal(sa.hdr.mad.status, 0);
}

static void test_subscriptions_are_bounded(void **state)
{
	struct wire_inform_info i = {
		.lid_range_begin = 0xffff, .is_generic = 1, .subscribe = 1, .type = 0xffff,
		.producer = 0xffffff, .qpn = 1,
	};

	for (i.trap_number = 0; i.trap_number < 300; i.trap_number++) {
		get(1, WIRE_METHOD_SET, WIRE_SA_INFORM_INFO, 0, &wire_inform_info_codec, &i);
		assert_int_equal(sa.hdr.mad.status, i.trap_number < 256 ? 0 : WIRE_SA_NO_RESOURCES);
	}
	get(2, WIRE_METHOD_SET, WIRE_SA_INFORM_INFO, 0, &wire_inform_info_codec, &i);
	assert_int_equal(sa.hdr.mad.status, 0);
}

static void test_services_expire(void **state)
{
	const uint64_t mask = WIRE_SR_ID | WIRE_SR_GID | WIRE_SR_PKEY | WIRE_SR_NAME |
			      WIRE_SR_LEASE;
	struct wire_service_record a = service(1, "printer", 10), r;
	struct wire_service_record b = service(2, "printer", UINT32_MAX);

	get(1, WIRE_METHOD_SET, WIRE_SA_SERVICE_RECORD, mask, &wire_service_record_codec, &a);
	assert_int_equal(sa.hdr.mad.status, 0);
	get(2, WIRE_METHOD_SET, WIRE_SA_SERVICE_RECORD, mask, &wire_service_record_codec, &b);
	get(3, WIRE_METHOD_GET_TABLE, WIRE_SA_SERVICE_RECORD, WIRE_SR_NAME,
	    &wire_service_record_codec, &a);
	assert_int_equal(sa.n, 2);
	rt_sim_run_for(sa.lab->rt, 4 * NSEC_PER_SEC);
	get(3, WIRE_METHOD_GET, WIRE_SA_SERVICE_RECORD, WIRE_SR_GID,
	    &wire_service_record_codec, &a);
	record(0, &wire_service_record_codec, &r);
	assert_in_range(r.lease_s, 5, 7); /* it runs */
	rt_sim_run_for(sa.lab->rt, 7 * NSEC_PER_SEC);
	get(3, WIRE_METHOD_GET_TABLE, WIRE_SA_SERVICE_RECORD, WIRE_SR_NAME,
	    &wire_service_record_codec, &a);
	assert_int_equal(sa.n, 1);
	get(2, WIRE_METHOD_DELETE, WIRE_SA_SERVICE_RECORD, WIRE_SR_NAME,
	    &wire_service_record_codec, &b);
	assert_int_equal(sa.hdr.mad.method, WIRE_METHOD_DELETE_RESP);
	get(3, WIRE_METHOD_GET, WIRE_SA_SERVICE_RECORD, WIRE_SR_NAME,
	    &wire_service_record_codec, &b);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_NO_RECORDS);
}

static void test_subscribers_hear_of_new_groups(void **state)
{
	struct wire_inform_info i = {
		.lid_range_begin = 0xffff, .is_generic = 1, .subscribe = 1, .type = 0xffff,
		.trap_number = WIRE_TRAP_MCAST_CREATED, .producer = 0xffffff, .qpn = 1,
	};
	struct wire_notice n;
	struct wire_sa h;

	get(2, WIRE_METHOD_SET, WIRE_SA_INFORM_INFO, 0, &wire_inform_info_codec, &i);
	assert_int_equal(sa.hdr.mad.method, WIRE_METHOD_GET_RESP);
	assert_int_equal(sa.hdr.mad.status, 0);
	sa.lab->n_sa = 0;
	sm_notify_gid(sa.lab->sm, WIRE_TRAP_GID_IN_SERVICE, &group.mgid);
	rt_sim_run_for(sa.lab->rt, NSEC_PER_MSEC);
	assert_int_equal(sa.lab->n_sa, 0); /* not what it asked for */
	sm_notify_gid(sa.lab->sm, WIRE_TRAP_MCAST_CREATED, &group.mgid);
	rt_sim_run_for(sa.lab->rt, NSEC_PER_MSEC);
	assert_int_equal(sa.lab->n_sa, 1);
	assert_true(wire_sa_decode(sa.lab->sa, sa.lab->sa_len, &h) > 0);
	assert_int_equal(h.mad.method, WIRE_METHOD_REPORT);
	assert_true(wire_notice_decode(sa.lab->sa + WIRE_SA_DATA_OFFSET, 200, &n) > 0);
	assert_int_equal(n.trap_number, WIRE_TRAP_MCAST_CREATED);
	/* it never answers: after the retries it is forgotten */
	rt_sim_run_for(sa.lab->rt, 10 * NSEC_PER_SEC);
	i.subscribe = 0;
	get(2, WIRE_METHOD_SET, WIRE_SA_INFORM_INFO, 0, &wire_inform_info_codec, &i);
	assert_int_equal(sa.hdr.mad.status, WIRE_SA_REQUEST_INVALID);
}

/* A sweep neither waits for the answers to reports nor counts those that are missing. */
static void test_a_subscriber_that_is_away_delays_no_sweep(void **state)
{
	struct wire_inform_info i = {
		.lid_range_begin = 0xffff, .is_generic = 1, .subscribe = 1, .type = 0xffff,
		.trap_number = WIRE_TRAP_MCAST_CREATED, .producer = 0xffffff, .qpn = 1,
	};

	get(2, WIRE_METHOD_SET, WIRE_SA_INFORM_INFO, 0, &wire_inform_info_codec, &i);
	assert_int_equal(sa.hdr.mad.status, 0);
	for (int n = 0; n < 100; n++) /* more than the window holds */
		sm_notify_gid(sa.lab->sm, WIRE_TRAP_MCAST_CREATED, &group.mgid);
	rt_sim_run_for(sa.lab->rt, NSEC_PER_MSEC);
	lab_link_state(&sa.lab->nodes[2], 1, WIRE_PORT_INIT);
	lab_link_state(&sa.lab->nodes[5], 1, WIRE_PORT_INIT);
	sa.lab->ups = sa.lab->errors = 0;
	sm_resweep(sa.lab->sm);
	rt_sim_run_for(sa.lab->rt, NSEC_PER_MSEC);
	assert_int_equal(sa.lab->ups, 1);
	assert_int_equal(sa.lab->errors, 0);
	assert_int_equal(sa.lab->nodes[2].port[1].state, WIRE_PORT_ACTIVE);
	/* the reports, meanwhile, are repeated and given up */
	rt_sim_run_for(sa.lab->rt, 10 * NSEC_PER_SEC);
	sm_resweep(sa.lab->sm);
	rt_sim_run_for(sa.lab->rt, NSEC_PER_MSEC);
	assert_int_equal(sa.lab->ups, 2);
	assert_int_equal(sa.lab->errors, 0);
}

/* Any bytes: an answer or none, never a crash (run under asan for its worth). */
static void test_noise(void **state)
{
	uint8_t mad[WIRE_MAD_BYTES];
	struct sm_addr from = {.lid = 1};

	for (int i = 0; i < 20000; i++) {
		for (size_t k = 0; k < sizeof(mad); k += 4)
			put_be32(mad + k, rt_random(sa.lab->rt));
		mad[0] = 1;
		mad[1] = WIRE_CLASS_SA;
		mad[2] = 2;
		mad[3] = (uint8_t[]){1, 2, 0x12, 0x14, 0x15}[i % 5];
		mad[16] = 0;
		mad[17] %= 0x40;
		memset(mad + 36, 0, 8); /* no SM_Key */
		sm_receive(sa.lab->sm, SM_AGENT_SA, 0, &from, mad, sizeof(mad));
		sm_receive(sa.lab->sm, SM_AGENT_LID, 0, &from, mad, sizeof(mad));
	}
	rt_sim_run_for(sa.lab->rt, 30 * NSEC_PER_SEC);
}

#define sa_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sa_test(test_node_records_by_mask),
		sa_test(test_status_of_get),
		sa_test(test_another_version_is_answered_in_ours),
		sa_test(test_path_between_adapters),
		sa_test(test_path_selectors),
		sa_test(test_path_errors),
		sa_test(test_all_paths_need_rmpp),
		sa_test(test_port_info_by_capability),
		sa_test(test_a_trap_tells_of_capabilities),
		sa_test(test_a_trap_tells_more_than_the_sweep_under_way),
		sa_test(test_links_come_in_both_directions),
		sa_test(test_group_lives_as_long_as_its_members),
		sa_test(test_group_of_a_sender),
		sa_test(test_members_are_private),
		cmocka_unit_test_setup_teardown(test_a_port_with_a_smaller_mtu_is_refused,
						setup_large_broadcast, teardown),
		sa_test(test_services_are_bounded),
		sa_test(test_groups_are_bounded),
		sa_test(test_subscriptions_are_bounded),
		sa_test(test_services_expire),
		sa_test(test_subscribers_hear_of_new_groups),
		sa_test(test_a_subscriber_that_is_away_delays_no_sweep),
		sa_test(test_packet_lifetime_is_the_options),
		sa_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
