/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rules as text: parsed, printed, parsed again; and what is refused, with a
 * message that says what would do. */
#include "lab.h"

static void round_trip(void **state)
{
	static const struct {
		const char *text, *printed; /* NULL: as it was */
	} table[] = {
		{"all drop", NULL},
		{"link n1:1 drop rate=1%", NULL},
		{"link n1:1 drop 1%", "link n1:1 drop rate=1%"},
		{"link n1:1 drop 500ppm", "link n1:1 drop rate=500ppm"},
		{"link n1:1 delay 5ms 500ppm", "link n1:1 delay 5ms rate=500ppm"},
		{"all duplicate 500ppm", "all duplicate rate=500ppm"},
		{"link \"host two:1\" drop", "link n2:1 drop"},
		{"link \"host two\":1 drop\r", "link n2:1 drop"},
		{"node \"n2\" fail qp", "node n2 fail qp"},
		{"LINK n1:1 DROP rate=0.1%", "link n1:1 drop rate=1000ppm"},
		{"port s1:2 drop dir=in op=write qpn=0x12 count=5", NULL},
		{"node s1 drop dir=in", "node s1 drop"},
		{"node s1 drop dir=both", NULL},
		{"qp n1:18 drop psn=0x10-0x20", "qp n1:0x12 drop psn=0x10-0x20"},
		{"class sa drop method=get-table", NULL},
		{"all drop class=0x03 attr=53", "class sa drop attr=0x35"},
		{"class 0x30-0x4f drop", NULL},
		{"all duplicate", NULL},
		{"all duplicate 3", NULL},
		{"all duplicate copies=3", "all duplicate 3"},
		{"all reorder 4 time=2ms", NULL},
		{"all delay 1.5ms jitter=100us", "all delay 1500us jitter=100us"},
		{"all delay time=2s", "all delay 2s"},
		{"all corrupt rate=1000ppm crc=vcrc", NULL},
		{"all corrupt offset=0x10 mask=0x80", "all corrupt offset=16 mask=0x80"},
		{"link n1:1 bandwidth 1Gbit/s", "link n1:1 bandwidth 125MB/s"},
		{"qp n1:0x12 rnr first=3 timer=14", NULL},
		{"all errors symbol-errors add=10", NULL},
		{"all errors Symbol_Errors", "all errors symbol-errors"},
		{"link s1:1 note op=send first=1", NULL},
		{"node n1 fail mr nth=2", "node n1 fail mr first=1 after=1"},
		{"node n1 fail any errno=EAGAIN", "node n1 fail any errno=eagain"},
		{"qp n1:0x12 completion IBV_WC_REM_ACCESS_ERR op=send",
		 "qp n1:0x12 completion rem-access-err op=send"},
		{"node n1 overrun", NULL},
		{"link n1:1 down count=3 for=500ms period=2s", NULL},
		{"node s1 death", NULL},
		{"node n1 remove for=1s", NULL},
		{"port n1:1 event port-err", NULL},
		{"port n1:1 event IBV_EVENT_PORT_ERR", "port n1:1 event port-err"},
		{"all drop opcode=rc-rdma-write-first", "all drop opcode=0x6"},
		{"all drop opcode=rc-acknowledge", "all drop opcode=0x11"},
		{"all drop opcode=ud-send-only", "all drop opcode=0x64"},
		{"all drop every=4 first=4", NULL},
		{"all drop opcode=RC_SEND_Only seed=42", "all drop opcode=0x4 seed=0x2a"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const char *want = table[i].printed ? table[i].printed : table[i].text;
		struct flt_rule rule = lab_rule(table[i].text), again;
		char text[FLT_TEXT_MAX];

		assert_int_equal(flt_print(&rule, &lab_names, text, sizeof(text)), strlen(want));
		assert_string_equal(text, want);
		again = lab_rule(text);
		assert_memory_equal(&rule, &again, sizeof(rule));
	}
}

static const struct {
	const char *text, *message; /* a part of it */
} refusals[] = {
	{"", "the rule is empty; expected all, link NODE:PORT"},
	{"everywhere drop", "no place \"everywhere\"; expected all, link"},
	{"link", "nothing stands behind \"link\""},
	{"link n1 drop", "no place \"n1\"; expected NODE:PORT such as n1:1"},
	{"link n1: drop", "expected NODE:PORT"},
	{"link :1 drop", "expected NODE:PORT"},
	{"link n7:1 drop", "no node \"n7\"; expected a name"},
	{"link n1:2 drop", "no port \"2\"; expected 1 to 1"},
	{"link n1:0 drop", "no port \"0\"; expected 1 to 1"},
	{"link n1:x drop", "no port \"x\""},
	{"link s1:3 drop", "no cable at port \"3\""},
	{"link \"host two:1 drop", "a quote is not closed"},
	{"all note nth=3 every=2", "nothing is hit"},
	{"all drop first=3 every=4", "nothing is hit"},
	{"all drop op=recv", "no packet is a \"recv\"; expected send, write"},
	{"node n1 completion rem-op-err op=ack", "no completion is of an \"ack\""},
	{"link n1:1 drop dir=in dir=out", "given twice: \"dir\""},
	{"all drop psn=1 psn=2", "given twice: \"psn\""},
	{"class sa drop class=cm", "given twice: \"class\""},
	{"qp n1:1 drop", "queue pair \"1\"; expected class CLASS"},
	{"qp n1:0x99 event qp-fatal", "see 'softib resource show'"},
	{"all drop opcode=foo", "expected a name such as rc-send-only, rc-rdma-write-first"},
	{"link host two:1 drop", "no place \"host\""},
	{"link n1:1 \"\"", "no action \"\""},
	{"link n1:1 delay \"\"", "time \"\""},
	{"link n1:1 drop \"\"", "no option \"\""},
	{"node x drop", "no node \"x\""},
	{"qp n1:0x99 drop", "no queue pair \"0x99\"; expected one that exists"},
	{"qp n1:0x1000000 drop", "no QPN"},
	{"qp s1:0x12 drop", "queue pairs of a switch"},
	{"qp n1 drop", "expected NODE:QPN"},
	{"class tea drop", "class \"tea\"; expected sm, sm-direct, sa"},
	{"all", "the action is missing; expected drop, duplicate"},
	{"all explode", "no action \"explode\"; expected drop, duplicate"},
	{"all down", "no action \"down\"; expected drop"},
	{"link n1:1 remove", "no action \"remove\""},
	{"all drop fast", "no option \"fast\"; expected NAME=VALUE"},
	{"all drop copies=2", "drop takes no \"copies\"; expected rate, count"},
	{"all drop colour=red", "drop takes no \"colour\""},
	{"all drop 5ppb", "no option \"5ppb\"; expected NAME=VALUE such as count=5, or a share"},
	{"all drop 0ppm", "rate \"0ppm\""},
	{"all drop rate=2", "rate \"2\"; expected a share such as 1%"},
	{"all drop rate=101%", "rate \"101%\""},
	{"all drop rate=0%", "rate \"0%\""},
	{"all drop rate=-1%", "rate \"-1%\""},
	{"all drop rate=1.23456%", "rate \"1.23456%\""},
	{"all drop rate=1..2%", "rate \"1..2%\""},
	{"all drop count=0", "count \"0\""},
	{"all drop count=4294967296", "at most 4294967295"},
	{"all drop count=18446744073709551616", "count"},
	{"all drop count=1 count=2", "given twice: \"count\""},
	{"all drop nth=0", "nth \"0\""},
	{"all drop psn=0x1000000", "psn \"0x1000000\"; expected a number or a range"},
	{"all drop psn=9-5", "psn \"9-5\""},
	{"all drop psn=", "psn \"\""},
	{"all drop opcode=0x100", "opcode"},
	{"all drop dir=in", "dir \"in\"; expected a place that has sides"},
	{"link n1:1 drop dir=up", "dir \"up\"; expected both, in, out"},
	{"all delay", "delay \"\"; expected a time such as"},
	{"all delay 5", "time \"5\"; expected a time such as"},
	{"all delay 5 ms", "time \"5\""},
	{"all delay 5parsec", "time"},
	{"all delay 99999999999s", "time"},
	{"all bandwidth fast", "limit \"fast\"; expected a speed such as 100MB/s"},
	{"all corrupt mask=3", "a mask without \"offset\""},
	{"all corrupt offset=3 mask=0x100", "mask"},
	{"all corrupt crc=good", "crc \"good\"; expected bad, vcrc, fixed"},
	{"all errors", "errors \"\"; expected symbol-errors"},
	{"all rnr timer=32", "timer \"32\""},
	{"node n1 fail", "fail \"\"; expected any, context, pd"},
	{"node n1 fail tea", "object \"tea\"; expected any, context, pd"},
	{"node n1 fail qp errno=eparty", "errno \"eparty\"; expected enomem"},
	{"node n1 fail qp psn=3", "fail takes no \"psn\""},
	{"node s1 fail qp", "expected an adapter's node"},
	{"qp n1:0x12 completion success", "status \"success\"; expected loc-len-err"},
	{"node n1 death", "expected a switch"},
	{"node s1 remove", "expected an adapter's node"},
	{"link n1:1 down for=2s period=1s", "the period is not longer"},
	{"link n1:1 down period=1s", "a period without \"for\""},
	{"port n1:1 event cq-err", "cq-err is of a queue pair; expected qp NODE:QPN event cq-err"},
	{"node n1 event qp-fatal", "qp-fatal is of a queue pair"},
	{"node n1 event qp-last-wqe-reached period=1s", "is of a queue pair"},
	{"port n1:1 event srq-limit-reached", "is of a queue pair"},
	{"qp n1:0x12 event port-err", "port-err is of a port; expected port NODE:PORT event"},
	{"qp n1:0x12 event device-fatal", "is of a port"},
	{"port n1:1 event party", "name \"party\"; expected cq-err"},
};

static void refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct flt_rule rule = {.id = 77};
		char err[512] = "";

		print_message("# %s\n", refusals[i].text);
		assert_int_equal(flt_parse(refusals[i].text, &lab_names, &rule, err, sizeof(err)), -22);
		if (!strstr(err, refusals[i].message))
			fail_msg("\"%s\": said \"%s\", not \"%s\"", refusals[i].text, err,
				 refusals[i].message);
		assert_int_equal(rule.id, 77); /* nothing is set on failure */
	}
}

