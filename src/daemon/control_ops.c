/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The operations of the control socket: one function for each, and the table of
 * their names at the end. docs/CONTROL.md documents them. Operations on topologies,
 * captures, faults and others are in files of their own.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control_private.h"
#include "fabric/outlet.h"
#include "fabric/topo_plan.h"
#include "rdma/ib_verbs.h"

/* --- the state of ports ------------------------------------------------ */

bool control_port_inactive(struct fabric *fab, int *node, int *port)
{
	const struct topology *topo = fab_topology(fab);

	for (; *node < topo->num_nodes; (*node)++, *port = 1) {
		const struct topo_node *nd = &topo->node[*node];
		const struct ag_node *ag = fab_node(fab, *node);

		for (; *port <= nd->num_ports; (*port)++)
			if (control_has_cable(fab, *node, *port) &&
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

			if (!control_has_cable(fab, i, p))
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
	control_put_number(o, "active", (uint64_t)count[WIRE_PORT_ACTIVE]);
	control_put_number(o, "armed", (uint64_t)count[WIRE_PORT_ARMED]);
	control_put_number(o, "init", (uint64_t)count[WIRE_PORT_INIT]);
	control_put_number(o, "down", (uint64_t)count[WIRE_PORT_DOWN]);
	control_put_number(o, "unplugged", (uint64_t)unplugged);
	return o;
}

/* --- ping, status ------------------------------------------------------ */

static bool op_ping(struct control_request *req)
{
	control_put_text(req->out, "version", SOFTIB_VERSION);
	control_put_number(req->out, "protocol", CONTROL_PROTOCOL);
	control_put_number(req->out, "pid", (uint64_t)getpid());
	return true;
}

/* Has any port a cable to another fabric, which may have the subnet manager? */
static bool has_outlet(const struct fabric *fab)
{
	const struct topology *topo = fab_topology(fab);
	bool up;

	for (int i = 0; i < topo->num_nodes; i++)
		for (int p = 1; p <= topo->node[i].num_ports; p++)
			if (topo->node[i].port[p].peer_node < 0 && fab_outlet_is_at(fab, i, p, &up) && up)
				return true;
	return false;
}

/* Put the subnet manager that the adapters use: the first MasterSMLID that one of them has. */
static void put_sm(struct control_request *req)
{
	struct fabric *fab = control_fabric(req->control);
	const struct topology *topo = control_topology(req);
	struct json_object *sm;
	int node, port;

	for (int i = 0; i < topo->num_nodes; i++) {
		const struct ag_port *p = &fab_node(fab, i)->port[1];

		if (topo->node[i].kind == TOPO_SWITCH || !p->sm_lid ||
		    p->state != WIRE_PORT_ACTIVE)
			continue;
		sm = json_object_new_object();
		control_put_number(sm, "lid", p->sm_lid);
		if (!fab_find_lid(fab, p->sm_lid, &node, &port)) {
			control_put_text(sm, "node", topo->node[node].name);
			control_put_number(sm, "port", (uint64_t)port);
		}
		control_put_bool(sm, "outside", has_outlet(fab));
		json_object_object_add(req->out, "sm", sm);
		return;
	}
	json_object_object_add(req->out, "sm", NULL);
}

static void put_network(struct json_object *o, const struct control_ops *ops,
			const struct topology *topo)
{
	char text[TOPO_PLAN_BYTES];

	control_put_text(o, "link_layer", ops->link_layer);
	control_put_text(o, "net", ops->net);
	control_put_text(o, "ipoib_mode", ops->ipoib_connected ? "connected" : "datagram");
	if (!ops->addresses)
		return;
	control_put_text(o, "ipv4", topo_plan_ipv4(ops->addresses, 0, 1, text));
	control_put_text(o, "ipv6", topo_plan_ipv6(ops->addresses, 0, 1, text));
	control_put_number(o, "own_addresses", (uint64_t)topo->num_addresses);
}

static bool op_status(struct control_request *req)
{
	const struct control_ops *ops = control_ops(req->control);
	const struct topology *topo = control_topology(req);
	uint64_t count[TOPO_ROUTER + 1] = {0};
	mono_t now = rt_now(control_rt(req->control));

	op_ping(req);
	if (ops->topology)
		control_put_text(req->out, "topology", ops->topology);
	control_put_number(req->out, "uptime_ms",
			   (now.ns - control_started(req->control).ns) / NSEC_PER_MSEC);
	for (int i = 0; i < topo->num_nodes; i++)
		count[topo->node[i].kind]++;
	control_put_number(req->out, "adapters", count[TOPO_CA]);
	control_put_number(req->out, "switches", count[TOPO_SWITCH]);
	control_put_number(req->out, "routers", count[TOPO_ROUTER]);
	control_put_number(req->out, "min_ack_timeout_us", ops->min_ack_timeout_us);
	put_network(req->out, ops, topo);
	if (ops->profile) {
		control_put_text(req->out, "hca_profile", ops->profile);
		control_put_text(req->out, "hca_profile_less", ops->profile_less);
	}
	if (ops->polled)
		control_put_text(req->out, "polled", ops->polled);
	json_object_object_add(req->out, "ports", states(control_fabric(req->control)));
	put_sm(req);
	json_object_object_add(req->out, "protocols", control_protocols(req));
	control_put_number(req->out, "resources", control_num_resources(control_fabric(req->control)));
	if (ops->window_operations)
		control_put_number(req->out, "window_operations", ops->window_operations(ops->ctx));
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
		control_fail(req, "\"state\" has to be \"up\" or \"down\"");
		return true;
	}
	tp = &control_topology(req)->node[node].port[port];
	if (!control_has_cable(control_fabric(req->control), node, port)) {
		control_fail(req, "no cable at %s:%d", control_topology(req)->node[node].name,
			     port);
		return true;
	}
	error = fab_link_set(control_fabric(req->control), node, port,
			     !strcmp(state, "up"));
	if (error) { /* the cable exists, so a fault rule keeps it disconnected */
		holder = fab_link_holder(control_fabric(req->control), node, port);
		control_fail(req, "%s:%d: fault rule %u holds this link down; "
				  "'softib fault clear %u' ends that",
			     control_topology(req)->node[node].name, port, holder, holder);
		return true;
	}
	control_put_text(req->out, "node", control_topology(req)->node[node].name);
	control_put_number(req->out, "port", (uint64_t)port);
	if (tp->peer_node >= 0) {
		control_put_text(req->out, "peer", control_topology(req)->node[tp->peer_node].name);
		control_put_number(req->out, "peer_port", tp->peer_port);
	} else {
		control_put_text(req->out, "peer", CONTROL_OUTSIDE);
		control_put_number(req->out, "peer_port", 1);
	}
	control_put_text(req->out, "state", state);
	return true;
}

/* --- counters ---------------------------------------------------------- */

/* The counters that perfquery prints, in the same order. Amounts of data are in bytes, not dwords. */
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

static void put_hca_counters(struct control_request *req, struct json_object *o, int node, unsigned port)
{
	const struct control_ops *ops = control_ops(req->control);
	uint64_t values[ABI_COUNTERS];

	if (!ops->port_counters || !ops->port_counters(ops->ctx, node, port, values))
		return;
	for (unsigned i = 0; i < ABI_COUNTERS; i++)
		control_put_number(o, ops->port_counter_names[i], values[i]);
}

static struct json_object *counters_json(struct control_request *req, int node, int port)
{
	const struct ag_port *p = &fab_node(control_fabric(req->control), node)->port[port];
	struct json_object *o = json_object_new_object();

	control_put_text(o, "node", control_topology(req)->node[node].name);
	control_put_number(o, "port", (uint64_t)port);
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		enum ag_counter c = counters[i].counter;

		control_put_number(o, counters[i].name,
				   (p->count.raw[c] - p->seldom->base_ext[c]) *
					   (uint64_t)counters[i].scale);
	}
	put_hca_counters(req, o, node, (unsigned)port);
	return o;
}

