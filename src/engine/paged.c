/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions that consist of pages, and can be registered again with other pages: those of
 * physical buffers, FMRs, and regions for fast registration (the base memory management
 * extensions, 10.6). Consumers of the midlayer use them for memory that is not contiguous.
 *
 * States of a region
 *   free        its keys give no access; a new region, or one that was invalidated
 *   registered  its key gives access to its pages
 *
 * A region for fast registration is staged by a call while it is in either state, registered
 * by a request in a send queue while it is free, and freed by LOCAL_INV, or by a SEND_WITH_INV
 * of the peer when peers have rights on it. The others are mapped by calls.
 */
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"

#define KNOWN_RIGHTS (IBV_ACCESS_LOCAL_WRITE | ENG_REMOTE_RIGHTS | IBV_ACCESS_MW_BIND)

struct eng_paged {
	struct eng_mr mr; /* of no length while it is free */
	uint32_t max;	  /* pages of each list */
	struct eng_pages pages;
	/* --- what the next fast registration makes of it; of no length: nothing --- */
	uint64_t staged_iova, staged_length;
	struct eng_pages staged;
	uint64_t addr[]; /* 2 * @max: pages, staged */
};

static struct eng_paged *find(const struct engine *e, uint32_t key)
{
	struct eng_mr *mr = eng_mr_of(e, key);

	return mr && mr->is_paged ? container_of(mr, struct eng_paged, mr) : NULL;
}

static struct eng_paged *create(uint32_t key, uint32_t max_pages)
{
	struct eng_paged *p = rt_zalloc(sizeof(*p) + 2 * (size_t)max_pages * sizeof(p->addr[0]));

	if (!p)
		return NULL;
	p->mr = (struct eng_mr){.attr.key = key, .is_paged = true, .pages = &p->pages};
	p->max = max_pages;
	p->pages.addr = p->addr;
	p->staged.addr = p->addr + max_pages;
	return p;
}

int eng_paged_add(struct engine *e, uint32_t key, uint32_t pd, uint32_t max_pages)
{
	struct eng_paged *p = create(key, max_pages);
	int ret;

	if (!p)
		return -ENOMEM;
	p->mr.attr.pd = pd;
	eng_lock(e);
	ret = eng_table_add(&e->mrs, eng_key_index(key), &p->mr);
	eng_unlock(e);
	if (ret)
		rt_free(p);
	return ret;
}

/* --- pages --- */

static uint64_t page_bytes(const struct eng_pages *pages)
{
	return 1ull << pages->shift;
}

void *eng_paged_at(const struct eng_mr *mr, uint64_t va, uint64_t *len)
{
	const struct eng_pages *pages = mr->pages;
	uint64_t offset = mr->offset_bytes + (va - mr->attr.iova);
	uint64_t i = offset >> pages->shift, in_page = offset & (page_bytes(pages) - 1);
	uint64_t run = page_bytes(pages) - in_page;
	uint64_t at = pages->addr[i] + in_page;

	/* neighbours are one piece */
	while (run < *len && pages->addr[i + 1] == pages->addr[i] + page_bytes(pages)) {
		run += page_bytes(pages);
		i++;
	}
	*len = MIN(*len, run);
	return (void *)(uintptr_t)at;
}

static bool is_sound(const struct eng_mapping *m)
{
	uint64_t size;

	if (m->page_shift < ENG_PAGE_SHIFT_MIN || m->page_shift > ENG_PAGE_SHIFT_MAX)
		return false;
	size = 1ull << m->page_shift;
	if (!m->length_bytes || m->iova + m->length_bytes < m->iova ||
	    DIV_ROUND_UP((m->iova & (size - 1)) + m->length_bytes, size) != m->num_pages)
		return false;
	for (uint32_t i = 0; i < m->num_pages; i++)
		if (m->page[i] & (size - 1) || m->page[i] + size < size)
			return false;
	return true;
}

