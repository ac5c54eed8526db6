/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages of Unix sockets with descriptors (SCM_RIGHTS). */
#ifndef SOFTIB_ABI_FDS_H
#define SOFTIB_ABI_FDS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/passed_fds.h"

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

/**
 * abi_receive_answer() - wait for the answer to a message that was sent on @sock
 *
 * The thread sleeps at once. The scheduler then mostly runs softibd on the thread's own core
 * and comes back with the answer, some 5 us later. A thread that looks for the answer for a
 * while first keeps its core from softibd, and softibd wakes up another core instead, which takes
 * several times as long on a virtual machine.
 *
 * A signal does not interrupt it. A peer that closes a socket with messages that it has
 * not read resets it: recvmsg() reports that once, and the next call returns what the
 * peer answered before.
 *
 * Return: as abi_receivev(), except that the length of a message for which the parts are
 * too short is that of the whole message
 */
static inline ssize_t abi_receive_answer(int sock, const struct iovec *parts,
					 size_t num_parts, int *fds, unsigned max)
{
	bool reset = false;
	ssize_t n;

	do
		n = abi_receivev(sock, parts, num_parts, MSG_TRUNC, fds, max);
	while (n == -EINTR || (n == -ECONNRESET && !reset && (reset = true)));
	return n;
}

/** abi_fd_holds() - does the file have at least @bytes? Reading a mapping beyond the end of
 *  its file raises SIGBUS */
static inline bool abi_fd_holds(int fd, size_t bytes)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size >= 0 && (size_t)st.st_size >= bytes;
}

#endif
