/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Keepalive under a clock of the test. */
#include "../test.h"

#include "sdp/keepalive.h"

#define S 1000000000ull

static struct sdp_keepalive k(void)
{
	return (struct sdp_keepalive){.idle_ns = 10 * S, .interval_ns = 3 * S, .count = 4, .heard_ns = 100 * S};
}

static void a_dead_peer_is_noticed_in_time(void **state)
{
	struct sdp_keepalive keep = k();

	for (uint64_t probe = 0; probe < 4; probe++) {
		const uint64_t due = (110 + 3 * probe) * S;

		assert_true(sdp_keepalive_due(&keep) == due);
		assert_int_equal(sdp_keepalive_step(&keep, due - 1), SDP_KEEPALIVE_WAIT);
		assert_int_equal(sdp_keepalive_step(&keep, due), SDP_KEEPALIVE_PROBE);
	}
	assert_true(sdp_keepalive_due(&keep) == 122 * S);
	assert_int_equal(sdp_keepalive_step(&keep, 122 * S), SDP_KEEPALIVE_DEAD);
}

static void an_answer_begins_anew(void **state)
{
	struct sdp_keepalive keep = k();

	assert_int_equal(sdp_keepalive_step(&keep, 110 * S), SDP_KEEPALIVE_PROBE);
	assert_int_equal(sdp_keepalive_step(&keep, 113 * S), SDP_KEEPALIVE_PROBE);
	sdp_keepalive_heard(&keep, 114 * S);
	assert_true(sdp_keepalive_due(&keep) == 124 * S);
	for (int probe = 0; probe < 4; probe++)
		assert_int_equal(sdp_keepalive_step(&keep, sdp_keepalive_due(&keep)), SDP_KEEPALIVE_PROBE);
	assert_int_equal(sdp_keepalive_step(&keep, sdp_keepalive_due(&keep)), SDP_KEEPALIVE_DEAD);
}

static void traffic_needs_no_probes(void **state)
{
	struct sdp_keepalive keep = k();

	for (uint64_t now = 100 * S; now < 1000 * S; now += 9 * S) {
		sdp_keepalive_heard(&keep, now);
		assert_int_equal(sdp_keepalive_step(&keep, now + 9 * S), SDP_KEEPALIVE_WAIT);
	}
}

static void it_may_be_off(void **state)
{
	struct sdp_keepalive keep = {.count = 1};

	assert_true(sdp_keepalive_due(&keep) == UINT64_MAX);
	assert_int_equal(sdp_keepalive_step(&keep, UINT64_MAX - 1), SDP_KEEPALIVE_WAIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_peer_is_noticed_in_time),
		cmocka_unit_test(an_answer_begins_anew),
		cmocka_unit_test(traffic_needs_no_probes),
		cmocka_unit_test(it_may_be_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
