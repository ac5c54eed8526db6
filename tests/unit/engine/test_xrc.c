/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC (IBA v1 annex A14): an initiator of A, a target of B, and the SRQs of the target's domain
 * that requests name. Each case runs by packets and by lanes.
 */
#include "abi/target.h"
#include "lanes.h"
#include "transport/fast.h"

#define INITIATOR 0x11
#define TARGET 0x22
#define XRCD 5
#define FIRST_SRQN 0x700
#define OTHER_PD_KEY 0x202 /* B's memory once more, in protection domain 2 */

/** struct xrc - the SRQs of B: of domain XRCD in PD 1 and in PD 2, of another domain */
struct xrc {
	struct joined *j; /* NULL: by packets */
	struct world *w;
	struct eng_srq *srq[3];
	struct eng_cq *srq_cq[3];
};

static void make_srq(struct xrc *x, unsigned i, uint32_t pd, uint32_t xrcd)
{
	struct engine *e = x->w->b.engine;

	assert_int_equal(eng_cq_create(e, 16, &x->w->b, &x->srq_cq[i]), 0);
	assert_int_equal(eng_srq_create(e, pd, 16, 2, 0, NULL, &x->srq[i]), 0);
	assert_int_equal(eng_srq_join_xrcd(x->srq[i], FIRST_SRQN + i, xrcd, x->srq_cq[i]), 0);
}

static void make_ends(struct world *w)
{
	struct eng_qp_init init = {.qpn = INITIATOR, .type = IBV_QPT_XRC_SEND, .pd = 1,
				   .send_cq = w->a.cq, .recv_cq = w->a.cq, .max_send_wr = 32,
				   .max_send_sge = 2, .max_inline = 64};

	assert_int_equal(eng_qp_create(w->a.engine, &init, &w->a.qp), 0);
	init = (struct eng_qp_init){.qpn = TARGET, .type = IBV_QPT_XRC_RECV, .xrcd = XRCD};
	assert_int_equal(eng_qp_create(w->b.engine, &init, &w->b.qp), 0);
	to_rts(&w->a, 2, TARGET);
	to_rts(&w->b, 1, INITIATOR);
}

static struct xrc *begin(bool by_lanes)
{
	struct xrc *x = calloc(1, sizeof(*x));
	struct eng_mr_attr mr = {.key = OTHER_PD_KEY, .pd = 2, .length = MEMORY,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC};
	void *state;

	if (by_lanes) {
		x->j = join(); /* and its QPs, of the same numbers, are not wanted */
		x->w = x->j->w;
		eng_qp_destroy(x->w->a.qp);
		eng_qp_destroy(x->w->b.qp);
	} else {
		setup(&state);
		x->w = state;
	}
	mr.addr = x->w->b.memory;
	mr.iova = (uintptr_t)mr.addr;
	assert_int_equal(eng_mr_add(x->w->b.engine, &mr), 0);
	make_srq(x, 0, 1, XRCD);
	make_srq(x, 1, 2, XRCD);
	make_srq(x, 2, 1, XRCD + 1);
	make_ends(x->w);
	return x;
}

static void end(struct xrc *x)
{
	void *state = x->w;

	if (x->j) {
		assert_true(by_lane(x->j) > 0);
		part(x->j);
	} else {
		teardown(&state);
	}
	free(x);
}

/* @at: where it goes in B's memory. SRQ @i takes it with its own PD's key */
static void give(struct xrc *x, unsigned i, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)x->w->b.memory + at, len, i == 1 ? OTHER_PD_KEY : 0x101};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(eng_srq_post_recv(x->srq[i], &wr, &bad), 0);
}

static enum ibv_wc_status request(struct xrc *x, enum ibv_wr_opcode opcode, unsigned srq, uint32_t rkey,
			   uint32_t len)
{
	struct ibv_send_wr wr = {.opcode = opcode, .imm_data = htobe32(7)};

	wr.qp_type.xrc.remote_srqn = FIRST_SRQN + srq;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)x->w->b.memory;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)x->w->b.memory;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(send(&x->w->a, wr, len), 0);
	run(x->w);
	return take(&x->w->a).status;
}

