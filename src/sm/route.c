/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * From the model to a graph for src/routing, and from its tables to SMPs: the
 * blocks that differ from what a switch is known to have, no others.
 */
#include "sm/internal.h"

#include <string.h>

/* The cable at @p joins two switches, and both ends are up. */
static bool is_switch_link(const struct sm_port *p)
{
	return p->num && sm_is_switch(p->node) && p->peer && sm_is_switch(p->peer->node) &&
	       p->peer->node != p->node && p->peer->num && sm_port_is_up(p) &&
	       sm_port_is_up(p->peer);
}

static void graph_free(struct sm *sm)
{
	rt_free(sm->graph.switches);
	rt_free(sm->graph.links);
	rt_free(sm->graph.dests);
	rt_free(sm->route_work.mem);
	memset(&sm->graph, 0, sizeof(sm->graph));
	memset(&sm->route_work, 0, sizeof(sm->route_work));
}

void sm_route_close(struct sm *sm)
{
	graph_free(sm);
}

static void add_dest(struct route_graph *g, const struct sm_port *p)
{
	/* an adapter is reached through its neighbour's port */
	const struct sm_port *exit = p->num ? p->peer : p;

	if (!p->lid || !exit || !sm_is_switch(exit->node))
		return;
	g->dests[g->n_dests++] = (struct route_dest){
		.lid = p->lid, .lmc = p->lmc, .port = exit->num,
		.sw = exit->node->sw_index,
	};
}

static void count_parts(const struct sm_subnet *s, uint32_t *links, uint32_t *dests)
{
	*links = *dests = 0;
	sm_for_each_port(s, p) {
		*links += is_switch_link(p);
		*dests += sm_is_end_port(p);
	}
}

static int graph_build(struct sm *sm)
{
	const struct sm_subnet *s = sm->next;
	struct route_graph *g = &sm->graph;
	uint32_t n_links, n_dests;

	graph_free(sm);
	count_parts(s, &n_links, &n_dests);
	g->n_switches = s->n_switches;
	g->lid_max = s->lid_max;
	g->switches = rt_zalloc((s->n_switches + 1) * sizeof(*g->switches));
	g->links = rt_zalloc((n_links + 1) * sizeof(*g->links));
	g->dests = rt_zalloc((n_dests + 1) * sizeof(*g->dests));
	if (!g->switches || !g->links || !g->dests)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_switches; i++) {
		g->switches[i].guid = s->switches[i]->info.node_guid;
		g->switches[i].lft = s->switches[i]->tables.lft;
	}
	sm_for_each_port(s, p) {
		if (is_switch_link(p))
			g->links[g->n_links++] = (struct route_link){
				.from = p->node->sw_index, .to = p->peer->node->sw_index,
				.port = p->num, .peer_port = p->peer->num,
			};
		if (sm_is_end_port(p))
			add_dest(g, p);
	}
	sm->route_work.size = route_work_bytes(g);
	sm->route_work.mem = rt_zalloc(sm->route_work.size);
	return sm->route_work.mem ? route_graph_index(g, &sm->route_work) : -ENOMEM;
}

/*
 * A switch that was in the last model keeps what is known of its tables,
 * unless it forgot them (a reset puts LinearFDBTop back) or another manager
 * has written them.
 */
static int tables_prepare(struct sm *sm, struct sm_node *n)
{
	const struct sm_node *old =
		sm->subnet ? sm_subnet_node(sm->subnet, n->info.node_guid) : NULL;
	int err = 0;

	if (old && !n->foreign && !sm->distrust && sm_is_switch(old) && n->sw.lft_top == old->sw.lft_top && n->sw.lft_top)
		err = sm_tables_inherit(&n->tables, &old->tables);
	err = err ?: sm_tables_size(&n->tables, sm->next->lid_max, sm->n_mlids);
	if (n->sw.lft_cap && n->sw.lft_cap <= sm->next->lid_max)
		sm_log(sm, SM_LOG_ERROR, "%s has room for LIDs up to %u, the subnet needs %u",
		       sm_node_name(n), n->sw.lft_cap - 1, sm->next->lid_max);
	if (!err)
		memset(n->tables.lft, ROUTE_NO_PORT, n->tables.lft_size);
	return err;
}

