/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Data packets on their way. The destination is asked first and the links
 * count after, so that a full destination leaves no trace but PortXmitWait:
 * the sender keeps the packet, as link-level flow control makes it (7.9).
 * Multicast has no such hold: a full member misses its copy.
 */
#include "fabric/fabric_private.h"

#include <errno.h>

#define MULTICAST_COPIES_MAX 65536 /* ends loops in multicast tables */

void fab_count_step(const struct fab_step *step, const struct fab_packet *pkt)
{
	uint64_t *x = step->from->count.raw, *r = step->to->count.raw;
	bool multicast = pkt->lrh.dlid >= WIRE_LID_MULTICAST && pkt->lrh.dlid != WIRE_LID_PERMISSIVE;

	x[AG_XMIT_DATA] += pkt->lrh.length_dwords;
	x[AG_XMIT_PACKETS]++;
	x[multicast ? AG_MULTICAST_XMIT : AG_UNICAST_XMIT]++;
	r[AG_RCV_DATA] += pkt->lrh.length_dwords;
	r[AG_RCV_PACKETS]++;
	r[multicast ? AG_MULTICAST_RCV : AG_UNICAST_RCV]++;
	step->from->count.xmit_sl[pkt->lrh.sl] += pkt->lrh.length_dwords;
	step->to->count.rcv_sl[pkt->lrh.sl] += pkt->lrh.length_dwords;
	if (step->to->op_counted)
		ag_op_count(step->to, pkt->opcode, step->vl, pkt->lrh.length_dwords);
}

/* 7.2.7.2: data at an Armed port says that the other end is Active */
static void activate(const struct fab_step *step)
{
	if (step->to->state != WIRE_PORT_ARMED)
		return;
	step->to->state = WIRE_PORT_ACTIVE;
	fab_changed(step->to_port, AG_CHANGED_STATE);
}

/* what each verdict counts where it was made; AG_NUM_COUNTERS: nothing */
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
		raw[AG_XMIT_DISCARDS]++; /* a CA's own SLtoVL */
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

static bool tap(const struct fab_port *port, bool sent, const struct fab_packet *pkt)
{
	return !port->tap || port->tap->packet(port->tap->ctx, port->node, port->num, sent,
					       pkt->bytes, pkt->len);
}

bool fab_tapped(const struct fab_step *step, const struct fab_packet *pkt)
{
	return tap(step->from_port, true, pkt) && tap(step->to_port, false, pkt);
}

/* with taps set: the links before the one where the packet is lost, or all */
static int count_tapped(const struct fab_step *steps, int n, const struct fab_packet *pkt)
{
	for (int i = 0; i < n; i++) {
		if (!fab_tapped(&steps[i], pkt))
			return i;
		fab_count_step(&steps[i], pkt);
	}
	return n;
}

int fab_deliver(struct fab_port *to, const struct fab_packet *pkt)
{
	if (to->sink.deliver)
		return to->sink.deliver(to->sink.ctx, pkt->bytes, pkt->len);
	if (pkt->dest_qpn <= 1)
		fab_agents_queue(to, pkt);
	return 0;
}

static void count_wait(const struct fab_step *step)
{
	step->from->count.raw[AG_XMIT_WAIT]++;
	step->from->count.xmit_wait_vl[step->vl]++;
}

/* @end takes the packet; then the links count it */
static int finish(const struct fab_step *steps, int n, struct fab_port *end,
		  const struct fab_packet *pkt)
{
	if (n && end->fab->num_taps) {
		if (count_tapped(steps, n, pkt) == n && fab_deliver(end, pkt) == -EAGAIN)
			steps[n - 1].from->count.raw[AG_XMIT_DISCARDS]++;
		return 0;
	}
	if (fab_deliver(end, pkt) == -EAGAIN) {
		if (n)
			count_wait(&steps[n - 1]);
		return -EAGAIN;
	}
	for (int i = 0; i < n; i++)
		fab_count_step(&steps[i], pkt);
	return 0;
}

static int forward_unicast(struct fab_port *start, const struct fab_packet *pkt)
{
	const struct fab_route *route = fab_route_find(start, pkt);
	struct fab_path path;
	int ret;

	if (route && !start->fab->num_taps)
		return finish(route->step, route->num_steps, route->end, pkt);
	fab_route_walk(start, pkt, &path);
	if (path.verdict == FAB_DELIVER) {
		ret = finish(path.step, path.num_steps, path.end, pkt);
		if (ret)
			return ret;
		fab_route_remember(start, pkt, &path);
	} else if (count_tapped(path.step, path.num_steps, pkt) == path.num_steps) {
		if (path.verdict == FAB_AGENT)
			fab_agents_queue(path.end, pkt);
		else
			fab_count_drop(path.end, path.verdict, pkt);
	}
	for (int i = 0; path.arming && i < path.num_steps; i++)
		activate(&path.step[i]);
	return 0;
}

/* --- multicast: a copy for each port of the group but where it came from --- */

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
	if (!fab_tapped(&step, spread->pkt))
		return;
	if (!fab_is_switch(peer) && fab_deliver(peer, spread->pkt) == -EAGAIN) {
		step.from->count.raw[AG_XMIT_DISCARDS]++;
		return;
	}
	fab_count_step(&step, spread->pkt);
	activate(&step);
	if (verdict == FAB_DROP_PKEY_IN)
		fab_count_drop(peer, verdict, spread->pkt);
	else if (fab_is_switch(peer))
		spread_from(spread, peer, hops + 1);
}

/* 18.2.4.3.3: a group beyond the table leaves by the default multicast port */
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

	if (hops > FAB_MAX_HOPS) {
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
	/* the adapter's own QPs in the group hear it too (10.5.2.1) */
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
