/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Automatic path migration: adapters with two ports each, an RC connection whose primary path
 * joins ports 1 (LIDs 1 and 2) and whose alternate one joins ports 2 (LIDs 11 and 12).
 */
#include "lanes.h"

#define SECOND 10 /* what is added to the LID of port 1 */
#define OTHER_LID 33

static void add_port(struct side *s)
{
	struct abi_devpage *page = calloc(1, abi_devpage_bytes(2));

	page->num_ports = 2;
	page->port[0] = page->port[1] = s->page->port[0];
	page->port[1].lid += SECOND;
	page->port[1].pkey[0] = 0; /* the alternate path has another P_Key index */
	page->port[1].pkey[1] = PKEY;
	free(s->page);
	s->page = page;
	s->engine->cfg.devpage = page;
	if (s->qp)
		eng_find_pkey(s->qp);
}

static struct world *begin(void)
{
	void *state;
	struct world *w;

	setup(&state);
	w = state;
	add_port(&w->a);
	add_port(&w->b);
	connect(w, IBV_QPT_RC);
	return w;
}

static void end(struct world *w)
{
	void *state = w;

	teardown(&state);
}

static int load(struct side *s, uint16_t dlid, enum ibv_mig_state to)
{
	struct ibv_qp_attr attr = {.alt_ah_attr = {.dlid = dlid, .port_num = 2},
				   .alt_port_num = 2,
				   .alt_pkey_index = 1,
				   .alt_timeout = 13,
				   .path_mig_state = to};

	return eng_qp_modify(s->qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
}

static enum ibv_mig_state mig_state(struct side *s)
{
	struct ibv_qp_attr attr;

	eng_qp_query(s->qp, &attr);
	return attr.path_mig_state;
}

static void message(struct side *from, struct side *to, struct world *w, uint32_t len)
{
	assert_int_equal(recv_into(to, 7, 40000, 8192), 0);
	assert_int_equal(send(from, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, len), 0);
	run(w);
	assert_int_equal(take(from).status, IBV_WC_SUCCESS);
	assert_int_equal(take(to).status, IBV_WC_SUCCESS);
}

/* both have an alternate path and know that of each other */
static struct world *begin_armed(void)
{
	struct world *w = begin();

	assert_int_equal(load(&w->a, 2 + SECOND, IBV_MIG_REARM), 0);
	message(&w->a, &w->b, w, 8);
	assert_int_equal(mig_state(&w->a), IBV_MIG_REARM); /* B's ACK had MigReq */
	assert_int_equal(load(&w->b, 1 + SECOND, IBV_MIG_REARM), 0);
	message(&w->a, &w->b, w, 8);
	assert_int_equal(mig_state(&w->a), IBV_MIG_ARMED);
	assert_int_equal(mig_state(&w->b), IBV_MIG_ARMED);
	w->a.async_events = w->b.async_events = 0;
	return w;
}

/* packets to the LIDs of the primary path are lost */
static void lose(struct side *s)
{
	for (unsigned i = s->in.head; i != s->in.tail; i++) {
		struct wire_packet pkt;

		if (wire_packet_decode(s->in.packet[i % WIRE_PACKETS].bytes,
				       s->in.packet[i % WIRE_PACKETS].len, &pkt) > 0 &&
		    pkt.lrh.dlid < SECOND)
			s->in.packet[i % WIRE_PACKETS].len = 0;
	}
}

static void run_without_primary(struct world *w, unsigned seconds)
{
	for (unsigned i = 0; i < seconds * 10; i++) {
		eng_tick(w->a.engine);
		lose(&w->b);
		eng_tick(w->b.engine);
		lose(&w->a);
		clock_now.ns += NSEC_PER_SEC / 10;
	}
}

static void expect_migrated(struct side *s, uint16_t dlid)
{
	struct ibv_qp_attr attr;

	assert_int_equal(s->async_events, 1);
	assert_int_equal(s->last_async, IBV_EVENT_PATH_MIG);
	eng_qp_query(s->qp, &attr);
	assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
	assert_int_equal(attr.ah_attr.dlid, dlid);
	assert_int_equal(attr.port_num, 2);
	assert_int_equal(attr.pkey_index, 1);
	assert_int_equal(attr.timeout, 13);
}

/* What is under way when the primary path fails arrives by the other, all of it and once. */
static void nothing_is_lost(void **state)
{
	struct world *w = begin_armed();
	uint64_t counter = 5;

	fill(&w->a, 5000);
	memcpy(w->b.memory + 1000, &counter, 8);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(recv_into(&w->b, i, 10000 + 8192 * i, 8192), 0);
		assert_int_equal(send(&w->a, (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND},
				      1000 * (i + 1)),
				 0);
	}
	assert_int_equal(send(&w->a,
			      (struct ibv_send_wr){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
						   .wr.atomic = {(uintptr_t)w->b.memory + 1000, 1,
								 0, 0x101}},
			      8),
			 0);
	eng_tick(w->b.engine); /* all of it arrives, and no answer returns */
	lose(&w->a);
	run_without_primary(w, 10);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_wc wc = take(&w->b);

		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, 1000 * (i + 1));
	}
	expect_empty(&w->b);
	memcpy(&counter, w->b.memory + 1000, 8);
	assert_int_equal(counter, 6);
	expect_migrated(&w->a, 2 + SECOND);
	expect_migrated(&w->b, 1 + SECOND);
	/* and it goes on, in both directions */
	message(&w->b, &w->a, w, 5000);
	message(&w->a, &w->b, w, 5000);
	end(w);
}

