/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pools of fast memory regions.
 *
 * States of an FMR of a pool
 *   in use  mapped by a consumer, or by several if the pool has a cache (ref_count)
 *   free    may be mapped; it may still have the pages of its last mapping
 *   dirty   was mapped as often as it may be; it becomes free when a flush unmaps it
 */
#include "core/private.h"
#include "rdma/ib_fmr_pool.h"

#define CACHE_BUCKETS 256 /* a power of 2 */

struct ib_fmr_pool {
	struct ib_pd *pd;
	struct ib_fmr_pool_param param;
	int max_remaps;
	struct list_head free, dirty, in_use; /* struct ib_pool_fmr.list */
	int dirty_len;
	struct list_head *cache; /* [CACHE_BUCKETS]; NULL: the pool has no cache */
	struct rt_work flush;	 /* queued when the number of dirty FMRs reaches the watermark */
};

/* --- the cache, hashed by the first page --- */

static struct list_head *bucket_of(struct ib_fmr_pool *pool, u64 first_page)
{
	u64 hash = (first_page >> pool->param.page_shift) * 0x9e3779b97f4a7c15ull;

	return &pool->cache[hash >> 32 & (CACHE_BUCKETS - 1)];
}

static struct ib_pool_fmr *find_cached(struct ib_fmr_pool *pool, const u64 *page_list, int len,
				       u64 iova)
{
	struct ib_pool_fmr *fmr;

	list_for_each_entry(fmr, bucket_of(pool, page_list[0]), cache_node)
		if (fmr->io_virtual_address == iova && fmr->page_list_len == len &&
		    !memcmp(fmr->page_list, page_list, (size_t)len * sizeof(*page_list)))
			return fmr;
	return NULL;
}

/* --- flush --- */

static void unmap_dirty(struct ib_fmr_pool *pool)
{
	struct list_head unmap;
	struct ib_pool_fmr *fmr;

	INIT_LIST_HEAD(&unmap);
	list_for_each_entry(fmr, &pool->dirty, list) {
		list_del_init(&fmr->cache_node);
		fmr->remap_count = 0;
		list_add_tail(&fmr->fmr->list, &unmap);
	}
	ib_unmap_fmr(&unmap);
	while (!list_empty(&unmap))
		list_del_init(unmap.next);
	list_splice_tail_init(&pool->dirty, &pool->free);
	pool->dirty_len = 0;
}

static void flush(struct ib_fmr_pool *pool)
{
	rt_work_cancel(&pool->flush);
	unmap_dirty(pool);
	if (pool->param.flush_function)
		pool->param.flush_function(pool, pool->param.flush_arg);
}

static void on_watermark(struct rt_work *work)
{
	flush(container_of(work, struct ib_fmr_pool, flush));
}

int ib_flush_fmr_pool(struct ib_fmr_pool *pool)
{
	struct ib_pool_fmr *fmr, *next;

	/* FMRs that were released and still have their pages */
	list_for_each_entry_safe(fmr, next, &pool->free, list)
		if (fmr->remap_count) {
			list_del(&fmr->list);
			list_add_tail(&fmr->list, &pool->dirty);
			pool->dirty_len++;
		}
	flush(pool);
	return 0;
}

/* --- pools --- */

static void free_list(struct list_head *list)
{
	struct ib_pool_fmr *fmr, *next;

	list_for_each_entry_safe(fmr, next, list, list) {
		ib_dealloc_fmr(fmr->fmr);
		rt_free(fmr);
	}
}

void ib_destroy_fmr_pool(struct ib_fmr_pool *pool)
{
	rt_work_cancel(&pool->flush);
	free_list(&pool->free);
	free_list(&pool->dirty);
	free_list(&pool->in_use);
	rt_free(pool->cache);
	rt_free(pool);
}

static int add_fmr(struct ib_fmr_pool *pool)
{
	struct ib_fmr_attr attr = {.max_pages = pool->param.max_pages_per_fmr,
				   .max_maps = pool->max_remaps,
				   .page_shift = (u8)pool->param.page_shift};
	size_t list_bytes = pool->cache ? (size_t)attr.max_pages * sizeof(u64) : 0;
	struct ib_pool_fmr *fmr = rt_zalloc(sizeof(*fmr) + list_bytes);
	int ret;

	if (!fmr)
		return -ENOMEM;
	fmr->fmr = ib_alloc_fmr(pool->pd, pool->param.access, &attr);
	if (IS_ERR(fmr->fmr)) {
		ret = (int)PTR_ERR(fmr->fmr);
		rt_free(fmr);
		return ret;
	}
	fmr->fmr->pool = fmr->pool = pool;
	INIT_LIST_HEAD(&fmr->cache_node);
	list_add_tail(&fmr->list, &pool->free);
	return 0;
}

