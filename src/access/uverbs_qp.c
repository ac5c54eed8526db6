/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands for queue pairs, address handles and multicast attachments. A program's QP is in the
 * program's engine. softibd assigns its number, follows its state by the modify commands, and forwards
 * packets by its number.
 */
#include "abi/ah.h"
#include "access/uverbs_private.h"

#include <errno.h>
#include <string.h>

/* --- conversions --- */

static void dest_to_ah(const struct ib_uverbs_qp_dest *dest, struct rdma_ah_attr *ah)
{
	*ah = (struct rdma_ah_attr){.ah_flags = dest->is_global ? IB_AH_GRH : 0};
	ABI_COPY_AH(*ah, *dest);
	ABI_COPY_GRH(ah->grh, *dest);
	memcpy(ah->grh.dgid.raw, dest->dgid, sizeof(dest->dgid));
}

static void ah_to_dest(const struct rdma_ah_attr *ah, struct ib_uverbs_qp_dest *dest)
{
	*dest = (struct ib_uverbs_qp_dest){.is_global = !!(ah->ah_flags & IB_AH_GRH)};
	ABI_COPY_AH(*dest, *ah);
	ABI_COPY_GRH(*dest, ah->grh);
	memcpy(dest->dgid, ah->grh.dgid.raw, sizeof(dest->dgid));
}

/* The attributes that the structs of the modify and the query command have in common. */
#define EACH_SCALAR(X)                                                         \
	X(qkey) X(rq_psn) X(sq_psn) X(dest_qp_num) X(pkey_index) X(alt_pkey_index) \
	X(max_rd_atomic) X(max_dest_rd_atomic) X(min_rnr_timer) X(port_num)    \
	X(timeout) X(retry_cnt) X(rnr_retry) X(alt_port_num) X(alt_timeout)

/* --- queue pairs --- */

/* Look up the objects that the handles name. Return: 0; -errno */
static int find_parts(struct ib_ucontext *context, const struct ib_uverbs_create_qp *in,
		      struct ib_pd **pd, struct ib_qp_init_attr *attr)
{
	*pd = NULL;
	if (in->qp_type == IB_QPT_XRC_TGT) { /* pd_handle names the XRC domain */
		attr->xrcd = ib_uobject_get(context, IB_UOBJECT_XRCD, in->pd_handle);
		return IS_ERR(attr->xrcd) ? -EINVAL : 0;
	}
	*pd = ib_uobject_get(context, IB_UOBJECT_PD, in->pd_handle);
	attr->send_cq = ib_uobject_get(context, IB_UOBJECT_CQ, in->send_cq_handle);
	if (in->qp_type != IB_QPT_XRC_INI)
		attr->recv_cq = ib_uobject_get(context, IB_UOBJECT_CQ, in->recv_cq_handle);
	attr->srq = in->is_srq ? ib_uobject_get(context, IB_UOBJECT_SRQ, in->srq_handle) : NULL;
	if (IS_ERR(*pd) || IS_ERR(attr->send_cq) || IS_ERR(attr->recv_cq) || IS_ERR(attr->srq))
		return -EINVAL;
	return 0;
}

static void answer_create(struct ib_uverbs_create_qp_resp *out, const struct ib_uobject *uobject,
			  const struct ib_qp *qp)
{
	out->qp_handle = uobject->handle;
	out->qpn = qp->qp_num;
	out->max_send_wr = qp->cap.max_send_wr;
	out->max_recv_wr = qp->cap.max_recv_wr;
	out->max_send_sge = qp->cap.max_send_sge;
	out->max_recv_sge = qp->cap.max_recv_sge;
	out->max_inline_data = qp->cap.max_inline_data;
}

/* Create a QP with the handle of @uobject, which is freed on failure. Return: 0; -errno */
static int create_qp(struct session *s, const struct ib_uverbs_create_qp *in, struct ib_uobject *uobject)
{
	struct ib_qp_init_attr attr = {
		.cap = {.max_send_wr = in->max_send_wr,
			.max_recv_wr = in->max_recv_wr,
			.max_send_sge = in->max_send_sge,
			.max_recv_sge = in->max_recv_sge,
			.max_inline_data = in->max_inline_data},
		.sq_sig_type = in->sq_sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
		.qp_type = in->qp_type,
	};
	struct ib_pd *pd;
	struct ib_qp *qp;
	int ret = find_parts(s->context, in, &pd, &attr);

	if (!ret && attr.qp_type == IB_QPT_RAW_PACKET && !uverbs_may_send_raw(s))
		ret = -EPERM;
	qp = ret ? ERR_PTR(ret) : ib_create_qp_user(uobject, pd, &attr);
	ret = ib_uobject_commit(uobject, qp);
	if (ret)
		return ret;
	uobject->user_handle = in->user_handle;
	qp->event_handler = qp->qp_type == IB_QPT_XRC_TGT ? uverbs_target_event : uverbs_object_event;
	qp->qp_context = uobject;
	return 0;
}

/* The program asks: it has none left, or wants another kind. What is granted and not used is in nobody's way. */
static void take_grant_back(struct session *s)
{
	while (s->num_granted)
		ib_uobject_abort(s->granted[--s->num_granted]);
}

