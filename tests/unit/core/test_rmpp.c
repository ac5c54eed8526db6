/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RMPP end to end between two ports: lengths, windows, loss of each single
 * packet, aborts, silence. Vendor class 0x30: 216 bytes of data a segment.
 */
#include "../test.h"

#include "mad_client.h"

#define CLASS 0x30
#define SEG IB_MGMT_VENDOR_DATA
#define GET (1ull << IB_MGMT_METHOD_GET)
#define SEND (1ull << IB_MGMT_METHOD_SEND)

static struct net *net;
static struct client *sender, *receiver;

static int setup(void **state)
{
	net = net_create(2);
	sender = client_open(net->node[0], CLASS, 0, 1);
	/* an ACK of a Send is a SendResp: it comes back by its TID */
	receiver = client_open(net->node[1], CLASS, GET | SEND, 1);
	return 0;
}

static int teardown(void **state)
{
	client_close(sender);
	client_close(receiver);
	assert_int_equal(net_destroy(net), 0);
	return 0;
}

static u8 pattern(int i)
{
	return (u8)(i * 7 + i / 256);
}

static void fill(struct ib_mad_send_buf *buf, u8 method, u64 tid)
{
	struct ib_vendor_mad *mad = buf->mad;

	mad->mad_hdr.base_version = 1;
	mad->mad_hdr.mgmt_class = CLASS;
	mad->mad_hdr.class_version = 1;
	mad->mad_hdr.method = method;
	mad->mad_hdr.tid = cpu_to_be64(tid);
	memcpy(mad->oui, (u8[]){1, 2, 3}, 3);
	for (int i = 0; i < buf->data_len; i++)
		((u8 *)ib_get_rmpp_segment(buf, i / SEG + 1))[i % SEG] = pattern(i);
}

static struct ib_mad_send_buf *message(struct client *c, u16 dlid, u8 method, int bytes)
{
	struct ib_mad_send_buf *buf = ib_create_send_mad(c->agent, 1, 0, 1, IB_MGMT_VENDOR_HDR,
							 bytes, GFP_KERNEL, 1);

	assert_false(IS_ERR(buf));
	fill(buf, method, (u64)c->agent->hi_tid << 32 | 5);
	buf->ah = client_ah(c, dlid);
	return buf;
}

static void check_received(struct client *c, int bytes)
{
	assert_int_equal(c->mad_len, IB_MGMT_VENDOR_HDR + bytes);
	for (int i = 0; i < bytes; i++)
		if (c->bytes[IB_MGMT_VENDOR_HDR + i] != pattern(i))
			fail_msg("byte %d of %d", i, bytes);
}

static void transfer(int bytes)
{
	int received = receiver->received, sent = sender->sent;

	assert_int_equal(ib_post_send_mad(message(sender, 11, IB_MGMT_METHOD_SEND, bytes), NULL),
			 0);
	rt_sim_run_for(net->rt, 30 * NSEC_PER_SEC); /* and what is remembered is forgotten */
	assert_int_equal(sender->sent, sent + 1);
	assert_int_equal(sender->status, IB_WC_SUCCESS);
	assert_int_equal(receiver->received, received + 1);
	check_received(receiver, bytes);
}

static void test_lengths(void **state)
{
	static const int lengths[] = {0, 1, SEG - 1, SEG, SEG + 1, 2 * SEG, 10 * SEG + 17,
				      32 * SEG, 33 * SEG, 34 * SEG + 1, 1000 * SEG - 3};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++)
		transfer(lengths[i]);
}

/* what an SA of 600 nodes says of its paths has more than 100,000 */
static void test_twenty_thousand_segments(void **state)
{
	transfer(20000 * SEG);
}

/* 10 segments and their ACKs: whichever packet is lost, the message comes */
static void test_any_packet_may_be_lost(void **state)
{
	for (int nth = 1; nth <= 13; nth++) {
		net->lose_nth = nth;
		transfer(10 * SEG - 5);
	}
}

static bool lose_every_7th(struct net *n, const struct net_packet *packet)
{
	return n->packets % 7 == 0;
}

static void test_much_loss(void **state)
{
	net->lose = lose_every_7th;
	ib_post_send_mad(message(sender, 11, IB_MGMT_METHOD_SEND, 200 * SEG), NULL);
	rt_sim_run_for(net->rt, 600 * NSEC_PER_SEC);
	assert_int_equal(sender->status, IB_WC_SUCCESS);
	assert_int_equal(receiver->received, 1);
	check_received(receiver, 200 * SEG);
}

