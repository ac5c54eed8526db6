/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions. softibd gives the key, the engine maps it to memory of the
 * program. Registration touches every page as pinning would, so that an
 * address that is not there fails here with EFAULT and not later with a
 * signal. Nothing is locked: RLIMIT_MEMLOCK does not matter.
 *
 * A region with IBV_ACCESS_ON_DEMAND is not touched. Its pages come when they
 * are used or prefetched (ibv_advise_mr()), the program may map and unmap them
 * as it likes, and no window is given onto them: a window would keep showing
 * the pages of before. (NULL, SIZE_MAX) is all of the address space, the
 * implicit region.
 */
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "faults.h"
#include "soft.h"

#define KNOWN_ACCESS                                                                           \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |           \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |               \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | TP_ACCESS_FLUSH_GLOBAL)
/* what the kernel takes for a dma-buf (drivers/infiniband/core/uverbs_std_types_mr.c) */
#define DMABUF_ACCESS                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |           \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/* 10.6.3.1, C10-45: remote write and atomic need local write */
static int check_access(unsigned access)
{
	if (access & ~(unsigned)KNOWN_ACCESS)
		return -EINVAL;
	if (access & NEEDS_LOCAL_WRITE && !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

/* Before Linux 5.14 madvise() knows no MADV_POPULATE_*. */
static bool is_old_kernel(void)
{
	return madvise(NULL, 0, MADV_POPULATE_READ) < 0;
}

static int touch_pages(void *addr, size_t length, unsigned access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1);
	uintptr_t to = (uintptr_t)addr + length;
	int how = access & IBV_ACCESS_LOCAL_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (!length || access & IBV_ACCESS_ON_DEMAND)
		return 0;
	if (to < (uintptr_t)addr)
		return -EINVAL;
	if (to > UINTPTR_MAX - page)
		return -EFAULT;
	to = (to + page - 1) & ~(page - 1);
	while (madvise((void *)from, to - from, how) < 0) {
		if (errno == EINTR || errno == EAGAIN)
			continue;
		if (errno == EINVAL) /* the mapping lacks a right, or the kernel is old */
			return is_old_kernel() ? 0 : -EFAULT;
		return errno == ENOMEM ? -EFAULT : -errno;
	}
	return 0;
}

/* Not the pages of regions that are paged on demand, nor memory that belongs to others. */
static bool may_be_in_windows(const struct soft_mr *mr)
{
	return !(mr->access & IBV_ACCESS_ON_DEMAND) && !mr->map;
}

/* What windows must know of a region. */
static void before_region(struct soft_context *ctx, const struct soft_mr *mr)
{
	if (may_be_in_windows(mr))
		windows_prepare(ctx, mr->memory, mr->ibv.length, mr->access);
}

/* @key 0: the registration failed */
static void after_region(struct soft_context *ctx, const struct soft_mr *mr, uint32_t key)
{
	if (may_be_in_windows(mr))
		windows_registered(ctx, mr->memory, mr->ibv.length, key);
}

static int command_reg(struct soft_context *ctx, struct soft_mr *mr)
{
	struct ib_uverbs_reg_mr req = {
		.start = (uintptr_t)mr->memory,
		.length = mr->ibv.length,
		.hca_va = mr->iova,
		.pd_handle = mr->ibv.pd->handle,
		.access_flags = (uint32_t)mr->access,
	};
	struct ib_uverbs_reg_mr_resp resp;
	int rc = session_command(ctx, IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req), &resp,
				 sizeof(resp));

	if (rc)
		return rc;
	mr->ibv.handle = resp.mr_handle;
	mr->ibv.lkey = resp.lkey;
	mr->ibv.rkey = resp.rkey;
	return 0;
}

static int command_dereg(struct soft_context *ctx, uint32_t handle)
{
	struct ib_uverbs_dereg_mr req = {.mr_handle = handle};

	return session_destroy(ctx, IB_USER_VERBS_CMD_DEREG_MR, &req, sizeof(req), NULL, 0);
}

/* A key that softibd has given to this region is nobody else's any more: not that of one that
 * was imported, and which its program has deregistered. */
static int engine_add(struct soft_context *ctx, const struct soft_mr *mr)
{
	struct eng_mr_attr attr = {
		.key = mr->ibv.lkey,
		.pd = mr->ibv.pd->handle,
		.addr = mr->memory,
		.length = mr->ibv.length,
		.iova = mr->iova,
		.access = mr->access,
	};
	int rc = mr->is_null ? eng_mr_add_null(ctx->engine, attr.key, attr.pd) :
			       eng_mr_add(ctx->engine, &attr);

	if (rc == -EEXIST && share_drop(ctx, attr.key))
		rc = engine_add(ctx, mr);
	return rc;
}

