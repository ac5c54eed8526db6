/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* IP over InfiniBand: neighbours, groups and their ends, on the bench of ipoib_bench.h. */
#include <malloc.h>

#include "ipoib_bench.h"
#include "ulp/net/tun.h"

static const struct ipoib_link peer = {.qpn = 0x48, .gid = {.raw = {0xfe, 0x80, [15] = 12}}};
static const struct ipoib_link moved = {.qpn = 0x49, .gid = {.raw = {0xfe, 0x80, [15] = 13}}};

/* what the last request about a group asked for */
static u8 join_state(void)
{
	return sa->counted_record[48] & 0xf;
}

static u16 type_of(int i)
{
	assert_true(i < bench.num_sent);
	return get_be16(bench.sent[i].at);
}

static bool is_question(int i)
{
	return type_of(i) == IPOIB_ARP && bench.sent[i].qpn == IB_MULTICAST_QPN &&
	       get_be16(bench.sent[i].at + IPOIB_ENCAP_BYTES + 6) == IPOIB_REQUEST;
}

static void peer_answers(void)
{
	arp(IPOIB_REPLY, &peer, "10.0.0.2", "10.0.0.1");
}

/* the neighbour of 10.0.0.2 is READY, and nothing is noted */
static void resolve(void)
{
	host_sends("10.0.0.2");
	peer_answers();
	assert_int_equal(bench.num_sent, 2);
	bench.num_sent = 0;
}

static int count_neighbour(void *ctx, const struct ipoib_peer *peer)
{
	++*(int *)ctx;
	return 0;
}

static int neighbours(void)
{
	int n = 0;

	ipoib_each_neighbour(bench_interface(), count_neighbour, &n);
	return n;
}

static int count_group(void *ctx, const union ib_gid *mgid, bool send_only, bool joined)
{
	*(int *)ctx += joined;
	return 0;
}

#define SENDS_MOST 56 /* with the receives, what the completion queue has room for */

static int groups(void)
{
	int n = 0;

	ipoib_each_group(bench_interface(), count_group, &n);
	return n;
}

static const struct ipoib_stats *stats(void)
{
	return ipoib_stats(bench_interface());
}

static void assert_host_hears_unreachable(void)
{
	u8 packet[IPOIB_MTU];

	assert_int_equal(host_hears(packet), 20 + 8 + 28);
	assert_int_equal(packet[9], IPPROTO_ICMP);
	assert_int_equal(packet[20] << 8 | packet[21], 0x0301);
}

/* --- unicast --- */

static void a_packet_waits_for_address_and_path(void **state)
{
	sa->count_attr = IB_SA_ATTR_PATH_REC;
	host_sends("10.0.0.2");
	assert_int_equal(bench.num_sent, 1);
	assert_true(is_question(0));
	assert_int_equal(neighbours(), 1);
	peer_answers();
	assert_memory_equal(sa->counted_record + 8, &peer.gid, 16);
	assert_int_equal(bench.num_sent, 2);
	assert_int_equal(type_of(1), IPOIB_IPV4);
	assert_int_equal(bench.sent[1].qpn, peer.qpn);
	host_sends("10.0.0.2"); /* now at once */
	assert_int_equal(bench.num_sent, 3);
}

static void a_lost_reply_is_asked_for_again(void **state)
{
	host_sends("10.0.0.2");
	run_ms(1500);
	assert_int_equal(bench.num_sent, 2);
	assert_true(is_question(1));
	peer_answers();
	assert_int_equal(bench.sent[2].qpn, peer.qpn);
	assert_int_equal(stats()->tx_dropped, 0);
}

static void nobody_answers_and_the_host_hears_it(void **state)
{
	u8 packet[IPOIB_MTU];

	host_sends("10.0.0.2");
	run_ms(5000);
	assert_int_equal(bench.num_sent, 3);
	assert_int_equal(neighbours(), 0);
	assert_int_equal(stats()->tx_dropped, 1);
	assert_host_hears_unreachable();
	assert_int_equal(host_hears(packet), 0);
}

/* Whatever the number of their packets, no more are under way than the completion queue has room for;
 * the rest follows in order. */
