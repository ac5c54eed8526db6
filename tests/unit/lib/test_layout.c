/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where programs and providers of rdma-core 44 look inside our objects. The
 * inline functions of verbs.h are compiled into programs, so these numbers
 * are as much the interface as the symbols are.
 */
#include "../test.h"

#include <pthread.h>
#include "../../../lib/libibverbs/soft.h"

static void context_layout(void **state)
{
	/* a mutex is of 40 bytes on x86-64 and of 48 on arm64 */
	assert_int_equal(sizeof(struct verbs_context), 608 + sizeof(pthread_mutex_t));
	assert_int_equal(offsetof(struct verbs_context, context), 320);
	assert_int_equal(offsetof(struct soft_context, v), 0);
	/* sz stands right before the context: ibv inlines subtract from there */
	assert_int_equal(offsetof(struct verbs_context, sz), 312);
}

static void device_layout(void **state)
{
	assert_int_equal(offsetof(struct soft_device, ibv), 0);
	assert_int_equal(sizeof(struct ibv_device), 664);
	/* libmlx5 and libefa compare this pointer with their own tables */
	assert_int_equal(offsetof(struct soft_device, not_a_provider), 664);
}

static void objects_begin_with_the_public_struct(void **state)
{
	assert_int_equal(offsetof(struct soft_pd, ibv), 0);
	assert_int_equal(offsetof(struct soft_mr, ibv), 0);
	assert_int_equal(offsetof(struct soft_ah, ibv), 0);
	assert_int_equal(offsetof(struct soft_cq, ibv), 0);
	assert_int_equal(offsetof(struct soft_cq, ex), 0);
	assert_int_equal(offsetof(struct soft_qp, ibv), 0);
	assert_int_equal(offsetof(struct soft_qp, ex), 0);
	assert_int_equal(offsetof(struct soft_srq, ibv), 0);
	assert_int_equal(offsetof(struct soft_channel, ibv), 0);
}

/* the exported ibv_query_port() fills the struct of before port_cap_flags2 */
static void port_attr_sizes(void **state)
{
	assert_int_equal(sizeof(struct ibv_port_attr), 52);
	assert_int_equal(offsetof(struct ibv_port_attr, port_cap_flags2), 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(context_layout),
		cmocka_unit_test(device_layout),
		cmocka_unit_test(objects_begin_with_the_public_struct),
		cmocka_unit_test(port_attr_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
