/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The table of transitions, row by row: what leads to it, what state it leads to
 * and what it orders. The cases stand in the table's order, one for each row; a
 * case fails when any other row rules its event.
 */
#include "../test.h"
#include "progress/progress.h"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC

static struct prog p;
static struct prog_seen seen;
static mono_t now;

/* --- what leads to a row --- */

static void nothing(void)
{
}

static void a_driver_is_in(void)
{
	p.waiters = 1;
	p.driver = true;
	p.visits++;
	p.doorbells = PROG_WAITER;
}

static void a_driver_was_here(void)
{
	p.visits++;
}

static void the_driver_stays(void)
{
	a_driver_is_in();
	p.visits_then = p.visits;
}

static void a_thread_waits(void)
{
	p.waiters = 1;
}

static void a_driver_and_another(void)
{
	a_driver_is_in();
	p.waiters = 2;
}

static void samples_were_busy(void)
{
	p.busy_samples = PROG_SAMPLES_MIN;
}

static void events_came(void)
{
	p.last_work = now;
	seen.events = p.events_then + 1;
}

static void it_armed(void)
{
	seen.armed = 1;
	seen.arms = p.arms_then + 1;
}

static void check_over(void)
{
	now = mono_add(p.check_start, p.check_ns);
	seen.polls = p.polls_then + 1;
}

static void check_over_without_polls(void)
{
	check_over();
	seen.polls = p.polls_then;
}

static void check_over_as_it_waits(void)
{
	the_driver_stays();
	check_over();
}

static void check_over_after_a_visit(void)
{
	a_driver_was_here();
	check_over();
}

static void it_rang(void)
{
	seen.rang = true;
}

static void thread_sleeps_on_doorbells(void)
{
	p.doorbells = PROG_THREAD;
}

/* --- rows --- */