static void many_destinations_become_known_at_once(void **state)
{
	const int each = 12, hosts = 8, all = each * hosts;
	u8 last = 0;

	for (int i = 0; i < all; i++) {
		u8 number = (u8)i;
		char to[16];

		snprintf(to, sizeof(to), "10.0.0.%d", 2 + i % hosts);
		host_sends_packet("10.0.0.1", to, IPPROTO_UDP, &number, 1);
	}
	bench.hold = true;
	bench.num_sent = 0;
	for (int i = 0; i < hosts; i++) {
		struct ipoib_link link = peer;
		char ip[16];

		link.qpn += (u32)i;
		snprintf(ip, sizeof(ip), "10.0.0.%d", 2 + i);
		arp(IPOIB_REPLY, &link, ip, "10.0.0.1");
	}
	assert_in_range(bench.num_sent, 1, SENDS_MOST);
	host_sends_packet("10.0.0.1", "10.0.0.9", IPPROTO_UDP, (u8[]){(u8)all}, 1);
	while (bench.num_held) {
		const int before = bench.num_sent;

		bench_release(bench_qp(), IB_WC_SUCCESS);
		bench.hold = true;
		run_ms(1);
		rt_sim_look(net->rt); /* the last packet was left to the host */
		assert_in_range(bench.num_sent - before, 0, SENDS_MOST);
	}
	assert_int_equal(bench.num_sent, all + 1);
	for (int i = 0; i < bench.num_sent; i++)
		if (bench.sent[i].qpn == peer.qpn + hosts - 1) { /* which was released last */
			const u8 number = bench.sent[i].at[bench.sent[i].bytes - 1];

			assert_true(number >= last);
			last = number;
		}
	assert_int_equal(last, all);
	assert_int_equal(stats()->tx_dropped, 0);
}

static void packets_that_wait_are_bounded(void **state)
{
	for (int i = 0; i < 20; i++)
		host_sends("10.0.0.2");
	assert_int_equal(stats()->tx_dropped, 4);
	peer_answers();
	assert_int_equal(bench.num_sent, 1 + 16);
}

/* While the hosts of a fabric appear, thousands do. A sanitizer's heap counts nothing. */
static void a_packet_that_waits_takes_its_own_size(void **state)
{
	size_t before;

	host_sends("10.0.0.2");
	before = mallinfo2().uordblks;
	for (int i = 0; i < 10; i++)
		host_sends("10.0.0.2");
	assert_true(mallinfo2().uordblks - before < 10 * 400);
	peer_answers();
	assert_int_equal(bench.num_sent, 1 + 11);
	for (int i = 1; i < bench.num_sent; i++)
		assert_memory_equal(bench.sent[i].at + bench.sent[i].bytes - 8, "message", 8);
}

static void hosts_that_do_not_answer_hold_up_no_other(void **state)
{
	char silent[16];

	resolve();
	for (int host = 0; host < 40; host++) {
		snprintf(silent, sizeof(silent), "10.0.1.%d", host);
		for (int i = 0; i < 16; i++)
			host_sends(silent);
		run_ms(1);
	}
	assert_int_equal(stats()->tx_dropped, (40 - 512 / 16) * 16);
	assert_int_equal(bench.num_sent, 40); /* questions */
	host_sends("10.0.0.2");
	assert_int_equal(bench.num_sent, 41);
	assert_int_equal(bench.sent[40].qpn, peer.qpn);
	run_ms(5000);
	host_sends("10.0.1.1"); /* what waited has given its room back */
	assert_int_equal(stats()->tx_dropped, 40 * 16);
}

static void a_refused_path_is_a_host_that_is_not_reachable(void **state)
{
	sa->refuses = IB_SA_ATTR_PATH_REC;
	host_sends("10.0.0.2");
	peer_answers();
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(neighbours(), 0);
	assert_host_hears_unreachable();
	sa->refuses = 0;
	bench.num_sent = 0;
	resolve();
}

static void a_peer_that_moves_is_followed(void **state)
{
	resolve();
	sa->count_attr = IB_SA_ATTR_PATH_REC;
	arp(IPOIB_REQUEST, &moved, "10.0.0.2", "10.0.0.1");
	assert_memory_equal(sa->counted_record + 8, &moved.gid, 16);
	assert_int_equal(bench.num_sent, 1); /* our answer */
	host_sends("10.0.0.2");
	assert_int_equal(bench.sent[1].qpn, moved.qpn);
	assert_int_equal(neighbours(), 1);
}

static void an_event_flushes_paths_and_loses_nothing(void **state)
{
	static const enum ib_event_type events[] = {IB_EVENT_LID_CHANGE, IB_EVENT_SM_CHANGE,
						    IB_EVENT_CLIENT_REREGISTER,
						    IB_EVENT_PKEY_CHANGE};

	resolve();
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		sa->count_attr = IB_SA_ATTR_PATH_REC;
		sa->asked_attr = bench.num_sent = 0;
		ib_dispatch_event(&(struct ib_event){.device = device, .element.port_num = 1,
						     .event = events[i]});
		while (!sa->asked_attr) /* the path is under way */
			assert_true(rt_sim_step(net->rt));
		host_sends("10.0.0.2");
		assert_int_equal(bench.num_sent, 0);
		run_ms(100);
		assert_true(bench.num_sent >= 1);
		assert_int_equal(bench.sent[bench.num_sent - 1].qpn, peer.qpn);
	}
	assert_int_equal(stats()->tx_dropped, 0);
}

