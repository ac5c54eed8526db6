/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Device memory: softibd gives a memfd, which is mapped here. A program reaches it by copies
 * (ibv_memcpy_to_dm()), requests and peers by regions on it, which are regions as any other
 * whose memory is that mapping and whose addresses begin with 0.
 *
 * An adapter reaches such memory by words of four bytes and refuses what is not aligned
 * so, and what its program tests here it should find there: EINVAL.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/objects.h"
#include "soft.h"

#define WORD_BYTES 4
#define MAX_LOG_ALIGN 12 /* a page */
#define KNOWN_ACCESS                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |           \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)

/** struct soft_dm - @of_child: it was made after fork(), in the session of the child */
struct soft_dm {
	struct ibv_dm ibv;
	uint8_t *memory;
	size_t length;
	bool of_child;
};

static struct soft_dm *to_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct soft_dm, ibv);
}

static int check_copy(const struct soft_dm *dm, uint64_t offset, size_t length)
{
	if (offset % WORD_BYTES || length % WORD_BYTES)
		return -EINVAL;
	return range_covers(0, dm->length, offset, length) ? 0 : -EFAULT;
}

static int copy_to(struct ibv_dm *ibdm, uint64_t offset, const void *from, size_t length)
{
	struct soft_dm *dm = to_dm(ibdm);
	int rc = check_copy(dm, offset, length);

	if (!rc)
		memcpy(dm->memory + offset, from, length);
	return verbs_err(rc);
}

static int copy_from(void *to, struct ibv_dm *ibdm, uint64_t offset, size_t length)
{
	struct soft_dm *dm = to_dm(ibdm);
	int rc = check_copy(dm, offset, length);

	if (!rc)
		memcpy(to, dm->memory + offset, length);
	return verbs_err(rc);
}

static int command_free(struct soft_context *ctx, const struct soft_dm *dm)
{
	struct abi_free_dm req = {.dm_handle = dm->ibv.handle};
	int rc;

	/* in a child, the copy of the parent's object ends when its mapping is removed */
	if (ctx->forked != dm->of_child)
		return 0;
	rc = session_command_own(ctx, ABI_CMD_FREE_DM, &req, sizeof(req), NULL, 0, NULL);
	return rc == -EIO ? 0 : rc; /* with softibd it went */
}

