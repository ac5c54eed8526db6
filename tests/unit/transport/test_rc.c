/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* RC on a link that works: every operation, sizes, order, states. */
#include <errno.h>
#include <string.h>

#include "pair.h"

#define BIT(x) (1u << (x))

static void assert_moved(const struct pair *p, enum pair_side_id from, uint32_t at,
			 uint32_t to, uint32_t len)
{
	assert_memory_equal(p->side[from].memory + at, p->side[!from].memory + to, len);
}

/* every length around the packet boundaries, by SEND, WRITE and READ */
static void test_sizes(void **state)
{
	static const uint32_t sizes[] = {0,    1,    3,	   4,	 1023, 1024,
					 1025, 2047, 2048, 2049, 70000};

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		uint32_t len = sizes[i], packets = len ? DIV_ROUND_UP(len, 1024) : 1;
		const struct tp_wc *wc;

		pair_recv(p, B, 77, 0x40000, 100000);
		pair_send(p, A, IBV_WR_SEND, 1, 0x100, len, 0);
		pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0x200, len, 0x60000);
		pair_send(p, A, IBV_WR_RDMA_READ, 3, 0x80000, len, 0xa0000);
		pair_run(p);
		for (uint64_t id = 1; id <= 3; id++)
			pair_expect_sent(p, A, id, IBV_WC_SUCCESS);
		wc = pair_received(p, B);
		assert_int_equal(wc->wr_id, 77);
		assert_int_equal(wc->opcode, IBV_WC_RECV);
		assert_int_equal(wc->byte_len, len);
		assert_int_equal(wc->src_qpn, 0xa);
		assert_int_equal(wc->slid, 1);
		assert_int_equal(wc->wc_flags, 0);
		assert_moved(p, A, 0x100, 0x40000, len);
		assert_moved(p, A, 0x200, 0x60000, len);
		assert_moved(p, B, 0xa0000, 0x80000, len);
		assert_int_equal(pair_count(p, A, WIRE_SEND_FIRST), packets > 1);
		assert_int_equal(pair_count(p, A, WIRE_SEND_MIDDLE),
				 packets > 2 ? packets - 2 : 0);
		assert_int_equal(pair_count(p, A, WIRE_SEND_ONLY), packets == 1);
		assert_int_equal(pair_count(p, B, WIRE_READ_RESP_LAST), packets > 1);
		assert_int_equal(tp_qp_stats(p->side[A].qp)->retransmits, 0);
		pair_expect_quiet(p);
		pair_free(p);
	}
}

static void test_every_operation(void **state)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint8_t only, last, wc_opcode;
		int recv_opcode; /* -1: no receive */
		uint32_t wc_flags;
	} ops[] = {
		{IBV_WR_SEND, WIRE_SEND_ONLY, WIRE_SEND_LAST, IBV_WC_SEND, IBV_WC_RECV,
		 0},
		{IBV_WR_SEND_WITH_IMM, WIRE_SEND_ONLY_IMM, WIRE_SEND_LAST_IMM,
		 IBV_WC_SEND, IBV_WC_RECV, IBV_WC_WITH_IMM},
		{IBV_WR_SEND_WITH_INV, WIRE_SEND_ONLY_INV, WIRE_SEND_LAST_INV,
		 IBV_WC_SEND, IBV_WC_RECV, IBV_WC_WITH_INV},
		{IBV_WR_RDMA_WRITE, WIRE_WRITE_ONLY, WIRE_WRITE_LAST, IBV_WC_RDMA_WRITE,
		 -1, 0},
		{IBV_WR_RDMA_WRITE_WITH_IMM, WIRE_WRITE_ONLY_IMM, WIRE_WRITE_LAST_IMM,
		 IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(ops) * 2; i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		uint32_t len = i % 2 ? 2500 : 100;
		const struct tp_wc *wc;
		typeof(ops[0]) *op = &ops[i / 2];

		pair_recv(p, B, 9, 0x8000, 4096);
		pair_send(p, A, op->op, 5, 0, len, 0x8000);
		pair_run(p);
		wc = pair_sent(p, A);
		assert_int_equal(wc->status, IBV_WC_SUCCESS);
		assert_int_equal(wc->opcode, op->wc_opcode);
		assert_int_equal(pair_count(p, A, i % 2 ? op->last : op->only), 1);
		assert_moved(p, A, 0, 0x8000, len);
		if (op->recv_opcode >= 0) {
			wc = pair_received(p, B);
			assert_int_equal(wc->wr_id, 9);
			assert_int_equal(wc->opcode, op->recv_opcode);
			assert_int_equal(wc->byte_len, len);
			assert_int_equal(wc->wc_flags, op->wc_flags);
			if (op->wc_flags == IBV_WC_WITH_IMM)
				assert_int_equal(wc->imm_or_rkey, 0x1005);
		}
		assert_int_equal(
			p->side[B].invalidated,
			op->op == IBV_WR_SEND_WITH_INV ? PAIR_KEY_B + PAIR_KEY_RO : 0);
		pair_expect_quiet(p);
		pair_free(p);
	}
}

