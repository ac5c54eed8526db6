/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a program's polls do besides taking completions, when nothing else turns the
 * engine: read what came, wherever it came by, acknowledge it, look at the clock.
 */
#include "lanes.h"

#include <pthread.h>
#include <sched.h>

#include "transport/qp.h"

#define POLLS_PER_CLOCK ENG_POLLS_PER_CLOCK

static int poll_once(struct side *s, struct ibv_wc wc[16])
{
	return eng_cq_poll(s->cq, 16, wc);
}

/* Return: after how many polls something completed; @most: not even after so many */
static unsigned polls_until(struct side *s, unsigned most, struct ibv_wc wc[16])
{
	unsigned n = 0;

	while (n < most && !poll_once(s, wc))
		n++;
	return n;
}

static void give(struct side *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(recv_into(s, i, 64 * i, 64), 0);
}

static void send_words(struct side *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(send(s, (struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND}, 8), 0);
}

/* --- while another thread has the lock --- */

struct holder {
	struct engine *engine;
	_Atomic bool holds, let_go;
};

static void *hold_lock(void *arg)
{
	struct holder *h = arg;

	eng_lock(h->engine);
	h->holds = true;
	while (!h->let_go)
		sched_yield();
	eng_unlock(h->engine);
	return NULL;
}

/* It may have been preempted. A poll that waited for it would not come back here. */
static void empty_polls_do_not_wait_for_who_has_the_lock(void **state)
{
	struct joined *j = join_biased();
	struct holder h = {.engine = j->w->b.engine};
	struct ibv_wc wc[16];
	pthread_t thread;

	give(&j->w->b, 1);
	assert_int_equal(pthread_create(&thread, NULL, hold_lock, &h), 0);
	while (!h.holds)
		sched_yield();
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(poll_once(&j->w->b, wc), 0);
	send_words(&j->w->a, 1);
	assert_int_equal(poll_once(&j->w->b, wc), 0); /* who has the lock makes progress */
	h.let_go = true;
	pthread_join(thread, NULL);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	part(j);
}

/* --- two threads that post on one QP and poll one CQ; make tsan looks for data races --- */

#define POSTERS	  2
#define EACH	  3000 /* messages of each */
#define MESSAGES (POSTERS * EACH)

struct posters {
	struct side *side;
	_Atomic unsigned receives, posted, completed; /* the peer's, and of all threads */
	_Atomic unsigned begun, failed;
	_Atomic uint8_t seen[MESSAGES]; /* how often each completed */
};

static void take_some(struct posters *p)
{
	struct ibv_wc wc[4];
	int n = eng_cq_poll(p->side->cq, ARRAY_SIZE(wc), wc);

	for (int i = 0; i < n; i++) {
		p->failed += wc[i].status != IBV_WC_SUCCESS || wc[i].wr_id >= MESSAGES;
		p->seen[wc[i].wr_id % MESSAGES]++;
	}
	p->completed += (unsigned)MAX(n, 0);
	if (!n)
		sched_yield();
}

/* A message waits for its turn to have a receive, because the clock stands still: nothing would
 * be sent again. */
static void *post_and_poll(void *arg)
{
	struct posters *p = arg;
	unsigned id = p->begun++ * EACH;

	for (unsigned i = 0; i < EACH; i++, id++) {
		unsigned turn = p->posted++;

		while (turn >= p->receives)
			take_some(p);
		while (send(p->side, (struct ibv_send_wr){.wr_id = id, .opcode = IBV_WR_SEND}, 8))
			take_some(p);
	}
	while (p->completed < MESSAGES)
		take_some(p);
	return NULL;
}

