/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the other end of a lane says: that it has no receive yet, and what is
 * not its to say.
 */
#include "lanes.h"
#include "transport/qp.h"

/* RNR: the message comes again when there is a receive */
static void a_message_waits_for_its_receive(void **state)
{
	struct joined *j = join();
	struct ibv_wc wc;

	fill(&j->w->a, 8);
	send(&j->w->a, (struct ibv_send_wr){.wr_id = 1, .opcode = IBV_WR_SEND}, 8);
	send(&j->w->a, (struct ibv_send_wr){.wr_id = 2, .opcode = IBV_WR_SEND}, 8);
	run(j->w);
	expect_empty(&j->w->b);
	recv_into(&j->w->b, 8, 0, 64);
	recv_into(&j->w->b, 9, 0, 64);
	clock_now = mono_add(clock_now, NSEC_PER_SEC);
	run(j->w);
	for (unsigned i = 0; i < 2; i++) {
		wc = take(&j->w->b);
		assert_int_equal(wc.wr_id, 8 + i);
		assert_int_equal(wc.byte_len, 8);
		assert_int_equal(take(&j->w->a).wr_id, 1 + i);
	}
	part(j);
}

/* the peer's wait is counted from when it asked for it, not from when this side,
 * which had nothing to do, last looked at the clock */
static void a_wait_after_idleness_is_a_whole_one(void **state)
{
	struct joined *j = join();

	tp_qp_attr(j->w->b.qp->tp)->min_rnr_timer_enc = 0; /* 655 ms */
	clock_now = mono_add(clock_now, 2 * (uint64_t)NSEC_PER_SEC);
	send(&j->w->a, (struct ibv_send_wr){.wr_id = 1, .opcode = IBV_WR_SEND}, 8);
	eng_tick(j->w->b.engine); /* answers before A looks */
	run(j->w);
	expect_empty(&j->w->a);
	assert_int_equal(by_lane(j), 1); /* it was not sent again */
	recv_into(&j->w->b, 8, 0, 64);
	clock_now = mono_add(clock_now, NSEC_PER_SEC);
	run(j->w);
	assert_int_equal(take(&j->w->b).wr_id, 8);
	assert_int_equal(take(&j->w->a).status, IBV_WC_SUCCESS);
	part(j);
}

/* what was known of a header is forgotten with the QP's attributes, its key's
 * partition, the QP itself */
static void what_is_known_of_a_header_ends(void **state)
{
	const struct exchange x = {{.opcode = IBV_WR_SEND}, 8};
	const struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct joined *j = join();
	struct eng_stats stats;
	struct ibv_wc wc[2];

	make(j->w, &x, wc);
	make(j->w, &x, wc); /* as one that is known */
	j->w->b.page->port[0].pkey[0] = 0x8001;
	recv_into(&j->w->b, 1, 0, 64);
	send(&j->w->a, wr, 8);
	run(j->w);
	expect_empty(&j->w->b);
	eng_stats(j->w->b.engine, &stats);
	assert_int_equal(stats.rx_bad_pkey, 1);
	j->w->b.page->port[0].pkey[0] = PKEY;
	eng_qp_destroy(j->w->b.qp);
	make_qp(&j->w->b, IBV_QPT_RC, 0x22, NULL);
	to_rts(&j->w->b, 1, 0x12); /* connected to another */
	recv_into(&j->w->b, 1, 0, 64);
	send(&j->w->a, wr, 8);
	run(j->w);
	expect_empty(&j->w->b);
	eng_stats(j->w->b.engine, &stats);
	assert_int_equal(stats.rx_malformed, 1);
	eng_qp_destroy(j->w->b.qp);
	send(&j->w->a, wr, 8);
	run(j->w);
	eng_stats(j->w->b.engine, &stats);
	assert_int_equal(stats.rx_no_qp, 1);
	make_qp(&j->w->b, IBV_QPT_RC, 0x22, NULL); /* for teardown */
	part(j);
}

