/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reliable datagrams (IBA v1 9.7): two RD QPs on each side, and one connection of EE contexts
 * between the sides.
 */
#include "world.h"

#define RDD 9
#define QKEY 0x1234
#define OTHER_PD_KEY 0x202 /* B's memory once more, in protection domain 2 */
enum { A1 = 0x31, A2, B1 = 0x41, B2, EE_A = 0x51, EE_B = 0x61, OTHER_RDD = 0x71, NO_RIGHTS, NOBODY = 0x99 };

struct rd {
	struct world *w;
	struct eng_qp *ee[2];
	struct eng_qp *qp[4]; /* A1, A2, B1, B2 */
};

static struct eng_qp *make(struct side *s, uint32_t qpn, uint32_t rdd, bool is_ee)
{
	struct eng_qp_init init = {.qpn = qpn, .type = IBV_QPT_RC, .rdd = rdd, .is_ee = is_ee,
				   .is_rd = !is_ee, .max_send_sge = 2, .max_inline = 64, .ctx = s};
	struct eng_qp *qp;

	if (is_ee) {
		init.max_send_wr = 1;
	} else {
		init.pd = 1;
		init.send_cq = init.recv_cq = s->cq;
		init.max_send_wr = init.max_recv_wr = 32;
		init.max_recv_sge = 2;
	}
	assert_int_equal(eng_qp_create(s->engine, &init, &qp), 0);
	return qp;
}

static void to_rts_again(struct eng_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	assert_int_equal(eng_qp_modify(qp, &attr, IBV_QP_STATE), 0);
}

static void set_up(struct eng_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .qkey = QKEY,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_ATOMIC};

	assert_int_equal(eng_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_QKEY | IBV_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(eng_qp_modify(qp, &attr, IBV_QP_STATE), 0);
	to_rts_again(qp);
}

static struct eng_qp *make_rd(struct side *s, uint32_t qpn, uint32_t rdd)
{
	struct eng_qp *qp = make(s, qpn, rdd, false);

	set_up(qp);
	return qp;
}

static struct rd begin(void)
{
	struct rd rd;
	void *state;

	setup(&state);
	rd.w = state;
	rd.ee[0] = rd.w->a.qp = make(&rd.w->a, EE_A, RDD, true);
	rd.ee[1] = rd.w->b.qp = make(&rd.w->b, EE_B, RDD, true);
	to_rts(&rd.w->a, 2, EE_B);
	to_rts(&rd.w->b, 1, EE_A);
	for (unsigned i = 0; i < 4; i++)
		rd.qp[i] = make_rd(i < 2 ? &rd.w->a : &rd.w->b, (i < 2 ? A1 : B1) + i % 2, RDD);
	return rd;
}

static void end(struct rd *rd)
{
	void *state = rd->w;

	teardown(&state);
}

/* a request of the QP @from by the EE context of its side */
static int post(struct rd *rd, unsigned from, struct ibv_send_wr wr, const struct eng_rd_to *to,
		uint32_t len)
{
	struct side *s = from < 2 ? &rd->w->a : &rd->w->b;
	struct ibv_sge sge = {(uintptr_t)s->memory, len, 0x101};

	if (!wr.sg_list) {
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	wr.send_flags |= IBV_SEND_SIGNALED;
	return eng_post_rd(rd->qp[from], &wr, to);
}

static struct eng_rd_to to_qp(unsigned from, uint32_t qpn)
{
	return (struct eng_rd_to){.ee_context = from < 2 ? EE_A : EE_B, .qpn = qpn, .qkey = QKEY};
}

static void post_send(struct rd *rd, unsigned from, uint32_t qpn, uint64_t wr_id, uint32_t len)
{
	struct eng_rd_to to = to_qp(from, qpn);

	assert_int_equal(post(rd, from, (struct ibv_send_wr){.wr_id = wr_id, .opcode = IBV_WR_SEND}, &to, len), 0);
}

static void give(struct rd *rd, unsigned to, uint64_t wr_id, uint32_t offset, uint32_t len)
{
	struct side *s = to < 2 ? &rd->w->a : &rd->w->b;

	s->qp = rd->qp[to];
	assert_int_equal(recv_into(s, wr_id, offset, len), 0);
}

static void expect_wc(struct side *s, uint32_t qpn, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = take(s);

	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, qpn);
	assert_int_equal(wc.wr_id, wr_id);
}

