/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Write protection of pages that move: threads that store into them wait (windows_hold.c).
 * Everything here is protected by windows.lock. */
#ifndef SOFTIB_LIBIBVERBS_WINDOWS_HOLD_H
#define SOFTIB_LIBIBVERBS_WINDOWS_HOLD_H

#include <stdbool.h>
#include <stddef.h>

/** writers_watch() - register pages, so that writers_hold() may protect them. Context:
 *  memory_moves() has returned MEMORY_MOVES or MEMORY_MOVES_ALONE */
bool writers_watch(char *addr, size_t bytes);
/** writers_unwatch() - unregister pages; those that were replaced meanwhile are not registered
 *  any more */
void writers_unwatch(char *addr, size_t bytes);
/** writers_hold() - @on: write-protect pages, so that threads that store into them wait; else
 *  remove the protection, and the threads continue */
bool writers_hold(char *addr, size_t bytes, bool on);
/** writers_wake() - the pages were replaced: wake the threads that wait, which repeat their
 *  stores */
void writers_wake(char *addr, size_t bytes);
/** writers_miss_holes() - before Linux 6.4, only pages that exist can be protected, so the others
 *  have to be allocated first */
bool writers_miss_holes(void);
/** writers_forget() - in a forked child: close the descriptor, which belongs to the parent's
 *  memory */
void writers_forget(void);
/** writers_disown() - in any child: forget the descriptor, but leave it open, since the program
 *  may have closed it already and have used its number for another file */
void writers_disown(void);

#endif
