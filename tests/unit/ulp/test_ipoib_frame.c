/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The formats of IP over InfiniBand, byte by byte, and what is not of them. */
#include "../test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "ulp/ipoib/frame.h"

static const struct ipoib_link ours = {
	0x123456,
	{.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0x50, 0, 1, 0, 0, 7}},
};
static const struct ipoib_link theirs = {
	0x48,
	{.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0x50, 0, 1, 0, 0, 9}},
};

static struct in6_addr v4(const char *text)
{
	__be32 address;

	assert_int_equal(inet_pton(AF_INET, text, &address), 1);
	return ipoib_from_v4(address);
}

static struct in6_addr v6(const char *text)
{
	struct in6_addr address;

	assert_int_equal(inet_pton(AF_INET6, text, &address), 1);
	return address;
}

static void expect_ip(const struct in6_addr *got, struct in6_addr want)
{
	assert_memory_equal(got, &want, sizeof(want));
}

static void expect_gid(union ib_gid got, const char *want)
{
	struct in6_addr address = v6(want);

	assert_memory_equal(&got, &address, sizeof(address));
}

static void a_link_address_is_qpn_and_gid(void **state)
{
	u8 bytes[IPOIB_LINK_BYTES];
	struct ipoib_link link;

	ipoib_put_link(&ours, bytes);
	assert_memory_equal(bytes, "\0\x12\x34\x56\xfe\x80", 6);
	assert_true(ipoib_get_link(bytes, &link));
	assert_int_equal(link.qpn, 0x123456);
	assert_false(link.connected);
	bytes[0] = 0x80; /* the peer offers connected mode: a flag, no part of the QPN */
	assert_true(ipoib_get_link(bytes, &link));
	assert_int_equal(link.qpn, 0x123456);
	assert_true(link.connected);
	ipoib_put_link(&link, bytes);
	assert_memory_equal(bytes, "\x80\x12\x34\x56\xfe\x80", 6);
	bytes[4] = 0xff; /* a multicast GID is nobody's */
	assert_false(ipoib_get_link(bytes, &link));
	ipoib_put_link(&(struct ipoib_link){1, ours.gid}, bytes);
	assert_false(ipoib_get_link(bytes, &link));
	memset(bytes + 4, 0, 16);
	assert_false(ipoib_get_link(bytes, &link));
}

/* RFC 4391 section 4 */
static void groups_have_their_gid(void **state)
{
	struct in6_addr all = v4("255.255.255.255"), mdns = v4("239.255.0.251");
	struct in6_addr nodes = v6("ff02::1"), wide = v6("ff15:1:2:3:4:5:6:7");

	expect_gid(ipoib_mgid(&all, 0x7fff, 2), "ff12:401b:ffff::ffff:ffff");
	expect_gid(ipoib_mgid(&mdns, 0x8001, 2), "ff12:401b:8001::fff:fb");
	expect_gid(ipoib_mgid(&nodes, 0xffff, 2), "ff12:601b:ffff::1");
	expect_gid(ipoib_mgid(&wide, 0xffff, 5), "ff15:601b:ffff:3:4:5:6:7");
	assert_true(ipoib_is_group(&all) && ipoib_is_group(&mdns) &&
		    ipoib_is_group(&wide));
	nodes = ipoib_solicited(&wide);
	expect_ip(&nodes, v6("ff02::1:ff06:7"));
}

static void arp_goes_there_and_back(void **state)
{
	struct in6_addr me = v4("10.1.0.1"), you = v4("10.1.0.2");
	struct ipoib_resolution r;
	u8 bytes[IPOIB_ARP_BYTES];

	assert_int_equal(ipoib_put_arp(bytes, IPOIB_REQUEST, &ours, &me, NULL, &you),
			 sizeof(bytes));
	assert_memory_equal(bytes, "\0\x20\x08\0\x14\x04\0\x01\0\x12\x34\x56", 12);
	assert_int_equal(ipoib_get_arp(bytes, sizeof(bytes), &r), 0);
	assert_int_equal(r.op, IPOIB_REQUEST);
	assert_int_equal(r.sender.qpn, ours.qpn);
	expect_ip(&r.sender_ip, me);
	expect_ip(&r.target_ip, you);
	ipoib_put_arp(bytes, IPOIB_REPLY, &theirs, &you, &ours, &me);
	assert_int_equal(ipoib_get_arp(bytes, sizeof(bytes), &r), 0);
	assert_int_equal(r.op, IPOIB_REPLY);
	assert_int_equal(ipoib_get_arp(bytes, sizeof(bytes) - 1, &r), -EINVAL);
	for (unsigned i = 0; i < 8; i++) { /* hardware, protocol, lengths, operation */
		bytes[i] ^= 0x40;
		assert_int_equal(ipoib_get_arp(bytes, sizeof(bytes), &r), -EINVAL);
		bytes[i] ^= 0x40;
	}
}