/* does the connection still carry what other QPs send? */
static void still_goes(struct rd *rd)
{
	give(rd, 3, 900, 0x8000, 64);
	post_send(rd, 1, B2, 901, 64);
	run(rd->w);
	expect_wc(&rd->w->a, A2, 901, IBV_WC_SUCCESS);
	expect_wc(&rd->w->b, B2, 900, IBV_WC_SUCCESS);
}

static enum ibv_qp_state state_of(const struct eng_qp *qp)
{
	return tp_qp_state(qp->tp);
}

/* Every QP sends to every QP of the other side, both sides at once, over one connection. */
static void messages_between_all(void **state)
{
	static const uint32_t lengths[] = {0, 1, 64, 1024, 1025, 5000};
	struct rd rd = begin();

	fill(&rd.w->a, 8192);
	fill(&rd.w->b, 8192);
	for (unsigned i = 0; i < ARRAY_SIZE(lengths); i++) {
		unsigned seen[2][2] = {{0}};

		for (unsigned from = 0; from < 4; from++)
			for (unsigned n = 0; n < 2; n++) {
				give(&rd, from, from, 0x10000 + from * 0x4000 + n * 0x2000, 0x2000);
				post_send(&rd, from, (from < 2 ? B1 : A1) + n, 100 + n, lengths[i]);
			}
		run(rd.w);
		for (unsigned side = 0; side < 2; side++)
			for (unsigned n = 0; n < 8; n++) {
				struct ibv_wc wc = take(side ? &rd.w->b : &rd.w->a);

				assert_int_equal(wc.status, IBV_WC_SUCCESS);
				if (wc.opcode != IBV_WC_RECV)
					continue;
				assert_int_equal(wc.byte_len, lengths[i]);
				assert_int_equal(wc.src_qp & ~3u, side ? 0x30 : 0x40);
				seen[side][(wc.src_qp - (side ? A1 : B1)) & 1]++;
			}
		for (unsigned side = 0; side < 2; side++)
			for (unsigned n = 0; n < 2; n++)
				assert_int_equal(seen[side][n], 2);
		assert_memory_equal(rd.w->b.memory + 0x18000, rd.w->a.memory, lengths[i]);
		expect_empty(&rd.w->a);
		expect_empty(&rd.w->b);
	}
	end(&rd);
}

static void rdma_and_atomics(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	struct rd rd = begin();
	uint64_t word = 40;

	fill(&rd.w->a, 8192);
	for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct eng_rd_to to = to_qp(0, B1);
		struct ibv_send_wr wr = {.wr_id = i, .opcode = opcodes[i]};

		if (opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			memcpy(rd.w->b.memory, &word, 8);
			wr.wr.atomic.remote_addr = (uintptr_t)rd.w->b.memory;
			wr.wr.atomic.rkey = 0x101;
			wr.wr.atomic.compare_add = 2;
		} else {
			wr.wr.rdma.remote_addr = (uintptr_t)rd.w->b.memory + 0x4000;
			wr.wr.rdma.rkey = 0x101;
		}
		assert_int_equal(post(&rd, 0, wr, &to, opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 5000), 0);
		run(rd.w);
		expect_wc(&rd.w->a, A1, i, IBV_WC_SUCCESS);
		if (!i) {
			assert_memory_equal(rd.w->b.memory + 0x4000, rd.w->a.memory, 5000);
			memset(rd.w->b.memory + 0x4000, 0xee, 5000);
		}
		if (i == 1)
			assert_int_equal(rd.w->a.memory[4999], 0xee);
	}
	memcpy(&word, rd.w->b.memory, 8);
	assert_int_equal(word, 42);
	memcpy(&word, rd.w->a.memory, 8);
	assert_int_equal(word, 40);
	end(&rd);
}

/* A message that is for nothing at the peer fails with its RD QP's send queue, and neither the
 * connection nor the peer's QPs notice. */
