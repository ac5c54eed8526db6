/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The plan of addresses: what it takes, what it gives, when it is full. */
#include <arpa/inet.h>
#include <errno.h>

#include "fabric/topo_plan.h"
#include "fabric/topo_address.h"
#include "topo_check.h"

static char text[TOPO_PLAN_BYTES], err[512];

static int set(struct topo_plan *plan, const char *network)
{
	return topo_plan_set(plan, network, err, sizeof(err));
}

static void test_default(void **state)
{
	struct topo_plan plan;

	topo_plan_init(&plan);
	assert_string_equal(topo_plan_ipv4(&plan, 7, 1, text), "10.1.0.7/16");
	assert_string_equal(topo_plan_ipv4(&plan, 300, 2, text), "10.2.1.44/16");
	assert_string_equal(topo_plan_ipv4(&plan, 0, 1, text), TOPO_PLAN_IPV4);
	assert_string_equal(topo_plan_ipv6(&plan, 7, 1, text),
			    "fd73:6f66:7469:6201::7/64");
	assert_string_equal(topo_plan_ipv6(&plan, 300, 2, text),
			    "fd73:6f66:7469:6202::12c/64");
	assert_string_equal(topo_plan_ipv6(&plan, 0, 1, text), TOPO_PLAN_IPV6);
}

static void test_set(void **state)
{
	struct topo_plan plan;

	topo_plan_init(&plan);
	assert_int_equal(set(&plan, "192.0.2.128/25"), 0);
	assert_string_equal(topo_plan_ipv4(&plan, 126, 1, text), "192.0.2.254/25");
	assert_string_equal(topo_plan_ipv4(&plan, 1, 2, text), "192.0.3.1/25");
	assert_string_equal(topo_plan_ipv6(&plan, 1, 1, text),
			    "fd73:6f66:7469:6201::1/64");
	assert_int_equal(set(&plan, "2001:db8::/112"), 0);
	assert_string_equal(topo_plan_ipv6(&plan, 0xffff, 1, text), "2001:db8::ffff/112");
	assert_string_equal(topo_plan_ipv6(&plan, 1, 3, text), "2001:db8::2:1/112");
	assert_int_equal(set(&plan, "fd00::/16"), 0);
	assert_string_equal(topo_plan_ipv6(&plan, 1, 2, text), "fd01::1/16");
	assert_string_equal(topo_plan_ipv4(&plan, 126, 1, text), "192.0.2.254/25");
}

/* the plan of a fabric that shares a network with another one */
static void test_first(void **state)
{
	unsigned number, port;
	struct topology *topo;
	struct topo_plan plan;

	topo_plan_init(&plan);
	assert_int_equal(set(&plan, "10.1.0.9/16"), 0);
	assert_int_equal(set(&plan, "fd00:1::a/64"), 0);
	assert_string_equal(topo_plan_ipv4(&plan, 0, 1, text), "10.1.0.0/16");
	assert_string_equal(topo_plan_ipv4(&plan, 1, 1, text), "10.1.0.9/16");
	assert_string_equal(topo_plan_ipv4(&plan, 3, 2, text), "10.2.0.11/16");
	assert_string_equal(topo_plan_ipv6(&plan, 0, 1, text), "fd00:1::/64");
	assert_string_equal(topo_plan_ipv6(&plan, 2, 1, text), "fd00:1::b/64");
	assert_true(topo_plan_find_ipv4(&plan, 0x0a01000b, &number, &port));
	assert_int_equal(number, 3);
	assert_false(topo_plan_find_ipv4(&plan, 0x0a010008, &number, &port)); /* of the other one */
	assert_int_equal(set(&plan, "10.9.0.4/29"), 0); /* 4 to 6 */
	assert_int_equal(topo_load("star:3", "t", &topo, err, sizeof(err)), 0);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	assert_int_equal(set(&plan, "10.9.0.5/29"), 0);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), -ENOSPC);
	topo_free(topo);
}

