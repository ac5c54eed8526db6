/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions: a key names a range of the process, its protection domain
 * and its rights, and every use is checked against all three (IBA v1 10.6.3). Regions that
 * are made of pages, and change what they name, are in paged.c.
 *
 * The pages of a region that is paged on demand (IBV_ACCESS_ON_DEMAND) need not be mapped when it is
 * registered, nor at any later time. Each use of it checks first that they are. Such a region is
 * therefore never in the cache of regions used last, whose regions are used without this check.
 *
 * A null region (ibv_alloc_null_mr(3)) has two buffers: one of zeros that is read, and one that is
 * written and never read. Any address is the first byte of either. A buffer is as large as the largest
 * segment, so that a piece of a request's memory in it is one piece of the segment (TP_MAX_PIECES).
 */
#include "engine/private.h"
#include "runtime/rt.h"
#include "transport/guard.h"

#define WRITE_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define NULL_BYTES   ABI_SEGMENT_BYTES

struct null_mr {
	struct eng_mr mr;
	uint8_t zeros[NULL_BYTES], sink[NULL_BYTES];
};

/* @mr, or that which it is in, is freed if it cannot be added */
static int add(struct engine *e, struct eng_mr *mr)
{
	int ret;

	eng_lock(e);
	ret = eng_table_add(&e->mrs, eng_key_index(mr->attr.key), mr);
	e->probes |= !ret && mr->attr.access & IBV_ACCESS_ON_DEMAND;
	eng_unlock(e);
	if (ret)
		rt_free(mr);
	return ret;
}

int eng_mr_add(struct engine *e, const struct eng_mr_attr *attr)
{
	struct eng_mr *mr;

	if (!eng_may_store(attr->access, attr->access) || attr->iova + attr->length < attr->iova)
		return -EINVAL;
	mr = rt_zalloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->attr = *attr;
	return add(e, mr);
}

int eng_mr_add_null(struct engine *e, uint32_t key, uint32_t pd)
{
	static const struct eng_pages none;
	struct null_mr *null = rt_zalloc(sizeof(*null));

	if (!null)
		return -ENOMEM;
	null->mr = (struct eng_mr){.attr = {.key = key, .pd = pd, .length = UINT64_MAX,
					    .access = IBV_ACCESS_LOCAL_WRITE},
				   .is_null = true, .pages = &none};
	return add(e, &null->mr);
}

/* *@len: how much of it is in one piece */
static void *null_at(const struct eng_mr *mr, uint64_t *len, int access)
{
	struct null_mr *null = container_of((struct eng_mr *)mr, struct null_mr, mr);

	*len = MIN(*len, NULL_BYTES);
	return access & WRITE_RIGHTS ? null->sink : null->zeros;
}

/* The place of @key in the cache of regions used last, which saves the three loads of a lookup in the
 * table. */
static struct eng_mr **recent(struct engine *e, uint32_t key)
{
	return &e->recent_mr[eng_key_index(key) & (ENG_RECENT_MRS - 1)];
}

static const struct eng_mr *find_mr(struct engine *e, uint32_t key)
{
	struct eng_mr **r = recent(e, key), *mr;

	if (likely(*r && (*r)->attr.key == key))
		return *r;
	mr = eng_mr_of(e, key);
	if (!mr || !(mr->is_window || mr->pages || mr->attr.access & IBV_ACCESS_ON_DEMAND))
		*r = mr; /* else each use comes by eng_mem_run() */
	return mr;
}

uint32_t eng_mr_pd(struct engine *e, uint32_t key)
{
	const struct eng_mr *mr = find_mr(e, key);

	return mr ? mr->attr.pd : UINT32_MAX;
}

int eng_mr_del(struct engine *e, uint32_t key)
{
	struct eng_mr *mr;
	int ret = 0;

	eng_lock(e);
	mr = eng_mr_of(e, key);
	if (!mr || (mr->attr.key != key && !mr->is_paged) || mr->is_window)
		ret = -ENOENT;
	else if (mr->windows)
		ret = -EBUSY;
	if (!ret) {
		eng_table_set(&e->mrs, eng_key_index(key), NULL);
		*recent(e, key) = NULL;
	}
	eng_unlock(e);
	if (!ret)
		rt_free(mr);
	return ret;
}

