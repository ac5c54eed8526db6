/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Routing engines on trees, rings, tori and random graphs. The checker is
 * tested first, with tables that are wrong on purpose: a judge that never
 * convicts proves nothing.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "topo.h"

static struct route_report run(struct topo *t, const char *engine,
			       const struct route_params *params, int want)
{
	const struct route_engine *e = route_engine_find(engine);
	struct route_report r;

	assert_non_null(e);
	assert_int_equal(e->run(&t->g, params ?: &(struct route_params){0}, &t->work), want);
	assert_int_equal(route_check(&t->g, &t->work, &r), 0);
	return r;
}

static void assert_sound(const struct route_report *r)
{
	assert_true(r->pairs > 0);
	assert_int_equal(r->unreachable, 0);
	assert_int_equal(r->loops, 0);
}

static void test_checker_sees_a_hole(void **state)
{
	struct topo *t = topo_ring(4, 1);
	struct route_report r;

	assert_int_equal(topo_finish(t), 0);
	run(t, "minhop", NULL, 0);
	t->g.switches[2].lft[1] = ROUTE_NO_PORT;
	assert_int_equal(route_check(&t->g, &t->work, &r), 0);
	assert_true(r.unreachable > 0);
	topo_free(t);
}

static void test_checker_sees_a_loop_and_a_detour(void **state)
{
	struct topo *t = topo_ring(4, 1);
	struct route_report r;
	uint8_t *far, back;

	assert_int_equal(topo_finish(t), 0);
	run(t, "minhop", NULL, 0);
	/* LID 1 is on switch 0: let 1 send it on to 2 while 2 sends it to 1 */
	far = t->g.switches[2].lft;
	back = far[1];
	for (uint32_t i = 0; i < t->g.n_links; i++) {
		struct route_link *l = &t->g.links[i];

		if (l->from == 1 && l->to == 2)
			t->g.switches[1].lft[1] = l->port;
		if (l->from == 2 && l->to == 1)
			far[1] = l->port;
		if (l->from == 2 && l->to == 3)
			back = l->port;
	}
	assert_int_equal(route_check(&t->g, &t->work, &r), 0);
	assert_true(r.loops > 0);
	far[1] = back; /* 1 -> 2 -> 3 -> 0: long, but it ends */
	assert_int_equal(route_check(&t->g, &t->work, &r), 0);
	assert_int_equal(r.loops, 0);
	assert_int_equal(r.detours, 1);
	topo_free(t);
}

static void test_checker_sees_a_deadlock(void **state)
{
	struct topo *t = topo_ring(5, 1);
	struct route_report r;

	assert_int_equal(topo_finish(t), 0);
	r = run(t, "minhop", NULL, 0);
	assert_sound(&r);
	/* shortest paths around a ring of five: the classic credit loop */
	assert_true(r.deadlock);
	topo_free(t);
}

/* A tree of 8 leaves by 4 spines by 4 hosts: a leaf has 28 foreign hosts over
 * its 4 uplinks (ports 5..8), 7 each. */
static void assert_uplinks_balanced(const struct topo *t)
{
	for (uint32_t s = 0; s < 8; s++) {
		int count[64] = {0};

		for (uint32_t i = 0; i < t->g.n_dests; i++)
			if (t->g.dests[i].sw != s && t->g.dests[i].port)
				count[t->g.switches[s].lft[t->g.dests[i].lid]]++;
		for (int p = 5; p <= 8; p++)
			assert_int_equal(count[p], 7);
	}
}

static void test_minhop_fat_tree_is_balanced(void **state)
{
	struct topo *t = topo_fat_tree(8, 4, 4, 0);
	struct route_report r;

	assert_int_equal(topo_finish(t), 0);
	r = run(t, "minhop", NULL, 0);
	assert_sound(&r);
	assert_int_equal(r.detours, 0);
	assert_int_equal(r.max_hops, 2);
	assert_false(r.deadlock);
	assert_uplinks_balanced(t);
	topo_free(t);
}

