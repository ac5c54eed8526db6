/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA CM: connections, datagram services and multicast between two nodes. */
#include "rdma_cm_net.h"

/* --- connections --- */

static void a_connection_by_address(void **state)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTR};
	const struct sockaddr_in *in;
	int mask;

	connect_them();
	assert_string_equal(server.data, "hello");
	assert_string_equal(active.data, "world");
	assert_int_equal(active.qp_num, 0x111);
	in = (struct sockaddr_in *)&server.peer->route.addr
		     .dst_addr; /* by the IP header */
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0x0a000003);
	in = (struct sockaddr_in *)&server.peer->route.addr.src_addr;
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0x0a000002);
	assert_int_equal(ntohs(in->sin_port), PORT);
	assert_int_equal(rdma_init_qp_attr(active.id, &attr, &mask), 0);
	assert_int_equal(attr.dest_qp_num, 0x111);
	assert_int_equal(rdma_disconnect(active.id), 0);
	run_ms(10);
	assert_int_equal(server.heard[2], RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(rdma_disconnect(server.peer), 0);
	run_ms(10);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_DISCONNECTED);
	run_ms(600000);
	assert_int_equal(active.heard[2], RDMA_CM_EVENT_TIMEWAIT_EXIT);
	assert_int_equal(active.num, 3);
}

static struct ib_pd *give_qp(struct rdma_cm_id *id, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {.qp_type = id->qp_type, .send_cq = cq, .recv_cq = cq};
	struct ib_pd *pd = ib_alloc_pd(id->device, 0);

	init.qp_type = IB_QPT_UC;
	assert_int_equal(rdma_create_qp(id, pd, &init), -EINVAL);
	init.qp_type = id->qp_type;
	assert_int_equal(rdma_create_qp(id, pd, &init), 0);
	assert_non_null(id->qp);
	assert_int_equal(rdma_create_qp(id, pd, &init), -EINVAL);
	return pd;
}

static void take_qp(struct rdma_cm_id *id, struct ib_pd *pd, struct ib_cq *cq)
{
	rdma_destroy_qp(id);
	assert_null(id->qp);
	rdma_destroy_qp(id);
	ib_free_cq(cq);
	ib_dealloc_pd(pd);
}

/* With a pair of the id's own, the peer's answer establishes the connection. */
static void a_pair_goes_along_with_its_id(void **state)
{
	struct rdma_conn_param param = param_of(0, "hello");
	struct ib_cq *cq[2];
	struct ib_pd *pd[2];

	listen_at("0.0.0.0", RDMA_PS_TCP);
	resolve(RDMA_PS_TCP);
	cq[0] = ib_alloc_cq(active.id->device, NULL, 1, 0, IB_POLL_DIRECT);
	pd[0] = give_qp(active.id, cq[0]);
	assert_int_equal(rdma_connect(active.id, &param), 0);
	run_ms(10);
	assert_int_equal(server.qp_num, active.id->qp->qp_num);
	cq[1] = ib_alloc_cq(server.peer->device, NULL, 1, 0, IB_POLL_DIRECT);
	pd[1] = give_qp(server.peer, cq[1]);
	assert_int_equal(rdma_accept(server.peer, &param), 0);
	run_ms(10);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(active.status, 0);
	assert_int_equal(active.qp_num, server.peer->qp->qp_num);
	assert_int_equal(server.heard[1], RDMA_CM_EVENT_ESTABLISHED);
	take_qp(active.id, pd[0], cq[0]);
	take_qp(server.peer, pd[1], cq[1]);
}

static void the_ends_exchange_ece(void **state)
{
	struct ib_cm_ece offered = {0x00abcdef, 0x89abcdef}, accepted = {0x00abcdef, 5};
	struct ib_cm_ece too_long = {0x01000000, 0};
	struct rdma_conn_param param = param_of(0x222, "hello");

	listen_at("0.0.0.0", RDMA_PS_TCP);
	resolve(RDMA_PS_TCP);
	assert_int_equal(rdma_connect_ece(active.id, &param, &too_long), -EINVAL);
	assert_int_equal(rdma_connect_ece(active.id, &param, &offered), 0);
	run_ms(10);
	assert_memory_equal(&server.ece, &offered, sizeof(offered));
	assert_int_equal(rdma_accept_ece(server.peer, &param, &too_long), -EINVAL);
	assert_int_equal(rdma_accept_ece(server.peer, &param, &accepted), 0);
	run_ms(10);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_memory_equal(&active.ece, &accepted, sizeof(accepted));
}

