/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows, as a target: tokens, which stand for what a peer was granted as
 * long as they keep their value, and what may be granted. Everything is under
 * the engine's lock.
 */
#include "engine/window_slots.h"
#include "transport/fast.h"

static _Atomic uint64_t *token(struct engine *e, uint32_t index)
{
	return &e->windows->cfg.page->token[index];
}

static uint32_t take_token(struct engine *e, uint64_t *value)
{
	struct eng_windows *w = e->windows;

	for (uint32_t tries = 1; tries < ABI_WINDOW_TOKENS; tries++) {
		uint32_t i = w->next_token++ % (ABI_WINDOW_TOKENS - 1) + 1;

		if (w->token_used[i / 64] >> i % 64 & 1)
			continue;
		w->token_used[i / 64] |= 1ull << i % 64;
		*value = atomic_load_explicit(token(e, i), memory_order_relaxed);
		return i;
	}
	return 0;
}

void eng_window_give_token(struct engine *e, uint32_t index)
{
	eng_window_add(token(e, index), 1);
	e->windows->token_used[index / 64] &= ~(1ull << index % 64);
}

uint32_t eng_token_take(struct engine *e, uint64_t *value)
{
	uint32_t index;

	eng_lock(e);
	index = take_token(e, value);
	eng_unlock(e);
	return index;
}

void eng_token_give(struct engine *e, uint32_t index)
{
	eng_lock(e);
	eng_window_give_token(e, index);
	eng_unlock(e);
}

void eng_window_revoke(struct eng_qp *qp)
{
	if (likely(!qp->window_token))
		return;
	eng_window_give_token(qp->engine, qp->window_token);
	qp->window_token = 0;
	qp->unquiesced = true;
}

bool eng_window_end(struct eng_qp *qp)
{
	bool wait;

	eng_window_revoke(qp);
	wait = qp->unquiesced;
	qp->unquiesced = false;
	return wait;
}

void eng_window_quiesce(struct engine *e)
{
	e->windows->cfg.quiesce(e->windows->cfg.ctx);
}

void eng_window_unbound(struct engine *e, uint32_t index)
{
	eng_window_give_token(e, index);
	e->windows->cfg.sections_end(e->windows->cfg.ctx);
	e->unbound++;
}

void eng_window_settle(struct engine *e)
{
	uint32_t unbound;

	eng_lock(e);
	unbound = e->unbound;
	eng_unlock(e);
	if (unbound == e->settled)
		return;
	e->windows->cfg.unbound(e->windows->cfg.ctx);
	eng_lock(e);
	e->settled = unbound;
	eng_unlock(e);
}

/* the requests that the responder of @qp would accept under @mr */
static int allowed(const struct eng_qp *qp, const struct eng_mr_attr *mr)
{
	const struct tp_attr *a = tp_qp_attr(qp->tp);
	int access = mr->access & a->qp_access_flags;

	return access & (a->max_dest_rd_atomic ? ENG_REMOTE_RIGHTS : IBV_ACCESS_REMOTE_WRITE);
}

/* the token that is kept at @where, taken if there is none. Return: it; 0: none is left */
static uint32_t keep_token(struct engine *e, uint32_t *where, uint64_t *value)
{
	if (!*where)
		*where = take_token(e, value);
	else
		*value = atomic_load_explicit(token(e, *where), memory_order_relaxed);
	return *where;
}

static int offer_locked(struct engine *e, uint32_t qpn, uint32_t rkey,
			struct eng_offer *offer)
{
	struct eng_qp *qp = eng_qp_find(e, qpn & 0xffffff, 0);
	struct eng_mr *mr = eng_mr_of(e, rkey);

	/* the first requests came by packets */
	if (!mr || mr->attr.key != rkey || mr->is_paged || mr->pages || !qp ||
	    !tp_state_receives(tp_qp_state(qp->tp)) || !tp_may_use_windows(qp->tp) ||
	    mr->attr.pd != qp->init.pd || (mr->is_window && !eng_mw_serves(mr, qp)))
		return -EACCES;
	*offer = (struct eng_offer){.mr = mr->attr, .access = allowed(qp, &mr->attr)};
	if (!offer->access)
		return -EACCES;
	offer->token = keep_token(e, &qp->window_token, &offer->value);
	if (offer->token && mr->is_window)
		offer->key_token = keep_token(e, eng_mw_token(mr), &offer->key_value);
	return offer->token && (offer->key_token || !mr->is_window) ? 0 : -ENOSPC;
}

int eng_window_offer(struct engine *e, uint32_t qpn, uint32_t rkey,
		     struct eng_offer *offer)
{
	int ret;

	eng_lock(e);
	ret = offer_locked(e, qpn, rkey, offer);
	eng_unlock(e);
	return ret;
}
