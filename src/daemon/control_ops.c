/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the control socket can be asked: one function for each operation, and
 * the table of their names at the end. docs/CONTROL.md lists members.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control_private.h"

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

static void put_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void put_number(struct json_object *o, const char *key, uint64_t n)
{
	json_object_object_add(o, key, json_object_new_uint64(n));
}

static void put_bool(struct json_object *o, const char *key, bool value)
{
	json_object_object_add(o, key, json_object_new_boolean(value));
}

static void put_hex(struct json_object *o, const char *key, uint64_t n, int digits)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%0*" PRIx64, digits, n);
	put_text(o, key, text);
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

static bool get_flag(struct control_request *req, const char *key)
{
	struct json_object *o;

	return json_object_object_get_ex(req->in, key, &o) && json_object_get_boolean(o);
}

/* an integer in 0..@most; -1 when absent, -2 (and an error) when wrong */
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

static const struct topology *topology_of(struct control_request *req)
{
	return fab_topology(control_fabric(req->control));
}

/* the node "node" names: index; -1 when absent, -2 (and an error) when wrong */
int control_node(struct control_request *req)
{
	struct json_object *o;
	const char *name = control_text(req, "node");
	int node;

	if (!name) {
		if (!json_object_object_get_ex(req->in, "node", &o))
			return -1;
		control_fail(req, "\"node\" is not a string");
		return -2;
	}
	node = topo_find(topology_of(req), name);
	if (node < 0)
		control_fail(
			req,
			"no node \"%s\" in this fabric; expected a name such as \"%s\", a "
			"description, an id or a GUID",
			name, topology_of(req)->node[0].name);
	return node < 0 ? -2 : node;
}

/* "node" and "port", both needed, a port that exists */
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
	if (n >= 1 && n <= topology_of(req)->node[*node].num_ports)
		return true;
	control_fail(req, "%s has ports 1 to %d", topology_of(req)->node[*node].name,
		     topology_of(req)->node[*node].num_ports);
	return false;
}

/* --- the state of ports ------------------------------------------------ */

static const char *state_name(unsigned state)
{
	static const char *const names[] = {"?", "Down", "Init", "Armed", "Active"};

	return state < ARRAY_SIZE(names) ? names[state] : names[0];
}

static const char *phys_name(unsigned state)
{
	static const char *const names[] = {
		"?",	    "Sleep",  "Polling",       "Disabled",
		"Training", "LinkUp", "ErrorRecovery", "PhyTest"};

	return state < ARRAY_SIZE(names) ? names[state] : names[0];
}

static const char *view_state(void *ctx, int node, int port)
{
	return state_name(fab_node(ctx, node)->port[port].state);
}

static unsigned view_lid(void *ctx, int node, int port)
{
	return fab_node(ctx, node)->port[port].lid;
}

bool control_port_inactive(struct fabric *fab, int *node, int *port)
{
	const struct topology *topo = fab_topology(fab);

	for (; *node < topo->num_nodes; (*node)++, *port = 1) {
		const struct topo_node *nd = &topo->node[*node];
		const struct ag_node *ag = fab_node(fab, *node);

		for (; *port <= nd->num_ports; (*port)++)
			if (nd->port[*port].peer_node >= 0 &&
			    (fab_link_plugged(fab, *node, *port) ||
			     fab_link_returns(fab, *node, *port)) &&
			    ag->port[*port].state != WIRE_PORT_ACTIVE)
				return true;
	}
	return false;
}

static void count_states(struct fabric *fab, int count[WIRE_PORT_ACTIVE + 1],
			 int *unplugged)
{
	const struct topology *topo = fab_topology(fab);

	for (int i = 0; i < topo->num_nodes; i++) {
		for (int p = 1; p <= topo->node[i].num_ports; p++) {
			unsigned state = fab_node(fab, i)->port[p].state;

			if (topo->node[i].port[p].peer_node < 0)
				continue;
			if (!fab_link_plugged(fab, i, p))
				(*unplugged)++;
			else if (state <= WIRE_PORT_ACTIVE)
				count[state]++;
		}
	}
}

static struct json_object *states(struct fabric *fab)
{
	int count[WIRE_PORT_ACTIVE + 1] = {0}, unplugged = 0;
	struct json_object *o = json_object_new_object();

