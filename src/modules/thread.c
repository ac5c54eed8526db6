/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads of modules: fibers with a name, which are asked to stop.
 *
 *	NEW	 wake_up_process() lets it begin
 *	RUNNING	 its function runs, or sleeps
 *	ENDED	 its function has returned; kthread_stop() frees it
 */
#include <stdarg.h>

#include "modules/private.h"

struct task_struct {
	struct list_head node; /* state->threads */
	struct module_state *state;
	struct rt_work start;
	struct rt_fiber *fiber;
	enum { NEW, RUNNING, ENDED } phase;
	bool should_stop;
	bool killed; /* its next sleep ends its function */
	int (*fn)(void *data);
	void *data;
	int result;
	char name[MODULE_NAME_BYTES];
};

static void run(void *arg)
{
	struct task_struct *task = arg;
	struct module_state *state = task->state;
	void *before = module_enter(state);

	task->fiber = rt_fiber_current();
	task->result = task->fn(task->data);
	task->fiber = NULL;
	task->phase = ENDED;
	module_leave(state, before); /* and wakes who waits for the phase */
}

static void start(struct rt_work *work)
{
	struct task_struct *task = container_of(work, struct task_struct, start);

	task->phase = RUNNING;
	if (!task->state->dead && !rt_fiber_start(task->state->loader->rt, run, task, task->state))
		return;
	task->phase = ENDED;
	task->result = -ENOMEM;
	wake_up(&task->state->changed);
}

struct task_struct *softib_kthread_create(struct module *module, int (*fn)(void *data), void *data,
					  const char *fmt, ...)
{
	struct task_struct *task = module->state->dead ? NULL : rt_zalloc(sizeof(*task));
	va_list ap;

	if (!task)
		return ERR_PTR(-ENOMEM);
	task->state = module->state;
	task->fn = fn;
	task->data = data;
	va_start(ap, fmt);
	vsnprintf(task->name, sizeof(task->name), fmt, ap);
	va_end(ap);
	rt_work_init(&task->start, start);
	list_add_tail(&task->node, &task->state->threads);
	return task;
}

struct task_struct *module_thread_of(struct rt_fiber *fiber)
{
	struct module_state *state = fiber ? rt_fiber_owner(fiber) : NULL;
	struct task_struct *task;

	if (state)
		list_for_each_entry(task, &state->threads, node)
			if (task->fiber == fiber)
				return task;
	return NULL;
}

bool module_thread_is_killed(const struct task_struct *task)
{
	return task && task->killed;
}

struct task_struct *softib_current(void)
{
	return module_thread_of(rt_fiber_current());
}

bool kthread_should_stop(void)
{
	const struct task_struct *task = current;

	return task && task->should_stop;
}

int wake_up_process(struct task_struct *task)
{
	if (task->phase == NEW) {
		rt_work_queue(task->state->loader->rt, &task->start);
		return 1;
	}
	return task->fiber && module_wake_fiber(task->state, task->fiber);
}

static void free_thread(struct task_struct *task)
{
	rt_work_cancel(&task->start);
	list_del(&task->node);
	rt_free(task);
}

/* until its function has returned, if it ever began */
static void wait_for_end(struct task_struct *task)
{
	if (task->phase != RUNNING)
		return;
	wake_up_process(task);
	wait_event(task->state->changed, task->phase == ENDED);
}

int kthread_stop(struct task_struct *task)
{
	int result;

	task->should_stop = true;
	wait_for_end(task);
	result = task->phase == NEW ? -EINTR : task->result;
	free_thread(task);
	return result;
}

unsigned int module_threads_drop(struct module_state *state)
{
	struct task_struct *task;
	unsigned int n = 0;

	while (!list_empty(&state->threads)) {
		task = list_first_entry(&state->threads, struct task_struct, node);
		n += task->phase != ENDED;
		task->should_stop = task->killed = true;
		wait_for_end(task);
		free_thread(task);
	}
	return n;
}

/* --- sleep --- */

unsigned long schedule_timeout(unsigned long timeout)
{
	DECLARE_WAIT_QUEUE_HEAD(nobody);

	return softib_wait(&nobody, timeout);
}

int cond_resched(void)
{
	struct rt_fiber *fiber = rt_fiber_current();

	if (fiber) {
		rt_fiber_wake(fiber);
		rt_fiber_sleep();
	}
	return 0;
}