static u8 last_type, last_status;
static int data_packets;

static bool watch(struct net *n, const struct net_packet *packet)
{
	last_type = packet->rmpp.rmpp_hdr.rmpp_type;
	last_status = packet->rmpp.rmpp_hdr.rmpp_status;
	data_packets += last_type == IB_MGMT_RMPP_TYPE_DATA;
	return false;
}

static bool lose_after_3(struct net *n, const struct net_packet *packet)
{
	watch(n, packet);
	return n->packets > 3;
}

static void test_a_dead_receiver_ends_the_send(void **state)
{
	net->lose = lose_after_3;
	ib_post_send_mad(message(sender, 11, IB_MGMT_METHOD_SEND, 10 * SEG), NULL);
	rt_sim_run_for(net->rt, 100 * NSEC_PER_SEC);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->status, IB_WC_RESP_TIMEOUT_ERR);
	assert_int_equal(last_type, IB_MGMT_RMPP_TYPE_ABORT);
	assert_int_equal(receiver->received, 0);
}

static bool lose_from_sender_after_3(struct net *n, const struct net_packet *packet)
{
	watch(n, packet);
	return packet->from == n->node[0] && n->packets > 3;
}

static void test_a_silent_sender_is_aborted(void **state)
{
	net->lose = lose_from_sender_after_3;
	ib_post_send_mad(message(sender, 11, IB_MGMT_METHOD_SEND, 10 * SEG), NULL);
	rt_sim_run_for(net->rt, 5 * NSEC_PER_SEC);
	assert_int_equal(sender->sent, 0);
	rt_sim_run_for(net->rt, 60 * NSEC_PER_SEC);
	assert_int_equal(last_type, IB_MGMT_RMPP_TYPE_ABORT);
	assert_int_equal(last_status, IB_MGMT_RMPP_STATUS_T2L);
}

static void test_the_window_is_kept(void **state)
{
	/* the receiver grants 1, then 32: without further ACKs, 33 go out */
	data_packets = 0;
	net->lose = watch;
	ib_post_send_mad(message(sender, 11, IB_MGMT_METHOD_SEND, 300 * SEG), NULL);
	rt_sim_run_for(net->rt, 2 * (NET_LATENCY_NS + NET_PACKET_NS) - 1); /* the first ACK is under way */
	assert_int_equal(data_packets, 1);
	rt_sim_run_for(net->rt, 2);
	assert_int_equal(data_packets, 33);
	rt_sim_run_for(net->rt, NSEC_PER_SEC);
	assert_int_equal(sender->status, IB_WC_SUCCESS);
	assert_int_equal(data_packets, 300);
	assert_int_equal(net->node[1]->no_receive, 0);
}

/* OpenSM leaves the header's version and type at 0 */
static void test_the_rmpp_header_is_ours_to_fill(void **state)
{
	struct ib_mad_send_buf *buf = message(sender, 11, IB_MGMT_METHOD_SEND, 3 * SEG);

	((struct ib_rmpp_mad *)buf->mad)->rmpp_hdr = (struct ib_rmpp_hdr){
		.rmpp_rtime_flags = IB_MGMT_RMPP_FLAG_ACTIVE};
	ib_post_send_mad(buf, NULL);
	rt_sim_run_for(net->rt, NSEC_PER_SEC);
	assert_int_equal(sender->status, IB_WC_SUCCESS);
	check_received(receiver, 3 * SEG);
}

/* --- request and response --- */

static int response_bytes;

static int answer_long(struct client *c, struct ib_mad_recv_wc *recv_wc)
{
	struct ib_mad_send_buf *buf = ib_create_send_mad(
		c->agent, recv_wc->wc->src_qp, 0, 1, IB_MGMT_VENDOR_HDR, response_bytes,
		GFP_KERNEL, 1);

	fill(buf, IB_MGMT_METHOD_GET_RESP, be64_to_cpu(recv_wc->recv_buf.mad->mad_hdr.tid));
	buf->ah = ib_create_ah_from_wc(c->pd, recv_wc->wc, recv_wc->recv_buf.grh, 1);
	return ib_post_send_mad(buf, NULL);
}

static struct ib_mad_send_buf *request(void)
{
	struct ib_mad_send_buf *buf = client_mad(sender, 11, CLASS, IB_MGMT_METHOD_GET, 5);

