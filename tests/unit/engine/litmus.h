/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two threads on a processor that orders memory weakly, simulated: a file that includes this
 * before a header of lock-free code runs that code itself, with each of its atomics, fences and
 * memcpy()s as a step of the simulation.
 *
 * The model is that of C11's release and acquire, by views. Each location keeps all values that
 * were ever stored into it, in their order. A thread has a view, the oldest value of each
 * location that it may still read, and a load returns any value from there on: a store that a
 * thread knows nothing of may reach it late, and stores to two locations in either order. A
 * store with release carries its thread's view, which a load with acquire takes over. A full
 * fence exchanges views with all fences before it, and membarrier(2) is a full fence of both
 * threads. A sequentially consistent load finds no older value of its location than the last
 * sequentially consistent store before it has left there. Plain stores and memcpy() are relaxed. So everything is found that arm64 does by
 * stores that arrive late; a load that is overtaken by a later store is not modelled.
 *
 * One thread runs at a time, and which one goes on at a step, and which value a load returns,
 * follow from the seed. A case can leave out an order (enum litmus_without): then some seed must
 * show what it prevents, or the case could not fail.
 */
#ifndef SOFTIB_TESTS_LITMUS_H
#define SOFTIB_TESTS_LITMUS_H

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/relax.h"
#include "engine/futex.h"

#define LITMUS_LOCATIONS 128
#define LITMUS_VALUES 4096 /* of all locations together, and so of a run */
#define LITMUS_STEPS 4000  /* a run that takes more has hung */
#define LITMUS_SWITCH 5    /* so many steps of a thread, on average, come one behind the other */

enum litmus_without { LITMUS_ALL, LITMUS_NO_RELEASE, LITMUS_NO_ACQUIRE, LITMUS_NO_FENCE };

/* index in litmus.value of the oldest value that may be read, by location; 0: the first */
struct litmus_view {
	uint16_t at[LITMUS_LOCATIONS];
};

struct litmus_value {
	uint64_t bits;
	uint16_t next, order; /* the next one of the location; 0: none */
	struct litmus_view carried;
};

struct litmus_location {
	uintptr_t address;
	uint16_t first, last;
};

struct litmus_thread {
	struct litmus_view seen, released, unacquired;
	bool sleeps, rung, ended;
};

static struct litmus {
	/* --- the memory that is simulated --- */
	uintptr_t begin;
	size_t bytes;
	struct litmus_location location[LITMUS_LOCATIONS];
	struct litmus_value value[LITMUS_VALUES];
	unsigned locations, values, steps;
	struct litmus_view fenced, consistent;
	struct litmus_thread thread[2];
	/* --- the run --- */
	enum litmus_without without;
	uint64_t random;
	int running; /* the thread that may; -1: none yet */
	const char *wrong; /* NULL: nothing yet; else the run is over */
	pthread_mutex_t lock;
	pthread_cond_t turn;
} litmus = {.lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};

static _Thread_local int litmus_self;
static _Thread_local jmp_buf litmus_end; /* where a thread goes when the run is over */

static unsigned litmus_below(unsigned n)
{
	litmus.random ^= litmus.random << 13;
	litmus.random ^= litmus.random >> 7;
	litmus.random ^= litmus.random << 17;
	return (unsigned)(litmus.random >> 32) % n;
}

/** litmus_wrong() - what this run shows; the first counts */
static void litmus_wrong(const char *what)
{
	if (!litmus.wrong)
		litmus.wrong = what;
	longjmp(litmus_end, 1);
}

/* --- which thread runs --- */

static bool litmus_can_run(int t)
{
	return !litmus.thread[t].ended && !litmus.thread[t].sleeps;
}

