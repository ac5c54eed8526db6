/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Random RC traffic, both ways, over a link that loses, repeats and delays.
 * Oracles: every signalled request completes once, in order, with success;
 * receives complete in the order of the messages; the bytes are right at the
 * moment of completion; atomics happened once each, and so did binds, in their
 * order and before they complete; at the end no byte of memory differs from a
 * model that never saw the link.
 *
 * A failure prints its seed; run `test_transport_random SEED` to see it again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define REQUESTS 60
#define SLOT 4096u
#define SEEDS 200
/* of each side's memory: what it sends, what it is sent, what it READs, what
 * is READ from it, its counter */
#define SOURCE 0u
#define TARGET (REQUESTS * SLOT)
#define READ_INTO (2 * REQUESTS * SLOT)
#define READ_FROM (3 * REQUESTS * SLOT)
#define COUNTER (PAIR_MEMORY - 64)
#define RESULTS (PAIR_MEMORY - 4096)

struct request {
	enum ibv_wr_opcode op;
	uint32_t len;
	bool signalled;
	uint64_t add, result;
};

struct traffic {
	struct request req[2][REQUESTS];
	uint32_t posted[2], receives[2];
	uint32_t sent[2], received[2]; /* completions seen */
	uint32_t bound[2];	       /* binds before those that were sent */
	uint8_t *model[2];
	uint64_t counter[2];
};

static const enum ibv_wr_opcode operations[] = {
	IBV_WR_SEND,	   IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE,	 IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_READ,  IBV_WR_RDMA_READ,	 IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_WR_BIND_MW,
};

static enum pair_fate lossy(struct pair *p, const struct pair_packet *pkt)
{
	static const enum pair_fate fates[20] = {DROP, DROP, TWICE, LATE};

	return fates[pair_random(p, 20)];
}

