/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Contexts, protection domains and regions once more, by the descriptor and the handles of
 * those that exist (ibv_import_device(3)). Device memory is imported in dm.c.
 *
 * A provider of the kernel makes a second context on the same open file. Here the engine,
 * which has the memory keys and the queue pairs, is the process's own: an imported context is
 * the context itself, opened one time more, so that whatever is made by either is in one
 * engine. For the same reason a descriptor from another process cannot be imported: the memory
 * behind that process's keys is not this one's.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/objects.h"
#include "soft.h"

static int query_object(struct ibv_context *context, enum abi_object object, uint32_t handle,
			struct abi_query_object_resp *resp)
{
	struct abi_query_object req = {.object = object, .handle = handle};

	return session_command(to_context(context), ABI_CMD_QUERY_OBJECT, &req, sizeof(req), resp,
			       sizeof(*resp));
}

/**
 * ibv_import_device() - the context of which @cmd_fd is a duplicate of cmd_fd
 * @cmd_fd: the library's on success
 * Return: the context, to be closed as one that was opened; NULL and errno: EBADF;
 * EOPNOTSUPP it is of no context of this process
 */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct soft_context *ctx;

	if (fcntl(cmd_fd, F_GETFD) < 0)
		return verbs_null(-EBADF);
	ctx = context_open_again(cmd_fd);
	if (!ctx)
		return verbs_null(-EOPNOTSUPP);
	if (cmd_fd != ctx->sock)
		close(cmd_fd);
	return &ctx->v.context;
}

/**
 * ibv_import_pd() - the protection domain that has @pd_handle in the session of @context
 * Return: the PD, for ibv_unimport_pd(), or ibv_dealloc_pd() in the place of the one that
 * was allocated; NULL and errno: EINVAL there is none, ENOMEM, EIO
 */
EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct soft_pd *pd = calloc(1, sizeof(*pd));
	struct abi_query_object_resp resp;
	int rc = pd ? query_object(context, ABI_OBJECT_PD, pd_handle, &resp) : -ENOMEM;

	if (rc) {
		free(pd);
		return verbs_null(rc);
	}
	pd->ibv.context = context;
	pd->ibv.handle = pd_handle;
	return &pd->ibv;
}

/** ibv_unimport_pd() - forget @pd, and leave the protection domain as it is */
EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	free(to_pd(pd));
}

/* What the engine knows of the region with @resp's key, which is of @pd. */
static int load_region(struct soft_mr *mr, struct ibv_pd *pd,
		       const struct abi_query_object_resp *resp)
{
	struct eng_mr_attr attr;
	int rc = eng_mr_query(to_context(pd->context)->engine, resp->lkey, &attr);

	if (rc || attr.pd != pd->handle)
		return -EINVAL;
	mr->ibv.length = resp->length_bytes;
	mr->ibv.lkey = resp->lkey;
	mr->ibv.rkey = resp->rkey;
	mr->memory = attr.addr;
	mr->iova = attr.iova;
	mr->access = attr.access;
	return 0;
}

/**
 * ibv_import_mr() - the memory region that has @mr_handle in the session of @pd's context
 * Return: the region, whose addr is NULL, for ibv_unimport_mr(), or ibv_dereg_mr() in the
 * place of the one that was registered; NULL and errno: EINVAL there is none in @pd, ENOMEM, EIO
 */
EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct soft_mr *mr = calloc(1, sizeof(*mr));
	struct abi_query_object_resp resp;
	int rc = mr ? query_object(pd->context, ABI_OBJECT_MR, mr_handle, &resp) : -ENOMEM;

	if (!rc)
		rc = load_region(mr, pd, &resp);
	if (rc) {
		free(mr);
		return verbs_null(rc);
	}
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.handle = mr_handle;
	return &mr->ibv;
}

/** ibv_unimport_mr() - forget @mr, and leave the region as it is */
EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	mr_free(container_of(mr, struct soft_mr, ibv));
}