/* Get a key for @mr, whose memory, rights and addresses are set. Return: 0; -errno */
static int make_region(struct soft_context *ctx, struct soft_mr *mr)
{
	int rc;

	faults_watch();
	before_region(ctx, mr);
	rc = touch_pages(mr->memory, mr->ibv.length, (unsigned)mr->access);
	if (!rc)
		rc = command_reg(ctx, mr);
	if (rc)
		goto undo_prepared;
	rc = engine_add(ctx, mr);
	if (rc)
		goto undo_command;
	after_region(ctx, mr, mr->ibv.rkey);
	share_add(ctx, mr);
	return 0;
undo_command:
	command_dereg(ctx, mr->ibv.handle);
undo_prepared:
	after_region(ctx, mr, 0);
	return rc;
}

/**
 * ibv_reg_mr_iova2() - register memory that work requests name by @iova
 * @access: bits of IBV_ACCESS_OPTIONAL_RANGE are advice, and ignored
 *
 * Return: the MR; NULL and errno: EINVAL rights or length, EFAULT the range
 * is not mapped so, ENOMEM, EIO
 */
EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				       uint64_t iova, unsigned int access)
{
	struct soft_context *ctx = to_context(pd->context);
	struct soft_mr *mr;
	int rc;

	access &= ~(unsigned)IBV_ACCESS_OPTIONAL_RANGE;
	rc = check_access(access);
	if (rc)
		return verbs_null(rc);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return verbs_null(-ENOMEM);
	mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr,
				  .length = length};
	mr->memory = addr;
	mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	mr->access = (int)access;
	rc = make_region(ctx, mr);
	if (rc) {
		free(mr);
		return verbs_null(rc);
	}
	return &mr->ibv;
}

/**
 * mr_on_memory() - the region that softibd has made (@resp), for memory that the library
 * mapped and whose addresses begin with 0
 * Return: the region; NULL and errno, and softibd's is gone
 */
struct ibv_mr *mr_on_memory(struct ibv_pd *pd, const struct ib_uverbs_reg_mr_resp *resp,
			    void *memory, size_t length, unsigned access)
{
	struct soft_context *ctx = to_context(pd->context);
	struct soft_mr *mr = calloc(1, sizeof(*mr));
	int rc = -ENOMEM;

	if (mr) {
		mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .length = length,
					  .handle = resp->mr_handle, .lkey = resp->lkey,
					  .rkey = resp->rkey};
		mr->memory = memory;
		mr->access = (int)access;
		rc = engine_add(ctx, mr);
	}
	if (!rc) {
		share_add(ctx, mr);
		return &mr->ibv;
	}
	free(mr);
	command_dereg(ctx, resp->mr_handle);
	return verbs_null(rc);
}

EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				      int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

/* softibd, which gives the key, takes a null region for one without bytes. It refuses those that are
 * at the beginning of a page, as the kernel does */
#define NO_BYTES ((void *)1)

/**
 * mr_alloc_null() - ibv_alloc_null_mr(): a region without memory, for scatter and gather lists of
 * the program's own requests: any address reads as zeros, and what is written is discarded
 * Return: the MR, whose lkey alone is valid; NULL and errno: ENOMEM, EIO
 */
struct ibv_mr *mr_alloc_null(struct ibv_pd *pd)
{
	struct soft_context *ctx = to_context(pd->context);
	struct soft_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return verbs_null(-ENOMEM);
	mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd};
	mr->memory = NO_BYTES;
	mr->access = IBV_ACCESS_LOCAL_WRITE;
	mr->is_null = true;
	rc = command_reg(ctx, mr);
	if (rc)
		goto undo_alloc;
	rc = engine_add(ctx, mr);
	if (rc)
		goto undo_command;
	mr->ibv.length = SIZE_MAX;
	return &mr->ibv;
undo_command:
	command_dereg(ctx, mr->ibv.handle);
undo_alloc:
	free(mr);
	return verbs_null(rc);
}

/* --- dma-buf --- */

/* Is @fd memory that others share through it? A memfd stands for a dma-buf on machines that have
 * no exporter of dma-bufs. */
