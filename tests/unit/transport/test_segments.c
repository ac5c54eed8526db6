/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segments: what stands for many packets moves PSNs as they would, is trimmed
 * when its beginning came before, and takes acknowledgements along.
 */
#include <string.h>

#include "pair.h"
#include "transport/fast.h"

#define MTU 1024
#define LONG 20000 /* bytes: twenty packets */

/* which packets of A are lost: a bit for each, from the first */
static enum pair_fate lose(struct pair *p, const struct pair_packet *pkt)
{
	const uint32_t *mask = p->fate_ctx;
	uint32_t n = pkt->from == A ? p->fate_count++ : 32;

	return n < 32 && *mask >> n & 1 ? DROP : PASS;
}

static struct pair *new_pair(enum tp_type type, uint32_t segment_bytes)
{
	struct pair *p = pair_new(&(struct pair_options){.type = type});

	p->segment_bytes = segment_bytes;
	return p;
}

static void psns_move_as_if_it_had_been_cut(void **state)
{
	struct pair *p = new_pair(TP_RC, 8 * MTU);
	const struct pair_packet *first, *middle, *last;

	pair_recv(p, B, 7, 0, LONG);
	pair_send(p, A, IBV_WR_SEND, 1, 0x40000, LONG, 0);
	pair_send(p, A, IBV_WR_RDMA_WRITE, 2, 0, 10, 0x80000);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 7, IBV_WC_SUCCESS);
	assert_memory_equal(p->side[A].memory + 0x40000, p->side[B].memory, LONG);
	first = pair_find(p, A, WIRE_RC | WIRE_SEND_FIRST, 0);
	middle = pair_find(p, A, WIRE_RC | WIRE_SEND_MIDDLE, 0);
	last = pair_find(p, A, WIRE_RC | WIRE_SEND_LAST, 0);
	assert_int_equal(first->packets, 8);
	assert_int_equal(middle->psn.v, 0x100 + 8);
	assert_int_equal(last->psn.v, 0x100 + 16);
	assert_int_equal(last->packets, 4);
	assert_int_equal(pair_find(p, A, WIRE_RC | WIRE_WRITE_ONLY, 0)->psn.v, 0x100 + 20);
	assert_int_equal(tp_qp_stats(p->side[A].qp)->tx_packets, 21);
	assert_int_equal(tp_qp_stats(p->side[B].qp)->rx_packets, 21);
	pair_expect_quiet(p);
	pair_free(p);
}

/* Segments are lost, and what is sent again is cut elsewhere: by another
 * length for each packet, so that it begins in the middle of what came. */
static enum pair_fate lose_and_recut(struct pair *p, const struct pair_packet *pkt)
{
	enum pair_fate fate = lose(p, pkt);

	p->segment_bytes = (1 + pair_random(p, 9)) * MTU;
	return fate;
}

static void what_came_before_is_trimmed(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM};

	for (uint32_t mask = 0; mask < 1 << 7; mask++) {
		for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
			struct pair *p = new_pair(TP_RC, 5 * MTU);

			p->fate = lose_and_recut;
			p->fate_ctx = &mask;
			p->seed = mask + 1;
			pair_recv(p, B, 7, 0, LONG);
			pair_recv(p, B, 8, 0x20000, LONG);
			for (unsigned n = 0; n < 2; n++)
				pair_send(p, A, opcodes[i], n, 0x40000 + n * LONG, LONG,
					  n * 0x20000);
			pair_run(p);
			for (unsigned n = 0; n < 2; n++) {
				pair_expect_sent(p, A, n, IBV_WC_SUCCESS);
				pair_expect_received(p, B, 7 + n, IBV_WC_SUCCESS);
				assert_memory_equal(p->side[A].memory + 0x40000 + n * LONG,
						    p->side[B].memory + n * 0x20000, LONG);
			}
			pair_expect_quiet(p);
			pair_free(p);
		}
	}
}

/* the answers are lost and cut, the request is repeated */
static enum pair_fate lose_answers(struct pair *p, const struct pair_packet *pkt)
{
	struct pair_packet other = *pkt;

	other.from = !pkt->from;
	return lose_and_recut(p, &other);
}

