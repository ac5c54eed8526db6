/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands for memory regions, memory windows and device memory. The memory belongs to the program, and
 * only the program's engine accesses it. softibd assigns the keys, and accounts the locked memory, which
 * is limited only after uverbs_enforce_memlock().
 */
#include "access/uverbs_private.h"

#include <errno.h>

static int charge(struct ib_uobject *uobject, u64 bytes)
{
	int ret = ib_ucontext_lock_memory(uobject->context, bytes,
					  uverbs_memlock_bytes(uobject->context->priv));

	if (!ret)
		uobject->locked_bytes += bytes;
	return ret;
}

/* A region whose end wraps around is charged nothing, since the core will refuse it. Memory that is
 * paged on demand is charged nothing, since no adapter would pin it. */
static u64 charge_of(u64 start, u64 length, u32 access)
{
	if (start + length < start || access & IB_ACCESS_ON_DEMAND)
		return 0;
	return ib_locked_bytes(start, length);
}

static void answer_mr(struct ib_uverbs_reg_mr_resp *out, struct ib_uobject *uobject,
		      struct ib_mr *mr)
{
	out->mr_handle = uobject->handle;
	out->lkey = mr->lkey;
	out->rkey = mr->rkey;
}

int cmd_reg_mr(struct call *call)
{
	const struct ib_uverbs_reg_mr *in = call->in;
	struct ib_uverbs_reg_mr_resp *out = call->out;
	struct ib_ucontext *context = call->session->context;
	struct ib_pd *pd = ib_uobject_get(context, IB_UOBJECT_PD, in->pd_handle);
	struct ib_uobject *uobject;
	struct ib_mr *mr;
	int ret;

	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	uobject = ib_uobject_alloc(context, IB_UOBJECT_MR);
	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	ret = charge(uobject, charge_of(in->start, in->length, in->access_flags));
	if (ret) {
		ib_uobject_abort(uobject);
		return ret;
	}
	mr = ib_reg_user_mr(uobject, pd, in->start, in->length, in->hca_va,
			    (int)in->access_flags);
	ret = ib_uobject_commit(uobject, mr);
	if (!ret)
		answer_mr(out, uobject, mr);
	return ret;
}

/* The old and the new memory are both charged while the re-registration may still fail. */
static int charge_move(struct ib_mr *mr, const struct ib_uverbs_rereg_mr *in)
{
	u32 access = in->flags & IB_MR_REREG_ACCESS ? in->access_flags : (u32)mr->access;

	if (!(in->flags & IB_MR_REREG_TRANS))
		return 0;
	return charge(mr->uobject, charge_of(in->start, in->length, access));
}

static void discharge(struct ib_uobject *uobject, u64 bytes)
{
	ib_ucontext_unlock_memory(uobject->context, bytes);
	uobject->locked_bytes -= bytes;
}

int cmd_rereg_mr(struct call *call)
{
	const struct ib_uverbs_rereg_mr *in = call->in;
	struct ib_uverbs_rereg_mr_resp *out = call->out;
	struct ib_ucontext *context = call->session->context;
	struct ib_mr *mr = ib_uobject_get(context, IB_UOBJECT_MR, in->mr_handle);
	struct ib_pd *pd = NULL;
	u64 before, added;
	int ret;

	if (IS_ERR(mr))
		return (int)PTR_ERR(mr);
	if (mr->uobject->context != context) /* the region is in the engine of another program */
		return -EINVAL;
	if (in->flags & IB_MR_REREG_PD) {
		pd = ib_uobject_get(context, IB_UOBJECT_PD, in->pd_handle);
		if (IS_ERR(pd))
			return (int)PTR_ERR(pd);
	}
	before = mr->uobject->locked_bytes;
	ret = charge_move(mr, in);
	if (ret)
		return ret;
	added = mr->uobject->locked_bytes - before;
	ret = ib_rereg_user_mr(mr, (int)in->flags, in->start, in->length, in->hca_va,
			       (int)in->access_flags, pd);
	if (ret)
		discharge(mr->uobject, added);
	else if (in->flags & IB_MR_REREG_TRANS)
		discharge(mr->uobject, before);
	out->lkey = mr->lkey;
	out->rkey = mr->rkey;
	return ret;
}

int cmd_dereg_mr(struct call *call)
{
	const struct ib_uverbs_dereg_mr *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_MR, in->mr_handle);
}

