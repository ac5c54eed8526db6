/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Protection domains, completion queues, shared receive queues (IBA v1 11.2.1, 11.2.3,
 * 11.2.6): checks, reference counts and tracking around the driver's operations. What another
 * object uses is not destroyed: -EBUSY. Memory is in memory.c.
 */
#include "core/private.h"

/* --- protection domains --- */

struct ib_pd *core_alloc_pd(struct ib_device *device, const struct core_owner *owner)
{
	struct ib_udata udata;
	struct ib_pd *pd;

	if (core_has_room(device, RDMA_RESTRACK_PD, owner->uobject))
		return ERR_PTR(-ENOMEM);
	pd = device->ops->alloc_pd(device, core_udata(owner, &udata));
	if (IS_ERR(pd))
		return pd;
	pd->device = device;
	pd->uobject = owner->uobject;
	core_track(device, &pd->res, RDMA_RESTRACK_PD, owner);
	return pd;
}

struct ib_pd *ib_alloc_pd_(struct ib_device *device, unsigned int flags, const char *client)
{
	struct ib_pd *pd = core_alloc_pd(device, &(struct core_owner){.client = client});
	struct ib_mr *mr;

	if (IS_ERR(pd))
		return pd;
	mr = ib_get_dma_mr(pd, IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(mr)) {
		ib_dealloc_pd(pd);
		return ERR_PTR(PTR_ERR(mr));
	}
	pd->internal_mr = mr;
	pd->local_dma_lkey = mr->lkey;
	return pd;
}

struct ib_pd *ib_alloc_pd_user(struct ib_uobject *uobject)
{
	return core_alloc_pd(uobject->context->device, &(struct core_owner){.uobject = uobject});
}

int ib_dealloc_pd(struct ib_pd *pd)
{
	if (pd->usecnt > (pd->internal_mr ? 1 : 0))
		return -EBUSY;
	if (pd->internal_mr)
		ib_dereg_mr(pd->internal_mr);
	rdma_restrack_del(pd->device, &pd->res);
	pd->device->ops->dealloc_pd(pd);
	return 0;
}

/* --- completion queues --- */

struct ib_cq *core_create_cq(struct ib_device *device, const struct ib_cq_init_attr *attr,
			     const struct core_owner *owner)
{
	struct ib_udata udata;
	struct ib_cq *cq;

	if (!attr->cqe || attr->cqe > (unsigned)device->attrs.max_cqe)
		return ERR_PTR(-EINVAL);
	if (core_has_room(device, RDMA_RESTRACK_CQ, owner->uobject))
		return ERR_PTR(-ENOMEM);
	cq = device->ops->create_cq(device, attr, core_udata(owner, &udata));
	if (IS_ERR(cq))
		return cq;
	cq->device = device;
	cq->uobject = owner->uobject;
	INIT_LIST_HEAD(&cq->pool_node);
	core_track(device, &cq->res, RDMA_RESTRACK_CQ, owner);
	return cq;
}

struct ib_cq *ib_create_cq_(struct ib_device *device, ib_comp_handler comp_handler,
			    void (*event_handler)(struct ib_event *event, void *cq_context),
			    void *cq_context, const struct ib_cq_init_attr *attr,
			    const char *client)
{
	struct ib_cq *cq = core_create_cq(device, attr, &(struct core_owner){.client = client});

	if (IS_ERR(cq))
		return cq;
	cq->comp_handler = comp_handler;
	cq->event_handler = event_handler;
	cq->cq_context = cq_context;
	return cq;
}

struct ib_cq *ib_create_cq_user(struct ib_uobject *uobject, const struct ib_cq_init_attr *attr)
{
	return core_create_cq(uobject->context->device, attr,
			      &(struct core_owner){.uobject = uobject});
}

int ib_resize_cq(struct ib_cq *cq, int cqe)
{
	if (!cq->device->ops->resize_cq)
		return -EOPNOTSUPP;
	if (cqe < 1 || cqe > cq->device->attrs.max_cqe)
		return -EINVAL;
	return cq->device->ops->resize_cq(cq, cqe);
}

