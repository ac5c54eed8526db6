/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The runtime on libev. One turn: work, timers, pollers; then libev waits
 * for descriptors, not at all when a poller or the work queue is busy, nor shortly after a
 * descriptor had something (linger.h).
 *
 * A packet takes several pieces of work, each queued by the one before: the sender's adapter, the
 * receiver's, the completion handler. To ask the kernel for descriptors between them would cost as
 * much as the work itself, and bring more packets before those that are here have been delivered. So
 * a turn runs what work has queued, up to WORK_ROUNDS times and RT_WORK_PER_TURN pieces in all. Who
 * has much to do does it in pieces, one in a round, so that others have their turn: after ROUNDS_SURE
 * the next round begins only within WORK_NS.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "runtime/posix/linger.h"
#include "runtime/posix/rt_posix.h"
#include "runtime/rt_private.h"

#define WORK_ROUNDS 16
#define ROUNDS_SURE 4
#define WORK_NS	    (500 * NSEC_PER_USEC)
#define RANDOM_WORDS 64 /* fetched at once; the kernel gives up to 256 bytes without an interruption */

struct rt_posix {
	struct rt rt;
	struct ev_loop *loop;
	ev_io alarm; /* a timerfd bounds the sleep: libev's timers know milliseconds */
	mono_t alarm_due; /* what it is set to */
	struct linger linger;
	struct list_head ready; /* watches that have events, as the kernel had them */
	uint32_t random[RANDOM_WORDS];
	unsigned int random_left; /* the words at the front of @random were not given yet */
	bool stop;
	volatile uint64_t turns; /* read by a signal's handler */
};

static struct rt_posix *posix_of(struct rt *rt)
{
	return container_of(rt, struct rt_posix, rt);
}

static mono_t posix_now(struct rt *rt)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (mono_t){timespec_ns(&ts)};
}

static uint32_t posix_random(struct rt *rt)
{
	struct rt_posix *px = posix_of(rt);

	if (!px->random_left) {
		if (getrandom(px->random, sizeof(px->random), 0) != sizeof(px->random))
			abort(); /* cannot fail for so few bytes once the kernel is up */
		px->random_left = RANDOM_WORDS;
	}
	return px->random[--px->random_left];
}

static void on_alarm(struct ev_loop *loop, ev_io *w, int revents)
{
	uint64_t count;

	if (read(w->fd, &count, sizeof(count)) < 0) {
		/* EAGAIN: it was set anew meanwhile */
	}
}

static void posix_io_watch(struct rt_io *io, bool readable, bool writable)
{
	struct ev_loop *loop = posix_of(io->rt)->loop;
	int events = (readable ? EV_READ : 0) | (writable ? EV_WRITE : 0);

	if (ev_is_active(&io->ev) && (io->ev.events & (EV_READ | EV_WRITE)) == events)
		return; /* else libev would ask the kernel for the same again */
	list_del_init(&io->node);
	ev_io_stop(loop, &io->ev);
	if (!events)
		return;
	ev_io_set(&io->ev, io->ev.fd, events);
	ev_io_start(loop, &io->ev);
}

int rt_posix_create(struct rt **rt)
{
	struct rt_posix *px = rt_zalloc(sizeof(*px));
	int alarm_fd;

	if (!px)
		return -ENOMEM;
	rt_init(&px->rt);
	px->rt.now = posix_now;
	px->rt.random = posix_random;
	px->rt.io_watch = posix_io_watch;
	INIT_LIST_HEAD(&px->ready);
	px->loop = ev_loop_new(EVFLAG_AUTO);
	alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (!px->loop || alarm_fd < 0) {
		if (px->loop)
			ev_loop_destroy(px->loop);
		if (alarm_fd >= 0)
			close(alarm_fd);
		rt_free(px);
		return -ENOSYS;
	}
	ev_io_init(&px->alarm, on_alarm, alarm_fd, EV_READ);
	ev_io_start(px->loop, &px->alarm);
	*rt = &px->rt;
	return 0;
}

void rt_posix_destroy(struct rt *rt)
{
	struct rt_posix *px = posix_of(rt);

	close(px->alarm.fd);
	ev_loop_destroy(px->loop);
	rt_free(px);
}

static bool prepare_all(struct rt_posix *px)
{
	struct rt_poller *p;
	bool busy = false;

	list_for_each_entry(p, &px->rt.pollers, node)
		busy |= p->prepare(p);
	return busy;
}

