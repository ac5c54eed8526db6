/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Contexts of programs, their handles, and the clean-up. The handle table
 * grows by doubling. A freed slot goes to a free list, and its generation is
 * incremented, so that an old handle is invalid and does not name another object.
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

static int grow(struct ib_handles *handles)
{
	u32 old = handles->num, new = old ? old * 2 : 16;
	struct ib_handle *slot;

	if (new > INDEX_MASK + 1)
		return -ENOMEM;
	slot = rt_zalloc(new * sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	if (old)
		memcpy(slot, handles->slot, old * sizeof(*slot));
	rt_free(handles->slot);
	handles->slot = slot;
	handles->num = new;
	for (u32 i = new; i-- > old;) {
		slot[i].next_free = handles->free;
		handles->free = i;
	}
	return 0;
}

struct ib_uobject *ib_uobject_alloc(struct ib_ucontext *context, enum ib_uobject_type type)
{
	struct ib_handles *handles = context->handles;
	struct ib_uobject *uobject;
	struct ib_handle *slot;
	u32 index;

	if (handles->free == NONE && grow(handles))
		return ERR_PTR(-ENOMEM);
	uobject = rt_zalloc(sizeof(*uobject));
	if (!uobject)
		return ERR_PTR(-ENOMEM);
	index = handles->free;
	slot = &handles->slot[index];
	handles->free = slot->next_free;
	slot->uobject = uobject;
	uobject->context = context;
	uobject->type = type;
	INIT_LIST_HEAD(&uobject->opener);
	uobject->handle = slot->generation << INDEX_BITS | index;
	list_add_tail(&uobject->node, &context->objects);
	return uobject;
}

/* Nobody can use up a device by numbers that stay reserved. */
static bool may_reserve_qp(const struct ib_device *device)
{
	u32 used = device->res.of_programs[RDMA_RESTRACK_QP] + device->reserved_qps;

	return device->ops->reserve_qpn && used < (u32)device->attrs.max_qp / 2;
}

struct ib_uobject *ib_uobject_reserve_qp(struct ib_ucontext *context)
{
	struct ib_device *device = context->device;
	struct ib_uobject *uobject;
	u32 qpn;

	if (!may_reserve_qp(device) || device->ops->reserve_qpn(device, &qpn))
		return NULL;
	uobject = ib_uobject_alloc(context, IB_UOBJECT_QP);
	if (IS_ERR(uobject)) {
		device->ops->release_qpn(device, qpn);
		return NULL;
	}
	uobject->qpn = qpn;
	device->reserved_qps++;
	return uobject;
}

static void release_qpn(const struct ib_uobject *uobject)
{
	struct ib_device *device = uobject->context->device;

	if (!uobject->qpn)
		return;
	device->ops->release_qpn(device, uobject->qpn);
	device->reserved_qps -= !uobject->object;
}

void ib_uobject_abort(struct ib_uobject *uobject)
{
	struct ib_handles *handles = uobject->context->handles;
	u32 index = uobject->handle & INDEX_MASK;
	struct ib_handle *slot = &handles->slot[index];

	ib_ucontext_unlock_memory(uobject->context, uobject->locked_bytes);
	release_qpn(uobject);
	slot->uobject = NULL;
	slot->generation++;
	slot->next_free = handles->free;
	handles->free = index;
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
	uobject->context->device->reserved_qps -= uobject->qpn != 0;
	return 0;
}

/* Can all contexts that share the handles use objects of this type? */
static bool is_for_all(enum ib_uobject_type type)
{
	return type == IB_UOBJECT_PD || type == IB_UOBJECT_MR || type == IB_UOBJECT_DM;
}

static struct ib_uobject *lookup(struct ib_ucontext *context, enum ib_uobject_type type,
				 u32 handle)
{
	u32 index = handle & INDEX_MASK;
	struct ib_uobject *uobject;

	if (index >= context->handles->num)
		return NULL;
	uobject = context->handles->slot[index].uobject;
	if (!uobject || uobject->handle != handle || uobject->type != type || !uobject->object ||
	    (uobject->context != context && !is_for_all(type)))
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

	if (!uobject || (type == IB_UOBJECT_MR && uobject->context != context))
		return -EINVAL;
	return destroy(uobject);
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

static struct ib_handles *new_handles(void)
{
	struct ib_handles *handles = rt_zalloc(sizeof(*handles));

	if (!handles)
		return NULL;
	INIT_LIST_HEAD(&handles->contexts);
	handles->free = NONE;
	return handles;
}

static void leave_handles(struct ib_ucontext *context)
{
	struct ib_handles *handles = context->handles;

	list_del(&context->sharer);
	if (!list_empty(&handles->contexts))
		return;
	rt_free(handles->slot);
	rt_free(handles);
}

int ib_ucontext_share(struct ib_ucontext *context, struct ib_ucontext *other)
{
	if (!list_empty(&context->objects) || context->device != other->device ||
	    context->handles == other->handles)
		return -EINVAL;
	leave_handles(context);
	context->handles = other->handles;
	list_add_tail(&context->sharer, &context->handles->contexts);
	return 0;
}

struct ib_ucontext *ib_ucontext_open(struct ib_device *device, pid_t pid, const char *comm)
{
	struct ib_handles *handles;
	struct ib_ucontext_work *work;
	struct ib_ucontext *context;

	if (!device->registered)
		return ERR_PTR(-EIO);
	if (!device->ops->alloc_ucontext)
		return ERR_PTR(-EOPNOTSUPP);
	work = rt_zalloc(sizeof(*work));
	handles = new_handles();
	context = work && handles ? device->ops->alloc_ucontext(device) : ERR_PTR(-ENOMEM);
	if (IS_ERR(context)) {
		rt_free(handles);
		rt_free(work);
		return context;
	}
	rt_work_init(&work->work, report_fatal);
	work->context = context;
	context->fatal_work = work;
	context->device = device;
	context->pid = pid;
	context->handles = handles;
	list_add_tail(&context->sharer, &handles->contexts);
	INIT_LIST_HEAD(&context->objects);
	list_add_tail(&context->node, &device->ucontext_list);
	rdma_restrack_add(device, &context->res, RDMA_RESTRACK_CTX, NULL, pid);
	strncpy(context->res.comm, comm, sizeof(context->res.comm) - 1);
	return context;
}

struct ib_ucontext *ib_ucontext_of_process(const struct ib_device *device, pid_t pid)
{
	struct ib_ucontext *context, *found = NULL;

	list_for_each_entry(context, &device->ucontext_list, node) {
		if (context->pid != pid)
			continue;
		if (found)
			return NULL;
		found = context;
	}
	return found;
}

/*
 * Destroy the newest objects first, because an object is newer than those that
 * it uses. A region that was re-registered with a newer PD is an exception, so
 * several passes may be needed. Each pass destroys at least one object, because
 * the uses have no cycle.
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

/* Is the object's memory not that of the program? Then it can exist without this program. */
static bool outlives_program(const struct ib_uobject *uobject)
{
	const struct ib_mr *mr = uobject->type == IB_UOBJECT_MR ? uobject->object : NULL;

	return uobject->object && (uobject->type == IB_UOBJECT_PD ||
				   uobject->type == IB_UOBJECT_DM || (mr && mr->dm));
}

static void pass_to(struct ib_ucontext *heir, struct ib_uobject *uobject)
{
	ib_ucontext_unlock_memory(uobject->context, uobject->locked_bytes);
	heir->locked_bytes += uobject->locked_bytes;
	uobject->context = heir;
	list_del(&uobject->node);
	list_add(&uobject->node, &heir->objects); /* at the front, before the objects that use it */
}

/* Move objects of @context, which is being closed, to a context that shares its handles. */
static void pass_on(struct ib_ucontext *context)
{
	struct list_head *at = context->objects.prev;
	struct ib_ucontext *heir = NULL, *other;

	list_for_each_entry(other, &context->handles->contexts, sharer)
		if (other != context)
			heir = other;
	while (heir && at != &context->objects) {
		struct ib_uobject *uobject = list_entry(at, struct ib_uobject, node);

		at = at->prev;
		if (outlives_program(uobject))
			pass_to(heir, uobject);
	}
}

void ib_ucontext_close(struct ib_ucontext *context)
{
	pass_on(context);
	destroy_all(context);
	rdma_restrack_del(context->device, &context->res);
	list_del(&context->node);
	leave_handles(context);
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
