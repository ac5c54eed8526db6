/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory windows (IBA v1 10.6.6, 10.6.7): keys that give peers access to part of a region,
 * with rights of their own, and are bound and invalidated by requests in a send queue,
 * without a call into softibd.
 *
 * States of a window
 *   free    its key gives no access; a new window, or one that was invalidated
 *   bound   its key gives access to part of a region, which cannot be deregistered
 *
 * A window of type 1 serves any QP of its protection domain. One of type 2 (2B) serves the
 * peer of the QP that bound it, can be bound only while it is free, and is freed by
 * LOCAL_INV, or by a SEND_WITH_INV of that peer. An XRC initiator binds windows as any QP does; but
 * peers use them through XRC targets, which bind none, so only those of type 1 serve there. A window whose key
 * gave a peer a data-path window has a token, which changes before the memory window is bound anew or
 * freed: nobody who saw the old one is at work then (window_target.c).
 */
#include "engine/private.h"
#include "engine/window.h"
#include "runtime/rt.h"

struct eng_mw {
	struct eng_mr mr; /* what its key gives access to; no rights while it is free */
	struct list_head node; /* engine.mws */
	enum ibv_mw_type type;
	struct eng_mr *region; /* that it is bound to; NULL: it is free */
	uint32_t qpn;	       /* of the QP that bound it; of type 2 */
	uint32_t token;	       /* of data-path windows into it; 0: there are none */
};

static struct eng_mw *find_mw(const struct engine *e, uint32_t key)
{
	struct eng_mr *mr = eng_mr_of(e, key);

	return mr && mr->is_window ? container_of(mr, struct eng_mw, mr) : NULL;
}

static void unbind(struct engine *e, struct eng_mw *mw)
{
	if (!mw->region)
		return;
	mw->region->windows--;
	mw->region = NULL;
	mw->mr.attr.access = 0;
	if (mw->token)
		eng_window_unbound(e, mw->token);
	mw->token = 0;
}

uint32_t *eng_mw_token(struct eng_mr *mr)
{
	return &container_of(mr, struct eng_mw, mr)->token;
}

bool eng_mw_is_bound(struct engine *e, uint32_t key)
{
	const struct eng_mw *mw;
	bool bound;

	eng_lock(e);
	mw = find_mw(e, key);
	bound = mw && mw->mr.attr.key == key && mw->region;
	eng_unlock(e);
	return bound;
}

void eng_mw_revoke(struct engine *e, uint32_t key)
{
	struct eng_mw *mw;

	eng_lock(e);
	mw = find_mw(e, key);
	if (mw && mw->token) {
		eng_window_give_token(e, mw->token);
		mw->token = 0;
	}
	eng_unlock(e);
}

int eng_mw_add(struct engine *e, uint32_t key, uint32_t pd, enum ibv_mw_type type)
{
	struct eng_mw *mw = rt_zalloc(sizeof(*mw));
	int ret;

	if (!mw)
		return -ENOMEM;
	mw->mr = (struct eng_mr){.attr = {.key = key, .pd = pd}, .is_window = true};
	mw->type = type;
	eng_lock(e);
	ret = eng_table_add(&e->mrs, eng_key_index(key), &mw->mr);
	if (!ret)
		list_add_tail(&mw->node, &e->mws);
	eng_unlock(e);
	if (ret)
		rt_free(mw);
	return ret;
}

int eng_mw_del(struct engine *e, uint32_t key)
{
	struct eng_mw *mw;

	eng_lock(e);
	mw = find_mw(e, key);
	if (mw) {
		unbind(e, mw);
		list_del(&mw->node);
		eng_table_set(&e->mrs, eng_key_index(key), NULL);
	}
	eng_unlock(e);
	eng_window_settle(e);
	rt_free(mw);
	return mw ? 0 : -ENOENT;
}

bool eng_mw_serves(const struct eng_mr *mr, const struct eng_qp *qp)
{
	const struct eng_mw *mw = container_of(mr, struct eng_mw, mr);

	return mw->region && (mw->type == IBV_MW_TYPE_1 || mw->qpn == qp->init.qpn);
}

/* may windows with @access be bound to this part of @mr (10.6.7.2)? */
static bool may_bind(const struct eng_mr *mr, const struct eng_mw *mw,
		     const struct tp_send_wr *wr)
{
	const struct tp_bind *bind = &wr->bind;

	if (!mr || mr->is_window || mr->attr.key != bind->mr_key ||
	    mr->attr.pd != mw->mr.attr.pd || mr->attr.access & IBV_ACCESS_ZERO_BASED ||
	    !(mr->attr.access & IBV_ACCESS_MW_BIND))
		return false;
	if (!eng_may_store(bind->access, mr->attr.access) ||
	    (mw->type == IBV_MW_TYPE_1 && bind->access & IBV_ACCESS_ZERO_BASED))
		return false;
	return range_covers(mr->attr.iova, mr->attr.length, wr->remote_addr, bind->length_bytes);
}

int eng_mw_bind(struct eng_qp *qp, const struct tp_send_wr *wr)
{
	struct engine *e = qp->engine;
	struct eng_mr *mr = eng_mr_of(e, wr->bind.mr_key);
	struct eng_mw *mw = find_mw(e, wr->rkey);
	bool frees = !wr->bind.length_bytes;

	if (!mw || mw->mr.attr.pd != qp->init.pd || !eng_keys_match(wr->imm_or_rkey, wr->rkey))
		return -EACCES;
	if (mw->type == IBV_MW_TYPE_2 && (mw->region || frees))
		return -EACCES;
	if (!frees && !may_bind(mr, mw, wr))
		return -EACCES;
	unbind(e, mw);
	mw->mr.attr.key = wr->imm_or_rkey;
	if (frees)
		return 0;
	mw->mr.attr.addr = eng_mr_at(mr, wr->remote_addr, wr->bind.length_bytes);
	mw->mr.pages = mr->pages;
	mw->mr.offset_bytes = mr->offset_bytes + (wr->remote_addr - mr->attr.iova);
	mw->mr.attr.length = wr->bind.length_bytes;
	mw->mr.attr.iova = wr->bind.access & IBV_ACCESS_ZERO_BASED ? 0 : wr->remote_addr;
	mw->mr.attr.access = wr->bind.access | (mr->attr.access & IBV_ACCESS_ON_DEMAND);
	mw->mr.attr.is_pinned = mr->attr.is_pinned;
	mw->region = mr;
	mw->qpn = qp->init.qpn;
	mr->windows++;
	return 0;
}

int eng_mw_invalidate(struct eng_qp *qp, uint32_t key)
{
	struct eng_mw *mw = find_mw(qp->engine, key);

	if (!mw)
		return -ENOENT;
	if (mw->mr.attr.key != key || mw->mr.attr.pd != eng_qp_pd(qp) ||
	    mw->type != IBV_MW_TYPE_2 || (mw->region && mw->qpn != qp->init.qpn))
		return -EACCES;
	unbind(qp->engine, mw);
	return 0;
}

void eng_mw_leave(struct eng_qp *qp)
{
	struct eng_mw *mw;

	list_for_each_entry(mw, &qp->engine->mws, node)
		if (mw->type == IBV_MW_TYPE_2 && mw->qpn == qp->init.qpn)
			unbind(qp->engine, mw);
}