static struct ibv_wc received(struct xrc *x, unsigned i)
{
	struct ibv_wc wc;

	assert_int_equal(eng_cq_poll(x->srq_cq[i], 1, &wc), 1);
	return wc;
}

static void a_message_goes_to_the_srq_that_it_names(void **state)
{
	static const uint32_t lengths[] = {1, 8, 200, 1024, 5000};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		struct xrc *x = begin(i % 2);
		uint32_t len = lengths[i / 2];
		struct ibv_wc wc;

		fill(&x->w->a, len);
		give(x, 0, 100, 0, 8192);
		give(x, 1, 101, 16384, 8192);
		assert_int_equal(request(x, IBV_WR_SEND, 1, 0, len), IBV_WC_SUCCESS);
		wc = received(x, 1);
		assert_int_equal(wc.wr_id, 101);
		assert_int_equal(wc.byte_len, len);
		assert_int_equal(wc.qp_num, TARGET);
		assert_memory_equal(x->w->b.memory + 16384, x->w->a.memory, len);
		assert_int_equal(request(x, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0x101, len),
				 IBV_WC_SUCCESS);
		wc = received(x, 0);
		assert_int_equal(wc.wr_id, 100);
		assert_int_equal(be32toh(wc.imm_data), 7);
		assert_memory_equal(x->w->b.memory, x->w->a.memory, len);
		end(x);
	}
}

/* A key must be of the protection domain of the SRQ that the request names. */
static void keys_are_of_the_srqs_domain(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(opcodes); i++) {
		enum ibv_wr_opcode opcode = opcodes[i / 2];
		struct xrc *x = begin(i % 2);

		assert_int_equal(request(x, opcode, 0, 0x101, 8), IBV_WC_SUCCESS);
		assert_int_equal(request(x, opcode, 1, OTHER_PD_KEY, 8), IBV_WC_SUCCESS);
		assert_int_equal(request(x, opcode, 1, 0x101, 8), IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(x->w->b.last_async, IBV_EVENT_QP_ACCESS_ERR);
		end(x);
	}
}

#define WINDOW 0x301
#define BOUND 0x302
#define BINDABLE 0x401 /* B's memory, for windows of PD 1 */

/* B binds a window with a QP that sends. Return: the status of @wr */
static enum ibv_wc_status locally(struct xrc *x, struct eng_qp *qp, struct ibv_send_wr wr)
{
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(eng_post_send(qp, &wr, NULL, NULL), 0);
	return take(&x->w->b).status;
}

static struct eng_qp *binder_of(struct xrc *x)
{
	struct side *b = &x->w->b;
	struct eng_qp *target = b->qp, *binder;
	struct eng_qp_init init = {.qpn = 0x33, .type = IBV_QPT_XRC_SEND, .pd = 1,
				   .send_cq = b->cq, .recv_cq = b->cq, .max_send_wr = 4,
				   .max_send_sge = 1};
	struct eng_mr_attr mr = {.key = BINDABLE, .pd = 1, .length = MEMORY, .addr = b->memory,
				 .iova = (uintptr_t)b->memory,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND};

	assert_int_equal(eng_mr_add(b->engine, &mr), 0);
	assert_int_equal(eng_qp_create(b->engine, &init, &b->qp), 0);
	to_rts(b, 1, 0x44);
	binder = b->qp;
	b->qp = target;
	return binder;
}

/* An initiator binds windows and frees them. Peers use those of type 1 by any target, if the SRQ
 * that the request names is of their domain; no target is the QP that bound one of type 2. */
