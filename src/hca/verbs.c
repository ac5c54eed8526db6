/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's operations on objects. A program's object is a number and an
 * owner here, its queues live in the program's engine; the midlayer's own
 * lives in the adapter's engine.
 */
#include <string.h>

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

/* --- memory --- */

static struct ib_mr *new_mr(struct hca *hca)
{
	struct hca_mr *mr = rt_zalloc(sizeof(*mr));
	int ret = mr ? hca_key_alloc(hca, mr) : -ENOMEM;

	if (!ret)
		return &mr->ib;
	rt_free(mr);
	return ERR_PTR(ret);
}

static void dereg_mr(struct ib_mr *ibmr)
{
	struct hca_mr *mr = container_of(ibmr, struct hca_mr, ib);
	struct hca *hca = hca_of(ibmr->device);

	if (mr->in_engine)
		eng_mr_del(hca->engine, ibmr->lkey);
	hca_key_free(hca, mr);
	rt_free(mr);
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct hca *hca = hca_of(pd->device);
	struct ib_mr *ibmr = new_mr(hca);
	struct eng_mr_attr attr = {
		.pd = container_of(pd, struct hca_pd, ib)->number,
		.length = UINT64_MAX,
		.access = access,
	};
	int ret;

	if (IS_ERR(ibmr))
		return ibmr;
	ibmr->device = pd->device;
	attr.key = ibmr->lkey;
	ret = eng_mr_add(hca->engine, &attr);
	if (ret) {
		dereg_mr(ibmr);
		return ERR_PTR(ret);
	}
	container_of(ibmr, struct hca_mr, ib)->in_engine = true;
	return ibmr;
}

/* the memory is the program's and its engine's; here it has a key */
static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 iova, int access,
				 struct ib_udata *udata)
{
	int ret = hca_refused(hca_of(pd->device), FLT_OBJECT_MR);

	return ret ? ERR_PTR(ret) : new_mr(hca_of(pd->device));
}

static int rereg_user_mr(struct ib_mr *mr, int flags, u64 start, u64 length, u64 iova, int access,
			 struct ib_pd *pd)
{
	return 0;
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

static void destroy_cq(struct ib_cq *ibcq)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);

	rt_work_cancel(&cq->completed);
	if (cq->eng)
		eng_cq_destroy(cq->eng);
	rt_free(cq);
}

/* --- shared receive queues --- */

static struct ib_srq *create_srq(struct ib_pd *pd, struct ib_srq_init_attr *init,
				 struct ib_udata *udata)
{
	int ret = udata ? hca_refused(hca_of(pd->device), FLT_OBJECT_SRQ) : 0;
	struct hca_srq *srq;

	if (ret)
		return ERR_PTR(ret);
	srq = rt_zalloc(sizeof(*srq));
	if (!srq)
		return ERR_PTR(-ENOMEM);
	srq->attr = init->attr;
	if (udata)
		return &srq->ib;
	ret = eng_srq_create(hca_of(pd->device)->engine, container_of(pd, struct hca_pd, ib)->number,
			     init->attr.max_wr, init->attr.max_sge, init->attr.srq_limit, srq,
			     &srq->eng);
	if (!ret)
		return &srq->ib;
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
	rt_free(srq);
}

/* --- queue pairs --- */

static int create_in_engine(struct hca *hca, struct hca_qp *qp, struct ib_pd *pd,
			    const struct ib_qp_init_attr *init)
{
	static const enum ibv_qp_type types[] = {[IB_QPT_SMI] = IBV_QPT_UD,
						 [IB_QPT_GSI] = IBV_QPT_UD,
						 [IB_QPT_RC] = IBV_QPT_RC,
						 [IB_QPT_UC] = IBV_QPT_UC,
						 [IB_QPT_UD] = IBV_QPT_UD};
	struct eng_qp_init in = {
		.qpn = qp->ib.qp_num,
		.type = types[init->qp_type],
		.pd = container_of(pd, struct hca_pd, ib)->number,
		.send_cq = container_of(init->send_cq, struct hca_cq, ib)->eng,
		.recv_cq = container_of(init->recv_cq, struct hca_cq, ib)->eng,
		.srq = init->srq ? container_of(init->srq, struct hca_srq, ib)->eng : NULL,
		.max_send_wr = init->cap.max_send_wr,
		.max_recv_wr = init->cap.max_recv_wr,
		.max_send_sge = init->cap.max_send_sge,
		.max_recv_sge = init->cap.max_recv_sge,
		.max_inline = init->cap.max_inline_data,
		.sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR,
		.port_num = (uint8_t)init->port_num,
		.ctx = qp,
	};

	return eng_qp_create(hca->engine, &in, &qp->eng);
}

