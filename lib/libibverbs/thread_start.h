/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How the library starts its threads: each is counted (threads.h) and leaves signals to the program. */
#ifndef SOFTIB_LIBIBVERBS_THREAD_START_H
#define SOFTIB_LIBIBVERBS_THREAD_START_H

#include <pthread.h>
#include <signal.h>

#include "faults.h"
#include "threads.h"

/** threads_start() - start a thread of the library, which blocks the program's signals.
 *  @stack_bytes: 0: the program's default. @run calls threads_begin() first. Return: 0; -errno */
static inline int threads_start(pthread_t *thread, const char *name, size_t stack_bytes,
				void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	if (stack_bytes)
		pthread_attr_setstacksize(&attr, stack_bytes);
	faults_all_but(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (rc)
		return -rc;
	threads_created();
	pthread_setname_np(*thread, name);
	return 0;
}

#endif
