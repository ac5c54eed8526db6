/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA CM: addresses, ports, connections and datagram services between two nodes. */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "fake_sa.h"
#include "rdma/rdma_cm.h"

#define HEARD_MAX 12
#define PORT	  7471

/* node 0 has the administrator, node 1 the server, node 2 the client */
struct side {
	struct rdma_cm_id *id, *peer, *older; /* @peer: of the last request */
	int heard[HEARD_MAX], num, status;
	char data[8];
	u32 qp_num, qkey;
	int answer; /* what the handler returns for a request */
};
static struct side server, active;

/* --- the host table: node i has 10.0.0.i + 1 and fd00::i + 1 --- */

static const struct sockaddr_in network4 = {.sin_family = AF_INET,
					    .sin_addr.s_addr = 0x0a};
static const struct sockaddr_in6 network6 = {.sin6_family = AF_INET6,
					     .sin6_addr.s6_addr = {0xfd}};

/* Return: an address of which the last byte is missing, and where that byte goes */
static size_t network(sa_family_t family, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (family == AF_INET)
		memcpy(addr, &network4, sizeof(network4));
	else
		memcpy(addr, &network6, sizeof(network6));
	return family == AF_INET ? offsetof(struct sockaddr_in, sin_addr) + 3
				 : offsetof(struct sockaddr_in6, sin6_addr) + 15;
}

static int find_host(void *ctx, const struct sockaddr *addr, struct ib_device **device,
		     u32 *port_num)
{
	struct sockaddr_storage expected;
	size_t at = network(addr->sa_family, &expected);
	const u8 *bytes = (const u8 *)addr;
	u8 last = bytes[at];

	if (memcmp((u8 *)&expected + 4, bytes + 4, at - 4) != 0 || last < 1 || last > 3)
		return -ENOENT;
	*device = &net->node[last - 1]->ib;
	*port_num = 1;
	return 0;
}

static int address_of(void *ctx, struct ib_device *device, u32 port_num,
		      sa_family_t family, struct sockaddr_storage *addr)
{
	size_t at = network(family, addr);

	((u8 *)addr)[at] = (u8)(net_of(device)->lid - 9);
	return 0;
}

static const struct rdma_hosts hosts = {.find = find_host, .address = address_of};

static struct sockaddr_in ip(const char *text, u16 port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, text, &in.sin_addr);
	return in;
}

static struct sockaddr_in6 ip6(const char *text, u16 port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	inet_pton(AF_INET6, text, &in6.sin6_addr);
	return in6;
}

#define SA(in) ((struct sockaddr *)&(in))

/* --- consumers --- */

static int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct side *side = id->context;
	const char *data = id->ps == RDMA_PS_UDP ? event->param.ud.private_data
						 : event->param.conn.private_data;

	assert_true(side->num < HEARD_MAX);
	side->heard[side->num++] = (int)event->event;
	side->status = event->status;
	if (data)
		memcpy(side->data, data, sizeof(side->data));
	side->qp_num =
		id->ps == RDMA_PS_UDP ? event->param.ud.qp_num : event->param.conn.qp_num;
	side->qkey = event->param.ud.qkey;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	side->older = side->peer;
	side->peer = side->answer ? NULL : id;
	return side->answer;
}

static struct rdma_cm_id *create(int node, struct side *side, enum rdma_ucm_port_space ps)
{
	struct rdma_cm_id *id =
		rdma_create_id(net->rt, net->node[node]->ib.node_name, on_event, side, ps,
			       ps == RDMA_PS_UDP ? IB_QPT_UD : IB_QPT_RC);

	assert_false(IS_ERR(id));
	return id;
}

static int setup(void **state)
{
	server = active = (struct side){0};
	net = net_create(3);
	assert_false(ib_sa_init() || ib_cm_init() || rdma_cm_init());
	assert_int_equal(rdma_cm_set_hosts(net->rt, &hosts), 0);
	sa = fake_sa_open(net->node[0]);
	return 0;
}