static int add_cache(struct ib_fmr_pool *pool)
{
	pool->cache = rt_zalloc(CACHE_BUCKETS * sizeof(*pool->cache));
	for (int i = 0; pool->cache && i < CACHE_BUCKETS; i++)
		INIT_LIST_HEAD(&pool->cache[i]);
	return pool->cache ? 0 : -ENOMEM;
}

struct ib_fmr_pool *ib_create_fmr_pool(struct ib_pd *pd, struct ib_fmr_pool_param *params)
{
	struct ib_fmr_pool *pool;
	int ret = 0;

	/* the parameters of the FMRs are checked when these are created */
	if (params->pool_size < 1 || params->dirty_watermark < 1 || params->max_pages_per_fmr < 1 ||
	    params->page_shift < 0 || params->page_shift > 63)
		return ERR_PTR(-EINVAL);
	pool = rt_zalloc(sizeof(*pool));
	if (!pool)
		return ERR_PTR(-ENOMEM);
	pool->pd = pd;
	pool->param = *params;
	pool->max_remaps = pd->device->attrs.max_map_per_fmr;
	INIT_LIST_HEAD(&pool->free);
	INIT_LIST_HEAD(&pool->dirty);
	INIT_LIST_HEAD(&pool->in_use);
	rt_work_init(&pool->flush, on_watermark);
	if (params->cache)
		ret = add_cache(pool);
	for (int i = 0; !ret && i < params->pool_size; i++)
		ret = add_fmr(pool);
	if (!ret)
		return pool;
	ib_destroy_fmr_pool(pool);
	return ERR_PTR(ret);
}

/* --- use --- */

static bool is_dirty(const struct ib_pool_fmr *fmr)
{
	return !fmr->ref_count && fmr->remap_count >= fmr->pool->max_remaps;
}

/* Add a user to @fmr, which is free or in use. */
static struct ib_pool_fmr *take(struct ib_pool_fmr *fmr)
{
	fmr->ref_count++;
	list_del(&fmr->list);
	list_add_tail(&fmr->list, &fmr->pool->in_use);
	return fmr;
}

static void cache(struct ib_fmr_pool *pool, struct ib_pool_fmr *fmr, const u64 *page_list, int len,
		  u64 iova)
{
	fmr->io_virtual_address = iova;
	fmr->page_list_len = len;
	memcpy(fmr->page_list, page_list, (size_t)len * sizeof(*page_list));
	list_add_tail(&fmr->cache_node, bucket_of(pool, page_list[0]));
}

struct ib_pool_fmr *ib_fmr_pool_map_phys(struct ib_fmr_pool *pool, u64 *page_list, int list_len,
					 u64 iova)
{
	struct ib_pool_fmr *fmr = NULL;
	int ret;

	if (list_len < 1 || list_len > pool->param.max_pages_per_fmr)
		return ERR_PTR(-EINVAL);
	if (pool->cache)
		fmr = find_cached(pool, page_list, list_len, iova);
	if (fmr && !is_dirty(fmr))
		return take(fmr);
	if (list_empty(&pool->free))
		return ERR_PTR(-EAGAIN);
	fmr = list_first_entry(&pool->free, struct ib_pool_fmr, list);
	list_del_init(&fmr->cache_node);
	ret = ib_map_phys_fmr(fmr->fmr, page_list, list_len, iova);
	if (ret)
		return ERR_PTR(ret); /* the FMR still has its previous pages */
	fmr->remap_count++;
	if (pool->cache)
		cache(pool, fmr, page_list, list_len, iova);
	return take(fmr);
}

int ib_fmr_pool_unmap(struct ib_pool_fmr *fmr)
{
	struct ib_fmr_pool *pool = fmr->pool;

	if (--fmr->ref_count)
		return 0;
	list_del(&fmr->list);
	if (!is_dirty(fmr)) {
		list_add_tail(&fmr->list, &pool->free);
		return 0;
	}
	list_add_tail(&fmr->list, &pool->dirty);
	if (++pool->dirty_len >= pool->param.dirty_watermark)
		rt_work_queue(pool->pd->device->rt, &pool->flush);
	return 0;
}
