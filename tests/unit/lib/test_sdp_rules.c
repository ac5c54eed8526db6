/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* libsdp.conf: which lines are rules, and which rule decides. */
#include "../test.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/types.h"
#include "sdp_private.h"

static const union abi_sdp_address *to(const char *text, uint16_t port)
{
	static union abi_sdp_address address;
	bool six = strchr(text, ':');

	memset(&address, 0, sizeof(address));
	address.any.sa_family = six ? AF_INET6 : AF_INET;
	address.in.sin_port = htons(port);
	assert_int_equal(inet_pton(six ? AF_INET6 : AF_INET, text,
				   six ? (void *)&address.in6.sin6_addr
				       : (void *)&address.in.sin_addr),
			 1);
	return &address;
}

static enum sdp_use client(const char *text, uint16_t port)
{
	return sdp_rules_use(SDP_CLIENT, &to(text, port)->any);
}

static void lines_that_are_no_rules(void **state)
{
	static const char *const bad[] = {
		"use",
		"use sdp",
		"use sdp client *",
		"use sdp client * *:* more",
		"allow sdp client * *:*",
		"use udp client * *:*",
		"use sdp peer * *:*",
		"use sdp client * *",
		"use sdp client * 10.1.0:*",
		"use sdp client * 10.1.0.0/33:*",
		"use sdp client * 10.1.0.0/x:*",
		"use sdp client * *:65536",
		"use sdp client * *:9-8",
		"use sdp client * *:-8",
		"use sdp client * *:8-",
		"use sdp client * [fd00::1/64:*",
		"use sdp client * [fd00::1]/129:*",
	};
	static const char *const good[] = {
		"", "\n", "   \t", "# use", "log min-level 9 destination file sdp.log\n"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (!sdp_rules_parse(bad[i]))
			fail_msg("accepted: %s", bad[i]);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(sdp_rules_parse(good[i]));
	assert_int_equal(client("10.1.0.1", 80), SDP_USE_BOTH); /* there is no rule */
}

static void the_first_rule_that_matches_decides(void **state)
{
	static const char *const lines[] = {
		"use tcp client other-program *:*",
		"use tcp connect test_lib_* 10.1.2.0/23:22 # ssh",
		"use sdp client * 10.1.0.0/16:*\n",
		"use sdp client * [fd00:1::]/32:1000-2000",
		"use tcp server * *:8000",
		"use sdp listen * *:*",
		"use tcp client * *:*",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		assert_null(sdp_rules_parse(lines[i]));
	assert_int_equal(client("10.1.3.9", 22), SDP_USE_TCP);
	assert_int_equal(client("10.1.4.9", 22), SDP_USE_SDP);
	assert_int_equal(client("10.1.3.9", 23), SDP_USE_SDP);
	assert_int_equal(client("10.2.0.1", 23), SDP_USE_TCP);
	assert_int_equal(client("::ffff:10.1.4.9", 23), SDP_USE_SDP);
	assert_int_equal(client("fd00:1::9", 1000), SDP_USE_SDP);
	assert_int_equal(client("fd00:1::9", 2001), SDP_USE_TCP);
	assert_int_equal(client("fd00:2::9", 1500), SDP_USE_TCP);
	assert_int_equal(sdp_rules_use(SDP_SERVER, &to("0.0.0.0", 8000)->any), SDP_USE_TCP);
	assert_int_equal(sdp_rules_use(SDP_SERVER, &to("0.0.0.0", 8001)->any), SDP_USE_SDP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_that_are_no_rules),
		cmocka_unit_test(the_first_rule_that_matches_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
