/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The plan of addresses: what it takes, what it gives, when it is full. */
#include <arpa/inet.h>
#include <errno.h>

#include "fabric/topo_plan.h"
#include "fabric/topology.h"
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
					    "10.1.0.1/16",
					    "10.1.0.0/7",
					    "10.1.0.0/31",
					    "10.1.0.0/-1",
					    "10.1.0/16",
					    "256.1.0.0/16",
					    "fd00::1/64",
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
	assert_non_null(strstr(err, "6 adapters"));
	topo_free(topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),	   cmocka_unit_test(test_set),
		cmocka_unit_test(test_link_local), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_room),	   cmocka_unit_test(test_find_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
