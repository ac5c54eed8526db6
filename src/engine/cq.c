/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues (IBA v1 10.8, 11.4.2). Each CQ has a ring of work completions. If a program polls an
 * empty CQ, the completions of what it then receives are written into the program's own array and not
 * into the ring. An armed CQ raises one event, at the next completion that counts.
 *
 * The specification asks no more: after a program has armed a CQ, it must poll once more before it
 * sleeps. Adapters do more (the kernel's mlx4 and mlx5 report no missed events): if a CQ has entries when
 * it is armed, it raises its event at once. Here an entry does not count for that if the last event
 * announced it and the program has not polled since. The usual program takes an event, arms, and
 * then polls, and would otherwise be woken twice for one completion. So no program sleeps while there
 * is an entry that no event has announced and that no poll has left in the CQ.
 */
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"

/* A poll for fewer entries than this may read more records than it can return. A poll for so many or more
 * reads at most as many records as it can return. */
#define ENOUGH 16

static uint32_t ring_size(uint32_t entries)
{
	uint32_t size = 1;

	while (size < entries)
		size <<= 1;
	return size;
}

int eng_cq_create_in(struct engine *e, const struct eng_memory *memory, uint32_t cqe, void *ctx,
		     struct eng_cq **cq_out)
{
	struct eng_cq *cq = rt_zalloc(sizeof(*cq));
	uint32_t size = ring_size(cqe);

	if (!cq)
		return -ENOMEM;
	if (!eng_block_alloc(&cq->block, memory, ENG_QUEUE_CQ, (size_t)size * sizeof(*cq->ring))) {
		rt_free(cq);
		return -ENOMEM;
	}
	cq->ring = cq->block.at;
	cq->memory = memory;
	cq->engine = e;
	cq->ctx = ctx;
	cq->cqe = cqe;
	cq->mask = size - 1;
	INIT_LIST_HEAD(&cq->moderated_node);
	eng_lock(e);
	list_add_tail(&cq->node, &e->cqs);
	eng_unlock(e);
	*cq_out = cq;
	return 0;
}

int eng_cq_destroy(struct eng_cq *cq)
{
	struct engine *e = cq->engine;
	bool busy;

	eng_lock(e);
	busy = cq->users > 0;
	if (!busy) {
		list_del(&cq->node);
		list_del(&cq->moderated_node);
	}
	eng_unlock(e);
	if (busy)
		return -EBUSY;
	eng_block_free(&cq->block);
	rt_free(cq);
	return 0;
}

/* the last @n entries are now at the beginning of the ring */
static void move_to_start(struct eng_cq *cq, uint32_t n)
{
	uint32_t from = cq->tail - n;

	cq->matters_tail -= from;
	cq->told_head -= from;
	cq->told_tail -= from;
	eng_cq_set(&cq->head, 0);
	eng_cq_set(&cq->tail, n);
}

int eng_cq_resize(struct eng_cq *cq, uint32_t cqe)
{
	uint32_t size = ring_size(cqe), n = 0;
	struct eng_block block, old;
	struct ibv_wc *ring;
	int ret = -EINVAL;

	if (!eng_block_alloc(&block, cq->memory, ENG_QUEUE_CQ, (size_t)size * sizeof(*ring)))
		return -ENOMEM;
	ring = block.at;
	old = block;
	eng_lock(cq->engine);
	if (cq->tail - cq->head <= cqe) {
		for (uint32_t at = cq->head; at != cq->tail; at++)
			ring[n++] = cq->ring[at & cq->mask];
		old = cq->block;
		cq->block = block;
		cq->ring = ring;
		cq->mask = size - 1;
		cq->cqe = cqe;
		move_to_start(cq, n);
		ret = 0;
	}
	eng_unlock(cq->engine);
	eng_block_free(&old);
	return ret;
}

uint32_t eng_cq_pending(const struct eng_cq *cq)
{
	uint32_t n;

	eng_lock(cq->engine);
	n = cq->tail - cq->head;
	eng_unlock(cq->engine);
	return n;
}

uint32_t eng_cq_depth(const struct eng_cq *cq)
{
	return cq->cqe;
}

/* --- events --- */

/* raise the event of a CQ that was armed */
static void notify(struct eng_cq *cq)
{
	list_del_init(&cq->moderated_node);
	cq->unreported = 0;
	cq->armed = ENG_DISARMED;
	cq->armed_for = 0;
	cq->told_head = cq->head;
	cq->told_tail = cq->tail;
	cq->engine->notified = cq->engine->put_off = true;
	cq->engine->cfg.cq_event(cq->engine->cfg.ctx, cq->ctx);
}

void eng_cq_notify(struct eng_cq *cq, uint32_t n)
{
	struct engine *e = cq->engine;

	if (cq->tail - cq->head < cq->armed_for)
		return;
	cq->unreported += n;
	if (likely(cq->unreported >= cq->event_entries)) {
		notify(cq);
	} else if (list_empty(&cq->moderated_node)) {
		list_add_tail(&cq->moderated_node, &e->moderated);
		cq->event_by = mono_add(e->cfg.now(e->cfg.ctx), cq->event_ns);
		eng_note_expiry(e, cq->event_by);
	}
}

void eng_cq_events_due(struct engine *e)
{
	struct eng_cq *cq, *next;

	list_for_each_entry_safe(cq, next, &e->moderated, moderated_node) {
		if (cq->event_by.ns <= e->now.ns)
			notify(cq);
		else
			eng_note_expiry(e, cq->event_by);
	}
}

void eng_cq_moderate(struct eng_cq *cq, uint32_t entries, uint64_t ns)
{
	eng_lock(cq->engine);
	cq->event_entries = ns ? entries : 0;
	cq->event_ns = ns;
	if (!list_empty(&cq->moderated_node))
		notify(cq);
	eng_unlock(cq->engine);
}

/* --- filling --- */

void eng_cq_overrun(struct eng_cq *cq)
{
	if (cq->overrun)
		return;
	__atomic_store_n(&cq->overrun, true, __ATOMIC_RELAXED);
	cq->engine->cfg.async_event(cq->engine->cfg.ctx, IBV_EVENT_CQ_ERR, cq->ctx);
	eng_fail_users(cq);
}

void eng_cq_push(struct eng_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	if (unlikely(cq->tail - cq->head >= cq->cqe)) {
		eng_cq_overrun(cq);
		return;
	}
	*eng_cq_next(cq) = *wc;
	eng_cq_added(cq, solicited || wc->status != IBV_WC_SUCCESS);
}

/* Receive, and write the completions directly into the array that @cq is polled into. This is
 * not done for the rest of a turn, which may release the lock in between: another thread could
 * then poll this CQ, or destroy a QP whose completions must not be seen any more.
 * @e: of @cq. The compiler would have to load it again after each store.
 * Return: the number of records and packets; *@got: the number of completions */
static unsigned receive_and_take(struct engine *e, struct eng_cq *cq, int n, struct ibv_wc *wc,
				 int *got)
{
	unsigned most = n >= ENOUGH ? (unsigned)MIN(n, ENG_RX_BUDGET) : ENG_RX_BUDGET;
	uint32_t room = likely(list_empty(&e->held)) ? (uint32_t)MAX(n, 0) : 0;
	unsigned received;

	cq->direct = wc;
	cq->direct_left = room;
	received = eng_rx(e, most);
	*got = (int)(room - cq->direct_left);
	cq->direct = NULL;
	cq->direct_left = 0;
	return received;
}

/* Make progress for a caller that found @cq empty, or asked for no entries. Return: the number of
 * completions that this has written directly */
static inline int turn_and_take(struct engine *e, struct eng_cq *cq, int n, struct ibv_wc *wc)
{
	unsigned received = 0;
	int got = 0;

	if (eng_rx_waits(e))
		received = receive_and_take(e, cq, n, wc, &got);
	if (unlikely(!eng_turn_ends(e, received)))
		eng_turn_on(e, received);
	return got;
}

/* take up to @n entries from the ring. Return: how many */
static inline int take(struct eng_cq *cq, int n, struct ibv_wc *wc)
{
	const struct ibv_wc *ring = cq->ring;
	uint32_t head = cq->head, mask = cq->mask, waiting = cq->tail - head;
	uint32_t taken = n > 0 ? MIN((uint32_t)n, waiting) : 0;

	for (uint32_t end = head + taken; head != end; head++)
		*wc++ = ring[head & mask];
	eng_cq_set(&cq->head, head);
	return (int)taken;
}

int eng_cq_poll(struct eng_cq *cq, int n, struct ibv_wc *wc)
{
	struct engine *e = cq->engine;
	bool unsettled;
	int got = 0;

	/* The thread that holds the lock makes progress, and a poll only waits for it to take
	 * entries. A poll for no entries can be meant for nothing else than progress, and would
	 * never find the queue empty. */
	if (unlikely(!eng_trylock(e))) {
		if (eng_cq_seems_empty(cq))
			return 0;
		eng_lock(e);
	} else if (cq->head == cq->tail || unlikely(n <= 0)) {
		got = turn_and_take(e, cq, n, wc);
	}
	if (cq->head != cq->tail)
		got += take(cq, n - got, wc + got);
	if (unlikely(!got && n > 0 && cq->overrun))
		got = -EIO;
	unsettled = eng_window_unsettled(e);
	eng_unlock(e);
	if (unlikely(unsettled))
		eng_window_settle(e);
	return got;
}

/* Is there an entry that a caller which arms @cq now would miss? */
static bool has_untold(const struct eng_cq *cq, bool solicited_only)
{
	uint32_t waiting = cq->tail - cq->head;

	if (!waiting || (cq->head == cq->told_head && cq->tail == cq->told_tail))
		return false;
	return !solicited_only || cq->matters_tail - cq->head - 1 < waiting;
}

void eng_cq_arm(struct eng_cq *cq, bool solicited_only)
{
	eng_lock(cq->engine);
	/* a wider request is never narrowed (11.4.2.2) */
	cq->armed_for = 0;
	if (!solicited_only)
		cq->armed = ENG_ARMED;
	else if (cq->armed == ENG_DISARMED)
		cq->armed = ENG_ARMED_SOLICITED;
	if (unlikely(has_untold(cq, cq->armed == ENG_ARMED_SOLICITED)) &&
	    list_empty(&cq->moderated_node))
		eng_cq_notify(cq, cq->tail - cq->head);
	eng_unlock(cq->engine);
}

void eng_cq_arm_for(struct eng_cq *cq, uint32_t entries)
{
	eng_lock(cq->engine);
	if (cq->armed == ENG_DISARMED)
		cq->armed_for = entries;
	else /* the CQ is armed for the next entry, or for fewer than @entries */
		cq->armed_for = MIN(cq->armed_for, entries);
	cq->armed = ENG_ARMED;
	if (cq->tail - cq->head >= entries)
		eng_cq_notify(cq, entries);
	eng_unlock(cq->engine);
}

void eng_cq_clean(struct eng_cq *cq, uint32_t qpn)
{
	uint32_t to = cq->head;

	for (uint32_t from = cq->head; from != cq->tail; from++) {
		struct ibv_wc *wc = &cq->ring[from & cq->mask];
		if (wc->qp_num != qpn)
			cq->ring[to++ & cq->mask] = *wc;
	}
	if (to == cq->tail)
		return;
	/* it is not known whether the entry at matters_tail was removed: assume that it was not */
	eng_cq_set(&cq->tail, to);
	cq->matters_tail = to;
	cq->told_tail = cq->told_head;
}