static bool op_counters(struct control_request *req)
{
	const struct topology *topo = control_topology(req);
	struct json_object *list;
	int node = control_node(req), only_port = 0;

	if (node == -2)
		return true;
	if (json_object_object_get_ex(req->in, "port", NULL) &&
	    !control_port(req, &node, &only_port))
		return true;
	fab_fold(control_fabric(req->control));
	list = json_object_new_array();
	for (int i = 0; i < topo->num_nodes; i++)
		for (int p = 1; p <= topo->node[i].num_ports && control_concerns(req, node, i); p++)
			if (only_port ? p == only_port
				      : control_has_cable(control_fabric(req->control), i, p))
				json_object_array_add(list, counters_json(req, i, p));
	json_object_object_add(req->out, "counters", list);
	return true;
}

/* --- resources ---------------------------------------------------------
 *
 * Programs may have millions of objects. A request is answered with one page, and
 * the next request continues where it ended.
 */

#define RESOURCES_PER_PAGE 192 /* this number fits into one message unless names are long */

static struct json_object *resource(const struct topology *topo,
				    const struct control_resource *res)
{
	struct json_object *o = json_object_new_object();

	control_put_text(o, "node", topo->node[res->node].name);
	control_put_text(o, "device", res->device);
	control_put_text(o, "type", res->type);
	control_put_number(o, "handle", res->id);
	if (!strcmp(res->type, "qp"))
		control_put_hex(o, "qpn", res->qpn, 6);
	control_put_number(o, "pid", (uint64_t)res->pid);
	control_put_text(o, "comm", res->comm ? res->comm : "");
	if (res->details[0])
		control_put_text(o, "details", res->details);
	return o;
}

