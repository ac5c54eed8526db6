/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads of the library are counted after they have certainly begun to run, and are no longer
 * counted before they end. At any time the count is therefore not above the number of the
 * library's threads that the kernel has.
 *
 * threads_alone() needs the count and the kernel's number of threads as they were at one time. If a
 * thread of the library ended after the count was read and before the kernel was asked, a second
 * thread of the program would be taken for it. So the count is read again afterwards, and the
 * answer holds only if it has not changed. Each change also advances the upper half of the word:
 * one thread that ends and another that begins are not taken for no change.
 *
 * Memory order. The pair of reads is that of a sequence lock. The first read acquires; the fence
 * orders the kernel's answer before the second read. A thread that ends changes the word before it
 * leaves the kernel's number, and its decrement releases, so nobody sees its end but not the
 * change. What is counted is the word itself; no other memory depends on it. @counted_in is
 * stored before the thread is counted, with release, and read after the word: who sees a count
 * sees the process that it belongs to.
 */
#include "threads.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHANGE (1ull << 32)

static _Atomic uint64_t ours; /* how many; in the upper half, the number of changes */
static _Atomic pid_t counted_in; /* the process; one made by a bare clone() has none of them */
static _Thread_local bool is_ours;

void threads_created(void)
{
	atomic_store_explicit(&counted_in, getpid(), memory_order_relaxed);
	atomic_fetch_add_explicit(&ours, CHANGE + 1, memory_order_release);
}

void threads_begin(void)
{
	is_ours = true;
}

void threads_end(void)
{
	atomic_fetch_add_explicit(&ours, CHANGE - 1, memory_order_release);
}

void threads_forked(void)
{
	atomic_store_explicit(&ours, 0, memory_order_relaxed);
}

bool threads_alone(void)
{
	uint64_t word = atomic_load_explicit(&ours, memory_order_acquire);
	uint32_t n = (uint32_t)word;
	struct stat st;

	if (is_ours || (n && atomic_load_explicit(&counted_in, memory_order_relaxed) != getpid()))
		return false;
	/* /proc/self/task has a directory for each thread, in addition to "." and ".." */
	if (stat("/proc/self/task", &st) || st.st_nlink != 2 + 1 + (nlink_t)n)
		return false;
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&ours, memory_order_relaxed) == word;
}
