/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who runs the engine. A program that polls runs it in its own calls: no
 * thread wakes, no descriptor is written. But a program may be the target of
 * RDMA and never call the library, may sleep in ibv_get_cq_event() or in its
 * own poll(), or may spin on memory; for these there is one thread.
 *
 * States
 *   WATCH  the program polls. The thread sleeps WATCH_NS at a time, with the
 *          ring's `asleep` flag clear (softibd writes no eventfd), and looks
 *          whether polls still happen and packets still move.
 *   SERVE  the thread runs the engine and sleeps on the engine's eventfd
 *          with `asleep` set, until the next packet or timer.
 *
 * Events
 *   WATCH -> SERVE  no poll since the last look; or packets wait that waited
 *                   then already; or a CQ is armed (the program will sleep)
 *   SERVE -> WATCH  the program polls every BUSY_POLL_NS or faster for
 *                   `patience` windows of time running, and no CQ is armed
 *
 * A program that polls for a moment and then watches its memory (perftest's
 * write latency) looks busy and is not: each time WATCH ends at once,
 * patience grows, until the thread stays with such a program. One that did
 * not poll because it had no core did nothing wrong: its processor time tells.
 *
 * Timers
 *   WINDOW_NS       over which the rate of polls is measured
 *   eng_expiry()    retransmission and RNR timers, in SERVE; in WATCH the
 *                   poller runs them
 *   ENG_RETRY_NS    packets wait for room in a ring
 *   LINGER_NS       with no timer running, how long the thread still comes
 *                   back by itself before it sleeps until someone calls
 *
 * Before it sleeps the thread says until when (wakes_at). Whoever makes a
 * timer that is earlier, be it by a post or by a poll that took a packet,
 * wakes it (progress_wanted).
 */
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/posix/slice.h"
#include "soft.h"

#define WATCH_NS (1 * NSEC_PER_MSEC)
#define LINGER_NS (20 * NSEC_PER_MSEC)
#define WINDOW_NS (200 * NSEC_PER_USEC)
#define BUSY_POLL_NS (100 * NSEC_PER_USEC) /* a hundred posts fit in between */
#define PATIENCE_MIN 2
#define PATIENCE_MAX 1024 /* 0.2 s */
#define WATCH_SHORT 8	   /* looks: a WATCH that ended sooner was a mistake */
#define ROUNDS_MAX 16

mono_t progress_now(void *unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){(uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec};
}

