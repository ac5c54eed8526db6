/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Many requests under way at once: bytes and messages a second, over one QP or
 * several by turns. The window is what the queues hold; of UD, which has no
 * flow control, what the server said it has receives for. SEND's server takes
 * and reposts its receives; for WRITE and READ it sleeps.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs.h"

#define BATCHES	       9
#define LIST	       16u	    /* requests that complete together */
#define BATCH_BYTES    (32ul << 20) /* of large messages; small ones go by number */
#define BATCH_MESSAGES (192u << 10)
#define WARM_BATCHES   4u /* of large messages: within their bytes a lane has tried its copy methods */
#define WINDOW_TRIES   2000u	    /* perhaps there are none */
#define WINDOW_US      1000
#define CREDIT	       64u /* UD: receives that the server reposts before it says so */

static size_t lists(struct bench *b)
{
	size_t n = MIN(BATCH_BYTES / b->size, (size_t)BATCH_MESSAGES) / LIST;

	return MAX(n / fewer, (size_t)1);
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

/* batches that are not timed */
static unsigned warm_batches(struct bench *b)
{
	return each_signaled(b) && per_list(b) > 1 ? WARM_BATCHES : 1;
}

/* What is under way, in messages, and what the peer has receives for. */
struct flight {
	size_t *of; /* each QP */
	struct request *request; /* each QP's */
	size_t all;
	uint64_t credit; /* UD; else there is always some */
	unsigned turn;	 /* the next QP's */
};

static void land(struct bench *b, struct flight *f)
{
	size_t per_completion = each_signaled(b) ? 1 : LIST;
	struct ibv_wc wc[LIST];
	unsigned n = poll(&b->end, wc, LIST);

	for (unsigned i = 0; i < n; i++) {
		if (wc[i].opcode & IBV_WC_RECV) {
			f->credit += CREDIT;
			post_receives(&b->end, 0, b->size + GRH_BYTES, 1);
			continue;
		}
		f->of[wc[i].wr_id] -= per_completion;
		f->all -= per_completion;
	}
}

static bool has_room(struct bench *b, const struct flight *f)
{
	size_t n = per_list(b), under_way = f->of[f->turn];

	return f->credit >= n && (!under_way || under_way + n <= b->end.depth / 2);
}

/* Keep every queue as full as it gets; returns when all completed. */
static uint64_t run(struct bench *b, struct flight *f)
{
	uint64_t start = measure_now_ns();

	for (size_t left = lists(b); left;) {
		if (!has_room(b, f)) {
			land(b, f);
			continue;
		}
		post_requests(&b->end, &f->request[f->turn], per_list(b), each_signaled(b));
		f->of[f->turn] += per_list(b);
		f->all += per_list(b);
		f->credit -= per_list(b);
		f->turn = (f->turn + 1) % b->count;
		left--;
	}
	while (f->all)
		land(b, f);
	return measure_now_ns() - start;
}

/* The target moves a huge piece of memory for as long as it takes. */
static void await_window(struct bench *b, enum ibv_wr_opcode opcode)
{
	unsigned row = 0;

	for (unsigned i = 0; i < WINDOW_TRIES && row < ALONE; i++) {
		row = done_at_once(&b->end, opcode) ? row + 1 : 0;
		if (!row)
			usleep(WINDOW_US);
	}
	if (row < ALONE)
		fprintf(stderr, "verbs: no window in %u tries: the figure is that of packets\n",
			WINDOW_TRIES);
}

/* Lanes and windows exist afterwards, copies were compared, and caches are warm. Of a huge message the
 * first one is a figure of its own. */
static void warm_up(struct bench *b, enum ibv_wr_opcode opcode, struct flight *f)
{
	uint64_t ns = run(b, f);

	for (unsigned i = 1; i < warm_batches(b); i++)
		run(b, f);
	if (per_list(b) > 1)
		return;
	figure(b, "first", (double)b->size / (double)ns, "GB/s");
	if (opcode != IBV_WR_SEND)
		await_window(b, opcode);
	run(b, f);
}

static void stream_client(struct bench *b, enum ibv_wr_opcode opcode, uint64_t credit)
{
	double per_ns[BATCHES], messages = (double)(lists(b) * per_list(b));
	struct flight f = {.of = calloc(b->count, sizeof(*f.of)),
			   .request = calloc(b->count, sizeof(*f.request)),
			   .credit = credit};
	bool rate = b->size <= 4096;

	for (unsigned qp = 0; qp < b->count; qp++)
		prepare(&b->end, &f.request[qp], qp, opcode, b->size);
	sync_sides(b);
	warm_up(b, opcode, &f);
	for (unsigned i = 0; i < BATCHES; i++)
		per_ns[i] = messages / (double)run(b, &f);
	free(f.of);
	free(f.request);
	sync_sides(b);
	if (rate)
		figure(b, NULL, measure_median(per_ns, BATCHES) * 1e3, "M/s");
	else
		figure(b, NULL, measure_median(per_ns, BATCHES) * (double)b->size,
		       "GB/s");
}

static void send_client(struct bench *b)
{
	stream_client(b, IBV_WR_SEND, UINT64_MAX);
}

static void write_client(struct bench *b)
{
	stream_client(b, IBV_WR_RDMA_WRITE, UINT64_MAX);
}

static void read_client(struct bench *b)
{
	stream_client(b, IBV_WR_RDMA_READ, UINT64_MAX);
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
	size_t left = (BATCHES + warm_batches(b)) * lists(b) * per_list(b);
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

/* --- UD: the server says for how many messages more it has receives --- */

static void ud_client(struct bench *b)
{
	post_receives(&b->end, 0, b->size + GRH_BYTES, LIST);
	stream_client(b, IBV_WR_SEND, b->end.depth);
}

/* @n messages came: repost as many, and tell the client now and then */
static void give_credit(struct bench *b, unsigned *taken, unsigned n)
{
	*taken += n;
	for (; *taken >= CREDIT; *taken -= CREDIT) {
		for (unsigned i = 0; i < CREDIT; i += LIST)
			post_receives(&b->end, 0, b->size + GRH_BYTES, LIST);
		post_send(&b->end, 0, IBV_WR_SEND, b->size, true);
	}
}

static void ud_server(struct bench *b)
{
	size_t left = (BATCHES + 1) * lists(b) * per_list(b);
	struct ibv_wc wc[LIST];
	unsigned taken = 0;

	fill_receives(b, b->size + GRH_BYTES);
	sync_sides(b);
	while (left) {
		unsigned n = poll(&b->end, wc, LIST), came = 0;

		for (unsigned i = 0; i < n; i++)
			came += wc[i].opcode & IBV_WC_RECV ? 1 : 0;
		give_credit(b, &taken, came);
		left -= came;
	}
	sync_sides(b);
}

/* --- WRITE by threads of one process, each with a QP and a CQ of its own --- */

#define LINE_BYTES 64 /* the memory of a thread: none shares a cache line */

struct writer {
	struct bench b; /* its QP is the only one */
	pthread_barrier_t *turn;
	pthread_t thread;
};

/* A batch begins when every thread is there, and ends with the last of them. */
static void *write_by_turns(void *arg)
{
	struct request request;
	struct writer *w = arg;
	size_t under_way = 0;
	struct flight f = {.of = &under_way, .request = &request, .credit = UINT64_MAX};

	prepare(&w->b.end, &request, 0, IBV_WR_RDMA_WRITE, w->b.size);
	for (unsigned i = 0; i <= BATCHES; i++) {
		pthread_barrier_wait(w->turn);
		run(&w->b, &f);
		pthread_barrier_wait(w->turn);
	}
	return NULL;
}

static void start_writer(struct bench *b, struct writer *w, unsigned n, pthread_barrier_t *turn)
{
	w->turn = turn;
	w->b = *b;
	w->b.count = 1;
	w->b.end.qp = &b->end.qp[n];
	w->b.end.cq = b->end.cq_of[n];
	w->b.end.memory += (size_t)n * LINE_BYTES;
	w->b.end.peer.memory += (size_t)n * LINE_BYTES;
	measure_check(!pthread_create(&w->thread, NULL, write_by_turns, w), "pthread_create");
}

static void threads_client(struct bench *b)
{
	double messages = (double)(lists(b) * per_list(b)) * b->count, per_ns[BATCHES + 1];
	struct writer *w = calloc(b->count, sizeof(*w));
	pthread_barrier_t turn;

	measure_check(b->size <= LINE_BYTES && b->count * LINE_BYTES <= b->end.bytes,
		      "a line for each thread");
	pthread_barrier_init(&turn, NULL, b->count + 1);
	sync_sides(b);
	for (unsigned n = 0; n < b->count; n++)
		start_writer(b, &w[n], n, &turn);
	for (unsigned i = 0; i <= BATCHES; i++) {
		uint64_t start = measure_now_ns();

		pthread_barrier_wait(&turn);
		pthread_barrier_wait(&turn);
		per_ns[i] = messages / (double)(measure_now_ns() - start);
	}
	for (unsigned n = 0; n < b->count; n++)
		pthread_join(w[n].thread, NULL);
	pthread_barrier_destroy(&turn);
	free(w);
	sync_sides(b);
	figure(b, NULL, measure_median(per_ns + 1, BATCHES) * 1e3, "M/s"); /* the first is warm-up */
}

const struct kind stream_kinds[] = {
	{"send", send_client, send_server, {.depth = 512}},
	{"write", write_client, idle_server, {.depth = 512}},
	{"read", read_client, idle_server, {.depth = 128}},
	{"threads", threads_client, idle_server, {.depth = 512, .cq_each = true}},
	{"ud", ud_client, ud_server, {.type = IBV_QPT_UD, .depth = 512}},
	{},
};
