/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs. softibd gives handle and number. What the QP does is the engine's. */
#include <stdlib.h>

#include "base/vendor.h"
#include "faults.h"
#include "soft.h"

#define RSS_COMP_MASK (IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH)
#define KNOWN_COMP_MASK                                                                        \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |         \
	 IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_IND_TABLE |                        \
	 IBV_QP_INIT_ATTR_RX_HASH | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
#define SUPPORTED_COMP_MASK                                                                    \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_CREATE_FLAGS |         \
	 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | RSS_COMP_MASK)
#define UD_CREATE_FLAGS ((uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)

/** struct part - what a type of QP is made of, and what has no meaning for it */
static const struct parts {
	bool exists, pd, xrcd, send_cq, recv_cq;
} parts[] = {
	[IBV_QPT_RC] = {.exists = true, .pd = true, .send_cq = true, .recv_cq = true},
	[IBV_QPT_UC] = {.exists = true, .pd = true, .send_cq = true, .recv_cq = true},
	[IBV_QPT_UD] = {.exists = true, .pd = true, .send_cq = true, .recv_cq = true},
	[IBV_QPT_RAW_PACKET] = {.exists = true, .pd = true, .send_cq = true, .recv_cq = true},
	[IBV_QPT_XRC_SEND] = {.exists = true, .pd = true, .send_cq = true},
	[IBV_QPT_XRC_RECV] = {.exists = true, .xrcd = true},
};

static const struct parts *parts_of(enum ibv_qp_type type)
{
	static const struct parts none;

	return type < ARRAY_SIZE(parts) ? &parts[type] : &none;
}

static bool has_rss(const struct ibv_qp_init_attr_ex *a)
{
	return a->comp_mask & RSS_COMP_MASK;
}

static bool has_parts(const struct ibv_qp_init_attr_ex *a)
{
	const struct parts *p = parts_of(a->qp_type);

	if (has_rss(a)) /* its work queues have the rest */
		return a->comp_mask & IBV_QP_INIT_ATTR_PD && a->pd;

	return (!p->pd || (a->comp_mask & IBV_QP_INIT_ATTR_PD && a->pd)) &&
	       (!p->xrcd || (a->comp_mask & IBV_QP_INIT_ATTR_XRCD && a->xrcd)) &&
	       (!p->send_cq || a->send_cq) && (!p->recv_cq || a->recv_cq);
}

