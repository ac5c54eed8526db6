/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Min-hop: every switch routes a LID over a link on a shortest path, and among
 * those over the one that carries the fewest LIDs so far. The result has no loops,
 * since each hop reduces the distance. It may deadlock if the topology has rings;
 * use up/down there.
 */
#include "routing/graph.h"

#include <errno.h>

static void find_shortest(const struct route_graph *g, uint32_t sw, const uint16_t *dist,
			  struct route_choice *c)
{
	const struct route_switch *s = &g->switches[sw];

	c->n = 0;
	for (uint32_t l = s->first_link; l < s->first_link + s->n_links; l++)
		if (dist[g->links[l].to] + 1 == dist[sw])
			c->links[c->n++] = l;
}

int route_minhop(struct route_graph *g, const struct route_params *params,
		 const struct route_work *w)
{
	struct route_arena a = route_arena(w);
	uint16_t *dist = route_arena_get(&a, g->n_switches, sizeof(*dist));
	uint32_t *queue = route_arena_get(&a, g->n_switches, sizeof(*queue));
	uint32_t *load = route_arena_get(&a, g->n_links, sizeof(*load));
	struct route_choice choice;
	int err = 0;

	if (!dist || !queue || !load)
		return -ENOMEM;
	route_clear_tables(g);
	for (uint32_t first = 0, end; first < g->n_dests; first = end) {
		end = route_dests_end(g, first);
		if (route_distances(g, g->dests[first].sw, dist, queue) < g->n_switches)
			err = -ENETUNREACH;
		route_assign_local(g, first, end);
		for (uint32_t s = 0; s < g->n_switches; s++) {
			if (dist[s] == 0 || dist[s] == ROUTE_UNREACHED)
				continue;
			find_shortest(g, s, dist, &choice);
			route_assign(g, s, first, end, &choice, load);
		}
	}
	return err;
}