static void two_threads_share_a_qp_and_a_cq(void **state)
{
	struct joined *j = join();
	struct posters *p = calloc(1, sizeof(*p));
	unsigned received = 0, given = 0;
	pthread_t thread[POSTERS];
	struct ibv_wc wc[16];

	p->side = &j->w->a;
	for (unsigned i = 0; i < POSTERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, post_and_poll, p), 0);
	while (p->completed < MESSAGES) {
		int n;

		for (; given < MIN(received + 16, MESSAGES); given++)
			assert_int_equal(recv_into(&j->w->b, given, 0, 64), 0);
		p->receives = given;
		n = poll_once(&j->w->b, wc);
		for (int i = 0; i < n; i++)
			assert_int_equal(wc[i].wr_id, received++);
		if (!n)
			sched_yield();
	}
	for (unsigned i = 0; i < POSTERS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(received, MESSAGES);
	assert_int_equal(p->completed, MESSAGES);
	assert_int_equal(p->failed, 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(p->seen[i], 1);
	free(p);
	part(j);
}

/* --- what came --- */

static void polls_read_what_comes_by_packets(void **state)
{
	static struct abi_ring ring;
	static const struct abi_ring_rx by_softibd = {.ring = &ring};
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	j->w->a.flow = NULL; /* A finds no lane, and B cannot tell by its own */
	j->w->b.engine->cfg.packets = &by_softibd;
	give(&j->w->b, 1);
	send_words(&j->w->a, 1);
	assert_int_equal(j->w->b.in.tail, 1);
	expect_empty(&j->w->b);
	atomic_store(&ring.tail, 64);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	atomic_store(&ring.tail, 0);
	part(j);
}

static void polls_look_into_every_lane(void **state)
{
	struct joined *j = join_biased();
	struct eng_lane_in quiet = j->in[0];
	struct ibv_wc wc[16];

	quiet.rx.memory = aligned_alloc(64, abi_lane_bytes());
	memset(quiet.rx.memory, 0, abi_lane_bytes());
	eng_lane_del(j->w->b.engine, &j->in[0]);
	eng_lane_add(j->w->b.engine, &quiet);
	eng_lane_add(j->w->b.engine, &j->in[0]);
	give(&j->w->b, 1);
	send_words(&j->w->a, 1);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	eng_lane_del(j->w->b.engine, &quiet);
	free(quiet.rx.memory);
	part(j);
}

static void who_wants_none_gets_none(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	give(&j->w->b, 2);
	send_words(&j->w->a, 2);
	assert_int_equal(eng_cq_poll(j->w->b.cq, 0, wc), 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, -1, wc), 0);
	assert_int_equal(eng_cq_poll(j->w->b.cq, -1, wc), 0);
	assert_int_equal(poll_once(&j->w->b, wc), 2);
	part(j);
}

/* A program that keeps its completions for later and polls for none of them moves packets
 * nevertheless: nobody else does it for a program that polls. */
static void a_poll_for_none_moves_packets(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	give(&j->w->b, 2);
	for (unsigned i = 0; i < 2; i++) {
		send_words(&j->w->a, 1);
		assert_int_equal(eng_cq_poll(j->w->b.cq, 0, NULL), 0);
		assert_int_equal(eng_cq_pending(j->w->b.cq), i + 1);
	}
	assert_int_equal(polls_until(&j->w->a, 4, wc), 0);
	assert_int_equal(poll_once(&j->w->b, wc), 2);
	part(j);
}

/* --- what is owed for it --- */

static void exchange_words(struct joined *j, unsigned n)
{
	struct ibv_wc wc[16];

	for (unsigned i = 0; i < n; i++) {
		give(&j->w->a, 1);
		give(&j->w->b, 1);
		send_words(&j->w->a, 1);
		assert_int_equal(polls_until(&j->w->b, 4, wc), 0);
		send_words(&j->w->b, 1);
		run(j->w);
		while (poll_once(&j->w->a, wc) || poll_once(&j->w->b, wc))
			;
	}
}

/* B is known to answer, and does not: the poll that finds nothing acknowledges, and until
 * then somebody is to come and do it */
static void who_answers_late_acknowledges(void **state)
{
	struct joined *j = join_biased();
	struct engine *e = j->w->b.engine;
	struct ibv_wc wc[16];

	exchange_words(j, 4);
	assert_true(j->w->b.qp->sent_since_ack);
	assert_true(eng_idle(e));
	give(&j->w->b, 1);
	send_words(&j->w->a, 1);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	assert_int_equal(poll_once(&j->w->a, wc), 0);
	assert_false(eng_idle(e));
	assert_true(eng_wake_by(e, clock_now).ns <= clock_now.ns + ENG_ACK_NS);
	assert_int_equal(poll_once(&j->w->b, wc), 0);
	assert_int_equal(poll_once(&j->w->a, wc), 1);
	assert_true(eng_idle(e));
	part(j);
}

/* The acknowledgement of many does not wait, though more of them are to be read. The first
 * lot's is there at once: until a record has passed, none is known to be one of many */
static void many_are_acknowledged_at_once(void **state)
{
	const unsigned lots = 1 + TP_ACK_PACKETS / 16;
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	for (unsigned lot = 0; lot < lots; lot++) {
		give(&j->w->b, lot ? 16 : 32);
		send_words(&j->w->a, lot ? 16 : 31);
		assert_int_equal(poll_once(&j->w->b, wc), 16);
		assert_int_equal(j->flow[1].count->packets, lot + 1 < lots ? 1 : 2);
		/* they wait for no more than these; but if nobody polls, somebody is to come.
		 * The first left at once, to have a lane resolved */
		if (lot)
			assert_false(eng_idle(j->w->b.engine));
		/* A has room for the next */
		tp_qp_acked(j->w->a.qp->tp, psn(100 + 16 * lot + 15), clock_now);
		while (poll_once(&j->w->a, wc))
			;
	}
	part(j);
}

