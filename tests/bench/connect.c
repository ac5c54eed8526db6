/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * connect rdma|tcp server|client ADDRESS PORT N ROUNDS: the time to set up a connection, of N
 * at once: the median of the rounds.
 *
 * The client takes the steps of cmtime: each of them for all connections, before the next one.
 * It sleeps until its events come, as the server does. The clock stops when the server has accepted all:
 * by RDMA CM, the client hears so; by TCP, the server sends a byte by the last connection.
 * The server prints "listening" and serves until it is killed.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

#define ROUNDS_MAX 1000
#define STEP_MS 10000

static struct addrinfo *address;
static int num, rounds; /* connections of a round */

static void say_listening(void)
{
	puts("listening");
	fflush(stdout);
}

/* --- RDMA CM --- */

static struct rdma_event_channel *channel;
static struct rdma_cm_id **ids;

/* One completion queue for all: their queue pairs carry no message */
static void create_qp(struct rdma_cm_id *id)
{
	static struct ibv_cq *cq;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 1, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	measure_check(cq && !rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
}

static void destroy_id(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	measure_check(!rdma_destroy_id(id), "rdma_destroy_id");
}

/* The end of a connection's time-wait is nobody's step: it comes while others disconnect. */
static struct rdma_cm_id *next_event(enum rdma_cm_event_type *type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	do {
		measure_check(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		id = event->id;
		*type = event->event;
		if (event->status)
			fprintf(stderr, "%s: status %d\n", rdma_event_str(*type), event->status);
		rdma_ack_cm_event(event);
	} while (*type == RDMA_CM_EVENT_TIMEWAIT_EXIT);
	return id;
}

static void serve_rdma(void)
{
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	measure_check(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	measure_check(!rdma_bind_addr(id, address->ai_addr), "rdma_bind_addr");
	measure_check(!rdma_listen(id, num), "rdma_listen");
	say_listening();
	for (;;) {
		id = next_event(&type);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			create_qp(id);
			measure_check(!rdma_accept(id, &param), "rdma_accept");
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(id);
			destroy_id(id);
		}
	}
}

static void create_id(int i)
{
	measure_check(!rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP), "rdma_create_id");
}

static void resolve_addr(int i)
{
	measure_check(!rdma_resolve_addr(ids[i], NULL, address->ai_addr, STEP_MS),
		      "rdma_resolve_addr");
}

static void resolve_route(int i)
{
	measure_check(!rdma_resolve_route(ids[i], STEP_MS), "rdma_resolve_route");
}

static void create_its_qp(int i)
{
	create_qp(ids[i]);
}

static void connect_id(int i)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7};

	measure_check(!rdma_connect(ids[i], &param), "rdma_connect");
}

static void disconnect(int i)
{
	measure_check(!rdma_disconnect(ids[i]), "rdma_disconnect");
}

static void destroy(int i)
{
	destroy_id(ids[i]);
}

#define NO_EVENT ((enum rdma_cm_event_type)-1)

/* The first SETUP_STEPS are the set-up */
static const struct step {
	const char *name;
	void (*call)(int i);
	enum rdma_cm_event_type event; /* which each of them waits for; or NO_EVENT */
} steps[] = {
	{"create_id", create_id, NO_EVENT},
	{"resolve_addr", resolve_addr, RDMA_CM_EVENT_ADDR_RESOLVED},
	{"resolve_route", resolve_route, RDMA_CM_EVENT_ROUTE_RESOLVED},
	{"create_qp", create_its_qp, NO_EVENT},
	{"connect", connect_id, RDMA_CM_EVENT_ESTABLISHED},
	{"disconnect", disconnect, RDMA_CM_EVENT_DISCONNECTED},
	{"destroy", destroy, NO_EVENT},
};

#define SETUP_STEPS 5
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void take_step(const struct step *step)
{
	enum rdma_cm_event_type type;

	for (int i = 0; i < num; i++)
		step->call(i);
	for (int i = 0; i < num && step->event != NO_EVENT; i++) {
		next_event(&type);
		measure_check(type == step->event, rdma_event_str(type));
	}
}

