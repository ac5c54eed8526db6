/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Many lanes by which nothing comes: polls pass over them, and nothing that does come is lost. */
#include "lanes.h"

#define SILENT 300
#define FEW 8
#define MANY_POLLS 10000

/** struct crowd - a pair joined by lanes, and lanes to B whose senders say nothing */
struct crowd {
	struct joined *j;
	struct eng_lane_in silent[SILENT];
	struct abi_lane *memory[SILENT];
	unsigned count;
};

static struct crowd *begin(unsigned count)
{
	struct crowd *c = calloc(1, sizeof(*c));

	c->j = join();
	c->count = count;
	for (unsigned i = 0; i < count; i++) {
		c->memory[i] = aligned_alloc(64, abi_lane_bytes());
		memset(c->memory[i], 0, sizeof(struct abi_lane));
		c->silent[i] = (struct eng_lane_in){.rx.memory = c->memory[i],
						    .source = wire_port_addrs(100, 0), .pkey = PKEY};
		eng_lane_add(c->j->w->b.engine, &c->silent[i]);
	}
	return c;
}

static void end(struct crowd *c)
{
	for (unsigned i = 0; i < c->count; i++) {
		eng_lane_del(c->j->w->b.engine, &c->silent[i]);
		free(c->memory[i]);
	}
	part(c->j);
	free(c);
}

static void poll_many(struct crowd *c)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < MANY_POLLS; i++)
		assert_int_equal(eng_cq_poll(c->j->w->b.cq, 1, &wc), 0);
}

static void polls_look_at_few_lanes(void **state)
{
	struct crowd *c = begin(SILENT);
	struct engine *e = c->j->w->b.engine;

	assert_int_equal(e->num_lanes, SILENT + 1);
	poll_many(c);
	assert_true(e->num_lanes <= FEW);
	assert_int_equal(e->num_lanes + e->num_quiet, SILENT + 1);
	end(c);
}

static void few_lanes_are_always_polled(void **state)
{
	struct crowd *c = begin(FEW - 1);

	poll_many(c);
	assert_int_equal(c->j->w->b.engine->num_lanes, FEW);
	end(c);
}

/* A sends when all of B's lanes, also A's, have been silent for long. @ticks: B sleeps in
 * between, and looks at the clock with each turn; else it polls */
static void a_quiet_lane_is_heard(bool ticks)
{
	struct crowd *c = begin(SILENT);
	struct side *a = &c->j->w->a, *b = &c->j->w->b;
	struct ibv_wc wc;
	unsigned polls = 0;

	poll_many(c);
	/* A's lane is not one of those that stay: these were the last to come */
	assert_true(c->j->in[0].is_quiet);
	for (unsigned round = 0; round < 3; round++) {
		assert_int_equal(recv_into(b, round, 0, 64), 0);
		assert_int_equal(send(a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
		if (ticks)
			assert_true(eng_tick(b->engine) | eng_tick(b->engine));
		while (eng_cq_poll(b->cq, 1, &wc) == 0)
			assert_true(++polls <= SILENT + 100);
		assert_int_equal(wc.wr_id, round);
		assert_false(c->j->in[0].is_quiet);
	}
	if (ticks)
		assert_int_equal(polls, 0);
	end(c);
}

static void by_who_polls(void **state)
{
	a_quiet_lane_is_heard(false);
}

static void by_who_sleeps(void **state)
{
	a_quiet_lane_is_heard(true);
}

/* What a quiet lane predicts of a QP goes with the QP. */
static void a_qp_goes_while_its_lane_is_quiet(void **state)
{
	struct crowd *c = begin(SILENT);
	struct side *a = &c->j->w->a, *b = &c->j->w->b;

	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(recv_into(b, i, 0, 64), 0);
		assert_int_equal(send(a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
		run(c->j->w);
		take(b);
	}
	eng_lane_leave(b->engine, &c->j->in[0]); /* as if others had more to say */
	c->j->in[0].is_quiet = true;
	list_add_tail(&c->j->in[0].node, &b->engine->quiet_lanes);
	b->engine->num_quiet++;
	assert_ptr_equal(c->j->in[0].predicted, &b->qp->predicted);
	eng_qp_destroy(b->qp);
	assert_ptr_equal(c->j->in[0].predicted, &c->j->in[0].datagram);
	assert_int_equal(send(a, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, 8), 0);
	eng_tick(b->engine);
	eng_tick(b->engine);
	assert_int_equal(b->engine->stats.rx_no_qp, 1);
	make_qp(b, IBV_QPT_RC, 0x22, NULL);
	end(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polls_look_at_few_lanes),
		cmocka_unit_test(few_lanes_are_always_polled),
		cmocka_unit_test(by_who_polls),
		cmocka_unit_test(by_who_sleeps),
		cmocka_unit_test(a_qp_goes_while_its_lane_is_quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
