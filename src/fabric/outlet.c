/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The far end of a cable that leaves the fabric (outlet.h) is a port like any other for those that
 * forward packets: it belongs to a channel adapter with one port, behind the nodes of the topology, and
 * its adapter is the outlet. No agent of it ever answers, since packets for the far side's agents leave like
 * all others. It has no power while the far side is not connected, or has pulled the cable.
 */
#include "fabric/outlet.h"

#include <errno.h>

#include "fabric/fabric_private.h"

struct fab_outlet {
	struct fab_port *near, *far;
	struct fab_outlet_ops ops;
	void *ctx;
	void *seldom;
	struct fab_port ports[2]; /* [0]: an adapter has no port 0 */
};

static struct fab_outlet *outlet_of(const struct fab_port *far)
{
	return far->sink.ctx;
}

static int deliver(void *ctx, const struct fab_packet *pkt)
{
	const struct fab_outlet *outlet = ctx;

	return outlet->ops.send(outlet->ctx, pkt);
}

/* --- the phantom node --- */

static struct ag_node_config config_of(const struct fab_outlet *outlet)
{
	return (struct ag_node_config){
		.kind = WIRE_NODE_CA, .num_ports = 1, .guid = 1, .desc = "outlet", .seldom = outlet->seldom,
	};
}

static struct fab_node *free_node(struct fabric *fab)
{
	for (int i = 0; i < FAB_OUTLETS_MAX; i++)
		if (!fab->node[fab->num_nodes + i].ag)
			return &fab->node[fab->num_nodes + i];
	return NULL;
}

static bool make_node(struct fab_outlet *outlet, struct fab_node *node)
{
	struct ag_node_config config = config_of(outlet);
	void *memory = rt_zalloc(ag_node_size(&config));

	outlet->seldom = rt_zalloc(ag_node_seldom_size(&config));
	if (!memory || !outlet->seldom) {
		rt_free(memory);
		rt_free(outlet->seldom);
		return false;
	}
	config.seldom = node->seldom = outlet->seldom;
	node->ag = ag_node_init(&config, memory);
	node->fab = outlet->near->fab;
	node->port = outlet->ports;
	node->dead = true;
	INIT_LIST_HEAD(&node->ways);
	return true;
}

static void init_far(struct fab_outlet *outlet, int node)
{
	struct fab_port *far = outlet->far = &outlet->ports[1], *near = outlet->near;

	far->fab = near->fab;
	far->node = node;
	far->num = 1;
	far->peer_node = near->node;
	far->peer_port = near->num;
	far->plugged = true;
	far->sink = (struct fab_sink){.deliver = deliver, .ctx = outlet};
	INIT_LIST_HEAD(&far->pending_node);
	INIT_LIST_HEAD(&far->waiting);
	INIT_LIST_HEAD(&far->waiting_node);
	fab_link_init(far);
	near->peer_node = node;
	near->peer_port = 1;
	near->plugged = true;
}

int fab_outlet_create(struct fabric *fab, int index, int num, const struct fab_outlet_ops *ops, void *ctx,
		      struct fab_outlet **result)
{
	struct fab_port *near = num ? fab_port_of(fab, index, num) : NULL;
	struct fab_node *node = free_node(fab);
	struct fab_outlet *outlet;

	if (!near)
		return -ENOENT;
	if (near->peer_node >= 0)
		return -EBUSY;
	if (!node)
		return -ENOSPC;
	outlet = rt_zalloc(sizeof(*outlet));
	if (!outlet)
		return -ENOMEM;
	outlet->near = near;
	outlet->ops = *ops;
	outlet->ctx = ctx;
	if (!make_node(outlet, node)) {
		rt_free(outlet);
		return -ENOMEM;
	}
	init_far(outlet, (int)(node - fab->node));
	*result = outlet;
	return 0;
}

