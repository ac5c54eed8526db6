/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Who may do what to the memory of an RC responder: the rights of the QP, those of the
 * key, and each of them alone, when everything else would allow the request (9.7.4.1.5,
 * 10.6.3).
 */
#include <string.h>

#include "pair.h"

#define NAK(code) (WIRE_AETH_NAK | (code))
#define ALL_RIGHTS                                                                         \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |     \
	 TP_ACCESS_FLUSH_GLOBAL)
#define FIRST_PSN 0x100

static const struct {
	unsigned op; /* enum ibv_wr_opcode, TP_WR_FLUSH */
	int right;
	uint32_t len;
} requests[] = {
	{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE, 64},
	{IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE, 0}, /* checks no key, but the QP */
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_ACCESS_REMOTE_WRITE, 5000},
	{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, 64},
	{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, 0},
	{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ, 5000},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC, 8},
	{IBV_WR_ATOMIC_WRITE, IBV_ACCESS_REMOTE_WRITE, 8},
	{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC, 8},
	{TP_WR_FLUSH, TP_ACCESS_FLUSH_GLOBAL, 64},
	{TP_WR_FLUSH, TP_ACCESS_FLUSH_GLOBAL, 0},
};

static bool answers(unsigned op, int rights, uint32_t len)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	uint8_t *before = test_malloc(PAIR_MEMORY);
	bool refused;

	memcpy(before, p->side[B].memory, PAIR_MEMORY);
	tp_qp_attr(p->side[B].qp)->qp_access_flags = rights;
	pair_recv(p, B, 9, 0, 8);
	pair_send(p, A, (enum ibv_wr_opcode)op, 1, 0, len, 0x1000);
	pair_run(p);
	refused = pair_sent(p, A)->status == IBV_WC_REM_INV_REQ_ERR;
	if (refused) {
		assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->syndrome,
				 NAK(WIRE_NAK_INVALID_REQUEST));
		assert_true(pair_had_event(p, B, TP_EVENT_QP_REQ_ERR));
		assert_memory_equal(p->side[B].memory, before, PAIR_MEMORY);
	} else {
		assert_int_equal(p->side[A].send_wc[0].status, IBV_WC_SUCCESS);
	}
	test_free(before);
	pair_free(p);
	return !refused;
}

/* Each request needs its own right of the QP, and no other one. */
static void test_rights_of_the_qp(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		assert_true(answers(requests[i].op, requests[i].right, requests[i].len));
		assert_false(answers(requests[i].op, ALL_RIGHTS & ~requests[i].right,
				     requests[i].len));
	}
}

static struct wire_packet write_packet(uint8_t opcode, uint32_t at, uint32_t rkey, uint32_t dma_len,
				       const void *payload, uint32_t len)
{
	return (struct wire_packet){
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = opcode, .dest_qpn = 0xb, .psn = psn(at), .ack_req = true},
		.reth = {PAIR_IOVA, rkey, dma_len},
		.payload = payload,
		.payload_bytes = len,
	};
}

static void expect_refused(struct pair *p, uint32_t at)
{
	struct tp_packet_out out;

	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.opcode, WIRE_ACKNOWLEDGE);
	assert_int_equal(out.hdr.aeth.syndrome, NAK(WIRE_NAK_REMOTE_ACCESS));
	assert_int_equal(out.hdr.bth.psn.v, at);
	assert_true(pair_had_event(p, B, TP_EVENT_QP_ACCESS_ERR));
}

/* The key of a WRITE is looked at with its first packet, before the receive that an
 * immediate takes: who may not write is told so, and not to try again later. */
static void test_a_write_checks_its_key_first(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	const uint8_t bytes[8] = {1};
	struct wire_packet pkt = write_packet(WIRE_WRITE_ONLY_IMM, FIRST_PSN,
					      PAIR_KEY_B + PAIR_KEY_RO, sizeof(bytes), bytes,
					      sizeof(bytes));

	pair_deliver(p, B, &pkt);
	expect_refused(p, FIRST_PSN);
	pair_free(p);
}

/* The region loses its rights between two packets of a WRITE: the second is not written. */
static void test_a_write_checks_its_key_each_time(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	static const uint8_t bytes[1024] = {1, 2, 3};
	uint8_t before[1024];
	struct wire_packet pkt = write_packet(WIRE_WRITE_FIRST, FIRST_PSN, PAIR_KEY_B,
					      2 * sizeof(bytes), bytes, sizeof(bytes));
	struct tp_packet_out out;

	memcpy(before, p->side[B].memory + sizeof(bytes), sizeof(before));
	pair_deliver(p, B, &pkt);
	assert_memory_equal(p->side[B].memory, bytes, sizeof(bytes));
	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	p->side[B].key = PAIR_KEY_B - PAIR_KEY_RO; /* the same key is of a region to read */
	pkt = write_packet(WIRE_WRITE_LAST, FIRST_PSN + 1, 0, 0, bytes, sizeof(bytes));
	pair_deliver(p, B, &pkt);
	expect_refused(p, FIRST_PSN + 1);
	assert_memory_equal(p->side[B].memory + sizeof(bytes), before, sizeof(before));
	pair_free(p);
}

