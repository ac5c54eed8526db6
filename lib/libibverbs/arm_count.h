/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How often CQs are armed, which the progress thread reports to its state machine. Arming is too frequent
 * to take progress.lock each time. So it is counted, and is an event of the machine only while @kicks is
 * set, which is the case while the thread sleeps although the program polls.
 *
 * Memory order. Each side changes one word and then reads the other's:
 *
 *   a program's thread    arms++;         then look: kicks?
 *   the progress thread   kicks = true;   then look: arms?
 *
 * These four accesses are sequentially consistent, so at least one side sees the other. Either the
 * program's thread ends the sleep, or the progress thread sees that a CQ was armed and does not sleep.
 * With acquire and release alone, both looks could miss. tests/unit/lib/test_litmus_progress.c plays both
 * sides on a simulated processor with a weak order.
 */
#ifndef SOFTIB_LIBIBVERBS_ARM_COUNT_H
#define SOFTIB_LIBIBVERBS_ARM_COUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ARM_COUNT_ONE (1ull << 32)

struct arm_count {
	_Atomic uint64_t arms; /* bits 63..32: of all CQs since the start; 31..0: CQs armed now */
	_Atomic bool kicks;    /* arming a CQ is an event of the machine */
};

/** arm_count_add() - a CQ is about to be armed. *@armed: is it armed already? Set. Return: true: the
 *  state machine has to be told */
static inline bool arm_count_add(struct arm_count *c, _Atomic bool *armed)
{
	/* counted before it is said, so that the count is never too low */
	atomic_fetch_add(&c->arms, ARM_COUNT_ONE + 1);
	if (atomic_exchange(armed, true))
		atomic_fetch_sub(&c->arms, 1);
	return atomic_load(&c->kicks);
}

/** arm_count_remove() - the event of a CQ was raised, or it is destroyed. *@armed: is it armed? Cleared */
static inline void arm_count_remove(struct arm_count *c, _Atomic bool *armed)
{
	if (atomic_exchange(armed, false))
		atomic_fetch_sub(&c->arms, 1);
}

/** arm_count_read() - how often CQs were armed since the start. *@now: how many are */
static inline uint32_t arm_count_read(struct arm_count *c, uint32_t *now)
{
	uint64_t arms = atomic_load(&c->arms);

	*now = (uint32_t)arms;
	return (uint32_t)(arms / ARM_COUNT_ONE);
}

/** arm_count_set_kicks() - from now on, arming a CQ is an event of the machine, or is none. Return: true:
 *  it is, and a CQ was armed after arm_count_read() had returned @seen, of which no event may come */
static inline bool arm_count_set_kicks(struct arm_count *c, bool kicks, uint32_t seen)
{
	uint32_t now;

	if (kicks == atomic_load(&c->kicks))
		return false;
	atomic_store(&c->kicks, kicks);
	return kicks && arm_count_read(c, &now) != seen;
}

#endif
