/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows, the initiator's side. If all earlier requests of an RC QP are acknowledged, a one-sided
 * request is performed during its post, by plain stores, loads and CPU atomics in the peer's memory. If
 * anything does not fit (bounds, rights, state, route), the request is sent as packets, and the peer's
 * responder decides. All of this is done under the engine's lock. A long copy releases the lock
 * between two slices.
 */
#include "engine/window_fast.h"

#include <sched.h>
#include <string.h>

#define HOLD_AFTER 32
/* requests of held queues that are performed in one turn of the engine */
#define TURN_REQUESTS 256
#define TURN_BYTES (8u << 20)
#define STREAM_BYTES (8u << 20) /* length from which a copy goes past the caches */

/** struct request - a work request that a window may perform */
struct request {
	const struct tp_send_wr *wr;
	enum slot_use use;
	unsigned num_pieces;
	struct {
		char *ptr;
		uint32_t len;
	} piece[TP_MAX_SGE];
};

void eng_lock_qp_wait(struct eng_qp *qp)
{
	while (qp->in_window) {
		eng_unlock(qp->engine);
		sched_yield();
		eng_lock(qp->engine);
	}
}

/* --- the request --- */

static enum slot_use use_of(unsigned opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
		return SLOT_WRITES;
	case IBV_WR_RDMA_READ:
		return SLOT_READS;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return SLOT_ATOMICS;
	default:
		return SLOT_USES;
	}
}

/* check the local memory, as for packets */
static bool find_pieces(const struct eng_qp *qp, struct request *r)
{
	int access = r->use == SLOT_WRITES ? 0 : IBV_ACCESS_LOCAL_WRITE;
	const struct tp_send_wr *wr = r->wr;

	r->num_pieces = 0;
	for (unsigned i = 0; i < wr->num_sge; i++) {
		const struct tp_sge *s = &wr->sge[i];
		char *ptr = (char *)(uintptr_t)s->addr;

		if (!s->length_bytes)
			continue;
		if (!(wr->flags & IBV_SEND_INLINE))
			ptr = eng_mem(qp->engine, qp->init.pd, s->lkey, s->addr,
				      s->length_bytes, access);
		if (unlikely(!ptr))
			return false;
		r->piece[r->num_pieces].ptr = ptr;
		r->piece[r->num_pieces++].len = s->length_bytes;
	}
	return true;
}

/* Return: false: a window cannot perform it, and packets report the error if there is one */
static bool is_sound(const struct eng_qp *qp, const struct request *r)
{
	const struct tp_send_wr *wr = r->wr;

	if (r->use == SLOT_USES || !wr->length_bytes || wr->length_bytes > TP_MESSAGE_MAX)
		return false;
	if (r->use == SLOT_ATOMICS)
		return wr->length_bytes == 8 && wr->remote_addr % 8 == 0;
	return !(wr->flags & IBV_SEND_INLINE) ||
	       (r->use == SLOT_WRITES && wr->length_bytes <= qp->init.max_inline);
}

static bool allows(const struct slot *s, const struct request *r)
{
	return s->state == SLOT_GRANTED && s->g.access & slot_right[r->use] &&
	       window_inside(&s->g, r->wr->remote_addr, r->wr->length_bytes);
}

/* --- doing it --- */

static void copy_past_caches(void *ctx, void *to, const void *from, size_t len)
{
	copy_stream(to, from, len);
}

/* What no cache holds goes past them; else the peer, or the program, reads it there. @out: to
 * the peer. Return: false: the program's memory is gone */
static bool copy_piece(const struct request *r, char *to, const char *from, uint32_t len, bool out)
{
	bool stream = r->wr->length_bytes >= STREAM_BYTES && len > 64;
	uint32_t body = stream ? len - 8 : 0;

	if (stream && unlikely(!guard_run(copy_past_caches, NULL, to, from, body, out ? from : to)))
		body = 0;
	if (out)
		return guard_load_spun_on(to + body, from + body, len - body);
	guard_store_spun_on(to + body, from + body, len - body);
	return true;
}