static void what_the_peer_refuses(void **state)
{
	const struct {
		struct eng_rd_to to;
		enum ibv_wr_opcode opcode;
		uint32_t rkey;
		enum ibv_wc_status status;
	} cases[] = {
		{{EE_A, NOBODY, QKEY}, IBV_WR_SEND, 0, IBV_WC_REM_INV_RD_REQ_ERR},
		{{EE_A, EE_B, QKEY}, IBV_WR_SEND, 0, IBV_WC_REM_INV_RD_REQ_ERR},
		{{EE_A, B1, QKEY + 1}, IBV_WR_SEND, 0, IBV_WC_REM_INV_RD_REQ_ERR},
		{{EE_A, OTHER_RDD, QKEY}, IBV_WR_SEND, 0, IBV_WC_REM_INV_RD_REQ_ERR},
		{{EE_A, B1, QKEY}, IBV_WR_RDMA_WRITE, 0x666, IBV_WC_REM_ACCESS_ERR},
		{{EE_A, B1, QKEY}, IBV_WR_RDMA_READ, 0x666, IBV_WC_REM_ACCESS_ERR},
		{{EE_A, B1, QKEY}, IBV_WR_RDMA_WRITE, OTHER_PD_KEY, IBV_WC_REM_ACCESS_ERR},
		{{EE_A, B1, QKEY}, IBV_WR_RDMA_READ, OTHER_PD_KEY, IBV_WC_REM_ACCESS_ERR},
		{{EE_A, NO_RIGHTS, QKEY}, IBV_WR_RDMA_WRITE, 0x101, IBV_WC_REM_INV_REQ_ERR},
		{{EE_A, NO_RIGHTS, QKEY}, IBV_WR_RDMA_READ, 0x101, IBV_WC_REM_INV_REQ_ERR},
	};
	struct ibv_qp_attr no_rights = {.qp_access_flags = 0};
	struct rd rd = begin();
	const struct eng_mr_attr mr = {.key = OTHER_PD_KEY, .pd = 2, .length = MEMORY,
				       .addr = rd.w->b.memory, .iova = (uintptr_t)rd.w->b.memory,
				       .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						 IBV_ACCESS_REMOTE_READ};

	make_rd(&rd.w->b, OTHER_RDD, RDD + 1);
	assert_int_equal(eng_qp_modify(make_rd(&rd.w->b, NO_RIGHTS, RDD), &no_rights,
				       IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(eng_mr_add(rd.w->b.engine, &mr), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_send_wr wr = {.wr_id = 1, .opcode = cases[i].opcode};

		wr.wr.rdma.rkey = cases[i].rkey;
		wr.wr.rdma.remote_addr = (uintptr_t)rd.w->b.memory;
		assert_int_equal(post(&rd, 0, wr, &cases[i].to, 3000), 0);
		post_send(&rd, 0, B1, 2, 8); /* behind it */
		run(rd.w);
		expect_wc(&rd.w->a, A1, 1, cases[i].status);
		expect_wc(&rd.w->a, A1, 2, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(state_of(rd.qp[0]), IBV_QPS_SQE);
		assert_int_equal(state_of(rd.qp[2]), IBV_QPS_RTS);
		still_goes(&rd);
		to_rts_again(rd.qp[0]);
	}
	end(&rd);
}

/* What this side refuses is not sent. */
static void what_this_side_refuses(void **state)
{
	const struct {
		uint32_t ee_context;
		enum ibv_wc_status status;
	} cases[] = {
		{NOBODY, IBV_WC_INV_EECN_ERR},
		{A2, IBV_WC_INV_EECN_ERR},
		{0x52, IBV_WC_LOC_RDD_VIOL_ERR},
		{0x53, IBV_WC_INV_EEC_STATE_ERR},
	};
	struct rd rd = begin();

	make(&rd.w->a, 0x52, RDD + 1, true);
	make(&rd.w->a, 0x53, RDD, true);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct eng_rd_to to = {cases[i].ee_context, B1, QKEY};

		assert_int_equal(post(&rd, 0, (struct ibv_send_wr){.wr_id = 1, .opcode = IBV_WR_SEND}, &to, 8), 0);
		expect_wc(&rd.w->a, A1, 1, cases[i].status);
		assert_int_equal(rd.w->b.in.tail, 0);
		to_rts_again(rd.qp[0]);
	}
	end(&rd);
}

/* The receive is too short: it ends in error, and so does its QP. */
static void a_receive_that_is_too_short(void **state)
{
	struct rd rd = begin();

	give(&rd, 2, 50, 0x8000, 100);
	post_send(&rd, 0, B1, 1, 3000);
	run(rd.w);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(state_of(rd.qp[2]), IBV_QPS_ERR);
	still_goes(&rd);
	end(&rd);
}

/* The sender's memory is not all its own: what was begun is aborted at the receiver. */
static void a_message_is_abandoned(void **state)
{
	struct rd rd = begin();
	struct ibv_sge sge[2] = {{(uintptr_t)rd.w->a.memory, 2048, 0x101},
				 {(uintptr_t)rd.w->a.memory, 2048, 0x666}};
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2};
	struct eng_rd_to to = to_qp(0, B1);

	give(&rd, 2, 50, 0x8000, 8192);
	give(&rd, 2, 51, 0xc000, 8192);
	assert_int_equal(post(&rd, 0, wr, &to, 0), 0);
	run(rd.w);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_LOC_PROT_ERR);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_REM_ABORT_ERR);
	assert_int_equal(state_of(rd.qp[2]), IBV_QPS_RTS);
	to_rts_again(rd.qp[0]);
	post_send(&rd, 0, B1, 2, 3000);
	run(rd.w);
	expect_wc(&rd.w->a, A1, 2, IBV_WC_SUCCESS);
	expect_wc(&rd.w->b, B1, 51, IBV_WC_SUCCESS);
	still_goes(&rd);
	end(&rd);
}

