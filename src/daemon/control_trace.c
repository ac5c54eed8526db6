/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations "trace", which lasts as long as its connection, and "trace_points". */
#include <string.h>

#include "daemon/control_private.h"
#include "daemon/trace.h"

static const struct control_ring ring = {4096, TRACE_RING_BYTES, TRACE_RING_BYTES_MAX};

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

/* Put the requested modules that do not exist now: they may be loaded later, or their names may be
 * wrong. */
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
	struct reader *reader;
	int ret;

	if (!control_may_read(req) || !get_node(req, &config) || !get_modules(req, &config) ||
	    !control_ring_bytes(req, &ring, &config.ring_bytes))
		return true;
	ret = trace_reader_start(control_trace(req->control), &config, &reader);
	if (!ret)
		ret = control_pass_reader(req, reader);
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
