/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Instructions per message, under callgrind: one process that is both sides,
 * so that nothing runs between the phases. Each phase of each batch is dumped
 * by itself, named "TEST/PHASE": see ../counts.py.
 */
#include <dlfcn.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "verbs.h"

#define BATCHES	 24u
#define MESSAGES 16u	/* of a batch */
#define SETTLE	 300 /* polls, after which the engines know that we poll, and who (engine/lock.h) */

/* In place of the C library's: valgrind has no membarrier(2), and without it libraries
 * take ways that they take nowhere else. It runs one thread at a time, and changes threads
 * with everything stored: there is nothing to be done. */
__attribute__((visibility("default"))) /* the libraries find this one first */
long syscall(long number, ...)
{
	long (*real)(long number, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long arg[6];
	va_list list;

	va_start(list, number);
	for (size_t i = 0; i < ARRAY_SIZE(arg); i++)
		arg[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_membarrier || !RUNNING_ON_VALGRIND)
		return real(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	return (int)arg[0] != MEMBARRIER_CMD_QUERY ? 0 :
	       MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED |
	       MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
}

static void begin(void)
{
	CALLGRIND_ZERO_STATS;
	CALLGRIND_TOGGLE_COLLECT;
}

static void end_phase(struct bench *b, const char *phase)
{
	char name[64];

	CALLGRIND_TOGGLE_COLLECT;
	snprintf(name, sizeof(name), "%s/%s", b->text, phase);
	CALLGRIND_DUMP_STATS_AT(name);
}

static void settle(struct bench *b, struct end *server)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < SETTLE; i++) {
		measure_check(!poll(&b->end, &wc, 1) && !poll(server, &wc, 1),
			      "a completion");
	}
}

static void phase_post(struct bench *b, enum ibv_wr_opcode opcode)
{
	struct request request;

	prepare(&b->end, &request, 0, opcode, b->size);
	begin();
	post_requests(&b->end, &request, MESSAGES, true);
	end_phase(b, "post");
}

static void phase_poll(struct bench *b, struct end *e, const char *phase)
{
	begin();
	await(e, MESSAGES);
	end_phase(b, phase);
}

static void batch(struct bench *b, struct end *server, enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_SEND) {
		begin();
		post_receives(server, 0, b->size, MESSAGES);
		end_phase(b, "post_receive");
	}
	phase_post(b, opcode);
	if (opcode == IBV_WR_SEND)
		phase_poll(b, server, "server_poll");
	phase_poll(b, &b->end, "client_poll");
}

static void connect_ends(struct end *a, struct end *b)
{
	struct ibv_qp *receiver = b->target ? b->target : b->qp[0];

	a->peer = (struct address){.memory = (uintptr_t)b->memory,
				   .rkey = b->mr->rkey,
				   .lid = end_lid(b),
				   .qp_count = 1,
				   .srqn = srq_number(b),
				   .initiator_qpn = b->qp[0]->qp_num};
	a->peer_qpn = &receiver->qp_num;
	end_connect(a);
}

static void open_server(struct bench *b, struct end *server)
{
	end_open(server, &b->kind->shape, b->size, 1, NULL);
	connect_ends(&b->end, server);
	connect_ends(server, &b->end);
}

static void count(struct bench *b, enum ibv_wr_opcode opcode)
{
	struct end server = {};

	open_server(b, &server);
	batch(b, &server, opcode); /* makes the lane or the window */
	for (unsigned i = 0; i < BATCHES; i++) {
		settle(b, &server);
		batch(b, &server, opcode);
	}
}

/* --- messages one at a time, each of which waits for the answer to the one before --- */

/* what of a round trip is counted, at the server or, the last, at the client; PARTS: nothing. Only
 * an XRC target acknowledges a message by itself, in a poll that finds nothing. */
enum part { RECEIVE, POST_RECEIVE, ANSWER, ACKNOWLEDGE, TAKE_ACK, PARTS };

