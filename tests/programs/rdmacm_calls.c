/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdmacm_calls ADDRESS: each function of librdmacm but those of rsockets (rsocket_calls.c), on
 * connections of the process with itself by the address of its node. Prints a line for each part.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

#define STEP_MS	   10000
#define PORT	   "7600"
#define GROUP	   "239.9.9.9"
#define REQ_BYTES  56 /* private data of a REQ of the RDMA CM, of a REP and of a REJ (12.6) */
#define REP_BYTES  196
#define REJ_BYTES  148

#define CHECK_FAILS(call, error) CHECK((call) == -1 && errno == (error))

static struct rdma_event_channel *channel;
static struct rdma_addrinfo *here; /* this node, port PORT */
static struct rdma_cm_id *listener;
static char data[256];

/* Wait for an event, and return the id that it names. */
static struct rdma_cm_id *expect(enum rdma_cm_event_type type, int bytes)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	CHECK(!rdma_get_cm_event(channel, &event));
	if (event->event != type)
		printf("%s, status %d, not ", rdma_event_str(event->event), event->status);
	CHECK(event->event == type);
	CHECK(bytes < 0 || (event->param.conn.private_data_len >= bytes &&
			    !memcmp(event->param.conn.private_data, data, (size_t)bytes)));
	id = event->id;
	CHECK(!rdma_ack_cm_event(event));
	return id;
}

static struct ibv_qp_init_attr qp_attr(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.qp_type = type,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
}

static void create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

	CHECK(!rdma_create_qp(id, NULL, &attr));
}

static void create_qp_ex(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RC, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = id->pd,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	CHECK(!rdma_create_qp_ex(id, &attr));
}

static struct rdma_conn_param param(int bytes)
{
	return (struct rdma_conn_param){.private_data = data, .private_data_len = (uint8_t)bytes};
}

static struct rdma_cm_id *resolved(void)
{
	uint8_t tos = 40, timeout = 16;
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	CHECK(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
			       sizeof(timeout)));
	CHECK(!rdma_resolve_addr(id, NULL, here->ai_dst_addr, STEP_MS));
	CHECK(expect(RDMA_CM_EVENT_ADDR_RESOLVED, -1) == id);
	CHECK(!rdma_resolve_route(id, STEP_MS));
	CHECK(expect(RDMA_CM_EVENT_ROUTE_RESOLVED, -1) == id);
	CHECK(ntohs(rdma_get_dst_port(id)) == atoi(PORT));
	return id;
}

static void destroy(struct rdma_cm_id *id)
{
	if (id->qp)
		rdma_destroy_qp(id);
	CHECK(!rdma_destroy_id(id));
}

static void listen_here(void)
{
	int yes = 1;

	CHECK(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	CHECK(!rdma_set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes,
			       sizeof(yes)));
	CHECK(!rdma_bind_addr(listener, here->ai_dst_addr));
	CHECK(!rdma_listen(listener, 4));
	CHECK(ntohs(rdma_get_src_port(listener)) == atoi(PORT));
}

/* A request with @bytes of private data. Return: the id of the listener's end */
static struct rdma_cm_id *request(struct rdma_cm_id *id, int bytes)
{
	struct rdma_conn_param conn = param(bytes);

	CHECK(!rdma_connect(id, &conn));
	return expect(RDMA_CM_EVENT_CONNECT_REQUEST, bytes);
}

static void disconnect(struct rdma_cm_id *id, struct rdma_cm_id *child)
{
	CHECK(!rdma_disconnect(id));
	CHECK(expect(RDMA_CM_EVENT_DISCONNECTED, -1) == child);
	CHECK(!rdma_disconnect(child)); /* this answers the other one */
	CHECK(expect(RDMA_CM_EVENT_DISCONNECTED, -1) == id);
	destroy(id);
	destroy(child);
}

static void accepted(void)
{
	struct rdma_conn_param conn = param(REP_BYTES);
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct rdma_cm_id *id = resolved(), *child;

	CHECK(other);
	create_qp(id);
	child = request(id, REQ_BYTES);
	create_qp_ex(child);
	CHECK(!rdma_accept(child, &conn));
	/* each end hears of it; which one first is not said */
	CHECK(expect(RDMA_CM_EVENT_ESTABLISHED, -1) != expect(RDMA_CM_EVENT_ESTABLISHED, -1));
	CHECK_FAILS(rdma_notify(id, IBV_EVENT_COMM_EST), EISCONN);
	CHECK(!rdma_migrate_id(id, other) && !rdma_migrate_id(id, channel));
	rdma_destroy_event_channel(other);
	disconnect(id, child);
	puts("accepted");
}

static void rejected(void)
{
	struct rdma_cm_id *id = resolved(), *child;

	create_qp(id);
	child = request(id, 1);
	CHECK(!rdma_reject(child, data, REJ_BYTES));
	CHECK(expect(RDMA_CM_EVENT_REJECTED, REJ_BYTES) == id);
	destroy(child);
	destroy(id);
	id = resolved();
	create_qp(id);
	child = request(id, 1);
	CHECK(!rdma_reject_ece(child, data, 8));
	CHECK(expect(RDMA_CM_EVENT_REJECTED, 8) == id);
	destroy(child);
	destroy(id);
	puts("rejected");
}

