/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The CM as clients of the midlayer see it: what their handlers hear, the attributes that
 * their queue pairs get, devices and clients that go. */
#include <errno.h>

#include "../test.h"
#include "mad_net.h"
#include "rdma/ib_cm.h"
#include "runtime/trace.h"
#include "wire/cm.h"

#define SERVICE	  cpu_to_be64(0x1000000000001234ull)
#define HEARD_MAX 16

static struct net *net;

/** struct side - one client: what it hears, and how it answers */
struct side {
	struct ib_cm_id *id; /* the last one that it heard of */
	int heard[HEARD_MAX], num;
	u8 private_byte;
	int reason;
	struct ib_cm_req_event_param req;
	struct ib_cm_rep_event_param rep;
	struct sa_path_rec path, alternate;
	bool has_alternate;
	int answer; /* what the handler returns */
	bool silent;
};

static struct side server, client;
static struct ib_cm_id *listener, *caller;

/* --- clients --- */

static struct sa_path_rec path_between(int from, int to)
{
	struct sa_path_rec path;

	memset(&path, 0, sizeof(path));
	path.sgid = (union ib_gid){.raw = {0xfe, 0x80, [15] = (u8)(10 + from)}};
	path.dgid = (union ib_gid){.raw = {0xfe, 0x80, [15] = (u8)(10 + to)}};
	sa_path_set_slid(&path, (u32)(10 + from));
	sa_path_set_dlid(&path, (u32)(10 + to));
	path.pkey = cpu_to_be16(0xffff);
	path.mtu = IB_MTU_4096;
	path.rate = 3;
	path.packet_life_time = 10;
	path.sl = 2;
	return path;
}

static void hear(struct side *side, struct ib_cm_id *id, const struct ib_cm_event *event)
{
	const u8 *data = event->private_data;

	assert_true(side->num < HEARD_MAX);
	side->heard[side->num++] = event->event;
	side->id = id;
	side->private_byte = data ? data[0] : 0;
	if (event->event == IB_CM_REJ_RECEIVED)
		side->reason = event->param.rej_rcvd.reason;
}

static int on_server(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct ib_cm_rep_param rep = {
		.qp_num = 0x222,
		.starting_psn = 0x2000,
		.private_data = "s",
		.private_data_len = 1,
		.responder_resources = 2,
		.initiator_depth = 1,
		.rnr_retry_count = 5,
	};

	hear(&server, id, event);
	if (event->event == IB_CM_REQ_RECEIVED) {
		server.req = event->param.req_rcvd;
		server.path = *event->param.req_rcvd.primary_path;
		server.has_alternate = event->param.req_rcvd.alternate_path;
		if (!server.silent && !server.answer)
			assert_int_equal(ib_send_cm_rep(id, &rep), 0);
	}
	if (event->event == IB_CM_DREQ_RECEIVED)
		assert_int_equal(ib_send_cm_drep(id, "d", 1), 0);
	if (event->event == IB_CM_LAP_RECEIVED) {
		server.alternate = *event->param.lap_rcvd.alternate_path;
		assert_int_equal(ib_send_cm_apr(id, IB_CM_APR_SUCCESS, NULL, 0, NULL, 0),
				 0);
	}
	return server.answer;
}

static int on_client(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	hear(&client, id, event);
	if (event->event == IB_CM_REP_RECEIVED) {
		client.rep = event->param.rep_rcvd;
		assert_int_equal(ib_send_cm_rtu(id, NULL, 0), 0);
	}
	return client.answer;
}

static struct ib_cm_req_param request(struct sa_path_rec *path)
{
	return (struct ib_cm_req_param){
		.primary_path = path,
		.service_id = SERVICE,
		.qp_num = 0x111,
		.qp_type = IB_QPT_RC,
		.starting_psn = 0x1000,
		.private_data = "c",
		.private_data_len = 1,
		.responder_resources = 4,
		.initiator_depth = 3,
		.remote_cm_response_timeout = 14,
		.local_cm_response_timeout = 14,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.max_cm_retries = 3,
	};
}

static void connect_them(void)
{
	struct sa_path_rec path = path_between(1, 0);
	struct ib_cm_req_param param = request(&path);

	assert_int_equal(ib_send_cm_req(caller, &param), 0);
	assert_int_equal(caller->state, IB_CM_REQ_SENT);
}

static void run_ms(u64 ms)
{
	rt_sim_run_for(net->rt, ms * NSEC_PER_MSEC);
}

