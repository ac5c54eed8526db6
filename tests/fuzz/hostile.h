/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A softibd that says anything, for targets that fuzz its clients. connect()
 * is ours (-Wl,--wrap=connect): it leads to a socket in which the answers,
 * made of the input, wait already; behind them the connection ends.
 */
#ifndef SOFTIB_TESTS_FUZZ_HOSTILE_H
#define SOFTIB_TESTS_FUZZ_HOSTILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);

#define HOSTILE_FDS_MAX 16
#define HOSTILE_CONNECTIONS_MAX 4096

/** hostile_answer() - the target's: put what the @nth connection will read */
static void hostile_answer(int sock, unsigned nth);

static int hostile_peer[HOSTILE_CONNECTIONS_MAX]; /* our ends */
static unsigned hostile_num;

static inline int hostile_memory(size_t bytes)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	check(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	return fd;
}

/** hostile_send() - a message and @n descriptors, which are closed here */
static inline void hostile_send(int sock, struct iovec *iov, size_t iovs, int *fds, unsigned n)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(HOSTILE_FDS_MAX * sizeof(int))];
	} control = {0};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = iovs};

	check(n <= HOSTILE_FDS_MAX);
	if (n) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(n * sizeof(int)),
						.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), fds, n * sizeof(int));
	}
	sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n)
		close(fds[--n]);
}

static inline void hostile_drop(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int pair[2], flags = fcntl(fd, F_GETFD);

	check(hostile_num < HOSTILE_CONNECTIONS_MAX);
	check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	hostile_answer(pair[1], hostile_num);
	shutdown(pair[1], SHUT_WR); /* no more will come: who waits must hear so */
	check(dup2(pair[0], fd) == fd);
	fcntl(fd, F_SETFD, flags);
	close(pair[0]);
	hostile_peer[hostile_num++] = pair[1];
	return 0;
}

/** hostile_end() - close our ends; as many descriptors are open as @before */
static inline void hostile_end(int before)
{
	while (hostile_num)
		close(hostile_peer[--hostile_num]);
	check(open_fds() == before);
}

#endif
