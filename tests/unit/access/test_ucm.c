/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ucm endpoint: what two programs say to each other by its commands, what becomes of a program's ids when it
 * or its adapter goes, and what softibd refuses and does not keep.
 */
#include "../test.h"

#include "access/quota.h"
#include "access/ucm_private.h"
#include "ucm_program.h"

enum { LISTENER_UID = 1, CLIENT_UID, SERVER_UID };

static struct program server, client;
static u32 listener, caller, called; /* ids: the server's first, the client's, and that of the REQ */

static int open_all(void **state)
{
	net_up();
	assert_int_equal(enter(&server, "n1"), 0);
	assert_int_equal(enter(&client, "n2"), 0);
	return 0;
}

static int close_all(void **state)
{
	if (server.news >= 0)
		leave(&server);
	if (client.news >= 0)
		leave(&client);
	net_down();
	return 0;
}

/* --- steps of a connection --- */

static struct ib_ucm_req request(void)
{
	return (struct ib_ucm_req){
		.id = caller,
		.qpn = 0x111,
		.qp_type = IB_QPT_RC,
		.psn = 0x1000,
		.sid = cpu_to_be64(SERVICE),
		.data = 1, /* addresses are never looked at, only whether they are 0 */
		.primary_path = 1,
		.len = 3,
		.responder_resources = 4,
		.initiator_depth = 3,
		.remote_cm_response_timeout = 20,
		.local_cm_response_timeout = 19,
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.max_cm_retries = 15,
	};
}

static int send_request(const struct ib_ucm_req *req)
{
	const struct ib_user_path_rec path = path_to(2, 1);

	begin(&client, IB_USER_CM_CMD_SEND_REQ, req, sizeof(*req), 0);
	follow(&client, "req", req->len);
	if (req->primary_path)
		follow(&client, &path, sizeof(path));
	if (req->alternate_path)
		follow(&client, &path, sizeof(path));
	return ask(&client);
}

static void make_ids(void)
{
	assert_int_equal(make_id(&server, LISTENER_UID, &listener), 0);
	assert_int_equal(make_id(&client, CLIENT_UID, &caller), 0);
	assert_int_equal(listen_for(&server, listener, SERVICE, 0), 0);
}

/* The server has taken the event of a REQ, whose id is @called. */
static void call_server(void)
{
	struct ib_ucm_req req;

	make_ids();
	req = request();
	assert_int_equal(send_request(&req), 0);
	assert_int_equal(await(&server), IB_CM_REQ_RECEIVED);
	called = server.event.id;
}

static int accept_request(void)
{
	const struct ib_ucm_rep rep = {.uid = SERVER_UID, .id = called, .qpn = 0x222, .psn = 0x2000, .len = 3,
				       .responder_resources = 3, .initiator_depth = 4, .rnr_retry_count = 5};

	return SAY(&server, SEND_REP, &rep, "rep", 3);
}

static void connect_both(void)
{
	struct ib_ucm_private_data rtu;

	call_server();
	assert_int_equal(accept_request(), 0);
	assert_int_equal(await(&client), IB_CM_REP_RECEIVED);
	rtu = (struct ib_ucm_private_data){.id = caller, .len = 3};
	assert_int_equal(SAY(&client, SEND_RTU, &rtu, "rtu", 3), 0);
	assert_int_equal(await(&server), IB_CM_RTU_RECEIVED);
}

/* Private data fill the message; what the sender did not give is 0. */
static void has_data(const struct program *p, const char *text, size_t bytes)
{
	assert_int_equal(p->data_len, bytes);
	assert_true(p->event.present & IB_UCM_PRES_DATA);
	assert_memory_equal(p->data, text, strlen(text));
	for (size_t i = strlen(text); i < bytes; i++)
		assert_int_equal(p->data[i], 0);
}

/* --- messages --- */

