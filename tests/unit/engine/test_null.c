/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Null regions (ibv_alloc_null_mr(3)): requests and receives of A name one beside memory. Messages
 * are longer than its buffers. Each case runs by packets and by lanes, where segments are as long as
 * a buffer.
 */
#include "lanes.h"

#include <errno.h>

#define NULL_KEY   0x501
#define MEMORY_KEY 0x101
#define PART	   100u
#define REST	   (MEMORY - PART)
#define MARK	   0xee

static void exchange(struct world *w, enum ibv_wr_opcode op)
{
	/* the null region does not look at the address */
	struct ibv_sge sge[] = {{(uintptr_t)w->a.memory, PART, MEMORY_KEY}, {0xdeadbeef, REST, NULL_KEY}};
	struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 2, .opcode = op,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory;
	wr.wr.rdma.rkey = MEMORY_KEY;
	assert_int_equal(eng_post_send(w->a.qp, &wr, &bad, av_of), 0);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
}

/* B has all of A's first bytes, and zeros behind them */
static void expect_sent(const struct world *w)
{
	assert_memory_equal(w->b.memory, w->a.memory, PART);
	for (uint32_t i = PART; i < MEMORY; i++)
		assert_int_equal(w->b.memory[i], 0);
}

/* A has B's first bytes, and nothing else has changed */
static void expect_received(const struct world *w)
{
	assert_memory_equal(w->a.memory, w->b.memory, PART);
	for (uint32_t i = PART; i < MEMORY; i++)
		assert_int_equal(w->a.memory[i], MARK);
}

static void use(struct world *w)
{
	fill(&w->a, PART);
	memset(w->b.memory, MARK, MEMORY);
	exchange(w, IBV_WR_RDMA_WRITE);
	expect_sent(w);
	memset(w->b.memory, MARK, MEMORY);
	recv_into(&w->b, 1, 0, MEMORY);
	exchange(w, IBV_WR_SEND);
	assert_int_equal(take(&w->b).byte_len, MEMORY);
	expect_sent(w);
	fill(&w->b, MEMORY);
	memset(w->a.memory, MARK, MEMORY);
	exchange(w, IBV_WR_RDMA_READ);
	expect_received(w);
	fill(&w->a, PART); /* what was discarded is not read */
	exchange(w, IBV_WR_RDMA_WRITE);
	expect_sent(w);
}

static void discard(struct world *w)
{
	struct ibv_sge sge[] = {{(uintptr_t)w->a.memory, PART, MEMORY_KEY}, {0, REST, NULL_KEY}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 2}, *bad;

	fill(&w->b, MEMORY);
	memset(w->a.memory, MARK, MEMORY);
	assert_int_equal(eng_post_recv(w->a.qp, &wr, &bad), 0);
	assert_int_equal(send(&w->b, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, MEMORY), 0);
	run(w);
	assert_int_equal(take(&w->b).status, IBV_WC_SUCCESS);
	assert_int_equal(take(&w->a).byte_len, MEMORY);
	expect_received(w);
}

static void by_packets(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	assert_int_equal(eng_mr_add_null(w->a.engine, NULL_KEY, 1), 0);
	use(w);
	discard(w);
}

static void by_lanes(void **state)
{
	struct joined *j = join_biased();

	assert_int_equal(eng_mr_add_null(j->w->a.engine, NULL_KEY, 1), 0);
	use(j->w);
	discard(j->w);
	assert_true(by_lane(j));
	part(j);
}

/* a message of a few bytes, which goes by the fast paths */
static void small_messages(void **state)
{
	struct joined *j = join_biased();
	struct ibv_sge sge = {0x1234, 48, NULL_KEY};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr recv = {.sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct world *w = j->w;

	assert_int_equal(eng_mr_add_null(w->a.engine, NULL_KEY, 1), 0);
	memset(w->b.memory, MARK, 64);
	for (int i = 0; i < 8; i++) {
		recv_into(&w->b, 1, 0, 64);
		assert_int_equal(eng_post_recv(w->a.qp, &recv, &bad_recv), 0);
		assert_int_equal(eng_post_send(w->a.qp, &wr, &bad, av_of), 0);
		run(w);
		assert_int_equal(take(&w->b).byte_len, 48);
		for (unsigned k = 0; k < 64; k++)
			assert_int_equal(w->b.memory[k], k < 48 ? 0 : MARK);
		memset(w->b.memory, MARK, 64);
		assert_int_equal(send(&w->b, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 48), 0);
		run(w);
		assert_int_equal(take(&w->a).byte_len, 48);
		assert_int_equal(take(&w->b).status, IBV_WC_SUCCESS);
	}
	part(j);
}

static void its_key_is_for_its_own_program_alone(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma.rkey = NULL_KEY};

	connect(w, IBV_QPT_RC);
	assert_int_equal(eng_mr_add_null(w->a.engine, NULL_KEY, 1), 0);
	assert_int_equal(eng_mr_add_null(w->a.engine, NULL_KEY, 1), -EEXIST);
	assert_null(eng_mem(w->a.engine, 2, NULL_KEY, 0, 8, 0)); /* another PD's */
	assert_int_equal(send(&w->b, wr, 8), 0);
	run(w);
	assert_int_equal(take(&w->b).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(eng_mr_del(w->a.engine, NULL_KEY), 0);
	assert_null(eng_mem(w->a.engine, 1, NULL_KEY, 0, 8, 0));
	assert_int_equal(eng_mr_del(w->a.engine, NULL_KEY), -ENOENT);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(by_packets),
		cmocka_unit_test(by_lanes),
		cmocka_unit_test(small_messages),
		CASE(its_key_is_for_its_own_program_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
