/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RC requests that end in error: for each cause the NAK on the wire, the
 * status at both ends, the event, the states, and that the rest is flushed.
 */
#include <string.h>

#include "pair.h"

#define NAK(code) (WIRE_AETH_NAK | (code))
#define NO_EVENT ((enum tp_event) - 1)

/* A posts a failing request, then one more; B has two receives */
struct failure {
	const char *name;
	enum ibv_wr_opcode op;
	uint32_t len, remote, rkey_suffix, recv_len;
	bool no_remote_access;
	uint8_t syndrome;
	enum ibv_wc_status requester, responder;
	enum tp_event event;
};

static const struct failure failures[] = {
	{"foreign rkey", IBV_WR_RDMA_WRITE, 100, 0, 0x999, 100, false,
	 NAK(WIRE_NAK_REMOTE_ACCESS), IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
	 TP_EVENT_QP_ACCESS_ERR},
	{"write to read-only memory", IBV_WR_RDMA_WRITE, 100, 0, PAIR_KEY_RO, 100, false,
	 NAK(WIRE_NAK_REMOTE_ACCESS), IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
	 TP_EVENT_QP_ACCESS_ERR},
	{"long write past the end: the first packet is refused", IBV_WR_RDMA_WRITE, 5000,
	 PAIR_MEMORY - 4999, 0, 100, false, NAK(WIRE_NAK_REMOTE_ACCESS),
	 IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR, TP_EVENT_QP_ACCESS_ERR},
	{"read past the end", IBV_WR_RDMA_READ, 5000, PAIR_MEMORY - 4999, 0, 100, false,
	 NAK(WIRE_NAK_REMOTE_ACCESS), IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
	 TP_EVENT_QP_ACCESS_ERR},
	{"read of local memory", IBV_WR_RDMA_READ, 100, 0, PAIR_KEY_LOCAL, 100, false,
	 NAK(WIRE_NAK_REMOTE_ACCESS), IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
	 TP_EVENT_QP_ACCESS_ERR},
	{"atomic on read-only memory", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0, PAIR_KEY_RO,
	 100, false, NAK(WIRE_NAK_REMOTE_ACCESS), IBV_WC_REM_ACCESS_ERR,
	 IBV_WC_WR_FLUSH_ERR, TP_EVENT_QP_ACCESS_ERR},
	{"atomic not aligned", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 4, 0, 100, false,
	 NAK(WIRE_NAK_INVALID_REQUEST), IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR,
	 TP_EVENT_QP_REQ_ERR},
	{"write to a QP without remote access", IBV_WR_RDMA_WRITE, 100, 0, 0, 100, true,
	 NAK(WIRE_NAK_INVALID_REQUEST), IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR,
	 TP_EVENT_QP_REQ_ERR},
	{"read from a QP without remote access", IBV_WR_RDMA_READ, 100, 0, 0, 100, true,
	 NAK(WIRE_NAK_INVALID_REQUEST), IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR,
	 TP_EVENT_QP_REQ_ERR},
	{"send longer than the receive", IBV_WR_SEND, 101, 0, 0, 100, false,
	 NAK(WIRE_NAK_INVALID_REQUEST), IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR,
	 NO_EVENT},
	{"long send, too long in its third packet", IBV_WR_SEND, 5000, 0, 0, 2500, false,
	 NAK(WIRE_NAK_INVALID_REQUEST), IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR,
	 NO_EVENT},
	{"receive into memory of another key", IBV_WR_SEND, 10, 0, 0, 0xffffffff, false,
	 NAK(WIRE_NAK_REMOTE_OPERATIONAL), IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR,
	 NO_EVENT},
};

