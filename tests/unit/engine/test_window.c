/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Windows between two engines: A does requests in B's memory as long as B
 * allows it, in order with those that go by the wire, and counts what the
 * wire would have carried.
 */
#include "windows.h"

static void expect_counted(uint64_t packets, uint64_t dwords, uint64_t answers,
			   uint64_t answer_dwords)
{
	struct abi_window_total t = {};

	abi_window_add_up(&page_a.flow[3], &t);
	assert_int_equal(t.packets, packets);
	assert_int_equal(t.dwords, dwords);
	assert_int_equal(t.answer_packets, answers);
	assert_int_equal(t.answer_dwords, answer_dwords);
}

static void a_write_is_done_when_post_returns(void **state)
{
	struct world *w = granted(state);
	struct ibv_wc wc;

	write_to(w, 100, 3000);
	assert_false(by_wire(w));
	assert_memory_equal(w->b.memory + 100, w->a.memory, 3000);
	wc = take(&w->a);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	assert_int_equal(wc.byte_len, 3000);
	assert_int_equal(page_a.section, 0);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	/* MTU 1024: three packets with LRH, BTH, ICRC; a RETH; one ACK with AETH */
	expect_counted(3, 3 * 6 + 4 + 750, 1, 7);
}

static void a_read_and_its_count(void **state)
{
	struct world *w = granted(state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};

	memset(w->b.memory, 'r', 2049);
	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory;
	wr.wr.rdma.rkey = KEY;
	assert_int_equal(send(&w->a, wr, 2049), 0);
	assert_int_equal(take(&w->a).opcode, IBV_WC_RDMA_READ);
	assert_memory_equal(w->a.memory, w->b.memory, 2049);
	expect_counted(1, 10, 3, 3 * 6 + 2 + 513);
}

