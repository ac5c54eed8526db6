/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A pool of fast memory regions (FMRs), for consumers that map buffers for one request each.
 *
 * Unmapping is put off: an FMR that is given back keeps its pages until it has been mapped as
 * often as the device allows. Then it is dirty, and a flush unmaps all that are dirty at once.
 * So the keys of an FMR that was given back may still give access to its memory until
 * ib_flush_fmr_pool() returns. A pool with a cache finds an FMR that still has the same pages,
 * in use or not, and maps nothing.
 */
#ifndef RDMA_IB_FMR_POOL_H
#define RDMA_IB_FMR_POOL_H

#include "rdma/ib_verbs.h"

#pragma GCC visibility push(default)

struct ib_fmr_pool;

struct ib_fmr_pool_param {
	int max_pages_per_fmr;
	int page_shift; /* a page has 2^page_shift bytes */
	int access;	/* enum ib_access_flags */
	int pool_size;	/* FMRs */
	int dirty_watermark; /* so many dirty FMRs cause a flush */
	/** flush_function() - after each flush; NULL: nobody asks. Context: the caller's of
	 *  ib_flush_fmr_pool(); else from the loop, where it may not sleep */
	void (*flush_function)(struct ib_fmr_pool *pool, void *arg);
	void *flush_arg;
	unsigned cache : 1; /* FMRs that have the same pages are found */
};

/** struct ib_pool_fmr - an FMR of a pool */
struct ib_pool_fmr {
	struct ib_fmr *fmr; /* its keys */
	struct ib_fmr_pool *pool;
	struct list_head list; /* the free or the dirty ones; empty: it is in use */
	/* --- of a pool with a cache --- */
	struct list_head cache_node;
	int ref_count;
	int remap_count; /* maps since it was unmapped last */
	u64 io_virtual_address;
	int page_list_len;
	u64 page_list[];
};

/** ib_create_fmr_pool() - Context: may sleep. Return: a pool, for ib_destroy_fmr_pool();
 *  ERR_PTR(-EINVAL: the parameters; -EOPNOTSUPP; -ENOMEM) */
struct ib_fmr_pool *ib_create_fmr_pool(struct ib_pd *pd, struct ib_fmr_pool_param *params);

/** ib_destroy_fmr_pool() - and all of its FMRs, also those that are in use. flush_function()
 *  is not called. Context: may sleep */
void ib_destroy_fmr_pool(struct ib_fmr_pool *pool);

/** ib_flush_fmr_pool() - the keys of all FMRs that were given back give access to nothing any
 *  more. Context: may sleep. Return: 0 */
int ib_flush_fmr_pool(struct ib_fmr_pool *pool);

/**
 * ib_fmr_pool_map_phys() - an FMR that is these pages
 * @page_list: addresses of @list_len pages; copied
 * @io_virtual_address: the address that the region begins at, a multiple of the page size
 *
 * Context: any; never sleeps. Return: the FMR, for ib_fmr_pool_unmap(); ERR_PTR(-EAGAIN: all are
 * in use or dirty, try again after a flush; -EINVAL: @list_len, a page or the address)
 */
struct ib_pool_fmr *ib_fmr_pool_map_phys(struct ib_fmr_pool *pool, u64 *page_list, int list_len,
					 u64 io_virtual_address);

/** ib_fmr_pool_unmap() - give @fmr back, once for each map. Context: any; never sleeps.
 *  Return: 0 */
int ib_fmr_pool_unmap(struct ib_pool_fmr *fmr);

#pragma GCC visibility pop

#endif