static const struct {
	enum prog_state state;
	enum prog_event event;
	void (*given)(void);
	enum prog_state next;
	unsigned actions;
} cases[] = {
	/* the thread runs the engine */
	{PROG_RUNNING, PROG_READY, a_driver_was_here, PROG_BESIDE_WAITER, PROG_SLEEP_APART},
	{PROG_RUNNING, PROG_READY, samples_were_busy, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED},
	{PROG_RUNNING, PROG_READY, nothing, PROG_RUNNING, PROG_RUN},
	{PROG_RUNNING, PROG_RAN, a_driver_is_in, PROG_BESIDE_WAITER, PROG_SLEEP_APART},
	{PROG_RUNNING, PROG_RAN, events_came, PROG_RUNNING, PROG_YIELD},
	{PROG_RUNNING, PROG_RAN, nothing, PROG_ASLEEP, PROG_SLEEP_ARMED},
	{PROG_RUNNING, PROG_CROWDED, a_driver_is_in, PROG_BESIDE_WAITER, PROG_SLEEP_APART},
	{PROG_RUNNING, PROG_CROWDED, events_came, PROG_ASLEEP, PROG_SLEEP_ARMED},
	{PROG_ASLEEP, PROG_WOKE, nothing, PROG_RUNNING, PROG_RUN},
	/* the program polls */
	{PROG_BESIDE_POLLER, PROG_WOKE, a_driver_is_in, PROG_BESIDE_WAITER, PROG_SLEEP_APART},
	{PROG_BESIDE_POLLER, PROG_WOKE, it_armed, PROG_RUNNING, PROG_RUN},
	{PROG_BESIDE_POLLER, PROG_WOKE, check_over_without_polls, PROG_RUNNING, PROG_RUN},
	{PROG_BESIDE_POLLER, PROG_WOKE, it_rang, PROG_BESIDE_POLLER, PROG_RUN},
	{PROG_BESIDE_POLLER, PROG_RAN, a_driver_is_in, PROG_BESIDE_WAITER, PROG_SLEEP_APART},
	{PROG_BESIDE_POLLER, PROG_RAN, nothing, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED},
	{PROG_BESIDE_POLLER, PROG_WOKE, check_over, PROG_BESIDE_POLLER,
	 PROG_SLEEP_UNARMED | PROG_RING_OVERDUE},
	{PROG_BESIDE_POLLER, PROG_WOKE, nothing, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED},
	{PROG_BESIDE_POLLER, PROG_ARM, nothing, PROG_BESIDE_POLLER, PROG_KICK},
	/* event waiters come and go */
	{PROG_BESIDE_WAITER, PROG_WOKE, check_over_as_it_waits, PROG_PARKED, PROG_SLEEP_APART},
	{PROG_BESIDE_WAITER, PROG_WOKE, check_over_after_a_visit, PROG_BESIDE_WAITER,
	 PROG_SLEEP_APART | PROG_RING_OVERDUE},
	{PROG_BESIDE_WAITER, PROG_WOKE, a_driver_was_here, PROG_BESIDE_WAITER, PROG_SLEEP_APART},
	{PROG_BESIDE_WAITER, PROG_WOKE, it_armed, PROG_RUNNING, PROG_RUN},
	{PROG_BESIDE_WAITER, PROG_WOKE, check_over_without_polls, PROG_RUNNING, PROG_RUN},
	{PROG_BESIDE_WAITER, PROG_WOKE, check_over, PROG_BESIDE_POLLER, PROG_SLEEP_UNARMED},
	{PROG_PARKED, PROG_WOKE, the_driver_stays, PROG_PARKED, PROG_SLEEP_APART},
	{PROG_PARKED, PROG_DRIVER_LEAVE, the_driver_stays, PROG_BESIDE_WAITER, PROG_KICK},
	/* the program's threads, in any state */
	{PROG_ASLEEP, PROG_ARM, nothing, PROG_ASLEEP, 0},
	{PROG_ASLEEP, PROG_ENTER, a_thread_waits, PROG_ASLEEP, PROG_WAIT},
	{PROG_ASLEEP, PROG_ENTER, thread_sleeps_on_doorbells, PROG_ASLEEP, PROG_DRIVE_SOON | PROG_KICK},
	{PROG_BESIDE_WAITER, PROG_ENTER, nothing, PROG_BESIDE_WAITER, PROG_DRIVE},
	{PROG_ASLEEP, PROG_RETRY, thread_sleeps_on_doorbells, PROG_ASLEEP, PROG_DRIVE_SOON | PROG_KICK},
	{PROG_BESIDE_WAITER, PROG_RETRY, nothing, PROG_BESIDE_WAITER, PROG_DRIVE},
	{PROG_BESIDE_WAITER, PROG_DRIVER_LEAVE, a_driver_and_another, PROG_BESIDE_WAITER, PROG_KICK},
	{PROG_BESIDE_WAITER, PROG_DRIVER_LEAVE, a_driver_is_in, PROG_BESIDE_WAITER, 0},
	{PROG_ASLEEP, PROG_OTHER_LEAVE, a_thread_waits, PROG_ASLEEP, 0},
};

#define READY_ROWS 3 /* that a row without actions goes on to */

static void start(enum prog_state state)
{
	now.ns = 1000 * MS;
	prog_init(&p, PROG_SPIN_NS, now);
	p.state = state;
	p.check_start = now;
	p.check_ns = PROG_CHECK_FIRST_NS;
	p.polls_then = 10;
	p.read_then = UINT64_MAX;
	seen = (struct prog_seen){.polls = 11, .slept_ns = 1};
}

static void each_row_rules_its_case(void **state)
{
	assert_int_equal(ARRAY_SIZE(cases), prog_rows());
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct prog_order order;
		uint64_t before_ready;

		start(cases[i].state);
		cases[i].given();
		order = prog_step(&p, cases[i].event, &seen, now);
		before_ready = i < READY_ROWS ? p.rows : p.rows & ~((1ull << READY_ROWS) - 1);
		if (before_ready != 1ull << i || p.state != cases[i].next ||
		    order.actions != cases[i].actions)
			fail_msg("row %u (%s): rows %llx, state %u, actions %x", i, prog_row_name(i),
				 (unsigned long long)p.rows, p.state, order.actions);
	}
}

/* --- conditions that have more than one reason --- */

static void a_program_stopped_that_reads_nothing_of_what_waits(void **state)
{
	start(PROG_BESIDE_POLLER);
	p.read_then = 7;
	seen.read = 7;
	check_over();
	seen.unread = true;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_RUNNING);
	/* it has read some since then */
	start(PROG_BESIDE_POLLER);
	p.read_then = 6;
	seen.read = 7;
	check_over();
	seen.unread = true;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_BESIDE_POLLER);
	assert_int_equal(p.read_then, 7);
}