static void one_in_use_is_asked_and_one_at_rest_forgotten(void **state)
{
	resolve();
	host_sends("10.0.0.2");
	run_ms(30500);
	assert_int_equal(bench.num_sent, 2);
	assert_int_equal(type_of(1), IPOIB_ARP);
	assert_int_equal(bench.sent[1].qpn, peer.qpn); /* itself, not all */
	peer_answers();
	run_ms(31000);
	assert_int_equal(bench.num_sent, 2);
	assert_int_equal(neighbours(), 0);
}

/* --- connected mode --- */

/* the neighbour's node has no CM: it refuses */
static void who_takes_no_connection_is_sent_datagrams(void **state)
{
	struct ipoib_link able = peer;

	able.connected = true;
	assert_int_equal(ipoib_set_connected(bench_interface(), true), 0);
	assert_true(ipoib_own_link(bench_interface())->connected);
	host_sends("10.0.0.2");
	arp(IPOIB_REPLY, &able, "10.0.0.2", "10.0.0.1");
	run_ms(1000);
	assert_int_equal(bench.num_sent, 2);
	assert_int_equal(type_of(1), IPOIB_IPV4);
	assert_int_equal(bench.sent[1].qpn, peer.qpn);
	host_sends("10.0.0.2");
	assert_int_equal(bench.num_sent, 3);
	assert_int_equal(ipoib_set_connected(bench_interface(), false), 0);
}

/* by the flag in the own link address; once the path to it is there, not by a multicast */
static void a_neighbour_is_told_of_the_mode_itself(void **state)
{
	resolve();
	for (int on = 1; on >= 0; on--) {
		bench.num_sent = 0;
		assert_int_equal(ipoib_set_connected(bench_interface(), on), 0);
		run_ms(100);
		assert_int_equal(bench.num_sent, 1);
		assert_int_equal(type_of(0), IPOIB_ARP);
		assert_int_equal(bench.sent[0].qpn, peer.qpn);
	}
	run_ms(100);
	assert_int_equal(bench.num_sent, 1);
}

static void a_packet_too_big_for_datagrams_is_told_of(void **state)
{
	static const u8 payload[30000];
	u8 packet[IPOIB_MTU];

	assert_int_equal(ipoib_set_connected(bench_interface(), true), 0);
	resolve();
	host_sends_packet("10.0.0.1", "10.0.0.2", IPPROTO_UDP, payload, sizeof(payload));
	assert_int_equal(bench.num_sent, 0);
	assert_int_equal(stats()->tx_dropped, 1);
	assert_int_equal(host_hears(packet), 20 + 8 + 28);
	assert_int_equal(packet[20] << 8 | packet[21], 0x0304);
	assert_int_equal(packet[26] << 8 | packet[27], IPOIB_MTU);
	host_sends_packet("10.0.0.1", "255.255.255.255", IPPROTO_UDP, payload, sizeof(payload));
	assert_int_equal(stats()->tx_errors, 1);
	assert_int_equal(ipoib_set_connected(bench_interface(), false), 0);
	host_sends_packet("10.0.0.1", "10.0.0.2", IPPROTO_UDP, payload, sizeof(payload));
	assert_int_equal(stats()->tx_errors, 2); /* the device's MTU forbids it */
}

/* --- what others ask --- */

static void questions_about_us_are_answered(void **state)
{
	arp(IPOIB_REQUEST, &peer, "10.0.0.2", "10.0.0.9"); /* somebody else */
	assert_int_equal(bench.num_sent + neighbours(), 0);
	arp(IPOIB_REQUEST, &peer, "10.0.0.2", "10.0.0.1");
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(bench.sent[0].qpn, peer.qpn);
	assert_int_equal(get_be16(bench.sent[0].at + IPOIB_ENCAP_BYTES + 6), IPOIB_REPLY);
	host_has("10.0.0.1", 16, RTM_DELADDR);
	arp(IPOIB_REQUEST, &peer, "10.0.0.2", "10.0.0.1");
	assert_int_equal(bench.num_sent, 1);
}

static void nobody_takes_our_address_or_answers_unasked(void **state)
{
	arp(IPOIB_REPLY, &peer, "10.0.0.2", "10.0.0.1");
	assert_int_equal(neighbours(), 0);
	arp(IPOIB_REQUEST, &peer, "10.0.0.1", "10.0.0.9");
	assert_int_equal(neighbours(), 0);
}