/* A receive is missing: this delays the messages of its sender, and no others. */
static void a_receiver_that_is_not_ready(void **state)
{
	struct rd rd = begin();

	post_send(&rd, 0, B1, 1, 8);
	post_send(&rd, 0, B2, 2, 8); /* behind it */
	run(rd.w);
	still_goes(&rd);
	expect_empty(&rd.w->a);
	give(&rd, 2, 50, 0x8000, 100);
	give(&rd, 3, 51, 0x8000, 100);
	run(rd.w);
	expect_empty(&rd.w->a); /* its time has not come */
	clock_now.ns += 10 * NSEC_PER_MSEC;
	run(rd.w);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_SUCCESS);
	expect_wc(&rd.w->a, A1, 2, IBV_WC_SUCCESS);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_SUCCESS);
	expect_wc(&rd.w->b, B2, 51, IBV_WC_SUCCESS);
	end(&rd);
}

static void pass_time(struct rd *rd)
{
	for (unsigned i = 0; i < 8; i++) {
		clock_now.ns += 10 * NSEC_PER_MSEC;
		run(rd->w);
	}
}

/* The attempts are counted for each message. */
static void a_receiver_that_never_is_ready(void **state)
{
	struct rd rd = begin();

	tp_qp_attr(rd.ee[0]->tp)->rnr_retry = 2;
	for (unsigned i = 0; i < 2; i++) {
		post_send(&rd, 0, B1, 1, 8);
		for (unsigned n = 0; n < 2; n++) {
			run(rd.w);
			expect_empty(&rd.w->a);
			clock_now.ns += 10 * NSEC_PER_MSEC;
		}
		run(rd.w);
		expect_wc(&rd.w->a, A1, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(state_of(rd.qp[0]), IBV_QPS_SQE);
		still_goes(&rd);
		to_rts_again(rd.qp[0]);
	}
	end(&rd);
}

/* The RNR NAK is late, and meets a message that was sent again: the peer has taken it since. */
static void a_late_refusal(void **state)
{
	struct rd rd = begin();

	post_send(&rd, 0, B1, 1, 8);
	eng_tick(rd.w->b.engine); /* the refusal is on its way */
	for (unsigned i = 0; i < 2; i++) { /* the halves of the time-out */
		unsigned tail = rd.w->a.in.tail;

		rd.w->a.in.tail = rd.w->a.in.head;
		clock_now.ns += 400 * NSEC_PER_MSEC;
		eng_tick(rd.w->a.engine);
		rd.w->a.in.tail = tail;
	}
	give(&rd, 2, 50, 0x8000, 100);
	give(&rd, 2, 51, 0x8000, 100);
	eng_tick(rd.w->a.engine);
	pass_time(&rd);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_SUCCESS);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_SUCCESS);
	expect_empty(&rd.w->b);
	end(&rd);
}

