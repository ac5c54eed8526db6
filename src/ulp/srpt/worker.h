/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads that perform the jobs of a unit, so that the loop never waits for a disk, and the
 * disk has several commands at once. Threads, and not io_uring, because fallocate() and
 * fdatasync() need them anyway in old kernels, and because containers commonly forbid
 * io_uring_setup(2).
 */
#ifndef SOFTIB_ULP_SRPT_WORKER_H
#define SOFTIB_ULP_SRPT_WORKER_H

#include "runtime/rt.h"

#define SRPT_THREADS 8 /* of a worker, at most; they start when jobs have to wait */

struct srpt_worker;

/** enum srpt_job_order - against the other jobs of the worker */
enum srpt_job_order {
	SRPT_ALONE,  /* when those before it are done; those behind it wait for it */
	SRPT_BESIDE, /* at the same time as others that may */
};

/** struct srpt_job - the owner embeds it and keeps it until done()
 *  @first: before all that have not begun
 *  @waits: the worker's: it has not begun
 *  @run: in a thread
 *  @done: in the loop */
struct srpt_job {
	struct list_head node;
	enum srpt_job_order order;
	bool first, waits;
	void (*run)(struct srpt_job *job);
	void (*done)(struct srpt_job *job);
};

/** srpt_worker_start() - Return: 0 and *@worker; -errno */
int srpt_worker_start(struct rt *rt, struct srpt_worker **worker);
void srpt_worker_add(struct srpt_worker *worker, struct srpt_job *job);
/** srpt_worker_cancel() - take back a job that was added and is not done
 *  Return: true: it had not begun, and neither run() nor done() is called; false: done() is */
bool srpt_worker_cancel(struct srpt_worker *worker, struct srpt_job *job);
/** srpt_worker_finish() - wait until all jobs are done */
void srpt_worker_finish(struct srpt_worker *worker);
/** srpt_worker_stop() - end the threads, which have no job. Not from within done() */
void srpt_worker_stop(struct srpt_worker *worker);

#endif