/* which adapter and port has the IPv6 address @address? "7.2"; "" none */
static const char *owner(const struct topo_plan *plan, const char *address)
{
	unsigned number, port;
	struct in6_addr in;

	assert_int_equal(inet_pton(AF_INET6, address, &in), 1);
	text[0] = '\0';
	if (topo_plan_find_ipv6(plan, &in, &number, &port))
		snprintf(text, sizeof(text), "%u.%u", number, port);
	return text;
}

static void test_find_ipv6(void **state)
{
	struct topo_plan plan;

	topo_plan_init(&plan);
	assert_string_equal(owner(&plan, "fd73:6f66:7469:6201::7"), "7.1");
	assert_string_equal(owner(&plan, "fd73:6f66:7469:6202::12c"), "300.2");
	assert_string_equal(owner(&plan, "fd73:6f66:7469:6201::"), "");
	assert_string_equal(owner(&plan, "fd73:6f66:7469:6200::7"), "");
	assert_string_equal(owner(&plan, "fd73:6f66:7469:6201:1::7"), "");
	assert_string_equal(owner(&plan, "::1"), "");
	assert_int_equal(set(&plan, "2001:db8::/112"), 0);
	assert_string_equal(owner(&plan, "2001:db8::2:1"), "1.3");
	assert_string_equal(owner(&plan, "2001:db8::1:0"), "");
	assert_string_equal(owner(&plan, "2001:db9::2:1"), "");
	assert_int_equal(set(&plan, "fd00::/16"), 0);
	assert_string_equal(owner(&plan, "fd01::1"), "1.2");
	assert_string_equal(owner(&plan, "fd01:1::1"), "");
}

static void test_find_host(void **state)
{
	struct topology *topo;
	struct topo_plan plan;

	topo_plan_init(&plan);
	assert_int_equal(topo_plan_find_host(&plan, "10.1.0.1"), -1); /* of no topology */
	assert_int_equal(topo_load("star:3", "t", &topo, err, sizeof(err)), 0);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	for (int i = 1; i <= 3; i++) {
		static const char *const kinds[] = {"10.1.0.%d", "fd73:6f66:7469:6201::%d"};

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			char address[TOPO_PLAN_BYTES], name[8];

			snprintf(address, sizeof(address), kinds[k], i);
			snprintf(name, sizeof(name), "n%d", i);
			assert_int_equal(topo_plan_find_host(&plan, address), topo_find(topo, name));
		}
	}
	assert_int_equal(topo_plan_find_host(&plan, "10.1.0.4"), -1);
	assert_int_equal(topo_plan_find_host(&plan, "10.2.0.1"), -1); /* a second port */
	assert_int_equal(topo_plan_find_host(&plan, "10.1.0.0"), -1);
	assert_int_equal(topo_plan_find_host(&plan, "n1"), -1);
	assert_int_equal(topo_plan_find_host(&plan, ""), -1);
	topo_free(topo);
}

static void test_link_local(void **state)
{
	assert_string_equal(topo_plan_link_local(0x0250000100000101, text),
			    "fe80::250:1:0:101/64");
	assert_string_equal(topo_plan_link_local(0x0002c90300000001, text),
			    "fe80::202:c903:0:1/64");
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {"",
					    "10.1.0.0",
					    "10.1.0.0/",
					    "10.1.0.0/16x",
					    "10.1.0.0/7",
					    "10.1.0.0/31",
					    "10.1.0.0/-1",
					    "10.1.0/16",
					    "256.1.0.0/16",
					    "fd00::1:0:1/64",
					    "fd00::/113",
					    "fd00::/15",
					    "fd00:0:0:1::/63",
					    "fd00::1:0:0/80",
					    "n1/16",
					    "/16",
					    "10.1.0.0/99999999999999999999",
					    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
					    "aaaaaaaaaaaaaaaaaaaaaaaaaa/16"};
	struct topo_plan plan, before;

	topo_plan_init(&plan);
	before = plan;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		err[0] = '\0';
		assert_int_equal(set(&plan, wrong[i]), -EINVAL);
		assert_non_null(strstr(err, "10.1.0.0/16"));
		assert_memory_equal(&plan, &before, sizeof(plan));
	}
}

