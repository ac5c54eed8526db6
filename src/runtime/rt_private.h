/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What rt_posix and rt_sim share: the work queue, the timers' heap, pollers. */
#ifndef SOFTIB_RUNTIME_PRIVATE_H
#define SOFTIB_RUNTIME_PRIVATE_H

#include "runtime/rt.h"
#include "runtime/trace.h"

/* then descriptors and pollers have their turn */
#define RT_TIMERS_PER_TURN 256
#define RT_WORK_PER_TURN 1024

struct rt_io;

/** struct rt - common part; the makers embed it first */
struct rt {
	struct rt_trace trace; /* first: rt_trace() */
	struct list_head work;
	struct rt_timer *first_timer; /* the root of the heap: see timers.c */
	struct rt_timer trim;	      /* armed: rt_trim_later() was called */
	uint64_t next_serial;	      /* of the next timer that is armed */
	mono_t (*now)(struct rt *rt);
	uint32_t (*random)(struct rt *rt);
	struct list_head pollers; /* that do not rest */
	void *local[RT_LOCALS];
	/** io_watch() - struct rt_io is the makers' (rt_posix.h) */
	void (*io_watch)(struct rt_io *io, bool readable, bool writable);
};

void rt_init(struct rt *rt);
/** rt_run_work() - what is queued when it is called, but no more than @most pieces: the
 *  rest comes first in the next turn. Return: how many it ran */
unsigned rt_run_work(struct rt *rt, unsigned most);
/** rt_next_expiry() - of the earliest timer; MONO_NEVER when none is armed */
mono_t rt_next_expiry(const struct rt *rt);
/** rt_fire_timers() - those that are due at @now, in order of expiry, but no
 *  more than RT_TIMERS_PER_TURN: the others are due in the next turn */
void rt_fire_timers(struct rt *rt, mono_t now);
/** rt_poll_all() - a turn of every poller that does not rest. True: one did something */
bool rt_poll_all(struct rt *rt);
/** rt_rest_idle() - let those rest that may and that had nothing to do for long */
void rt_rest_idle(struct rt *rt);

#endif
