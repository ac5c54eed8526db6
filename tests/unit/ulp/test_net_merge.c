/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Received TCP segments: what is merged is what a host had cut, and nothing else is merged. */
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/inet.h"
#include "ulp/net/merge.h"

#define MSS	1000
#define TCP	32 /* with 12 bytes of options */
#define PUSHED	0x18

static u8 large[NET_LARGE_BYTES], part[2048];
static struct net_merge merge;
static struct net_cut cut;
static struct virtio_net_hdr header;

/* the host's packet with @payload bytes of data in segments of MSS. Return: its bytes */
static size_t fill(bool v4, size_t payload)
{
	size_t ip = v4 ? 20 : 40, bytes = ip + TCP + payload;

	for (size_t i = 0; i < bytes; i++)
		large[i] = (u8)(i * 7 + i / 256);
	memset(large, 0, ip);
	large[0] = v4 ? 0x45 : 0x60;
	large[v4 ? 8 : 7] = 64;
	large[v4 ? 9 : 6] = IPPROTO_TCP;
	if (v4)
		put_be16(large + 6, 0x4000);
	memset(large + (v4 ? 12 : 8), 0xa5, v4 ? 8 : 32);
	put_be32(large + ip + 4, 0xfffff000); /* the sequence numbers wrap */
	large[ip + 12] = TCP / 4 << 4;
	large[ip + 13] = PUSHED;
	header = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_size = MSS,
		.gso_type = v4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6,
		.csum_start = (u16)ip, .csum_offset = 16};
	assert_int_equal(net_cut_begin(&cut, &header, large, bytes, sizeof(part)), 0);
	merge.count = 0;
	return bytes;
}

/* the packet that the host is given, in one piece */
static const u8 *whole(void)
{
	static u8 packet[NET_LARGE_BYTES];
	size_t at = merge.headers;

	memcpy(packet, merge.header, at);
	for (unsigned int i = 0; i < merge.num_parts; i++) {
		memcpy(packet + at, merge.part[i].iov_base, merge.part[i].iov_len);
		at += merge.part[i].iov_len;
	}
	assert_int_equal(at, merge.bytes);
	return packet;
}

/* @stay: segments stay where they were received; else each overwrites the one before */
static void cut_and_merge(bool v4, size_t payload, bool stay)
{
	static u8 received[NET_MERGED_MOST][2048];
	size_t bytes = fill(v4, payload), n;
	static u8 again[2048];
	struct net_cut second;
	u8 *to = received[0];

	for (; (n = net_cut_next(&cut, to)); to += stay ? sizeof(received[0]) : 0)
		assert_true(net_merge_add(&merge, to, n, false, stay));
	assert_int_equal(merge.count, (payload + MSS - 1) / MSS);
	assert_int_equal(merge.bytes, bytes);
	net_merge_end(&merge, &header);
	assert_memory_equal(whole() + merge.headers, large + merge.headers, payload);
	/* the host may cut it again, and has what was sent */
	fill(v4, payload);
	assert_int_equal(net_cut_begin(&second, &header, whole(), bytes, sizeof(part)), 0);
	while ((n = net_cut_next(&cut, part))) {
		assert_int_equal(net_cut_next(&second, again), n);
		assert_memory_equal(part, again, n);
	}
	assert_int_equal(net_cut_next(&second, again), 0);
}

static void segments_are_put_together_as_they_were(void **state)
{
	for (int v4 = 0; v4 < 2; v4++) {
		for (int stay = 0; stay < 2; stay++) {
			cut_and_merge(v4, 2 * MSS, stay);
			cut_and_merge(v4, 30 * MSS + 17, stay);
			cut_and_merge(v4, 64 * MSS, stay);
		}
	}
}

static void one_alone_stays_as_it_came(void **state)
{
	static u8 before[2048];
	size_t n;

	fill(true, 700);
	n = net_cut_next(&cut, part);
	memcpy(before, part, n);
	assert_true(net_merge_add(&merge, part, n, false, false));
	net_merge_end(&merge, &header);
	assert_int_equal(merge.bytes, n);
	assert_memory_equal(whole(), before, n);
	assert_int_equal(header.flags | header.gso_type | header.gso_size, 0);
}

/* the checksum of TCP again */
static void seal(size_t ip, size_t bytes)
{
	bool v4 = ip == 20;
	u64 sum = wire_inet_sum(part + (v4 ? 12 : 8), v4 ? 8 : 32, IPPROTO_TCP + bytes - ip);

	put_be16(part + ip + 16, 0);
	put_be16(part + ip + 16, wire_inet_fold(wire_inet_sum(part + ip, bytes - ip, sum)));
}