	memcpy(((struct ib_vendor_mad *)buf->mad)->oui, (u8[]){1, 2, 3}, 3);
	buf->timeout_ms = 500;
	return buf;
}

static void test_a_long_response_matches_its_request(void **state)
{
	receiver->answer = answer_long;
	response_bytes = 100 * SEG + 1;
	ib_post_send_mad(request(), NULL);
	rt_sim_run_for(net->rt, NSEC_PER_SEC);
	assert_int_equal(sender->received, 1);
	assert_true(sender->matched);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->status, IB_WC_SUCCESS);
	check_received(sender, response_bytes);
	assert_int_equal(receiver->sent, 1); /* its response was acknowledged */
	assert_int_equal(receiver->status, IB_WC_SUCCESS);
}

static int acks;

static bool delay_with_loss(struct net *n, const struct net_packet *packet)
{
	acks += packet->rmpp.rmpp_hdr.rmpp_type == IB_MGMT_RMPP_TYPE_ACK;
	return packet->rmpp.rmpp_hdr.rmpp_type == IB_MGMT_RMPP_TYPE_ACK && acks % 2 == 1;
}

/* lost ACKs cost two seconds each: more than the request's time-out, but the
 * response is coming, so the request waits */
static void test_a_slow_response_is_waited_for(void **state)
{
	struct ib_mad_send_buf *buf = request();

	receiver->answer = answer_long;
	response_bytes = 200 * SEG;
	acks = 0;
	net->lose = delay_with_loss;
	buf->timeout_ms = 2500;
	ib_post_send_mad(buf, NULL);
	rt_sim_run_for(net->rt, 30 * NSEC_PER_SEC);
	assert_int_equal(sender->received, 1);
	assert_int_equal(sender->status, IB_WC_SUCCESS);
}

static void test_a_long_request_and_a_long_response(void **state)
{
	struct ib_mad_send_buf *buf = message(sender, 11, IB_MGMT_METHOD_GET, 30 * SEG);

	buf->timeout_ms = 500;
	receiver->answer = answer_long;
	response_bytes = 40 * SEG;
	ib_post_send_mad(buf, NULL);
	rt_sim_run_for(net->rt, NSEC_PER_SEC);
	assert_int_equal(receiver->received, 1);
	check_received(receiver, 30 * SEG);
	check_received(sender, 40 * SEG);
	assert_int_equal(sender->status, IB_WC_SUCCESS);
}

static void test_a_lost_response_repeats_the_whole_request(void **state)
{
	struct ib_mad_send_buf *buf = message(sender, 11, IB_MGMT_METHOD_GET, 3 * SEG);

	buf->timeout_ms = 500;
	buf->retries = 1;
	ib_post_send_mad(buf, NULL); /* nobody answers */
	data_packets = 0;
	net->lose = watch;
	rt_sim_run_for(net->rt, 5 * NSEC_PER_SEC);
	assert_int_equal(receiver->received, 1); /* the repetition is a duplicate */
	assert_true(data_packets >= 3);
	assert_int_equal(sender->status, IB_WC_RESP_TIMEOUT_ERR);
}

/* --- double-sided transfers (13.6.6.3): SA GetMulti --- */

#define SA IB_MGMT_CLASS_SUBN_ADM

static struct ib_mad_send_buf *sa_message(struct client *c, u8 method, u64 tid, int bytes)
{
	struct ib_mad_send_buf *buf = ib_create_send_mad(c->agent, 1, 0, 1, IB_MGMT_SA_HDR, bytes,
							 GFP_KERNEL, 1);
	struct ib_mad_hdr *hdr = buf->mad;

	hdr->base_version = hdr->class_version = 1;
	hdr->mgmt_class = SA;
	hdr->method = method;
	hdr->tid = cpu_to_be64(tid);
	return buf;
}

static int answer_multi(struct client *c, struct ib_mad_recv_wc *recv_wc)
{
	struct ib_mad_send_buf *buf =
		sa_message(c, IB_SA_METHOD_GET_MULTI_RESP,
			   be64_to_cpu(recv_wc->recv_buf.mad->mad_hdr.tid), 30 * IB_MGMT_SA_DATA);

	buf->ah = ib_create_ah_from_wc(c->pd, recv_wc->wc, recv_wc->recv_buf.grh, 1);
	return ib_post_send_mad(buf, NULL);
}

static int turns, lost;