static uint64_t word_at(const struct pair *p, enum pair_side_id id, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, p->side[id].memory + offset, sizeof(v));
	return v;
}

static void test_atomics(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_send_wr wr;
	uint64_t v = 0x1122334455667788ull;

	memcpy(p->side[B].memory + 64, &v, sizeof(v));
	wr = pair_wr(p, A, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 64);
	wr.compare_add = 0x10;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	wr = pair_wr(p, A, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 8, 8, 64);
	wr.compare_add = v + 0x10;
	wr.swap = 42;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	wr = pair_wr(p, A, IBV_WR_ATOMIC_CMP_AND_SWP, 3, 16, 8, 64);
	wr.compare_add = 41; /* differs: nothing is stored */
	wr.swap = 43;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run(p);
	assert_int_equal(pair_sent(p, A)->opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(pair_sent(p, A)->opcode, IBV_WC_COMP_SWAP);
	pair_expect_sent(p, A, 3, IBV_WC_SUCCESS);
	assert_true(word_at(p, A, 0) == v);
	assert_true(word_at(p, A, 8) == v + 0x10);
	assert_int_equal(word_at(p, A, 16), 42);
	assert_int_equal(word_at(p, B, 64), 42);
	pair_expect_quiet(p);
	pair_free(p);
}

/* gather and scatter lists whose borders fall inside packets */
static void test_lists(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_recv_wr *r = &p->side[B].recv[0];
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 1, 0);
	const struct tp_sge from[] = {
		{PAIR_IOVA + 10, 1000, PAIR_KEY_A},
		{PAIR_IOVA, 0, 0xbad}, /* no bytes, no key check */
		{PAIR_IOVA + 5000, 2000, PAIR_KEY_A + PAIR_KEY_CONST},
		{PAIR_IOVA + 9000, 3, PAIR_KEY_A}};
	const struct tp_sge to[] = {
		{PAIR_IOVA + 1, 1025, PAIR_KEY_B},
		{PAIR_IOVA + 0x10000, 1, PAIR_KEY_B},
		{PAIR_IOVA + 0x20000, 5000, PAIR_KEY_B + PAIR_KEY_LOCAL}};
	uint8_t whole[3003];

	*r = (struct tp_recv_wr){.wr_id = 8, .num_sge = ARRAY_SIZE(to), .sge = to};
	p->side[B].recv_tail = 1;
	wr.sge = from;
	wr.num_sge = 4;
	wr.length_bytes = sizeof(whole);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	assert_int_equal(pair_received(p, B)->byte_len, sizeof(whole));
	memcpy(whole, p->side[A].memory + 10, 1000);
	memcpy(whole + 1000, p->side[A].memory + 5000, 2000);
	memcpy(whole + 3000, p->side[A].memory + 9000, 3);
	assert_memory_equal(p->side[B].memory + 1, whole, 1025);
	assert_memory_equal(p->side[B].memory + 0x10000, whole + 1025, 1);
	assert_memory_equal(p->side[B].memory + 0x20000, whole + 1026, 3003 - 1026);
	pair_free(p);
}

/* inline data is the caller's again at once */
static void test_inline(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	char hello[] = "hello, ", world[] = "world";
	const struct tp_sge sge[] = {{(uintptr_t)hello, 7, 0}, {(uintptr_t)world, 6, 0}};
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 13, 0);

	wr.flags |= IBV_SEND_INLINE;
	wr.num_sge = 2;
	wr.sge = sge;
	pair_recv(p, B, 1, 0, 64);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	memset(hello, 'x', sizeof(hello));
	memset(world, 'x', sizeof(world));
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 1, IBV_WC_SUCCESS);
	assert_string_equal((char *)p->side[B].memory, "hello, world");
	pair_free(p);
}

