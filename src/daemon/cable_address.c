/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Addresses of cables: cable_address.h. */
#include "daemon/cable_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool parse_port(const char *text, in_port_t *port)
{
	char *end;
	long n = strtol(text, &end, 10);

	*port = htons((uint16_t)n);
	return *text >= '0' && *text <= '9' && !*end && n >= 1 && n <= 65535;
}

bool cable_address_parse(const char *text, struct cable_address *addr)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	size_t n;

	*addr = (struct cable_address){.len = 0};
	if (text[0] == '/') {
		addr->un.sun_family = AF_UNIX;
		addr->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1);
		if (strlen(text) >= sizeof(addr->un.sun_path))
			return false;
		memcpy(addr->un.sun_path, text, strlen(text) + 1);
		return true;
	}
	n = colon ? (size_t)(colon - text) : 0;
	if (!n || n >= sizeof(host))
		return false;
	memcpy(host, text, n);
	host[n] = '\0';
	if (host[0] != '[') {
		addr->in.sin_family = AF_INET;
		addr->len = sizeof(addr->in);
		return inet_pton(AF_INET, host, &addr->in.sin_addr) == 1 && parse_port(colon + 1, &addr->in.sin_port);
	}
	host[n - 1] = '\0';
	addr->in6.sin6_family = AF_INET6;
	addr->len = sizeof(addr->in6);
	return text[n - 1] == ']' && inet_pton(AF_INET6, host + 1, &addr->in6.sin6_addr) == 1 &&
	       parse_port(colon + 1, &addr->in6.sin6_port);
}

bool cable_address_is_loopback(const struct cable_address *addr)
{
	if (cable_address_is_unix(addr))
		return false;
	return addr->sa.sa_family == AF_INET ? ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET :
					       IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

int cable_address_socket(const struct cable_address *addr)
{
	int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? -errno : fd;
}

/* A socket file that nobody listens at is what a softibd left that was killed. (Any other file refuses as well.) */
static bool is_stale(const struct cable_address *addr)
{
	int fd = cable_address_socket(addr);
	struct stat st;
	bool refused = fd >= 0 && !lstat(addr->un.sun_path, &st) && S_ISSOCK(st.st_mode) &&
		       connect(fd, &addr->sa, addr->len) && errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return refused;
}

static int bind_to(int fd, const struct cable_address *addr)
{
	const mode_t mask = umask(0177); /* a socket file is for its user alone, from its first moment on */
	int ret = bind(fd, &addr->sa, addr->len) ? -errno : 0;

	if (ret == -EADDRINUSE && cable_address_is_unix(addr) && is_stale(addr) && !unlink(addr->un.sun_path))
		ret = bind(fd, &addr->sa, addr->len) ? -errno : 0;
	umask(mask);
	return ret;
}

int cable_address_listen(const struct cable_address *addr, int backlog)
{
	const int on = 1;
	int fd = cable_address_socket(addr), ret;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ret = bind_to(fd, addr);
	if (!ret && listen(fd, backlog))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}
