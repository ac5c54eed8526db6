/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared receive queues (IBA v1 10.2.9). */
#include <stdlib.h>

#include "soft.h"

static int command_destroy(struct soft_context *ctx, uint32_t handle)
{
	struct ib_uverbs_destroy_srq req = {.srq_handle = handle};
	struct ib_uverbs_destroy_srq_resp resp;

	return session_destroy(ctx, IB_USER_VERBS_CMD_DESTROY_SRQ, &req, sizeof(req), &resp,
			       sizeof(resp));
}

/* Return: 0, and srq->ibv.handle and srqn. @xrcd, @cq: NULL, it is no SRQ of XRC */
static int command_create(struct soft_context *ctx, struct soft_srq *srq,
			  const struct ibv_srq_attr *attr, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ib_uverbs_create_srq req = {
		.user_handle = srq->object.id,
		.pd_handle = srq->ibv.pd->handle,
		.max_wr = attr->max_wr,
		.max_sge = attr->max_sge,
		.srq_limit = attr->srq_limit,
	};
	struct ib_uverbs_create_xsrq xreq = {
		.user_handle = req.user_handle,
		.srq_type = IBV_SRQT_XRC,
		.pd_handle = req.pd_handle,
		.max_wr = req.max_wr,
		.max_sge = req.max_sge,
		.srq_limit = req.srq_limit,
		.xrcd_handle = xrcd ? to_xrcd(xrcd)->handle : 0,
		.cq_handle = cq ? cq->handle : 0,
	};
	struct ib_uverbs_create_srq_resp resp;
	int rc = xrcd ? session_command(ctx, IB_USER_VERBS_CMD_CREATE_XSRQ, &xreq, sizeof(xreq),
					&resp, sizeof(resp)) :
			session_command(ctx, IB_USER_VERBS_CMD_CREATE_SRQ, &req, sizeof(req), &resp,
					sizeof(resp));

	if (rc)
		return rc;
	srq->ibv.handle = resp.srq_handle;
	srq->srqn = resp.srqn;
	return 0;
}

/** struct kind - what an SRQ is beside a receive queue: of an XRC domain, or one that matches
 *  tags; else all is zero */
struct kind {
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq; /* of what is received into it */
	uint32_t max_tags;
};

static int become(struct soft_srq *srq, const struct kind *kind)
{
	if (kind->xrcd)
		return eng_srq_join_xrcd(srq->eng, srq->srqn, to_xrcd(kind->xrcd)->number,
					 to_cq(kind->cq)->eng);
	if (kind->max_tags)
		return eng_srq_match_tags(srq->eng, to_cq(kind->cq)->eng, kind->max_tags);
	return 0;
}

static int create(struct soft_context *ctx, struct soft_srq *srq, struct ibv_srq_attr *attr,
		  const struct kind *kind)
{
	int rc = command_create(ctx, srq, attr, kind->xrcd, kind->cq);

	if (rc)
		return rc;
	rc = eng_srq_create_in(ctx->engine, pd_memory(srq->ibv.pd), srq->ibv.pd->handle,
			       attr->max_wr, attr->max_sge, attr->srq_limit, &srq->object,
			       &srq->eng);
	if (rc)
		goto undo_command;
	rc = become(srq, kind);
	if (rc)
		goto undo_engine;
	eng_srq_query(srq->eng, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
	return 0;
undo_engine:
	eng_srq_destroy(srq->eng);
undo_command:
	command_destroy(ctx, srq->ibv.handle);
	return rc;
}

static struct ibv_srq *make(struct ibv_pd *pd, void *srq_context, struct ibv_srq_attr *wanted,
			    const struct kind *kind)
{
	struct soft_context *ctx = to_context(pd->context);
	struct ibv_srq_attr attr = *wanted;
	struct soft_srq *srq;
	int rc;

	if (!ctx->attr.orig_attr.max_srq)
		return verbs_null(-EOPNOTSUPP);
	if (!attr.max_wr || attr.max_wr > (uint32_t)ctx->attr.orig_attr.max_srq_wr ||
	    attr.max_sge > (uint32_t)ctx->attr.orig_attr.max_srq_sge)
		return verbs_null(-EINVAL);
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return verbs_null(-ENOMEM);
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = srq_context;
	srq->ibv.pd = pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	object_init(ctx, &srq->object, SOFT_SRQ);
	rc = create(ctx, srq, &attr, kind);
	if (rc) {
		free(srq);
		return verbs_null(rc);
	}
	object_show(ctx, &srq->object);
	pd_hold(pd);
	*wanted = attr;
	return &srq->ibv;
}

/**
 * ibv_create_srq() - a receive queue for many QPs
 * @init: attr is set to what was made, at least what was asked for
 * Return: the SRQ; NULL and errno: EINVAL limits, ENOMEM, EIO
 */
EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return make(pd, init->srq_context, &init->attr, &(struct kind){0});
}

