/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* When the engine's thread leaves a program to itself, and when it serves again:
 * who polls, who arms, and how fast. The clock is the test's. */
#include "../test.h"
#include "soft.h"

#define US NSEC_PER_USEC
#define MS NSEC_PER_MSEC
#define WINDOW_US 200

static struct soft_context ctx;
static struct soft_progress *const p = &ctx.progress;
static mono_t now;
static uint64_t poll_every_ns; /* while the thread sleeps; 0: never */
static bool arms_asleep;       /* the program arms a CQ then */

/* --- the rest of the library --- */

mono_t progress_now(void *unused)
{
	return now;
}

static void pass(uint64_t ns)
{
	now.ns += ns;
	if (poll_every_ns)
		p->polls += ns / poll_every_ns;
}

static void arm(void)
{
	p->armed = 1;
	p->arms++;
}

int progress_sleep_on_bells(struct soft_context *c, int timeout_ms)
{
	pass(arms_asleep ? 10 * US : (uint64_t)timeout_ms * MS);
	if (arms_asleep)
		arm();
	arms_asleep = false;
	return 0;
}

void progress_sleep_alone(struct soft_context *c, int timeout_ms)
{
	pass((timeout_ms < 0 ? 1000 : (uint64_t)timeout_ms) * MS);
}

void progress_work(struct soft_context *c, mono_t at)
{
}

void progress_chase(struct soft_context *c)
{
}

uint64_t link_position(struct soft_link *link, bool *waiting)
{
	*waiting = false;
	return 0;
}

/* --- */

static int setup(void **state)
{
	memset(&ctx, 0, sizeof(ctx));
	now.ns = 1000 * MS;
	p->window_start = now;
	poll_every_ns = 0;
	arms_asleep = false;
	return 0;
}

/* Return: after how many windows of SERVE the thread steps aside; 0 none of @most */
static unsigned windows_until_watch(unsigned most, bool arms)
{
	for (unsigned i = 1; i <= most; i++) {
		pass(WINDOW_US * US);
		if (arms)
			arm();
		if (watch_wanted(p, now))
			return i;
	}
	return 0;
}

static bool looks_on(unsigned looks)
{
	watch_begin(p, now);
	while (p->mode == PROGRESS_WATCH && looks--)
		watch_look(&ctx);
	return p->mode == PROGRESS_WATCH;
}

static void a_poller_is_left_to_itself(void **state)
{
	assert_int_equal(windows_until_watch(10, false), 0);
	poll_every_ns = 90 * US;
	assert_int_equal(windows_until_watch(10, false), 2);
	assert_true(looks_on(20));
	poll_every_ns = 0;
	assert_false(looks_on(1));
}

#define QUIET_WINDOWS (20 * MS / (WINDOW_US * US))

static void a_poller_is_left_to_itself_though_a_queue_is_armed(void **state)
{
	poll_every_ns = 10 * US;
	arm();
	/* the first window sees it armed; the second busy one after 20 ms ends it */
	assert_int_equal(windows_until_watch(1000, false), 1 + QUIET_WINDOWS + 1);
	poll_every_ns = 50 * US; /* not so fast */
	assert_true(looks_on(20));
	assert_int_equal(p->look_ms, 2);
	poll_every_ns = 0;
	assert_false(looks_on(1));
}

static void who_arms_and_polls_seldom_may_sleep(void **state)
{
	poll_every_ns = 20 * US;
	arm();
	assert_int_equal(windows_until_watch(1000, false), 0);
	p->armed = 0;
	assert_int_equal(windows_until_watch(1000, false), 2);
	assert_true(looks_on(20));
	assert_int_equal(p->look_ms, 16);
	p->armed = 1; /* it was armed long ago */
	poll_every_ns = 60 * US;
	assert_false(looks_on(1));
}

static void who_arms_again_and_again_handles_events(void **state)
{
	poll_every_ns = US;
	assert_int_equal(windows_until_watch(1000, true), 0);
	p->armed = 0; /* none is armed at the end of a window */
	assert_int_equal(windows_until_watch(10, false), 2);
}

/* Return: is the thread of a program ever aside that polls, and arms so often? */
static bool aside_when_arming_every(unsigned windows)
{
	bool aside = false;

	for (unsigned i = 0; i < 10; i++) {
		arm();
		aside |= windows_until_watch(windows, false) > 0;
	}
	return aside;
}

static void who_arms_now_and_then_is_served(void **state)
{
	poll_every_ns = US;
	assert_false(aside_when_arming_every(QUIET_WINDOWS));
	assert_true(aside_when_arming_every(QUIET_WINDOWS + 2));
}

static void who_arms_is_served_at_once(void **state)
{
	mono_t before;

	poll_every_ns = US;
	assert_int_equal(windows_until_watch(10, false), 2);
	assert_true(looks_on(5));
	arms_asleep = true;
	assert_false(looks_on(1));
	/* and before the thread sleeps */
	assert_int_equal(windows_until_watch(1000, false), 1 + QUIET_WINDOWS + 1);
	arm();
	before = now;
	assert_false(looks_on(1));
	assert_int_equal(now.ns, before.ns);
}

static void after_guests_whoever_armed_may_sleep(void **state)
{
	poll_every_ns = US;
	arm();
	assert_int_not_equal(windows_until_watch(1000, false), 0);
	p->guest = true;
	assert_true(looks_on(5));
	p->guest = false;
	watch_look(&ctx);
	assert_int_equal(p->mode, PROGRESS_SERVE);
}

static void threads_that_wait_are_served(void **state)
{
	poll_every_ns = US;
	arm();
	assert_int_not_equal(windows_until_watch(1000, false), 0);
	assert_true(looks_on(5));
	p->inside = 2;
	assert_false(looks_on(1));
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
		cmocka_unit_test_setup(after_guests_whoever_armed_may_sleep, setup),
		cmocka_unit_test_setup(threads_that_wait_are_served, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
