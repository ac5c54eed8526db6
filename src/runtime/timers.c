/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Deferred work, timers and pollers: the parts of struct rt that need no OS. */
#include "runtime/posix/rt_posix.h"
#include "runtime/rt_private.h"

void rt_init(struct rt *rt)
{
	INIT_LIST_HEAD(&rt->work);
	INIT_LIST_HEAD(&rt->pollers);
	for (unsigned i = 0; i < RT_WHEEL_SLOTS; i++)
		INIT_LIST_HEAD(&rt->wheel[i]);
	rt->next_expiry = MONO_NEVER;
	rt->next_is_exact = true;
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

bool rt_run_work(struct rt *rt)
{
	LIST_HEAD(batch);

	list_splice_tail_init(&rt->work, &batch);
	if (list_empty(&batch))
		return false;
	while (!list_empty(&batch)) {
		struct rt_work *w = list_first_entry(&batch, struct rt_work, node);
		list_del_init(&w->node);
		w->fn(w);
	}
	return true;
}

static struct list_head *slot_of(struct rt *rt, mono_t when)
{
	return &rt->wheel[(when.ns >> RT_WHEEL_SHIFT) % RT_WHEEL_SLOTS];
}

void rt_timer_init(struct rt *rt, struct rt_timer *timer, void (*fn)(struct rt_timer *timer))
{
	INIT_LIST_HEAD(&timer->node);
	timer->expiry = MONO_NEVER;
	timer->fn = fn;
	timer->rt = rt;
}

bool rt_timer_armed(const struct rt_timer *timer)
{
	return !list_empty(&timer->node);
}

void rt_timer_disarm(struct rt_timer *timer)
{
	if (list_empty(&timer->node))
		return;
	list_del_init(&timer->node);
	timer->rt->num_timers--;
	if (timer->rt->num_timers == 0)
		timer->rt->next_expiry = MONO_NEVER;
	else if (timer->expiry.ns <= timer->rt->next_expiry.ns)
		timer->rt->next_is_exact = false;
}

void rt_timer_arm(struct rt_timer *timer, mono_t when)
{
	struct rt *rt = timer->rt;

	rt_timer_disarm(timer);
	if (when.ns == MONO_NEVER.ns)
		return;
	timer->expiry = when;
	list_add_tail(&timer->node, slot_of(rt, when));
	rt->num_timers++;
	if (mono_before(when, rt->next_expiry)) {
		rt->next_expiry = when;
		rt->next_is_exact = true;
		if (rt->timer_moved)
			rt->timer_moved(rt);
	}
}

mono_t rt_next_expiry(struct rt *rt)
{
	struct rt_timer *t;
	mono_t first = MONO_NEVER;

	if (rt->next_is_exact)
		return rt->next_expiry;
	for (unsigned i = 0; i < RT_WHEEL_SLOTS && rt->num_timers; i++)
		list_for_each_entry(t, &rt->wheel[i], node)
			first = mono_min(first, t->expiry);
	rt->next_expiry = first;
	rt->next_is_exact = true;
	return first;
}

static struct rt_timer *earliest_in(struct list_head *slot, mono_t now)
{
	struct rt_timer *t, *best = NULL;

	list_for_each_entry(t, slot, node)
		if (t->expiry.ns <= now.ns && (!best || mono_before(t->expiry, best->expiry)))
			best = t;
	return best;
}

void rt_fire_timers(struct rt *rt, mono_t now)
{
	mono_t due;

	while ((due = rt_next_expiry(rt)).ns <= now.ns) {
		struct rt_timer *t = earliest_in(slot_of(rt, due), now);
		if (!t) { /* disarmed since the bound was taken */
			rt->next_is_exact = false;
			continue;
		}
		rt_timer_disarm(t);
		t->fn(t);
	}
}

void rt_poller_add(struct rt *rt, struct rt_poller *p)
{
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

	list_for_each_entry_safe(p, tmp, &rt->pollers, node)
		busy |= p->poll(p);
	return busy;
}

void rt_io_watch(struct rt_io *io, bool readable, bool writable)
{
	io->rt->io_watch(io, readable, writable);
}
