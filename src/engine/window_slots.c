/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows that peers grant to us: when they are asked for, and what becomes
 * of the answers.
 */
#include "engine/window_slots.h"

#include "runtime/rt.h"

#define ASK_OUTSIDE_AT 16 /* uses outside the window that was granted */

int eng_windows_enable(struct engine *e, const struct eng_window_config *config)
{
	struct eng_windows *w = rt_zalloc(sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->cfg = *config;
	e->windows = w;
	return 0;
}

void eng_windows_free(struct engine *e)
{
	rt_free(e->windows);
}

void eng_slot_count_use(const struct eng_qp *qp, struct slot *s, uint64_t va, uint32_t length_bytes)
{
	const struct eng_window_config *cfg = &qp->engine->windows->cfg;
	struct eng_ask ask = {s->g.qpn, s->g.rkey, qp->connection, va, length_bytes};

	if (s->state == SLOT_ASKED || ++s->uses < s->ask_at)
		return;
	s->uses = 0;
	s->ask_at = MIN(s->ask_at * 4, (uint32_t)ASK_LATEST);
	if (cfg->ask(cfg->ctx, &ask) && s->state == SLOT_COUNTING)
		s->state = SLOT_ASKED;
}

const struct slot eng_no_slot;

/* What a rule may spoil goes by packets; a rule that comes later changes the route
 * epoch as well (abi/devpage.h). The fast path has no fence. */
static void note_fast(const struct engine *e, struct slot *s)
{
	bool bent = eng_spoils(e) || e->windows->cfg.fenced || e->cfg.general_only;
	uint32_t most = bent ? 0 : (uint32_t)MIN(s->g.length_bytes, SLICE_BYTES);

	for (unsigned use = 0; use < SLOT_USES; use++)
		s->fast_bytes[use] = s->g.access & slot_right[use] ? most : 0;
}

void eng_window_hold(struct eng_qp *qp)
{
	if (list_empty(&qp->held_node) && tp_qp_hold(qp->tp))
		list_add_tail(&qp->held_node, &qp->engine->held);
}

bool eng_window_grant(struct engine *e, const struct eng_grant *g)
{
	struct eng_qp *qp;
	struct slot *s;
	bool wanted;

	eng_lock(e);
	s = slot_of(e->windows, g->qpn, g->rkey);
	qp = eng_qp_find(e, g->qpn, 0);
	wanted = qp && qp->connection == g->connection && is_for(s, g->qpn, g->rkey);
	if (wanted) {
		const struct tp_attr *a = tp_qp_attr(qp->tp);

		s->g = *g;
		/* a key whose addresses are shifted against the memory: a word
		 * that only looks aligned is refused by the packets' responder */
		if (((uintptr_t)g->base ^ g->va) % 8)
			s->g.access &= ~IBV_ACCESS_REMOTE_ATOMIC;
		s->state = SLOT_GRANTED;
		s->uses = 0;
		s->ask_at = ASK_OUTSIDE_AT;
		s->mtu_bytes = a->mtu_bytes;
		s->count = &g->flow->of[a->av.is_global != 0];
		note_fast(e, s);
		/* requests that were posted before need not be sent as packets */
		if (tp_qp_has_unbegun(qp->tp))
			eng_window_hold(qp);
	}
	eng_unlock(e);
	return wanted;
}

void eng_window_leave(struct eng_qp *qp)
{
	struct eng_windows *w = qp->engine->windows;

	qp->connection = ++qp->engine->connections;
	if (likely(qp->slot == &eng_no_slot)) /* it never looked for a window */
		return;
	qp->slot = &eng_no_slot;
	for (struct slot *s = w->slot; s < w->slot + SLOTS; s++)
		if (s->g.qpn == qp->init.qpn)
			*s = (struct slot){.ask_at = ASK_AT};
}

void eng_window_denied(struct engine *e, uint32_t qpn, uint32_t rkey)
{
	struct slot *s;

	eng_lock(e);
	s = slot_of(e->windows, qpn, rkey);
	if (is_for(s, qpn, rkey) && s->state == SLOT_ASKED)
		start_counting(s, s->ask_at);
	eng_unlock(e);
}

void eng_window_forget(struct engine *e, uint32_t peer, uint32_t window)
{
	struct eng_windows *w = e->windows;

	eng_lock(e);
	for (struct slot *s = w->slot; s < w->slot + SLOTS; s++)
		if (s->state == SLOT_GRANTED &&
		    (peer == ENG_WINDOW_ALL || s->g.peer == peer) &&
		    (window == ENG_WINDOW_ALL || s->g.window == window))
			start_counting(s, ASK_AT);
	eng_unlock(e);
}

uint64_t eng_window_operations(struct engine *e)
{
	struct abi_window_total total = {};

	for (unsigned i = 0; e->windows && i < ABI_WINDOW_FLOWS; i++)
		abi_window_add_up(&e->windows->cfg.page->flow[i], &total);
	return total.requests;
}
