/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Logical units as NBD exports: one Unix socket for all units of the fabric, and its connections. A
 * connection reads requests one after the other. The data of a write are read directly into the
 * memory of a slot. A connection stops reading while it has SLOTS_MOST slots or HELD_MOST bytes of
 * their memory, or no slot is free. So a client that does not read its replies delays only itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/posix/closer.h"
#include "ulp/srp/private.h"

#define SOCKET		 "nbd"
#define FIRST_DEVICE	 "softib0"
#define CONNECTIONS_MOST 64
#define CONNECTIONS_SURE 16 /* in use, of a process: they are closed for no newcomer */
#define ACCEPT_PAUSE_NS	 (100 * NSEC_PER_MSEC) /* after descriptors were exhausted */
#define SLOTS_MOST	 (SRPI_SLOTS / 4) /* the most slots of a connection */
#define HELD_MOST	 ((size_t)SRP_PIECES / 4 * SRP_PIECE_BYTES)
#define IN_BYTES	 (NBD_OPTION_BYTES + NBD_REQUEST_BYTES)
#define HELLO_BYTES	 65536 /* buffer for the messages of the handshake */
#define REQUESTS_MOST	 64	 /* the most requests of a connection in one turn of the loop */

struct srp_connection {
	struct list_head node;
	struct srp_fabric *fabric;
	struct rt_io io;
	struct rt_work resume;
	int fd;
	pid_t pid;		 /* of the client */
	bool transmitting, full; /* full: it waits for a slot */
	struct nbd_handshake handshake;
	struct srp_unit *unit;
	u8 in[IN_BYTES];
	size_t in_bytes;
	u64 skip;		/* bytes of a payload that are read and discarded */
	struct srp_io *filling; /* a write whose data is being read */
	size_t filled;
	unsigned int slots;
	size_t held;		  /* memory for the data of its requests */
	struct list_head replies; /* srp_io; the first one may be partly sent */
	size_t sent;
	u8 hello[HELLO_BYTES]; /* messages of the handshake, of which hello_sent bytes are sent */
	size_t hello_bytes, hello_sent;
};

/* --- names of units --- */

/* Return: the number of a LUN with peripheral or flat addressing (SAM-5 4.7.7) */
static unsigned int lun_number(const u8 lun[8])
{
	return (lun[0] & 0x3fu) << 8 | lun[1];
}

/* Set the name of an export: NODE/TARGET/LUN for the first adapter of a node, NODE.DEVICE/TARGET/LUN
 * for the others. */
void srp_unit_name(const struct srp_unit *unit, char name[NBD_NAME_BYTES])
{
	const struct srp_session_config *c = &unit->session->config;
	bool first = !strcmp(c->device->name, FIRST_DEVICE);

	snprintf(name, NBD_NAME_BYTES, "%s%s%s/%s/%u", c->device->node_name, first ? "" : ".",
		 first ? "" : c->device->name, c->name, lun_number(unit->lun));
}

static struct srp_unit *unit_nth(const struct srp_fabric *fabric, unsigned int i)
{
	struct srp_session *s;

	list_for_each_entry(s, &fabric->sessions, node) {
		if (s->ready && i < s->nr_units)
			return s->unit[i];
		i -= s->ready ? s->nr_units : 0;
	}
	return NULL;
}

static struct srp_unit *unit_named(const struct srp_fabric *fabric, const char *name)
{
	char known[NBD_NAME_BYTES];
	struct srp_unit *unit;

	for (unsigned int i = 0; (unit = unit_nth(fabric, i)); i++) {
		srp_unit_name(unit, known);
		if (!strcmp(name, known))
			return unit;
	}
	return NULL;
}

/* --- the end of a connection --- */

