/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The SA client's queries: answers, tries, time-outs, cancelling, the cache of paths. */
#include "fake_sa.h"

#define ASK (IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_NUMB_PATH)

/* what a callback was told */
struct outcome {
	int calls, status;
	unsigned int num;
	struct sa_path_rec path[100];
	struct ib_sa_service_rec service;
	struct ib_sa_mcmember_rec member;
};

static void path_done(int status, struct sa_path_rec *resp, unsigned int num, void *context)
{
	struct outcome *o = context;

	o->calls++;
	o->status = status;
	o->num = num;
	for (unsigned int i = 0; i < num && i < ARRAY_SIZE(o->path); i++)
		o->path[i] = resp[i];
}

static struct sa_path_rec question(u8 dgid, u8 numb_path)
{
	struct sa_path_rec rec;

	memset(&rec, 0, sizeof(rec));
	rec.sgid = (union ib_gid){.raw = {0xfe, 0x80, [15] = 11}};
	rec.dgid = (union ib_gid){.raw = {0xfe, 0x80, [15] = dgid}};
	rec.numb_path = numb_path;
	return rec;
}

static int ask(u8 dgid, u8 numb_path, unsigned long timeout_ms, struct outcome *o,
	       struct ib_sa_query **query)
{
	struct sa_path_rec rec = question(dgid, numb_path);

	*o = (struct outcome){0};
	return ib_sa_path_rec_get(&client, device, 1, &rec, ASK, timeout_ms, GFP_KERNEL, path_done,
				  o, query);
}

static void a_path_is_asked_for(void **state)
{
	struct outcome o;

	assert_true(ask(12, 1, 1000, &o, NULL) >= 0);
	assert_int_equal(o.calls, 0); /* never on the caller's stack */
	rt_sim_run_for(net->rt, 2 * NET_LATENCY_NS);
	assert_int_equal(sa->method, IB_MGMT_METHOD_GET);
	assert_int_equal(sa->attr_id, IB_SA_ATTR_PATH_REC);
	assert_int_equal(sa->comp_mask, ASK);
	run_ms(100);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, 0);
	assert_int_equal(o.num, 1);
	assert_int_equal(be16_to_cpu(o.path[0].ib.dlid), 11);
	assert_int_equal(o.path[0].dgid.raw[15], 12);
	assert_int_equal(o.path[0].dlid, o.path[0].ib.dlid);
}

static void every_field_comes_back(void **state)
{
	struct sa_path_rec rec, back;
	u8 wire[64];

	memset(&rec, 0, sizeof(rec));
	rec.dgid.raw[3] = 1;
	rec.sgid.raw[4] = 2;
	rec.service_id = cpu_to_be64(0x1122334455667788);
	rec.flow_label = cpu_to_be32(0xabcde);
	rec.hop_limit = 5;
	rec.traffic_class = 6;
	rec.reversible = 1;
	rec.numb_path = 127;
	rec.pkey = cpu_to_be16(0x8001);
	rec.qos_class = cpu_to_be16(0xfff);
	rec.sl = 15;
	rec.mtu_selector = IB_SA_EQ;
	rec.mtu = IB_MTU_4096;
	rec.rate_selector = IB_SA_BEST;
	rec.rate = 63;
	rec.packet_life_time_selector = IB_SA_LT;
	rec.packet_life_time = 18;
	rec.preference = 9;
	sa_path_set_dlid(&rec, 0x1234);
	sa_path_set_slid(&rec, 0x4321);
	rec.ib.raw_traffic = 1;
	ib_sa_pack_path(&rec, wire);
	memset(&back, 0, sizeof(back));
	ib_sa_unpack_path(wire, &back);
	assert_memory_equal(&back.dgid, &rec.dgid, offsetof(struct sa_path_rec, ib));
	assert_memory_equal(&back.ib, &rec.ib, offsetof(struct sa_path_rec_ib, raw_traffic) + 1);
	assert_int_equal(be32_to_cpu(sa_path_get_dlid(&back)), 0x1234);
	assert_int_equal(be32_to_cpu(sa_path_get_slid(&back)), 0x4321);
}

static void several_paths_come_as_a_table(void **state)
{
	static const int numbers[] = {2, 3, 4, 100};
	struct outcome o;

	for (size_t n = 0; n < ARRAY_SIZE(numbers); n++) {
		sa->records = numbers[n];
		assert_true(ask(12, (u8)numbers[n], 2000, &o, NULL) >= 0);
		run_ms(1500);
		assert_int_equal(sa->method, IB_SA_METHOD_GET_TABLE);
		assert_int_equal(o.calls, 1);
		assert_int_equal(o.num, numbers[n]);
		for (int i = 0; i < numbers[n]; i++)
			assert_int_equal(be16_to_cpu(o.path[i].ib.dlid), 11 + i);
	}
}

