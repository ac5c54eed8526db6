/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibverbs as a program uses it, against a softibd whose port is cabled to
 * itself: both QPs of each test belong to this program. Who runs the engine
 * is what many of these tests are about: tests that wait call nothing of the
 * library that polls.
 */
#include "program.h"

/* --- objects --- */

static void the_device_is_described(void **state)
{
	struct program *p = *state;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	struct ibv_device_attr_ex ex;
	union ibv_gid gid;
	__be16 pkey;

	assert_string_equal(ibv_get_device_name(p->context->device), "softib0");
	assert_int_equal(be64toh(ibv_get_device_guid(p->context->device)), 0x0002c90300000001);
	assert_int_equal(ibv_query_port(p->context, 1, &port), 0);
	assert_int_equal(port.lid, FAKE_LID);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
	assert_int_equal(ibv_query_port(p->context, 2, &port), EINVAL);
	assert_int_equal(ibv_query_gid(p->context, 1, 0, &gid), 0);
	assert_int_equal(gid.raw[0], 0xfe);
	assert_int_equal(ibv_query_gid(p->context, 1, 1, &gid), 0); /* empty: zeros */
	assert_int_equal(gid.raw[0], 0);
	assert_int_equal(ibv_query_gid_ex(p->context, 1, 1, &entry, 0), ENODATA);
	assert_int_equal(ibv_query_gid_table(p->context, &entry, 1, 0), 1);
	assert_int_equal(ibv_query_pkey(p->context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(ibv_get_pkey_index(p->context, 1, htobe16(0xffff)), 0);
	assert_int_equal(ibv_get_pkey_index(p->context, 1, htobe16(0x1234)), -1);
	assert_int_equal(ibv_query_device_ex(p->context, NULL, &ex), 0);
	assert_int_equal(ex.phys_port_cnt_ex, 1);
}

static void a_device_stays_the_same_pointer(void **state)
{
	struct program *p = *state;
	struct ibv_device **list = ibv_get_device_list(NULL);

	assert_ptr_equal(list[0], p->context->device);
	ibv_free_device_list(list);
}

/* ibv_set_ece(3): options that are not known are not taken over */
static void options_of_a_connection_are_of_one_vendor(void **state)
{
	struct program *p = *state;
	struct ibv_ece ece, offered;

	assert_int_equal(ibv_query_ece(p->qp[0], &ece), 0);
	assert_true(ece.vendor_id && !ece.options && !ece.comp_mask);
	offered = ece;
	offered.options = 0x30;
	assert_int_equal(ibv_set_ece(p->qp[0], &offered), 0);
	assert_int_equal(ibv_query_ece(p->qp[0], &offered), 0);
	assert_memory_equal(&offered, &ece, sizeof(ece));
	offered.vendor_id++;
	assert_int_equal(ibv_set_ece(p->qp[0], &offered), EINVAL);
	offered = ece;
	offered.comp_mask = 1;
	assert_int_equal(ibv_set_ece(p->qp[0], &offered), EINVAL);
}

static void what_is_not_supported_says_so(void **state)
{
	struct program *p = *state;
	struct ibv_qp_init_attr init = {.send_cq = p->cq, .recv_cq = p->cq,
					.qp_type = IBV_QPT_RAW_PACKET};

	assert_null(ibv_create_qp(p->pd, &init));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void bad_requests_are_refused(void **state)
{
	struct program *p = *state;
	struct ibv_qp_init_attr init = {.send_cq = p->cq, .recv_cq = p->cq,
					.qp_type = IBV_QPT_RC, .cap.max_inline_data = 4096};
	struct ibv_ah_attr ah = {.dlid = 1, .port_num = 2};

	assert_null(ibv_create_qp(p->pd, &init));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(p->context, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_cq(p->context, 1, NULL, NULL, 1));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(p->pd, p->memory, 1, IBV_ACCESS_REMOTE_WRITE));
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_reg_mr(p->pd, (void *)4096, 4096, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_reg_mr(p->pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	assert_null(ibv_create_ah(p->pd, &ah));
	assert_int_equal(errno, EINVAL);
}

static void address_handles_are_counted(void **state)
{
	struct program *p = *state;
	struct ibv_ah_attr attr = {.dlid = 1, .port_num = 1};
	struct ibv_ah *ah[3];

	for (unsigned i = 0; i < sizeof(ah) / sizeof(*ah); i++)
		assert_non_null(ah[i] = ibv_create_ah(p->pd, &attr));
	assert_null(ibv_create_ah(p->pd, &attr));
	assert_int_equal(errno, ENOMEM);
	for (unsigned i = 0; i < sizeof(ah) / sizeof(*ah); i++) {
		assert_int_equal(ibv_destroy_ah(ah[i]), 0);
		assert_non_null(ah[i] = ibv_create_ah(p->pd, &attr));
	}
	for (unsigned i = 0; i < sizeof(ah) / sizeof(*ah); i++)
		assert_int_equal(ibv_destroy_ah(ah[i]), 0);
}

static void events_are_moderated_within_limits(void **state)
{
	struct program *p = *state;
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 2, .cq_period = 1001}};

	assert_int_equal(ibv_modify_cq(p->cq, &attr), EINVAL);
	attr.moderate.cq_period = 1000;
	assert_int_equal(ibv_modify_cq(p->cq, &attr), 0);
	attr.attr_mask |= IBV_CQ_ATTR_RESERVED;
	assert_int_equal(ibv_modify_cq(p->cq, &attr), EINVAL);
}

/* The progress thread raises an event that has waited long enough. */
static void a_moderated_event_comes_to_who_sleeps(void **state)
{
	struct program *p = *state;
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 100, .cq_period = 1000}};
	struct ibv_cq *cq;
	void *ctx;

	make_rc_pair(p);
	assert_int_equal(ibv_modify_cq(p->cq, &attr), 0);
	assert_int_equal(ibv_req_notify_cq(p->cq, 0), 0);
	post(p, IBV_WR_RDMA_WRITE, 8);
	assert_int_equal(ibv_get_cq_event(p->channel, &cq, &ctx), 0);
	assert_ptr_equal(cq, p->cq);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
}

