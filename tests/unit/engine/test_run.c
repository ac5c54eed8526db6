/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Many SENDs one behind the other: posted by the owner of the lock's bias,
 * streamed if they are small, received in runs, polled in lots of any size.
 */
#include "lanes.h"

#define MOST 24u	 /* receives that are posted, and messages under way */
#define SLOT_BYTES 2500u
#define OTHER_KEY 0x202u /* the same memory once more */

/* --- a script that a seed draws --- */

struct player {
	struct side *side[2];
	uint64_t seed;
	/* of each side, ever */
	unsigned posted[2], receives[2], received[2], completed[2];
};

static unsigned mixed(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
	return (unsigned)(x >> 40);
}

static unsigned draw(struct player *p, unsigned below)
{
	return mixed(p->seed++) % below;
}

/* what message @id of a side is: the same whenever it is asked */
static uint32_t bytes_of(unsigned who, unsigned id)
{
	/* the MTU is 1024: for a while all are small, then of one packet, of two, of three */
	static const uint32_t bytes[4][8] = {{8, 8, 1, 3, 4, 7, 9, 8},
					     {16, 17, 24, 38, 39, 41, 60, 8},
					     {1025, 2048, 1500, 2047, 1026, 1025, 1100, 600},
					     {2049, 2500, 2111, 2200, 2049, 1024, 1024, 511}};

	return bytes[mixed(id / 20) % 4][mixed(2u * id + who) % 8];
}

static unsigned flags_of(unsigned who, unsigned id)
{
	static const unsigned flags[] = {0, IBV_SEND_INLINE, IBV_SEND_SOLICITED,
					 IBV_SEND_INLINE | IBV_SEND_SIGNALED, IBV_SEND_SIGNALED};

	/* now and then one that frees what is before it */
	return (flags[mixed(~(2u * id + who)) % ARRAY_SIZE(flags)] &
		(bytes_of(who, id) > 60 ? ~(unsigned)IBV_SEND_INLINE : ~0u)) |
	       (id % 8 == 7 ? IBV_SEND_SIGNALED : 0);
}

static void expect_received(struct player *p, unsigned who, const struct ibv_wc *wc)
{
	unsigned id = p->received[who]++;
	const uint8_t *slot = p->side[who]->memory + 4096 + id % MOST * SLOT_BYTES;

	assert_int_equal(wc->wr_id, id);
	assert_int_equal(wc->byte_len, bytes_of(!who, id));
	assert_int_equal(wc->qp_num, who ? 0x22 : 0x11);
	assert_memory_equal(slot, p->side[!who]->memory + id % 64, wc->byte_len);
}

static unsigned poll_side(struct player *p, unsigned who, int most)
{
	struct ibv_wc wc[80];
	int n = eng_cq_poll(p->side[who]->cq, most, wc);

	assert_in_range(n, 0, most);
	for (int i = 0; i < n; i++) {
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
		if (wc[i].opcode & IBV_WC_RECV) {
			expect_received(p, who, &wc[i]);
			continue;
		}
		while (!(flags_of(who, p->completed[who]) & IBV_SEND_SIGNALED))
			p->completed[who]++;
		assert_int_equal(wc[i].wr_id, p->completed[who]++);
	}
	return (unsigned)n;
}

/* into one slot after the other, by the one key or the other */
static void post_receives(struct player *p, unsigned who)
{
	while (p->receives[who] - p->received[who] < MOST) {
		unsigned id = p->receives[who]++;
		struct ibv_sge sge = {(uintptr_t)p->side[who]->memory + 4096 + id % MOST * SLOT_BYTES,
				      SLOT_BYTES, id / 5 % 2 ? OTHER_KEY : 0x101};
		struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

		assert_int_equal(eng_post_recv(p->side[who]->qp, &wr, &bad), 0);
	}
}

