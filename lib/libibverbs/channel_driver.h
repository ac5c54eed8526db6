/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a driver of a completion channel (event_waiter.c) and the threads that add events to it tell
 * each other without the channel's lock, so that an event costs the driver no lock.
 *
 * Memory order. Each side changes one word and then reads the other's:
 *
 *   an event   queued++;                   then look: driver?
 *   a driver   driver = asleep, or none;   then look: queued?
 *
 * These four accesses are sequentially consistent, so at least one side sees the other. Either the
 * event wakes the driver or writes to the descriptor, or the driver sees the event and does not
 * sleep, or makes the descriptor follow. With acquire and release alone, both looks could miss.
 *
 * A driver that begins to look (channel_state_awake()) has no such look behind it. A thread that
 * still reads an older state, wakes a driver that is awake, or writes to a descriptor that nobody
 * reads, and sync_count() in channel.c puts the count right. The CQ of an event is found under the
 * channel's lock, so @queued and @counted order no other memory. tests/unit/lib/test_litmus.c plays
 * a driver and an event on a simulated processor with a weak order.
 */
#ifndef SOFTIB_LIBIBVERBS_CHANNEL_DRIVER_H
#define SOFTIB_LIBIBVERBS_CHANNEL_DRIVER_H

#include <stdatomic.h>
#include <stdbool.h>

/** enum channel_driver - is there a driver, a thread that waits for an event and runs the engine,
 *  and does it look at the queue of events by itself? */
enum channel_driver { CHANNEL_HAS_NO_DRIVER, CHANNEL_DRIVER_AWAKE, CHANNEL_DRIVER_ASLEEP };

struct channel_state {
	_Atomic int driver; /* enum channel_driver */
	/* --- changed under the channel's lock --- */
	_Atomic unsigned queued; /* length of the queue, counting each CQ's events */
	_Atomic unsigned counted; /* the number of events that the descriptor shows */
};

/** channel_state_add() - an event was added to the queue. Context: the channel's lock */
static inline void channel_state_add(struct channel_state *s)
{
	atomic_fetch_add(&s->queued, 1);
}

/** channel_state_take() - @n events were taken from the queue. Context: the channel's lock */
static inline void channel_state_take(struct channel_state *s, unsigned n)
{
	atomic_fetch_sub(&s->queued, n);
}

/** channel_state_driver_looks() - will a driver find the event that was added by itself? */
static inline bool channel_state_driver_looks(struct channel_state *s)
{
	return atomic_load(&s->driver) == CHANNEL_DRIVER_AWAKE;
}

/** channel_state_sleeper_waits() - does a driver sleep although an event is queued? Context: the
 *  channel's lock */
static inline bool channel_state_sleeper_waits(struct channel_state *s)
{
	return atomic_load(&s->driver) == CHANNEL_DRIVER_ASLEEP && atomic_load(&s->queued);
}

/** channel_state_has_event() - is an event queued? Only a hint, since it is read without the lock */
static inline bool channel_state_has_event(struct channel_state *s)
{
	return atomic_load(&s->queued) != 0;
}

/** channel_state_awake() - the calling driver looks at the queue by itself from now on */
static inline void channel_state_awake(struct channel_state *s)
{
	atomic_store_explicit(&s->driver, CHANNEL_DRIVER_AWAKE, memory_order_release);
}

/** channel_state_sleeps() - the calling driver has to be woken for events from now on. Return:
 *  true: the queue is empty, and the driver may sleep */
static inline bool channel_state_sleeps(struct channel_state *s)
{
	atomic_store(&s->driver, CHANNEL_DRIVER_ASLEEP);
	return !channel_state_has_event(s);
}

/** channel_state_leaves() - there is no driver any more. Return: true: the descriptor shows what is
 *  in the queue */
static inline bool channel_state_leaves(struct channel_state *s)
{
	atomic_store(&s->driver, CHANNEL_HAS_NO_DRIVER);
	return atomic_load(&s->queued) == atomic_load(&s->counted);
}

#endif
