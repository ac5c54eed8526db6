/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Creates a fabric from a topology: the nodes' agents and the links. When a MAD
 * changes a node, this file invalidates routes, informs the adapter and sends
 * traps.
 */
#include "fabric/fabric_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GUID_BASE 0x0050550000000000ull

static void *table_alloc(void *ctx, size_t bytes)
{
	return rt_zalloc(bytes);
}

static void expire(struct rt_timer *timer)
{
	struct fab_node *node = container_of(timer, struct fab_node, expiry);

	fab_fold_node(node->fab, (int)(node - node->fab->node)); /* a sample begins or ends */
	ag_expire(node->ag, rt_now(node->fab->rt));
	fab_agents_traps(node);
	fab_rearm(node);
}

void fab_rearm(struct fab_node *node)
{
	mono_t when = ag_expiry(node->ag);

	if (when.ns == MONO_NEVER.ns)
		rt_timer_disarm(&node->expiry);
	else
		rt_timer_arm(&node->expiry, when);
}

static void notify_sinks(struct rt_work *work)
{
	struct fabric *fab = container_of(work, struct fabric, pending_work);
	LIST_HEAD(batch);

	list_splice_tail_init(&fab->pending, &batch);
	while (!list_empty(&batch)) {
		struct fab_port *port = list_first_entry(&batch, struct fab_port, pending_node);
		uint32_t changes = port->pending;

		list_del_init(&port->pending_node);
		port->pending = 0;
		if (port->sink.changed)
			port->sink.changed(port->sink.ctx, changes);
	}
}

void fab_changed(struct fab_port *port, uint32_t changes)
{
	const uint32_t internal = AG_CHANGED_PHYS | AG_CHANGED_TRAPS | AG_CHANGED_ROUTES;
	struct fabric *fab = port->fab;

	if (changes & ~(uint32_t)(AG_CHANGED_TRAPS | AG_CHANGED_NAME | AG_CHANGED_SM))
		fab_routes_changed(fab_node_of(port));
	if (changes & AG_CHANGED_TRAPS)
		fab_rearm(fab_node_of(port));
	if (changes & AG_CHANGED_PHYS)
		fab_link_retrain(port);
	if (changes & AG_CHANGED_STATE)
		fab_ethernet_link_changed(fab);
	if (!(changes & ~internal) || fab_is_switch(port))
		return;
	port->pending |= changes & ~internal;
	if (list_empty(&port->pending_node))
		list_add_tail(&port->pending_node, &fab->pending);
	rt_work_queue(fab->rt, &fab->pending_work);
}

/* a port supports the speed and width of its cable, and all lower ones */
static void set_speeds(struct ag_port *port, const struct topo_port *cable)
{
	uint16_t speed = cable->speed_enc ? cable->speed_enc : AG_EDR;
	uint8_t width = cable->width_enc ? cable->width_enc : WIRE_WIDTH_4X;

	port->speed_supported = (uint16_t)((speed << 1) - 1);
	if (speed != AG_FDR10) /* vendor-specific: only if the cable has it */
		port->speed_supported &= (uint16_t)~AG_FDR10;
	port->speed_enabled = port->speed_supported;
	port->width_supported = width | WIRE_WIDTH_1X;
	if (width == WIRE_WIDTH_12X || width == WIRE_WIDTH_8X)
		port->width_supported |= WIRE_WIDTH_4X;
	port->width_enabled = port->width_supported;
	if (width == WIRE_WIDTH_2X)
		port->cap_mask2 |= WIRE_PORT_CAP2_LINK_WIDTH_2X;
	if (speed >= AG_HDR)
		port->cap_mask2 |= WIRE_PORT_CAP2_LINK_SPEED_HDR;
	if (speed >= AG_NDR)
		port->cap_mask2 |= WIRE_PORT_CAP2_LINK_SPEED_NDR;
}

/* the attributes of a port that the topology defines */
static void configure_port(struct fab_node *node, const struct topo_node *topo, unsigned int i)
{
	set_speeds(&node->ag->port[i], &topo->port[i]);
	if (topo->port[i].guid && !node->ag->sw) {
		node->ag->port[i].guid = topo->port[i].guid;
		node->ag->port[i].guids[0] = topo->port[i].guid;
	}
}

static void init_ports(struct fabric *fab, int index)
{
	const struct topo_node *topo = &fab->topo->node[index];
	struct fab_node *node = &fab->node[index];

	for (unsigned int i = 0; i <= node->ag->num_ports; i++) {
		struct fab_port *port = &node->port[i];

		port->fab = fab;
		port->node = index;
		port->num = (uint8_t)i;
		port->peer_node = i ? topo->port[i].peer_node : -1;
		port->peer_port = topo->port[i].peer_port;
		port->plugged = port->peer_node >= 0;
		port->frame_mtu = node->ag->sw ? WIRE_FRAME_MTU_MAX : WIRE_MTU_MAX;
		INIT_LIST_HEAD(&port->pending_node);
		INIT_LIST_HEAD(&port->waiting);
		INIT_LIST_HEAD(&port->waiting_node);
		fab_link_init(port);
		if (i)
			configure_port(node, topo, i);
	}
}

