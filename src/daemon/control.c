/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The control socket: clients, their requests and answers. A client is in one of
 * four states:
 *
 *	READING    softibd awaits its next request
 *	WRITING    its answer did not fit into its socket: softibd reads nothing
 *		   from it until it has taken the answer
 *	WAITING    for every cabled port to become Active, or for its timer; a
 *		   message or the end of the connection ends this state
 *	ASKING     for an answer that an operation gives later; ends likewise
 *
 * A client that does not read therefore costs the memory of one answer and no time.
 * If there are MAX_CLIENTS, a new client replaces one of the process that has most of
 * them, so idle connections, however many, cannot keep others out. An answer that
 * exceeds ABI_UMAD_INLINE is sent as {"bytes": N} and a memfd.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/session.h"
#include "daemon/control_private.h"
#include "daemon/trace.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/log.h"

#define MAX_CLIENTS	64
#define ACCEPTS_PER_TURN 16
#define ACCEPT_PAUSE_NS (100 * NSEC_PER_MSEC) /* after descriptors were exhausted */

enum client_state { CLIENT_READING, CLIENT_WRITING, CLIENT_WAITING, CLIENT_ASKING };

struct control_client {
	struct list_head node;
	struct control *control;
	enum client_state state;
	struct rt_io io;
	int fd;
	pid_t pid;
	struct rt_timer timer; /* of a wait */
	char *answer;	       /* WRITING: the answer that the client has not taken yet */
	size_t answer_bytes;
	int answer_fd[CONTROL_FDS]; /* descriptors for the answer, -1 none */
	struct control_walk *walk; /* state of listing resources, between two pages; NULL */
	struct control_lease *lease; /* what has to be ended with the connection; NULL */
	struct control_later *later; /* ASKING: the operation that will answer */
};

struct control {
	struct rt *rt;
	struct fabric *fab;
	struct control_ops ops;
	struct control_namespaces *namespaces;
	struct trace *trace;
	mono_t started;
	int fd, spare_fd; /* spare_fd is closed to accept and refuse a client when no descriptor is left */
	struct rt_io io;
	struct rt_timer accept_timer;
	struct list_head clients;
	int num_clients;
	bool crowded; /* a client was replaced, and since then never half of the places were free */
	struct sockaddr_un address;
	/* --- waits: the first port that was not Active at the last check --- */
	struct rt_poller poller;
	int num_waiting, wait_node, wait_port;
};

struct rt *control_rt(const struct control *control)
{
	return control->rt;
}

struct fabric *control_fabric(const struct control *control)
{
	return control->fab;
}

const struct control_ops *control_ops(const struct control *control)
{
	return &control->ops;
}

struct control_namespaces *control_namespaces(const struct control *control)
{
	return control->namespaces;
}

mono_t control_started(const struct control *control)
{
	return control->started;
}

struct trace *control_trace(const struct control *control)
{
	return control->trace;
}

/* --- clients ----------------------------------------------------------- */

static void leave_waiting(struct control_client *client)
{
	struct control *control = client->control;

	if (client->state != CLIENT_WAITING)
		return;
	rt_timer_disarm(&client->timer);
	client->state = CLIENT_READING;
	if (!--control->num_waiting)
		rt_poller_del(&control->poller);
}

/* close the valid descriptors of an array, and set all to -1 */
static void close_fds(int fd[CONTROL_FDS])
{
	rt_close_foreign_all(fd, CONTROL_FDS);
}

static void drop_answer(struct control_client *client)
{
	free(client->answer);
	client->answer = NULL;
	close_fds(client->answer_fd);
}

static void close_client(struct control_client *client)
{
	leave_waiting(client);
	if (client->state == CLIENT_ASKING)
		client->later->drop(client->later);
	drop_answer(client);
	if (client->lease)
		client->lease->end(client->lease);
	if (client->walk)
		control_walk_end(client->walk);
	rt_io_watch(&client->io, false, false);
	rt_close_socket(client->fd);
	list_del(&client->node);
	client->control->num_clients--;
	if (client->control->num_clients < MAX_CLIENTS / 2)
		client->control->crowded = false;
	rt_free(client);
}

