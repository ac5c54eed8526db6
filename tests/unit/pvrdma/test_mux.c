/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of QEMU's, and where the MADs of a guest go. */
#include <string.h>

#include "../test.h"
#include "pvrdma/mux.h"
#include "wire/cm.h"

#define GUEST_ID 0x11111111
#define PEER_ID	 0x22222222

static struct pvrdma_routes routes;
static uint8_t mad[PVRDMA_MAD_BYTES];

static const union wire_gid peer = {.raw = {[10] = 0xff, [11] = 0xff, 10, 1, 0, 2}};

static int setup(void **state)
{
	memset(&routes, 0, sizeof(routes));
	return 0;
}

static void header(uint16_t attr)
{
	const struct wire_mad h = {.base_version = 1, .mgmt_class = WIRE_CLASS_CM,
				   .class_version = WIRE_CM_CLASS_VERSION,
				   .method = WIRE_METHOD_SEND, .attr_id = attr};

	memset(mad, 0, sizeof(mad));
	wire_mad_encode(&h, mad);
}

static void req(uint32_t local_id, const union wire_gid *remote)
{
	struct wire_cm_req m = {.local_comm_id = local_id};

	if (remote)
		m.primary.remote_gid = *remote;
	header(WIRE_CM_REQ);
	wire_cm_req_encode(&m, mad + WIRE_CM_DATA_OFFSET);
}

/* any other message of a connection: the ids are its first fields */
static void other(uint16_t attr, uint32_t local_id, uint32_t remote_id)
{
	const struct wire_cm_rtu m = {.local_comm_id = local_id, .remote_comm_id = remote_id};

	header(attr);
	wire_cm_rtu_encode(&m, mad + WIRE_CM_DATA_OFFSET);
}

static void goes_to(const union wire_gid *gid)
{
	union wire_gid to = {0};

	assert_int_equal(pvrdma_route_out(&routes, mad, &to), gid != NULL);
	if (gid)
		assert_memory_equal(&to, gid, sizeof(to));
}

static void requests_of_qemu(void **state)
{
	struct pvrdma_message m = {.type = PVRDMA_REQUEST, .operation = PVRDMA_MAD,
				   .mad_bytes = PVRDMA_MAD_BYTES};

	assert_true(pvrdma_is_request(&m));
	m.mad_bytes--;
	assert_false(pvrdma_is_request(&m));
	m.operation = PVRDMA_REMOVE_GID;
	assert_true(pvrdma_is_request(&m));
	m.operation = PVRDMA_MAD + 1;
	assert_false(pvrdma_is_request(&m));
	m.operation = PVRDMA_ADD_GID;
	m.type = PVRDMA_RESPONSE;
	assert_false(pvrdma_is_request(&m));
}

/* where the members are in QEMU's own declaration of it */
static void a_message_is_qemus(void **state)
{
	assert_int_equal(offsetof(struct pvrdma_message, gid), 8);
	assert_int_equal(offsetof(struct pvrdma_message, error), 24);
	assert_int_equal(offsetof(struct pvrdma_message, mad_bytes), 32);
	assert_int_equal(offsetof(struct pvrdma_message, umad), 36);
	assert_int_equal(offsetof(struct pvrdma_message, mad), 100);
}

static void a_guest_connects(void **state)
{
	req(GUEST_ID, &peer);
	goes_to(&peer);
	other(WIRE_CM_REJ, GUEST_ID, 0); /* it has no patience: the peer's id is not known */
	goes_to(&peer);
	other(WIRE_CM_RTU, GUEST_ID + 1, PEER_ID);
	goes_to(NULL);
	other(WIRE_CM_REP, PEER_ID, GUEST_ID + 1);
	pvrdma_route_in(&routes, mad, &peer);
	other(WIRE_CM_RTU, GUEST_ID + 1, PEER_ID);
	goes_to(&peer);
}

static void a_guest_is_connected_to(void **state)
{
	static const uint16_t answers[] = {WIRE_CM_MRA, WIRE_CM_REP, WIRE_CM_REJ,
					   WIRE_CM_DREQ, WIRE_CM_DREP, WIRE_CM_APR};

	other(WIRE_CM_REP, GUEST_ID, PEER_ID);
	goes_to(NULL);
	req(PEER_ID, NULL);
	pvrdma_route_in(&routes, mad, &peer);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		other(answers[i], GUEST_ID, PEER_ID);
		goes_to(&peer);
	}
	other(WIRE_CM_REP, PEER_ID, 0); /* the id is the peer's, not the guest's */
	goes_to(NULL);
}

static void services_are_resolved(void **state)
{
	struct wire_cm_sidr_req m = {.request_id = PEER_ID,
				     .private_data = {[1] = 0x40, [32] = 10, 1, 0, 2}};
	union wire_gid ipv6 = {.raw = {0xfd, [15] = 1}};

	header(WIRE_CM_SIDR_REQ);
	wire_cm_sidr_req_encode(&m, mad + WIRE_CM_DATA_OFFSET);
	goes_to(&peer);
	pvrdma_route_in(&routes, mad, &peer);
	other(WIRE_CM_SIDR_REP, PEER_ID, 0);
	goes_to(&peer);

	m.private_data[1] = 0x60;
	memcpy(m.private_data + 20, ipv6.raw, sizeof(ipv6));
	header(WIRE_CM_SIDR_REQ);
	wire_cm_sidr_req_encode(&m, mad + WIRE_CM_DATA_OFFSET);
	goes_to(&ipv6);
	m.private_data[1] = 0;
	wire_cm_sidr_req_encode(&m, mad + WIRE_CM_DATA_OFFSET);
	goes_to(NULL);
}

static void an_id_is_used_again(void **state)
{
	const union wire_gid second = {.raw = {0xfd, [15] = 2}};

	req(PEER_ID, NULL);
	pvrdma_route_in(&routes, mad, &peer);
	pvrdma_route_in(&routes, mad, &second);
	other(WIRE_CM_REP, GUEST_ID, PEER_ID);
	goes_to(&second);
}

static void the_oldest_are_forgotten(void **state)
{
	for (uint32_t i = 0; i < PVRDMA_ROUTES; i++) {
		req(PEER_ID + i, NULL);
		pvrdma_route_in(&routes, mad, &peer);
	}
	other(WIRE_CM_REP, GUEST_ID, PEER_ID);
	goes_to(&peer);
	req(PEER_ID + PVRDMA_ROUTES, NULL);
	pvrdma_route_in(&routes, mad, &peer);
	other(WIRE_CM_REP, GUEST_ID, PEER_ID);
	goes_to(NULL);
	other(WIRE_CM_REP, GUEST_ID, PEER_ID + 1);
	goes_to(&peer);
}

static void what_is_no_message_goes_nowhere(void **state)
{
	req(GUEST_ID, &peer);
	mad[1] = 3; /* class SubnAdm */
	goes_to(NULL);
	header(WIRE_CM_APR + 1);
	goes_to(NULL);
	pvrdma_route_in(&routes, mad, &peer);
	assert_int_equal(routes.num, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
	const struct CMUnitTest tests[] = {
		T(requests_of_qemu),
		T(a_message_is_qemus),
		T(a_guest_connects),
		T(a_guest_is_connected_to),
		T(services_are_resolved),
		T(an_id_is_used_again),
		T(the_oldest_are_forgotten),
		T(what_is_no_message_goes_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
