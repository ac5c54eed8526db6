/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What libibverbs tells softibd, and does not ask it: queue pairs that softibd has granted, and the transition
 * to RTR of those whose flow it has answered ahead. What it tells later must not be too late.
 */
#include "../../../lib/libibverbs/expect.h"
#include "abi/told.h"
#include "program.h"

#define TO_RTR                                                                                    \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |           \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

/* softibd has read what it does not answer when it answers what was sent later. */
static void wait_for_softibd(struct program *p)
{
	assert_int_equal(ibv_dealloc_pd(ibv_alloc_pd(p->context)), 0);
}

/* softibd has read what the context has told, and the context has sent nothing more. */
static void let_softibd_look(void)
{
	for (int i = 0; i < 2; i++)
		ibv_free_device_list(ibv_get_device_list(NULL));
}

static struct ibv_qp *make(struct program *p, uint32_t send_sge, uint32_t inline_bytes, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq, .recv_cq = p->cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = send_sge, .max_recv_sge = 1,
			.max_inline_data = inline_bytes},
	};
	struct ibv_qp *qp = ibv_create_qp(p->pd, &init);

	assert_non_null(qp);
	return qp;
}

/* The first QP of such a kind, with which softibd grants @count */
static void make_first(struct program *p, uint32_t count)
{
	fake_grant(p->fake, count);
	p->qp[0] = make(p, 1, 16, NULL);
}

static void a_granted_qp_is_told(void **state)
{
	struct program *p = *state;
	struct ibv_qp *qp[3];
	int objects;

	make_first(p, 2);
	objects = fake_objects(p->fake);
	qp[0] = make(p, 1, 16, NULL);
	qp[1] = make(p, 1, 16, NULL);
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 2);
	assert_int_equal(qp[0]->handle, p->qp[0]->handle + 1); /* in their order */
	assert_int_equal(qp[0]->qp_num, p->qp[0]->qp_num + 1);
	assert_int_equal(qp[1]->qp_num, p->qp[0]->qp_num + 2);
	qp[2] = make(p, 1, 16, NULL); /* none is left */
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 2);
	assert_int_equal(fake_objects(p->fake), objects + 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(fake_objects(p->fake), objects);
}

/* One QP is granted, and it is not taken by @qp, which is asked for. */
static void assert_not_granted(struct program *p, struct ibv_qp *qp)
{
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(p->qp[0]), 0);
	make_first(p, 1);
}

/* softibd says how much inline data a QP has, and may refuse what it has not granted. */
static void what_was_not_granted_is_asked(void **state)
{
	struct program *p = *state;
	struct ibv_qp_init_attr ud = {.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_UD,
				      .cap = {1, 1, 1, 1, 16}};
	struct ibv_qp *rc;

	make_first(p, 1);
	assert_not_granted(p, make(p, 2, 16, NULL));
	assert_not_granted(p, make(p, 1, 17, NULL));
	assert_not_granted(p, ibv_create_qp(p->pd, &ud));
	fake_refuse_creations(p->fake, true);
	rc = make(p, 1, 16, NULL);
	fake_refuse_creations(p->fake, false);
	assert_not_granted(p, rc);
	p->qp[1] = make(p, 1, 16, NULL);
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 1);
}

/* softibd has ended the grant when it is asked, whatever for. */
static void to_ask_ends_the_grant(void **state)
{
	struct program *p = *state;

	make_first(p, 2);
	assert_int_equal(ibv_destroy_qp(make(p, 2, 16, NULL)), 0);
	p->qp[1] = make(p, 1, 16, NULL);
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 0);
}

