/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains. A file names one: whoever opens it again, by the inode, joins the domain that is
 * there. On an adapter whose queues are in everyone's reach those may be other programs. Here a
 * program's SRQs are in its own memory, which no other receives into, so a domain is of
 * one context; another context that opens the file has one of its own.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "soft.h"

#define KNOWN_COMP_MASK (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

/** struct soft_xrc_domain - what the openings of one file share */
struct soft_xrc_domain {
	struct list_head node; /* in soft_context.xrc_domains */
	bool has_file;	       /* else nobody can join */
	dev_t dev;
	ino_t inode;
	uint32_t handle;
	unsigned opens;
};

static struct soft_xrc_domain *find(struct soft_context *ctx, const struct stat *st)
{
	struct soft_xrc_domain *d;

	list_for_each_entry(d, &ctx->xrc_domains, node)
		if (d->has_file && d->dev == st->st_dev && d->inode == st->st_ino)
			return d;
	return NULL;
}

/* A domain that nobody has yet; @st: of its file, or NULL */
static int make_domain(struct soft_context *ctx, const struct stat *st,
		       struct soft_xrc_domain **domain)
{
	struct ib_uverbs_open_xrcd req = {.fd = UINT32_MAX, .oflags = O_CREAT};
	struct soft_xrc_domain *d = calloc(1, sizeof(*d));
	struct ib_uverbs_open_xrcd_resp resp;
	int rc = d ? session_command(ctx, IB_USER_VERBS_CMD_OPEN_XRCD, &req, sizeof(req), &resp,
				     sizeof(resp)) : -ENOMEM;

	if (rc) {
		free(d);
		return rc;
	}
	d->handle = resp.xrcd_handle;
	if (st) {
		d->has_file = true;
		d->dev = st->st_dev;
		d->inode = st->st_ino;
	}
	list_add_tail(&d->node, &ctx->xrc_domains);
	*domain = d;
	return 0;
}

/* Context: xrcd_lock */
static int join_or_make(struct soft_context *ctx, const struct ibv_xrcd_init_attr *attr,
			struct soft_xrc_domain **domain)
{
	struct stat st;
	int rc = 0;

	*domain = NULL;
	if (attr->fd != -1 && fstat(attr->fd, &st) < 0)
		return -errno;
	if (attr->fd != -1)
		*domain = find(ctx, &st);
	if (*domain && attr->oflags & O_EXCL)
		return -EINVAL;
	if (!*domain)
		rc = make_domain(ctx, attr->fd == -1 ? NULL : &st, domain);
	if (!rc)
		(*domain)->opens++;
	return rc;
}

/**
 * xrcd_open() - ibv_open_xrcd()
 * Return: the domain; NULL and errno: EINVAL attributes, both of which must be there, flags
 * other than O_CREAT and O_EXCL, or O_EXCL and the context has the file's domain; EBADF;
 * ENOMEM; EIO
 */
struct ibv_xrcd *xrcd_open(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct soft_context *ctx = to_context(context);
	struct soft_xrcd *xrcd;
	int rc;

	if (attr->comp_mask != KNOWN_COMP_MASK || attr->oflags & ~(O_CREAT | O_EXCL) ||
	    (attr->fd == -1 && !(attr->oflags & O_CREAT)))
		return verbs_null(-EINVAL);
	if (ctx->forked) /* another thread of the parent may have had the lock */
		return verbs_null(-EIO);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return verbs_null(-ENOMEM);
	pthread_mutex_lock(&ctx->xrcd_lock);
	rc = join_or_make(ctx, attr, &xrcd->domain);
	pthread_mutex_unlock(&ctx->xrcd_lock);
	if (rc) {
		free(xrcd);
		return verbs_null(rc);
	}
	xrcd->ibv.context = context;
	xrcd->handle = xrcd->domain->handle;
	return &xrcd->ibv;
}

/* The last to leave ends it. Context: xrcd_lock. Return: 0; -EBUSY */
static int leave(struct soft_context *ctx, struct soft_xrc_domain *d)
{
	struct ib_uverbs_close_xrcd req = {.xrcd_handle = d->handle};
	int rc = d->opens > 1 ? 0 :
				session_destroy(ctx, IB_USER_VERBS_CMD_CLOSE_XRCD, &req,
						sizeof(req), NULL, 0);

	if (rc || --d->opens)
		return rc;
	list_del(&d->node);
	free(d);
	return 0;
}

/** xrcd_close() - ibv_close_xrcd(). Return: 0; EBUSY the last opening of a domain that has
 *  SRQs or QPs */
int xrcd_close(struct ibv_xrcd *ibxrcd)
{
	struct soft_context *ctx = to_context(ibxrcd->context);
	struct soft_xrcd *xrcd = to_xrcd(ibxrcd);
	int rc = 0;

	if (!ctx->forked) {
		pthread_mutex_lock(&ctx->xrcd_lock);
		rc = leave(ctx, xrcd->domain);
		pthread_mutex_unlock(&ctx->xrcd_lock);
	}
	if (rc)
		return verbs_err(rc);
	free(xrcd);
	return 0;
}
