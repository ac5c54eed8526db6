/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sessions of the "sdp" endpoint. A session is one SDP socket. It may have a TCP socket that listens
 * on the same port: connections of both are passed to the program in the order of arrival.
 *
 * A program need not wait until its connection is established (ABI_SDP_PENDING). Such a session is
 * detached: softibd closes its descriptor when the addresses are known, and the session ends when the
 * connection attempt has succeeded or failed.
 */
#include "access/sdp.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/sdp.h"
#include "abi/session.h"
#include "access/devices.h"
#include "access/quota.h"
#include "access/sdp_relay.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/foreign.h"
#include "ulp/sdp/socket.h"

#define FDS_OF_A_SESSION    3
#define FDS_OF_A_CONNECTION 3 /* the stream; the program's end until it has been accepted; shared memory */
#define CALL_AGAIN_NS	 (100 * NSEC_PER_MSEC)
#define BACKLOG_MAX	 4096 /* connections of a session that the program has not accepted */
#define DETACHED_MAX	 512  /* detached sessions; further programs wait for their connections */

struct sdp_endpoint {
	struct rt *rt;
	struct listener *listener;
	struct list_head sessions;
	unsigned int num_detached;
	struct list_head relays; /* sdp_relay.c */
};

/** struct waiting - an accepted connection for which the session's socket had no room */
struct waiting {
	struct list_head node;
	struct abi_sdp_names names;
	int fd[2]; /* the connection, and its shared memory or -1 */
};

struct session {
	struct list_head node;
	struct sdp_endpoint *endpoint;
	struct sdp_socket *socket; /* NULL: the opening message has not arrived */
	pid_t pid; /* of the program; 0: not known */
	int fd, tcp_fd;
	struct rt_io io, tcp_io;
	bool connecting, listening;
	bool dialling; /* the TCP socket is connecting */
	struct rt_foreign_call *call; /* of a thread, on the TCP socket; NULL */
	struct rt_timer call_again; /* armed: there was no thread or descriptor for it */
	bool pending, detached; /* pending: the program does not wait; detached: it has been answered */
	int stream_fd;		/* softibd's end of the stream of a pending connection; -1 */
	u32 filler_bytes;
	union abi_sdp_address peer;
	struct list_head queue; /* struct waiting */
	unsigned int num_queued;
	struct rt_work end;
	struct quota_share quota;
};

/* --- the end --- */

static void close_waiting(struct session *s, struct waiting *w)
{
	rt_close_foreign(w->fd[0]);
	if (w->fd[1] >= 0)
		close(w->fd[1]);
	list_del(&w->node);
	rt_free(w);
	s->num_queued--;
}

static void close_tcp(struct session *s)
{
	if (s->tcp_fd < 0)
		return;
	if (s->call)
		rt_foreign_abandon(s->call);
	rt_timer_disarm(&s->call_again);
	if (s->listening || s->dialling)
		rt_io_watch(&s->tcp_io, false, false);
	rt_close_foreign(s->tcp_fd);
	s->tcp_fd = -1;
}

static void close_session(struct session *s)
{
	rt_work_cancel(&s->end);
	rt_io_watch(&s->io, false, false);
	close_tcp(s);
	if (s->stream_fd >= 0)
		rt_close_foreign(s->stream_fd);
	while (!list_empty(&s->queue))
		close_waiting(s, list_first_entry(&s->queue, struct waiting, node));
	if (s->socket)
		sdp_socket_destroy(s->socket);
	if (s->detached)
		s->endpoint->num_detached--;
	else
		rt_close_socket(s->fd);
	quota_leave(&s->quota);
	list_del(&s->node);
	rt_free(s);
}

/* End the session later, because a callback of its own socket is running. */
static void close_soon(struct session *s)
{
	rt_work_queue(s->endpoint->rt, &s->end);
}

static void on_end(struct rt_work *work)
{
	close_session(container_of(work, struct session, end));
}

/* --- addresses --- */

static union abi_sdp_address put_address(const struct sockaddr_storage *from)
{
	union abi_sdp_address to;

	memset(&to, 0, sizeof(to));
	memcpy(&to, from,
	       from->ss_family == AF_INET6 ? sizeof(to.in6) : sizeof(to.in));
	return to;
}

static struct abi_sdp_names put_names(const struct rdma_addr *addr)
{
	return (struct abi_sdp_names){put_address(&addr->src_addr),
				      put_address(&addr->dst_addr)};
}

/* --- connections for accept() --- */

