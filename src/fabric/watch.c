/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Watches: who wants to see each packet that crosses a cable, and changes
 * nothing about it. They are told when a port counts it, so what they see is
 * what was on the wire: those that wait for room are not; one that a link
 * loses was sent, and is not received.
 */
#include "fabric/fabric_private.h"

static bool in_scope(const struct fab_watch *watch, const struct fab_port *port)
{
	return (watch->only_node < 0 || watch->only_node == port->node) &&
	       (watch->only_port == 0 || watch->only_port == port->num);
}

void fab_show(const struct fab_step *step, const struct fab_packet *pkt, bool sent)
{
	const struct fab_port *port = sent ? step->from_port : step->to_port;
	struct fab_sight sight = {
		.node = port->node,
		.port = port->num,
		.sent = sent,
		.vl = step->vl,
		.wrong_crcs = pkt->wrong_crcs,
		.bytes = pkt->bytes,
		.len = pkt->len,
	};
	struct fab_watch *watch;

	list_for_each_entry(watch, &port->fab->watches, node)
		if (in_scope(watch, port))
			watch->packet(watch->ctx, &sight);
}

static void mark_ports(struct fabric *fab, const struct fab_watch *watch, int change)
{
	for (int n = 0; n < fab->num_nodes; n++)
		for (unsigned int p = 1; p <= fab->node[n].ag->num_ports; p++)
			if (in_scope(watch, &fab->node[n].port[p]))
				fab->node[n].port[p].watches += (uint16_t)change;
	fab_rules_changed(fab); /* flows that short-cut these ports come back, or may go */
}

void fab_watch_add(struct fabric *fab, struct fab_watch *watch)
{
	list_add_tail(&watch->node, &fab->watches);
	mark_ports(fab, watch, 1);
}

void fab_watch_del(struct fabric *fab, struct fab_watch *watch)
{
	list_del(&watch->node);
	mark_ports(fab, watch, -1);
}
