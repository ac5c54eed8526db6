/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * select() and poll() of connections whose ring may have bytes, which the kernel does not know of, and
 * the parts of it that epoll.c needs, too. While a thread waits in the kernel, `readers_in_kernel` makes
 * writers use the socket, so that the kernel wakes the thread. A program that waits in another way does
 * not notice bytes in the ring; then softibd ends the lease, and the bytes arrive by the socket.
 * Therefore these functions affect only the speed.
 */
#include <poll.h>
#include <sched.h>
#include <sys/select.h>
#include <time.h>

#include "base/relax.h"
#include "sdp_private.h"

#define EXPORT __attribute__((visibility("default")))
#define SPINS  2000 /* iterations of polling before a thread waits in the kernel: some 50 us */

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);
void __chk_fail(void) __attribute__((noreturn));

bool sdp_watch_add(struct sdp_watches *w, const struct sdp_watch *one)
{
	struct sdp_memory *m = w->num < SDP_WATCHES_MAX ? sdp_memory_enter(one->fd) : NULL;

	if (!m)
		return false;
	if (!atomic_load_explicit(&m->reads_much, memory_order_relaxed)) {
		sdp_memory_leave(one->fd);
		return false;
	}
	w->of[w->num] = *one;
	w->of[w->num].memory = m;
	w->of[w->num++].half = &m->memory->half[!m->side];
	return true;
}

void sdp_watch_want(const struct sdp_watch *w)
{
	atomic_store_explicit(&w->half->reads_much, 1, memory_order_relaxed);
}

static void add(struct sdp_watches *w, int fd, nfds_t index)
{
	if (!sdp_watch_add(w, &(struct sdp_watch){.fd = fd, .index = index}))
		return;
	if (sdp_memory_is_of(w->of[w->num - 1].memory, fd)) {
		sdp_watch_want(&w->of[w->num - 1]);
		return;
	}
	w->num--;
	sdp_memory_leave(fd);
}

bool sdp_watch_has_news(const struct sdp_watch *w)
{
	const uint64_t used = abi_sdp_used(w->half);

	return abi_sdp_is_lease(atomic_load(&w->half->lease)) && used && used <= ABI_SDP_RING_BYTES &&
	       !(w->has_seen && atomic_load(&w->half->tail) == w->seen);
}

static bool any_has_news(const struct sdp_watches *w)
{
	for (unsigned int i = 0; i < w->num; i++)
		if (sdp_watch_has_news(&w->of[i]))
			return true;
	return false;
}

/* Has a connection a lease, so that bytes may arrive in its ring? */
bool sdp_watches_are_leased(const struct sdp_watches *w)
{
	for (unsigned int i = 0; i < w->num; i++)
		if (abi_sdp_is_lease(atomic_load(&w->of[i].half->lease)) ||
		    atomic_load(&w->of[i].half->hold))
			return true;
	return false;
}

static bool any_is_written(const struct sdp_watches *w)
{
	for (unsigned int i = 0; i < w->num; i++)
		if (atomic_load(&w->of[i].half->writer))
			return true;
	return false;
}

static void enter_kernel(const struct sdp_watches *w, int change)
{
	for (unsigned int i = 0; i < w->num; i++)
		atomic_fetch_add(&w->of[i].half->readers_in_kernel, (uint32_t)change);
}

bool sdp_watches_begin(const struct sdp_watches *w, bool waits)
{
	for (int i = 0; i < SPINS && waits && sdp_watches_are_leased(w) && !any_has_news(w); i++)
		cpu_relax();
	if (any_has_news(w) || !waits)
		return any_has_news(w);
	enter_kernel(w, 1);
	/* A writer that read the count before it was incremented may still publish bytes in the ring. */
	for (int i = 0; i < SPINS && any_is_written(w) && !any_has_news(w); i++)
		sched_yield();
	if (!any_has_news(w))
		return false;
	enter_kernel(w, -1);
	return true;
}

void sdp_watches_end(const struct sdp_watches *w, bool waited)
{
	if (waited)
		enter_kernel(w, -1);
	for (unsigned int i = 0; i < w->num; i++)
		sdp_memory_leave(w->of[i].fd);
}

/* --- poll --- */

/* Add the events of rings to those of ppoll(2). Return: as ppoll(2) */
static int add_rings_to_poll(const struct sdp_watches *w, struct pollfd *fds, int n)
{
	for (unsigned int i = 0; n >= 0 && i < w->num; i++) {
		struct pollfd *p = &fds[w->of[i].index];

		if (!sdp_watch_has_news(&w->of[i]))
			continue;
		n += !p->revents;
		p->revents |= (short)(p->events & (POLLIN | POLLRDNORM));
	}
	return n;
}

