/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The ring between programs and softibd: order, wrapping, sleep, lies. */
#include "../test.h"

#include <pthread.h>
#include <sched.h>

#include "abi/ring.h"

#define SIZE 1024

struct pair {
	struct abi_ring *ring;
	struct abi_ring_tx tx;
	struct abi_ring_rx rx;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->ring = aligned_alloc(64, (abi_ring_bytes(SIZE) + 63) & ~63ul);
	abi_ring_init(p->ring, SIZE);
	p->tx = (struct abi_ring_tx){.ring = p->ring, .size = SIZE};
	p->rx = (struct abi_ring_rx){.ring = p->ring, .size = SIZE};
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	free(p->ring);
	free(p);
	return 0;
}

static bool put(struct pair *p, unsigned char fill, size_t len)
{
	void *room = abi_ring_reserve(&p->tx, len);

	if (!room)
		return false;
	memset(room, fill, len);
	abi_ring_commit(&p->tx, len);
	return true;
}

static void unpublished_records_are_invisible(void **state)
{
	struct pair *p = *state;
	size_t len;

	assert_true(put(p, 7, 10));
	assert_null(abi_ring_peek(&p->rx, &len));
	assert_int_equal(len, 0);
	assert_false(abi_ring_publish(&p->tx)); /* nobody sleeps */
	assert_non_null(abi_ring_peek(&p->rx, &len));
	assert_int_equal(len, 10);
}

static void order_and_bytes_hold_across_many_wraps(void **state)
{
	struct pair *p = *state;
	unsigned sent = 0, got = 0;

	while (got < 5000) {
		const unsigned char *rec;
		size_t len;

		while (sent < 5000 && put(p, (unsigned char)sent, 1 + sent * 37 % 300))
			sent++;
		abi_ring_publish(&p->tx);
		while ((rec = abi_ring_peek(&p->rx, &len))) {
			assert_int_equal(len, 1 + got * 37 % 300);
			for (size_t i = 0; i < len; i++)
				assert_int_equal(rec[i], (unsigned char)got);
			abi_ring_consume(&p->rx);
			got++;
		}
		assert_int_equal(len, 0);
		abi_ring_release(&p->rx);
	}
}

static void full_ring_refuses_and_recovers(void **state)
{
	struct pair *p = *state;
	unsigned n = 0;
	size_t len;

	while (put(p, 1, 100))
		n++;
	assert_in_range(n, 8, 9);
	abi_ring_publish(&p->tx);
	assert_non_null(abi_ring_peek(&p->rx, &len));
	abi_ring_consume(&p->rx);
	abi_ring_release(&p->rx);
	assert_true(put(p, 1, 100));
}

static void sleeper_is_rung_once(void **state)
{
	struct pair *p = *state;
	size_t len;

	assert_true(abi_ring_sleep(&p->rx));
	put(p, 1, 8);
	assert_true(abi_ring_publish(&p->tx));
	put(p, 2, 8);
	assert_false(abi_ring_publish(&p->tx));
	assert_non_null(abi_ring_peek(&p->rx, &len));
	abi_ring_consume(&p->rx);
	assert_false(abi_ring_sleep(&p->rx)); /* the second one is there */
}

static void lying_producer_is_found_out(void **state)
{
	struct pair *p = *state;
	uint32_t huge = 0x7fffffff;
	size_t len;

	put(p, 1, 8);
	memcpy(p->ring->data, &huge, 4);
	abi_ring_publish(&p->tx);
	assert_null(abi_ring_peek(&p->rx, &len));
	assert_int_equal(len, ABI_RING_WRAP);
}

/* the consumer has read up to @pos of the ring, and the producer claims @bytes more there,
 * which begin with @word. Return: does the consumer find it out? */
static bool finds_out(struct pair *p, uint64_t pos, uint64_t bytes, uint32_t word)
{
	size_t len;

	p->rx.head = p->rx.released = p->rx.tail_seen = pos;
	memcpy(p->ring->data + pos, &word, 4);
	atomic_store(&p->ring->tail, pos + bytes);
	return !abi_ring_peek(&p->rx, &len) && len == ABI_RING_WRAP;
}

static void a_record_lies_in_what_was_written(void **state)
{
	assert_false(finds_out(*state, 0, 16, 12));
	assert_true(finds_out(*state, 0, 16, 13));
	assert_true(finds_out(*state, 0, 8, UINT32_MAX - 1));
}

static void a_record_ends_before_the_ring(void **state)
{
	assert_false(finds_out(*state, SIZE - 16, 64, 12));
	assert_true(finds_out(*state, SIZE - 16, 64, 40));
}

static void no_more_is_written_than_there_is_room_for(void **state)
{
	assert_false(finds_out(*state, 64, SIZE, 8));
	assert_true(finds_out(*state, 64, SIZE + 16, 8));
	assert_true(finds_out(*state, 64, (uint64_t)-32, 8)); /* less than nothing */
}

static void what_is_skipped_was_written(void **state)
{
	assert_true(finds_out(*state, SIZE - 16, 8, ABI_RING_WRAP));
	assert_true(finds_out(*state, 0, 16, ABI_RING_WRAP));
	/* once at most: what follows is a record */
	memset(((struct pair *)*state)->ring->data, 0xff, 4);
	assert_true(finds_out(*state, SIZE - 16, 64, ABI_RING_WRAP));
}

static void a_head_beyond_the_tail_makes_no_room(void **state)
{
	struct pair *p = *state;

	while (put(p, 1, 100))
		;
	atomic_store(&p->ring->head, p->tx.tail + 8);
	assert_false(put(p, 1, 100));
	atomic_store(&p->ring->head, p->tx.tail);
	assert_true(put(p, 1, 100));
}

static void lying_consumer_only_stalls_the_producer(void **state)
{
	struct pair *p = *state;

	while (put(p, 1, 100))
		;
	atomic_store(&p->ring->head, 1ull << 60);
	assert_false(put(p, 1, 100));
}

#define THREADED 200000

static void *producer(void *arg)
{
	struct pair *p = arg;

	for (uint32_t i = 0; i < THREADED;) {
		uint32_t *room = abi_ring_reserve(&p->tx, 4);
		if (room) {
			*room = i++;
			abi_ring_commit(&p->tx, 4);
		} else {
			sched_yield();
		}
		abi_ring_publish(&p->tx);
	}
	return NULL;
}

static void two_threads_lose_nothing(void **state)
{
	struct pair *p = *state;
	pthread_t thread;
	uint32_t expected = 0;

	pthread_create(&thread, NULL, producer, p);
	while (expected < THREADED) {
		size_t len;
		const uint32_t *rec = abi_ring_peek(&p->rx, &len);
		if (!rec) {
			assert_int_equal(len, 0);
			abi_ring_release(&p->rx);
			sched_yield();
			continue;
		}
		assert_int_equal(*rec, expected);
		expected++;
		abi_ring_consume(&p->rx);
	}
	pthread_join(thread, NULL);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(unpublished_records_are_invisible),
		CASE(order_and_bytes_hold_across_many_wraps),
		CASE(full_ring_refuses_and_recovers),
		CASE(sleeper_is_rung_once),
		CASE(lying_producer_is_found_out),
		CASE(a_record_lies_in_what_was_written),
		CASE(a_record_ends_before_the_ring),
		CASE(no_more_is_written_than_there_is_room_for),
		CASE(what_is_skipped_was_written),
		CASE(a_head_beyond_the_tail_makes_no_room),
		CASE(lying_consumer_only_stalls_the_producer),
		CASE(two_threads_lose_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
