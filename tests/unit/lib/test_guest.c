/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A guest and the engine's thread take turns on the same bells: what one hears
 * for the other is not lost. All in one thread: each sleep ends at once. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "../test.h"
#include "runtime/posix/slice.h"
#include "soft.h"
#include "threads.h"

static struct soft_context ctx;
static struct soft_channel channel;
static bool slept; /* the guest */
static unsigned heard;

/* --- the rest of the library --- */

void channel_leave(struct soft_channel *c)
{
}

struct soft_cq *channel_take(struct soft_channel *c)
{
	return NULL;
}

bool lanes_events(struct soft_context *c, int fd)
{
	progress_drain(fd);
	heard++;
	return true;
}

void eng_locked(struct engine *engine, void (*fn)(void *arg), void *arg)
{
	fn(arg);
}

mono_t eng_wake_by(const struct engine *engine, mono_t now)
{
	return MONO_NEVER;
}

bool eng_tick(struct engine *engine)
{
	return false;
}

bool eng_progress(struct engine *engine)
{
	return false;
}

bool link_sleep(struct soft_link *link)
{
	return true;
}

void link_wake(struct soft_link *link)
{
	slept = true;
	channel.queued = 1; /* once is enough */
}

bool lanes_chase(struct lanes *l, mono_t now)
{
	return false;
}

void lanes_answer(struct soft_context *c)
{
}

void lanes_reap(struct soft_context *c)
{
}

void context_fatal(struct soft_context *c, bool told)
{
}

void watch_look(struct soft_context *c)
{
}

bool watch_wanted(struct soft_progress *p, mono_t now)
{
	return false;
}

void watch_begin(struct soft_progress *p, mono_t now)
{
}

void threads_begin(void)
{
}

void threads_created(void)
{
}

void threads_end(void)
{
}

void rt_short_slice(void)
{
}

/* --- */

static int setup(void **state)
{
	struct soft_progress *p = &ctx.progress;

	ctx.sock = -1;
	channel.ibv.context = &ctx.v.context;
	assert_int_equal(bells_open(&p->bells, eventfd(0, EFD_NONBLOCK)), 0);
	p->control_fd = eventfd(0, EFD_NONBLOCK);
	p->lanes_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(bells_add_control(&p->bells, p->control_fd), 0);
	assert_int_equal(bells_add_control(&p->bells, p->lanes_fd), 0);
	return 0;
}

static int teardown(void **state)
{
	bells_close(&ctx.progress.bells);
	close(ctx.progress.control_fd);
	close(ctx.progress.lanes_fd);
	return 0;
}

/* the thread was about to lie down when the guest came and went */
static void news_that_a_guest_hears_are_the_threads(void **state)
{
	struct soft_progress *p = &ctx.progress;

	progress_ring(p->lanes_fd, 1);
	assert_null(guest_wait(&channel, true));
	assert_true(slept);
	assert_int_equal(heard, 0);
	progress_sleep_on_bells(&ctx, 0);
	assert_int_equal(heard, 1);
	progress_sleep_on_bells(&ctx, 0);
	assert_int_equal(heard, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(news_that_a_guest_hears_are_the_threads, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