static void what_is_no_frame_is_counted(void **state)
{
	u8 junk[64] = {0x45, 0, 0xff, 0xff}, packet[IPOIB_MTU];

	bench_arrives(&peer, IPOIB_IPV4, junk, sizeof(junk)); /* longer than it is */
	bench_arrives(&peer, IPOIB_IPV4, junk, 3);
	bench_arrives(&peer, IPOIB_ARP, junk, sizeof(junk));
	bench_arrives(&peer, 0x1234, junk, sizeof(junk));
	assert_int_equal(stats()->rx_errors, 4);
	assert_int_equal(host_hears(packet), 0);
	host_sends_bytes(&(struct virtio_net_hdr){0}, junk, sizeof(junk));
	assert_int_equal(stats()->tx_errors, 1);
}

static void a_packet_is_delivered_but_not_our_own_echo(void **state)
{
	u8 packet[IPOIB_MTU], got[IPOIB_MTU];
	size_t n = bench_packet(packet, "10.0.0.2", "10.0.0.1", IPPROTO_UDP, "message", 8);

	bench_arrives(ipoib_own_link(bench_interface()), IPOIB_IPV4, packet, n);
	assert_int_equal(host_hears(got), 0);
	bench_arrives(&peer, IPOIB_IPV4, packet, n);
	assert_int_equal(host_hears(got), n);
	assert_memory_equal(got, packet, n);
}

/* an adapter takes few packets in a turn of the loop */
static void segments_of_two_turns_are_one_packet(void **state)
{
	const struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					      .gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
					      .gso_size = 500, .csum_start = 20, .csum_offset = 16};
	u8 payload[20 + 1000] = {[12] = 5 << 4, [13] = 0x10}, packet[40 + sizeof(payload)];
	size_t bytes = bench_packet(packet, "10.0.0.2", "10.0.0.1", IPPROTO_TCP, payload,
				    sizeof(payload));
	u8 part[IPOIB_MTU], got[IPOIB_MTU];
	struct net_cut cut;

	put_be16(packet + 6, 0x4000); /* not to be cut into fragments */
	assert_int_equal(net_cut_begin(&cut, &header, packet, bytes, IPOIB_MTU), 0);
	for (int i = 0; i < 2; i++) {
		size_t n = net_cut_next(&cut, part);

		bench_puts(&peer, IPOIB_IPV4, part, n);
		assert_true(rt_sim_step(net->rt)); /* it is received */
		assert_int_equal(host_hears(got), 0);
	}
	run_ms(1);
	assert_int_equal(host_hears(got), bytes);
	assert_int_equal(host_hears(got), 0);
	assert_int_equal(stats()->rx_packets, 2);
}

/* --- groups --- */

static void a_lost_membership_is_joined_anew(void **state)
{
	int attached = bench.attached;

	assert_true(ipoib_is_joined(bench_interface()));
	assert_int_equal(groups(), bench.attached);
	sa->asked_attr = 0;
	port_event(IB_EVENT_CLIENT_REREGISTER); /* the SA client says -ENETRESET */
	run_ms(1000);
	assert_int_equal(sa->asked_attr, attached);
	assert_int_equal(bench.attached, attached);
	assert_true(ipoib_is_joined(bench_interface()));
}

static void a_broadcast_group_that_is_refused_is_asked_for_again(void **state)
{
	sa->refuses = IB_SA_ATTR_MC_MEMBER_REC;
	assert_int_equal(bench_open(), 0);
	host_has("10.0.0.1", 16, RTM_NEWADDR);
	run_ms(3000);
	assert_false(ipoib_is_joined(bench_interface()));
	assert_true(sa->asked_attr >= 3 && sa->asked_attr <= 5); /* it backs off */
	host_sends("10.0.0.2");
	assert_int_equal(bench.num_sent, 0);
	sa->refuses = 0;
	run_ms(1000);
	assert_true(ipoib_is_joined(bench_interface()));
	assert_true(is_question(0)); /* that waited */
}

static void a_sender_joins_as_one_and_leaves(void **state)
{
	int attached = bench.attached, joined = groups();

	host_sends("239.1.2.3");
	assert_int_equal(bench.num_sent, 0);
	run_ms(100);
	assert_int_equal(join_state(), SEND_ONLY);
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(bench.sent[0].qpn, IB_MULTICAST_QPN);
	assert_int_equal(bench.attached, attached);
	host_sends("239.1.2.3");
	assert_int_equal(bench.num_sent, 2);
	run_ms(200000);
	assert_int_equal(sa->counted_method, IB_SA_METHOD_DELETE);
	assert_int_equal(groups(), joined);
}

static void a_group_that_the_sa_refuses_costs_the_packet(void **state)
{
	sa->refuses = IB_SA_ATTR_MC_MEMBER_REC;
	host_sends("239.1.2.3");
	run_ms(1000);
	assert_int_equal(bench.num_sent, 0);
	assert_int_equal(stats()->tx_dropped, 1);
	sa->refuses = 0;
}