static void an_initiator_binds_windows(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		struct xrc *x = begin(i % 2);
		enum ibv_mw_type type = i / 2 ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1;
		struct ibv_mr region = {.lkey = BINDABLE};
		struct ibv_mw window = {.rkey = WINDOW};
		struct ibv_send_wr bind = {
			.opcode = IBV_WR_BIND_MW,
			.bind_mw = {&window, BOUND,
				    {&region, (uintptr_t)x->w->b.memory, 64,
				     IBV_ACCESS_REMOTE_WRITE}}};
		struct ibv_send_wr inv = {.opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = BOUND};
		struct eng_qp *binder = binder_of(x);

		assert_int_equal(eng_mw_add(x->w->b.engine, WINDOW, 1, type), 0);
		assert_int_equal(locally(x, binder, bind), IBV_WC_SUCCESS);
		if (type == IBV_MW_TYPE_1)
			assert_int_equal(request(x, IBV_WR_RDMA_WRITE, 0, BOUND, 8), IBV_WC_SUCCESS);
		assert_int_equal(locally(x, binder, inv), type == IBV_MW_TYPE_1 ? IBV_WC_MW_BIND_ERR :
									       IBV_WC_SUCCESS);
		if (type == IBV_MW_TYPE_2)
			assert_int_equal(locally(x, binder, bind), IBV_WC_SUCCESS);
		assert_int_equal(request(x, IBV_WR_RDMA_WRITE, type == IBV_MW_TYPE_1, BOUND, 8),
				 IBV_WC_REM_ACCESS_ERR);
		end(x);
	}
}

/* SEND_WITH_INV: the key must be of the domain of the SRQ that the message names. */
static void a_message_invalidates_what_its_srqs_domain_has(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		struct xrc *x = begin(i % 2);
		struct engine *e = x->w->b.engine;
		uint64_t page = ALIGN_UP((uintptr_t)x->w->b.memory, 4096), len = 8;
		struct eng_mapping mapping = {page, 4096, 12, 1, &page};
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV,
					 .invalidate_rkey = 0x501};
		bool own = i / 2;
		struct ibv_wc wc;

		assert_int_equal(eng_paged_add(e, 0x501, 1, 1), 0);
		assert_int_equal(eng_paged_map(e, 0x501, 1, IBV_ACCESS_REMOTE_READ, &mapping), 0);
		give(x, 0, 100, 0, 64);
		give(x, 1, 101, 0, 64);
		wr.qp_type.xrc.remote_srqn = FIRST_SRQN + !own;
		assert_int_equal(send(&x->w->a, wr, 8), 0);
		run(x->w);
		assert_int_equal(take(&x->w->a).status, own ? IBV_WC_SUCCESS :
							      IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(!eng_mem_run(x->w->b.qp, 1, 0x501, page, &len, 0, TP_KEY_SEND), own);
		if (own) {
			wc = received(x, 0);
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
			assert_int_equal(wc.invalidated_rkey, 0x501);
		}
		end(x);
	}
}

/* READs in flight name SRQs of different domains: each response has what its request had. */
static void responses_keep_their_requests_domain(void **state)
{
	struct xrc *x = begin(false);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	wr.wr.rdma.remote_addr = (uintptr_t)x->w->b.memory;
	for (unsigned i = 0; i < 4; i++) {
		wr.wr.rdma.rkey = i % 2 ? OTHER_PD_KEY : 0x101;
		wr.qp_type.xrc.remote_srqn = FIRST_SRQN + i % 2;
		assert_int_equal(send(&x->w->a, wr, 3000), 0);
	}
	run(x->w);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(take(&x->w->a).status, IBV_WC_SUCCESS);
	end(x);
}

/* one that is not there, is of another domain, or was there */
static void an_srq_of_no_domain_of_the_target_is_refused(void **state)
{
	static const unsigned wrong[] = {9, 2, 0};

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(wrong); i++) {
		struct xrc *x = begin(i % 2);

		assert_int_equal(eng_srq_destroy(x->srq[0]), 0);
		assert_int_equal(request(x, i / 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, wrong[i / 2],
					 0x101, 8), IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(x->w->b.last_async, IBV_EVENT_QP_REQ_ERR);
		assert_int_equal(tp_qp_state(x->w->b.qp->tp), IBV_QPS_ERR);
		end(x);
	}
}

static void an_empty_srq_makes_the_initiator_wait(void **state)
{
	struct xrc *x = begin(false);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	wr.qp_type.xrc.remote_srqn = FIRST_SRQN;
	assert_int_equal(send(&x->w->a, wr, 8), 0);
	run(x->w);
	expect_empty(&x->w->a);
	assert_int_equal(tp_qp_stats(x->w->a.qp->tp)->count[TP_RNR_NAK_RECEIVED], 1);
	give(x, 0, 100, 0, 64);
	clock_now = mono_add(clock_now, tp_rnr_ns(1));
	run(x->w);
	assert_int_equal(take(&x->w->a).status, IBV_WC_SUCCESS);
	assert_int_equal(received(x, 0).wr_id, 100);
	end(x);
}