/* A connection that was reset has an error, which the kernel's poll() of a Unix socket does not know. */
static void add_errors_to_poll(struct pollfd *fds, nfds_t num_fds, int n)
{
	for (nfds_t i = 0; n > 0 && i < num_fds; i++)
		if (fds[i].revents & POLLHUP && sdp_memory_has_error(fds[i].fd))
			fds[i].revents |= POLLERR;
}

/* @again: set if a ring had bytes, so that the kernel was not waited for, but softibd or another thread has taken
 * them: whoever may wait must not be told that its time is over */
static int poll_once(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		     const sigset_t *mask, bool *again)
{
	static const struct timespec zero;
	struct sdp_watches w = {.num = 0};
	bool ready, waits = !timeout || timeout->tv_sec || timeout->tv_nsec;
	int ret;

	for (nfds_t i = 0; i < n; i++) {
		if (!(fds[i].events & (POLLIN | POLLRDNORM)))
			continue;
		add(&w, fds[i].fd, i);
		sdp_epoll_is_polled(fds[i].fd);
	}
	ready = w.num && sdp_watches_begin(&w, waits);
	ret = sdp_libc.ppoll(fds, n, ready ? &zero : timeout, mask);
	ret = add_rings_to_poll(&w, fds, ret);
	add_errors_to_poll(fds, n, ret);
	sdp_watches_end(&w, w.num && waits && !ready);
	*again = ready && waits && !ret;
	return ret;
}

static int poll_with_rings(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
			   const sigset_t *mask)
{
	bool again;
	int ret;

	do
		ret = poll_once(fds, n, timeout, mask, &again);
	while (again);
	return ret;
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	return sdp_begin() && fds ? poll_with_rings(fds, n, timeout, mask) :
				    sdp_libc.ppoll(fds, n, timeout, mask);
}

EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	const struct timespec ts = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};

	return sdp_begin() && fds ? poll_with_rings(fds, n, timeout < 0 ? NULL : &ts, NULL) :
				    sdp_libc.poll(fds, n, timeout);
}

/* --- select --- */

static int add_rings_to_select(const struct sdp_watches *w, fd_set *reads, int n)
{
	for (unsigned int i = 0; n >= 0 && i < w->num; i++) {
		if (!sdp_watch_has_news(&w->of[i]) || FD_ISSET(w->of[i].fd, reads))
			continue;
		FD_SET(w->of[i].fd, reads);
		n++;
	}
	return n;
}

/* @again: as of poll_once() */
static int select_once(int n, fd_set *sets[3], struct timeval *timeout, bool *again)
{
	struct timeval zero = {0};
	struct sdp_watches w = {.num = 0};
	bool ready, waits = !timeout || timeout->tv_sec || timeout->tv_usec;
	int ret;

	for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++)
		if (FD_ISSET(fd, sets[0])) {
			add(&w, fd, 0);
			sdp_epoll_is_polled(fd);
		}
	ready = w.num && sdp_watches_begin(&w, waits);
	ret = sdp_libc.select(n, sets[0], sets[1], sets[2], ready ? &zero : timeout);
	ret = add_rings_to_select(&w, sets[0], ret);
	sdp_watches_end(&w, w.num && waits && !ready);
	*again = ready && waits && !ret;
	return ret;
}

/* The kernel clears the sets when it finds nothing. A program with larger ones than it may have is not helped. */
static int select_with_rings(int n, fd_set *sets[3], struct timeval *timeout)
{
	fd_set asked[3];
	bool again;
	int ret;

	for (int i = 0; i < 3 && n <= FD_SETSIZE; i++)
		if (sets[i])
			asked[i] = *sets[i];
	while (true) {
		ret = select_once(n, sets, timeout, &again);
		if (!again || n > FD_SETSIZE)
			return ret;
		for (int i = 0; i < 3; i++)
			if (sets[i])
				*sets[i] = asked[i];
	}
}

EXPORT int select(int n, fd_set *reads, fd_set *writes, fd_set *excepts, struct timeval *timeout)
{
	return sdp_begin() && reads ?
		       select_with_rings(n, (fd_set *[]){reads, writes, excepts}, timeout) :
		       sdp_libc.select(n, reads, writes, excepts, timeout);
}

/* --- the functions that _FORTIFY_SOURCE calls in their place --- */

EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	if (room / sizeof(*fds) < n)
		__chk_fail();
	return poll(fds, n, timeout);
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *mask, size_t room)
{
	if (room / sizeof(*fds) < n)
		__chk_fail();
	return ppoll(fds, n, timeout, mask);
}