/* the ACK of the response's first segment gets lost: only the window that
 * came with the turn lets the server go on before its ACK time-out */
static bool lose_first_ack(struct net *n, const struct net_packet *packet)
{
	const struct ib_rmpp_hdr *hdr = &packet->rmpp.rmpp_hdr;

	if (packet->from != n->node[0] || hdr->rmpp_type != IB_MGMT_RMPP_TYPE_ACK)
		return false;
	turns += !hdr->seg_num;
	return hdr->seg_num && lost++ == 0;
}

static void test_the_direction_turns(void **state)
{
	struct client *c = client_open(net->node[0], SA, 0, 1);
	struct client *s = client_open(net->node[1], SA, 1ull << IB_SA_METHOD_GET_MULTI, 1);
	struct ib_mad_send_buf *buf = sa_message(c, IB_SA_METHOD_GET_MULTI,
						 (u64)c->agent->hi_tid << 32 | 1,
						 3 * IB_MGMT_SA_DATA);

	turns = lost = 0;
	net->lose = lose_first_ack;
	s->answer = answer_multi;
	buf->ah = client_ah(c, 11);
	buf->timeout_ms = 1000;
	ib_post_send_mad(buf, NULL);
	rt_sim_run_for(net->rt, NSEC_PER_SEC / 2);
	assert_int_equal(c->status, IB_WC_SUCCESS);
	assert_int_equal(c->mad_len, IB_MGMT_SA_HDR + 30 * IB_MGMT_SA_DATA);
	assert_int_equal(turns, 1);
	client_close(c);
	client_close(s);
}

/* --- wrong packets --- */

#define FOREIGN_TID ((u64)0xf0 << 32 | 77)

/* one hand-made packet of a transfer, as an agent without RMPP may send it */
static struct ib_mad_send_buf *raw_mad(struct client *c, u8 version, u8 type, u8 flags, u8 status,
				       u32 seg, u32 len)
{
	struct ib_mad_send_buf *buf = client_mad(c, 11, CLASS, IB_MGMT_METHOD_SEND, 0);
	struct ib_rmpp_mad *mad = buf->mad;

	mad->mad_hdr.tid = cpu_to_be64(FOREIGN_TID);
	memcpy(((struct ib_vendor_mad *)buf->mad)->oui, (u8[]){1, 2, 3}, 3);
	mad->rmpp_hdr = (struct ib_rmpp_hdr){
		.rmpp_version = version, .rmpp_type = type,
		.rmpp_rtime_flags = (u8)(flags | IB_MGMT_RMPP_FLAG_ACTIVE),
		.rmpp_status = status, .seg_num = cpu_to_be32(seg),
		.paylen_newwin = cpu_to_be32(len)};
	buf->timeout_ms = 0;
	return buf;
}

static void raw_from(struct net_node *node, u8 version, u8 type, u8 flags, u8 status, u32 seg,
		     u32 len)
{
	struct client *c = client_open(node, CLASS, 0, 0);

	last_type = 0;
	net->lose = watch;
	ib_post_send_mad(raw_mad(c, version, type, flags, status, seg, len), NULL);
	rt_sim_run_for(net->rt, NSEC_PER_MSEC);
	client_close(c);
}

static void raw(u8 version, u8 type, u8 flags, u8 status, u32 seg, u32 len)
{
	raw_from(net->node[0], version, type, flags, status, seg, len);
}

static int stops;

static bool count_stops(struct net *n, const struct net_packet *packet)
{
	const struct ib_rmpp_hdr *hdr = &packet->rmpp.rmpp_hdr;

	stops += hdr->rmpp_type == IB_MGMT_RMPP_TYPE_STOP &&
		 hdr->rmpp_status == IB_MGMT_RMPP_STATUS_RESX;
	return false;
}

/* First segments by the ten thousand, each of a transfer of its own: only so many are
 * kept, the eldest is stopped, and a message of many segments comes through
 * nevertheless. */
