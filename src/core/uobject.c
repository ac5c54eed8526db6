/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Contexts of programs, their handles, and the clean-up. The handle table
 * grows by doubling; a freed slot goes to a free list and its generation
 * rises, so that an old handle fails rather than names another object.
 */
#include "core/private.h"

#define INDEX_BITS 22 /* enough for all regions, windows and other objects of a device */
#define INDEX_MASK ((1u << INDEX_BITS) - 1)
#define NONE UINT32_MAX
#define PAGE_BYTES 4096ull

/* --- how each type of object is destroyed --- */

/* Each destroyer is called through a function of its own type: a call through a cast pointer
 * would be undefined. */
#define DESTROYER(name, type, call)                                            \
	static int name(void *object)                                          \
	{                                                                      \
		type *o = object;                                              \
		return call;                                                   \
	}

DESTROYER(destroy_pd, struct ib_pd, ib_dealloc_pd(o))
DESTROYER(destroy_ah, struct ib_ah, rdma_destroy_ah(o, 0))
DESTROYER(destroy_cq, struct ib_cq, ib_destroy_cq(o))
DESTROYER(destroy_srq, struct ib_srq, ib_destroy_srq(o))
DESTROYER(destroy_qp, struct ib_qp, ib_destroy_qp(o))
DESTROYER(destroy_mr, struct ib_mr, ib_dereg_mr(o))
DESTROYER(destroy_mw, struct ib_mw, ib_dealloc_mw(o))
DESTROYER(destroy_xrcd, struct ib_xrcd, ib_dealloc_xrcd(o))
DESTROYER(destroy_dm, struct ib_dm, ib_dealloc_dm(o))
DESTROYER(destroy_flow, struct ib_flow, ib_destroy_flow(o))

static int (*const destroyers[IB_UOBJECT_TYPES])(void *object) = {
	[IB_UOBJECT_PD] = destroy_pd,	[IB_UOBJECT_AH] = destroy_ah,
	[IB_UOBJECT_CQ] = destroy_cq,	[IB_UOBJECT_SRQ] = destroy_srq,
	[IB_UOBJECT_QP] = destroy_qp,	[IB_UOBJECT_MR] = destroy_mr,
	[IB_UOBJECT_MW] = destroy_mw,	[IB_UOBJECT_DM] = destroy_dm,
	[IB_UOBJECT_XRCD] = destroy_xrcd, [IB_UOBJECT_FLOW] = destroy_flow,
};

/* --- handles --- */

static int grow(struct ib_ucontext *context)
{
	u32 old = context->num_handles, new = old ? old * 2 : 16;
	struct ib_handle *handles;

	if (new > INDEX_MASK + 1)
		return -ENOMEM;
	handles = rt_zalloc(new * sizeof(*handles));
	if (!handles)
		return -ENOMEM;
	if (old)
		memcpy(handles, context->handles, old * sizeof(*handles));
	rt_free(context->handles);
	context->handles = handles;
	context->num_handles = new;
	for (u32 i = new; i-- > old;) {
		handles[i].next_free = context->free_handle;
		context->free_handle = i;
	}
	return 0;
}

struct ib_uobject *ib_uobject_alloc(struct ib_ucontext *context, enum ib_uobject_type type)
{
	struct ib_uobject *uobject;
	struct ib_handle *slot;
	u32 index;

	if (context->free_handle == NONE && grow(context))
		return ERR_PTR(-ENOMEM);
	uobject = rt_zalloc(sizeof(*uobject));
	if (!uobject)
		return ERR_PTR(-ENOMEM);
	index = context->free_handle;
	slot = &context->handles[index];
	context->free_handle = slot->next_free;
	slot->uobject = uobject;
	uobject->context = context;
	uobject->type = type;
	INIT_LIST_HEAD(&uobject->opener);
	uobject->handle = slot->generation << INDEX_BITS | index;
	list_add_tail(&uobject->node, &context->objects);
	return uobject;
}

void ib_uobject_abort(struct ib_uobject *uobject)
{
	struct ib_ucontext *context = uobject->context;
	u32 index = uobject->handle & INDEX_MASK;
	struct ib_handle *slot = &context->handles[index];

	ib_ucontext_unlock_memory(context, uobject->locked_bytes);
	slot->uobject = NULL;
	slot->generation++;
	slot->next_free = context->free_handle;
	context->free_handle = index;
	list_del(&uobject->node);
	rt_free(uobject);
}

int ib_uobject_commit(struct ib_uobject *uobject, void *object)
{
	if (IS_ERR(object)) {
		ib_uobject_abort(uobject);
		return (int)PTR_ERR(object);
	}
	uobject->object = object;
	return 0;
}