static void post_sends(struct player *p, unsigned who, unsigned n)
{
	struct side *s = p->side[who];

	for (; n && p->posted[who] - p->received[!who] < MOST &&
	       p->posted[who] - p->completed[who] < MOST; n--) {
		unsigned id = p->posted[who]++;
		struct ibv_sge sge = {(uintptr_t)s->memory + id % 64, bytes_of(who, id), 0x101};
		struct ibv_send_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = flags_of(who, id)}, *bad;

		assert_int_equal(eng_post_send(s->qp, &wr, &bad, av_of), 0);
	}
}

static void play(struct joined *j, uint64_t seed)
{
	struct player p = {.side = {&j->w->a, &j->w->b}, .seed = seed * 1000};

	fill(&j->w->a, 4096);
	fill(&j->w->b, 4096);
	for (unsigned step = 0; step < 300; step++) {
		unsigned who = draw(&p, 4) == 0, n = draw(&p, 24) + 1;

		post_receives(&p, 0);
		post_receives(&p, 1);
		if (draw(&p, 2))
			post_sends(&p, who, n);
		else
			poll_side(&p, !who, (int)n);
	}
	for (unsigned idle = 0; idle < 4; idle++) {
		run(j->w);
		if (poll_side(&p, 0, 7) + poll_side(&p, 1, 80))
			idle = 0;
	}
	assert_int_equal(p.received[1], p.posted[0]);
	assert_int_equal(p.received[0], p.posted[1]);
	assert_int_equal(j->flow[0].count->packets >= p.posted[0], true);
	assert_int_equal(j->w->b.in.tail, 0); /* none by packets */
}

static void all_come_in_order_and_once(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct joined *j = join_biased();
		struct eng_mr_attr mr = {.key = OTHER_KEY, .pd = 1, .length = MEMORY,
					 .access = IBV_ACCESS_LOCAL_WRITE};

		for (unsigned who = 0; who < 2; who++) {
			struct side *s = who ? &j->w->b : &j->w->a;

			mr.addr = s->memory;
			mr.iova = (uintptr_t)s->memory;
			assert_int_equal(eng_mr_add(s->engine, &mr), 0);
		}
		play(j, seed);
		part(j);
	}
}

/* --- one run, and what ends it --- */

static void receive_some(struct joined *j, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(recv_into(&j->w->b, i, 64 * i, 64), 0);
}

static struct ibv_send_wr datagram_to_b(void)
{
	static const struct tp_av to_b = {.dlid = 2, .port_num = 1};

	return (struct ibv_send_wr){.opcode = IBV_WR_SEND,
				    .wr.ud = {.ah = (void *)(uintptr_t)&to_b,
					      .remote_qpn = 0x22,
					      .remote_qkey = 0x1234}};
}

static void send_some(struct joined *j, unsigned n, unsigned flags)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(send(&j->w->a, (struct ibv_send_wr){.wr_id = i,
								      .opcode = IBV_WR_SEND,
								      .send_flags = flags}, 8), 0);
}

/* Of 20 messages in 20 receives, number @bad cannot be received: those before it are, in
 * one poll; it has its error, the rest is flushed, and the sender knows */
static void expect_end_at(unsigned bad, const struct ibv_sge *place, enum ibv_wc_status receiver,
			  enum ibv_wc_status sender)
{
	struct joined *j = join_biased();
	struct ibv_recv_wr *refused;
	struct ibv_wc wc[64];

	for (unsigned i = 0; i < 20; i++) {
		struct ibv_sge sge = i == bad ? *place : (struct ibv_sge){
			(uintptr_t)j->w->b.memory + 64 * i, 64, 0x101};
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

		if (!sge.addr)
			sge.addr = (uintptr_t)j->w->b.memory;
		assert_int_equal(eng_post_recv(j->w->b.qp, &wr, &refused), 0);
	}
	send_some(j, 20, 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 64, wc), 20);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(wc[i].wr_id, i);
		assert_int_equal(wc[i].status, i < bad	? IBV_WC_SUCCESS :
					       i == bad ? receiver :
							  IBV_WC_WR_FLUSH_ERR);
	}
	run(j->w);
	assert_int_equal(eng_cq_poll(j->w->a.cq, 64, wc), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(wc[i].status, i < bad	? IBV_WC_SUCCESS :
					       i == bad ? sender :
							  IBV_WC_WR_FLUSH_ERR);
	part(j);
}

