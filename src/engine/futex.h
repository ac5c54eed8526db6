/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a thread of a program sleeps until another one wakes it. errno stays as it is, because
 * posts and polls do not change it. */
#ifndef SOFTIB_ENGINE_FUTEX_H
#define SOFTIB_ENGINE_FUTEX_H

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/** eng_futex_wait() - sleep while *@word is @value, until eng_futex_wake(), for @most_ns at most,
 *  which is below a second; 0: for any time. It may return earlier */
static inline void eng_futex_wait(_Atomic uint32_t *word, uint32_t value, long most_ns)
{
	const struct timespec most = {.tv_nsec = most_ns};
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, most_ns ? &most : NULL, NULL, 0);
	errno = saved;
}

/** eng_futex_wake() - wake one thread that sleeps on @word */
static inline void eng_futex_wake(_Atomic uint32_t *word)
{
	int saved = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	errno = saved;
}

#endif