static void test_lmc_takes_several_paths(void **state)
{
	struct topo *t = topo_fat_tree(3, 4, 2, 2);
	struct route_report r;

	assert_int_equal(topo_finish(t), 0);
	r = run(t, "minhop", NULL, 0);
	assert_sound(&r);
	for (uint32_t i = 0; i < t->g.n_dests; i++) {
		const struct route_dest *d = &t->g.dests[i];
		uint32_t ports = 0;

		if (!d->port || d->sw == 0)
			continue;
		for (int k = 0; k < 4; k++)
			ports |= 1u << t->g.switches[0].lft[d->lid + k];
		assert_int_equal(__builtin_popcount(ports), 4);
	}
	topo_free(t);
}

static void test_parallel_cables_share(void **state)
{
	struct topo *t = topo_new(2);
	struct route_report r;

	topo_hosts(t, 0, 6, 0);
	topo_hosts(t, 1, 6, 0);
	for (int i = 0; i < 3; i++)
		topo_cable(t, 0, 1);
	assert_int_equal(topo_finish(t), 0);
	for (size_t e = 0; e < route_n_engines; e++) {
		r = run(t, route_engines[e].name, NULL, 0);
		assert_sound(&r);
		/* two hosts each; the switch's own LID rides on one of them */
		assert_int_equal(r.min_load, 2);
		assert_int_equal(r.max_load, 3);
	}
	topo_free(t);
}

static void check_updn(struct topo *t)
{
	struct route_report r;

	assert_int_equal(topo_finish(t), 0);
	r = run(t, "updn", NULL, 0);
	assert_sound(&r);
	assert_int_equal(r.turns, 0);
	assert_false(r.deadlock);
	topo_free(t);
}

static void test_updn_never_deadlocks(void **state)
{
	check_updn(topo_ring(5, 1));
	check_updn(topo_ring(12, 2));
	check_updn(topo_torus(4, 4, 4));
	check_updn(topo_torus(3, 5, 2));
	check_updn(topo_fat_tree(6, 3, 3, 1));
}

static void test_updn_is_minimal_on_a_tree(void **state)
{
	struct topo *t = topo_fat_tree(8, 4, 4, 0);
	struct route_report r;

	assert_int_equal(topo_finish(t), 0);
	r = run(t, "updn", NULL, 0);
	assert_sound(&r);
	assert_int_equal(r.detours, 0);
	/* the guess found the spines: all on top, all used alike */
	for (int s = 8; s < 12; s++)
		assert_int_equal(t->g.switches[s].rank, 0);
	assert_uplinks_balanced(t);
	topo_free(t);
}

static void test_updn_given_roots(void **state)
{
	struct topo *t = topo_ring(6, 1);
	uint64_t root = 0x1003, unknown = 0x77;
	struct route_params p = {.roots = &root, .n_roots = 1};
	struct route_report r;

	assert_int_equal(topo_finish(t), 0);
	r = run(t, "updn", &p, 0);
	assert_sound(&r);
	assert_int_equal(t->g.switches[3].rank, 0);
	assert_int_equal(t->g.switches[0].rank, 3);
	p.roots = &unknown;
	assert_int_equal(route_engine_find("updn")->run(&t->g, &p, &t->work), -ENOENT);
	topo_free(t);
}

static void test_updn_roots_reach_each_other_when_asked(void **state)
{
	struct topo *t = topo_fat_tree(2, 2, 2, 0);
	struct route_params p = {.connect_roots = true};
	uint16_t lid = 0;

	assert_int_equal(topo_finish(t), 0);
	for (uint32_t i = 0; i < t->g.n_dests; i++)
		if (t->g.dests[i].sw == 3)
			lid = t->g.dests[i].lid;
	run(t, "updn", NULL, 0);
	assert_int_equal(t->g.switches[2].lft[lid], ROUTE_NO_PORT);
	run(t, "updn", &p, 0);
	assert_int_not_equal(t->g.switches[2].lft[lid], ROUTE_NO_PORT);
	topo_free(t);
}

/* Adapters on the spines (aggregation nodes, storage): their paths to each
 * other turn at a leaf, and nobody else pays for it. */
