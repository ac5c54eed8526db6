/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The queue pair's states (IBA v1 10.3.1) and the attributes that each transition
 * by the modify verb demands or allows (11.2.4.2).
 *
 * RESET -> INIT -> RTR -> RTS is the way up; SQD pauses the send queue, SQE
 * is where an unreliable QP's send queue goes after an error; any state goes
 * to RESET or ERR, with no attribute but the state itself. A pair of states
 * without a row for the QP's type is illegal.
 */
#include "rdma/ib_verbs.h"

#define RC (1u << IB_QPT_RC)
#define UC (1u << IB_QPT_UC)
#define UD (1u << IB_QPT_UD)
#define MGMT (1u << IB_QPT_SMI | 1u << IB_QPT_GSI)
#define XINI (1u << IB_QPT_XRC_INI)
#define XTGT (1u << IB_QPT_XRC_TGT)
#define RAW (1u << IB_QPT_RAW_PACKET)
#define RD (1u << IB_QPT_RD)
#define EEC (1u << IB_QPT_EEC) /* 11.2.7.2: as an RC QP, without access rights, which QPs have */
#define CONNECTED (RC | UC | XINI | XTGT)
#define ALL_TYPES (CONNECTED | UD | MGMT | RAW | RD | EEC)

/* the attributes of a connection: the path, and the peer */
#define PEER (IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
/* what a reliable requester and a reliable responder need */
#define REQUESTER (IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC)
#define RESPONDER (IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)
/* the attributes that may change while a connection is in use */
#define RUNNING (IB_QP_CUR_STATE | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PATH_MIG_STATE)
#define RUNNING_EEC ((RUNNING & ~IB_QP_ACCESS_FLAGS) | IB_QP_MIN_RNR_TIMER)
#define PAUSED (IB_QP_AV | IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX |            \
		IB_QP_PATH_MIG_STATE)