/* The other thread goes on, if it can, and this one when it may again */
static void litmus_give_way(void)
{
	int other = !litmus_self;

	if (!litmus_can_run(litmus_self) && !litmus_can_run(other))
		litmus_wrong("nobody rings for a thread that sleeps");
	if (!litmus_can_run(other))
		return;
	pthread_mutex_lock(&litmus.lock);
	litmus.running = other;
	pthread_cond_broadcast(&litmus.turn);
	while (litmus.running != litmus_self)
		pthread_cond_wait(&litmus.turn, &litmus.lock);
	pthread_mutex_unlock(&litmus.lock);
	if (litmus.wrong)
		longjmp(litmus_end, 1);
}

static void litmus_step(void)
{
	if (++litmus.steps > LITMUS_STEPS)
		litmus_wrong("no end");
	if (!litmus_below(LITMUS_SWITCH))
		litmus_give_way();
}

/** litmus_sleep() - until litmus_ring(), which may have been before */
static inline void litmus_sleep(void)
{
	struct litmus_thread *t = &litmus.thread[litmus_self];

	t->sleeps = !t->rung;
	while (t->sleeps)
		litmus_give_way();
	t->sleeps = t->rung = false;
}

static inline void litmus_ring(void)
{
	struct litmus_thread *t = &litmus.thread[!litmus_self];

	t->rung = true;
	t->sleeps = false;
}

/* in a loop that waits for the other thread */
static inline int litmus_yield(void)
{
	litmus_step();
	litmus_give_way();
	return 0;
}

/* --- memory --- */

static bool litmus_has(const volatile void *at)
{
	return (uintptr_t)at - litmus.begin < litmus.bytes;
}

static unsigned litmus_new_value(uint64_t bits, const struct litmus_view *carried)
{
	struct litmus_value *v = &litmus.value[++litmus.values];

	if (litmus.values == LITMUS_VALUES - 1)
		abort(); /* a case that stores so much needs a larger table */
	*v = (struct litmus_value){.bits = bits, .carried = *carried};
	return litmus.values;
}

static unsigned litmus_locate(const volatile void *at, size_t bytes)
{
	struct litmus_location *l = litmus.location;
	uint64_t now = 0;
	unsigned i;

	for (i = 0; i < litmus.locations; i++)
		if (l[i].address == (uintptr_t)at)
			return i;
	if (litmus.locations++ == LITMUS_LOCATIONS)
		abort();
	memcpy(&now, (const void *)(uintptr_t)at, bytes);
	l[i] = (struct litmus_location){.address = (uintptr_t)at};
	l[i].first = l[i].last =
		(uint16_t)litmus_new_value(now, &(struct litmus_view){{0}});
	for (int t = 0; t < 2; t++)
		litmus.thread[t].seen.at[i] = l[i].first;
	return i;
}

static void litmus_join(struct litmus_view *to, const struct litmus_view *from)
{
	for (unsigned i = 0; i < litmus.locations; i++)
		if (from->at[i] && litmus.value[from->at[i]].order >
					   litmus.value[to->at[i]].order)
			to->at[i] = from->at[i];
}

static bool litmus_releases(memory_order order)
{
	return order >= memory_order_release && litmus.without != LITMUS_NO_RELEASE;
}

static bool litmus_acquires(memory_order order)
{
	return order != memory_order_relaxed && order != memory_order_release &&
	       litmus.without != LITMUS_NO_ACQUIRE;
}

static bool litmus_is_consistent(memory_order order)
{
	return order == memory_order_seq_cst && litmus.without != LITMUS_NO_FENCE;
}

/* a sequentially consistent access of the location @i begins, or a store has ended */
static void litmus_agree(unsigned i, memory_order order)
{
	uint16_t *seen = &litmus.thread[litmus_self].seen.at[i], *agreed = &litmus.consistent.at[i];

	if (!litmus_is_consistent(order))
		return;
	if (*agreed && litmus.value[*agreed].order > litmus.value[*seen].order)
		*seen = *agreed;
}

static uint64_t litmus_read(unsigned i, unsigned v, memory_order order)
{
	struct litmus_thread *t = &litmus.thread[litmus_self];

	t->seen.at[i] = (uint16_t)v;
	litmus_join(litmus_acquires(order) ? &t->seen : &t->unacquired, &litmus.value[v].carried);
	return litmus.value[v].bits;
}

