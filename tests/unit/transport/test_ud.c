/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* UD: one packet, one message, addressed by the request. */
#include <errno.h>
#include <string.h>

#include "pair.h"

static struct pair *ud_pair(void)
{
	return pair_new(&(struct pair_options){.type = TP_UD, .mtu_bytes = 2048});
}

static void test_send(void **state)
{
	static const uint32_t sizes[] = {0, 1, 5, 2047, 2048};

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct pair *p = ud_pair();
		const struct tp_wc *wc;
		uint8_t zero[40] = {0};

		pair_recv(p, B, 9, 0x8000, 40 + 2048);
		pair_send(p, A, IBV_WR_SEND_WITH_IMM, 1, 0, sizes[i], 0);
		pair_run(p);
		wc = pair_sent(p, A);
		assert_int_equal(wc->opcode, IBV_WC_SEND);
		wc = pair_received(p, B);
		assert_int_equal(wc->status, IBV_WC_SUCCESS);
		assert_int_equal(wc->opcode, IBV_WC_RECV);
		assert_int_equal(wc->byte_len, 40 + sizes[i]);
		assert_int_equal(wc->src_qpn, 0xa);
		assert_int_equal(wc->slid, 1);
		assert_int_equal(wc->wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(wc->imm_or_rkey, 0x1001);
		assert_memory_equal(p->side[B].memory + 0x8000, zero, 40);
		assert_memory_equal(p->side[B].memory + 0x8000 + 40, p->side[A].memory,
				    sizes[i]);
		pair_expect_quiet(p);
		pair_free(p);
	}
}

static void test_grh(void **state)
{
	struct pair *p = ud_pair();
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 10, 0);
	const uint8_t *grh = p->side[B].memory + 0x8000;
	const struct tp_wc *wc;

	wr.av.is_global = true;
	wr.av.hop_limit = 7;
	memset(wr.av.dgid.raw, 0xee, 16);
	pair_recv(p, B, 9, 0x8000, 100);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run(p);
	wc = pair_received(p, B);
	assert_int_equal(wc->wc_flags, IBV_WC_GRH);
	assert_int_equal(wc->byte_len, 50);
	/* 8.3: version 6, payload BTH 12 + DETH 8 + 10 + pad 2 + ICRC 4, next 0x1b */
	assert_int_equal(grh[0], 0x60);
	assert_int_equal(grh[4] << 8 | grh[5], 36);
	assert_int_equal(grh[6], 0x1b);
	assert_int_equal(grh[7], 7);
	assert_memory_equal(grh + 24, wr.av.dgid.raw, 16);
	assert_memory_equal(grh + 40, p->side[A].memory, 10);
	pair_free(p);
}

/* which Q_Keys pass: QP number of the receiver, Q_Key of the request */
static void test_qkey(void **state)
{
	static const struct {
		uint32_t to_qpn, qkey;
		bool passes;
	} cases[] = {
		{0xb, 0x1234, true},	   {0xb, 0x1235, false},
		{0xb, 0x80000000, true},   /* the sender's own, which is 0x1234 */
		{1, WIRE_QKEY_GSI, false}, /* likewise: not the well-known one */
		{1, 0x1234, false},	   {PAIR_QP0, 0x55, true},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair *p = pair_new(&(struct pair_options){
			.type = TP_UD, .qpn = {0, cases[i].to_qpn}});
		struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 10, 0);

		wr.remote_qkey = cases[i].qkey;
		pair_recv(p, B, 9, 0x8000, 100);
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		assert_int_equal(p->side[B].recvs, cases[i].passes);
		pair_free(p);
	}
}

/* QP1 to QP1: the well-known Q_Key whatever attribute they have */
static void test_gsi(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.type = TP_UD, .qpn = {1, 1}});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 10, 0);

	wr.remote_qkey = WIRE_QKEY_GSI;
	pair_recv(p, B, 9, 0x8000, 100);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run(p);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	assert_int_equal(p->side[B].recv_wc[0].src_qpn, 1);
	pair_free(p);
}

/* a datagram that does not fit is dropped, the receive waits for the next */
static void test_too_long(void **state)
{
	struct pair *p = ud_pair();

	pair_recv(p, B, 9, 0x8000, 40 + 10);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 11, 0);
	pair_send(p, A, IBV_WR_SEND, 2, 0x100, 10, 0);
	pair_send(p, A, IBV_WR_SEND, 3, 0, 10, 0); /* no receive left */
	pair_run(p);
	for (uint64_t id = 1; id <= 3; id++)
		pair_expect_sent(p, A, id, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	assert_memory_equal(p->side[B].memory + 0x8000 + 40, p->side[A].memory + 0x100,
			    10);
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
	pair_expect_quiet(p);
	pair_free(p);
}

static struct pair *cutting_pair(uint32_t max_header)
{
	return pair_new(&(struct pair_options){.type = TP_UD, .mtu_bytes = 2048,
					       .max_header = max_header});
}

static uint8_t cut_header[44];

static struct tp_send_wr cut_wr(struct pair *p)
{
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_TSO, 1, 0, 5000, 0);

	wr.header = cut_header;
	wr.header_bytes = sizeof(cut_header);
	wr.mss_bytes = 1200;
	return wr;
}

