/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fibers: functions that may sleep, on stacks of their own, in the one thread of a loop.
 * The processor goes from one to another only where a fiber sleeps or ends, so that code
 * between two sleeps is as undisturbed as any callback of the loop.
 */
#ifndef SOFTIB_RUNTIME_FIBER_H
#define SOFTIB_RUNTIME_FIBER_H

#include "runtime/rt.h"

struct rt_fiber;

/**
 * rt_fiber_start() - run @fn(@arg) on a fiber, until it sleeps or ends
 * @owner: what rt_fiber_owner() tells at first
 * Context: any; also on a fiber. Return: 0: it has slept or ended; -ENOMEM: it did not run
 */
int rt_fiber_start(struct rt *rt, void (*fn)(void *arg), void *arg, void *owner);

/** rt_fiber_current() - Return: the fiber that calls; NULL: the loop does */
struct rt_fiber *rt_fiber_current(void);

/** rt_fiber_sleep() - let others run until rt_fiber_wake(), or for no reason: look again
 *  whether what was waited for is there. On a fiber only */
void rt_fiber_sleep(void);

/** rt_fiber_wake() - let @fiber go on soon, from the loop. Not of one that has ended */
void rt_fiber_wake(struct rt_fiber *fiber);

/** rt_fiber_rt() - whose loop it belongs to */
struct rt *rt_fiber_rt(const struct rt_fiber *fiber);

/** rt_fiber_owner(), rt_fiber_set_owner() - a word about the fiber that its user keeps */
void *rt_fiber_owner(const struct rt_fiber *fiber);
void rt_fiber_set_owner(struct rt_fiber *fiber, void *owner);

#endif
