/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* RC on a link that loses, repeats and reorders; time-outs and RNR. */
#include <string.h>

#include "pair.h"
#include "transport/fast.h"

static enum pair_fate nth_packet(struct pair *p, const struct pair_packet *pkt)
{
	const uint32_t *arg = p->fate_ctx; /* which, what, how many in a row */
	uint32_t n = p->fate_count++;

	return n >= arg[0] && n < arg[0] + arg[2] ? arg[1] : PASS;
}

/* add the wr_id to the counter at 0x8000 */
static void post_add(struct pair *p, uint64_t wr_id, uint32_t offset)
{
	struct tp_send_wr wr =
		pair_wr(p, A, IBV_WR_ATOMIC_FETCH_AND_ADD, wr_id, offset, 8, 0x8000);

	wr.compare_add = wr_id;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
}

/* store what lies at @offset into the word at 0x8008, after the READs before it: one whose
 * response was lost reads memory again */
static void post_atomic_write(struct pair *p, uint64_t wr_id, uint32_t offset)
{
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_ATOMIC_WRITE, wr_id, offset, 8, 0x8008);

	wr.flags |= IBV_SEND_FENCE;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
}

/* every kind of request in a row, long and short */
static void post_mixture(struct pair *p)
{
	uint64_t counter = 100;

	memcpy(p->side[B].memory + 0x8000, &counter, 8);
	pair_recv(p, B, 51, 0x20000, 4096);
	pair_recv(p, B, 52, 0x30000, 4096);
	pair_recv(p, B, 53, 0x30000, 4096);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 3000, 0);
	pair_send(p, A, IBV_WR_RDMA_READ, 2, 0x4000, 3000, 0x1000);
	post_add(p, 3, 0x9000);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 4, 0x1000, 3000, 0x50000);
	pair_send(p, A, IBV_WR_SEND_WITH_IMM, 5, 0, 10, 0);
	pair_send(p, A, IBV_WR_RDMA_READ, 6, 0x9100, 10, 0x10);
	post_add(p, 7, 0x9008);
	pair_send(p, A, IBV_WR_RDMA_WRITE_WITH_IMM, 8, 0x1000, 2048, 0x60000);
	post_atomic_write(p, 9, 0x1000);
	pair_send(p, A, IBV_WR_RDMA_READ, 10, 0x9200, 8, 0x8008);
	post_atomic_write(p, 11, 0x1008);
	pair_send(p, A, (enum ibv_wr_opcode)TP_WR_FLUSH, 12, 0, 3000, 0x50000);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 13, 0x1000, 100, 0x70000);
	pair_send(p, A, (enum ibv_wr_opcode)TP_WR_FLUSH, 14, 0, 100, 0x70000);
}

static void check_mixture(struct pair *p)
{
	const uint8_t *a = p->side[A].memory, *b = p->side[B].memory;
	uint64_t v[3];

	for (uint64_t id = 1; id <= 14; id++)
		pair_expect_sent(p, A, id, IBV_WC_SUCCESS);
	for (uint64_t id = 51; id <= 53; id++)
		pair_expect_received(p, B, id, IBV_WC_SUCCESS);
	pair_expect_quiet(p);
	assert_memory_equal(b + 0x20000, a, 3000);
	assert_memory_equal(a + 0x4000, b + 0x1000, 3000);
	assert_memory_equal(b + 0x50000, a + 0x1000, 3000);
	assert_memory_equal(b + 0x30000, a, 10);
	assert_memory_equal(a + 0x9100, b + 0x10, 10);
	assert_memory_equal(b + 0x60000, a + 0x1000, 2048);
	/* each word was stored in its turn, and once: else the READ saw another */
	assert_memory_equal(a + 0x9200, a + 0x1000, 8);
	assert_memory_equal(b + 0x8008, a + 0x1008, 8);
	/* each addition was done once */
	memcpy(v, a + 0x9000, 16);
	memcpy(v + 2, b + 0x8000, 8);
	assert_int_equal(v[0], 100);
	assert_int_equal(v[1], 103);
	assert_int_equal(v[2], 110);
}

/* one fault at every packet in turn, then bursts; at PSNs that wrap, too */
static void each_packet(uint32_t sq_psn, enum pair_fate fate, uint32_t burst)
{
	for (uint32_t n = 0; n < 40; n++) {
		struct pair *p = pair_new(&(struct pair_options){
			.sq_psn = {sq_psn, sq_psn}, .max_rd_atomic = 2});
		uint32_t arg[] = {n, fate, burst};

		p->fate = nth_packet;
		p->fate_ctx = arg;
		post_mixture(p);
		pair_run(p);
		check_mixture(p);
		pair_free(p);
	}
}

