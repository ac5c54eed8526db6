/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The sockets of cables to other softibds: cable.h. */
#include "daemon/cable.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sodium/core.h>
#include <sodium/randombytes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cable/held.h"
#include "fabric/ethernet.h"
#include "rdma/rdma_cm.h"
#include "runtime/posix/log.h"
#include "runtime/posix/rt_posix.h"

#define RX_BYTES	  (256u << 10)
#define READS_PER_TURN	  4
#define STRANGERS_MAX	  8 /* connections to a cable that have not shown yet who they are */
#define HANDSHAKE_NS	  (10 * NSEC_PER_SEC)
#define AGAIN_NS	  (500 * NSEC_PER_MSEC)
#define QUIET_NS	  (10 * NSEC_PER_SEC) /* between two entries of the log about strangers */
#define USER_TIMEOUT_MS	  10000 /* what is not acknowledged for so long ends the connection */
#define KEEPALIVE_SECONDS 3	/* idle time, and between probes, of which there are as many */

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

struct cable;

/** struct connection - a socket, from accept() or connect() to its end */
struct connection {
	struct list_head node; /* cable.connections */
	struct cable *cable;
	struct cable_session session;
	int fd;
	bool connecting;
	struct rt_io io;
	struct rt_timer handshake;
	struct rt_work flush;
	size_t rx_len;
	uint8_t rx[RX_BYTES];
};

struct cable {
	struct list_head node; /* cables.list */
	struct cables *all;
	int index, port; /* of the fabric */
	bool listens, has_key, is_ethernet;
	uint8_t key[CABLE_KEY_BYTES];
	struct fab_frames frames; /* of Ethernet */
	char *address;
	union address addr;
	socklen_t addr_len;
	struct fab_outlet *outlet;
	int listener;
	struct rt_io listener_io;
	struct rt_timer again;
	struct list_head connections;
	struct connection *active; /* the one whose session is open */
	struct cable_held held;
	char error[CABLE_ERROR_BYTES];
	mono_t quiet_until;
	struct cable_status total; /* its counters, of the connections that are over */
	uint64_t discarded;
};

struct cables {
	struct rt *rt;
	struct fabric *fab;
	const char *name;
	uint64_t instance;
	struct list_head list;
};

static const char *port_name(const struct cable *cable)
{
	return fab_topology(cable->all->fab)->node[cable->index].name;
}

/* --- the end of a connection --- */

static void end_connection(struct connection *conn)
{
	struct cable *cable = conn->cable;
	const struct cable_session *s = &conn->session;

	if (cable->active == conn) {
		cable->active = NULL;
		cable->total.packets_sent += s->packets_sent;
		cable->total.packets_received += s->packets_received;
		cable->total.bytes_sent += s->sent;
		cable->total.bytes_received += s->received;
		cable->total.waits += s->waits;
		cable_held_exit(&cable->held);
		fab_outlet_far_link(cable->outlet, NULL);
	}
	rt_io_watch(&conn->io, false, false);
	rt_timer_disarm(&conn->handshake);
	rt_work_cancel(&conn->flush);
	close(conn->fd);
	list_del(&conn->node);
	cable_session_exit(&conn->session);
	rt_free(conn);
	if (!cable->listens && cable->outlet)
		rt_timer_arm(&cable->again, mono_add(rt_now(cable->all->rt), AGAIN_NS));
}

/* Why a connection ends. What a stranger does says nothing about a cable that is connected. An entry of the log is
 * made once, though a cable that connects tries again and again, and strangers make few. */
static void note(struct connection *conn, const char *text, bool log)
{
	struct cable *cable = conn->cable;
	const mono_t now = rt_now(cable->all->rt);
	const bool known = !strcmp(cable->error, text);

	if (cable->active && cable->active != conn)
		return;
	snprintf(cable->error, sizeof(cable->error), "%s", text);
	if (!log || known || (cable->active != conn && mono_before(now, cable->quiet_until)))
		return;
	cable->quiet_until = mono_add(now, QUIET_NS);
	rt_log("cable at %s:%d, %s: %s", port_name(cable), cable->port, cable->address, text);
}

