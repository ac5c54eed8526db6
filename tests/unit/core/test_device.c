/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices, clients and events: who is told what, when, in which order. */
#include "../test.h"

#include "fake_device.h"
#include "runtime/sim/rt_sim.h"

static char journal[256];

static void note(const char *what, const struct ib_device *device)
{
	size_t len = strlen(journal);

	snprintf(journal + len, sizeof(journal) - len, "%s:%s ", what, device->node_name);
}

static struct ib_client a, b, picky;

static int add_a(struct ib_device *device)
{
	struct ib_port_attr attr;

	/* by now the device answers and is found */
	assert_int_equal(ib_query_port(device, 1, &attr), 0);
	assert_ptr_equal(ib_device_get_by_name(device->rt, device->node_name, "softib0"), device);
	note("+a", device);
	ib_set_client_data(device, &a, device);
	return 0;
}

static void remove_a(struct ib_device *device, void *data)
{
	struct ib_port_attr attr;

	assert_ptr_equal(data, device);
	assert_int_equal(ib_query_port(device, 1, &attr), 0); /* it still works */
	note("-a", device);
}

static int add_b(struct ib_device *device)
{
	/* b rests on a: a is there first */
	assert_ptr_equal(ib_get_client_data(device, &a), device);
	note("+b", device);
	return 0;
}

static void remove_b(struct ib_device *device, void *data)
{
	assert_ptr_equal(ib_get_client_data(device, &a), device);
	assert_null(data);
	note("-b", device);
}

static int add_picky(struct ib_device *device)
{
	note("?p", device);
	return -EOPNOTSUPP;
}

static void remove_picky(struct ib_device *device, void *data)
{
	fail_msg("a client that did not want the device is told that it goes");
}

static struct ib_client a = {.name = "a", .add = add_a, .remove = remove_a};
static struct ib_client b = {.name = "b", .add = add_b, .remove = remove_b};
static struct ib_client picky = {.name = "p", .add = add_picky, .remove = remove_picky};

static int setup(void **state)
{
	struct rt *rt;

	journal[0] = 0;
	if (rt_sim_create(1, &rt))
		return -1;
	*state = rt;
	return 0;
}

static int teardown(void **state)
{
	rt_sim_destroy(*state);
	return 0;
}

static void clients_come_in_order_and_go_in_reverse(void **state)
{
	struct fake *n1 = fake_create(*state, "n1"), *n2 = fake_create(*state, "n2");

	assert_int_equal(ib_register_device(&n1->ib, "softib0"), 0);
	assert_int_equal(ib_register_client(*state, &a), 0);
	assert_int_equal(ib_register_client(*state, &b), 0);
	assert_int_equal(ib_register_client(*state, &b), -EEXIST);
	assert_int_equal(ib_register_device(&n2->ib, "softib0"), 0);
	assert_string_equal(journal, "+a:n1 +b:n1 +a:n2 +b:n2 ");
	journal[0] = 0;
	ib_unregister_device(&n1->ib);
	ib_unregister_client(*state, &b);
	ib_unregister_client(*state, &a);
	assert_string_equal(journal, "-b:n1 -a:n1 -b:n2 -a:n2 ");
	ib_unregister_device(&n2->ib);
	ib_dealloc_device(&n1->ib);
	ib_dealloc_device(&n2->ib);
}

static void a_client_may_decline(void **state)
{
	struct fake *n1 = fake_create(*state, "n1");

	assert_int_equal(ib_register_client(*state, &picky), 0);
	assert_int_equal(ib_register_device(&n1->ib, "softib0"), 0);
	assert_string_equal(journal, "?p:n1 ");
	ib_set_client_data(&n1->ib, &picky, n1);
	assert_null(ib_get_client_data(&n1->ib, &picky));
	ib_unregister_device(&n1->ib);
	ib_unregister_client(*state, &picky);
	ib_dealloc_device(&n1->ib);
}