static uint64_t litmus_load(const volatile void *at, size_t bytes, memory_order order)
{
	uint64_t bits = 0;
	unsigned i, v;

	if (!litmus_has(at)) {
		memcpy(&bits, (const void *)(uintptr_t)at, bytes);
		return bits;
	}
	litmus_step();
	i = litmus_locate(at, bytes);
	litmus_agree(i, order);
	v = litmus.thread[litmus_self].seen.at[i];
	while (litmus.value[v].next && litmus_below(2))
		v = litmus.value[v].next;
	return litmus_read(i, v, order);
}

static void litmus_append(unsigned i, volatile void *at, size_t bytes, uint64_t bits,
			  const struct litmus_view *carried, memory_order order)
{
	struct litmus_location *l = &litmus.location[i];
	unsigned v = litmus_new_value(bits, carried);

	litmus.value[v].order = (uint16_t)(litmus.value[l->last].order + 1);
	litmus.value[l->last].next = (uint16_t)v;
	l->last = (uint16_t)v;
	litmus.thread[litmus_self].seen.at[i] = (uint16_t)v;
	litmus.value[v].carried.at[i] = (uint16_t)v;
	if (litmus_is_consistent(order))
		litmus.consistent.at[i] = (uint16_t)v;
	memcpy((void *)(uintptr_t)at, &bits, bytes); /* for what reads it without a step */
}

static void litmus_store(volatile void *at, size_t bytes, uint64_t bits, memory_order order)
{
	struct litmus_thread *t = &litmus.thread[litmus_self];

	if (!litmus_has(at)) {
		memcpy((void *)(uintptr_t)at, &bits, bytes);
		return;
	}
	litmus_step();
	litmus_append(litmus_locate(at, bytes), at, bytes, bits,
		      litmus_releases(order) ? &t->seen : &t->released, order);
}

/* Read the newest value, and store @bits in the same step. Return: the old value */
static uint64_t litmus_replace(unsigned i, volatile void *at, size_t bytes, uint64_t bits, bool adds,
			       memory_order order)
{
	struct litmus_thread *t = &litmus.thread[litmus_self];
	struct litmus_view carried = litmus.value[litmus.location[i].last].carried;
	uint64_t was = litmus_read(i, litmus.location[i].last, order);

	litmus_join(&carried, litmus_releases(order) ? &t->seen : &t->released);
	litmus_append(i, at, bytes, bits + (adds ? was : 0), &carried, order);
	return was;
}

/* @adds: the new value is the old one and @bits; else it is @bits */
static uint64_t litmus_change(volatile void *at, size_t bytes, uint64_t bits, bool adds,
			      memory_order order)
{
	uint64_t was = 0;

	if (!litmus_has(at)) {
		memcpy(&was, (const void *)(uintptr_t)at, bytes);
		bits += adds ? was : 0;
		memcpy((void *)(uintptr_t)at, &bits, bytes);
		return was;
	}
	litmus_step();
	return litmus_replace(litmus_locate(at, bytes), at, bytes, bits, adds, order);
}

/* of memory that is simulated. Return: was it *@expected? Else that is set to what it was */
static inline bool litmus_compare_change(volatile void *at, size_t bytes, void *expected, uint64_t bits)
{
	uint64_t want = 0, was;
	unsigned i;

	if (!litmus_has(at))
		abort();
	memcpy(&want, expected, bytes);
	litmus_step();
	i = litmus_locate(at, bytes);
	was = litmus.value[litmus.location[i].last].bits;
	if (was == want) {
		litmus_replace(i, at, bytes, bits, false, memory_order_seq_cst);
		return true;
	}
	litmus_read(i, litmus.location[i].last, memory_order_seq_cst);
	memcpy(expected, &was, bytes);
	return false;
}

static void litmus_fence_of(struct litmus_thread *t)
{
	litmus_join(&t->seen, &t->unacquired);
	litmus_join(&t->seen, &litmus.fenced);
	litmus_join(&litmus.fenced, &t->seen);
	t->released = t->seen;
}