static int number_qp(struct hca *hca, struct hca_qp *qp, const struct ib_qp_init_attr *init)
{
	qp->ib.qp_type = init->qp_type;
	if (init->qp_type == IB_QPT_SMI || init->qp_type == IB_QPT_GSI) {
		qp->ib.qp_num = init->qp_type == IB_QPT_SMI ? 0 : 1;
		qp->ib.port = (u8)init->port_num;
		return 0;
	}
	return hca_qpn_alloc(hca, qp);
}

static void unnumber_qp(struct hca *hca, struct hca_qp *qp)
{
	if (qp->ib.qp_num >= 2)
		hca_qpn_free(hca, qp);
}

static struct ib_qp *create_qp(struct ib_pd *pd, struct ib_qp_init_attr *init,
			       struct ib_udata *udata)
{
	struct hca *hca = hca_of(pd->device);
	struct hca_qp *qp;
	int ret;

	if (init->qp_type > IB_QPT_UD)
		return ERR_PTR(-EOPNOTSUPP);
	if (init->cap.max_inline_data > TP_MAX_INLINE)
		return ERR_PTR(-EINVAL);
	if (udata && init->qp_type < IB_QPT_RC)
		return ERR_PTR(-EINVAL);
	ret = udata ? hca_refused(hca, FLT_OBJECT_QP) : 0;
	if (ret)
		return ERR_PTR(ret);
	qp = rt_zalloc(sizeof(*qp));
	if (!qp)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&qp->node);
	ret = number_qp(hca, qp, init);
	if (ret)
		goto undo_qp;
	if (udata)
		qp->user = container_of(udata->context, struct hca_user, ib);
	else
		ret = create_in_engine(hca, qp, pd, init);
	if (ret)
		goto undo_number;
	list_add_tail(&qp->node, udata ? &hca->user_qps : &hca->kernel_qps);
	return &qp->ib;

undo_number:
	unnumber_qp(hca, qp);
undo_qp:
	rt_free(qp);
	return ERR_PTR(ret);
}

static struct ibv_ah_attr ibv_ah(const struct rdma_ah_attr *in)
{
	struct ibv_ah_attr out = {
		.dlid = in->dlid,
		.sl = in->sl,
		.src_path_bits = in->src_path_bits,
		.static_rate = in->static_rate,
		.is_global = in->ah_flags & IB_AH_GRH ? 1 : 0,
		.port_num = in->port_num,
		.grh = {.flow_label = in->grh.flow_label,
			.sgid_index = in->grh.sgid_index,
			.hop_limit = in->grh.hop_limit,
			.traffic_class = in->grh.traffic_class},
	};

	memcpy(out.grh.dgid.raw, in->grh.dgid.raw, sizeof(out.grh.dgid.raw));
	return out;
}

static struct ibv_qp_attr ibv_attr(const struct ib_qp_attr *in)
{
	return (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)in->qp_state,
		.cur_qp_state = (enum ibv_qp_state)in->cur_qp_state,
		.path_mtu = (enum ibv_mtu)in->path_mtu,
		.qkey = in->qkey,
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
		.dest_qp_num = in->dest_qp_num,
		.qp_access_flags = (unsigned)in->qp_access_flags,
		.ah_attr = ibv_ah(&in->ah_attr),
		.alt_ah_attr = ibv_ah(&in->alt_ah_attr),
		.en_sqd_async_notify = in->en_sqd_async_notify,
		.pkey_index = in->pkey_index,
		.alt_pkey_index = in->alt_pkey_index,
		.max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
		.min_rnr_timer = in->min_rnr_timer,
		.port_num = in->port_num,
		.timeout = in->timeout,
		.retry_cnt = in->retry_cnt,
		.rnr_retry = in->rnr_retry,
		.alt_port_num = in->alt_port_num,
		.alt_timeout = in->alt_timeout,
	};
}

static int modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);
	struct ibv_qp_attr in = ibv_attr(attr);

	return qp->eng ? eng_qp_modify(qp->eng, &in, mask) : 0;
}

