/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Verdicts: places, conditions, triggers, what each action asks for, seeds. */
#include "lab.h"

#define LOG_ROOM 16

struct lab {
	struct flt_set set;
	struct flt_hit log[LOG_ROOM];
	struct flt_verdict v;
};

static int setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));

	flt_set_init(&lab->set, 7, lab->log, LOG_ROOM);
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* how many of @n packets on n1's link are dropped */
static int dropped(struct lab *lab, int n)
{
	struct flt_event ev = lab_event((struct lab_packet){0});
	int drops = 0;

	while (n--)
		drops += flt_packet(&lab->set, &ev, &lab->v) && lab->v.drop;
	return drops;
}

static bool hits(struct lab *lab, const char *rule, struct flt_event ev)
{
	bool any;

	flt_set_init(&lab->set, 7, lab->log, LOG_ROOM);
	lab_add(&lab->set, rule);
	any = flt_packet(&lab->set, &ev, &lab->v);
	assert_int_equal(lab->set.rule[0].matched, any);
	return any;
}

static void places(void **state)
{
	struct flt_event first = lab_event((struct lab_packet){0}), inside = first;
	struct flt_event second = lab_second((struct lab_packet){0});
	static const struct {
		const char *rule;
		bool first, second, inside;
	} table[] = {
		{"all drop", true, false, true},
		{"link n1:1 drop", true, false, false},
		{"link s1:1 drop", true, false, false},
		{"link n1:1 drop dir=out", true, false, false},
		{"link n1:1 drop dir=in", false, false, false},
		{"link s1:1 drop dir=in", true, false, false},
		{"port n1:1 drop", true, false, true},
		{"node n1 drop", true, false, true},
		{"node n2 drop", false, true, false},
		{"node n2 drop dir=out", false, false, false},
		{"node s1 drop", true, false, false}, /* as it comes in: once */
		{"node s1 drop dir=both", true, true, false},
		{"qp n2:0x12 drop", false, true, false},
		{"qp n2:0x13 drop", false, false, false},
		{"qp n1:0x12 drop dir=in", false, false, true},
		{"qp n1:0x12 drop dir=out", false, false, false},
		{"qp n1:0x15 drop dir=out", true, false, true},
	};

	inside.to = inside.from;
	first.from_qpn = inside.from_qpn = 0x15;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		print_message("# %s\n", table[i].rule);
		assert_int_equal(hits(*state, table[i].rule, first), table[i].first);
		assert_int_equal(hits(*state, table[i].rule, second), table[i].second);
		assert_int_equal(hits(*state, table[i].rule, inside), table[i].inside);
	}
}

static void conditions(void **state)
{
	static const uint8_t mad[WIRE_MAD_BYTES] = {
		1, WIRE_CLASS_SA, 2, WIRE_METHOD_GET_TABLE, [17] = 0x35, [23] = 9};
	struct flt_event rc = lab_event((struct lab_packet){.psn = 0x100, .payload = 60});
	struct flt_event sa = lab_event((struct lab_packet){
		.opcode = WIRE_UD | WIRE_SEND_ONLY, .dest_qpn = 1, .src_qpn = 1, .mad = mad});
	static const struct {
		const char *rule;
		bool rc, sa;
	} table[] = {
		{"all drop transport=rc", true, false},
		{"all drop transport=ud", false, true},
		{"all drop op=send", true, true},
		{"all drop op=read", false, false},
		{"all drop opcode=rc-send-only", true, false},
		{"all drop opcode=0x64", false, true},
		{"all drop qpn=0x12", true, false},
		{"all drop src-qpn=1", false, true},
		{"all drop psn=0x100", true, false},
		{"all drop psn=0xf0-0x101", true, false},
		{"all drop psn=0x101-0x110", false, false},
		{"all drop bytes=300-400", false, false},
		{"all drop bytes=80", true, false},
		{"class sa drop", false, true},
		{"class perf drop", false, false},
		{"class sa drop method=get-table", false, true},
		{"class sa drop method=get", false, false},
		{"class sa drop attr=0x35 mod=9", false, true},
		{"class sa drop attr=0x35 mod=8", false, false},
		{"all drop slid=1 dlid=2 sl=0 vl=0 pkey=0xffff", true, true},
		{"all drop slid=2", false, false},
		{"all rnr", true, false}, /* only what takes a receive */
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		print_message("# %s\n", table[i].rule);
		assert_int_equal(hits(*state, table[i].rule, rc), table[i].rc);
		assert_int_equal(hits(*state, table[i].rule, sa), table[i].sa);
	}
}