static int send_waiting(struct session *s, const struct waiting *w)
{
	return endpoint_send(s->fd, 0, &w->names, sizeof(w->names), w->fd,
			     w->fd[1] >= 0 ? 2 : 1);
}

static void watch(struct session *s)
{
	const bool full = !list_empty(&s->queue);

	rt_io_watch(&s->io, true, full);
	if (s->listening && s->tcp_fd >= 0)
		rt_io_watch(&s->tcp_io, !full && !s->call && !rt_timer_armed(&s->call_again), false);
}

/* Return: 0; -errno: the program has closed its socket */
static int send_queue(struct session *s)
{
	int ret = 0;

	while (!ret && !list_empty(&s->queue)) {
		struct waiting *w = list_first_entry(&s->queue, struct waiting, node);

		ret = send_waiting(s, w);
		if (!ret)
			close_waiting(s, w);
	}
	watch(s);
	return ret == -EAGAIN ? 0 : ret;
}

/* Pass a connection to the program. @fd: ownership is taken, also on failure; @memory: remains the
 * caller's; -1: none. Return: 0; -errno */
static int hand_over(struct session *s, int fd, const struct abi_sdp_names *names, int memory)
{
	struct waiting *w;

	if (s->num_queued >= BACKLOG_MAX || !(w = rt_zalloc(sizeof(*w)))) {
		rt_close_foreign(fd);
		return -ENOMEM;
	}
	w->fd[0] = fd;
	w->fd[1] = memory >= 0 ? fcntl(memory, F_DUPFD_CLOEXEC, 0) : -1;
	w->names = *names;
	list_add_tail(&w->node, &s->queue);
	s->num_queued++;
	if (send_queue(s))
		close_soon(s);
	return 0;
}

static int on_accepted(void *ctx, int fd, const struct rdma_addr *addr, int memory)
{
	const struct abi_sdp_names names = put_names(addr);

	return hand_over(ctx, fd, &names, memory);
}

static void on_tcp_accepted(void *ctx, int result)
{
	const struct abi_sdp_names none = {.local.any.sa_family = AF_UNSPEC};
	struct session *s = ctx;

	s->call = NULL;
	if (result >= 0)
		hand_over(s, result, &none, -1);
	else
		watch(s);
}

/* The program, which has the socket as well, may have made it blocking, and may accept the connection
 * itself meanwhile. */
static void on_tcp(struct rt_io *io, bool readable, bool writable)
{
	struct session *s = container_of(io, struct session, tcp_io);

	if (rt_foreign_accept(s->endpoint->rt, s->tcp_fd, on_tcp_accepted, s, &s->call))
		rt_timer_arm(&s->call_again, mono_add(rt_now(s->endpoint->rt), CALL_AGAIN_NS));
	rt_io_watch(io, false, false);
}

static void on_call_again(struct rt_timer *timer)
{
	watch(container_of(timer, struct session, call_again));
}

/* --- quotas --- */

/** struct charge - of a connection, which stays when the session by which it was made has ended */
struct charge {
	struct quota_share quota;
	struct quota_node *node; /* the memory is its */
	unsigned int times;	 /* quota_take() */
	size_t bytes;
};

static bool take(void *charged, size_t bytes)
{
	struct charge *c = charged;
	struct quota_node *node = quota_take(&c->quota, bytes);

	if (!node)
		return false;
	c->node = node;
	c->times++;
	c->bytes += bytes;
	return true;
}

static void release(void *charged)
{
	struct charge *c = charged;

	for (; c->times; c->times--, c->bytes = 0)
		quota_give(c->node, &c->quota, c->bytes);
	quota_leave(&c->quota);
	rt_free(c);
}

static void *charge(void *ctx, int fd)
{
	const struct session *s = ctx;
	struct charge *c = rt_zalloc(sizeof(*c));

	if (!c || quota_join(&c->quota, &s->quota, fd, FDS_OF_A_CONNECTION)) {
		rt_free(c);
		return NULL;
	}
	if (take(c, SDP_CONN_BYTES))
		return c;
	release(c);
	return NULL;
}

/* --- pending connections --- */

/* Receive the bytes that kept the program's end from becoming writable while the connection was pending.
 * Return: false: they are not all there */
static bool discard_filler(const struct session *s)
{
	char bytes[16384];
	u32 left = s->filler_bytes;

	while (left) {
		ssize_t n = rt_receive(s->stream_fd, bytes, MIN(left, (u32)sizeof(bytes)),
				       MSG_DONTWAIT, NULL, 0);

		if (n <= 0)
			return false;
		left -= (u32)n;
	}
	return true;
}