	count_states(fab, count, &unplugged);
	put_number(o, "active", (uint64_t)count[WIRE_PORT_ACTIVE]);
	put_number(o, "armed", (uint64_t)count[WIRE_PORT_ARMED]);
	put_number(o, "init", (uint64_t)count[WIRE_PORT_INIT]);
	put_number(o, "down", (uint64_t)count[WIRE_PORT_DOWN]);
	put_number(o, "unplugged", (uint64_t)unplugged);
	return o;
}

/* --- ping, status ------------------------------------------------------ */

static bool op_ping(struct control_request *req)
{
	put_text(req->out, "version", SOFTIB_VERSION);
	put_number(req->out, "protocol", CONTROL_PROTOCOL);
	put_number(req->out, "pid", (uint64_t)getpid());
	return true;
}

/* who the adapters take for the subnet manager: the first LID that one names */
static void put_sm(struct control_request *req)
{
	struct fabric *fab = control_fabric(req->control);
	const struct topology *topo = topology_of(req);
	struct json_object *sm;
	int node, port;

	for (int i = 0; i < topo->num_nodes; i++) {
		const struct ag_port *p = &fab_node(fab, i)->port[1];

		if (topo->node[i].kind == TOPO_SWITCH || !p->sm_lid ||
		    p->state != WIRE_PORT_ACTIVE)
			continue;
		sm = json_object_new_object();
		put_number(sm, "lid", p->sm_lid);
		if (!fab_find_lid(fab, p->sm_lid, &node, &port)) {
			put_text(sm, "node", topo->node[node].name);
			put_number(sm, "port", (uint64_t)port);
		}
		json_object_object_add(req->out, "sm", sm);
		return;
	}
	json_object_object_add(req->out, "sm", NULL);
}

static int count_resource(void *arg, const struct control_resource *res)
{
	++*(uint64_t *)arg;
	return 0;
}

static bool op_status(struct control_request *req)
{
	const struct control_ops *ops = control_ops(req->control);
	const struct topology *topo = topology_of(req);
	uint64_t count[TOPO_ROUTER + 1] = {0}, resources = 0;
	mono_t now = rt_now(control_rt(req->control));

	op_ping(req);
	if (ops->topology)
		put_text(req->out, "topology", ops->topology);
	put_number(req->out, "uptime_ms",
		   (now.ns - control_started(req->control).ns) / NSEC_PER_MSEC);
	for (int i = 0; i < topo->num_nodes; i++)
		count[topo->node[i].kind]++;
	put_number(req->out, "adapters", count[TOPO_CA]);
	put_number(req->out, "switches", count[TOPO_SWITCH]);
	put_number(req->out, "routers", count[TOPO_ROUTER]);
	json_object_object_add(req->out, "ports", states(control_fabric(req->control)));
	put_sm(req);
	if (ops->each_resource &&
	    !ops->each_resource(ops->ctx, control_fabric(req->control), -1,
				count_resource, &resources))
		put_number(req->out, "resources", resources);
	if (ops->window_operations)
		put_number(req->out, "window_operations", ops->window_operations());
	return true;
}

/* --- topo, nodes ------------------------------------------------------- */

/* what /sys/class/infiniband shows of a port besides */
static void put_details(struct json_object *o, const struct ag_port *p)
{
	struct json_object *pkeys = json_object_new_array();

	put_hex(o, "gid_prefix", p->gid_prefix, 16);
	put_hex(o, "cap_mask", p->cap_mask, 8);
	put_number(o, "sm_sl", p->sm_sl);
	for (int i = 0; p->pkeys && i < p->num_pkeys; i++)
		json_object_array_add(pkeys, json_object_new_int(p->pkeys[i]));
	json_object_object_add(o, "pkeys", pkeys);
}

static struct json_object *port_json(struct fabric *fab, int node, int port, bool detail)
{
	const struct topology *topo = fab_topology(fab);
	const struct topo_node *nd = &topo->node[node];
	const struct topo_port *tp = &nd->port[port];
	const struct ag_port *p = &fab_node(fab, node)->port[port];
	bool up = p->state >= WIRE_PORT_INIT;
	struct json_object *o = json_object_new_object();

