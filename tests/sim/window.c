/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows between programs. The engines' part is the product's; that of their
 * owner (lib/libibverbs/windows.c) and of softibd (src/hca/window.c), which
 * move memory and descriptors between processes, is played here: in one
 * process a peer's memory is at hand. A question waits for the asker's next
 * turn, a grant holds while the route is clean and the tokens stand.
 */
#include <stdlib.h>

#include "conn.h"
#include "engine/window.h"
#include "hca/private.h"
#include "pair.h"

struct question {
	uint32_t qpn, rkey, connection;
};

struct sim_window {
	struct abi_window_page *page; /* peers look at it after our death */
	struct list_head node;	      /* pages: freed when the run is over */
	struct program *program;
	struct question question[ABI_WINDOW_ASKS];
	unsigned num_questions;
	/* of what was granted last to each flow, requests and answers */
	struct fab_way *way[ABI_WINDOW_FLOWS], *back[ABI_WINDOW_FLOWS];
};

static LIST_HEAD(pages);

/* --- of an engine --- */

static bool on_ask(void *ctx, const struct eng_ask *ask)
{
	struct sim_window *w = ctx;

	if (w->num_questions == ABI_WINDOW_ASKS)
		return false;
	w->question[w->num_questions++] = (struct question){ask->qpn, ask->rkey,
							 ask->connection};
	program_kick(w->program);
	return true;
}

/* one thread: nobody can be inside a section while a token changes */
static void on_quiesce(void *ctx)
{
	const struct sim_window *w = ctx, *other;

	list_for_each_entry(other, &pages, node)
		if (atomic_load(&other->page->section))
			sim_fail(w->program->sim, ORACLE_CREDIT,
				 "program %d is in a section between two events",
				 other->program->index);
}

int window_start(struct program *p)
{
	struct sim_window *w = calloc(1, sizeof(*w));
	struct abi_window_page *page =
		aligned_alloc(_Alignof(struct abi_window_page), sizeof(*page));
	struct eng_window_config config = {
		.page = page, .ask = on_ask, .quiesce = on_quiesce, .ctx = w};

	memset(page, 0, sizeof(*page));
	w->page = page;
	w->program = p;
	list_add_tail(&w->node, &pages);
	p->window = w;
	return eng_windows_enable(p->soft.engine, &config);
}

void window_stop(struct program *p)
{
	if (!p->window)
		return;
	for (int i = 0; i < p->sim->plan->num_programs; i++) {
		const struct program *other = p->sim->program[i];

		if (other && other != p && other->alive && other->window)
			eng_window_forget(other->soft.engine, (uint32_t)p->index + 1,
					  ENG_WINDOW_ALL);
	}
	p->window = NULL; /* its page stays until windows_free() */
}

/* Both are @w's from here on, instead of those that the flow had before */
static void keep_ways(struct sim_window *w, unsigned flow, struct fab_way *way,
		      struct fab_way *back)
{
	if (w->way[flow])
		fab_way_free(w->way[flow]);
	if (w->back[flow])
		fab_way_free(w->back[flow]);
	w->way[flow] = way;
	w->back[flow] = back;
}

void windows_free_pages(void)
{
	struct sim_window *w, *tmp;

	list_for_each_entry_safe(w, tmp, &pages, node) {
		list_del(&w->node);
		for (unsigned i = 0; i < ABI_WINDOW_FLOWS; i++)
			keep_ways(w, i, NULL, NULL);
		free(w->page);
		free(w);
	}
}

void window_region_gone(struct program *p, struct region *r)
{
	if (r->token)
		eng_token_give(p->soft.engine, r->token);
	r->token = 0;
}

/* --- questions --- */

static struct region *region_of(struct program *p, uint32_t key)
{
	struct region *r;

	list_for_each_entry(r, &p->regions, node)
		if (r->key == key)
			return r;
	return NULL;
}

static void on_moved(void *ctx)
{
	const struct program *p = ((struct sim_window *)ctx)->program;
	struct hca *hca = p->alive ? p->sim->hca[p->node] : NULL;

	if (hca)
		hca_route_moved(hca);
}

/* the way from @p to @dlid, for @w to be told when it ends; NULL: it is not clean */
static struct fab_way *way_from(struct sim_window *w, const struct program *p, uint16_t dlid)
{
	struct fab_way *way;

	if (fab_way_create(p->sim->fab, p->node, 1, dlid, 0,
			   program_port(p)->pkey[0], &way))
		return NULL;
	fab_way_use(way, &(struct fab_way_user){.moved = on_moved, .ctx = w});
	return way;
}

static bool find_ways(struct sim_window *w, const struct window_flow *f)
{
	struct fab_way *way = way_from(w, w->program, f->dlid);
	struct fab_way *back = way ? way_from(w, f->target, f->dlid_back) : NULL;

	if (!back && way)
		fab_way_free(way);
	if (!back)
		return false;
	keep_ways(w, f->index, way, back);
	return true;
}

/* as softibd and the target's library do it. Return: granted */
static bool answer(struct sim_window *w, const struct question *q)
{
	struct program *p = w->program, *target;
	struct window_flow f;
	struct eng_offer offer;
	struct region *r;

	if (!conns_flow_of(p, q->qpn, &f) && !pairs_flow_of(p, q->qpn, &f))
		return false;
	target = f.target;
	r = target->alive ? region_of(target, q->rkey) : NULL;
	if (!r || eng_window_offer(target->soft.engine, f.peer_qpn, q->rkey, &offer))
		return false;
	if (!r->token)
		r->token = eng_token_take(target->soft.engine, &r->token_value);
	return r->token && find_ways(w, &f) &&
	       eng_window_grant(
		       p->soft.engine,
		       &(struct eng_grant){
			       .qpn = q->qpn,
			       .rkey = q->rkey,
			       .connection = q->connection,
			       .peer = (uint32_t)target->index + 1,
			       .window = r->key,
			       .epoch = p->sim->hca[p->node]->route_epoch,
			       .access = offer.access,
			       .va = r->iova,
			       .length_bytes = r->len,
			       .base = (char *)r->bytes,
			       .qp_token = &target->window->page->token[offer.token],
			       .window_token = &target->window->page->token[r->token],
			       .qp_value = offer.value,
			       .window_value = r->token_value,
			       .flow = &w->page->flow[f.index],
		       });
}

void window_answer(struct program *p)
{
	struct sim_window *w = p->window;

	while (w && w->num_questions) {
		struct question q = w->question[--w->num_questions];

		if (!answer(w, &q))
			eng_window_denied(p->soft.engine, q.qpn, q.rkey);
	}
}