static int check_shared_memory(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return -errno;
	switch (fs.f_type) {
	case DMA_BUF_MAGIC:
	case TMPFS_MAGIC:
	case HUGETLBFS_MAGIC:
		return 0;
	}
	return -EINVAL;
}

/* Map the part of @fd that becomes the region @mr. */
static int map_shared_memory(struct soft_mr *mr, int fd, uint64_t offset)
{
	int prot = mr->access & IBV_ACCESS_LOCAL_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
	uint64_t in_page = offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);

	if (mr->ibv.length > SIZE_MAX - in_page)
		return -EINVAL;
	mr->map_bytes = mr->ibv.length + in_page;
	mr->map = mmap(NULL, mr->map_bytes, prot, MAP_SHARED, fd, (off_t)(offset - in_page));
	if (mr->map == MAP_FAILED)
		return -errno;
	mr->memory = (char *)mr->map + in_page;
	return 0;
}

/** mr_free() - the library's half of a region whose key is gone, or stays somebody else's */
void mr_free(struct soft_mr *mr)
{
	if (mr->map)
		munmap(mr->map, mr->map_bytes);
	free(mr);
}

/**
 * ibv_reg_dmabuf_mr() - register memory that a dma-buf or a memfd names
 * @offset: of the region in it; as far into a page as @iova is
 * @fd: stays the caller's, who may close it
 *
 * The engine reaches it by a mapping that lasts as long as the region, never through a
 * data-path window. Return: the MR, whose addr is @offset; NULL and errno: EINVAL rights,
 * length, offset, a descriptor of anything else; EBADF; EACCES the descriptor does not allow
 * it; EFAULT beyond its end; ENOMEM; EIO
 */
EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access)
{
	struct soft_mr *mr;
	int rc;

	access &= ~(int)IBV_ACCESS_OPTIONAL_RANGE;
	rc = check_access((unsigned)access);
	if (rc || access & ~DMABUF_ACCESS || !length ||
	    (offset ^ iova) & ((uint64_t)sysconf(_SC_PAGESIZE) - 1))
		return verbs_null(-EINVAL);
	rc = check_shared_memory(fd);
	if (rc)
		return verbs_null(rc);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return verbs_null(-ENOMEM);
	mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd,
				  .addr = (void *)(uintptr_t)offset, .length = length};
	mr->iova = iova;
	mr->access = access;
	rc = map_shared_memory(mr, fd, offset);
	if (rc) {
		free(mr);
		return verbs_null(rc);
	}
	rc = make_region(to_context(pd->context), mr);
	if (rc) {
		mr_free(mr);
		return verbs_null(rc);
	}
	return &mr->ibv;
}

/** ibv_dereg_mr() - no packet touches the memory after return.
 *  Return: 0; EBUSY while a memory window is bound to it; EOPNOTSUPP it is another program's; EIO */
EXPORT int ibv_dereg_mr(struct ibv_mr *ibmr)
{
	struct soft_context *ctx = to_context(ibmr->context);
	struct soft_mr *mr = container_of(ibmr, struct soft_mr, ibv);
	int rc;

	if (mr->foreign)
		return verbs_err(-EOPNOTSUPP);
	if (!ctx->forked) {
		if (eng_mr_del(ctx->engine, ibmr->lkey) == -EBUSY)
			return verbs_err(-EBUSY);
		windows_key_gone(ctx, ibmr->rkey);
	}
	rc = command_dereg(ctx, ibmr->handle);
	if (rc) {
		engine_add(ctx, mr);
		return verbs_err(rc);
	}
	share_del(ctx, ibmr->lkey);
	mr_free(mr);
	return 0;
}

static int rereg_input(const struct soft_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		       size_t length, int access)
{
	if (!flags || flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return -EINVAL;
	if (mr->foreign || mr->is_null || (flags & IBV_REREG_MR_CHANGE_TRANSLATION && mr->map))
		return -EOPNOTSUPP;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && (!length || !addr))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->ibv.context))
		return -EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS && (access < 0 || check_access((unsigned)access)))
		return -EINVAL;
	return 0;
}

