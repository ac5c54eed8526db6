/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two engines joined by lanes, beside two joined by packets alone: whatever
 * is posted, both complete the same. Messages of all lengths around that of a
 * cell, and every reason why the fast path of a SEND is not taken.
 */
#include "lanes.h"
#include "transport/qp.h"

static void lanes_and_packets_complete_alike(void **state)
{
	struct world *packets = *state;
	struct joined *j = join();
	static const unsigned flags[] = {0, IBV_SEND_INLINE, IBV_SEND_SOLICITED, IBV_SEND_FENCE};

	connect(packets, IBV_QPT_RC);
	for (unsigned f = 0; f < ARRAY_SIZE(flags); f++) {
		uint32_t most = flags[f] & IBV_SEND_INLINE ? 64 : 150;

		for (uint32_t bytes = 0; bytes <= most; bytes++) {
			const struct exchange x = {{.wr_id = bytes, .opcode = IBV_WR_SEND,
						    .send_flags = flags[f]}, bytes};
			struct ibv_wc a[2], b[2];

			make(packets, &x, a);
			make(j->w, &x, b);
			assert_memory_equal(a, b, sizeof(a));
			assert_memory_equal(packets->b.memory, j->w->b.memory, 256);
			assert_memory_equal(j->w->b.memory + 3, j->w->a.memory, bytes);
		}
	}
	assert_int_equal(by_lane(j), 65 + 3 * 151);
	assert_int_equal(packets->b.in.tail, 65 + 3 * 151);
	part(j);
}

/* --- inline, in pieces that lie apart: as UCX's headers and what they are for --- */

#define APART 100

/* the first @cut of @bytes, and the rest from APART on. @sent: what that is. Return: did it
 * take the fast path? Else -errno, or 0 */
static int send_pieces(struct side *s, unsigned flags, uint32_t cut, uint32_t bytes,
		       uint8_t sent[64])
{
	const uint32_t *left = &s->qp->tp->sq.fast_left, before = *left;
	/* a piece of nothing is nowhere */
	struct ibv_sge sge[2] = {{cut ? (uintptr_t)s->memory : 0, cut, 0},
				 {bytes > cut ? (uintptr_t)s->memory + APART : 0, bytes - cut, 0}};
	struct ibv_send_wr wr = {.wr_id = bytes, .opcode = IBV_WR_SEND, .sg_list = sge,
				 .num_sge = 2, .send_flags = flags | IBV_SEND_SIGNALED}, *bad;
	int rc;

	fill(s, 256);
	memcpy(sent, s->memory, cut);
	memcpy(sent + cut, s->memory + APART, MIN(bytes, 64u) - cut);
	rc = eng_post_send(s->qp, &wr, &bad, av_of);
	memset(s->memory, 0xee, 256); /* it is the program's again */
	return rc ?: before ? *left == before - 1 : *left > 0;
}

/* joined, and the lane found */
static struct joined *join_warm(void)
{
	const struct exchange x = {{.opcode = IBV_WR_SEND}, 8};
	struct joined *j = join();
	struct ibv_wc wc[2];

	make(j->w, &x, wc);
	return j;
}

static void expect_sent(struct joined *j, uint32_t bytes, const uint8_t sent[64])
{
	struct ibv_wc wc = take(&j->w->b);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, bytes);
	assert_memory_equal(j->w->b.memory, sent, bytes);
	assert_int_equal(take(&j->w->a).wr_id, bytes);
}

static void inline_pieces_are_one_message(void **state)
{
	struct joined *j = join_warm();
	uint8_t sent[64];

	needs_fast_paths(j);
	for (uint32_t bytes = 0; bytes <= 64; bytes++)
		for (uint32_t cut = 0; cut <= bytes; cut++) {
			recv_into(&j->w->b, 77, 0, 64);
			assert_int_equal(send_pieces(&j->w->a, IBV_SEND_INLINE, cut, bytes, sent),
					 bytes > 0);
			run(j->w);
			expect_sent(j, bytes, sent);
		}
	recv_into(&j->w->b, 77, 0, 64);
	assert_int_equal(send_pieces(&j->w->a, IBV_SEND_INLINE | IBV_SEND_FENCE, 9, 40, sent), 0);
	run(j->w);
	expect_sent(j, 40, sent);
	/* again, from the queue's copy, when there is a receive */
	assert_int_equal(send_pieces(&j->w->a, IBV_SEND_INLINE | IBV_SEND_SOLICITED, 1, 64,
				     sent), 1);
	run(j->w);
	recv_into(&j->w->b, 77, 0, 64);
	clock_now = mono_add(clock_now, NSEC_PER_SEC);
	run(j->w);
	expect_sent(j, 64, sent);
	part(j);
}

