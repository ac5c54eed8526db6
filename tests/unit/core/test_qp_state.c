/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of transitions, all of it: each pair of states, each type, each
 * attribute. The expectation is written per type as the specification's table
 * has it (IBA v1 11.2.4.2), while the code groups types by row.
 */
#include "../test.h"

#include "rdma/ib_verbs.h"

#define QP_ATTR(name) IB_QP_##name
#define QP_TYPE(name) IB_QPT_##name
#include "../../qp_transitions.h"

_Static_assert((int)RESET == (int)IB_QPS_RESET && (int)ERR == (int)IB_QPS_ERR, "the states of the table");

static const int types[] = {IB_QPT_SMI, IB_QPT_GSI, IB_QPT_RC, IB_QPT_UC,
			    IB_QPT_UD,	IB_QPT_XRC_INI, IB_QPT_XRC_TGT, IB_QPT_RD, IB_QPT_EEC,
			    IB_QPT_RAW_PACKET};

static bool ok(int type, int from, int to, int mask)
{
	bool with_state = ib_modify_qp_is_ok(from, to, type, mask | IB_QP_STATE);

	assert_int_equal(with_state, ib_modify_qp_is_ok(from, to, type, mask));
	return with_state;
}

static void check_row(const struct row *r, int type)
{
	assert_true(ok(type, r->from, r->to, r->required | r->optional));
	assert_true(ok(type, r->from, r->to, r->required));
	for (int bit = 1; bit < BITS; bit++) {
		int m = 1 << bit;

		if (r->required & m)
			assert_false(ok(type, r->from, r->to, r->required & ~m));
		else
			assert_int_equal(ok(type, r->from, r->to, r->required | m),
					 !!(r->optional & m));
	}
}

static void check_pair(int type, int from, int to)
{
	const struct row *r = expected(type, from, to);

	if (r) {
		check_row(r, type);
		return;
	}
	assert_int_equal(ok(type, from, to, 0), is_fallback(type, from, to));
	for (int bit = 1; bit < BITS; bit++)
		assert_false(ok(type, from, to, 1 << bit));
}

static void every_pair_of_every_type(void **state)
{
	for (size_t t = 0; t < ARRAY_SIZE(types); t++)
		for (int from = 0; from < STATES; from++)
			for (int to = 0; to < STATES; to++)
				check_pair(types[t], from, to);
}

/* Masks at random, half of them of what the row knows, so that many are allowed. */
static void any_combination_follows_from_the_table(void **state)
{
	unsigned allowed = 0;
	uint64_t x = 1;

	for (unsigned n = 0; n < 1000000; n++) {
		int type, from, to, mask;
		const struct row *r;

		x = x * 6364136223846793005u + 1442695040888963407u;
		type = types[(x >> 33) % ARRAY_SIZE(types)];
		from = (int)((x >> 40) % STATES);
		to = (int)((x >> 44) % STATES);
		x = x * 6364136223846793005u + 1442695040888963407u;
		mask = (int)(x >> 37) & ~IB_QP_STATE & ((1 << BITS) - 1);
		r = expected(type, from, to);
		if (r && x >> 63)
			mask = (mask & r->optional) | r->required;
		assert_int_equal(ok(type, from, to, mask), allows(type, from, to, mask));
		allowed += allows(type, from, to, mask);
	}
	assert_true(allowed > 50000);
}

static void nonsense_is_refused(void **state)
{
	assert_false(ib_modify_qp_is_ok(IB_QPS_RESET, IB_QPS_INIT, IB_QPT_MAX, PKI | QKEY));
	assert_false(ib_modify_qp_is_ok(IB_QPS_RESET, IB_QPS_INIT, (enum ib_qp_type)77, 0));
	assert_false(ib_modify_qp_is_ok(IB_QPS_RESET, IB_QPS_RESET, (enum ib_qp_type)5, 0));
	assert_false(ib_modify_qp_is_ok((enum ib_qp_state)9, IB_QPS_RESET, IB_QPT_RC, 0));
	assert_false(ib_modify_qp_is_ok(IB_QPS_RTS, (enum ib_qp_state)9, IB_QPT_RC, 0));
	assert_false(ib_modify_qp_is_ok(IB_QPS_RTS, IB_QPS_RTS, IB_QPT_RC, 1 << 26));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pair_of_every_type),
		cmocka_unit_test(any_combination_follows_from_the_table),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