/* Another context has an engine and numbers of its own. */
static bool are_of(const struct soft_context *ctx, const struct ibv_qp_init_attr_ex *a)
{
	const struct ibv_context *context = &ctx->v.context;

	return (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd || a->pd->context == context) &&
	       (!a->send_cq || a->send_cq->context == context) &&
	       (!a->recv_cq || a->recv_cq->context == context) &&
	       (!a->srq || a->srq->context == context) &&
	       (!(a->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !a->xrcd ||
		a->xrcd->context == context) &&
	       (!has_rss(a) || !a->rwq_ind_tbl || a->rwq_ind_tbl->context == context);
}

static uint32_t create_flags(const struct ibv_qp_init_attr_ex *a)
{
	return a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? a->create_flags : 0;
}

static int check_init(struct soft_context *ctx, const struct ibv_qp_init_attr_ex *a)
{
	const struct ibv_qp_cap *cap = &a->cap;
	int rc;

	if (a->comp_mask & ~(uint32_t)KNOWN_COMP_MASK)
		return -EINVAL;
	if (a->comp_mask & ~(uint32_t)SUPPORTED_COMP_MASK ||
	    create_flags(a) & ~(a->qp_type == IBV_QPT_UD ? UD_CREATE_FLAGS : 0u))
		return -EOPNOTSUPP;
	if (!parts_of(a->qp_type)->exists)
		return -EOPNOTSUPP;
	if (a->qp_type == IBV_QPT_RAW_PACKET && !device_has_ethernet(ctx))
		return -EOPNOTSUPP;
	if (!has_parts(a) || !are_of(ctx, a))
		return -EINVAL;
	rc = has_rss(a) ? wq_rss_check(a) : 0;
	if (rc)
		return rc;
	if (cap->max_send_wr > (uint32_t)ctx->attr.orig_attr.max_qp_wr ||
	    cap->max_send_sge > (uint32_t)ctx->attr.orig_attr.max_sge ||
	    cap->max_inline_data > TP_MAX_INLINE)
		return -EINVAL;
	if (!a->srq && (cap->max_recv_wr > (uint32_t)ctx->attr.orig_attr.max_qp_wr ||
			cap->max_recv_sge > (uint32_t)ctx->attr.orig_attr.max_sge))
		return -EINVAL;
	return 0;
}

static int command_destroy(struct soft_context *ctx, uint32_t handle)
{
	struct ib_uverbs_destroy_qp req = {.qp_handle = handle};
	struct ib_uverbs_destroy_qp_resp resp;

	return session_destroy(ctx, IB_USER_VERBS_CMD_DESTROY_QP, &req, sizeof(req), &resp,
			       sizeof(resp));
}

static void take_answer(struct soft_qp *qp, const struct ib_uverbs_create_qp_resp *resp)
{
	qp->ibv.handle = resp->qp_handle;
	qp->ibv.qp_num = resp->qpn;
	qp->cap.max_inline_data = resp->max_inline_data;
}

/** qp_open() - OPEN_QP: sets handle, number and limits of @qp. Return: 0; -errno */
int qp_open(struct soft_context *ctx, struct soft_qp *qp, const struct ib_uverbs_open_qp *req)
{
	struct ib_uverbs_create_qp_resp resp;
	int rc = session_command(ctx, IB_USER_VERBS_CMD_OPEN_QP, req, sizeof(*req), &resp, sizeof(resp));

	if (!rc)
		take_answer(qp, &resp);
	return rc;
}

static int command_create(struct soft_context *ctx, struct soft_qp *qp)
{
	struct ib_uverbs_create_qp req = {
		.user_handle = qp->object.id,
		.pd_handle = qp->xrcd ? to_xrcd(qp->xrcd)->handle : qp->ibv.pd->handle,
		.send_cq_handle = qp->ibv.send_cq ? qp->ibv.send_cq->handle : 0,
		.recv_cq_handle = qp->ibv.recv_cq ? qp->ibv.recv_cq->handle : 0,
		.srq_handle = qp->ibv.srq ? qp->ibv.srq->handle : 0,
		.max_send_wr = qp->cap.max_send_wr,
		.max_recv_wr = qp->cap.max_recv_wr,
		.max_send_sge = qp->cap.max_send_sge,
		.max_recv_sge = qp->cap.max_recv_sge,
		.max_inline_data = qp->cap.max_inline_data,
		.sq_sig_all = qp->sq_sig_all,
		.qp_type = (uint8_t)qp->ibv.qp_type,
		.is_srq = qp->ibv.srq != NULL,
	};

	struct ib_uverbs_create_qp_resp resp;
	int rc;

	qp->granted = !(qp->ibv.srq && to_srq(qp->ibv.srq)->srqn); /* softibd refuses an SRQ of XRC */
	rc = session_create_qp(ctx, &req, &resp, &qp->granted);
	if (!rc)
		take_answer(qp, &resp);
	return rc;
}

static int engine_create(struct soft_context *ctx, struct soft_qp *qp, uint32_t flags)
{
	struct soft_srq *srq = to_srq(qp->ibv.srq);
	struct soft_cq *send_cq = to_cq(qp->ibv.send_cq), *recv_cq = to_cq(qp->ibv.recv_cq);
	struct eng_qp_init init = {
		.qpn = qp->ibv.qp_num,
		.type = qp->ibv.qp_type == IBV_QPT_RAW_PACKET ? IBV_QPT_UD : qp->ibv.qp_type,
		.is_raw = qp->ibv.qp_type == IBV_QPT_RAW_PACKET,
		.pd = qp->xrcd ? 0 : qp->ibv.pd->handle,
		.xrcd = qp->xrcd ? to_xrcd(qp->xrcd)->number : 0,
		.send_cq = send_cq ? send_cq->eng : NULL,
		.recv_cq = recv_cq ? recv_cq->eng : send_cq ? send_cq->eng : NULL,
		.srq = srq ? srq->eng : NULL,
		.max_send_wr = qp->cap.max_send_wr,
		.max_recv_wr = qp->cap.max_recv_wr,
		.max_send_sge = qp->cap.max_send_sge,
		.max_recv_sge = qp->cap.max_recv_sge,
		.max_inline = qp->cap.max_inline_data,
		.max_sge_rd = (uint32_t)ctx->attr.orig_attr.max_sge_rd,
		.sq_sig_all = qp->sq_sig_all,
		.blocks_own_multicast = flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
		.ctx = &qp->object,
		.memory = qp->xrcd ? NULL : pd_memory(qp->ibv.pd),
	};

	return eng_qp_create(ctx->engine, &init, &qp->eng);
}

/* Allocate what was asked for: no queue or list has zero entries where that would be useless,
 * and none exists that the QP's type does not have. */
static void round_up_cap(struct ibv_qp_cap *cap, const struct parts *p, bool srq)
{
	cap->max_send_sge = MAX(cap->max_send_sge, 1u);
	cap->max_recv_sge = MAX(cap->max_recv_sge, 1u);
	if (srq || !p->recv_cq)
		cap->max_recv_sge = cap->max_recv_wr = 0;
	if (!p->send_cq)
		cap->max_send_sge = cap->max_send_wr = cap->max_inline_data = 0;
}

static int build(struct soft_context *ctx, struct soft_qp *qp,
		 const struct ibv_qp_init_attr_ex *attr)
{
	uint64_t send_ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
				    ? attr->send_ops_flags : 0;
	int rc = command_create(ctx, qp);

	if (rc)
		return rc;
	rc = engine_create(ctx, qp, create_flags(attr));
	if (rc)
		goto undo_command;
	rc = send_ops ? qp_ex_prepare(qp, send_ops) : 0;
	if (!rc && has_rss(attr))
		rc = wq_rss_start(qp, attr);
	if (!rc)
		return 0;
	qp_ex_free(qp);
	eng_qp_destroy(qp->eng);
undo_command:
	command_destroy(ctx, qp->ibv.handle);
	return rc;
}

/* The engine requires CQs even of a QP that passes all its frames on. */
static struct ibv_cq *send_cq_of(const struct ibv_qp_init_attr_ex *attr)
{
	return has_rss(attr) ? wq_rss_cq(attr) : attr->send_cq;
}

static struct ibv_cq *recv_cq_of(const struct ibv_qp_init_attr_ex *attr)
{
	return has_rss(attr) ? wq_rss_cq(attr) : attr->recv_cq;
}

/**
 * qp_create_ex() - ibv_create_qp_ex()
 * Return: the QP in RESET, attr->cap set to what it can; NULL and errno:
 * EINVAL limits or a missing CQ or PD, EOPNOTSUPP type or feature, ENOMEM, EIO
 */
struct ibv_qp *qp_create_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct soft_context *ctx = to_context(context);
	const struct parts *p = parts_of(attr->qp_type);
	struct soft_qp *qp;
	int rc = check_init(ctx, attr);

	if (rc)
		return verbs_null(rc);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return verbs_null(-ENOMEM);
	qp->ibv = (struct ibv_qp){
		.context = context,
		.qp_context = attr->qp_context,
		/* librdmacm takes the PD of an XRC target, which has no use for it, for its SRQs */
		.pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL,
		.send_cq = p->send_cq ? send_cq_of(attr) : NULL,
		.recv_cq = p->recv_cq ? recv_cq_of(attr) : NULL,
		.srq = p->recv_cq ? attr->srq : NULL,
		.state = IBV_QPS_RESET,
		.qp_type = attr->qp_type,
	};
	qp->xrcd = p->xrcd ? attr->xrcd : NULL;
	faults_watch();
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	qp->sq_sig_all = attr->sq_sig_all != 0;
	qp->cap = attr->cap;
	round_up_cap(&qp->cap, p, attr->srq != NULL);
	object_init(ctx, &qp->object, SOFT_QP);
	rc = build(ctx, qp, attr);
	if (rc) {
		free(qp);
		return verbs_null(rc);
	}
	if (has_rss(attr))
		qp->ibv.send_cq = qp->ibv.recv_cq = NULL;
	object_show(ctx, &qp->object);
	if (p->pd)
		pd_hold(attr->pd);
	attr->cap = qp->cap;
	return &qp->ibv;
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = init->qp_context,
		.send_cq = init->send_cq,
		.recv_cq = init->recv_cq,
		.srq = init->srq,
		.cap = init->cap,
		.qp_type = init->qp_type,
		.sq_sig_all = init->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = qp_create_ex(pd->context, &attr);

	if (qp)
		init->cap = attr.cap;
	return qp;
}

