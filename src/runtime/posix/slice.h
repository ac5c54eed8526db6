/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How soon the scheduler lets a woken thread run. */
#ifndef SOFTIB_RUNTIME_SLICE_H
#define SOFTIB_RUNTIME_SLICE_H

/**
 * rt_short_slice() - let the calling thread run in short slices
 *
 * For threads that others wait for and that do little at a time: softibd and
 * an engine's thread. A short slice has an early deadline, so that the thread,
 * when woken, runs before a program that spins on the same core would end
 * its own slice of several milliseconds. It gets no larger share. A kernel
 * that does not know this (before 6.12) ignores it.
 */
void rt_short_slice(void);

#endif