/* Tell the program of a pending connection the outcome: @error is 0 or an errno. The outcome is the name
 * of the stream's end. It is bound first, because a program that is woken reads it at once. */
static void announce(struct session *s, int error)
{
	struct sockaddr_un addr;
	socklen_t len = abi_sdp_outcome_name(&addr, error, (u64)rt_random(s->endpoint->rt) << 32 |
							   rt_random(s->endpoint->rt));

	if (bind(s->stream_fd, (struct sockaddr *)&addr, len) || (!error && !discard_filler(s)))
		shutdown(s->stream_fd, SHUT_RDWR);
}

/* The attempt to connect the TCP socket has succeeded or failed. */
static void on_dialled(struct rt_io *io, bool readable, bool writable)
{
	struct session *s = container_of(io, struct session, tcp_io);
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(s->tcp_fd, SOL_SOCKET, SO_ERROR, &error, &len);
	rt_io_watch(&s->tcp_io, false, false);
	s->dialling = false;
	announce(s, error);
	if (!error && !sdp_relay_begin(s->endpoint->rt, &s->endpoint->relays, &s->quota, s->stream_fd,
				       s->tcp_fd))
		s->stream_fd = s->tcp_fd = -1;
	close_session(s);
}

static void on_dialling(void *ctx, int result)
{
	struct session *s = ctx;

	s->call = NULL;
	if (result && result != -EINPROGRESS) {
		announce(s, -result);
		close_session(s);
		return;
	}
	s->dialling = true;
	rt_io_init(s->endpoint->rt, &s->tcp_io, s->tcp_fd, on_dialled);
	rt_io_watch(&s->tcp_io, false, true);
}

/* The peer does not speak SDP: try TCP. Return: false: there is no attempt under way */
static bool dial(struct session *s)
{
	const struct sockaddr *addr = &s->peer.any;
	const socklen_t len =
		addr->sa_family == AF_INET6 ? sizeof(s->peer.in6) : sizeof(s->peer.in);

	return !fcntl(s->tcp_fd, F_SETFL, O_NONBLOCK) &&
	       !rt_foreign_connect(s->endpoint->rt, s->tcp_fd, addr, len, on_dialling, s, &s->call);
}

/* --- requests --- */

static int answer(struct session *s, int error, const struct abi_sdp_names *names, const int *fd)
{
	const struct abi_sdp_names none = {.local.any.sa_family = AF_UNSPEC};

	return endpoint_send(s->fd, error, names ? names : &none, sizeof(*names), fd,
			     fd && *fd >= 0);
}

static void on_connected(void *ctx, int error, const struct rdma_addr *addr, int memory)
{
	const struct abi_sdp_names names = put_names(addr);
	struct session *s = ctx;

	if (s->pending && !error)
		announce(s, 0);
	if (!s->detached)
		answer(s, error, &names, error ? &s->tcp_fd : &memory);
	else if (error && s->tcp_fd >= 0 && dial(s))
		return;
	else if (error)
		announce(s, -error);
	close_soon(s);
}

/* The addresses of a pending connection are known: answer the program, which then closes its descriptor
 * of the session. */
static void on_resolved(void *ctx, const struct rdma_addr *addr, int memory)
{
	const struct abi_sdp_names names = put_names(addr);
	struct session *s = ctx;

	if (!s->pending || s->endpoint->num_detached >= DETACHED_MAX)
		return;
	if (answer(s, 0, &names, &memory)) {
		close_soon(s);
		return;
	}
	rt_io_watch(&s->io, false, false);
	rt_close_socket(s->fd);
	s->fd = -1;
	s->detached = true;
	s->endpoint->num_detached++;
}

static bool is_socket(int fd, int domain)
{
	int value = 0, type = 0;
	socklen_t len = sizeof(value);

	return fd >= 0 && !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len) &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && type == SOCK_STREAM &&
	       (value == domain || (domain == AF_INET && value == AF_INET6));
}

static bool is_address(const union abi_sdp_address *address)
{
	return address->any.sa_family == AF_INET || address->any.sa_family == AF_INET6;
}