/* bytes @from to @to of the request, between its pieces and the window. Return: as above */
static bool copy_range(const struct request *r, char *window, uint32_t from, uint32_t to)
{
	bool out = r->use == SLOT_WRITES, there = true;
	uint32_t start = 0;
	char *mine;

	for (unsigned i = 0; i < r->num_pieces && start < to && there;
	     start += r->piece[i++].len) {
		uint32_t a = MAX(start, from), b = MIN(start + r->piece[i].len, to);

		if (a >= b)
			continue;
		mine = r->piece[i].ptr + (a - start);
		if (out)
			there = copy_piece(r, window + a, mine, b - a, out);
		else
			copy_piece(r, mine, window + a, b - a, out);
	}
	return there;
}

static void do_atomic(const struct request *r, char *window)
{
	const struct tp_send_wr *wr = r->wr;
	uint64_t was = window_atomic(wr->opcode, window, wr->compare_add, wr->swap);
	const char *from = (const char *)&was;

	for (unsigned i = 0; i < r->num_pieces; from += r->piece[i++].len)
		guard_store(r->piece[i].ptr, from, r->piece[i].len);
}

/*
 * A copy of any length; the lock is let go between slices, so that others
 * wait for one slice only, and all is looked at again after it.
 * Return: false: what it stood on has gone, nothing was completed
 */
static bool do_copy(struct eng_qp *qp, struct slot *s, struct request *r)
{
	struct engine *e = qp->engine;
	struct abi_window_page *page = e->windows->cfg.page;
	uint32_t length = r->wr->length_bytes, from = 0;
	bool there;

	for (;;) {
		uint32_t to = from + MIN(length - from, SLICE_BYTES);

		if (unlikely(!window_enter(e, page, &s->g, e->windows->cfg.fenced)))
			return false;
		there = copy_range(r, in_window(s, r->wr->remote_addr), from, to);
		window_leave(page);
		if (unlikely(!there)) {
			e->probes = true; /* the packets report the error */
			return false;
		}
		if (likely(to == length))
			return true;
		from = to;
		qp->in_window = true;
		eng_unlock(e);
		eng_lock(e);
		qp->in_window = false;
		if (tp_qp_state(qp->tp) != IBV_QPS_RTS ||
		    !is_for(s, qp->init.qpn, r->wr->rkey) || !allows(s, r) ||
		    !find_pieces(qp, r))
			return false;
	}
}

static bool execute(struct eng_qp *qp, struct slot *s, struct request *r)
{
	struct abi_window_page *page = qp->engine->windows->cfg.page;

	if (r->use != SLOT_ATOMICS)
		return do_copy(qp, s, r);
	if (unlikely(!window_enter(qp->engine, page, &s->g,
				   qp->engine->windows->cfg.fenced)))
		return false;
	do_atomic(r, in_window(s, r->wr->remote_addr));
	window_leave(page);
	return true;
}

static void complete(struct eng_qp *qp, const struct request *r)
{
	const struct tp_send_wr *wr = r->wr;

	if (!tp_is_signaled(qp->tp, wr->flags))
		return;
	/* between the slices of a copy others may have filled it */
	if (unlikely(eng_cq_is_full(qp->send_cq)))
		eng_cq_overrun(qp->send_cq);
	else
		eng_cq_add_sent(qp, wr->wr_id, IBV_WC_SUCCESS, tp_wc_opcode(wr->opcode),
				wr->length_bytes);
}

/* A request can only be performed through a window while the send queue is empty. A program that keeps
 * its queue filled would always miss that moment. So after HOLD_AFTER consecutive requests that a
 * window could have performed, the queue is held until the begun ones are finished. */
static void wait_for_turn(struct eng_qp *qp)
{
	if (++qp->window_run >= HOLD_AFTER)
		eng_window_hold(qp);
}

/* the slot that allows the request; NULL: none, and its use is counted */
static struct slot *find_slot(struct eng_qp *qp, const struct request *r)
{
	const struct tp_send_wr *wr = r->wr;
	struct slot *s = slot_of(qp->engine->windows, qp->init.qpn, wr->rkey);

	if (unlikely(!is_for(s, qp->init.qpn, wr->rkey))) {
		s->g = (struct eng_grant){.qpn = qp->init.qpn, .rkey = wr->rkey};
		start_counting(s, ASK_AT);
	}
	qp->slot = s;
	if (likely(allows(s, r)))
		return s;
	eng_slot_count_use(qp, s, wr->remote_addr, wr->length_bytes);
	return NULL;
}