static int spoil(void *ctx, uint32_t qpn, enum ibv_wc_opcode opcode)
{
	return IBV_WC_GENERAL_ERR;
}

/* B's acknowledgement may wait for its answer, but not that it is in error */
static void a_spoilt_completion_ends_its_qp(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	exchange_words(j, 4);
	j->w->b.engine->cfg.completion_fault = spoil;
	atomic_store(&j->w->b.page->completion_faults, 1);
	give(&j->w->b, 1);
	send_words(&j->w->a, 1);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	assert_int_equal(wc[0].status, IBV_WC_GENERAL_ERR);
	assert_int_equal(tp_qp_state(j->w->b.qp->tp), IBV_QPS_ERR);
	part(j);
}

/* --- the clock --- */

/* A's SEND finds no receive; there is one when it may come again */
static void wait_for_a_receive(struct joined *j)
{
	struct ibv_wc wc[16];

	send_words(&j->w->a, 1);
	assert_int_equal(poll_once(&j->w->b, wc), 0);
	assert_int_equal(poll_once(&j->w->a, wc), 0);
	give(&j->w->b, 1);
	clock_now = mono_add(clock_now, NSEC_PER_SEC);
}

static void polls_look_at_the_clock_now_and_then(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	wait_for_a_receive(j);
	assert_int_equal(polls_until(&j->w->b, 1, wc), 1);
	assert_in_range(polls_until(&j->w->a, 2 * POLLS_PER_CLOCK, wc), POLLS_PER_CLOCK, -1);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	part(j);
}

/* Packets are read with a look at the clock: what is due by it does not wait for the next */
static void what_is_due_is_done(void **state)
{
	struct joined *j = join_biased();
	struct ibv_wc wc[16];

	j->w->a.engine->cfg.packets = NULL; /* there may be packets */
	wait_for_a_receive(j);
	j->w->a.in.packet[0].len = 7; /* nonsense */
	j->w->a.in.tail = 1;
	assert_int_equal(poll_once(&j->w->a, wc), 0);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	part(j);
}

static void a_poll_is_a_short_one_whatever_the_clock(void **state)
{
	struct joined *j = join_biased();
	struct engine *e = j->w->b.engine;
	struct ibv_wc wc[16];
	uint32_t before = e->polls;

	assert_true(e->next_expiry.ns == MONO_NEVER.ns);
	assert_int_equal(polls_until(&j->w->b, 3 * POLLS_PER_CLOCK, wc), 3 * POLLS_PER_CLOCK);
	assert_int_equal(e->polls - before, 3 * POLLS_PER_CLOCK);
	part(j);
}

/* --- whether to go on --- */

static void a_poll_tells_whether_it_moved_anything(void **state)
{
	struct joined *j = join_biased();
	struct engine *e = j->w->b.engine;
	struct ibv_wc wc[16];

	exchange_words(j, 4);
	poll_once(&j->w->b, wc);
	assert_false(eng_moved(e));
	give(&j->w->b, 1);
	send_words(&j->w->a, 1);
	assert_int_equal(poll_once(&j->w->b, wc), 1);
	assert_true(eng_moved(e));
	poll_once(&j->w->b, wc); /* its acknowledgement leaves */
	poll_once(&j->w->b, wc);
	assert_false(eng_moved(e));
	part(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_polls_do_not_wait_for_who_has_the_lock),
		cmocka_unit_test(two_threads_share_a_qp_and_a_cq),
		cmocka_unit_test(polls_read_what_comes_by_packets),
		cmocka_unit_test(polls_look_into_every_lane),
		cmocka_unit_test(who_wants_none_gets_none),
		cmocka_unit_test(a_poll_for_none_moves_packets),
		cmocka_unit_test(who_answers_late_acknowledges),
		cmocka_unit_test(many_are_acknowledged_at_once),
		cmocka_unit_test(a_spoilt_completion_ends_its_qp),
		cmocka_unit_test(polls_look_at_the_clock_now_and_then),
		cmocka_unit_test(what_is_due_is_done),
		cmocka_unit_test(a_poll_is_a_short_one_whatever_the_clock),
		cmocka_unit_test(a_poll_tells_whether_it_moved_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