/** ibv_query_qp() - all attributes, whatever @mask says; but @ibqp->state, which is
 *  the program's own note, follows only when it asks for the state */
EXPORT int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init)
{
	struct soft_qp *qp = to_qp(ibqp);

	memset(attr, 0, sizeof(*attr));
	if (ibqp->qp_type != IBV_QPT_XRC_RECV || !eng_target_is_shared(qp->eng))
		eng_qp_query(qp->eng, attr);
	else if (target_query(to_context(ibqp->context), qp, attr))
		return verbs_err(-EIO);
	attr->cap = qp->cap;
	if (device_is_ethernet(to_context(ibqp->context), attr->ah_attr.port_num)) {
		attr->ah_attr.dlid = attr->alt_ah_attr.dlid = 0; /* stations, and VLANs: */
		attr->ah_attr.src_path_bits = attr->alt_ah_attr.src_path_bits = 0;
	}
	if (mask & IBV_QP_STATE)
		ibqp->state = attr->qp_state;
	*init = (struct ibv_qp_init_attr){
		.qp_context = ibqp->qp_context,
		.send_cq = ibqp->send_cq,
		.recv_cq = ibqp->recv_cq,
		.srq = ibqp->srq,
		.cap = qp->cap,
		.qp_type = ibqp->qp_type,
		.sq_sig_all = qp->sq_sig_all,
	};
	return 0;
}

