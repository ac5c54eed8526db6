/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations topo and nodes: the nodes of the fabric and their state. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fabric/ethernet.h"
#include "fabric/outlet.h"
#include "fabric/topo_plan.h"
#include "daemon/control_private.h"

/* --- the state of ports ------------------------------------------------ */

const char *control_state_name(unsigned state)
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

const char *control_node_name(const struct fabric *fab, int node)
{
	const struct topology *topo = fab_topology(fab);

	return node >= 0 && node < topo->num_nodes ? topo->node[node].name : CONTROL_OUTSIDE;
}

bool control_has_cable(const struct fabric *fab, int node, int port)
{
	bool up;

	return fab_topology(fab)->node[node].port[port].peer_node >= 0 || fab_outlet_is_at(fab, node, port, &up);
}

/* --- a running fabric in the print of its topology; @ctx: the request --- */

static struct fabric *fabric_of(void *ctx)
{
	return control_fabric(((struct control_request *)ctx)->control);
}

static const char *view_state(void *ctx, int node, int port)
{
	return control_state_name(fab_node(fabric_of(ctx), node)->port[port].state);
}

static unsigned view_lid(void *ctx, int node, int port)
{
	return fab_node(fabric_of(ctx), node)->port[port].lid;
}

static const char *view_outside(void *ctx, int node, int port)
{
	return control_outside(ctx, node, port);
}

/* --- topo, nodes ------------------------------------------------------- */

/* Put the GID table of a port of RoCE. */
static void put_gids(struct json_object *o, const struct fabric *fab, int node, int port)
{
	const struct topo_node *nd = &fab_topology(fab)->node[node];
	unsigned int interface = nd->ports_before + (unsigned int)port - 1;
	char ndev[32];
	struct json_object *list = json_object_new_array();
	struct fab_roce_gid gids[FAB_ROCE_GIDS];
	unsigned int n = fab_ethernet_gids(fab, node, port, gids);

	for (unsigned int i = 0; i < n; i++) {
		struct json_object *gid = json_object_new_object();

		control_put_hex(gid, "prefix", get_be64(gids[i].gid.raw), 16);
		control_put_hex(gid, "interface", get_be64(gids[i].gid.raw + 8), 16);
		control_put_text(gid, "type", gids[i].v2 ? "RoCE v2" : "IB/RoCE v1");
		snprintf(ndev, sizeof(ndev), gids[i].vlan_id ? "eth%u.%u" : "eth%u", interface, gids[i].vlan_id);
		control_put_text(gid, "ndev", ndev);
		if (gids[i].vlan_id)
			control_put_number(gid, "vlan", gids[i].vlan_id);
		json_object_array_add(list, gid);
	}
	json_object_object_add(o, "gids", list);
}

/* Put further attributes of a port that /sys/class/infiniband shows. */
static void put_details(struct json_object *o, const struct ag_port *p)
{
	struct json_object *pkeys = json_object_new_array();

	control_put_hex(o, "gid_prefix", p->gid_prefix, 16);
	control_put_hex(o, "cap_mask", p->cap_mask, 8);
	control_put_number(o, "sm_sl", p->sm_sl);
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

	control_put_number(o, "port", (uint64_t)port);
	control_put_hex(o, "guid", topo_port_guid(nd, port), 16);
	if (fab_is_ethernet(fab, node, port)) {
		control_put_text(o, "link_layer", "Ethernet");
	} else if (nd->kind != TOPO_SWITCH || port == 0) {
		control_put_number(o, "lid", p->lid);
		control_put_number(o, "lmc", p->lmc);
		control_put_number(o, "sm_lid", p->sm_lid);
	}
	control_put_text(o, "state", control_state_name(p->state));
	control_put_text(o, "phys_state", phys_name(p->phys_state));
	control_put_text(o, "width", topo_width_name(up ? p->width_active : tp->width_enc));
	control_put_text(o, "speed", topo_speed_name(up ? p->speed_active : tp->speed_enc));
	if (port && tp->peer_node >= 0) {
		control_put_text(o, "peer", topo->node[tp->peer_node].name);
		control_put_number(o, "peer_port", tp->peer_port);
		control_put_bool(o, "plugged", fab_link_plugged(fab, node, port));
	} else if (port && control_has_cable(fab, node, port)) {
		control_put_text(o, "peer", CONTROL_OUTSIDE);
		control_put_number(o, "peer_port", 1);
		control_put_bool(o, "plugged", fab_link_plugged(fab, node, port));
	}
	if (detail)
		put_details(o, p);
	if (detail && nd->kind == TOPO_CA && fab_is_ethernet(fab, node, port))
		put_gids(o, fab, node, port);
	return o;
}

