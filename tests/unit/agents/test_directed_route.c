/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* C14-9 and C14-13, clause by clause: where an SMP is, where it goes. */
#include "mad.h"

#include "agents/directed_route.h"

enum { SEND, RECEIVE };
#define P WIRE_LID_PERMISSIVE

struct row {
	const char *clause;
	bool is_switch, receive;
	uint8_t port;	/* came in by */
	bool direction;
	uint8_t pointer, count;
	uint16_t dr_slid, dr_dlid;
	enum ag_dr_verdict verdict;
	uint8_t then_pointer, out;
};

/* of each route: initial path 1 2 3, return path 3 2 1, at ports [1] to [3] */
static const struct row rows[] = {
	{"C14-9:1 a CA begins", 0, SEND, 0, 0, 0, 3, P, P, AG_DR_FORWARD, 1, 1},
	{"C14-9:1 a LID routed part is before it", 0, SEND, 0, 0, 0, 3, 7, P, AG_DR_LID_ROUTE, 0, 0},
	{"C14-9:1 a switch begins another's", 1, RECEIVE, 2, 0, 0, 3, 7, P, AG_DR_FORWARD, 1, 1},
	{"C14-9:1 a CA does not", 0, RECEIVE, 1, 0, 0, 3, 7, P, AG_DR_DISCARD, 0, 0},
	{"C14-9:2 through a switch", 1, RECEIVE, 4, 0, 1, 3, P, P, AG_DR_FORWARD, 2, 2},
	{"C14-9:2 not through a CA", 0, RECEIVE, 1, 0, 1, 3, P, P, AG_DR_DISCARD, 1, 0},
	{"C14-9:3 ends here", 0, RECEIVE, 1, 0, 3, 3, P, P, AG_DR_LOCAL, 4, 0},
	{"C14-9:3 to oneself", 0, SEND, 0, 0, 0, 0, P, P, AG_DR_LOCAL, 1, 0},
	{"C14-9:3 goes on by LID", 1, RECEIVE, 1, 0, 3, 3, P, 9, AG_DR_LID_ROUTE, 4, 0},
	{"C14-9:3 but not from a CA", 0, RECEIVE, 1, 0, 3, 3, P, 9, AG_DR_DISCARD, 3, 0},
	{"C14-9:4 after the LID routed end", 0, RECEIVE, 1, 0, 4, 3, P, 9, AG_DR_LOCAL, 4, 0},
	{"C14-9:5 beyond", 1, RECEIVE, 1, 0, 5, 3, P, P, AG_DR_DISCARD, 5, 0},
	{"C14-13:1 the answer leaves", 0, SEND, 0, 1, 4, 3, P, P, AG_DR_FORWARD, 3, 1},
	{"C14-13:1 by LID first", 0, SEND, 0, 1, 4, 3, P, 9, AG_DR_LID_ROUTE, 4, 0},
	{"C14-13:1 then from a switch", 1, RECEIVE, 4, 1, 4, 3, P, 9, AG_DR_FORWARD, 3, 1},
	{"C14-13:1 not from a CA", 0, RECEIVE, 1, 1, 4, 3, P, 9, AG_DR_DISCARD, 4, 0},
	{"C14-13:2 through a switch", 1, RECEIVE, 1, 1, 3, 3, P, P, AG_DR_FORWARD, 2, 2},
	{"C14-13:2 not through a CA", 0, RECEIVE, 1, 1, 3, 3, P, P, AG_DR_DISCARD, 3, 0},
	{"C14-13:3 home", 0, RECEIVE, 1, 1, 1, 3, P, P, AG_DR_LOCAL, 0, 0},
	{"C14-13:3 goes on by LID", 1, RECEIVE, 1, 1, 1, 3, 7, P, AG_DR_LID_ROUTE, 0, 0},
	{"C14-13:3 but not from a CA", 0, RECEIVE, 1, 1, 1, 3, 7, P, AG_DR_DISCARD, 1, 0},
	{"C14-13:4 home by LID", 0, RECEIVE, 1, 1, 0, 3, 7, P, AG_DR_LOCAL, 0, 0},
	{"C14-13:5 beyond", 1, RECEIVE, 1, 1, 5, 3, P, P, AG_DR_DISCARD, 5, 0},
	{"too many hops", 1, RECEIVE, 1, 0, 1, 64, P, P, AG_DR_DISCARD, 1, 0},
};

static void clauses(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		struct ag_dr_at at = {r->is_switch, 4, r->port};
		struct wire_smp smp = {
			.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_DIRECT,
				.class_version = 1, .method = WIRE_METHOD_GET},
			.direction = r->direction, .hop_pointer = r->pointer,
			.hop_count = r->count, .dr_slid = r->dr_slid, .dr_dlid = r->dr_dlid,
			.initial_path = {0, 1, 2, 3}, .return_path = {0, 3, 2, 1},
		};
		uint8_t mad[WIRE_MAD_BYTES] = {0}, out = 0;
		enum ag_dr_verdict verdict;

		wire_smp_encode(&smp, mad);
		verdict = r->receive ? ag_dr_receive(&at, mad, &out) : ag_dr_send(&at, mad, &out);
		wire_smp_decode(mad, sizeof(mad), &smp);
		if (verdict != r->verdict || smp.hop_pointer != r->then_pointer || out != r->out)
			fail_msg("%s: verdict %d, pointer %d, port %d", r->clause, verdict,
				 smp.hop_pointer, out);
	}
}

static void return_path_is_gathered(void **state)
{
	struct ag_dr_at at = {true, 36, 17};
	struct wire_smp smp = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_DIRECT, .class_version = 1},
		.hop_pointer = 62, .hop_count = 63, .dr_slid = P, .dr_dlid = P,
	};
	uint8_t mad[WIRE_MAD_BYTES] = {0}, out;

	smp.initial_path[63] = 36;
	wire_smp_encode(&smp, mad);
	assert_int_equal(ag_dr_receive(&at, mad, &out), AG_DR_FORWARD);
	assert_int_equal(out, 36);
	at = (struct ag_dr_at){false, 1, 1};
	assert_int_equal(ag_dr_receive(&at, mad, &out), AG_DR_LOCAL);
	wire_smp_decode(mad, sizeof(mad), &smp);
	assert_int_equal(smp.return_path[62], 17);
	assert_int_equal(smp.return_path[63], 1);
	assert_int_equal(smp.hop_pointer, 64);
}

static void only_existing_ports(void **state)
{
	for (int p = 0; p <= 255; p++) {
		struct ag_dr_at at = {true, 36, 1};
		struct wire_smp smp = {
			.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SM_DIRECT,
				.class_version = 1},
			.hop_pointer = 1, .hop_count = 2, .dr_slid = P, .dr_dlid = P,
			.initial_path = {0, 1, (uint8_t)p},
		};
		uint8_t mad[WIRE_MAD_BYTES] = {0}, before[WIRE_MAD_BYTES], out;
		bool exists = p >= 1 && p <= 36;

		wire_smp_encode(&smp, mad);
		memcpy(before, mad, sizeof(mad));
		assert_int_equal(ag_dr_receive(&at, mad, &out),
				 exists ? AG_DR_FORWARD : AG_DR_DISCARD);
		if (!exists)
			assert_memory_equal(before, mad, sizeof(mad));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clauses),
		cmocka_unit_test(return_path_is_gathered),
		cmocka_unit_test(only_existing_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
