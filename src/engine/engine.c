/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's loop: receive, timers, transmit. A thread that polls a CQ or posts a request runs a
 * turn of the loop, and so does the library's progress thread. The engine's lock admits one thread at
 * a time.
 */
#include "engine/engine.h"

#include "engine/private.h"
#include "runtime/rt.h"

static void init_lock(struct engine *e)
{
	e->lock = (struct eng_lock){.barrier = e->cfg.barrier, .ctx = e->cfg.ctx};
}

void eng_in_child(struct engine *e)
{
	init_lock(e);
	e->put_off = false;
}

int eng_create(const struct eng_config *config, struct engine **engine)
{
	struct engine *e = rt_zalloc(sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->special = rt_zalloc((config->devpage->num_ports + 1) * 2 * sizeof(*e->special));
	if (!e->special) {
		rt_free(e);
		return -ENOMEM;
	}
	e->cfg = *config;
	init_lock(e);
	e->next_expiry = MONO_NEVER;
	INIT_LIST_HEAD(&e->tx);
	INIT_LIST_HEAD(&e->held);
	INIT_LIST_HEAD(&e->tellers);
	INIT_LIST_HEAD(&e->owed_acks);
	INIT_LIST_HEAD(&e->piggyback_acks);
	INIT_LIST_HEAD(&e->lanes);
	INIT_LIST_HEAD(&e->quiet_lanes);
	INIT_LIST_HEAD(&e->dirty);
	INIT_LIST_HEAD(&e->all_qps);
	INIT_LIST_HEAD(&e->cqs);
	INIT_LIST_HEAD(&e->moderated);
	INIT_LIST_HEAD(&e->srqs);
	INIT_LIST_HEAD(&e->mcast);
	INIT_LIST_HEAD(&e->mws);
	eng_odp_init(e, config->odp);
	eng_put_init(e);
	*engine = e;
	return 0;
}

void eng_destroy(struct engine *e)
{
	while (!list_empty(&e->all_qps))
		eng_qp_destroy(list_first_entry(&e->all_qps, struct eng_qp, all_node));
	while (!list_empty(&e->srqs)) /* before the CQs, which those of XRC use */
		eng_srq_destroy(list_first_entry(&e->srqs, struct eng_srq, node));
	while (!list_empty(&e->cqs))
		eng_cq_destroy(list_first_entry(&e->cqs, struct eng_cq, node));
	eng_table_free(&e->xrc_srqs, rt_free);
	eng_table_free(&e->qps, rt_free);
	eng_mr_free_all(e);
	eng_windows_free(e);
	rt_free(e->special);
	rt_free(e);
}

void eng_unlock_later(struct engine *e)
{
	e->put_off = false;
	eng_lock_give(&e->lock);
	if (e->cfg.unlocked)
		e->cfg.unlocked(e->cfg.ctx);
}

static bool run_timers(struct engine *e)
{
	struct eng_qp *qp;

	if (e->next_expiry.ns > e->now.ns)
		return false;
	e->next_expiry = MONO_NEVER;
	eng_cq_events_due(e);
	list_for_each_entry(qp, &e->all_qps, all_node) {
		if (tp_qp_expiry(qp->tp).ns <= e->now.ns)
			tp_qp_expire(qp->tp, e->now);
		if (unlikely(qp->ee))
			eng_ee_turn(qp);
		else if (unlikely(qp->init.is_rd))
			eng_rd_advance(qp);
		eng_qp_touch(qp);
	}
	return true;
}

/* what is left of a turn that has @received so many. Return: true when it did anything */
static inline bool turn_on(struct engine *e, unsigned received, bool clock)
{
	bool looks = ++e->polls % ENG_POLLS_PER_CLOCK == 0, busy = received > 0;

	if (clock || !list_empty(&e->tx) || (looks && e->next_expiry.ns != MONO_NEVER.ns))
		e->now = e->cfg.now(e->cfg.ctx);
	if (clock || looks)
		busy |= eng_lanes_mind(e, clock);
	busy |= run_timers(e);
	if (unlikely(!list_empty(&e->held)))
		busy |= eng_window_turn(e);
	/* Nothing more has arrived, so flush the acknowledgements that could not be
	 * piggybacked. A program that has just been notified first gets the chance to post an
	 * answer, on which they would travel. */
	if (clock ? !e->notified : !busy)
		busy |= eng_flush_acks(e, true);
	else if (!list_empty(&e->owed_acks))
		busy |= eng_flush_acks(e, false);
	if (!list_empty(&e->tx) || unlikely(e->spoilt))
		busy |= eng_tx(e);
	if (unlikely(!list_empty(&e->tellers)))
		eng_targets_tell(e);
	atomic_store_explicit(&e->moved, busy, memory_order_relaxed);
	return busy;
}

bool eng_turn(struct engine *e, bool clock)
{
	if (clock)
		e->notified = false;
	return turn_on(e, eng_rx(e, ENG_RX_BUDGET), clock);
}

void eng_turn_on(struct engine *e, unsigned received)
{
	turn_on(e, received, false);
}

static bool progress(struct engine *e, bool clock)
{
	bool busy;

	/* another thread holds the lock, and makes progress */
	if (!eng_trylock(e))
		return true;
	busy = eng_turn(e, clock);
	eng_unlock(e);
	return busy;
}

bool eng_progress(struct engine *e)
{
	return progress(e, false);
}

bool eng_tick(struct engine *e)
{
	return progress(e, true);
}

mono_t eng_expiry(struct engine *e)
{
	mono_t t;

	eng_lock(e);
	t = e->next_expiry;
	eng_unlock(e);
	return t;
}

mono_t eng_wake_by(const struct engine *e, mono_t now)
{
	mono_t by = e->next_expiry;

	if (eng_acks_wait(e))
		by = mono_min(by, mono_add(now, ENG_ACK_NS));
	if (!list_empty(&e->tx) || !list_empty(&e->tellers))
		by = mono_min(by, mono_add(now, ENG_RETRY_NS));
	if (unlikely(eng_window_waits(e))) /* a turn is bounded, and left them */
		by = now;
	return by;
}

void eng_locked(struct engine *e, void (*fn)(void *arg), void *arg)
{
	eng_lock(e);
	fn(arg);
	eng_unlock(e);
}

static bool holds_packet(const struct engine *e, const struct eng_qp *one)
{
	const struct eng_qp *qp;

	if (one)
		return one->held_bytes > 0;
	list_for_each_entry(qp, &e->tx, tx_node)
		if (qp->held_bytes)
			return true;
	return false;
}

bool eng_settle(struct engine *e, const struct eng_qp *qp)
{
	bool settled;

	/* this thread itself may be in: exit() in a signal handler ends here */
	if (eng_lock_is_held(&e->lock) || !eng_trylock(e))
		return false;
	eng_flush_acks(e, true);
	if (!list_empty(&e->tx)) {
		e->now = e->cfg.now(e->cfg.ctx);
		eng_tx(e);
	}
	settled = !holds_packet(e, qp);
	eng_unlock(e);
	return settled;
}

bool eng_moved(const struct engine *e)
{
	return atomic_load_explicit(&e->moved, memory_order_relaxed);
}

bool eng_idle(struct engine *e)
{
	bool idle;

	eng_lock(e);
	idle = list_empty(&e->tx) && !eng_acks_wait(e);
	eng_unlock(e);
	return idle;
}

void eng_stats(struct engine *e, struct eng_stats *stats)
{
	eng_lock(e);
	*stats = e->stats;
	eng_unlock(e);
}
