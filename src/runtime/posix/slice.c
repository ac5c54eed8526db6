/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/posix/slice.h"

#define SLICE_NS 100000 /* the least that Linux grants */

void rt_short_slice(void)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_NORMAL,
		.sched_nice = getpriority(PRIO_PROCESS, 0),
		.sched_runtime = SLICE_NS,
	};

	/* another policy is the user's choice: leave it */
	if (syscall(SYS_sched_getscheduler, 0) == SCHED_NORMAL)
		(void)!syscall(SYS_sched_setattr, 0, &attr, 0);
}
