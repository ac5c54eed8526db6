/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An event waiter: a thread of the program in ibv_get_cq_event(). When it is the
 * only one it runs the engine itself, as the driver (src/progress): then the
 * message that it waits for wakes it and not the progress thread, which would
 * have to wake it in turn. When several threads wait, the progress thread runs the
 * engine and each of them sleeps on its channel's descriptor.
 *
 * A driver first spins (progress.spin_ns), since an answer is often near; then it
 * sleeps on the doorbells. Its own doorbell rings too when somebody else
 * raises an event of its channel: a program's thread that polls, or the progress
 * thread when softibd dies.
 *
 * A waiting thread may be cancelled (ibv_get_cq_event() is a cancellation
 * point, being a read() where there is hardware), but not while it holds the
 * engine's lock: cancellation is off but while it sleeps.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "soft.h"

#define TURNS_PER_CLOCK 16
#define SIGNALS 64

/** struct wait - one call that waits */
struct wait {
	struct soft_context *ctx;
	struct soft_channel *channel;
	unsigned role;	    /* PROG_DRIVE, PROG_DRIVE_SOON, PROG_WAIT; 0: in a forked child */
	bool armed;	    /* its sleep on the doorbells is armed */
	bool assumes_block; /* the last look at the descriptor found no O_NONBLOCK */
	bool over;	    /* ... and that look is too old to rely on */
	int cancel_state;
};

static bool drives(const struct wait *w)
{
	return w->role & (PROG_DRIVE | PROG_DRIVE_SOON);
}

static void disarm(struct wait *w)
{
	if (w->armed)
		progress_disarm_sleep(w->ctx);
	w->armed = false;
}

static void enter(struct wait *w)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &w->cancel_state);
	if (w->ctx->forked)
		return;
	w->role = progress_report(w->ctx, PROG_ENTER);
	if (drives(w))
		channel_state_awake(&w->channel->state);
}

/* This also runs when the thread is cancelled. */
static void leave(void *arg)
{
	struct wait *w = arg;

	if (w->armed) /* after a cancellation it is not known which doorbells rang */
		atomic_store(&w->ctx->progress.control_unread, true);
	disarm(w);
	if (!w->role)
		return;
	if (drives(w))
		channel_driver_leaves(w->channel);
	/* another thread may become the driver from here on */
	progress_report(w->ctx, drives(w) ? PROG_DRIVER_LEAVE : PROG_OTHER_LEAVE);
}

/* Until a doorbell rings, or of @fd: until somebody else raises an event of the
 * channel. Return: 0; -1 and errno: EINTR */
static int sleep_cancellable(struct wait *w, struct pollfd *fd, int timeout_ms)
{
	struct soft_progress *p = &w->ctx->progress;
	int rc;

	pthread_cleanup_push(leave, w);
	pthread_setcancelstate(w->cancel_state, NULL);
	rc = fd ? poll(fd, 1, timeout_ms) : doorbells_wait(&p->doorbells, timeout_ms);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	if (!fd && rc > 0 && rc & DOORBELL_CONTROL)
		atomic_store(&p->control_unread, true);
	w->over = w->assumes_block && (fd || (rc > 0 && rc & DOORBELL_ALARM));
	return rc < 0 ? -1 : 0;
}

static int sleep_on_channel(struct wait *w, int timeout_ms)
{
	struct pollfd fd = {.fd = w->channel->ibv.fd, .events = POLLIN};
	int rc;

	if (w->assumes_block)
		timeout_ms = 0;
	if (drives(w))
		channel_driver_leaves(w->channel);
	rc = sleep_cancellable(w, &fd, timeout_ms);
	if (drives(w))
		channel_state_awake(&w->channel->state);
	return rc;
}

/* Return: true when there is an event. The clock is read after each yield: others may have had
 * the core for several milliseconds, and a spin of many yields would wait for them each time. */
static bool spin_until(struct wait *w, uint64_t end_ns)
{
	struct soft_progress *p = &w->ctx->progress;

	while (progress_now(NULL).ns < end_ns) {
		for (int i = 0; i < TURNS_PER_CLOCK; i++) {
			eng_progress(w->ctx->engine);
			if (channel_state_has_event(&w->channel->state)) {
				poll_yield_found(&p->waiter_yield);
				return true;
			}
			if (poll_yield_empty(&p->waiter_yield))
				break;
		}
	}
	return false;
}