static void test_updn_with_adapters_on_the_tops(void **state)
{
	struct topo *t = topo_fat_tree(10, 4, 8, 0);
	struct route_report r;

	for (int s = 10; s < 14; s++)
		topo_hosts(t, s, 1, 0);
	assert_int_equal(topo_finish(t), 0);
	r = run(t, "updn", NULL, 0);
	assert_sound(&r);
	assert_int_equal(r.turns, 0);
	assert_false(r.deadlock);
	assert_int_equal(r.detours, 0);
	assert_int_equal(r.max_hops, 2);
	assert_true(r.max_load < 40); /* with one root some link has them all */
	topo_free(t);
}

static void test_random_graphs(void **state)
{
	for (unsigned int seed = 1; seed <= 60; seed++) {
		struct topo *t = topo_random(seed, 5 + seed);
		struct route_report r;

		assert_int_equal(topo_finish(t), 0);
		r = run(t, "minhop", NULL, 0);
		assert_sound(&r);
		assert_int_equal(r.detours, 0);
		r = run(t, "updn", NULL, 0);
		assert_sound(&r);
		assert_int_equal(r.turns, 0);
		assert_false(r.deadlock);
		topo_free(t);
	}
}

static void test_parts_without_a_cable(void **state)
{
	struct topo *t = topo_new(2);
	struct route_report r;

	topo_hosts(t, 0, 1, 0);
	topo_hosts(t, 1, 1, 0);
	assert_int_equal(topo_finish(t), 0);
	r = run(t, "minhop", NULL, -ENETUNREACH);
	assert_int_equal(r.unreachable, 4); /* each other's host and switch */
	r = run(t, "updn", NULL, -ENETUNREACH);
	assert_int_equal(r.unreachable, 4);
	topo_free(t);
}

static void test_bad_graphs_are_refused(void **state)
{
	struct topo *t = topo_ring(3, 1);
	struct route_work small = {.size = 32};

	assert_int_equal(topo_finish(t), 0);
	small.mem = t->work.mem;
	assert_int_equal(route_graph_index(&t->g, &small), -ENOMEM);
	assert_int_equal(route_engine_find("minhop")->run(&t->g, &(struct route_params){0},
							  &small), -ENOMEM);
	t->g.dests[0].lid = t->g.dests[1].lid;
	assert_int_equal(route_graph_index(&t->g, &t->work), -EINVAL);
	t->g.dests[0].lid = 0;
	assert_int_equal(route_graph_index(&t->g, &t->work), -EINVAL);
	t->g.dests[0].lid = 1;
	t->g.links[0].peer_port++; /* its way back is another's */
	assert_int_equal(route_graph_index(&t->g, &t->work), -EINVAL);
	t->g.links[0].peer_port--;
	assert_int_equal(route_graph_index(&t->g, &t->work), 0);
	t->g.links[0] = t->g.links[--t->g.n_links]; /* it has none */
	assert_int_equal(route_graph_index(&t->g, &t->work), -EINVAL);
	t->g.links[0].to = 3;
	assert_int_equal(route_graph_index(&t->g, &t->work), -EINVAL);
	assert_null(route_engine_find("no-such-engine"));
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checker_sees_a_hole),
		cmocka_unit_test(test_checker_sees_a_loop_and_a_detour),
		cmocka_unit_test(test_checker_sees_a_deadlock),
		cmocka_unit_test(test_minhop_fat_tree_is_balanced),
		cmocka_unit_test(test_lmc_takes_several_paths),
		cmocka_unit_test(test_parallel_cables_share),
		cmocka_unit_test(test_updn_never_deadlocks),
		cmocka_unit_test(test_updn_is_minimal_on_a_tree),
		cmocka_unit_test(test_updn_given_roots),
		cmocka_unit_test(test_updn_roots_reach_each_other_when_asked),
		cmocka_unit_test(test_updn_with_adapters_on_the_tops),
		cmocka_unit_test(test_random_graphs),
		cmocka_unit_test(test_parts_without_a_cable),
		cmocka_unit_test(test_bad_graphs_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
