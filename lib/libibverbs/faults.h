/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Faults of the library's accesses to the program's memory (docs/MEMORY.md). */
#ifndef SOFTIB_LIBIBVERBS_FAULTS_H
#define SOFTIB_LIBIBVERBS_FAULTS_H

#include <signal.h>

#include "transport/guard.h"

/** faults_watch() - install handlers of SIGSEGV and SIGBUS, which stay until the program
 *  installs its own. SOFTIB_GUARD=0 in the environment disables this */
void faults_watch(void);
/** faults_reach_foreign - what guard_reach calls first, if it is set: GUARD_UNKNOWN says that
 *  the memory is this program's */
extern enum guard_reached (*faults_reach_foreign)(void *program, void *buf, size_t len,
						  bool store);
/** faults_all_but() - the signals that a thread of the library blocks: all except SIGSEGV
 *  and SIGBUS. The kernel kills a process that faults while these are blocked */
static inline void faults_all_but(sigset_t *set)
{
	sigfillset(set);
	sigdelset(set, SIGSEGV);
	sigdelset(set, SIGBUS);
}

#endif