static void the_hosts_reports_are_memberships(void **state)
{
	u8 report[8] = {0x16, [4] = 239, 1, 2, 3};
	int attached = bench.attached;

	host_sends("239.1.2.3"); /* a sender becomes a member */
	run_ms(100);
	host_sends_packet("10.0.0.1", "239.1.2.3", IPPROTO_IGMP, report, sizeof(report));
	run_ms(100);
	assert_int_equal(bench.attached, attached + 1);
	assert_int_equal(join_state(), SEND_ONLY); /* it leaves that at last */
	report[0] = 0x17;
	host_sends_packet("10.0.0.1", "224.0.0.2", IPPROTO_IGMP, report, sizeof(report));
	run_ms(100);
	assert_int_equal(bench.attached, attached);
}

/* Its next attempt is due, when the broadcast group's return begins one. */
static void a_membership_that_was_refused_survives_the_broadcast_groups_return(void **state)
{
	u8 report[8] = {0x16, [4] = 239, 1, 2, 3};
	int attached = bench.attached;

	sa->refuses = IB_SA_ATTR_MC_MEMBER_REC;
	host_sends_packet("10.0.0.1", "239.1.2.3", IPPROTO_IGMP, report, sizeof(report));
	run_ms(5000);
	assert_int_equal(bench.attached, attached);
	sa->refuses = 0;
	port_event(IB_EVENT_PORT_ERR);
	run_ms(200000);
	assert_int_equal(bench.attached, attached + 1);
}

/* --- the MTU --- */

static unsigned int room_of_receives(void)
{
	struct net_qp *qp = container_of(bench_qp(), struct net_qp, ib);

	return qp->receive[qp->head % NET_RECEIVES].length - (u32)sizeof(struct ib_grh) -
	       IPOIB_ENCAP_BYTES;
}

/* the first group's, that of another subnet manager, and one that is none */
static void the_mtu_is_the_broadcast_groups(void **state)
{
	static u8 payload[4092 - 20];

	assert_int_equal(host_mtu(), 2044);
	assert_int_equal(room_of_receives(), 2044);
	sa->group_mtu = IB_MTU_4096;
	port_event(IB_EVENT_CLIENT_REREGISTER);
	run_ms(1000);
	assert_true(ipoib_is_joined(bench_interface()));
	assert_int_equal(host_mtu(), 4092);
	assert_int_equal(ipoib_mtu(bench_interface()), 4092);
	assert_int_equal(room_of_receives(), 4092);
	bench.num_sent = 0;
	resolve();
	host_sends_packet("10.0.0.1", "10.0.0.2", IPPROTO_UDP, payload, sizeof(payload));
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(bench.sent[0].bytes, 4096);
	host_sends_packet("10.0.0.1", "255.255.255.255", IPPROTO_UDP, payload, sizeof(payload));
	assert_int_equal(bench.num_sent, 2);
	assert_int_equal(stats()->tx_errors, 0);
	sa->group_mtu = IB_MTU_1024;
	port_event(IB_EVENT_CLIENT_REREGISTER);
	run_ms(1000);
	assert_int_equal(host_mtu(), 1020);
	assert_int_equal(room_of_receives(), 4092);
	sa->group_mtu = (enum ib_mtu)7;
	port_event(IB_EVENT_CLIENT_REREGISTER);
	run_ms(1000);
	assert_false(ipoib_is_joined(bench_interface()));
	sa->group_mtu = IB_MTU_2048;
	run_ms(20000);
	assert_true(ipoib_is_joined(bench_interface()));
	assert_int_equal(host_mtu(), 2044);
}

static unsigned int trims;

int (malloc_trim)(size_t pad)
{
	trims++;
	return 0;
}

/* Those of a burst, and those for a neighbour; packets are received before and after. What is free then within
 * the heap is the system's. */
static void receives_are_given_up_when_it_is_quiet(void **state)
{
	unsigned int few = bench_posted(), many;
	int attached = bench.attached;

	for (int burst = 0; burst < 2; burst++) {
		for (unsigned int i = bench_posted(); i > 0; i--)
			bench_puts(&peer, IPOIB_IPV4, "runt", 4);
		run_ms(1);
	}
	many = bench_posted();
	assert_true(many >= 4 * few);
	assert_int_equal(stats()->rx_errors, 3 * few);
	trims = 0;
	run_ms(10000);
	assert_int_equal(bench_posted(), few);
	assert_int_equal(trims, 1);
	bench_arrives(&peer, IPOIB_IPV4, "runt", 4);
	assert_int_equal(stats()->rx_errors, 3 * few + 1);
	resolve();
	assert_true(bench_posted() > few);
	run_ms(10000);
	assert_true(bench_posted() > few);
	run_ms(120000);
	assert_int_equal(neighbours(), 0);
	assert_int_equal(bench_posted(), few);
	assert_int_equal(bench.attached, attached);
}