static void test_each_packet_lost(void **state)
{
	each_packet(0x100, DROP, 1);
	each_packet(0x100, DROP, 4);
}

static void test_each_packet_twice(void **state)
{
	each_packet(0x100, TWICE, 1);
	each_packet(0x100, TWICE, 40);
}

static void test_each_packet_late(void **state)
{
	each_packet(0x100, LATE, 1);
	each_packet(0x100, LATE, 3);
}

static void test_psn_wrap(void **state)
{
	for (uint32_t before = 0; before < 20; before++)
		each_packet(0x1000000 - before, DROP, 1);
}

/* a duplicate atomic is answered from memory of its result, not executed */
static void test_atomic_once(void **state)
{
	for (unsigned lost = 0; lost < 2; lost++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		uint32_t arg[] = {1, lost ? DROP : TWICE,
				  1}; /* the response; the request */
		struct tp_send_wr wr =
			pair_wr(p, A, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 64);
		uint64_t v = 5;

		arg[0] = lost;
		wr.compare_add = 7;
		memcpy(p->side[B].memory + 64, &v, 8);
		p->fate = nth_packet;
		p->fate_ctx = arg;
		assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		memcpy(&v, p->side[A].memory, 8);
		assert_int_equal(v, 5);
		memcpy(&v, p->side[B].memory + 64, 8);
		assert_int_equal(v, 12);
		assert_int_equal(pair_count(p, B, WIRE_ATOMIC_ACK), 2);
		assert_int_equal(tp_qp_stats(p->side[B].qp)->count[TP_DUPLICATE_REQUEST], 1);
		pair_free(p);
	}
}

/* ... wherever it is kept: the depth, and with it the place, changes before the
 * duplicate comes */
static void test_atomic_once_at_another_depth(void **state)
{
	for (unsigned depth = 2; depth <= 16; depth++) {
		struct pair *p = pair_new(&(struct pair_options){.max_rd_atomic = 4});
		uint32_t arg[] = {13, DROP, 1}; /* the seventh response */
		uint64_t v = 0;

		memcpy(p->side[B].memory + 64, &v, 8);
		p->fate = nth_packet;
		p->fate_ctx = arg;
		for (unsigned i = 0; i < 7; i++) {
			struct tp_send_wr wr =
				pair_wr(p, A, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 8 * i, 8, 64);

			wr.compare_add = 1;
			assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
			pair_run_until(p, mono_add(p->now, 2 * PAIR_LINK_NS));
		}
		tp_qp_attr(p->side[B].qp)->max_dest_rd_atomic = (uint8_t)depth;
		pair_send(p, A, IBV_WR_RDMA_READ, 7, 4096, 8, 4096);
		pair_run(p);
		for (unsigned i = 0; i < 8; i++)
			pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
		assert_int_equal(tp_qp_stats(p->side[B].qp)->count[TP_DUPLICATE_REQUEST], 2);
		memcpy(&v, p->side[A].memory + 8 * 6, 8);
		assert_int_equal(v, 6);
		memcpy(&v, p->side[B].memory + 64, 8);
		assert_int_equal(v, 7);
		pair_free(p);
	}
}

/* one NAK per gap, and sending goes on from the gap */
static void test_sequence_nak(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	uint32_t arg[] = {3, DROP, 1};
	const struct pair_packet *nak;

	p->fate = nth_packet;
	p->fate_ctx = arg;
	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, 10 * 1024, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	nak = pair_find(p, B, WIRE_ACKNOWLEDGE, 0);
	assert_int_equal(nak->syndrome, WIRE_AETH_NAK | WIRE_NAK_PSN_SEQUENCE);
	assert_int_equal(nak->psn.v, 0x103);
	assert_int_equal(nak->msn, 0);
	assert_int_equal(pair_count(p, B, WIRE_ACKNOWLEDGE), 2);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->retransmits, 7);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 0);
	assert_int_equal(tp_qp_stats(p->side[B].qp)->count[TP_OUT_OF_SEQUENCE], 6);
	pair_free(p);
}

static enum pair_fate two_gaps(struct pair *p, const struct pair_packet *pkt)
{
	uint32_t n = p->fate_count++;

	return n == 1 || n == 18 ? DROP : PASS;
}

/* a second gap is told again, and waits for no timer */
static void test_second_gap(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	p->fate = two_gaps;
	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, 10 * 1024, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_SEQUENCE_NAK_RECEIVED], 2);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 0);
	pair_free(p);
}

