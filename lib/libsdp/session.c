/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Messages to softibd by its socket "sdp". */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/endpoint.h"
#include "abi/fds.h"
#include "abi/session.h"
#include "sdp_private.h"

/* The functions of abi call sendmsg() and recvmsg(), which are those of bytes.c. */
static __thread bool talks __attribute__((tls_model("initial-exec")));

bool sdp_session_talks(void)
{
	return talks;
}

/* Like abi_endpoint_connect(), but call libc's socket() and connect() in place of this library's. */
static int connect_to(const char *dir)
{
	struct sockaddr_un addr;
	int dirfd, ret = abi_endpoint_address(dir, "sdp", &addr, &dirfd);
	int fd = ret ? -1 : sdp_libc.socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (!ret && fd < 0)
		ret = -errno;
	while (!ret && sdp_libc.connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		if (errno != EINTR)
			ret = -errno;
	if (dirfd >= 0)
		close(dirfd);
	if (ret && fd >= 0)
		close(fd);
	return ret ? ret : fd;
}

/* Receive an answer. The descriptor may be non-blocking, since it is the program's. Return: 0; the -errno
 * in the answer; -errno of receiving */
static int receive(int session, struct abi_sdp_names *names, int *returned)
{
	struct abi_reply reply;
	struct iovec parts[2] = {{&reply, sizeof(reply)}, {names, sizeof(*names)}};
	ssize_t n;

	for (;;) {
		struct pollfd p = {.fd = session, .events = POLLIN};

		n = abi_receive_answer(session, parts, 2, returned, 1);
		if (n != -EAGAIN)
			break;
		poll(&p, 1, -1);
	}
	if (n <= 0)
		return n < 0 ? (int)n : -ENETDOWN;
	return n < (ssize_t)sizeof(reply) ? -EPROTO : abi_reply_error(&reply);
}

static int greet(int session)
{
	struct abi_sdp_names names;
	struct abi_open open;
	int fd, ret = abi_open_prepare(&open, ABI_OPEN_SDP, sdp_env.node);

	if (ret)
		return ret;
	ret = abi_send_fds(session, &open, sizeof(open), NULL, 0, 0);
	return ret && ret != -EPIPE ? ret : receive(session, &names, &fd);
}

int sdp_session_open(void)
{
	const char *dir = sdp_env.dir;
	int session, ret;

	if (!dir || !*dir)
		return -ENETDOWN;
	session = connect_to(dir);
	if (session < 0)
		return session;
	ret = greet(session);
	if (!ret)
		return session;
	close(session);
	return ret;
}

int sdp_session_ask(int session, const struct abi_sdp_request *request, const int *fds,
		    unsigned int num_fds, struct abi_sdp_names *names, int *returned)
{
	int passed = -1, ret;

	talks = true;
	ret = abi_send_fds(session, request, sizeof(*request), fds, num_fds, 0);
	if (!ret)
		ret = receive(session, names, &passed);
	talks = false;
	if (returned)
		*returned = passed;
	else if (passed >= 0)
		close(passed);
	return ret;
}

int sdp_session_accept(int session, struct abi_sdp_names *names, int *memory)
{
	struct abi_reply reply;
	struct iovec parts[2] = {{&reply, sizeof(reply)}, {names, sizeof(*names)}};
	int fds[2] = {-1, -1};
	ssize_t n;
	int fd;

	talks = true;
	n = abi_receivev(session, parts, 2, 0, fds, 2);
	talks = false;
	fd = fds[0];
	if (n < 0)
		return (int)n;
	if (!n)
		return -ENETDOWN;
	if (fd < 0)
		return -EMFILE; /* the kernel had no free descriptor number */
	*memory = fds[1];
	if (n == sizeof(reply) + sizeof(*names))
		return fd;
	close(fd);
	if (fds[1] >= 0)
		close(fds[1]);
	return -EPROTO;
}