static void ring_eventfd(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void drain_eventfd(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

/** progress_kick() - the thread looks again at what it sleeps for */
void progress_kick(struct soft_context *ctx)
{
	if (!ctx->forked)
		ring_eventfd(ctx->progress.control_fd);
}

/** progress_wanted() - eng_config.kick: under the engine's lock */
void progress_wanted(void *arg, mono_t by)
{
	struct soft_context *ctx = arg;
	uint64_t wakes_at = atomic_load(&ctx->progress.wakes_at);

	if (unlikely(by.ns < wakes_at) &&
	    atomic_compare_exchange_strong(&ctx->progress.wakes_at, &wakes_at, 0))
		progress_kick(ctx);
}

/* Sleep until @timeout_ns (UINT64_MAX: for ever) or a descriptor speaks. */
static void sleep_on(struct soft_context *ctx, bool doorbell, uint64_t timeout_ns)
{
	struct soft_progress *p = &ctx->progress;
	struct pollfd fds[4] = {
		{.fd = p->control_fd, .events = POLLIN},
		{.fd = ctx->dead ? -1 : ctx->sock, .events = POLLRDHUP},
		{.fd = doorbell ? p->engine_fd : -1, .events = POLLIN},
		{.fd = p->lanes_fd, .events = POLLIN},
	};
	struct timespec ts = {.tv_sec = (time_t)(timeout_ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(timeout_ns % NSEC_PER_SEC)};

	if (ppoll(fds, 4, timeout_ns == UINT64_MAX ? NULL : &ts, NULL) <= 0)
		return;
	if (fds[0].revents)
		drain_eventfd(p->control_fd);
	if (fds[2].revents)
		drain_eventfd(p->engine_fd);
	if (fds[3].revents && !lanes_events(ctx, p->lanes_fd)) {
		close(p->lanes_fd);
		p->lanes_fd = -1;
	}
	if (fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR))
		context_fatal(ctx);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void start_serving(struct soft_progress *p, bool program_ran)
{
	p->mode = PROGRESS_SERVE;
	if (p->looks >= WATCH_SHORT)
		p->patience = MAX(p->patience / 2, (unsigned)PATIENCE_MIN);
	else if (program_ran)
		p->patience = MIN(p->patience * 4, (unsigned)PATIENCE_MAX);
	p->looks = 0;
	p->busy_windows = 0;
	p->window_start = progress_now(NULL);
}

/* One look at a program that polls. */
static void watch(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	uint64_t polls, position, cpu = cpu_ns();
	bool waiting;

	atomic_store(&p->watching, true);
	if (!atomic_load(&p->armed))
		sleep_on(ctx, false, WATCH_NS);
	atomic_store(&p->watching, false);
	polls = atomic_load(&p->polls);
	position = link_position(&ctx->link, &waiting);
	if (atomic_load(&p->armed) || polls == p->polls_seen ||
	    (waiting && position == p->position_seen) || ctx->link.broken)
		start_serving(p, cpu_ns() - cpu > WATCH_NS / 2);
	else
		p->looks++;
	p->polls_seen = polls;
	p->position_seen = waiting ? position : UINT64_MAX;
}

static uint64_t serve_timeout(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	mono_t now = progress_now(NULL), expiry = eng_expiry(ctx->engine);
	uint64_t timeout;

	if (!mono_before(now, expiry))
		return 0;
	timeout = expiry.ns == UINT64_MAX ? UINT64_MAX : expiry.ns - now.ns;
	if (!eng_idle(ctx->engine))
		return MIN(timeout, ENG_RETRY_NS);
	if (timeout == UINT64_MAX && mono_before(now, mono_add(p->last_work, LINGER_NS)))
		return LINGER_NS;
	return timeout;
}

/* Does the program poll so often that the thread is only in its way? */
static bool program_polls(struct soft_progress *p, mono_t now)
{
	uint64_t elapsed = now.ns - p->window_start.ns, polls;

	if (elapsed < WINDOW_NS)
		return false;
	polls = atomic_load(&p->polls);
	if ((polls - p->polls_seen) * BUSY_POLL_NS >= elapsed && !atomic_load(&p->armed))
		p->busy_windows++;
	else
		p->busy_windows = 0;
	p->polls_seen = polls;
	p->window_start = now;
	return p->busy_windows >= p->patience;
}

/* Run the engine until it has nothing to do, then sleep for the next packet. */
static void serve(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	mono_t now = progress_now(NULL);
	uint64_t timeout;

	if (program_polls(p, now)) {
		p->mode = PROGRESS_WATCH;
		return;
	}
	for (int i = 0; i < ROUNDS_MAX && eng_tick(ctx->engine); i++)
		p->last_work = now;
	if (!link_sleep(&ctx->link))
		return;
	/* wakes_at is set before the engine is asked: a timer that starts
	 * meanwhile either shows in eng_expiry() or its maker sees wakes_at */
	atomic_store(&p->wakes_at, UINT64_MAX);
	timeout = serve_timeout(ctx);
	if (timeout != UINT64_MAX)
		atomic_store(&p->wakes_at, now.ns + timeout);
	if (timeout)
		sleep_on(ctx, true, timeout);
	atomic_store(&p->wakes_at, 0);
	link_wake(&ctx->link);
}

static void *run(void *arg)
{
	struct soft_context *ctx = arg;

	rt_short_slice();
	while (!atomic_load(&ctx->progress.stop)) {
		lanes_answer(ctx);
		lanes_reap(ctx);
		if (ctx->progress.mode == PROGRESS_WATCH)
			watch(ctx);
		else
			serve(ctx);
	}
	return NULL;
}

/**
 * progress_start() - start the engine's thread; every signal stays with the
 * program's own threads
 * Return: 0; -errno
 */
int progress_start(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	sigset_t all, old;
	int rc;

	p->patience = PATIENCE_MIN;
	p->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->control_fd < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&p->thread, NULL, run, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		close(p->control_fd);
		return -rc;
	}
	pthread_setname_np(p->thread, "softib");
	p->running = true;
	return 0;
}

void progress_stop(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;

	if (!p->running)
		return;
	if (!ctx->forked) {
		atomic_store(&p->stop, true);
		progress_kick(ctx);
		pthread_join(p->thread, NULL);
		close(p->control_fd);
	}
	p->running = false;
}
