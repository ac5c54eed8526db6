/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two engines and a wire between them: a queue each way. The clock stands
 * still unless a test moves it.
 */
#ifndef SOFTIB_TESTS_ENGINE_WORLD_H
#define SOFTIB_TESTS_ENGINE_WORLD_H

#include "../test.h"

#include "engine/private.h"
#include "runtime/rt.h"

#define WIRE_PACKETS 512
#define MEMORY (256u << 10)
#define PKEY 0xffff

struct cable {
	struct {
		size_t len;
		uint8_t bytes[WIRE_PACKET_MAX];
	} packet[WIRE_PACKETS];
	unsigned head, tail;
	unsigned limit; /* packets it holds before it says full */
};

struct side {
	struct engine *engine;
	struct abi_devpage *page;
	struct cable in, *out;
	struct eng_flow *flow; /* of a lane that all takes; NULL: the cable */
	struct eng_cq *cq;
	struct eng_qp *qp;
	uint8_t memory[MEMORY];
	int cq_events, async_events;
	enum ibv_event_type last_async;
};

struct world {
	struct side a, b;
};

static mono_t clock_now;

/* --- the wire --- */

static inline void *reserve(void *link, const struct wire_packet *pkt, unsigned port_num, size_t len)
{
	struct cable *c = ((struct side *)link)->out;

	return c->tail - c->head < c->limit ? c->packet[c->tail % WIRE_PACKETS].bytes : NULL;
}

static inline void commit(void *link, unsigned port_num, size_t len)
{
	struct cable *c = ((struct side *)link)->out;

	c->packet[c->tail++ % WIRE_PACKETS].len = len;
}

static inline void flush(void *link)
{
}

static inline const void *receive(void *link, size_t *len, unsigned *port_num)
{
	struct cable *c = &((struct side *)link)->in;

	if (c->head == c->tail)
		return NULL;
	*len = c->packet[c->head % WIRE_PACKETS].len;
	*port_num = 1;
	return c->packet[c->head % WIRE_PACKETS].bytes;
}

static inline void release(void *link)
{
	((struct side *)link)->in.head++;
}

static inline enum eng_medium choose(void *link, const struct eng_path *path, uint32_t bytes,
				  struct eng_flow **flow)
{
	*flow = ((struct side *)link)->flow;
	return *flow ? ENG_BY_LANE : ENG_BY_PACKETS;
}

static inline enum eng_medium stuck(void *link, struct eng_flow *flow)
{
	return ENG_WAIT;
}

static unsigned bad_qkeys;

static void bad_qkey(void *link, struct eng_lane_in *lane, const struct wire_packet *pkt)
{
	bad_qkeys++;
}

static const struct eng_link_ops wire_ops = {.reserve = reserve,
					     .commit = commit,
					     .flush = flush,
					     .receive = receive,
					     .release = release,
					     .choose = choose,
					     .stuck = stuck,
					     .bad_qkey = bad_qkey};

static inline mono_t now(void *ctx)
{
	return clock_now;
}

static inline void on_cq(void *ctx, void *cq_ctx)
{
	((struct side *)ctx)->cq_events++;
}

static inline void on_async(void *ctx, enum ibv_event_type type, void *element)
{
	((struct side *)ctx)->async_events++;
	((struct side *)ctx)->last_async = type;
}

static inline void make_side(struct side *s, struct side *peer, uint16_t lid)
{
	struct eng_config config = {.link_ops = &wire_ops,
				    .link = s,
				    .now = now,
				    .cq_event = on_cq,
				    .async_event = on_async,
				    .ctx = s};
	struct eng_mr_attr mr = {.key = 0x101,
				 .pd = 1,
				 .addr = s->memory,
				 .length = MEMORY,
				 .iova = (uintptr_t)s->memory,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};

	s->out = &peer->in;
	s->in.limit = WIRE_PACKETS;
	s->page = calloc(1, abi_devpage_bytes(1));
	s->page->num_ports = 1;
	s->page->port[0] = (struct abi_devport){
		.lid = lid, .state = IBV_PORT_ACTIVE, .max_mtu_enc = IBV_MTU_4096, .frame_mtu = 4096};
	s->page->port[0].pkey[0] = PKEY;
	config.devpage = s->page;
	/* the same tests without the engine's fast paths: meson.build */
	config.general_only = getenv("GENERAL_ONLY") != NULL;
	assert_int_equal(eng_create(&config, &s->engine), 0);
	assert_int_equal(eng_cq_create(s->engine, 64, s, &s->cq), 0);
	assert_int_equal(eng_mr_add(s->engine, &mr), 0);
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	clock_now = (mono_t){NSEC_PER_SEC};
	make_side(&w->a, &w->b, 1);
	make_side(&w->b, &w->a, 2);
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	eng_destroy(w->a.engine);
	eng_destroy(w->b.engine);
	free(w->a.page);
	free(w->b.page);
	free(w);
	return 0;
}

