/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UC: no answers; a message arrives whole and in order, or not at all. */
#include <errno.h>
#include <string.h>

#include "pair.h"

static struct pair *uc_pair(void)
{
	return pair_new(&(struct pair_options){.type = TP_UC});
}

static void test_every_operation(void **state)
{
	static const struct {
		enum ibv_wr_opcode op;
		int recv_opcode; /* -1: none */
	} ops[] = {
		{IBV_WR_SEND, IBV_WC_RECV},
		{IBV_WR_SEND_WITH_IMM, IBV_WC_RECV},
		{IBV_WR_RDMA_WRITE, -1},
		{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM},
	};
	static const uint32_t sizes[] = {0, 1, 1024, 1025, 5000};

	for (unsigned i = 0; i < ARRAY_SIZE(ops); i++)
		for (unsigned s = 0; s < ARRAY_SIZE(sizes); s++) {
			struct pair *p = uc_pair();
			const struct tp_wc *wc;

			pair_recv(p, B, 9, 0x8000, 8192);
			pair_send(p, A, ops[i].op, 1, 0, sizes[s], 0x8000);
			pair_run(p);
			pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
			assert_memory_equal(p->side[A].memory, p->side[B].memory + 0x8000,
					    sizes[s]);
			if (ops[i].recv_opcode >= 0) {
				wc = pair_received(p, B);
				assert_int_equal(wc->opcode, ops[i].recv_opcode);
				assert_int_equal(wc->byte_len, sizes[s]);
			}
			for (uint32_t n = 0; n < p->logged; n++) {
				assert_int_equal(p->log[n].from, A);
				assert_int_equal(p->log[n].opcode & WIRE_TRANSPORT_MASK,
						 WIRE_UC);
				assert_false(p->log[n].ack_req);
			}
			pair_expect_quiet(p);
			pair_free(p);
		}
}

static void test_refused(void **state)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_SEND_WITH_INV};
	struct pair *p = uc_pair();

	for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
		struct tp_send_wr wr = pair_wr(p, A, ops[i], 1, 0, 8, 0);

		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), -EINVAL);
	}
	pair_free(p);
}

static enum pair_fate lose(struct pair *p, const struct pair_packet *pkt)
{
	return p->fate_count++ == *(uint32_t *)p->fate_ctx ? DROP : PASS;
}

/* whichever packet of the first message is lost, the receive it may have
 * taken serves the second, which is whole */
static void test_loss(void **state)
{
	for (uint32_t n = 0; n < 3; n++) {
		struct pair *p = uc_pair();

		p->fate = lose;
		p->fate_ctx = &n;
		pair_recv(p, B, 21, 0x8000, 4096);
		pair_recv(p, B, 22, 0xa000, 4096);
		pair_send(p, A, IBV_WR_SEND, 1, 0, 3000, 0);
		pair_send(p, A, IBV_WR_SEND, 2, 0x2000, 2000, 0);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
		pair_expect_received(p, B, 21, IBV_WC_SUCCESS);
		assert_int_equal(p->side[B].recvs, 1);
		assert_int_equal(p->side[B].recv_wc[0].byte_len, 2000);
		assert_memory_equal(p->side[B].memory + 0x8000,
				    p->side[A].memory + 0x2000, 2000);
		assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
		/* an error move flushes what is left */
		tp_qp_modify(p->side[B].qp, IBV_QPS_ERR, p->now);
		pair_expect_received(p, B, 22, IBV_WC_WR_FLUSH_ERR);
		pair_free(p);
	}
}

/* a first packet in the middle of a message begins the next one, gap or not */
static void test_first_inside_message(void **state)
{
	static const uint8_t bytes[1024];
	struct pair *p = uc_pair();
	struct wire_packet pkt = {
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = WIRE_UC | WIRE_SEND_FIRST, .psn = psn(0x100)},
		.payload = bytes,
		.payload_bytes = 1024,
	};

	pair_recv(p, B, 5, 0x8000, 2048);
	pair_deliver(p, B, &pkt);
	pkt.bth.opcode = WIRE_UC | WIRE_SEND_ONLY;
	pkt.bth.psn = psn(0x101);
	pkt.payload_bytes = 100;
	pair_deliver(p, B, &pkt);
	pair_expect_received(p, B, 5, IBV_WC_SUCCESS);
	assert_int_equal(p->side[B].recv_wc[0].byte_len, 100);
	pair_free(p);
}

/* what RC would NAK, UC drops; the next message is not harmed */
static void test_silent_drops(void **state)
{
	struct pair *p = uc_pair();
	struct tp_send_wr wr;

	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0); /* no receive */
	pair_run(p);
	pair_recv(p, B, 31, 0x8000, 100);
	pair_send(p, A, IBV_WR_SEND, 2, 0, 3000, 0); /* too long */
	wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 3, 0, 3000, 0x8000);
	wr.rkey += PAIR_KEY_LOCAL;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0); /* no right */
	pair_send(p, A, IBV_WR_SEND, 4, 0x100, 50, 0);
	pair_run(p);
	for (uint64_t id = 1; id <= 4; id++)
		pair_expect_sent(p, A, id, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 31, IBV_WC_SUCCESS);
	assert_memory_equal(p->side[B].memory + 0x8000, p->side[A].memory + 0x100, 50);
	assert_int_equal(p->side[B].events, 0);
	pair_expect_quiet(p);
	pair_free(p);
}

/* class E: a receive of a shared queue cannot wait for the next message */
static void test_too_long_with_srq(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.type = TP_UC, .srq = true});

	pair_recv(p, B, 31, 0x8000, 100);
	pair_send(p, A, IBV_WR_SEND, 2, 0, 101, 0);
	pair_run(p);
	pair_expect_received(p, B, 31, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_ERR);
	pair_free(p);
}

/* a local error stops the send queue only, and it can be started again */
static void test_send_queue_error(void **state)
{
	struct pair *p = uc_pair();
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 2, 0, 8, 0);
	struct tp_sge bad = {PAIR_IOVA, 8, 0x666};

	pair_recv(p, A, 41, 0, 100);
	pair_recv(p, B, 42, 0, 100);
	pair_recv(p, B, 43, 0, 100);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	wr = pair_wr(p, A, IBV_WR_SEND, 2, 0, 8, 0);
	wr.sge = &bad;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_send(p, A, IBV_WR_SEND, 3, 0, 8, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_LOC_PROT_ERR);
	pair_expect_sent(p, A, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(tp_qp_state(p->side[A].qp), IBV_QPS_SQE);
	pair_send(p, A, IBV_WR_SEND, 4, 0, 8, 0); /* still the error state */
	pair_expect_sent(p, A, 4, IBV_WC_WR_FLUSH_ERR);
	pair_send(p, B, IBV_WR_SEND, 5, 0, 8, 0); /* receives go on */
	pair_run(p);
	pair_expect_received(p, A, 41, IBV_WC_SUCCESS);
	tp_qp_modify(p->side[A].qp, IBV_QPS_RTS, p->now);
	pair_send(p, A, IBV_WR_SEND, 6, 0, 8, 0);
	pair_run(p);
	pair_expect_sent(p, A, 6, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 42, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 43, IBV_WC_SUCCESS);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_first_inside_message),
		cmocka_unit_test(test_silent_drops),
		cmocka_unit_test(test_too_long_with_srq),
		cmocka_unit_test(test_send_queue_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
