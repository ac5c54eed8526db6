/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's lock: who owns its bias, how that is revoked, and that no two
 * threads are ever inside, whoever is.
 */
#include "../test.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/lock.h"

#define ENOUGH 1000 /* turns, after which a thread owns the bias */
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

static bool owns_bias(const struct eng_lock *l)
{
	return l->bias_owner - eng_lock_self() < ENG_LOCK_OWNERS;
}

static void without_a_barrier_the_lock_is_not_biased(void **state)
{
	struct eng_lock l = {0};

	turns(&l, ENOUGH);
	assert_false(owns_bias(&l));
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

static void another_revokes_the_bias_and_it_comes_back(void **state)
{
	struct eng_lock l = {.barrier = barrier};

	need_barrier();
	turns(&l, ENOUGH);
	assert_true(owns_bias(&l));
	elsewhere(one_turn, &l);
	assert_false(owns_bias(&l));
	turns(&l, 1);
	assert_false(owns_bias(&l));
	turns(&l, ENOUGH);
	assert_true(owns_bias(&l));
}

static void another_waits_while_the_owner_is_inside(void **state)
{
	struct eng_lock l = {.barrier = barrier};

	need_barrier();
	turns(&l, ENOUGH);
	eng_lock_take(&l);
	assert_true(eng_lock_by_bias(&l));
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
	for (unsigned i = 0; i < ENOUGH; i++) { /* by the byte, then by the bias */
		eng_lock_take(&l);
		assert_true(eng_lock_is_held(&l));
		eng_lock_give(&l);
		assert_false(eng_lock_is_held(&l));
	}
	assert_true(eng_lock_by_bias(&l));
}

static void *many_turns(void *lock)
{
	turns(lock, ENOUGH);
	return owns_bias(lock) ? lock : NULL;
}

/* two threads must never write the same `inside` */
static void each_owner_has_an_inside_of_its_own(void **state)
{
	struct eng_lock l = {.barrier = barrier};
	unsigned first;

	need_barrier();
	turns(&l, ENOUGH);
	first = l.slot;
	assert_non_null(elsewhere(many_turns, &l));
	assert_int_not_equal(l.slot, first);
	turns(&l, ENOUGH);
	assert_true(owns_bias(&l));
	assert_int_equal(l.slot, first);
}

static void threads_beyond_the_last_slot_do_not_own_the_bias(void **state)
{
	struct eng_lock l = {.barrier = barrier};

	need_barrier();
	for (unsigned i = 0; i < ENG_LOCK_OWNERS; i++)
		l.owner[i] = 1; /* no thread */
	turns(&l, ENOUGH);
	assert_false(owns_bias(&l));
}

/* --- waiting --- */

static void await_state(_Atomic uint32_t *word, uint32_t value)
{
	while (atomic_load(word) != value)
		sched_yield();
}

/* The lock is never free in between, so no other thread can come first. */
static void the_heir_is_left_the_lock(void **state)
{
	struct eng_lock l = {.barrier = barrier};
	pthread_t thread;

	need_barrier();
	eng_lock_take(&l);
	assert_int_equal(pthread_create(&thread, NULL, one_turn, &l), 0);
	await_state(&l.heir, ENG_HEIR_INSISTS);
	eng_lock_give_to_heir(&l);
	pthread_join(thread, NULL);
	assert_int_equal(l.heir, ENG_HEIR_NONE);
	assert_false(eng_lock_is_held(&l));
}

/* One insists; the others sleep, so they do not keep the holder from its core. */
static void others_sleep_behind_the_heir(void **state)
{
	struct eng_lock l = {.barrier = barrier};
	pthread_t thread[OTHERS];

	need_barrier();
	eng_lock_take(&l);
	for (unsigned i = 0; i < OTHERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, one_turn, &l), 0);
	await_state(&l.heir, ENG_HEIR_INSISTS);
	await_state(&l.seat, 2); /* awaited */
	eng_lock_give(&l);
	for (unsigned i = 0; i < OTHERS; i++)
		pthread_join(thread[i], NULL);
	assert_false(eng_lock_is_held(&l));
}

struct stream {
	struct eng_lock lock;
	_Atomic bool served;
};

static void *turn_after_turn(void *arg)
{
	struct stream *s = arg;

	while (!s->served)
		turns(&s->lock, 1);
	return NULL;
}

/* ends only if it is so */
static void who_waits_is_served_while_others_stream(void **state)
{
	struct stream s = {.lock.barrier = barrier};
	pthread_t thread[OTHERS];

	need_barrier();
	for (unsigned i = 0; i < OTHERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, turn_after_turn, &s), 0);
	for (unsigned i = 0; i < 20; i++)
		turns(&s.lock, 1);
	s.served = true;
	for (unsigned i = 0; i < OTHERS; i++)
		pthread_join(thread[i], NULL);
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
	unsigned expected = TURNS, biased = 0;

	need_barrier();
	barriers = 0;
	for (unsigned i = 0; i < OTHERS; i++) {
		other[i] = (struct other){&c, i};
		assert_int_equal(pthread_create(&thread[i], NULL, come_now_and_then, &other[i]), 0);
	}
	for (unsigned n = 0; n < TURNS; n++) {
		eng_lock_take(&c.lock);
		biased += eng_lock_by_bias(&c.lock);
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
	/* it was a test of the bias, too */
	assert_true(biased > 0);
}

static void *add_up(void *arg)
{
	struct contest *c = arg;

	for (unsigned n = 0; n < TURNS / 4; n++) {
		eng_lock_take(&c->lock);
		count(c);
		eng_lock_give(&c->lock);
	}
	return NULL;
}

/* more of them than slots, so that some take the byte alone, and more than most cores */
static void no_two_of_many_streams_are_inside(void **state)
{
	struct contest c = {.lock.barrier = barrier};
	pthread_t thread[ENG_LOCK_OWNERS + 4];

	need_barrier();
	for (unsigned i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, add_up, &c), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(c.sum); i++)
		assert_int_equal(c.sum[i], ARRAY_SIZE(thread) * (TURNS / 4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_barrier_the_lock_is_not_biased),
		cmocka_unit_test(another_revokes_the_bias_and_it_comes_back),
		cmocka_unit_test(another_waits_while_the_owner_is_inside),
		cmocka_unit_test(who_is_inside_can_tell),
		cmocka_unit_test(each_owner_has_an_inside_of_its_own),
		cmocka_unit_test(threads_beyond_the_last_slot_do_not_own_the_bias),
		cmocka_unit_test(the_heir_is_left_the_lock),
		cmocka_unit_test(others_sleep_behind_the_heir),
		cmocka_unit_test(who_waits_is_served_while_others_stream),
		cmocka_unit_test(no_two_are_inside),
		cmocka_unit_test(no_two_of_many_streams_are_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
