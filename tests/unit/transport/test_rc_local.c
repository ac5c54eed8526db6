/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Local operations (BIND_MW, LOCAL_INV): send requests that own no PSN. */
#include <string.h>

#include "pair.h"

static void bind(struct pair *p, uint64_t wr_id)
{
	pair_send(p, A, IBV_WR_BIND_MW, wr_id, 0, 0, 0);
}

static void write(struct pair *p, uint64_t wr_id)
{
	pair_send(p, A, IBV_WR_RDMA_WRITE, wr_id, 0, 64, 0);
}

/* one that is alone completes from its post, without a packet */
static void test_alone(void **state)
{
	static const enum tp_type types[] = {TP_RC, TP_UC};
	static const enum ibv_wr_opcode ops[] = {IBV_WR_BIND_MW, IBV_WR_LOCAL_INV};
	static const enum ibv_wc_opcode completions[] = {IBV_WC_BIND_MW, IBV_WC_LOCAL_INV};

	for (unsigned i = 0; i < 4; i++) {
		struct pair *p = pair_new(&(struct pair_options){.type = types[i / 2]});
		const struct tp_wc *wc;

		pair_send(p, A, ops[i % 2], 1, 0, 0, 0);
		assert_true(tp_qp_wants_transmit(p->side[A].qp));
		pair_run(p);
		wc = pair_sent(p, A);
		assert_int_equal(wc->status, IBV_WC_SUCCESS);
		assert_int_equal(wc->opcode, completions[i % 2]);
		assert_int_equal(p->logged, 0);
		assert_int_equal(p->side[A].binds, i % 2 == 0);
		assert_int_equal(p->side[A].invalidated, i % 2 ? PAIR_KEY_A + PAIR_KEY_RO : 0);
		assert_true(tp_idle(p->side[A].qp));
		pair_expect_quiet(p);
		pair_free(p);
	}
}

static void test_not_on_ud(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.type = TP_UD});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_BIND_MW, 1, 0, 0, 0);

	assert_int_not_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_free(p);
}

/* executed when the packets before it are sent, completed when they are acknowledged */
static void test_in_order(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	bind(p, 0);
	write(p, 1);
	bind(p, 2);
	bind(p, 3);
	write(p, 4);
	bind(p, 5);
	pair_run_until(p, p->now);
	assert_int_equal(p->logged, 2);
	assert_int_equal(p->side[A].binds, 4);
	assert_int_equal(p->side[A].bind[0].logged, 0);
	assert_int_equal(p->side[A].bind[1].logged, 1);
	assert_int_equal(p->side[A].bind[2].logged, 1);
	assert_int_equal(p->side[A].bind[3].logged, 2);
	pair_expect_sent(p, A, 0, IBV_WC_SUCCESS);
	assert_int_equal(p->side[A].sends, 1);
	pair_run(p);
	for (unsigned i = 1; i < 6; i++)
		pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
	/* PSNs are of packets alone */
	assert_int_equal(p->log[1].psn.v, p->log[0].psn.v + 1);
	pair_expect_quiet(p);
	pair_free(p);
}

static enum pair_fate drop_some(struct pair *p, const struct pair_packet *pkt)
{
	uint64_t lost = *(uint64_t *)p->fate_ctx;

	return p->fate_count < 64 && lost >> p->fate_count++ & 1 ? DROP : PASS;
}

/* whichever packets are lost and sent again, each is executed once */
static void test_executed_once(void **state)
{
	for (uint64_t lost = 0; lost < 256; lost++) {
		struct pair *p = pair_new(&(struct pair_options){0});

		p->fate = drop_some;
		p->fate_ctx = &lost;
		pair_recv(p, B, 0, 0x2000, 64);
		write(p, 0);
		bind(p, 1);
		pair_send(p, A, IBV_WR_RDMA_READ, 2, 0x1000, 3000, 0x3000);
		bind(p, 3);
		pair_send(p, A, IBV_WR_SEND, 4, 0, 64, 0);
		bind(p, 5);
		pair_run(p);
		assert_int_equal(p->side[A].binds, 3);
		for (unsigned i = 0; i < 6; i++)
			pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
		pair_expect_received(p, B, 0, IBV_WC_SUCCESS);
		pair_expect_quiet(p);
		/* the queue is as if nothing had happened */
		write(p, 6);
		pair_run(p);
		pair_expect_sent(p, A, 6, IBV_WC_SUCCESS);
		pair_free(p);
	}
}

static void test_fence(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_send_wr wr;

	pair_send(p, A, IBV_WR_RDMA_READ, 1, 0x1000, 64, 0x2000);
	wr = pair_wr(p, A, IBV_WR_BIND_MW, 2, 0, 0, 0);
	wr.flags |= IBV_SEND_FENCE;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run_until(p, p->now);
	assert_int_equal(p->side[A].binds, 0);
	pair_run(p);
	assert_int_equal(p->side[A].binds, 1);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	pair_free(p);
}