static void softibd_has_the_last_word(void **state)
{
	struct program *p = *state;
	int before = fake_objects(p->fake);

	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_CREATE_CQ, -ENOMEM);
	assert_null(ibv_create_cq(p->context, 1, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_DESTROY_CQ, -EBUSY);
	assert_int_equal(ibv_destroy_cq(p->cq), EBUSY);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_DEREG_MR, -EBUSY);
	assert_int_equal(ibv_dereg_mr(p->mr), EBUSY);
	assert_int_equal(fake_objects(p->fake), before);
}

static struct ibv_xrcd *open_domain(struct program *p, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd,
		.oflags = oflags,
	};

	return ibv_open_xrcd(p->context, &attr);
}

/* Each opening of an XRC domain is softibd's to judge. */
static void an_xrc_domain_is_opened_by_softibd(void **state)
{
	struct program *p = *state;
	int before = fake_objects(p->fake), file = memfd_create("one", MFD_CLOEXEC);
	struct ibv_xrcd *a = open_domain(p, file, O_CREAT), *b = open_domain(p, -1, O_CREAT);

	assert_true(a && b && a != b);
	assert_int_equal(fake_objects(p->fake), before + 2);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_OPEN_XRCD, -EINVAL);
	assert_null(open_domain(p, file, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	assert_null(open_domain(p, 1000, O_CREAT));
	assert_int_equal(errno, EBADF);
	assert_null(open_domain(p, file, O_CREAT | O_TRUNC));
	assert_int_equal(errno, EINVAL);
	assert_null(open_domain(p, -1, 0));
	assert_int_equal(errno, EINVAL);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_CLOSE_XRCD, -EBUSY);
	assert_int_equal(ibv_close_xrcd(b), EBUSY);
	assert_int_equal(ibv_close_xrcd(b), 0);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(fake_objects(p->fake), before);
	close(file);
}

static void a_channel_in_use_stays(void **state)
{
	struct program *p = *state;

	assert_int_equal(ibv_destroy_comp_channel(p->channel), EBUSY);
}

/* --- traffic --- */

static void send_to_a_program_that_polls(void **state)
{
	struct program *p = *state;
	unsigned seen = 0;

	make_rc_pair(p);
	post_recv(p, 1);
	post(p, IBV_WR_SEND, 2);
	for (int i = 0; i < 2; i++) {
		struct ibv_wc wc = poll_one(p);

		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		seen |= 1u << wc.wr_id;
	}
	assert_int_equal(seen, 1 << 1 | 1 << 2);
	expect_received(p);
}

