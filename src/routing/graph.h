/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the routing engines share: scratch memory, search, port choice. */
#ifndef SOFTIB_ROUTING_GRAPH_H
#define SOFTIB_ROUTING_GRAPH_H

#include "routing/routing.h"

/** struct route_arena - carves pieces from a struct route_work */
struct route_arena {
	char *next;
	size_t left;
};

static inline struct route_arena route_arena(const struct route_work *w)
{
	return (struct route_arena){w->mem, w->size};
}

/** route_arena_get() - @n objects of @size, zeroed; NULL when it is used up */
void *route_arena_get(struct route_arena *a, size_t n, size_t size);

/**
 * route_distances() - hops from every switch to switch @to
 * @dist:  one per switch, ROUTE_UNREACHED where there is no way
 * @queue: one per switch, scratch; holds the order of discovery after
 * Return: number of switches reached
 */
uint32_t route_distances(const struct route_graph *g, uint32_t to, uint16_t *dist,
			 uint32_t *queue);

/** struct route_choice - candidate links of one switch, in order of ports */
struct route_choice {
	uint32_t links[256];
	uint32_t n;
};

/** route_least_loaded() - which of @links (@n > 0) carries the fewest LIDs */
uint32_t route_least_loaded(const uint32_t *links, uint32_t n, const uint32_t *load);

/** route_dests_end() - index behind the run of destinations that share a
 *  switch with destination @first */
uint32_t route_dests_end(const struct route_graph *g, uint32_t first);

/** route_clear_tables() - no LID leads anywhere */
void route_clear_tables(struct route_graph *g);

/**
 * route_assign() - spread the LIDs of destinations [@first, @end) over the
 * candidate links of switch @sw: each to the one least loaded so far, so the
 * 2^LMC LIDs of one port take different links where there are several
 * @load: LIDs per link of the graph so far
 */
void route_assign(struct route_graph *g, uint32_t sw, uint32_t first, uint32_t end,
		  const struct route_choice *choice, uint32_t *load);

/** route_assign_local() - at their own switch, LIDs leave by their own port */
void route_assign_local(struct route_graph *g, uint32_t first, uint32_t end);

static inline uint32_t route_n_lids(const struct route_dest *d)
{
	return 1u << d->lmc;
}

int route_minhop(struct route_graph *g, const struct route_params *params,
		 const struct route_work *w);
int route_updn(struct route_graph *g, const struct route_params *params,
	       const struct route_work *w);

/** route_goes_up() - does @l lead towards the roots? A strict order (rank,
 *  then index), so that no cycle of links can go up all the way. */
static inline bool route_goes_up(const struct route_graph *g, const struct route_link *l)
{
	uint16_t a = g->switches[l->from].rank, b = g->switches[l->to].rank;

	return a != b ? b < a : l->to < l->from;
}

#endif
