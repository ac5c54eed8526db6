/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects: limits, references, tracking, and what modify remembers. */
#include "../test.h"

#include "core/private.h"
#include "fake_device.h"
#include "runtime/sim/rt_sim.h"

struct world {
	struct rt *rt;
	struct fake *fake;
	struct ib_pd *pd;
	struct ib_cq *cq;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct ib_cq_init_attr attr = {.cqe = 16};

	if (rt_sim_create(1, &w->rt))
		return -1;
	w->fake = fake_create(w->rt, "n1");
	if (ib_register_device(&w->fake->ib, "softib0"))
		return -1;
	w->pd = ib_alloc_pd(&w->fake->ib, 0);
	w->cq = ib_create_cq(&w->fake->ib, NULL, NULL, NULL, &attr);
	*state = w;
	return IS_ERR(w->pd) || IS_ERR(w->cq) ? -1 : 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	int left;

	if (ib_destroy_cq(w->cq) || ib_dealloc_pd(w->pd))
		return -1;
	left = fake_end(w->fake);
	rt_sim_destroy(w->rt);
	free(w);
	return left ? -1 : 0;
}

static struct ib_qp *make_qp(struct world *w, enum ib_qp_type type)
{
	struct ib_qp_init_attr attr = {
		.send_cq = w->cq, .recv_cq = w->cq, .qp_type = type, .port_num = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

	return ib_create_qp(w->pd, &attr);
}

/* A16: RoCE has no LIDs, and every packet a GRH; the GID leads to a station */
static void paths_of_roce(void **state)
{
	struct rdma_ah_attr attr = {.port_num = 1, .grh.dgid.raw = {0xfe, 0x80, [15] = 9}};
	struct ib_event event;
	struct world *w = *state;
	struct ib_qp_attr to = {.ah_attr = attr};
	struct ib_ah *ah;
	struct ib_qp *qp;

	w->fake->port.link_layer = IB_LINK_LAYER_ETHERNET;
	event = (struct ib_event){.device = &w->fake->ib, .element.port_num = 1,
				  .event = IB_EVENT_PORT_ACTIVE};
	ib_dispatch_event(&event);
	rt_sim_run(w->rt, 10);
	assert_int_equal(PTR_ERR(rdma_create_ah(w->pd, &attr, 0)), -EINVAL);
	attr.ah_flags = IB_AH_GRH;
	ah = rdma_create_ah(w->pd, &attr, 0);
	assert_false(IS_ERR(ah));
	assert_int_equal(rdma_destroy_ah(ah, 0), 0);
	attr.grh.dgid.raw[0] = 0x20;
	assert_int_equal(PTR_ERR(rdma_create_ah(w->pd, &attr, 0)), -EHOSTUNREACH);

	qp = make_qp(w, IB_QPT_UC);
	to.qp_state = IB_QPS_INIT;
	assert_int_equal(ib_modify_qp(qp, &to, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
						       IB_QP_ACCESS_FLAGS), -EINVAL);
	to.port_num = 1;
	assert_int_equal(ib_modify_qp(qp, &to, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
						       IB_QP_ACCESS_FLAGS), 0);
	to.qp_state = IB_QPS_RTR;
	to.path_mtu = IB_MTU_1024;
	assert_int_equal(ib_modify_qp(qp, &to, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
						       IB_QP_DEST_QPN | IB_QP_RQ_PSN), -EINVAL);
	to.ah_attr.ah_flags = IB_AH_GRH;
	assert_int_equal(ib_modify_qp(qp, &to, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
						       IB_QP_DEST_QPN | IB_QP_RQ_PSN), 0);
	assert_int_equal(to.ah_attr.dlid, 9);
	assert_int_equal(ib_destroy_qp(qp), 0);
}

static void what_is_used_is_busy(void **state)
{
	struct world *w = *state;
	struct ib_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ib_srq *srq = ib_create_srq(w->pd, &srq_attr);
	struct ib_qp_init_attr attr = {.send_cq = w->cq, .recv_cq = w->cq, .srq = srq,
				       .qp_type = IB_QPT_RC};
	struct ib_qp *qp = ib_create_qp(w->pd, &attr);

	assert_false(IS_ERR(srq) || IS_ERR(qp));
	assert_int_equal(ib_destroy_cq(w->cq), -EBUSY);
	assert_int_equal(ib_destroy_srq(srq), -EBUSY);
	assert_int_equal(ib_dealloc_pd(w->pd), -EBUSY);
	assert_int_equal(ib_destroy_qp(qp), 0);
	assert_int_equal(ib_dealloc_pd(w->pd), -EBUSY); /* the SRQ is in it */
	assert_int_equal(ib_destroy_srq(srq), 0);
}

/* RD QPs and EE contexts are in one RD domain, which programs do not have. */
static void domains_of_reliable_datagrams(void **state)
{
	struct world *w = *state;
	struct ib_qp_init_attr attr = {.send_cq = w->cq, .recv_cq = w->cq, .qp_type = IB_QPT_RD};
	struct ib_rdd *rdd = ib_alloc_rdd(&w->fake->ib), *other = ib_alloc_rdd(&w->fake->ib);
	struct ib_qp_attr to = {.qp_state = IB_QPS_INIT, .port_num = 1};
	struct ib_eec *eec = ib_create_eec(rdd, NULL, NULL);
	struct ib_qp *qp;

	assert_false(IS_ERR(rdd) || IS_ERR(other) || IS_ERR(eec));
	assert_int_not_equal(rdd->number, other->number);
	assert_int_equal(ib_dealloc_rdd(other), 0);
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &attr)), -EINVAL);
	attr.rdd = rdd;
	qp = ib_create_qp(w->pd, &attr);
	assert_false(IS_ERR(qp));
	attr.qp_type = IB_QPT_RC;
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &attr)), -EINVAL);
	/* access rights are the RD QP's, the port is the EE context's */
	assert_int_equal(ib_modify_eec(eec, &to, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX |
							 IB_QP_ACCESS_FLAGS),
			 -EINVAL);
	assert_int_equal(ib_modify_eec(eec, &to, IB_QP_STATE | IB_QP_PORT | IB_QP_PKEY_INDEX), 0);
	assert_int_equal(ib_query_eec(eec, &to, 0), 0);
	assert_int_equal(to.qp_state, IB_QPS_INIT);
	assert_int_equal(ib_destroy_qp(qp), 0);
	assert_int_equal(ib_dealloc_rdd(rdd), -EBUSY);
	ib_destroy_eec(eec);
	assert_int_equal(ib_dealloc_rdd(rdd), 0);
	w->fake->ib.attrs.qp_types = 1u << IB_QPT_RC;
	assert_int_equal(PTR_ERR(ib_alloc_rdd(&w->fake->ib)), -EOPNOTSUPP);
}

