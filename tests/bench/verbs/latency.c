/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages back and forth, half of a round trip: SEND with both sides polling
 * (RC, XRC, RC with tags, and UD) or sleeping on a completion channel, in the library or in a call of
 * their own, and RDMA WRITE with both sides spinning on their memory, which the
 * library learns nothing of.
 */
#include <stdatomic.h>
#include <sys/select.h>

#include "verbs.h"

#define BATCHES	     9
#define ROUNDS	     (2000 / fewer)
#define EVENT_ROUNDS (200 / fewer)
#define SIGNAL_EVERY 32 /* one completion of this many sends, as programs do */

static void report(struct bench *b, double *ns)
{
	figure(b, NULL, measure_median(ns, BATCHES), "ns");
}

/* --- SEND --- */

static size_t receive_size(struct bench *b)
{
	return b->size + (b->end.ah ? GRH_BYTES : 0);
}

static void send_one(struct bench *b, unsigned n)
{
	post_send(&b->end, 0, IBV_WR_SEND, b->size, n % SIGNAL_EVERY == 0);
}

/* Take completions until a message has come. */
static void receive_one(struct bench *b)
{
	struct ibv_wc wc;

	do
		while (!poll(&b->end, &wc, 1))
			;
	while (!(wc.opcode & IBV_WC_RECV));
	post_receives(&b->end, 0, receive_size(b), 1);
}

static void ready_to_receive(struct bench *b)
{
	post_receives(&b->end, 0, receive_size(b), 16);
	sync_sides(b);
}

static void send_client(struct bench *b)
{
	double ns[BATCHES];

	ready_to_receive(b);
	for (unsigned batch = 0; batch < BATCHES; batch++) {
		uint64_t start = measure_now_ns();

		for (unsigned i = 0; i < ROUNDS; i++) {
			send_one(b, i);
			receive_one(b);
		}
		ns[batch] = (double)(measure_now_ns() - start) / (2 * ROUNDS);
	}
	report(b, ns);
}

static void send_server(struct bench *b)
{
	ready_to_receive(b);
	for (unsigned i = 0; i < BATCHES * ROUNDS; i++) {
		receive_one(b);
		send_one(b, i);
	}
}

/* --- SEND, sleeping --- */

static void select_channel(struct bench *b)
{
	int fd = b->end.channel->fd;
	fd_set readable;

	FD_ZERO(&readable);
	FD_SET(fd, &readable);
	measure_check(select(fd + 1, &readable, NULL, NULL, NULL) == 1, "select");
}

static void sleep_one(struct bench *b, bool selects)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *unused;

	for (;;) {
		while (poll(&b->end, &wc, 1))
			if (wc.opcode & IBV_WC_RECV) {
				post_receives(&b->end, 0, b->size, 1);
				return;
			}
		measure_check(!ibv_req_notify_cq(b->end.cq, 0), "ibv_req_notify_cq");
		if (poll(&b->end, &wc, 1)) {
			if (!(wc.opcode & IBV_WC_RECV))
				continue;
			post_receives(&b->end, 0, b->size, 1);
			return;
		}
		if (selects)
			select_channel(b);
		measure_check(!ibv_get_cq_event(b->end.channel, &cq, &unused),
			      "ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}

static void sleeping_client(struct bench *b, bool selects)
{
	double ns[BATCHES];

	ready_to_receive(b);
	for (unsigned batch = 0; batch < BATCHES; batch++) {
		uint64_t start = measure_now_ns();

		for (unsigned i = 0; i < EVENT_ROUNDS; i++) {
			send_one(b, i);
			sleep_one(b, selects);
		}
		ns[batch] = (double)(measure_now_ns() - start) / (2 * EVENT_ROUNDS);
	}
	report(b, ns);
}

static void sleeping_server(struct bench *b, bool selects)
{
	ready_to_receive(b);
	for (unsigned i = 0; i < BATCHES * EVENT_ROUNDS; i++) {
		sleep_one(b, selects);
		send_one(b, i);
	}
}

static void event_client(struct bench *b)
{
	sleeping_client(b, false);
}

static void event_server(struct bench *b)
{
	sleeping_server(b, false);
}

static void select_client(struct bench *b)
{
	sleeping_client(b, true);
}

static void select_server(struct bench *b)
{
	sleeping_server(b, true);
}

/* --- RDMA WRITE: the last byte is the message's number --- */

/* What comes lies apart from what goes, as bare/line.c's does: a message that is
 * sent from where one came would fetch its lines from the peer's core first. */
static size_t inbox(const struct bench *b)
{
	return b->kind->shape.bytes / 2;
}

static void write_begin(struct bench *b)
{
	measure_check(b->size <= inbox(b), "a message longer than the inbox");
	b->end.peer.memory += inbox(b);
	sync_sides(b);
}

static void write_one(struct bench *b, unsigned n)
{
	bool signaled = n / 2 % SIGNAL_EVERY == 0;

	b->end.memory[b->size - 1] = (char)n;
	post_send(&b->end, 0, IBV_WR_RDMA_WRITE, b->size, signaled);
	if (signaled)
		await(&b->end, 1);
}

static void await_memory(struct bench *b, unsigned n)
{
	_Atomic char *last = (_Atomic char *)&b->end.memory[inbox(b) + b->size - 1];

	while (atomic_load_explicit(last, memory_order_acquire) != (char)n)
		;
}

/* Memory that no window covers: the peer's library has to be woken each time. A
 * batch is a millisecond, so that somebody else's slice spoils a few alone. */
#define WAKES	     20u
#define WAKE_BATCHES (9 * BATCHES)

static unsigned write_rounds(const struct bench *b)
{
	return b->kind->shape.on_stack ? WAKES : ROUNDS;
}

static unsigned write_batches(const struct bench *b)
{
	return b->kind->shape.on_stack ? WAKE_BATCHES / fewer : BATCHES;
}

static void write_client(struct bench *b)
{
	double ns[WAKE_BATCHES];
	unsigned n = 1;

	write_begin(b);
	for (unsigned batch = 0; batch < write_batches(b); batch++) {
		uint64_t start = measure_now_ns();

		for (unsigned i = 0; i < write_rounds(b); i++, n += 2) {
			write_one(b, n);
			await_memory(b, n + 1);
		}
		ns[batch] = (double)(measure_now_ns() - start) / (2 * write_rounds(b));
	}
	figure(b, NULL, measure_median(ns, write_batches(b)), "ns");
}

static void write_server(struct bench *b)
{
	unsigned n = 1;

	write_begin(b);
	for (unsigned i = 0; i < write_batches(b) * write_rounds(b); i++, n += 2) {
		await_memory(b, n);
		write_one(b, n + 1);
	}
}

const struct kind latency_kinds[] = {
	{"send_lat", send_client, send_server, {}},
	{"xrc_lat", send_client, send_server, {.type = IBV_QPT_XRC_SEND}},
	{"tagged_lat", send_client, send_server, {.tagged = true}},
	{"ud_lat", send_client, send_server, {.type = IBV_QPT_UD}},
	{"event_lat", event_client, event_server, {.events = true}},
	{"select_lat", select_client, select_server, {.events = true}},
	{"write_lat", write_client, write_server, {.bytes = 16384}},
	{"write_lat_mw", write_client, write_server, {.bytes = 16384, .by_mw = true}},
	{"write_lat_stack", write_client, write_server, {.bytes = 128, .on_stack = true}},
	{},
};