static const struct transition {
	enum ib_qp_state from, to;
	unsigned int types;
	int required, optional;
} transitions[] = {
	/* clang-format off */
	{IB_QPS_RESET, IB_QPS_INIT, UD, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY, 0},
	{IB_QPS_RESET, IB_QPS_INIT, RAW, IB_QP_PORT, 0},
	{IB_QPS_RESET, IB_QPS_INIT, MGMT, IB_QP_PKEY_INDEX | IB_QP_QKEY, 0},
	{IB_QPS_RESET, IB_QPS_INIT, RD, IB_QP_QKEY | IB_QP_ACCESS_FLAGS, 0},
	{IB_QPS_RESET, IB_QPS_INIT, EEC, IB_QP_PKEY_INDEX | IB_QP_PORT, 0},
	{IB_QPS_RESET, IB_QPS_INIT, CONNECTED,
	 IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0},

	{IB_QPS_INIT, IB_QPS_INIT, UD, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY},
	{IB_QPS_INIT, IB_QPS_INIT, RAW, 0, IB_QP_PORT},
	{IB_QPS_INIT, IB_QPS_INIT, MGMT, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_INIT, IB_QPS_INIT, RD, 0, IB_QP_QKEY | IB_QP_ACCESS_FLAGS},
	{IB_QPS_INIT, IB_QPS_INIT, EEC, 0, IB_QP_PKEY_INDEX | IB_QP_PORT},
	{IB_QPS_INIT, IB_QPS_INIT, CONNECTED, 0,
	 IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS},

	{IB_QPS_INIT, IB_QPS_RTR, RAW, 0, 0},
	{IB_QPS_INIT, IB_QPS_RTR, UD | MGMT, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_INIT, IB_QPS_RTR, RD, 0, IB_QP_QKEY | IB_QP_ACCESS_FLAGS},
	{IB_QPS_INIT, IB_QPS_RTR, EEC, PEER | RESPONDER, IB_QP_ALT_PATH | IB_QP_PKEY_INDEX},
	{IB_QPS_INIT, IB_QPS_RTR, UC | XINI, PEER,
	 IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
	{IB_QPS_INIT, IB_QPS_RTR, RC | XTGT, PEER | RESPONDER,
	 IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},

	{IB_QPS_RTR, IB_QPS_RTS, RAW, 0, IB_QP_CUR_STATE | IB_QP_RATE_LIMIT},
	{IB_QPS_RTR, IB_QPS_RTS, UD | MGMT, IB_QP_SQ_PSN, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_RTR, IB_QPS_RTS, RD, 0, IB_QP_CUR_STATE | IB_QP_QKEY | IB_QP_ACCESS_FLAGS},
	{IB_QPS_RTR, IB_QPS_RTS, EEC, IB_QP_SQ_PSN | REQUESTER, RUNNING_EEC},
	{IB_QPS_RTR, IB_QPS_RTS, UC, IB_QP_SQ_PSN, RUNNING},
	{IB_QPS_RTR, IB_QPS_RTS, XINI, IB_QP_SQ_PSN | REQUESTER, RUNNING},
	{IB_QPS_RTR, IB_QPS_RTS, RC, IB_QP_SQ_PSN | REQUESTER, RUNNING | IB_QP_MIN_RNR_TIMER},
	{IB_QPS_RTR, IB_QPS_RTS, XTGT, IB_QP_SQ_PSN | IB_QP_TIMEOUT,
	 RUNNING | IB_QP_MIN_RNR_TIMER},

	{IB_QPS_RTS, IB_QPS_RTS, RAW, 0, IB_QP_CUR_STATE | IB_QP_RATE_LIMIT},
	{IB_QPS_RTS, IB_QPS_RTS, UD | MGMT, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_RTS, IB_QPS_RTS, RD, 0, IB_QP_CUR_STATE | IB_QP_QKEY | IB_QP_ACCESS_FLAGS},
	{IB_QPS_RTS, IB_QPS_RTS, EEC, 0, RUNNING_EEC},
	{IB_QPS_RTS, IB_QPS_RTS, UC | XINI, 0, RUNNING},
	{IB_QPS_RTS, IB_QPS_RTS, RC | XTGT, 0, RUNNING | IB_QP_MIN_RNR_TIMER},

	{IB_QPS_RTS, IB_QPS_SQD, ALL_TYPES, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},

	{IB_QPS_SQD, IB_QPS_RTS, RAW, 0, IB_QP_CUR_STATE},
	{IB_QPS_SQD, IB_QPS_RTS, UD | MGMT, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_SQD, IB_QPS_RTS, RD, 0, IB_QP_CUR_STATE | IB_QP_QKEY | IB_QP_ACCESS_FLAGS},
	{IB_QPS_SQD, IB_QPS_RTS, EEC, 0, RUNNING_EEC},
	{IB_QPS_SQD, IB_QPS_RTS, UC | XINI, 0, RUNNING},
	{IB_QPS_SQD, IB_QPS_RTS, RC | XTGT, 0, RUNNING | IB_QP_MIN_RNR_TIMER},

	{IB_QPS_SQD, IB_QPS_SQD, UD | MGMT, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_SQD, IB_QPS_SQD, RD, 0, IB_QP_QKEY | IB_QP_ACCESS_FLAGS},
	{IB_QPS_SQD, IB_QPS_SQD, EEC, 0,
	 (PAUSED & ~IB_QP_ACCESS_FLAGS) | IB_QP_PORT | REQUESTER | RESPONDER},
	{IB_QPS_SQD, IB_QPS_SQD, UC, 0, PAUSED},
	{IB_QPS_SQD, IB_QPS_SQD, RC, 0, PAUSED | IB_QP_PORT | REQUESTER | RESPONDER},
	{IB_QPS_SQD, IB_QPS_SQD, XINI, 0, PAUSED | IB_QP_PORT | REQUESTER},
	{IB_QPS_SQD, IB_QPS_SQD, XTGT, 0, PAUSED | IB_QP_PORT | IB_QP_TIMEOUT | RESPONDER},

	/* reliable QPs have no SQE: their errors lead to ERR (10.3.1.6) */
	{IB_QPS_SQE, IB_QPS_RTS, RAW, 0, IB_QP_CUR_STATE},
	{IB_QPS_SQE, IB_QPS_RTS, UD | MGMT, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_SQE, IB_QPS_RTS, RD, 0, IB_QP_CUR_STATE | IB_QP_QKEY | IB_QP_ACCESS_FLAGS},
	{IB_QPS_SQE, IB_QPS_RTS, UC, 0, IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS},
	/* clang-format on */
};

/* 10.3.1: "any state" edges; the state is their only attribute. From RESET
 * the modify verb leads nowhere but to INIT. */
static bool is_fallback(enum ib_qp_state from, enum ib_qp_state to, unsigned int type)
{
	if (!(ALL_TYPES & 1u << type) || from > IB_QPS_ERR)
		return false;
	if (from == IB_QPS_SQE && !((UC | UD | MGMT | RAW | RD) & 1u << type))
		return false;
	return to == IB_QPS_RESET || (to == IB_QPS_ERR && from != IB_QPS_RESET);
}

/* the states that a consumer may name as the current one (11.2.4.2) */
static bool cur_state_ok(enum ib_qp_state cur)
{
	return cur == IB_QPS_RTR || cur == IB_QPS_RTS || cur == IB_QPS_SQD || cur == IB_QPS_SQE;
}

bool ib_modify_qp_is_ok(enum ib_qp_state cur, enum ib_qp_state next, enum ib_qp_type type,
			int mask)
{
	if (type >= IB_QPT_MAX)
		return false;
	if ((mask & IB_QP_CUR_STATE) && !cur_state_ok(cur))
		return false;
	mask &= ~IB_QP_STATE;
	if (is_fallback(cur, next, type))
		return mask == 0;
	for (size_t i = 0; i < ARRAY_SIZE(transitions); i++) {
		const struct transition *t = &transitions[i];

		if (t->from == cur && t->to == next && t->types & 1u << type)
			return (mask & t->required) == t->required &&
			       !(mask & ~(t->required | t->optional));
	}
	return false;
}
