/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The adapter between programs, the midlayer and its ports. The fabric is a
 * cable (cable.h).
 */
#include "world.h"

/* --- packets of programs --- */

static void an_honest_packet_leaves(void **state)
{
	struct world *w = *state;
	struct program p;
	struct wire_packet pkt, other;

	make_program(w, &p);
	assert_true(p.qp->qp_num >= 0x11);
	pkt = datagram(&p, 0x99);
	program_sends(&p, pkt);
	pkt.lrh.slid = LID + 1; /* LMC: also ours */
	program_sends(&p, pkt);
	turn(w);
	assert_int_equal(cable.num_sent, 2);
	assert_int_equal(cable.sent_port, 1);
	assert_true(wire_packet_decode(cable.sent[1], cable.sent_len[1], &other) > 0);
	assert_int_equal(other.lrh.slid, LID + 1);
	assert_int_equal(other.payload_bytes, 32);
	pkt.lrh.slid = 2 * LID;
	program_sends(&p, pkt);
	turn(w);
	assert_int_equal(cable.sent_port, 2);
	end_program(&p);
}

static void a_forged_packet_does_not(void **state)
{
	struct world *w = *state;
	struct program p, other;
	struct wire_packet pkt;

	make_program(w, &p);
	make_program(w, &other);
#define FORGE(change)                                                          \
	pkt = datagram(&p, 0x99);                                              \
	change;                                                                \
	program_sends(&p, pkt)
	FORGE(pkt.lrh.slid = LID + 2);	 /* nobody's */
	FORGE(pkt.lrh.slid = WIRE_LID_PERMISSIVE);
	FORGE(pkt.lrh.vl = WIRE_VL_MANAGEMENT);
	FORGE(pkt.bth.dest_qpn = 0);	 /* QP0 is the subnet manager's */
	FORGE(pkt.bth.pkey = 0x8001);	 /* not in the port's table */
	FORGE(pkt.bth.pkey = 0);
	FORGE(pkt.deth.src_qpn = other.qp->qp_num);
	FORGE(pkt.deth.src_qpn = 1);
	FORGE((pkt.lrh.lnh = WIRE_LNH_GRH, pkt.grh.ip_version = 6, pkt.grh.next_header = 0x1b,
	       pkt.grh.sgid.raw[0] = 0xfe)); /* a source GID that is not ours */
	turn(w);
	assert_int_equal(cable.num_sent, 0);
	assert_false(p.fatal); /* dropped, as a switch would: no reason to end */
	FORGE();
	turn(w);
	assert_int_equal(cable.num_sent, 1);
	end_program(&p);
	end_program(&other);
}

static void nonsense_in_the_ring_ends_that_program_alone(void **state)
{
	struct world *w = *state;
	struct program p, other;

	make_program(w, &p);
	make_program(w, &other);
	memset(p.tx.ring->data, 0x33, 64); /* a length beyond all bounds */
	atomic_store(&p.tx.ring->tail, 64);
	turn(w);
	assert_true(p.fatal);
	assert_int_equal(arrives(1, datagram(NULL, p.qp->qp_num)), 0);
	program_sends(&other, datagram(&other, 0x99));
	turn(w);
	assert_int_equal(cable.num_sent, 1);
	assert_false(other.fatal);
	end_program(&p);
	end_program(&other);
}

static void a_packet_waits_for_a_full_destination(void **state)
{
	struct world *w = *state;
	struct wire_packet pkt;
	struct program p;

	make_program(w, &p);
	cable.answer = -EAGAIN;
	pkt = datagram(&p, 1000);
	program_sends(&p, pkt);
	pkt.bth.dest_qpn = 1001;
	program_sends(&p, pkt);
	turn(w);
	cable.answer = 0;
	while (cable.num_sent < 2) /* a timer offers it again */
		rt_posix_turn(w->rt);
	assert_int_equal(cable.num_sent, 2); /* none lost, in order */
	assert_int_equal(get_be24(cable.sent[0] + 8 + 5), 1000);
	assert_int_equal(get_be24(cable.sent[1] + 8 + 5), 1001);
	end_program(&p);
}

static void softibd_may_sleep_while_a_packet_waits(void **state)
{
	struct world *w = *state;
	struct hca_user *user;
	struct program p;

	make_program(w, &p);
	user = container_of(p.context, struct hca_user, ib);
	cable.answer = -EAGAIN;
	program_sends(&p, datagram(&p, 1000));
	assert_false(user->poller.poll(&user->poller)); /* the program's ring is not empty, */
	assert_false(user->poller.prepare(&user->poller)); /* but there is nothing to do */
	assert_true(rt_timer_armed(&user->retry));
	cable.answer = 0;
	assert_true(hca_quiesce(&user->ib)); /* its QP goes: it is offered at once */
	assert_int_equal(cable.num_sent, 1);
	end_program(&p);
}

