/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two engines and a wire between them: objects, posting, polling, events,
 * and packets that must not get in. The wire is a queue each way, the clock
 * stands still unless a test moves it.
 */
#include "world.h"

#include "engine/private.h"

/* --- data --- */

static void rc_send_arrives_once_at_both_ends(void **state)
{
	struct world *w = *state;
	struct ibv_wc wc;

	connect(w, IBV_QPT_RC);
	fill(&w->a, 5000);
	assert_int_equal(recv_into(&w->b, 77, 0, 8192), 0);
	assert_int_equal(send(&w->a, (struct ibv_send_wr){.wr_id = 5, .opcode = IBV_WR_SEND}, 5000), 0);
	run(w);
	wc = take(&w->b);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 5000);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.qp_num, 0x22);
	wc = take(&w->a);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 5);
	assert_memory_equal(w->a.memory, w->b.memory, 5000);
	expect_empty(&w->a);
	expect_empty(&w->b);
}

static void immediate_keeps_network_order(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	recv_into(&w->b, 1, 0, 64);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htobe32(0xa1b2c3d4)},
	     8);
	run(w);
	assert_int_equal(take(&w->b).imm_data, htobe32(0xa1b2c3d4));
}

static void rdma_write_and_read_move_bytes(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};

	connect(w, IBV_QPT_RC);
	fill(&w->a, 3000);
	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory + 100;
	wr.wr.rdma.rkey = 0x101;
	assert_int_equal(send(&w->a, wr, 3000), 0);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	assert_memory_equal(w->a.memory, w->b.memory + 100, 3000);
	memset(w->a.memory, 0, 3000);
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(send(&w->a, wr, 3000), 0);
	run(w);
	assert_int_equal(take(&w->a).opcode, IBV_WC_RDMA_READ);
	assert_memory_equal(w->a.memory, w->b.memory + 100, 3000);
}

/* a datagram from a to b */
static void send_datagram(struct world *w, uint32_t bytes)
{
	struct tp_av av = {.dlid = 2, .port_num = 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	wr.wr.ud.ah = (void *)&av;
	wr.wr.ud.remote_qpn = 0x22;
	wr.wr.ud.remote_qkey = 0x1234;
	assert_int_equal(send(&w->a, wr, bytes), 0);
	run(w);
}

static void ud_prepends_room_for_the_grh(void **state)
{
	struct world *w = *state;
	struct ibv_wc wc;

	connect(w, IBV_QPT_UD);
	fill(&w->a, 64);
	recv_into(&w->b, 1, 0, 200);
	send_datagram(w, 64);
	wc = take(&w->b);
	assert_int_equal(wc.byte_len, 104);
	assert_int_equal(wc.src_qp, 0x11);
	assert_int_equal(wc.slid, 1);
	assert_memory_equal(w->a.memory, w->b.memory + 40, 64);
}

/* --- what must not get in --- */

static void rkey_of_another_pd_is_refused(void **state)
{
	struct world *w = *state;
	struct eng_mr_attr other = {.key = 0x202,
				    .pd = 2,
				    .addr = w->b.memory,
				    .length = 64,
				    .iova = 0,
				    .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma.rkey = 0x202};

	connect(w, IBV_QPT_RC);
	assert_int_equal(eng_mr_add(w->b.engine, &other), 0);
	fill(&w->a, 8);
	send(&w->a, wr, 8);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(w->b.memory[1], 0);
	assert_int_equal(w->b.last_async, IBV_EVENT_QP_ACCESS_ERR);
}

static void bounds_are_exact(void **state)
{
	struct world *w = *state;
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE, .wr.rdma.rkey = 0x101};

	connect(w, IBV_QPT_RC);
	wr.wr.rdma.remote_addr = (uintptr_t)w->b.memory + MEMORY - 8;
	send(&w->a, wr, 8);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	wr.wr.rdma.remote_addr++;
	send(&w->a, wr, 8);
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_REM_ACCESS_ERR);
}