static bool needs_receive(enum ibv_wr_opcode op)
{
	return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
	       op == IBV_WR_SEND_WITH_INV || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* the index of the message that takes the @nth receive */
static uint32_t message_of(const struct traffic *t, enum pair_side_id from, uint32_t nth)
{
	for (uint32_t i = 0; i < REQUESTS; i++)
		if (needs_receive(t->req[from][i].op) && nth-- == 0)
			return i;
	return REQUESTS;
}

static void check_sent(struct pair *p, struct traffic *t, enum pair_side_id id,
		       const struct tp_wc *wc)
{
	const struct request *r;
	uint64_t v;

	while (t->sent[id] < REQUESTS && !t->req[id][t->sent[id]].signalled)
		t->bound[id] += t->req[id][t->sent[id]++].op == IBV_WR_BIND_MW;
	assert_int_equal(wc->wr_id, t->sent[id]);
	r = &t->req[id][t->sent[id]++];
	if (r->op == IBV_WR_RDMA_READ)
		assert_memory_equal(p->side[id].memory + READ_INTO + wc->wr_id * SLOT,
				    p->side[!id].memory + READ_FROM + wc->wr_id * SLOT,
				    r->len);
	if (r->op == IBV_WR_BIND_MW)
		assert_int_equal(p->side[id].bind[t->bound[id]++].key, 0x1000 + wc->wr_id);
	if (r->op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		memcpy(&v, p->side[id].memory + RESULTS + wc->wr_id * 8, 8);
		assert_true(v == r->result);
	}
}

static void check_received(struct pair *p, struct traffic *t, enum pair_side_id id,
			   const struct tp_wc *wc)
{
	uint32_t nth = t->received[id]++, i = message_of(t, !id, nth);
	const struct request *r;

	assert_true(i < REQUESTS);
	r = &t->req[!id][i];
	assert_int_equal(wc->wr_id, nth);
	assert_int_equal(wc->byte_len, r->len);
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		assert_int_equal(wc->imm_or_rkey, 0x1000 + i);
	assert_memory_equal(p->side[id].memory + TARGET + i * SLOT,
			    p->side[!id].memory + SOURCE + i * SLOT, r->len);
}

static void done(struct pair *p, enum pair_side_id id, const struct tp_wc *wc, bool recv)
{
	assert_int_equal(wc->status, IBV_WC_SUCCESS);
	if (recv)
		check_received(p, p->done_ctx, id, wc);
	else
		check_sent(p, p->done_ctx, id, wc);
}

/* what the request does to memory when all goes well */
static void apply_to_model(struct traffic *t, enum pair_side_id id, uint32_t i)
{
	struct request *r = &t->req[id][i];

	if (r->op == IBV_WR_RDMA_READ) {
		memcpy(t->model[id] + READ_INTO + i * SLOT,
		       t->model[!id] + READ_FROM + i * SLOT, r->len);
	} else if (r->op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		r->result = t->counter[id];
		t->counter[id] += r->add;
		memcpy(t->model[id] + RESULTS + i * 8, &r->result, 8);
		memcpy(t->model[!id] + COUNTER, &t->counter[id], 8);
	} else if (r->op != IBV_WR_BIND_MW) {
		memcpy(t->model[!id] + TARGET + i * SLOT,
		       t->model[id] + SOURCE + i * SLOT, r->len);
	}
}

static void plan(struct pair *p, struct traffic *t)
{
	for (unsigned id = A; id <= B; id++) {
		memset(p->side[id].memory + COUNTER, 0, 8);
		t->model[id] = malloc(PAIR_MEMORY);
		assert_non_null(t->model[id]);
		memcpy(t->model[id], p->side[id].memory, PAIR_MEMORY);
	}
	for (unsigned id = A; id <= B; id++)
		for (uint32_t i = 0; i < REQUESTS; i++) {
			struct request *r = &t->req[id][i];

			r->op = operations[pair_random(p, ARRAY_SIZE(operations))];
			r->len = r->op == IBV_WR_BIND_MW	      ? 0 :
				 r->op == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 :
				 pair_random(p, 3) ? pair_random(p, 300) :
						     pair_random(p, SLOT + 1);
			r->signalled = i == REQUESTS - 1 || pair_random(p, 3);
			r->add = pair_random(p, 1000);
			apply_to_model(t, id, i);
		}
}

static void post_next(struct pair *p, struct traffic *t, enum pair_side_id id)
{
	uint32_t i = t->posted[id];
	const struct request *r = &t->req[id][i];
	bool read = r->op == IBV_WR_RDMA_READ,
	     atomic = r->op == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct tp_send_wr wr;

	if (i == REQUESTS || tp_qp_sq_free(p->side[id].qp) == 0)
		return;
	wr = pair_wr(p, id, r->op, i,
		     atomic ? RESULTS + i * 8 : (read ? READ_INTO : SOURCE) + i * SLOT,
		     r->len, atomic ? COUNTER : (read ? READ_FROM : TARGET) + i * SLOT);
	wr.flags = (r->signalled ? IBV_SEND_SIGNALED : 0) |
		   (pair_random(p, 8) == 0 ? IBV_SEND_FENCE : 0);
	wr.compare_add = r->add;
	assert_int_equal(tp_qp_post_send(p->side[id].qp, &wr), 0);
	t->posted[id]++;
}

static void post_receive(struct pair *p, struct traffic *t, enum pair_side_id id)
{
	uint32_t i = message_of(t, !id, t->receives[id]);

	if (i < REQUESTS)
		pair_recv(p, id, t->receives[id]++, TARGET + i * SLOT, SLOT);
}

static struct pair *random_pair(uint64_t seed)
{
	static const uint16_t mtus[] = {256, 512, 1024, 4096};
	struct pair *p = pair_new(&(struct pair_options){
		.mtu_bytes = mtus[seed % 4],
		.max_rd_atomic = 1 + seed % 5,
		.sq_depth = 1 + seed % 40,
		.sq_psn = {seed % 3 ? 0xffffff - seed : 1,
			   seed % 2 ? 0xfffff0 : 0x7fffff},
	});

	p->seed = seed;
	return p;
}

static void run_seed(uint64_t seed)
{
	struct pair *p = random_pair(seed);
	struct traffic t = {0};

	p->fate = lossy;
	p->done = done;
	p->done_ctx = &t;
	plan(p, &t);
	while (t.posted[A] < REQUESTS || t.posted[B] < REQUESTS) {
		for (unsigned n = pair_random(p, 6); n-- > 0;)
			post_next(p, &t, pair_random(p, 2));
		for (unsigned n = pair_random(p, 6); n-- > 0;)
			post_receive(p, &t, pair_random(p, 2));
		pair_run_until(p, mono_add(p->now, pair_random(p, 20000)));
		p->logged = 0;
		assert_true(mono_before(p->now,
					(mono_t){60 * NSEC_PER_SEC})); /* no standstill */
	}
	for (uint32_t i = 0; i < REQUESTS; i++)
		for (unsigned id = A; id <= B; id++)
			post_receive(p, &t, id);
	pair_run(p);
	for (unsigned id = A; id <= B; id++) {
		assert_int_equal(t.sent[id], REQUESTS);
		assert_int_equal(p->side[id].binds, t.bound[id]);
		assert_int_equal(message_of(&t, !id, t.received[id]), REQUESTS);
		assert_int_equal(memcmp(p->side[id].memory, t.model[id], PAIR_MEMORY), 0);
		assert_int_equal(tp_qp_sq_free(p->side[id].qp), 1 + seed % 40);
		free(t.model[id]);
	}
	assert_null(p->flight);
	pair_free(p);
}

static void test_seeds(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		if (state && *state)
			seed = *(uint64_t *)*state;
		print_message("# seed %u\n", (unsigned)seed);
		run_seed(seed);
		if (state && *state)
			break;
	}
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 0;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_seeds, argc > 1 ? &seed : NULL),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
