/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Discovery by directed routes (14.2.2): query the own node, then the neighbour at
 * every port that is up, and so on. Answers arrive in any order. A cable is recorded
 * when the first of its ends answers, and is not queried from the other end. Each
 * answer causes further queries:
 *
 *   NodeInfo   -> a new node: NodeDescription; of a switch SwitchInfo and all
 *                 PortInfo; of an adapter PortInfo of the port that answered
 *   PortInfo   -> a port that is up: NodeInfo of its neighbour; an end port:
 *                 its P_KeyTable
 */
#include "sm/internal.h"

#include <string.h>

static void node_reply(struct sm *sm, const struct sm_reply *r);
static void port_reply(struct sm *sm, const struct sm_reply *r);

static void desc_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_node *n = r->obj;

	if (r->data)
		wire_node_description_decode(r->data, WIRE_SMP_DATA_BYTES, &n->desc);
}

static void pkeys_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_port *p = r->obj;
	struct wire_pkey_table t;

	if (!r->data || r->status ||
	    wire_pkey_table_decode(r->data, WIRE_SMP_DATA_BYTES, &t) < 0)
		return;
	memcpy(p->pkeys, t.pkey, sizeof(p->pkeys));
	p->pkeys_known = true;
}

static void switch_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_node *n = r->obj;

	if (!r->data || wire_switch_info_decode(r->data, WIRE_SMP_DATA_BYTES, &n->sw) < 0) {
		sm_log(sm, SM_LOG_WARNING, "%s gives no valid SwitchInfo",
		       sm_node_name(n));
		return;
	}
	/* a change from now on needs another sweep, so clear the flag before reading on */
	for (uint32_t p = 0; p <= n->n_ports; p++)
		sm_get(sm, &n->path, WIRE_SMP_PORT_INFO, p, port_reply, &n->ports[p], 0);
}

/* Ask for PortInfo of the port by which an adapter was reached. */
static void know_adapter_port(struct sm *sm, struct sm_node *n,
			      const struct wire_node_info *info, const struct sm_path *path)
{
	struct sm_port *p = &n->ports[info->local_port];

	if (p->guid)
		return; /* it was queried already */
	p->guid = info->port_guid;
	if (memcmp(path, &n->path, sizeof(*path))) {
		p->path = rt_zalloc(sizeof(*path));
		if (p->path)
			*p->path = *path;
		else
			p->path = &n->path;
	}
	sm_get(sm, path, WIRE_SMP_PORT_INFO, p->num, port_reply, p, 0);
}

static struct sm_node *add_node(struct sm *sm, const struct wire_node_info *info,
				const struct sm_path *path)
{
	struct sm_node *n = sm_subnet_add(sm->next, info, path);

	if (!n) {
		sm_log(sm, SM_LOG_ERROR, "out of memory in discovery");
		return NULL;
	}
	if (sm->next->n_nodes % 1000 == 0)
		sm_log(sm, SM_LOG_INFO, "%u nodes found so far", sm->next->n_nodes);
	sm_get(sm, &n->path, WIRE_SMP_NODE_DESCRIPTION, 0, desc_reply, n, 0);
	if (sm_is_switch(n)) {
		n->ports[0].guid = info->port_guid;
		sm_get(sm, &n->path, WIRE_SMP_SWITCH_INFO, 0, switch_reply, n, 0);
	}
	return n;
}

/* Record the cable between two ports. Either both are each other's peers or neither is, so
 * that the graph for routing has no unidirectional cables. */
static void connect(struct sm *sm, struct sm_port *a, struct sm_port *b)
{
	if (!a)
		return;
	if ((b->peer && b->peer != a) || (a->peer && a->peer != b)) {
		sm_log(sm, SM_LOG_WARNING,
		       "port %u of %s answers on two cables: a duplicate GUID? The second "
		       "is left out",
		       b->num, sm_node_name(b->node));
		return;
	}
	a->peer = b;
	b->peer = a;
}

