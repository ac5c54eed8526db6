/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ways of packets, for fab_trace(), and ways of flows. Programs may send packets
 * past the fabric, in lanes and windows, if the fabric would only count them. The
 * way of a flow is resolved like that of a packet, and records the links, so that
 * these packets can be counted at every port.
 *
 * Each node has a list of the ways through it. When the node changes, each of
 * them is resolved again, and the user of a way with a different result is
 * notified. Users of other ways are not disturbed. Before a counter of the node is
 * read, the same list gives the flows whose packets have to be added.
 */
#include <errno.h>
#include <string.h>

#include "fabric/fabric_private.h"

/* A program counts its own packets, so softibd adds no more than a link of 1,024 Gb/s,
 * which is faster than memory, could have carried. The slack is needed because the
 * loop's clock does not advance during a turn. */
#define DWORDS_PER_NS 32
#define SLACK_NS      (10 * NSEC_PER_MSEC)

/** struct fab_stop - entry for a way in the list of a node on it */
struct fab_stop {
	struct list_head node; /* fab_node.ways */
	struct fab_way *way;
};

struct fab_way {
	/* --- the flow --- */
	struct fab_port *start;
	uint16_t dlid, pkey;
	uint8_t sl;
	/* --- its way --- */
	struct fab_port *end;
	uint16_t min_mtu_bytes;
	int num_steps;
	struct fab_step *step; /* [num_steps] */
	struct fab_way_user user;
	mono_t carried_until; /* when the fastest link would have carried all that was counted */
	struct fab_stop stop[]; /* [num_steps + 1]: the node where it starts, and the node after each step */
};

static bool has_port(const struct fabric *fab, int node, int port)
{
	return node >= 0 && node < fab->num_nodes && port >= 0 &&
	       port <= fab->node[node].ag->num_ports;
}


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


/* packets that rules delayed have not arrived yet, and must arrive first */
static bool has_stragglers(const struct fab_step *step)
{
	return step->from_port->late || !list_empty(&step->to_port->waiting);
}

/* must the fabric see the packets on this link: for counters of opcodes, watches, taps or
 * fault rules? */
static bool must_be_seen(const struct fab_step *step)
{
	return has_stragglers(step) || step->to->op_counted || step->from_port->watches || step->to_port->watches ||
	       step->from_port->tap || step->to_port->tap || fab_way_watched(step);
}

/* may packets of the flow bypass the fabric at this moment? If so, *@path is their way */
static bool find_way(struct fab_port *start, uint16_t dlid, uint8_t sl, uint16_t pkey,
		     struct fab_path *path)
{
	struct fab_packet pkt = {.lrh = {.dlid = dlid, .sl = sl}, .pkey = pkey};

	fab_route_walk(start, &pkt, path);
	if (path->verdict != FAB_DELIVER || path->arming || !path->end->sink.deliver || fab_is_outlet(path->end))
		return false;
	if (path->num_steps == 0 && !list_empty(&path->end->waiting))
		return false;
	if (path->num_steps == 0 && fab_way_watched(&(struct fab_step){.from_port = path->end,
								       .to_port = path->end}))
		return false;
	for (int i = 0; i < path->num_steps; i++)
		if (must_be_seen(&path->step[i]))
			return false;
	return true;
}

static void set_stops(struct fab_way *way)
{
	for (int i = 0; i <= way->num_steps; i++) {
		struct fab_port *at = i ? way->step[i - 1].to_port : way->start;

		way->stop[i].way = way;
		list_add_tail(&way->stop[i].node, &fab_node_of(at)->ways);
	}
}

int fab_way_create(struct fabric *fab, int node, int port, uint16_t dlid, uint8_t sl, uint16_t pkey,
		   struct fab_way **out)
{
	struct fab_path path;
	struct fab_way *way;
	size_t stops, steps;

	if (!has_port(fab, node, port) || dlid >= WIRE_LID_MULTICAST ||
	    !find_way(&fab->node[node].port[port], dlid, sl, pkey, &path))
		return -ENOENT;
	stops = (size_t)(path.num_steps + 1) * sizeof(*way->stop);
	steps = (size_t)path.num_steps * sizeof(*way->step);
	way = rt_zalloc(sizeof(*way) + stops + steps);
	if (!way)
		return -ENOMEM;
	way->start = &fab->node[node].port[port];
	way->dlid = dlid;
	way->pkey = pkey;
	way->sl = sl;
	way->end = path.end;
	way->min_mtu_bytes = path.min_mtu_bytes;
	way->carried_until = rt_now(fab->rt);
	way->num_steps = path.num_steps;
	way->step = (struct fab_step *)&way->stop[path.num_steps + 1];
	memcpy(way->step, path.step, steps);
	set_stops(way);
	*out = way;
	return 0;
}

