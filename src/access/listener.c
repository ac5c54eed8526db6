/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Listening sockets, the identity of peers, and answers, for all endpoints. */
#include "access/listener.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/session.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/log.h"

#define BACKLOG 128
#define ACCEPTS_PER_TURN 16
#define CAP_IPC_LOCK_BIT 14
#define CAP_NET_RAW_BIT 13
#define SHARE_OF_A_PROCESS 4 /* a process may use a quarter of the descriptors */
#define ALWAYS_ROOM_FOR 8
#define LAST_ROOM_FOR	2 /* sessions of a process when no more than one share of the descriptors is left */
#define CROWD_NS (100 * NSEC_PER_MSEC) /* until it is seen that descriptors have been closed */
#define INITIAL_USER_NS	 "user:[4026531837]" /* PROC_USER_INIT_INO: the same in every kernel */

struct listener {
	struct rt_io io;
	int fd;
	bool full; /* a program was rejected, and none has been accepted since */
	bool refuses_fds; /* always */
	bool crowded;	  /* refuses descriptors for now: mind_crowd() */
	struct rt_timer look_again; /* armed while it is so */
	int spare_fd; /* closed, if no descriptor is left, in order to accept a program and reject it */
	struct sockaddr_un addr;
	void (*accepted)(void *ctx, int fd, const struct peer *peer);
	void *ctx;
};

/* --- peers --- */

/* A program chooses its own name, which logs and tables print. Escape sequences in it would
 * control the reader's terminal. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if (!isprint((unsigned char)*text))
			*text = '?';
}

static void read_comm(struct peer *peer)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", peer->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(peer->comm, sizeof(peer->comm), f))
		peer->comm[strcspn(peer->comm, "\n")] = 0;
	make_printable(peer->comm);
	fclose(f);
}

/* Is the process in the initial user namespace? Root in a container has all capabilities of its own
 * namespace, which do not count. */
