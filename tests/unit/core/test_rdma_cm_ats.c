/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA CM: IP addresses of other fabrics of the subnet, by service records (ATS). */
#include "rdma_cm_net.h"

#define RECORDS 6 /* three nodes with a port each, of which each has two addresses */
#define LEASE_S 600

static int publish_setup(void **state)
{
	int ret = setup(state);

	sa->count_attr = IB_SA_ATTR_SERVICE_REC;
	return ret;
}

static void publish(void)
{
	assert_int_equal(rdma_cm_publish(net->rt, true), 0);
	run_ms(500);
}

static void each_port_publishes_its_addresses(void **state)
{
	u8 ipv6[16] = {0xfd, [15] = 3};

	publish();
	assert_int_equal(sa->asked_attr, RECORDS);
	assert_int_equal(sa->counted_method, IB_MGMT_METHOD_SET);
	/* the last one is the IPv6 address of the last node; its id, GID, P_Key, lease, key, name are before it */
	assert_string_equal((char *)sa->counted_record + 48, "DAPL Address Translation Service");
	assert_int_equal(get_be32(sa->counted_record + 28), LEASE_S);
	assert_memory_equal(sa->counted_record + 112, ipv6, sizeof(ipv6));
	run_ms(60000);
	assert_int_equal(sa->asked_attr, RECORDS); /* once is enough */
	assert_int_equal(rdma_cm_publish(net->rt, true), 0);
	run_ms(500);
	assert_int_equal(sa->asked_attr, RECORDS);
}

static void records_are_renewed_before_they_end(void **state)
{
	publish();
	run_ms(LEASE_S * 1000 / 2);
	assert_int_equal(sa->asked_attr, 2 * RECORDS);
	assert_int_equal(rdma_cm_publish(net->rt, false), 0);
	run_ms(LEASE_S * 1000);
	assert_int_equal(sa->asked_attr, 2 * RECORDS);
}

static void a_manager_that_has_forgotten_is_told(void **state)
{
	publish();
	ib_dispatch_event(&(struct ib_event){
		.device = &net->node[1]->ib, .element.port_num = 1, .event = IB_EVENT_CLIENT_REREGISTER});
	run_ms(500);
	assert_int_equal(sa->asked_attr, RECORDS + 2);
}

static void what_was_refused_is_tried_again(void **state)
{
	sa->refuses = IB_SA_ATTR_SERVICE_REC;
	publish();
	assert_int_equal(sa->asked_attr, RECORDS);
	sa->refuses = 0;
	run_ms(1000);
	assert_int_equal(sa->asked_attr, 2 * RECORDS);
	run_ms(10000);
	assert_int_equal(sa->asked_attr, 2 * RECORDS);
}

/* --- asking --- */

static struct rdma_cm_id *begin_resolving(const char *address)
{
	struct sockaddr_in to = ip(address, PORT);

	active.id = create(2, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(to), 1000), 0);
	return active.id;
}

static void an_address_of_another_fabric_is_found(void **state)
{
	u8 asked[16] = {[12] = 192, 0, 2, 1};
	const union ib_gid gid = SA_SERVICE_GID;
	struct rdma_cm_id *id;

	publish();
	id = begin_resolving("192.0.2.1");
	run_ms(500);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_memory_equal(&id->route.dgid, &gid, sizeof(gid));
	assert_int_equal(sa->counted_method, IB_MGMT_METHOD_GET);
	assert_int_equal(get_be64(sa->counted_record), 0x10000ce100415453ull);
	assert_memory_equal(sa->counted_record + 112, asked, sizeof(asked)); /* IPv4 is at the end */
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	run_ms(500);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void an_address_of_nobody_is_none(void **state)
{
	publish();
	sa->refuses = IB_SA_ATTR_SERVICE_REC;
	begin_resolving("192.0.2.1");
	run_ms(500);
	assert_int_equal(active.num, 1);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(active.status, -ENETUNREACH);
	/* and the id may ask again */
	sa->refuses = 0;
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(((struct sockaddr_in[]){ip("192.0.2.1", PORT)})[0]), 1000), 0);
	run_ms(500);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void the_time_out_is_the_caller_s(void **state)
{
	publish();
	sa->silent = true;
	begin_resolving("192.0.2.1");
	run_ms(900);
	assert_int_equal(active.num, 0);
	run_ms(200);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_ERROR);
	active.num = 0;
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(((struct sockaddr_in[]){ip("192.0.2.1", PORT)})[0]), 3000), 0);
	run_ms(2900);
	assert_int_equal(active.num, 0);
	run_ms(200);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_ERROR);
}

static void own_addresses_are_not_asked_for(void **state)
{
	publish();
	begin_resolving("10.0.0.2");
	run_ms(500);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(sa->asked_attr, RECORDS);
}

static void nobody_is_asked_without_publishing(void **state)
{
	begin_resolving("192.0.2.1");
	run_ms(500);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(sa->asked_attr, 0);
}

static void an_id_may_go_while_it_asks(void **state)
{
	publish();
	sa->silent = true;
	begin_resolving("192.0.2.1");
	run_ms(10);
	rdma_destroy_id(active.id);
	active.id = NULL;
	run_ms(10000);
	assert_int_equal(active.num, 0);
}

static void an_adapter_may_go_while_it_publishes(void **state)
{
	sa->silent = true;
	assert_int_equal(rdma_cm_publish(net->rt, true), 0);
	run_ms(10);
	assert_int_equal(rdma_cm_publish(net->rt, false), 0); /* as for each adapter that leaves */
	run_ms(10000); /* teardown() finds what is left */
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, publish_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_port_publishes_its_addresses),
		CASE(records_are_renewed_before_they_end),
		CASE(a_manager_that_has_forgotten_is_told),
		CASE(what_was_refused_is_tried_again),
		CASE(an_address_of_another_fabric_is_found),
		CASE(an_address_of_nobody_is_none),
		CASE(the_time_out_is_the_caller_s),
		CASE(own_addresses_are_not_asked_for),
		CASE(nobody_is_asked_without_publishing),
		CASE(an_id_may_go_while_it_asks),
		CASE(an_adapter_may_go_while_it_publishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