/* A client's XRC domain is its own; an SRQ of it has a CQ, and no QP but a target uses it. */
static void domains_of_extended_connections(void **state)
{
	struct world *w = *state;
	struct fake *other = fake_create(w->rt, "n2");
	struct ib_xrcd *xrcd = ib_alloc_xrcd(&w->fake->ib), *second = ib_alloc_xrcd(&w->fake->ib);
	struct ib_srq_init_attr of_srq = {.attr = {.max_wr = 1, .max_sge = 1}, .xrcd = xrcd};
	struct ib_qp_init_attr target = {.qp_type = IB_QPT_XRC_TGT, .xrcd = xrcd};
	struct ib_qp_init_attr plain = {.send_cq = w->cq, .recv_cq = w->cq, .qp_type = IB_QPT_RC};
	struct ib_qp *qp;
	struct ib_srq *srq;

	assert_int_equal(ib_register_device(&other->ib, "softib0"), 0);
	assert_false(IS_ERR(xrcd) || IS_ERR(second));
	assert_int_not_equal(xrcd->domain->number, second->domain->number);
	assert_false(xrcd->domain->is_shared);
	assert_int_equal(ib_dealloc_xrcd(second), 0);
	assert_int_equal(PTR_ERR(ib_create_srq(w->pd, &of_srq)), -EINVAL);
	of_srq.cq = w->cq;
	srq = ib_create_srq(w->pd, &of_srq);
	assert_false(IS_ERR(srq));
	plain.srq = srq;
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &plain)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &target)), -EINVAL);
	qp = ib_create_qp(NULL, &target);
	assert_false(IS_ERR(qp));
	assert_int_equal(ib_dealloc_xrcd(xrcd), -EBUSY);
	assert_int_equal(ib_destroy_cq(w->cq), -EBUSY);
	assert_int_equal(ib_destroy_qp(qp), 0);
	assert_int_equal(ib_destroy_srq(srq), 0);
	assert_int_equal(ib_dealloc_xrcd(xrcd), 0);
	of_srq.xrcd = ib_alloc_xrcd(&other->ib);
	assert_int_equal(PTR_ERR(ib_create_srq(w->pd, &of_srq)), -EINVAL); /* another device's */
	assert_int_equal(ib_dealloc_xrcd(of_srq.xrcd), 0);
	other->ib.attrs.device_cap_flags = 0;
	assert_int_equal(PTR_ERR(ib_alloc_xrcd(&other->ib)), -EOPNOTSUPP);
	assert_int_equal(fake_end(other), 0);
}