static void close_connection(struct srp_connection *c)
{
	struct srp_session *s = c->unit ? c->unit->session : NULL;
	struct srp_io *io, *next;

	list_del(&c->node);
	c->fabric->exports.num--;
	rt_work_cancel(&c->resume);
	rt_io_watch(&c->io, false, false);
	close(c->fd);
	if (c->filling)
		srp_io_put(c->filling);
	list_for_each_entry_safe(io, next, &c->replies, node) {
		list_del_init(&io->node);
		io->connection = NULL;
		srp_io_put(io);
	}
	for (unsigned int i = 0; s && i < SRPI_SLOTS; i++) /* its commands end without the connection */
		if (s->io[i].connection == c)
			s->io[i].connection = NULL;
	if (c->unit)
		c->unit->clients--;
	rt_free(c);
}

void srp_connections_end(struct srp_session *s, const struct srp_unit *unit)
{
	struct srp_connection *c, *next;

	list_for_each_entry_safe(c, next, &s->fabric->exports.connections, node)
		if (c->unit && c->unit->session == s && (!unit || c->unit == unit))
			close_connection(c);
}

/* --- sending --- */

/* Return: the number of bytes that were sent; 0: the socket is full; -errno */
static ssize_t send_parts(struct srp_connection *c, struct iovec *parts, size_t nr)
{
	struct msghdr msg = {.msg_iov = parts, .msg_iovlen = nr};
	ssize_t n = sendmsg(c->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0)
		return n;
	return errno == EAGAIN || errno == EINTR ? 0 : -errno;
}

/* Return: 1: all messages of the handshake are sent; 0: the socket is full; -errno */
static int send_hello(struct srp_connection *c)
{
	while (c->hello_sent < c->hello_bytes) {
		struct iovec rest = {c->hello + c->hello_sent, c->hello_bytes - c->hello_sent};
		ssize_t n = send_parts(c, &rest, 1);

		if (n <= 0)
			return (int)n;
		c->hello_sent += (size_t)n;
	}
	c->hello_bytes = c->hello_sent = 0;
	return 1;
}

/* Return: 1: the reply and its data are sent completely; 0: the socket is full; -errno */
static int send_reply(struct srp_connection *c, struct srp_io *io)
{
	const size_t bytes = io->reply_bytes + io->data_bytes;

	while (c->sent < bytes) {
		struct iovec rest[1 + SRP_PIECES_MOST];
		const bool begun = c->sent >= io->reply_bytes;
		const size_t from = begun ? c->sent - io->reply_bytes : 0;
		size_t nr = !begun;
		ssize_t n;

		if (!begun)
			rest[0] = (struct iovec){io->reply + c->sent, io->reply_bytes - c->sent};
		nr += srp_io_iovec(io, from, io->data_bytes - from, rest + nr);
		n = send_parts(c, rest, nr);
		if (n <= 0)
			return (int)n;
		c->sent += (size_t)n;
	}
	return 1;
}

/* Return: the memory that a request needs in addition to the piece that belongs to each slot */
static u32 memory_of(const struct nbd_request *r)
{
	return r->type == NBD_READ || r->type == NBD_WRITE ? r->bytes : 0;
}

static void reply_sent(struct srp_connection *c, struct srp_io *io)
{
	list_del_init(&io->node);
	io->connection = NULL;
	c->sent = 0;
	c->slots--;
	c->held -= io->held;
	srp_io_put(io);
}

/* Send the handshake's messages and the replies that wait. Return: 0; -errno: the client has
 * disconnected */
static int send_what_waits(struct srp_connection *c)
{
	int ret = send_hello(c);

	while (ret > 0 && !list_empty(&c->replies)) {
		struct srp_io *io = list_first_entry(&c->replies, struct srp_io, node);

		ret = send_reply(c, io);
		if (ret > 0)
			reply_sent(c, io);
	}
	return MIN(ret, 0);
}

static void watch(struct srp_connection *c)
{
	bool waits = c->hello_bytes || !list_empty(&c->replies);

	/* during the handshake, the next option is read when the answer to the previous one is sent */
	rt_io_watch(&c->io, !c->full && (c->transmitting || !waits), waits);
}

void srp_connection_reply(struct srp_io *io, int error)
{
	struct srp_connection *c = io->connection;

	io->reply_bytes = nbd_reply_build(&io->request, c->handshake.structured, error, io->reply);
	list_add_tail(&io->node, &c->replies);
	rt_work_queue(c->fabric->rt, &c->resume);
}