/* Return: 0; -EINVAL something that the type needs is missing, or too large; -EOPNOTSUPP */
static int kind_of(const struct soft_context *ctx, const struct ibv_srq_init_attr_ex *attr,
		   struct kind *kind)
{
	uint32_t needs = IBV_SRQ_INIT_ATTR_PD;

	switch (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC) {
	case IBV_SRQT_BASIC:
		break;
	case IBV_SRQT_XRC:
		needs |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		*kind = (struct kind){.xrcd = attr->xrcd, .cq = attr->cq};
		break;
	case IBV_SRQT_TM:
		if (!ctx->attr.tm_caps.max_num_tags)
			return -EOPNOTSUPP;
		needs |= IBV_SRQ_INIT_ATTR_TM | IBV_SRQ_INIT_ATTR_CQ;
		*kind = (struct kind){.cq = attr->cq, .max_tags = attr->tm_cap.max_num_tags};
		break;
	default:
		return -EOPNOTSUPP;
	}
	if ((attr->comp_mask & needs) != needs || !attr->pd ||
	    (needs & IBV_SRQ_INIT_ATTR_XRCD && !attr->xrcd) ||
	    (needs & IBV_SRQ_INIT_ATTR_CQ && !attr->cq) ||
	    (needs & IBV_SRQ_INIT_ATTR_TM &&
	     (!kind->max_tags || kind->max_tags > ctx->attr.tm_caps.max_num_tags ||
	      attr->tm_cap.max_ops > ctx->attr.tm_caps.max_ops)))
		return -EINVAL;
	return 0;
}

/** srq_create_ex() - plain SRQs; those of an XRC domain and those that match tags, which have a
 *  CQ of their own. EINVAL; EOPNOTSUPP: the adapter has no SRQs of that type */
struct ibv_srq *srq_create_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	struct kind kind = {0};
	int rc;

	if (attr->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return verbs_null(-EINVAL);
	rc = kind_of(to_context(context), attr, &kind);
	/* another context has an engine and numbers of its own */
	if (!rc && (attr->pd->context != context || (kind.cq && kind.cq->context != context) ||
		    (kind.xrcd && kind.xrcd->context != context)))
		rc = -EINVAL;
	if (rc)
		return verbs_null(rc);
	return make(attr->pd, attr->srq_context, &attr->attr, &kind);
}

/** srq_post_ops() - ibv_post_srq_ops(): buffers into the list of an SRQ that matches tags, and
 *  out of it. Return: 0; EINVAL; ENOMEM the list is full; *@bad the first that was not done */
int srq_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad)
{
	return verbs_err(eng_srq_post_ops(to_srq(srq)->eng, wr, bad));
}

/** srq_get_num() - ibv_get_srq_num(): what a peer names the SRQ by. EOPNOTSUPP: it is not of
 *  an XRC domain */
int srq_get_num(struct ibv_srq *srq, uint32_t *num)
{
	if (!to_srq(srq)->srqn)
		return verbs_err(-EOPNOTSUPP);
	*num = to_srq(srq)->srqn;
	return 0;
}

/** ibv_modify_srq() - size, and the limit whose crossing raises
 *  IBV_EVENT_SRQ_LIMIT_REACHED once. Return: 0; EINVAL; ENOMEM; EIO */
EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct soft_context *ctx = to_context(srq->context);
	struct ib_uverbs_modify_srq req = {
		.srq_handle = srq->handle,
		.attr_mask = (uint32_t)mask,
		.max_wr = attr->max_wr,
		.srq_limit = attr->srq_limit,
	};
	int rc;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) ||
	    (mask & IBV_SRQ_MAX_WR && attr->max_wr > (uint32_t)ctx->attr.orig_attr.max_srq_wr))
		return verbs_err(-EINVAL);
	rc = session_command(ctx, IB_USER_VERBS_CMD_MODIFY_SRQ, &req, sizeof(req), NULL, 0);
	if (!rc)
		rc = eng_srq_modify(to_srq(srq)->eng, mask & IBV_SRQ_MAX_WR ? &attr->max_wr : NULL,
				    mask & IBV_SRQ_LIMIT ? &attr->srq_limit : NULL);
	return verbs_err(rc);
}

EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	eng_srq_query(to_srq(srq)->eng, &attr->max_wr, &attr->max_sge, &attr->srq_limit);
	return 0;
}

/** ibv_destroy_srq() - Return: 0; EBUSY while a QP uses it; EIO */
EXPORT int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
	struct soft_context *ctx = to_context(ibsrq->context);
	struct soft_srq *srq = to_srq(ibsrq);
	int rc = command_destroy(ctx, ibsrq->handle);

	if (rc)
		return verbs_err(rc);
	object_hide(ctx, &srq->object);
	if (!ctx->forked)
		eng_srq_destroy(srq->eng);
	object_purge(ctx, &srq->object);
	object_wait(ctx, &srq->object, &ibsrq->mutex, &ibsrq->cond, &ibsrq->events_completed);
	pd_release(ibsrq->pd);
	free(srq);
	return 0;
}

int srq_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return verbs_err(eng_srq_post_recv(to_srq(srq)->eng, wr, bad));
}