static void grant_qps(struct session *s, struct abi_created_qp *out)
{
	while (out->count < MIN(s->qps_created, (unsigned)ABI_QPS_GRANTED)) {
		struct ib_uobject *uobject = ib_uobject_reserve_qp(s->context);

		if (!uobject)
			return;
		out->granted[out->count++] = (struct abi_granted_qp){uobject->handle, uobject->qpn};
		s->granted[s->num_granted++] = uobject;
	}
}

int cmd_create_qp(struct call *call)
{
	const struct ib_uverbs_create_qp *in = call->in;
	struct session *s = call->session;
	struct ib_uobject *uobject;
	int ret;

	take_grant_back(s);
	uobject = ib_uobject_alloc(s->context, IB_UOBJECT_QP);
	ret = IS_ERR(uobject) ? (int)PTR_ERR(uobject) : create_qp(s, in, uobject);
	if (ret)
		return ret;
	answer_create(call->out, uobject, uobject->object);
	if (call->room < sizeof(struct abi_created_qp))
		return 0;
	call->out_bytes = sizeof(struct abi_created_qp);
	if (in->qp_type == IB_QPT_RC) {
		s->qps_created++;
		grant_qps(s, call->out);
	}
	return 0;
}

/* Return: the object that was granted with this handle, and is so no more; NULL */
static struct ib_uobject *take_granted(struct session *s, uint32_t handle)
{
	struct ib_uobject *found;

	for (unsigned int i = 0; i < s->num_granted; i++) {
		if (s->granted[i]->handle != handle)
			continue;
		found = s->granted[i];
		s->granted[i] = s->granted[--s->num_granted];
		return found;
	}
	return NULL;
}

/* The program goes on with its QP already: a refusal is an error of that QP. */
int cmd_created_qp(struct call *call)
{
	const struct abi_create_granted_qp *in = call->in;
	struct ib_uobject *uobject = take_granted(call->session, in->handle);

	call->unanswered = true;
	if (uobject && !create_qp(call->session, &in->cmd, uobject))
		call->session->qps_created++;
	else
		uverbs_send_event(call->session, IB_EVENT_QP_FATAL, in->cmd.user_handle);
	return 0;
}

/* Open an XRC target QP by its number, in a domain that the program has open, as ib_uverbs_open_qp() of
 * the kernel does. */
int cmd_open_qp(struct call *call)
{
	const struct ib_uverbs_open_qp *in = call->in;
	struct ib_ucontext *context = call->session->context;
	struct ib_xrcd *xrcd = ib_uobject_get(context, IB_UOBJECT_XRCD, in->pd_handle);
	struct ib_uobject *uobject;
	struct ib_qp *qp;
	int ret;

	if (IS_ERR(xrcd) || in->qp_type != IB_QPT_XRC_TGT)
		return -EINVAL;
	uobject = ib_uobject_alloc(context, IB_UOBJECT_QP);
	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	uobject->user_handle = in->user_handle;
	qp = ib_open_qp_user(uobject, xrcd, in->qpn);
	ret = ib_uobject_commit(uobject, qp);
	if (!ret)
		answer_create(call->out, uobject, qp);
	return ret;
}

int cmd_query_qp(struct call *call)
{
	const struct ib_uverbs_query_qp *in = call->in;
	struct ib_uverbs_query_qp_resp *out = call->out;
	struct ib_qp *qp = ib_uobject_get(call->session->context, IB_UOBJECT_QP, in->qp_handle);
	struct ib_qp_init_attr init;
	struct ib_qp_attr a;
	int ret;

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	ret = ib_query_qp(qp, &a, (int)in->attr_mask, &init);
	if (ret)
		return ret;
#define TO_OUT(field) out->field = a.field;
	EACH_SCALAR(TO_OUT)
#undef TO_OUT
	out->qp_access_flags = (u32)a.qp_access_flags;
	out->qp_state = (u8)a.qp_state;
	out->cur_qp_state = (u8)a.cur_qp_state;
	out->path_mtu = (u8)a.path_mtu;
	out->path_mig_state = (u8)a.path_mig_state;
	out->sq_draining = a.sq_draining;
	out->max_send_wr = a.cap.max_send_wr;
	out->max_recv_wr = a.cap.max_recv_wr;
	out->max_send_sge = a.cap.max_send_sge;
	out->max_recv_sge = a.cap.max_recv_sge;
	out->max_inline_data = a.cap.max_inline_data;
	out->sq_sig_all = init.sq_sig_type == IB_SIGNAL_ALL_WR;
	ah_to_dest(&a.ah_attr, &out->dest);
	ah_to_dest(&a.alt_ah_attr, &out->alt_dest);
	return 0;
}

/* Programs modify an XRC QP with the attributes of an RC QP. Attributes that its half of the connection
 * does not have are ignored, as in the kernel (drivers/infiniband/core/uverbs_cmd.c). */
