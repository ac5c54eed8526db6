/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets that arrived by a cable and whose destinations have no room. Each destination, a queue pair of a LID,
 * has a queue of its own, so that a program which does not read holds up nobody else. A destination that accepts
 * nothing for the head-of-queue lifetime (IBA v1 18.2.5.4) loses what waits for it, and for a while what comes next, so that
 * the credits of the cable return to the others.
 */
#ifndef SOFTIB_CABLE_HELD_H
#define SOFTIB_CABLE_HELD_H

#include "fabric/fabric.h"

/** struct cable_held_ops - both are called from the functions below */
struct cable_held_ops {
	/** offer() - Return: 0 delivered; -EAGAIN no room. @again: it was offered before */
	int (*offer)(void *ctx, struct fab_packet *pkt, bool again);
	/** done() - a packet of @bytes was delivered, or with @discarded dropped */
	void (*done)(void *ctx, size_t bytes, bool discarded);
};

struct cable_held {
	struct rt *rt;
	const struct cable_held_ops *ops;
	void *ctx;
	struct list_head queues;
	struct rt_timer retry;
	uint64_t retry_ns;
};

void cable_held_init(struct cable_held *held, struct rt *rt, const struct cable_held_ops *ops, void *ctx);
/** cable_held_exit() - drop everything, without done() */
void cable_held_exit(struct cable_held *held);
/** cable_held_packet() - offer a packet that has arrived, behind those of its destination that wait, and keep it if
 *  there is no room */
void cable_held_packet(struct cable_held *held, struct fab_packet *pkt);

#endif