static void the_ack_timeout_may_be_chosen(void **state)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTS};
	int mask;

	connect_them();
	assert_int_equal(rdma_init_qp_attr(active.id, &attr, &mask), 0);
	assert_true(mask & IB_QP_TIMEOUT);
	assert_int_not_equal(attr.timeout, 21); /* the path's */
	assert_int_equal(rdma_set_ack_timeout(active.id, 21), 0);
	attr = (struct ib_qp_attr){.qp_state = IB_QPS_RTS};
	assert_int_equal(rdma_init_qp_attr(active.id, &attr, &mask), 0);
	assert_int_equal(attr.timeout, 21);
}

static void the_rnr_timer_may_be_chosen(void **state)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTR};
	int mask;

	connect_them();
	assert_int_equal(rdma_init_qp_attr(active.id, &attr, &mask), 0);
	assert_int_equal(attr.min_rnr_timer, 0);
	assert_int_equal(rdma_set_min_rnr_timer(active.id, 32), -EINVAL);
	assert_int_equal(rdma_set_min_rnr_timer(active.id, 12), 0);
	attr = (struct ib_qp_attr){.qp_state = IB_QPS_RTR};
	assert_int_equal(rdma_init_qp_attr(active.id, &attr, &mask), 0);
	assert_true(mask & IB_QP_MIN_RNR_TIMER);
	assert_int_equal(attr.min_rnr_timer, 12);
}

static void the_type_of_service_is_a_class_of_paths(void **state)
{
	struct sockaddr_in to = ip("10.0.0.2", PORT);

	active.id = create(2, &active, RDMA_PS_TCP);
	rdma_set_service_type(active.id, 0x28);
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(to), 1000), 0);
	run_ms(1);
	assert_int_equal(rdma_resolve_route(active.id, 1000), 0);
	run_ms(10);
	assert_int_equal(be16_to_cpu(active.id->route.path_rec->qos_class), 0x28);
}

static void an_id_says_what_it_means(void **state)
{
	const struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct sockaddr_in to = ip("10.0.0.2", PORT);
	struct sockaddr_in6 to6 = ip6("fd00::2", PORT);
	union ib_gid sgid, dgid;

	connect_them();
	rdma_read_gids(active.id, &sgid, &dgid);
	assert_int_equal(dgid.raw[15], 11);
	assert_memory_equal(&sgid, &active.id->route.path_rec->sgid, sizeof(sgid));
	rdma_read_gids(server.peer, NULL, &dgid);
	assert_memory_equal(&sgid, &dgid, sizeof(sgid));
	assert_int_equal(be64_to_cpu(rdma_get_service_id(active.id, SA(to))), 0x1061d2f);
	assert_int_equal(be64_to_cpu(rdma_get_service_id(active.id, SA(to6))), 0x1061d2f);
	assert_int_equal(rdma_get_service_id(active.id, &unknown), 0);
	assert_int_equal(rdma_addr_size(SA(to)), sizeof(to));
	assert_int_equal(rdma_addr_size(SA(to6)), sizeof(to6));
	assert_int_equal(rdma_addr_size(&unknown), 0);
}

static void events_have_names(void **state)
{
	for (int i = 0; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		assert_non_null(rdma_event_msg((enum rdma_cm_event_type)i));
	assert_string_equal(rdma_event_msg(RDMA_CM_EVENT_TIMEWAIT_EXIT), "time-wait exit");
	assert_string_equal(rdma_event_msg((enum rdma_cm_event_type)16), "unknown event");
}

static void a_client_may_know_its_path(void **state)
{
	struct sockaddr_in to = ip("10.0.0.2", PORT);
	struct sa_path_rec path;

	listen_at("0.0.0.0", RDMA_PS_TCP);
	resolve(RDMA_PS_TCP);
	path = *active.id->route.path_rec;
	assert_int_equal(rdma_set_ib_path(active.id, &path), -EINVAL); /* it has one */
	rdma_destroy_id(active.id);
	active.id = create(2, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_set_ib_path(active.id, &path), -EINVAL);
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(to), 1000), 0);
	run_ms(1);
	path.sl = 3;
	assert_int_equal(rdma_set_ib_path(active.id, &path), 0);
	assert_int_equal(active.id->route.path_rec->sl, 3);
	ask();
	assert_int_equal(server.heard[0], RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(server.peer->route.path_rec->sl, 3);
}