/* The sender goes away while its message is suspended. */
static void a_suspended_message_goes_away(void **state)
{
	struct rd rd = begin();

	post_send(&rd, 0, B1, 1, 8);
	run(rd.w);
	eng_qp_destroy(rd.qp[0]);
	pass_time(&rd);
	still_goes(&rd);
	post_send(&rd, 1, B2, 2, 8);
	run(rd.w);
	eng_qp_destroy(rd.ee[0]);
	pass_time(&rd);
	expect_wc(&rd.w->a, A2, 2, IBV_WC_INV_EECN_ERR);
	end(&rd);
}

/* RD QPs share a receive queue; a completion says by which EE context the message came. */
/* It has a protection domain of its own, in which the memory of its receives is. */
static void a_shared_receive_queue(void **state)
{
	enum { PD = 2, KEY = 0x201 };
	struct rd rd = begin();
	const struct eng_mr_attr mr = {.key = KEY, .pd = PD, .addr = rd.w->b.memory,
				       .length = MEMORY, .iova = (uintptr_t)rd.w->b.memory,
				       .access = IBV_ACCESS_LOCAL_WRITE};
	struct ibv_sge sge = {(uintptr_t)rd.w->b.memory + 0x8000, 4096, KEY};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct eng_qp_init init;
	struct eng_srq *srq;
	struct ibv_wc wc;

	assert_int_equal(eng_mr_add(rd.w->b.engine, &mr), 0);
	assert_int_equal(eng_srq_create(rd.w->b.engine, PD, 8, 1, 0, &rd.w->b, &srq), 0);
	for (unsigned i = 2; i < 4; i++) {
		init = rd.qp[i]->init;
		eng_qp_destroy(rd.qp[i]);
		init.srq = srq;
		assert_int_equal(eng_qp_create(rd.w->b.engine, &init, &rd.qp[i]), 0);
		set_up(rd.qp[i]);
	}
	fill(&rd.w->a, 4096);
	for (unsigned i = 0; i < 2; i++) {
		wr.wr_id = 50 + i;
		assert_int_equal(eng_srq_post_recv(srq, &wr, &bad), 0);
	}
	post_send(&rd, 0, B1, 1, 3000);
	post_send(&rd, 1, B2, 2, 8);
	post_send(&rd, 0, B2, 3, 8); /* for which no receive is left */
	run(rd.w);
	for (unsigned i = 0; i < 2; i++) {
		wc = take(&rd.w->b);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, 50 + i);
		assert_int_equal(wc.qp_num, i ? B2 : B1);
		assert_int_equal(eng_wc_ee_context(&wc), EE_B);
		expect_wc(&rd.w->a, i ? A2 : A1, 1 + i, IBV_WC_SUCCESS);
	}
	assert_memory_equal(rd.w->b.memory + 0x8000 + 8, rd.w->a.memory + 8, 2992);
	expect_empty(&rd.w->a);
	assert_int_equal(eng_srq_post_recv(srq, &wr, &bad), 0);
	pass_time(&rd);
	expect_wc(&rd.w->a, A1, 3, IBV_WC_SUCCESS);
	end(&rd);
}

static void to_state(struct eng_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state, .en_sqd_async_notify = 1};

	assert_int_equal(eng_qp_modify(qp, &attr, state == IBV_QPS_SQD ?
				       IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY : IBV_QP_STATE), 0);
}

/* An RD QP that is stopped ends the message that it has begun, even one that is suspended, and
 * begins no other. */