static void inline_pieces_have_bounds(void **state)
{
	struct joined *j = join_warm();
	uint8_t sent[64];
	struct ibv_sge sge[3] = {};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 3,
				 .send_flags = IBV_SEND_INLINE}, *bad;
	struct ibv_sge good[2] = {{(uintptr_t)j->w->a.memory, 8, 0},
				  {(uintptr_t)j->w->a.memory, 9, 0}};
	struct ibv_send_wr first = {.opcode = IBV_WR_SEND, .sg_list = good, .num_sge = 2,
				    .send_flags = IBV_SEND_INLINE};

	assert_int_equal(send_pieces(&j->w->a, IBV_SEND_INLINE, 8, 65, sent), -EINVAL);
	assert_int_equal(send_pieces(&j->w->a, IBV_SEND_INLINE, 64, 0xffffffffu, sent), -EINVAL);
	/* the second one is refused, the first has left */
	first.next = &wr;
	assert_int_equal(eng_post_send(j->w->a.qp, &first, &bad, av_of), -EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(by_lane(j), 2);
	/* longer than 2^32 together */
	sge[0].length = sge[1].length = 0x80000010u;
	wr.num_sge = 2;
	assert_int_equal(eng_post_send(j->w->a.qp, &wr, &bad, av_of), -EINVAL);
	wr.num_sge = 3;
	for (unsigned i = 0; i < ARRAY_SIZE(sge); i++)
		sge[i] = (struct ibv_sge){(uintptr_t)j->w->a.memory, 8, 0};
	assert_int_equal(eng_post_send(j->w->a.qp, &wr, &bad, av_of), -EINVAL);
	assert_ptr_equal(bad, &wr);
	wr.num_sge = -1;
	assert_int_equal(eng_post_send(j->w->a.qp, &wr, &bad, av_of), -EINVAL);
	assert_int_equal(by_lane(j), 2);
	part(j);
}

/* as perftest's servers are */
static void only_receive(struct side *s)
{
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	assert_int_equal(eng_qp_modify(s->qp, &reset, IBV_QP_STATE), 0);
	to_rtr(s, 1, 0x11);
}

static void who_is_in_rtr_receives_alike(void **state)
{
	struct world *packets = *state;
	struct joined *j = join();

	connect(packets, IBV_QPT_RC);
	only_receive(&packets->b);
	only_receive(&j->w->b);
	for (uint32_t bytes = 0; bytes <= 150; bytes++) {
		const struct exchange x = {{.wr_id = bytes, .opcode = IBV_WR_SEND}, bytes};
		struct ibv_wc a[2], b[2];

		make(packets, &x, a);
		make(j->w, &x, b);
		assert_memory_equal(a, b, sizeof(a));
		assert_memory_equal(packets->b.memory, j->w->b.memory, 256);
	}
	/* each told once that it hears its peer */
	assert_int_equal(packets->b.async_events, 1);
	assert_int_equal(j->w->b.async_events, 1);
	assert_int_equal(j->w->b.last_async, IBV_EVENT_COMM_EST);
	part(j);
}

static void a_list_keeps_its_order(void **state)
{
	struct joined *j = join();
	struct ibv_sge sge[12];
	struct ibv_send_wr wr[12], *bad;

	for (unsigned i = 0; i < 12; i++) {
		sge[i] = (struct ibv_sge){(uintptr_t)j->w->a.memory + i, i % 3 == 2 ? 100 : 8, 0x101};
		wr[i] = (struct ibv_send_wr){.wr_id = i, .sg_list = &sge[i], .num_sge = 1,
					     .next = i < 11 ? &wr[i + 1] : NULL,
					     .opcode = i % 4 == 3 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
					     .send_flags = IBV_SEND_SIGNALED};
		recv_into(&j->w->b, i, 256 * i, 256);
	}
	fill(&j->w->a, 256);
	assert_int_equal(eng_post_send(j->w->a.qp, wr, &bad, av_of), 0);
	run(j->w);
	for (unsigned i = 0; i < 12; i++) {
		assert_int_equal(take(&j->w->a).wr_id, i);
		assert_int_equal(take(&j->w->b).wr_id, i);
		assert_memory_equal(j->w->b.memory + 256 * i, j->w->a.memory + i, sge[i].length);
	}
	part(j);
}