/* a P_Key that the QP hears, but not the one of which softibd said that the
 * sender's port has it; said by the first record or by one whose like is known */
static void a_partition_is_not_the_senders_word(void **state)
{
	const struct exchange x = {{.opcode = IBV_WR_SEND}, 8};
	const struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	for (unsigned known = 0; known < 3; known++) {
		struct joined *j = join();
		struct eng_stats stats;
		struct ibv_wc wc[2];

		for (unsigned n = 0; n < known; n++)
			make(j->w, &x, wc);
		tp_qp_attr(j->w->a.qp->tp)->pkey = PKEY & 0x7fff;
		recv_into(&j->w->b, 1, 0, 64);
		send(&j->w->a, wr, 8);
		run(j->w);
		expect_empty(&j->w->b);
		eng_stats(j->w->b.engine, &stats);
		assert_int_equal(stats.rx_malformed, 1);
		part(j);
	}
}

static bool hears(struct side *s)
{
	uint32_t epsn = s->qp->tp->resp.epsn.v;

	eng_tick(s->engine);
	return s->qp->tp->resp.epsn.v != epsn;
}

/* a third port's program, with a lane of its own to B, says that it is A's QP */
static void the_port_of_a_peer_is_not_the_senders_word(void **state)
{
	struct abi_record record = {.opcode = WIRE_RC | WIRE_SEND_ONLY,
					  .flags = ABI_RECORD_ACK_REQ,
					  .slid = 5,
					  .pkey = PKEY,
					  .packets = 1,
					  .psn = 100,
					  .dest_qpn = 0x22,
					  .src_qpn = 0x11};
	static const struct {
		uint16_t slid, mask, dlid;
		bool heard;
	} cases[] = {{5, 0xffff, 1, false}, {5, 0xffff, 4, false}, {5, 0xffff, 5, true},
		     {4, 0xfffe, 4, true},  {4, 0xfffe, 5, true},  {4, 0xfffe, 6, false}};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct joined *j = join();
		struct side *b = &j->w->b;

		j->in[0].source = (struct wire_port_addrs){cases[i].slid, cases[i].mask};
		tp_qp_attr(b->qp->tp)->av.dlid = cases[i].dlid;
		recv_into(b, 77, 0, 64);
		abi_lane_publish(&j->out[0].tx, &record);
		assert_int_equal(hears(b), cases[i].heard);
		part(j);
	}
}

/* what passed by A's lane and is known since, a third port's does not say word for
 * word by its own */
static void what_is_known_is_of_its_lane(void **state)
{
	const struct exchange x = {{.opcode = IBV_WR_SEND}, 8};
	struct abi_lane *memory = aligned_alloc(64, abi_lane_bytes());
	struct eng_lane_in third = {
		.rx.memory = memory, .source = wire_port_addrs(5, 0), .pkey = PKEY};
	struct joined *j = join();
	struct side *b = &j->w->b;
	struct eng_stats stats;
	uint64_t word[3];
	struct ibv_wc wc[2];

	needs_fast_paths(j);
	memset(memory, 0, abi_lane_bytes());
	eng_lane_add(b->engine, &third);
	make(j->w, &x, wc);
	make(j->w, &x, wc);
	assert_ptr_equal(b->qp->predicted.qp, b->qp);
	for (unsigned i = 0; i < 3; i++)
		word[i] = j->out[0].tx.memory->cell[1].word[i];
	word[0] = (word[0] & ~(uint64_t)ABI_RECORD_QPN_MASK) |
		  b->qp->tp->resp.epsn.v | abi_record_lap(1);
	recv_into(b, 77, 0, 64);
	for (unsigned i = 3; i-- > 0;)
		memory->cell[0].word[i] = word[i];
	assert_false(hears(b));
	eng_stats(b->engine, &stats);
	assert_int_equal(stats.rx_malformed, 1);
	for (unsigned i = 3; i-- > 0;) /* by A's it is one more message */
		j->out[0].tx.memory->cell[2].word[i] = word[i];
	assert_true(hears(b));
	eng_lane_del(b->engine, &third);
	part(j);
	free(memory);
}

