/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Holding off who writes to pages: windows_hold.c. Under windows.lock. */
#ifndef SOFTIB_LIBIBVERBS_WINDOWS_HOLD_H
#define SOFTIB_LIBIBVERBS_WINDOWS_HOLD_H

#include <stdbool.h>
#include <stddef.h>

/** writers_watch() - pages whose writers may be held off from here on. Context:
 *  memory_moves() said that pages can move */
bool writers_watch(char *addr, size_t bytes);
/** writers_unwatch() - what was exchanged meanwhile is not watched any more */
void writers_unwatch(char *addr, size_t bytes);
/** writers_hold() - who writes waits; !@on: and goes on */
bool writers_hold(char *addr, size_t bytes, bool on);
/** writers_wake() - other pages are there: who waits tries again */
void writers_wake(char *addr, size_t bytes);
/** writers_miss_holes() - before Linux 6.4: pages that are not there must be
 *  made before their writers can be held off */
bool writers_miss_holes(void);
/** writers_forget() - in a child: it is the parent's memory that is watched */
void writers_forget(void);

#endif
