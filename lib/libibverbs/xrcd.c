/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC domains. A file names one: each program of the node that opens the file, by its inode,
 * joins the domain, and so does another context of this program. softibd has the domains; it
 * brings what arrives at a target to the program whose SRQ it is for.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "abi/target.h"
#include "soft.h"

#define KNOWN_COMP_MASK (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

static int command_open(struct soft_context *ctx, const struct ibv_xrcd_init_attr *attr,
			struct soft_xrcd *xrcd)
{
	struct {
		struct ib_uverbs_open_xrcd req;
		struct abi_open_xrcd file;
	} in = {.req = {.fd = UINT32_MAX, .oflags = (uint32_t)attr->oflags}};
	struct {
		struct ib_uverbs_open_xrcd_resp resp;
		uint32_t number;
	} out;
	struct stat st;
	int rc;

	if (attr->fd != -1) {
		if (fstat(attr->fd, &st) < 0)
			return -errno;
		in.req.fd = (uint32_t)attr->fd;
		in.file = (struct abi_open_xrcd){st.st_dev, st.st_ino};
	}
	rc = session_command(ctx, IB_USER_VERBS_CMD_OPEN_XRCD, &in, sizeof(in), &out, sizeof(out));
	if (rc)
		return rc;
	xrcd->handle = out.resp.xrcd_handle;
	xrcd->number = out.number;
	return 0;
}

/**
 * xrcd_open() - ibv_open_xrcd()
 * Return: the domain; NULL and errno: EINVAL attributes, both of which must be there, flags
 * other than O_CREAT and O_EXCL, O_EXCL and the file's domain exists, or it does not and
 * without O_CREAT; EBADF; ENOMEM; EIO
 */
struct ibv_xrcd *xrcd_open(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	struct soft_xrcd *xrcd;
	int rc;

	if (attr->comp_mask != KNOWN_COMP_MASK || attr->oflags & ~(O_CREAT | O_EXCL) ||
	    (attr->fd == -1 && !(attr->oflags & O_CREAT)))
		return verbs_null(-EINVAL);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return verbs_null(-ENOMEM);
	rc = command_open(to_context(context), attr, xrcd);
	if (rc) {
		free(xrcd);
		return verbs_null(rc);
	}
	xrcd->ibv.context = context;
	return &xrcd->ibv;
}

/** xrcd_close() - ibv_close_xrcd(). Return: 0; EBUSY this opening has SRQs or QPs */
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