__attribute__((format(printf, 2, 3)))
static void fail(struct connection *conn, const char *fmt, ...)
{
	const struct cable *cable = conn->cable;
	char text[CABLE_ERROR_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	note(conn, text, cable->active == conn || conn->session.state == CABLE_BROKEN);
	end_connection(conn);
}

/* --- writing --- */

static void flush(struct connection *conn)
{
	const uint8_t *bytes;
	size_t len;
	ssize_t n;

	while (bytes = cable_session_output(&conn->session, &len), len) {
		n = send(conn->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) /* an error is reported by the next read, behind what has arrived */
			break;
		cable_session_written(&conn->session, (size_t)n);
	}
	rt_io_watch(&conn->io, !cable_session_is_full(&conn->session), len > 0);
}

static void flush_work(struct rt_work *work)
{
	flush(container_of(work, struct connection, flush));
}

static void flush_later(struct connection *conn)
{
	rt_work_queue(conn->cable->all->rt, &conn->flush);
}

/* --- between the outlet and the session --- */

static int outlet_send(void *ctx, const struct fab_packet *pkt)
{
	struct cable *cable = ctx;
	int ret = cable->active ? cable_session_send(&cable->active->session, pkt) : -ENOTCONN;

	if (ret == -ENOTCONN) /* the link goes down in this turn */
		return 0;
	flush_later(cable->active);
	return ret;
}

static void outlet_changed(void *ctx, const struct fab_outlet_link *link)
{
	struct cable *cable = ctx;

	if (!cable->active)
		return;
	cable_session_link(&cable->active->session, link);
	flush_later(cable->active);
}

static const struct fab_outlet_ops outlet_ops = {.send = outlet_send, .changed = outlet_changed};

static void session_opened(void *ctx)
{
	struct connection *conn = ctx;
	struct cable *cable = conn->cable;
	struct fab_outlet_link link = fab_outlet_own_link(cable->outlet);

	if (cable->active && cable->active != conn) /* the other side has begun anew, and the old connection does not know it yet */
		end_connection(cable->active);
	cable->active = conn;
	cable->error[0] = '\0';
	rt_timer_disarm(&conn->handshake);
	cable_session_link(&conn->session, &link);
}

static void session_far_link(void *ctx, const struct fab_outlet_link *link)
{
	fab_outlet_far_link(((struct connection *)ctx)->cable->outlet, link);
}

static void session_packet(void *ctx, struct fab_packet *pkt)
{
	struct cable *cable = ((struct connection *)ctx)->cable;

	if (pkt->lrh.vl == WIRE_VL_MANAGEMENT)
		fab_outlet_receive(cable->outlet, pkt, false);
	else
		cable_held_packet(&cable->held, pkt);
}

static const struct cable_ops session_ops = {
	.opened = session_opened, .far_link = session_far_link, .packet = session_packet};

static int held_offer(void *ctx, struct fab_packet *pkt, bool again)
{
	return fab_outlet_receive(((struct cable *)ctx)->outlet, pkt, again);
}

static void held_done(void *ctx, size_t bytes, bool discarded)
{
	struct cable *cable = ctx;

	if (discarded) {
		cable->discarded++;
		fab_discard(cable->all->fab, cable->index, cable->port);
	}
	cable_session_consumed(&cable->active->session, bytes);
	flush_later(cable->active);
}

static const struct cable_held_ops held_ops = {.offer = held_offer, .done = held_done};

/* --- reading --- */

static void take_input(struct connection *conn)
{
	ssize_t n = cable_session_input(&conn->session, conn->rx, conn->rx_len);

	if (n < 0) {
		flush(conn); /* what was written before may tell the other side why */
		fail(conn, "%s", conn->session.error);
		return;
	}
	conn->rx_len -= (size_t)n;
	memmove(conn->rx, conn->rx + n, conn->rx_len);
	flush_later(conn);
}

/* The other side was taken down or has pulled its cable, which is no entry for the log; or it refuses what we said. */
static void ended(struct connection *conn)
{
	note(conn, conn == conn->cable->active ? "the other side has ended the connection" :
						 "the other side refuses the connection; its 'softib cable' says why", false);
	end_connection(conn);
}

/* Return: false: nothing more to read, or the connection is over */
static bool read_once(struct connection *conn)
{
	const size_t room = sizeof(conn->rx) - conn->rx_len;
	ssize_t n = recv(conn->fd, conn->rx + conn->rx_len, room, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0)
		fail(conn, "the connection is lost: %s", strerror(errno));
	if (n == 0)
		ended(conn);
	if (n <= 0)
		return false;
	conn->rx_len += (size_t)n;
	take_input(conn);
	return (size_t)n == room;
}

static bool is_alive(const struct cable *cable, const struct connection *conn)
{
	const struct connection *each;

	list_for_each_entry(each, &cable->connections, node)
		if (each == conn)
			return true;
	return false;
}

static int begin_session(struct connection *conn)
{
	struct cable *cable = conn->cable;
	const struct topology *topo = fab_topology(cable->all->fab);
	struct cable_config config = {
		.ops = &session_ops, .ctx = conn, .listens = cable->listens, .key = cable->has_key ? cable->key : NULL,
		.frames = cable->is_ethernet ? &cable->frames : NULL,
		.own = {.instance = cable->all->instance, .guid = topo->node[0].guid},
	};

	snprintf(config.own.name, sizeof(config.own.name), "%.24s/%.32s:%d", cable->all->name, port_name(cable), cable->port);
	randombytes_buf(config.nonce, sizeof(config.nonce));
	return cable_session_init(&conn->session, &config);
}

/* Is the other process this user's, or does the cable not depend on that? The folder of a Unix socket may let others
 * connect, or listen in this user's place. */
static bool is_ours(const struct cable *cable, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return cable->addr.sa.sa_family != AF_UNIX || cable->has_key ||
	       (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid());
}

static const char *by_key(const struct cable *cable)
{
	return cable->is_ethernet ? "" : "; with --key he may";
}

static void start(struct connection *conn)
{
	cable_session_start(&conn->session);
	flush(conn);
}

static void connected(struct connection *conn)
{
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error) {
		fail(conn, "%s", strerror(error));
	} else if (!is_ours(conn->cable, conn->fd)) {
		fail(conn, "another user listens there%s", by_key(conn->cable));
	} else {
		conn->connecting = false;
		start(conn);
	}
}

