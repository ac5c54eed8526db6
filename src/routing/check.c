/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Checks forwarding tables, without knowledge of how they were computed. It
 * follows them from every edge switch to every LID as packets would, and records
 * which link depends on which: a cycle of dependencies is a possible deadlock.
 */
#include "routing/graph.h"

#include <errno.h>
#include <string.h>

#define NO_LINK UINT32_MAX

struct check {
	const struct route_graph *g;
	struct route_report *r;
	uint16_t *dist;
	uint32_t *queue;
	uint32_t *load;	  /* per link: LIDs that use it */
	uint32_t *last;	  /* per link: the last LID counted */
	uint32_t *waited; /* per link: how many other links depend on it */
	struct route_port_mask *waits; /* per link: egress ports of its far end
					that packets on it take */
};

/* The link at port @port of @sw. The links of a switch are sorted by port. */
static uint32_t find_link(const struct route_graph *g, uint32_t sw, uint8_t port)
{
	uint32_t lo = g->switches[sw].first_link, hi = lo + g->switches[sw].n_links;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (g->links[mid].port == port)
			return mid;
		if (g->links[mid].port < port)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NO_LINK;
}

static void note_hop(struct check *c, uint32_t prev, uint32_t l, uint16_t lid)
{
	const struct route_graph *g = c->g;

	if (c->last[l] != lid) {
		c->last[l] = lid;
		c->load[l]++;
	}
	if (prev == NO_LINK)
		return;
	route_mask_set(&c->waits[prev], g->links[l].port);
	if (!route_goes_up(g, &g->links[prev]) && route_goes_up(g, &g->links[l]))
		c->r->turns++;
}

/* Follow @lid from @from; c->dist has the lengths of the shortest paths. */
static void walk(struct check *c, uint32_t from, const struct route_dest *d, uint16_t lid)
{
	const struct route_graph *g = c->g;
	uint32_t sw = from, prev = NO_LINK, hops = 0;

	c->r->pairs++;
	for (;;) {
		uint8_t port = g->switches[sw].lft[lid];
		uint32_t l;

		if (sw == d->sw && port == d->port)
			break;
		l = port == ROUTE_NO_PORT ? NO_LINK : find_link(g, sw, port);
		if (l == NO_LINK) {
			c->r->unreachable++;
			return;
		}
		if (++hops > g->n_switches) {
			c->r->loops++;
			return;
		}
		note_hop(c, prev, l, lid);
		prev = l;
		sw = g->links[l].to;
	}
	c->r->max_hops = MAX(c->r->max_hops, hops);
	if (hops > c->dist[from])
		c->r->detours++;
}

/* Remove links without dependencies repeatedly; links that remain contain a cycle. */
static bool has_cycle(struct check *c)
{
	const struct route_graph *g = c->g;
	uint32_t head = 0, tail = 0;

	for (uint32_t l = 0; l < g->n_links; l++) {
		const struct route_switch *s = &g->switches[g->links[l].to];

		for (uint32_t n = s->first_link; n < s->first_link + s->n_links; n++)
			if (route_mask_test(&c->waits[l], g->links[n].port))
				c->waited[n]++;
	}
	for (uint32_t l = 0; l < g->n_links; l++)
		if (!c->waited[l])
			c->queue[tail++] = l;
	while (head < tail) {
		uint32_t l = c->queue[head++];
		const struct route_switch *s = &g->switches[g->links[l].to];

		for (uint32_t n = s->first_link; n < s->first_link + s->n_links; n++)
			if (route_mask_test(&c->waits[l], g->links[n].port) &&
			    !--c->waited[n])
				c->queue[tail++] = n;
	}
	return tail < g->n_links;
}

static void check_loads(struct check *c)
{
	c->r->min_load = c->g->n_links ? UINT32_MAX : 0;
	for (uint32_t l = 0; l < c->g->n_links; l++) {
		c->r->max_load = MAX(c->r->max_load, c->load[l]);
		c->r->min_load = MIN(c->r->min_load, c->load[l]);
	}
}

static void walk_all(struct check *c)
{
	const struct route_graph *g = c->g;

	for (uint32_t i = 0; i < g->n_dests; i++) {
		const struct route_dest *d = &g->dests[i];

		if (!i || d->sw != g->dests[i - 1].sw)
			route_distances(g, d->sw, c->dist, c->queue);
		for (uint32_t k = 0; k < route_n_lids(d); k++)
			for (uint32_t s = 0; s < g->n_switches; s++)
				if (g->switches[s].edge)
					walk(c, s, d, d->lid + k);
	}
}

int route_check(const struct route_graph *g, const struct route_work *w,
		struct route_report *r)
{
	struct route_arena a = route_arena(w);
	uint32_t n_queue = MAX(g->n_switches, g->n_links);
	struct check c = {
		.g = g,
		.r = r,
		.dist = route_arena_get(&a, g->n_switches, sizeof(*c.dist)),
		.queue = route_arena_get(&a, n_queue, sizeof(*c.queue)),
		.load = route_arena_get(&a, g->n_links, sizeof(*c.load)),
		.last = route_arena_get(&a, g->n_links, sizeof(*c.last)),
		.waited = route_arena_get(&a, g->n_links, sizeof(*c.waited)),
		.waits = route_arena_get(&a, g->n_links, sizeof(*c.waits)),
	};

	if (!c.dist || !c.queue || !c.load || !c.last || !c.waited || !c.waits)
		return -ENOMEM;
	memset(r, 0, sizeof(*r));
	walk_all(&c);
	r->deadlock = has_cycle(&c);
	check_loads(&c);
	return 0;
}