static void foreign_pkey_is_dropped(void **state)
{
	struct world *w = *state;
	struct eng_stats stats;

	connect(w, IBV_QPT_RC);
	w->b.page->port[0].pkey[0] = 0x8001;
	recv_into(&w->b, 1, 0, 64);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	run(w);
	expect_empty(&w->b);
	eng_stats(w->b.engine, &stats);
	assert_int_equal(stats.rx_bad_pkey, 1);
}

/* what QP1 of b receives */
static void send_to_gsi(struct world *w)
{
	recv_into(&w->b, 1, 0, 128);
	w->b.qp->init.qpn = 1;
	send_datagram(w, 8);
	w->b.qp->init.qpn = 0x22;
}

/* C9-34. The completion says by which of the port's keys the message came. */
static void a_gsi_qp_receives_by_any_key_of_the_port(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_UD);
	w->b.page->port[0].pkey[0] = 0x8001;
	w->b.page->port[0].pkey[3] = PKEY;
	send_to_gsi(w);
	assert_int_equal(take(&w->b).pkey_index, 3);
	w->b.page->port[0].pkey[3] = 0x8002;
	send_to_gsi(w);
	expect_empty(&w->b);
}

static void two_limited_members_do_not_talk(void **state)
{
	struct world *w = *state;

	w->a.page->port[0].pkey[0] = 0x7fff;
	w->b.page->port[0].pkey[0] = 0x7fff;
	connect(w, IBV_QPT_RC);
	recv_into(&w->b, 1, 0, 64);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	run(w);
	expect_empty(&w->b);
}

static void garbage_is_counted_not_believed(void **state)
{
	struct world *w = *state;
	struct eng_stats stats;

	connect(w, IBV_QPT_RC);
	for (unsigned i = 0; i < 100; i++) {
		struct cable *c = &w->b.in;
		unsigned slot = c->tail % WIRE_PACKETS;

		for (unsigned j = 0; j < 60; j++)
			c->packet[slot].bytes[j] = (uint8_t)(i * j + i);
		c->packet[slot].len = i % 60;
		c->tail++;
	}
	run(w);
	eng_stats(w->b.engine, &stats);
	assert_int_equal(stats.rx_malformed + stats.rx_no_qp + stats.rx_bad_pkey, 100);
}

static void silent_peer_ends_in_retry_exceeded(void **state)
{
	struct world *w = *state;
	struct ibv_wc wc;

	connect(w, IBV_QPT_RC);
	eng_qp_destroy(w->b.qp);
	send(&w->a, (struct ibv_send_wr){.wr_id = 9, .opcode = IBV_WR_SEND}, 8);
	for (int i = 0; i < 20 && eng_cq_poll(w->a.cq, 1, &wc) == 0; i++) {
		run(w);
		assert_true(eng_expiry(w->a.engine).ns != MONO_NEVER.ns);
		clock_now = mono_add(clock_now, 200 * NSEC_PER_MSEC);
		wc.status = IBV_WC_GENERAL_ERR;
		eng_tick(w->a.engine);
	}
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(wc.wr_id, 9);
}

/* --- queues --- */

static void full_wire_holds_packets_back_and_loses_none(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_UC);
	fill(&w->a, 20000);
	recv_into(&w->b, 1, 0, 20000);
	w->b.in.limit = 3;
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 20000);
	assert_false(eng_idle(w->a.engine));
	run(w);
	assert_true(eng_idle(w->a.engine));
	assert_int_equal(take(&w->b).byte_len, 20000);
	assert_memory_equal(w->a.memory, w->b.memory, 20000);
}

static void cq_overrun_is_an_error(void **state)
{
	struct world *w = *state;
	struct eng_cq *small;
	struct eng_cq *keep = w->b.cq;
	struct ibv_qp_attr attr;
	struct ibv_wc wc[4];

	assert_int_equal(eng_cq_create(w->b.engine, 2, &w->b, &small), 0);
	w->b.cq = small;
	connect(w, IBV_QPT_UC);
	for (int i = 0; i < 3; i++) {
		recv_into(&w->b, (uint64_t)i, 0, 8);
		send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	}
	run(w);
	assert_int_equal(w->b.async_events, 2); /* the CQ's and its QP's */
	assert_int_equal(w->b.last_async, IBV_EVENT_QP_FATAL);
	eng_qp_query(w->b.qp, &attr);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(eng_cq_poll(small, 4, wc), 2);
	assert_int_equal(eng_cq_poll(small, 4, wc), -EIO);
	eng_qp_destroy(w->b.qp);
	assert_int_equal(eng_cq_destroy(small), 0);
	w->b.cq = keep;
}

