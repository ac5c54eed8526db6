/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* IP over InfiniBand, connected mode: the connections that peers make to an interface, and those that
 * it makes to peers. */
#include "ipoib_bench.h"

#define SERVICE_ID 0x1000000000000000ull
#define MOST	   1024
#define IDLE_MS	   256000

static int replies, rejects, ends;

static int on_event(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	switch (event->event) {
	case IB_CM_REP_RECEIVED:
		replies++;
		assert_int_equal(ib_send_cm_rtu(id, NULL, 0), 0);
		break;
	case IB_CM_REJ_RECEIVED:
		rejects++;
		assert_int_equal(event->param.rej_rcvd.reason, IB_CM_REJ_NO_RESOURCES);
		break;
	case IB_CM_DREQ_RECEIVED:
		ends++;
		ib_send_cm_drep(id, NULL, 0);
		break;
	default:
		break;
	}
	return 0;
}

/* Return: the peer's end of a connection to the interface, which has been asked for */
static struct ib_cm_id *call_interface(u32 qpn)
{
	struct sa_path_rec path = {.rec_type = SA_PATH_REC_TYPE_IB,
				   .pkey = cpu_to_be16(0xffff), .mtu = 5, .packet_life_time = 4};
	struct ib_cm_req_param req = {
		.primary_path = &path,
		.service_id = cpu_to_be64(SERVICE_ID | ipoib_own_link(bench_interface())->qpn),
		.qp_num = qpn,
		.qp_type = IB_QPT_RC,
		.remote_cm_response_timeout = 14,
		.local_cm_response_timeout = 14,
		.max_cm_retries = 3,
		.rnr_retry_count = 7,
	};
	struct ib_cm_id *id = ib_create_cm_id(&net->node[2]->ib, on_event, NULL);

	assert_false(IS_ERR(id));
	assert_int_equal(ib_query_gid(&net->node[2]->ib, 1, 0, &path.sgid), 0);
	assert_int_equal(ib_query_gid(device, 1, 0, &path.dgid), 0);
	sa_path_set_slid(&path, path.sgid.raw[15]);
	sa_path_set_dlid(&path, path.dgid.raw[15]);
	assert_int_equal(ib_send_cm_req(id, &req), 0);
	return id;
}

static int setup(void **state)
{
	int ret = bench_setup_open(state);

	replies = rejects = ends = 0;
	device->attrs.max_qp = 4 * MOST;
	return ret ? ret : ipoib_set_connected(bench_interface(), true);
}

static void connections_are_bounded(void **state)
{
	static struct ib_cm_id *id[MOST + 3];

	for (unsigned int i = 0; i < ARRAY_SIZE(id); i++) {
		id[i] = call_interface(0x1000 + i);
		run_ms(1);
	}
	assert_int_equal(rejects, 3);
	assert_int_equal(replies, MOST);
	assert_int_equal(ipoib_connections(bench_interface()), MOST);
	ib_destroy_cm_id(id[0]); /* makes room for one */
	run_ms(60000);
	assert_int_equal(ipoib_connections(bench_interface()), MOST - 1);
	ib_destroy_cm_id(id[MOST]);
	id[0] = call_interface(0x5000);
	id[MOST] = call_interface(0x5001);
	run_ms(100);
	assert_int_equal(replies, MOST + 1);
	assert_int_equal(rejects, 4);
	for (unsigned int i = 0; i < ARRAY_SIZE(id); i++)
		ib_destroy_cm_id(id[i]);
	run_ms(60000);
	assert_int_equal(ipoib_connections(bench_interface()), 0);
}

static void an_idle_connection_is_ended(void **state)
{
	struct ib_cm_id *id = call_interface(0x1000);

	run_ms(1000);
	assert_int_equal(replies, 1);
	run_ms(IDLE_MS - 2000);
	assert_int_equal(ends, 0);
	run_ms(IDLE_MS + 2000);
	assert_int_equal(ends, 1);
	assert_int_equal(ipoib_connections(bench_interface()), 0);
	ib_destroy_cm_id(id);
}