static void triggers(void **state)
{
	static const struct {
		const char *rule;
		int of_100;
	} table[] = {
		{"all drop", 100}, {"all drop count=3", 3}, {"all drop every=10", 10},
		{"all drop nth=7", 1}, {"all drop first=20", 20}, {"all drop after=90", 10},
		{"all drop after=50 first=30 every=10", 3}, {"all drop rate=100%", 100},
	};

	struct lab *lab = *state;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		print_message("# %s\n", table[i].rule);
		flt_set_init(&lab->set, 7, NULL, 0);
		lab_add(&lab->set, table[i].rule);
		assert_int_equal(dropped(lab, 100), table[i].of_100);
	}
}

static void nth_is_that_one(void **state)
{
	struct lab *lab = *state;

	lab_add(&lab->set, "all drop nth=7");
	assert_int_equal(dropped(lab, 6), 0);
	assert_int_equal(dropped(lab, 1), 1);
	assert_int_equal(dropped(lab, 9), 0);
}

static void rate_is_kept(void **state)
{
	struct lab *lab = *state;
	int n;

	lab_add(&lab->set, "all drop rate=1%");
	n = dropped(lab, 100000);
	assert_in_range(n, 900, 1100);
	assert_int_equal(lab->set.rule[0].matched, 100000);
	assert_int_equal(lab->set.rule[0].hits, n);
}

/* which of @n packets a rule hits, as a string of 0 and 1 */
static void pattern(struct lab *lab, uint32_t id, char *out, int n)
{
	struct flt_event ev = lab_event((struct lab_packet){0});

	for (int i = 0; i < n; i++) {
		uint64_t before = flt_find(&lab->set, id)->hits;

		flt_packet(&lab->set, &ev, &lab->v);
		out[i] = (char)('0' + (flt_find(&lab->set, id)->hits - before));
	}
	out[n] = 0;
}

static void same_seed_same_verdicts(void **state)
{
	struct lab *lab = *state;
	char a[201], b[201], c[201];
	uint32_t id;

	pattern(lab, lab_add(&lab->set, "all duplicate rate=20% seed=42"), a, 200);
	flt_set_init(&lab->set, 99, NULL, 0);
	/* another rule beside it changes nothing */
	lab_add(&lab->set, "all errors symbol-errors rate=30%");
	id = lab_add(&lab->set, "all duplicate rate=20% seed=42");
	pattern(lab, id, b, 200);
	assert_string_equal(a, b);
	flt_set_init(&lab->set, 99, NULL, 0);
	pattern(lab, lab_add(&lab->set, "all duplicate rate=20% seed=43"), c, 200);
	assert_string_not_equal(a, c);
}

static void seed_of_the_set(void **state)
{
	struct lab *lab = *state;
	uint64_t seed[3];

	for (int i = 0; i < 3; i++) {
		flt_set_init(&lab->set, i == 2 ? 8 : 7, NULL, 0);
		lab_add(&lab->set, "all drop");
		lab_add(&lab->set, "all drop");
		assert_int_not_equal(lab->set.rule[0].seed, lab->set.rule[1].seed);
		seed[i] = lab->set.rule[1].seed;
	}
	assert_int_equal(seed[0], seed[1]);
	assert_int_not_equal(seed[0], seed[2]);
}

