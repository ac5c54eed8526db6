/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's lock: who is favoured, how the favour ends, and that no two
 * threads are ever inside, whoever is.
 */
#include "../test.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/lock.h"

#define ENOUGH 1000 /* turns, after which one is favoured */
#define TURNS 200000u
#define OTHERS 3u

static unsigned barriers;

static void barrier(void *ctx)
{
	__atomic_add_fetch(&barriers, 1, __ATOMIC_RELAXED);
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static void need_barrier(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		skip();
}

static void turns(struct eng_lock *l, unsigned n)
{
	while (n--) {
		eng_lock_take(l);
		eng_lock_give(l);
	}
}

static bool is_favoured(const struct eng_lock *l)
{
	return l->favourite == eng_lock_self();
}

static void nobody_is_favoured_without_a_barrier(void **state)
{
	struct eng_lock l = {0};

	turns(&l, ENOUGH);
	assert_false(is_favoured(&l));
}

static void *one_turn(void *lock)
{
	turns(lock, 1);
	return NULL;
}

static void *try_in_vain(void *lock)
{
	return eng_lock_try(lock) ? lock : NULL;
}

static void *elsewhere(void *(*run)(void *), struct eng_lock *l)
{
	pthread_t thread;
	void *ret;

	assert_int_equal(pthread_create(&thread, NULL, run, l), 0);
	pthread_join(thread, &ret);
	return ret;
}

static void the_favour_ends_with_another_and_comes_back(void **state)
{
	struct eng_lock l = {.barrier = barrier};

	need_barrier();
	turns(&l, ENOUGH);
	assert_true(is_favoured(&l));
	elsewhere(one_turn, &l);
	assert_false(is_favoured(&l));
	turns(&l, 1);
	assert_false(is_favoured(&l));
	turns(&l, ENOUGH);
	assert_true(is_favoured(&l));
}

static void who_finds_the_favourite_inside_waits(void **state)
{
	struct eng_lock l = {.barrier = barrier};

	need_barrier();
	turns(&l, ENOUGH);
	eng_lock_take(&l);
	assert_true(l.by_favour);
	assert_null(elsewhere(try_in_vain, &l));
	eng_lock_give(&l);
	assert_true(eng_lock_try(&l));
	eng_lock_give(&l);
}

/* a signal handler runs in the middle of it */
static void who_is_inside_can_tell(void **state)
{
	struct eng_lock l = {.barrier = barrier};

	need_barrier();
	assert_false(eng_lock_is_held(&l));
	for (unsigned i = 0; i < ENOUGH; i++) { /* by the byte, then by favour */
		eng_lock_take(&l);
		assert_true(eng_lock_is_held(&l));
		eng_lock_give(&l);
		assert_false(eng_lock_is_held(&l));
	}
	assert_true(l.by_favour);
}

static void *many_turns(void *lock)
{
	turns(lock, ENOUGH);
	return is_favoured(lock) ? lock : NULL;
}

/* two threads must never write `inside` */
static void there_is_one_favourite_for_ever(void **state)
{
	struct eng_lock l = {.barrier = barrier};

	need_barrier();
	assert_non_null(elsewhere(many_turns, &l));
	turns(&l, ENOUGH);
	assert_false(is_favoured(&l));
}

/* --- one who comes all the time, and others now and then --- */

struct contest {
	struct eng_lock lock;
	unsigned sum[8]; /* no atomics: the lock's business */
	unsigned tries[OTHERS];
	_Atomic bool stop;
};

static void count(struct contest *c)
{
	for (unsigned i = 0; i < ARRAY_SIZE(c->sum); i++)
		c->sum[i]++;
}

struct other {
	struct contest *c;
	unsigned number;
};

static void *come_now_and_then(void *arg)
{
	struct other *o = arg;
	struct contest *c = o->c;

	for (unsigned n = 0; !c->stop; n++) {
		if (n % 2) {
			eng_lock_take(&c->lock);
		} else if (!eng_lock_try(&c->lock)) {
			sched_yield();
			continue;
		}
		count(c);
		eng_lock_give(&c->lock);
		c->tries[o->number]++;
		for (unsigned i = 0; i < 100 * (o->number + 1) && !c->stop; i++)
			sched_yield();
	}
	return NULL;
}

static void no_two_are_inside(void **state)
{
	struct contest c = {.lock.barrier = barrier};
	struct other other[OTHERS];
	pthread_t thread[OTHERS];
	unsigned expected = TURNS, favoured = 0;

	need_barrier();
	barriers = 0;
	for (unsigned i = 0; i < OTHERS; i++) {
		other[i] = (struct other){&c, i};
		assert_int_equal(pthread_create(&thread[i], NULL, come_now_and_then, &other[i]), 0);
	}
	for (unsigned n = 0; n < TURNS; n++) {
		eng_lock_take(&c.lock);
		favoured += c.lock.by_favour;
		count(&c);
		eng_lock_give(&c.lock);
	}
	c.stop = true;
	for (unsigned i = 0; i < OTHERS; i++) {
		pthread_join(thread[i], NULL);
		expected += c.tries[i];
	}
	for (unsigned i = 0; i < ARRAY_SIZE(c.sum); i++)
		assert_int_equal(c.sum[i], expected);
	/* it was a test of the favour, too */
	assert_true(favoured > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_favoured_without_a_barrier),
		cmocka_unit_test(the_favour_ends_with_another_and_comes_back),
		cmocka_unit_test(who_finds_the_favourite_inside_waits),
		cmocka_unit_test(who_is_inside_can_tell),
		cmocka_unit_test(there_is_one_favourite_for_ever),
		cmocka_unit_test(no_two_are_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