/* it overran in a post: its QP is to go to ERR in the engine's next turn */
static void a_qp_that_is_reset_after_an_overrun_stays_so(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct world *w = *state;
	struct eng_cq *keep = w->a.cq, *small;

	assert_int_equal(eng_cq_create(w->a.engine, 1, &w->a, &small), 0);
	w->a.cq = small;
	connect(w, IBV_QPT_UC);
	for (int i = 0; i < 2; i++)
		send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	assert_int_equal(w->a.last_async, IBV_EVENT_QP_FATAL);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_STATE), 0);
	run(w);
	eng_qp_query(w->a.qp, &attr);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	eng_qp_destroy(w->a.qp);
	assert_int_equal(eng_cq_destroy(small), 0);
	w->a.cq = keep;
}

static void arming_reports_once_and_solicited_only_when_asked(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	for (int i = 0; i < 4; i++)
		recv_into(&w->b, 1, 0, 8);
	eng_cq_arm(w->b.cq, true);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	run(w);
	assert_int_equal(w->b.cq_events, 0);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SOLICITED}, 8);
	run(w);
	assert_int_equal(w->b.cq_events, 1);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SOLICITED}, 8);
	run(w);
	assert_int_equal(w->b.cq_events, 1);
	eng_cq_arm(w->b.cq, false);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	run(w);
	assert_int_equal(w->b.cq_events, 2);
	assert_int_equal(eng_cq_pending(w->b.cq), 4);
}

static void exchange(struct world *w, unsigned flags)
{
	recv_into(&w->b, 1, 0, 8);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND, .send_flags = flags}, 8);
	run(w);
}

/* Adapters do so: who arms behind its last poll may sleep. */
static void arming_tells_of_what_waits_already(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 0);
	eng_cq_arm(w->b.cq, false);
	assert_int_equal(w->b.cq_events, 1);
	assert_false(w->b.engine->put_off); /* the callbacks without the lock were called */
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 1); /* once for each arming */
	eng_cq_arm(w->b.cq, false);
	assert_int_equal(w->b.cq_events, 2); /* of the second entry nobody was told */
}

/* Event, arm, poll: the usual order has no second event for the same completion. */
static void arming_tells_nothing_twice(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	eng_cq_arm(w->b.cq, false);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 1);
	eng_cq_arm(w->b.cq, false);
	take(&w->b);
	assert_int_equal(w->b.cq_events, 1);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 2);
}

/* Three completions, or a microsecond from the first of them on. */
static void a_moderated_event_waits_for_completions(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	eng_cq_moderate(w->b.cq, 3, NSEC_PER_USEC);
	eng_cq_arm(w->b.cq, false);
	exchange(w, 0);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 0);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 1);
	/* those that wait in the CQ count, and no arming counts them twice */
	take(&w->b);
	eng_cq_arm(w->b.cq, false);
	eng_cq_arm(w->b.cq, false);
	assert_int_equal(w->b.cq_events, 1);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 2);
}

static void a_moderated_event_waits_no_longer_than_it_may(void **state)
{
	struct world *w = *state;
	mono_t by;

	connect(w, IBV_QPT_RC);
	eng_cq_moderate(w->b.cq, 3, NSEC_PER_USEC);
	eng_cq_arm(w->b.cq, false);
	by = mono_add(clock_now, NSEC_PER_USEC);
	exchange(w, 0);
	assert_int_equal(eng_expiry(w->b.engine).ns, by.ns);
	clock_now = mono_add(clock_now, NSEC_PER_USEC - 1);
	eng_tick(w->b.engine);
	assert_int_equal(w->b.cq_events, 0);
	clock_now = by;
	eng_tick(w->b.engine);
	assert_int_equal(w->b.cq_events, 1);
	/* who ends it waits for nothing any more */
	eng_cq_arm(w->b.cq, false);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 1);
	eng_cq_moderate(w->b.cq, 3, 0);
	assert_int_equal(w->b.cq_events, 2);
	eng_cq_arm(w->b.cq, false);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 3);
}