static int read_nd(const u8 *bytes, size_t n, struct ipoib_resolution *r)
{
	struct ipoib_packet p;
	int ret = ipoib_read_packet(bytes, n, &p);

	return ret ? ret : ipoib_get_nd(&p, r);
}

static void neighbour_discovery_goes_there_and_back(void **state)
{
	struct in6_addr me = v6("fd1b::1"), you = v6("fd1b::2"),
			group = ipoib_solicited(&you);
	struct ipoib_resolution r;
	u8 bytes[IPOIB_ND_BYTES];

	assert_int_equal(ipoib_put_nd(bytes, IPOIB_REQUEST, &ours, &me, &group, &you),
			 sizeof(bytes));
	assert_int_equal(read_nd(bytes, sizeof(bytes), &r), 0);
	assert_int_equal(r.op, IPOIB_REQUEST);
	assert_true(r.has_sender);
	assert_int_equal(r.sender.qpn, ours.qpn);
	expect_ip(&r.sender_ip, me);
	expect_ip(&r.target_ip, you);
	ipoib_put_nd(bytes, IPOIB_REPLY, &theirs, &you, &me, &you);
	assert_int_equal(read_nd(bytes, sizeof(bytes), &r), 0);
	assert_int_equal(r.op, IPOIB_REPLY);
	expect_ip(&r.sender_ip, you);
}

static void what_is_spoiled_on_the_way_is_dropped(void **state)
{
	struct in6_addr me = v6("fd1b::1"), you = v6("fd1b::2");
	struct ipoib_resolution r;
	u8 bytes[IPOIB_ND_BYTES];

	ipoib_put_nd(bytes, IPOIB_REQUEST, &ours, &me, &you, &you);
	for (size_t i = 8; i < sizeof(bytes); i++) { /* the checksum sees it */
		bytes[i] ^= 1;
		assert_int_not_equal(read_nd(bytes, sizeof(bytes), &r), 0);
		bytes[i] ^= 1;
	}
	bytes[7] = 254; /* a router passed it on */
	assert_int_equal(read_nd(bytes, sizeof(bytes), &r), -EINVAL);
	bytes[7] = 255;
	for (size_t n = 0; n < sizeof(bytes); n++)
		assert_int_equal(read_nd(bytes, n, &r), -EINVAL);
	assert_int_equal(read_nd(bytes, sizeof(bytes), &r), 0);
}

static void a_probe_for_a_duplicate_is_answered_to_all(void **state)
{
	struct in6_addr none = {0}, you = v6("fd1b::2"), group = ipoib_solicited(&you);
	struct ipoib_resolution r;
	u8 bytes[IPOIB_ND_BYTES];

	ipoib_put_nd(bytes, IPOIB_REQUEST, &ours, &none, &group, &you);
	assert_int_equal(read_nd(bytes, sizeof(bytes), &r), 0);
	assert_false(r.has_sender);
	expect_ip(&r.reply_to, v6("ff02::1"));
}

/* --- packets of the host --- */

static size_t udp_v4(u8 *to, const char *src, const char *dst, u8 protocol,
		     const void *data, size_t bytes)
{
	memset(to, 0, 20);
	to[0] = 0x45;
	put_be16(to + 2, (u16)(20 + bytes));
	to[8] = 1;
	to[9] = protocol;
	assert_int_equal(inet_pton(AF_INET, src, to + 12), 1);
	assert_int_equal(inet_pton(AF_INET, dst, to + 16), 1);
	memcpy(to + 20, data, bytes);
	return 20 + bytes;
}

struct heard {
	unsigned joins, leaves;
	struct in6_addr last;
};

static void hear(void *ctx, const struct in6_addr *group, bool join)
{
	struct heard *h = ctx;

	*(join ? &h->joins : &h->leaves) += 1;
	h->last = *group;
}

static struct heard report_v4(const void *data, size_t bytes)
{
	struct heard h = {0};
	struct ipoib_packet p;
	u8 packet[128];
	size_t n = udp_v4(packet, "10.1.0.1", "224.0.0.22", IPPROTO_IGMP, data, bytes);

	assert_int_equal(ipoib_read_packet(packet, n, &p), 0);
	ipoib_each_report(&p, hear, &h);
	return h;
}

