/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tries ibv_modify_qp() with many combinations of attributes, in each state of a QP of each type
 * and to each state, and compares with the specification's table. Of each pair of states: what is
 * required, each of it left out, each other attribute added, random combinations, and a current
 * state that is not the QP's; and for RC, each attribute with a value that it may not have. What is refused must change nothing, which ibv_query_qp() says, and
 * the next legal transition must be possible.
 *
 * Prints each answer that is not the table's, and then how many were tried.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fixture.h"

/* Types that programs do not have need numbers, too: the table has their rows. */
enum { OF_RD = 100, OF_EEC, OF_SMI, OF_GSI };
#define TYPE_RC		IBV_QPT_RC
#define TYPE_UC		IBV_QPT_UC
#define TYPE_UD		IBV_QPT_UD
#define TYPE_XRC_INI	IBV_QPT_XRC_SEND
#define TYPE_XRC_TGT	IBV_QPT_XRC_RECV
#define TYPE_RAW_PACKET IBV_QPT_RAW_PACKET
#define TYPE_RD		OF_RD
#define TYPE_EEC	OF_EEC
#define TYPE_SMI	OF_SMI
#define TYPE_GSI	OF_GSI
#define QP_ATTR(name)	IBV_QP_##name
#define QP_TYPE(name)	((int)TYPE_##name)
#include "../qp_transitions.h"

enum { RANDOM_MASKS = 100, MOST_PRINTED = 40 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_xrcd *xrcd;
static struct ibv_ah_attr to_self;
static unsigned tried, allowed, wrong;

static struct ibv_qp *make_qp(int type)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = (enum ibv_qp_type)type, .send_cq = cq, .recv_cq = cq, .pd = pd,
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
		.sq_sig_all = 1, .comp_mask = IBV_QP_INIT_ATTR_PD};
	struct ibv_qp *qp;

	if (type == IBV_QPT_XRC_SEND)
		init.recv_cq = NULL, init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	if (type == IBV_QPT_XRC_RECV)
		init = (struct ibv_qp_init_attr_ex){.qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd,
						    .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	qp = ibv_create_qp_ex(context, &init);
	CHECK(qp);
	return qp;
}

/* every attribute with a value that is allowed where the attribute is */
static struct ibv_qp_attr sound(const struct ibv_qp *qp, int from, int to)
{
	return (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)to, .cur_qp_state = (enum ibv_qp_state)from,
		.path_mtu = IBV_MTU_512, .path_mig_state = IBV_MIG_MIGRATED, .qkey = 0x1234,
		.rq_psn = 1, .sq_psn = 1, .dest_qp_num = qp->qp_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .ah_attr = to_self, .alt_ah_attr = to_self,
		.max_rd_atomic = 1, .max_dest_rd_atomic = 1, .min_rnr_timer = 1, .port_num = 1,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .alt_port_num = 1, .alt_timeout = 14,
		.rate_limit = 1000};
}

static int change(struct ibv_qp *qp, int from, int to, int mask)
{
	struct ibv_qp_attr attr = sound(qp, from, to);

	return ibv_modify_qp(qp, &attr, mask);
}

static int state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	return (int)attr.qp_state;
}

/* by a request with a key that does not exist, which ends in the state SQE */
static void spoil(struct ibv_qp *qp)
{
	struct ibv_ah *ah = ibv_create_ah(pd, &to_self);
	struct ibv_sge sge = {(uintptr_t)&wrong, 8, 0x7fffff00};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_wc wc;
	int n = 0;

	CHECK(ah);
	if (qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
	}
	CHECK(!ibv_post_send(qp, &wr, &bad));
	while (!n)
		n = ibv_poll_cq(cq, 1, &wc);
	CHECK(n == 1 && wc.status == IBV_WC_LOC_PROT_ERR && !ibv_destroy_ah(ah));
}

/* from RESET by what is required to @state */
static void raise(struct ibv_qp *qp, int state)
{
	static const int ways[STATES][4] = {
		[INIT] = {INIT}, [RTR] = {INIT, RTR}, [RTS] = {INIT, RTR, RTS},
		[SQD] = {INIT, RTR, RTS, SQD}, [SQE] = {INIT, RTR, RTS}, [ERR] = {INIT, ERR}};
	int at = RESET;

	CHECK(!change(qp, state_of(qp), RESET, IBV_QP_STATE));
	for (const int *to = ways[state]; to < ways[state] + 4 && *to; at = *to++) {
		const struct row *r = expected(qp->qp_type, at, *to);

		CHECK(!change(qp, at, *to, IBV_QP_STATE | (r ? r->required : 0)));
	}
	if (state == SQE)
		spoil(qp);
	CHECK(state_of(qp) == state);
}