static void test_first_segments_are_bounded(void **state)
{
	enum { FIRST = 2, MOST = 16384 };
	int64_t before = rt_alloc_balance();
	struct client *c = client_open(net->node[0], CLASS, 0, 0);

	stops = 0;
	net->lose = count_stops;
	for (u32 i = 0; i < MOST + 100; i++) {
		struct ib_mad_send_buf *buf = raw_mad(c, 1, IB_MGMT_RMPP_TYPE_DATA, FIRST, 0, 1, 0);

		((struct ib_mad_hdr *)buf->mad)->tid = cpu_to_be64(FOREIGN_TID + i);
		ib_post_send_mad(buf, NULL);
		rt_sim_run_for(net->rt, NSEC_PER_MSEC);
		assert_int_equal(stops, i < MOST ? 0 : i - MOST + 1);
	}
	/* beside them the port's account, the receives of a window, and what is under way */
	assert_in_range(rt_alloc_balance() - before, 2 * MOST, 2 * MOST + 229);
	transfer(1000 * SEG);
	client_close(c);
}

/* A port begins so many transfers between two segments of another's that one has to end: it
 * is one of its own. */
static void test_a_port_with_its_share_loses_nothing_to_others(void **state)
{
	enum { FIRST = 2, LAST = 4, MOST = 16384 };
	struct client *greedy = client_open(net->node[0], CLASS, 0, 0);

	raw_from(net->node[1], 1, IB_MGMT_RMPP_TYPE_DATA, FIRST, 0, 1, 0);
	for (u32 i = 0; i < MOST + 10; i++) {
		struct ib_mad_send_buf *buf =
			raw_mad(greedy, 1, IB_MGMT_RMPP_TYPE_DATA, FIRST, 0, 1, 0);

		((struct ib_mad_hdr *)buf->mad)->tid = cpu_to_be64(FOREIGN_TID + 1 + i);
		ib_post_send_mad(buf, NULL);
		rt_sim_run_for(net->rt, NSEC_PER_MSEC);
	}
	assert_int_equal(receiver->received, 0);
	raw_from(net->node[1], 1, IB_MGMT_RMPP_TYPE_DATA, LAST, 0, 2, 100);
	assert_int_equal(receiver->received, 1);
	client_close(greedy);
}

struct wrong {
	u8 version, type, flags, status;
	u32 seg, len;
	u8 abort_status;
};

static void test_wrong_packets_are_aborted(void **state)
{
	enum { FIRST = 2, LAST = 4, DATA = 1, ACK = 2 };
	static const struct wrong wrong[] = {
		{2, DATA, FIRST, 0, 1, 0, IB_MGMT_RMPP_STATUS_UNV},
		{1, 9, FIRST, 0, 1, 0, IB_MGMT_RMPP_STATUS_BADT},
		{1, 0, FIRST, 0, 1, 0, IB_MGMT_RMPP_STATUS_BADT},
		{1, DATA, 0, 0, 1, 0, IB_MGMT_RMPP_STATUS_BAD_SEG},
		{1, DATA, FIRST, 0, 2, 0, IB_MGMT_RMPP_STATUS_BAD_SEG},
		{1, DATA, 0, 0, 0, 0, IB_MGMT_RMPP_STATUS_BAD_SEG},
		{1, DATA, FIRST, 5, 1, 0, IB_MGMT_RMPP_STATUS_BAD_STATUS},
		{1, DATA, FIRST | LAST, 0, 1, 221, IB_MGMT_RMPP_STATUS_BAD_LEN},
		{1, DATA, FIRST | LAST, 0, 1, 3, IB_MGMT_RMPP_STATUS_BAD_LEN},
		{1, ACK, 0, 0, 5, 4, IB_MGMT_RMPP_STATUS_W2S},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const struct wrong *w = &wrong[i];

		raw(w->version, w->type, w->flags, w->status, w->seg, w->len);
		if (last_type != IB_MGMT_RMPP_TYPE_ABORT || last_status != w->abort_status)
			fail_msg("case %zu: type %u status %u", i, last_type, last_status);
	}
	assert_int_equal(receiver->received, 0);
}

/* 13.6.6.1: a transaction's number is its source's own; another may have the same. The
 * receiver's node is the other one. */
static void test_transfers_of_two_sources_are_two(void **state)
{
	enum { FIRST = 2, LAST = 4 };

	for (int i = 0; i < 2; i++)
		raw_from(net->node[i], 1, IB_MGMT_RMPP_TYPE_DATA, FIRST, 0, 1, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(receiver->received, i);
		raw_from(net->node[i], 1, IB_MGMT_RMPP_TYPE_DATA, LAST, 0, 2, 100);
	}
	assert_int_equal(receiver->received, 2);
}