static void ready(struct rt_io *io, bool readable, bool writable)
{
	struct connection *conn = container_of(io, struct connection, io);
	struct cable *cable = conn->cable;
	unsigned int n = 0;

	if (conn->connecting) {
		connected(conn);
		return;
	}
	if (writable)
		flush(conn);
	while (readable && n++ < READS_PER_TURN && !cable_session_is_full(&conn->session) && read_once(conn))
		if (!is_alive(cable, conn))
			return;
}

static void too_slow(struct rt_timer *timer)
{
	fail(container_of(timer, struct connection, handshake), "the other side does not answer");
}

static void set_options(int fd)
{
	const int on = 1, seconds = KEEPALIVE_SECONDS, timeout = USER_TIMEOUT_MS;

	/* a Unix socket refuses those of TCP, and needs none */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &seconds, sizeof(seconds));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
}

/* @fd: this function's. Return: 0; -ENOMEM */
static int begin_connection(struct cable *cable, int fd, bool connecting)
{
	struct rt *rt = cable->all->rt;
	struct connection *conn = rt_zalloc(sizeof(*conn));

	if (!conn) {
		close(fd);
		return -ENOMEM;
	}
	conn->cable = cable;
	conn->fd = fd;
	conn->connecting = connecting;
	if (begin_session(conn)) {
		close(fd);
		rt_free(conn);
		return -ENOMEM;
	}
	set_options(fd);
	list_add_tail(&conn->node, &cable->connections);
	rt_io_init(rt, &conn->io, fd, ready);
	rt_work_init(&conn->flush, flush_work);
	rt_timer_init(rt, &conn->handshake, too_slow);
	rt_timer_arm(&conn->handshake, mono_add(rt_now(rt), HANDSHAKE_NS));
	if (connecting)
		rt_io_watch(&conn->io, false, true);
	else
		start(conn);
	return 0;
}