static void what_cannot_be_received_ends_a_run(void **state)
{
	const struct ibv_sge too_short = {.length = 7, .lkey = 0x101};
	const struct ibv_sge nobodys = {.length = 64, .lkey = 0x301};

	for (unsigned bad = 1; bad < 20; bad++) {
		expect_end_at(bad, &too_short, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR);
		expect_end_at(bad, &nobodys, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
	}
}

/* With receives for three of five, the fourth is not ready; it comes when there is one */
static void a_run_ends_with_its_receives(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	receive_some(j, 3);
	send_some(j, 5, 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 3);
	recv_into(&j->w->b, 3, 192, 64);
	recv_into(&j->w->b, 4, 256, 64);
	run(j->w);
	clock_now = mono_add(clock_now, 10 * NSEC_PER_MSEC);
	run(j->w);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 2);
	assert_int_equal(wc[1].wr_id, 4);
	assert_int_equal(eng_cq_poll(j->w->a.cq, 16, wc), 5);
	part(j);
}

/* Who armed a CQ hears of one completion, whoever polls it then */
static void a_run_tells_who_waits(void **state)
{
	for (unsigned solicited = 0; solicited < 2; solicited++) {
		struct joined *j = join_biased();
		struct ibv_wc wc[16];

		receive_some(j, 12);
		send_some(j, 4, 0);
		eng_cq_arm(j->w->b.cq, solicited);
		assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 4);
		assert_int_equal(j->w->b.cq_events, !solicited);
		send_some(j, 2, 0);
		send_some(j, 1, IBV_SEND_SOLICITED);
		send_some(j, 1, 0);
		assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 4);
		assert_int_equal(j->w->b.cq_events, 1);
		part(j);
	}
}

/* What a poll has no room for waits in the CQ, behind what it took; and the acknowledgement
 * of many waits until all that came is read */
static void what_is_too_much_for_a_poll_waits(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[64];
	uint64_t answers;

	receive_some(j, 28);
	send_some(j, 28, 0);
	for (unsigned got = 0; got < 28; got += 4) {
		assert_int_equal(eng_cq_poll(j->w->b.cq, 4, wc), 4);
		for (unsigned i = 0; i < 4; i++)
			assert_int_equal(wc[i].wr_id, got + i);
	}
	receive_some(j, 28);
	assert_int_equal(eng_cq_poll(j->w->a.cq, 64, wc), 28);
	answers = j->flow[1].count->packets;
	send_some(j, 28, 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 16);
	assert_int_equal(eng_cq_pending(j->w->b.cq), 0); /* who asks for many has no more read */
	assert_int_equal(j->flow[1].count->packets, answers);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 12);
	assert_int_equal(j->flow[1].count->packets, answers + 1);
	part(j);
}

/* ... of who has more to come alone: another's leave while it floods */
static void a_flood_holds_up_its_own_acknowledgement_alone(void **state)
{
	struct joined *j = join_biased();
	struct eng_qp *quiet[2];
	struct ibv_wc wc[64];
	uint64_t answers;

	receive_some(j, 24);
	send_some(j, 20, 0);
	quiet[0] = j->w->a.qp;
	quiet[1] = j->w->b.qp;
	assert_int_equal(eng_cq_poll(j->w->b.cq, 20, wc), 20); /* all there was */
	send_some(j, 4, 0);
	make_qp(&j->w->a, IBV_QPT_RC, 0x13, NULL);
	make_qp(&j->w->b, IBV_QPT_RC, 0x24, NULL);
	to_rts(&j->w->a, 2, 0x24);
	to_rts(&j->w->b, 1, 0x13);
	receive_some(j, 32);
	send_some(j, 32, 0);
	/* the quiet one's four and some of the flood, whose first was answered to learn the way */
	answers = j->flow[1].count->packets;
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 16);
	assert_int_equal(j->flow[1].count->packets, answers + 1);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 16);
	assert_int_equal(j->flow[1].count->packets, answers + 2);
	assert_int_equal(tp_qp_expiry(quiet[0]->tp).ns != MONO_NEVER.ns, true);
	assert_int_equal(eng_cq_poll(j->w->a.cq, 64, wc), 24 + 12);
	assert_int_equal(tp_qp_expiry(quiet[0]->tp).ns, MONO_NEVER.ns);
	eng_qp_destroy(quiet[0]);
	eng_qp_destroy(quiet[1]);
	part(j);
}