static void check_failure(const struct failure *f)
{
	struct pair *p =
		pair_new(&(struct pair_options){.no_remote_access = f->no_remote_access});
	struct tp_send_wr wr;
	uint8_t before[64];

	print_message("# %s\n", f->name);
	memcpy(before, p->side[B].memory, sizeof(before));
	pair_recv(p, B, 11, 0x1000, f->recv_len == 0xffffffff ? 10 : f->recv_len);
	if (f->recv_len == 0xffffffff)
		p->side[B].recv_sge[0].lkey = 0x777;
	pair_recv(p, B, 12, 0x1000, 100);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, 0, 0); /* nothing: always succeeds */
	wr = pair_wr(p, A, f->op, 2, 0, f->len, f->remote);
	wr.rkey += f->rkey_suffix;
	wr.flags = 0;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_send(p, A, IBV_WR_SEND, 3, 0, 8, 0);
	pair_run(p);

	if (!f->no_remote_access)
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	else
		pair_expect_sent(p, A, 1, IBV_WC_REM_INV_REQ_ERR);
	pair_expect_sent(p, A, 2,
			 f->no_remote_access ? IBV_WC_WR_FLUSH_ERR : f->requester);
	pair_expect_sent(p, A, 3, IBV_WC_WR_FLUSH_ERR);
	pair_expect_received(p, B, 11, f->responder);
	pair_expect_received(p, B, 12, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(tp_qp_state(p->side[A].qp), IBV_QPS_ERR);
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_ERR);
	assert_int_equal(pair_count(p, B, WIRE_ACKNOWLEDGE), 1);
	assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->syndrome, f->syndrome);
	assert_int_equal(p->side[B].events, f->event != NO_EVENT);
	if (f->event != NO_EVENT)
		assert_int_equal(p->side[B].event[0], f->event);
	assert_memory_equal(p->side[B].memory, before, sizeof(before));
	pair_expect_quiet(p);
	pair_free(p);
}

static void test_failures(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(failures); i++)
		check_failure(&failures[i]);
}

/* the READ before the failing request is still answered */
static void test_earlier_read_is_answered(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_send_wr wr;

	pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, 5000, 0x1000);
	wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 2, 0, 8, 0);
	wr.rkey++;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_REM_ACCESS_ERR);
	assert_memory_equal(p->side[A].memory, p->side[B].memory + 0x1000, 5000);
	pair_expect_quiet(p);
	pair_free(p);
}

/* memory that is deregistered between a READ's responses */
static void test_memory_goes_away(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_packet_out out;

	pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, 5000, 0x1000);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	pair_deliver(p, B, &out.hdr);
	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	p->side[B].key_revoked = true;
	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.opcode, WIRE_ACKNOWLEDGE);
	assert_int_equal(out.hdr.aeth.syndrome, NAK(WIRE_NAK_REMOTE_ACCESS));
	assert_int_equal(out.hdr.bth.psn.v, 0x101);
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_ERR);
	assert_false(tp_qp_transmit(p->side[B].qp, &out, p->now));
	pair_free(p);
}

/* a request that cannot be sent waits for its turn to fail */
static void test_local_errors(void **state)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t len;
		uint32_t lkey;
		uint8_t max_rd;
		enum ibv_wc_status status;
	} cases[] = {
		{IBV_WR_SEND, 100, 0x55, 4, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_WRITE, 3000, 0x55, 4, IBV_WC_LOC_PROT_ERR},
		{IBV_WR_RDMA_READ, 100, PAIR_KEY_A + PAIR_KEY_CONST, 4,
		 IBV_WC_LOC_PROT_ERR},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 4, PAIR_KEY_A, 4, IBV_WC_LOC_LEN_ERR},
		{IBV_WR_RDMA_READ, 8, PAIR_KEY_A, 0, IBV_WC_LOC_QP_OP_ERR},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct tp_sge sge = {PAIR_IOVA, cases[i].len, cases[i].lkey};
		struct tp_send_wr wr;

		tp_qp_attr(p->side[A].qp)->max_rd_atomic = cases[i].max_rd;
		pair_recv(p, A, 20, 0, 100);
		pair_recv(p, B, 9, 0, 4096);
		pair_send(p, A, IBV_WR_SEND, 1, 0, 3000, 0);
		wr = pair_wr(p, A, cases[i].op, 2, 0, cases[i].len, 0);
		wr.sge = &sge;
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
		pair_send(p, A, IBV_WR_RDMA_WRITE, 3, 0, 8, 0);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		pair_expect_sent(p, A, 2, cases[i].status);
		pair_expect_sent(p, A, 3, IBV_WC_WR_FLUSH_ERR);
		pair_expect_received(p, A, 20, IBV_WC_WR_FLUSH_ERR);
		pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
		assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
		pair_expect_quiet(p);
		pair_free(p);
	}
}

