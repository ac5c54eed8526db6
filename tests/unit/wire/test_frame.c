/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fields of Ethernet frames, and the hash that spreads them. */
#include "../test.h"

#include <arpa/inet.h>
#include <errno.h>

#include "base/bytes.h"
#include "wire/frame.h"

#define ETHERNET 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16
#define IPV4(proto, fragment)                                                                     \
	0x45, 0x0a, 0, 28, 0, 1, 0x40, fragment, 64, proto, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2
#define PORTS 0x04, 0xd2, 0x16, 0x2e, 0, 8, 0, 0

static struct wire_frame_key parsed(const uint8_t *frame, size_t len)
{
	struct wire_frame_key key;

	assert_int_equal(wire_frame_parse(frame, len, &key), 0);
	return key;
}

static void ipv4_udp(void **state)
{
	static const uint8_t frame[] = {ETHERNET, 0x08, 0x00, IPV4(17, 0), PORTS};
	static const uint8_t dst[] = {1, 2, 3, 4, 5, 6}, ip[] = {192, 0, 2, 2};
	struct wire_frame_key key = parsed(frame, sizeof(frame));

	assert_int_equal(key.has, WIRE_FRAME_IPV4 | WIRE_FRAME_UDP);
	assert_memory_equal(key.dst_mac, dst, sizeof(dst));
	assert_int_equal(get_be16(key.ether_type), 0x0800);
	assert_int_equal(key.tos, 0x0a);
	assert_int_equal(key.ttl, 64);
	assert_int_equal(key.ip_flags, 2); /* don't fragment */
	assert_int_equal(key.ip_proto, 17);
	assert_memory_equal(key.dst_ip, ip, sizeof(ip));
	assert_int_equal(get_be16(key.src_port), 1234);
	assert_int_equal(get_be16(key.dst_port), 5678);
}

static void vlan_and_ipv6_tcp(void **state)
{
	static const uint8_t frame[] = {
		ETHERNET, 0x81, 0x00, 0xa0, 0x07, 0x86, 0xdd,
		0x6b, 0xc1, 0x23, 0x45, 0, 8, 6, 61, /* class 0xbc, label 0x12345 */
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
		0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, PORTS};
	struct wire_frame_key key = parsed(frame, sizeof(frame));

	assert_int_equal(key.has, WIRE_FRAME_VLAN | WIRE_FRAME_IPV6 | WIRE_FRAME_TCP);
	assert_int_equal(get_be16(key.vlan_tag), 0xa007);
	assert_int_equal(get_be16(key.ether_type), 0x86dd);
	assert_int_equal(key.tos, 0xbc);
	assert_int_equal(get_be24(key.flow_label), 0x12345);
	assert_int_equal(key.ttl, 61);
	assert_int_equal(key.src_ip[15], 1);
	assert_int_equal(key.dst_ip[15], 2);
	assert_int_equal(get_be16(key.src_port), 1234);
}

/* at any length it reads no further, and never finds a header that is not whole */
static void a_frame_that_is_cut_short(void **state)
{
	static const uint8_t frame[] = {ETHERNET, 0x08, 0x00, IPV4(6, 0), PORTS};
	struct wire_frame_key key;

	for (size_t len = 0; len < sizeof(frame); len++) {
		uint8_t *cut = malloc(len + !len);
		int ret;

		memcpy(cut, frame, len);
		ret = wire_frame_parse(cut, len, &key);
		assert_int_equal(ret, len < 14 ? -EINVAL : 0);
		if (!ret)
			assert_int_equal(key.has, (len >= 34 ? WIRE_FRAME_IPV4 : 0) |
							  (len >= 38 ? WIRE_FRAME_TCP : 0));
		free(cut);
	}
}

static void what_has_no_ports(void **state)
{
	static const uint8_t fragment[] = {ETHERNET, 0x08, 0x00, IPV4(17, 3), PORTS},
			     icmp[] = {ETHERNET, 0x08, 0x00, IPV4(1, 0), PORTS},
			     arp[] = {ETHERNET, 0x08, 0x06, IPV4(17, 0), PORTS};

	assert_int_equal(parsed(fragment, sizeof(fragment)).has, WIRE_FRAME_IPV4);
	assert_int_equal(parsed(icmp, sizeof(icmp)).has, WIRE_FRAME_IPV4);
	assert_int_equal(parsed(arp, sizeof(arp)).has, 0);
}

static void rules_match_what_the_mask_selects(void **state)
{
	static const uint8_t frame[] = {ETHERNET, 0x08, 0x00, IPV4(17, 0), PORTS};
	struct wire_frame_key key = parsed(frame, sizeof(frame)), value = {0}, mask = {0};

	assert_true(wire_frame_matches(&key, &value, &mask)); /* everything */
	put_be16(value.dst_port, 5678);
	assert_true(wire_frame_matches(&key, &value, &mask));
	put_be16(mask.dst_port, 0xffff);
	assert_true(wire_frame_matches(&key, &value, &mask));
	put_be16(value.dst_port, 5679);
	assert_false(wire_frame_matches(&key, &value, &mask));
	put_be16(mask.dst_port, 0xfff0);
	assert_true(wire_frame_matches(&key, &value, &mask));
	mask.has = value.has = WIRE_FRAME_TCP;
	assert_false(wire_frame_matches(&key, &value, &mask));
}

/* the verification suite that Microsoft publishes with the definition of RSS */
static void toeplitz(void **state)
{
	static const uint8_t key[WIRE_TOEPLITZ_KEY_BYTES] = {
		0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
		0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
		0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
	static const uint8_t ipv4[] = {66, 9, 149, 187, 161, 142, 100, 80, 0x0a, 0xea, 0x06, 0xe6};
	uint8_t ipv6[36];

	assert_int_equal(wire_toeplitz(key, ipv4, 8), 0x323e8fc2);
	assert_int_equal(wire_toeplitz(key, ipv4, sizeof(ipv4)), 0x51ccc178);
	assert_int_equal(inet_pton(AF_INET6, "3ffe:2501:200:1fff::7", ipv6), 1);
	assert_int_equal(inet_pton(AF_INET6, "3ffe:2501:200:3::1", ipv6 + 16), 1);
	memcpy(ipv6 + 32, ipv4 + 8, 4);
	assert_int_equal(wire_toeplitz(key, ipv6, 32), 0x2cc18cd5);
	assert_int_equal(wire_toeplitz(key, ipv6, sizeof(ipv6)), 0x40207d3d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_udp),
		cmocka_unit_test(vlan_and_ipv6_tcp),
		cmocka_unit_test(a_frame_that_is_cut_short),
		cmocka_unit_test(what_has_no_ports),
		cmocka_unit_test(rules_match_what_the_mask_selects),
		cmocka_unit_test(toeplitz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
