/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Deferred work, timers and pollers: the parts of struct rt that need no OS. */
#include <malloc.h>

#include "runtime/posix/rt_posix.h"
#include "runtime/rt_private.h"

#define TRIM_NS NSEC_PER_SEC

static void trim(struct rt_timer *timer)
{
	malloc_trim(0);
}

void rt_init(struct rt *rt)
{
	rt_timer_init(rt, &rt->trim, trim);
	INIT_LIST_HEAD(&rt->work);
	INIT_LIST_HEAD(&rt->pollers);
	INIT_LIST_HEAD(&rt->trace.sources);
}

void *rt_local(const struct rt *rt, enum rt_local which)
{
	return rt->local[which];
}

void rt_set_local(struct rt *rt, enum rt_local which, void *state)
{
	rt->local[which] = state;
}

void *rt_local_get(struct rt *rt, enum rt_local which, size_t bytes,
		   void (*init)(struct rt *rt, void *state))
{
	void *state = rt->local[which];

	if (state)
		return state;
	state = rt_zalloc(bytes);
	if (!state)
		return NULL;
	init(rt, state);
	rt->local[which] = state;
	return state;
}

void rt_local_free(struct rt *rt, enum rt_local which)
{
	rt_free(rt->local[which]);
	rt->local[which] = NULL;
}

mono_t rt_now(struct rt *rt)
{
	return rt->now(rt);
}

uint32_t rt_random(struct rt *rt)
{
	return rt->random(rt);
}

void rt_work_init(struct rt_work *work, void (*fn)(struct rt_work *work))
{
	INIT_LIST_HEAD(&work->node);
	work->fn = fn;
}

void rt_work_queue(struct rt *rt, struct rt_work *work)
{
	if (list_empty(&work->node))
		list_add_tail(&work->node, &rt->work);
}

bool rt_work_cancel(struct rt_work *work)
{
	bool queued = !list_empty(&work->node);

	list_del_init(&work->node);
	return queued;
}

unsigned rt_run_work(struct rt *rt, unsigned most)
{
	LIST_HEAD(batch);
	unsigned n;

	list_splice_tail_init(&rt->work, &batch);
	for (n = 0; n < most && !list_empty(&batch); n++) {
		struct rt_work *w = list_first_entry(&batch, struct rt_work, node);

		list_del_init(&w->node);
		w->fn(w);
	}
	list_splice_tail_init(&rt->work, &batch); /* what was queued meanwhile: behind the rest */
	list_splice_tail_init(&batch, &rt->work);
	return n;
}

/* --- timers ---
 *
 * Armed timers are the nodes of a pairing heap: a tree in which no timer is due
 * before its parent. A node has its first child, the sibling after it, and the
 * sibling before it (the first child has its parent there). Arming a timer makes
 * it a child of the root, or the new root; removing one pairs its children up.
 * No memory is needed besides the timers, and the shape of the tree decides
 * nothing: expiry and order of arming do.
 */

static bool fires_before(const struct rt_timer *a, const struct rt_timer *b)
{
	return a->expiry.ns != b->expiry.ns ? mono_before(a->expiry, b->expiry) :
					      a->serial < b->serial;
}

/* Return: the root of both heaps; either may be NULL. The siblings of @a and @b
 * are not looked at */
static struct rt_timer *meld(struct rt_timer *a, struct rt_timer *b)
{
	struct rt_timer *parent, *child;

	if (!a || !b)
		return a ? a : b;
	parent = fires_before(b, a) ? b : a;
	child = parent == a ? b : a;
	child->next = parent->child;
	if (child->next)
		child->next->prev = child;
	child->prev = parent;
	parent->child = child;
	return parent;
}

/* Return: one heap out of @first and the siblings after it: they are melded in
 * pairs from first to last, and the pairs from last to first */
static struct rt_timer *meld_siblings(struct rt_timer *first)
{
	struct rt_timer *pairs = NULL, *all = NULL;

