/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Outlets: cables that leave this fabric. The far end of such a cable is a port of another
 * fabric, in another process or on another host, and both fabrics are one subnet. An outlet
 * stands for the far port on this side: packets that cross the cable go to its functions, and
 * packets that come from the far side enter through it.
 *
 * Both ends of a cable train by the same rules (link.c). Each side therefore tells the other one
 * what its port contributes to the training, struct fab_outlet_link, whenever that changes. Each
 * checks, counts and traces packets at its own port alone. A flow whose way leaves by an outlet never bypasses the
 * fabric.
 *
 * Context: the fabric's thread, as all of it. Nothing here knows how packets get to the far side.
 */
#ifndef SOFTIB_FABRIC_OUTLET_H
#define SOFTIB_FABRIC_OUTLET_H

#include "fabric/fabric.h"

#define FAB_OUTLETS_MAX 64 /* of a fabric */

struct fab_outlet;

/** struct fab_outlet_link - what the port at one end of a cable contributes to its training */
struct fab_outlet_link {
	bool plugged;		/* the cable is in, and the node has power */
	uint8_t phys_request;	/* enum wire_phys_state: Polling, Disabled, Sleep */
	uint8_t width_enabled;	/* as in PortInfo */
	uint16_t speed_enabled; /* as in struct ag_port */
};

static inline bool fab_outlet_links_equal(const struct fab_outlet_link *a, const struct fab_outlet_link *b)
{
	return a->plugged == b->plugged && a->phys_request == b->phys_request &&
	       a->width_enabled == b->width_enabled && a->speed_enabled == b->speed_enabled;
}

/** struct fab_outlet_ops - the other side of an outlet; neither function may change the fabric */
struct fab_outlet_ops {
	/**
	 * send() - a packet leaves this fabric
	 * @pkt: valid during the call; its hops do not include this cable
	 * Return: 0 accepted; -EAGAIN no room: the sender keeps the packet and offers it again. A packet on
	 * VL15 that finds no room is dropped
	 */
	int (*send)(void *ctx, const struct fab_packet *pkt);
	/** changed() - this side's contribution to the training of the link may have changed */
	void (*changed)(void *ctx, const struct fab_outlet_link *link);
};

/**
 * fab_outlet_create() - plug a cable that leaves the fabric into a port that has none
 * @ops: copied
 * The link stays down until fab_outlet_far_link() says that the far end is there.
 * Return: 0 and *@outlet, which fab_outlet_destroy() ends, at the latest before fab_destroy(); -ENOENT no such port;
 * -EBUSY it has a cable; -ENOSPC FAB_OUTLETS_MAX; -ENOMEM
 */
int fab_outlet_create(struct fabric *fab, int node, int port, const struct fab_outlet_ops *ops, void *ctx,
		      struct fab_outlet **outlet);
/** fab_outlet_destroy() - pull the cable: the link goes down, the port has no cable again */
void fab_outlet_destroy(struct fab_outlet *outlet);

/** fab_outlet_far_link() - what the far port contributes to the training of the link
 *  @link: NULL: there is no connection to the far side, as if its end of the cable were pulled */
void fab_outlet_far_link(struct fab_outlet *outlet, const struct fab_outlet_link *link);

/** fab_outlet_own_link() - what this side's port contributes */
struct fab_outlet_link fab_outlet_own_link(const struct fab_outlet *outlet);

/** fab_outlet_near() - the port that the cable is plugged into */
void fab_outlet_near(const struct fab_outlet *outlet, int *node, int *port);

/**
 * fab_outlet_receive() - a packet of the far side arrives at the port, and is forwarded from there
 * @pkt: as fab_packet_decode() made it, with the hops that it had when it left the far side
 * @again: it was offered before, and found no room
 * A packet that arrives while the link is down is dropped.
 * Return: 0 it was delivered or dropped, and counted; -EAGAIN no room at its destination: the caller keeps it,
 * and offers it @again
 */
int fab_outlet_receive(struct fab_outlet *outlet, struct fab_packet *pkt, bool again);

/** fab_outlet_is_at() - does a cable that leaves the fabric end at this port? Then *@up: is its far end there? */
bool fab_outlet_is_at(const struct fabric *fab, int node, int port, bool *up);

#endif
