/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC targets that a program opens by their number (ibv_open_qp()), its own or another
 * program's. softibd has the attributes of such a target: the engine of this program knows
 * those of the time when it last received for the target.
 */
#include <stdlib.h>

#include "abi/ah.h"
#include "abi/target.h"
#include "soft.h"

#define NEEDED_COMP_MASK                                                                       \
	(IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE)
#define KNOWN_COMP_MASK (NEEDED_COMP_MASK | IBV_QP_OPEN_ATTR_CONTEXT)

static int command_open(struct soft_context *ctx, struct soft_qp *qp, uint32_t qpn)
{
	struct ib_uverbs_open_qp req = {
		.user_handle = qp->object.id,
		.pd_handle = to_xrcd(qp->xrcd)->handle,
		.qpn = qpn,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return qp_open(ctx, qp, &req);
}

/* Return: 0; ABI_TARGET_LIVES others have it open; -errno */
static int command_close(struct soft_context *ctx, uint32_t handle)
{
	struct ib_uverbs_destroy_qp req = {.qp_handle = handle};
	struct ib_uverbs_destroy_qp_resp resp = {0};
	int rc = session_destroy(ctx, IB_USER_VERBS_CMD_DESTROY_QP, &req, sizeof(req), &resp,
				 sizeof(resp));

	return rc ? rc : (int)resp.events_reported;
}

static int open_both(struct soft_context *ctx, struct soft_qp *qp, uint32_t qpn)
{
	struct eng_qp_init init = {
		.qpn = qpn,
		.type = IBV_QPT_XRC_RECV,
		.xrcd = to_xrcd(qp->xrcd)->number,
		.ctx = &qp->object,
	};
	int rc = command_open(ctx, qp, qpn);

	if (rc)
		return rc;
	rc = eng_target_open(ctx->engine, &init, &qp->eng);
	if (rc)
		command_close(ctx, qp->ibv.handle);
	return rc;
}

/**
 * target_open() - ibv_open_qp(): one more handle of the target attr->qp_num of a domain
 *
 * Whoever has a handle may modify the target, and hears of its asynchronous events. The target
 * is destroyed with its last handle.
 * Return: the QP; NULL and errno: EINVAL attributes, or no such target; EOPNOTSUPP members that
 * came later; ENOMEM; EIO
 */
struct ibv_qp *target_open(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	struct soft_context *ctx = to_context(context);
	struct soft_qp *qp;
	int rc;

	if (attr->comp_mask & ~(uint32_t)KNOWN_COMP_MASK)
		return verbs_null(-EOPNOTSUPP);
	if ((attr->comp_mask & NEEDED_COMP_MASK) != NEEDED_COMP_MASK || !attr->xrcd ||
	    attr->xrcd->context != context || attr->qp_type != IBV_QPT_XRC_RECV)
		return verbs_null(-EINVAL);
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return verbs_null(-ENOMEM);
	qp->ibv = (struct ibv_qp){
		.context = context,
		.qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL,
		.state = IBV_QPS_RESET,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	qp->xrcd = attr->xrcd;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	object_init(ctx, &qp->object, SOFT_QP);
	rc = open_both(ctx, qp, attr->qp_num);
	if (rc) {
		free(qp);
		return verbs_null(rc);
	}
	object_show(ctx, &qp->object);
	return &qp->ibv;
}

/** target_close() - ibv_destroy_qp() of a target, as far as softibd and the engine have it. 0;
 *  -errno */
int target_close(struct soft_context *ctx, struct soft_qp *qp)
{
	int rc = command_close(ctx, qp->ibv.handle);

	if (rc < 0)
		return rc;
	object_hide(ctx, &qp->object);
	if (!ctx->forked)
		eng_target_close(qp->eng, rc == ABI_TARGET_LIVES);
	return 0;
}

static struct ibv_ah_attr ah_of(const struct ib_uverbs_qp_dest *dest)
{
	struct ibv_ah_attr ah = {.is_global = dest->is_global};

	ABI_COPY_AH(ah, *dest);
	ABI_COPY_GRH(ah.grh, *dest);
	memcpy(ah.grh.dgid.raw, dest->dgid, sizeof(dest->dgid));
	return ah;
}

/** target_query() - what softibd knows of a target that others have, too. 0; -EIO */
int target_query(struct soft_context *ctx, struct soft_qp *qp, struct ibv_qp_attr *attr)
{
	struct ib_uverbs_query_qp req = {.qp_handle = qp->ibv.handle, .attr_mask = IBV_QP_STATE};
	struct ib_uverbs_query_qp_resp r;
	int rc = session_command(ctx, IB_USER_VERBS_CMD_QUERY_QP, &req, sizeof(req), &r, sizeof(r));

	if (rc)
		return rc;
	*attr = (struct ibv_qp_attr){
		.qp_state = r.qp_state,
		.cur_qp_state = r.cur_qp_state,
		.path_mtu = r.path_mtu,
		.path_mig_state = r.path_mig_state,
		.rq_psn = r.rq_psn,
		.sq_psn = r.sq_psn,
		.dest_qp_num = r.dest_qp_num,
		.qp_access_flags = r.qp_access_flags,
		.ah_attr = ah_of(&r.dest),
		.alt_ah_attr = ah_of(&r.alt_dest),
		.pkey_index = r.pkey_index,
		.alt_pkey_index = r.alt_pkey_index,
		.max_dest_rd_atomic = r.max_dest_rd_atomic,
		.min_rnr_timer = r.min_rnr_timer,
		.port_num = r.port_num,
		.timeout = r.timeout,
		.alt_port_num = r.alt_port_num,
		.alt_timeout = r.alt_timeout,
	};
	return 0;
}
