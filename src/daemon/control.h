/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The "control" socket of a fabric, by which tools query and change its state. Each
 * message is one JSON object: docs/CONTROL.md.
 */
#ifndef SOFTIB_DAEMON_CONTROL_H
#define SOFTIB_DAEMON_CONTROL_H

#include "abi/counters.h"
#include "fabric/fabric.h"
#include "runtime/posix/rt_posix.h"

struct cables;
struct topo_plan;
struct control;
struct modules;

/** struct control_ops - values and functions that the owner of the socket provides */
struct control_ops {
	const char *topology; /* the argument that described the topology; may be NULL */
	uint32_t min_ack_timeout_us; /* hca_set_min_ack_timeout() */
	const struct topo_plan *addresses; /* the address plan; NULL: none */
	const struct fab_vlans *vlans;	   /* those of the plan; NULL: none */
	const char *profile; /* name of the adapters' profile; NULL: none */
	const char *profile_less; /* the limits of the profile that they do not reach: profile_apply() */
	const char *polled; /* nodes whose adapters are polled, as given; NULL: none */
	const char *link_layer; /* "infiniband", "ethernet" or "mixed"; NULL: "infiniband" */
	const char *net; /* "node" or "host": the network in which softib starts programs; NULL: "host" */
	bool ipoib_connected; /* IP interfaces begin in connected mode */
	/** window_operations() - number of requests performed through windows; may be NULL */
	uint64_t (*window_operations)(void *ctx);
	const char *const *port_counter_names; /* ABI_COUNTERS of them */
	/** port_counters() - what the queue pairs of a port count (hca_counters()); may be NULL
	 *  Return: false: the node has no adapter */
	bool (*port_counters)(void *ctx, int node, unsigned port_num, uint64_t values[ABI_COUNTERS]);
	struct modules *modules; /* the loader of modules; NULL: none */
	struct cables *cables;	 /* those that leave the fabric; NULL: there are none */
	/** stop() - shut softibd down, from the loop; may be NULL */
	void (*stop)(void *ctx);
	void *ctx;
};

/**
 * control_create() - listen on @dir/control
 * @ops: copied; may be NULL
 * Return: 0 and *@control; -ENAMETOOLONG; -EADDRINUSE there is a socket already
 * (the owner of @dir has to remove a stale one); -ENOMEM; -errno of the system
 */
int control_create(struct rt *rt, struct fabric *fab, const char *dir,
		   const struct control_ops *ops, struct control **control);
/** control_destroy() - close every client and remove the socket */
void control_destroy(struct control *control);

struct ipoib;
struct ipoib_own_address;
/** control_report_conflict() - log that two hosts have the same address; a callback for
 *  ipoib_report_conflicts() */
void control_report_conflict(const struct ipoib *ipoib, const struct ipoib_own_address *address);

#endif
