/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * IB_WR_LSO and IB_SEND_IP_CSUM by the midlayer's interface, between two QPs of a real fabric: what
 * arrives, who sees the packets on their way, and which requests are refused.
 */
#include "two_nodes.h"

#include <netinet/in.h>
#include <string.h>

#include "ulp/net/segment.h"
#include "wire/inet.h"

#define QKEY	0x1ee7
#define MSS	1000
#define DATA	4500
#define RECEIVES 16
#define RECEIVE_BYTES 2400
enum { FIN = 1, PSH = 8, ACK = 16, CWR = 128 };

/** struct side - a QP of IPoIB on a node */
struct side {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_ah *ah;
	struct ib_wc wc[RECEIVES];
	int num_wc;
	u8 received[RECEIVES][RECEIVE_BYTES];
};

static struct lso {
	struct world *world;
	struct side from, to;
	const struct fab_sink *sink; /* of n2's port, behind those that count */
	struct fab_sink before;
	int singles, trains, answer; /* of the port's deliver_train(); 0: its own */
	int tapped;
	psn_t psn[RECEIVES];
} l;

/* --- the port of n2 --- */

static int count_single(void *ctx, const struct fab_packet *pkt)
{
	l.singles++;
	return l.before.deliver(l.before.ctx, pkt);
}

static int count_train(void *ctx, const struct fab_packet *first, const struct fab_train *train)
{
	if (l.answer)
		return l.answer;
	l.trains++;
	return l.before.deliver_train(l.before.ctx, first, train);
}

static void port_changed(void *ctx, uint32_t changes)
{
	l.before.changed(l.before.ctx, changes);
}

static bool tap(void *ctx, int node, int port, bool sent, const void *bytes, size_t len)
{
	struct wire_packet pkt;

	if (sent)
		return true;
	assert_true(wire_packet_decode(bytes, len, &pkt) > 0);
	l.psn[l.tapped++] = pkt.bth.psn;
	return true;
}

static u64 received_packets(void)
{
	return fab_node(l.world->fab, topo_find(l.world->topo, "n2"))->port[1].count.raw[AG_RCV_PACKETS];
}

static u64 received_dwords(void)
{
	return fab_node(l.world->fab, topo_find(l.world->topo, "n2"))->port[1].count.raw[AG_RCV_DATA];
}

/* --- two queue pairs --- */

static struct ib_qp *make_qp(struct side *s, u32 create_flags)
{
	struct ib_qp_init_attr init = {.send_cq = s->cq, .recv_cq = s->cq,
				       .cap = {4, RECEIVES, 3, 1, 0},
				       .sq_sig_type = IB_SIGNAL_ALL_WR,
				       .qp_type = IB_QPT_UD,
				       .create_flags = create_flags};
	struct ib_qp *qp = ib_create_qp(s->pd, &init);
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = 1, .qkey = QKEY};

	assert_false(IS_ERR(qp));
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY), 0);
	attr.qp_state = IB_QPS_RTR;
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE), 0);
	attr.qp_state = IB_QPS_RTS;
	assert_int_equal(ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN), 0);
	return qp;
}

