/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Resolves the way of a unicast packet, from port to port by the switches'
 * tables, up to where it is delivered or dropped (IBA v1 18.2.4, 7.2.7, 10.9.2).
 * A way on which packets are delivered is cached until the fabric's epoch changes.
 */
#include "fabric/fabric_private.h"
#include "wire/frame.h"

static bool vl_exists(const struct ag_port *out, uint8_t vl)
{
	static const uint8_t vls[] = {0, 1, 2, 4, 8, 15}; /* PortInfo.OperationalVLs */

	return out->oper_vls_enc < ARRAY_SIZE(vls) && vl < vls[out->oper_vls_enc];
}

/* 18.2.4.2: on ingress only the base of the P_Key is compared; on egress the key and
 * the port's entry must not both be limited members */
static bool pkey_passes(const struct ag_port *port, uint16_t pkey, bool out)
{
	for (unsigned int i = 0; i < port->num_pkeys; i++) {
		if (out ? wire_pkeys_match(port->pkeys[i], pkey) :
			  wire_pkeys_alike(port->pkeys[i], pkey))
			return true;
	}
	return false;
}

static uint8_t vl_of(const struct fab_port *in, const struct fab_port *out, uint8_t sl)
{
	/* a CA has one table; a switch has one for each ingress port */
	return fab_ag_port(out)->sl2vl[fab_is_switch(out) ? in->num : 0][sl];
}

struct fab_step fab_step_of(const struct fab_port *in, struct fab_port *out,
			    const struct fab_packet *pkt)
{
	struct fab_port *peer = fab_peer(out);
	bool vl15 = pkt->lrh.vl == WIRE_VL_MANAGEMENT;

	return (struct fab_step){
		.from = fab_ag_port(out), .to = fab_ag_port(peer), .from_port = out, .to_port = peer,
		.vl = vl15 ? WIRE_VL_MANAGEMENT : vl_of(in, out, pkt->lrh.sl),
	};
}

enum fab_verdict fab_enter_check(const struct fab_port *port, const struct fab_packet *pkt)
{
	const struct ag_port *to = fab_ag_port(port);

	if (fab_is_outlet(port)) /* the far side checks what arrives there */
		return FAB_DELIVER;
	if (to->state < WIRE_PORT_ARMED)
		return FAB_DROP_NOT_READY;
	if (to->pkey_enforce_in && fab_is_switch(port) && !pkey_passes(to, pkt->pkey, false))
		return FAB_DROP_PKEY_IN;
	return FAB_DELIVER;
}

static bool is_frame(const struct fab_packet *pkt)
{
	return pkt->dest_qpn == WIRE_QPN_FRAME;
}

/* the payload of an Ethernet frame is the whole of it, padded: its MTU does not count the header */
static unsigned int frame_max(const struct fab_port *out)
{
	return ALIGN_UP(out->frame_mtu + WIRE_FRAME_OVERHEAD, 4);
}

enum fab_verdict fab_step_check(struct fab_port *in, struct fab_port *out,
				const struct fab_packet *pkt)
{
	const struct ag_port *from = fab_ag_port(out);
	const struct fab_port *peer = fab_peer(out);

	/* 7.2.7: Armed may receive data, only Active may send it */
	if (!peer || from->state != WIRE_PORT_ACTIVE)
		return FAB_DROP_INACTIVE;
	if (pkt->payload_bytes > (is_frame(pkt) ? frame_max(out) : 128u << from->neighbor_mtu_enc))
		return FAB_DROP_MTU;
	if (!vl_exists(from, vl_of(in, out, pkt->lrh.sl)))
		return FAB_DROP_VL;
	if (from->pkey_enforce_out && fab_is_switch(out) && !pkey_passes(from, pkt->pkey, true))
		return FAB_DROP_PKEY_OUT;
	return fab_enter_check(peer, pkt);
}

uint8_t fab_switch_relay(const struct ag_node *sw, uint16_t dlid)
{
	uint8_t port;

	if (dlid == sw->port[0].lid && dlid)
		return 0;
	port = ag_lft_get(sw, dlid);
	return port <= sw->num_ports ? port : WIRE_LFT_NO_PORT;
}

static bool end(struct fab_path *path, enum fab_verdict verdict, struct fab_port *at)
{
	path->verdict = verdict;
	path->end = at;
	return false;
}