int cmd_alloc_mw(struct call *call)
{
	const struct ib_uverbs_alloc_mw *in = call->in;
	struct ib_uverbs_alloc_mw_resp *out = call->out;
	struct ib_ucontext *context = call->session->context;
	struct ib_pd *pd = ib_uobject_get(context, IB_UOBJECT_PD, in->pd_handle);
	struct ib_uobject *uobject;
	struct ib_mw *mw;
	int ret;

	if (IS_ERR(pd))
		return (int)PTR_ERR(pd);
	uobject = ib_uobject_alloc(context, IB_UOBJECT_MW);
	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	mw = ib_alloc_mw_user(uobject, pd, in->mw_type);
	ret = ib_uobject_commit(uobject, mw);
	if (ret)
		return ret;
	out->mw_handle = uobject->handle;
	out->rkey = mw->rkey;
	return 0;
}

int cmd_dealloc_mw(struct call *call)
{
	const struct ib_uverbs_dealloc_mw *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_MW, in->mw_handle);
}

int cmd_alloc_dm(struct call *call)
{
	const struct abi_alloc_dm *in = call->in;
	struct abi_alloc_dm_resp *out = call->out;
	struct ib_uobject *uobject = ib_uobject_alloc(call->session->context, IB_UOBJECT_DM);
	struct ib_dm *dm;
	int ret;

	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	dm = ib_alloc_dm_user(uobject, in->length_bytes);
	ret = ib_uobject_commit(uobject, dm);
	if (ret)
		return ret;
	out->dm_handle = uobject->handle;
	call->fds = &dm->fd;
	call->num_fds = 1;
	return 0;
}

int cmd_free_dm(struct call *call)
{
	const struct abi_free_dm *in = call->in;

	return ib_uobject_destroy(call->session->context, IB_UOBJECT_DM, in->dm_handle);
}

int cmd_reg_dm_mr(struct call *call)
{
	const struct abi_reg_dm_mr *in = call->in;
	struct ib_uverbs_reg_mr_resp *out = call->out;
	struct ib_ucontext *context = call->session->context;
	struct ib_pd *pd = ib_uobject_get(context, IB_UOBJECT_PD, in->pd_handle);
	struct ib_dm *dm = ib_uobject_get(context, IB_UOBJECT_DM, in->dm_handle);
	struct ib_uobject *uobject;
	struct ib_mr *mr;
	int ret;

	if (IS_ERR(pd) || IS_ERR(dm))
		return -EINVAL;
	uobject = ib_uobject_alloc(context, IB_UOBJECT_MR);
	if (IS_ERR(uobject))
		return (int)PTR_ERR(uobject);
	mr = ib_reg_dm_mr_user(uobject, pd, dm, in->offset, in->length_bytes,
			       (int)in->access_flags);
	ret = ib_uobject_commit(uobject, mr);
	if (!ret)
		answer_mr(out, uobject, mr);
	return ret;
}

static void carry_dm(struct call *call, struct ib_dm *dm)
{
	call->fds = &dm->fd;
	call->num_fds = 1;
}

static void answer_query_mr(struct call *call, const struct ib_mr *mr)
{
	const struct ib_ucontext *owner = mr->uobject->context;

	*(struct abi_query_object_resp *)call->out = (struct abi_query_object_resp){
		.length_bytes = mr->length,
		.lkey = mr->lkey,
		.rkey = mr->rkey,
		.iova = mr->iova,
		.dm_offset = mr->dm_offset,
		.pd_handle = mr->pd->uobject->handle,
		.access = (u32)mr->access,
		.owner = owner == call->session->context ?
				 0 :
				 ((const struct session *)owner->priv)->number,
	};
	if (mr->dm)
		carry_dm(call, mr->dm);
}

int cmd_query_object(struct call *call)
{
	static const enum ib_uobject_type types[] = {
		[ABI_OBJECT_PD] = IB_UOBJECT_PD,
		[ABI_OBJECT_MR] = IB_UOBJECT_MR,
		[ABI_OBJECT_DM] = IB_UOBJECT_DM,
	};
	const struct abi_query_object *in = call->in;
	struct abi_query_object_resp *out = call->out;
	struct ib_dm *dm;
	void *object;

	if (in->object >= ARRAY_SIZE(types))
		return -EINVAL;
	object = ib_uobject_get(call->session->context, types[in->object], in->handle);
	if (IS_ERR(object))
		return (int)PTR_ERR(object);
	if (in->object == ABI_OBJECT_MR) {
		answer_query_mr(call, object);
	} else if (in->object == ABI_OBJECT_DM) {
		dm = object;
		out->length_bytes = dm->length;
		carry_dm(call, dm);
	}
	return 0;
}