/* a READ whose response has a hole asks for the rest, not for all */
static void test_read_restart(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	uint32_t arg[] = {4, DROP, 1}; /* request, then four responses */
	const struct pair_packet *again;

	p->fate = nth_packet;
	p->fate_ctx = arg;
	pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, 10000, 0x8000);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	assert_memory_equal(p->side[A].memory, p->side[B].memory + 0x8000, 10000);
	assert_int_equal(pair_count(p, A, WIRE_READ_REQUEST), 2);
	again = pair_find(p, A, WIRE_READ_REQUEST, 1);
	assert_int_equal(again->psn.v, 0x103);
	assert_true(again->reth.va == PAIR_IOVA + 0x8000 + 3 * 1024);
	assert_int_equal(again->reth.length_bytes, 10000 - 3 * 1024);
	/* what is asked for again begins with a first packet */
	assert_int_equal(pair_count(p, B, WIRE_READ_RESP_FIRST), 2);
	pair_free(p);
}

/* an ACK beyond a READ without response tells that the response is lost */
static void test_implied_nak(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	uint32_t arg[] = {2, DROP, 1}; /* READ, WRITE, then the response */

	p->fate = nth_packet;
	p->fate_ctx = arg;
	pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, 8, 64);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0x100, 8, 0x100);
	pair_run(p);
	assert_int_equal(pair_find(p, B, WIRE_READ_RESP_ONLY, 0)->lost, true);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 0);
	pair_expect_quiet(p);
	pair_free(p);
}

static enum pair_fate from_a_lost(struct pair *p, const struct pair_packet *pkt)
{
	const uint32_t *losses = p->fate_ctx;

	return pkt->from == A && p->fate_count++ < *losses ? DROP : PASS;
}

/* once and three retries, each of them waits for @wait_ns */
static void expect_retries(const struct pair_options *options, uint64_t wait_ns)
{
	struct pair *p = pair_new(options);
	mono_t start = p->now;
	uint32_t losses = 4;

	p->fate = from_a_lost;
	p->fate_ctx = &losses;
	pair_recv(p, A, 7, 0, 10);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, 8, 0);
	for (uint32_t i = 0; i < 4; i++) {
		pair_run_until(p, mono_add(start, (i + 1) * wait_ns - 1));
		assert_int_equal(p->logged, i + 1);
	}
	assert_int_equal(p->side[A].sends, 0);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0, 8, 0);
	pair_run_until(p, mono_add(start, 4 * wait_ns));
	pair_expect_sent(p, A, 1, IBV_WC_RETRY_EXC_ERR);
	pair_expect_sent(p, A, 2, IBV_WC_WR_FLUSH_ERR);
	pair_expect_received(p, A, 7, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(tp_qp_state(p->side[A].qp), IBV_QPS_ERR);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 4);
	pair_free(p);
}

static void test_retry_exceeded(void **state)
{
	/* what the encoding allows */
	expect_retries(&(struct pair_options){.retry_cnt = 3, .timeout_enc = 10},
		       4 * tp_timeout_ns(10));
}

#define FLOOR_NS (4 * NSEC_PER_MSEC)

/* A time-out below the floor is the floor, each time; others are what they are. */
static void test_a_short_timeout_is_the_floor(void **state)
{
	static const uint8_t encodings[] = {1, 5, 9, 10, 14};

	for (size_t i = 0; i < ARRAY_SIZE(encodings); i++) {
		struct pair_options options = {.retry_cnt = 3, .timeout_enc = encodings[i],
					       .min_ack_ns = FLOOR_NS};
		uint64_t ns = tp_timeout_ns(encodings[i]);

		assert_true((ns < FLOOR_NS) == (encodings[i] < 10));
		expect_retries(&options, 4 * MAX(ns, FLOOR_NS));
		options.min_ack_ns = 0;
		expect_retries(&options, 4 * ns);
	}
}

/* The floor is the ACK time-out's: the RNR timer is exact, and no time-out never ends. */
static void test_the_floor_is_for_acks_alone(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){
		.retry_cnt = 3, .rnr_retry = 7, .timeout_enc = 5, .min_ack_ns = FLOOR_NS});
	uint32_t losses = UINT32_MAX;
	mono_t start;

	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	while (!tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED])
		pair_run_until(p, mono_add(p->now, NSEC_PER_USEC));
	start = p->now;
	assert_int_equal(tp_qp_expiry(p->side[A].qp).ns - start.ns,
			 tp_rnr_ns(tp_qp_attr(p->side[B].qp)->min_rnr_timer_enc));
	pair_recv(p, B, 2, 0, 8);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 2, IBV_WC_SUCCESS);
	p->fate = from_a_lost;
	p->fate_ctx = &losses;
	tp_qp_attr(p->side[A].qp)->timeout_enc = 0;
	tp_qp_modify(p->side[A].qp, IBV_QPS_RTS, p->now);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 3, 0, 8, 0);
	pair_run(p);
	assert_int_equal(tp_qp_expiry(p->side[A].qp).ns, MONO_NEVER.ns);
	pair_free(p);
}