static void reads_are_answered_in_segments(void **state)
{
	for (uint32_t mask = 0; mask < 1 << 7; mask++) {
		struct pair *p = new_pair(TP_RC, 6 * MTU);

		p->fate = lose_answers;
		p->fate_ctx = &mask;
		p->seed = mask + 1;
		pair_send(p, A, IBV_WR_RDMA_READ, 1, 0, LONG, 0x40000);
		pair_send(p, A, IBV_WR_RDMA_READ, 2, 0x20000, 100, 0x60000);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
		assert_memory_equal(p->side[A].memory, p->side[B].memory + 0x40000, LONG);
		assert_memory_equal(p->side[A].memory + 0x20000, p->side[B].memory + 0x60000, 100);
		pair_expect_quiet(p);
		pair_free(p);
	}
}

static void answer(struct pair *p, enum pair_side_id side, const struct tp_wc *wc, bool recv)
{
	if (side == B && recv)
		pair_send(p, B, IBV_WR_SEND, wc->wr_id, 0, 8, 0);
}

static void an_acknowledgement_travels_along(void **state)
{
	struct pair *p = new_pair(TP_RC, 8 * MTU);
	const struct pair_packet *reply;

	p->done = answer;
	pair_recv(p, A, 5, 0, 100);
	pair_recv(p, B, 7, 0, 100);
	pair_send(p, A, IBV_WR_SEND, 1, 0x40000, 8, 0);
	pair_run(p);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 7, IBV_WC_SUCCESS);
	pair_expect_received(p, A, 5, IBV_WC_SUCCESS);
	pair_expect_sent(p, B, 7, IBV_WC_SUCCESS);
	reply = pair_find(p, B, WIRE_RC | WIRE_SEND_ONLY, 0);
	assert_true(reply->has_ack);
	assert_int_equal(pair_count(p, B, WIRE_RC | WIRE_ACKNOWLEDGE), 0);
	assert_int_equal(pair_count(p, A, WIRE_RC | WIRE_ACKNOWLEDGE), 1);
	pair_expect_quiet(p);
	pair_free(p);
}

/* The SEND is acknowledged no sooner than the READ before it has its data: who hears of the
 * SEND first takes the READ's responses for lost and asks for them again. */
static void no_acknowledgement_overtakes_a_response(void **state)
{
	static const enum ibv_wr_opcode first[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (unsigned i = 0; i < ARRAY_SIZE(first); i++) {
		for (uint32_t segment = MTU; segment <= 32 * MTU; segment *= 2) {
			struct pair *p = new_pair(TP_RC, segment);

			pair_recv(p, B, 7, 0, 100);
			pair_send(p, A, first[i], 1, 0x20000, i ? 8 : LONG, 0x40000);
			pair_send(p, A, IBV_WR_SEND, 2, 0x10000, 8, 0);
			pair_run(p);
			pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
			pair_expect_sent(p, A, 2, IBV_WC_SUCCESS);
			pair_expect_received(p, B, 7, IBV_WC_SUCCESS);
			assert_int_equal(tp_qp_stats(p->side[A].qp)->retransmits, 0);
			assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_DUPLICATE_RESPONSE], 0);
			assert_int_equal(tp_qp_stats(p->side[B].qp)->count[TP_DUPLICATE_REQUEST], 0);
			pair_expect_quiet(p);
			pair_free(p);
		}
	}
}

/* that of messages of so many packets may wait, but not for ever */
static void expect_acknowledged_in_time(uint16_t packets)
{
	struct pair *p = new_pair(TP_RC, 8 * MTU);
	const struct wire_packet message = {.lrh.lnh = WIRE_LNH_BTH,
					    .payload = p->side[A].memory,
					    .payload_bytes = packets * MTU,
					    .packets = packets,
					    .bth = {.opcode = WIRE_RC | WIRE_SEND_ONLY,
						    .ack_req = true}};
	unsigned most = TP_ACK_PACKETS / packets;

	for (unsigned n = 0; n < most; n++) {
		struct wire_packet pkt = message;

		pair_recv(p, B, n, 0, packets * MTU);
		pkt.bth.psn = psn(0x100 + n * packets);
		tp_qp_receive(p->side[B].qp, &pkt, p->now);
		assert_true(tp_qp_wants_transmit(p->side[B].qp));
		assert_int_equal(tp_can_wait(p->side[B].qp), n < most - 1);
	}
	pair_run(p);
	assert_int_equal(p->side[B].qp->resp.owed + p->side[B].qp->resp.owed_packets, 0);
	pair_free(p);
}