static unsigned streamed(const struct joined *j, unsigned records)
{
	unsigned n = 0;

	for (unsigned i = 0; i < records; i++)
		n += j->out[0].tx.memory->cell[i].word[1] & abi_record_flags(ABI_RECORD_STREAM) ? 1 : 0;
	return n;
}

/* Behind so many that nobody answered, the next ones are streamed: they arrive alike */
__attribute__((unused)) static void what_follows_many_is_streamed(void **state)
{
	struct joined *j = join();
	uint32_t n = 14; /* receives of a world, and requests */

	needs_fast_paths(j);
	j->out[0].tx.no_fence = true;
	fill(&j->w->a, 256);
	for (uint32_t i = 0; i < n; i++)
		recv_into(&j->w->b, i, 64 * i, 64);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(send(&j->w->a, (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND},
				      i < 8 ? 8 : (i - 7) * 7), 0);
	assert_int_equal(streamed(j, n), 14 - 8 - 1 /* of 42 bytes */);
	run(j->w);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t bytes = i < 8 ? 8 : (i - 7) * 7;
		struct ibv_wc wc = take(&j->w->b);

		assert_int_equal(take(&j->w->a).wr_id, i);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.byte_len, bytes);
		assert_memory_equal(j->w->b.memory + 64 * i, j->w->a.memory, bytes);
	}
	part(j);
}

/* --- datagrams --- */

static const struct tp_av to_b = {.dlid = 2, .port_num = 1};

static struct ibv_send_wr datagram(unsigned flags)
{
	return (struct ibv_send_wr){.wr_id = flags,
				    .opcode = IBV_WR_SEND,
				    .send_flags = flags,
				    .wr.ud = {.ah = (void *)(uintptr_t)&to_b,
					      .remote_qpn = 0x22,
					      .remote_qkey = 0x1234}};
}

static void datagrams_complete_alike(void **state)
{
	struct world *packets = *state;
	struct joined *j = join_as(IBV_QPT_UD);
	static const unsigned flags[] = {0, IBV_SEND_INLINE, IBV_SEND_SOLICITED};
	uint64_t sent = 0, dwords = 0;

	connect(packets, IBV_QPT_UD);
	for (unsigned f = 0; f < ARRAY_SIZE(flags); f++) {
		uint32_t most = flags[f] & IBV_SEND_INLINE ? 64 : 150;

		for (uint32_t bytes = 0; bytes <= most; bytes++) {
			const struct exchange x = {datagram(flags[f]), bytes};
			struct ibv_wc a[2], b[2];

			make(packets, &x, a);
			make(j->w, &x, b);
			assert_memory_equal(a, b, sizeof(a));
			assert_memory_equal(packets->b.memory, j->w->b.memory, 256);
			assert_memory_equal(j->w->b.memory + 43, j->w->a.memory, bytes);
			sent++;
			dwords += 8 + (bytes + 3) / 4;
		}
	}
	assert_int_equal(by_lane(j), sent);
	assert_int_equal(j->flow[0].count->dwords, dwords);
	part(j);
}

/* A port of several LIDs: each datagram comes from the one that its address handle names */
static void a_datagram_comes_from_the_lid_that_it_names(void **state)
{
	static const struct tp_av from[2] = {
		{.dlid = 1, .port_num = 1},
		{.dlid = 1, .port_num = 1, .src_path_bits = 1},
	};
	static const uint32_t bytes[] = {8, 8, 600, 600}; /* fast paths take some of these */
	struct joined *j = join_as(IBV_QPT_UD);
	struct ibv_send_wr wr = datagram(0);

	j->w->b.page->port[0].lmc = 1;
	j->in[1].source.mask = 0xfffe;
	wr.wr.ud.remote_qpn = 0x11;
	for (unsigned i = 0; i < 16; i++) {
		recv_into(&j->w->a, i, 0, 1000);
		wr.wr.ud.ah = (void *)(uintptr_t)&from[i / 2 % 2];
		assert_int_equal(send(&j->w->b, wr, bytes[i % ARRAY_SIZE(bytes)]), 0);
		run(j->w);
		assert_int_equal(take(&j->w->a).slid, 2 + i / 2 % 2);
		take(&j->w->b);
	}
	part(j);
}

