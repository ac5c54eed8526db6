/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A guest: a thread of the program that waits in ibv_get_cq_event() and
 * meanwhile serves the engine itself, so that the message it waits for wakes
 * it and not the engine's thread, which would have to wake it in turn.
 *
 * It first spins (progress.spin_ns), since an answer is often near; then it
 * sleeps on the bells (bells.c), which are rung too when somebody else raises
 * an event of its channel: a program's thread that polls, the engine's thread
 * when softibd dies.
 *
 * There is one guest at a time, and only when no other thread waits: several
 * waiters would hand the engine from one to the next at each event. Then the
 * engine's thread serves all of them, as it serves programs that wait in
 * their own poll(). A guest that comes has the thread step aside, and one
 * that goes leaves it on its watch (progress.c).
 *
 * A waiting thread may be cancelled (ibv_get_cq_event() is a cancellation
 * point, being a read() where there is hardware), but not while it holds the
 * engine's lock: cancellation is off but while it sleeps.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "soft.h"

#define ROLE_RETRY_MS 1 /* the thread has not stepped aside yet */
#define DOUBT_NS NSEC_PER_MSEC /* may the caller sleep? Longer only when it is sure */
#define TURNS_PER_CLOCK 16
#define SIGNALS 64

struct visit {
	struct soft_context *ctx;
	struct soft_channel *channel;
	bool guest;  /* else one of several that wait */
	bool server; /* sleeps on the bells */
	bool doubt;  /* whether the descriptor blocks */
	bool over;   /* so it is time to look */
	int cancel_state;
};

static void get_up(struct visit *v)
{
	if (v->server)
		progress_get_up(v->ctx);
	v->server = false;
}

/* the thread looks whether it changes; guests that come and go at once may count
 * as one */
static void note_visit(struct soft_progress *p)
{
	uint32_t n = atomic_load_explicit(&p->visits, memory_order_relaxed);

	atomic_store_explicit(&p->visits, n + 1, memory_order_relaxed);
}

static void come(struct visit *v)
{
	struct soft_progress *p = &v->ctx->progress;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &v->cancel_state);
	v->guest = atomic_fetch_add(&p->inside, 1) == 0;
	if (!v->guest)
		return;
	note_visit(p);
	atomic_store(&p->guest, true);
	if (atomic_load(&p->server) == SERVER_THREAD)
		progress_kick(v->ctx);
	channel_attend(v->channel);
}

/* also when the thread is cancelled */
static void leave(void *arg)
{
	struct visit *v = arg;
	struct soft_progress *p = &v->ctx->progress;
	bool others;

	if (v->server) /* cancelled: it may have heard anything */
		atomic_store(&p->unheard, true);
	get_up(v);
	if (v->guest) {
		channel_leave(v->channel);
		note_visit(p);
		atomic_store(&p->guest, false);
	}
	/* the next guest may come now */
	others = atomic_fetch_sub(&p->inside, 1) > 1;
	if (v->guest && (others || (atomic_load(&p->quiet) && atomic_exchange(&p->quiet, false))))
		progress_kick(v->ctx);
}

/* Until the bells ring or, of @fd, somebody else raises an event of the
 * channel. Return: 0; -1 and errno: EINTR */
static int sleep_cancellable(struct visit *v, struct pollfd *fd, int timeout_ms)
{
	struct soft_progress *p = &v->ctx->progress;
	int rc;

	pthread_cleanup_push(leave, v);
	pthread_setcancelstate(v->cancel_state, NULL);
	rc = fd ? poll(fd, 1, timeout_ms) : bells_wait(&p->bells, timeout_ms);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cleanup_pop(0);
	if (!fd && rc > 0 && rc & BELL_CONTROL) /* the thread's: it rings once only */
		atomic_store(&p->unheard, true);
	v->over = v->doubt && (fd || (rc > 0 && rc & BELL_ALARM));
	return rc < 0 ? -1 : 0;
}