static void reports_name_the_groups(void **state)
{
	static const u8 v2[] = {0x16, 0, 0, 0, 239, 1, 2, 3},
			leave[] = {0x17, 0, 0, 0, 239, 1, 2, 3};
	static const u8 v3[] = {
		0x22, 0, 0, 0, 0,   0, 0, 3, 4,	 0, 0, 0,
		239,  1, 2, 3,				   /* to exclude nobody */
		3,    0, 0, 0, 239, 1, 2, 4,		   /* to include nobody */
		1,    0, 0, 1, 239, 1, 2, 5, 10, 1, 0, 9}; /* one source */
	struct heard h = report_v4(v2, sizeof(v2));

	assert_true(h.joins == 1 && h.leaves == 0);
	expect_ip(&h.last, v4("239.1.2.3"));
	h = report_v4(leave, sizeof(leave));
	assert_true(h.joins == 0 && h.leaves == 1);
	h = report_v4(v3, sizeof(v3));
	assert_true(h.joins == 2 && h.leaves == 1);
	for (size_t n = 0; n < sizeof(v3); n++) { /* cut anywhere */
		h = report_v4(v3, n);
		assert_true(h.joins + h.leaves < 3);
	}
}

static u16 sum_of(const u8 *p, size_t bytes)
{
	u32 s = 0;

	for (size_t i = 0; i < bytes; i++)
		s += i % 2 ? p[i] : (u32)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (u16)s;
}

static void nobody_there_is_said_once(void **state)
{
	struct in6_addr self = v4("10.1.0.1");
	u8 packet[64], said[IPOIB_UNREACHABLE_BYTES(64)];
	size_t n =
		udp_v4(packet, "10.1.0.1", "10.1.0.77", IPPROTO_UDP, "12345678abcd", 12);
	struct ipoib_packet p;

	n = ipoib_put_unreachable(said, packet, n, &self);
	assert_int_equal(n, 20 + 8 + 28);
	assert_int_equal(ipoib_read_packet(said, n, &p), 0);
	assert_int_equal(p.protocol, IPPROTO_ICMP);
	expect_ip(&p.dst, self);
	assert_int_equal(sum_of(said, 20), 0xffff);
	assert_int_equal(sum_of(said + 20, n - 20), 0xffff);
	assert_memory_equal(said + 20, "\3\1", 2);
	assert_memory_equal(said + 28, packet, 28);
	/* no error about an error */
	assert_int_equal(ipoib_put_unreachable(packet, said, n, &self), 0);
}

/* RFC 1122 section 3.2.2 */
static void no_error_answers_what_went_to_a_group(void **state)
{
	struct in6_addr self = v4("10.1.0.1");
	u8 packet[64], said[IPOIB_UNREACHABLE_BYTES(64)];
	size_t n = udp_v4(packet, "10.1.0.1", "224.0.0.5", IPPROTO_UDP, "12345678", 8);

	assert_int_equal(ipoib_put_too_big(said, packet, n, &self, 2044), 0);
	assert_int_equal(ipoib_put_unreachable(said, packet, n, &self), 0);
}

/* RFC 4861 section 4.4: S must not be set in multicast advertisements */
static void what_all_nodes_are_told_is_not_solicited(void **state)
{
	struct in6_addr me = v6("fd1b::1"), you = v6("fd1b::2"), all = v6("ff02::1");
	u8 bytes[IPOIB_ND_BYTES];

	ipoib_put_nd(bytes, IPOIB_REPLY, &ours, &me, &you, &me);
	assert_int_equal(bytes[44], 0x60);
	ipoib_put_nd(bytes, IPOIB_REPLY, &ours, &me, &all, &me);
	assert_int_equal(bytes[44], 0x20);
}

static void what_is_no_packet_is_none(void **state)
{
	u8 packet[64] = {0};
	struct ipoib_packet p;
	size_t n = udp_v4(packet, "10.1.0.1", "10.1.0.2", IPPROTO_UDP, "12345678", 8);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(ipoib_read_packet(packet, i, &p), -EINVAL);
	assert_int_equal(ipoib_read_packet(packet, n + 4, &p), 0); /* padded: RFC 894 */
	assert_int_equal(p.payload_bytes, 8);
	packet[0] = 0x44; /* a header of 16 bytes */
	assert_int_equal(ipoib_read_packet(packet, n, &p), -EINVAL);
	packet[0] = 0x55;
	assert_int_equal(ipoib_read_packet(packet, n, &p), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_address_is_qpn_and_gid),
		cmocka_unit_test(groups_have_their_gid),
		cmocka_unit_test(arp_goes_there_and_back),
		cmocka_unit_test(neighbour_discovery_goes_there_and_back),
		cmocka_unit_test(what_is_spoiled_on_the_way_is_dropped),
		cmocka_unit_test(a_probe_for_a_duplicate_is_answered_to_all),
		cmocka_unit_test(reports_name_the_groups),
		cmocka_unit_test(nobody_there_is_said_once),
		cmocka_unit_test(no_error_answers_what_went_to_a_group),
		cmocka_unit_test(what_all_nodes_are_told_is_not_solicited),
		cmocka_unit_test(what_is_no_packet_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