/* Return: false if the client was closed */
static bool flush_answer(struct control_client *client)
{
	int error = control_send(client->fd, client->answer, client->answer_bytes,
				 client->answer_fd);

	if (error && error != -EAGAIN && error != -ENOBUFS && error != -ENOMEM) {
		close_client(client);
		return false;
	}
	client->state = error ? CLIENT_WRITING : CLIENT_READING;
	if (!error)
		drop_answer(client);
	rt_io_watch(&client->io, !error, error);
	return true;
}

/* Return: false if the client was closed */
static bool answer(struct control_client *client, struct json_object *out)
{
	size_t bytes = 0;
	const char *text =
		json_object_to_json_string_length(out, JSON_C_TO_STRING_PLAIN, &bytes);
	char small[128];

	if (!text) {
		text = "{\"error\":\"out of memory\"}";
		bytes = strlen(text);
	} else if (bytes > ABI_UMAD_INLINE) {
		int fd = control_memfd(text, bytes);

		if (fd < 0)
			snprintf(small, sizeof(small),
				 "{\"error\":\"no room for the answer: %s\"}",
				 strerror(-fd));
		else
			snprintf(small, sizeof(small), "{\"bytes\":%zu}", bytes);
		close_fds(client->answer_fd);
		client->answer_fd[0] = fd < 0 ? -1 : fd;
		text = small;
		bytes = strlen(small);
	}
	client->answer = malloc(bytes);
	if (!client->answer) {
		close_client(client);
		return false;
	}
	memcpy(client->answer, text, bytes);
	client->answer_bytes = bytes;
	return flush_answer(client);
}

/* --- requests ---------------------------------------------------------- */

/* @fd: CONTROL_FDS descriptors that came with the request, closed on return
 * Return: false if the client was closed */
static bool handle(struct control_client *client, const char *text, size_t bytes, const int *fd)
{
	struct control_request req = {.control = client->control, .client = client};
	const char *why = NULL;
	bool now = true, alive = true;

	memcpy(req.fd, fd, sizeof(req.fd));
	req.out = json_object_new_object();
	req.in = bytes > ABI_MESSAGE_MAX ? NULL : control_parse(text, bytes, &why);
	if (!req.in)
		control_fail(&req, "%s",
			     why ? why : "the request is longer than 65536 bytes");
	else
		now = control_dispatch(&req);
	if (now)
		alive = answer(client, req.out);
	close_fds(req.fd);
	json_object_put(req.in);
	json_object_put(req.out);
	return alive;
}

static void client_event(struct rt_io *io, bool readable, bool writable)
{
	struct control_client *client = container_of(io, struct control_client, io);
	static char buffer[ABI_MESSAGE_MAX + 1]; /* static, since there is one thread and one message at a time */
	int fd[CONTROL_FDS];
	ssize_t n;

	if (client->state == CLIENT_WRITING) {
		flush_answer(client);
		return;
	}
	list_del(&client->node); /* the list is sorted by the time of the last message */
	list_add_tail(&client->node, &client->control->clients);
	n = rt_receive(client->fd, buffer, sizeof(buffer), MSG_DONTWAIT | MSG_TRUNC, fd,
			CONTROL_FDS);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n > 0 && client->state == CLIENT_READING) {
		handle(client, buffer, (size_t)n, fd);
		return;
	}
	close_fds(fd);
	close_client(client);
}

/* --- waiting for the fabric -------------------------------------------- */

static void finish_wait(struct control_client *client, bool in_time)
{
	struct json_object *out = control_wait_done(client->control->fab, in_time);

	leave_waiting(client);
	answer(client, out);
	json_object_put(out);
}

static void wait_timeout(struct rt_timer *timer)
{
	finish_wait(container_of(timer, struct control_client, timer), false);
}

/* This is called in each turn of the loop, in which every change of a port happens.
 * It is cheap, because it checks only one port as long as that is not Active. */
