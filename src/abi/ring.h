/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A ring of packets in shared memory: one producer, one consumer, no lock.
 * Both sides are separate processes that do not trust each other: the
 * consumer checks each length that it reads, and the producer checks each head
 * against its own tail. A record is a 32-bit length and the bytes, rounded up to 8;
 * a length of ABI_RING_WRAP sends the consumer back to the ring's start.
 *
 * Sleeping: a consumer that is about to sleep sets `asleep`, checks the
 * ring once more, and sleeps on its eventfd. A producer that has published
 * reads `asleep` and writes the eventfd only when it is set.
 *
 * Memory order, on any processor: `tail` is stored with release after the records before
 * it, and loaded with acquire before they are read. `head` is stored with release after the
 * consumer's reads of the records that it releases, and loaded with acquire before the
 * producer overwrites them. The sleep is the store-buffering pattern, which acquire and
 * release do not order: each side has a full fence between its store and its load
 * (tests/unit/engine/test_litmus.c).
 */
#ifndef SOFTIB_ABI_RING_H
#define SOFTIB_ABI_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ABI_RING_WRAP 0xffffffffu

struct abi_ring {
	/* --- written by the producer --- */
	alignas(64) _Atomic uint64_t tail; /* bytes ever published */
	/* --- written by the consumer --- */
	alignas(64) _Atomic uint64_t head; /* bytes ever consumed */
	_Atomic uint32_t asleep;
	/* --- immutable --- */
	alignas(64) uint64_t size; /* power of two */
	alignas(64) uint8_t data[];
};

/** struct abi_ring_tx, abi_ring_rx - one side's private view of a ring */
struct abi_ring_tx {
	struct abi_ring *ring;
	uint64_t size, tail, published, head_seen;
};
struct abi_ring_rx {
	struct abi_ring *ring;
	uint64_t size, head;
	uint64_t tail_seen, released;
	uint32_t len; /* of the record that abi_ring_peek() returned */
};

#define ABI_LINK_RING_BYTES (1u << 20)

static inline size_t abi_ring_bytes(uint64_t size)
{
	return sizeof(struct abi_ring) + size;
}

static inline void abi_ring_init(struct abi_ring *r, uint64_t size)
{
	atomic_init(&r->tail, 0);
	atomic_init(&r->head, 0);
	atomic_init(&r->asleep, 0);
	r->size = size;
}

static inline uint64_t abi_ring_record(uint64_t len)
{
	return (len + 4 + 7) & ~7ull;
}

/**
 * abi_ring_reserve() - room for @len contiguous bytes
 * Return: where to write, or NULL when the consumer is too far behind
 */
static inline void *abi_ring_reserve(struct abi_ring_tx *tx, size_t len)
{
	uint64_t need = abi_ring_record(len);
	uint64_t pos = tx->tail & (tx->size - 1);
	uint64_t skip = pos + need > tx->size ? tx->size - pos : 0;

	if (tx->tail + skip + need - tx->head_seen > tx->size) {
		uint64_t head = atomic_load_explicit(&tx->ring->head, memory_order_acquire);
		if (head < tx->head_seen || head > tx->tail) /* a peer that lies */
			return NULL;
		tx->head_seen = head;
		if (tx->tail + skip + need - head > tx->size)
			return NULL;
	}
	if (skip) {
		uint32_t wrap = ABI_RING_WRAP;
		memcpy(tx->ring->data + pos, &wrap, 4);
		tx->tail += skip;
		pos = 0;
	}
	return tx->ring->data + pos + 4;
}

/** abi_ring_commit() - append the @len bytes that were reserved and written */
static inline void abi_ring_commit(struct abi_ring_tx *tx, size_t len)
{
	uint32_t n = (uint32_t)len;
	memcpy(tx->ring->data + (tx->tail & (tx->size - 1)), &n, 4);
	tx->tail += abi_ring_record(len);
}

/** abi_ring_publish() - let the consumer see all that was committed.
 *  Return: true: the consumer sleeps, and the caller must ring its doorbell */
static inline bool abi_ring_publish(struct abi_ring_tx *tx)
{
	if (tx->published == tx->tail)
		return false;
	tx->published = tx->tail;
	atomic_store_explicit(&tx->ring->tail, tx->tail, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&tx->ring->asleep, memory_order_relaxed))
		return false;
	return atomic_exchange(&tx->ring->asleep, 0) != 0;
}

/**
 * abi_ring_peek() - the next record, not yet consumed
 * Return: its bytes, and *@len; NULL when empty; NULL and *@len =
 * ABI_RING_WRAP when the producer wrote an invalid length (close the link)
 */
static inline const void *abi_ring_peek(struct abi_ring_rx *rx, size_t *len)
{
	uint64_t pos, avail;
	uint32_t n;

	*len = 0;
	for (int turn = 0; turn < 2; turn++) {
		if (rx->head == rx->tail_seen) {
			rx->tail_seen = atomic_load_explicit(&rx->ring->tail, memory_order_acquire);
			if (rx->head == rx->tail_seen)
				return NULL;
		}
		avail = rx->tail_seen - rx->head;
		pos = rx->head & (rx->size - 1);
		/* read once: the peer may write it meanwhile */
		n = *(const volatile uint32_t *)(rx->ring->data + pos);
		if (n != ABI_RING_WRAP) {
			if (avail > rx->size || abi_ring_record(n) > avail ||
			    pos + abi_ring_record(n) > rx->size)
				break;
			rx->len = n;
			*len = n;
			return rx->ring->data + pos + 4;
		}
		if (rx->size - pos > avail)
			break;
		rx->head += rx->size - pos;
	}
	*len = ABI_RING_WRAP;
	return NULL;
}

/** abi_ring_skip() - consume the record without releasing its room */
static inline void abi_ring_skip(struct abi_ring_rx *rx)
{
	rx->head += abi_ring_record(rx->len);
}

/** abi_ring_consume() - consume the record that abi_ring_peek() returned. Its room is
 *  released by abi_ring_release(), or when a quarter of the ring is consumed */
static inline void abi_ring_consume(struct abi_ring_rx *rx)
{
	abi_ring_skip(rx);
	if (rx->head - rx->released > rx->size / 4) {
		rx->released = rx->head;
		atomic_store_explicit(&rx->ring->head, rx->head, memory_order_release);
	}
}

static inline void abi_ring_release(struct abi_ring_rx *rx)
{
	if (rx->head == rx->released)
		return;
	rx->released = rx->head;
	atomic_store_explicit(&rx->ring->head, rx->head, memory_order_release);
}

/** abi_ring_drained() - has the consumer released all that was published? */
static inline bool abi_ring_drained(const struct abi_ring_tx *tx)
{
	return atomic_load_explicit(&tx->ring->head, memory_order_acquire) == tx->published;
}

/** abi_ring_sleep() - announce that the consumer sleeps. Return: false: a record has
 *  arrived meanwhile, and the consumer must not sleep */
static inline bool abi_ring_sleep(struct abi_ring_rx *rx)
{
	abi_ring_release(rx);
	atomic_store_explicit(&rx->ring->asleep, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&rx->ring->tail, memory_order_relaxed) == rx->head)
		return true;
	atomic_store_explicit(&rx->ring->asleep, 0, memory_order_relaxed);
	return false;
}

static inline void abi_ring_wake(struct abi_ring_rx *rx)
{
	atomic_store_explicit(&rx->ring->asleep, 0, memory_order_relaxed);
}

#endif
