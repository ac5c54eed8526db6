/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's lock: a byte, biased towards one thread, which may enter without an atomic
 * exchange. The lock is held for a microsecond and nearly always taken by the one thread
 * that posts and polls. An exchange waits until all stores before it are seen by
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
 * At least one of them sees the other. Only one thread can own the bias in a lock's life,
 * so that no two threads ever write `inside`. It owns the bias again when it has taken
 * the byte as often running as at first.
 *
 * Memory order, on processors that reorder loads and stores too: membarrier(2) puts a full
 * fence at some point P of the owner's program. If `inside = true` stands before P, the
 * other thread sees it after its call and waits for `inside = false`, a release that its
 * acquiring load pairs with. If it stands behind P, so does the owner's look at
 * `bias_owner`, which then finds 0, however the two were reordered. What others did under
 * the lock reaches the owner by the byte: only the owner itself ever stores its number in
 * `bias_owner`, while it has the byte, which it took with acquire from the one that gave it
 * back with release. The signal fence keeps the compiler from exchanging store and look.
 */
#ifndef SOFTIB_ENGINE_LOCK_H
#define SOFTIB_ENGINE_LOCK_H

#include <stdatomic.h>

#include "base/types.h"

struct eng_lock {
	_Atomic bool taken;
	_Atomic bool inside;	     /* the bias's owner is; it alone writes this */
	_Atomic uintptr_t bias_owner; /* a thread, by eng_lock_self(); 0: none now */
	/* --- protected by the lock --- */
	bool by_bias; /* the holder entered as the bias's owner */
	uintptr_t candidate; /* the only thread that can own the bias; 0: not chosen */
	uintptr_t last;	/* the thread that took the byte last */
	unsigned running; /* so many times */
	/* --- immutable --- */
	void (*barrier)(void *ctx); /* eng_config.barrier */
	void *ctx;
};

/* a number of this thread that no other living one has */
static inline uintptr_t eng_lock_self(void)
{
	return (uintptr_t)__builtin_thread_pointer();
}

static inline bool eng_lock_enter(struct eng_lock *l)
{
	uintptr_t self = eng_lock_self();

	if (atomic_load_explicit(&l->bias_owner, memory_order_relaxed) != self)
		return false;
	atomic_store_explicit(&l->inside, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* and the other's barrier */
	if (likely(atomic_load_explicit(&l->bias_owner, memory_order_acquire) == self)) {
		l->by_bias = true;
		return true;
	}
	atomic_store_explicit(&l->inside, false, memory_order_release);
	return false;
}

/** eng_lock_leave() - give back what eng_lock_enter() took, when nothing was put off
 *  meanwhile (eng_unlock()) */
static inline void eng_lock_leave(struct eng_lock *l)
{
	atomic_store_explicit(&l->inside, false, memory_order_release);
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
	return atomic_load_explicit(&l->taken, memory_order_relaxed) ||
	       atomic_load_explicit(&l->inside, memory_order_relaxed);
}

static inline void eng_lock_give(struct eng_lock *l)
{
	atomic_store_explicit(l->by_bias ? &l->inside : &l->taken, false, memory_order_release);
}

#endif