/* softib-fault(5) lists these */
static void objects_that_can_fail(void **state)
{
	static const char *const objects[] = {"any", "context", "pd",  "cq",
					      "qp",  "srq",	"mr", "mw", "multicast"};
	static const char *const inside[] = {"ah", "channel"};
	struct flt_rule rule;
	char text[64], err[512];

	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		snprintf(text, sizeof(text), "node n1 fail %s", objects[i]);
		lab_rule(text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		snprintf(text, sizeof(text), "node n1 fail %s", inside[i]);
		assert_int_equal(flt_parse(text, &lab_names, &rule, err, sizeof(err)), -22);
	}
}

static void too_long(void **state)
{
	char text[FLT_TEXT_MAX * 2], err[512];
	struct flt_rule rule;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	assert_int_equal(flt_parse(text, &lab_names, &rule, err, sizeof(err)), -22);
	assert_non_null(strstr(err, "too long"));
	for (size_t i = 0; i < 100; i += 2)
		memcpy(text + i, "a ", 2);
	text[100] = 0;
	assert_int_equal(flt_parse(text, &lab_names, &rule, err, sizeof(err)), -22);
	assert_non_null(strstr(err, "too many words"));
}

static void messages_fit(void **state)
{
	struct flt_rule rule = lab_rule("link n1:1 drop rate=1% count=3");
	char small[12];

	memset(small, 'x', sizeof(small));
	assert_int_equal(flt_parse("all fly", &lab_names, &rule, small, 8), -22);
	assert_string_equal(small, "no acti");
	assert_int_equal(small[8], 'x');
	flt_print(&rule, &lab_names, small, 8);
	assert_string_equal(small, "link n1");
	assert_int_equal(small[8], 'x');
}

static void times(void **state)
{
	uint64_t ns;

	assert_int_equal(flt_time_parse("1.5s", &ns), 0);
	assert_int_equal(ns, 1500000000);
	assert_int_equal(flt_time_parse("250us", &ns), 0);
	assert_int_equal(ns, 250000);
	assert_int_equal(flt_time_parse("1.5ns", &ns), -22);
	assert_int_equal(flt_time_parse("s", &ns), -22);
	assert_int_equal(flt_time_parse("", &ns), -22);
	assert_int_equal(flt_time_parse(".5s", &ns), -22);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip), cmocka_unit_test(refused),
		cmocka_unit_test(too_long),   cmocka_unit_test(messages_fit),
		cmocka_unit_test(times),      cmocka_unit_test(objects_that_can_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