static int teardown(void **state)
{
	if (server.peer)
		rdma_destroy_id(server.peer);
	if (server.older)
		rdma_destroy_id(server.older);
	if (server.id)
		rdma_destroy_id(server.id);
	if (active.id)
		rdma_destroy_id(active.id);
	run_ms(600000);
	rdma_cm_set_hosts(net->rt, NULL);
	rdma_cm_cleanup();
	ib_cm_cleanup();
	ib_sa_cleanup();
	fake_sa_close(sa);
	assert_int_equal(net_destroy(net), 0);
	assert_int_equal(rt_alloc_balance(), 0);
	return 0;
}

static void listen_at(const char *address, enum rdma_ucm_port_space ps)
{
	struct sockaddr_in own = ip(address, PORT);

	server.id = create(1, &server, ps);
	assert_int_equal(rdma_bind_addr(server.id, SA(own)), 0);
	assert_int_equal(rdma_listen(server.id, 2), 0);
}

static void resolve_to(enum rdma_ucm_port_space ps, const struct sockaddr *to)
{
	active.id = create(2, &active, ps);
	assert_int_equal(rdma_resolve_addr(active.id, NULL, to, 1000), 0);
	assert_int_equal(active.num, 0); /* never on the caller's stack */
	run_ms(1);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(rdma_resolve_route(active.id, 1000), 0);
	run_ms(10);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_non_null(active.id->route.path_rec);
	assert_int_equal(active.id->route.dgid.raw[15], 11);
	active.num = 0;
}

static void resolve(enum rdma_ucm_port_space ps)
{
	struct sockaddr_in to = ip("10.0.0.2", PORT);

	resolve_to(ps, SA(to));
}

static struct rdma_conn_param param_of(u32 qpn, const char *data)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = (u8)(strlen(data) + 1),
					.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = qpn};
}

static void ask(void)
{
	struct rdma_conn_param param = param_of(0x222, "hello");

	assert_int_equal(rdma_connect(active.id, &param), 0);
	run_ms(10);
}

static void connect_them(void)
{
	struct rdma_conn_param param = param_of(0x111, "world");

	listen_at("0.0.0.0", RDMA_PS_TCP);
	resolve(RDMA_PS_TCP);
	ask();
	assert_int_equal(server.heard[0], RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(rdma_accept(server.peer, &param), 0);
	run_ms(10);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_CONNECT_RESPONSE);
	assert_int_equal(rdma_accept(active.id, NULL), 0);
	run_ms(10);
	assert_int_equal(server.heard[1], RDMA_CM_EVENT_ESTABLISHED);
}

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

/* --- addresses --- */

static void addresses_and_ports(void **state)
{
	struct sockaddr_in foreign = ip("10.0.0.3", 0), any = ip("0.0.0.0", PORT);
	struct sockaddr_in nobody = ip("192.0.2.1", 5);
	struct sockaddr_in6 six = ip6("2001:db8::1", 0), own6 = ip6("fd00::3", 0);
	struct sockaddr unknown = {.sa_family = AF_UNIX};
	struct sockaddr_storage found;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_port_addr(&net->node[1]->ib, 1, AF_INET, &found), 0);
	assert_int_equal(((struct sockaddr_in *)&found)->sin_addr.s_addr, ip("10.0.0.2", 0).sin_addr.s_addr);
	listen_at("0.0.0.0", RDMA_PS_TCP);
	active.id = id = create(1, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(id, SA(foreign)), -EADDRNOTAVAIL);
	assert_int_equal(rdma_bind_addr(id, SA(any)), -EADDRINUSE);
	assert_int_equal(rdma_bind_addr(id, SA(six)), -EADDRNOTAVAIL);
	assert_int_equal(rdma_bind_addr(id, &unknown), -EAFNOSUPPORT);
	assert_int_equal(rdma_listen(id, 0), 0); /* a port of its own */
	assert_int_equal(rdma_bind_addr(id, SA(any)), -EINVAL);
	rdma_destroy_id(id);
	active.id = id = create(2, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(id, SA(own6)), 0);
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(nobody), 1000), -EINVAL);
	rdma_destroy_id(id);
	active.id = id = create(2, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_resolve_addr(id, NULL, SA(nobody), 1000), 0);
	run_ms(1);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(active.status, -ENETUNREACH);
	assert_int_equal(rdma_resolve_route(id, 1), -EINVAL);
	assert_int_equal(rdma_connect(id, &(struct rdma_conn_param){0}), -EINVAL);
	assert_int_equal(rdma_disconnect(id), -EINVAL);
}