static bool in_initial_user_ns(pid_t pid)
{
	char path[64], ns[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	n = readlink(path, ns, sizeof(ns) - 1);
	if (n < 0)
		return false;
	ns[n] = 0;
	return !strcmp(ns, INITIAL_USER_NS);
}

/* Like the kernel, look for the capability in the initial user namespace. */
static bool has_capability(pid_t pid, unsigned bit)
{
	char path[64], line[128];
	bool has = false;
	FILE *f;

	if (!in_initial_user_ns(pid))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:", 7))
			has = strtoull(line + 7, NULL, 16) >> bit & 1;
	fclose(f);
	return has;
}

bool peer_may_send_raw(const struct peer *peer)
{
	return has_capability(peer->pid, CAP_NET_RAW_BIT);
}

int peer_of(int fd, struct peer *peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	*peer = (struct peer){.pid = cred.pid, .uid = cred.uid};
	read_comm(peer);
	peer->may_lock = has_capability(peer->pid, CAP_IPC_LOCK_BIT);
	return 0;
}

void peer_log(const struct peer *peer, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	rt_log("program %d (%s): %s", peer->pid, peer->comm, text);
}

/* The kernel assigns the lowest free number, so @fd shows how many descriptors are in use. */
bool peer_has_room(const struct peer *peer, int fd, unsigned int n, unsigned int fds_each)
{
	struct rlimit limit;
	rlim_t share, most;

	if (n < LAST_ROOM_FOR || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return true;
	share = limit.rlim_cur / SHARE_OF_A_PROCESS;
	most = MAX(share / fds_each, (rlim_t)ALWAYS_ROOM_FOR);
	if ((rlim_t)fd >= limit.rlim_cur - share) {
		peer_log(peer, "turned away: three quarters of softibd's descriptors are in use, "
			       "and the rest is for programs that have none (ulimit -n)");
		return false;
	}
	if (n == most)
		peer_log(peer, "turned away: it has a quarter of softibd's descriptors (ulimit -n)");
	return n < most;
}

uint64_t peer_memlock_bytes(const struct peer *peer)
{
	struct rlimit limit;

	if (peer->may_lock || prlimit(peer->pid, RLIMIT_MEMLOCK, NULL, &limit) < 0 ||
	    limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/* --- answers --- */

int endpoint_send(int fd, int error, const void *body, size_t bytes, const int *fds,
		  unsigned int num_fds)
{
	struct abi_reply reply = {.error = error, .bytes = (uint32_t)bytes};
	struct iovec parts[2] = {{&reply, sizeof(reply)}, {(void *)body, bytes}};

	return abi_sendv_fds(fd, parts, bytes ? 2 : 1, fds, num_fds, MSG_DONTWAIT);
}

void *session_alloc(const struct peer *peer, int fd, unsigned int n, unsigned int fds_each,
		    size_t bytes)
{
	const bool room = !peer || peer_has_room(peer, fd, n, fds_each);
	void *session = room ? rt_zalloc(bytes) : NULL;

	if (!session) {
		endpoint_send(fd, room ? -ENOMEM : -EMFILE, NULL, 0, NULL, 0);
		rt_close_socket(fd);
	}
	return session;
}

/* --- accepting --- */

static int take_spare(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* No descriptor is left: use the spare one to accept the peer, report that, and disconnect it. */
static void turn_away(struct listener *l)
{
	int fd;

	close(l->spare_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0) {
		endpoint_send(fd, -EMFILE, NULL, 0, NULL, 0);
		rt_close_socket(fd);
	}
	if (!l->full)
		rt_log("softibd has no free descriptor and refuses programs: raise its limit (ulimit -n)");
	l->full = true;
	l->spare_fd = take_spare();
}

/* Nobody new may send descriptors while too many wait to be closed: who comes cannot be told from
 * those whose closes wait before it has sent one. */
static void mind_crowd(struct listener *l)
{
	const bool crowded = rt_closer_crowded();

	if (l->refuses_fds)
		return;
	if (crowded != l->crowded)
		rt_allow_fds(l->fd, !crowded);
	l->crowded = crowded;
	if (crowded)
		rt_timer_arm(&l->look_again, mono_add(rt_now(l->look_again.rt), CROWD_NS));
}

static void look_again(struct rt_timer *timer)
{
	mind_crowd(container_of(timer, struct listener, look_again));
}

static void greet(struct listener *l, int fd)
{
	struct peer peer;
	int ret = peer_of(fd, &peer);

	if (!ret && peer.uid != 0 && peer.uid != geteuid())
		ret = -EACCES;
	if (ret) {
		if (ret == -EACCES)
			peer_log(&peer, "turned away: it is user %u's", peer.uid);
		endpoint_send(fd, ret, NULL, 0, NULL, 0);
		rt_close_socket(fd);
		return;
	}
	l->full = false;
	mind_crowd(l);
	l->accepted(l->ctx, fd, &peer);
}

static void on_connection(struct rt_io *io, bool readable, bool writable)
{
	struct listener *l = container_of(io, struct listener, io);

	for (int n = 0; n < ACCEPTS_PER_TURN; n++) {
		int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			greet(l, fd);
		else if (errno == EMFILE || errno == ENFILE)
			turn_away(l);
		else if (errno != ECONNABORTED && errno != EINTR)
			return;
	}
}

/* Remove a socket file on which no process listens: the softibd that made it has died. */
static int clear_stale(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		ret = -EADDRINUSE;
	else if (errno == ECONNREFUSED)
		unlink(addr->sun_path);
	close(fd);
	return ret;
}

static int bind_and_listen(struct listener *l)
{
	int ret = clear_stale(&l->addr);

	if (ret)
		return ret;
	if (bind(l->fd, (struct sockaddr *)&l->addr, sizeof(l->addr)) < 0)
		return -errno;
	if (chmod(l->addr.sun_path, 0600) < 0 || listen(l->fd, BACKLOG) < 0) {
		ret = -errno;
		unlink(l->addr.sun_path);
	}
	return ret;
}

int listener_create(struct rt *rt, const char *dir, const char *name,
		    void (*accepted)(void *ctx, int fd, const struct peer *peer), void *ctx,
		    struct listener **listener)
{
	struct listener *l = rt_zalloc(sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	l->accepted = accepted;
	l->ctx = ctx;
	l->addr.sun_family = AF_UNIX;
	ret = -ENAMETOOLONG;
	if (snprintf(l->addr.sun_path, sizeof(l->addr.sun_path), "%s/%s", dir, name) >=
	    (int)sizeof(l->addr.sun_path))
		goto undo_alloc;
	l->spare_fd = take_spare();
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	ret = l->fd < 0 || l->spare_fd < 0 ? -errno : bind_and_listen(l);
	if (ret)
		goto undo_fds;
	rt_timer_init(rt, &l->look_again, look_again);
	rt_io_init(rt, &l->io, l->fd, on_connection);
	rt_io_watch(&l->io, true, false);
	*listener = l;
	return 0;

undo_fds:
	if (l->fd >= 0)
		close(l->fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
undo_alloc:
	rt_free(l);
	return ret;
}

void listener_refuse_fds(struct listener *l)
{
	l->refuses_fds = true;
	rt_refuse_fds(l->fd);
}

void listener_destroy(struct listener *l)
{
	if (!l)
		return;
	rt_io_watch(&l->io, false, false);
	rt_timer_disarm(&l->look_again);
	close(l->fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	unlink(l->addr.sun_path);
	rt_free(l);
}

int endpoint_answer_open(int fd, int page_fd, int *control)
{
	int pair[2], fds[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	rt_refuse_fds(pair[0]);
	fds[0] = pair[1];
	fds[1] = page_fd;
	ret = endpoint_send(fd, 0, NULL, 0, fds, page_fd < 0 ? 1 : 2);
	close(pair[1]);
	if (ret)
		close(pair[0]);
	else
		*control = pair[0];
	return ret;
}