/* --- connecting --- */

static void try_connect(struct cable *cable)
{
	int fd = socket(cable->addr.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;

	if (fd < 0)
		error = errno;
	else if (connect(fd, &cable->addr.sa, cable->addr_len) && errno != EINPROGRESS)
		error = errno;
	if (!error) {
		error = -begin_connection(cable, fd, true);
		fd = -1;
	}
	if (!error)
		return;
	snprintf(cable->error, sizeof(cable->error), "%s", strerror(error));
	if (fd >= 0)
		close(fd);
	rt_timer_arm(&cable->again, mono_add(rt_now(cable->all->rt), AGAIN_NS));
}

static void try_again(struct rt_timer *timer)
{
	struct cable *cable = container_of(timer, struct cable, again);

	if (cable->listens)
		rt_io_watch(&cable->listener_io, true, false);
	else
		try_connect(cable);
}

/* --- listening --- */

/* The oldest of too many strangers goes: one who knows what to say needs a moment alone, and is not kept out by
 * those who say nothing. */
static void make_room(struct cable *cable)
{
	struct connection *conn, *oldest = NULL;
	unsigned int strangers = 0;

	list_for_each_entry(conn, &cable->connections, node) {
		if (conn == cable->active)
			continue;
		strangers++;
		if (!oldest)
			oldest = conn;
	}
	if (strangers >= STRANGERS_MAX)
		end_connection(oldest);
}

static void arrives(struct rt_io *io, bool readable, bool writable)
{
	struct cable *cable = container_of(io, struct cable, listener_io);
	int fd = accept4(cable->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
		/* no descriptor is left, say: the connection stays in the queue of the socket */
		rt_io_watch(io, false, false);
		rt_timer_arm(&cable->again, mono_add(rt_now(cable->all->rt), AGAIN_NS));
	}
	if (fd < 0)
		return;
	if (cable->is_ethernet && cable->active) {
		snprintf(cable->error, sizeof(cable->error), "a second program tried to connect; it needs a cable of its own");
		close(fd);
		return;
	}
	if (is_ours(cable, fd)) {
		make_room(cable);
		begin_connection(cable, fd, false);
		return;
	}
	snprintf(cable->error, sizeof(cable->error), "another user tried to connect%s", by_key(cable));
	close(fd);
}

/* A socket file that nobody listens at is what a softibd left that was killed. (Any other file refuses as well.) */
static bool is_stale(const struct cable *cable)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	bool refused = fd >= 0 && !lstat(cable->address, &st) && S_ISSOCK(st.st_mode) &&
		       connect(fd, &cable->addr.sa, cable->addr_len) && errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return refused;
}

static int bind_to(struct cable *cable)
{
	const bool is_unix = cable->addr.sa.sa_family == AF_UNIX;
	const mode_t mask = umask(0177); /* a socket file is for its user alone, from its first moment on */
	int ret = bind(cable->listener, &cable->addr.sa, cable->addr_len) ? -errno : 0;

	if (ret == -EADDRINUSE && is_unix && is_stale(cable) && !unlink(cable->address))
		ret = bind(cable->listener, &cable->addr.sa, cable->addr_len) ? -errno : 0;
	umask(mask);
	return ret;
}