static void test_room(void **state)
{
	struct topology *topo;
	struct topo_plan plan;

	topo_plan_init(&plan);
	assert_int_equal(topo_load("star:6", "t", &topo, err, sizeof(err)), 0);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	assert_int_equal(set(&plan, "10.9.0.0/29"), 0); /* 1 to 6, 7 is broadcast */
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	assert_int_equal(set(&plan, "255.255.255.248/29"), 0); /* the last one */
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	assert_int_equal(set(&plan, "10.9.0.0/30"), 0);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), -ENOSPC);
	assert_non_null(strstr(err, "6 nodes"));
	topo_free(topo);
}

/* --- addresses of the topology's own --- */

#define SWITCH "Switch 4 \"s\"\n[1] \"a\"\n[2] \"b\"[1]\n[3] \"b\"[2]\n"

static struct topology *parse(const char *adapters)
{
	struct topology *topo = NULL;
	char file[1024];

	snprintf(file, sizeof(file), SWITCH "%s", adapters);
	if (topo_parse_text("f", "t", file, strlen(file), &topo, err, sizeof(err)))
		fail_msg("%s", err);
	return topo;
}

static const char given[] = "Hca 1 \"a\" # \"host a\" ip=10.7.0.5/20\n"
			    "Hca 2 \"b\"\n[2] \"s\"[3] # ip=fd00:7::5/56 ip=192.0.2.9/31\n";

static void check_given(struct topology *topo)
{
	struct topo_plan plan;
	unsigned number, port;

	topo_plan_init(&plan);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	assert_string_equal(topo_plan_ipv4(&plan, 1, 1, text), "10.7.0.5/20");
	assert_string_equal(topo_plan_ipv6(&plan, 1, 1, text), "fd73:6f66:7469:6201::1/64");
	assert_string_equal(topo_plan_ipv4(&plan, 2, 1, text), "10.1.0.2/16");
	assert_string_equal(topo_plan_ipv4(&plan, 2, 2, text), "192.0.2.9/31");
	assert_string_equal(topo_plan_ipv6(&plan, 2, 2, text), "fd00:7::5/56");
	assert_string_equal(topo_plan_ipv4(&plan, 0, 1, text), TOPO_PLAN_IPV4);
	assert_string_equal(owner(&plan, "fd00:7::5"), "2.2");
	assert_string_equal(owner(&plan, "fd73:6f66:7469:6201::1"), "1.1");
	assert_string_equal(owner(&plan, "fd73:6f66:7469:6202::2"), ""); /* replaced */
	assert_true(topo_plan_find_ipv4(&plan, 0x0a070005, &number, &port));
	assert_true(number == 1 && port == 1);
	assert_true(topo_plan_find_ipv4(&plan, 0xc0000209, &number, &port));
	assert_true(number == 2 && port == 2);
	assert_true(topo_plan_find_ipv4(&plan, 0x0a010002, &number, &port));
	assert_false(topo_plan_find_ipv4(&plan, 0x0a010001, &number, &port));
}

static void test_given(void **state)
{
	struct topology *topo = parse(given), *again;
	char *file = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&file, &bytes);

	check_given(topo);
	topo_print_ibnetdiscover(topo, NULL, out);
	fclose(out);
	assert_int_equal(topo_parse_text("f", "t", file, bytes, &again, err, sizeof(err)), 0);
	check_given(again);
	free(file);
	topo_free(topo);
	topo_free(again);
}

static void test_given_and_planned(void **state)
{
	struct topology *topo = parse("Hca 1 \"a\" # ip=10.1.0.2/16\nHca 2 \"b\"\n");
	struct topo_plan plan;

	topo_plan_init(&plan);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), -EADDRINUSE);
	assert_non_null(strstr(err, "gives 10.1.0.2/16 to node 1"));
	assert_int_equal(set(&plan, "10.2.0.0/16"), 0);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	topo_free(topo);
	/* a port whose planned address is another's has one of its own */
	topo = parse("Hca 1 \"a\" # ip=10.1.0.2/16\nHca 2 \"b\" # ip=10.1.0.1/16\n");
	topo_plan_init(&plan);
	assert_int_equal(topo_plan_fit(&plan, topo, err, sizeof(err)), 0);
	topo_free(topo);
}

