/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's operations on objects. Of a program's object softibd knows the
 * number and the owner; its queues are in the program's engine. An object of
 * the midlayer is in the adapter's engine. verbs_qp.c has the operations on
 * queue pairs, verbs_memory.c those on memory.
 */
#include "hca/private.h"

/* --- protection domains, address handles --- */

static struct ib_pd *alloc_pd(struct ib_device *device, struct ib_udata *udata)
{
	int ret = udata ? hca_refused(hca_of(device), FLT_OBJECT_PD) : 0;
	struct hca_pd *pd;

	if (ret)
		return ERR_PTR(ret);
	pd = rt_zalloc(sizeof(*pd));
	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->number = ++hca_of(device)->next_pd;
	return &pd->ib;
}

static void dealloc_pd(struct ib_pd *pd)
{
	rt_free(container_of(pd, struct hca_pd, ib));
}

static struct ib_ah *create_ah(struct ib_pd *pd, const struct rdma_ah_attr *attr,
			       struct ib_udata *udata)
{
	struct hca_ah *ah = rt_zalloc(sizeof(*ah));

	if (!ah)
		return ERR_PTR(-ENOMEM);
	ah->attr = *attr;
	ah->av = hca_av(attr);
	return &ah->ib;
}

static int modify_ah(struct ib_ah *ibah, const struct rdma_ah_attr *attr)
{
	struct hca_ah *ah = container_of(ibah, struct hca_ah, ib);

	ah->attr = *attr;
	ah->av = hca_av(attr);
	return 0;
}

static int query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = container_of(ibah, struct hca_ah, ib)->attr;
	return 0;
}

static void destroy_ah(struct ib_ah *ah)
{
	rt_free(container_of(ah, struct hca_ah, ib));
}

/* --- completion queues --- */

static void run_comp_handler(struct rt_work *work)
{
	struct hca_cq *cq = container_of(work, struct hca_cq, completed);

	if (cq->ib.comp_handler)
		cq->ib.comp_handler(&cq->ib, cq->ib.cq_context);
}

static struct ib_cq *create_cq(struct ib_device *device, const struct ib_cq_init_attr *attr,
			       struct ib_udata *udata)
{
	int ret = udata ? hca_refused(hca_of(device), FLT_OBJECT_CQ) : 0;
	struct hca_cq *cq;

	if (ret)
		return ERR_PTR(ret);
	cq = rt_zalloc(sizeof(*cq));
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->ib.cqe = (int)attr->cqe;
	rt_work_init(&cq->completed, run_comp_handler);
	INIT_LIST_HEAD(&cq->event_node);
	if (udata)
		return &cq->ib;
	ret = eng_cq_create(hca_of(device)->engine, attr->cqe, cq, &cq->eng);
	if (!ret)
		return &cq->ib;
	rt_free(cq);
	return ERR_PTR(ret);
}

static int resize_cq(struct ib_cq *ibcq, int cqe)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);
	int ret = cq->eng ? eng_cq_resize(cq->eng, (uint32_t)cqe) : 0;

	if (!ret)
		ibcq->cqe = cqe;
	return ret;
}

static int modify_cq(struct ib_cq *ibcq, u16 cq_count, u16 cq_period)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);

	if (!cq->eng)
		return -EOPNOTSUPP; /* the library resizes the CQ of a program */
	eng_cq_moderate(cq->eng, cq_count, cq_period * NSEC_PER_USEC);
	return 0;
}

static void destroy_cq(struct ib_cq *ibcq)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);

	rt_work_cancel(&cq->completed);
	list_del(&cq->event_node);
	if (cq->eng)
		eng_cq_destroy(cq->eng);
	rt_free(cq);
}

/* --- shared receive queues --- */

static int create_srq_in_engine(struct hca *hca, struct hca_srq *srq, struct ib_pd *pd,
				const struct ib_srq_init_attr *init)
{
	int ret = eng_srq_create(hca->engine, container_of(pd, struct hca_pd, ib)->number,
				 init->attr.max_wr, init->attr.max_sge, init->attr.srq_limit, srq,
				 &srq->eng);

	if (ret || !init->xrcd)
		return ret;
	ret = eng_srq_join_xrcd(srq->eng, srq->ib.srq_num, init->xrcd->domain->number,
				container_of(init->cq, struct hca_cq, ib)->eng);
	if (ret)
		eng_srq_destroy(srq->eng);
	return ret;
}

static struct ib_srq *create_srq(struct ib_pd *pd, struct ib_srq_init_attr *init,
				 struct ib_udata *udata)
{
	struct hca *hca = hca_of(pd->device);
	int ret = udata ? hca_refused(hca, FLT_OBJECT_SRQ) : 0;
	struct hca_srq *srq;