__attribute__((unused)) static void datagrams_in_a_row_are_streamed(void **state)
{
	struct joined *j = join_as(IBV_QPT_UD);

	needs_fast_paths(j);
	j->out[0].tx.no_fence = true;
	fill(&j->w->a, 256);
	for (uint32_t i = 0; i < 14; i++) {
		recv_into(&j->w->b, i, 100 * i, 100);
		assert_int_equal(send(&j->w->a, datagram(0), 1 + 3 * i), 0);
	}
	/* the first looked for its way; the last two are too long */
	assert_int_equal(streamed(j, 14), 14 - 1 - 8 - 2);
	run(j->w);
	for (uint32_t i = 0; i < 14; i++) {
		take(&j->w->a);
		assert_int_equal(take(&j->w->b).byte_len, 40 + 1 + 3 * i);
		assert_memory_equal(j->w->b.memory + 100 * i + 40, j->w->a.memory, 1 + 3 * i);
	}
	part(j);
}

static void send_to_nobody(struct joined *j, struct ibv_send_wr wr)
{
	assert_int_equal(send(&j->w->a, wr, 8), 0);
	run(j->w);
	assert_int_equal(take(&j->w->a).status, IBV_WC_SUCCESS);
	expect_empty(&j->w->b);
}

static void move_to(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	assert_int_equal(eng_qp_modify(s->qp, &attr, IBV_QP_STATE), 0);
}

static void datagrams_for_others_are_dropped(void **state)
{
	const struct exchange x = {datagram(0), 8};
	struct joined *j = join_as(IBV_QPT_UD);
	struct ibv_send_wr wr = x.wr;
	struct eng_stats stats;
	struct ibv_wc wc[2];

	make(j->w, &x, wc);
	make(j->w, &x, wc); /* as one that is known */
	send_to_nobody(j, wr); /* no receive */
	recv_into(&j->w->b, 1, 0, 64);
	wr.wr.ud.remote_qkey = 0x1235;
	bad_qkeys = 0;
	send_to_nobody(j, wr);
	assert_int_equal(bad_qkeys, 1);
	move_to(&j->w->b, IBV_QPS_SQD); /* it receives: only its send queue is stopped */
	send_to_nobody(j, wr);
	assert_int_equal(bad_qkeys, 2);
	move_to(&j->w->b, IBV_QPS_RTS);
	wr.wr.ud.remote_qkey = 0x80001235; /* controlled: the QP's own goes */
	send(&j->w->a, wr, 8);
	run(j->w);
	assert_int_equal(take(&j->w->b).wr_id, 1);
	take(&j->w->a);
	recv_into(&j->w->b, 2, 0, 64);
	wr = x.wr;
	wr.wr.ud.remote_qpn = 0x23;
	send_to_nobody(j, wr);
	eng_stats(j->w->b.engine, &stats);
	assert_int_equal(stats.rx_no_qp, 1);
	j->w->b.page->port[0].pkey[0] = 0x8001;
	send_to_nobody(j, x.wr);
	eng_stats(j->w->b.engine, &stats);
	assert_int_equal(stats.rx_bad_pkey, 1);
	assert_int_equal(bad_qkeys, 2);
	assert_int_equal(by_lane(j), 8);
	part(j);
}

static void a_datagram_without_a_way_is_refused(void **state)
{
	struct joined *j = join_as(IBV_QPT_UD);
	struct ibv_send_wr wr = datagram(0);

	wr.wr.ud.ah = NULL;
	assert_int_equal(send(&j->w->a, wr, 8), -EINVAL);
	assert_int_equal(send(&j->w->a, datagram(0), 4097), -EINVAL);
	send_to_nobody(j, datagram(0)); /* and the QP has taken no harm */
	part(j);
}

/* --- rings --- */

/* the bytes' ring goes round; and some take the fast path, but the others wait for room */
/* A payload that does not fit into its cell takes one line of bulk as long as the rest of it, or
 * all of it, fits into one. */
