/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the routing engines: scratch memory, search, selection of ports. */
#ifndef SOFTIB_ROUTING_GRAPH_H
#define SOFTIB_ROUTING_GRAPH_H

#include "routing/routing.h"

/** struct route_arena - allocates from a struct route_work */
struct route_arena {
	char *next;
	size_t left;
};

static inline struct route_arena route_arena(const struct route_work *w)
{
	return (struct route_arena){w->mem, w->size};
}

/** route_arena_get() - allocate @n zeroed objects of @size; NULL if the memory is used up */
void *route_arena_get(struct route_arena *a, size_t n, size_t size);

/**
 * route_distances() - hops from every switch to switch @to
 * @dist:  one per switch, ROUTE_UNREACHED if there is no path
 * @queue: one per switch, scratch; on return it holds the order of discovery
 * Return: number of switches reached
 */
uint32_t route_distances(const struct route_graph *g, uint32_t to, uint16_t *dist,
			 uint32_t *queue);

/** struct route_choice - candidate links of one switch, sorted by port */
struct route_choice {
	uint32_t links[256];
	uint32_t n;
};

/** route_least_loaded() - the one of @links (@n > 0) that carries the fewest LIDs */
uint32_t route_least_loaded(const uint32_t *links, uint32_t n, const uint32_t *load);

/** route_dests_end() - the end index of the consecutive destinations at the switch of
 *  destination @first */
uint32_t route_dests_end(const struct route_graph *g, uint32_t first);

/** route_clear_tables() - set every entry to ROUTE_NO_PORT */
void route_clear_tables(struct route_graph *g);

/**
 * route_assign() - distribute the LIDs of destinations [@first, @end) over the
 * candidate links of switch @sw. Each gets the least loaded link, so the 2^LMC
 * LIDs of one port use different links if there are several.
 * @load: LIDs per link of the graph so far
 */
void route_assign(struct route_graph *g, uint32_t sw, uint32_t first, uint32_t end,
		  const struct route_choice *choice, uint32_t *load);

/** route_assign_local() - at their own switch, route LIDs to their own port */
void route_assign_local(struct route_graph *g, uint32_t first, uint32_t end);

static inline uint32_t route_n_lids(const struct route_dest *d)
{
	return 1u << d->lmc;
}

int route_minhop(struct route_graph *g, const struct route_params *params,
		 const struct route_work *w);
int route_updn(struct route_graph *g, const struct route_params *params,
	       const struct route_work *w);

/** route_goes_up() - does @l lead towards the roots? The order (rank, then index) is
 *  strict, so no cycle of links can consist of links that go up. */
static inline bool route_goes_up(const struct route_graph *g, const struct route_link *l)
{
	uint16_t a = g->switches[l->from].rank, b = g->switches[l->to].rank;

	return a != b ? b < a : l->to < l->from;
}

#endif