static void limits_of_the_device_hold(void **state)
{
	struct world *w = *state;
	struct ib_cq_init_attr none = {.cqe = 0}, many = {.cqe = 1001};
	struct ib_qp_init_attr attr = {.send_cq = w->cq, .recv_cq = w->cq, .qp_type = IB_QPT_RC,
				       .cap = {.max_send_wr = 129}};

	assert_int_equal(PTR_ERR(ib_create_cq(&w->fake->ib, NULL, NULL, NULL, &none)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_create_cq(&w->fake->ib, NULL, NULL, NULL, &many)), -EINVAL);
	assert_int_equal(ib_resize_cq(w->cq, 1001), -EINVAL);
	assert_int_equal(ib_resize_cq(w->cq, 1000), 0);
	assert_int_equal(w->cq->cqe, 1000);
	assert_int_equal(rdma_set_cq_moderation(w->cq, 7, 9), -EOPNOTSUPP);
	w->fake->ib.attrs.cq_caps.max_cq_moderation_count = 7;
	w->fake->ib.attrs.cq_caps.max_cq_moderation_period = 9;
	assert_int_equal(rdma_set_cq_moderation(w->cq, 8, 9), -EINVAL);
	assert_int_equal(rdma_set_cq_moderation(w->cq, 7, 10), -EINVAL);
	assert_int_equal(rdma_set_cq_moderation(w->cq, 7, 9), 0);
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &attr)), -EINVAL);
	attr.cap = (struct ib_qp_cap){.max_recv_sge = 5};
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &attr)), -EINVAL);
	attr.cap = (struct ib_qp_cap){0};
	attr.send_cq = NULL;
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &attr)), -EINVAL);
	attr.send_cq = w->cq;
	attr.qp_type = IB_QPT_GSI;
	attr.port_num = 3;
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &attr)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_get_dma_mr(w->pd, IB_ACCESS_REMOTE_WRITE)), -EINVAL);
}

/* An adapter that has fewer transports and capabilities says so, and does not have them. */
static void what_the_device_lacks_is_refused(void **state)
{
	struct world *w = *state;
	struct ib_device_attr *attrs = &w->fake->ib.attrs;
	struct ib_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ib_qp_init_attr init = {.send_cq = w->cq, .recv_cq = w->cq, .qp_type = IB_QPT_RC};
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = 1,
				  .qp_access_flags = IB_ACCESS_REMOTE_ATOMIC};
	const int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	struct ib_srq *srq = ib_create_srq(w->pd, &srq_attr);
	struct ib_qp *qp;

	attrs->max_inline_data = 64;
	attrs->max_inline_data_ud = 32;
	init.cap.max_inline_data = 65;
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &init)), -EINVAL);
	init.cap.max_inline_data = 64;
	qp = ib_create_qp(w->pd, &init);
	assert_false(IS_ERR(srq) || IS_ERR(qp));
	init.qp_type = IB_QPT_UD;
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &init)), -EINVAL);
	init.cap.max_inline_data = 0;
	attrs->qp_types = 1 << IB_QPT_RC;
	assert_int_equal(PTR_ERR(ib_create_qp(w->pd, &init)), -EOPNOTSUPP);
	attrs->max_mr_size = 4096;
	assert_int_equal(core_mr_check(&w->fake->ib, 0x1000, 4096, 0x1000, 0), 0);
	assert_int_equal(core_mr_check(&w->fake->ib, 0x1000, 4097, 0x1000, 0), -EINVAL);
	attrs->atomic_cap = IB_ATOMIC_NONE;
	assert_int_equal(core_mr_check(&w->fake->ib, 0x1000, 8, 0x1000,
				       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC),
			 -EOPNOTSUPP);
	assert_int_equal(ib_modify_qp(qp, &attr, mask), -EOPNOTSUPP);
	attr.qp_access_flags = 0;
	assert_int_equal(ib_modify_qp(qp, &attr, mask), 0);
	attrs->device_cap_flags = 0;
	assert_int_equal(ib_modify_srq(srq, &srq_attr.attr, IB_SRQ_MAX_WR), -EINVAL);
	assert_int_equal(ib_modify_srq(srq, &srq_attr.attr, IB_SRQ_LIMIT), 0);
	assert_int_equal(ib_destroy_qp(qp), 0);
	assert_int_equal(ib_destroy_srq(srq), 0);
	attrs->max_srq = 0;
	assert_int_equal(PTR_ERR(ib_create_srq(w->pd, &srq_attr)), -EOPNOTSUPP);
}