static void a_programs_packet_waits_no_longer_than_its_lifetime(void **state)
{
	struct world *w = *state;
	struct hca_user *user;
	struct program p;

	make_program(w, &p);
	user = container_of(p.context, struct hca_user, ib);
	cable.answer = -EAGAIN;
	program_sends(&p, datagram(&p, 1000));
	assert_false(user->poller.poll(&user->poller));
	user->held_since.ns -= FAB_HOQ_NS;
	rt_timer_disarm(&user->retry); /* as when it fires */
	assert_true(user->poller.poll(&user->poller)); /* it is dropped */
	assert_false(rt_timer_armed(&user->retry));
	assert_int_equal(cable.num_sent, 0);
	cable.answer = 0;
	end_program(&p);
}

/* A full ring does not leave in one go because its QP is destroyed: what was in it at that
 * time leaves as ever, what comes later is not waited for. */
static void a_full_ring_leaves_by_and_by(void **state)
{
	enum { QUEUED = 300 };
	struct world *w = *state;
	struct program p;

	make_program(w, &p);
	for (int i = 0; i < QUEUED; i++)
		program_sends(&p, datagram(&p, 1000));
	assert_false(hca_quiesce(p.context));
	assert_int_equal(cable.num_sent, 64);
	for (int turns = 1; !hca_quiesce(p.context); turns++) {
		program_sends(&p, datagram(&p, 1000));
		rt_posix_turn(w->rt);
		assert_in_range(cable.num_sent, 1, 64 * (turns + 2));
	}
	assert_in_range(cable.num_sent, QUEUED, QUEUED + 64);
	end_program(&p);
}

/* softibd's turns cost nothing for programs that are idle */
static void an_idle_program_is_left_alone_until_it_rings(void **state)
{
	struct world *w = *state;
	struct hca_user *user;
	struct program p;

	make_program(w, &p);
	user = container_of(p.context, struct hca_user, ib);
	assert_false(list_empty(&user->poller.node));
	for (unsigned i = 0; i <= RT_POLLER_LINGER; i++)
		rt_posix_turn(w->rt);
	assert_true(list_empty(&user->poller.node));
	program_sends(&p, datagram(&p, 1000));
	turn(w);
	assert_int_equal(cable.num_sent, 1);
	assert_false(list_empty(&user->poller.node));
	end_program(&p);
}

/* --- packets for programs --- */

static void a_packet_finds_its_qp(void **state)
{
	struct world *w = *state;
	struct program p, q;
	uint32_t qpn;

	make_program(w, &p);
	make_program(w, &q);
	assert_int_equal(arrives(1, datagram(NULL, p.qp->qp_num)), 0);
	assert_int_equal(arrives(2, datagram(NULL, q.qp->qp_num)), 0);
	assert_int_equal(arrives(1, datagram(NULL, q.qp->qp_num)), 0);
	assert_int_equal(arrives(1, datagram(NULL, 0x7777)), 0); /* nobody's: silence */
	turn(w);
	assert_int_equal(program_received(&p), 1);
	assert_int_equal(program_received(&q), 2);
	qpn = p.qp->qp_num;
	end_program(&p);
	assert_int_equal(arrives(1, datagram(NULL, qpn)), 0);
	turn(w);
	assert_int_equal(program_received(&q), 0);
	end_program(&q);
}

static int arrives_from(int node, const struct program *from, struct wire_packet pkt)
{
	const struct hca_user *user = container_of(from->context, struct hca_user, ib);
	struct fab_packet in;
	uint8_t buf[512];

	assert_int_equal(fab_packet_decode(&in, buf, encode(pkt, buf)), 0);
	in.source = 1 + (uint32_t)node;
	in.owner = user->owner;
	return cable.sink[1].deliver(cable.sink[1].ctx, &in);
}

/* a program attached to the node of a QP's peer does not speak for that peer */
static void a_connected_qp_hears_its_peers_program_alone(void **state)
{
	struct world *w = *state;
	struct program victim, peer, other;
	struct wire_packet pkt;

	make_program(w, &victim);
	make_program(w, &peer);
	make_program(w, &other);
	victim.qp->qp_type = IB_QPT_RC;
	victim.qp->attr.dest_qp_num = peer.qp->qp_num;
	pkt = datagram(NULL, victim.qp->qp_num);
	pkt.bth.opcode = WIRE_RC | WIRE_SEND_ONLY;
	assert_int_equal(arrives_from(0, &other, pkt), 0);
	turn(w);
	assert_int_equal(program_received(&victim), 0);
	assert_int_equal(arrives_from(0, &peer, pkt), 0);
	assert_int_equal(arrives_from(0, &other, datagram(&other, victim.qp->qp_num)), 0);
	turn(w);
	assert_int_equal(program_received(&victim), 2);
	end_program(&peer); /* what it sent before may still be under way */
	assert_int_equal(arrives_from(0, &other, pkt), 0);
	turn(w);
	assert_int_equal(program_received(&victim), 1);
	end_program(&victim);
	end_program(&other);
}

