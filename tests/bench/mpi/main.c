/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The peer that most users would take: MPI over shared memory. mpirun -np 2N
 * bench-mpi TEST...: rank i < N talks to rank i + N. A test is lat:SIZE (half a
 * round trip), stream:SIZE (bytes or, of small messages, messages a second,
 * all pairs together), both:SIZE (WINDOW messages each way at once, in memory that is new
 * for each batch; what arrives is looked at). Prints "TEST value unit".
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../measure.h"

#define BATCHES	      5
#define ROUNDS	      2000
#define WINDOW	      64
#define BATCH_BYTES   (96ul << 20)
#define BATCH_WINDOWS 2000ul

static int rank, peer, pairs;
static char *buffer, ack;

static int first(void)
{
	return rank < pairs;
}

static double latency(size_t size)
{
	double ns[BATCHES];

	for (int b = 0; b < BATCHES; b++) {
		double start = MPI_Wtime();

		for (int i = 0; i < ROUNDS; i++) {
			if (first())
				MPI_Send(buffer, (int)size, MPI_BYTE, peer, 0,
					 MPI_COMM_WORLD);
			MPI_Recv(buffer, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			if (!first())
				MPI_Send(buffer, (int)size, MPI_BYTE, peer, 0,
					 MPI_COMM_WORLD);
		}
		ns[b] = (MPI_Wtime() - start) * 1e9 / (2 * ROUNDS);
	}
	return measure_median(ns, BATCHES);
}

static void send_window(size_t size, int n)
{
	MPI_Request request[WINDOW];

	for (int i = 0; i < n; i++)
		if (first())
			MPI_Isend(buffer, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
				  &request[i]);
		else
			MPI_Irecv(buffer, (int)size, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
				  &request[i]);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
}

static void end_of_batch(void)
{
	if (first())
		MPI_Recv(&ack, 1, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&ack, 1, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

/* Messages per ns. */
static double stream(size_t size)
{
	size_t windows = BATCH_BYTES / (size * WINDOW);
	int n = size > (1u << 20) ? 4 : WINDOW;
	double rate[BATCHES];

	windows = windows > BATCH_WINDOWS ? BATCH_WINDOWS : windows ? windows : 2;
	for (int b = 0; b < BATCHES; b++) {
		double start;

		MPI_Barrier(MPI_COMM_WORLD);
		start = MPI_Wtime();
		for (size_t w = 0; w < windows; w++)
			send_window(size, n);
		end_of_batch();
		rate[b] = (double)windows * n / ((MPI_Wtime() - start) * 1e9);
	}
	return measure_median(rate, BATCHES);
}

/* a byte of each page of a message, by who sends it */
static void mark(char *at, size_t size, int sender, int n)
{
	for (size_t i = 0; i < size; i += 4096)
		at[i] = (char)(sender * 31 + n * 7 + (int)(i / 4096) + 1);
}

static int is_marked(const char *at, size_t size, int sender, int n)
{
	for (size_t i = 0; i < size; i += 4096)
		if (at[i] != (char)(sender * 31 + n * 7 + (int)(i / 4096) + 1))
			return 0;
	return 1;
}

/* a batch; its memory comes and goes with it, and may be the system's again */
static void both_ways(size_t size)
{
	char *out[WINDOW], *in[WINDOW];
	MPI_Request request[2 * WINDOW];

	for (int i = 0; i < WINDOW; i++) {
		out[i] = malloc(size);
		in[i] = calloc(1, size);
		measure_check(out[i] && in[i], "malloc");
		mark(out[i], size, rank, i);
		MPI_Irecv(in[i], (int)size, MPI_BYTE, peer, i, MPI_COMM_WORLD, &request[i]);
	}
	for (int i = 0; i < WINDOW; i++)
		MPI_Isend(out[i], (int)size, MPI_BYTE, peer, i, MPI_COMM_WORLD,
			  &request[WINDOW + i]);
	MPI_Waitall(2 * WINDOW, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < WINDOW; i++) {
		measure_check(is_marked(in[i], size, peer, i), "a message has other data");
		free(out[i]);
		free(in[i]);
	}
}

/* Messages per ns. */
static double both(size_t size)
{
	double start = MPI_Wtime();

	for (int b = 0; b < BATCHES; b++)
		both_ways(size);
	return 2.0 * BATCHES * WINDOW / ((MPI_Wtime() - start) * 1e9);
}

static void report(const char *test, double value, const char *unit)
{
	if (!rank)
		printf("%s %.4f %s\n", test, value, unit);
}

static void run(const char *test)
{
	size_t size = strtoul(strchr(test, ':') + 1, NULL, 10);
	double value, sum;

	buffer = malloc(size);
	measure_check(buffer != NULL, "malloc");
	memset(buffer, 1, size); /* pages of its own, not the one of zeros for all */
	MPI_Barrier(MPI_COMM_WORLD);
	if (!strncmp(test, "lat:", 4)) {
		report(test, latency(size), "ns");
	} else if (!strncmp(test, "both:", 5)) {
		report(test, both(size) * (double)size, "GB/s");
	} else {
		value = stream(size);
		MPI_Reduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
		if (size <= 4096)
			report(test, sum / 2 * 1e3, "M/s");
		else
			report(test, sum / 2 * (double)size, "GB/s");
	}
	free(buffer);
}

int main(int argc, char **argv)
{
	int size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	pairs = size / 2;
	peer = first() ? rank + pairs : rank - pairs;
	for (int i = 1; i < argc; i++)
		if (strchr(argv[i], ':'))
			run(argv[i]);
	MPI_Finalize();
	return 0;
}