/* add one link to the path. Return: false if the way ends on it or before it */
static bool step(struct fab_path *path, struct fab_port *in, struct fab_port *out,
		 const struct fab_packet *pkt)
{
	enum fab_verdict verdict = fab_step_check(in, out, pkt);
	struct fab_port *peer = fab_peer(out);
	struct ag_port *from = fab_ag_port(out);

	switch (verdict) {
	case FAB_DELIVER:
		break;
	case FAB_DROP_NOT_READY:
	case FAB_DROP_PKEY_IN: /* the packet crosses the link before it is dropped */
		path->step[path->num_steps++] = fab_step_of(in, out, pkt);
		return end(path, verdict, peer);
	case FAB_DROP_VL: /* a switch drops it at the ingress port */
		return end(path, verdict, in);
	default:
		return end(path, verdict, out);
	}
	path->step[path->num_steps++] = fab_step_of(in, out, pkt);
	path->min_mtu_bytes = MIN(path->min_mtu_bytes, (uint16_t)(128u << from->neighbor_mtu_enc));
	path->arming |= fab_ag_port(peer)->state == WIRE_PORT_ARMED;
	return true;
}

/* the forwarding decision of a switch. Return: the egress port; NULL if the way ends */
static struct fab_port *relay(struct fab_path *path, struct fab_port *in,
			      const struct fab_packet *pkt)
{
	struct fab_node *node = fab_node_of(in);
	uint8_t out = fab_switch_relay(node->ag, pkt->lrh.dlid);

	if (out == WIRE_LFT_NO_PORT)
		end(path, FAB_DROP_NO_ROUTE, in);
	else if (out == 0)
		end(path, FAB_AGENT, &node->port[0]);
	else if (out == in->num)
		end(path, FAB_DROP_LOOPING, in);
	else
		return &node->port[out];
	return NULL;
}

void fab_route_walk(struct fab_port *start, const struct fab_packet *pkt, struct fab_path *path)
{
	struct fab_port *in = start, *out = start;

	path->num_steps = 0;
	path->min_mtu_bytes = WIRE_MTU_MAX;
	path->arming = false;
	/* a packet to the port's own LID does not leave the adapter */
	if (!fab_is_switch(start) && fab_port_has_lid(fab_ag_port(start), pkt->lrh.dlid)) {
		bool active = fab_ag_port(start)->state == WIRE_PORT_ACTIVE;

		end(path, active ? FAB_DELIVER : FAB_DROP_INACTIVE, start);
		return;
	}
	for (int hops = pkt->hops; hops <= FAB_MAX_HOPS; hops++) {
		if (fab_is_switch(in))
			out = relay(path, in, pkt);
		if (!out || !step(path, in, out, pkt))
			return;
		in = fab_peer(out);
		if (!fab_is_switch(in)) {
			bool mine = fab_is_outlet(in) || fab_port_has_lid(fab_ag_port(in), pkt->lrh.dlid);

			end(path, mine ? FAB_DELIVER : FAB_DROP_DLID, in);
			return;
		}
	}
	end(path, FAB_DROP_LIFETIME, path->step[path->num_steps - 1].from_port);
}

static struct fab_route *slot(struct fab_port *start, const struct fab_packet *pkt)
{
	uint64_t key = (uint64_t)(uintptr_t)start ^ (uint64_t)pkt->lrh.dlid << 32 ^
		       (uint64_t)pkt->lrh.sl << 20 ^ (uint64_t)pkt->pkey << 4;

	key *= 0x9e3779b97f4a7c15ull;
	return &start->fab->cache[key >> 40 & (FAB_CACHE_ENTRIES - 1)];
}

const struct fab_route *fab_route_find(struct fab_port *start, const struct fab_packet *pkt)
{
	const struct fab_route *route = slot(start, pkt);
	unsigned int most = is_frame(pkt) ? frame_max(start) : route->min_mtu_bytes;

	if (route->epoch != start->fab->epoch || route->start != start ||
	    route->dlid != pkt->lrh.dlid || route->pkey != pkt->pkey ||
	    route->sl != pkt->lrh.sl || pkt->payload_bytes > most)
		return NULL;
	return route;
}

void fab_route_remember(struct fab_port *start, const struct fab_packet *pkt,
			const struct fab_path *path)
{
	struct fab_route *route = slot(start, pkt);

	if (path->verdict != FAB_DELIVER || path->arming || fab_inspects(start->fab) ||
	    path->num_steps > FAB_CACHED_HOPS)
		return;
	route->epoch = start->fab->epoch;
	route->start = start;
	route->end = path->end;
	route->dlid = pkt->lrh.dlid;
	route->pkey = pkt->pkey;
	route->sl = pkt->lrh.sl;
	route->min_mtu_bytes = path->min_mtu_bytes;
	route->num_steps = (uint8_t)path->num_steps;
	for (int i = 0; i < path->num_steps; i++)
		route->step[i] = path->step[i];
}
