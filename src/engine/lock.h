/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's lock: a byte, biased towards the thread that uses it, which may enter without
 * an atomic exchange. The lock is held for a microsecond and nearly always taken by the one
 * thread that posts and polls. An exchange waits until all stores before it are seen by
 * everybody, by a peer's core for example, a hundred nanoseconds away. So a thread that
 * has taken the byte many times running becomes the owner of the lock's bias. From then
 * on it says that it is inside, looks whether it still owns the bias, and holds the lock:
 * these are plain loads and stores. Any other thread takes the byte, revokes the bias,
 * has a barrier on every thread of the process (membarrier(2): the one in need pays for
 * it), and waits until the owner is out.
 *
 *   owner     inside = true;    then look: bias_owner == me?
 *   another   bias_owner = 0;   barrier;   then look: inside?
 *
 * At least one of them sees the other. A thread that was revoked between its first look and
 * `inside = true` may still store true and, after its second look, false, at any time later.
 * So each thread that ever owns the bias has an `inside` of its own, found by its slot, which
 * is stored in the low bits of bias_owner. The slots of a lock are given away once; a thread
 * that gets none takes the byte each time.
 *
 * Memory order, on processors that reorder loads and stores too: membarrier(2) puts a full
 * fence at some point P of the owner's program. If `inside = true` stands before P, the
 * other thread sees it after its call and waits for `inside = false`, a release that its
 * acquiring load pairs with. If it stands behind P, so does the owner's look at
 * `bias_owner`, which then finds 0, however the two were reordered. What others did under
 * the lock reaches the owner by the byte: only the owner itself ever stores its number in
 * `bias_owner`, while it has the byte, which it took with acquire from the one that gave it
 * back with release. The signal fence keeps the compiler from exchanging store and look.
 *
 * Threads that wait. One that finds the byte taken looks for some microseconds, in which a
 * holder that runs gives it back. After that it does not spin, because the core may be what
 * the holder waits for: it sleeps until it gets the seat of the heir, which one thread at a
 * time has. What the heir does depends on why it waits:
 *
 *   - A thread takes turn after turn, as one that posts a stream does. Each change of the
 *     thread moves the engine's cache lines to another core, which costs as much as ten
 *     turns and more, so that threads that change at each turn get less done than one. The
 *     heir lets the other go on for some hundred microseconds; it sleeps, and looks now and
 *     then whether the lock is still in use.
 *   - Then, or at once if the holder does not give the byte back (it was preempted, or copies
 *     much), the heir insists: whoever gives the byte back leaves it to the heir and wakes it.
 *
 * A holder that gives the byte back just when the heir begins to insist may miss it; so the
 * heir's sleeps end by time as well, and no fence is needed.
 */
#ifndef SOFTIB_ENGINE_LOCK_H
#define SOFTIB_ENGINE_LOCK_H

#include <stdatomic.h>

#include "base/types.h"

#define ENG_LOCK_OWNERS 16u /* threads that may own the bias of a lock in its life */

/* what the heir wants of the thread that has the byte */
enum { ENG_HEIR_NONE, ENG_HEIR_WAITS, ENG_HEIR_INSISTS, ENG_HEIR_OWNS };

struct eng_lock {
	_Atomic bool taken;
	_Atomic uint8_t slot;	      /* of the last owner of the bias; written under the byte */
	_Atomic uint32_t heir;	      /* ENG_HEIR_*; a futex */
	_Atomic uintptr_t bias_owner; /* a thread, by eng_lock_self(), plus its slot; 0: none now */
	_Atomic bool inside[ENG_LOCK_OWNERS]; /* the owner with this slot is; it alone writes this */
	_Atomic uint32_t seat;	      /* the heir's: a futex that other threads sleep on */
	_Atomic unsigned running;     /* turns of the thread @last; written under the lock */
	/* --- protected by the lock --- */
	/* the slot with which the holder entered as the bias's owner; ENG_LOCK_OWNERS: it took the
	 * byte */
	uint8_t by_slot;
	uintptr_t last;	 /* the thread that took the byte last */
	uintptr_t owner[ENG_LOCK_OWNERS]; /* the thread that has this slot for ever; 0: none */
	/* --- immutable --- */
	void (*barrier)(void *ctx); /* eng_config.barrier */
	void *ctx;
};

/* a number of this thread that no other living one has, and in whose low bits a slot fits */
static inline uintptr_t eng_lock_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static inline bool eng_lock_enter(struct eng_lock *l)
{
	uintptr_t owner = atomic_load_explicit(&l->bias_owner, memory_order_relaxed);
	uintptr_t slot = owner - eng_lock_self();

	if (slot >= ENG_LOCK_OWNERS)
		return false;
	atomic_store_explicit(&l->inside[slot], true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* and the other's barrier */
	if (likely(atomic_load_explicit(&l->bias_owner, memory_order_acquire) == owner)) {
		l->by_slot = (uint8_t)slot;
		return true;
	}
	atomic_store_explicit(&l->inside[slot], false, memory_order_release);
	return false;
}

/** eng_lock_by_bias() - did the holder enter as the owner of the bias? */
static inline bool eng_lock_by_bias(const struct eng_lock *l)
{
	return l->by_slot < ENG_LOCK_OWNERS;
}

/** eng_lock_leave() - give back what eng_lock_enter() took, when nothing was put off
 *  meanwhile (eng_unlock()) */
static inline void eng_lock_leave(struct eng_lock *l)
{
	atomic_store_explicit(&l->inside[l->by_slot], false, memory_order_release);
}

/** eng_lock_owner_inside() - does the thread that owned the bias last hold the lock? */
static inline bool eng_lock_owner_inside(const struct eng_lock *l)
{
	return atomic_load_explicit(
		&l->inside[atomic_load_explicit(&l->slot, memory_order_relaxed)],
		memory_order_acquire);
}

/** eng_lock_byte() - take the lock without owning its bias; waits for it */
void eng_lock_byte(struct eng_lock *l);
/** eng_lock_try_byte() - the same; false: another has it */
bool eng_lock_try_byte(struct eng_lock *l);

static inline void eng_lock_take(struct eng_lock *l)
{
	if (unlikely(!eng_lock_enter(l)))
		eng_lock_byte(l);
}

/** eng_lock_try() - Context: not from a signal handler that may run inside */
static inline bool eng_lock_try(struct eng_lock *l)
{
	return likely(eng_lock_enter(l)) || eng_lock_try_byte(l);
}

/** eng_lock_is_held() - a hint, but sure when this thread is in: a signal handler may
 *  run in the middle of it, and the bias's owner enters wherever it is */
static inline bool eng_lock_is_held(const struct eng_lock *l)
{
	return atomic_load_explicit(&l->taken, memory_order_relaxed) || eng_lock_owner_inside(l);
}

/** eng_lock_give_to_heir() - give the byte back while there is an heir, which gets it if it insists */
void eng_lock_give_to_heir(struct eng_lock *l);

static inline void eng_lock_give_byte(struct eng_lock *l)
{
	if (unlikely(atomic_load_explicit(&l->heir, memory_order_relaxed) == ENG_HEIR_INSISTS))
		eng_lock_give_to_heir(l);
	else
		atomic_store_explicit(&l->taken, false, memory_order_release);
}

static inline void eng_lock_give(struct eng_lock *l)
{
	if (likely(eng_lock_by_bias(l)))
		eng_lock_leave(l);
	else
		eng_lock_give_byte(l);
}

#endif
