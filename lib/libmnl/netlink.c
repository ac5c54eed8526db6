/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sockets of NETLINK_RDMA for programs that use libmnl: iproute2's rdma. They load this library by
 * the name libmnl.so.0 and, through it, the distribution's, whose calls of socket(), bind(),
 * sendto(), recvmsg() and so on are led here when it has been loaded (redirect.h). A socket of
 * NETLINK_RDMA is a connection to softibd's socket "netlink" (abi/session.h); every other
 * descriptor is libc's. Outside of a node (no SOFTIB_DIR) nothing changes.
 *
 * iproute2's ip loads libmnl, too, but receives from routing sockets itself: it finds the addresses of
 * IPoIB interfaces by links_receive().
 */
#include <errno.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/endpoint.h"
#include "abi/session.h"
#include "links/links.h"
#include "redirect/redirect.h"

#define FILES_MAX 65536 /* descriptors beyond are not served: EMFILE */

static bool served[FILES_MAX]; /* by descriptor */

static bool is_served(int fd)
{
	return fd >= 0 && fd < FILES_MAX && __atomic_load_n(&served[fd], __ATOMIC_RELAXED);
}

static void set_served(int fd, bool on)
{
	__atomic_store_n(&served[fd], on, __ATOMIC_RELAXED);
}

/* --- opening --- */

static int open_netlink(const char *dir, int type)
{
	int fd = abi_endpoint_connect(dir, "netlink"), ret = fd < 0 ? fd : 0;

	if (!ret)
		ret = fd < FILES_MAX ? abi_endpoint_open(fd, ABI_OPEN_NETLINK, "", NULL, 0) : -EMFILE;
	if (!ret && !(type & SOCK_CLOEXEC) && fcntl(fd, F_SETFD, 0))
		ret = -errno;
	if (!ret && (type & SOCK_NONBLOCK) && fcntl(fd, F_SETFL, O_NONBLOCK))
		ret = -errno;
	if (!ret) {
		set_served(fd, true);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	errno = -ret;
	return -1;
}

static int open_socket(int domain, int type, int protocol)
{
	const char *dir = getenv(ABI_ENV_DIR);

	if (dir && domain == AF_NETLINK && protocol == NETLINK_RDMA)
		return open_netlink(dir, type);
	return socket(domain, type, protocol);
}

static int close_socket(int fd)
{
	if (is_served(fd))
		set_served(fd, false);
	return close(fd);
}

/* --- addresses and options: the kernel's end is port 0, ours the process id --- */

static int bind_socket(int fd, const struct sockaddr *addr, socklen_t len)
{
	return is_served(fd) ? 0 : bind(fd, addr, len);
}

static int name_socket(int fd, struct sockaddr *addr, socklen_t *len)
{
	const struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_pid = (uint32_t)getpid()};

	if (!is_served(fd))
		return getsockname(fd, addr, len);
	memcpy(addr, &own, *len < sizeof(own) ? *len : sizeof(own));
	*len = sizeof(own);
	return 0;
}

static int set_option(int fd, int level, int name, const void *value, socklen_t len)
{
	if (is_served(fd) && level == SOL_NETLINK)
		return 0;
	return setsockopt(fd, level, name, value, len);
}

/* --- messages --- */

static ssize_t send_message(int fd, const void *data, size_t bytes, int flags,
			    const struct sockaddr *addr, socklen_t len)
{
	if (is_served(fd))
		return send(fd, data, bytes, flags | MSG_NOSIGNAL);
	return sendto(fd, data, bytes, flags, addr, len);
}

static ssize_t receive_message(int fd, struct msghdr *msg, int flags)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	void *name = msg->msg_name;
	socklen_t room = msg->msg_namelen;
	ssize_t n;

	if (!is_served(fd))
		return recvmsg(fd, msg, flags);
	msg->msg_name = NULL;
	msg->msg_namelen = 0;
	n = recvmsg(fd, msg, flags);
	msg->msg_name = name;
	if (name)
		memcpy(name, &kernel, room < sizeof(kernel) ? room : sizeof(kernel));
	msg->msg_namelen = sizeof(kernel);
	if (n)
		return n;
	errno = ENODEV; /* softibd is gone */
	return -1;
}

/* --- the distribution's library --- */

static const struct redirection redirections[] = {
	{"socket", (void (*)(void))open_socket},
	{"close", (void (*)(void))close_socket},
	{"bind", (void (*)(void))bind_socket},
	{"getsockname", (void (*)(void))name_socket},
	{"setsockopt", (void (*)(void))set_option},
	{"sendto", (void (*)(void))send_message},
	{"recvmsg", (void (*)(void))receive_message},
};
#define NUM_REDIRECTIONS (sizeof(redirections) / sizeof(redirections[0]))

static const struct redirection of_program = {"recvmsg", (void (*)(void))links_receive};

__attribute__((constructor)) static void redirect(void)
{
	if (!getenv(ABI_ENV_DIR))
		return;
	redirect_calls(NULL, &of_program, 1); /* ip, bridge and so on; others have no such call */
	redirect_or_warn(GENUINE, redirections, NUM_REDIRECTIONS, "libmnl",
			 "softib's netlink socket", "rdma sees no adapter");
}