static void a_queue_is_stopped(void **state)
{
	struct rd rd = begin();

	post_send(&rd, 0, B1, 1, 8);
	post_send(&rd, 0, B2, 2, 8);
	run(rd.w);
	rd.w->a.async_events = 0;
	to_state(rd.qp[0], IBV_QPS_SQD);
	give(&rd, 2, 50, 0x8000, 100);
	give(&rd, 3, 51, 0x8000, 100);
	assert_int_equal(rd.w->a.async_events, 0);
	pass_time(&rd);
	assert_int_equal(rd.w->a.async_events, 1);
	assert_int_equal(rd.w->a.last_async, IBV_EVENT_SQ_DRAINED);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_SUCCESS);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_SUCCESS);
	expect_empty(&rd.w->a);
	to_rts_again(rd.qp[0]);
	run(rd.w);
	expect_wc(&rd.w->a, A1, 2, IBV_WC_SUCCESS);
	to_state(rd.qp[0], IBV_QPS_SQD); /* there is nothing to wait for */
	assert_int_equal(rd.w->a.async_events, 2);
	end(&rd);
}

/* An EE context that is stopped ends the message under way; others wait, and none fails. */
static void a_connection_is_stopped(void **state)
{
	struct rd rd = begin();

	give(&rd, 2, 50, 0x8000, 8192);
	give(&rd, 3, 51, 0xc000, 8192);
	rd.w->b.in.limit = 1;
	post_send(&rd, 0, B1, 1, 5000);
	post_send(&rd, 1, B2, 2, 8);
	rd.w->a.async_events = 0;
	to_state(rd.ee[0], IBV_QPS_SQD);
	assert_int_equal(rd.w->a.async_events, 0);
	rd.w->b.in.limit = WIRE_PACKETS;
	pass_time(&rd);
	assert_int_equal(rd.w->a.last_async, IBV_EVENT_SQ_DRAINED);
	assert_int_equal(rd.w->a.async_events, 1);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_SUCCESS);
	post_send(&rd, 0, NOBODY, 3, 8);
	pass_time(&rd);
	expect_empty(&rd.w->a);
	to_state(rd.qp[1], IBV_QPS_SQD); /* it has begun nothing that it would have to end */
	assert_int_equal(rd.w->a.async_events, 2);
	to_rts_again(rd.qp[1]);
	to_rts_again(rd.ee[0]);
	run(rd.w);
	expect_wc(&rd.w->a, A2, 2, IBV_WC_SUCCESS);
	expect_wc(&rd.w->a, A1, 3, IBV_WC_REM_INV_RD_REQ_ERR);
	to_state(rd.ee[0], IBV_QPS_SQD);
	post_send(&rd, 1, B2, 4, 8); /* it waits while the EE context goes away */
	eng_qp_destroy(rd.ee[0]);
	expect_wc(&rd.w->a, A2, 4, IBV_WC_INV_EECN_ERR);
	end(&rd);
}

/* An RD QP that fails has its receives back, that of a message on its way, too. */
static void a_receiver_fails(void **state)
{
	struct rd rd = begin();

	give(&rd, 2, 50, 0x8000, 8192);
	give(&rd, 2, 51, 0x8000, 8192);
	rd.w->b.in.limit = 1;
	post_send(&rd, 0, B1, 1, 5000);
	eng_tick(rd.w->b.engine); /* the first packet has come */
	to_state(rd.qp[2], IBV_QPS_ERR);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_WR_FLUSH_ERR);
	expect_wc(&rd.w->b, B1, 51, IBV_WC_WR_FLUSH_ERR);
	rd.w->b.in.limit = WIRE_PACKETS;
	pass_time(&rd);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_REM_INV_RD_REQ_ERR);
	still_goes(&rd);
	end(&rd);
}