static void test_posts_refused(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.sq_depth = 3});
	struct tp_qp *qp = p->side[A].qp;
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 8, 0);

	wr.opcode = 77;
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	wr.opcode = IBV_WR_TSO;
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	wr.opcode = IBV_WR_SEND;
	wr.num_sge = 5;
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	wr.num_sge = 1;
	wr.length_bytes = (1u << 31) + 1;
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	wr.length_bytes = 65;
	wr.flags = IBV_SEND_INLINE;
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	wr.length_bytes = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	assert_int_equal(tp_qp_sq_free(qp), 3);
	/* the depth that was asked for, not the ring's */
	for (unsigned i = 0; i < 3; i++)
		pair_send(p, A, IBV_WR_RDMA_WRITE, i, 0, 8, 0);
	wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 4, 0, 8, 0);
	assert_int_equal(tp_qp_post_send(qp, &wr), -ENOMEM);
	pair_run(p);
	assert_int_equal(tp_qp_sq_free(qp), 3);
	tp_qp_modify(qp, IBV_QPS_RESET, p->now);
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	tp_qp_modify(qp, IBV_QPS_INIT, p->now);
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	tp_qp_modify(qp, IBV_QPS_RTR, p->now);
	assert_int_equal(tp_qp_post_send(qp, &wr), -EINVAL);
	pair_free(p);
}

/* many requests that arrive together get one ACK; unsignalled ones are silent */
static void test_ack_coalescing(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	for (unsigned i = 0; i < 32; i++) {
		struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, i, i * 8, 8, 0);

		pair_recv(p, B, i, 0x1000 + i * 8, 8);
		wr.flags = i % 8 == 7 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	}
	pair_run(p);
	assert_int_equal(pair_count(p, B, WIRE_ACKNOWLEDGE), 1);
	assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->msn, 32);
	assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->syndrome, 0x1f);
	for (unsigned i = 0; i < 32; i++)
		pair_expect_received(p, B, i, IBV_WC_SUCCESS);
	for (unsigned i = 7; i < 32; i += 8)
		pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	pair_free(p);
}

static void test_sig_all(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.sq_sig_all = true});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 6, 0, 8, 0);

	wr.flags = 0;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run(p);
	pair_expect_sent(p, A, 6, IBV_WC_SUCCESS);
	pair_free(p);
}

static void test_solicited(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 2000, 0);

	wr.flags |= IBV_SEND_SOLICITED;
	pair_recv(p, B, 1, 0, 4096);
	pair_recv(p, B, 2, 0, 4096);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_send(p, A, IBV_WR_SEND, 2, 0, 8, 0);
	pair_run(p);
	assert_true(pair_received(p, B)->solicited);
	assert_false(pair_received(p, B)->solicited);
	/* 9.2: only the last packet says so */
	assert_false(pair_find(p, A, WIRE_SEND_FIRST, 0)->solicited);
	assert_true(pair_find(p, A, WIRE_SEND_LAST, 0)->solicited);
	pair_free(p);
}

/* of B's receives those with an even wr_id serve messages with an even immediate */
static bool choose_by_immediate(struct pair_side *side, const struct wire_packet *pkt,
				struct tp_recv_wr *wr)
{
	for (uint32_t i = side->recv_head; i != side->recv_tail; i++) {
		struct tp_recv_wr *r = &side->recv[i % PAIR_MAX];

		if (!r->sge || (r->wr_id ^ pkt->imm) & 1)
			continue;
		*wr = *r;
		r->sge = NULL; /* taken */
		return true;
	}
	return false;
}

/* The engine chooses a receive by the message's headers. A message whose queue is empty
 * waits (RNR), although the other queue has receives. */
static void test_receive_by_packet(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE_WITH_IMM};

	p->side[B].choose = choose_by_immediate;
	for (unsigned i = 0; i < 4; i++)
		pair_recv(p, B, i, 0x1000 * i, 64);
	for (unsigned i = 0; i < 4; i++) { /* immediates: even, even, odd, even */
		struct tp_send_wr wr = pair_wr(p, A, ops[i / 3], i, 64 * i, 64, 0x4000);

		wr.imm_or_rkey = i == 2;
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	}
	pair_run_until(p, mono_add(p->now, 20 * PAIR_LINK_NS));
	pair_expect_received(p, B, 0, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 2, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 1, IBV_WC_SUCCESS);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED], 1);
	pair_recv(p, B, 6, 0, 64);
	pair_run(p);
	pair_expect_received(p, B, 6, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 4; i++)
		pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
	assert_moved(p, A, 64 * 2, 0x1000, 64);
	pair_expect_quiet(p);
	pair_free(p);
}