/* Return: true: the request is done, but not completed */
static bool done(struct eng_qp *qp, struct slot *s, struct request *r)
{
	/* a request whose completion a fault rule may change is sent as packets, and completes
	 * where others do */
	if (eng_needs_care(qp, qp->send_cq) ||
	    unlikely(!find_pieces(qp, r) ||
		     (r->use != SLOT_WRITES && !tp_may_read(qp->tp))))
		return false;
	if (unlikely(!execute(qp, s, r))) {
		if (is_for(s, qp->init.qpn, r->wr->rkey) && s->state == SLOT_GRANTED)
			start_counting(s, ASK_AT);
		return false;
	}
	window_count(s, r->use, r->wr->length_bytes, false);
	return true;
}

bool eng_window_takes(struct eng_qp *qp, const struct tp_send_wr *wr)
{
	struct request r = {.wr = wr, .use = use_of(wr->opcode)};
	struct slot *s;

	if (!qp->engine->windows || !tp_may_use_windows(qp->tp) || r.use == SLOT_USES) {
		qp->window_run = 0;
		return false;
	}
	s = is_sound(qp, &r) ? find_slot(qp, &r) : NULL;
	if (!s)
		return false;
	if (!tp_idle(qp->tp)) { /* only a request that is next in order */
		wait_for_turn(qp);
		return false;
	}
	qp->window_run = 0;
	if (!done(qp, s, &r))
		return false;
	complete(qp, &r);
	return true;
}

/* --- requests that waited --- */

static bool do_held(struct eng_qp *qp, uint32_t *length_bytes)
{
	struct tp_sge inline_data;
	struct tp_send_wr wr;
	struct request r = {.wr = &wr};
	struct slot *s;

	tp_qp_held_request(qp->tp, &wr, &inline_data);
	r.use = use_of(wr.opcode);
	*length_bytes = wr.length_bytes;
	s = is_sound(qp, &r) ? find_slot(qp, &r) : NULL;
	return s && done(qp, s, &r);
}

static void let_go(struct eng_qp *qp)
{
	list_del(&qp->held_node);
	qp->window_run = 0;
	tp_qp_release(qp->tp);
	eng_qp_touch(qp);
}

/* Return: true when requests were done. The queue is let go when none is
 * left, or one is not for windows. */
static bool turn_of(struct eng_qp *qp)
{
	uint64_t bytes = 0;
	uint32_t length_bytes = 0;
	unsigned n;

	for (n = 0; tp_qp_held(qp->tp) == TP_HELD_READY && n < TURN_REQUESTS && bytes < TURN_BYTES;
	     n++, bytes += length_bytes) {
		if (!do_held(qp, &length_bytes)) {
			if (eng_cq_is_full(qp->send_cq))
				break;
			let_go(qp);
			return true;
		}
		tp_qp_held_done(qp->tp);
	}
	if (tp_qp_held(qp->tp) == TP_HELD_EMPTY || tp_qp_held(qp->tp) == TP_HELD_NOT)
		let_go(qp);
	return n > 0;
}

bool eng_window_turn(struct engine *e)
{
	struct eng_qp *qp;
	unsigned n = 0;

	list_for_each_entry(qp, &e->held, held_node)
		n++;
	/* all of them, or the engine sleeps while one is ready behind others that
	 * drain; some may go meanwhile, the lock is let go inside */
	while (n-- && !list_empty(&e->held)) {
		qp = list_first_entry(&e->held, struct eng_qp, held_node);
		list_del(&qp->held_node); /* the next turn is another's */
		list_add_tail(&qp->held_node, &e->held);
		/* otherwise another thread is performing its requests */
		if (!qp->in_window && turn_of(qp))
			return true;
	}
	return false;
}

bool eng_window_waits(const struct engine *e)
{
	const struct eng_qp *qp;

	list_for_each_entry(qp, &e->held, held_node)
		if (tp_qp_held(qp->tp) == TP_HELD_READY && !qp->in_window &&
		    !eng_cq_is_full(qp->send_cq))
			return true;
	return false;
}