static void names_are_unique_in_a_node(void **state)
{
	struct fake *x = fake_create(*state, "n1"), *y = fake_create(*state, "n1"),
		    *z = fake_create(*state, "n2");

	assert_int_equal(ib_register_device(&x->ib, "softib0"), 0);
	assert_int_equal(ib_register_device(&y->ib, "softib0"), -EEXIST);
	assert_int_equal(ib_register_device(&x->ib, "softib9"), -EEXIST);
	assert_int_equal(ib_register_device(&y->ib, "softib1"), 0);
	assert_int_equal(ib_register_device(&z->ib, "softib0"), 0);
	assert_int_equal(x->ib.index, 0);
	assert_int_equal(y->ib.index, 1);
	assert_int_equal(z->ib.index, 0);
	ib_unregister_device(&x->ib);
	assert_null(ib_device_get_by_name(*state, "n1", "softib0"));
	assert_int_equal(ib_register_device(&x->ib, "softib0"), 0);
	assert_int_equal(x->ib.index, 0); /* the number that was given back */
	ib_unregister_device(&x->ib);
	ib_unregister_device(&y->ib);
	ib_unregister_device(&z->ib);
	ib_dealloc_device(&x->ib);
	ib_dealloc_device(&y->ib);
	ib_dealloc_device(&z->ib);
}

static int note_and_count(struct ib_device *device, void *ctx)
{
	note(device->name, device);
	return ++*(int *)ctx == 3 ? 77 : 0;
}

static void devices_of_a_node_are_found_in_order(void **state)
{
	struct fake *fake[6];
	int n = 0;

	for (int i = 0; i < 6; i++) {
		char name[16];

		fake[i] = fake_create(*state, i % 2 ? "odd" : "even");
		snprintf(name, sizeof(name), "softib%d", i);
		assert_int_equal(ib_register_device(&fake[i]->ib, name), 0);
	}
	ib_unregister_device(&fake[3]->ib);
	journal[0] = 0;
	assert_int_equal(ib_device_for_each_of_node(*state, "odd", note_and_count, &n), 0);
	assert_string_equal(journal, "softib1:odd softib5:odd ");
	journal[0] = 0;
	n = 0; /* it ends with the first that says so */
	assert_int_equal(ib_device_for_each_of_node(*state, "even", note_and_count, &n), 77);
	assert_string_equal(journal, "softib0:even softib2:even softib4:even ");
	assert_int_equal(ib_device_for_each_of_node(*state, "none", note_and_count, &n), 0);
	for (int i = 0; i < 6; i++) {
		ib_unregister_device(&fake[i]->ib);
		ib_dealloc_device(&fake[i]->ib);
	}
}

static void a_device_must_have_the_mandatory_operations(void **state)
{
	struct fake *n1 = fake_create(*state, "n1");
	struct ib_device_ops lame = fake_ops;

	lame.poll_cq = NULL;
	n1->ib.ops = &lame;
	assert_int_equal(ib_register_device(&n1->ib, "softib0"), -EINVAL);
	n1->ib.ops = &fake_ops;
	assert_int_equal(ib_register_device(&n1->ib, ""), -EINVAL);
	assert_null(ib_device_get_by_name(*state, "n1", "softib0"));
	ib_dealloc_device(&n1->ib);
}

/* every allocation of a registration fails once; nothing stays behind */
static void registration_survives_lack_of_memory(void **state)
{
	struct fake *n1 = fake_create(*state, "n1");
	int failures = 0;

	for (uint64_t nth = 1;; nth++) {
		int ret;

		rt_fail_alloc(nth);
		ret = ib_register_device(&n1->ib, "softib0");
		rt_fail_alloc(0);
		if (!ret)
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_null(ib_device_get_by_name(*state, "n1", "softib0"));
		failures++;
	}
	/* the cache, two tables of each port, how it is polled, and its fabric */
	assert_int_equal(failures, n1->ib.polled ? 7 : 6);
	ib_unregister_device(&n1->ib);
	ib_dealloc_device(&n1->ib);
}

