/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Watches: observers of the packets that cross a cable, such as captures. A
 * watch is called when a port counts a packet, so it sees what was on the wire:
 * a packet that waits for room is not seen, and one that a link loses is seen
 * as sent but not as received.
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
	fab_rules_changed(fab); /* flows through these ports must stop, or may start, to bypass the fabric */
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
