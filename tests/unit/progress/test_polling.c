/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When the progress thread leaves a program to itself, and when it serves it again:
 * programs that poll at some rate, and arm CQs. */
#include "../test.h"
#include "progress/progress.h"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC
#define QUIET_SAMPLES (PROG_QUIET_NS / PROG_SAMPLE_NS)

static struct prog p;
static struct prog_seen seen;
static struct prog_order order;
static mono_t now;
static uint64_t poll_every_ns; /* 0: never */
static bool busy;	       /* the program computes all the time */

static int setup(void **state)
{
	now.ns = 1000 * MS;
	prog_init(&p, 0, now);
	seen = (struct prog_seen){0};
	poll_every_ns = 0;
	busy = true;
	return 0;
}

static void pass(uint64_t ns)
{
	now.ns += ns;
	if (poll_every_ns)
		seen.polls += ns / poll_every_ns;
}

static void arm(void)
{
	seen.armed = 1;
	seen.arms++;
}

/* Return: after how many samples the thread steps aside; 0: none of @most */
static unsigned samples_until_aside(unsigned most, bool arms)
{
	for (unsigned i = 1; i <= most; i++) {
		pass(PROG_SAMPLE_NS);
		if (arms)
			arm();
		order = prog_step(&p, PROG_READY, &seen, now);
		if (p.state == PROG_BESIDE_POLLER)
			return i;
	}
	return 0;
}

/* the thread sleeps as long as it was told. Return: true while it stands by */
static bool check(void)
{
	uint64_t ns = order.sleep_ns;

	pass(ns);
	seen.slept_ns = ns;
	seen.cpu_ns = busy ? ns : 0;
	order = prog_step(&p, PROG_WOKE, &seen, now);
	return p.state != PROG_RUNNING;
}

static bool stands_by_for(unsigned checks)
{
	while (checks--)
		if (!check())
			return false;
	return true;
}

/* --- */

static void a_poller_is_left_to_itself(void **state)
{
	assert_int_equal(samples_until_aside(10, false), 0);
	poll_every_ns = PROG_POLL_NS;
	assert_int_equal(samples_until_aside(10, false), PROG_SAMPLES_MIN);
	assert_true(stands_by_for(20));
	poll_every_ns = 0;
	assert_false(check());
}

static void a_poller_is_left_to_itself_though_a_queue_is_armed(void **state)
{
	poll_every_ns = PROG_POLL_ARMED_NS;
	arm();
	/* the first sample sees it armed; the second busy one after the quiet ends it */
	assert_int_equal(samples_until_aside(1000, false), 1 + QUIET_SAMPLES + 1);
	poll_every_ns = PROG_POLL_KEPT_NS;
	assert_true(stands_by_for(20));
	assert_int_equal(p.check_ns, PROG_CHECK_ARMED_NS);
	poll_every_ns = 0;
	assert_false(check());
}

static void who_arms_and_polls_seldom_may_sleep(void **state)
{
	poll_every_ns = 2 * PROG_POLL_ARMED_NS;
	arm();
	assert_int_equal(samples_until_aside(1000, false), 0);
	seen.armed = 0;
	assert_int_equal(samples_until_aside(1000, false), PROG_SAMPLES_MIN);
	assert_true(stands_by_for(20));
	assert_int_equal(p.check_ns, PROG_CHECK_POLLER_NS);
	seen.armed = 1; /* it was armed long ago */
	poll_every_ns = PROG_POLL_KEPT_NS * 6 / 5;
	assert_false(check());
}

static void who_arms_again_and_again_handles_events(void **state)
{
	poll_every_ns = US;
	assert_int_equal(samples_until_aside(1000, true), 0);
	seen.armed = 0; /* none is armed at the end of a sample */
	assert_int_equal(samples_until_aside(10, false), PROG_SAMPLES_MIN);
}

/* Return: is the thread of a program ever aside that polls, and arms so often? */
static bool aside_when_arming_every(unsigned samples)
{
	bool aside = false;

	for (unsigned i = 0; i < 10; i++) {
		arm();
		aside |= samples_until_aside(samples, false) > 0;
		if (p.state == PROG_BESIDE_POLLER) {
			arm();
			check();
		}
	}
	return aside;
}

static void who_arms_now_and_then_is_served(void **state)
{
	poll_every_ns = US;
	assert_false(aside_when_arming_every(QUIET_SAMPLES));
	assert_true(aside_when_arming_every(QUIET_SAMPLES + 2));
}

static void who_arms_is_served_at_once(void **state)
{
	poll_every_ns = US;
	assert_int_equal(samples_until_aside(10, false), PROG_SAMPLES_MIN);
	assert_true(stands_by_for(5));
	pass(10 * US);
	arm();
	assert_int_equal(prog_step(&p, PROG_ARM, &seen, now).actions, PROG_KICK);
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_RUNNING);
}

static void after_drivers_whoever_armed_may_sleep(void **state)
{
	poll_every_ns = US;
	arm();
	assert_int_not_equal(samples_until_aside(1000, false), 0);
	prog_step(&p, PROG_ENTER, &seen, now);
	order = prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_BESIDE_WAITER);
	prog_step(&p, PROG_DRIVER_LEAVE, &seen, now);
	check(); /* it may come again */
	assert_int_equal(p.state, PROG_BESIDE_WAITER);
	assert_false(check());
}

/* and when it polls on, it is left to itself as before */
static void drivers_that_came_are_forgotten(void **state)
{
	after_drivers_whoever_armed_may_sleep(state);
	assert_int_not_equal(samples_until_aside(1000, false), 0);
	assert_true(stands_by_for(5));
}

