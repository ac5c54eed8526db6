/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Redirection of the CM class. Node 0 has the SA, node 1 the client, node 2 redirects, and
 * node 3 has the service. */
#include <errno.h>

#include "fake_sa.h"
#include "rdma/ib_cm.h"
#include "wire/mad.h"

#define SERVICE	  cpu_to_be64(0x1000000000001234ull)
#define QKEY	  0x11223344
#define HEARD_MAX 16
#define DLID	  41 /* of a path record: its low byte */

/** struct side - what the handlers of one node hear */
struct side {
	int heard[HEARD_MAX], num;
	struct ib_cm_id *id; /* of the last request */
	struct sa_path_rec path;
	struct ib_cm_sidr_rep_event_param sidr_rep;
	enum ib_cm_rej_reason reason;
	u8 ari[IB_CM_REJ_ARI_LENGTH];
	u8 ari_length;
	/* --- how a server answers --- */
	bool redirects;
	enum ib_cm_rej_reason how;
	union ib_gid gid;
};

static struct side sides[4];
static struct ib_cm_id *caller, *listeners[2];
static bool out_of_memory;
static struct net_packet to_qp; /* the last message to a QP other than QP1 */

#define CLIENT	   (&sides[1])
#define REDIRECTOR (&sides[2])
#define SERVER	   (&sides[3])

static union ib_gid gid_of(int node)
{
	return (union ib_gid){.raw = {0xfe, 0x80, [15] = (u8)(10 + node)}};
}

static struct sa_path_rec path_to(int node)
{
	struct sa_path_rec path;

	memset(&path, 0, sizeof(path));
	path.sgid = gid_of(1);
	path.dgid = gid_of(node);
	sa_path_set_slid(&path, 11);
	sa_path_set_dlid(&path, (u32)(10 + node));
	path.pkey = cpu_to_be16(0xffff);
	path.mtu = IB_MTU_4096;
	path.packet_life_time = 10;
	return path;
}

/* the CM of @node at QP @qpn */
static struct ib_class_port_info class_at(int node, u32 qpn)
{
	struct ib_class_port_info info = {
		.redirect_lid = cpu_to_be16((u16)(10 + node)),
		.redirect_pkey = cpu_to_be16(0xffff),
		.redirect_qp = cpu_to_be32(qpn),
		.redirect_qkey = cpu_to_be32(QKEY),
	};
	const union ib_gid gid = gid_of(node);

	memcpy(info.redirect_gid, &gid, sizeof(gid));
	return info;
}

/* --- handlers --- */

static void hear(struct side *side, const struct ib_cm_event *event)
{
	const struct ib_cm_rej_event_param *rej = &event->param.rej_rcvd;

	assert_true(side->num < HEARD_MAX);
	side->heard[side->num++] = event->event;
	if (event->event != IB_CM_REJ_RECEIVED)
		return;
	side->reason = rej->reason;
	side->ari_length = rej->ari_length;
	memcpy(side->ari, rej->ari, rej->ari_length);
}

static int answer_req(struct side *side, struct ib_cm_id *id)
{
	struct ib_cm_rep_param rep = {.qp_num = 0x222, .starting_psn = 7};
	struct ib_class_port_info info = class_at(3, 1);

	if (!side->redirects)
		return ib_send_cm_rep(id, &rep);
	if (side->how == IB_CM_REJ_PORT_REDIRECT)
		return ib_send_cm_rej(id, side->how, &side->gid, sizeof(side->gid), NULL, 0);
	return ib_send_cm_rej(id, side->how, &info, sizeof(info), NULL, 0);
}

static int answer_sidr(struct side *side, struct ib_cm_id *id)
{
	struct ib_class_port_info info = class_at(3, 1);
	struct ib_cm_sidr_rep_param rep = {.qp_num = 0x333, .qkey = 0x1234};

	if (side->redirects) {
		rep.status = IB_SIDR_REDIRECT;
		rep.info = &info;
		rep.info_length = sizeof(info);
	}
	return ib_send_cm_sidr_rep(id, &rep);
}

static int on_server(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct side *side = id->context;
	int ret;

	hear(side, event);
	if (event->event == IB_CM_REQ_RECEIVED) {
		side->path = *event->param.req_rcvd.primary_path;
		ret = answer_req(side, id);
		assert_true(!ret || (out_of_memory && ret == -ENOMEM));
	} else if (event->event == IB_CM_SIDR_REQ_RECEIVED) {
		assert_int_equal(answer_sidr(side, id), 0);
	}
	if (side->redirects || event->event == IB_CM_SIDR_REQ_RECEIVED)
		return 1;
	side->id = id;
	return 0;
}

