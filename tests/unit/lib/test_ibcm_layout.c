/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where programs that were compiled with rdma-core 16's <infiniband/cm.h>, and libraries that were compiled with Linux'
 * <rdma/ib_user_cm.h>, look inside these structs, on processors of 64 bits.
 */
#include "../test.h"

#include <infiniband/cm.h>
#include <stddef.h>

#include "abi/ib_user_cm.h"

#define SIZE(type, bytes) assert_int_equal(sizeof(struct type), bytes)
#define AT(type, member, offset) assert_int_equal(offsetof(struct type, member), offset)

static void structs_of_programs(void **state)
{
	SIZE(ib_cm_device, 16);
	AT(ib_cm_device, fd, 8);
	SIZE(ib_cm_id, 24);
	AT(ib_cm_id, device, 8);
	AT(ib_cm_id, handle, 16);
	SIZE(ib_cm_attr_param, 24);
	AT(ib_cm_attr_param, remote_id, 20);
	SIZE(ib_cm_req_param, 64);
	AT(ib_cm_req_param, private_data, 40);
	AT(ib_cm_req_param, srq, 58);
	SIZE(ib_cm_rep_param, 24);
	AT(ib_cm_rep_param, srq, 23);
	SIZE(ib_cm_sidr_req_param, 40);
	AT(ib_cm_sidr_req_param, max_cm_retries, 33);
	SIZE(ib_cm_sidr_rep_param, 48);
	AT(ib_cm_sidr_rep_param, private_data_len, 40);
}

static void structs_of_events(void **state)
{
	SIZE(ib_cm_event, 88);
	AT(ib_cm_event, param, 16);
	AT(ib_cm_event, private_data, 80);
	SIZE(ib_cm_req_event_param, 64);
	AT(ib_cm_req_event_param, primary_path, 16);
	AT(ib_cm_req_event_param, initiator_depth, 57);
	SIZE(ib_cm_rep_event_param, 24);
	AT(ib_cm_rep_event_param, initiator_depth, 21);
	SIZE(ib_cm_rej_event_param, 24);
	SIZE(ib_cm_apr_event_param, 24);
	SIZE(ib_cm_sidr_req_event_param, 16);
	AT(ib_cm_sidr_req_event_param, pkey, 10);
	SIZE(ib_cm_sidr_rep_event_param, 32);
	AT(ib_cm_sidr_rep_event_param, info, 16);
}

/* The bits behind the bytes of an event's parameters */
static void bits_of_events(void **state)
{
	union {
		struct ib_cm_req_event_param req;
		struct ib_cm_rep_event_param rep;
		unsigned char bytes[64];
	} all = {.bytes = {0}};

	all.req.local_cm_response_timeout = 1;
	all.req.remote_cm_response_timeout = 1;
	all.req.rnr_retry_count = 1;
	all.req.srq = 1;
	assert_memory_equal(all.bytes + 58, "\x41\x00\x09", 3);
	memset(&all, 0, sizeof(all));
	all.rep.target_ack_delay = 1;
	all.rep.flow_control = 1;
	all.rep.srq = 1;
	assert_memory_equal(all.bytes + 22, "\x81\x08", 2);
}

static void commands(void **state)
{
	assert_int_equal(IB_USER_CM_CMD_SEND_REQ, 5);
	assert_int_equal(IB_USER_CM_CMD_INIT_QP_ATTR, 17);
	SIZE(ib_ucm_cmd_hdr, 8);
	SIZE(ib_ucm_create_id, 16);
	SIZE(ib_ucm_destroy_id, 16);
	SIZE(ib_ucm_attr_id_resp, 24);
	SIZE(ib_ucm_listen, 24);
	AT(ib_ucm_listen, id, 16);
	SIZE(ib_ucm_private_data, 16);
	SIZE(ib_ucm_req, 64);
	AT(ib_ucm_req, len, 48);
	SIZE(ib_ucm_rep, 40);
	SIZE(ib_ucm_info, 32);
	SIZE(ib_ucm_mra, 16);
	SIZE(ib_ucm_lap, 24);
	SIZE(ib_ucm_sidr_req, 40);
	SIZE(ib_ucm_sidr_rep, 40);
	SIZE(ib_ucm_event_get, 32);
	SIZE(ib_ucm_event_resp, 192);
	AT(ib_ucm_event_resp, u, 24);
	SIZE(ib_ucm_req_event_resp, 168);
	SIZE(ib_ucm_rep_event_resp, 32);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structs_of_programs),
		cmocka_unit_test(structs_of_events),
		cmocka_unit_test(bits_of_events),
		cmocka_unit_test(commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
