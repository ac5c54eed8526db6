/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Timers of modules: a timer of the runtime in each, from the first mod_timer() on. */
#include "modules/private.h"

_Static_assert(sizeof(struct rt_timer) <= sizeof(((struct timer_list *)NULL)->runtime),
	       "the runtime's timer has room in a module's");

static struct rt_timer *runtime_of(const struct timer_list *timer)
{
	return (struct rt_timer *)(void *)timer->runtime;
}

static void on_timer(struct rt_timer *runtime)
{
	struct timer_list *timer =
		container_of((void *)runtime, struct timer_list, runtime);

	list_del(&timer->node);
	if (!timer->module->state->dead)
		timer->function(timer);
}

bool timer_pending(const struct timer_list *timer)
{
	return timer->begun && !list_empty(&timer->node);
}

int mod_timer(struct timer_list *timer, unsigned long expires)
{
	struct module_state *state = timer->module->state;
	struct rt *rt = state->loader->rt;
	long jiffies_left = (long)(expires - softib_jiffies());
	uint64_t ms = jiffies_left > 0 ? (uint64_t)jiffies_left : 0;
	int pending = del_timer(timer);

	if (state->dead)
		return pending;
	if (!timer->begun) {
		INIT_LIST_HEAD(&timer->node);
		rt_timer_init(rt, runtime_of(timer), on_timer);
		timer->begun = true;
	}
	timer->expires = expires;
	list_add_tail(&timer->node, &state->kernel_timers);
	rt_timer_arm(runtime_of(timer), mono_add(rt_now(rt), MIN(ms, UINT32_MAX) * NSEC_PER_MSEC));
	return pending;
}

int del_timer(struct timer_list *timer)
{
	if (!timer_pending(timer))
		return 0;
	rt_timer_disarm(runtime_of(timer));
	list_del(&timer->node);
	return 1;
}

unsigned int module_timers_drop(struct module_state *state)
{
	unsigned int n = 0;

	while (!list_empty(&state->kernel_timers)) {
		del_timer(list_first_entry(&state->kernel_timers, struct timer_list, node));
		n++;
	}
	return n;
}
