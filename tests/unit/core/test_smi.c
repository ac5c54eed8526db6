/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Directed routes at a channel adapter, rule by rule (C14-6, C14-9, C14-13). */
#include "../test.h"

#include "core/mad_priv.h"

#define PORT 1

struct rule {
	const char *name;
	bool response;
	u8 hop_cnt, hop_ptr;
	u8 path[2]; /* of hops 1 and 2, in the direction's path */
	u16 dr_slid, dr_dlid;
	enum smi_action action;
	u8 ptr_after;
};

#define P IB_LID_PERMISSIVE

static const struct rule sends[] = {
	{"C14-9:1 leaves by the first hop", false, 2, 0, {1, 3}, P, P, SMI_SEND, 1},
	{"C14-9:1 by a port that is not ours", false, 2, 0, {2, 3}, P, P, SMI_DISCARD, 1},
	{"C14-9:3 no hops: our own SMA", false, 0, 0, {0}, P, P, SMI_LOCAL, 1},
	{"C14-9:3 the rest is LID routed: not from an adapter", false, 0, 0, {0}, P, 7, SMI_DISCARD, 1},
	{"C14-9:2 an adapter is never in the middle", false, 3, 1, {1, 1}, P, P, SMI_DISCARD, 1},
	{"C14-9:4 already at the end: sent again", false, 0, 1, {0}, P, P, SMI_LOCAL, 1},
	{"C14-9:5 unreasonable hop pointer", false, 2, 9, {1, 1}, P, P, SMI_DISCARD, 9},
	{"14.2.2 begins with a part by LID", false, 2, 0, {2, 3}, 5, P, SMI_SEND, 0},
	{"14.2.2 the response too", true, 2, 3, {2, 3}, P, 5, SMI_SEND, 3},
	{"C14-13:3 back by LID", true, 0, 1, {0}, 5, P, SMI_SEND, 0},
	{"C14-6 hop count out of range", false, 64, 0, {1, 1}, P, P, SMI_DISCARD, 0},
	{"C14-13:1 back by the port it came by", true, 2, 3, {1, 1}, P, P, SMI_SEND, 2},
	{"C14-13:1 that was another port", true, 2, 3, {1, 2}, P, P, SMI_DISCARD, 2},
	{"C14-13:3 answered locally", true, 0, 1, {0}, P, P, SMI_LOCAL, 0},
	{"C14-13:4 given to the SM", true, 0, 0, {0}, P, P, SMI_LOCAL, 0},
	{"C14-13:5 unreasonable hop pointer", true, 2, 7, {1, 1}, P, P, SMI_DISCARD, 7},
};

static const struct rule receives[] = {
	{"C14-9:3 the end of the path", false, 2, 2, {1, 3}, P, P, SMI_LOCAL, 3},
	{"C14-9:3 but the rest is LID routed", false, 2, 2, {1, 3}, P, 9, SMI_DISCARD, 3},
	{"C14-9:2 in the middle", false, 3, 1, {1, 1}, P, P, SMI_DISCARD, 1},
	{"C14-9:1 nobody counted the first hop", false, 2, 0, {1, 1}, P, P, SMI_DISCARD, 0},
	{"C14-9:4 looped back", false, 0, 1, {0}, P, P, SMI_LOCAL, 1},
	{"C14-9:5", false, 1, 3, {1}, P, P, SMI_DISCARD, 3},
	{"C14-6", false, 64, 64, {1}, P, P, SMI_DISCARD, 64},
	{"C14-13:3 back at the SM", true, 2, 1, {1, 1}, P, P, SMI_LOCAL, 0},
	{"C14-13:3 but the rest is LID routed", true, 2, 1, {1, 1}, 7, P, SMI_DISCARD, 0},
	{"C14-13:4 came the rest by LID", true, 2, 0, {1, 1}, 7, P, SMI_LOCAL, 0},
	{"C14-9:3 came by LID, no hops", false, 0, 0, {0}, 7, P, SMI_LOCAL, 1},
	{"C14-13:2 in the middle", true, 2, 2, {1, 1}, P, P, SMI_DISCARD, 2},
	{"C14-13:4", true, 0, 0, {0}, P, P, SMI_LOCAL, 0},
};

static void check(const struct rule *rules, size_t n,
		  enum smi_action (*apply)(struct ib_smp *, u32))
{
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = &rules[i];
		struct ib_smp smp = {.hop_cnt = r->hop_cnt, .hop_ptr = r->hop_ptr,
				     .dr_slid = cpu_to_be16(r->dr_slid),
				     .dr_dlid = cpu_to_be16(r->dr_dlid)};

		if (r->response)
			smp.status = IB_SMP_DIRECTION;
		memcpy(r->response ? smp.return_path + 1 : smp.initial_path + 1, r->path, 2);
		if (apply(&smp, PORT) != r->action || smp.hop_ptr != r->ptr_after)
			fail_msg("%s: hop pointer %u", r->name, smp.hop_ptr);
	}
}

static void test_send_rules(void **state)
{
	check(sends, ARRAY_SIZE(sends), smi_send);
}

static void test_receive_rules(void **state)
{
	check(receives, ARRAY_SIZE(receives), smi_receive);
}

static void test_arrival_is_written_into_the_return_path(void **state)
{
	struct ib_smp smp = {.hop_cnt = 2, .hop_ptr = 2, .dr_slid = cpu_to_be16(P),
			     .dr_dlid = cpu_to_be16(P)};

	assert_int_equal(smi_receive(&smp, 5), SMI_LOCAL);
	assert_int_equal(smp.return_path[2], 5);
	assert_false(ib_get_smp_direction(&smp));
	smp.status |= IB_SMP_DIRECTION;
	assert_true(ib_get_smp_direction(&smp));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_rules),
		cmocka_unit_test(test_receive_rules),
		cmocka_unit_test(test_arrival_is_written_into_the_return_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
