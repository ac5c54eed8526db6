/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Up/down: switches are ranked by their distance from a set of roots; every
 * link goes up (towards the roots) or down, in a strict order. A path goes up,
 * then down, and never up again, so there is no cycle of channel
  * dependencies and no deadlock on any topology, with a single VL.
  *
  * The lookup in an LFT depends on the destination and not on the ingress port. So
  * a switch that can reach a destination by going down only always does so, and
  * only the others go up; each hop then obeys the rule whatever the previous hops were.
 *
 * Rule: Schroeder et al., "Autonet" (1991), 6.6.4.
 */
#include "routing/graph.h"

#include <errno.h>
#include <string.h>

#define MAX_HEIGHT 16 /* of a tree whose top switches are searched */
#define NO_APEX UINT32_MAX

/* The state of one run; arrays have one entry per switch, load one per link. */
struct updn {
	struct route_graph *g;
	uint16_t *down;	 /* hops to the destination by going down only */
	uint16_t *best;	 /* hops by going up, then down */
	uint16_t *dist;
	uint32_t *queue;
	uint32_t *order; /* switches from the roots down */
	uint32_t *roots;
	uint32_t n_roots;
	uint32_t apex;	   /* a switch that is ranked above the roots, or NO_APEX */
	uint32_t *hosts;   /* end ports of adapters, per switch */
	uint32_t *load;
	bool connect_roots;
};

static int find_named_roots(struct updn *u, const struct route_params *p)
{
	if (p->n_roots > u->g->n_switches)
		return -ENOENT;
	for (uint32_t i = 0; i < p->n_roots; i++) {
		uint32_t s = 0;

		while (s < u->g->n_switches && u->g->switches[s].guid != p->roots[i])
			s++;
		if (s == u->g->n_switches)
			return -ENOENT;
		u->roots[u->n_roots++] = s;
	}
	return 0;
}

/* The distance of a switch from the adapters. */
struct centrality {
	uint16_t farthest;
	uint16_t usual; /* hops to nine of ten adapters, or ROUTE_UNREACHED */
	uint64_t sum;
};

static struct centrality measure(struct updn *u, uint32_t sw)
{
	struct centrality c = {.usual = ROUTE_UNREACHED};
	uint64_t total = 0, at[MAX_HEIGHT] = {0};

	route_distances(u->g, sw, u->dist, u->queue);
	for (uint32_t s = 0; s < u->g->n_switches; s++) {
		if (!u->hosts[s])
			continue;
		c.farthest = MAX(c.farthest, u->dist[s]);
		c.sum += (uint64_t)u->dist[s] * u->hosts[s];
		total += u->hosts[s];
		if (u->dist[s] < MAX_HEIGHT)
			at[u->dist[s]] += u->hosts[s];
	}
	for (uint16_t hops = 0; hops < MAX_HEIGHT; hops++)
		if (at[hops] * 10 >= total * 9)
			c.usual = MIN(c.usual, hops);
	return c;
}

/*
 * The top switches of a tree have the same distance from all leaves (except for a
 * few adapters that may be connected to top switches), and a smaller one than
 * other switches. If no switch has this property (a torus, a random graph), or
 * with @single, the switch that is nearest to all is the root.
 */
static void guess_roots(struct updn *u, bool single)
{
	struct centrality best = {.farthest = UINT16_MAX, .sum = UINT64_MAX};
	uint32_t center = 0;
	uint16_t height = ROUTE_UNREACHED;

	u->n_roots = 0;
	for (uint32_t s = 0; s < u->g->n_switches; s++) {
		struct centrality c = measure(u, s);

		if (c.farthest < best.farthest ||
		    (c.farthest == best.farthest && c.sum < best.sum)) {
			best = c;
			center = s;
		}
		if (c.usual == ROUTE_UNREACHED || c.usual > height)
			continue;
		if (c.usual < height)
			u->n_roots = 0;
		height = c.usual;
		u->roots[u->n_roots++] = s;
	}
	if (single || !u->n_roots) {
		u->roots[0] = center;
		u->n_roots = 1;
	}
}

/*
 * Adapters at two roots have no allowed path, because it would go down and up
 * again. If a single switch below is ranked above all roots, this path goes up and
 * down, and every other path is unchanged. The switch with most roots as
 * neighbours is chosen.
 */