static int setup(void **state)
{
	server = client = (struct side){0};
	net = net_create(3);
	assert_int_equal(ib_cm_init(net->rt), 0);
	listener = ib_create_cm_id(&net->node[0]->ib, on_server, &server);
	caller = ib_create_cm_id(&net->node[1]->ib, on_client, &client);
	assert_false(IS_ERR(listener) || IS_ERR(caller));
	assert_int_equal(ib_cm_listen(listener, SERVICE, 0), 0);
	return 0;
}

static int teardown(void **state)
{
	int64_t before;

	if (caller)
		ib_destroy_cm_id(caller);
	if (listener)
		ib_destroy_cm_id(listener);
	if (server.id && server.id != listener && !server.answer)
		ib_destroy_cm_id(server.id);
	run_ms(60000); /* orphans finish */
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			rdma_restrack_count(&net->node[i]->ib, RDMA_RESTRACK_CM_ID), 0);
	before = rt_alloc_balance();
	ib_cm_cleanup(net->rt);
	assert_true(rt_alloc_balance() < before);
	assert_int_equal(net_destroy(net), 0);
	assert_int_equal(rt_alloc_balance(), 0);
	return 0;
}

static void heard_in_order(const struct side *side, const int *events, int num)
{
	assert_int_equal(side->num, num);
	for (int i = 0; i < num; i++)
		assert_int_equal(side->heard[i], events[i]);
}

#define HEARD(side, ...)                                                                 \
	heard_in_order(side, (const int[]){__VA_ARGS__},                                 \
		       ARRAY_SIZE(((const int[]){__VA_ARGS__})))

/* --- connections --- */

static void a_connection_comes_and_goes(void **state)
{
	connect_them();
	run_ms(1);
	HEARD(&server, IB_CM_REQ_RECEIVED, IB_CM_RTU_RECEIVED);
	HEARD(&client, IB_CM_REP_RECEIVED);
	assert_int_equal(caller->state, IB_CM_ESTABLISHED);
	assert_int_equal(server.id->state, IB_CM_ESTABLISHED);
	assert_int_equal(caller->remote_id, server.id->local_id);
	assert_ptr_equal(server.req.listen_id, listener);
	assert_ptr_equal(server.id->context, &server);
	assert_int_equal(server.req.remote_qpn, 0x111);
	assert_int_equal(server.req.responder_resources,
			 3); /* what the client asks for */
	assert_int_equal(server.req.initiator_depth, 4);
	assert_int_equal(server.path.dgid.raw[15], 11);
	assert_int_equal(be16_to_cpu(server.path.dlid), 11);
	assert_int_equal(client.rep.remote_qpn, 0x222);
	assert_int_equal(client.private_byte, 's');

	assert_int_equal(ib_send_cm_dreq(caller, NULL, 0), 0);
	assert_int_equal(caller->state, IB_CM_DREQ_SENT);
	run_ms(10000);
	HEARD(&server, IB_CM_REQ_RECEIVED, IB_CM_RTU_RECEIVED, IB_CM_DREQ_RECEIVED,
	      IB_CM_TIMEWAIT_EXIT);
	HEARD(&client, IB_CM_REP_RECEIVED, IB_CM_DREP_RECEIVED, IB_CM_TIMEWAIT_EXIT);
	assert_int_equal(caller->state, IB_CM_IDLE);
}

static void check_qp(struct ib_cm_id *id, u32 peer_qpn, u32 rq_psn, u32 sq_psn, u8 reads)
{
	const int rtr = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	const int rts = IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT};
	int mask;

	assert_int_equal(ib_cm_init_qp_attr(id, &attr, &mask), 0);
	assert_true(ib_modify_qp_is_ok(IB_QPS_RESET, IB_QPS_INIT, IB_QPT_RC, mask));
	assert_int_equal(attr.port_num, 1);
	attr.qp_state = IB_QPS_RTR;
	assert_int_equal(ib_cm_init_qp_attr(id, &attr, &mask), 0);
	assert_int_equal(mask, rtr);
	assert_true(ib_modify_qp_is_ok(IB_QPS_INIT, IB_QPS_RTR, IB_QPT_RC, mask));
	assert_int_equal(attr.dest_qp_num, peer_qpn);
	assert_int_equal(attr.rq_psn, rq_psn);
	assert_int_equal(attr.ah_attr.sl, 2);
	assert_int_equal(attr.ah_attr.static_rate, 3);
	assert_int_equal(attr.path_mtu, IB_MTU_4096);
	attr.qp_state = IB_QPS_RTS;
	assert_int_equal(ib_cm_init_qp_attr(id, &attr, &mask), 0);
	assert_int_equal(mask, rts);
	assert_true(ib_modify_qp_is_ok(IB_QPS_RTR, IB_QPS_RTS, IB_QPT_RC, mask));
	assert_int_equal(attr.sq_psn, sq_psn);
	assert_int_equal(attr.max_rd_atomic, reads);
	assert_true(attr.timeout >= 11); /* two packet lifetimes at least */
}