static void so_many_packets_wait_for_their_acknowledgement(void **state)
{
	struct tp_responder r = {.pending = 0};

	expect_acknowledged_in_time(1);
	expect_acknowledged_in_time(8);
	/* one that is longer than that has company, too */
	tp_acknowledge_messages(&r, 1, 2 * TP_ACK_PACKETS);
	assert_int_equal(r.pending, TP_RESPONSE_OWED);
	tp_acknowledge_messages(&r, 1, 1);
	assert_int_equal(r.pending, TP_RESPONSE_OWED | TP_RESPONSE_ACK);
}

/* UC: a segment that is lost ends its message, and the next is whole */
static void a_lost_segment_loses_its_message_alone(void **state)
{
	struct pair *p = new_pair(TP_UC, 8 * MTU);
	uint32_t mask = 1 << 1;

	p->fate = lose;
	p->fate_ctx = &mask;
	pair_recv(p, B, 7, 0, LONG);
	for (unsigned n = 0; n < 2; n++)
		pair_send(p, A, IBV_WR_SEND, n, 0x40000 + n * LONG, LONG, 0);
	pair_run(p);
	pair_expect_sent(p, A, 0, IBV_WC_SUCCESS);
	pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
	pair_expect_received(p, B, 7, IBV_WC_SUCCESS);
	assert_memory_equal(p->side[A].memory + 0x40000 + LONG, p->side[B].memory, LONG);
	pair_expect_quiet(p);
	pair_free(p);
}

/* the lane is gone in the middle of a message */
static enum pair_fate packets_from_here(struct pair *p, const struct pair_packet *pkt)
{
	if (pkt->from == A && ++p->fate_count == 10)
		p->segment_bytes = 0;
	return PASS;
}

/* it has room for much, and then for a packet a few times */
static enum pair_fate room_comes_and_goes(struct pair *p, const struct pair_packet *pkt)
{
	if (pkt->from == A)
		p->segment_bytes = (++p->fate_count % 16 < 10 ? 64 : 1) * 256;
	return PASS;
}

/* Segments ask for an acknowledgement seldom, packets have a small window: who
 * goes from the one to the other in a message must not wait for an answer that
 * nobody was asked for. */
static void shorter_segments_wait_for_no_answer_unasked(void **state)
{
	static enum pair_fate (*const change[])(struct pair *, const struct pair_packet *) = {
		packets_from_here, room_comes_and_goes};

	for (unsigned i = 0; i < ARRAY_SIZE(change); i++) {
		struct pair *p = pair_new(
			&(struct pair_options){.type = TP_RC, .mtu_bytes = 256, .retry_cnt = 1});

		p->segment_bytes = 64 * 256;
		p->fate = change[i];
		pair_send(p, A, IBV_WR_RDMA_WRITE, 1, 0, PAIR_MEMORY, 0);
		pair_run(p);
		pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		assert_memory_equal(p->side[A].memory, p->side[B].memory, PAIR_MEMORY);
		assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 0);
		pair_expect_quiet(p);
		pair_free(p);
	}
}

/* what the engine does with a SEND of one packet that came, but for the completion */
static void receive_single(struct pair *p, psn_t at, const void *payload, uint32_t len)
{
	struct pair_side *to = &p->side[B];
	const struct tp_recv_wr *wr = &to->recv[to->recv_head++];

	assert_true(tp_fast_expects(to->qp, false) &&
		    psn_eq(tp_expected_psn(to->qp), at));
	copy_short(to->memory + (wr->sge->addr - PAIR_IOVA), payload, len);
	tp_fast_received(to->qp, 1, 1);
	assert_true(psn_eq(tp_expected_psn(to->qp), psn_add(at, 1)));
}

/* The general path of a SEND of one packet, and the fast one from its post: both leave
 * two QPs in the same state. */