static void receive(struct side *s, u64 id)
{
	struct ib_sge sge = {(u64)(uintptr_t)s->received[id], RECEIVE_BYTES, s->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	assert_int_equal(ib_post_recv(s->qp, &wr, NULL), 0);
}

static void open_side(struct side *s, struct hca *hca, uint16_t dlid)
{
	struct rdma_ah_attr ah = {.dlid = dlid, .port_num = 1};

	s->pd = ib_alloc_pd(&hca->ib, 0);
	assert_false(IS_ERR(s->pd));
	s->cq = ib_create_cq(&hca->ib, NULL, NULL, NULL, &(struct ib_cq_init_attr){.cqe = 64});
	assert_false(IS_ERR(s->cq));
	s->qp = make_qp(s, IB_QP_CREATE_IPOIB_UD_LSO);
	s->ah = ib_create_ah(s->pd, &ah);
	assert_false(IS_ERR(s->ah));
	for (u64 i = 0; i < RECEIVES; i++)
		receive(s, i);
}

static void close_side(struct side *s)
{
	assert_int_equal(ib_destroy_ah(s->ah), 0);
	assert_int_equal(ib_destroy_qp(s->qp), 0);
	ib_destroy_cq(s->cq);
	ib_dealloc_pd(s->pd);
}

static int open_both(void **state)
{
	struct fab_sink sink = {.deliver = count_single, .changed = port_changed,
				.deliver_train = count_train};
	int n2;

	if (setup(state))
		return -1;
	memset(&l, 0, sizeof(l));
	l.world = *state;
	n2 = topo_find(l.world->topo, "n2");
	open_side(&l.from, l.world->hca[0], 2);
	open_side(&l.to, l.world->hca[1], 1);
	l.before = *fab_sink(l.world->fab, n2, 1);
	fab_attach(l.world->fab, n2, 1, &sink);
	return 0;
}

static int close_both(void **state)
{
	int n2 = topo_find(l.world->topo, "n2");

	fab_tap_set(l.world->fab, n2, 1, NULL);
	fab_attach(l.world->fab, n2, 1, &l.before);
	close_side(&l.from);
	close_side(&l.to);
	return teardown(state);
}

static int poll_side(struct side *s)
{
	int n = ib_poll_cq(s->cq, RECEIVES - s->num_wc, &s->wc[s->num_wc]);

	assert_true(n >= 0);
	s->num_wc += n;
	return n;
}

/* until @num completions are there, and no more come */
static void expect(struct side *s, int num)
{
	s->num_wc = 0;
	while (s->num_wc < num) {
		rt_posix_turn(l.world->rt);
		poll_side(s);
	}
	assert_int_equal(poll_side(s), 0);
	assert_int_equal(s->num_wc, num);
}

/* --- segments of TCP --- */

static u8 segment[4 + 40 + 32 + DATA]; /* encapsulation, IP, TCP with 12 bytes of options, payload */
static struct virtio_net_hdr host;

/* Return: the bytes in front of the payload */
static int fill(bool v4)
{
	const size_t ip = v4 ? 20 : 40, bytes = ip + 32 + DATA;
	u8 *packet = segment + 4, *tcp = packet + ip;

	memset(segment, 0, sizeof(segment));
	put_be16(segment, v4 ? 0x0800 : 0x86dd);
	packet[0] = v4 ? 0x45 : 0x60;
	packet[v4 ? 9 : 6] = IPPROTO_TCP;
	put_be16(packet + (v4 ? 2 : 4), (u16)(v4 ? bytes : bytes - 40));
	put_be16(packet + 4, v4 ? 0xfffe : (u16)(bytes - 40)); /* the identification wraps */
	memset(packet + (v4 ? 12 : 8), 0xa5, v4 ? 8 : 32);
	put_be32(tcp + 4, 0xfffffc00); /* so does the sequence number */
	tcp[12] = 32 / 4 << 4;
	tcp[13] = FIN | PSH | ACK | CWR;
	for (size_t i = 0; i < DATA; i++)
		tcp[32 + i] = (u8)(i * 7 + i / 251);
	host = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .gso_size = MSS,
		.gso_type = v4 ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_TCPV6,
		.csum_start = (u16)ip, .csum_offset = 16};
	return (int)(4 + ip + 32);
}

static struct ib_sge pieces[3];

/* the payload in three pieces, whose borders are none of packets */
static struct ib_ud_wr lso_request(int hlen)
{
	const u32 length[3] = {1, MSS + 700, DATA - MSS - 701};
	u8 *at = segment + hlen;

	for (int i = 0; i < 3; at += length[i++])
		pieces[i] = (struct ib_sge){(u64)(uintptr_t)at, length[i], l.from.pd->local_dma_lkey};
	return (struct ib_ud_wr){
		.wr = {.wr_id = 0x77, .sg_list = pieces, .num_sge = 3, .opcode = IB_WR_LSO,
		       .send_flags = IB_SEND_SIGNALED | IB_SEND_IP_CSUM},
		.ah = l.from.ah, .header = segment, .hlen = hlen, .mss = MSS,
		.remote_qpn = l.to.qp->qp_num, .remote_qkey = QKEY, .port_num = 1};
}

static int post(const struct ib_ud_wr *wr)
{
	return ib_post_send(l.from.qp, &wr->wr, NULL);
}

