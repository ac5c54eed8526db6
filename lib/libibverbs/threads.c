/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Our threads are counted when they certainly run, and no more when they are
 * about to end. Their number is never too high, so that no thread of the
 * program is taken for one of ours: a program seems to have more threads than
 * it has for a moment, and never fewer.
 */
#include "threads.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static _Atomic int ours;
static _Atomic pid_t counted_in; /* the process: a bare clone() has none of them */
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
	/* a directory for each thread, and as ever "." and ".." */
	return !stat("/proc/self/task", &st) && (long)st.st_nlink == 2 + 1 + n;
}