/* a packet that a fault rule delays may arrive after its adapter was unplugged */
static void a_packet_outlives_the_adapter_that_sent_it(void **state)
{
	struct world *w = *state;
	struct program victim, peer;
	struct wire_packet pkt;

	make_program(w, &victim);
	make_program(w, &peer);
	victim.qp->qp_type = IB_QPT_RC;
	victim.qp->attr.dest_qp_num = peer.qp->qp_num;
	pkt = datagram(NULL, victim.qp->qp_num);
	pkt.bth.opcode = WIRE_RC | WIRE_SEND_ONLY;
	assert_int_equal(arrives_from(1, &peer, pkt), 0);
	turn(w);
	assert_int_equal(program_received(&victim), 1);
	end_program(&victim);
	end_program(&peer);
}

/* no QP0 and QP1 is there: the node's agents answer */
static void a_mad_without_its_qp_is_the_agents(void **state)
{
	assert_int_equal(arrives(1, datagram(NULL, 0)), -ENOENT);
	assert_int_equal(arrives(1, datagram(NULL, 1)), -ENOENT);
}

static void a_full_ring_holds_the_sender(void **state)
{
	struct world *w = *state;
	struct program p;
	int sent = 0;

	make_program(w, &p);
	while (arrives(1, datagram(NULL, p.qp->qp_num)) == 0)
		sent++;
	assert_true(sent > 1000);
	assert_int_equal(arrives(1, datagram(NULL, p.qp->qp_num)), -EAGAIN);
	turn(w);
	assert_int_equal(program_received(&p), sent);
	assert_int_equal(arrives(1, datagram(NULL, p.qp->qp_num)), 0);
	turn(w);
	assert_int_equal(program_received(&p), 1);
	end_program(&p);
}

static void a_wrong_partition_is_dropped_and_told(void **state)
{
	struct world *w = *state;
	struct wire_packet pkt;
	struct program p;

	make_program(w, &p);
	pkt = datagram(NULL, p.qp->qp_num);
	pkt.bth.pkey = 0x8123;
	assert_int_equal(arrives(1, pkt), 0);
	turn(w);
	assert_int_equal(program_received(&p), 0);
	assert_int_equal(cable.traps, 1);
	end_program(&p);
}

static uint32_t source_qpn_told(const struct ag_trap *trap)
{
	struct wire_trap_key details;
	struct wire_notice notice;

	assert_true(trap->used);
	assert_int_equal(trap->number, WIRE_TRAP_BAD_PKEY);
	wire_smp_notice_decode(trap->notice, sizeof(trap->notice), &notice);
	wire_trap_key_decode(notice.details, sizeof(notice.details), &details);
	return details.qpn1;
}

static void a_packet_without_source_qpn_tells_none(void **state)
{
	struct world *w = *state;
	struct wire_packet pkt;
	struct program p;

	make_program(w, &p);
	cable.ag->port[1].lid = LID;
	cable.ag->port[1].sm_lid = 1;
	pkt = datagram(NULL, p.qp->qp_num);
	pkt.bth.pkey = 0x8123;
	assert_int_equal(arrives(1, pkt), 0);
	pkt.bth.opcode = WIRE_RC | WIRE_SEND_ONLY;
	assert_int_equal(arrives(1, pkt), 0);
	assert_int_equal(source_qpn_told(&cable.ag->trap[0]), 5);
	assert_int_equal(source_qpn_told(&cable.ag->trap[1]), 0);
	end_program(&p);
}

static void a_wrong_qkey_is_dropped_and_told(void **state)
{
	const struct ag_port *port = &cable.ag->port[1];
	struct world *w = *state;
	struct wire_packet pkt;
	struct program p;

	make_program(w, &p);
	pkt = datagram(NULL, p.qp->qp_num);
	pkt.deth.qkey = p.qp->attr.qkey + 1;
	assert_int_equal(arrives(1, pkt), 0); /* it does not receive yet */
	assert_int_equal(port->qkey_violations, 0);
	p.qp->state = IB_QPS_RTS;
	assert_int_equal(arrives(1, pkt), 0);
	turn(w);
	assert_int_equal(program_received(&p), 1); /* the first, for its engine to drop */
	assert_int_equal(cable.traps, 1);
	assert_int_equal(port->qkey_violations, 1);
	pkt.deth.qkey = p.qp->attr.qkey;
	assert_int_equal(arrives(1, pkt), 0);
	turn(w);
	assert_int_equal(program_received(&p), 1);
	assert_int_equal(port->qkey_violations, 1);
	end_program(&p);
}

static struct wire_packet to_group(uint8_t last)
{
	struct wire_packet pkt = datagram(NULL, WIRE_QPN_MULTICAST);

	pkt.lrh.lnh = WIRE_LNH_GRH;
	pkt.lrh.dlid = 0xc001;
	pkt.grh.ip_version = 6;
	pkt.grh.next_header = 0x1b;
	pkt.grh.dgid.raw[0] = 0xff;
	pkt.grh.dgid.raw[15] = last;
	return pkt;
}

