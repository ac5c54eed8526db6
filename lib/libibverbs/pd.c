/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Protection domains; thread domains and parent domains, which only tell a
 * provider how the program will use its objects, and where their queues shall
 * be, and are the library's own.
 */
#include <stdlib.h>

#include "soft.h"

/** ibv_alloc_pd() - Return: the PD; NULL and errno: ENOMEM, EIO */
EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ib_uverbs_alloc_pd req = {0};
	struct ib_uverbs_alloc_pd_resp resp;
	struct soft_pd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (!pd)
		return verbs_null(-ENOMEM);
	rc = session_command(to_context(context), IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req),
			     &resp, sizeof(resp));
	if (rc) {
		free(pd);
		return verbs_null(rc);
	}
	pd->ibv.context = context;
	pd->ibv.handle = resp.pd_handle;
	return &pd->ibv;
}

static struct soft_td *to_td(struct ibv_td *td)
{
	return container_of(td, struct soft_td, ibv);
}

bool pd_is_parent(struct ibv_pd *ibpd)
{
	return to_pd(ibpd)->parent_of;
}

/** pd_hold() - a queue begins to use @ibpd. softibd counts those of a protection domain, but
 *  does not know parent domains */
void pd_hold(struct ibv_pd *ibpd)
{
	if (pd_is_parent(ibpd))
		to_pd(ibpd)->users++;
}

void pd_release(struct ibv_pd *ibpd)
{
	if (pd_is_parent(ibpd))
		to_pd(ibpd)->users--;
}

static void end_parent(struct soft_pd *pd)
{
	pd->parent_of->users--;
	if (pd->td)
		pd->td->users--;
}

/** ibv_dealloc_pd() - Return: 0; EBUSY while objects belong to it; EIO */
EXPORT int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
	struct ib_uverbs_dealloc_pd req = {.pd_handle = ibpd->handle};
	struct soft_context *ctx = to_context(ibpd->context);
	struct soft_pd *pd = to_pd(ibpd);
	int rc = 0;

	if (pd->users)
		return verbs_err(-EBUSY);
	if (pd->parent_of)
		end_parent(pd);
	else
		rc = session_destroy(ctx, IB_USER_VERBS_CMD_DEALLOC_PD, &req, sizeof(req), NULL, 0);
	if (rc)
		return verbs_err(rc);
	free(pd);
	return 0;
}

struct ibv_td *pd_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init)
{
	struct soft_td *td;

	if (init->comp_mask)
		return verbs_null(-EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return verbs_null(-ENOMEM);
	td->ibv.context = context;
	return &td->ibv;
}

/** pd_dealloc_td() - ibv_dealloc_td(). 0; EBUSY a parent domain has it */
int pd_dealloc_td(struct ibv_td *td)
{
	if (to_td(td)->users)
		return verbs_err(-EBUSY);
	free(to_td(td));
	return 0;
}

/* --- parent domains --- */

/* The program's allocator is asked for the entries of a queue. The type of the resource is the
 * provider's to define: it is the kind of the queue. */
static void *alloc_queue(void *ctx, size_t bytes, enum eng_queue of)
{
	struct soft_pd *pd = ctx;
	void *at = pd->attr.alloc(&pd->ibv, pd->attr.pd_context, bytes, ENG_QUEUE_ALIGN_BYTES, of);

	return at == IBV_ALLOCATOR_USE_DEFAULT ? ENG_QUEUE_FROM_HEAP : at;
}

static void free_queue(void *ctx, void *at, enum eng_queue of)
{
	struct soft_pd *pd = ctx;

	pd->attr.free(&pd->ibv, pd->attr.pd_context, at, of);
}

/** pd_memory() - where the queues of objects of @ibpd are; NULL: on the heap */
const struct eng_memory *pd_memory(struct ibv_pd *ibpd)
{
	return ibpd && to_pd(ibpd)->memory.alloc ? &to_pd(ibpd)->memory : NULL;
}

/**
 * pd_alloc_parent() - ibv_alloc_parent_domain(): a PD, and allocators for the queues of its
 * CQs, QPs, SRQs and work queues
 * Return: the domain; NULL and errno: EINVAL no PD, an object of another context, an allocator
 * without its counterpart, attributes that came later; ENOMEM
 */
struct ibv_pd *pd_alloc_parent(struct ibv_context *context,
			       struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	bool allocators = attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	struct soft_pd *pd;

	if (!attr->pd || attr->pd->context != context || (attr->td && attr->td->context != context) ||
	    attr->comp_mask & ~known || (allocators && (!attr->alloc || !attr->free)))
		return verbs_null(-EINVAL);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return verbs_null(-ENOMEM);
	pd->ibv.context = context;
	pd->ibv.handle = attr->pd->handle;
	pd->parent_of = to_pd(attr->pd);
	pd->parent_of->users++;
	pd->attr = *attr;
	if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
		pd->attr.pd_context = NULL;
	if (allocators)
		pd->memory = (struct eng_memory){alloc_queue, free_queue, pd};
	pd->td = attr->td ? to_td(attr->td) : NULL;
	if (pd->td)
		pd->td->users++;
	return &pd->ibv;
}