/* each time-out alone is within the limit: progress refills the count */
static enum pair_fate every_third_passes(struct pair *p, const struct pair_packet *pkt)
{
	return pkt->from == A && p->fate_count++ % 3 != 2 ? DROP : PASS;
}

static void test_progress_refills_retries(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.retry_cnt = 2});

	p->fate = every_third_passes;
	for (unsigned i = 0; i < 8; i++) {
		pair_send(p, A, IBV_WR_RDMA_WRITE, i, 0, 8, 0);
		pair_run(p);
		pair_expect_sent(p, A, i, IBV_WC_SUCCESS);
	}
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 16);
	pair_free(p);
}

/* a link without room is no loss: the clock starts with the packet */
static void test_no_room_no_timeout(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.retry_cnt = 1});

	p->corked = true;
	pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, 8, 0);
	pair_run_until(p, mono_add(p->now, NSEC_PER_SEC));
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 0);
	p->corked = false;
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_free(p);
}

/* --- receiver not ready --- */

static void test_rnr(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	mono_t first;

	/* two packets behind the one that finds no receive: dropped silently */
	pair_send(p, A, IBV_WR_SEND, 1, 0, 3000, 0);
	pair_run_until(p, mono_add(p->now, 100 * NSEC_PER_USEC));
	assert_int_equal(pair_count(p, B, WIRE_ACKNOWLEDGE), 1);
	assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->syndrome,
			 WIRE_AETH_RNR_NAK | 12);
	assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->psn.v, 0x100);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED], 1);
	first = pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->sent;
	pair_recv(p, B, 9, 0x1000, 4096);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	/* again not before the time that the NAK asked for */
	assert_int_equal(pair_find(p, A, WIRE_SEND_FIRST, 1)->sent.ns - first.ns,
			 tp_rnr_ns(12) + PAIR_LINK_NS);
	pair_expect_quiet(p);
	pair_free(p);
}

/* a late NAK that comes while the RNR timer runs must not stop it */
static void test_rnr_then_late_nak(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct wire_packet pkt = {
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = WIRE_ACKNOWLEDGE, .dest_qpn = 0xa, .psn = psn(0x100)},
		.aeth = {WIRE_AETH_NAK | WIRE_NAK_PSN_SEQUENCE, 0},
	};

	pair_send(p, A, IBV_WR_SEND, 1, 0, 3000, 0);
	pair_run_until(p, mono_add(p->now, 100 * NSEC_PER_USEC));
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED], 1);
	pair_deliver(p, A, &pkt);
	assert_false(tp_qp_wants_transmit(p->side[A].qp));
	pair_recv(p, B, 9, 0x1000, 4096);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	pair_free(p);
}

/* WRITE with immediate: the data may be there, the receive decides */
static void test_rnr_write_imm(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});

	pair_send(p, A, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 3000, 0x1000);
	pair_run_until(p, mono_add(p->now, 2000 * NSEC_PER_USEC));
	assert_true(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED] > 1);
	assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->psn.v, 0x102);
	assert_int_equal(pair_count(p, A, WIRE_WRITE_FIRST), 1); /* only the last again */
	pair_recv(p, B, 9, 0, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	assert_memory_equal(p->side[B].memory + 0x1000, p->side[A].memory, 3000);
	pair_free(p);
}

static void test_rnr_exceeded(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.rnr_retry = 2});

	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	pair_send(p, A, IBV_WR_SEND, 2, 0, 8, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_expect_sent(p, A, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED], 3);
	assert_int_equal(tp_qp_state(p->side[A].qp), IBV_QPS_ERR);
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
	pair_expect_quiet(p);
	pair_free(p);
}

static void test_rnr_for_ever(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.rnr_retry = 7});

	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	pair_run_until(p, mono_add(p->now, NSEC_PER_SEC));
	assert_true(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED] > 1000);
	pair_recv(p, B, 1, 0, 8);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_free(p);
}

/* faults refuse the first three of what takes a receive; receives are there */
static enum pair_fate refuse_three(struct pair *p, const struct pair_packet *pkt)
{
	return pkt->from == A && ++p->fate_count <= 3 ? REFUSE : PASS;
}

static void test_marked_rnr(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.rnr_retry = 3});

	p->fate = refuse_three;
	pair_recv(p, B, 9, 0x1000, 64);
	pair_recv(p, B, 10, 0x2000, 64);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 9, IBV_WC_SUCCESS);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED], 3);
	/* with the timer that the mark names, not the responder's */
	assert_int_equal(pair_find(p, B, WIRE_ACKNOWLEDGE, 0)->syndrome, WIRE_AETH_RNR_NAK | 1);
	/* what takes no receive is not refused */
	p->fate_count = 0;
	pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0, 8, 0x100);
	pair_run(p);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_RNR_NAK_RECEIVED], 3);
	pair_expect_quiet(p);
	pair_free(p);
}

