/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a thread does between two looks at memory that another one will write. */
#ifndef SOFTIB_BASE_RELAX_H
#define SOFTIB_BASE_RELAX_H

/** cpu_relax() - tell the processor that this is a loop that waits. It orders no memory
 *  access; the compiler looks at memory anew. */
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
