/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Links. A link is up if both ends poll, the cable is plugged in, and both ends
 * have a width and a speed in common that is enabled (IBA v1 volume 2 5.6;
 * volume 1 7.2.7):
 *
 *   plugged, both Polling      Training, then LinkUp and Init
 *   Set PortState Down         down; Polling again, or Disabled, or Sleep
 *   unplugged                  down; Polling
 *
 * A request of the subnet manager takes effect a moment later (ANSWER_NS), so
 * that the answer to its Set can still leave by a link that goes down.
 */
#include "fabric/fabric_private.h"

#define ANSWER_NS (1 * NSEC_PER_MSEC)
#define TRAINING_NS (5 * NSEC_PER_MSEC)

static void port_link(struct fab_port *port, uint8_t width, uint16_t speed, uint8_t phys)
{
	struct fab_node *node = fab_node_of(port);
	uint32_t changes = ag_port_link(node->ag, port->num, width, speed, phys, rt_now(port->fab->rt));

	if (fab_is_outlet(port)) /* its agents are on the far side */
		fab_routes_changed(node);
	else
		fab_changed(port, changes);
}

static bool is_up(const struct fab_port *port)
{
	return fab_ag_port(port)->phys_state == WIRE_PHYS_LINK_UP;
}

static bool polls(const struct fab_port *port)
{
	return fab_ag_port(port)->phys_request == WIRE_PHYS_POLLING;
}

static void fall(struct fab_port *port)
{
	port_link(port, 0, 0, fab_ag_port(port)->phys_request);
}

static void train(struct fab_port *port)
{
	struct fab_port *peer = fab_peer(port);
	struct ag_port *a = fab_ag_port(port), *b;
	uint16_t speed;
	uint8_t width;

	if (!peer) {
		fall(port);
		if (port->peer_node >= 0)
			fall(&port->fab->node[port->peer_node].port[port->peer_port]);
		return;
	}
	b = fab_ag_port(peer);
	width = ag_width_negotiate(a->width_enabled, b->width_enabled);
	speed = ag_speed_negotiate(a->speed_enabled, b->speed_enabled);
	if (!polls(port) || !polls(peer) || !width || !speed) {
		fall(port);
		fall(peer);
		return;
	}
	port_link(port, width, speed, 0);
	port_link(peer, width, speed, 0);
}

void fab_link_train(struct fab_port *port)
{
	port->falling = false;
	train(port);
	fab_outlet_tell(port);
}

/* With fall_first, the timer's first expiry takes the link down and the second takes
 * it up. */
static void trained(struct rt_timer *timer)
{
	struct fab_port *port = container_of(timer, struct fab_port, training);
	struct fab_port *peer = fab_peer(port);

	if (!port->fall_first || !is_up(port)) {
		fab_link_train(port);
		return;
	}
	port->fall_first = false;
	fall(port);
	if (peer)
		fall(peer);
	port->falling = peer && polls(port) && polls(peer);
	if (port->falling)
		rt_timer_arm(timer, mono_add(rt_now(port->fab->rt), TRAINING_NS));
	fab_outlet_tell(port);
}

void fab_link_retrain(struct fab_port *port)
{
	port->fall_first = is_up(port);
	rt_timer_arm(&port->training, mono_add(rt_now(port->fab->rt),
					       port->fall_first ? ANSWER_NS : TRAINING_NS));
}

void fab_link_init(struct fab_port *port)
{
	rt_timer_init(port->fab->rt, &port->training, trained);
}
