/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the Linux kernel's rdma_rxe put on the wire between two machines, and
 * what we put there for the same work requests: packet for packet the same
 * opcode, PSN, AckReq and length, and in the answers the same syndrome and
 * MSN. The requests were posted one by one, MTU 1024, first PSN 0x123450; and
 * again with a first PSN shortly before the PSNs wrap.
 */
#include <string.h>

#include "pair.h"

struct row {
	enum pair_side_id from;
	uint8_t opcode;
	uint32_t psn; /* behind the first */
	bool ack_req;
	uint32_t payload_bytes;
	uint8_t syndrome;
	uint32_t msn;
};

/* clang-format off */
static const struct row every_operation[] = {
	{A, WIRE_SEND_ONLY, 0, true, 0, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 0, false, 0, 0x1f, 1},
	{A, WIRE_SEND_ONLY, 1, true, 1, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 1, false, 0, 0x1f, 2},
	{A, WIRE_SEND_ONLY, 2, true, 2, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 2, false, 0, 0x1f, 3},
	{A, WIRE_SEND_ONLY, 3, true, 3, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 3, false, 0, 0x1f, 4},
	{A, WIRE_SEND_ONLY, 4, true, 4, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 4, false, 0, 0x1f, 5},
	{A, WIRE_SEND_ONLY, 5, true, 5, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 5, false, 0, 0x1f, 6},
	{A, WIRE_SEND_ONLY, 6, true, 1023, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 6, false, 0, 0x1f, 7},
	{A, WIRE_SEND_ONLY, 7, true, 1024, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 7, false, 0, 0x1f, 8},
	{A, WIRE_SEND_FIRST, 8, false, 1024, 0x00, 0},
	{A, WIRE_SEND_LAST, 9, true, 1, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 9, false, 0, 0x1f, 9},
	{A, WIRE_SEND_FIRST, 10, false, 1024, 0x00, 0},
	{A, WIRE_SEND_MIDDLE, 11, false, 1024, 0x00, 0},
	{A, WIRE_SEND_LAST, 12, true, 952, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 12, false, 0, 0x1f, 10},
	{A, WIRE_SEND_ONLY_IMM, 13, true, 5, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 13, false, 0, 0x1f, 11},
	{A, WIRE_SEND_FIRST, 14, false, 1024, 0x00, 0},
	{A, WIRE_SEND_MIDDLE, 15, false, 1024, 0x00, 0},
	{A, WIRE_SEND_LAST_IMM, 16, true, 1, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 16, false, 0, 0x1f, 12},
	{A, WIRE_WRITE_ONLY, 17, true, 0, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 17, false, 0, 0x1f, 13},
	{A, WIRE_WRITE_ONLY, 18, true, 7, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 18, false, 0, 0x1f, 14},
	{A, WIRE_WRITE_FIRST, 19, false, 1024, 0x00, 0},
	{A, WIRE_WRITE_MIDDLE, 20, false, 1024, 0x00, 0},
	{A, WIRE_WRITE_MIDDLE, 21, false, 1024, 0x00, 0},
	{A, WIRE_WRITE_MIDDLE, 22, false, 1024, 0x00, 0},
	{A, WIRE_WRITE_LAST, 23, true, 905, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 23, false, 0, 0x1f, 15},
	{A, WIRE_WRITE_ONLY_IMM, 24, true, 9, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 24, false, 0, 0x1f, 16},
	{A, WIRE_WRITE_FIRST, 25, false, 1024, 0x00, 0},
	{A, WIRE_WRITE_MIDDLE, 26, false, 1024, 0x00, 0},
	{A, WIRE_WRITE_LAST_IMM, 27, true, 52, 0x00, 0},
	{B, WIRE_ACKNOWLEDGE, 27, false, 0, 0x1f, 17},
	{A, WIRE_READ_REQUEST, 28, true, 0, 0x00, 0},
	{B, WIRE_READ_RESP_ONLY, 28, false, 4, 0x1f, 18},
	{A, WIRE_READ_REQUEST, 29, true, 0, 0x00, 0},
	{B, WIRE_READ_RESP_FIRST, 29, false, 1024, 0x1f, 19},
	{B, WIRE_READ_RESP_MIDDLE, 30, false, 1024, 0x00, 0},
	{B, WIRE_READ_RESP_LAST, 31, false, 452, 0x1f, 19},
	{A, WIRE_READ_REQUEST, 32, true, 0, 0x00, 0},
	{B, WIRE_READ_RESP_ONLY, 32, false, 0, 0x1f, 20},
	{A, WIRE_FETCH_ADD, 33, true, 0, 0x00, 0},
	{B, WIRE_ATOMIC_ACK, 33, false, 0, 0x1f, 21},
	{A, WIRE_CMP_SWAP, 34, true, 0, 0x00, 0},
	{B, WIRE_ATOMIC_ACK, 34, false, 0, 0x1f, 22},
};
/* clang-format on */

struct posted {
	enum ibv_wr_opcode op;
	uint32_t len, remote;
};