/* the window opens only as ACKs come */
static void test_window(void **state)
{
	struct pair *p =
		pair_new(&(struct pair_options){.mtu_bytes = 256, .sq_psn = {0x110}});
	uint32_t len = 512 * 1024;

	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, len, 0);
	pair_run_until(p, p->now);
	assert_int_equal(p->logged, 256);
	assert_true(p->log[255].ack_req);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	assert_moved(p, A, 0, 0, len);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->retransmits, 0);
	pair_free(p);
}

static void test_read_depth(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.max_rd_atomic = 2});

	for (unsigned i = 0; i < 6; i++)
		pair_send(p, A, IBV_WR_RDMA_READ, i, i * 4096, 3000, 0x10000 + i * 4096);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 6, 0, 8, 0x80000);
	pair_run_until(p, p->now);
	assert_int_equal(pair_count(p, A, WIRE_READ_REQUEST), 2);
	pair_run(p);
	for (unsigned i = 0; i < 6; i++) {
		pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
		assert_moved(p, B, 0x10000 + i * 4096, i * 4096, 3000);
	}
	pair_expect_sent(p, A, 6, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	pair_free(p);
}

/* 11.2.4.2: both depths may change while the send queue is drained */
static void test_read_depth_changes(void **state)
{
	static const uint8_t depths[] = {2, 7, 1, 0, 3, 16};
	struct pair *p = pair_new(&(struct pair_options){.max_rd_atomic = 4});
	unsigned n = 0;

	for (unsigned d = 0; d < ARRAY_SIZE(depths); d++) {
		tp_qp_attr(p->side[A].qp)->max_rd_atomic = depths[d];
		tp_qp_attr(p->side[B].qp)->max_dest_rd_atomic = depths[d];
		for (unsigned i = 0; i < 2u * depths[d]; i++)
			pair_send(p, A, IBV_WR_RDMA_READ, i, i * 4096, 3000, 0x10000 + i * 4096);
		pair_run_until(p, p->now);
		n += depths[d];
		assert_int_equal(pair_count(p, A, WIRE_READ_REQUEST), n);
		pair_run(p);
		for (unsigned i = 0; i < 2u * depths[d]; i++) {
			pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
			assert_moved(p, B, 0x10000 + i * 4096, i * 4096, 3000);
		}
		n += depths[d];
	}
	pair_expect_quiet(p);
	pair_free(p);
}

static void test_fence(void **state)
{
	for (unsigned fenced = 0; fenced < 2; fenced++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct tp_send_wr wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 2, 0, 8, 0x80000);

		pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, 3000, 0);
		wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 2, 0, 8, 0x80000);
		wr.flags |= fenced ? IBV_SEND_FENCE : 0;
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
		pair_run_until(p, p->now);
		assert_int_equal(pair_count(p, A, WIRE_WRITE_ONLY), !fenced);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
		/* with the fence, the WRITE's data is what the READ brought */
		assert_memory_equal(p->side[B].memory + (fenced ? 0 : 0x80000),
				    p->side[B].memory + 0x80000, 8);
		pair_free(p);
	}
}

/* SQD: what was begun is finished, the rest waits, one event */
static void test_drain(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.mtu_bytes = 256});

	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, 100 * 1024, 0);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0, 8, 0);
	pair_run_until(p, p->now); /* the window is full in the middle of 1 */
	tp_qp_modify(p->side[A].qp, IBV_QPS_SQD, p->now);
	assert_false(pair_had_event(p, A, TP_EVENT_SQ_DRAINED));
	pair_send(p, A, IBV_WR_RDMA_WRITE, 3, 0, 8, 0);
	pair_run(p);
	assert_int_equal(p->side[A].events, 1);
	assert_true(pair_had_event(p, A, TP_EVENT_SQ_DRAINED));
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	tp_qp_modify(p->side[A].qp, IBV_QPS_RTS, p->now);
	pair_run(p);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 3, IBV_WC_SUCCESS);
	/* nothing under way: drained at once */
	tp_qp_modify(p->side[A].qp, IBV_QPS_SQD, p->now);
	assert_int_equal(p->side[A].events, 2);
	pair_free(p);
}

