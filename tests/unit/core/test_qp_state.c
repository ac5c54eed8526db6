/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of transitions, all of it: each pair of states, each type, each
 * attribute. The expectation is written per type as the specification's table
 * has it (IBA v1 11.2.4.2), while the code groups types by row.
 */
#include "../test.h"

#include "rdma/ib_verbs.h"

enum { RESET = IB_QPS_RESET, INIT, RTR, RTS, SQD, SQE, ERR, STATES };
#define BITS 26 /* enum ib_qp_attr_mask */

#define CUR IB_QP_CUR_STATE
#define SQDN IB_QP_EN_SQD_ASYNC_NOTIFY
#define ACC IB_QP_ACCESS_FLAGS
#define PKI IB_QP_PKEY_INDEX
#define PORT IB_QP_PORT
#define QKEY IB_QP_QKEY
#define AV IB_QP_AV
#define MTU IB_QP_PATH_MTU
#define TMO IB_QP_TIMEOUT
#define RTY IB_QP_RETRY_CNT
#define RNR IB_QP_RNR_RETRY
#define RPSN IB_QP_RQ_PSN
#define RDA IB_QP_MAX_QP_RD_ATOMIC
#define ALT IB_QP_ALT_PATH
#define MRNR IB_QP_MIN_RNR_TIMER
#define SPSN IB_QP_SQ_PSN
#define DRDA IB_QP_MAX_DEST_RD_ATOMIC
#define MIG IB_QP_PATH_MIG_STATE
#define DQPN IB_QP_DEST_QPN
#define RATE IB_QP_RATE_LIMIT

struct row {
	int type, from, to, required, optional;
};