static struct ag_node_config config_of(const struct fabric *fab, int index)
{
	const struct topo_node *topo = &fab->topo->node[index];

	return (struct ag_node_config){
		.kind = topo->kind == TOPO_SWITCH ? WIRE_NODE_SWITCH : WIRE_NODE_CA,
		.num_ports = topo->num_ports,
		.guid = topo->guid ? topo->guid : GUID_BASE + ((uint64_t)index + 1) * 256,
		.sys_guid = topo->sys_guid,
		.vendor_id = topo->vendor_id,
		.device_id = (uint16_t)topo->device_id,
		.desc = topo->desc[0] ? topo->desc : topo->name,
		.memory = {.alloc = table_alloc},
		.seldom = fab->node[index].seldom,
	};
}

static int init_node(struct fabric *fab, int index)
{
	struct fab_node *node = &fab->node[index];
	struct ag_node_config config = config_of(fab, index);
	void *memory = rt_zalloc(ag_node_size(&config));

	if (!memory)
		return -ENOMEM;
	node->fab = fab;
	INIT_LIST_HEAD(&node->ways);
	node->ag = ag_node_init(&config, memory);
	node->port = rt_zalloc((config.num_ports + 1u) * sizeof(*node->port));
	rt_timer_init(fab->rt, &node->expiry, expire);
	if (!node->port)
		return -ENOMEM;
	init_ports(fab, index);
	return 0;
}

void fab_node_reset(struct fab_node *node)
{
	struct fabric *fab = node->fab;
	int index = (int)(node - fab->node);
	struct ag_node_config config = config_of(fab, index);

	fab_fold_node(fab, index); /* counts packets that bypassed the fabric */
	ag_node_free_tables(node->ag, rt_free);
	memset(node->ag, 0, ag_node_size(&config));
	memset(node->seldom, 0, ag_node_seldom_size(&config));
	ag_node_init(&config, node->ag);
	for (unsigned int i = 1; i <= node->ag->num_ports; i++)
		configure_port(node, &fab->topo->node[index], i);
	fab_rearm(node);
}

static void exit_node(struct fab_node *node)
{
	if (!node->ag)
		return;
	rt_timer_disarm(&node->expiry);
	for (unsigned int i = 0; node->port && i <= node->ag->num_ports; i++)
		rt_timer_disarm(&node->port[i].training);
	ag_node_free_tables(node->ag, rt_free);
	rt_free(node->port);
	rt_free(node->ag);
}

/* The rarely used state of all nodes is one allocation, so that its pages are
 * populated only when they are used. */
static int make_seldom(struct fabric *fab)
{
	size_t bytes = 0;
	uint8_t *next;

	for (int i = 0; i < fab->topo->num_nodes; i++) {
		struct ag_node_config config = config_of(fab, i);

		bytes += ag_node_seldom_size(&config);
	}
	fab->seldom = next = rt_zalloc(bytes);
	for (int i = 0; next && i < fab->topo->num_nodes; i++) {
		struct ag_node_config config = config_of(fab, i);

		fab->node[i].seldom = next;
		next += ag_node_seldom_size(&config);
	}
	return next ? 0 : -ENOMEM;
}

/* the two ends of each cable name each other */
static bool cables_agree(const struct topology *topo)
{
	for (int n = 0; n < topo->num_nodes; n++)
		for (unsigned int p = 1; p <= topo->node[n].num_ports; p++) {
			const struct topo_port *port = &topo->node[n].port[p], *back;

			if (port->peer_node < 0)
				continue;
			if (port->peer_node >= topo->num_nodes || port->peer_port == 0 ||
			    port->peer_port > topo->node[port->peer_node].num_ports)
				return false;
			back = &topo->node[port->peer_node].port[port->peer_port];
			if (back->peer_node != n || back->peer_port != p)
				return false;
		}
	return true;
}

static void train_all(struct fabric *fab)
{
	for (int n = 0; n < fab->num_nodes; n++)
		for (unsigned int p = 1; p <= fab->node[n].ag->num_ports; p++)
			fab_link_train(&fab->node[n].port[p]);
}

int fab_create(struct rt *rt, const struct topology *topo, struct fabric **result)
{
	struct fabric *fab;
	int err = -ENOMEM;

	if (!cables_agree(topo))
		return -EINVAL;
	fab = rt_zalloc(sizeof(*fab));
	if (!fab)
		return -ENOMEM;
	fab->rt = rt;
	fab->topo = topo;
	fab->epoch = 1;
	fab_agents_init(fab);
	INIT_LIST_HEAD(&fab->pending);
	INIT_LIST_HEAD(&fab->watches);
	rt_work_init(&fab->pending_work, notify_sinks);
	fab->cache = rt_zalloc(FAB_CACHE_ENTRIES * sizeof(*fab->cache));
	fab->node = rt_zalloc(((size_t)topo->num_nodes + FAB_OUTLETS_MAX) * sizeof(*fab->node));
	if (!fab->cache || !fab->node || make_seldom(fab))
		goto undo;
	for (int i = 0; i < topo->num_nodes; i++) {
		fab->num_nodes = i + 1;
		err = init_node(fab, i);
		if (err)
			goto undo;
	}
	train_all(fab);
	*result = fab;
	return 0;
undo:
	fab_destroy(fab);
	return err;
}