static void modify_checks_then_remembers(void **state)
{
	struct world *w = *state;
	struct ib_qp *qp = make_qp(w, IB_QPT_RC);
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = 3, .pkey_index = 1};
	struct ib_qp_init_attr init;
	const int mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;

	assert_int_equal(ib_modify_qp(qp, &attr, mask), -EINVAL); /* no port 3 */
	attr.port_num = 2;
	attr.pkey_index = FAKE_PKEYS;
	assert_int_equal(ib_modify_qp(qp, &attr, mask), -EINVAL);
	assert_int_equal(w->fake->modified, 0); /* the driver saw nothing illegal */
	attr.pkey_index = 2;
	w->fake->refuse_modify = -EIO;
	assert_int_equal(ib_modify_qp(qp, &attr, mask), -EIO);
	assert_int_equal(qp->state, IB_QPS_RESET); /* as before */
	w->fake->refuse_modify = 0;
	assert_int_equal(ib_modify_qp(qp, &attr, mask), 0);
	assert_int_equal(ib_query_qp(qp, &attr, 0, &init), 0);
	assert_int_equal(attr.qp_state, IB_QPS_INIT);
	assert_int_equal(attr.port_num, 2);
	assert_int_equal(attr.pkey_index, 2);
	attr.qp_state = IB_QPS_RESET;
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE), 0);
	assert_int_equal(ib_query_qp(qp, &attr, 0, &init), 0);
	assert_int_equal(attr.pkey_index, 0); /* reset forgets */
	assert_int_equal(ib_destroy_qp(qp), 0);
}

/* one attribute of the way to RTR and RTS wrong at a time */
static void modify_knows_the_ranges(void **state)
{
	struct world *w = *state;
	struct ib_qp *qp = make_qp(w, IB_QPT_RC);
	const struct ib_qp_attr good = {.qp_state = IB_QPS_RTR, .port_num = 1, .path_mtu = IB_MTU_1024,
					.dest_qp_num = 7, .max_dest_rd_atomic = 8,
					.min_rnr_timer = 31, .ah_attr = {.port_num = 1, .dlid = 9}};
	const int up = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		       IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	struct ib_qp_attr bad[] = {good, good, good, good, good, good, good, good};
	struct ib_qp_attr init = {.qp_state = IB_QPS_INIT, .port_num = 1};

	assert_int_equal(ib_modify_qp(qp, &init, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
							 IB_QP_ACCESS_FLAGS), 0);
	bad[0].path_mtu = 6;
	bad[1].path_mtu = 0;
	bad[2].dest_qp_num = 1 << 24;
	bad[3].max_dest_rd_atomic = 9;
	bad[4].min_rnr_timer = 32;
	bad[5].ah_attr.port_num = 3;
	bad[6].ah_attr.sl = 16;
	bad[7].ah_attr.ah_flags = IB_AH_GRH;
	bad[7].ah_attr.grh.sgid_index = FAKE_GIDS;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(ib_modify_qp(qp, &bad[i], up), -EINVAL);
	assert_int_equal(ib_modify_qp(qp, (struct ib_qp_attr *)&good, up), 0);
	assert_int_equal(qp->state, IB_QPS_RTR);
	assert_int_equal(ib_destroy_qp(qp), 0);
}

