/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A thread that performs jobs in their order, so that the loop never waits for a disk. A
 * thread, and not io_uring, because fallocate() and fdatasync() need one anyway in old
 * kernels, and because containers commonly forbid io_uring_setup(2).
 */
#ifndef SOFTIB_ULP_SRPT_WORKER_H
#define SOFTIB_ULP_SRPT_WORKER_H

#include "runtime/rt.h"

struct srpt_worker;

/** struct srpt_job - the owner embeds it and keeps it until done()
 *  @run: in the thread
 *  @done: in the loop */
struct srpt_job {
	struct list_head node;
	void (*run)(struct srpt_job *job);
	void (*done)(struct srpt_job *job);
};

/** srpt_worker_start() - Return: 0 and *@worker; -errno */
int srpt_worker_start(struct rt *rt, struct srpt_worker **worker);
void srpt_worker_add(struct srpt_worker *worker, struct srpt_job *job);
/** srpt_worker_finish() - wait until all jobs are done */
void srpt_worker_finish(struct srpt_worker *worker);
/** srpt_worker_stop() - end the thread, which has no job. Not from within done() */
void srpt_worker_stop(struct srpt_worker *worker);

#endif