static void members_of_a_group_get_a_copy_each(void **state)
{
	struct world *w = *state;
	struct program p, q;
	union ib_gid one = {.raw = {0xff}}, two = {.raw = {0xff}};

	one.raw[15] = 1;
	two.raw[15] = 2;
	make_program(w, &p);
	make_program(w, &q);
	assert_int_equal(ib_attach_mcast(p.qp, &one, 0xc001), 0);
	assert_int_equal(ib_attach_mcast(q.qp, &one, 0xc001), 0);
	assert_int_equal(ib_attach_mcast(p.qp, &one, 0xc003), 0);
	assert_int_equal(ib_attach_mcast(q.qp, &two, 0xc002), 0);
	assert_int_equal(arrives(1, to_group(1)), 0);
	assert_int_equal(arrives(1, to_group(2)), 0);
	assert_int_equal(arrives(1, to_group(3)), 0);
	turn(w);
	assert_int_equal(program_received(&p), 1);
	assert_int_equal(program_received(&q), 2);
	assert_int_equal(ib_detach_mcast(q.qp, &one, 0xc001), 0);
	assert_int_equal(ib_detach_mcast(p.qp, &one, 0xc001), 0);
	arrives(1, to_group(1));
	turn(w);
	assert_int_equal(program_received(&p), 1); /* by the other LID */
	/* who does not read misses datagrams of a group and holds nobody up */
	for (int i = 0; i < 20000; i++)
		assert_int_equal(arrives(1, to_group(1)), 0);
	turn(w);
	assert_int_equal(program_received(&q), 0);
	end_program(&p);
	end_program(&q);
}

static bool bell_rang(const struct program *p)
{
	struct pollfd pfd = {.fd = p->context->driver_fds[ABI_FD_PROGRAM_DOORBELL], .events = POLLIN};
	uint64_t count;

	return poll(&pfd, 1, 0) == 1 && read(pfd.fd, &count, sizeof(count)) == sizeof(count);
}

static void only_sleepers_are_woken_once_a_batch(void **state)
{
	struct world *w = *state;
	struct program p;

	make_program(w, &p);
	arrives(1, datagram(NULL, p.qp->qp_num));
	turn(w);
	assert_false(bell_rang(&p));
	assert_int_equal(program_received(&p), 1);
	assert_true(abi_ring_sleep(&p.rx));
	arrives(1, datagram(NULL, p.qp->qp_num));
	arrives(1, datagram(NULL, p.qp->qp_num));
	turn(w);
	assert_true(bell_rang(&p));
	assert_false(bell_rang(&p));
	assert_int_equal(program_received(&p), 2);
	end_program(&p);
}

/* It shares the eventfd that it rings, and may make it blocking and read it
 * before softibd does, who must not wait then. */
static void a_doorbell_that_blocks_holds_nobody_up(void **state)
{
	struct world *w = *state;
	struct hca_user *user;
	struct program p;
	int fd;

	make_program(w, &p);
	fd = p.context->driver_fds[ABI_FD_DOORBELL];
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
	user = container_of(p.context, struct hca_user, ib);
	alarm(10); /* ends the program */
	user->doorbell.fn(&user->doorbell, true, false);
	alarm(0);
	/* and of what softibd rings, nobody else has the end that it writes */
	for (unsigned i = 0; i < p.context->num_driver_fds; i++)
		assert_int_not_equal(p.context->driver_fds[i], user->program_doorbell_fd);
	end_program(&p);
}

/* --- numbers --- */

static void numbers_are_not_used_again_soon(void **state)
{
	struct world *w = *state;
	struct program p;
	uint32_t last = 0;

	for (int i = 0; i < 50; i++) {
		make_program(w, &p);
		assert_true(p.qp->qp_num > last);
		last = p.qp->qp_num;
		end_program(&p);
	}
}

/* --- the midlayer --- */

static int handled, depth;

static void on_completion(struct ib_cq *cq, void *context)
{
	assert_int_equal(depth++, 0); /* one at a time */
	handled++;
	depth--;
}

struct kernel_qp {
	int overruns;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
};

static void on_cq_event(struct ib_event *event, void *context)
{
	struct kernel_qp *k = context;

	assert_int_equal(event->event, IB_EVENT_CQ_ERR);
	assert_ptr_equal(event->element.cq, k->cq);
	k->overruns++;
}