	put_number(o, "port", (uint64_t)port);
	put_hex(o, "guid", topo_port_guid(nd, port), 16);
	if (nd->kind != TOPO_SWITCH || port == 0) {
		put_number(o, "lid", p->lid);
		put_number(o, "lmc", p->lmc);
		put_number(o, "sm_lid", p->sm_lid);
	}
	put_text(o, "state", state_name(p->state));
	put_text(o, "phys_state", phys_name(p->phys_state));
	put_text(o, "width", topo_width_name(up ? p->width_active : tp->width_enc));
	put_text(o, "speed", topo_speed_name(up ? p->speed_active : tp->speed_enc));
	if (port && tp->peer_node >= 0) {
		put_text(o, "peer", topo->node[tp->peer_node].name);
		put_number(o, "peer_port", tp->peer_port);
		put_bool(o, "plugged", fab_link_plugged(fab, node, port));
	}
	if (detail)
		put_details(o, p);
	return o;
}

static struct json_object *node_json(struct fabric *fab, int node, bool ports,
				     bool detail)
{
	const struct topo_node *nd = &fab_topology(fab)->node[node];
	const struct ag_node *ag = fab_node(fab, node);
	struct json_object *o = json_object_new_object(), *list;

	put_text(o, "name", nd->name);
	put_text(o, "kind", topo_kind_name(nd->kind));
	json_object_object_add(
		o, "desc",
		json_object_new_string_len(ag->desc,
					   (int)strnlen(ag->desc, sizeof(ag->desc))));
	put_text(o, "id", nd->id);
	put_hex(o, "guid", nd->guid, 16);
	put_hex(o, "sys_guid", nd->sys_guid, 16);
	put_hex(o, "vendor_id", nd->vendor_id, 6);
	put_hex(o, "device_id", nd->device_id, 4);
	put_number(o, "num_ports", nd->num_ports);
	put_number(o, "lid", ag->port[nd->kind == TOPO_SWITCH ? 0 : 1].lid);
	if (!ports)
		return o;
	list = json_object_new_array();
	/* the LIDs of a switch are its port 0's */
	for (int p = nd->kind == TOPO_SWITCH ? 0 : 1; p <= nd->num_ports; p++)
		json_object_array_add(list, port_json(fab, node, p, detail));
	json_object_object_add(o, "ports", list);
	return o;
}

static void put_nodes(struct control_request *req, bool ports)
{
	struct json_object *list = json_object_new_array();
	bool detail = get_flag(req, "detail");
	int only = control_node(req);

	for (int i = 0; only != -2 && i < topology_of(req)->num_nodes; i++)
		if (only < 0 || i == only)
			json_object_array_add(list,
					      node_json(control_fabric(req->control), i,
							ports, detail));
	if (only == -2)
		json_object_put(list);
	else
		json_object_object_add(req->out, "nodes", list);
}

static bool op_nodes(struct control_request *req)
{
	put_nodes(req, false);
	return true;
}

static const struct {
	const char *name;
	void (*print)(const struct topology *topo, const struct topo_view *view,
		      FILE *out);
} formats[] = {
	{"text", topo_print_text},
	{"dot", topo_print_dot},
	{"ibnetdiscover", topo_print_ibnetdiscover},
};

static void put_print(struct control_request *req, size_t format)
{
	struct topo_view view = {view_state, view_lid, control_fabric(req->control),
				 get_flag(req, "colour")};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out) {
		formats[format].print(topology_of(req), &view, out);
		if (!fclose(out))
			json_object_object_add(
				req->out, "text",
				json_object_new_string_len(text, (int)bytes));
	}
	if (!json_object_object_length(req->out))
		control_fail(req, "out of memory");
	free(text);
}

static bool op_topo(struct control_request *req)
{
	const char *format = control_text(req, "format");

	if (!format || !strcmp(format, "json")) {
		put_nodes(req, true);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		if (!strcmp(format, formats[i].name)) {
			put_print(req, i);
			return true;
		}
	}
	control_fail(req,
		     "no format \"%.32s\"; expected json, text, dot or ibnetdiscover",
		     format);
	return true;
}

/* --- link -------------------------------------------------------------- */

