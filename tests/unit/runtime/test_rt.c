/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Work, timers and the two runtimes. */
#include "../test.h"

#include <unistd.h>

#include "runtime/posix/rt_posix.h"
#include "runtime/rt_private.h"
#include "runtime/sim/rt_sim.h"

static int order[32], order_len;

struct job {
	struct rt_work work;
	struct rt_timer timer;
	struct rt *rt;
	int id;
};

static void note_work(struct rt_work *w)
{
	order[order_len++] = container_of(w, struct job, work)->id;
}

static void requeue(struct rt_work *w)
{
	struct job *j = container_of(w, struct job, work);

	note_work(w);
	if (order_len < 3)
		rt_work_queue(j->rt, w);
}

static void note_timer(struct rt_timer *t)
{
	order[order_len++] = container_of(t, struct job, timer)->id;
}

static int setup(void **state)
{
	struct rt *rt;

	order_len = 0;
	if (rt_sim_create(42, &rt))
		return -1;
	*state = rt;
	return 0;
}

static int teardown(void **state)
{
	rt_sim_destroy(*state);
	return 0;
}

static void work_runs_in_order_once(void **state)
{
	struct rt *rt = *state;
	struct job a = {.id = 1}, b = {.id = 2};

	rt_work_init(&a.work, note_work);
	rt_work_init(&b.work, note_work);
	rt_work_queue(rt, &a.work);
	rt_work_queue(rt, &b.work);
	rt_work_queue(rt, &a.work);
	assert_true(rt_sim_run(rt, 10));
	assert_int_equal(order_len, 2);
	assert_int_equal(order[0], 1);
	assert_int_equal(order[1], 2);
}

static void work_may_queue_itself_and_be_cancelled(void **state)
{
	struct rt *rt = *state;
	struct job a = {.id = 1, .rt = rt}, b = {.id = 2};

	rt_work_init(&a.work, requeue);
	rt_work_init(&b.work, note_work);
	rt_work_queue(rt, &a.work);
	rt_work_queue(rt, &b.work);
	assert_true(rt_work_cancel(&b.work));
	assert_false(rt_work_cancel(&b.work));
	rt_sim_run(rt, 10);
	assert_int_equal(order_len, 3);
}

static int work_ran;

static void count_work(struct rt_work *w)
{
	struct job *j = container_of(w, struct job, work);

	assert_int_equal(j->id, work_ran); /* the order stays */
	work_ran++;
	if (work_ran == 1)
		rt_work_queue(j->rt, w); /* behind all others */
}

static void a_turn_runs_only_so_much_work(void **state)
{
	static struct job job[RT_WORK_PER_TURN + 10];
	struct rt *rt = *state;

	work_ran = 0;
	for (int i = 0; i < (int)ARRAY_SIZE(job); i++) {
		job[i] = (struct job){.id = i, .rt = rt};
		rt_work_init(&job[i].work, count_work);
		rt_work_queue(rt, &job[i].work);
	}
	assert_true(rt_run_work(rt, RT_WORK_PER_TURN));
	assert_int_equal(work_ran, RT_WORK_PER_TURN);
	job[0].id = ARRAY_SIZE(job);
	assert_true(rt_run_work(rt, RT_WORK_PER_TURN));
	assert_int_equal(work_ran, ARRAY_SIZE(job) + 1);
	assert_false(rt_run_work(rt, RT_WORK_PER_TURN));
}

static void timers_fire_in_order_of_expiry(void **state)
{
	static const uint64_t delay[] = {5000000000, 3, 1100000000, 1000000, 3};
	struct rt *rt = *state;
	struct job j[5];

	for (int i = 0; i < 5; i++) {
		j[i].id = i;
		rt_timer_init(rt, &j[i].timer, note_timer);
		rt_timer_arm(&j[i].timer, mono_add(rt_now(rt), delay[i]));
	}
	assert_true(rt_sim_run(rt, 100));
	assert_int_equal(order_len, 5);
	assert_int_equal(order[0], 1); /* equal expiry: order of arming */
	assert_int_equal(order[1], 4);
	assert_int_equal(order[2], 3);
	assert_int_equal(order[3], 2);
	assert_int_equal(order[4], 0);
}