static void a_closed_id_disconnects_its_peer(void **state)
{
	connect_them();
	rdma_destroy_id(active.id);
	active.id = NULL;
	run_ms(10);
	assert_int_equal(server.heard[2], RDMA_CM_EVENT_DISCONNECTED);
}

static void a_request_is_refused(void **state)
{
	listen_at("10.0.0.2", RDMA_PS_TCP);
	resolve(RDMA_PS_TCP);
	ask();
	assert_int_equal(rdma_reject(server.peer, "no", 3, 0), 0);
	run_ms(10);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_REJECTED);
	assert_int_equal(active.status, IB_CM_REJ_CONSUMER_DEFINED);
	assert_string_equal(active.data, "no");
	assert_true(rdma_is_consumer_reject(active.id, active.status));
	assert_int_equal(active.reject_bytes, IB_CM_REJ_PRIVATE_DATA_SIZE);
	assert_string_equal(rdma_reject_msg(active.id, active.status), ibcm_reject_msg(28));
}

static void a_handler_refuses_by_its_return(void **state)
{
	server.answer = 1;
	listen_at("10.0.0.2", RDMA_PS_TCP);
	resolve(RDMA_PS_TCP);
	ask();
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_REJECTED);
}

static void nobody_listens(void **state)
{
	listen_at("10.0.0.2", RDMA_PS_UDP); /* another port space; and the CM is there */
	resolve(RDMA_PS_TCP);
	ask();
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_REJECTED);
	assert_int_equal(active.status, IB_CM_REJ_INVALID_SERVICE_ID);
}

static void the_backlog_is_bounded(void **state)
{
	struct side more[3] = {0};

	listen_at("0.0.0.0", RDMA_PS_TCP);
	for (int i = 0; i < 3; i++) {
		struct rdma_conn_param param = param_of((u32)(0x300 + i), "x");

		resolve(RDMA_PS_TCP);
		active.id->context = &more[i];
		assert_int_equal(rdma_connect(active.id, &param), 0);
		run_ms(10);
		rdma_destroy_id(active.id);
		active.id = NULL;
		if (i < 2)
			assert_int_equal(more[i].num, 0); /* it waits for an answer */
	}
	assert_int_equal(more[2].heard[0], RDMA_CM_EVENT_REJECTED);
	for (int i = 0; i < server.num; i++)
		assert_int_not_equal(server.heard[i], RDMA_CM_EVENT_ESTABLISHED);
}

static void a_request_outlives_its_listener(void **state)
{
	struct rdma_conn_param param = param_of(0x111, "world");

	listen_at("0.0.0.0", RDMA_PS_TCP);
	resolve(RDMA_PS_TCP);
	ask();
	rdma_destroy_id(server.id);
	server.id = NULL;
	assert_int_equal(rdma_accept(server.peer, &param), 0);
	run_ms(10);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_CONNECT_RESPONSE);
}

/* --- SDP's port space --- */

/* A client's Hello is all of the private data, and its addresses are the connection's. */
static void a_hello_carries_the_addresses(void **state)
{
	u8 hello[IB_CM_REQ_PRIVATE_DATA_SIZE] = {
		[16] = 0x22, [17] = 0x40,	    /* version, IPv4 */
		[28] = 0x12, [29] = 0x67,	    /* port */
		[44] = 10,   [47] = 3, [60] = 10, [63] = 2, /* 10.0.0.3, 10.0.0.2 */
	};
	struct rdma_conn_param param = {
		.private_data = hello, .private_data_len = sizeof(hello), .qp_num = 5};
	const struct sockaddr_in expected = ip("10.0.0.3", 0x1267);

	memcpy(hello, "SDPhello", 8);
	listen_at("10.0.0.2", RDMA_PS_SDP);
	resolve(RDMA_PS_SDP);
	assert_int_equal(rdma_connect(active.id, &param), 0);
	run_ms(10);
	assert_int_equal(server.heard[0], RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_memory_equal(server.data, "SDPhello", 8);
	assert_memory_equal(&server.peer->route.addr.dst_addr, &expected, sizeof(expected));
	rdma_destroy_id(active.id);
	hello[16] = 0x12; /* another version: nobody can read the rest */
	active.num = server.num = 0;
	resolve(RDMA_PS_SDP);
	assert_int_equal(rdma_connect(active.id, &param), 0);
	run_ms(10);
	assert_int_equal(server.num, 1); /* of the first connection's end */
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_REJECTED);
}

