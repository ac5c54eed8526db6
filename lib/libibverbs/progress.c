/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who runs the engine. A program that polls runs it in its own calls: no
 * thread wakes, no descriptor is written. One that waits in
 * ibv_get_cq_event() runs it as a guest (guest.c). But a program may be the
 * target of RDMA and never call the library, may sleep in its own poll(), or
 * may spin on memory; for these there is one thread.
 *
 * States of the thread
 *   WATCH  the program polls, or a guest serves. The thread sleeps and looks
 *          whether polls or guests still come and packets still move: at
 *          first soon, then seldom. A peer whose packets wait long meanwhile
 *          rings (lanes_chase): with no guest about, the thread hears it and
 *          helps out. While one guest waits and waits, it sleeps until that
 *          guest goes.
 *   SERVE  the thread runs the engine and sleeps on the bells (bells.c), with
 *          the rings' `asleep` set, until the next packet or timer.
 *
 * Events
 *   WATCH -> SERVE  neither poll nor guest since the last look; or packets
 *                   wait that waited then already; or the program arms a CQ
 *                   and no guest is expected (it will sleep elsewhere); or
 *                   several of its threads wait
 *   SERVE -> WATCH  a guest comes; or the program polls every BUSY_POLL_NS or
 *                   faster for `windows_wanted` windows of time running
 *
 * A CQ may stay armed while the program polls others: UCX waits by events for
 * new peers, and polls for messages of those that it has. Such a program is left
 * to itself when it polls every ARMED_POLL_NS and has armed nothing for
 * ARMED_QUIET_NS: one that handles events polls as well, but arms again each time.
 * As long as a CQ is armed, looks are short, and polls must go on coming, one for
 * each ARMED_STAY_NS of a look: who sleeps then, and armed nothing for it, hears of a
 * packet by the second look.
 *
 * A program that polls for a moment and then watches its memory (perftest's
 * write latency) looks busy and is not: each time WATCH ends at once,
 * more windows are wanted, until the thread stays with such a program. One
 * that did not poll because it had no core did nothing wrong: its processor
 * time tells.
 *
 * Timers
 *   LOOK_MS         the first look of WATCH; each is twice as long as the one
 *                   before, up to LOOK_POLLER_MS, LOOK_ARMED_MS or LOOK_GUEST_MS
 *   LANES_LATE_NS   when a sender that polls or sleeps rings for what a
 *                   receiver that seems to be awake has not read
 *   WINDOW_NS       over which the rate of polls is measured
 *   eng_wake_by()   the engine's own: retransmission and RNR timers, packets
 *                   that wait for room, acknowledgements for company. The
 *                   alarm of whoever is the server; with none, the poller's
 *   CROWDED_NS      how long the thread does not spin where others want its core
 *
 * One at a time, thread or guest, is the server: it alone sets the rings'
 * `asleep` and sleeps on the bells. Before it sleeps it sets the alarm for the
 * engine's next timer; whoever makes one that is earlier, be it by a post or by
 * a poll that took a packet, sets it anew (progress_wanted).
 *
 * Who waits for an event spins before it sleeps, since an answer is often
 * near: SOFTIB_SPIN_US microseconds (40), giving its core to whoever wants it.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/posix/slice.h"
#include "soft.h"
#include "threads.h"

#define ROUNDS_MAX 16
#define CROWDED_NS (10 * NSEC_PER_MSEC)
#define SPIN_US 40
#define SPIN_US_MAX 1000000

mono_t progress_now(void *unused)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){(uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec};
}

/** progress_ring() - add @count to an eventfd. No cancellation point, as
 *  write() would be: the caller may hold locks */
