/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA CM: addresses and ports, and which of those who listen a request is for. */
#include "rdma_cm_net.h"
#include "rdma/ib.h"

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

/* ... whose link-local address is its GID */
static void a_connection_by_link_local_address(void **state)
{
	struct sockaddr_in6 own = ip6("fe80::b", PORT), any = ip6("::", PORT), foreign = own;
	const struct sockaddr_in6 *client;

	assert_true(is_asked_at(&own, 0, SA(own)));
	client = (const struct sockaddr_in6 *)&server.peer->route.addr.dst_addr;
	assert_memory_equal(&client->sin6_addr, &active.id->route.sgid, 16);
	end_both();
	assert_true(is_asked_at(&any, 0, SA(own)));
	end_both();
	foreign.sin6_addr.s6_addr[15] = 99;
	active.id = create(2, &active, RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(active.id, SA(foreign)), -EADDRNOTAVAIL);
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

/* node @node of net's by its GID, as AF_IB has it */
static struct sockaddr_ib gid_of(int node, u64 service, u64 mask)
{
	struct sockaddr_ib ib = {.sib_family = AF_IB,
				 .sib_pkey = cpu_to_be16(0xffff),
				 .sib_sid = cpu_to_be64(service),
				 .sib_sid_mask = cpu_to_be64(mask)};
	union ib_gid gid;

	assert_int_equal(ib_query_gid(&net->node[node]->ib, 1, 0, &gid), 0);
	memcpy(&ib.sib_addr, &gid, sizeof(gid));
	return ib;
}

#define IB_SERVICE  (0x13full << 16 | PORT) /* of port space IB, TCP and UDP */
#define TCP_SERVICE (0x106ull << 16 | PORT)
#define UDP_SERVICE (0x111ull << 16 | PORT)

/* ... and asks without an IP header in front of its private data */
static void a_connection_by_gid(void **state)
{
	struct sockaddr_ib own = gid_of(1, IB_SERVICE, ~0ull), client = gid_of(2, 0, 0);
	const struct sockaddr_ib *peer;

	server.id = create(1, &server, RDMA_PS_IB);
	assert_int_equal(rdma_bind_addr(server.id, SA(own)), 0);
	assert_non_null(server.id->device);
	assert_int_equal(rdma_listen(server.id, 2), 0);
	resolve_to(RDMA_PS_IB, SA(own));
	ask();
	assert_int_equal(server.heard[0], RDMA_CM_EVENT_CONNECT_REQUEST);
	assert_string_equal(server.data, "hello");
	assert_memory_equal(&server.peer->route.addr.src_addr, &own, sizeof(own));
	peer = (const struct sockaddr_ib *)&server.peer->route.addr.dst_addr;
	assert_memory_equal(peer, &client, sizeof(client));
}

/* One service id, two listeners: the IP header says whose a request is. */
static void gids_and_ip_addresses_share_a_service(void **state)
{
	struct sockaddr_ib own = gid_of(1, TCP_SERVICE, ~0ull);
	struct sockaddr_in four = ip("10.0.0.2", PORT);
	struct side by_ip = {0};

	server.id = create(1, &server, RDMA_PS_TCP);
	by_ip.id = create(1, &by_ip, RDMA_PS_TCP);
	assert_int_equal(rdma_bind_addr(server.id, SA(own)), 0);
	assert_int_equal(rdma_bind_addr(by_ip.id, SA(four)), 0);
	assert_int_equal(rdma_listen(server.id, 2), 0);
	assert_int_equal(rdma_listen(by_ip.id, 2), 0);
	resolve_to(RDMA_PS_TCP, SA(own));
	ask();
	assert_int_equal(server.num, 1);
	assert_int_equal(by_ip.num, 0);
	rdma_destroy_id(active.id);
	active = (struct side){0};
	resolve_to(RDMA_PS_TCP, SA(four));
	ask();
	assert_null(server.older); /* was asked once */
	assert_int_equal(by_ip.num, 1);
	assert_string_equal(by_ip.data, "hello");
	rdma_destroy_id(by_ip.peer);
	rdma_destroy_id(by_ip.id);
}

static void what_a_service_id_leaves_open(void **state)
{
	const struct {
		enum rdma_ucm_port_space ps;
		u64 service, mask, bound; /* @bound: without its port if that was chosen */
	} of[] = {
		{RDMA_PS_IB, IB_SERVICE, ~0ull, IB_SERVICE},
		{RDMA_PS_IB, TCP_SERVICE, ~0ull, TCP_SERVICE},
		{RDMA_PS_IB, UDP_SERVICE, ~0ull, UDP_SERVICE},
		{RDMA_PS_IB, TCP_SERVICE, RDMA_IB_IP_PS_MASK, TCP_SERVICE - PORT},
		{RDMA_PS_TCP, IB_SERVICE, RDMA_IB_IP_PORT_MASK, TCP_SERVICE},
		{RDMA_PS_UDP, 0, 0, UDP_SERVICE - PORT},
		{RDMA_PS_TCP, UDP_SERVICE, ~0ull, 0},
		{RDMA_PS_UDP, IB_SERVICE, ~0ull, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		struct sockaddr_ib own = gid_of(1, of[i].service, of[i].mask);
		u64 sid;

		server.id = create(1, &server, of[i].ps);
		assert_int_equal(rdma_bind_addr(server.id, SA(own)),
				 of[i].bound ? 0 : -EADDRNOTAVAIL);
		memcpy(&own, &server.id->route.addr.src_addr, sizeof(own));
		sid = be64_to_cpu(own.sib_sid);
		assert_int_equal(of[i].bound & PORT ? sid : sid & RDMA_IB_IP_PS_MASK, of[i].bound);
		assert_true(!of[i].bound || (sid & RDMA_IB_IP_PORT_MASK));
		rdma_destroy_id(server.id);
	}
	server.id = NULL;
}

static void gids_that_lead_nowhere(void **state)
{
	struct sockaddr_ib foreign = gid_of(2, IB_SERVICE, ~0ull), other = gid_of(1, 0, 0);
	struct sockaddr_ib loop = {.sib_family = AF_IB, .sib_pkey = cpu_to_be16(0xffff)};

	active.id = create(1, &active, RDMA_PS_IB);
	assert_int_equal(rdma_bind_addr(active.id, SA(foreign)), -EADDRNOTAVAIL);
	other.sib_pkey = cpu_to_be16(0x1234);
	assert_int_equal(rdma_bind_addr(active.id, SA(other)), -EADDRNOTAVAIL);
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(other), 1000), 0);
	run_ms(1);
	assert_int_equal(active.heard[0], RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal(active.status, -ENETUNREACH);
	loop.sib_addr.sib_raw[15] = 1; /* ::1, the node itself */
	assert_int_equal(rdma_resolve_addr(active.id, NULL, SA(loop), 1000), 0);
	run_ms(1);
	assert_int_equal(active.heard[1], RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_memory_equal(&active.id->route.dgid, &active.id->route.sgid, 16);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		RDMA_CM_TEST(a_connection_by_ipv6_address),
		RDMA_CM_TEST(a_connection_by_link_local_address),
		RDMA_CM_TEST(which_addresses_a_listener_takes),
		RDMA_CM_TEST(the_loopback_address_is_no_devices),
		RDMA_CM_TEST(addresses_and_ports),
		RDMA_CM_TEST(a_port_may_be_shared),
		RDMA_CM_TEST(a_connection_by_gid),
		RDMA_CM_TEST(gids_and_ip_addresses_share_a_service),
		RDMA_CM_TEST(what_a_service_id_leaves_open),
		RDMA_CM_TEST(gids_that_lead_nowhere),
		RDMA_CM_TEST(which_addresses_share_a_port),
		RDMA_CM_TEST(a_request_goes_to_the_listener_of_its_address),
		RDMA_CM_TEST(one_of_those_that_share_a_port_listens),
		RDMA_CM_TEST(a_shared_cm_id_belongs_to_one_that_listens),
		RDMA_CM_TEST(a_device_that_comes_is_listened_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
