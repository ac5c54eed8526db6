/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The progress thread. It performs what the state machine of src/progress
 * orders and reports what came of it; the program's threads report theirs. The
 * state machine's state is protected by progress.lock, which is held for one
 * step and never while anyone sleeps.
 *
 * A report carries what was seen of the program, and is gathered under the
 * lock: then whatever a thread of the program has reported before is in it, and
 * whatever it reports later kicks the progress thread, which is asleep by then or
 * will find its sleep ended.
 *
 * Memory order. arm_count.h has that of arming a CQ. The other atomics of struct soft_progress order no
 * other memory. polls and events are counts that the thread compares with those of an earlier report;
 * overdue_at and crowded_until are times, and an old value costs a check or a spin. A driver sets
 * control_unread before it reports, under progress.lock, that it leaves, so the thread that sleeps next
 * reads it.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "faults.h"
#include "runtime/posix/slice.h"
#include "soft.h"
#include "thread_start.h"

#define TURNS_MAX 16 /* turns of the engine between two reports */
#define THREAD_ACTIONS                                                                         \
	(PROG_RUN | PROG_YIELD | PROG_SLEEP_ARMED | PROG_SLEEP_UNARMED | PROG_SLEEP_APART)

void progress_kick(struct soft_context *ctx)
{
	if (!ctx->forked)
		progress_ring(ctx->progress.kick_fd, 1);
}

/* --- events of the program's threads --- */

unsigned progress_report(struct soft_context *ctx, enum prog_event event)
{
	static const struct prog_seen nothing;
	struct soft_progress *p = &ctx->progress;
	unsigned actions;

	pthread_mutex_lock(&p->lock);
	actions = prog_step(&p->machine, event, &nothing, (mono_t){0}).actions;
	pthread_mutex_unlock(&p->lock);
	if (actions & PROG_KICK)
		progress_kick(ctx);
	return actions & ~(unsigned)PROG_KICK;
}

void progress_armed(struct soft_context *ctx, struct soft_cq *cq)
{
	if (unlikely(arm_count_add(&ctx->progress.arms, &cq->armed)) && !ctx->forked)
		progress_report(ctx, PROG_ARM);
}

void progress_disarmed(struct soft_context *ctx, struct soft_cq *cq)
{
	arm_count_remove(&ctx->progress.arms, &cq->armed);
}

/* --- reports of the progress thread --- */

static void look_at_program(struct soft_context *ctx, struct prog_seen *seen)
{
	struct soft_progress *p = &ctx->progress;

	seen->polls = atomic_load(&p->polls);
	seen->arms = arm_count_read(&p->arms, &seen->armed);
	seen->events = atomic_load(&p->events);
	seen->link_down = ctx->link.broken;
	if (p->machine.state == PROG_BESIDE_POLLER || p->machine.state == PROG_BESIDE_WAITER)
		seen->read = link_position(&ctx->link, &seen->unread);
}

/* Return: true when a CQ was armed that neither @seen nor a kick tells of */
static bool missed_arm(struct soft_progress *p, unsigned actions, const struct prog_seen *seen)
{
	return arm_count_set_kicks(&p->arms, actions & PROG_SLEEP_UNARMED, seen->arms);
}

static struct prog_order report(struct soft_context *ctx, enum prog_event event,
				struct prog_seen *seen, mono_t now)
{
	struct soft_progress *p = &ctx->progress;
	struct prog_order order;

	pthread_mutex_lock(&p->lock);
	look_at_program(ctx, seen);
	order = prog_step(&p->machine, event, seen, now);
	if (missed_arm(p, order.actions, seen)) {
		look_at_program(ctx, seen);
		order = prog_step(&p->machine, PROG_WOKE, seen, now);
		missed_arm(p, order.actions, seen);
	}
	pthread_mutex_unlock(&p->lock);
	return order;
}

/* --- actions of the progress thread --- */

/* Let the engine do what it has to, up to an event: the program's thread that
 * takes it mostly answers, and acknowledgements go with the answer. Return: true
 * when there was something to do */