/* Half of a message is there when its SRQ goes: nobody hears of its receive any more. */
static void an_srq_goes_in_the_middle_of_a_message(void **state)
{
	struct xrc *x = begin(false);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	give(x, 0, 100, 0, 8192);
	wr.qp_type.xrc.remote_srqn = FIRST_SRQN;
	x->w->b.in.limit = 2; /* the cable takes two of its five packets */
	assert_int_equal(send(&x->w->a, wr, 5000), 0);
	eng_tick(x->w->b.engine);
	assert_int_equal(eng_srq_destroy(x->srq[0]), 0);
	assert_int_equal(eng_cq_destroy(x->srq_cq[0]), 0);
	x->w->b.in.limit = WIRE_PACKETS;
	run(x->w);
	assert_int_equal(take(&x->w->a).status, IBV_WC_REM_INV_REQ_ERR);
	end(x);
}

/* Nobody polls the CQ of an SRQ: the SRQ has failed, and takes no more messages. */
static void an_srq_fails_with_its_cq(void **state)
{
	for (unsigned i = 0; i < 2; i++) {
		struct xrc *x = begin(i);
		int before = x->w->b.async_events;
		struct ibv_send_wr last = {.opcode = IBV_WR_SEND};

		last.qp_type.xrc.remote_srqn = FIRST_SRQN;
		for (unsigned n = 0; n < 16; n++) {
			give(x, 0, n, 0, 64);
			assert_int_equal(request(x, IBV_WR_SEND, 0, 0, 8), IBV_WC_SUCCESS);
		}
		assert_int_equal(x->w->b.async_events, before);
		give(x, 0, 16, 0, 64);
		assert_int_equal(send(&x->w->a, last, 8), 0);
		run(x->w);
		assert_int_equal(x->w->b.async_events, before + 3); /* CQ_ERR, QP_FATAL */
		assert_int_equal(x->w->b.last_async, IBV_EVENT_SRQ_ERR);
		assert_int_equal(tp_qp_state(x->w->b.qp->tp), IBV_QPS_ERR);
		eng_qp_destroy(x->w->a.qp);
		eng_qp_destroy(x->w->b.qp);
		make_ends(x->w);
		give(x, 0, 17, 0, 64);
		assert_int_equal(request(x, IBV_WR_SEND, 0, 0, 8), IBV_WC_REM_INV_REQ_ERR);
		end(x);
	}
}

static void an_srqs_cq_stays_as_long_as_it(void **state)
{
	struct xrc *x = begin(false);

	assert_int_equal(eng_srq_join_xrcd(x->srq[1], FIRST_SRQN, XRCD, x->srq_cq[1]), -EEXIST);
	assert_int_equal(eng_cq_destroy(x->srq_cq[0]), -EBUSY);
	assert_int_equal(eng_srq_destroy(x->srq[0]), 0);
	assert_int_equal(eng_cq_destroy(x->srq_cq[0]), 0);
	end(x);
}

/* Each half of a connection has its own direction. */
static void requests_go_one_way(void **state)
{
	struct xrc *x = begin(false);
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	uint64_t before = x->w->a.engine->stats.rx_malformed;
	struct eng_qp_init init = {.qpn = 0x33, .type = IBV_QPT_XRC_SEND, .pd = 1,
				   .send_cq = x->w->b.cq, .recv_cq = x->w->b.cq,
				   .max_send_wr = 4, .max_send_sge = 1};

	assert_int_equal(send(&x->w->b, wr, 8), -EINVAL); /* it has no send queue */
	assert_int_equal(recv_into(&x->w->a, 1, 0, 8), -EINVAL);
	/* an initiator of B takes the initiator of A for a target */
	assert_int_equal(eng_qp_create(x->w->b.engine, &init, &x->w->b.qp), 0);
	to_rts(&x->w->b, 1, INITIATOR);
	wr.qp_type.xrc.remote_srqn = FIRST_SRQN;
	assert_int_equal(send(&x->w->b, wr, 8), 0);
	run(x->w);
	assert_int_equal(x->w->a.engine->stats.rx_malformed, before + 1);
	assert_int_equal(tp_qp_state(x->w->a.qp->tp), IBV_QPS_RTS);
	end(x);
}

