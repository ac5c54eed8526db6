/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMA READ and atomics, one at a time, on memory that the other core wrote
 * last, so that each must fetch its lines from there; the server sleeps
 * meanwhile. And a WRITE to it, which needs nobody to look at it.
 */
#include <string.h>

#include "verbs.h"

#define BATCHES	    9
#define FIELD_BYTES (512u << 10)
#define LINE	    64u

static void field_server(struct bench *b)
{
	for (unsigned i = 0; i < BATCHES; i++) {
		memset(b->end.memory, (int)i, FIELD_BYTES);
		sync_sides(b); /* it is written */
		sync_sides(b); /* it is read */
	}
}

/* Every piece once, in an order that no prefetcher guesses: bare/line.c's. */
static double visit(struct bench *b, enum ibv_wr_opcode opcode)
{
	size_t step = ALIGN_UP(b->size, LINE), count = FIELD_BYTES / step, piece = 0;
	uint64_t start = measure_now_ns();

	for (size_t i = 0; i < count; i++) {
		post_at(&b->end, opcode, piece * step, b->size);
		await(&b->end, 1);
		piece = (piece * 5 + 1) % count;
	}
	return (double)(measure_now_ns() - start) / (double)count;
}

static void field_client(struct bench *b, enum ibv_wr_opcode opcode)
{
	double ns[BATCHES];

	for (unsigned i = 0; i < BATCHES; i++) {
		sync_sides(b);
		ns[i] = visit(b, opcode);
		sync_sides(b);
	}
	figure(b, NULL, measure_median(ns, BATCHES), "ns");
}

static void read_client(struct bench *b)
{
	field_client(b, IBV_WR_RDMA_READ);
}

static void fadd_client(struct bench *b)
{
	field_client(b, IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static void cswap_client(struct bench *b)
{
	field_client(b, IBV_WR_ATOMIC_CMP_AND_SWP);
}

const struct kind one_sided_kinds[] = {
	{"read_lat", read_client, field_server, {.bytes = FIELD_BYTES}},
	{"fadd_lat", fadd_client, field_server, {.bytes = FIELD_BYTES}},
	{"cswap_lat", cswap_client, field_server, {.bytes = FIELD_BYTES}},
	{},
};