/* softibd refuses an SRQ of XRC for a QP of another type. */
static void an_srq_of_xrc_is_asked(void **state)
{
	struct program *p = *state;
	struct ibv_xrcd_init_attr domain = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					    .fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(p->context, &domain);
	struct ibv_srq_init_attr_ex attr = {
		.attr = {4, 1, 0}, .srq_type = IBV_SRQT_XRC, .pd = p->pd, .xrcd = xrcd, .cq = p->cq,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ,
	};
	struct ibv_srq *xrc = ibv_create_srq_ex(p->context, &attr);
	struct ibv_srq *basic = ibv_create_srq(p->pd, &(struct ibv_srq_init_attr){.attr = {4, 1, 0}});

	assert_true(xrc && basic);
	make_first(p, 1);
	p->qp[1] = make(p, 1, 16, basic);
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 1);
	assert_int_equal(ibv_destroy_qp(p->qp[0]), 0);
	assert_int_equal(ibv_destroy_qp(p->qp[1]), 0);
	make_first(p, 1);
	p->qp[1] = make(p, 1, 16, xrc);
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(p->qp[i]), 0);
		p->qp[i] = NULL;
	}
	assert_int_equal(ibv_destroy_srq(xrc), 0);
	assert_int_equal(ibv_destroy_srq(basic), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* softibd has raised IBV_EVENT_QP_FATAL, and knows no such QP. */
static void a_granted_qp_that_softibd_lost_can_be_destroyed(void **state)
{
	struct program *p = *state;
	struct ibv_qp *qp;

	make_first(p, 1);
	qp = make(p, 1, 16, NULL);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_DESTROY_QP, -EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), EBUSY);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_DESTROY_QP, -EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_DESTROY_QP, -EINVAL);
	assert_int_equal(ibv_destroy_qp(p->qp[0]), EINVAL); /* one that was asked for */
}

/* --- flows that softibd answers ahead --- */

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_int_equal(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS), 0);
}

static struct ibv_qp_attr rtr_to(uint32_t qpn)
{
	return (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qpn,
				    .ah_attr = {.dlid = FAKE_LID, .port_num = 1}};
}

static void expect(uint32_t program, uint32_t qpn, uint32_t lane, uint32_t owner)
{
	const struct abi_flow_answer answer = {
		.program = program,
		.key = {.port_num = 1, .dest_qpn = qpn, .dlid = FAKE_LID, .pkey = 0xffff},
		.resp = {.lane = lane, .epoch = 1, .owner = owner, .mtu_bytes = 4096},
	};

	softib_expect_flow(&answer);
}

/* A QP goes to RTR. Return: is softibd asked? */
static bool is_asked(struct program *p, struct ibv_qp_attr attr)
{
	const int before = fake_connected(p->fake);
	struct ibv_qp *qp = make(p, 1, 16, NULL);
	struct ib_uverbs_modify_qp last;

	to_init(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr, TO_RTR), 0);
	wait_for_softibd(p);
	fake_modified(p->fake, &last);
	assert_int_equal(last.qp_state, IBV_QPS_RTR);
	assert_int_equal(last.dest_qp_num, attr.dest_qp_num);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	return fake_connected(p->fake) != before;
}

static void a_flow_that_is_known_is_not_asked(void **state)
{
	struct program *p = *state;
	struct ibv_qp_attr attr;

	fake_give_lane(p->fake);
	assert_true(is_asked(p, rtr_to(8))); /* brings the lane */
	expect(FAKE_PROGRAM, 9, FAKE_LANE, 3);
	assert_true(is_asked(p, rtr_to(10))); /* of another QP */
	assert_false(is_asked(p, rtr_to(9)));
	assert_true(is_asked(p, rtr_to(9))); /* once only */

	expect(FAKE_PROGRAM + 1, 9, FAKE_LANE, 3); /* of another context */
	assert_true(is_asked(p, rtr_to(9)));
	expect(FAKE_PROGRAM, 9, FAKE_LANE + 1, 3); /* this process has no such lane */
	assert_true(is_asked(p, rtr_to(9)));
	expect(FAKE_PROGRAM, 9, FAKE_LANE, 0); /* softibd does not know who owns the peer */
	assert_true(is_asked(p, rtr_to(9)));
	expect(FAKE_PROGRAM, 9, FAKE_LANE, 3);
	attr = rtr_to(9), attr.ah_attr.sl = 1; /* another flow */
	assert_true(is_asked(p, attr));
}

