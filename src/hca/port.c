/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter's side of its ports: it delivers a packet that arrives to the
 * engine that owns its QP, and reports changes that the subnet manager made as
 * events of the midlayer.
 */
#include <string.h>

#include "abi/lane.h"
#include "base/bytes.h"
#include "hca/private.h"
#include "wire/frame.h"

/* Publish that the port's counter of violations was incremented and that a trap is pending. */
static void show_violation(struct hca *hca, unsigned port_num)
{
	fab_traps_changed(hca->fab, hca->node);
	hca_page_publish(hca, port_num);
}

/* C9-41: a packet that no P_Key of the port's table matches is dropped, counted, and reported to the
 * subnet manager (trap 257). */
static void pkey_violation(struct hca *hca, unsigned port_num, const struct fab_packet *pkt)
{
	struct ag_node *node = fab_node(hca->fab, hca->node);

	ag_trap_pkey(node, (uint8_t)port_num, pkt->pkey, pkt->lrh.slid, pkt->lrh.dlid,
		     pkt->lrh.sl, pkt->src_qpn, pkt->dest_qpn, rt_now(hca->rt));
	show_violation(hca, port_num);
}

/* A datagram whose Q_Key is not that of its QP is dropped, counted (PortInfo,
 * 14.2.5.6) and reported to the subnet manager (trap 258, 14.2.5.1). A QP in a
 * state in which it does not receive makes no such check. */
static bool qkey_is_wrong(const struct hca_qp *qp, const struct fab_packet *pkt)
{
	return qp->ib.qp_type == IB_QPT_UD &&
	       wire_opcodes[pkt->opcode].flags & WIRE_HAS_DETH &&
	       hca_qp_receives(qp) &&
	       !tp_qkey_passes(qp->ib.qp_num, qp->ib.attr.qkey, pkt->qkey);
}

static void qkey_violation(struct hca *hca, unsigned port_num, const struct fab_packet *pkt)
{
	struct ag_node *node = fab_node(hca->fab, hca->node);

	ag_trap_qkey(node, (uint8_t)port_num, pkt->qkey, pkt->lrh.slid, pkt->lrh.dlid,
		     pkt->lrh.sl, pkt->src_qpn, pkt->dest_qpn, rt_now(hca->rt));
	show_violation(hca, port_num);
}

void hca_qkey_violations(const struct hca_qp *qp, const struct abi_lane_event *event)
{
	struct hca *hca = hca_of(qp->ib.device);
	struct ag_node *node = fab_node(hca->fab, hca->node);
	const uint8_t port_num = qp->ib.attr.port_num;

	if (qp->ib.qp_type != IB_QPT_UD || !event->count || !port_num ||
	    port_num > hca->ib.phys_port_cnt)
		return;
	ag_count_qkeys(node, port_num, event->count - 1);
	ag_trap_qkey(node, port_num, event->qkey, event->slid, node->port[port_num].lid, event->sl,
		     event->src_qpn, qp->ib.qp_num, rt_now(hca->rt));
	show_violation(hca, port_num);
}

/* Was the packet sent by another program than the one that owns the peer of @qp? A packet of a
 * connected QP does not name its source QP, so a program could otherwise send packets in the name
 * of another program's QP. If the peer does not exist any more, it may have sent the packet
 * before. */
static bool is_of_another(struct hca *hca, const struct hca_qp *qp, const struct fab_packet *pkt)
{
	const struct fab_sink *sink;
	const struct hca_port *from;
	const struct hca_qp *peer;

	if (!pkt->source || wire_opcodes[pkt->opcode].flags & WIRE_HAS_DETH)
		return false;
	sink = fab_sink(hca->fab, (int)pkt->source - 1, 1);
	if (!sink || sink->deliver != hca_port_deliver)
		return false;
	from = sink->ctx;
	peer = eng_table_get(&from->hca->qps, qp->ib.attr.dest_qp_num);
	return peer && hca_owner(peer) != pkt->owner && !hca_target_may_send(peer, pkt->owner);
}

/* Deliver a copy to every engine with a QP in the group. A member without room misses the
 * packet, so that one slow member does not delay datagrams to the others. */
static void to_group(struct hca *hca, unsigned port_num, const struct fab_packet *pkt)
{
	struct ib_ucontext *context;
	struct wire_grh grh;

	if (pkt->lrh.lnh != WIRE_LNH_GRH)
		return;
	grh = fab_packet_grh(pkt);
	list_for_each_entry(context, &hca->ib.ucontext_list, node) {
		struct hca_user *user = container_of(context, struct hca_user, ib);
		if (hca_user_wants(user, &grh.dgid))
			hca_user_deliver(user, pkt->bytes, pkt->len);
	}
	if (hca->kernel_groups)
		hca_link_receive(hca, port_num, pkt->bytes, pkt->len);
}

