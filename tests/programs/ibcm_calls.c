/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each function of libibcm, on connections of the process with itself: two open devices of one adapter. Prints a line
 * for each part.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "ibcm.h"

#define RDMA_CM_SERVICE htobe64(0x0000000001061234) /* the port 0x1234 of the RDMA CM's port space TCP */

static struct ibv_context *context;
static struct ibv_sa_path_rec path; /* from the adapter to itself */
static struct end server, client;
static struct ib_cm_id *listener;
static __be64 service;
static int mark; /* a context of ids */

static void open_both(void)
{
	open_end(&server, context, 0x123456);
	open_end(&client, context, 0x654321);
	CHECK(!ib_cm_create_id(server.device, &listener, &mark));
	CHECK(listener->context == &mark && listener->device == server.device);
	CHECK(!ib_cm_create_id(client.device, &client.id, NULL));
	CHECK(!ib_cm_listen(listener, IB_CM_ASSIGN_SERVICE_ID, 0));
}

static void close_both(void)
{
	CHECK(!ib_cm_destroy_id(listener));
	CHECK(!ib_cm_destroy_id(client.id));
	if (server.id)
		CHECK(!ib_cm_destroy_id(server.id));
	close_end(&server);
	close_end(&client);
}

/* The server has the id of a REQ. */
static void ask(struct ibv_sa_path_rec *alternate)
{
	struct ib_cm_attr_param attr;
	struct ib_cm_req_param req;
	struct ib_cm_event *event;

	CHECK(!ib_cm_attr_id(listener, &attr));
	service = attr.service_id;
	CHECK((service & IB_CM_ASSIGN_SERVICE_ID_MASK) == IB_CM_ASSIGN_SERVICE_ID && attr.service_mask == ~0ull);
	req = request_for(&client, &path, service);
	req.alternate_path = alternate;
	CHECK(!ib_cm_send_req(client.id, &req));
	event = expect(server.device, IB_CM_REQ_RECEIVED);
	server.id = event->cm_id;
	CHECK(server.id != listener && server.id->context == &mark && event->param.req_rcvd.listen_id == listener);
	CHECK(event->param.req_rcvd.remote_qpn == client.qp->qp_num);
	CHECK(event->param.req_rcvd.starting_psn == client.psn);
	CHECK(event->param.req_rcvd.primary_path->dlid == path.slid);
	CHECK(!event->param.req_rcvd.alternate_path == !alternate);
	CHECK(event->param.req_rcvd.retry_count == 7 && event->param.req_rcvd.port == 1);
	CHECK(!strcmp(event->private_data, "request"));
	CHECK(!ib_cm_ack_event(event));
}

static void establish(struct ibv_sa_path_rec *alternate)
{
	struct ib_cm_event *event;

	ask(alternate);
	accept_request(&server);
	event = expect(client.device, IB_CM_REP_RECEIVED);
	CHECK(event->cm_id == client.id && event->param.rep_rcvd.remote_qpn == server.qp->qp_num);
	CHECK(event->param.rep_rcvd.starting_psn == server.psn && !strcmp(event->private_data, "reply"));
	CHECK(!ib_cm_ack_event(event));
	finish_request(&client);
	CHECK(!ib_cm_send_rtu(client.id, (void *)"ready", 6));
	CHECK(expect_data(server.device, IB_CM_RTU_RECEIVED, "ready") == server.id);
	modify(&server, IBV_QPS_RTS);
}

static void connected(void)
{
	struct ib_cm_attr_param ours, theirs;

	open_both();
	establish(NULL);
	CHECK(!ib_cm_attr_id(client.id, &ours) && !ib_cm_attr_id(server.id, &theirs));
	CHECK(ours.service_id == service && ours.local_id == theirs.remote_id && ours.remote_id == theirs.local_id);
	send_text(&client, "to the server");
	await_completion(&server, IBV_WC_RECV);
	CHECK(!strcmp(server.memory, "to the server"));
	send_text(&server, "to the client");
	await_completion(&client, IBV_WC_RECV);
	CHECK(!strcmp(client.memory, "to the client"));
	CHECK(!ib_cm_send_dreq(client.id, (void *)"bye", 4));
	CHECK(expect_data(server.device, IB_CM_DREQ_RECEIVED, "bye") == server.id);
	CHECK(!ib_cm_send_drep(server.id, (void *)"farewell", 9));
	CHECK(expect_data(client.device, IB_CM_DREP_RECEIVED, "farewell") == client.id);
	CHECK(!ib_cm_ack_event(expect(client.device, IB_CM_TIMEWAIT_EXIT)));
	close_both();
	puts("connected");
}

