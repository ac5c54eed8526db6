/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a thread sleeps for the engine. Senders ring a doorbell only when the
 * receiver has said that it sleeps, so there are two ways to sleep on the
 * doorbells: armed, when each record rings, and unarmed, when only overdue ones
 * do. Which thread may sleep there, and how, src/progress decides.
 *
 * Before an armed sleep the alarm is set for the engine's next timer
 * (retransmission, RNR, a packet that waits for room, a delayed
 * acknowledgement). Whoever starts an earlier timer meanwhile, by a post or by
 * a poll that took a packet, sets the alarm anew.
 */
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "soft.h"

mono_t progress_now(void *unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){timespec_ns(&ts)};
}

void progress_ring(int eventfd, uint64_t count)
{
	while (syscall(SYS_write, eventfd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

void progress_drain(int eventfd)
{
	uint64_t n;

	while (syscall(SYS_read, eventfd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

/* --- doorbells that should be rung again --- */

/* under the engine's lock */
static void ring_overdue(void *arg)
{
	lanes_ring_overdue(&((struct soft_context *)arg)->link.lanes, progress_now(NULL));
}

void progress_ring_overdue(struct soft_context *ctx)
{
	uint64_t now = progress_now(NULL).ns;

	if (now - atomic_load(&ctx->progress.overdue_at) < PROG_OVERDUE_NS)
		return;
	atomic_store(&ctx->progress.overdue_at, now);
	eng_locked(ctx->engine, ring_overdue, ctx);
}

/* --- armed sleep --- */

void progress_engine_wants(void *arg, mono_t by)
{
	struct soft_context *ctx = arg;
	struct soft_progress *p = &ctx->progress;

	if (likely(by.ns >= p->asleep_until))
		return;
	p->asleep_until = by.ns;
	doorbells_set_alarm(&p->doorbells, progress_now(NULL), by);
}

struct sleep_args {
	struct soft_context *ctx;
	uint64_t most_ns;
	bool armed;
};

/* Under the engine's lock: lanes are added and removed, and timers are started, under it. */
static void arm_sleep(void *arg)
{
	struct sleep_args *args = arg;
	struct soft_context *ctx = args->ctx;
	mono_t now, by;

	if (!link_arm_sleep(&ctx->link))
		return;
	now = progress_now(NULL);
	by = eng_wake_by(ctx->engine, now);
	if (lanes_ring_overdue(&ctx->link.lanes, now))
		by = mono_min(by, mono_add(now, PROG_OVERDUE_NS));
	if (args->most_ns != PROG_FOREVER)
		by = mono_min(by, mono_add(now, args->most_ns));
	args->armed = mono_before(now, by);
	if (!args->armed) {
		link_disarm_sleep(&ctx->link);
		return;
	}
	ctx->progress.asleep_until = by.ns;
	doorbells_set_alarm(&ctx->progress.doorbells, now, by);
}

static void disarm_sleep(void *arg)
{
	struct soft_context *ctx = arg;

	ctx->progress.asleep_until = 0;
	link_disarm_sleep(&ctx->link);
}

bool progress_arm_sleep(struct soft_context *ctx, uint64_t most_ns)
{
	struct sleep_args args = {.ctx = ctx, .most_ns = most_ns};

	eng_locked(ctx->engine, arm_sleep, &args);
	return args.armed;
}

void progress_disarm_sleep(struct soft_context *ctx)
{
	eng_locked(ctx->engine, disarm_sleep, ctx);
}

/* --- the progress thread's sleeps --- */

static bool waiter_has_doorbells(struct soft_progress *p)
{
	bool has;

	pthread_mutex_lock(&p->lock);
	has = p->machine.doorbells == PROG_WAITER;
	pthread_mutex_unlock(&p->lock);
	return has;
}

/* Return: false when softibd closed our context, or died */
static bool read_lane_news(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	struct pollfd fd = {.fd = p->lanes_fd, .events = POLLIN};

	do {
		if (!lanes_events(ctx, p->lanes_fd))
			return false;
	} while (poll(&fd, 1, 0) > 0);
	/* the sender of a new lane does not know that an event waiter sleeps */
	if (waiter_has_doorbells(p))
		doorbells_ring(&p->doorbells);
	return true;
}

/* under the engine's lock, under which lanes_fd is written to */
static void close_lanes_fd(void *arg)
{
	struct soft_progress *p = arg;

	close(p->lanes_fd);
	p->lanes_fd = -1;
}

void progress_sleep_apart(struct soft_context *ctx, int timeout_ms)
{
	struct soft_progress *p = &ctx->progress;
	struct pollfd fds[] = {
		{.fd = p->kick_fd, .events = POLLIN},
		{.fd = ctx->dead ? -1 : ctx->sock, .events = POLLRDHUP},
		{.fd = p->lanes_fd, .events = POLLIN},
	};
	bool gone;

	if (poll(fds, ARRAY_SIZE(fds), timeout_ms) <= 0)
		return;
	if (fds[0].revents)
		progress_drain(p->kick_fd);
	gone = p->lanes_fd >= 0 && fds[2].revents && !read_lane_news(ctx);
	if (gone) {
		/* whoever refuses a lane writes to lanes_fd under ask_lock */
		pthread_mutex_lock(&ctx->link.lanes.ask_lock);
		eng_locked(ctx->engine, close_lanes_fd, p);
		pthread_mutex_unlock(&ctx->link.lanes.ask_lock);
	}
	if (gone || fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR))
		context_fatal(ctx, p->told);
}

int progress_sleep_on_doorbells(struct soft_context *ctx, int timeout_ms)
{
	struct soft_progress *p = &ctx->progress;
	int rang;

	if (unlikely(atomic_load(&p->control_unread)) &&
	    atomic_exchange(&p->control_unread, false)) {
		progress_sleep_apart(ctx, 0);
		return 0;
	}
	rang = doorbells_wait(&p->doorbells, timeout_ms);
	if (rang > 0 && rang & DOORBELL_CONTROL)
		progress_sleep_apart(ctx, 0);
	return MAX(rang, 0);
}