static void an_alternate_path_has_ranges_and_a_claim_is_checked(void **state)
{
	struct world *w = *state;
	struct ib_qp *qp = make_qp(w, IB_QPT_UC);
	const struct ib_qp_attr good = {.qp_state = IB_QPS_RTR, .port_num = 1, .path_mtu = IB_MTU_1024,
					.dest_qp_num = 7, .ah_attr = {.port_num = 1, .dlid = 9},
					.alt_ah_attr = {.port_num = 1, .dlid = 9}, .alt_port_num = 1};
	const int up = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		       IB_QP_ALT_PATH;
	struct ib_qp_attr bad[] = {good, good, good, good};
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = 1};

	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
							 IB_QP_ACCESS_FLAGS), 0);
	bad[0].alt_port_num = 0;
	bad[1].alt_port_num = 9;
	bad[2].alt_pkey_index = 0xffff;
	bad[3].alt_timeout = 32;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(ib_modify_qp(qp, &bad[i], up), -EINVAL);
	attr = (struct ib_qp_attr){.qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_RTR};
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_SQ_PSN),
			 -EINVAL); /* it is in INIT */
	assert_int_equal(ib_modify_qp(qp, (struct ib_qp_attr *)&good, up), 0);
	attr.path_mig_state = (enum ib_mig_state)(IB_MIG_ARMED + 1);
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_PATH_MIG_STATE),
			 -EINVAL);
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN), 0);
	attr.cur_qp_state = IB_QPS_SQE; /* it may have gone there by itself */
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE), 0);
	assert_int_equal(ib_destroy_qp(qp), 0);
}

static void multicast_is_for_datagrams_and_groups(void **state)
{
	struct world *w = *state;
	struct ib_qp *ud = make_qp(w, IB_QPT_UD), *rc = make_qp(w, IB_QPT_RC);
	union ib_gid group = {.raw = {0xff, 0x12}}, host = {.raw = {0xfe, 0x80}};

	assert_int_equal(ib_attach_mcast(rc, &group, 0xc001), -EINVAL);
	assert_int_equal(ib_attach_mcast(ud, &host, 0xc001), -EINVAL);
	assert_int_equal(ib_attach_mcast(ud, &group, 0xbfff), -EINVAL);
	assert_int_equal(ib_attach_mcast(ud, &group, 0xffff), -EINVAL);
	assert_int_equal(ib_attach_mcast(ud, &group, 0xc001), 0);
	assert_int_equal(ib_attach_mcast(ud, &group, 0xc001), 0); /* once is enough */
	assert_int_equal(ib_attach_mcast(ud, &group, 0xc002), 0);
	assert_int_equal(ib_attach_mcast(ud, &group, 0xc003), 0);
	assert_int_equal(ib_attach_mcast(ud, &group, 0xc004), -ENOMEM); /* the device's limit */
	assert_int_equal(ib_destroy_qp(ud), -EBUSY);
	assert_int_equal(ib_detach_mcast(ud, &group, 0xc001), 0);
	assert_int_equal(ib_detach_mcast(ud, &group, 0xc001), -EINVAL);
	assert_int_equal(ib_detach_mcast(ud, &group, 0xc002), 0);
	assert_int_equal(ib_detach_mcast(ud, &group, 0xc003), 0);
	assert_int_equal(ib_destroy_qp(ud), 0);
	assert_int_equal(ib_destroy_qp(rc), 0);
}

