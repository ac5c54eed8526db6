/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Routing engines: a graph of switches in, linear and multicast forwarding
 * tables out. Pure: all memory is the caller's, tables included; nothing is
 * kept between calls, and the same graph always gives the same tables.
 *
 * Terms: a link is one direction of a cable between two switches. A
 * destination is an end port (adapter port, router port, or a switch's port 0)
 * with its 2^LMC LIDs. Traffic starts at switches that have end ports other
 * than a port 0: those are called edge switches here.
 */
#ifndef SOFTIB_ROUTING_ROUTING_H
#define SOFTIB_ROUTING_ROUTING_H

#include "base/types.h"

#define ROUTE_NO_PORT 255 /* an LFT entry that drops (IBA v1 18.2.4.3.3) */
#define ROUTE_UNREACHED UINT16_MAX

/** struct route_link - a cable between switches, seen from one of its ends */
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

/** struct route_dest - an end port: its LIDs leave switch @sw by @port;
 *  port 0 is the switch itself */
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

/** struct route_work - scratch memory, the caller's; see route_work_bytes() */
struct route_work {
	void *mem;
	size_t size;
};

/** route_work_bytes() - scratch that any function here needs for @g */
size_t route_work_bytes(const struct route_graph *g);

/**
 * route_graph_index() - put a graph in order; call once before anything else
 * Return: 0; -EINVAL a link or destination names a switch that is not there,
 * a link has no way back, or a LID that is 0, multicast, above lid_max, or used twice; -ENOMEM @w too
 * small
 */
int route_graph_index(struct route_graph *g, const struct route_work *w);

/**
 * struct route_params - what a user may choose
 * @roots:   GUIDs of the switches that up/down puts on top; none: it looks
 *           for them
 * @connect_roots: let up/down join pairs of switches (never of adapters) that
 *           the rule leaves without a path
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
	bool ranked; /* promises the up/down rule, hence no deadlock */
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

/** struct route_member - an end port of a multicast group */
struct route_member {
	uint32_t sw;
	uint8_t port;
};

/**
 * route_multicast() - a spanning tree over the switches of a group's members
 * @masks: one per switch; cleared, then filled
 * @seed:  rotates the choice among equal links, so that groups spread; the
 *         MLID serves well
 * Return: 0; -ENOMEM @w too small; -ENETUNREACH members are not connected
 */
int route_multicast(const struct route_graph *g, const struct route_member *members,
		    uint32_t n_members, uint32_t seed, struct route_port_mask *masks,
		    const struct route_work *w);

/**
 * struct route_report - what a set of tables is worth
 * @unreachable: pairs (edge switch, LID) without a path
 * @loops:       pairs whose path never ends
 * @detours:     pairs whose path is longer than the shortest
 * @turns:       down-up turns, by the ranks in the graph (ranked engines)
 * @deadlock:    the channel dependency graph has a cycle
 * @max_hops:    longest path, in links between switches
 * @max_load, @min_load: LIDs behind the most and least used link
 */
struct route_report {
	uint64_t pairs, unreachable, loops, detours, turns;
	bool deadlock;
	uint16_t max_hops;
	uint32_t max_load, min_load;
};

/**
 * route_check() - walk the tables from every edge switch to every LID
 * Return: 0 and *@r; -ENOMEM @w too small
 * Spec: deadlock freedom after Dally and Seitz (1987): no cycle of channels
 */
int route_check(const struct route_graph *g, const struct route_work *w,
		struct route_report *r);

#endif