void fab_way_free(struct fab_way *way)
{
	for (int i = 0; i <= way->num_steps; i++)
		list_del(&way->stop[i].node);
	rt_free(way);
}

void fab_way_use(struct fab_way *way, const struct fab_way_user *user)
{
	way->user = *user;
}

/* --- changes --- */

static bool same_step(const struct fab_step *a, const struct fab_step *b)
{
	return a->from_port == b->from_port && a->to_port == b->to_port && a->vl == b->vl;
}

static bool holds(const struct fab_way *way)
{
	struct fab_path path;

	if (!find_way(way->start, way->dlid, way->sl, way->pkey, &path) ||
	    path.num_steps != way->num_steps || path.end != way->end ||
	    path.min_mtu_bytes != way->min_mtu_bytes)
		return false;
	for (int i = 0; i < path.num_steps; i++)
		if (!same_step(&path.step[i], &way->step[i]))
			return false;
	return true;
}

static void forget_routes(struct fabric *fab)
{
	if (++fab->epoch == 0)
		fab->epoch = 1;
}

void fab_routes_changed(struct fab_node *node)
{
	struct fab_stop *stop;

	forget_routes(node->fab);
	list_for_each_entry(stop, &node->ways, node) {
		struct fab_way_user *user = &stop->way->user;
		void (*moved)(void *ctx) = user->moved;

		if (!moved || holds(stop->way))
			continue;
		user->moved = NULL;
		moved(user->ctx);
	}
}

void fab_rules_changed(struct fabric *fab)
{
	forget_routes(fab);
	if (fab->rules_changed)
		fab->rules_changed(fab->rules_changed_ctx);
}

void fab_on_rules(struct fabric *fab, void (*changed)(void *ctx), void *ctx)
{
	fab->rules_changed = changed;
	fab->rules_changed_ctx = ctx;
}

/* --- counters --- */

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
		port->seldom->xmit_sl[sl] += dwords;
	else
		port->seldom->rcv_sl[sl] += dwords;
}

/* Return: @dwords, but at most what the fastest link can have carried since the way exists */
static uint64_t believe(struct fab_way *way, uint64_t dwords)
{
	const mono_t now = mono_add(rt_now(way->start->fab->rt), SLACK_NS);
	const uint64_t ns = now.ns - MIN(way->carried_until.ns, now.ns);

	dwords = MIN(dwords, ns * DWORDS_PER_NS);
	way->carried_until = mono_add(way->carried_until, dwords / DWORDS_PER_NS);
	return dwords;
}

void fab_way_count(struct fab_way *way, uint64_t packets, uint64_t dwords)
{
	dwords = believe(way, dwords);
	packets = MIN(packets, dwords); /* each packet has at least one dword */
	for (int i = 0; i < way->num_steps; i++) {
		count(way->step[i].from, true, way->sl, packets, dwords);
		count(way->step[i].to, false, way->sl, packets, dwords);
	}
}

/* --- several packets at once --- */

/* Return: the way on which nobody has to see packets one by one; NULL: there is none in the cache */
static const struct fab_route *find_open(struct fab_port *start, const struct fab_packet *first)
{
	const struct fab_route *route =
		fab_inspects(start->fab) || first->lrh.vl == WIRE_VL_MANAGEMENT ||
				first->lrh.dlid >= WIRE_LID_MULTICAST ?
			NULL : fab_route_find(start, first);

	if (!route || (!route->num_steps && !list_empty(&route->end->waiting)))
		return NULL;
	for (int i = 0; i < route->num_steps; i++)
		if (must_be_seen(&route->step[i]))
			return NULL;
	return route;
}

int fab_send_train(struct fabric *fab, int node, int num, const struct fab_packet *first,
		   const struct fab_train *train)
{
	const struct fab_route *route = find_open(fab_port_of(fab, node, num), first);
	const struct fab_sink *sink = route ? &route->end->sink : NULL;
	int ret = sink && sink->deliver_train ? sink->deliver_train(sink->ctx, first, train) :
						-EOPNOTSUPP;

	if (ret)
		return ret;
	for (int i = 0; i < route->num_steps; i++) {
		count(route->step[i].from, true, first->lrh.sl, train->packets, train->dwords);
		count(route->step[i].to, false, first->lrh.sl, train->packets, train->dwords);
	}
	return 0;
}

void fab_fold_node(struct fabric *fab, int node)
{
	struct fab_stop *stop;

	list_for_each_entry(stop, &fab->node[node].ways, node)
		if (stop->way->user.fold)
			stop->way->user.fold(stop->way->user.ctx);
}

/* every way starts at a CA, so this reaches all of them */
void fab_fold(struct fabric *fab)
{
	for (int i = 0; i < fab->num_nodes; i++)
		if (!fab->node[i].ag->sw)
			fab_fold_node(fab, i);
}
