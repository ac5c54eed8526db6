/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What many queue pairs cost: time and memory to make and connect one, a poll
 * that finds nothing, a message. And what a process and its first connection
 * cost in memory, here and in the daemon.
 */
#include <stdio.h>
#include <stdlib.h>

#include "verbs.h"

#define BATCHES 9
#define POLLS	2000
#define ROUNDS	500

/* Of this process and the daemon. */
static double memory_seen(void)
{
	return (double)memory_of(0) + (daemon_pid ? (double)memory_of(daemon_pid) : 0);
}

/* --- a poll that finds nothing; a message --- */

static double empty_poll_ns(struct bench *b)
{
	double ns[BATCHES];
	struct ibv_wc wc;

	for (unsigned i = 0; i < BATCHES; i++) {
		uint64_t start = measure_now_ns();

		for (unsigned n = 0; n < POLLS; n++)
			poll(&b->end, &wc, 1);
		ns[i] = (double)(measure_now_ns() - start) / POLLS;
	}
	return measure_median(ns, BATCHES);
}

/*
 * Back and forth over one QP after the other: message @n goes over QP n mod count.
 * A receive is taken up again before the answer goes: the next message may come
 * at once, and one that finds no receive waits for the RNR timer.
 */
static void bounce(struct bench *b, unsigned n, bool first)
{
	unsigned qp = n % b->count;

	if (first)
		post_send(&b->end, qp, IBV_WR_SEND, b->size, true);
	await(&b->end, first ? 2 : 1);
	post_receives(&b->end, qp, b->size, 1);
	if (!first) {
		post_send(&b->end, qp, IBV_WR_SEND, b->size, true);
		await(&b->end, 1);
	}
}

static void receives_everywhere(struct bench *b)
{
	for (unsigned qp = 0; qp < b->count; qp++)
		post_receives(&b->end, qp, b->size, 1);
	sync_sides(b);
}

static void many_server(struct bench *b)
{
	receives_everywhere(b);
	for (unsigned n = 0; n < b->count + BATCHES * ROUNDS; n++)
		bounce(b, n, false);
	sync_sides(b);
	sync_sides(b);
}

/* The first message of each QP makes its flow; those after them are measured. */
static void many_client(struct bench *b)
{
	double ns[BATCHES];
	unsigned n = 0;

	receives_everywhere(b);
	for (; n < b->count; n++)
		bounce(b, n, true);
	for (unsigned i = 0; i < BATCHES; i++) {
		uint64_t start = measure_now_ns();

		for (unsigned r = 0; r < ROUNDS; r++)
			bounce(b, n++, true);
		ns[i] = (double)(measure_now_ns() - start) / (2 * ROUNDS);
	}
	sync_sides(b);
	figure(b, "latency", measure_median(ns, BATCHES), "ns");
	figure(b, "poll", empty_poll_ns(b), "ns");
	sync_sides(b);
}

/* --- making them: before anything is connected, so by objects of its own --- */

static void create_client(struct bench *b)
{
	double before = memory_seen();
	struct ibv_qp **qp = calloc(b->size, sizeof(*qp));
	uint64_t start = measure_now_ns();

	for (size_t i = 0; i < b->size; i++)
		qp[i] = end_create_qp(&b->end, IBV_QPT_RC);
	figure(b, "create", (double)(measure_now_ns() - start) / 1e3 / (double)b->size,
	       "us");
	figure(b, "qp_bytes", (memory_seen() - before) / (double)b->size, "bytes");
	for (size_t i = 0; i < b->size; i++)
		ibv_destroy_qp(qp[i]);
	free(qp);
	sync_sides(b);
}

static void idle_server(struct bench *b)
{
	sync_sides(b);
}

/* --- a second device of each side: opened, connected, one message --- */

/* Return: what this process grew by meanwhile; the client's has softibd's too */
static double connect_second(struct bench *second, bool client)
{
	double before = client ? memory_seen() : (double)memory_of(0);

	exchange(second);
	end_connect(&second->end);
	post_receives(&second->end, 0, second->size, 1);
	sync_sides(second);
	bounce(second, 0, client);
	return (client ? memory_seen() : (double)memory_of(0)) - before;
}

static struct bench open_second(struct bench *b)
{
	const struct shape shape = {.depth = 16};
	struct bench second = *b;

	second.end = (struct end){};
	end_open(&second.end, &shape, b->size, 1, NULL);
	sync_sides(b);
	return second;
}

static void footprint_client(struct bench *b)
{
	double own = (double)memory_of(0), all = memory_seen(), lane, growth;
	struct bench second = open_second(b);

	own = (double)memory_of(0) - own;
	all = memory_seen() - all; /* softibd has both sides' */
	figure(b, "process_bytes", own + (all - own) / 2, "bytes");
	sync_sides(b); /* it is counted */
	lane = connect_second(&second, true);
	hear(b, &growth, sizeof(growth));
	figure(b, "lane_bytes", (lane + growth) / 2, "bytes");
	end_close(&second.end);
}

static void footprint_server(struct bench *b)
{
	struct bench second = open_second(b);
	double growth;

	sync_sides(b);
	growth = connect_second(&second, false);
	tell(b, &growth, sizeof(growth));
	end_close(&second.end);
}

const struct kind many_kinds[] = {
	{"many", many_client, many_server, {.depth = 4}},
	{"create", create_client, idle_server, {.depth = 16}},
	{"footprint", footprint_client, footprint_server, {.depth = 16}},
	{},
};
