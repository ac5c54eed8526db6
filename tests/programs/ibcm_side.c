/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ibcm_side server LAST
 * ibcm_side client LAST LID GID: one end of a connection by libibcm, step by step. The client's peer is at LID and GID,
 * which is written as an IPv6 address.
 *
 * It takes the steps of its side up to LAST, and prints the name of each when it is done; then it prints the names
 * of the events that come, until it is killed.
 */
#include <arpa/inet.h>

#include "ibcm.h"

#define SERVICE htobe64(0x1000000000005678)

static struct ibv_context *context;
static struct end end;
static struct ib_cm_id *listener;
static struct ibv_sa_path_rec path;

/* --- the steps of a server --- */

static void listen_step(void)
{
	open_end(&end, context, 0x111111);
	CHECK(!ib_cm_create_id(end.device, &listener, NULL));
	CHECK(!ib_cm_listen(listener, SERVICE, 0));
}

static void request_step(void)
{
	end.id = expect_data(end.device, IB_CM_REQ_RECEIVED, "request");
}

static void accept_step(void)
{
	accept_request(&end);
}

static void established_step(void)
{
	CHECK(!ib_cm_ack_event(expect(end.device, IB_CM_RTU_RECEIVED)));
	modify(&end, IBV_QPS_RTS);
}

static void received_step(void)
{
	await_completion(&end, IBV_WC_RECV);
	CHECK(!strcmp(end.memory, "a message"));
	send_text(&end, "an answer");
}

/* --- those of a client --- */

static void connect_step(void)
{
	struct ib_cm_req_param req;

	open_end(&end, context, 0x222222);
	CHECK(!ib_cm_create_id(end.device, &end.id, NULL));
	req = request_for(&end, &path, SERVICE);
	CHECK(!ib_cm_send_req(end.id, &req));
}

static void ready_step(void)
{
	CHECK(expect_data(end.device, IB_CM_REP_RECEIVED, "reply") == end.id);
	finish_request(&end);
	CHECK(!ib_cm_send_rtu(end.id, NULL, 0));
}

static void sent_step(void)
{
	send_text(&end, "a message");
}

/* A DREQ may overtake messages of the queue pairs: the client waits for the answer to its own. */
static void disconnected_step(void)
{
	await_completion(&end, IBV_WC_RECV);
	CHECK(!strcmp(end.memory, "an answer"));
	CHECK(!ib_cm_send_dreq(end.id, (void *)"bye", 4));
	CHECK(expect_data(end.device, IB_CM_DREP_RECEIVED, "farewell") == end.id);
}

static const struct step {
	const char *name;
	void (*take)(void);
} server_steps[] = {
	{"listen", listen_step},
	{"request", request_step},
	{"accept", accept_step},
	{"established", established_step},
	{"received", received_step},
	{NULL, NULL},
}, client_steps[] = {
	{"connect", connect_step},
	{"ready", ready_step},
	{"sent", sent_step},
	{"disconnected", disconnected_step},
	{NULL, NULL},
};

/* A DREQ is answered, as a program does. */
static void print_events(void)
{
	struct ib_cm_event *event;

	for (;;) {
		CHECK(!ib_cm_get_event(end.device, &event));
		puts(event_names[event->event]);
		if (event->event == IB_CM_DREQ_RECEIVED)
			CHECK(!ib_cm_send_drep(event->cm_id, (void *)"farewell", 9));
		CHECK(!ib_cm_ack_event(event));
	}
}

int main(int argc, char **argv)
{
	const struct step *step = argc == 5 ? client_steps : server_steps;
	union ibv_gid gid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(argc == 3 || argc == 5);
	context = open_first_device();
	if (argc == 5) {
		CHECK(inet_pton(AF_INET6, argv[4], &gid) == 1);
		path = path_to(context, (uint16_t)atoi(argv[3]), &gid);
	}
	for (; step->name; step++) {
		step->take();
		puts(step->name);
		if (!strcmp(step->name, argv[2]))
			break;
	}
	CHECK(step->name);
	print_events();
}