static void a_record_that_came_during_the_check_tells_nothing(void **state)
{
	start(PROG_BESIDE_POLLER);
	check_over();
	seen.read = 7;
	prog_step(&p, PROG_WOKE, &seen, now); /* the next check begins: nothing waits */
	check_over();
	seen.unread = true;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_BESIDE_POLLER);
}

static void a_driver_is_waited_for_when_it_stayed_a_whole_check(void **state)
{
	start(PROG_BESIDE_WAITER);
	the_driver_stays();
	now.ns += PROG_CHECK_FIRST_NS / 2;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_BESIDE_WAITER);
	check_over();
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_PARKED);
}

static void a_program_stopped_that_polls_little_while_a_queue_is_armed(void **state)
{
	for (int enough = 0; enough < 2; enough++) {
		start(PROG_BESIDE_POLLER);
		check_over();
		seen.armed = 1;
		seen.polls = p.polls_then + PROG_CHECK_FIRST_NS / PROG_POLL_KEPT_NS - !enough;
		prog_step(&p, PROG_WOKE, &seen, now);
		assert_int_equal(p.state, enough ? PROG_BESIDE_POLLER : PROG_RUNNING);
	}
}

static void threads_that_wait_need_the_thread_when_a_queue_is_armed(void **state)
{
	start(PROG_BESIDE_POLLER);
	a_thread_waits();
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_BESIDE_POLLER);
	seen.armed = 1;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_RUNNING);
}

static void a_second_waiter_does_not_drive(void **state)
{
	start(PROG_BESIDE_WAITER);
	assert_int_equal(prog_step(&p, PROG_ENTER, &seen, now).actions, PROG_DRIVE);
	assert_int_equal(prog_step(&p, PROG_ENTER, &seen, now).actions, PROG_WAIT);
	prog_step(&p, PROG_OTHER_LEAVE, &seen, now);
	assert_int_equal(prog_step(&p, PROG_ENTER, &seen, now).actions, PROG_WAIT);
	/* nor when the driver has left others behind */
	assert_int_equal(prog_step(&p, PROG_DRIVER_LEAVE, &seen, now).actions, PROG_KICK);
	assert_int_equal(prog_step(&p, PROG_ENTER, &seen, now).actions, PROG_WAIT);
}

static void softibds_death_needs_the_thread(void **state)
{
	start(PROG_BESIDE_POLLER);
	seen.link_down = true;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_RUNNING);
}

static void who_spins(void **state)
{
	start(PROG_RUNNING);
	events_came();
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_YIELD);
	/* work counts from when it was done */
	now.ns += PROG_SPIN_NS - 1;
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_YIELD);
	seen.worked = true;
	prog_step(&p, PROG_RAN, &seen, now);
	seen.worked = false;
	now.ns += PROG_SPIN_NS - 1;
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_YIELD);
	now.ns++;
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_SLEEP_ARMED);
	/* no event since the last sleep: only for one that is armed */
	prog_step(&p, PROG_WOKE, &seen, now);
	seen.worked = true;
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_SLEEP_ARMED);
	prog_step(&p, PROG_WOKE, &seen, now);
	seen.armed = 1;
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_YIELD);
	/* not where somebody else wants the core */
	prog_step(&p, PROG_CROWDED, &seen, now);
	now.ns += PROG_CROWDED_NS - 1;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_SLEEP_ARMED);
	now.ns++;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_YIELD);
}

/* A yield that takes a time slice is not repeated for each event: it would cost most of the time. */
static void a_long_yield_is_rare(void **state)
{
	const uint64_t lost = 4 * NSEC_PER_MSEC;

	start(PROG_RUNNING);
	seen.armed = 1;
	seen.worked = true;
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_YIELD);
	now.ns += lost;
	prog_step(&p, PROG_CROWDED, &seen, now);
	now.ns += PROG_CROWDED_TIMES * lost - 1;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_SLEEP_ARMED);
	now.ns++;
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).actions, PROG_YIELD);
}

