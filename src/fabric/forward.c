/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Forwards data packets. The packet is offered to the destination first and
 * counted on the links afterwards, so that a full destination has no effect but
 * PortXmitWait: the sender keeps the packet, as with link-level flow control
 * (7.9). A multicast packet is not kept: a member without room misses its copy.
 */
#include "fabric/fabric_private.h"

#include <errno.h>
#include <string.h>

#define MULTICAST_COPIES_MAX 65536 /* ends loops in multicast tables */

static bool is_multicast(const struct fab_packet *pkt)
{
	return pkt->lrh.dlid >= WIRE_LID_MULTICAST && pkt->lrh.dlid != WIRE_LID_PERMISSIVE;
}

void fab_count_sent(const struct fab_step *step, const struct fab_packet *pkt)
{
	uint64_t *x = step->from->count.raw;

	x[AG_XMIT_DATA] += pkt->lrh.length_dwords;
	x[AG_XMIT_PACKETS]++;
	x[is_multicast(pkt) ? AG_MULTICAST_XMIT : AG_UNICAST_XMIT]++;
	step->from->seldom->xmit_sl[pkt->lrh.sl] += pkt->lrh.length_dwords;
	if (step->from_port->watches)
		fab_show(step, pkt, true);
}

void fab_count_received(const struct fab_step *step, const struct fab_packet *pkt)
{
	uint64_t *r = step->to->count.raw;

	r[AG_RCV_DATA] += pkt->lrh.length_dwords;
	r[AG_RCV_PACKETS]++;
	r[is_multicast(pkt) ? AG_MULTICAST_RCV : AG_UNICAST_RCV]++;
	step->to->seldom->rcv_sl[pkt->lrh.sl] += pkt->lrh.length_dwords;
	if (step->to_port->watches)
		fab_show(step, pkt, false);
	if (step->to->op_counted)
		ag_op_count(step->to, pkt->opcode, step->vl, pkt->lrh.length_dwords);
}

void fab_count_step(const struct fab_step *step, const struct fab_packet *pkt)
{
	fab_count_sent(step, pkt);
	fab_count_received(step, pkt);
}

/* 7.2.7.2: a data packet makes an Armed port Active */
void fab_activate(const struct fab_step *step)
{
	if (step->to->state != WIRE_PORT_ARMED)
		return;
	step->to->state = WIRE_PORT_ACTIVE;
	fab_changed(step->to_port, AG_CHANGED_STATE);
}

/* the counters of each verdict, at the port where it was made; AG_NUM_COUNTERS: none */
static const struct {
	uint8_t counter, detail;
} drops[] = {
	[FAB_DROP_INACTIVE] = {AG_XMIT_DISCARDS, AG_DISCARD_INACTIVE},
	[FAB_DROP_NOT_READY] = {AG_NUM_COUNTERS, AG_NUM_COUNTERS},
	[FAB_DROP_MTU] = {AG_XMIT_DISCARDS, AG_DISCARD_NEIGHBOR_MTU},
	[FAB_DROP_PKEY_OUT] = {AG_XMIT_CONSTRAINT, AG_NUM_COUNTERS},
	[FAB_DROP_PKEY_IN] = {AG_RCV_CONSTRAINT, AG_NUM_COUNTERS},
	[FAB_DROP_NO_ROUTE] = {AG_RCV_SWITCH_RELAY, AG_RCV_DLID_MAPPING},
	[FAB_DROP_LOOPING] = {AG_RCV_SWITCH_RELAY, AG_RCV_LOOPING},
	[FAB_DROP_VL] = {AG_RCV_SWITCH_RELAY, AG_RCV_VL_MAPPING},
	[FAB_DROP_LIFETIME] = {AG_XMIT_DISCARDS, AG_DISCARD_SW_LIFETIME},
	[FAB_DROP_DLID] = {AG_RCV_ERRORS, AG_RCV_MALFORMED},
};

void fab_count_drop(struct fab_port *at, enum fab_verdict verdict, const struct fab_packet *pkt)
{
	uint64_t *raw = fab_ag_port(at)->count.raw;
	uint8_t counter = drops[verdict].counter;

	if (verdict == FAB_DROP_VL && !fab_is_switch(at)) {
		raw[AG_XMIT_DISCARDS]++; /* at a CA, whose own SLtoVL discards it */
		return;
	}
	if (counter != AG_NUM_COUNTERS)
		raw[counter]++;
	if (drops[verdict].detail != AG_NUM_COUNTERS)
		raw[drops[verdict].detail]++;
	if (verdict == FAB_DROP_PKEY_IN || verdict == FAB_DROP_PKEY_OUT) {
		ag_trap_pkey(fab_node_of(at)->ag, at->num, pkt->pkey, pkt->lrh.slid, pkt->lrh.dlid,
			     pkt->lrh.sl, pkt->src_qpn, pkt->dest_qpn, rt_now(at->fab->rt));
		fab_rearm(fab_node_of(at));
	}
}