static void a_lost_packet_is_lost_once(void **state)
{
	struct lab *lab = *state;

	lab_add(&lab->set, "all drop");
	lab_add(&lab->set, "all duplicate");
	dropped(lab, 1);
	assert_true(lab->v.drop);
	assert_int_equal(lab->v.rule, 1);
	assert_int_equal(lab->v.copies, 0);
	assert_int_equal(lab->set.rule[1].matched, 1);
	assert_int_equal(lab->set.rule[1].hits, 0);
	assert_int_equal(lab->set.logged, 1);
}

static void corruption(void **state)
{
	struct lab *lab = *state;
	struct flt_event ev = lab_event((struct lab_packet){.payload = 100});
	uint32_t seen = 0;

	lab_add(&lab->set, "all corrupt offset=9 mask=0x81 crc=fixed");
	assert_true(flt_packet(&lab->set, &ev, &lab->v));
	assert_true(lab->v.corrupt);
	assert_int_equal(lab->v.corrupt_offset, 9);
	assert_int_equal(lab->v.corrupt_mask, 0x81);
	assert_int_equal(lab->v.crc, FLT_CRC_FIXED);
	flt_remove(&lab->set, 1);
	lab_add(&lab->set, "all corrupt");
	for (int i = 0; i < 2000; i++) {
		assert_true(flt_packet(&lab->set, &ev, &lab->v));
		assert_in_range(lab->v.corrupt_offset, 0, ev.field[FLT_BYTES] - 1);
		assert_int_equal(__builtin_popcount(lab->v.corrupt_mask), 1);
		if (lab->v.corrupt_offset < 32)
			seen |= 1u << lab->v.corrupt_offset;
	}
	assert_int_equal(seen, 0xffffffff); /* it reaches every byte */
}

static void beyond_the_packet_nothing_is_spoiled(void **state)
{
	struct flt_event ev = lab_event((struct lab_packet){.payload = 60}); /* 80 bytes */

	assert_true(hits(*state, "all corrupt offset=79", ev));
	assert_false(hits(*state, "all corrupt offset=80", ev));
}

static void delays_keep_order(void **state)
{
	struct lab *lab = *state;
	struct flt_event ev = lab_event((struct lab_packet){0});
	uint64_t last = 0;

	lab_add(&lab->set, "all delay 1ms jitter=500us");
	for (int i = 0; i < 100; i++) {
		ev.now.ns += 1000;
		flt_packet(&lab->set, &ev, &lab->v);
		assert_in_range(lab->v.delay_ns, 1000000, 1500000);
		assert_true(ev.now.ns + lab->v.delay_ns >= last);
		last = ev.now.ns + lab->v.delay_ns;
	}
}

static void bandwidth_is_a_queue(void **state)
{
	struct lab *lab = *state;
	struct flt_event ev = lab_event((struct lab_packet){.payload = 980}); /* 1000 bytes */

	lab_add(&lab->set, "link n1:1 bandwidth 1MB/s");
	assert_int_equal(ev.field[FLT_BYTES], 1000);
	for (uint64_t i = 1; i <= 5; i++) { /* 1 ms each, one behind the other */
		assert_false(flt_busy(&lab->set, &ev));
		flt_packet(&lab->set, &ev, &lab->v);
		assert_int_equal(lab->v.delay_ns, i * NSEC_PER_MSEC);
	}
	assert_true(flt_busy(&lab->set, &ev)); /* more than 4 ms wait */
	ev.from = (struct flt_end){S1, 1, true};
	ev.to = (struct flt_end){N1, 1, false};
	assert_false(flt_busy(&lab->set, &ev)); /* the other way is free */
	flt_packet(&lab->set, &ev, &lab->v);
	assert_int_equal(lab->v.delay_ns, NSEC_PER_MSEC);
}