static void rejected(void)
{
	struct ib_cm_event *event;

	open_both();
	ask(NULL);
	CHECK(!ib_cm_send_rej(server.id, IB_CM_REJ_CONSUMER_DEFINED, (void *)"ari", 4, (void *)"no", 3));
	event = expect(client.device, IB_CM_REJ_RECEIVED);
	CHECK(event->param.rej_rcvd.reason == IB_CM_REJ_CONSUMER_DEFINED && event->param.rej_rcvd.ari_length == 4);
	CHECK(!strcmp(event->param.rej_rcvd.ari, "ari") && !strcmp(event->private_data, "no"));
	CHECK(!ib_cm_ack_event(event));
	close_both();
	puts("rejected");
}

/* The client gives up when the server has not accepted: its id has no name in softibd yet. */
static void withdrawn(void)
{
	struct ib_cm_event *event;

	open_both();
	ask(NULL);
	CHECK(!ib_cm_send_mra(server.id, 22, (void *)"wait", 5));
	event = expect(client.device, IB_CM_MRA_RECEIVED);
	CHECK(event->param.mra_rcvd.service_timeout == 22 && !strcmp(event->private_data, "wait"));
	CHECK(!ib_cm_ack_event(event));
	CHECK(!ib_cm_send_rej(client.id, IB_CM_REJ_TIMEOUT, NULL, 0, NULL, 0));
	event = expect(server.device, IB_CM_REJ_RECEIVED);
	CHECK(event->cm_id == server.id && event->param.rej_rcvd.reason == IB_CM_REJ_TIMEOUT);
	CHECK(!ib_cm_ack_event(event));
	close_both();
	puts("withdrawn");
}

/* Data arrive before the RTU, which is not sent. */
static void established_by_data(void)
{
	open_both();
	ask(NULL);
	accept_request(&server);
	CHECK(!ib_cm_ack_event(expect(client.device, IB_CM_REP_RECEIVED)));
	finish_request(&client);
	send_text(&client, "early");
	await_completion(&server, IBV_WC_RECV);
	CHECK(!ib_cm_notify(server.id, IBV_EVENT_COMM_EST));
	CHECK(!ib_cm_ack_event(expect(server.device, IB_CM_USER_ESTABLISHED)));
	CHECK_FAILS(ib_cm_notify(server.id, IBV_EVENT_COMM_EST), EISCONN);
	close_both();
	puts("established by data");
}

static void alternate_path(void)
{
	struct ib_cm_event *event;

	open_both();
	establish(&path);
	CHECK(!ib_cm_send_lap(client.id, &path, (void *)"other", 6));
	event = expect(server.device, IB_CM_LAP_RECEIVED);
	CHECK(event->param.lap_rcvd.alternate_path->dlid == path.slid && !strcmp(event->private_data, "other"));
	CHECK(!ib_cm_ack_event(event));
	CHECK(!ib_cm_send_apr(server.id, IB_CM_APR_REJECT, (void *)"info", 5, (void *)"stay", 5));
	event = expect(client.device, IB_CM_APR_RECEIVED);
	CHECK(event->param.apr_rcvd.ap_status == IB_CM_APR_REJECT && event->param.apr_rcvd.info_len == 5);
	CHECK(!strcmp(event->param.apr_rcvd.apr_info, "info") && !strcmp(event->private_data, "stay"));
	CHECK(!ib_cm_ack_event(event));
	close_both();
	puts("alternate path");
}

static void resolved(void)
{
	struct ib_cm_sidr_req_param req = {.path = &path, .timeout_ms = 60000, .private_data = (void *)"who",
					   .private_data_len = 4, .max_cm_retries = 3};
	struct ib_cm_sidr_rep_param rep = {.qp_num = 0x777, .qkey = 0x888, .info = (void *)"info", .info_length = 5,
					   .private_data = (void *)"me", .private_data_len = 3};
	struct ib_cm_attr_param attr;
	struct ib_cm_event *event;

	open_both();
	CHECK(!ib_cm_attr_id(listener, &attr));
	req.service_id = attr.service_id;
	CHECK(!ib_cm_send_sidr_req(client.id, &req));
	event = expect(server.device, IB_CM_SIDR_REQ_RECEIVED);
	server.id = event->cm_id;
	CHECK(event->param.sidr_req_rcvd.listen_id == listener && event->param.sidr_req_rcvd.pkey == 0xffff);
	CHECK(event->param.sidr_req_rcvd.port == 1 && !strcmp(event->private_data, "who"));
	CHECK(!ib_cm_ack_event(event));
	CHECK(!ib_cm_send_sidr_rep(server.id, &rep));
	event = expect(client.device, IB_CM_SIDR_REP_RECEIVED);
	CHECK(event->param.sidr_rep_rcvd.status == IB_SIDR_SUCCESS && event->param.sidr_rep_rcvd.qpn == 0x777);
	CHECK(event->param.sidr_rep_rcvd.qkey == 0x888 && event->param.sidr_rep_rcvd.info_len == 5);
	CHECK(!strcmp(event->param.sidr_rep_rcvd.info, "info") && !strcmp(event->private_data, "me"));
	CHECK(!ib_cm_ack_event(event));
	close_both();
	puts("resolved");
}