/* Is this answer plausible? No cable ends at port 0, and an adapter has no port 0 */
static bool is_possible(const struct wire_node_info *info, bool through_cable)
{
	bool from_port_0 = !info->local_port;

	return info->node_guid && info->local_port <= info->nr_ports &&
	       !(from_port_0 && (through_cable || info->node_type != WIRE_NODE_SWITCH));
}

/* NodeInfo arrived. @from is the port to which the node is connected, NULL for the own node. */
static void node_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_port *from = r->obj;
	struct wire_node_info info;
	struct sm_path path = {0};
	struct sm_node *n;

	if (!r->data || r->status ||
	    wire_node_info_decode(r->data, WIRE_SMP_DATA_BYTES, &info) < 0) {
		if (from)
			sm_log(sm, SM_LOG_WARNING, "no node answers at the other end of port %u of %s",
			       from->num, sm_node_name(from->node));
		return;
	}
	if (!is_possible(&info, from)) {
		sm_log(sm, SM_LOG_WARNING, "a node with an invalid NodeInfo is ignored");
		return;
	}
	if (from) {
		path = from->node->path;
		path.out[++path.hops] = from->num;
	}
	n = sm_subnet_node(sm->next, info.node_guid) ?: add_node(sm, &info, &path);
	if (!n || info.local_port > n->n_ports)
		return;
	if (!sm_is_switch(n))
		know_adapter_port(sm, n, &info, &path);
	connect(sm, from, &n->ports[info.local_port]);
	if (!from)
		sm->next->self = sm_is_switch(n) ? &n->ports[0] : &n->ports[info.local_port];
}

/* Query the neighbour at @p. An adapter does not forward SMPs, so only the manager's own
 * adapter has neighbours to query. */
static void look_through(struct sm *sm, struct sm_port *p)
{
	struct sm_path path = p->node->path;

	if (p->peer || p->info.state < WIRE_PORT_INIT ||
	    (!sm_is_switch(p->node) && p != sm->next->self))
		return;
	if (path.hops >= WIRE_SMP_HOPS_MAX) {
		sm_log(sm, SM_LOG_WARNING, "%s is %u hops away, the most for directed routes: nodes behind it are ignored",
		       sm_node_name(p->node), path.hops);
		return;
	}
	path.out[++path.hops] = p->num;
	sm_get(sm, &path, WIRE_SMP_NODE_INFO, 0, node_reply, p, 0);
}

/* Was the port configured by another manager, as MasterSMLID says? Then its tables may
 * contain other values than this manager has written. */
static bool is_foreign(const struct sm *sm, const struct wire_port_info *info)
{
	return sm->subnet && sm->subnet->self && info->sm_lid != sm->subnet->self->lid;
}

static void port_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_port *p = r->obj;
	struct wire_port_info info;

	if (!r->data || r->status ||
	    wire_port_info_decode(r->data, WIRE_SMP_DATA_BYTES, &info) < 0) {
		sm_log(sm, SM_LOG_WARNING, "port %u of %s gives no valid PortInfo", p->num,
		       sm_node_name(p->node));
		return;
	}
	if (sm_port_know(sm->next, p, &info))
		sm_log(sm, SM_LOG_ERROR, "out of memory in discovery");
	if (sm_is_switch(p->node) && !p->num)
		p->node->foreign = is_foreign(sm, &info);
	if (sm_is_end_port(p))
		sm_get(sm, p->path, WIRE_SMP_PKEY_TABLE, 0, pkeys_reply, p, 0);
	if (p->num)
		look_through(sm, p);
}

void sm_discover_begin(struct sm *sm)
{
	static const struct sm_path here;

	sm->next = sm_subnet_create();
	if (!sm->next) {
		sm_log(sm, SM_LOG_ERROR, "out of memory: this sweep is skipped");
		sm_abort_job(sm);
		return;
	}
	sm_get(sm, &here, WIRE_SMP_NODE_INFO, 0, node_reply, NULL, 0);
}
