/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The graph on which routing engines work: it is sorted once and then searched
 * breadth first. The counting sort by switch is linear and stable, so the same
 * subnet always gives the same tables.
 */
#include "routing/graph.h"

#include <errno.h>
#include <string.h>

#define LID_UCAST_MAX 0xbfff /* IBA v1 4.1.3 */
#define MAX_LINKS_PER_SWITCH 255

void *route_arena_get(struct route_arena *a, size_t n, size_t size)
{
	size_t bytes = ALIGN_UP(n * size, (size_t)16);
	void *p = a->next;

	if (bytes > a->left)
		return NULL;
	a->next += bytes;
	a->left -= bytes;
	memset(p, 0, bytes);
	return p;
}

size_t route_work_bytes(const struct route_graph *g)
{
	size_t per_switch = sizeof(uint16_t) * 4 + sizeof(uint32_t) * 6 +
			    sizeof(struct route_port_mask);
	size_t per_link = sizeof(struct route_link) + sizeof(uint32_t) * 4 +
			  sizeof(struct route_port_mask);

	return (g->n_switches + 1) * per_switch + g->n_links * per_link +
	       g->n_dests * sizeof(struct route_dest) + (g->lid_max + 1u) +
	       MAX_LINKS_PER_SWITCH * sizeof(uint32_t) + 32 * 16;
}

/* Convert counts to start indices: the count of switch i is at @next[i + 1]. */
static void counts_to_starts(uint32_t *next, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		next[i + 1] += next[i];
}

static int sort_links(struct route_graph *g, const struct route_work *w)
{
	struct route_arena a = route_arena(w);
	struct route_link *out = route_arena_get(&a, g->n_links, sizeof(*out));
	uint32_t *next = route_arena_get(&a, g->n_switches + 1, sizeof(*next));
	uint32_t by_port[257] = {0};

	if (!out || !next)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_links; i++) {
		by_port[g->links[i].port + 1]++;
		next[g->links[i].from + 1]++;
	}
	for (uint32_t s = 0; s < g->n_switches; s++)
		g->switches[s].n_links = next[s + 1];
	counts_to_starts(by_port, 256);
	counts_to_starts(next, g->n_switches);
	for (uint32_t s = 0; s < g->n_switches; s++)
		g->switches[s].first_link = next[s];
	for (uint32_t i = 0; i < g->n_links; i++)
		out[by_port[g->links[i].port]++] = g->links[i];
	for (uint32_t i = 0; i < g->n_links; i++)
		g->links[next[out[i].from]++] = out[i];
	return 0;
}

/* One pass of a radix sort, by the byte of the LID at @shift. */
static void sort_by_lid_byte(const struct route_dest *in, struct route_dest *out,
			     uint32_t n, int shift)
{
	uint32_t next[257] = {0};

	for (uint32_t i = 0; i < n; i++)
		next[(in[i].lid >> shift & 0xff) + 1]++;
	counts_to_starts(next, 256);
	for (uint32_t i = 0; i < n; i++)
		out[next[in[i].lid >> shift & 0xff]++] = in[i];
}

static int sort_dests(struct route_graph *g, const struct route_work *w)
{
	struct route_arena a = route_arena(w);
	struct route_dest *tmp = route_arena_get(&a, g->n_dests, sizeof(*tmp));
	uint32_t *next = route_arena_get(&a, g->n_switches + 1, sizeof(*next));

	if (!tmp || !next)
		return -ENOMEM;
	sort_by_lid_byte(g->dests, tmp, g->n_dests, 0);
	sort_by_lid_byte(tmp, g->dests, g->n_dests, 8);
	memcpy(tmp, g->dests, g->n_dests * sizeof(*tmp));
	for (uint32_t i = 0; i < g->n_dests; i++)
		next[tmp[i].sw + 1]++;
	counts_to_starts(next, g->n_switches);
	for (uint32_t i = 0; i < g->n_dests; i++)
		g->dests[next[tmp[i].sw]++] = tmp[i];
	return 0;
}