/* Return: is the second segment appended when the bits @value of byte @at differ? */
static bool appended(bool v4, size_t at, u8 value, bool sealed)
{
	size_t ip = v4 ? 20 : 40, n;

	fill(v4, 3 * MSS);
	n = net_cut_next(&cut, part);
	assert_true(net_merge_add(&merge, part, n, false, false));
	n = net_cut_next(&cut, part);
	part[at] ^= value;
	if (sealed)
		seal(ip, n);
	return net_merge_add(&merge, part, n, false, false);
}

static void what_differs_is_not_appended(void **state)
{
	static const struct {
		size_t v4, v6; /* the place; 0: none */
		u8 value;
	} places[] = {
		{1, 1, 3},	  /* congestion was experienced, or the traffic class */
		{6, 0, 0x40},	  /* it may be fragmented */
		{7, 0, 1},	  /* it is a fragment */
		{8, 7, 1},	  /* TTL */
		{12, 8, 1},	  /* the source */
		{19, 39, 1},	  /* the destination */
		{20, 40, 1},	  /* ports */
		{23, 43, 1},
		{27, 47, 1},	  /* the sequence number */
		{31, 51, 1},	  /* the acknowledgement */
		{32, 52, 0x10},	  /* the length of the header */
		{32, 52, 1},	  /* reserved bits */
		{33, 53, 0x01},	  /* FIN */
		{33, 53, 0x02},	  /* SYN */
		{33, 53, 0x04},	  /* RST */
		{33, 53, 0x10},	  /* no ACK */
		{33, 53, 0x20},	  /* URG */
		{33, 53, 0x40},	  /* ECE */
		{33, 53, 0x80},	  /* CWR */
		{40, 60, 1},	  /* options */
	};

	assert_true(appended(true, 34, 1, true)); /* the window */
	assert_true(appended(false, 54, 1, true));
	assert_true(appended(true, 5, 1, true)); /* the identification */
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		assert_false(appended(true, places[i].v4, places[i].value, true));
		assert_false(places[i].v6 && appended(false, places[i].v6, places[i].value, true));
	}
	assert_false(appended(true, 100, 1, false)); /* data that the checksum tells of */
	assert_false(appended(false, 100, 1, false));
}

/* the adapter of the receiver has verified it */
static void a_checked_segment_is_not_verified_again(void **state)
{
	size_t n;

	fill(true, 3 * MSS);
	n = net_cut_next(&cut, part);
	part[100] ^= 1;
	assert_false(net_merge_add(&merge, part, n, false, false));
	assert_true(net_merge_add(&merge, part, n, true, false));
}

static void nothing_follows_a_push_or_a_short_segment(void **state)
{
	size_t n;

	for (int how = 0; how < 2; how++) {
		fill(true, 3 * MSS);
		n = net_cut_next(&cut, part);
		assert_true(net_merge_add(&merge, part, n, false, false));
		n = net_cut_next(&cut, part);
		if (how) {
			part[33] |= 8;
		} else {
			n -= 100;
			put_be16(part + 2, (u16)n);
		}
		seal(20, n);
		assert_true(net_merge_add(&merge, part, n, false, false));
		n = net_cut_next(&cut, part);
		if (!how)
			put_be32(part + 24, get_be32(part + 24) - 100);
		seal(20, n);
		assert_false(net_merge_add(&merge, part, n, false, false));
		assert_int_equal(merge.count, 2);
		net_merge_end(&merge, &header);
		assert_int_equal(whole()[33], how ? PUSHED : 0x10);
	}
}

static void what_is_no_data_does_not_begin(void **state)
{
	size_t n;

	fill(true, MSS);
	n = net_cut_next(&cut, part);
	for (size_t bytes = 0; bytes < n; bytes++) /* cut short */
		assert_false(net_merge_add(&merge, part, bytes, false, false));
	put_be16(part + 2, 20 + TCP); /* an acknowledgement */
	seal(20, 20 + TCP);
	assert_false(net_merge_add(&merge, part, 20 + TCP, false, false));
	part[9] = IPPROTO_UDP;
	assert_false(net_merge_add(&merge, part, n, false, false));
	assert_int_equal(merge.count, 0);
}

