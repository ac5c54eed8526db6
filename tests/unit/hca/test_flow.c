/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Frames of raw packet QPs: where they go, and which QPs receive them. The fabric is a cable
 * (cable.h), with Ethernet links. */
#include "world.h"

#include "wire/frame.h"

#define RAW_QPS 4
static const uint8_t group_mac[] = {0x01, 0, 0x5e, 0, 0, 1}, other_mac[] = {2, 0, 0, 0, 0, 1};

static int setup_ethernet(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	plug();
	cable.ethernet = true;
	if (rt_posix_create(&w->rt) || hca_set_create(w->rt, the_fabric(), &w->set) ||
	    hca_create(w->set, 0, &w->hca))
		return -1;
	w->device = ib_device_get_by_name(w->rt, "n1", "softib0");
	*state = w;
	return w->device ? 0 : -1;
}

/** struct listener - a program with some raw packet QPs, by which frames are told apart */
struct listener {
	struct program p;
	struct ib_qp *raw[RAW_QPS];
	unsigned got[RAW_QPS];
	uint32_t tag[RAW_QPS]; /* of the last one */
};

static void listen_begin(struct world *w, struct listener *l)
{
	struct ib_qp_init_attr attr = {.qp_type = IB_QPT_RAW_PACKET};

	memset(l, 0, sizeof(*l));
	make_program(w, &l->p);
	attr.qp_context = object(l->p.context, IB_UOBJECT_PD, make_pd, NULL);
	attr.send_cq = attr.recv_cq = object(l->p.context, IB_UOBJECT_CQ, make_cq, NULL);
	for (int i = 0; i < RAW_QPS; i++)
		l->raw[i] = object(l->p.context, IB_UOBJECT_QP, make_qp, &attr);
}

/* counts what came since it was asked last. Return: the QPs that received one, a bit each */
static unsigned heard(struct world *w, struct listener *l)
{
	const uint8_t *bytes;
	unsigned mask = 0;
	size_t len;

	turn(w);
	while ((bytes = abi_ring_peek(&l->p.rx, &len))) {
		for (int i = 0; i < RAW_QPS; i++) {
			if (get_be24(bytes + 8 + 5) != l->raw[i]->qp_num)
				continue;
			assert_false(mask & 1u << i); /* a frame once */
			mask |= 1u << i;
			l->got[i]++;
			l->tag[i] = get_be32(bytes + 8 + 12);
		}
		abi_ring_consume(&l->p.rx);
	}
	return mask;
}

/* an empty frame in its datagram. Return: bytes */
static size_t frame_of(uint8_t *buf, uint32_t dest_qpn, uint32_t src_qpn, uint16_t dlid,
		       const uint8_t mac[6], uint8_t ip)
{
	struct wire_packet pkt = {
		.lrh = {.lnh = WIRE_LNH_BTH, .slid = LID, .dlid = dlid},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .pkey = 0xffff, .dest_qpn = dest_qpn},
		.deth = {.src_qpn = src_qpn},
		.payload_bytes = 36,
	};
	size_t header = (size_t)wire_packet_encode(&pkt, buf);
	uint8_t *frame = buf + header;

	memset(frame, 0, pkt.payload_bytes);
	memcpy(frame, mac, 6);
	put_be16(frame + 12, 0x0800);
	frame[14] = 0x45;
	frame[29] = ip; /* of the source, 0.0.0.ip */
	return header + pkt.payload_bytes;
}

static int frame_comes(const uint8_t mac[6], uint8_t ip, uint32_t src_qpn, uint32_t source)
{
	uint16_t dlid = mac[0] & 1 ? FAB_STATION_ALL : LID;
	uint8_t buf[512];
	size_t len = frame_of(buf, WIRE_QPN_FRAME, src_qpn, dlid, mac, ip);
	struct fab_packet in;

	assert_int_equal(fab_packet_decode(&in, buf, len), 0);
	in.source = source;
	return cable.sink[1].deliver(cable.sink[1].ctx, &in);
}

/* from another node */
static int comes(const uint8_t mac[6], uint8_t ip)
{
	return frame_comes(mac, ip, 5, 99);
}

static struct ib_flow_attr rule_for(uint8_t ip, uint16_t priority)
{
	struct wire_frame_key value = {.src_ip[3] = ip}, mask = {.src_ip[3] = ip ? 0xff : 0};
	struct ib_flow_attr attr = {.port = 1, .priority = priority};