static void litmus_fence(memory_order order)
{
	struct litmus_thread *t = &litmus.thread[litmus_self];

	if (!litmus.bytes)
		return; /* the memory of a run is prepared */
	litmus_step();
	if (litmus_is_consistent(order))
		litmus_fence_of(t);
	if (litmus_acquires(order))
		litmus_join(&t->seen, &t->unacquired);
	if (litmus_releases(order))
		t->released = t->seen;
}

/** litmus_membarrier() - a full fence of both threads, wherever the other one is */
static inline void litmus_membarrier(void *unused)
{
	litmus_fence(memory_order_seq_cst);
	if (litmus.without != LITMUS_NO_FENCE)
		litmus_fence_of(&litmus.thread[!litmus_self]);
	litmus_fence(memory_order_seq_cst);
}

/** litmus_syscall() - membarrier(2); and futex(2), which compares with the newest value and wakes the other
 *  thread */
static inline long litmus_syscall(long number, ...)
{
	const volatile uint32_t *word;
	va_list args;
	int op;

	va_start(args, number);
	if (number == SYS_membarrier) {
		litmus_membarrier(NULL);
	} else {
		word = va_arg(args, const volatile uint32_t *);
		op = va_arg(args, int);
		if (op == FUTEX_WAKE)
			litmus_ring();
		else if (*word == va_arg(args, uint32_t))
			litmus_sleep();
	}
	va_end(args);
	return 0;
}

/* in pieces of four bytes, which are all that cases copy */
static void *litmus_copy(void *to, const void *from, size_t bytes)
{
	if (!litmus_has(to) && !litmus_has(from))
		return memcpy(to, from, bytes);
	for (size_t i = 0; i < bytes; i += 4) {
		uint64_t piece = litmus_load((const char *)from + i, 4, memory_order_relaxed);

		litmus_store((char *)to + i, 4, piece, memory_order_relaxed);
	}
	return to;
}

/* --- a run --- */

struct litmus_role {
	void (*run)(void *arg);
	void *arg;
	int self;
};

static void *litmus_run_role(void *arg)
{
	struct litmus_role *role = arg;

	litmus_self = role->self;
	pthread_mutex_lock(&litmus.lock);
	while (litmus.running != role->self)
		pthread_cond_wait(&litmus.turn, &litmus.lock);
	pthread_mutex_unlock(&litmus.lock);
	if (!setjmp(litmus_end))
		role->run(role->arg);
	pthread_mutex_lock(&litmus.lock);
	litmus.thread[role->self].ended = true;
	if (litmus.thread[!role->self].sleeps && !litmus.wrong)
		litmus.wrong = "nobody rings for a thread that sleeps";
	litmus.thread[!role->self].sleeps = false;
	litmus.running = !role->self;
	pthread_cond_broadcast(&litmus.turn);
	pthread_mutex_unlock(&litmus.lock);
	return NULL;
}

/**
 * litmus_run() - run two threads against each other
 * @memory, @bytes: what they share, in the state at the beginning
 * Return: NULL; what was wrong
 */
static const char *litmus_run(uint64_t seed, enum litmus_without without, void *memory,
			      size_t bytes, void (*a)(void *arg), void (*b)(void *arg), void *arg)
{
	struct litmus_role role[2] = {{a, arg, 0}, {b, arg, 1}};
	pthread_t thread[2];

	litmus.begin = (uintptr_t)memory;
	litmus.bytes = bytes;
	litmus.locations = litmus.values = litmus.steps = 0;
	memset(&litmus.fenced, 0, sizeof(litmus.fenced));
	memset(&litmus.consistent, 0, sizeof(litmus.consistent));
	memset(litmus.thread, 0, sizeof(litmus.thread));
	litmus.without = without;
	litmus.random = seed * 0x9e3779b97f4a7c15ull + 1;
	litmus.wrong = NULL;
	litmus.running = -1;
	for (int t = 0; t < 2; t++)
		if (pthread_create(&thread[t], NULL, litmus_run_role, &role[t]))
			abort();
	pthread_mutex_lock(&litmus.lock);
	litmus.running = (int)litmus_below(2);
	pthread_cond_broadcast(&litmus.turn);
	pthread_mutex_unlock(&litmus.lock);
	for (int t = 0; t < 2; t++)
		pthread_join(thread[t], NULL);
	litmus.bytes = 0; /* the next run's memory is prepared without steps */
	return litmus.wrong;
}

