/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Timers and threads of modules, as in the Linux kernel. Included by softib/module.h.
 *
 * A timer's function runs from softibd's loop and may not sleep. A thread is a fiber, and
 * may: another function of softibd runs only while it sleeps, so a thread that computes for
 * long calls cond_resched() now and then.
 */
#ifndef SOFTIB_TIMER_H
#define SOFTIB_TIMER_H

#include "softib/module.h"

#pragma GCC visibility push(default)

/* --- timers --- */

/** struct timer_list - a function to be called once, at a time in jiffies */
struct timer_list {
	unsigned long expires;
	void (*function)(struct timer_list *timer);
	struct module *module;
	/* --- the loader's --- */
	bool begun; /* @node and @runtime are valid */
	struct list_head node;
	void *runtime[8]; /* struct rt_timer */
};

#define __TIMER_INITIALIZER(fn, flags)                                                   \
	{                                                                                \
		.function = (fn), .module = THIS_MODULE                                  \
	}
#define DEFINE_TIMER(name, fn) struct timer_list name = __TIMER_INITIALIZER(fn, 0)

/** timer_setup() - @flags: as in the kernel; not used */
#define timer_setup(timer, fn, flags)                                                    \
	((void)(*(timer) = (struct timer_list)__TIMER_INITIALIZER(fn, flags)))
#define from_timer(var, timer_arg, field)                                                \
	container_of(timer_arg, __typeof__(*(var)), field)
#define timer_container_of from_timer

/** mod_timer() - let the function of @timer be called at @expires, and not when it was due
 *  before. Context: any. Return: 1: it was pending; 0 */
int mod_timer(struct timer_list *timer, unsigned long expires);
/** add_timer() - mod_timer() at timer->expires */
static inline void add_timer(struct timer_list *timer)
{
	mod_timer(timer, timer->expires);
}
/** del_timer() - the function is not called any more. Functions of modules do not run at the
 *  same time, so it does not run either. Context: any. Return: 1: it was pending; 0 */
int del_timer(struct timer_list *timer);
#define del_timer_sync	  del_timer
#define timer_delete	  del_timer
#define timer_delete_sync del_timer
bool timer_pending(const struct timer_list *timer);

/* --- threads --- */

struct task_struct;

/** kthread_create() - a thread that begins with wake_up_process(): @fn(@data). The rest is its
 *  name, as for printf(). It ends when @fn returns, and its memory stays until kthread_stop()
 *  unless that is never called: a thread that is not stopped is given back when the module goes.
 *  Return: the thread; ERR_PTR(-ENOMEM) */
#define kthread_create(fn, data, ...) softib_kthread_create(THIS_MODULE, fn, data, __VA_ARGS__)
__attribute__((format(printf, 4, 5)))
struct task_struct *softib_kthread_create(struct module *module, int (*fn)(void *data), void *data,
					  const char *fmt, ...);
/** kthread_run() - kthread_create() and wake_up_process(): @fn runs from the loop, soon */
#define kthread_run(fn, data, ...)                                                       \
	({                                                                               \
		struct task_struct *task_ = kthread_create(fn, data, __VA_ARGS__);       \
		if (!IS_ERR(task_))                                                      \
			wake_up_process(task_);                                          \
		task_;                                                                   \
	})

/** kthread_stop() - let kthread_should_stop() say so, wake the thread, wait until its function
 *  has returned, and free it. Not from the thread itself. Context: may sleep. Return: what
 *  the function returned; -EINTR: it never began */
int kthread_stop(struct task_struct *task);
/** kthread_should_stop() - shall the calling thread end? Context: a thread */
bool kthread_should_stop(void);
/** wake_up_process() - let a thread begin, or end its sleep early: it looks at its condition
 *  again. Context: any. Return: 1: it slept; 0 */
int wake_up_process(struct task_struct *task);
/** current - the calling thread; NULL: the caller is none */
#define current softib_current()
struct task_struct *softib_current(void);

#define TASK_RUNNING	     0
#define TASK_INTERRUPTIBLE   1
#define TASK_UNINTERRUPTIBLE 2
/** set_current_state() - before schedule(); nothing runs in between, so that it has nothing
 *  to do */
#define set_current_state(state)   ((void)(state))
#define __set_current_state(state) ((void)(state))
/** schedule_timeout() - sleep until wake_up_process(), for @timeout jiffies at most. Context:
 *  may sleep. Return: the jiffies that are left; 0: the time is over */
unsigned long schedule_timeout(unsigned long timeout);
#define schedule_timeout_interruptible	 schedule_timeout
#define schedule_timeout_uninterruptible schedule_timeout
#define schedule()			 ((void)schedule_timeout(MAX_SCHEDULE_TIMEOUT))
/** cond_resched() - let others run. Context: may sleep. Return: 0 */
int cond_resched(void);

#pragma GCC visibility pop

#endif