/* The first GID of a port of Ethernet is the link-local address of its MAC address. */
static const char *link_local_of(const struct fabric *fab, const struct topo_node *nd, int port,
				 char text[TOPO_PLAN_BYTES])
{
	struct fab_roce_gid gids[FAB_ROCE_GIDS];
	char address[INET6_ADDRSTRLEN];

	if (!nd->port[port].ethernet)
		return topo_plan_link_local(topo_port_guid(nd, port), text);
	fab_ethernet_gids(fab, (int)(nd - fab_topology(fab)->node), port, gids);
	inet_ntop(AF_INET6, gids[0].gid.raw, address, sizeof(address));
	snprintf(text, TOPO_PLAN_BYTES, "%s/64", address);
	return text;
}

/* the interface of a port, or with @v that of its planned VLAN number @v */
static struct json_object *address_json(const struct control_ops *ops, const struct fabric *fab,
					const struct topo_node *nd, unsigned port, unsigned v)
{
	struct json_object *o = json_object_new_object();
	unsigned number = nd->number, of_node = nd->ports_before + port;
	unsigned network = topo_plan_network(ops->addresses, of_node, v);
	char text[TOPO_PLAN_BYTES];
	int n;

	n = snprintf(text, sizeof(text), "%s%u", nd->port[port].ethernet ? "eth" : "ib", of_node - 1);
	if (v)
		snprintf(text + n, sizeof(text) - (size_t)n, ".%u", ops->vlans->id[v - 1]);
	control_put_text(o, "interface", text);
	if (nd->port[port].ethernet)
		control_put_text(o, "link_layer", "Ethernet");
	if (v)
		control_put_number(o, "vlan", ops->vlans->id[v - 1]);
	control_put_text(o, "adapter", nd->name);
	snprintf(text, sizeof(text), "softib%u", nd->device);
	control_put_text(o, "device", text);
	control_put_number(o, "port", port);
	control_put_text(o, "ipv4", topo_plan_ipv4(ops->addresses, number, network, text));
	control_put_text(o, "ipv6", topo_plan_ipv6(ops->addresses, number, network, text));
	control_put_text(o, "link_local", link_local_of(fab, nd, (int)port, text));
	return o;
}

/* Put the interfaces of planned VLANs of all ports of the host that adapter @node is in. */
static void put_vlans(struct json_object *o, const struct control_ops *ops, const struct fabric *fab,
		      int node)
{
	const struct topology *topo = fab_topology(fab);
	struct json_object *list;

	if (!ops->vlans || !ops->vlans->num)
		return;
	list = json_object_new_array();
	for (int i = topo->node[node].host; i >= 0; i = topo->node[i].next)
		for (unsigned port = 1; port <= topo->node[i].num_ports; port++)
			for (unsigned v = 1; v <= ops->vlans->num; v++)
				if (topo->node[i].port[port].ethernet && fab_vlans_has(ops->vlans, i, v))
					json_object_array_add(list, address_json(ops, fab, &topo->node[i], port, v));
	json_object_object_add(o, "vlans", list);
}

/* Put the addresses of all ports of the host that adapter @node is in. */
static void put_addresses(struct json_object *o, const struct control_ops *ops, const struct fabric *fab,
			  int node)
{
	const struct topology *topo = fab_topology(fab);
	struct json_object *list = json_object_new_array();

	for (int i = topo->node[node].host; i >= 0; i = topo->node[i].next)
		for (unsigned port = 1; port <= topo->node[i].num_ports; port++)
			json_object_array_add(list, address_json(ops, fab, &topo->node[i], port, 0));
	json_object_object_add(o, "addresses", list);
}

