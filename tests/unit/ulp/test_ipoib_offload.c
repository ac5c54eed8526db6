/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * IP over InfiniBand on an adapter that cuts TCP segments and computes checksums: what is left to it,
 * and what is not; and what is received while nobody has taken the packets before.
 */
#include "ulp/ipoib/private.h" /* names its user of the midlayer, so it comes first */

#include "ipoib_bench.h"
#include "wire/inet.h"

#define MSS   1000
#define TCP   20
#define DATA  30000
#define PARTS 30

static const struct ipoib_link peer = {.qpn = 0x48, .gid = {.raw = {0xfe, 0x80, [15] = 12}}};
static u8 packet[40 + TCP + DATA];
static struct virtio_net_hdr header;

static const struct ipoib_stats *stats(void)
{
	return ipoib_stats(bench_interface());
}

/* the neighbour of 10.0.0.2 is READY, and nothing is noted */
static void resolve(void)
{
	struct in6_addr sender = address("10.0.0.2"), target = address("10.0.0.1");
	u8 arp[IPOIB_ARP_BYTES];

	ipoib_put_arp(arp, IPOIB_REQUEST, &peer, &sender, NULL, &target);
	bench_arrives(&peer, IPOIB_ARP, arp, sizeof(arp));
	run_ms(10);
	bench.num_sent = 0;
}

/* a TCP segment of the host's for the neighbour, or of the neighbour's. Return: its bytes */
static size_t fill(const char *from, const char *to, size_t data)
{
	static u8 payload[TCP + DATA];
	size_t bytes;

	memset(payload, 0, sizeof(payload));
	payload[12] = TCP / 4 << 4;
	payload[13] = 0x10;
	for (size_t i = 0; i < data; i++)
		payload[TCP + i] = (u8)(i * 3 + i / 200);
	bytes = bench_packet(packet, from, to, IPPROTO_TCP, payload, TCP + data);
	put_be16(packet + 6, 0x4000);
	header = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					 .gso_type = VIRTIO_NET_HDR_GSO_TCPV4, .gso_size = MSS,
					 .csum_start = 20, .csum_offset = 16};
	return bytes;
}

static size_t fill_out(size_t data)
{
	return fill("10.0.0.1", "10.0.0.2", data);
}

/* --- sending --- */

static void a_segment_is_one_request(void **state)
{
	const struct bench_frame *f = &bench.sent[0];
	size_t bytes;

	resolve();
	assert_int_equal(bench.create_flags, IB_QP_CREATE_IPOIB_UD_LSO);
	bytes = fill_out(DATA);
	bench.hold = true;
	host_sends_bytes(&header, packet, bytes);
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(f->opcode, IB_WR_LSO);
	assert_int_equal(f->qpn, peer.qpn);
	assert_int_equal(f->mss, MSS);
	assert_int_equal(f->hlen, IPOIB_ENCAP_BYTES + 20 + TCP);
	assert_int_equal(f->bytes, DATA);
	assert_int_equal(get_be16(f->header), IPOIB_IPV4);
	assert_memory_equal(f->header + IPOIB_ENCAP_BYTES, packet, 20 + TCP);
	assert_memory_equal(f->at, packet + 20 + TCP, sizeof(f->at));
	bench_release(bench_qp(), IB_WC_SUCCESS);
	run_ms(1);
}

/* as if it had been cut here */
static void the_packets_of_a_request_are_counted(void **state)
{
	u64 packets, octets;

	resolve();
	packets = stats()->tx_packets;
	octets = stats()->tx_bytes;
	host_sends_bytes(&header, packet, fill_out(DATA - 1));
	run_ms(1);
	assert_int_equal(stats()->tx_packets - packets, PARTS);
	assert_int_equal(stats()->tx_bytes - octets, DATA - 1 + PARTS * (20 + TCP));
}

/* An adapter takes no other headers than those of IP and TCP. */
static void extension_headers_are_not_left_to_the_adapter(void **state)
{
	static u8 payload[8 + TCP + 3000];
	size_t bytes;

	resolve();
	payload[0] = IPPROTO_TCP; /* of a header of hop-by-hop options, 8 bytes */
	payload[2] = 1; /* PadN */
	payload[3] = 4;
	payload[8 + 12] = TCP / 4 << 4;
	bytes = bench_packet(packet, "fe80::1", "ff02::77", IPPROTO_HOPOPTS, payload, sizeof(payload));
	header = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					 .gso_type = VIRTIO_NET_HDR_GSO_TCPV6, .gso_size = MSS,
					 .csum_start = 48, .csum_offset = 16};
	host_sends_bytes(&header, packet, bytes);
	run_ms(100); /* until the group is joined */
	assert_int_equal(bench.num_sent, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(bench.sent[i].opcode, IB_WR_SEND);
		assert_int_equal(bench.sent[i].bytes, IPOIB_ENCAP_BYTES + 48 + TCP + MSS);
	}
}