static void a_refusal_is_told(void **state)
{
	struct outcome o;

	sa->status = 0x0300; /* no records */
	ask(12, 1, 1000, &o, NULL);
	run_ms(100);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, -EINVAL);
	assert_int_equal(o.num, 0);
	sa->status = IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB;
	ask(12, 1, 1000, &o, NULL);
	run_ms(100);
	assert_int_equal(o.status, -EOPNOTSUPP);
}

/* the one query that there is, as `softib resource show` tells it; NULL: there is none */
static void expect_tracked(const char *details)
{
	struct rdma_restrack_cursor cursor;
	const struct rdma_restrack_entry *entry;
	char text[RDMA_RESTRACK_TEXT_BYTES];

	rdma_restrack_open(device, &cursor, RDMA_RESTRACK_SA_QUERY);
	entry = rdma_restrack_next(&cursor);
	rdma_restrack_close(&cursor);
	assert_int_equal(!entry, !details);
	if (!entry)
		return;
	assert_string_equal(entry->comm, "core");
	assert_string_equal(rdma_restrack_describe(entry, text), details);
}

static void silence_is_a_time_out(void **state)
{
	struct outcome o;

	sa->silent = true;
	ask(12, 1, 800, &o, NULL);
	run_ms(790);
	assert_int_equal(o.calls, 0);
	expect_tracked("port 1, method 0x01, attribute 0x0035");
	run_ms(100);
	assert_int_equal(o.calls, 1);
	expect_tracked(NULL);
	assert_int_equal(o.status, -ETIMEDOUT);
	assert_in_range(sa->asked, 7, 9);
}

static void any_packet_may_be_lost(void **state)
{
	struct outcome o;

	for (int nth = 1; nth <= 4; nth++) {
		net->lose_nth = nth;
		ask((u8)(100 + nth), 1, 1000, &o, NULL);
		run_ms(1000);
		assert_int_equal(o.calls, 1);
		assert_int_equal(o.status, 0);
		net->lose_nth = 0;
	}
}

static void a_busy_sa_is_asked_again(void **state)
{
	struct outcome o;

	sa->busy = 3;
	ask(12, 1, 1000, &o, NULL);
	run_ms(999);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, 0);
	sa->busy = 1000;
	ask(13, 1, 1000, &o, NULL);
	run_ms(1100);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, -ETIMEDOUT);
}

static void a_query_is_cancelled(void **state)
{
	struct ib_sa_query *query;
	struct outcome o;
	int id = ask(12, 1, 1000, &o, &query);

	ib_sa_cancel_query(id, query);
	assert_int_equal(o.calls, 0);
	run_ms(500);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, -EINTR);
	ib_sa_cancel_query(id, query); /* over: nothing happens */
	sa->busy = 1000;
	id = ask(12, 1, 8000, &o, &query);
	run_ms(100); /* between two tries */
	ib_sa_cancel_query(id, query);
	run_ms(1);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, -EINTR);
}

static void a_client_that_goes_hears_first(void **state)
{
	struct outcome o[3];

	sa->silent = true;
	for (int i = 0; i < 3; i++)
		ask((u8)i, 1, 1000, &o[i], NULL);
	ib_sa_unregister_client(&client);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(o[i].calls, 1);
		assert_int_equal(o[i].status, -EINTR);
	}
	run_ms(2000);
	assert_int_equal(o[0].calls, 1);
}

static void without_a_manager_there_is_nobody_to_ask(void **state)
{
	struct outcome o;

	net->node[1]->sm_lid = 0;
	assert_int_equal(ask(12, 1, 1000, &o, NULL), -EAGAIN);
	assert_int_equal(ib_sa_path_rec_get(&client, device, 2, &(struct sa_path_rec){0}, 0, 1,
					    GFP_KERNEL, path_done, &o, NULL),
			 -ENODEV);
	run_ms(100);
	assert_int_equal(o.calls, 0);
	net->node[1]->sm_lid = 10;
	assert_true(ask(12, 1, 1000, &o, NULL) >= 0);
	run_ms(2000);
	assert_int_equal(o.calls, 1);
}

/* the port's link layer is Ethernet: there is no SA, and there never was one */
static void make_ethernet(void)
{
	net->node[1]->link_layer = IB_LINK_LAYER_ETHERNET;
	net->node[1]->sm_lid = 0;
	port_event(IB_EVENT_PORT_ACTIVE);
}

