/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The descriptors that come with a message of a Unix socket (SCM_RIGHTS). */
#ifndef SOFTIB_BASE_PASSED_FDS_H
#define SOFTIB_BASE_PASSED_FDS_H

#include <string.h>
#include <sys/socket.h>

/**
 * take_passed_fds() - the descriptors of a received message
 * @fds: filled with the first @max of them, which the caller owns
 * @close_fd: called for each descriptor above @max. The sender decides how many come,
 *            and a buffer for one descriptor has room for two, because CMSG_SPACE()
 *            rounds up
 * Return: the number of descriptors in @fds
 */
static inline unsigned take_passed_fds(struct msghdr *msg, int *fds, unsigned max,
				       void (*close_fd)(int fd))
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
				close_fd(fd);
		}
	}
	return got;
}

#endif