	while (first) {
		struct rt_timer *second = first->next;
		struct rt_timer *rest = second ? second->next : NULL;
		struct rt_timer *pair = meld(first, second);

		pair->next = pairs;
		pairs = pair;
		first = rest;
	}
	while (pairs) {
		struct rt_timer *pair = pairs;

		pairs = pair->next;
		all = meld(all, pair);
	}
	return all;
}

static void set_root(struct rt *rt, struct rt_timer *root)
{
	rt->first_timer = root;
	if (!root)
		return;
	root->next = NULL;
	root->prev = root;
}

/* take @timer, which is not the root, from among its siblings */
static void cut_out(struct rt_timer *timer)
{
	if (timer->prev->child == timer)
		timer->prev->child = timer->next;
	else
		timer->prev->next = timer->next;
	if (timer->next)
		timer->next->prev = timer->prev;
}

void rt_timer_init(struct rt *rt, struct rt_timer *timer, void (*fn)(struct rt_timer *timer))
{
	*timer = (struct rt_timer){.expiry = MONO_NEVER, .fn = fn, .rt = rt};
}

bool rt_timer_armed(const struct rt_timer *timer)
{
	return timer->prev != NULL;
}

void rt_timer_disarm(struct rt_timer *timer)
{
	struct rt *rt = timer->rt;
	struct rt_timer *children;

	if (!rt_timer_armed(timer))
		return;
	children = meld_siblings(timer->child);
	if (timer == rt->first_timer) {
		set_root(rt, children);
	} else {
		cut_out(timer);
		set_root(rt, meld(rt->first_timer, children));
	}
	timer->child = timer->next = timer->prev = NULL;
}

void rt_timer_arm(struct rt_timer *timer, mono_t when)
{
	struct rt *rt = timer->rt;

	rt_timer_disarm(timer);
	if (when.ns == MONO_NEVER.ns)
		return;
	timer->expiry = when;
	timer->serial = rt->next_serial++;
	set_root(rt, meld(rt->first_timer, timer));
}

mono_t rt_next_expiry(const struct rt *rt)
{
	return rt->first_timer ? rt->first_timer->expiry : MONO_NEVER;
}

void rt_fire_timers(struct rt *rt, mono_t now)
{
	for (unsigned n = 0; n < RT_TIMERS_PER_TURN && rt_next_expiry(rt).ns <= now.ns; n++) {
		struct rt_timer *timer = rt->first_timer;

		rt_timer_disarm(timer);
		timer->fn(timer);
	}
}

void rt_trim_later(struct rt *rt)
{
	rt_timer_arm(&rt->trim, mono_add(rt_now(rt), TRIM_NS));
}

/* --- pollers --- */

void rt_poller_add(struct rt *rt, struct rt_poller *p)
{
	p->idle_turns = 0;
	list_add_tail(&p->node, &rt->pollers);
}

void rt_poller_wake(struct rt *rt, struct rt_poller *p)
{
	p->idle_turns = 0;
	if (!list_empty(&p->node))
		return;
	p->awake(p);
	list_add_tail(&p->node, &rt->pollers);
}

void rt_poller_del(struct rt_poller *p)
{
	list_del_init(&p->node);
}

bool rt_poll_all(struct rt *rt)
{
	struct rt_poller *p, *tmp;
	bool busy = false;

	list_for_each_entry_safe(p, tmp, &rt->pollers, node) {
		bool worked = p->poll(p);

		p->idle_turns = worked ? 0 : p->idle_turns + 1;
		busy |= worked;
	}
	return busy;
}

void rt_rest_idle(struct rt *rt)
{
	struct rt_poller *p, *tmp;

	list_for_each_entry_safe(p, tmp, &rt->pollers, node) {
		if (!p->may_rest || p->idle_turns < RT_POLLER_LINGER)
			continue;
		if (p->prepare(p))
			p->idle_turns = 0; /* something came at this moment */
		else
			list_del_init(&p->node);
	}
}

void rt_io_watch(struct rt_io *io, bool readable, bool writable)
{
	io->rt->io_watch(io, readable, writable);
}