static int wait_for_others(struct visit *v, int timeout_ms)
{
	struct pollfd fd = {.fd = v->channel->ibv.fd, .events = POLLIN};
	int rc;

	if (v->doubt)
		timeout_ms = 0;
	if (v->guest)
		channel_leave(v->channel);
	rc = sleep_cancellable(v, &fd, timeout_ms);
	if (v->guest)
		channel_attend(v->channel);
	return rc;
}

/* Return: true when there is an event */
static bool spin(struct visit *v)
{
	struct soft_progress *p = &v->ctx->progress;
	uint64_t end;

	if (!p->spin_ns)
		return false;
	end = progress_now(NULL).ns + p->spin_ns;
	while (progress_now(NULL).ns < end) {
		for (int i = 0; i < TURNS_PER_CLOCK; i++) {
			eng_progress(v->ctx->engine);
			if (channel_has_event(v->channel)) {
				patience_found(&p->patience);
				return true;
			}
			patience_empty(&p->patience);
		}
	}
	return false;
}

/* Return: 0: look again; -1 and errno */
static int sleep_as_server(struct visit *v)
{
	int rc = 0;

	switch (progress_lie_down(v->ctx, SERVER_GUEST, v->doubt ? DOUBT_NS : UINT64_MAX)) {
	case -EBUSY: /* the thread still serves, and nothing is lost meanwhile */
		progress_kick(v->ctx);
		return wait_for_others(v, ROLE_RETRY_MS);
	case -EAGAIN:
		return 0;
	}
	v->server = true;
	if (channel_sleep(v->channel))
		rc = sleep_cancellable(v, NULL, -1);
	channel_attend(v->channel);
	get_up(v);
	return rc;
}

/* Let the engine do all it has to. Return: true when that was something */
static bool work(struct visit *v)
{
	bool worked = false;

	while (!channel_has_event(v->channel) && eng_tick(v->ctx->engine))
		worked = true;
	return worked;
}

static int serve(struct visit *v)
{
	bool worked = true;
	int rc = 0;

	while (!channel_has_event(v->channel) && !rc && !v->over) {
		if (worked && spin(v))
			break;
		/* an acknowledgement that waits for company goes before we sleep */
		work(v);
		rc = sleep_as_server(v);
		worked = work(v);
	}
	return rc;
}

/* A thread's own instruction raises these, and a thread that sleeps executes
 * none: whoever catches crashes, a sanitizer say, does not interrupt a wait. */
static bool is_of_an_instruction(int number)
{
	const uint64_t faults = 1ull << SIGSEGV | 1ull << SIGBUS | 1ull << SIGFPE | 1ull << SIGILL |
				1ull << SIGTRAP | 1ull << SIGSYS;

	return number < SIGNALS && faults >> number & 1;
}

/* Would the kernel have started a read() again? Nobody tells which signal
 * it was: yes, when every handler of the program says SA_RESTART. */
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
 * guest_wait() - take the next event of @channel, which has none
 * @blocks: the descriptor has no O_NONBLOCK, now; else it had none a while ago, and
 *          nobody sleeps for longer than a millisecond
 * Context: sleeps; a cancellation point.
 * Return: its CQ; NULL and errno: 0 look again, also for O_NONBLOCK, or EINTR
 */
struct soft_cq *guest_wait(struct soft_channel *channel, bool blocks)
{
	struct visit v = {.ctx = to_context(channel->ibv.context), .channel = channel,
			  .doubt = !blocks};
	struct soft_cq *cq;
	int rc, error;

	come(&v);
	rc = v.guest && !v.ctx->forked ? serve(&v) : wait_for_others(&v, -1);
	error = rc && !(errno == EINTR && restarts()) ? errno : 0;
	cq = channel_take(channel);
	leave(&v);
	pthread_setcancelstate(v.cancel_state, NULL);
	errno = error;
	return cq;
}