/* --- datagram services --- */

static void a_datagram_service(void **state)
{
	struct rdma_conn_param param = param_of(0x333, "udp");

	listen_at("0.0.0.0", RDMA_PS_UDP);
	resolve(RDMA_PS_UDP);
	ask();
	assert_string_equal(server.data, "hello");
	assert_int_equal(rdma_accept(server.peer, &param), 0);
	run_ms(10);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(active.qp_num, 0x333);
	assert_int_equal(active.qkey, RDMA_UDP_QKEY);
	assert_string_equal(active.data, "udp");
}

/* --- multicast --- */

static char context_of[2][8] = {"first", "second"};

static struct rdma_cm_id *bound_at_the_server(struct side *side)
{
	struct sockaddr_in own = ip("10.0.0.2", 0);
	struct rdma_cm_id *id = create(1, side, RDMA_PS_UDP);

	assert_int_equal(rdma_bind_addr(id, SA(own)), 0);
	return id;
}

/* Return: requests that came for it */
static int join(struct rdma_cm_id *id, struct sockaddr *addr, char *context)
{
	int before = sa->asked_attr;

	sa->count_attr = IB_SA_ATTR_MC_MEMBER_REC;
	assert_int_equal(rdma_join_multicast(id, addr, 1 << FULLMEMBER_JOIN, context), 0);
	run_ms(10);
	return sa->asked_attr - before;
}

static int leave(struct rdma_cm_id *id, struct sockaddr *addr)
{
	int before = sa->asked_attr;

	rdma_leave_multicast(id, addr);
	run_ms(10);
	return sa->asked_attr - before;
}

static void two_ids_share_a_membership(void **state)
{
	static const u8 mgid[16] = {0xff, 0x12, 0x40, 1, 0xff, 0xff, [12] = 0xf, 1, 2, 3};
	struct sockaddr_in group = ip("239.1.2.3", 0);

	server.id = bound_at_the_server(&server);
	active.id = bound_at_the_server(&active);
	assert_int_equal(join(server.id, SA(group), context_of[0]), 1);
	assert_int_equal(server.heard[0], RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(server.status, 0);
	assert_string_equal(server.data, "first");
	assert_int_equal(server.qp_num, 0xffffff);
	assert_int_equal(server.qkey, RDMA_UDP_QKEY);
	assert_memory_equal(sa->counted_record, mgid, 16);
	assert_int_equal(join(active.id, SA(group), context_of[1]), 0);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_MULTICAST_JOIN);
	assert_int_equal(rdma_join_multicast(active.id, SA(group), 1, NULL), -EADDRINUSE);
	assert_int_equal(leave(server.id, SA(group)), 0);
	assert_int_equal(leave(active.id, SA(group)), 1);
	assert_int_equal(sa->counted_method, IB_SA_METHOD_DELETE);
	assert_int_equal(active.num, 1);
}

static void the_group_of_an_address(void **state)
{
	static const struct {
		const char *addr;
		u8 mgid[16];
	} of[] = {
		{"ff15::7:8", {0xff, 0x12, 0x60, 1, 0xff, 0xff, [13] = 7, [15] = 8}},
		{"ff12:a01b:fe80::9", {0xff, 0x12, 0xa0, 0x1b, 0xfe, 0x80, [15] = 9}},
		{"::", {0}},
	};

	active.id = bound_at_the_server(&active);
	for (unsigned int i = 0; i < ARRAY_SIZE(of); i++) {
		struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

		inet_pton(AF_INET6, of[i].addr, &in6.sin6_addr);
		assert_int_equal(join(active.id, SA(in6), context_of[0]), 1);
		assert_memory_equal(sa->counted_record, of[i].mgid, 16);
		assert_int_equal(active.status, 0);
	}
}