/* --- requests --- */

/* Begin to perform a request, all of whose data have arrived. */
static void begin(struct srp_connection *c, struct srp_io *io, int error)
{
	c->filling = NULL;
	if (error) {
		io->data_bytes = 0;
		srp_connection_reply(io, error);
	} else {
		srp_serve(io);
	}
}

/* Copy data of a write into the memory of its slot, behind the c->filled bytes that are there. */
static void fill(struct srp_connection *c, const u8 *data, size_t bytes)
{
	struct iovec to[SRP_PIECES_MOST];
	const size_t nr = data ? srp_io_iovec(c->filling, c->filled, bytes, to) : 0;

	for (size_t i = 0; i < nr; i++) {
		memcpy(to[i].iov_base, data, to[i].iov_len);
		data += to[i].iov_len;
	}
	c->filled += bytes;
	if (c->filled == c->filling->request.bytes)
		begin(c, c->filling, 0);
}

/* Handle the request that begins at c->in[*used]. Return: true if further input can be handled */
static bool take_request(struct srp_connection *c, size_t *used)
{
	struct nbd_request request;
	struct srp_io *io;
	u32 memory;
	int error;

	if (nbd_request_decode(c->in + *used, &request) || request.type == NBD_DISC) {
		c->skip = UINT64_MAX; /* ignore all further input: the client disconnects */
		return false;
	}
	error = nbd_request_check(&request, &c->handshake.export);
	memory = error ? 0 : memory_of(&request);
	io = c->slots < SLOTS_MOST && c->held + memory <= HELD_MOST
		     ? srp_io_get(c->unit->session, memory)
		     : NULL;
	if (!io) {
		c->full = true;
		return false;
	}
	*used += NBD_REQUEST_BYTES;
	c->slots++;
	c->held += memory;
	io->held = memory;
	io->connection = c;
	io->unit = c->unit;
	io->unit->requests++;
	io->request = request;
	if (nbd_request_payload(&request) && !error) {
		c->filling = io;
		c->filled = 0;
		return true;
	}
	c->skip = nbd_request_payload(&request);
	begin(c, io, error);
	return true;
}

/* Handle the input. Return: the number of bytes that were handled */
static size_t take_input(struct srp_connection *c)
{
	size_t used = 0;
	bool more = true;

	while (more && used < c->in_bytes) {
		size_t left = c->in_bytes - used, n;

		if (c->skip) {
			n = MIN(left, c->skip);
			c->skip -= n;
			used += n;
		} else if (c->filling) {
			n = MIN(left, c->filling->request.bytes - c->filled);
			fill(c, c->in + used, n);
			used += n;
		} else {
			more = left >= NBD_REQUEST_BYTES && take_request(c, &used);
		}
	}
	return used;
}

/* --- the handshake --- */

static bool find_export(void *ctx, const char *name, struct nbd_export *export)
{
	const struct srp_connection *c = ctx;
	struct srp_unit *unit = unit_named(c->fabric, name);

	if (unit)
		srp_serve_describe(unit, export);
	return unit;
}

static bool nth_export(void *ctx, unsigned int i, char name[NBD_NAME_BYTES])
{
	const struct srp_connection *c = ctx;
	struct srp_unit *unit = unit_nth(c->fabric, i);

	if (unit)
		srp_unit_name(unit, name);
	return unit;
}

static void say(void *ctx, const void *data, size_t bytes)
{
	struct srp_connection *c = ctx;

	if (bytes > sizeof(c->hello) - c->hello_bytes) {
		c->skip = UINT64_MAX; /* the client sends options and does not read the answers */
		return;
	}
	memcpy(c->hello + c->hello_bytes, data, bytes);
	c->hello_bytes += bytes;
}