static void test_a_request(void **state)
{
	const struct ib_user_path_rec path = path_to(1, 2);
	const struct ib_ucm_req_event_resp *req = &server.event.u.req_resp;

	call_server();
	assert_int_equal(server.event.uid, LISTENER_UID);
	assert_int_not_equal(called, listener);
	assert_int_equal(server.event.present, IB_UCM_PRES_DATA | IB_UCM_PRES_PRIMARY);
	has_data(&server, "req", IB_CM_REQ_PRIVATE_DATA_SIZE);
	assert_int_equal(req->remote_qpn, 0x111);
	assert_int_equal(req->starting_psn, 0x1000);
	assert_int_equal(req->qp_type, IB_QPT_RC);
	assert_int_equal(req->responder_resources, 3); /* the READs that the client may issue */
	assert_int_equal(req->initiator_depth, 4);
	assert_int_equal(req->local_cm_response_timeout, 20);
	assert_int_equal(req->remote_cm_response_timeout, 19);
	assert_int_equal(req->retry_count, 7);
	assert_int_equal(req->rnr_retry_count, 6);
	assert_int_equal(req->flow_control, 1);
	assert_int_equal(req->port, 1);
	assert_int_equal(req->remote_ca_guid, net->node[2]->ib.node_guid);
	assert_memory_equal(req->primary_path.sgid, path.sgid, sizeof(path.sgid));
	assert_memory_equal(req->primary_path.dgid, path.dgid, sizeof(path.dgid));
	assert_int_equal(req->primary_path.dlid, path.dlid);
	assert_int_equal(req->primary_path.sl, 2);
}

static void test_a_connection(void **state)
{
	struct ib_ucm_private_data end = {.id = caller, .len = 4};

	connect_both();
	assert_int_equal(server.event.uid, SERVER_UID); /* since SEND_REP */
	has_data(&server, "rtu", IB_CM_RTU_PRIVATE_DATA_SIZE);
	assert_int_equal(client.event.uid, CLIENT_UID);
	assert_int_equal(client.event.u.rep_resp.remote_qpn, 0x222);
	assert_int_equal(client.event.u.rep_resp.starting_psn, 0x2000);
	assert_int_equal(client.event.u.rep_resp.responder_resources, 4);
	assert_int_equal(client.event.u.rep_resp.rnr_retry_count, 5);
	end.id = caller;
	assert_int_equal(SAY(&client, SEND_DREQ, &end, "dreq", 4), 0);
	assert_int_equal(await(&server), IB_CM_DREQ_RECEIVED);
	has_data(&server, "dreq", IB_CM_DREQ_PRIVATE_DATA_SIZE);
	end.id = called;
	assert_int_equal(SAY(&server, SEND_DREP, &end, "drep", 4), 0);
	assert_int_equal(await(&client), IB_CM_DREP_RECEIVED);
	has_data(&client, "drep", IB_CM_DREP_PRIVATE_DATA_SIZE);
	assert_int_equal(await(&client), IB_CM_TIMEWAIT_EXIT);
	assert_int_equal(client.event.present, 0);
	assert_int_equal(destroy(&client, caller).events_reported, 3); /* REP, DREP, exit */
	assert_int_equal(destroy(&server, listener).events_reported, 1);
	assert_int_equal(destroy(&server, called).events_reported, 2);
}

static struct ib_uverbs_qp_attr qp_attr(struct program *p, u32 id, u32 state)
{
	const struct ib_ucm_init_qp_attr cmd = {.id = id, .qp_state = state};
	struct ib_uverbs_qp_attr attr;

	assert_int_equal(ASK(p, INIT_QP_ATTR, &cmd, sizeof(attr)), 0);
	assert_int_equal(p->heard_bytes, sizeof(attr));
	memcpy(&attr, p->heard.body, sizeof(attr));
	return attr;
}