static void queue_pairs_get_what_was_agreed(void **state)
{
	connect_them();
	run_ms(1);
	check_qp(caller, 0x222, 0x1000, 0x2000, 2);
	check_qp(server.id, 0x111, 0x2000, 0x1000, 1);
}

static void nothing_is_known_before(void **state)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTR};
	int mask;

	assert_int_equal(ib_cm_init_qp_attr(caller, &attr, &mask), -EINVAL);
	connect_them();
	assert_int_equal(ib_cm_init_qp_attr(caller, &attr, &mask), -EINVAL);
	attr.qp_state = IB_QPS_INIT;
	assert_int_equal(ib_cm_init_qp_attr(caller, &attr, &mask), 0);
}

static void nobody_listens(void **state)
{
	struct sa_path_rec path = path_between(1, 0);
	struct ib_cm_req_param param = request(&path);

	param.service_id = SERVICE + 1;
	assert_int_equal(ib_send_cm_req(caller, &param), 0);
	run_ms(1);
	HEARD(&client, IB_CM_REJ_RECEIVED);
	assert_int_equal(client.reason, IB_CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(caller->state, IB_CM_IDLE);
	connect_them(); /* the id can be used again */
	run_ms(1);
	assert_int_equal(caller->state, IB_CM_ESTABLISHED);
}

static void a_handler_refuses_by_its_return(void **state)
{
	server.answer = -1;
	connect_them();
	run_ms(1);
	HEARD(&client, IB_CM_REJ_RECEIVED);
	assert_int_equal(client.reason, IB_CM_REJ_CONSUMER_DEFINED);
	assert_int_equal(rdma_restrack_count(&net->node[0]->ib, RDMA_RESTRACK_CM_ID), 1);
}

static void nobody_answers(void **state)
{
	net->lose = net_lose_all;
	connect_them();
	run_ms(10000);
	HEARD(&client, IB_CM_REQ_ERROR);
	assert_int_equal(caller->state, IB_CM_IDLE);
}

static void every_message_may_be_lost_once(void **state)
{
	for (int nth = 1; nth <= 3; nth++) {
		net->lose_nth = nth;
		server.num = client.num = 0;
		connect_them();
		run_ms(2000);
		HEARD(&server, IB_CM_REQ_RECEIVED, IB_CM_RTU_RECEIVED);
		HEARD(&client, IB_CM_REP_RECEIVED);
		ib_destroy_cm_id(caller);
		ib_destroy_cm_id(server.id);
		server.id = NULL;
		run_ms(60000);
		caller = ib_create_cm_id(&net->node[1]->ib, on_client, &client);
	}
}

static void data_may_come_before_the_rtu(void **state)
{
	connect_them();
	net->lose_nth = 2; /* the RTU: the REQ has left */
	run_ms(1);
	assert_int_equal(server.id->state, IB_CM_REP_SENT);
	assert_int_equal(ib_cm_notify(server.id, IB_EVENT_COMM_EST), 0);
	assert_int_equal(server.num, 1); /* never on the caller's stack */
	run_ms(1);
	HEARD(&server, IB_CM_REQ_RECEIVED, IB_CM_USER_ESTABLISHED);
	assert_int_equal(ib_cm_establish(server.id), -EISCONN);
	assert_int_equal(ib_cm_notify(listener, IB_EVENT_COMM_EST), -EINVAL);
}

/* one that answers late says so, and is waited for */
static void an_mra_buys_time(void **state)
{
	server.silent = true;
	connect_them();
	run_ms(1);
	assert_int_equal(ib_send_cm_mra(server.id, 22, "m", 1), 0); /* 17 s */
	run_ms(5000);
	HEARD(&client, IB_CM_MRA_RECEIVED);
	assert_int_equal(client.private_byte, 'm');
	assert_int_equal(ib_send_cm_mra(caller, 22, NULL, 0), -EINVAL); /* it was asked nothing */
	run_ms(60000);
	HEARD(&client, IB_CM_MRA_RECEIVED, IB_CM_REQ_ERROR);
}

static void an_alternate_path_is_loaded(void **state)
{
	struct sa_path_rec alternate = path_between(1, 0);
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTS};
	int mask;

	connect_them();
	run_ms(1);
	alternate.sl = 7;
	assert_int_equal(ib_cm_notify(caller, IB_EVENT_PATH_MIG), -EINVAL);
	assert_int_equal(ib_send_cm_lap(server.id, &alternate, NULL, 0),
			 -EINVAL); /* passive */
	assert_int_equal(ib_send_cm_lap(caller, &alternate, NULL, 0), 0);
	assert_int_equal(caller->lap_state, IB_CM_LAP_SENT);
	run_ms(1);
	HEARD(&client, IB_CM_REP_RECEIVED, IB_CM_APR_RECEIVED);
	assert_int_equal(server.alternate.sl, 7);
	assert_int_equal(be16_to_cpu(server.alternate.dlid), 11);
	assert_int_equal(ib_cm_init_qp_attr(caller, &attr, &mask), 0);
	assert_int_equal(mask, IB_QP_STATE | IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE);
	assert_int_equal(attr.alt_ah_attr.sl, 7);
	assert_int_equal(ib_cm_notify(caller, IB_EVENT_PATH_MIG), 0);
	assert_int_equal(ib_cm_notify(caller, IB_EVENT_PATH_MIG), -EINVAL);
}