static void awake_all(struct rt_posix *px)
{
	struct rt_poller *p;

	list_for_each_entry(p, &px->rt.pollers, node)
		p->awake(p);
}

/* Let it ring when the next timer is due. An alarm that rings earlier stays as it is: timers
 * move with every message, and one wake-up for nothing costs less than to set it each time.
 * Return: false when that is now */
static bool arm_alarm(struct rt_posix *px)
{
	mono_t due = rt_next_expiry(&px->rt), now = posix_now(&px->rt);
	struct itimerspec when = {0};

	if (due.ns <= now.ns)
		return false;
	if (now.ns < px->alarm_due.ns && px->alarm_due.ns <= due.ns)
		return true;
	px->alarm_due = due; /* what it was set to is over, or too late */
	if (due.ns == MONO_NEVER.ns)
		return true;
	when.it_value.tv_sec = (time_t)(due.ns / NSEC_PER_SEC);
	when.it_value.tv_nsec = (long)(due.ns % NSEC_PER_SEC);
	timerfd_settime(px->alarm.fd, TFD_TIMER_ABSTIME, &when, NULL);
	return true;
}

/* Between two rounds each poller looks, or it would see the packets of many rounds at once.
 * Return: something was done */
static bool run_rounds(struct rt_posix *px, unsigned int most)
{
	unsigned int left = RT_WORK_PER_TURN, rounds = 0, n;
	mono_t end = MONO_NEVER;

	do {
		if (rounds)
			rt_poll_all(&px->rt);
		n = rt_run_work(&px->rt, left);
		left -= n;
		if (++rounds == 1 && n)
			end = mono_add(posix_now(&px->rt), WORK_NS);
	} while (n && rounds < most &&
		 (rounds < ROUNDS_SURE || mono_before(posix_now(&px->rt), end)));
	return left < RT_WORK_PER_TURN;
}

static bool lingers(struct rt_posix *px)
{
	const mono_t now = posix_now(&px->rt);

	if (!linger_goes_on(&px->linger, now))
		return false;
	sched_yield();
	linger_yielded(&px->linger, now, posix_now(&px->rt));
	return true;
}

/* libev calls the watchers that have events in the reverse order of the kernel's. So each puts itself in
 * front of the list, which then has that of the kernel. */
static void io_event(struct ev_loop *loop, ev_io *w, int revents)
{
	struct rt_io *io = container_of(w, struct rt_io, ev);

	io->events = revents;
	list_del_init(&io->node);
	list_add(&io->node, &posix_of(io->rt)->ready);
}

static void look(struct rt_posix *px, int how)
{
	ev_run(px->loop, how);
	while (!list_empty(&px->ready)) {
		struct rt_io *io = list_first_entry(&px->ready, struct rt_io, node);

		list_del_init(&io->node);
		linger_event(&px->linger, posix_now(&px->rt));
		io->fn(io, io->events & EV_READ, io->events & EV_WRITE);
	}
}

static void turn(struct rt_posix *px, bool may_sleep)
{
	bool busy;

	px->turns++;
	busy = run_rounds(px, may_sleep ? WORK_ROUNDS : 1);
	rt_fire_timers(&px->rt, posix_now(&px->rt));
	busy |= rt_poll_all(&px->rt);
	rt_rest_idle(&px->rt);
	busy |= !list_empty(&px->rt.work) || px->stop || !may_sleep;
	if (!busy && !lingers(px) && !prepare_all(px) && arm_alarm(px)) {
		look(px, EVRUN_ONCE);
		awake_all(px);
		return;
	}
	awake_all(px);
	look(px, EVRUN_NOWAIT);
}

void rt_posix_run(struct rt *rt)
{
	struct rt_posix *px = posix_of(rt);

	px->stop = false;
	while (!px->stop)
		turn(px, true);
}

void rt_posix_stop(struct rt *rt)
{
	posix_of(rt)->stop = true;
}

void rt_posix_turn(struct rt *rt)
{
	turn(posix_of(rt), false);
}

uint64_t rt_posix_turns(const struct rt *rt)
{
	return container_of(rt, struct rt_posix, rt)->turns;
}

struct ev_loop *rt_posix_loop(struct rt *rt)
{
	return posix_of(rt)->loop;
}

void rt_io_init(struct rt *rt, struct rt_io *io, int fd,
		void (*fn)(struct rt_io *io, bool readable, bool writable))
{
	ev_io_init(&io->ev, io_event, fd, 0);
	io->fn = fn;
	io->rt = rt;
	INIT_LIST_HEAD(&io->node);
}