/* Both ends of a run of an engine's life: the CQ goes while its event waits. */
static void a_cq_goes_while_its_event_waits(void **state)
{
	struct world *w = *state;
	struct eng_cq *keep = w->a.cq, *cq;

	assert_int_equal(eng_cq_create(w->a.engine, 4, NULL, &cq), 0);
	eng_cq_moderate(cq, 3, NSEC_PER_USEC);
	w->a.cq = cq;
	connect(w, IBV_QPT_RC);
	w->a.cq = keep;
	eng_cq_arm(cq, false);
	recv_into(&w->b, 1, 0, 8);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED}, 8);
	run(w);
	eng_qp_destroy(w->a.qp);
	w->a.qp = NULL;
	assert_int_equal(eng_cq_destroy(cq), 0);
	clock_now = mono_add(clock_now, NSEC_PER_SEC);
	eng_tick(w->a.engine);
	assert_int_equal(w->a.cq_events, 0);
}

static void arming_tells_of_what_a_poll_left(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	for (int i = 0; i < 3; i++)
		exchange(w, 0);
	eng_cq_arm(w->b.cq, false);
	assert_int_equal(w->b.cq_events, 1); /* it told of all three */
	eng_cq_arm(w->b.cq, false);
	assert_int_equal(w->b.cq_events, 1);
	take(&w->b);
	eng_cq_arm(w->b.cq, false);
	assert_int_equal(w->b.cq_events, 2);
	take(&w->b);
	take(&w->b);
	eng_cq_arm(w->b.cq, false);
	assert_int_equal(w->b.cq_events, 2);
}

static void arming_for_so_many_waits_for_them(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	eng_cq_arm_for(w->b.cq, 2);
	exchange(w, IBV_SEND_SOLICITED);
	assert_int_equal(w->b.cq_events, 0);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 1);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 1); /* once */
	eng_cq_arm_for(w->b.cq, 3); /* they are there */
	assert_int_equal(w->b.cq_events, 2);
	eng_cq_arm_for(w->b.cq, 9);
	eng_cq_arm_for(w->b.cq, 5); /* the earlier one counts */
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 2);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 3);
	eng_cq_arm_for(w->b.cq, 60);
	eng_cq_arm(w->b.cq, false); /* the next one, and nothing else */
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 4);
}

static void arming_for_solicited_ones_looks_for_these(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	exchange(w, 0);
	eng_cq_arm(w->b.cq, true);
	assert_int_equal(w->b.cq_events, 0);
	eng_cq_arm(w->b.cq, false); /* wider: it does count */
	assert_int_equal(w->b.cq_events, 1);
	exchange(w, IBV_SEND_SOLICITED);
	exchange(w, 0);
	eng_cq_arm(w->b.cq, true);
	assert_int_equal(w->b.cq_events, 2);
	take(&w->b);
	take(&w->b); /* the solicited one */
	eng_cq_arm(w->b.cq, true);
	assert_int_equal(w->b.cq_events, 2);
	take(&w->b);
	eng_cq_arm(w->b.cq, false); /* of the widest that was asked for */
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 3);
	take(&w->b);
	recv_into(&w->b, 9, 0, 8);
	assert_int_equal(eng_qp_modify(w->b.qp, &attr, IBV_QP_STATE), 0);
	run(w);
	assert_int_equal(eng_cq_pending(w->b.cq), 1);
	eng_cq_arm(w->b.cq, true); /* flushed: in error */
	assert_int_equal(w->b.cq_events, 4);
}

/* 11.4.2.2: of two requests the wider one holds, whichever comes first */
static void arming_for_solicited_ones_narrows_nothing(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	eng_cq_arm(w->b.cq, false);
	eng_cq_arm(w->b.cq, true);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 1);
	take(&w->b);
	eng_cq_arm(w->b.cq, true);
	eng_cq_arm(w->b.cq, false);
	exchange(w, 0);
	assert_int_equal(w->b.cq_events, 2);
}