/* a program attached to the node of a QP's peer has that node's addresses, and says that it
 * is the peer; before its like is known, and after */
static void a_lane_of_another_program_is_not_the_peers(void **state)
{
	const struct exchange x = {{.opcode = IBV_WR_SEND}, 8};

	for (unsigned known = 0; known < 3; known++) {
		struct joined *j = join();
		struct side *b = &j->w->b;
		struct eng_stats stats;
		struct ibv_wc wc[2];

		j->in[0].owner = 7;
		eng_qp_set_peer_owner(b->qp, 7);
		for (unsigned n = 0; n < known; n++)
			make(j->w, &x, wc);
		eng_qp_set_peer_owner(b->qp, 8);
		recv_into(b, 77, 0, 64);
		send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
		assert_false(hears(b));
		eng_stats(b->engine, &stats);
		assert_int_equal(stats.rx_malformed, 1);
		part(j);
	}
}

/* nor may it be said by packets, where softibd has seen to it that the LID is true */
static void packets_of_another_port_are_dropped(void **state)
{
	static const struct {
		uint16_t slid, dlid;
		uint8_t lmc;
		bool heard;
	} cases[] = {{1, 1, 0, true}, {5, 1, 0, false}, {5, 4, 0, false},
		     {5, 4, 1, true}, {4, 5, 1, true},	{4, 6, 1, false}};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct side *b;
		struct eng_stats stats;
		struct world *w;
		void *world;

		setup(&world);
		w = world;
		b = &w->b;
		connect(w, IBV_QPT_RC);
		recv_into(b, 77, 0, 64);
		w->a.page->port[0].lid = cases[i].slid;
		b->page->port[0].lmc = cases[i].lmc;
		tp_qp_attr(b->qp->tp)->av.dlid = cases[i].dlid;
		send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
		assert_int_equal(hears(b), cases[i].heard);
		eng_stats(b->engine, &stats);
		assert_int_equal(stats.rx_malformed, !cases[i].heard);
		teardown(&world);
	}
}

/* --- what a hostile sender writes, before and after its like is known --- */

#define ROUNDS 3 /* messages by which it becomes known, and one more */

static struct joined *known_since(enum ibv_qp_type type, unsigned messages)
{
	const struct tp_av to_b = {.dlid = 2, .port_num = 1};
	const struct exchange x = {{.opcode = IBV_WR_SEND,
				    .wr.ud = {(void *)(uintptr_t)&to_b, 0x22, 0x1234}}, 8};
	struct joined *j = join_as(type);
	struct ibv_wc wc[2];

	for (unsigned n = 0; n < messages; n++)
		make(j->w, &x, wc);
	recv_into(&j->w->b, 77, 0, 200);
	return j;
}

static void expect_malformed(struct joined *j, struct abi_record *record, uint32_t bulk)
{
	struct abi_lane_tx *tx = &j->out[0].tx;
	struct abi_cell *cell = abi_lane_cell(tx->memory, tx->tail);
	const uint32_t qkey = 0x1234;
	struct eng_stats stats;

	memcpy(cell->data, &qkey, sizeof(qkey));
	memcpy(cell->data + ABI_CELL_BULK, &bulk, sizeof(bulk));
	record->psn = j->w->b.qp->tp->resp.epsn.v;
	abi_lane_publish(tx, record);
	eng_tick(j->w->b.engine);
	expect_empty(&j->w->b);
	eng_stats(j->w->b.engine, &stats);
	assert_int_equal(stats.rx_malformed, 1);
	part(j);
}

static struct abi_record small_record(uint8_t flags, uint32_t bytes)
{
	return (struct abi_record){.opcode = WIRE_RC | WIRE_SEND_ONLY,
				   .flags = ABI_RECORD_ACK_REQ | flags,
				   .slid = 1, .dlid_path_bits = 2, .pkey = PKEY, .packets = 1,
				   .dest_qpn = 0x22, .src_qpn = 0x11, .length_bytes = bytes};
}