static void check_tables(struct sm *sm)
{
	struct route_report r;

	if (route_check(&sm->graph, &sm->route_work, &r))
		return;
	sm_log(sm, r.loops || r.unreachable ? SM_LOG_ERROR : SM_LOG_INFO,
	       "routes: %llu pairs, %llu unreachable, %llu loops, %llu detours, "
	       "%u hops at most, %u..%u LIDs on a link%s",
	       (unsigned long long)r.pairs, (unsigned long long)r.unreachable,
	       (unsigned long long)r.loops, (unsigned long long)r.detours, r.max_hops,
	       r.min_load, r.max_load, r.deadlock ? ", deadlock possible" : "");
	if (r.loops || (sm->opt.engine->ranked && (r.turns || r.deadlock))) {
		sm_log(sm, SM_LOG_ERROR, "these tables have loops or may deadlock: they are not programmed");
		sm_abort_job(sm);
	}
}

void sm_route_begin(struct sm *sm)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < sm->next->n_switches; i++)
		err = tables_prepare(sm, sm->next->switches[i]);
	err = err ?: graph_build(sm);
	if (!err && sm->graph.n_switches)
		err = sm->opt.engine->run(&sm->graph, &sm->opt.route, &sm->route_work);
	if (err == -ENETUNREACH) {
		sm_log(sm, SM_LOG_WARNING, "%s: not every LID can be reached",
		       sm->opt.engine->name);
	} else if (err) {
		sm_log(sm, SM_LOG_ERROR, "%s: %s", sm->opt.engine->name,
		       err == -ENOENT ? "a root is not a switch of this subnet"
				      : strerror(-err));
		sm_abort_job(sm);
		return;
	}
	if (sm->opt.check)
		check_tables(sm);
}

uint8_t sm_next_hop(const struct sm_node *n, uint16_t lid)
{
	return lid < n->tables.lft_size ? n->tables.lft[lid] : ROUTE_NO_PORT;
}

static void lft_reply(struct sm *sm, const struct sm_reply *r)
{
	struct sm_node *n = r->obj;

	if (r->data && !r->status)
		return;
	n->tables.lft_known[r->arg] = 0;
	sm_log(sm, SM_LOG_WARNING, "%s did not take block %u of its linear table",
	       sm_node_name(n), r->arg);
}

static bool lft_block_differs(const struct sm_tables *t, uint32_t b)
{
	uint32_t at = b * WIRE_LFT_PER_BLOCK;

	return !t->lft_known[b] || memcmp(t->lft + at, t->lft_set + at, WIRE_LFT_PER_BLOCK);
}

static void send_lft_block(struct sm *sm, struct sm_node *n, uint32_t b)
{
	struct sm_tables *t = &n->tables;
	uint32_t at = b * WIRE_LFT_PER_BLOCK;
	struct wire_lft block;

	memcpy(block.port, t->lft + at, sizeof(block.port));
	memcpy(t->lft_set + at, t->lft + at, sizeof(block.port));
	t->lft_known[b] = 1;
	sm_set(sm, &n->path, WIRE_SMP_LFT, b, &wire_lft_codec, &block, lft_reply, n, b);
}

/* The next block that differs: of all switches in turn, so that none has to
 * take a long burst of SMPs alone. */
bool sm_lft_more(struct sm *sm)
{
	const struct sm_subnet *s = sm->next;
	uint32_t blocks = s->lid_max / WIRE_LFT_PER_BLOCK + 1;
	struct sm_cursor *c = &sm->cursor;

	for (; c->block < blocks; c->block++, c->node = 0)
		while (c->node < s->n_switches) {
			struct sm_node *n = s->switches[c->node++];

			if (!lft_block_differs(&n->tables, c->block))
				continue;
			send_lft_block(sm, n, c->block);
			return true;
		}
	return false;
}