static void nothing_is_received_before_the_mtu_is_known(void **state)
{
	struct net_qp *qp;

	sa->refuses = IB_SA_ATTR_MC_MEMBER_REC;
	assert_int_equal(bench_open(), 0);
	run_ms(100);
	qp = container_of(bench_qp(), struct net_qp, ib);
	assert_int_equal(qp->head, qp->tail);
	sa->group_mtu = IB_MTU_4096;
	sa->refuses = 0;
	run_ms(1000);
	assert_true(ipoib_is_joined(bench_interface()));
	assert_int_equal(room_of_receives(), 4092);
	assert_int_equal(qp->head, 0); /* none was thrown away */
}

/* --- the queue pair --- */

static void a_full_send_queue_holds_up_the_host(void **state)
{
	resolve();
	bench.hold = true;
	for (int i = 0; i < 200; i++)
		host_sends("10.0.0.2");
	for (int i = 0; i < 10; i++)
		rt_sim_look(net->rt);
	assert_int_equal(bench.num_sent, 56 - IPOIB_SEGMENTS + 1); /* the next may be many packets */
	bench_release(bench_qp(), IB_WC_SUCCESS);
	for (int i = 0; i < 20; i++) {
		run_ms(1);
		rt_sim_look(net->rt);
	}
	assert_int_equal(bench.num_sent, 200); /* none was lost */
	assert_int_equal(stats()->tx_dropped, 0);
}

static void a_large_segment_leaves_in_parts(void **state)
{
	struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
					.gso_size = 1000, .csum_start = 20, .csum_offset = 16};
	static u8 payload[20 + 30000], packet[40 + sizeof(payload)];
	size_t bytes;

	resolve();
	payload[12] = 5 << 4; /* of the TCP header */
	bytes = bench_packet(packet, "10.0.0.1", "10.0.0.2", IPPROTO_TCP, payload,
			     sizeof(payload));
	host_sends_bytes(&header, packet, bytes);
	assert_int_equal(bench.num_sent, 30);
	for (int i = 0; i < 30; i++) {
		assert_int_equal(bench.sent[i].bytes, IPOIB_ENCAP_BYTES + 40 + 1000);
		assert_int_equal(bench.sent[i].qpn, peer.qpn);
	}
	run_ms(1);
	header.gso_size = 0;
	host_sends_bytes(&header, packet, bytes);
	assert_int_equal(stats()->tx_errors, 1);
	header = (struct virtio_net_hdr){0};
	host_sends_bytes(&header, packet, bytes); /* longer than the MTU */
	assert_int_equal(stats()->tx_errors, 2);
	assert_int_equal(bench.num_sent, 30);
}

/* as many parts as there is room for, and none is counted that was not there */
static void a_large_segment_may_fill_the_send_queue(void **state)
{
	struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
					.gso_size = 500, .csum_start = 20, .csum_offset = 16};
	static u8 payload[20 + IPOIB_SEGMENTS * 500], packet[40 + sizeof(payload)];

	resolve();
	payload[12] = 5 << 4;
	bench.hold = true;
	for (int i = 0; i < 56 - IPOIB_SEGMENTS; i++)
		host_sends("10.0.0.2");
	host_sends_bytes(&header, packet,
			 bench_packet(packet, "10.0.0.1", "10.0.0.2", IPPROTO_TCP, payload,
				      sizeof(payload)));
	assert_int_equal(bench.num_sent, 56);
	assert_int_equal(stats()->tx_dropped, 0);
	bench_release(bench_qp(), IB_WC_SUCCESS);
	run_ms(1);
}

/* Else one that sends much would send more than its receiver takes in a turn. */
static void a_turn_of_the_loop_sends_only_so_much(void **state)
{
	struct virtio_net_hdr header = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
					.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
					.gso_size = 500, .csum_start = 20, .csum_offset = 16};
	static u8 payload[20 + IPOIB_SEGMENTS * 500], packet[40 + sizeof(payload)];
	size_t bytes;

	resolve();
	payload[12] = 5 << 4;
	bytes = bench_packet(packet, "10.0.0.1", "10.0.0.2", IPPROTO_TCP, payload,
			     sizeof(payload));
	for (int i = 0; i < 4; i++)
		host_queues_bytes(&header, packet, bytes);
	for (int turn = 1; turn <= 2; turn++) {
		rt_sim_look(net->rt);
		assert_int_equal(bench.num_sent, 2 * turn * IPOIB_SEGMENTS);
		run_ms(1);
	}
}