/* --- packets that no requester of ours would send --- */

static struct wire_packet request(uint8_t opcode, uint32_t at, const void *payload,
				  uint32_t len)
{
	return (struct wire_packet){
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = opcode,
			.dest_qpn = 0xb,
			.psn = psn(at),
			.ack_req = true},
		.reth = {PAIR_IOVA, PAIR_KEY_B, len},
		.atomic = {PAIR_IOVA, PAIR_KEY_B, 1, 0},
		.payload = payload,
		.payload_bytes = len,
	};
}

static const uint8_t some[2048];

struct bad_packet {
	const char *name;
	struct {
		uint8_t opcode;
		uint32_t len, dma_len;
	} packet[3]; /* the last is the bad one */
	unsigned packets;
};

static const struct bad_packet bad_packets[] = {
	{"middle without first", {{WIRE_SEND_MIDDLE, 1024, 0}}, 1},
	{"last without first", {{WIRE_WRITE_LAST, 10, 0}}, 1},
	{"first inside a message",
	 {{WIRE_SEND_FIRST, 1024, 0}, {WIRE_SEND_FIRST, 1024, 0}},
	 2},
	{"only inside a message",
	 {{WIRE_SEND_FIRST, 1024, 0}, {WIRE_SEND_ONLY, 10, 0}},
	 2},
	{"write inside a send",
	 {{WIRE_SEND_FIRST, 1024, 0}, {WIRE_WRITE_MIDDLE, 1024, 0}},
	 2},
	{"read inside a send",
	 {{WIRE_SEND_FIRST, 1024, 0}, {WIRE_READ_REQUEST, 0, 0}},
	 2},
	{"atomic inside a write",
	 {{WIRE_WRITE_FIRST, 1024, 2000}, {WIRE_FETCH_ADD, 0, 0}},
	 2},
	{"short first", {{WIRE_SEND_FIRST, 1000, 0}}, 1},
	{"short middle", {{WIRE_SEND_FIRST, 1024, 0}, {WIRE_SEND_MIDDLE, 1000, 0}}, 2},
	{"empty last", {{WIRE_SEND_FIRST, 1024, 0}, {WIRE_SEND_LAST, 0, 0}}, 2},
	{"more than the MTU", {{WIRE_SEND_ONLY, 1028, 0}}, 1},
	{"write: less than was announced", {{WIRE_WRITE_ONLY, 10, 12}}, 1},
	{"write: more than was announced", {{WIRE_WRITE_ONLY, 10, 8}}, 1},
	{"write: first is all that was announced", {{WIRE_WRITE_FIRST, 1024, 1024}}, 1},
	{"write: last leaves a rest",
	 {{WIRE_WRITE_FIRST, 1024, 2000}, {WIRE_WRITE_LAST, 975, 0}},
	 2},
	{"write longer than 2 GiB", {{WIRE_WRITE_FIRST, 1024, (1u << 31) + 1}}, 1},
	{"read longer than 2 GiB", {{WIRE_READ_REQUEST, 0, (1u << 31) + 1}}, 1},
	{"resync is no request of RC", {{WIRE_RESYNC, 0, 0}}, 1},
};

static void test_bad_packets(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(bad_packets); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		const struct bad_packet *b = &bad_packets[i];
		struct tp_packet_out out;

		print_message("# %s\n", b->name);
		pair_recv(p, B, 1, 0x2000, 4096);
		for (unsigned n = 0; n < b->packets; n++) {
			struct wire_packet pkt = request(b->packet[n].opcode, 0x100 + n,
							 some, b->packet[n].len);
			pkt.reth.length_bytes = b->packet[n].dma_len;
			assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
			pair_deliver(p, B, &pkt);
		}
		assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
		assert_int_equal(out.hdr.aeth.syndrome, NAK(WIRE_NAK_INVALID_REQUEST));
		assert_int_equal(out.hdr.bth.psn.v, 0x100 + b->packets - 1);
		assert_false(tp_qp_wants_transmit(p->side[B].qp));
		assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_ERR);
		assert_true(pair_had_event(p, B, TP_EVENT_QP_REQ_ERR));
		pair_expect_received(p, B, 1, IBV_WC_WR_FLUSH_ERR);
		pair_free(p);
	}
}