/* A CQ has the entries that were asked for, though its ring may have more. */
static void a_cq_has_no_more_entries_than_were_asked_for(void **state)
{
	struct world *w = *state;
	struct ibv_wc wc = {.qp_num = 0x4711};
	struct eng_cq *cq;

	assert_int_equal(eng_cq_create(w->a.engine, 3, &w->a, &cq), 0);
	for (int i = 0; i < 3; i++)
		eng_cq_push(cq, &wc, false);
	assert_int_equal(w->a.async_events, 0);
	eng_cq_push(cq, &wc, false);
	assert_int_equal(w->a.async_events, 1);
	assert_int_equal(w->a.last_async, IBV_EVENT_CQ_ERR);
	assert_int_equal(eng_cq_pending(cq), 3);
	assert_int_equal(eng_cq_destroy(cq), 0);
}

/* C10-59: who lets others write may write itself */
static void a_region_for_remote_writing_is_one_for_local_writing(void **state)
{
	struct world *w = *state;
	struct eng_mr_attr mr = {.key = 0x401, .pd = 1, .addr = w->a.memory, .length = 64};

	mr.access = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(eng_mr_add(w->a.engine, &mr), -EINVAL);
	mr.access = IBV_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(eng_mr_add(w->a.engine, &mr), -EINVAL);
	mr.access = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;
	assert_int_equal(eng_mr_add(w->a.engine, &mr), 0);
	mr.key = 0x501;
	mr.access = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(eng_mr_add(w->a.engine, &mr), 0);
	mr.key = 0x601;
	mr.iova = UINT64_MAX - 62; /* it would wrap */
	assert_int_equal(eng_mr_add(w->a.engine, &mr), -EINVAL);
}

/* What was told stays told when the ring moves; when a QP takes its completions along, the
 * rest may be told again. */
static void resizing_and_cleaning_lose_no_event(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	exchange(w, 0);
	take(&w->b);
	exchange(w, IBV_SEND_SOLICITED);
	eng_cq_arm(w->b.cq, true);
	assert_int_equal(w->b.cq_events, 1);
	assert_int_equal(eng_cq_resize(w->b.cq, 100), 0);
	eng_cq_arm(w->b.cq, true);
	assert_int_equal(w->b.cq_events, 1);
	exchange(w, 0);
	assert_int_equal(eng_cq_resize(w->b.cq, 64), 0);
	eng_cq_arm(w->b.cq, true);
	assert_int_equal(w->b.cq_events, 2);
	for (int i = 0; i < 2; i++)
		eng_cq_push(w->b.cq, &(struct ibv_wc){.qp_num = 0x4711}, true);
	eng_qp_destroy(w->b.qp); /* it takes two of four: as many as were told are left */
	w->b.qp = NULL;
	assert_int_equal(eng_cq_pending(w->b.cq), 2);
	eng_cq_arm(w->b.cq, true);
	assert_int_equal(w->b.cq_events, 3);
}

static enum ibv_wc_status fetch_add(struct world *w, uint32_t key, uint64_t va)
{
	connect(w, IBV_QPT_RC);
	assert_int_equal(send(&w->a, (struct ibv_send_wr){
					     .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
					     .wr.atomic = {.remote_addr = va, .compare_add = 1,
							   .rkey = key}}, 8), 0);
	run(w);
	return take(&w->a).status;
}

static void disconnect(struct world *w)
{
	eng_qp_destroy(w->a.qp);
	eng_qp_destroy(w->b.qp);
}

/* Keys whose addresses are shifted against memory: the address on the wire has to be
 * aligned, and what it stands for as well. */