/* ... whose Q_Key is that of a group which the port is not a member of */
static void ipoibs_port_space_needs_its_broadcast_group(void **state)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT};
	struct sockaddr_in own = ip("10.0.0.2", 0), group = ip("239.1.2.3", 0);
	int mask;

	active.id = rdma_create_id(net->rt, net->node[1]->ib.node_name, on_event, &active,
				   RDMA_PS_IPOIB, IB_QPT_UD);
	assert_int_equal(rdma_join_multicast(active.id, SA(group), 1, NULL), -EINVAL);
	assert_int_equal(rdma_bind_addr(active.id, SA(own)), 0);
	assert_int_equal(rdma_join_multicast(active.id, SA(group), 1, NULL), -EADDRNOTAVAIL);
	assert_int_equal(rdma_init_qp_attr(active.id, &attr, &mask), -EADDRNOTAVAIL);
}

static void joins_that_fail(void **state)
{
	struct sockaddr_in group = ip("239.1.2.3", 0), host = ip("10.0.0.2", 0);
	struct rdma_cm_id *id = active.id = create(1, &active, RDMA_PS_UDP);

	assert_int_equal(rdma_join_multicast(id, SA(group), 1, NULL), -EINVAL);
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(group), 1000), 0);
	run_ms(1);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_join_multicast(id, SA(host), 1, NULL), -EINVAL);
	sa->refuses = IB_SA_ATTR_MC_MEMBER_REC;
	assert_int_equal(join(id, SA(group), context_of[0]), 1);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_equal(active.status, -EINVAL);
	assert_int_equal(leave(id, SA(group)), 0);
}

static void a_membership_is_lost(void **state)
{
	struct ib_event down = {.device = &net->node[1]->ib,
				.element.port_num = 1,
				.event = IB_EVENT_CLIENT_REREGISTER};
	struct sockaddr_in group = ip("239.1.2.3", 0);

	active.id = bound_at_the_server(&active);
	assert_int_equal(join(active.id, SA(group), context_of[0]), 1);
	ib_dispatch_event(&down);
	run_ms(10);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_MULTICAST_ERROR);
	assert_int_equal(active.status, -ENETRESET);
	leave(active.id, SA(group));
	join(active.id, SA(group), context_of[0]);
	assert_int_equal(active.heard[2], RDMA_CM_EVENT_MULTICAST_JOIN);
}

/* its handler's return destroys the id in the middle of the event */
static int destroy_at_join(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	on_event(id, event);
	return event->event == RDMA_CM_EVENT_MULTICAST_JOIN;
}

static void an_id_goes_with_its_memberships(void **state)
{
	struct sockaddr_in group = ip("239.1.2.3", 0), other = ip("239.1.2.4", 0);
	struct rdma_cm_id *id = bound_at_the_server(&active);
	int before;

	id->event_handler = destroy_at_join;
	sa->count_attr = IB_SA_ATTR_MC_MEMBER_REC;
	assert_int_equal(rdma_join_multicast(id, SA(group), 1, context_of[0]), 0);
	assert_int_equal(rdma_join_multicast(id, SA(other), 1, context_of[1]), 0);
	run_ms(100);
	assert_int_equal(active.num, 1);
	assert_int_equal(sa->counted_method, IB_SA_METHOD_DELETE);
	before = sa->asked_attr;
	active.id = bound_at_the_server(&active);
	join(active.id, SA(group), context_of[0]);
	assert_int_equal(sa->asked_attr, before + 1);
}

static void a_queue_pair_tells_that_it_is_connected(void **state)
{
	struct rdma_conn_param param = param_of(0x111, "world");

	listen_at("0.0.0.0", RDMA_PS_TCP);
	assert_int_equal(rdma_notify(server.id, IB_EVENT_COMM_EST), -EINVAL);
	resolve(RDMA_PS_TCP);
	ask();
	assert_int_equal(rdma_accept(server.peer, &param), 0);
	run_ms(10);
	assert_int_equal(rdma_notify(server.peer, IB_EVENT_COMM_EST), 0);
	run_ms(1);
	assert_int_equal(server.heard[1], RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(rdma_notify(server.peer, IB_EVENT_COMM_EST), -EISCONN);
}

static void too_much_private_data(void **state)
{
	static const char data[RDMA_CM_REQ_PRIVATE_DATA_SIZE + 1];
	struct rdma_conn_param param = {.private_data = data,
					.private_data_len = sizeof(data)};

	resolve(RDMA_PS_TCP);
	assert_int_equal(rdma_connect(active.id, &param), -EINVAL);
}

/* --- who goes --- */

static void destroyed_while_asking_for_a_path(void **state)
{
	struct sockaddr_in to = ip("10.0.0.2", PORT);
	struct rdma_cm_id *id = create(2, &active, RDMA_PS_TCP);

	assert_int_equal(rdma_resolve_addr(id, NULL, SA(to), 1000), 0);
	run_ms(1);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	rdma_destroy_id(id);
	run_ms(10);
	assert_int_equal(active.num, 1);
}

static void a_device_goes(void **state)
{
	connect_them();
	ib_unregister_device(&net->node[2]->ib);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_DEVICE_REMOVAL);
	assert_null(active.id->device);
	assert_int_equal(rdma_disconnect(active.id), -EINVAL);
	rdma_destroy_id(active.id);
	active.id = NULL;
	assert_int_equal(ib_register_device(&net->node[2]->ib, "fake0"), 0);
}