/* What softibd might refuse is asked, though the flow is known. */
static void rtr_that_may_be_refused_is_asked(void **state)
{
	struct program *p = *state;
	struct ibv_qp_attr attr;

	fake_give_lane(p->fake);
	assert_true(is_asked(p, rtr_to(8)));
	expect(FAKE_PROGRAM, 9, FAKE_LANE, 3);
	attr = rtr_to(9), attr.max_dest_rd_atomic = 9; /* more than the device has */
	assert_true(is_asked(p, attr));
	attr = rtr_to(9), attr.min_rnr_timer = 32;
	assert_true(is_asked(p, attr));
	attr = rtr_to(9), attr.ah_attr.is_global = 1;
	assert_true(is_asked(p, attr));
	assert_false(is_asked(p, rtr_to(9))); /* it was left */
}

/* --- programs of the RDMA CM, whose library says when softibd must know; the last case --- */

static void what_is_kept_goes_out_in_time(void **state)
{
	struct program *p = *state;
	struct ibv_qp_attr rtr = rtr_to(9), rts = {.qp_state = IBV_QPS_RTS, .timeout = 14};
	struct ib_uverbs_modify_qp last;
	struct ibv_qp *qp[20];

	fake_give_lane(p->fake);
	assert_true(is_asked(p, rtr_to(8)));
	make_first(p, 16);
	softib_tell_now();
	for (int i = 0; i < 15; i++)
		qp[i] = make(p, 1, 16, NULL);
	assert_int_equal(fake_created(p->fake), 0); /* they are kept */
	softib_tell_now();
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 15);

	qp[15] = make(p, 1, 16, NULL);
	to_init(qp[15]);
	expect(FAKE_PROGRAM, 9, FAKE_LANE, 3);
	assert_int_equal(ibv_modify_qp(qp[15], &rtr, TO_RTR), 0);
	assert_int_equal(fake_created(p->fake), 15);
	assert_int_equal(ibv_modify_qp(qp[15], &rts, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC), 0);
	let_softibd_look(); /* RTS is told at once, and all that was kept */
	assert_int_equal(fake_created(p->fake), 16);
	wait_for_softibd(p);
	fake_modified(p->fake, &last);
	assert_int_equal(last.qp_state, IBV_QPS_RTS);
	for (int i = 0; i < 16; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
}

/* More than there is room for goes out in several messages. */
static void much_that_is_kept_goes_out_in_parts(void **state)
{
	struct program *p = *state;
	struct ibv_qp *qp[64];
	int made = 0;

	softib_tell_now();
	make_first(p, 16);
	for (; made < 16; made++) {
		qp[made] = make(p, 1, 16, NULL);
		to_init(qp[made]);
	}
	wait_for_softibd(p);
	assert_int_equal(fake_created(p->fake), 16);
	while (made)
		assert_int_equal(ibv_destroy_qp(qp[--made]), 0);
}

/* --- the ring --- */

/* Tell often enough by messages, so that libibverbs asks for a ring. The QPs that are made are destroyed. */
static void come_to_ring(struct program *p)
{
	for (int i = 0; i <= ABI_TOLD_TIMES; i++) {
		struct ibv_qp *qp = make(p, 1, 16, NULL);

		assert_int_equal(ibv_destroy_qp(qp), 0);
		make_first(p, 1);
		qp = make(p, 1, 16, NULL);
		softib_tell_now();
		assert_int_equal(ibv_destroy_qp(qp), 0);
		assert_int_equal(ibv_destroy_qp(p->qp[0]), 0);
	}
	p->qp[0] = NULL;
}