static int on_client(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	hear(CLIENT, event);
	if (event->event == IB_CM_REP_RECEIVED)
		assert_true(!ib_send_cm_rtu(id, NULL, 0) || out_of_memory);
	else if (event->event == IB_CM_SIDR_REP_RECEIVED)
		CLIENT->sidr_rep = event->param.sidr_rep_rcvd;
	return 0;
}

static int request(int node, u8 max_redirects)
{
	struct sa_path_rec path = path_to(node);
	struct ib_cm_req_param param = {
		.primary_path = &path,
		.service_id = SERVICE,
		.qp_num = 0x111,
		.qp_type = IB_QPT_RC,
		.remote_cm_response_timeout = 14,
		.local_cm_response_timeout = 14,
		.max_cm_retries = 3,
		.max_redirects = max_redirects,
	};

	return ib_send_cm_req(caller, &param);
}

static int resolve(int node, u8 max_redirects)
{
	struct sa_path_rec path = path_to(node);
	struct ib_cm_sidr_req_param param = {.path = &path,
					     .service_id = SERVICE,
					     .timeout_ms = 100,
					     .max_cm_retries = 3,
					     .max_redirects = max_redirects};

	return ib_send_cm_sidr_req(caller, &param);
}

static bool note_packet(struct net *on, const struct net_packet *packet)
{
	if (packet->dest_qpn != 1)
		to_qp = *packet;
	return false;
}

/* --- a QP of its own for the class --- */

static struct server_qp {
	struct ib_mad_agent *agent;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 buffer[8][296];
} own;

static void post(u8 *buffer)
{
	struct ib_sge sge = {.addr = (uintptr_t)buffer, .length = 296};
	struct ib_recv_wr wr = {.wr_id = sge.addr, .sg_list = &sge, .num_sge = 1};

	assert_int_equal(ib_post_recv(own.qp, &wr, NULL), 0);
}

static void poll_own(struct ib_cq *cq, void *context)
{
	struct ib_wc wc;

	while (ib_poll_cq(cq, 1, &wc) > 0) {
		assert_int_equal(ib_process_mad_wc(own.agent, &wc), 0);
		post((u8 *)(uintptr_t)wc.wr_id);
	}
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
}