/* The receiver's EE context goes away, or begins afresh, in the middle of a message. */
static void a_connection_goes_away(void **state)
{
	for (unsigned resets = 0; resets < 2; resets++) {
		struct rd rd = begin();

		give(&rd, 2, 50, 0x8000, 8192);
		rd.w->b.in.limit = 1;
		post_send(&rd, 0, B1, 1, 5000);
		eng_tick(rd.w->b.engine);
		if (resets)
			to_state(rd.ee[1], IBV_QPS_RESET);
		else
			eng_qp_destroy(rd.ee[1]);
		expect_wc(&rd.w->b, B1, 50, IBV_WC_REM_ABORT_ERR);
		assert_int_equal(state_of(rd.qp[2]), IBV_QPS_RTS);
		end(&rd);
	}
}

static void load(struct eng_qp *qp, uint16_t dlid)
{
	struct ibv_qp_attr attr = {.alt_ah_attr = {.dlid = dlid, .port_num = 1}, .alt_port_num = 1,
				   .alt_timeout = 13, .path_mig_state = IBV_MIG_REARM};

	assert_int_equal(eng_qp_modify(qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
}

/* Both ends have an alternate path; the primary one breaks in the middle of a message. */
static void a_connection_migrates(void **state)
{
	struct rd rd = begin();
	struct ibv_qp_attr attr;

	rd.w->a.page->port[0].lmc = rd.w->b.page->port[0].lmc = 4;
	load(rd.ee[0], 2 + 4);
	load(rd.ee[1], 1 + 4);
	still_goes(&rd);
	still_goes(&rd);
	give(&rd, 2, 50, 0x8000, 8192);
	rd.w->b.in.limit = 2;
	post_send(&rd, 0, B1, 1, 5000);
	for (unsigned i = 0; i < 4; i++) { /* until what was sent is given up */
		rd.w->b.in.head = rd.w->b.in.tail;
		clock_now.ns += NSEC_PER_SEC;
		eng_tick(rd.w->a.engine);
	}
	rd.w->b.in.head = rd.w->b.in.tail;
	rd.w->b.in.limit = WIRE_PACKETS;
	for (unsigned i = 0; i < 4; i++) {
		run(rd.w);
		clock_now.ns += 100 * NSEC_PER_MSEC;
	}
	run(rd.w);
	eng_qp_query(rd.ee[0], &attr);
	assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(attr.ah_attr.dlid, 6);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_SUCCESS);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_SUCCESS);
	still_goes(&rd);
	end(&rd);
}

/* A peer that is silent ends the EE context, and with it each request that names it. */
static void a_peer_that_is_gone(void **state)
{
	struct rd rd = begin();

	eng_qp_destroy(rd.ee[1]);
	post_send(&rd, 0, B1, 1, 8);
	post_send(&rd, 1, B1, 2, 8); /* it waits in line */
	for (unsigned i = 0; i < 8; i++) {
		run(rd.w);
		clock_now.ns += NSEC_PER_SEC;
	}
	run(rd.w);
	assert_int_equal(state_of(rd.ee[0]), IBV_QPS_ERR);
	expect_wc(&rd.w->a, A1, 1, IBV_WC_RETRY_EXC_ERR);
	expect_wc(&rd.w->a, A2, 2, IBV_WC_INV_EEC_STATE_ERR);
	assert_int_equal(state_of(rd.qp[0]), IBV_QPS_SQE);
	end(&rd);
}

/* Objects go while their messages are on their way. */
static void what_goes_away(void **state)
{
	struct rd rd = begin();

	rd.w->b.in.limit = 1;
	post_send(&rd, 0, B1, 1, 5000);
	post_send(&rd, 1, B2, 2, 8);
	eng_qp_destroy(rd.qp[0]); /* its message is half sent */
	rd.w->b.in.limit = WIRE_PACKETS;
	give(&rd, 2, 50, 0x8000, 8192);
	give(&rd, 3, 51, 0x8000, 8192);
	for (unsigned i = 0; i < 4; i++) {
		clock_now.ns += 100 * NSEC_PER_MSEC;
		run(rd.w);
	}
	expect_wc(&rd.w->a, A2, 2, IBV_WC_SUCCESS);
	expect_wc(&rd.w->b, B1, 50, IBV_WC_REM_ABORT_ERR);
	expect_wc(&rd.w->b, B2, 51, IBV_WC_SUCCESS);
	still_goes(&rd);
	post_send(&rd, 1, B2, 3, 8);
	eng_qp_destroy(rd.ee[0]);
	expect_wc(&rd.w->a, A2, 3, IBV_WC_INV_EECN_ERR);
	expect_empty(&rd.w->a);
	end(&rd);
}

