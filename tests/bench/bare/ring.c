/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A message ring between two processes: cells of whole lines with the sequence
 * number in the last word, and a consumer that says now and then how far it is.
 * One message at a time back and forth, and a stream in one direction.
 */
#include <emmintrin.h>
#include <string.h>

#include "bare.h"

#define CELLS	256u
#define BATCHES 9

struct ring {
	alignas(LINE) _Atomic uint64_t head;	 /* published, when in batches */
	alignas(LINE) _Atomic uint64_t consumed; /* said every CELLS / 4 */
	alignas(4096) char cells[];
};

/* A message of @size bytes and its number: how many bytes its cell has. */
static size_t cell_bytes(const struct bare_test *t)
{
	return ALIGN_UP(t->size + sizeof(uint64_t), LINE);
}

static size_t ring_bytes(const struct bare_test *t)
{
	return sizeof(struct ring) + CELLS * ALIGN_UP(cell_bytes(t), 4096);
}

/* One end; @seen is what a producer knows of the consumer, or a consumer of
 * the head. */
struct end {
	struct ring *ring;
	char *data;
	size_t size, cell;
	uint64_t n, seen;
};

static struct end end(struct duo *d, int ring)
{
	return (struct end){
		.ring = (void *)((char *)d->mem + (size_t)ring * ring_bytes(d->test)),
		.size = d->test->size,
		.cell = cell_bytes(d->test),
		.data = bare_alloc(8192)};
}

static char *cell(struct end *e)
{
	return e->ring->cells + e->n % CELLS * e->cell;
}

static _Atomic uint64_t *cell_number(struct end *e)
{
	return (void *)(cell(e) + e->cell - sizeof(uint64_t));
}

static void wait_room(struct end *e)
{
	while (unlikely(e->n - e->seen >= CELLS))
		e->seen = atomic_load_explicit(&e->ring->consumed, memory_order_acquire);
}

static inline void put(struct end *e)
{
	wait_room(e);
	memcpy(cell(e), e->data, e->size);
	bare_store(cell_number(e), e->n + 1);
	e->n++;
}

static inline void took(struct end *e)
{
	e->n++;
	if (e->n % (CELLS / 4) == 0)
		bare_store(&e->ring->consumed, e->n);
}

static inline void take(struct end *e)
{
	bare_wait(cell_number(e), e->n + 1);
	memcpy(e->data, cell(e), e->size);
	took(e);
}

/* --- back and forth --- */

#define ROUNDS 4000

static double pingpong_timed(struct duo *d)
{
	struct end out = end(d, 0), in = end(d, 1);
	double ns[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		uint64_t start = measure_now_ns();

		for (int i = 0; i < ROUNDS; i++) {
			put(&out);
			take(&in);
		}
		ns[b] = (double)(measure_now_ns() - start) / (2 * ROUNDS);
	}
	return measure_median(ns, BATCHES);
}

static void pingpong_peer(struct duo *d)
{
	struct end in = end(d, 0), out = end(d, 1);

	for (int i = 0; i < BATCHES * ROUNDS; i++) {
		take(&in);
		put(&out);
	}
}

static double pingpong(const struct bare_test *t)
{
	return duo_run(t, 2 * ring_bytes(t), pingpong_timed, pingpong_peer);
}

/* --- a stream: option 1 publishes each message, option n every n, option 0 each, as a
 * line past the caches --- */

#define STREAM 160000u /* messages of a batch */

/* four pieces, the number last: as a lane's streamed cell (src/abi/cell.h) */
static void put_line(struct end *e)
{
	__m128i *to = (__m128i *)cell(e), data = _mm_loadl_epi64((const __m128i *)e->data);

	wait_room(e);
	for (unsigned i = 0; i < 3; i++)
		_mm_stream_si128(to + i, data);
	_mm_stream_si128(to + 3, _mm_set_epi64x((long long)e->n + 1, 0));
	e->n++;
}

static void put_many(struct end *e, unsigned by)
{
	while (unlikely(e->n + by - e->seen > CELLS))
		e->seen = atomic_load_explicit(&e->ring->consumed, memory_order_acquire);
	for (unsigned i = 0; i < by; i++, e->n++)
		memcpy(cell(e), e->data, sizeof(uint64_t));
	bare_store(&e->ring->head, e->n);
}

static void take_many(struct end *e, unsigned by)
{
	while (e->n + by > e->seen)
		e->seen = atomic_load_explicit(&e->ring->head, memory_order_acquire);
	for (unsigned i = 0; i < by; i++) {
		memcpy(e->data, cell(e), sizeof(uint64_t));
		took(e);
	}
}

static void stream_peer(struct duo *d)
{
	struct end in = end(d, 0);
	unsigned by = d->test->option;

	if (by <= 1)
		for (unsigned i = 0; i < BATCHES * STREAM; i++)
			take(&in);
	else
		for (unsigned i = 0; i < BATCHES * STREAM; i += by)
			take_many(&in, by);
}

static void stream_out(struct end *out, unsigned by)
{
	for (unsigned i = 0; i < STREAM; i += MAX(by, 1u)) {
		if (by > 1)
			put_many(out, by);
		else if (by)
			put(out);
		else
			put_line(out);
	}
}

static double stream_timed(struct duo *d)
{
	struct end out = end(d, 0);
	double rate[BATCHES];
	unsigned by = d->test->option;

	for (int b = 0; b < BATCHES; b++) {
		uint64_t start = measure_now_ns();

		stream_out(&out, by);
		rate[b] = STREAM * 1e3 / (double)(measure_now_ns() - start);
	}
	return measure_median(rate, BATCHES);
}

static double stream(const struct bare_test *t)
{
	return duo_run(t, ring_bytes(t), stream_timed, stream_peer);
}

const struct bare_test ring_tests[] = {
	{"ring_2", "ns", pingpong, 2, 0},
	{"ring_8", "ns", pingpong, 8, 0},
	{"ring_64", "ns", pingpong, 64, 0},
	{"ring_4096", "ns", pingpong, 4096, 0},
	{"stream_by_1", "M/s", stream, 8, 1},
	{"stream_by_16", "M/s", stream, 8, 16},
	{"stream_line", "M/s", stream, 8, 0},
	{},
};