static void test_attributes(void **state)
{
	struct ib_ucm_attr_id cmd = {0};
	struct ib_ucm_attr_id_resp attr[2];

	connect_both();
	assert_int_equal(qp_attr(&client, caller, IB_QPS_INIT).port_num, 1);
	assert_int_equal(qp_attr(&client, caller, IB_QPS_RTR).dest_qp_num, 0x222);
	assert_int_equal(qp_attr(&client, caller, IB_QPS_RTR).ah_attr.dlid, 11);
	assert_int_equal(qp_attr(&server, called, IB_QPS_RTR).rq_psn, 0x2000);
	assert_int_equal(qp_attr(&server, called, IB_QPS_RTS).sq_psn, 0x1000);
	cmd.id = caller;
	assert_int_equal(ASK(&client, ATTR_ID, &cmd, sizeof(attr[0])), 0);
	memcpy(&attr[0], client.heard.body, sizeof(attr[0]));
	cmd.id = called;
	assert_int_equal(ASK(&server, ATTR_ID, &cmd, sizeof(attr[0])), 0);
	memcpy(&attr[1], server.heard.body, sizeof(attr[1]));
	assert_int_equal(attr[0].service_id, cpu_to_be64(SERVICE));
	assert_int_equal(attr[0].service_mask, ~0ull);
	assert_int_equal(attr[0].local_id, attr[1].remote_id);
	assert_int_equal(attr[0].remote_id, attr[1].local_id);
}

static void test_a_refusal(void **state)
{
	struct ib_ucm_info rej;

	call_server();
	rej = (struct ib_ucm_info){.id = called, .status = IB_CM_REJ_INVALID_MTU, .info_len = 2, .data_len = 3};
	begin(&server, IB_USER_CM_CMD_SEND_REJ, &rej, sizeof(rej), 0);
	follow(&server, "no!", 3);
	follow(&server, "\x03\x01", 2);
	assert_int_equal(ask(&server), 0);
	assert_int_equal(await(&client), IB_CM_REJ_RECEIVED);
	assert_int_equal(client.event.u.rej_resp.reason, IB_CM_REJ_INVALID_MTU);
	has_data(&client, "no!", IB_CM_REJ_PRIVATE_DATA_SIZE);
	assert_true(client.event.present & IB_UCM_PRES_INFO);
	assert_int_equal(client.info_len, 2);
	assert_memory_equal(client.info, "\x03\x01", 2);
}

static void test_more_time(void **state)
{
	struct ib_ucm_mra mra;

	call_server();
	mra = (struct ib_ucm_mra){.id = called, .len = 4, .timeout = 17};
	assert_int_equal(SAY(&server, SEND_MRA, &mra, "wait", 4), 0);
	assert_int_equal(await(&client), IB_CM_MRA_RECEIVED);
	assert_int_equal(client.event.u.mra_resp.timeout, 17);
	has_data(&client, "wait", IB_CM_MRA_PRIVATE_DATA_SIZE);
	assert_int_equal(accept_request(), 0);
	assert_int_equal(await(&client), IB_CM_REP_RECEIVED);
}

static void test_an_alternate_path(void **state)
{
	const struct ib_user_path_rec path = path_to(2, 1), back = path_to(1, 2);
	struct ib_ucm_info apr;
	struct ib_ucm_lap lap;

	connect_both();
	lap = (struct ib_ucm_lap){.id = caller, .path = 1, .len = 3};
	begin(&client, IB_USER_CM_CMD_SEND_LAP, &lap, sizeof(lap), 0);
	follow(&client, "lap", 3);
	follow(&client, &path, sizeof(path));
	assert_int_equal(ask(&client), 0);
	assert_int_equal(await(&server), IB_CM_LAP_RECEIVED);
	has_data(&server, "lap", IB_CM_LAP_PRIVATE_DATA_SIZE);
	assert_true(server.event.present & IB_UCM_PRES_ALTERNATE);
	assert_memory_equal(server.event.u.lap_resp.path.dgid, back.dgid, sizeof(back.dgid));
	apr = (struct ib_ucm_info){.id = called, .status = IB_CM_APR_REJECT, .info_len = 1, .data_len = 3};
	begin(&server, IB_USER_CM_CMD_SEND_APR, &apr, sizeof(apr), 0);
	follow(&server, "apr", 3);
	follow(&server, "i", 1);
	assert_int_equal(ask(&server), 0);
	assert_int_equal(await(&client), IB_CM_APR_RECEIVED);
	assert_int_equal(client.event.u.apr_resp.status, IB_CM_APR_REJECT);
	has_data(&client, "apr", IB_CM_APR_PRIVATE_DATA_SIZE);
	assert_int_equal(client.info_len, 1);
}