static void a_path_of_roce_follows_from_its_gids(void **state)
{
	struct sa_path_rec nowhere = {.dgid.raw[0] = 0x20};
	struct outcome o;

	make_ethernet();
	assert_true(ask(12, 1, 1000, &o, NULL) >= 0);
	assert_int_equal(o.calls, 0); /* never on the caller's stack */
	run_ms(1);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, 0);
	assert_int_equal(o.num, 1);
	assert_int_equal(be16_to_cpu(o.path[0].ib.dlid), 12);
	assert_int_equal(be16_to_cpu(o.path[0].ib.slid), net->node[1]->lid);
	assert_int_equal(o.path[0].dgid.raw[15], 12);
	assert_true(o.path[0].hop_limit > 1); /* its packets have a GRH */
	assert_int_equal(o.path[0].mtu, IB_MTU_4096);
	assert_int_equal(ib_sa_path_rec_get(&client, device, 1, &nowhere, ASK, 1000, GFP_KERNEL,
					    path_done, &o, NULL), -EHOSTUNREACH);
	assert_int_equal(sa->method, 0); /* nobody was asked */
}

static void a_new_manager_is_asked_by_the_next_try(void **state)
{
	struct fake_sa *other = fake_sa_open(net->node[2]);
	struct outcome o;

	sa->silent = true;
	ask(12, 1, 4000, &o, NULL);
	run_ms(100);
	assert_int_equal(sa->asked, 1);
	net->node[1]->sm_lid = 12;
	port_event(IB_EVENT_SM_CHANGE);
	run_ms(2000);
	assert_int_equal(o.status, 0);
	assert_int_equal(o.calls, 1);
	assert_in_range(other->asked, 1, 4); /* and the cache subscribes */
	run_ms(10000);
	fake_sa_close(other);
}

static void a_device_goes_with_queries_under_way(void **state)
{
	struct outcome o[2];

	sa->silent = true;
	ask(12, 1, 1000, &o[0], NULL);
	ask(13, 1, 1000, &o[1], NULL);
	ib_unregister_device(device);
	assert_int_equal(o[0].status, -EINTR);
	assert_int_equal(o[1].status, -EINTR);
	assert_int_equal(ask(12, 1, 1000, &o[0], NULL), -ENODEV);
	assert_int_equal(ib_register_device(device, "fake0"), 0);
	sa->silent = false;
	assert_true(ask(12, 1, 1000, &o[0], NULL) >= 0);
	run_ms(100);
	assert_int_equal(o[0].status, 0);
}

static void no_memory_is_no_disaster(void **state)
{
	struct outcome o;

	for (u64 nth = 1; nth < 30; nth++) {
		int ret;

		rt_fail_alloc(nth);
		ret = ask((u8)(20 + nth), 1, 1000, &o, NULL);
		run_ms(1500);
		rt_fail_alloc(0);
		assert_int_equal(o.calls, ret >= 0);
		if (ret < 0)
			assert_int_equal(ret, -ENOMEM);
	}
}

/* --- the cache --- */

/* a first answer makes the cache subscribe; from then on it keeps answers */
static void warm_up(u8 dgid)
{
	struct outcome o;

	ask(99, 1, 1000, &o, NULL);
	run_ms(500);
	ask(dgid, 1, 1000, &o, NULL);
	run_ms(500);
	assert_int_equal(o.status, 0);
	sa->count_attr = IB_SA_ATTR_PATH_REC;
	sa->asked_attr = 0;
}

static bool is_cached(u8 dgid)
{
	int before = sa->asked_attr;
	struct outcome o;

	assert_true(ask(dgid, 1, 1000, &o, NULL) >= 0);
	assert_int_equal(o.calls, 0);
	run_ms(500);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, 0);
	assert_int_equal(o.path[0].dgid.raw[15], dgid);
	return sa->asked_attr == before;
}

static void the_same_question_is_asked_once(void **state)
{
	struct ib_sa_query *query;
	struct outcome o;
	int id;

	warm_up(12);
	assert_true(is_cached(12));
	assert_false(is_cached(13));
	assert_true(is_cached(13));
	id = ask(12, 1, 1000, &o, &query);
	ib_sa_cancel_query(id, query);
	run_ms(10);
	assert_int_equal(o.calls, 1);
	assert_int_equal(o.status, -EINTR);
	ask(12, 1, 1000, &o, NULL);
	ib_sa_unregister_client(&client);
	assert_int_equal(o.status, -EINTR);
}

