/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a TCP socket becomes an SDP socket: another socket gets its descriptor number, flags and options.
 * A socket that the rules leave to TCP is not changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <unistd.h>

#include "sdp_private.h"

#define DEAD_PAUSE_US 100000

static int fail(int error)
{
	errno = -error;
	return -1;
}

static enum sdp_use use_of(int fd, enum sdp_role role, const union abi_sdp_address *address)
{
	return sdp_is_forced(fd) ? SDP_USE_SDP : sdp_rules_use(role, &address->any);
}

/* --- bind --- */

static int option_of(int fd, int level, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return sdp_libc.getsockopt(fd, level, option, &value, &len) ? 0 : value;
}

static uint32_t bind_flags(int fd)
{
	return (option_of(fd, SOL_SOCKET, SO_REUSEADDR) ? ABI_SDP_REUSE : 0u) |
	       (option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY) ? ABI_SDP_V6ONLY : 0u);
}

/* Return: the options of @fd that a Unix socket cannot store, as enum sdp_flags */
static uint8_t flags_of(int fd)
{
	return (uint8_t)((sdp_is_forced(fd) ? SDP_FORCED : 0) |
			 (option_of(fd, SOL_SOCKET, SO_REUSEPORT) ? SDP_REUSEPORT : 0) |
			 (option_of(fd, IPPROTO_IPV6, IPV6_V6ONLY) ? SDP_V6ONLY : 0));
}

/* @tcp: @fd is bound for TCP, and will listen besides the SDP socket. Return: 0; -errno */
static int bind_for_sdp(int fd, const union abi_sdp_address *address, bool tcp)
{
	struct abi_sdp_request request = {
		.op = ABI_SDP_BIND, .flags = bind_flags(fd), .address = *address};
	struct sdp_name name = {.kind = SDP_BOUND, .flags = flags_of(fd)};
	int session = sdp_session_open();
	int ret = session < 0 ? session : 0;

	if (!ret)
		ret = sdp_session_ask(session, &request, &fd, tcp, &name.names, NULL);
	if (!ret) {
		sdp_address_map(&name.names.local, address->any.sa_family);
		ret = sdp_name_set(session, &name);
	}
	if (ret) {
		if (session >= 0)
			close(session);
		return ret;
	}
	sdp_copy_options(fd, session);
	ret = sdp_take_place(fd, session, -1);
	if (!ret)
		sdp_note_bound(fd);
	return ret;
}

/* Bind for TCP first, which may choose the port, and then for SDP with the same port. If the machine does
 * not have the address, or another node of the fabric uses the port, bind for SDP alone. */
static int bind_for_both(int fd, const struct sockaddr *addr, socklen_t len,
			 union abi_sdp_address *address)
{
	const int failed = sdp_libc.bind(fd, addr, len) ? errno : 0;
	int ret;

	if (failed && failed != EADDRNOTAVAIL && failed != EADDRINUSE)
		return fail(-failed);
	if (!failed) {
		socklen_t room = sizeof(*address);

		sdp_libc.getsockname(fd, &address->any, &room);
	}
	ret = bind_for_sdp(fd, address, !failed);
	if (ret && failed) /* neither succeeded; EADDRINUSE of SDP is the more precise error */
		return fail(ret == -EADDRINUSE ? ret : -failed);
	return 0; /* @fd is bound for TCP, for SDP, or for both */
}

int sdp_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	union abi_sdp_address address;
	int ret;

	if (!sdp_address_of(&address, addr, len))
		return sdp_libc.bind(fd, addr, len);
	switch (use_of(fd, SDP_SERVER, &address)) {
	case SDP_USE_TCP:
		return sdp_libc.bind(fd, addr, len);
	case SDP_USE_BOTH:
		return bind_for_both(fd, addr, len, &address);
	default:
		ret = bind_for_sdp(fd, &address, false);
		return ret ? fail(ret) : 0;
	}
}

/* --- listen --- */

