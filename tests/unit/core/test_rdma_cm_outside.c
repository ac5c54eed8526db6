/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA CM: addresses of hosts outside of a fabric, which may have to be asked for first. */
#include "rdma_cm_net.h"

static struct {
	unsigned int calls, silent; /* so many calls find no answer yet */
	int ret;		    /* of those behind them */
} host;

static int outside(void *ctx, struct ib_device *device, u32 port_num, const struct sockaddr *addr)
{
	assert_ptr_equal(device, &net->node[2]->ib);
	return host.calls++ < host.silent ? -EAGAIN : host.ret;
}

static const struct rdma_hosts with_outside = {.find = find_host, .address = address_of, .outside = outside};

static void begin(unsigned int silent, int ret)
{
	struct sockaddr_in to = ip("192.0.2.1", PORT);

	host.calls = 0;
	host.silent = silent;
	host.ret = ret;
	assert_int_equal(rdma_cm_set_hosts(net->rt, &with_outside), 0);
	active.id = create(2, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(to), 1000), 0);
}

static void expect(enum rdma_cm_event_type event, int status)
{
	assert_int_equal(active.num, 1);
	assert_int_equal(active.heard[0], event);
	assert_int_equal(active.status, status);
}

static void a_host_that_is_known(void **state)
{
	begin(0, 0);
	run_ms(1);
	expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(host.calls, 1);
}

static void a_host_that_answers(void **state)
{
	begin(4, 0);
	run_ms(14);
	assert_int_equal(active.num, 0);
	run_ms(2);
	expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	assert_int_equal(host.calls, 5);
}

static void a_host_that_does_not_answer(void **state)
{
	begin(1000, 0);
	run_ms(990);
	assert_int_equal(active.num, 0);
	run_ms(1000);
	expect(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	assert_in_range(host.calls, 5, 15);
}

static void nobody_to_ask(void **state)
{
	begin(0, -ENOENT);
	run_ms(1);
	expect(RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
}

static void an_id_ends_while_it_asks(void **state)
{
	begin(1000, 0);
	run_ms(5);
	rdma_destroy_id(active.id);
	active.id = NULL;
	host.calls = 0;
	run_ms(2000);
	assert_int_equal(host.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_host_that_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(a_host_that_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(a_host_that_does_not_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_to_ask, setup, teardown),
		cmocka_unit_test_setup_teardown(an_id_ends_while_it_asks, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