static void an_atomic_is_aligned_on_both_sides(void **state)
{
	struct world *w = *state;
	uint8_t *word = (uint8_t *)ALIGN_UP((uintptr_t)w->b.memory, (uintptr_t)8);
	struct eng_mr_attr mr = {.key = 0x201, .pd = 1, .addr = word, .length = 64,
				 .iova = 0x100004,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
	uint8_t before[64];

	memcpy(before, word, sizeof(before));
	assert_int_equal(eng_mr_add(w->b.engine, &mr), 0);
	assert_int_equal(fetch_add(w, 0x201, 0x100004), IBV_WC_REM_INV_REQ_ERR);
	disconnect(w);
	assert_int_equal(fetch_add(w, 0x201, 0x100008), IBV_WC_REM_INV_REQ_ERR);
	disconnect(w);
	assert_memory_equal(before, word, sizeof(before));
	mr.key = 0x301;
	mr.iova = 0x200000;
	assert_int_equal(eng_mr_add(w->b.engine, &mr), 0);
	assert_int_equal(fetch_add(w, 0x301, 0x200008), IBV_WC_SUCCESS);
	assert_int_equal(word[8], before[8] + 1);
}

/* The adapter's page says the shortest ACK time-out of its QPs. */
static void the_device_has_a_shortest_ack_timeout(void **state)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .timeout = 5};
	struct world *w = *state;

	w->a.page->min_ack_timeout_us = 4000;
	connect(w, IBV_QPT_RC);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT), 0);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	eng_tick(w->a.engine);
	assert_int_equal(tp_qp_expiry(w->a.qp->tp).ns - clock_now.ns, 2 * 4 * NSEC_PER_MSEC);
	eng_qp_query(w->a.qp, &attr);
	assert_int_equal(attr.timeout, 5);
}

static void resize_keeps_completions(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_UC);
	for (int i = 0; i < 5; i++)
		send(&w->a, (struct ibv_send_wr){.wr_id = (uint64_t)i, .opcode = IBV_WR_SEND}, 8);
	run(w);
	assert_int_equal(eng_cq_resize(w->a.cq, 4), -EINVAL);
	assert_int_equal(eng_cq_resize(w->a.cq, 1000), 0);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(take(&w->a).wr_id, i);
}

static void destroyed_qp_leaves_no_completion(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_UC);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	run(w);
	assert_int_equal(eng_cq_destroy(w->a.cq), -EBUSY);
	eng_qp_destroy(w->a.qp);
	expect_empty(&w->a);
}

static void srq_serves_and_warns_at_its_limit(void **state)
{
	struct world *w = *state;
	struct ibv_sge sge = {(uintptr_t)w->b.memory, 64, 0x101};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	uint32_t limit = 3, max_wr, max_sge;
	struct eng_srq *srq;

	assert_int_equal(eng_srq_create(w->b.engine, 1, 8, 1, 0, &w->b, &srq), 0);
	make_qp(&w->a, IBV_QPT_RC, 0x11, NULL);
	make_qp(&w->b, IBV_QPT_RC, 0x22, srq);
	to_rts(&w->a, 2, 0x22);
	to_rts(&w->b, 1, 0x11);
	for (wr.wr_id = 0; wr.wr_id < 4; wr.wr_id++)
		assert_int_equal(eng_srq_post_recv(srq, &wr, &bad), 0);
	assert_int_equal(eng_srq_modify(srq, NULL, &limit), 0);
	for (int i = 0; i < 3; i++)
		send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	run(w);
	assert_int_equal(w->b.async_events - (w->b.last_async == IBV_EVENT_COMM_EST), 1);
	eng_srq_query(srq, &max_wr, &max_sge, &limit);
	assert_int_equal(limit, 0);
	assert_int_equal(eng_srq_destroy(srq), -EBUSY);
	eng_qp_destroy(w->b.qp);
	assert_int_equal(eng_srq_destroy(srq), 0);
}

static bool is_draining(struct side *s)
{
	struct ibv_qp_attr attr;

	eng_qp_query(s->qp, &attr);
	return attr.sq_draining;
}

static void to_sqd(struct side *s, struct ibv_qp_attr attr, int mask)
{
	attr.qp_state = IBV_QPS_SQD;
	assert_int_equal(eng_qp_modify(s->qp, &attr, IBV_QP_STATE | mask), 0);
}