static void the_fast_path_does_the_same(void **state)
{
	struct tp_packet_out out;
	struct tp_send_wr wr;
	struct tp_next next;
	struct pair *p[2];

	for (unsigned i = 0; i < 2; i++) {
		p[i] = new_pair(TP_RC, 8 * MTU);
		pair_recv(p[i], B, 7, 0x100, 100);
	}
	pair_send(p[0], A, IBV_WR_SEND, 1, 0x40000, 30, IBV_SEND_SOLICITED);
	assert_false(tp_fast_may_send(p[0]->side[A].qp)); /* behind the other */
	assert_true(tp_qp_transmit_segment(p[0]->side[A].qp, &out, 8 * MTU, p[0]->now));
	wr = pair_wr(p[1], A, IBV_WR_SEND, 1, 0x40000, 30, IBV_SEND_SOLICITED);
	assert_true(tp_fast_may_send(p[1]->side[A].qp));
	next = tp_fast_send(p[1]->side[A].qp, wr.wr_id, wr.flags, 0, wr.sge, NULL);
	tp_ack_wait(p[1]->side[A].qp, p[1]->now);
	out.hdr.payload = out.piece[0].ptr;
	out.hdr.lrh = (struct wire_lrh){.lnh = WIRE_LNH_BTH, .slid = 3, .sl = 2};
	tp_qp_receive(p[0]->side[B].qp, &out.hdr, p[0]->now);
	assert_int_equal(next.psn.v, out.hdr.bth.psn.v);
	assert_int_equal(WIRE_RC | next.operation, out.hdr.bth.opcode);
	assert_int_equal(next.ack_req, out.hdr.bth.ack_req);
	assert_int_equal(next.solicited, out.hdr.bth.solicited);
	assert_int_equal(next.packets, out.hdr.packets);
	assert_int_equal(next.length_bytes, out.hdr.payload_bytes);
	assert_int_equal(tp_qp_expiry(p[0]->side[A].qp).ns,
			 tp_qp_expiry(p[1]->side[A].qp).ns);
	receive_single(p[1], next.psn, p[1]->side[A].memory + 0x40000, 30);
	assert_memory_equal(p[0]->side[B].memory, p[1]->side[B].memory, 4096);
	assert_memory_equal(tp_qp_stats(p[0]->side[B].qp), tp_qp_stats(p[1]->side[B].qp),
			    sizeof(struct tp_stats));
	assert_int_equal(pair_received(p[0], B)->byte_len, 30);
	for (unsigned i = 0; i < 2; i++) {
		pair_run(p[i]); /* the acknowledgement */
		pair_expect_sent(p[i], A, 1, IBV_WC_SUCCESS);
		pair_expect_quiet(p[i]);
		pair_free(p[i]);
	}
}

/* An acknowledgement that came with a request, of what is acknowledged already or was
 * never sent, changes nothing; nor does one for a QP that sends nothing, or nothing
 * reliable */
static void an_acknowledgement_of_nothing_changes_nothing(void **state)
{
	static const enum tp_type types[] = {TP_RC, TP_UC, TP_UD};

	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		struct pair *p = new_pair(types[i], 8 * MTU);
		struct tp_qp *qp = p->side[A].qp;
		struct tp_sq before = qp->sq;
		struct tp_packet_out out;

		tp_qp_acked(qp, psn_add(before.una, 0xffffff), p->now);
		tp_qp_acked(qp, before.una, p->now);
		assert_memory_equal(&qp->sq, &before, sizeof(before));
		if (types[i] == TP_RC) {
			pair_recv(p, B, 7, 0x100, 100);
			pair_send(p, A, IBV_WR_SEND, 1, 0x40000, 30, 0);
			assert_true(tp_qp_transmit_segment(qp, &out, 8 * MTU, p->now));
			before = qp->sq;
			tp_qp_acked(qp, psn_add(before.una, 1), p->now);
			assert_memory_equal(&qp->sq, &before, sizeof(before));
			tp_qp_acked(qp, before.una, p->now);
			pair_expect_sent(p, A, 1, IBV_WC_SUCCESS);
		}
		pair_free(p);
	}
}