static void a_notice_ends_what_it_is_about(void **state)
{
	const union ib_gid gid12 = question(12, 1).dgid;

	warm_up(12);
	assert_false(is_cached(13));
	fake_sa_report(sa, 11, IB_SA_SM_TRAP_GID_OUT_OF_SERVICE, &gid12);
	run_ms(10);
	assert_int_equal(sa->reports_answered, 1);
	assert_true(is_cached(13));
	assert_false(is_cached(12));
	assert_true(is_cached(12));
	fake_sa_report(sa, 11, IB_SA_SM_TRAP_PORT_CHANGE_STATE, &gid12);
	run_ms(10);
	assert_false(is_cached(13));
	assert_false(is_cached(12));
}

static void an_event_ends_all(void **state)
{
	static const enum ib_event_type events[] = {IB_EVENT_LID_CHANGE, IB_EVENT_SM_CHANGE,
						    IB_EVENT_PKEY_CHANGE, IB_EVENT_PORT_ERR,
						    IB_EVENT_CLIENT_REREGISTER};

	warm_up(12);
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		is_cached(12); /* subscribes again when the last event ended that */
		is_cached(12);
		assert_true(is_cached(12));
		port_event(events[i]);
		assert_false(is_cached(12));
	}
}

static void without_notices_nothing_is_kept(void **state)
{
	sa->refuses = IB_SA_ATTR_INFORM_INFO;
	warm_up(12);
	assert_false(is_cached(12));
	assert_false(is_cached(12));
}

/* the SA answers, then says that something changed; the answer comes last */
static void an_answer_older_than_a_notice_is_not_kept(void **state)
{
	const union ib_gid gid14 = question(14, 1).dgid;
	struct outcome o;

	warm_up(12);
	sa->busy = 1;
	ask(14, 1, 1000, &o, NULL);
	run_ms(10);
	fake_sa_report(sa, 11, IB_SA_SM_TRAP_GID_OUT_OF_SERVICE, &gid14);
	run_ms(900);
	assert_int_equal(o.status, 0);
	assert_false(is_cached(14));
}

/* --- other records --- */

static void service_done(int status, struct ib_sa_service_rec *resp, void *context)
{
	struct outcome *o = context;

	o->calls++;
	o->status = status;
	if (resp)
		o->service = *resp;
}

static void services_are_registered_found_and_deleted(void **state)
{
	static const u8 methods[] = {IB_MGMT_METHOD_SET, IB_MGMT_METHOD_GET, IB_SA_METHOD_DELETE};
	struct ib_sa_service_rec rec;
	struct outcome o = {0};

	memset(&rec, 7, sizeof(rec));
	rec.id = cpu_to_be64(0x1000000000000001);
	rec.lease = cpu_to_be32(IB_DEFAULT_SERVICE_LEASE);
	strcpy((char *)rec.name, "a service");
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		assert_true(ib_sa_service_rec_query(&client, device, 1, methods[i], &rec,
						    IB_SA_SERVICE_REC_SERVICE_ID, 1000, GFP_KERNEL,
						    service_done, &o, NULL) >= 0);
		run_ms(100);
		assert_int_equal(o.calls, i + 1);
		assert_int_equal(sa->method, methods[i]);
		assert_int_equal(o.status, 0);
		assert_int_equal(o.service.id, rec.id);
		assert_string_equal((char *)o.service.name, "a service");
		assert_memory_equal(o.service.data8, rec.data8, 16 + 16 + 16 + 16);
	}
	assert_int_equal(ib_sa_service_rec_query(&client, device, 1, IB_SA_METHOD_GET_TABLE, &rec, 0,
						 1000, GFP_KERNEL, service_done, &o, NULL),
			 -EINVAL);
}

static void member_done(int status, struct ib_sa_mcmember_rec *resp, void *context)
{
	struct outcome *o = context;

	o->calls++;
	o->status = status;
	if (resp)
		o->member = *resp;
}

