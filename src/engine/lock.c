/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The lock's byte, and how its bias is given and revoked (lock.h). */
#include "engine/lock.h"

#include <sched.h>

#include "base/relax.h"

#define SPINS 200
#define BIAS_AFTER 256 /* turns: a barrier costs as much as hundreds of exchanges */

static void wait_a_little(unsigned *spins)
{
	if ((*spins)++ < SPINS)
		cpu_relax();
	else
		sched_yield();
}

/* The byte is ours: the bias's owner enters no more. Return: true when it is out */
static bool revoke_bias(struct eng_lock *l)
{
	if (likely(!atomic_load_explicit(&l->bias_owner, memory_order_relaxed)))
		return !atomic_load_explicit(&l->inside, memory_order_acquire);
	atomic_store_explicit(&l->bias_owner, 0, memory_order_relaxed);
	l->barrier(l->ctx);
	return !atomic_load_explicit(&l->inside, memory_order_acquire);
}

/* the lock is ours */
static void note_turn(struct eng_lock *l)
{
	uintptr_t self = eng_lock_self();

	if (!l->barrier)
		return;
	l->by_bias = false;
	l->running = l->last == self ? l->running + 1 : 1;
	l->last = self;
	if (likely(l->running < BIAS_AFTER))
		return;
	l->running = 0;
	if (!l->candidate)
		l->candidate = self;
	if (l->candidate == self)
		atomic_store_explicit(&l->bias_owner, self, memory_order_relaxed);
}

static bool try_byte(struct eng_lock *l)
{
	return !atomic_load_explicit(&l->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->taken, true, memory_order_acquire);
}

bool eng_lock_try_byte(struct eng_lock *l)
{
	if (!try_byte(l))
		return false;
	if (unlikely(!revoke_bias(l))) {
		atomic_store_explicit(&l->taken, false, memory_order_release);
		return false;
	}
	note_turn(l);
	return true;
}

void eng_lock_byte(struct eng_lock *l)
{
	unsigned spins = 0;

	if (unlikely(atomic_exchange_explicit(&l->taken, true, memory_order_acquire)))
		while (!try_byte(l))
			wait_a_little(&spins);
	for (bool out = revoke_bias(l); !out;) {
		wait_a_little(&spins);
		out = !atomic_load_explicit(&l->inside, memory_order_acquire);
	}
	note_turn(l);
}
