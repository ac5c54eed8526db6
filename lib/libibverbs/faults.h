/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Faults of the library's accesses to the program's memory (docs/MEMORY.md). */
#ifndef SOFTIB_LIBIBVERBS_FAULTS_H
#define SOFTIB_LIBIBVERBS_FAULTS_H

#include <signal.h>

/** faults_watch() - SIGSEGV and SIGBUS come to us first, from now until the program sets a
 *  handler of its own. SOFTIB_GUARD=0 in the environment: never */
void faults_watch(void);
/** faults_all_but() - what a thread of the library blocks: all signals but those two, which
 *  are the end of a process where they are blocked */
static inline void faults_all_but(sigset_t *set)
{
	sigfillset(set);
	sigdelset(set, SIGSEGV);
	sigdelset(set, SIGBUS);
}

#endif