static void test_a_service_is_resolved(void **state)
{
	const struct ib_user_path_rec path = path_to(2, 1);
	struct ib_ucm_sidr_req req;
	struct ib_ucm_sidr_rep rep;

	make_ids();
	req = (struct ib_ucm_sidr_req){.id = caller, .timeout = 10000, .sid = cpu_to_be64(SERVICE),
				       .path = 1, .len = 2, .max_cm_retries = 3};
	begin(&client, IB_USER_CM_CMD_SEND_SIDR_REQ, &req, sizeof(req), 0);
	follow(&client, "hi", 2);
	follow(&client, &path, sizeof(path));
	assert_int_equal(ask(&client), 0);
	assert_int_equal(await(&server), IB_CM_SIDR_REQ_RECEIVED);
	assert_int_equal(server.event.uid, LISTENER_UID);
	assert_int_equal(server.event.u.sidr_req_resp.pkey, 0xffff);
	assert_int_equal(server.event.u.sidr_req_resp.port, 1);
	has_data(&server, "hi", IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE);
	rep = (struct ib_ucm_sidr_rep){.id = server.event.id, .qpn = 0x333, .qkey = 0x444, .info_len = 1, .data_len = 2};
	begin(&server, IB_USER_CM_CMD_SEND_SIDR_REP, &rep, sizeof(rep), 0);
	follow(&server, "it", 2);
	follow(&server, "i", 1);
	assert_int_equal(ask(&server), 0);
	assert_int_equal(await(&client), IB_CM_SIDR_REP_RECEIVED);
	assert_int_equal(client.event.u.sidr_rep_resp.status, IB_SIDR_SUCCESS);
	assert_int_equal(client.event.u.sidr_rep_resp.qpn, 0x333);
	assert_int_equal(client.event.u.sidr_rep_resp.qkey, 0x444);
	has_data(&client, "it", IB_CM_SIDR_REP_PRIVATE_DATA_SIZE);
	assert_int_equal(client.info_len, 1);
}

/* The RTU is lost; data on the queue pair stand for it. */
static void test_the_queue_pair_is_told_first(void **state)
{
	struct ib_ucm_private_data rtu;
	struct ib_ucm_notify notify;

	call_server();
	assert_int_equal(accept_request(), 0);
	assert_int_equal(await(&client), IB_CM_REP_RECEIVED);
	net->lose = net_lose_all;
	rtu = (struct ib_ucm_private_data){.id = caller};
	assert_int_equal(SAY(&client, SEND_RTU, &rtu, "", 0), 0);
	notify = (struct ib_ucm_notify){.id = called, .event = IB_EVENT_COMM_EST};
	assert_int_equal(ASK(&server, NOTIFY, &notify, 0), 0);
	assert_int_equal(await(&server), IB_CM_USER_ESTABLISHED);
	assert_int_equal(ASK(&server, NOTIFY, &notify, 0), -EISCONN);
	net->lose = net_lose_nth;
}

/* --- the end of a program --- */

static void test_a_server_dies_before_it_accepts(void **state)
{
	call_server();
	leave(&server);
	assert_int_equal(await(&client), IB_CM_REJ_RECEIVED);
}

/* It has not even taken the event. */
static void test_a_server_dies_before_it_looks(void **state)
{
	struct ib_ucm_req req;

	make_ids();
	req = request();
	assert_int_equal(send_request(&req), 0);
	await_news(&server);
	leave(&server);
	assert_int_equal(await(&client), IB_CM_REJ_RECEIVED);
}

static void test_a_client_dies_connected(void **state)
{
	connect_both();
	leave(&client);
	assert_int_equal(await(&server), IB_CM_DREQ_RECEIVED);
	assert_int_equal(server.event.uid, SERVER_UID);
}

/* A listener that goes takes along the requests that its program has not taken, and no others. */
static void test_a_listener_goes(void **state)
{
	struct ib_ucm_req req;

	call_server();
	req = request();
	req.qpn++;
	assert_int_equal(make_id(&client, CLIENT_UID, &req.id), 0);
	assert_int_equal(send_request(&req), 0);
	await_news(&server);
	assert_int_equal(destroy(&server, listener).excess, 1);
	assert_int_equal(await(&client), IB_CM_REJ_RECEIVED);
	assert_int_equal(client.event.id, req.id);
	assert_int_equal(accept_request(), 0);
	assert_int_equal(await(&client), IB_CM_REP_RECEIVED);
	assert_int_equal(take(&server), -EAGAIN);
}

