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

#define SRPT_THREADS 8 /* the most threads of a worker; a thread is started when a job has to wait */

struct srpt_worker;

/** enum srpt_job_order - the order of a job and the other jobs of the worker */
enum srpt_job_order {
	SRPT_ALONE,  /* it waits for all jobs before it, and all jobs behind it wait for it */
	SRPT_BESIDE, /* it may run at the same time as other jobs of this kind */
};

/** struct srpt_job - the owner embeds it and keeps it until done()
 *  @first: run it before all jobs that have not begun
 *  @waits: set by the worker: the job has not begun
 *  @run: called by a thread
 *  @done: called by the loop after @run */
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
/** srpt_worker_stop() - end the threads. Context: there is no job; not from done() */
void srpt_worker_stop(struct srpt_worker *worker);

#endif