	memcpy(attr.value, &value, sizeof(value));
	memcpy(attr.mask, &mask, sizeof(mask));
	return attr;
}

/* Return: the rule's handle */
static u32 add(struct listener *l, int i, struct ib_flow_attr attr)
{
	struct ib_uobject *uobject = ib_uobject_alloc(l->p.context, IB_UOBJECT_FLOW);

	assert_int_equal(ib_uobject_commit(uobject, ib_create_flow(l->raw[i], &attr)), 0);
	return uobject->handle;
}

static void send_frame(struct world *w, struct listener *l, const uint8_t mac[6])
{
	uint8_t buf[512];
	size_t len = frame_of(buf, WIRE_QPN_FRAME, l->raw[0]->qp_num, 0, mac, 0);

	memcpy(abi_ring_reserve(&l->p.tx, len), buf, len);
	abi_ring_commit(&l->p.tx, len);
	if (abi_ring_publish(&l->p.tx))
		eventfd_write(l->p.context->driver_fds[ABI_FD_DOORBELL], 1);
	turn(w);
}

static void frames_leave_by_their_address(void **state)
{
	struct world *w = *state;
	struct listener l;

	listen_begin(w, &l);
	send_frame(w, &l, other_mac);
	send_frame(w, &l, group_mac);
	cable.foreign_vlan = true;
	send_frame(w, &l, other_mac);
	cable.foreign_vlan = false;
	assert_int_equal(cable.num_sent, 2);
	assert_int_equal(get_be16(cable.sent[0] + 2), 7);
	assert_int_equal(get_be16(cable.sent[1] + 2), FAB_STATION_ALL);
	end_program(&l.p);
}

/* a QP of datagrams sends no frames, and one of frames no datagrams */
static void others_may_not(void **state)
{
	struct world *w = *state;
	struct wire_packet pkt;
	struct listener l;

	listen_begin(w, &l);
	program_sends(&l.p, datagram(&l.p, WIRE_QPN_FRAME));
	pkt = datagram(&l.p, 0x99);
	pkt.deth.src_qpn = l.raw[0]->qp_num;
	program_sends(&l.p, pkt);
	turn(w);
	assert_int_equal(cable.num_sent, 0);
	end_program(&l.p);
}

static void the_best_priority_wins(void **state)
{
	struct world *w = *state;
	u32 first;
	struct listener l;

	listen_begin(w, &l);
	assert_int_equal(comes(other_mac, 3), 0);
	assert_int_equal(heard(w, &l), 0); /* no rule, nobody */
	add(&l, 0, rule_for(0, 5));
	first = add(&l, 1, rule_for(3, 1));
	add(&l, 2, rule_for(3, 1));
	add(&l, 2, rule_for(0, 1));
	comes(other_mac, 3);
	assert_int_equal(heard(w, &l), 1 << 1 | 1 << 2);
	comes(other_mac, 4);
	assert_int_equal(heard(w, &l), 1 << 2);
	assert_int_equal(ib_destroy_qp(l.raw[1]), -EBUSY);
	assert_int_equal(ib_uobject_destroy(l.p.context, IB_UOBJECT_FLOW, first), 0);
	comes(group_mac, 3);
	assert_int_equal(heard(w, &l), 1 << 2);
	end_program(&l.p);
}

static void a_rule_may_copy_or_drop(void **state)
{
	struct ib_flow_attr copies = rule_for(0, 0), drops = rule_for(3, 1);
	struct world *w = *state;
	struct listener l;

	listen_begin(w, &l);
	copies.flags = IB_FLOW_ATTR_FLAGS_DONT_TRAP;
	drops.drops = true;
	add(&l, 0, copies);
	add(&l, 1, drops);
	add(&l, 2, rule_for(0, 2));
	comes(other_mac, 3);
	assert_int_equal(heard(w, &l), 1 << 0);
	comes(other_mac, 4);
	assert_int_equal(heard(w, &l), 1 << 0 | 1 << 2);
	end_program(&l.p);
}