static bool is_bound(int fd)
{
	union abi_sdp_address address;
	socklen_t len = sizeof(address);

	return sdp_libc.getsockname(fd, &address.any, &len) || address.in.sin_port;
}

int sdp_listen(int fd, int backlog)
{
	struct abi_sdp_request request = {.op = ABI_SDP_LISTEN, .number = backlog};
	union abi_sdp_address any;
	struct abi_sdp_names names;
	struct sdp_name name;
	int family, ret;

	if (!sdp_name_get(fd, &name)) {
		if (!sdp_is_tcp(fd, &family) || is_bound(fd))
			return sdp_libc.listen(fd, backlog);
		memset(&any, 0, sizeof(any));
		any.any.sa_family = (sa_family_t)family;
		if (sdp_bind(fd, &any.any, sizeof(any)))
			return -1;
		if (!sdp_name_get(fd, &name))
			return sdp_libc.listen(fd, backlog);
	}
	if (name.kind != SDP_BOUND)
		return fail(-EINVAL);
	if (sdp_is_listening(fd))
		return 0;
	ret = sdp_session_ask(fd, &request, NULL, 0, &names, NULL);
	if (ret)
		return fail(ret);
	sdp_set_listening(fd);
	return 0;
}

/* --- connect --- */

static bool is_nonblocking(int fd)
{
	return fcntl(fd, F_GETFL) & O_NONBLOCK;
}

/* Fill the socket, so that poll(2) reports it as writable only when the peer has read the bytes. Return:
 * the number of bytes; -errno */
static int fill(int fd)
{
	static const char filler[16384];
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int bytes = 0;

	while (bytes < ABI_SDP_FILLER_MAX && poll(&p, 1, 0) == 1) {
		ssize_t n = send(fd, filler, sizeof(filler), MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		bytes += (int)n;
	}
	return bytes;
}

/** struct connecting - a call of connect(). @fd: the program's descriptor, a TCP socket of @family.
 *  @may_fall_back: TCP may be tried if the peer does not speak SDP. @has_address: the program has bound
 *  the socket to an address. @pending: connect() does not wait */
struct connecting {
	int fd, family;
	uint8_t flags;
	bool may_fall_back, has_address, pending;
	const union abi_sdp_address *address;
};

/* Request a connection on @session, whose stream is the socket pair. @returned: set to the connection's
 * shared memory; after an error, to the TCP socket that softibd returns; -1: neither. Return: 0; -errno */
static int ask_for(const struct connecting *c, int session, const int pair[2], int *returned)
{
	struct abi_sdp_request request = {.op = ABI_SDP_CONNECT, .address = *c->address};
	struct sdp_name name = {.kind = SDP_CONNECTED, .flags = c->flags};
	const int fds[2] = {pair[1], c->fd};
	int ret;

	if (c->pending) {
		name.kind = SDP_PENDING;
		request.flags = ABI_SDP_PENDING;
		request.number = fill(pair[0]);
		if (request.number < 0)
			return request.number;
	}
	ret = sdp_session_ask(session, &request, fds,
			      1 + (request.flags && c->may_fall_back), &name.names, returned);
	if (ret)
		return ret;
	/* A socket connected to a loopback address has that address itself, where softibd names the port's. */
	if (!c->has_address && sdp_address_is_loopback(&name.names.peer))
		sdp_address_copy_ip(&name.names.local, &name.names.peer);
	sdp_address_map(&name.names.local, c->family);
	sdp_address_map(&name.names.peer, c->family);
	return sdp_name_set(pair[0], &name);
}

/* Connect on @session, and replace the socket of the descriptor by the stream. Return: 0; -EINPROGRESS;
 * -errno: the descriptor is not changed */
static int connect_by(const struct connecting *c, int session, int *tcp)
{
	struct sdp_connecting_options saved;
	int pair[2], ret, returned = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ret = ask_for(c, session, pair, &returned);
	close(pair[1]);
	if (ret) {
		close(pair[0]);
		if (tcp)
			*tcp = returned;
		else if (returned >= 0)
			close(returned);
		return ret;
	}
	sdp_copy_options(c->fd, pair[0]);
	sdp_save_options(c->fd, &saved);
	ret = sdp_take_place(c->fd, pair[0], -1);
	sdp_memory_keep(c->fd, returned, 0);
	if (!ret)
		sdp_restore_options(c->fd, &saved);
	return !ret && c->pending ? -EINPROGRESS : ret;
}

/* The peer is connected: is the descriptor still the stream @stream? */
static int finish_in_place(const struct connecting *c, int stream, int memory,
			   const struct sdp_connecting_options *saved)
{
	if (!sdp_is_same(c->fd, stream)) {
		if (memory >= 0)
			close(memory);
		return -ECONNABORTED;
	}
	sdp_memory_keep(c->fd, memory, 0);
	sdp_restore_options(c->fd, saved);
	return 0;
}

/* As connect_by(), but the stream takes the place of the socket at once: another thread would else find a
 * TCP socket that is not connected, while the peer has already accepted and, perhaps, ended the
 * connection. If there is none, @original takes the place again, which costs a second walk through
 * /proc/self; so this is for processes that have several threads. Another thread may close or replace the
 * descriptor meanwhile; then that is left alone. */
static int connect_in_place(const struct connecting *c, int session, int original, int pair[2])
{
	struct sdp_connecting_options saved;
	int returned = -1, ret, stream = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);

	if (stream < 0)
		return -errno;
	sdp_copy_options(c->fd, stream);
	sdp_save_options(c->fd, &saved);
	ret = sdp_take_place(c->fd, stream, original);
	if (!ret)
		ret = ask_for(c, session, pair, &returned);
	if (!ret)
		return finish_in_place(c, pair[0], returned, &saved);
	if (returned >= 0)
		close(returned);
	if (sdp_is_same(c->fd, pair[0]))
		sdp_take_place(c->fd, fcntl(original, F_DUPFD_CLOEXEC, 0), -1);
	return ret;
}