/* one that fails completes in its turn, and ends the QP */
static void test_failure(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_BIND_MW, 2, 0, 0, 0);

	wr.bind.mr_key = 0x77;
	write(p, 1);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	write(p, 3);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_MW_BIND_ERR);
	pair_expect_sent(p, A, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(tp_qp_state(p->side[A].qp), IBV_QPS_ERR);
	assert_int_equal(pair_count(p, A, WIRE_WRITE_ONLY), 1);
	pair_expect_quiet(p);
	pair_free(p);
}

/* an executed one is not what a NAK or a lost response ends */
static void test_behind_it_fails(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_send_wr wr;

	write(p, 1);
	bind(p, 2);
	wr = pair_wr(p, A, IBV_WR_RDMA_READ, 3, 0x1000, 64, 0x2000);
	wr.rkey = 0x77;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	bind(p, 4);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 3, IBV_WC_REM_ACCESS_ERR);
	/* executed, but behind a failure: nobody can tell from a flush */
	pair_expect_sent(p, A, 4, IBV_WC_WR_FLUSH_ERR);
	pair_free(p);
}

static void test_silent(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.sq_depth = 4});

	for (unsigned i = 0; i < 100; i++) {
		struct tp_send_wr wr = pair_wr(p, A, IBV_WR_BIND_MW, i, 0, 0, 0);

		wr.flags = 0;
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
		pair_run(p);
	}
	assert_int_equal(p->side[A].binds, 100);
	assert_int_equal(tp_qp_sq_free(p->side[A].qp), 4);
	pair_expect_quiet(p);
	pair_free(p);
}

/* SQD finishes what was begun; what was not, waits for RTS */
static void test_drain(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_qp *qp = p->side[A].qp;

	write(p, 1);
	bind(p, 2);
	pair_run_until(p, p->now);
	tp_qp_modify(qp, IBV_QPS_SQD, p->now);
	bind(p, 3);
	pair_run(p);
	assert_true(pair_had_event(p, A, TP_EVENT_SQ_DRAINED));
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	assert_int_equal(p->side[A].binds, 1);
	tp_qp_modify(qp, IBV_QPS_RTS, p->now);
	pair_run(p);
	pair_expect_sent(p, A, 3, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	pair_free(p);
}

/* a queue that is held back for a window is given back to them */
static void test_held(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_qp *qp = p->side[A].qp;

	assert_true(tp_qp_hold(qp));
	bind(p, 1);
	pair_run(p);
	assert_int_equal(tp_qp_held(qp), TP_HELD_READY);
	assert_int_equal(p->side[A].binds, 0);
	tp_qp_release(qp);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	pair_free(p);
}

static struct wire_packet ack(uint32_t at, uint8_t credits, uint32_t msn)
{
	return (struct wire_packet){
		.bth = {.opcode = WIRE_RC | WIRE_ACKNOWLEDGE, .psn = psn(at)},
		.aeth = {(uint8_t)(WIRE_AETH_ACK | credits), msn},
	};
}

/* A peer that counts its receives counts messages, not local operations: with one credit
 * one SEND leaves, however many of these are before it, and after packets were sent again. */
static void test_credits(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_qp *qp = p->side[A].qp;
	struct tp_packet_out out;
	struct wire_packet pkt = ack(0x100, 1, 1); /* one done, one receive more */

	p->corked = true;
	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	bind(p, 2);
	assert_true(tp_qp_transmit(qp, &out, p->now));
	assert_false(tp_qp_transmit(qp, &out, p->now));
	pair_deliver(p, A, &pkt);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	bind(p, 3);
	for (unsigned i = 4; i < 8; i++) {
		pair_send(p, A, IBV_WR_SEND, i, 0, 8, 0);
		bind(p, i);
	}
	assert_true(tp_qp_transmit(qp, &out, p->now)); /* by the credit */
	assert_false(tp_qp_transmit(qp, &out, p->now));
	/* the time-out has it sent again, and no more */
	p->now = tp_qp_expiry(qp);
	tp_qp_expire(qp, p->now);
	p->now = tp_qp_expiry(qp);
	tp_qp_expire(qp, p->now);
	assert_true(tp_qp_transmit(qp, &out, p->now));
	assert_int_equal(out.hdr.bth.psn.v, 0x101);
	assert_false(tp_qp_transmit(qp, &out, p->now));
	pkt = ack(0x101, 2, 2);
	pair_deliver(p, A, &pkt);
	assert_true(tp_qp_transmit(qp, &out, p->now));
	assert_true(tp_qp_transmit(qp, &out, p->now));
	assert_false(tp_qp_transmit(qp, &out, p->now));
	pair_free(p);
}

/* of a lane that has room for a short record alone: what follows a local operation counts */
static void test_next_bytes(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_qp *qp = p->side[A].qp;

	bind(p, 1);
	assert_int_equal(tp_qp_next_bytes(qp), 0);
	bind(p, 2);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 3, 0, 5000, 0);
	assert_int_equal(tp_qp_next_bytes(qp), 5000);
	pair_run(p);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_not_on_ud),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_executed_once),
		cmocka_unit_test(test_fence),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_behind_it_fails),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_credits),
		cmocka_unit_test(test_next_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
