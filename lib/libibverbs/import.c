/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Contexts, protection domains and regions once more, by the descriptor and the handles of
 * those that exist (ibv_import_device(3)). Device memory is imported in dm.c.
 *
 * A provider of the kernel makes a second context on the same open file. Here the engine,
 * which has the memory keys and the queue pairs, is the process's own. An imported context is
 * therefore the context itself, opened one time more, if it is one of this process. Of a
 * context of another process, it is a new one that shares the handles of its objects
 * (abi/share.h), and share.c brings the memory of regions.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/objects.h"
#include "soft.h"

/* @fd: as session_command_own() */
static int query_object(struct ibv_context *context, enum abi_object object, uint32_t handle,
			struct abi_query_object_resp *resp, int *fd)
{
	struct abi_query_object req = {.object = object, .handle = handle};

	return session_command_own(to_context(context), ABI_CMD_QUERY_OBJECT, &req, sizeof(req),
				   resp, sizeof(*resp), fd);
}

/* Of another process; @cmd_fd is the library's on success. */
static struct ibv_context *import_foreign(int cmd_fd)
{
	struct ibv_context *context;
	struct soft_device *device;
	struct abi_share share;
	int rc = share_read(cmd_fd, &share);

	if (rc)
		return verbs_null(rc);
	device = device_named(share.dir, share.node, share.device);
	if (!device)
		return NULL;
	context = context_open(device, &share, cmd_fd);
	if (context)
		fcntl(cmd_fd, F_SETFD, FD_CLOEXEC);
	return context;
}

/**
 * ibv_import_device() - a context for the one of which @cmd_fd is a duplicate of cmd_fd
 * @cmd_fd: the library's on success
 * Return: the context, to be closed as one that was opened; NULL and errno: EBADF;
 * EOPNOTSUPP it is no such descriptor; ENOENT all contexts with it are closed; as
 * ibv_open_device()
 */
EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct soft_context *ctx;

	if (fcntl(cmd_fd, F_GETFD) < 0)
		return verbs_null(-EBADF);
	ctx = context_open_again(cmd_fd);
	if (!ctx)
		return import_foreign(cmd_fd);
	if (cmd_fd != ctx->v.context.cmd_fd)
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
	int rc = pd ? query_object(context, ABI_OBJECT_PD, pd_handle, &resp, NULL) : -ENOMEM;

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

/* A region of another program, or whose program is gone; @memfd: of device memory, or -1 */
static int load_foreign(struct soft_mr *mr, const struct abi_query_object_resp *resp, int memfd)
{
	int rc = share_import(to_context(mr->ibv.context), mr->ibv.handle, resp, memfd,
			      &mr->foreign);

	if (!rc)
		mr->memory = share_memory(mr->foreign);
	return rc;
}

static int load_region(struct soft_mr *mr, const struct abi_query_object_resp *resp, int memfd)
{
	struct eng_mr_attr attr = {.pd = resp->pd_handle, .iova = resp->iova,
				   .access = (int)resp->access};
	bool is_own = !resp->owner &&
		      !eng_mr_query(to_context(mr->ibv.context)->engine, resp->lkey, &attr);

	if (attr.pd != mr->ibv.pd->handle)
		return -EINVAL;
	mr->ibv.length = resp->length_bytes;
	mr->ibv.lkey = resp->lkey;
	mr->ibv.rkey = resp->rkey;
	mr->memory = attr.addr;
	mr->iova = attr.iova;
	mr->access = attr.access;
	return is_own ? 0 : load_foreign(mr, resp, memfd);
}

/**
 * ibv_import_mr() - the memory region that has @mr_handle in the session of @pd's context
 *
 * Of a region of this process, the one that is imported may be deregistered in the place of the
 * one that was registered. Another process's region is deregistered there alone; afterwards
 * requests that use it here fail.
 *
 * Return: the region, whose addr is NULL, for ibv_unimport_mr(); NULL and errno: EINVAL there is
 * none in @pd; EOPNOTSUPP it is all of another program's memory, or nobody handles the faults
 * (SOFTIB_GUARD=0); EAGAIN the other program does not take connections now; ENOMEM, EMFILE, EIO
 */
EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct soft_mr *mr = calloc(1, sizeof(*mr));
	struct abi_query_object_resp resp;
	int memfd = -1, rc;

	if (!mr)
		return verbs_null(-ENOMEM);
	mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .handle = mr_handle};
	rc = query_object(pd->context, ABI_OBJECT_MR, mr_handle, &resp, &memfd);
	if (!rc)
		rc = load_region(mr, &resp, memfd);
	if (memfd >= 0)
		close(memfd);
	if (rc) {
		free(mr);
		return verbs_null(rc);
	}
	return &mr->ibv;
}

/** ibv_unimport_mr() - forget @mr, and leave the region as it is */
EXPORT void ibv_unimport_mr(struct ibv_mr *ibmr)
{
	struct soft_mr *mr = container_of(ibmr, struct soft_mr, ibv);

	if (mr->foreign)
		share_release(to_context(ibmr->context), mr->foreign);
	mr_free(mr);
}
