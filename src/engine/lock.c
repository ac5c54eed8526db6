/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The lock's byte: how threads wait for it, and how its bias is given and revoked (lock.h). */
#include "engine/lock.h"

#include "base/relax.h"
#include "engine/futex.h"

#ifndef SPINS /* a test has fewer */
#define SPINS	   200	   /* pauses before a thread sleeps: some microseconds */
#endif
#define STEP_MAX   4	   /* pauses between two reads of the byte */
#define STREAK	   3	   /* consecutive turns of one thread, during a spin, that count as a stream */
#define BIAS_AFTER 256	   /* turns: a barrier costs as much as hundreds of exchanges */
#define LOOK_NS	   20000L  /* after which a waiting thread that nobody wakes looks again */
#define USE_LOOKS  16	   /* after which a lock that was never held counts as not in use */
#define TENURE_LOOKS 4	   /* how long the heir leaves the lock to a thread that uses it */

static bool try_byte(struct eng_lock *l)
{
	return !atomic_load_explicit(&l->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->taken, true, memory_order_acquire);
}

/* --- waiting in line: one heir, who has the seat, and others who sleep until they get it --- */

static unsigned running(const struct eng_lock *l)
{
	return atomic_load_explicit(&l->running, memory_order_relaxed);
}

/* Try to take the byte for some microseconds. Return: true: it is taken; false: it was never free, and
 * *@streaming: one thread has the lock again and again, with hardly a pause in which to take it */
static bool spin(struct eng_lock *l, bool *streaming)
{
	unsigned step = 1, first = running(l), now;

	*streaming = false;
	for (unsigned spins = 0; spins < SPINS && !*streaming; spins += step) {
		if (try_byte(l))
			return true;
		for (unsigned i = 0; i < step; i++)
			cpu_relax();
		step = MIN(step * 2, (unsigned)STEP_MAX);
		now = running(l);
		first = MIN(first, now); /* another thread's turn begins at 1 */
		*streaming = now - first >= STREAK;
	}
	return false;
}

/* the seat: a lock for long waits, whose waiters sleep */
enum { SEAT_FREE, SEAT_TAKEN, SEAT_AWAITED };

static void take_seat(struct eng_lock *l)
{
	uint32_t taken = SEAT_TAKEN;

	while (atomic_exchange(&l->seat, taken) != SEAT_FREE) {
		/* others may sleep, too: from now on it is given back with a call to wake them */
		taken = SEAT_AWAITED;
		if (atomic_exchange(&l->seat, taken) == SEAT_FREE)
			return;
		eng_futex_wait(&l->seat, taken, 0);
	}
}

static void give_seat(struct eng_lock *l)
{
	if (atomic_exchange(&l->seat, SEAT_FREE) == SEAT_AWAITED)
		eng_futex_wake(&l->seat);
}

static uint32_t heir(const struct eng_lock *l)
{
	return atomic_load_explicit(&l->heir, memory_order_acquire);
}

/* Wait until the holder of the byte hands it over, or until it is free. A holder that gives the byte back
 * at this moment may not see ENG_HEIR_INSISTS and wakes nobody, so each sleep ends after LOOK_NS. */
static void insist(struct eng_lock *l)
{
	unsigned spins = 0;

	atomic_store_explicit(&l->heir, ENG_HEIR_INSISTS, memory_order_relaxed);
	while (heir(l) != ENG_HEIR_OWNS && !try_byte(l)) {
		if (spins++ < SPINS)
			cpu_relax();
		else
			eng_futex_wait(&l->heir, ENG_HEIR_INSISTS, LOOK_NS);
	}
}

/* Is the lock in use? A thread that streams holds it for most of the time. */
static bool is_used(const struct eng_lock *l)
{
	for (unsigned looks = 0; looks < USE_LOOKS; looks++) {
		if (eng_lock_is_held(l))
			return true;
		cpu_relax();
	}
	return false;
}

/* Leave the lock to the thread that streams, until that ends or TENURE_LOOKS sleeps are over. That thread
 * wakes nobody, so it is not slowed down. */
static void let_stream(struct eng_lock *l)
{
	atomic_store_explicit(&l->heir, ENG_HEIR_WAITS, memory_order_relaxed);
	for (unsigned looks = 0; looks < TENURE_LOOKS && is_used(l); looks++)
		eng_futex_wait(&l->heir, ENG_HEIR_WAITS, LOOK_NS);
}

static void wait_in_line(struct eng_lock *l)
{
	bool streaming;

	if (spin(l, &streaming))
		return;
	take_seat(l);
	if (streaming)
		let_stream(l);
	insist(l);
	atomic_store_explicit(&l->heir, ENG_HEIR_NONE, memory_order_relaxed);
	give_seat(l);
}

void eng_lock_give_to_heir(struct eng_lock *l)
{
	atomic_store_explicit(&l->heir, ENG_HEIR_OWNS, memory_order_release);
	eng_futex_wake(&l->heir);
}

/* --- the bias --- */

/* Revoke the bias, so that its owner has to take the byte from now on. Context: the caller has the byte.
 * Return: true: the owner is not inside */
static bool revoke_bias(struct eng_lock *l)
{
	if (unlikely(atomic_load_explicit(&l->bias_owner, memory_order_relaxed))) {
		atomic_store_explicit(&l->bias_owner, 0, memory_order_relaxed);
		l->barrier(l->ctx);
	}
	return !eng_lock_owner_inside(l);
}

/* Wait until the former owner of the bias is not inside any more. It wakes nobody when it leaves. Context:
 * the caller has the byte */
static void await_owner(struct eng_lock *l)
{
	_Atomic uint32_t nobody = 0;
	unsigned spins = 0;

	while (eng_lock_owner_inside(l)) {
		if (spins++ < SPINS)
			cpu_relax();
		else
			eng_futex_wait(&nobody, 0, LOOK_NS);
	}
}

/* The byte is ours, and the bias nobody's: make the thread @self its owner, if it has an `inside` of
 * its own, or there is one left. */
static void give_bias(struct eng_lock *l, uintptr_t self)
{
	for (unsigned slot = 0; slot < ENG_LOCK_OWNERS; slot++) {
		if (l->owner[slot] && l->owner[slot] != self)
			continue;
		l->owner[slot] = self;
		atomic_store_explicit(&l->slot, (uint8_t)slot, memory_order_relaxed);
		atomic_store_explicit(&l->bias_owner, self + slot, memory_order_relaxed);
		return;
	}
}

/* the lock is ours */
static void note_turn(struct eng_lock *l)
{
	uintptr_t self = eng_lock_self();
	unsigned turns = l->last == self ? running(l) + 1 : 1;

	l->by_slot = ENG_LOCK_OWNERS;
	l->last = self;
	atomic_store_explicit(&l->running, turns, memory_order_relaxed);
	if (likely(turns < BIAS_AFTER) || !l->barrier)
		return;
	atomic_store_explicit(&l->running, 0, memory_order_relaxed);
	give_bias(l, self);
}

bool eng_lock_try_byte(struct eng_lock *l)
{
	if (!try_byte(l))
		return false;
	if (unlikely(!revoke_bias(l))) {
		eng_lock_give_byte(l);
		return false;
	}
	note_turn(l);
	return true;
}

void eng_lock_byte(struct eng_lock *l)
{
	if (unlikely(!try_byte(l)))
		wait_in_line(l);
	if (unlikely(!revoke_bias(l)))
		await_owner(l);
	note_turn(l);
}
