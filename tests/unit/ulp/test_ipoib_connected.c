/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* IP over InfiniBand, connected mode: the connections that peers make to an interface. */
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

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		CASE(connections_are_bounded),
		CASE(an_idle_connection_is_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
