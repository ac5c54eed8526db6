/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains, and targets that several programs open (IBA v1 annex A14). A file identifies a
 * domain by its inode: all programs that open a domain with this file share one domain of the
 * device. A client has a domain of its own. A domain is freed when it is closed for the last time.
 * A target exists as long as a program has a handle of it. When its creator closes it, the next
 * program that has opened it becomes its owner.
 */
#include <fcntl.h>

#include "core/private.h"

static struct ib_xrc_domain *find_domain(const struct ib_device *device,
					 const struct ib_xrcd_file *file)
{
	struct ib_xrc_domain *d;

	list_for_each_entry(d, &device->xrc_domains, node)
		if (d->has_file && d->file_device == file->device && d->inode == file->inode)
			return d;
	return NULL;
}

static struct ib_xrc_domain *make_domain(struct ib_device *device,
					 const struct ib_xrcd_file *file)
{
	struct ib_xrc_domain *d = rt_zalloc(sizeof(*d));

	if (!d)
		return NULL;
	d->number = ++device->last_xrc_domain;
	d->has_file = file;
	d->file_device = file ? file->device : 0;
	d->inode = file ? file->inode : 0;
	INIT_LIST_HEAD(&d->openings);
	INIT_LIST_HEAD(&d->targets);
	list_add_tail(&d->node, &device->xrc_domains);
	return d;
}

static void leave_domain(struct ib_xrc_domain *d)
{
	if (!list_empty(&d->openings))
		return;
	list_del(&d->node);
	rt_free(d);
}

static void note_sharing(struct ib_xrcd *xrcd)
{
	struct ib_device *device = xrcd->device;
	const struct ib_xrcd *other;

	list_for_each_entry(other, &xrcd->domain->openings, node) {
		if (other->context == xrcd->context || xrcd->domain->is_shared)
			continue;
		xrcd->domain->is_shared = true;
		if (device->ops->xrcd_shared)
			device->ops->xrcd_shared(device);
	}
}

static bool has_xrc(const struct ib_device *device)
{
	return device->ops->alloc_xrcd && device->attrs.device_cap_flags & IB_DEVICE_XRC;
}

/* @context: NULL: a client joins */
static struct ib_xrcd *join_domain(struct ib_device *device, struct ib_xrc_domain *domain,
				   struct ib_ucontext *context)
{
	struct ib_udata udata = {.context = context};
	struct ib_xrcd *xrcd;

	if (!domain)
		return ERR_PTR(-ENOMEM);
	xrcd = device->ops->alloc_xrcd(device, context ? &udata : NULL);
	if (IS_ERR(xrcd)) {
		leave_domain(domain);
		return xrcd;
	}
	xrcd->device = device;
	xrcd->domain = domain;
	xrcd->context = context;
	list_add_tail(&xrcd->node, &domain->openings);
	note_sharing(xrcd);
	return xrcd;
}

struct ib_xrcd *ib_alloc_xrcd(struct ib_device *device)
{
	return has_xrc(device) ? join_domain(device, make_domain(device, NULL), NULL) :
				 ERR_PTR(-EOPNOTSUPP);
}

struct ib_xrcd *ib_alloc_xrcd_user(struct ib_uobject *uobject, const struct ib_xrcd_file *file,
				   int oflags)
{
	struct ib_device *device = uobject->context->device;
	struct ib_xrc_domain *domain = file ? find_domain(device, file) : NULL;

	if (!has_xrc(device))
		return ERR_PTR(-EOPNOTSUPP);
	if ((domain && oflags & O_EXCL) || (!domain && !(oflags & O_CREAT)))
		return ERR_PTR(-EINVAL);
	return join_domain(device, domain ? domain : make_domain(device, file), uobject->context);
}

int ib_dealloc_xrcd(struct ib_xrcd *xrcd)
{
	struct ib_xrc_domain *domain = xrcd->domain;

	if (xrcd->usecnt)
		return -EBUSY;
	list_del(&xrcd->node);
	xrcd->device->ops->dealloc_xrcd(xrcd);
	leave_domain(domain);
	return 0;
}

/* --- targets --- */

void core_target_created(struct ib_qp *qp)
{
	list_add_tail(&qp->target_node, &qp->xrcd->domain->targets);
	if (!qp->uobject)
		return;
	qp->uobject->xrcd = qp->xrcd;
	list_add_tail(&qp->uobject->opener, &qp->openers);
}

struct ib_qp *ib_open_qp_user(struct ib_uobject *uobject, struct ib_xrcd *xrcd, u32 qp_num)
{
	struct ib_qp *qp;

	list_for_each_entry(qp, &xrcd->domain->targets, target_node) {
		if (qp->qp_num != qp_num)
			continue;
		uobject->xrcd = xrcd;
		xrcd->usecnt++;
		list_add_tail(&uobject->opener, &qp->openers);
		return qp;
	}
	return ERR_PTR(-EINVAL);
}

int core_close_target(struct ib_uobject *uobject)
{
	struct ib_qp *qp = uobject->object;
	struct ib_uobject *heir;

	list_del(&uobject->opener);
	if (list_empty(&qp->openers))
		return ib_destroy_qp(qp);
	uobject->xrcd->usecnt--;
	if (qp->uobject != uobject)
		return 0;
	heir = list_first_entry(&qp->openers, struct ib_uobject, opener);
	qp->uobject = heir;
	qp->xrcd = heir->xrcd;
	if (qp->device->ops->inherit_qp && heir->context != uobject->context)
		qp->device->ops->inherit_qp(qp, heir->context);
	return 0;
}

bool ib_target_has_others(const struct ib_qp *qp)
{
	return qp->qp_type == IB_QPT_XRC_TGT && qp->openers.next->next != &qp->openers;
}