static void a_port_may_be_shared(void **state)
{
	struct sockaddr_in any = ip("0.0.0.0", PORT);
	struct rdma_cm_id *id[3];

	for (int i = 0; i < 3; i++) {
		id[i] = create(1, &active, RDMA_PS_TCP);
		assert_int_equal(rdma_set_reuseaddr(id[i], i < 2), 0);
	}
	assert_int_equal(rdma_bind_addr(id[0], SA(any)), 0);
	assert_int_equal(rdma_set_reuseaddr(id[0], 1), -EINVAL); /* too late */
	assert_int_equal(rdma_bind_addr(id[1], SA(any)), 0);
	assert_int_equal(rdma_bind_addr(id[2], SA(any)), -EADDRINUSE);
	assert_int_equal(rdma_listen(id[0], 1), 0);
	assert_int_equal(rdma_listen(id[1], 1), -EADDRINUSE);
	for (int i = 0; i < 3; i++)
		rdma_destroy_id(id[i]);
}

/* data came before the peer's word that it is ready */
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

/* A request from node 2 to @to; the listener on node 1 is bound to @own. Return: the
 * request came */
static bool is_asked_at(const struct sockaddr_in6 *own, int afonly,
			const struct sockaddr *to)
{
	int before = server.num;

	server.id = create(1, &server, RDMA_PS_TCP);
	assert_int_equal(rdma_set_afonly(server.id, afonly), 0);
	assert_int_equal(rdma_bind_addr(server.id, (struct sockaddr *)own), 0);
	assert_int_equal(rdma_set_afonly(server.id, 0), -EINVAL);
	assert_int_equal(rdma_listen(server.id, 2), 0);
	resolve_to(RDMA_PS_TCP, to);
	ask();
	return server.num > before;
}

static void end_both(void)
{
	rdma_destroy_id(server.id);
	if (server.peer)
		rdma_destroy_id(server.peer);
	rdma_destroy_id(active.id);
	server = active = (struct side){0};
	run_ms(600000);
}

static void a_connection_by_ipv6_address(void **state)
{
	struct sockaddr_in6 own = ip6("fd00::2", PORT), client = ip6("fd00::3", 0);
	const struct rdma_addr *addr;

	assert_true(is_asked_at(&own, 0, SA(own)));
	assert_string_equal(server.data, "hello");
	addr = &server.peer->route.addr;
	assert_memory_equal(&addr->src_addr, &own, sizeof(own));
	client.sin6_port = ((struct sockaddr_in6 *)&addr->dst_addr)->sin6_port;
	assert_memory_equal(&addr->dst_addr, &client, sizeof(client));
	assert_int_not_equal(client.sin6_port, 0);
	assert_memory_equal(&active.id->route.addr.src_addr, &client, sizeof(client));
}