static int do_bind(struct session *s, const struct abi_sdp_request *request, int *fd)
{
	int ret;

	if (!is_address(&request->address))
		return -EAFNOSUPPORT;
	if (*fd >= 0 && (s->tcp_fd >= 0 || !is_socket(*fd, AF_INET)))
		return -EINVAL;
	ret = sdp_socket_bind(s->socket, &request->address.any,
			      request->flags & ABI_SDP_REUSE,
			      request->flags & ABI_SDP_V6ONLY);
	if (ret || *fd < 0)
		return ret;
	s->tcp_fd = *fd;
	*fd = -1;
	return 0;
}

static int do_listen(struct session *s, int backlog)
{
	if (s->tcp_fd >= 0 && (fcntl(s->tcp_fd, F_SETFL, O_NONBLOCK) ||
			       listen(s->tcp_fd, backlog > 0 ? backlog : 1)))
		return -errno;
	if (s->listening)
		return 0; /* a further listen() only changes the backlog */
	return sdp_socket_listen(s->socket, 0);
}

static void begin_listening(struct session *s)
{
	s->listening = true;
	if (s->tcp_fd >= 0)
		rt_io_init(s->endpoint->rt, &s->tcp_io, s->tcp_fd, on_tcp);
	watch(s);
}

/* @fds: the second one, if any, is a TCP socket to try if the peer does not speak SDP. Return: 0; -errno */
static int prepare_pending(struct session *s, const struct abi_sdp_request *request, int *fds)
{
	if (request->number < 0 || request->number > ABI_SDP_FILLER_MAX ||
	    (fds[1] >= 0 && (s->tcp_fd >= 0 || !is_socket(fds[1], AF_INET))))
		return -EINVAL;
	s->stream_fd = fcntl(fds[0], F_DUPFD_CLOEXEC, 0);
	if (s->stream_fd < 0)
		return -errno;
	if (fds[1] >= 0) {
		s->tcp_fd = fds[1];
		fds[1] = -1;
	}
	s->pending = true;
	s->filler_bytes = (u32)request->number;
	s->peer = request->address;
	return 0;
}

static int do_connect(struct session *s, const struct abi_sdp_request *request, int *fds)
{
	int stream = fds[0], ret = 0;

	if (s->connecting || s->listening)
		return -EISCONN;
	if (!is_address(&request->address) || !is_socket(stream, AF_UNIX))
		return -EINVAL;
	if (request->flags & ABI_SDP_PENDING)
		ret = prepare_pending(s, request, fds);
	if (ret)
		return ret;
	fds[0] = -1;
	s->connecting = true;
	return sdp_socket_connect(s->socket, &request->address.any, stream);
}

/* Return: 0; -errno */
static int do_options(struct session *s, const struct abi_sdp_request *request, int fd)
{
	const struct abi_sdp_options *o = &request->options;
	const struct sdp_options options = {.keep_idle_s = o->keep_idle_s,
					    .keep_interval_s = o->keep_interval_s,
					    .keep_count = o->keep_count,
					    .send_bytes = o->send_bytes,
					    .receive_bytes = o->receive_bytes};
	struct sockaddr_un name;
	socklen_t len = sizeof(name);

	if (!is_socket(fd, AF_UNIX) || (o->keep_idle_s && (!o->keep_interval_s || !o->keep_count)))
		return -EINVAL;
	if (getsockname(fd, (struct sockaddr *)&name, &len))
		return -errno;
	return sdp_set_options(s->endpoint->rt, &name, len, &options);
}

static int serve_request(struct session *s, const struct abi_sdp_request *request, int *fds)
{
	struct rdma_addr addr = {.src_addr = {0}};
	struct abi_sdp_names names;
	int ret = -EINVAL;

	if (request->op == ABI_SDP_BIND)
		ret = do_bind(s, request, fds);
	else if (request->op == ABI_SDP_LISTEN)
		ret = do_listen(s, request->number);
	else if (request->op == ABI_SDP_CONNECT)
		ret = do_connect(s, request, fds);
	else if (request->op == ABI_SDP_OPTIONS)
		ret = do_options(s, request, fds[0]);
	if (!ret && request->op == ABI_SDP_CONNECT)
		return 0; /* on_connected() will answer */
	addr.src_addr = *sdp_socket_address(s->socket);
	names = put_names(&addr);
	if (answer(s, ret, &names, request->op == ABI_SDP_CONNECT ? &s->tcp_fd : NULL))
		return -EPIPE;
	if (!ret && request->op == ABI_SDP_LISTEN && !s->listening)
		begin_listening(s);
	return 0;
}

/* --- messages --- */