/* a UD QP with @receives, whose CQ of @entries calls @handler */
static void make_kernel_qp_of(struct world *w, struct kernel_qp *k, uint32_t receives,
			      uint32_t entries, ib_comp_handler handler)
{
	struct ib_cq_init_attr cq_attr = {.cqe = entries};
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_UD,
		.cap = {.max_send_wr = 4, .max_recv_wr = receives, .max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ib_qp_attr to = {.qp_state = IB_QPS_INIT, .port_num = 1, .qkey = 0x11};

	k->overruns = 0;
	k->pd = ib_alloc_pd(w->device, 0);
	k->cq = ib_create_cq(w->device, handler, on_cq_event, k, &cq_attr);
	attr.send_cq = attr.recv_cq = k->cq;
	k->qp = ib_create_qp(k->pd, &attr);
	assert_false(IS_ERR(k->qp));
	assert_int_equal(ib_modify_qp(k->qp, &to, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
							  IB_QP_QKEY), 0);
	to.qp_state = IB_QPS_RTR;
	assert_int_equal(ib_modify_qp(k->qp, &to, IB_QP_STATE), 0);
	to.qp_state = IB_QPS_RTS;
	assert_int_equal(ib_modify_qp(k->qp, &to, IB_QP_STATE | IB_QP_SQ_PSN), 0);
}

static void make_kernel_qp(struct world *w, struct kernel_qp *k)
{
	make_kernel_qp_of(w, k, 4, 2, on_completion);
}

static void end_kernel_qp(struct kernel_qp *k)
{
	assert_int_equal(ib_destroy_qp(k->qp), 0);
	assert_int_equal(ib_destroy_cq(k->cq), 0);
	assert_int_equal(ib_dealloc_pd(k->pd), 0);
}

/* Inline data takes the place of the scatter/gather list, so there is room without asking: as far as
 * the adapter has inline data at all. */
static void room_for_inline_data_is_granted(void **state)
{
	struct world *w = *state;
	struct kernel_qp k;

	make_kernel_qp(w, &k);
	assert_int_equal(k.qp->cap.max_inline_data, sizeof(struct ib_sge));
	end_kernel_qp(&k);
	w->device->attrs.max_inline_data_ud = 8;
	make_kernel_qp(w, &k);
	assert_int_equal(k.qp->cap.max_inline_data, 8);
	end_kernel_qp(&k);
}

static int send_to_self(struct kernel_qp *k, struct ib_ah *ah, void *buf)
{
	struct ib_sge sge = {.addr = ib_dma_map_single(k->qp->device, buf, 64, DMA_TO_DEVICE),
			     .length = 64, .lkey = k->pd->local_dma_lkey};
	struct ib_ud_wr wr = {.wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
				     .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED},
			      .ah = ah, .remote_qpn = k->qp->qp_num, .remote_qkey = 0x11};

	return ib_post_send(k->qp, &wr.wr, NULL);
}

static void a_kernel_datagram_goes_round(void **state)
{
	struct world *w = *state;
	struct rdma_ah_attr ah_attr = {.dlid = LID, .port_num = 1, .sl = 2};
	char out[64] = "round trip", in[104] = "";
	struct kernel_qp k;
	struct ib_sge sge = {.addr = (uintptr_t)in, .length = sizeof(in)};
	struct ib_recv_wr recv = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
	struct ib_wc wc[4];
	struct ib_ah *ah;

	handled = 0;
	make_kernel_qp(w, &k);
	sge.lkey = k.pd->local_dma_lkey;
	ah = ib_create_ah(k.pd, &ah_attr);
	cable.loops = true;
	assert_int_equal(ib_post_recv(k.qp, &recv, NULL), 0);
	assert_int_equal(ib_req_notify_cq(k.cq, IB_CQ_NEXT_COMP), 0);
	assert_int_equal(send_to_self(&k, ah, out), 0);
	assert_int_equal(handled, 0); /* never on our stack */
	turn(w);
	assert_int_equal(handled, 1); /* armed once, called once, for two completions */
	assert_int_equal(ib_peek_cq(k.cq, 9), 2);
	assert_int_equal(ib_peek_cq(k.cq, 1), 1);
	assert_int_equal(ib_poll_cq(k.cq, 1, wc), 1);
	assert_int_equal(ib_req_notify_cq(k.cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS), 0);
	turn(w);
	assert_int_equal(handled, 2); /* of what was left there */
	assert_int_equal(ib_poll_cq(k.cq, 4, wc + 1), 1);
	assert_int_equal(ib_peek_cq(k.cq, 9), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(wc[i].status, IB_WC_SUCCESS);
		assert_ptr_equal(wc[i].qp, k.qp);
	}
	assert_int_equal(wc[1].wr_id, 2);
	assert_int_equal(wc[1].byte_len, 104);
	assert_int_equal(wc[1].slid, LID);
	assert_int_equal(wc[1].sl, 2);
	assert_int_equal(wc[1].src_qp, k.qp->qp_num);
	assert_string_equal(in + 40, "round trip");
	ib_destroy_ah(ah);
	end_kernel_qp(&k);
}

static void post_receive(struct kernel_qp *k)
{
	static char in[512];
	struct ib_sge sge = {.addr = (uintptr_t)in, .length = sizeof(in),
			     .lkey = k->pd->local_dma_lkey};
	struct ib_recv_wr recv = {.sg_list = &sge, .num_sge = 1};

	assert_int_equal(ib_post_recv(k->qp, &recv, NULL), 0);
}

