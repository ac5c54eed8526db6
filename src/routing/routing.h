/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Routing engines compute linear and multicast forwarding tables from a graph of
 * switches. They are pure: the caller provides all memory, including the tables,
 * no state is kept between calls, and the same graph always gives the same tables.
 *
 * Terms: a link is one direction of a cable between two switches. A
 * destination is an end port (adapter port, router port, or a switch's port 0)
 * with its 2^LMC LIDs. An edge switch has end ports other than its port 0;
 * traffic starts there.
 */
#ifndef SOFTIB_ROUTING_ROUTING_H
#define SOFTIB_ROUTING_ROUTING_H

#include "base/types.h"

#define ROUTE_NO_PORT 255 /* an LFT entry that drops (IBA v1 18.2.4.3.3) */
#define ROUTE_UNREACHED UINT16_MAX

/** struct route_link - one direction of a cable between switches */
struct route_link {
	uint32_t from, to; /* switch indices */
	uint8_t port;	   /* of @from */
	uint8_t peer_port; /* of @to */
};

/**
 * struct route_switch - one switch
 * @lft: the caller's table, indexed by LID up to lid_max of the graph
 */
struct route_switch {
	uint64_t guid;
	uint8_t *lft;
	/* --- filled by route_graph_index() --- */
	uint32_t first_link, n_links;
	bool edge;
	/* --- filled by up/down --- */
	uint16_t rank;
};

/** struct route_dest - an end port: switch @sw reaches its LIDs by @port; port 0 is the
 *  switch itself */
struct route_dest {
	uint16_t lid;
	uint8_t lmc;
	uint8_t port;
	uint32_t sw;
};

/**
 * struct route_graph - the subnet
 * @links: in any order; route_graph_index() sorts them by switch and port
 * @dests: in any order; sorted by switch, then LID
 */
struct route_graph {
	struct route_switch *switches;
	struct route_link *links;
	struct route_dest *dests;
	uint32_t n_switches, n_links, n_dests;
	uint16_t lid_max;
};

/** struct route_work - scratch memory of the caller; see route_work_bytes() */
struct route_work {
	void *mem;
	size_t size;
};

/** route_work_bytes() - bytes of scratch memory that any function here needs for @g */
size_t route_work_bytes(const struct route_graph *g);

/**
 * route_graph_index() - sort a graph; call it once, before any other function
 * Return: 0; -EINVAL a link or destination names a switch that does not exist, a
 * link has no reverse link, or a LID is 0, multicast, above lid_max or used twice;
 * -ENOMEM @w is too small
 */
int route_graph_index(struct route_graph *g, const struct route_work *w);

/**
 * struct route_params - parameters that a user may set
 * @roots:   GUIDs of the roots of up/down; none: up/down selects them
 * @connect_roots: let up/down connect pairs of switches (never of adapters) that
 *           have no path by the up/down rule
 */
struct route_params {
	const uint64_t *roots;
	uint32_t n_roots;
	bool connect_roots;
};

/**
 * struct route_engine - one way to compute unicast tables
 * @run: fill every lft of @g. Return: 0; -ENOMEM @w too small; -ENOENT a root
 *       of @params is not a switch of @g; -ENETUNREACH tables are filled but
 *       an edge switch cannot reach every destination
 */
struct route_engine {
	const char *name;
	const char *summary;
	int (*run)(struct route_graph *g, const struct route_params *params,
		   const struct route_work *w);
	bool ranked; /* its tables obey the up/down rule, so they cannot deadlock */
};

extern const struct route_engine route_engines[];
extern const size_t route_n_engines;

/** route_engine_find() - by name ("minhop", "updn"), or NULL */
const struct route_engine *route_engine_find(const char *name);

/** struct route_port_mask - a set of ports 0..255: one MFT entry of a switch */
struct route_port_mask {
	uint64_t bits[4];
};

static inline void route_mask_set(struct route_port_mask *m, uint8_t port)
{
	m->bits[port / 64] |= 1ull << (port % 64);
}

static inline bool route_mask_test(const struct route_port_mask *m, uint8_t port)
{
	return m->bits[port / 64] >> (port % 64) & 1;
}

/**
 * struct route_member - an end port of a multicast group
 * @sends_only: nothing is routed to the port, but its switch is in the tree
 */
struct route_member {
	uint32_t sw;
	uint8_t port;
	bool sends_only;
};

/**
 * route_multicast() - a spanning tree over the switches of a group's members
 * @masks: one per switch; cleared, then filled
 * @seed:  varies the selection among equal links, so that groups use different
 *         ones, for example the MLID
 * Return: 0; -ENOMEM @w too small; -ENETUNREACH members are not connected
 */
int route_multicast(const struct route_graph *g, const struct route_member *members,
		    uint32_t n_members, uint32_t seed, struct route_port_mask *masks,
		    const struct route_work *w);

/**
 * struct route_report - properties of a set of tables
 * @unreachable: pairs (edge switch, LID) without a path
 * @loops:       pairs whose path never ends
 * @detours:     pairs whose path is longer than the shortest
 * @turns:       down-up turns, by the ranks in the graph (ranked engines)
 * @deadlock:    the channel dependency graph has a cycle
 * @max_hops:    longest path, in links between switches
 * @max_load, @min_load: LIDs that use the most and least used link
 */
struct route_report {
	uint64_t pairs, unreachable, loops, detours, turns;
	bool deadlock;
	uint16_t max_hops;
	uint32_t max_load, min_load;
};

/**
 * route_check() - follow the tables from every edge switch to every LID
 * Return: 0 and *@r; -ENOMEM @w too small
 * Spec: deadlock freedom after Dally and Seitz (1987): no cycle of channels
 */
int route_check(const struct route_graph *g, const struct route_work *w,
		struct route_report *r);

#endif