/* What IPoIB makes of the segment has arrived, in order. */
static void expect_packets(size_t hlen)
{
	struct net_cut cut;
	static u8 part[2048];
	int n = 0;

	expect(&l.to, DIV_ROUND_UP(DATA, MSS));
	assert_int_equal(net_cut_begin(&cut, &host, segment + 4, hlen - 4 + DATA, 2044), 0);
	for (size_t bytes; (bytes = net_cut_next(&cut, part)); n++) {
		const struct ib_wc *wc = &l.to.wc[n];
		const u8 *at = l.to.received[wc->wr_id] + sizeof(struct ib_grh);

		assert_int_equal(wc->status, IB_WC_SUCCESS);
		assert_int_equal(wc->opcode, IB_WC_RECV);
		assert_int_equal(wc->byte_len, sizeof(struct ib_grh) + 4 + bytes);
		assert_int_equal(wc->src_qp, l.from.qp->qp_num);
		assert_int_equal(wc->wc_flags, IB_WC_IP_CSUM_OK);
		assert_memory_equal(at, segment, 4);
		assert_memory_equal(at + 4, part, bytes);
		receive(&l.to, wc->wr_id);
	}
	assert_int_equal(n, l.to.num_wc);
}

static void expect_sent(enum ib_wc_opcode opcode)
{
	expect(&l.from, 1);
	assert_int_equal(l.from.wc[0].status, IB_WC_SUCCESS);
	assert_int_equal(l.from.wc[0].opcode, opcode);
	assert_int_equal(l.from.wc[0].wr_id, 0x77);
}

static void send_segment(bool v4)
{
	struct ib_ud_wr wr = lso_request(fill(v4));

	assert_int_equal(post(&wr), 0);
	expect_packets((size_t)wr.hlen);
	expect_sent(IB_WC_LSO);
}

static void a_segment_arrives_in_packets(void **state)
{
	send_segment(true);
	send_segment(false);
}

/* The first request finds no route in the cache, and leaves packet by packet. */
/* Memory for headers is allocated with the first request that needs it. */
static void without_memory_for_headers_a_request_is_refused(void **state)
{
	const struct ib_ud_wr wr = lso_request(fill(true));

	rt_fail_alloc(1);
	assert_int_equal(post(&wr), -ENOMEM);
	send_segment(true);
}

static void packets_of_a_request_pass_the_fabric_as_one(void **state)
{
	u64 packets, dwords;

	send_segment(true);
	assert_int_equal(l.singles, 5);
	assert_int_equal(l.trains, 0);
	packets = received_packets();
	dwords = received_dwords();
	send_segment(true);
	assert_int_equal(l.singles, 5);
	assert_int_equal(l.trains, 1);
	assert_int_equal(packets, 5);
	assert_int_equal(received_packets() - packets, packets);
	assert_int_equal(received_dwords() - dwords, dwords);
}

static void look(void *ctx, const struct fab_sight *sight)
{
	struct wire_packet pkt;
	const u8 *ip;
	u64 pseudo;

	if (sight->sent)
		return;
	assert_true(wire_packet_decode(sight->bytes, sight->len, &pkt) > 0);
	ip = pkt.payload + 4;
	assert_int_equal(get_be16(ip + 2), pkt.payload_bytes - 4);
	pseudo = wire_inet_pseudo_sum(ip, IPPROTO_TCP, pkt.payload_bytes - 24);
	assert_int_equal(wire_inet_fold(wire_inet_sum(ip + 20, pkt.payload_bytes - 24, pseudo)), 0);
	l.tapped++;
}

static void a_capture_sees_each_packet_with_its_checksum(void **state)
{
	struct fab_watch watch = {.only_node = topo_find(l.world->topo, "n2"), .packet = look};

	fab_watch_add(l.world->fab, &watch);
	send_segment(true);
	send_segment(true);
	fab_watch_del(l.world->fab, &watch);
	assert_int_equal(l.tapped, 10);
	assert_int_equal(l.trains, 0);
	send_segment(true);
	send_segment(true);
	assert_int_equal(l.tapped, 10);
	assert_int_equal(l.trains, 1);
}