static void take_and_post_anew(struct ib_cq *cq, void *context)
{
	struct kernel_qp *k = context;
	struct ib_wc wc;

	do {
		while (ib_poll_cq(cq, 1, &wc) > 0) {
			handled++;
			post_receive(k);
		}
	} while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

/* who has as many receives as the engine takes packets in a turn, and posts new ones when it is
 * called, loses nothing */
static void a_burst_leaves_time_to_post_receives(void **state)
{
	enum {PACKETS = 20 * HCA_RX_TURN};
	struct world *w = *state;
	struct kernel_qp k;
	uint8_t bytes[512];
	size_t len;

	handled = 0;
	make_kernel_qp_of(w, &k, HCA_RX_TURN, HCA_RX_TURN, take_and_post_anew);
	for (int i = 0; i < HCA_RX_TURN; i++)
		post_receive(&k);
	assert_int_equal(ib_req_notify_cq(k.cq, IB_CQ_NEXT_COMP), 0);
	len = encode(datagram(NULL, k.qp->qp_num), bytes);
	for (int i = 0; i < PACKETS; i++)
		assert_int_equal(hca_link_receive(w->hca, 1, bytes, len), 0);
	for (int i = 0; i < 10; i++)
		turn(w);
	assert_int_equal(handled, PACKETS);
	assert_int_equal(k.overruns, 0);
	end_kernel_qp(&k);
}

/* packets for LID @dlid, QP @qpn, as the midlayer's engine sends them */
static void kernel_sends(struct hca *hca, uint16_t dlid, uint32_t qpn, unsigned n)
{
	struct wire_packet pkt = datagram(NULL, qpn);
	uint8_t bytes[512];
	size_t len;

	pkt.lrh.dlid = dlid;
	len = encode(pkt, bytes);
	while (n--) {
		memcpy(hca_link_ops.reserve(hca, &pkt, 1, len), bytes, len);
		hca_link_ops.commit(hca, 1, len);
	}
	hca_link_ops.flush(hca);
}

/* who does not read answers holds up none that are for others */
static void a_kernel_packet_waits_behind_its_destination_alone(void **state)
{
	struct world *w = *state;

	cable.full_dlid = 77;
	kernel_sends(w->hca, 77, 1000, 3 * HCA_WAITING_EACH);
	kernel_sends(w->hca, 78, 1, 1);
	turn(w);
	assert_int_equal(cable.num_sent, 1);
	assert_int_equal(get_be16(cable.sent[0] + 2), 78);
	assert_int_equal(cable.discards, 2 * HCA_WAITING_EACH);
	kernel_sends(w->hca, 78, 1, 1);
	turn(w);
	assert_int_equal(cable.num_sent, 2);
	kernel_sends(w->hca, 77, 1001, 1); /* leaves with the adapter */
}

static void a_kernel_packet_waits_for_room_and_in_order(void **state)
{
	struct world *w = *state;

	cable.full_dlid = 77;
	kernel_sends(w->hca, 77, 1000, 1);
	kernel_sends(w->hca, 77, 1001, 1);
	turn(w);
	cable.full_dlid = 0;
	kernel_sends(w->hca, 77, 1000, 1);
	while (cable.num_sent < 3) /* a timer offers them again */
		rt_posix_turn(w->rt);
	assert_int_equal(cable.discards, 0);
	assert_int_equal(w->hca->num_waiting, 0);
	assert_int_equal(w->hca->waiting_due.ns, MONO_NEVER.ns);
}

static void a_kernel_packet_waits_no_longer_than_its_lifetime(void **state)
{
	struct hca_set *set;
	struct hca *hca;
	struct rt *rt;

	assert_int_equal(rt_sim_create(1, &rt), 0);
	assert_int_equal(hca_set_create(rt, the_fabric(), &set), 0);
	assert_int_equal(hca_create(set, 0, &hca), 0);
	cable.full_dlid = 77;
	for (uint32_t qpn = 0x100; qpn < 0x100 + HCA_WAITING_QUEUES; qpn++)
		kernel_sends(hca, 77, qpn, 1);
	rt_sim_run_for(rt, FAB_HOQ_NS / 2);
	assert_int_equal(cable.discards, 0);
	kernel_sends(hca, 77, 0x1000, 1); /* one destination too many: the oldest goes */
	rt_sim_run_for(rt, NSEC_PER_MSEC);
	assert_int_equal(cable.discards, 1);
	rt_sim_run_for(rt, FAB_HOQ_NS / 2);
	assert_int_equal(cable.discards, HCA_WAITING_QUEUES);
	rt_sim_run_for(rt, FAB_HOQ_NS / 2);
	assert_int_equal(cable.discards, HCA_WAITING_QUEUES + 1);
	assert_int_equal(hca->num_waiting, 0);
	hca_destroy(hca);
	hca_set_destroy(set);
	rt_sim_destroy(rt);
}

static void an_overrun_raises_the_cq_error(void **state)
{
	struct world *w = *state;
	struct rdma_ah_attr ah_attr = {.dlid = 99, .port_num = 1};
	struct kernel_qp k;
	struct ib_wc wc;
	char buf[64] = "";
	struct ib_ah *ah;

	make_kernel_qp(w, &k);
	ah = ib_create_ah(k.pd, &ah_attr);
	for (int i = 0; i < 4; i++) /* the CQ has room for two */
		assert_int_equal(send_to_self(&k, ah, buf), 0);
	assert_int_equal(k.overruns, 0); /* deferred */
	turn(w);
	assert_int_equal(k.overruns, 1);
	assert_int_equal(ib_poll_cq(k.cq, 1, &wc), 1);
	assert_int_equal(ib_poll_cq(k.cq, 1, &wc), 1);
	assert_true(ib_poll_cq(k.cq, 1, &wc) < 0);
	ib_destroy_ah(ah);
	end_kernel_qp(&k);
	/* its end before delivery silences it */
	make_kernel_qp(w, &k);
	ah = ib_create_ah(k.pd, &ah_attr);
	for (int i = 0; i < 4; i++)
		assert_int_equal(send_to_self(&k, ah, buf), 0);
	ib_destroy_ah(ah);
	end_kernel_qp(&k);
	turn(w);
	assert_int_equal(k.overruns, 0);
}

static void a_bad_request_is_pointed_out(void **state)
{
	struct world *w = *state;
	struct rdma_ah_attr ah_attr = {.dlid = LID, .port_num = 1};
	struct kernel_qp k;
	struct ib_sge sge = {0};
	struct ib_ud_wr good = {.wr = {.opcode = IB_WR_SEND}}, bad;
	const struct ib_send_wr *where = NULL;

	make_kernel_qp(w, &k);
	good.ah = ib_create_ah(k.pd, &ah_attr);
	bad = good;
	bad.wr.sg_list = &sge;
	bad.wr.num_sge = 2; /* more than the QP has */
	good.wr.next = &bad.wr;
	assert_true(ib_post_send(k.qp, &good.wr, &where) < 0);
	assert_ptr_equal(where, &bad.wr);
	turn(w);
	assert_int_equal(cable.num_sent, 1); /* what stood before it is on its way */
	ib_destroy_ah(good.ah);
	end_kernel_qp(&k);
}

/* --- the port's changes --- */

static int events[32];

static void on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	assert_int_equal(event->element.port_num, 2);
	events[event->event]++;
}

