/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages of Unix sockets with descriptors (SCM_RIGHTS). */
#ifndef SOFTIB_ABI_FDS_H
#define SOFTIB_ABI_FDS_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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

/**
 * abi_take_fds() - the descriptors of a received message
 * @fds: filled with the first @max of them, which the caller owns. All others are
 *       closed: the sender decides how many come, and a buffer for one descriptor
 *       has room for two, because CMSG_SPACE() rounds up
 * Return: the number of descriptors in @fds
 */
static inline unsigned abi_take_fds(struct msghdr *msg, int *fds, unsigned max)
{
	unsigned got = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (got < max)
				fds[got++] = fd;
			else
				close(fd);
		}
	}
	return got;
}

/** abi_take_fd() - take the one descriptor of a received message. Return: it, or -1 */
static inline int abi_take_fd(struct msghdr *msg)
{
	int fd = -1;

	abi_take_fds(msg, &fd, 1);
	return fd;
}

/**
 * abi_receive() - receive a message and its descriptors
 * @fds: @max entries, which the caller owns; -1 in those that are not used
 * @flags: of recvmsg(2)
 * Return: its bytes; 0 when the peer is gone; -errno
 */
static inline ssize_t abi_receive(int sock, void *bytes, size_t len, int flags, int *fds,
				  unsigned max)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(ABI_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {bytes, len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(max * sizeof(int))};
	ssize_t n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);
	unsigned got = n < 0 ? 0 : abi_take_fds(&msg, fds, max);

	while (got < max)
		fds[got++] = -1;
	return n < 0 ? -errno : n;
}

/** abi_fd_holds() - does the file have at least @bytes? Reading a mapping beyond the end of
 *  its file raises SIGBUS */
static inline bool abi_fd_holds(int fd, size_t bytes)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size >= 0 && (size_t)st.st_size >= bytes;
}

#endif
