/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How long the loop goes on without sleep after a descriptor had something to read. Whoever
 * sent a command often sends the next one as soon as it has the answer, and to wake softibd
 * up takes longer than the command itself. So the loop lingers: it looks again, and yields the
 * core between two looks. (Without the yield nothing is won: the sender may need that core.)
 *
 * A program that uses all of a core does not give it back before its slice is over, while a
 * sleeper that is woken runs at once. A yield that took long tells of such a program, and
 * then the loop sleeps at once for some time.
 */
#ifndef SOFTIB_RUNTIME_LINGER_H
#define SOFTIB_RUNTIME_LINGER_H

#include "base/types.h"

#define LINGER_NS	 20000 /* measured with 20 and 50 us: the same */
#define LINGER_TAKEN_NS	 150000 /* a yield that took this long gave the core away */
#define LINGER_REFUSE_NS (100 * NSEC_PER_MSEC)

/** struct linger - zeroed: not lingering
 *  @until: the loop does not sleep before; @refuse: it does not linger before */
struct linger {
	mono_t until, refuse;
};

/** linger_event() - a descriptor had something to read */
static inline void linger_event(struct linger *linger, mono_t now)
{
	if (!mono_before(now, linger->refuse))
		linger->until = mono_add(now, LINGER_NS);
}

/** linger_goes_on() - Return: yield the core and look again; false: the loop may sleep */
static inline bool linger_goes_on(const struct linger *linger, mono_t now)
{
	return mono_before(now, linger->until);
}

/** linger_yielded() - the core was yielded from @before until @after */
static inline void linger_yielded(struct linger *linger, mono_t before, mono_t after)
{
	if (after.ns - before.ns < LINGER_TAKEN_NS)
		return;
	linger->until = after;
	linger->refuse = mono_add(after, LINGER_REFUSE_NS);
}

#endif