void fab_destroy(struct fabric *fab)
{
	fab_agents_exit(fab);
	rt_work_cancel(&fab->pending_work);
	fab_ethernet_free(fab);
	fab_faults_free(fab);
	for (int i = 0; i < fab->num_nodes; i++)
		exit_node(&fab->node[i]);
	rt_free(fab->seldom);
	rt_free(fab->node);
	rt_free(fab->cache);
	rt_free(fab);
}

struct ag_node *fab_node(struct fabric *fab, int index)
{
	return fab->node[index].ag;
}

const struct topology *fab_topology(const struct fabric *fab)
{
	return fab->topo;
}

struct rt *fab_rt(const struct fabric *fab)
{
	return fab->rt;
}

uint32_t fab_epoch(const struct fabric *fab)
{
	return fab->epoch;
}

struct fab_port *fab_port_of(const struct fabric *fab, int node, int port)
{
	if (node < 0 || node >= fab->num_nodes || port < 0 ||
	    port > fab->node[node].ag->num_ports)
		return NULL;
	return &fab->node[node].port[port];
}

void fab_attach(struct fabric *fab, int node, int num, const struct fab_sink *sink)
{
	struct fab_port *port = fab_port_of(fab, node, num);

	port->sink = sink ? *sink : (struct fab_sink){0};
	if (!sink) {
		port->pending = 0;
		list_del_init(&port->pending_node);
	}
	fab_routes_changed(fab_node_of(port));
}

const struct fab_sink *fab_sink(struct fabric *fab, int node, int num)
{
	const struct fab_port *port = fab_port_of(fab, node, num);

	return port && port->sink.deliver ? &port->sink : NULL;
}

int fab_process_mad(struct fabric *fab, int node, int num, const struct ag_mad_context *context,
		    const void *in, void *out)
{
	struct fab_port *port = fab_port_of(fab, node, num);
	struct ag_effect effect;
	int result;

	if (((const uint8_t *)in)[1] == WIRE_CLASS_PERF)
		fab_fold_node(fab, node);
	result = ag_process(fab->node[node].ag, (uint8_t)num, context, in, out, &effect);
	fab_changed(&fab_node_of(port)->port[effect.port], effect.changes);
	return result;
}

void fab_set_capability(struct fabric *fab, int node, int num, uint32_t mask, bool on)
{
	struct fab_port *port = fab_port_of(fab, node, num);

	fab_changed(port, ag_set_capability(fab->node[node].ag, (uint8_t)num, mask, on, rt_now(fab->rt)));
}

void fab_traps_changed(struct fabric *fab, int node)
{
	fab_rearm(&fab->node[node]);
}

int fab_find_lid(const struct fabric *fab, uint16_t lid, int *node, int *port)
{
	for (int n = 0; n < fab->num_nodes; n++) {
		const struct ag_node *ag = fab->node[n].ag;

		for (int p = ag->sw ? 0 : 1; p <= (ag->sw ? 0 : ag->num_ports); p++) {
			if (!fab_port_has_lid(&ag->port[p], lid))
				continue;
			*node = n;
			*port = p;
			return 0;
		}
	}
	return -ENOENT;
}

int fab_link_set(struct fabric *fab, int node, int num, bool up)
{
	struct fab_port *port = fab_port_of(fab, node, num), *peer;

	if (!port || num == 0 || port->peer_node < 0)
		return -ENOENT;
	if (up && port->cut)
		return -EBUSY;
	if (port->plugged == up)
		return 0;
	peer = &fab->node[port->peer_node].port[port->peer_port];
	port->plugged = peer->plugged = up;
	if (up)
		fab_link_retrain(port);
	else
		fab_link_train(port);
	return 0;
}

bool fab_link_plugged(const struct fabric *fab, int node, int num)
{
	const struct fab_port *port = fab_port_of(fab, node, num);

	return port && fab_is_plugged(port);
}

void fab_tap_set(struct fabric *fab, int node, int num, const struct fab_tap *tap)
{
	struct fab_port *port = fab_port_of(fab, node, num);

	fab_faults_make(fab); /* packets that a tap has seen may have to wait */
	fab->num_taps += (tap != NULL) - (port->tap != NULL);
	port->tap = tap;
	fab_rules_changed(fab); /* flows through the port stop bypassing the fabric */
}

int fab_send(struct fabric *fab, int node, int num, const struct fab_packet *pkt)
{
	struct fab_port *port = fab_port_of(fab, node, num);

	if (fab->faults) /* delayed packets that must arrive before this one */
		fab_delayed_release(fab->faults);
	if (pkt->lrh.vl == WIRE_VL_MANAGEMENT) {
		fab_smp_send(port, pkt);
		return 0;
	}
	return fab_forward(port, pkt);
}

void fab_discard(struct fabric *fab, int node, int num)
{
	fab_ag_port(fab_port_of(fab, node, num))->count.raw[AG_XMIT_DISCARDS]++;
}
