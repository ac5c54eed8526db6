/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Descriptors that came with a message of a Unix socket. */
#ifndef SOFTIB_ABI_FDS_H
#define SOFTIB_ABI_FDS_H

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/**
 * abi_take_fds() - the descriptors of a received message
 * @fds: the first @max of them, the caller's from now on; all others are
 *       closed: the sender decides how many come, and the room that is right
 *       for one descriptor holds two (CMSG_SPACE() rounds up)
 * Return: how many are in @fds
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

/** abi_take_fd() - the only descriptor that is expected. Return: it, or -1 */
static inline int abi_take_fd(struct msghdr *msg)
{
	int fd = -1;

	abi_take_fds(msg, &fd, 1);
	return fd;
}

/** abi_fd_holds() - is it memory of @bytes or more? A mapping beyond its end
 *  would be a trap for who reads it */
static inline bool abi_fd_holds(int fd, size_t bytes)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size >= 0 && (size_t)st.st_size >= bytes;
}

#endif