static void a_packet_has_64_kib_at_most(void **state)
{
	u32 seq = 0;
	size_t n;

	fill(true, MSS);
	n = net_cut_next(&cut, part);
	part[33] = 0x10;
	do {
		put_be32(part + 24, seq);
		seal(20, n);
		seq += MSS;
	} while (net_merge_add(&merge, part, n, false, false));
	assert_int_equal(merge.count, (NET_LARGE_BYTES - 20 - TCP) / MSS);
}

static size_t fill_udp(bool v4, size_t payload, u8 mark)
{
	size_t ip = v4 ? 20 : 40, bytes = ip + 8 + payload;

	memset(part, 0, ip + 8);
	memset(part + ip + 8, mark, payload);
	part[0] = v4 ? 0x45 : 0x60;
	part[v4 ? 9 : 6] = IPPROTO_UDP;
	memset(part + (v4 ? 12 : 8), 0x25, v4 ? 8 : 32);
	if (v4) {
		put_be16(part + 2, (u16)bytes);
		put_be16(part + 6, 0x4000);
	} else {
		put_be16(part + 4, (u16)(8 + payload));
	}
	put_be32(part + ip, 0x12345678);
	put_be16(part + ip + 4, (u16)(8 + payload));
	put_be16(part + ip + 6, wire_inet_fold(wire_inet_sum(part + ip, 8 + payload,
		 wire_inet_sum(part + (v4 ? 12 : 8), v4 ? 8 : 32, IPPROTO_UDP + 8 + payload))));
	return bytes;
}

/* what the host cuts again: the kernel's header of UDP_SEGMENT */
static void datagrams_of_one_length_are_merged(void **state)
{
	for (int v4 = 0; v4 < 2; v4++) {
		size_t ip = v4 ? 20 : 40;

		merge = (struct net_merge){0};
		for (u8 i = 0; i < 64; i++)
			assert_true(net_merge_add(&merge, part, fill_udp(v4, 100, i + 1), false, false));
		assert_false(net_merge_add(&merge, part, fill_udp(v4, 100, 65), false, false));
		net_merge_end(&merge, &header);
		assert_int_equal(header.gso_type, 5);
		assert_int_equal(header.gso_size, 100);
		assert_int_equal(header.csum_start, ip);
		assert_int_equal(header.csum_offset, 6);
		assert_int_equal(merge.bytes, ip + 8 + 6400);
		assert_int_equal(get_be16(whole() + ip + 4), 8 + 6400);
		assert_int_equal(whole()[ip + 8], 1);
		assert_int_equal(whole()[ip + 8 + 6399], 64);
	}
}

static void other_datagrams_are_not(void **state)
{
	size_t n;

	merge = (struct net_merge){0};
	assert_true(net_merge_add(&merge, part, fill_udp(true, 100, 1), false, false));
	assert_false(net_merge_add(&merge, part, fill_udp(true, 101, 1), false, false)); /* longer */
	n = fill_udp(true, 100, 1);
	part[21]++; /* of another port, and so of a wrong checksum */
	assert_false(net_merge_add(&merge, part, n, false, false));
	put_be16(part + 26, (u16)(get_be16(part + 26) - 1));
	assert_false(net_merge_add(&merge, part, n, false, false));
	assert_true(net_merge_add(&merge, part, fill_udp(true, 99, 1), false, false)); /* the last one */
	assert_false(net_merge_add(&merge, part, fill_udp(true, 99, 1), false, false));
	merge = (struct net_merge){0};
	n = fill_udp(true, 100, 1);
	put_be16(part + 26, 0); /* without a checksum */
	assert_false(net_merge_may_begin(part, n));
	n = fill_udp(true, 100, 1);
	part[16] = 239; /* to a group */
	assert_false(net_merge_may_begin(part, n));
	assert_false(net_merge_may_begin(part, fill_udp(true, 0, 1)));
	assert_true(net_merge_may_begin(part, fill_udp(false, 1, 1)));
	assert_false(net_merge_may_begin(part, 27));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams_of_one_length_are_merged),
		cmocka_unit_test(other_datagrams_are_not),
		cmocka_unit_test(segments_are_put_together_as_they_were),
		cmocka_unit_test(one_alone_stays_as_it_came),
		cmocka_unit_test(what_differs_is_not_appended),
		cmocka_unit_test(a_checked_segment_is_not_verified_again),
		cmocka_unit_test(nothing_follows_a_push_or_a_short_segment),
		cmocka_unit_test(what_is_no_data_does_not_begin),
		cmocka_unit_test(a_packet_has_64_kib_at_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
