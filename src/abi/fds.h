/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages of Unix sockets with descriptors (SCM_RIGHTS). */
#ifndef SOFTIB_ABI_FDS_H
#define SOFTIB_ABI_FDS_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/passed_fds.h"
#include "base/types.h"

#define ABI_FDS_MAX 16 /* with one message */

/** abi_sendv_fds() - abi_send_fds() of a message in several parts */
static inline int abi_sendv_fds(int sock, const struct iovec *parts, size_t num_parts,
				const int *fds, unsigned n, int flags)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(ABI_FDS_MAX * sizeof(int))];
	} control = {.head = {.cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(n * sizeof(int))}};
	struct msghdr msg = {.msg_iov = (struct iovec *)parts, .msg_iovlen = num_parts};
	ssize_t sent;

	if (n > ABI_FDS_MAX)
		return -EINVAL;
	if (n) {
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	do
		sent = sendmsg(sock, &msg, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/**
 * abi_send_fds() - send a message with @n descriptors, which stay the caller's
 *
 * A signal does not interrupt it, and a peer that is gone raises no SIGPIPE.
 * @flags: of sendmsg(2)
 * Return: 0; -EINVAL more than ABI_FDS_MAX; -errno as sendmsg(2)
 */
static inline int abi_send_fds(int sock, const void *bytes, size_t len, const int *fds,
			       unsigned n, int flags)
{
	struct iovec all = {(void *)bytes, len};

	return abi_sendv_fds(sock, &all, 1, fds, n, flags);
}

static inline void abi_close_fd(int fd)
{
	close(fd);
}

/** abi_take_fds() - take_passed_fds(), which closes the descriptors above @max */
static inline unsigned abi_take_fds(struct msghdr *msg, int *fds, unsigned max)
{
	return take_passed_fds(msg, fds, max, abi_close_fd);
}

/** abi_receivev() - abi_receive() of a message in several parts */
static inline ssize_t abi_receivev(int sock, const struct iovec *parts, size_t num_parts,
				   int flags, int *fds, unsigned max)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(ABI_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr msg = {.msg_iov = (struct iovec *)parts,
			     .msg_iovlen = num_parts,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(max * sizeof(int))};
	ssize_t n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	unsigned got = n < 0 ? 0 : abi_take_fds(&msg, fds, max);

	while (got < max)
		fds[got++] = -1;
	return n < 0 ? -errno : n;
}

/**
 * abi_receive() - receive a message and its descriptors
 * @fds: @max entries (at most ABI_FDS_MAX), which the caller owns; -1 in those that are not used
 * @flags: of recvmsg(2)
 * Return: its bytes; 0 when the peer is gone; -errno
 */
static inline ssize_t abi_receive(int sock, void *bytes, size_t len, int flags, int *fds,
				  unsigned max)
{
	struct iovec all = {bytes, len};

	return abi_receivev(sock, &all, 1, flags, fds, max);
}

/* softibd answers most messages within some microseconds. To sleep and to be woken up takes
 * several times as long, above all on a virtual machine, so a thread that waits for an answer
 * looks for it first, and lets others have its core meanwhile. An event may need three processes one after
 * the other, each of which has to be woken up: the server of a connection, for example, and softibd twice. */
#define ABI_SPIN_NS 100000
/* A program that uses all of a core does not give it back before its slice is over, while a thread
 * that sleeps gets the core as soon as it is woken. So a thread whose yield took this long sleeps at once
 * for some time, as softibd does (runtime/posix/linger.h). */
#define ABI_SPIN_TAKEN_NS  150000
#define ABI_SPIN_REFUSE_NS 100000000

static inline uint64_t abi_spin_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return timespec_ns(&ts);
}

/* The caller has just asked, or looked: it yields the core before it looks again.
 * Return: as abi_receivev(); -EAGAIN: nothing has come for ABI_SPIN_NS */
static inline ssize_t abi_spin_for_answer(int sock, const struct iovec *parts,
					  size_t num_parts, int flags, int *fds, unsigned max)
{
	static _Atomic uint64_t refuse; /* until then the threads of this program sleep at once */
	uint64_t now = abi_spin_clock_ns(), end, before;
	ssize_t n = -EAGAIN;

	end = now < refuse ? now : now + ABI_SPIN_NS;
	while (n == -EAGAIN && now < end) {
		before = now;
		sched_yield();
		n = abi_receivev(sock, parts, num_parts, flags | MSG_DONTWAIT, fds, max);
		now = abi_spin_clock_ns();
		if (n == -EAGAIN && now - before >= ABI_SPIN_TAKEN_NS)
			refuse = now + ABI_SPIN_REFUSE_NS;
	}
	return n;
}

/**
 * abi_receive_answer() - wait for the answer to a message that was sent on @sock
 *
 * A signal does not interrupt it. errno stays as it is, although the calls below set it: librdmacm modifies
 * a queue pair after a command that has failed, and the program reads that command's errno then. A peer that closes a socket with messages that it has
 * not read resets it: recvmsg() reports that once, and the next call returns what the
 * peer answered before.
 *
 * Return: as abi_receivev(), except that the length of a message for which the parts are
 * too short is that of the whole message
 */
static inline ssize_t abi_receive_answer(int sock, const struct iovec *parts,
					 size_t num_parts, int *fds, unsigned max)
{
	const int error = errno;
	ssize_t n = abi_spin_for_answer(sock, parts, num_parts, MSG_TRUNC, fds, max);
	bool reset = n == -ECONNRESET;

	if (n == -EAGAIN || n == -EINTR || reset)
		do
			n = abi_receivev(sock, parts, num_parts, MSG_TRUNC, fds, max);
		while (n == -EINTR || (n == -ECONNRESET && !reset && (reset = true)));
	errno = error;
	return n;
}

/**
 * abi_receive_news() - receive a message that softibd sends by itself, or wait for it
 * Return: its bytes; -EAGAIN: there is none, and the socket has O_NONBLOCK; -ENODEV: softibd is gone; -errno
 */
static inline ssize_t abi_receive_news(int sock, void *bytes, size_t len)
{
	const struct iovec whole = {bytes, len};
	ssize_t n = abi_receivev(sock, &whole, 1, MSG_DONTWAIT, NULL, 0);

	/* What the program has just asked for comes within some microseconds */
	if (n == -EAGAIN && !(fcntl(sock, F_GETFL) & O_NONBLOCK))
		n = abi_spin_for_answer(sock, &whole, 1, 0, NULL, 0);
	if (n == -EAGAIN)
		n = abi_receivev(sock, &whole, 1, 0, NULL, 0);
	return n ? n : -ENODEV;
}

/** abi_fd_holds() - does the file have at least @bytes? Reading a mapping beyond the end of
 *  its file raises SIGBUS */
static inline bool abi_fd_holds(int fd, size_t bytes)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size >= 0 && (size_t)st.st_size >= bytes;
}

#endif