/* Data that its message has no room for is refused, and the id can be used as before. */
static void too_long(void)
{
	struct rdma_conn_param conn = param(REQ_BYTES + 1);
	struct rdma_cm_id *id = resolved(), *child;

	create_qp(id);
	CHECK_FAILS(rdma_connect(id, &conn), EINVAL);
	child = request(id, REQ_BYTES);
	create_qp(child);
	conn = param(REP_BYTES + 1);
	CHECK_FAILS(rdma_accept(child, &conn), EINVAL);
	CHECK_FAILS(rdma_reject(child, data, REJ_BYTES + 1), EINVAL);
	CHECK(!rdma_reject(child, data, REJ_BYTES));
	CHECK(expect(RDMA_CM_EVENT_REJECTED, REJ_BYTES) == id);
	destroy(child);
	destroy(id);
	puts("too long");
}

static void modify(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask;

	CHECK(!rdma_init_qp_attr(id, &attr, &mask));
	CHECK(!ibv_modify_qp(qp, &attr, mask));
}

/* The program modifies its queue pair itself, so it also tells when it can receive, and what
 * options of the connection it has (ECE). */
static void own_queue_pair(void)
{
	struct ibv_ece ece = {.vendor_id = 0x15b3, .options = 0x77}, told;
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rdma_conn_param conn = param(0);
	struct rdma_cm_id *id = resolved(), *child;
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 2, NULL, NULL, 0);
	CHECK(attr.send_cq);
	qp = ibv_create_qp(id->pd, &attr);
	CHECK(qp);
	modify(id, qp, IBV_QPS_INIT);
	conn.qp_num = qp->qp_num;
	CHECK(!rdma_set_local_ece(id, &ece) && !rdma_connect(id, &conn));
	child = expect(RDMA_CM_EVENT_CONNECT_REQUEST, -1);
	CHECK(!rdma_get_remote_ece(child, &told));
	CHECK(told.vendor_id == ece.vendor_id && told.options == ece.options);
	create_qp(child);
	CHECK(!rdma_accept(child, NULL));
	CHECK(expect(RDMA_CM_EVENT_CONNECT_RESPONSE, -1) == id);
	modify(id, qp, IBV_QPS_RTR);
	modify(id, qp, IBV_QPS_RTS);
	CHECK(!rdma_establish(id));
	CHECK(expect(RDMA_CM_EVENT_ESTABLISHED, -1) == child);
	disconnect(id, child);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(attr.send_cq));
	puts("own queue pair");
}

static void shared_receive_queues(void)
{
	struct rdma_cm_id *id = resolved();
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_init_attr_ex more = {
		.attr = {.max_wr = 4, .max_sge = 1}, .srq_type = IBV_SRQT_BASIC, .pd = id->pd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD};

	CHECK(!rdma_create_srq(id, id->pd, &attr) && id->srq);
	rdma_destroy_srq(id);
	CHECK(!id->srq && !rdma_create_srq_ex(id, &more) && id->srq);
	rdma_destroy_srq(id);
	destroy(id);
	puts("shared receive queues");
}

static void multicast(void)
{
	struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(GROUP)};
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = (struct sockaddr *)&group};
	struct ibv_qp_init_attr qp = qp_attr(IBV_QPT_UD);
	struct rdma_cm_id *id;

	CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_UDP));
	CHECK(!rdma_bind_addr(id, here->ai_dst_addr));
	CHECK(!rdma_create_qp(id, NULL, &qp));
	CHECK(!rdma_join_multicast(id, attr.addr, NULL));
	expect(RDMA_CM_EVENT_MULTICAST_JOIN, -1);
	CHECK(!rdma_leave_multicast(id, attr.addr));
	CHECK(!rdma_join_multicast_ex(id, &attr, NULL));
	expect(RDMA_CM_EVENT_MULTICAST_JOIN, -1);
	CHECK(!rdma_leave_multicast(id, attr.addr));
	destroy(id);
	puts("multicast");
}

/* --- endpoints without an event channel: each call waits for its events --- */

static void *serve(void *arg)
{
	struct rdma_cm_id *end = arg, *id;

	CHECK(!rdma_get_request(end, &id) && !rdma_accept(id, NULL));
	CHECK(!rdma_disconnect(id));
	rdma_destroy_ep(id);
	return NULL;
}

static void endpoints(const char *address)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC,
				      .ai_flags = RAI_PASSIVE}, *from, *to;
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rdma_cm_id *end, *id;
	pthread_t thread;

	CHECK(!rdma_getaddrinfo(address, "7601", &hints, &from));
	hints.ai_flags = 0;
	CHECK(!rdma_getaddrinfo(address, "7601", &hints, &to));
	CHECK(!rdma_create_ep(&end, from, NULL, &attr) && !rdma_listen(end, 1));
	CHECK(!pthread_create(&thread, NULL, serve, end));
	attr = qp_attr(IBV_QPT_RC);
	CHECK(!rdma_create_ep(&id, to, NULL, &attr));
	CHECK(!rdma_connect(id, NULL) && !rdma_disconnect(id));
	rdma_destroy_ep(id);
	CHECK(!pthread_join(thread, NULL));
	rdma_destroy_ep(end);
	rdma_freeaddrinfo(from);
	rdma_freeaddrinfo(to);
	puts("endpoints");
}

static void devices(void)
{
	struct ibv_context **all;
	int n;

	all = rdma_get_devices(&n);
	CHECK(all && n == 1 && all[0]);
	rdma_free_devices(all);
	puts("devices");
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC};

	setlinebuf(stdout);
	CHECK(argc == 2);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i + 1);
	channel = rdma_create_event_channel();
	CHECK(channel && !rdma_getaddrinfo(argv[1], PORT, &hints, &here));
	devices();
	listen_here();
	accepted();
	rejected();
	too_long();
	own_queue_pair();
	shared_receive_queues();
	multicast();
	endpoints(argv[1]);
	destroy(listener);
	rdma_freeaddrinfo(here);
	rdma_destroy_event_channel(channel);
	return 0;
}
