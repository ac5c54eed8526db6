/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operation "trace_provide": the trace points of a program that is part of the stack, for as
 * long as its connection exists (runtime/posix/trace_link.h). The program is not trusted: an event
 * that does not name one of its points, or is not terminated, is dropped.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control_private.h"
#include "daemon/trace.h"

#define POINTS_MAX	64
#define TEXT_MAX	512 /* bytes of a name, a format or a sentence */
#define NAME_BYTES	32
#define EVENTS_PER_TURN 64

/** struct program - a program that provides trace points */
struct program {
	struct control_lease lease;
	struct rt *rt;
	struct rt_trace_source source;
	struct rt_trace_point points[POINTS_MAX];
	char module[NAME_BYTES], node[NAME_BYTES];
	int fd;
	struct rt_io io;
};

static void turn(struct rt_trace_source *source, bool on)
{
	const struct program *p = container_of(source, struct program, source);
	const char byte = on;

	if (send(p->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		/* EAGAIN: the program does not read, so that only its own events are lost */
	}
}

static bool has_point(const struct program *p, const char *name)
{
	for (size_t i = 0; i < p->source.num_points; i++)
		if (!strcmp(p->points[i].name, name))
			return true;
	return false;
}

static void take(struct program *p, const char *message, size_t len)
{
	const char *text = memchr(message, 0, len);

	if (!text || message[len - 1] || ++text == message + len || !has_point(p, message))
		return;
	rt_trace_emit_own(p->rt, &p->source, (struct rt_trace_at){0}, message, text);
}

static void on_events(struct rt_io *io, bool readable, bool writable)
{
	struct program *p = container_of(io, struct program, io);
	char message[RT_TRACE_TEXT_BYTES + 64];
	ssize_t len = 1;

	for (int n = 0; n < EVENTS_PER_TURN && len > 0; n++) {
		len = recv(p->fd, message, sizeof(message), MSG_DONTWAIT);
		if (len > 0)
			take(p, message, (size_t)len);
		else if (!len)
			rt_io_watch(io, false, false);
	}
}

static void free_program(struct program *p)
{
	for (size_t i = 0; i < p->source.num_points; i++) {
		free((char *)p->points[i].name);
		free((char *)p->points[i].format);
		free((char *)p->points[i].doc);
	}
	free(p);
}

static void end(struct control_lease *lease)
{
	struct program *p = container_of(lease, struct program, lease);

	rt_trace_del_source(&p->source);
	rt_io_watch(&p->io, false, false);
	close(p->fd);
	free_program(p);
}

/* Return: a copy of the text @key of a trace point; NULL: it is invalid, or there is no memory */
static char *copy_text(struct json_object *point, const char *key)
{
	struct json_object *o;
	const char *text = json_object_object_get_ex(point, key, &o) &&
					   json_object_is_type(o, json_type_string)
				   ? json_object_get_string(o)
				   : NULL;

	return text && text[0] && strlen(text) < TEXT_MAX ? strdup(text) : NULL;
}

/* Return: false, after answering with an error */
static bool get_points(struct control_request *req, struct program *p)
{
	struct json_object *list, *item;
	size_t num;

	if (!json_object_object_get_ex(req->in, "points", &list) ||
	    !json_object_is_type(list, json_type_array) || !json_object_array_length(list) ||
	    json_object_array_length(list) > POINTS_MAX) {
		control_fail(req, "\"points\" is not a list of 1 to %d trace points", POINTS_MAX);
		return false;
	}
	num = json_object_array_length(list);
	for (size_t i = 0; i < num; i++) {
		struct rt_trace_point *point = &p->points[p->source.num_points++];

		item = json_object_array_get_idx(list, i);
		*point = (struct rt_trace_point){RT_TRACE_OWN, copy_text(item, "event"),
						 copy_text(item, "format"), copy_text(item, "doc")};
		if (point->name && point->format && point->doc)
			continue;
		control_fail(req, "a trace point has \"event\", \"format\" and \"doc\", texts of less than %d bytes",
			     TEXT_MAX);
		return false;
	}
	return true;
}

/* Get the module of the program. It must not be a module of softibd itself; the subnet manager is a
 * program. */
static bool get_module(struct control_request *req, struct program *p)
{
	const char *name = control_text(req, "module");
	enum rt_trace_module known = name ? rt_trace_module_find(name) : RT_TRACE_MODULES;

	if (!name || !name[0] || strlen(name) >= NAME_BYTES ||
	    (known != RT_TRACE_MODULES && known != RT_TRACE_SM)) {
		control_fail(req, "\"module\" is not a name of up to %d bytes that the stack does not use itself",
			     NAME_BYTES - 1);
		return false;
	}
	strcpy(p->module, name);
	return true;
}

static bool get_node(struct control_request *req, struct program *p)
{
	const struct topology *topo = control_topology(req);
	int node = control_node(req);

	if (node == -2)
		return false;
	for (int i = 0; node < 0 && i < topo->num_nodes; i++)
		if (topo->node[i].kind == TOPO_CA)
			node = i;
	strncpy(p->node, node < 0 ? "" : topo_host_name(topo, node), NAME_BYTES - 1);
	return true;
}

static int start(struct control_request *req, struct program *p)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	p->rt = control_rt(req->control);
	p->fd = pair[0];
	p->lease.end = end;
	p->source.module = p->module;
	p->source.node_name = p->node;
	p->source.points = p->points;
	p->source.turn = turn;
	rt_io_init(p->rt, &p->io, p->fd, on_events);
	rt_io_watch(&p->io, true, false);
	rt_trace_add_source(p->rt, &p->source);
	control_client_lease(req->client, &p->lease);
	control_client_pass(req->client, &pair[1], 1);
	return 0;
}

bool control_op_trace_provide(struct control_request *req)
{
	struct program *p;
	int ret;

	if (control_client_holds(req->client)) {
		control_fail(req, "this connection is used already: open another connection");
		return true;
	}
	p = calloc(1, sizeof(*p));
	if (!p) {
		control_fail(req, "out of memory");
		return true;
	}
	if (!get_module(req, p) || !get_node(req, p) || !get_points(req, p)) {
		free_program(p);
		return true;
	}
	ret = start(req, p);
	if (!ret)
		return true;
	free_program(p);
	control_fail(req, "cannot make a socket: %s", strerror(-ret));
	return true;
}