/* Its commands fail, and the program closes it in its own time. */
static void test_an_adapter_is_removed(void **state)
{
	struct ib_ucm_req req;
	u32 id;

	connect_both();
	ib_unregister_device(&net->node[2]->ib);
	req = request();
	assert_int_equal(send_request(&req), -ENODEV);
	assert_int_equal(make_id(&client, 1, &id), -ENODEV);
	assert_int_equal(destroy(&client, caller).events_reported, 1);
	leave(&client);
	assert_int_equal(enter(&client, "n2"), -ENOENT);
}

/* --- events --- */

/* The program has given the id no name yet: it knows it by its number. */
static void test_events_of_an_id_without_a_name(void **state)
{
	struct ib_ucm_info rej;

	call_server();
	rej = (struct ib_ucm_info){.id = caller, .status = IB_CM_REJ_TIMEOUT};
	begin(&client, IB_USER_CM_CMD_SEND_REJ, &rej, sizeof(rej), 0);
	assert_int_equal(ask(&client), 0);
	assert_int_equal(await(&server), IB_CM_REJ_RECEIVED);
	assert_int_equal(server.event.uid, 0);
	assert_int_equal(server.event.id, called);
}

static void test_an_event_that_is_not_taken_is_in_excess(void **state)
{
	call_server();
	assert_int_equal(accept_request(), 0);
	await_news(&client);
	assert_int_equal(destroy(&client, caller).excess, 1);
	assert_true(is_told(&client)); /* which the program reads back */
	assert_int_equal(take(&client), -EAGAIN);
}

static void test_an_event_waits_for_room(void **state)
{
	struct ib_ucm_event_get cmd = {.data_len = IB_CM_REP_PRIVATE_DATA_SIZE - 1};

	call_server();
	assert_int_equal(accept_request(), 0);
	await_news(&client);
	assert_int_equal(ASK(&client, EVENT, &cmd, sizeof(struct ib_ucm_event_resp) - 1), -ENOSPC);
	assert_int_equal(ASK(&client, EVENT, &cmd, sizeof(struct ib_ucm_event_resp)), -ENOMEM);
	cmd.data_len++;
	assert_int_equal(ASK(&client, EVENT, &cmd, sizeof(struct ib_ucm_event_resp)), 0);
	assert_int_equal(take(&client), -EAGAIN);
}

/* --- what softibd refuses --- */

static void test_services_of_others(void **state)
{
	static const struct {
		u64 service, mask;
		int ret;
	} cases[] = {
		{0x0000000001061234, 0, -EINVAL},		   /* the RDMA CM's */
		{0x0000000001061234, 0xffffffffffff0000, -EINVAL}, /* a part of them */
		{0x0000000000000034, 0xff, -EINVAL},		   /* some of them, among others */
		{0x0000000000011234, 0, -EINVAL},		   /* SDP's */
		{0x0200000000000001, 0, -EINVAL},		   /* those that the CM assigns */
		{0x0000000000001000, 0, 0},
		{0x1000000000000000, 0xff00000000000000, 0},
	};
	u32 id;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(make_id(&server, 1, &id), 0);
		assert_int_equal(listen_for(&server, id, cases[i].service, cases[i].mask), cases[i].ret);
	}
	assert_int_equal(make_id(&server, 1, &id), 0);
	assert_int_equal(listen_for(&server, id, 0x1000, 0), -EBUSY);
	assert_int_equal(listen_for(&server, id, 0x0200000000000000, 0), 0); /* any */
}

static void test_ids_of_another_program(void **state)
{
	struct ib_ucm_destroy_id cmd;

	connect_both();
	cmd = (struct ib_ucm_destroy_id){.id = called};
	assert_int_equal(ASK(&client, DESTROY_ID, &cmd, 8), -ENOENT);
	assert_int_equal(ASK(&client, ATTR_ID, &cmd, 64), -ENOENT);
	assert_int_equal(ASK(&server, ATTR_ID, &cmd, 64), 0);
}