static void open_own(struct ib_device *dev)
{
	struct ib_cq_init_attr cq_attr = {.cqe = 64};
	struct ib_qp_init_attr init = {.qp_type = IB_QPT_UD,
				       .cap = {.max_send_wr = 64, .max_recv_wr = 64,
					       .max_send_sge = 2, .max_recv_sge = 1}};
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = 1, .qkey = QKEY};

	own.pd = ib_alloc_pd(dev, 0);
	own.cq = ib_create_cq(dev, poll_own, NULL, NULL, &cq_attr);
	init.send_cq = init.recv_cq = own.cq;
	own.qp = ib_create_qp(own.pd, &init);
	ib_modify_qp(own.qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	attr.qp_state = IB_QPS_RTR;
	ib_modify_qp(own.qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	ib_modify_qp(own.qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
	for (int i = 0; i < 8; i++)
		post(own.buffer[i]);
	ib_req_notify_cq(own.cq, IB_CQ_NEXT_COMP);
	own.agent = ib_cm_serve_qp(own.qp);
	assert_false(IS_ERR(own.agent));
}

static void close_own(void)
{
	ib_unregister_mad_agent(own.agent);
	ib_destroy_qp(own.qp);
	ib_destroy_cq(own.cq);
	ib_dealloc_pd(own.pd);
}

/* --- the net --- */

static int setup(void **state)
{
	memset(sides, 0, sizeof(sides));
	net = net_create(4);
	if (ib_sa_init(net->rt) || ib_cm_init(net->rt))
		return -1;
	net->lose = note_packet;
	sa = fake_sa_open(net->node[0]);
	sa->by_gid = true;
	sa->count_attr = IB_SA_ATTR_PATH_REC;
	caller = ib_create_cm_id(&net->node[1]->ib, on_client, NULL);
	for (int i = 0; i < 2; i++) {
		listeners[i] = ib_create_cm_id(&net->node[2 + i]->ib, on_server, &sides[2 + i]);
		assert_int_equal(ib_cm_listen(listeners[i], SERVICE, 0), 0);
	}
	REDIRECTOR->redirects = true;
	REDIRECTOR->how = IB_CM_REJ_PORT_CM_REDIRECT;
	REDIRECTOR->gid = gid_of(3);
	return 0;
}

static int teardown(void **state)
{
	if (caller)
		ib_destroy_cm_id(caller);
	for (int i = 0; i < 4; i++)
		if (sides[i].id)
			ib_destroy_cm_id(sides[i].id);
	ib_destroy_cm_id(listeners[0]);
	ib_destroy_cm_id(listeners[1]);
	run_ms(60000);
	for (int i = 0; i < 4; i++) {
		struct ib_device *dev = &net->node[i]->ib;

		assert_int_equal(rdma_restrack_count(dev, RDMA_RESTRACK_CM_ID), 0);
		assert_int_equal(rdma_restrack_count(dev, RDMA_RESTRACK_SA_QUERY), 0);
	}
	ib_cm_cleanup(net->rt);
	ib_sa_cleanup(net->rt);
	fake_sa_close(sa);
	assert_int_equal(net_destroy(net), 0);
	assert_int_equal(rt_alloc_balance(), 0);
	return 0;
}

#define HEARD(side, ...)                                                                 \
	do {                                                                             \
		const int expected_[] = {__VA_ARGS__};                                   \
		assert_int_equal((side)->num, ARRAY_SIZE(expected_));                    \
		assert_memory_equal((side)->heard, expected_, sizeof(expected_));        \
	} while (0)

/* --- followed --- */

/* the client hears of the connection alone, which is with the other port */
static void connected_to_server(void)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTR};
	int mask;

	HEARD(CLIENT, IB_CM_REP_RECEIVED);
	HEARD(SERVER, IB_CM_REQ_RECEIVED, IB_CM_RTU_RECEIVED);
	assert_int_equal(caller->state, IB_CM_ESTABLISHED);
	assert_int_equal(SERVER->id->remote_id, caller->local_id);
	assert_memory_equal(&SERVER->path.sgid, &(union ib_gid[]){gid_of(3)}, 16);
	assert_int_equal(be16_to_cpu(SERVER->path.ib.dlid), 11);
	assert_int_equal(ib_cm_init_qp_attr(caller, &attr, &mask), 0);
	assert_int_equal(attr.ah_attr.dlid, 13);
}

static void a_rej_names_a_port_and_cm(void **state)
{
	assert_int_equal(request(2, 1), 0);
	run_ms(5);
	HEARD(REDIRECTOR, IB_CM_REQ_RECEIVED);
	connected_to_server();
	assert_int_equal(sa->counted_record[DLID], 13);
}

static void a_rej_names_a_port(void **state)
{
	REDIRECTOR->how = IB_CM_REJ_PORT_REDIRECT;
	assert_int_equal(request(2, 1), 0);
	run_ms(5);
	connected_to_server();
	assert_int_equal(sa->counted_record[DLID], 0); /* any */
}

/* Both nodes redirect the class to a QP of node 3, whose messages node 3's CM takes. */
static void a_class_has_its_own_qp(void **state)
{
	struct ib_class_port_info info;

	open_own(&net->node[3]->ib);
	info = class_at(3, own.qp->qp_num);
	assert_int_equal(ib_cm_redirect(&net->node[2]->ib, 1, &info), 0);
	assert_int_equal(ib_cm_redirect(&net->node[3]->ib, 1, &info), 0);
	assert_int_equal(request(2, 1), 0);
	run_ms(5);
	assert_int_equal(REDIRECTOR->num, 0);
	connected_to_server();
	assert_int_equal(caller->remote_cm_qpn, own.qp->qp_num);
	/* the RTU was the last one */
	assert_int_equal(to_qp.dest_qpn, own.qp->qp_num);
	assert_int_equal(to_qp.qkey, QKEY);
	assert_ptr_equal(to_qp.to, net->node[3]);
	close_own();
}

