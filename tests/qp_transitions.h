/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which attributes each transition of a QP requires and allows, per type as the specification's
 * table has it (IBA v1 11.2.4.2), for the tests of the midlayer and of its users' interface.
 * Those who include it define QP_ATTR(name) and QP_TYPE(name), the names of their header.
 */
#ifndef SOFTIB_TESTS_QP_TRANSITIONS_H
#define SOFTIB_TESTS_QP_TRANSITIONS_H

#include <stdbool.h>
#include <stddef.h>

enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR, STATES };
#define BITS 26 /* of enum ib_qp_attr_mask, and of enum ibv_qp_attr_mask */

#define CUR QP_ATTR(CUR_STATE)
#define SQDN QP_ATTR(EN_SQD_ASYNC_NOTIFY)
#define ACC QP_ATTR(ACCESS_FLAGS)
#define PKI QP_ATTR(PKEY_INDEX)
#define PORT QP_ATTR(PORT)
#define QKEY QP_ATTR(QKEY)
#define AV QP_ATTR(AV)
#define MTU QP_ATTR(PATH_MTU)
#define TMO QP_ATTR(TIMEOUT)
#define RTY QP_ATTR(RETRY_CNT)
#define RNR QP_ATTR(RNR_RETRY)
#define RPSN QP_ATTR(RQ_PSN)
#define RDA QP_ATTR(MAX_QP_RD_ATOMIC)
#define ALT QP_ATTR(ALT_PATH)
#define MRNR QP_ATTR(MIN_RNR_TIMER)
#define SPSN QP_ATTR(SQ_PSN)
#define DRDA QP_ATTR(MAX_DEST_RD_ATOMIC)
#define MIG QP_ATTR(PATH_MIG_STATE)
#define DQPN QP_ATTR(DEST_QPN)
#define RATE QP_ATTR(RATE_LIMIT)

struct row {
	int type, from, to, required, optional;
};