/* --- events --- */

static struct ib_event_handler first, second;
static u16 seen_pkey;

static void on_first(struct ib_event_handler *handler, struct ib_event *event)
{
	note("first", event->device);
	assert_int_equal(ib_get_cached_pkey(event->device, 1, 3, &seen_pkey), 0);
	ib_unregister_event_handler(&first); /* may unregister itself, and others */
	ib_unregister_event_handler(&second);
}

static void on_second(struct ib_event_handler *handler, struct ib_event *event)
{
	note("second", event->device);
	assert_int_equal(event->element.port_num, 1);
}

static void events_are_deferred_and_see_fresh_caches(void **state)
{
	struct fake *n1 = fake_create(*state, "n1");
	struct ib_event event = {.device = &n1->ib, .element.port_num = 1,
				 .event = IB_EVENT_PKEY_CHANGE};
	u16 pkey;

	assert_int_equal(ib_register_device(&n1->ib, "softib0"), 0);
	INIT_IB_EVENT_HANDLER(&first, &n1->ib, on_first);
	INIT_IB_EVENT_HANDLER(&second, &n1->ib, on_second);
	ib_register_event_handler(&second);
	ib_register_event_handler(&first);
	n1->pkey[3] = 0x8077;
	ib_dispatch_event(&event);
	assert_string_equal(journal, ""); /* not on our stack */
	assert_int_equal(ib_get_cached_pkey(&n1->ib, 1, 3, &pkey), 0);
	assert_int_equal(pkey, 0); /* a copy is as old as the last event */
	assert_true(rt_sim_run(*state, 10));
	assert_string_equal(journal, "second:n1 first:n1 ");
	assert_int_equal(seen_pkey, 0x8077);
	ib_dispatch_event(&event);
	assert_true(rt_sim_run(*state, 10));
	assert_string_equal(journal, "second:n1 first:n1 "); /* both are gone */
	ib_unregister_device(&n1->ib);
	ib_dealloc_device(&n1->ib);
}

static void a_device_that_goes_takes_its_events_along(void **state)
{
	struct fake *n1 = fake_create(*state, "n1");
	struct ib_event event = {.device = &n1->ib, .element.port_num = 1,
				 .event = IB_EVENT_PORT_ERR};

	assert_int_equal(ib_register_device(&n1->ib, "softib0"), 0);
	INIT_IB_EVENT_HANDLER(&second, &n1->ib, on_second);
	ib_register_event_handler(&second);
	ib_dispatch_event(&event);
	ib_unregister_event_handler(&second);
	ib_unregister_device(&n1->ib);
	ib_dispatch_event(&event); /* of no device any more: ignored */
	ib_dealloc_device(&n1->ib);
	assert_true(rt_sim_run(*state, 10));
	assert_string_equal(journal, "");
}

/* --- searches --- */

