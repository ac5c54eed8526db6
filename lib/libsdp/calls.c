/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The functions of libc that the library replaces, except for those that send and receive (bytes.c) or
 * wait (wait.c, epoll.c). An SDP socket is a Unix socket of the kernel, so that all others work.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/session.h"
#include "sdp_private.h"

#define EXPORT __attribute__((visibility("default")))

struct sdp_libc sdp_libc;
struct sdp_env sdp_env;
static bool is_active; /* the program runs on a node of a fabric */

static void *find(const char *symbol)
{
	void *function = dlsym(RTLD_NEXT, symbol);

	if (!function)
		abort();
	return function;
}

#define FIND(symbol) *(void **)&sdp_libc.symbol = find(#symbol)

static char *copy_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* Other libraries' constructors may run, and open sockets, before this one. */
bool sdp_begin(void)
{
	if (sdp_libc.setsockopt)
		return is_active;
	FIND(shutdown);
	FIND(close);
	FIND(read);
	FIND(readv);
	FIND(recv);
	FIND(recvfrom);
	FIND(recvmsg);
	FIND(write);
	FIND(writev);
	FIND(send);
	FIND(sendto);
	FIND(sendmsg);
	FIND(poll);
	FIND(ppoll);
	FIND(select);
	FIND(epoll_create);
	FIND(epoll_create1);
	FIND(epoll_ctl);
	FIND(epoll_pwait);
	FIND(epoll_pwait2);
	FIND(socket);
	FIND(bind);
	FIND(listen);
	FIND(connect);
	FIND(accept4);
	FIND(getsockname);
	FIND(getpeername);
	FIND(getsockopt);
	FIND(setsockopt);
	sdp_env.dir = copy_of(getenv(ABI_ENV_DIR));
	sdp_env.node = copy_of(getenv(ABI_ENV_NODE));
	is_active = sdp_env.dir && *sdp_env.dir;
	if (is_active)
		sdp_rules_load();
	return is_active;
}

__attribute__((constructor)) static void on_load(void)
{
	sdp_begin();
}

EXPORT int socket(int domain, int type, int protocol)
{
	int fd;

	sdp_begin();
	if (!is_active || domain != ABI_SDP_FAMILY)
		return sdp_libc.socket(domain, type, protocol);
	if ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	fd = sdp_libc.socket(AF_INET, type, IPPROTO_TCP);
	if (fd >= 0 && sdp_force(fd)) {
		close(fd);
		return -1;
	}
	return fd;
}

EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct sdp_name name;
	int family;

	sdp_begin();
	if (is_active && sdp_is_tcp(fd, &family))
		return sdp_bind(fd, addr, len);
	if (is_active && sdp_name_get(fd, &name)) {
		errno = EINVAL; /* the socket is bound already */
		return -1;
	}
	return sdp_libc.bind(fd, addr, len);
}

EXPORT int listen(int fd, int backlog)
{
	sdp_begin();
	return is_active ? sdp_listen(fd, backlog) : sdp_libc.listen(fd, backlog);
}

EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	sdp_begin();
	return is_active ? sdp_connect(fd, addr, len) : sdp_libc.connect(fd, addr, len);
}

EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct sdp_name name;

	sdp_begin();
	if (!is_active || !sdp_name_get(fd, &name))
		return sdp_libc.accept4(fd, addr, len, flags);
	return sdp_accept_on(fd, &name, addr, len, flags);
}

EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accept4(fd, addr, len, 0);
}

EXPORT int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sdp_name name;

	sdp_begin();
	if (!is_active || !sdp_name_get(fd, &name))
		return sdp_libc.getsockname(fd, addr, len);
	return sdp_address_put(&name.names.local, addr, len);
}

EXPORT int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct sdp_name name;

	sdp_begin();
	if (!is_active || !sdp_name_get(fd, &name))
		return sdp_libc.getpeername(fd, addr, len);
	if (!sdp_is_connected(fd, &name)) {
		errno = ENOTCONN;
		return -1;
	}
	return sdp_address_put(&name.names.peer, addr, len);
}

/* Is there nothing that shutdown() could end? */
static bool has_no_connection(int fd)
{
	struct sdp_name name;

	if (!sdp_name_get(fd, &name))
		return false;
	if (name.kind == SDP_BOUND)
		return !sdp_is_listening(fd);
	return !sdp_is_connected(fd, &name) &&
	       !(name.kind == SDP_PENDING && sdp_outcome(fd) == -EINPROGRESS);
}

EXPORT int shutdown(int fd, int how)
{
	if (sdp_begin() && has_no_connection(fd)) {
		errno = ENOTCONN;
		return -1;
	}
	return sdp_libc.shutdown(fd, how);
}

EXPORT int getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
	struct sdp_name name;

	sdp_begin();
	if (!is_active || !sdp_name_get(fd, &name))
		return sdp_libc.getsockopt(fd, level, option, value, len);
	return sdp_getsockopt(fd, &name, level, option, value, len);
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	struct sdp_name name;

	sdp_begin();
	if (!is_active || !sdp_name_get(fd, &name))
		return sdp_libc.setsockopt(fd, level, option, value, len);
	return sdp_setsockopt(fd, level, option, value, len);
}
