/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface of all layers to the operating system: a clock, timers, deferred
 * work, random bits and memory. One struct rt is one thread of execution, in which
 * everything runs to completion, one callback at a time. There are two
 * implementations: rt_posix (libev, real time) and rt_sim (a virtual clock and a
 * seed). The layers above cannot tell them apart.
 */
#ifndef SOFTIB_RUNTIME_RT_H
#define SOFTIB_RUNTIME_RT_H

#include "base/list.h"
#include "base/types.h"

struct rt;

/** rt_now() - monotonic time, cached per turn of the loop. Context: any. */
mono_t rt_now(struct rt *rt);

/** rt_random() - 32 random bits; a seeded stream under rt_sim */
uint32_t rt_random(struct rt *rt);

/**
 * struct rt_work - a function to be called once from the loop, never on the
 * caller's stack. The owner embeds it and keeps it alive while queued.
 */
struct rt_work {
	struct list_head node;
	void (*fn)(struct rt_work *work);
};

void rt_work_init(struct rt_work *work, void (*fn)(struct rt_work *work));
/** rt_work_queue() - run @work soon, in the order of queueing: in this turn of the
 *  loop, or in a later one when much is queued. Queueing it again before it ran changes
 *  nothing. */
void rt_work_queue(struct rt *rt, struct rt_work *work);
/** rt_work_cancel() - Return: true when it was queued and will not run */
bool rt_work_cancel(struct rt_work *work);

/** struct rt_timer - a one-shot timer; the owner embeds it and calls rt_timer_init() once */
struct rt_timer {
	/* --- a node of the heap (runtime/timers.c) --- */
	struct rt_timer *child, *next;
	struct rt_timer *prev; /* the sibling before, or the parent; itself: the root */
	uint64_t serial;       /* of its arming: orders timers of one expiry */
	mono_t expiry;
	void (*fn)(struct rt_timer *timer);
	struct rt *rt;
};

void rt_timer_init(struct rt *rt, struct rt_timer *timer,
		   void (*fn)(struct rt_timer *timer));
/** rt_timer_arm() - (re)arm for the point @when; a past one fires in the next
 *  turn. Timers of one expiry fire in the order of their arming. O(1) */
void rt_timer_arm(struct rt_timer *timer, mono_t when);
/** rt_timer_disarm() - O(log n) of the armed timers, amortised */
void rt_timer_disarm(struct rt_timer *timer);
bool rt_timer_armed(const struct rt_timer *timer);

/**
 * struct rt_poller - a source of work that has no descriptor of its own:
 * a shared-memory ring. Each turn of the loop calls poll(). When poll() of every poller
 * has returned false, the loop calls prepare() before it sleeps. prepare() announces
 * the sleep to the producers; if it returns true, work has arrived meanwhile, and the
 * loop does not sleep.
 *
 * A poller that may rest costs nothing while it has no work. After RT_POLLER_LINGER
 * turns without work the loop calls prepare() and does not poll it again before
 * rt_poller_wake(). (rt_sim polls every poller in each turn, since there no other
 * thread produces work.)
 */
struct rt_poller {
	struct list_head node; /* empty: it rests, or was not added */
	bool (*poll)(struct rt_poller *p);
	bool (*prepare)(struct rt_poller *p);
	void (*awake)(struct rt_poller *p);
	bool may_rest; /* after prepare(), its producers cause a call of rt_poller_wake() */
	unsigned idle_turns;
};
#define RT_POLLER_LINGER 256

void rt_poller_add(struct rt *rt, struct rt_poller *p);
void rt_poller_del(struct rt_poller *p);
/** rt_poller_wake() - @p may have work: poll it again if it rests */
void rt_poller_wake(struct rt *rt, struct rt_poller *p);

/** enum rt_local - who keeps state of its own per loop. A loop is one fabric: what belongs to
 *  a fabric is found through its loop, never through a variable of the process. */
enum rt_local { RT_LOCAL_CORE, RT_LOCAL_UVERBS, RT_LOCAL_UMAD, RT_LOCAL_UCMA, RT_LOCAL_UCM, RT_LOCAL_QUOTA, RT_LOCAL_TOLD,
		RT_LOCAL_IPOIB, RT_LOCAL_ETH, RT_LOCAL_SDP, RT_LOCAL_SRP, RT_LOCAL_SRPT, RT_LOCALS };
/** rt_local() - Return: what rt_set_local() was called with last; NULL */
void *rt_local(const struct rt *rt, enum rt_local which);
/** rt_set_local() - @state remains the caller's, who sets NULL before it is freed */
void rt_set_local(struct rt *rt, enum rt_local which, void *state);
/**
 * rt_local_get() - the state of @which, which is made by the first call
 * @bytes: size of the state; its memory begins zeroed
 * @init:  prepares what zeros do not; called once, before rt_local() returns the state
 * Return: the state, as rt_local() returns it until rt_local_free(); NULL: no memory
 */
void *rt_local_get(struct rt *rt, enum rt_local which, size_t bytes,
		   void (*init)(struct rt *rt, void *state));
/** rt_local_free() - free what rt_local_get() made, if anything; the next call makes it anew */
void rt_local_free(struct rt *rt, enum rt_local which);

/** rt_zalloc() - Return: zeroed memory, or NULL; tests make it fail by rt_fail_alloc() */
void *rt_zalloc(size_t size);
/** rt_alloc() - the same with any contents, for a buffer that is filled at once */
void *rt_alloc(size_t size);
void rt_free(void *p);
/** rt_alloc_pages() - zeroed memory of its own pages, which are the system's again when it is freed:
 *  for much that is needed for a while. NULL: no memory, or rt_fail_alloc() */
void *rt_alloc_pages(size_t bytes);
/** rt_free_pages() - @bytes: as they were allocated */
void rt_free_pages(void *p, size_t bytes);
/** rt_trim_later() - much has been freed: give the pages that are free within the heap to the system, once
 *  the program has had a quiet second for more of it */
void rt_trim_later(struct rt *rt);
/** rt_fail_alloc() - let the @nth allocation from now fail; 0 is never */
void rt_fail_alloc(uint64_t nth);
/** rt_alloc_balance() - Return: the number of allocations that are not freed yet */
int64_t rt_alloc_balance(void);

#endif