static void leaving_the_engine_to_drivers_is_no_mistake(void **state)
{
	arm();
	prog_step(&p, PROG_ENTER, &seen, now);
	order = prog_step(&p, PROG_READY, &seen, now);
	assert_int_equal(p.state, PROG_BESIDE_WAITER);
	prog_step(&p, PROG_DRIVER_LEAVE, &seen, now);
	while (check())
		;
	assert_int_equal(p.samples_wanted, PROG_SAMPLES_MIN / 2);
}

/* A driver left others behind; when these leave, too, it comes no more. */
static void drivers_of_before_do_not_end_serving(void **state)
{
	arm();
	prog_step(&p, PROG_ENTER, &seen, now);
	order = prog_step(&p, PROG_READY, &seen, now);
	prog_step(&p, PROG_ENTER, &seen, now);
	prog_step(&p, PROG_DRIVER_LEAVE, &seen, now);
	prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_RUNNING);
	prog_step(&p, PROG_OTHER_LEAVE, &seen, now);
	prog_step(&p, PROG_READY, &seen, now);
	assert_int_equal(p.state, PROG_RUNNING);
}

/* --- samples --- */

static void busy_samples_count_in_a_row(void **state)
{
	for (int i = 0; i < 10; i++) {
		poll_every_ns = i % 2 ? US : 0;
		assert_int_equal(samples_until_aside(1, false), 0);
	}
}

/* what it polled before it armed, and the thread began to serve */
static void polls_of_the_standby_are_in_no_sample(void **state)
{
	poll_every_ns = US;
	samples_until_aside(10, false);
	pass(PROG_CHECK_FIRST_NS / 2);
	arm();
	order = prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(p.state, PROG_RUNNING);
	seen.armed = 0;
	poll_every_ns = 0;
	assert_int_equal(samples_until_aside(1, false), 0);
	assert_int_equal(p.busy_samples, 0);
}

/* --- programs that look like others --- */

/* polls for a moment, and then watches its memory */
static void who_polls_for_moments_is_served_for_longer_each_time(void **state)
{
	unsigned last = 0;

	for (int i = 0; i < 6; i++) {
		unsigned samples;

		poll_every_ns = US;
		samples = samples_until_aside(2 * PROG_SAMPLES_MAX, false);
		assert_int_equal(samples, last ? MIN(4 * last, PROG_SAMPLES_MAX) : PROG_SAMPLES_MIN);
		last = samples;
		poll_every_ns = 0;
		while (check())
			;
	}
	assert_int_equal(last, PROG_SAMPLES_MAX);
	/* and once it polls on, for shorter */
	poll_every_ns = US;
	samples_until_aside(PROG_SAMPLES_MAX, false);
	assert_true(stands_by_for(10));
	poll_every_ns = 0;
	assert_false(check());
	poll_every_ns = US;
	assert_int_equal(samples_until_aside(PROG_SAMPLES_MAX, false), PROG_SAMPLES_MAX / 2);
}

static void who_had_no_core_did_nothing_wrong(void **state)
{
	busy = false;
	for (int i = 0; i < 6; i++) {
		poll_every_ns = US;
		assert_int_equal(samples_until_aside(10, false), PROG_SAMPLES_MIN);
		poll_every_ns = 0;
		while (check())
			;
	}
}

/* a long standby does not make the next one long */
static void each_standby_is_judged_by_itself(void **state)
{
	poll_every_ns = US;
	samples_until_aside(10, false);
	assert_true(stands_by_for(10));
	poll_every_ns = 0;
	assert_false(check());
	assert_int_equal(p.samples_wanted, PROG_SAMPLES_MIN / 2);
	poll_every_ns = US;
	samples_until_aside(10, false);
	poll_every_ns = 0;
	assert_false(check());
	assert_int_equal(p.samples_wanted, 4 * PROG_SAMPLES_MIN);
}

/* a record was overdue, and the thread helped */
static void a_program_that_was_helped_is_checked_soon(void **state)
{
	poll_every_ns = US;
	samples_until_aside(10, false);
	assert_true(stands_by_for(20));
	seen.rang = true;
	order = prog_step(&p, PROG_WOKE, &seen, now);
	assert_int_equal(order.actions, PROG_RUN);
	order = prog_step(&p, PROG_RAN, &seen, now);
	assert_int_equal(order.sleep_ns, PROG_CHECK_FIRST_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_poller_is_left_to_itself, setup),
		cmocka_unit_test_setup(a_poller_is_left_to_itself_though_a_queue_is_armed, setup),
		cmocka_unit_test_setup(who_arms_and_polls_seldom_may_sleep, setup),
		cmocka_unit_test_setup(who_arms_again_and_again_handles_events, setup),
		cmocka_unit_test_setup(who_arms_now_and_then_is_served, setup),
		cmocka_unit_test_setup(who_arms_is_served_at_once, setup),
		cmocka_unit_test_setup(after_drivers_whoever_armed_may_sleep, setup),
		cmocka_unit_test_setup(drivers_that_came_are_forgotten, setup),
		cmocka_unit_test_setup(leaving_the_engine_to_drivers_is_no_mistake, setup),
		cmocka_unit_test_setup(drivers_of_before_do_not_end_serving, setup),
		cmocka_unit_test_setup(busy_samples_count_in_a_row, setup),
		cmocka_unit_test_setup(polls_of_the_standby_are_in_no_sample, setup),
		cmocka_unit_test_setup(each_standby_is_judged_by_itself, setup),
		cmocka_unit_test_setup(who_polls_for_moments_is_served_for_longer_each_time, setup),
		cmocka_unit_test_setup(who_had_no_core_did_nothing_wrong, setup),
		cmocka_unit_test_setup(a_program_that_was_helped_is_checked_soon, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