static void a_segment_waits_for_its_neighbour(void **state)
{
	host_sends_bytes(&header, packet, fill_out(DATA));
	assert_int_equal(bench.num_sent, 1); /* the question */
	resolve();
	assert_int_equal(bench.sent[1].opcode, IB_WR_LSO);
	assert_int_equal(bench.sent[1].bytes, DATA);
}

/* Its checksum is the adapter's business, and the field still has the host's sum. */
static void the_checksum_of_a_packet_is_left_to_the_adapter(void **state)
{
	size_t bytes;

	resolve();
	bytes = fill_out(100);
	header.gso_type = VIRTIO_NET_HDR_GSO_NONE;
	put_be16(packet + 20 + 16, 0x1234);
	host_sends_bytes(&header, packet, bytes);
	assert_int_equal(bench.sent[0].opcode, IB_WR_SEND);
	assert_int_equal(bench.sent[0].flags, IB_SEND_SIGNALED | IB_SEND_IP_CSUM);
	assert_memory_equal(bench.sent[0].at + IPOIB_ENCAP_BYTES, packet, bytes);
}

/* What an adapter does not know: a fragment, another protocol, another place */
static void other_checksums_are_computed_here(void **state)
{
	size_t bytes;

	resolve();
	for (int i = 0; i < 3; i++) {
		bytes = fill_out(100);
		header.gso_type = VIRTIO_NET_HDR_GSO_NONE;
		if (i == 0)
			put_be16(packet + 6, 0x2000);
		if (i == 1)
			packet[9] = IPPROTO_SCTP;
		if (i == 2)
			header.csum_offset = 18;
		host_sends_bytes(&header, packet, bytes);
		assert_int_equal(bench.sent[i].flags, IB_SEND_SIGNALED);
		put_be16(packet + 20 + header.csum_offset,
			 wire_inet_fold(wire_inet_sum(packet + 20, bytes - 20, 0)));
		assert_memory_equal(bench.sent[i].at + IPOIB_ENCAP_BYTES, packet, bytes);
	}
	header.flags = 0; /* nothing is asked for */
	host_sends_bytes(&header, packet, bytes);
	assert_int_equal(bench.sent[3].flags, IB_SEND_SIGNALED);
}

/* Connections carry what the host sends as it is. */
static void connected_mode_leaves_nothing_to_the_adapter(void **state)
{
	size_t bytes;

	resolve();
	assert_int_equal(ipoib_set_connected(bench_interface(), true), 0);
	run_ms(10);
	bench.num_sent = 0;
	bytes = fill_out(DATA);
	host_sends_bytes(&header, packet, bytes);
	assert_int_equal(bench.num_sent, PARTS);
	for (int i = 0; i < PARTS; i++) {
		assert_int_equal(bench.sent[i].opcode, IB_WR_SEND);
		assert_int_equal(bench.sent[i].flags, IB_SEND_SIGNALED);
	}
}

/* --- receiving --- */

static size_t hears(u8 to[NET_LARGE_BYTES], struct virtio_net_hdr *h)
{
	struct iovec part[] = {{h, sizeof(*h)}, {to, NET_LARGE_BYTES}};
	struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
	ssize_t n = recvmsg(bench.tun, &msg, MSG_DONTWAIT);

	return n < 0 ? 0 : (size_t)n - sizeof(*h);
}

/* the neighbour's segment arrives in packets, whose checksums are wrong, @each at a time */
static void arrive(size_t data, int each, int flags)
{
	size_t bytes = fill("10.0.0.2", "10.0.0.1", data), n;
	struct net_cut cut;
	u8 part[IPOIB_MTU];

	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, IPOIB_MTU), 0);
	for (int i = 1; (n = net_cut_next(&cut, part)); i++) {
		part[20 + 16] ^= 1;
		bench_puts_with(&peer, IPOIB_IPV4, part, n, flags);
		if (i % each == 0)
			assert_true(rt_sim_step(net->rt));
	}
	run_ms(1);
}

static void checked_packets_are_merged_unseen(void **state)
{
	static u8 got[NET_LARGE_BYTES];
	struct virtio_net_hdr h;
	size_t n;

	resolve();
	arrive(5 * MSS, 1, IB_WC_IP_CSUM_OK);
	n = hears(got, &h);
	assert_int_equal(n, 20 + TCP + 5 * MSS);
	assert_memory_equal(got + 20 + TCP, packet + 20 + TCP, 5 * MSS);
	assert_int_equal(h.flags, VIRTIO_NET_HDR_F_NEEDS_CSUM);
	assert_int_equal(h.gso_size, MSS);
	arrive(2 * MSS, 1, 0); /* now the host is to see that they are wrong */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(hears(got, &h), 20 + TCP + MSS);
		assert_int_equal(h.flags, 0);
	}
}

/* Packets stay in their receives until the host has them. Others are there for what arrives
 * meanwhile, and in the end all are posted again. */
