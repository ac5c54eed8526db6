/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each call has a thread. A timer interrupts the thread at intervals, in whatever system call it waits,
 * so that it notices that nobody wants the result any more, whatever the other process does to the
 * socket meanwhile. Whoever comes last, the thread with its result or the loop that abandons the call,
 * frees it.
 */
#include "runtime/posix/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/posix/closer.h"

#define STACK_BYTES   ((size_t)PTHREAD_STACK_MIN + 65536)
#define INTERVAL_NS   (100 * NSEC_PER_MSEC) /* between two interruptions */
#define INTERRUPTION  SIGURG /* a signal that softibd does not use otherwise */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct rt_foreign_call {
	int fd, event_fd;
	pthread_t thread;
	struct rt_io io;
	bool connects;
	struct sockaddr_storage addr; /* connects: to where */
	socklen_t addr_bytes;
	void (*done)(void *ctx, int result);
	void *ctx;
	pthread_mutex_t lock;
	/* --- protected by lock --- */
	bool ended, abandoned;
	int result;
};

static void free_call(struct rt_foreign_call *call)
{
	rt_close_foreign(call->fd);
	if (call->event_fd >= 0)
		close(call->event_fd);
	pthread_mutex_destroy(&call->lock);
	free(call);
}

/* Nobody wants what the call has accepted. */
static void dispose(struct rt_foreign_call *call)
{
	if (!call->connects)
		rt_close_foreign(call->result);
	free_call(call);
}

/* --- the thread --- */

static void interrupted(int signal)
{
}

/* Return: false if the system gives no timer, so that the thread might wait for ever */
static bool begin_interruptions(timer_t *timer)
{
	const struct itimerspec interval = {{0, INTERVAL_NS}, {0, INTERVAL_NS}};
	const struct sigaction action = {.sa_handler = interrupted};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = INTERRUPTION};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, INTERRUPTION);
	sigaction(INTERRUPTION, &action, NULL);
	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_MONOTONIC, &event, timer))
		return false;
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return !timer_settime(*timer, 0, &interval, NULL);
}

static bool is_wanted(struct rt_foreign_call *call)
{
	bool wanted;

	pthread_mutex_lock(&call->lock);
	wanted = !call->abandoned;
	pthread_mutex_unlock(&call->lock);
	return wanted;
}

static int accept_one(struct rt_foreign_call *call)
{
	int fd;

	while (is_wanted(call)) {
		fd = accept4(call->fd, NULL, NULL, SOCK_CLOEXEC);
		rt_inherit_sender(fd, call->fd);
		if (fd >= 0 || errno != EINTR)
			return fd < 0 ? -errno : fd;
	}
	return -ECANCELED;
}

/* An attempt that is interrupted goes on without us. */
static int connect_once(const struct rt_foreign_call *call)
{
	if (!connect(call->fd, (const struct sockaddr *)&call->addr, call->addr_bytes))
		return 0;
	return errno == EINTR ? -EINPROGRESS : -errno;
}

static void *run(void *arg)
{
	struct rt_foreign_call *call = arg;
	const uint64_t one = 1;
	bool abandoned;
	timer_t timer;
	int result = -EAGAIN;

	if (begin_interruptions(&timer)) {
		result = call->connects ? connect_once(call) : accept_one(call);
		timer_delete(timer);
	}
	pthread_mutex_lock(&call->lock);
	call->result = result;
	call->ended = true;
	abandoned = call->abandoned;
	if (!abandoned && write(call->event_fd, &one, sizeof(one)) < 0) {
		/* impossible: the counter is 0 */
	}
	pthread_mutex_unlock(&call->lock);
	if (abandoned)
		dispose(call);
	return NULL;
}

/* The thread gets no signal that is the loop's. */
static int begin_thread(struct rt_foreign_call *call)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int error = pthread_attr_init(&attr);

	if (error)
		return -error;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&call->thread, &attr, run, call);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -error;
}

/* --- the loop --- */

static void on_end(struct rt_io *io, bool readable, bool writable)
{
	struct rt_foreign_call *call = container_of(io, struct rt_foreign_call, io);
	void (*done)(void *ctx, int result) = call->done;
	void *ctx = call->ctx;
	int result;

	pthread_mutex_lock(&call->lock); /* the thread gives it back after its last access */
	result = call->result;
	pthread_mutex_unlock(&call->lock);
	rt_io_watch(io, false, false);
	free_call(call);
	done(ctx, result);
}

static struct rt_foreign_call *make_call(struct rt *rt, int fd, void (*done)(void *ctx, int result),
					 void *ctx)
{
	struct rt_foreign_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	pthread_mutex_init(&call->lock, NULL);
	call->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	rt_inherit_sender(call->fd, fd);
	call->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	call->done = done;
	call->ctx = ctx;
	rt_io_init(rt, &call->io, call->event_fd, on_end);
	return call;
}

static int begin(struct rt_foreign_call *call, struct rt_foreign_call **out)
{
	int ret = call->fd < 0 || call->event_fd < 0 ? -EMFILE : begin_thread(call);

	if (ret) {
		free_call(call);
		return ret;
	}
	rt_io_watch(&call->io, true, false);
	*out = call;
	return 0;
}

int rt_foreign_accept(struct rt *rt, int fd, void (*done)(void *ctx, int result), void *ctx,
		      struct rt_foreign_call **out)
{
	struct rt_foreign_call *call = make_call(rt, fd, done, ctx);

	return call ? begin(call, out) : -ENOMEM;
}

int rt_foreign_connect(struct rt *rt, int fd, const struct sockaddr *addr, socklen_t len,
		       void (*done)(void *ctx, int result), void *ctx, struct rt_foreign_call **out)
{
	struct rt_foreign_call *call = make_call(rt, fd, done, ctx);

	if (!call)
		return -ENOMEM;
	call->connects = true;
	call->addr_bytes = MIN(len, (socklen_t)sizeof(call->addr));
	memcpy(&call->addr, addr, call->addr_bytes);
	return begin(call, out);
}

void rt_foreign_abandon(struct rt_foreign_call *call)
{
	bool ended;

	rt_io_watch(&call->io, false, false);
	pthread_mutex_lock(&call->lock);
	call->abandoned = true;
	ended = call->ended;
	if (!ended)
		pthread_kill(call->thread, INTERRUPTION); /* usually in time: it ends at once */
	pthread_mutex_unlock(&call->lock);
	if (ended)
		dispose(call);
}