static void atomics(void **state)
{
	struct world *w = granted(state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t *word = (uint64_t *)ALIGN_UP((uintptr_t)w->b.memory + 1024, (uintptr_t)8);
	uint64_t was;

	*word = 40;
	wr.wr.atomic.remote_addr = (uintptr_t)word;
	wr.wr.atomic.rkey = KEY;
	wr.wr.atomic.compare_add = 2;
	assert_int_equal(send(&w->a, wr, 8), 0);
	memcpy(&was, w->a.memory, 8);
	assert_int_equal(was, 40);
	assert_int_equal(*word, 42);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 41;
	wr.wr.atomic.swap = 1;
	assert_int_equal(send(&w->a, wr, 8), 0);
	assert_int_equal(*word, 42);
	wr.wr.atomic.compare_add = 42;
	assert_int_equal(send(&w->a, wr, 8), 0);
	assert_int_equal(*word, 1);
	assert_int_equal(take(&w->a).opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(take(&w->a).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(take(&w->a).opcode, IBV_WC_COMP_SWAP);
	/* BTH and AtomicETH; AETH and AtomicAckETH back */
	expect_counted(3, 3 * (6 + 7), 3, 3 * (6 + 3));
	assert_int_equal(eng_window_operations(w->a.engine), 3);
}

/* the address of the key is a multiple of 8, that of the memory is not */
static void no_atomic_across_words(void **state)
{
	struct world *w = granted(state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
	uint64_t va = (uintptr_t)w->b.memory / 8 * 8;

	shift = 4;
	assert_true(grant(w, 0, 8192));
	wr.wr.atomic.remote_addr = va + 1024;
	wr.wr.atomic.rkey = KEY;
	assert_int_equal(send(&w->a, wr, 8), 0);
	assert_int_equal(eng_window_operations(w->a.engine), 0);
	assert_true(by_wire(w));
	run(w);
	take(&w->a);
	write_to(w, 0, 8); /* all else is as ever */
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	shift = 0;
}

/* the general path does what the fast one does */
static void an_atomic_into_two_pieces(void **state)
{
	struct world *w = granted(state);
	char *memory = (char *)w->a.memory;
	struct ibv_sge sge[] = {{(uintptr_t)memory, 3, KEY}, {(uintptr_t)memory + 16, 5, KEY}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = sge,
				 .num_sge = 2, .send_flags = IBV_SEND_SIGNALED}, *bad;
	uint64_t *word = (uint64_t *)ALIGN_UP((uintptr_t)w->b.memory, (uintptr_t)8), was;

	*word = 0x0807060504030201;
	wr.wr.atomic.remote_addr = (uintptr_t)word;
	wr.wr.atomic.rkey = KEY;
	wr.wr.atomic.compare_add = 1;
	assert_int_equal(eng_post_send(w->a.qp, &wr, &bad, NULL), 0);
	assert_int_equal(take(&w->a).opcode, IBV_WC_FETCH_ADD);
	memcpy(&was, memory, 3);
	memcpy((char *)&was + 3, memory + 16, 5);
	assert_true(was == 0x0807060504030201);
	assert_true(*word == was + 1);
	expect_counted(1, 6 + 7, 1, 6 + 3);
}

/* each request of a list goes its own way, in the list's order */
static void a_list_of_both_kinds(void **state)
{
	struct world *w = granted(state);
	struct ibv_sge sge = {(uintptr_t)w->a.memory, 8, KEY};
	struct ibv_send_wr wr[3], *bad;
	const enum ibv_wr_opcode opcode[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_WRITE};

	recv_into(&w->b, 1, 4096, 64);
	for (unsigned i = 0; i < 3; i++) {
		wr[i] = (struct ibv_send_wr){.wr_id = i, .next = i < 2 ? &wr[i + 1] : NULL,
					     .sg_list = &sge, .num_sge = 1, .opcode = opcode[i],
					     .send_flags = IBV_SEND_SIGNALED};
		if (opcode[i] != IBV_WR_RDMA_WRITE)
			continue;
		wr[i].wr.rdma.remote_addr = (uintptr_t)w->b.memory + 64 * i;
		wr[i].wr.rdma.rkey = KEY;
	}
	assert_int_equal(eng_post_send(w->a.qp, wr, &bad, NULL), 0);
	assert_memory_equal(w->b.memory, w->a.memory, 8);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	run(w);
	assert_memory_equal(w->b.memory + 128, w->a.memory, 8);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(&w->a).wr_id, i);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
}

/* a GRH is 10 dwords more on every packet, there and back */
static void packets_with_and_without_a_grh(void **state)
{
	static struct abi_window_flow flow;
	struct abi_window_total t = {};

	flow.of[0] = (struct abi_window_count){.writes = 2, .write_dwords = 300, .write_more = 1};
	flow.of[1] = (struct abi_window_count){.reads = 1, .read_dwords = 300, .read_more = 1,
					       .long_reads = 1, .atomics = 1};
	abi_window_add_up(&flow, &t);
	assert_int_equal(t.requests, 4);
	assert_int_equal(t.packets, 3 + 2);
	assert_int_equal(t.dwords, (3 * 6 + 2 * 4 + 300) + (16 + 4) + (16 + 7));
	assert_int_equal(t.answer_packets, 2 + 2 + 1);
	assert_int_equal(t.answer_dwords, 2 * (6 + 1) + (2 * (16 + 1) + 300) + (16 + 3));
}

static void what_is_outside_goes_by_the_wire(void **state)
{
	struct world *w = granted(state);

	write_to(w, 8192 - 7, 8);
	assert_true(by_wire(w));
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	write_to(w, MEMORY, 8);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(eng_window_operations(w->a.engine), 0);
}

static void fill_cq(void *cq)
{
	for (uint64_t i = 0; !eng_cq_is_full(cq); i++)
		eng_cq_push(cq, &(struct ibv_wc){.wr_id = i}, false);
}

/* between two slices: another thread's turn */
static void others_fill_the_cq(void *side)
{
	eng_locked(((struct side *)side)->engine, fill_cq, ((struct side *)side)->cq);
}

static void a_cq_that_fills_during_a_copy_overruns(void **state)
{
	struct world *w = granted(state);
	size_t bytes = 2 * SLICE_BYTES;
	char *memory = calloc(2, bytes);
	struct eng_mr_attr mr = {.key = 0x202, .pd = 1, .addr = memory, .length = bytes,
				 .iova = (uintptr_t)memory};
	struct eng_grant g = w->a.qp->slot->g;
	struct ibv_sge sge = {(uintptr_t)memory, (uint32_t)bytes, 0x202};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc[2];

	g.va = 4096;
	g.length_bytes = bytes;
	g.base = memory + bytes;
	assert_true(eng_window_grant(w->a.engine, &g));
	assert_int_equal(eng_mr_add(w->a.engine, &mr), 0);
	memset(memory, 'w', bytes);
	wr.wr.rdma.remote_addr = g.va;
	wr.wr.rdma.rkey = KEY;
	w->a.engine->cfg.unlocked = others_fill_the_cq;
	w->a.engine->put_off = true;
	assert_int_equal(eng_post_send(w->a.qp, &wr, &bad, av_of), 0);
	assert_memory_equal(memory, memory + bytes, bytes);
	run(w);
	assert_int_equal(w->a.async_events, 2); /* the CQ's and its QP's */
	assert_int_equal(eng_cq_poll(w->a.cq, 2, wc), 2);
	assert_int_equal(wc[0].wr_id, 0);
	assert_int_equal(wc[1].wr_id, 1);
	assert_int_equal(eng_mr_del(w->a.engine, 0x202), 0);
	free(memory);
}

static void nothing_overtakes_what_is_unacknowledged(void **state)
{
	struct world *w = granted(state);

	recv_into(&w->b, 1, 4096, 64);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	write_to(w, 0, 8);
	assert_int_equal(eng_window_operations(w->a.engine), 0);
	run(w);
	assert_int_equal(take(&w->a).opcode, IBV_WC_SEND);
	assert_int_equal(take(&w->a).opcode, IBV_WC_RDMA_WRITE);
	write_to(w, 0, 8);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
}

static void a_filled_queue_is_held_and_done(void **state)
{
	struct world *w = *state;
	struct ibv_wc wc[64];

	fill(&w->a, 64);
	assert_true(asks == 0);
	write_to(w, 0, 8);
	write_to(w, 0, 8);
	assert_true(grant(w, 0, 8192));
	for (int i = 0; i < 30; i++)
		write_to(w, 0, 8);
	run(w);
	assert_int_equal(eng_cq_poll(w->a.cq, 64, wc), 32);
	for (int i = 0; i < 8; i++) { /* never empty, and never more than the queue takes */
		write_to(w, 0, 8);
		write_to(w, 8 * i, 8);
		run(w);
	}
	assert_int_equal(eng_cq_poll(w->a.cq, 64, wc), 16);
	for (int i = 0; i < 16; i++)
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
	assert_true(eng_window_operations(w->a.engine) > 0);
	assert_memory_equal(w->b.memory + 56, w->a.memory, 8);
}

/* four READs are under way, no more; two that wait go by the window that comes
 * meanwhile, and the SEND behind them by the wire */
static void what_waits_when_the_grant_comes_goes_by_it(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ};

	read.wr.rdma.remote_addr = (uintptr_t)w->b.memory;
	read.wr.rdma.rkey = KEY;
	fill(&w->b, 64);
	recv_into(&w->b, 1, 4096, 64);
	for (int i = 0; i < 6; i++)
		assert_int_equal(send(&w->a, read, 64), 0);
	assert_int_equal(send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
	assert_true(grant(w, 0, 8192));
	run(w);
	for (int i = 0; i < 6; i++)
		assert_int_equal(take(&w->a).opcode, IBV_WC_RDMA_READ);
	assert_int_equal(take(&w->a).opcode, IBV_WC_SEND);
	assert_int_equal(eng_window_operations(w->a.engine), 2);
	assert_memory_equal(w->a.memory, w->b.memory, 64);
}

static void hold(struct side *s)
{
	assert_true(tp_qp_hold(s->qp->tp));
	list_add_tail(&s->qp->held_node, &s->engine->held);
}

/* another queue, that waits until what it has sent is acknowledged */
static void hold_unacknowledged(struct side *s, uint32_t qpn)
{
	struct eng_qp *qp = s->qp;

	make_qp(s, IBV_QPT_RC, qpn, NULL);
	to_rts(s, 2, qpn);
	send(s, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	hold(s);
	s->qp = qp;
}

static void one_turn_finds_whoever_is_ready(void **state)
{
	struct world *w = granted(state);

	hold_unacknowledged(&w->a, 0x12);
	hold_unacknowledged(&w->a, 0x13);
	recv_into(&w->b, 1, 4096, 64);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	hold(&w->a);
	write_to(w, 0, 8);
	eng_tick(w->b.engine); /* acknowledges */
	assert_int_equal(eng_window_operations(w->a.engine), 0);
	assert_true(eng_tick(w->a.engine));
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	assert_int_equal(take(&w->a).opcode, IBV_WC_SEND);
	assert_int_equal(take(&w->a).opcode, IBV_WC_RDMA_WRITE);
}

static bool may_sleep(const struct world *w)
{
	return mono_before(clock_now, eng_wake_by(w->a.engine, clock_now));
}

/* A turn is bounded: what it leaves is done by the next, and who would sleep
 * instead is told so. A full CQ is for the program to empty. */
static void nobody_sleeps_while_requests_are_ready(void **state)
{
	struct world *w = granted(state);
	uint32_t room = w->a.cq->cqe;

	recv_into(&w->b, 1, 4096, 64);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	hold(&w->a);
	write_to(w, 0, 8);
	assert_true(may_sleep(w)); /* until the SEND is acknowledged */
	eng_tick(w->b.engine);
	w->a.qp->in_window = true;
	eng_tick(w->a.engine);
	assert_true(may_sleep(w)); /* another thread is at it */
	w->a.qp->in_window = false;
	assert_false(may_sleep(w));
	w->a.cq->cqe = 1;
	assert_true(may_sleep(w));
	w->a.cq->cqe = room;
	eng_tick(w->a.engine);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	assert_true(may_sleep(w));
}

static void expect_revoked(struct world *w)
{
	uint64_t before = eng_window_operations(w->a.engine);

	write_to(w, 0, 8);
	assert_true(by_wire(w));
	assert_int_equal(eng_window_operations(w->a.engine), before);
}

static void a_modified_qp_revokes_and_waits(void **state)
{
	struct world *w = granted(state);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(quiesces, 0);
	assert_int_equal(eng_qp_modify(w->b.qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(quiesces, 1);
	expect_revoked(w);
}

static void reset(struct side *s)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(eng_qp_modify(s->qp, &attr, IBV_QP_STATE), 0);
}

/* softibd's socket was full, say */
static void a_question_that_could_not_be_asked_is_asked_again(void **state)
{
	struct world *w = *state;

	unreachable = true;
	for (int i = 0; i < 2 + 8 && asks < 2; i++) {
		write_to(w, 0, 8);
		run(w);
		take(&w->a);
	}
	assert_int_equal(asks, 2);
	unreachable = false;
	for (int i = 0; i < 32 && asks < 3; i++) {
		write_to(w, 0, 8);
		run(w);
		take(&w->a);
	}
	assert_int_equal(asks, 3);
	assert_true(grant(w, 0, 8192));
	write_to(w, 0, 8);
	assert_false(by_wire(w));
}

/* B's QP and key are what they were, but A's is another's from now on */
static void another_peer_has_another_window(void **state)
{
	struct world *w = granted(state);
	uint32_t before;

	write_to(w, 0, 8);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	before = asked_for;
	reset(&w->a);
	to_rts(&w->a, 2, 0x33);
	expect_revoked(w);
	assert_false(grant(w, 0, 8192)); /* it was under way */
	write_to(w, 0, 8);
	assert_int_equal(asks, 2);
	assert_int_not_equal(asked_for, before);
	assert_true(grant(w, 0, 8192));
}

static void a_qp_in_error_revokes(void **state)
{
	struct world *w = granted(state);
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	const struct eng_grant g = w->a.qp->slot->g;
	struct eng_offer offer;

	/* B's own request fails: its QP goes to the error state by itself */
	wr.wr.rdma.remote_addr = (uintptr_t)w->a.memory;
	wr.wr.rdma.rkey = 0xbad;
	send(&w->b, wr, 8);
	run(w);
	assert_int_equal(take(&w->b).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, KEY, &offer), -EACCES);
	assert_int_not_equal(*g.qp_token, g.qp_value);
	/* A may be copying still, until somebody has waited for it */
	assert_int_equal(quiesces, 0);
	reset(&w->b);
	assert_int_equal(quiesces, 1);
	reset(&w->b);
	assert_int_equal(quiesces, 1);
}

static void memory_that_ends_revokes(void **state)
{
	struct world *w = granted(state);

	eng_token_give(w->b.engine, region_token);
	expect_revoked(w);
}

static void a_new_route_epoch_revokes(void **state)
{
	struct world *w = granted(state);

	atomic_store(&w->a.page->route_epoch, 1);
	expect_revoked(w);
	write_to(w, 0, 8);
	write_to(w, 0, 8);
	assert_int_equal(asks, 2);
}

static void memory_that_is_forgotten_is_not_used(void **state)
{
	struct world *w = granted(state);

	eng_window_forget(w->a.engine, 7, 2);
	write_to(w, 0, 8);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
	eng_window_forget(w->a.engine, 7, 1);
	expect_revoked(w);
}

static void what_may_be_offered(void **state)
{
	struct world *w = *state;
	struct eng_offer offer;
	struct eng_mr_attr mr = {.key = 0x202, .pd = 2, .addr = w->b.memory, .length = 64,
				 .access = IBV_ACCESS_REMOTE_READ};

	assert_int_equal(eng_window_offer(w->b.engine, 0x23, KEY, &offer), -EACCES);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, 0x102, &offer), -EACCES);
	assert_int_equal(eng_mr_add(w->b.engine, &mr), 0);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, 0x202, &offer), -EACCES);
	mr.key = 0x303;
	mr.pd = 1;
	assert_int_equal(eng_mr_add(w->b.engine, &mr), 0);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, 0x303, &offer), 0);
	assert_int_equal(offer.access, IBV_ACCESS_REMOTE_READ);
	assert_true(offer.token > 0);
	/* no more than the QP would do by packets */
	tp_qp_attr(w->b.qp->tp)->qp_access_flags = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, KEY, &offer), 0);
	assert_int_equal(offer.access, IBV_ACCESS_REMOTE_READ);
	tp_qp_attr(w->b.qp->tp)->qp_access_flags = 0;
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, KEY, &offer), -EACCES);
	tp_qp_attr(w->b.qp->tp)->qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	/* 9.7.4.1.2: of a depth of 0, no READ and no atomic */
	tp_qp_attr(w->b.qp->tp)->max_dest_rd_atomic = 0;
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, 0x303, &offer), -EACCES);
	assert_int_equal(eng_window_offer(w->b.engine, 0x22, KEY, &offer), 0);
	assert_int_equal(offer.access, IBV_ACCESS_REMOTE_WRITE);
}