static void reorder_waits_for_packets(void **state)
{
	struct lab *lab = *state;
	struct flt_event ev = lab_event((struct lab_packet){0});
	struct flt_verdict held;

	lab_add(&lab->set, "all reorder 2 every=3 time=5ms");
	assert_false(flt_packet(&lab->set, &ev, &lab->v));
	assert_false(flt_packet(&lab->set, &ev, &lab->v));
	assert_true(flt_packet(&lab->set, &ev, &held));
	assert_int_equal(held.hold_ns, 5 * NSEC_PER_MSEC);
	assert_false(flt_hold_over(&lab->set, held.rule, held.hold_way, held.hold_until));
	flt_packet(&lab->set, &ev, &lab->v);
	assert_false(flt_hold_over(&lab->set, held.rule, held.hold_way, held.hold_until));
	flt_packet(&lab->set, &ev, &lab->v);
	assert_true(flt_hold_over(&lab->set, held.rule, held.hold_way, held.hold_until));
	flt_remove(&lab->set, held.rule);
	assert_true(flt_hold_over(&lab->set, held.rule, held.hold_way, 1000000));
}

static void other_actions(void **state)
{
	struct lab *lab = *state;
	struct flt_event ev = lab_event((struct lab_packet){0});

	lab_add(&lab->set, "all duplicate copies=3");
	lab_add(&lab->set, "all rnr timer=14");
	lab_add(&lab->set, "all errors xmit-wait add=5");
	assert_true(flt_packet(&lab->set, &ev, &lab->v));
	assert_int_equal(lab->v.copies, 3);
	assert_true(lab->v.rnr);
	assert_int_equal(lab->v.timer_enc, 14);
	assert_true(lab->v.counts);
	assert_int_equal(lab->v.errors[FLT_XMIT_WAIT], 5);
	assert_int_equal(lab->set.logged, 3);
	flt_set_init(&lab->set, 7, lab->log, LOG_ROOM);
	lab_add(&lab->set, "all note");
	flt_packet(&lab->set, &ev, &lab->v);
	assert_int_equal(lab->set.logged, 1); /* and nothing else */
	assert_false(lab->v.drop || lab->v.corrupt || lab->v.copies || lab->v.delay_ns);
}

static void watching(void **state)
{
	struct lab *lab = *state;
	struct flt_end n1 = {N1, 1, false}, s1 = {S1, 1, true}, s2 = {S1, 2, true},
		       n2 = {N2, 1, false};

	lab_add(&lab->set, "class sa drop"); /* MADs never go past the fabric */
	lab_add(&lab->set, "node n1 fail qp");
	assert_false(flt_watches(&lab->set, n1, s1));
	lab_add(&lab->set, "link n1:1 drop count=1");
	assert_true(flt_watches(&lab->set, n1, s1));
	assert_false(flt_watches(&lab->set, s2, n2));
	assert_false(flt_take_spent(&lab->set));
	dropped(lab, 1);
	assert_true(flt_take_spent(&lab->set));
	assert_false(flt_take_spent(&lab->set));
	assert_false(flt_watches(&lab->set, n1, s1));
	lab_add(&lab->set, "qp n2:0x12 drop");
	assert_true(flt_watches(&lab->set, s2, n2));
}

static void objects_and_completions(void **state)
{
	struct lab *lab = *state;
	struct flt_object_event mr = {.node = N1, .kind = FLT_OBJECT_MR};
	struct flt_object_event qp = {.node = N1, .kind = FLT_OBJECT_QP};
	struct flt_object_event send = {.node = N1, .qpn = 0x12, .opcode = 0};
	struct flt_object_event recv = {.node = N1, .qpn = 0x12, .opcode = 128};

	lab_add(&lab->set, "node n1 fail mr nth=2 errno=enospc");
	assert_int_equal(flt_object(&lab->set, &qp), 0);
	assert_int_equal(flt_object(&lab->set, &mr), 0);
	assert_int_equal(flt_object(&lab->set, &mr), 28);
	assert_string_equal(flt_hit_what(flt_log_at(&lab->set, 0)), "mr");
	assert_int_equal(flt_object(&lab->set, &mr), 0);
	lab_add(&lab->set, "qp n1:0x12 completion rem-access-err op=send nth=2");
	assert_int_equal(flt_completion(&lab->set, &recv), 0);
	assert_int_equal(flt_completion(&lab->set, &send), 0);
	assert_int_equal(flt_completion(&lab->set, &recv), 0);
	assert_int_equal(flt_completion(&lab->set, &send), 10);
	assert_string_equal(flt_hit_what(flt_log_at(&lab->set, 1)), "rem-access-err");
	assert_int_equal(flt_log_at(&lab->set, 1)->field[FLT_SRC_QPN], 0x12);
	lab_add(&lab->set, "node n1 overrun count=1");
	assert_int_equal(flt_completion(&lab->set, &recv), FLT_OVERRUN_CQ);
	assert_int_equal(flt_completion(&lab->set, &recv), 0);
	assert_true(flt_has_action(&lab->set, FLT_OVERRUN));
	assert_false(flt_has_action(&lab->set, FLT_DROP));
}