/* Return: true when there is an event */
static bool spin(struct wait *w)
{
	struct soft_progress *p = &w->ctx->progress;
	uint64_t now = progress_now(NULL).ns;
	uint64_t end = now + p->spin_ns;
	bool found;

	if (!p->spin_ns || now < atomic_load_explicit(&p->crowded_until, memory_order_relaxed))
		return false;
	found = spin_until(w, end);
	now = progress_now(NULL).ns;
	if (now > end)
		atomic_store_explicit(&p->crowded_until, now + prog_crowded_ns(now - end),
				      memory_order_relaxed);
	return found;
}

/* Return: 0: look again; -1 and errno */
static int sleep_as_driver(struct wait *w)
{
	int rc = 0;

	if (w->role == PROG_DRIVE_SOON)
		w->role = progress_report(w->ctx, PROG_RETRY) & (PROG_DRIVE | PROG_DRIVE_SOON);
	if (w->role == PROG_DRIVE_SOON) /* the thread still serves, and nothing is lost */
		return sleep_on_channel(w, PROG_HANDOVER_NS / NSEC_PER_MSEC);
	w->armed = progress_arm_sleep(w->ctx, w->assumes_block ? PROG_ASSUMED_BLOCKING_NS :
								 PROG_FOREVER);
	if (!w->armed)
		return 0;
	if (channel_state_sleeps(&w->channel->state))
		rc = sleep_cancellable(w, NULL, -1);
	channel_state_awake(&w->channel->state);
	disarm(w);
	return rc;
}

/* Let the engine do all it has to. Return: true when that was something */
static bool work(struct wait *w)
{
	bool worked = false;

	while (!channel_state_has_event(&w->channel->state) && eng_tick(w->ctx->engine))
		worked = true;
	return worked;
}

static int drive(struct wait *w)
{
	bool worked = true;
	int rc = 0;

	while (!channel_state_has_event(&w->channel->state) && !rc && !w->over) {
		if (worked && spin(w))
			break;
		/* a delayed acknowledgement is sent before the thread sleeps */
		work(w);
		rc = sleep_as_driver(w);
		worked = work(w);
	}
	return rc;
}

/* Signals that are raised by an instruction of the thread itself. A sleeping thread executes
 * none, so a handler for crashes, such as a sanitizer's, does not interrupt a wait. */
static bool is_of_an_instruction(int number)
{
	const uint64_t faults = 1ull << SIGSEGV | 1ull << SIGBUS | 1ull << SIGFPE | 1ull << SIGILL |
				1ull << SIGTRAP | 1ull << SIGSYS;

	return number < SIGNALS && faults >> number & 1;
}

/* Would the kernel have restarted a read()? It is not known which signal arrived, so the answer
 * is yes only if every handler of the program has SA_RESTART. */
static bool restarts(void)
{
	struct sigaction sa;

	for (int i = 1; i <= SIGNALS; i++)
		if (!is_of_an_instruction(i) && !sigaction(i, NULL, &sa) && sa.sa_handler != SIG_DFL &&
		    sa.sa_handler != SIG_IGN && !(sa.sa_flags & SA_RESTART))
			return false;
	return true;
}

/**
 * event_waiter_wait() - take the next event of @channel, which has none
 * @blocks: the descriptor has no O_NONBLOCK, now; else it had none a while ago, and
 *          the thread sleeps no longer than PROG_ASSUMED_BLOCKING_NS
 * Context: sleeps; a cancellation point.
 * Return: its CQ; NULL and errno: 0 look again, also for O_NONBLOCK, or EINTR
 */
struct soft_cq *event_waiter_wait(struct soft_channel *channel, bool blocks)
{
	struct wait w = {.ctx = to_context(channel->ibv.context), .channel = channel,
			 .assumes_block = !blocks};
	struct soft_cq *cq;
	int rc, error;

	enter(&w);
	rc = drives(&w) ? drive(&w) : sleep_on_channel(&w, -1);
	error = rc && !(errno == EINTR && restarts()) ? errno : 0;
	cq = channel_take(channel);
	leave(&w);
	pthread_setcancelstate(w.cancel_state, NULL);
	errno = error;
	return cq;
}