static int command_rereg(struct soft_context *ctx, struct soft_mr *mr, int flags)
{
	struct ib_uverbs_rereg_mr req = {
		.mr_handle = mr->ibv.handle,
		.flags = (uint32_t)flags,
		.start = (uintptr_t)mr->memory,
		.length = mr->ibv.length,
		.hca_va = mr->iova,
		.pd_handle = mr->ibv.pd->handle,
		.access_flags = (uint32_t)mr->access,
	};
	struct ib_uverbs_rereg_mr_resp resp;
	int rc = session_command(ctx, IB_USER_VERBS_CMD_REREG_MR, &req, sizeof(req), &resp,
				 sizeof(resp));

	if (rc)
		return rc;
	mr->ibv.lkey = resp.lkey;
	mr->ibv.rkey = resp.rkey;
	return 0;
}

/**
 * ibv_rereg_mr() - change memory, PD or rights of a region
 * Return: 0; IBV_REREG_MR_ERR_INPUT and the old region stays;
 * IBV_REREG_MR_ERR_CMD and it must not be used. errno says why.
 */
EXPORT int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr,
			size_t length, int access)
{
	struct soft_context *ctx = to_context(ibmr->context);
	struct soft_mr *mr = container_of(ibmr, struct soft_mr, ibv), new = *mr;
	int rc = rereg_input(mr, flags, pd, addr, length,
			     access & ~(int)IBV_ACCESS_OPTIONAL_RANGE);

	if (!rc && flags & IBV_REREG_MR_CHANGE_ACCESS)
		new.access = access & ~(int)IBV_ACCESS_OPTIONAL_RANGE;
	if (!rc && flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		new.ibv.addr = new.memory = addr;
		new.ibv.length = length;
		new.iova = new.access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	}
	if (!rc && flags & IBV_REREG_MR_CHANGE_PD)
		new.ibv.pd = pd;
	if (!rc)
		rc = touch_pages(new.memory, new.ibv.length, (unsigned)new.access);
	if (!rc && eng_mr_del(ctx->engine, ibmr->lkey) == -EBUSY)
		rc = -EBUSY; /* a memory window is bound to it */
	if (rc) {
		errno = -rc;
		return IBV_REREG_MR_ERR_INPUT;
	}
	share_del(ctx, ibmr->lkey);
	windows_key_gone(ctx, ibmr->rkey);
	before_region(ctx, &new);
	rc = command_rereg(ctx, &new, flags);
	if (!rc)
		rc = engine_add(ctx, &new);
	after_region(ctx, &new, rc ? 0 : new.ibv.rkey);
	if (rc) {
		errno = -rc;
		return IBV_REREG_MR_ERR_CMD;
	}
	*mr = new;
	share_add(ctx, mr);
	return 0;
}

/* --- ibv_advise_mr() --- */

/* Return: 0 and the memory that @sge is; -EFAULT: no such region of @pd that is paged on
 * demand, not so much of it, or not to be written */
static int advised_memory(struct ibv_pd *pd, const struct ibv_sge *sge, bool write, void **addr)
{
	struct eng_mr_attr mr;

	if (eng_mr_query(to_context(pd->context)->engine, sge->lkey, &mr) || mr.pd != pd->handle ||
	    !(mr.access & IBV_ACCESS_ON_DEMAND) ||
	    !range_covers(mr.iova, mr.length, sge->addr, sge->length) ||
	    (write && !(mr.access & IBV_ACCESS_LOCAL_WRITE)))
		return -EFAULT;
	*addr = (char *)mr.addr + (sge->addr - mr.iova);
	return 0;
}

/**
 * mr_advise() - ibv_advise_mr(): bring pages that are paged on demand
 *
 * Without IBV_ADVISE_MR_FLAG_FLUSH an adapter may bring them later; here they are there on
 * return in any case, for there is nothing to wait for but the kernel. The engine uses the
 * program's page tables, so what is mapped needs no look: PREFETCH_NO_FAULT is a check alone.
 * Return: 0; EINVAL flags, list; EOPNOTSUPP an advice that is none of these; EFAULT a region,
 * its rights, or memory that is not mapped
 */
int mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	      struct ibv_sge *sges, uint32_t num_sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	void *addr;
	int rc = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return verbs_err(-EOPNOTSUPP);
	if (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH || !num_sge || !sges)
		return verbs_err(-EINVAL);
	for (uint32_t i = 0; !rc && i < num_sge; i++)
		rc = advised_memory(pd, &sges[i], write, &addr);
	for (uint32_t i = 0; !rc && i < num_sge; i++) {
		rc = advised_memory(pd, &sges[i], write, &addr);
		if (!rc && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
			rc = touch_pages(addr, sges[i].length, write ? IBV_ACCESS_LOCAL_WRITE : 0);
	}
	return verbs_err(rc);
}