static void how_long_a_core_is_crowded(void **state)
{
	const uint64_t most = PROG_CROWDED_MAX_NS / PROG_CROWDED_TIMES;

	assert_int_equal(prog_crowded_ns(0), 0);
	assert_int_equal(prog_crowded_ns(PROG_CROWDED_SLICE_NS - 1), 0);
	assert_int_equal(prog_crowded_ns(PROG_CROWDED_SLICE_NS),
			 PROG_CROWDED_TIMES * PROG_CROWDED_SLICE_NS);
	assert_int_equal(prog_crowded_ns(most), PROG_CROWDED_TIMES * most);
	assert_int_equal(prog_crowded_ns(most + 1), PROG_CROWDED_MAX_NS);
	assert_int_equal(prog_crowded_ns(UINT64_MAX), PROG_CROWDED_MAX_NS);
}

/* --- what a sleep's length is, and who has the doorbells --- */

static void a_check_that_a_kick_interrupts_goes_on(void **state)
{
	start(PROG_BESIDE_POLLER);
	now.ns += PROG_CHECK_FIRST_NS / 4;
	assert_int_equal(prog_step(&p, PROG_WOKE, &seen, now).sleep_ns, PROG_CHECK_FIRST_NS * 3 / 4);
	check_over();
	assert_int_equal(prog_step(&p, PROG_WOKE, &seen, now).sleep_ns, 2 * PROG_CHECK_FIRST_NS);
}

static void sleeps_without_a_check_have_no_end(void **state)
{
	start(PROG_RUNNING);
	assert_int_equal(prog_step(&p, PROG_RAN, &seen, now).sleep_ns, PROG_FOREVER);
	start(PROG_PARKED);
	the_driver_stays();
	assert_int_equal(prog_step(&p, PROG_WOKE, &seen, now).sleep_ns, PROG_FOREVER);
}

static void the_thread_hands_the_doorbells_over(void **state)
{
	start(PROG_RUNNING);
	prog_step(&p, PROG_RAN, &seen, now);
	assert_int_equal(p.doorbells, PROG_THREAD);
	prog_step(&p, PROG_ENTER, &seen, now);
	assert_int_equal(p.doorbells, PROG_THREAD);
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.doorbells, PROG_WAITER);
	assert_int_equal(prog_step(&p, PROG_RETRY, &seen, now).actions, PROG_DRIVE);
	prog_step(&p, PROG_DRIVER_LEAVE, &seen, now);
	assert_int_equal(p.doorbells, PROG_NOBODY);
}

static void a_driver_that_never_had_the_doorbells_does_not_give_them_away(void **state)
{
	start(PROG_RUNNING);
	prog_step(&p, PROG_RAN, &seen, now);
	prog_step(&p, PROG_ENTER, &seen, now);
	prog_step(&p, PROG_DRIVER_LEAVE, &seen, now);
	assert_int_equal(p.doorbells, PROG_THREAD);
}

static void one_kick_is_enough(void **state)
{
	start(PROG_BESIDE_POLLER);
	assert_int_equal(prog_step(&p, PROG_ARM, &seen, now).actions, PROG_KICK);
	assert_int_equal(prog_step(&p, PROG_ARM, &seen, now).actions, 0);
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(prog_step(&p, PROG_ARM, &seen, now).actions, PROG_KICK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_rules_its_case),
		cmocka_unit_test(a_program_stopped_that_reads_nothing_of_what_waits),
		cmocka_unit_test(a_record_that_came_during_the_check_tells_nothing),
		cmocka_unit_test(a_driver_is_waited_for_when_it_stayed_a_whole_check),
		cmocka_unit_test(a_program_stopped_that_polls_little_while_a_queue_is_armed),
		cmocka_unit_test(threads_that_wait_need_the_thread_when_a_queue_is_armed),
		cmocka_unit_test(a_second_waiter_does_not_drive),
		cmocka_unit_test(softibds_death_needs_the_thread),
		cmocka_unit_test(who_spins),
		cmocka_unit_test(a_long_yield_is_rare),
		cmocka_unit_test(how_long_a_core_is_crowded),
		cmocka_unit_test(a_check_that_a_kick_interrupts_goes_on),
		cmocka_unit_test(sleeps_without_a_check_have_no_end),
		cmocka_unit_test(the_thread_hands_the_doorbells_over),
		cmocka_unit_test(a_driver_that_never_had_the_doorbells_does_not_give_them_away),
		cmocka_unit_test(one_kick_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