/* more READs than were agreed */
static void test_too_many_reads(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.max_rd_atomic = 2});

	for (unsigned i = 0; i < 3; i++) {
		struct wire_packet pkt = request(WIRE_READ_REQUEST, 0x100 + i, NULL, 0);

		pkt.reth.length_bytes = 100;
		assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
		pair_deliver(p, B, &pkt);
	}
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_ERR);
	assert_true(pair_had_event(p, B, TP_EVENT_QP_REQ_ERR));
	pair_free(p);
}

/* packets that are not for this QP's transport, or of another version */
static void test_ignored(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct wire_packet pkt = request(WIRE_UC | WIRE_SEND_ONLY, 0x100, some, 8);

	pair_recv(p, B, 1, 0, 100);
	pair_deliver(p, B, &pkt);
	pkt = request(WIRE_SEND_ONLY, 0x100, some, 8);
	pkt.bth.tver = 1;
	pair_deliver(p, B, &pkt);
	assert_int_equal(tp_qp_stats(p->side[B].qp)->rx_packets, 0);
	assert_int_equal(p->side[B].recvs, 0);
	assert_false(tp_qp_wants_transmit(p->side[B].qp));
	pair_free(p);
}

/* responses that do not fit the request */
static void test_bad_responses(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
	} bad[] = {
		{WIRE_READ_RESP_ONLY, 1024},  {WIRE_READ_RESP_LAST, 1024},
		{WIRE_READ_RESP_FIRST, 1000}, {WIRE_READ_RESP_FIRST, 1028},
		{WIRE_ATOMIC_ACK, 0},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct wire_packet pkt = request(bad[i].opcode, 0x100, some, bad[i].len);
		struct tp_packet_out out;

		pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, 2000, 0);
		assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
		pkt.aeth.syndrome = 0x1f;
		pair_deliver(p, A, &pkt);
		pair_expect_sent(p, A, 1, IBV_WC_BAD_RESP_ERR);
		assert_int_equal(tp_qp_state(p->side[A].qp), IBV_QPS_ERR);
		pair_free(p);
	}
}

/* A READ's response whose PSN is not outstanding is of another time, and changes nothing. */
static void test_responses_out_of_range(void **state)
{
	static const uint32_t out_of_range[] = {0xff, 0x102, 0x100 + (1 << 23)};
	static const uint8_t stale[1024] = {0xee};

	for (unsigned i = 0; i < ARRAY_SIZE(out_of_range); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct wire_packet pkt =
			request(WIRE_READ_RESP_ONLY, out_of_range[i], stale, sizeof(stale));

		pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, 2000, 0x4000);
		pair_run_until(p, p->now);
		pkt.aeth.syndrome = 0x1f;
		pair_deliver(p, A, &pkt);
		assert_int_equal(p->side[A].sends, 0);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		assert_memory_equal(p->side[A].memory, p->side[B].memory + 0x4000, 2000);
		assert_int_equal(tp_qp_stats(p->side[A].qp)->retransmits, 0);
		pair_free(p);
	}
}

/* a key that may not be invalidated */
static void test_invalidate_fails(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_SEND_WITH_INV, 1, 0, 8, 0);

	wr.imm_or_rkey = 0x4444;
	pair_recv(p, B, 1, 0, 100);
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_REM_ACCESS_ERR);
	pair_expect_received(p, B, 1, IBV_WC_LOC_ACCESS_ERR);
	assert_int_equal(p->side[B].invalidated, 0);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_earlier_read_is_answered),
		cmocka_unit_test(test_memory_goes_away),
		cmocka_unit_test(test_local_errors),
		cmocka_unit_test(test_bad_packets),
		cmocka_unit_test(test_too_many_reads),
		cmocka_unit_test(test_ignored),
		cmocka_unit_test(test_bad_responses),
		cmocka_unit_test(test_responses_out_of_range),
		cmocka_unit_test(test_invalidate_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