/** ibv_query_qp_data_in_order() - 0: a packet's payload is copied by memcpy,
 *  which promises no order of its bytes */
EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

static int destroy(struct soft_context *ctx, struct soft_qp *qp)
{
	int rc = command_destroy(ctx, qp->ibv.handle);

	if (rc == -EINVAL && qp->granted) /* softibd had no memory for it, and has raised an event */
		rc = 0;
	if (rc)
		return rc;
	object_hide(ctx, &qp->object);
	if (!ctx->forked)
		eng_qp_destroy(qp->eng);
	return 0;
}

/** ibv_destroy_qp() - Context: waits until its asynchronous events are
 *  acknowledged. Its completions leave the CQs. Return: 0; EBUSY while it is
 *  attached to a multicast group */
EXPORT int ibv_destroy_qp(struct ibv_qp *ibqp)
{
	struct soft_context *ctx = to_context(ibqp->context);
	struct soft_qp *qp = to_qp(ibqp);
	int rc;

	context_settle(ctx, qp->eng);
	rc = ibqp->qp_type == IBV_QPT_XRC_RECV ? target_close(ctx, qp) : destroy(ctx, qp);
	if (rc)
		return verbs_err(rc);
	object_purge(ctx, &qp->object);
	object_wait(ctx, &qp->object, &ibqp->mutex, &ibqp->cond, &ibqp->events_completed);
	wq_rss_end(qp);
	qp_ex_free(qp);
	if (parts_of(ibqp->qp_type)->pd)
		pd_release(ibqp->pd);
	free(qp);
	return 0;
}

/** qp_post_send() - ibv_post_send(): copies the list, sends what may go now */
int qp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return verbs_err(eng_post_send(to_qp(qp)->eng, wr, bad, ah_av));
}

int qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return verbs_err(eng_post_recv(to_qp(qp)->eng, wr, bad));
}

/* Options that two QPs of one vendor agree on while they are connected. softib's QPs understand
 * each other without any, so they name their vendor and no option. */

/** ibv_set_ece() - what the peer offers. Options that we do not know are not taken over, as
 *  ibv_query_ece() shows. 0; EINVAL another vendor's, or members that came later */
EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return verbs_err(ece->comp_mask || ece->vendor_id != SOFTIB_VENDOR_ID ? -EINVAL : 0);
}

EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	*ece = (struct ibv_ece){.vendor_id = SOFTIB_VENDOR_ID};
	return 0;
}

static int command_mcast(struct ibv_qp *qp, uint32_t command, const union ibv_gid *gid,
			 uint16_t lid)
{
	struct ib_uverbs_attach_mcast req = {.qp_handle = qp->handle, .mlid = lid};

	memcpy(req.gid, gid->raw, sizeof(req.gid));
	return session_command(to_context(qp->context), command, &req, sizeof(req), NULL, 0);
}

/**
 * ibv_attach_mcast() - receive what is sent to a multicast group
 * Return: 0; EINVAL no UD QP, or no multicast address; ENOMEM; EIO
 * Spec: IBA v1 11.3.1
 */
EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	union wire_gid wire;
	int rc;

	if (qp->qp_type != IBV_QPT_UD || gid->raw[0] != 0xff)
		return verbs_err(-EINVAL);
	memcpy(wire.raw, gid->raw, sizeof(wire.raw));
	rc = command_mcast(qp, IB_USER_VERBS_CMD_ATTACH_MCAST, gid, lid);
	if (rc)
		return verbs_err(rc);
	rc = eng_qp_attach_mcast(to_qp(qp)->eng, &wire, lid);
	if (rc)
		command_mcast(qp, IB_USER_VERBS_CMD_DETACH_MCAST, gid, lid);
	return verbs_err(rc);
}

EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	union wire_gid wire;
	int rc;

	memcpy(wire.raw, gid->raw, sizeof(wire.raw));
	rc = eng_qp_detach_mcast(to_qp(qp)->eng, &wire, lid);
	if (!rc)
		rc = command_mcast(qp, IB_USER_VERBS_CMD_DETACH_MCAST, gid, lid);
	return verbs_err(rc);
}