static bool poll_waits(struct rt_poller *poller)
{
	struct control *control = container_of(poller, struct control, poller);
	struct control_client *client, *tmp;

	if (control_port_inactive(control->fab, &control->wait_node, &control->wait_port))
		return false;
	control->wait_node = 0;
	control->wait_port = 1;
	if (control_port_inactive(control->fab, &control->wait_node, &control->wait_port))
		return false;
	list_for_each_entry_safe (client, tmp, &control->clients, node)
		if (client->state == CLIENT_WAITING)
			finish_wait(client, true);
	return true;
}

static bool prepare_waits(struct rt_poller *poller)
{
	return false;
}

static void awake_waits(struct rt_poller *poller)
{
}

void control_client_wait(struct control_client *client, uint64_t timeout_ms)
{
	struct control *control = client->control;

	client->state = CLIENT_WAITING;
	if (timeout_ms)
		rt_timer_arm(&client->timer,
			     mono_add(rt_now(control->rt), timeout_ms * NSEC_PER_MSEC));
	control->wait_node = 0;
	control->wait_port = 1;
	if (!control->num_waiting++)
		rt_poller_add(control->rt, &control->poller);
}

void control_client_later(struct control_client *client, struct control_later *later)
{
	client->state = CLIENT_ASKING;
	client->later = later;
}

bool control_client_answer(struct control_client *client, struct json_object *out)
{
	client->state = CLIENT_READING;
	return answer(client, out);
}

struct control_walk **control_client_walk(struct control_client *client)
{
	return &client->walk;
}

bool control_client_holds(const struct control_client *client)
{
	return client->lease;
}

void control_client_lease(struct control_client *client, struct control_lease *lease)
{
	client->lease = lease;
}

void control_client_pass(struct control_client *client, const int *fd, int n)
{
	assert(n <= CONTROL_FDS);
	memcpy(client->answer_fd, fd, (size_t)n * sizeof(*fd));
}

/* --- the socket -------------------------------------------------------- */

static void refuse(int fd, const char *why)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"error\":\"%s\"}", why);
	control_send(fd, text, strlen(text), NULL);
	rt_close_socket(fd);
}

static bool is_user(int fd, uid_t uid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == uid;
}

static pid_t process_of(int fd)
{
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	return peer.pid;
}

/* The directory's mode already excludes other users. This check holds even if its mode was
 * changed. */
static bool is_ours(int fd)
{
	return is_user(fd, 0) || is_user(fd, geteuid());
}

bool control_client_is_owner(const struct control_client *client)
{
	return is_user(client->fd, geteuid());
}

static int num_of_process(struct control *control, pid_t pid)
{
	struct control_client *client;
	int n = 0;

	list_for_each_entry (client, &control->clients, node)
		n += client->pid == pid;
	return n;
}

/* Is @a to be closed rather than @b, which has been silent for longer? */
static bool goes_first(struct control *control, const struct control_client *a,
		       const struct control_client *b)
{
	int more = num_of_process(control, a->pid) - num_of_process(control, b->pid);

	if (more)
		return more > 0;
	if (!a->lease != !b->lease)
		return !a->lease;
	return a->state == CLIENT_READING && b->state != CLIENT_READING;
}

static void make_room(struct control *control)
{
	struct control_client *client, *victim = NULL;

	list_for_each_entry (client, &control->clients, node)
		if (!victim || goes_first(control, client, victim))
			victim = client;
	if (!control->crowded)
		rt_log("process %d has %d of the %d connections that the control socket serves: "
		       "one of them was closed for a new client",
		       victim->pid, num_of_process(control, victim->pid), MAX_CLIENTS);
	control->crowded = true;
	close_client(victim);
}

static void add_client(struct control *control, int fd)
{
	struct control_client *client;

	if (!is_ours(fd)) {
		refuse(fd, "this fabric belongs to another user");
		return;
	}
	client = rt_zalloc(sizeof(*client));
	if (!client) {
		refuse(fd, "out of memory");
		return;
	}
	if (control->num_clients == MAX_CLIENTS)
		make_room(control);
	client->control = control;
	client->fd = fd;
	client->pid = process_of(fd);
	memset(client->answer_fd, -1, sizeof(client->answer_fd));
	rt_timer_init(control->rt, &client->timer, wait_timeout);
	rt_io_init(control->rt, &client->io, fd, client_event);
	list_add_tail(&client->node, &control->clients);
	control->num_clients++;
	rt_io_watch(&client->io, true, false);
}