/* One that is spoilt ends the run, and its QP */
static int spoil_the_third(void *ctx, uint32_t qpn, enum ibv_wc_opcode opcode)
{
	static unsigned n;

	return ++n % 3 ? IBV_WC_SUCCESS : IBV_WC_GENERAL_ERR;
}

static void faults_find_each_of_a_run(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	receive_some(j, 12);
	send_some(j, 1, 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 1);
	j->w->b.engine->cfg.completion_fault = spoil_the_third;
	atomic_store(&j->w->b.page->completion_faults, 1);
	send_some(j, 6, 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 11);
	for (unsigned i = 0; i < 11; i++)
		assert_int_equal(wc[i].status, i < 2  ? IBV_WC_SUCCESS :
					       i == 2 ? IBV_WC_GENERAL_ERR :
							IBV_WC_WR_FLUSH_ERR);
	part(j);
}

/* what is not of the run in the middle of one: an ACK, and a stranger's record */
static void an_acknowledgement_in_a_run_is_heard(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	for (unsigned i = 0; i < 8; i++) {
		recv_into(&j->w->a, i, 64 * i, 64);
		recv_into(&j->w->b, i, 64 * i, 64);
	}
	assert_int_equal(send(&j->w->b, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
	send_some(j, 2, 0);
	run(j->w);
	eng_cq_poll(j->w->a.cq, 16, wc);
	eng_cq_poll(j->w->b.cq, 16, wc);
	assert_int_equal(send(&j->w->b, (struct ibv_send_wr){.wr_id = 4, .opcode = IBV_WR_SEND}, 8), 0);
	send_some(j, 2, 0);
	assert_int_equal(eng_lanes_rx(j->w->a.engine, 16), 1); /* no turn: it is owed */
	send_some(j, 2, 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 5);
	assert_int_equal(wc[2].opcode, IBV_WC_SEND);
	part(j);
}

static void a_strangers_record_ends_a_run(void **state)
{
	struct joined *j = join_biased();
	struct eng_stats stats;
	struct ibv_wc wc[16];

	receive_some(j, 12);
	send_some(j, 6, 0);
	j->in[0].rx.memory->cell[3].word[1] ^= 1; /* another QP's */
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 3);
	eng_stats(j->w->b.engine, &stats);
	assert_int_equal(stats.rx_malformed, 1);
	part(j);
}

/* Three segments of three packets, the last of which says it has @bytes: that is what so
 * many packets have, or no message at all (9.7.4.1.6) */
static void expect_segment(uint32_t bytes, bool good)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[4];

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(recv_into(&j->w->b, i, 0, 8192), 0);
		assert_int_equal(send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND},
				      2500), 0);
	}
	j->in[0].rx.memory->cell[2].word[2] += (uint64_t)bytes - 2500;
	assert_int_equal(eng_cq_poll(j->w->b.cq, 2, wc), 2);
	assert_int_equal(wc[1].byte_len, 2500);
	run(j->w);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 4, wc), 1);
	assert_int_equal(wc[0].status, good ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
	if (good)
		assert_int_equal(wc[0].byte_len, bytes);
	assert_int_equal(eng_cq_poll(j->w->a.cq, 4, wc), 3);
	assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[2].status, good ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
	part(j);
}

static void a_segment_has_what_its_packets_have(void **state)
{
	expect_segment(2049, true);
	expect_segment(3072, true);
	expect_segment(2048, false);
	expect_segment(3073, false);
	expect_segment(0, false);
}

/* What passed by a lane is known no longer when it ends: another of the same source would
 * pass by it without being heard */