static uint32_t choose_apex(struct updn *u)
{
	const struct route_graph *g = u->g;
	uint32_t apex = NO_APEX, most = 0;

	for (uint32_t s = 0; s < g->n_switches; s++) {
		const struct route_switch *sw = &g->switches[s];
		uint32_t n = 0;

		for (uint32_t l = sw->first_link; l < sw->first_link + sw->n_links; l++)
			n += g->switches[g->links[l].to].rank == 0;
		if (sw->rank && n > most) {
			most = n;
			apex = s;
		}
	}
	return apex;
}

/* Rank every switch by its distance from the roots. Return: the lowest rank. */
static uint16_t rank_switches(struct updn *u)
{
	struct route_graph *g = u->g;
	uint32_t head = 0, tail = 0;
	uint16_t lowest = 0;

	for (uint32_t s = 0; s < g->n_switches; s++)
		g->switches[s].rank = ROUTE_UNREACHED;
	for (uint32_t i = 0; i < u->n_roots; i++) {
		if (g->switches[u->roots[i]].rank == 0)
			continue;
		g->switches[u->roots[i]].rank = 0;
		u->queue[tail++] = u->roots[i];
	}
	while (head < tail) {
		const struct route_switch *s = &g->switches[u->queue[head++]];
		const struct route_link *l = &g->links[s->first_link];

		lowest = s->rank;
		for (uint32_t i = 0; i < s->n_links; i++, l++) {
			if (g->switches[l->to].rank != ROUTE_UNREACHED)
				continue;
			g->switches[l->to].rank = s->rank + 1;
			u->queue[tail++] = l->to;
		}
	}
	if (u->apex == NO_APEX)
		return lowest;
	for (uint32_t s = 0; s < g->n_switches; s++)
		g->switches[s].rank += g->switches[s].rank != ROUTE_UNREACHED;
	g->switches[u->apex].rank = 0;
	return lowest + 1;
}

/* Order by rank, then index: the strict order of route_goes_up(). */
static void order_switches(struct updn *u, uint16_t max_rank)
{
	uint32_t n = 0;

	for (uint32_t rank = 0; rank <= max_rank; rank++)
		for (uint32_t s = 0; s < u->g->n_switches; s++)
			if (u->g->switches[s].rank == rank)
				u->order[n++] = s;
	for (uint32_t s = 0; s < u->g->n_switches; s++)
		if (u->g->switches[s].rank == ROUTE_UNREACHED)
			u->order[n++] = s;
}

/* Search upwards from the destination: switches that are found reach it by going down. */
static void search_down(struct updn *u, uint32_t to)
{
	const struct route_graph *g = u->g;
	uint32_t head = 0, tail = 0;

	memset(u->down, 0xff, g->n_switches * sizeof(*u->down));
	u->down[to] = 0;
	u->queue[tail++] = to;
	while (head < tail) {
		uint32_t sw = u->queue[head++];
		const struct route_switch *s = &g->switches[sw];
		const struct route_link *l = &g->links[s->first_link];

		for (uint32_t i = 0; i < s->n_links; i++, l++) {
			if (u->down[l->to] != ROUTE_UNREACHED || !route_goes_up(g, l))
				continue;
			u->down[l->to] = u->down[sw] + 1;
			u->queue[tail++] = l->to;
		}
	}
}

/* Switches above are complete before those below, so one pass in order suffices. */
static void search_up(struct updn *u)
{
	const struct route_graph *g = u->g;

	for (uint32_t k = 0; k < g->n_switches; k++) {
		uint32_t sw = u->order[k];
		const struct route_switch *s = &g->switches[sw];
		const struct route_link *l = &g->links[s->first_link];

		u->best[sw] = u->down[sw];
		if (u->down[sw] != ROUTE_UNREACHED)
			continue;
		for (uint32_t i = 0; i < s->n_links; i++, l++)
			if (route_goes_up(g, l) && u->best[l->to] < u->best[sw])
				u->best[sw] = MIN(u->best[sw], u->best[l->to] + 1);
	}
}

static void find_lawful(const struct updn *u, uint32_t sw, struct route_choice *c)
{
	const struct route_graph *g = u->g;
	const struct route_switch *s = &g->switches[sw];
	bool goes_down = u->down[sw] != ROUTE_UNREACHED;

	c->n = 0;
	for (uint32_t i = s->first_link; i < s->first_link + s->n_links; i++) {
		const struct route_link *l = &g->links[i];

		if (route_goes_up(g, l) == goes_down)
			continue;
		if (goes_down ? u->down[l->to] + 1 == u->down[sw]
			      : u->best[l->to] + 1 == u->best[sw])
			c->links[c->n++] = i;
	}
}