static void changes_become_events_and_live_values(void **state)
{
	struct world *w = *state;
	struct ib_event_handler handler;
	struct ib_port_attr attr;
	struct ag_port *port = &cable.ag->port[2];
	u16 pkey;

	memset(events, 0, sizeof(events));
	INIT_IB_EVENT_HANDLER(&handler, w->device, on_event);
	ib_register_event_handler(&handler);
	port->lid = 40;
	port->sm_lid = 3;
	port->pkeys[1] = 0x8002;
	port->state = IB_PORT_DOWN;
	cable.sink[2].changed(cable.sink[2].ctx, AG_CHANGED_LID | AG_CHANGED_SM |
							 AG_CHANGED_PKEYS | AG_CHANGED_STATE);
	turn(w);
	assert_int_equal(events[IB_EVENT_LID_CHANGE], 1);
	assert_int_equal(events[IB_EVENT_SM_CHANGE], 1);
	assert_int_equal(events[IB_EVENT_PKEY_CHANGE], 1);
	assert_int_equal(events[IB_EVENT_PORT_ERR], 1);
	assert_int_equal(events[IB_EVENT_PORT_ACTIVE], 0);
	assert_int_equal(ib_query_port(w->device, 2, &attr), 0);
	assert_int_equal(attr.lid, 40);
	assert_int_equal(attr.sm_lid, 3);
	assert_int_equal(attr.state, IB_PORT_DOWN);
	assert_int_equal(ib_get_cached_pkey(w->device, 2, 1, &pkey), 0);
	assert_int_equal(pkey, 0x8002);
	port->state = IB_PORT_ACTIVE;
	cable.sink[2].changed(cable.sink[2].ctx, AG_CHANGED_STATE);
	turn(w);
	assert_int_equal(events[IB_EVENT_PORT_ACTIVE], 1);
	assert_int_equal(events[IB_EVENT_PORT_ERR], 1);
	ib_unregister_event_handler(&handler);
}

/* a rule refuses what programs make, not what the midlayer does */
static void a_fault_refuses_objects(void **state)
{
	struct world *w = *state;
	struct program p;
	struct ib_uobject *u;

	make_program(w, &p);
	rule.kind = FLT_OBJECT_PD;
	rule.error = EAGAIN;
	u = ib_uobject_alloc(p.context, IB_UOBJECT_PD);
	assert_int_equal(PTR_ERR(ib_alloc_pd_user(u)), -EAGAIN);
	ib_uobject_abort(u);
	rule.kind = FLT_OBJECT_CONTEXT;
	assert_int_equal(PTR_ERR(ib_ucontext_open(w->device, 1, "x")), -EAGAIN);
	rule.kind = FLT_OBJECT_ANY;
	end_program(&p);
	assert_true(rule.gone > 0); /* its QP's rules went along */
}

static enum ib_event_type heard;
static void *heard_of;

static void on_qp_event(struct ib_event *event, void *context)
{
	heard = event->event;
	heard_of = event->element.qp;
}

