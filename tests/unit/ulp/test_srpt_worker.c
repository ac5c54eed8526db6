/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Jobs of a disk: which run at the same time, and what barriers hold. */
#include "../test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "runtime/posix/rt_posix.h"
#include "ulp/srpt/worker.h"

#define JOBS 200

struct counted {
	struct srpt_job job;
	unsigned int id;
};

static struct rt *rt;
static struct srpt_worker *worker;
static struct counted jobs[JOBS];
static pthread_barrier_t meeting;
static atomic_uint running, begun, ended, faults;
static unsigned int done_order[JOBS], nr_done;

static int setup(void **state)
{
	running = begun = ended = faults = 0;
	nr_done = 0;
	return rt_posix_create(&rt) || srpt_worker_start(rt, &worker);
}

static int teardown(void **state)
{
	srpt_worker_stop(worker);
	rt_posix_destroy(rt);
	return 0;
}

static void done(struct srpt_job *job)
{
	done_order[nr_done++] = container_of(job, struct counted, job)->id;
}

static void put(unsigned int id, struct srpt_job job)
{
	job.done = done;
	jobs[id] = (struct counted){.job = job, .id = id};
	srpt_worker_add(worker, &jobs[id].job);
}

static void add(unsigned int id, enum srpt_job_order order, void (*run)(struct srpt_job *job))
{
	put(id, (struct srpt_job){.order = order, .run = run});
}

static void meet(struct srpt_job *job)
{
	pthread_barrier_wait(&meeting);
}

/* As many as there are threads wait for each other: one alone would wait for ever. */
static void jobs_run_beside_each_other(void **state)
{
	pthread_barrier_init(&meeting, NULL, SRPT_THREADS);
	for (unsigned int i = 0; i < 3 * SRPT_THREADS; i++)
		add(i, SRPT_BESIDE, meet);
	srpt_worker_finish(worker);
	assert_int_equal(nr_done, 3 * SRPT_THREADS);
	pthread_barrier_destroy(&meeting);
}

static void run_beside(struct srpt_job *job)
{
	running++;
	begun++;
	for (int i = 0; i < 20000; i++) /* long enough to be met */
		faults += !running;
	ended++;
	running--;
}

/* Nothing else runs, all that came before has ended, and nothing behind it has begun. */
static void run_alone(struct srpt_job *job)
{
	const unsigned int id = container_of(job, struct counted, job)->id;

	faults += running != 0 || begun != id || ended != id;
	running++;
	begun++;
	for (int i = 0; i < 1000; i++)
		faults += running != 1;
	ended++;
	running--;
}

static void a_barrier_separates_what_is_before_and_behind(void **state)
{
	for (unsigned int i = 0; i < JOBS; i++)
		add(i, i % 10 == 7 ? SRPT_ALONE : SRPT_BESIDE, i % 10 == 7 ? run_alone : run_beside);
	srpt_worker_finish(worker);
	assert_int_equal(nr_done, JOBS);
	assert_int_equal(faults, 0);
}

static void alone_means_in_order(void **state)
{
	for (unsigned int i = 0; i < JOBS; i++)
		add(i, SRPT_ALONE, run_alone);
	srpt_worker_finish(worker);
	for (unsigned int i = 0; i < JOBS; i++)
		assert_int_equal(done_order[i], i);
	assert_int_equal(faults, 0);
}

static void wait_for_two(struct srpt_job *job)
{
	pthread_barrier_wait(&meeting); /* it runs: what is added now waits */
	pthread_barrier_wait(&meeting);
}

static void the_head_of_the_queue_comes_first(void **state)
{
	pthread_barrier_init(&meeting, NULL, 2);
	add(0, SRPT_ALONE, wait_for_two);
	pthread_barrier_wait(&meeting);
	add(1, SRPT_ALONE, run_beside);
	put(2, (struct srpt_job){.order = SRPT_BESIDE, .first = true, .run = run_beside});
	put(3, (struct srpt_job){.order = SRPT_ALONE, .first = true, .run = run_beside});
	pthread_barrier_wait(&meeting);
	srpt_worker_finish(worker);
	assert_int_equal(nr_done, 4);
	assert_int_equal(done_order[1], 3);
	assert_int_equal(done_order[2], 2);
	assert_int_equal(done_order[3], 1);
	pthread_barrier_destroy(&meeting);
}

/* One that has begun is not taken back; one that waits is, and what waited for it goes on. */
static void what_has_not_begun_is_taken_back(void **state)
{
	pthread_barrier_init(&meeting, NULL, 2);
	add(0, SRPT_BESIDE, wait_for_two);
	pthread_barrier_wait(&meeting);
	add(1, SRPT_ALONE, run_beside);
	pthread_barrier_wait(&meeting);
	add(2, SRPT_BESIDE, wait_for_two);
	pthread_barrier_wait(&meeting);
	add(3, SRPT_ALONE, run_beside);
	add(4, SRPT_BESIDE, run_beside);
	assert_false(srpt_worker_cancel(worker, &jobs[2].job));
	assert_true(srpt_worker_cancel(worker, &jobs[3].job));
	while (ended < 2)
		sched_yield();
	pthread_barrier_wait(&meeting);
	srpt_worker_finish(worker);
	assert_int_equal(nr_done, 4);
	pthread_barrier_destroy(&meeting);
}

#define worker_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		worker_test(jobs_run_beside_each_other),
		worker_test(a_barrier_separates_what_is_before_and_behind),
		worker_test(alone_means_in_order),
		worker_test(the_head_of_the_queue_comes_first),
		worker_test(what_has_not_begun_is_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