static void gids_and_pkeys_are_found(void **state)
{
	struct fake *n1 = fake_create(*state, "n1");
	union ib_gid gid;
	u32 port;
	u16 index;

	assert_int_equal(ib_register_device(&n1->ib, "softib0"), 0);
	assert_int_equal(ib_query_gid(&n1->ib, 2, 1, &gid), 0);
	assert_int_equal(ib_find_gid(&n1->ib, &gid, &port, &index), 0);
	assert_int_equal(port, 2);
	assert_int_equal(index, 1);
	assert_int_equal(ib_find_cached_gid(&n1->ib, &gid, &port, NULL), 0);
	gid.raw[7] = 9;
	assert_int_equal(ib_find_gid(&n1->ib, &gid, &port, &index), -ENOENT);
	/* 0x0012 stands before 0x8012: full membership is preferred */
	assert_int_equal(ib_find_pkey(&n1->ib, 1, 0x0012, &index), 0);
	assert_int_equal(index, 2);
	n1->pkey[2] = 0;
	assert_int_equal(ib_find_pkey(&n1->ib, 1, 0x8012, &index), 0);
	assert_int_equal(index, 1);
	assert_int_equal(ib_find_cached_pkey(&n1->ib, 1, 0x8012, &index), 0);
	assert_int_equal(index, 2);
	assert_int_equal(ib_find_pkey(&n1->ib, 1, 0x8055, &index), -ENOENT);
	assert_int_equal(ib_query_gid(&n1->ib, 3, 0, &gid), -EINVAL);
	assert_int_equal(ib_query_gid(&n1->ib, 0, 0, &gid), -EINVAL);
	assert_int_equal(ib_get_cached_gid(&n1->ib, 1, FAKE_GIDS, &gid), -EINVAL);
	ib_unregister_device(&n1->ib);
	ib_dealloc_device(&n1->ib);
}

static void a_port_is_of_its_link_layer(void **state)
{
	struct fake *n1 = fake_create(*state, "n1"), *n2 = fake_create(*state, "n2");
	struct ib_device *device = &n1->ib;
	u32 port_num, ports = 0;

	n2->port.link_layer = IB_LINK_LAYER_ETHERNET;
	assert_int_equal(ib_register_device(device, "softib0"), 0);
	assert_int_equal(ib_register_device(&n2->ib, "softib0"), 0);
	rdma_for_each_port(device, port_num) {
		ports++;
		assert_true(rdma_protocol_ib(device, port_num) && rdma_cap_ib_sa(device, port_num));
		assert_true(rdma_cap_ib_mad(device, port_num) && rdma_cap_ib_mcast(device, port_num));
		assert_false(rdma_protocol_roce(device, port_num));
		assert_false(rdma_protocol_iwarp(device, port_num));
		assert_true(rdma_protocol_roce(&n2->ib, port_num));
		assert_true(rdma_cap_ib_cm(&n2->ib, port_num) && rdma_cap_eth_ah(&n2->ib, port_num));
		assert_false(rdma_cap_ib_smi(&n2->ib, port_num));
		assert_int_equal(rdma_ah_find_type(&n2->ib, port_num), RDMA_AH_ATTR_TYPE_ROCE);
	}
	assert_int_equal(ports, 2);
	assert_int_equal(rdma_port_get_link_layer(device, 3), IB_LINK_LAYER_UNSPECIFIED);
	assert_false(rdma_ib_or_roce(device, 3));
	ib_unregister_device(device);
	ib_unregister_device(&n2->ib);
	ib_dealloc_device(device);
	ib_dealloc_device(&n2->ib);
}

/* An entry stays what it was, whatever becomes of the table. */
static void entries_of_a_gid_table_are_kept(void **state)
{
	struct fake *n1 = fake_create(*state, "n1");
	struct ib_device *device = &n1->ib;
	union ib_gid gid = {.raw = {0xfe, 0x80, [15] = 2}}; /* of port 2 */
	const struct ib_gid_attr *attr, *found;

	n1->gid[2].raw[0] = 0xfe;
	n1->gid[2].raw[1] = 0x80;
	assert_int_equal(ib_register_device(device, "softib0"), 0);
	assert_int_equal(PTR_ERR(rdma_get_gid_attr(device, 1, FAKE_GIDS)), -EINVAL);
	assert_int_equal(PTR_ERR(rdma_get_gid_attr(device, 3, 0)), -EINVAL);
	attr = rdma_get_gid_attr(device, 2, 2);
	assert_memory_equal(&attr->gid, &gid, sizeof(gid));
	found = rdma_find_gid(device, &gid, IB_GID_TYPE_IB, NULL);
	assert_int_equal(found->port_num, 2);
	assert_int_equal(found->index, 2);
	rdma_put_gid_attr(found);
	assert_int_equal(PTR_ERR(rdma_find_gid(device, &gid, IB_GID_TYPE_ROCE, NULL)), -ENOENT);
	assert_int_equal(PTR_ERR(rdma_find_gid_by_port(device, &gid, IB_GID_TYPE_IB, 1, NULL)), -ENOENT);
	ib_unregister_device(device);
	rdma_hold_gid_attr(attr);
	rdma_put_gid_attr(attr);
	assert_memory_equal(&attr->gid, &gid, sizeof(gid));
	rdma_put_gid_attr(attr);
	ib_dealloc_device(device);
}

