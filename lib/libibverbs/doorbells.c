/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * All descriptors are in the epoll instance as edge-triggered: each ring is reported once, and no
 * descriptor has to be read before it can be reported again. That saves a system call for each sleep,
 * and the library need not keep a descriptor of a lane's doorbell.
 *
 * The alarm is lazy. The timers of queue pairs move with every message, and to
 * set the alarm each time would cost more than the sleep. So an alarm that
 * rings earlier than needed stays as it is, at the cost of one wake-up for nothing.
 */
#include "doorbells.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define AT_ONCE 32 /* doorbells reported by one call; others wait for the next */

static int add(struct doorbells *d, int fd, uint32_t events, enum doorbell which)
{
	struct epoll_event event = {.events = events, .data.u32 = which};

	return epoll_ctl(d->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int doorbells_open(struct doorbells *d, int softibd_fd)
{
	int rc = -EMFILE;

	d->alarm = MONO_NEVER;
	d->softibd_fd = softibd_fd;
	d->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	d->alarm_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (d->epoll_fd >= 0 && d->own_fd >= 0 && d->alarm_fd >= 0)
		rc = add(d, d->own_fd, EPOLLIN | EPOLLET, DOORBELL_OWN) ?:
		     add(d, d->alarm_fd, EPOLLIN | EPOLLET, DOORBELL_ALARM) ?:
		     add(d, softibd_fd, EPOLLIN | EPOLLET, DOORBELL_SOFTIBD);
	if (!rc)
		return 0;
	d->softibd_fd = -1;
	doorbells_close(d);
	return rc;
}

void doorbells_close(struct doorbells *d)
{
	int fds[] = {d->epoll_fd, d->own_fd, d->alarm_fd, d->softibd_fd};

	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int doorbells_add_lane(struct doorbells *d, int fd)
{
	return add(d, fd, EPOLLIN | EPOLLET, DOORBELL_LANE);
}

int doorbells_add_control(struct doorbells *d, int fd)
{
	return add(d, fd, EPOLLIN | EPOLLRDHUP | EPOLLET, DOORBELL_CONTROL);
}

int doorbells_add_end(struct doorbells *d, int fd)
{
	return add(d, fd, EPOLLRDHUP | EPOLLET, DOORBELL_CONTROL);
}

void doorbells_ring(struct doorbells *d)
{
	uint64_t one = 1;

	while (syscall(SYS_write, d->own_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void doorbells_set_alarm(struct doorbells *d, mono_t now, mono_t by)
{
	struct itimerspec at = {.it_value = {(time_t)(by.ns / NSEC_PER_SEC),
					     (long)(by.ns % NSEC_PER_SEC)}};

	/* the alarm's time has passed, so it has expired */
	if (mono_before(now, d->alarm) && !mono_before(by, d->alarm))
		return;
	d->alarm = by;
	if (by.ns != MONO_NEVER.ns)
		timerfd_settime(d->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* softibd stops ringing only if its pipe is full */
static void empty_pipe(const struct doorbells *d)
{
	char rings[4096];

	while (syscall(SYS_read, d->softibd_fd, rings, sizeof(rings)) < 0 && errno == EINTR)
		;
}

int doorbells_wait(struct doorbells *d, int timeout_ms)
{
	struct epoll_event event[AT_ONCE];
	int n = epoll_wait(d->epoll_fd, event, AT_ONCE, timeout_ms), rang = 0;

	for (int i = 0; i < n; i++)
		rang |= (int)event[i].data.u32;
	if (n > 0 && rang & DOORBELL_SOFTIBD)
		empty_pipe(d);
	return n < 0 ? -1 : rang;
}
