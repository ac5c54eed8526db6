/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Many requests under way at once: bytes and messages a second, over one QP or
 * several by turns. The window is what the queues hold. SEND's server takes
 * and reposts its receives; for WRITE and READ it sleeps.
 */
#include <stdlib.h>

#include "verbs.h"

#define BATCHES	       3
#define LIST	       16u	    /* requests that complete together */
#define BATCH_BYTES    (32ul << 20) /* of large messages; small ones go by number */
#define BATCH_MESSAGES (192u << 10)

static size_t lists(struct bench *b)
{
	size_t n = MIN(BATCH_BYTES / b->size, (size_t)BATCH_MESSAGES) / LIST;

	return MAX(n, (size_t)1);
}

/* Large messages complete one by one; of small ones the last of a list does. */
static bool each_signaled(struct bench *b)
{
	return b->size > 4096;
}

static size_t per_list(struct bench *b)
{
	return b->size >= (256ul << 20) ? 1 : LIST;
}

static unsigned post_list(struct bench *b, unsigned qp, enum ibv_wr_opcode opcode)
{
	size_t n = per_list(b);

	for (size_t i = 0; i < n; i++)
		post_send(&b->end, qp, opcode, b->size, each_signaled(b) || i == n - 1);
	return each_signaled(b) ? (unsigned)n : 1;
}

/* Keep every queue as full as it gets; returns when all completed. */
static uint64_t run(struct bench *b, enum ibv_wr_opcode opcode)
{
	unsigned per_completion = each_signaled(b) ? 1 : LIST, waiting = 0, turn = 0;
	unsigned room = b->count * b->end.depth / 2;
	uint64_t start = measure_now_ns();
	struct ibv_wc wc[LIST];

	for (size_t left = lists(b); left;) {
		if ((waiting + 1) * per_completion + LIST <= room || !waiting) {
			waiting += post_list(b, turn++ % b->count, opcode);
			left--;
		} else {
			waiting -= poll(&b->end, wc, LIST);
		}
	}
	await(&b->end, waiting);
	return measure_now_ns() - start;
}

static void stream_client(struct bench *b, enum ibv_wr_opcode opcode)
{
	double per_ns[BATCHES], messages = (double)(lists(b) * per_list(b));
	bool rate = b->size <= 4096;

	sync_sides(b);
	run(b, opcode); /* lanes and windows exist, caches are warm */
	for (unsigned i = 0; i < BATCHES; i++)
		per_ns[i] = messages / (double)run(b, opcode);
	sync_sides(b);
	if (rate)
		figure(b, NULL, measure_median(per_ns, BATCHES) * 1e3, "M/s");
	else
		figure(b, NULL, measure_median(per_ns, BATCHES) * (double)b->size,
		       "GB/s");
}

static void send_client(struct bench *b)
{
	stream_client(b, IBV_WR_SEND);
}

static void write_client(struct bench *b)
{
	stream_client(b, IBV_WR_RDMA_WRITE);
}

static void read_client(struct bench *b)
{
	stream_client(b, IBV_WR_RDMA_READ);
}

static void idle_server(struct bench *b)
{
	sync_sides(b);
	sync_sides(b);
}

/* --- the receiving side of SEND --- */

static void fill_receives(struct bench *b, size_t size)
{
	for (unsigned qp = 0; qp < b->count; qp++)
		for (unsigned i = 0; i < b->end.depth; i += LIST)
			post_receives(&b->end, qp, size, LIST);
}

/* Repost to each QP as many as it has taken, a list at a time. */
static void repost(struct bench *b, unsigned *taken, const struct ibv_wc *wc, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned qp = (unsigned)wc[i].wr_id;

		if (++taken[qp] < LIST)
			continue;
		post_receives(&b->end, qp, b->size, LIST);
		taken[qp] = 0;
	}
}

static void send_server(struct bench *b)
{
	size_t left = (BATCHES + 1) * lists(b) * per_list(b);
	unsigned *taken = calloc(b->count, sizeof(*taken));
	struct ibv_wc wc[LIST];

	fill_receives(b, b->size);
	sync_sides(b);
	while (left) {
		unsigned n = poll(&b->end, wc, LIST);

		repost(b, taken, wc, n);
		left -= n;
	}
	free(taken);
	sync_sides(b);
}

/* --- UD: what arrives counts, from the first to the last --- */

static void ud_client(struct bench *b)
{
	sync_sides(b);
	run(b, IBV_WR_SEND);
	sync_sides(b); /* the server has seen what came, and had time for it */
}

/* The time from the first message to the last that came. */
static void ud_server(struct bench *b)
{
	size_t sent = lists(b) * LIST, got = 0;
	unsigned *taken = calloc(b->count, sizeof(*taken));
	uint64_t first = 0, last = 0, now;
	struct ibv_wc wc[LIST];
	unsigned n;

	fill_receives(b, b->size + GRH_BYTES);
	sync_sides(b);
	do {
		n = poll(&b->end, wc, LIST);
		now = measure_now_ns();
		if (!n)
			continue;
		first = first ? first : now;
		last = now;
		got += n;
		b->size += GRH_BYTES;
		repost(b, taken, wc, n);
		b->size -= GRH_BYTES;
	} while (got < sent && (!first || now - last < 100 * NSEC_PER_MSEC));
	free(taken);
	sync_sides(b);
	figure(b, NULL, (double)got * 1e3 / (double)(last - first), "M/s");
	figure(b, "lost", (double)(sent - got) / (double)sent, "of 1");
}

const struct kind stream_kinds[] = {
	{"send", send_client, send_server, {.depth = 512}},
	{"write", write_client, idle_server, {.depth = 512}},
	{"read", read_client, idle_server, {.depth = 128}},
	{"ud", ud_client, ud_server, {.type = IBV_QPT_UD, .depth = 512}},
	{},
};
