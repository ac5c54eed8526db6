/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work requests and completions of the midlayer: conversion between the
 * kernel's structs (ib_send_wr, ib_wc) and those of the engine, which are the
 * structs of libibverbs.
 */
#include <assert.h>
#include <string.h>

#include "hca/private.h"

#define POLL_AT_ONCE 16

static_assert(sizeof(struct ib_sge) == sizeof(struct ibv_sge), "one layout for both names");

struct tp_av hca_av(const struct rdma_ah_attr *attr)
{
	struct tp_av av = {
		.dlid = attr->dlid,
		.sl = attr->sl,
		.src_path_bits = attr->src_path_bits,
		.static_rate_enc = attr->static_rate,
		.port_num = attr->port_num,
		.is_global = attr->ah_flags & IB_AH_GRH,
		.sgid_index = attr->grh.sgid_index,
		.hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class,
		.flow_label = attr->grh.flow_label,
	};

	memcpy(av.dgid.raw, attr->grh.dgid.raw, sizeof(av.dgid.raw));
	return av;
}

static const struct tp_av *av_of(struct ibv_ah *ah)
{
	return &((struct hca_ah *)(void *)ah)->av;
}

static bool is_datagram(const struct hca_qp *qp)
{
	return qp->ib.qp_type == IB_QPT_UD || qp->ib.qp_type == IB_QPT_SMI ||
	       qp->ib.qp_type == IB_QPT_GSI;
}

static void describe_datagram(const struct ib_ud_wr *wr, struct ibv_send_wr *out)
{
	out->wr.ud.ah = (struct ibv_ah *)(void *)container_of(wr->ah, struct hca_ah, ib);
	out->wr.ud.remote_qpn = wr->remote_qpn;
	out->wr.ud.remote_qkey = wr->remote_qkey;
	if (wr->wr.opcode != IB_WR_LSO)
		return;
	out->tso.hdr = wr->header; /* what does not fit is no length that the engine takes */
	out->tso.hdr_sz = (uint16_t)(wr->hlen < 0 ? 0 : MIN(wr->hlen, UINT16_MAX));
	out->tso.mss = (uint16_t)(wr->mss < 0 ? 0 : MIN(wr->mss, UINT16_MAX));
}

static void describe(const struct hca_qp *qp, const struct ib_send_wr *wr, struct ibv_send_wr *out)
{
	*out = (struct ibv_send_wr){
		.wr_id = wr->wr_id,
		.sg_list = (struct ibv_sge *)wr->sg_list,
		.num_sge = wr->num_sge,
		.opcode = (enum ibv_wr_opcode)wr->opcode,
		.send_flags = (unsigned)wr->send_flags,
		.imm_data = wr->ex.imm_data,
	};
	if (is_datagram(qp)) {
		describe_datagram(ud_wr(wr), out);
	} else if (wr->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
		   wr->opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		out->wr.atomic.remote_addr = atomic_wr(wr)->remote_addr;
		out->wr.atomic.rkey = atomic_wr(wr)->rkey;
		out->wr.atomic.compare_add = atomic_wr(wr)->compare_add;
		out->wr.atomic.swap = atomic_wr(wr)->swap;
	} else if (wr->opcode == IB_WR_RDMA_WRITE || wr->opcode == IB_WR_RDMA_READ ||
		   wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		out->wr.rdma.remote_addr = rdma_wr(wr)->remote_addr;
		out->wr.rdma.rkey = rdma_wr(wr)->rkey;
	}
}

/* A request of a GSI QP names its own P_Key. The packet is made before the next
 * request is posted, so the P_Key can be set in the QP. */
static int set_pkey(struct hca_qp *qp, u16 pkey_index)
{
	struct ibv_qp_attr attr;

	eng_qp_query(qp->eng, &attr);
	if (attr.pkey_index == pkey_index)
		return 0;
	attr.pkey_index = pkey_index;
	return eng_qp_modify(qp->eng, &attr, IBV_QP_PKEY_INDEX);
}