/* Return: how many requests completed before the message came */
static unsigned receive_one(struct bench *b, struct end *e)
{
	struct ibv_wc wc;
	unsigned n = 0;

	for (;; n++) {
		while (!poll(e, &wc, 1))
			;
		if (wc.opcode & IBV_WC_RECV)
			break;
	}
	post_receives(e, 0, b->size, 1);
	return n;
}

/* the poll that finds the one message; if it is not @counted, as many as it takes */
static void take_one(struct bench *b, struct end *server, enum part part)
{
	bool counted = part == RECEIVE;
	struct ibv_wc wc;
	unsigned n;

	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	do
		n = poll(server, &wc, 1);
	while (!n && !counted);
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	measure_check(n == 1 && wc.opcode & IBV_WC_RECV, "a message");
	if (part == POST_RECEIVE)
		CALLGRIND_TOGGLE_COLLECT;
	post_receives(server, 0, b->size, 1);
	if (part == POST_RECEIVE)
		CALLGRIND_TOGGLE_COLLECT;
}

static void answer_one(struct bench *b, struct end *server, bool last, bool counted)
{
	struct request request;

	prepare(server, &request, 0, IBV_WR_SEND, b->size);
	request.wr.send_flags |= last ? IBV_SEND_SIGNALED : 0u;
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	post(server, 0, &request.wr);
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
}

/* a poll that finds no completion */
static void poll_in_vain(struct end *e, bool counted)
{
	struct ibv_wc wc;
	unsigned n;

	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	n = poll(e, &wc, 1);
	if (counted)
		CALLGRIND_TOGGLE_COLLECT;
	measure_check(!n, "no completion");
}

static void round_trips(struct bench *b, struct end *server, enum part counted)
{
	static const char *const name[PARTS] = {"receive", "post_receive", "answer", "acknowledge",
						"take_ack"};
	unsigned completed = 0;
	struct ibv_wc wc;
	char text[64];

	CALLGRIND_ZERO_STATS;
	for (unsigned i = 1; i <= MESSAGES; i++) {
		post_send(&b->end, 0, IBV_WR_SEND, b->size, i == MESSAGES);
		take_one(b, server, counted);
		answer_one(b, server, i == MESSAGES, counted == ANSWER);
		completed += receive_one(b, &b->end);
		if (server->target && i != MESSAGES) {
			poll_in_vain(server, counted == ACKNOWLEDGE);
			poll_in_vain(&b->end, counted == TAKE_ACK);
		}
	}
	if (counted < PARTS) {
		snprintf(text, sizeof(text), "%s/%s", b->text, name[counted]);
		CALLGRIND_DUMP_STATS_AT(text);
	}
	/* the last answer is acknowledged alone, and of XRC the last message as well */
	while (completed < 2)
		completed += poll(server, &wc, 1) + poll(&b->end, &wc, 1);
}

static void count_answer(struct bench *b)
{
	struct end server = {};
	unsigned parts;

	open_server(b, &server);
	parts = server.target ? PARTS : ACKNOWLEDGE;
	post_receives(&server, 0, b->size, MESSAGES);
	post_receives(&b->end, 0, b->size, MESSAGES);
	round_trips(b, &server, PARTS); /* makes the lanes */
	for (unsigned i = 0; i < BATCHES * parts; i++) {
		settle(b, &server);
		round_trips(b, &server, (enum part)(i % parts));
	}
}

static void count_send(struct bench *b)
{
	count(b, IBV_WR_SEND);
}

static void count_write(struct bench *b)
{
	count(b, IBV_WR_RDMA_WRITE);
}

static void count_read(struct bench *b)
{
	count(b, IBV_WR_RDMA_READ);
}

const struct kind count_kinds[] = {
	{"count_send", count_send, NULL, {}},
	{"count_answer", count_answer, NULL, {}},
	{"count_answer_xrc", count_answer, NULL, {.type = IBV_QPT_XRC_SEND}},
	{"count_answer_tagged", count_answer, NULL, {.tagged = true}},
	{"count_write", count_write, NULL, {}},
	{"count_read", count_read, NULL, {}},
	{},
};