static int begin_listening(struct cable *cable)
{
	const int on = 1;
	int ret;

	cable->listener = socket(cable->addr.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (cable->listener < 0)
		return -errno;
	setsockopt(cable->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	ret = bind_to(cable);
	if (!ret && listen(cable->listener, STRANGERS_MAX))
		ret = -errno;
	if (ret) {
		close(cable->listener);
		cable->listener = -1;
		return ret;
	}
	rt_io_init(cable->all->rt, &cable->listener_io, cable->listener, arrives);
	rt_io_watch(&cable->listener_io, true, false);
	return 0;
}

static void end_listening(struct cable *cable)
{
	if (cable->listener < 0)
		return;
	rt_io_watch(&cable->listener_io, false, false);
	close(cable->listener);
	if (cable->addr.sa.sa_family == AF_UNIX)
		unlink(cable->address);
}

/* --- addresses --- */

static bool parse_port(const char *text, in_port_t *port)
{
	char *end;
	long n = strtol(text, &end, 10);

	*port = htons((uint16_t)n);
	return *text >= '0' && *text <= '9' && !*end && n >= 1 && n <= 65535;
}

/* "10.0.0.1:7471", "[::1]:7471", "/run/user/1000/cable" */
static bool parse_address(const char *text, union address *addr, socklen_t *len)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	size_t n;

	*addr = (union address){0};
	if (text[0] == '/') {
		addr->un.sun_family = AF_UNIX;
		*len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(text) + 1);
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
		*len = sizeof(addr->in);
		return inet_pton(AF_INET, host, &addr->in.sin_addr) == 1 && parse_port(colon + 1, &addr->in.sin_port);
	}
	host[n - 1] = '\0';
	addr->in6.sin6_family = AF_INET6;
	*len = sizeof(addr->in6);
	return text[n - 1] == ']' && inet_pton(AF_INET6, host + 1, &addr->in6.sin6_addr) == 1 &&
	       parse_port(colon + 1, &addr->in6.sin6_port);
}

/* --- cables --- */

static void free_cable(struct cable *cable)
{
	struct connection *conn, *tmp;
	struct fab_outlet *outlet = cable->outlet;

	end_listening(cable);
	list_for_each_entry_safe(conn, tmp, &cable->connections, node)
		end_connection(conn);
	rt_timer_disarm(&cable->again);
	cable_held_exit(&cable->held);
	if (outlet)
		fab_outlet_destroy(outlet);
	list_del(&cable->node);
	if (list_empty(&cable->all->list))
		rdma_cm_publish(cable->all->rt, false);
	free(cable->address);
	rt_free(cable);
}

static struct cable *make_cable(struct cables *cables, const struct cable_request *req)
{
	struct cable *cable = rt_zalloc(sizeof(*cable));

	if (!cable)
		return NULL;
	cable->all = cables;
	cable->index = req->node;
	cable->port = req->port;
	cable->listens = req->listens;
	cable->listener = -1;
	cable->has_key = req->key != NULL;
	cable->is_ethernet = fab_is_ethernet(cables->fab, req->node, req->port);
	cable->frames = (struct fab_frames){.fab = cables->fab, .node = req->node, .port = req->port};
	if (req->key)
		memcpy(cable->key, req->key, sizeof(cable->key));
	cable->address = strdup(req->address);
	INIT_LIST_HEAD(&cable->connections);
	list_add_tail(&cable->node, &cables->list);
	rt_timer_init(cables->rt, &cable->again, try_again);
	cable_held_init(&cable->held, cables->rt, &held_ops, cable);
	return cable;
}

static int explain(int error, const struct cable_request *req, char *err)
{
	snprintf(err, CABLE_ERROR_BYTES, "%.160s: %s", req->address, strerror(-error));
	return error;
}

/* Of fab_outlet_create(), which alone knows these errors. */
static int explain_port(int error, const struct cable_request *req, char *err)
{
	static const struct {
		int error;
		const char *text;
	} texts[] = {
		{-EBUSY, "this port has a cable; 'softib topo' shows those that are free"},
		{-ENOENT, "there is no such port"},
		{-ENOSPC, "the fabric has as many cables that leave it as it can have; remove one"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].error == error) {
			snprintf(err, CABLE_ERROR_BYTES, "%s", texts[i].text);
			return error;
		}
	return explain(error, req, err);
}