bool eng_mr_is_bound(struct engine *e, uint32_t key)
{
	const struct eng_mr *mr;
	bool bound;

	eng_lock(e);
	mr = eng_mr_of(e, key);
	bound = mr && !mr->is_window && mr->windows;
	eng_unlock(e);
	return bound;
}

void eng_mr_free_all(struct engine *e)
{
	eng_table_free(&e->mrs, rt_free);
}

int eng_mr_query(struct engine *e, uint32_t key, struct eng_mr_attr *attr)
{
	const struct eng_mr *mr;

	eng_lock(e);
	mr = eng_mr_of(e, key);
	if (mr && mr->attr.key == key && !mr->is_window)
		*attr = mr->attr;
	else
		mr = NULL;
	eng_unlock(e);
	return mr ? 0 : -ENOENT;
}

/*
 * What is written to memory that is gone is dropped, as an adapter writes to a page that
 * nobody maps any more (transport/guard.h); what is read there fails. Memory that is paged on
 * demand was never pinned: there an adapter raises a page fault, which the kernel cannot resolve.
 */
static bool is_there(const struct eng_mr *mr, void *at, uint64_t len, int access)
{
	if (!(access & WRITE_RIGHTS))
		return guard_probe(at, len);
	return !(mr->attr.access & IBV_ACCESS_ON_DEMAND) || guard_probe_write(at, len);
}

static void *place(const struct engine *e, const struct eng_mr *mr, uint64_t va, uint64_t *len,
		   int access)
{
	void *at;

	if (likely(!mr->pages))
		at = eng_mr_at(mr, va, *len);
	else if (mr->is_null)
		at = null_at(mr, len, access);
	else if (range_covers(mr->attr.iova, mr->attr.length, va, *len))
		at = eng_paged_at(mr, va, len);
	else
		return NULL;
	if (unlikely(e->probes && at && !is_there(mr, at, *len, access)))
		return NULL;
	return at;
}

/* the region of a key of the program's own; NULL: it is not for this @access */
static const struct eng_mr *own_mr(struct engine *e, uint32_t pd, uint32_t key, int access)
{
	const struct eng_mr *mr = find_mr(e, key);

	return likely(eng_mr_allows(mr, pd, key, access) && !mr->is_window) ? mr : NULL;
}

void *eng_mem_run(const struct eng_qp *qp, uint32_t pd, uint32_t key, uint64_t va, uint64_t *len,
		  int access, enum tp_key whose)
{
	const struct eng_mr *mr = own_mr(qp->engine, pd, key, access);

	if (unlikely(!mr || !eng_odp_serves(qp, mr, access, whose)))
		return NULL;
	return place(qp->engine, mr, va, len, access);
}

void *eng_mem(struct engine *e, uint32_t pd, uint32_t key, uint64_t va, uint64_t len, int access)
{
	const struct eng_mr *mr = own_mr(e, pd, key, access);
	uint64_t run = len;
	void *at;

	if (unlikely(!mr || eng_odp_depends(e, mr)))
		return NULL;
	at = place(e, mr, va, &run, access);
	return likely(run == len) ? at : NULL;
}

/* the region or window of a peer's key; NULL: it is not for @qp, or not for this @access */
static const struct eng_mr *remote_mr(const struct eng_qp *qp, uint32_t pd, uint32_t key,
				      int access)
{
	const struct eng_mr *mr = find_mr(qp->engine, key);

	if (unlikely(!eng_mr_allows(mr, pd, key, access) ||
		     !(mr->attr.access & (ENG_REMOTE_RIGHTS | TP_ACCESS_FLUSH_GLOBAL)) ||
		     (mr->is_window && !eng_mw_serves(mr, qp))))
		return NULL;
	return mr;
}

void *eng_mem_remote(const struct eng_qp *qp, uint32_t pd, uint32_t key, uint64_t va,
		     uint64_t *len, int access)
{
	const struct eng_mr *mr = remote_mr(qp, pd, key, access);

	if (unlikely(!mr || !eng_odp_serves(qp, mr, access, TP_KEY_REMOTE)))
		return NULL;
	return place(qp->engine, mr, va, len, access);
}

bool eng_mem_grants(const struct eng_qp *qp, uint32_t pd, uint32_t key, int access)
{
	return remote_mr(qp, pd, key, access);
}
