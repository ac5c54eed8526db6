/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ways of packets, for who wants to see one (fab_trace()), and of flows: programs may send past the fabric what it would only count.
 * A way is worked out as a packet's is, and remembers the links, so that
 * what went by unseen can be counted at every port.
 */
#include <errno.h>

#include "fabric/fabric_private.h"

struct fab_way {
	struct fab_port *end;
	uint16_t min_mtu_bytes;
	uint8_t sl;
	int num_steps;
	struct fab_step step[];
};

static bool has_port(const struct fabric *fab, int node, int port)
{
	return node >= 0 && node < fab->num_nodes && port >= 0 &&
	       port <= fab->node[node].ag->num_ports;
}

/* --- seen --- */

static const char *const lost_because[] = {
	[FAB_DROP_INACTIVE] = "the port to leave by is not Active",
	[FAB_DROP_NOT_READY] = "the port to arrive at is Down or Init",
	[FAB_DROP_MTU] = "the packet exceeds the MTU",
	[FAB_DROP_PKEY_OUT] = "the port to leave by enforces another partition",
	[FAB_DROP_PKEY_IN] = "the port to arrive at enforces another partition",
	[FAB_DROP_NO_ROUTE] = "the forwarding table has no port for this LID",
	[FAB_DROP_LOOPING] = "the forwarding table sends it back where it came from",
	[FAB_DROP_VL] = "SLtoVL discards this SL",
	[FAB_DROP_LIFETIME] = "the forwarding tables send it in a circle",
	[FAB_DROP_DLID] = "this LID is not the adapter's",
};

int fab_trace(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
	      struct fab_trace *trace)
{
	struct fab_packet pkt = {.lrh = {.dlid = dlid, .sl = sl}, .pkey = pkey};
	struct fab_path path;

	if (!has_port(fab, node, port) || !dlid || dlid >= WIRE_LID_MULTICAST)
		return -ENOENT;
	fab_route_walk(&fab->node[node].port[port], &pkt, &path);
	*trace = (struct fab_trace){
		.mtu_bytes = path.min_mtu_bytes,
		.node = path.end->node,
		.port = path.end->num,
		.lost = lost_because[path.verdict],
	};
	for (int i = 0; i < path.num_steps; i++) {
		const struct fab_step *step = &path.step[i];

		if (fab_is_inside(step))
			continue;
		trace->hop[trace->num_hops++] = (struct fab_hop){
			step->from_port->node, step->from_port->num, step->to_port->node,
			step->to_port->num, step->vl};
	}
	return 0;
}

/* --- of flows --- */

/* packets that rules held up are still on their way there, and come first */
static bool has_stragglers(const struct fab_step *step)
{
	return step->from_port->late || !list_empty(&step->to_port->waiting);
}

/* by those who count opcodes, watch, or want faults to happen there */
static bool must_be_seen(const struct fab_step *step)
{
	return has_stragglers(step) || step->to->op_counted || step->from_port->watches || step->to_port->watches ||
	       step->from_port->tap || step->to_port->tap || fab_way_watched(step);
}

int fab_way_create(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
		   struct fab_way **out)
{
	struct fab_packet pkt = {.lrh = {.dlid = dlid, .sl = sl}, .pkey = pkey};
	struct fab_path path;
	struct fab_way *way;

	if (!has_port(fab, node, port) || dlid >= WIRE_LID_MULTICAST)
		return -ENOENT;
	fab_route_walk(&fab->node[node].port[port], &pkt, &path);
	if (path.verdict != FAB_DELIVER || path.arming || !path.end->sink.deliver)
		return -ENOENT;
	if (path.num_steps == 0 && !list_empty(&path.end->waiting))
		return -ENOENT;
	if (path.num_steps == 0 && fab_way_watched(&(struct fab_step){.from_port = path.end,
								     .to_port = path.end}))
		return -ENOENT;
	for (int i = 0; i < path.num_steps; i++)
		if (must_be_seen(&path.step[i]))
			return -ENOENT;
	way = rt_zalloc(sizeof(*way) + (size_t)path.num_steps * sizeof(*way->step));
	if (!way)
		return -ENOMEM;
	way->end = path.end;
	way->min_mtu_bytes = path.min_mtu_bytes;
	way->sl = sl;
	way->num_steps = path.num_steps;
	for (int i = 0; i < path.num_steps; i++)
		way->step[i] = path.step[i];
	*out = way;
	return 0;
}

void fab_way_free(struct fab_way *way)
{
	rt_free(way);
}

const struct fab_sink *fab_way_sink(const struct fab_way *way)
{
	return &way->end->sink;
}

uint16_t fab_way_mtu(const struct fab_way *way)
{
	return way->min_mtu_bytes;
}

static void count(struct ag_port *port, bool sent, uint8_t sl, uint64_t packets, uint64_t dwords)
{
	port->count.raw[sent ? AG_XMIT_PACKETS : AG_RCV_PACKETS] += packets;
	port->count.raw[sent ? AG_XMIT_DATA : AG_RCV_DATA] += dwords;
	port->count.raw[sent ? AG_UNICAST_XMIT : AG_UNICAST_RCV] += packets;
	if (sent)
		port->count.xmit_sl[sl] += dwords;
	else
		port->count.rcv_sl[sl] += dwords;
}

void fab_way_count(struct fab_way *way, uint64_t packets, uint64_t dwords)
{
	for (int i = 0; i < way->num_steps; i++) {
		count(way->step[i].from, true, way->sl, packets, dwords);
		count(way->step[i].to, false, way->sl, packets, dwords);
	}
}

void fab_on_read(struct fabric *fab, void (*fold)(void *ctx), void *ctx)
{
	fab->fold = fold;
	fab->fold_ctx = ctx;
}

void fab_fold(struct fabric *fab)
{
	if (fab->fold)
		fab->fold(fab->fold_ctx);
}
