/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Is the program's thread its only one, ours not counted? */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../test.h"

#include <sys/stat.h>

/* what happens while the kernel is asked; NULL: nothing */
static void (*meanwhile)(void);

static int ask(const char *path, struct stat *st)
{
	if (meanwhile)
		meanwhile();
	return stat(path, st);
}

#define stat(path, st) ask(path, st)
#include "../../../lib/libibverbs/threads.c"
#undef stat

static _Atomic bool stop, told;

static void *waits_for(void *flag)
{
	while (!atomic_load((_Atomic bool *)flag))
		sched_yield();
	return NULL;
}

static void *stranger(void *unused)
{
	return waits_for(&stop);
}

static void *one_of_ours(void *seen)
{
	threads_begin();
	*(bool *)seen = threads_alone();
	atomic_store(&told, true);
	stranger(NULL);
	threads_end();
	return NULL;
}

/* a thread that was joined is gone a little later */
static void wait_alone(void)
{
	while (!threads_alone())
		sched_yield();
}

static void a_thread_of_the_programs_counts(void **state)
{
	pthread_t t;

	wait_alone();
	atomic_store(&stop, false);
	pthread_create(&t, NULL, stranger, NULL);
	assert_false(threads_alone());
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	wait_alone();
}

static void ours_do_not(void **state)
{
	bool seen = true;
	pthread_t t;

	wait_alone();
	atomic_store(&stop, false);
	atomic_store(&told, false);
	pthread_create(&t, NULL, one_of_ours, &seen);
	assert_false(threads_alone()); /* not yet known */
	threads_created();
	assert_true(threads_alone());
	while (!atomic_load(&told))
		sched_yield();
	assert_false(seen); /* to itself it is not the program's */
	atomic_store(&stop, true);
	pthread_join(t, NULL);
	wait_alone();
}

static void ours_and_another(void **state)
{
	pthread_t our, other;
	bool seen;

	wait_alone();
	atomic_store(&stop, false);
	pthread_create(&our, NULL, one_of_ours, &seen);
	threads_created();
	pthread_create(&other, NULL, stranger, NULL);
	assert_false(threads_alone());
	atomic_store(&stop, true);
	pthread_join(our, NULL);
	pthread_join(other, NULL);
	wait_alone();
}

static pthread_t ending;

static void end_ours(void)
{
	atomic_store(&stop, true);
	pthread_join(ending, NULL);
}

static void replace_ours(void)
{
	end_ours();
	threads_created(); /* another one, which the kernel has, too: the stranger stands for it */
}

/* The program has two threads, and as many as one and one of the library's are there when the kernel
 * is asked. */
static void one_of_ours_that_ends_hides_no_other(void **state)
{
	void (*const happens[])(void) = {end_ours, replace_ours};
	_Atomic bool other_stop;
	pthread_t other;
	bool seen, alone;

	for (int i = 0; i < 2; i++) {
		wait_alone();
		atomic_store(&stop, false);
		pthread_create(&ending, NULL, one_of_ours, &seen);
		threads_created();
		atomic_store(&other_stop, false);
		pthread_create(&other, NULL, waits_for, &other_stop);
		meanwhile = happens[i];
		alone = threads_alone();
		meanwhile = NULL;
		if (happens[i] == replace_ours)
			threads_end();
		atomic_store(&other_stop, true);
		pthread_join(other, NULL);
		assert_false(alone);
	}
	wait_alone();
}

/* its one thread and a stranger are as many as were counted in the parent */
static void a_child_has_none_of_ours(void **state)
{
	bool seen, forgets[] = {true, false};
	pthread_t our, other;
	int status;

	wait_alone();
	atomic_store(&stop, false);
	pthread_create(&our, NULL, one_of_ours, &seen);
	threads_created();
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();

		if (!child) {
			if (forgets[i]) /* else as after a bare clone() */
				threads_forked();
			pthread_create(&other, NULL, stranger, NULL);
			_exit(threads_alone());
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&stop, true);
	pthread_join(our, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_of_the_programs_counts),
		cmocka_unit_test(ours_do_not),
		cmocka_unit_test(ours_and_another),
		cmocka_unit_test(one_of_ours_that_ends_hides_no_other),
		cmocka_unit_test(a_child_has_none_of_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