/* The device's limits count the groups, the QPs of each, and both together. */
static void multicast_has_the_limits_of_the_device(void **state)
{
	struct world *w = *state;
	struct ib_qp *qp[] = {make_qp(w, IB_QPT_UD), make_qp(w, IB_QPT_UD), make_qp(w, IB_QPT_UD)};
	union ib_gid group = {.raw = {0xff, 0x12}};

	for (u16 lid = 0xc001; lid <= 0xc002; lid++) {
		assert_int_equal(ib_attach_mcast(qp[0], &group, lid), 0);
		assert_int_equal(ib_attach_mcast(qp[1], &group, lid), 0);
		assert_int_equal(ib_attach_mcast(qp[2], &group, lid), -ENOMEM);
	}
	assert_int_equal(ib_attach_mcast(qp[2], &group, 0xc003), 0);
	assert_int_equal(ib_attach_mcast(qp[2], &group, 0xc004), -ENOMEM); /* groups */
	assert_int_equal(ib_attach_mcast(qp[1], &group, 0xc003), -ENOMEM); /* QPs of all groups */
	assert_int_equal(ib_detach_mcast(qp[0], &group, 0xc001), 0);
	assert_int_equal(ib_attach_mcast(qp[1], &group, 0xc003), 0);
	assert_int_equal(ib_detach_mcast(qp[1], &group, 0xc001), 0); /* the last of its group */
	assert_int_equal(ib_attach_mcast(qp[2], &group, 0xc004), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(qp); i++) {
		core_detach_all(qp[i]);
		assert_int_equal(ib_destroy_qp(qp[i]), 0);
	}
}

/* 11.2.1.2: what all QPs together may have for READs and atomics of their peers */
static void responder_resources_have_a_total(void **state)
{
	struct world *w = *state;
	struct ib_qp *qp[] = {make_qp(w, IB_QPT_RC), make_qp(w, IB_QPT_RC)};
	struct ib_qp_attr init = {.qp_state = IB_QPS_INIT, .port_num = 1},
			  up = {.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_1024,
				.ah_attr = {.port_num = 1, .dlid = 3}, .dest_qp_num = 7},
			  down = {.qp_state = IB_QPS_RESET};
	const int to_init = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
	const int to_rtr = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;

	for (unsigned i = 0; i < ARRAY_SIZE(qp); i++)
		assert_int_equal(ib_modify_qp(qp[i], &init, to_init), 0);
	up.max_dest_rd_atomic = 8;
	assert_int_equal(ib_modify_qp(qp[0], &up, to_rtr), 0);
	up.max_dest_rd_atomic = 5;
	assert_int_equal(ib_modify_qp(qp[1], &up, to_rtr), -ENOMEM);
	up.max_dest_rd_atomic = 4;
	assert_int_equal(ib_modify_qp(qp[1], &up, to_rtr), 0);
	assert_int_equal(ib_modify_qp(qp[0], &down, IB_QP_STATE), 0); /* gives its share back */
	assert_int_equal(ib_modify_qp(qp[0], &init, to_init), 0);
	up.max_dest_rd_atomic = 8;
	assert_int_equal(ib_modify_qp(qp[0], &up, to_rtr), 0);
	assert_int_equal(ib_destroy_qp(qp[1]), 0);
	assert_int_equal(ib_destroy_qp(qp[0]), 0);
	assert_int_equal(w->fake->ib.rd_resources, 0);
}

static void the_answer_goes_where_the_question_came_from(void **state)
{
	struct world *w = *state;
	struct ib_wc wc = {.slid = 17, .sl = 3, .dlid_path_bits = 1};
	struct ib_grh grh = {.version_tclass_flow = cpu_to_be32(6u << 28 | 0x55u << 20 | 0x12345)};
	struct rdma_ah_attr attr;
	struct ib_ah *ah;

	assert_int_equal(ib_init_ah_attr_from_wc(&w->fake->ib, 1, &wc, NULL, &attr), 0);
	assert_int_equal(attr.dlid, 17);
	assert_int_equal(attr.sl, 3);
	assert_int_equal(attr.src_path_bits, 1);
	assert_int_equal(attr.ah_flags, 0);
	wc.wc_flags = IB_WC_GRH;
	assert_int_equal(ib_init_ah_attr_from_wc(&w->fake->ib, 1, &wc, NULL, &attr), -EINVAL);
	assert_int_equal(ib_query_gid(&w->fake->ib, 1, 1, &grh.dgid), 0);
	grh.sgid.raw[3] = 0x77;
	assert_int_equal(ib_init_ah_attr_from_wc(&w->fake->ib, 1, &wc, &grh, &attr), 0);
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.dgid.raw[3], 0x77);
	assert_int_equal(attr.grh.traffic_class, 0x55);
	assert_int_equal(attr.grh.flow_label, 0x12345);
	/* a GID of the other port is not ours here */
	assert_int_equal(ib_init_ah_attr_from_wc(&w->fake->ib, 2, &wc, &grh, &attr), -EINVAL);
	ah = ib_create_ah_from_wc(w->pd, &wc, &grh, 1);
	assert_false(IS_ERR(ah));
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_AH), 1);
	assert_int_equal(ib_destroy_ah(ah), 0);
	wc.wc_flags = 0;
	assert_int_equal(ib_modify_ah(ah = ib_create_ah_from_wc(w->pd, &wc, NULL, 1), &attr),
			 -EOPNOTSUPP); /* this device has no such operation */
	assert_int_equal(ib_destroy_ah(ah), 0);
}

