/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets on VL15. They pass ports in state Init or higher, and are subject to
 * no flow control (a full receiver drops them, VL15Dropped), no P_Keys and no
 * SLtoVL. A switch forwards LID routed packets by its table, and directed-route
 * SMPs by the rules of agents/directed_route.h. These change the SMP, so a copy
 * is forwarded.
 */
#include "agents/directed_route.h"
#include "fabric/fabric_private.h"

#include <errno.h>
#include <string.h>

#define VL15_BYTES_MAX 384
/* a LID routed part, a directed part and another LID routed part */
#define VL15_HOPS_MAX (3 * FAB_MAX_HOPS)

/** struct smp_packet - a packet on VL15 that switches may rewrite */
struct smp_packet {
	struct fab_packet pkt; /* decoded from @buf */
	uint8_t *mad;
	uint8_t buf[VL15_BYTES_MAX];
};

static bool copy(struct smp_packet *smp, const struct fab_packet *pkt)
{
	if (pkt->len > sizeof(smp->buf) || pkt->payload_bytes != WIRE_MAD_BYTES)
		return false;
	smp->pkt = *pkt;
	memcpy(smp->buf, pkt->bytes, pkt->len);
	smp->pkt.bytes = smp->buf;
	smp->mad = smp->buf + pkt->len - WIRE_MAD_BYTES;
	return true;
}

static void readdress(struct smp_packet *smp, uint16_t slid, uint16_t dlid)
{
	smp->pkt.lrh.slid = slid;
	smp->pkt.lrh.dlid = dlid;
	wire_lrh_encode(&smp->pkt.lrh, smp->buf);
}

static struct fab_port *by_lid(struct fab_port *in, struct smp_packet *smp)
{
	struct fab_node *node = fab_node_of(in);
	uint8_t out = fab_switch_relay(node->ag, smp->pkt.lrh.dlid);

	if (out == 0)
		fab_agents_queue(in, &smp->pkt);
	else if (out == WIRE_LFT_NO_PORT)
		fab_count_drop(in, FAB_DROP_NO_ROUTE, &smp->pkt);
	else if (out == in->num)
		fab_count_drop(in, FAB_DROP_LOOPING, &smp->pkt);
	else
		return &node->port[out];
	return NULL;
}

static struct fab_port *by_route(struct fab_port *in, struct smp_packet *smp)
{
	struct fab_node *node = fab_node_of(in);
	struct ag_dr_at at = {true, node->ag->num_ports, in->num};
	struct wire_smp hdr;
	uint8_t out;

	switch (ag_dr_receive(&at, smp->mad, &out)) {
	case AG_DR_FORWARD:
		readdress(smp, WIRE_LID_PERMISSIVE, WIRE_LID_PERMISSIVE);
		return &node->port[out];
	case AG_DR_LID_ROUTE:
		wire_smp_decode(smp->mad, WIRE_MAD_BYTES, &hdr);
		readdress(smp, node->ag->port[0].lid, hdr.direction ? hdr.dr_slid : hdr.dr_dlid);
		/* the switch sends it as its own, so going back through @in is no loop */
		return by_lid(&node->port[0], smp);
	case AG_DR_LOCAL:
		fab_agents_queue(in, &smp->pkt);
		return NULL;
	case AG_DR_DISCARD:
		break;
	}
	return NULL;
}

/* the forwarding decision of a switch: the egress port, or NULL if the packet ends here */
static struct fab_port *at_switch(struct fab_port *in, struct smp_packet *smp)
{
	const struct ag_port *own = &fab_node_of(in)->ag->port[0];
	uint16_t dlid = smp->pkt.lrh.dlid;

	if (dlid != WIRE_LID_PERMISSIVE && (dlid != own->lid || !own->lid))
		return by_lid(in, smp);
	if (smp->pkt.dest_qpn != 0) /* 3.5.7: only SMPs use VL15 */
		return NULL;
	if (smp->mad[1] == WIRE_CLASS_SM_DIRECT)
		return by_route(in, smp);
	if (dlid != WIRE_LID_PERMISSIVE)
		fab_agents_queue(in, &smp->pkt);
	return NULL;
}

static void travel(struct fab_port *out, struct smp_packet *smp)
{
	for (int hops = 0; out && smp->pkt.hops + hops < VL15_HOPS_MAX; hops++) {
		struct fab_port *in = fab_peer(out);
		struct fab_step step;

		if (!in || fab_ag_port(out)->state < WIRE_PORT_INIT) {
			fab_count_drop(out, FAB_DROP_INACTIVE, &smp->pkt);
			return;
		}
		step = fab_step_of(out, out, &smp->pkt);
		if (fab_inspects(out->fab) && !fab_cross(&step, &smp->pkt, hops))
			return;
		fab_count_step(&step, &smp->pkt);
		if (!fab_is_switch(in)) {
			if (fab_deliver(in, &smp->pkt) == -EAGAIN)
				step.to->count.raw[AG_VL15_DROPPED]++;
			return;
		}
		out = at_switch(in, smp);
	}
}

void fab_smp_arrive(struct fab_port *in, const struct fab_packet *pkt)
{
	struct smp_packet smp;

	if (fab_ag_port(in)->state < WIRE_PORT_INIT || !copy(&smp, pkt))
		return;
	if (fab_is_switch(in))
		travel(at_switch(in, &smp), &smp);
	else if (fab_deliver(in, &smp.pkt) == -EAGAIN)
		fab_ag_port(in)->count.raw[AG_VL15_DROPPED]++;
}

void fab_smp_leave(struct fab_port *out, const struct fab_packet *pkt)
{
	struct smp_packet smp;

	if (copy(&smp, pkt))
		travel(out, &smp);
}

void fab_smp_send(struct fab_port *start, const struct fab_packet *pkt)
{
	struct smp_packet smp;

	if (!copy(&smp, pkt))
		return;
	if (fab_is_switch(start))
		travel(by_lid(start, &smp), &smp);
	else if (fab_port_has_lid(fab_ag_port(start), pkt->lrh.dlid))
		fab_deliver(start, &smp.pkt);
	else
		travel(start, &smp);
}
