/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The model's memory and its lookups. */
#include "sm/subnet.h"

#include <string.h>

struct sm_subnet *sm_subnet_create(void)
{
	struct sm_subnet *s = rt_zalloc(sizeof(*s));

	if (!s)
		return NULL;
	s->by_lid = rt_zalloc((SM_LID_UCAST_MAX + 1) * sizeof(*s->by_lid));
	if (!s->by_lid) {
		rt_free(s);
		return NULL;
	}
	return s;
}

static void tables_free(struct sm_tables *t)
{
	rt_free(t->lft);
	rt_free(t->lft_set);
	rt_free(t->lft_known);
	rt_free(t->mft);
	rt_free(t->mft_set);
	memset(t, 0, sizeof(*t));
}

void sm_subnet_destroy(struct sm_subnet *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->n_nodes; i++) {
		struct sm_node *n = s->nodes[i];

		for (uint32_t p = 0; p <= n->n_ports; p++)
			if (n->ports[p].path != &n->path)
				rt_free(n->ports[p].path);
		tables_free(&n->tables);
		rt_free(n);
	}
	rt_free(s->nodes);
	rt_free(s->switches);
	sm_map_free(&s->node_by_guid);
	sm_map_free(&s->port_by_guid);
	rt_free(s->by_lid);
	rt_free(s);
}

/* Append to a growing array of nodes. */
static int push(struct sm_node ***array, uint32_t *n, uint32_t *room, struct sm_node *node)
{
	if (*n == *room) {
		uint32_t more = MAX(*room * 2, 64u);
		struct sm_node **grown = rt_zalloc(more * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		if (*n)
			memcpy(grown, *array, *n * sizeof(*grown));
		rt_free(*array);
		*array = grown;
		*room = more;
	}
	(*array)[(*n)++] = node;
	return 0;
}

struct sm_node *sm_subnet_add(struct sm_subnet *s, const struct wire_node_info *info,
			      const struct sm_path *path)
{
	struct sm_node *n = rt_zalloc(sizeof(*n) +
				      (info->nr_ports + 1u) * sizeof(n->ports[0]));

	if (!n)
		return NULL;
	n->info = *info;
	n->path = *path;
	n->n_ports = info->nr_ports;
	for (uint32_t p = 0; p <= n->n_ports; p++) {
		n->ports[p].node = n;
		n->ports[p].num = p;
		n->ports[p].path = &n->path;
	}
	n->index = s->n_nodes;
	n->sw_index = s->n_switches;
	if (push(&s->nodes, &s->n_nodes, &s->nodes_room, n)) {
		rt_free(n);
		return NULL;
	}
	/* from here on the node is freed with the subnet */
	if (sm_is_switch(n) && push(&s->switches, &s->n_switches, &s->switches_room, n))
		return NULL;
	return sm_map_put(&s->node_by_guid, info->node_guid, n) ? NULL : n;
}

int sm_port_know(struct sm_subnet *s, struct sm_port *p, const struct wire_port_info *info)
{
	p->info = *info;
	p->known = true;
	return p->guid ? sm_map_put(&s->port_by_guid, p->guid, p) : 0;
}

/* A zeroed copy of @old with more room. */
static void *grow(void *old, size_t old_bytes, size_t new_bytes, int fill)
{
	char *p = rt_zalloc(new_bytes);

	if (!p)
		return NULL;
	if (old_bytes)
		memcpy(p, old, old_bytes);
	memset(p + old_bytes, fill, new_bytes - old_bytes);
	rt_free(old);
	return p;
}

static int size_lft(struct sm_tables *t, uint32_t size)
{
	uint32_t old = t->lft_size;
	void *p;

	p = grow(t->lft, old, size, ROUTE_NO_PORT);
	if (!p)
		return -ENOMEM;
	t->lft = p;
	p = grow(t->lft_set, old, size, ROUTE_NO_PORT);
	if (!p)
		return -ENOMEM;
	t->lft_set = p;
	p = grow(t->lft_known, old / WIRE_LFT_PER_BLOCK, size / WIRE_LFT_PER_BLOCK, 0);
	if (!p)
		return -ENOMEM;
	t->lft_known = p;
	t->lft_size = size;
	return 0;
}

int sm_tables_size(struct sm_tables *t, uint32_t lid_max, uint32_t n_mlids)
{
	uint32_t lids = ALIGN_UP(lid_max + 1, WIRE_LFT_PER_BLOCK);
	uint32_t mlids = ALIGN_UP(n_mlids, WIRE_MFT_PER_BLOCK);
	int err = lids > t->lft_size ? size_lft(t, lids) : 0;
	void *p;

	if (err || mlids <= t->mft_size)
		return err;
	p = grow(t->mft, t->mft_size * sizeof(*t->mft), mlids * sizeof(*t->mft), 0);
	if (!p)
		return -ENOMEM;
	t->mft = p;
	p = grow(t->mft_set, t->mft_size * sizeof(*t->mft), mlids * sizeof(*t->mft), 0);
	if (!p)
		return -ENOMEM;
	t->mft_set = p;
	t->mft_size = mlids;
	t->mft_known = false; /* nobody knows what the new entries hold */
	return 0;
}

int sm_tables_inherit(struct sm_tables *to, const struct sm_tables *from)
{
	if (!from->lft_size || sm_tables_size(to, from->lft_size - 1, from->mft_size))
		return -ENOMEM;
	memcpy(to->lft, from->lft, from->lft_size);
	memcpy(to->lft_set, from->lft_set, from->lft_size);
	memcpy(to->lft_known, from->lft_known, from->lft_size / WIRE_LFT_PER_BLOCK);
	if (from->mft_size)
		memcpy(to->mft_set, from->mft_set, from->mft_size * sizeof(*to->mft_set));
	to->mft_known = from->mft_known;
	return 0;
}

/* IBA v1 14.2.5.6: lanes by LinkWidthActive, Mb/s of a lane by speed */
static uint32_t link_mbps(const struct wire_port_info *i)
{
	static const uint8_t lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
	static const uint32_t ext[] = {[1] = 14000, [2] = 25000, [4] = 50000, [8] = 100000};
	static const uint32_t base[] = {[1] = 2500, [2] = 5000, [4] = 10000};
	uint32_t n = 1, speed = 0;

	if (i->link_width_active < ARRAY_SIZE(lanes) && lanes[i->link_width_active])
		n = lanes[i->link_width_active];
	if (i->link_speed_ext_active < ARRAY_SIZE(ext))
		speed = ext[i->link_speed_ext_active];
	if (!speed && i->link_speed_active < ARRAY_SIZE(base))
		speed = base[i->link_speed_active];
	return n * (speed ?: base[WIRE_SPEED_SDR]);
}

uint8_t sm_rate_at_most(uint32_t mbps)
{
	uint8_t best = 0;

	for (uint8_t r = WIRE_RATE_2_5G; r <= WIRE_RATE_LAST; r++)
		if (wire_rate_mbps(r) <= mbps && wire_rate_mbps(r) > wire_rate_mbps(best))
			best = r;
	return best;
}

uint8_t sm_rate_enc(const struct wire_port_info *info)
{
	return sm_rate_at_most(link_mbps(info));
}
