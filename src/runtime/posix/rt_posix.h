/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The runtime on a real machine: libev, CLOCK_MONOTONIC, getrandom. */
#ifndef SOFTIB_RUNTIME_RT_POSIX_H
#define SOFTIB_RUNTIME_RT_POSIX_H

#include <ev.h>

#include "runtime/rt.h"

/** rt_posix_create() - Return: 0 and *@rt; -ENOMEM, -ENOSYS (no epoll) */
int rt_posix_create(struct rt **rt);
void rt_posix_destroy(struct rt *rt);
/** rt_posix_run() - turn the loop until rt_posix_stop() */
void rt_posix_run(struct rt *rt);
void rt_posix_stop(struct rt *rt);
/** rt_posix_turns() - how many turns were begun. Context: any, also a signal's handler */
uint64_t rt_posix_turns(const struct rt *rt);
/** rt_posix_loop() - libev's, for what it watches itself: signals, files */
struct ev_loop *rt_posix_loop(struct rt *rt);
/** rt_posix_turn() - one turn without sleeping, with one round of work (tests) */
void rt_posix_turn(struct rt *rt);

/**
 * struct rt_io - a watched descriptor. The descriptor stays the owner's,
 * who stops the watch before closing it.
 */
struct rt_io {
	ev_io ev;
	struct list_head node; /* rt_sim: the watched ones; rt_posix: those that have events */
	int events; /* rt_posix: while it is in that list */
	void (*fn)(struct rt_io *io, bool readable, bool writable);
	struct rt *rt;
};

void rt_io_init(struct rt *rt, struct rt_io *io, int fd,
		void (*fn)(struct rt_io *io, bool readable, bool writable));
/** rt_io_watch() - replace the set of wanted events; none stops the watch. Events are reported in the
 *  order in which the kernel had them: who wrote to two sockets is read in that order.
 *  Under rt_sim descriptors are looked at on command: rt_sim_look() */
void rt_io_watch(struct rt_io *io, bool readable, bool writable);

#endif