/* a QP hears the tag of its own rule, and of several that of the first */
static void a_frame_has_the_tag_of_its_rule(void **state)
{
	struct ib_flow_attr tagged = rule_for(3, 1), other = rule_for(0, 1);
	struct world *w = *state;
	struct listener l;

	listen_begin(w, &l);
	tagged.tag = 0x89abcdef;
	other.tag = 7;
	add(&l, 0, tagged);
	add(&l, 0, other);
	add(&l, 1, other);
	add(&l, 2, rule_for(0, 1));
	comes(other_mac, 3);
	assert_int_equal(heard(w, &l), 1 << 0 | 1 << 1 | 1 << 2);
	assert_int_equal(l.tag[0], 0x89abcdef);
	assert_int_equal(l.tag[1], 7);
	assert_int_equal(l.tag[2], 0);
	comes(other_mac, 4);
	assert_int_equal(heard(w, &l), 1 << 0 | 1 << 1 | 1 << 2);
	assert_int_equal(l.tag[0], 7);
	end_program(&l.p);
}

static void expect_count(struct listener *l, u32 handle, u64 packets)
{
	const struct ib_flow *flow = ib_uobject_get(l->p.context, IB_UOBJECT_FLOW, handle);

	assert_int_equal(flow->packets, packets);
	assert_int_equal(flow->bytes, 36 * packets);
}

/* whatever a rule does with a frame, and once however often it comes until there is room */
static void rules_count_their_frames(void **state)
{
	struct ib_flow_attr drops = rule_for(3, 1);
	struct world *w = *state;
	u32 dropped, taken, untouched;
	struct listener l;
	int room = 0;

	listen_begin(w, &l);
	drops.drops = true;
	dropped = add(&l, 0, drops);
	taken = add(&l, 1, rule_for(0, 2));
	untouched = add(&l, 2, rule_for(0, 3));
	comes(other_mac, 3);
	while (!comes(other_mac, 4))
		room++;
	assert_int_equal(comes(other_mac, 4), -EAGAIN);
	expect_count(&l, dropped, 1);
	expect_count(&l, taken, (u64)room);
	expect_count(&l, untouched, 0);
	end_program(&l.p);
}

static void default_rules_take_the_rest(void **state)
{
	struct ib_flow_attr attr = rule_for(0, 0);
	struct world *w = *state;
	struct listener l;

	listen_begin(w, &l);
	add(&l, 0, rule_for(3, 7));
	attr.type = IB_FLOW_ATTR_ALL_DEFAULT;
	add(&l, 1, attr);
	attr.type = IB_FLOW_ATTR_MC_DEFAULT;
	add(&l, 2, attr);
	attr.type = IB_FLOW_ATTR_SNIFFER;
	add(&l, 3, attr);
	comes(other_mac, 3);
	assert_int_equal(heard(w, &l), 1 << 0 | 1 << 3);
	comes(other_mac, 4);
	assert_int_equal(heard(w, &l), 1 << 1 | 1 << 3);
	comes(group_mac, 4);
	assert_int_equal(heard(w, &l), 1 << 1 | 1 << 2 | 1 << 3);
	end_program(&l.p);
}

/* a frame to a group comes back to the port, but not to the QP that sent it */
static void own_frames(void **state)
{
	static const uint8_t flooded[] = {2, 9, 9, 9, 9, 9};
	struct world *w = *state;
	uint8_t buf[512];
	struct fab_packet in;
	struct listener l;
	size_t len;

	listen_begin(w, &l);
	add(&l, 0, rule_for(0, 0));
	add(&l, 1, rule_for(0, 0));
	frame_comes(group_mac, 1, l.raw[0]->qp_num, 1);
	assert_int_equal(heard(w, &l), 1 << 1);
	frame_comes(other_mac, 1, l.raw[0]->qp_num, 1); /* to itself: it asked for it */
	assert_int_equal(heard(w, &l), 1 << 0 | 1 << 1);
	len = frame_of(buf, WIRE_QPN_FRAME, l.raw[0]->qp_num, FAB_STATION_ALL, flooded, 1);
	fab_packet_decode(&in, buf, len);
	in.source = 1;
	assert_int_equal(cable.sink[1].deliver(cable.sink[1].ctx, &in), 0);
	assert_int_equal(heard(w, &l), 0);
	end_program(&l.p);
}