static void what_is_told_often_goes_by_a_ring(void **state)
{
	struct program *p = *state;
	struct ibv_qp *qp[16];
	int before;

	fake_give_rings(p->fake);
	softib_tell_now();
	come_to_ring(p);
	make_first(p, 16);
	wait_for_softibd(p);
	before = fake_told(p->fake);
	for (int i = 0; i < 8; i++)
		qp[i] = make(p, 1, 16, NULL);
	assert_int_equal(fake_told(p->fake), before); /* they are kept */
	softib_tell_now();
	let_softibd_look(); /* no message follows */
	assert_int_equal(fake_told(p->fake), before + 8);
	for (int i = 8; i < 16; i++)
		qp[i] = make(p, 1, 16, NULL);
	wait_for_softibd(p); /* before the message, whether it was let go or not */
	assert_int_equal(fake_told(p->fake), before + 16);
	for (int i = 0; i < 16; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
}

/* What was kept for a message goes out before what the first ring has. */
static void the_order_remains_when_the_ring_comes(void **state)
{
	struct program *p = *state;
	struct ibv_qp *qp[16];
	int made = 0;

	fake_give_rings(p->fake);
	softib_tell_now();
	for (int i = 1; i < ABI_TOLD_TIMES; i++) { /* the next message is the last one */
		make_first(p, 1);
		qp[0] = make(p, 1, 16, NULL);
		softib_tell_now();
		assert_int_equal(ibv_destroy_qp(qp[0]), 0);
		assert_int_equal(ibv_destroy_qp(p->qp[0]), 0);
	}
	make_first(p, 16);
	for (; made < 16; made++) { /* a message has no room for all */
		qp[made] = make(p, 1, 16, NULL);
		if (made < 4)
			to_init(qp[made]);
	}
	softib_tell_now();
	wait_for_softibd(p);
	assert_true(fake_told(p->fake) > 0);
	assert_int_equal(fake_created(p->fake), 16 + ABI_TOLD_TIMES - 1);
	assert_false(fake_disordered(p->fake));
	while (made)
		assert_int_equal(ibv_destroy_qp(qp[--made]), 0);
}

/* A program that keeps more than the ring has room for waits until softibd has run it. */
static void a_full_ring_is_run(void **state)
{
	enum { QPS = 600 };
	struct program *p = *state;
	struct ibv_qp *qp[QPS];
	int before;

	fake_give_rings(p->fake);
	softib_tell_now();
	come_to_ring(p);
	assert_true(QPS * sizeof(struct ib_uverbs_modify_qp) > ABI_TOLD_RING_BYTES);
	for (int i = 0; i < QPS; i++)
		qp[i] = make(p, 1, 16, NULL);
	before = fake_told(p->fake);
	for (int i = 0; i < QPS; i++)
		to_init(qp[i]);
	wait_for_softibd(p);
	assert_int_equal(fake_told(p->fake), before + QPS);
	for (int i = 0; i < QPS; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
}

/* What a parent keeps in its ring, a forked child does not let softibd see. */
static void a_child_does_not_tell(void **state)
{
	struct program *p = *state;
	int before, status;
	struct ibv_qp *qp;
	pid_t child;

	fake_give_rings(p->fake);
	softib_tell_now();
	come_to_ring(p);
	make_first(p, 1);
	before = fake_told(p->fake);
	qp = make(p, 1, 16, NULL); /* is kept */
	child = fork();
	if (!child) {
		softib_tell_now();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	let_softibd_look();
	assert_int_equal(fake_told(p->fake), before);
	softib_tell_now();
	let_softibd_look();
	assert_int_equal(fake_told(p->fake), before + 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_granted_qp_is_told),
		CASE(what_was_not_granted_is_asked),
		CASE(to_ask_ends_the_grant),
		CASE(an_srq_of_xrc_is_asked),
		CASE(a_granted_qp_that_softibd_lost_can_be_destroyed),
		CASE(a_flow_that_is_known_is_not_asked),
		CASE(rtr_that_may_be_refused_is_asked),
		CASE(what_is_kept_goes_out_in_time),
		CASE(much_that_is_kept_goes_out_in_parts),
		CASE(what_is_told_often_goes_by_a_ring),
		CASE(the_order_remains_when_the_ring_comes),
		CASE(a_full_ring_is_run),
		CASE(a_child_does_not_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