/* Put the name of the host on which programs run, and the name of this adapter there. */
static void put_host(struct json_object *o, const struct topology *topo, int node)
{
	char device[16];

	snprintf(device, sizeof(device), "softib%u", topo->node[node].device);
	control_put_text(o, "host", topo_host_name(topo, node));
	control_put_text(o, "device", device);
}

static struct json_object *node_json(struct fabric *fab, int node, bool ports,
				     bool detail)
{
	const struct topo_node *nd = &fab_topology(fab)->node[node];
	const struct ag_node *ag = fab_node(fab, node);
	struct json_object *o = json_object_new_object(), *list;

	control_put_text(o, "name", nd->name);
	control_put_text(o, "kind", topo_kind_name(nd->kind));
	if (nd->kind == TOPO_CA)
		put_host(o, fab_topology(fab), node);
	json_object_object_add(
		o, "desc",
		json_object_new_string_len(ag->desc,
					   (int)strnlen(ag->desc, sizeof(ag->desc))));
	control_put_text(o, "id", nd->id);
	control_put_hex(o, "guid", nd->guid, 16);
	control_put_hex(o, "sys_guid", nd->sys_guid, 16);
	control_put_hex(o, "vendor_id", nd->vendor_id, 6);
	control_put_hex(o, "device_id", nd->device_id, 4);
	control_put_number(o, "num_ports", nd->num_ports);
	control_put_number(o, "lid", ag->port[nd->kind == TOPO_SWITCH ? 0 : 1].lid);
	if (!ports)
		return o;
	list = json_object_new_array();
	/* port 0 of a switch has the switch's LID */
	for (int p = nd->kind == TOPO_SWITCH ? 0 : 1; p <= nd->num_ports; p++)
		json_object_array_add(list, port_json(fab, node, p, detail));
	json_object_object_add(o, "ports", list);
	return o;
}

static void put_nodes(struct control_request *req, bool ports)
{
	struct json_object *list = json_object_new_array();
	bool detail = control_flag(req, "detail");
	int only = control_node(req);
	const struct control_ops *ops = control_ops(req->control);

	for (int i = 0; only != -2 && i < control_topology(req)->num_nodes; i++) {
		const struct topo_node *nd = &control_topology(req)->node[i];
		struct json_object *o;
		uint64_t inode;

		if (!control_concerns(req, only, i))
			continue;
		o = node_json(control_fabric(req->control), i, ports, detail);
		if (ops->addresses && nd->kind == TOPO_CA) {
			put_addresses(o, ops, control_fabric(req->control), i);
			put_vlans(o, ops, control_fabric(req->control), i);
		}
		inode = control_namespaces_network(control_namespaces(req->control), i);
		if (inode)
			control_put_number(o, "network_namespace", inode);
		json_object_array_add(list, o);
	}
	if (only == -2)
		json_object_put(list);
	else
		json_object_object_add(req->out, "nodes", list);
}

bool control_op_nodes(struct control_request *req)
{
	put_nodes(req, false);
	control_put_text(req->out, "net", control_ops(req->control)->net);
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

/* Return: false, after answering with an error, if there is no such node */
static bool print(struct control_request *req, size_t format, const struct topo_view *view,
		  FILE *out)
{
	const struct topology *topo = control_topology(req);
	int node = control_node(req);

	if (node == -2)
		return false;
	if (node >= 0)
		topo_print_node(topo, view, node, out);
	else if (!format && control_flag(req, "brief"))
		topo_print_brief(topo, view, out);
	else
		formats[format].print(topo, view, out);
	return true;
}

static void put_print(struct control_request *req, size_t format)
{
	struct topo_view view = {
		.port_state = view_state, .lid = view_lid, .outside = view_outside, .ctx = req,
		.colour = control_flag(req, "colour")};
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	if (out) {
		bool printed = print(req, format, &view, out);

		if (!fclose(out) && printed)
			json_object_object_add(
				req->out, "text",
				json_object_new_string_len(text, (int)bytes));
	}
	if (!json_object_object_length(req->out))
		control_fail(req, "out of memory");
	free(text);
}

bool control_op_topo(struct control_request *req)
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