static int to_mad_qp(const struct hca_port *port, unsigned qpn, const struct fab_packet *pkt)
{
	if (!port->has_qp[qpn])
		return -ENOENT;
	return hca_link_receive(port->hca, port->port_num, pkt->bytes, pkt->len);
}

int hca_port_deliver(void *ctx, const struct fab_packet *pkt)
{
	struct hca_port *port = ctx;
	struct hca *hca = port->hca;
	struct hca_qp *qp;

	if (pkt->dest_qpn == 0)
		return to_mad_qp(port, 0, pkt);
	if (pkt->dest_qpn == WIRE_QPN_FRAME)
		return hca_frame_deliver(port, pkt);
	if (!eng_port_accepts_pkey(hca_devport(hca, port->port_num), pkt->pkey)) {
		pkey_violation(hca, port->port_num, pkt);
		return 0;
	}
	if (pkt->dest_qpn == WIRE_QPN_MULTICAST) {
		to_group(hca, port->port_num, pkt);
		return 0;
	}
	if (pkt->dest_qpn == 1)
		return to_mad_qp(port, 1, pkt);
	qp = eng_table_get(&hca->qps, pkt->dest_qpn);
	if (!qp) /* C9-35: a packet for a QP that does not exist is dropped silently */
		return 0;
	if (qkey_is_wrong(qp, pkt)) {
		qkey_violation(hca, port->port_num, pkt);
		return 0;
	}
	if (is_of_another(hca, qp, pkt))
		return 0;
	if (qp->user && qp->ib.qp_type == IB_QPT_XRC_TGT)
		return hca_target_deliver(qp, pkt);
	return qp->user ? hca_user_deliver(qp->user, pkt->bytes, pkt->len) :
			  hca_link_receive(hca, port->port_num, pkt->bytes, pkt->len);
}

/* A train is for one QP of the midlayer. All others, and what is to be dropped, get single packets. */
int hca_port_deliver_train(void *ctx, const struct fab_packet *first, const struct fab_train *train)
{
	struct hca_port *port = ctx;
	struct hca *hca = port->hca;
	const struct hca_qp *qp;

	if (first->dest_qpn <= 1 || first->dest_qpn >= WIRE_QPN_FRAME ||
	    !eng_port_accepts_pkey(hca_devport(hca, port->port_num), first->pkey))
		return -EOPNOTSUPP;
	qp = eng_table_get(&hca->qps, first->dest_qpn);
	if (!qp || qp->user || qkey_is_wrong(qp, first))
		return -EOPNOTSUPP;
	return hca_link_receive(hca, port->port_num, train->bytes, train->len);
}

static void dispatch(struct hca *hca, unsigned port_num, enum ib_event_type type)
{
	struct ib_event event = {
		.device = &hca->ib, .element.port_num = port_num, .event = type};

	ib_dispatch_event(&event);
}

static void state_changed(struct hca_port *port)
{
	uint8_t now = hca_devport(port->hca, port->port_num)->state;
	uint8_t before = port->last_state;

	port->last_state = now;
	if (now == before)
		return;
	if (now == IB_PORT_ACTIVE)
		dispatch(port->hca, port->port_num, IB_EVENT_PORT_ACTIVE);
	else if (before == IB_PORT_ACTIVE)
		dispatch(port->hca, port->port_num, IB_EVENT_PORT_ERR);
}

void hca_port_changed(void *ctx, uint32_t changes)
{
	static const struct {
		uint32_t change;
		enum ib_event_type event;
	} events[] = {
		{AG_CHANGED_LID, IB_EVENT_LID_CHANGE},
		{AG_CHANGED_SM, IB_EVENT_SM_CHANGE},
		{AG_CHANGED_PKEYS, IB_EVENT_PKEY_CHANGE},
		{AG_CHANGED_GIDS, IB_EVENT_GID_CHANGE},
		{AG_CHANGED_REREGISTER, IB_EVENT_CLIENT_REREGISTER},
	};
	struct hca_port *port = ctx;

	hca_page_publish(port->hca, port->port_num);
	hca_lanes_check(port->hca);
	hca_bypass_revoke(port->hca->set);
	if (changes & AG_CHANGED_NAME)
		memcpy(port->hca->ib.node_desc, fab_node(port->hca->fab, port->hca->node)->desc,
		       IB_DEVICE_NODE_DESC_MAX);
	if (!port->hca->ib.registered)
		return;
	for (unsigned i = 0; i < ARRAY_SIZE(events); i++)
		if (changes & events[i].change)
			dispatch(port->hca, port->port_num, events[i].event);
	state_changed(port);
}
