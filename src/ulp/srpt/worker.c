/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The mutex protects the two lists, the counts and the flags. No thread holds it while it runs a
 * job, so the loop waits for it only as long as another thread takes a job from a list or adds one.
 */
#include "ulp/srpt/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/posix/rt_posix.h"

struct srpt_worker {
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	/* --- protected by mutex --- */
	struct list_head todo, done;
	uint32_t nr_todo, nr_idle, running;
	bool alone; /* a job of the kind SRPT_ALONE is running */
	bool stop;
	/* --- used by the loop only --- */
	pthread_t thread[SRPT_THREADS];
	uint32_t nr_threads;
	uint32_t nr_jobs;
	int event_fd;
	struct rt_io io;
};

static void leave_queue(struct srpt_worker *w, struct srpt_job *job)
{
	list_del(&job->node);
	job->waits = false;
	w->nr_todo--;
}

/* Take the next job, which is counted as running. Return: NULL: none may run now */
static struct srpt_job *begin_job(struct srpt_worker *w)
{
	struct srpt_job *job;

	if (list_empty(&w->todo) || w->alone)
		return NULL;
	job = list_first_entry(&w->todo, struct srpt_job, node);
	if (job->order == SRPT_ALONE && w->running)
		return NULL;
	leave_queue(w, job);
	w->running++;
	w->alone = job->order == SRPT_ALONE;
	return job;
}

static void end_job(struct srpt_worker *w, struct srpt_job *job)
{
	const uint64_t one = 1;
	ssize_t n;

	w->running--;
	if (w->alone || !w->running)
		pthread_cond_broadcast(&w->wake);
	w->alone = false;
	list_add_tail(&job->node, &w->done);
	/* This fails only if the counter has its maximum; then the descriptor is readable in any
	 * case. */
	n = write(w->event_fd, &one, sizeof(one));
	(void)n;
}

static void *work(void *arg)
{
	struct srpt_worker *w = arg;
	struct srpt_job *job;

	pthread_mutex_lock(&w->mutex);
	while (!w->stop) {
		job = begin_job(w);
		if (!job) {
			w->nr_idle++;
			pthread_cond_wait(&w->wake, &w->mutex);
			w->nr_idle--;
			continue;
		}
		pthread_mutex_unlock(&w->mutex);
		job->run(job);
		pthread_mutex_lock(&w->mutex);
		end_job(w, job);
	}
	pthread_mutex_unlock(&w->mutex);
	return NULL;
}

static void deliver(struct srpt_worker *w)
{
	struct list_head done;
	uint64_t count;

	INIT_LIST_HEAD(&done);
	if (read(w->event_fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&w->mutex);
	list_splice_tail_init(&w->done, &done);
	pthread_mutex_unlock(&w->mutex);
	while (!list_empty(&done)) {
		struct srpt_job *job = list_first_entry(&done, struct srpt_job, node);

		list_del(&job->node);
		w->nr_jobs--;
		job->done(job);
	}
}

static void on_event(struct rt_io *io, bool readable, bool writable)
{
	deliver(container_of(io, struct srpt_worker, io));
}

/* All signals are blocked in the threads, so that the loop handles them. */
static int start_thread(struct srpt_worker *w)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&w->thread[w->nr_threads], NULL, work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	w->nr_threads += !error;
	return -error;
}

int srpt_worker_start(struct rt *rt, struct srpt_worker **worker)
{
	struct srpt_worker *w = rt_zalloc(sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	INIT_LIST_HEAD(&w->todo);
	INIT_LIST_HEAD(&w->done);
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret = w->event_fd < 0 ? -errno : start_thread(w);
	if (ret) {
		if (w->event_fd >= 0)
			close(w->event_fd);
		rt_free(w);
		return ret;
	}
	rt_io_init(rt, &w->io, w->event_fd, on_event);
	rt_io_watch(&w->io, true, false);
	*worker = w;
	return 0;
}

void srpt_worker_add(struct srpt_worker *w, struct srpt_job *job)
{
	bool busy;

	w->nr_jobs++;
	pthread_mutex_lock(&w->mutex);
	job->waits = true;
	if (job->first)
		list_add(&job->node, &w->todo);
	else
		list_add_tail(&job->node, &w->todo);
	busy = ++w->nr_todo > w->nr_idle && job->order != SRPT_ALONE;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->mutex);
	if (busy && w->nr_threads < SRPT_THREADS)
		start_thread(w); /* if this fails, an existing thread runs the job */
}

/* A job that had to wait for @job may be able to run now, so the threads are woken. */
bool srpt_worker_cancel(struct srpt_worker *w, struct srpt_job *job)
{
	bool waits;

	pthread_mutex_lock(&w->mutex);
	waits = job->waits;
	if (waits) {
		leave_queue(w, job);
		pthread_cond_broadcast(&w->wake);
	}
	pthread_mutex_unlock(&w->mutex);
	w->nr_jobs -= waits;
	return waits;
}

static void end_threads(struct srpt_worker *w)
{
	pthread_mutex_lock(&w->mutex);
	w->stop = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->mutex);
	for (uint32_t i = 0; i < w->nr_threads; i++)
		pthread_join(w->thread[i], NULL);
}

void srpt_worker_finish(struct srpt_worker *w)
{
	while (w->nr_jobs) {
		struct pollfd ready = {.fd = w->event_fd, .events = POLLIN};

		poll(&ready, 1, -1);
		deliver(w);
	}
}

void srpt_worker_stop(struct srpt_worker *w)
{
	end_threads(w);
	rt_io_watch(&w->io, false, false);
	close(w->event_fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->mutex);
	rt_free(w);
}