/* The target calls nothing at all, and looks at its memory only. */
static void write_to_a_program_that_spins_on_memory(void **state)
{
	struct program *p = *state;
	volatile uint8_t *last;

	make_rc_pair(p);
	last = p->memory + 2 * BYTES - 1;
	post(p, IBV_WR_RDMA_WRITE, 1);
	while (*last != p->memory[BYTES - 1])
		;
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
	expect_received(p);
}

/* As perftest's write latency does: polls happen, then memory is watched.
 * The thread must notice although it was told that the program polls. */
static void write_after_busy_polling(void **state)
{
	struct program *p = *state;
	volatile uint8_t *last;
	struct ibv_wc wc;

	make_rc_pair(p);
	last = p->memory + 2 * BYTES - 1;
	for (int round = 1; round <= 5; round++) {
		for (int i = 0; i < 20000; i++)
			assert_int_equal(ibv_poll_cq(p->cq, 1, &wc), 0);
		p->memory[BYTES - 1] = (uint8_t)round;
		post(p, IBV_WR_RDMA_WRITE, 1);
		while (*last != round)
			;
		assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
	}
}

static void events_wake_a_sleeping_program(void **state)
{
	struct program *p = *state;

	make_rc_pair(p);
	for (int i = 0; i < 50; i++) {
		struct ibv_wc wc;
		struct ibv_cq *cq;
		void *ctx;
		int got = 0;

		assert_int_equal(ibv_req_notify_cq(p->cq, 0), 0);
		post_recv(p, 1);
		post(p, IBV_WR_SEND, 2);
		while (got < 2) {
			assert_int_equal(ibv_get_cq_event(p->channel, &cq, &ctx), 0);
			assert_ptr_equal(cq, p->cq);
			assert_ptr_equal(ctx, p);
			ibv_ack_cq_events(cq, 1);
			assert_int_equal(ibv_req_notify_cq(p->cq, 0), 0);
			for (; ibv_poll_cq(p->cq, 1, &wc) > 0; got++)
				assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
		expect_received(p);
		/* an event may be left of the last arming: take it */
		fcntl(p->channel->fd, F_SETFL, fcntl(p->channel->fd, F_GETFL) | O_NONBLOCK);
		while (!ibv_get_cq_event(p->channel, &cq, &ctx))
			ibv_ack_cq_events(cq, 1);
		assert_int_equal(errno, EAGAIN);
		fcntl(p->channel->fd, F_SETFL, fcntl(p->channel->fd, F_GETFL) & ~O_NONBLOCK);
	}
}

static void the_channel_can_be_polled(void **state)
{
	struct program *p = *state;
	struct pollfd fd = {.fd = p->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *ctx;

	make_rc_pair(p);
	assert_int_equal(poll(&fd, 1, 0), 0);
	ibv_req_notify_cq(p->cq, 0);
	post(p, IBV_WR_RDMA_WRITE, 1);
	assert_int_equal(poll(&fd, 1, -1), 1);
	assert_int_equal(ibv_get_cq_event(p->channel, &cq, &ctx), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
}

/* Who polled, arms and sleeps: what came in between is told at once, whichever way the
 * program waits. The receives' CQ is never polled; the sends' says when it has one. */
static void arming_late_misses_nothing(void **state)
{
	struct program *p = *state;
	struct pollfd fd = {.fd = p->channel->fd, .events = POLLIN};
	struct ibv_cq *sends = p->cq, *cq;
	void *ctx;

	p->qp[0] = make_qp(p, IBV_QPT_RC);
	p->cq = ibv_create_cq(p->context, 64, p, p->channel, 0);
	p->qp[1] = make_qp(p, IBV_QPT_RC);
	connect_rc(p->qp[0], p->qp[1]->qp_num, TIMEOUT_ENC_PATIENT);
	connect_rc(p->qp[1], p->qp[0]->qp_num, TIMEOUT_ENC_PATIENT);
	for (int i = 0; i < 20; i++) {
		struct ibv_cq *receives = p->cq;

		post_recv(p, 1);
		post(p, IBV_WR_SEND, 2);
		p->cq = sends;
		poll_one(p);
		p->cq = receives;
		assert_int_equal(poll(&fd, 1, 0), 0);
		assert_int_equal(ibv_req_notify_cq(receives, 0), 0);
		if (i % 2)
			assert_int_equal(poll(&fd, 1, -1), 1);
		assert_int_equal(ibv_get_cq_event(p->channel, &cq, &ctx), 0);
		assert_ptr_equal(cq, receives);
		ibv_ack_cq_events(cq, 1);
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(poll_one(p).opcode, IBV_WC_RECV);
	assert_int_equal(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	assert_int_equal(ibv_destroy_cq(p->cq), 0);
	p->cq = sends;
}

/* Nobody answers: the retry timer runs though the program sleeps. */
static void timers_run_while_the_program_sleeps(void **state)
{
	struct program *p = *state;
	struct ibv_cq *cq;
	void *ctx;

	p->qp[0] = make_qp(p, IBV_QPT_RC);
	connect_rc(p->qp[0], 0x4711, TIMEOUT_ENC_SHORT);
	ibv_req_notify_cq(p->cq, 0);
	post(p, IBV_WR_SEND, 1);
	assert_int_equal(ibv_get_cq_event(p->channel, &cq, &ctx), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(poll_one(p).status, IBV_WC_RETRY_EXC_ERR);
}

/* rdma-core's rule: UCX, for one, reads the field as what it was last told. */
static void a_query_notes_the_state_when_it_is_asked_for(void **state)
{
	struct program *p = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	p->qp[0] = make_qp(p, IBV_QPT_RC);
	connect_rc(p->qp[0], 0x4711, TIMEOUT_ENC_SHORT);
	post(p, IBV_WR_SEND, 1);
	assert_int_equal(poll_one(p).status, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_query_qp(p->qp[0], &attr, IBV_QP_CAP, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(p->qp[0]->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(p->qp[0], &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(p->qp[0]->state, IBV_QPS_ERR);
}

static void datagrams_come_with_a_way_back(void **state)
{
	struct program *p = *state;
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
	struct ibv_ah_attr to = {.dlid = FAKE_LID, .port_num = 1, .is_global = 1,
				 .grh = {.dgid.raw = {0xfe, 0x80, [15] = 1}, .hop_limit = 9,
					 .flow_label = 0x12345, .traffic_class = 0x5a}};
	struct ibv_sge from = {(uintptr_t)p->memory, 100, p->mr->lkey};
	struct ibv_ah *ah = ibv_create_ah(p->pd, &to);
	struct ibv_send_wr wr = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED}, *bad;
	struct ibv_ah_attr back;
	struct ibv_wc wc;

	assert_non_null(ah);
	for (int i = 0; i < 2; i++) {
		p->qp[i] = make_qp(p, IBV_QPT_UD);
		assert_int_equal(ibv_modify_qp(p->qp[i], &rtr, IBV_QP_STATE), 0);
		assert_int_equal(ibv_modify_qp(p->qp[i], &rts, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	}
	post_recv(p, 1);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = p->qp[1]->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	assert_int_equal(ibv_post_send(p->qp[0], &wr, &bad), 0);
	do {
		wc = poll_one(p);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	} while (wc.opcode != IBV_WC_RECV);
	assert_int_equal(wc.byte_len, 140);
	assert_int_equal(wc.src_qp, p->qp[0]->qp_num);
	assert_memory_equal(p->memory + BYTES + 40, p->memory, 100);
	assert_int_equal(ibv_init_ah_from_wc(p->context, 1, &wc, (void *)(p->memory + BYTES), &back),
			 0);
	assert_int_equal(back.dlid, FAKE_LID);
	assert_int_equal(back.is_global, 1);
	assert_int_equal(back.grh.flow_label, 0x12345);
	assert_int_equal(back.grh.traffic_class, 0x5a);
	assert_memory_equal(back.grh.dgid.raw, to.grh.dgid.raw, 16);
	ibv_destroy_ah(ah);
	/* let the sender's completion come too, whatever the order was */
	while (ibv_poll_cq(p->cq, 1, &wc) > 0)
		;
}

static void the_builder_posts_what_it_collected(void **state)
{
	struct program *p = *state;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC, .pd = p->pd,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2,
			.max_recv_sge = 1, .max_inline_data = 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	uint8_t *to = p->memory + BYTES;
	char text[] = "lent only until the call returns";
	struct ibv_qp_ex *ex;

	p->qp[0] = ibv_create_qp_ex(p->context, &init);
	assert_non_null(p->qp[0]);
	assert_int_equal(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	p->qp[1] = make_qp(p, IBV_QPT_RC);
	connect_rc(p->qp[0], p->qp[1]->qp_num, TIMEOUT_ENC_PATIENT);
	connect_rc(p->qp[1], p->qp[0]->qp_num, TIMEOUT_ENC_PATIENT);
	ex = ibv_qp_to_qp_ex(p->qp[0]);
	assert_null(ibv_qp_to_qp_ex(p->qp[1]));
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ex->wr_id = 1;
	ibv_wr_rdma_write(ex, p->mr->rkey, (uintptr_t)to);
	ibv_wr_set_sge(ex, p->mr->lkey, (uintptr_t)p->memory, 1000);
	ex->wr_id = 2;
	ibv_wr_rdma_write(ex, p->mr->rkey, (uintptr_t)(to + 1000));
	ibv_wr_set_inline_data(ex, text, sizeof(text));
	memset(text, 0, sizeof(text));
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(poll_one(p).wr_id, 1);
	assert_int_equal(poll_one(p).wr_id, 2);
	assert_memory_equal(to, p->memory, 1000);
	assert_string_equal((char *)to + 1000, "lent only until the call returns");
	/* the second is too long for any QP, which only the post can tell */
	ibv_wr_start(ex);
	ex->wr_id = 3;
	ibv_wr_rdma_write(ex, p->mr->rkey, (uintptr_t)to);
	ibv_wr_set_sge(ex, p->mr->lkey, (uintptr_t)p->memory, 8);
	ibv_wr_rdma_write(ex, p->mr->rkey, (uintptr_t)to);
	ibv_wr_set_sge(ex, p->mr->lkey, (uintptr_t)p->memory, 3u << 30);
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ex->wr_id = 4;
	ibv_wr_rdma_write(ex, p->mr->rkey, (uintptr_t)to);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(poll_one(p).wr_id, 4);
}

static void a_mistake_posts_nothing(void **state)
{
	struct program *p = *state;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = p->cq, .recv_cq = p->cq, .qp_type = IBV_QPT_RC, .pd = p->pd,
		.cap = {.max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = 8},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_ex *ex;
	char nine[9] = {0};

	p->qp[0] = ibv_create_qp_ex(p->context, &init);
	assert_non_null(p->qp[0]);
	ex = ibv_qp_to_qp_ex(p->qp[0]);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, nine, sizeof(nine));
	assert_int_equal(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	for (int i = 0; i < 3; i++)
		ibv_wr_send(ex);
	assert_int_equal(ibv_wr_complete(ex), ENOMEM);
	init.send_ops_flags = IBV_QP_EX_WITH_TSO;
	assert_null(ibv_create_qp_ex(p->context, &init));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void the_extended_cq_reads_fields(void **state)
{
	struct program *p = *state;
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(p->context, &attr);
	struct ibv_poll_cq_attr poll_attr = {0};
	struct ibv_cq *plain = p->cq;
	int rc;

	assert_non_null(ex);
	p->cq = ibv_cq_ex_to_cq(ex);
	make_rc_pair(p);
	assert_int_equal(ibv_start_poll(ex, &poll_attr), ENOENT);
	post_recv(p, 1);
	post(p, IBV_WR_SEND, 2);
	while ((rc = ibv_start_poll(ex, &poll_attr)) == ENOENT)
		;
	assert_int_equal(rc, 0);
	if (ex->wr_id == 2) { /* the send's may come first or second */
		while (ibv_next_poll(ex) == ENOENT)
			;
	}
	assert_int_equal(ex->wr_id, 1);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(ex), BYTES);
	assert_true(ibv_wc_read_completion_ts(ex) > 0);
	assert_null(ex->read_slid); /* not asked for */
	ibv_end_poll(ex);
	for (int i = 0; i < 2; i++) {
		ibv_destroy_qp(p->qp[i]);
		p->qp[i] = NULL;
	}
	assert_int_equal(ibv_destroy_cq(p->cq), 0);
	p->cq = plain;
}

/* --- asynchronous events, death, fork --- */

static void srq_limit_raises_an_event_to_be_acknowledged(void **state)
{
	struct program *p = *state;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(p->pd, &init);
	struct ibv_sge sge = {(uintptr_t)(p->memory + BYTES), BYTES, p->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp_init_attr qp_init = {.send_cq = p->cq, .recv_cq = p->cq, .srq = srq,
					   .qp_type = IBV_QPT_RC};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct ibv_async_event event;

	assert_non_null(srq);
	p->qp[0] = make_qp(p, IBV_QPT_RC);
	p->qp[1] = ibv_create_qp(p->pd, &qp_init);
	assert_int_equal(ibv_modify_qp(p->qp[1], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
	connect_rc(p->qp[0], p->qp[1]->qp_num, TIMEOUT_ENC_PATIENT);
	connect_rc(p->qp[1], p->qp[0]->qp_num, TIMEOUT_ENC_PATIENT);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	post(p, IBV_WR_SEND, 1);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
	do { /* COMM_EST of the QP may come before */
		assert_int_equal(ibv_get_async_event(p->context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_int_equal(ibv_destroy_qp(p->qp[1]), 0);
	p->qp[1] = NULL;
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void death_of_softibd_is_a_fatal_event(void **state)
{
	struct program *p = *state;
	struct ibv_async_event event;
	struct ibv_wc wc;

	make_rc_pair(p);
	post_recv(p, 1);
	fake_die(p->fake);
	do {
		assert_int_equal(ibv_get_async_event(p->context, &event), 0);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_DEVICE_FATAL);
	wc = poll_one(p); /* what was posted comes back */
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 1);
	post(p, IBV_WR_SEND, 2);
	assert_int_equal(poll_one(p).status, IBV_WC_WR_FLUSH_ERR);
	assert_null(ibv_alloc_pd(p->context));
	assert_int_equal(errno, EIO);
}

/* Only what waits is a point where a thread may be cancelled: in any other
 * call it would keep locks, and softibd's answer would be the next caller's. */
static void *is_cancelled(void *arg)
{
	struct program *p = arg;
	struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_pd *pd;

	pthread_cancel(pthread_self());
	pd = ibv_alloc_pd(p->context);
	if (!pd || ibv_dealloc_pd(pd) || ibv_destroy_qp(p->qp[1]))
		return NULL;
	p->qp[1] = NULL;
	/* it raises an event, with the engine's lock held */
	if (ibv_modify_qp(p->qp[0], &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY))
		return NULL;
	p->reached = true;
	pthread_testcancel();
	return NULL;
}

static void a_cancelled_thread_keeps_no_lock(void **state)
{
	struct program *p = *state;
	struct ibv_async_event event;
	pthread_t thread;
	void *ended;

	make_rc_pair(p);
	assert_int_equal(pthread_create(&thread, NULL, is_cancelled, p), 0);
	assert_int_equal(pthread_join(thread, &ended), 0);
	assert_true(p->reached);
	assert_ptr_equal(ended, PTHREAD_CANCELED);
	assert_int_equal(ibv_get_async_event(p->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	ibv_ack_async_event(&event);
}

/* Who could not take a lane, for want of descriptors, says so: else softibd
 * would hold it for taken, and never offer it again. */
static void a_lane_that_did_not_come_is_refused(void **state)
{
	struct program *p = *state;

	make_rc_pair(p);
	assert_int_equal(fake_hear_refusal(p->fake), FAKE_LANE);
	post_recv(p, 1);
	post(p, IBV_WR_SEND, 2);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
}

/* softibd has read what it does not answer when it answers what was sent later. */
static struct ib_uverbs_modify_qp modified(struct program *p, int times)
{
	struct ib_uverbs_modify_qp last;

	assert_int_equal(ibv_dealloc_pd(ibv_alloc_pd(p->context)), 0);
	assert_int_equal(fake_modified(p->fake, &last), times);
	return last;
}

/* softibd need not be told that access alone changes before the peer can reach the QP: the
 * transition to RTR tells. */
static void access_that_changes_in_init_is_told_with_rtr(void **state)
{
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
	struct program *p = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp *qp = p->qp[0] = make_qp(p, IBV_QPT_RC);
	struct ibv_qp_init_attr unused;
	int before = 1; /* the way to INIT */

	modified(p, before);
	assert_int_equal(ibv_modify_qp(qp, &attr, init), 0);
	modified(p, before);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_ACCESS_FLAGS, &unused), 0);
	assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);

	/* what softibd has to check it is told at once */
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = 1};
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_MODIFY_QP, -EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX), EINVAL);

	p->qp[1] = make_qp(p, IBV_QPT_RC);
	before++; /* its own way to INIT */
	connect_rc(qp, p->qp[1]->qp_num, TIMEOUT_ENC_PATIENT);
	assert_int_equal(modified(p, before + 2).qp_state, IBV_QPS_RTS);
	connect_rc(p->qp[1], qp->qp_num, TIMEOUT_ENC_PATIENT);
}

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR                                                                                    \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |           \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS                                                                                    \
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |    \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* RESET to INIT and RTR to RTS with values that softibd cannot refuse: it is told, and not asked. A
 * refusal stands for what is asked. */
static void what_softibd_cannot_refuse_does_not_wait(void **state)
{
	struct program *p = *state;
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 5,
				  .ah_attr = {.dlid = FAKE_LID, .port_num = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
	struct ibv_qp *qp = p->qp[0] = make_qp(p, IBV_QPT_RC);

	assert_int_equal(ibv_modify_qp(qp, &reset, IBV_QP_STATE), 0);
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_MODIFY_QP, -EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &init, TO_INIT), 0);
	assert_int_equal(modified(p, 3).qp_state, IBV_QPS_INIT);
	assert_int_equal(ibv_modify_qp(qp, &rtr, TO_RTR), 0);
	assert_int_equal(ibv_modify_qp(qp, &rts, TO_RTS), 0);
	assert_int_equal(modified(p, 5).qp_state, IBV_QPS_RTS);
	assert_int_equal(qp->state, IBV_QPS_RTS);
	p->qp[1] = make_qp(p, IBV_QPT_RC);
}

/* softibd hears of a QP in INIT with the next command of the context, whatever it is, and of each QP. */
static void init_is_told_with_the_next_command(void **state)
{
	struct program *p = *state;
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ib_uverbs_modify_qp last;

	for (int i = 0; i < 2; i++) {
		p->qp[i] = make_qp(p, IBV_QPT_RC);
		assert_int_equal(ibv_modify_qp(p->qp[i], &reset, IBV_QP_STATE), 0);
	}
	assert_int_equal(ibv_modify_qp(p->qp[0], &init, TO_INIT), 0);
	assert_int_equal(fake_modified(p->fake, &last), 4); /* two are make_qp()'s */
	assert_int_equal(ibv_modify_qp(p->qp[1], &init, TO_INIT), 0);
	assert_int_equal(modified(p, 6).qp_handle, p->qp[1]->handle);
}

static void assert_asked(struct program *p, struct ibv_qp_attr attr, int mask)
{
	fake_refuse_next(p->fake, IB_USER_VERBS_CMD_MODIFY_QP, -EINVAL);
	assert_int_equal(ibv_modify_qp(p->qp[0], &attr, mask), EINVAL);
}

static void what_softibd_may_refuse_is_asked(void **state)
{
	const struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	const struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 14};
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET}, attr;
	struct program *p = *state;

	p->qp[0] = make_qp(p, IBV_QPT_RC);
	assert_int_equal(ibv_modify_qp(p->qp[0], &reset, IBV_QP_STATE), 0);
	assert_asked(p, init, TO_INIT & ~IBV_QP_ACCESS_FLAGS);
	assert_asked(p, init, TO_INIT | IBV_QP_QKEY);
	attr = init, attr.port_num = 2;
	assert_asked(p, attr, TO_INIT);
	attr = init, attr.pkey_index = 1;
	assert_asked(p, attr, TO_INIT);
	attr = init, attr.qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC; /* the device has no atomics */
	assert_asked(p, attr, TO_INIT);
	assert_int_equal(ibv_modify_qp(p->qp[0], &(struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
								       .port_num = 1}, TO_INIT), 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 5,
				    .ah_attr = {.dlid = FAKE_LID, .port_num = 1}};
	assert_int_equal(ibv_modify_qp(p->qp[0], &attr, TO_RTR), 0);
	attr = rts, attr.timeout = 32;
	assert_asked(p, attr, TO_RTS);
	attr = rts, attr.retry_cnt = 8;
	assert_asked(p, attr, TO_RTS);
	attr = rts, attr.rnr_retry = 8;
	assert_asked(p, attr, TO_RTS);
	attr = rts, attr.max_rd_atomic = 1; /* more than the device has */
	assert_asked(p, attr, TO_RTS);
	assert_asked(p, rts, TO_RTS & ~IBV_QP_SQ_PSN);
	p->qp[1] = make_qp(p, IBV_QPT_RC);
}

static void rtr_tells_the_access(void **state)
{
	struct program *p = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ib_uverbs_modify_qp told;
	int before;

	p->qp[0] = make_qp(p, IBV_QPT_RC);
	before = 1; /* the way to INIT */
	assert_int_equal(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = 5,
				    .ah_attr = {.dlid = FAKE_LID, .port_num = 1}};
	assert_int_equal(ibv_modify_qp(p->qp[0], &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER), 0);
	told = modified(p, before + 1);
	assert_int_equal(told.qp_state, IBV_QPS_RTR);
	assert_true(told.attr_mask & IBV_QP_ACCESS_FLAGS);
	assert_int_equal(told.qp_access_flags, IBV_ACCESS_REMOTE_WRITE);
	p->qp[1] = make_qp(p, IBV_QPT_RC);
}

/* The child must not disturb the parent's session, nor hang when it ends. */
static void a_child_lets_the_parents_objects_alone(void **state)
{
	struct program *p = *state;
	int before = fake_objects(p->fake), status;
	pid_t child;

	make_rc_pair(p);
	fflush(NULL);
	child = fork();
	if (!child) {
		struct ibv_pd *pd = ibv_alloc_pd(p->context);
		int refused = !pd && errno == EIO;

		ibv_destroy_qp(p->qp[0]);
		ibv_close_device(p->context);
		_exit(refused ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(fake_objects(p->fake), before + 2);
	post_recv(p, 1);
	post(p, IBV_WR_SEND, 2);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
	assert_int_equal(poll_one(p).status, IBV_WC_SUCCESS);
}

static int childs_device_memory(struct program *p, struct ibv_dm *shared)
{
	struct ibv_dm *own = alloc_dm(p, 64, 0);
	uint32_t word = 0;

	if (!own || ibv_memcpy_from_dm(&word, shared, 0, 4) || word != 0x11223344)
		return 1;
	if (ibv_free_dm(own) || ibv_free_dm(shared))
		return 2;
	return 0;
}

/* It makes some for itself, sees what the parent has, and takes nothing along. */
static void a_child_has_device_memory_of_its_own(void **state)
{
	struct program *p = *state;
	struct ibv_dm *dm = alloc_dm(p, 64, 0);
	int before = fake_objects(p->fake), status;
	uint32_t word = 0x11223344;
	pid_t child;

	assert_int_equal(ibv_memcpy_to_dm(dm, 0, &word, 4), 0);
	fflush(NULL);
	child = fork();
	if (!child)
		_exit(childs_device_memory(p, dm));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(fake_objects(p->fake), before);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(fake_objects(p->fake), before - 1);
}

/* The descriptors that the library closed in a child are the child's to use: its own child
 * finds them open. */
static void a_childs_child_keeps_the_childs_descriptors(void **state)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child) {
		int fd[64]; /* some have the numbers of those just closed */
		pid_t grandchild;

		for (unsigned i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
			fd[i] = dup(STDERR_FILENO);
		grandchild = fork();
		if (!grandchild) {
			int closed = 0;

			for (unsigned i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
				closed += fcntl(fd[i], F_GETFD) < 0;
			_exit(closed);
		}
		waitpid(grandchild, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_device_is_described),
		CASE(a_device_stays_the_same_pointer),
		CASE(options_of_a_connection_are_of_one_vendor),
		CASE(what_is_not_supported_says_so),
		CASE(bad_requests_are_refused),
		CASE(address_handles_are_counted),
		CASE(events_are_moderated_within_limits),
		CASE(a_moderated_event_comes_to_who_sleeps),
		CASE(a_child_has_device_memory_of_its_own),
		CASE(softibd_has_the_last_word),
		CASE(an_xrc_domain_is_opened_by_softibd),
		CASE(a_channel_in_use_stays),
		CASE(send_to_a_program_that_polls),
		CASE(write_to_a_program_that_spins_on_memory),
		CASE(write_after_busy_polling),
		CASE(events_wake_a_sleeping_program),
		CASE(the_channel_can_be_polled),
		CASE(arming_late_misses_nothing),
		CASE(timers_run_while_the_program_sleeps),
		CASE(a_query_notes_the_state_when_it_is_asked_for),
		CASE(datagrams_come_with_a_way_back),
		CASE(the_builder_posts_what_it_collected),
		CASE(a_mistake_posts_nothing),
		CASE(the_extended_cq_reads_fields),
		CASE(srq_limit_raises_an_event_to_be_acknowledged),
		CASE(death_of_softibd_is_a_fatal_event),
		CASE(a_cancelled_thread_keeps_no_lock),
		CASE(a_lane_that_did_not_come_is_refused),
		CASE(access_that_changes_in_init_is_told_with_rtr),
		CASE(rtr_tells_the_access),
		CASE(what_softibd_cannot_refuse_does_not_wait),
		CASE(init_is_told_with_the_next_command),
		CASE(what_softibd_may_refuse_is_asked),
		CASE(a_child_lets_the_parents_objects_alone),
		CASE(a_childs_child_keeps_the_childs_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
