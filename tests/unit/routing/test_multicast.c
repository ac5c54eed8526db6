/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast trees: a packet from any member reaches every other once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "topo.h"

static struct route_port_mask masks[4096];

static const struct route_link *link_at(const struct topo *t, uint32_t sw, int port)
{
	for (uint32_t i = 0; i < t->g.n_links; i++)
		if (t->g.links[i].from == sw && t->g.links[i].port == port)
			return &t->g.links[i];
	return NULL;
}

/* Flood from (@sw, @in) as switches do. Return: end ports that got a copy. */
static int flood(const struct topo *t, uint32_t sw, int in, int depth)
{
	int n = 0;

	assert_true(depth <= (int)t->g.n_switches); /* a cycle */
	for (int port = 0; port < 256; port++) {
		const struct route_link *l;

		if (port == in || !route_mask_test(&masks[sw], port))
			continue;
		l = link_at(t, sw, port);
		n += l ? flood(t, l->to, l->peer_port, depth + 1) : 1;
	}
	return n;
}

static void check_group(struct topo *t, int stride, uint32_t seed)
{
	struct route_member m[4096] = {{0}};
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->g.n_dests; i += stride)
		m[n++] = (struct route_member){t->g.dests[i].sw, t->g.dests[i].port};
	assert_int_equal(route_multicast(&t->g, m, n, seed, masks, &t->work), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(flood(t, m[i].sw, m[i].port, 0), n - 1);
}

static void test_every_member_once(void **state)
{
	struct topo *all[] = {topo_fat_tree(6, 4, 3, 0), topo_ring(7, 2),
			      topo_torus(3, 3, 3), topo_random(5, 30)};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		assert_int_equal(topo_finish(all[i]), 0);
		for (uint32_t seed = 0xc000; seed < 0xc004; seed++) {
			check_group(all[i], 1, seed);
			check_group(all[i], 5, seed);
		}
		topo_free(all[i]);
	}
}

static void test_groups_spread_over_spines(void **state)
{
	struct topo *t = topo_fat_tree(4, 4, 2, 0);
	struct route_member m[] = {{0, 1}, {3, 1}};
	uint32_t used = 0;

	assert_int_equal(topo_finish(t), 0);
	for (uint32_t seed = 0; seed < 8; seed++) {
		assert_int_equal(route_multicast(&t->g, m, 2, seed, masks, &t->work), 0);
		for (int s = 0; s < 4; s++)
			used |= !!masks[4 + s].bits[0] << s;
	}
	assert_int_equal(used, 0xf);
	topo_free(t);
}

static void test_one_member_and_none(void **state)
{
	struct topo *t = topo_ring(4, 1);
	struct route_member m = {.sw = 2, .port = t->g.dests[2].port};

	assert_int_equal(topo_finish(t), 0);
	assert_int_equal(route_multicast(&t->g, &m, 1, 0, masks, &t->work), 0);
	assert_int_equal(masks[2].bits[0], 1ull << m.port);
	assert_int_equal(masks[1].bits[0], 0);
	m.sends_only = true;
	assert_int_equal(route_multicast(&t->g, &m, 1, 0, masks, &t->work), 0);
	assert_int_equal(masks[2].bits[0], 0);
	m.sends_only = false;
	assert_int_equal(route_multicast(&t->g, &m, 0, 0, masks, &t->work), 0);
	assert_int_equal(masks[2].bits[0], 0);
	topo_free(t);
}

static void test_unreachable_member(void **state)
{
	struct topo *t = topo_new(2);
	struct route_member m[] = {{0, 1}, {1, 1}};

	topo_hosts(t, 0, 1, 0);
	topo_hosts(t, 1, 1, 0);
	assert_int_equal(topo_finish(t), 0);
	assert_int_equal(route_multicast(&t->g, m, 2, 0, masks, &t->work), -ENETUNREACH);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_member_once),
		cmocka_unit_test(test_groups_spread_over_spines),
		cmocka_unit_test(test_one_member_and_none),
		cmocka_unit_test(test_unreachable_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