void progress_ring(int eventfd, uint64_t count)
{
	while (syscall(SYS_write, eventfd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

/** progress_drain() - read an eventfd that has a count, or the bell */
void progress_drain(int fd)
{
	uint64_t n;

	while (syscall(SYS_read, fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

/** progress_kick() - the thread looks again at what it sleeps for */
void progress_kick(struct soft_context *ctx)
{
	if (!ctx->forked)
		progress_ring(ctx->progress.control_fd, 1);
}

/** progress_armed() - a CQ is about to be armed: the program will sleep. As a
 *  guest, or elsewhere, and then the thread must be woken by packets and not
 *  by its clock, until the program is seen to poll nevertheless */
void progress_armed(struct soft_context *ctx, struct soft_cq *cq)
{
	struct soft_progress *p = &ctx->progress;

	if (!atomic_exchange(&cq->armed, true))
		atomic_fetch_add(&p->armed, 1);
	atomic_fetch_add(&p->arms, 1);
	if (!atomic_load(&p->expects_guest) && atomic_exchange(&p->watching, false))
		progress_kick(ctx);
}

/** progress_event() - the event of an armed CQ is raised */
void progress_event(struct soft_context *ctx, struct soft_cq *cq)
{
	if (atomic_exchange(&cq->armed, false))
		atomic_fetch_sub(&ctx->progress.armed, 1);
	atomic_fetch_add_explicit(&ctx->progress.events, 1, memory_order_relaxed);
}

/** progress_wanted() - eng_config.kick: under the engine's lock */
void progress_wanted(void *arg, mono_t by)
{
	struct soft_context *ctx = arg;
	struct soft_progress *p = &ctx->progress;

	if (likely(by.ns >= p->wakes_at))
		return;
	p->wakes_at = by.ns;
	bells_set_alarm(&p->bells, progress_now(NULL), by);
}

/* under the engine's lock */
static void chase(void *arg)
{
	lanes_chase(&((struct soft_context *)arg)->link.lanes, progress_now(NULL));
}

/** progress_chase() - the program polls and finds nothing: whoever should answer
 *  may have stopped polling, and know of nothing */
void progress_chase(struct soft_context *ctx)
{
	uint64_t now = progress_now(NULL).ns;

	if (now - atomic_load(&ctx->progress.chased_ns) < LANES_LATE_NS)
		return;
	atomic_store(&ctx->progress.chased_ns, now);
	eng_locked(ctx->engine, chase, ctx);
}

/* under the engine's lock, under which it is written to */
static void close_lanes_fd(void *arg)
{
	struct soft_progress *p = arg;

	close(p->lanes_fd);
	p->lanes_fd = -1;
}

/** progress_sleep_alone() - sleep, at most @timeout_ms, -1: for ever, until the
 *  thread has to look at something; and at what softibd says */
void progress_sleep_alone(struct soft_context *ctx, int timeout_ms)
{
	struct soft_progress *p = &ctx->progress;
	struct pollfd fds[] = {
		{.fd = p->control_fd, .events = POLLIN},
		{.fd = ctx->dead ? -1 : ctx->sock, .events = POLLRDHUP},
		{.fd = p->lanes_fd, .events = POLLIN},
	};
	bool fatal = false;

	if (poll(fds, ARRAY_SIZE(fds), timeout_ms) <= 0)
		return;
	if (fds[0].revents)
		progress_drain(p->control_fd);
	while (p->lanes_fd >= 0 && fds[2].revents && !fatal) {
		fatal = !lanes_events(ctx, p->lanes_fd);
		/* a lane that is new does not know that a guest sleeps */
		if (atomic_load(&p->server) == SERVER_GUEST)
			bells_ring(&p->bells);
		if (!fatal && poll(&fds[2], 1, 0) <= 0)
			break;
	}
	if (fatal) { /* softibd closed our context, or died */
		pthread_mutex_lock(&ctx->link.lanes.ask_lock); /* who refuses writes there */
		eng_locked(ctx->engine, close_lanes_fd, p);
		pthread_mutex_unlock(&ctx->link.lanes.ask_lock);
	}
	if (fatal || fds[1].revents & (POLLHUP | POLLRDHUP | POLLERR))
		context_fatal(ctx, p->told);
}

/** progress_sleep_on_bells() - the same for a server: until a bell rings.
 *  Return: bits of enum bell */
int progress_sleep_on_bells(struct soft_context *ctx, int timeout_ms)
{
	struct soft_progress *p = &ctx->progress;
	int rang;

	if (unlikely(atomic_load(&p->unheard)) && atomic_exchange(&p->unheard, false)) {
		progress_sleep_alone(ctx, 0);
		return 0;
	}
	rang = bells_wait(&p->bells, timeout_ms);
	if (rang > 0 && rang & BELL_CONTROL)
		progress_sleep_alone(ctx, 0);
	return MAX(rang, 0);
}

/** progress_work() - let the engine do what it has to, up to an event: whoever
 *  takes that answers, and acknowledgements go along */
void progress_work(struct soft_context *ctx, mono_t now)
{
	struct soft_progress *p = &ctx->progress;
	uint32_t events = atomic_load(&p->events);

	for (int i = 0; i < ROUNDS_MAX && eng_tick(ctx->engine); i++) {
		p->last_work = now;
		if (atomic_load(&p->events) != events)
			return;
	}
}

struct bed {
	struct soft_context *ctx;
	uint64_t most_ns;
	bool made;
};

/* under the engine's lock: lanes come and go under it, timers are made */
static void lie_down(void *arg)
{
	struct bed *bed = arg;
	struct soft_context *ctx = bed->ctx;
	mono_t now, by;

	if (!link_sleep(&ctx->link))
		return;
	now = progress_now(NULL);
	by = eng_wake_by(ctx->engine, now);
	if (lanes_chase(&ctx->link.lanes, now))
		by = mono_min(by, mono_add(now, LANES_LATE_NS));
	if (bed->most_ns != UINT64_MAX)
		by = mono_min(by, mono_add(now, bed->most_ns));
	bed->made = mono_before(now, by);
	if (!bed->made) {
		link_wake(&ctx->link);
		return;
	}
	ctx->progress.wakes_at = by.ns;
	bells_set_alarm(&ctx->progress.bells, now, by);
}

static void get_up(void *arg)
{
	struct soft_context *ctx = arg;

	ctx->progress.wakes_at = 0;
	link_wake(&ctx->link);
}

/**
 * progress_lie_down() - be the server, and ask peers to ring the bells, and
 * the alarm for the engine's timers and after @most_ns; until progress_get_up()
 * Return: 0; -EBUSY another is the server; -EAGAIN the engine has work
 */
int progress_lie_down(struct soft_context *ctx, enum progress_server who, uint64_t most_ns)
{
	struct soft_progress *p = &ctx->progress;
	struct bed bed = {.ctx = ctx, .most_ns = most_ns};
	int nobody = SERVER_NONE;

	if (!atomic_compare_exchange_strong(&p->server, &nobody, who))
		return -EBUSY;
	eng_locked(ctx->engine, lie_down, &bed);
	if (bed.made)
		return 0;
	atomic_store(&p->server, SERVER_NONE);
	return -EAGAIN;
}

/** progress_get_up() - end what progress_lie_down() began */
void progress_get_up(struct soft_context *ctx)
{
	eng_locked(ctx->engine, get_up, ctx);
	atomic_store(&ctx->progress.server, SERVER_NONE);
}

/* Programs that get events get the next one soon, or never. Where somebody
 * else wants the core the thread does not spin: it would hold up those whom it
 * waits for, since its slices are short and so come first. */
static bool spins(struct soft_progress *p, mono_t now)
{
	uint32_t events = atomic_load(&p->events);

	if (now.ns - p->last_work.ns < p->spin_ns && !mono_before(now, p->crowded_until) &&
	    (events != p->events_seen || atomic_load(&p->armed))) {
		if (!patience_yield())
			return true;
		p->crowded_until = mono_add(now, CROWDED_NS);
	}
	p->events_seen = events;
	return false;
}

/* Run the engine until it has nothing to do, then sleep for the next packet. */
static void serve(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	mono_t now = progress_now(NULL);

	if (atomic_load(&p->guest) || watch_wanted(p, now)) {
		watch_begin(p, now);
		return;
	}
	progress_work(ctx, now);
	if (spins(p, now) || progress_lie_down(ctx, SERVER_THREAD, UINT64_MAX))
		return;
	/* a guest that came before this, found nobody to send away */
	if (!atomic_load(&p->guest))
		progress_sleep_on_bells(ctx, -1);
	progress_get_up(ctx);
}

static void *run(void *arg)
{
	struct soft_context *ctx = arg;

	threads_begin();
	rt_short_slice();
	while (!atomic_load(&ctx->progress.stop)) {
		lanes_answer(ctx);
		lanes_reap(ctx);
		if (ctx->progress.mode == PROGRESS_WATCH)
			watch_look(ctx);
		else
			serve(ctx);
	}
	threads_end();
	return NULL;
}

static uint64_t spin_time(void)
{
	const char *wish = getenv("SOFTIB_SPIN_US");
	long us = wish ? strtol(wish, NULL, 10) : SPIN_US;

	return us < 0 || us > SPIN_US_MAX ? SPIN_US * NSEC_PER_USEC : (uint64_t)us * NSEC_PER_USEC;
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

	p->spin_ns = spin_time();
	p->control_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->control_fd < 0)
		return -errno;
	rc = bells_add_control(&p->bells, p->control_fd) ?:
	     bells_add_control(&p->bells, ctx->sock) ?:
	     bells_add_control(&p->bells, p->lanes_fd);
	if (rc) {
		close(p->control_fd);
		return rc;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&p->thread, NULL, run, ctx);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		close(p->control_fd);
		return -rc;
	}
	threads_created();
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