static void what_is_known_ends_with_its_lane(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[4];

	needs_fast_paths(j);
	receive_some(j, 2);
	send_some(j, 2, 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 4, wc), 2);
	assert_ptr_equal(j->w->b.qp->predicted.qp, j->w->b.qp);
	eng_lane_del(j->w->b.engine, &j->in[0]);
	assert_null(j->w->b.qp->predicted.qp);
	eng_lane_add(j->w->b.engine, &j->in[0]);
	part(j);
}

/* A record from the middle of an RC message is no datagram, however often it comes */
static void a_datagram_has_no_middle(void **state)
{
	struct joined *j = join_biased_as(IBV_QPT_UD);
	struct ibv_send_wr wr = datagram_to_b();
	struct ibv_wc wc[4];

	for (unsigned i = 0; i < 3; i++) {
		_Atomic uint64_t *word = j->in[0].rx.memory->cell[i].word;

		recv_into(&j->w->b, i, 8192 * i, 8192);
		assert_int_equal(send(&j->w->a, wr, 4096), 0);
		*word = (*word & ~abi_record_opcode(0xff)) |
			abi_record_opcode(WIRE_RC | WIRE_SEND_MIDDLE);
	}
	assert_int_equal(eng_cq_poll(j->w->b.cq, 4, wc), 0);
	part(j);
}

/* --- long SENDs, of four segments: 64 KiB, twice as much from the middle, the rest --- */

#define LONG_MESSAGE 250000u

static void post_long_receive(struct side *s, uint32_t first, uint32_t bytes)
{
	struct ibv_sge sge[2] = {{(uintptr_t)s->memory, first, 0x101},
				 {(uintptr_t)s->memory + first, bytes - first, 0x101}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = first < bytes ? 2 : 1}, *bad;

	assert_int_equal(eng_post_recv(s->qp, &wr, &bad), 0);
}

/* One message into two pieces, the first of @first bytes; before it comes, @harm is done to
 * its cells. Return: A's completion; B's is alike, or the message is whole */
static enum ibv_wc_status carry_long(uint32_t first, uint32_t bytes,
				     void (*harm)(struct abi_lane *lane))
{
	struct joined *j = join_biased();
	enum ibv_wc_status status;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < LONG_MESSAGE; i++)
		j->w->a.memory[i] = (uint8_t)(i % 251); /* no two segments are alike */
	post_long_receive(&j->w->b, first, bytes);
	assert_int_equal(send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND},
			      LONG_MESSAGE), 0);
	if (harm)
		harm(j->in[0].rx.memory);
	run(j->w);
	clock_now = mono_add(clock_now, 10 * NSEC_PER_SEC); /* what was lost comes again */
	run(j->w);
	status = take(&j->w->a).status;
	wc = take(&j->w->b);
	if (status == IBV_WC_SUCCESS) {
		assert_int_equal(wc.byte_len, LONG_MESSAGE);
		assert_memory_equal(j->w->b.memory, j->w->a.memory, LONG_MESSAGE);
	} else {
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	}
	part(j);
	return status;
}

/* the second comes twice, and the third not at all */
static void lose_one(struct abi_lane *lane)
{
	memcpy(&lane->cell[2], &lane->cell[1], sizeof(lane->cell[2]));
}

static void shorten_one(struct abi_lane *lane)
{
	lane->cell[2].word[2] -= 1;
}

