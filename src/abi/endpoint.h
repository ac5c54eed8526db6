/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Unix sockets in a fabric's directory by which libraries reach softibd: "umad", "ucm", "rdma_cm",
 * "netlink" and "sdp". libibverbs, which names a path that is too long, connects to "uverbs" itself. */
#ifndef SOFTIB_ABI_ENDPOINT_H
#define SOFTIB_ABI_ENDPOINT_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/session.h"

/**
 * abi_endpoint_address() - the address of the socket @name in @dir
 * @dirfd: set to -1; or, as sun_path is short and a long directory is reached by its
 *  descriptor, to one that the caller closes behind connect()
 * Return: 0; -errno: the directory cannot be opened
 */
static inline int abi_endpoint_address(const char *dir, const char *name,
				       struct sockaddr_un *addr, int *dirfd)
{
	const int room = (int)sizeof(addr->sun_path);

	*dirfd = -1;
	addr->sun_family = AF_UNIX;
	if (snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%s", dir, name) < room)
		return 0;
	*dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (*dirfd < 0)
		return -errno;
	snprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d/%s", *dirfd, name);
	return 0;
}

/** abi_endpoint_connect() - Return: a connection to the socket @name in @dir; -errno */
static inline int abi_endpoint_connect(const char *dir, const char *name)
{
	struct sockaddr_un addr;
	int dirfd, fd = -1, ret = abi_endpoint_address(dir, name, &addr, &dirfd);

	if (!ret)
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (!ret && fd < 0)
		ret = -errno;
	while (!ret && connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		if (errno != EINTR)
			ret = -errno;
	if (dirfd >= 0)
		close(dirfd);
	if (ret && fd >= 0)
		close(fd);
	return ret ? ret : fd;
}

/** abi_open_prepare() - make the opening message of a connection
 *  @node: the node of the program; NULL or "": the first node
 *  Return: 0; -ENAMETOOLONG */
static inline int abi_open_prepare(struct abi_open *open, enum abi_open_kind kind,
				   const char *node)
{
	*open = (struct abi_open){.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = kind};
	if (node && strlen(node) >= sizeof(open->node))
		return -ENAMETOOLONG;
	strcpy(open->node, node ? node : "");
	return 0;
}

/**
 * abi_endpoint_open() - send the opening message for the node of this program, and wait for the answer
 * @fd: the connection; @device: the name of an adapter; "": none
 * @fds: set to the @max descriptors that come with the answer, which the caller closes; -1 for those
 *       that did not come; NULL: none
 * Return: 0; -errno of sending or receiving; the error in the answer; -EPROTO
 */
static inline int abi_endpoint_open(int fd, enum abi_open_kind kind, const char *device, int *fds,
				    unsigned max)
{
	struct abi_reply reply;
	struct abi_open open;
	int ret = abi_open_prepare(&open, kind, getenv(ABI_ENV_NODE));
	ssize_t n;

	if (ret)
		return ret;
	if (strlen(device) >= sizeof(open.device))
		return -ENODEV;
	strcpy(open.device, device);
	if (send(fd, &open, sizeof(open), MSG_NOSIGNAL) < 0)
		return -errno;
	n = abi_receive_answer(fd, &(struct iovec){&reply, sizeof(reply)}, 1, fds, max);
	if (n < 0)
		return (int)n;
	return n == sizeof(reply) ? abi_reply_error(&reply) : -EPROTO;
}

/**
 * abi_exchange_fds() - send a command, in @num parts, and wait for its answer
 * @body: room for @room bytes behind struct abi_reply
 * @fds: as in abi_endpoint_open()
 * Context: one thread at a time on @sock. Return: bytes of the body; the error in the answer; -ENODEV: softibd is
 * gone; -EPROTO
 */
static inline ssize_t abi_exchange_fds(int sock, const struct iovec *parts, size_t num, void *body, size_t room,
				       int *fds, unsigned max)
{
	struct abi_reply reply;
	const struct iovec whole[2] = {{&reply, sizeof(reply)}, {body, room}};
	int ret = abi_sendv_fds(sock, parts, num, NULL, 0, 0);
	ssize_t n = ret ? ret : abi_receive_answer(sock, whole, 2, fds, max);

	if (ret || n <= 0)
		return -ENODEV;
	if (n < (ssize_t)sizeof(reply) || (size_t)n > sizeof(reply) + room)
		return -EPROTO;
	ret = abi_reply_error(&reply);
	return ret ? ret : n - (ssize_t)sizeof(reply);
}

/** abi_exchange() - abi_exchange_fds() of an answer without descriptors */
static inline ssize_t abi_exchange(int sock, const struct iovec *parts, size_t num, void *body, size_t room)
{
	return abi_exchange_fds(sock, parts, num, body, room, NULL, 0);
}

#endif