static void a_payload_is_split_where_that_saves_a_line(void **state)
{
	static const struct {
		uint32_t bytes, lines;
	} cases[] = {{40, 0}, {41, 1}, {64, 1}, {65, 1}, {80, 1}, {96, 1}, {97, 2}, {128, 2}};
	struct joined *j = join_warm();

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct exchange x = {{.opcode = IBV_WR_SEND}, cases[i].bytes};
		uint32_t before = j->out[0].tx.bulk_tail;
		struct ibv_wc wc[2];

		make(j->w, &x, wc);
		assert_int_equal(wc[1].byte_len, cases[i].bytes);
		assert_memory_equal(j->w->b.memory + 3, j->w->a.memory, cases[i].bytes);
		assert_int_equal(j->out[0].tx.bulk_tail - before, 64 * cases[i].lines);
	}
	part(j);
}

static void bulk_goes_round_and_is_full(void **state)
{
	const uint32_t bytes = 1000, n = 24;
	struct joined *j = join();
	struct abi_lane_tx *tx = &j->out[0].tx;

	for (unsigned round = 0; round < 40; round++) {
		for (unsigned i = 0; i < n; i++) {
			if (i == n / 2) { /* as if its reader were that far behind */
				abi_lane_refresh(tx);
				tx->bulk_head = tx->bulk_tail - tx->bulk_bytes;
			}
			assert_int_equal(recv_into(&j->w->b, i, bytes * i, bytes), 0);
			memset(j->w->a.memory, (int)(round + i), bytes);
			send(&j->w->a,
			     (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND,
						  .send_flags = IBV_SEND_SIGNALED}, bytes);
			assert_int_equal(by_lane(j), round * n + MIN(i + 1, n / 2));
		}
		run(j->w);
		for (unsigned i = 0; i < n; i++) {
			/* what waits is read when it goes */
			int byte = (int)(round + (i < n / 2 ? i : n - 1)) & 0xff;

			assert_int_equal(take(&j->w->a).wr_id, i);
			assert_int_equal(take(&j->w->b).wr_id, i);
			assert_int_equal(j->w->b.memory[bytes * i], byte);
			assert_int_equal(j->w->b.memory[bytes * (i + 1) - 1], byte);
		}
	}
	part(j);
}

/* Bytes that have waited for room leave in several turns, so that a poll is not long and others
 * have theirs between. */
static void a_turn_of_a_lane_is_bounded(void **state)
{
	const uint32_t bytes = 50000, n = 24;
	struct joined *j = join();
	struct abi_lane_tx *tx = &j->out[0].tx;
	unsigned turns = 0;

	tx->wants_wide = true;
	tx->bulk_bytes = ABI_LANE_BULK;
	tx->bulk_head = tx->bulk_tail - tx->bulk_bytes; /* there is no room */
	fill(&j->w->a, bytes);
	for (unsigned i = 0; i < n; i++) {
		recv_into(&j->w->b, i, 0, bytes);
		send(&j->w->a,
		     (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND,
					  .send_flags = IBV_SEND_SIGNALED}, bytes);
	}
	assert_int_equal(tx->tail, 0);
	tx->bulk_head = tx->bulk_tail;
	for (; tx->tail < n; turns++) {
		uint32_t before = tx->bulk_tail;

		eng_tick(j->w->a.engine);
		assert_in_range(tx->bulk_tail - before, 1, ENG_TX_BYTES + ABI_SEGMENT_BYTES);
	}
	assert_true(turns >= 2);
	run(j->w);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(take(&j->w->a).wr_id, i);
		assert_int_equal(take(&j->w->b).byte_len, bytes);
	}
	part(j);
}

