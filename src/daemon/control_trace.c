/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations "trace", which lasts as long as its connection, and "trace_points". */
#include <stdlib.h>
#include <string.h>

#include "daemon/control_private.h"
#include "daemon/trace.h"

#define RING_BYTES_MIN 4096

struct held_trace {
	struct control_lease lease;
	struct trace_reader *reader;
};

static void end(struct control_lease *lease)
{
	struct held_trace *held = container_of(lease, struct held_trace, lease);

	trace_reader_stop(held->reader);
	free(held);
}

/* Return: false, after answering with an error */
static bool get_node(struct control_request *req, struct trace_config *config)
{
	const struct topology *topo = control_topology(req);
	int node = control_node(req);

	if (node == -2)
		return false;
	if (node >= 0 && topo->node[node].kind != TOPO_CA) {
		control_fail(req, "\"%s\" has no adapter, and so no stack to trace: name a node that has one",
			     topo->node[node].name);
		return false;
	}
	config->node = node < 0 ? NULL : topo_host_name(topo, node);
	return true;
}

static bool get_modules(struct control_request *req, struct trace_config *config)
{
	struct json_object *list, *item;

	if (!json_object_object_get_ex(req->in, "modules", &list))
		return true;
	if (!json_object_is_type(list, json_type_array) || !json_object_array_length(list) ||
	    json_object_array_length(list) > TRACE_MODULES_MAX) {
		control_fail(req, "\"modules\" is not a list of 1 to %d names", TRACE_MODULES_MAX);
		return false;
	}
	config->num_modules = json_object_array_length(list);
	for (size_t i = 0; i < config->num_modules; i++) {
		item = json_object_array_get_idx(list, i);
		if (!json_object_is_type(item, json_type_string)) {
			control_fail(req, "\"modules\" has something that is not a string");
			return false;
		}
		config->modules[i] = json_object_get_string(item);
	}
	return true;
}

static bool get_ring(struct control_request *req, struct trace_config *config)
{
	int64_t ring = control_number(req, "ring_bytes", TRACE_RING_BYTES_MAX);

	if (ring == -2)
		return false;
	config->ring_bytes = RING_BYTES_MIN;
	while (config->ring_bytes < (ring < 0 ? TRACE_RING_BYTES : ring))
		config->ring_bytes *= 2;
	return true;
}

/* Return: 0; -errno, and no trace was started */
static int start(struct control_request *req, const struct trace_config *config)
{
	struct held_trace *held = calloc(1, sizeof(*held));
	int fd[2], ret;

	if (!held)
		return -ENOMEM;
	ret = trace_reader_start(control_trace(req->control), config, &held->reader);
	if (ret) {
		free(held);
		return ret;
	}
	held->lease.end = end;
	ret = trace_reader_dup_fds(held->reader, fd);
	if (ret) {
		end(&held->lease);
		return ret;
	}
	control_client_lease(req->client, &held->lease);
	control_client_pass(req->client, fd, 2);
	return 0;
}

/* modules that nobody has now: they may be loaded later, or be misspelt */
static void put_unknown(struct control_request *req, const struct trace_config *config)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < config->num_modules; i++)
		if (!trace_knows(control_trace(req->control), config->modules[i]))
			json_object_array_add(list, json_object_new_string(config->modules[i]));
	json_object_object_add(req->out, "unknown", list);
}

bool control_op_trace(struct control_request *req)
{
	struct trace_config config = {0};
	int ret;

	if (control_client_holds(req->client)) {
		control_fail(req, "this connection has a capture or a trace already: open another connection");
		return true;
	}
	if (!get_node(req, &config) || !get_modules(req, &config) || !get_ring(req, &config))
		return true;
	ret = start(req, &config);
	if (ret) {
		control_fail(req, "cannot trace: %s", strerror(-ret));
		return true;
	}
	control_put_number(req->out, "ring_bytes", config.ring_bytes);
	put_unknown(req, &config);
	return true;
}

/* --- trace_points ------------------------------------------------------------ */

static void put_point(void *ctx, const char *module, const char *node,
		      const struct rt_trace_point *point)
{
	struct json_object *o = json_object_new_object();

	control_put_text(o, "module", module);
	control_put_text(o, "event", point->name);
	control_put_text(o, "format", point->format);
	control_put_text(o, "doc", point->doc);
	if (node[0])
		control_put_text(o, "node", node);
	json_object_array_add(ctx, o);
}

bool control_op_trace_points(struct control_request *req)
{
	struct json_object *list = json_object_new_array();

	trace_each_point(control_trace(req->control), put_point, list);
	json_object_object_add(req->out, "points", list);
	return true;
}