static void a_failed_send_is_counted_and_the_queue_restarted(void **state)
{
	resolve();
	bench.status = IB_WC_LOC_QP_OP_ERR;
	host_sends("10.0.0.2");
	run_ms(1);
	assert_int_equal(stats()->tx_errors, 1);
	assert_int_equal(bench.restarts, 1);
	bench.status = IB_WC_SUCCESS;
}

/* --- begin and end --- */

static void the_carrier_follows_the_port(void **state)
{
	port_event(IB_EVENT_PORT_ACTIVE);
	assert_true(bench.carrier);
	port_event(IB_EVENT_PORT_ERR);
	assert_false(bench.carrier);
}

/* @num_groups: that it was in before */
static void assert_works(int num_groups)
{
	assert_true(bench.carrier && ipoib_is_joined(bench_interface()));
	assert_int_equal(groups(), num_groups);
	assert_int_equal(bench.attached, num_groups);
	bench.num_sent = 0;
	arp(IPOIB_REQUEST, &peer, "10.0.0.2", "10.0.0.1");
	assert_int_equal(bench.num_sent, 1);
	assert_int_equal(bench.sent[0].qpn, peer.qpn);
}

static int other_pkey(struct ib_device *of, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0x8002;
	return 0;
}

static void the_partition_goes_and_returns(void **state)
{
	int before = groups();

	port_event(IB_EVENT_PORT_ACTIVE);
	bench.num_sent = 0;
	resolve();
	bench.ops.query_pkey = other_pkey;
	port_event(IB_EVENT_PKEY_CHANGE);
	assert_false(bench.carrier || ipoib_is_joined(bench_interface()));
	assert_int_equal(bench.attached, 0);
	assert_int_equal(neighbours(), 0);
	bench.num_sent = 0;
	host_sends("10.0.0.2");
	port_event(IB_EVENT_CLIENT_REREGISTER);
	run_ms(20000);
	assert_int_equal(bench.num_sent, 0);
	assert_false(bench.carrier);
	bench.ops.query_pkey = net_query_pkey;
	port_event(IB_EVENT_PKEY_CHANGE);
	run_ms(100);
	assert_works(before);
}

static void a_failed_queue_pair_is_restarted(void **state)
{
	struct ib_event event = {.device = device, .event = IB_EVENT_QP_FATAL};
	int before = groups();

	port_event(IB_EVENT_PORT_ACTIVE);
	event.element.qp = bench_qp();
	bench_modify_qp(bench_qp(), &(struct ib_qp_attr){.qp_state = IB_QPS_ERR}, IB_QP_STATE);
	bench_qp()->event_handler(&event, bench_qp()->qp_context);
	run_ms(100);
	assert_works(before);
}

static int other_prefix(struct ib_device *of, u32 port, int index, union ib_gid *gid)
{
	int ret = net_query_gid(of, port, index, gid);

	gid->raw[7] = 1;
	return ret;
}

/* a subnet manager that starts late may choose the subnet prefix */
static void a_new_subnet_prefix_is_used(void **state)
{
	int before = groups();

	port_event(IB_EVENT_PORT_ACTIVE);
	bench.ops.query_gid = other_prefix;
	port_event(IB_EVENT_GID_CHANGE);
	run_ms(1000);
	assert_int_equal(ipoib_own_link(bench_interface())->gid.raw[7], 1);
	assert_int_equal(sa->counted_record[16 + 7], 1); /* of who joins */
	assert_works(before);
	bench.ops.query_gid = net_query_gid;
}

static void one_interface_for_a_partition(void **state)
{
	struct bench before = bench;

	assert_int_equal(bench_open(), -EEXIST);
	assert_int_equal(bench.tun, before.tun);
	ipoib_close(bench_interface());
	assert_null(bench_interface());
	close(bench.tun);
	close(bench.address);
	assert_int_equal(bench_open(), 0); /* anew */
}

static int no_gid(struct ib_device *of, u32 port, int index, union ib_gid *gid)
{
	return -EIO;
}

static void a_port_without_a_gid_has_no_interface(void **state)
{
	bench.ops.query_gid = no_gid;
	assert_int_equal(bench_open(), -EIO);
	assert_null(bench_interface());
	bench.ops.query_gid = net_query_gid;
}

/* what a host and its peers do, as far as @steps of the loop go */
static void live_for(int steps)
{
	static u8 request[IPOIB_ARP_BYTES];
	struct in6_addr sender = address("10.0.0.3"), target = address("10.0.0.1");

	ipoib_put_arp(request, IPOIB_REQUEST, &moved, &sender, NULL, &target);
	for (int i = 0; i < steps; i++) {
		if (i == 8)
			host_has("10.0.0.1", 16, RTM_NEWADDR);
		if (i == 20)
			host_sends("10.0.0.2");
		if (i == 24)
			host_sends("239.1.2.3");
		if (i == 40)
			bench_arrives(&moved, IPOIB_ARP, request, sizeof(request));
		if (i == 60)
			ib_dispatch_event(&(struct ib_event){.device = device,
							     .element.port_num = 1,
							     .event = IB_EVENT_CLIENT_REREGISTER});
		rt_sim_step(net->rt);
	}
}