/* --- service ids --- */

static int resolved_status = -1;

static int on_sidr_server(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct ib_cm_sidr_rep_param rep = {.qp_num = 0x333, .qkey = 0x1234};

	assert_int_equal(event->event, IB_CM_SIDR_REQ_RECEIVED);
	assert_int_equal(ib_send_cm_sidr_rep(id, &rep), 0);
	return 1; /* done with it */
}

static int on_sidr_client(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	assert_int_equal(event->event, IB_CM_SIDR_REP_RECEIVED);
	resolved_status = (int)event->param.sidr_rep_rcvd.status;
	if (!resolved_status) {
		assert_int_equal(event->param.sidr_rep_rcvd.qpn, 0x333);
		assert_int_equal(event->param.sidr_rep_rcvd.qkey, 0x1234);
	}
	return 0;
}

static int resolve(__be64 service_id)
{
	struct sa_path_rec path = path_between(2, 0);
	struct ib_cm_sidr_req_param param = {.path = &path,
					     .service_id = service_id,
					     .timeout_ms = 100,
					     .max_cm_retries = 2};
	struct ib_cm_id *id = ib_create_cm_id(&net->node[2]->ib, on_sidr_client, NULL);

	resolved_status = -1;
	assert_int_equal(ib_send_cm_sidr_req(id, &param), 0);
	run_ms(1);
	ib_destroy_cm_id(id);
	return resolved_status;
}

static void a_service_is_resolved(void **state)
{
	struct ib_cm_id *id = ib_create_cm_id(&net->node[0]->ib, on_sidr_server, NULL);

	assert_int_equal(ib_cm_listen(id, IB_CM_ASSIGN_SERVICE_ID, 0), 0);
	assert_int_equal(resolve(id->service_id), IB_SIDR_SUCCESS);
	assert_int_equal(resolve(SERVICE + 7), IB_SIDR_UNSUPPORTED);
	ib_destroy_cm_id(id);
}

static void listeners_do_not_overlap(void **state)
{
	struct ib_cm_id *id = ib_create_cm_id(&net->node[0]->ib, on_server, NULL);

	assert_int_equal(ib_cm_listen(id, SERVICE, 0), -EBUSY);
	assert_int_equal(ib_cm_listen(id, SERVICE, cpu_to_be64(~0xffffull)), -EBUSY);
	assert_int_equal(ib_cm_listen(id, cpu_to_be64(0x0200000000000005ull), 0),
			 -EINVAL);
	assert_int_equal(
		ib_cm_listen(id, cpu_to_be64(0x77770000ull), cpu_to_be64(~0xffffull)), 0);
	assert_int_equal(ib_cm_listen(id, SERVICE + 1, 0),
			 -EINVAL); /* it listens already */
	ib_destroy_cm_id(id);
}

