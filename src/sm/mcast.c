/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Multicast: the trees of all groups become MFTs, and blocks that differ from
 * what a switch has are sent. Groups themselves are in groups.c.
 */
#include "sm/internal.h"

#include <string.h>

/* States of members to which a group's packets are routed (15.2.5.17.2) */
#define RECEIVING_JOINS (WIRE_JOIN_FULL | WIRE_JOIN_NON)

/* The members of a group that are on the subnet, as places in the graph. */
static struct route_member *members_of(const struct sm_subnet *s, const struct sm_group *g,
				       uint32_t *n)
{
	struct route_member *out;
	struct sm_member *m;
	uint32_t count = 0;

	list_for_each_entry(m, &g->members, node)
		count++;
	*n = 0;
	out = rt_zalloc((count + 1) * sizeof(*out));
	if (!out)
		return NULL;
	list_for_each_entry(m, &g->members, node) {
		const struct sm_port *p = sm_subnet_port(s, sm_gid_guid(&m->port_gid));
		const struct sm_port *exit = p && p->num ? p->peer : p;

		if (exit && sm_is_switch(exit->node))
			out[(*n)++] = (struct route_member){
				.sw = exit->node->sw_index,
				.port = exit->num,
				.sends_only = !(m->join_state & RECEIVING_JOINS),
			};
	}
	return out;
}

/* Enter one group's tree into the wanted tables of all switches. */
static void enter_tree(struct sm *sm, const struct sm_group *g, struct route_port_mask *masks)
{
	const struct sm_subnet *s = sm_model(sm);
	uint32_t entry = g->rec.mlid - SM_LID_MCAST_FIRST, n;
	struct route_member *m = members_of(s, g, &n);

	if (!m || route_multicast(&sm->graph, m, n, g->rec.mlid, masks, &sm->route_work))
		sm_log(sm, SM_LOG_WARNING, "MLID 0x%04x: not every member can be reached",
		       g->rec.mlid);
	for (uint32_t i = 0; m && i < s->n_switches; i++) {
		uint16_t *row = s->switches[i]->tables.mft[entry];

		for (int pos = 0; pos < SM_MFT_POSITIONS; pos++)
			row[pos] = masks[i].bits[pos / 4] >> (pos % 4 * 16);
	}
	rt_free(m);
}

void sm_mcast_begin(struct sm *sm)
{
	const struct sm_subnet *s = sm_model(sm);
	struct route_port_mask *masks = rt_zalloc((s->n_switches + 1) * sizeof(*masks));
	struct sm_group *g;

	for (uint32_t i = 0; i < s->n_switches; i++) {
		struct sm_tables *t = &s->switches[i]->tables;

		if (!masks || sm_tables_size(t, s->lid_max, sm->n_mlids)) {
			sm_log(sm, SM_LOG_ERROR, "out of memory for multicast tables");
			sm_abort_job(sm);
			break;
		}
		if (t->mft_size)
			memset(t->mft, 0, t->mft_size * sizeof(*t->mft));
	}
	if (!sm->aborted)
		list_for_each_entry(g, &sm->groups, node)
			enter_tree(sm, g, masks);
	rt_free(masks);
}

static void mft_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_node *n = r->obj;

	if (r->data && !r->status)
		return;
	n->tables.mft_known = false;
	sm_log(sm, SM_LOG_WARNING, "%s did not take a block of its multicast table",
	       sm_node_name(n));
}

/* One block: 32 MLIDs, 16 ports. Return: sent */
static bool send_mft_block(struct sm *sm, struct sm_node *n, uint32_t block, uint32_t pos)
{
	struct sm_tables *t = &n->tables;
	bool differs = !t->mft_known;
	struct wire_mft b;

	for (uint32_t i = 0; i < WIRE_MFT_PER_BLOCK; i++) {
		uint32_t e = block * WIRE_MFT_PER_BLOCK + i;

		b.port_mask[i] = t->mft[e][pos];
		differs |= t->mft_set[e][pos] != t->mft[e][pos];
		t->mft_set[e][pos] = t->mft[e][pos];
	}
	if (differs)
		sm_set(sm, &n->path, WIRE_SMP_MFT, pos << 28 | block, &wire_mft_codec, &b,
		       mft_reply, n, 0);
	return differs;
}

bool sm_mft_more(struct sm *sm)
{
	const struct sm_subnet *s = sm_model(sm);
	struct sm_cursor *c = &sm->cursor;

	for (; c->node < s->n_switches; c->node++, c->block = 0) {
		struct sm_node *n = s->switches[c->node];
		uint32_t positions = n->n_ports / 16 + 1;

		if (!n->sw.mft_cap)
			continue;
		for (; c->block < n->tables.mft_size / WIRE_MFT_PER_BLOCK; c->position = 0,
		       c->block++)
			while (c->position < positions)
				if (send_mft_block(sm, n, c->block, c->position++))
					return true;
		n->tables.mft_known = true;
	}
	return false;
}

/* The tables are in place: whoever joined may be told. */
void sm_mcast_done(struct sm *sm)
{
	struct sm_deferred *d, *tmp;

	list_for_each_entry_safe(d, tmp, &sm->deferred, node) {
		sm_respond(sm, SM_AGENT_SA, &d->to, d->mad, WIRE_MAD_BYTES);
		list_del(&d->node);
		rt_free(d);
	}
}