static int post_register(struct hca_qp *qp, const struct ib_reg_wr *wr)
{
	const struct eng_register reg = {.wr_id = wr->wr.wr_id,
					 .send_flags = (unsigned)wr->wr.send_flags,
					 .key = wr->mr->lkey,
					 .new_key = wr->key,
					 .access = wr->access};

	return eng_post_register(qp->eng, &reg);
}

/* The engine's bind request has objects of libibverbs, of which the engine reads only the keys. */
static int post_bind(struct hca_qp *qp, const struct ib_bind_mw_wr *wr)
{
	const struct ib_mw_bind_info *info = &wr->bind_info;
	struct ibv_mw mw = {.rkey = wr->mw->rkey};
	struct ibv_mr mr = {.lkey = info->mr ? info->mr->lkey : 0};
	struct ibv_send_wr out = {
		.wr_id = wr->wr.wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = (unsigned)wr->wr.send_flags,
		.bind_mw = {&mw,
			    wr->rkey,
			    {info->mr ? &mr : NULL, info->addr, info->length,
			     (unsigned)info->mw_access_flags}},
	};
	struct ibv_send_wr *bad;

	return eng_post_send(qp->eng, &out, &bad, av_of);
}

/* The struct of an RD or XRC request begins with that of an atomic, which has the members that
 * all RDMA requests need. */
static void describe_addressed(const struct hca_qp *qp, const struct ib_atomic_wr *in,
			       struct ibv_send_wr *out)
{
	describe(qp, &in->wr, out);
	if (in->wr.opcode == IB_WR_ATOMIC_CMP_AND_SWP || in->wr.opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		return;
	out->wr.rdma.remote_addr = in->remote_addr;
	out->wr.rdma.rkey = in->rkey;
}

static int post_rd(struct hca_qp *qp, const struct ib_rd_wr *wr)
{
	const struct eng_rd_to to = {.ee_context = wr->eec ? wr->eec->eec_num : 0,
				     .qpn = wr->remote_qpn,
				     .qkey = wr->remote_qkey};
	struct ibv_send_wr out;

	describe_addressed(qp, &wr->atomic, &out);
	return eng_post_rd(qp->eng, &out, &to);
}

static int post_xrc(struct hca_qp *qp, const struct ib_xrc_wr *wr)
{
	struct ibv_send_wr out, *bad;

	describe_addressed(qp, &wr->atomic, &out);
	out.qp_type.xrc.remote_srqn = wr->remote_srqn;
	return eng_post_send(qp->eng, &out, &bad, av_of);
}

static int post_one(struct hca_qp *qp, const struct ib_send_wr *wr)
{
	struct ibv_send_wr out, *bad;
	int ret;

	if (qp->ib.qp_type == IB_QPT_RD)
		return post_rd(qp, rd_wr(wr));
	if (wr->opcode == IB_WR_REG_MR)
		return post_register(qp, reg_wr(wr));
	if (wr->opcode == IB_WR_BIND_MW)
		return post_bind(qp, bind_mw_wr(wr));
	if (qp->ib.qp_type == IB_QPT_XRC_INI)
		return post_xrc(qp, xrc_wr(wr));
	ret = qp->ib.qp_type == IB_QPT_GSI ? set_pkey(qp, ud_wr(wr)->pkey_index) : 0;
	if (ret)
		return ret;
	describe(qp, wr, &out);
	return eng_post_send(qp->eng, &out, &bad, av_of);
}

int hca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);

	for (; wr; wr = wr->next) {
		int ret = qp->eng ? post_one(qp, wr) : -EINVAL;

		if (ret) {
			*bad = wr;
			return ret;
		}
	}
	return 0;
}

static struct ibv_recv_wr describe_recv(const struct ib_recv_wr *wr)
{
	return (struct ibv_recv_wr){.wr_id = wr->wr_id,
				    .sg_list = (struct ibv_sge *)wr->sg_list,
				    .num_sge = wr->num_sge};
}