static int check_dests(struct route_graph *g, const struct route_work *w)
{
	struct route_arena a = route_arena(w);
	uint8_t *used = route_arena_get(&a, g->lid_max + 1u, 1);

	if (!used)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n_dests; i++) {
		const struct route_dest *d = &g->dests[i];
		uint32_t last = d->lid + route_n_lids(d) - 1;

		if (d->sw >= g->n_switches || !d->lid || d->lmc > 7 ||
		    last > g->lid_max || last > LID_UCAST_MAX)
			return -EINVAL;
		for (uint32_t lid = d->lid; lid <= last; lid++)
			if (used[lid]++)
				return -EINVAL;
	}
	return 0;
}

/* Does a link have its reverse link? Otherwise a search along incoming links would
 * find distances for which there is no outgoing link. The links are sorted. */
static bool is_two_way(const struct route_graph *g, const struct route_link *l)
{
	const struct route_switch *to = &g->switches[l->to];
	uint32_t low = to->first_link, high = to->first_link + to->n_links;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (g->links[mid].port < l->peer_port)
			low = mid + 1;
		else
			high = mid;
	}
	return low < to->first_link + to->n_links && g->links[low].port == l->peer_port &&
	       g->links[low].to == l->from && g->links[low].peer_port == l->port;
}

int route_graph_index(struct route_graph *g, const struct route_work *w)
{
	int err;

	for (uint32_t i = 0; i < g->n_links; i++)
		if (g->links[i].from >= g->n_switches ||
		    g->links[i].to >= g->n_switches)
			return -EINVAL;
	err = check_dests(g, w);
	if (!err)
		err = sort_links(g, w);
	if (!err)
		err = sort_dests(g, w);
	if (err)
		return err;
	for (uint32_t i = 0; i < g->n_links; i++)
		if (!is_two_way(g, &g->links[i]))
			return -EINVAL;
	for (uint32_t s = 0; s < g->n_switches; s++)
		g->switches[s].edge = false;
	for (uint32_t i = 0; i < g->n_dests; i++)
		if (g->dests[i].port)
			g->switches[g->dests[i].sw].edge = true;
	return 0;
}

uint32_t route_distances(const struct route_graph *g, uint32_t to, uint16_t *dist,
			 uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	memset(dist, 0xff, g->n_switches * sizeof(*dist));
	dist[to] = 0;
	queue[tail++] = to;
	while (head < tail) {
		const struct route_switch *s = &g->switches[queue[head]];
		const struct route_link *l = &g->links[s->first_link];
		uint16_t d = dist[queue[head++]] + 1;

		/* cables are bidirectional, so the outgoing links of @s stand for the incoming ones */
		for (uint32_t i = 0; i < s->n_links; i++, l++) {
			if (dist[l->to] != ROUTE_UNREACHED)
				continue;
			dist[l->to] = d;
			queue[tail++] = l->to;
		}
	}
	return tail;
}

uint32_t route_least_loaded(const uint32_t *links, uint32_t n, const uint32_t *load)
{
	uint32_t best = links[0];

	for (uint32_t i = 1; i < n; i++)
		if (load[links[i]] < load[best])
			best = links[i];
	return best;
}

uint32_t route_dests_end(const struct route_graph *g, uint32_t first)
{
	uint32_t i = first;

	while (i < g->n_dests && g->dests[i].sw == g->dests[first].sw)
		i++;
	return i;
}

void route_clear_tables(struct route_graph *g)
{
	for (uint32_t s = 0; s < g->n_switches; s++)
		memset(g->switches[s].lft, ROUTE_NO_PORT, g->lid_max + 1u);
}

void route_assign(struct route_graph *g, uint32_t sw, uint32_t first, uint32_t end,
		  const struct route_choice *choice, uint32_t *load)
{
	for (uint32_t i = first; i < end; i++) {
		const struct route_dest *d = &g->dests[i];

		for (uint32_t k = 0; k < route_n_lids(d); k++) {
			uint32_t l = route_least_loaded(choice->links, choice->n, load);

			g->switches[sw].lft[d->lid + k] = g->links[l].port;
			/* LIDs of switches, which carry only management traffic, do not count as load */
			load[l] += d->port != 0;
		}
	}
}

void route_assign_local(struct route_graph *g, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		const struct route_dest *d = &g->dests[i];

		memset(g->switches[d->sw].lft + d->lid, d->port, route_n_lids(d));
	}
}