static bool run_engine(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	uint32_t events = atomic_load(&p->events);
	bool worked = false;

	for (int i = 0; i < TURNS_MAX && eng_tick(ctx->engine); i++) {
		worked = true;
		if (atomic_load(&p->events) != events)
			break;
	}
	return worked;
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return timespec_ns(&ts);
}

static int to_ms(uint64_t ns)
{
	return ns == PROG_FOREVER ? -1 : (int)DIV_ROUND_UP(ns, NSEC_PER_MSEC);
}

static void sleep_armed(struct soft_context *ctx)
{
	if (!progress_arm_sleep(ctx, PROG_FOREVER))
		return;
	progress_sleep_on_doorbells(ctx, -1);
	progress_disarm_sleep(ctx);
}

static void sleep_unarmed(struct soft_context *ctx, uint64_t ns, struct prog_seen *seen)
{
	uint64_t start = progress_now(NULL).ns, cpu = cpu_ns();
	int rang = progress_sleep_on_doorbells(ctx, to_ms(ns));

	seen->rang = rang & (DOORBELL_LANE | DOORBELL_SOFTIBD);
	seen->cpu_ns = cpu_ns() - cpu;
	seen->slept_ns = progress_now(NULL).ns - start;
}

/* Return: the event that came of it */
static enum prog_event perform(struct soft_context *ctx, const struct prog_order *order,
			       struct prog_seen *seen)
{
	if (order->actions & PROG_RING_OVERDUE)
		progress_ring_overdue(ctx);
	switch (order->actions & THREAD_ACTIONS) {
	case PROG_RUN:
		seen->worked = run_engine(ctx);
		return PROG_RAN;
	case PROG_YIELD:
		return yield_core() ? PROG_CROWDED : PROG_READY;
	case PROG_SLEEP_ARMED:
		sleep_armed(ctx);
		return PROG_WOKE;
	case PROG_SLEEP_UNARMED:
		sleep_unarmed(ctx, order->sleep_ns, seen);
		return PROG_WOKE;
	default:
		progress_sleep_apart(ctx, to_ms(order->sleep_ns));
		return PROG_WOKE;
	}
}

static void *run(void *arg)
{
	struct soft_context *ctx = arg;
	struct prog_seen seen = {0};
	mono_t now = progress_now(NULL);
	struct prog_order order;
	enum prog_event event;

	threads_begin();
	rt_short_slice();
	order = report(ctx, PROG_READY, &seen, now);
	while (!atomic_load(&ctx->progress.stop)) {
		lanes_answer(ctx);
		lanes_reap(ctx);
		seen = (struct prog_seen){0};
		event = perform(ctx, &order, &seen);
		if (event != PROG_RAN) /* that took no time to speak of */
			now = progress_now(NULL);
		order = report(ctx, event, &seen, now);
	}
	threads_end();
	return NULL;
}

/* --- start and stop --- */

static uint64_t spin_time(void)
{
	const char *wish = getenv("SOFTIB_SPIN_US");
	long us = wish ? strtol(wish, NULL, 10) : -1;

	if (us < 0 || (uint64_t)us > PROG_SPIN_MAX_NS / NSEC_PER_USEC)
		return PROG_SPIN_NS;
	return (uint64_t)us * NSEC_PER_USEC;
}

static int open_descriptors(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	int rc;

	p->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->kick_fd < 0)
		return -errno;
	rc = doorbells_add_control(&p->doorbells, p->kick_fd) ?:
	     doorbells_add_end(&p->doorbells, ctx->sock) ?:
	     doorbells_add_control(&p->doorbells, p->lanes_fd);
	if (rc)
		close(p->kick_fd);
	return rc;
}

int progress_start(struct soft_context *ctx)
{
	struct soft_progress *p = &ctx->progress;
	int rc = open_descriptors(ctx);

	if (rc)
		return rc;
	p->spin_ns = spin_time();
	pthread_mutex_init(&p->lock, NULL);
	prog_init(&p->machine, p->spin_ns, progress_now(NULL));
	rc = threads_start(&p->thread, "softib", 0, run, ctx);
	if (rc) {
		close(p->kick_fd);
		return rc;
	}
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
		close(p->kick_fd);
	}
	p->running = false;
}