static struct wire_packet read_request(uint32_t rkey, uint64_t va, uint32_t len)
{
	return (struct wire_packet){
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = WIRE_READ_REQUEST, .dest_qpn = 0xb, .psn = psn(FIRST_PSN)},
		.reth = {va, rkey, len},
	};
}

static unsigned responses(struct pair *p, struct wire_packet request)
{
	struct tp_packet_out out;
	unsigned n = 0;

	pair_deliver(p, B, &request);
	while (tp_qp_transmit(p->side[B].qp, &out, p->now))
		n++;
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
	return n;
}

/* What comes again is answered from what it asked for at first: by the same key, from the same
 * address, and no more. Another key may well be good, and is not this request's. */
static void test_a_duplicate_read_is_the_same(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	assert_int_equal(responses(p, read_request(PAIR_KEY_B, PAIR_IOVA, 2000)), 2);
	assert_int_equal(responses(p, read_request(PAIR_KEY_B + PAIR_KEY_RO, PAIR_IOVA, 2000)), 0);
	assert_int_equal(responses(p, read_request(PAIR_KEY_B, PAIR_IOVA + 8, 2000)), 0);
	assert_int_equal(responses(p, read_request(PAIR_KEY_B, PAIR_IOVA, 2001)), 0);
	assert_int_equal(responses(p, read_request(PAIR_KEY_B, PAIR_IOVA, 2000)), 2);
	assert_int_equal(responses(p, read_request(PAIR_KEY_B, PAIR_IOVA, 1000)), 1);
	pair_free(p);
}

/* A READ and an atomic cannot come again as each other. */
static void test_a_duplicate_is_of_the_same_kind(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct wire_packet read = read_request(PAIR_KEY_B, PAIR_IOVA, 8);
	struct wire_packet add = {.lrh.lnh = WIRE_LNH_BTH,
				  .bth = {.opcode = WIRE_FETCH_ADD, .dest_qpn = 0xb},
				  .atomic = {PAIR_IOVA, PAIR_KEY_B, 1, 0}};
	uint8_t after[8];

	add.bth.psn = psn(FIRST_PSN);
	assert_int_equal(responses(p, read), 1);
	assert_int_equal(responses(p, add), 0);
	add.bth.psn = read.bth.psn = psn(FIRST_PSN + 1);
	assert_int_equal(responses(p, add), 1);
	memcpy(after, p->side[B].memory, sizeof(after));
	assert_int_equal(responses(p, read), 0);
	assert_int_equal(responses(p, add), 1);
	assert_memory_equal(p->side[B].memory, after, sizeof(after)); /* executed once */
	pair_free(p);
}

static struct wire_packet atomic_write(uint32_t rkey, uint64_t va, uint32_t dma_len,
				       const void *payload, uint32_t len)
{
	struct wire_packet pkt =
		write_packet(WIRE_ATOMIC_WRITE, FIRST_PSN, rkey, dma_len, payload, len);

	pkt.reth.va = va;
	return pkt;
}

/* ATOMIC WRITE stores one aligned word, no more and no less. */
static void test_an_atomic_write_is_of_a_word(void **state)
{
	static const uint8_t bytes[16] = "0123456789abcde";
	const struct {
		uint32_t rkey, dma_len, len;
		uint64_t va;
		uint8_t syndrome;
	} wrong[] = {
		{PAIR_KEY_B, 8, 8, PAIR_IOVA + 4, NAK(WIRE_NAK_INVALID_REQUEST)},
		{PAIR_KEY_B + PAIR_KEY_RO, 8, 8, PAIR_IOVA + 4, NAK(WIRE_NAK_INVALID_REQUEST)},
		{PAIR_KEY_B, 16, 8, PAIR_IOVA, NAK(WIRE_NAK_INVALID_REQUEST)},
		{PAIR_KEY_B, 8, 4, PAIR_IOVA, NAK(WIRE_NAK_INVALID_REQUEST)},
		{PAIR_KEY_B, 16, 16, PAIR_IOVA, NAK(WIRE_NAK_INVALID_REQUEST)},
		{PAIR_KEY_B, 8, 8, PAIR_IOVA + PAIR_MEMORY, NAK(WIRE_NAK_REMOTE_ACCESS)},
		{PAIR_KEY_B + PAIR_KEY_RO, 8, 8, PAIR_IOVA, NAK(WIRE_NAK_REMOTE_ACCESS)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct wire_packet pkt = atomic_write(wrong[i].rkey, wrong[i].va, wrong[i].dma_len,
						      bytes, wrong[i].len);
		uint8_t before[16];

		memcpy(before, p->side[B].memory, sizeof(before));
		pair_deliver(p, B, &pkt);
		assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_ERR);
		pair_run(p);
		assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->syndrome,
				 wrong[i].syndrome);
		assert_memory_equal(p->side[B].memory, before, sizeof(before));
		pair_free(p);
	}
}