/* Every command, without its struct, with a struct that is too short, and with an id that nobody has */
static void test_malformed_commands(void **state)
{
	u8 body[256] = {0};
	int right;

	memset(body, 0xff, sizeof(body));
	for (u32 command = 0; command < 40; command++) {
		right = 0;
		for (size_t bytes = 0; bytes < 128; bytes++) {
			begin(&client, command, body, bytes, 1024);
			switch (ask(&client)) {
			case 0: assert_int_equal(command, IB_USER_CM_CMD_CREATE_ID); right++; break;
			case -EAGAIN: assert_int_equal(command, IB_USER_CM_CMD_EVENT); right++; break;
			case -ENOENT: right++; break;
			default: assert_int_equal(client.heard.reply.error, -EINVAL);
			}
		}
		assert_int_equal(right, command <= IB_USER_CM_CMD_INIT_QP_ATTR); /* one length is that of the struct */
	}
	begin(&client, IB_USER_CM_CMD_CREATE_ID, body, sizeof(struct ib_ucm_create_id), 8);
	client.said_bytes = sizeof(client.said.hdr) - 1;
	assert_int_equal(ask(&client), -EINVAL);
	client.said_bytes = sizeof(client.said.hdr) + sizeof(struct ib_ucm_create_id) - 1;
	assert_int_equal(ask(&client), -EINVAL);
	client.said_bytes++;
	assert_int_equal(ask(&client), 0);
	client.said.hdr.out = 3;
	assert_int_equal(ask(&client), -ENOSPC);
}

/* A REQ lacks a part of what its struct promises, or has more. */
static void test_what_follows_has_its_length(void **state)
{
	const struct ib_user_path_rec path = path_to(2, 1);
	struct ib_ucm_req req;
	size_t whole;

	make_ids();
	req = request();
	begin(&client, IB_USER_CM_CMD_SEND_REQ, &req, sizeof(req), 0);
	follow(&client, "req", 3);
	follow(&client, &path, sizeof(path));
	whole = client.said_bytes;
	for (client.said_bytes = sizeof(client.said.hdr) + sizeof(req); client.said_bytes <= whole + 4; client.said_bytes++)
		if (client.said_bytes != whole)
			assert_int_equal(ask(&client), -EINVAL);
	req.primary_path = 0;
	assert_int_equal(send_request(&req), -EINVAL);
	req = request();
	req.len = IB_CM_REQ_PRIVATE_DATA_SIZE + 1;
	begin(&client, IB_USER_CM_CMD_SEND_REQ, &req, sizeof(req), 0);
	follow(&client, (u8[100]){0}, req.len);
	follow(&client, &(struct ib_user_path_rec){0}, sizeof(struct ib_user_path_rec));
	assert_int_equal(ask(&client), -EINVAL);
	req = request();
	req.rnr_retry_count = 8; /* three bits */
	assert_int_equal(send_request(&req), -EINVAL);
	req.rnr_retry_count = 7;
	assert_int_equal(send_request(&req), 0);
}

/* --- what softibd keeps --- */

static void drop_other(struct quota_share *quota)
{
	quota_leave(quota);
}

static unsigned int make_as_many(unsigned int most)
{
	unsigned int made = 0;
	u32 id;

	while (made < most && !make_id(&client, 1, &id))
		made++;
	return made;
}

static void test_a_session_has_so_many_ids(void **state)
{
	assert_int_equal(make_as_many(UCM_IDS_MAX + 20), UCM_IDS_MAX);
}

static void test_ids_are_of_the_share_of_their_node(void **state)
{
	struct quota_share other = {0}; /* another session of a program of n2 */
	struct quota_node *charged;

	quota_arrive(&other, rt, client.news, 1, drop_other);
	assert_int_equal(quota_open(&other, "n2"), 0);
	charged = quota_take(&other, QUOTA_NODE_BYTES);
	assert_non_null(charged);
	assert_int_equal(make_as_many(1000), QUOTA_FREE_BYTES / UCM_ID_BYTES);
	quota_give(charged, &other, QUOTA_NODE_BYTES);
	assert_int_equal(make_as_many(1000), 1000);
	quota_leave(&other);
}