int rdma_set_cq_moderation(struct ib_cq *cq, u16 cq_count, u16 cq_period)
{
	const struct ib_device_attr *attrs = &cq->device->attrs;

	if (!cq->device->ops->modify_cq || !attrs->cq_caps.max_cq_moderation_count)
		return -EOPNOTSUPP;
	if (cq_count > attrs->cq_caps.max_cq_moderation_count ||
	    cq_period > attrs->cq_caps.max_cq_moderation_period)
		return -EINVAL;
	return cq->device->ops->modify_cq(cq, cq_count, cq_period);
}

int ib_peek_cq(struct ib_cq *cq, int wc_cnt)
{
	return cq->device->ops->peek_cq ? cq->device->ops->peek_cq(cq, wc_cnt) : -EOPNOTSUPP;
}

int ib_req_ncomp_notif(struct ib_cq *cq, int wc_cnt)
{
	if (!cq->device->ops->req_ncomp_notif)
		return -EOPNOTSUPP;
	return wc_cnt < 1 || wc_cnt > cq->cqe ? -EINVAL :
						cq->device->ops->req_ncomp_notif(cq, wc_cnt);
}

int ib_destroy_cq(struct ib_cq *cq)
{
	if (cq->usecnt)
		return -EBUSY;
	list_del(&cq->pool_node);
	rdma_restrack_del(cq->device, &cq->res);
	core_events_forget(cq->device, cq);
	cq->device->ops->destroy_cq(cq);
	return 0;
}

/* --- shared receive queues --- */

static int srq_attr_check(const struct ib_device *device, const struct ib_srq_attr *attr)
{
	if (!attr->max_wr || attr->max_wr > (unsigned)device->attrs.max_srq_wr ||
	    attr->max_sge > (unsigned)device->attrs.max_srq_sge)
		return -EINVAL;
	return 0;
}

struct ib_srq *core_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *attr,
			       struct ib_uobject *uobject)
{
	struct ib_device *device = pd->device;
	struct core_owner owner = core_heir(pd, uobject);
	struct ib_udata udata;
	struct ib_srq *srq;

	if (!device->ops->create_srq || !device->attrs.max_srq)
		return ERR_PTR(-EOPNOTSUPP);
	if (srq_attr_check(device, &attr->attr) || !attr->xrcd != !attr->cq ||
	    (attr->xrcd && (attr->xrcd->device != device || attr->cq->device != device)))
		return ERR_PTR(-EINVAL);
	if (core_has_room(device, RDMA_RESTRACK_SRQ, uobject))
		return ERR_PTR(-ENOMEM);
	srq = device->ops->create_srq(pd, attr, core_udata(&owner, &udata));
	if (IS_ERR(srq))
		return srq;
	srq->device = device;
	srq->pd = pd;
	srq->uobject = uobject;
	srq->event_handler = attr->event_handler;
	srq->srq_context = attr->srq_context;
	srq->xrcd = attr->xrcd;
	srq->cq = attr->cq;
	pd->usecnt++;
	if (srq->xrcd) {
		srq->xrcd->usecnt++;
		srq->cq->usecnt++;
	}
	core_track(device, &srq->res, RDMA_RESTRACK_SRQ, &owner);
	return srq;
}

struct ib_srq *ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *attr)
{
	return core_create_srq(pd, attr, NULL);
}

struct ib_srq *ib_create_srq_user(struct ib_uobject *uobject, struct ib_pd *pd,
				  struct ib_srq_init_attr *attr)
{
	return core_create_srq(pd, attr, uobject);
}

int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask)
{
	if (!srq->device->ops->modify_srq)
		return -EOPNOTSUPP;
	if (mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR && !(srq->device->attrs.device_cap_flags & IB_DEVICE_SRQ_RESIZE))
		return -EINVAL;
	if (mask & IB_SRQ_MAX_WR &&
	    (!attr->max_wr || attr->max_wr > (unsigned)srq->device->attrs.max_srq_wr))
		return -EINVAL;
	return srq->device->ops->modify_srq(srq, attr, mask);
}

int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr)
{
	return srq->device->ops->query_srq ? srq->device->ops->query_srq(srq, attr) :
					     -EOPNOTSUPP;
}

int ib_destroy_srq(struct ib_srq *srq)
{
	if (srq->usecnt)
		return -EBUSY;
	srq->pd->usecnt--;
	if (srq->xrcd) {
		srq->xrcd->usecnt--;
		srq->cq->usecnt--;
	}
	rdma_restrack_del(srq->device, &srq->res);
	core_events_forget(srq->device, srq);
	srq->device->ops->destroy_srq(srq);
	return 0;
}