static void payloads_lie_inside_the_lane(void **state)
{
	static const struct {
		uint8_t flags;
		uint32_t bytes, bulk;
	} cases[] = {{0, ABI_CELL_BYTES + 1, 0},
		     {ABI_RECORD_BULK, 65, ABI_LANE_BULK - 64},
		     {ABI_RECORD_BULK, 64, ABI_LANE_BULK},
		     {ABI_RECORD_BULK, 64, UINT32_MAX - 7},
		     {ABI_RECORD_BULK, 64, ABI_BULK_SPLIT},
		     {ABI_RECORD_BULK, 97, ABI_BULK_SPLIT},
		     {ABI_RECORD_BULK, 80, ABI_BULK_SPLIT | (ABI_LANE_BULK - 32)},
		     {ABI_RECORD_BULK, 80, ABI_BULK_SPLIT | ABI_LANE_BULK},
		     {ABI_RECORD_BULK, 80, -ABI_SPLIT_LINE},
		     {ABI_RECORD_BULK, 80, ABI_LANE_BULK}};

	for (unsigned i = 0; i < ARRAY_SIZE(cases) * ROUNDS; i++) {
		unsigned c = i / ROUNDS;
		struct abi_record record = small_record(cases[c].flags, cases[c].bytes);

		expect_malformed(known_since(IBV_QPT_RC, i % ROUNDS), &record, cases[c].bulk);
	}
}

/* a datagram's LID is where its answer goes */
static void the_lid_of_a_datagram_is_not_the_senders_word(void **state)
{
	for (unsigned n = 0; n < ROUNDS; n++) {
		struct abi_record record = small_record(0, 8);

		record.opcode = WIRE_UD | WIRE_SEND_ONLY;
		record.flags = 0;
		record.slid = 3;
		expect_malformed(known_since(IBV_QPT_UD, n), &record, 0);
	}
}

static void an_old_way_is_not_used(void **state)
{
	struct joined *j = known_since(IBV_QPT_RC, 2);

	j->w->a.flow = NULL;
	j->w->a.page->route_epoch++;
	send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
	assert_int_equal(by_lane(j), 2);
	run(j->w);
	assert_int_equal(take(&j->w->b).wr_id, 77);
	part(j);
}

/* --- order and errors, as by packets --- */

static void what_came_by_packets_is_read_before_a_record(void **state)
{
	const struct tp_av to_b = {.dlid = 2, .port_num = 1};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
				 .wr.ud = {(void *)(uintptr_t)&to_b, 0x33, 0x1234}};
	struct joined *j = known_since(IBV_QPT_UD, 2);
	struct side *a = &j->w->a, *b = &j->w->b;

	recv_into(b, 78, 0, 200);
	a->flow = NULL;
	a->page->route_epoch++; /* by packets from now on */
	for (unsigned i = 0; i <= ENG_RX_BUDGET; i++) { /* more than one turn reads */
		wr.wr.ud.remote_qpn = i < ENG_RX_BUDGET ? 0x33 : 0x22;
		send(a, wr, 16);
		take(a);
	}
	assert_int_equal(by_lane(j), 2);
	j->flow[0].epoch = a->page->route_epoch;
	a->flow = &j->flow[0];
	send(a, wr, 8);
	assert_int_equal(by_lane(j), 3);
	eng_tick(b->engine);
	assert_int_equal(take(b).byte_len, 40 + 16);
	assert_int_equal(take(b).byte_len, 40 + 8);
	part(j);
}

static void a_message_for_a_full_cq_overruns_it(void **state)
{
	for (unsigned n = 0; n < ROUNDS; n++) {
		struct joined *j = known_since(IBV_QPT_RC, n);
		struct side *b = &j->w->b;

		for (uint64_t i = 0; !eng_cq_is_full(b->cq); i++)
			eng_cq_push(b->cq, &(struct ibv_wc){.wr_id = i}, false);
		send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
		run(j->w);
		assert_int_equal(b->async_events, 2); /* the CQ's and its QP's */
		for (uint64_t i = 0; i < b->cq->cqe; i++)
			assert_int_equal(take(b).wr_id, i);
		part(j);
	}
}