/* Return: the set-up's ns; @spent: those of each step */
static uint64_t connect_rdma(uint64_t *spent)
{
	uint64_t sum = 0;

	for (size_t s = 0; s < STEPS; s++) {
		const uint64_t start = measure_now_ns();

		take_step(&steps[s]);
		spent[s] = measure_now_ns() - start;
		sum += s < SETUP_STEPS ? spent[s] : 0;
	}
	return sum;
}

/* --- TCP --- */

static void serve_tcp(void)
{
	const int listener = socket(address->ai_family, SOCK_STREAM, 0), on = 1;
	int *accepted = calloc((size_t)num, sizeof(*accepted));
	char end;

	measure_check(accepted && listener >= 0, "socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	measure_check(!bind(listener, address->ai_addr, address->ai_addrlen), "bind");
	measure_check(!listen(listener, num), "listen");
	say_listening();
	for (;;) {
		for (int i = 0; i < num; i++) {
			accepted[i] = accept(listener, NULL, NULL);
			measure_check(accepted[i] >= 0, "accept");
		}
		measure_check(write(accepted[num - 1], "", 1) == 1, "write");
		for (int i = 0; i < num; i++) {
			measure_check(read(accepted[i], &end, 1) == 0, "read");
			close(accepted[i]);
		}
	}
}

/* Return: ns */
static uint64_t connect_tcp(int *sockets)
{
	const struct linger reset = {.l_onoff = 1}; /* leaves no port in TIME_WAIT */
	const uint64_t start = measure_now_ns();
	uint64_t spent;
	char accepted;

	for (int i = 0; i < num; i++) {
		sockets[i] = socket(address->ai_family, SOCK_STREAM, 0);
		measure_check(sockets[i] >= 0 &&
			      !connect(sockets[i], address->ai_addr, address->ai_addrlen), "connect");
	}
	measure_check(read(sockets[num - 1], &accepted, 1) == 1, "read");
	spent = measure_now_ns() - start;
	for (int i = 0; i < num; i++)
		shutdown(sockets[i], SHUT_WR);
	for (int i = 0; i < num; i++) {
		measure_check(read(sockets[i], &accepted, 1) == 0, "read");
		setsockopt(sockets[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(sockets[i]);
	}
	return spent;
}

/* --- */

static double median_us(double *ns)
{
	return measure_median(ns, (size_t)rounds) / num / 1000;
}

static void measure(bool rdma)
{
	static double total[ROUNDS_MAX], of_step[STEPS][ROUNDS_MAX];
	int *sockets = calloc((size_t)num, sizeof(*sockets));
	uint64_t spent[STEPS];

	measure_check(sockets != NULL, "calloc");
	for (int round = 0; round < rounds; round++) {
		total[round] = (double)(rdma ? connect_rdma(spent) : connect_tcp(sockets));
		for (size_t s = 0; rdma && s < STEPS; s++)
			of_step[s][round] = (double)spent[s];
	}
	printf("%s_%d %.2f us\n", rdma ? "rdma" : "tcp", num, median_us(total));
	for (size_t s = 0; rdma && s < STEPS; s++)
		printf("%s %.2f us\n", steps[s].name, median_us(of_step[s]));
	free(sockets);
}

int main(int argc, char **argv)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
				       .ai_socktype = SOCK_STREAM};
	const bool rdma = argc > 1 && !strcmp(argv[1], "rdma");
	const bool server = argc > 2 && !strcmp(argv[2], "server");

	if (argc != 7 || getaddrinfo(argv[3], argv[4], &hints, &address) ||
	    (num = atoi(argv[5])) < 1 || (rounds = atoi(argv[6])) < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: connect rdma|tcp server|client ADDRESS PORT N ROUNDS\n");
		return 2;
	}
	measure_raise_descriptor_limit();
	if (rdma) {
		channel = rdma_create_event_channel();
		ids = calloc((size_t)num, sizeof(struct rdma_cm_id *));
		measure_check(channel && ids, "rdma_create_event_channel");
	}
	if (server)
		rdma ? serve_rdma() : serve_tcp();
	else
		measure(rdma);
	return 0;
}
