/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The memory of a connection of SDP, a memfd that libsdp maps at both of its ends: a page of
 * control words, and a ring for the bytes of each direction. While softibd grants a *lease* on
 * a direction, the sender's library copies what the program writes into the ring, and the
 * receiver's copies it out. Without a lease, and whatever no library sees, the bytes pass
 * through the sockets, softibd and the fabric (abi/sdp.h).
 *
 * Order. The stream has its bytes in two places, and these rules tell which come first:
 *
 *  - softibd grants a lease only when the receiver's socket has got all bytes before it, and puts
 *    none there as long as it lasts. So the ring's bytes come behind those of the receiver's socket.
 *  - A writer uses the ring only if the sender's socket is empty; it has the lock `writer` while
 *    it looks, copies and publishes. softibd ends the lease before it reads from that socket,
 *    waits until neither lock is taken, and then sends what the ring has, before the socket's.
 *
 * A writer checks that its socket is empty before it checks the lease. If softibd has read its last
 * byte since the first check, the second one finds the lease ended.
 *
 *  - While a reader waits in the kernel, as `readers_in_kernel` tells, a writer uses its socket.
 *
 * Locks. `writer` and `reader` exclude the processes and threads of one end, and tell softibd
 * that the ring is in use: it advances `lease` before it looks at them, and they are taken before
 * `lease` is looked at, all sequentially consistent. softibd never waits: it looks again later.
 *
 * Trust. All words are advice of processes that do not trust each other. Each of them checks that
 * what the ring holds is not more than its size, keeps all copies inside it, and waits for a
 * word to change for a limited time only. A program that writes nonsense here harms its own
 * connection: its peer gets wrong bytes, or softibd aborts it.
 *
 * Sleeping. Who waits sets a flag, looks once more, and sleeps on the flag as a futex. Who makes a
 * change looks at the flag behind a full fence, clears it and wakes all. Nobody sleeps for longer
 * than ABI_SDP_NAP_MS, then looks at its socket, which tells that softibd is dead.
 */
#ifndef SOFTIB_ABI_SDP_RING_H
#define SOFTIB_ABI_SDP_RING_H

#include <errno.h>
#include <linux/futex.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ABI_SDP_RING_BYTES ((size_t)512 << 10)
#define ABI_SDP_NAP_MS	   100

/** struct abi_sdp_half - one direction. Counts of bytes begin with the connection */
struct abi_sdp_half {
	/* --- written by softibd --- */
	alignas(64) _Atomic uint32_t lease; /* odd: there is one; each change advances it */
	_Atomic uint32_t hold;		    /* one is about to begin: writers wait for it; futex */
	_Atomic uint32_t error;		    /* the sender's programs are to be told, once: an errno */
	/* --- written by the sender's processes --- */
	alignas(64) _Atomic uint64_t tail;
	_Atomic uint32_t writer;	  /* lock: ID of the thread that has it; 0: nobody */
	_Atomic uint32_t writes_much;	  /* a lease would be of use */
	_Atomic uint32_t writer_sleeps;	  /* until there is room, or the lease ends; futex */
	_Atomic uint32_t resets;	  /* close() is a reset: SO_LINGER says so */
	_Atomic uint32_t keep[3];	  /* TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT; 0: not set. For libraries alone */
	/* --- written by the receiver's processes; without a lease, by softibd --- */
	alignas(64) _Atomic uint64_t head;
	_Atomic uint32_t reader;	  /* lock, as `writer` */
	_Atomic uint32_t reads_much;	  /* a lease would be of use */
	_Atomic uint32_t reader_sleeps;	  /* until there is data in the ring or socket; futex */
	_Atomic uint32_t socket_is_empty; /* the lease in which a reader has seen that */
	_Atomic uint32_t readers;	  /* threads that wait, each in a call */
	_Atomic uint32_t readers_in_kernel; /* threads that only the socket wakes */
};

/** struct abi_sdp_memory - all of the memfd. half[0]: from the end that has called connect() */
struct abi_sdp_memory {
	struct abi_sdp_half half[2];
	alignas(4096) uint8_t ring[2][ABI_SDP_RING_BYTES];
};

static inline bool abi_sdp_is_lease(uint32_t lease)
{
	return lease & 1;
}

/* --- sleeping --- */

/** abi_sdp_will_sleep() - set *@flag. The caller looks once more, and sleeps if there is nothing. Either this look finds
 *  what the other side has changed, or that side finds the flag: both have a full fence between (abi_sdp_wake()) */
static inline void abi_sdp_will_sleep(_Atomic uint32_t *flag)
{
	atomic_store_explicit(flag, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

/** abi_sdp_sleep() - while *@flag is @value, for at most @ms. Return: false: a signal */
static inline bool abi_sdp_sleep(_Atomic uint32_t *flag, uint32_t value, unsigned int ms)
{
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	return !syscall(SYS_futex, flag, FUTEX_WAIT, value, &time, NULL, 0) || errno != EINTR;
}

/** abi_sdp_wake() - those that sleep on *@flag, if any has set it. The change that they wait for
 *  was made before. Never waits */
static inline void abi_sdp_wake(_Atomic uint32_t *flag)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(flag, memory_order_relaxed) && atomic_exchange(flag, 0))
		syscall(SYS_futex, flag, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* --- locks --- */

/** abi_sdp_try_lock() - Return: has this thread, whose ID is @self, the lock now? */
static inline bool abi_sdp_try_lock(_Atomic uint32_t *lock, uint32_t self)
{
	uint32_t nobody = 0;

	return atomic_compare_exchange_strong(lock, &nobody, self);
}

static inline void abi_sdp_unlock(_Atomic uint32_t *lock)
{
	atomic_store(lock, 0);
}

/* --- bytes --- */

/** abi_sdp_used() - bytes in the ring; more than its size: somebody has written nonsense */
static inline uint64_t abi_sdp_used(const struct abi_sdp_half *half)
{
	const uint64_t tail = atomic_load_explicit(&half->tail, memory_order_acquire);

	return tail - atomic_load_explicit(&half->head, memory_order_acquire);
}

/** abi_sdp_piece() - Return: how many of @bytes from count @at on are contiguous in the ring */
static inline size_t abi_sdp_piece(uint64_t at, size_t bytes)
{
	const size_t left = ABI_SDP_RING_BYTES - at % ABI_SDP_RING_BYTES;

	return bytes < left ? bytes : left;
}

/** abi_sdp_put() - append @bytes, for which there is room, at count @tail, and publish them */
static inline void abi_sdp_put(struct abi_sdp_half *half, uint8_t *ring, uint64_t tail,
			       const void *from, size_t bytes)
{
	const size_t n = abi_sdp_piece(tail, bytes);

	memcpy(ring + tail % ABI_SDP_RING_BYTES, from, n);
	memcpy(ring, (const uint8_t *)from + n, bytes - n);
	atomic_store_explicit(&half->tail, tail + bytes, memory_order_release);
}

/** abi_sdp_get() - copy @bytes, which were published, from count @head on. They stay */
static inline void abi_sdp_get(const uint8_t *ring, uint64_t head, void *to, size_t bytes)
{
	const size_t n = abi_sdp_piece(head, bytes);

	memcpy(to, ring + head % ABI_SDP_RING_BYTES, n);
	memcpy((uint8_t *)to + n, ring, bytes - n);
}

#endif