static void test_marked_rnr_exceeded(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.rnr_retry = 2});

	p->fate = refuse_three;
	pair_recv(p, B, 9, 0x1000, 64);
	pair_send(p, A, IBV_WR_SEND, 1, 0, 8, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	pair_expect_quiet(p);
	pair_free(p);
}

/* --- borders --- */

static struct wire_packet ack_at(uint32_t at)
{
	return (struct wire_packet){
		.lrh.lnh = WIRE_LNH_BTH,
		.bth = {.opcode = WIRE_ACKNOWLEDGE, .dest_qpn = 0xa, .psn = psn(at)},
		.aeth = {0x1f, 0},
	};
}

static struct wire_packet read_at(uint32_t at, uint32_t offset, uint32_t len)
{
	struct wire_packet pkt = ack_at(at);

	pkt.bth.opcode = WIRE_READ_REQUEST;
	pkt.reth = (struct wire_reth){PAIR_IOVA + offset, PAIR_KEY_B, len};
	return pkt;
}

/* --- what only packets made by hand can show --- */

/* the missing packet comes before the NAK left: there is nothing to ask for */
static void test_nak_withdrawn(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_packet_out out;

	for (uint32_t at = 0x101; at >= 0x100; at--) {
		struct wire_packet pkt = ack_at(at);

		pkt.bth.opcode = WIRE_WRITE_ONLY;
		pkt.bth.ack_req = true;
		pair_deliver(p, B, &pkt);
	}
	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	assert_int_equal(out.hdr.aeth.syndrome, 0x1f);
	assert_int_equal(out.hdr.bth.psn.v, 0x100);
	assert_false(tp_qp_wants_transmit(p->side[B].qp));
	pair_free(p);
}

/* a duplicate READ may ask for less than the first time, not for other memory */
static void test_duplicate_read_elsewhere(void **state)
{
	static const struct {
		uint32_t at, offset, len;
		bool answered;
	} cases[] = {
		{0x100, 0x1000, 3000, true},	    {0x102, 0x1000 + 2048, 952, true},
		{0x101, 0x1000 + 1024, 1024, true}, {0x100, 0x1001, 3000, false},
		{0x101, 0x1000, 1024, false},	    {0x102, 0x1000 + 2048, 953, false},
		{0xff, 0x1000, 3000, false},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct wire_packet pkt = read_at(0x100, 0x1000, 3000);
		struct tp_packet_out out;

		pair_deliver(p, B, &pkt);
		while (tp_qp_transmit(p->side[B].qp, &out, p->now))
			;
		pkt = read_at(cases[i].at, cases[i].offset, cases[i].len);
		pair_deliver(p, B, &pkt);
		assert_int_equal(tp_qp_transmit(p->side[B].qp, &out, p->now),
				 cases[i].answered);
		if (cases[i].answered)
			assert_int_equal(out.hdr.bth.psn.v, cases[i].at);
		assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
		pair_free(p);
	}
}

/* What a READ read is deregistered when its peer has it all, and a stale duplicate of the
 * request comes: it is dropped. So is that of which a part was sent again. */
static void test_duplicate_read_of_gone_memory(void **state)
{
	for (unsigned again = 0; again <= 3; again++) {
		struct pair *p = pair_new(&(struct pair_options){0});
		struct wire_packet pkt = read_at(0x100, 0x1000, 3000);
		struct tp_qp *qp = p->side[B].qp;
		struct tp_packet_out out;

		pair_deliver(p, B, &pkt);
		while (tp_qp_transmit(qp, &out, p->now))
			;
		pkt = read_at(0x100, 0x1000, 3000);
		pair_deliver(p, B, &pkt);
		for (unsigned i = 0; i < again; i++)
			assert_true(tp_qp_transmit(qp, &out, p->now));
		p->side[B].key_revoked = true;
		assert_false(tp_qp_transmit(qp, &out, p->now));
		assert_false(tp_qp_wants_transmit(qp));
		assert_int_equal(tp_qp_state(qp), IBV_QPS_RTS);
		assert_int_equal(p->side[B].events, 0);
		/* the next request is answered as ever */
		p->side[B].key_revoked = false;
		pkt = read_at(0x103, 0x1000, 8);
		pair_deliver(p, B, &pkt);
		assert_true(tp_qp_transmit(qp, &out, p->now));
		assert_int_equal(out.hdr.bth.psn.v, 0x103);
		pair_free(p);
	}
}