/* Its duplicate is answered, by the response of a READ of no bytes, and not executed. */
static void test_a_duplicate_atomic_write(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct wire_packet store = atomic_write(PAIR_KEY_B, PAIR_IOVA, 8, "firstone", 8);
	struct wire_packet again = atomic_write(PAIR_KEY_B, PAIR_IOVA, 8, "notagain", 8);
	struct tp_packet_out out;

	assert_int_equal(responses(p, store), 1);
	assert_memory_equal(p->side[B].memory, "firstone", 8);
	pair_deliver(p, B, &again);
	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.opcode, WIRE_READ_RESP_ONLY);
	assert_int_equal(out.hdr.payload_bytes, 0);
	assert_int_equal(out.hdr.bth.psn.v, FIRST_PSN);
	assert_memory_equal(p->side[B].memory, "firstone", 8);
	assert_int_equal(responses(p, read_request(PAIR_KEY_B, PAIR_IOVA, 0)), 0);
	pair_free(p);
}

static struct wire_packet flush(uint32_t rkey, uint64_t va, uint32_t length_bytes,
				uint8_t placement, uint8_t selectivity)
{
	return (struct wire_packet){
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = WIRE_FLUSH, .dest_qpn = 0xb, .psn = psn(FIRST_PSN)},
		.feth = {placement, selectivity},
		.reth = {va, rkey, length_bytes},
	};
}

/* A FLUSH of a range needs all of it under the key, one of a region the key alone; no key has
 * persistent memory. Its response is that of a READ of no bytes. */
static void test_what_a_flush_may_name(void **state)
{
	const struct {
		struct wire_packet pkt;
		uint8_t nak; /* 0: none */
	} cases[] = {
		{flush(PAIR_KEY_B, PAIR_IOVA, PAIR_MEMORY, WIRE_FLUSH_GLOBAL, WIRE_FLUSH_RANGE), 0},
		{flush(PAIR_KEY_B, PAIR_IOVA + 1, PAIR_MEMORY, WIRE_FLUSH_GLOBAL, WIRE_FLUSH_RANGE),
		 NAK(WIRE_NAK_REMOTE_ACCESS)},
		{flush(PAIR_KEY_B, 0, UINT32_MAX, WIRE_FLUSH_GLOBAL, WIRE_FLUSH_MR), 0},
		{flush(PAIR_KEY_B + PAIR_KEY_RO, PAIR_IOVA, 8, WIRE_FLUSH_GLOBAL, WIRE_FLUSH_RANGE),
		 NAK(WIRE_NAK_REMOTE_ACCESS)},
		{flush(PAIR_KEY_B + PAIR_KEY_RO, PAIR_IOVA, 8, WIRE_FLUSH_GLOBAL, WIRE_FLUSH_MR),
		 NAK(WIRE_NAK_REMOTE_ACCESS)},
		{flush(PAIR_KEY_B, PAIR_IOVA, 8, WIRE_FLUSH_GLOBAL | WIRE_FLUSH_PERSISTENT,
		       WIRE_FLUSH_RANGE),
		 NAK(WIRE_NAK_REMOTE_ACCESS)},
		{flush(PAIR_KEY_B, PAIR_IOVA, 8, 0, WIRE_FLUSH_RANGE), NAK(WIRE_NAK_INVALID_REQUEST)},
		{flush(PAIR_KEY_B, PAIR_IOVA, 8, 5, WIRE_FLUSH_RANGE), NAK(WIRE_NAK_INVALID_REQUEST)},
		{flush(PAIR_KEY_B, PAIR_IOVA, 8, WIRE_FLUSH_GLOBAL, 2), NAK(WIRE_NAK_INVALID_REQUEST)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct wire_packet pkt = cases[i].pkt;
		struct tp_packet_out out;

		pair_deliver(p, B, &pkt);
		assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
		if (cases[i].nak) {
			assert_int_equal(out.hdr.bth.opcode, WIRE_ACKNOWLEDGE);
			assert_int_equal(out.hdr.aeth.syndrome, cases[i].nak);
		} else {
			assert_int_equal(out.hdr.bth.opcode, WIRE_READ_RESP_ONLY);
			assert_int_equal(out.hdr.payload_bytes, 0);
			/* so is its duplicate; but it is no duplicate of a READ */
			assert_int_equal(responses(p, pkt), 1);
			assert_int_equal(responses(p, read_request(PAIR_KEY_B, PAIR_IOVA, 8)), 0);
		}
		pair_free(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights_of_the_qp),
		cmocka_unit_test(test_a_write_checks_its_key_first),
		cmocka_unit_test(test_a_write_checks_its_key_each_time),
		cmocka_unit_test(test_a_duplicate_read_is_the_same),
		cmocka_unit_test(test_a_duplicate_is_of_the_same_kind),
		cmocka_unit_test(test_an_atomic_write_is_of_a_word),
		cmocka_unit_test(test_a_duplicate_atomic_write),
		cmocka_unit_test(test_what_a_flush_may_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
