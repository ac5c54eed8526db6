/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ids of the RDMA CM on the nodes of a small network (mad_net.h), their host table, and what
 * they hear. */
#ifndef TEST_RDMA_CM_NET_H
#define TEST_RDMA_CM_NET_H

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
	struct ib_cm_ece ece;
	u8 reject_bytes; /* of a refusal's private data, if a client refused */
	int answer; /* what the handler returns for a request */
};
static struct side server, active;

/* --- the host table: node i has 10.0.0.i + 1 and fd00::i + 1 --- */

static const struct sockaddr_in network4 = {.sin_family = AF_INET,
					    .sin_addr.s_addr = 0x0a};
static const struct sockaddr_in6 network6 = {.sin6_family = AF_INET6,
					     .sin6_addr.s6_addr = {0xfd}};

/* Return: an address of which the last byte is missing, and where that byte goes */
static inline size_t network(sa_family_t family, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (family == AF_INET)
		memcpy(addr, &network4, sizeof(network4));
	else
		memcpy(addr, &network6, sizeof(network6));
	return family == AF_INET ? offsetof(struct sockaddr_in, sin_addr) + 3
				 : offsetof(struct sockaddr_in6, sin6_addr) + 15;
}

static inline int find_host(void *ctx, const struct sockaddr *addr, struct ib_device **device,
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

static inline int address_of(void *ctx, struct ib_device *device, u32 port_num,
		      sa_family_t family, struct sockaddr_storage *addr)
{
	size_t at = network(family, addr);

	((u8 *)addr)[at] = (u8)(net_of(device)->lid - 9);
	return 0;
}

static const struct rdma_hosts hosts = {.find = find_host, .address = address_of};

static inline struct sockaddr_in ip(const char *text, u16 port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, text, &in.sin_addr);
	return in;
}

static inline struct sockaddr_in6 ip6(const char *text, u16 port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	inet_pton(AF_INET6, text, &in6.sin6_addr);
	return in6;
}

#define SA(in) ((struct sockaddr *)&(in))

/* --- consumers --- */

static inline int on_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct side *side = id->context;
	const char *data = id->ps == RDMA_PS_UDP ? event->param.ud.private_data
						 : event->param.conn.private_data;

	assert_true(side->num < HEARD_MAX);
	side->heard[side->num++] = (int)event->event;
	side->status = event->status;
	side->ece = event->ece;
	if (rdma_consumer_reject_data(id, event, &side->reject_bytes))
		assert_ptr_equal(event->param.conn.private_data, data);
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

static inline struct rdma_cm_id *create(int node, struct side *side, enum rdma_ucm_port_space ps)
{
	struct rdma_cm_id *id =
		rdma_create_id(net->rt, net->node[node]->ib.node_name, on_event, side, ps,
			       ps == RDMA_PS_UDP ? IB_QPT_UD : IB_QPT_RC);

	assert_false(IS_ERR(id));
	return id;
}

static inline int setup(void **state)
{
	server = active = (struct side){0};
	net = net_create(3);
	assert_false(ib_sa_init(net->rt) || ib_cm_init(net->rt) || rdma_cm_init(net->rt));
	assert_int_equal(rdma_cm_set_hosts(net->rt, &hosts), 0);
	sa = fake_sa_open(net->node[0]);
	return 0;
}

static inline int teardown(void **state)
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
	rdma_cm_cleanup(net->rt);
	ib_cm_cleanup(net->rt);
	ib_sa_cleanup(net->rt);
	fake_sa_close(sa);
	assert_int_equal(net_destroy(net), 0);
	assert_int_equal(rt_alloc_balance(), 0);
	return 0;
}

static inline void listen_at(const char *address, enum rdma_ucm_port_space ps)
{
	struct sockaddr_in own = ip(address, PORT);

	server.id = create(1, &server, ps);
	assert_int_equal(rdma_bind_addr(server.id, SA(own)), 0);
	assert_int_equal(rdma_listen(server.id, 2), 0);
}

static inline void resolve_to(enum rdma_ucm_port_space ps, const struct sockaddr *to)
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

static inline void resolve(enum rdma_ucm_port_space ps)
{
	struct sockaddr_in to = ip("10.0.0.2", PORT);

	resolve_to(ps, SA(to));
}

static inline struct rdma_conn_param param_of(u32 qpn, const char *data)
{
	return (struct rdma_conn_param){.private_data = data,
					.private_data_len = (u8)(strlen(data) + 1),
					.responder_resources = 1,
					.initiator_depth = 1,
					.retry_count = 7,
					.rnr_retry_count = 7,
					.qp_num = qpn};
}

static inline void ask(void)
{
	struct rdma_conn_param param = param_of(0x222, "hello");

	assert_int_equal(rdma_connect(active.id, &param), 0);
	run_ms(10);
}

static inline void connect_them(void)
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

#define RDMA_CM_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
