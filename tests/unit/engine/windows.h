/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A world (world.h) in which A may do requests in B's memory. */
#ifndef SOFTIB_TESTS_ENGINE_WINDOWS_H
#define SOFTIB_TESTS_ENGINE_WINDOWS_H

#include "engine/private.h"
#include "engine/window_fast.h"

#include "world.h"

#define KEY 0x101

static struct abi_window_page page_a, page_b;
static unsigned asks, quiesces, sections_ended, unbounds;
static bool unreachable; /* nobody can be asked */
static bool other_asks; /* for other keys than KEY */
static uint32_t shift; /* of the memory against the key's addresses */
static uint32_t asked_for; /* eng_ask.connection */
static uint32_t region_token; /* of the memory that B granted last */
static struct eng_window_config config_a, config_b;

static inline bool on_ask(void *ctx, const struct eng_ask *ask)
{
	if (!other_asks) {
		assert_int_equal(ask->qpn, 0x11);
		assert_int_equal(ask->rkey, KEY);
	}
	asked_for = ask->connection;
	asks++;
	return !unreachable;
}

static inline void on_quiesce(void *ctx)
{
	/* the token has changed before anybody waits */
	quiesces++;
}

static inline void on_sections_end(void *ctx)
{
	sections_ended++;
}

static inline void on_unbound(void *ctx)
{
	unbounds++;
}

static inline void write_to(struct world *w, uint32_t at, uint32_t len)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory + at;
	wr.wr.rdma.rkey = KEY;
	assert_int_equal(send(&w->a, wr, len), 0);
}

static inline bool by_wire(const struct world *w)
{
	return w->b.in.tail != w->b.in.head;
}

/* B's memory from @at on, for A, as windows.c arranges it */
static inline bool grant(struct world *w, uint32_t at, uint32_t len)
{
	static uint64_t value;
	struct eng_offer offer;
	struct eng_grant g = {.qpn = 0x11, .rkey = KEY, .connection = asked_for, .peer = 7, .window = 1,
			      .epoch = w->a.page->route_epoch,
			      .va = (uintptr_t)w->b.memory + at, .length_bytes = len,
			      .base = (char *)w->b.memory + at + shift, .flow = &page_a.flow[3]};

	assert_int_equal(eng_window_offer(w->b.engine, 0x22, KEY, &offer), 0);
	g.access = offer.access;
	g.qp_token = &page_b.token[offer.token];
	g.qp_value = offer.value;
	region_token = eng_token_take(w->b.engine, &value);
	g.window_token = &page_b.token[region_token];
	g.window_value = value;
	return eng_window_grant(w->a.engine, &g);
}

static inline int connect_world(void **state, bool fenced)
{
	struct world *w;

	setup(state);
	w = *state;
	memset(&page_a, 0, sizeof(page_a));
	memset(&page_b, 0, sizeof(page_b));
	asks = quiesces = sections_ended = unbounds = 0;
	unreachable = false;
	config_a = (struct eng_window_config){.page = &page_a, .fenced = fenced, .ask = on_ask,
					      .quiesce = on_quiesce, .sections_end = on_sections_end,
					      .unbound = on_unbound};
	config_b = config_a;
	config_b.page = &page_b;
	assert_int_equal(eng_windows_enable(w->a.engine, &config_a), 0);
	assert_int_equal(eng_windows_enable(w->b.engine, &config_b), 0);
	connect(w, IBV_QPT_RC);
	return 0;
}

static inline int connected(void **state)
{
	return connect_world(state, false);
}

static inline int connected_fenced(void **state)
{
	return connect_world(state, true);
}

static inline int connected_biased(void **state)
{
	struct world *w;

	connect_world(state, false);
	w = *state;
	bias_to_us(&w->a);
	return 0;
}

/* a key is used twice by the wire, then its window is there */
static inline struct world *granted(void **state)
{
	struct world *w = *state;

	fill(&w->a, 4096);
	for (int i = 0; i < 2; i++) {
		write_to(w, 0, 8);
		assert_true(by_wire(w));
		run(w);
		take(&w->a);
	}
	assert_int_equal(asks, 1);
	assert_true(grant(w, 0, 8192));
	return w;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, connected, teardown)
/* the same by the owner of the lock's bias, whose WRITEs of a few bytes have a path of their own */
#define BOTH(name)                                                                                 \
	CASE(name), cmocka_unit_test_setup_teardown(name, connected_biased, teardown)
#define FENCED(name) cmocka_unit_test_setup_teardown(name, connected_fenced, teardown)

#endif
