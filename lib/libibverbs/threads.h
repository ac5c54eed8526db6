/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which threads of the process are ours, and so whether the program has but
 * one: then no system call of the program's is under way while it calls us.
 */
#ifndef SOFTIB_LIBIBVERBS_THREADS_H
#define SOFTIB_LIBIBVERBS_THREADS_H

#include <stdbool.h>

/** threads_created() - one of ours runs. Context: who created it */
void threads_created(void);
/** threads_begin() - the calling thread is ours; it calls threads_end() last */
void threads_begin(void);
void threads_end(void);
/** threads_forked() - in a child: none of ours is here */
void threads_forked(void);
/** threads_alone() - is the caller the program's, and has it no other? Whatever
 *  is not sure is false */
bool threads_alone(void);

#endif
