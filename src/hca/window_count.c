/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counters of requests that programs performed through windows. Each program
 * counts them in its window page as the packets that would have been sent, and
 * softibd adds these to the counters of the ports on the way before they are
 * read.
 */
#include "hca/window_private.h"

static void fold_flow(const struct hca_windows *w, struct window_flow *f)
{
	struct abi_window_total now = {}, *was = &f->counted;

	abi_window_add_up(&w->page->flow[f->index], &now);
	if (f->way) {
		fab_way_count(f->way, now.packets - was->packets, now.dwords - was->dwords);
		fab_way_count(f->back, now.answer_packets - was->answer_packets,
			      now.answer_dwords - was->answer_dwords);
		w->user->hca->set->window_operations += now.requests - was->requests;
	}
	*was = now;
}

static void fold_all(struct hca_set *set)
{
	struct hca_windows *w;
	struct window_flow *f;

	list_for_each_entry(w, &set->windows, all) list_for_each_entry(f, &w->flows, node)
		fold_flow(w, f);
}

uint64_t hca_windows_operations(struct hca_set *set)
{
	fold_all(set);
	return set->window_operations;
}

static void fold(void *ctx)
{
	struct window_flow *f = ctx;

	fold_flow(f->windows, f);
}

static void way_moved(void *ctx)
{
	const struct window_flow *f = ctx;

	hca_route_moved(f->windows->user->hca);
}

static void set_ways(struct window_flow *f, struct fab_way *way, struct fab_way *back)
{
	if (f->way) {
		fab_way_free(f->way);
		fab_way_free(f->back);
	}
	f->way = way;
	f->back = back;
}

static void free_flow(struct hca_windows *w, struct window_flow *f)
{
	fold_flow(w, f);
	set_ways(f, NULL, NULL);
	w->flow_used[f->index / 64] &= ~(1ull << f->index % 64);
	list_del(&f->node);
	rt_free(f);
}

/* Free the flows of QPs that do not exist any more. */
static void reclaim_flows(struct hca_windows *w)
{
	struct window_flow *f, *tmp;

	list_for_each_entry_safe(f, tmp, &w->flows, node)
		if (!eng_table_get(&w->user->hca->qps, f->qpn))
			free_flow(w, f);
}

static int unused_index(const struct hca_windows *w)
{
	for (unsigned i = 0; i < FLOW_WORDS; i++)
		if (w->flow_used[i] != UINT64_MAX)
			return (int)(i * 64) + __builtin_ctzll(~w->flow_used[i]);
	return -1;
}

struct window_flow *hca_window_flow(struct hca_windows *w, uint32_t qpn)
{
	struct window_flow *f;
	int index;

	list_for_each_entry(f, &w->flows, node)
		if (f->qpn == qpn)
			return f;
	if (unused_index(w) < 0)
		reclaim_flows(w);
	index = unused_index(w);
	f = index < 0 ? NULL : rt_zalloc(sizeof(*f));
	if (!f)
		return NULL;
	f->windows = w;
	f->qpn = qpn;
	f->index = (uint32_t)index;
	fold_flow(w, f); /* the packets of the QP that had the flow before */
	w->flow_used[index / 64] |= 1ull << index % 64;
	list_add_tail(&f->node, &w->flows);
	return f;
}

void hca_window_flow_set(const struct hca_windows *w, struct window_flow *f, struct fab_way *way,
			 struct fab_way *back)
{
	const struct fab_way_user user = {.moved = way_moved, .fold = fold, .ctx = f};

	fold_flow(w, f);
	set_ways(f, way, back);
	fab_way_use(way, &user);
	fab_way_use(back, &user);
}

void hca_window_count_end(struct hca_windows *w)
{
	while (!list_empty(&w->flows))
		free_flow(w, list_first_entry(&w->flows, struct window_flow, node));
}