/* Time is up, all is to be sent again, and then it is acknowledged after all */
static void a_late_acknowledgement_ends_the_repetition(void **state)
{
	struct pair *p = new_pair(TP_RC, 8 * MTU);
	struct tp_qp *qp = p->side[A].qp;
	struct tp_packet_out out;

	for (unsigned n = 0; n < 3; n++) {
		pair_recv(p, B, n, 0x100 * n, 100);
		pair_send(p, A, IBV_WR_SEND, n, 0x40000, 30, 0);
		assert_true(tp_qp_transmit_segment(qp, &out, 8 * MTU, p->now));
	}
	for (unsigned half = 0; half < 2; half++) {
		p->now = tp_qp_expiry(qp);
		tp_qp_expire(qp, p->now);
	}
	assert_int_equal(tp_qp_stats(qp)->count[TP_TIMEOUT], 1);
	assert_true(tp_qp_wants_transmit(qp));
	tp_qp_acked(qp, out.hdr.bth.psn, p->now);
	for (unsigned n = 0; n < 3; n++)
		pair_expect_sent(p, A, n, IBV_WC_SUCCESS);
	assert_false(tp_qp_wants_transmit(qp));
	assert_true(tp_idle(qp));
	pair_send(p, A, IBV_WR_SEND, 3, 0x40000, 30, 0);
	assert_true(tp_qp_transmit_segment(qp, &out, 8 * MTU, p->now));
	assert_true(psn_eq(out.hdr.bth.psn, psn_add(tp_qp_attr(qp)->sq_psn, 3)));
	pair_free(p);
}

/* Those that were lost are sent again from the queue, inline data and all: that of a few
 * bytes is in the request, or is handed over as a word, more is in a slot. */
static void what_the_fast_path_sent_is_sent_again(void **state)
{
	static const struct {
		uint32_t bytes, flags;
		bool word;
	} one[] = {{24, 0, false},
		   {24, IBV_SEND_INLINE, false},
		   {16, IBV_SEND_INLINE, false},
		   {17, IBV_SEND_INLINE, false},
		   {8, IBV_SEND_INLINE, true},
		   {8, 0, true}};
	struct pair *p = new_pair(TP_RC, 8 * MTU);
	uint8_t *from = p->side[A].memory + 0x40000,
		was[sizeof(one) / sizeof(one[0]) * 64];
	struct tp_send_wr wr;
	struct tp_sge piece;
	uint64_t word;

	memcpy(was, from, sizeof(was));
	for (unsigned n = 0; n < ARRAY_SIZE(one); n++) {
		pair_recv(p, B, n, 0x100 * n, 100);
		wr = pair_wr(p, A, IBV_WR_SEND, n, 0x40000 + 64 * n, one[n].bytes, 0);
		memcpy(&word, from + 64 * n, sizeof(word));
		assert_true(tp_fast_may_send(p->side[A].qp));
		piece = *wr.sge;
		if (one[n].flags) /* the address of inline data is the program's own */
			piece.addr = (uintptr_t)(from + 64 * n);
		tp_fast_send(p->side[A].qp, wr.wr_id, wr.flags | one[n].flags, 0, &piece,
			     one[n].word ? &word : NULL);
		if (one[n].flags) /* inline: it was lent during the call */
			memset(from + 64 * n, 0, one[n].bytes);
	}
	tp_ack_wait(p->side[A].qp, p->now);
	pair_run(p);
	for (unsigned n = 0; n < ARRAY_SIZE(one); n++) {
		pair_expect_sent(p, A, n, IBV_WC_SUCCESS);
		pair_expect_received(p, B, n, IBV_WC_SUCCESS);
		assert_memory_equal(p->side[B].memory + 0x100 * n, was + 64 * n, one[n].bytes);
	}
	assert_int_equal(tp_qp_stats(p->side[A].qp)->count[TP_TIMEOUT], 1);
	pair_expect_quiet(p);
	pair_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psns_move_as_if_it_had_been_cut),
		cmocka_unit_test(what_came_before_is_trimmed),
		cmocka_unit_test(reads_are_answered_in_segments),
		cmocka_unit_test(an_acknowledgement_travels_along),
		cmocka_unit_test(no_acknowledgement_overtakes_a_response),
		cmocka_unit_test(so_many_packets_wait_for_their_acknowledgement),
		cmocka_unit_test(a_lost_segment_loses_its_message_alone),
		cmocka_unit_test(shorter_segments_wait_for_no_answer_unasked),
		cmocka_unit_test(the_fast_path_does_the_same),
		cmocka_unit_test(an_acknowledgement_of_nothing_changes_nothing),
		cmocka_unit_test(a_late_acknowledgement_ends_the_repetition),
		cmocka_unit_test(what_the_fast_path_sent_is_sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