static void disarmed_and_rearmed_timers(void **state)
{
	struct rt *rt = *state;
	struct job a = {.id = 1}, b = {.id = 2};
	mono_t start = rt_now(rt);

	rt_timer_init(rt, &a.timer, note_timer);
	rt_timer_init(rt, &b.timer, note_timer);
	rt_timer_arm(&a.timer, mono_add(start, 10));
	rt_timer_arm(&b.timer, mono_add(start, 20));
	rt_timer_disarm(&a.timer);
	rt_timer_arm(&b.timer, mono_add(start, 40));
	rt_sim_run_for(rt, 30);
	assert_int_equal(order_len, 0);
	rt_sim_run_for(rt, 30);
	assert_int_equal(order_len, 1);
	assert_int_equal(rt_now(rt).ns - start.ns, 60);
	assert_false(rt_timer_armed(&b.timer));
}

#define MANY 100000

/* struct many - timers that check the order in which they fire */
struct many {
	struct rt_timer timer[MANY];
	uint64_t last_ns, last_serial; /* of the timer that fired last */
	unsigned fired;
};
static struct many many;

static void fire_one_of_many(struct rt_timer *t)
{
	assert_true(t->expiry.ns > many.last_ns ||
		    (t->expiry.ns == many.last_ns && t->serial > many.last_serial));
	assert_false(rt_timer_armed(t));
	many.last_ns = t->expiry.ns;
	many.last_serial = t->serial;
	many.fired++;
}

/* a walk over all timers for each that fires would take minutes */
static void many_timers_fire_in_order(void **state)
{
	struct rt *rt = *state;
	unsigned armed = MANY;

	many = (struct many){};
	for (unsigned i = 0; i < MANY; i++) {
		rt_timer_init(rt, &many.timer[i], fire_one_of_many);
		rt_timer_arm(&many.timer[i], mono_add(rt_now(rt), 1 + rt_random(rt) % MANY));
	}
	for (unsigned i = 0; i < MANY; i++) {
		struct rt_timer *t = &many.timer[rt_random(rt) % MANY];

		if (rt_random(rt) % 2) {
			armed += !rt_timer_armed(t);
			rt_timer_arm(t, mono_add(rt_now(rt), 1 + rt_random(rt) % MANY));
		} else {
			armed -= rt_timer_armed(t);
			rt_timer_disarm(t);
		}
	}
	assert_true(armed < MANY);
	rt_sim_run_for(rt, MANY);
	assert_int_equal(many.fired, armed);
	assert_int_equal(rt_next_expiry(rt).ns, MONO_NEVER.ns);
}

/* so that timers which expire in great number hold up nothing else */
static void a_turn_fires_only_so_many_timers(void **state)
{
	struct rt *rt = *state;
	struct job j = {.id = 1};

	many = (struct many){};
	rt_work_init(&j.work, note_work);
	for (unsigned i = 0; i < 3 * RT_TIMERS_PER_TURN; i++) {
		rt_timer_init(rt, &many.timer[i], fire_one_of_many);
		rt_timer_arm(&many.timer[i], mono_add(rt_now(rt), 1));
	}
	assert_true(rt_sim_step(rt));
	assert_int_equal(many.fired, RT_TIMERS_PER_TURN);
	rt_work_queue(rt, &j.work);
	assert_true(rt_sim_step(rt));
	assert_int_equal(order_len, 1);
	assert_int_equal(many.fired, RT_TIMERS_PER_TURN);
	assert_true(rt_sim_run(rt, 10));
	assert_int_equal(many.fired, 3 * RT_TIMERS_PER_TURN);
}

static void rearm_for_now(struct rt_timer *t)
{
	note_timer(t);
	if (order_len < 3)
		rt_timer_arm(t, rt_now(t->rt));
}

static void a_timer_may_arm_itself_when_it_fires(void **state)
{
	struct rt *rt = *state;
	struct job a = {.id = 1};

	rt_timer_init(rt, &a.timer, rearm_for_now);
	rt_timer_arm(&a.timer, rt_now(rt));
	assert_true(rt_sim_run(rt, 10));
	assert_int_equal(order_len, 3);
}