static void nobody_listens(void)
{
	struct ib_cm_event *event;
	struct ib_cm_req_param req;

	open_both();
	req = request_for(&client, &path, htobe64(0x1000000000009999));
	CHECK(!ib_cm_send_req(client.id, &req));
	event = expect(client.device, IB_CM_REJ_RECEIVED);
	CHECK(event->param.rej_rcvd.reason == IB_CM_REJ_INVALID_SERVICE_ID && !event->param.rej_rcvd.ari_length);
	CHECK(!ib_cm_ack_event(event));
	close_both();
	puts("nobody listens");
}

static void refused(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ib_cm_req_param req;
	struct ib_cm_event *event;
	char too_long[IB_CM_REQ_PRIVATE_DATA_SIZE + 1] = {0};
	int mask;

	open_both();
	CHECK_FAILS(ib_cm_send_req(client.id, NULL), EINVAL);
	CHECK_FAILS(ib_cm_send_rep(client.id, NULL), EINVAL);
	CHECK_FAILS(ib_cm_send_sidr_req(client.id, NULL), EINVAL);
	CHECK_FAILS(ib_cm_send_sidr_rep(client.id, NULL), EINVAL);
	CHECK_FAILS(ib_cm_send_lap(client.id, NULL, NULL, 0), EINVAL);
	CHECK_FAILS(ib_cm_attr_id(client.id, NULL), EINVAL);
	CHECK_FAILS(ib_cm_get_event(client.device, NULL), EINVAL);
	CHECK_FAILS(ib_cm_ack_event(NULL), EINVAL);
	CHECK_FAILS(ib_cm_send_rtu(client.id, NULL, 0), EINVAL);
	CHECK_FAILS(ib_cm_send_dreq(client.id, NULL, 0), EINVAL);
	CHECK_FAILS(ib_cm_init_qp_attr(client.id, &attr, &mask), EINVAL);
	CHECK_FAILS(ib_cm_listen(client.id, RDMA_CM_SERVICE, 0), EINVAL);
	CHECK_FAILS(ib_cm_listen(listener, htobe64(0x1000), 0), EINVAL); /* it listens */
	req = request_for(&client, &path, service);
	req.private_data = too_long;
	req.private_data_len = sizeof(too_long);
	CHECK_FAILS(ib_cm_send_req(client.id, &req), EINVAL);
	CHECK(!fcntl(client.device->fd, F_SETFL, O_NONBLOCK));
	CHECK_FAILS(ib_cm_get_event(client.device, &event), EAGAIN);
	close_both();
	puts("refused");
}

/* --- two threads --- */

static void *destroy_server(void *arg)
{
	CHECK(!ib_cm_destroy_id(server.id));
	return NULL;
}

/* ib_cm_destroy_id() returns when the event that was taken is acknowledged. */
static void destroyed_while_in_use(void)
{
	struct ib_cm_event *event;
	pthread_t thread;

	open_both();
	ask(NULL);
	accept_request(&server);
	CHECK(!ib_cm_ack_event(expect(client.device, IB_CM_REP_RECEIVED)));
	CHECK(!ib_cm_send_rtu(client.id, NULL, 0));
	event = expect(server.device, IB_CM_RTU_RECEIVED);
	CHECK(!pthread_create(&thread, NULL, destroy_server, NULL));
	CHECK(!ib_cm_ack_event(expect(client.device, IB_CM_DREQ_RECEIVED))); /* softibd has destroyed it */
	CHECK(pthread_tryjoin_np(thread, NULL) == EBUSY);
	CHECK(!ib_cm_ack_event(event));
	CHECK(!pthread_join(thread, NULL));
	server.id = NULL;
	close_both();
	puts("destroyed while in use");
}

/* An event of an id that goes is not taken by anybody, and its announcement is gone as well. */
static void gone_with_its_id(void)
{
	struct pollfd poll_fd;
	struct ib_cm_event *event;

	open_both();
	ask(NULL);
	accept_request(&server);
	poll_fd = (struct pollfd){.fd = client.device->fd, .events = POLLIN};
	CHECK(poll(&poll_fd, 1, -1) == 1);
	CHECK(!ib_cm_destroy_id(client.id));
	CHECK(!poll(&poll_fd, 1, 0));
	CHECK(!fcntl(client.device->fd, F_SETFL, O_NONBLOCK));
	CHECK_FAILS(ib_cm_get_event(client.device, &event), EAGAIN);
	CHECK(!ib_cm_create_id(client.device, &client.id, NULL));
	close_both();
	puts("gone with its id");
}

int main(void)
{
	union ibv_gid gid;

	context = open_first_device();
	CHECK(!ibv_query_gid(context, 1, 0, &gid));
	path = path_to(context, lid_of(context), &gid);
	connected();
	rejected();
	withdrawn();
	established_by_data();
	alternate_path();
	resolved();
	nobody_listens();
	refused();
	destroyed_while_in_use();
	gone_with_its_id();
	CHECK(!ibv_close_device(context));
	return 0;
}