static const struct posted requests[] = {
	{IBV_WR_SEND, 0, 0},
	{IBV_WR_SEND, 1, 0},
	{IBV_WR_SEND, 2, 0},
	{IBV_WR_SEND, 3, 0},
	{IBV_WR_SEND, 4, 0},
	{IBV_WR_SEND, 5, 0},
	{IBV_WR_SEND, 1023, 0},
	{IBV_WR_SEND, 1024, 0},
	{IBV_WR_SEND, 1025, 0},
	{IBV_WR_SEND, 3000, 0},
	{IBV_WR_SEND_WITH_IMM, 5, 0},
	{IBV_WR_SEND_WITH_IMM, 2049, 0},
	{IBV_WR_RDMA_WRITE, 0, 0},
	{IBV_WR_RDMA_WRITE, 7, 3},
	{IBV_WR_RDMA_WRITE, 5001, 1},
	{IBV_WR_RDMA_WRITE_WITH_IMM, 9, 0},
	{IBV_WR_RDMA_WRITE_WITH_IMM, 2100, 0},
	{IBV_WR_RDMA_READ, 4, 0},
	{IBV_WR_RDMA_READ, 2500, 5},
	{IBV_WR_RDMA_READ, 0, 0},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0x40},
	{IBV_WR_ATOMIC_CMP_AND_SWP, 8, 0x40},
};

static void compare(const struct pair *p, const struct row *rows, uint32_t n,
		    uint32_t first_psn)
{
	assert_int_equal(p->logged, n);
	for (uint32_t i = 0; i < n; i++) {
		const struct pair_packet *l = &p->log[i];

		assert_int_equal(l->from, rows[i].from);
		assert_int_equal(l->opcode, rows[i].opcode);
		assert_int_equal(l->psn.v, (first_psn + rows[i].psn) & 0xffffff);
		assert_int_equal(l->ack_req, rows[i].ack_req);
		assert_int_equal(l->payload_bytes, rows[i].payload_bytes);
		assert_int_equal(l->syndrome, rows[i].syndrome);
		assert_int_equal(l->msn, rows[i].msn);
	}
}

static void like_the_kernel(uint32_t first_psn)
{
	struct pair *p = pair_new(&(struct pair_options){.sq_psn = {first_psn}});
	uint64_t v;

	for (uint32_t i = 0; i < 0x10000; i++) /* as in the captures */
		p->side[B].memory[i] = (uint8_t)(i * 7);
	for (uint32_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct tp_send_wr wr = pair_wr(p, A, requests[i].op, i, 0x10000,
					       requests[i].len, requests[i].remote);

		pair_recv(p, B, i, 0x20000, 8192);
		wr.compare_add = requests[i].op == IBV_WR_ATOMIC_FETCH_AND_ADD ?
					 0x0102030405060708 :
					 0xf2ece6e0dad4cec8;
		if (requests[i].op == IBV_WR_RDMA_WRITE ||
		    wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			wr.remote_addr = PAIR_IOVA + 0x30000;
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
		pair_run(p);
		pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
	}
	compare(p, every_operation, ARRAY_SIZE(every_operation), first_psn);
	memcpy(&v, p->side[A].memory + 0x10000, 8); /* the last atomic's result */
	assert_true(v == 0xf2ece6e0dad4cec8);	    /* captured: original remote data */
	pair_free(p);
}

static void test_every_operation(void **state)
{
	like_the_kernel(0x123450);
}

static void test_psn_wrap(void **state)
{
	like_the_kernel(0xfffffd);
}

/* the kernel's requests that its responder refused */
static void test_refusals(void **state)
{
	static const struct {
		struct wire_packet pkt;
		uint32_t rkey_offset;
		bool no_remote_access;
		uint8_t syndrome;
	} cases[] = {
		/* unknown R_Key */
		{{.bth.opcode = 10, .reth = {PAIR_IOVA, 0, 100}, .payload_bytes = 100},
		 1,
		 false,
		 0x62},
		/* READ that ends 50 bytes behind the region */
		{{.bth.opcode = 12, .reth = {PAIR_IOVA + PAIR_MEMORY - 50, 0, 100}},
		 0,
		 false,
		 0x62},
		/* WRITE into a region without remote rights */
		{{.bth.opcode = 10, .reth = {PAIR_IOVA, 0, 100}, .payload_bytes = 100},
		 PAIR_KEY_LOCAL,
		 false,
		 0x62},
		/* QP without remote access */
		{{.bth.opcode = 10, .reth = {PAIR_IOVA, 0, 100}, .payload_bytes = 100},
		 0,
		 true,
		 0x61},
		/* no receive; the responder's timer is code 14 */
		{{.bth.opcode = 4, .payload_bytes = 100}, 0, false, 0x2e},
	};
	static const uint8_t payload[100];

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair *p = pair_new(&(struct pair_options){
			.sq_psn = {0x123450},
			.no_remote_access = cases[i].no_remote_access});
		struct wire_packet pkt = cases[i].pkt;
		struct tp_packet_out out;

		tp_qp_attr(p->side[B].qp)->min_rnr_timer_enc = 14;
		pkt.bth.psn = psn(0x123450);
		pkt.bth.ack_req = true;
		pkt.reth.rkey = PAIR_KEY_B + cases[i].rkey_offset;
		pkt.payload = payload;
		pair_deliver(p, B, &pkt);
		assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
		assert_int_equal(out.hdr.bth.opcode, WIRE_ACKNOWLEDGE);
		assert_int_equal(out.hdr.bth.psn.v, 0x123450);
		assert_int_equal(out.hdr.aeth.syndrome, cases[i].syndrome);
		assert_int_equal(out.hdr.aeth.msn, 0);
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test(test_psn_wrap),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