static int open_socket(struct session *s, const void *message, size_t bytes)
{
	static const struct sdp_socket_ops ops = {.connected = on_connected,
						  .accepted = on_accepted,
						  .resolved = on_resolved,
						  .charge = charge,
						  .take = take,
						  .release = release};
	struct sdp_socket *socket;
	struct abi_open open;
	const char *node;
	int ret = devices_open_is_sound(message, bytes, &open);

	if (ret)
		return ret;
	if (open.kind != ABI_OPEN_SDP)
		return -EINVAL;
	node = devices_node(s->endpoint->rt, open.node);
	if (!node)
		return -ENOENT;
	ret = quota_open(&s->quota, node);
	if (ret)
		return ret;
	socket = sdp_socket_create(s->endpoint->rt, node, &ops, s);
	if (IS_ERR(socket))
		return (int)PTR_ERR(socket);
	s->socket = socket;
	return 0;
}

/* Return: 0; else the session is to be closed */
static int take_message(struct session *s, const void *message, size_t bytes, int *fds)
{
	struct abi_sdp_request request;
	int ret;

	if (!s->socket) {
		ret = open_socket(s, message, bytes);
		return endpoint_send(s->fd, ret, NULL, 0, NULL, 0) || ret;
	}
	if (bytes != sizeof(request))
		return answer(s, -EINVAL, NULL, NULL);
	memcpy(&request, message, sizeof(request));
	return serve_request(s, &request, fds);
}

static void on_message(struct rt_io *io, bool readable, bool writable)
{
	struct session *s = container_of(io, struct session, io);
	_Alignas(8) char message[sizeof(struct abi_open)];
	int fds[2] = {-1, -1}, ret = 0;
	ssize_t n;

	if (writable)
		ret = send_queue(s);
	if (readable && !ret) {
		n = rt_receive(s->fd, message, sizeof(message), MSG_DONTWAIT, fds, 2);
		if (n > 0)
			ret = take_message(s, message, (size_t)n, fds);
		else if (n != -EAGAIN && n != -EINTR)
			ret = -ECONNRESET;
	}
	rt_close_foreign_all(fds, 2);
	if (ret)
		close_session(s);
}

/* --- the endpoint --- */

static void drop_newcomer(struct quota_share *quota)
{
	close_session(container_of(quota, struct session, quota));
}

void sdp_endpoint_serve(struct sdp_endpoint *endpoint, int fd, const struct peer *peer)
{
	struct session *s = session_alloc(
		peer, fd, sessions_of_process(peer, &endpoint->sessions, struct session, pid),
		FDS_OF_A_SESSION, sizeof(*s));

	if (!s)
		return;
	s->pid = peer ? peer->pid : 0;
	s->endpoint = endpoint;
	s->fd = fd;
	s->tcp_fd = s->stream_fd = -1;
	INIT_LIST_HEAD(&s->queue);
	rt_work_init(&s->end, on_end);
	rt_timer_init(endpoint->rt, &s->call_again, on_call_again);
	list_add_tail(&s->node, &endpoint->sessions);
	rt_io_init(endpoint->rt, &s->io, fd, on_message);
	rt_io_watch(&s->io, true, false);
	quota_arrive(&s->quota, endpoint->rt, fd, FDS_OF_A_SESSION, drop_newcomer);
}

static void on_connection(void *ctx, int fd, const struct peer *peer)
{
	sdp_endpoint_serve(ctx, fd, peer);
}

int sdp_endpoint_create(struct rt *rt, const char *dir, struct sdp_endpoint **out)
{
	struct sdp_endpoint *endpoint = rt_zalloc(sizeof(*endpoint));
	int ret = 0;

	if (!endpoint)
		return -ENOMEM;
	endpoint->rt = rt;
	INIT_LIST_HEAD(&endpoint->sessions);
	INIT_LIST_HEAD(&endpoint->relays);
	if (dir)
		ret = listener_create(rt, dir, "sdp", on_connection, endpoint,
				      &endpoint->listener);
	if (ret)
		rt_free(endpoint);
	else
		*out = endpoint;
	return ret;
}

void sdp_endpoint_destroy(struct sdp_endpoint *endpoint)
{
	if (endpoint->listener)
		listener_destroy(endpoint->listener);
	while (!list_empty(&endpoint->sessions))
		close_session(
			list_first_entry(&endpoint->sessions, struct session, node));
	sdp_relay_end_all(&endpoint->relays);
	sdp_close_all(endpoint->rt);
	rt_free(endpoint);
}
