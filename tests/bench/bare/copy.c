/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Moving bulk data: one copy by one process (what a window can be at best), two
 * copies pipelined through a ring (a lane; the sender's by plain or by streaming
 * stores), and the kernel's cross-memory copy.
 */
#include <emmintrin.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bare.h"

#define BATCHES	    5
#define BATCH_BYTES (16ul << 20) /* at least; a batch is some milliseconds */
#define RING_BYTES  (256u << 10) /* fits into a core's own caches */
#define WIDE_BYTES  (2u << 20)   /* and this only into what they share */

enum copy { MEMCPY, MOVSB, STREAM, LOADS };

static size_t per_batch(size_t size)
{
	return MAX(BATCH_BYTES / size, (size_t)1);
}

static void movsb(void *to, const void *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

static inline void put_16(__m128i *to, __m128i value, bool past)
{
	if (past)
		_mm_stream_si128(to, value);
	else
		_mm_store_si128(to, value);
}

/* 64 bytes at a time by loads of 16; @past: the stores go past the caches */
__attribute__((always_inline)) static inline void by_loads(__m128i *d, const __m128i *s, size_t n,
							   bool past)
{
	for (size_t i = 0; i < n / sizeof(*d); i += 4) {
		__m128i a = _mm_loadu_si128(s + i), b = _mm_loadu_si128(s + i + 1),
			c = _mm_loadu_si128(s + i + 2), e = _mm_loadu_si128(s + i + 3);

		put_16(d + i, a, past);
		put_16(d + i + 1, b, past);
		put_16(d + i + 2, c, past);
		put_16(d + i + 3, e, past);
	}
}

/* Past the caches: the lines need not come here first from where they are. */
static void stream(void *to, const void *from, size_t n)
{
	by_loads(to, from, n, true);
	_mm_sfence();
}

/* What memcpy() is of fewer bytes; of many it is `rep movsb`. */
static void loads(void *to, const void *from, size_t n)
{
	by_loads(to, from, n, false);
}

static void copy(enum copy how, void *to, const void *from, size_t n)
{
	if (how == MEMCPY)
		memcpy(to, from, n);
	else if (how == MOVSB)
		movsb(to, from, n);
	else if (how == LOADS)
		loads(to, from, n);
	else
		stream(to, from, n);
}

/* Tests of one size share them: a GiB takes long to populate. */
static void buffers(size_t size, char **from, char **to)
{
	static char *first, *second;
	static size_t have;

	if (have != size && have) {
		munmap(first, have);
		munmap(second, have);
	}
	if (have != size) {
		first = memset(bare_alloc(size), 1, size);
		second = memset(bare_shared(size), 1, size);
		have = size;
	}
	*from = first;
	*to = second;
}

static double one_copy(const struct bare_test *t)
{
	size_t count = per_batch(t->size), batches = t->size > (256u << 20) ? 1 : BATCHES;
	char *from, *to;
	double rate[BATCHES];

	buffers(t->size, &from, &to);
	for (size_t b = 0; b < batches; b++) {
		uint64_t start = measure_now_ns();

		for (size_t i = 0; i < count; i++)
			copy(t->option, to, from, t->size);
		rate[b] = (double)(count * t->size) / (double)(measure_now_ns() - start);
	}
	return measure_median(rate, batches);
}

/* --- two copies; the option is the chunk, how each is made, which ring --- */

#define HOW_SHIFT  24
#define CHUNK_MASK ((1u << HOW_SHIFT) - 1)
#define HOW_MASK   7u
#define BY_LOADS   (1u << 30) /* the second copy; else by memcpy() */
#define WIDE	   (1u << 31)

struct pipeline {
	alignas(LINE) _Atomic uint64_t filled; /* bytes since the start */
	alignas(LINE) _Atomic uint64_t emptied;
	alignas(4096) char ring[WIDE_BYTES];
};

static size_t ring_bytes(unsigned option)
{
	return option & WIDE ? WIDE_BYTES : RING_BYTES;
}

static void fill(struct pipeline *p, const char *from, size_t size, unsigned option,
		 uint64_t *at)
{
	size_t chunk = option & CHUNK_MASK, ring = ring_bytes(option);
	enum copy how = option >> HOW_SHIFT & HOW_MASK;

	for (size_t done = 0; done < size; done += chunk, *at += chunk) {
		while (*at + chunk -
			       atomic_load_explicit(&p->emptied, memory_order_acquire) >
		       ring)
			;
		copy(how, p->ring + *at % ring, from + done, chunk);
		bare_store(&p->filled, *at + chunk);
	}
}

static void empty(struct pipeline *p, char *to, size_t size, unsigned option, uint64_t *at)
{
	size_t chunk = option & CHUNK_MASK, ring = ring_bytes(option);
	enum copy how = option & BY_LOADS ? LOADS : MEMCPY;

	for (size_t done = 0; done < size; done += chunk, *at += chunk) {
		while (atomic_load_explicit(&p->filled, memory_order_acquire) <
		       *at + chunk)
			;
		copy(how, to + done, p->ring + *at % ring, chunk);
		bare_store(&p->emptied, *at + chunk);
	}
}

static double two_copy_timed(struct duo *d)
{
	size_t size = d->test->size, count = per_batch(size);
	char *from = bare_alloc(size);
	double rate[BATCHES];
	uint64_t at = 0;

	memset(from, 1, size);
	for (int b = 0; b < BATCHES; b++) {
		uint64_t start = measure_now_ns();

		for (size_t i = 0; i < count; i++)
			fill(d->mem, from, size, d->test->option, &at);
		rate[b] = (double)(count * size) / (double)(measure_now_ns() - start);
	}
	munmap(from, size);
	return measure_median(rate, BATCHES);
}

static void two_copy_peer(struct duo *d)
{
	size_t size = d->test->size;
	char *to = bare_alloc(size);
	uint64_t at = 0;

	for (size_t i = 0; i < BATCHES * per_batch(size); i++)
		empty(d->mem, to, size, d->test->option, &at);
}

static double two_copy(const struct bare_test *t)
{
	return duo_run(t, sizeof(struct pipeline), two_copy_timed, two_copy_peer);
}

/* --- process_vm_writev: into a child that stands still --- */

struct target {
	_Atomic uint64_t pid, address, done;
};

static void target_peer(struct duo *d)
{
	struct target *t = d->mem;

	atomic_store(&t->address, (uintptr_t)bare_alloc(d->test->size));
	bare_store(&t->pid, (uint64_t)getpid());
	while (!atomic_load(&t->done))
		;
}

static double target_timed(struct duo *d)
{
	struct target *t = d->mem;
	size_t size = d->test->size, count = MIN(per_batch(size), (size_t)2000);
	struct iovec from = {bare_alloc(size), size}, to = {NULL, size};
	double ns[BATCHES];

	while (!atomic_load(&t->pid))
		;
	to.iov_base = (void *)(uintptr_t)t->address;
	for (int b = 0; b < BATCHES; b++) {
		uint64_t start = measure_now_ns();

		for (size_t i = 0; i < count; i++)
			measure_check(process_vm_writev((pid_t)t->pid, &from, 1, &to, 1,
							0) == (ssize_t)size,
				      "process_vm_writev");
		ns[b] = (double)(measure_now_ns() - start) / (double)count;
	}
	bare_store(&t->done, 1);
	munmap(from.iov_base, size);
	return measure_median(ns, BATCHES);
}

static double process_vm_ns(const struct bare_test *t)
{
	return duo_run(t, 4096, target_timed, target_peer);
}

static double process_vm_rate(const struct bare_test *t)
{
	return (double)t->size / process_vm_ns(t);
}

#define KIB(n) ((n)*1024ul)
#define MIB(n) ((n)*1024ul * 1024ul)
/* clang-format off */
#define SIZES(name, run, option)                                                         \
	{name "_65536", "GB/s", run, KIB(64), option},                                   \
	{name "_1048576", "GB/s", run, MIB(1), option},                                  \
	{name "_16777216", "GB/s", run, MIB(16), option}
/* clang-format on */

const struct bare_test copy_tests[] = {
	SIZES("memcpy", one_copy, MEMCPY),
	SIZES("movsb", one_copy, MOVSB),
	SIZES("stream", one_copy, STREAM),
	{"memcpy_1073741824", "GB/s", one_copy, MIB(1024), MEMCPY},
	{"movsb_1073741824", "GB/s", one_copy, MIB(1024), MOVSB},
	{"stream_1073741824", "GB/s", one_copy, MIB(1024), STREAM},
	SIZES("two_copy_16", two_copy, KIB(16)),
	SIZES("two_copy_64", two_copy, KIB(64)),
	SIZES("two_copy_wide_64", two_copy, KIB(64) | WIDE),
	SIZES("two_copy_wide_loads_64", two_copy, KIB(64) | BY_LOADS | WIDE),
	SIZES("two_copy_stream_wide_64", two_copy, KIB(64) | STREAM << HOW_SHIFT | WIDE),
	SIZES("two_copy_stream_16", two_copy, KIB(16) | STREAM << HOW_SHIFT),
	SIZES("two_copy_stream_64", two_copy, KIB(64) | STREAM << HOW_SHIFT),
	{"process_vm_8", "ns", process_vm_ns, 8, 0},
	SIZES("process_vm", process_vm_rate, 0),
	{},
};