static inline void run(struct world *w)
{
	bool busy;

	do {
		busy = eng_tick(w->a.engine);
		busy |= eng_tick(w->b.engine);
	} while (busy);
}

/* --- the owner of the lock's bias posts by shorter paths --- */

static inline void no_barrier(void *ctx)
{
}

/* this thread has taken the lock many times running */
static inline void bias_to_us(struct side *s)
{
	struct ibv_wc wc;

	s->engine->lock.barrier = no_barrier;
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(eng_cq_poll(s->cq, 1, &wc), 0);
	assert_true(s->engine->lock.bias_owner);
}

/* --- queue pairs in RTS --- */

static inline void make_qp(struct side *s, enum ibv_qp_type type, uint32_t qpn, struct eng_srq *srq)
{
	struct eng_qp_init init = {.qpn = qpn,
				   .type = type,
				   .pd = 1,
				   .send_cq = s->cq,
				   .recv_cq = s->cq,
				   .srq = srq,
				   .max_send_wr = 32,
				   .max_recv_wr = 32,
				   .max_send_sge = 2,
				   .max_recv_sge = 2,
				   .max_inline = 64,
				   .ctx = s};

	assert_int_equal(eng_qp_create(s->engine, &init, &s->qp), 0);
}

static inline void to_rtr(struct side *s, uint16_t dlid, uint32_t dest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qkey = 0x1234,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC};

	assert_int_equal(eng_qp_modify(s->qp, &attr,
				       IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
					       IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS),
			 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = dest,
				    .rq_psn = 100,
				    .max_dest_rd_atomic = 4,
				    .min_rnr_timer = 1,
				    .ah_attr = {.dlid = dlid, .port_num = 1}};
	assert_int_equal(eng_qp_modify(s->qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
}

static inline void to_rts(struct side *s, uint16_t dlid, uint32_t dest)
{
	struct ibv_qp_attr attr;

	to_rtr(s, dlid, dest);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = 100,
				    .timeout = 14,
				    .retry_cnt = 2,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4};
	assert_int_equal(eng_qp_modify(s->qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static inline void connect(struct world *w, enum ibv_qp_type type)
{
	make_qp(&w->a, type, 0x11, NULL);
	make_qp(&w->b, type, 0x22, NULL);
	to_rts(&w->a, 2, 0x22);
	to_rts(&w->b, 1, 0x11);
}

static inline const struct tp_av *av_of(struct ibv_ah *ah)
{
	return (const struct tp_av *)(void *)ah;
}

static inline int send(struct side *s, struct ibv_send_wr wr, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->memory, len, 0x101};
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_SIGNALED;
	return eng_post_send(s->qp, &wr, &bad, av_of);
}

static inline int recv_into(struct side *s, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)s->memory + offset, len, 0x101};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return eng_post_recv(s->qp, &wr, &bad);
}

static inline void fill(struct side *s, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		s->memory[i] = (uint8_t)(i * 7 + 3);
}

static inline struct ibv_wc take(struct side *s)
{
	struct ibv_wc wc;

	assert_int_equal(eng_cq_poll(s->cq, 1, &wc), 1);
	return wc;
}

static inline void expect_empty(struct side *s)
{
	struct ibv_wc wc;

	assert_int_equal(eng_cq_poll(s->cq, 1, &wc), 0);
}

#endif