static void widths_and_rates_have_numbers(void **state)
{
	static const struct {
		enum ib_rate rate;
		int mbps;
	} rates[] = {{IB_RATE_PORT_CURRENT, -1}, {1, -1},
		     {IB_RATE_2_5_GBPS, 2500},	 {IB_RATE_28_GBPS, 28125},
		     {IB_RATE_600_GBPS, 637500}, {23, -1}};
	const struct ib_port_attr attr = {.active_mtu = IB_MTU_2048};

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		assert_int_equal(ib_rate_to_mbps(rates[i].rate), rates[i].mbps);
	assert_int_equal(ib_width_enum_to_int(IB_WIDTH_1X), 1);
	assert_int_equal(ib_width_enum_to_int(IB_WIDTH_2X), 2);
	assert_int_equal(ib_width_enum_to_int(IB_WIDTH_4X), 4);
	assert_int_equal(ib_width_enum_to_int(IB_WIDTH_8X), 8);
	assert_int_equal(ib_width_enum_to_int(IB_WIDTH_12X), 12);
	assert_int_equal(ib_width_enum_to_int(3), -1);
	assert_int_equal(rdma_mtu_from_attr(NULL, 1, &attr), 2048);
	assert_int_equal(rdma_mtu_enum_to_int(NULL, 1, IB_MTU_4096), 4096);
	assert_int_equal(rdma_mtu_enum_to_int(NULL, 1, 6), -1);
}

static void events_are_about_an_object_a_port_or_the_device(void **state)
{
	static const struct {
		enum ib_event_type event;
		enum ib_event_subject subject;
	} events[] = {{IB_EVENT_CQ_ERR, IB_EVENT_OF_CQ},
		      {IB_EVENT_QP_LAST_WQE_REACHED, IB_EVENT_OF_QP},
		      {IB_EVENT_SRQ_LIMIT_REACHED, IB_EVENT_OF_SRQ},
		      {IB_EVENT_DEVICE_FATAL, IB_EVENT_OF_DEVICE},
		      {IB_EVENT_GID_CHANGE, IB_EVENT_OF_PORT},
		      {IB_EVENT_GID_CHANGE + 1, IB_EVENT_OF_NONE}};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		assert_int_equal(ib_subject_of_event(events[i].event), events[i].subject);
	for (enum ib_event_type event = 0; event <= IB_EVENT_GID_CHANGE; event++)
		assert_int_not_equal(ib_subject_of_event(event), IB_EVENT_OF_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(clients_come_in_order_and_go_in_reverse, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_client_may_decline, setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_unique_in_a_node, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_of_a_node_are_found_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(a_device_must_have_the_mandatory_operations, setup,
						teardown),
		cmocka_unit_test_setup_teardown(registration_survives_lack_of_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(events_are_deferred_and_see_fresh_caches, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_device_that_goes_takes_its_events_along, setup,
						teardown),
		cmocka_unit_test_setup_teardown(gids_and_pkeys_are_found, setup, teardown),
		cmocka_unit_test_setup_teardown(a_port_is_of_its_link_layer, setup, teardown),
		cmocka_unit_test_setup_teardown(entries_of_a_gid_table_are_kept, setup, teardown),
		cmocka_unit_test(widths_and_rates_have_numbers),
		cmocka_unit_test(events_are_about_an_object_a_port_or_the_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
