/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains. Other programs join a domain by its file on an adapter whose queues are in
 * everyone's reach; here a program's SRQs are in its own memory, which no other receives
 * into, so each opening of a file is a domain of its own.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "soft.h"

#define KNOWN_COMP_MASK (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

/**
 * xrcd_open() - ibv_open_xrcd()
 * Return: the domain; NULL and errno: EINVAL attributes, both of which must be there, or flags
 * other than O_CREAT and O_EXCL; EBADF; ENOMEM; EIO
 */
struct ibv_xrcd *xrcd_open(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd req = {.fd = UINT32_MAX, .oflags = O_CREAT};
	struct ib_uverbs_open_xrcd_resp resp;
	struct soft_xrcd *xrcd;
	int rc;

	if (attr->comp_mask != KNOWN_COMP_MASK || attr->oflags & ~(O_CREAT | O_EXCL) ||
	    (attr->fd == -1 && !(attr->oflags & O_CREAT)))
		return verbs_null(-EINVAL);
	if (attr->fd != -1 && fcntl(attr->fd, F_GETFD) < 0)
		return verbs_null(-EBADF);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return verbs_null(-ENOMEM);
	rc = session_command(to_context(context), IB_USER_VERBS_CMD_OPEN_XRCD, &req, sizeof(req),
			     &resp, sizeof(resp));
	if (rc) {
		free(xrcd);
		return verbs_null(rc);
	}
	xrcd->ibv.context = context;
	xrcd->handle = resp.xrcd_handle;
	return &xrcd->ibv;
}

/** xrcd_close() - ibv_close_xrcd(). Return: 0; EBUSY while it has SRQs or QPs */
int xrcd_close(struct ibv_xrcd *ibxrcd)
{
	struct soft_xrcd *xrcd = to_xrcd(ibxrcd);
	struct ib_uverbs_close_xrcd req = {.xrcd_handle = xrcd->handle};
	int rc = session_destroy(to_context(ibxrcd->context), IB_USER_VERBS_CMD_CLOSE_XRCD, &req,
				 sizeof(req), NULL, 0);

	if (rc)
		return verbs_err(rc);
	free(xrcd);
	return 0;
}
