/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An event waiter and the progress thread take turns on the same doorbells: what one
 * hears for the other is not lost. All in one thread: each sleep ends at once. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "../test.h"
#include "runtime/posix/slice.h"
#include "soft.h"
#include "threads.h"

static struct soft_context ctx;
static struct soft_channel channel;
static bool slept; /* the event waiter */
static unsigned heard;

/* --- the rest of the library --- */

void channel_driver_leaves(struct soft_channel *c)
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

bool link_arm_sleep(struct soft_link *link)
{
	return true;
}

void link_disarm_sleep(struct soft_link *link)
{
	slept = true;
	channel.state.queued = 1; /* once is enough */
}

bool lanes_ring_overdue(struct lanes *l, mono_t now)
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

uint64_t link_position(struct soft_link *link, bool *waiting)
{
	return 0;
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
	pthread_mutex_init(&p->lock, NULL);
	prog_init(&p->machine, 0, progress_now(NULL));
	channel.ibv.context = &ctx.v.context;
	assert_int_equal(doorbells_open(&p->doorbells, eventfd(0, EFD_NONBLOCK)), 0);
	p->kick_fd = eventfd(0, EFD_NONBLOCK);
	p->lanes_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(doorbells_add_control(&p->doorbells, p->kick_fd), 0);
	assert_int_equal(doorbells_add_control(&p->doorbells, p->lanes_fd), 0);
	return 0;
}

static int teardown(void **state)
{
	doorbells_close(&ctx.progress.doorbells);
	close(ctx.progress.kick_fd);
	close(ctx.progress.lanes_fd);
	return 0;
}

/* the thread was about to sleep when the waiter came and went */
static void news_that_a_waiter_hears_are_the_threads(void **state)
{
	struct soft_progress *p = &ctx.progress;

	progress_ring(p->lanes_fd, 1);
	assert_null(event_waiter_wait(&channel, true));
	assert_true(slept);
	assert_int_equal(heard, 0);
	progress_sleep_on_doorbells(&ctx, 0);
	assert_int_equal(heard, 1);
	progress_sleep_on_doorbells(&ctx, 0);
	assert_int_equal(heard, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(news_that_a_waiter_hears_are_the_threads, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