static void a_full_program_holds_up_only_what_is_for_it_alone(void **state)
{
	struct world *w = *state;
	struct listener l;
	int ret = 0;

	listen_begin(w, &l);
	add(&l, 0, rule_for(0, 0));
	for (int i = 0; i < 100000 && !ret; i++)
		ret = comes(other_mac, 1);
	assert_int_equal(ret, -EAGAIN);
	assert_int_equal(comes(group_mac, 1), 0);
	end_program(&l.p);
}

static void what_is_no_rule(void **state)
{
	struct ib_flow_attr attr = rule_for(3, 0);
	struct world *w = *state;
	struct listener l;

	listen_begin(w, &l);
	assert_int_equal(PTR_ERR(ib_create_flow(l.p.qp, &attr)), -EINVAL);
	attr.type = IB_FLOW_ATTR_SNIFFER; /* of frames with an address */
	assert_int_equal(PTR_ERR(ib_create_flow(l.raw[0], &attr)), -EINVAL);
	attr = rule_for(0, 0);
	attr.type = IB_FLOW_ATTR_ALL_DEFAULT;
	attr.tag = 1;
	assert_int_equal(PTR_ERR(ib_create_flow(l.raw[0], &attr)), -EINVAL);
	attr = rule_for(3, 0);
	attr.port = 3;
	assert_int_equal(PTR_ERR(ib_create_flow(l.raw[0], &attr)), -EINVAL);
	attr = rule_for(3, 0);
	attr.flags = 1 << 2; /* egress */
	assert_int_equal(PTR_ERR(ib_create_flow(l.raw[0], &attr)), -EOPNOTSUPP);
	end_program(&l.p);
}

static void rules_go_with_their_program(void **state)
{
	struct world *w = *state;
	struct listener l, other;

	listen_begin(w, &l);
	add(&l, 0, rule_for(0, 0));
	end_program(&l.p);
	listen_begin(w, &other);
	add(&other, 0, rule_for(0, 1));
	comes(other_mac, 1);
	assert_int_equal(heard(w, &other), 1 << 0);
	end_program(&other.p);
}

static struct ib_qp *make_kernel_qp(struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RAW_PACKET,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ib_qp_attr to = {.qp_state = IB_QPS_INIT, .port_num = 1};
	struct ib_qp *qp = ib_create_qp(pd, &attr);

	assert_false(IS_ERR(qp));
	assert_int_equal(ib_modify_qp(qp, &to, IB_QP_STATE | IB_QP_PORT), 0);
	to.qp_state = IB_QPS_RTR;
	assert_int_equal(ib_modify_qp(qp, &to, IB_QP_STATE), 0);
	to.qp_state = IB_QPS_RTS;
	assert_int_equal(ib_modify_qp(qp, &to, IB_QP_STATE), 0);
	return qp;
}

/* A client of the midlayer sends and receives frames as programs do, and a program's rule of a
 * better priority takes a frame from it. */
static void a_client_has_frames_too(void **state)
{
	struct world *w = *state;
	struct ib_cq_init_attr cq_attr = {.cqe = 4};
	struct ib_cq *cq = ib_create_cq(w->device, NULL, NULL, NULL, &cq_attr);
	struct ib_pd *pd = ib_alloc_pd(w->device, 0);
	struct ib_qp *qp = make_kernel_qp(pd, cq);
	struct ib_flow_attr attr = rule_for(0, 9);
	uint8_t out[60] = {2, 0, 0, 0, 0, 1}, in[64] = {0};
	struct ib_sge sge = {.addr = (uintptr_t)in, .length = sizeof(in), .lkey = pd->local_dma_lkey};
	struct ib_recv_wr recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
	struct ib_send_wr send = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
				  .send_flags = IB_SEND_SIGNALED};
	struct ib_flow *flow = ib_create_flow(qp, &attr);
	struct listener l;
	struct ib_wc wc;

	assert_false(IS_ERR(flow));
	assert_int_equal(ib_post_recv(qp, &recv, NULL), 0);
	assert_int_equal(comes(other_mac, 3), 0);
	turn(w);
	assert_int_equal(ib_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.byte_len, 36);
	assert_memory_equal(in, other_mac, sizeof(other_mac));
	assert_int_equal(flow->packets, 1);
	sge = (struct ib_sge){.addr = (uintptr_t)out, .length = sizeof(out), .lkey = pd->local_dma_lkey};
	assert_int_equal(ib_post_send(qp, &send, NULL), 0);
	turn(w);
	assert_int_equal(ib_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(cable.num_sent, 1);
	assert_int_equal(get_be16(cable.sent[0] + 2), 7);
	assert_int_equal(get_be24(cable.sent[0] + 8 + 5), WIRE_QPN_FRAME);
	listen_begin(w, &l);
	add(&l, 0, rule_for(0, 0));
	comes(other_mac, 3);
	assert_int_equal(heard(w, &l), 1 << 0);
	assert_int_equal(flow->packets, 1);
	end_program(&l.p);
	assert_int_equal(ib_destroy_flow(flow), 0);
	assert_int_equal(ib_destroy_qp(qp), 0);
	assert_int_equal(ib_destroy_cq(cq), 0);
	assert_int_equal(ib_dealloc_pd(pd), 0);
}