void fab_outlet_destroy(struct fab_outlet *outlet)
{
	struct fab_port *near = outlet->near, *far = outlet->far;
	struct fab_node *node = fab_node_of(far);

	fab_outlet_far_link(outlet, NULL);
	if (near->fab->faults)
		fab_delayed_forget(near->fab->faults, far);
	rt_timer_disarm(&near->training);
	rt_timer_disarm(&far->training);
	near->peer_node = -1;
	near->plugged = near->cut = false;
	fab_routes_changed(fab_node_of(near));
	fab_ethernet_outlet_gone(near);
	rt_free(node->ag);
	rt_free(outlet->seldom);
	*node = (struct fab_node){0};
	rt_free(outlet);
}

/* --- the link --- */

void fab_outlet_near(const struct fab_outlet *outlet, int *node, int *port)
{
	*node = outlet->near->node;
	*port = outlet->near->num;
}

struct fab_outlet_link fab_outlet_own_link(const struct fab_outlet *outlet)
{
	const struct fab_port *near = outlet->near;
	const struct ag_port *port = fab_ag_port(near);

	return (struct fab_outlet_link){
		.plugged = fab_is_plugged(near) && !fab_node_of(near)->dead && !near->falling,
		.phys_request = port->phys_request,
		.width_enabled = port->width_enabled,
		.speed_enabled = port->speed_enabled,
	};
}

void fab_outlet_tell(const struct fab_port *port)
{
	const struct fab_port *far = port;
	struct fab_outlet_link link;

	if (!fab_is_outlet(port)) {
		if (port->peer_node < port->fab->num_nodes)
			return;
		far = &port->fab->node[port->peer_node].port[1];
	}
	link = fab_outlet_own_link(outlet_of(far));
	outlet_of(far)->ops.changed(outlet_of(far)->ctx, &link);
}

static bool same_link(const struct fab_outlet *outlet, const struct fab_outlet_link *link)
{
	const struct ag_port *port = fab_ag_port(outlet->far);

	if (fab_node_of(outlet->far)->dead != (!link || !link->plugged))
		return false;
	return !link || (port->phys_request == link->phys_request && port->width_enabled == link->width_enabled &&
			 port->speed_enabled == link->speed_enabled);
}

void fab_outlet_far_link(struct fab_outlet *outlet, const struct fab_outlet_link *link)
{
	struct ag_port *port = fab_ag_port(outlet->far);
	struct fab_node *node = fab_node_of(outlet->far);
	bool was_there = !node->dead;

	if (same_link(outlet, link))
		return;
	node->dead = !link || !link->plugged;
	if (link) {
		port->phys_request = link->phys_request;
		port->width_enabled = link->width_enabled;
		port->speed_enabled = link->speed_enabled;
	}
	if (node->dead && was_there)
		fab_link_train(outlet->near);
	else if (!node->dead)
		fab_link_retrain(outlet->near);
}

bool fab_outlet_is_at(const struct fabric *fab, int index, int num, bool *up)
{
	const struct fab_port *port = fab_port_of(fab, index, num);

	if (!port || port->peer_node < fab->num_nodes)
		return false;
	*up = !fab->node[port->peer_node].dead;
	return true;
}

/* --- packets --- */

int fab_outlet_receive(struct fab_outlet *outlet, struct fab_packet *pkt, bool again)
{
	struct fab_port *in = outlet->near;
	const struct fab_step step = {
		.from = fab_ag_port(outlet->far), .to = fab_ag_port(in), .from_port = outlet->far, .to_port = in,
		.vl = pkt->lrh.vl == WIRE_VL_MANAGEMENT ? WIRE_VL_MANAGEMENT : 0,
	};

	if (fab_peer(in) != outlet->far || step.to->state < WIRE_PORT_INIT)
		return 0; /* the link is down */
	if (!again) {
		pkt->hops = (uint8_t)MIN(pkt->hops + 1, 255);
		if (fab_inspects(in->fab) && !fab_cross(&step, pkt, 0))
			return 0;
		fab_count_received(&step, pkt);
		if (pkt->lrh.vl != WIRE_VL_MANAGEMENT)
			fab_activate(&step);
	}
	return list_empty(&in->waiting) || pkt->lrh.vl == WIRE_VL_MANAGEMENT ? fab_arrive(in, pkt) : -EAGAIN;
}