/*
 * Two roots can reach each other only by a down-up turn. It is used only for
 * management of switches (their port 0), if the user requests it.
 */
static void connect_root(struct updn *u, uint32_t sw, uint32_t first, uint32_t end)
{
	const struct route_switch *s = &u->g->switches[sw];
	uint16_t nearest = ROUTE_UNREACHED;
	struct route_choice c = {.n = 0};

	for (uint32_t i = s->first_link; i < s->first_link + s->n_links; i++) {
		uint16_t hops = u->best[u->g->links[i].to];

		if (hops == ROUTE_UNREACHED || hops > nearest)
			continue;
		if (hops < nearest)
			c.n = 0;
		nearest = hops;
		c.links[c.n++] = i;
	}
	for (uint32_t i = first; c.n && i < end; i++)
		if (!u->g->dests[i].port)
			route_assign(u->g, sw, i, i + 1, &c, u->load);
}

static int route_to(struct updn *u, uint32_t first, uint32_t end)
{
	struct route_choice choice;
	int err = 0;

	search_down(u, u->g->dests[first].sw);
	search_up(u);
	route_assign_local(u->g, first, end);
	for (uint32_t s = 0; s < u->g->n_switches; s++) {
		if (u->best[s] == 0)
			continue;
		if (u->best[s] != ROUTE_UNREACHED) {
			find_lawful(u, s, &choice);
			route_assign(u->g, s, first, end, &choice, u->load);
		} else if (u->g->switches[s].edge) {
			err = -ENETUNREACH;
		} else if (u->connect_roots) {
			connect_root(u, s, first, end);
		}
	}
	return err;
}

static int route_all(struct updn *u)
{
	int err = 0;

	order_switches(u, rank_switches(u));
	memset(u->load, 0, u->g->n_links * sizeof(*u->load));
	route_clear_tables(u->g);
	for (uint32_t first = 0, end; first < u->g->n_dests; first = end) {
		end = route_dests_end(u->g, first);
		err = route_to(u, first, end) ?: err;
	}
	return err;
}

/* Several roots use more links, but may not reach all of each other's adapters. Then try an
 * apex above them; a single root always works. */
static int route_guessing(struct updn *u)
{
	int err;

	guess_roots(u, false);
	err = route_all(u);
	if (err == -ENETUNREACH && u->n_roots > 1) {
		u->apex = choose_apex(u);
		err = route_all(u);
	}
	if (err == -ENETUNREACH && u->n_roots > 1) {
		u->apex = NO_APEX;
		guess_roots(u, true);
		err = route_all(u);
	}
	return err;
}

int route_updn(struct route_graph *g, const struct route_params *params,
	       const struct route_work *w)
{
	struct route_arena a = route_arena(w);
	struct updn u = {
		.g = g,
		.connect_roots = params->connect_roots,
		.down = route_arena_get(&a, g->n_switches, sizeof(uint16_t)),
		.best = route_arena_get(&a, g->n_switches, sizeof(uint16_t)),
		.dist = route_arena_get(&a, g->n_switches, sizeof(uint16_t)),
		.queue = route_arena_get(&a, g->n_switches, sizeof(uint32_t)),
		.order = route_arena_get(&a, g->n_switches, sizeof(uint32_t)),
		.roots = route_arena_get(&a, g->n_switches, sizeof(uint32_t)),
		.hosts = route_arena_get(&a, g->n_switches, sizeof(uint32_t)),
		.apex = NO_APEX,
		.load = route_arena_get(&a, g->n_links, sizeof(uint32_t)),
	};
	int err;

	if (!u.down || !u.best || !u.dist || !u.queue || !u.order || !u.roots || !u.hosts ||
	    !u.load)
		return -ENOMEM;
	if (params->n_roots) {
		err = find_named_roots(&u, params);
		return err ?: route_all(&u);
	}
	for (uint32_t i = 0; i < g->n_dests; i++)
		u.hosts[g->dests[i].sw] += g->dests[i].port != 0;
	return route_guessing(&u);
}