static void some_receives_are_left_while_others_are_kept(void **state)
{
	size_t bytes, n;
	struct net_cut cut;
	u8 part[IPOIB_MTU];
	int received = 0;

	resolve();
	bytes = fill("10.0.0.2", "10.0.0.1", DATA);
	header.gso_size = 250; /* 120 packets, which are one for the host */
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, IPOIB_MTU), 0);
	while ((n = net_cut_next(&cut, part))) {
		bench_puts(&peer, IPOIB_IPV4, part, n);
		assert_true(rt_sim_step(net->rt));
		assert_true(bench_posted() >= 16); /* an adapter takes so many in a turn */
		received++;
	}
	assert_int_equal(received, 120);
	run_ms(1);
	assert_int_equal(stats()->rx_packets, received);
}

static void receives_that_are_kept_come_back(void **state)
{
	static u8 got[NET_LARGE_BYTES];
	struct virtio_net_hdr h;
	unsigned int before;

	resolve();
	before = bench_posted();
	for (int burst = 0; burst < 20; burst++) {
		size_t heard = 0, n;

		arrive(DATA, 4, IB_WC_IP_CSUM_OK); /* asserts that receives are there */
		while ((n = hears(got, &h)))
			heard += n - 20 - TCP;
		assert_int_equal(heard, DATA);
	}
	assert_true(bench_posted() >= before);
	assert_int_equal(stats()->rx_packets, 20 * PARTS);
}

/* the queue pair is reset, and the interface ends, while receives are kept */
static void an_interface_ends_with_what_is_kept(void **state)
{
	struct ib_event event = {.device = device, .element.qp = bench_qp(), .event = IB_EVENT_QP_FATAL};
	size_t bytes, n;
	struct net_cut cut;
	u8 part[IPOIB_MTU];

	resolve();
	for (int i = 0; i < 2; i++) {
		bytes = fill("10.0.0.2", "10.0.0.1", 3 * MSS);
		assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, IPOIB_MTU), 0);
		n = net_cut_next(&cut, part);
		bench_puts(&peer, IPOIB_IPV4, part, n);
		assert_true(rt_sim_step(net->rt));
		if (i)
			break;
		event.element.qp->event_handler(&event, event.element.qp->qp_context);
		run_ms(5000);
		assert_true(bench_posted() > 0);
	}
	ipoib_close(bench_interface());
}

/* The groups' packets of an idle host are small. With a neighbour there is memory for a large packet, until
 * it is forgotten. */
static void who_knows_nobody_keeps_no_large_frame(void **state)
{
	host_sends("ff02::1");
	run_ms(10);
	assert_true(bench.num_sent > 0);
	assert_true(!bench_interface()->spare_frame);
	resolve();
	host_sends("10.0.0.2");
	assert_true(bench_interface()->spare_frame);
	run_ms(120000);
	assert_int_equal(bench_interface()->num_neighbours, 0);
	assert_true(!bench_interface()->spare_frame);
}

/* --- the adapter --- */

static int open_with(u64 capabilities, void **state)
{
	if (bench_setup(state))
		return -1;
	device->attrs.device_cap_flags |= capabilities;
	if (bench_open())
		return -1;
	host_has("10.0.0.1", 16, RTM_NEWADDR);
	run_ms(VERIFIED_MS);
	bench.num_sent = 0;
	return 0;
}

static int open_able(void **state)
{
	return open_with(IB_DEVICE_UD_TSO | IB_DEVICE_UD_IP_CSUM, state);
}

static int open_unable(void **state)
{
	return open_with(IB_DEVICE_UD_IP_CSUM, state);
}

static void without_the_capability_it_is_cut_here(void **state)
{
	resolve();
	assert_int_equal(bench.create_flags, 0);
	host_sends_bytes(&header, packet, fill_out(DATA));
	assert_int_equal(bench.num_sent, PARTS);
	assert_int_equal(bench.sent[0].opcode, IB_WR_SEND);
	assert_int_equal(bench.sent[0].flags, IB_SEND_SIGNALED);
}

#define ABLE(name) cmocka_unit_test_setup_teardown(name, open_able, bench_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ABLE(a_segment_is_one_request),
		ABLE(the_packets_of_a_request_are_counted),
		ABLE(extension_headers_are_not_left_to_the_adapter),
		ABLE(a_segment_waits_for_its_neighbour),
		ABLE(the_checksum_of_a_packet_is_left_to_the_adapter),
		ABLE(other_checksums_are_computed_here),
		ABLE(connected_mode_leaves_nothing_to_the_adapter),
		ABLE(checked_packets_are_merged_unseen),
		ABLE(some_receives_are_left_while_others_are_kept),
		ABLE(receives_that_are_kept_come_back),
		ABLE(an_interface_ends_with_what_is_kept),
		ABLE(who_knows_nobody_keeps_no_large_frame),
		cmocka_unit_test_setup_teardown(without_the_capability_it_is_cut_here, open_unable,
						bench_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