/* raw[0] passes its frames on to the three others */
static void work_queues_share_the_frames(void **state)
{
	struct ib_rss rss = {.fields = IB_RX_HASH_SRC_IPV4, .key = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2},
			     .log_size = 2};
	struct world *w = *state;
	struct listener l;
	unsigned one;

	listen_begin(w, &l);
	for (int i = 0; i < 4; i++)
		rss.wq[i] = l.raw[1 + i % 3];
	assert_int_equal(ib_set_rss(l.raw[0], &rss), 0);
	assert_int_equal(ib_set_rss(l.raw[0], &rss), -EINVAL); /* once */
	assert_int_equal(ib_destroy_qp(l.raw[1]), -EBUSY);
	add(&l, 0, rule_for(0, 0));
	for (int ip = 1; ip < 64; ip++) {
		comes(other_mac, (uint8_t)ip);
		one = heard(w, &l);
		assert_true(one && !(one & (one - 1)) && !(one & 1));
	}
	for (int i = 1; i < 4; i++)
		assert_in_range(l.got[i], 8, 40);
	comes(other_mac, 9);
	one = heard(w, &l);
	comes(other_mac, 9);
	assert_int_equal(heard(w, &l), one); /* a flow stays where it is */
	end_program(&l.p);
}

static void what_is_no_work_queue(void **state)
{
	struct ib_rss rss = {.log_size = 0};
	struct world *w = *state;
	struct listener l;

	listen_begin(w, &l);
	rss.wq[0] = l.p.qp; /* of datagrams */
	assert_int_equal(ib_set_rss(l.raw[0], &rss), -EINVAL);
	rss.wq[0] = l.raw[0];
	assert_int_equal(ib_set_rss(l.raw[0], &rss), -EINVAL);
	rss.wq[0] = l.raw[1];
	assert_int_equal(ib_set_rss(l.p.qp, &rss), -EINVAL);
	rss.log_size = IB_RSS_MAX_LOG_SIZE + 1;
	assert_int_equal(ib_set_rss(l.raw[0], &rss), -EINVAL);
	end_program(&l.p);
}

static void infiniband_has_none(void **state)
{
	struct ib_qp_init_attr attr = {.qp_type = IB_QPT_RAW_PACKET};
	struct world *w = *state;
	struct ib_uobject *uobject;
	struct program p;
	struct ib_pd *pd;

	make_program(w, &p);
	pd = object(p.context, IB_UOBJECT_PD, make_pd, NULL);
	attr.send_cq = attr.recv_cq = object(p.context, IB_UOBJECT_CQ, make_cq, NULL);
	uobject = ib_uobject_alloc(p.context, IB_UOBJECT_QP);
	assert_int_equal(PTR_ERR(ib_create_qp_user(uobject, pd, &attr)), -EOPNOTSUPP);
	ib_uobject_abort(uobject);
	end_program(&p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_ethernet, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(frames_leave_by_their_address),
		T(others_may_not),
		T(the_best_priority_wins),
		T(a_rule_may_copy_or_drop),
		T(a_frame_has_the_tag_of_its_rule),
		T(rules_count_their_frames),
		T(default_rules_take_the_rest),
		T(own_frames),
		T(a_full_program_holds_up_only_what_is_for_it_alone),
		T(what_is_no_rule),
		T(rules_go_with_their_program),
		T(a_client_has_frames_too),
		T(work_queues_share_the_frames),
		T(what_is_no_work_queue),
		cmocka_unit_test_setup_teardown(infiniband_has_none, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