static void states_count(void **state)
{
	struct lab *lab = *state;

	lab_add(&lab->set, "link n1:1 down for=1s period=2s count=2");
	assert_true(flt_is_state(FLT_DOWN));
	assert_true(flt_state_hit(&lab->set, &lab->set.rule[0], (mono_t){5}));
	assert_true(flt_state_hit(&lab->set, &lab->set.rule[0], (mono_t){6}));
	assert_false(flt_state_hit(&lab->set, &lab->set.rule[0], (mono_t){7}));
	assert_int_equal(flt_log_at(&lab->set, 1)->when.ns, 6);
	assert_int_equal(flt_log_at(&lab->set, 1)->from.node, N1);
}

static void the_log_keeps_the_last(void **state)
{
	struct lab *lab = *state;

	lab_add(&lab->set, "all drop");
	assert_null(flt_log_at(&lab->set, 0));
	for (uint32_t i = 1; i <= LOG_ROOM + 4; i++) {
		struct flt_event ev = lab_event((struct lab_packet){.psn = i});

		flt_packet(&lab->set, &ev, &lab->v);
	}
	assert_int_equal(lab->set.logged, LOG_ROOM + 4);
	assert_int_equal(flt_log_at(&lab->set, 0)->serial, 5);
	assert_int_equal(flt_log_at(&lab->set, 0)->field[FLT_PSN], 5);
	assert_int_equal(flt_log_at(&lab->set, LOG_ROOM - 1)->field[FLT_PSN], LOG_ROOM + 4);
	assert_null(flt_log_at(&lab->set, LOG_ROOM));
}

static void rules_come_and_go(void **state)
{
	struct lab *lab = *state;
	struct flt_rule rule = lab_rule("all drop");

	assert_int_equal(flt_remove(&lab->set, 1), -2);
	for (int i = 0; i < FLT_RULES_MAX; i++)
		assert_int_equal(flt_add(&lab->set, &rule), i + 1);
	assert_int_equal(flt_add(&lab->set, &rule), -28);
	assert_int_equal(flt_remove(&lab->set, 3), 0);
	assert_null(flt_find(&lab->set, 3));
	assert_int_equal(flt_find(&lab->set, 4)->id, 4);
	/* an id is not given twice */
	assert_int_equal(flt_add(&lab->set, &rule), FLT_RULES_MAX + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(places),
		TEST(conditions),
		TEST(triggers),
		TEST(nth_is_that_one),
		TEST(rate_is_kept),
		TEST(same_seed_same_verdicts),
		TEST(seed_of_the_set),
		TEST(a_lost_packet_is_lost_once),
		TEST(corruption),
		TEST(beyond_the_packet_nothing_is_spoiled),
		TEST(delays_keep_order),
		TEST(bandwidth_is_a_queue),
		TEST(reorder_waits_for_packets),
		TEST(other_actions),
		TEST(watching),
		TEST(objects_and_completions),
		TEST(states_count),
		TEST(the_log_keeps_the_last),
		TEST(rules_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