/* as fault rules do */
static void a_tap_sees_each_packet(void **state)
{
	const struct fab_tap watch = {.packet = tap};

	send_segment(true);
	fab_tap_set(l.world->fab, topo_find(l.world->topo, "n2"), 1, &watch);
	send_segment(true);
	assert_int_equal(l.trains, 0);
	assert_int_equal(l.tapped, 5);
	for (int i = 1; i < 5; i++)
		assert_int_equal(psn_diff(l.psn[i], l.psn[i - 1]), 1);
}

static void without_room_for_all_each_packet_is_offered(void **state)
{
	send_segment(true);
	l.answer = -EAGAIN;
	send_segment(true);
	assert_int_equal(l.singles, 10);
	assert_int_equal(l.trains, 0);
}

/* PSNs go on behind a request as behind its packets. */
static void psns_follow_the_packets(void **state)
{
	const struct fab_tap watch = {.packet = tap};

	fab_tap_set(l.world->fab, topo_find(l.world->topo, "n2"), 1, &watch);
	send_segment(true);
	send_segment(true);
	assert_int_equal(psn_diff(l.psn[9], l.psn[0]), 9);
}

/* --- refusals --- */

static void bad_requests_are_refused(void **state)
{
	const int hlen = fill(true);
	const struct ib_ud_wr good = lso_request(hlen);
	struct ib_ud_wr wr = good;

	wr.mss = 0;
	assert_int_equal(post(&wr), -EINVAL);
	wr.mss = 2048 - hlen + 4096; /* the MTU here is 4096 at most */
	assert_int_equal(post(&wr), -EINVAL);
	wr.mss = -1;
	assert_int_equal(post(&wr), -EINVAL);
	wr = good;
	for (wr.hlen = -1; wr.hlen < hlen; wr.hlen++)
		assert_int_equal(post(&wr), -EINVAL);
	wr.hlen = hlen + 1;
	assert_int_equal(post(&wr), -EINVAL);
	wr = good;
	wr.header = NULL;
	assert_int_equal(post(&wr), -EINVAL);
	wr = good;
	wr.wr.num_sge = 0; /* no payload */
	assert_int_equal(post(&wr), -EINVAL);
	segment[4 + 9] = IPPROTO_UDP;
	assert_int_equal(post(&good), -EINVAL);
	fill(true);
	put_be16(segment, 0x86dd); /* says IPv6, is IPv4 */
	assert_int_equal(post(&good), -EINVAL);
	fill(true);
	assert_int_equal(post(&good), 0);
	expect_packets((size_t)hlen);
}

static void an_ordinary_queue_pair_takes_no_segment(void **state)
{
	struct ib_qp *qp = make_qp(&l.from, 0);
	struct ib_ud_wr wr = lso_request(fill(true));

	assert_int_equal(ib_post_send(qp, &wr.wr, NULL), -EINVAL);
	assert_int_equal(ib_destroy_qp(qp), 0);
}

static int create(u32 flags, enum ib_qp_type type)
{
	struct ib_qp_init_attr init = {.send_cq = l.from.cq, .recv_cq = l.from.cq,
				       .cap = {4, 4, 1, 1, 0}, .qp_type = type,
				       .create_flags = flags};
	struct ib_qp *qp = ib_create_qp(l.from.pd, &init);

	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	return ib_destroy_qp(qp);
}

static void a_device_without_the_capability_makes_no_such_queue_pair(void **state)
{
	u64 *flags = &l.world->hca[0]->ib.attrs.device_cap_flags;

	assert_int_equal(create(IB_QP_CREATE_IPOIB_UD_LSO, IB_QPT_UD), 0);
	assert_int_equal(create(IB_QP_CREATE_IPOIB_UD_LSO, IB_QPT_RC), -EINVAL);
	assert_int_equal(create(1u << 9, IB_QPT_UD), -EINVAL);
	assert_true(*flags & IB_DEVICE_UD_TSO && *flags & IB_DEVICE_UD_IP_CSUM);
	*flags &= ~(u64)IB_DEVICE_UD_TSO;
	assert_int_equal(create(IB_QP_CREATE_IPOIB_UD_LSO, IB_QPT_UD), -EOPNOTSUPP);
	assert_int_equal(create(0, IB_QPT_UD), 0);
}

/* --- checksums of single packets --- */

