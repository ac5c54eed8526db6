/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waking a process that sleeps: eventfds back and forth, half of a round trip.
 * And waking a thread of one that spins on memory, on the core that it spins on:
 * the thread takes what came out of a mailbox and puts it where its program looks.
 */
#include <pthread.h>
#include <unistd.h>

#include "bare.h"
#include "runtime/posix/slice.h"

#define BATCHES 7
#define ROUNDS	300
#define SPIN_BATCHES 63 /* short ones: see ../verbs/latency.c */
#define SPIN_ROUNDS  20

static void ring_bell(int fd)
{
	uint64_t one = 1;

	measure_check(write(fd, &one, sizeof(one)) == sizeof(one), "write");
}

static void await_bell(int fd)
{
	uint64_t n;

	measure_check(read(fd, &n, sizeof(n)) == sizeof(n), "read");
}

static double eventfd_timed(struct duo *d)
{
	double ns[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		uint64_t start = measure_now_ns();

		for (int i = 0; i < ROUNDS; i++) {
			ring_bell(d->pipe[1]);
			await_bell(d->pipe[0]);
		}
		ns[b] = (double)(measure_now_ns() - start) / (2 * ROUNDS);
	}
	return measure_median(ns, BATCHES);
}

static void eventfd_peer(struct duo *d)
{
	for (int i = 0; i < BATCHES * ROUNDS; i++) {
		await_bell(d->pipe[1]);
		ring_bell(d->pipe[0]);
	}
}

static double eventfd_half(const struct bare_test *t)
{
	return duo_run(t, 4096, eventfd_timed, eventfd_peer);
}

/* --- beside a program that spins --- */

struct postbox {
	alignas(LINE) _Atomic uint64_t letter; /* from the other side */
	alignas(LINE) _Atomic uint64_t word;   /* where the program looks */
};

struct porter {
	struct postbox *box;
	int bell;
	pthread_t thread;
};

static void *carry(void *arg)
{
	const struct porter *p = arg;
	uint64_t n;

	rt_short_slice(); /* as the engine's thread */
	do {
		await_bell(p->bell);
		n = atomic_load_explicit(&p->box->letter, memory_order_acquire);
		bare_store(&p->box->word, n);
	} while (n < SPIN_BATCHES * SPIN_ROUNDS);
	return NULL;
}

static void porter_start(struct porter *p, struct postbox *box, int bell)
{
	*p = (struct porter){.box = box, .bell = bell};
	measure_check(!pthread_create(&p->thread, NULL, carry, p), "pthread_create");
}

static double spin_timed(struct duo *d)
{
	struct postbox *box = d->mem;
	struct porter porter;
	double ns[SPIN_BATCHES];
	uint64_t n = 0;

	porter_start(&porter, &box[0], d->pipe[0]);
	for (int b = 0; b < SPIN_BATCHES; b++) {
		uint64_t start = measure_now_ns();

		for (int i = 0; i < SPIN_ROUNDS; i++) {
			bare_store(&box[1].letter, ++n);
			ring_bell(d->pipe[1]);
			bare_wait(&box[0].word, n);
		}
		ns[b] = (double)(measure_now_ns() - start) / (2 * SPIN_ROUNDS);
	}
	pthread_join(porter.thread, NULL);
	return measure_median(ns, SPIN_BATCHES);
}

static void spin_peer(struct duo *d)
{
	struct postbox *box = d->mem;
	struct porter porter;

	porter_start(&porter, &box[1], d->pipe[1]);
	for (uint64_t n = 1; n <= SPIN_BATCHES * SPIN_ROUNDS; n++) {
		bare_wait(&box[1].word, n);
		bare_store(&box[0].letter, n);
		ring_bell(d->pipe[0]);
	}
	pthread_join(porter.thread, NULL);
}

static double spin_half(const struct bare_test *t)
{
	return duo_run(t, 2 * sizeof(struct postbox), spin_timed, spin_peer);
}

const struct bare_test wake_tests[] = {
	{"eventfd", "ns", eventfd_half, 0, 0},
	{"eventfd_spin", "ns", spin_half, 0, 0},
	{},
};
