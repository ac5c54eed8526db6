/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sleep, time and the log of modules. */
#include <stdarg.h>
#include <time.h>

#include "modules/private.h"
#include "runtime/posix/log.h"

/** struct waiter - a fiber that sleeps, on its own stack */
struct waiter {
	struct list_head entry;	  /* in the wait queue; empty: it was woken */
	struct list_head sleeper; /* in state->sleepers; empty: the fiber is not of a module */
	struct rt_fiber *fiber;
	struct rt_timer timer;
	bool over; /* its time-out has expired */
};

static void on_timer(struct rt_timer *timer)
{
	struct waiter *w = container_of(timer, struct waiter, timer);

	w->over = true;
	rt_fiber_wake(w->fiber);
}

void wake_up(wait_queue_head_t *queue)
{
	while (!list_empty(&queue->waiters)) {
		struct waiter *w = list_first_entry(&queue->waiters, struct waiter, entry);

		list_del(&w->entry);
		rt_fiber_wake(w->fiber);
	}
}

static unsigned long jiffies_left(struct rt *rt, mono_t until)
{
	mono_t now = rt_now(rt);

	return mono_before(now, until) ? DIV_ROUND_UP(until.ns - now.ns, NSEC_PER_MSEC) : 0;
}

/* do the functions of the module, or does the thread, end where they sleep? */
static bool must_end(const struct module_state *state, struct rt_fiber *fiber)
{
	return state && (state->dead || module_thread_is_killed(module_thread_of(fiber)));
}

unsigned long softib_wait(wait_queue_head_t *queue, unsigned long timeout)
{
	struct waiter w = {.fiber = rt_fiber_current()};
	struct module_state *state;
	struct rt *rt;
	mono_t until;

	if (!w.fiber)
		module_bug("it sleeps in a handler, where nothing may sleep: a work item "
			   "(schedule_work()) may");
	rt = rt_fiber_rt(w.fiber);
	state = rt_fiber_owner(w.fiber);
	until = mono_add(rt_now(rt), MIN(timeout, UINT32_MAX) * NSEC_PER_MSEC);
	INIT_LIST_HEAD(&w.sleeper);
	list_add_tail(&w.entry, &queue->waiters);
	if (state)
		list_add_tail(&w.sleeper, &state->sleepers);
	rt_timer_init(rt, &w.timer, on_timer);
	if (timeout != MAX_SCHEDULE_TIMEOUT)
		rt_timer_arm(&w.timer, until);
	while (!list_empty(&w.entry) && !w.over && !must_end(state, w.fiber))
		rt_fiber_sleep();
	rt_timer_disarm(&w.timer);
	list_del(&w.entry);
	list_del(&w.sleeper);
	if (must_end(state, w.fiber))
		module_bug(NULL); /* returns to the caller of the module */
	return timeout == MAX_SCHEDULE_TIMEOUT ? timeout : jiffies_left(rt, until);
}

void module_wake_all(struct module_state *state)
{
	struct waiter *w;

	list_for_each_entry(w, &state->sleepers, sleeper)
		rt_fiber_wake(w->fiber);
}

bool module_wake_fiber(struct module_state *state, const struct rt_fiber *fiber)
{
	struct waiter *w;

	list_for_each_entry(w, &state->sleepers, sleeper)
		if (w->fiber == fiber) {
			list_del(&w->entry);
			rt_fiber_wake(w->fiber);
			return true;
		}
	return false;
}

void msleep(unsigned int ms)
{
	DECLARE_WAIT_QUEUE_HEAD(nobody);
	unsigned long left = ms;

	while (left)
		left = softib_wait(&nobody, left);
}

unsigned long softib_jiffies(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long)now.tv_sec * HZ + (unsigned long)now.tv_nsec / NSEC_PER_MSEC;
}

int softib_printk(const struct module *module, const char *fmt, ...)
{
	const char *level = fmt[0] == KERN_SOH[0] && fmt[1] ? fmt + 1 : KERN_INFO + 1;
	char text[MODULE_TEXT_BYTES];
	va_list ap;
	size_t n;

	if (fmt[0] == KERN_SOH[0] && fmt[1])
		fmt += 2;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = strlen(text);
	while (n && text[n - 1] == '\n')
		text[--n] = 0;
	rt_log("%s %s: %s%s", module->state->node_name, module->name,
	       *level <= '3'   ? "error: "
	       : *level == '4' ? "warning: "
			       : "",
	       text);
	return (int)n;
}