static void same_seed_same_bits(void **state)
{
	struct rt *other;

	assert_int_equal(rt_sim_create(42, &other), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(rt_random(*state), rt_random(other));
	rt_sim_destroy(other);
}

static void nth_allocation_fails(void **state)
{
	void *p;

	rt_fail_alloc(2);
	p = rt_zalloc(8);
	assert_non_null(p);
	assert_null(rt_zalloc(8));
	rt_free(p);
	p = rt_zalloc(8);
	assert_non_null(p);
	rt_free(p);
}

static void on_pipe(struct rt_io *io, bool readable, bool writable)
{
	char c;

	assert_true(readable);
	assert_int_equal(read(io->ev.fd, &c, 1), 1);
	order[order_len++] = c;
	rt_posix_stop(io->rt);
}

static void posix_loop_serves_descriptors(void **state)
{
	struct rt *rt;
	struct rt_io io;
	int fd[2];

	assert_int_equal(rt_posix_create(&rt), 0);
	assert_int_equal(pipe(fd), 0);
	rt_io_init(rt, &io, fd[0], on_pipe);
	rt_io_watch(&io, true, false);
	assert_int_equal(write(fd[1], "x", 1), 1);
	rt_posix_run(rt);
	assert_int_equal(order[0], 'x');
	rt_io_watch(&io, false, false);
	rt_posix_destroy(rt);
	close(fd[0]);
	close(fd[1]);
}

static struct rt_io *unwatched_by_b;

static void on_ordered_pipe(struct rt_io *io, bool readable, bool writable)
{
	on_pipe(io, readable, writable);
	if (order[order_len - 1] == 'b' && unwatched_by_b)
		rt_io_watch(unwatched_by_b, false, false);
}

/* Bytes that were written one after the other are reported in that order, which is not that of the descriptors; what
 * is not watched any more when its turn comes is left out. */
static void posix_loop_keeps_the_order_of_events(void **state)
{
	static const int written[] = {1, 2, 0};
	struct rt_io io[3];
	struct rt *rt;
	int fd[3][2];

	assert_int_equal(rt_posix_create(&rt), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pipe(fd[i]), 0);
		rt_io_init(rt, &io[i], fd[i][0], on_ordered_pipe);
		rt_io_watch(&io[i], true, false);
	}
	rt_posix_turn(rt);
	for (int round = 0; round < 2; round++) {
		order_len = 0;
		unwatched_by_b = round ? &io[0] : NULL;
		for (int i = 0; i < 3; i++)
			assert_int_equal(write(fd[written[i]][1], &"abc"[i], 1), 1);
		rt_posix_turn(rt);
		assert_int_equal(order_len, 3 - round);
		for (int i = 0; i < order_len; i++)
			assert_int_equal(order[i], 'a' + i);
		rt_posix_turn(rt); /* the kernel has nothing of the first two any more */
	}
	for (int i = 0; i < 3; i++) {
		rt_io_watch(&io[i], false, false);
		close(fd[i][0]);
		close(fd[i][1]);
	}
	rt_posix_destroy(rt);
}

/* One piece of work queues the next: all three run before a descriptor has its turn, but one that
 * queues itself without end lets it have one. */
static void queue_next(struct rt_work *w)
{
	struct job *j = container_of(w, struct job, work);

	note_work(w);
	if (j->id < 3)
		rt_work_queue(j->rt, &j[1].work);
	else if (j->id == 4 && order_len < (int)ARRAY_SIZE(order))
		rt_work_queue(j->rt, w);
}

static void posix_loop_runs_work_that_work_queues_first(void **state)
{
	struct job chain[] = {{.id = 1}, {.id = 2}, {.id = 3}, {.id = 4}};
	struct rt_io io;
	struct rt *rt;
	int fd[2];

	assert_int_equal(rt_posix_create(&rt), 0);
	assert_int_equal(pipe(fd), 0);
	rt_io_init(rt, &io, fd[0], on_pipe);
	rt_io_watch(&io, true, false);
	for (size_t i = 0; i < ARRAY_SIZE(chain); i++) {
		chain[i].rt = rt;
		rt_work_init(&chain[i].work, queue_next);
	}
	assert_int_equal(write(fd[1], "xy", 2), 2);
	rt_work_queue(rt, &chain[0].work);
	rt_posix_run(rt); /* until on_pipe() */
	assert_int_equal(order_len, 4);
	for (int i = 0; i < 3; i++)
		assert_int_equal(order[i], i + 1);
	assert_int_equal(order[3], 'x');
	rt_work_queue(rt, &chain[3].work);
	rt_posix_run(rt);
	assert_in_range(order_len, 6, ARRAY_SIZE(order) - 1);
	assert_int_equal(order[order_len - 1], 'y');
	rt_work_cancel(&chain[3].work);
	rt_io_watch(&io, false, false);
	rt_posix_destroy(rt);
	close(fd[0]);
	close(fd[1]);
}

