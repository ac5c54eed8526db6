/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast: one tree per group over the switches of its members, so that each
 * member receives a packet once (IBA v1 18.2.4.3.3: a switch sends a multicast
 * packet out of every port of its entry except the ingress port).
 */
#include "routing/graph.h"

#include <errno.h>
#include <string.h>

#define MAX_CANDIDATES 64 /* roots that are tried; this number is cheap and finds a good root */
#define NO_LINK UINT32_MAX

struct tree {
	const struct route_graph *g;
	uint16_t *dist;
	uint32_t *queue;
	uint32_t *parent; /* per switch: the link that leads down to it */
};

static uint64_t sum_distances(const struct tree *t, const struct route_member *m, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += t->dist[m[i].sw];
	return sum;
}

/* The member's switch that is closest to all members; @seed breaks ties. */
static uint32_t choose_root(struct tree *t, const struct route_member *m, uint32_t n,
			    uint32_t seed)
{
	uint32_t step = DIV_ROUND_UP(n, MAX_CANDIDATES), root = m[seed % n].sw;
	uint64_t best = UINT64_MAX;

	for (uint32_t i = 0; i < n; i += step) {
		uint32_t sw = m[(i + seed) % n].sw;
		uint64_t sum;

		route_distances(t->g, sw, t->dist, t->queue);
		sum = sum_distances(t, m, n);
		if (sum < best) {
			best = sum;
			root = sw;
		}
	}
	return root;
}

/* Breadth-first search from @root; @seed selects the port at which a switch begins. */
static void grow(struct tree *t, uint32_t root, uint32_t seed)
{
	const struct route_graph *g = t->g;
	uint32_t head = 0, tail = 0;

	memset(t->dist, 0xff, g->n_switches * sizeof(*t->dist));
	t->dist[root] = 0;
	t->parent[root] = NO_LINK;
	t->queue[tail++] = root;
	while (head < tail) {
		uint32_t sw = t->queue[head++];
		const struct route_switch *s = &g->switches[sw];

		for (uint32_t i = 0; i < s->n_links; i++) {
			uint32_t l = s->first_link + (i + seed) % s->n_links;
			uint32_t to = g->links[l].to;

			if (t->dist[to] != ROUTE_UNREACHED)
				continue;
			t->dist[to] = t->dist[sw] + 1;
			t->parent[to] = l;
			t->queue[tail++] = to;
		}
	}
}

/* Mark the cables between @sw and the part of the tree that is marked. */
static void mark_branch(const struct tree *t, uint32_t sw, struct route_port_mask *masks)
{
	while (t->parent[sw] != NO_LINK) {
		const struct route_link *l = &t->g->links[t->parent[sw]];

		if (route_mask_test(&masks[sw], l->peer_port))
			return;
		route_mask_set(&masks[sw], l->peer_port);
		route_mask_set(&masks[l->from], l->port);
		sw = l->from;
	}
}

int route_multicast(const struct route_graph *g, const struct route_member *members,
		    uint32_t n_members, uint32_t seed, struct route_port_mask *masks,
		    const struct route_work *w)
{
	struct route_arena a = route_arena(w);
	struct tree t = {
		.g = g,
		.dist = route_arena_get(&a, g->n_switches, sizeof(*t.dist)),
		.queue = route_arena_get(&a, g->n_switches, sizeof(*t.queue)),
		.parent = route_arena_get(&a, g->n_switches, sizeof(*t.parent)),
	};
	int err = 0;

	if (!t.dist || !t.queue || !t.parent)
		return -ENOMEM;
	memset(masks, 0, g->n_switches * sizeof(*masks));
	if (!n_members)
		return 0;
	grow(&t, choose_root(&t, members, n_members, seed), seed);
	for (uint32_t i = 0; i < n_members; i++) {
		if (t.dist[members[i].sw] == ROUTE_UNREACHED) {
			err = -ENETUNREACH;
			continue;
		}
		mark_branch(&t, members[i].sw, masks);
		if (!members[i].sends_only)
			route_mask_set(&masks[members[i].sw], members[i].port);
	}
	return err;
}