int hca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct hca_qp *qp = container_of(ibqp, struct hca_qp, ib);

	for (; wr; wr = wr->next) {
		struct ibv_recv_wr one = describe_recv(wr), *bad_one;
		int ret = qp->eng ? eng_post_recv(qp->eng, &one, &bad_one) : -EINVAL;
		if (ret) {
			*bad = wr;
			return ret;
		}
	}
	return 0;
}

int hca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	struct hca_srq *srq = container_of(ibsrq, struct hca_srq, ib);

	for (; wr; wr = wr->next) {
		struct ibv_recv_wr one = describe_recv(wr), *bad_one;
		int ret = srq->eng ? eng_srq_post_recv(srq->eng, &one, &bad_one) : -EINVAL;
		if (ret) {
			*bad = wr;
			return ret;
		}
	}
	return 0;
}

/* An XRC target has no CQ. Its completions are in the CQs of SRQs. */
static bool completes_in(const struct hca_qp *qp, const struct hca_cq *cq)
{
	return qp->ib.send_cq == &cq->ib || qp->ib.recv_cq == &cq->ib ||
	       qp->ib.qp_type == IB_QPT_XRC_TGT;
}

/* Return: the midlayer's QP that a completion in @cq belongs to */
static struct hca_qp *qp_of(struct hca *hca, const struct hca_cq *cq, uint32_t qpn)
{
	struct hca_qp *qp;

	list_for_each_entry(qp, &hca->kernel_qps, node)
		if (qp->ib.qp_num == qpn && completes_in(qp, cq))
			return qp;
	return NULL;
}

static void translate(struct hca *hca, const struct hca_cq *cq, const struct ibv_wc *in,
		      struct ib_wc *out)
{
	struct hca_qp *qp = qp_of(hca, cq, in->qp_num);

	*out = (struct ib_wc){
		.wr_id = in->wr_id,
		.status = (enum ib_wc_status)in->status,
		.opcode = (enum ib_wc_opcode)in->opcode,
		.byte_len = in->byte_len,
		.qp = qp ? &qp->ib : NULL,
		.ex.imm_data = in->imm_data,
		.src_qp = in->src_qp,
		.slid = in->slid,
		.wc_flags = (int)in->wc_flags,
		.pkey_index = in->pkey_index,
		.sl = in->sl,
		.dlid_path_bits = in->dlid_path_bits,
		.port_num = qp ? qp->ib.port : 0,
	};
	if (qp && qp->ib.qp_type == IB_QPT_RD)
		out->eec_num = eng_wc_ee_context(in);
}

int hca_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);
	struct ibv_wc some[POLL_AT_ONCE];
	int got = 0, ret = 0;

	if (!cq->eng)
		return -EINVAL;
	while (got < n && (ret = eng_cq_poll(cq->eng, MIN(n - got, POLL_AT_ONCE), some)) > 0)
		for (int i = 0; i < ret; i++)
			translate(hca_of(ibcq->device), cq, &some[i], &wc[got++]);
	return got ? got : ret;
}

int hca_peek_cq(struct ib_cq *ibcq, int wc_cnt)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);

	if (!cq->eng || wc_cnt < 0)
		return -EINVAL;
	return (int)MIN(eng_cq_pending(cq->eng), (uint32_t)wc_cnt);
}

/* IB_CQ_REPORT_MISSED_EVENTS needs nothing here: eng_cq_arm() raises the event of a CQ that is
 * not empty. */
int hca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);

	if (!cq->eng)
		return -EINVAL;
	eng_cq_arm(cq->eng, (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED);
	return 0;
}

int hca_req_ncomp_notif(struct ib_cq *ibcq, int wc_cnt)
{
	struct hca_cq *cq = container_of(ibcq, struct hca_cq, ib);

	if (!cq->eng)
		return -EINVAL;
	eng_cq_arm_for(cq->eng, (uint32_t)wc_cnt);
	return 0;
}