bool fab_tap(const struct fab_port *port, bool sent, const struct fab_packet *pkt)
{
	return !port->tap || port->tap->packet(port->tap->ctx, port->node, port->num, sent,
					       pkt->bytes, pkt->len);
}

/* Cross all links, each with its taps and rules. Return: true if the packet
 * arrives unchanged at the end of the last one. */
static bool cross_all(const struct fab_step *steps, int n, const struct fab_packet *pkt)
{
	for (int i = 0; i < n; i++) {
		if (!fab_cross(&steps[i], pkt, i))
			return false;
		fab_count_step(&steps[i], pkt);
		fab_activate(&steps[i]);
	}
	return true;
}

/* "rnr": the responder at the destination acts as if no receive were posted */
static int deliver_marked(struct fab_port *to, const struct fab_packet *pkt)
{
	uint8_t bytes[WIRE_PACKET_MAX];
	struct fab_packet marked = *pkt;

	memcpy(bytes, pkt->bytes, pkt->len);
	wire_lrh_mark_rnr(bytes, pkt->rnr_mark);
	marked.bytes = bytes;
	return to->sink.deliver(to->sink.ctx, &marked);
}

static int to_adapter(struct fab_port *to, const struct fab_packet *pkt)
{
	if (!to->sink.deliver)
		return -ENOENT;
	if (pkt->rnr_mark)
		return deliver_marked(to, pkt);
	return to->sink.deliver(to->sink.ctx, pkt);
}

int fab_deliver(struct fab_port *to, const struct fab_packet *pkt)
{
	int ret;

	if (pkt->wrong_crcs & FAB_WRONG_ICRC) { /* 9.6.1: a packet with a wrong ICRC is dropped silently */
		fab_ag_port(to)->count.raw[AG_RCV_ERRORS]++;
		fab_ag_port(to)->count.raw[AG_RCV_LOCAL_PHYSICAL]++;
		return 0;
	}
	ret = to_adapter(to, pkt);
	if (ret != -ENOENT)
		return ret;
	if (pkt->dest_qpn <= 1)
		fab_agents_queue(to, pkt);
	return 0;
}

static void count_wait(const struct fab_step *step)
{
	step->from->count.raw[AG_XMIT_WAIT]++;
	step->from->seldom->xmit_wait_vl[step->vl]++;
}

/* offer the packet to @end; if it accepts, count the packet on the links */
static int finish(const struct fab_step *steps, int n, struct fab_port *end,
		  const struct fab_packet *pkt)
{
	if (fab_deliver(end, pkt) == -EAGAIN) {
		if (n)
			count_wait(&steps[n - 1]);
		return -EAGAIN;
	}
	for (int i = 0; i < n; i++)
		fab_count_step(&steps[i], pkt);
	return 0;
}

/* cross every link of the way, or the inside of the adapter if the packet stays there */
static bool cross_way(const struct fab_path *path, struct fab_port *end,
		      const struct fab_packet *pkt)
{
	struct fab_step inside = fab_inside(end);

	if (path->num_steps)
		return cross_all(path->step, path->num_steps, pkt);
	return pkt->hops || fab_cross(&inside, pkt, 0);
}

/* The same as finish(), but with taps and rules. A packet that rules have seen
 * cannot go back to its sender: if there is no room it waits at its destination,
 * and later packets wait with their senders. */
static int finish_inspected(const struct fab_path *path, struct fab_port *end,
			    const struct fab_packet *pkt)
{
	struct fab_step inside = fab_inside(end);
	bool busy = path->num_steps ? fab_busy(path->step, path->num_steps, pkt) :
				      fab_busy(&inside, 1, pkt);

	if (busy) {
		if (path->num_steps)
			count_wait(&path->step[path->num_steps - 1]);
		return -EAGAIN;
	}
	if (cross_way(path, end, pkt) && fab_deliver(end, pkt) == -EAGAIN)
		fab_delay_for_room(end, pkt);
	return 0;
}

static int forward_unicast(struct fab_port *start, const struct fab_packet *pkt)
{
	bool inspect = fab_inspects(start->fab);
	const struct fab_route *route = inspect ? NULL : fab_route_find(start, pkt);
	struct fab_path path;
	int ret;

	if (route)
		return finish(route->step, route->num_steps, route->end, pkt);
	fab_route_walk(start, pkt, &path);
	if (path.verdict == FAB_DELIVER) {
		ret = inspect ? finish_inspected(&path, path.end, pkt) :
				finish(path.step, path.num_steps, path.end, pkt);
		if (ret)
			return ret;
		fab_route_remember(start, pkt, &path);
	} else if (cross_all(path.step, path.num_steps, pkt)) {
		if (path.verdict == FAB_AGENT)
			fab_agents_queue(path.end, pkt);
		else
			fab_count_drop(path.end, path.verdict, pkt);
	}
	for (int i = 0; path.arming && !inspect && i < path.num_steps; i++)
		fab_activate(&path.step[i]);
	return 0;
}

