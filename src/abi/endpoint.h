/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The Unix sockets in a fabric's directory by which libraries reach softibd: "umad", "rdma_cm",
 * "netlink" and "sdp". libibverbs, which names a path that is too long, connects to "uverbs" itself. */
#ifndef SOFTIB_ABI_ENDPOINT_H
#define SOFTIB_ABI_ENDPOINT_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

#endif