static void complain(const struct ibv_qp *qp, int from, int to, int mask, int got, bool may)
{
	if (++wrong <= MOST_PRINTED)
		printf("type %d, %d to %d, mask 0x%x: %d, may be: %d\n", qp->qp_type, from, to, mask, got,
		       may);
}

/* Linux' uverbs drops what the half of an XRC connection does not have, since programs treat both
 * halves as RC QPs. */
static int dropped(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_XRC_SEND ?
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER :
	       qp->qp_type == IBV_QPT_XRC_RECV ?
		       IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY :
		       0;
}

static bool may_be(const struct ibv_qp *qp, int from, int to, int mask)
{
	return allows(qp->qp_type, from, to, mask & ~dropped(qp));
}

/* A rate limit is for raw packet QPs alone, others say so. */
static bool is_refusal(int got, int mask)
{
	return got == EINVAL || (mask & IBV_QP_RATE_LIMIT && got == EOPNOTSUPP);
}

/* @mask without IBV_QP_STATE. The QP is in @from, before and after. */
static void try(struct ibv_qp *qp, int from, int to, int mask)
{
	bool may = may_be(qp, from, to, mask);
	int got = change(qp, from, to, mask | IBV_QP_STATE);

	tried++;
	allowed += may;
	if ((may ? got != 0 : !is_refusal(got, mask)) || state_of(qp) != (may ? to : from))
		complain(qp, from, to, mask, got, may);
	if (!got)
		raise(qp, from);
}

/* Without IBV_QP_STATE the QP stays where it is. */
static void try_without_state(struct ibv_qp *qp, int state, int mask)
{
	bool may = may_be(qp, state, state, mask);
	int got = change(qp, state, RESET, mask);

	tried++;
	if ((may ? got != 0 : !is_refusal(got, mask)) || state_of(qp) != state)
		complain(qp, state, state, mask, got, may);
	if (!got)
		raise(qp, state);
}

/* The current state is claimed to be another one. Of SQE it may be said to be RTS, since a program
 * cannot know (11.2.4.2). What is refused leaves the way free for the next transition. */
static void try_claims(struct ibv_qp *qp, int from)
{
	static const int next[STATES] = {INIT, RTR, RTS, SQD, RTS, RTS, RESET};
	const struct row *way = expected(qp->qp_type, from, next[from]);

	for (int claimed = RESET; claimed < STATES; claimed++) {
		struct ibv_qp_attr attr = sound(qp, claimed, RTS);
		const struct row *r = expected(qp->qp_type, claimed, RTS);
		int mask = IBV_QP_STATE | IBV_QP_CUR_STATE | (r ? r->required : 0), got;
		bool may = r && r->optional & IBV_QP_CUR_STATE &&
			   (claimed == from || (claimed == RTS && from == SQE));

		got = ibv_modify_qp(qp, &attr, mask);
		tried++;
		if ((may ? got : got != EINVAL) || state_of(qp) != (may ? RTS : from)) {
			printf("claims %d: ", claimed);
			complain(qp, from, RTS, mask, got, may);
		}
		if (got)
			try(qp, from, next[from], way ? way->required : 0);
		else
			raise(qp, from);
	}
}

static uint32_t random32(void)
{
	static uint64_t x = 1;

	x = x * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(x >> 32);
}

static void try_pair(struct ibv_qp *qp, int from, int to)
{
	const struct row *r = expected(qp->qp_type, from, to);
	int required = r ? r->required : 0, optional = r ? r->optional : 0;

	try(qp, from, to, required);
	try(qp, from, to, required | optional);
	for (int bit = 1; bit < BITS; bit++) {
		try(qp, from, to, required ^ 1 << bit);
		if (from == to)
			try_without_state(qp, from, required ^ 1 << bit);
	}
	for (int i = 0; i < RANDOM_MASKS; i++) {
		int mask = (int)random32() & ((1 << BITS) - 1) & ~IBV_QP_STATE;

		if (i % 2)
			mask = (mask & optional) | required;
		try(qp, from, to, mask);
	}
}

static void try_type(int type)
{
	struct ibv_qp *qp = make_qp(type);

	for (int from = RESET; from < STATES; from++) {
		if (from == SQE && type != IBV_QPT_UC && type != IBV_QPT_UD)
			continue;
		raise(qp, from);
		for (int to = RESET; to < STATES; to++)
			try_pair(qp, from, to);
		try_claims(qp, from);
	}
	CHECK(!ibv_destroy_qp(qp));
}

