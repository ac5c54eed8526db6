/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two ends against each other, by seeds: the stream arrives whole and in order, and both
 * ends end, whatever the order of events is. */
#include "../test.h"

#include "pair.h"

#define SEEDS 300

static struct pair_plan random_plan(struct pair *p)
{
	const uint32_t rcv_bytes = SDP_RCV_BYTES_MIN + (uint32_t)pair_random(p, 1792);

	return (struct pair_plan){
		.config = {.slots = (uint16_t)(SDP_SLOTS_MIN +
					       (pair_random(p, 2) ? 0
								  : pair_random(p, 57))),
			   .rcv_bytes = rcv_bytes,
			   .rcv_max = pair_random(p, 4) ? PAIR_RCV_MAX : 0,
			   .send_bytes = pair_random(p, 4) ? PAIR_RCV_MAX : 0,
			   .max_adverts = (uint8_t)(1 + pair_random(p, SDP_ADVERTS_MAX)),
			   .advert_bytes = pair_random(p, 2) ? 4096 : 0,
			   .pipelines = pair_random(p, 2)},
		.bytes = pair_random(p, 4) ? pair_random(p, 100000) : 0,
		.abort_at = UINT64_MAX,
		.close_at = UINT64_MAX,
		.oob_at = UINT64_MAX,
		.sink_bytes = pair_random(p, 2) ? 2048 + (uint32_t)pair_random(p, 9000) : 0,
		.cancels = pair_random(p, 2),
		.moves = pair_random(p, 2),
	};
}

static void with_plans(uint64_t seed, struct pair *p, struct pair_plan plan[2])
{
	p->random = seed * 77777 + 3;
	plan[0] = random_plan(p);
	plan[1] = random_plan(p);
}

/* what the seeds must have come across, or they test nothing: in all ends together */
struct coverage {
	unsigned int voids, returns, writes, unused, grown, shrunk, moves, crossed;
};

static void add_coverage(struct coverage *sum, const struct pair *p)
{
	sum->moves += p->moves;
	sum->crossed += p->crossed;
	for (int i = 0; i < 2; i++) {
		sum->voids += p->end[i].voids;
		sum->returns += p->end[i].returns;
		sum->writes += p->end[i].writes;
		sum->unused += p->end[i].unused;
		sum->grown += p->end[i].grown;
		sum->shrunk += p->end[i].shrunk;
	}
}

static void a_stream_arrives_whole(void **state)
{
	struct coverage sum = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct pair_plan plan[2];
		struct pair p;

		with_plans(seed, &p, plan);
		for (int i = 0; i < 2; i++)
			if (plan[i].bytes && pair_random(&p, 2))
				plan[i].oob_at = pair_random(&p, plan[i].bytes);
		pair_open(&p, plan, seed, UINT64_MAX);
		pair_run(&p);
		for (int i = 0; i < 2; i++) {
			const struct pair_end *e = &p.end[i];

			if (e->sdp.end != SDP_CLOSED || e->got != plan[!i].bytes ||
			    !sdp_rx_ended(&e->sdp) ||
			    e->oob_got != (plan[!i].oob_at != UINT64_MAX))
				fail_msg("seed %lu, end %d: state %d, end %d, %lu of %lu "
					 "bytes",
					 seed, i, e->sdp.state, e->sdp.end, e->got,
					 plan[!i].bytes);
		}
		add_coverage(&sum, &p);
		pair_close(&p);
	}
	if (!sum.voids || !sum.returns || !sum.writes || !sum.unused || !sum.grown || !sum.shrunk ||
	    !sum.moves || !sum.crossed)
		fail_msg("void %u, returned %u, written %u, unused %u, grown %u, shrunk %u, moved %u, crossed %u",
			 sum.voids, sum.returns, sum.writes, sum.unused, sum.grown, sum.shrunk, sum.moves,
			 sum.crossed);
}

/* Both programs write and do not read. The ends come to rest, do not grant each other
 * credits for ever, and each can still send control messages. Then the programs read. */
static void programs_that_do_not_read(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct pair_plan plan[2];
		struct pair p;

		with_plans(seed, &p, plan);
		plan[0].bytes = plan[1].bytes = 100000;
		plan[0].moves = plan[1].moves = false;
		pair_open(&p, plan, seed, UINT64_MAX);
		p.stalled = true;
		pair_run(&p);
		for (int i = 0; i < 2; i++)
			if (p.end[i].sdp.tx_limit - p.end[i].sdp.tx_seq < 2)
				fail_msg("seed %lu: end %d cannot send", seed, i);
		p.stalled = false;
		pair_run(&p);
		assert_int_equal(p.end[0].sdp.end, SDP_CLOSED);
		assert_int_equal(p.end[1].sdp.end, SDP_CLOSED);
		pair_close(&p);
	}
}

/* An end without a credit cannot say that it aborts: its CM does. The transport may fail, and
 * an end whose program has closed may get data and abort, when the other has ended already. */
static bool may_meet(enum sdp_end a, enum sdp_end b)
{
	const unsigned int pair = 1u << a | 1u << b;

	return pair == 1u << SDP_CLOSED || pair == 1u << SDP_LOST ||
	       pair == (1u << SDP_ABORTED | 1u << SDP_RESET) ||
	       pair == (1u << SDP_ABORTED | 1u << SDP_LOST) ||
	       pair == 1u << SDP_ABORTED || pair == (1u << SDP_RESET | 1u << SDP_LOST) ||
	       pair == (1u << SDP_CLOSED | 1u << SDP_LOST) ||
	       pair == (1u << SDP_CLOSED | 1u << SDP_ABORTED);
}

/* One end aborts, closes with data unread, or the transport dies: both have ended, and
 * what was delivered before is a prefix of the stream (pair.c compares each byte). */
static void every_end_ends_both(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct pair_plan plan[2];
		uint64_t dead_at = UINT64_MAX;
		struct pair p;

		with_plans(seed, &p, plan);
		plan[0].bytes += 1000;
		if (seed % 3 == 0)
			plan[0].abort_at = pair_random(&p, plan[0].bytes);
		else if (seed % 3 == 1)
			plan[0].close_at = pair_random(&p, plan[0].bytes);
		else
			dead_at = 1 + pair_random(&p, 3000);
		pair_open(&p, plan, seed, dead_at);
		pair_run(&p);
		if (p.end[0].sdp.state != SDP_ENDED || p.end[1].sdp.state != SDP_ENDED)
			fail_msg("seed %lu: states %d, %d", seed, p.end[0].sdp.state,
				 p.end[1].sdp.state);
		if (!may_meet(p.end[0].sdp.end, p.end[1].sdp.end))
			fail_msg("seed %lu: ends %d, %d", seed, p.end[0].sdp.end,
				 p.end[1].sdp.end);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_arrives_whole),
		cmocka_unit_test(programs_that_do_not_read),
		cmocka_unit_test(every_end_ends_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
