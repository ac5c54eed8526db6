/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Raw packet QPs: a frame is a message, without GRH, Q_Key and address handle. */
#include "world.h"

#include <errno.h>

#include "base/bytes.h"
#include "wire/frame.h"

#define FRAME_MAX (4096 + WIRE_FRAME_OVERHEAD)

static void make_raw(struct side *s, uint32_t qpn, uint16_t dlid)
{
	struct eng_qp_init init = {.qpn = qpn, .type = IBV_QPT_UD, .is_raw = true, .pd = 1,
				   .send_cq = s->cq, .recv_cq = s->cq, .max_send_wr = 32,
				   .max_recv_wr = 32, .max_send_sge = 2, .max_recv_sge = 2,
				   .max_inline = 64, .ctx = s};

	s->page->port[0].max_mtu_enc = IBV_MTU_4096;
	assert_int_equal(eng_qp_create(s->engine, &init, &s->qp), 0);
	to_rts(s, dlid, 0);
}

static void connect_raw(struct world *w)
{
	make_raw(&w->a, 0x11, 2);
	make_raw(&w->b, 0x22, 1);
}

/* as softibd does when it has found the QP */
static void deliver_to(struct world *w, uint32_t qpn)
{
	struct cable *c = w->a.out;

	for (unsigned i = c->head; i != c->tail; i++) {
		uint8_t *bytes = c->packet[i % WIRE_PACKETS].bytes;

		assert_int_equal(get_be24(bytes + 8 + 5), WIRE_QPN_FRAME);
		assert_int_equal(get_be16(bytes + 2), WIRE_LID_MULTICAST);
		put_be24(bytes + 8 + 5, qpn);
	}
	run(w);
}

static void a_frame_arrives_as_it_was_sent(void **state)
{
	static const uint32_t sizes[] = {WIRE_FRAME_MIN, 60, 61, 1514, FRAME_MAX};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;

	connect_raw(w);
	fill(&w->a, FRAME_MAX);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_wc wc;

		recv_into(&w->b, i, 0, FRAME_MAX);
		assert_int_equal(send(&w->a, wr, sizes[i]), 0);
		deliver_to(w, 0x22);
		assert_int_equal(take(&w->a).status, IBV_WC_SUCCESS);
		wc = take(&w->b);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.byte_len, sizes[i]);
		assert_int_equal(wc.wc_flags, 0);
		assert_memory_equal(w->a.memory, w->b.memory, sizes[i]);
	}
	assert_int_equal(w->b.async_events, 0);
}

static void inline_frames(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
	struct world *w = *state;

	connect_raw(w);
	fill(&w->a, 64);
	recv_into(&w->b, 1, 0, 100);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	assert_int_equal(take(&w->b).byte_len, 64);
	assert_memory_equal(w->a.memory, w->b.memory, 64);
}

static void what_is_no_frame_is_refused(void **state)
{
	static const enum ibv_wr_opcode others[] = {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
						    IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_INV};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;

	connect_raw(w);
	assert_int_equal(send(&w->a, wr, WIRE_FRAME_MIN - 1), -EINVAL);
	assert_int_equal(send(&w->a, wr, FRAME_MAX + 1), -EINVAL);
	for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
		wr.opcode = others[i];
		assert_int_equal(send(&w->a, wr, 64), -EINVAL);
	}
	assert_int_equal(w->a.out->tail, w->a.out->head);
}

/* as datagrams, it is dropped silently */
static void receives_that_are_missing_or_short(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;

	connect_raw(w);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	expect_empty(&w->b);
	recv_into(&w->b, 1, 0, 63);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	expect_empty(&w->b);
}

/* a work queue that is moved to RTR only, as a rule finds it, raises no event */
static void a_first_frame_is_no_connection(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct world *w = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	connect_raw(w);
	assert_int_equal(eng_qp_modify(w->b.qp, &attr, IBV_QP_STATE), 0);
	to_rtr(&w->b, 1, 0);
	recv_into(&w->b, 1, 0, 100);
	assert_int_equal(send(&w->a, wr, 64), 0);
	deliver_to(w, 0x22);
	assert_int_equal(take(&w->b).byte_len, 64);
	assert_int_equal(w->b.async_events, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_frame_arrives_as_it_was_sent),
		CASE(inline_frames),
		CASE(what_is_no_frame_is_refused),
		CASE(receives_that_are_missing_or_short),
		CASE(a_first_frame_is_no_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