/* --- multicast: a copy for each port of the group except the ingress port --- */

struct spread {
	const struct fab_packet *pkt;
	unsigned int copies;
};

static void spread_from(struct spread *spread, struct fab_port *in, int hops);

static void spread_to(struct spread *spread, struct fab_port *in, struct fab_port *out, int hops)
{
	enum fab_verdict verdict = fab_step_check(in, out, spread->pkt);
	struct fab_port *peer = fab_peer(out);
	struct fab_step step;

	if (verdict != FAB_DELIVER && verdict != FAB_DROP_PKEY_IN) {
		fab_count_drop(verdict == FAB_DROP_VL ? in : out, verdict, spread->pkt);
		return;
	}
	step = fab_step_of(in, out, spread->pkt);
	if (fab_inspects(in->fab) && !fab_cross(&step, spread->pkt, hops))
		return;
	if (!fab_is_switch(peer) && fab_deliver(peer, spread->pkt) == -EAGAIN) {
		step.from->count.raw[AG_XMIT_DISCARDS]++;
		return;
	}
	fab_count_step(&step, spread->pkt);
	fab_activate(&step);
	if (verdict == FAB_DROP_PKEY_IN)
		fab_count_drop(peer, verdict, spread->pkt);
	else if (fab_is_switch(peer))
		spread_from(spread, peer, hops + 1);
}

/* 18.2.4.3.3: a group that the table does not cover uses the default multicast port */
static uint8_t default_port(const struct ag_switch *sw, uint8_t in)
{
	return in == sw->default_mcast_primary ? sw->default_mcast_other :
						 sw->default_mcast_primary;
}

static void spread_from(struct spread *spread, struct fab_port *in, int hops)
{
	struct fab_node *node = fab_node_of(in);
	uint16_t mlid = spread->pkt->lrh.dlid;
	bool beyond = mlid - WIRE_LID_MULTICAST >= AG_MFT_BLOCKS * WIRE_MFT_PER_BLOCK;
	uint8_t fallback = default_port(node->ag->sw, in->num);
	bool sent = false;

	if (spread->pkt->hops + hops > FAB_MAX_HOPS) {
		fab_count_drop(in, FAB_DROP_LIFETIME, spread->pkt);
		return;
	}
	for (unsigned int p = 1; p <= node->ag->num_ports; p++) {
		bool out = beyond ? p == fallback : ag_mft_get(node->ag, mlid, (uint8_t)p);

		if (!out || p == in->num || spread->copies >= MULTICAST_COPIES_MAX)
			continue;
		spread->copies++;
		sent = true;
		spread_to(spread, in, &node->port[p], hops);
	}
	if (!sent && !ag_mft_get(node->ag, mlid, in->num))
		fab_count_drop(in, FAB_DROP_NO_ROUTE, spread->pkt);
}

static void forward_multicast(struct fab_port *start, const struct fab_packet *pkt)
{
	struct spread spread = {.pkt = pkt};

	if (fab_is_switch(start)) {
		spread_from(&spread, start, 0);
		return;
	}
	/* the adapter's own QPs in the group receive it too (10.5.2.1) */
	if (fab_ag_port(start)->state == WIRE_PORT_ACTIVE)
		fab_deliver(start, pkt);
	spread_to(&spread, start, start, 0);
}

int fab_forward(struct fab_port *start, const struct fab_packet *pkt)
{
	if (pkt->lrh.dlid < WIRE_LID_MULTICAST)
		return forward_unicast(start, pkt);
	if (pkt->lrh.dlid == WIRE_LID_PERMISSIVE) /* 4.1.3: for SMPs only */
		fab_count_drop(start, FAB_DROP_INACTIVE, pkt);
	else
		forward_multicast(start, pkt);
	return 0;
}

static int arrive_data(struct fab_port *in, const struct fab_packet *pkt)
{
	enum fab_verdict verdict = fab_enter_check(in, pkt);
	struct spread spread = {.pkt = pkt};

	if (verdict == FAB_DELIVER && pkt->hops > FAB_MAX_HOPS)
		verdict = FAB_DROP_LIFETIME;
	if (verdict == FAB_DELIVER && !fab_is_switch(in) && !is_multicast(pkt) &&
	    !fab_port_has_lid(fab_ag_port(in), pkt->lrh.dlid))
		verdict = FAB_DROP_DLID;
	if (verdict != FAB_DELIVER)
		fab_count_drop(in, verdict, pkt);
	else if (!fab_is_switch(in))
		return fab_deliver(in, pkt);
	else if (is_multicast(pkt))
		spread_from(&spread, in, 0);
	else
		return fab_forward(in, pkt);
	return 0;
}

int fab_arrive(struct fab_port *in, const struct fab_packet *pkt)
{
	if (pkt->lrh.vl != WIRE_VL_MANAGEMENT)
		return arrive_data(in, pkt);
	fab_smp_arrive(in, pkt);
	return 0;
}