static void a_half_has_no_parts_of_the_other(void **state)
{
	struct xrc *x = begin(false);
	struct side *b = &x->w->b;
	const struct eng_qp_init wrong[] = {
		{.qpn = 0x44, .type = IBV_QPT_XRC_RECV, .xrcd = XRCD, .send_cq = b->cq},
		{.qpn = 0x44, .type = IBV_QPT_XRC_RECV, .xrcd = XRCD, .max_send_wr = 1},
		{.qpn = 0x44, .type = IBV_QPT_XRC_RECV, .xrcd = XRCD, .srq = x->srq[0]},
		{.qpn = 0x44, .type = IBV_QPT_XRC_SEND, .pd = 1},
		{.qpn = 0x44, .type = IBV_QPT_XRC_SEND, .send_cq = b->cq, .recv_cq = x->srq_cq[0]},
		{.qpn = 0x44, .type = IBV_QPT_XRC_SEND, .send_cq = b->cq, .recv_cq = b->cq,
		 .max_recv_wr = 1},
	};
	struct eng_qp *qp;

	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(eng_qp_create(b->engine, &wrong[i], &qp), -EINVAL);
	end(x);
}

/* softibd speaks of targets alone: what it says of another QP, or of a number that no QP has,
 * changes nothing. */
static void messages_about_what_is_no_target(void **state)
{
	static const uint32_t numbers[] = {0x33, 0x99, 0x01000033, UINT32_MAX};
	static const uint8_t kinds[] = {ABI_TARGET_RELEASE, ABI_TARGET_FAILED, ABI_TARGET_FORGET};
	struct xrc *x = begin(false);
	struct side *b = &x->w->b;
	struct abi_target_message m = {.mark = ABI_TARGET_MARK};

	make_qp(b, IBV_QPT_RC, 0x33, NULL);
	to_rts(b, 1, INITIATOR);
	for (unsigned i = 0; i < ARRAY_SIZE(numbers) * ARRAY_SIZE(kinds); i++) {
		m.qpn = numbers[i / ARRAY_SIZE(kinds)];
		m.kind = kinds[i % ARRAY_SIZE(kinds)];
		b->in.packet[b->in.tail % WIRE_PACKETS].len = sizeof(m);
		memcpy(b->in.packet[b->in.tail++ % WIRE_PACKETS].bytes, &m, sizeof(m));
		eng_tick(b->engine);
		assert_int_equal(tp_qp_state(b->qp->tp), IBV_QPS_RTS);
		assert_false(b->qp->is_shared);
	}
	m = (struct abi_target_message){.mark = ABI_TARGET_MARK, .kind = ABI_TARGET_TAKE,
					.qpn = UINT32_MAX, .xrcd = XRCD};
	b->in.packet[b->in.tail % WIRE_PACKETS].len = sizeof(m);
	memcpy(b->in.packet[b->in.tail++ % WIRE_PACKETS].bytes, &m, sizeof(m));
	eng_tick(b->engine);
	assert_int_equal(b->engine->stats.rx_malformed, 2 * ARRAY_SIZE(kinds) + 1);
	end(x);
}

/* --- the fast path --- */

static void post_one(struct xrc *x, unsigned srq, uint32_t len)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	wr.qp_type.xrc.remote_srqn = FIRST_SRQN + srq;
	assert_int_equal(send(&x->w->a, wr, len), 0);
}

/* A SEND of A to an SRQ of B. Return: the completion of its receive, from one poll */
static struct ibv_wc send_one(struct xrc *x, unsigned srq, uint32_t len)
{
	struct ibv_wc wc;