static const struct row rows[] = {
	/* clang-format off */
	{QP_TYPE(RC), RESET, INIT, PKI | PORT | ACC, 0},
	{QP_TYPE(RC), INIT, INIT, 0, PKI | PORT | ACC},
	{QP_TYPE(RC), INIT, RTR, AV | MTU | DQPN | RPSN | DRDA | MRNR, ALT | ACC | PKI},
	{QP_TYPE(RC), RTR, RTS, TMO | RTY | RNR | SPSN | RDA, CUR | ACC | MRNR | ALT | MIG},
	{QP_TYPE(RC), RTS, RTS, 0, CUR | ACC | ALT | MIG | MRNR},
	{QP_TYPE(RC), RTS, SQD, 0, SQDN},
	{QP_TYPE(RC), SQD, RTS, 0, CUR | ACC | MRNR | ALT | MIG},
	{QP_TYPE(RC), SQD, SQD, 0, PORT | AV | TMO | RTY | RNR | RDA | DRDA | ALT | ACC | PKI |
				 MRNR | MIG},

	{QP_TYPE(UC), RESET, INIT, PKI | PORT | ACC, 0},
	{QP_TYPE(UC), INIT, INIT, 0, PKI | PORT | ACC},
	{QP_TYPE(UC), INIT, RTR, AV | MTU | DQPN | RPSN, ALT | ACC | PKI},
	{QP_TYPE(UC), RTR, RTS, SPSN, CUR | ACC | ALT | MIG},
	{QP_TYPE(UC), RTS, RTS, 0, CUR | ACC | ALT | MIG},
	{QP_TYPE(UC), RTS, SQD, 0, SQDN},
	{QP_TYPE(UC), SQD, RTS, 0, CUR | ACC | ALT | MIG},
	{QP_TYPE(UC), SQD, SQD, 0, AV | ALT | ACC | PKI | MIG},
	{QP_TYPE(UC), SQE, RTS, 0, CUR | ACC},

	{QP_TYPE(UD), RESET, INIT, PKI | PORT | QKEY, 0},
	{QP_TYPE(UD), INIT, INIT, 0, PKI | PORT | QKEY},
	{QP_TYPE(UD), INIT, RTR, 0, PKI | QKEY},
	{QP_TYPE(UD), RTR, RTS, SPSN, CUR | QKEY},
	{QP_TYPE(UD), RTS, RTS, 0, CUR | QKEY},
	{QP_TYPE(UD), RTS, SQD, 0, SQDN},
	{QP_TYPE(UD), SQD, RTS, 0, CUR | QKEY},
	{QP_TYPE(UD), SQD, SQD, 0, PKI | QKEY},
	{QP_TYPE(UD), SQE, RTS, 0, CUR | QKEY},

	{QP_TYPE(XRC_INI), RESET, INIT, PKI | PORT | ACC, 0},
	{QP_TYPE(XRC_INI), INIT, INIT, 0, PKI | PORT | ACC},
	{QP_TYPE(XRC_INI), INIT, RTR, AV | MTU | DQPN | RPSN, ALT | ACC | PKI},
	{QP_TYPE(XRC_INI), RTR, RTS, TMO | RTY | RNR | SPSN | RDA, CUR | ACC | ALT | MIG},
	{QP_TYPE(XRC_INI), RTS, RTS, 0, CUR | ACC | ALT | MIG},
	{QP_TYPE(XRC_INI), RTS, SQD, 0, SQDN},
	{QP_TYPE(XRC_INI), SQD, RTS, 0, CUR | ACC | ALT | MIG},
	{QP_TYPE(XRC_INI), SQD, SQD, 0, PORT | AV | TMO | RTY | RNR | RDA | ALT | ACC | PKI | MIG},

	{QP_TYPE(XRC_TGT), RESET, INIT, PKI | PORT | ACC, 0},
	{QP_TYPE(XRC_TGT), INIT, INIT, 0, PKI | PORT | ACC},
	{QP_TYPE(XRC_TGT), INIT, RTR, AV | MTU | DQPN | RPSN | DRDA | MRNR, ALT | ACC | PKI},
	{QP_TYPE(XRC_TGT), RTR, RTS, TMO | SPSN, CUR | ACC | MRNR | ALT | MIG},
	{QP_TYPE(XRC_TGT), RTS, RTS, 0, CUR | ACC | ALT | MIG | MRNR},
	{QP_TYPE(XRC_TGT), RTS, SQD, 0, SQDN},
	{QP_TYPE(XRC_TGT), SQD, RTS, 0, CUR | ACC | MRNR | ALT | MIG},
	{QP_TYPE(XRC_TGT), SQD, SQD, 0, PORT | AV | TMO | DRDA | ALT | ACC | PKI | MRNR | MIG},

	{QP_TYPE(RD), RESET, INIT, QKEY | ACC, 0},
	{QP_TYPE(RD), INIT, INIT, 0, QKEY | ACC},
	{QP_TYPE(RD), INIT, RTR, 0, QKEY | ACC},
	{QP_TYPE(RD), RTR, RTS, 0, CUR | QKEY | ACC},
	{QP_TYPE(RD), RTS, RTS, 0, CUR | QKEY | ACC},
	{QP_TYPE(RD), RTS, SQD, 0, SQDN},
	{QP_TYPE(RD), SQD, RTS, 0, CUR | QKEY | ACC},
	{QP_TYPE(RD), SQD, SQD, 0, QKEY | ACC},
	{QP_TYPE(RD), SQE, RTS, 0, CUR | QKEY | ACC},

	{QP_TYPE(EEC), RESET, INIT, PKI | PORT, 0},
	{QP_TYPE(EEC), INIT, INIT, 0, PKI | PORT},
	{QP_TYPE(EEC), INIT, RTR, AV | MTU | DQPN | RPSN | DRDA | MRNR, ALT | PKI},
	{QP_TYPE(EEC), RTR, RTS, TMO | RTY | RNR | SPSN | RDA, CUR | MRNR | ALT | MIG},
	{QP_TYPE(EEC), RTS, RTS, 0, CUR | MRNR | ALT | MIG},
	{QP_TYPE(EEC), RTS, SQD, 0, SQDN},
	{QP_TYPE(EEC), SQD, RTS, 0, CUR | MRNR | ALT | MIG},
	{QP_TYPE(EEC), SQD, SQD, 0,
	 PORT | AV | TMO | RTY | RNR | RDA | DRDA | ALT | PKI | MRNR | MIG},

	{QP_TYPE(SMI), RESET, INIT, PKI | QKEY, 0},
	{QP_TYPE(SMI), INIT, INIT, 0, PKI | QKEY},
	{QP_TYPE(SMI), INIT, RTR, 0, PKI | QKEY},
	{QP_TYPE(SMI), RTR, RTS, SPSN, CUR | QKEY},
	{QP_TYPE(SMI), RTS, RTS, 0, CUR | QKEY},
	{QP_TYPE(SMI), RTS, SQD, 0, SQDN},
	{QP_TYPE(SMI), SQD, RTS, 0, CUR | QKEY},
	{QP_TYPE(SMI), SQD, SQD, 0, PKI | QKEY},
	{QP_TYPE(SMI), SQE, RTS, 0, CUR | QKEY},

	{QP_TYPE(RAW_PACKET), RESET, INIT, PORT, 0},
	{QP_TYPE(RAW_PACKET), INIT, INIT, 0, PORT},
	{QP_TYPE(RAW_PACKET), INIT, RTR, 0, 0},
	{QP_TYPE(RAW_PACKET), RTR, RTS, 0, CUR | RATE},
	{QP_TYPE(RAW_PACKET), RTS, RTS, 0, CUR | RATE},
	{QP_TYPE(RAW_PACKET), RTS, SQD, 0, SQDN},
	{QP_TYPE(RAW_PACKET), SQD, RTS, 0, CUR},
	{QP_TYPE(RAW_PACKET), SQE, RTS, 0, CUR},
	/* clang-format on */
};

static inline const struct row *expected(int type, int from, int to)
{
	if (type == QP_TYPE(GSI))
		type = QP_TYPE(SMI); /* the same in every respect */
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].type == type && rows[i].from == from && rows[i].to == to)
			return &rows[i];
	return NULL;
}

/* any state to RESET or ERR, but RESET to ERR; SQE only where it exists */
static inline bool is_fallback(int type, int from, int to)
{
	if (from == SQE && (type == QP_TYPE(RC) || type == QP_TYPE(XRC_INI) ||
			    type == QP_TYPE(XRC_TGT) || type == QP_TYPE(EEC)))
		return false;
	return to == RESET || (to == ERR && from != RESET);
}

/* what combinations of attributes follow from the table: all that is required, and of the others
 * only what is optional */
static inline bool allows(int type, int from, int to, int mask)
{
	const struct row *r = expected(type, from, to);

	if (!r)
		return !mask && is_fallback(type, from, to);
	return (mask & r->required) == r->required && !(mask & ~(r->required | r->optional));
}

#endif