/* all packets of a request at once, which the engine cuts; they own their PSNs */
static void test_cut(void **state)
{
	struct pair *p = cutting_pair(64);
	struct tp_send_wr wr = cut_wr(p);
	struct tp_packet_out out;
	psn_t first;

	memset(cut_header, 0x3c, sizeof(cut_header));
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	memset(cut_header, 0, sizeof(cut_header)); /* the caller's again */
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(out.hdr.packets, 5);
	assert_int_equal(out.hdr.payload_bytes, 5000);
	assert_int_equal(out.hdr.bth.opcode, WIRE_UD | WIRE_SEND_ONLY);
	assert_int_equal(out.mss_bytes, 1200);
	assert_int_equal(out.header_bytes, sizeof(cut_header));
	for (unsigned i = 0; i < sizeof(cut_header); i++)
		assert_int_equal(out.header[i], 0x3c);
	assert_int_equal(pair_sent(p, A)->opcode, IBV_WC_TSO);
	first = out.hdr.bth.psn;
	wr = pair_wr(p, A, IBV_WR_SEND, 2, 0, 10, 0);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(psn_diff(out.hdr.bth.psn, first), 5);
	assert_null(out.header);
	assert_int_equal(pair_sent(p, A)->opcode, IBV_WC_SEND);
	pair_free(p);
}

static void test_bad_cuts(void **state)
{
	static const struct {
		uint16_t header_bytes, mss_bytes, flags;
		uint32_t length_bytes;
		int answer;
	} cases[] = {
		{44, 1200, 0, 5000, 0},		{64, 1984, 0, 5000, 0},
		{64, 1985, 0, 5000, -EINVAL}, /* than the MTU */
		{65, 1200, 0, 5000, -EINVAL}, {0, 1200, 0, 5000, -EINVAL},
		{44, 0, 0, 5000, -EINVAL},    {44, 1200, 0, 0, -EINVAL},
		{44, 1200, 0, 65536, 0},      {44, 1200, 0, 65537, -EINVAL},
		{44, 1200, IBV_SEND_INLINE, 50, -EINVAL},
	};
	struct pair *p = cutting_pair(64);
	struct tp_send_wr wr;

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		wr = cut_wr(p);
		wr.header_bytes = cases[i].header_bytes;
		wr.mss_bytes = cases[i].mss_bytes;
		wr.flags |= cases[i].flags;
		wr.length_bytes = cases[i].length_bytes;
		assert_int_equal(tp_qp_check_send(p->side[A].qp, &wr), cases[i].answer);
	}
	pair_free(p);
	p = cutting_pair(0);
	wr = cut_wr(p);
	assert_int_equal(tp_qp_check_send(p->side[A].qp, &wr), -EINVAL);
	pair_free(p);
	p = pair_new(&(struct pair_options){.type = TP_RC, .mtu_bytes = 2048, .max_header = 64});
	wr = cut_wr(p);
	assert_int_equal(tp_qp_check_send(p->side[A].qp, &wr), -EINVAL);
	pair_free(p);
}

/* a held receive is flushed with the others, first */
static void test_held_receive_is_flushed(void **state)
{
	struct pair *p = ud_pair();

	pair_recv(p, B, 9, 0x8000, 40);
	pair_recv(p, B, 10, 0x8000, 40);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 11, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	tp_qp_modify(p->side[B].qp, IBV_QPS_ERR, p->now);
	pair_expect_received(p, B, 9, IBV_WC_WR_FLUSH_ERR);
	pair_expect_received(p, B, 10, IBV_WC_WR_FLUSH_ERR);
	pair_expect_quiet(p);
	pair_free(p);
}

static void test_receive_violation(void **state)
{
	struct pair *p = ud_pair();

	pair_recv(p, B, 9, 0x8000, 100);
	p->side[B].recv_sge[0].lkey = 0x321;
	pair_recv(p, B, 10, 0x8000, 100);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 11, 0);
	pair_run(p);
	pair_expect_received(p, B, 9, IBV_WC_LOC_PROT_ERR);
	pair_expect_received(p, B, 10, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_ERR);
	pair_free(p);
}

/* 9.8.3: what is longer than a packet may be is none, though there is room for it */
static void test_more_than_the_mtu(void **state)
{
	struct pair *p = ud_pair();
	static const uint8_t payload[2049];
	struct wire_packet pkt = {
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .dest_qpn = 0xb, .psn = psn(0x100)},
		.deth = {0x1234, 0xa},
		.payload = payload,
		.payload_bytes = sizeof(payload)};

	pair_recv(p, B, 9, 0x8000, 40 + 4096);
	pair_deliver(p, B, &pkt);
	assert_int_equal(p->side[B].recvs, 0);
	pkt.payload_bytes--;
	pair_deliver(p, B, &pkt);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	pair_free(p);
}

static void test_refused(void **state)
{
	struct pair *p = ud_pair();
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND, 1, 0, 2049, 0);

	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), -EINVAL);
	wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 1, 0, 8, 0);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), -EINVAL);
	pair_free(p);
}

/* SQD holds requests back; being drained needs no answer here */
static void test_drain(void **state)
{
	struct pair *p = ud_pair();

	pair_recv(p, B, 9, 0x8000, 100);
	tp_qp_modify(p->side[A].qp, IBV_QPS_SQD, p->now);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	pair_run(p);
	assert_true(pair_had_event(p, A, TP_EVENT_SQ_DRAINED));
	assert_int_equal(p->logged, 0);
	tp_qp_modify(p->side[A].qp, IBV_QPS_RTS, p->now);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send),
		cmocka_unit_test(test_grh),
		cmocka_unit_test(test_qkey),
		cmocka_unit_test(test_gsi),
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_bad_cuts),
		cmocka_unit_test(test_held_receive_is_flushed),
		cmocka_unit_test(test_receive_violation),
		cmocka_unit_test(test_more_than_the_mtu),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
