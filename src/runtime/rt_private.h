/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What rt_posix and rt_sim share: the work queue, the timer wheel, pollers. */
#ifndef SOFTIB_RUNTIME_PRIVATE_H
#define SOFTIB_RUNTIME_PRIVATE_H

#include "runtime/rt.h"

#define RT_WHEEL_SLOTS 1024
#define RT_WHEEL_SHIFT 20 /* a slot is 2^20 ns, about a millisecond */

struct rt_io;

/**
 * struct rt - common part; the makers embed it first
 *
 * Timers hang in a hashed wheel: a slot holds those whose expiry, in
 * slot widths modulo the wheel, is its number. Arming and disarming are
 * O(1); the next expiry is cached and recomputed when it fires.
 */
struct rt {
	struct list_head work;
	struct list_head wheel[RT_WHEEL_SLOTS];
	unsigned num_timers;
	mono_t next_expiry;  /* a lower bound; MONO_NEVER when none */
	bool next_is_exact;
	mono_t (*now)(struct rt *rt);
	uint32_t (*random)(struct rt *rt);
	void (*timer_moved)(struct rt *rt); /* an earlier expiry than before */
	struct list_head pollers;
	/** io_watch() - struct rt_io is the makers' (rt_posix.h) */
	void (*io_watch)(struct rt_io *io, bool readable, bool writable);
};

void rt_init(struct rt *rt);
/** rt_run_work() - everything queued when it is called. True: it ran some */
bool rt_run_work(struct rt *rt);
/** rt_next_expiry() - of the earliest timer, exact */
mono_t rt_next_expiry(struct rt *rt);
/** rt_fire_timers() - all that are due at @now, in order of expiry */
void rt_fire_timers(struct rt *rt, mono_t now);
/** rt_poll_all() - a turn of every poller. True: one did something */
bool rt_poll_all(struct rt *rt);

#endif
