/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which threads of the process belong to the library, and therefore whether the program has only
 * one thread: then no system call of the program is in progress while it calls the library. */
#ifndef SOFTIB_LIBIBVERBS_THREADS_H
#define SOFTIB_LIBIBVERBS_THREADS_H

#include <stdbool.h>

/** threads_created() - count a thread of the library. Context: the thread that has created it */
void threads_created(void);
/** threads_begin() - the calling thread belongs to the library; it calls threads_end() last */
void threads_begin(void);
void threads_end(void);
/** threads_forked() - in a forked child, which has none of the library's threads */
void threads_forked(void);
/** threads_alone() - is the caller the program's only thread? Return: false also if that is not
 *  certain */
bool threads_alone(void);

#endif