/* Handle the input of the handshake. Return: the number of bytes that were handled */
static size_t handshake_input(struct srp_connection *c)
{
	const struct nbd_server server = {
		.ctx = c, .find = find_export, .nth = nth_export, .send = say};
	size_t used;

	switch (nbd_handshake_take(&c->handshake, &server, c->in, c->in_bytes, &used)) {
	case NBD_MORE:
		break;
	case NBD_TRANSMIT:
		c->transmitting = true;
		c->unit = unit_named(c->fabric, c->handshake.name);
		if (c->unit)
			c->unit->clients++;
		else /* the session of the unit has ended since the client chose it */
			c->skip = UINT64_MAX;
		break;
	case NBD_CLOSE:
		c->skip = UINT64_MAX;
		break;
	}
	return used;
}

/* --- receiving --- */

/* Return: the number of bytes that were read; 0: there are none now; -errno */
static ssize_t receive(struct srp_connection *c)
{
	bool direct = c->filling && !c->in_bytes;
	struct iovec to[SRP_PIECES_MOST] = {{c->in + c->in_bytes, IN_BYTES - c->in_bytes}};
	size_t nr = direct ? srp_io_iovec(c->filling, c->filled,
					  c->filling->request.bytes - c->filled, to)
			   : 1;
	ssize_t n = recvmsg(c->fd, &(struct msghdr){.msg_iov = to, .msg_iovlen = nr}, MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!n)
		return -ECONNRESET;
	if (direct)
		fill(c, NULL, (size_t)n);
	else
		c->in_bytes += (size_t)n;
	return n;
}

static void use_input(struct srp_connection *c)
{
	size_t used, last;

	do {
		last = c->in_bytes;
		used = c->transmitting ? take_input(c) : handshake_input(c);
		c->in_bytes -= used;
		memmove(c->in, c->in + used, c->in_bytes);
	} while (c->in_bytes && c->in_bytes != last && !c->full && c->skip != UINT64_MAX);
}

/* Send and receive as much as possible. Return: 0; -errno: the connection has to be closed */
static int go_on(struct srp_connection *c)
{
	ssize_t n = 1;

	for (int i = 0; i < REQUESTS_MOST && n > 0 && !c->full; i++) {
		use_input(c);
		if (c->skip == UINT64_MAX)
			return -ECONNRESET;
		n = c->full || c->in_bytes == IN_BYTES ? 0 : receive(c);
	}
	return n < 0 ? (int)n : send_what_waits(c);
}

static void on_ready(struct rt_io *io, bool readable, bool writable)
{
	struct srp_connection *c = container_of(io, struct srp_connection, io);

	if (readable ? go_on(c) : send_what_waits(c))
		close_connection(c);
	else
		watch(c);
}

/* Continue a connection, because replies wait, or a slot is free again. */
static void resume(struct rt_work *work)
{
	struct srp_connection *c = container_of(work, struct srp_connection, resume);
	bool was_full = c->full;
	int ret = send_what_waits(c);

	c->full = false;
	if (!ret && was_full)
		ret = go_on(c);
	if (ret)
		close_connection(c);
	else
		watch(c);
}

void srp_connections_resume(struct srp_session *s)
{
	struct srp_connection *c;

	list_for_each_entry(c, &s->fabric->exports.connections, node)
		if (c->full && c->unit && c->unit->session == s)
			rt_work_queue(c->fabric->rt, &c->resume);
}

/* --- who is served --------------------------------------------------------------------------------------------- */

static unsigned int num_of_process(const struct srp_exports *exports, pid_t pid)
{
	const struct srp_connection *c;
	unsigned int n = 0;

	list_for_each_entry(c, &exports->connections, node)
		n += c->pid == pid;
	return n;
}

/* Return: the connection to close for a newcomer: the oldest whose handshake is not over, or else one of
 * the process that has the most; NULL: none */
static struct srp_connection *least_wanted(const struct srp_exports *exports)
{
	struct srp_connection *c, *found = NULL;
	unsigned int most = CONNECTIONS_SURE;

	list_for_each_entry(c, &exports->connections, node)
		if (!c->transmitting)
			return c;
	list_for_each_entry(c, &exports->connections, node) {
		unsigned int num = num_of_process(exports, c->pid);

		if (num > most) {
			most = num;
			found = c;
		}
	}
	return found;
}