/* --- cases --- */

#define LITMUS_SEEDS 1000

/** struct scene - two threads, the memory that they share, and what prepares it */
struct scene {
	void *memory;
	size_t bytes;
	void (*begin)(void);
	void (*a)(void *arg);
	void (*b)(void *arg);
};

/* Return: what the first seed that finds something shows; NULL */
static const char *play(const struct scene *s, enum litmus_without without)
{
	const char *wrong = NULL;

	for (unsigned seed = 1; seed <= LITMUS_SEEDS && !wrong; seed++) {
		s->begin();
		wrong = litmus_run(seed, without, s->memory, s->bytes, s->a, s->b, NULL);
	}
	return wrong;
}

/** needs() - without this order, some seed finds something */
static void needs(const struct scene *s, enum litmus_without without)
{
	assert_non_null(play(s, without));
}

/** holds() - no seed finds anything */
static void holds(const struct scene *s)
{
	const char *wrong = play(s, LITMUS_ALL);

	if (wrong)
		fail_msg("%s", wrong);
}

/* --- in the place of what lock-free code calls --- */

#define LITMUS_TYPE(p) __typeof__((void)0, *(p))
#undef atomic_load_explicit
#define atomic_load_explicit(p, order) ((LITMUS_TYPE(p))litmus_load(p, sizeof(*(p)), order))
#undef atomic_store_explicit
#define atomic_store_explicit(p, v, order) litmus_store(p, sizeof(*(p)), (uint64_t)(v), order)
#undef atomic_exchange_explicit
#define atomic_exchange_explicit(p, v, order)                                                      \
	((LITMUS_TYPE(p))litmus_change(p, sizeof(*(p)), (uint64_t)(v), false, order))
#undef atomic_fetch_add_explicit
#define atomic_fetch_add_explicit(p, v, order)                                                     \
	({ (LITMUS_TYPE(p))litmus_change(p, sizeof(*(p)), (uint64_t)(v), true, order); })
#undef atomic_fetch_sub_explicit
#define atomic_fetch_sub_explicit(p, v, order) atomic_fetch_add_explicit(p, -(uint64_t)(v), order)
#undef atomic_compare_exchange_strong
#define atomic_compare_exchange_strong(p, expected, v)                                             \
	litmus_compare_change(p, sizeof(*(p)), expected, (uint64_t)(v))
#undef atomic_load
#define atomic_load(p) atomic_load_explicit(p, memory_order_seq_cst)
#undef atomic_store
#define atomic_store(p, v) atomic_store_explicit(p, v, memory_order_seq_cst)
#undef atomic_exchange
#define atomic_exchange(p, v) atomic_exchange_explicit(p, v, memory_order_seq_cst)
#undef atomic_fetch_add
#define atomic_fetch_add(p, v) atomic_fetch_add_explicit(p, v, memory_order_seq_cst)
#undef atomic_fetch_sub
#define atomic_fetch_sub(p, v) atomic_fetch_sub_explicit(p, v, memory_order_seq_cst)
#undef atomic_thread_fence
#define atomic_thread_fence(order) litmus_fence(order)
#undef atomic_signal_fence /* of the compiler alone, which moves none of these calls */
#define atomic_signal_fence(order) ((void)0)
#define memcpy(to, from, bytes) litmus_copy(to, from, bytes)
#define sched_yield() litmus_yield()
#define syscall litmus_syscall
#define cpu_relax() litmus_yield()
#define eng_futex_wait(word, value, most_ns) ((void)(word), litmus_yield()) /* returns early */
#define eng_futex_wake(word) ((void)0)

#endif
