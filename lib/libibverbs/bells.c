/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Everything is edge-triggered: a ring is told once, and no descriptor is read
 * to be silent again. That spares a call for each sleep, and nobody needs a
 * descriptor of a lane's bell to hear it.
 *
 * The alarm is lazy. Timers of queue pairs move on with every message, and an
 * alarm set anew each time would cost more than the sleep: it stays where it
 * is when it rings too early, which costs one look at nothing.
 */
#include "bells.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define AT_ONCE 32 /* bells told by one call; others wait for the next */

static int add(struct bells *b, int fd, uint32_t events, enum bell bell)
{
	struct epoll_event event = {.events = events, .data.u32 = bell};

	return epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int bells_open(struct bells *b, int softibd_fd)
{
	int rc = -EMFILE;

	b->alarm = MONO_NEVER;
	b->softibd_fd = softibd_fd;
	b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	b->own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->epoll_fd >= 0 && b->own_fd >= 0 && b->alarm_fd >= 0)
		rc = add(b, b->own_fd, EPOLLIN | EPOLLET, BELL_OWN) ?:
		     add(b, b->alarm_fd, EPOLLIN | EPOLLET, BELL_ALARM) ?:
		     add(b, softibd_fd, EPOLLIN | EPOLLET, BELL_SOFTIBD);
	if (!rc)
		return 0;
	b->softibd_fd = -1;
	bells_close(b);
	return rc;
}

void bells_close(struct bells *b)
{
	int fds[] = {b->epoll_fd, b->own_fd, b->alarm_fd, b->softibd_fd};

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int bells_add_lane(struct bells *b, int fd)
{
	return add(b, fd, EPOLLIN | EPOLLET, BELL_LANE);
}

int bells_add_control(struct bells *b, int fd)
{
	return add(b, fd, EPOLLIN | EPOLLRDHUP | EPOLLET, BELL_CONTROL);
}

void bells_ring(struct bells *b)
{
	uint64_t one = 1;

	while (syscall(SYS_write, b->own_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void bells_set_alarm(struct bells *b, mono_t now, mono_t by)
{
	struct itimerspec at = {.it_value = {(time_t)(by.ns / NSEC_PER_SEC),
					     (long)(by.ns % NSEC_PER_SEC)}};

	/* one that is over has rung */
	if (mono_before(now, b->alarm) && !mono_before(by, b->alarm))
		return;
	b->alarm = by;
	if (by.ns != MONO_NEVER.ns)
		timerfd_settime(b->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* softibd stops ringing when its pipe is full */
static void empty_pipe(const struct bells *b)
{
	char rings[4096];

	while (syscall(SYS_read, b->softibd_fd, rings, sizeof(rings)) < 0 && errno == EINTR)
		;
}

int bells_wait(struct bells *b, int timeout_ms)
{
	struct epoll_event event[AT_ONCE];
	int n = epoll_wait(b->epoll_fd, event, AT_ONCE, timeout_ms), rang = 0;

	for (int i = 0; i < n; i++)
		rang |= (int)event[i].data.u32;
	if (n > 0 && rang & BELL_SOFTIBD)
		empty_pipe(b);
	return n < 0 ? -1 : rang;
}