static void a_queue_drains_until_all_is_acknowledged(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	assert_false(is_draining(&w->a));
	recv_into(&w->b, 1, 0, 64);
	send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	to_sqd(&w->a, (struct ibv_qp_attr){}, 0);
	assert_true(is_draining(&w->a));
	run(w);
	assert_false(is_draining(&w->a));
	take(&w->a);
}

static void being_drained_is_told_to_who_asked(void **state)
{
	static const struct {
		int notify, mask;
	} cases[] = {{0, 0},
		     {1, 0},
		     {0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
		     {1, IBV_QP_EN_SQD_ASYNC_NOTIFY},
		     {0, 0}};
	struct world *w = *state;

	connect(w, IBV_QPT_RC);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_attr attr = {.en_sqd_async_notify = (uint8_t)cases[i].notify};

		w->a.async_events = 0;
		recv_into(&w->b, i, 0, 64);
		send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
		to_sqd(&w->a, attr, cases[i].mask);
		to_sqd(&w->a, (struct ibv_qp_attr){}, 0); /* once more changes nothing */
		run(w);
		assert_int_equal(w->a.async_events, cases[i].notify && cases[i].mask);
		attr.qp_state = IBV_QPS_RTS;
		assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_STATE), 0);
	}
	assert_int_equal(w->a.last_async, IBV_EVENT_SQ_DRAINED);
}

static void too_many_requests_are_refused_at_the_right_one(void **state)
{
	struct world *w = *state;
	struct ibv_recv_wr wr[40], *bad = NULL;

	connect(w, IBV_QPT_RC);
	for (int i = 0; i < 40; i++)
		wr[i] = (struct ibv_recv_wr){.next = i < 39 ? &wr[i + 1] : NULL};
	assert_int_equal(eng_post_recv(w->b.qp, wr, &bad), -ENOMEM);
	assert_ptr_equal(bad, &wr[32]);
}

static const union wire_gid group = {.raw = {0xff, 0x12, [15] = 9}};

/* 16 bytes from @w->a to the group, as datagrams go by its first LID */
static void send_to_group(struct world *w)
{
	struct tp_av av = {.dlid = 0xc001, .port_num = 1, .is_global = true, .dgid = group};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND,
		.wr.ud = {.ah = (void *)&av,
			  .remote_qpn = WIRE_QPN_MULTICAST,
			  .remote_qkey = 0x1234}};

	send(&w->a, wr, 16);
	run(w);
}

static void multicast_reaches_every_attached_qp(void **state)
{
	struct world *w = *state;
	struct eng_qp *first;

	connect(w, IBV_QPT_UD);
	first = w->b.qp;
	recv_into(&w->b, 1, 0, 200);
	assert_int_equal(eng_qp_attach_mcast(w->b.qp, &group, 0xc001), 0);
	make_qp(&w->b, IBV_QPT_UD, 0x23, NULL);
	to_rts(&w->b, 1, 0);
	recv_into(&w->b, 2, 0, 200);
	assert_int_equal(eng_qp_attach_mcast(w->b.qp, &group, 0xc001), 0);
	send_to_group(w);
	assert_int_equal(eng_cq_pending(w->b.cq), 2);
	assert_int_equal(eng_qp_detach_mcast(first, &group, 0xc001), 0);
	assert_int_equal(eng_qp_detach_mcast(first, &group, 0xc001), -EINVAL);
}

static void a_qp_may_block_its_own_multicast(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_UD);
	make_qp(&w->b, IBV_QPT_UD, w->a.qp->init.qpn, NULL);
	w->b.qp->init.blocks_own_multicast = true;
	to_rts(&w->b, 1, 0);
	recv_into(&w->b, 1, 0, 200);
	recv_into(&w->b, 2, 0, 200);
	assert_int_equal(eng_qp_attach_mcast(w->b.qp, &group, 0xc001), 0);
	send_to_group(w);
	assert_int_equal(eng_cq_pending(w->b.cq), 1); /* of its number, at another port */
	w->b.page->port[0].lid = w->a.page->port[0].lid;
	send_to_group(w);
	assert_int_equal(eng_cq_pending(w->b.cq), 1);
	w->b.qp->init.blocks_own_multicast = false;
	send_to_group(w);
	assert_int_equal(eng_cq_pending(w->b.cq), 2);
}