static const struct row rows[] = {
	/* clang-format off */
	{IB_QPT_RC, RESET, INIT, PKI | PORT | ACC, 0},
	{IB_QPT_RC, INIT, INIT, 0, PKI | PORT | ACC},
	{IB_QPT_RC, INIT, RTR, AV | MTU | DQPN | RPSN | DRDA | MRNR, ALT | ACC | PKI},
	{IB_QPT_RC, RTR, RTS, TMO | RTY | RNR | SPSN | RDA, CUR | ACC | MRNR | ALT | MIG},
	{IB_QPT_RC, RTS, RTS, 0, CUR | ACC | ALT | MIG | MRNR},
	{IB_QPT_RC, RTS, SQD, 0, SQDN},
	{IB_QPT_RC, SQD, RTS, 0, CUR | ACC | MRNR | ALT | MIG},
	{IB_QPT_RC, SQD, SQD, 0, PORT | AV | TMO | RTY | RNR | RDA | DRDA | ALT | ACC | PKI |
				 MRNR | MIG},

	{IB_QPT_UC, RESET, INIT, PKI | PORT | ACC, 0},
	{IB_QPT_UC, INIT, INIT, 0, PKI | PORT | ACC},
	{IB_QPT_UC, INIT, RTR, AV | MTU | DQPN | RPSN, ALT | ACC | PKI},
	{IB_QPT_UC, RTR, RTS, SPSN, CUR | ACC | ALT | MIG},
	{IB_QPT_UC, RTS, RTS, 0, CUR | ACC | ALT | MIG},
	{IB_QPT_UC, RTS, SQD, 0, SQDN},
	{IB_QPT_UC, SQD, RTS, 0, CUR | ACC | ALT | MIG},
	{IB_QPT_UC, SQD, SQD, 0, AV | ALT | ACC | PKI | MIG},
	{IB_QPT_UC, SQE, RTS, 0, CUR | ACC},

	{IB_QPT_UD, RESET, INIT, PKI | PORT | QKEY, 0},
	{IB_QPT_UD, INIT, INIT, 0, PKI | PORT | QKEY},
	{IB_QPT_UD, INIT, RTR, 0, PKI | QKEY},
	{IB_QPT_UD, RTR, RTS, SPSN, CUR | QKEY},
	{IB_QPT_UD, RTS, RTS, 0, CUR | QKEY},
	{IB_QPT_UD, RTS, SQD, 0, SQDN},
	{IB_QPT_UD, SQD, RTS, 0, CUR | QKEY},
	{IB_QPT_UD, SQD, SQD, 0, PKI | QKEY},
	{IB_QPT_UD, SQE, RTS, 0, CUR | QKEY},

	{IB_QPT_XRC_INI, RESET, INIT, PKI | PORT | ACC, 0},
	{IB_QPT_XRC_INI, INIT, INIT, 0, PKI | PORT | ACC},
	{IB_QPT_XRC_INI, INIT, RTR, AV | MTU | DQPN | RPSN, ALT | ACC | PKI},
	{IB_QPT_XRC_INI, RTR, RTS, TMO | RTY | RNR | SPSN | RDA, CUR | ACC | ALT | MIG},
	{IB_QPT_XRC_INI, RTS, RTS, 0, CUR | ACC | ALT | MIG},
	{IB_QPT_XRC_INI, RTS, SQD, 0, SQDN},
	{IB_QPT_XRC_INI, SQD, RTS, 0, CUR | ACC | ALT | MIG},
	{IB_QPT_XRC_INI, SQD, SQD, 0, PORT | AV | TMO | RTY | RNR | RDA | ALT | ACC | PKI | MIG},

	{IB_QPT_XRC_TGT, RESET, INIT, PKI | PORT | ACC, 0},
	{IB_QPT_XRC_TGT, INIT, INIT, 0, PKI | PORT | ACC},
	{IB_QPT_XRC_TGT, INIT, RTR, AV | MTU | DQPN | RPSN | DRDA | MRNR, ALT | ACC | PKI},
	{IB_QPT_XRC_TGT, RTR, RTS, TMO | SPSN, CUR | ACC | MRNR | ALT | MIG},
	{IB_QPT_XRC_TGT, RTS, RTS, 0, CUR | ACC | ALT | MIG | MRNR},
	{IB_QPT_XRC_TGT, RTS, SQD, 0, SQDN},
	{IB_QPT_XRC_TGT, SQD, RTS, 0, CUR | ACC | MRNR | ALT | MIG},
	{IB_QPT_XRC_TGT, SQD, SQD, 0, PORT | AV | TMO | DRDA | ALT | ACC | PKI | MRNR | MIG},

	{IB_QPT_RD, RESET, INIT, QKEY | ACC, 0},
	{IB_QPT_RD, INIT, INIT, 0, QKEY | ACC},
	{IB_QPT_RD, INIT, RTR, 0, QKEY | ACC},
	{IB_QPT_RD, RTR, RTS, 0, CUR | QKEY | ACC},
	{IB_QPT_RD, RTS, RTS, 0, CUR | QKEY | ACC},
	{IB_QPT_RD, RTS, SQD, 0, SQDN},
	{IB_QPT_RD, SQD, RTS, 0, CUR | QKEY | ACC},
	{IB_QPT_RD, SQD, SQD, 0, QKEY | ACC},
	{IB_QPT_RD, SQE, RTS, 0, CUR | QKEY | ACC},

	{IB_QPT_EEC, RESET, INIT, PKI | PORT, 0},
	{IB_QPT_EEC, INIT, INIT, 0, PKI | PORT},
	{IB_QPT_EEC, INIT, RTR, AV | MTU | DQPN | RPSN | DRDA | MRNR, ALT | PKI},
	{IB_QPT_EEC, RTR, RTS, TMO | RTY | RNR | SPSN | RDA, CUR | MRNR | ALT | MIG},
	{IB_QPT_EEC, RTS, RTS, 0, CUR | MRNR | ALT | MIG},
	{IB_QPT_EEC, RTS, SQD, 0, SQDN},
	{IB_QPT_EEC, SQD, RTS, 0, CUR | MRNR | ALT | MIG},
	{IB_QPT_EEC, SQD, SQD, 0,
	 PORT | AV | TMO | RTY | RNR | RDA | DRDA | ALT | PKI | MRNR | MIG},

	{IB_QPT_SMI, RESET, INIT, PKI | QKEY, 0},
	{IB_QPT_SMI, INIT, INIT, 0, PKI | QKEY},
	{IB_QPT_SMI, INIT, RTR, 0, PKI | QKEY},
	{IB_QPT_SMI, RTR, RTS, SPSN, CUR | QKEY},
	{IB_QPT_SMI, RTS, RTS, 0, CUR | QKEY},
	{IB_QPT_SMI, RTS, SQD, 0, SQDN},
	{IB_QPT_SMI, SQD, RTS, 0, CUR | QKEY},
	{IB_QPT_SMI, SQD, SQD, 0, PKI | QKEY},
	{IB_QPT_SMI, SQE, RTS, 0, CUR | QKEY},

	{IB_QPT_RAW_PACKET, RESET, INIT, PORT, 0},
	{IB_QPT_RAW_PACKET, INIT, INIT, 0, PORT},
	{IB_QPT_RAW_PACKET, INIT, RTR, 0, 0},
	{IB_QPT_RAW_PACKET, RTR, RTS, 0, CUR | RATE},
	{IB_QPT_RAW_PACKET, RTS, RTS, 0, CUR | RATE},
	{IB_QPT_RAW_PACKET, RTS, SQD, 0, SQDN},
	{IB_QPT_RAW_PACKET, SQD, RTS, 0, CUR},
	{IB_QPT_RAW_PACKET, SQE, RTS, 0, CUR},
	/* clang-format on */
};

static const int types[] = {IB_QPT_SMI, IB_QPT_GSI, IB_QPT_RC, IB_QPT_UC,
			    IB_QPT_UD,	IB_QPT_XRC_INI, IB_QPT_XRC_TGT, IB_QPT_RD, IB_QPT_EEC,
			    IB_QPT_RAW_PACKET};

static const struct row *expected(int type, int from, int to)
{
	if (type == IB_QPT_GSI)
		type = IB_QPT_SMI; /* the same in every respect */
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].type == type && rows[i].from == from && rows[i].to == to)
			return &rows[i];
	return NULL;
}

/* any state to RESET or ERR, but RESET to ERR; SQE only where it exists */
static bool is_fallback(int type, int from, int to)
{
	if (from == SQE && (type == IB_QPT_RC || type == IB_QPT_XRC_INI ||
			    type == IB_QPT_XRC_TGT || type == IB_QPT_EEC))
		return false;
	return to == RESET || (to == ERR && from != RESET);
}

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

/* what combinations of attributes follow from the table: all that is required, and of the others
 * only what is optional */
static bool allows(int type, int from, int to, int mask)
{
	const struct row *r = expected(type, from, to);

	if (!r)
		return !mask && is_fallback(type, from, to);
	return (mask & r->required) == r->required && !(mask & ~(r->required | r->optional));
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
