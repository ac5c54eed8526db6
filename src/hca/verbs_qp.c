/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's operations on queue pairs and their multicast groups. As of all
 * objects of a program, softibd knows the number and the owner of a program's
 * QP (verbs.c).
 */
#include <string.h>

#include "hca/private.h"

/* --- queue pairs --- */

/* Set the capabilities that the QP gets, which are at least the requested ones (11.2.4.1). A
 * queue that the QP's type does not have gets no entries. Inline data can be as long as the
 * scatter/gather list of a request, since hardware stores them in its place. */
static void grant_cap(struct ib_qp_init_attr *init, const struct ib_device_attr *max)
{
	struct ib_qp_cap *cap = &init->cap;
	u32 max_inline = (u32)(init->qp_type == IB_QPT_UD ? max->max_inline_data_ud :
							    max->max_inline_data);

	if (init->srq || init->qp_type == IB_QPT_XRC_INI || init->qp_type == IB_QPT_XRC_TGT)
		cap->max_recv_wr = cap->max_recv_sge = 0;
	if (init->qp_type == IB_QPT_XRC_TGT)
		cap->max_send_wr = cap->max_send_sge = cap->max_inline_data = 0;
	max_inline = MIN(max_inline, cap->max_send_sge * (u32)sizeof(struct ib_sge));
	cap->max_inline_data = MAX(cap->max_inline_data, max_inline);
}

static struct eng_cq *cq_in_engine(const struct ib_cq *cq)
{
	return cq ? container_of(cq, struct hca_cq, ib)->eng : NULL;
}

/* a QP of each type to the engine, and its transport */
static const struct {
	enum ibv_qp_type verbs;
	enum tp_type transport;
} types[] = {
	[IB_QPT_SMI] = {IBV_QPT_UD, TP_UD},
	[IB_QPT_GSI] = {IBV_QPT_UD, TP_UD},
	[IB_QPT_RC] = {IBV_QPT_RC, TP_RC},
	[IB_QPT_UC] = {IBV_QPT_UC, TP_UC},
	[IB_QPT_UD] = {IBV_QPT_UD, TP_UD},
	[IB_QPT_RD] = {IBV_QPT_RC, TP_RD},
	[IB_QPT_EEC] = {IBV_QPT_RC, TP_EE},
	[IB_QPT_RAW_PACKET] = {IBV_QPT_UD, TP_RAW},
	[IB_QPT_XRC_INI] = {IBV_QPT_XRC_SEND, TP_XRC},
	[IB_QPT_XRC_TGT] = {IBV_QPT_XRC_RECV, TP_XRC},
};

bool hca_qp_may_use_windows(const struct hca_qp *qp)
{
	return tp_type_may_use_windows(types[qp->ib.qp_type].transport);
}

static int create_in_engine(struct hca *hca, struct hca_qp *qp, struct ib_pd *pd,
			    const struct ib_qp_init_attr *init)
{
	enum tp_type transport = types[init->qp_type].transport;
	struct eng_qp_init in = {
		.qpn = qp->ib.qp_num,
		.type = types[init->qp_type].verbs,
		.pd = pd ? container_of(pd, struct hca_pd, ib)->number : 0,
		.send_cq = cq_in_engine(init->send_cq),
		.recv_cq = cq_in_engine(init->qp_type == IB_QPT_XRC_INI ? init->send_cq : init->recv_cq),
		.is_raw = transport == TP_RAW,
		.is_rd = transport == TP_RD,
		.is_ee = transport == TP_EE,
		.rdd = init->rdd ? init->rdd->number : 0,
		.xrcd = init->xrcd ? init->xrcd->domain->number : 0,
		.srq = init->srq ? container_of(init->srq, struct hca_srq, ib)->eng : NULL,
		.max_send_wr = init->cap.max_send_wr,
		.max_recv_wr = init->cap.max_recv_wr,
		.max_send_sge = init->cap.max_send_sge,
		.max_recv_sge = init->cap.max_recv_sge,
		.max_inline = init->cap.max_inline_data,
		.max_sge_rd = (u32)hca->ib.attrs.max_sge_rd,
		.max_header = init->create_flags & IB_QP_CREATE_IPOIB_UD_LSO ? TP_MAX_TSO_HEADER : 0,
		.sq_sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR,
		.port_num = (uint8_t)init->port_num,
		.ctx = qp,
	};

	return eng_qp_create(hca->engine, &in, &qp->eng);
}

static int number_qp(struct hca *hca, struct hca_qp *qp, const struct ib_qp_init_attr *init,
		     const struct ib_udata *udata)
{
	qp->ib.qp_type = init->qp_type;
	if (init->qp_type == IB_QPT_SMI || init->qp_type == IB_QPT_GSI) {
		qp->ib.qp_num = init->qp_type == IB_QPT_SMI ? 0 : 1;
		qp->ib.port = (u8)init->port_num;
		hca->port[qp->ib.port - 1].has_qp[qp->ib.qp_num] = true;
		return 0;
	}
	return hca_qpn_alloc(hca, qp, udata ? udata->qpn : 0);
}

static void unnumber_qp(struct hca *hca, struct hca_qp *qp)
{
	if (qp->ib.qp_num >= 2)
		hca_qpn_free(hca, qp);
	else
		hca->port[qp->ib.port - 1].has_qp[qp->ib.qp_num] = false;
}

struct ib_qp *hca_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *init,
			    struct ib_udata *udata)
{
	struct hca *hca = hca_of(pd	   ? pd->device :
				 init->rdd ? init->rdd->device :
					     init->xrcd->device);
	struct hca_qp *qp;
	int ret;

	if (udata && init->qp_type < IB_QPT_RC)
		return ERR_PTR(-EINVAL);
	ret = udata ? hca_refused(hca, FLT_OBJECT_QP) : 0;
	if (ret)
		return ERR_PTR(ret);
	qp = rt_zalloc(sizeof(*qp));
	if (!qp)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&qp->node);
	hca_target_init(hca, qp);
	grant_cap(init, &hca->ib.attrs);
	ret = number_qp(hca, qp, init, udata);
	if (ret)
		goto undo_qp;
	if (udata)
		qp->user = qp->target.holder = container_of(udata->context, struct hca_user, ib);
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

struct ibv_qp_attr hca_ibv_qp_attr(const struct ib_qp_attr *in)
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

int hca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);
	struct ibv_qp_attr in = hca_ibv_qp_attr(attr);

	hca_target_modified(qp, &in, mask);
	return qp->eng ? eng_qp_modify(qp->eng, &in, mask) : 0;
}

int hca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
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

void hca_destroy_qp(struct ib_qp *ibqp)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);

	list_del(&qp->node);
	if (ibqp->qp_num >= 2)
		fab_fault_gone(hca_of(ibqp->device)->fab, hca_of(ibqp->device)->node, ibqp->qp_num);
	if (qp->eng)
		eng_qp_destroy(qp->eng);
	hca_target_gone(qp);
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

int hca_attach_mcast(struct ib_qp *ibqp, const union ib_gid *gid, u16 lid)
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

int hca_detach_mcast(struct ib_qp *ibqp, const union ib_gid *gid, u16 lid)
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