/* The library's mapping of the memfd @fd, which it closes; -1: there was no room for it. */
static int map_memory(struct soft_dm *dm, int fd)
{
	int rc = 0;

	if (fd < 0)
		return -EMFILE;
	dm->memory = mmap(NULL, dm->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (dm->memory == MAP_FAILED)
		rc = -errno;
	close(fd);
	return rc;
}

static int command_alloc(struct soft_context *ctx, struct soft_dm *dm)
{
	struct abi_alloc_dm req = {.length_bytes = dm->length};
	struct abi_alloc_dm_resp resp;
	int fd, rc = session_command_own(ctx, ABI_CMD_ALLOC_DM, &req, sizeof(req), &resp,
					 sizeof(resp), &fd);

	if (rc)
		return rc;
	dm->ibv.handle = resp.dm_handle;
	rc = map_memory(dm, fd);
	if (rc)
		command_free(ctx, dm);
	return rc;
}

static struct soft_dm *new_dm(struct ibv_context *context, size_t length)
{
	struct soft_dm *dm = calloc(1, sizeof(*dm));

	if (!dm)
		return NULL;
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = copy_to;
	dm->ibv.memcpy_from_dm = copy_from;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->length = length;
	dm->of_child = to_context(context)->forked;
	return dm;
}

/**
 * dm_alloc() - ibv_alloc_dm()
 * Context: in a child after fork(), too: the memory is the child's then.
 * Return: the device memory; NULL and errno: EINVAL attributes, or more than max_dm_size;
 * EOPNOTSUPP the device has none, or an alignment beyond a page; ENOMEM more than is left; EIO
 */
struct ibv_dm *dm_alloc(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct soft_context *ctx = to_context(context);
	struct soft_dm *dm;
	int rc;

	if (!ctx->attr.max_dm_size)
		return verbs_null(-EOPNOTSUPP);
	if (attr->comp_mask || !attr->length || attr->length > ctx->attr.max_dm_size)
		return verbs_null(-EINVAL);
	if (attr->log_align_req > MAX_LOG_ALIGN)
		return verbs_null(-EOPNOTSUPP);
	rc = ctx->forked ? session_of_child(ctx) : 0;
	if (rc)
		return verbs_null(rc);
	dm = new_dm(context, attr->length);
	if (!dm)
		return verbs_null(-ENOMEM);
	rc = command_alloc(ctx, dm);
	if (rc) {
		free(dm);
		return verbs_null(rc);
	}
	return &dm->ibv;
}

/**
 * ibv_import_dm() - the device memory that has @dm_handle in the session of @context
 * Return: the device memory, for ibv_unimport_dm(), or ibv_free_dm() in the place of the one
 * that allocated it; NULL and errno: EINVAL there is none, ENOMEM, EMFILE, EIO
 */
EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct abi_query_object req = {.object = ABI_OBJECT_DM, .handle = dm_handle};
	struct soft_dm *dm = new_dm(context, 0);
	struct abi_query_object_resp resp;
	int fd, rc;

	if (!dm)
		return verbs_null(-ENOMEM);
	rc = session_command_own(to_context(context), ABI_CMD_QUERY_OBJECT, &req, sizeof(req),
				 &resp, sizeof(resp), &fd);
	if (!rc) {
		dm->ibv.handle = dm_handle;
		dm->length = resp.length_bytes;
		rc = map_memory(dm, fd);
	}
	if (rc) {
		free(dm);
		return verbs_null(rc);
	}
	return &dm->ibv;
}

/** ibv_unimport_dm() - forget @dm, and leave the device memory as it is */
EXPORT void ibv_unimport_dm(struct ibv_dm *ibdm)
{
	struct soft_dm *dm = to_dm(ibdm);

	munmap(dm->memory, dm->length);
	free(dm);
}

/** dm_free() - ibv_free_dm(). Return: 0; EBUSY while a region is on it */
int dm_free(struct ibv_dm *ibdm)
{
	struct soft_dm *dm = to_dm(ibdm);
	int rc = command_free(to_context(ibdm->context), dm);

	if (rc)
		return verbs_err(rc);
	ibv_unimport_dm(ibdm);
	return 0;
}

/**
 * dm_reg_mr() - ibv_reg_dm_mr()
 * Return: the region, whose addresses begin with 0 and whose addr is NULL; NULL and errno: EINVAL beyond
 * the device memory, or another context's, rights, or not IBV_ACCESS_ZERO_BASED; ENOMEM; EIO
 */
struct ibv_mr *dm_reg_mr(struct ibv_pd *pd, struct ibv_dm *ibdm, uint64_t offset, size_t length,
			 unsigned int access)
{
	struct soft_context *ctx = to_context(pd->context);
	struct soft_dm *dm = to_dm(ibdm);
	struct abi_reg_dm_mr req = {.offset = offset, .length_bytes = length,
				    .pd_handle = pd->handle, .dm_handle = ibdm->handle};
	struct ib_uverbs_reg_mr_resp resp;
	int rc;

	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	if (ibdm->context != pd->context || access & ~(unsigned)KNOWN_ACCESS ||
	    !range_covers(0, dm->length, offset, length))
		return verbs_null(-EINVAL);
	req.access_flags = access;
	rc = session_command(ctx, ABI_CMD_REG_DM_MR, &req, sizeof(req), &resp, sizeof(resp));
	if (rc)
		return verbs_null(rc);
	return mr_on_memory(pd, &resp, dm->memory + offset, length, access);
}