static void a_bad_request_is_refused_behind_good_ones(void **state)
{
	struct joined *j = join();
	struct ibv_sge sge = {(uintptr_t)j->w->a.memory, 8, 0x101};
	struct ibv_send_wr wr[3] = {{.next = &wr[1]}, {.next = &wr[2]}, {}}, *bad = NULL;

	for (unsigned i = 0; i < 3; i++) {
		wr[i].sg_list = &sge;
		wr[i].num_sge = i == 1 ? 3 : 1; /* two at most */
		wr[i].opcode = IBV_WR_SEND;
		recv_into(&j->w->b, i, 0, 64);
	}
	assert_int_equal(eng_post_send(j->w->a.qp, wr, &bad, av_of), -EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	run(j->w);
	assert_int_equal(take(&j->w->b).wr_id, 0);
	expect_empty(&j->w->b);
	part(j);
}

/* in the middle of a list is one too many, or one that is unsound: nothing is posted */
static void all_of_a_list_or_nothing(void **state)
{
	struct joined *j = join();
	struct ibv_sge sge = {(uintptr_t)j->w->a.memory, 8, 0x101};
	struct ibv_send_wr wr[33] = {};

	for (unsigned i = 0; i < 33; i++) {
		wr[i] = (struct ibv_send_wr){.next = i < 32 ? &wr[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND};
		recv_into(&j->w->b, i, 0, 64);
	}
	assert_int_equal(eng_post_send_all(j->w->a.qp, wr, av_of), -ENOMEM); /* 32 at most */
	wr[2].next = NULL;
	wr[1].num_sge = 3;
	assert_int_equal(eng_post_send_all(j->w->a.qp, wr, av_of), -EINVAL);
	wr[1].num_sge = 1;
	wr[2].opcode = IBV_WR_DRIVER1;
	assert_int_equal(eng_post_send_all(j->w->a.qp, wr, av_of), -EINVAL);
	run(j->w);
	expect_empty(&j->w->b);
	assert_int_equal(by_lane(j), 0);
	wr[2].opcode = IBV_WR_SEND;
	assert_int_equal(eng_post_send_all(j->w->a.qp, wr, av_of), 0);
	run(j->w);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(&j->w->b).wr_id, i);
	part(j);
}

/* its key covers nothing: no byte leaves, and the QP fails */
static void a_foreign_key_is_a_local_error(void **state)
{
	struct joined *j = join();
	struct ibv_sge sge = {(uintptr_t)j->w->a.memory + MEMORY - 4, 8, 0x101};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	recv_into(&j->w->b, 1, 0, 64);
	assert_int_equal(eng_post_send(j->w->a.qp, &wr, &bad, av_of), 0);
	run(j->w);
	assert_int_equal(take(&j->w->a).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(by_lane(j), 0);
	part(j);
}

/* B's QP, in PD 1, with receives of an SRQ */
static struct joined *join_srq(uint32_t srq_pd, uint32_t limit, struct eng_srq **srq)
{
	struct joined *j = calloc(1, sizeof(*j));
	void *world;

	setup(&world);
	j->w = world;
	make_lane(j, 0, &j->w->a, &j->w->b);
	make_lane(j, 1, &j->w->b, &j->w->a);
	assert_int_equal(eng_srq_create(j->w->b.engine, srq_pd, 8, 1, limit, &j->w->b, srq), 0);
	make_qp(&j->w->a, IBV_QPT_RC, 0x11, NULL);
	make_qp(&j->w->b, IBV_QPT_RC, 0x22, *srq);
	to_rts(&j->w->a, 2, 0x22);
	to_rts(&j->w->b, 1, 0x11);
	return j;
}

/* receives belong to their queue's PD; READs to the QP's. By the general way first,
 * then by the fast path, then with a key of the QP's PD */
static void an_srq_has_a_pd_of_its_own(void **state)
{
	struct ibv_send_wr send_wr = {.opcode = IBV_WR_SEND};
	struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ};
	struct ibv_sge sge = {.length = 64, .lkey = 0x301};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct eng_mr_attr mr = {.key = 0x301, .pd = 2, .length = 64,
				 .access = IBV_ACCESS_LOCAL_WRITE};
	uint32_t more = 20;
	struct eng_srq *srq;
	struct joined *j = join_srq(2, 0, &srq);
	struct side *a = &j->w->a, *b = &j->w->b;

	mr.addr = b->memory;
	mr.iova = (uintptr_t)b->memory;
	assert_int_equal(eng_mr_add(b->engine, &mr), 0);
	assert_int_equal(eng_srq_modify(srq, &more, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		sge.addr = (uintptr_t)b->memory;
		sge.lkey = i < 2 ? 0x301 : 0x101;
		assert_int_equal(eng_srq_post_recv(srq, &wr, &bad), 0);
		if (i == 1) {
			read.wr.rdma.remote_addr = (uintptr_t)a->memory;
			read.wr.rdma.rkey = 0x101;
			send(b, read, 8);
			run(j->w);
			assert_int_equal(take(b).status, IBV_WC_SUCCESS);
		}
		assert_int_equal(send(a, send_wr, 8), 0);
		run(j->w);
		assert_int_equal(take(b).status, i < 2 ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR);
		assert_int_equal(take(a).status, i < 2 ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR);
	}
	part(j);
}

static void an_srq_tells_its_limit(void **state)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct eng_srq *srq;
	struct joined *j = join_srq(1, 2, &srq);

	for (unsigned i = 0; i < 4; i++) {
		sge = (struct ibv_sge){(uintptr_t)j->w->b.memory + 64 * i, 64, 0x101};
		wr.wr_id = i;
		assert_int_equal(eng_srq_post_recv(srq, &wr, &bad), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		send(&j->w->a, (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND}, 8);
		run(j->w);
		assert_int_equal(take(&j->w->b).wr_id, i);
		assert_int_equal(j->w->b.async_events, i < 2 ? 0 : 1);
	}
	assert_int_equal(j->w->b.last_async, IBV_EVENT_SRQ_LIMIT_REACHED);
	part(j);
}

/* one message, and its receive */
static void hand_over(struct joined *j, struct side *from, struct side *to)
{
	struct ibv_wc wc;

	recv_into(to, 5, 3, 64);
	send(from, (struct ibv_send_wr){.wr_id = 4, .opcode = IBV_WR_SEND}, 8);
	do /* as often as it finds something, and no more */
		assert_int_equal(eng_cq_poll(to->cq, 1, &wc), 1);
	while (wc.wr_id != 5);
}

static void who_polls_once_has_acknowledged(void **state)
{
	struct joined *j = join();
	struct ibv_wc wc;

	for (unsigned i = 0; i < 4; i++) {
		hand_over(j, &j->w->a, &j->w->b);
		assert_int_equal(eng_cq_poll(j->w->a.cq, 1, &wc), 1);
		assert_int_equal(wc.wr_id, 4);
	}
	part(j);
}

static void the_acknowledgement_of_who_answers_goes_along(void **state)
{
	struct joined *j = join();
	uint64_t before;

	for (unsigned i = 0; i < 3; i++) { /* until it is known to answer */
		hand_over(j, &j->w->a, &j->w->b);
		hand_over(j, &j->w->b, &j->w->a);
		run(j->w);
		take(&j->w->b);
	}
	before = j->flow[1].count->packets;
	hand_over(j, &j->w->a, &j->w->b);
	hand_over(j, &j->w->b, &j->w->a);
	assert_int_equal(j->flow[1].count->packets, before + 1);
	part(j);
}

/* one that goes alone says what it says in a packet */
static void an_acknowledgement_alone_is_a_whole_record(void **state)
{
	struct joined *j = join();
	const struct abi_cell *cell = &j->in[1].rx.memory->cell[2];
	struct abi_record record;
	uint32_t aeth;

	for (unsigned i = 0; i < 3; i++) {
		hand_over(j, &j->w->a, &j->w->b);
		run(j->w);
		take(&j->w->a);
		assert_int_equal(j->flow[1].count->packets, i + 1);
		assert_int_equal(j->flow[1].count->dwords, 7 * (i + 1));
	}
	abi_record_unpack((const uint64_t[]){cell->word[0], cell->word[1], cell->word[2]}, &record);
	memcpy(&aeth, cell->data, sizeof(aeth));
	assert_int_equal(record.opcode, WIRE_RC | WIRE_ACKNOWLEDGE);
	assert_int_equal(record.psn, 102);
	assert_int_equal(record.dest_qpn, 0x11);
	assert_int_equal(record.src_qpn, 0x22);
	assert_int_equal(record.flags, 0);
	assert_int_equal(record.packets, 1);
	assert_int_equal(record.length_bytes, 0);
	assert_int_equal(record.slid, 2);
	assert_int_equal(record.pkey, PKEY);
	assert_int_equal(be32toh(aeth), (uint32_t)(WIRE_AETH_ACK | WIRE_AETH_CREDIT_INVALID) << 24 | 3);
	part(j);
}

/* sixteen messages and their one acknowledgement, again and again: the send
 * queue's and the lane's rings go round */
static void rings_go_round(void **state)
{
	struct joined *j = join();

	for (unsigned n = 0; n < 3 * ABI_LANE_CELLS; n += 16) {
		for (unsigned i = 0; i < 16; i++) {
			recv_into(&j->w->b, n + i, 0, 64);
			memcpy(j->w->a.memory, &(uint64_t){n + i}, 8);
			send(&j->w->a, (struct ibv_send_wr){.wr_id = n + i, .opcode = IBV_WR_SEND}, 8);
			eng_tick(j->w->b.engine);
			assert_memory_equal(j->w->b.memory, j->w->a.memory, 8);
		}
		run(j->w);
		for (unsigned i = 0; i < 16; i++) {
			assert_int_equal(take(&j->w->a).wr_id, n + i);
			assert_int_equal(take(&j->w->b).wr_id, n + i);
		}
	}
	assert_int_equal(by_lane(j), 3 * ABI_LANE_CELLS);
	part(j);
}

/* one message of @bytes from A to B */
static void carry(struct joined *j, uint32_t bytes, uint64_t n)
{
	memcpy(j->w->a.memory + bytes - 8, &n, 8);
	recv_into(&j->w->b, n, 0, bytes);
	send(&j->w->a, (struct ibv_send_wr){.wr_id = n, .opcode = IBV_WR_SEND}, bytes);
	run(j->w);
	assert_int_equal(take(&j->w->a).status, IBV_WC_SUCCESS);
	assert_int_equal(take(&j->w->b).byte_len, bytes);
	assert_memory_equal(j->w->b.memory, j->w->a.memory, bytes);
}

/* @total bytes, while a message costs 1 us by a ring of @fast_bytes and 2 us by another */
static void carry_many(struct joined *j, uint32_t bytes, uint32_t total, uint32_t fast_bytes)
{
	for (uint64_t n = 0; n < total / bytes; n++) {
		bool fast = j->out[0].tx.bulk_bytes == fast_bytes;

		carry(j, bytes, n);
		clock_now = mono_add(clock_now, (fast ? 1 : 2) * NSEC_PER_USEC);
	}
}

static void a_lane_that_carries_much_has_the_faster_ring(void **state)
{
	struct joined *j = join();

	fill(&j->w->a, 50000);
	carry_many(j, 50000, 4u << 20, ABI_LANE_BULK);
	assert_null(j->out[0].wide);
	assert_int_equal(j->out[0].tx.bulk_bytes, ABI_LANE_NARROW);
	carry_many(j, 50000, 160u << 20, ABI_LANE_BULK);
	assert_int_equal(j->out[0].copy.to_try, 0);
	assert_int_equal(j->out[0].tx.bulk_bytes, ABI_LANE_BULK);
	assert_int_equal(j->out[1].tx.bulk_bytes, ABI_LANE_NARROW);
	assert_int_equal(*j->out[0].wide, 1);
	carry_many(j, 50000, 640u << 20, ABI_LANE_NARROW); /* the peer moved */
	assert_int_equal(j->out[0].tx.bulk_bytes, ABI_LANE_NARROW);
	eng_lane_out_gone(&j->out[0]);
	assert_null(j->out[0].wide);
	part(j);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(lanes_and_packets_complete_alike),
		CASE(who_is_in_rtr_receives_alike),
		cmocka_unit_test(inline_pieces_are_one_message),
		cmocka_unit_test(inline_pieces_have_bounds),
		cmocka_unit_test(a_list_keeps_its_order),
#if ABI_STREAM_BYTES
		cmocka_unit_test(what_follows_many_is_streamed),
#endif
		CASE(datagrams_complete_alike),
		cmocka_unit_test(a_datagram_comes_from_the_lid_that_it_names),
#if ABI_STREAM_BYTES
		cmocka_unit_test(datagrams_in_a_row_are_streamed),
#endif
		cmocka_unit_test(datagrams_for_others_are_dropped),
		cmocka_unit_test(a_datagram_without_a_way_is_refused),
		cmocka_unit_test(a_payload_is_split_where_that_saves_a_line),
		cmocka_unit_test(bulk_goes_round_and_is_full),
		cmocka_unit_test(a_turn_of_a_lane_is_bounded),
		cmocka_unit_test(a_bad_request_is_refused_behind_good_ones),
		cmocka_unit_test(all_of_a_list_or_nothing),
		cmocka_unit_test(a_foreign_key_is_a_local_error),
		cmocka_unit_test(an_srq_has_a_pd_of_its_own),
		cmocka_unit_test(an_srq_tells_its_limit),
		cmocka_unit_test(who_polls_once_has_acknowledged),
		cmocka_unit_test(the_acknowledgement_of_who_answers_goes_along),
		cmocka_unit_test(an_acknowledgement_alone_is_a_whole_record),
		cmocka_unit_test(rings_go_round),
		cmocka_unit_test(a_lane_that_carries_much_has_the_faster_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