static bool op_link(struct control_request *req)
{
	const char *state = control_text(req, "state");
	const struct topo_port *tp;
	int node, port, error;
	uint32_t holder;

	if (!control_port(req, &node, &port))
		return true;
	if (!state || (strcmp(state, "up") && strcmp(state, "down"))) {
		control_fail(req, "\"state\" is neither \"up\" nor \"down\"");
		return true;
	}
	tp = &topology_of(req)->node[node].port[port];
	if (tp->peer_node < 0) {
		control_fail(req, "no cable at %s:%d", topology_of(req)->node[node].name,
			     port);
		return true;
	}
	error = fab_link_set(control_fabric(req->control), node, port,
			     !strcmp(state, "up"));
	if (error) { /* the cable exists: a rule wants it out */
		holder = fab_link_holder(control_fabric(req->control), node, port);
		control_fail(req, "%s:%d: fault rule %u holds this link down; "
				  "'softib fault clear %u' ends that",
			     topology_of(req)->node[node].name, port, holder, holder);
		return true;
	}
	put_text(req->out, "node", topology_of(req)->node[node].name);
	put_number(req->out, "port", (uint64_t)port);
	put_text(req->out, "peer", topology_of(req)->node[tp->peer_node].name);
	put_number(req->out, "peer_port", tp->peer_port);
	put_text(req->out, "state", state);
	return true;
}

/* --- counters ---------------------------------------------------------- */

/* those that perfquery shows, and in its order; data in bytes, not dwords */
static const struct {
	enum ag_counter counter;
	const char *name;
	int scale;
} counters[] = {
	{AG_XMIT_DATA, "xmit_bytes", 4},
	{AG_RCV_DATA, "rcv_bytes", 4},
	{AG_XMIT_PACKETS, "xmit_packets", 1},
	{AG_RCV_PACKETS, "rcv_packets", 1},
	{AG_UNICAST_XMIT, "unicast_xmit_packets", 1},
	{AG_UNICAST_RCV, "unicast_rcv_packets", 1},
	{AG_MULTICAST_XMIT, "multicast_xmit_packets", 1},
	{AG_MULTICAST_RCV, "multicast_rcv_packets", 1},
	{AG_XMIT_WAIT, "xmit_wait", 1},
	{AG_XMIT_DISCARDS, "xmit_discards", 1},
	{AG_SYMBOL_ERRORS, "symbol_errors", 1},
	{AG_LINK_RECOVERY, "link_recovery", 1},
	{AG_LINK_DOWNED, "link_downed", 1},
	{AG_RCV_ERRORS, "rcv_errors", 1},
	{AG_RCV_REMOTE_PHYSICAL, "rcv_remote_physical_errors", 1},
	{AG_RCV_SWITCH_RELAY, "rcv_switch_relay_errors", 1},
	{AG_XMIT_CONSTRAINT, "xmit_constraint_errors", 1},
	{AG_RCV_CONSTRAINT, "rcv_constraint_errors", 1},
	{AG_LOCAL_INTEGRITY, "local_integrity_errors", 1},
	{AG_BUFFER_OVERRUN, "buffer_overrun_errors", 1},
	{AG_VL15_DROPPED, "vl15_dropped", 1},
};

static struct json_object *counters_json(struct control_request *req, int node, int port)
{
	const struct ag_counters *count =
		&fab_node(control_fabric(req->control), node)->port[port].count;
	struct json_object *o = json_object_new_object();

	put_text(o, "node", topology_of(req)->node[node].name);
	put_number(o, "port", (uint64_t)port);
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		enum ag_counter c = counters[i].counter;

		put_number(o, counters[i].name,
			   (count->raw[c] - count->base_ext[c]) *
				   (uint64_t)counters[i].scale);
	}
	return o;
}

static bool op_counters(struct control_request *req)
{
	const struct topology *topo = topology_of(req);
	struct json_object *list;
	int node = control_node(req), only_port = 0, first, last;

	if (node == -2)
		return true;
	if (json_object_object_get_ex(req->in, "port", NULL) &&
	    !control_port(req, &node, &only_port))
		return true;
	fab_fold(control_fabric(req->control));
	list = json_object_new_array();
	first = node < 0 ? 0 : node;
	last = node < 0 ? topo->num_nodes - 1 : node;
	for (int i = first; i <= last; i++)
		for (int p = 1; p <= topo->node[i].num_ports; p++)
			if (only_port ? p == only_port
				      : topo->node[i].port[p].peer_node >= 0)
				json_object_array_add(list, counters_json(req, i, p));
	json_object_object_add(req->out, "counters", list);
	return true;
}