/* --- bad parameters --- */

static void bad_parameters_are_refused(void **state)
{
	struct sa_path_rec path = path_between(1, 0);
	struct ib_cm_req_param param = request(&path);
	static const u8 long_data[255];

	param.private_data = long_data;
	param.private_data_len = IB_CM_REQ_PRIVATE_DATA_SIZE + 1;
	assert_int_equal(ib_send_cm_req(caller, &param), -EINVAL);
	param = request(&path);
	param.qp_type = IB_QPT_UD;
	assert_int_equal(ib_send_cm_req(caller, &param), -EINVAL);
	param = request(&path);
	param.max_cm_retries = 16; /* 4 bits */
	assert_int_equal(ib_send_cm_req(caller, &param), -EINVAL);
	param = request(&path);
	path.sgid.raw[3] = 9;
	assert_int_equal(ib_send_cm_req(caller, &param), -EINVAL);
	assert_int_equal(ib_send_cm_rtu(caller, NULL, 0), -EINVAL);
	assert_int_equal(ib_send_cm_rej(caller, IB_CM_REJ_NO_QP, (void *)long_data,
					IB_CM_REJ_ARI_LENGTH + 1, NULL, 0),
			 -EINVAL);
	assert_int_equal(caller->state, IB_CM_IDLE);
	assert_string_equal(ibcm_reject_msg(8), "nobody listens for the service id");
	assert_string_equal(ibcm_reject_msg(-1), "unknown reason");
	assert_string_equal(ibcm_reject_msg(99), "unknown reason");
}

static void wrong_paths_are_refused(void **state)
{
	struct sa_path_rec path = path_between(1, 0);
	struct ib_cm_req_param param = request(&path);

	path.dgid.raw[15] = 99; /* the LID is node 0's, the GID nobody's */
	assert_int_equal(ib_send_cm_req(caller, &param), 0);
	run_ms(1);
	assert_int_equal(client.reason, IB_CM_REJ_INVALID_GID);
	path = path_between(1, 0);
	path.mtu = 6; /* no such MTU */
	assert_int_equal(ib_send_cm_req(caller, &param), 0);
	run_ms(1);
	assert_int_equal(client.reason, IB_CM_REJ_INVALID_MTU);
	assert_int_equal(server.num, 0);
}

/* --- who goes --- */

static void a_closed_end_tells_its_peer(void **state)
{
	connect_them();
	run_ms(1);
	ib_destroy_cm_id(caller);
	caller = NULL;
	run_ms(1);
	HEARD(&server, IB_CM_REQ_RECEIVED, IB_CM_RTU_RECEIVED, IB_CM_DREQ_RECEIVED);
}

static void a_device_goes(void **state)
{
	connect_them();
	run_ms(1);
	ib_unregister_device(&net->node[1]->ib);
	assert_int_equal(ib_send_cm_dreq(caller, NULL, 0), -ENODEV);
	assert_int_equal(ib_cm_notify(caller, IB_EVENT_COMM_EST), -ENODEV);
	ib_destroy_cm_id(caller);
	caller = NULL;
	assert_int_equal(ib_register_device(&net->node[1]->ib, "fake0"), 0);
}

static void memory_fails(void **state)
{
	for (int nth = 1; nth < 40; nth++) {
		rt_fail_alloc((uint64_t)nth);
		server.num = client.num = 0;
		struct sa_path_rec path = path_between(1, 0);
		struct ib_cm_req_param param = request(&path);

		server.silent = true;
		if (!ib_send_cm_req(caller, &param))
			run_ms(1);
		rt_fail_alloc(0);
		ib_destroy_cm_id(caller);
		if (server.id)
			ib_destroy_cm_id(server.id);
		server.id = NULL;
		run_ms(60000);
		caller = ib_create_cm_id(&net->node[1]->ib, on_client, &client);
	}
}

/* --- ClassPortInfo --- */

static struct ib_mad answer;

static void got_answer(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
		       struct ib_mad_recv_wc *recv_wc)
{
	answer = *recv_wc->recv_buf.mad;
	ib_free_recv_mad(recv_wc);
}

static void asked(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	rdma_destroy_ah(wc->send_buf->ah, 0);
	ib_free_send_mad(wc->send_buf);
}

