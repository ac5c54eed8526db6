/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows. softibd gives the key; binding and invalidating are requests in a send
 * queue (IBV_WR_BIND_MW, IBV_WR_LOCAL_INV, IBV_WR_SEND_WITH_INV), which the engine executes
 * (src/engine/mw.c).
 */
#include <stdlib.h>

#include "soft.h"

static int command_dealloc(struct soft_context *ctx, uint32_t handle)
{
	struct ib_uverbs_dealloc_mw req = {.mw_handle = handle};

	return session_destroy(ctx, IB_USER_VERBS_CMD_DEALLOC_MW, &req, sizeof(req), NULL, 0);
}

/** mw_alloc() - ibv_alloc_mw(). Return: the window, bound to nothing; NULL and errno:
 *  EINVAL type, ENOMEM, EIO */
struct ibv_mw *mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct soft_context *ctx = to_context(pd->context);
	struct ib_uverbs_alloc_mw req = {.pd_handle = pd->handle, .mw_type = (uint8_t)type};
	struct ib_uverbs_alloc_mw_resp resp;
	struct ibv_mw *mw;
	int rc;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return verbs_null(-EINVAL);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return verbs_null(-ENOMEM);
	rc = session_command(ctx, IB_USER_VERBS_CMD_ALLOC_MW, &req, sizeof(req), &resp,
			     sizeof(resp));
	if (rc)
		goto undo_mw;
	*mw = (struct ibv_mw){pd->context, pd, resp.rkey, resp.mw_handle, type};
	rc = eng_mw_add(ctx->engine, mw->rkey, pd->handle, type);
	if (!rc)
		return mw;
	command_dealloc(ctx, mw->handle);
undo_mw:
	free(mw);
	return verbs_null(rc);
}

/** mw_dealloc() - ibv_dealloc_mw(): peers have no access by its key after return.
 *  Return: 0; EIO */
int mw_dealloc(struct ibv_mw *mw)
{
	struct soft_context *ctx = to_context(mw->context);
	int rc;

	if (!ctx->forked)
		eng_mw_del(ctx->engine, mw->rkey);
	rc = command_dealloc(ctx, mw->handle);
	if (rc)
		return verbs_err(rc);
	free(mw);
	return 0;
}

/**
 * mw_bind() - ibv_bind_mw() of a window of type 1, or with no length its release
 * Return: 0, and mw->rkey is the key that holds when the request is complete; EINVAL
 * no region, or rights, or a window of another context; EPERM the region of another PD; ENOMEM the send queue is full
 */
int mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = bind->send_flags,
		.bind_mw = {mw, ibv_inc_rkey(mw->rkey), *info},
	};
	int rc;

	if (mw->context != qp->context || (!info->mr && info->length) || info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return verbs_err(-EINVAL);
	if (info->mr && info->mr->pd != mw->pd)
		return verbs_err(-EPERM);
	rc = eng_post_send(to_qp(qp)->eng, &wr, NULL, ah_av);
	if (!rc)
		mw->rkey = wr.bind_mw.rkey;
	return verbs_err(rc);
}
