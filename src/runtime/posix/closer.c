/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Closer threads. A process that made closes wait occupies OWNER_BUSY_MAX of them at most, so that
 * what others sent is closed meanwhile. What no thread has come to waits in a list of its sender.
 *
 * A sender is known by its process ID, which is looked up when a descriptor arrives and kept by the
 * descriptor's number. Descriptors of which nobody knows the sender share one list.
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

#include "base/list.h"
#include "base/passed_fds.h"
#include "base/types.h"

#define CLOSERS_MAX    256
#define OWNER_BUSY_MAX 2 /* threads that close what one process has sent... */
#define OTHERS_BUSY_MAX 8 /* ...and what nobody knows the sender of */
#define OWNER_WAITING  64 /* descriptors that may wait for closes that take longer than STUCK_NS */
#define STUCK_NS       NSEC_PER_SEC
#define CROWD	       8 /* an eighth of all descriptors waits to be closed */
#define SCARCE_NS     1000000u
#define STACK_BYTES   ((size_t)PTHREAD_STACK_MIN + 65536)
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/** struct owner - what a process has sent and is to be closed. It exists while there is something */
struct owner {
	struct list_head node;
	pid_t pid; /* 0: nobody knows */
	int *fd;   /* in the order of their arrival, from first on */
	size_t first, num, room;
	unsigned busy;
	uint64_t progress_ns; /* since then its threads have ended no close */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	/* --- protected by lock --- */
	struct list_head owners; /* who was served last is the last */
	pid_t *sender;		 /* by the descriptor's number */
	size_t num_senders;
	size_t fds; /* that wait or are being closed */
	unsigned threads, busy;
	bool on;
} closer = {.lock = PTHREAD_MUTEX_INITIALIZER,
	    .more = PTHREAD_COND_INITIALIZER,
	    .owners = LIST_HEAD_INIT(closer.owners)};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return timespec_ns(&t);
}

/* --- senders: protected by lock --- */

static void note_sender(int fd, pid_t pid)
{
	size_t room = ((size_t)fd / 256 + 1) * 256;
	pid_t *sender;

	if ((size_t)fd >= closer.num_senders) {
		sender = realloc(closer.sender, room * sizeof(*sender));
		if (!sender)
			return; /* nobody knows */
		memset(sender + closer.num_senders, 0, (room - closer.num_senders) * sizeof(*sender));
		closer.sender = sender;
		closer.num_senders = room;
	}
	closer.sender[fd] = pid;
}

static pid_t sender_of(int fd)
{
	return (size_t)fd < closer.num_senders ? closer.sender[fd] : 0;
}

static struct owner *owner_with(pid_t pid)
{
	struct owner *o;

	list_for_each_entry(o, &closer.owners, node)
		if (o->pid == pid)
			return o;
	return NULL;
}

/* Return: NULL: no memory */
static struct owner *owner_get(pid_t pid)
{
	struct owner *o = owner_with(pid);

	if (o || !(o = calloc(1, sizeof(*o))))
		return o;
	o->pid = pid;
	list_add_tail(&o->node, &closer.owners);
	return o;
}

static void owner_put(struct owner *o)
{
	if (o->num || o->busy)
		return;
	list_del(&o->node);
	free(o->fd);
	free(o);
}

/* Return: who has something that a further thread may close; NULL: nobody */
static struct owner *next_owner(void)
{
	struct owner *o;

	list_for_each_entry(o, &closer.owners, node)
		if (o->num && o->busy < (o->pid ? OWNER_BUSY_MAX : OTHERS_BUSY_MAX))
			return o;
	return NULL;
}

static bool is_crowded(void)
{
	struct rlimit limit;

	return closer.fds >= OWNER_WAITING && !getrlimit(RLIMIT_NOFILE, &limit) &&
	       closer.fds >= limit.rlim_cur / CROWD;
}

/* Has the process so much that waits for its own closes that nothing more is received from it? */
static bool has_too_much(pid_t pid)
{
	const struct owner *o = pid && pid != getpid() ? owner_with(pid) : NULL;

	return o && o->busy >= OWNER_BUSY_MAX && o->num >= OWNER_WAITING &&
	       (is_crowded() || now_ns() - o->progress_ns > STUCK_NS);
}

/* --- closing --- */

/* Whoever holds the file as well may set SO_LINGER again, but then ours is not the
 * last close, and waits for nothing. */