static void the_middle_of_a_long_one_has_a_way_of_its_own(void **state)
{
	for (uint32_t first = 1u << 16; first < LONG_MESSAGE; first += 13000)
		assert_int_equal(carry_long(first, LONG_MESSAGE, NULL), IBV_WC_SUCCESS);
	assert_int_equal(carry_long(3u << 16, LONG_MESSAGE, NULL), IBV_WC_SUCCESS);
	assert_int_equal(carry_long(LONG_MESSAGE, LONG_MESSAGE, NULL), IBV_WC_SUCCESS);
	assert_int_equal(carry_long(LONG_MESSAGE, LONG_MESSAGE, lose_one), IBV_WC_SUCCESS);
	assert_int_equal(carry_long(150000, 150000, NULL), IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(carry_long(LONG_MESSAGE, LONG_MESSAGE, shorten_one),
			 IBV_WC_REM_INV_REQ_ERR);
}

/* Who polls gives its core away when it finds nothing for long; not while there is
 * progress that no completion tells of */
static void a_poll_that_moved_something_is_not_in_vain(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc;

	assert_int_equal(eng_cq_poll(j->w->b.cq, 1, &wc), 0);
	assert_false(eng_moved(j->w->b.engine));
	post_long_receive(&j->w->b, LONG_MESSAGE, LONG_MESSAGE);
	assert_int_equal(send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND},
			      LONG_MESSAGE), 0);
	j->in[0].rx.memory->cell[3].word[0] ^= abi_record_lap(1); /* its end is not there yet */
	assert_int_equal(eng_cq_poll(j->w->b.cq, 1, &wc), 0);
	assert_true(eng_moved(j->w->b.engine));
	assert_int_equal(eng_cq_poll(j->w->b.cq, 1, &wc), 0);
	assert_false(eng_moved(j->w->b.engine));
	part(j);
}

/* --- what a post has to look at, however short its way --- */

static void send_word(struct joined *j)
{
	assert_int_equal(send(&j->w->a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
}

/* A's QP knows its flow and that its lane has room */
static struct joined *join_warm(void)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	receive_some(j, 24);
	send_some(j, 4, 0);
	run(j->w);
	assert_int_equal(eng_cq_poll(j->w->a.cq, 16, wc), 4);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 4);
	assert_int_equal(by_lane(j), 4);
	return j;
}

static void a_word_goes_the_way_that_holds(void **state)
{
	struct joined *j = join_warm();

	j->w->a.flow = NULL; /* there is none any more */
	atomic_fetch_add(&j->w->a.page->route_epoch, 1);
	send_word(j);
	assert_int_equal(by_lane(j), 4);
	assert_int_equal(j->w->b.in.tail, 1);
	part(j);
}

static void a_word_of_a_qp_that_was_reset_finds_its_way(void **state)
{
	const struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct joined *j = join_warm();
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	assert_int_equal(eng_qp_modify(j->w->a.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(send(&j->w->a, wr, 8), -EINVAL);
	assert_int_equal(eng_qp_modify(j->w->b.qp, &reset, IBV_QP_STATE), 0);
	to_rts(&j->w->a, 2, 0x22);
	to_rts(&j->w->b, 1, 0x11);
	recv_into(&j->w->b, 0, 0, 64);
	send_word(j);
	run(j->w);
	assert_int_equal(take(&j->w->b).status, IBV_WC_SUCCESS);
	part(j);
}

/* It waits in the queue while the lane is full, and those behind it, too */
static void words_wait_for_room(void **state)
{
	struct joined *j = join_warm();
	struct abi_lane_tx *tx = &j->out[0].tx;
	struct ibv_wc wc[16];

	tx->head_seen = tx->tail - (ABI_LANE_CELLS - 2);
	j->in[0].rx.memory->head = tx->head_seen;
	send_some(j, 5, 0);
	assert_int_equal(by_lane(j), 4 + 2);
	j->in[0].rx.memory->head = tx->tail - 2;
	send_some(j, 2, 0);
	run(j->w);
	assert_int_equal(eng_cq_poll(j->w->a.cq, 16, wc), 7);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 16, wc), 7);
	part(j);
}

static void words_fill_a_queue_and_no_more(void **state)
{
	struct joined *j = join_warm();
	struct ibv_sge sge = {(uintptr_t)j->w->a.memory, 8, 0x101};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad = NULL;

	send_some(j, 32, 0);
	assert_int_equal(eng_post_send(j->w->a.qp, &wr, &bad, av_of), -ENOMEM);
	assert_ptr_equal(bad, &wr);
	part(j);
}