static void which_addresses_a_listener_takes(void **state)
{
	struct sockaddr_in6 any = ip6("::", PORT), six = ip6("fd00::2", PORT);
	struct sockaddr_in6 mapped = ip6("::ffff:10.0.0.2", PORT), loop = ip6("::1", PORT);
	struct sockaddr_in four = ip("10.0.0.2", PORT);
	const struct {
		const struct sockaddr_in6 *own;
		int afonly;
		const struct sockaddr *to;
		bool asked;
	} of[] = {
		{&any, 0, SA(six), true},   {&any, 0, SA(four), true},
		{&any, 1, SA(six), true},   {&any, 1, SA(four), false},
		{&six, 0, SA(four), false}, {&mapped, 0, SA(four), true},
		{&loop, 0, SA(six), true},  {&loop, 1, SA(four), false}, /* as any */
		{&mapped, 0, SA(six), false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		assert_int_equal(is_asked_at(of[i].own, of[i].afonly, of[i].to),
				 of[i].asked);
		if (!of[i].asked)
			assert_int_equal(active.heard[0], RDMA_CM_EVENT_REJECTED);
		end_both();
	}
}

/* Who binds to the loopback address is bound to no device, as in the kernel. */
static void the_loopback_address_is_no_devices(void **state)
{
	struct sockaddr_in loop = ip("127.0.0.1", PORT);

	server.id = create(1, &server, RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(server.id, (struct sockaddr *)&loop), 0);
	assert_null(server.id->device);
	assert_int_equal(rdma_listen(server.id, 2), 0);
	resolve(RDMA_PS_TCP);
	ask();
	assert_int_equal(server.heard[0], RDMA_CM_EVENT_CONNECT_REQUEST);
}

/* Who is bound first, and then a second one of the node to the same port */
static int bind_two(const struct sockaddr *first, int afonly_first,
		    const struct sockaddr *second, int afonly_second)
{
	server.id = create(1, &server, RDMA_PS_TCP);
	active.id = create(1, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_set_afonly(server.id, afonly_first), 0);
	assert_int_equal(rdma_set_afonly(active.id, afonly_second), 0);
	assert_int_equal(rdma_bind_addr(server.id, (struct sockaddr *)(uintptr_t)first),
			 0);
	return rdma_bind_addr(active.id, (struct sockaddr *)(uintptr_t)second);
}

static void which_addresses_share_a_port(void **state)
{
	struct sockaddr_in any4 = ip("0.0.0.0", PORT), four = ip("10.0.0.2", PORT);
	struct sockaddr_in6 any6 = ip6("::", PORT), six = ip6("fd00::2", PORT);
	const struct {
		const struct sockaddr *first, *second;
		int afonly_first, afonly_second, ret;
	} of[] = {
		{SA(any4), SA(any6), 0, 1, 0},
		{SA(any6), SA(any4), 1, 0, 0},
		{SA(any4), SA(any6), 0, 0, -EADDRINUSE},
		{SA(any6), SA(any4), 0, 0, -EADDRINUSE},
		{SA(any6), SA(four), 0, 0, -EADDRINUSE},
		{SA(any6), SA(four), 1, 0, 0},
		{SA(any6), SA(six), 1, 0, -EADDRINUSE},
		{SA(six), SA(any6), 0, 1, -EADDRINUSE},
		{SA(four), SA(six), 0, 0, 0},
		{SA(any4), SA(six), 0, 0, 0},
		{SA(any4), SA(four), 0, 0, -EADDRINUSE},
		{SA(four), SA(four), 0, 0, -EADDRINUSE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		assert_int_equal(bind_two(of[i].first, of[i].afonly_first, of[i].second,
					  of[i].afonly_second),
				 of[i].ret);
		end_both();
	}
}

static int add_pid(const struct rdma_restrack_entry *entry, void *ctx)
{
	*(pid_t *)ctx += entry->pid;
	return 0;
}

/* Return: the sum of the PIDs that the CM ids of node 1 belong to */
static pid_t pids_of_cm_ids(void)
{
	pid_t sum = 0;

	rdma_restrack_for_each(&net->node[1]->ib, RDMA_RESTRACK_CM_ID, add_pid, &sum);
	return sum;
}

/* A request from node 2 to @to comes to @side, and not to any other. Meanwhile the sum of the
 * PIDs that the CM ids of node 1 belong to is @pids. */
static void expect_asked_while(struct side *side, const struct sockaddr *to, pid_t pids)
{
	struct rdma_conn_param param = param_of(0x222, "hello");
	struct side asking = {0};
	struct rdma_cm_id *id = create(2, &asking, RDMA_PS_TCP);
	int all = server.num + active.num, before = side->num;

	assert_int_equal(rdma_resolve_addr(id, NULL, to, 1000), 0);
	run_ms(1);
	assert_int_equal(rdma_resolve_route(id, 1000), 0);
	run_ms(10);
	assert_int_equal(rdma_connect(id, &param), 0);
	run_ms(10);
	assert_int_equal(side->num, before + 1);
	assert_int_equal(side->heard[before], RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_int_equal(server.num + active.num, all + 1);
	assert_int_equal(pids_of_cm_ids(), pids);
	rdma_destroy_id(side->peer);
	side->peer = NULL;
	rdma_destroy_id(id);
	run_ms(600000);
}

static void expect_asked(struct side *side, const struct sockaddr *to)
{
	expect_asked_while(side, to, 0);
}

static void a_request_goes_to_the_listener_of_its_address(void **state)
{
	struct sockaddr_in any4 = ip("0.0.0.0", PORT), four = ip("10.0.0.2", PORT);
	struct sockaddr_in6 any6 = ip6("::", PORT), six = ip6("fd00::2", PORT);

	assert_int_equal(bind_two(SA(any4), 0, SA(any6), 1), 0);
	assert_int_equal(rdma_listen(server.id, 2), 0);
	assert_int_equal(rdma_listen(active.id, 2), 0);
	expect_asked(&server, SA(four));
	expect_asked(&active, SA(six));
	rdma_destroy_id(server.id); /* the other one listens on */
	server.id = NULL;
	expect_asked(&active, SA(six));
}

/* Two processes share a port, and so one CM id that listens. It never belongs to a process that
 * no longer listens. The id of a request belongs to the process that the request is for. */
static void a_shared_cm_id_belongs_to_one_that_listens(void **state)
{
	struct sockaddr_in any4 = ip("0.0.0.0", PORT);
	struct sockaddr_in6 any6 = ip6("::", PORT), six = ip6("fd00::2", PORT);

	assert_int_equal(bind_two(SA(any4), 0, SA(any6), 1), 0);
	rdma_set_owner(server.id, 100, "four");
	rdma_set_owner(active.id, 1000, "six");
	assert_int_equal(rdma_listen(server.id, 2), 0);
	assert_int_equal(rdma_listen(active.id, 2), 0);
	assert_int_equal(pids_of_cm_ids(), 100);
	expect_asked_while(&active, SA(six), 100 + 1000);
	rdma_destroy_id(server.id);
	server.id = NULL;
	assert_int_equal(pids_of_cm_ids(), 1000);
	expect_asked_while(&active, SA(six), 1000 + 1000);
}

static void one_of_those_that_share_a_port_listens(void **state)
{
	struct sockaddr_in any = ip("0.0.0.0", PORT);

	server.id = create(1, &server, RDMA_PS_TCP);
	active.id = create(1, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_set_reuseaddr(server.id, 1), 0);
	assert_int_equal(rdma_set_reuseaddr(active.id, 1), 0);
	assert_int_equal(rdma_bind_addr(server.id, SA(any)), 0);
	assert_int_equal(rdma_bind_addr(active.id, SA(any)), 0);
	assert_int_equal(rdma_listen(server.id, 2), 0);
	assert_int_equal(rdma_listen(active.id, 2), -EADDRINUSE);
	rdma_destroy_id(server.id);
	server.id = NULL;
	assert_int_equal(rdma_listen(active.id, 2), 0);
}

static void a_device_that_comes_is_listened_on(void **state)
{
	struct sockaddr_in to = ip("10.0.0.2", PORT);

	listen_at("0.0.0.0", RDMA_PS_TCP);
	ib_unregister_device(&net->node[1]->ib);
	assert_int_equal(ib_register_device(&net->node[1]->ib, "fake0"), 0);
	run_ms(1000);
	expect_asked(&server, SA(to));
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

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(the_ack_timeout_may_be_chosen),
		T(a_connection_by_ipv6_address),
		T(which_addresses_a_listener_takes),
		T(the_loopback_address_is_no_devices),
		T(a_connection_by_address), T(a_closed_id_disconnects_its_peer),
		T(a_request_is_refused),    T(a_handler_refuses_by_its_return),
		T(nobody_listens),	    T(the_backlog_is_bounded),
		T(a_request_outlives_its_listener),
		T(a_hello_carries_the_addresses),
		T(a_datagram_service),	    T(addresses_and_ports),
		T(a_port_may_be_shared),    T(a_queue_pair_tells_that_it_is_connected),
		T(which_addresses_share_a_port),
		T(a_request_goes_to_the_listener_of_its_address),
		T(one_of_those_that_share_a_port_listens),
		T(a_shared_cm_id_belongs_to_one_that_listens),
		T(a_device_that_comes_is_listened_on),
		T(too_much_private_data),   T(destroyed_while_asking_for_a_path),
		T(a_device_goes),	    T(two_ids_share_a_membership),
		T(the_group_of_an_address), T(joins_that_fail),
		T(a_membership_is_lost),    T(an_id_goes_with_its_memberships),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
