/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A real fabric of two nodes: programs on each, whose ends of softibd's sockets are the
 * test's. An initiator on n1 and a target on n2 are connected, a stranger is on n2.
 */
#ifndef TEST_HCA_TWO_NODES_H
#define TEST_HCA_TWO_NODES_H

#include "../test.h"

#include <fcntl.h>
#include <unistd.h>

#include "../../fuzz/pair.h"
#include "abi/session.h"
#include "core/uobject.h"
#include "hca/private.h"
#include "rdma/ib_mad.h"

#define PAGE 4096u
#define REGION_BYTES (4 * PAGE)
#define ALL_RIGHTS                                                                             \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |              \
	 IB_ACCESS_REMOTE_ATOMIC)

/** struct program - with a QP that leads to its peer's */
struct program {
	struct ib_ucontext *context;
	struct ib_pd *pd, *other_pd;
	struct ib_qp *qp;
	struct ib_mr *mr, *readable, *foreign; /* @foreign: of the other PD */
};

struct world {
	struct rt *rt;
	struct topology *topo;
	struct fabric *fab;
	struct hca_set *adapters;
	struct hca *hca[2];
	struct program initiator, target, stranger; /* on n1, n2, n2 */
};

/* --- programs --- */

static inline struct ib_pd *make_pd(struct program *p)
{
	struct ib_uobject *u = ib_uobject_alloc(p->context, IB_UOBJECT_PD);
	struct ib_pd *pd = ib_alloc_pd_user(u);

	assert_false(IS_ERR(pd));
	ib_uobject_commit(u, pd);
	return pd;
}

static inline struct ib_mr *make_mr(struct program *p, struct ib_pd *pd, uint64_t at, int rights)
{
	struct ib_uobject *u = ib_uobject_alloc(p->context, IB_UOBJECT_MR);
	struct ib_mr *mr = ib_reg_user_mr(u, pd, at, REGION_BYTES, at, rights);

	assert_false(IS_ERR(mr));
	ib_uobject_commit(u, mr);
	return mr;
}

static inline void make_unsealed_program(struct program *p, struct hca *hca)
{
	struct ib_qp_init_attr attr = {.qp_type = IB_QPT_RC, .cap = {8, 8, 1, 1, 0}};
	struct ib_uobject *u;

	p->context = ib_ucontext_open(&hca->ib, 1, "test");
	assert_false(IS_ERR(p->context));
	p->pd = make_pd(p);
	p->other_pd = make_pd(p);
	u = ib_uobject_alloc(p->context, IB_UOBJECT_CQ);
	attr.send_cq = attr.recv_cq = ib_create_cq_user(u, &(struct ib_cq_init_attr){.cqe = 8});
	ib_uobject_commit(u, attr.send_cq);
	u = ib_uobject_alloc(p->context, IB_UOBJECT_QP);
	p->qp = ib_create_qp_user(u, p->pd, &attr);
	assert_false(IS_ERR(p->qp));
	ib_uobject_commit(u, p->qp);
	p->mr = make_mr(p, p->pd, 0x100000, ALL_RIGHTS);
	p->readable = make_mr(p, p->pd, 0x200000, IB_ACCESS_REMOTE_READ);
	p->foreign = make_mr(p, p->other_pd, 0x300000, ALL_RIGHTS);
}

static inline void make_program(struct program *p, struct hca *hca)
{
	make_unsealed_program(p, hca);
	assert_int_equal(fcntl(p->context->driver_fds[ABI_FD_WINDOW_PAGE], F_ADD_SEALS,
			       F_SEAL_FUTURE_WRITE), 0);
}

static inline void connect_qp(struct program *p, const struct program *peer, uint16_t dlid)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1, .path_mtu = IB_MTU_1024,
		.qp_access_flags = ALL_RIGHTS, .dest_qp_num = peer->qp->qp_num,
		.ah_attr = {.dlid = dlid, .port_num = 1}, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 4, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};

	assert_int_equal(ib_modify_qp(p->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
					      IB_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IB_QPS_RTR;
	assert_int_equal(ib_modify_qp(p->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
					      IB_QP_DEST_QPN | IB_QP_RQ_PSN |
					      IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER), 0);
	attr.qp_state = IB_QPS_RTS;
	assert_int_equal(ib_modify_qp(p->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
					      IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
					      IB_QP_MAX_QP_RD_ATOMIC), 0);
}

/* --- the world --- */

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char err[256];

	if (rt_posix_create(&w->rt) || topo_load("pair", "t", &w->topo, err, sizeof(err)) ||
	    fab_create(w->rt, w->topo, &w->fab) || ib_mad_init(w->rt) ||
	    hca_set_create(w->rt, w->fab, &w->adapters))
		return -1;
	pair_configure(w->fab);
	for (int i = 0; i < 2; i++)
		if (hca_create(w->adapters, topo_find(w->topo, i ? "n2" : "n1"), &w->hca[i]))
			return -1;
	make_program(&w->initiator, w->hca[0]);
	make_program(&w->target, w->hca[1]);
	make_program(&w->stranger, w->hca[1]);
	connect_qp(&w->initiator, &w->target, 2);
	connect_qp(&w->target, &w->initiator, 1);
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	ib_ucontext_close(w->initiator.context);
	ib_ucontext_close(w->target.context);
	ib_ucontext_close(w->stranger.context);
	for (int i = 0; i < 2; i++)
		hca_destroy(w->hca[i]);
	hca_set_destroy(w->adapters);
	ib_mad_cleanup(w->rt);
	fab_destroy(w->fab);
	topo_free(w->topo);
	rt_posix_destroy(w->rt);
	free(w);
	return 0;
}

#endif
