/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection of a cable that leaves the fabric: its socket, between the session of the protocol and the outlet. */
#include <errno.h>
#include <netinet/tcp.h>
#include <sodium/randombytes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cable_private.h"
#include "runtime/posix/log.h"

#define READS_PER_TURN	  4
#define HANDSHAKE_NS	  (10 * NSEC_PER_SEC)
#define QUIET_NS	  (10 * NSEC_PER_SEC) /* between two entries of the log about strangers */
#define USER_TIMEOUT_MS	  10000 /* what is not acknowledged for so long ends the connection */
#define KEEPALIVE_SECONDS 3	/* idle time, and between probes, of which there are as many */

static const char *port_name(const struct cable *cable)
{
	return fab_topology(cable->all->fab)->node[cable->index].name;
}

/* --- the end of a connection --- */

void connection_end(struct connection *conn)
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
		rt_timer_arm(&cable->again, mono_add(rt_now(cable->all->rt), CABLE_AGAIN_NS));
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
	connection_end(conn);
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

const struct fab_outlet_ops cable_outlet_ops = {.send = outlet_send, .changed = outlet_changed};

static void session_opened(void *ctx)
{
	struct connection *conn = ctx;
	struct cable *cable = conn->cable;
	struct fab_outlet_link link = fab_outlet_own_link(cable->outlet);

	if (cable->active && cable->active != conn) /* the other side has begun anew, and the old connection does not know it yet */
		connection_end(cable->active);
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

const struct cable_held_ops cable_held_ops = {.offer = held_offer, .done = held_done};

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
	connection_end(conn);
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

bool connection_is_ours(const struct cable *cable, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !cable_address_is_unix(&cable->addr) || cable->has_key ||
	       (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid());
}

const char *cable_by_key(const struct cable *cable)
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
	} else if (!connection_is_ours(conn->cable, conn->fd)) {
		fail(conn, "another user listens there%s", cable_by_key(conn->cable));
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

int connection_begin(struct cable *cable, int fd, bool connecting)
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