static u16 get(struct ib_mad_agent *agent, u16 attr_id)
{
	struct ib_mad mad = {.mad_hdr = {.base_version = 1,
					 .mgmt_class = IB_MGMT_CLASS_CM,
					 .class_version = IB_CM_CLASS_VERSION,
					 .method = IB_MGMT_METHOD_GET,
					 .attr_id = cpu_to_be16(attr_id)}};
	struct rdma_ah_attr ah = {.dlid = 10, .port_num = 1};
	struct ib_mad_send_buf *buf = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR,
							 IB_MGMT_MAD_DATA, 0, 1);

	ib_set_mad_contents(buf, &mad);
	buf->ah = rdma_create_ah(agent->qp->pd, &ah, 0);
	buf->timeout_ms = 100;
	answer.mad_hdr.method = 0;
	assert_int_equal(ib_post_send_mad(buf, NULL), 0);
	run_ms(1);
	assert_int_equal(answer.mad_hdr.method, IB_MGMT_METHOD_GET_RESP);
	return be16_to_cpu(answer.mad_hdr.status);
}

static void the_class_is_described(void **state)
{
	struct ib_mad_agent *agent = ib_register_mad_agent(
		&net->node[2]->ib, 1, IB_QPT_GSI, NULL, 0, asked, got_answer, NULL, 0);

	assert_int_equal(get(agent, 1), 0);
	assert_int_equal(answer.data[0], 1);
	assert_int_equal(answer.data[1], IB_CM_CLASS_VERSION);
	assert_int_equal(get(agent, 2), IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
	ib_unregister_mad_agent(agent);
}

/* --- a program that is the CM of a virtual machine --- */

static struct wire_mad foreign[4];
static int num_foreign;

static void got_foreign(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
			struct ib_mad_recv_wc *recv_wc)
{
	assert_in_range(num_foreign, 0, 3);
	wire_mad_decode((const u8 *)recv_wc->recv_buf.mad, WIRE_MAD_BYTES, &foreign[num_foreign++]);
	ib_free_recv_mad(recv_wc);
}

static void send_to_server(struct ib_mad_agent *agent, u16 attr_id, u32 remote_id)
{
	struct ib_mad mad = {.mad_hdr = {.base_version = 1,
					 .mgmt_class = IB_MGMT_CLASS_CM,
					 .class_version = IB_CM_CLASS_VERSION,
					 .method = IB_MGMT_METHOD_SEND,
					 .attr_id = cpu_to_be16(attr_id)}};
	__be32 ids[2] = {cpu_to_be32(1), cpu_to_be32(remote_id)};
	struct rdma_ah_attr ah = {.dlid = 10, .port_num = 1};
	struct ib_mad_send_buf *buf = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR,
							 IB_MGMT_MAD_DATA, 0, 1);

	memcpy(mad.data, ids, sizeof(ids));
	ib_set_mad_contents(buf, &mad);
	buf->ah = rdma_create_ah(agent->qp->pd, &ah, 0);
	assert_int_equal(ib_post_send_mad(buf, NULL), 0);
	run_ms(1);
}

/* What names no id and no service of the stack's own CM is the program's, and nothing else is. */
static void a_program_is_a_cm_beside_it(void **state)
{
	struct ib_mad_reg_req req = {.mgmt_class = IB_MGMT_CLASS_CM,
				     .mgmt_class_version = IB_CM_CLASS_VERSION,
				     .method_mask = {1ul << IB_MGMT_METHOD_SEND}};
	struct ib_mad_agent *program = ib_register_mad_agent(&net->node[0]->ib, 1, IB_QPT_GSI, &req, 0,
							     asked, got_foreign, NULL, 0);
	struct ib_mad_agent *peer = ib_register_mad_agent(&net->node[2]->ib, 1, IB_QPT_GSI, NULL, 0,
							  asked, got_answer, NULL, 0);
	struct sa_path_rec path = path_between(1, 0);
	struct ib_cm_req_param param = request(&path);

	assert_false(IS_ERR(program));
	num_foreign = 0;
	connect_them();
	run_ms(1);
	assert_int_equal(num_foreign, 0);
	HEARD(&server, IB_CM_REQ_RECEIVED, IB_CM_RTU_RECEIVED);
	assert_int_equal(ib_send_cm_dreq(caller, NULL, 0), 0);
	run_ms(1);
	assert_int_equal(num_foreign, 0);

	ib_destroy_cm_id(caller);
	client.num = 0;
	caller = ib_create_cm_id(&net->node[1]->ib, on_client, &client);
	param.service_id = SERVICE + 1;
	assert_int_equal(ib_send_cm_req(caller, &param), 0);
	run_ms(1);
	assert_int_equal(num_foreign, 1);
	assert_int_equal(foreign[0].attr_id, WIRE_CM_REQ);
	assert_int_equal(client.num, 0); /* it was not refused */
	send_to_server(peer, WIRE_CM_RTU, 0x7fff1234);
	send_to_server(peer, WIRE_CM_REJ, 0x7fff1234);
	send_to_server(peer, WIRE_CM_SIDR_REP, 0x7fff1234);
	assert_int_equal(num_foreign, 4);
	ib_unregister_mad_agent(peer);
	ib_unregister_mad_agent(program);
	run_ms(1);
	assert_int_equal(ib_send_cm_rej(caller, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0, NULL, 0), 0);
}

