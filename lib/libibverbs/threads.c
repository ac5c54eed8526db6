/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads of the library are counted after they have certainly begun to run, and are no longer
 * counted before they end. The count is therefore never too high, and no thread of the program
 * is taken for one of the library's. For a moment a program may seem to have more threads than
 * it has, but never fewer.
 */
#include "threads.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic int ours;
static _Atomic pid_t counted_in; /* the process; one made by a bare clone() has none of them */
static _Thread_local bool is_ours;

void threads_created(void)
{
	atomic_store(&counted_in, getpid());
	atomic_fetch_add(&ours, 1);
}

void threads_begin(void)
{
	is_ours = true;
}

void threads_end(void)
{
	atomic_fetch_sub(&ours, 1);
}

void threads_forked(void)
{
	atomic_store(&ours, 0);
}

bool threads_alone(void)
{
	int n = atomic_load(&ours);
	struct stat st;

	if (is_ours || (n && atomic_load(&counted_in) != getpid()))
		return false;
	/* /proc/self/task has a directory for each thread, in addition to "." and ".." */
	return !stat("/proc/self/task", &st) && (long)st.st_nlink == 2 + 1 + n;
}