static void a_fault_raises_events_of_queues(void **state)
{
	struct world *w = *state;
	struct program p;

	make_program(w, &p);
	p.qp->event_handler = on_qp_event;
	p.qp->send_cq->event_handler = on_qp_event;
	assert_true(hca_has_qp(w->hca, p.qp->qp_num));
	assert_int_equal(hca_raise(w->hca, 0, p.qp->qp_num, IB_EVENT_PATH_MIG), 0);
	turn(w);
	assert_int_equal(heard, IB_EVENT_PATH_MIG);
	assert_ptr_equal(heard_of, p.qp);
	assert_int_equal(hca_raise(w->hca, 0, p.qp->qp_num, IB_EVENT_CQ_ERR), 0);
	turn(w);
	assert_ptr_equal(heard_of, p.qp->send_cq);
	assert_int_equal(hca_raise(w->hca, 0, p.qp->qp_num, IB_EVENT_SRQ_ERR), -EINVAL);
	assert_int_equal(hca_raise(w->hca, 0, p.qp->qp_num, IB_EVENT_PORT_ERR), -EINVAL);
	assert_int_equal(hca_raise(w->hca, 0, 0x999, IB_EVENT_QP_FATAL), -EINVAL);
	/* a port is no queue: what stands in the event must be what it says */
	assert_int_equal(hca_raise(w->hca, 1, 0, IB_EVENT_QP_FATAL), -EINVAL);
	assert_int_equal(hca_raise(w->hca, 1, 0, IB_EVENT_CQ_ERR), -EINVAL);
	assert_int_equal(hca_raise(w->hca, 0, 0, IB_EVENT_SRQ_ERR), -EINVAL);
	assert_int_equal(hca_raise(w->hca, 1, 0, IB_EVENT_PORT_ERR), 0);
	end_program(&p);
}

static void programs_read_the_ports_and_write_nothing(void **state)
{
	struct world *w = *state;
	size_t bytes = abi_devpage_bytes(2);
	const struct abi_devpage *page;
	struct program p;
	uint32_t epoch;
	int fd;

	hca_set_min_ack_timeout(w->hca, 77);
	make_program(w, &p);
	fd = p.context->driver_fds[ABI_FD_DEVPAGE];
	page = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(page->magic, ABI_DEVPAGE_MAGIC);
	assert_int_equal(page->num_ports, 2);
	assert_int_equal(page->min_ack_timeout_us, 77);
	assert_int_equal(page->port[0].lid, LID);
	cable.ag->port[1].lid = 12;
	cable.sink[1].changed(cable.sink[1].ctx, AG_CHANGED_LID);
	assert_int_equal(page->port[0].lid, 12);
	assert_int_equal(page->seq & 1, 0);
	/* at once: who asked for a change has its answer before the next turn */
	epoch = page->route_epoch;
	rule.set = &(struct flt_set){.num_rules = 1, .rule[0].action = FLT_COMPLETION};
	rules_changed(rules_changed_ctx);
	assert_int_not_equal(page->route_epoch, epoch);
	assert_true(page->completion_faults && !page->creation_faults);
	rule.set = NULL;
	assert_ptr_equal(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(p.context->driver_fds[ABI_FD_LINK], 0), -1);
	munmap((void *)page, bytes);
	end_program(&p);
}

static void is_sm_is_set_by_modify_port(void **state)
{
	struct world *w = *state;
	struct ib_port_modify modify = {.set_port_cap_mask = IB_PORT_SM};

	assert_int_equal(ib_modify_port(w->device, 1, 0, &modify), 0);
	assert_int_equal(cable.is_sm, 1);
	modify = (struct ib_port_modify){.clr_port_cap_mask = IB_PORT_SM};
	assert_int_equal(ib_modify_port(w->device, 1, 0, &modify), 0);
	assert_int_equal(cable.is_sm, 0);
	modify.set_port_cap_mask = IB_PORT_CM_SUP;
	assert_true(ib_modify_port(w->device, 1, 0, &modify) < 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_honest_packet_leaves),
		T(a_forged_packet_does_not),
		T(nonsense_in_the_ring_ends_that_program_alone),
		T(a_packet_waits_for_a_full_destination),
		T(softibd_may_sleep_while_a_packet_waits),
		T(a_programs_packet_waits_no_longer_than_its_lifetime),
		T(a_full_ring_leaves_by_and_by),
		T(an_idle_program_is_left_alone_until_it_rings),
		T(a_packet_finds_its_qp),
		T(a_connected_qp_hears_its_peers_program_alone),
		T(a_packet_outlives_the_adapter_that_sent_it),
		T(a_full_ring_holds_the_sender),
		T(a_mad_without_its_qp_is_the_agents),
		T(a_wrong_partition_is_dropped_and_told),
		T(a_packet_without_source_qpn_tells_none),
		T(a_wrong_qkey_is_dropped_and_told),
		T(members_of_a_group_get_a_copy_each),
		T(only_sleepers_are_woken_once_a_batch),
		T(a_doorbell_that_blocks_holds_nobody_up),
		T(numbers_are_not_used_again_soon),
		T(room_for_inline_data_is_granted),
		T(a_kernel_datagram_goes_round),
		T(a_burst_leaves_time_to_post_receives),
		T(a_kernel_packet_waits_behind_its_destination_alone),
		T(a_kernel_packet_waits_for_room_and_in_order),
		T(a_kernel_packet_waits_no_longer_than_its_lifetime),
		T(an_overrun_raises_the_cq_error),
		T(a_bad_request_is_pointed_out),
		T(changes_become_events_and_live_values),
		T(a_fault_refuses_objects),
		T(a_fault_raises_events_of_queues),
		T(programs_read_the_ports_and_write_nothing),
		T(is_sm_is_set_by_modify_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