/* a datagram of @protocol in @segment, without checksums. Return: its bytes */
static u32 fill_datagram(bool v4, u8 protocol)
{
	const size_t ip = v4 ? 20 : 40, bytes = 4 + ip + 20 + 33;
	u8 *packet = segment + 4;

	fill(v4);
	packet[v4 ? 9 : 6] = protocol;
	put_be16(packet + (v4 ? 2 : 4), (u16)(bytes - 4 - (v4 ? 0 : 40)));
	if (protocol == IPPROTO_UDP)
		put_be16(packet + ip + 4, (u16)(bytes - 4 - ip));
	return (u32)bytes;
}

static const u8 *send_datagram(u32 bytes, int flags)
{
	struct ib_ud_wr wr = lso_request(0);

	pieces[0] = (struct ib_sge){(u64)(uintptr_t)segment, bytes, l.from.pd->local_dma_lkey};
	wr.wr.num_sge = 1;
	wr.wr.opcode = IB_WR_SEND;
	wr.wr.send_flags = IB_SEND_SIGNALED | flags;
	assert_int_equal(post(&wr), 0);
	expect(&l.to, 1);
	expect_sent(IB_WC_SEND);
	assert_int_equal(l.to.wc[0].byte_len, sizeof(struct ib_grh) + bytes);
	receive(&l.to, l.to.wc[0].wr_id);
	return l.to.received[l.to.wc[0].wr_id] + sizeof(struct ib_grh);
}

static void checksums_of_a_datagram_are_computed(void **state)
{
	static const u8 protocols[] = {IPPROTO_TCP, IPPROTO_UDP};

	for (int i = 0; i < 4; i++) {
		bool v4 = i & 1;
		u8 protocol = protocols[i / 2];
		size_t ip = v4 ? 20 : 40;
		u32 bytes = fill_datagram(v4, protocol);
		const u8 *packet = send_datagram(bytes, IB_SEND_IP_CSUM) + 4;
		u64 pseudo = wire_inet_sum(packet + (v4 ? 12 : 8), v4 ? 8 : 32, protocol + bytes - 4 - ip);

		assert_int_equal(l.to.wc[0].wc_flags, IB_WC_IP_CSUM_OK);
		assert_int_equal(wire_inet_fold(wire_inet_sum(packet + ip, bytes - 4 - ip, pseudo)), 0);
		if (v4)
			assert_int_equal(wire_inet_fold(wire_inet_sum(packet, ip, 0)), 0);
		assert_memory_equal(packet + ip + 20, segment + 4 + ip + 20, 33);
	}
}

static void other_datagrams_stay_as_they_are(void **state)
{
	u32 bytes = fill_datagram(true, IPPROTO_TCP);

	assert_memory_equal(send_datagram(bytes, 0), segment, bytes); /* nobody asked */
	assert_int_equal(l.to.wc[0].wc_flags, 0);
	put_be16(segment + 4 + 6, 0x2000); /* a fragment */
	assert_memory_equal(send_datagram(bytes, IB_SEND_IP_CSUM), segment, bytes);
	assert_int_equal(l.to.wc[0].wc_flags, 0);
	bytes = fill_datagram(true, IPPROTO_ICMP);
	assert_memory_equal(send_datagram(bytes, IB_SEND_IP_CSUM), segment, bytes);
	bytes = fill_datagram(true, IPPROTO_TCP);
	put_be16(segment + 4 + 2, 4000); /* longer than the datagram */
	assert_memory_equal(send_datagram(bytes, IB_SEND_IP_CSUM), segment, bytes);
	assert_memory_equal(send_datagram(3, IB_SEND_IP_CSUM), segment, 3);
	assert_int_equal(l.to.wc[0].wc_flags, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_segment_arrives_in_packets),
		CASE(without_memory_for_headers_a_request_is_refused),
		CASE(packets_of_a_request_pass_the_fabric_as_one),
		CASE(a_capture_sees_each_packet_with_its_checksum),
		CASE(a_tap_sees_each_packet),
		CASE(without_room_for_all_each_packet_is_offered),
		CASE(psns_follow_the_packets),
		CASE(bad_requests_are_refused),
		CASE(an_ordinary_queue_pair_takes_no_segment),
		CASE(a_device_without_the_capability_makes_no_such_queue_pair),
		CASE(checksums_of_a_datagram_are_computed),
		CASE(other_datagrams_stay_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
