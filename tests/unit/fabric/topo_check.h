/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the topology tests count and compare. */
#ifndef TEST_TOPO_CHECK_H
#define TEST_TOPO_CHECK_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/topology.h"
#include "runtime/rt.h"

static inline struct topology *load(const char *spec)
{
	struct topology *t = NULL;
	char err[300] = "";

	if (topo_load(spec, "t", &t, err, sizeof(err)))
		fail_msg("%s: %s", spec, err);
	assert_string_equal(err, "");
	return t;
}

static inline int count_kind(const struct topology *t, enum topo_kind kind)
{
	int n = 0;

	for (int i = 0; i < t->num_nodes; i++)
		n += t->node[i].kind == kind;
	return n;
}

static inline int count_cables(const struct topology *t)
{
	int n = 0;

	for (int i = 0; i < t->num_nodes; i++)
		for (int p = 1; p <= t->node[i].num_ports; p++)
			n += t->node[i].port[p].peer_node >= 0;
	assert_int_equal(n % 2, 0);
	return n / 2;
}

/* both ends of each cable agree */
static inline void check_cables(const struct topology *t)
{
	for (int i = 0; i < t->num_nodes; i++) {
		assert_int_equal(t->node[i].port[0].peer_node, -1);
		for (int p = 1; p <= t->node[i].num_ports; p++) {
			const struct topo_port *port = &t->node[i].port[p], *far;

			if (port->peer_node < 0)
				continue;
			assert_in_range(port->peer_port, 1,
					t->node[port->peer_node].num_ports);
			far = &t->node[port->peer_node].port[port->peer_port];
			assert_int_equal(far->peer_node, i);
			assert_int_equal(far->peer_port, p);
			assert_int_equal(far->speed_enc, port->speed_enc);
			assert_int_equal(far->width_enc, port->width_enc);
			assert_int_equal(far->ethernet, port->ethernet);
		}
	}
}

/* nodes that cables lead to from the first one */
static inline int count_reached(const struct topology *t)
{
	int *queue = calloc((size_t)t->num_nodes, sizeof(*queue)), head = 0, tail = 1;
	bool *seen = calloc((size_t)t->num_nodes, sizeof(*seen));

	for (seen[0] = true; head < tail; head++) {
		const struct topo_node *nd = &t->node[queue[head]];

		for (int p = 1; p <= nd->num_ports; p++) {
			int peer = nd->port[p].peer_node;
			if (peer >= 0 && !seen[peer]) {
				seen[peer] = true;
				queue[tail++] = peer;
			}
		}
	}
	free(queue);
	free(seen);
	return tail;
}

/* the same fabric, whatever the order of its nodes */
static inline void check_same(const struct topology *a, const struct topology *b)
{
	assert_int_equal(a->num_nodes, b->num_nodes);
	for (int i = 0; i < a->num_nodes; i++) {
		const struct topo_node *x = &a->node[i], *y;
		int j = topo_find(b, x->id);

		assert_true(j >= 0);
		y = &b->node[j];
		assert_string_equal(x->desc, y->desc);
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->guid, y->guid);
		assert_int_equal(x->sys_guid, y->sys_guid);
		assert_int_equal(x->vendor_id, y->vendor_id);
		assert_int_equal(x->device_id, y->device_id);
		assert_int_equal(x->num_ports, y->num_ports);
		for (int p = 1; p <= x->num_ports; p++) {
			const struct topo_port *q = &x->port[p], *r = &y->port[p];

			assert_int_equal(q->peer_node < 0, r->peer_node < 0);
			if (q->peer_node < 0)
				continue;
			assert_string_equal(a->node[q->peer_node].id,
					    b->node[r->peer_node].id);
			assert_int_equal(q->peer_port, r->peer_port);
			assert_int_equal(q->width_enc, r->width_enc);
			assert_int_equal(q->ethernet, r->ethernet);
			assert_int_equal(q->speed_enc, r->speed_enc);
			assert_int_equal(topo_port_guid(x, p), topo_port_guid(y, p));
		}
	}
}

#endif
