/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The members of a request and of its answer. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "daemon/control_private.h"
#include "fabric/topo_plan.h"

void control_fail(struct control_request *req, const char *fmt, ...)
{
	char text[640];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_object_put(req->out);
	req->out = json_object_new_object();
	json_object_object_add(req->out, "error", json_object_new_string(text));
}

/* --- members of an answer ---------------------------------------------- */

void control_put_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

struct json_object *control_put_list(struct json_object *o, const char *key)
{
	struct json_object *list = json_object_new_array();

	json_object_object_add(o, key, list);
	return list;
}

void control_put_number(struct json_object *o, const char *key, uint64_t n)
{
	json_object_object_add(o, key, json_object_new_uint64(n));
}

void control_put_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

void control_put_hex(struct json_object *o, const char *key, uint64_t n, int digits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%0*" PRIx64, digits, n);
	control_put_text(o, key, text);
}

/* --- members of a request ---------------------------------------------- */

const char *control_text(struct control_request *req, const char *key)
{
	struct json_object *o;

	if (!json_object_object_get_ex(req->in, key, &o) ||
	    !json_object_is_type(o, json_type_string))
		return NULL;
	return json_object_get_string(o);
}

bool control_flag(struct control_request *req, const char *key)
{
	struct json_object *o;

	return json_object_object_get_ex(req->in, key, &o) && json_object_get_boolean(o);
}

/* an integer in 0..@most; -1 if absent; -2, with an error, if invalid */
int64_t control_number(struct control_request *req, const char *key, int64_t most)
{
	struct json_object *o;
	int64_t n;

	if (!json_object_object_get_ex(req->in, key, &o))
		return -1;
	n = json_object_get_int64(o);
	if (json_object_is_type(o, json_type_int) && n >= 0 && n <= most)
		return n;
	control_fail(req, "\"%s\" is not an integer from 0 to %" PRId64, key, most);
	return -2;
}

const struct topology *control_topology(struct control_request *req)
{
	return fab_topology(control_fabric(req->control));
}

/* the index of the node that member @key names; -1 if absent; -2, with an error, if invalid */
int control_node_of(struct control_request *req, const char *key)
{
	struct json_object *o;
	const char *name = control_text(req, key);
	int node;

	if (!name) {
		if (!json_object_object_get_ex(req->in, key, &o))
			return -1;
		control_fail(req, "\"%s\" is not a string", key);
		return -2;
	}
	node = topo_find(control_topology(req), name);
	if (node < 0 && control_ops(req->control)->addresses)
		node = topo_plan_find_host(control_ops(req->control)->addresses, name);
	if (node < 0)
		control_fail(
			req,
			"no node \"%s\" in this fabric; expected a name such as \"%s\", a "
			"description, an id, a GUID or an IP address",
			name, control_topology(req)->node[0].name);
	return node < 0 ? -2 : node;
}

int control_node(struct control_request *req)
{
	return control_node_of(req, "node");
}

bool control_concerns(struct control_request *req, int node, int i)
{
	const struct topology *topo = control_topology(req);

	return node < 0 || i == node ||
	       (control_flag(req, "host") && topo->node[i].host == topo->node[node].host);
}

/* "node" and "port", both of which are required and must exist */
bool control_port(struct control_request *req, int *node, int *port)
{
	int64_t n;

	*node = control_node(req);
	if (*node == -1)
		control_fail(req, "\"node\" is missing");
	if (*node < 0)
		return false;
	n = control_number(req, "port", TOPO_MAX_NODE_PORTS);
	if (n == -2)
		return false;
	*port = (int)n;
	if (n >= 1 && n <= control_topology(req)->node[*node].num_ports)
		return true;
	control_fail(req, "%s has ports 1 to %d", control_topology(req)->node[*node].name,
		     control_topology(req)->node[*node].num_ports);
	return false;
}

bool control_adapter_port(struct control_request *req, struct ib_device **device, u32 *port)
{
	int node, number;

	if (!control_port(req, &node, &number))
		return false;
	*device = control_device(req, node);
	if (!*device)
		control_fail(req, "%s has no adapter: only adapters have IP interfaces",
			     control_topology(req)->node[node].name);
	*port = (u32)number;
	return *device;
}