/* --- connections of the interface's --- */

#define PEER_QPN 0x48

static struct ib_cm_id *listener, *accepted;
static int requests;

static int on_peer(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	const __be32 data[] = {cpu_to_be32(PEER_QPN), cpu_to_be32(4 + IPOIB_CONNECTED_MTU)};
	struct ib_cm_rep_param rep = {.qp_num = 0x2000, .private_data = data,
				      .private_data_len = sizeof(data), .srq = 1};

	if (event->event == IB_CM_REQ_RECEIVED) {
		requests++;
		accepted = id;
		assert_int_equal(ib_send_cm_rep(id, &rep), 0);
	}
	return event->event == IB_CM_TIMEWAIT_EXIT ? 1 : on_event(id, event);
}

static void is_told(const struct ipoib_link *link, const char *ip)
{
	struct in6_addr sender = address(ip), target = address("10.0.0.1");
	u8 packet[IPOIB_ARP_BYTES];

	ipoib_put_arp(packet, IPOIB_REPLY, link, &sender, NULL, &target);
	bench_arrives(link, IPOIB_ARP, packet, sizeof(packet));
	run_ms(100);
}

/* 10.0.0.2 and 10.0.0.3 are addresses of one peer, and the host has sent to both */
static struct ipoib_link two_addresses(void)
{
	struct ipoib_link link = {.qpn = PEER_QPN, .connected = true};

	requests = 0;
	sa->by_gid = true;
	assert_int_equal(ib_query_gid(&net->node[2]->ib, 1, 0, &link.gid), 0);
	listener = ib_create_cm_id(&net->node[2]->ib, on_peer, NULL);
	assert_false(IS_ERR(listener));
	assert_int_equal(ib_cm_listen(listener, cpu_to_be64(SERVICE_ID | PEER_QPN), 0), 0);
	host_sends("10.0.0.2");
	host_sends("10.0.0.3");
	is_told(&link, "10.0.0.2");
	is_told(&link, "10.0.0.3");
	return link;
}

static int sent_by(u32 qpn)
{
	int n = 0;

	for (int i = 0; i < bench.num_sent; i++)
		n += bench.sent[i].qpn == qpn;
	return n;
}

static void addresses_of_one_peer_share_a_connection(void **state)
{
	struct ipoib_link link = two_addresses(), other = link;

	assert_int_equal(requests, 1);
	assert_int_equal(ipoib_connections(bench_interface()), 1);
	assert_int_equal(sent_by(0x10000), 2);
	other.qpn++;
	other.connected = false;
	is_told(&other, "10.0.0.3"); /* it has moved, and the connection stays the first's */
	host_sends("10.0.0.2");
	host_sends("10.0.0.3");
	run_ms(100);
	assert_int_equal(sent_by(0x10000), 3);
	assert_int_equal(sent_by(other.qpn), 1);
	assert_int_equal(ends, 0);
	run_ms(120000); /* both are forgotten: nobody has sent to them */
	assert_int_equal(ends, 1);
	assert_int_equal(ipoib_connections(bench_interface()), 0);
	assert_int_equal(requests, 1);
	ib_destroy_cm_id(listener);
}

static void they_share_the_next_one_as_well(void **state)
{
	two_addresses();
	assert_int_equal(ib_send_cm_dreq(accepted, NULL, 0), 0);
	run_ms(1000);
	assert_int_equal(requests, 2);
	host_sends("10.0.0.2");
	host_sends("10.0.0.3");
	assert_int_equal(sent_by(0x10001), 2);
	run_ms(120000);
	assert_int_equal(ipoib_connections(bench_interface()), 0);
	ib_destroy_cm_id(listener);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		CASE(connections_are_bounded),
		CASE(an_idle_connection_is_ended),
		CASE(addresses_of_one_peer_share_a_connection),
		CASE(they_share_the_next_one_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
