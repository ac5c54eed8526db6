/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the host leaves to the interface: checksums, and large TCP segments cut. */
#include "../test.h"

#include <errno.h>
#include <netinet/in.h>

#include "wire/inet.h"
#include "ulp/net/segment.h"

#define MTU  2044
#define DATA 5000

enum { FIN = 1, PSH = 8, ACK = 16, CWR = 128 };

static u8 packet[40 + 20 + DATA], part[MTU];
static struct virtio_net_hdr header;

/* a TCP segment of DATA bytes, as a host hands it over. Return: its bytes */
static size_t make(bool v4)
{
	size_t ip = v4 ? 20 : 40, bytes = ip + 20 + DATA;
	u8 *tcp = packet + ip;

	memset(packet, 0, sizeof(packet));
	packet[0] = v4 ? 0x45 : 0x60;
	put_be16(packet + (v4 ? 2 : 4), (u16)(v4 ? bytes : bytes - 40));
	if (v4)
		put_be16(packet + 4, 0xffff); /* the identification wraps */
	packet[v4 ? 9 : 6] = IPPROTO_TCP;
	memset(packet + (v4 ? 12 : 8), 0x5a, v4 ? 8 : 32);
	put_be32(tcp + 4, 0xfffffff0); /* so does the sequence number */
	tcp[12] = 5 << 4;
	tcp[13] = FIN | PSH | ACK | CWR;
	for (int i = 0; i < DATA; i++)
		tcp[20 + i] = (u8)(i * 7);
	header = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = (v4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6) |
			    VIRTIO_NET_HDR_GSO_ECN,
		.gso_size = 1984,
		.csum_start = (u16)ip,
		.csum_offset = 16,
	};
	return bytes;
}

static void assert_checksums(const u8 *p, size_t bytes)
{
	bool v4 = p[0] >> 4 == 4;
	size_t ip = v4 ? 20 : 40;
	u64 pseudo = wire_inet_sum(p + (v4 ? 12 : 8), v4 ? 8 : 32, IPPROTO_TCP + bytes - ip);

	if (v4)
		assert_int_equal(wire_inet_fold(wire_inet_sum(p, 20, 0)), 0);
	assert_int_equal(wire_inet_fold(wire_inet_sum(p + ip, bytes - ip, pseudo)), 0);
}

static void parts_are_the_segment(bool v4)
{
	size_t bytes = make(v4), ip = v4 ? 20 : 40, n, done = 0;
	struct net_cut cut;
	int parts = 0;

	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), 0);
	while ((n = net_cut_next(&cut, part))) {
		bool last = done + (n - ip - 20) == DATA;

		assert_true(n <= MTU);
		assert_int_equal(get_be16(part + (v4 ? 2 : 4)), v4 ? n : n - 40);
		if (v4)
			assert_int_equal(get_be16(part + 4), (u16)(0xffff + parts));
		assert_int_equal(get_be32(part + ip + 4), (u32)(0xfffffff0 + done));
		assert_int_equal(part[ip + 13],
				 ACK | (last ? FIN | PSH : 0) | (parts ? 0 : CWR));
		assert_memory_equal(part + ip + 20, packet + ip + 20 + done, n - ip - 20);
		assert_checksums(part, n);
		done += n - ip - 20;
		parts++;
	}
	assert_int_equal(done, DATA);
	assert_int_equal(parts, 3);
}

static void ipv4_is_cut(void **state)
{
	parts_are_the_segment(true);
}

static void ipv6_is_cut(void **state)
{
	parts_are_the_segment(false);
}

static void what_is_no_segment_is_refused(void **state)
{
	static const struct {
		size_t at;
		u8 value;
	} wrong[] = {{0, 0x65}, {0, 0x46}, {9, IPPROTO_UDP}, {32, 4 << 4}};
	size_t bytes = make(true);
	struct virtio_net_hdr good = header;
	struct net_cut cut;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		make(true);
		packet[wrong[i].at] = wrong[i].value;
		assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), -EINVAL);
	}
	make(true);
	header.gso_size = 0;
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), -EINVAL);
	header.gso_size = MTU - 39; /* a byte more than fits */
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), -EINVAL);
	header.gso_size = MTU - 40;
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), 0);
	header.csum_start = 0xffff;
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), -EINVAL);
	header = good;
	header.flags = 0;
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), -EINVAL);
	header = good;
	header.gso_type = VIRTIO_NET_HDR_GSO_UDP;
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, MTU), -EINVAL);
	assert_int_equal(net_cut_begin(&cut, &good, packet, 39, MTU), -EINVAL);
	assert_int_equal(net_cut_begin(&cut, &good, packet, 40, MTU), -EINVAL);
}

/* RFC 1071, a 16-bit word at a time */
static u16 plain_sum(const u8 *p, size_t bytes, u64 sum)
{
	for (size_t i = 0; i < bytes; i++)
		sum += i % 2 ? p[i] : p[i] << 8;
	return wire_inet_fold(sum);
}

static void a_sum_by_blocks_is_the_sum_of_words(void **state)
{
	static u8 data[1000];

	for (int fill = 0; fill < 3; fill++) {
		for (size_t i = 0; i < sizeof(data); i++)
			data[i] = fill ? (u8)(i * fill * 37 + i / 9) : 0xff;
		for (size_t bytes = 0; bytes + 7 < sizeof(data); bytes++)
			assert_int_equal(wire_inet_fold(wire_inet_sum(data + bytes % 7, bytes, 0x12345)),
					 plain_sum(data + bytes % 7, bytes, 0x12345));
	}
}

static void a_checksum_is_filled_in(void **state)
{
	size_t bytes = 20 + 8 + 5; /* odd */
	struct virtio_net_hdr h = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 20,
				   .csum_offset = 6};

	make(true);
	put_be16(packet + 26, 0x1234); /* the pseudo-header's */
	assert_int_equal(net_fill_checksum(&(struct virtio_net_hdr){0}, packet, bytes), 0);
	assert_int_equal(get_be16(packet + 26), 0x1234);
	assert_int_equal(net_fill_checksum(&h, packet, bytes), 0);
	assert_int_equal(wire_inet_fold(wire_inet_sum(packet + 20, bytes - 20, 0x1234)), 0);
	h.csum_offset = 12; /* the field ends behind the packet */
	assert_int_equal(net_fill_checksum(&h, packet, bytes), -EINVAL);
	h.csum_start = 0xffff;
	assert_int_equal(net_fill_checksum(&h, packet, bytes), -EINVAL);
}

static void a_checksum_of_zero_is_written_as_its_complement(void **state)
{
	struct virtio_net_hdr h = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_offset = 0};
	u8 bytes[4] = {0, 0, 0xff, 0xff};

	assert_int_equal(net_fill_checksum(&h, bytes, sizeof(bytes)), 0);
	assert_int_equal(get_be16(bytes), 0xffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_is_cut),
		cmocka_unit_test(ipv6_is_cut),
		cmocka_unit_test(what_is_no_segment_is_refused),
		cmocka_unit_test(a_sum_by_blocks_is_the_sum_of_words),
		cmocka_unit_test(a_checksum_is_filled_in),
		cmocka_unit_test(a_checksum_of_zero_is_written_as_its_complement),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