/* Return: false if not even that was possible */
static bool turn_away(struct control *control)
{
	int fd;

	if (control->spare_fd < 0)
		control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (control->spare_fd < 0)
		return false;
	close(control->spare_fd);
	fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		refuse(fd, "softibd has no descriptor left: programs end, or its limit "
			   "(ulimit -n) is raised");
	control->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

static void listen_event(struct rt_io *io, bool readable, bool writable)
{
	struct control *control = container_of(io, struct control, io);
	int fd = 0;

	for (int n = 0; fd >= 0 && n < ACCEPTS_PER_TURN; n++) {
		fd = accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			add_client(control, fd);
	}
	if (fd >= 0 || (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM))
		return;
	if (turn_away(control))
		return;
	/* the connection stays in the queue of the socket; try again later */
	rt_io_watch(io, false, false);
	rt_timer_arm(&control->accept_timer,
		     mono_add(rt_now(control->rt), ACCEPT_PAUSE_NS));
}

static void accept_again(struct rt_timer *timer)
{
	rt_io_watch(&container_of(timer, struct control, accept_timer)->io, true, false);
}

static int open_socket(struct control *control, const char *dir)
{
	struct sockaddr_un *address = &control->address;
	int n, error;

	address->sun_family = AF_UNIX;
	n = snprintf(address->sun_path, sizeof(address->sun_path), "%s/control", dir);
	if (n < 0 || (size_t)n >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	control->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->fd < 0)
		return -errno;
	if (bind(control->fd, (struct sockaddr *)address, sizeof(*address))) {
		error = -errno;
		close(control->fd);
		return error;
	}
	if (listen(control->fd, 2 * MAX_CLIENTS)) {
		error = -errno;
		unlink(address->sun_path);
		close(control->fd);
		return error;
	}
	return 0;
}

int control_create(struct rt *rt, struct fabric *fab, const char *dir,
		   const struct control_ops *ops, struct control **control)
{
	struct control *c = rt_zalloc(sizeof(*c));
	int error;

	if (!c)
		return -ENOMEM;
	c->namespaces = control_namespaces_create();
	c->trace = trace_create(rt);
	error = c->namespaces && c->trace ? open_socket(c, dir) : -ENOMEM;
	if (error) {
		if (c->namespaces)
			control_namespaces_destroy(c->namespaces);
		if (c->trace)
			trace_destroy(c->trace);
		rt_free(c);
		return error;
	}
	c->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	c->rt = rt;
	c->fab = fab;
	if (ops)
		c->ops = *ops;
	if (!c->ops.net)
		c->ops.net = "host";
	if (!c->ops.link_layer)
		c->ops.link_layer = "infiniband";
	c->started = rt_now(rt);
	INIT_LIST_HEAD(&c->clients);
	c->poller.poll = poll_waits;
	c->poller.prepare = prepare_waits;
	c->poller.awake = awake_waits;
	rt_timer_init(rt, &c->accept_timer, accept_again);
	rt_io_init(rt, &c->io, c->fd, listen_event);
	rt_io_watch(&c->io, true, false);
	*control = c;
	return 0;
}

void control_destroy(struct control *control)
{
	struct control_client *client, *tmp;

	if (!control)
		return;
	list_for_each_entry_safe (client, tmp, &control->clients, node)
		close_client(client);
	control_namespaces_destroy(control->namespaces);
	trace_destroy(control->trace);
	rt_timer_disarm(&control->accept_timer);
	rt_io_watch(&control->io, false, false);
	close(control->fd);
	if (control->spare_fd >= 0)
		close(control->spare_fd);
	unlink(control->address.sun_path);
	rt_free(control);
}
