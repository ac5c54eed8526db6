/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a cache line costs on its way between two cores: the probe that tells
 * how near the cores are; stores that a spinning process sees; and reads and
 * atomics on lines that the other core wrote last.
 */
#include <string.h>

#include "bare.h"

#define BATCHES 9
#define ROUNDS	4000

/* --- ping-pong --- */

/* The probe: one line that the two write by turns. */
static double probe_timed(struct duo *d)
{
	_Atomic uint64_t *word = d->mem;
	double ns[BATCHES];
	uint64_t n = 0, start;

	for (int b = 0; b < BATCHES; b++) {
		start = measure_now_ns();
		for (int i = 0; i < ROUNDS; i++, n += 2) {
			bare_store(word, n + 1);
			bare_wait(word, n + 2);
		}
		ns[b] = (double)(measure_now_ns() - start) / (2 * ROUNDS);
	}
	return measure_median(ns, BATCHES);
}

static void probe_peer(struct duo *d)
{
	_Atomic uint64_t *word = d->mem;

	for (uint64_t n = 0; n < 2 * BATCHES * ROUNDS; n += 2) {
		bare_wait(word, n + 1);
		bare_store(word, n + 2);
	}
}

static double probe(const struct bare_test *t)
{
	return duo_run(t, 4096, probe_timed, probe_peer);
}

/* Stores of @size bytes, the last 8 last, into memory that the other watches. */
struct mailbox {
	char *from, *to, *in;
	size_t size;
};

#define MAILBOX_BYTES 8192u

static struct mailbox mailbox(struct duo *d, int side)
{
	char *mem = d->mem;

	return (struct mailbox){.size = MAX(d->test->size, sizeof(uint64_t)),
				.from = bare_alloc(MAILBOX_BYTES),
				.to = mem + (side ? MAILBOX_BYTES : 0),
				.in = mem + (side ? 0 : MAILBOX_BYTES)};
}

static void mailbox_send(struct mailbox *m, uint64_t n)
{
	size_t head = m->size - sizeof(n);

	memcpy(m->to, m->from, head);
	bare_store((_Atomic uint64_t *)(m->to + head), n);
}

static void mailbox_wait(struct mailbox *m, uint64_t n)
{
	bare_wait((_Atomic uint64_t *)(m->in + m->size - sizeof(n)), n);
}

static double store_timed(struct duo *d)
{
	struct mailbox m = mailbox(d, 0);
	double ns[BATCHES];
	uint64_t n = 0, start;

	for (int b = 0; b < BATCHES; b++) {
		start = measure_now_ns();
		for (int i = 0; i < ROUNDS; i++) {
			mailbox_send(&m, ++n);
			mailbox_wait(&m, n);
		}
		ns[b] = (double)(measure_now_ns() - start) / (2 * ROUNDS);
	}
	return measure_median(ns, BATCHES);
}

static void store_peer(struct duo *d)
{
	struct mailbox m = mailbox(d, 1);

	for (uint64_t n = 1; n <= BATCHES * ROUNDS; n++) {
		mailbox_wait(&m, n);
		mailbox_send(&m, n);
	}
}

static double store(const struct bare_test *t)
{
	return duo_run(t, 2 * MAILBOX_BYTES, store_timed, store_peer);
}

/* --- lines that the other core wrote last --- */

#define FIELD_BYTES (512u * 1024u) /* of them; they fit in a core's own cache */

struct field {
	alignas(LINE) _Atomic uint64_t turn;
	alignas(4096) char bytes[FIELD_BYTES];
};

/* Turn 2n+1: the peer has written the field; 2n+2: it is to write it again. */
static void field_peer(struct duo *d)
{
	struct field *f = d->mem;

	for (uint64_t n = 0; n < BATCHES; n++) {
		bare_wait(&f->turn, 2 * n);
		for (size_t at = 0; at < FIELD_BYTES; at += LINE)
			f->bytes[at]++;
		bare_store(&f->turn, 2 * n + 1);
	}
}

static void read_one(const char *from, size_t size)
{
	static char to[4096];

	memcpy(to, from, size);
	__asm__ volatile("" ::"r"(to) : "memory");
}

/* Each piece once, in an order that no prefetcher guesses, one after another. */
static double visit(struct field *f, size_t size, bool add)
{
	size_t step = ALIGN_UP(size, LINE), count = FIELD_BYTES / step, piece = 0;
	uint64_t start = measure_now_ns();

	for (size_t i = 0; i < count; i++) {
		char *at = f->bytes + piece * step;

		if (add)
			atomic_fetch_add((_Atomic uint64_t *)at, 1);
		else
			read_one(at, size);
		__builtin_ia32_lfence();
		piece = (piece * 5 + 1) % count; /* every residue once: count is 2^n */
	}
	return (double)(measure_now_ns() - start) / (double)count;
}

static double field_timed(struct duo *d)
{
	struct field *f = d->mem;
	double ns[BATCHES];

	for (uint64_t n = 0; n < BATCHES; n++) {
		bare_wait(&f->turn, 2 * n + 1);
		ns[n] = visit(f, d->test->size, d->test->option);
		bare_store(&f->turn, 2 * n + 2);
	}
	return measure_median(ns, BATCHES);
}

static double field(const struct bare_test *t)
{
	return duo_run(t, sizeof(struct field), field_timed, field_peer);
}

const struct bare_test line_tests[] = {
	{"probe", "ns", probe, 0, 0},
	{"store_2", "ns", store, 2, 0},
	{"store_8", "ns", store, 8, 0},
	{"store_64", "ns", store, 64, 0},
	{"store_4096", "ns", store, 4096, 0},
	{"load_2", "ns", field, 2, false},
	{"load_8", "ns", field, 8, false},
	{"load_64", "ns", field, 64, false},
	{"load_4096", "ns", field, 4096, false},
	{"xadd", "ns", field, 8, true},
	{},
};
