/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Closer threads: one more than are busy, up to CLOSERS_MAX; the first begins with
 * the first descriptor. What they have not come to waits in a list.
 */
#include "runtime/posix/closer.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/passed_fds.h"
#include "base/types.h"

#define CLOSERS_MAX   8
#define SCARCE_NS     1000000u
#define STACK_BYTES   ((size_t)PTHREAD_STACK_MIN + 65536)
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	/* --- protected by lock --- */
	int *fd; /* the last is closed first */
	size_t num, room;
	unsigned threads, busy;
	bool on;
} closer = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

/* Whoever holds the file as well may set SO_LINGER again, but then ours is not the
 * last close, and waits for nothing. */
static void close_now(int fd)
{
	const struct linger none = {.l_onoff = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

static void *run(void *arg)
{
	pthread_mutex_lock(&closer.lock);
	for (;;) {
		int fd;

		while (!closer.num)
			pthread_cond_wait(&closer.more, &closer.lock);
		fd = closer.fd[--closer.num];
		closer.busy++;
		pthread_mutex_unlock(&closer.lock);
		close_now(fd);
		pthread_mutex_lock(&closer.lock);
		closer.busy--;
	}
	return NULL;
}

/* signals are for the thread that began us */
static bool begin_thread(void)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	bool begun;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	begun = !pthread_create(&thread, &attr, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return begun;
}

static bool make_room(void)
{
	size_t room = closer.room ? 2 * closer.room : 64;
	int *fd;

	if (closer.num < closer.room)
		return true;
	fd = realloc(closer.fd, room * sizeof(*fd));
	if (!fd)
		return false;
	closer.fd = fd;
	closer.room = room;
	return true;
}

/* Return: false when there is nobody who would close it */
static bool hand_over(int fd)
{
	bool taken;

	pthread_mutex_lock(&closer.lock);
	if (closer.on && closer.busy == closer.threads && closer.threads < CLOSERS_MAX && begin_thread())
		closer.threads++;
	taken = closer.threads && make_room();
	if (taken) {
		closer.fd[closer.num++] = fd;
		pthread_cond_signal(&closer.more);
	}
	pthread_mutex_unlock(&closer.lock);
	return taken;
}

void rt_closer_begin(void)
{
	pthread_mutex_lock(&closer.lock);
	closer.on = true;
	pthread_mutex_unlock(&closer.lock);
}

void rt_close_foreign(int fd)
{
	if (fd >= 0 && !hand_over(fd))
		close_now(fd);
}

void rt_close_foreign_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		rt_close_foreign(fds[i]);
		fds[i] = -1;
	}
}

void rt_refuse_fds(int sock)
{
	const int off = 0;

	setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

/* Is half of the numbers for descriptors used? It is looked up at most once in SCARCE_NS, because that takes
 * three system calls; nobody can make softibd use up the other half meanwhile. Context: one thread. */
static bool numbers_are_scarce(void)
{
	static uint64_t looked_ns;
	static bool scarce;
	struct timespec t;
	struct rlimit limit;
	uint64_t now;
	int lowest;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
	if (looked_ns && now - looked_ns < SCARCE_NS)
		return scarce;
	looked_ns = now;
	lowest = eventfd(0, EFD_CLOEXEC); /* gets the lowest number that is free */
	scarce = lowest < 0 || getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)lowest >= limit.rlim_cur / 2;
	if (lowest >= 0)
		close(lowest);
	return scarce;
}

/* The kernel closes what it has no number for, in this thread. */
static ssize_t receive_with_numbers(int sock, struct msghdr *msg, int flags)
{
	struct rlimit before, more;
	ssize_t n;
	int error;

	if (!closer.on || !numbers_are_scarce() || getrlimit(RLIMIT_NOFILE, &before))
		return recvmsg(sock, msg, flags);
	more = before;
	more.rlim_cur += MIN(before.rlim_max - before.rlim_cur, (rlim_t)RT_FOREIGN_FDS_MAX);
	setrlimit(RLIMIT_NOFILE, &more);
	n = recvmsg(sock, msg, flags);
	error = errno;
	setrlimit(RLIMIT_NOFILE, &before);
	errno = error;
	return n;
}

/* @with: the bytes of what comes beside the message */
static ssize_t receive(int sock, void *bytes, size_t len, int flags, int *fds, size_t max,
		       size_t *with)
{
	/* room for all that can come: what finds none, the kernel closes in this thread */
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(RT_FOREIGN_FDS_MAX * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
	} control;
	struct iovec iov = {bytes, len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = receive_with_numbers(sock, &msg, flags | MSG_CMSG_CLOEXEC);

	for (size_t i = 0; i < max; i++)
		fds[i] = -1;
	if (n < 0)
		return -errno;
	take_passed_fds(&msg, fds, (unsigned)max, rt_close_foreign);
	*with = msg.msg_controllen;
	return n;
}

ssize_t rt_receive(int sock, void *bytes, size_t len, int flags, int *fds, size_t max)
{
	size_t with;

	return receive(sock, bytes, len, flags, fds, max, &with);
}

void rt_close_socket(int sock)
{
	const int on = 1;
	size_t with = 0;
	char byte;

	if (sock < 0)
		return;
	shutdown(sock, SHUT_RDWR); /* so that this ends: nothing comes any more */
	/* by the sender's credentials a message of no bytes differs from the end */
	setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	while (receive(sock, &byte, sizeof(byte), MSG_DONTWAIT, NULL, 0, &with) >= 0 && with)
		;
	close(sock);
}