/* that of an atomic needs no memory: it has the result that was saved */
static void test_duplicate_atomic_of_gone_memory(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_packet_out request, out;

	post_add(p, 1, 0x1000);
	assert_true(tp_qp_transmit(p->side[A].qp, &request, p->now));
	pair_deliver(p, B, &request.hdr);
	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	p->side[B].key_revoked = true;
	pair_deliver(p, B, &request.hdr);
	memset(&out, 0, sizeof(out));
	assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.opcode, WIRE_RC | WIRE_ATOMIC_ACK);
	assert_false(tp_qp_wants_transmit(p->side[B].qp));
	assert_int_equal(tp_qp_state(p->side[B].qp), IBV_QPS_RTS);
	pair_free(p);
}

/* a stale duplicate gives way to a new READ, and answers stay in PSN order */
static void test_stale_duplicate_gives_way(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.max_rd_atomic = 2});
	static const uint32_t requests[] = {0x100, 0x101, /* answered */ 0x100, 0x101,
					    0x102};
	static const uint32_t answers[] = {0x101, 0x102};
	struct tp_packet_out out;

	for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
		struct wire_packet pkt = read_at(requests[i], 0x1000 + requests[i], 8);

		pair_deliver(p, B, &pkt);
		for (unsigned n = 0; i == 1 && n < 2; n++)
			assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(answers); i++) {
		assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
		assert_int_equal(out.hdr.bth.psn.v, answers[i]);
	}
	assert_false(tp_qp_wants_transmit(p->side[B].qp));
	pair_free(p);
}

/* a request cannot be sent again, but its first copy is acknowledged after all */
static struct pair *resend_that_fails(void)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_packet_out out;

	for (unsigned i = 1; i <= 2; i++) {
		pair_send(p, A, IBV_WR_RDMA_WRITE, i, 0, 8, 0);
		assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	}
	for (unsigned half = 0; half < 2; half++) {
		p->now = tp_qp_expiry(p->side[A].qp);
		tp_qp_expire(p->side[A].qp, p->now);
	}
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	p->side[A].key_revoked = true;
	assert_false(tp_qp_transmit(p->side[A].qp, &out, p->now));
	p->side[A].key_revoked = false;
	return p;
}

static void test_resend_fails_ack_saves(void **state)
{
	struct pair *p = resend_that_fails();
	struct wire_packet pkt = ack_at(0x101);
	struct tp_packet_out out;

	pair_deliver(p, A, &pkt);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	assert_int_equal(tp_qp_state(p->side[A].qp), IBV_QPS_RTS);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 3, 0, 8, 0);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.psn.v, 0x102);
	pair_free(p);
}

/* ... while the send queue is to drain: it has, then, and nothing new begins */
static void test_resend_fails_ack_drains(void **state)
{
	struct pair *p = resend_that_fails();
	struct wire_packet pkt = ack_at(0x101);
	struct tp_packet_out out;

	tp_qp_modify(p->side[A].qp, IBV_QPS_SQD, p->now);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 3, 0, 8, 0);
	assert_true(tp_qp_is_draining(p->side[A].qp));
	pair_deliver(p, A, &pkt);
	assert_true(pair_had_event(p, A, TP_EVENT_SQ_DRAINED));
	assert_false(tp_qp_is_draining(p->side[A].qp));
	assert_false(tp_qp_transmit(p->side[A].qp, &out, p->now));
	tp_qp_modify(p->side[A].qp, IBV_QPS_RTS, p->now);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.psn.v, 0x102);
	pair_free(p);
}

/*
 * Which PSNs an ACK may have, una = 0x100 and sent = 0x103 (or around 0):
 *  1 una - 1: stale        4 sent: never sent, dropped
 *  2 una: acknowledges one   5 una + 2^23: half the space away, stale
 *  3 sent - 1: all
 * the same for one that comes with a request of the peer
 */
static void test_ack_borders(void **state)
{
	static const struct {
		uint32_t from_una;
		unsigned completed;
	} cases[] = {{0xffffff, 0}, {0, 1}, {2, 3}, {3, 0}, {1 << 23, 0}};

	for (unsigned how = 0; how < 4; how++)
		for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
			uint32_t una = how & 1 ? 0xfffffe : 0x100;
			struct pair *p =
				pair_new(&(struct pair_options){.sq_psn = {una}});
			struct wire_packet pkt = ack_at(una + cases[i].from_una);

			for (unsigned n = 0; n < 3; n++)
				pair_send(p, A, IBV_WR_RDMA_WRITE, n, 0, 8, 0);
			pair_run_until(p, p->now);
			if (how & 2)
				tp_qp_acked(p->side[A].qp, pkt.bth.psn, p->now);
			else
				pair_deliver(p, A, &pkt);
			assert_int_equal(p->side[A].sends, cases[i].completed);
			pair_run(p); /* the real ACKs complete the rest, once */
			assert_int_equal(p->side[A].sends, 3);
			pair_free(p);
		}
}