static void end_walk(struct control_walk **walk)
{
	if (*walk)
		control_walk_end(*walk);
	*walk = NULL;
}

static void put_page(struct control_request *req, struct control_walk **walk)
{
	struct json_object *list = json_object_new_array();
	struct control_resource res;
	bool more = true;

	for (int n = 0; more && n < RESOURCES_PER_PAGE; n++) {
		more = control_walk_next(*walk, &res);
		if (more)
			json_object_array_add(list, resource(control_topology(req), &res));
	}
	json_object_object_add(req->out, "resources", list);
	if (more)
		control_put_bool(req->out, "more", true);
	else
		end_walk(walk);
}

static bool op_resources(struct control_request *req)
{
	struct control_walk **walk = control_client_walk(req->client);
	int node = control_node(req);

	if (node == -2)
		return true;
	if (!control_flag(req, "more")) {
		end_walk(walk);
		*walk = control_walk_begin(control_fabric(req->control), node);
	}
	if (*walk)
		put_page(req, walk);
	else
		control_fail(req, control_flag(req, "more") ?
				  "there is no further page: send a request without \"more\" first" : "out of memory");
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
			 topo->node[node].name, port, control_state_name(fab_node(fab, node)->port[port].state));
		control_put_text(out, "error", text);
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
	control_put_number(req->out, "pid", (uint64_t)getpid());
	ops->stop(ops->ctx);
	return true;
}

/* --- describe ------------------------------------------------------------ */

static bool op_describe(struct control_request *req)
{
	const char *node = control_text(req, "node"), *name = control_text(req, "device");
	const char *text = control_text(req, "text");
	struct ib_device_modify modify = {0};
	struct ib_device *device;
	int ret;

	if (!node || !name || !text || strlen(text) > sizeof(modify.node_desc)) {
		control_fail(req, "\"node\", \"device\" and \"text\" are missing, or the text has more than %zu bytes",
			     sizeof(modify.node_desc));
		return true;
	}
	device = ib_device_get_by_name(control_rt(req->control), node, name);
	if (!device) {
		control_fail(req, "node \"%.32s\" has no adapter \"%.32s\"", node, name);
		return true;
	}
	memcpy(modify.node_desc, text, strlen(text));
	ret = ib_modify_device(device, IB_DEVICE_MODIFY_NODE_DESC, &modify);
	if (ret)
		control_fail(req, "%s", strerror(-ret));
	return true;
}

static const struct {
	const char *name;
	bool (*fn)(struct control_request *req);
} operations[] = {
	{"ping", op_ping},	   {"version", op_ping},	{"status", op_status},
	{"topo", control_op_topo},	   {"nodes", control_op_nodes},		{"link", op_link},
	{"counters", op_counters}, {"resources", op_resources}, {"wait", op_wait},
	{"describe", op_describe},
	{"stop", op_stop},	   {"capture", control_op_capture}, {"path", control_op_path},
	{"trace", control_op_trace}, {"trace_points", control_op_trace_points},
	{"trace_provide", control_op_trace_provide},
	{"namespaces", control_op_namespaces},
	{"hold_namespaces", control_op_hold_namespaces},
	{"eth_open", control_op_eth_open},
	{"eth", control_op_eth},
	{"ipoib_open", control_op_ipoib_open},
	{"ipoib_close", control_op_ipoib_close},
	{"ipoib_mode", control_op_ipoib_mode},
	{"ipoib_moderation", control_op_ipoib_moderation},
	{"ipoib", control_op_ipoib},
	{"sdp_move", control_op_sdp_move},
	{"srp_unit_add", control_op_srp_unit_add},
	{"srp_unit_remove", control_op_srp_unit_remove},
	{"srp_targets", control_op_srp_targets},
	{"srp_discover", control_op_srp_discover},
	{"srp_login", control_op_srp_login},
	{"srp_logout", control_op_srp_logout},
	{"srp_sessions", control_op_srp_sessions},
	{"module_load", control_op_module_load},
	{"module_unload", control_op_module_unload},
	{"modules", control_op_modules},
	{"cable_add", control_op_cable_add}, {"cable_remove", control_op_cable_remove}, {"cables", control_op_cables},
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
		     "counters, resources, wait, path, describe, capture, trace, trace_points, trace_provide, namespaces, hold_namespaces, "
		     "eth_open, eth, ipoib_open, ipoib_close, ipoib_mode, ipoib_moderation, ipoib, sdp_move, srp_unit_add, srp_unit_remove, srp_targets, "
		     "srp_discover, srp_login, srp_logout, srp_sessions, "
		     "module_load, module_unload, modules, cable_add, cable_remove, cables, "
		     "fault_add, fault_list, fault_clear, fault_log or stop",
		     op);
	return true;
}