static int count_core(const struct rdma_restrack_entry *entry, void *ctx)
{
	assert_false(entry->user);
	assert_string_equal(entry->comm, "core");
	return ++*(int *)ctx == 2 ? 42 : 0;
}

static void every_object_is_tracked(void **state)
{
	struct world *w = *state;
	struct ib_qp *qp[3] = {make_qp(w, IB_QPT_RC), make_qp(w, IB_QPT_UD), make_qp(w, IB_QPT_GSI)};
	int visited = 0;

	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_QP), 3);
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_CQ), 1);
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_PD), 1);
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_MR), 1); /* the PD's */
	assert_int_equal(rdma_restrack_for_each(&w->fake->ib, RDMA_RESTRACK_QP, count_core,
						&visited), 42);
	assert_int_equal(visited, 2);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ib_destroy_qp(qp[i]), 0);
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_QP), 0);
}

/* a walk that pauses, while objects before it, under it and behind it go */
static void a_cursor_outlives_what_it_stands_on(void **state)
{
	struct world *w = *state;
	struct ib_qp *qp[4];
	struct rdma_restrack_cursor cursor, other;

	for (int i = 0; i < 4; i++)
		qp[i] = make_qp(w, IB_QPT_UD);
	rdma_restrack_open(&w->fake->ib, &cursor, RDMA_RESTRACK_QP);
	rdma_restrack_open(&w->fake->ib, &other, RDMA_RESTRACK_QP);
	assert_ptr_equal(rdma_restrack_next(&cursor), &qp[0]->res);
	ib_destroy_qp(qp[0]);
	ib_destroy_qp(qp[1]);
	assert_ptr_equal(rdma_restrack_next(&cursor), &qp[2]->res);
	rdma_restrack_close(&cursor);
	ib_destroy_qp(qp[3]);
	assert_ptr_equal(rdma_restrack_next(&other), &qp[2]->res);
	assert_null(rdma_restrack_next(&other));
	ib_destroy_qp(qp[2]);
	assert_null(rdma_restrack_next(&other));
	rdma_restrack_leave(&w->fake->ib.res);
	assert_null(rdma_restrack_next(&other));
	rdma_restrack_close(&other);
}

static struct ib_cqe counting;
static u64 waiting, handed_over, armed;

static int poll_waiting(struct ib_cq *cq, int n, struct ib_wc *wc)
{
	int got = 0;

	for (; waiting && got < n; waiting--)
		wc[got++] = (struct ib_wc){.wr_cqe = &counting};
	return got;
}

static int count_arming(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	armed++;
	return 0;
}

static void count_done(struct ib_cq *cq, struct ib_wc *wc)
{
	assert_ptr_equal(wc->wr_cqe, &counting);
	assert_ptr_equal(cq->cq_context, &waiting);
	handed_over++;
}

static void completions_go_where_their_requests_say(void **state)
{
	struct world *w = *state;
	const struct ib_device_ops *ops = w->fake->ib.ops;
	struct ib_device_ops counted = *ops;
	struct ib_cq *cq;
	int before;

	counting.done = count_done;
	counted.poll_cq = poll_waiting;
	counted.req_notify_cq = count_arming;
	w->fake->ib.ops = &counted;
	assert_int_equal(PTR_ERR(ib_alloc_cq(&w->fake->ib, NULL, 0, 0, IB_POLL_DIRECT)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_alloc_cq(&w->fake->ib, NULL, 4, 0, 7)), -EINVAL);
	cq = ib_alloc_cq(&w->fake->ib, &waiting, 16, 0, IB_POLL_SOFTIRQ);
	assert_int_equal(armed, 1);
	waiting = 1000; /* more than one turn takes: it is armed again, and others run */
	cq->comp_handler(cq, cq->cq_context);
	assert_in_range(handed_over, 17, 999);
	before = (int)handed_over;
	assert_int_equal(handed_over + waiting, 1000);
	assert_int_equal(armed, 2);
	ib_free_cq(cq);

	cq = ib_alloc_cq(&w->fake->ib, &waiting, 16, 0, IB_POLL_DIRECT);
	assert_null(cq->comp_handler);
	assert_int_equal(ib_process_cq_direct(cq, 0), 0);
	assert_int_equal(ib_process_cq_direct(cq, 17), 17);
	assert_int_equal(ib_process_cq_direct(cq, -1), 1000 - before - 17);
	assert_int_equal(handed_over, 1000);
	assert_int_equal(armed, 2);
	ib_free_cq(cq);
	w->fake->ib.ops = ops;
}

