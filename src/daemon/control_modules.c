/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations module_load, module_unload and modules: the loader of modules. */
#include <stdlib.h>
#include <string.h>

#include "daemon/control_private.h"
#include "modules/modules.h"

#define PARAMS_MAX 64
#define WATCHDOG_MS_MAX (24 * 3600 * 1000)

/** struct module_call - a client that waits until a module is loaded or unloaded */
struct module_call {
	struct control_later later;
	struct control_client *client; /* NULL: its connection has ended */
	struct rt *rt;
	struct rt_work answer;
	struct json_object *out;
};

static void drop(struct control_later *later)
{
	container_of(later, struct module_call, later)->client = NULL;
}

static void answer(struct rt_work *work)
{
	struct module_call *call = container_of(work, struct module_call, answer);

	if (call->client)
		control_client_answer(call->client, call->out);
	json_object_put(call->out);
	free(call);
}

/* Callback of the loader with its result. It may be called before the client waits for it. */
static void on_done(void *ctx, const char *error, const char *note)
{
	struct module_call *call = ctx;

	if (error)
		control_put_text(call->out, "error", error);
	if (note)
		control_put_text(call->out, "note", note);
	rt_work_queue(call->rt, &call->answer);
}

/* Return: NULL if there is no memory, after answering with an error */
static struct module_call *begin(struct control_request *req)
{
	struct module_call *call = calloc(1, sizeof(*call));

	if (!call) {
		control_fail(req, "out of memory");
		return NULL;
	}
	call->later.drop = drop;
	call->client = req->client;
	call->rt = control_rt(req->control);
	rt_work_init(&call->answer, answer);
	call->out = json_object_new_object();
	control_client_later(req->client, &call->later);
	return call;
}

/* @node: set to the index of "node"; -1 if absent
 * Return: false after answering with an error */
static bool find_node(struct control_request *req, int *node)
{
	if (!control_ops(req->control)->modules) {
		control_fail(req, "this softibd loads no modules");
		return false;
	}
	*node = control_node(req);
	if (*node == -2)
		return false;
	if (*node >= 0 && control_topology(req)->node[*node].kind == TOPO_SWITCH) {
		control_fail(req, "%s is a switch: name a node with an adapter",
			     control_topology(req)->node[*node].name);
		return false;
	}
	return true;
}

/* Get "node" and "name". Return: may the client change this module? If not, an error was
 * answered */
static bool may_change(struct control_request *req, const char **node, const char **name)
{
	int i;

	if (!find_node(req, &i))
		return false;
	*name = control_text(req, "name");
	if (i < 0 || !*name) {
		control_fail(req, "\"%s\" is missing", i < 0 ? "node" : "name");
		return false;
	}
	*node = topo_host_name(control_topology(req), i);
	if (control_client_is_owner(req->client))
		return true;
	control_fail(req, "a module runs as softibd's user, so only that user may load and "
	  "unload modules");
	return false;
}

/* Return: the number of parameters; -1, after answering with an error, if invalid */
static int read_params(struct control_request *req, const char *params[PARAMS_MAX])
{
	struct json_object *list;
	size_t n;

	if (!json_object_object_get_ex(req->in, "params", &list))
		return 0;
	n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : SIZE_MAX;
	if (n > PARAMS_MAX) {
		control_fail(req, "\"params\" has to be a list of at most %d strings", PARAMS_MAX);
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *text = json_object_array_get_idx(list, i);

		if (!json_object_is_type(text, json_type_string)) {
			control_fail(req, "\"params\" has to be a list of strings");
			return -1;
		}
		params[i] = json_object_get_string(text);
	}
	return (int)n;
}

bool control_op_module_load(struct control_request *req)
{
	struct modules_request load = {.fd = req->fd[0], .done = on_done};
	const char *params[PARAMS_MAX];
	int64_t watchdog_ms;
	int n;

	if (!may_change(req, &load.node, &load.name))
		return true;
	watchdog_ms = control_number(req, "watchdog_ms", WATCHDOG_MS_MAX);
	if (watchdog_ms == -2)
		return true;
	load.watchdog_ns = watchdog_ms < 0 ? MODULES_WATCHDOG_NS :
					     (uint64_t)watchdog_ms * NSEC_PER_MSEC;
	n = read_params(req, params);
	if (n < 0)
		return true;
	load.params = params;
	load.num_params = (size_t)n;
	load.ctx = begin(req);
	if (!load.ctx)
		return true;
	modules_load(control_ops(req->control)->modules, &load);
	return false;
}

bool control_op_module_unload(struct control_request *req)
{
	const char *node, *name;
	struct module_call *call;

	if (!may_change(req, &node, &name))
		return true;
	call = begin(req);
	if (!call)
		return true;
	modules_unload(control_ops(req->control)->modules, node, name, on_done, call);
	return false;
}

static void put_param(void *ctx, const char *name, const char *value)
{
	control_put_text(ctx, name, value);
}

static int put_module(void *ctx, const struct modules_row *row)
{
	struct json_object *o = json_object_new_object(), *params = json_object_new_object();

	control_put_text(o, "node", row->node);
	control_put_text(o, "name", row->name);
	control_put_text(o, "state", row->state);
	control_put_number(o, "bytes", row->bytes);
	control_put_number(o, "refs", row->refs);
	control_put_text(o, "used_by", row->users);
	modules_each_param(row, put_param, params);
	json_object_object_add(o, "parameters", params);
	return json_object_array_add(ctx, o);
}

bool control_op_modules(struct control_request *req)
{
	struct json_object *list;
	int node;

	if (!find_node(req, &node))
		return true;
	list = json_object_new_array();
	modules_each(control_ops(req->control)->modules,
		     node < 0 ? NULL : topo_host_name(control_topology(req), node), put_module, list);
	json_object_object_add(req->out, "modules", list);
	return true;
}