static int query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_qp_init_attr *init_attr)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);
	struct ibv_qp_attr live;

	if (!qp->eng)
		return 0;
	eng_qp_query(qp->eng, &live);
	attr->qp_state = attr->cur_qp_state = (enum ib_qp_state)live.qp_state;
	attr->sq_draining = live.sq_draining;
	return 0;
}

static void destroy_qp(struct ib_qp *ibqp)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);

	if (qp->user)
		hca_user_drain(qp->user);
	list_del(&qp->node);
	if (ibqp->qp_num >= 2)
		fab_fault_gone(hca_of(ibqp->device)->fab, hca_of(ibqp->device)->node, ibqp->qp_num);
	if (qp->eng)
		eng_qp_destroy(qp->eng);
	unnumber_qp(hca_of(ibqp->device), qp);
	rt_free(qp);
}

/* --- multicast --- */

static struct hca_mcast *find_mcast(struct hca_qp *qp, const union ib_gid *gid, u16 lid)
{
	struct hca_mcast *m;

	list_for_each_entry(m, &qp->user->mcast, node)
		if (m->qpn == qp->ib.qp_num && m->lid == lid &&
		    !memcmp(&m->gid, gid, sizeof(*gid)))
			return m;
	return NULL;
}

static int attach_mcast(struct ib_qp *ibqp, const union ib_gid *gid, u16 lid)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);
	union wire_gid group;
	struct hca_mcast *m;
	int ret;

	memcpy(group.raw, gid->raw, sizeof(group.raw));
	if (qp->eng) {
		ret = eng_qp_attach_mcast(qp->eng, &group, lid);
		hca_of(ibqp->device)->kernel_groups += !ret;
		return ret;
	}
	if (find_mcast(qp, gid, lid))
		return 0;
	ret = hca_refused(hca_of(ibqp->device), FLT_OBJECT_MULTICAST);
	if (ret)
		return ret;
	m = rt_zalloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->qpn = ibqp->qp_num;
	m->gid = *gid;
	m->lid = lid;
	list_add_tail(&m->node, &qp->user->mcast);
	return 0;
}

static int detach_mcast(struct ib_qp *ibqp, const union ib_gid *gid, u16 lid)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);
	union wire_gid group;
	struct hca_mcast *m;

	memcpy(group.raw, gid->raw, sizeof(group.raw));
	if (qp->eng) {
		hca_of(ibqp->device)->kernel_groups--;
		return eng_qp_detach_mcast(qp->eng, &group, lid);
	}
	m = find_mcast(qp, gid, lid);
	if (!m)
		return -EINVAL;
	list_del(&m->node);
	rt_free(m);
	return 0;
}

const struct ib_device_ops hca_ops = {
	.query_device = hca_query_device,
	.modify_device = hca_modify_device,
	.query_port = hca_query_port,
	.modify_port = hca_modify_port,
	.query_gid = hca_query_gid,
	.query_pkey = hca_query_pkey,
	.alloc_ucontext = hca_alloc_ucontext,
	.dealloc_ucontext = hca_dealloc_ucontext,
	.driver_command = hca_driver_command,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.create_ah = create_ah,
	.modify_ah = modify_ah,
	.query_ah = query_ah,
	.destroy_ah = destroy_ah,
	.create_cq = create_cq,
	.resize_cq = resize_cq,
	.destroy_cq = destroy_cq,
	.poll_cq = hca_poll_cq,
	.peek_cq = hca_peek_cq,
	.req_notify_cq = hca_req_notify_cq,
	.create_srq = create_srq,
	.modify_srq = modify_srq,
	.query_srq = query_srq,
	.destroy_srq = destroy_srq,
	.post_srq_recv = hca_post_srq_recv,
	.create_qp = create_qp,
	.modify_qp = modify_qp,
	.query_qp = query_qp,
	.destroy_qp = destroy_qp,
	.post_send = hca_post_send,
	.post_recv = hca_post_recv,
	.attach_mcast = attach_mcast,
	.detach_mcast = detach_mcast,
	.get_dma_mr = get_dma_mr,
	.reg_user_mr = reg_user_mr,
	.rereg_user_mr = rereg_user_mr,
	.dereg_mr = dereg_mr,
	.process_mad = hca_process_mad,
};