	post_one(x, srq, len);
	assert_int_equal(eng_cq_poll(x->srq_cq[srq], 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	return wc;
}

/* After the first, a SEND leaves from its post, and goes from its cell into the receive: the general
 * path would ask again whether there is room, and would copy the pieces of the receive. */
static void a_message_of_one_packet_takes_the_fast_path(void **state)
{
	static const uint32_t lengths[] = {1, 8, 36, 37, 64, 1024};
	struct xrc *x = begin(true);
	struct eng_qp *sender = x->w->a.qp, *target = x->w->b.qp;
	struct tp_sge pieces;
	struct ibv_wc wc;

	needs_fast_paths(x->j);
	for (unsigned i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		uint32_t len = lengths[i / 2];

		fill(&x->w->a, len);
		give(x, i % 2, 100 + i, 16384 * (i % 2), 8192);
		if (i)
			assert_true(tp_fast_may_send(sender->tp));
		pieces = target->srq_sge[0];
		wc = send_one(x, i % 2, len);
		assert_int_equal(wc.wr_id, 100 + i);
		assert_int_equal(wc.byte_len, len);
		assert_int_equal(wc.qp_num, TARGET);
		assert_memory_equal(x->w->b.memory + 16384 * (i % 2), x->w->a.memory, len);
		run(x->w);
		assert_int_equal(take(&x->w->a).status, IBV_WC_SUCCESS);
		if (!i)
			continue;
		assert_true(tp_fast_known(sender->tp));
		assert_memory_equal(&target->srq_sge[0], &pieces, sizeof(pieces));
		assert_int_equal(sender->predicted.kind, ENG_ACK);
	}
	assert_int_equal(tp_qp_stats(sender->tp)->rx_packets, 2 * ARRAY_SIZE(lengths));
	end(x);
}

/* Messages that wait side by side for two SRQs, one of which goes away */
static void a_run_ends_with_its_srq(void **state)
{
	struct xrc *x = begin(true);
	static struct abi_ring ring;
	static const struct abi_ring_rx nothing = {.ring = &ring};
	struct ibv_wc wc[8];

	needs_fast_paths(x->j);
	x->w->b.engine->cfg.packets = &nothing; /* no packet ends a run */
	for (unsigned i = 0; i < 8; i++)
		give(x, i % 2, i, 64 * i, 64);
	for (unsigned i = 0; i < 4; i++)
		post_one(x, i / 2, 8);
	assert_int_equal(eng_cq_poll(x->srq_cq[0], 8, wc), 2);
	assert_int_equal(wc[0].wr_id + wc[1].wr_id, 0 + 2);
	assert_int_equal(eng_cq_poll(x->srq_cq[1], 8, wc), 2);
	assert_int_equal(wc[0].wr_id + wc[1].wr_id, 1 + 3);
	run(x->w);
	assert_int_equal(eng_cq_poll(x->w->a.cq, 8, wc), 4);
	assert_int_equal(eng_srq_destroy(x->srq[1]), 0);
	assert_int_equal(request(x, IBV_WR_SEND, 0, 0, 8), IBV_WC_SUCCESS);
	assert_int_equal(received(x, 0).wr_id, 4);
	assert_int_equal(request(x, IBV_WR_SEND, 1, 0, 8), IBV_WC_REM_INV_REQ_ERR);
	end(x);
}

/* B answers by an initiator of its own, to a target of A */
struct answers {
	struct xrc *x;
	struct eng_qp *initiator, *target; /* of B, of A */
	struct eng_srq *srq;		   /* of A */
};

static struct answers begin_answers(void)
{
	struct answers a = {.x = begin(true)};
	struct world *w = a.x->w;
	struct eng_qp *sender = w->a.qp, *receiver = w->b.qp;
	struct eng_qp_init init = {.qpn = 0x44, .type = IBV_QPT_XRC_SEND, .pd = 1,
				   .send_cq = w->b.cq, .recv_cq = w->b.cq, .max_send_wr = 32,
				   .max_send_sge = 2, .max_inline = 64};

	needs_fast_paths(a.x->j);
	assert_int_equal(eng_srq_create(w->a.engine, 1, 16, 2, 0, NULL, &a.srq), 0);
	assert_int_equal(eng_srq_join_xrcd(a.srq, FIRST_SRQN, XRCD, w->a.cq), 0);
	assert_int_equal(eng_qp_create(w->b.engine, &init, &w->b.qp), 0);
	init = (struct eng_qp_init){.qpn = 0x33, .type = IBV_QPT_XRC_RECV, .xrcd = XRCD};
	assert_int_equal(eng_qp_create(w->a.engine, &init, &w->a.qp), 0);
	to_rts(&w->b, 1, 0x33);
	to_rts(&w->a, 2, 0x44);
	a.initiator = w->b.qp;
	a.target = w->a.qp;
	w->a.qp = sender;
	w->b.qp = receiver;
	return a;
}

static void answer(struct answers *a)
{
	struct side *b = &a->x->w->b;
	struct ibv_sge into = {(uintptr_t)a->x->w->a.memory + 8192, 64, 0x101};
	struct ibv_recv_wr receive = {.sg_list = &into, .num_sge = 1}, *bad;
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct eng_qp *receiver = b->qp;

	assert_int_equal(eng_srq_post_recv(a->srq, &receive, &bad), 0);
	wr.qp_type.xrc.remote_srqn = FIRST_SRQN;
	b->qp = a->initiator;
	assert_int_equal(send(b, wr, 8), 0);
	b->qp = receiver;
}

/* A target sends no requests: if its program answers by an initiator, its ACK leaves in the first
 * poll that finds nothing, which is behind the answer; and a poll that has got its message does not
 * look for what follows, which is the peer's ACK. */
static void a_target_whose_program_answers_acknowledges_late(void **state)
{
	struct answers a = begin_answers();
	struct xrc *x = a.x;
	const struct abi_lane_tx *tx = &x->j->out[1].tx;
	const struct abi_lane_rx *rx = &x->j->in[0].rx;
	uint32_t sent, read;
	struct ibv_wc wc;

	for (unsigned i = 0; i < 4; i++) {
		give(x, 0, i, 0, 64);
		send_one(x, 0, 8);
		answer(&a);
		run(x->w);
		take(&x->w->a);
		take(&x->w->a);
		take(&x->w->b);
	}
	assert_true(x->w->b.qp->sent_since_ack);
	for (unsigned i = 0; i < 3; i++)
		give(x, 0, 4 + i, 0, 64);
	sent = tx->tail;
	send_one(x, 0, 8);
	assert_int_equal(tx->tail, sent); /* the ACK waits */
	answer(&a);
	assert_int_equal(tx->tail, sent + 1);
	assert_int_equal(eng_cq_poll(x->srq_cq[0], 1, &wc), 0);
	assert_int_equal(tx->tail, sent + 2);
	post_one(x, 0, 8);
	post_one(x, 0, 8);
	read = rx->head;
	for (unsigned i = 1; i <= 2; i++) {
		assert_int_equal(eng_cq_poll(x->srq_cq[0], 1, &wc), 1);
		assert_int_equal(rx->head, read + i);
	}
	end(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_goes_to_the_srq_that_it_names),
		cmocka_unit_test(keys_are_of_the_srqs_domain),
		cmocka_unit_test(an_initiator_binds_windows),
		cmocka_unit_test(a_message_invalidates_what_its_srqs_domain_has),
		cmocka_unit_test(responses_keep_their_requests_domain),
		cmocka_unit_test(an_srq_of_no_domain_of_the_target_is_refused),
		cmocka_unit_test(an_empty_srq_makes_the_initiator_wait),
		cmocka_unit_test(an_srq_goes_in_the_middle_of_a_message),
		cmocka_unit_test(an_srq_fails_with_its_cq),
		cmocka_unit_test(an_srqs_cq_stays_as_long_as_it),
		cmocka_unit_test(requests_go_one_way),
		cmocka_unit_test(a_half_has_no_parts_of_the_other),
		cmocka_unit_test(messages_about_what_is_no_target),
		cmocka_unit_test(a_message_of_one_packet_takes_the_fast_path),
		cmocka_unit_test(a_run_ends_with_its_srq),
		cmocka_unit_test(a_target_whose_program_answers_acknowledges_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