#define GOING 3
static struct rdma_cm_id *going[GOING + 1];
static int told[GOING + 1];

static int on_going(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct sockaddr_in from = ip("10.0.0.3", 0);
	size_t self = 0;

	while (going[self] != id)
		self++;
	assert_int_equal(event->event, RDMA_CM_EVENT_DEVICE_REMOVAL);
	told[self]++;
	if (self)
		return self == GOING; /* the last one is destroyed by that */
	rdma_destroy_id(going[1]);
	going[1] = NULL;
	going[GOING] = rdma_create_id(net->rt, net->node[2]->ib.node_name, on_going, NULL,
				      RDMA_PS_TCP, IB_QPT_RC);
	assert_int_equal(rdma_bind_addr(going[GOING], SA(from)), 0);
	return 0;
}

/* The handler of the first one destroys the second one, and binds one more to the device. */
static void handlers_change_which_ids_a_device_has(void **state)
{
	struct sockaddr_in from = ip("10.0.0.3", 0);

	for (int i = 0; i < GOING; i++) {
		going[i] = rdma_create_id(net->rt, net->node[2]->ib.node_name, on_going, NULL,
					  RDMA_PS_TCP, IB_QPT_RC);
		assert_int_equal(rdma_bind_addr(going[i], SA(from)), 0);
	}
	ib_unregister_device(&net->node[2]->ib);
	assert_int_equal(told[0], 1);
	assert_int_equal(told[1], 0);
	assert_int_equal(told[2], 1);
	assert_int_equal(told[GOING], 1);
	assert_null(going[2]->device);
	rdma_destroy_id(going[0]);
	rdma_destroy_id(going[2]);
	assert_int_equal(ib_register_device(&net->node[2]->ib, "fake0"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_CM_TEST(the_ack_timeout_may_be_chosen),
		RDMA_CM_TEST(the_rnr_timer_may_be_chosen),
		RDMA_CM_TEST(the_type_of_service_is_a_class_of_paths),
		RDMA_CM_TEST(an_id_says_what_it_means),
		cmocka_unit_test(events_have_names),
		RDMA_CM_TEST(a_connection_by_address),
		RDMA_CM_TEST(a_pair_goes_along_with_its_id),
		RDMA_CM_TEST(the_ends_exchange_ece),
		RDMA_CM_TEST(a_client_may_know_its_path),
		RDMA_CM_TEST(a_closed_id_disconnects_its_peer),
		RDMA_CM_TEST(a_request_is_refused),
		RDMA_CM_TEST(a_handler_refuses_by_its_return),
		RDMA_CM_TEST(nobody_listens),
		RDMA_CM_TEST(the_backlog_is_bounded),
		RDMA_CM_TEST(a_request_outlives_its_listener),
		RDMA_CM_TEST(a_hello_carries_the_addresses),
		RDMA_CM_TEST(a_datagram_service),
		RDMA_CM_TEST(a_queue_pair_tells_that_it_is_connected),
		RDMA_CM_TEST(too_much_private_data),
		RDMA_CM_TEST(destroyed_while_asking_for_a_path),
		RDMA_CM_TEST(a_device_goes),
		RDMA_CM_TEST(handlers_change_which_ids_a_device_has),
		RDMA_CM_TEST(two_ids_share_a_membership),
		RDMA_CM_TEST(the_group_of_an_address),
		RDMA_CM_TEST(joins_that_fail),
		RDMA_CM_TEST(ipoibs_port_space_needs_its_broadcast_group),
		RDMA_CM_TEST(a_membership_is_lost),
		RDMA_CM_TEST(an_id_goes_with_its_memberships),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
