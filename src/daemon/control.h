/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The "control" socket of a fabric: people and tools ask how it is and pull
 * its cables. One JSON object a message each way: docs/CONTROL.md.
 */
#ifndef SOFTIB_DAEMON_CONTROL_H
#define SOFTIB_DAEMON_CONTROL_H

#include "fabric/fabric.h"
#include "runtime/posix/rt_posix.h"

struct topo_plan;
struct control;
struct modules;

/** struct control_ops - what the endpoint asks of those who hold it */
struct control_ops {
	const char *topology; /* what the fabric was made from; may be NULL */
	uint32_t min_ack_timeout_us; /* hca_set_min_ack_timeout() */
	const struct topo_plan *addresses; /* the plan; NULL: none, and none is told */
	const char *profile; /* that the adapters report; NULL: it is not told */
	const char *profile_less; /* of what they have less than that: profile_apply() */
	const char *net; /* "node" or "host": whose network softib gives to programs; NULL: "host" */
	/** window_operations() - requests that programs did by windows; may be NULL */
	uint64_t (*window_operations)(void *ctx);
	struct modules *modules; /* the loader; NULL: there is none */
	/** stop() - end softibd in good order, from the loop. May be NULL. */
	void (*stop)(void *ctx);
	void *ctx;
};

/**
 * control_create() - listen on @dir/control
 * @ops: copied; NULL: no stop
 * Return: 0 and *@control; -ENAMETOOLONG, -EADDRINUSE (a socket is there:
 * whoever owns @dir removes a stale one), -ENOMEM, -errno of the system
 */
int control_create(struct rt *rt, struct fabric *fab, const char *dir,
		   const struct control_ops *ops, struct control **control);
/** control_destroy() - close every client and remove the socket */
void control_destroy(struct control *control);

#endif
