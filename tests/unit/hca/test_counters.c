/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What queue pairs count for their ports: the midlayer's, a program's, and those of programs that have ended. */
#include "world.h"

static struct abi_counters *counters_of(const struct program *p)
{
	const struct abi_context_resp *resp = p->context->driver_resp;
	struct hca_user *user = container_of(p->context, struct hca_user, ib);

	assert_int_equal(resp->counters_offset % 64, 0);
	return (void *)((char *)user->link_memory + resp->counters_offset);
}

static uint64_t counted(const struct world *w, unsigned port_num, enum tp_counter counter)
{
	uint64_t values[ABI_COUNTERS];

	hca_counters(w->hca, port_num, values);
	return values[counter];
}

static void counts_outlive_their_program(void **state)
{
	struct world *w = *state;
	struct program one, other;

	make_program(w, &one);
	make_program(w, &other);
	assert_int_equal(counted(w, 1, TP_TIMEOUT), 0);
	abi_count(&counters_of(&one)[0], TP_TIMEOUT);
	abi_count(&counters_of(&one)[0], TP_TIMEOUT);
	abi_count(&counters_of(&other)[0], TP_TIMEOUT);
	abi_count(&counters_of(&other)[1], TP_DUPLICATE_RESPONSE);
	hca_count(w->hca, 1, TP_TIMEOUT);
	assert_int_equal(counted(w, 1, TP_TIMEOUT), 4);
	end_program(&one);
	assert_int_equal(counted(w, 1, TP_TIMEOUT), 4);
	assert_int_equal(counted(w, 2, TP_DUPLICATE_RESPONSE), 1);
	end_program(&other);
	assert_int_equal(counted(w, 1, TP_TIMEOUT), 4);
	assert_int_equal(counted(w, 1, TP_DUPLICATE_RESPONSE), 0);
	assert_int_equal(counted(w, 2, TP_DUPLICATE_RESPONSE), 1);
	assert_int_equal(counted(w, 2, TP_TIMEOUT), 0);
}

/* An adapter whose queue pairs have counted nothing has no memory for it. */
static void a_lack_of_memory_loses_a_count(void **state)
{
	struct world *w = *state;
	struct program p;

	make_program(w, &p);
	end_program(&p);
	assert_null(w->hca->counted);
	rt_fail_alloc(1);
	hca_count(w->hca, 1, TP_RETRY);
	rt_fail_alloc(0);
	assert_int_equal(counted(w, 1, TP_RETRY), 0);
	hca_count(w->hca, 1, TP_RETRY);
	assert_int_equal(counted(w, 1, TP_RETRY), 1);
}

static void each_has_a_name(void **state)
{
	for (unsigned i = 0; i < ABI_COUNTERS; i++) {
		assert_non_null(hca_counter_name(i));
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(hca_counter_name(i), hca_counter_name(j));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(counts_outlive_their_program),
		CASE(a_lack_of_memory_loses_a_count),
		CASE(each_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