/* Return: how many tenths of a second pass until A has migrated, with a request under way */
static unsigned tenths_to_migrate(enum ibv_port_state primary)
{
	struct world *w = begin_armed();
	unsigned tenths = 0;

	w->a.page->port[0].state = (uint8_t)primary;
	w->a.page->port[1].state = IBV_PORT_ACTIVE;
	assert_int_equal(recv_into(&w->b, 1, 10000, 64), 0);
	assert_int_equal(send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
	for (; mig_state(&w->a) != IBV_MIG_MIGRATED; tenths++) {
		eng_tick(w->a.engine);
		lose(&w->b);
		clock_now.ns += NSEC_PER_SEC / 10;
		assert_true(tenths < 1000);
	}
	run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	expect_migrated(&w->a, 2 + SECOND);
	end(w);
	return tenths;
}

/* Retries by a port that is down are in vain: the first time-out is the last. */
static void a_port_that_is_down_is_left_at_once(void **state)
{
	unsigned retried = tenths_to_migrate(IBV_PORT_ACTIVE);
	unsigned down = tenths_to_migrate(IBV_PORT_DOWN);

	assert_true(down < retried);
	assert_int_equal(down - 1, (retried - 1) / 3); /* retry_cnt is 2 */
}

/* After a migration the first path may be loaded as the alternate one. */
static void there_and_back(void **state)
{
	struct world *w = begin_armed();
	struct ibv_qp_attr back = {.alt_port_num = 1, .alt_timeout = 14,
				   .path_mig_state = IBV_MIG_REARM};

	assert_int_equal(recv_into(&w->b, 1, 10000, 64), 0);
	assert_int_equal(send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
	lose(&w->b);
	run_without_primary(w, 10);
	assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
	take(&w->b);
	expect_migrated(&w->a, 2 + SECOND);
	back.alt_ah_attr = (struct ibv_ah_attr){.dlid = 2, .port_num = 1};
	assert_int_equal(eng_qp_modify(w->a.qp, &back, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
	back.alt_ah_attr.dlid = 1;
	assert_int_equal(eng_qp_modify(w->b.qp, &back, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
	message(&w->a, &w->b, w, 8);
	assert_int_equal(mig_state(&w->a), IBV_MIG_ARMED);
	back = (struct ibv_qp_attr){.path_mig_state = IBV_MIG_MIGRATED};
	w->a.async_events = w->b.async_events = 0;
	assert_int_equal(eng_qp_modify(w->a.qp, &back, IBV_QP_PATH_MIG_STATE), 0); /* by hand */
	assert_int_equal(w->a.last_async, IBV_EVENT_PATH_MIG);
	message(&w->a, &w->b, w, 5000);
	assert_int_equal(w->b.async_events, 1);
	eng_qp_query(w->b.qp, &back);
	assert_int_equal(back.ah_attr.dlid, 1);
	assert_int_equal(back.port_num, 1);
	end(w);
}

/* who is not sure that the peer would follow does not migrate */
static void not_before_both_are_armed(void **state)
{
	struct world *w = begin();

	assert_int_equal(load(&w->a, 2 + SECOND, IBV_MIG_REARM), 0);
	message(&w->a, &w->b, w, 8);
	assert_int_equal(send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE}, 8), 0);
	lose(&w->b);
	run_without_primary(w, 10);
	assert_int_equal(take(&w->a).status, IBV_WC_RETRY_EXC_ERR);
	end(w);
}

/* B has another alternate path than A: it does not follow, and says so once */
static void a_path_that_does_not_fit_is_refused(void **state)
{
	struct world *w = begin();
	struct ibv_qp_attr by_hand = {.path_mig_state = IBV_MIG_MIGRATED};

	assert_int_equal(load(&w->a, 2 + SECOND, IBV_MIG_REARM), 0);
	assert_int_equal(load(&w->b, OTHER_LID, IBV_MIG_REARM), 0);
	message(&w->a, &w->b, w, 8);
	message(&w->b, &w->a, w, 8);
	assert_int_equal(mig_state(&w->b), IBV_MIG_ARMED);
	w->b.async_events = 0;
	assert_int_equal(eng_qp_modify(w->a.qp, &by_hand, IBV_QP_PATH_MIG_STATE), 0);
	assert_int_equal(send(&w->a, (struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE}, 8), 0);
	for (unsigned i = 0; i < 100; i++, clock_now.ns += NSEC_PER_SEC / 10)
		run(w);
	assert_int_equal(take(&w->a).status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(w->b.async_events, 1);
	assert_int_equal(w->b.last_async, IBV_EVENT_PATH_MIG_ERR);
	assert_int_equal(mig_state(&w->b), IBV_MIG_ARMED);
	end(w);
}

static void what_cannot_be_loaded(void **state)
{
	struct world *w = begin();
	struct ibv_qp_attr attr = {.path_mig_state = IBV_MIG_REARM, .alt_port_num = 3};

	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_PATH_MIG_STATE), -EINVAL);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_ALT_PATH), -EINVAL);
	attr.alt_port_num = 2;
	attr.alt_pkey_index = ABI_PKEYS;
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_ALT_PATH), -EINVAL);
	attr.alt_pkey_index = 0;
	attr.path_mig_state = IBV_MIG_ARMED + 1;
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE),
			 -EINVAL);
	assert_int_equal(eng_qp_modify(w->a.qp, &attr, IBV_QP_ALT_PATH), 0);
	assert_int_equal(mig_state(&w->a), IBV_MIG_MIGRATED);
	end(w);
}

/* Records of a lane say by a flag whether MigReq is set. */
static void by_lanes_too(void **state)
{
	struct joined *j = join();
	struct world *w = j->w;

	add_port(&w->a);
	add_port(&w->b);
	for (unsigned i = 0; i < 3; i++)
		message(&w->a, &w->b, w, 8);
	assert_int_equal(load(&w->a, 2 + SECOND, IBV_MIG_REARM), 0);
	message(&w->a, &w->b, w, 8);
	assert_int_equal(mig_state(&w->a), IBV_MIG_REARM);
	assert_int_equal(load(&w->b, 1 + SECOND, IBV_MIG_REARM), 0);
	for (unsigned i = 0; i < 3; i++)
		message(&w->a, &w->b, w, 8);
	assert_int_equal(mig_state(&w->a), IBV_MIG_ARMED);
	assert_int_equal(mig_state(&w->b), IBV_MIG_ARMED);
	assert_true(by_lane(j) > 0);
	part(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(a_port_that_is_down_is_left_at_once),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(not_before_both_are_armed),
		cmocka_unit_test(a_path_that_does_not_fit_is_refused),
		cmocka_unit_test(what_cannot_be_loaded),
		cmocka_unit_test(by_lanes_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