static void a_class_comes_back(void **state)
{
	struct ib_class_port_info info = class_at(2, 77);

	assert_int_equal(ib_cm_redirect(&net->node[3]->ib, 1, &info), 0);
	assert_int_equal(ib_cm_redirect(&net->node[3]->ib, 2, &info), -EINVAL);
	assert_int_equal(request(3, 0), 0);
	run_ms(5);
	HEARD(CLIENT, IB_CM_REJ_RECEIVED);
	assert_int_equal(ib_cm_redirect(&net->node[3]->ib, 1, NULL), 0);
	assert_int_equal(request(3, 0), 0);
	run_ms(5);
	HEARD(SERVER, IB_CM_REQ_RECEIVED, IB_CM_RTU_RECEIVED);
}

static void a_service_id_is_redirected(void **state)
{
	struct rdma_ah_attr attr;

	assert_int_equal(resolve(2, 1), 0);
	run_ms(5);
	HEARD(SERVER, IB_CM_SIDR_REQ_RECEIVED);
	HEARD(CLIENT, IB_CM_SIDR_REP_RECEIVED);
	assert_int_equal(CLIENT->sidr_rep.status, IB_SIDR_SUCCESS);
	assert_int_equal(CLIENT->sidr_rep.qpn, 0x333);
	assert_int_equal(ib_cm_init_ah_attr(caller, &attr), 0);
	assert_int_equal(attr.dlid, 13);
}

/* --- not followed --- */

static void a_client_follows_by_itself(void **state)
{
	struct ib_class_port_info info;

	open_own(&net->node[3]->ib);
	info = class_at(3, own.qp->qp_num);
	assert_int_equal(ib_cm_redirect(&net->node[2]->ib, 1, &info), 0);
	assert_int_equal(ib_cm_redirect(&net->node[3]->ib, 1, &info), 0);
	assert_int_equal(request(2, 0), 0);
	run_ms(5);
	HEARD(CLIENT, IB_CM_REJ_RECEIVED);
	assert_int_equal(CLIENT->reason, IB_CM_REJ_PORT_CM_REDIRECT);
	assert_int_equal(CLIENT->ari_length, sizeof(info));
	memcpy(&info, CLIENT->ari, sizeof(info));
	assert_int_equal(be32_to_cpu(info.redirect_qp), own.qp->qp_num);
	assert_int_equal(caller->remote_cm_qpn, 1);
	caller->remote_cm_qpn = be32_to_cpu(info.redirect_qp);
	caller->remote_cm_qkey = be32_to_cpu(info.redirect_qkey);
	CLIENT->num = 0;
	assert_int_equal(request(3, 0), 0);
	run_ms(5);
	connected_to_server();
	assert_int_equal(to_qp.qkey, QKEY);
	close_own();
}

/* two ports that name each other */
static void redirections_end(void **state)
{
	struct ib_class_port_info info = class_at(3, 1);

	assert_int_equal(ib_cm_redirect(&net->node[2]->ib, 1, &info), 0);
	info = class_at(2, 1);
	assert_int_equal(ib_cm_redirect(&net->node[3]->ib, 1, &info), 0);
	assert_int_equal(request(2, IB_CM_MAX_REDIRECTS), 0);
	run_ms(5);
	HEARD(CLIENT, IB_CM_REJ_RECEIVED);
	assert_int_equal(CLIENT->reason, IB_CM_REJ_PORT_CM_REDIRECT);
	assert_int_equal(caller->state, IB_CM_IDLE);
}

static void no_path_leads_there(void **state)
{
	sa->refuses = IB_SA_ATTR_PATH_REC;
	assert_int_equal(request(2, 1), 0);
	run_ms(5);
	HEARD(CLIENT, IB_CM_REJ_RECEIVED);
	assert_int_equal(CLIENT->reason, IB_CM_REJ_PORT_CM_REDIRECT);
	assert_int_equal(CLIENT->ari_length, sizeof(struct ib_class_port_info));
	assert_int_equal(caller->state, IB_CM_IDLE);
	CLIENT->num = 0;
	assert_int_equal(resolve(2, 1), 0);
	run_ms(5);
	HEARD(CLIENT, IB_CM_SIDR_REP_RECEIVED);
	assert_int_equal(CLIENT->sidr_rep.status, IB_SIDR_REDIRECT);
}

/* --- who goes while the path is looked up --- */

static void look_up(void)
{
	sa->silent = true;
	assert_int_equal(request(2, 1), 0);
	run_ms(5);
	assert_int_equal(caller->state, IB_CM_REQ_SENT);
	assert_int_equal(rdma_restrack_count(&net->node[1]->ib, RDMA_RESTRACK_SA_QUERY), 1);
}