static int meaningful(enum ib_qp_type type, u32 mask)
{
	if (type == IB_QPT_XRC_INI)
		mask &= ~(u32)(IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (type == IB_QPT_XRC_TGT)
		mask &= ~(u32)(IB_QP_MAX_QP_RD_ATOMIC | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY);
	return (int)mask;
}

static int modify(struct call *call, const struct ib_uverbs_modify_qp *in, u32 rate_limit)
{
	struct ib_qp *qp = ib_uobject_get(call->session->context, IB_UOBJECT_QP, in->qp_handle);
	struct ib_qp_attr a = {
		.qp_state = in->qp_state,
		.cur_qp_state = in->cur_qp_state,
		.path_mtu = in->path_mtu,
		.path_mig_state = in->path_mig_state,
		.qp_access_flags = (int)in->qp_access_flags,
		.en_sqd_async_notify = in->en_sqd_async_notify,
		.rate_limit = rate_limit,
	};

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
#define FROM_IN(field) a.field = in->field;
	EACH_SCALAR(FROM_IN)
#undef FROM_IN
	dest_to_ah(&in->dest, &a.ah_attr);
	dest_to_ah(&in->alt_dest, &a.alt_ah_attr);
	return ib_modify_qp(qp, &a, meaningful(qp->qp_type, in->attr_mask));
}

/* The struct has no member for the static rate. */
int cmd_modify_qp(struct call *call)
{
	const struct ib_uverbs_modify_qp *in = call->in;

	return in->attr_mask & IB_QP_RATE_LIMIT ? -EOPNOTSUPP : modify(call, in, 0);
}

int cmd_ex_modify_qp(struct call *call)
{
	const struct ib_uverbs_ex_modify_qp *in = call->in;
	struct ib_uverbs_ex_modify_qp_resp *out = call->out;

	if (in->reserved)
		return -EINVAL;
	out->response_length = sizeof(*out);
	return modify(call, &in->base, in->rate_limit);
}

/* The program has made the transition already: a refusal is an error of its QP, if it names one. */
int cmd_modified(struct call *call)
{
	const struct ib_uverbs_modify_qp *in = call->in;
	struct ib_qp *qp = ib_uobject_get(call->session->context, IB_UOBJECT_QP, in->qp_handle);
	int ret = cmd_modify_qp(call);

	call->unanswered = true;
	if (ret && !IS_ERR(qp) && qp->qp_type != IB_QPT_XRC_TGT) {
		struct ib_event event = {.device = qp->device, .element.qp = qp, .event = IB_EVENT_QP_FATAL};

		uverbs_object_event(&event, qp->qp_context);
	}
	return 0;
}

int cmd_destroy_qp(struct call *call)
{
	const struct ib_uverbs_destroy_qp *in = call->in;
	struct ib_uverbs_destroy_qp_resp *out = call->out;
	struct ib_qp *qp = ib_uobject_get(call->session->context, IB_UOBJECT_QP, in->qp_handle);

	if (!IS_ERR(qp) && ib_target_has_others(qp))
		out->events_reported = ABI_TARGET_LIVES;
	return ib_uobject_destroy(call->session->context, IB_UOBJECT_QP, in->qp_handle);
}

/* --- address handles --- */

int cmd_create_ah(struct call *call)
{
	const struct ib_uverbs_create_ah *in = call->in;
	struct ib_uverbs_create_ah_resp *out = call->out;
	struct ib_ucontext *context = call->session->context;
	struct ib_pd *pd = ib_uobject_get(context, IB_UOBJECT_PD, in->pd_handle);
	struct rdma_ah_attr attr = {.ah_flags = in->attr.is_global ? IB_AH_GRH : 0};
	struct ib_uobject *uobject;
	struct ib_ah *ah;
	int ret;

	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	ABI_COPY_AH(attr, in->attr);
	ABI_COPY_GRH(attr.grh, in->attr.grh);
	memcpy(attr.grh.dgid.raw, in->attr.grh.dgid, sizeof(attr.grh.dgid.raw));
	uobject = ib_uobject_alloc(context, IB_UOBJECT_AH);
	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	uobject->user_handle = in->user_handle;
	ah = ib_create_ah_user(uobject, pd, &attr);
	ret = ib_uobject_commit(uobject, ah);
	if (ret)
		return ret;
	out->ah_handle = uobject->handle;
	return 0;
}

int cmd_destroy_ah(struct call *call)
{
	const struct ib_uverbs_destroy_ah *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_AH, in->ah_handle);
}

/* --- multicast --- */

int cmd_attach_mcast(struct call *call)
{
	const struct ib_uverbs_attach_mcast *in = call->in;
	struct ib_qp *qp = ib_uobject_get(call->session->context, IB_UOBJECT_QP, in->qp_handle);
	union ib_gid gid;

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	memcpy(gid.raw, in->gid, sizeof(gid.raw));
	return ib_attach_mcast(qp, &gid, in->mlid);
}

int cmd_detach_mcast(struct call *call)
{
	const struct ib_uverbs_detach_mcast *in = call->in;
	struct ib_qp *qp = ib_uobject_get(call->session->context, IB_UOBJECT_QP, in->qp_handle);
	union ib_gid gid;

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	memcpy(gid.raw, in->gid, sizeof(gid.raw));
	return ib_detach_mcast(qp, &gid, in->mlid);
}
