/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the queue pairs of a program count for the ports of their adapter: retries, NAKs and the like (enum tp_counter;
 * IBA v1 9.7.5 to 9.7.7 define the events). The counters stand behind the rings of the link (ABI_FD_LINK). The program's
 * engine adds to them, and softibd reads them. softibd cannot check them, because only the program sees its retries.
 */
#ifndef SOFTIB_ABI_COUNTERS_H
#define SOFTIB_ABI_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#define ABI_COUNTERS 10

/** struct abi_counters - those of a port. The array begins with port 1 */
struct abi_counters {
	_Atomic uint64_t count[ABI_COUNTERS]; /* enum tp_counter */
};

/** abi_count() - count an event. Context: one thread at a time */
static inline void abi_count(struct abi_counters *counters, unsigned counter)
{
	const uint64_t now = atomic_load_explicit(&counters->count[counter], memory_order_relaxed);

	atomic_store_explicit(&counters->count[counter], now + 1, memory_order_relaxed);
}

static inline uint64_t abi_counted(const struct abi_counters *counters, unsigned counter)
{
	return atomic_load_explicit(&counters->count[counter], memory_order_relaxed);
}

#endif