static void an_id_goes(void **state)
{
	look_up();
	ib_destroy_cm_id(caller);
	caller = NULL;
	run_ms(5000);
	assert_int_equal(CLIENT->num, 0);
}

static void a_device_goes(void **state)
{
	look_up();
	ib_unregister_device(&net->node[1]->ib);
	run_ms(5000);
	ib_destroy_cm_id(caller);
	caller = NULL;
	assert_int_equal(ib_register_device(&net->node[1]->ib, "fake0"), 0);
}

static void memory_fails(void **state)
{
	int connected = 0;

	out_of_memory = true;
	for (int nth = 1; nth < 60; nth++) {
		assert_int_equal(request(2, 1), 0);
		rt_fail_alloc((uint64_t)nth);
		run_ms(1000);
		rt_fail_alloc(0);
		connected += caller->state == IB_CM_ESTABLISHED;
		ib_destroy_cm_id(caller);
		if (SERVER->id)
			ib_destroy_cm_id(SERVER->id);
		SERVER->id = NULL;
		run_ms(60000);
		CLIENT->num = REDIRECTOR->num = SERVER->num = 0;
		caller = ib_create_cm_id(&net->node[1]->ib, on_client, NULL);
	}
	out_of_memory = false;
	assert_true(connected > 0);
}

/* --- ClassPortInfo --- */

static struct wire_class_port_info described;

static void got_description(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
			    struct ib_mad_recv_wc *recv_wc)
{
	assert_int_equal(recv_wc->recv_buf.mad->mad_hdr.status, 0);
	wire_class_port_info_decode(recv_wc->recv_buf.mad->data, 72, &described);
	ib_free_recv_mad(recv_wc);
}

static void get_description(struct ib_mad_agent *agent)
{
	struct ib_mad mad = {.mad_hdr = {.base_version = 1,
					 .mgmt_class = IB_MGMT_CLASS_CM,
					 .class_version = IB_CM_CLASS_VERSION,
					 .method = IB_MGMT_METHOD_GET,
					 .attr_id = cpu_to_be16(1)}};
	struct rdma_ah_attr ah = {.dlid = 12, .port_num = 1};
	struct ib_mad_send_buf *buf = ib_create_send_mad(agent, 1, 0, 0, IB_MGMT_MAD_HDR,
							 IB_MGMT_MAD_DATA, 0, 1);

	memset(&described, 0, sizeof(described));
	ib_set_mad_contents(buf, &mad);
	buf->ah = rdma_create_ah(agent->qp->pd, &ah, 0);
	buf->timeout_ms = 100;
	assert_int_equal(ib_post_send_mad(buf, NULL), 0);
	run_ms(1);
}

static void the_class_says_where_it_is(void **state)
{
	struct ib_mad_agent *agent = ib_register_mad_agent(&net->node[1]->ib, 1, IB_QPT_GSI, NULL,
							   0, fake_sa_sent, got_description, NULL, 0);
	struct ib_class_port_info info = class_at(3, 0x4711);
	union ib_gid gid = gid_of(3);

	assert_int_equal(ib_cm_redirect(&net->node[2]->ib, 1, &info), 0);
	get_description(agent);
	assert_int_equal(described.class_version, IB_CM_CLASS_VERSION);
	assert_int_equal(described.redirect_lid, 13);
	assert_int_equal(described.redirect_qpn, 0x4711);
	assert_int_equal(described.redirect_qkey, QKEY);
	assert_memory_equal(&described.redirect_gid, &gid, sizeof(gid));
	assert_int_equal(ib_cm_redirect(&net->node[2]->ib, 1, NULL), 0);
	get_description(agent);
	assert_int_equal(described.class_version, IB_CM_CLASS_VERSION);
	assert_int_equal(described.redirect_lid, 0);
	ib_unregister_mad_agent(agent);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_rej_names_a_port_and_cm),
		T(a_rej_names_a_port),
		T(a_class_has_its_own_qp),
		T(a_class_comes_back),
		T(a_service_id_is_redirected),
		T(a_client_follows_by_itself),
		T(redirections_end),
		T(no_path_leads_there),
		T(an_id_goes),
		T(a_device_goes),
		T(memory_fails),
		T(the_class_says_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