static void it_may_end_at_any_time(void **state)
{
	for (int steps = 0; steps < 120; steps++) {
		assert_int_equal(bench_setup(state), 0);
		assert_int_equal(bench_open(), 0);
		live_for(steps);
		bench.hold = steps & 1;
		host_sends("239.1.2.3");
		ipoib_close(bench_interface());
		bench.num_sent = 0;
		run_ms(5000);
		assert_int_equal(bench.num_sent, 0);
		bench_teardown(state);
	}
}

static void it_ends_with_its_device(void **state)
{
	resolve();
	host_sends("10.0.0.3"); /* a question is open */
	ib_unregister_device(device);
	assert_int_equal(bench.attached, 0);
	assert_int_equal(ib_register_device(device, "fake0"), 0);
	assert_null(bench_interface());
}

static void memory_may_fail_at_any_time(void **state)
{
	for (u64 nth = 1; nth < 150; nth++) {
		int ret;

		assert_int_equal(bench_setup(state), 0);
		rt_fail_alloc(nth);
		ret = bench_open();
		if (!ret) {
			live_for(120);
			rt_fail_alloc(0);
		}
		rt_fail_alloc(0);
		assert_true(!ret || ret == -ENOMEM);
		bench_teardown(state);
	}
}

/* the last test: there is no way back */
static void a_device_may_be_left_to_its_namespace(void **state)
{
	ipoib_close(bench_interface());
	assert_false(bench.persists);
	close(bench.tun);
	close(bench.address);
	assert_int_equal(bench_open(), 0);
	net_tun_leave();
	ipoib_close(bench_interface());
	assert_true(bench.persists);
}

#define OPEN(name) cmocka_unit_test_setup_teardown(name, bench_setup_open, bench_teardown)
#define SHUT(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OPEN(a_packet_waits_for_address_and_path),
		OPEN(many_destinations_become_known_at_once),
		OPEN(a_lost_reply_is_asked_for_again),
		OPEN(nobody_answers_and_the_host_hears_it),
		OPEN(packets_that_wait_are_bounded),
		OPEN(a_packet_that_waits_takes_its_own_size),
		OPEN(hosts_that_do_not_answer_hold_up_no_other),
		OPEN(a_refused_path_is_a_host_that_is_not_reachable),
		OPEN(a_peer_that_moves_is_followed),
		OPEN(an_event_flushes_paths_and_loses_nothing),
		OPEN(one_in_use_is_asked_and_one_at_rest_forgotten),
		OPEN(who_takes_no_connection_is_sent_datagrams),
		OPEN(a_neighbour_is_told_of_the_mode_itself),
		OPEN(a_packet_too_big_for_datagrams_is_told_of),
		OPEN(questions_about_us_are_answered),
		OPEN(nobody_takes_our_address_or_answers_unasked),
		OPEN(what_is_no_frame_is_counted),
		OPEN(a_packet_is_delivered_but_not_our_own_echo),
		OPEN(segments_of_two_turns_are_one_packet),
		OPEN(a_lost_membership_is_joined_anew),
		SHUT(a_broadcast_group_that_is_refused_is_asked_for_again),
		OPEN(a_sender_joins_as_one_and_leaves),
		OPEN(a_group_that_the_sa_refuses_costs_the_packet),
		OPEN(the_hosts_reports_are_memberships),
		OPEN(a_membership_that_was_refused_survives_the_broadcast_groups_return),
		OPEN(the_mtu_is_the_broadcast_groups),
		OPEN(receives_are_given_up_when_it_is_quiet),
		SHUT(nothing_is_received_before_the_mtu_is_known),
		OPEN(a_full_send_queue_holds_up_the_host),
		OPEN(a_large_segment_leaves_in_parts),
		OPEN(a_large_segment_may_fill_the_send_queue),
		OPEN(a_turn_of_the_loop_sends_only_so_much),
		OPEN(a_failed_send_is_counted_and_the_queue_restarted),
		OPEN(the_partition_goes_and_returns),
		OPEN(a_failed_queue_pair_is_restarted),
		OPEN(a_new_subnet_prefix_is_used),
		OPEN(the_carrier_follows_the_port),
		OPEN(one_interface_for_a_partition),
		SHUT(a_port_without_a_gid_has_no_interface),
		cmocka_unit_test(it_may_end_at_any_time),
		OPEN(it_ends_with_its_device),
		cmocka_unit_test(memory_may_fail_at_any_time),
		OPEN(a_device_may_be_left_to_its_namespace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
