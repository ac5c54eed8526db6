/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Topologies for the tests of routing, built in plain arrays. */
#ifndef SOFTIB_TESTS_ROUTING_TOPO_H
#define SOFTIB_TESTS_ROUTING_TOPO_H

#include <assert.h>
#include <stdlib.h>

#include "routing/routing.h"

/** struct topo - a graph that grows, with its tables and scratch memory */
struct topo {
	struct route_graph g;
	struct route_work work;
	uint8_t next_port[4096];
	uint16_t next_lid;
};

static inline struct topo *topo_new(uint32_t n_switches)
{
	struct topo *t = calloc(1, sizeof(*t));

	assert(t && n_switches <= 4096);
	t->g.n_switches = n_switches;
	t->g.switches = calloc(n_switches, sizeof(*t->g.switches));
	t->g.links = calloc(n_switches * 256u, sizeof(*t->g.links));
	t->g.dests = calloc(65536, sizeof(*t->g.dests));
	for (uint32_t s = 0; s < n_switches; s++) {
		t->g.switches[s].guid = 0x1000 + s;
		t->next_port[s] = 1;
	}
	t->next_lid = 1;
	return t;
}

static inline void topo_cable(struct topo *t, uint32_t a, uint32_t b)
{
	uint8_t pa = t->next_port[a]++, pb = t->next_port[b]++;

	t->g.links[t->g.n_links++] = (struct route_link){a, b, pa, pb};
	t->g.links[t->g.n_links++] = (struct route_link){b, a, pb, pa};
}

static inline void topo_dest(struct topo *t, uint32_t sw, uint8_t port, uint8_t lmc)
{
	uint16_t lid = ALIGN_UP(t->next_lid, 1 << lmc);

	t->g.dests[t->g.n_dests++] = (struct route_dest){lid, lmc, port, sw};
	t->next_lid = lid + (1 << lmc);
}

/* An adapter on each of @n further ports of switch @sw. */
static inline void topo_hosts(struct topo *t, uint32_t sw, int n, uint8_t lmc)
{
	while (n--)
		topo_dest(t, sw, t->next_port[sw]++, lmc);
}

/* Port 0 of every switch, tables and scratch; then the graph is complete. */
static inline int topo_finish(struct topo *t)
{
	for (uint32_t s = 0; s < t->g.n_switches; s++)
		topo_dest(t, s, 0, 0);
	t->g.lid_max = t->next_lid - 1;
	for (uint32_t s = 0; s < t->g.n_switches; s++)
		t->g.switches[s].lft = malloc(t->g.lid_max + 1u);
	t->work.size = route_work_bytes(&t->g);
	t->work.mem = malloc(t->work.size);
	return route_graph_index(&t->g, &t->work);
}

static inline void topo_free(struct topo *t)
{
	for (uint32_t s = 0; s < t->g.n_switches; s++)
		free(t->g.switches[s].lft);
	free(t->g.switches);
	free(t->g.links);
	free(t->g.dests);
	free(t->work.mem);
	free(t);
}

/* Two levels: @leaves leaf switches with @hosts each, @spines above. */
static inline struct topo *topo_fat_tree(int leaves, int spines, int hosts, uint8_t lmc)
{
	struct topo *t = topo_new(leaves + spines);

	for (int l = 0; l < leaves; l++) {
		topo_hosts(t, l, hosts, lmc);
		for (int s = 0; s < spines; s++)
			topo_cable(t, l, leaves + s);
	}
	return t;
}

static inline struct topo *topo_ring(int n, int hosts)
{
	struct topo *t = topo_new(n);

	for (int i = 0; i < n; i++) {
		topo_hosts(t, i, hosts, 0);
		topo_cable(t, i, (i + 1) % n);
	}
	return t;
}

/* @x by @y by @z switches, each axis a ring; one host each. */
static inline struct topo *topo_torus(int x, int y, int z)
{
	struct topo *t = topo_new(x * y * z);

	for (int i = 0; i < x * y * z; i++) {
		int cx = i % x, cy = i / x % y, cz = i / x / y;

		topo_hosts(t, i, 1, 0);
		topo_cable(t, i, (cx + 1) % x + x * (cy + y * cz));
		topo_cable(t, i, cx + x * ((cy + 1) % y + y * cz));
		topo_cable(t, i, cx + x * (cy + y * ((cz + 1) % z)));
	}
	return t;
}

/* A connected random graph: a random tree and as many cables again. */
static inline struct topo *topo_random(unsigned int seed, int n)
{
	struct topo *t = topo_new(n);
	uint64_t r = seed * 2654435761u + 1;

	for (int i = 1; i < 2 * n; i++) {
		uint32_t a = i < n ? i : (r >> 33) % n, b;

		r = r * 6364136223846793005u + 1442695040888963407u;
		b = (r >> 33) % (i < n ? i : n);
		if (a != b && t->next_port[a] < 60 && t->next_port[b] < 60)
			topo_cable(t, a, b);
	}
	for (int i = 0; i < n; i++)
		topo_hosts(t, i, i % 3, i % 2);
	return t;
}

#endif