static struct ib_uobject *lookup(struct ib_ucontext *context, enum ib_uobject_type type,
				 u32 handle)
{
	u32 index = handle & INDEX_MASK;
	struct ib_uobject *uobject;

	if (index >= context->num_handles)
		return NULL;
	uobject = context->handles[index].uobject;
	if (!uobject || uobject->handle != handle || uobject->type != type || !uobject->object)
		return NULL;
	return uobject;
}

void *ib_uobject_get(struct ib_ucontext *context, enum ib_uobject_type type, u32 handle)
{
	struct ib_uobject *uobject = lookup(context, type, handle);

	return uobject ? uobject->object : ERR_PTR(-EINVAL);
}

static bool is_target(const struct ib_uobject *uobject)
{
	const struct ib_qp *qp = uobject->type == IB_UOBJECT_QP ? uobject->object : NULL;

	return qp && qp->qp_type == IB_QPT_XRC_TGT;
}

static int destroy(struct ib_uobject *uobject)
{
	int ret = 0;

	if (is_target(uobject))
		ret = core_close_target(uobject);
	else if (uobject->object)
		ret = destroyers[uobject->type](uobject->object);
	if (!ret)
		ib_uobject_abort(uobject);
	return ret;
}

int ib_uobject_destroy(struct ib_ucontext *context, enum ib_uobject_type type, u32 handle)
{
	struct ib_uobject *uobject = lookup(context, type, handle);

	return uobject ? destroy(uobject) : -EINVAL;
}

/* --- contexts --- */

struct ib_ucontext_work {
	struct rt_work work;
	struct ib_ucontext *context;
};

static void report_fatal(struct rt_work *work)
{
	struct ib_ucontext *context =
		container_of(work, struct ib_ucontext_work, work)->context;

	if (context->fatal)
		context->fatal(context);
}

void ib_ucontext_fatal(struct ib_ucontext *context)
{
	rt_work_queue(context->device->rt, &context->fatal_work->work);
}

struct ib_ucontext *ib_ucontext_open(struct ib_device *device, pid_t pid, const char *comm)
{
	struct ib_ucontext_work *work;
	struct ib_ucontext *context;

	if (!device->registered)
		return ERR_PTR(-EIO);
	if (!device->ops->alloc_ucontext)
		return ERR_PTR(-EOPNOTSUPP);
	work = rt_zalloc(sizeof(*work));
	if (!work)
		return ERR_PTR(-ENOMEM);
	context = device->ops->alloc_ucontext(device);
	if (IS_ERR(context)) {
		rt_free(work);
		return context;
	}
	rt_work_init(&work->work, report_fatal);
	work->context = context;
	context->fatal_work = work;
	context->device = device;
	context->pid = pid;
	context->free_handle = NONE;
	INIT_LIST_HEAD(&context->objects);
	list_add_tail(&context->node, &device->ucontext_list);
	rdma_restrack_add(device, &context->res, RDMA_RESTRACK_CTX, NULL, pid);
	strncpy(context->res.comm, comm, sizeof(context->res.comm) - 1);
	return context;
}

/*
 * Newest first: an object is younger than those that it uses. A region that
 * was re-registered into a younger PD is the exception, hence the passes:
 * each destroys at least one object, for uses form no circle.
 */
static void destroy_all(struct ib_ucontext *context)
{
	struct ib_uobject *uobject;

	while (!list_empty(&context->objects)) {
		struct list_head *at = context->objects.prev;

		while (at != &context->objects) {
			uobject = list_entry(at, struct ib_uobject, node);
			at = at->prev;
			if (uobject->type == IB_UOBJECT_QP && uobject->object)
				core_detach_all(uobject->object);
			destroy(uobject);
		}
	}
}

void ib_ucontext_close(struct ib_ucontext *context)
{
	destroy_all(context);
	rdma_restrack_del(context->device, &context->res);
	list_del(&context->node);
	rt_free(context->handles);
	rt_work_cancel(&context->fatal_work->work);
	rt_free(context->fatal_work);
	context->device->ops->dealloc_ucontext(context);
}

/* --- the account of locked memory --- */

u64 ib_locked_bytes(u64 start, u64 length)
{
	u64 first = start & ~(PAGE_BYTES - 1);

	if (!length)
		return 0;
	return ((start + length - 1) & ~(PAGE_BYTES - 1)) - first + PAGE_BYTES;
}

int ib_ucontext_lock_memory(struct ib_ucontext *context, u64 bytes, u64 limit_bytes)
{
	if (bytes > limit_bytes || context->locked_bytes > limit_bytes - bytes)
		return -ENOMEM;
	context->locked_bytes += bytes;
	return 0;
}

void ib_ucontext_unlock_memory(struct ib_ucontext *context, u64 bytes)
{
	context->locked_bytes -= bytes;
}