static void test_segments_of_no_transfer_are_dropped(void **state)
{
	raw(1, IB_MGMT_RMPP_TYPE_DATA, 0, 0, 5, 0);
	assert_int_equal(last_type, IB_MGMT_RMPP_TYPE_DATA); /* nothing came back */
}

/* a segment of the transfer FOREIGN_TID; its flags are FIRST, LAST, or neither */
static void segment(u32 seg, u8 flags, u32 len)
{
	raw(1, IB_MGMT_RMPP_TYPE_DATA, flags, 0, seg, len);
}

/* 13.6.2.1: the receiver granted 32 segments after the first, and keeps no others */
static void test_segments_beyond_the_window_are_dropped(void **state)
{
	enum { FIRST = 2, LAST = 4, WINDOW = 33 };

	segment(1, FIRST, 0);
	segment(WINDOW + 1, LAST, 100);
	for (u32 seg = 2; seg <= WINDOW; seg++)
		segment(seg, 0, 0);
	assert_int_equal(receiver->received, 0);
	segment(WINDOW + 1, LAST, 100);
	assert_int_equal(receiver->received, 1);
	assert_int_equal(receiver->mad_len, IB_MGMT_VENDOR_HDR + WINDOW * SEG + 100 - 4);
}

static void test_segments_behind_the_last_are_dropped(void **state)
{
	enum { FIRST = 2, LAST = 4 };

	segment(1, FIRST, 0);
	segment(3, LAST, 100);
	segment(5, 0, 0);
	segment(2, 0, 0);
	assert_int_equal(receiver->received, 1);
	assert_int_equal(receiver->mad_len, IB_MGMT_VENDOR_HDR + 2 * SEG + 100 - 4);
}

static u8 forged_type, forged_status;
static u32 forged_seg, forged_win;

/* the receiver's first ACK is replaced */
static bool forge(struct net *n, const struct net_packet *packet)
{
	struct net_packet *p = (struct net_packet *)packet;

	if (!forged_type || packet->from != n->node[1])
		return false;
	p->rmpp.rmpp_hdr.rmpp_type = forged_type;
	p->rmpp.rmpp_hdr.rmpp_status = forged_status;
	p->rmpp.rmpp_hdr.seg_num = cpu_to_be32(forged_seg);
	p->rmpp.rmpp_hdr.paylen_newwin = cpu_to_be32(forged_win);
	forged_type = 0;
	return false;
}

static void forged(u8 type, u8 status, u32 seg, u32 win, u32 expected)
{
	forged_type = type;
	forged_status = status;
	forged_seg = seg;
	forged_win = win;
	net->lose = forge;
	ib_post_send_mad(message(sender, 11, IB_MGMT_METHOD_SEND, 10 * SEG), NULL);
	rt_sim_run_for(net->rt, 70 * NSEC_PER_SEC);
	assert_int_equal(sender->status, IB_WC_REM_ABORT_ERR);
	assert_int_equal(sender->vendor_err, expected);
	assert_int_equal(receiver->received, 0);
}

static void test_stop_abort_and_bad_acks_end_the_send(void **state)
{
	forged(IB_MGMT_RMPP_TYPE_STOP, IB_MGMT_RMPP_STATUS_RESX, 0, 0, IB_MGMT_RMPP_STATUS_RESX);
	forged(IB_MGMT_RMPP_TYPE_ABORT, IB_MGMT_RMPP_STATUS_UNSPEC, 0, 0,
	       IB_MGMT_RMPP_STATUS_UNSPEC);
	forged(IB_MGMT_RMPP_TYPE_ACK, 3, 1, 65, IB_MGMT_RMPP_STATUS_BAD_STATUS);
	forged(IB_MGMT_RMPP_TYPE_ACK, 0, 11, 65, IB_MGMT_RMPP_STATUS_S2B);
	forged(IB_MGMT_RMPP_TYPE_ACK, 0, 2, 1, IB_MGMT_RMPP_STATUS_W2S);
	assert_int_equal(sender->sent, 5);
}

static void test_cancelled_in_the_middle(void **state)
{
	struct ib_mad_send_buf *buf = message(sender, 11, IB_MGMT_METHOD_SEND, 500 * SEG);

	ib_post_send_mad(buf, NULL);
	rt_sim_run_for(net->rt, 30000);
	ib_cancel_mad(buf);
	rt_sim_run_for(net->rt, NSEC_PER_SEC);
	assert_int_equal(sender->sent, 1);
	assert_int_equal(sender->status, IB_WC_WR_FLUSH_ERR);
	assert_int_equal(receiver->received, 0);
}