/* a move to ERR completes all, in order; later posts too */
static void test_flush(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	for (unsigned i = 0; i < 4; i++) {
		struct tp_send_wr wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, i, 0, 3000, 0);

		wr.flags = 0; /* an error is told all the same */
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
		pair_recv(p, A, 10 + i, 0, 100);
	}
	tp_qp_modify(p->side[A].qp, IBV_QPS_ERR, p->now);
	pair_send(p, A, IBV_WR_RDMA_READ, 4, 0, 3000, 0);
	pair_recv(p, A, 14, 0, 100);
	for (unsigned i = 0; i < 5; i++) {
		pair_expect_sent(p, A, i, IBV_WC_WR_FLUSH_ERR);
		pair_expect_received(p, A, 10 + i, IBV_WC_WR_FLUSH_ERR);
	}
	pair_run(p);
	assert_int_equal(p->logged, 0);
	pair_expect_quiet(p);
	assert_false(pair_had_event(p, A, TP_EVENT_LAST_WQE_REACHED));
	pair_free(p);
}

/* with an SRQ its receives stay, and the QP says when it took the last */
static void test_flush_srq(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.srq = true});

	pair_recv(p, A, 1, 0, 100);
	tp_qp_modify(p->side[A].qp, IBV_QPS_ERR, p->now);
	assert_true(pair_had_event(p, A, TP_EVENT_LAST_WQE_REACHED));
	assert_int_equal(p->side[A].recvs, 0);
	assert_int_equal(p->side[A].recv_tail - p->side[A].recv_head, 1);
	tp_qp_modify(p->side[A].qp, IBV_QPS_ERR, p->now);
	assert_int_equal(p->side[A].events, 1);
	pair_free(p);
}

/* RESET forgets without completions, and the QP can be used again */
static void test_reset(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, 3000, 0);
	pair_run_until(p, p->now);
	for (unsigned id = A; id <= B; id++) {
		tp_qp_modify(p->side[id].qp, IBV_QPS_RESET, p->now);
		tp_qp_modify(p->side[id].qp, IBV_QPS_INIT, p->now);
		assert_false(tp_qp_wants_transmit(p->side[id].qp));
		assert_int_equal(tp_qp_expiry(p->side[id].qp).ns, MONO_NEVER.ns);
	}
	pair_run(p); /* what was under way meets a QP in INIT */
	for (unsigned id = A; id <= B; id++) {
		tp_qp_modify(p->side[id].qp, IBV_QPS_RTR, p->now);
		tp_qp_modify(p->side[id].qp, IBV_QPS_RTS, p->now);
	}
	pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0, 3000, 0);
	pair_run(p);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	pair_free(p);
}

/* the first packet in RTR tells that the connection lives (once) */
static void test_communication_established(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	tp_qp_modify(p->side[B].qp, IBV_QPS_RESET, p->now);
	tp_qp_modify(p->side[B].qp, IBV_QPS_INIT, p->now);
	tp_qp_modify(p->side[B].qp, IBV_QPS_RTR, p->now);
	for (unsigned i = 0; i < 2; i++)
		pair_send(p, A, IBV_WR_RDMA_WRITE, i, 0, 8, 0);
	pair_run(p);
	assert_int_equal(p->side[B].events, 1);
	assert_int_equal(p->side[B].event[0], TP_EVENT_COMM_EST);
	pair_expect_sent(p, A, 0, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_free(p);
}

/* both directions at once share the QP */
static void test_both_ways(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	for (unsigned i = 0; i < 20; i++)
		for (unsigned id = A; id <= B; id++) {
			pair_recv(p, id, i, 0x80000 + i * 4096, 4096);
			pair_send(p, id, IBV_WR_SEND, i, i * 4096, 4096, 0);
		}
	pair_run(p);
	for (unsigned i = 0; i < 20; i++)
		for (unsigned id = A; id <= B; id++) {
			pair_expect_sent(p, id, i, IBV_WC_SUCCESS);
			pair_expect_received(p, id, i, IBV_WC_SUCCESS);
			assert_moved(p, id, i * 4096, 0x80000 + i * 4096, 4096);
		}
	pair_expect_quiet(p);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test(test_atomics),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_posts_refused),
		cmocka_unit_test(test_ack_coalescing),
		cmocka_unit_test(test_sig_all),
		cmocka_unit_test(test_solicited),
		cmocka_unit_test(test_receive_by_packet),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_read_depth),
		cmocka_unit_test(test_read_depth_changes),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_flush_srq),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_communication_established),
		cmocka_unit_test(test_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