static int one_sided(struct world *w, enum ibv_wr_opcode opcode, unsigned flags, uint32_t len)
{
	struct ibv_send_wr wr = {.opcode = opcode, .send_flags = flags};

	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory;
	wr.wr.rdma.rkey = KEY;
	return send(&w->a, wr, len);
}

/* what packets refuse, a window does not do: what each says of it is theirs */
static void what_packets_refuse_is_refused(void **state)
{
	struct world *w = granted(state);
	struct ibv_wc wc;

	assert_int_equal(one_sided(w, IBV_WR_RDMA_WRITE, IBV_SEND_INLINE, 65), -EINVAL);
	assert_int_equal(one_sided(w, IBV_WR_RDMA_READ, IBV_SEND_INLINE, 8), -EINVAL);
	tp_qp_attr(w->a.qp->tp)->max_rd_atomic = 0;
	assert_int_equal(one_sided(w, IBV_WR_RDMA_READ, 0, 8), 0);
	wc = take(&w->a);
	assert_int_equal(wc.status, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(eng_window_operations(w->a.engine), 0);
}

static void a_read_needs_the_right_to_write_here(void **state)
{
	struct world *w = granted(state);
	struct eng_mr_attr mr = {.key = KEY, .pd = 1, .addr = w->a.memory, .length = MEMORY,
				 .iova = (uintptr_t)w->a.memory};

	assert_int_equal(eng_mr_del(w->a.engine, KEY), 0);
	assert_int_equal(eng_mr_add(w->a.engine, &mr), 0);
	assert_int_equal(one_sided(w, IBV_WR_RDMA_WRITE, 0, 8), 0);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	assert_int_equal(one_sided(w, IBV_WR_RDMA_READ, 0, 8), 0);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(eng_window_operations(w->a.engine), 1);
}

static void what_a_rule_may_spoil_goes_by_the_wire(void **state)
{
	struct world *w = granted(state);

	atomic_store(&w->a.page->completion_faults, 1);
	atomic_store(&w->a.page->route_epoch, 1);
	expect_revoked(w);
	run(w);
	take(&w->a);
	assert_true(grant(w, 0, 8192));
	for (int i = 0; i < 2; i++) {
		write_to(w, 0, 8);
		assert_true(by_wire(w));
		run(w);
		take(&w->a);
	}
}

/* ... nor what has no room in its CQ, where others wait */
static void what_cannot_be_told_goes_by_the_wire(void **state)
{
	struct world *w = granted(state);
	uint32_t room = w->a.cq->cqe;

	w->a.cq->cqe = 0;
	write_to(w, 0, 8);
	assert_true(by_wire(w));
	w->a.cq->cqe = room;
	run(w);
	take(&w->a);
	assert_int_equal(eng_window_operations(w->a.engine), 0);
}

static void local_keys_are_checked(void **state)
{
	struct world *w = granted(state);

	assert_int_equal(eng_mr_del(w->a.engine, KEY), 0);
	write_to(w, 0, 8);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(eng_window_operations(w->a.engine), 0);
}

/* who armed his CQ is told, in the middle of a post as ever */
static void a_completion_wakes_who_waits(void **state)
{
	struct world *w = granted(state);

	eng_cq_arm(w->a.cq, false);
	write_to(w, 0, 8);
	assert_int_equal(w->a.cq_events, 1);
	assert_false(w->a.engine->put_off); /* what that put off is done */
	take(&w->a);
}

static void a_write_is_as_long_as_it_is(void **state)
{
	struct world *w = granted(state);

	for (uint32_t bytes = 1; bytes <= 16; bytes++) {
		memset(w->b.memory, 0xee, 32);
		write_to(w, 3, bytes);
		assert_memory_equal(w->b.memory + 3, w->a.memory, bytes);
		assert_int_equal(w->b.memory[2], 0xee);
		assert_int_equal(w->b.memory[3 + bytes], 0xee);
		assert_int_equal(take(&w->a).byte_len, bytes);
	}
	assert_int_equal(eng_window_operations(w->a.engine), 16);
}

/* words one behind the other, some of which nobody asks for; more than the CQ's ring has */
static void who_asks_has_a_completion(void **state)
{
	struct world *w = granted(state);
	struct ibv_sge sge = {(uintptr_t)w->a.memory, 8, KEY};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory;
	wr.wr.rdma.rkey = KEY;
	for (unsigned lot = 0; lot < 20; lot++) {
		for (wr.wr_id = 0; wr.wr_id < 30; wr.wr_id++) {
			wr.send_flags = wr.wr_id % 3 ? 0 : IBV_SEND_SIGNALED;
			assert_int_equal(eng_post_send(w->a.qp, &wr, &bad, av_of), 0);
		}
		for (unsigned i = 0; i < 30; i += 3)
			assert_int_equal(take(&w->a).wr_id, i);
		expect_empty(&w->a);
	}
	assert_int_equal(eng_window_operations(w->a.engine), 20 * 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(a_write_is_done_when_post_returns),
		FENCED(a_write_is_done_when_post_returns),
		FENCED(a_read_and_its_count),
		FENCED(atomics),
		BOTH(a_read_and_its_count),
		BOTH(atomics),
		BOTH(no_atomic_across_words),
		BOTH(an_atomic_into_two_pieces),
		BOTH(a_list_of_both_kinds),
		BOTH(packets_with_and_without_a_grh),
		BOTH(what_is_outside_goes_by_the_wire),
		BOTH(a_cq_that_fills_during_a_copy_overruns),
		BOTH(nothing_overtakes_what_is_unacknowledged),
		BOTH(a_filled_queue_is_held_and_done),
		BOTH(what_waits_when_the_grant_comes_goes_by_it),
		BOTH(one_turn_finds_whoever_is_ready),
		BOTH(nobody_sleeps_while_requests_are_ready),
		BOTH(a_modified_qp_revokes_and_waits),
		BOTH(another_peer_has_another_window),
		BOTH(a_question_that_could_not_be_asked_is_asked_again),
		BOTH(a_qp_in_error_revokes),
		BOTH(memory_that_ends_revokes),
		BOTH(a_new_route_epoch_revokes),
		BOTH(memory_that_is_forgotten_is_not_used),
		BOTH(what_may_be_offered),
		BOTH(local_keys_are_checked),
		BOTH(what_packets_refuse_is_refused),
		BOTH(a_read_needs_the_right_to_write_here),
		BOTH(what_a_rule_may_spoil_goes_by_the_wire),
		BOTH(what_cannot_be_told_goes_by_the_wire),
		BOTH(a_completion_wakes_who_waits),
		BOTH(a_write_is_as_long_as_it_is),
		BOTH(who_asks_has_a_completion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