static void stop_loop(struct rt_timer *t)
{
	note_timer(t);
	rt_posix_stop(t->rt);
}

static void posix_loop_wakes_for_timers(void **state)
{
	struct rt *rt;
	struct job a = {.id = 9};

	assert_int_equal(rt_posix_create(&rt), 0);
	rt_timer_init(rt, &a.timer, stop_loop);
	rt_timer_arm(&a.timer, mono_add(rt_now(rt), NSEC_PER_MSEC));
	rt_posix_run(rt);
	assert_int_equal(order[0], 9);
	rt_posix_destroy(rt);
}

/* The loop's alarm may stay as it is when timers move to later times, but not for an earlier
 * one. */
static void posix_loop_wakes_for_timers_that_move(void **state)
{
	struct job late = {.id = 1}, job = {.id = 2};
	struct rt_io io;
	struct rt *rt;
	mono_t due;
	int fd[2];

	assert_int_equal(rt_posix_create(&rt), 0);
	assert_int_equal(pipe(fd), 0);
	rt_io_init(rt, &io, fd[0], on_pipe);
	rt_io_watch(&io, true, false);
	rt_timer_init(rt, &late.timer, stop_loop);
	rt_timer_init(rt, &job.timer, stop_loop);
	rt_timer_arm(&late.timer, mono_add(rt_now(rt), 3600 * NSEC_PER_SEC));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(fd[1], "x", 1), 1);
		rt_posix_run(rt); /* the alarm is an hour away now */
		due = mono_add(rt_now(rt), NSEC_PER_MSEC);
		rt_timer_arm(&job.timer, due);
		rt_posix_run(rt);
		assert_int_equal(order_len, 2 * i + 2);
		assert_int_equal(order[2 * i + 1], 2);
		assert_false(mono_before(rt_now(rt), due));
	}
	rt_timer_disarm(&late.timer);
	rt_posix_destroy(rt);
	close(fd[0]);
	close(fd[1]);
}

static int prepared;

static void prepare(struct rt *rt, void *state)
{
	assert_null(rt_local(rt, RT_LOCAL_QUOTA));
	assert_int_equal(*(int *)state, 0);
	*(int *)state = ++prepared;
}

static void state_of_a_loop_is_made_once(void **state)
{
	struct rt *rt = *state, *other;
	int *a, *b;

	prepared = 0;
	assert_int_equal(rt_sim_create(1, &other), 0);
	a = rt_local_get(rt, RT_LOCAL_QUOTA, sizeof(*a), prepare);
	assert_int_equal(*a, 1);
	assert_ptr_equal(rt_local_get(rt, RT_LOCAL_QUOTA, sizeof(*a), prepare), a);
	assert_ptr_equal(rt_local(rt, RT_LOCAL_QUOTA), a);
	b = rt_local_get(other, RT_LOCAL_QUOTA, sizeof(*b), prepare);
	assert_int_equal(*b, 2);
	rt_local_free(rt, RT_LOCAL_QUOTA);
	rt_local_free(rt, RT_LOCAL_QUOTA);
	assert_null(rt_local(rt, RT_LOCAL_QUOTA));
	rt_fail_alloc(1);
	assert_null(rt_local_get(rt, RT_LOCAL_QUOTA, sizeof(*a), prepare));
	rt_fail_alloc(0);
	assert_ptr_equal(rt_local(other, RT_LOCAL_QUOTA), b);
	rt_local_free(other, RT_LOCAL_QUOTA);
	rt_sim_destroy(other);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(work_runs_in_order_once),
		CASE(work_may_queue_itself_and_be_cancelled),
		CASE(a_turn_runs_only_so_much_work),
		CASE(timers_fire_in_order_of_expiry),
		CASE(disarmed_and_rearmed_timers),
		CASE(many_timers_fire_in_order),
		CASE(a_turn_fires_only_so_many_timers),
		CASE(a_timer_may_arm_itself_when_it_fires),
		CASE(same_seed_same_bits),
		CASE(nth_allocation_fails),
		CASE(state_of_a_loop_is_made_once),
		CASE(posix_loop_serves_descriptors),
		CASE(posix_loop_keeps_the_order_of_events),
		CASE(posix_loop_runs_work_that_work_queues_first),
		CASE(posix_loop_wakes_for_timers),
		CASE(posix_loop_wakes_for_timers_that_move),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