	if (ret)
		return ERR_PTR(ret);
	srq = rt_zalloc(sizeof(*srq));
	if (!srq)
		return ERR_PTR(-ENOMEM);
	srq->attr = init->attr;
	if (init->xrcd)
		ret = hca_srqn_alloc(hca, srq);
	if (udata)
		srq->user = container_of(udata->context, struct hca_user, ib);
	else if (!ret)
		ret = create_srq_in_engine(hca, srq, pd, init);
	if (!ret)
		return &srq->ib;
	if (srq->ib.srq_num)
		eng_table_clear(&hca->xrc_srqs, srq->ib.srq_num);
	rt_free(srq);
	return ERR_PTR(ret);
}

static int modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, int mask)
{
	struct hca_srq *srq = container_of(ibsrq, struct hca_srq, ib);
	int ret = 0;

	if (srq->eng)
		ret = eng_srq_modify(srq->eng, mask & IB_SRQ_MAX_WR ? &attr->max_wr : NULL,
				     mask & IB_SRQ_LIMIT ? &attr->srq_limit : NULL);
	if (ret)
		return ret;
	if (mask & IB_SRQ_MAX_WR)
		srq->attr.max_wr = attr->max_wr;
	if (mask & IB_SRQ_LIMIT)
		srq->attr.srq_limit = attr->srq_limit;
	return 0;
}

static int query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct hca_srq *srq = container_of(ibsrq, struct hca_srq, ib);

	*attr = srq->attr;
	if (srq->eng)
		eng_srq_query(srq->eng, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
	return 0;
}

static void destroy_srq(struct ib_srq *ibsrq)
{
	struct hca_srq *srq = container_of(ibsrq, struct hca_srq, ib);

	if (srq->eng)
		eng_srq_destroy(srq->eng);
	if (ibsrq->xrcd)
		eng_table_clear(&hca_of(ibsrq->device)->xrc_srqs, ibsrq->srq_num);
	rt_free(srq);
}

/* --- XRC domains: their SRQs and QPs are in the programs' engines --- */

static struct ib_xrcd *alloc_xrcd(struct ib_device *device, struct ib_udata *udata)
{
	struct ib_xrcd *xrcd = rt_zalloc(sizeof(*xrcd));

	return xrcd ? xrcd : ERR_PTR(-ENOMEM);
}

static void dealloc_xrcd(struct ib_xrcd *xrcd)
{
	rt_free(xrcd);
}

const struct ib_device_ops hca_ops = {
	.query_device = hca_query_device,
	.modify_device = hca_modify_device,
	.query_port = hca_query_port,
	.modify_port = hca_modify_port,
	.query_gid = hca_query_gid,
	.query_pkey = hca_query_pkey,
	.find_station = hca_find_station,
	.set_addresses = hca_set_addresses,
	.set_mtu = hca_set_mtu,
	.poll_events = hca_poll_events,
	.alloc_ucontext = hca_alloc_ucontext,
	.dealloc_ucontext = hca_dealloc_ucontext,
	.driver_command = hca_driver_command,
	.introduce = hca_introduce,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_ah = create_ah,
	.modify_ah = modify_ah,
	.query_ah = query_ah,
	.destroy_ah = destroy_ah,
	.create_cq = create_cq,
	.resize_cq = resize_cq,
	.modify_cq = modify_cq,
	.destroy_cq = destroy_cq,
	.poll_cq = hca_poll_cq,
	.peek_cq = hca_peek_cq,
	.req_notify_cq = hca_req_notify_cq,
	.req_ncomp_notif = hca_req_ncomp_notif,
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.destroy_srq = destroy_srq,
	.post_srq_recv = hca_post_srq_recv,
	.alloc_xrcd = alloc_xrcd,
	.dealloc_xrcd = dealloc_xrcd,
	.xrcd_shared = hca_xrcd_shared,
	.inherit_qp = hca_inherit_qp,
	.create_qp = hca_create_qp,
	.reserve_qpn = hca_qpn_reserve,
	.release_qpn = hca_qpn_release,
	.modify_qp = hca_modify_qp,
	.query_qp = hca_query_qp,
	.quiesce = hca_quiesce,
	.destroy_qp = hca_destroy_qp,
	.post_send = hca_post_send,
	.post_recv = hca_post_recv,
	.attach_mcast = hca_attach_mcast,
	.detach_mcast = hca_detach_mcast,
	.get_dma_mr = hca_get_dma_mr,
	.reg_user_mr = hca_reg_user_mr,
	.rereg_user_mr = hca_rereg_user_mr,
	.dereg_mr = hca_dereg_mr,
	.alloc_mr = hca_alloc_mr,
	.map_mr = hca_map_mr,
	.stage_mr = hca_stage_mr,
	.mr_is_bound = hca_mr_is_bound,
	.alloc_mw = hca_alloc_mw,
	.dealloc_mw = hca_dealloc_mw,
	.alloc_dm = hca_alloc_dm,
	.dealloc_dm = hca_dealloc_dm,
	.reg_dm_mr = hca_reg_dm_mr,
	.create_flow = hca_create_flow,
	.destroy_flow = hca_destroy_flow,
	.process_mad = hca_process_mad,
};