static void a_group_is_joined_and_left_by_hand(void **state)
{
	struct ib_sa_mcmember_rec rec = {.mgid = SA_MGID, .join_state = 1};
	struct outcome o = {0};

	assert_true(ib_sa_mcmember_rec_set(&client, device, 1, &rec, IB_SA_MCMEMBER_REC_MGID, 1000,
					   GFP_KERNEL, member_done, &o, NULL) >= 0);
	run_ms(100);
	assert_int_equal(sa->method, IB_MGMT_METHOD_SET);
	assert_int_equal(o.status, 0);
	assert_int_equal(be16_to_cpu(o.member.mlid), 0xc005);
	assert_int_equal(o.member.mtu, IB_MTU_2048);
	o.member.mlid = 0;
	assert_true(ib_sa_mcmember_rec_query(&client, device, 1, IB_MGMT_METHOD_GET, &rec,
					     IB_SA_MCMEMBER_REC_MGID, 1000, GFP_KERNEL, member_done,
					     &o, NULL) >= 0);
	run_ms(100);
	assert_int_equal(sa->method, IB_MGMT_METHOD_GET);
	assert_int_equal(sa->attr_id, IB_SA_ATTR_MC_MEMBER_REC);
	assert_int_equal(be16_to_cpu(o.member.mlid), 0xc005);
	assert_int_equal(ib_sa_mcmember_rec_query(&client, device, 1, IB_MGMT_METHOD_SEND, &rec, 0, 1000,
						  GFP_KERNEL, member_done, &o, NULL),
			 -EINVAL);
	assert_true(ib_sa_mcmember_rec_delete(&client, device, 1, &rec, IB_SA_MCMEMBER_REC_MGID,
					      1000, GFP_KERNEL, member_done, &o, NULL) >= 0);
	run_ms(100);
	assert_int_equal(sa->method, IB_SA_METHOD_DELETE);
	assert_int_equal(o.calls, 3);
	rec.sl = 16; /* of four bits */
	assert_int_equal(ib_sa_mcmember_rec_set(&client, device, 1, &rec, 0, 1000, GFP_KERNEL,
						member_done, &o, NULL),
			 -EINVAL);
}

/* --- addresses --- */

static void a_path_becomes_an_address(void **state)
{
	struct sa_path_rec rec = question(12, 1);
	struct rdma_ah_attr attr;

	sa_path_set_dlid(&rec, 12);
	sa_path_set_slid(&rec, 11);
	rec.sl = 3;
	rec.rate = 7;
	assert_int_equal(ib_init_ah_from_path(device, 1, &rec, &attr), 0);
	assert_int_equal(attr.dlid, 12);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.static_rate, 7);
	assert_int_equal(attr.src_path_bits, 0);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.ah_flags, 0);
	rec.hop_limit = 64; /* it leaves the subnet */
	rec.traffic_class = 5;
	assert_int_equal(ib_init_ah_attr_from_path(device, 1, &rec, &attr, NULL), 0);
	assert_int_equal(attr.ah_flags, IB_AH_GRH);
	assert_memory_equal(&attr.grh.dgid, &rec.dgid, 16);
	assert_int_equal(attr.grh.hop_limit, 64);
	assert_int_equal(attr.grh.traffic_class, 5);
	rec.sgid.raw[15]++; /* nobody's */
	assert_int_equal(ib_init_ah_from_path(device, 1, &rec, &attr), -ENOENT);
	assert_int_equal(ib_init_ah_from_path(device, 9, &rec, &attr), -EINVAL);
}

static void a_group_becomes_an_address(void **state)
{
	struct ib_sa_mcmember_rec rec = {.mgid = SA_MGID, .port_gid = question(12, 1).sgid,
					 .mlid = cpu_to_be16(0xc005), .sl = 2,
					 .flow_label = cpu_to_be32(77)};
	struct rdma_ah_attr attr;

	assert_int_equal(ib_init_ah_from_mcmember(device, 1, &rec, &attr), 0);
	assert_int_equal(attr.dlid, 0xc005);
	assert_int_equal(attr.ah_flags, IB_AH_GRH); /* multicast always has one (9.6.1.3) */
	assert_memory_equal(&attr.grh.dgid, &rec.mgid, 16);
	assert_int_equal(attr.grh.flow_label, 77);
}

#define T(name) cmocka_unit_test_setup_teardown(name, sa_setup, sa_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_path_is_asked_for),
		T(a_path_of_roce_follows_from_its_gids),
		T(every_field_comes_back),
		T(several_paths_come_as_a_table),
		T(a_refusal_is_told),
		T(silence_is_a_time_out),
		T(any_packet_may_be_lost),
		T(a_busy_sa_is_asked_again),
		T(a_query_is_cancelled),
		T(a_client_that_goes_hears_first),
		T(without_a_manager_there_is_nobody_to_ask),
		T(a_new_manager_is_asked_by_the_next_try),
		T(a_device_goes_with_queries_under_way),
		T(no_memory_is_no_disaster),
		T(the_same_question_is_asked_once),
		T(a_notice_ends_what_it_is_about),
		T(an_event_ends_all),
		T(without_notices_nothing_is_kept),
		T(an_answer_older_than_a_notice_is_not_kept),
		T(services_are_registered_found_and_deleted),
		T(a_group_is_joined_and_left_by_hand),
		T(a_path_becomes_an_address),
		T(a_group_becomes_an_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
