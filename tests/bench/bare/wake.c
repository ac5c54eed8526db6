/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Waking a process that sleeps: eventfds back and forth, half of a round trip. */
#include <unistd.h>

#include "bare.h"

#define BATCHES 7
#define ROUNDS	300

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

const struct bare_test wake_tests[] = {
	{"eventfd", "ns", eventfd_half, 0, 0},
	{},
};