/*
 * How the responder takes a PSN, expected e:
 *  1 e: executed                 4 e + 2^23 - 1: the farthest too early
 *  2 e - 1: duplicate            5 e + 2^23 = e - 2^23: the oldest duplicate
 *  3 e + 1: too early
 */
static void test_request_borders(void **state)
{
	static const struct {
		uint32_t from_expected;
		uint8_t syndrome;
		uint32_t ack_from_expected;
		unsigned received;
	} cases[] = {
		{0, 0x1f, 0, 1},
		{0xffffff, 0x1f, 0xffffff, 0},
		{1, WIRE_AETH_NAK, 0, 0},
		{(1 << 23) - 1, WIRE_AETH_NAK, 0, 0},
		{1 << 23, 0x1f, 0xffffff, 0},
	};

	for (unsigned wrap = 0; wrap < 2; wrap++)
		for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
			uint32_t e = wrap ? 0xffffff : 0x100;
			struct pair *p = pair_new(&(struct pair_options){.sq_psn = {e}});
			struct wire_packet pkt = ack_at(e + cases[i].from_expected);
			struct tp_packet_out out;

			pkt.bth.opcode = WIRE_SEND_ONLY;
			pkt.bth.ack_req = true;
			pair_recv(p, B, 1, 0, 8);
			pair_deliver(p, B, &pkt);
			assert_int_equal(p->side[B].recvs, cases[i].received);
			assert_true(tp_qp_transmit(p->side[B].qp, &out, p->now));
			assert_int_equal(out.hdr.aeth.syndrome, cases[i].syndrome);
			assert_int_equal(out.hdr.bth.psn.v,
					 (e + cases[i].ack_from_expected) & 0xffffff);
			assert_false(tp_qp_wants_transmit(p->side[B].qp));
			pair_free(p);
		}
}

/* The responses of a READ take PSNs, but no place in the window of request packets: a SEND may
 * follow at once, on either path. */
static void test_send_behind_read(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.mtu_bytes = 256});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_RDMA_READ, 1, 0, 8, 0);
	struct tp_packet_out out;

	wr.length_bytes = 1u << 30;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_true(tp_fast_may_send(p->side[A].qp));
	pair_send(p, A, IBV_WR_SEND, 2, 0, 8, 0);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.psn.v, 0x100 + (1u << 22));
	pair_free(p);
}

/* 2 GiB at 256 bytes a packet is half of the PSN space: nothing beside it */
static void test_largest_read(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){.mtu_bytes = 256});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_RDMA_READ, 1, 0, 8, 0);
	struct tp_packet_out out;
	struct wire_packet pkt;

	wr.length_bytes = 1u << 31;
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(out.hdr.reth.length_bytes, 1u << 31);
	assert_false(tp_fast_may_send(p->side[A].qp));
	pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0, 8, 0);
	assert_false(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_false(tp_qp_wants_transmit(p->side[A].qp));
	/* the NAK that the responder gives: 2 GiB are not in its memory */
	pkt = ack_at(0x100);
	pkt.aeth.syndrome = WIRE_AETH_NAK | WIRE_NAK_REMOTE_ACCESS;
	pair_deliver(p, A, &pkt);
	pair_expect_sent(p, A, 1, IBV_WC_REM_ACCESS_ERR);
	pair_expect_sent(p, A, 2, IBV_WC_WR_FLUSH_ERR);
	pair_free(p);
}

/* a 2 GiB WRITE: 524,288 packets, ACKs that skip, one completion */
static void test_largest_write(void **state)
{
	struct pair *p =
		pair_new(&(struct pair_options){.mtu_bytes = 4096, .max_sge = 32});
	struct tp_send_wr wr = pair_wr(p, A, IBV_WR_RDMA_WRITE, 1, 0, 8, 0);
	struct tp_packet_out out;
	uint32_t packets = 0;

	p->side[A].endless = true;
	wr.length_bytes = 1u << 31;
	wr.sge = &(struct tp_sge){PAIR_IOVA, 1u << 31, PAIR_KEY_A};
	assert_int_equal(tp_qp_post_send(p->side[A].qp, &wr), 0);
	while (p->side[A].sends == 0) {
		uint32_t n = 0;
		struct wire_packet pkt;

		while (tp_qp_transmit(p->side[A].qp, &out, p->now)) {
			assert_int_equal(out.hdr.bth.opcode,
					 packets + n == 0 ? WIRE_WRITE_FIRST :
					 packets + n == (1u << 19) - 1 ?
							    WIRE_WRITE_LAST :
							    WIRE_WRITE_MIDDLE);
			n++;
		}
		assert_true(n > 0);
		packets += n;
		pkt = ack_at(0x100 + packets - 1);
		pair_deliver(p, A, &pkt);
	}
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	assert_int_equal(packets, 1u << 19);
	pair_free(p);
}