/* --- resources --------------------------------------------------------- */

struct resource_list {
	const struct topology *topo;
	struct json_object *list;
};

static int add_resource(void *arg, const struct control_resource *res)
{
	struct resource_list *rl = arg;
	struct json_object *o = json_object_new_object();

	put_text(o, "node", rl->topo->node[res->node].name);
	put_text(o, "device", res->device);
	put_text(o, "type", res->type);
	put_number(o, "handle", res->id);
	if (!strcmp(res->type, "qp"))
		put_hex(o, "qpn", res->qpn, 6);
	put_number(o, "pid", (uint64_t)res->pid);
	put_text(o, "comm", res->comm ? res->comm : "");
	return json_object_array_add(rl->list, o);
}

static bool op_resources(struct control_request *req)
{
	const struct control_ops *ops = control_ops(req->control);
	struct resource_list rl = {.topo = topology_of(req)};
	int node = control_node(req);

	if (node == -2)
		return true;
	if (!ops->each_resource) {
		control_fail(req, "this softibd tracks no resources");
		return true;
	}
	rl.list = json_object_new_array();
	if (ops->each_resource(ops->ctx, control_fabric(req->control), node, add_resource,
			       &rl)) {
		json_object_put(rl.list);
		control_fail(req, "out of memory");
		return true;
	}
	json_object_object_add(req->out, "resources", rl.list);
	return true;
}

/* --- wait, stop -------------------------------------------------------- */

struct json_object *control_wait_done(struct fabric *fab, bool in_time)
{
	const struct topology *topo = fab_topology(fab);
	struct json_object *out = json_object_new_object();
	int node = 0, port = 1;
	char text[160];

	if (!in_time && control_port_inactive(fab, &node, &port)) {
		snprintf(text, sizeof(text),
			 "time-out: %s:%d is not Active but %s; is a subnet "
			 "manager running?",
			 topo->node[node].name, port, view_state(fab, node, port));
		put_text(out, "error", text);
	}
	json_object_object_add(out, "ports", states(fab));
	return out;
}

static bool op_wait(struct control_request *req)
{
	const char *until = control_text(req, "until");
	int64_t timeout_ms = control_number(req, "timeout_ms", 1000 * 3600 * 24);
	int node = 0, port = 1;

	if (timeout_ms == -2)
		return true;
	if (!until || strcmp(until, "active")) {
		control_fail(req,
			     "\"until\" is missing or not known; expected \"active\"");
		return true;
	}
	if (control_port_inactive(control_fabric(req->control), &node, &port)) {
		control_client_wait(req->client,
				    timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
		return false;
	}
	json_object_object_add(req->out, "ports", states(control_fabric(req->control)));
	return true;
}

static bool op_stop(struct control_request *req)
{
	const struct control_ops *ops = control_ops(req->control);

	if (!ops->stop) {
		control_fail(req, "this softibd cannot be stopped by its control socket");
		return true;
	}
	put_number(req->out, "pid", (uint64_t)getpid());
	ops->stop(ops->ctx);
	return true;
}

static const struct {
	const char *name;
	bool (*fn)(struct control_request *req);
} operations[] = {
	{"ping", op_ping},	   {"version", op_ping},	{"status", op_status},
	{"topo", op_topo},	   {"nodes", op_nodes},		{"link", op_link},
	{"counters", op_counters}, {"resources", op_resources}, {"wait", op_wait},
	{"stop", op_stop},	   {"capture", control_op_capture},
	{"fault_add", control_op_fault_add},	 {"fault_list", control_op_fault_list},
	{"fault_clear", control_op_fault_clear}, {"fault_log", control_op_fault_log},
};

bool control_dispatch(struct control_request *req)
{
	const char *op = control_text(req, "op");

	if (!op) {
		control_fail(
			req,
			"\"op\" is missing; expected for example {\"op\": \"status\"}");
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
		if (!strcmp(op, operations[i].name))
			return operations[i].fn(req);
	control_fail(req,
		     "no operation \"%.32s\"; expected ping, status, topo, nodes, link, "
		     "counters, resources, wait, capture, fault_add, fault_list, fault_clear, "
		     "fault_log or stop",
		     op);
	return true;
}