/* @attr, one of whose values may not be, on a legal transition; and then without it */
static void refuse(struct ibv_qp *qp, int from, int to, const char *value, struct ibv_qp_attr attr,
		   int mask)
{
	int got;

	raise(qp, from);
	mask |= expected(IBV_QPT_RC, from, to)->required | IBV_QP_STATE;
	got = ibv_modify_qp(qp, &attr, mask);
	tried++;
	if (got != EINVAL || state_of(qp) != from || change(qp, from, to, mask)) {
		wrong++;
		printf("%d to %d with %s: %d\n", from, to, value, got);
	}
}

#define REFUSE(from, to, mask, field, value)                                              \
	do {                                                                              \
		struct ibv_qp_attr attr = sound(qp, from, to);                            \
		attr.field = value;                                                       \
		refuse(qp, from, to, #field " " #value, attr, mask);                      \
	} while (0)

/* An alternate path, and what is no such. */
static void try_alternate_paths(struct ibv_qp *qp)
{
	REFUSE(INIT, RTR, IBV_QP_ALT_PATH, alt_port_num, 0);
	REFUSE(INIT, RTR, IBV_QP_ALT_PATH, alt_port_num, 9);
	REFUSE(INIT, RTR, IBV_QP_ALT_PATH, alt_pkey_index, 0xffff);
	REFUSE(INIT, RTR, IBV_QP_ALT_PATH, alt_timeout, 32);
	REFUSE(INIT, RTR, IBV_QP_ALT_PATH, alt_ah_attr.sl, 16);
	REFUSE(RTR, RTS, IBV_QP_PATH_MIG_STATE, path_mig_state, (enum ibv_mig_state)3);
	REFUSE(RTR, RTS, IBV_QP_PATH_MIG_STATE, path_mig_state, IBV_MIG_REARM); /* no path */
}

static void try_values(void)
{
	const struct ibv_ah_attr no_such_gid = {.is_global = 1, .port_num = 1, .grh.sgid_index = 255};
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);

	REFUSE(RESET, INIT, 0, qp_state, (enum ibv_qp_state)7);
	REFUSE(RESET, INIT, 0, qp_state, (enum ibv_qp_state)256);
	REFUSE(RESET, INIT, 0, port_num, 0);
	REFUSE(RESET, INIT, 0, port_num, 9);
	REFUSE(RESET, INIT, 0, pkey_index, 0xffff);
	REFUSE(INIT, RTR, 0, path_mtu, (enum ibv_mtu)0);
	REFUSE(INIT, RTR, 0, path_mtu, (enum ibv_mtu)6);
	REFUSE(INIT, RTR, 0, dest_qp_num, 1u << 24);
	REFUSE(INIT, RTR, 0, max_dest_rd_atomic, 255);
	REFUSE(INIT, RTR, 0, min_rnr_timer, 32);
	REFUSE(INIT, RTR, 0, ah_attr.port_num, 9);
	REFUSE(INIT, RTR, 0, ah_attr.sl, 16);
	REFUSE(INIT, RTR, 0, ah_attr, no_such_gid);
	REFUSE(INIT, RTR, IBV_QP_PKEY_INDEX, pkey_index, 0xffff);
	REFUSE(RTR, RTS, 0, timeout, 32);
	REFUSE(RTR, RTS, 0, retry_cnt, 8);
	REFUSE(RTR, RTS, 0, rnr_retry, 8);
	REFUSE(RTR, RTS, 0, max_rd_atomic, 255);
	try_alternate_paths(qp);
	CHECK(!ibv_destroy_qp(qp));
}

int main(void)
{
	struct ibv_xrcd_init_attr of_xrcd = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1, .oflags = O_CREAT};
	struct ibv_port_attr port;
	bool is_ethernet;

	context = open_first_device();
	CHECK(!ibv_query_port(context, 1, &port));
	is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	to_self = (struct ibv_ah_attr){.dlid = port.lid, .port_num = 1, .is_global = is_ethernet,
				       .grh.hop_limit = 1};
	CHECK(!ibv_query_gid(context, 1, 0, &to_self.grh.dgid));
	CHECK((pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 16, NULL, NULL, 0)) &&
	      (xrcd = ibv_open_xrcd(context, &of_xrcd)));
	for (int type = IBV_QPT_RC; type <= IBV_QPT_UD; type++)
		try_type(type);
	try_type(IBV_QPT_XRC_SEND);
	try_type(IBV_QPT_XRC_RECV);
	if (is_ethernet)
		try_type(IBV_QPT_RAW_PACKET);
	try_values();
	printf("%u tried, %u of them allowed, %u answered wrongly\n", tried, allowed, wrong);
	return wrong != 0;
}
