/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory regions: a key names a range of the process, its protection domain
 * and its rights, and every use is checked against all three (IBA v1 10.6.3).
 */
#include "engine/private.h"
#include "runtime/rt.h"
#include "transport/guard.h"

#define WRITE_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define REMOTE_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static bool rights_are_sound(int access)
{
	/* C10-59: remote write and atomic ask for local write */
	return !(access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) ||
	       access & IBV_ACCESS_LOCAL_WRITE;
}

int eng_mr_add(struct engine *e, const struct eng_mr_attr *attr)
{
	struct eng_mr *mr;
	int ret;

	if (!rights_are_sound(attr->access) || attr->iova + attr->length < attr->iova)
		return -EINVAL;
	mr = rt_zalloc(sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->attr = *attr;
	eng_lock(e);
	ret = eng_table_get(&e->mrs, attr->key >> 8) ? -EEXIST :
						      eng_table_set(&e->mrs, attr->key >> 8, mr);
	eng_unlock(e);
	if (ret)
		rt_free(mr);
	return ret;
}

/* those used last: a look-up is three loads, this one */
static struct eng_mr **recent(struct engine *e, uint32_t key)
{
	return &e->recent_mr[key >> 8 & (ENG_RECENT_MRS - 1)];
}

static const struct eng_mr *find_mr(struct engine *e, uint32_t key)
{
	struct eng_mr **r = recent(e, key);

	if (unlikely(!*r || (*r)->attr.key != key))
		*r = eng_table_get(&e->mrs, key >> 8);
	return *r;
}

int eng_mr_del(struct engine *e, uint32_t key)
{
	struct eng_mr *mr;

	eng_lock(e);
	mr = eng_table_get(&e->mrs, key >> 8);
	if (mr && mr->attr.key != key)
		mr = NULL;
	if (mr) {
		eng_table_set(&e->mrs, key >> 8, NULL);
		*recent(e, key) = NULL;
	}
	eng_unlock(e);
	if (!mr)
		return -ENOENT;
	rt_free(mr);
	return 0;
}

void eng_mr_free_all(struct engine *e)
{
	eng_table_free(&e->mrs, rt_free);
}

void *eng_mem(struct engine *e, uint32_t pd, uint32_t key, uint64_t va, uint64_t len, int access,
	      bool remote)
{
	const struct eng_mr *mr = find_mr(e, key);
	void *at;

	if (unlikely(!eng_mr_allows(mr, pd, key, access) ||
		     (remote && !(mr->attr.access & REMOTE_RIGHTS))))
		return NULL;
	at = eng_mr_at(mr, va, len);
	/* what is written to memory that is gone is dropped (transport/guard.h) */
	if (unlikely(e->gone && at && !(access & WRITE_RIGHTS) && !guard_probe(at, len)))
		return NULL;
	return at;
}