static void users_of_a_client_share_completion_queues(void **state)
{
	struct ib_device *device = &((struct world *)*state)->fake->ib;
	unsigned int most = (unsigned)device->attrs.max_cqe;
	struct ib_cq *first, *second, *another;
	u32 before = rdma_restrack_count(device, RDMA_RESTRACK_CQ);

	assert_int_equal(PTR_ERR(ib_cq_pool_get(device, 8, 0, IB_POLL_DIRECT)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_cq_pool_get(device, most + 1, 0, IB_POLL_SOFTIRQ)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_cq_pool_get(device, 0, 0, IB_POLL_SOFTIRQ)), -EINVAL);
	first = ib_cq_pool_get(device, most - 8, 0, IB_POLL_SOFTIRQ);
	assert_int_equal(first->cqe, most);
	assert_ptr_equal(ib_cq_pool_get(device, 8, 1, IB_POLL_WORKQUEUE), first);
	second = ib_cq_pool_get(device, 1, -1, IB_POLL_UNBOUND_WORKQUEUE);
	assert_ptr_not_equal(second, first); /* which is full */
	another = ib_cq_pool_get_(device, 1, 0, IB_POLL_SOFTIRQ, "another");
	assert_ptr_not_equal(another, second);
	ib_cq_pool_put(first, 8);
	assert_ptr_equal(ib_cq_pool_get(device, 4, 0, IB_POLL_SOFTIRQ), first);
	ib_cq_pool_put(first, 4);
	assert_int_equal(rdma_restrack_count(device, RDMA_RESTRACK_CQ), before + 3);
	ib_cq_pool_put(first, most - 8); /* its last user */
	ib_cq_pool_put(second, 1);
	ib_cq_pool_put(another, 1);
	assert_int_equal(rdma_restrack_count(device, RDMA_RESTRACK_CQ), before);
	first = ib_alloc_cq_any(device, NULL, 16, IB_POLL_UNBOUND_WORKQUEUE);
	assert_true(list_empty(&device->cq_pool));
	ib_free_cq(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_used_is_busy, setup, teardown),
		cmocka_unit_test_setup_teardown(domains_of_reliable_datagrams, setup, teardown),
		cmocka_unit_test_setup_teardown(domains_of_extended_connections, setup, teardown),
		cmocka_unit_test_setup_teardown(paths_of_roce, setup, teardown),
		cmocka_unit_test_setup_teardown(a_cursor_outlives_what_it_stands_on, setup, teardown),
		cmocka_unit_test_setup_teardown(limits_of_the_device_hold, setup, teardown),
		cmocka_unit_test_setup_teardown(what_the_device_lacks_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_checks_then_remembers, setup, teardown),
		cmocka_unit_test_setup_teardown(modify_knows_the_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(an_alternate_path_has_ranges_and_a_claim_is_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(multicast_is_for_datagrams_and_groups, setup,
						teardown),
		cmocka_unit_test_setup_teardown(multicast_has_the_limits_of_the_device, setup,
						teardown),
		cmocka_unit_test_setup_teardown(responder_resources_have_a_total, setup, teardown),
		cmocka_unit_test_setup_teardown(the_answer_goes_where_the_question_came_from, setup,
						teardown),
		cmocka_unit_test_setup_teardown(every_object_is_tracked, setup, teardown),
		cmocka_unit_test_setup_teardown(completions_go_where_their_requests_say, setup, teardown),
		cmocka_unit_test_setup_teardown(users_of_a_client_share_completion_queues, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
