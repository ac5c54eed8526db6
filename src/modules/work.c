/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work items. Those of a module run one after another on a fiber, which is started for
 * the first item and ends when none is left.
 */
#include "modules/private.h"

struct delayed_timer {
	struct list_head node; /* state->timers */
	struct rt_timer timer;
	struct delayed_work *dwork;
};

static struct module_state *state_of(const struct work_struct *work)
{
	return work->module->state;
}

static void run_all(void *arg)
{
	struct module_state *state = arg;

	state->worker = rt_fiber_current();
	while (!state->dead && !list_empty(&state->works)) {
		struct work_struct *work =
			list_first_entry(&state->works, struct work_struct, entry);
		void *before;

		list_del(&work->entry);
		state->running = work;
		before = module_enter(state);
		work->func(work); /* which may free it */
		module_leave(state, before);
		state->running = NULL;
		wake_up(&state->changed);
	}
	state->worker = NULL;
	wake_up(&state->changed);
}

static void start_worker(struct rt_work *work)
{
	struct module_state *state = container_of(work, struct module_state, start_worker);

	if (!state->worker && rt_fiber_start(state->loader->rt, run_all, state, NULL))
		module_log(state, "no memory to run its work items");
}

bool schedule_work(struct work_struct *work)
{
	struct module_state *state = state_of(work);

	if (!list_empty(&work->entry))
		return false;
	list_add_tail(&work->entry, &state->works);
	if (!state->worker)
		rt_work_queue(state->loader->rt, &state->start_worker);
	return true;
}

/* wait until @work does not run, unless the caller is @work itself */
static void wait_while_running(struct module_state *state, const struct work_struct *work)
{
	if (state->worker != rt_fiber_current())
		wait_event(state->changed, state->running != work);
}

bool cancel_work_sync(struct work_struct *work)
{
	bool scheduled = !list_empty(&work->entry);

	list_del(&work->entry);
	wait_while_running(state_of(work), work);
	return scheduled;
}

bool flush_work(struct work_struct *work)
{
	struct module_state *state = state_of(work);
	bool busy = !list_empty(&work->entry) || state->running == work;

	if (state->worker != rt_fiber_current() || !state->worker)
		wait_event(state->changed, list_empty(&work->entry) && state->running != work);
	return busy;
}

/* --- with a delay --- */

static void forget_timer(struct delayed_timer *t)
{
	rt_timer_disarm(&t->timer);
	t->dwork->timer = NULL;
	list_del(&t->node);
	rt_free(t);
}

static void on_timer(struct rt_timer *timer)
{
	struct delayed_timer *t = container_of(timer, struct delayed_timer, timer);
	struct delayed_work *dwork = t->dwork;

	forget_timer(t);
	schedule_work(&dwork->work);
}

bool schedule_delayed_work(struct delayed_work *dwork, unsigned long delay)
{
	struct module_state *state = state_of(&dwork->work);
	struct rt *rt = state->loader->rt;
	struct delayed_timer *t;

	if (dwork->timer || !list_empty(&dwork->work.entry))
		return false;
	if (!delay)
		return schedule_work(&dwork->work);
	t = rt_zalloc(sizeof(*t));
	if (!t)
		return false;
	t->dwork = dwork;
	dwork->timer = t;
	list_add_tail(&t->node, &state->timers);
	rt_timer_init(rt, &t->timer, on_timer);
	rt_timer_arm(&t->timer, mono_add(rt_now(rt), MIN(delay, UINT32_MAX) * NSEC_PER_MSEC));
	return true;
}

bool cancel_delayed_work(struct delayed_work *dwork)
{
	bool waited = dwork->timer || !list_empty(&dwork->work.entry);

	if (dwork->timer)
		forget_timer(dwork->timer);
	list_del(&dwork->work.entry);
	return waited;
}

bool cancel_delayed_work_sync(struct delayed_work *dwork)
{
	bool waited = cancel_delayed_work(dwork);

	wait_while_running(state_of(&dwork->work), &dwork->work);
	return waited;
}

bool mod_delayed_work_(struct delayed_work *dwork, unsigned long delay)
{
	bool waited = cancel_delayed_work(dwork);

	schedule_delayed_work(dwork, delay);
	return waited;
}

/* --- of the module --- */

void module_works_init(struct module_state *state)
{
	INIT_LIST_HEAD(&state->works);
	INIT_LIST_HEAD(&state->timers);
	rt_work_init(&state->start_worker, start_worker);
}

unsigned int module_works_drop(struct module_state *state)
{
	unsigned int n = 0;

	rt_work_cancel(&state->start_worker);
	while (!list_empty(&state->timers)) {
		forget_timer(list_first_entry(&state->timers, struct delayed_timer, node));
		n++;
	}
	while (!list_empty(&state->works)) {
		list_del(state->works.next);
		n++;
	}
	wait_event(state->changed, !state->worker);
	return n;
}