/* The folder's mode and that of the socket already exclude other users.
 * Return: true: it is this user's or root's, and *@pid */
static bool is_ours(int fd, pid_t *pid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return false;
	*pid = peer.pid;
	return !peer.uid || peer.uid == geteuid();
}

/* Return: is there room for one more? */
static bool make_room(struct srp_exports *exports)
{
	struct srp_connection *c;

	if (exports->num < CONNECTIONS_MOST)
		return true;
	c = least_wanted(exports);
	if (c)
		close_connection(c);
	return c;
}

/* --- the socket ------------------------------------------------------------------------------------------------ */

static void accept_again(struct rt_timer *timer)
{
	rt_io_watch(&container_of(timer, struct srp_exports, accept_timer)->io, true, false);
}

/* Return: a descriptor; -1 */
static int accept_client(struct srp_fabric *fabric)
{
	struct srp_exports *exports = &fabric->exports;
	int fd = accept4(exports->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
		rt_io_watch(&exports->io, false, false); /* the client waits */
		rt_timer_arm(&exports->accept_timer, mono_add(rt_now(fabric->rt), ACCEPT_PAUSE_NS));
	}
	return fd;
}

static void on_client(struct rt_io *io, bool readable, bool writable)
{
	struct srp_exports *exports = container_of(io, struct srp_exports, io);
	struct srp_fabric *fabric = container_of(exports, struct srp_fabric, exports);
	int fd = accept_client(fabric);
	pid_t pid = 0;
	struct srp_connection *c = fd >= 0 && is_ours(fd, &pid) && make_room(exports) ? rt_zalloc(sizeof(*c)) :
											NULL;
	const struct nbd_server server = {.ctx = c, .send = say};

	if (!c) {
		if (fd >= 0)
			close(fd);
		return;
	}
	c->fabric = fabric;
	c->fd = fd;
	c->pid = pid;
	INIT_LIST_HEAD(&c->replies);
	rt_work_init(&c->resume, resume);
	rt_io_init(fabric->rt, &c->io, fd, on_ready);
	list_add_tail(&c->node, &exports->connections);
	exports->num++;
	nbd_greet(&server);
	if (send_what_waits(c))
		close_connection(c);
	else
		watch(c);
}

static int bind_socket(int fd, const char *dir, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (snprintf(address->sun_path, sizeof(address->sun_path), "%s/" SOCKET, dir) >=
	    (int)sizeof(address->sun_path))
		return -ENAMETOOLONG;
	unlink(address->sun_path); /* left by a softibd that was killed; another one cannot run in this folder */
	if (bind(fd, (struct sockaddr *)address, sizeof(*address)) ||
	    chmod(address->sun_path, 0600) || listen(fd, CONNECTIONS_MOST))
		return -errno;
	rt_refuse_fds(fd);
	return 0;
}

void srp_exports_init(struct srp_exports *exports)
{
	exports->fd = -1;
	INIT_LIST_HEAD(&exports->connections);
}

int srp_exports_open(struct srp_fabric *fabric)
{
	struct srp_exports *exports = &fabric->exports;
	int fd, ret;

	if (exports->fd >= 0)
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	ret = bind_socket(fd, fabric->dir, &exports->address);
	if (ret) {
		close(fd);
		return ret;
	}
	exports->fd = fd;
	rt_timer_init(fabric->rt, &exports->accept_timer, accept_again);
	rt_io_init(fabric->rt, &exports->io, fd, on_client);
	rt_io_watch(&exports->io, true, false);
	return 0;
}

void srp_exports_close(struct srp_fabric *fabric)
{
	struct srp_exports *exports = &fabric->exports;
	struct srp_connection *c, *next;

	if (exports->fd < 0)
		return;
	list_for_each_entry_safe(c, next, &exports->connections, node)
		close_connection(c);
	rt_timer_disarm(&exports->accept_timer);
	rt_io_watch(&exports->io, false, false);
	close(exports->fd);
	exports->fd = -1;
	unlink(exports->address.sun_path);
}