static bool is_loopback(const union address *addr)
{
	return addr->sa.sa_family == AF_INET ? ntohl(addr->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET :
					       IN6_IS_ADDR_LOOPBACK(&addr->in6.sin6_addr);
}

/* Who connects by TCP has to show who he is, which programs with frames of Ethernet cannot. */
static bool is_allowed(const struct cables *cables, const struct cable_request *req, const union address *addr, char *err)
{
	const bool is_tcp = addr->sa.sa_family != AF_UNIX, ethernet = fab_is_ethernet(cables->fab, req->node, req->port);

	if (ethernet && req->key)
		snprintf(err, CABLE_ERROR_BYTES, "the frames of a cable of Ethernet know no key; leave --key out");
	else if (ethernet && is_tcp && req->listens && !is_loopback(addr))
		snprintf(err, CABLE_ERROR_BYTES, "a cable of Ethernet knows no key, and listens only at a Unix socket or at "
						 "an address of this host itself, such as 127.0.0.1");
	else if (!ethernet && is_tcp && !req->key)
		snprintf(err, CABLE_ERROR_BYTES, "a cable by TCP needs a key that both sides have: --key FILE");
	else
		return true;
	return false;
}

int cables_add(struct cables *cables, const struct cable_request *req, char err[CABLE_ERROR_BYTES])
{
	struct cable *cable;
	union address addr;
	socklen_t len = 0;
	int ret;

	if (!parse_address(req->address, &addr, &len)) {
		snprintf(err, CABLE_ERROR_BYTES, "'%.100s' is no address: expected HOST:PORT, [IPV6]:PORT or the path of a "
						 "Unix socket", req->address);
		return -EINVAL;
	}
	if (!is_allowed(cables, req, &addr, err))
		return -EINVAL;
	cable = make_cable(cables, req);
	if (!cable)
		return explain(-ENOMEM, req, err);
	cable->addr = addr;
	cable->addr_len = len;
	ret = cable->address ? fab_outlet_create(cables->fab, req->node, req->port, &outlet_ops, cable, &cable->outlet) :
			       -ENOMEM;
	if (ret) {
		free_cable(cable);
		return explain_port(ret, req, err);
	}
	ret = req->listens ? begin_listening(cable) : 0;
	if (ret) {
		free_cable(cable);
		return explain(ret, req, err);
	}
	if (!cable->is_ethernet)
		rdma_cm_publish(cables->rt, true);
	if (!req->listens)
		try_connect(cable);
	return 0;
}

int cables_remove(struct cables *cables, int node, int port)
{
	struct cable *cable;

	list_for_each_entry(cable, &cables->list, node)
		if (cable->index == node && cable->port == port) {
			free_cable(cable);
			return 0;
		}
	return -ENOENT;
}

static void fill_status(const struct cable *cable, struct cable_status *status)
{
	const struct cable_session *s = cable->active ? &cable->active->session : NULL;

	*status = cable->total;
	status->node = cable->index;
	status->port = cable->port;
	status->listens = cable->listens;
	status->has_key = cable->has_key;
	status->address = cable->address;
	status->connected = s != NULL;
	status->far = !s ? "" : cable->is_ethernet ? "a program with Ethernet" : s->far.name;
	status->is_ethernet = cable->is_ethernet;
	status->malformed = cable->frames.malformed + cable->frames.wrong_length;
	status->spoofed = cable->frames.spoofed;
	status->error = cable->error;
	status->discarded = cable->discarded;
	if (!s)
		return;
	status->packets_sent += s->packets_sent;
	status->packets_received += s->packets_received;
	status->bytes_sent += s->sent;
	status->bytes_received += s->received;
	status->waits += s->waits;
}

bool cables_get(const struct cables *cables, unsigned int i, struct cable_status *status)
{
	const struct cable *cable;

	list_for_each_entry(cable, &cables->list, node)
		if (!i--) {
			fill_status(cable, status);
			return true;
		}
	return false;
}

struct cables *cables_create(struct rt *rt, struct fabric *fab, const char *name)
{
	struct cables *cables = sodium_init() < 0 ? NULL : rt_zalloc(sizeof(*cables));

	if (!cables)
		return NULL;
	cables->rt = rt;
	cables->fab = fab;
	cables->name = name;
	randombytes_buf(&cables->instance, sizeof(cables->instance));
	INIT_LIST_HEAD(&cables->list);
	return cables;
}

void cables_destroy(struct cables *cables)
{
	struct cable *cable, *tmp;

	if (!cables)
		return;
	list_for_each_entry_safe(cable, tmp, &cables->list, node)
		free_cable(cable);
	rt_free(cables);
}