/* --- end-to-end credits of a peer that counts them --- */

static void test_credits(void **state)
{
	struct pair *p = pair_new(&(struct pair_options){0});
	struct tp_packet_out out;
	struct wire_packet pkt;

	for (unsigned i = 0; i < 6; i++)
		pair_send(p, A, IBV_WR_SEND, i, 0, i == 3 ? 2000 : 8, 0);
	p->corked = true;
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	pkt = ack_at(0x100);
	pkt.aeth = (struct wire_aeth){WIRE_AETH_ACK | 2, 1}; /* 1 done, 2 receives more */
	pair_deliver(p, A, &pkt);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_false(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_false(tp_qp_wants_transmit(p->side[A].qp));
	pkt = ack_at(0x102);
	pkt.aeth = (struct wire_aeth){WIRE_AETH_ACK | 0, 3}; /* no receive: one packet */
	pair_deliver(p, A, &pkt);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.opcode, WIRE_SEND_FIRST);
	assert_true(out.hdr.bth.ack_req);
	assert_false(tp_qp_transmit(p->side[A].qp, &out, p->now));
	pkt = ack_at(0x103); /* it was taken: there is a receive after all */
	pkt.aeth = (struct wire_aeth){WIRE_AETH_ACK | 0, 3};
	pair_deliver(p, A, &pkt);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_int_equal(out.hdr.bth.opcode, WIRE_SEND_LAST);
	assert_false(tp_qp_transmit(p->side[A].qp, &out, p->now));
	pkt = ack_at(0x103); /* the newest ACK again, with credits */
	pkt.aeth = (struct wire_aeth){WIRE_AETH_ACK | 5, 4};
	pair_deliver(p, A, &pkt);
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	assert_true(tp_qp_transmit(p->side[A].qp, &out, p->now));
	pair_free(p);
}

/* --- encodings --- */

static void test_encodings(void **state)
{
	assert_true(tp_timeout_ns(0) == UINT64_MAX);
	assert_int_equal(tp_timeout_ns(1), 8192);
	assert_int_equal(tp_timeout_ns(14), 67108864);
	assert_true(tp_timeout_ns(31) == 4096ull << 31);
	assert_int_equal(tp_rnr_ns(0), 655360000);
	assert_int_equal(tp_rnr_ns(1), 10000);
	assert_int_equal(tp_rnr_ns(12), 640000);
	assert_int_equal(tp_rnr_ns(31), 491520000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_packet_lost),
		cmocka_unit_test(test_each_packet_twice),
		cmocka_unit_test(test_each_packet_late),
		cmocka_unit_test(test_psn_wrap),
		cmocka_unit_test(test_atomic_once),
		cmocka_unit_test(test_atomic_once_at_another_depth),
		cmocka_unit_test(test_sequence_nak),
		cmocka_unit_test(test_second_gap),
		cmocka_unit_test(test_read_restart),
		cmocka_unit_test(test_implied_nak),
		cmocka_unit_test(test_retry_exceeded),
		cmocka_unit_test(test_a_short_timeout_is_the_floor),
		cmocka_unit_test(test_the_floor_is_for_acks_alone),
		cmocka_unit_test(test_progress_refills_retries),
		cmocka_unit_test(test_no_room_no_timeout),
		cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_rnr_then_late_nak),
		cmocka_unit_test(test_rnr_write_imm),
		cmocka_unit_test(test_rnr_exceeded),
		cmocka_unit_test(test_rnr_for_ever),
		cmocka_unit_test(test_marked_rnr),
		cmocka_unit_test(test_marked_rnr_exceeded),
		cmocka_unit_test(test_nak_withdrawn),
		cmocka_unit_test(test_duplicate_read_elsewhere),
		cmocka_unit_test(test_duplicate_read_of_gone_memory),
		cmocka_unit_test(test_duplicate_atomic_of_gone_memory),
		cmocka_unit_test(test_stale_duplicate_gives_way),
		cmocka_unit_test(test_resend_fails_ack_saves),
		cmocka_unit_test(test_resend_fails_ack_drains),
		cmocka_unit_test(test_ack_borders),
		cmocka_unit_test(test_request_borders),
		cmocka_unit_test(test_send_behind_read),
		cmocka_unit_test(test_largest_read),
		cmocka_unit_test(test_largest_write),
		cmocka_unit_test(test_credits),
		cmocka_unit_test(test_encodings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