/* The server does not look. A request for which there is no room is rejected, by the CM. */
static void test_requests_that_nobody_takes(void **state)
{
	struct quota_share other = {0};
	struct quota_node *charged;
	struct ib_ucm_req req;
	unsigned int kept = 0;
	bool told;

	make_ids();
	quota_arrive(&other, rt, server.news, 1, drop_other);
	assert_int_equal(quota_open(&other, "n1"), 0);
	charged = quota_take(&other, QUOTA_NODE_BYTES - UCM_ID_BYTES); /* that of the listener */
	assert_non_null(charged);
	req = request();
	do {
		assert_int_equal(make_id(&client, 1, &req.id), 0);
		req.qpn++;
		assert_int_equal(send_request(&req), 0);
		while (!(told = is_told(&server)) && !is_told(&client))
			turn(1);
	} while (told && ++kept < 1000);
	assert_int_equal(take(&client), 0);
	assert_int_equal(client.event.event, IB_CM_REJ_RECEIVED);
	assert_int_equal(kept, (QUOTA_FREE_BYTES - UCM_ID_BYTES) / (UCM_ID_BYTES + sizeof(struct ucm_event)));
	quota_give(charged, &other, QUOTA_NODE_BYTES - UCM_ID_BYTES);
	quota_leave(&other);
}

/* No listener has more requests than so many waiting; those that the program has taken are its own. */
static void test_a_listener_has_so_many_requests(void **state)
{
	struct ib_ucm_req req;

	make_ids();
	req = request();
	for (unsigned int i = 0; i < UCM_BACKLOG + 2; i++) {
		assert_int_equal(make_id(&client, 1, &req.id), 0);
		req.qpn++;
		assert_int_equal(send_request(&req), 0);
		if (i == 0) {
			assert_int_equal(await(&server), IB_CM_REQ_RECEIVED);
			continue;
		}
		while (!is_told(&server) && !is_told(&client))
			turn(1);
		assert_int_equal(take(&client), i <= UCM_BACKLOG ? -EAGAIN : 0);
	}
	assert_int_equal(client.event.event, IB_CM_REJ_RECEIVED);
	assert_int_equal(destroy(&server, listener).excess, UCM_BACKLOG);
}

static int count_ids(const struct rdma_restrack_entry *entry, void *ctx)
{
	char comm[RDMA_RESTRACK_COMM_BYTES] = "test_ucm";

	assert_string_equal(entry->comm, comm);
	assert_int_equal(entry->pid, getpid());
	++*(int *)ctx;
	return 0;
}

/* `softib resource show` names the program, also of ids that requests have brought. */
static void test_ids_have_an_owner(void **state)
{
	int found = 0;

	call_server();
	rdma_restrack_for_each(&net->node[1]->ib, RDMA_RESTRACK_CM_ID, count_ids, &found);
	assert_int_equal(found, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_request),
		TEST(test_a_connection),
		TEST(test_attributes),
		TEST(test_a_refusal),
		TEST(test_more_time),
		TEST(test_an_alternate_path),
		TEST(test_a_service_is_resolved),
		TEST(test_the_queue_pair_is_told_first),
		TEST(test_a_server_dies_before_it_accepts),
		TEST(test_a_server_dies_before_it_looks),
		TEST(test_a_client_dies_connected),
		TEST(test_a_listener_goes),
		TEST(test_an_adapter_is_removed),
		TEST(test_events_of_an_id_without_a_name),
		TEST(test_an_event_that_is_not_taken_is_in_excess),
		TEST(test_an_event_waits_for_room),
		TEST(test_services_of_others),
		TEST(test_ids_of_another_program),
		TEST(test_malformed_commands),
		TEST(test_what_follows_has_its_length),
		TEST(test_a_session_has_so_many_ids),
		TEST(test_ids_are_of_the_share_of_their_node),
		TEST(test_requests_that_nobody_takes),
		TEST(test_a_listener_has_so_many_requests),
		TEST(test_ids_have_an_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