static int connect_among_threads(const struct connecting *c, int session)
{
	int pair[2], ret, original = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);

	if (original < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		ret = -errno;
		close(original);
		return ret;
	}
	ret = connect_in_place(c, session, original, pair);
	close(pair[0]);
	close(pair[1]);
	close(original);
	return ret;
}

/* Make the descriptor a TCP socket again, which can be connected. Return: 0; -errno */
static int become_tcp(int fd, const struct sdp_name *name)
{
	const int on = 1;
	int tcp = sdp_libc.socket(name->names.local.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);

	if (tcp < 0)
		return -errno;
	sdp_copy_options(fd, tcp);
	if (name->flags & SDP_FORCED)
		sdp_force(tcp);
	if (name->flags & SDP_REUSEPORT)
		sdp_libc.setsockopt(tcp, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (name->flags & SDP_V6ONLY)
		sdp_libc.setsockopt(tcp, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	return sdp_take_place(fd, tcp, -1);
}

/* connect() of a socket whose connection attempt is under way or has failed, with the errors of Linux: the
 * one of the attempt, unless SO_ERROR has told it, and then the socket can be connected again. Return:
 * -errno */
static int again(int fd, const struct sdp_name *name)
{
	int outcome = sdp_outcome(fd);
	bool told;

	if (outcome == -EINPROGRESS || !outcome)
		return outcome ? -EALREADY : -EISCONN;
	told = !option_of(fd, SOL_SOCKET, SO_ERROR);
	become_tcp(fd, name);
	return told ? -ECONNABORTED : outcome;
}

/* connect() of a socket that is an SDP socket already. */
static int connect_bound(int fd, const struct sdp_name *name, const struct sockaddr *addr,
			 socklen_t len)
{
	union abi_sdp_address address;
	const struct connecting c = {.fd = fd,
				     .family = name->names.local.any.sa_family,
				     .flags = name->flags,
				     .has_address = !sdp_address_is_any(&name->names.local),
				     .pending = is_nonblocking(fd),
				     .address = &address};
	int tcp = -1, ret;

	if (!sdp_address_of(&address, addr, len))
		return fail(-EAFNOSUPPORT);
	if (name->kind == SDP_PENDING)
		return fail(again(fd, name));
	if (name->kind == SDP_CONNECTED || sdp_is_listening(fd))
		return fail(-EISCONN);
	ret = connect_by(&c, fd, &tcp);
	if (!ret)
		return 0;
	if (tcp < 0)
		return fail(ret);
	sdp_copy_options(fd, tcp);
	ret = sdp_take_place(fd, tcp, -1);
	return ret ? fail(ret) : sdp_libc.connect(fd, addr, len);
}

/* Is the TCP socket connected, or is a connection attempt by TCP under way? */
static bool is_busy(int fd)
{
	struct tcp_info info = {.tcpi_state = TCP_CLOSE};
	socklen_t len = sizeof(info);

	return !sdp_libc.getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state != TCP_CLOSE;
}

int sdp_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	union abi_sdp_address address;
	struct connecting c = {.fd = fd, .address = &address};
	struct sdp_name name;
	enum sdp_use use;
	int session, ret;

	if (sdp_name_get(fd, &name))
		return connect_bound(fd, &name, addr, len);
	if (!sdp_is_tcp(fd, &c.family) || is_busy(fd) || !sdp_address_of(&address, addr, len))
		return sdp_libc.connect(fd, addr, len);
	use = use_of(fd, SDP_CLIENT, &address);
	if (use == SDP_USE_TCP)
		return sdp_libc.connect(fd, addr, len);
	c.may_fall_back = use == SDP_USE_BOTH;
	c.flags = flags_of(fd);
	c.pending = is_nonblocking(fd);
	session = sdp_session_open();
	ret = session;
	if (session >= 0) {
		ret = c.pending || __libc_single_threaded ? connect_by(&c, session, NULL)
							     : connect_among_threads(&c, session);
		close(session);
	}
	if (!ret)
		return 0;
	return c.may_fall_back && ret != -EINPROGRESS ? sdp_libc.connect(fd, addr, len) :
							 fail(ret);
}

/* --- accept --- */

int sdp_accept_on(int fd, const struct sdp_name *name, struct sockaddr *addr,
		  socklen_t *len, int flags)
{
	const int family = name->names.local.any.sa_family;
	struct sdp_name made = {.kind = SDP_CONNECTED, .flags = name->flags};
	struct abi_sdp_names *names = &made.names;
	int new, ret, memory;

	if (name->kind != SDP_BOUND || !sdp_is_listening(fd))
		return fail(-EINVAL);
	new = sdp_session_accept(fd, names, &memory);
	if (new == -ENETDOWN) /* The fabric has ended, and poll(2) reports the socket as ready from now on.
				 Pause, or a server that continues would use a whole processor. */
		usleep(DEAD_PAUSE_US);
	if (new < 0)
		return fail(new);
	if (!(flags & SOCK_CLOEXEC))
		fcntl(new, F_SETFD, 0);
	if (flags & SOCK_NONBLOCK)
		fcntl(new, F_SETFL, O_NONBLOCK);
	if (names->local.any.sa_family == AF_UNSPEC) { /* the connection came by TCP */
		if (addr)
			sdp_libc.getpeername(new, addr, len);
		return new;
	}
	if (sdp_address_is_loopback(&names->local)) /* so the peer is on this node as well */
		sdp_address_copy_ip(&names->peer, &names->local);
	sdp_address_map(&names->local, family);
	sdp_address_map(&names->peer, family);
	ret = sdp_name_set(new, &made);
	sdp_memory_keep(new, memory, 1);
	if (!ret)
		sdp_inherit_options(fd, new);
	if (ret) {
		close(new);
		return fail(ret);
	}
	if (sdp_address_put(&names->peer, addr, len)) {
		ret = -errno;
		close(new);
		return fail(ret);
	}
	return new;
}