static void test_user_rmpp_sees_segments(void **state)
{
	struct ib_mad_reg_req req = {.mgmt_class = CLASS, .mgmt_class_version = 1,
				     .oui = {4, 5, 6}, .method_mask = {SEND}};
	struct ib_mad_agent *agent = ib_register_mad_agent(
		&net->node[1]->ib, 1, IB_QPT_GSI, &req, 1, client_sent, client_received, receiver,
		IB_MAD_USER_RMPP);
	struct ib_mad_send_buf *buf = message(sender, 11, IB_MGMT_METHOD_SEND, 5 * SEG);

	memcpy(((struct ib_vendor_mad *)buf->mad)->oui, (u8[]){4, 5, 6}, 3);
	ib_post_send_mad(buf, NULL);
	rt_sim_run_for(net->rt, NSEC_PER_MSEC);
	assert_int_equal(receiver->received, 1); /* and no ACK from the core */
	assert_int_equal(receiver->mad_len, 256);
	assert_int_equal(net->packets, 1);
	ib_unregister_mad_agent(agent);
}

static void test_the_fields_of_headers(void **state)
{
	static const struct {
		u8 class;
		int offset;
	} rows[] = {{IB_MGMT_CLASS_SUBN_ADM, IB_MGMT_SA_HDR},
		    {IB_MGMT_CLASS_DEVICE_ADM, IB_MGMT_DEVICE_HDR},
		    {IB_MGMT_CLASS_VENDOR_RANGE2_END, IB_MGMT_VENDOR_HDR},
		    {IB_MGMT_CLASS_PERF_MGMT, IB_MGMT_MAD_HDR}};
	struct ib_class_port_info cpi = {.cap_mask2_resp_time = cpu_to_be32(0x1234567f)};
	struct ib_mad_hdr hdr = {.method = IB_MGMT_METHOD_GET};
	struct ib_rmpp_hdr rmpp = {0};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(ib_get_mad_data_offset(rows[i].class), rows[i].offset);
		assert_int_equal(ib_is_mad_class_rmpp(rows[i].class), rows[i].offset != IB_MGMT_MAD_HDR);
	}
	ib_set_rmpp_resptime(&rmpp, IB_MGMT_RMPP_NO_RESPTIME);
	ib_set_rmpp_flags(&rmpp, IB_MGMT_RMPP_FLAG_FIRST | IB_MGMT_RMPP_FLAG_LAST);
	assert_int_equal(rmpp.rmpp_rtime_flags, 0xfe);
	ib_set_rmpp_resptime(&rmpp, 3);
	assert_int_equal(ib_get_rmpp_resptime(&rmpp), 3);
	assert_int_equal(ib_get_rmpp_flags(&rmpp), 6);
	ib_set_cpi_resp_time(&cpi, 18);
	assert_int_equal(be32_to_cpu(cpi.cap_mask2_resp_time), 0x12345672);
	assert_false(ib_response_mad(&hdr));
	hdr.method = IB_MGMT_METHOD_TRAP_REPRESS;
	assert_true(ib_response_mad(&hdr));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_fields_of_headers),
		CASE(test_lengths),
		CASE(test_twenty_thousand_segments),
		CASE(test_any_packet_may_be_lost),
		CASE(test_much_loss),
		CASE(test_a_dead_receiver_ends_the_send),
		CASE(test_a_silent_sender_is_aborted),
		CASE(test_the_window_is_kept),
		CASE(test_the_rmpp_header_is_ours_to_fill),
		CASE(test_a_long_response_matches_its_request),
		CASE(test_a_slow_response_is_waited_for),
		CASE(test_a_long_request_and_a_long_response),
		CASE(test_a_lost_response_repeats_the_whole_request),
		CASE(test_the_direction_turns),
		CASE(test_wrong_packets_are_aborted),
		CASE(test_first_segments_are_bounded),
		CASE(test_a_port_with_its_share_loses_nothing_to_others),
		CASE(test_transfers_of_two_sources_are_two),
		CASE(test_segments_of_no_transfer_are_dropped),
		CASE(test_segments_beyond_the_window_are_dropped),
		CASE(test_segments_behind_the_last_are_dropped),
		CASE(test_stop_abort_and_bad_acks_end_the_send),
		CASE(test_cancelled_in_the_middle),
		CASE(test_user_rmpp_sees_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