static void test_given_wrong(void **state)
{
	static const struct {
		const char *text, *message;
	} wrong[] = {
		{"10.7.0.5", "f:1: \"ip=10.7.0.5\" is no address of a host"},
		{"10.7.0.5/", "f:1: \"ip=10.7.0.5/\" is no"},
		{"10.7.0.5/33", "f:1: \"ip=10.7.0.5/33\" is no"},
		{"10.7.0.5/0", "f:1: \"ip=10.7.0.5/0\" is no"},
		{"10.7.0.5/16x", "f:1: \"ip=10.7.0.5/16x\" is no"},
		{"10.7.0.0/16", "f:1: \"ip=10.7.0.0/16\" is no"},
		{"10.7.255.255/16", "f:1: \"ip=10.7.255.255/16\" is no"},
		{"127.0.0.1/8", "f:1: \"ip=127.0.0.1/8\" is no"},
		{"239.0.0.1/8", "f:1: \"ip=239.0.0.1/8\" is no"},
		{"0.0.0.1/8", "f:1: \"ip=0.0.0.1/8\" is no"},
		{"fe80::1/64", "f:1: \"ip=fe80::1/64\" is no"},
		{"ff02::1/64", "f:1: \"ip=ff02::1/64\" is no"},
		{"::ffff:10.7.0.5/112", "f:1: \"ip=::ffff:10.7.0.5/112\" is no"},
		{"fd00::1/129", "f:1: \"ip=fd00::1/129\" is no"},
		{"", "f:1: \"ip=\" is no"},
		{"10.7.0.5/16 ip=10.7.0.5/16", "f:1: the address of line 1 again"},
		{"10.7.0.5/16 ip=10.7.0.6/16", "f:1: port 1 has an address of this kind in line 1"},
		{"10.7.0.5/16\n" SWITCH "Hca 2 \"b\" # ip=10.7.0.5/24",
		 "f:6: the address of line 1 again"},
		{"10.7.0.5/16\nSwitch 4 \"s\" # ip=10.7.0.6/16", "f:2: ip=10.7.0.6/16: only adapters"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct topology *topo = NULL;
		char file[512];

		snprintf(file, sizeof(file), "Hca 1 \"a\" # ip=%s\n%s", wrong[i].text,
			 strchr(wrong[i].text, '\n') ? "" : SWITCH "Hca 2 \"b\"\n");
		assert_int_equal(topo_parse_text("f", "t", file, strlen(file), &topo, err, sizeof(err)),
				 -EINVAL);
		assert_null(topo);
		if (strncmp(err, wrong[i].message, strlen(wrong[i].message)) != 0)
			fail_msg("got \"%s\", expected \"%s\"", err, wrong[i].message);
	}
}

static void test_given_without_memory(void **state)
{
	struct topology *topo;
	char file[1024];
	int nth = 0, error;

	snprintf(file, sizeof(file), SWITCH "%s", given);
	do {
		rt_fail_alloc((uint64_t)++nth);
		error = topo_parse_text("f", "t", file, strlen(file), &topo, err, sizeof(err));
	} while (error && nth < 1000);
	rt_fail_alloc(0);
	assert_in_range(nth, 8, 999);
	check_given(topo);
	topo_free(topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),	   cmocka_unit_test(test_set), cmocka_unit_test(test_first),
		cmocka_unit_test(test_link_local), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_find_host),
		cmocka_unit_test(test_room),	   cmocka_unit_test(test_find_ipv6),
		cmocka_unit_test(test_given),	   cmocka_unit_test(test_given_and_planned),
		cmocka_unit_test(test_given_wrong),
		cmocka_unit_test(test_given_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