/* Return: @p, or a larger one in its place; NULL: no memory */
static struct eng_paged *with_room(struct engine *e, struct eng_paged *p, uint32_t num_pages)
{
	struct eng_paged *larger;

	if (num_pages <= p->max)
		return p;
	larger = create(p->mr.attr.key, num_pages);
	if (!larger)
		return NULL;
	eng_table_set(&e->mrs, eng_key_index(p->mr.attr.key), &larger->mr); /* its place is there */
	rt_free(p);
	return larger;
}

static void set_pages(struct eng_pages *pages, unsigned shift, uint32_t num, const uint64_t *addr)
{
	pages->shift = shift;
	pages->num = num;
	memcpy(pages->addr, addr, num * sizeof(*addr));
}

/* --- what keys give access to --- */

static bool rights_are_sound(int access)
{
	return !(access & ~KNOWN_RIGHTS) && eng_may_store(access, access);
}

static void name(struct eng_paged *p, uint64_t iova, uint64_t length, int access)
{
	p->mr.attr.iova = iova;
	p->mr.attr.length = length;
	p->mr.attr.access = access;
	p->mr.offset_bytes = iova & (page_bytes(&p->pages) - 1);
}

int eng_paged_map(struct engine *e, uint32_t key, uint32_t pd, int access,
		  const struct eng_mapping *m)
{
	struct eng_paged *p;
	int ret;

	eng_lock(e);
	p = find(e, key);
	if (!p)
		ret = -ENOENT;
	else if (!rights_are_sound(access) || (m && !is_sound(m)))
		ret = -EINVAL;
	else
		ret = p->mr.windows ? -EBUSY : 0;
	if (!ret && m)
		ret = (p = with_room(e, p, m->num_pages)) ? 0 : -ENOMEM;
	if (!ret) {
		p->mr.attr.key = key;
		p->mr.attr.pd = pd;
		if (m)
			set_pages(&p->pages, m->page_shift, m->num_pages, m->page);
		name(p, m ? m->iova : 0, m ? m->length_bytes : 0, m ? access : 0);
	}
	eng_unlock(e);
	return ret;
}

/* --- fast registration --- */

int eng_paged_stage(struct engine *e, uint32_t key, const struct eng_mapping *m)
{
	struct eng_paged *p;
	int ret;

	eng_lock(e);
	p = find(e, key);
	if (!p)
		ret = -ENOENT;
	else if (!is_sound(m))
		ret = -EINVAL;
	else
		ret = m->num_pages > p->max ? -ENOMEM : 0;
	if (!ret) {
		set_pages(&p->staged, m->page_shift, m->num_pages, m->page);
		p->staged_iova = m->iova;
		p->staged_length = m->length_bytes;
	}
	eng_unlock(e);
	return ret;
}

int eng_paged_register(struct eng_qp *qp, const struct tp_send_wr *wr)
{
	struct eng_paged *p = find(qp->engine, wr->rkey);

	if (!p || p->mr.attr.pd != qp->init.pd || !eng_keys_match(wr->imm_or_rkey, wr->rkey) ||
	    p->mr.attr.length || !p->staged_length || !rights_are_sound(wr->bind.access))
		return -EACCES;
	set_pages(&p->pages, p->staged.shift, p->staged.num, p->staged.addr);
	p->mr.attr.key = wr->imm_or_rkey;
	name(p, p->staged_iova, p->staged_length, wr->bind.access);
	return 0;
}

int eng_paged_invalidate(struct eng_qp *qp, uint32_t key, bool by_peer)
{
	struct eng_paged *p = find(qp->engine, key);

	if (!p || p->mr.attr.key != key || p->mr.attr.pd != eng_qp_pd(qp) || p->mr.windows ||
	    (by_peer && !(p->mr.attr.access & ENG_REMOTE_RIGHTS)))
		return -EACCES;
	name(p, 0, 0, 0);
	return 0;
}