static void close_now(int fd)
{
	const struct linger none = {.l_onoff = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

static void close_one_of(struct owner *o)
{
	int fd = o->fd[o->first++];

	o->num--;
	list_del(&o->node);
	list_add_tail(&o->node, &closer.owners);
	if (!o->busy++)
		o->progress_ns = now_ns();
	closer.busy++;
	pthread_mutex_unlock(&closer.lock);
	close_now(fd);
	pthread_mutex_lock(&closer.lock);
	closer.busy--;
	closer.fds--;
	o->busy--;
	o->progress_ns = now_ns();
	owner_put(o);
}

static void *run(void *arg)
{
	pthread_mutex_lock(&closer.lock);
	for (;;) {
		struct owner *o = next_owner();

		if (o)
			close_one_of(o);
		else
			pthread_cond_wait(&closer.more, &closer.lock);
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

static bool make_room(struct owner *o)
{
	size_t room = o->room ? 2 * o->room : 16;
	int *fd;

	if (o->first >= room / 4) {
		memmove(o->fd, o->fd + o->first, o->num * sizeof(*o->fd));
		o->first = 0;
	}
	if (o->first + o->num < o->room)
		return true;
	fd = realloc(o->fd, room * sizeof(*fd));
	if (!fd)
		return false;
	o->fd = fd;
	o->room = room;
	return true;
}

/* Return: false: no memory */
static bool put_down(int fd)
{
	struct owner *o = owner_get(sender_of(fd));

	if (!o)
		return false;
	if (!make_room(o)) {
		owner_put(o);
		return false;
	}
	note_sender(fd, 0);
	o->fd[o->first + o->num++] = fd;
	closer.fds++;
	return true;
}

/* Return: false when there is nobody who would close it */
static bool hand_over(int fd)
{
	bool taken;

	pthread_mutex_lock(&closer.lock);
	if (closer.on && closer.busy == closer.threads && closer.threads < CLOSERS_MAX && begin_thread())
		closer.threads++;
	taken = closer.threads && put_down(fd);
	if (taken)
		pthread_cond_signal(&closer.more);
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

void rt_allow_fds(int sock, bool allow)
{
	const int on = allow;

	setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof(on));
}

void rt_refuse_fds(int sock)
{
	rt_allow_fds(sock, false);
}

bool rt_closer_crowded(void)
{
	bool crowded;

	pthread_mutex_lock(&closer.lock);
	crowded = is_crowded();
	pthread_mutex_unlock(&closer.lock);
	return crowded;
}

void rt_note_sender(int fd, pid_t pid)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&closer.lock);
	note_sender(fd, pid);
	pthread_mutex_unlock(&closer.lock);
}

void rt_inherit_sender(int fd, int from)
{
	if (fd < 0)
		return;
	pthread_mutex_lock(&closer.lock);
	note_sender(fd, sender_of(from));
	pthread_mutex_unlock(&closer.lock);
}

/* Is half of the numbers for descriptors used? It is looked up at most once in SCARCE_NS, because that takes
 * three system calls; nobody can make softibd use up the other half meanwhile. Context: one thread. */
static bool numbers_are_scarce(void)
{
	static uint64_t looked_ns;
	static bool scarce;
	const uint64_t now = now_ns();
	struct rlimit limit;
	int lowest;

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

/* Who connected @sock; softibd itself if it has made both ends */
static pid_t peer_of(int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) ? 0 : peer.pid;
}

/* Of a message that comes with credentials, since softibd asked for these (SO_PASSCRED) before it was sent */
static pid_t sender_of_message(int sock, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		struct ucred sender;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS)
			continue;
		memcpy(&sender, CMSG_DATA(c), sizeof(sender));
		return sender.pid ? sender.pid : peer_of(sock);
	}
	return peer_of(sock);
}

static bool has_fds(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			return true;
	return false;
}

/* Who sends more than is closed of it is not listened to. Return: false: that is so */
static bool take_fds(int sock, struct msghdr *msg, int *fds, size_t max)
{
	const pid_t pid = sender_of_message(sock, msg);
	int all[RT_FOREIGN_FDS_MAX];
	unsigned num = take_passed_fds(msg, all, ARRAY_SIZE(all), rt_close_foreign);
	bool much;

	pthread_mutex_lock(&closer.lock);
	much = has_too_much(pid);
	for (unsigned i = 0; i < num; i++)
		note_sender(all[i], pid);
	pthread_mutex_unlock(&closer.lock);
	for (unsigned i = 0; i < num; i++) {
		if (i < max && !much)
			fds[i] = all[i];
		else
			rt_close_foreign(all[i]);
	}
	return !much;
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
	*with = msg.msg_controllen;
	return has_fds(&msg) && !take_fds(sock, &msg, fds, max) ? -EMFILE : n;
}

ssize_t rt_receive(int sock, void *bytes, size_t len, int flags, int *fds, size_t max)
{
	size_t with;

	return receive(sock, bytes, len, flags, fds, max, &with);
}

/* Is nothing in @sock that nobody has read? A message of no bytes comes with the sender's credentials. */
static bool is_empty(int sock)
{
	char byte, control[CMSG_SPACE(sizeof(struct ucred))];
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};

	return recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT) <= 0 && !msg.msg_controllen;
}

/* One whose sender has too much is one more descriptor of its sender's, with all that is in it. */
static bool hand_over_whole(int sock)
{
	const pid_t pid = peer_of(sock);
	bool much;

	pthread_mutex_lock(&closer.lock);
	much = has_too_much(pid);
	if (much)
		note_sender(sock, pid);
	pthread_mutex_unlock(&closer.lock);
	if (!much || is_empty(sock))
		return false;
	rt_close_foreign(sock);
	return true;
}

void rt_close_socket(int sock)
{
	const int on = 1;
	size_t with = 0;
	ssize_t n;
	char byte;

	if (sock < 0)
		return;
	shutdown(sock, SHUT_RDWR); /* so that this ends: nothing comes any more */
	/* by the sender's credentials a message of no bytes differs from the end */
	setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	do {
		if (hand_over_whole(sock))
			return;
		n = receive(sock, &byte, sizeof(byte), MSG_DONTWAIT, NULL, 0, &with);
	} while ((n >= 0 && with) || n == -EMFILE);
	close(sock);
}
