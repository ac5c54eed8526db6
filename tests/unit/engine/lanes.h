/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A world (world.h) whose engines are joined by lanes. */
#ifndef SOFTIB_TESTS_ENGINE_LANES_H
#define SOFTIB_TESTS_ENGINE_LANES_H

#include "engine/private.h"
#include "world.h"

/** struct joined - a world whose packets go by two lanes */
struct joined {
	struct world *w;
	struct eng_lane_out out[2];
	struct eng_lane_in in[2];
	struct eng_flow flow[2];
};

static inline void make_lane(struct joined *j, unsigned i, struct side *from, struct side *to)
{
	struct abi_lane *memory = aligned_alloc(64, abi_lane_bytes());

	memset(memory, 0, abi_lane_bytes());
	eng_lane_out_init(&j->out[i], memory, false);
	j->flow[i] = (struct eng_flow){.lane = &j->out[i],
				       .count = &memory->flow[0],
				       .serial = 1,
				       .mtu_bytes = 4096};
	j->in[i] = (struct eng_lane_in){
		.rx.memory = memory, .source = wire_port_addrs(from->page->port[0].lid, 0),
		.pkey = PKEY};
	eng_lane_add(to->engine, &j->in[i]);
	from->flow = &j->flow[i];
}

static inline struct joined *join_as(enum ibv_qp_type type)
{
	struct joined *j = calloc(1, sizeof(*j));
	void *state;

	setup(&state);
	j->w = state;
	make_lane(j, 0, &j->w->a, &j->w->b);
	make_lane(j, 1, &j->w->b, &j->w->a);
	connect(j->w, type);
	return j;
}

static inline struct joined *join(void)
{
	return join_as(IBV_QPT_RC);
}

/* the same by the owner of the engines' locks' bias. No packet comes by softibd, which else
 * ends a run */
static inline struct joined *join_biased_as(enum ibv_qp_type type)
{
	static struct abi_ring ring;
	static const struct abi_ring_rx nothing = {.ring = &ring};
	struct joined *j = join_as(type);

	j->w->a.engine->cfg.packets = j->w->b.engine->cfg.packets = &nothing;
	j->out[0].tx.no_fence = j->out[1].tx.no_fence = true;
	bias_to_us(&j->w->a);
	bias_to_us(&j->w->b);
	return j;
}

static inline struct joined *join_biased(void)
{
	return join_biased_as(IBV_QPT_RC);
}

/* of a test that looks at how a fast path does something, not at what it does */
static inline void needs_fast_paths(struct joined *j)
{
	j->w->a.engine->cfg.general_only = j->w->b.engine->cfg.general_only = false;
	eng_flow_drop(j->w->a.qp);
	eng_flow_drop(j->w->b.qp);
}

static inline void part(struct joined *j)
{
	void *state = j->w;

	teardown(&state);
	free(j->in[0].rx.memory);
	free(j->in[1].rx.memory);
	free(j);
}

static inline uint64_t by_lane(const struct joined *j)
{
	return j->flow[0].count->packets;
}

/* B's receives, one SEND of A, both completions */
struct exchange {
	struct ibv_send_wr wr;
	uint32_t bytes;
};

static inline void make(struct world *w, const struct exchange *x, struct ibv_wc wc[2])
{
	fill(&w->a, x->bytes);
	memset(w->b.memory, 0, 256);
	assert_int_equal(recv_into(&w->b, 77, 3, 200), 0);
	assert_int_equal(send(&w->a, x->wr, x->bytes), 0);
	run(w);
	wc[0] = take(&w->a);
	wc[1] = take(&w->b);
	expect_empty(&w->a);
	expect_empty(&w->b);
}

#endif