/* --- a wire that loses packets --- */

static uint32_t dice;

static bool roll(unsigned one_in)
{
	dice = dice * 1103515245 + 12345;
	return (dice >> 16) % one_in == 0;
}

static void lose(struct cable *c)
{
	if (c->head != c->tail && roll(6))
		c->head++;
}

static void run_with_loss(struct rd *rd)
{
	for (unsigned quiet = 0; quiet < 40;) {
		bool busy;

		lose(&rd->w->a.in);
		lose(&rd->w->b.in);
		busy = eng_tick(rd->w->a.engine);
		busy |= eng_tick(rd->w->b.engine);
		quiet = busy ? 0 : quiet + 1;
		if (!busy)
			clock_now.ns += 100 * NSEC_PER_MSEC;
	}
}

/* Messages of two QPs, some of which are refused: each has one outcome, in order, and those that
 * succeed are received once and in order. */
static void each_message_once(void **state)
{
	for (uint32_t seed = 1; seed <= 300; seed++) {
		struct rd rd = begin();
		uint32_t sent = 0, received = 0;
		bool refused;
		struct ibv_wc wc;

		dice = seed;
		tp_qp_attr(rd.ee[0]->tp)->retry_cnt = 7;
		for (unsigned n = 0; n < 20; n++) {
			struct eng_rd_to to = to_qp(0, B1);
			struct ibv_send_wr wr = {.wr_id = n, .opcode = IBV_WR_SEND_WITH_IMM,
						 .imm_data = htobe32(n)};
			uint32_t len = roll(2) ? 8 : 3000;

			refused = roll(4);
			if (refused)
				to.qpn = NOBODY;
			give(&rd, 2, n, 0x8000, 8192);
			give(&rd, 3, n, 0x8000, 8192);
			assert_int_equal(post(&rd, 0, wr, &to, len), 0);
			post_send(&rd, 1, B2, n, len);
			run_with_loss(&rd);
			if (state_of(rd.ee[0]) != IBV_QPS_RTS)
				break; /* too many were lost in a row */
			for (unsigned i = 0; i < 2; i++) {
				wc = take(&rd.w->a);
				assert_int_equal(wc.wr_id, n);
				assert_int_equal(wc.status, wc.qp_num == A1 && refused ?
								    IBV_WC_REM_INV_RD_REQ_ERR :
								    IBV_WC_SUCCESS);
			}
			expect_empty(&rd.w->a);
			sent += !refused;
			while (eng_cq_poll(rd.w->b.cq, 1, &wc) == 1) {
				assert_int_equal(wc.status, IBV_WC_SUCCESS);
				if (wc.qp_num != B1)
					continue;
				assert_int_equal(be32toh(wc.imm_data), n);
				received++;
			}
			assert_int_equal(received, sent);
			if (refused)
				to_rts_again(rd.qp[0]);
		}
		end(&rd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_between_all),
		cmocka_unit_test(rdma_and_atomics),
		cmocka_unit_test(what_the_peer_refuses),
		cmocka_unit_test(what_this_side_refuses),
		cmocka_unit_test(a_receive_that_is_too_short),
		cmocka_unit_test(a_message_is_abandoned),
		cmocka_unit_test(a_receiver_that_is_not_ready),
		cmocka_unit_test(a_receiver_that_never_is_ready),
		cmocka_unit_test(a_late_refusal),
		cmocka_unit_test(a_suspended_message_goes_away),
		cmocka_unit_test(a_shared_receive_queue),
		cmocka_unit_test(a_queue_is_stopped),
		cmocka_unit_test(a_connection_is_stopped),
		cmocka_unit_test(a_receiver_fails),
		cmocka_unit_test(a_connection_goes_away),
		cmocka_unit_test(a_connection_migrates),
		cmocka_unit_test(a_peer_that_is_gone),
		cmocka_unit_test(what_goes_away),
		cmocka_unit_test(each_message_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