/* --- the trace --- */

/** struct traced - a sink that writes what it sees, in short */
static struct traced {
	struct rt_trace_sink sink;
	char text[4096];
} traced;

static void see(struct rt_trace_sink *sink, const struct rt_trace_event *e)
{
	size_t len = strlen(traced.text);
	const char *message = strstr(e->text, "message="), *to = strstr(e->text, " to=");
	const char *shown = message ? message + 8 : to ? to + 4 : strstr(e->text, "event=") + 6;

	assert_string_equal(e->module, "cm");
	snprintf(traced.text + len, sizeof(traced.text) - len, "%s %s %.*s\n", e->node,
		 e->name + 3, (int)strcspn(shown, " "), shown);
}

static void a_connection_is_traced_in_order(void **state)
{
	traced = (struct traced){.sink.event = see};
	rt_trace_set_sink(net->rt, &traced.sink);
	rt_trace_turn(net->rt, RT_TRACE_CM, true);
	connect_them();
	run_ms(1);
	assert_string_equal(traced.text, "n1 send REQ\nn1 state REQ_SENT\n"
					 "n0 receive REQ\nn0 state REQ_RCVD\nn0 event REQ_RECEIVED\n"
					 "n0 send REP\nn0 state REP_SENT\n"
					 "n1 receive REP\nn1 state REP_RCVD\nn1 event REP_RECEIVED\n"
					 "n1 send RTU\nn1 state ESTABLISHED\n"
					 "n0 receive RTU\nn0 state ESTABLISHED\nn0 event RTU_RECEIVED\n");
	traced.text[0] = 0;
	rt_trace_turn(net->rt, RT_TRACE_CM, false);
	assert_int_equal(ib_send_cm_dreq(caller, NULL, 0), 0);
	run_ms(1);
	assert_string_equal(traced.text, "");
}

/* what belongs to no connection is seen as well: a REQ that nobody wants, and its REJ */
static void a_refusal_is_traced(void **state)
{
	struct sa_path_rec path = path_between(1, 2);
	struct ib_cm_req_param param = request(&path);
	struct ib_cm_id *nobody = ib_create_cm_id(&net->node[2]->ib, on_server, &server);

	traced = (struct traced){.sink.event = see};
	rt_trace_set_sink(net->rt, &traced.sink);
	rt_trace_turn(net->rt, RT_TRACE_CM, true);
	assert_int_equal(ib_send_cm_req(caller, &param), 0);
	run_ms(1);
	assert_string_equal(traced.text, "n1 send REQ\nn1 state REQ_SENT\n"
					 "n2 receive REQ\nn2 send REJ\n"
					 "n1 receive REJ\nn1 state IDLE\nn1 event REJ_RECEIVED\n");
	rt_trace_set_sink(net->rt, NULL);
	ib_destroy_cm_id(nobody);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_connection_comes_and_goes),
		T(queue_pairs_get_what_was_agreed),
		T(nothing_is_known_before),
		T(nobody_listens),
		T(a_handler_refuses_by_its_return),
		T(nobody_answers),
		T(every_message_may_be_lost_once),
		T(data_may_come_before_the_rtu),
		T(an_mra_buys_time),
		T(an_alternate_path_is_loaded),
		T(a_service_is_resolved),
		T(listeners_do_not_overlap),
		T(bad_parameters_are_refused),
		T(wrong_paths_are_refused),
		T(a_closed_end_tells_its_peer),
		T(a_device_goes),
		T(memory_fails),
		T(the_class_is_described),
		T(a_program_is_a_cm_beside_it),
		T(a_connection_is_traced_in_order),
		T(a_refusal_is_traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