static void a_word_that_is_lost_is_sent_again(void **state)
{
	struct joined *j = join_warm();

	assert_int_equal(tp_qp_expiry(j->w->a.qp->tp).ns, MONO_NEVER.ns);
	send_word(j);
	assert_int_not_equal(tp_qp_expiry(j->w->a.qp->tp).ns, MONO_NEVER.ns);
	part(j);
}

static unsigned rings;

static void on_ring(void *link, struct eng_lane_out *lane)
{
	rings++;
}

static void a_word_wakes_who_sleeps(void **state)
{
	struct joined *j = join_warm();
	struct eng_link_ops ops = wire_ops;

	ops.ring = on_ring;
	j->w->a.engine->cfg.link_ops = &ops;
	send_word(j);
	assert_int_equal(rings, 0);
	atomic_store(&j->in[0].rx.memory->asleep, 1);
	send_word(j);
	send_word(j);
	assert_int_equal(rings, 1);
	part(j);
}

static void a_datagram_of_a_word_has_its_qkey(void **state)
{
	struct joined *j = join_biased_as(IBV_QPT_UD);
	struct ibv_send_wr wr = datagram_to_b();

	for (unsigned i = 0; i < 4; i++) {
		recv_into(&j->w->b, i, 64 * i, 64);
		assert_int_equal(send(&j->w->a, wr, 8), 0);
		assert_int_equal(take(&j->w->b).byte_len, 48);
	}
	part(j);
}

/* Cells that had a record of their own are cleared by those that would be streamed: a
 * stream that goes round and round does not end */
__attribute__((unused)) static void a_stream_goes_on(void **state)
{
	struct joined *j = join_biased();
	unsigned streamed = 0;
	struct ibv_wc wc[32];

	needs_fast_paths(j);
	for (unsigned n = 0; n < 12 * ABI_LANE_CELLS; n += 24) {
		receive_some(j, 24);
		send_some(j, 24, 0);
		assert_int_equal(eng_cq_poll(j->w->b.cq, 32, wc), 24);
		assert_int_equal(eng_cq_poll(j->w->b.cq, 32, wc), 0);
		assert_int_equal(eng_cq_poll(j->w->a.cq, 32, wc), 24);
	}
	for (unsigned i = 0; i < ABI_LANE_CELLS; i++)
		streamed += j->out[0].tx.memory->cell[i].word[1] & abi_record_flags(ABI_RECORD_STREAM) ? 1 : 0;
	assert_in_range(streamed, ABI_LANE_CELLS / 4, ABI_LANE_CELLS);
	part(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_come_in_order_and_once),
		cmocka_unit_test(what_cannot_be_received_ends_a_run),
		cmocka_unit_test(a_run_ends_with_its_receives),
		cmocka_unit_test(a_run_tells_who_waits),
		cmocka_unit_test(what_is_too_much_for_a_poll_waits),
		cmocka_unit_test(a_flood_holds_up_its_own_acknowledgement_alone),
		cmocka_unit_test(faults_find_each_of_a_run),
		cmocka_unit_test(an_acknowledgement_in_a_run_is_heard),
		cmocka_unit_test(a_strangers_record_ends_a_run),
		cmocka_unit_test(a_segment_has_what_its_packets_have),
		cmocka_unit_test(what_is_known_ends_with_its_lane),
		cmocka_unit_test(a_datagram_has_no_middle),
		cmocka_unit_test(the_middle_of_a_long_one_has_a_way_of_its_own),
		cmocka_unit_test(a_poll_that_moved_something_is_not_in_vain),
		cmocka_unit_test(a_word_goes_the_way_that_holds),
		cmocka_unit_test(a_word_of_a_qp_that_was_reset_finds_its_way),
		cmocka_unit_test(words_wait_for_room),
		cmocka_unit_test(words_fill_a_queue_and_no_more),
		cmocka_unit_test(a_word_that_is_lost_is_sent_again),
		cmocka_unit_test(a_word_wakes_who_sleeps),
		cmocka_unit_test(a_datagram_of_a_word_has_its_qkey),
#if ABI_STREAM_BYTES
		cmocka_unit_test(a_stream_goes_on),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
