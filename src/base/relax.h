/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The pause in a loop that waits for another thread's store. */
#ifndef SOFTIB_BASE_RELAX_H
#define SOFTIB_BASE_RELAX_H

/** cpu_relax() - hint to the processor that this loop waits. It is a barrier for the
 *  compiler, which must read memory again, but not for the processor */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

#endif