/* each LID of a group is attached and detached by itself */
static void a_qp_has_a_datagram_of_two_lids_once(void **state)
{
	struct world *w = *state;

	connect(w, IBV_QPT_UD);
	for (int i = 0; i < 4; i++)
		recv_into(&w->b, 1, 0, 200);
	assert_int_equal(eng_qp_attach_mcast(w->b.qp, &group, 0xc001), 0);
	assert_int_equal(eng_qp_attach_mcast(w->b.qp, &group, 0xc002), 0);
	send_to_group(w);
	assert_int_equal(eng_cq_pending(w->b.cq), 1);
	assert_int_equal(eng_qp_detach_mcast(w->b.qp, &group, 0xc001), 0);
	send_to_group(w);
	assert_int_equal(eng_cq_pending(w->b.cq), 2);
}

static void illegal_transitions_change_nothing(void **state)
{
	struct world *w = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	make_qp(&w->a, IBV_QPT_RC, 0x11, NULL);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_STATE), -EINVAL);
	eng_qp_query(w->a.qp, &attr);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 2};
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_STATE | IBV_QP_PORT), -EINVAL);
}

static void settle_inside(void *engine)
{
	assert_false(eng_settle(engine, NULL));
}

/* as exit() in a signal handler does it, when the handler came at a bad moment */
static void nothing_settles_while_its_thread_is_inside(void **state)
{
	struct world *w = *state;
	struct engine *e = w->a.engine;

	e->lock.barrier = no_barrier;
	for (int i = 0; i < 1000; i++) /* it owns the bias in the end */
		eng_locked(e, settle_inside, e);
	assert_true(e->lock.bias_owner == eng_lock_self());
	assert_true(eng_settle(e, NULL));
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(rc_send_arrives_once_at_both_ends),
		CASE(immediate_keeps_network_order),
		CASE(rdma_write_and_read_move_bytes),
		CASE(ud_prepends_room_for_the_grh),
		CASE(rkey_of_another_pd_is_refused),
		CASE(bounds_are_exact),
		CASE(foreign_pkey_is_dropped),
		CASE(a_gsi_qp_receives_by_any_key_of_the_port),
		CASE(two_limited_members_do_not_talk),
		CASE(garbage_is_counted_not_believed),
		CASE(silent_peer_ends_in_retry_exceeded),
		CASE(full_wire_holds_packets_back_and_loses_none),
		CASE(cq_overrun_is_an_error),
		CASE(a_qp_that_is_reset_after_an_overrun_stays_so),
		CASE(arming_reports_once_and_solicited_only_when_asked),
		CASE(arming_tells_of_what_waits_already),
		CASE(arming_tells_nothing_twice),
		CASE(a_moderated_event_waits_for_completions),
		CASE(a_moderated_event_waits_no_longer_than_it_may),
		CASE(a_cq_goes_while_its_event_waits),
		CASE(arming_tells_of_what_a_poll_left),
		CASE(arming_for_solicited_ones_looks_for_these),
		CASE(arming_for_so_many_waits_for_them),
		CASE(resizing_and_cleaning_lose_no_event),
		CASE(the_device_has_a_shortest_ack_timeout),
		CASE(arming_for_solicited_ones_narrows_nothing),
		CASE(a_cq_has_no_more_entries_than_were_asked_for),
		CASE(a_region_for_remote_writing_is_one_for_local_writing),
		CASE(an_atomic_is_aligned_on_both_sides),
		CASE(resize_keeps_completions),
		CASE(destroyed_qp_leaves_no_completion),
		CASE(a_queue_drains_until_all_is_acknowledged),
		CASE(being_drained_is_told_to_who_asked),
		CASE(srq_serves_and_warns_at_its_limit),
		CASE(too_many_requests_are_refused_at_the_right_one),
		CASE(multicast_reaches_every_attached_qp),
		CASE(a_qp_may_block_its_own_multicast),
		CASE(a_qp_has_a_datagram_of_two_lids_once),
		CASE(illegal_transitions_change_nothing),
		CASE(nothing_settles_while_its_thread_is_inside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