/* 9.7.4.1.2: inside another message; and what a NAK left behind */
static void a_message_inside_another_is_an_error(void **state)
{
	for (unsigned n = 0; n < ROUNDS; n++) {
		struct joined *j = known_since(IBV_QPT_RC, n);
		struct side *b = &j->w->b;
		struct tp_responder *r = &b->qp->tp->resp;

		r->nak_sent = true;
		send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
		run(j->w);
		assert_int_equal(take(b).wr_id, 77);
		assert_false(r->nak_sent);
		take(&j->w->a);
		r->message = TP_MESSAGE_WRITE;
		send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
		run(j->w);
		assert_int_equal(take(&j->w->a).status, IBV_WC_REM_INV_REQ_ERR);
		assert_int_equal(b->last_async, IBV_EVENT_QP_REQ_ERR);
		part(j);
	}
}

static void a_receive_needs_the_right_to_write(void **state)
{
	for (unsigned n = 0; n < ROUNDS; n++) {
		struct joined *j = known_since(IBV_QPT_RC, n);
		struct side *b = &j->w->b;
		struct eng_mr_attr mr = {.key = 0x101, .pd = 1, .addr = b->memory,
					 .length = MEMORY, .iova = (uintptr_t)b->memory};

		assert_int_equal(eng_mr_del(b->engine, 0x101), 0);
		assert_int_equal(eng_mr_add(b->engine, &mr), 0);
		send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8);
		run(j->w);
		assert_int_equal(take(b).status, IBV_WC_LOC_PROT_ERR);
		assert_int_equal(take(&j->w->a).status, IBV_WC_REM_OP_ERR);
		part(j);
	}
}

/* 10.8.3: of a READ before it, a fenced SEND has the answer before it leaves */
static void a_fence_holds_a_message_back(void **state)
{
	struct joined *j = known_since(IBV_QPT_RC, 2);
	struct ibv_send_wr read = {.wr_id = 1, .opcode = IBV_WR_RDMA_READ};

	read.wr.rdma.remote_addr = (uintptr_t)j->w->b.memory;
	read.wr.rdma.rkey = 0x101;
	send(&j->w->a, read, 8);
	assert_int_equal(by_lane(j), 3);
	send(&j->w->a, (struct ibv_send_wr){.wr_id = 2, .opcode = IBV_WR_SEND,
					    .send_flags = IBV_SEND_FENCE}, 8);
	assert_int_equal(by_lane(j), 3);
	run(j->w);
	assert_int_equal(take(&j->w->a).wr_id, 1);
	assert_int_equal(take(&j->w->a).wr_id, 2);
	assert_int_equal(take(&j->w->b).wr_id, 77);
	part(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_waits_for_its_receive),
		cmocka_unit_test(a_wait_after_idleness_is_a_whole_one),
		cmocka_unit_test(what_is_known_of_a_header_ends),
		cmocka_unit_test(a_partition_is_not_the_senders_word),
		cmocka_unit_test(the_port_of_a_peer_is_not_the_senders_word),
		cmocka_unit_test(what_is_known_is_of_its_lane),
		cmocka_unit_test(a_lane_of_another_program_is_not_the_peers),
		cmocka_unit_test(packets_of_another_port_are_dropped),
		cmocka_unit_test(payloads_lie_inside_the_lane),
		cmocka_unit_test(the_lid_of_a_datagram_is_not_the_senders_word),
		cmocka_unit_test(an_old_way_is_not_used),
		cmocka_unit_test(what_came_by_packets_is_read_before_a_record),
		cmocka_unit_test(a_message_for_a_full_cq_overruns_it),
		cmocka_unit_test(a_message_inside_another_is_an_error),
		cmocka_unit_test(a_receive_needs_the_right_to_write),
		cmocka_unit_test(a_fence_holds_a_message_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
